//! [`Val`], the lowered form of an expression: SSA values in the structure of its type, or a compile-time value; and
//! the merge of two values where control flow meets.
//!
//! Guarantees that a merge of equal values adds nothing.

use std::collections::BTreeMap;

use tk_ops::ElementwiseOp;
use tk_syntax::{Diagnostic, Span, codes};
use tk_tile::{Type, TypeId, ValueId, infer};

use super::{Lower, bug};
use crate::eval::{CTy, CVal, EvalResult};
use crate::hir::LocalId;

/// The variables of a function and what they hold.
pub(super) type Env = BTreeMap<LocalId, Val>;

/// The lowered form of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Val {
    /// No value.
    Unit,
    /// Control does not come here.
    Never,
    /// A variable that was declared and not assigned.
    Unset,
    /// A tile or a view.
    One(ValueId),
    /// An optional view; absence is known.
    Opt(Option<ValueId>),
    /// A tuple or struct.
    Tuple(Vec<Val>),
    /// A value that only the compiler knows: a function, an element type, a shape, text, a flag.
    Static(CVal),
}

/// A merged value before the instruction that merges exists.
pub(super) enum Merged {
    Keep(Val),
    /// Result number n of that instruction.
    Slot(usize),
    Opt(usize),
    Tuple(Vec<Merged>),
}

/// The values that an `if` yields on its two sides.
pub(super) struct Slots {
    /// Its condition: a flag that is true on the left and false on the right.
    pub cond: ValueId,
    pub left: Vec<ValueId>,
    pub right: Vec<ValueId>,
    pub types: Vec<TypeId>,
}

impl Merged {
    /// The value, now that the results exist.
    pub fn finish(self, results: &[ValueId]) -> Val {
        let at = |i: usize| results.get(i).copied();
        match self {
            Merged::Keep(v) => v,
            Merged::Slot(i) => at(i).map_or(Val::Unset, Val::One),
            Merged::Opt(i) => Val::Opt(at(i)),
            Merged::Tuple(items) => Val::Tuple(items.into_iter().map(|m| m.finish(results)).collect()),
        }
    }
}

impl CTy {
    /// Returns true if it contains an optional view, so that its values carry more than the type.
    pub(super) fn has_optional(&self) -> bool {
        match self {
            CTy::Option(_) | CTy::Absent => true,
            CTy::Tuple(items) => items.iter().any(CTy::has_optional),
            CTy::Unit | CTy::Never | CTy::One(_) | CTy::Static => false,
        }
    }

    /// The type of one value: its absent optional views are marked.
    pub(super) fn refined(&self, v: &Val) -> CTy {
        match (self, v) {
            (CTy::Option(_), Val::Opt(None)) => CTy::Absent,
            (CTy::Tuple(types), Val::Tuple(items)) => {
                CTy::Tuple(types.iter().zip(items).map(|(t, v)| t.refined(v)).collect())
            }
            (ty, _) => ty.clone(),
        }
    }
}

impl Val {
    /// The value as one that is known at compile time.
    pub fn known(&self) -> Option<CVal> {
        match self {
            Val::Static(v) => Some(v.clone()),
            Val::Opt(None) => Some(CVal::None),
            Val::Tuple(items) => items.iter().map(Val::known).collect::<Option<_>>().map(CVal::Tuple),
            Val::Unit => Some(CVal::Unit),
            Val::Never | Val::Unset | Val::One(_) | Val::Opt(Some(_)) => None,
        }
    }

    /// The presence of its optional views, in order.
    pub fn presence(&self, out: &mut Vec<bool>) {
        match self {
            Val::Opt(v) => out.push(v.is_some()),
            Val::Tuple(items) => items.iter().for_each(|i| i.presence(out)),
            Val::Unit | Val::Never | Val::Unset | Val::One(_) | Val::Static(_) => {}
        }
    }

    /// The SSA values in order.
    pub fn flatten(&self, out: &mut Vec<ValueId>) {
        match self {
            Val::One(v) | Val::Opt(Some(v)) => out.push(*v),
            Val::Tuple(items) => items.iter().for_each(|i| i.flatten(out)),
            Val::Unit | Val::Never | Val::Unset | Val::Opt(None) | Val::Static(_) => {}
        }
    }

