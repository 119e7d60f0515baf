//! Owns who calls whom, launches of kernels included.

use super::symbols::Symbol;
use super::{Place, Workspace};

/// A caller or callee, with the calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The function at the other end; without children.
    pub symbol: Symbol,
    /// Where the caller names the callee; all in the file of the caller.
    pub places: Vec<Place>,
}

/// The function that an offset names or lies in.
pub fn prepare(ws: &mut Workspace, path: &str, offset: usize) -> Option<Symbol> {
    let _ = (ws, path, offset);
    None
}

/// Who calls the function whose name stands at a place.
pub fn incoming(ws: &mut Workspace, path: &str, offset: usize) -> Vec<Call> {
    let _ = (ws, path, offset);
    vec![]
}

/// Whom the function whose name stands at a place calls.
pub fn outgoing(ws: &mut Workspace, path: &str, offset: usize) -> Vec<Call> {
    let _ = (ws, path, offset);
    vec![]
}
