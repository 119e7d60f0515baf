//! Owns S03 of what runs beside the program: copies, waits for them, and stages of multi-stage buffers.
//!
//! May assume L01 and L03 to L06. Guarantees that emission finds what a copy reads, and the stage that is meant.

use tk_ops::{DType, MachineOp, Op};
use tk_tile::{Elem, Inst, InstId, Type, ValueId};

use super::fault::Invariant::S03;
use super::fault::{Check, ensure};
use super::layouts::Cx;
use super::scheduled::int;
use crate::ir::kernel::ALIGN;
use crate::ir::shared_access::{buffer_stages, condition, loaded, named, stage_index};

/// S03 of the condition and the number of a stage.
pub(super) fn multi_stage(cx: Cx<'_>, inst: &Inst) -> Check {
    let is_bool = |v| cx.ty(v).dtype() == Some(DType::Bool) && cx.shape(v).is_empty();
    ensure(inst.attrs.flag("when") == condition(inst).is_some_and(is_bool), S03, || {
        "`when` needs a condition, `bool`".into()
    })?;
    let Some(stages) = inst.attrs.ints("buffer_stages") else { return Ok(()) };
    let number =
        stage_index(inst).is_some_and(|v| cx.ty(v).dtype() == Some(DType::I32) && cx.shape(v).is_empty());
    let multi_stage_buffers = buffer_stages(inst);
    ensure(number && named(inst).len() == stages.len(), S03, || {
        "`buffer_stages` needs a number for each buffer, and a number of a stage, `i32`".into()
    })?;
    multi_stage_buffers.iter().zip(stages).try_for_each(|((b, n), stage)| {
        let bytes = cx.kernel.buffers.get(*b).map_or(0, |b| b.bytes);
        ensure(*stage == 1 || *stage > 0 && bytes % (n * ALIGN) == 0, S03, || {
            format!("buffer {b} of {bytes} bytes is no multi_stage of {stage} stages")
        })
    })
}

/// S03 of what a copy reads: as a load does, without a value for what it leaves out.
pub(super) fn source(cx: Cx<'_>, operands: &[ValueId], place: ValueId, r: ValueId) -> Check {
    let ok = match cx.ty(place) {
        Type::View { elem, rank, .. } => {
            operands.len() == 1 + *rank as usize
                && elem == cx.ty(r).elem()
                && cx.shape(r).len() == *rank as usize
        }
        Type::Tile { elem: Elem::Ptr { pointee, .. }, shape } => {
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

/// S03 of a wait.
pub(super) fn pending(inst: &Inst) -> Check {
    let pending = int(&inst.attrs, "pending")?;
    ensure(pending >= 0, S03, || format!("{pending} groups cannot be on their way"))
}

/// S03 of a load that its store does: nothing but meetings of threads stands between them, which count it to the store.
pub(super) fn chunked(cx: Cx<'_>, inst: &Inst, v: ValueId) -> Check {
    let func = cx.kernel.func();
    let found = func.blocks.iter().find_map(|(_, b)| {
        let store = *b.insts.iter().find(|i| std::ptr::eq(&raw const func.insts[**i], inst))?;
        let load = loaded(cx.kernel, store)?;
        let mut behind = b.insts.iter().skip_while(|i| **i != load).skip(1);
        let meets =
            |i: &InstId| matches!(func.insts[*i].op, Op::Machine(MachineOp::Barrier | MachineOp::ProxyFence));
        behind.find(|i| !meets(i)).filter(|i| **i == store)
    });
    ensure(found.is_some(), S03, || format!("{v} is not loaded in front of it, for it alone"))
}
