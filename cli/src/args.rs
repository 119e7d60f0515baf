//! The command line of `tk` and its help.

mod built;
mod learn;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use built::BuildArgs;
#[cfg(feature = "llvm")]
pub use built::BuildForm;
pub use learn::{LearnAction, LearnArgs};

/// Checks, explains and runs GPU kernels written in the `.tk` language.
#[derive(Debug, Parser)]
#[command(name = "tk", version, arg_required_else_help = true)]
pub struct Cli {
    /// When to color messages
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    pub color: Color,
    /// Message format; json replaces everything on standard output
    #[arg(long, global = true, value_enum, default_value_t = MessageFormat::Human, value_name = "FORMAT")]
    pub message_format: MessageFormat,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// When messages are colored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// How messages look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MessageFormat {
    /// With the source, for a terminal
    Human,
    /// One line each
    Short,
    /// One JSON object a line, on standard output
    Json,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Check files, without running anything
    Check(CheckArgs),
    /// Run a kernel on the given arrays and numbers
    Run(RunArgs),
    /// Run the `test` blocks of files
    Test(TestArgs),
    /// Compile kernels to machine code
    Build(BuildArgs),
    /// Show the contents of a bundle or manifest
    Inspect(InspectArgs),
    /// Print or draw a tile layout and its access cost
    Layout(LayoutArgs),
    /// Measure how long a kernel takes, and what share of the machine that is
    Bench(BenchArgs),
    /// Find the fastest values of a kernel's compile-time parameters, and keep them
    Tune(TuneArgs),
    /// Show which member of a `tune` list a launch uses, and the predicted times
    ExplainLaunch(ExplainLaunchArgs),
    /// Show where the time of a kernel goes, by source line, as the cost model predicts it
    Profile(ProfileArgs),
    /// Format source files
    Fmt(FmtArgs),
    /// Write the reference of source files: signatures and doc comments
    Doc(DocArgs),
    /// Learn the language with puzzles: small kernels to complete
    Learn(LearnArgs),
    /// Explain a diagnostic code, such as E0304, or an operation, such as load
    Explain(ExplainArgs),
    /// Show what is installed: compiler, assembler, GPU driver, cache
    Doctor,
    /// Install what compiling for NVIDIA needs: its assembler, for this user
    Setup(SetupArgs),
    /// Show or empty the cache of compiled kernels
    Cache(CacheArgs),
    /// Serve an editor over standard input and output (the language server protocol)
    Lsp(LspArgs),
    /// Serve a debugger over standard input and output (the debug adapter protocol)
    Dap(DapArgs),
    /// Print the completion script of a shell
    Completions(CompletionsArgs),
    /// Write the manual pages to a folder
    Man(ManArgs),
}

/// Where source text comes from besides files.
#[derive(Clone, Debug, Args)]
pub struct InputArgs {
    /// Name of the program on standard input (`-`): shown in messages; imports are resolved next to it
    #[arg(long, value_name = "PATH")]
    pub stdin_name: Option<String>,
}

/// `tk check`
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Files to check, or folders of `.tk` files; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<String>,
    /// Check again when a file that was read changes
    #[arg(long)]
    pub watch: bool,
    /// Where text comes from.
    #[command(flatten)]
    pub input: InputArgs,
    /// Print an intermediate form to standard output
    #[arg(long, value_enum, value_name = "FORM")]
    pub emit: Option<Emit>,
    /// Emit only this kernel (with `--emit tile`)
    #[arg(long, value_name = "NAME", requires = "emit")]
    pub kernel: Option<String>,
    /// Value of a compile-time parameter (with `--emit tile`): a number, true, false, a type, a function or a lambda
    #[arg(long = "set", value_name = "NAME=VALUE", requires = "emit")]
    pub sets: Vec<String>,
}

/// The forms that `tk check --emit` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Emit {
    /// The syntax tree
    Ast,
    /// The typed program
    Hir,
    /// The tile IR of the kernels, specialized and optimised
    Tile,
}

