//! Parses text to a tree: cuts the repaired tokens into statements, items, rows and fields, innermost braces first, and
//! has each read by the generated parser.
//!
//! Assumes that the brackets are paired ([`crate::repair`]). Guarantees a tree for every text, at most one syntax
//! error for each statement, and time linear in the length of the text: an error stays inside its statement.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::ast::*;
use crate::codes;
use crate::diag::Diagnostic;
use crate::division;
use crate::evidence::opens_rows;
use crate::node::{Cx, D, Unit, hole_block};
use crate::repair::{Repaired, repair};
use crate::span::{FileId, Span};
use crate::token::{Lexed, Tok, Token, lex, lex_divided, lex_range};

/// Parses a file. Never fails: what cannot be read is a hole in the tree and has a diagnostic.
pub fn parse(file: FileId, text: &str) -> (File, Vec<Diagnostic>) {
    let mut lexed = lex(file, text);
    let mut divisions = BTreeSet::new();
    let mut result = read(file, text, &lexed);
    for _round in 0..division::ROUNDS {
        let found = if result.1.is_empty() {
            BTreeSet::new()
        } else {
            division::meant(file, text, &lexed, &result.1)
        };
        if found.is_empty() {
            break;
        }
        divisions.extend(found);
        lexed = lex_divided(file, text, &divisions);
        result = read(file, text, &lexed);
    }
    result
}

/// What [`parse_item`] reads.
pub struct Reread {
    /// The item.
    pub item: Item,
    /// The comments inside of it and after it.
    pub comments: Vec<Comment>,
    /// What is wrong.
    pub diagnostics: Vec<Diagnostic>,
}

/// Parses an item of a file again that has changed behind its first words. `range` begins where the item does and ends
/// before the next one. The result is what [`parse`] of the whole text gives there, if the braces of the rest of the
/// text are paired ([`File::paired`]); `None` where this cannot be told without the rest of the text, as when a brace
/// of the item has no partner.
pub fn parse_item(file: FileId, text: &str, range: Range<usize>) -> Option<Reread> {
    let lexed = lex_range(file, text.get(..range.end)?, range.start, &BTreeSet::new());
    let (tree, diagnostics) = read(file, text, &lexed);
    // Which comments were meant as divisions depends on the names of the whole text.
    let asks = !diagnostics.is_empty() && division::possible(text, &lexed);
    let mut items = tree.items.into_iter();
    match (items.next(), items.next()) {
        (Some(item), None) if tree.paired && !asks => {
            Some(Reread { item, comments: tree.comments, diagnostics })
        }
        (_, _) => None,
    }
}

/// Parses a text that is one expression, such as an option of the command. It is a hole where that cannot be read, and
/// then there is a diagnostic.
pub fn parse_expr(file: FileId, text: &str) -> (Expr, Vec<Diagnostic>) {
    let mut lexed = lex(file, text);
    // The expression is parsed in place of an item, since a file holds only items.
    let around = |tok, at| Token { tok, start: at, end: at, first: false, indent: 0, reported: false };
    let whole = Span::new(file, 0, text.len());
    let mut depth = 0usize;
    for t in &lexed.tokens {
        match t.tok {
            Tok::LParen | Tok::LBracket | Tok::LBrace => depth += 1,
            Tok::RParen | Tok::RBracket | Tok::RBrace => depth = depth.saturating_sub(1),
            Tok::Semi if depth == 0 => {
                let message = "expected one expression, without `;`";
                let d = Diagnostic::error(codes::SYNTAX, Span::new(file, t.start, t.end), message, "");
                return (Expr { kind: ExprKind::Err, span: whole }, vec![d]);
            }
            _other => {}
        }
    }
    lexed.tokens.iter_mut().take(1).for_each(|t| t.first = false);
    let before = [Tok::Const, Tok::Id("_"), Tok::Assign].map(|tok| around(tok, 0));
    lexed.tokens.splice(0..0, before);
    lexed.tokens.push(around(Tok::Semi, text.len()));
    let (tree, mut diags) = read(file, text, &lexed);
    let mut items = tree.items.into_iter().map(|item| item.kind);
    let value = match (items.next(), items.next()) {
        (Some(ItemKind::Const(c)), None) => c.value,
        (_, _) => Expr { kind: ExprKind::Err, span: whole },
    };
    if matches!(value.kind, ExprKind::Err) && diags.is_empty() {
        diags.push(Diagnostic::error(codes::SYNTAX, whole, "expected one expression", ""));
    }
    (value, diags)
}

