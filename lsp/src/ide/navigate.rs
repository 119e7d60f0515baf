//! Owns the ways from a name to its definition and its uses.

use super::{Place, Workspace};

/// Where what stands at an offset is defined.
pub fn definition(ws: &mut Workspace, path: &str, offset: usize) -> Vec<Place> {
    let _ = (ws, path, offset);
    vec![]
}

/// Where the struct is defined that is the type of what stands at an offset.
pub fn type_definition(ws: &mut Workspace, path: &str, offset: usize) -> Vec<Place> {
    let _ = (ws, path, offset);
    vec![]
}

/// Every use of what stands at an offset, in all files of the workspace.
pub fn references(ws: &mut Workspace, path: &str, offset: usize, with_declaration: bool) -> Vec<Place> {
    let _ = (ws, path, offset, with_declaration);
    vec![]
}

/// Every use in this file, with whether it writes.
pub fn highlight(ws: &mut Workspace, path: &str, offset: usize) -> Vec<(Place, bool)> {
    let _ = (ws, path, offset);
    vec![]
}
