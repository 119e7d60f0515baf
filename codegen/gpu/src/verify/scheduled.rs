//! Verifies S01 to S04: what scheduled kernels no longer contain, and each access to shared memory by itself.
//!
//! Requires L01 and L03 to L06. Guarantees that emission finds every element in its own warp or in a buffer.

use tk_ops::{DType, DotOp, Op, ReduceOp, ScanOp, ShapeOp};
use tk_tile::verify::is_machine;
use tk_tile::{ElemType, Inst, ValueId};

use super::fault::GpuInvariant::{S01, S02, S03, S04};
use super::fault::{Check, Fault, GpuVerifyError, each, ensure, fault};
use super::layouts::Cx;
use super::{async_copies, mma, warp_specialize};
use crate::analysis::conversion;
use crate::ir::attrs::state;
use crate::ir::attrs::{axis_of, is_unit};
use crate::ir::kernel::Kernel;
use crate::ir::op::{GpuOp, Placement, SharedLoad, SharedStore, Strides};
use crate::ir::params::element_bytes;
use crate::ir::shared_access::{buffers, plain_operands, swizzled_elements};
use crate::layout::linear::InDim;
use crate::layout::linear::gf2::Span;
use crate::layout::{Layout, cut, padded};

/// Checks every instruction.
pub(super) fn check(kernel: &Kernel) -> Result<(), GpuVerifyError> {
    let cx = Cx { kernel };
    let mut sizes = vec![None; kernel.buffers.len()];
    each(kernel, |inst| match inst.op {
        Op::Target => match GpuOp::of(inst) {
            Some(GpuOp::Convert(_)) => stays(cx, inst),
            Some(op) => access(cx, inst, op, &mut sizes),
            None => fault(S03, "it has no fields"),
        },
        Op::Reduce(op) if is_machine(inst) => parts(cx, inst, op),
        Op::Reduce(_) => inst.operands.first().map_or(Ok(()), |x| one_warp(cx, *x, axis_of(inst))),
        Op::Shape(op) => in_place(cx, inst, op),
        Op::Scan(ScanOp::CumSum | ScanOp::CumProd | ScanOp::Custom) => Ok(()),
        Op::Scan(ScanOp::Sort | ScanOp::TopK | ScanOp::Histogram | ScanOp::Gather) | Op::Dot(DotOp::Dot) => {
            fault(S01, "a scheduled kernel has other operations for it")
        }
        Op::Elementwise(_)
        | Op::Create(_)
        | Op::Memory(_)
        | Op::Atomic(_)
        | Op::Dot(DotOp::DotScaled)
        | Op::Random(_)
        | Op::Control(_)
        | Op::Host(_) => Ok(()),
    })
}

/// S01 of a conversion.
fn stays(cx: Cx<'_>, inst: &Inst) -> Check {
    let ([x], [r]) = (inst.operands.as_slice(), inst.results.as_slice()) else { return Ok(()) };
    let (Some(from), Some(to)) = (cx.layout(*x), cx.layout(*r)) else { return Ok(()) };
    let bytes = u32::try_from(element_bytes(cx.ty(*x).elem())).unwrap_or(u32::MAX);
    ensure(conversion::in_warp(from, to, bytes).is_some(), S01, || "it goes through shared memory".into())
}

/// S01 of a reduction or scan.
fn one_warp(cx: Cx<'_>, x: ValueId, axis: usize) -> Check {
    let warps = cx.layout(x).map_or(1, |l| l.partial(axis).1.len() as u32);
    ensure(warps == 1, S01, || format!("{warps} warps share the dimension"))
}

/// S01 of a rearrangement.
fn in_place(cx: Cx<'_>, inst: &Inst, op: ShapeOp) -> Check {
    let (Some(x), Some(r)) = (inst.operands.first(), inst.results.first()) else { return Ok(()) };
    let (from, to) = (cx.shape(*x), cx.shape(*r));
    let ok = match (op, cx.layout(*x), cx.layout(*r)) {
        // L09 has checked these.
        (ShapeOp::Permute | ShapeOp::Broadcast, _, _) | (_, None, _) | (_, _, None) => true,
        (ShapeOp::Reshape, Some(a), Some(b)) => is_unit(from, to) || a.reshaped(from, to).as_ref() == Some(b),
        (ShapeOp::Join, Some(a), Some(b)) => {
            a.paired().as_ref() == Some(b) && inst.operands.iter().all(|v| cx.id(*v) == cx.id(*x))
        }
        (ShapeOp::Split, Some(a), Some(b)) => {
            b.paired().as_ref() == Some(a) && inst.results.iter().all(|v| cx.id(*v) == cx.id(*r))
        }
        (ShapeOp::Slice, Some(a), Some(b)) => is_part(inst, (from, a), (to, b)),
        (ShapeOp::Flip | ShapeOp::Cat | ShapeOp::Interleave, Some(_), Some(_)) => false,
    };
    ensure(ok, S01, || "elements have to move".into())
}

