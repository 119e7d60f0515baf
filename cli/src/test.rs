//! Owns `tk test FILE..`: runs `test` blocks, shows failures, counts.

use std::time::Instant;

use tk_runtime::Session;
use tk_runtime::files::Files;
use tk_syntax::Diagnostic;

use crate::args::{DeviceName, TestArgs};
use crate::front;
use crate::terminal::{Failure, Outcome, Terminal};

/// How many tests ended how.
#[derive(Clone, Copy, Default)]
struct Count {
    passed: usize,
    failed: usize,
    left_out: usize,
}

/// Runs the tests.
pub fn run(terminal: &Terminal, args: &TestArgs) -> Outcome {
    let files = Files::beside_program();
    let mut total = Count::default();
    for path in &args.files {
        let count = file(terminal, &files, path, args)?;
        total.passed += count.passed;
        total.failed += count.failed;
        total.left_out += count.left_out;
    }
    if total.left_out > 0 {
        terminal.data(&format!("{} left out: {}\n", plural(total.left_out, "test"), why_not(args.device)))?;
    }
    terminal.data(&format!("{} passed, {} failed\n", total.passed, total.failed))?;
    let required = std::env::var_os("TK_REQUIRE_DEVICE").is_some_and(|d| d == args.device.name());
    if total.failed > 0 {
        Err(Failure::Diagnostics)
    } else if total.left_out > 0 && required {
        Err(Failure::Sentence(format!("TK_REQUIRE_DEVICE={}: {}", args.device.name(), why_not(args.device))))
    } else {
        Ok(())
    }
}

fn why_not(device: DeviceName) -> String {
    format!("this version of tk has no device `{}`", device.name())
}

fn plural(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

/// Runs the tests of one file and prints its line.
fn file(terminal: &Terminal, files: &Files, path: &str, args: &TestArgs) -> Result<Count, Failure> {
    let start = Instant::now();
    let checked = front::check(files, path)?;
    terminal.diagnostics(&checked.sources, &checked.diagnostics);
    let errors = checked.diagnostics.iter().filter(|d| d.is_error()).count();
    if errors > 0 {
        // The tests of a file that does not check cannot run: the file counts as one that failed.
        terminal.data(&format!("FAIL  {path}  {}\n", plural(errors, "error")))?;
        return Ok(Count { failed: 1, ..Count::default() });
    }
    let mut count = Count::default();
    let session = Session::new(checked).with_timeout(args.timeout).checked_mode(!args.unchecked);
    for (test, name) in session.tests() {
        if args.filter.as_ref().is_some_and(|f| !name.contains(f.as_str())) {
            continue;
        }
        if args.device != DeviceName::Cpu {
            count.left_out += 1;
            continue;
        }
        let outcome = session.test(test);
        terminal.internal(&outcome.diagnostics)?;
        if outcome.diagnostics.iter().any(Diagnostic::is_error) {
            count.failed += 1;
            terminal.message(&format!("test \"{name}\" of {path} failed:"));
        } else {
            count.passed += 1;
        }
        terminal.diagnostics(&session.checked().sources, &outcome.diagnostics);
        if !outcome.printed.is_empty() {
            terminal.message(outcome.printed.trim_end_matches('\n'));
        }
    }
    let mut line =
        format!("{}  {path}  {} passed", if count.failed == 0 { "ok  " } else { "FAIL" }, count.passed);
    if count.failed > 0 {
        line += &format!(", {} failed", count.failed);
    }
    if count.left_out > 0 {
        line += &format!(", {} left out", count.left_out);
    }
    terminal.data(&format!("{line}  ({:.2} s)\n", start.elapsed().as_secs_f64()))?;
    Ok(count)
}
