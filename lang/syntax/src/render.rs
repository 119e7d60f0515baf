//! Renders a diagnostic for a terminal: the source with its labels, then notes and fixes.
//!
//! Accepts any span, also outside its file: it is clipped to the text, so nothing panics. A [`Renderer`] prepares each
//! file once, so that a million diagnostics of a long file take time in proportion.

use crate::diag::{self, Diagnostic, Fix, Label, Severity};
use crate::escape::{escaped, escaped_name};
use crate::span::{FileId, SourceMap, Span};
use ariadne::{Color, Config, IndexType, Report, ReportKind, Source};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;

/// A line longer than this says nothing in a terminal: the position alone is shown.
const LONG_LINE: usize = 1000;

/// Stands for the text of a primary label that has none, until the rendered text is [`underlined`].
const UNLABELLED: char = '\u{ffff}';

/// The text of one diagnostic for a terminal, with a line break at its end.
pub fn render(sources: &SourceMap, diag: &Diagnostic, color: bool) -> String {
    Renderer::new(sources).render(diag, color)
}

/// Renders the diagnostics of one compilation.
pub struct Renderer<'a> {
    sources: &'a SourceMap,
    /// The files that were shown, as a terminal may show them.
    shown: BTreeMap<FileId, Source<String>>,
}

/// The lines of a fix that are shown: a declaration and its uses, while more hide the message itself.
const MOST_LINES: usize = 4;

/// The most characters of such a line.
const WIDEST: usize = 100;

impl<'a> Renderer<'a> {
    /// For diagnostics whose places are in these files.
    pub fn new(sources: &'a SourceMap) -> Self {
        Renderer { sources, shown: BTreeMap::new() }
    }

    /// The text of a diagnostic for a terminal, with a line break at its end.
    pub fn render(&mut self, diag: &Diagnostic, color: bool) -> String {
        let mut text = self.body(diag, color);
        for note in &diag.notes {
            text.push_str(&format!("  note: {}\n", escaped(note)));
        }
        for fix in &diag.fixes {
            text.push_str(&format!("  help: {}\n", escaped(&fix.title)));
            for line in fixed_lines(self.sources, fix).unwrap_or_default() {
                text.push_str(&format!("        {}\n", escaped(&line)));
            }
        }
        text
    }

    /// The header and the labelled source.
    fn body(&mut self, diag: &Diagnostic, color: bool) -> String {
        let (kind, ink, escape) = match diag.severity {
            Severity::Error => ("error", Color::Red, "31"),
            Severity::Warning => ("warning", Color::Yellow, "33"),
            Severity::Note => ("note", Color::Blue, "34"),
        };
        let message = diag.message.replace('\n', " ");
        let message = escaped(&message);
        let header = if color {
            format!("\u{1b}[{escape}m{kind}[{}]:\u{1b}[0m {message}\n", diag.code)
        } else {
            format!("{kind}[{}]: {message}\n", diag.code)
        };
        let plain = |header: &str| {
            if diag.primary.span.is_nowhere() {
                return header.to_string();
            }
            let (name, line, column) = self.sources.position(diag.primary.span);
            format!("{header}  at {}:{line}:{column}\n", escaped_name(name))
        };
        if std::iter::once(&diag.primary).chain(&diag.secondary).any(|l| !self.can_show(l.span)) {
            return plain(&header);
        }
        let config = Config::default().with_index_type(IndexType::Byte).with_color(color).with_tab_width(4);
        // ariadne underlines only what has a text.
        let mut primary = diag.primary.clone();
        if primary.text.is_empty() {
            primary.text = UNLABELLED.to_string();
        }
        let mut report =
            Report::build(ReportKind::Error, self.place(diag.primary.span)).with_config(config).with_label(
                self.label(&primary, ink).with_order(if diag.primary.text.is_empty() { -1 } else { 0 }),
            );
        let (_, place) = self.place(diag.primary.span);
        let one_line = !self
            .sources
            .get(diag.primary.span.file)
            .is_some_and(|s| s.text.get(place).is_some_and(|text| text.contains('\n')));
        for other in &diag.secondary {
            report.add_label(self.label(other, Color::Blue));
        }
        let mut out = Vec::new();
        match report.finish().write(&mut *self, &mut out) {
            Ok(()) => {
                // The first line is the renderer's own header.
                let text = String::from_utf8_lossy(&out);
                header + &underlined(text.lines().skip(1), one_line)
            }
            Err(_) => plain(&header),
        }
    }

    /// Returns true if a span is in a known file, in lines that a terminal can show. Prepares the file.
    fn can_show(&mut self, span: Span) -> bool {
        let Some(source) = self.sources.get(span.file) else { return false };
        let text = &source.text;
        let Range { start, end } = clip(text, span);
        let begin = text.get(..start).and_then(|t| t.rfind('\n')).map_or(0, |i| i + 1);
        let last = text.get(end..).and_then(|t| t.find('\n')).map_or(text.len(), |i| end + i);
        let lines = text.get(begin..last).unwrap_or_default();
        if lines.split('\n').any(|l| l.len() > LONG_LINE) {
            return false;
        }
        if let Entry::Vacant(entry) = self.shown.entry(span.file) {
            entry.insert(Source::from(for_terminal(text)));
        }
        true
    }

