//! Device memory: pointers, views, boxes, single elements, atomics.

use tk_ops::{AtomicOp, DType, MemoryOp, Op, Scalar};
use tk_syntax::{Diagnostic, Span, codes};
use tk_tile::{Attr, Attrs, ElemType, Type, ValueId};

use super::args::Args;
use super::value::Val;
use super::{Lower, bug};
use crate::eval::{CTy, EvalResult};
use crate::hir::{HExpr, HSlice};

impl Lower<'_, '_> {
    pub(super) fn memory(&mut self, op: MemoryOp, a: &Args, want: &CTy) -> EvalResult<Val> {
        match op {
            MemoryOp::Load | MemoryOp::Store | MemoryOp::Prefetch => self.pointer_access(op, a),
            MemoryOp::View => self.make_view(a, want),
            MemoryOp::ViewLoad | MemoryOp::ViewStore | MemoryOp::ViewInside => self.box_access(op, a, want),
            MemoryOp::ViewGather | MemoryOp::ViewScatter => self.element_access(op, a),
            MemoryOp::ViewPermute => {
                let v = self.operand(a, "v")?;
                let rank = self.rank(v, a.span)?;
                let order = self.order(a, rank)?;
                self.permuted(v, order)
            }
            MemoryOp::PtrAdd
            | MemoryOp::ViewShape
            | MemoryOp::ViewStride
            | MemoryOp::ViewPtr
            | MemoryOp::ViewSlice => Err(bug(a.span, format!("`{}` is no call", op.name()))),
        }
    }

    /// `cache` and `evict`, as far as they are given.
    fn hints(a: &Args) -> Attrs {
        let mut attrs = Attrs::new();
        for name in ["cache", "evict"] {
            if let Some(w) = a.word(name) {
                attrs.set(name, Attr::Str(w.to_string()));
            }
        }
        attrs
    }

    fn pointee(&self, p: ValueId, span: Span) -> EvalResult<ElemType> {
        match self.b.type_of(p).elem() {
            ElemType::Ptr { pointee, .. } => Ok((**pointee).clone()),
            ElemType::Scalar(d) => Err(bug(span, format!("`{d}` is no pointer"))),
        }
    }

    fn pointer_access(&mut self, op: MemoryOp, a: &Args) -> EvalResult<Val> {
        let p = self.operand(a, "ptr")?;
        let value = self.opt_operand(a, "value")?;
        let mask = self.opt_operand(a, "mask")?;
        let other = self.opt_operand(a, "other")?;
        let given: Vec<ValueId> = [Some(p), value, mask, other].into_iter().flatten().collect();
        let shape = self.common_shape(&given, a.span)?;
        let mut operands = vec![self.broadcast(p, &shape, a.span)?];
        if let Some(v) = value {
            operands.push(self.broadcast(v, &shape, a.span)?);
        }
        if let Some(m) = mask {
            operands.push(self.broadcast(m, &shape, a.span)?);
            // Without a mask nothing is masked off, and `other` is nowhere.
            if let Some(o) = other {
                operands.push(self.broadcast(o, &shape, a.span)?);
            }
        }
        let attrs = Self::hints(a);
        if op == MemoryOp::Load {
            let ty = Type::Tile { elem: self.pointee(p, a.span)?, shape };
            return Ok(Val::One(self.b.one(Op::Memory(op), &operands, attrs, ty)));
        }
        self.b.inst(Op::Memory(op), &operands, attrs, &[]);
        Ok(Val::Unit)
    }

    fn make_view(&mut self, a: &Args, want: &CTy) -> EvalResult<Val> {
        let CTy::One(ty @ Type::View { wide, .. }) = want else {
            return Err(bug(a.span, format!("a view has the type {want:?}")));
        };
        let extent = if *wide { DType::I64 } else { DType::I32 };
        let mut operands = vec![self.operand(a, "ptr")?];
        for (name, d) in [("shape", extent), ("strides", DType::I64)] {
            for x in self.operands(a, name)? {
                operands.push(self.b.cast(x, d));
            }
        }
        Ok(Val::One(self.b.one(Op::Memory(MemoryOp::View), &operands, Attrs::new(), ty.clone())))
    }

    fn box_access(&mut self, op: MemoryOp, a: &Args, want: &CTy) -> EvalResult<Val> {
        let mut operands = vec![self.operand(a, "v")?];
        operands.extend(self.operands(a, "at")?);
        let attrs = Self::hints(a);
        if op == MemoryOp::ViewStore {
            operands.push(self.operand(a, "value")?);
            self.b.inst(Op::Memory(op), &operands, attrs, &[]);
            return Ok(Val::Unit);
        }
        let CTy::One(ty) = want else { return Err(bug(a.span, format!("a box has the type {want:?}"))) };
        if let Some(other) = self.opt_operand(a, "other")? {
            operands.push(self.broadcast(other, ty.shape().unwrap_or(&[]), a.span)?);
        }
        Ok(Val::One(self.b.one(Op::Memory(op), &operands, attrs, ty.clone())))
    }

