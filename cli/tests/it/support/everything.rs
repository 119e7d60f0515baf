//! The list of programs that must give the results of the interpreter on every device.
//!
//! The `tk` blocks of the specification, of the pages of the codes, and of the doc comments of the standard library; the
//! example of each operation as a kernel, since a `test` block computes on the interpreter; and the files of `tests/device`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tk_ops::Op;
use tk_ops::reference::example;
use tk_ops::rows::rows;
use tk_ops::table::Receiver;
use tk_runtime::device::Device;

use super::markdown::{self, Block};
use super::program::{self, Report};

/// What checked mode alone reports: a device may do anything there.
const UNSPECIFIED: [&str; 8] = ["E0709", "E0710", "E0711", "E0712", "E0713", "E0714", "E0715", "E0716"];

/// A program and its place.
pub struct Program {
    pub place: String,
    pub text: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// What asks for the target says something else on another one.
fn is_specified(block: &Block) -> bool {
    !block.text.contains("target.")
        && UNSPECIFIED.iter().all(|code| !block.text.contains(&format!("assert_error \"{code}\"")))
}

/// The files of a folder with an extension: name, contents.
fn files(folder: &str, extension: &str) -> Vec<(String, String)> {
    let mut paths: Vec<_> = fs::read_dir(root().join(folder)).unwrap().flatten().map(|e| e.path()).collect();
    paths.sort();
    let named = |p: &PathBuf| format!("{folder}/{}", p.file_name().unwrap().to_string_lossy());
    let found = paths.iter().filter(|p| p.extension().is_some_and(|e| e == extension));
    found.map(|p| (named(p), fs::read_to_string(p).unwrap())).collect()
}

/// The blocks that are programs of their own.
pub fn blocks() -> Vec<Program> {
    let mut found = vec![];
    for (folder, extension) in [("spec", "md"), ("spec/errors", "md"), ("stdlib", "tk"), ("stdlib/nn", "tk")]
    {
        for (name, text) in files(folder, extension) {
            let blocks =
                if extension == "md" { markdown::blocks(&text) } else { markdown::doc_blocks(&text) };
            let tested = |b: &Block| b.info == "tk" && b.text.contains("test \"") && is_specified(b);
            let own = blocks.into_iter().filter(tested);
            found.extend(own.map(|b| Program { place: format!("{name}:{}", b.line), text: b.text }));
        }
    }
    found
}

const NEAR: &str = "\
fn near(a: tile[f32, 4], b: tile[f32, 4]) {
    assert(abs(a - b) <= 1e-8 + 1e-5 * abs(b));
}

";

/// The examples of operations that a kernel may do, each as the body of one.
pub fn operations() -> Vec<Program> {
    let mut found = vec![];
    for row in rows() {
        let of_tests = matches!(row.receiver, Receiver::Test | Receiver::Buffer);
        if of_tests || matches!(row.op, Op::Host(_)) || row.example.trim_start().starts_with("kernel") {
            continue;
        }
        let (name, file) = (format!("example of `{}`", row.name), example(row));
        let Some((_, body)) = file.split_once('\n') else { continue };
        // `assert_close` is a function of tests; this is what it means.
        let (near, body) = match body.contains("assert_close(") {
            true => (NEAR, body.replace("assert_close(", "near(")),
            false => ("", body.to_string()),
        };
        let kernel = format!("{near}kernel example() {{\n{body}");
        let text = format!("{kernel}\ntest \"{}\" {{\n    example();\n}}\n", row.name);
        found.push(Program { place: name, text });
    }
    found
}

/// Programs that are written for devices.
pub fn for_devices() -> Vec<Program> {
    files("tests/device", "tk").into_iter().map(|(place, text)| Program { place, text }).collect()
}

/// All of them.
pub fn programs() -> Vec<Program> {
    [blocks(), operations(), for_devices()].into_iter().flatten().collect()
}

/// What a report says, without what depends on how it came about: of what fails at the same time a device may find
/// another one.
fn said(report: &Report) -> (Vec<(usize, &'static str)>, &str) {
    let line = |d: &tk_syntax::Diagnostic| report.sources.position(d.primary.span).1;
    let said = report.diagnostics.iter().map(|d| (line(d), d.code.0));
    (said.collect(), &report.output)
}

/// What a device does not do as the interpreter does, but for programs that are left out; it is asked for by the number of
/// the program.
pub fn differences(
    device: impl Fn(u64) -> Arc<dyn Device>,
    left_out: impl Fn(&Program) -> bool,
) -> Vec<String> {
    let mut problems = vec![];
    for (number, program) in (0..).zip(programs()).filter(|(_, p)| !left_out(p)) {
        let expected = program::run_on(&program.text, None);
        let found = program::run_on(&program.text, Some(&device(number)));
        if said(&expected) != said(&found) {
            problems.push(format!(
                "{}: the interpreter says\n{}{}and the device\n{}{}",
                program.place,
                expected.output,
                expected.rendered(),
                found.output,
                found.rendered()
            ));
        }
    }
    problems
}

/// Enough for programs that nest deep.
pub const STACK: usize = 64 << 20;

/// Runs `work` on a stack as large as that of the command, and fails with every problem that it found.
pub fn on_large_stack(work: impl FnOnce() -> Vec<String> + Send + 'static) {
    let problems = std::thread::Builder::new().stack_size(STACK).spawn(work).unwrap().join().unwrap();
    assert!(problems.is_empty(), "{} problems\n\n{}", problems.len(), problems.join("\n\n"));
}
