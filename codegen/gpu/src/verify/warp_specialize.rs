//! Owns S03 and S04 of TMA pipelines.
//!
//! May assume L01 and L03 to L06. Guarantees that emission finds the barriers of each stage, and what a copy brings.

use tk_ops::{DType, MachineOp, Op};
use tk_tile::{BlockId, Inst, ValueId};

use super::fault::Invariant::{S03, S04};
use super::fault::{Check, ensure, fault};
use super::layouts::Cx;
use super::scheduled::int;
use crate::ir::kernel::BARRIERS;
use crate::ir::tensor_map;
use crate::ir::warps::{FEWEST, GROUP, STEP, moves, producer};
use crate::layout::padded;

/// An operation of a TMA pipeline with these operands.
pub(super) fn check(cx: Cx<'_>, inst: &Inst, op: MachineOp, operands: &[ValueId]) -> Check {
    let scalar = |d: DType| match inst.results.as_slice() {
        [r] => ensure(cx.ty(*r).dtype() == Some(d) && cx.shape(*r).is_empty(), S03, || {
            format!("{r} is no `{d}`")
        }),
        _ => fault(S03, "it has one result"),
    };
    match (op, operands) {
        (MachineOp::IsProducerWarp, _) => scalar(DType::Bool).and_then(|()| beside(cx, inst)),
        (MachineOp::Elect, _) => scalar(DType::Bool),
        (MachineOp::SetMaxRegisters, _) => counted(cx, inst),
        (MachineOp::ConsumerWait, _) => scalar(DType::I32).and_then(|()| barriers(cx, inst)),
        (MachineOp::TmaLoad | MachineOp::TmaStore, [view, ..]) => copy(cx, inst, *view),
        _ => barriers(cx, inst),
    }
}

/// One warp brings tiles, or a warpgroup that hands registers over.
fn beside(cx: Cx<'_>, inst: &Inst) -> Check {
    let alone = inst.attrs.get("warps").is_none();
    let group = int(&inst.attrs, "warps").is_ok_and(|n| n == i64::from(GROUP)) && moves(cx.kernel);
    ensure(alone || group, S03, || "so many warps bring no tiles".into())
}

/// Registers are handed over where the warps part: there are those that the launch gave, and a warpgroup does it together.
fn counted(cx: Cx<'_>, inst: &Inst) -> Check {
    let count = int(&inst.attrs, "count")?;
    let spec = cx.kernel.options.spec;
    let (step, least) = (i64::from(STEP), i64::from(FEWEST));
    let fits = count % step == 0 && (least..=i64::from(spec.registers)).contains(&count);
    let groups = cx.kernel.options.warps.is_multiple_of(GROUP);
    ensure(spec.moves_registers && groups && fits, S03, || {
        format!("no warpgroups hand {count} registers over")
    })?;
    let func = cx.kernel.func();
    let first = |b: &BlockId| func.blocks[*b].insts.first().map(|i| &func.insts[*i]);
    let parts = producer(cx.kernel).map(|(id, parts)| (func.insts[id].attrs.int("warps"), parts));
    let Some((Some(warps), parts)) = parts else {
        return fault(S03, "no warpgroup brings tiles beside the program");
    };
    let of = |inst: Option<&Inst>| {
        inst.filter(|i| i.op == Op::Machine(MachineOp::SetMaxRegisters))?.attrs.int("count")
    };
    let [Some(few), Some(many)] = parts.each_ref().map(|b| of(first(b))) else {
        return fault(S03, "registers are handed over at the head of both ways, or of none");
    };
    let ways = parts.iter().filter(|b| first(b).is_some_and(|i| std::ptr::eq(i, inst))).count();
    ensure(ways == 1, S03, || "registers are handed over where the warps part".into())?;
    let own = 1i64 << cx.kernel.options.threads().warp_bits;
    let pool = i64::from(cx.kernel.registers_of_launch());
    ensure(warps * few + own * many <= (warps + own) * pool, S04, || {
        format!("{warps} warps with {few} registers and {own} with {many} have more than {pool} each")
    })
}

/// The barriers of a TMA pipeline.
fn barriers(cx: Cx<'_>, inst: &Inst) -> Check {
    let (buffer, stages) = (int(&inst.attrs, "buffer")?, int(&inst.attrs, "pipeline_stages")?);
    let found = usize::try_from(buffer).ok().and_then(|b| cx.kernel.buffers.get(b));
    let fits = found.is_some_and(|b| i64::from(b.bytes) == stages * i64::from(BARRIERS));
    ensure(fits && stages > 1, S04, || format!("buffer {buffer} has no barriers of {stages} stages"))
}

/// A copy to the open stage of a TMA pipeline, or from a buffer.
fn copy(cx: Cx<'_>, inst: &Inst, view: ValueId) -> Check {
    let (stages, span) = (inst.attrs.int("pipeline_stages").unwrap_or(1), int(&inst.attrs, "span")?);
    let Some(matrix) = tensor_map::matrix(cx.kernel, view) else {
        return fault(S03, "it copies from no matrix that the launch knows");
    };
    ensure(matrix.dimensions().len() <= tensor_map::MOST_DIMENSIONS, S03, || {
        "its map has too many dimensions".into()
    })?;
    let buffer = match inst.attrs.ints("buffers") {
        Some([buffer, _]) => Some(*buffer),
        _ => inst.attrs.int("buffer"),
    };
    let (Some(buffer), Some([tall, wide])) = (buffer, inst.attrs.ints("shape")) else {
        return fault(S03, "it needs one buffer or two, and a `shape`");
    };
    let is_store = inst.op == Op::Machine(MachineOp::TmaStore);
    let padding = [*tall, *wide].iter().any(|n| u32::try_from(*n).is_ok_and(|n| padded(n) != n));
    ensure(!is_store || !padding, S03, || "it stores padding".into())?;
    let extent = |n: i64| u32::try_from(n).ok().filter(|n| *n > 0).map(|n| i64::from(padded(n)));
    let (Some(tall), Some(wide)) = (extent(*tall), extent(*wide)) else {
        return fault(S03, "it copies nothing");
    };
    let bytes = matrix.dtype.bytes() as i64;
    ensure([32, 64, 128].contains(&span) && wide * bytes >= span, S03, || {
        format!("no lines have {span} bytes")
    })?;
    let found = usize::try_from(buffer).ok().and_then(|b| cx.kernel.buffers.get(b));
    let fits = found.is_some_and(|b| i64::from(b.bytes) == stages * tall * wide * bytes);
    ensure(fits, S04, || format!("buffer {buffer} has not {stages} stages of what is copied"))
}