    /// The positions and further operands at one shape.
    fn at_one_shape(
        &mut self,
        at: &[ValueId],
        more: &[Option<ValueId>],
        span: Span,
    ) -> EvalResult<(Vec<ValueId>, Vec<u32>)> {
        let given: Vec<ValueId> = at.iter().copied().chain(more.iter().flatten().copied()).collect();
        let shape = self.common_shape(&given, span)?;
        let at = at.iter().map(|x| self.broadcast(*x, &shape, span)).collect::<EvalResult<_>>()?;
        Ok((at, shape))
    }

    fn element_access(&mut self, op: MemoryOp, a: &Args) -> EvalResult<Val> {
        let v = self.operand(a, "v")?;
        let elem = self.b.type_of(v).elem().clone();
        let at = self.operands(a, "at")?;
        let (value, mask) = (self.opt_operand(a, "value")?, self.opt_operand(a, "mask")?);
        let other = self.opt_operand(a, "other")?;
        let (at, shape) = self.at_one_shape(&at, &[value, mask, other], a.span)?;
        let mut operands = vec![v];
        operands.extend(at);
        if let Some(x) = value {
            operands.push(self.broadcast(x, &shape, a.span)?);
        }
        operands.push(match mask {
            Some(m) => self.broadcast(m, &shape, a.span)?,
            None => self.b.constant(Scalar::bool(true), &shape),
        });
        if op == MemoryOp::ViewScatter {
            self.b.inst(Op::Memory(op), &operands, Self::hints(a), &[]);
            return Ok(Val::Unit);
        }
        operands.push(match (other, &elem) {
            (Some(o), _) => self.broadcast(o, &shape, a.span)?,
            (None, ElemType::Scalar(d)) => self.b.constant(Scalar::zero(*d), &shape),
            (None, ElemType::Ptr { .. }) => {
                self.b.undef(Type::Tile { elem: elem.clone(), shape: shape.clone() })
            }
        });
        let ty = Type::Tile { elem, shape };
        Ok(Val::One(self.b.one(Op::Memory(op), &operands, Self::hints(a), ty)))
    }

    pub(super) fn atomic(&mut self, op: AtomicOp, a: &Args, want: &CTy) -> EvalResult<Val> {
        let (mut operands, at) = match self.opt_operand(a, "v")? {
            Some(v) => (vec![v], self.operands(a, "at")?),
            None => (vec![], vec![self.operand(a, "ptr")?]),
        };
        let mut more = vec![];
        for name in ["compare", "value", "mask", "other"] {
            more.push(self.opt_operand(a, name)?);
        }
        // Without a mask nothing is masked off, and `other` is nowhere.
        if let [_, _, None, other] = more.as_mut_slice() {
            *other = None;
        }
        let (at, shape) = self.at_one_shape(&at, &more, a.span)?;
        operands.extend(at);
        for x in more.into_iter().flatten() {
            operands.push(self.broadcast(x, &shape, a.span)?);
        }
        let mut attrs = Attrs::new();
        for name in ["order", "scope"] {
            if let Some(w) = a.word(name) {
                attrs.set(name, Attr::Str(w.to_string()));
            }
        }
        match want {
            CTy::One(ty) => Ok(Val::One(self.b.one(Op::Atomic(op), &operands, attrs, ty.clone()))),
            CTy::Unit | CTy::Never | CTy::Option(_) | CTy::Absent | CTy::Tuple(_) | CTy::Static => {
                self.b.inst(Op::Atomic(op), &operands, attrs, &[]);
                Ok(Val::Unit)
            }
        }
    }

    fn rank(&self, v: ValueId, span: Span) -> EvalResult<usize> {
        match self.b.type_of(v) {
            Type::View { rank, .. } => Ok(*rank as usize),
            Type::Tile { .. } => Err(bug(span, "a tile stands for a view")),
        }
    }

    fn permuted(&mut self, v: ValueId, order: Vec<i64>) -> EvalResult<Val> {
        let ty = self.b.type_of(v).clone();
        let attrs = Attrs::new().with("perm", Attr::Ints(order));
        Ok(Val::One(self.b.one(Op::Memory(MemoryOp::ViewPermute), &[v], attrs, ty)))
    }

    /// `v.T`
    pub(super) fn view_transposed(&mut self, x: &HExpr, span: Span) -> EvalResult<Val> {
        let v = self.value(x)?;
        let rank = self.rank(v, span)? as i64;
        self.at(span);
        self.permuted(v, (0..rank).rev().collect())
    }

    /// `v.ptr`
    pub(super) fn view_ptr(&mut self, x: &HExpr, e: &HExpr) -> EvalResult<Val> {
        let v = self.value(x)?;
        let want = self.ty(&e.ty, e.span)?;
        let ty = self.wanted(&want, e)?.clone();
        self.at(e.span);
        Ok(Val::One(self.b.one(Op::Memory(MemoryOp::ViewPtr), &[v], Attrs::new(), ty)))
    }

