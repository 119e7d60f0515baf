//! Reductions, scans, sorting and counting.

use tk_ops::{ElementwiseOp, Op, ReduceOp, ScanOp};
use tk_tile::{Attr, Attrs, Type, TypeId, ValueId, infer};

use super::Lower;
use super::args::Args;
use super::bug;
use super::value::Val;
use crate::eval::{CTy, EvalResult, FnVal};
use tk_syntax::{Diagnostic, Span, codes};

impl Lower<'_, '_> {
    pub(super) fn reduce(&mut self, op: ReduceOp, a: &Args, want: &CTy) -> EvalResult<Val> {
        let x = a.val("x")?;
        let mut xs = vec![];
        x.flatten(&mut xs);
        let from = self.common_shape(&xs, a.span)?;
        // Without an axis all elements are one row.
        let (axis, shape) = match a.axis("axis", from.len())? {
            Some(axis) => (axis, from.clone()),
            None => (0, vec![from.iter().product()]),
        };
        let xs: Vec<ValueId> = xs.into_iter().map(|x| self.b.reshape(x, &shape)).collect();
        let mut rest = shape;
        rest.remove(axis);
        let mut types = vec![];
        for x in &xs {
            let from = infer::with_shape(self.b.type_of(*x), &rest);
            let ty = match from.dtype() {
                Some(d) => Type::tile(op.result().of(d), &rest),
                None => from,
            };
            types.push(ty);
        }
        let Some(first) = types.first() else { return Err(bug(a.span, "a reduction of nothing")) };
        let mut attrs = self.fast(a, first);
        attrs.set("axis", Attr::Int(axis as i64));
        let types: Vec<TypeId> = types.into_iter().map(|t| self.b.ty(t)).collect();
        let results = if op == ReduceOp::Custom {
            if a.flag("ordered") {
                attrs.set("ordered", Attr::Bool(true));
            }
            let block = self.combine(&a.function("combine")?, &x, &xs, a.span)?;
            self.b.inst_with(Op::Reduce(op), &xs, attrs, vec![block], &types)
        } else {
            self.b.inst(Op::Reduce(op), &xs, attrs, &types)
        };
        // `keep` leaves dimensions of 1, which the wanted types say.
        let mut wanted = vec![];
        Self::flat_types(want, &mut wanted);
        let mut out = vec![];
        for (i, v) in results.into_iter().enumerate() {
            let shape = wanted.get(i).and_then(Type::shape).map_or_else(|| rest.clone(), <[u32]>::to_vec);
            if shape.iter().product::<u32>() != rest.iter().product::<u32>() {
                return Err(bug(a.span, format!("a reduction to {rest:?} should give {shape:?}")));
            }
            out.push(self.b.reshape(v, &shape));
        }
        Ok(x.refill(&mut out.into_iter()))
    }

    /// `max` or `min` with `return_indices`: the element, and the position that `argmax` or `argmin` gives.
    pub(super) fn with_position(&mut self, op: ReduceOp, a: &Args, want: &CTy) -> EvalResult<Val> {
        let position = match op {
            ReduceOp::Max => ReduceOp::ArgMax,
            ReduceOp::Min => ReduceOp::ArgMin,
            ReduceOp::Sum
            | ReduceOp::Prod
            | ReduceOp::ArgMax
            | ReduceOp::ArgMin
            | ReduceOp::Any
            | ReduceOp::All
            | ReduceOp::XorSum
            | ReduceOp::Or
            | ReduceOp::Custom => return Err(bug(a.span, format!("`{}` has no position", a.row.name))),
        };
        let CTy::Tuple(parts) = want else { return Err(bug(a.span, format!("positions in {want:?}"))) };
        let [value, at] = parts.as_slice() else { return Err(bug(a.span, format!("a pair is {want:?}"))) };
        Ok(Val::Tuple(vec![self.reduce(op, a, value)?, self.reduce(position, a, at)?]))
    }

