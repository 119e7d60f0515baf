//! Owns what of a file can be folded away.

use super::Workspace;

/// What is folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FoldKind {
    /// A block, a list.
    Region,
    /// Comment lines.
    Comment,
    /// `use` lines.
    Imports,
}

/// A part that can be folded away; it has more than one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fold {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    /// What it is.
    pub kind: FoldKind,
}

/// What can be folded away.
pub fn folding(ws: &mut Workspace, path: &str) -> Vec<Fold> {
    let _ = (ws, path);
    vec![]
}
