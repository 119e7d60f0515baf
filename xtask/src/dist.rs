//! `cargo xtask dist`: the files of a release in `target/dist/release-files`.
//!
//! An archive with one static `tk` and what belongs to an installation, the Python wheel, a bill of materials, checksums.
//! Guarantees the same bytes for the same commit and tools: paths and times do not reach the files. The tools are those
//! that `scripts/setup dist` installs.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Packages of the system whose code is linked into the program; their notices are where Debian has them.
const LINKED: [(&str, &str); 4] = [
    ("LLVM 22", "libllvm22"),
    ("The C++ library of GCC, under its runtime library exception", "libstdc++6"),
    ("Zstandard", "libzstd1"),
    ("zlib", "zlib1g"),
];

/// The shells, and where their completions are in an installation.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/tk"),
    ("zsh", "share/zsh/site-functions/_tk"),
    ("fish", "share/fish/vendor_completions.d/tk.fish"),
];

/// What other build systems find, in `scripts/dist` and in an installation. `@VERSION@` is the version.
const PACKAGES: [&str; 4] = [
    "lib/cmake/tk/tkConfig.cmake",
    "lib/cmake/tk/tkConfigVersion.cmake",
    "lib/pkgconfig/tk-lang.pc",
    "lib/pkgconfig/tklang.pc",
];

/// The options by which paths of this machine do not reach the programs.
fn flags(root: &Path) -> Result<String, String> {
    let home =
        std::env::var("CARGO_HOME").ok().or_else(|| Some(format!("{}/.cargo", std::env::var("HOME").ok()?)));
    let home = home.ok_or("neither CARGO_HOME nor HOME is set")?;
    Ok(format!("--remap-path-prefix={home}=/cargo --remap-path-prefix={}=/tk", root.display()))
}

/// Makes all files.
pub fn run(root: &Path) -> Result<(), Vec<String>> {
    make(root).map_err(|what| vec![what])
}

fn make(root: &Path) -> Result<(), String> {
    let dist = root.join("target/dist");
    let out = dist.join("release-files");
    let _ = fs::remove_dir_all(&out);
    fs::create_dir_all(&out).map_err(|e| format!("{}: {e}", out.display()))?;
    let version = env!("CARGO_PKG_VERSION");
    // The time of the commit, for everything that has one.
    let time = output(Command::new("git").current_dir(root).args(["log", "-1", "--format=%ct"]))?;
    let flags = flags(root)?;
    let in_root = |program: &str| {
        let mut command = Command::new(program);
        command.current_dir(root).env("CARGO_TARGET_DIR", &dist).env("RUSTFLAGS", &flags);
        command.env("SOURCE_DATE_EPOCH", &time).env("CARGO_INCREMENTAL", "0");
        // The Makefile's, which lints and turns optimizations of the compiler off for that.
        command.env_remove("RUSTC_WORKSPACE_WRAPPER");
        command
    };
    run_all(
        &mut in_root("cargo"),
        ["build", "--locked", "--release", "-p", "tk-cli", "-p", "tk-c", "--features", "static-llvm"],
    )?;

    let name = format!("tk-{version}-x86_64-linux");
    let folder = dist.join(&name);
    let _ = fs::remove_dir_all(&folder);
    installation(root, &dist.join("release"), &folder)?;
    let notices = notices(&mut in_root("cargo"), &folder.join("THIRD-PARTY.md"))?;
    fs::write(folder.join("THIRD-PARTY.md"), &notices).map_err(|e| e.to_string())?;
    let archive = out.join(format!("{name}.tar.xz"));
    let tar = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mode=u+rw,go+r-w,a+X"];
    let mut command = Command::new("tar");
    command.current_dir(&dist).env("XZ_OPT", "-6 -T1").args(tar).arg(format!("--mtime=@{time}"));
    run_all(&mut command, [OsStr::new("-cJf"), archive.as_os_str(), OsStr::new(&name)])?;

    // The wheel has the licences and notices beside its metadata.
    fs::write(root.join("python/THIRD-PARTY.md"), notices).map_err(|e| e.to_string())?;
    let mut maturin = in_root(".venv/bin/maturin");
    maturin.args([
        "build",
        "--locked",
        "--release",
        "--compatibility",
        "manylinux_2_36",
        "--auditwheel",
        "skip",
    ]);
    let wheel = run_all(
        &mut maturin,
        [OsStr::new("-m"), OsStr::new("python/Cargo.toml"), OsStr::new("--out"), out.as_os_str()],
    );
    let _ = fs::remove_file(root.join("python/THIRD-PARTY.md"));
    wheel?;

    let mut bill = in_root("cargo");
    bill.args([
        "cyclonedx",
        "--format",
        "json",
        "--manifest-path",
        "cli/Cargo.toml",
        "--features",
        "static-llvm",
    ]);
    run_all(&mut bill, ["--override-filename", "tk.cdx"])?;
    let bills = output(Command::new("git").current_dir(root).args([
        "ls-files",
        "--others",
        "--exclude-standard",
        "--",
        "*tk.cdx.json",
    ]))?;
    for path in bills.lines() {
        let from = root.join(path);
        if path == "cli/tk.cdx.json" {
            fs::copy(&from, out.join(format!("{name}.cdx.json"))).map_err(|e| e.to_string())?;
        }
        let _ = fs::remove_file(from);
    }
    checksums(&out)
}

