//! Tasks of the repository: `cargo xtask tidy` checks what no compiler checks, `cargo xtask ops` writes the op
//! reference `spec/ops.md` from the op table (`--check` only compares), `cargo xtask schema` the schema of manifests,
//! `cargo xtask dist` the files of a release.
//!
//! Nothing here ships. Runs inside the repository.

#![forbid(unsafe_code)]

mod arrows;
mod dist;
mod edges;
mod names;
mod ops;
mod safety;
mod schema;
mod source;
mod tidy;
mod words;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask tidy | ops [--check] | schema | dist";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["tidy"] => tidy::run(&root()),
        ["ops"] => ops::write(&root()),
        ["ops", "--check"] => ops::check(&root()).map_or(Ok(()), |problem| Err(vec![problem])),
        ["schema"] => schema::write(&root()),
        ["dist"] => dist::run(&root()),
        _ => Err(vec![USAGE.to_string()]),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(problems) => {
            for problem in &problems {
                eprintln!("{problem}");
            }
            ExitCode::FAILURE
        }
    }
}

/// The root of the repository: the folder above this crate.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}
