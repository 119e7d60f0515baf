//! The context of a position from the tokens: the word being written, and the call around it. It does not need a tree,
//! so it works in the middle of a line that does not parse yet.

use tk_syntax::token::{LINE_END, Tok, Token};

use super::Analysis;

/// A place between tokens.
pub struct Site<'s> {
    /// The tokens around it: of its item, and of those before and after.
    pub tokens: Vec<Token<'s>>,
    /// The number of them that end before the word being written.
    pub before: usize,
    /// The word being written, up to the place; it may be empty.
    pub start: usize,
    /// The end of the word that contains the position.
    pub end: usize,
    /// Whether it begins a line.
    pub new_line: bool,
    /// Whether the word begins a line without a space before it.
    pub at_margin: bool,
    /// Whether a number or a string ends here, which a name does not continue.
    pub after_number: bool,
    /// For each token whether it begins a line without a space before it.
    margin: Vec<bool>,
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
    /// Whether an argument before the place has a name: only such may follow.
    pub after_named: bool,
}

impl<'s> Site<'s> {
    /// The place at an offset; `None` in a comment or string, and outside of the text.
    pub fn new(a: &'s Analysis, offset: usize) -> Option<Site<'s>> {
        let text = a.root_text();
        if !text.is_char_boundary(offset) {
            return None;
        }
        let lexed = a.lexed(&a.near(&(offset..offset)));
        let comment =
            |c: &tk_syntax::ast::Comment| (c.span.start as usize) < offset && offset <= c.span.end as usize;
        // A string without an end is no token.
        let is_string = |d: &tk_syntax::Diagnostic| {
            let s = d.primary.span;
            let begun = text.get(s.start as usize..).is_some_and(|t| t.starts_with('"'));
            begun && (s.start as usize) < offset && offset <= s.end as usize
        };
        if lexed.comments.iter().any(comment) || lexed.diags.iter().any(is_string) {
            return None;
        }
        let before = lexed.tokens.partition_point(|t| t.end < offset || (t.end == offset && !is_word(t.tok)));
        let (start, end) = match lexed.tokens.get(before) {
            Some(t) if t.start < offset && is_word(t.tok) => (t.start, t.end),
            Some(t) if t.start < offset => return None,
            Some(_) | None => (offset, offset),
        };
        let last = before.checked_sub(1).and_then(|i| lexed.tokens.get(i)).map_or(0, |t| t.end);
        let new_line = text.get(last..start).is_some_and(|gap| gap.contains(LINE_END));
        let digit =
            |t: &Token| text.get(t.start..t.end).is_some_and(|w| w.starts_with(|c: char| c.is_ascii_digit()));
        let is_literal = |t: &Token| digit(t) || matches!(t.tok, Tok::Str(_));
        let touching = before.checked_sub(1).and_then(|i| lexed.tokens.get(i)).filter(|t| t.end == offset);
        let is_exponent =
            before >= 2 && start == offset && is_exponent(text, &lexed.tokens[before - 2..before]);
        let after_number = start == offset && touching.is_some_and(is_literal) || is_exponent;
        let begins_line = |at: usize| text.get(..at).is_some_and(|t| t.is_empty() || t.ends_with(LINE_END));
        let margin = lexed.tokens.iter().map(|t| begins_line(t.start)).collect();
        let at_margin = begins_line(start);
        Some(Site { tokens: lexed.tokens, before, start, end, new_line, at_margin, after_number, margin })
    }

    /// The token behind the word that contains the position.
    pub fn following(&self) -> Option<Tok<'s>> {
        self.tokens.get(self.before..)?.iter().find(|t| t.start >= self.end).map(|t| t.tok)
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
        let before = callee.checked_sub(1).and_then(|i| self.tokens.get(i)).map(|t| t.tok);
        let is_declared = matches!(before, Some(Tok::Fn | Tok::Kernel | Tok::Struct));
        if is_declared || !matches!(self.tokens.get(callee)?.tok, Tok::Id(_)) {
            return None;
        }
        let mut site = CallSite {
            open: bracket,
            callee,
            position: 0,
            named: None,
            fresh: true,
            given: vec![],
            after_named: false,
        };
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
                    site.after_named |= site.named.is_some();
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

    /// The tokens before one, from the last on, without those in brackets that are closed before it. The brackets around it
    /// are among them, with what is before them.
    pub fn outward(&self, from: usize) -> impl Iterator<Item = (usize, &Token<'s>)> {
        let mut depth = 0usize;
        let tokens = self.tokens.iter().enumerate().take(from).rev();
        tokens.filter(move |(_, t)| match t.tok {
            Tok::RParen | Tok::RBracket | Tok::RBrace => {
                depth += 1;
                false
            }
            Tok::LParen | Tok::LBracket | Tok::LBrace if depth > 0 => {
                depth -= 1;
                false
            }
            _other => depth == 0,
        })
    }

    /// The innermost bracket that is open at the place; a statement or block in between does not count.
    fn opening(&self) -> Option<usize> {
        let (open, token) = self.outward(self.before).find(|(_, t)| is_open(t.tok) || t.tok == Tok::Semi)?;
        matches!(token.tok, Tok::LParen | Tok::LBracket).then_some(open)
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

    /// Returns true if a token begins a line without a space before it.
    pub fn begins_line(&self, token: usize) -> bool {
        self.margin.get(token).copied().unwrap_or(false)
    }

    /// Returns true if a closing bracket fits an opening one.
    pub fn closes(&self, open: usize, close: Tok) -> bool {
        matches!(
            (self.tokens.get(open).map(|t| t.tok), close),
            (Some(Tok::LParen), Tok::RParen)
                | (Some(Tok::LBracket), Tok::RBracket)
                | (Some(Tok::LBrace), Tok::RBrace)
        )
    }

    /// The tokens of a range that are in no bracket of it. A closing bracket without a partner there is one of them.
    pub fn level(&self, from: usize, to: usize) -> impl Iterator<Item = usize> + '_ {
        let mut depth = 0usize;
        (from..to.min(self.tokens.len())).filter(move |i| match self.tokens.get(*i).map(|t| t.tok) {
            Some(Tok::LParen | Tok::LBracket | Tok::LBrace) => {
                depth += 1;
                false
            }
            Some(Tok::RParen | Tok::RBracket | Tok::RBrace) => {
                depth = depth.saturating_sub(1);
                depth == 0
            }
            Some(_) => depth == 0,
            None => false,
        })
    }

    /// The token that names what an opening bracket belongs to: `f` of `f(` and of `f[..](`.
    pub fn callee(&self, open: usize) -> Option<usize> {
        let before = open.checked_sub(1)?;
        match (self.tokens.get(open).map(|t| t.tok), self.tokens.get(before)?.tok) {
            (Some(Tok::LParen), Tok::RBracket) => self.partner(before)?.checked_sub(1),
            _other => Some(before),
        }
    }

    /// The name before the compile-time parameters that end before a brace: `S` of `S[T: float] {`.
    pub fn generic_name(&self, brace: usize) -> Option<usize> {
        let before = brace.checked_sub(1)?;
        match self.tokens.get(before)?.tok {
            Tok::RBracket => self.partner(before)?.checked_sub(1),
            Tok::Id(_) => Some(before),
            _other => None,
        }
    }

    /// The name of the kernel of whose `tune(..) { .. }` this is the opening brace.
    pub fn tuned(&self, brace: usize) -> Option<usize> {
        let close = brace.checked_sub(1)?;
        if self.tokens.get(brace)?.tok != Tok::LBrace || self.tokens.get(close)?.tok != Tok::RParen {
            return None;
        }
        let word = self.partner(close)?.checked_sub(1)?;
        if self.tokens.get(word)?.tok != Tok::Id("tune") {
            return None;
        }
        let kernel = (0..word).rev().find(|i| self.tokens.get(*i).is_some_and(|t| t.tok == Tok::Kernel))?;
        Some(kernel + 1)
    }

    /// Returns true if a closing brace ends the rows of `tune`.
    pub fn ends_tune(&self, close: usize) -> bool {
        self.partner(close).is_some_and(|open| self.tuned(open).is_some())
    }

    /// Returns true if the brace before the place ends an arm of an `if` that `else` may follow.
    pub fn ends_if(&self) -> bool {
        let close = self.before.checked_sub(1);
        let Some(open) = close.and_then(|c| self.partner(c)) else { return false };
        let decides = |t: Tok| {
            let starts = matches!(t, Tok::Fn | Tok::Kernel | Tok::Struct | Tok::Const | Tok::Use);
            let parts = matches!(t, Tok::If | Tok::Else | Tok::Semi | Tok::Comma | Tok::For | Tok::While);
            is_open(t) || starts || parts
        };
        self.outward(open).find(|(_, t)| decides(t.tok)).is_some_and(|(_, t)| t.tok == Tok::If)
    }

    /// The innermost bracket that is open at the place, or the first token.
    pub fn innermost(&self) -> usize {
        self.outward(self.before).find(|(_, t)| is_open(t.tok)).map_or(0, |(i, _)| i)
    }

    /// The names before `=` in the bracket around the place.
    pub fn given(&self) -> Vec<&'s str> {
        let level: Vec<usize> = self.level(self.innermost() + 1, self.before).collect();
        let tok = |i: usize| self.tokens.get(i).map(|t| t.tok);
        let names = level.iter().filter(|i| tok(*i + 1) == Some(Tok::Assign));
        names.filter_map(|i| if let Some(Tok::Id(n)) = tok(*i) { Some(n) } else { None }).collect()
    }

