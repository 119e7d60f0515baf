//! Which instruction a product uses, and how it tiles the operands.

use tk_ops::DType;
use tk_tile::{Inst, ValueId};

use crate::ir::kernel::Kernel;
use crate::target::mma::{Kind, Tiles, find};

/// The elements of a sum, how instructions cover the result, and the types of the factors of an operation that names an
/// instruction; `None` if the target has no such one, or the accumulator is not held as it asks for.
pub fn product(kernel: &Kernel, inst: &Inst, acc: ValueId) -> Option<(u32, Tiles, [DType; 2])> {
    let ty = kernel.module.types.get(kernel.func().ty(acc));
    let mut elems = inst.attrs.str("elem")?.split(' ').map(DType::parse);
    let factors = [elems.next()??, elems.next()??];
    let k = inst.attrs.int("k").and_then(|k| u32::try_from(k).ok()).filter(|k| *k > 0)?;
    let kind = Kind { factors, sum: ty.dtype()?, precision: inst.attrs.str("precision"), k };
    let named = inst.attrs.str("matrix").filter(|_| elems.next().is_none())?;
    let matrix = find(kernel.options.spec, kind).find(|m| m.name == named)?;
    let [m, n] = *ty.shape()? else { return None };
    Some((k, Tiles::of(matrix, [m, n], kernel.layout(acc)?)?, factors))
}
