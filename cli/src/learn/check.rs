//! `tk learn check`: the reader's file, its tests, then the hidden ones, then the picture.

use std::time::Duration;

use tk_learn::{Answer, Puzzle, Shown, Test};
use tk_runtime::TestOutcome;
use tk_syntax::{Diagnostic, FileId, Renderer, escaped_name};

use super::{Course, everything_done};
use crate::front;
use crate::input::Inputs;
use crate::report::{self, Ended, Line};
use crate::terminal::{Failure, Outcome, Terminal};
use crate::test::attempt;

/// Checks the reader's file of a puzzle.
pub fn run(
    terminal: &Terminal,
    course: &mut Course,
    puzzle: &Puzzle,
    inputs: &Inputs,
    timeout: Duration,
) -> Outcome {
    let before = course.progress.clone();
    course.progress.begin(puzzle);
    if before != course.progress {
        course.save(terminal)?;
    }
    let path = course.path(puzzle);
    let own = front::check(inputs, &path)?;
    terminal.internal(&own.diagnostics)?;
    terminal.diagnostics(&own.sources, &own.diagnostics)?;
    let text = own.sources.get(FileId(0)).map(|s| s.text.clone()).unwrap_or_default();
    if let Some(message) = tk_learn::changed(puzzle, &text, &path) {
        terminal.failure(&message, 1)?;
        return Err(Failure::Diagnostics);
    }
    if let Some(failure) = front::failure(&own) {
        return Err(failure);
    }
    let answer = Answer::new(puzzle, inputs, &inputs.open(&path)?, Some(timeout));
    misfit(terminal, &answer, &path)?;
    let (passed, shown) = run_tests(terminal, &answer)?;
    if let Some((which, launch)) = &shown {
        let text = tk_learn::draw(which, launch, &|color, text| terminal.painted(color, text));
        super::text(terminal, "picture", &text)?;
    }
    if passed {
        course.progress.done(puzzle, &course.puzzles);
        course.save(terminal)?;
    }
    if terminal.is_json() {
        terminal.object(&course.line(puzzle, &path))?;
    } else {
        terminal.data(&end(terminal, course, puzzle, passed))?;
    }
    if passed { Ok(()) } else { Err(Failure::Diagnostics) }
}

/// The last lines.
fn end(terminal: &Terminal, course: &Course, puzzle: &Puzzle, passed: bool) -> String {
    let n = puzzle.number;
    if !passed {
        return format!("Puzzle {n} is not solved yet. `tk learn hint {n}` shows a hint.\n");
    }
    let done = terminal.painted("32", &format!("Puzzle {n} is done."));
    match course.progress.next(&course.puzzles) {
        Some(next) => format!("{done} Next: `tk learn {}` ({})\n", next.number, next.title),
        None => format!("{done} {}", everything_done()),
    }
}

/// Fails if the hidden tests do not check after the reader's file.
fn misfit(terminal: &Terminal, answer: &Answer, path: &str) -> Outcome {
    let wrong = answer.misfits();
    terminal.internal(&wrong)?;
    if wrong.is_empty() {
        return Ok(());
    }
    terminal.diagnostics(answer.sources(), &wrong)?;
    terminal.failure(&tk_learn::misfit(path), 1)?;
    Err(Failure::Diagnostics)
}

/// Runs the tests until one fails. Returns whether all passed, and the launch to draw.
fn run_tests(terminal: &Terminal, answer: &Answer) -> Result<(bool, Option<Shown>), Failure> {
    let mut shown = None;
    let (mut passed, mut failed) = (0, 0);
    let tests = answer.tests();
    for (test, name) in &tests {
        let (outcome, internal) = attempt(terminal, || answer.run(*test));
        if let Some(failure) = internal {
            return Err(failure);
        }
        let is_wrong = outcome.diagnostics.iter().any(Diagnostic::is_error);
        shown = answer.shown(*test, is_wrong).or(shown);
        show(terminal, answer, (*test, name), is_wrong, &outcome)?;
        if is_wrong {
            failed = 1;
            break;
        }
        passed += 1;
    }
    let left_out = tests.len() - passed - failed;
    if terminal.is_json() {
        terminal.object(&Line::Summary { passed, failed, left_out })?;
    } else if left_out > 0 {
        let (are, tests) = if left_out == 1 { ("is", "test") } else { ("are", "tests") };
        terminal.data(&format!("      {left_out} more {tests} {are} run once this one passes\n"))?;
    }
    Ok((failed == 0, shown))
}

/// Prints the result of a test; a hidden one that failed with its text.
fn show(
    terminal: &Terminal,
    answer: &Answer,
    (test, name): (Test, &str),
    is_wrong: bool,
    outcome: &TestOutcome,
) -> Outcome {
    let sources = answer.sources();
    if terminal.is_json() {
        let mut renderer = Renderer::new(sources);
        let all = outcome.diagnostics.iter();
        return terminal.object(&Line::Test(report::Test {
            file: sources.position(test.place).0,
            name: Some(name),
            outcome: if is_wrong { Ended::Failed } else { Ended::Passed },
            place: Some(report::Range::new(sources, test.place)),
            printed: &outcome.printed,
            diagnostics: all
                .map(|d| report::Diagnostic::new(sources, &mut renderer, d, terminal.color))
                .collect(),
        }));
    }
    let kind = if test.is_hidden { "hidden test" } else { "test" };
    if !outcome.printed.is_empty() {
        terminal.printed(&outcome.printed)?;
    }
    let word = if is_wrong { terminal.painted("31", "FAIL") } else { terminal.painted("32", "ok  ") };
    terminal.data(&format!("{word}  {kind} \"{}\"\n", escaped_name(name)))?;
    terminal.diagnostics(sources, &outcome.diagnostics)?;
    match answer.text(test).filter(|_| is_wrong) {
        Some(text) => terminal.data(&format!("The test:\n\n{text}\n\n")),
        None => Ok(()),
    }
}
