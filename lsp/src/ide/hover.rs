//! Owns what is shown of the thing under the pointer.

use super::{Place, Workspace};

/// What to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hover {
    /// What it is about.
    pub place: Place,
    /// The text, in Markdown.
    pub markdown: String,
}

/// What is known of the name or expression at an offset.
pub fn hover(ws: &mut Workspace, path: &str, offset: usize) -> Option<Hover> {
    let _ = (ws, path, offset);
    None
}
