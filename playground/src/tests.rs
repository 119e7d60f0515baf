//! Runs `test` blocks.

use serde_json::{Value, json};
use tk_runtime::{Echo, Session, TestOutcome};
use tk_syntax::{Diagnostic, SourceMap, Span, escaped};

use crate::program::{check, line, rendered, report};

/// Runs the tests of a text whose names contain `filter`; says each test before it runs, and its result.
pub fn run(text: &str, checked_mode: bool, (filter, echo): (&str, Echo), say: &mut dyn FnMut(&Value)) {
    let checked = check(text);
    if !report(&checked, say) {
        return;
    }
    let session = Session::new(checked).checked_mode(checked_mode).with_echo(echo);
    let tests: Vec<_> = session.tests().filter(|(_, name)| name.contains(filter)).collect();
    say(&json!({ "count": tests.len() }));
    for (test, name) in tests {
        let span = session.checked().hir.func(test).span;
        begin(&session.checked().sources, (name, false, span), say);
        let outcome = session.test(test);
        end(&session.checked().sources, &outcome, say);
    }
}

/// Says that a test begins: its name, whether it is hidden, its place.
pub fn begin(sources: &SourceMap, (name, hidden, span): (&str, bool, Span), say: &mut dyn FnMut(&Value)) {
    say(&json!({ "test": name, "hidden": hidden, "line": line(sources, span) }));
}

/// Says how it ended; returns whether it failed.
pub fn end(sources: &SourceMap, outcome: &TestOutcome, say: &mut dyn FnMut(&Value)) -> bool {
    let failed = outcome.diagnostics.iter().any(Diagnostic::is_error);
    say(&json!({
        "failed": failed,
        "printed": escaped(&outcome.printed),
        "messages": rendered(sources, &outcome.diagnostics),
    }));
    failed
}
