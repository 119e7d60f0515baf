//! Owns what is said about tools and files that the driver needs and does not find as expected.

use std::io;

use tk_syntax::{Code, Diagnostic, Span};

/// Why a tool could not be used: a message without a place, since no source is to blame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolError {
    /// The code.
    pub code: Code,
    /// One sentence.
    pub message: String,
    /// What to do about it, a sentence each.
    pub notes: Vec<String>,
}

impl ToolError {
    /// An error with one thing to try.
    pub fn new(code: Code, message: impl Into<String>, note: impl Into<String>) -> ToolError {
        ToolError { code, message: message.into(), notes: vec![note.into()] }
    }

    /// The diagnostic; `place` is the kernel that needed the tool.
    pub fn at(self, place: Span) -> Diagnostic {
        let mut d = Diagnostic::error(self.code, place, self.message, "");
        d.notes = self.notes;
        d
    }
}

impl std::fmt::Display for ToolError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ToolError {}

/// What went wrong, in words and without the number of the operating system: `no such file or directory`.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut chars = text.chars();
    chars.next().map(|c| c.to_lowercase().chain(chars).collect()).unwrap_or_default()
}
