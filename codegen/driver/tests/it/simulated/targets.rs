//! The same programs through code generation for every target: none ends the process, none is refused.
//!
//! `TK_SEEDS` gives more of them, as for the other tests of this file.

use tk_driver::{Asked, ProgramShape, Request, TARGETS, Until, compile};
use tk_syntax::SourceMap;

use tk_tile::{FuncKind, Id};

use super::*;

/// Seeds that every run of the tests tries.
const BUILT: Range<u64> = 0..40;

/// What a program is refused for, on any target.
fn refused(seed: u64) -> Option<String> {
    let (items, params) = stmts::generate(seed, true);
    let source = program::text(&items);
    let module = match prepared(&source, &params, seed).and_then(|p| p.optimised()) {
        Ok(module) => module,
        Err(problem) => return Some(format!("seed {seed}: {}\n\n{source}", problem.text)),
    };
    let entry =
        (0..module.funcs.len()).map(FuncId::new).find(|f| module.funcs[*f].kind == FuncKind::Kernel)?;
    let sources = SourceMap::default();
    let build = |target: &'static tk_gpu::TargetSpec| {
        let warps = WARPS[seed as usize % WARPS.len()];
        let options = LaunchOptions { warps, ..LaunchOptions::of(&[]) };
        let shape = ProgramShape::of(target, Asked::from(&options));
        let request = Request { module: &module, entry, target, shape, facts: vec![], sources: &sources };
        let wrong = compile(&request, false, Until::Binary).err()?;
        let messages: Vec<String> = wrong.iter().map(|d| format!("{}: {}", d.code, d.message)).collect();
        Some(format!("seed {seed}, {}: {}\n\n{source}", target.name, messages.join("; ")))
    };
    TARGETS.into_iter().find_map(build)
}

#[test]
fn generated_programs_build_for_every_target() {
    let seeds = if std::env::var_os("TK_SEEDS").is_some() { seeds() } else { BUILT };
    let found = all(seeds, 3, refused);
    assert!(found.is_empty(), "{} programs:\n\n{}", found.len(), found.join("\n\n"));
}
