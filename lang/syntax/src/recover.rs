//! Recovers from a unit that cannot be parsed: replaces as little of it as possible by a hole.
//!
//! The error has been reported. Every attempt is a whole run over the unit and there is a fixed number of them, so
//! the time stays linear. A declaration of another language is read as ours. Then the missing operand or name is put in, then the element of the innermost list
//! around the error becomes a hole, then that of the lists further out, then the part of the statement; at last
//! only what names something is kept.

use crate::habits::as_ours;
use crate::node::{Cx, Unit};
use crate::token::{Tok, Token};
use crate::unit::{Fail, open_brackets, run};

/// The number of levels of brackets around an error that are tried, from the inside out. Each costs a run over the
/// unit; with more than three levels replaced nothing useful is left of an expression.
const LEVELS: usize = 3;

/// A node for `tokens`, of which something is replaced by holes.
pub fn recover<'s>(cx: &mut Cx<'s>, start: Tok<'s>, tokens: &[Token<'s>], fail: Fail) -> Option<Unit> {
    let (reports, deep) = (cx.diags.len(), cx.deep);
    let unit = attempts(cx, start, tokens, fail);
    cx.diags.truncate(reports);
    cx.deep = deep;
    unit
}

fn attempts<'s>(cx: &mut Cx<'s>, start: Tok<'s>, tokens: &[Token<'s>], fail: Fail) -> Option<Unit> {
    let mut tokens = tokens.to_vec();
    let mut fail = fail;
    if let Some(ours) = as_ours(&tokens).filter(|_| start == Tok::StartStmt) {
        match run(cx, start, &ours) {
            Ok(unit) => return Some(unit),
            Err(next) => (tokens, fail) = (ours, next),
        }
    }
    for wanted in [("int", Tok::Hole), ("id", Tok::Id(""))] {
        if !fail.wants(wanted.0) {
            continue;
        }
        let mut with = tokens.clone();
        with.insert(fail.at.min(with.len()), synthetic(&tokens, fail.at, wanted.1));
        match run(cx, start, &with) {
            Ok(unit) => return Some(unit),
            // Past the error: something else is wrong as well.
            Err(next) if next.at > fail.at + 1 => (tokens, fail) = (with, next),
            Err(_) => {}
        }
        break;
    }
    let open = open_brackets(&tokens, fail.at);
    for &opener in open.iter().rev().take(LEVELS) {
        let range = element(&tokens, opener + 1, fail.at, |t| t == Tok::Comma);
        if let Ok(unit) = run(cx, start, &replaced(&tokens, range)) {
            return Some(unit);
        }
    }
    let outer = open.first().copied().unwrap_or(fail.at);
    let range = element(&tokens, 0, outer, separates);
    if let Ok(unit) = run(cx, start, &replaced(&tokens, range.clone())) {
        return Some(unit);
    }
    // Everything between the separator before the error and the end of the statement, or the block.
    let to = (range.start..tokens.len()).find(|&i| {
        matches!(tokens.get(i).map(|t| t.tok), Some(Tok::Block(_))) || i + 1 == tokens.len() && ends(&tokens)
    });
    let wide = range.start..to.unwrap_or(tokens.len());
    if let Ok(unit) = run(cx, start, &replaced(&tokens, wide)) {
        return Some(unit);
    }
    if let Some(Ok(unit)) = without_clauses(&tokens, fail.at).map(|signature| run(cx, start, &signature)) {
        return Some(unit);
    }
    run(cx, start, &named(&tokens)?).ok()
}

/// A function or kernel without its clauses, if the error is in one of them: its parameters are known.
fn without_clauses<'s>(tokens: &[Token<'s>], at: usize) -> Option<Vec<Token<'s>>> {
    let block = tokens.iter().position(|t| matches!(t.tok, Tok::Block(_)))?;
    let signed = |i: &usize| {
        tokens.get(*i).is_some_and(|t| t.tok == Tok::RParen) && open_brackets(tokens, i + 1).is_empty()
    };
    let list = (0..at.min(block)).find(signed)?;
    let is_end = |t: &Token<'_>| t.first || matches!(t.tok, Tok::Clause(_));
    let end = tokens.get(list + 1..block)?.iter().position(is_end).map_or(block, |i| list + 1 + i);
    let mut out = tokens.get(..end)?.to_vec();
    out.extend_from_slice(tokens.get(block..)?);
    Some(out)
}