    /// The start of the `let` or `const` whose value the place is in.
    pub fn declaration(&self) -> Option<usize> {
        let decides = |t: Tok| matches!(t, Tok::LBrace | Tok::Semi | Tok::Let | Tok::Const);
        let (_, token) = self.outward(self.before).find(|(_, t)| decides(t.tok))?;
        matches!(token.tok, Tok::Let | Tok::Const).then_some(token.start)
    }

    /// The names, as places in the text, that get a value in one of whose blocks the place is: `a` in `let a = if c { `.
    pub fn receiving(&self) -> Vec<std::ops::Range<usize>> {
        let mut found = vec![];
        let tok = |i: usize| self.tokens.get(i).map(|t| t.tok);
        // Whether a statement ends between a token and the place, or the block that has it.
        let mut has_ended = false;
        for (i, t) in self.outward(self.before) {
            match t.tok {
                Tok::Fn | Tok::Kernel | Tok::Struct => break,
                Tok::Semi => has_ended = true,
                Tok::LBrace => has_ended = false,
                // The name of `if let` exists in its block.
                Tok::Let if !has_ended && tok(i.wrapping_sub(1)) != Some(Tok::If) => {
                    let rest = self.tokens.get(i..self.before).unwrap_or(&[]);
                    let value = rest.iter().find(|t| t.tok == Tok::Assign);
                    found.extend(value.map(|v| t.start..v.start));
                }
                _other => {}
            }
        }
        found
    }

