//! Owns the end of a body: literal types get their final types, literals are checked against them.

use tk_ops::DType;
use tk_syntax::{Diagnostic, codes};

use super::cx::{Cx, Lit};
use crate::hir::{HArg, HBlock, HExpr, HIndex, HKind, HSlice, HStmt, HStmtKind, StaticIter};
use crate::types::{CTerm, DTerm, Elem, Ty};

impl Cx<'_, '_> {
    /// The final form of a term: literals that nothing fixed are i32 and f32.
    fn settle(&self, d: DTerm) -> DTerm {
        match (self.literal(d), d) {
            (Some(Lit::Int), _) => DTerm::Known(DType::I32),
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
            Ty::View { elem: e, rank, mutable, wide } => Ty::View { elem: elem(e), rank: *rank, mutable: *mutable, wide: *wide },
            Ty::Buffer { elem: e, shape } => Ty::Buffer { elem: elem(e), shape: shape.clone() },
            Ty::Option(t) => Ty::Option(Box::new(self.settle_ty(t))),
            Ty::Tuple(ts) => Ty::Tuple(ts.iter().map(|t| self.settle_ty(t)).collect()),
            Ty::Fn(ps, r) => Ty::Fn(ps.iter().map(|t| self.settle_ty(t)).collect(), Box::new(self.settle_ty(r))),
            Ty::Struct(id, args) => Ty::Struct(*id, args.iter().map(|a| self.settle_cterm(a)).collect()),
            Ty::Err | Ty::Unit | Ty::Never | Ty::DType | Ty::ShapeTy | Ty::Str => t.clone(),
        }
    }

    fn settle_elem(&self, e: &Elem) -> Elem {
        match e {
            Elem::Err => Elem::Err,
            Elem::D(d) => Elem::D(self.settle(*d)),
            Elem::Ptr { pointee, mutable } => Elem::Ptr { pointee: Box::new(self.settle_elem(pointee)), mutable: *mutable },
        }
    }

