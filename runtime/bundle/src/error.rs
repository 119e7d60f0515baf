//! Errors of an artifact, or of a launch by one.

use std::fmt;

/// What an [`Error`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The bundle is missing, damaged, or of another version.
    Bundle,
    /// The bundle has no such kernel or compile-time parameter, or an argument is none that the kernel takes.
    Argument,
    /// Nothing was built for the device.
    Target,
    /// Nothing was built for these arguments.
    Variant,
    /// A `require` of the kernel does not hold.
    Requirement,
    /// The grid or a workspace has no size, or more than a device takes.
    Grid,
    /// The kernel failed.
    Kernel,
}

/// Why a bundle cannot be read or a kernel of it cannot be launched: one sentence, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What it is about.
    pub kind: ErrorKind,
    /// A description of the problem.
    pub what: String,
    /// Advice; empty if none is known.
    pub hint: String,
}

impl Error {
    /// With what is wrong and what to do.
    pub fn new(kind: ErrorKind, what: impl Into<String>, hint: impl Into<String>) -> Error {
        Error { kind, what: what.into(), hint: hint.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if self.hint.is_empty() { Ok(()) } else { write!(f, "; {}", self.hint) }
    }
}

impl std::error::Error for Error {}
