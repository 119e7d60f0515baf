//! Source text to syntax tree: spans, diagnostics and their codes, tokens, bracket repair, grammar.
//!
//! The one entry point is [`parse`], which never fails: it returns a tree with holes and a list of diagnostics.

pub mod ast;
pub mod codes;
pub mod diag;
mod evidence;
mod explain;
mod habits;
mod literal;
mod node;
mod node_item;
mod parse;
pub mod print;
mod recover;
pub mod render;
mod repair;
pub mod span;
pub mod token;
mod unit;

lalrpop_util::lalrpop_mod!(
    #[allow(clippy::all, clippy::unwrap_used, clippy::panic, missing_docs, unused, reason = "generated")]
    grammar
);

pub use codes::Code;
pub use diag::{Diagnostic, Edit, Fix, Label, Severity};
pub use parse::parse;
pub use print::dump;
pub use render::render;
pub use span::{FileId, SourceMap, Span};

/// How deep a tree may be. Every walk over it is recursive, and a debug build spends up to 2 KiB a level.
pub const MAX_DEPTH: usize = 256;
