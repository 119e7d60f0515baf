//! The fuzz targets of `fuzz/targets.rs` over their corpus, over the programs of this repository, and over changes of
//! both with a fixed seed, so that neither targets nor corpus rot where no fuzzer runs.
//!
//! `TK_FUZZ_SECONDS=600 cargo test --release --package tk-runtime --test it fuzz::` goes on changing for that long, with
//! other seeds; `TK_FUZZ_SEED` begins elsewhere. An input that fails is written to a file whose name is shown.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails where these fail")]

mod mutate;
#[path = "../../../../../fuzz/targets.rs"]
mod targets;

use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use mutate::Mutator;

type Target = (&'static str, fn(&[u8]));

const PARSE: Target = ("parse", targets::parse);
const CHECK: Target = ("check", targets::check);
const IR: Target = ("ir", targets::ir);
const BUNDLE: Target = ("bundle", targets::bundle);

/// Changed inputs that every run of the tests tries, for each target.
const CHANGES: [(Target, usize); 4] = [(PARSE, 600), (CHECK, 500), (IR, 1500), (BUNDLE, 3000)];
/// No input may take longer; most take a few milliseconds.
const LIMIT: Duration = Duration::from_secs(20);
/// As much stack as the command gives the compiler.
const STACK: usize = 64 << 20;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files below a folder, in order.
fn files(folder: &Path, extension: Option<&str>) -> Vec<PathBuf> {
    let mut out = vec![];
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            out.extend(files(&path, extension));
        } else if extension.is_none()
            || path.extension().is_some_and(|e| Some(e) == extension.map(AsRef::as_ref))
        {
            out.push(path);
        }
    }
    out
}

/// The corpus of a target and the files of the repository that it reads.
fn inputs(target: Target) -> Vec<(String, Vec<u8>)> {
    let sources: &[(&str, &str)] = match target.0 {
        "bundle" => &[],
        "ir" => &[("tests/ir", "tir"), ("tests/lower", "tir")],
        _ => &[("examples", "tk"), ("stdlib", "tk"), ("tests/diagnostics", "tk"), ("tests/lower", "tk")],
    };
    let mut paths = files(&root().join("fuzz/corpus").join(target.0), None);
    sources.iter().for_each(|(folder, extension)| paths.extend(files(&root().join(folder), Some(extension))));
    paths.into_iter().map(|p| (p.display().to_string(), std::fs::read(&p).unwrap())).collect()
}

/// Where an input is kept that is being tried by a thread, or that failed.
fn kept(target: Target, what: &str) -> PathBuf {
    std::env::temp_dir().join(format!("tk-fuzz-{}-{what}", target.0))
}

/// Tries an input on a stack of its own size. Gives the panic; an input that takes too long ends the test.
fn try_one(target: Target, name: &str, data: &[u8]) -> Result<(), String> {
    let begin = Instant::now();
    let failed = std::thread::scope(|scope| {
        let run = || catch_unwind(|| target.1(data)).is_err();
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, run).unwrap();
        while !thread.is_finished() {
            if begin.elapsed() > LIMIT {
                let path = kept(target, "slow");
                std::fs::write(&path, data).unwrap();
                eprintln!("{name} takes longer than {LIMIT:?}: {}", path.display());
                std::process::exit(1);
            }
            std::thread::park_timeout(Duration::from_micros(200));
        }
        thread.join().unwrap()
    });
    if !failed {
        return Ok(());
    }
    let path = kept(target, &format!("{:016x}", mutate::hash(data)));
    std::fs::write(&path, data).unwrap();
    Err(format!("{name}: {}", path.display()))
}

#[test]
fn the_corpus() {
    for target in [PARSE, CHECK, IR, BUNDLE] {
        for (name, data) in inputs(target) {
            try_one(target, &name, &data).unwrap();
        }
    }
}

#[test]
fn changes_of_the_corpus() {
    let seed = std::env::var("TK_FUZZ_SEED").map_or(0, |s| s.parse().unwrap());
    let seconds = std::env::var("TK_FUZZ_SECONDS").ok().map(|s| Duration::from_secs(s.parse().unwrap()));
    let found = Mutex::new(vec![]);
    for (target, count) in CHANGES {
        let texts: Vec<Vec<u8>> = inputs(target).into_iter().map(|(_, data)| data).collect();
        let begin = Instant::now();
        let mut mutator = Mutator::new(seed, &texts);
        let goes_on = |i: usize| seconds.map_or(i < count, |s| begin.elapsed() < s / CHANGES.len() as u32);
        let mut i = 0;
        while goes_on(i) {
            let data = mutator.next();
            if seconds.is_some() {
                // What overflows the stack ends the process: the input is there then.
                std::fs::write(kept(target, "current"), &data).unwrap();
            }
            let name = format!("change {i} of seed {seed}");
            found.lock().unwrap().extend(try_one(target, &name, &data).err());
            i += 1;
        }
        eprintln!("{}: {i} inputs in {:?}", target.0, begin.elapsed());
    }
    let found = found.into_inner().unwrap();
    assert!(found.is_empty(), "{}", found.join("\n"));
}
