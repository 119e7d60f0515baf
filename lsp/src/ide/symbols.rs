//! Owns the outline of a file and the search for names.

use super::{Place, Workspace};

/// What a symbol is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the words of the language")]
pub enum SymbolKind {
    Function,
    Kernel,
    Struct,
    Field,
    Method,
    Const,
    Test,
    Module,
    Export,
    CompileTime,
    Parameter,
    Variable,
}

/// A symbol with what it contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: SymbolKind,
    /// Its type or signature.
    pub detail: String,
    /// All of it.
    pub place: Place,
    /// Its name.
    pub name_place: Place,
    /// What it contains.
    pub children: Vec<Symbol>,
}

/// The outline of a file.
pub fn document(ws: &mut Workspace, path: &str) -> Vec<Symbol> {
    let _ = (ws, path);
    vec![]
}

/// The items of all files of the workspace whose name contains the letters of `query` in their order.
pub fn workspace(ws: &mut Workspace, query: &str) -> Vec<Symbol> {
    let _ = (ws, query);
    vec![]
}