/// Returns true if the unit ends in a semicolon.
fn ends(tokens: &[Token<'_>]) -> bool {
    tokens.last().is_some_and(|t| t.tok == Tok::Semi)
}

/// Returns true for tokens that separate the parts of a statement outside brackets.
fn separates(tok: Tok<'_>) -> bool {
    match tok {
        Tok::Let | Tok::Const | Tok::For | Tok::In | Tok::While | Tok::If | Tok::Else | Tok::Return => true,
        Tok::Assign | Tok::AddAssign | Tok::SubAssign | Tok::MulAssign | Tok::DivAssign | Tok::RemAssign => {
            true
        }
        Tok::AndAssign | Tok::OrAssign | Tok::XorAssign | Tok::ShlAssign | Tok::ShrAssign => true,
        Tok::Colon | Tok::Arrow | Tok::Semi | Tok::Block(_) | Tok::Clause(_) | Tok::Use | Tok::Export => true,
        _other => false,
    }
}

fn synthetic<'s>(tokens: &[Token<'s>], at: usize, tok: Tok<'s>) -> Token<'s> {
    let place = at.checked_sub(1).and_then(|i| tokens.get(i)).map_or(0, |t| t.end);
    Token { tok, start: place, end: place, first: false, indent: 0, reported: true }
}

/// The range around `at`, not before `from`, up to the separators or brackets that enclose it.
fn element(
    tokens: &[Token<'_>],
    from: usize,
    at: usize,
    separator: impl Fn(Tok<'_>) -> bool,
) -> std::ops::Range<usize> {
    let (mut start, mut depth) = (from, 0usize);
    let mut i = from;
    let mut end = tokens.len();
    while let Some(t) = tokens.get(i) {
        match t.tok {
            Tok::LParen | Tok::LBracket | Tok::LBrace => depth += 1,
            Tok::RParen | Tok::RBracket | Tok::RBrace if depth == 0 => {
                end = i;
                break;
            }
            Tok::RParen | Tok::RBracket | Tok::RBrace => depth -= 1,
            tok if depth == 0 && separator(tok) => {
                if i >= at {
                    end = i;
                    break;
                }
                start = i + 1;
            }
            _other => {}
        }
        i += 1;
    }
    start..end
}

/// The tokens with a hole in place of a range.
fn replaced<'s>(tokens: &[Token<'s>], range: std::ops::Range<usize>) -> Vec<Token<'s>> {
    let mut hole = synthetic(tokens, range.start, Tok::Hole);
    if let (Some(first), Some(last)) =
        (tokens.get(range.start), range.end.checked_sub(1).and_then(|i| tokens.get(i)))
        && range.start < range.end
    {
        (hole.start, hole.end) = (first.start, last.end);
    }
    let mut out = tokens.get(..range.start).unwrap_or(&[]).to_vec();
    out.push(hole);
    out.extend_from_slice(tokens.get(range.end..).unwrap_or(&[]));
    out
}

/// The shortest unit that still defines the names which `tokens` defines.
fn named<'s>(tokens: &[Token<'s>]) -> Option<Vec<Token<'s>>> {
    let word = tokens.iter().position(|t| {
        matches!(t.tok, Tok::Fn | Tok::Kernel | Tok::Let | Tok::Const | Tok::For | Tok::Struct)
    })?;
    let mut out = vec![*tokens.get(word)?];
    let mut rest = tokens.get(word + 1..)?.iter();
    let mut name = rest.next()?;
    if name.tok == Tok::Mut {
        out.push(*name);
        name = rest.next()?;
    }
    if !matches!(name.tok, Tok::Id(_)) {
        return None;
    }
    out.push(*name);
    let make = |tok| synthetic(tokens, tokens.len(), tok);
    let block = tokens.iter().rfind(|t| matches!(t.tok, Tok::Block(_) | Tok::Body(_))).copied();
    match tokens.get(word)?.tok {
        Tok::Fn | Tok::Kernel => {
            out.extend([
                make(Tok::LParen),
                make(Tok::Hole),
                make(Tok::RParen),
                make(Tok::Arrow),
                make(Tok::Hole),
            ]);
            out.push(block.unwrap_or(make(Tok::Block(usize::MAX))));
        }
        Tok::For => out.extend([make(Tok::In), make(Tok::Hole), block?]),
        Tok::Struct => out.push(block?),
        _let => out.extend([make(Tok::Assign), make(Tok::Hole), make(Tok::Semi)]),
    }
    Some(out)
}
