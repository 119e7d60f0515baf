//! `tk learn check`: the reader's file, its tests, then the hidden ones, then the picture.
//!
//! Guarantees that messages about the reader's text have the lines of the reader's file: hidden tests come after it, and
//! have lines of their own.

use std::time::Duration;

use tk_interp::Trace;
use tk_interp::trace::Launch;
use tk_runtime::{Session, TestOutcome, pass};
use tk_sema::hir::FnId;
use tk_sema::{Checked, Loader};
use tk_syntax::ast::{self, ItemKind};
use tk_syntax::{Diagnostic, FileId, Label, Renderer, SourceMap, Span, codes};

use super::puzzle::Puzzle;
use super::{Course, everything_done, picture};
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
    if let Some(message) = changed(puzzle, &own, &path) {
        terminal.failure(&message, 1)?;
        return Err(Failure::Diagnostics);
    }
    if let Some(failure) = front::failure(&own) {
        return Err(failure);
    }
    let tests = Tests::new(puzzle, inputs, &path, timeout)?;
    if let Some(failure) = tests.misfit(terminal, &path)? {
        return Err(failure);
    }
    let (passed, shown) = tests.run(terminal, puzzle)?;
    if let Some((which, launch)) = &shown {
        let text = picture::draw(which, launch, terminal);
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

/// A sentence, if a kernel of the puzzle has another name or other parameters in the reader's file.
fn changed(puzzle: &Puzzle, own: &Checked, path: &str) -> Option<String> {
    let text = &own.sources.get(FileId(0))?.text;
    let (wanted, found) = (signatures(puzzle.text), signatures(text));
    let missing = wanted.iter().find(|w| !found.iter().any(|f| f.parts == w.parts))?;
    let is = match found.iter().find(|f| f.name == missing.name) {
        Some(other) => format!("has `{}`", other.text),
        None => "has no such kernel".to_string(),
    };
    let message = format!(
        "the tests launch `{}`, but {path} {is}; name and parameters must stay as they were",
        missing.text
    );
    Some(message)
}

/// What launches of a kernel depend on.
struct Signature {
    name: String,
    /// As it was written, on one line.
    text: String,
    /// The names and types, without blanks; defaults may change, but must stay.
    parts: Vec<String>,
}

/// The kernels of a text.
fn signatures(text: &str) -> Vec<Signature> {
    let slice = |span: Span| text.get(span.start as usize..span.end as usize).unwrap_or_default();
    let tight = |span: Span| slice(span).split_whitespace().collect::<String>();
    let loose = |span: Span| slice(span).split_whitespace().collect::<Vec<_>>().join(" ");
    let (file, _) = tk_syntax::parse(FileId(0), text);
    let kernels = file.items.iter().filter_map(|item| match &item.kind {
        ItemKind::Fn(f) if f.kernel => Some(f),
        ItemKind::Fn(_)
        | ItemKind::Use(_)
        | ItemKind::Const(_)
        | ItemKind::Struct(_)
        | ItemKind::Export(_)
        | ItemKind::Test(_)
        | ItemKind::Err => None,
    });
    let signature = |f: &std::sync::Arc<ast::Fn>| {
        let mut parts = vec![f.name.text.clone()];
        for p in &f.cparams {
            let bound = p.bound.iter().map(|b| tight(b.span)).collect::<Vec<_>>().join("|");
            parts.push(format!("[{}:{bound}{}", p.name.text, if p.default.is_some() { "=" } else { "" }));
        }
        for p in &f.params {
            let ty = p.ty.as_ref().map(|t| tight(t.span)).unwrap_or_default();
            let default = if p.default.is_some() { "=" } else { "" };
            parts.push(format!("({}:{}{ty}{default}", p.name.text, if p.konst { "const " } else { "" }));
        }
        let list = |spans: Vec<Span>| spans.into_iter().map(loose).collect::<Vec<_>>().join(", ");
        let compile_time = list(f.cparams.iter().map(|p| p.span).collect());
        let run_time = list(f.params.iter().map(|p| p.span).collect());
        let brackets = if compile_time.is_empty() { String::new() } else { format!("[{compile_time}]") };
        Signature { name: f.name.text.clone(), text: format!("{}{brackets}({run_time})", f.name.text), parts }
    };
    kernels.map(signature).collect()
}

/// The sources, with the hidden tests at the end of the reader's file.
struct Appended<'i> {
    inputs: &'i Inputs,
    name: String,
    hidden: &'static str,
}

impl Loader for Appended<'_> {
    fn load(&self, path: &str) -> Result<String, String> {
        let text = self.inputs.load(path)?;
        if path != self.name {
            return Ok(text);
        }
        let end = if text.ends_with('\n') { "" } else { "\n" };
        Ok(format!("{text}{end}\n{}", self.hidden))
    }

    fn used(&self, path: &str, from: &str) -> Result<String, Option<String>> {
        self.inputs.used(path, from)
    }

    fn std(&self, name: &str) -> Option<(String, String)> {
        self.inputs.std(name)
    }
}

