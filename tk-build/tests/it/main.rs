//! Tests of what build scripts generate, as one program, so that LLVM is linked once.

mod cpu;
mod generated;

/// Returns true, and says so, if a test is left out because there is no assembler of NVIDIA. CI has one.
fn without_ptxas() -> bool {
    let root = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let is_missing = tk_driver::Environment::of_process(Some(root)).ptxas().is_none();
    assert!(!is_missing || std::env::var_os("CI").is_none(), "CI has no ptxas");
    if is_missing {
        eprintln!("left out: there is no ptxas");
    }
    is_missing
}
