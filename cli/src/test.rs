//! `tk test FILE..`: runs `test` blocks, shows failures, counts.

use std::time::{Duration, Instant};

use tk_runtime::{Session, TestOutcome};
use tk_sema::hir::FnId;
use tk_syntax::{Diagnostic, Renderer, escaped_name};

use crate::args::{DeviceName, TestArgs};
use crate::input::{Inputs, all_sources};
use crate::report::{self, Ended, Line, main_file};
use crate::terminal::{Failure, Outcome, Terminal};
use crate::{device, front, watch};

/// How long a test may take on the CPU: tests take seconds, and simulators are slower by orders of magnitude.
const LIMIT: Duration = Duration::from_secs(120);

/// The number of tests with each result.
#[derive(Default)]
struct Count {
    passed: usize,
    failed: usize,
    left_out: usize,
    /// Why tests were left out.
    why: Option<String>,
    /// The first mistake of the compiler.
    internal: Option<Failure>,
}

impl Count {
    fn add(&mut self, ended: Ended) {
        match ended {
            Ended::Passed => self.passed += 1,
            Ended::Failed => self.failed += 1,
            Ended::LeftOut => self.left_out += 1,
        }
    }
}

/// Runs the tests, with `--watch` again and again.
pub fn run(terminal: &Terminal, args: &TestArgs) -> Outcome {
    if args.watch {
        return watch::rounds(terminal, &args.input, &args.files, |inputs| once(terminal, args, inputs));
    }
    once(terminal, args, &Inputs::new(&args.input, args.files.iter().map(String::as_str))?)
}

/// Runs the tests of all files.
fn once(terminal: &Terminal, args: &TestArgs, inputs: &Inputs) -> Outcome {
    // A wrong setting is a mistake, not a device that is not there.
    device::settings(args.device)?;
    let mut total = Count::default();
    for path in &all_sources(&args.files)? {
        let count = file(terminal, inputs, path, args)?;
        total.passed += count.passed;
        total.failed += count.failed;
        total.left_out += count.left_out;
        total.why = total.why.or(count.why);
        total.internal = total.internal.or(count.internal);
    }
    let Count { passed, failed, left_out, why, internal } = total;
    let why = why.unwrap_or_default();
    if terminal.is_json() {
        terminal.object(&Line::Summary { passed, failed, left_out })?;
    } else {
        if left_out > 0 {
            terminal.data(&format!("{} skipped: {}\n", plural(left_out, "test"), why))?;
        }
        terminal.data(&format!("{passed} passed, {failed} failed\n"))?;
    }
    let required = std::env::var_os("TK_REQUIRE_DEVICE").is_some_and(|d| d == args.device.name());
    let refused = if let Some(failure) = internal {
        return Err(failure);
    } else if failed > 0 {
        return Err(Failure::Diagnostics);
    } else if left_out > 0 && required {
        format!("TK_REQUIRE_DEVICE={}: {why}", args.device.name())
    } else if left_out > 0 && !args.allow_missing_device {
        format!("no tests ran on `{}`: {why}; --allow-missing-device skips them", args.device.name())
    } else if passed + left_out == 0 {
        match &args.filter {
            Some(text) if args.exact => format!("no tests ran: no test is called `{text}`"),
            Some(text) => format!("no tests ran: no test name contains `{text}`"),
            None => "no tests ran: there are no tests".to_string(),
        }
    } else {
        return Ok(());
    };
    // Not the end of `--watch`: the next round may have something to test.
    terminal.failure(&refused, 2)?;
    Err(Failure::Reported)
}

