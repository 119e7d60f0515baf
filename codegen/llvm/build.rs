//! With the feature `static-llvm`, links LLVM and the C++ library into what uses this crate, so that a release is one
//! file. Without it `llvm-sys` links the shared library of the system.
//!
//! `llvm-sys` can link statically too, but then also what this compiler never calls: the archives of Debian name z3 and
//! libxml2, whose users (the static analyzer, manifests of Windows) no symbol of ours reaches.

#![forbid(unsafe_code)]

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=LLVM_SYS_221_PREFIX");
    if std::env::var_os("CARGO_FEATURE_STATIC_LLVM").is_some()
        && let Err(error) = link()
    {
        println!("cargo:warning=static-llvm: {error}");
        std::process::exit(1);
    }
}

fn link() -> Result<(), String> {
    let config = match std::env::var("LLVM_SYS_221_PREFIX") {
        Ok(prefix) => format!("{prefix}/bin/llvm-config"),
        Err(_) => "llvm-config-22".to_string(),
    };
    let folder = output(&config, &["--link-static", "--libdir"])?;
    println!("cargo:rustc-link-search=native={folder}");
    // All components in the order in which they need each other; the linker drops the sections that nothing reaches.
    let names = output(&config, &["--link-static", "--libnames"])?;
    let archives = names.split_whitespace().filter_map(|n| n.strip_prefix("lib")?.strip_suffix(".a"));
    // Polly is named too, and is a package of its own, which nothing here uses.
    for archive in archives.filter(|name| Path::new(&folder).join(format!("lib{name}.a")).exists()) {
        // Not part of the `rlib`: that would copy 900 MB.
        println!("cargo:rustc-link-lib=static:-bundle={archive}");
    }
    // What LLVM calls: compressed debug sections and the C++ library.
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_string());
    for archive in ["z", "zstd", "stdc++"] {
        let file = output(&compiler, &[&format!("-print-file-name=lib{archive}.a")])?;
        let folder = file.rsplit_once('/').map(|(folder, _)| folder);
        let folder = folder.ok_or_else(|| format!("lib{archive}.a is not installed"))?;
        println!("cargo:rustc-link-search=native={folder}");
        println!("cargo:rustc-link-lib=static:-bundle={archive}");
    }
    Ok(())
}

/// What a program prints, without the line break.
fn output(program: &str, args: &[&str]) -> Result<String, String> {
    let out = Command::new(program).args(args).output().map_err(|e| format!("cannot run {program}: {e}"))?;
    if !out.status.success() {
        return Err(format!("{program} {}: {}", args.join(" "), String::from_utf8_lossy(&out.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&out.stdout).trim().to_string())
}