    /// `v.shape[axis]`; the extents of tiles and buffers are known.
    pub(super) fn view_extent(&mut self, x: &HExpr, axis: u32, e: &HExpr) -> EvalResult<Val> {
        use crate::types::Ty;
        let want = self.ty(&e.ty, e.span)?;
        if matches!(x.ty, Ty::Tile { .. } | Ty::Buffer { .. }) {
            let v = self.eval(|ev| ev.extent(x, axis, e.span))?;
            self.at(e.span);
            return self.constant(&v, &want, e.span);
        }
        let v = self.value(x)?;
        self.at(e.span);
        let attrs = Attrs::new().with("axis", Attr::Int(axis.into()));
        let ty = self.wanted(&want, e)?.clone();
        Ok(Val::One(self.b.one(Op::Memory(MemoryOp::ViewShape), &[v], attrs, ty)))
    }

    /// `v.strides[axis]`
    pub(super) fn view_stride(&mut self, x: &HExpr, axis: u32, span: Span) -> EvalResult<Val> {
        let v = self.value(x)?;
        self.at(span);
        Ok(Val::One(self.view_fact(MemoryOp::ViewStride, v, axis, DType::I64)))
    }

    /// `v.shape` or `v.strides` as a whole.
    pub(super) fn view_extents(&mut self, x: &HExpr, strides: bool, span: Span) -> EvalResult<Val> {
        let v = self.value(x)?;
        let (rank, wide) = match self.b.type_of(v) {
            Type::View { rank, wide, .. } => (*rank, *wide),
            Type::Tile { .. } => return Err(bug(span, "a tile stands for a view")),
        };
        self.at(span);
        let (op, d) = match strides {
            true => (MemoryOp::ViewStride, DType::I64),
            false => (MemoryOp::ViewShape, if wide { DType::I64 } else { DType::I32 }),
        };
        Ok(Val::Tuple((0..rank).map(|axis| Val::One(self.view_fact(op, v, axis, d))).collect()))
    }

    fn view_fact(&mut self, op: MemoryOp, v: ValueId, axis: u32, d: DType) -> ValueId {
        let attrs = Attrs::new().with("axis", Attr::Int(axis.into()));
        self.b.one(Op::Memory(op), &[v], attrs, Type::scalar(d))
    }

    /// `v[i, a:b, :]`
    pub(super) fn sub_view(&mut self, x: &HExpr, at: &[HSlice], e: &HExpr) -> EvalResult<Val> {
        let v = self.value(x)?;
        let want = self.ty(&e.ty, e.span)?;
        let mut ty = self.wanted(&want, e)?.clone();
        let (rank, wide, source) = match self.b.type_of(v) {
            Type::View { rank, wide, mutable, .. } => (*rank, *wide, *mutable),
            Type::Tile { .. } => return Err(bug(e.span, "a tile stands for a view")),
        };
        if let Type::View { mutable, .. } = &mut ty {
            *mutable &= source;
        }
        // Only what is generic over the rank can have more of them than dimensions.
        if at.len() > rank as usize {
            return Err(crate::eval::no_entry(at.len() as i128 - 1, rank as usize, e.span));
        }
        let position = if wide { DType::I64 } else { DType::I32 };
        let (mut axes, mut operands) = (vec![], vec![v]);
        for (axis, s) in (0..rank).zip(at.iter().chain(std::iter::repeat(&HSlice::Whole))) {
            match s {
                HSlice::Whole | HSlice::Range(None, None) => axes.push(1),
                HSlice::At(i) => {
                    axes.push(0);
                    operands.push(self.value(i)?);
                }
                HSlice::Range(lo, hi) => {
                    axes.push(2);
                    operands.push(match lo {
                        Some(lo) => self.slice_end(lo)?,
                        None => {
                            self.at(e.span);
                            self.b.const_int(position, 0)
                        }
                    });
                    operands.push(match hi {
                        Some(hi) => self.slice_end(hi)?,
                        None => {
                            self.at(e.span);
                            self.view_fact(MemoryOp::ViewShape, v, axis, position)
                        }
                    });
                }
            }
        }
        self.at(e.span);
        let attrs = Attrs::new().with("axes", Attr::Ints(axes));
        Ok(Val::One(self.b.one(Op::Memory(MemoryOp::ViewSlice), &operands, attrs, ty)))
    }

    /// The begin or the end of a part of a view. A compile-time one is not negative: it would be taken for 0.
    fn slice_end(&mut self, e: &HExpr) -> EvalResult<ValueId> {
        if let Some(n) = self.welcome(e)?.and_then(|v| v.as_int()).filter(|n| *n < 0) {
            let message = format!("positions in a view count from 0, not from the end; this one is {n}");
            return Err(Box::new(Diagnostic::error(codes::INDEX, e.span, message, "a negative position")));
        }
        self.value(e)
    }
}
