//! Formatting: the edits between a text and its one layout.
//!
//! Guarantees small edits, line by line, so that an editor keeps the cursor and its marks. A text with mistakes in
//! its syntax has no layout; then the result has no edits, and the diagnostics say why.

use std::ops::Range;

use gen_lsp_types as lsp;
use tk_syntax::FileId;
use tk_syntax::token::{Tok, lex};

use super::answer::Answer;
use super::lifecycle::Server;
use super::position::Lines;
use crate::ide::form::line_edits;

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
        if lines.text().get(start..at) != Some(p.ch.as_str()) || !ends_token(lines.text(), at) {
            return Ok(None);
        }
        let Some((range, new)) = tk_fmt::format_range(lines.text(), start..at) else { return Ok(None) };
        Ok(Some(edits(&lines, range, &new)))
    }
}

/// The edits that make `new` of a range.
fn edits(lines: &Lines, range: Range<usize>, new: &str) -> Vec<lsp::TextEdit> {
    let edit = |(r, text): (Range<usize>, String)| lsp::TextEdit {
        range: lines.range(r.start, r.end),
        new_text: text,
    };
    line_edits(lines.text(), range, new).into_iter().map(edit).collect()
}

/// Returns true if a token of the text, and no part of a string or comment, ends at an offset.
fn ends_token(text: &str, at: usize) -> bool {
    let tokens = lex(FileId(0), text).tokens;
    tokens.binary_search_by_key(&at, |t| t.end).is_ok_and(|i| !matches!(tokens[i].tok, Tok::Str(_)))
}
