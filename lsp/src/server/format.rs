//! Owns formatting: the edits between a text and its one layout.
//!
//! Guarantees small edits, line by line, so that an editor keeps the cursor and its marks. A text with mistakes in its
//! syntax has no layout; then there are no edits, and the diagnostics say why.

use std::ops::Range;

use gen_lsp_types as lsp;
use imara_diff::{Algorithm, Diff, Hunk, InternedInput};

use super::answer::Answer;
use super::lifecycle::Server;
use super::position::Lines;

impl Server {
    /// `textDocument/formatting`
    pub fn format(&mut self, p: lsp::DocumentFormattingParams) -> Answer<Option<Vec<lsp::TextEdit>>> {
        let Some((_, lines)) = self.document(&p.text_document) else { return Ok(None) };
        let Ok(new) = tk_fmt::format(lines.text()) else { return Ok(None) };
        Ok(Some(edits(&lines, 0..lines.text().len(), &new)))
    }

    /// `textDocument/rangeFormatting`
    pub fn format_range(
        &mut self,
        p: lsp::DocumentRangeFormattingParams,
    ) -> Answer<Option<Vec<lsp::TextEdit>>> {
        let Some((_, lines)) = self.document(&p.text_document) else { return Ok(None) };
        let Some((range, new)) = tk_fmt::format_range(lines.text(), lines.bytes(p.range)) else {
            return Ok(None);
        };
        Ok(Some(edits(&lines, range, &new)))
    }
}

/// The edits that make `new` of a range.
fn edits(lines: &Lines, range: Range<usize>, new: &str) -> Vec<lsp::TextEdit> {
    let old = lines.text().get(range.clone()).unwrap_or("");
    let diff = Diff::compute(Algorithm::Histogram, &InternedInput::new(old, new));
    let (before, after) = (starts(old), starts(new));
    let bytes = |starts: &[usize], lines: Range<u32>, end: usize| {
        let at = |line: u32| starts.get(line as usize).copied().unwrap_or(end);
        at(lines.start)..at(lines.end)
    };
    let edit = |hunk: Hunk| {
        let replaced = bytes(&before, hunk.before, old.len());
        let written = bytes(&after, hunk.after, new.len());
        lsp::TextEdit {
            range: lines.range(range.start + replaced.start, range.start + replaced.end),
            new_text: new.get(written).unwrap_or("").to_string(),
        }
    };
    diff.hunks().map(edit).collect()
}

/// The byte at which each line starts.
fn starts(text: &str) -> Vec<usize> {
    let ends = text.split_inclusive('\n').scan(0, |at, line| {
        *at += line.len();
        Some(*at)
    });
    std::iter::once(0).chain(ends).collect()
}
