//! Owns S03 and S04 of matrix products.
//!
//! May assume L01 and L03 to L06. Guarantees that emission finds every factor, and an instruction for it.

use tk_ops::DType;
use tk_tile::{Inst, ValueId};

use super::fault::Invariant::{S03, S04};
use super::fault::{Check, Fault, ensure, fault};
use super::layouts::Cx;
use super::scheduled::{int, spread_over};
use crate::analysis;
use crate::analysis::wgmma_shared::WgmmaShared;
use crate::layout::cut;

/// Notes that a buffer holds elements of so many bytes; gives how many there is room for.
pub(super) type UseOf<'a> = &'a mut dyn FnMut(i64, u64) -> Result<i64, Fault>;

/// A product of plain multiplications.
pub(super) fn plain(cx: Cx<'_>, inst: &Inst, acc: ValueId, r: ValueId, use_of: UseOf<'_>) -> Check {
    ensure(cx.id(acc) == cx.id(r) && cx.ty(acc) == cx.ty(r), S03, || {
        "accumulator and result differ in type or layout".into()
    })?;
    let k = int(&inst.attrs, "k")?;
    let elems: Vec<&str> = inst.attrs.str("elem").unwrap_or("").split(' ').collect();
    let (Some([a, b]), [m, n], [x, y]) = (inst.attrs.ints("buffers"), cx.shape(acc), elems.as_slice()) else {
        return fault(S03, "it needs two `buffers`, two names in `elem` and a matrix");
    };
    for (buffer, elem, rows) in [(*a, x, *m), (*b, y, *n)] {
        let Some(d) = DType::parse(elem) else { return fault(S03, format!("`{elem}` is no element type")) };
        let room = use_of(buffer, d.bytes() as u64)?;
        let elements = i128::from(rows) * i128::from(k);
        ensure(k > 0 && elements <= i128::from(room), S04, || {
            format!("{elements} elements of a factor in a buffer of {room}")
        })?;
    }
    Ok(())
}

/// A product of matrix instructions.
pub(super) fn instruction(
    cx: Cx<'_>,
    inst: &Inst,
    acc: ValueId,
    factors: &[ValueId],
    r: ValueId,
    use_of: UseOf<'_>,
) -> Check {
    ensure(cx.id(acc) == cx.id(r) && cx.ty(acc) == cx.ty(r), S03, || {
        "accumulator and result differ in type or layout".into()
    })?;
    let Some((k, tiles, elems)) = analysis::mma::product(cx.kernel, inst, acc) else {
        return fault(
            S03,
            "the target has no such instruction, or the accumulator does not lie as it asks for",
        );
    };
    let Some([a, b]) = inst.attrs.ints("buffers") else { return fault(S03, "it needs two `buffers`") };
    let flies = tiles.matrix.is_group() && cx.ty(acc).dtype() == Some(tiles.matrix.sum);
    ensure(flies || !inst.attrs.flag("async"), S03, || "it cannot be waited for later".into())?;
    let [m, n] = *cx.shape(acc) else { return fault(S03, "an accumulator is a matrix") };
    let mut factors = factors.iter();
    let sides = [(*a, "bases_a", [m, k]), (*b, "bases_b", [k, n])];
    for (side, ((buffer, bases, shape), elem)) in sides.into_iter().zip(elems).enumerate() {
        let found = inst.attrs.ints(bases);
        if buffer >= 0 {
            let Some(found) = found else { return fault(S03, format!("it needs `{bases}`")) };
            let room = use_of(buffer, elem.bytes() as u64)?;
            spread_over(&shape, found, room)?;
            let known = !tiles.matrix.is_group() || WgmmaShared::find(&tiles, side, elem, k, found).is_some();
            ensure(known, S03, || format!("a group does not read factors as `{bases}` says"))?;
            continue;
        }
        let Some(v) = factors.next() else { return fault(S03, "a factor is missing") };
        let wanted = tiles.factor(side, k).layout();
        let fits = cx.layout(*v) == wanted.as_ref()
            && (side == 0 || !tiles.matrix.is_group())
            && cx.shape(*v) == shape
            && cx.ty(*v).dtype() == Some(elem)
            && found.is_none();
        ensure(fits, S03, || format!("{v} is no factor that the instruction can take"))?;
    }
    ensure(factors.next().is_none(), S03, || "it has a factor too many".into())
}

/// A wait for products.
pub(super) fn wait(cx: Cx<'_>, inst: &Inst, v: ValueId, r: ValueId) -> Check {
    let pending = int(&inst.attrs, "pending")?;
    ensure(pending >= 0, S03, || format!("{pending} products cannot be on their way"))?;
    let known = |b: &i64| usize::try_from(*b).is_ok_and(|b| b < cx.kernel.buffers.len());
    ensure(inst.attrs.ints("buffers").is_some_and(|b| b.iter().all(known)), S03, || {
        "it names no `buffers` that products read".into()
    })?;
    ensure(cx.id(v) == cx.id(r) && cx.ty(v) == cx.ty(r), S03, || {
        "sums and result differ in type or layout".into()
    })
}

/// What one instruction multiplies of a factor.
pub(super) fn fragments(cx: Cx<'_>, inst: &Inst, acc: ValueId, r: ValueId, use_of: UseOf<'_>) -> Check {
    let Some((k, tiles, elems)) = analysis::mma::product(cx.kernel, inst, acc) else {
        return fault(
            S03,
            "the target has no such instruction, or the accumulator does not lie as it asks for",
        );
    };
    let side = usize::try_from(int(&inst.attrs, "axis")?).unwrap_or(usize::MAX);
    let (Some(elem), [m, n], Some(bases)) = (elems.get(side), cx.shape(acc), inst.attrs.ints("bases")) else {
        return fault(S03, "there are two factors, each with `bases`");
    };
    let own = 1u32 << tiles.matrix.k;
    let (whole, part) = if side == 0 { ([*m, k], [*m, own]) } else { ([k, *n], [own, *n]) };
    let fits = cx.layout(r) == tiles.factor(side, own).layout().as_ref()
        && cx.shape(r) == part
        && cx.ty(r).dtype() == Some(*elem);
    ensure(fits, S03, || format!("{r} is not what an instruction multiplies"))?;
    let start = int(&inst.attrs, "start")?;
    let steps = !tiles.matrix.is_group()
        && start % i64::from(own) == 0
        && (0..i64::from(k)).contains(&start)
        && cut(k).repeats == 1;
    ensure(steps, S03, || format!("no instruction begins at {start} of {k}"))?;
    let room = use_of(int(&inst.attrs, "buffer")?, elem.bytes() as u64)?;
    spread_over(&whole, bases, room)
}
