//! Folding ranges of a file.

use tk_syntax::ast::ItemKind;
use tk_syntax::token::{LINE_END, Tok, lex};

use super::{Analysis, Workspace};

/// The kinds of folding ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FoldKind {
    /// A block, a list.
    Region,
    /// Comment lines.
    Comment,
    /// `use` lines.
    Imports,
}

/// A part that can be folded away; it has more than one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fold {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    /// The kind of range.
    pub kind: FoldKind,
}

/// The ranges that can be folded, in order.
pub fn folding(ws: &mut Workspace, path: &str) -> Vec<Fold> {
    let Some(parsed) = ws.parsed(path) else { return vec![] };
    let text = parsed.text();
    let mut out = brackets(text);
    let comments = lex(Analysis::ROOT, text).comments;
    let lines = comments.iter().map(|c| (c.span.start as usize, c.span.end as usize));
    runs(text, lines, FoldKind::Comment, &mut out);
    let uses = parsed.items().iter().filter(|i| matches!(i.kind, ItemKind::Use(_)));
    runs(text, uses.map(|i| (i.span.start as usize, i.span.end as usize)), FoldKind::Imports, &mut out);
    let line_ends: Vec<usize> = text.match_indices(LINE_END).map(|(at, _)| at).collect();
    let line = |at: usize| line_ends.partition_point(|end| *end < at);
    out.retain(|f| line(f.start) < line(f.end));
    out.sort();
    out
}

/// The contents of brackets.
fn brackets(text: &str) -> Vec<Fold> {
    let mut open: Vec<(usize, Tok)> = vec![];
    let number = |t: Tok| usize::from(t == Tok::LParen) + 2 * usize::from(t == Tok::LBracket);
    // How many of each kind are open, so that none is looked for in vain.
    let mut counts = [0usize; 3];
    let mut out = vec![];
    for t in lex(Analysis::ROOT, text).tokens {
        let opener = match t.tok {
            Tok::LBrace | Tok::LParen | Tok::LBracket => {
                open.push((t.start, t.tok));
                counts[number(t.tok)] += 1;
                continue;
            }
            Tok::RBrace => Tok::LBrace,
            Tok::RParen => Tok::LParen,
            Tok::RBracket => Tok::LBracket,
            _other => continue,
        };
        // A bracket without a partner is skipped: the outer ones still pair.
        if counts[number(opener)] == 0 {
            continue;
        }
        while let Some((start, inner)) = open.pop() {
            counts[number(inner)] -= 1;
            if inner == opener {
                out.push(Fold { start, end: t.end, kind: FoldKind::Region });
                break;
            }
        }
    }
    out
}

/// Parts that follow each other with nothing but one line break between them.
fn runs(text: &str, parts: impl Iterator<Item = (usize, usize)>, kind: FoldKind, out: &mut Vec<Fold>) {
    let mut run: Option<Fold> = None;
    for (start, end) in parts {
        match &mut run {
            Some(r) if joined(text, r.end, start) => r.end = end,
            _none_or_apart => out.extend(run.replace(Fold { start, end, kind })),
        }
    }
    out.extend(run);
}

fn joined(text: &str, end: usize, start: usize) -> bool {
    text.get(end..start)
        .is_some_and(|gap| gap.trim().is_empty() && gap.replace("\r\n", "\n").matches(LINE_END).count() == 1)
}
