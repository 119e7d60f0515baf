//! `if` and `if let`: conditions, what a compile-time condition says of its arms, the common type of two arms.

use tk_ops::{DType, DTypeSet};
use tk_syntax::ast::{self, ExprKind};
use tk_syntax::{Diagnostic, Span, codes};

use super::arms::Meant;
use super::cx::{Cx, Flow};
use crate::hir::{CVarId, HArg, HBlock, HExpr, HKind};
use crate::types::{DTerm, Elem, Ty};

/// The dtype variables that an arm of a compile-time `if` narrows, and their sets.
type Narrowed = Vec<(CVarId, DTypeSet)>;

impl Cx<'_> {
    /// `if c { .. } else { .. }`
    pub fn if_expr(
        &mut self,
        c: &ast::Expr,
        then: &ast::Block,
        els: Option<&ast::Expr>,
        want: Option<&Ty>,
        span: Span,
    ) -> HExpr {
        let cond = self.condition_of(c, |cx| cx.meant(c, then, els, span));
        let (narrow_then, narrow_else) = if cond.konst { self.narrowing(&cond) } else { (vec![], vec![]) };
        let before = self.flow();
        let want_arm = if cond.konst { want } else { None };
        let (then_b, then_ty) = self.narrowed_block(narrow_then, |cx| {
            cx.learn(&cond, true);
            let arm = cx.block(then, want);
            cx.fit_arm(arm, want_arm)
        });
        let after_then = self.flow();
        self.set_flow(before.clone());
        let els_b = els.map(|e| {
            self.narrowed_block(narrow_else, |cx| {
                cx.learn(&cond, false);
                let arm = cx.else_block(e, want);
                cx.fit_arm(arm, want_arm)
            })
        });
        let after_else = self.flow();
        self.set_flow(merge(after_then, after_else));
        if !cond.ty.is_err() {
            self.end_if(c, then, els, span);
        }
        // Of a condition that was reported, arms that differ are no mistake of their own.
        let differ = cond.ty.is_err() && els_b.as_ref().is_some_and(|(_, ty)| *ty != then_ty);
        let (then_ty, els_b) =
            if differ { (Ty::Err, els_b.map(|(b, _)| (b, Ty::Err))) } else { (then_ty, els_b) };
        let (then_b, els_b, ty) = self.join_arms(then_b, then_ty, els_b, cond.konst, span);
        // A condition with an error has been reported.
        let konst = (cond.konst || cond.ty.is_err())
            && then_b.tail.as_ref().is_some_and(|t| t.konst)
            && els_b.as_ref().is_some_and(|b| b.tail.as_ref().is_some_and(|t| t.konst))
            && then_b.stmts.is_empty()
            && els_b.as_ref().is_some_and(|b| b.stmts.is_empty());
        let kind = HKind::If { cond: Box::new(cond), then: Box::new(then_b), els: els_b.map(Box::new) };
        self.mk(kind, ty, span, konst)
    }

    /// The arm of a compile-time `if` as a value of the wanted type, seen with what the arm knows of its parameters.
    fn fit_arm(&mut self, arm: (HBlock, Ty), want: Option<&Ty>) -> (HBlock, Ty) {
        let (mut block, ty) = arm;
        match want {
            Some(w)
                if !matches!(ty, Ty::Never | Ty::Unit)
                    && !ty.is_err()
                    && !w.is_err()
                    && self.fits(&ty, w) =>
            {
                coerce_tail(self, &mut block, w);
                (block, w.clone())
            }
            _ => (block, ty),
        }
    }

    fn else_block(&mut self, e: &ast::Expr, want: Option<&Ty>) -> (HBlock, Ty) {
        match &e.kind {
            ExprKind::Block(b) => self.block(b, want),
            _ => {
                let h = self.open_expr(e, want);
                let ty = h.ty.clone();
                let span = h.span;
                (HBlock { stmts: vec![], tail: Some(Box::new(h)), span }, ty)
            }
        }
    }

    fn narrowed_block<R>(&mut self, narrow: Narrowed, f: impl FnOnce(&mut Self) -> R) -> R {
        let (n, facts, widths) = (self.narrowed.len(), self.facts.len(), self.widths.len());
        // Of no type everything holds, opposites too: an arm that no member reaches is seen as the code around it.
        self.narrowed.extend(narrow.into_iter().filter(|(_, set)| *set != DTypeSet::EMPTY));
        self.arms += 1;
        let r = f(self);
        self.arms -= 1;
        self.narrowed.truncate(n);
        self.facts.truncate(facts);
        self.widths.truncate(widths);
        r
    }

    /// The common type of two arms.
    fn join_arms(
        &mut self,
        mut then: HBlock,
        then_ty: Ty,
        els: Option<(HBlock, Ty)>,
        konst: bool,
        span: Span,
    ) -> (HBlock, Option<HBlock>, Ty) {
        let Some((mut els, els_ty)) = els else {
            if !matches!(then_ty, Ty::Unit | Ty::Never | Ty::Err) {
                let shown = self.show(&then_ty);
                let at = then.tail.as_ref().map_or(span, |t| t.span);
                self.error(
                    codes::BRANCHES,
                    at,
                    format!("this arm has the value `{shown}`, but there is no `else`"),
                    "add an `else` with a value, or `;` to discard the value",
                );
                return (then, None, Ty::Err);
            }
            return (then, None, Ty::Unit);
        };
        if then_ty == Ty::Never || then_ty.is_err() {
            return (then, Some(els), els_ty);
        }
        if els_ty == Ty::Never || els_ty.is_err() {
            return (then, Some(els), then_ty);
        }
        if self.fits(&els_ty, &then_ty) {
            coerce_tail(self, &mut els, &then_ty);
            return (then, Some(els), self.resolve_ty(&then_ty));
        }
        if self.fits(&then_ty, &els_ty) {
            coerce_tail(self, &mut then, &els_ty);
            return (then, Some(els), self.resolve_ty(&els_ty));
        }
        let (a, b) = (self.show(&then_ty), self.show(&els_ty));
        let at = |blk: &HBlock| blk.tail.as_ref().map_or(blk.span, |t| t.span);
        let mut d = Diagnostic::error(
            codes::BRANCHES,
            at(&els),
            format!("the arms of this `if` have different types: `{a}` and `{b}`"),
            super::this_is(&b),
        )
        .label(at(&then), super::this_is(&a));
        if konst {
            self.split = Some(span);
            d = d.note("arms of a compile-time `if` may differ where it initialises a `let`; otherwise give both arms one type");
        }
        self.report(d);
        (then, Some(els), Ty::Err)
    }

    /// `if let v = opt { .. } else { .. }`
    pub fn if_let(
        &mut self,
        n: &ast::Name,
        x: &ast::Expr,
        then: &ast::Block,
        els: Option<&ast::Expr>,
        want: Option<&Ty>,
        span: Span,
    ) -> HExpr {
        let opt = self.value(x);
        let inner = match &opt.ty {
            Ty::Option(t) => (**t).clone(),
            Ty::Err => Ty::Err,
            other => {
                let shown = self.show(other);
                self.error(
                    codes::TYPE_MISMATCH,
                    opt.span,
                    format!("`if let` tests an optional view, but this is `{shown}`"),
                    super::this_is(&shown),
                );
                Ty::Err
            }
        };
        let before = self.flow();
        self.push_scope();
        let bind = self.new_local(n, inner, false);
        let (then_b, then_ty) = self.block(then, want);
        self.pop_scope();
        let after_then = self.flow();
        self.set_flow(before);
        let els_b = els.map(|e| self.else_block(e, want));
        let after_else = self.flow();
        self.set_flow(merge(after_then, after_else));
        let (then_b, els_b, ty) = self.join_arms(then_b, then_ty, els_b, true, span);
        let kind =
            HKind::IfLet { opt: Box::new(opt), bind, then: Box::new(then_b), els: els_b.map(Box::new) };
        self.mk(kind, ty, span, false)
    }

    /// A condition: one bool.
    pub fn condition(&mut self, c: &ast::Expr) -> HExpr {
        self.condition_of(c, |_| None)
    }

    /// The condition of a `while`.
    pub fn loop_condition(&mut self, c: &ast::Expr) -> HExpr {
        self.condition_of(c, |_| Some(Meant::Loop))
    }

    /// A condition, and what is meant where it is one for each element.
    fn condition_of(&mut self, c: &ast::Expr, meant: impl FnOnce(&Self) -> Option<Meant>) -> HExpr {
        let h = self.value(c);
        match &h.ty {
            Ty::Tile { elem: Elem::D(d), shape } if self.norm(*d) == DTerm::Known(DType::Bool) => {
                if shape.is_scalar() {
                    return h;
                }
                let shown = self.show(&h.ty);
                let d = Diagnostic::error(
                    codes::CONDITION,
                    h.span,
                    format!("a condition must be one bool, not `{shown}`"),
                    "a tile of bools",
                );
                self.fail(self.of_each(d, h.span, meant(self)))
            }
            t if t.is_err() => h,
            other => {
                let shown = self.show(other);
                let text = self.text(h.span);
                let mut d = Diagnostic::error(
                    codes::CONDITION,
                    h.span,
                    format!("a condition must be a bool, not `{shown}`"),
                    super::this_is(&shown),
                );
                if let Ty::Tile { elem: Elem::D(_), shape } = other
                    && shape.is_scalar()
                {
                    let text = if self.is_postfix(&text) { text } else { format!("({text})") };
                    d = d.fix("compare with 0", h.span, format!("{text} != 0"));
                } else if matches!(other, Ty::Option(_)) {
                    d = d.note(format!(
                        "`if let v = {text} {{ .. }}` tests whether it is there; `v` is its value"
                    ));
                }
                self.fail(d)
            }
        }
    }

    /// The dtype variables that a compile-time condition narrows in its two arms.
    fn narrowing(&self, c: &HExpr) -> (Narrowed, Narrowed) {
        match &c.kind {
            HKind::Builtin(row, args) => {
                if let ("unary !", [HArg::Expr(inner)]) = (row.name, args.as_slice()) {
                    let (yes, no) = self.narrowing(inner);
                    return (no, yes);
                }
                let [HArg::Expr(a), HArg::Expr(b)] = args.as_slice() else { return (vec![], vec![]) };
                let (HKind::DType(x), HKind::DType(y)) = (&a.kind, &b.kind) else { return (vec![], vec![]) };
                let (DTerm::Param(id), Some(other)) = (*x, self.set_of(*y)) else { return (vec![], vec![]) };
                if other.single().is_none() {
                    return (vec![], vec![]);
                }
                let all = self.members(id);
                let (yes, no) = (vec![(id, all.and(other))], vec![(id, all.without(other))]);
                match row.name {
                    "==" => (yes, no),
                    "!=" => (no, yes),
                    _ => (vec![], vec![]),
                }
            }
            HKind::ShortCircuit { or, lhs, rhs } => {
                let ((at, ae), (bt, be)) = (self.narrowing(lhs), self.narrowing(rhs));
                match (or, at.as_slice(), bt.as_slice()) {
                    // `T == f16 || T == bf16`: one of the two; otherwise none of them.
                    (true, [(x, s)], [(y, t)]) if x == y => {
                        let none = ae.iter().chain(&be).fold(self.members(*x), |m, (_, e)| m.and(*e));
                        (vec![(*x, s.or(*t))], vec![(*x, none)])
                    }
                    (true, _, _) => (vec![], ae.into_iter().chain(be).collect()),
                    (false, _, _) => (at.into_iter().chain(bt).collect(), vec![]),
                }
            }
            _ => (vec![], vec![]),
        }
    }
}

/// The state after an `if`: what one of the arms leaves open; an arm that does not come back leaves nothing open.
pub(crate) fn merge(a: Flow, b: Flow) -> Flow {
    match (a.1, b.1) {
        (true, true) => (a.0.union(&b.0).copied().collect(), true),
        (true, false) => b,
        (false, true) => a,
        (false, false) => (a.0.union(&b.0).copied().collect(), false),
    }
}

pub(super) fn coerce_tail(cx: &mut Cx, b: &mut HBlock, want: &Ty) {
    if let Some(t) = b.tail.take() {
        let t = cx.convert(*t, want);
        b.tail = Some(Box::new(t));
    }
}
