//! Runs every `tk` block of the specification, of the guides and lessons, of the pages of the codes, and of the doc comments
//! of the standard library.
//!
//! - A plain block is a file of its own: it must check, and its `test` blocks must pass. A line with the comment
//!   `// error: E0304` or `// warning: W0201` (or several codes, with commas) must be where exactly these diagnostics
//!   are reported; nothing else may be. Warnings count only in blocks that announce one: an excerpt need not use all
//!   that it declares. An `output` block directly after it holds what `static_print` and `print` say.
//! - A `tk fragment` block holds statements: it is only checked, in the body of a kernel without parameters.
//! - The first `tk` block of a page of `spec/errors` gives exactly one diagnostic, of the page's code; warnings count on
//!   the pages of warnings. The `text` block
//!   after it is that diagnostic as rendered; `TK_BLESS=1` writes it. An error of a launch may be expected with
//!   `assert_error` instead. The other `tk` blocks of the page are fixed: they check, and their tests pass. When the
//!   diagnostic offers a fix, applying the first one makes the example check.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::markdown::{self, Block};
use crate::support::program::{self, Report};
use tk_snapshot::Snapshots;

/// Codes that checking and the CPU device never give: a compiler bug, a file that cannot be read, and what
/// only shows when machine code is made or records of measurements are read.
const WITHOUT_EXAMPLE: &[&str] = &[
    "E0001", "E0002", "E0003", "E1001", "E1002", "E1003", "E1004", "E1005", "W0701", "W1001", "W1002",
    "W1003", "W1004",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The files of a folder with an extension, sorted: name without extension, path, contents.
fn pages(folder: &str, extension: &str) -> Vec<(String, PathBuf, String)> {
    let mut found = vec![];
    for entry in fs::read_dir(root().join(folder)).unwrap().flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|e| e == extension) {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let text = fs::read_to_string(&path).unwrap();
            found.push((name, path, text));
        }
    }
    found.sort();
    found
}

/// Runs `work` on a stack as large as that of the command, and fails with every problem it found.
fn on_large_stack(work: fn() -> Vec<String>) {
    let thread = std::thread::Builder::new().stack_size(64 << 20).spawn(work).unwrap();
    let problems = thread.join().unwrap();
    assert!(problems.is_empty(), "{} problems\n\n{}", problems.len(), problems.join("\n\n"));
}

#[test]
fn every_block_of_the_chapters_runs() {
    on_large_stack(|| {
        let mut problems = vec![];
        for (name, _, page) in pages("spec", "md") {
            let blocks = markdown::blocks(&page);
            for (i, block) in blocks.iter().enumerate() {
                let output = blocks.get(i + 1).filter(|b| b.info == "output").map(|b| b.text.as_str());
                problems
                    .extend(chapter_block(block, output).map(|p| at(&format!("spec/{name}.md"), block, &p)));
            }
        }
        problems
    });
}

/// The pages of the guides.
const GUIDES: &[&str] = &[
    "README.md",
    "docs/from-triton.md",
    "docs/from-cuda.md",
    "docs/why-slow.md",
    "docs/cookbook.md",
    "docs/how-it-works.md",
];

#[test]
fn every_block_of_the_guides_runs() {
    on_large_stack(|| {
        let lessons = pages("docs/tutorial", "md").into_iter().map(|p| format!("docs/tutorial/{}.md", p.0));
        let (mut problems, mut count) = (vec![], 0);
        for name in GUIDES.iter().map(ToString::to_string).chain(lessons) {
            let page = fs::read_to_string(root().join(&name)).unwrap();
            for block in markdown::blocks(&page) {
                count += usize::from(block.info == "tk");
                problems.extend(chapter_block(&block, None).map(|p| at(&name, &block, &p)));
            }
        }
        assert!(count > 60, "only {count} blocks");
        problems
    });
}

