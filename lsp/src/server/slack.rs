//! Blanks behind the items of an open file, which an edit takes or gives: what is behind the item stays where it is, so
//! that everything that is known of it stays true ([`tk_sema::Indexed::with_text`]).
//!
//! The client knows nothing of them: they are at ends of lines, and have no positions ([`Lines::with_slack`]).

use std::ops::Range;

use tk_syntax::ast::{File, ItemKind};

use super::position::Lines;

/// The blanks behind an item.
const LENGTH: usize = 64;

/// The blanks behind the item that changes.
const LENGTH_OF_CHANGED: usize = 2048;

/// The lines after an edit. `tree` is the tree of the text before, if there is one; where the blanks behind the
/// changed item do not suffice, there are new ones behind every item of it.
pub fn edited(lines: &Lines, range: Range<usize>, new: &str, tree: Option<&File>) -> Lines {
    if let Some(done) = replaced(lines, range.clone(), new, true) {
        return done;
    }
    let (text, slack, range) = match tree {
        Some(tree) => spread(lines, tree, range),
        None => (lines.text().to_string(), lines.slack().to_vec(), range),
    };
    let wider = Lines::with_slack(text.into(), lines.encoding(), slack);
    let done = replaced(&wider, range.clone(), new, true);
    done.or_else(|| replaced(&wider, range, new, false)).unwrap_or(wider)
}

/// The lines with another text, of which only what differs is an edit.
pub fn rewritten(lines: &Lines, new: &str, tree: Option<&File>) -> Lines {
    let old = lines.plain();
    let same = |(a, b): &((usize, char), (usize, char))| a.1 == b.1;
    let differs = old.char_indices().zip(new.char_indices()).find(|pair| !same(pair));
    let start = differs.map_or(old.len().min(new.len()), |(a, _)| a.0);
    let (old_rest, new_rest) = (old.get(start..).unwrap_or(""), new.get(start..).unwrap_or(""));
    let tail = old_rest.chars().rev().zip(new_rest.chars().rev()).take_while(|(a, b)| a == b);
    let tail: usize = tail.map(|(c, _)| c.len_utf8()).sum();
    let inserted = new_rest.get(..new_rest.len() - tail).unwrap_or("");
    edited(lines, lines.of_plain(start)..lines.of_plain(old.len() - tail), inserted, tree)
}

/// The lines with a range replaced: the blanks behind it become fewer or more, if they suffice and that is asked for.
fn replaced(lines: &Lines, range: Range<usize>, new: &str, keep: bool) -> Option<Lines> {
    let mut text = String::with_capacity(lines.text().len() + new.len() + LENGTH);
    let mut slack: Vec<Range<usize>> = vec![];
    let behind = lines.slack().iter().position(|s| s.start >= range.end);
    let head = lines.slack().iter().take_while(|s| s.end <= range.start);
    slack.extend(head.cloned());
    text.push_str(lines.text().get(..range.start)?);
    text.push_str(new);
    let mut rest = range.end;
    if keep {
        let first = lines.slack().get(behind?)?;
        let length = (first.len() + range.len()).checked_sub(new.len()).filter(|n| *n > 0)?;
        text.push_str(lines.text().get(range.end..first.start)?);
        slack.push(text.len()..text.len() + length);
        text.extend(std::iter::repeat_n(' ', length));
        rest = first.end;
    }
    let moved = |at: usize| at - rest + text.len();
    let tail = lines.slack().iter().filter(|s| s.start >= rest);
    slack.extend(tail.map(|s| moved(s.start)..moved(s.end)).collect::<Vec<_>>());
    text.push_str(lines.text().get(rest..)?);
    Some(Lines::with_slack(text.into(), lines.encoding(), slack))
}

/// The text with blanks behind every item that has a body, and where a range is then. Other blanks of ours are gone: what
/// was the end of an item may be inside of one now.
fn spread(lines: &Lines, tree: &File, range: Range<usize>) -> (String, Vec<Range<usize>>, Range<usize>) {
    let plain = lines.plain();
    let to_plain = |at: usize| {
        let before = lines.slack().iter().take_while(|s| s.start < at);
        at - before.map(|s| s.end.min(at) - s.start).sum::<usize>()
    };
    let range = to_plain(range.start)..to_plain(range.end);
    let (mut text, mut slack, mut rest) = (String::new(), vec![], 0);
    let (mut start, mut end) = (range.start, range.end);
    for item in &tree.items {
        let has_body = matches!(item.kind, ItemKind::Fn(_) | ItemKind::Test(_) | ItemKind::Struct(_));
        let (first, from) = (to_plain(item.span.start as usize), to_plain(item.span.end as usize));
        let line = plain.get(from..).map_or(0, |t| t.find(['\n', '\r']).unwrap_or(t.len()));
        let at = from + line;
        let same_line = at <= rest && !slack.is_empty();
        if !has_body || same_line {
            continue;
        }
        let changed = first <= range.start && range.start <= at;
        let length = if changed { LENGTH_OF_CHANGED } else { LENGTH };
        text.push_str(plain.get(rest..at).unwrap_or(""));
        slack.push(text.len()..text.len() + length);
        text.extend(std::iter::repeat_n(' ', length));
        rest = at;
        // The end of a line is before its blanks.
        for (place, plain_place) in [(&mut start, range.start), (&mut end, range.end)] {
            if plain_place > at {
                *place += length;
            }
        }
    }
    text.push_str(plain.get(rest..).unwrap_or(""));
    (text, slack, start..end)
}
