//! Chooses the order and the vector of an access to device memory: the dimension that is fastest in memory, and how
//! many neighbours one lane accesses at once.
//!
//! Requires the facts of [`crate::analysis::axis`]. Guarantees that an access of `certain` neighbours is aligned to its
//! size, and that all of them are inside or none is, so that one predicate suffices. Where a target accesses any address, one
//! of more neighbours may be *ragged*: whether the axis has a stride of 1, and whether all of them are inside or none is, is
//! asked when it is executed.

use tk_ops::{MemoryOp, Op};
use tk_tile::{Def, Func, Inst, Module, Type, ValueId, walk};

use crate::analysis::axis::AxisInfo;
use crate::analysis::pointer_steps::{PointerStep, Pointers};
use crate::ir::attrs::permutation;
use crate::ir::caching::{Caching, Level};
use crate::ir::kernel::CompileOptions;
use crate::ir::op::GpuOp;
use crate::ir::params::element_bytes;

/// Registers of a lane that are few, and bytes of one.
const FEW: u32 = 256;
const WORD: u64 = 4;

/// How memory is accessed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coalescing {
    /// Dimensions of the tile, the fastest in memory first.
    pub order: Vec<usize>,
    /// The number of neighbours along the fastest dimension that one access moves: a power of two.
    pub vector: u32,
    /// The number of them for which nothing is asked when the access is executed; less only where it may be ragged.
    pub certain: u32,
    /// Bytes of an element.
    pub bytes: u32,
    /// Why it moves no more of them, as a sentence without a full stop.
    pub limit: &'static str,
}

/// The location of the operands of an access.
struct Parts {
    /// The pointers or the view.
    place: ValueId,
    /// Positions of a box in a view.
    at: Vec<ValueId>,
    mask: Option<ValueId>,
    shape: Vec<u32>,
}

/// The location of the operands of an access; `None` if it accesses no tile in order.
fn parts_of(module: &Module, func: &Func, inst: &Inst) -> Option<Parts> {
    let ty = |v: ValueId| module.types.get(func.ty(v));
    let operand = |i: usize| inst.operands.get(i).copied();
    let place = operand(0)?;
    // A copy has the operands of the load that it replaces.
    let copies = matches!(GpuOp::of(inst), Some(GpuOp::AsyncCopy(_)));
    let op = match ty(place) {
        Type::View { .. } if copies => MemoryOp::ViewLoad,
        Type::Tile { .. } if copies => MemoryOp::Load,
        Type::View { .. } | Type::Tile { .. } => {
            let Op::Memory(op) = inst.op else { return None };
            op
        }
    };
    Some(match op {
        MemoryOp::Load | MemoryOp::Store | MemoryOp::Prefetch => {
            let shape = ty(place).shape()?.to_vec();
            let masks = if op == MemoryOp::Store { 2 } else { 1 };
            let mask = crate::ir::shared_access::plain_operands(inst).get(masks).copied();
            Parts { place, at: vec![], mask, shape }
        }
        MemoryOp::ViewLoad | MemoryOp::ViewStore => {
            let Type::View { rank, .. } = ty(place) else { return None };
            let rank = *rank as usize;
            let at = (1..=rank).filter_map(operand).collect();
            let tile = if op == MemoryOp::ViewLoad { *inst.results.first()? } else { operand(1 + rank)? };
            Parts { place, at, mask: None, shape: ty(tile).shape()?.to_vec() }
        }
        MemoryOp::PtrAdd
        | MemoryOp::View
        | MemoryOp::ViewShape
        | MemoryOp::ViewStride
        | MemoryOp::ViewPtr
        | MemoryOp::ViewSlice
        | MemoryOp::ViewPermute
        | MemoryOp::ViewInside
        | MemoryOp::ViewGather
        | MemoryOp::ViewScatter => return None,
    })
}

/// The best order and vector for the accesses of an instruction; `None` if it accesses no tile of memory in order.
pub fn access(
    module: &Module,
    func: &Func,
    axis: &AxisInfo,
    options: &CompileOptions,
    inst: &Inst,
) -> Option<Coalescing> {
    let spec = options.spec;
    let parts = parts_of(module, func, inst)?;
    let place = parts.place;
    let ty = |v: ValueId| module.types.get(func.ty(v));
    parts.shape.first()?;
    let bytes = match ty(place) {
        Type::View { elem, .. } => element_bytes(elem),
        Type::Tile { elem: tk_tile::ElemType::Ptr { pointee, .. }, .. } => element_bytes(pointee),
        Type::Tile { .. } => return None,
    };
    let (mut order, known) = match ty(place) {
        Type::View { .. } => of_view(axis, &parts, bytes),
        Type::Tile { .. } => of_pointers(Pointers { module, func, axis }, &parts, bytes),
    };
    let most = (u64::from(spec.vector_bytes) / bytes).max(1);
    let limited = |order: &[usize], known| {
        let extent = order.first().and_then(|d| parts.shape.get(*d)).copied().unwrap_or(1);
        least([
            (most, "no access is wider"),
            (power_below(extent), "the extent of the tile is divided by no larger power of two"),
            known,
        ])
    };
    let (certain, mut limit) = limited(&order, known);
    let mut vector = certain;
    // Half of the widest access is worth more than a test.
    let is_narrow = 2 * certain * bytes < u64::from(spec.vector_bytes);
    let along = (is_narrow && may_be_ragged((module, func), options, inst, bytes)).then(|| match ty(place) {
        Type::View { .. } => neighbours(module, func, axis, place).map(|d| (d, u64::MAX)),
        Type::Tile { .. } => following(module, func, axis, place),
    });
    if let Some((d, run)) = along.flatten() {
        let mut fastest = order.clone();
        fastest.retain(|other| *other != d);
        fastest.insert(0, d);
        let (wide, why) = limited(&fastest, (run, "the pointers are not known to follow one another"));
        if wide > certain {
            (order, vector, limit) = (fastest, wide, why);
        }
    }
    let numbers = [vector, certain.min(vector), bytes];
    let [vector, certain, bytes] = numbers.map(|n| u32::try_from(n).unwrap_or(1));
    Some(Coalescing { order, vector, certain, bytes, limit })
}

