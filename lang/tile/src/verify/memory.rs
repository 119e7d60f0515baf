//! V08 to V11 and V16 of the operations on device memory.
//!
//! Requires V05, and V09 where it does not depend on types. Guarantees that memory is written only through `mut`.

use tk_ops::{AtomicOp, DType, DTypeSet, MemoryOp};

use crate::infer;
use crate::ir::{ElemType, Type};
use crate::verify::Invariant::{V08, V09, V10, V11, V16};
use crate::verify::ops::{Cx, Tile, is_dtype, same_shape, serves, within};
use crate::verify::{Check, Fault, ensure, fault};

/// A view type taken apart.
#[derive(Clone, Copy)]
struct View<'a> {
    elem: &'a ElemType,
    rank: usize,
    mutable: bool,
    wide: bool,
}

impl View<'_> {
    /// The type of extents.
    fn extent(&self) -> DType {
        if self.wide { DType::I64 } else { DType::I32 }
    }
}

fn view(ty: &Type) -> Result<View<'_>, Fault> {
    match ty {
        Type::View { elem, rank, mutable, wide } => {
            Ok(View { elem, rank: *rank as usize, mutable: *mutable, wide: *wide })
        }
        Type::Tile { .. } => fault(V11, format!("expected a view, found `{ty}`")),
    }
}

/// A tile of pointers taken apart: what they point to, and whether it may be written.
fn pointers(t: Tile<'_>) -> Result<(&ElemType, bool), Fault> {
    match t.elem {
        ElemType::Ptr { pointee, mutable } => Ok((pointee, *mutable)),
        ElemType::Scalar(d) => fault(V11, format!("expected a pointer, found `{d}`")),
    }
}

fn writable(mutable: bool) -> Check {
    ensure(mutable, V16, || "cannot write through a pointer or view without `mut`".into())
}

/// Operands from `first` on are integer scalars; `wanted` says of which type.
fn scalars(cx: Cx<'_>, first: usize, n: usize, wanted: DTypeSet) -> Check {
    for i in first..first + n {
        let x = cx.operand_tile(i)?;
        ensure(x.shape.is_empty(), V10, || format!("operand {i} must be a scalar"))?;
        within(x, wanted)?;
    }
    Ok(())
}

fn mask(t: Tile<'_>, shape: &[u32]) -> Check {
    is_dtype(t, DType::Bool)?;
    same_shape(t.shape, shape)
}

pub(super) fn memory(cx: Cx<'_>, op: MemoryOp) -> Check {
    match op {
        MemoryOp::PtrAdd => {
            cx.counts(2, 1)?;
            let (p, offset) = (cx.operand_tile(0)?, cx.operand_tile(1)?);
            pointers(p)?;
            within(offset, DTypeSet::INT)?;
            same_shape(p.shape, offset.shape)?;
            serves(p, cx.result_tile(0)?)
        }
        MemoryOp::Load => {
            cx.counts_in(1, 3, 1)?;
            let p = cx.operand_tile(0)?;
            let (elem, _) = pointers(p)?;
            let loaded = Tile { elem, shape: p.shape };
            serves(loaded, cx.result_tile(0)?)?;
            masked(cx, 1, loaded)
        }
        MemoryOp::Store => {
            cx.counts_in(2, 3, 0)?;
            let p = cx.operand_tile(0)?;
            let (elem, mutable) = pointers(p)?;
            let stored = Tile { elem, shape: p.shape };
            serves(cx.operand_tile(1)?, stored)?;
            masked(cx, 2, stored)?;
            writable(mutable)
        }
        MemoryOp::Prefetch => {
            cx.counts_in(1, usize::MAX, 0)?;
            match cx.operand(0)? {
                Type::View { .. } => Ok(()),
                Type::Tile { elem, shape } => pointers(Tile { elem, shape }).map(|_| ()),
            }
        }
        MemoryOp::View | MemoryOp::ViewShape | MemoryOp::ViewStride | MemoryOp::ViewPtr => facts(cx, op),
        MemoryOp::ViewSlice | MemoryOp::ViewPermute => subview(cx, op),
        MemoryOp::ViewStore => store_box(cx),
        MemoryOp::ViewLoad => read_box(cx, false),
        MemoryOp::ViewInside => read_box(cx, true),
        MemoryOp::ViewGather | MemoryOp::ViewScatter => scattered(cx, op),
    }
}