/// Where kernels run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DeviceName {
    /// The interpreter, on all cores
    Cpu,
    /// The code for GPUs, simulated lane by lane: warps of 32 lanes and the instructions of Hopper
    Sim,
    /// The same with warps of 64 lanes and the matrix instructions of CDNA
    Sim64,
    /// The same with warps of 32 lanes and the matrix instructions of RDNA
    SimWmma,
    /// The same as sim, with the instructions of RTX 50: no products of four warps
    SimBlackwell,
    /// The same as sim64, with the matrix instructions of CDNA4
    SimCdna4,
    /// The same as sim-wmma, with the matrix instructions of RDNA4
    SimRdna4,
    /// NVIDIA GPUs
    Cuda,
    /// AMD GPUs
    Hip,
}

impl DeviceName {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            DeviceName::Cpu => "cpu",
            DeviceName::Sim => "sim",
            DeviceName::Sim64 => "sim64",
            DeviceName::SimWmma => "sim-wmma",
            DeviceName::SimBlackwell => "sim-blackwell",
            DeviceName::SimCdna4 => "sim-cdna4",
            DeviceName::SimRdna4 => "sim-rdna4",
            DeviceName::Cuda => "cuda",
            DeviceName::Hip => "hip",
        }
    }
}

const VALUE_HELP: &str = "\
Values:
  3   -1.5   inf   true        a number or a bool
  data.npy                     an array in NumPy's file format
  model.safetensors#KEY        a tensor of a safetensors file; without #KEY the only one
  zeros:f16[512,512]           an array of zeros; also ones:
  full:f32[64]@0.5             an array filled with a value
  randn:f16[512,512]@SEED      normally distributed numbers, the same for the same seed
  arange:i32[10]               0, 1, 2, ..
  empty:f32[64]                uninitialized: for results, see --checked
  none                         an absent optional

Without --out, a short summary of every array that the kernel may change is printed.";

/// `tk run`
#[derive(Debug, Args)]
#[command(after_help = VALUE_HELP)]
pub struct RunArgs {
    /// The file, and which of its kernels if it has several; `-` is standard input
    #[arg(value_name = "FILE[::KERNEL]")]
    pub target: String,
    /// Where text comes from.
    #[command(flatten)]
    pub input: InputArgs,
    /// Arguments of the kernel, in any order
    #[arg(value_name = "NAME=VALUE")]
    pub args: Vec<String>,
    /// Value of a compile-time parameter: a number, true, false, a type, a function or a lambda
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub sets: Vec<String>,
    /// Where to run
    #[arg(long, value_enum, default_value_t = DeviceName::Cpu, value_name = "DEVICE")]
    pub device: DeviceName,
    /// Abort after SECONDS
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// Detect races, uninitialized reads and offset overflow; slower
    #[arg(long)]
    pub checked: bool,
    /// Write an array that the kernel may change to a file in NumPy's format
    #[arg(long = "out", value_name = "NAME=FILE")]
    pub outs: Vec<String>,
    /// Write the tile IR after every pass to this folder
    #[arg(long, value_name = "DIR")]
    pub dump: Option<PathBuf>,
}

const BENCH_HELP: &str = "\
Arguments are those of `tk run`. A range or a list of whole numbers is swept, and its name stands for the number in
the extents of other arguments:
  n=2^10..2^28 x=randn:f32[n] y=empty:f32[n]     1024, 2048, 4096, ..
  m=64..512:64                                   in steps
  k=100,200,300                                  a list

Times are those of the device, between two events. \"cold\": its caches were emptied before each launch; \"warm\": the
launch before left them. Bytes are those of the arguments that the kernel reads and writes, each once; operations are
those of its matrix products, or on floats if it has none. A rate that depends on loaded data is marked by ~.";

