//! Verifies S03 and S04 of TMA pipelines.
//!
//! Requires L01 and L03 to L06. Guarantees that emission finds the mbarriers of each stage, and the box of each copy.

use tk_ops::DType;
use tk_tile::{BlockId, Inst, ValueId};

use super::fault::GpuInvariant::{S03, S04};
use super::fault::{Check, ensure, fault};
use super::layouts::Cx;
use crate::ir::kernel::BARRIERS;
use crate::ir::op::{
    ConsumerReceive, ConsumerRelease, GpuOp, IsProducerWarp, Pipeline, ProducerAcquire, ProducerCommit,
    ProducerDrain, ProducerSend, TmaBox, TurnPass, TurnWait,
};
use crate::ir::tensor_map;
use crate::ir::warps::{SETMAXNREG_MIN, SETMAXNREG_STEP, WARPGROUP_WARPS, producer, uses_setmaxnreg};
use crate::layout::padded;

/// An operation of a TMA pipeline with these operands, or about the registers of its warps.
pub(super) fn check(cx: Cx<'_>, inst: &Inst, op: &GpuOp, operands: &[ValueId]) -> Check {
    let scalar = |d: DType| match inst.results.as_slice() {
        [r] => ensure(cx.ty(*r).dtype() == Some(d) && cx.shape(*r).is_empty(), S03, || {
            format!("{r} is no `{d}`")
        }),
        _ => fault(S03, "it has one result"),
    };
    match (op, operands) {
        (GpuOp::IsProducerWarp(is), _) => scalar(DType::Bool).and_then(|()| beside(cx, is)),
        (GpuOp::Elect(_), _) => scalar(DType::Bool),
        (GpuOp::GroupId(_), _) => scalar(DType::I32),
        (GpuOp::GroupOwn(_), [all, own]) => {
            let dtype = cx.ty(*all).dtype().filter(|d| d.is_int());
            let alike = cx.ty(*all) == cx.ty(*own) && cx.shape(*all).is_empty();
            let dtype = dtype.filter(|_| alike);
            ensure(dtype.is_some(), S03, || "numbers of loops are integers of one type".into())?;
            dtype.map_or(Ok(()), scalar)
        }
        (GpuOp::SetMaxRegisters(set), _) => counted(cx, inst, set.count),
        (GpuOp::ConsumerWait(wait), _) => scalar(DType::I32).and_then(|()| barriers(cx, wait.pipeline)),
        (GpuOp::TmaLoad(load), [view, ..]) => {
            barriers(cx, load.pipeline)?;
            ensure(load.multicast.is_none() || tensor_map::boxes(cx.kernel, inst).is_some(), S03, || {
                "the blocks of a cluster cannot divide the box".into()
            })?;
            copy(cx, (load.destination, load.pipeline.stages), load.copied, *view)
        }
        (GpuOp::TmaStore(store), [view, ..]) => {
            let TmaBox { shape, span } = store.copied;
            let matrix = tensor_map::matrix(cx.kernel, *view);
            let line = u64::from(shape[1]) * matrix.map_or(1, |m| m.dtype.bytes() as u64);
            let whole = line.is_multiple_of(u64::from(span).max(1));
            ensure(whole && shape.iter().all(|n| padded(*n) == *n), S03, || "it stores padding".into())?;
            copy(cx, (store.buffer, 1), store.copied, *view)
        }
        (GpuOp::TmaStoreWait(_), []) => Ok(()),
        (GpuOp::ProducerAcquire(ProducerAcquire { pipeline, .. }), _)
        | (GpuOp::ProducerCommit(ProducerCommit { pipeline }), _)
        | (GpuOp::ProducerDrain(ProducerDrain { pipeline }), _)
        | (GpuOp::ConsumerRelease(ConsumerRelease { pipeline, .. }), _) => barriers(cx, *pipeline),
        (GpuOp::TurnWait(TurnWait { turns }) | GpuOp::TurnPass(TurnPass { turns }), []) => {
            turn_barriers(cx, *turns)
        }
        (GpuOp::ProducerSend(ProducerSend { pipeline, buffer }), [number]) => {
            message(cx, *number, *pipeline, *buffer)
        }
        (GpuOp::ConsumerReceive(ConsumerReceive { pipeline, buffer }), []) => match inst.results.as_slice() {
            [number] => message(cx, *number, *pipeline, *buffer),
            _ => fault(S03, "it has one result"),
        },
        (GpuOp::ConsumerSkip(skip), [stages]) => {
            let counts = cx.ty(*stages).dtype() == Some(DType::I32) && cx.shape(*stages).is_empty();
            ensure(counts, S03, || "it skips a number of stages, an `i32`".into())?;
            barriers(cx, skip.pipeline)
        }
        _ => fault(S03, "operands or results are missing"),
    }
}

/// There is one producer warp, or a warpgroup that releases registers.
fn beside(cx: Cx<'_>, is: &IsProducerWarp) -> Check {
    let known = is.warps.is_none_or(|n| n == WARPGROUP_WARPS && uses_setmaxnreg(cx.kernel));
    ensure(known, S03, || "so many warps bring no tiles".into())?;
    is.turns.map_or(Ok(()), |turns| turn_barriers(cx, turns))
}