/// The neighbours that a load moves at any address of an element, those of the widest access, by two aligned loads
/// ([`TargetSpec::has_shifted_loads`]); `None` where it is at least half as wide without, or a lane does not have so many in
/// neighbouring registers, or it must be asked whether all of them are inside of the view: behind what asks, other loads wait.
/// `run` is their number along an axis.
pub fn shifted(
    module: &Module,
    func: &Func,
    axis: &AxisInfo,
    options: &CompileOptions,
    inst: &Inst,
    run: impl Fn(usize) -> u32,
) -> Option<u32> {
    let spec = options.spec;
    let is_load = inst.op == Op::Memory(MemoryOp::ViewLoad);
    if !spec.has_shifted_loads || !is_load || Caching::of(&inst.attrs).level == Level::Volatile {
        return None;
    }
    let of = access(module, func, axis, options, inst)?;
    let view = axis.view(*inst.operands.first()?)?;
    let along = view.strides.iter().rposition(|(_, is_one)| *is_one)?;
    let width = spec.vector_bytes / of.bytes;
    let at = axis.tile(*inst.operands.get(1 + along)?).divisibility();
    let together = at.min(view.extents.get(along).copied().unwrap_or(1));
    let is_narrow = 2 * of.certain * of.bytes < spec.vector_bytes;
    (is_narrow && run(along) >= width && together >= u64::from(width)).then_some(width)
}

/// Returns true if an access may be ragged, wherever it is. Both ways to do it need registers: where a lane has few, only for
/// elements of less than a register, which would be many, and not beside accumulators that take half of it.
fn may_be_ragged(of: (&Module, &Func), options: &CompileOptions, inst: &Inst, bytes: u64) -> bool {
    let spec = options.spec;
    let has_room = || spec.registers > FEW || bytes < WORD && !has_large_accumulators(of, options);
    spec.has_unaligned_access
        && matches!(
            inst.op,
            Op::Memory(MemoryOp::ViewLoad | MemoryOp::ViewStore | MemoryOp::Load | MemoryOp::Store)
        )
        && Caching::of(&inst.attrs).level != Level::Volatile
        && has_room()
}

/// Returns true if the sums of a product take half of the registers of a lane or more.
pub fn has_large_accumulators((module, func): (&Module, &Func), options: &CompileOptions) -> bool {
    let registers = |inst: &Inst| {
        let is_product = matches!(GpuOp::of(inst), Some(GpuOp::Mma(_))) || matches!(inst.op, Op::Dot(_));
        let ty = module.types.get(func.ty(*inst.results.first().filter(|_| is_product)?));
        let elements: u64 = ty.shape()?.iter().map(|n| u64::from(*n)).product();
        Some(elements * element_bytes(ty.elem()) / WORD / u64::from(options.threads().count()))
    };
    let most = walk::insts(func).into_iter().filter_map(|i| registers(&func.insts[i])).max();
    most.is_some_and(|n| 2 * n >= u64::from(options.spec.registers))
}

/// The axis of a tile of pointers along which they may follow one another, and the length of the runs of those that may.
fn following(module: &Module, func: &Func, axis: &AxisInfo, pointers: ValueId) -> Option<(usize, u64)> {
    let of = Pointers { module, func, axis };
    let shape = module.types.get(func.ty(pointers)).shape()?;
    let mut found = None;
    for (d, extent) in shape.iter().enumerate().filter(|(_, extent)| **extent > 1) {
        match of.step(pointers, d, *extent) {
            Some(PointerStep::One(run)) => return Some((d, run)),
            Some(PointerStep::Scalar(_)) => found = Some((d, u64::MAX)),
            None => {}
        }
    }
    found
}

/// The axis of a view along which elements are neighbours: where that is not known, the one along which they are in a view that
/// is contiguous.
fn neighbours(module: &Module, func: &Func, axis: &AxisInfo, view: ValueId) -> Option<usize> {
    let strides = &axis.view(view)?.strides;
    let known = strides.iter().rposition(|(_, is_one)| *is_one);
    known.or_else(|| last_axis(module, func, view).filter(|d| strides.get(*d).is_some_and(|s| s.0 == 1)))
}

