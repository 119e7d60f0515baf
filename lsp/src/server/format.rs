//! Owns formatting: the edits between a text and its one layout.
//!
//! Guarantees small edits, line by line, so that an editor keeps the cursor and its marks. A text with mistakes in its
//! syntax has no layout; then there are no edits, and the diagnostics say why.

use std::ops::Range;
use std::time::{Duration, Instant};

use gen_lsp_types as lsp;
use similar::{Algorithm, DiffTag, capture_diff_slices_deadline};

use super::answer::Answer;
use super::lifecycle::Server;
use super::position::Lines;

/// How long small edits are looked for; a long text of which every line changes is replaced as a whole.
const PATIENCE: Duration = Duration::from_millis(100);

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
    let split = |text| str::split_inclusive(text, '\n').collect::<Vec<_>>();
    let (before, after) = (split(old), split(new));
    // The byte at which each line starts, and the end.
    let starts: Vec<usize> = before
        .iter()
        .map(|l| l.len())
        .chain([0])
        .scan(range.start, |at, length| Some(std::mem::replace(at, *at + length)))
        .collect();
    let at = |line: usize| starts.get(line).copied().unwrap_or(range.end);
    let deadline = Instant::now().checked_add(PATIENCE);
    let ops = capture_diff_slices_deadline(Algorithm::Myers, &before, &after, deadline);
    let changed = ops.iter().filter(|op| op.tag() != DiffTag::Equal);
    let edit = |op: &similar::DiffOp| lsp::TextEdit {
        range: lines.range(at(op.old_range().start), at(op.old_range().end)),
        new_text: after.get(op.new_range()).unwrap_or(&[]).concat(),
    };
    changed.map(edit).collect()
}
