//! The layout of expressions, types and patterns.

use crate::layout::{DocBuilder, Keep, LineKind};
use tk_syntax::Span;
use tk_syntax::ast::*;
use tk_syntax::token::Tok;

/// The arrangement of a list between its brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edges {
    /// `(a, b)`
    Tight,
    /// `{ a, b }`
    Spaced,
    /// `(a, b)` where a single element keeps its comma.
    Tuple,
    /// `{ a, b }`, or one element on each line.
    Column,
    /// `[a, b]`, whose rows stay.
    Table,
}

impl DocBuilder<'_> {
    /// An expression.
    pub fn expr(&mut self, e: &Expr) {
        if let ExprKind::Type(t) = &e.kind
            && t.span == e.span
        {
            return self.ty(t);
        }
        let tuple = matches!(e.kind, ExprKind::Tuple(_));
        let parens = self.own_parens(e.span, tuple);
        let chain = matches!(e.kind, ExprKind::Binary(..)) && parens > 0;
        (0..parens).for_each(|_| self.token());
        if chain {
            self.open();
            self.indent();
            self.line(LineKind::Soft);
            self.chain(e);
            self.last_line(LineKind::Soft, Keep::Nowhere);
            self.token();
            self.close();
            (1..parens).for_each(|_| self.token());
        } else {
            self.bare(e);
            (0..parens).for_each(|_| self.token());
        }
    }

    /// An expression without the parentheses around it.
    fn bare(&mut self, e: &Expr) {
        // Comments between the parts of a chain stay where they are.
        if let Some((base, links)) = self.commented(e) {
            self.open();
            self.method_chain(base, &links);
            return self.close();
        }
        match &e.kind {
            ExprKind::Path(path) => self.tokens_until(path.span.end),
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Str(_) | ExprKind::Bool(_) => self.token(),
            ExprKind::None => self.token(),
            // Holes come with errors.
            ExprKind::Err => {}
            ExprKind::Tuple(list) => self.list(list, Edges::Tuple, Self::expr, |_| false),
            ExprKind::Array(list) => self.list(list, Edges::Table, Self::expr, bracketed),
            ExprKind::Unary(_, a) => {
                self.token();
                self.expr(a);
            }
            ExprKind::Binary(..) => {
                self.open();
                self.indent();
                self.chain(e);
                self.dedent();
                self.close();
            }
            ExprKind::Cast(a, t) => {
                self.expr(a);
                self.space();
                self.token();
                self.space();
                self.ty(t);
            }
            ExprKind::Index(a, list) => {
                self.expr(a);
                self.list(list, Edges::Tight, Self::index, |i| index_value(i).is_some_and(bracketed));
            }
            ExprKind::Call(f, args) => {
                if let Some((base, links)) = self.methods(e) {
                    self.open();
                    self.method_chain(base, &links);
                    return self.close();
                }
                self.expr(f);
                self.args(args, Edges::Tight);
            }
            ExprKind::Member(a, _) => {
                self.expr(a);
                self.token();
                self.token();
            }
            ExprKind::If(..) | ExprKind::IfLet(..) | ExprKind::Block(_) => {
                self.block_like(e);
            }
            ExprKind::Lambda(params, body) => self.lambda(params, body),
            ExprKind::Type(t) => self.ty(t),
            ExprKind::Return(value) => {
                self.token();
                if let Some(value) = value {
                    self.space();
                    self.expr(value);
                }
            }
        }
    }

    /// The number of pairs of parentheses around an expression that are not part of it. A tuple has a pair that is.
    fn own_parens(&self, span: Span, tuple: bool) -> usize {
        let source = self.source;
        let mut count = 0;
        let mut end = span.end as usize;
        loop {
            let at = self.next + count;
            let partner = source.partner(at);
            let pair = source.tok(at) == Some(Tok::LParen) && source.end(partner) == end && partner > at;
            if !pair {
                break;
            }
            count += 1;
            end = source.end(partner.saturating_sub(1));
        }
        count.saturating_sub(usize::from(tuple))
    }

    /// Operands of one precedence with the operators between them; the caller has opened the group.
    pub fn chain(&mut self, e: &Expr) {
        let ExprKind::Binary(op, a, b) = &e.kind else { return self.expr(e) };
        match &a.kind {
            ExprKind::Binary(inner, ..)
                if level(*inner) == level(*op) && self.own_parens(a.span, false) == 0 =>
            {
                self.chain(a);
            }
            _operand => self.expr(a),
        }
        self.line(LineKind::Blank);
        self.token();
        self.space();
        self.expr(b);
    }

    /// The parts of a chain of two method calls or more, or of one with a comment: what they begin with, and what follows it.
    fn methods<'e>(&self, e: &'e Expr) -> Option<(&'e Expr, Vec<&'e Expr>)> {
        let (base, links) = self.links(e);
        let calls = links.windows(2).filter(|pair| is_method(pair)).count();
        (calls > 1 || links.iter().any(|link| self.follows_comment(link))).then_some((base, links))
    }

    /// The same of any chain with a comment before one of its names.
    fn commented<'e>(&self, e: &'e Expr) -> Option<(&'e Expr, Vec<&'e Expr>)> {
        let is_chain = matches!(e.kind, ExprKind::Call(..) | ExprKind::Index(..) | ExprKind::Member(..));
        if !is_chain || !self.source.has_comments(e.span) {
            return None;
        }
        let (base, links) = self.links(e);
        links.iter().any(|link| self.follows_comment(link)).then_some((base, links))
    }

    /// Returns true for a member with a comment before its dot.
    fn follows_comment(&self, link: &Expr) -> bool {
        let ExprKind::Member(_, name) = &link.kind else { return false };
        let dot = self.source.token_at(name.span.start).saturating_sub(1);
        !self.source.comments_before(dot).is_empty()
    }

    /// What calls, indices and members begin with, and these.
    fn links<'e>(&self, e: &'e Expr) -> (&'e Expr, Vec<&'e Expr>) {
        let (mut at, mut links) = (e, vec![]);
        while let ExprKind::Call(inner, _) | ExprKind::Index(inner, _) | ExprKind::Member(inner, _) = &at.kind
        {
            links.push(at);
            at = inner;
            if self.own_parens(at.span, matches!(at.kind, ExprKind::Tuple(_))) > 0 {
                break;
            }
        }
        links.reverse();
        (at, links)
    }

    /// A chain of method calls: on one line, or each on its own. The caller has opened the group.
    fn method_chain(&mut self, base: &Expr, links: &[&Expr]) {
        self.expr(base);
        let mut is_indented = false;
        for (i, link) in links.iter().enumerate() {
            match &link.kind {
                ExprKind::Member(..) => {
                    if links.get(i..i + 2).is_some_and(is_method) || self.follows_comment(link) {
                        // What the chain begins with keeps its own indentation.
                        if !std::mem::replace(&mut is_indented, true) {
                            self.indent();
                        }
                        self.line(LineKind::Soft);
                    }
                    self.token();
                    self.token();
                }
                ExprKind::Call(_, args) => self.args(args, Edges::Tight),
                ExprKind::Index(_, list) => {
                    self.list(list, Edges::Tight, Self::index, |i| index_value(i).is_some_and(bracketed));
                }
                _other => {}
            }
        }
        if is_indented {
            self.dedent();
        }
    }

    /// An expression before a block. The brace of a condition of several lines is alone.
    pub fn head(&mut self, e: &Expr) {
        let is_bare = self.own_parens(e.span, false) == 0;
        let methods = self.methods(e).filter(|_| is_bare);
        let ends_line = methods.is_some() || is_bare && matches!(e.kind, ExprKind::Binary(..));
        if !ends_line {
            let group = self.open();
            self.expr(e);
            self.close();
            self.space();
            self.condition = Some(group);
            return;
        }
        // A comment before the brace ends that line and no other.
        self.open();
        let group = self.open();
        if let Some((base, links)) = methods {
            self.method_chain(base, &links);
        } else {
            self.indent();
            self.chain(e);
            self.dedent();
        }
        self.close();
        self.line(LineKind::With(group));
        self.close();
        self.condition = Some(group);
    }

    /// Arguments between brackets. One that ends with the block of a lambda may be the only one that takes several lines.
    pub fn args(&mut self, args: &[Arg], edges: Edges) {
        self.list(args, edges, Self::arg, |a| bracketed(&a.value));
    }

    fn arg(&mut self, arg: &Arg) {
        if arg.name.is_some() {
            self.token();
            let typed = self.peek() == Some(Tok::Colon);
            if !typed {
                self.space();
            }
            self.token();
            self.space();
        }
        self.expr(&arg.value);
    }

    fn index(&mut self, index: &Subscript) {
        match index {
            Subscript::Expr(e) => self.expr(e),
            Subscript::Slice(a, b, _) => {
                a.iter().for_each(|e| self.expr(e));
                self.token();
                b.iter().for_each(|e| self.expr(e));
            }
            Subscript::Named(_, e) => {
                self.token();
                self.space();
                self.token();
                self.space();
                self.expr(e);
            }
        }
    }

    /// Elements between brackets, with as many on a line as fit. A single one that brings its own brackets (`hugs`) is
    /// laid out as if there were none around it.
    pub fn list<T>(&mut self, items: &[T], edges: Edges, each: fn(&mut Self, &T), hugs: fn(&T) -> bool) {
        let (first, close) = (self.next + 1, self.source.partner(self.next));
        // What is before a comma that goes comes together with what is after it.
        let last = close - usize::from(close > 0 && self.source.tok(close - 1) == Some(Tok::Comma));
        let free = !self.own_lines_in(first..first) && !self.own_lines_in(last..close);
        let (edge, between) = match edges {
            Edges::Tight | Edges::Tuple | Edges::Table => (LineKind::Soft, LineKind::Fill),
            Edges::Spaced => (LineKind::Blank, LineKind::Fill),
            Edges::Column => (LineKind::Blank, LineKind::Blank),
        };
        if let [item] = items
            && free
            && matches!(edges, Edges::Tight | Edges::Table)
            && hugs(item)
            && self.kept_lines(false).is_none()
        {
            self.token();
            each(self, item);
            self.drop_comma();
            return self.token();
        }
        self.open_list(items, (edge, between), edges, each);
        self.close();
    }

    /// For each element after the first one of the list that comes next whether it begins a line, if that is to stay: a line
    /// ends after the opening bracket, a comma is before the closing one, and this is a table, or each element has its own line.
    fn kept_lines(&self, is_table: bool) -> Option<Vec<bool>> {
        let (source, open) = (self.source, self.next);
        let close = source.partner(open);
        let is_comma = |at: usize| source.tok(at) == Some(Tok::Comma);
        if close < open + 2 || !source.begins_line(open + 1) || !is_comma(close - 1) {
            return None;
        }
        let mut begins = vec![];
        let mut at = open + 1;
        while at < close {
            if is_comma(at) && at + 1 < close {
                begins.push(source.begins_line(at + 1));
            }
            at = source.partner(at).max(at) + 1;
        }
        (is_table || begins.iter().all(|b| *b)).then_some(begins)
    }

    /// A list whose group stays open, so that what follows it must fit on the line too if the list is on one.
    pub fn open_list<T>(
        &mut self,
        items: &[T],
        (edge, between): (LineKind, LineKind),
        edges: Edges,
        each: fn(&mut Self, &T),
    ) {
        let close = self.source.partner(self.next);
        let kept = self.kept_lines(edges == Edges::Table);
        let tuple = edges == Edges::Tuple;
        let (list, mut blocks) = (self.open(), vec![]);
        self.token();
        self.indent();
        if !items.is_empty() {
            self.line_or(edge, kept.is_some());
        }
        for (i, item) in items.iter().enumerate() {
            let known = self.groups.len();
            each(self, item);
            let block = self.last_block.filter(|(group, end)| *group >= known && *end == self.next);
            blocks.extend(block.map(|(group, _)| group));
            if i + 1 < items.len() {
                self.token();
                let begins = kept.as_ref().and_then(|kept| kept.get(i)).copied();
                self.line_or(between, begins == Some(true));
            } else if tuple && i == 0 {
                self.token();
            } else {
                self.drop_comma();
                self.comma();
            }
        }
        if let [block] = blocks.as_slice() {
            self.hug(list, *block);
        }
        if items.is_empty() && !self.own_lines_in(close..close) {
            self.dedent();
        } else {
            self.last_line(edge, Keep::Nowhere);
        }
        self.token();
    }

    fn lambda(&mut self, params: &[(Pat, Option<TypeExpr>)], body: &Expr) {
        let empty = self.peek() == Some(Tok::OrOr);
        self.token();
        if !empty {
            if params.is_empty() {
                // `||` would be another token.
                self.space();
            }
            for (i, (pat, ty)) in params.iter().enumerate() {
                self.pat(pat);
                self.typed(ty.as_ref());
                if i + 1 < params.len() {
                    self.token();
                    self.space();
                } else {
                    self.drop_comma();
                }
            }
            self.token();
        }
        self.space();
        self.expr(body);
    }

    /// `: T`
    pub fn typed(&mut self, ty: Option<&TypeExpr>) {
        if let Some(ty) = ty {
            self.token();
            self.space();
            self.ty(ty);
        }
    }

    /// A type.
    pub fn ty(&mut self, t: &TypeExpr) {
        let parens = self.own_parens(t.span, matches!(t.kind, TypeKind::Tuple(_)));
        (0..parens).for_each(|_| self.token());
        match &t.kind {
            TypeKind::Path { path, member, args } => {
                self.tokens_until(path.span.end);
                if member.is_some() {
                    self.token();
                    self.token();
                }
                if let Some(args) = args {
                    self.list(args, Edges::Tight, Self::index, |_| false);
                }
            }
            TypeKind::Ptr { mutable, pointee } => {
                self.token();
                if *mutable {
                    self.token();
                    self.space();
                }
                self.ty(pointee);
            }
            TypeKind::Mut(t) => {
                self.token();
                self.space();
                self.ty(t);
            }
            TypeKind::Option(t) => {
                self.ty(t);
                self.token();
            }
            TypeKind::Tuple(list) => self.list(list, Edges::Tuple, Self::ty, |_| false),
            TypeKind::Fn(params, ret) => {
                self.token();
                self.list(params, Edges::Tight, Self::ty, |_| false);
                self.space();
                self.token();
                self.space();
                self.ty(ret);
            }
            TypeKind::Err => {}
        }
        (0..parens).for_each(|_| self.token());
    }

    /// A pattern.
    pub fn pat(&mut self, p: &Pat) {
        let parens = self.own_parens(p.span, matches!(p.kind, PatKind::Tuple(_)));
        (0..parens).for_each(|_| self.token());
        match &p.kind {
            PatKind::Name { mutable, .. } => {
                if *mutable {
                    self.token();
                    self.space();
                }
                self.token();
            }
            PatKind::Tuple(list) => self.list(list, Edges::Tuple, Self::pat, |_| false),
            PatKind::Err => {}
        }
        (0..parens).for_each(|_| self.token());
    }
}

