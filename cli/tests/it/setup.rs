//! `tk setup ptxas`, with a `python3` that stands for that of the user.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::Path;

use crate::support::command::{Folder, Ran, command};

/// Runs the command in an environment with nothing but a home and a `PATH` of one folder.
fn setup(folder: &Folder, args: &[&str]) -> Ran {
    let mut tk = command(&folder.path(""), args);
    for name in ["TK_PTXAS", "TK_VENV", "CUDA_HOME", "VIRTUAL_ENV"] {
        tk.env_remove(name);
    }
    tk.env("PATH", folder.path("bin")).env("HOME", folder.path("home")).env("TK_CACHE", "off");
    tk.env("XDG_DATA_HOME", folder.path("home/data"));
    Ran::new(tk.output().unwrap())
}

/// A `pip` that unpacks an assembler with a version to the folder after `--target`, and keeps what it was asked for.
fn pip(folder: &Folder, before: &str) {
    let asked = folder.path("asked");
    let asked = asked.display();
    let text = format!(
        "{before}\nprintf '%s ' \"$@\" > {asked}\nwhile [ \"$1\" != --target ]; do shift; done\n\
         /bin/mkdir -p \"$2/nvidia/cuda_nvcc/bin\"\n/bin/cat \"$4\" >> {asked}\n\
         printf '#!/bin/sh\\necho release, V12.9.86\\n' > \"$2/nvidia/cuda_nvcc/bin/ptxas\"\n\
         /bin/chmod +x \"$2/nvidia/cuda_nvcc/bin/ptxas\"\n"
    );
    fs::create_dir_all(folder.path("bin")).unwrap();
    folder.script("bin/python3", &text);
}

fn left(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).into_iter().flatten().flatten();
    names.map(|e| e.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn pip_installs_the_pinned_assembler_once() {
    let folder = Folder::new("setup");
    pip(&folder, "");
    let ran = setup(&folder, &["setup", "ptxas"]);
    ran.code(0).out_has("ptxas 12.9.86, installed: ").out_has("(from tk setup)").err_has("fetching");
    let asked = fs::read_to_string(folder.path("asked")).unwrap();
    for text in [
        "-I -m pip install",
        "--require-hashes",
        "--no-deps",
        "nvidia-cuda-nvcc-cu12==12.9.86",
        "--hash=sha256:",
    ] {
        assert!(asked.contains(text), "{text}: {asked}");
    }
    assert_eq!(left(&folder.path("home/data/tk")), ["tools"]);
    // It is found from then on, and not fetched again.
    setup(&folder, &["doctor"]).code(0).out_has("12.9.86").out_has("(from tk setup)");
    fs::remove_file(folder.path("asked")).unwrap();
    setup(&folder, &["setup", "ptxas"]).code(0).out_has("there already");
    setup(&folder, &["setup", "ptxas", "--message-format", "json"]).code(0).out_has("\"from\":\"tk setup\"");
    assert!(!folder.path("asked").exists());
}

#[test]
fn a_failure_says_what_to_do_instead() {
    let folder = Folder::new("setup-fails");
    setup(&folder, &["setup", "ptxas"]).code(2).err_has("no `python3` in PATH").err_has("TK_PTXAS");
    pip(&folder, "echo 'ERROR: No matching distribution' >&2; exit 1");
    setup(&folder, &["setup", "ptxas"]).code(2).err_has("No matching distribution").err_has("CUDA toolkit");
    assert!(left(&folder.path("home/data/tk")).is_empty());
    pip(&folder, "exit 0");
    setup(&folder, &["setup", "ptxas"]).code(2).err_has("cannot make");
    setup(&folder, &["setup"]).code(2);
    setup(&folder, &["setup", "cuda"]).code(2).err_has("cuda");
}

/// One that is older, or broken, is replaced if it is only in `PATH`; what a variable names is not.
#[test]
fn what_is_there_already_is_judged_first() {
    let folder = Folder::new("setup-old");
    pip(&folder, "");
    folder.script("bin/ptxas", "echo release, V11.8.89");
    setup(&folder, &["setup", "ptxas"]).code(0).out_has("12.9.86, installed");
    setup(&folder, &["doctor"]).code(0).out_has("(from tk setup)");
    fs::remove_dir_all(folder.path("home")).unwrap();
    folder.script("bin/ptxas", "exit 1");
    setup(&folder, &["setup", "ptxas"]).code(0).out_has("12.9.86, installed");
    fs::remove_dir_all(folder.path("home")).unwrap();
    fs::remove_file(folder.path("asked")).unwrap();
    let old = folder.script("old-ptxas", "echo release, V11.8.89");
    for (path, what) in [(old.as_str(), "is the older 11.8.89"), ("/nowhere/ptxas", "does not work")] {
        let mut tk = command(&folder.path(""), &["setup", "ptxas"]);
        tk.env("TK_PTXAS", path).env("PATH", folder.path("bin")).env("TK_CACHE", "off");
        tk.env("XDG_DATA_HOME", folder.path("home/data"));
        Ran::new(tk.output().unwrap()).code(2).err_has(what).err_has("unset TK_PTXAS");
    }
    assert!(!folder.path("asked").exists());
}
