//! Runs a block of text as a program: checks it in memory, and runs its tests on the interpreter or on a device.

use std::path::Path;
use std::sync::Arc;

use tk_runtime::Session;
use tk_runtime::device::Device;
use tk_sema::Loader;
use tk_syntax::{Diagnostic, Severity, SourceMap};

/// The name under which a block is shown in messages.
pub const NAME: &str = "example.tk";

/// A single file in memory; `use` finds only the standard library.
struct Single<'a>(&'a str);

impl Loader for Single<'_> {
    fn load(&self, path: &str) -> Result<String, String> {
        if path == NAME { Ok(self.0.to_string()) } else { Err(format!("there is no file {path}")) }
    }
}

/// What running a block showed.
pub struct Report {
    /// The sources that the diagnostics refer to.
    pub sources: SourceMap,
    /// Errors and warnings: of the checker or, when it has no error, of the tests.
    pub diagnostics: Vec<Diagnostic>,
    /// What `static_print` and `print` said, a line each.
    pub output: String,
}

impl Report {
    /// The errors.
    pub fn without_warnings(mut self) -> Report {
        self.diagnostics.retain(Diagnostic::is_error);
        self
    }

    /// Every diagnostic as rendered without color.
    pub fn rendered(&self) -> String {
        self.diagnostics.iter().map(|d| tk_syntax::render(&self.sources, d, false)).collect()
    }

    /// Lines from 1 and codes of the diagnostics, sorted. A broken constraint has two places, the constraint and what
    /// asked for it: that of `expected` is taken.
    pub fn places(&self, expected: &[(usize, &str)]) -> Vec<(usize, &'static str)> {
        let line = |span| self.sources.position(span).1;
        let place = |d: &Diagnostic| {
            let first = line(d.primary.span);
            let others = d.secondary.iter().map(|l| line(l.span)).filter(|_| d.code.0.starts_with("E08"));
            let wanted = |l: &usize| expected.contains(&(*l, d.code.0));
            (std::iter::once(first).chain(others).find(wanted).unwrap_or(first), d.code.0)
        };
        let mut places: Vec<_> = self.diagnostics.iter().map(place).collect();
        places.sort_unstable();
        places
    }
}

/// Only checks.
pub fn check(text: &str) -> Report {
    let checked = tk_sema::check(&Single(text), NAME);
    let (notes, diagnostics) = split(checked.diagnostics);
    Report { sources: checked.sources, diagnostics, output: lines(&notes) }
}

/// A checked program.
#[cfg_attr(not(feature = "llvm"), allow(dead_code, reason = "tests with a device use it"))]
pub fn checked(text: &str) -> tk_sema::Checked {
    tk_sema::check(&Single(text), NAME)
}

/// Checks and, when there is no error, runs the tests in checked mode.
pub fn run(text: &str) -> Report {
    tested(text, |session| session.checked_mode(true))
}

/// The same as a device would run it: on `device`, or on the interpreter without checked mode.
#[cfg_attr(not(feature = "llvm"), allow(dead_code, reason = "tests with a device use it"))]
pub fn run_on(text: &str, device: Option<&Arc<dyn Device>>) -> Report {
    tested(text, |session| match device {
        Some(device) => session.on(Arc::clone(device)),
        None => session,
    })
}

fn tested(text: &str, set: impl Fn(Session) -> Session) -> Report {
    let checked = tk_sema::check(&Single(text), NAME);
    if checked.diagnostics.iter().any(Diagnostic::is_error) {
        return check(text);
    }
    let (notes, mut diagnostics) = split(checked.diagnostics.clone());
    let mut output = lines(&notes);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let session = set(Session::new(checked).in_folder(&folder));
    for (test, _) in session.tests() {
        let outcome = session.test(test);
        let (notes, errors) = split(outcome.diagnostics);
        output += &(lines(&notes) + &outcome.printed);
        diagnostics.extend(errors);
    }
    Report { sources: session.checked().sources.clone(), diagnostics, output }
}

/// Notes apart from errors and warnings.
fn split(diagnostics: Vec<Diagnostic>) -> (Vec<Diagnostic>, Vec<Diagnostic>) {
    diagnostics.into_iter().partition(|d| d.severity == Severity::Note)
}

fn lines(notes: &[Diagnostic]) -> String {
    notes.iter().map(|d| format!("{}\n", d.message)).collect()
}
