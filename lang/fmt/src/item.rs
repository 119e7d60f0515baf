//! The layout of items: signatures, clauses, structs.

use crate::expr::Edges;
use crate::layout::{DocBuilder, Keep, LineKind};
use tk_syntax::ast::*;
use tk_syntax::token::Tok;

impl DocBuilder<'_> {
    /// A whole file.
    pub fn file(&mut self, file: &File) {
        let mut items = vec![];
        for (i, item) in file.items.iter().enumerate() {
            self.strays(start(item));
            self.line(LineKind::Hard(if i == 0 { Keep::Behind } else { Keep::Everywhere }));
            let from = self.next;
            self.item_or_skip(item);
            items.push(from..self.next);
        }
        self.finish();
        self.lists.push((0..self.next, items));
    }

    /// An item or method, as it is if a comment says so.
    fn item_or_skip(&mut self, item: &Item) {
        let end = self.source.token_at(item.span.end);
        if self.source.skips(self.next, end.saturating_sub(1)) {
            self.verbatim(end);
        } else {
            self.item(item);
        }
    }

    fn item(&mut self, item: &Item) {
        self.attrs(&item.attrs);
        match &item.kind {
            ItemKind::Use(u) => self.import(u),
            ItemKind::Const(c) => self.constant(c),
            ItemKind::Struct(s) => self.structure(s, item),
            ItemKind::Fn(f) => self.function(f),
            ItemKind::Export(e) => {
                self.token();
                self.space();
                self.tokens_until(e.path.span.end);
                if self.peek() == Some(Tok::LBracket) {
                    self.args(&e.args, Edges::Tight);
                }
            }
            ItemKind::Test(t) => {
                self.token();
                self.space();
                self.token();
                self.space();
                self.block(&t.body);
            }
            ItemKind::Err => {}
        }
        self.tokens_until(item.span.end);
    }

    fn import(&mut self, u: &Use) {
        self.token();
        self.space();
        self.tokens_until(u.path.span.end);
        if u.alias.is_some() {
            self.space();
            self.token();
            self.space();
            self.token();
        }
        if let Some(names) = &u.names {
            self.token();
            self.list(names, Edges::Tight, |l, _| l.token(), |_| false);
        }
    }

    fn function(&mut self, f: &Fn) {
        self.token();
        self.space();
        self.token();
        self.cparams(&f.cparams);
        self.open_list(&f.params, (LineKind::Soft, LineKind::Fill), Edges::Tight, Self::param);
        if let Some(ret) = &f.ret {
            self.space();
            self.token();
            self.space();
            self.ty(ret);
        }
        self.close();
        if f.clauses.is_empty() {
            self.space_or_comments();
        } else {
            self.indent();
            for clause in &f.clauses {
                self.line(LineKind::Hard(Keep::Nowhere));
                self.clause(clause);
            }
            self.last_line(LineKind::Hard(Keep::Nowhere), Keep::Nowhere);
        }
        self.block(&f.body);
    }

    /// `[..]` of a function or struct, if it is there.
    fn cparams(&mut self, cparams: &[CParam]) {
        if self.peek() == Some(Tok::LBracket) {
            self.list(cparams, Edges::Tight, Self::cparam, |_| false);
        }
    }

    fn cparam(&mut self, c: &CParam) {
        self.token();
        self.open();
        self.indent();
        for (i, ty) in c.bound.iter().enumerate() {
            if i > 0 {
                self.line(LineKind::Blank);
            }
            self.token();
            self.space();
            self.ty(ty);
        }
        self.dedent();
        self.close();
        if let Some(default) = &c.default {
            self.assigned(default);
        }
    }

    fn param(&mut self, p: &Param) {
        self.attrs(&p.attrs);
        self.token();
        if let Some(ty) = &p.ty {
            self.token();
            self.space();
            if p.konst {
                self.token();
                self.space();
            }
            self.ty(ty);
        }
        if let Some(default) = &p.default {
            self.assigned(default);
        }
    }

    fn clause(&mut self, c: &Clause) {
        self.token();
        self.args(&c.args, Edges::Tight);
        if self.peek() != Some(Tok::LBrace) || self.at() >= c.span.end as usize {
            return;
        }
        self.space();
        self.token();
        self.indent();
        for (i, row) in c.rows.iter().enumerate() {
            self.strays(row.span.start as usize);
            self.line(LineKind::Hard(if i == 0 { Keep::Behind } else { Keep::Everywhere }));
            self.row(row);
            self.separator();
        }
        self.strays((c.span.end as usize).saturating_sub(1));
        let keep = if c.rows.is_empty() { Keep::Behind } else { Keep::Everywhere };
        if c.rows.is_empty() && self.comments().is_empty() {
            self.dedent();
        } else {
            self.last_line(LineKind::Hard(Keep::Nowhere), keep);
        }
        self.token();
    }

    /// `{ BM = 64 } if target.has_tma`
    fn row(&mut self, row: &TuneRow) {
        self.open();
        self.args(&row.entries, Edges::Spaced);
        if let Some(cond) = &row.cond {
            self.indent();
            self.line(LineKind::Blank);
            self.token();
            self.space();
            self.expr(cond);
            self.dedent();
        }
        self.close();
    }

    /// The comma after a row or field that has a line of its own.
    fn separator(&mut self) {
        match self.peek() {
            Some(Tok::Comma) => self.token(),
            Some(Tok::RBrace) => self.comma(),
            _other => {}
        }
    }

    fn structure(&mut self, s: &Struct, item: &Item) {
        self.token();
        self.space();
        self.token();
        self.cparams(&s.cparams);
        self.space();
        if s.methods.is_empty() && !self.source.ends_line(self.next) {
            if s.fields.is_empty() {
                return self.tokens_until(item.span.end);
            }
            return self.list(&s.fields, Edges::Column, Self::param, |_| false);
        }
        self.token();
        self.indent();
        let (mut fields, mut methods) = (s.fields.iter().peekable(), s.methods.iter().peekable());
        let mut first = true;
        loop {
            let place = |span: tk_syntax::Span| span.start as usize;
            let field = fields.peek().map_or(usize::MAX, |f| place(f.span));
            let method = methods.peek().map_or(usize::MAX, |m| start(m));
            if field == usize::MAX && method == usize::MAX {
                break;
            }
            self.strays(field.min(method));
            self.line(LineKind::Hard(if first { Keep::Behind } else { Keep::Everywhere }));
            first = false;
            if field < method {
                fields.next().into_iter().for_each(|f| self.param(f));
                self.separator();
            } else {
                methods.next().into_iter().for_each(|m| self.item_or_skip(m));
            }
        }
        self.strays((item.span.end as usize).saturating_sub(1));
        let keep = if first { Keep::Behind } else { Keep::Everywhere };
        self.last_line(LineKind::Hard(Keep::Nowhere), keep);
        self.token();
    }
}

/// The start of an item, with its attributes.
fn start(item: &Item) -> usize {
    let first = item.attrs.first().map_or(item.span.start, |a| a.span.start);
    first.min(item.span.start) as usize
}
