//! The listing of a compiled kernel: its source and each intermediate form, line by line.

use serde::{Deserialize, Serialize};

/// The forms of one variant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Listing {
    /// The source files.
    pub sources: Vec<SourceText>,
    /// The forms, from tile IR to what the assembler reads.
    pub views: Vec<View>,
    /// What the compiler predicts of a typical launch; none if nothing is known of the speed of the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typical: Option<Typical>,
}

/// The predicted cost of a typical launch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Typical {
    /// The extents and integers of the launch that are free; the largest of them where they differ.
    pub extent: i64,
    /// The name of the GPU.
    pub gpu: String,
    /// Microseconds.
    pub us: f64,
    /// The time that each limit alone would allow, in microseconds, the largest first.
    pub limits: Vec<(String, f64)>,
    /// Blocks that a multiprocessor runs at once.
    pub blocks_per_sm: u32,
    /// Whether something depends on data.
    pub is_guess: bool,
    /// The unit whose time is divided among the lines.
    pub unit: String,
    /// The lines of the source that cost anything.
    pub lines: Vec<TypicalLine>,
}

/// The cost of what a line of the source became, in all programs of a launch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TypicalLine {
    /// The number of its source file, counted from 0, and its line, counted from 1.
    pub at: (u32, u32),
    /// Its part of the time of the unit.
    pub share: f64,
    /// Instructions of warps.
    pub instructions: f64,
    /// Bytes from and to the shared cache.
    pub bytes: f64,
    /// Cycles of shared memory that bank conflicts add.
    pub conflicts: f64,
    /// The most registers of a lane for tiles that are live at once.
    pub registers: u32,
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
