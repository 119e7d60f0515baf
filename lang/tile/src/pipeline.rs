//! The order of the target-independent passes.
//!
//! Takes a verified module. Returns a verified module, or the name of the pass that broke it.

use std::fmt;

use crate::ir::Module;
use crate::passes::{ModulePass, cse, dce, fold, hoist, inline, stamp, vectorize_map};
use crate::verify::{TileModule, VerifyError, verify};

/// The passes, in order.
pub const PASSES: &[ModulePass] = &[
    // First: everything after it sees whole kernels.
    inline::PASS,
    // Decides what specialization left open, so that a `map` shows whether it is elementwise.
    fold::PASS,
    vectorize_map::PASS,
    // Again: tiles of constants and choices between equal tiles come out of `vectorize_map`.
    fold::PASS,
    // After folding: equal operands have equal names then.
    cse::PASS,
    // After `cse`: what a loop recomputes although it is known outside has no operand inside any more.
    hoist::PASS,
    // Again: what left two loops, or two arms of an `if`, may be equal.
    cse::PASS,
    // Last: it takes away what the others left without users.
    dce::PASS,
];

/// [`PASSES`] where what functions of other files do has the places of their calls in the file of the program.
pub fn passes_at_calls() -> Vec<ModulePass> {
    let at_calls = |pass: &ModulePass| if pass.name == inline::PASS.name { inline::AT_CALLS } else { *pass };
    PASSES.iter().map(at_calls).collect()
}

/// The passes of checked mode: instructions stay as they were written, so that each report has its place. Inlining shows
/// which arithmetic becomes the offset of a pointer.
pub const CHECKED: &[ModulePass] = &[inline::PASS];

/// What follows [`PASSES`] where a kernel says how long its loops took.
pub const STAMPS: &[ModulePass] = &[stamp::PASS];

/// A pass that broke the IR: a compiler bug.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassError {
    /// The name of the pass; of the last one where only the end is verified.
    pub pass: &'static str,
    /// The violated invariant.
    pub error: VerifyError,
}

impl fmt::Display for PassError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "after the pass `{}`: {}", self.pass, self.error)
    }
}

impl std::error::Error for PassError {}

/// Called with the name of each pass and the module after it.
pub type ModuleObserver<'a> = &'a mut dyn FnMut(&'static str, &Module);

/// Runs every pass. Debug builds verify after each; release builds at the end.
pub fn run(module: TileModule, observer: Option<ModuleObserver<'_>>) -> Result<TileModule, PassError> {
    run_passes(PASSES, module, observer)
}

/// Runs these passes.
pub fn run_passes(
    passes: &[ModulePass],
    module: TileModule,
    mut observer: Option<ModuleObserver<'_>>,
) -> Result<TileModule, PassError> {
    let mut module = module.into_inner();
    let mut last = "";
    for pass in passes {
        (pass.run)(&mut module);
        last = pass.name;
        if let Some(see) = &mut observer {
            see(pass.name, &module);
        }
        if cfg!(debug_assertions) {
            verify(&module).map_err(|error| PassError { pass: last, error })?;
        }
    }
    TileModule::new(module).map_err(|error| PassError { pass: last, error })
}
