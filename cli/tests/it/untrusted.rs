//! Files, folders and programs that somebody else may have put there: what is executed, read and trusted.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fs;
#[cfg(feature = "llvm")]
use std::os::unix::fs::PermissionsExt;
#[cfg(feature = "llvm")]
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use crate::support::command::{self, Folder, Ran};

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
        folder.script(&format!("{place}/.venv/{inside}/ptxas"), &stranger);
    }
    for name in ["ptxas", "ld.lld-22", "ld.lld", "lld", "nvdisasm"] {
        folder.script(&format!("checkout/deep/{name}"), &stranger);
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
    let own = folder.script("own", "echo 'release 12.9, V12.9.86'");
    run(&["doctor"], &[("TK_PTXAS", &own)]).code(0).out_has("(from TK_PTXAS)").err_has(&allowed);
    assert!(!mark.exists());
    let ran = run(&["doctor"], &[("TK_VENV", &venv)]);
    ran.code(0).out_has(&format!("ptxas   12.9.86, {venv}/{inside}/ptxas (from TK_VENV)\n"));
    assert!(mark.exists());
    let outer = folder.path(".venv").display().to_string();
    ran.err_has(&format!("TK_VENV={outer} allows it"));
}

#[cfg(feature = "llvm")]
fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Builds `k.tk` in the folder with this assembler; temporary files and the cache are in folders of their own.
#[cfg(feature = "llvm")]
fn build(folder: &Folder, ptxas: &str) -> Ran {
    let args = ["build", "k.tk", "--target", "sm_90a", "-o", "out"];
    let mut tk = command::command(&folder.path(""), &args);
    tk.env("TK_PTXAS", ptxas).env("TK_CACHE_DIR", folder.path("cache/tk")).env("TMPDIR", folder.path("tmp"));
    Ran::new(tk.env_remove("TK_CACHE").output().unwrap())
}

/// An assembler that writes something, after these commands.
#[cfg(feature = "llvm")]
fn assembler(folder: &Folder, name: &str, before: &str) -> String {
    let version = "if [ \"$1\" = --version ]; then echo 'release 12.9, V12.9.86'; exit 0; fi";
    let write = "while [ \"$1\" != -o ]; do shift; done; echo x > \"$2\"";
    folder.script(name, &format!("{version}\n{before}\n{write}"))
}

#[cfg(feature = "llvm")]
#[test]
fn a_cache_that_others_can_write_is_not_used() {
    let folder = Folder::new("cache-others");
    folder.write("k.tk", "kernel fill(y: *mut f32) { store(y, 1.0); }\n");
    fs::create_dir_all(folder.path("cache/tk")).unwrap();
    fs::create_dir_all(folder.path("tmp")).unwrap();
    let works = assembler(&folder, "works", "");
    let info = || {
        let mut tk = command::command(&folder.path(""), &["cache", "info"]);
        Ran::new(tk.env("TK_CACHE_DIR", folder.path("cache/tk")).env_remove("TK_CACHE").output().unwrap())
    };
    let (inner, outer) = (folder.path("cache/tk"), folder.path("cache"));
    // Files that are there while others may write are not read afterwards.
    mode(&inner, 0o700);
    build(&folder, &works).code(0);
    assert!(build(&folder, &works).code(0).out.contains("(cached)"));
    for (inside, above, why) in [
        (0o770, 0o755, "others can write to it; run `chmod go-w "),
        (0o702, 0o755, "others can write to it"),
        (0o700, 0o777, "everybody can write to "),
    ] {
        mode(&inner, inside);
        mode(&outer, above);
        let before = fs::read_dir(&inner).unwrap().count();
        assert!(!build(&folder, &works).code(0).out.contains("(cached)"), "{inside:o} in {above:o}");
        assert_eq!(fs::read_dir(&inner).unwrap().count(), before, "{inside:o} in {above:o}");
        info()
            .code(0)
            .out_has(": not used, since ")
            .out_has(why)
            .out_has("set TK_CACHE_DIR to another folder");
        let mut tk = command::command(&folder.path(""), &["cache", "clear"]);
        Ran::new(tk.env("TK_CACHE_DIR", &inner).output().unwrap())
            .code(2)
            .says(&["not used as a cache", why]);
    }
    // A folder such as /tmp, in which only owners can rename.
    mode(&outer, 0o1777);
    assert!(build(&folder, &works).code(0).out.contains("(cached)"));
    // The administrator can give it away; this is about the folders of other users.
    if std::os::unix::fs::chown(&inner, Some(12345), None).is_ok() {
        assert!(!build(&folder, &works).code(0).out.contains("(cached)"));
        info().code(0).out_has("it belongs to another user (number 12345)");
    }
}