/// A launch to draw, and which one it is.
type Shown = Option<(&'static str, Launch)>;

/// The tests of a puzzle, those of the reader's file first.
struct Tests {
    session: Session,
    trace: Trace,
    /// The files of the session, and the hidden tests as a file of their own.
    sources: SourceMap,
    hidden: FileId,
    /// The bytes of the reader's file before the hidden tests.
    own: u32,
}

impl Tests {
    fn new(puzzle: &Puzzle, inputs: &Inputs, path: &str, timeout: Duration) -> Result<Tests, Failure> {
        let appended = Appended { inputs, name: inputs.open(path)?, hidden: puzzle.hidden };
        pass::enter("check");
        let checked = tk_sema::check(&appended, &appended.name);
        let mut sources = checked.sources.clone();
        let length = sources.get(FileId(0)).map_or(0, |s| s.text.len());
        let own = u32::try_from(length.saturating_sub(puzzle.hidden.len())).unwrap_or(u32::MAX);
        let hidden = sources.add(&format!("hidden tests of puzzle {}", puzzle.number), puzzle.hidden);
        let trace = Trace::new(1);
        let session = Session::new(checked).checked_mode(true).with_timeout(Some(timeout));
        let session = session.with_trace(trace.clone());
        Ok(Tests { session, trace, sources, hidden, own })
    }

    fn is_hidden(&self, span: Span) -> bool {
        span.file == FileId(0) && span.start >= self.own
    }

    /// A diagnostic whose places in hidden tests are in the file of these.
    fn moved(&self, mut d: Diagnostic) -> Diagnostic {
        let place = |label: &mut Label| {
            if self.is_hidden(label.span) {
                let Span { start, end, .. } = label.span;
                label.span = Span { file: self.hidden, start: start - self.own, end: end - self.own };
            }
        };
        place(&mut d.primary);
        d.secondary.iter_mut().for_each(place);
        d
    }

    /// The failure, if the hidden tests do not check after a file that does: it lacks a function, or has one of theirs.
    fn misfit(&self, terminal: &Terminal, path: &str) -> Result<Option<Failure>, Failure> {
        let wrong = self.session.checked().diagnostics.iter().filter(|d| d.is_error()).cloned();
        let wrong: Vec<Diagnostic> = wrong.map(|d| self.moved(d)).collect();
        terminal.internal(&wrong)?;
        if wrong.is_empty() {
            return Ok(None);
        }
        terminal.diagnostics(&self.sources, &wrong)?;
        let message = format!(
            "the hidden tests do not fit {path}; keep what the puzzle came with, and names that begin with `hidden_` are theirs"
        );
        terminal.failure(&message, 1)?;
        Ok(Some(Failure::Diagnostics))
    }

    /// Runs the tests until one fails. Returns whether all passed, and the launch to draw: the first one of the first
    /// test, or the last one of a hidden test that failed.
    fn run(&self, terminal: &Terminal, puzzle: &Puzzle) -> Result<(bool, Shown), Failure> {
        let mut shown = None;
        let (mut passed, mut failed) = (0, 0);
        let tests: Vec<(FnId, &str)> = self.session.tests().collect();
        for (i, (test, name)) in tests.iter().enumerate() {
            self.trace.clear();
            let (outcome, internal) = attempt(terminal, || self.session.test(*test));
            if let Some(failure) = internal {
                return Err(failure);
            }
            let is_wrong = outcome.diagnostics.iter().any(Diagnostic::is_error);
            let is_hidden = self.is_hidden(self.session.checked().hir.func(*test).span);
            if is_wrong && is_hidden {
                shown = self.trace.last().map(|l| ("The last launch before the failure", l));
            } else if i == 0 {
                shown = self.trace.launches().into_iter().next().map(|l| ("The first launch", l));
            }
            self.show(terminal, puzzle, (*test, name), is_wrong, outcome)?;
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

    /// Prints the result of a test.
    fn show(
        &self,
        terminal: &Terminal,
        puzzle: &Puzzle,
        (test, name): (FnId, &str),
        is_wrong: bool,
        outcome: TestOutcome,
    ) -> Outcome {
        let span = self.session.checked().hir.func(test).span;
        let is_hidden = self.is_hidden(span);
        let diagnostics: Vec<Diagnostic> = outcome.diagnostics.into_iter().map(|d| self.moved(d)).collect();
        if terminal.is_json() {
            let mut renderer = Renderer::new(&self.sources);
            let place = self.moved(Diagnostic::error(codes::INTERNAL, span, "", "")).primary.span;
            let all = diagnostics.iter();
            return terminal.object(&Line::Test(report::Test {
                file: self.sources.position(place).0,
                name: Some(name),
                outcome: if is_wrong { Ended::Failed } else { Ended::Passed },
                place: Some(report::Range::new(&self.sources, place)),
                printed: &outcome.printed,
                diagnostics: all
                    .map(|d| report::Diagnostic::new(&self.sources, &mut renderer, d, terminal.color))
                    .collect(),
            }));
        }
        let kind = if is_hidden { "hidden test" } else { "test" };
        if !outcome.printed.is_empty() {
            terminal.message(&outcome.printed);
        }
        let word = if is_wrong { terminal.painted("31", "FAIL") } else { terminal.painted("32", "ok  ") };
        terminal.data(&format!("{word}  {kind} \"{name}\"\n"))?;
        terminal.diagnostics(&self.sources, &diagnostics)?;
        if is_wrong && is_hidden {
            self.reveal(terminal, puzzle, span)?;
        }
        Ok(())
    }

    /// Prints a hidden test that failed.
    fn reveal(&self, terminal: &Terminal, puzzle: &Puzzle, span: Span) -> Outcome {
        let at = (span.start.saturating_sub(self.own)) as usize;
        let (file, _) = tk_syntax::parse(FileId(0), puzzle.hidden);
        let item = file.items.iter().find(|i| (i.span.start as usize..i.span.end as usize).contains(&at));
        let text = item.and_then(|i| puzzle.hidden.get(i.span.start as usize..i.span.end as usize));
        let Some(text) = text else { return Ok(()) };
        terminal.data(&format!("The test:\n\n{text}\n\n"))
    }
}