#[test]
fn exercises_check_and_fail_until_they_are_solved() {
    on_large_stack(|| {
        let mut problems = vec![];
        let (exercises, solutions) =
            (pages("docs/tutorial/exercises", "tk"), pages("docs/tutorial/solutions", "tk"));
        let names = |all: &[(String, PathBuf, String)]| all.iter().map(|e| e.0.clone()).collect::<Vec<_>>();
        assert_eq!(names(&exercises), names(&solutions));
        assert!(exercises.len() >= 10, "only {} exercises", exercises.len());
        for (name, _, text) in exercises {
            let (checked, report) = (program::check(&text), program::run(&text).without_warnings());
            if !checked.diagnostics.is_empty() {
                problems.push(format!("{name} does not check:\n{}", checked.rendered()));
            } else if report.diagnostics.is_empty() {
                problems.push(format!("the tests of {name} pass before it is solved"));
            }
            if !text.contains("TODO") {
                problems.push(format!("{name} has nothing to complete"));
            }
        }
        for (name, _, text) in solutions {
            let report = program::run(&text);
            if !report.diagnostics.is_empty() {
                problems.push(format!("the solution of {name}:\n{}", report.rendered()));
            }
        }
        problems
    });
}

#[test]
fn every_example_of_the_standard_library_runs() {
    on_large_stack(|| {
        let mut problems = vec![];
        for folder in ["stdlib", "stdlib/nn"] {
            for (name, _, source) in pages(folder, "tk") {
                for block in markdown::doc_blocks(&source) {
                    let problem = chapter_block(&block, None);
                    problems.extend(problem.map(|p| at(&format!("{folder}/{name}.tk"), &block, &p)));
                }
            }
        }
        problems
    });
}

#[test]
fn every_page_of_a_code_shows_it() {
    on_large_stack(|| {
        let (mut problems, mut messages) = (vec![], Snapshots::new());
        for (code, path, page) in pages("spec/errors", "md") {
            if tk_syntax::codes::find(&code).is_some() {
                let found = error_page(&code, &path, &page, &mut messages);
                problems.extend(
                    found.into_iter().map(|(block, p)| at(&format!("spec/errors/{code}.md"), &block, &p)),
                );
            }
        }
        if problems.is_empty() {
            messages.finish();
        }
        problems
    });
}

fn at(file: &str, block: &Block, problem: &str) -> String {
    format!("{file}:{}: {}", block.line, problem.trim_end())
}

/// What is wrong with a block of a chapter.
fn chapter_block(block: &Block, output: Option<&str>) -> Option<String> {
    let words: Vec<&str> = block.info.split_whitespace().collect();
    let report = match words.as_slice() {
        ["tk"] => program::run(&block.text),
        ["tk", "fragment"] => {
            // On the line of the block's first statement, so that line numbers stay.
            program::check(&format!("kernel fragment() {{ {}}}\n", block.text))
        }
        ["tk", ..] => return Some(format!("there is no rule for blocks marked `{}`", block.info)),
        _ => return None,
    };
    let report = if block.text.contains(WARNING) { report } else { report.without_warnings() };
    let expected = expected(&block.text);
    let (missing, surplus) = difference(&expected, &report.places(&expected));
    if !missing.is_empty() || !surplus.is_empty() {
        let list = |places: &[(usize, &str)]| {
            places.iter().map(|(l, c)| format!("{c} on line {l}")).collect::<Vec<_>>().join(", ")
        };
        return Some(format!(
            "expected and not reported: [{}]; reported and not expected: [{}]\n{}",
            list(&missing),
            list(&surplus),
            report.rendered()
        ));
    }
    match output {
        Some(text) if text != report.output => {
            Some(format!("the output is\n{}where the page says\n{text}", report.output))
        }
        Some(_) | None => None,
    }
}

/// What announces a warning.
const WARNING: &str = "// warning:";

