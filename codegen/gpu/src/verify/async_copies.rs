//! Verifies S03 of asynchronous operations: copies, waits for them, and stages of multi-stage buffers.
//!
//! Requires L01 and L03 to L06. Guarantees that emission finds the source of a copy, and the stage.

use tk_ops::DType;
use tk_tile::{ElemType, Inst, InstId, Type, ValueId};

use super::fault::GpuInvariant::S03;
use super::fault::{Check, ensure};
use super::layouts::Cx;
use crate::ir::kernel::ALIGN;
use crate::ir::op::{BufferRef, GpuOp};
use crate::ir::shared_access::{buffers, has_predicate, loaded, predicate, stage_index};

/// S03 of the predicate and the number of a stage.
pub(super) fn multi_stage(cx: Cx<'_>, inst: &Inst) -> Check {
    let is_bool = |v| cx.ty(v).dtype() == Some(DType::Bool) && cx.shape(v).is_empty();
    ensure(!has_predicate(inst) || predicate(inst).is_some_and(is_bool), S03, || {
        "`when` needs a predicate, `bool`".into()
    })?;
    let buffers = buffers(inst);
    if buffers.iter().all(|b| b.stages.is_none()) {
        return Ok(());
    }
    let number =
        stage_index(inst).is_some_and(|v| cx.ty(v).dtype() == Some(DType::I32) && cx.shape(v).is_empty());
    ensure(number, S03, || "a multi-stage buffer needs the number of a stage, `i32`".into())?;
    buffers.iter().try_for_each(|BufferRef { buffer, stages }| {
        let (bytes, n) = (cx.kernel.buffers.get(*buffer).map_or(0, |b| b.bytes), stages.unwrap_or(1));
        let whole = n.checked_mul(ALIGN).is_some_and(|all| all > 0 && bytes % all == 0);
        ensure(n == 1 || whole, S03, || format!("buffer {buffer} of {bytes} bytes has no {n} equal stages"))
    })
}

/// S03 of the source of a copy: that of a load, without a value for elements that it leaves out.
pub(super) fn source(cx: Cx<'_>, operands: &[ValueId], place: ValueId, r: ValueId) -> Check {
    let ok = match cx.ty(place) {
        Type::View { elem, rank, .. } => {
            operands.len() == 1 + *rank as usize
                && elem == cx.ty(r).elem()
                && cx.shape(r).len() == *rank as usize
        }
        Type::Tile { elem: ElemType::Ptr { pointee, .. }, shape } => {
            let mask = |m: &ValueId| cx.id(*m) == cx.id(r) && cx.shape(*m) == shape;
            operands.len() <= 2
                && operands.iter().all(mask)
                && **pointee == *cx.ty(r).elem()
                && cx.shape(r) == shape
        }
        Type::Tile { .. } => false,
    };
    ensure(ok && !cx.shape(r).is_empty(), S03, || "it copies no tile of this type from there".into())
}

/// S03 of a load that its store does: only barriers, which count it as part of the store, are between them.
pub(super) fn chunked(cx: Cx<'_>, inst: &Inst, v: ValueId) -> Check {
    let func = cx.kernel.func();
    let found = func.blocks.iter().find_map(|(_, b)| {
        let store = *b.insts.iter().find(|i| std::ptr::eq(&raw const func.insts[**i], inst))?;
        let load = loaded(cx.kernel, store)?;
        let mut after = b.insts.iter().skip_while(|i| **i != load).skip(1);
        let is_barrier =
            |i: &InstId| matches!(GpuOp::of(&func.insts[*i]), Some(GpuOp::Barrier(_) | GpuOp::ProxyFence(_)));
        after.find(|i| !is_barrier(i)).filter(|i| **i == store)
    });
    ensure(found.is_some(), S03, || format!("{v} is not loaded in front of it, for it alone"))
}