/// The axis of a view that is the last one of the view that it is a part of.
fn last_axis(module: &Module, func: &Func, view: ValueId) -> Option<usize> {
    let whole = || match module.types.get(func.ty(view)) {
        Type::View { rank, .. } => (*rank as usize).checked_sub(1),
        Type::Tile { .. } => None,
    };
    let Def::Inst(id, _) = func.values[view].def else { return whole() };
    let inst = &func.insts[id];
    let last_of_operand = || last_axis(module, func, *inst.operands.first()?);
    if inst.op == Op::Memory(MemoryOp::ViewSlice) {
        let last = last_of_operand()?;
        let codes = inst.attrs.ints("axes")?;
        let is_kept = |d: &usize| codes.get(*d).is_some_and(|code| *code != 0);
        is_kept(&last).then(|| (0..last).filter(is_kept).count())
    } else if inst.op == Op::Memory(MemoryOp::ViewPermute) {
        let last = last_of_operand()?;
        permutation(inst).iter().position(|d| *d == last)
    } else {
        whole()
    }
}

/// A number of neighbours, and what limits it to that.
type Limited = (u64, &'static str);

/// The smallest, the first of several.
fn least(all: impl IntoIterator<Item = Limited>) -> Limited {
    all.into_iter().min_by_key(|(n, _)| *n).unwrap_or((1, "nothing is known of it"))
}

/// The number of neighbours of a `view_inside` that are inside or outside together, and the dimension; at most the
/// width of an access to them.
pub fn inside(module: &Module, func: &Func, axis: &AxisInfo, inst: &Inst) -> Option<(usize, u32)> {
    let (place, r) = (*inst.operands.first()?, *inst.results.first()?);
    let shape = module.types.get(func.ty(r)).shape()?.to_vec();
    let at = inst.operands.iter().skip(1).copied().collect();
    let (order, (vector, _)) = of_view(axis, &Parts { place, at, mask: None, shape: shape.clone() }, 1);
    let fastest = *order.first()?;
    Some((fastest, u32::try_from(vector.min(power_below(*shape.get(fastest)?))).ok()?))
}

/// The largest power of two that divides an extent: vectors do not extend into padding.
fn power_below(extent: u32) -> u64 {
    1 << extent.trailing_zeros().min(24)
}

fn of_pointers(of: Pointers<'_>, parts: &Parts, bytes: u64) -> (Vec<usize>, Limited) {
    let axis = of.axis;
    let known = axis.tile(parts.place);
    let order = sorted(parts.shape.len(), |d| known.dim(d).contiguity);
    let fastest = order.first().copied().unwrap_or(0);
    let dim = known.dim(fastest);
    let mask = parts.mask.map_or(u64::MAX, |mask| axis.tile(mask).dim(fastest).constancy);
    let apart = if dim.contiguity == 1 && of.wraps_below_zero(parts.place, fastest) {
        "`%` of numbers that may be negative separates neighbours (`maximum` of their first one and 0 mends it)"
    } else {
        "the pointers are not known to follow one another"
    };
    let vector = least([
        (dim.contiguity, apart),
        ((dim.divisibility / bytes).max(1), "the address is not known to be aligned"),
        (mask, "the mask is not known to be the same for neighbours"),
    ]);
    (order, vector)
}

fn of_view(axis: &AxisInfo, parts: &Parts, bytes: u64) -> (Vec<usize>, Limited) {
    let rank = parts.shape.len();
    let Some(view) = axis.view(parts.place) else { return (sorted(rank, |_| 1), least([])) };
    let unit = |d: usize| view.strides.get(d).is_some_and(|s| s.1);
    let order = sorted(rank, |d| u64::from(unit(d)));
    let fastest = order.first().copied().unwrap_or(0);
    if !unit(fastest) {
        return (order, (1, "no axis of the view is known to have a stride of 1"));
    }
    let at = |d: usize| parts.at.get(d).map_or(1, |v| axis.tile(*v).divisibility());
    // All neighbours are inside or none is.
    let extent = view.extents.get(fastest).copied().unwrap_or(1);
    let strides = (0..rank).filter(|d| *d != fastest).map(|d| view.strides.get(d).map_or(1, |s| s.0));
    let (vector, limit) = least([
        (at(fastest), "the position along the contiguous axis is not known to be a multiple of more"),
        (extent, "the extent of the contiguous axis is not known to be a multiple of more"),
        ((view.base / bytes).max(1), "the address of the view is not known to be aligned"),
        (strides.min().unwrap_or(u64::MAX), "a stride is not known to be a multiple of more"),
    ]);
    (order, (vector.max(1), limit))
}

/// Dimensions in descending order of this fact; without facts, the last dimension comes first.
fn sorted(rank: usize, by: impl Fn(usize) -> u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rank).rev().collect();
    order.sort_by_key(|d| std::cmp::Reverse(by(*d)));
    order
}
