//! Checks that sources of `codegen` and the IR of its tests use the words of `docs/architecture.md`.
//!
//! Guarantees that none contains a retired word, alone or as a part of an identifier.

use std::path::Path;

use crate::source::{self, File};

const PAGE: &str = "docs/architecture.md";

/// The problems.
pub fn check(root: &Path, rust: &[File]) -> Vec<String> {
    let page = match source::read(root, PAGE) {
        Ok(page) => page,
        Err(problem) => return vec![problem],
    };
    let retired: Vec<(&str, &str)> = page
        .lines()
        .skip_while(|l| !l.starts_with("| retired |"))
        .skip(2)
        .map_while(|l| l.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "))
        .collect();
    if retired.is_empty() {
        return vec![format!("{PAGE}: no table begins with `| retired |`")];
    }
    let files = rust.iter().filter(|f| f.path.starts_with("codegen/") && f.path.contains("/src/"));
    let ir = source::files(root, "tests/ir", "tir");
    files.chain(&ir).flat_map(|f| in_file(f, &retired)).collect()
}

fn in_file(file: &File, retired: &[(&str, &str)]) -> Vec<String> {
    let mut problems = vec![];
    for (n, line) in file.text.lines().enumerate() {
        let apart = apart(line);
        let words: Vec<&str> =
            apart.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
        for (word, instead) in retired {
            let parts: Vec<&str> = word.split(' ').collect();
            if words.windows(parts.len()).any(|w| w == parts) {
                problems.push(format!("{}:{}: `{word}` is retired: {instead} ({PAGE})", file.path, n + 1));
            }
        }
    }
    problems
}

/// A line in lower case, with a space before each capital letter after a small one: `OneName` is `one name`.
fn apart(line: &str) -> String {
    let mut out = String::new();
    let mut is_small = false;
    for c in line.chars() {
        if c.is_uppercase() && is_small {
            out.push(' ');
        }
        is_small = c.is_lowercase();
        out.extend(c.to_lowercase());
    }
    out
}
