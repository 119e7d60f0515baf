//! Owns the way from text to tree: cuts the repaired tokens into statements, items, rows and fields, innermost
//! braces first, and has each read by the generated parser.
//!
//! Assumes that the brackets are paired ([`crate::repair`]). Guarantees a tree for every text, at most one syntax
//! error for each statement, and time linear in the length of the text: an error stays inside its statement.

use crate::ast::*;
use crate::codes::{MISSING_SEMICOLON, SYNTAX};
use crate::diag::Diagnostic;
use crate::evidence::opens_rows;
use crate::explain::explain;
use crate::node::{Cx, D, Unit, hole_block};
use crate::recover::recover;
use crate::repair::repair;
use crate::span::{FileId, Span};
use crate::token::{Tok, Token, lex};
use crate::unit::{Fail, open_brackets, run};

/// Parses a file. Never fails: what cannot be read is a hole in the tree and has a diagnostic.
pub fn parse(file: FileId, text: &str) -> (File, Vec<Diagnostic>) {
    let lexed = lex(file, text);
    let (tokens, brackets) = repair(file, &lexed.tokens);
    let cx = Cx {
        file,
        text,
        docs: &lexed.docs,
        diags: lexed.diags,
        deep: None,
        blocks: vec![],
        rows: vec![],
        bodies: vec![],
    };
    let mut cutter = Cutter { cx, known: 0, frames: vec![], frame: Frame::new(Body::File(vec![]), 0) };
    cutter.cx.diags.extend(brackets);
    cutter.known = cutter.cx.diags.len();
    for (i, token) in tokens.iter().enumerate() {
        cutter.step(*token, tokens.get(i + 1..).unwrap_or(&[]));
    }
    let items = cutter.finish();
    let mut diags = cutter.cx.diags;
    diags.sort_by_key(|d| d.primary.span.start);
    (File { items, comments: lexed.comments }, diags)
}

/// What the braces around the current unit hold.
enum Body {
    File(Vec<Item>),
    Struct(Vec<Param>, Vec<Item>),
    Block(Vec<Stmt>),
    Rows(Vec<TuneRow>),
}

/// What the current unit is, as far as its first words say.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Head {
    /// Nothing yet, or only attributes.
    None,
    /// A statement that ends with `;`.
    Simple,
    /// A statement that ends with its block.
    Loop,
    /// A statement that ends with a block without `else` behind it.
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
enum End {
    /// At its separator or block.
    Whole,
    /// In front of the closing brace.
    Last,
}

struct Frame<'s> {
    body: Body,
    /// Where its `{` is.
    open: usize,
    unit: Vec<Token<'s>>,
    head: Head,
    /// Brackets open in the unit.
    nest: usize,
    /// Of a function: whether its first list of parameters is complete.
    signed: bool,
    /// Of a function: whether the last clause is `tune`.
    tune: bool,
    /// Of rows: whether one could not be read.
    broken: bool,
    /// The depth of the deepest statement.
    depth: usize,
    /// A block-like without semicolon: a statement, or the value of the block if nothing follows.
    pending: Option<D<Expr>>,
    tail: Option<D<Expr>>,
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

struct Cutter<'s> {
    cx: Cx<'s>,
    /// How many diagnostics are older than the parser.
    known: usize,
    frames: Vec<Frame<'s>>,
    frame: Frame<'s>,
}

