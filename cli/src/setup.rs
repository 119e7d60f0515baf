//! `tk setup ptxas`: NVIDIA's assembler for this user, from the package index that `pip` uses.
//!
//! Guarantees that what is installed has a pinned checksum, and that a failure changes nothing.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tk_driver::{Cache, Environment, Found, Ptxas};

use crate::report::Line;
use crate::terminal::{Failure, Outcome, Terminal};

/// The package.
const PACKAGE: &str = "nvidia-cuda-nvcc-cu12";

/// The version that is installed, with which `tk` is tested; one that is there and not older is left alone.
const VERSION: &str = "12.9.86";

/// The SHA-256 checksums of its files for Linux on x86-64 and on 64-bit Arm.
const SUMS: [&str; 2] = [
    "5d6a0d32fdc7ea39917c20065614ae93add6f577d840233237ff08e9a38f58f0",
    "44e1eca4d08926193a558d2434b1bf83d57b4d5743e0c431c0c83d51da1df62b",
];

/// Settings of `pip` that would install elsewhere, or nothing.
const SETTINGS: [&str; 6] =
    ["PIP_USER", "PIP_REQUIRE_VIRTUALENV", "PIP_PREFIX", "PIP_ROOT", "PIP_TARGET", "PIP_DRY_RUN"];

/// The start of the names of folders in which packages are unpacked.
const STAGE: &str = ".fetch-";

/// Seconds after which such a folder belongs to a call that was interrupted.
const ABANDONED: u64 = 3600;

/// What to do if it cannot be fetched.
const OTHERWISE: &str = "install the CUDA toolkit, or name an environment of Python that has the package \
    nvidia-cuda-nvcc-cu12 in TK_VENV, or an assembler in TK_PTXAS";

/// Installs the assembler, unless there is one that works.
pub fn ptxas(terminal: &Terminal) -> Outcome {
    let (environment, cache) = (Environment::of_process(None), Cache::of_process());
    let what = match Ptxas::find(&environment, &cache) {
        Ok(found) if numbers(&found.version) >= numbers(VERSION) => {
            return show(terminal, &found, "there already");
        }
        Ok(found) => format!("is the older {}", found.version),
        Err(_) => "does not work".to_string(),
    };
    if let Some(found) = environment.ptxas().filter(Found::is_named) {
        let (path, from) = (found.path.display(), found.from);
        let message = format!(
            "{path}, which {from} names, {what}, and counts before what would be installed; unset {from}"
        );
        return Err(Failure::Sentence(message));
    }
    let fail = |why: String| Failure::Sentence(format!("cannot fetch ptxas: {why}; {OTHERWISE}"));
    let folder = environment.own_tools().ok_or_else(|| fail("this user has no folder for data".into()))?;
    let python = environment.python().ok_or_else(|| fail("there is no `python3` in PATH".into()))?;
    if !terminal.is_json() {
        terminal.note(&format!("fetching {PACKAGE} {VERSION} with pip, about 40 MB"))?;
    }
    install(&python, &folder).map_err(fail)?;
    match Ptxas::find(&environment, &cache) {
        Ok(found) => show(terminal, &found, "installed"),
        Err(e) => Err(fail(e.message)),
    }
}

fn show(terminal: &Terminal, found: &Ptxas, what: &str) -> Outcome {
    let Ptxas { path, version, from } = found;
    let message = format!("{version}, {what}: {} (from {from})", path.display());
    if terminal.is_json() {
        let (version, path, from) = (Some(version.as_str()), path.to_str(), Some(*from));
        return terminal.object(&Line::Tool {
            name: "ptxas",
            version,
            path,
            from,
            works: true,
            message: &message,
        });
    }
    terminal.data(&format!("ptxas {message}\n"))
}

/// The first two numbers of a version.
fn numbers(version: &str) -> [u32; 2] {
    let mut numbers = version.split('.').map(|n| n.parse().unwrap_or(0));
    [numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)]
}

/// Removes what calls that were interrupted have left.
fn tidy(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let age = entry.metadata().ok().and_then(|m| m.modified().ok()?.elapsed().ok());
        let old = age.is_some_and(|age| age.as_secs() > ABANDONED);
        if old && entry.file_name().to_string_lossy().starts_with(STAGE) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Lets `pip` check and unpack the package beside the folder, then puts it in its place.
fn install(python: &Path, folder: &Path) -> Result<(), String> {
    let at = |what: &str, path: &Path, e: std::io::Error| format!("cannot {what} {}: {e}", path.display());
    let parent = folder.parent().unwrap_or(folder);
    fs::create_dir_all(parent).map_err(|e| at("make", parent, e))?;
    tidy(parent);
    let stage = tempfile::Builder::new().prefix(STAGE).tempdir_in(parent);
    let stage = stage.map_err(|e| at("write to", parent, e))?;
    let (wanted, new) = (stage.path().join("wanted.txt"), stage.path().join("tools"));
    let hashes = SUMS.map(|sum| format!(" --hash=sha256:{sum}")).concat();
    fs::write(&wanted, format!("{PACKAGE}=={VERSION}{hashes}\n")).map_err(|e| at("write", &wanted, e))?;
    let mut pip = Command::new(python);
    // Without `-I` a file `pip.py` in the current folder would run.
    pip.args(["-I", "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]);
    pip.args(["--no-deps", "--only-binary=:all:", "--require-hashes", "--target"]).arg(&new);
    pip.arg("--requirement").arg(&wanted);
    SETTINGS.iter().for_each(|name| {
        pip.env_remove(name);
    });
    let Output { status, stderr, .. } = pip.output().map_err(|e| at("run", python, e))?;
    if !status.success() {
        let text = String::from_utf8_lossy(&stderr).into_owned();
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
        let last = lines.get(lines.len().saturating_sub(6)..).unwrap_or(&[]).join("; ");
        let said = if last.is_empty() { "nothing" } else { &last };
        return Err(format!("`{} -m pip` says: {said}", python.display()));
    }
    let old = stage.path().join("old");
    if folder.exists() {
        fs::rename(folder, &old).map_err(|e| at("replace", folder, e))?;
    }
    fs::rename(&new, folder).map_err(|e| at("make", folder, e))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn every_file_of_the_package_has_a_checksum() {
        assert!(SUMS.iter().all(|s| s.len() == 64 && s.chars().all(|c| c.is_ascii_hexdigit())));
        assert_ne!(SUMS[0], SUMS[1]);
        // The tests use the same one.
        let tested = include_str!("../../scripts/setup");
        assert!(tested.contains(&format!("{PACKAGE}=={VERSION}\n")), "scripts/setup has another version");
    }

    #[test]
    fn a_failure_changes_nothing() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("tk/tools");
        let wrong = install(&PathBuf::from("/nowhere/python3"), &folder).unwrap_err();
        assert!(wrong.contains("/nowhere/python3"), "{wrong}");
        assert!(!folder.exists());
        assert_eq!(fs::read_dir(home.path().join("tk")).unwrap().count(), 0);
    }
}
