//! Owns S03 of what runs beside the program: copies, waits for them, and pieces of rings.
//!
//! May assume L01 and L03 to L06. Guarantees that emission finds what a copy reads, and the piece that is meant.

use tk_ops::{DType, MachineOp, Op};
use tk_tile::{Elem, Inst, InstId, Type, ValueId};

use super::fault::Invariant::S03;
use super::fault::{Check, ensure};
use super::layouts::Cx;
use super::scheduled::int;
use crate::ir::kernel::ALIGN;
use crate::ir::shared_access::{condition, loaded, named, slot, slots};

/// S03 of the condition and the number of a piece.
pub(super) fn ring(cx: Cx<'_>, inst: &Inst) -> Check {
    let is_bool = |v| cx.ty(v).dtype() == Some(DType::Bool) && cx.shape(v).is_empty();
    ensure(inst.attrs.flag("when") == condition(inst).is_some_and(is_bool), S03, || {
        "`when` needs a condition, `bool`".into()
    })?;
    let Some(pieces) = inst.attrs.ints("slots") else { return Ok(()) };
    let number = slot(inst).is_some_and(|v| cx.ty(v).dtype() == Some(DType::I32) && cx.shape(v).is_empty());
    let rings = slots(inst);
    ensure(number && named(inst).len() == pieces.len(), S03, || {
        "`slots` needs a number for each buffer, and a number of a piece, `i32`".into()
    })?;
    rings.iter().zip(pieces).try_for_each(|((b, n), piece)| {
        let bytes = cx.kernel.buffers.get(*b).map_or(0, |b| b.bytes);
        ensure(*piece == 1 || *piece > 0 && bytes % (n * ALIGN) == 0, S03, || {
            format!("buffer {b} of {bytes} bytes is no ring of {piece} pieces")
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
pub(super) fn piecewise(cx: Cx<'_>, inst: &Inst, v: ValueId) -> Check {
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