#[cfg(feature = "llvm")]
#[test]
fn what_a_killed_build_left_is_removed() {
    let folder = Folder::new("killed");
    folder.write("k.tk", "kernel fill(y: *mut f32) { store(y, 1.0); }\n");
    fs::create_dir_all(folder.path("tmp")).unwrap();
    // It ends there: what it writes later would make the folder new.
    let kills = assembler(&folder, "kills", "kill -9 $PPID; exit");
    assert_eq!(build(&folder, &kills).code, None, "it is killed");
    let left =
        || -> Vec<PathBuf> { fs::read_dir(folder.path("tmp")).unwrap().map(|e| e.unwrap().path()).collect() };
    assert_eq!(left().len(), 1);
    assert_eq!(fs::metadata(&left()[0]).unwrap().permissions().mode() & 0o777, 0o700);
    // As if it had been some time ago; a running process has its lock.
    let long_ago = SystemTime::now() - Duration::from_secs(600);
    let file = fs::File::open(&left()[0]).unwrap();
    file.set_modified(long_ago).unwrap();
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let works = assembler(&folder, "works", "");
    build(&folder, &works).code(0);
    assert_eq!(left().len(), 1, "another process still uses it");
    // Not by closing it alone: a process that another test starts at this moment has it open too.
    rustix::fs::flock(&file, rustix::fs::FlockOperation::Unlock).unwrap();
    drop(file);
    fs::remove_dir_all(folder.path("cache")).unwrap();
    // Beside results: a file that was not complete, and one that is somebody else's.
    folder.write("out/.tk-abc123.unfinished", "x").write("out/.other.tmp", "x");
    fs::File::open(folder.path("out/.tk-abc123.unfinished")).unwrap().set_modified(long_ago).unwrap();
    build(&folder, &works).code(0);
    assert!(left().is_empty(), "{:?}", left());
    assert!(!folder.path("out/.tk-abc123.unfinished").exists() && folder.path("out/.other.tmp").exists());
}

