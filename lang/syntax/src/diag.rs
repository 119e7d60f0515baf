//! The shape of a message to the user: [`Diagnostic`], its labels and its fixes.
//!
//! The codes live in [`crate::codes`], the terminal rendering in [`crate::render`]; the command line and the
//! language server show the same diagnostics.

use crate::codes::Code;
use crate::span::Span;

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// The program has no meaning.
    Error,
    /// The program has a meaning that is probably not the intended one.
    Warning,
    /// Text that the program asked for (`static_print`).
    Note,
}

/// A place with a short text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Where.
    pub span: Span,
    /// A description of the place, in a few words.
    pub text: String,
}

/// A replacement of the text of a span; an insertion when the span is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// The text to replace.
    pub span: Span,
    /// The new text.
    pub text: String,
}

/// Edits that together fix what the diagnostic reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// The title: an imperative sentence without full stop.
    pub title: String,
    /// The edits, not overlapping.
    pub edits: Vec<Replacement>,
}

/// One message to the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The code, which `tk explain` knows.
    pub code: Code,
    /// The severity.
    pub severity: Severity,
    /// One sentence in the user's terms.
    pub message: String,
    /// The place that is wrong.
    pub primary: Label,
    /// The other places involved.
    pub secondary: Vec<Label>,
    /// Further facts, one sentence each.
    pub notes: Vec<String>,
    /// Changes that the user may try, best first.
    pub fixes: Vec<Fix>,
    /// The declaration that it follows from, where no label shows it.
    pub declared: Option<Span>,
}

impl Diagnostic {
    /// An error with a message and the text under its primary span (may be empty).
    pub fn error(code: Code, span: Span, message: impl Into<String>, label: impl Into<String>) -> Self {
        Diagnostic {
            code,
            severity: Severity::Error,
            message: message.into(),
            primary: Label { span, text: label.into() },
            secondary: vec![],
            notes: vec![],
            fixes: vec![],
            declared: None,
        }
    }

    /// The same with another severity.
    pub fn severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// Adds another place.
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Self {
        self.secondary.push(Label { span, text: text.into() });
        self
    }

    /// Adds a sentence.
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }

    /// Adds a fix of one edit.
    pub fn fix(self, title: impl Into<String>, span: Span, text: impl Into<String>) -> Self {
        self.fix_all(title, vec![Replacement { span, text: text.into() }])
    }

    /// Adds a fix that uses a name in place of a text.
    pub fn use_instead(self, span: Span, name: impl Into<String>) -> Self {
        self.instead("use", span, name.into())
    }

    /// Adds a fix that writes one text in place of another.
    pub fn write_instead(self, span: Span, text: impl Into<String>) -> Self {
        self.instead("write", span, text.into())
    }

    /// One function of all, since a format is larger than a call.
    #[inline(never)]
    fn instead(self, verb: &str, span: Span, text: String) -> Self {
        self.fix(format!("{verb} `{text}`"), span, text)
    }

    /// Adds a fix of several edits.
    pub fn fix_all(mut self, title: impl Into<String>, edits: Vec<Replacement>) -> Self {
        self.fixes.push(Fix { title: title.into(), edits });
        self
    }

    /// Returns true if this is an error.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// Applies the edits of a fix in `file` to `text`; edits outside the text are left out.
pub fn apply(text: &str, fix: &Fix) -> String {
    let mut edits: Vec<&Replacement> = fix.edits.iter().collect();
    edits.sort_by_key(|e| (e.span.start, e.span.end));
    let mut out = text.to_string();
    for e in edits.iter().rev() {
        let range = e.span.start as usize..e.span.end as usize;
        if out.get(range.clone()).is_some() {
            out.replace_range(range, &e.text);
        }
    }
    out
}