impl<'s> Cutter<'s> {
    fn step(&mut self, mut token: Token<'s>, rest: &[Token<'s>]) {
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
            if self.frame.head != Head::None && self.starts_unit(token, following, rest.get(1).map(|t| t.tok)) {
                self.flush(End::Whole);
            }
            if self.frame.head == Head::None && !self.in_attribute(token.tok) {
                self.frame.head = self.head(&mut token, following);
            }
            if let (Head::Fn | Head::Junk, true, Tok::Id(word), Some(Tok::LParen)) =
                (self.frame.head, self.frame.signed, token.tok, following)
            {
                token.tok = Tok::Clause(word);
                self.frame.tune = word == "tune";
            }
        }
        match token.tok {
            Tok::LBrace if !self.flat() => {
                let body = self.body(rest);
                let outer = std::mem::replace(&mut self.frame, Frame::new(body, token.start));
                self.frames.push(outer);
                return;
            }
            Tok::LParen | Tok::LBracket | Tok::LBrace => self.frame.nest += 1,
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

    /// The token before the current one.
    fn last(&self) -> Option<Tok<'s>> {
        self.frame.unit.last().map(|t| t.tok)
    }

    /// Whether a token belongs to attributes in front of the unit's first word.
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

    /// Whether a word can only be the start of the next unit: the current one lacks its end.
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
                Tok::For | Tok::While | Tok::Return | Tok::Break | Tok::Continue | Tok::Const | Tok::At => true,
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
                Tok::At => token.first && self.frame.head != Head::Entry,
                _other => item,
            },
            Body::Rows(_) => false,
        }
    }

    /// Whether a `{` that comes now belongs to its unit: a group of imports, a row of `tune`.
    fn flat(&self) -> bool {
        let row = matches!(self.frame.body, Body::Rows(_)) && self.frame.nest == 0;
        row || self.frame.head == Head::Line && self.last() == Some(Tok::PathSep)
    }

    /// What the braces hold that open now.
    fn body(&self, rest: &[Token<'s>]) -> Body {
        let outside = self.frame.nest == 0;
        let rows = self.frame.tune && self.last() == Some(Tok::RParen) || opens_rows(rest);
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
        // An error at the brackets is no error of what stands around them.
        let reported = matches!(tok, Tok::Rows(_)) && brace.reported;
        self.frame.unit.push(Token { tok, start: inner.open, reported, ..brace });
        if self.frame.nest == 0 {
            self.after_braces(tok, next);
        }
    }

    /// Whether the unit ends with the braces that have just been closed.
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
            Head::Line => new_line && following != Some(Tok::Semi),
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
            (Body::Struct(..) | Body::File(_), _) => self.items(&unit, quiet),
        }
        unit.clear();
        self.frame.unit = unit;
    }

    /// Reads a unit that stands alone, with holes if need be.
    fn read(&mut self, start: Tok<'s>, unit: &[Token<'s>], quiet: bool) -> Option<Unit> {
        match run(&mut self.cx, start, unit) {
            Ok(node) => Some(node),
            Err(fail) => {
                self.report(start, unit, &fail, quiet);
                recover(&mut self.cx, start, unit, fail)
            }
        }
    }

    fn report(&mut self, start: Tok<'s>, unit: &[Token<'s>], fail: &Fail, quiet: bool) {
        // Braces that should not be here were read as a block; what was wrong in them is no news.
        if let Some(Token { tok: Tok::Block(_), start, end, .. }) = unit.get(fail.at) {
            let behind = |d: &&Diagnostic| d.primary.span.start as usize > *start;
            let known = self.cx.diags.len() - self.cx.diags.iter().rev().take_while(behind).count();
            let news = self.cx.diags.split_off(known.max(self.known));
            let inside = |d: &Diagnostic| d.code == SYNTAX && (d.primary.span.end as usize) < *end;
            self.cx.diags.extend(news.into_iter().filter(|d| !inside(d)));
        }
        if !quiet {
            let d = explain(&self.cx, start, unit, fail);
            self.cx.diags.push(d);
        }
    }

    fn place(&self, unit: &[Token<'s>]) -> Span {
        let start = unit.first().map_or(0, |t| t.start);
        self.cx.span(start, unit.last().map_or(start, |t| t.end))
    }

    /// Reads an item, or several between which the semicolon is missing.
    fn items(&mut self, unit: &[Token<'s>], quiet: bool) {
        let mut rest = unit;
        while !rest.is_empty() {
            let (node, length) = match run(&mut self.cx, Tok::StartItem, rest) {
                Ok(node) => (Some(node), rest.len()),
                Err(fail) => match self.cut(Tok::StartItem, rest, &fail, quiet) {
                    Some(node) => (Some(node), fail.at),
                    None => {
                        self.report(Tok::StartItem, rest, &fail, quiet);
                        (recover(&mut self.cx, Tok::StartItem, rest, fail), rest.len())
                    }
                },
            };
            self.item(rest.get(..length).unwrap_or(rest), node);
            rest = rest.get(length..).unwrap_or(&[]);
        }
    }

    fn item(&mut self, unit: &[Token<'s>], node: Option<Unit>) {
        let span = self.place(unit);
        let doc = self.cx.doc(span.start as usize);
        let (attrs, kind) = match node {
            Some(Unit::Item(attrs, kind)) => (attrs, kind),
            Some(_) | None => (vec![], ItemKind::Err),
        };
        let item = Item { attrs, doc, kind, span };
        match &mut self.frame.body {
            Body::File(items) | Body::Struct(_, items) => items.push(item),
            Body::Block(_) | Body::Rows(_) => {}
        }
    }

    /// Reads a field, or several between which the comma is missing.
    fn fields(&mut self, unit: &[Token<'s>], quiet: bool) {
        let (mut rest, mut quiet) = (unit, quiet);
        while !rest.is_empty() {
            let field = match run(&mut self.cx, Tok::StartField, rest) {
                Ok(field) => {
                    rest = &[];
                    Some(field)
                }
                Err(fail) => {
                    self.report(Tok::StartField, rest, &fail, quiet);
                    quiet = true;
                    let cut = rest.get(fail.at).is_some_and(|t| t.first && matches!(t.tok, Tok::Id(_)));
                    let (field, next) = rest.split_at(if cut { fail.at } else { rest.len() });
                    rest = next;
                    match run(&mut self.cx, Tok::StartField, field) {
                        Ok(field) => Some(field),
                        Err(fail) => recover(&mut self.cx, Tok::StartField, field, fail),
                    }
                }
            };
            if let (Some(Unit::Field(field)), Body::Struct(fields, _)) = (field, &mut self.frame.body) {
                fields.push(field);
            }
        }
    }

    fn misplaced(&mut self, unit: &[Token<'s>], quiet: bool) {
        let span = self.place(unit);
        if let Some(first) = unit.first().filter(|_| !quiet) {
            let at = self.cx.span(first.start, first.end);
            let word = self.cx.text.get(first.start..first.end).unwrap_or("");
            self.cx.diags.push(Diagnostic::error(
                SYNTAX,
                at,
                format!("`{word}` cannot stand inside a block; move it to the outermost level of the file"),
                "",
            ));
        }
        self.push_stmt(D { node: Stmt { attrs: vec![], kind: StmtKind::Err, span }, depth: 1 });
    }

    fn push_stmt(&mut self, stmt: D<Stmt>) {
        self.settle();
        self.frame.depth = self.frame.depth.max(stmt.depth);
        if let Body::Block(stmts) = &mut self.frame.body {
            stmts.push(stmt.node);
        }
    }

    /// Reads a statement, or several between which the semicolon is missing.
    fn statements(&mut self, unit: &[Token<'s>], end: End, quiet: bool) {
        let (mut rest, mut quiet) = (unit, quiet);
        while !rest.is_empty() {
            match run(&mut self.cx, Tok::StartStmt, rest) {
                Ok(Unit::Stmt(stmt)) => self.push_stmt(stmt),
                Ok(Unit::BlockLike(e)) => {
                    self.settle();
                    self.frame.pending = Some(e);
                }
                Ok(Unit::Tail(e)) => {
                    if end == End::Last {
                        self.settle();
                        self.frame.tail = Some(e);
                    } else {
                        self.missing_semicolon(rest, Tok::StartStmt, quiet);
                        let span = e.node.span;
                        let kind = match e.node.kind {
                            ExprKind::Return(value) => StmtKind::Return(value.map(|v| *v)),
                            kind => StmtKind::Expr(Expr { kind, span }),
                        };
                        self.push_stmt(D { node: Stmt { attrs: vec![], kind, span }, depth: e.depth });
                    }
                }
                Ok(Unit::Item(..) | Unit::Row(_) | Unit::Field(_)) => {}
                Err(fail) => {
                    if let Some(Unit::Stmt(stmt)) = self.cut(Tok::StartStmt, rest, &fail, quiet) {
                        self.push_stmt(stmt);
                        rest = rest.get(fail.at..).unwrap_or(&[]);
                        quiet = rest.iter().any(|t| t.reported);
                        continue;
                    }
                    self.report(Tok::StartStmt, rest, &fail, quiet);
                    self.broken(rest, fail, end);
                }
            }
            return;
        }
    }

    /// Makes the block-like before the current statement a statement.
    fn settle(&mut self) {
        if let Some(e) = self.frame.pending.take() {
            let span = e.node.span;
            let kind = StmtKind::Expr(e.node);
            self.push_stmt(D { node: Stmt { attrs: vec![], kind, span }, depth: e.depth + 1 });
        }
    }

    fn broken(&mut self, unit: &[Token<'s>], fail: Fail, end: End) {
        let span = self.place(unit);
        match recover(&mut self.cx, Tok::StartStmt, unit, fail) {
            Some(Unit::Stmt(stmt)) => self.push_stmt(stmt),
            Some(Unit::BlockLike(e)) => {
                self.settle();
                self.frame.pending = Some(e);
            }
            Some(Unit::Tail(e)) if end == End::Last => {
                self.settle();
                self.frame.tail = Some(e);
            }
            Some(Unit::Tail(_) | Unit::Item(..) | Unit::Row(_) | Unit::Field(_)) | None => {
                self.settle();
                if end == End::Last {
                    self.frame.tail = Some(D { node: Expr { kind: ExprKind::Err, span }, depth: 1 });
                }
                self.push_stmt(D { node: Stmt { attrs: vec![], kind: StmtKind::Err, span }, depth: 1 });
            }
        }
    }

    /// Reads what stands before the error if only its semicolon is missing.
    fn cut(&mut self, start: Tok<'s>, unit: &[Token<'s>], fail: &Fail, quiet: bool) -> Option<Unit> {
        let new_line = unit.get(fail.at).is_none_or(|t| t.first && starts_expression(t.tok));
        if !new_line || fail.at == 0 || !fail.wants(";") || !open_brackets(unit, fail.at).is_empty() {
            return None;
        }
        let prefix = unit.get(..fail.at)?;
        let end = prefix.last()?.end;
        let mut with = prefix.to_vec();
        with.push(Token { tok: Tok::Semi, start: end, end, first: false, indent: 0, reported: true });
        let node = run(&mut self.cx, start, &with).ok()?;
        self.missing_semicolon(prefix, start, quiet);
        Some(node)
    }

    fn missing_semicolon(&mut self, unit: &[Token<'s>], start: Tok<'s>, quiet: bool) {
        let Some(last) = unit.last().filter(|_| !quiet) else { return };
        let last_word = match last.tok {
            Tok::Block(_) => self.cx.span(last.end.saturating_sub(1), last.end),
            _other => self.cx.span(last.start, last.end),
        };
        let what = if start == Tok::StartItem { "item" } else { "statement" };
        self.cx.diags.push(
            Diagnostic::error(MISSING_SEMICOLON, last_word, format!("expected `;` after this {what}"), "")
                .fix("insert `;`", last_word.after(), ";"),
        );
    }
}

/// Whether only a name can follow: a word of the language there is meant as a name.
fn wants_name(tok: Option<Tok<'_>>) -> bool {
    matches!(
        tok,
        Some(Tok::Let | Tok::Mut | Tok::Dot | Tok::PathSep | Tok::For | Tok::Fn | Tok::Kernel | Tok::Const)
    )
}

/// Whether a token behind a block on the same line shows that the block was meant as an operand.
fn continues(tok: Tok<'_>) -> bool {
    match tok {
        Tok::Plus | Tok::Minus | Tok::Star | Tok::Slash | Tok::Percent | Tok::As | Tok::Dot => true,
        Tok::EqEq | Tok::Ne | Tok::Lt | Tok::Le | Tok::Gt | Tok::Ge | Tok::AndAnd | Tok::OrOr => true,
        Tok::Amp | Tok::Bar | Tok::Caret | Tok::Shl | Tok::Shr => true,
        _other => false,
    }
}

/// Whether a token on a new line is the start of a statement rather than the rest of one.
fn starts_expression(tok: Tok<'_>) -> bool {
    matches!(
        tok,
        Tok::Id(_) | Tok::If | Tok::Int(_) | Tok::Float(_) | Tok::Str(_) | Tok::True | Tok::False | Tok::Block(_)
    )
}