    /// The same structure with other SSA values, taken from the front of `from`.
    pub fn refill(&self, from: &mut impl Iterator<Item = ValueId>) -> Val {
        match self {
            Val::One(v) => Val::One(from.next().unwrap_or(*v)),
            Val::Opt(Some(v)) => Val::Opt(Some(from.next().unwrap_or(*v))),
            Val::Tuple(items) => Val::Tuple(items.iter().map(|i| i.refill(from)).collect()),
            Val::Unit | Val::Never | Val::Unset | Val::Opt(None) | Val::Static(_) => self.clone(),
        }
    }
}

impl Lower<'_, '_> {
    /// The single SSA value of a tile or view.
    pub(super) fn one(&mut self, v: &Val, span: Span) -> EvalResult<ValueId> {
        match v {
            Val::One(v) | Val::Opt(Some(v)) => Ok(*v),
            // A scalar that only the compiler knew has been made a constant where its type was at hand.
            other => Err(bug(span, format!("one value is needed, not {other:?}"))),
        }
    }

    /// A value of a concrete type from SSA values in order.
    pub(super) fn unflatten(
        &mut self,
        ty: &CTy,
        from: &mut impl Iterator<Item = ValueId>,
        span: Span,
    ) -> EvalResult<Val> {
        let mut next = || from.next().ok_or_else(|| bug(span, "too few values for a type"));
        match ty {
            CTy::Unit | CTy::Never => Ok(Val::Unit),
            CTy::One(_) => Ok(Val::One(next()?)),
            CTy::Option(_) => Ok(Val::Opt(Some(next()?))),
            CTy::Absent => Ok(Val::Opt(None)),
            CTy::Tuple(items) => Ok(Val::Tuple(
                items.iter().map(|t| self.unflatten(t, from, span)).collect::<EvalResult<_>>()?,
            )),
            CTy::Static => {
                let message = "a value that only exists at compile time cannot be passed on at run time";
                Err(Box::new(Diagnostic::error(codes::NOT_CONST, span, message, "")))
            }
        }
    }

    /// The IR types of a concrete type in order.
    pub(super) fn flat_types(ty: &CTy, out: &mut Vec<Type>) {
        match ty {
            CTy::One(t) | CTy::Option(t) => out.push(t.clone()),
            CTy::Tuple(items) => items.iter().for_each(|t| Self::flat_types(t, out)),
            CTy::Unit | CTy::Never | CTy::Absent | CTy::Static => {}
        }
    }

    /// Any value of a type, for paths on which it is not read.
    pub(super) fn undef_of(&mut self, ty: &CTy) -> Val {
        match ty {
            CTy::One(t) => Val::One(self.b.undef(t.clone())),
            CTy::Option(t) => Val::Opt(Some(self.b.undef(t.clone()))),
            CTy::Tuple(items) => Val::Tuple(items.iter().map(|t| self.undef_of(t)).collect()),
            CTy::Absent => Val::Opt(None),
            CTy::Unit | CTy::Never | CTy::Static => Val::Unit,
        }
    }

    fn undef_like(&mut self, v: ValueId) -> ValueId {
        let ty = self.b.type_of(v).clone();
        self.b.undef(ty)
    }

