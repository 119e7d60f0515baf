//! Lowers expressions, and decides which are compile-time values.

use tk_ops::{ElementwiseOp, Op};
use tk_syntax::{Span, codes};
use tk_tile::{Attrs, Type, ValueId, infer};

use super::flow::{K, Mode};
use super::value::Val;
use super::{Lower, bug};
use crate::eval::{CTy, CVal, EvalResult};
use crate::hir::{HExpr, HKind, LocalId};
use crate::types::Ty;

/// Steps for an expression whose value need not be known: enough for a formula, too few to be felt.
const WELCOME: u64 = 1000;

impl Lower<'_, '_> {
    /// Lowers an expression.
    pub(super) fn expr(&mut self, e: &HExpr) -> EvalResult<Val> {
        if let Some(v) = self.folded(e)? {
            return Ok(v);
        }
        let span = e.span;
        self.at(span);
        let v = match &e.kind {
            HKind::None => Val::Opt(None),
            HKind::Unit => Val::Unit,
            HKind::Local(id) => self.local(*id, span)?,
            HKind::Tuple(items) | HKind::Struct(items) => {
                Val::Tuple(items.iter().map(|i| self.expr(i)).collect::<EvalResult<_>>()?)
            }
            HKind::Field(base, i) => self.field(base, *i, e)?,
            HKind::Builtin(row, args) => self.builtin(row, args, e)?,
            HKind::ShortCircuit { or, lhs, rhs } => self.short_circuit(*or, lhs, rhs, span)?,
            HKind::Cast(x) => {
                let v = self.expr(x)?;
                self.cast(v, &e.ty, span)?
            }
            HKind::Index(x, at) => {
                let x = self.value(x)?;
                Val::One(self.index(x, at, span)?)
            }
            HKind::Transpose(x) => {
                let x = self.value(x)?;
                self.at(span);
                Val::One(self.b.permute(x, &[1, 0]))
            }
            HKind::SubView(x, at) => self.sub_view(x, at, e)?,
            HKind::ViewT(x) => self.view_transposed(x, span)?,
            HKind::ViewPtr(x) => self.view_ptr(x, e)?,
            HKind::Extent(x, axis) => self.view_extent(x, *axis, e)?,
            HKind::Stride(x, axis) => self.view_stride(x, *axis, span)?,
            HKind::Extents { view, strides } => self.view_extents(view, *strides, span)?,
            HKind::Entry(list, at) => self.entry(list, at, span)?,
            HKind::Call { callee, cargs, args } => {
                let cvars = self.eval(|ev| ev.cargs(cargs, span))?;
                let args = args.iter().map(|a| self.expr(a)).collect::<EvalResult<Vec<_>>>()?;
                self.call(*callee, cvars, args, span)?
            }
            HKind::CallValue { callee, args } => {
                let f = self.eval(|ev| ev.function(callee))?;
                let args = args.iter().map(|a| self.expr(a)).collect::<EvalResult<Vec<_>>>()?;
                self.apply(&f, args, span)?
            }
            HKind::Launch { kernel, cargs, args } => self.launch(*kernel, cargs, args, span)?,
            HKind::If { .. } | HKind::IfLet { .. } | HKind::Block(_) | HKind::Return(_) => {
                self.expr_k(e, &K::End, Mode::Nested)?
            }
            HKind::Device(fact) => {
                return Err(bug(span, format!("`device.{}` stands outside of a clause", fact.name())));
            }
            HKind::Err => return Err(bug(span, "a hole was left in a checked function")),
            HKind::Int(_)
            | HKind::Float(_)
            | HKind::Bool(_)
            | HKind::Str(_)
            | HKind::CVar(_)
            | HKind::Const(_)
            | HKind::Table(_)
            | HKind::DType(_)
            | HKind::DTypeFact(..)
            | HKind::Shape(_)
            | HKind::Target(_)
            | HKind::FnRef(..)
            | HKind::BuiltinRef(_)
            | HKind::Lambda { .. } => {
                let v = self.eval(|ev| ev.expr(e))?;
                self.known(&v, e)?
            }
        };
        Ok(v)
    }

    /// The value of a single number or compile-time value that is known although its kind does not show it.
    fn folded(&mut self, e: &HExpr) -> EvalResult<Option<Val>> {
        let single = match &e.ty {
            Ty::Tile { elem: crate::types::Elem::D(_), shape } => shape.is_scalar(),
            Ty::Fn(..) | Ty::DType | Ty::ShapeTy | Ty::Str => true,
            Ty::Unit
            | Ty::Never
            | Ty::Err
            | Ty::Tile { .. }
            | Ty::View { .. }
            | Ty::Option(_)
            | Ty::Buffer { .. }
            | Ty::Tuple(_)
            | Ty::List(..)
            | Ty::Struct(..) => false,
        };
        let v = if single { self.welcome(e)? } else { None };
        v.map(|v| self.known(&v, e)).transpose()
    }

    /// A compile-time value as constants of the type of its expression.
    fn known(&mut self, v: &CVal, e: &HExpr) -> EvalResult<Val> {
        let ty = self.ty(&e.ty, e.span)?;
        self.at(e.span);
        self.constant(v, &ty, e.span)
    }

