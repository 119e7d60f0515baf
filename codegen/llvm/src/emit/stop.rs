//! Why emission of a kernel stops.

use inkwell::builder::BuilderError;
use tk_tile::Loc;

use crate::scalar::Error as ScalarError;

/// Why there is no code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A mistake of the compiler.
    Bug(String),
    /// The target has nothing for an operation.
    Unsupported {
        /// What, in the words of the language.
        what: String,
        /// Where it stands.
        loc: Option<Loc>,
    },
    /// What LLVM says of instructions that the program gives as text.
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

/// What emission gives.
pub type Res<T> = Result<T, Stop>;

/// A mistake of the compiler.
pub fn bug<T>(what: impl Into<String>) -> Res<T> {
    Err(Stop::Bug(what.into()))
}
