//! Generated programs on the simulated target and on GPUs: each gives the bits that it gives on the interpreter, with warps of both
//! widths, different numbers of warps, and another order of lanes and programs in every run.
//!
//! The programs hold only what is exact: no functions of floats, and of floats only sums of small whole numbers.
//! `TK_SEEDS=0..10000 cargo test --release --package tk-driver --test it simulated::` tries more of them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails where these fail")]

// The generator is that of the tests of the passes.
#[path = "../../../../../runtime/launch/tests/it/generated/bounds.rs"]
mod bounds;
#[path = "../../../../../runtime/launch/tests/it/generated/exprs.rs"]
mod exprs;
#[path = "../../../../../runtime/launch/tests/it/generated/loops.rs"]
mod loops;
#[path = "../../../../../runtime/launch/tests/it/generated/program.rs"]
mod program;
#[allow(dead_code, reason = "another test runs single passes")]
#[path = "../../../../../runtime/launch/tests/it/generated/run.rs"]
mod run;
#[path = "../../../../../runtime/launch/tests/it/generated/stmts.rs"]
mod stmts;
#[path = "../../../../../runtime/launch/tests/it/generated/tiles.rs"]
mod tiles;
#[allow(dead_code, reason = "another test has programs that are not exact")]
#[path = "../../../../../runtime/launch/tests/it/generated/types.rs"]
mod types;

mod gpu;
mod targets;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use run::{Kind, Problem, interpreted, prepared, wrong};
use stmts::Param;
use tk_driver::Simulator;
use tk_gpu::target::spec::{SIM_32, SIM_64, SIM_BLACKWELL, SIM_CDNA4, SIM_RDNA4};
use tk_interp::{Arg, Memory};
use tk_runtime::Compiled;
use tk_runtime::device::{Device, LaunchOptions};
use tk_tile::{FuncId, TileModule};

/// Seeds that every run of the tests tries.
const SEEDS: Range<u64> = 0..300;

/// Warps of a program, from one to more than there is work for.
const WARPS: [u32; 4] = [1, 2, 4, 8];

fn seeds() -> Range<u64> {
    let Ok(text) = std::env::var("TK_SEEDS") else { return SEEDS };
    let (from, to) = text.split_once("..").unwrap_or_else(|| panic!("TK_SEEDS is FROM..TO, not {text}"));
    from.parse().unwrap()..to.parse().unwrap()
}

/// What is wrong with a program on the simulated targets: those with warps of both widths, and for every third seed one of
/// the others. How many warps follows from the seed.
fn examine(source: &str, params: &[Param], seed: u64) -> Result<(), Problem> {
    let program = prepared(source, params, seed)?;
    let module = program.optimised()?;
    let expected = program
        .results(&module, &interpreted)
        .or_else(|e| wrong(Kind::Fault, format!("on the interpreter: {e}")))?;
    let others = [&SIM_BLACKWELL, &SIM_CDNA4, &SIM_RDNA4];
    let other = others[(seed / 3) as usize % others.len()];
    for (spec, more) in
        [(&SIM_32, 0), (&SIM_64, 1)].into_iter().chain(seed.is_multiple_of(3).then_some((other, 2)))
    {
        let warps = WARPS[(seed as usize + more) % WARPS.len()];
        let device = Simulator::new(spec, seed);
        let simulated =
            |module: &TileModule, entry: FuncId, args: &[Arg], grid: [u32; 3], memory: &Memory| {
                let compiled = Compiled {
                    id: 0,
                    module: module.clone(),
                    entry,
                    notes: vec![],
                    debug: std::sync::Arc::default(),
                };
                let timeout = Some(Duration::from_secs(60));
                let options = LaunchOptions { warps, timeout, ..LaunchOptions::of(&[]) };
                device.launch(&compiled, args, grid, &options, memory).map_err(|fault| format!("{fault}"))
            };
        let got = program
            .results(&module, &simulated)
            .or_else(|e| wrong(Kind::Fault, format!("{}, {warps} warps: {e}", spec.name)))?;
        if let Some(i) = got.iter().zip(&expected).position(|(a, b)| a != b) {
            return wrong(
                Kind::Differs("sim"),
                format!("{}, {warps} warps: argument {i} differs", spec.name),
            );
        }
    }
    Ok(())
}

/// What is wrong with the program of a seed, with the program made small.
fn problem(seed: u64) -> Option<String> {
    let (items, params) = stmts::generate(seed, true);
    let wrong = examine(&program::text(&items), &params, seed).err()?;
    let kind = wrong.kind;
    // It takes minutes, for a program that does not matter.
    if wrong.text.contains("E1003") || wrong.text.contains("the time limit") {
        return Some(format!("seed {seed}: {}", wrong.text));
    }
    let small = program::shrink(items, |text| examine(text, &params, seed).is_err_and(|p| p.kind == kind));
    let small = program::text(&small);
    let what = examine(&small, &params, seed).err().map_or(wrong.text, |p| p.text);
    Some(format!("seed {seed}: {what}\n\n{small}"))
}

/// What `examine` finds wrong with the programs of these seeds, tried by as many threads as there are processors; ends
/// when `enough` have failed on one of them.
fn all(seeds: Range<u64>, enough: usize, examine: impl Fn(u64) -> Option<String> + Sync) -> Vec<String> {
    let next = AtomicU64::new(seeds.start);
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let work = || {
        let mut found = vec![];
        while found.len() < enough {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                break;
            }
            found.extend(examine(seed));
        }
        found
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|t| t.join().unwrap()).collect()
    })
}

#[test]
fn generated_programs_give_what_the_interpreter_gives() {
    let found = all(seeds(), 3, problem);
    assert!(found.is_empty(), "{} programs:\n\n{}", found.len(), found.join("\n\n"));
}
