//! The instructions of listed kernels, a column for each target: `tests/machine/instructions.txt`. TK_BLESS=1 writes it anew.
//!
//! What is counted is the text for the assembler, so that no assembler is needed, by instructions that say how a kernel
//! moves data and multiplies; arithmetic is not listed, since LLVM has the last word there.
#![cfg(all(unix, feature = "llvm"))]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[allow(dead_code, reason = "shared by several tests")]
#[path = "support/command.rs"]
mod command;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;

use command::Folder;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const TARGETS: [&str; 2] = ["sm_80", "sm_90a"];

/// How the instructions begin that are counted.
const COUNTED: [&str; 11] = [
    "atom.",
    "bar.",
    "cp.async",
    "ld.global",
    "ld.shared",
    "ldmatrix",
    "mma.",
    "red.",
    "shfl.",
    "st.global",
    "st.shared",
];

/// How often each instruction stands in a text; predicates and braces in front of it do not count.
fn counts(text: &str) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for statement in text.split([';', '{', '\n']) {
        let mut words = statement.split_whitespace().skip_while(|w| w.starts_with('@'));
        let Some(name) = words.next() else { continue };
        if COUNTED.iter().any(|c| name.starts_with(c)) {
            *found.entry(name.trim_end_matches(',').to_string()).or_insert(0) += 1;
        }
    }
    found
}

/// The column of a target: the aligned variant of the only kernel of a file.
fn column(folder: &Folder, line: &str, target: &str) -> BTreeMap<String, usize> {
    let mut words = line.split_whitespace();
    let file = format!("{ROOT}/{}", words.next().unwrap());
    let mut args = vec!["build", file.as_str(), "--target", target, "--emit", "ptx", "-o", "out"];
    args.extend(words);
    folder.tk(&args).code(0);
    let out = folder.path("out");
    let texts: Vec<_> = fs::read_dir(&out).unwrap().flatten().map(|e| e.path()).collect();
    let aligned = texts.iter().find(|p| p.to_string_lossy().contains(".aligned."));
    let text = fs::read_to_string(aligned.unwrap_or(&texts[0])).unwrap();
    fs::remove_dir_all(out).unwrap();
    counts(&text)
}

#[test]
fn kernels_have_the_instructions_that_are_listed() {
    let path = format!("{ROOT}/tests/machine/instructions.txt");
    let old = fs::read_to_string(&path).unwrap();
    let folder = Folder::new("machine-instructions");
    let mut new = String::new();
    for line in old.lines().filter(|l| !l.starts_with(' ')) {
        writeln!(new, "{line}").unwrap();
        if line.starts_with('#') || line.is_empty() {
            continue;
        }
        let columns = TARGETS.map(|t| column(&folder, line, t));
        let names: Vec<&String> = columns.iter().flat_map(BTreeMap::keys).collect();
        let names: std::collections::BTreeSet<&String> = names.into_iter().collect();
        writeln!(new, "    {:<52}{:>8}{:>8}", "", TARGETS[0], TARGETS[1]).unwrap();
        for name in names {
            let n = |i: usize| columns[i].get(name).copied().unwrap_or(0);
            writeln!(new, "    {name:<52}{:>8}{:>8}", n(0), n(1)).unwrap();
        }
    }
    if std::env::var("TK_BLESS").is_ok() {
        fs::write(path, new).unwrap();
        return;
    }
    assert_eq!(old, new, "if the change is meant: TK_BLESS=1");
}