    fn place(&self, span: Span) -> (FileId, Range<usize>) {
        (span.file, self.sources.get(span.file).map(|s| clip(&s.text, span)).unwrap_or_default())
    }

    fn label(&self, label: &Label, color: Color) -> ariadne::Label<(FileId, Range<usize>)> {
        let out = ariadne::Label::new(self.place(label.span)).with_color(color);
        if label.text.is_empty() { out } else { out.with_message(escaped(&label.text)) }
    }
}

/// The lines of a report, where a label without text is an underline alone: the arrow to [`UNLABELLED`] is left out.
/// The label of several lines keeps its arrow, as nothing else marks them.
fn underlined<'t>(lines: impl Iterator<Item = &'t str>, one_line: bool) -> String {
    let mut out: Vec<String> = vec![];
    for line in lines {
        let Some(arrow) = line.trim_end().strip_suffix(UNLABELLED) else {
            out.push(line.trim_end().to_string());
            continue;
        };
        let corner = visible(arrow).position(|(_, c)| c == '╰');
        match (out.last_mut(), corner) {
            // The line above is the underline, with the start of the arrow in it.
            (Some(above), Some(corner)) if one_line => {
                let joint = visible(above).nth(corner);
                if let Some((at, joint)) = joint {
                    above.replace_range(at..at + joint.len_utf8(), "─");
                }
            }
            _ => out.push(arrow.trim_end().to_string()),
        }
    }
    out.iter().map(|line| line.clone() + "\n").collect()
}

/// The characters of a line that a terminal shows, with their positions: those outside of escape sequences.
fn visible(line: &str) -> impl Iterator<Item = (usize, char)> {
    let mut escape = false;
    line.char_indices().filter(move |(_, c)| {
        let hidden = escape || *c == '\u{1b}';
        escape = hidden && *c != 'm';
        !hidden
    })
}

/// A text of the same length with the same lines, without characters that would do something to a terminal, or that
/// the renderer takes for the end of a line.
fn for_terminal(text: &str) -> String {
    let mut chars = text.chars().peekable();
    let mut out = String::with_capacity(text.len());
    while let Some(c) = chars.next() {
        out.push(match c {
            '\n' | '\t' => c,
            '\r' if chars.peek() == Some(&'\n') => c,
            '\u{85}' => '\u{bf}',
            '\u{2028}' | '\u{2029}' | UNLABELLED => '\u{fffd}',
            c if c.is_ascii_control() => '?',
            c => c,
        });
    }
    out
}

impl ariadne::Cache<FileId> for &mut Renderer<'_> {
    type Storage = String;

    fn fetch(&mut self, id: &FileId) -> Result<&Source<String>, impl std::fmt::Debug> {
        self.shown.get(id).ok_or("unknown file")
    }

    fn display<'b>(&self, id: &'b FileId) -> Option<impl std::fmt::Display + 'b> {
        self.sources.get(*id).map(|s| escaped_name(&s.name).into_owned())
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

/// What a fix makes of the part of a line that it changes; `None` if that is long too.
fn changed_part(line: &str, mut fix: Fix) -> Option<String> {
    let start = fix.edits.iter().map(|e| e.span.start.min(e.span.end)).min()?;
    let end = fix.edits.iter().map(|e| e.span.start.max(e.span.end)).max()?;
    for edit in &mut fix.edits {
        edit.span.start -= start;
        edit.span.end -= start;
    }
    let part = diag::apply(line.get(start as usize..end as usize)?, &fix).trim().to_string();
    let says = !part.is_empty() && part.chars().count() <= WIDEST && !fix.title.contains(&part);
    says.then(|| format!(".. {part} .."))
}

/// The lines that a fix changes, after it is applied; `None` unless they are a few short ones.
fn fixed_lines(sources: &SourceMap, fix: &Fix) -> Option<Vec<String>> {
    let file = fix.edits.first()?.span.file;
    let text = &sources.get(file)?.text;
    let mut lines: BTreeMap<usize, Fix> = BTreeMap::new();
    for edit in &fix.edits {
        let (start, end) = (edit.span.start.min(edit.span.end) as usize, edit.span.end as usize);
        let line = text.get(..start)?.rfind('\n').map_or(0, |i| i + 1);
        if edit.span.file != file || text.get(start..end)?.contains('\n') || edit.text.contains('\n') {
            return None;
        }
        let mut edit = edit.clone();
        edit.span.start -= line as u32;
        edit.span.end -= line as u32;
        let of_line = || Fix { title: fix.title.clone(), edits: vec![] };
        lines.entry(line).or_insert_with(of_line).edits.push(edit);
    }
    if lines.len() > MOST_LINES {
        return None;
    }
    let shown = lines.into_iter().map(|(start, edits)| {
        let line = text.get(start..)?.split('\n').next()?;
        let line = diag::apply(line, &edits).trim().to_string();
        // Longer lines wrap in a terminal, where the change is hard to see.
        if line.chars().count() <= WIDEST { Some(line) } else { changed_part(text.get(start..)?, edits) }
    });
    let shown: Vec<String> = shown.collect::<Option<_>>()?;
    Some(shown.into_iter().filter(|line| !line.is_empty()).collect())
}