/// Returns true if a slice is the elements that each thread owns of one of equal parts along a dimension.
fn is_part(inst: &Inst, (from, a): (&[u32], &Layout), (to, b): (&[u32], &Layout)) -> bool {
    let starts = inst.attrs.ints("starts").unwrap_or(&[]);
    let mut cut = (0..from.len()).filter(|d| from.get(*d) != to.get(*d));
    let (Some(dim), None) = (cut.next(), cut.next()) else { return false };
    let (Some(whole), Some(part)) = (from.get(dim), to.get(dim)) else { return false };
    let fits = *part > 0 && part < whole && whole % part == 0 && padded(*whole) == *whole;
    let begins = |(d, at): (usize, &i64)| *at == 0 || d == dim && *at % i64::from(*part) == 0;
    fits && starts.iter().enumerate().all(begins) && a.part(dim, whole / part).as_ref() == Some(b)
}

/// S02.
fn parts(cx: Cx<'_>, inst: &Inst, op: ReduceOp) -> Check {
    let (axis, custom) = (axis_of(inst), op == ReduceOp::Custom);
    let names = inst.attrs.iter().map(|(n, _)| n);
    let known = names.into_iter().all(|n| ["axis", "fast", "k", "merge", "part"].contains(&n));
    ensure(known && inst.blocks.len() == usize::from(custom), S02, || {
        "it has attributes or blocks of its own".into()
    })?;
    let Some(x) = inst.operands.first() else { return fault(S02, "it has no operand") };
    let Some(layout) = cx.layout(*x) else { return fault(S02, "the operand is a scalar") };
    let elems = |list: &[ValueId]| list.iter().map(|v| cx.ty(*v).elem().clone()).collect::<Vec<ElemType>>();
    let results = cx.shape(*x).get(axis).copied().map_or(1, i64::from);
    let merge = inst.attrs.flag("merge");
    let real = inst.attrs.int("k").map_or(!merge, |k| merge && (1..=results).contains(&k));
    ensure(real, S02, || "`k` is not how many of the results in parts are of elements".into())?;
    let same = inst.operands.iter().all(|v| cx.id(*v) == cx.id(*x) && cx.shape(*v) == cx.shape(*x));
    ensure(same, S02, || "the operands differ in shape or layout".into())?;
    // The values of partial results: an operand has them when they are merged, the results before.
    let (found, single) =
        if merge { (&inst.operands, &inst.results) } else { (&inst.results, &inst.operands) };
    let wanted = match single.as_slice() {
        _ if custom => elems(single),
        [one] => {
            let from = dtype(cx, *x)?;
            let to = if merge { dtype(cx, *one)? } else { op.result().of(from) };
            state(op, from, to).into_iter().map(ElemType::Scalar).collect()
        }
        _ => return fault(S02, "it folds one tile"),
    };
    ensure(elems(found) == wanted, S02, || "this is not what a fold in parts leaves".into())?;
    if merge {
        let atom = layout.atom();
        let moves = |d: InDim| {
            (0..atom.bits(d)).filter_map(|i| atom.basis(d, i)).any(|b| b.get(axis).is_some_and(|c| *c != 0))
        };
        ensure(!moves(InDim::Warp), S02, || "not all of the dimension is in each warp".into())?;
        let folded = |r: &ValueId| cx.folded(*x, *r, axis).map_err(|(_, message)| (S02, message));
        return inst.results.iter().try_for_each(folded);
    }
    let (wanted, starts) = layout.partial(axis);
    let mut shape = cx.shape(*x).to_vec();
    shape.get_mut(axis).into_iter().for_each(|n| *n = starts.len() as u32);
    let fits = |v: &ValueId| cx.shape(*v) == shape && cx.layout(*v) == Some(&wanted);
    ensure(inst.results.iter().all(fits), S02, || "a result is not one part for each warp".into())
}

fn dtype(cx: Cx<'_>, v: ValueId) -> Result<DType, Fault> {
    match cx.ty(v).dtype() {
        Some(d) => Ok(d),
        None => fault(S02, format!("{v} holds no numbers")),
    }
}