    fn settle_cterm(&self, c: &CTerm) -> CTerm {
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
            HKind::DType(d) | HKind::DTypeFact(d, _) => *d = self.settle(*d),
            HKind::Shape(es) | HKind::Tuple(es) | HKind::Struct(es) => es.iter_mut().for_each(|e| self.zonk_expr(e)),
            HKind::Field(e, _)
            | HKind::Cast(e)
            | HKind::Transpose(e)
            | HKind::ViewT(e)
            | HKind::ViewPtr(e)
            | HKind::Extent(e, _)
            | HKind::Stride(e, _) => self.zonk_expr(e),
            HKind::Builtin(_, args) => args.iter_mut().for_each(|a| self.zonk_arg(a)),
            HKind::ShortCircuit { lhs, rhs, .. } => {
                self.zonk_expr(lhs);
                self.zonk_expr(rhs);
            }
            HKind::Index(e, items) => {
                self.zonk_expr(e);
                for i in items {
                    match i {
                        HIndex::New | HIndex::Whole => {}
                        HIndex::Slice(a, b) => {
                            self.zonk_expr(a);
                            self.zonk_expr(b);
                        }
                        HIndex::At(a) => self.zonk_expr(a),
                    }
                }
            }
            HKind::SubView(e, items) => {
                self.zonk_expr(e);
                for i in items {
                    match i {
                        HSlice::Whole => {}
                        HSlice::Range(a, b) => a.iter_mut().chain(b).for_each(|x| self.zonk_expr(x)),
                        HSlice::At(a) => self.zonk_expr(a),
                    }
                }
            }
            HKind::Call { cargs, args, .. } | HKind::Launch { cargs, args, .. } => {
                cargs.iter_mut().for_each(|(_, c)| self.zonk_cterm(c));
                args.iter_mut().for_each(|a| self.zonk_expr(a));
            }
            HKind::CallValue { callee, args } => {
                self.zonk_expr(callee);
                args.iter_mut().for_each(|a| self.zonk_expr(a));
            }
            HKind::FnRef(_, cargs) => cargs.iter_mut().for_each(|(_, c)| self.zonk_cterm(c)),
            HKind::Lambda { body, .. } => self.zonk_expr(body),
            HKind::If { cond, then, els } => {
                self.zonk_expr(cond);
                self.zonk_block(then);
                els.iter_mut().for_each(|b| self.zonk_block(b));
            }
            HKind::IfLet { opt, then, els, .. } => {
                self.zonk_expr(opt);
                self.zonk_block(then);
                els.iter_mut().for_each(|b| self.zonk_block(b));
            }
            HKind::Block(b) => self.zonk_block(b),
            HKind::Return(e) => e.iter_mut().for_each(|e| self.zonk_expr(e)),
            HKind::Err
            | HKind::Float(_)
            | HKind::Bool(_)
            | HKind::Str(_)
            | HKind::None
            | HKind::Unit
            | HKind::Local(_)
            | HKind::CVar(_)
            | HKind::Const(_)
            | HKind::Target(_)
            | HKind::Device(_)
            | HKind::BuiltinRef(_) => {}
        }
    }

    fn zonk_cterm(&mut self, c: &mut CTerm) {
        match c {
            CTerm::Expr(e) => self.zonk_expr(e),
            other => *other = self.settle_cterm(other),
        }
    }

    fn zonk_arg(&mut self, a: &mut HArg) {
        match a {
            HArg::Expr(e) => self.zonk_expr(e),
            HArg::List(es) => es.iter_mut().for_each(|e| self.zonk_expr(e)),
            HArg::Default | HArg::Shape(_) | HArg::Word(_) => {}
        }
    }

    pub fn zonk_block(&mut self, b: &mut HBlock) {
        b.stmts.iter_mut().for_each(|s| self.zonk_stmt(s));
        b.tail.iter_mut().for_each(|e| self.zonk_expr(e));
    }

    fn zonk_stmt(&mut self, s: &mut HStmt) {
        match &mut s.kind {
            HStmtKind::Err | HStmtKind::Break | HStmtKind::Continue => {}
            HStmtKind::Let(_, init) => init.iter_mut().for_each(|e| self.zonk_expr(e)),
            HStmtKind::Assign { value, .. } => self.zonk_expr(value),
            HStmtKind::Expr(e) => self.zonk_expr(e),
            HStmtKind::For { lo, hi, step, options, body, .. } => {
                [lo, hi, step].into_iter().for_each(|e| self.zonk_expr(e));
                options.iter_mut().for_each(|(_, e)| self.zonk_expr(e));
                self.zonk_block(body);
            }
            HStmtKind::StaticFor { iter, body, .. } => {
                match iter {
                    StaticIter::Range(a, b, c) => [a, b, c].into_iter().for_each(|e| self.zonk_expr(e)),
                    StaticIter::List(es) => es.iter_mut().for_each(|e| self.zonk_expr(e)),
                }
                self.zonk_block(body);
            }
            HStmtKind::While { cond, body } => {
                self.zonk_expr(cond);
                self.zonk_block(body);
            }
            HStmtKind::Return(e) => e.iter_mut().for_each(|e| self.zonk_expr(e)),
            HStmtKind::AssertError { body, .. } => body.iter_mut().for_each(|b| self.zonk_block(b)),
        }
    }

    /// An integer literal must fit every type that it can have.
    fn check_int(&mut self, n: i128, h: &HExpr) {
        let Some(d) = self.dterm_of(&h.ty) else { return };
        let Some(set) = self.set_of(d) else { return };
        let bad = set.iter().find(|m| m.int_range().is_some_and(|(lo, hi)| n < lo || n > hi));
        if let Some(m) = bad {
            let (lo, hi) = m.int_range().unwrap_or((0, 0));
            let d = Diagnostic::error(codes::LITERAL_RANGE, h.span, format!("{n} does not fit `{m}`"), format!("`{m}` goes from {lo} to {hi}"));
            self.report(d);
        }
    }
}
