//! The definition of a pass; each pass has a file. The order is in [`crate::pipeline`].
//!
//! A pass takes a verified module and leaves a verified one; its result depends on the module alone.

pub mod cse;
pub mod dce;
pub mod fold;
pub mod hoist;
pub mod inline;
pub mod stamp;
pub mod vectorize_map;

use crate::ir::Module;

/// A change of the IR that keeps its meaning.
#[derive(Clone, Copy, Debug)]
pub struct ModulePass {
    /// Its name: of its file, of its folder in `tests/ir`, in error messages.
    pub name: &'static str,
    /// Changes a verified module into one that verifies.
    pub run: fn(&mut Module),
}