fn read(file: FileId, text: &str, lexed: &Lexed<'_>) -> (File, Vec<Diagnostic>) {
    let Repaired { tokens, diags: brackets, paired } = repair(file, &lexed.tokens);
    let cx = Cx {
        file,
        text,
        docs: &lexed.docs,
        diags: lexed.diags.clone(),
        deep: None,
        blocks: vec![],
        rows: vec![],
        bodies: vec![],
    };
    let mut cutter = Cutter { cx, known: 0, frames: vec![], frame: Frame::new(Body::File(vec![]), 0) };
    cutter.cx.diags.extend(brackets);
    cutter.known = cutter.cx.diags.len();
    for (i, token) in tokens.iter().enumerate() {
        let before = i.checked_sub(1).and_then(|i| tokens.get(i)).map(|t| t.tok);
        cutter.step(*token, before, tokens.get(i + 1..).unwrap_or(&[]));
    }
    let items = cutter.finish();
    let mut diags = cutter.cx.diags;
    of_decorators(&items, &mut diags);
    diags.sort_by_key(|d| d.primary.span.start);
    (File { items, comments: lexed.comments.clone(), paired }, diags)
}

/// Says one thing about a decorator of Python, in place of what its arguments have that no expression has.
fn of_decorators(items: &[Item], diags: &mut Vec<Diagnostic>) {
    for a in items.iter().flat_map(|i| &i.attrs) {
        let before = diags.len();
        diags.retain(|d| d.primary.span.start <= a.span.start || d.primary.span.end > a.span.end);
        if diags.len() < before {
            let message = crate::signatures::decorator(&a.name.text);
            diags.push(Diagnostic::error(codes::SYNTAX, a.name.span, message, "a decorator"));
        }
    }
}

/// The contents of the braces around the current unit.
pub enum Body {
    /// Nothing: the items of the file.
    File(Vec<Item>),
    /// The fields and methods of a struct.
    Struct(Vec<Param>, Vec<Item>),
    /// Statements.
    Block(Vec<Stmt>),
    /// The rows of `tune`.
    Rows(Vec<TuneRow>),
}

/// The kind of the current unit, as far as its first words tell.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Head {
    /// Nothing yet, or only attributes.
    None,
    /// A statement that ends with `;`.
    Simple,
    /// A statement that ends with its block.
    Loop,
    /// A statement that ends with a block without `else` after it.
    If,
    /// An item that ends with `;`.
    Line,
    /// A function or kernel.
    Fn,
    Struct,
    Test,
    /// A field of a struct or a row of `tune`: ends with `,`.
    Entry,
    /// An item that starts with no item word.
    Junk,
    /// An item inside a block.
    Misplaced,
}

/// Why a unit ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// At its separator or block.
    Whole,
    /// Before the closing brace.
    Last,
}

/// A pair of braces that is open, or the file.
pub struct Frame<'s> {
    /// Its contents so far.
    pub body: Body,
    /// The place of its `{`.
    open: usize,
    unit: Vec<Token<'s>>,
    head: Head,
    /// Brackets open in the unit.
    nest: usize,
    /// Of a function: whether its first list of parameters is complete.
    signed: bool,
    /// Of a function: whether the last clause is `tune`; only looked at after a clause.
    tune: bool,
    /// Of rows: whether one could not be read. Of items: whether the last one was none.
    broken: bool,
    /// The depth of the deepest statement.
    pub depth: usize,
    /// A block-like without semicolon: a statement, or the value of the block if nothing follows.
    pub pending: Option<D<Expr>>,
    /// The value of the block.
    pub tail: Option<D<Expr>>,
}

impl Frame<'_> {
    fn new(body: Body, open: usize) -> Self {
        Frame {
            body,
            open,
            unit: vec![],
            head: Head::None,
            nest: 0,
            signed: false,
            tune: false,
            broken: false,
            depth: 0,
            pending: None,
            tail: None,
        }
    }
}

/// Cuts tokens into units.
pub struct Cutter<'s> {
    /// The constructors of the tree.
    pub cx: Cx<'s>,
    /// The number of diagnostics from before parsing.
    pub known: usize,
    /// The braces around the current ones, from the outside in.
    frames: Vec<Frame<'s>>,
    /// The current braces.
    pub frame: Frame<'s>,
}