/// The lines, from 1, and the codes that the comments of a block announce, sorted.
fn expected(text: &str) -> Vec<(usize, &str)> {
    let mut found = vec![];
    for (i, line) in text.lines().enumerate() {
        let announced = line.split_once("// error:").or_else(|| line.split_once(WARNING));
        let Some((_, codes)) = announced else { continue };
        found.extend(codes.split(',').filter_map(|c| c.split_whitespace().next()).map(|c| (i + 1, c)));
    }
    found.sort_unstable();
    found
}

type Places<'a> = Vec<(usize, &'a str)>;

/// What is only in the first list, and what only in the second; each entry counts as often as it occurs.
fn difference<'a>(expected: &[(usize, &'a str)], found: &[(usize, &'a str)]) -> (Places<'a>, Places<'a>) {
    let mut surplus = found.to_vec();
    let missing = expected.iter().filter(|e| match surplus.iter().position(|f| f == *e) {
        Some(i) => {
            surplus.remove(i);
            false
        }
        None => true,
    });
    let missing = missing.copied().collect();
    (missing, surplus)
}

/// What is wrong with a page of `spec/errors`, with the block where it shows.
fn error_page(code: &str, path: &Path, page: &str, messages: &mut Snapshots) -> Vec<(Block, String)> {
    let blocks = markdown::blocks(page);
    let no_block = Block { info: String::new(), text: String::new(), line: 1 };
    let Some(failing) = blocks.first().filter(|b| b.info == "tk") else {
        let exempt = WITHOUT_EXAMPLE.contains(&code);
        return if exempt { vec![] } else { vec![(no_block, "does not begin with a `tk` block".into())] };
    };
    let relevant = |report: Report| if code.starts_with('W') { report } else { report.without_warnings() };
    let report = relevant(program::run(&failing.text));
    let expected_by_itself = failing.text.contains(&format!("assert_error \"{code}\""));
    if expected_by_itself && report.diagnostics.is_empty() {
        return mended(&blocks, failing, &relevant);
    }
    let [diagnostic] = report.diagnostics.as_slice() else {
        let problem =
            format!("gives {} diagnostics instead of one\n{}", report.diagnostics.len(), report.rendered());
        return vec![(failing.clone(), problem)];
    };
    if diagnostic.code.0 != code {
        return vec![(
            failing.clone(),
            format!("gives {} instead of {code}\n{}", diagnostic.code, report.rendered()),
        )];
    }
    let mut problems = vec![];
    if let Some(fix) = diagnostic.fixes.first() {
        let mended = tk_syntax::diag::apply(&failing.text, fix);
        let after = relevant(program::check(&mended));
        if !after.diagnostics.is_empty() {
            let problem = format!("the fix \"{}\" gives\n{mended}{}", fix.title, after.rendered());
            problems.push((failing.clone(), problem));
        }
    }
    let rendered = trimmed(&report.rendered());
    match blocks.get(1).filter(|b| b.info == "text") {
        None => problems.push((failing.clone(), "is not followed by a `text` block with the message".into())),
        Some(shown) if trimmed(&shown.text) != rendered => {
            messages.check(path, &markdown::with_block(page, shown, &rendered));
        }
        Some(_) => {}
    }
    problems.extend(mended(&blocks, failing, &relevant));
    problems
}

/// What is wrong with the fixed examples of a page.
fn mended(blocks: &[Block], failing: &Block, relevant: &dyn Fn(Report) -> Report) -> Vec<(Block, String)> {
    let mut problems = vec![];
    let fixed: Vec<&Block> = blocks.iter().skip(1).filter(|b| b.info == "tk").collect();
    if fixed.is_empty() {
        problems.push((failing.clone(), "no second `tk` block shows the example mended".into()));
    }
    for block in fixed {
        let after = relevant(program::run(&block.text));
        if !after.diagnostics.is_empty() {
            problems.push((block.clone(), format!("the mended example gives\n{}", after.rendered())));
        }
    }
    problems
}

/// Without spaces at the ends of lines and empty lines at the end.
fn trimmed(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().map(str::trim_end).collect();
    lines.iter().map(|l| format!("{l}\n")).collect()
}
