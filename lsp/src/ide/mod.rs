//! The answers to what an editor asks: one file per feature, plain data in and out.
//!
//! Places are paths and bytes. An offset may be anywhere, also outside of the text or inside a character; then the
//! answer is empty. Nothing here panics, reads files by itself or runs code of a program.

pub mod actions;
mod add_require;
mod background;
pub mod calls;
pub mod complete;
mod complete_fit;
mod complete_member;
mod complete_name;
mod complete_order;
mod complete_type;
mod context;
pub mod costs;
mod describe;
pub mod diagnostics;
mod extract;
pub mod folding;
pub mod form;
pub mod hints;
pub mod hover;
mod inline_let;
pub mod lens;
pub mod navigate;
pub mod rename;
mod scope;
pub mod selection;
pub mod signature;
mod site;
pub mod source_actions;
mod stop;
pub mod symbols;
mod texts;
pub mod tokens;
mod trial;
mod walk;
pub mod workspace;

pub use stop::{Stop, was_stopped};
pub use workspace::{Analysis, Disk, Workspace};

/// A place: a file by the path under which it was loaded (absolute, `std:/grid.tk` for the file of `std::grid`), and
/// bytes of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The file.
    pub path: String,
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

/// Replaces the text of a place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TextEdit {
    /// The text to replace; empty for an insertion.
    pub place: Place,
    /// The new text.
    pub text: String,
}
