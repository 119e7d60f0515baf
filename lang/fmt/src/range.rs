//! Formatting of a part of a file: which statements or items a range touches, and the piece of the laid out file
//! that takes their place.
//!
//! A statement comes with the comments before it and the one that ends its last line, and with the line breaks in
//! front of these. So a piece of the laid out file fits wherever the same piece of the text was.

use crate::layout::DocBuilder;
use crate::print::Printed;
use crate::source::LexedSource;
use std::ops::Range;

/// The tokens of the statements or items that a range touches, of the innermost block that holds all of it. `None` if it
/// touches nothing.
pub fn touched(layout: &DocBuilder<'_>, range: &Range<usize>) -> Option<Range<usize>> {
    let source = layout.source;
    let holds = |tokens: &Range<usize>| {
        let start = if tokens.start == 0 { 0 } else { source.end(tokens.start - 1) };
        start <= range.start && range.start <= range.end && range.end <= source.start(tokens.end)
    };
    let innermost = |list: &&(Range<usize>, Vec<Range<usize>>)| list.0.len();
    let (_, parts) = layout.lists.iter().filter(|list| holds(&list.0)).min_by_key(innermost)?;
    let touches = |tokens: &&Range<usize>| {
        let (start, end) = (source.start(tokens.start), source.end(tokens.end.saturating_sub(1)));
        start < range.end && range.start < end
            || range.is_empty() && start <= range.start && range.start <= end
    };
    let first = parts.iter().find(touches)?;
    let last = parts.iter().rfind(touches)?;
    Some(first.start..last.end)
}

/// The place that formatting these tokens changes and its new text; `None` if nothing changes.
pub fn replacement(
    source: &LexedSource<'_>,
    printed: &Printed,
    tokens: Range<usize>,
) -> Option<(Range<usize>, String)> {
    let (from, printed_from) = boundary(source, printed, tokens.start);
    let (to, printed_to) = boundary(source, printed, tokens.end);
    let text = printed.text.get(printed_from..printed_to)?;
    (source.text.get(from..to)? != text).then(|| (from..to, text.to_string()))
}

/// The end of the text before a token, with the comment at the end of its line: in the source, and laid out.
fn boundary(source: &LexedSource<'_>, printed: &Printed, token: usize) -> (usize, usize) {
    let Some(before) = token.checked_sub(1) else { return (0, 0) };
    let comments = source.comments_before(token);
    let trails = !comments.is_empty() && source.trails(comments.start);
    let known = comments.start + usize::from(trails);
    let comment = known.checked_sub(1);
    let end = match comment.and_then(|c| source.comments.get(c)) {
        Some(c) if trails => c.span.end as usize,
        Some(_) | None => source.end(before),
    };
    // A repeated `;` is left out. A comment that was before the token may have moved after it.
    let before = (0..=before).rev().find(|at| !source.repeats(*at));
    let laid_out = |ends: &[usize], at: Option<usize>| at.and_then(|at| ends.get(at)).copied().unwrap_or(0);
    (end, laid_out(&printed.token_ends, before).max(laid_out(&printed.comment_ends, comment)))
}