/// `[mask [, other]]` from operand `first` on, as far as they are there.
fn masked(cx: Cx<'_>, first: usize, value: Tile<'_>) -> Check {
    if cx.inst.operands.len() > first {
        mask(cx.operand_tile(first)?, value.shape)?;
    }
    if cx.inst.operands.len() > first + 1 {
        serves(cx.operand_tile(first + 1)?, value)?;
    }
    Ok(())
}

/// Making a view and asking it.
fn facts(cx: Cx<'_>, op: MemoryOp) -> Check {
    if op == MemoryOp::View {
        ensure(cx.inst.results.len() == 1, V08, || {
            format!("expected 1 result, found {}", cx.inst.results.len())
        })?;
        let v = view(cx.result(0)?)?;
        cx.counts(1 + 2 * v.rank, 1)?;
        scalars(cx, 1, v.rank, DTypeSet::of(&[v.extent()]))?;
        scalars(cx, 1 + v.rank, v.rank, DTypeSet::of(&[DType::I64]))?;
        let p = cx.operand_tile(0)?;
        ensure(p.shape.is_empty(), V10, || "the pointer must be a scalar".into())?;
        let (elem, mutable) = pointers(p)?;
        ensure(elem == v.elem, V11, || {
            format!("element types differ: pointer to `{elem}`, view of `{}`", v.elem)
        })?;
        return if v.mutable { writable(mutable) } else { Ok(()) };
    }
    cx.counts(1, 1)?;
    let (v, result) = (view(cx.operand(0)?)?, cx.result_tile(0)?);
    ensure(result.shape.is_empty(), V10, || "the result must be a scalar".into())?;
    if op == MemoryOp::ViewPtr {
        let (elem, mutable) = pointers(result)?;
        ensure(elem == v.elem, V11, || {
            format!("element types differ: pointer to `{elem}`, view of `{}`", v.elem)
        })?;
        return if mutable { writable(v.mutable) } else { Ok(()) };
    }
    cx.axis(v.rank)?;
    is_dtype(result, if op == MemoryOp::ViewShape { v.extent() } else { DType::I64 })
}

/// Views of views.
fn subview(cx: Cx<'_>, op: MemoryOp) -> Check {
    ensure(cx.inst.results.len() == 1, V08, || {
        format!("expected 1 result, found {}", cx.inst.results.len())
    })?;
    let (v, result) = (view(cx.operand(0)?)?, view(cx.result(0)?)?);
    let rank = if op == MemoryOp::ViewPermute {
        cx.counts(1, 1)?;
        let perm = cx.inst.attrs.ints("perm").unwrap_or(&[]);
        let ok = infer::is_permutation(perm, v.rank);
        ensure(ok, V09, || format!("{perm:?} is not a permutation of {} axes", v.rank))?;
        v.rank
    } else {
        let axes = cx.inst.attrs.ints("axes").unwrap_or(&[]);
        let known = axes.len() == v.rank && axes.iter().all(|a| (0..=2).contains(a));
        ensure(known, V09, || {
            format!("`axes` must have 0, 1 or 2 for each of {} axes, but is {axes:?}", v.rank)
        })?;
        let count = |code: i64| axes.iter().filter(|a| **a == code).count();
        let operands = count(0) + 2 * count(2);
        cx.counts(1 + operands, 1)?;
        scalars(cx, 1, operands, DTypeSet::INT)?;
        v.rank - count(0)
    };
    ensure(result.rank == rank, V10, || {
        format!("expected a result of rank {rank}, found rank {}", result.rank)
    })?;
    ensure(result.elem == v.elem && result.wide == v.wide, V11, || {
        "the result must have the element and extent types of the operand".into()
    })?;
    if result.mutable { writable(v.mutable) } else { Ok(()) }
}