    /// Merges what a place holds on two paths; constants that are needed for it go into the open block.
    pub(super) fn merge(&mut self, a: &Val, b: &Val, slots: &mut Slots, span: Span) -> EvalResult<Merged> {
        if a == b {
            return Ok(Merged::Keep(a.clone()));
        }
        match (a, b) {
            (Val::One(x), Val::One(y)) => self.slot(*x, *y, slots, span).map(Merged::Slot),
            (Val::Opt(Some(x)), Val::Opt(Some(y))) => self.slot(*x, *y, slots, span).map(Merged::Opt),
            (Val::Tuple(x), Val::Tuple(y)) if x.len() == y.len() => {
                let items = x.iter().zip(y).map(|(p, q)| self.merge(p, q, slots, span));
                Ok(Merged::Tuple(items.collect::<EvalResult<_>>()?))
            }
            // Where control does not come from, any value does.
            (Val::Never | Val::Unset, v) => {
                let other = self.undefs(v);
                self.merge(&other, v, slots, span)
            }
            (v, Val::Never | Val::Unset) => {
                let other = self.undefs(v);
                self.merge(v, &other, slots, span)
            }
            (Val::Unit, _) | (_, Val::Unit) => Ok(Merged::Keep(Val::Unit)),
            (Val::Static(CVal::Bool(true)), Val::Static(CVal::Bool(false))) => {
                Ok(Merged::Keep(Val::One(slots.cond)))
            }
            (Val::Static(CVal::Bool(false)), Val::Static(CVal::Bool(true))) => {
                let opposite = self.b.elementwise(ElementwiseOp::Not, &[slots.cond]);
                Ok(Merged::Keep(Val::One(opposite)))
            }
            (Val::Static(CVal::Bool(x)), Val::One(y)) => {
                let x = self.const_bool(*x);
                self.slot(x, *y, slots, span).map(Merged::Slot)
            }
            (Val::One(x), Val::Static(CVal::Bool(y))) => {
                let y = self.const_bool(*y);
                self.slot(*x, y, slots, span).map(Merged::Slot)
            }
            (Val::Static(_), _) | (_, Val::Static(_)) | (Val::Opt(_), _) | (_, Val::Opt(_)) => {
                let message =
                    "a value that must be known at compile time depends on a run-time condition here";
                Err(Box::new(Diagnostic::error(codes::NOT_CONST, span, message, "")))
            }
            (Val::Tuple(_), _) | (_, Val::Tuple(_)) => {
                Err(bug(span, format!("two paths give {a:?} and {b:?}")))
            }
        }
    }

    /// The structure of a value with undefined parts.
    fn undefs(&mut self, v: &Val) -> Val {
        match v {
            Val::One(x) => Val::One(self.undef_like(*x)),
            Val::Opt(Some(x)) => Val::Opt(Some(self.undef_like(*x))),
            Val::Tuple(items) => Val::Tuple(items.iter().map(|i| self.undefs(i)).collect()),
            // A flag that is set nowhere on that path is never read there.
            Val::Static(_) | Val::Opt(None) | Val::Unit | Val::Never | Val::Unset => v.clone(),
        }
    }

    fn slot(&mut self, x: ValueId, y: ValueId, slots: &mut Slots, span: Span) -> EvalResult<usize> {
        let (a, b) = (self.b.type_of(x).clone(), self.b.type_of(y).clone());
        let ty = if infer::serves(&a, &b) {
            b
        } else if infer::serves(&b, &a) {
            a
        } else {
            return Err(bug(span, format!("two paths give `{a}` and `{b}`")));
        };
        let ty = self.b.ty(ty);
        slots.left.push(x);
        slots.right.push(y);
        slots.types.push(ty);
        Ok(slots.types.len() - 1)
    }

    /// A compile-time value as constants of a concrete type.
    pub(super) fn constant(&mut self, v: &CVal, ty: &CTy, span: Span) -> EvalResult<Val> {
        match (ty, v) {
            (CTy::Unit | CTy::Never, _) => Ok(Val::Unit),
            (
                CTy::One(Type::Tile { elem: tk_tile::ElemType::Scalar(d), shape }),
                CVal::Int(_) | CVal::Float(_) | CVal::Bool(_),
            ) => match v.to_scalar(*d) {
                Some(s) => Ok(Val::One(self.b.constant(s, shape))),
                None => Err(bug(span, format!("{v} as `{d}`"))),
            },
            (CTy::One(Type::Tile { elem: tk_tile::ElemType::Scalar(d), shape }), CVal::Tuple(items)) => {
                self.table(items, *d, shape, span).map(Val::One)
            }
            (CTy::Tuple(tys), CVal::Tuple(vals)) if tys.len() == vals.len() => {
                let items = tys.iter().zip(vals).map(|(t, v)| self.constant(v, t, span));
                Ok(Val::Tuple(items.collect::<EvalResult<_>>()?))
            }
            (CTy::Tuple(tys), CVal::Shape(dims)) if tys.len() == dims.len() => {
                let items =
                    tys.iter().zip(dims).map(|(t, d)| self.constant(&CVal::Int((*d).into()), t, span));
                Ok(Val::Tuple(items.collect::<EvalResult<_>>()?))
            }
            (CTy::Option(_) | CTy::Absent, CVal::None) => Ok(Val::Opt(None)),
            (CTy::Static, v) => Ok(Val::Static(v.clone())),
            (CTy::One(_) | CTy::Option(_) | CTy::Absent | CTy::Tuple(_), v) => {
                Err(bug(span, format!("the compile-time value {v} has the type {ty:?}")))
            }
        }
    }
}
