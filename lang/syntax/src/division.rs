//! Finds the comments that were meant as divisions: Python's `a // 2` is `a` and a comment here.
//!
//! Only a text with mistakes is asked, and only a comment that touches one: where the statement or bracket in front
//! of the comment is not complete, a fix that completes it there would make the program forget what the comment
//! holds. A comment in a text that reads without mistakes is left alone.

use std::collections::BTreeSet;

use crate::codes::UNCLOSED;
use crate::diag::Diagnostic;
use crate::span::FileId;
use crate::token::{LINE_END, Lexed, Tok, Token, lex};

/// The number of times that the text is read again: the tokens that a division hides, such as the bracket that closes
/// an argument list, hide the mistakes of the statements after it.
pub const ROUNDS: usize = 4;

/// The places of the `//` of such comments.
pub fn meant<'s>(file: FileId, text: &'s str, lexed: &Lexed<'s>, diags: &[Diagnostic]) -> BTreeSet<usize> {
    let places = Places::of(diags);
    let mut names: Option<BTreeSet<&str>> = None;
    let mut found = BTreeSet::new();
    // What follows the comment in its statement, the last comment first: whether that is a division too.
    let mut later: Option<usize> = None;
    for comment in lexed.comments.iter().rev().filter(|c| !c.doc) {
        let start = comment.span.start as usize;
        let next = lexed.tokens.partition_point(|t| t.start < start);
        let Some(before) = operand_before(text, lexed, start) else { continue };
        let inside = text.get(start + 2..comment.span.end as usize).unwrap_or("");
        let after = lexed.tokens.get(next).map_or(text.len(), |t| t.start);
        let statement = later.and_then(|l| lexed.tokens.get(next..l)).is_some_and(|between| {
            between.iter().all(|t| !matches!(t.tok, Tok::Semi | Tok::LBrace | Tok::RBrace))
        });
        let touched = places.touch(before.end, after)
            || closes(inside) && places.in_unclosed(start)
            || statement && inside.trim_end().ends_with(',');
        let names = names.get_or_insert_with(|| lexed.tokens.iter().filter_map(name).collect());
        if touched && is_code(file, inside, names) {
            found.insert(start);
            later = Some(next);
        }
    }
    found
}

/// The token before a comment, if it is on the same line and a division may follow it.
fn operand_before<'s>(text: &str, lexed: &Lexed<'s>, start: usize) -> Option<Token<'s>> {
    let next = lexed.tokens.partition_point(|t| t.start < start);
    let before = lexed.tokens.get(next.checked_sub(1)?)?;
    let gap = text.get(before.end..start).unwrap_or("\n");
    (!gap.contains(LINE_END) && ends_operand(before.tok)).then_some(*before)
}

/// Returns true if some comment may be a division.
pub fn possible(text: &str, lexed: &Lexed<'_>) -> bool {
    let mut comments = lexed.comments.iter().filter(|c| !c.doc);
    comments.any(|c| operand_before(text, lexed, c.span.start as usize).is_some())
}

/// The places of mistakes.
struct Places {
    /// Begin and end of every place, sorted.
    ends: Vec<usize>,
    /// Of each bracket that is never closed where it is, sorted, and where a fix would close it or one before it.
    unclosed: Vec<(usize, usize)>,
}

impl Places {
    fn of(diags: &[Diagnostic]) -> Places {
        let mut places = Places { ends: vec![], unclosed: vec![] };
        for d in diags {
            let labels = std::iter::once(&d.primary).chain(&d.secondary).map(|l| l.span);
            let spans = labels.chain(d.fixes.iter().flat_map(|f| f.edits.iter().map(|e| e.span)));
            places.ends.extend(spans.clone().flat_map(|s| [s.start as usize, s.end as usize]));
            if d.code == UNCLOSED {
                let end = spans.map(|s| s.end as usize).max().unwrap_or(0);
                places.unclosed.push((d.primary.span.start as usize, end));
            }
        }
        places.ends.sort_unstable();
        places.unclosed.sort_unstable();
        let mut furthest = 0;
        for (_, end) in &mut places.unclosed {
            furthest = furthest.max(*end);
            *end = furthest;
        }
        places
    }

    fn in_unclosed(&self, at: usize) -> bool {
        let before = self.unclosed.partition_point(|(start, _)| *start < at);
        before.checked_sub(1).and_then(|i| self.unclosed.get(i)).is_some_and(|(_, end)| at < *end)
    }

    fn touch(&self, from: usize, to: usize) -> bool {
        let first = self.ends.partition_point(|p| *p < from);
        self.ends.get(first).is_some_and(|p| *p <= to)
    }
}

/// Returns true if a comment closes a bracket that it does not open.
fn closes(inside: &str) -> bool {
    let mut open = 0usize;
    inside.chars().any(|c| match c {
        '(' | '[' | '{' => {
            open += 1;
            false
        }
        ')' | ']' | '}' if open == 0 => true,
        ')' | ']' | '}' => {
            open -= 1;
            false
        }
        _other => false,
    })
}

fn name<'s>(t: &Token<'s>) -> Option<&'s str> {
    if let Tok::Id(name) = t.tok { Some(name) } else { None }
}

/// Returns true if an operand can end with this token.
pub fn ends_operand(tok: Tok<'_>) -> bool {
    matches!(tok, Tok::Id(_) | Tok::Int(_) | Tok::Float(_) | Tok::RParen | Tok::RBracket)
}

/// Returns true if the text of a comment goes on as a divisor would: it begins with an operand and no two operands
/// follow each other. Where it neither ends as code does nor calls a function, a name that it begins with is one of
/// the program's, so that `// rows, columns` stays a remark.
fn is_code(file: FileId, inside: &str, names: &BTreeSet<&str>) -> bool {
    let lexed = lex(file, inside);
    let toks: Vec<Tok<'_>> = lexed.tokens.iter().map(|t| t.tok).collect();
    let starts = |t: Tok<'_>| matches!(t, Tok::Id(_) | Tok::Int(_) | Tok::Float(_));
    let adjacent = toks.windows(2).any(|w| match w {
        [a, b] => ends_operand(*a) && starts(*b),
        _short => false,
    });
    let call = matches!(lexed.tokens.as_slice(), [a, b, ..] if a.end == b.start && b.tok == Tok::LParen);
    let ends = matches!(toks.last(), Some(Tok::Semi | Tok::LBrace | Tok::RBrace)) || closes(inside);
    let begins = match toks.first() {
        Some(Tok::Id(name)) => call || ends || names.contains(name),
        Some(first) => starts(*first) || *first == Tok::LParen,
        None => false,
    };
    begins && !adjacent && lexed.diags.is_empty() && toks.last() != Some(&Tok::Dot)
}
