//! Processes one unit that was cut out: parses it, with holes if need be, reports errors, and adds it to the frame
//! around it. The continuation of [`crate::parse`].
//!
//! Guarantees at most one syntax error for each statement, and that a quiet unit (something in it
//! has been reported)
//! adds none.

use crate::ast::*;
use crate::codes::{MISSING_SEMICOLON, SYNTAX};
use crate::diag::Diagnostic;
use crate::explain::explain;
use crate::node::{D, Unit};
use crate::parse::{Body, Cutter, End};
use crate::recover::recover;
use crate::span::Span;
use crate::token::{Tok, Token};
use crate::unit::{Fail, open_brackets, run};

impl<'s> Cutter<'s> {
    /// Reads a unit. What the tree's constructors report is a cascade where something is reported already.
    fn run(&mut self, start: Tok<'s>, unit: &[Token<'s>], quiet: bool) -> Result<Unit, Fail> {
        let known = self.cx.diags.len();
        let node = run(&mut self.cx, start, unit);
        if quiet {
            self.cx.diags.truncate(known);
        }
        node
    }

    /// Reads a unit that is alone, with holes if need be.
    pub fn read(&mut self, start: Tok<'s>, unit: &[Token<'s>], quiet: bool) -> Option<Unit> {
        match self.run(start, unit, quiet) {
            Ok(node) => Some(node),
            Err(fail) => {
                self.report(start, unit, &fail, quiet);
                recover(&mut self.cx, start, unit, fail)
            }
        }
    }

    fn report(&mut self, start: Tok<'s>, unit: &[Token<'s>], fail: &Fail, quiet: bool) {
        // Braces that should not be here were read as a block; what was wrong in them is no news.
        if let Some(block @ Token { tok: Tok::Block(_), .. }) = unit.get(fail.at) {
            let place = self.cx.span(block.start, block.end);
            self.forget(place);
        }
        if !quiet {
            let d = explain(&self.cx, start, unit, fail);
            self.cx.diags.push(d);
        }
    }

    /// Takes back the syntax errors inside a place.
    pub fn forget(&mut self, place: Span) {
        let behind = |d: &&Diagnostic| d.primary.span.start > place.start;
        let known = self.cx.diags.len() - self.cx.diags.iter().rev().take_while(behind).count();
        let news = self.cx.diags.split_off(known.max(self.known));
        let inside = |d: &Diagnostic| d.code == SYNTAX && d.primary.span.end < place.end;
        self.cx.diags.extend(news.into_iter().filter(|d| !inside(d)));
    }

    pub fn place(&self, unit: &[Token<'s>]) -> Span {
        let start = unit.first().map_or(0, |t| t.start);
        self.cx.span(start, unit.last().map_or(start, |t| t.end))
    }

    /// Reads an item, or several between which the semicolon is missing.
    pub fn items(&mut self, unit: &[Token<'s>], quiet: bool) {
        let mut rest = unit;
        while !rest.is_empty() {
            let (node, length) = match self.run(Tok::StartItem, rest, quiet) {
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
        let (attrs, mut kind) = match node {
            Some(Unit::Item(attrs, kind)) => (attrs, kind),
            Some(_) | None => (vec![], ItemKind::Err),
        };
        let method = match &kind {
            ItemKind::Fn(f) => !f.kernel,
            ItemKind::Err => true,
            ItemKind::Use(_)
            | ItemKind::Const(_)
            | ItemKind::Struct(_)
            | ItemKind::Export(_)
            | ItemKind::Test(_) => false,
        };
        if matches!(self.frame.body, Body::Struct(..)) && !method {
            let message = "a struct contains only fields and functions";
            self.cx.diags.push(Diagnostic::error(SYNTAX, span, message, "neither a field nor a function"));
            kind = ItemKind::Err;
        }
        let item = Item { attrs, doc, kind, span };
        match &mut self.frame.body {
            Body::File(items) | Body::Struct(_, items) => items.push(item),
            Body::Block(_) | Body::Rows(_) => {}
        }
    }

    /// Reads a field, or several between which the comma is missing.
    pub fn fields(&mut self, unit: &[Token<'s>], quiet: bool) {
        let (mut rest, mut quiet) = (unit, quiet);
        while !rest.is_empty() {
            let field = match self.run(Tok::StartField, rest, quiet) {
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
                    match self.run(Tok::StartField, field, quiet) {
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

    pub fn misplaced(&mut self, unit: &[Token<'s>], quiet: bool) {
        let span = self.place(unit);
        if let Some(first) = unit.first().filter(|_| !quiet) {
            let at = self.cx.span(first.start, first.end);
            let word = self.cx.text.get(first.start..first.end).unwrap_or("");
            self.cx.diags.push(Diagnostic::error(
                SYNTAX,
                at,
                format!("`{word}` is not allowed in a block; move it to the top level of the file"),
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
    pub fn statements(&mut self, unit: &[Token<'s>], end: End, quiet: bool) {
        let (mut rest, mut quiet) = (unit, quiet);
        while !rest.is_empty() {
            match self.run(Tok::StartStmt, rest, quiet) {
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
    pub fn settle(&mut self) {
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

    /// Reads the text before the error if only its semicolon is missing.
    fn cut(&mut self, start: Tok<'s>, unit: &[Token<'s>], fail: &Fail, quiet: bool) -> Option<Unit> {
        let new_line = unit.get(fail.at).is_none_or(|t| t.first && starts_expression(t.tok));
        if !new_line || fail.at == 0 || !fail.wants(";") || !open_brackets(unit, fail.at).is_empty() {
            return None;
        }
        let prefix = unit.get(..fail.at)?;
        let end = prefix.last()?.end;
        let mut with = prefix.to_vec();
        with.push(Token { tok: Tok::Semi, start: end, end, first: false, indent: 0, reported: true });
        let node = self.run(start, &with, quiet).ok()?;
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

/// Returns true if a token on a new line is the start of a statement rather than the rest of one.
fn starts_expression(tok: Tok<'_>) -> bool {
    matches!(
        tok,
        Tok::Id(_)
            | Tok::If
            | Tok::Int(_)
            | Tok::Float(_)
            | Tok::Str(_)
            | Tok::True
            | Tok::False
            | Tok::Block(_)
    )
}
