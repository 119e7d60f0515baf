//! Computes how the instruction of a product tiles the operands.

use tk_ops::DType;
use tk_tile::{Func, Inst, Module, ValueId};

use crate::ir::kernel::Kernel;
use crate::ir::op::Product;
use crate::target::mma::{InstructionName, MmaKind, Tiles, find};
use crate::target::precision::Precision;
use crate::target::spec::TargetSpec;

/// How instructions cover the result of a product; `None` if the target has no such instruction for it, or the
/// accumulator does not have the layout that it needs.
pub fn tiles(kernel: &Kernel, product: Product, instruction: InstructionName, acc: ValueId) -> Option<Tiles> {
    let ty = kernel.module.types.get(kernel.func().ty(acc));
    let Product { elems, k, precision, paired, .. } = product;
    let kind = MmaKind { operands: elems, acc: ty.dtype()?, precision, k: Some(k).filter(|k| *k > 0)? };
    let matrix = find(kernel.options.spec, kind).find(|m| m.name == instruction.0)?;
    let [m, n] = *ty.shape()? else { return None };
    let tiles = Tiles::of(matrix, [m, n], kernel.layout(acc)?)?;
    if !paired {
        return Some(tiles);
    }
    tiles.pairs(k, kernel.options.spec.vector_bytes).then(|| tiles.paired())
}

/// The matrix instruction kind of a `dot` on a target. 8-bit floats without an instruction are converted to f16, which
/// represents them exactly.
pub fn kind(spec: &TargetSpec, module: &Module, func: &Func, dot: &Inst) -> Option<MmaKind> {
    let [a, b, acc] = dot.operands.as_slice() else { return None };
    let ty = |v: ValueId| module.types.get(func.ty(v));
    let own = [ty(*a).dtype()?, ty(*b).dtype()?];
    let has = spec.matrices.iter().any(|m| own.iter().all(|d| m.operands.contains(d)));
    let operands = own.map(|d| if d.is_f8() && !has { DType::F16 } else { d });
    Some(MmaKind {
        operands,
        acc: ty(*acc).dtype()?,
        precision: Precision::of(&dot.attrs),
        k: *ty(*a).shape()?.get(1)?,
    })
}