/// The most dimensions of a view: no access has more operands for positions.
const MOST_RANK: usize = 64;

/// The number of operands and results of an operation, predicate and stage not counted.
fn arity(op: &GpuOp) -> (std::ops::RangeInclusive<usize>, usize) {
    match op {
        GpuOp::Convert(_) | GpuOp::SharedGather(_) | GpuOp::SharedRank(_) | GpuOp::SharedDot(_) => (1..=1, 1),
        GpuOp::MmaWait(_) => (1..=2, 1),
        GpuOp::Fragments(_) => (1..=1, 1),
        GpuOp::SharedStore(_) => (1..=1, 0),
        GpuOp::SharedLoad(_)
        | GpuOp::Unspecified(_)
        | GpuOp::IsProducerWarp(_)
        | GpuOp::GroupId(_)
        | GpuOp::Elect(_)
        | GpuOp::ConsumerReceive(_)
        | GpuOp::ConsumerWait(_) => (0..=0, 1),
        GpuOp::GroupOwn(_) | GpuOp::OptimizationBarrier(_) => (2..=2, 1),
        GpuOp::ConsumerSkip(_) | GpuOp::ProducerSend(_) => (1..=1, 0),
        GpuOp::SharedScatter(_) => (2..=2, 0),
        GpuOp::SharedAdd(_) => (1..=2, 0),
        GpuOp::Mma(_) => (1..=3, 1),
        GpuOp::AsyncCopy(_) => (1..=MOST_RANK + 1, 1),
        GpuOp::TmaLoad(_) | GpuOp::TmaStore(_) => (3..=3, 0),
        GpuOp::SetMaxRegisters(_)
        | GpuOp::TmaStoreWait(_)
        | GpuOp::ProducerAcquire(_)
        | GpuOp::ProducerCommit(_)
        | GpuOp::ProducerDrain(_)
        | GpuOp::ConsumerRelease(_)
        | GpuOp::TurnWait(_)
        | GpuOp::TurnPass(_)
        | GpuOp::AsyncCommit(_)
        | GpuOp::AsyncWait(_)
        | GpuOp::ClusterArrive(_)
        | GpuOp::ClusterWait(_)
        | GpuOp::ClusterSync(_)
        | GpuOp::Barrier(_)
        | GpuOp::PhaseBarrier(_)
        | GpuOp::HalfBarrier(_)
        | GpuOp::ProxyFence(_) => (0..=0, 0),
    }
}

/// S03 of the operands and results of one operation.
fn takes(cx: Cx<'_>, inst: &Inst, op: &GpuOp) -> Check {
    let (operands, results) = arity(op);
    let fits = operands.contains(&plain_operands(inst).len()) && inst.results.len() == results;
    ensure(fits && inst.blocks.is_empty(), S03, || {
        format!("it has {} operands and {} results", inst.operands.len(), inst.results.len())
    })?;
    async_copies::multi_stage(cx, inst)
}