/// `tk bench`
#[derive(Debug, Args)]
#[command(after_help = BENCH_HELP)]
pub struct BenchArgs {
    /// The file, and which of its kernels if it has several; `-` is standard input
    #[arg(value_name = "FILE[::KERNEL]")]
    pub target: String,
    /// Where text comes from.
    #[command(flatten)]
    pub input: InputArgs,
    /// Arguments of the kernel, in any order, and swept numbers
    #[arg(value_name = "NAME=VALUE")]
    pub args: Vec<String>,
    /// Value of a compile-time parameter: a number, true, false, a type, a function or a lambda
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub sets: Vec<String>,
    /// Where to run; the simulators have no clock
    #[arg(long, value_enum, default_value_t = DeviceName::Cuda, value_name = "DEVICE")]
    pub device: DeviceName,
    /// Measure this too: values such as BLOCK=1024,warps=8, or another file; may be repeated
    #[arg(long, value_name = "VALUES|FILE[::KERNEL]")]
    pub compare: Vec<String>,
    /// How long each measurement goes on
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "0.1")]
    pub time: Duration,
    /// Abort if the first launch takes longer than SECONDS
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// Print an object for each measurement; the same as --message-format json
    #[arg(long)]
    pub json: bool,
    /// Write a picture: the time over the swept number, or the roofline of the machine
    #[arg(long, value_name = "OUT.svg")]
    pub plot: Option<PathBuf>,
}

const TUNE_HELP: &str = "\
Measures the members of the kernel's `tune` list, or multiples of its tile sizes and other numbers of warps if it has
none, without those that are predicted to take 4 times as long as the fastest. Those come first that are predicted to be fast. A member counts only if its results are those of the defaults. The fastest is written to NAME.tuning.json beside
NAME.tk, where `tk run`, `tk test`, `tk bench` and programs that compile at a launch find it. Swept numbers are those of `tk bench`:
each of their points gets a record.";

/// `tk tune`
#[derive(Debug, Args)]
#[command(after_help = TUNE_HELP)]
pub struct TuneArgs {
    /// The file, and which of its kernels if it has several
    #[arg(value_name = "FILE[::KERNEL]")]
    pub target: String,
    /// Where text comes from.
    #[command(flatten)]
    pub input: InputArgs,
    /// Arguments of the kernel, in any order, and swept numbers
    #[arg(value_name = "NAME=VALUE")]
    pub args: Vec<String>,
    /// Value of a compile-time parameter, which is not tuned then
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub sets: Vec<String>,
    /// Where to run; the simulators have no clock
    #[arg(long, value_enum, default_value_t = DeviceName::Cuda, value_name = "DEVICE")]
    pub device: DeviceName,
    /// Stop measuring after SECONDS, for each point
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "60")]
    pub budget: Duration,
    /// Skip a member whose first launch takes longer than SECONDS
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "2")]
    pub timeout: Duration,
    /// How long the launches of a member go on
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "0.06")]
    pub time: Duration,
    /// Processes that compile
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub jobs: Option<u16>,
    /// Be one of the processes that the command starts.
    #[arg(long, hide = true)]
    pub worker: bool,
    /// Be one that compiles.
    #[arg(long, hide = true)]
    pub compiles: bool,
}

/// `tk explain-launch`
#[derive(Debug, Args)]
#[cfg_attr(
    not(feature = "llvm"),
    allow(dead_code, reason = "without the compiler, only the help reads them")
)]
pub struct ExplainLaunchArgs {
    /// The file, and which of its kernels if it has several; `-` is standard input
    #[arg(value_name = "FILE[::KERNEL]")]
    pub target: String,
    /// Where text comes from.
    #[command(flatten)]
    pub input: InputArgs,
    /// Arguments of the kernel, in any order, and swept numbers as in `tk bench`
    #[arg(value_name = "NAME=VALUE")]
    pub args: Vec<String>,
    /// Value of a compile-time parameter, which is not chosen then
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub sets: Vec<String>,
    /// The GPU.
    #[command(flatten)]
    pub gpu: GpuArgs,
    /// Show so many members
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub most: usize,
}

