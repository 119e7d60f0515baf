//! The driver, and processes that have it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The folder of the driver; `None` without a Rust compiler. One that is incomplete has no function at all.
fn driver(complete: bool) -> Option<&'static Path> {
    static FOLDERS: [OnceLock<Option<PathBuf>>; 2] = [OnceLock::new(), OnceLock::new()];
    let build = || {
        let name = format!("fake-cuda-{}-{complete}", std::process::id());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let source = if complete {
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake_driver/libcuda.rs")
        } else {
            std::fs::write(folder.join("libcuda.rs"), "").unwrap();
            folder.join("libcuda.rs")
        };
        let rustc = std::env::var_os("RUSTC").unwrap_or("rustc".into());
        let mut command = Command::new(rustc);
        command.args([
            "--edition",
            "2024",
            "--crate-type",
            "cdylib",
            "-C",
            "opt-level=2",
            "-A",
            "warnings",
            "-o",
        ]);
        let status = command.arg(folder.join("libcuda.so")).arg(source).status().ok()?;
        assert!(status.success(), "the driver does not compile");
        Some(folder)
    };
    FOLDERS[usize::from(complete)].get_or_init(build).as_deref()
}

/// Runs `body` in a process that has the driver, of a machine that is as `machine` says.
pub fn on(machine: &str, body: impl FnOnce()) {
    if std::env::var_os("FAKE_CUDA").is_some() {
        return body();
    }
    let Some(folder) = driver(machine != "incomplete") else {
        eprintln!("left out: there is no Rust compiler to build the driver with");
        return;
    };
    let thread = std::thread::current();
    let output = Command::new(std::env::current_exe().unwrap())
        .args([thread.name().unwrap(), "--exact", "--nocapture", "--include-ignored"])
        .env("FAKE_CUDA", machine)
        .env("LD_LIBRARY_PATH", folder)
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains("1 passed"), "{out}{err}");
    eprint!("{err}");
}