/// A pipe without a writer: opening it to read never returns.
fn pipe(folder: &Folder, name: &str) {
    let place = folder.path(name);
    rustix::fs::mknodat(rustix::fs::CWD, &place, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
        .unwrap();
}

/// Runs the command for at most half a minute: other tests run beside it.
fn soon(folder: &Folder, args: &[&str]) -> Ran {
    let mut tk = command::command(&folder.path(""), args);
    tk.env("TK_CACHE_DIR", folder.path("cache"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = tk.spawn().unwrap();
    let started = SystemTime::now();
    while child.try_wait().unwrap().is_none() {
        if started.elapsed().unwrap() > Duration::from_secs(30) {
            child.kill().unwrap();
            panic!("tk {args:?} hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ran::new(child.wait_with_output().unwrap())
}

#[test]
fn only_regular_files_are_read() {
    let folder = Folder::new("regular");
    folder.write("add.tk", command::ADD);
    for (name, path) in [("pipe", None), ("endless", Some("/dev/zero")), ("terminal", Some("/dev/tty"))] {
        for ending in ["tk", "npy", "safetensors", "tkb"] {
            let file = format!("{name}.{ending}");
            match path {
                Some(path) => std::os::unix::fs::symlink(path, folder.path(&file)).unwrap(),
                None => pipe(&folder, &file),
            }
        }
        let (source, says) = (format!("{name}.tk"), "it is not a regular file");
        for command in [&["check"][..], &["test"], &["fmt"], &["fmt", "--check"], &["check", "--emit", "ast"]]
        {
            let ran = soon(&folder, &[command, &[source.as_str()]].concat());
            ran.code(2).says(&[&format!("cannot read {source}: {says}")]);
        }
        soon(&folder, &["inspect", &format!("{name}.tkb")]).code(2).says(&[says]);
        for array in ["npy", "safetensors", "safetensors#key"] {
            let x = format!("x={name}.{array}");
            let args = ["run", "add.tk", &x, "y=ones:f32[8]", "z=zeros:f32[8]"];
            soon(&folder, &args).code(2).says(&[says]);
        }
        let used = format!("use {name}::f;\ntest \"t\" {{ assert(f()); }}\n");
        folder.write("uses.tk", used);
        let says = if path.is_some() { "a link that leads out of the program's folder" } else { says };
        soon(&folder, &["check", "uses.tk"])
            .code(1)
            .err_has("error[E0204]")
            .err_has(says)
            .err_has("uses.tk:1:5");
    }
    folder.write("reads.tk", "test \"t\" { let x = npy(\"pipe.npy\", [8], f32); assert(x.shape[0] > 0); }\n");
    let ran = soon(&folder, &["test", "reads.tk"]);
    assert!(
        ran.code == Some(1) && format!("{}{}", ran.out, ran.err).contains("it is not a regular file"),
        "{ran:#?}"
    );
}

#[test]
fn use_does_not_follow_a_link_out_of_the_folder() {
    let folder = Folder::new("links");
    fs::create_dir_all(folder.path("program/inner")).unwrap();
    fs::create_dir_all(folder.path("links")).unwrap();
    folder.write("secret.tk", "the password\n");
    folder.write("program/main.tk", "use helpers::f;\ntest \"t\" { assert(f()); }\n");
    let helpers = folder.path("program/helpers.tk");
    let check = |file: &str| soon(&folder, &["test", file]);
    std::os::unix::fs::symlink("../secret.tk", &helpers).unwrap();
    let ran = check("program/main.tk");
    ran.code(1).err_has("`program/helpers.tk` is a link that leads out of the program's folder");
    assert!(!ran.err.contains("password"), "{ran:#?}");
    // Inside of the folder a link is a name like any other.
    fs::remove_file(&helpers).unwrap();
    folder.write("program/inner/real.tk", "fn f() -> bool { true }\n");
    std::os::unix::fs::symlink("inner/real.tk", &helpers).unwrap();
    check("program/main.tk").code(0);
    // A folder of links to a program, as build systems make them.
    fs::remove_file(&helpers).unwrap();
    fs::copy(folder.path("program/inner/real.tk"), &helpers).unwrap();
    for name in ["main.tk", "helpers.tk"] {
        std::os::unix::fs::symlink(
            folder.path(&format!("program/{name}")),
            folder.path(&format!("links/{name}")),
        )
        .unwrap();
    }
    check("links/main.tk").code(0);
}

#[cfg(feature = "llvm")]
#[test]
fn entries_of_the_cache_are_regular_files() {
    let folder = Folder::new("cache-pipe");
    let fake = folder.script("fake", "echo 'release 12.9, V12.9.86'");
    let doctor = || {
        let mut tk = command::command(&folder.path(""), &["doctor"]);
        tk.env("TK_PTXAS", &fake).env("TK_CACHE_DIR", folder.path("cache")).env_remove("TK_CACHE");
        Ran::new(tk.output().unwrap())
    };
    doctor().code(0).out_has("12.9.86");
    for entry in fs::read_dir(folder.path("cache")).unwrap() {
        let entry = entry.unwrap().path();
        fs::remove_file(&entry).unwrap();
        pipe(&folder, &format!("cache/{}", entry.file_name().unwrap().to_string_lossy()));
    }
    doctor().code(0).out_has("12.9.86");
}

/// What a terminal would obey, in names of files and tests, messages and what is printed, is shown as text, with colors
/// and without.
#[cfg(unix)]
#[test]
fn names_are_no_commands_for_a_terminal() {
    const NAME: &str = "a\u{1b}[31mb\nc\u{9b}.tk";
    let folder = Folder::new("escapes");
    let program = "test  \"evil \u{1b}]0;x\u{7} \\u{202e}\\nname\" {\n    print(\"\\u{1b}[2J\", 3);\n    \
        assert(1 == 2, \"said \u{1b}[8m\");\n}\nkernel  k(\u{1b}[5m) {}\n";
    folder.write(NAME, program);
    let (right, _) = program.split_once("kernel").unwrap();
    folder.write("right\u{1b}[7m.tk", right);
    fs::create_dir(folder.path("tk-learn")).unwrap();
    let learn = fs::read_to_string("../docs/learn/01_vector_add/puzzle.tk").unwrap() + right;
    folder.write("tk-learn/01_vector_add.tk", learn.replace("test \"", "test \"\u{1b}[6m"));
    let is_foreign = |c: char| (c.is_control() && !matches!(c, '\n' | '\t')) || c == '\u{202e}';
    for format in ["human", "short"] {
        for args in [
            &["check", NAME] as &[_],
            &["test", NAME],
            &["test", "right\u{1b}[7m.tk"],
            &["test", "missing\u{1b}[7m.tk"],
            &["fmt", "--check", "right\u{1b}[7m.tk"],
            &["learn", "check", "1"],
        ] {
            let ran = folder.tk(&[args, &["--message-format", format]].concat());
            assert!(!ran.out.contains(is_foreign) && !ran.err.contains(is_foreign), "{args:?}: {ran:#?}");
            assert!((ran.out + &ran.err).contains("\\u{1b}["), "{args:?}");
        }
    }
    let ran = folder.tk(&["test", "right\u{1b}[7m.tk", "--color", "always"]);
    ran.err_has("test \"evil \\u{1b}]0;x\\u{7} \\u{202e}\\nname\" of right\\u{1b}[7m.tk failed");
    ran.err_has("assertion failed: said \\u{1b}[8m").err_has("\n\\u{1b}[2J 3\n");
}
