//! Names, types, symbolic shapes, compile-time evaluation, specialization and lowering to tile IR.
//!
//! [`check`] reads a file and everything it uses and returns a typed program with diagnostics; it never fails and
//! never runs anything. [`contract::plan`] decides what one launch of a kernel means.

#![forbid(unsafe_code)]

pub mod check;
pub mod contract;
pub mod dump;
pub mod eval;
pub mod hir;
pub mod import;
pub mod index;
pub mod launch;
mod lint;
mod lower;
pub mod poly;
pub mod show;
pub mod specialize;
pub mod stops;
pub mod target;
pub mod types;
mod visit;

pub use check::files::{std_files, std_path};
pub use check::names::closest;
pub use check::{Indexed, Written, check, check_given, check_indexed};
use tk_syntax::{Diagnostic, SourceMap};

/// The source of text; the only way in which this crate reaches files.
pub trait Loader {
    /// The text of a file, bytes that are no UTF-8 replaced; `Err` is one sentence for the user.
    fn load(&self, path: &str) -> Result<String, String>;
    /// The text of the file beside `from` that a `use` there names. The error is one sentence why a file that exists is not
    /// used, `None` if there is none.
    fn used(&self, path: &str, from: &str) -> Result<String, Option<String>> {
        let _ = from;
        self.load(path).map_err(|_| None)
    }
    /// A standard library file (`grid` for `std::grid`, `nn/softmax` for `std::nn::softmax`) that replaces the built-in one: shown name and text.
    fn std(&self, name: &str) -> Option<(String, String)> {
        let _ = name;
        None
    }
    /// Is called between the parts of a check. It may unwind, if nobody waits for the check any more.
    fn checkpoint(&self) {}
}

/// A checked program.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// Every file that was read; the first is the one that was asked for.
    pub sources: SourceMap,
    /// The typed program; functions with errors are marked `broken`.
    pub hir: hir::Hir,
    /// The diagnostics, in source order.
    pub diagnostics: Vec<Diagnostic>,
}
