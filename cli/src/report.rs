//! `--message-format json`: the objects on the lines of standard output. `docs/tool.md` describes them.
//!
//! Guarantees that a name in an object keeps its meaning; new ones may be added. Offsets are bytes of the text as the
//! compiler read it, lines and columns count from 1, columns in Unicode characters.

use serde::Serialize;
use tk_syntax::{FileId, Fix, Label, Renderer, Severity, SourceMap, Span, escaped, escaped_name};

/// One line.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Line<'a> {
    /// A problem in a file.
    Diagnostic(Diagnostic<'a>),
    /// The result of a test.
    Test(Test<'a>),
    /// The end of `tk test`.
    Summary { passed: usize, failed: usize, left_out: usize },
    /// An array that `tk run` shows.
    Array(Array<'a>),
    /// The output of `tk check --emit` for a file.
    Emitted { file: &'a str, form: &'static str, text: &'a str },
    /// The output of the kernel of `tk run`.
    Printed { text: &'a str },
    /// A file that `tk fmt` has rewritten, or that `tk fmt --check` would; with the text if it is standard input.
    Formatted { file: &'a str, text: Option<&'a str> },
    /// A kernel that `tk build` has compiled for a target.
    #[cfg_attr(not(feature = "llvm"), allow(dead_code, reason = "without LLVM nothing is built"))]
    Built(Built<'a>),
    /// A kernel after a pass of code generation.
    #[cfg_attr(not(feature = "llvm"), allow(dead_code, reason = "without LLVM nothing is built"))]
    Dump(Dump<'a>),
    /// The output of `tk layout`.
    #[cfg_attr(not(feature = "llvm"), allow(dead_code, reason = "without the compiler there are no layouts"))]
    Layout {
        layout: &'a str,
        registers: usize,
        lanes: u32,
        warps: u32,
        copies: u64,
        vector: &'a [u32],
        access_bytes: u32,
        row_major_ways: u32,
        swizzled_ways: Option<u32>,
        rendered: &'a str,
    },
    /// The contents that `tk inspect` found in a file.
    Manifest { file: &'a str, manifest: &'a tk_bundle::Manifest },
    /// A component that `tk doctor` searched.
    Tool {
        name: &'a str,
        version: Option<&'a str>,
        path: Option<&'a str>,
        /// The origin of the path: a variable of the environment, or the place searched.
        from: Option<&'a str>,
        works: bool,
        message: &'a str,
    },
    /// The compile cache.
    #[cfg_attr(not(feature = "llvm"), allow(dead_code, reason = "without LLVM there is no cache"))]
    Cache(Cache<'a>),
    /// A launch that `tk bench` measured.
    Benched(Benched<'a>),
    /// The predicted cost of a kernel, and of each line.
    #[cfg_attr(not(feature = "llvm"), allow(dead_code, reason = "without the compiler nothing is predicted"))]
    Profiled(Profiled<'a>),
    #[cfg_attr(not(feature = "llvm"), allow(dead_code, reason = "without the compiler nothing is predicted"))]
    ProfiledLine(ProfiledLine<'a>),
    /// The measured cost of a kernel, and of each line.
    #[cfg_attr(not(feature = "llvm"), allow(dead_code, reason = "without the compiler nothing is measured"))]
    Measured(Measured<'a>),
    #[cfg_attr(not(feature = "llvm"), allow(dead_code, reason = "without the compiler nothing is measured"))]
    MeasuredLine(MeasuredLine<'a>),
    /// A loop that clock stamps measured, or the kernel.
    #[cfg_attr(not(feature = "llvm"), allow(dead_code, reason = "without the compiler nothing is measured"))]
    StampedLine(StampedLine<'a>),
    /// A member, or the defaults, in the order of their predicted times.
    #[cfg_attr(not(feature = "llvm"), allow(dead_code, reason = "without the compiler nothing is predicted"))]
    Predicted(Predicted<'a>),
    /// A member that `tk tune` has measured or left out.
    Trial(TrialLine<'a>),
    /// The end of `tk tune`.
    Tuned(Tuned<'a>),
    /// A puzzle of `tk learn`; `state` is `done`, `tried` or `open`.
    Puzzle { number: usize, name: &'a str, title: &'a str, state: &'static str, file: &'a str },
    /// A text of `tk learn`: `what` is `task`, `hint`, `solution` or `picture`.
    Lesson { what: &'static str, text: &'a str },
    /// A fact that is no mistake.
    Note { message: &'a str },
    /// The end of a round of `--watch`.
    Watching { files: Vec<String> },
    /// Why the command could not do what it was asked to.
    Failure { message: &'a str, exit_code: u8 },
}

/// A launch that `tk bench` measured.
#[derive(Serialize)]
pub struct Benched<'a> {
    pub target: &'a str,
    /// The text of `--compare`; empty without one.
    pub variant: &'a str,
    /// What a tuning record or the cost model chose.
    pub tuned: Option<&'a str>,
    pub device: &'a str,
    /// The swept numbers.
    pub point: std::collections::BTreeMap<String, i64>,
    /// None where caches cannot be emptied.
    pub cold: Option<Timing>,
    pub warm: Timing,
    #[serde(flatten)]
    pub rates: Rates,
}

/// The reasons of a predicted time; all zero where there is none.
#[derive(Default, Serialize)]
#[cfg_attr(not(feature = "llvm"), allow(dead_code, reason = "without the compiler nothing is predicted"))]
pub struct Reasons {
    /// What each limit alone would allow, in microseconds.
    pub parts: std::collections::BTreeMap<&'static str, f64>,
    pub registers: u32,
    pub spilled: u32,
    pub shared_bytes: u32,
    pub blocks_per_sm: u32,
    pub waves: f64,
    /// Whether some of it depends on data.
    pub is_guess: bool,
}

/// The sentence about a launch that runs nothing.
#[cfg(feature = "llvm")]
pub fn no_program(kernel: &str, grid: [u32; 3]) -> String {
    format!("no program of `{kernel}` runs: its grid is {} x {} x {}", grid[0], grid[1], grid[2])
}

#[cfg(feature = "llvm")]
impl From<&tk_runtime::compile::Estimate> for Reasons {
    fn from(e: &tk_runtime::compile::Estimate) -> Reasons {
        let [registers, spilled] = e.registers;
        Reasons {
            parts: e.parts.iter().copied().collect(),
            registers,
            spilled,
            shared_bytes: e.shared_bytes,
            blocks_per_sm: e.blocks_per_sm,
            waves: e.waves,
            is_guess: e.is_guess,
        }
    }
}

/// The predicted cost of a kernel.
#[derive(Serialize)]
#[cfg_attr(not(feature = "llvm"), allow(dead_code, reason = "without the compiler nothing is predicted"))]
pub struct Profiled<'a> {
    pub kernel: &'a str,
    pub device: &'a str,
    /// The member of its `tune` list, and who chose it; none for the defaults.
    pub member: Option<String>,
    pub us: f64,
    #[serde(flatten)]
    pub reasons: Reasons,
}

/// The predicted cost of a source line.
#[derive(Serialize)]
#[cfg_attr(not(feature = "llvm"), allow(dead_code, reason = "without the compiler nothing is predicted"))]
pub struct ProfiledLine<'a> {
    pub file: &'a str,
    pub line: usize,
    /// Its share of the time of `unit`.
    pub share: f64,
    /// The unit that bounds the kernel, or works most.
    pub unit: &'static str,
    /// The time of each unit, in microseconds.
    pub parts: std::collections::BTreeMap<&'static str, f64>,
    pub instructions: f64,
    pub bytes: f64,
    /// Those of them that the program asked for: the rest is of sectors and lines that are read for a part.
    pub needed: f64,
    /// Bytes that the narrowest access of a lane to device memory moves; 0 without one.
    pub lane_bytes: u32,
    /// Whether TMA moves some of the bytes.
    pub tensor_copies: bool,
    /// Cycles of shared memory that bank conflicts add.
    pub conflicts: f64,
    pub registers: u32,
}

/// A loop that clock stamps measured; the kernel first.
#[derive(Serialize)]
#[cfg_attr(not(feature = "llvm"), allow(dead_code, reason = "without the compiler nothing is measured"))]
pub struct StampedLine<'a> {
    pub file: &'a str,
    pub line: usize,
    /// How many loops are around it, and the kernel.
    pub depth: u32,
    /// Microseconds in a program, on average.
    pub us: f64,
    /// The same without the loops inside.
    pub own_us: f64,
    /// Its part of the time of a program.
    pub share: f64,
    /// Programs that were measured.
    pub programs: u64,
}

/// A launch that a profiler measured.
#[derive(Serialize)]
#[cfg_attr(not(feature = "llvm"), allow(dead_code, reason = "without the compiler nothing is measured"))]
pub struct Measured<'a> {
    pub kernel: &'a str,
    pub device: &'a str,
    pub us: f64,
    pub registers: f64,
    pub shared_bytes: f64,
    /// The part of the warps that a multiprocessor can have.
    pub occupancy: f64,
    /// The part of the peak of each level.
    pub peaks: std::collections::BTreeMap<&'static str, f64>,
}

/// The samples of a source line.
#[derive(Serialize)]
#[cfg_attr(not(feature = "llvm"), allow(dead_code, reason = "without the compiler nothing is measured"))]
pub struct MeasuredLine<'a> {
    pub file: &'a str,
    pub line: usize,
    /// Its part of the samples of all lines.
    pub share: f64,
    pub samples: f64,
    /// Instructions of warps.
    pub instructions: f64,
    /// The parts of its samples in which a warp waited for something.
    pub reasons: std::collections::BTreeMap<&'a str, f64>,
}

/// The predicted time of a member.
#[derive(Serialize)]
#[cfg_attr(not(feature = "llvm"), allow(dead_code, reason = "without the compiler nothing is predicted"))]
pub struct Predicted<'a> {
    /// The swept numbers.
    pub point: std::collections::BTreeMap<String, i64>,
    /// Empty for the defaults.
    pub member: &'a str,
    /// Null if it cannot be compiled or does not fit.
    pub us: Option<f64>,
    #[serde(flatten)]
    pub reasons: Reasons,
    /// Bytes of all workspaces.
    pub workspace_bytes: u64,
    /// Whether this is what a launch uses.
    pub chosen: bool,
}

/// A member that `tk tune` has measured or left out.
#[derive(Serialize)]
pub struct TrialLine<'a> {
    pub member: &'a str,
    /// `measured`, `slow` (stopped early) or `left out`.
    pub result: &'static str,
    pub ms: Option<f64>,
    pub why: Option<&'a str>,
}

/// The end of `tk tune`.
#[derive(Serialize)]
pub struct Tuned<'a> {
    pub member: &'a str,
    pub ms: f64,
    pub default_ms: f64,
    pub measured: usize,
    pub seconds: f64,
    /// The file that was written; null if the defaults are fastest.
    pub records: Option<&'a str>,
}

/// The times of several launches.
#[derive(Serialize)]
pub struct Timing {
    pub median_ms: f64,
    pub least_ms: f64,
    pub p10_ms: f64,
    pub p90_ms: f64,
    pub runs: usize,
}

/// What a launch does in a second.
#[derive(Serialize)]
pub struct Rates {
    /// Bytes of the arguments that it reads and writes, each once.
    pub bytes: f64,
    pub operations: f64,
    pub gb_per_s: f64,
    pub tflop_per_s: f64,
    /// What bounds it: `memory`, `matrix` or `float`; null on a GPU whose numbers are not known.
    pub bound: Option<&'static str>,
    pub roofline_ms: Option<f64>,
    pub roofline_share: Option<f64>,
    /// Whether some of it depends on data.
    pub is_guess: bool,
}

/// A diagnostic.
#[derive(Serialize)]
pub struct Diagnostic<'a> {
    code: &'static str,
    severity: &'static str,
    message: &'a str,
    primary: Place<'a>,
    labels: Vec<Place<'a>>,
    notes: &'a [String],
    fixes: Vec<Correction<'a>>,
    rendered: String,
}

/// A range of a file, with a text about it.
#[derive(Serialize)]
pub struct Place<'a> {
    #[serde(flatten)]
    range: Range<'a>,
    text: &'a str,
}

/// A range of a file. The end is the first position after it.
#[derive(Serialize)]
pub struct Range<'a> {
    file: &'a str,
    byte_start: usize,
    byte_end: usize,
    line_start: usize,
    column_start: usize,
    line_end: usize,
    column_end: usize,
}

/// A fix: all of its edits together.
#[derive(Serialize)]
pub struct Correction<'a> {
    title: &'a str,
    edits: Vec<Edit<'a>>,
}

/// The text of the range is replaced.
#[derive(Serialize)]
pub struct Edit<'a> {
    #[serde(flatten)]
    range: Range<'a>,
    replacement: &'a str,
}

/// The result of a test.
#[derive(Serialize)]
pub struct Test<'a> {
    pub file: &'a str,
    /// `None` stands for all tests of a file that does not check.
    pub name: Option<&'a str>,
    pub outcome: Ended,
    /// The position of its name.
    pub place: Option<Range<'a>>,
    /// Its output.
    pub printed: &'a str,
    pub diagnostics: Vec<Diagnostic<'a>>,
}

/// The result of a test, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// Nothing was wrong.
    Passed,
    /// Something was.
    Failed,
    /// It needs a device that is not there.
    LeftOut,
}

/// A kernel that was compiled.
#[derive(Serialize)]
#[cfg_attr(not(feature = "llvm"), allow(dead_code, reason = "without LLVM nothing is built"))]
pub struct Built<'a> {
    /// With the values of its compile-time parameters: `add[T=f16, BLOCK=1024]`.
    pub kernel: &'a str,
    pub target: &'static str,
    /// `aligned` or `general`: for which arguments.
    pub variant: &'a str,
    /// The names of its files in the folder.
    pub files: &'a [String],
    pub shared_bytes: Option<u32>,
    /// `None` when no machine code was made; so are those that follow.
    pub registers: Option<u32>,
    pub spill_store_bytes: Option<u32>,
    pub spill_load_bytes: Option<u32>,
    pub binary_bytes: Option<usize>,
}

/// A kernel after a pass.
#[derive(Serialize)]
#[cfg_attr(not(feature = "llvm"), allow(dead_code, reason = "without LLVM nothing is built"))]
pub struct Dump<'a> {
    /// With its values and variant.
    pub kernel: &'a str,
    pub target: &'a str,
    pub pass: &'a str,
    pub text: &'a str,
}

