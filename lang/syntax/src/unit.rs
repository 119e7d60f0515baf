//! One run of the generated parser over one unit: a statement, item, row or field.
//!
//! A run either gives a node or the place where it stopped; a run that stopped leaves no diagnostics.

use crate::grammar::UnitParser;
use crate::node::{Cx, Unit};
use crate::token::{Tok, Token};
use lalrpop_util::ParseError;
use std::cell::Cell;

/// The place where a run stopped.
#[derive(Debug)]
pub struct Fail {
    /// The token that did not fit; the number of tokens when more were needed.
    pub at: usize,
    /// The terminals of the grammar that would have fitted. Never shown.
    expected: Vec<String>,
}

impl Fail {
    /// Returns true if this terminal of the grammar would have fitted.
    pub fn wants(&self, terminal: &str) -> bool {
        self.expected.iter().any(|e| e.trim_matches('"') == terminal)
    }
}

/// Parses `tokens` as what `start` says.
pub fn run<'s>(cx: &mut Cx<'s>, start: Tok<'s>, tokens: &[Token<'s>]) -> Result<Unit, Fail> {
    let (reports, deep) = (cx.diags.len(), cx.deep);
    let taken = Cell::new(0usize);
    let first = tokens.first().map_or(0, |t| t.start);
    let input = std::iter::once((first, start, first))
        .chain(tokens.iter().map(|t| {
            taken.set(taken.get() + 1);
            (t.start, t.tok, t.end)
        }))
        .map(Ok::<_, ()>);
    let fail = match UnitParser::new().parse(cx, input) {
        Ok(unit) => return Ok(unit),
        Err(ParseError::UnrecognizedToken { expected, .. }) => {
            Fail { at: taken.get().saturating_sub(1), expected }
        }
        Err(ParseError::UnrecognizedEof { expected, .. }) => Fail { at: tokens.len(), expected },
        Err(ParseError::ExtraToken { .. } | ParseError::InvalidToken { .. } | ParseError::User { .. }) => {
            Fail { at: taken.get().saturating_sub(1), expected: vec![] }
        }
    };
    cx.diags.truncate(reports);
    cx.deep = deep;
    Err(fail)
}

/// The brackets that are open before the token at `at`, as positions of the opening ones.
pub fn open_brackets(tokens: &[Token<'_>], at: usize) -> Vec<usize> {
    let mut open = vec![];
    for (i, t) in tokens.iter().enumerate().take(at) {
        match t.tok {
            Tok::LParen | Tok::LBracket | Tok::LBrace => open.push(i),
            Tok::RParen | Tok::RBracket | Tok::RBrace => {
                open.pop();
            }
            _other => {}
        }
    }
    open
}
