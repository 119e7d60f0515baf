//! Verifies S03 and S04 of matrix products.
//!
//! Requires L01 and L03 to L06. Guarantees that emission finds every operand, and an instruction for it.

use tk_tile::ValueId;

use super::fault::GpuInvariant::{S03, S04};
use super::fault::{Check, Fault, ensure, fault};
use super::layouts::Cx;
use super::scheduled::spread_over;
use crate::analysis;
use crate::analysis::wgmma_shared::WgmmaShared;
use crate::ir::op::{Fragments, Mma, MmaOperand, MmaWait, Product, SharedDot};
use crate::layout::cut;
use crate::target::mma::{InstructionName, Tiles};

/// Records the size of the elements of a buffer; returns the number that it holds.
pub(super) type UseOf<'a> = &'a mut dyn FnMut(usize, u64) -> Result<i64, Fault>;

/// Accumulator and result have the same type and layout.
fn accumulates(cx: Cx<'_>, acc: ValueId, r: ValueId) -> Check {
    ensure(cx.id(acc) == cx.id(r) && cx.ty(acc) == cx.ty(r), S03, || {
        "accumulator and result differ in type or layout".into()
    })
}

/// A product of plain multiplications.
pub(super) fn plain(cx: Cx<'_>, dot: &SharedDot, acc: ValueId, r: ValueId, use_of: UseOf<'_>) -> Check {
    accumulates(cx, acc, r)?;
    let [m, n] = *cx.shape(acc) else { return fault(S03, "an accumulator is a matrix") };
    let Product { elems, k, .. } = dot.product;
    for ((buffer, elem), rows) in dot.buffers.iter().zip(elems).zip([m, n]) {
        let capacity = use_of(buffer.buffer, elem.bytes() as u64)?;
        let elements = i128::from(rows) * i128::from(k);
        ensure(k > 0 && elements <= i128::from(capacity), S04, || {
            format!("{elements} elements of an operand in a buffer of {capacity}")
        })?;
    }
    Ok(())
}

/// The tiling of the result by instructions of this name.
fn tiles(cx: Cx<'_>, product: Product, instruction: InstructionName, acc: ValueId) -> Result<Tiles, Fault> {
    let tiles = analysis::mma::tiles(cx.kernel, product, instruction, acc);
    let why = "the target has no such instruction, or the accumulator does not have its layout";
    tiles.map_or_else(|| fault(S03, why), Ok)
}

/// A product of matrix instructions.
pub(super) fn instruction(
    cx: Cx<'_>,
    mma: &Mma,
    acc: ValueId,
    operands: &[ValueId],
    r: ValueId,
    use_of: UseOf<'_>,
) -> Check {
    accumulates(cx, acc, r)?;
    let tiles = tiles(cx, mma.product, mma.instruction, acc)?;
    let Product { elems, k, .. } = mma.product;
    let flies = tiles.matrix.is_wgmma() && cx.ty(acc).dtype() == Some(tiles.matrix.acc);
    ensure(flies || !mma.asynchronous, S03, || "it cannot be waited for later".into())?;
    let [m, n] = *cx.shape(acc) else { return fault(S03, "an accumulator is a matrix") };
    let mut operands = operands.iter();
    let sides = [(&mma.a, [m, k]), (&mma.b, [k, n])];
    for (side, ((operand, shape), elem)) in sides.into_iter().zip(elems).enumerate() {
        if let MmaOperand::Shared { buffer, bases, .. } = operand {
            let capacity = use_of(buffer.buffer, elem.bytes() as u64)?;
            spread_over(&shape, bases, capacity)?;
            let known = !tiles.matrix.is_wgmma() || WgmmaShared::find(&tiles, side, elem, k, bases).is_some();
            ensure(known, S03, || {
                format!("wgmma does not read operands as `{}_bases` says", ["a", "b"][side.min(1)])
            })?;
            continue;
        }
        let Some(v) = operands.next() else { return fault(S03, "an operand is missing") };
        let wanted = tiles.operand(side, k).layout();
        let fits = cx.layout(*v) == wanted.as_ref()
            && (side == 0 || !tiles.matrix.is_wgmma())
            && cx.shape(*v) == shape
            && cx.ty(*v).dtype() == Some(elem);
        ensure(fits, S03, || format!("{v} is no operand that the instruction can take"))?;
    }
    ensure(operands.next().is_none(), S03, || "it has an operand too many".into())
}

/// A wait for products.
pub(super) fn wait(cx: Cx<'_>, wait: &MmaWait, v: ValueId, r: ValueId) -> Check {
    ensure(wait.buffers.iter().all(|b| *b < cx.kernel.buffers.len()), S03, || {
        "it names no `buffers` that products read".into()
    })?;
    ensure(cx.id(v) == cx.id(r) && cx.ty(v) == cx.ty(r), S03, || {
        "sums and result differ in type or layout".into()
    })
}

/// The part of an operand that one instruction multiplies, or the operand.
pub(super) fn fragments(
    cx: Cx<'_>,
    fragments: &Fragments,
    acc: ValueId,
    r: ValueId,
    use_of: UseOf<'_>,
) -> Check {
    let tiles = tiles(cx, fragments.product, fragments.instruction, acc)?;
    let (Product { elems, k, .. }, side, start) = (fragments.product, fragments.axis, fragments.start);
    let (Some(elem), [m, n]) = (elems.get(side), cx.shape(acc)) else {
        return fault(S03, "there are two operands of a matrix");
    };
    let own = 1u32 << tiles.matrix.k;
    let part = |k: u32| if side == 0 { [*m, k] } else { [k, *n] };
    let whole = part(k);
    let is_whole = start == 0 && cx.shape(r) == whole;
    let along = if is_whole { k } else { own };
    let fits = cx.layout(r) == tiles.operand(side, along).layout().as_ref()
        && cx.shape(r) == part(along)
        && cx.ty(r).dtype() == Some(*elem);
    ensure(fits, S03, || format!("{r} is not what an instruction multiplies"))?;
    let one = start.is_multiple_of(own) && start < k && cut(k).repeats == 1 && !tiles.is_paired();
    let steps = !tiles.matrix.is_wgmma() && (is_whole || one);
    ensure(steps, S03, || format!("no instruction begins at {start} of {k}"))?;
    let capacity = use_of(fragments.buffer.buffer, elem.bytes() as u64)?;
    spread_over(&whole, &fragments.bases, capacity)
}
