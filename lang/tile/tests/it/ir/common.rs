//! Finding, comparing and blessing the files of `tests/ir`.
//!
//! A file is an input, a line `// ----`, and what is expected. `TK_BLESS=1` writes what came out after the line.

use std::fs;
use std::path::{Path, PathBuf};

use tk_snapshot::Snapshots;

/// Between input and result.
pub const MARKER: &str = "// ----\n";

/// A file of a folder of `tests/ir`.
pub struct Case {
    pub path: PathBuf,
    pub name: String,
    pub input: String,
    pub expected: String,
}

/// The files of a folder in name order; there is at least one.
pub fn cases(folder: &str) -> Vec<Case> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/ir").join(folder);
    let entries = fs::read_dir(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let mut paths: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "tir"));
    paths.sort();
    assert!(!paths.is_empty(), "{} is empty", dir.display());
    paths.into_iter().map(read).collect()
}

fn read(path: PathBuf) -> Case {
    let text = fs::read_to_string(&path).unwrap();
    let (input, expected) = text.split_once(MARKER).unwrap_or((&text, ""));
    let name = path.file_stem().unwrap().to_string_lossy().into_owned();
    Case { name, input: input.to_string(), expected: expected.to_string(), path }
}

/// Compares every result with what is expected, or writes it.
pub fn compare(results: Vec<(Case, String)>) {
    let mut snapshots = Snapshots::new();
    for (case, result) in results {
        snapshots.check(&case.path, &format!("{}{MARKER}{result}", case.input));
    }
    snapshots.finish();
}