    /// `softmax(x, axis)` in the type in which sums of `x` are kept.
    pub(super) fn softmax(&mut self, a: &Args, want: &CTy) -> EvalResult<Val> {
        let x = self.operand(a, "x")?;
        let ty = self.b.type_of(x).clone();
        let shape = ty.shape().unwrap_or_default().to_vec();
        let axis = a.axis("axis", shape.len())?.or(shape.len().checked_sub(1));
        let Some(axis) = axis else {
            let message = "`softmax` works on tiles, and a scalar has no axis";
            return Err(Box::new(Diagnostic::error(codes::AXIS, a.span, message, "")));
        };
        let Some(d) = ty.dtype() else { return Err(bug(a.span, format!("`softmax` gives {want:?}"))) };
        let x = self.b.cast(x, d.acc());
        let largest = self.folded_line(ReduceOp::Max, x, axis, a);
        let below = self.b.elementwise(ElementwiseOp::Sub, &[x, largest]);
        let ty = self.b.type_of(below).clone();
        let attrs = self.fast(a, &ty);
        let parts = self.b.one(Op::Elementwise(ElementwiseOp::Exp), &[below], attrs, ty);
        let total = self.folded_line(ReduceOp::Sum, parts, axis, a);
        let quotient = self.b.elementwise(ElementwiseOp::Div, &[parts, total]);
        Ok(Val::One(self.b.cast(quotient, d)))
    }

    /// A tile folded along an axis, as a tile of the same shape.
    fn folded_line(&mut self, op: ReduceOp, x: ValueId, axis: usize, a: &Args) -> ValueId {
        let shape = self.b.type_of(x).shape().unwrap_or_default().to_vec();
        let (mut rest, mut kept) = (shape.clone(), shape.clone());
        rest.remove(axis);
        if let Some(n) = kept.get_mut(axis) {
            *n = 1;
        }
        let ty = infer::with_shape(self.b.type_of(x), &rest);
        let attrs = self.fast(a, &ty).with("axis", Attr::Int(axis as i64));
        let folded = self.b.one(Op::Reduce(op), &[x], attrs, ty);
        let folded = self.b.reshape(folded, &kept);
        self.b.broadcast(folded, &shape)
    }

    /// The block `combine(a.., b..)` of a user function over values of the structure of `x`.
    fn combine(&mut self, f: &FnVal, x: &Val, xs: &[ValueId], span: Span) -> EvalResult<tk_tile::BlockId> {
        let one: Vec<TypeId> = xs.iter().map(|x| self.element_type(*x)).collect();
        let both: Vec<TypeId> = one.iter().chain(&one).copied().collect();
        let mut args = self.enter(span, &both)?.into_iter();
        let (l, r) = (x.refill(&mut args), x.refill(&mut args));
        let v = self.apply(f, vec![l, r], span)?;
        let mut out = vec![];
        v.flatten(&mut out);
        if out.len() != xs.len() {
            return Err(bug(span, format!("a combination of {} values gives {}", xs.len(), out.len())));
        }
        self.at(span);
        self.b.yield_(&out);
        Ok(self.leave())
    }

