//! Owns the changes that an editor offers for a place.

use std::ops::Range;

use super::{TextEdit, Workspace};

/// What an action is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ActionKind {
    /// It mends a diagnostic.
    QuickFix,
    /// It changes the form.
    Refactor,
}

/// A change that an editor offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// What it does.
    pub title: String,
    /// What it is for.
    pub kind: ActionKind,
    /// The changes, not overlapping.
    pub edits: Vec<TextEdit>,
    /// The diagnostic that it mends, by its number in [`super::diagnostics::diagnostics`].
    pub diagnostic: Option<usize>,
}

/// What can be done with a range.
pub fn actions(ws: &mut Workspace, path: &str, range: Range<usize>) -> Vec<Action> {
    let _ = (ws, path, range);
    vec![]
}
