//! Computes how the instruction of a product tiles the operands.

use tk_tile::ValueId;

use crate::ir::kernel::Kernel;
use crate::ir::op::Product;
use crate::target::mma::{InstructionName, MmaKind, Tiles, find};

/// How instructions cover the result of a product; `None` if the target has no such instruction for it, or the
/// accumulator does not have the layout that it needs.
pub fn tiles(kernel: &Kernel, product: Product, instruction: InstructionName, acc: ValueId) -> Option<Tiles> {
    let ty = kernel.module.types.get(kernel.func().ty(acc));
    let Product { elems, k, precision, .. } = product;
    let kind = MmaKind { operands: elems, acc: ty.dtype()?, precision, k: Some(k).filter(|k| *k > 0)? };
    let matrix = find(kernel.options.spec, kind).find(|m| m.name == instruction.0)?;
    let [m, n] = *ty.shape()? else { return None };
    Tiles::of(matrix, [m, n], kernel.layout(acc)?)
}
