//! Compile-time `if`s whose arms have different types.
//!
//! `let p = if C { a } else { b }; rest` becomes `if C { let p = a; rest } else { let p = b; rest }`, so that the rest
//! is checked with the type of either arm. Each such `if` doubles the rest, hence the limit.

use std::collections::BTreeSet;

use tk_syntax::ast::{self, ExprKind, StmtKind};

use super::cx::{Cx, Flow};
use crate::hir::{HExpr, LocalId};
use crate::types::Ty;

/// The maximum nesting of splits: 2^4 copies of a statement.
const MAX_SPLITS: usize = 4;

/// The state before a statement, to undo its check.
pub(crate) struct Mark {
    diags: usize,
    calls: usize,
    locals: usize,
    names: usize,
    vars: (usize, usize),
    flow: Flow,
    untyped: BTreeSet<LocalId>,
    broken: bool,
    pending: (usize, usize),
}

impl Cx<'_> {
    /// Returns true if a statement may turn out to be one: only then its effects are recorded.
    pub fn may_split(s: &ast::Stmt) -> bool {
        matches!(&s.kind, StmtKind::Let { init: Some(e), .. } if matches!(e.kind, ExprKind::If(..)))
    }

    pub fn mark(&self) -> Mark {
        Mark {
            diags: self.p.notes.diags.len(),
            calls: self.p.notes.calls.len(),
            locals: self.locals.len(),
            names: self.scopes.last().map_or(0, super::cx::Scope::len),
            vars: self.vars.mark(),
            flow: self.flow(),
            untyped: self.untyped.clone(),
            pending: self.pending.mark(),
            broken: self.func.is_some_and(|f| self.hir().func(f).broken),
        }
    }

    pub fn reset(&mut self, m: Mark) {
        self.p.notes.diags.truncate(m.diags);
        self.p.notes.calls.truncate(m.calls);
        self.locals.truncate(m.locals);
        if let Some(s) = self.scopes.last_mut() {
            s.truncate(m.names);
        }
        self.vars.reset(m.vars);
        self.pending.reset(m.pending);
        self.untyped = m.untyped;
        self.set_flow(m.flow);
        if let Some(f) = self.func {
            self.p.func_mut(f).broken = m.broken;
        }
    }

    /// The `if` over the rest of the block, when statement `i` was a `let` whose arms differ.
    pub fn split_after(&mut self, b: &ast::Block, i: usize) -> Option<ast::Expr> {
        let at = self.split.take()?;
        let StmtKind::Let { pat, ty: None, init: Some(init) } = &b.stmts.get(i)?.kind else { return None };
        let ExprKind::If(cond, then, Some(els)) = &init.kind else { return None };
        if init.span != at || self.splits >= MAX_SPLITS {
            return None;
        }
        let arm = |value: ast::Expr| {
            let kind = StmtKind::Let { pat: pat.clone(), ty: None, init: Some(value) };
            let mut stmts = vec![ast::Stmt { attrs: vec![], kind, span: init.span }];
            stmts.extend(b.stmts.iter().skip(i + 1).cloned());
            ast::Block { stmts, tail: b.tail.clone(), span: b.span }
        };
        let then = arm(ast::Expr { kind: ExprKind::Block(then.clone()), span: then.span });
        let els = arm((**els).clone());
        let els = ast::Expr { kind: ExprKind::Block(Box::new(els)), span: b.span };
        Some(ast::Expr {
            kind: ExprKind::If(cond.clone(), Box::new(then), Some(Box::new(els))),
            span: init.span,
        })
    }

    /// Checks the `if` that stands for the rest of a block.
    pub fn split_rest(&mut self, e: &ast::Expr, want: Option<&Ty>) -> HExpr {
        self.splits += 1;
        let h = self.open_expr(e, want);
        self.splits -= 1;
        h
    }
}
