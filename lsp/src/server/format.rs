//! Formatting: the edits between a text and its one layout.
//!
//! Guarantees small edits, line by line, so that an editor keeps the cursor and its marks. A text with mistakes in
//! its syntax has no layout; then the result has no edits, and the diagnostics say why.

use std::ops::Range;

use gen_lsp_types as lsp;

use super::answer::Answer;
use super::lifecycle::Server;
use super::position::Lines;

impl Server {
    /// `textDocument/formatting`
    pub fn format(&mut self, p: lsp::DocumentFormattingParams) -> Answer<Option<Vec<lsp::TextEdit>>> {
        let Some((_, lines)) = self.plain(&p.text_document) else { return Ok(None) };
        let Ok(new) = tk_fmt::format(lines.text()) else { return Ok(None) };
        Ok(Some(edits(&lines, 0..lines.text().len(), &new)))
    }

    /// `textDocument/rangeFormatting`
    pub fn format_range(
        &mut self,
        p: lsp::DocumentRangeFormattingParams,
    ) -> Answer<Option<Vec<lsp::TextEdit>>> {
        let Some((_, lines)) = self.plain(&p.text_document) else { return Ok(None) };
        let Some((range, new)) = tk_fmt::format_range(lines.text(), lines.bytes(p.range)) else {
            return Ok(None);
        };
        Ok(Some(edits(&lines, range, &new)))
    }

    /// `textDocument/onTypeFormatting`: what the `;` or `}` before the position has ended.
    pub fn format_typed(
        &mut self,
        p: lsp::DocumentOnTypeFormattingParams,
    ) -> Answer<Option<Vec<lsp::TextEdit>>> {
        let Some((_, lines)) = self.plain(&p.text_document) else { return Ok(None) };
        let at = lines.offset(p.position);
        let start = at.saturating_sub(p.ch.len());
        if lines.text().get(start..at) != Some(p.ch.as_str()) {
            return Ok(None);
        }
        let Some((range, new)) = tk_fmt::format_range(lines.text(), start..at) else { return Ok(None) };
        Ok(Some(edits(&lines, range, &new)))
    }
}

/// The edits that make `new` of a range.
fn edits(lines: &Lines, range: Range<usize>, new: &str) -> Vec<lsp::TextEdit> {
    let old = lines.text().get(range.clone()).unwrap_or("");
    let before: Vec<&str> = old.split_inclusive('\n').collect();
    let after: Vec<&str> = new.split_inclusive('\n').collect();
    let length = |lines: &[&str]| lines.iter().map(|l| l.len()).sum::<usize>();
    let (mut line, mut at) = (0, range.start);
    let edit = |(replaced, written): (Range<usize>, Range<usize>)| {
        let start = at + length(before.get(line..replaced.start).unwrap_or(&[]));
        let end = start + length(before.get(replaced.clone()).unwrap_or(&[]));
        (line, at) = (replaced.end, end);
        lsp::TextEdit { range: lines.range(start, end), new_text: after.get(written).unwrap_or(&[]).concat() }
    };
    tk_fmt::changes(&before, &after).into_iter().map(edit).collect()
}
