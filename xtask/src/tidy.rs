//! The checks of `cargo xtask tidy`: house rules that no compiler checks.
//!
//! Guarantees that every problem is one line that begins with the file it is in.

use std::path::Path;

use crate::source::{self, File};
use crate::{arrows, edges, names, ops, safety, schema, words};

/// Lines of a Rust file. Longer ones are split by concept.
const FILE_LINES: usize = 600;
/// Lines of a function.
const FUNCTION_LINES: usize = 80;
/// Tables, which may be long: a row is read on its own.
const TABLES: &[&str] = &["lang/ops/src/rows/"];
/// The modules that `lang` must not use: files come in through `tk_sema::Loader`.
const IO: &[&str] = &["std::fs", "std::net", "std::process", "std::env"];

/// Runs every check.
pub fn run(root: &Path) -> Result<(), Vec<String>> {
    let rust = source::files(root, "", "rs");
    let mut problems = edges::check(root);
    problems.extend(arrows::check(root));
    problems.extend(names::check(root));
    for file in &rust {
        problems.extend(opening(file));
        problems.extend(length(file));
        problems.extend(functions(file));
        problems.extend(io(file));
        problems.extend(warp_width(file));
    }
    problems.extend(words::check(root, &rust));
    problems.extend(safety::check(root, &rust));
    problems.extend(untested(root, &rust));
    problems.extend(codes(root));
    problems.extend(ops::check(root));
    problems.extend(schema::check(root));
    if problems.is_empty() {
        println!("tidy: {} Rust files, {} codes", rust.len(), tk_syntax::codes::ALL.len());
        Ok(())
    } else {
        Err(problems)
    }
}

fn opening(file: &File) -> Option<String> {
    (!file.text.starts_with("//!")).then(|| {
        format!("{}: does not open with `//!`: what it computes or guarantees, and may assume", file.path)
    })
}

fn is_table(file: &File) -> bool {
    TABLES.iter().any(|t| file.path.starts_with(t))
}

fn length(file: &File) -> Option<String> {
    let lines = file.text.lines().count();
    (lines > FILE_LINES && !is_table(file))
        .then(|| format!("{}: has {lines} lines; split it by concept ({FILE_LINES} at most)", file.path))
}

/// Functions that are too long. Relies on the formatter: the line that closes a function is indented as the one that
/// begins it.
fn functions(file: &File) -> Vec<String> {
    if is_table(file) {
        return vec![];
    }
    let lines: Vec<&str> = file.text.lines().collect();
    let mut problems = vec![];
    for (start, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let seen = code.strip_prefix("pub(").and_then(|c| c.split_once(") ")).map_or(code, |(_, rest)| rest);
        // What is after a colon is a type.
        let words = seen.split(['(', '<', ':']).next().unwrap_or("");
        if !words.split_whitespace().any(|w| w == "fn")
            || code.starts_with("//")
            || code.ends_with([';', '}'])
        {
            continue;
        }
        let indent = " ".repeat(line.len() - code.len());
        let closing = format!("{indent}}}");
        // A declaration of a foreign function has no body.
        let declared =
            |l: &str| l.strip_prefix(&indent).is_some_and(|l| l.starts_with(')') && l.ends_with(';'));
        let end = lines.iter().skip(start).position(|l| *l == closing || declared(l));
        let count = end.map_or(0, |n| n + 1);
        if count > FUNCTION_LINES {
            problems.push(format!(
                "{}:{}: function of {count} lines ({FUNCTION_LINES} at most)",
                file.path,
                start + 1
            ));
        }
    }
    problems
}

fn io(file: &File) -> Vec<String> {
    let mut parts = file.path.split('/');
    if (parts.next(), parts.nth(1)) != (Some("lang"), Some("src")) {
        return vec![];
    }
    let used =
        code_lines(file).flat_map(|(n, line)| IO.iter().filter(|i| line.contains(*i)).map(move |i| (n, i)));
    used.map(|(n, i)| format!("{}:{n}: `lang` does no IO, but this line uses {i}", file.path)).collect()
}

/// A literal 32 or 64 beside a warp or a lane: ask the `TargetSpec`.
fn warp_width(file: &File) -> Vec<String> {
    if !(file.path.starts_with("codegen/") || file.path.starts_with("lang/tile/"))
        || file.path.contains("/target/")
        // The file of the facts.
        || file.path.ends_with("codegen/gpu/src/target/spec.rs")
    {
        return vec![];
    }
    let literal =
        |line: &str| line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|w| w == "32" || w == "64");
    let about_warps = |line: &str| line.contains("warp") || line.contains("lanes");
    code_lines(file)
        .filter(|(_, line)| about_warps(line) && literal(line))
        .map(|(n, _)| format!("{}:{n}: literal warp width; ask the TargetSpec", file.path))
        .collect()
}

/// Lines that are no comments, numbered from 1.
fn code_lines(file: &File) -> impl Iterator<Item = (usize, &str)> {
    file.text.lines().enumerate().map(|(i, l)| (i + 1, l)).filter(|(_, l)| !l.trim_start().starts_with("//"))
}

/// Tests in the sources of a library whose manifest says that there are none: Cargo would not run them.
fn untested(root: &Path, rust: &[File]) -> Vec<String> {
    let manifests = source::files(root, "", "toml");
    let without =
        manifests.iter().filter(|m| m.text.contains("\n[lib]\n") && m.text.contains("\ntest = false\n"));
    let folders: Vec<String> =
        without.filter_map(|m| m.path.strip_suffix("Cargo.toml")).map(|f| format!("{f}src/")).collect();
    let inside = rust.iter().filter(|f| folders.iter().any(|folder| f.path.starts_with(folder)));
    inside
        .filter(|f| code_lines(f).any(|(_, line)| line.trim() == "#[test]"))
        .map(|f| format!("{}: its tests do not run: the manifest has `test = false`", f.path))
        .collect()
}

/// Every code has a page, every page a code.
fn codes(root: &Path) -> Vec<String> {
    let pages = source::files(root, "spec/errors", "md");
    let page_of = |code: &str| format!("spec/errors/{code}.md");
    let known = |path: &str| tk_syntax::codes::ALL.iter().any(|(c, _)| page_of(c.0) == path);
    let missing = tk_syntax::codes::ALL
        .iter()
        .filter(|(c, _)| !pages.iter().any(|p| p.path == page_of(c.0)))
        .map(|(c, title)| format!("{}: is missing ({title})", page_of(c.0)));
    let unknown = pages
        .iter()
        .filter(|p| p.path.contains("/errors/E") || p.path.contains("/errors/W"))
        .filter(|p| !known(&p.path))
        .map(|p| format!("{}: the catalogue has no such code", p.path));
    missing.chain(unknown).collect()
}