/// S03 and S04 of one operation; `sizes` are the bytes of the elements of each buffer as far as they are known.
fn access(cx: Cx<'_>, inst: &Inst, op: &GpuOp, sizes: &mut [Option<u64>]) -> Check {
    takes(cx, inst, op)?;
    if arity(op) == (0..=0, 0) && buffers(inst).is_empty() && !matches!(op, GpuOp::SetMaxRegisters(_)) {
        return Ok(());
    }
    let plain = plain_operands(inst);
    let staged = buffers(inst);
    let mut use_of = |buffer: usize, bytes: u64| -> Result<i64, Fault> {
        let stages = staged.iter().find(|s| s.buffer == buffer).map_or(1, |s| s.count());
        Ok(used(cx, buffer, bytes, sizes)? / i64::from(stages.max(1)))
    };
    let bytes = |v: ValueId| element_bytes(cx.ty(v).elem());
    match (op, plain, inst.results.as_slice()) {
        (GpuOp::SharedStore(SharedStore { buffer, placement, chunked, .. }), [v], []) => {
            if *chunked {
                async_copies::chunked(cx, inst, *v)?;
            }
            placed(cx, placement, *v, use_of(buffer.buffer, bytes(*v))?)
        }
        (GpuOp::SharedLoad(SharedLoad { buffer, placement, .. }), [], [v]) => {
            placed(cx, placement, *v, use_of(buffer.buffer, bytes(*v))?)
        }
        (GpuOp::SharedGather(gather), [at], [r]) => {
            gathered(cx, *at, *r)?;
            let capacity = use_of(gather.buffer, bytes(*r))?;
            strided(&gather.placement, &along(gather.axis, gather.extent, cx.shape(*at))?, capacity)
        }
        (GpuOp::SharedScatter(scatter), [v, at], []) => {
            scattered(cx, *v, *at, scatter.axis)?;
            let capacity = use_of(scatter.buffer, bytes(*v))?;
            strided(&scatter.placement, cx.shape(*v), capacity)
        }
        (GpuOp::SharedRank(rank), [v], [r]) => {
            ranked(cx, *v, *r)?;
            let capacity = use_of(rank.buffer, bytes(*v))?;
            strided(&rank.placement, &along(rank.axis, rank.extent, cx.shape(*v))?, capacity)
        }
        (GpuOp::SharedAdd(add), [at, mask @ ..], []) => {
            counted(cx, *at, mask)?;
            fits(i64::from(add.bins), use_of(add.buffer, DType::I32.bytes() as u64)?)
        }
        (GpuOp::SharedDot(dot), [acc], [r]) => mma::plain(cx, dot, *acc, *r, &mut use_of),
        (GpuOp::Mma(mma), [acc, operands @ ..], [r]) => {
            mma::instruction(cx, mma, *acc, operands, *r, &mut use_of)
        }
        (GpuOp::Unspecified(_), [], [r]) => {
            ensure(cx.ty(*r).dtype().is_some(), S03, || "its elements are pointers".into())
        }
        (GpuOp::OptimizationBarrier(_), [v, _], [r]) => hidden(cx, *v, *r),
        (GpuOp::MmaWait(wait), [v, ..], [r]) => mma::wait(cx, wait, *v, *r),
        (GpuOp::Fragments(fragments), [acc], [r]) => mma::fragments(cx, fragments, *acc, *r, &mut use_of),
        (GpuOp::AsyncCopy(copy), [place, ..], [r]) => {
            async_copies::source(cx, plain, *place, *r)?;
            placed(cx, &copy.placement, *r, use_of(copy.buffer.buffer, bytes(*r))?)
        }
        (
            GpuOp::IsProducerWarp(_)
            | GpuOp::GroupId(_)
            | GpuOp::GroupOwn(_)
            | GpuOp::Elect(_)
            | GpuOp::SetMaxRegisters(_)
            | GpuOp::ProducerSend(_)
            | GpuOp::ConsumerReceive(_)
            | GpuOp::ProducerAcquire(_)
            | GpuOp::ProducerCommit(_)
            | GpuOp::ProducerDrain(_)
            | GpuOp::ConsumerWait(_)
            | GpuOp::ConsumerRelease(_)
            | GpuOp::ConsumerSkip(_)
            | GpuOp::TurnWait(_)
            | GpuOp::TurnPass(_)
            | GpuOp::TmaLoad(_)
            | GpuOp::TmaStore(_)
            | GpuOp::TmaStoreWait(_),
            _,
            _,
        ) => warp_specialize::check(cx, inst, op, plain),
        _ => fault(S03, "operands or results are missing"),
    }
}

/// S04 of so many counts in a buffer.
fn fits(bins: i64, capacity: i64) -> Check {
    ensure((1..=capacity).contains(&bins), S04, || format!("{bins} counts in a buffer of {capacity}"))
}

/// S03 of a scatter.
fn scattered(cx: Cx<'_>, v: ValueId, at: ValueId, axis: usize) -> Check {
    ensure(cx.id(at) == cx.id(v) && cx.shape(at) == cx.shape(v), S03, || {
        "positions and elements differ in shape or layout".into()
    })?;
    ensure(cx.ty(at).dtype() == Some(DType::I32), S03, || "positions are ranks, `i32`".into())?;
    ensure(axis < cx.shape(v).len(), S03, || "there is no such dimension".into())
}

/// S03 of an optimization barrier.
fn hidden(cx: Cx<'_>, v: ValueId, r: ValueId) -> Check {
    let dtype = cx.ty(r).dtype().filter(|d| matches!(d, DType::F16 | DType::BF16));
    let same = cx.id(v) == cx.id(r) && cx.shape(v) == cx.shape(r) && dtype == cx.ty(v).dtype();
    ensure(same && dtype.is_some(), S03, || "it is no tile of halves, or changes it".into())
}

/// S03 of a gather.
fn gathered(cx: Cx<'_>, at: ValueId, r: ValueId) -> Check {
    ensure(cx.id(at) == cx.id(r) && cx.shape(at) == cx.shape(r), S03, || {
        "positions and result differ in shape or layout".into()
    })?;
    ensure(cx.ty(at).dtype().is_some_and(|d| d.is_int()), S03, || "positions are integers".into())
}

