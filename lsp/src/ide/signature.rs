//! Owns help on the arguments of the call around a place.

use std::ops::Range;

use super::Workspace;

/// What is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Its declaration on one line.
    pub label: String,
    /// Its documentation, in Markdown.
    pub doc: String,
    /// The parameters: their bytes in `label`, and what is said of each.
    pub params: Vec<(Range<usize>, String)>,
    /// The parameter whose argument is being written.
    pub active: Option<usize>,
}

/// The call around an offset.
pub fn signature(ws: &mut Workspace, path: &str, offset: usize) -> Option<Signature> {
    let _ = (ws, path, offset);
    None
}
