//! Source positions: files, byte spans, lines.
//!
//! A [`Span`] is only meaningful together with the [`SourceMap`] that issued its [`FileId`].

use std::sync::Arc;

/// A file of a [`SourceMap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct FileId(pub u32);

/// A half-open range of bytes in one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The place of what is about no source, such as a tool that is missing.
    pub const NOWHERE: Span = Span { file: FileId(u32::MAX), start: 0, end: 0 };

    /// Returns true if it is about no source.
    pub fn is_nowhere(self) -> bool {
        self.file == Span::NOWHERE.file
    }

    /// The span of `start..end` in `file`.
    pub fn new(file: FileId, start: usize, end: usize) -> Self {
        let clip = |x: usize| u32::try_from(x).unwrap_or(u32::MAX);
        Span { file, start: clip(start), end: clip(end) }
    }

    /// The smallest span that covers both; `self` when the files differ.
    pub fn to(self, other: Span) -> Span {
        if self.file != other.file {
            return self;
        }
        Span { file: self.file, start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// The empty span at the end of this one, where a fix inserts text.
    pub fn after(self) -> Span {
        Span { start: self.end, ..self }
    }

    /// The empty span at the start of this one.
    pub fn before(self) -> Span {
        Span { end: self.start, ..self }
    }
}

/// One source file with its name as shown to the user.
#[derive(Clone, Debug)]
pub struct Source {
    /// The name as given by the user, or `std/NAME.tk` for a built-in file.
    pub name: Arc<str>,
    /// The text; bytes that are no UTF-8 have been replaced before.
    pub text: Arc<str>,
    lines: Arc<[u32]>,
}

impl Source {
    fn new(name: Arc<str>, text: &str) -> Source {
        let breaks = text.match_indices('\n').map(|(i, _)| i as u32 + 1);
        let mut lines: Vec<u32> = std::iter::once(0).chain(breaks).collect();
        // A carriage return ends a line, too, unless a line feed follows.
        let returns = text.match_indices('\r').map(|(i, _)| i + 1);
        let count = lines.len();
        lines.extend(returns.filter(|i| text.as_bytes().get(*i) != Some(&b'\n')).map(|i| i as u32));
        if lines.len() > count {
            lines.sort_unstable();
        }
        Source { name, text: text.into(), lines: lines.into() }
    }

    /// The byte at which each line begins, in order.
    pub fn lines(&self) -> &[u32] {
        &self.lines
    }
}

/// All files of one compilation.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    files: Vec<Source>,
}

impl SourceMap {
    /// Adds a file and returns its id.
    pub fn add(&mut self, name: &str, text: &str) -> FileId {
        self.files.push(Source::new(name.into(), text));
        FileId(self.files.len() as u32 - 1)
    }

    /// Gives a file another text.
    pub fn replace(&mut self, id: FileId, text: &str) {
        if let Some(source) = self.files.get_mut(id.0 as usize) {
            *source = Source::new(source.name.clone(), text);
        }
    }

    /// The file, if `id` was issued by this map.
    pub fn get(&self, id: FileId) -> Option<&Source> {
        self.files.get(id.0 as usize)
    }

    /// Every file in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = (FileId, &Source)> {
        self.files.iter().enumerate().map(|(i, s)| (FileId(i as u32), s))
    }

    /// The text of a span; empty if the span is outside its file.
    pub fn text(&self, span: Span) -> &str {
        self.get(span.file).and_then(|s| s.text.get(span.start as usize..span.end as usize)).unwrap_or("")
    }

    /// File name, line and column (both from 1, the column in characters) of the start of a span.
    pub fn position(&self, span: Span) -> (&str, usize, usize) {
        let Some(source) = self.get(span.file) else { return ("?", 0, 0) };
        let line = source.lines.partition_point(|&l| l <= span.start).saturating_sub(1);
        let begin = source.lines.get(line).copied().unwrap_or(0) as usize;
        let column = source.text.get(begin..span.start as usize).map_or(0, |t| t.chars().count());
        (&source.name, line + 1, column + 1)
    }
}