/// The compile cache.
#[derive(Serialize)]
#[cfg_attr(not(feature = "llvm"), allow(dead_code, reason = "without LLVM there is no cache"))]
pub struct Cache<'a> {
    /// `None` when there is none.
    pub folder: Option<&'a str>,
    pub entries: u64,
    pub bytes: u64,
    pub limit: u64,
    /// Whether entries can be written.
    pub works: bool,
    pub message: &'a str,
}

/// An array that a kernel may have changed.
#[derive(Serialize)]
pub struct Array<'a> {
    pub name: &'a str,
    pub dtype: &'static str,
    pub shape: &'a [usize],
    /// The first elements, as the language writes them: JSON has no infinities and no 64-bit integers.
    pub first: &'a [String],
}

impl<'a> Diagnostic<'a> {
    /// The object of a diagnostic.
    pub fn new(
        sources: &'a SourceMap,
        renderer: &mut Renderer<'a>,
        d: &'a tk_syntax::Diagnostic,
        color: bool,
    ) -> Diagnostic<'a> {
        Diagnostic {
            code: d.code.0,
            severity: severity(d.severity),
            message: &d.message,
            primary: Place::new(sources, &d.primary),
            labels: d.secondary.iter().map(|l| Place::new(sources, l)).collect(),
            notes: &d.notes,
            fixes: d.fixes.iter().map(|f| Correction::new(sources, f)).collect(),
            rendered: renderer.render(d, color),
        }
    }
}

