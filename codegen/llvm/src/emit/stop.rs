//! Reasons for which emission of a kernel stops.

use inkwell::builder::BuilderError;
use tk_tile::Loc;

use crate::scalar::Error as ScalarError;

/// The reason that no code is emitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A bug of the compiler.
    Bug(String),
    /// The target does not support an operation.
    Unsupported {
        /// The operation, in the words of the language.
        what: String,
        /// Its source position.
        loc: Option<Loc>,
    },
    /// LLVM's message about instructions that the program gives as text.
    Refused(String),
}

impl From<BuilderError> for Stop {
    fn from(e: BuilderError) -> Stop {
        Stop::Bug(e.to_string())
    }
}

impl From<ScalarError> for Stop {
    fn from(e: ScalarError) -> Stop {
        Stop::Bug(e.to_string())
    }
}

/// The result of emission.
pub type Res<T> = Result<T, Stop>;

/// A bug of the compiler.
pub fn bug<T>(what: impl Into<String>) -> Res<T> {
    Err(Stop::Bug(what.into()))
}
