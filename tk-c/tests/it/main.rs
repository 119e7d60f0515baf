//! C and C++ programs that launch kernels of a bundle with `libtklang` on the CPU.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;
use tk_snapshot::Snapshots;

/// The flags of a program that includes `tklang.h`.
const C: [&str; 7] = ["cc", "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1"];
const CPP: [&str; 9] =
    ["c++", "-xc++", "-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1", "-pthread"];

/// A folder with the library under its own names, and a bundle.
struct Fixture(TempDir);

impl Fixture {
    fn new() -> Fixture {
        let folder = TempDir::new().unwrap();
        // Cargo builds both into one folder.
        let library = std::env::current_exe().unwrap().with_file_name("libtklang.so");
        for name in ["libtklang.so", "libtklang.so.0"] {
            std::os::unix::fs::symlink(&library, folder.path().join(name)).unwrap();
        }
        let source = folder.path().join("kernels.tk");
        fs::write(&source, include_str!("kernels.tk")).unwrap();
        tk_build::Build::new(&source).target("cpu").out(folder.path()).try_compile().unwrap();
        Fixture(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Compiles a program of this folder and runs it.
    fn run(&self, compiler: &[&str], source: &str, args: &[&Path]) -> Output {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let (program, flags) = compiler.split_first().unwrap();
        let built = Command::new(program)
            .args(flags)
            .arg(root.join("tests/it").join(source))
            .arg("-I")
            .arg(root.join("include"))
            .arg("-o")
            .arg(self.path("program"))
            .args(["-xnone", "-L"])
            .arg(self.0.path())
            .args(["-ltklang", "-lpthread"])
            .output()
            .unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        Command::new(self.path("program")).args(args).env("LD_LIBRARY_PATH", self.0.path()).output().unwrap()
    }
}

#[test]
fn launches_and_refusals() {
    let fixture = Fixture::new();
    let bundle = fixture.path("kernels.tkb");
    let (cut, text, missing) = (fixture.path("cut.tkb"), fixture.path("kernels.tk"), fixture.path("no.tkb"));
    let bytes = fs::read(&bundle).unwrap();
    fs::write(&cut, bytes.get(..bytes.len() / 2).unwrap()).unwrap();
    let folder = fixture.0.path().display().to_string();
    for compiler in [&C[..], &CPP[..]] {
        let out = fixture.run(compiler, "launches.c", &[&bundle, &cut, &text, &missing]);
        assert!(out.stderr.is_empty(), "{}", String::from_utf8_lossy(&out.stderr));
        assert!(out.status.success(), "{:?}", out.status);
        let shown = String::from_utf8(out.stdout).unwrap().replace(&folder, "FOLDER");
        let mut snapshots = Snapshots::new();
        snapshots.check(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/launches.txt"), &shown);
        snapshots.finish();
    }
}

/// The header of the library has the types of generated headers: one program may include both.
#[test]
fn types_are_those_of_generated_headers() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let own = fs::read_to_string(root.join("include/tklang.h")).unwrap();
    let generated = fs::read_to_string(root.join("../codegen/driver/src/ship/c/types.h")).unwrap();
    assert!(own.contains(&generated));
}

#[test]
fn element_types_have_their_numbers() {
    let fixture = Fixture::new();
    let out = fixture.run(&C, "types.c", &[&fixture.path("kernels.tkb")]);
    let shown = String::from_utf8(out.stdout).unwrap();
    assert_eq!(shown.lines().count(), 19, "{shown}");
    for line in shown.lines() {
        let (name, sentence) = line.split_once(' ').unwrap();
        let name = name.strip_prefix("TK_").unwrap().to_lowercase();
        let found = sentence.contains(&format!("`x` is of {name};")) || name == "f32" || name == "f16";
        assert!(found, "{line}");
    }
}

/// Threads launch kernels of one bundle and open others.
#[test]
fn threads() {
    let fixture = Fixture::new();
    let out = fixture.run(&C, "threads.c", &[&fixture.path("kernels.tkb")]);
    assert_eq!(String::from_utf8_lossy(&out.stdout), "8 threads, 0 wrong\n");
}