impl<'s> Cutter<'s> {
    fn step(&mut self, mut token: Token<'s>, before: Option<Tok<'s>>, rest: &[Token<'s>]) {
        if token.tok == Tok::Bad {
            self.frame.unit.push(token);
            return;
        }
        let following = rest.first().map(|t| t.tok);
        if self.frame.nest == 0 {
            if token.tok == Tok::RBrace {
                self.close(token, rest.first());
                return;
            }
            if self.frame.head != Head::None && self.starts_unit(token, following, rest.get(1).map(|t| t.tok))
            {
                self.flush(End::Whole);
            }
            if self.frame.head == Head::None && !self.in_attribute(token.tok) {
                self.frame.head = self.head(&mut token, following);
            }
            if let (Head::Fn | Head::Junk, true, Tok::Id(word), Some(Tok::LParen)) =
                (self.frame.head, self.frame.signed, token.tok, following)
            {
                token.tok = Tok::Clause(word);
                self.frame.tune = true;
            }
        }
        match token.tok {
            Tok::LBrace if !self.flat() => {
                let body = self.body(rest);
                let outer = std::mem::replace(&mut self.frame, Frame::new(body, token.start));
                self.frames.push(outer);
                return;
            }
            Tok::LParen | Tok::LBracket | Tok::LBrace => {
                self.frame.tune &= self.frame.nest > 0 || self.last() == Some(Tok::Clause("tune"));
                self.frame.nest += 1;
            }
            Tok::RParen | Tok::RBracket | Tok::RBrace => {
                self.frame.nest = self.frame.nest.saturating_sub(1);
                let header = matches!(self.frame.head, Head::Fn | Head::Junk);
                self.frame.signed |= header && self.frame.nest == 0;
            }
            _other => {}
        }
        let separator = match self.frame.body {
            Body::Rows(_) => token.tok == Tok::Comma,
            Body::Struct(..) if self.frame.head == Head::Entry => matches!(token.tok, Tok::Comma | Tok::Semi),
            Body::Struct(..) | Body::File(_) | Body::Block(_) => token.tok == Tok::Semi,
        };
        let semi = token.tok == Tok::Semi;
        if !(separator && self.frame.nest == 0) {
            self.frame.unit.push(token);
        } else {
            if semi {
                self.frame.unit.push(token);
            } else if self.frame.unit.is_empty() {
                self.nothing_before(token, before);
            }
            self.flush(End::Whole);
        }
    }

    fn finish(&mut self) -> Vec<Item> {
        self.flush(End::Last);
        match &mut self.frame.body {
            Body::File(items) => std::mem::take(items),
            Body::Struct(..) | Body::Block(_) | Body::Rows(_) => vec![],
        }
    }

    /// A comma without a field or row before it.
    fn nothing_before(&mut self, comma: Token<'s>, before: Option<Tok<'s>>) {
        let after = match before {
            Some(Tok::Comma) => ",",
            Some(Tok::LBrace) => "{",
            // A method, or what is reported already.
            Some(_) | None => return,
        };
        let what = if matches!(self.frame.body, Body::Rows(_)) { "a row" } else { "a field" };
        let message = format!("expected {what} after `{after}`");
        let at = self.cx.span(comma.start, comma.end);
        self.cx.diags.push(Diagnostic::error(codes::SYNTAX, at, message, "found `,`"));
    }

    /// The token before the current one.
    fn last(&self) -> Option<Tok<'s>> {
        self.frame.unit.last().map(|t| t.tok)
    }

    /// Returns true if a token belongs to attributes before the unit's first word.
    fn in_attribute(&self, tok: Tok<'s>) -> bool {
        let before = |i: usize| self.frame.unit.iter().rev().nth(i).map(|t| t.tok);
        match tok {
            Tok::At => true,
            Tok::Id(_) => before(0) == Some(Tok::At),
            Tok::LParen => before(1) == Some(Tok::At),
            _other => false,
        }
    }