fn plural(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

/// Runs the tests of one file and prints its line.
fn file(terminal: &Terminal, inputs: &Inputs, path: &str, args: &TestArgs) -> Result<Count, Failure> {
    let start = Instant::now();
    let checked = front::check(inputs, path)?;
    terminal.diagnostics(&checked.sources, &checked.diagnostics)?;
    let errors = checked.diagnostics.iter().filter(|d| d.is_error()).count();
    if errors > 0 {
        // The tests of a file that does not check cannot run: the file counts as one that failed.
        if terminal.is_json() {
            let file = main_file(&checked.sources);
            let ended = Ended::Failed;
            let test = report::Test {
                file,
                name: None,
                outcome: ended,
                place: None,
                printed: "",
                diagnostics: vec![],
            };
            terminal.object(&Line::Test(test))?;
        } else {
            terminal.data(&format!("FAIL  {}  {}\n", escaped_name(path), plural(errors, "error")))?;
        }
        return Ok(Count { failed: 1, ..Count::default() });
    }
    let mut count = Count::default();
    let opened = device::open(args.device, &checked.sources, path);
    let checked_mode = args.device == DeviceName::Cpu && !args.unchecked;
    let limit = args.timeout.or((args.device == DeviceName::Cpu).then_some(LIMIT));
    let session = Session::new(checked).with_timeout(limit).checked_mode(checked_mode);
    let (session, missing) = match opened {
        Ok(None) => (session, None),
        Ok(Some(device)) => (session.on(device), None),
        Err(why) => (session, Some(why)),
    };
    for (test, name) in session.tests() {
        let is_meant = |text: &String| if args.exact { name == text } else { name.contains(text.as_str()) };
        if !args.filter.as_ref().is_none_or(is_meant) {
            continue;
        }
        let (ended, outcome) = if missing.is_none() {
            let (outcome, internal) = attempt(terminal, || session.test(test));
            let failed = internal.is_some() || outcome.diagnostics.iter().any(Diagnostic::is_error);
            count.internal = count.internal.or(internal);
            (if failed { Ended::Failed } else { Ended::Passed }, outcome)
        } else {
            (Ended::LeftOut, TestOutcome::default())
        };
        count.add(ended);
        show(terminal, &session, (test, name), ended, &outcome)?;
    }
    if terminal.is_json() {
        return Ok(Count { why: missing, ..count });
    }
    let word = if count.failed == 0 { "ok  " } else { "FAIL" };
    let mut line = format!("{word}  {}  {} passed", escaped_name(path), count.passed);
    if count.failed > 0 {
        line += &format!(", {} failed", count.failed);
    }
    if count.left_out > 0 {
        line += &format!(", {} skipped", count.left_out);
    }
    terminal.data(&format!("{line}  ({:.2} s)\n", start.elapsed().as_secs_f64()))?;
    Ok(Count { why: missing, ..count })
}

/// Runs one test; a compiler bug in it fails this test and no other.
pub fn attempt(terminal: &Terminal, run: impl FnOnce() -> TestOutcome) -> (TestOutcome, Option<Failure>) {
    match crate::caught(run) {
        Ok(outcome) => {
            let internal = terminal.internal(&outcome.diagnostics).err();
            (outcome, internal)
        }
        Err(failure) => (TestOutcome::default(), Some(failure)),
    }
}

/// Prints what there is to say about a test.
fn show(
    terminal: &Terminal,
    session: &Session,
    (test, name): (FnId, &str),
    ended: Ended,
    outcome: &TestOutcome,
) -> Outcome {
    let sources = &session.checked().sources;
    if terminal.is_json() {
        let mut renderer = Renderer::new(sources);
        let diagnostics = outcome.diagnostics.iter();
        return terminal.object(&Line::Test(report::Test {
            file: main_file(sources),
            name: Some(name),
            outcome: ended,
            place: Some(report::Range::new(sources, session.checked().hir.func(test).span)),
            printed: &outcome.printed,
            diagnostics: diagnostics
                .map(|d| report::Diagnostic::new(sources, &mut renderer, d, terminal.color))
                .collect(),
        }));
    }
    if ended == Ended::Failed {
        let file = escaped_name(main_file(sources));
        terminal.message(&format!("test \"{}\" of {file} failed:", escaped_name(name)));
    }
    terminal.diagnostics(sources, &outcome.diagnostics)?;
    if !outcome.printed.is_empty() {
        terminal.printed(&outcome.printed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tk_syntax::{Span, codes};

    use super::*;
    use crate::args::{Color, MessageFormat};

    #[test]
    fn a_mistake_of_the_compiler_fails_one_test() {
        let _guard = crate::one_panic();
        let terminal = Terminal::new(Color::Never, MessageFormat::Human);
        let wrong =
            Diagnostic::error(codes::INTERNAL, Span::default(), "internal error in lowering: odd", "");
        let outcome = TestOutcome { diagnostics: vec![wrong], ..TestOutcome::default() };
        let (_, failure) = attempt(&terminal, || outcome);
        assert!(matches!(failure, Some(Failure::Internal { pass, .. }) if pass == "lowering"));
        let (_, failure) = attempt(&terminal, || unreachable!("not reached"));
        assert!(matches!(failure, Some(Failure::Internal { .. })), "a panic");
        let (_, failure) = attempt(&terminal, TestOutcome::default);
        assert!(failure.is_none());
    }
}
