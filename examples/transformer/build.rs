//! Compiles the kernels into the program: for the CPU, and for each target of `TK_TARGETS`, a list with spaces.

#![forbid(unsafe_code)]

fn main() {
    println!("cargo::rerun-if-env-changed=TK_TARGETS");
    let targets = std::env::var("TK_TARGETS").unwrap_or_else(|_| "sm_80 sm_90a gfx942".to_string());
    let build = tk_build::Build::new("kernels/model.tk");
    targets.split_whitespace().fold(build, |build, target| build.target(target)).compile();
}
