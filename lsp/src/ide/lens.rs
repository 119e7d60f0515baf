//! Owns the lines that are shown above kernels and tests.

use super::{Place, Workspace};

/// What a lens does when it is clicked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LensCommand {
    /// Runs the tests of a file whose names contain `filter`; all of them when it is empty.
    RunTests {
        /// The file.
        path: String,
        /// Part of the names.
        filter: String,
    },
    /// Nothing.
    Info,
}

/// A line above an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lens {
    /// The name of the item.
    pub place: Place,
    /// The text.
    pub title: String,
    /// What happens on a click.
    pub command: LensCommand,
}

/// The lenses of a file.
pub fn lens(ws: &mut Workspace, path: &str) -> Vec<Lens> {
    let _ = (ws, path);
    vec![]
}
