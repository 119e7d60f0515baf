//! The lines of a text, and the way between its bytes and the positions of an editor.
//!
//! Guarantees that every position has a byte and every byte a position: positions outside are moved to the nearest end of
//! its line or of the text, those inside of a character to the character's start.

use std::ops::Range;
use std::sync::Arc;

use gen_lsp_types as lsp;
use tk_syntax::token::LINE_END;

/// The unit in which a client counts positions inside of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Bytes.
    Utf8,
    /// Units of 16 bits; what the protocol means unless something else was agreed.
    Utf16,
}

/// Bytes between two entries of [`Lines::marks`]: what is counted again for each position. With 256 the table needs 1.6 %
/// of the text and a position in a line of 10 MB takes below a microsecond.
const STEP: usize = 256;

/// A text with its lines.
#[derive(Clone, Debug)]
pub struct Lines {
    text: Arc<str>,
    /// The byte at which each line starts.
    starts: Vec<usize>,
    /// For each multiple of [`STEP`] the number of 16-bit units of the characters that start before it; empty when units
    /// are bytes.
    marks: Vec<usize>,
    encoding: Encoding,
    /// Blanks that the client does not have, in order ([`super::slack`]).
    slack: Vec<Range<usize>>,
}

impl Lines {
    /// Finds the lines of a text.
    pub fn new(text: Arc<str>, encoding: Encoding) -> Lines {
        Lines::with_slack(text, encoding, vec![])
    }

    /// Finds the lines of a text that has blanks at the ends of lines that the client does not have: they have no
    /// positions.
    pub fn with_slack(text: Arc<str>, encoding: Encoding, slack: Vec<Range<usize>>) -> Lines {
        let bytes = text.as_bytes();
        let mut starts = vec![0];
        for (i, b) in bytes.iter().enumerate() {
            // A carriage return ends a line, too, unless a line feed follows.
            if *b == b'\n' || (*b == b'\r' && bytes.get(i + 1) != Some(&b'\n')) {
                starts.push(i + 1);
            }
        }
        let marks = match encoding {
            Encoding::Utf16 if !text.is_ascii() => marks(&text),
            Encoding::Utf16 | Encoding::Utf8 => vec![],
        };
        Lines { text, starts, marks, encoding, slack }
    }

    /// The text.
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// The blanks that the client does not have.
    pub fn slack(&self) -> &[Range<usize>] {
        &self.slack
    }

    /// The unit of positions.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// The text that the client has.
    pub fn plain(&self) -> String {
        let starts = std::iter::once(0).chain(self.slack.iter().map(|s| s.end));
        let ends = self.slack.iter().map(|s| s.start).chain([self.text.len()]);
        starts.zip(ends).filter_map(|(start, end)| self.text.get(start..end)).collect()
    }

    /// The byte of a byte of the text that the client has.
    pub fn of_plain(&self, plain: usize) -> usize {
        self.slack.iter().fold(plain, |at, s| if s.start < at { at + s.len() } else { at })
    }

    /// The slack that contains a byte or ends there.
    fn slack_at(&self, offset: usize) -> Option<&Range<usize>> {
        let next = self.slack.partition_point(|s| s.start < offset);
        self.slack.get(next.checked_sub(1)?).filter(|s| offset <= s.end)
    }

    /// The byte of a position.
    pub fn offset(&self, position: lsp::Position) -> usize {
        let line = position.line as usize;
        let Some(start) = self.starts.get(line).copied() else { return self.text.len() };
        let end = self.end(line);
        let column = position.character as usize;
        let offset = if self.marks.is_empty() {
            start.saturating_add(column)
        } else {
            self.at_unit(self.units(start).saturating_add(column))
        };
        floor(&self.text, offset.clamp(start, end))
    }

    /// The bytes of a range; empty where it ends before it starts.
    pub fn bytes(&self, range: lsp::Range) -> Range<usize> {
        let start = self.offset(range.start);
        start..self.offset(range.end).max(start)
    }

    /// The position of a byte.
    pub fn position(&self, offset: usize) -> lsp::Position {
        let line = self.starts.partition_point(|s| *s <= offset).saturating_sub(1);
        let slack = self.slack.partition_point(|s| s.start < offset);
        Walk { lines: self, line, slack }.position(offset)
    }

