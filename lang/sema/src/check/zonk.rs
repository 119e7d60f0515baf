//! The end of a body: literals get their final types, and are checked against them.

use tk_ops::{DType, Scalar};
use tk_syntax::{Diagnostic, codes};

use super::cx::{Cx, Lit};
use crate::hir::{HBlock, HExpr, HKind};
use crate::types::{CTerm, DTerm, Elem, Ty};
use crate::visit;

impl Cx<'_> {
    /// The final form of a term: literals that nothing fixed are i32 and f32.
    fn settle(&self, d: DTerm) -> DTerm {
        match (self.literal(d), d) {
            (Some(Lit::Int | Lit::Whole), _) => DTerm::Known(DType::I32),
            (Some(Lit::Float), _) => DTerm::Known(DType::F32),
            // Narrowing belongs to the arm of an `if`: outside of it the variable itself is the term.
            (None, DTerm::Infer(_)) => match self.norm(d) {
                DTerm::Infer(_) => DTerm::Known(DType::I32),
                other => other,
            },
            (None, other) => other,
        }
    }

    pub fn settle_ty(&self, t: &Ty) -> Ty {
        let elem = |e: &Elem| self.settle_elem(e);
        match t {
            Ty::Tile { elem: e, shape } => Ty::Tile { elem: elem(e), shape: shape.clone() },
            Ty::View { elem: e, rank, mutable, wide } => {
                Ty::View { elem: elem(e), rank: rank.clone(), mutable: *mutable, wide: *wide }
            }
            Ty::List(t, n) => Ty::List(Box::new(self.settle_ty(t)), n.clone()),
            Ty::Buffer { elem: e, shape } => Ty::Buffer { elem: elem(e), shape: shape.clone() },
            Ty::Option(t) => Ty::Option(Box::new(self.settle_ty(t))),
            Ty::Tuple(ts) => Ty::Tuple(ts.iter().map(|t| self.settle_ty(t)).collect()),
            Ty::Fn(ps, r) => {
                Ty::Fn(ps.iter().map(|t| self.settle_ty(t)).collect(), Box::new(self.settle_ty(r)))
            }
            Ty::Struct(id, args) => Ty::Struct(*id, args.iter().map(|a| self.settle_cterm(a)).collect()),
            Ty::Err | Ty::Unit | Ty::Never | Ty::DType | Ty::ShapeTy | Ty::Str => t.clone(),
        }
    }

    pub fn settle_elem(&self, e: &Elem) -> Elem {
        match e {
            Elem::Err => Elem::Err,
            Elem::D(d) => Elem::D(self.settle(*d)),
            Elem::Ptr { pointee, mutable } => {
                Elem::Ptr { pointee: Box::new(self.settle_elem(pointee)), mutable: *mutable }
            }
        }
    }

    pub fn settle_cterm(&self, c: &CTerm) -> CTerm {
        match c {
            CTerm::DType(d) => CTerm::DType(self.settle(*d)),
            CTerm::Int(_) | CTerm::Shape(_) | CTerm::Expr(_) | CTerm::Err => c.clone(),
        }
    }

    pub fn zonk_locals(&mut self) {
        for i in 0..self.locals.len() {
            let t = self.settle_ty(&self.locals[i].ty.clone());
            self.locals[i].ty = t;
        }
    }

    pub fn zonk_expr(&mut self, h: &mut HExpr) {
        h.ty = self.settle_ty(&h.ty);
        match &mut h.kind {
            HKind::Int(n) => {
                let n = *n;
                self.check_int(n, h);
            }
            HKind::Float(x) => {
                let x = *x;
                self.check_float(x, h);
            }
            HKind::DType(d) | HKind::DTypeFact(d, _) => *d = self.settle(*d),
            HKind::Call { cargs, .. } | HKind::Launch { cargs, .. } | HKind::FnRef(_, cargs) => {
                cargs.iter_mut().for_each(|(_, c)| *c = self.settle_cterm(c));
            }
            _ => {}
        }
        visit::children(h, &mut |e| self.zonk_expr(e));
    }

    pub fn zonk_block(&mut self, b: &mut HBlock) {
        visit::block(b, &mut |e| self.zonk_expr(e));
    }

    /// A finite float literal must not become infinite, and one that is not 0 must not become 0.
    fn check_float(&mut self, x: f64, h: &HExpr) {
        let Some(set) = self.dterm_of(&h.ty).and_then(|d| self.set_of(d)) else { return };
        let bad = set.iter().find(|m| {
            let becomes = Scalar::float(*m, x).as_f64();
            let lost = |y: f64| y.is_infinite() || y == 0.0 && x != 0.0;
            m.is_float() && x.is_finite() && becomes.is_some_and(lost)
        });
        if let Some(m) = bad {
            let what = match Scalar::float(m, x).as_f64() {
                Some(0.0) => format!("0 in `{m}`"),
                Some(_) | None => format!("an infinity of `{m}`"),
            };
            let d = Diagnostic::error(
                codes::LITERAL_RANGE,
                h.span,
                format!("{x:e} is out of range for `{m}`"),
                format!("it would become {what}"),
            );
            self.report(d);
        }
    }

    /// An integer literal must fit every type that it can have.
    fn check_int(&mut self, n: i128, h: &HExpr) {
        let Some(d) = self.dterm_of(&h.ty) else { return };
        let Some(set) = self.set_of(d) else { return };
        let bad = set.iter().find(|m| m.int_range().is_some_and(|(lo, hi)| n < lo || n > hi));
        if let Some(m) = bad {
            let (lo, hi) = m.int_range().unwrap_or((0, 0));
            let d = Diagnostic::error(
                codes::LITERAL_RANGE,
                h.span,
                format!("{n} is out of range for `{m}`"),
                format!("the range of `{m}` is {lo} to {hi}"),
            );
            self.report(d);
        }
    }
}