    /// Classifies a unit by its first word, and marks words that have a meaning only there.
    fn head(&self, token: &mut Token<'s>, next: Option<Tok<'s>>) -> Head {
        let item = match token.tok {
            Tok::Fn | Tok::Kernel => Head::Fn,
            Tok::Struct => Head::Struct,
            Tok::Use => Head::Line,
            Tok::Const => Head::Line,
            _other => Head::Junk,
        };
        let string = matches!(next, Some(Tok::Str(_)));
        match (&self.frame.body, token.tok) {
            (Body::Block(_), Tok::For | Tok::While) => Head::Loop,
            (Body::Block(_), Tok::If | Tok::LBrace) => Head::If,
            (Body::Block(_), Tok::Id("assert_error")) if string => {
                token.tok = Tok::AssertError;
                Head::Loop
            }
            (Body::Block(_), Tok::Fn) if !matches!(next, Some(Tok::Id(_))) => Head::Simple,
            (Body::Block(_), Tok::Kernel | Tok::Fn | Tok::Struct | Tok::Use) => Head::Misplaced,
            (Body::Block(_), _) => Head::Simple,
            (Body::Rows(_), _) => Head::Entry,
            (Body::Struct(..), Tok::Kernel | Tok::Fn | Tok::Struct | Tok::Use) => item,
            (Body::Struct(..), _) => Head::Entry,
            (Body::File(_), Tok::Id("test")) if string => {
                token.tok = Tok::Test;
                Head::Test
            }
            (Body::File(_), Tok::Id("export")) if matches!(next, Some(Tok::Id(_))) => {
                token.tok = Tok::Export;
                Head::Line
            }
            (Body::File(_), _) => item,
        }
    }

    /// Returns true if a word can only be the start of the next unit: the current one lacks its end.
    fn starts_unit(&self, token: Token<'s>, next: Option<Tok<'s>>, after: Option<Tok<'s>>) -> bool {
        let last = self.last();
        if !token.first && wants_name(last) {
            return false;
        }
        let item = match token.tok {
            Tok::Kernel | Tok::Struct => true,
            Tok::Use => token.first,
            Tok::Fn => matches!(next, Some(Tok::Id(_))) && matches!(after, Some(Tok::LParen | Tok::LBracket)),
            _other => false,
        };
        match &self.frame.body {
            Body::Block(_) => match token.tok {
                Tok::Let => last != Some(Tok::If),
                Tok::For | Tok::While | Tok::Return | Tok::Break | Tok::Continue | Tok::Const => true,
                // `a @ b` is a product elsewhere; an attribute is at the start of something.
                Tok::At => {
                    let operand = matches!(last, Some(Tok::Id(_) | Tok::Int(_) | Tok::Float(_)))
                        || matches!(last, Some(Tok::RParen | Tok::RBracket));
                    token.first || !operand
                }
                _other => item,
            },
            Body::File(_) => match token.tok {
                Tok::At => true,
                Tok::Const => token.first && last != Some(Tok::Colon),
                Tok::Id("test") => token.first && matches!(next, Some(Tok::Str(_))),
                Tok::Id("export") => {
                    let args = matches!(after, Some(Tok::LBracket | Tok::Semi | Tok::PathSep));
                    token.first && matches!(next, Some(Tok::Id(_))) && args
                }
                _other => item,
            },
            Body::Struct(..) => match token.tok {
                Tok::At => token.first,
                _other => item,
            },
            Body::Rows(_) => false,
        }
    }

    /// Returns true if a `{` that comes now belongs to its unit: a group of imports, a row of `tune`.
    fn flat(&self) -> bool {
        let row = matches!(self.frame.body, Body::Rows(_)) && self.frame.nest == 0;
        row || self.frame.head == Head::Line && self.last() == Some(Tok::PathSep)
    }

