//! The program of the page: one file, and what is said about it.

use serde_json::{Value, json};
use tk_sema::{Checked, Loader};
use tk_syntax::{Diagnostic, Renderer, Severity, SourceMap, Span};

/// The name of the program.
pub const FILE: &str = "main.tk";

/// The text of the page as a file.
pub struct Program<'t>(pub &'t str);

impl Loader for Program<'_> {
    fn load(&self, path: &str) -> Result<String, String> {
        match path {
            FILE => Ok(self.0.to_string()),
            _other => Err(format!("{path} does not exist: a program of the playground is one file")),
        }
    }
}

/// Checks a text.
pub fn check(text: &str) -> Checked {
    tk_sema::check(&Program(text), FILE)
}

/// Diagnostics with colors as for a terminal, and their lines.
pub fn rendered(sources: &SourceMap, diagnostics: &[Diagnostic]) -> Vec<Value> {
    let mut renderer = Renderer::new(sources);
    let one = |d: &Diagnostic| {
        json!({
            "severity": match d.severity { Severity::Error => "error", Severity::Warning => "warning", Severity::Note => "note" },
            "code": d.code.0,
            "line": line(sources, d.primary.span),
            "text": renderer.render(d, true),
        })
    };
    diagnostics.iter().map(one).collect()
}

/// The line of a place of the program, from 1 on; none if it is elsewhere.
pub fn line(sources: &SourceMap, span: Span) -> Option<usize> {
    let (name, line, _) = sources.position(span);
    (name == FILE).then_some(line)
}

/// Says the diagnostics of a checked program; returns whether it is right.
pub fn report(checked: &Checked, say: &mut dyn FnMut(&Value)) -> bool {
    say(&json!({ "diagnostics": rendered(&checked.sources, &checked.diagnostics) }));
    !checked.diagnostics.iter().any(Diagnostic::is_error)
}