/// `tk profile`
#[derive(Clone, Debug, Args)]
#[cfg_attr(
    not(feature = "llvm"),
    allow(dead_code, reason = "without the compiler, only the help reads them")
)]
pub struct ProfileArgs {
    /// The file, and which of its kernels if it has several; `-` is standard input
    #[arg(value_name = "FILE[::KERNEL]")]
    pub target: String,
    /// Where text comes from.
    #[command(flatten)]
    pub input: InputArgs,
    /// Arguments of the kernel, in any order
    #[arg(value_name = "NAME=VALUE")]
    pub args: Vec<String>,
    /// Value of a compile-time parameter: a number, true, false, a type, a function or a lambda
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub sets: Vec<String>,
    /// Measure on this device instead of predicting: lines with NVIDIA's Nsight Compute (`ncu`), loops without
    #[arg(long, value_name = "DEVICE", conflicts_with_all = ["target_gpu", "name"])]
    pub device: Option<DeviceName>,
    /// Measure loops by clock stamps in the kernel, though there is a profiler
    #[arg(long, requires = "device")]
    pub stamps: bool,
    /// Abort a launch that is measured after SECONDS
    #[arg(long, value_name = "SECONDS", value_parser = seconds, requires = "device")]
    pub timeout: Option<Duration>,
    /// The GPU.
    #[command(flatten)]
    pub gpu: GpuArgs,
}

/// A GPU that need not be there.
#[derive(Clone, Debug, Args)]
#[cfg_attr(
    not(feature = "llvm"),
    allow(dead_code, reason = "without the compiler, only the help reads them")
)]
pub struct GpuArgs {
    /// Target GPU, that of `--gpu` or sm_90a if it is not given; no GPU is needed
    #[arg(long = "for", value_name = "TARGET")]
    pub target_gpu: Option<String>,
    /// The name of the GPU as its driver reports it; otherwise the usual one of the target
    #[arg(long = "gpu", value_name = "NAME")]
    pub name: Option<String>,
}

/// `tk test`
#[derive(Debug, Args)]
pub struct TestArgs {
    /// Files whose tests to run, or folders of `.tk` files; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<String>,
    /// Disable checked mode: faster, but races and similar faults are not reported
    #[arg(long)]
    pub unchecked: bool,
    /// Run again when a source file that was read changes
    #[arg(long)]
    pub watch: bool,
    /// Where text comes from.
    #[command(flatten)]
    pub input: InputArgs,
    /// Run only tests whose name contains this text
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
    /// Run only the test whose name is the text of `--filter`
    #[arg(long, requires = "filter")]
    pub exact: bool,
    /// Abort a test after SECONDS: 120 on the CPU unless given, and no limit elsewhere
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// Where to run
    #[arg(long, value_enum, default_value_t = DeviceName::Cpu, value_name = "DEVICE")]
    pub device: DeviceName,
    /// Skip the tests of a missing device instead of failing
    #[arg(long)]
    pub allow_missing_device: bool,
}

/// `tk inspect`
#[derive(Debug, Args)]
pub struct InspectArgs {
    /// A bundle (`.tkb`) or a manifest (`.json`)
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Write an HTML page that shows the kernels line by line; a bundle built with --listing has the source
    /// and all intermediate forms
    #[arg(long, value_name = "OUT")]
    pub html: Option<PathBuf>,
}

const LAYOUT_HELP: &str = "\
Layouts:
  blocked(8, 4)             each thread holds 8 neighbours of a row, on 4 warps
  blocked(1, 4, columns)    of a column
  acc(m16n8k16, 4)          the accumulator of a matrix instruction, on 4 warps; also m16n8k8,
                            m16n8k32, m8n8k4, with --target gfx942 32x32x8 and 16x16x16
  a(m16n8k16, 4)            its left operand; b(..): its right one
  '[3, 3]: register [[0, 1]], lane [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp []'
                            as in the output of --emit layout: extents as logarithms, then for each bit the
                            element that it adds";