    /// Returns true if the place is in the body of a loop.
    pub fn is_in_loop(&self) -> bool {
        // Whether a block is open between a token and the place, which the statement of the token begins.
        let mut is_in_block = false;
        let mut after = self.before;
        for (i, t) in self.outward(self.before) {
            // Braces that were closed in between end a statement.
            let ends = |i| matches!(self.tokens.get(i).map(|t: &Token| t.tok), Some(Tok::RBrace | Tok::Semi));
            let has_ended = ends(i) || i + 1 < after && ends(after - 1);
            is_in_block &= !has_ended;
            after = i;
            match t.tok {
                Tok::Fn | Tok::Kernel => return false,
                Tok::LBrace => is_in_block = true,
                Tok::For | Tok::While if is_in_block => return true,
                _other => {}
            }
        }
        false
    }

    /// The tokens of the statement around the place, in the block with this brace, that are in none of its brackets.
    pub fn statement(&self, brace: usize) -> impl Iterator<Item = usize> + '_ {
        let level: Vec<usize> = self.level(brace + 1, self.before).collect();
        let ends = |i: &usize| matches!(self.tokens.get(*i).map(|t| t.tok), Some(Tok::Semi | Tok::RBrace));
        let from = level.iter().rposition(ends).map_or(0, |n| n + 1);
        level.into_iter().skip(from)
    }
}

/// Returns true for the start of a number and the sign of its exponent: `1e-`.
fn is_exponent(text: &str, tokens: &[Token]) -> bool {
    let [number, sign] = tokens else { return false };
    let digits = text.get(number.start..number.end).unwrap_or("");
    let begun = digits.strip_suffix(['e', 'E']).unwrap_or("");
    matches!(sign.tok, Tok::Minus | Tok::Plus)
        && number.end == sign.start
        && begun.starts_with(|c: char| c.is_ascii_digit())
        && !begun.starts_with("0x")
}

/// Returns true for an opening bracket.
fn is_open(t: Tok) -> bool {
    matches!(t, Tok::LParen | Tok::LBracket | Tok::LBrace)
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
