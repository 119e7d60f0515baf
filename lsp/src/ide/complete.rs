//! Owns what can be written at a place.

use super::{Place, TextEdit, Workspace};

/// What a completion is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the words of the language")]
pub enum CompletionKind {
    Keyword,
    Function,
    Kernel,
    Builtin,
    Method,
    Field,
    Property,
    Variable,
    Parameter,
    CompileTime,
    Const,
    Struct,
    Type,
    Module,
    Argument,
    Word,
    Snippet,
}

/// One thing that can be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Its name.
    pub label: String,
    /// What it is.
    pub kind: CompletionKind,
    /// Its type or signature, on one line; may be empty.
    pub detail: String,
    /// Its documentation, in Markdown; may be empty.
    pub doc: String,
    /// What is written.
    pub insert: String,
    /// Whether `insert` has `$1`, `${2:name}` and `$0` for the editor to stop at.
    pub snippet: bool,
    /// What `insert` replaces.
    pub replace: Place,
    /// What else changes: an import.
    pub extra: Vec<TextEdit>,
}

/// What can be written at an offset.
pub fn complete(ws: &mut Workspace, path: &str, offset: usize) -> Vec<Completion> {
    let _ = (ws, path, offset);
    vec![]
}
