//! Owns the meaning of each token, for colours.

use std::ops::Range;

use super::Workspace;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the words of the language")]
pub enum TokenKind {
    Keyword,
    Comment,
    String,
    Number,
    Operator,
    Decorator,
    Module,
    Function,
    Method,
    Struct,
    Type,
    Property,
    Parameter,
    Variable,
    Const,
    /// A compile-time parameter that is an element type, a shape or a function.
    TypeParameter,
    /// A compile-time parameter that is a number or bool.
    CompileTime,
}

/// What else is known of a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Modifiers {
    /// It is the definition.
    pub declaration: bool,
    /// Known at compile time.
    pub fixed: bool,
    /// A `mut` variable.
    pub mutable: bool,
    /// A builtin, or of the standard library.
    pub library: bool,
    /// A doc comment.
    pub documentation: bool,
}

/// A token; it has one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    /// What it is.
    pub kind: TokenKind,
    /// What else is known of it.
    pub modifiers: Modifiers,
}

/// The tokens that touch a range, in order; all with `None`.
pub fn tokens(ws: &mut Workspace, path: &str, range: Option<Range<usize>>) -> Vec<Token> {
    let _ = (ws, path, range);
    vec![]
}
