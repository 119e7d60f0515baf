//! Errors of an artifact, or of a launch by one.

use std::fmt;

/// Why a bundle cannot be read or a kernel of it cannot be launched: one sentence, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// A description of the problem.
    pub what: String,
    /// Advice; empty if none is known.
    pub hint: String,
}

impl Error {
    /// With what is wrong and what to do.
    pub fn new(what: impl Into<String>, hint: impl Into<String>) -> Error {
        Error { what: what.into(), hint: hint.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if self.hint.is_empty() { Ok(()) } else { write!(f, "; {}", self.hint) }
    }
}

impl std::error::Error for Error {}
