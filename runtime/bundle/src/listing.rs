//! The listing of a compiled kernel: its source and each intermediate form, line by line.

use serde::{Deserialize, Serialize};

/// The forms of one variant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// The source files.
    pub sources: Vec<SourceText>,
    /// The forms, from tile IR to what the assembler reads.
    pub views: Vec<View>,
}

/// A source file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceText {
    /// Its name.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// A form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// The name: `tile IR`, `PTX`.
    pub name: String,
    /// Its lines.
    pub lines: Vec<Line>,
}

/// A line of a form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// Its text.
    pub text: String,
    /// The number of its source file, counted from 0, and its line, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<(u32, u32)>,
}
