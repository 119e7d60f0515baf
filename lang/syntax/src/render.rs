//! Owns how a diagnostic looks in a terminal: the source with its labels, then notes and fixes.
//!
//! Accepts any span, also outside its file: it is clipped to the text, so nothing panics. Only the lines between
//! the first and the last label are looked at, so the length of a file does not matter.

use crate::diag::{self, Diagnostic, Fix, Label, Severity};
use crate::span::{FileId, SourceMap, Span};
use ariadne::{Color, Config, IndexType, Report, ReportKind, Source};
use std::collections::BTreeMap;
use std::ops::Range;

/// A line longer than this says nothing in a terminal: the position alone is shown.
const LONG_LINE: usize = 1000;

/// The text for a terminal, with a line break at its end.
pub fn render(sources: &SourceMap, diag: &Diagnostic, color: bool) -> String {
    let mut text = body(sources, diag, color);
    for note in &diag.notes {
        text.push_str(&format!("  note: {note}\n"));
    }
    for fix in &diag.fixes {
        text.push_str(&format!("  help: {}\n", fix.title));
        if let Some(line) = fixed_line(sources, fix) {
            text.push_str(&format!("        {line}\n"));
        }
    }
    text
}

/// The header and the labelled source.
fn body(sources: &SourceMap, diag: &Diagnostic, color: bool) -> String {
    let (kind, ink, escape) = match diag.severity {
        Severity::Error => ("error", Color::Red, "31"),
        Severity::Warning => ("warning", Color::Yellow, "33"),
        Severity::Note => ("note", Color::Blue, "34"),
    };
    let message = diag.message.replace('\n', " ");
    let header = if color {
        format!("\u{1b}[{escape}m{kind}[{}]:\u{1b}[0m {message}\n", diag.code)
    } else {
        format!("{kind}[{}]: {message}\n", diag.code)
    };
    let plain = || {
        let (name, line, column) = sources.position(diag.primary.span);
        format!("{header}  at {name}:{line}:{column}\n")
    };
    let Some(mut cache) = Excerpts::new(sources, diag) else { return plain() };
    let config = Config::default().with_index_type(IndexType::Byte).with_color(color).with_tab_width(4);
    // The renderer underlines only what has a text.
    let mut primary = diag.primary.clone();
    if primary.text.is_empty() {
        primary.text = "here".to_string();
    }
    let mut report = Report::build(ReportKind::Error, cache.place(diag.primary.span))
        .with_config(config)
        .with_label(cache.label(&primary, ink));
    for other in &diag.secondary {
        report.add_label(cache.label(other, Color::Blue));
    }
    let mut out = Vec::new();
    match report.finish().write(&mut cache, &mut out) {
        Ok(()) => {
            // The first line is the renderer's own header.
            let text = String::from_utf8_lossy(&out);
            header + &text.lines().skip(1).map(|l| l.trim_end().to_string() + "\n").collect::<String>()
        }
        Err(_) => plain(),
    }
}

/// The lines of each file that are shown.
struct Excerpts<'a> {
    files: BTreeMap<FileId, Excerpt<'a>>,
}

struct Excerpt<'a> {
    name: &'a str,
    text: &'a str,
    /// How far a byte of `text` lies further behind than in `lines`.
    offset: usize,
    lines: Source<String>,
}

impl<'a> Excerpts<'a> {
    /// `None` when a file is unknown or its lines are no lines for a terminal.
    fn new(sources: &'a SourceMap, diag: &Diagnostic) -> Option<Self> {
        let mut ranges: BTreeMap<FileId, Range<usize>> = BTreeMap::new();
        for label in std::iter::once(&diag.primary).chain(&diag.secondary) {
            let r = clip(&sources.get(label.span.file)?.text, label.span);
            let range = ranges.entry(label.span.file).or_insert(r.clone());
            *range = range.start.min(r.start)..range.end.max(r.end);
        }
        let mut files = BTreeMap::new();
        for (id, range) in ranges {
            let source = sources.get(id)?;
            let start = source.text.get(..range.start)?.rfind('\n').map_or(0, |i| i + 1);
            let rest = source.text.get(range.end..)?;
            let end = rest.find('\n').map_or(source.text.len(), |i| range.end + i);
            let shown = source.text.get(start..end)?;
            if shown.lines().any(|l| l.len() > LONG_LINE) {
                return None;
            }
            // Empty lines in place of those before, so that the renderer counts right.
            let (_, line, _) = sources.position(Span::new(id, start, start));
            let above = line.saturating_sub(1);
            // Control characters would reach the terminal; they are one byte each, so the columns stay.
            let plain: String = shown
                .chars()
                .map(|c| if c.is_ascii_control() && !matches!(c, '\n' | '\t' | '\r') { '?' } else { c })
                .collect();
            let lines = Source::from("\n".repeat(above) + &plain);
            files
                .insert(id, Excerpt { name: &source.name, text: &source.text, offset: start - above, lines });
        }
        Some(Excerpts { files })
    }

    fn place(&self, span: Span) -> (FileId, Range<usize>) {
        let range = self.files.get(&span.file).map(|f| {
            let r = clip(f.text, span);
            r.start.saturating_sub(f.offset)..r.end.saturating_sub(f.offset)
        });
        (span.file, range.unwrap_or_default())
    }

    fn label(&self, label: &Label, color: Color) -> ariadne::Label<(FileId, Range<usize>)> {
        let out = ariadne::Label::new(self.place(label.span)).with_color(color);
        if label.text.is_empty() { out } else { out.with_message(&label.text) }
    }
}

impl ariadne::Cache<FileId> for &mut Excerpts<'_> {
    type Storage = String;

    fn fetch(&mut self, id: &FileId) -> Result<&Source<String>, impl std::fmt::Debug> {
        self.files.get(id).map(|f| &f.lines).ok_or("unknown file")
    }

    fn display<'b>(&self, id: &'b FileId) -> Option<impl std::fmt::Display + 'b> {
        self.files.get(id).map(|f| f.name.to_string())
    }
}

/// A span as a range of whole characters inside the text, without line breaks at its end.
fn clip(text: &str, span: Span) -> Range<usize> {
    let floor = |at: u32| {
        let at = (at as usize).min(text.len());
        (0..=at).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0)
    };
    let start = floor(span.start);
    let end = floor(span.end).max(start);
    let shown = text.get(start..end).unwrap_or("").trim_end();
    start..start + shown.len()
}

/// How the line of a fix looks once it is applied; `None` when that is not one short line.
fn fixed_line(sources: &SourceMap, fix: &Fix) -> Option<String> {
    let first = fix.edits.first()?;
    let text = &sources.get(first.span.file)?.text;
    let start = text.get(..first.span.start as usize)?.rfind('\n').map_or(0, |i| i + 1);
    let line = text.get(start..)?.split('\n').next()?;
    let mut inner = fix.clone();
    for edit in &mut inner.edits {
        let outside = edit.span.file != first.span.file || edit.span.end as usize > start + line.len();
        let before = (edit.span.start.min(edit.span.end) as usize) < start;
        if outside || before || edit.text.contains('\n') {
            return None;
        }
        edit.span.start -= start as u32;
        edit.span.end -= start as u32;
    }
    let line = diag::apply(line, &inner).trim().to_string();
    // Longer lines wrap in a terminal, where the change is hard to see.
    (!line.is_empty() && line.chars().count() <= 100).then_some(line)
}
