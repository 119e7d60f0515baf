//! The tests of an answer: those of the reader's file, then the hidden ones.
//!
//! Guarantees that messages about the reader's text have the lines of the reader's file: hidden tests come after it, and
//! have lines of their own.

use std::time::Duration;

use tk_interp::Trace;
use tk_interp::print::Echo;
use tk_interp::trace::Launch;
use tk_runtime::{Session, TestOutcome, pass};
use tk_sema::hir::FnId;
use tk_sema::{Checked, Loader};
use tk_syntax::{Diagnostic, FileId, Label, SourceMap, Span};

use crate::puzzle::Puzzle;

/// The sources, with the hidden tests at the end of the reader's file.
struct Appended<'l> {
    loader: &'l dyn Loader,
    name: String,
    hidden: &'static str,
}

impl Loader for Appended<'_> {
    fn load(&self, path: &str) -> Result<String, String> {
        let text = self.loader.load(path)?;
        if path != self.name {
            return Ok(text);
        }
        let end = if text.ends_with('\n') { "" } else { "\n" };
        Ok(format!("{text}{end}\n{}", self.hidden))
    }

    fn used(&self, path: &str, from: &str) -> Result<String, Option<String>> {
        self.loader.used(path, from)
    }

    fn std(&self, name: &str) -> Option<(String, String)> {
        self.loader.std(name)
    }
}

/// The sentence about hidden tests that do not check after the reader's file ([`Answer::misfits`]).
pub fn misfit(path: &str) -> String {
    format!(
        "the hidden tests do not fit {path}; keep what the puzzle came with, and names that begin with `hidden_` are theirs"
    )
}

/// A launch to draw, and which one it is.
pub type Shown = (&'static str, Launch);

/// A test of an answer.
#[derive(Clone, Copy, Debug)]
pub struct Test {
    id: FnId,
    /// Its position among all tests.
    index: usize,
    /// Whether it is one of those that the reader does not see.
    pub is_hidden: bool,
    /// Its place in [`Answer::sources`].
    pub place: Span,
}

/// The reader's file of a puzzle with the hidden tests, checked.
pub struct Answer {
    puzzle: Puzzle,
    session: Session,
    trace: Trace,
    /// The files of the session, and the hidden tests as a file of their own.
    sources: SourceMap,
    hidden: FileId,
    /// The bytes of the reader's file before the hidden tests.
    own: u32,
}

impl Answer {
    /// Checks the file `name`, which the loader knows.
    pub fn new(puzzle: &Puzzle, loader: &dyn Loader, name: &str, timeout: Option<Duration>) -> Answer {
        let appended = Appended { loader, name: name.to_string(), hidden: puzzle.hidden };
        pass::enter("check");
        let checked = tk_sema::check(&appended, &appended.name);
        let mut sources = checked.sources.clone();
        let length = sources.get(FileId(0)).map_or(0, |s| s.text.len());
        let own = u32::try_from(length.saturating_sub(puzzle.hidden.len())).unwrap_or(u32::MAX);
        let hidden = sources.add(&format!("hidden tests of puzzle {}", puzzle.number), puzzle.hidden);
        let trace = Trace::new(1);
        let session = Session::new(checked).checked_mode(true).with_timeout(timeout);
        let session = session.with_trace(trace.clone());
        Answer { puzzle: puzzle.clone(), session, trace, sources, hidden, own }
    }

    /// The same, telling each line of `print` at once, too.
    pub fn with_echo(mut self, echo: Echo) -> Answer {
        self.session = self.session.with_echo(echo);
        self
    }

    /// The files that messages are about.
    pub fn sources(&self) -> &SourceMap {
        &self.sources
    }

    /// The errors, if the hidden tests do not check after a file that does: it lacks a function, or has one of theirs.
    pub fn misfits(&self) -> Vec<Diagnostic> {
        let wrong = self.checked().diagnostics.iter().filter(|d| d.is_error()).cloned();
        wrong.map(|d| self.moved(d)).collect()
    }

    /// The tests, those of the reader's file first, with their names.
    pub fn tests(&self) -> Vec<(Test, &str)> {
        let test = |(index, (id, name))| {
            let span = self.checked().hir.func(id).span;
            (Test { id, index, is_hidden: self.is_hidden(span), place: self.place(span) }, name)
        };
        self.session.tests().enumerate().map(test).collect()
    }

    /// Runs a test in checked mode.
    pub fn run(&self, test: Test) -> TestOutcome {
        self.trace.clear();
        let outcome = self.session.test(test.id);
        let diagnostics = outcome.diagnostics.into_iter().map(|d| self.moved(d)).collect();
        TestOutcome { diagnostics, ..outcome }
    }

    /// The launch of the test that ran last which says most: the first one of the first test, or the last one of a hidden
    /// test that failed.
    pub fn shown(&self, test: Test, is_wrong: bool) -> Option<Shown> {
        if is_wrong && test.is_hidden {
            return self.trace.last().map(|l| ("The last launch before the failure", l));
        }
        let first = || self.trace.launches().into_iter().next();
        (test.index == 0).then(first)?.map(|l| ("The first launch", l))
    }

    /// The text of a hidden test.
    pub fn text(&self, test: Test) -> Option<&'static str> {
        let at = test.place.start as usize;
        let (file, _) = tk_syntax::parse(FileId(0), self.puzzle.hidden);
        let item = file.items.iter().find(|i| (i.span.start as usize..i.span.end as usize).contains(&at))?;
        test.is_hidden.then(|| self.puzzle.hidden.get(range(item.span)))?
    }

    fn checked(&self) -> &Checked {
        self.session.checked()
    }

    fn is_hidden(&self, span: Span) -> bool {
        span.file == FileId(0) && span.start >= self.own
    }

    /// A place, in the file of the hidden tests if it is in one of these.
    fn place(&self, span: Span) -> Span {
        if !self.is_hidden(span) {
            return span;
        }
        Span { file: self.hidden, start: span.start - self.own, end: span.end - self.own }
    }

    fn moved(&self, mut d: Diagnostic) -> Diagnostic {
        let place = |label: &mut Label| label.span = self.place(label.span);
        place(&mut d.primary);
        d.secondary.iter_mut().for_each(place);
        d
    }
}

fn range(span: Span) -> std::ops::Range<usize> {
    span.start as usize..span.end as usize
}