    /// Positions of many bytes, in ascending order.
    pub fn walk(&self) -> Walk<'_> {
        Walk { lines: self, line: 0, slack: 0 }
    }

    /// The range of some bytes.
    pub fn range(&self, start: usize, end: usize) -> lsp::Range {
        lsp::Range { start: self.position(start), end: self.position(end.max(start)) }
    }

    /// Returns true if something other than space follows a byte in its line.
    pub fn more_in_line(&self, offset: usize) -> bool {
        let rest = self.text.get(floor(&self.text, offset)..).unwrap_or("");
        rest.chars().take_while(|c| !LINE_END.contains(c)).any(|c| !c.is_whitespace())
    }

    /// The end of a line, without the characters that end it.
    fn end(&self, line: usize) -> usize {
        let start = self.starts.get(line).copied().unwrap_or(0);
        let next = self.starts.get(line + 1).copied().unwrap_or(self.text.len());
        let content = self.text.get(start..next).unwrap_or("");
        let content = content.strip_suffix('\n').unwrap_or(content);
        let end = start + content.strip_suffix('\r').unwrap_or(content).len();
        self.slack_at(end).map_or(end, |s| s.start)
    }

    /// The units of the text before a byte, which is the start of a character.
    fn units(&self, offset: usize) -> usize {
        let Some(before) = self.marks.get(offset / STEP) else { return offset };
        let from = ceil(&self.text, offset / STEP * STEP);
        before + self.text.get(from..offset).map_or(0, |t| t.chars().map(char::len_utf16).sum())
    }

    /// The start of the character to which a unit of the text belongs.
    fn at_unit(&self, unit: usize) -> usize {
        let mark = self.marks.partition_point(|m| *m <= unit).saturating_sub(1);
        let mut units = self.marks.get(mark).copied().unwrap_or(0);
        let from = ceil(&self.text, mark * STEP);
        for (i, c) in self.text.get(from..).unwrap_or("").char_indices() {
            units += c.len_utf16();
            if units > unit {
                return from + i;
            }
        }
        self.text.len()
    }
}

/// Finds the positions of bytes from the start of a text to its end, without a search for each.
pub struct Walk<'a> {
    lines: &'a Lines,
    /// The line of the last byte, or one before it.
    line: usize,
    /// The number of blanks that start before the last byte.
    slack: usize,
}

impl Walk<'_> {
    /// The position of a byte that is not before the last one.
    pub fn position(&mut self, offset: usize) -> lsp::Position {
        let Lines { text, starts, slack, .. } = self.lines;
        while slack.get(self.slack).is_some_and(|s| s.start < offset) {
            self.slack += 1;
        }
        let last = self.slack.checked_sub(1).and_then(|i| slack.get(i));
        let inside = last.filter(|s| offset <= s.end);
        let offset = floor(text, inside.map_or(offset, |s| s.start));
        while starts.get(self.line + 1).is_some_and(|s| *s <= offset) {
            self.line += 1;
        }
        let start = starts.get(self.line).copied().unwrap_or(0);
        // A carriage return stands behind the blanks.
        let blanks = last.filter(|s| inside.is_none() && s.start >= start);
        let column = self.lines.units(offset) - self.lines.units(start) - blanks.map_or(0, |s| s.len());
        lsp::Position { line: clip(self.line), character: clip(column) }
    }
}

fn marks(text: &str) -> Vec<usize> {
    let mut marks = vec![];
    let mut units = 0;
    for (i, c) in text.char_indices() {
        while marks.len() * STEP <= i {
            marks.push(units);
        }
        units += c.len_utf16();
    }
    while marks.len() * STEP <= text.len() {
        marks.push(units);
    }
    marks
}

/// A number of the protocol.
pub fn clip(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn floor(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

fn ceil(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset += 1;
    }
    offset
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: u32, character: u32) -> lsp::Position {
        lsp::Position { line, character }
    }

    #[test]
    fn units_of_both_encodings() {
        let text: Arc<str> = "aä😀z\r\nb\rc\n".into();
        let bytes = Lines::new(text.clone(), Encoding::Utf8);
        let units = Lines::new(text.clone(), Encoding::Utf16);
        let z = text.find('z').unwrap();
        assert_eq!((bytes.position(z), units.position(z)), (at(0, 7), at(0, 4)));
        assert_eq!((bytes.offset(at(0, 7)), units.offset(at(0, 4))), (z, z));
        // Inside of the pair, after the end of the line, of the text, and far away.
        assert_eq!(units.offset(at(0, 3)), 3);
        assert_eq!(bytes.offset(at(0, 5)), 3);
        assert_eq!(units.offset(at(0, 99)), z + 1);
        assert_eq!(units.offset(at(u32::MAX, u32::MAX)), text.len());
        assert_eq!(bytes.offset(at(1, u32::MAX)), text.find('b').unwrap() + 1);
        assert_eq!(units.position(text.find('c').unwrap()), at(2, 0));
        assert_eq!(units.position(usize::MAX), at(3, 0));
    }

    #[test]
    fn a_long_line_is_counted_as_a_short_one() {
        let text: Arc<str> = "xä😀→".repeat(500).into();
        let lines = Lines::new(text.clone(), Encoding::Utf16);
        let mut units = 0;
        for (i, c) in text.char_indices() {
            assert_eq!(lines.position(i), at(0, units));
            assert_eq!(lines.offset(at(0, units)), i);
            units += c.len_utf16() as u32;
            assert_eq!(lines.offset(at(0, units - 1)), i);
        }
        assert_eq!(lines.offset(at(0, units)), text.len());
    }
}