    /// The contents of the braces that open now.
    fn body(&self, rest: &[Token<'s>]) -> Body {
        let outside = self.frame.nest == 0;
        let tune = self.frame.tune && self.last() == Some(Tok::RParen);
        let bare_tune = self.frame.signed && self.last() == Some(Tok::Id("tune"));
        let rows = tune || bare_tune || opens_rows(rest);
        match self.frame.head {
            Head::Struct if outside => Body::Struct(vec![], vec![]),
            Head::Fn | Head::Junk if outside && rows => Body::Rows(vec![]),
            _other => Body::Block(vec![]),
        }
    }

    /// The end of a pair of braces: what is in them becomes one token of the unit around them.
    fn close(&mut self, brace: Token<'s>, next: Option<&Token<'s>>) {
        self.flush(End::Last);
        let Some(outer) = self.frames.pop() else { return };
        let inner = std::mem::replace(&mut self.frame, outer);
        let span = Span::new(self.cx.file, inner.open, brace.end);
        let tok = match inner.body {
            Body::Block(stmts) => {
                let tail = inner.tail.or(inner.pending);
                let depth = tail.as_ref().map_or(0, |t| t.depth).max(inner.depth);
                let tail = tail.map(|t| Box::new(t.node));
                let block = if self.cx.fits(depth, span) {
                    D { node: Block { stmts, tail, span }, depth: depth + 1 }
                } else {
                    hole_block(span)
                };
                self.cx.blocks.push(Some(block));
                Tok::Block(self.cx.blocks.len() - 1)
            }
            Body::Rows(rows) => {
                self.cx.rows.push(Some(rows));
                Tok::Rows(self.cx.rows.len() - 1)
            }
            Body::Struct(fields, methods) => {
                self.cx.bodies.push(Some((fields, methods)));
                Tok::Body(self.cx.bodies.len() - 1)
            }
            // Only the outermost frame holds a file, and it is never closed.
            Body::File(_) => return,
        };
        // An error at the opening brace is not an error of the code around the block.
        let reported = brace.reported;
        self.frame.unit.push(Token { tok, start: inner.open, reported, ..brace });
        if self.frame.nest == 0 {
            self.after_braces(tok, next);
        }
    }

    /// Ends the unit if it ends with the braces that have just been closed.
    fn after_braces(&mut self, tok: Tok<'s>, next: Option<&Token<'s>>) {
        let following = next.map(|t| t.tok);
        let new_line = next.is_some_and(|t| t.first);
        let complete = match self.frame.head {
            Head::Loop | Head::Test | Head::Struct | Head::Misplaced => true,
            Head::Fn | Head::Junk => matches!(tok, Tok::Block(_)),
            Head::If if following == Some(Tok::Semi) => false,
            Head::If if !new_line && following.is_some_and(continues) => false,
            Head::If => following != Some(Tok::Else),
            Head::Simple => new_line && !matches!(following, Some(Tok::Else | Tok::Semi | Tok::RBrace)),
            Head::Line => new_line && !matches!(following, Some(Tok::Else | Tok::Semi)),
            Head::Entry | Head::None => false,
        };
        if complete {
            self.flush(End::Whole);
        }
    }

    /// Reads the current unit and files what it gives.
    fn flush(&mut self, end: End) {
        let head = self.frame.head;
        self.frame.head = Head::None;
        (self.frame.signed, self.frame.tune, self.frame.nest) = (false, false, 0);
        let mut unit = std::mem::take(&mut self.frame.unit);
        let quiet = unit.iter().any(|t| t.reported);
        unit.retain(|t| t.tok != Tok::Bad);
        if unit.iter().all(|t| t.tok == Tok::Semi) {
            return;
        }
        match (&self.frame.body, head) {
            (Body::Block(_), Head::Misplaced) => self.misplaced(&unit, quiet),
            (Body::Block(_), _) => self.statements(&unit, end, quiet),
            (Body::Rows(_), _) => {
                // One broken row is often the other half of the next.
                let row = self.read(Tok::StartRow, &unit, quiet || self.frame.broken);
                self.frame.broken |= row.is_none();
                if let (Some(Unit::Row(row)), Body::Rows(rows)) = (row, &mut self.frame.body) {
                    rows.push(row);
                }
            }
            (Body::Struct(..), Head::Entry) => self.fields(&unit, quiet),
            (Body::Struct(..) | Body::File(_), Head::Junk) => {
                // A row of statements outside a function has one cause.
                let place = self.place(&unit);
                self.forget(place);
                // Its first words say what is wrong, whatever is reported further on.
                let quiet = unit.iter().take(FIRST_WORDS).any(|t| t.reported);
                self.items(&unit, quiet || self.frame.broken);
                self.frame.broken = true;
            }
            (Body::Struct(..) | Body::File(_), _) => {
                self.frame.broken = false;
                self.items(&unit, quiet);
            }
        }
        unit.clear();
        self.frame.unit = unit;
    }
}

/// As many tokens as a decorator and the word after it have.
const FIRST_WORDS: usize = 5;

/// Returns true if only a name can follow: a word of the language there is meant as a name.
fn wants_name(tok: Option<Tok<'_>>) -> bool {
    matches!(
        tok,
        Some(Tok::Let | Tok::Mut | Tok::Dot | Tok::PathSep | Tok::For | Tok::Fn | Tok::Kernel | Tok::Const)
    )
}

/// Returns true if a token after a block on the same line shows that the block was meant as an operand: infix
/// operators that start nothing.
fn continues(tok: Tok<'_>) -> bool {
    match tok {
        Tok::Plus | Tok::Star | Tok::Slash | Tok::Percent | Tok::As | Tok::Dot => true,
        Tok::EqEq | Tok::Ne | Tok::Lt | Tok::Le | Tok::Gt | Tok::Ge | Tok::AndAnd => true,
        Tok::Amp | Tok::Caret | Tok::Shl | Tok::Shr => true,
        _other => false,
    }
}
