//! Owns what is shown between the words: inferred types and compile-time arguments.

use std::ops::Range;

use super::Workspace;

/// What a hint says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HintKind {
    /// The type of a variable.
    Type,
    /// Compile-time arguments of a call.
    Argument,
}

/// Text that is shown but not written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// Where.
    pub offset: usize,
    /// The text.
    pub label: String,
    /// What it says.
    pub kind: HintKind,
    /// Whether it belongs to what follows it.
    pub before: bool,
}

/// The hints of a range.
pub fn hints(ws: &mut Workspace, path: &str, range: Range<usize>) -> Vec<Hint> {
    let _ = (ws, path, range);
    vec![]
}