/// There is an mbarrier for each warpgroup.
fn turn_barriers(cx: Cx<'_>, turns: usize) -> Check {
    let bytes = cx.kernel.options.groups * BARRIERS / 2;
    let fits = cx.kernel.buffers.get(turns).is_some_and(|b| b.bytes == bytes && b.is_common);
    ensure(fits, S04, || format!("buffer {turns} has no barriers of warpgroups"))
}

/// `setmaxnreg` is at the start of the branches for the roles of warps: the launch provides the registers, and whole
/// warpgroups execute it.
fn counted(cx: Cx<'_>, inst: &Inst, count: u32) -> Check {
    let spec = cx.kernel.options.spec;
    let fits = count.is_multiple_of(SETMAXNREG_STEP) && (SETMAXNREG_MIN..=spec.registers).contains(&count);
    let groups = cx.kernel.options.warps.is_multiple_of(WARPGROUP_WARPS);
    ensure(spec.moves_registers && groups && fits, S03, || {
        format!("no warpgroups hand {count} registers over")
    })?;
    let func = cx.kernel.func();
    let first = |b: &BlockId| func.blocks[*b].insts.first().map(|i| &func.insts[*i]);
    let parts = producer(cx.kernel).and_then(|(id, parts)| match GpuOp::of(&func.insts[id]) {
        Some(GpuOp::IsProducerWarp(is)) => Some((is.warps?, parts)),
        _ => None,
    });
    let Some((warps, parts)) = parts else {
        return fault(S03, "no warpgroup brings tiles beside the program");
    };
    let of = |inst: Option<&Inst>| match GpuOp::of(inst?)? {
        GpuOp::SetMaxRegisters(set) => Some(set.count),
        _ => None,
    };
    let [Some(few), Some(many)] = parts.each_ref().map(|b| of(first(b))) else {
        return fault(S03, "registers are handed over at the head of both ways, or of none");
    };
    let ways = parts.iter().filter(|b| first(b).is_some_and(|i| std::ptr::eq(i, inst))).count();
    ensure(ways == 1, S03, || "registers are handed over where the warps part".into())?;
    let own = cx.kernel.options.all_warps();
    let pool = cx.kernel.registers_of_launch();
    let (warps, own) = (u64::from(warps), u64::from(own));
    let asked = warps * u64::from(few) + own * u64::from(many);
    ensure(asked <= (warps + own) * u64::from(pool), S04, || {
        format!("{warps} warps with {few} registers and {own} with {many} have more than {pool} each")
    })
}

/// The mbarriers of a TMA pipeline.
fn barriers(cx: Cx<'_>, Pipeline { barriers, stages, .. }: Pipeline) -> Check {
    let found = cx.kernel.buffers.get(barriers);
    let fits = found.is_some_and(|b| Some(b.bytes) == stages.checked_mul(BARRIERS));
    ensure(fits && stages > 0, S04, || format!("buffer {barriers} has no barriers of {stages} stages"))
}

/// A number that the producer tells the consumers.
fn message(cx: Cx<'_>, number: ValueId, pipeline: Pipeline, buffer: usize) -> Check {
    let dtype = cx.ty(number).dtype().filter(|d| d.is_int() && d.bits() == 32);
    ensure(dtype.is_some() && cx.shape(number).is_empty(), S03, || format!("{number} has not 32 bits"))?;
    ensure(pipeline.stages == 1 && pipeline.peers == 1, S03, || "one number is sent at a time".into())?;
    let one_group = cx.kernel.options.groups == 1;
    let fits = cx.kernel.buffers.get(buffer).is_some_and(|b| b.bytes >= 4 && (b.is_common || one_group));
    ensure(fits, S04, || format!("buffer {buffer} has no place for a number of all warps"))?;
    barriers(cx, pipeline)
}

/// A copy to a stage of a buffer, or from a buffer.
fn copy(cx: Cx<'_>, (buffer, stages): (usize, u32), TmaBox { shape, span }: TmaBox, view: ValueId) -> Check {
    let Some(matrix) = tensor_map::matrix(cx.kernel, view) else {
        return fault(S03, "it copies from no matrix that the launch knows");
    };
    ensure(matrix.dimensions().len() <= tensor_map::MOST_DIMENSIONS, S03, || {
        "its map has too many dimensions".into()
    })?;
    ensure(shape.iter().all(|n| *n > 0), S03, || "it copies nothing".into())?;
    let wide = u64::from(padded(shape[1])) * matrix.dtype.bytes() as u64;
    ensure([32, 64, 128].contains(&span) && 2 * wide > u64::from(span), S03, || {
        format!("no lines have {span} bytes")
    })?;
    let all = u128::from(stages) * u128::from(tensor_map::placed_bytes(TmaBox { shape, span }, matrix.dtype));
    let fits = cx.kernel.buffers.get(buffer).is_some_and(|b| u128::from(b.bytes) == all);
    ensure(fits, S04, || format!("buffer {buffer} has not {stages} stages of what is copied"))
}
