//! Owns finding, comparing and blessing the files of `tests/ir/gpu`.
//!
//! A file is an input, a line `// ----`, and what is expected. `TK_BLESS=1` writes what came out behind the line. An input
//! is tile IR with `target`, `warps` and `fact` lines in front of its kernel, or a kernel with layouts.

use std::fs;
use std::path::{Path, PathBuf};

use tk_gpu::CompileOptions;
use tk_gpu::ir::text::parse;
use tk_gpu::passes::Pass;
use tk_gpu::pipeline::{PipelineError, Snapshot, Stages, run};
use tk_snapshot::Snapshots;
use tk_tile::TileModule;

/// Between input and result.
pub const MARKER: &str = "// ----\n";

/// A file of a folder of `tests/ir/gpu`.
pub struct Case {
    pub path: PathBuf,
    pub name: String,
    pub input: String,
}

/// A folder below `tests`.
pub fn folder(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests").join(path)
}

/// The `.tir` files of a folder in name order; there is at least one.
pub fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let mut paths: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "tir"));
    paths.sort();
    assert!(!paths.is_empty(), "{} is empty", dir.display());
    paths
}

/// The files of a folder of `tests/ir/gpu`.
pub fn cases(name: &str) -> Vec<Case> {
    files(&folder("ir/gpu").join(name)).into_iter().map(read).collect()
}

fn read(path: PathBuf) -> Case {
    let text = fs::read_to_string(&path).unwrap();
    let input = text.split_once(MARKER).map_or(text.as_str(), |(input, _)| input);
    let name = path.file_stem().unwrap().to_string_lossy().into_owned();
    Case { name, input: input.to_string(), path }
}

/// Compares every result with what is expected, or writes it.
pub fn compare(results: Vec<(Case, String)>) {
    let mut snapshots = Snapshots::new();
    for (case, result) in results {
        snapshots.check(&case.path, &format!("{}{MARKER}{result}", case.input));
    }
    snapshots.finish();
}

/// The tile IR of an input, and what it is compiled for.
pub fn tile(case: &Case) -> (TileModule, CompileOptions) {
    let place = case.path.display();
    let is_function = |l: &str| ["kernel ", "noinline ", "fn "].iter().any(|w| l.starts_with(w));
    let begin = case.input.lines().take_while(|l| !is_function(l)).map(|l| l.len() + 1).sum();
    let (head, functions) = case.input.split_at(begin);
    let kernel = parse(&format!("{head}kernel @k() {{\n  return\n}}\n"));
    let options = kernel.unwrap_or_else(|e| panic!("{place}:{e}")).options;
    let module = tk_tile::text::parse(functions).unwrap_or_else(|e| panic!("{place}, below the head:{e}"));
    let module = TileModule::new(module).unwrap_or_else(|e| panic!("{place}: {e}"));
    (module, options)
}

/// The name of the first kernel.
pub fn first_kernel(module: &TileModule) -> String {
    let mut kernels = module.funcs.iter().filter(|(_, f)| f.kind == tk_tile::FuncKind::Kernel);
    kernels.next().map(|(_, f)| f.name.clone()).unwrap()
}

/// The text behind each pass, by its name.
pub type Seen = Vec<(&'static str, String)>;

/// What is after each pass, and the end.
pub fn run_all(module: &TileModule, options: CompileOptions) -> Result<(Seen, Stages), PipelineError> {
    let mut seen = vec![];
    let mut see = |pass: &'static Pass, after: Snapshot<'_>| seen.push((pass.name, after.to_string()));
    let stages = run(module, &first_kernel(module), options, &mut see)?;
    Ok((seen, stages))
}