/// `view_store`: the position is one scalar per axis.
fn store_box(cx: Cx<'_>) -> Check {
    let v = view(cx.operand(0)?)?;
    cx.counts(v.rank + 2, 0)?;
    let value = cx.operand_tile(v.rank + 1)?;
    at_box(cx, v, value.shape)?;
    serves(value, Tile { elem: v.elem, shape: value.shape })?;
    writable(v.mutable)
}

/// `view_load` with `other`, or `view_inside` without.
fn read_box(cx: Cx<'_>, inside: bool) -> Check {
    let v = view(cx.operand(0)?)?;
    let most = v.rank + if inside { 1 } else { 2 };
    cx.counts_in(v.rank + 1, most, 1)?;
    let result = cx.result_tile(0)?;
    at_box(cx, v, result.shape)?;
    let elem = if inside { &ElemType::Scalar(DType::Bool) } else { v.elem };
    serves(Tile { elem, shape: result.shape }, result)?;
    match cx.inst.operands.get(v.rank + 1) {
        Some(_) => serves(cx.operand_tile(v.rank + 1)?, result),
        None => Ok(()),
    }
}

/// A position of one scalar per axis, and a box of one dimension per axis or a single element.
fn at_box(cx: Cx<'_>, v: View<'_>, shape: &[u32]) -> Check {
    scalars(cx, 1, v.rank, DTypeSet::INT)?;
    let rank = shape.len();
    ensure(rank == v.rank || rank == 0, V10, || {
        format!("a box of rank {rank} does not fit a view of rank {}", v.rank)
    })
}

/// Access to single elements: `at` is one tile per axis, all of one shape.
fn scattered(cx: Cx<'_>, op: MemoryOp) -> Check {
    let v = view(cx.operand(0)?)?;
    let rest = 1 + v.rank;
    cx.counts(rest + 2, usize::from(op == MemoryOp::ViewGather))?;
    let shape = cx.operand_tile(1)?.shape;
    for i in 1..rest {
        let at = cx.operand_tile(i)?;
        within(at, DTypeSet::INT)?;
        same_shape(at.shape, shape)?;
    }
    let element = Tile { elem: v.elem, shape };
    if op == MemoryOp::ViewGather {
        mask(cx.operand_tile(rest)?, shape)?;
        serves(element, cx.result_tile(0)?)?;
        return serves(cx.operand_tile(rest + 1)?, element);
    }
    serves(cx.operand_tile(rest)?, element)?;
    mask(cx.operand_tile(rest + 1)?, shape)?;
    writable(v.mutable)
}

/// Pointers, or a view and positions; then the values, then `[mask [, other]]`. The result is the old value.
pub(super) fn atomic(cx: Cx<'_>, op: AtomicOp) -> Check {
    let (mutable, element, first) = match cx.operand(0)? {
        Type::Tile { elem, shape } => {
            let (pointee, mutable) = pointers(Tile { elem, shape })?;
            (mutable, Tile { elem: pointee, shape }, 1)
        }
        ty @ Type::View { .. } => {
            let v = view(ty)?;
            let shape = cx.operand_tile(1)?.shape;
            for i in 1..=v.rank {
                let at = cx.operand_tile(i)?;
                within(at, DTypeSet::INT)?;
                same_shape(at.shape, shape)?;
            }
            (v.mutable, Tile { elem: v.elem, shape }, 1 + v.rank)
        }
    };
    let (values, set) = match op {
        AtomicOp::Load => (0, DTypeSet::VALUE),
        AtomicOp::Store | AtomicOp::Xchg => (1, DTypeSet::VALUE),
        AtomicOp::Cas => (2, DTypeSet::VALUE),
        AtomicOp::Add | AtomicOp::Max | AtomicOp::Min => (1, DTypeSet::NUMBER),
        AtomicOp::And | AtomicOp::Or | AtomicOp::Xor => (1, DTypeSet::INT),
    };
    within(element, set)?;
    let after = first + values;
    if op == AtomicOp::Store {
        cx.counts_in(after, after + 1, 0)?;
    } else {
        cx.counts_in(after, after + 2, 1)?;
        serves(element, cx.result_tile(0)?)?;
    }
    for i in first..after {
        serves(cx.operand_tile(i)?, element)?;
    }
    masked(cx, after, element)?;
    if op == AtomicOp::Load { Ok(()) } else { writable(mutable) }
}
