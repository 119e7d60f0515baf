//! Source text to syntax tree: spans, diagnostics and their codes, tokens, bracket repair, grammar.
//!
//! [`parse`] never fails: it returns a tree with holes and a list of diagnostics, which [`render()`] shows in a
//! terminal. [`dump`] prints a tree.
//!
//! On the way: [`token`] splits the text, `repair` (with `evidence`) pairs the brackets, `parse` and `read` cut the
//! tokens into statements and items, innermost braces first, and the grammar reads one at a time (`unit`) into nodes
//! (`node`, `node_item`). What it cannot read is put into words (`explain`, `habits`) and replaced by holes
//! (`recover`). A text with mistakes is read once more when some of its comments were meant as divisions (`division`).

#![forbid(unsafe_code)]

pub mod ast;
mod c;
pub mod codes;
pub mod diag;
mod division;
mod escape;
mod evidence;
mod explain;
mod habits;
mod literal;
mod node;
mod node_item;
mod parse;
mod print;
mod read;
mod recover;
mod render;
mod repair;
mod signatures;
pub mod slices;
pub mod span;
pub mod stack;
pub mod token;
mod unit;

lalrpop_util::lalrpop_mod!(
    #[allow(clippy::all, clippy::unwrap_used, clippy::panic, missing_docs, unused, reason = "generated")]
    grammar
);

pub use codes::Code;
pub use diag::{Diagnostic, Fix, Label, Replacement, Severity};
pub use escape::{escaped, escaped_name};
pub use parse::{Reread, parse, parse_expr, parse_item};
pub use print::dump;
pub use render::{Renderer, render};
pub use span::{FileId, Source, SourceMap, Span};

/// The maximum depth of a tree. Every walk over it is recursive, and a debug build spends up to 2 KiB a level.
pub const MAX_DEPTH: usize = 256;
