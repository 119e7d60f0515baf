//! The options of `tk build`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::InputArgs;

const BUILD_HELP: &str = "\
Without --set, the values of compile-time parameters are their defaults or, where a default uses the
arguments of a launch, those that `export` names. --set also takes the options of `launch(..)`: warps=8.

Files are named after the kernel, its values and the target: softmax.T=f16.BLOCK=1024.sm_90a.cubin.
Those of a whole file have its name: softmax.tkb (bundle), softmax.json (manifest), softmax.h and
softmax.c (header).";

/// `tk build`
#[derive(Clone, Debug, Args)]
#[command(after_help = BUILD_HELP)]
#[cfg_attr(not(feature = "llvm"), allow(dead_code, reason = "without LLVM, only the help reads them"))]
pub struct BuildArgs {
    /// The file, and which of its kernels if not all; `-` is standard input
    #[arg(value_name = "FILE[::KERNEL]")]
    pub source: String,
    /// Where text comes from.
    #[command(flatten)]
    pub input: InputArgs,
    /// Target GPU, such as sm_90a or gfx942; may be repeated
    #[arg(long = "target", required = true, value_name = "TARGET")]
    pub targets: Vec<String>,
    /// Value of a compile-time parameter: a number, true, false, a type, a function or a lambda
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub sets: Vec<String>,
    /// Outputs, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = BuildForm::DEFAULT, value_name = "FORM")]
    pub emit: Vec<BuildForm>,
    /// Print each kernel after this pass of code generation, or after `all` of them; may be repeated
    #[arg(long, value_name = "PASS")]
    pub dump_after: Vec<String>,
    /// The most members of a `tune` list that a kernel is built with beside its defaults; a launch chooses by its key
    #[arg(long, value_name = "N", default_value_t = tk_runtime::choice::SHIPPED)]
    pub members: usize,
    /// The names of functions in C begin with NAME and `_`: `NAME_softmax`
    #[arg(long, value_name = "NAME", default_value = "tk")]
    pub prefix: String,
    /// Put the binaries of a C source into NAME.c.bin, which GCC and Clang include: it compiles faster than text
    #[arg(long)]
    pub incbin: bool,
    /// Leave out the PTX that NVIDIA GPUs load which are newer than the targets
    #[arg(long)]
    pub no_ptx: bool,
    /// Put the source and all intermediate forms into the bundle, for `tk inspect --html`
    #[arg(long)]
    pub listing: bool,
    /// The output folder, created if missing
    #[arg(short = 'o', long = "out", value_name = "DIR")]
    pub out: PathBuf,
}

/// What `tk build` writes of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BuildForm {
    /// Tile IR, specialized and optimised
    Tile,
    /// Laid-out IR: which thread owns each element
    Layout,
    /// Pictures of these layouts
    LayoutSvg,
    /// Scheduled IR: shared memory, barriers, pipelining
    Sched,
    /// LLVM IR
    Llvm,
    /// PTX, for NVIDIA
    Ptx,
    /// Assembly, for AMD
    Gcn,
    /// Machine code, for NVIDIA
    Cubin,
    /// Machine code, for AMD
    Hsaco,
    /// Resource usage and parameters, as JSON
    Report,
    /// All kernels of the file in one bundle, for `tk inspect` and for programs in Rust
    Bundle,
    /// The kernels and their launch contracts, as JSON, with the binaries next to it
    Manifest,
    /// A C header and a C source file that holds the binaries and launches them
    Header,
    /// The same, and functions that frameworks load with TVM-FFI
    TvmFfi,
}

impl BuildForm {
    /// The default outputs: binaries, in the form of each target, and their resource usage.
    pub const DEFAULT: [BuildForm; 3] = [BuildForm::Cubin, BuildForm::Hsaco, BuildForm::Report];
}