    pub(super) fn scan(&mut self, op: ScanOp, a: &Args, want: &CTy) -> EvalResult<Val> {
        match op {
            ScanOp::CumSum | ScanOp::CumProd | ScanOp::Custom => self.running(op, a),
            ScanOp::Sort => self.sort(a, want),
            ScanOp::TopK => {
                let (x, k) = (self.operand(a, "x")?, a.need_int("k")?);
                let len = self.b.type_of(x).shape().and_then(|s| s.last()).copied().unwrap_or(0);
                if !(1..=i64::from(len)).contains(&k) {
                    let message = format!("`topk` needs {k} elements, but the last dimension has {len}");
                    return Err(Box::new(Diagnostic::error(codes::INSTANCE, a.span, message, "")));
                }
                let attrs = Attrs::new().with("k", Attr::Int(k));
                self.several(op, &[x], attrs, want, a.span)
            }
            ScanOp::Histogram => {
                let mut xs = vec![self.operand(a, "x")?];
                if let Some(m) = self.opt_operand(a, "mask")? {
                    xs.push(m);
                }
                let shape = self.common_shape(&xs, a.span)?;
                let xs = xs
                    .into_iter()
                    .map(|x| self.broadcast(x, &shape, a.span))
                    .collect::<EvalResult<Vec<_>>>()?;
                let attrs = Attrs::new().with("bins", Attr::Int(a.need_int("bins")?));
                self.several(op, &xs, attrs, want, a.span)
            }
            ScanOp::Gather => {
                let (x, at) = (self.operand(a, "x")?, self.operand(a, "index")?);
                let rank = self.b.type_of(x).shape().map_or(0, <[u32]>::len);
                let axis = a.axis("axis", rank)?.unwrap_or(0);
                let attrs = Attrs::new().with("axis", Attr::Int(axis as i64));
                if rank != 1 {
                    return self.several(op, &[x, at], attrs, want, a.span);
                }
                // From a tile of rank 1 the index may have any shape.
                let shape = self.b.type_of(at).shape().unwrap_or_default().to_vec();
                let flat = self.b.reshape(at, &[shape.iter().product()]);
                let ty = infer::with_shape(self.b.type_of(x), &[shape.iter().product()]);
                let ty = self.b.ty(ty);
                let results = self.b.inst(Op::Scan(op), &[x, flat], attrs, &[ty]);
                let Some(found) = results.first() else { return Err(bug(a.span, "`gather` gives nothing")) };
                Ok(Val::One(self.b.reshape(*found, &shape)))
            }
        }
    }

    fn several(
        &mut self,
        op: ScanOp,
        xs: &[ValueId],
        attrs: Attrs,
        want: &CTy,
        span: Span,
    ) -> EvalResult<Val> {
        let mut types = vec![];
        Self::flat_types(want, &mut types);
        let types: Vec<TypeId> = types.into_iter().map(|t| self.b.ty(t)).collect();
        let results = self.b.inst(Op::Scan(op), xs, attrs, &types);
        self.unflatten(want, &mut results.into_iter(), span)
    }

    fn running(&mut self, op: ScanOp, a: &Args) -> EvalResult<Val> {
        let x = a.val("x")?;
        let mut xs = vec![];
        x.flatten(&mut xs);
        let shape = self.common_shape(&xs, a.span)?;
        let xs: Vec<ValueId> =
            xs.into_iter().map(|x| self.broadcast(x, &shape, a.span)).collect::<EvalResult<_>>()?;
        let Some(first) = xs.first().map(|x| self.b.type_of(*x).clone()) else {
            return Err(bug(a.span, "a scan of nothing"));
        };
        let mut attrs = self.fast(a, &first);
        attrs.set("axis", Attr::Int(a.axis_at(a.need_int("axis")?, shape.len())? as i64));
        if a.flag("reverse") {
            attrs.set("reverse", Attr::Bool(true));
        }
        let types: Vec<TypeId> = xs.iter().map(|x| self.b.func.ty(*x)).collect();
        let blocks = if op == ScanOp::Custom {
            vec![self.combine(&a.function("combine")?, &x, &xs, a.span)?]
        } else {
            vec![]
        };
        let results = self.b.inst_with(Op::Scan(op), &xs, attrs, blocks, &types);
        Ok(x.refill(&mut results.into_iter()))
    }

    /// The last axis unless another is given; with values, a pair.
    fn sort(&mut self, a: &Args, want: &CTy) -> EvalResult<Val> {
        let mut xs = vec![self.operand(a, "keys")?];
        xs.extend(self.opt_operand(a, "values")?);
        let shape = self.common_shape(&xs, a.span)?;
        let axis = a.axis("axis", shape.len())?.unwrap_or(shape.len().saturating_sub(1));
        let mut attrs = Attrs::new().with("axis", Attr::Int(axis as i64));
        if a.flag("descending") {
            attrs.set("descending", Attr::Bool(true));
        }
        self.several(ScanOp::Sort, &xs, attrs, want, a.span)
    }
}