/// `tk layout`
#[derive(Debug, Args)]
#[command(after_help = LAYOUT_HELP)]
#[cfg_attr(
    not(feature = "llvm"),
    allow(dead_code, reason = "without the compiler, only the help reads them")
)]
pub struct LayoutArgs {
    /// The layout
    #[arg(value_name = "LAYOUT")]
    pub layout: String,
    /// The shape of the tile: 64x128
    #[arg(value_name = "SHAPE")]
    pub shape: String,
    /// The type of the elements
    #[arg(long, default_value = "f16", value_name = "TYPE")]
    pub dtype: String,
    /// Target GPU
    #[arg(long, default_value = "sm_90a", value_name = "TARGET")]
    pub target: String,
    /// Write the picture to this file
    #[arg(short = 'o', long = "out", value_name = "FILE.svg")]
    pub out: Option<PathBuf>,
}

/// `tk setup`
#[derive(Debug, Args)]
#[cfg_attr(not(feature = "llvm"), allow(dead_code, reason = "without LLVM there is no use for it"))]
pub struct SetupArgs {
    /// What to install.
    #[command(subcommand)]
    pub tool: SetupTool,
}

/// What `tk setup` can install.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Subcommand)]
pub enum SetupTool {
    /// NVIDIA's assembler, with `pip`, from the package index that it uses
    Ptxas,
}

/// `tk cache`
#[derive(Debug, Args)]
#[cfg_attr(not(feature = "llvm"), allow(dead_code, reason = "without LLVM there is no cache"))]
pub struct CacheArgs {
    /// What to do with it.
    #[command(subcommand)]
    pub action: CacheAction,
}

/// What `tk cache` can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Subcommand)]
pub enum CacheAction {
    /// Show its location and size
    Info,
    /// Remove everything in it
    Clear,
}

/// `tk fmt`
#[derive(Debug, Args)]
pub struct FmtArgs {
    /// Files to format, or folders of `.tk` files; `-` reads standard input and prints the result
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<String>,
    /// Write nothing; print what would change, and fail if anything would
    #[arg(long)]
    pub check: bool,
    /// Where text comes from.
    #[command(flatten)]
    pub input: InputArgs,
}

/// `tk doc`
#[derive(Debug, Args)]
pub struct DocArgs {
    /// Files, folders of `.tk` files, `std` for the standard library, or a module of it such as `std::math`
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<String>,
    /// Write a file for each module to this folder, created if missing, instead of printing
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Pages to read, or data
    #[arg(long, value_enum, default_value_t = DocFormat::Markdown, value_name = "FORMAT")]
    pub format: DocFormat,
    /// Where text comes from.
    #[command(flatten)]
    pub input: InputArgs,
}

/// The form of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DocFormat {
    /// Markdown, with links between items
    Markdown,
    /// JSON: a list of modules
    Json,
}

/// `tk explain`
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// A code from a message, or the name of an operation
    #[arg(value_name = "CODE|OPERATION")]
    pub topic: String,
}

/// `tk dap`
#[derive(Debug, Args)]
pub struct DapArgs {
    /// Accepted because editors pass it; there is no other transport
    #[arg(long)]
    pub stdio: bool,
}

/// `tk lsp`
#[derive(Debug, Args)]
pub struct LspArgs {
    /// Accepted because editors pass it; there is no other transport
    #[arg(long)]
    pub stdio: bool,
}

/// `tk completions`
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

/// `tk man`
#[derive(Debug, Args)]
pub struct ManArgs {
    /// The output folder, created if missing
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

/// A positive number of seconds.
fn seconds(text: &str) -> Result<Duration, String> {
    let parsed = text.parse::<f64>().ok().filter(|s| *s > 0.0);
    parsed
        .and_then(|s| Duration::try_from_secs_f64(s).ok())
        .ok_or_else(|| "a positive number of seconds is needed".to_string())
}
