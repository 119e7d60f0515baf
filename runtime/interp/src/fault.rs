//! [`Fault`]: why a launch or a test stopped.
//!
//! Guarantees that a fault names its place: the machine adds source location and program where they are missing.

use std::fmt;

use tk_ops::Op;
use tk_tile::Loc;

/// Why a launch or a test stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The diagnostic code: `E0708` for what a program did, `E0709` to `E0716` for what only checked mode reports, `E0701` to `E0705` for a launch that is refused,
    /// `E0901` for an error that was expected and did not come, `E0002` for what is not supported yet, `E0001` for
    /// a compiler bug, or what a host launch reported.
    pub code: &'static str,
    /// A description of the fault.
    pub message: String,
    /// Where.
    pub loc: Option<Loc>,
    /// The program instance, if it was one of a grid.
    pub program: Option<[u32; 3]>,
    /// Another place that belongs to it, and what happened there.
    pub other: Option<Box<(Loc, String)>>,
    /// The values of the compile-time loops of a test around it: `T = f16, N = 127`.
    pub case: Option<String>,
}

/// A program did what it must not do.
pub(crate) const FAULT: &str = "E0708";

impl Fault {
    /// A fault without a place.
    pub fn new(code: &'static str, message: impl Into<String>) -> Fault {
        Fault { code, message: message.into(), loc: None, program: None, other: None, case: None }
    }

    /// A program did what it must not do.
    pub(crate) fn run(message: impl Into<String>) -> Fault {
        Fault::new(FAULT, message)
    }

    /// The IR breaks a rule that its verifier guarantees.
    #[cold]
    pub(crate) fn internal(message: impl fmt::Display) -> Fault {
        Fault::new("E0001", format!("internal error in the interpreter: {message}"))
    }

    /// An operation that the interpreter does not have yet.
    #[cold]
    pub(crate) fn unsupported(op: Op) -> Fault {
        Fault::new("E0002", format!("`{}` is not supported yet on the CPU device", op.name()))
    }

    /// The same with a place, where none is known.
    pub(crate) fn at(mut self, loc: Option<Loc>, program: Option<[u32; 3]>) -> Fault {
        self.loc = self.loc.or(loc);
        self.program = self.program.or(program);
        self
    }

    /// The same with the iteration of a test that a step is in.
    pub(crate) fn within(mut self, case: Option<&str>) -> Fault {
        self.case = self.case.or(case.map(str::to_string));
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)?;
        match self.program {
            Some([x, y, z]) => write!(f, " (program {x}, {y}, {z})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Fault {}
