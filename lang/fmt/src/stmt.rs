//! The layout of blocks and statements.
//!
//! A block that was written on one line stays on one line if it fits and holds at most one statement or value. All blocks of an
//! `if` with its `else`s are laid out alike.

use crate::expr::Edges;
use crate::layout::{DocBuilder, Keep, LineKind};
use tk_syntax::ast::*;

impl DocBuilder<'_> {
    /// A block of its own: the body of a function, of a loop, of a test.
    pub fn block(&mut self, block: &Block) {
        let flat = self.flat(block);
        let group = self.open();
        self.braces(block, flat);
        self.close();
        let empty = block.stmts.is_empty() && block.tail.is_none();
        self.last_block = (!empty).then_some((group, self.next));
    }

    /// `{ .. }`, `if c { .. } else { .. }`
    pub fn block_like(&mut self, e: &Expr) {
        if let ExprKind::Block(block) = &e.kind {
            return self.block(block);
        }
        let flat = self.all_flat(e);
        self.condition(e);
        self.open();
        let mut arm = Some(e);
        while let Some(e) = arm {
            let Some((block, other)) = arm_of(e) else { break };
            if self.at() < block.span.start as usize {
                self.condition(e);
                // The blocks are in the group of the `if`, which takes several lines if a condition in it does.
                self.condition = None;
            }
            self.braces(block, flat);
            if other.is_some() {
                self.space_or_comments();
                self.token();
                self.space();
            }
            arm = other;
        }
        self.close();
    }

    /// `if c`, `if let v = e`
    fn condition(&mut self, e: &Expr) {
        let (ExprKind::If(cond, ..) | ExprKind::IfLet(_, cond, ..)) = &e.kind else { return };
        let binding = matches!(e.kind, ExprKind::IfLet(..));
        self.token();
        self.space();
        if binding {
            for _ in 0..3 {
                self.token();
                self.space();
            }
        }
        self.head(cond);
    }

    /// Returns true if all blocks of an `if` may be on one line.
    fn all_flat(&self, e: &Expr) -> bool {
        let mut arm = Some(e);
        while let Some(e) = arm {
            let Some((block, other)) = arm_of(e) else { break };
            if !self.flat(block) {
                return false;
            }
            arm = other;
        }
        true
    }

    /// Returns true if a block may be on one line.
    fn flat(&self, block: &Block) -> bool {
        let open = self.source.token_at(block.span.start);
        let close = self.source.partner(open);
        let (first, last) = match (block.stmts.as_slice(), &block.tail) {
            ([], None) => {
                let is_bare = |at: usize| self.source.comments_before(at).is_empty();
                return (open + 1..close).all(|at| self.source.repeats(at) && is_bare(at)) && is_bare(close);
            }
            ([s], None) => (start(s), s.span.end as usize),
            ([], Some(e)) => (e.span.start as usize, e.span.end as usize),
            _several => return false,
        };
        let strays = self.source.start(open + 1) != first || self.source.end(close.saturating_sub(1)) != last;
        !strays && !self.source.ends_line(open)
    }

    /// Braces with statements, inside of the group that the caller has opened.
    fn braces(&mut self, block: &Block, flat: bool) {
        self.token();
        if flat && block.stmts.is_empty() && block.tail.is_none() {
            self.strays((block.span.end as usize).saturating_sub(1));
            return self.token();
        }
        self.indent();
        let mut first = true;
        let (begin, mut stmts) = (self.next, vec![]);
        for stmt in &block.stmts {
            self.strays(start(stmt));
            self.between(flat, first);
            let from = self.next;
            let end = self.source.token_at(stmt.span.end);
            if self.source.skips(from, end.saturating_sub(1)) {
                self.verbatim(end);
            } else {
                self.stmt(stmt);
            }
            stmts.push(from..self.next);
            first = false;
        }
        if let Some(tail) = &block.tail {
            self.strays(tail.span.start as usize);
            self.between(flat, first);
            let from = self.next;
            let end = self.source.token_at(tail.span.end);
            if self.source.skips(from, end.saturating_sub(1)) {
                self.verbatim(end);
            } else {
                self.expr(tail);
            }
            stmts.push(from..self.next);
            first = false;
        }
        self.strays((block.span.end as usize).saturating_sub(1));
        self.lists.push((begin..self.next, stmts));
        let keep = if first { Keep::Behind } else { Keep::Everywhere };
        self.last_line(if flat { LineKind::Blank } else { LineKind::Hard(Keep::Nowhere) }, keep);
        self.token();
    }

    /// The text before a statement.
    fn between(&mut self, flat: bool, first: bool) {
        self.line(match (flat, first) {
            (true, _) => LineKind::Blank,
            (false, true) => LineKind::Hard(Keep::Behind),
            (false, false) => LineKind::Hard(Keep::Everywhere),
        });
    }

    /// Separators without anything between them: those after another one go.
    pub fn strays(&mut self, end: usize) {
        while self.at() < end {
            if self.source.repeats(self.next) {
                self.next += 1;
            } else {
                self.token();
            }
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        self.attrs(&stmt.attrs);
        match &stmt.kind {
            StmtKind::Let { pat, ty, init } => {
                self.token();
                self.space();
                self.pat(pat);
                self.typed(ty.as_ref());
                if let Some(init) = init {
                    self.assigned(init);
                }
            }
            StmtKind::Const(c) => self.constant(c),
            StmtKind::Assign { place, value, .. } => {
                self.expr(place);
                self.assigned(value);
            }
            StmtKind::Expr(e) => self.expr(e),
            StmtKind::For { pat, iter, body } => {
                self.token();
                self.space();
                self.pat(pat);
                self.space();
                self.token();
                self.space();
                self.head(iter);
                self.block(body);
            }
            StmtKind::While { cond, body } => {
                self.token();
                self.space();
                self.head(cond);
                self.block(body);
            }
            StmtKind::Return(value) => {
                self.token();
                if let Some(value) = value {
                    self.space();
                    self.expr(value);
                }
            }
            StmtKind::Break | StmtKind::Continue | StmtKind::Err => {}
            StmtKind::AssertError { body, .. } => {
                self.token();
                self.space();
                self.token();
                self.space();
                self.block(body);
            }
        }
        self.tokens_until(stmt.span.end);
    }

    /// ` = e`, or with the operator of a compound assignment.
    pub fn assigned(&mut self, value: &Expr) {
        self.space();
        self.token();
        self.space();
        self.expr(value);
    }

    /// `const N: i32 = 4`
    pub fn constant(&mut self, c: &Const) {
        self.token();
        self.space();
        self.token();
        self.typed(c.ty.as_ref());
        self.assigned(&c.value);
    }

    /// Attributes, on the line of what they belong to.
    pub fn attrs(&mut self, attrs: &[AstAttr]) {
        for attr in attrs {
            self.token();
            self.token();
            if self.at() < attr.span.end as usize {
                self.args(&attr.args, Edges::Tight);
            }
            self.space_or_comments();
        }
    }
}

/// The block of an `if` or of its last `else`, and what follows it.
fn arm_of(e: &Expr) -> Option<(&Block, Option<&Expr>)> {
    if let ExprKind::If(_, block, other) | ExprKind::IfLet(_, _, block, other) = &e.kind {
        return Some((block, other.as_deref()));
    }
    let ExprKind::Block(block) = &e.kind else { return None };
    Some((block, None))
}

/// The start of a statement, with its attributes.
fn start(stmt: &Stmt) -> usize {
    let first = stmt.attrs.first().map_or(stmt.span.start, |a| a.span.start);
    first.min(stmt.span.start) as usize
}