/// S03 of ranks.
fn ranked(cx: Cx<'_>, v: ValueId, r: ValueId) -> Check {
    let fits = cx.id(v) == cx.id(r) && cx.shape(v) == cx.shape(r);
    ensure(fits && cx.ty(r).dtype() == Some(DType::I32), S03, || {
        "the ranks are no `i32` for each element, where it lies".into()
    })
}

/// S03 of a histogram.
fn counted(cx: Cx<'_>, at: ValueId, mask: &[ValueId]) -> Check {
    let mask = mask.iter().all(|m| {
        cx.id(*m) == cx.id(at) && cx.shape(*m) == cx.shape(at) && cx.ty(*m).dtype() == Some(DType::Bool)
    });
    ensure(mask, S03, || "the mask differs in shape or layout, or is none".into())?;
    ensure(cx.ty(at).dtype().is_some_and(|d| d.is_int()), S03, || "positions are integers".into())
}

/// S04 of the elements of a tile, one by one.
fn placed(cx: Cx<'_>, placement: &Placement, v: ValueId, capacity: i64) -> Check {
    match placement {
        Placement::Swizzled { bases } => spread(cx, v, bases, capacity),
        Placement::Strided(strides) => strided(strides, cx.shape(v), capacity),
    }
}

/// The number of elements of this size that a buffer holds.
fn used(cx: Cx<'_>, buffer: usize, bytes: u64, sizes: &mut [Option<u64>]) -> Result<i64, Fault> {
    let found = cx.kernel.buffers.get(buffer).zip(sizes.get_mut(buffer));
    let Some((found, size)) = found else { return fault(S03, format!("there is no buffer {buffer}")) };
    ensure(*size.get_or_insert(bytes) == bytes, S03, || {
        format!("buffer {buffer} holds elements of another size than {bytes} bytes")
    })?;
    Ok(i64::from(found.bytes) / i64::try_from(bytes.max(1)).unwrap_or(i64::MAX))
}

/// The extents that are accessed if positions along `axis` are below `extent`.
fn along(axis: usize, extent: u32, shape: &[u32]) -> Result<Vec<u32>, Fault> {
    let mut shape = shape.to_vec();
    match shape.get_mut(axis) {
        Some(n) if extent > 0 => *n = extent,
        Some(_) | None => return fault(S03, "`axis` and `extent` name no positions"),
    }
    Ok(shape)
}

/// S04 of elements at `start` + the sum of their coordinates times `strides`.
fn strided(Strides { start, strides }: &Strides, shape: &[u32], capacity: i64) -> Check {
    ensure(strides.len() == shape.len(), S03, || {
        format!("{} strides for {} dimensions", strides.len(), shape.len())
    })?;
    let (mut low, mut high) = (i128::from(*start), i128::from(*start));
    for (stride, n) in strides.iter().zip(shape) {
        let far = i128::from(*stride) * (i128::from(*n) - 1);
        low += far.min(0);
        high += far.max(0);
    }
    ensure(low >= 0 && high < i128::from(capacity), S04, || {
        format!("elements {low} to {high} of a buffer of {capacity}")
    })
}

/// S04 of elements placed by `bases`; atoms are consecutive.
fn spread(cx: Cx<'_>, v: ValueId, bases: &[i64], capacity: i64) -> Check {
    if cx.layout(v).is_none() {
        return fault(S03, "a scalar has no bits of coordinates");
    }
    spread_over(cx.shape(v), bases, capacity)
}

/// The same for a tile of this shape.
pub(super) fn spread_over(shape: &[u32], bases: &[i64], capacity: i64) -> Check {
    let bits: u32 = shape.iter().map(|n| cut(*n).log2).sum();
    // Atoms share a group only if there are several.
    let atoms = shape.last().map_or(1, |n| cut(*n).repeats);
    let most = bits + atoms.next_power_of_two().trailing_zeros();
    ensure((bits..=most).contains(&(bases.len() as u32)), S03, || {
        format!("{} bases for {bits} bits", bases.len())
    })?;
    let inside = bases.iter().all(|b| (0..1i64 << bases.len().min(40)).contains(b));
    let elements = i64::try_from(swizzled_elements(shape, bases)).unwrap_or(i64::MAX);
    ensure(inside && elements <= capacity, S04, || format!("{elements} elements in a buffer of {capacity}"))?;
    let rank = Span::of(bases.iter().map(|b| b.cast_unsigned())).rank();
    ensure(rank == bases.len(), S04, || "two elements have one place".into())
}
