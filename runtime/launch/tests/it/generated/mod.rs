//! Generated programs: each is well-typed by construction, so the checker must accept it, and each runs on the IR
//! before the passes, after every single pass, and after all of them, with the same bits.
//!
//! `TK_SEEDS=0..100000 cargo test --release --package tk-runtime --test it generated::` tries more of them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails where these fail")]

mod bounds;
mod exprs;
mod loops;
mod program;
mod run;
mod stmts;
mod tiles;
mod types;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Seeds that every run of the tests tries.
const SEEDS: Range<u64> = 0..300;

fn seeds() -> Range<u64> {
    let Ok(text) = std::env::var("TK_SEEDS") else { return SEEDS };
    let (from, to) = text.split_once("..").unwrap_or_else(|| panic!("TK_SEEDS is FROM..TO, not {text}"));
    from.parse().unwrap()..to.parse().unwrap()
}

/// What is wrong with the program of a seed, with the program made small.
fn problem(seed: u64) -> Option<String> {
    let (items, params) = stmts::generate(seed, false);
    let source = program::text(&items);
    let wrong = run::problem(&source, &params, seed)?;
    // Smaller programs that are wrong in the same way; taking out a variable that is used gives another problem.
    let kind = wrong.kind;
    let small =
        program::shrink(items, |text| run::problem(text, &params, seed).is_some_and(|p| p.kind == kind));
    let small = program::text(&small);
    let what = run::problem(&small, &params, seed).map_or(wrong.text, |p| p.text);
    Some(format!("seed {seed}: {what}\n\n{small}"))
}

/// What every back end has to bring to the same results: a generator that no longer writes one of these tests nothing
/// of it.
const WRITTEN: &[&str] = &[
    ".load([",
    ".store([",
    ".gather([",
    ".scatter([",
    "load(",
    "store(",
    " gather(",
    "dot(",
    "precision = tf32",
    "stages = ",
    "continue;",
    "break;",
    "while ",
    "sum(",
    "max(",
    "argmax(",
    "reduce(",
    "scan(",
    "cumsum(",
    "sort(",
    "values = ",
    "topk(",
    "histogram(",
    "cat(",
    "interleave(",
    "join(",
    "split(",
    "reshape(",
    ".permute([",
    ".T",
    "broadcast_to(",
    "flip(",
    "map(",
    "bitcast(",
    "as f8e4m3",
    "as f8e5m2",
    "as f8e4m3fnuz",
    "as f8e5m2fnuz",
    "as e2m1",
    ", e2m1) as",
    "rounding = toward_zero",
    "rounding = stochastic",
    "keeps_exp_",
    "keeps_pow_",
    "map(keeps_",
    "mulhi(",
    "randint(",
    "reduce_or(",
    "precision = bf16x3",
    "precision = bf16x6",
    "as bf16",
    "ma: view[f16",
    "ma: view[bf16",
    "ma: view[f32",
    "ma: view[f64",
    "ma: view[f8e4m3",
    "ma: view[f8e5m2",
    "ma: view[f8e4m3fnuz",
    "ma: view[f8e5m2fnuz",
    "ma: view[i8",
    "mb: view[f8e5m2",
    "atomic_add(",
    "atomic_max(",
    "atomic_min(",
    "atomic_and(",
    "atomic_or(",
    "atomic_xor(",
    "atomic_xchg(",
    "atomic_cas(",
    "struct ",
    "@noinline",
    "if let ",
];

#[test]
fn programs_hold_every_operation() {
    for exact in [false, true] {
        let programs: Vec<String> =
            SEEDS.map(|seed| program::text(&stmts::generate(seed, exact).0)).collect();
        let missing: Vec<&&str> =
            WRITTEN.iter().filter(|w| programs.iter().filter(|p| p.contains(**w)).count() < 3).collect();
        assert!(missing.is_empty(), "fewer than 3 of {} programs have {missing:?}", programs.len());
    }
}

/// Returns true if a function of floats keeps its bound on 1,000 numbers, of which some have any bits; `off` is what
/// it is multiplied by.
fn keeps_on_numbers(f: &str, e: types::Elem, off: &str) -> bool {
    let keeps = program::text(&[bounds::keeps(f, e)]);
    let args = if f == "pow" { "abs(v), w" } else { "v" };
    let source = format!(
        "{}
kernel k(x: view[{e}, 1], y: view[{e}, 1], held: mut view[u8, 1]) grid(1) {{
    let (v, w) = (x.load([0], [1000]), y.load([0], [1000]));
    held.store([0], map(keeps_{f}_{e}, {args}) as u8);
}}",
        keeps.replacen("(x);", &format!("(x){off};"), 1).replacen("(x, y);", &format!("(x, y){off};"), 1)
    );
    let tensor = |e| stmts::Param::Tensor(e, vec![1000]);
    let program = run::prepared(&source, &[tensor(e), tensor(e), tensor("u8")], 1);
    let program = program.unwrap_or_else(|wrong| panic!("{source}\n{}", wrong.text));
    let module = program.optimised().unwrap_or_else(|wrong| panic!("{}", wrong.text));
    let results = program.results(&module, &run::interpreted).unwrap();
    results[2].iter().all(|held| *held == 1)
}

#[test]
fn functions_keep_their_bounds_and_others_do_not() {
    for (f, _) in bounds::BOUNDED.iter() {
        for e in ["f32", "f16", "bf16"] {
            assert!(keeps_on_numbers(f, e, ""), "{f} of {e}");
            // Three units more than there should be.
            let unit = match e {
                "f32" => "1.0000004",
                "f16" => "1.003",
                _other => "1.03",
            };
            assert!(!keeps_on_numbers(f, e, &format!(" * {unit}")), "{f} of {e} that is off");
        }
    }
}

#[test]
fn layout_changes_no_program() {
    let dump = |text: &str| tk_syntax::dump(&tk_syntax::parse(tk_syntax::FileId(0), text).0);
    for seed in seeds() {
        let (items, _) = stmts::generate(seed, false);
        let text = program::text(&items);
        let once = tk_fmt::format(&text).unwrap();
        assert_eq!(dump(&text), dump(&once), "seed {seed}");
        assert_eq!(tk_fmt::format(&once).unwrap(), once, "seed {seed}");
    }
}

#[test]
fn passes_change_no_result() {
    let seeds = seeds();
    let next = AtomicU64::new(seeds.start);
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let work = || {
        let mut found = vec![];
        while found.len() < 3 {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                break;
            }
            found.extend(problem(seed));
        }
        found
    };
    let found: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|t| t.join().unwrap()).collect()
    });
    assert!(found.is_empty(), "{} programs:\n\n{}", found.len(), found.join("\n\n"));
}
