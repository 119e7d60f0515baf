//! Analysis of code before lowering: whether it may leave its block, and what it assigns.
//!
//! Conditions that are known at compile time are decided; where one cannot be evaluated yet (it uses the variable of
//! a compile-time loop), both arms count. Exits are searched in statement position only; elsewhere lowering refuses
//! them.

use std::collections::BTreeSet;

use super::Lower;
use crate::hir::{HBlock, HExpr, HKind, HStmt, HStmtKind, LocalId, StaticIter};
use crate::visit::look;

/// The ways in which code may leave the block that contains it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Exits {
    pub ret: bool,
    pub brk: bool,
    pub cont: bool,
    /// It never comes to its end.
    pub always: bool,
}

impl Exits {
    /// Returns true if it may leave in any way.
    pub fn any(self) -> bool {
        self.ret || self.brk || self.cont
    }

    /// Either of two arms.
    fn or(self, other: Exits) -> Exits {
        Exits {
            ret: self.ret || other.ret,
            brk: self.brk || other.brk,
            cont: self.cont || other.cont,
            always: self.always && other.always,
        }
    }

    /// One after the other.
    fn then(self, next: Exits) -> Exits {
        Exits { always: self.always || next.always, ..self.or(next) }
    }
}

impl Lower<'_, '_> {
    /// The arms of an `if` that count.
    fn arms<'e>(
        &mut self,
        cond: &HExpr,
        then: &'e HBlock,
        els: Option<&'e HBlock>,
    ) -> (Option<&'e HBlock>, Option<&'e HBlock>, bool) {
        let decided = if cond.konst { self.eval(|ev| ev.condition(cond)).ok() } else { None };
        match decided {
            Some(true) => (Some(then), None, true),
            Some(false) => (None, els, true),
            None => (Some(then), els, false),
        }
    }

    pub(super) fn block_exits(&mut self, b: &HBlock) -> Exits {
        let mut out = Exits::default();
        for s in &b.stmts {
            out = out.then(self.stmt_exits(s));
            if out.always {
                return out;
            }
        }
        match &b.tail {
            Some(e) => out.then(self.expr_exits(e)),
            None => out,
        }
    }

    fn stmt_exits(&mut self, s: &HStmt) -> Exits {
        match &s.kind {
            HStmtKind::Let(_, Some(e)) | HStmtKind::Assign { value: e, .. } | HStmtKind::Expr(e) => {
                self.expr_exits(e)
            }
            HStmtKind::Return(_) => Exits { ret: true, always: true, ..Exits::default() },
            HStmtKind::Break => Exits { brk: true, always: true, ..Exits::default() },
            HStmtKind::Continue => Exits { cont: true, always: true, ..Exits::default() },
            HStmtKind::For { body, .. }
            | HStmtKind::While { body, .. }
            | HStmtKind::StaticFor { body, .. } => {
                Exits { ret: self.block_exits(body).ret, ..Exits::default() }
            }
            HStmtKind::Let(_, None) | HStmtKind::AssertError { .. } | HStmtKind::Err => Exits::default(),
        }
    }

    pub(super) fn expr_exits(&mut self, e: &HExpr) -> Exits {
        match &e.kind {
            HKind::If { cond, then, els } => {
                let (t, f, decided) = self.arms(cond, then, els.as_deref());
                let t = t.map(|b| self.block_exits(b));
                let f = f.map(|b| self.block_exits(b));
                match (t, f) {
                    (Some(x), None) | (None, Some(x)) if decided => x,
                    (t, f) => t.unwrap_or_default().or(f.unwrap_or_default()),
                }
            }
            HKind::IfLet { then, els, .. } => {
                let t = self.block_exits(then);
                let f = els.as_ref().map_or_else(Exits::default, |b| self.block_exits(b));
                t.or(f)
            }
            HKind::Block(b) => self.block_exits(b),
            HKind::Return(_) => Exits { ret: true, always: true, ..Exits::default() },
            _value => Exits::default(),
        }
    }

    /// Collects the variables that a block assigns (those it declares may be among them).
    pub(super) fn assigned(&mut self, b: &HBlock, out: &mut BTreeSet<LocalId>) {
        for s in &b.stmts {
            match &s.kind {
                HStmtKind::Assign { local, value, .. } => {
                    out.insert(*local);
                    self.assigned_in(value, out);
                }
                HStmtKind::Let(_, Some(e)) | HStmtKind::Expr(e) | HStmtKind::Return(Some(e)) => {
                    self.assigned_in(e, out);
                }
                HStmtKind::For { lo, hi, step, body, .. } => {
                    [lo, hi, step].into_iter().for_each(|e| self.assigned_in(e, out));
                    self.assigned(body, out);
                }
                HStmtKind::StaticFor { iter, body, .. } => {
                    match iter {
                        StaticIter::Range(..) => {}
                        StaticIter::List(items) => items.iter().for_each(|e| self.assigned_in(e, out)),
                    }
                    self.assigned(body, out);
                }
                HStmtKind::While { cond, body } => {
                    self.assigned_in(cond, out);
                    self.assigned(body, out);
                }
                HStmtKind::AssertError { body, .. } => {
                    body.iter().for_each(|b| self.assigned(b, out));
                }
                HStmtKind::Let(_, None)
                | HStmtKind::Return(None)
                | HStmtKind::Break
                | HStmtKind::Continue
                | HStmtKind::Err => {}
            }
        }
        if let Some(e) = &b.tail {
            self.assigned_in(e, out);
        }
    }

    /// Collects the variables that an expression assigns in its blocks.
    pub(super) fn assigned_in(&mut self, e: &HExpr, out: &mut BTreeSet<LocalId>) {
        match &e.kind {
            HKind::If { cond, then, els } => {
                self.assigned_in(cond, out);
                let (t, f, _) = self.arms(cond, then, els.as_deref());
                t.into_iter().chain(f).for_each(|b| self.assigned(b, out));
            }
            HKind::IfLet { then, els, .. } => {
                self.assigned(then, out);
                els.iter().for_each(|b| self.assigned(b, out));
            }
            HKind::Block(b) => self.assigned(b, out),
            // A lambda assigns its own variables only.
            HKind::Lambda { .. } => {}
            _value => look(e, &mut |x| self.assigned_in(x, out)),
        }
    }
}