impl<'a> Place<'a> {
    fn new(sources: &'a SourceMap, label: &'a Label) -> Place<'a> {
        Place { range: Range::new(sources, label.span), text: &label.text }
    }
}

impl<'a> Range<'a> {
    /// The range of a span.
    pub fn new(sources: &'a SourceMap, span: Span) -> Range<'a> {
        let length = sources.get(span.file).map_or(0, |s| s.text.len());
        let start = (span.start as usize).min(length);
        let end = (span.end as usize).clamp(start, length);
        let at = |offset: usize| sources.position(Span::new(span.file, offset, offset));
        let (file, line_start, column_start) = at(start);
        let (_, line_end, column_end) = at(end);
        Range { file, byte_start: start, byte_end: end, line_start, column_start, line_end, column_end }
    }
}

impl<'a> Correction<'a> {
    fn new(sources: &'a SourceMap, fix: &'a Fix) -> Correction<'a> {
        let edit =
            |e: &'a tk_syntax::Replacement| Edit { range: Range::new(sources, e.span), replacement: &e.text };
        Correction { title: &fix.title, edits: fix.edits.iter().map(edit).collect() }
    }
}

/// `path:line:column: error[E0304]: message`
pub fn short(sources: &SourceMap, d: &tk_syntax::Diagnostic) -> String {
    let message = d.message.split_whitespace().collect::<Vec<_>>().join(" ");
    let message = escaped(&message);
    if d.primary.span.is_nowhere() {
        return format!("{}[{}]: {message}", severity(d.severity), d.code);
    }
    let (file, line, column) = sources.position(d.primary.span);
    let file = escaped_name(file);
    format!("{file}:{line}:{column}: {}[{}]: {message}", severity(d.severity), d.code)
}

/// The name of the main file of a program.
pub fn main_file(sources: &SourceMap) -> &str {
    sources.get(FileId(0)).map_or("", |s| &s.name)
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}
