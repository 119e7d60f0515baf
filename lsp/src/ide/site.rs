//! The context of a position from the tokens: the word being written, and the call around it. It does not need a tree,
//! so it works in the middle of a line that does not parse yet.

use tk_syntax::token::{Tok, Token, lex};

use super::Analysis;

/// A place between tokens.
pub struct Site<'s> {
    /// The tokens of the file.
    pub tokens: Vec<Token<'s>>,
    /// The number of them that end before the word being written.
    pub before: usize,
    /// The word being written, up to the place; it may be empty.
    pub start: usize,
    /// The end of the word that contains the position.
    pub end: usize,
    /// Whether it begins a line.
    pub new_line: bool,
}

/// A call, or brackets with compile-time arguments, around a place.
#[derive(Debug)]
pub struct CallSite<'s> {
    /// `(` or `[`.
    pub open: Tok<'s>,
    /// The number of the token that names what is called.
    pub callee: usize,
    /// The number of arguments before the position.
    pub position: usize,
    /// The name of the argument that contains the position, if it has one.
    pub named: Option<&'s str>,
    /// Whether the place is at the start of an argument.
    pub fresh: bool,
    /// The arguments that are given by name.
    pub given: Vec<&'s str>,
}

impl<'s> Site<'s> {
    /// The place at an offset; `None` in a comment or string, and outside of the text.
    pub fn new(text: &'s str, offset: usize) -> Option<Site<'s>> {
        if !text.is_char_boundary(offset) {
            return None;
        }
        let lexed = lex(Analysis::ROOT, text);
        let comment =
            |c: &tk_syntax::ast::Comment| (c.span.start as usize) < offset && offset <= c.span.end as usize;
        if lexed.comments.iter().any(comment) {
            return None;
        }
        let before = lexed.tokens.partition_point(|t| t.end < offset || (t.end == offset && !is_word(t.tok)));
        let (start, end) = match lexed.tokens.get(before) {
            Some(t) if t.start < offset && is_word(t.tok) => (t.start, t.end),
            Some(t) if t.start < offset => return None,
            Some(_) | None => (offset, offset),
        };
        let last = before.checked_sub(1).and_then(|i| lexed.tokens.get(i)).map_or(0, |t| t.end);
        let new_line = text.get(last..start).is_some_and(|gap| gap.contains('\n'));
        Some(Site { tokens: lexed.tokens, before, start, end, new_line })
    }

    /// The token this many before the word.
    pub fn back(&self, n: usize) -> Option<Tok<'s>> {
        self.before.checked_sub(n).and_then(|i| self.tokens.get(i)).map(|t| t.tok)
    }

    /// The call around the place.
    pub fn call(&self) -> Option<CallSite<'s>> {
        let open = self.opening()?;
        let bracket = self.tokens.get(open)?.tok;
        let mut callee = open.checked_sub(1)?;
        if self.tokens.get(callee)?.tok == Tok::RBracket && bracket == Tok::LParen {
            callee = self.partner(callee)?.checked_sub(1)?;
        }
        if !matches!(self.tokens.get(callee)?.tok, Tok::Id(_)) {
            return None;
        }
        let mut site =
            CallSite { open: bracket, callee, position: 0, named: None, fresh: true, given: vec![] };
        let inside = self.tokens.get(open + 1..)?;
        let mut depth = 0usize;
        for (i, t) in inside.iter().enumerate() {
            let ahead = open + 1 + i < self.before;
            let word = inside.get(i + 1).map(|n| n.tok);
            match t.tok {
                Tok::LParen | Tok::LBracket | Tok::LBrace => depth += 1,
                Tok::RParen | Tok::RBracket | Tok::RBrace if depth == 0 => break,
                Tok::RParen | Tok::RBracket | Tok::RBrace => depth -= 1,
                Tok::Semi if depth == 0 => break,
                Tok::Comma if depth == 0 && ahead => {
                    (site.position, site.named, site.fresh) = (site.position + 1, None, true);
                    continue;
                }
                Tok::Id(name) if depth == 0 && word == Some(Tok::Assign) => {
                    site.given.push(name);
                    if ahead {
                        site.named = Some(name);
                    }
                }
                _other => {}
            }
            site.fresh &= !ahead;
        }
        Some(site)
    }

    /// The innermost bracket that is open at the place; a statement or block in between does not count.
    fn opening(&self) -> Option<usize> {
        let mut depth = 0usize;
        for i in (0..self.before).rev() {
            match self.tokens.get(i)?.tok {
                Tok::RParen | Tok::RBracket | Tok::RBrace => depth += 1,
                Tok::LParen | Tok::LBracket if depth == 0 => return Some(i),
                Tok::LBrace | Tok::Semi if depth == 0 => return None,
                Tok::LParen | Tok::LBracket | Tok::LBrace => depth -= 1,
                _other => {}
            }
        }
        None
    }

    /// The opening partner of a closing bracket.
    fn partner(&self, close: usize) -> Option<usize> {
        let mut depth = 0usize;
        for i in (0..=close).rev() {
            match self.tokens.get(i)?.tok {
                Tok::RParen | Tok::RBracket | Tok::RBrace => depth += 1,
                Tok::LParen | Tok::LBracket | Tok::LBrace => {
                    depth -= 1;
                    if depth == 0 {
                        return Some(i);
                    }
                }
                _other => {}
            }
        }
        None
    }

    /// The number of open braces at the place.
    pub fn braces(&self) -> usize {
        let ahead = self.tokens.get(..self.before).unwrap_or(&[]);
        ahead.iter().fold(0usize, |n, t| match t.tok {
            Tok::LBrace => n + 1,
            Tok::RBrace => n.saturating_sub(1),
            _other => n,
        })
    }
}

/// Returns true if a token could be the start of a name that is being written.
fn is_word(t: Tok) -> bool {
    use Tok::*;
    matches!(
        t,
        Id(_)
            | Use
            | Const
            | Struct
            | Fn
            | Kernel
            | Let
            | Mut
            | If
            | Else
            | For
            | In
            | While
            | Break
            | Continue
            | Return
            | As
            | True
            | False
            | None
    )
}
