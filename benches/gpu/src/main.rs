//! `tk-gpu-bench`: what kernels of this project reach on an NVIDIA GPU, as one JSON file.
//!
//! May assume a checkout beside it, for the kernels are its examples. Guarantees that a kernel is timed only after its
//! results were compared with a reference, that one work that fails leaves the others, and that the file is complete
//! after each of them. Exit codes: 1 something failed that is no work, 2 the arguments, 3 something is missing.

mod case;
mod cases;
mod compare;
mod compile;
mod data;
mod launch;
mod matrix;
mod memory;
mod pool;
mod program;
mod raw;
mod reference;
mod report;
mod work;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use serde_json::json;
use tk_runtime::gpu::Device;
use tk_sema::contract::parse_cargs;

use report::Report;

/// Measures kernels of this project on an NVIDIA GPU.
#[derive(Debug, Parser)]
#[command(version)]
pub struct Args {
    /// The checkout with `examples` and `benches`.
    #[arg(long, default_value = ".")]
    root: PathBuf,
    /// Where the results go.
    #[arg(long)]
    out: PathBuf,
    /// Measures only what has this in its name: `softmax`, `layer_norm_f16_781`, `matmul_f16`, `accuracy`, `copy`,
    /// `launch`, `compile_add`.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Measures the cases of a JSON file with the kernels of the library, and nothing else.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["columns", "tries"])]
    cases: Option<PathBuf>,
    /// Fewer shapes and fewer configurations.
    #[arg(long)]
    quick: bool,
    /// Elements of each work, at most; a GPU with less memory needs fewer.
    #[arg(long, default_value_t = 1 << 28, value_parser = clap::value_parser!(u32).range(1 << 17..=1 << 28))]
    elements: u32,
    /// Rows of this length, instead of those of the table; may be repeated.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=reference::MOST_COLUMNS as i64))]
    columns: Vec<u32>,
    /// What is tried beside the kernel's own defaults, such as `WARPS=8,ROWS=1`, instead of what is tried otherwise; may be
    /// repeated. What a kernel does not take is an error in the results.
    #[arg(long = "try", value_name = "SETS", value_parser = sets)]
    tries: Vec<program::Sets>,
    /// Threads that compile the cases before the first is measured; all cores if not given, 0 for none.
    #[arg(long, value_name = "N", requires = "cases")]
    threads: Option<u32>,
}

/// Values by name, `A=1,B=true`.
fn sets(text: &str) -> Result<program::Sets, String> {
    let sets = parse_cargs(text);
    // What has no `=` is no pair.
    if sets.len() == text.split(',').count() {
        Ok(sets)
    } else {
        Err("it is not of the form NAME=VALUE,..".into())
    }
}

impl Args {
    /// Whether a measurement of this name is asked for.
    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| name.contains(only.as_str()))
    }
}

/// Measures the cases of a file.
fn run_cases(args: &Args, path: &Path, report: &mut Report) -> Result<(), Stop> {
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|e| format!("cannot read {}: {e}", path.display()))?;
    let mut cases = case::read(&text).map_err(|e| format!("{}: {e}", path.display()))?;
    cases.retain(|(name, _)| args.wants(name));
    let device = Device::open(0).map_err(|e| Stop::Missing(e.to_string()))?;
    report.put("device", describe(&device))?;
    cases::run(args, &device, &cases, report)
}

/// Why there are no results.
#[derive(Debug)]
pub enum Stop {
    /// The machine lacks something.
    Missing(String),
    /// Something else.
    Failed(String),
}

impl From<String> for Stop {
    fn from(sentence: String) -> Stop {
        Stop::Failed(sentence)
    }
}

fn main() -> ExitCode {
    let (sentence, code) = match run(&Args::parse()) {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Stop::Missing(sentence)) => (sentence, 3),
        Err(Stop::Failed(sentence)) => (sentence, 1),
    };
    eprintln!("tk-gpu-bench: {sentence}");
    ExitCode::from(code)
}

fn run(args: &Args) -> Result<(), Stop> {
    let mut report = Report::new(&args.out);
    if let Some(path) = &args.cases {
        return run_cases(args, path, &mut report);
    }
    let columns: Vec<usize> = args.columns.iter().map(|n| *n as usize).collect();
    let works = work::works(args.quick, args.elements as usize, &columns);
    let mut works: Vec<_> = works.into_iter().filter(|w| args.wants(&w.name)).collect();
    if !args.tries.is_empty() {
        works.iter_mut().for_each(|w| w.others.clone_from(&args.tries));
    }
    let cases = compile::cases();
    let cases: Vec<_> = cases.into_iter().filter(|c| args.wants(&format!("compile_{}", c.name))).collect();
    let products = [matrix::products(args.quick), matrix::accuracies(args.quick)].concat();
    let products: Vec<_> = products.into_iter().filter(|p| args.wants(&p.name)).collect();
    let (copies, launches) = (args.wants("copy") || !works.is_empty(), args.wants("launch"));
    if !copies && !launches && cases.is_empty() && products.is_empty() {
        return Err(Stop::Failed(format!("nothing is called `{}`", args.only.join("`, `"))));
    }
    report.put("elements", json!(args.elements))?;
    let device = if copies || launches || !products.is_empty() {
        let device = Device::open(0).map_err(|e| Stop::Missing(e.to_string()))?;
        report.put("device", describe(&device))?;
        Some(device)
    } else {
        None
    };
    // What takes longest and may not end comes last.
    compile::run(args, &cases, &mut report)?;
    let Some(device) = device else { return Ok(()) };
    if launches {
        let result = launch::run(args, &device);
        report.put("launch", report::or_error(result))?;
    }
    matrix::run(args, &device, &products, &mut report)?;
    if copies { memory::run(args, &device, &works, &mut report) } else { Ok(()) }
}

fn describe(device: &Device) -> serde_json::Value {
    let ((major, minor), (cuda, cuda_minor)) = (device.capability(), device.driver_version());
    json!({
        "name": device.name(),
        "capability": format!("{major}.{minor}"),
        "driver": format!("CUDA {cuda}.{cuda_minor}"),
        "multiprocessors": device.sms(),
    })
}