    /// The compile-time value of an expression that was not requested: what overflows, or takes too long, does so at
    /// run time.
    pub(super) fn welcome(&mut self, e: &HExpr) -> EvalResult<Option<CVal>> {
        if !e.konst {
            return Ok(None);
        }
        match self.eval_up_to(Some(WELCOME), |ev| ev.expr(e)) {
            Err(d) if d.code == codes::CONST_EVAL => Ok(None),
            v => v.map(Some),
        }
    }

    /// Lowers an expression that is one tile or view.
    pub(super) fn value(&mut self, e: &HExpr) -> EvalResult<ValueId> {
        let v = self.expr(e)?;
        self.one(&v, e.span)
    }

    /// Lowers an expression that is a single number or bool.
    pub(super) fn scalar(&mut self, e: &HExpr) -> EvalResult<ValueId> {
        let v = self.value(e)?;
        let ty = self.b.type_of(v);
        if ty.shape() != Some(&[]) {
            return Err(bug(e.span, format!("a scalar is needed, not `{ty}`")));
        }
        Ok(v)
    }

    fn local(&mut self, id: LocalId, span: Span) -> EvalResult<Val> {
        match self.frame.env.get(&id) {
            Some(Val::Unset | Val::Never) => Err(bug(span, "a variable is read before it is assigned")),
            Some(v) => Ok(v.clone()),
            None => Err(bug(span, "a variable is not in scope")),
        }
    }

    /// An entry of a list at a position that is known here.
    fn entry(&mut self, list: &HExpr, at: &HExpr, span: Span) -> EvalResult<Val> {
        let at = self.eval(|ev| ev.int(at))?;
        match self.expr(list)? {
            Val::Tuple(items) => match usize::try_from(at).ok().and_then(|i| items.get(i)) {
                Some(v) => Ok(v.clone()),
                None => Err(crate::eval::no_entry(at, items.len(), span)),
            },
            other => Err(bug(span, format!("{other:?} has no entries"))),
        }
    }

    fn field(&mut self, base: &HExpr, i: u32, e: &HExpr) -> EvalResult<Val> {
        match self.expr(base)? {
            Val::Tuple(items) => match items.into_iter().nth(i as usize) {
                Some(v) => Ok(v),
                None => Err(bug(e.span, format!("there is no part {i}"))),
            },
            Val::Static(CVal::Shape(dims)) => match dims.get(i as usize) {
                Some(d) => {
                    let ty = self.ty(&e.ty, e.span)?;
                    self.constant(&CVal::Int((*d).into()), &ty, e.span)
                }
                None => Err(bug(e.span, format!("there is no extent {i}"))),
            },
            other => Err(bug(e.span, format!("{other:?} has no parts"))),
        }
    }

    fn short_circuit(&mut self, or: bool, lhs: &HExpr, rhs: &HExpr, span: Span) -> EvalResult<Val> {
        if let Some(CVal::Bool(first)) = self.welcome(lhs)? {
            return if first == or { Ok(Val::One(self.const_bool(or))) } else { self.expr(rhs) };
        }
        let c = self.scalar(lhs)?;
        let decided = |l: &mut Self| {
            l.at(span);
            Ok(Val::One(l.const_bool(or)))
        };
        let other = |l: &mut Self| l.expr(rhs);
        if or {
            self.branch(c, decided, other, Mode::Nested, span)
        } else {
            self.branch(c, other, decided, Mode::Nested, span)
        }
    }

    /// A conversion to the element type of `ty`; pointers and views only lose the right to be stored through.
    fn cast(&mut self, v: Val, ty: &Ty, span: Span) -> EvalResult<Val> {
        let to = match self.ty(ty, span)? {
            CTy::One(t) => t,
            CTy::Option(_) | CTy::Absent | CTy::Unit | CTy::Never | CTy::Static => return Ok(v),
            CTy::Tuple(_) => {
                return match (v, ty) {
                    (Val::Tuple(vals), Ty::Tuple(tys)) if vals.len() == tys.len() => {
                        let items = vals.into_iter().zip(tys).map(|(v, t)| self.cast(v, t, span));
                        Ok(Val::Tuple(items.collect::<EvalResult<_>>()?))
                    }
                    (v, _) => Ok(v),
                };
            }
        };
        let x = self.one(&v, span)?;
        let from = self.b.type_of(x).clone();
        self.at(span);
        match (&to, to.dtype()) {
            (Type::Tile { .. }, Some(d)) => Ok(Val::One(self.b.cast(x, d))),
            (Type::Tile { elem, .. }, None) => {
                let target = Type::Tile { elem: elem.clone(), shape: from.shape().unwrap_or(&[]).to_vec() };
                if infer::serves(&from, &target) {
                    return Ok(v);
                }
                let op = Op::Elementwise(ElementwiseOp::Cast);
                Ok(Val::One(self.b.one(op, &[x], Attrs::new(), target)))
            }
            (Type::View { .. }, _) => Ok(v),
        }
    }
}