/// The files of an installation: the program, the library for C, manual pages, completions, files for editors and build
/// systems, licences.
fn installation(root: &Path, built: &Path, to: &Path) -> Result<(), String> {
    let put = |path: &str, bytes: &[u8]| -> Result<PathBuf, String> {
        let path = to.join(path);
        let folder = path.parent().unwrap_or(to);
        fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        fs::write(&path, bytes).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(path)
    };
    let read = |path: PathBuf| fs::read(&path).map_err(|e| format!("{}: {e}", path.display()));
    let tk = put("bin/tk", &read(built.join("tk"))?)?;
    run_all(&mut Command::new("strip"), [&tk])?;
    run_all(&mut Command::new("chmod"), [OsStr::new("755"), tk.as_os_str()])?;
    let library = put("lib/libtklang.so.0", &read(built.join("libtklang.so"))?)?;
    run_all(&mut Command::new("strip"), [&library])?;
    std::os::unix::fs::symlink("libtklang.so.0", library.with_file_name("libtklang.so"))
        .map_err(|e| e.to_string())?;
    put("include/tklang.h", &read(root.join("tk-c/include/tklang.h"))?)?;
    for (shell, path) in COMPLETIONS {
        put(path, output(Command::new(&tk).args(["completions", shell]))?.as_bytes())?;
    }
    let man = to.join("share/man/man1");
    fs::create_dir_all(&man).map_err(|e| e.to_string())?;
    run_all(Command::new(&tk).arg("man"), [&man])?;
    for path in PACKAGES {
        let text =
            fs::read_to_string(root.join("scripts/dist").join(path)).map_err(|e| format!("{path}: {e}"))?;
        put(path, text.replace("@VERSION@", env!("CARGO_PKG_VERSION")).as_bytes())?;
    }
    for name in ["LICENSE-MIT", "LICENSE-APACHE", "CHANGELOG.md", "README.md"] {
        put(name, &fs::read(root.join(name)).map_err(|e| format!("{name}: {e}"))?)?;
    }
    let files =
        output(Command::new("git").current_dir(root).args(["ls-files", "editors", "examples/*.tk", "docs"]))?;
    for path in files.lines().filter(|p| !p.starts_with("editors/tests")) {
        put(&format!("share/tk/{path}"), &fs::read(root.join(path)).map_err(|e| format!("{path}: {e}"))?)?;
    }
    Ok(())
}

/// The licences of all that is linked in.
fn notices(cargo: &mut Command, to: &Path) -> Result<String, String> {
    cargo.args(["about", "generate", "--locked", "-c", "scripts/dist/about.toml", "-m", "cli/Cargo.toml"]);
    cargo.args(["--features", "static-llvm", "scripts/dist/about.hbs", "-o"]);
    run_all(cargo, [to])?;
    let mut text = fs::read_to_string(to).map_err(|e| e.to_string())?;
    for (title, package) in LINKED {
        let path = format!("/usr/share/doc/{package}/copyright");
        let copyright = fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
        text.push_str(&format!("## {title}\n\n```\n{}\n```\n\n", copyright.trim()));
    }
    Ok(text)
}

/// `SHA256SUMS` of all files.
fn checksums(folder: &Path) -> Result<(), String> {
    let entries = fs::read_dir(folder).map_err(|e| e.to_string())?;
    let mut names: Vec<String> =
        entries.filter_map(|e| Some(e.ok()?.file_name().to_string_lossy().into_owned())).collect();
    names.sort();
    let sums = output(Command::new("sha256sum").current_dir(folder).args(&names))?;
    fs::write(folder.join("SHA256SUMS"), format!("{sums}\n")).map_err(|e| e.to_string())?;
    println!("{}", folder.display());
    names.iter().for_each(|name| println!("  {name}"));
    Ok(())
}

/// Runs a program with further arguments.
fn run_all<A: AsRef<OsStr>>(command: &mut Command, args: impl IntoIterator<Item = A>) -> Result<(), String> {
    command.args(args);
    let name = command.get_program().to_string_lossy().into_owned();
    let status =
        command.status().map_err(|e| format!("{name}: {e}; `scripts/setup dist` installs what is needed"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}")) }
}

/// What a program prints.
fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let out = command.output().map_err(|e| format!("{name}: {e}"))?;
    if !out.status.success() {
        return Err(format!("{command:?}: {}", String::from_utf8_lossy(&out.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&out.stdout).trim_end().to_string())
}
