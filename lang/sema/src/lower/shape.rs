//! Rearrangements of tiles: the rows of the shape class and indexing.

use tk_ops::{Op, ShapeOp};
use tk_syntax::{Diagnostic, Span, codes};
use tk_tile::{Attr, Attrs, Type, ValueId, infer};

use super::args::Args;
use super::value::Val;
use super::{Lower, bug};
use crate::eval::{CTy, EvalResult};
use crate::hir::{HExpr, HIndex};

impl Lower<'_, '_> {
    pub(super) fn shape_op(&mut self, op: ShapeOp, a: &Args, want: &CTy) -> EvalResult<Val> {
        let op_ = Op::Shape(op);
        if op == ShapeOp::Split {
            let x = self.operand(a, "x")?;
            let mut types = vec![];
            Self::flat_types(want, &mut types);
            let types: Vec<_> = types.into_iter().map(|t| self.b.ty(t)).collect();
            let results = self.b.inst(op_, &[x], Attrs::new(), &types);
            return self.unflatten(want, &mut results.into_iter(), a.span);
        }
        let CTy::One(ty) = want else { return Err(bug(a.span, format!("`{}` gives {want:?}", a.row.name))) };
        let shape = ty.shape().unwrap_or(&[]);
        match op {
            ShapeOp::Reshape => {
                let x = self.operand(a, "x")?;
                let from = self.b.type_of(x);
                let (n, m) = (from.count(), ty.count());
                if n != m {
                    let from = from.shape().unwrap_or(&[]);
                    let message = format!("the shape {from:?} has {n} elements, the shape {shape:?} has {m}");
                    return Err(Box::new(Diagnostic::error(codes::INSTANCE, a.span, message, "")));
                }
                Ok(Val::One(self.b.reshape(x, shape)))
            }
            ShapeOp::Permute => {
                let x = self.operand(a, "x")?;
                let rank = self.b.type_of(x).shape().map_or(0, <[u32]>::len);
                let order = self.order(a, rank)?;
                Ok(Val::One(self.b.permute(x, &order)))
            }
            ShapeOp::Broadcast => {
                let x = self.operand(a, "x")?;
                self.broadcast(x, shape, a.span).map(Val::One)
            }
            ShapeOp::Flip | ShapeOp::Cat => {
                let axis = a.axis("axis", shape.len())?.unwrap_or(0);
                let xs = if op == ShapeOp::Cat {
                    vec![self.operand(a, "a")?, self.operand(a, "b")?]
                } else {
                    vec![self.operand(a, "x")?]
                };
                let attrs = Attrs::new().with("axis", Attr::Int(axis as i64));
                Ok(Val::One(self.b.one(op_, &xs, attrs, ty.clone())))
            }
            ShapeOp::Join | ShapeOp::Interleave => {
                let xs = [self.operand(a, "a")?, self.operand(a, "b")?];
                let common = self.common_shape(&xs, a.span)?;
                let xs = xs
                    .into_iter()
                    .map(|x| self.broadcast(x, &common, a.span))
                    .collect::<EvalResult<Vec<_>>>()?;
                Ok(Val::One(self.b.one(op_, &xs, Attrs::new(), ty.clone())))
            }
            ShapeOp::Slice | ShapeOp::Split => Err(bug(a.span, "a slice is no builtin")),
        }
    }

    /// A written order of axes, checked.
    pub(super) fn order(&mut self, a: &Args, rank: usize) -> EvalResult<Vec<i64>> {
        let order = a.ints("order")?;
        if !infer::is_permutation(&order, rank) {
            let message = format!("{order:?} is no order of the {rank} axes 0 to {}", rank.saturating_sub(1));
            return Err(Box::new(Diagnostic::error(codes::AXIS, a.span, message, "")));
        }
        Ok(order)
    }

    /// `x[:, None, 2, a:b]`: a slice, then a reshape.
    pub(super) fn index(&mut self, x: ValueId, at: &[HIndex], span: Span) -> EvalResult<ValueId> {
        let from = self.b.type_of(x).shape().unwrap_or(&[]).to_vec();
        let mut dims = from.iter().copied();
        let (mut starts, mut extents, mut out) = (vec![], vec![], vec![]);
        for i in at {
            if *i == HIndex::New {
                out.push(1);
                continue;
            }
            let Some(d) = dims.next() else { return Err(bug(span, "more indices than dimensions")) };
            let (start, extent, kept) = match i {
                HIndex::New | HIndex::Whole => (0, d, true),
                HIndex::Slice(lo, hi) => {
                    let (lo, hi) = (self.eval(|ev| ev.int(lo))?, self.eval(|ev| ev.int(hi))?);
                    let n = u32::try_from(hi - lo).unwrap_or(0);
                    if lo < 0 || hi > i128::from(d) || n == 0 {
                        return Err(outside(span, format!("the slice {lo}:{hi}"), d));
                    }
                    (lo as i64, n, true)
                }
                HIndex::At(i) => {
                    let i = self.eval(|ev| ev.int(i))?;
                    if i < 0 || i >= i128::from(d) {
                        return Err(outside(span, format!("the index {i}"), d));
                    }
                    (i as i64, 1, false)
                }
            };
            starts.push(start);
            extents.push(extent);
            if kept {
                out.push(extent);
            }
        }
        for d in dims {
            starts.push(0);
            extents.push(d);
            out.push(d);
        }
        self.at(span);
        let x = if extents == from {
            x
        } else {
            let ty = infer::with_shape(self.b.type_of(x), &extents);
            self.b.one(Op::Shape(ShapeOp::Slice), &[x], Attrs::new().with("starts", Attr::Ints(starts)), ty)
        };
        Ok(self.b.reshape(x, &out))
    }

    /// The tile type that an expression wants.
    pub(super) fn wanted<'t>(&self, want: &'t CTy, e: &HExpr) -> EvalResult<&'t Type> {
        match want {
            CTy::One(t) => Ok(t),
            other => Err(bug(e.span, format!("a tile has the type {other:?}"))),
        }
    }
}

fn outside(span: Span, what: String, extent: u32) -> Box<Diagnostic> {
    let message = format!("{what} is out of bounds for extent {extent}");
    Box::new(Diagnostic::error(codes::INSTANCE, span, message, ""))
}
