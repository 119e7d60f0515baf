//! Changed programs through the whole command: `tk check`, and of what checks `tk test`, on the interpreter and on the
//! simulated target, and `tk build`. Whatever the source is, none of them ends with a compiler bug or by a
//! signal, and each stays below limits of time and memory.
//!
//! `TK_MUTATED=20000` tries that many programs, `TK_FUZZ_SEED` begins elsewhere. A program that fails stays in the
//! folder for temporary files, and its name is shown.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "../../../runtime/launch/tests/it/fuzz/mutate.rs"]
mod mutate;

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::support::command::{self, Folder};
use crate::support::everything;
use mutate::Mutator;

/// Programs that every run of the tests tries.
const PROGRAMS: usize = 150;
/// How long a call may take. A build without optimisation, beside other tests, is an order of magnitude slower.
const LIMIT: Duration = Duration::from_secs(if cfg!(debug_assertions) { 120 } else { 10 });
/// How many kB of memory a call may use.
const MEMORY: u64 = 2 << 20;

/// The calls that follow on a check without errors. Tests end by themselves after a second.
const CALLS: [&[&str]; 4] = [
    &["test", "--timeout", "1", "a.tk"],
    &["test", "--timeout", "1", "--device", "sim", "a.tk"],
    &["build", "--target", "sm_90a", "--emit", "ptx", "-o", "out", "a.tk"],
    &["build", "--target", "gfx942", "--emit", "gcn", "-o", "out", "a.tk"],
];

/// The most memory that a process has used so far, in kB, where the system tells.
fn memory(child: &Child) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

/// What is wrong with a call; its exit code otherwise.
fn call(folder: &Path, args: &[&str]) -> Result<i32, String> {
    let errors = fs::File::create(folder.join("errors")).unwrap();
    let mut command = command::command(folder, args);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).spawn().unwrap();
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        let (used, time) = (memory(&child), start.elapsed());
        if used > MEMORY || time > LIMIT {
            child.kill().unwrap();
            child.wait().unwrap();
            return Err(format!("`tk {}` uses {used} kB and takes {time:?}", args.join(" ")));
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    match status.code() {
        Some(code @ 0..=2) => Ok(code),
        _other => {
            let said = fs::read_to_string(folder.join("errors")).unwrap_or_default();
            let line = said.lines().rfind(|l| l.contains("internal")).or(said.lines().last());
            Err(format!("`tk {}`: {status}: {}", args.join(" "), line.unwrap_or_default()))
        }
    }
}

/// Checks a program and does with it what can be done. Tells whether it checked.
fn try_one(folder: &Folder, source: &[u8]) -> Result<bool, String> {
    folder.write("a.tk", source);
    let path = folder.path("");
    if call(&path, &["check", "a.tk"])? != 0 {
        return Ok(false);
    }
    CALLS.iter().try_for_each(|args| call(&path, args).map(|_| ()))?;
    Ok(true)
}

/// Every program of the repository: files, blocks of the specification, examples of operations.
fn texts() -> Vec<Vec<u8>> {
    let folders = ["examples", "stdlib", "stdlib/nn", "tests/device", "tests/checked", "tests/lower"];
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut out: Vec<Vec<u8>> = everything::programs().into_iter().map(|p| p.text.into_bytes()).collect();
    for folder in folders {
        let mut paths: Vec<_> =
            fs::read_dir(root.join(folder)).unwrap().flatten().map(|e| e.path()).collect();
        paths.sort();
        let sources = paths.iter().filter(|p| p.extension().is_some_and(|e| e == "tk"));
        out.extend(sources.map(|p| fs::read(p).unwrap()));
    }
    out
}

#[test]
fn changed_programs() {
    let number = |name: &str, default| std::env::var(name).map_or(default, |s| s.parse().unwrap());
    let (count, seed) = (number("TK_MUTATED", PROGRAMS), number("TK_FUZZ_SEED", 0) as u64);
    let texts = texts();
    let mutator = Mutex::new(Mutator::gentle(seed, &texts));
    let (begun, whole) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let found = Mutex::new(vec![]);
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (mutator, begun, whole, found) = (&mutator, &begun, &whole, &found);
            scope.spawn(move || {
                let folder = Folder::new(&format!("mutated-{seed}-{thread}"));
                while begun.fetch_add(1, Ordering::Relaxed) < count {
                    let source = mutator.lock().unwrap().next();
                    match try_one(&folder, &source) {
                        Ok(checked) => {
                            whole.fetch_add(checked.into(), Ordering::Relaxed);
                        }
                        Err(why) => {
                            let name = format!("tk-mutated-{:016x}.tk", mutate::hash(&source));
                            let path = std::env::temp_dir().join(name);
                            fs::write(&path, source).unwrap();
                            found.lock().unwrap().push(format!("{}: {why}", path.display()));
                        }
                    }
                }
            });
        }
    });
    println!("{count} programs, of which {} check", whole.into_inner());
    let found = found.into_inner().unwrap();
    assert!(found.is_empty(), "{}", found.join("\n"));
}
