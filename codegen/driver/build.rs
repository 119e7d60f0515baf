//! Owns `TK_SOURCE`, a hash of the sources that decide which machine code a kernel becomes, and `TK_SOURCE_AFTER_PASSES`, of
//! those that decide what scheduled IR becomes, and what a simulated launch of it does.
//!
//! The version number of this package stays the same while the compiler is worked on; without the hash, the compile
//! cache would give back what the compiler of yesterday made.

#![forbid(unsafe_code)]

use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};

/// What tile IR goes through, from this folder. In a package without the workspace, the version number has to do.
const FOLDERS: [&str; 5] = ["src", "../gpu/src", "../llvm/src", "../../lang/ops/src", "../../lang/tile/src"];
/// What comes before scheduled IR.
const PASSES: &str = "../gpu/src/passes";
/// What a launch on the simulated target uses besides.
const MEMORY: &str = "../../runtime/interp/src";

fn main() {
    let mut files = vec![];
    // One that has moved leaves the others.
    let in_workspace = FOLDERS.iter().skip(1).any(|folder| Path::new(folder).is_dir());
    for folder in FOLDERS.into_iter().filter(|f| in_workspace || *f == "src") {
        assert!(
            Path::new(folder).is_dir(),
            "{folder} has moved: the compile cache would miss what changes in it"
        );
        println!("cargo::rerun-if-changed={folder}");
        collect(Path::new(folder), &mut files);
    }
    println!("cargo::rustc-env=TK_SOURCE={:016x}", hash(files.clone()));
    files.retain(|file| !file.starts_with(PASSES));
    if in_workspace {
        println!("cargo::rerun-if-changed={MEMORY}");
        collect(Path::new(MEMORY), &mut files);
    }
    println!("cargo::rustc-env=TK_SOURCE_AFTER_PASSES={:016x}", hash(files));
}

/// A hash of files: the same for the same files everywhere, since `new` has constant keys.
fn hash(mut files: Vec<PathBuf>) -> u64 {
    files.sort();
    let mut hasher = DefaultHasher::new();
    for path in files {
        hasher.write(path.to_string_lossy().as_bytes());
        hasher.write(&fs::read(&path).unwrap_or_default());
    }
    hasher.finish()
}

/// The files below a folder.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
}
