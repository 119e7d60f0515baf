//! Generated programs: each is well-typed by construction, so the checker must accept it, and each runs on the IR
//! before the passes, behind every single pass, and behind all of them, with the same bits.
//!
//! `TK_SEEDS=0..100000 cargo test --release --package tk-runtime --test generated` tries more of them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails where these fail")]

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
    "as bf16",
    "ma: view[f16",
    "ma: view[bf16",
    "ma: view[f32",
    "ma: view[f64",
    "ma: view[f8e4m3",
    "ma: view[f8e5m2",
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
