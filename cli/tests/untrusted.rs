//! Files, folders and programs that somebody else may have put there: what is executed, read and trusted.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[allow(dead_code, reason = "shared by several tests")]
#[path = "support/command.rs"]
mod command;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use command::{Folder, Ran};

/// An executable script.
fn script(folder: &Folder, name: &str, text: &str) -> String {
    let path = folder.path(name);
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

#[cfg(feature = "llvm")]
#[test]
fn programs_beside_the_source_or_above_it_are_not_executed() {
    let folder = Folder::new("strangers");
    folder.write("k.tk", "kernel fill(y: *mut f32) { store(y, 1.0); }\n");
    let mark = folder.path("executed");
    let stranger = format!("echo x > {}; echo 'release 12.9, V12.9.86'", mark.display());
    let inside = "lib/python3.12/site-packages/nvidia/cuda_nvcc/bin";
    fs::create_dir_all(folder.path("checkout/deep")).unwrap();
    for place in ["checkout", "."] {
        fs::create_dir_all(folder.path(&format!("{place}/.venv/{inside}"))).unwrap();
        script(&folder, &format!("{place}/.venv/{inside}/ptxas"), &stranger);
    }
    for name in ["ptxas", "ld.lld-19", "ld.lld", "lld", "nvdisasm"] {
        script(&folder, &format!("checkout/deep/{name}"), &stranger);
    }
    let source = folder.path("checkout/deep/k.tk");
    fs::copy(folder.path("k.tk"), &source).unwrap();
    let deep = folder.path("checkout/deep");
    // Entries of `PATH` that are empty or relative mean the current folder.
    let nothing = [
        ("PATH", ":.:../deep"),
        ("HOME", "/nonexistent"),
        ("TK_VENV", ""),
        ("VIRTUAL_ENV", ""),
        ("CUDA_HOME", ""),
    ];
    let run = |args: &[&str], more: &[(&'static str, &str)]| {
        let mut tk = command::command(&deep, args);
        tk.envs(nothing).env("TK_CACHE_DIR", folder.path("cache")).envs(more.iter().copied());
        Ran::new(tk.output().unwrap())
    };
    let venv = folder.path("checkout/.venv").display().to_string();
    let allowed = format!("is not used, since {venv} is not active; TK_VENV={venv} allows it");
    let ran = run(&["build", "k.tk", "--target", "sm_90a", "-o", "out"], &[]);
    ran.code(2).err_has("error[E1001]").err_has(&allowed);
    run(&["build", "k.tk", "--target", "gfx942", "-o", "out"], &[]);
    run(&["doctor"], &[]).code(0).out_has(&allowed);
    assert!(!mark.exists());
    // One that is found elsewhere does not hide what was left out.
    let own = script(&folder, "own", "echo 'release 12.9, V12.9.86'");
    run(&["doctor"], &[("TK_PTXAS", &own)]).code(0).out_has("(from TK_PTXAS)").err_has(&allowed);
    assert!(!mark.exists());
    let ran = run(&["doctor"], &[("TK_VENV", &venv)]);
    ran.code(0).out_has(&format!("ptxas   12.9.86, {venv}/{inside}/ptxas (from TK_VENV)\n"));
    assert!(mark.exists());
    let outer = folder.path(".venv").display().to_string();
    ran.err_has(&format!("TK_VENV={outer} allows it"));
}
