//! The driver, and processes that have it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::on_gpu::support::AMD;

/// The folder with a folder for each name of the driver; `None` without a Rust compiler. One that is incomplete has no
/// function at all.
fn drivers(complete: bool) -> Option<&'static Path> {
    static FOLDERS: [OnceLock<Option<PathBuf>>; 2] = [OnceLock::new(), OnceLock::new()];
    let build = || {
        let name = format!("fake-driver-{}-{complete}", std::process::id());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        ["cuda", "hip"].iter().for_each(|name| fs::create_dir_all(folder.join(name)).unwrap());
        let source = if complete {
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fake_driver/libcuda.rs")
        } else {
            fs::write(folder.join("libcuda.rs"), "").unwrap();
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
        let library = folder.join("cuda/libcuda.so");
        let status = command.arg(&library).arg(source).status().ok()?;
        assert!(status.success(), "the driver does not compile");
        // The name that is looked for first.
        fs::copy(library, folder.join("hip/libamdhip64.so.7")).unwrap();
        Some(folder)
    };
    FOLDERS[usize::from(complete)].get_or_init(build).as_deref()
}

/// Runs `body` in a process that has NVIDIA's driver, of a machine that is as `machine` says.
pub fn on(machine: &str, body: impl FnOnce()) {
    run(machine, body, |folder, command| {
        command.env("LD_LIBRARY_PATH", folder.join("cuda"));
    });
}

/// The same with AMD's runtime.
pub fn on_amd(machine: &str, body: impl FnOnce()) {
    run(machine, body, |folder, command| {
        // Each test has a folder of its own, so that no test writes what another one reads.
        let system = folder.join(std::thread::current().name().unwrap());
        kernel_driver(machine, &system);
        command.env("LD_LIBRARY_PATH", folder.join("hip")).env("TK_SYSFS", system).env(AMD, "1");
    });
}

/// Writes what the kernel driver tells of a machine: a CPU, and a GPU at 0000:c1:00.
fn kernel_driver(machine: &str, system: &Path) {
    let version = match machine {
        "next" => 100_300,
        "unplugged" | "contained" => 0,
        _ => 90_010,
    };
    for (node, location, version) in [("0", 0, 0), ("1", 0xc1 << 8, version)] {
        let node = system.join("class/kfd/kfd/topology/nodes").join(node);
        fs::create_dir_all(&node).unwrap();
        let text =
            format!("simd_count 440\ngfx_target_version {version}\nlocation_id {location}\ndomain 0\n");
        fs::write(node.join("properties"), text).unwrap();
    }
}

fn run(machine: &str, body: impl FnOnce(), with: impl FnOnce(&Path, &mut Command)) {
    if std::env::var_os("FAKE_CUDA").is_some() {
        return body();
    }
    let Some(folder) = drivers(machine != "incomplete") else {
        eprintln!("left out: there is no Rust compiler to build the driver with");
        return;
    };
    let thread = std::thread::current();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([thread.name().unwrap(), "--exact", "--nocapture"]).env("FAKE_CUDA", machine);
    with(folder, &mut command);
    let output = command.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains("1 passed"), "{out}{err}");
    eprint!("{err}");
}
