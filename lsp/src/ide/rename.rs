//! Owns renaming, and when it is refused.

use super::{Place, TextEdit, Workspace};

/// The name that would be renamed; `Err` is a sentence why it cannot be.
pub fn prepare(ws: &mut Workspace, path: &str, offset: usize) -> Result<Place, String> {
    let _ = (ws, path, offset);
    Err("there is no name here".into())
}

/// The edits that give what stands at an offset another name; `Err` is a sentence why that would break something.
pub fn rename(ws: &mut Workspace, path: &str, offset: usize, new_name: &str) -> Result<Vec<TextEdit>, String> {
    let _ = (ws, path, offset, new_name);
    Err("there is no name here".into())
}
