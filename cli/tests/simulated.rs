//! Runs the `tk` blocks of the specification, of the pages of the codes, and of the doc comments of the standard library
//! on the simulated target, with warps of both widths: each must say what it says on the interpreter, value by value and
//! code by code. So the examples of all rows of the op table run there too: they stand in `spec/ops.md`.
#![cfg(feature = "llvm")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[allow(dead_code, reason = "another test writes pages")]
#[path = "support/markdown.rs"]
mod markdown;
#[allow(dead_code, reason = "another test shows diagnostics")]
#[path = "support/program.rs"]
mod program;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use tk_layout::TargetSpec;
use tk_layout::spec::{SIM_32, SIM_64};
use tk_runtime::device::Device;

use markdown::Block;
use program::Report;

/// What checked mode alone reports: a device may do anything there.
const UNSPECIFIED: [&str; 8] = ["E0709", "E0710", "E0711", "E0712", "E0713", "E0714", "E0715", "E0716"];

/// What asks for the target says something else on another one.
fn is_specified(block: &Block) -> bool {
    !block.text.contains("target.")
        && UNSPECIFIED.iter().all(|code| !block.text.contains(&format!("assert_error \"{code}\"")))
}

/// The blocks that are programs of their own, each with its place.
fn programs() -> Vec<(String, Block)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = vec![];
    for (folder, extension) in [("spec", "md"), ("spec/errors", "md"), ("stdlib", "tk"), ("stdlib/nn", "tk")]
    {
        let mut paths: Vec<_> =
            fs::read_dir(root.join(folder)).unwrap().flatten().map(|e| e.path()).collect();
        paths.sort();
        for path in paths.iter().filter(|p| p.extension().is_some_and(|e| e == extension)) {
            let text = fs::read_to_string(path).unwrap();
            let blocks =
                if extension == "md" { markdown::blocks(&text) } else { markdown::doc_blocks(&text) };
            let name = format!("{folder}/{}", path.file_name().unwrap().to_string_lossy());
            let tested = |b: &Block| b.info == "tk" && b.text.contains("test \"") && is_specified(b);
            let own = blocks.into_iter().filter(tested);
            found.extend(own.map(|b| (format!("{name}:{}", b.line), b)));
        }
    }
    found
}

/// What a report says, without what depends on how it came about.
fn said(report: &Report) -> (Vec<(usize, &'static str, String)>, &str) {
    let line = |d: &tk_syntax::Diagnostic| report.sources.position(d.primary.span).1;
    let said = report.diagnostics.iter().map(|d| (line(d), d.code.0, d.message.clone()));
    (said.collect(), &report.output)
}

/// What is not as on the interpreter.
fn differences(spec: &'static TargetSpec) -> Vec<String> {
    let mut problems = vec![];
    for (seed, (place, block)) in programs().iter().enumerate() {
        let expected = program::run_on(&block.text, None);
        let device: Arc<dyn Device> = Arc::new(tk_driver::Simulator::new(spec, seed as u64));
        let found = program::run_on(&block.text, Some(&device));
        if said(&expected) != said(&found) {
            problems.push(format!(
                "{place}: the interpreter says\n{}{}and the simulated target\n{}{}",
                expected.output,
                expected.rendered(),
                found.output,
                found.rendered()
            ));
        }
    }
    problems
}

/// On a stack as large as that of the command.
fn on_large_stack(spec: &'static TargetSpec) {
    let work = move || differences(spec);
    let problems = std::thread::Builder::new().stack_size(64 << 20).spawn(work).unwrap().join().unwrap();
    assert!(problems.is_empty(), "{} problems\n\n{}", problems.len(), problems.join("\n\n"));
}

#[test]
fn warps_of_the_first_width_say_what_the_interpreter_says() {
    on_large_stack(&SIM_32);
}

#[test]
fn warps_of_the_second_width_say_what_the_interpreter_says() {
    on_large_stack(&SIM_64);
}