/// The operators that may share a chain of lines: those that bind equally.
fn level(op: BinOp) -> u8 {
    match op {
        BinOp::Or => 0,
        BinOp::And => 1,
        BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge => 2,
        BinOp::BitOr => 3,
        BinOp::BitXor => 4,
        BinOp::BitAnd => 5,
        BinOp::Shl | BinOp::Shr => 6,
        BinOp::Add | BinOp::Sub => 7,
        BinOp::Mul | BinOp::Div | BinOp::Rem => 8,
    }
}

/// Returns true for a member and its call.
fn is_method(pair: &[&Expr]) -> bool {
    matches!(pair, [member, call] if matches!(member.kind, ExprKind::Member(..)) && matches!(call.kind, ExprKind::Call(..)))
}

fn index_value(index: &Subscript) -> Option<&Expr> {
    match index {
        Subscript::Expr(e) => Some(e),
        Subscript::Slice(..) | Subscript::Named(..) => None,
    }
}

/// Returns true if an expression ends with brackets of its own, inside which lines can end.
fn bracketed(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Tuple(list) | ExprKind::Array(list) => !list.is_empty(),
        ExprKind::Call(_, args) => !args.is_empty(),
        ExprKind::Lambda(_, body) => matches!(body.kind, ExprKind::Block(_)),
        ExprKind::Block(_) => true,
        ExprKind::Path(_) | ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Str(_) => false,
        ExprKind::Bool(_) | ExprKind::None | ExprKind::Unary(..) | ExprKind::Binary(..) => false,
        ExprKind::Cast(..) | ExprKind::Index(..) | ExprKind::Member(..) | ExprKind::If(..) => false,
        ExprKind::IfLet(..) | ExprKind::Type(_) | ExprKind::Return(_) | ExprKind::Err => false,
    }
}
