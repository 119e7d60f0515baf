//! Decides which accesses to views address their elements by a uniform address and a 32-bit offset of each lane, whose bound
//! the hardware checks (buffer instructions of AMD): a masked lane then needs no branch.
//!
//! Guarantees that lanes differ only along one axis with stride 1, so that the offset of every lane is nonnegative and,
//! with the offset of any register of the same row, below 2^30.

use tk_ops::{MemoryOp, Op};
use tk_tile::{Inst, ValueId};

use crate::analysis::axis::AxisInfo;
use crate::ir::caching::{Caching, Level};
use crate::ir::kernel::Kernel;
use crate::ir::params::element_bytes;
use crate::layout::linear::InDim;
use crate::layout::padded;

/// The most bytes of a row of a box: an offset of a lane and one of a register are each below it.
const LONGEST_ROW: u64 = 1 << 29;

/// The axis along which the lanes of an access with the elements `v` differ, if its bounds may be left to the hardware.
pub fn bounded(kernel: &Kernel, axis: &AxisInfo, inst: &Inst, v: ValueId) -> Option<usize> {
    let is_box = matches!(inst.op, Op::Memory(MemoryOp::ViewLoad | MemoryOp::ViewStore));
    // Cache policies of buffer instructions are the compiler's; those of volatile accesses are left to LLVM.
    if !is_box || !kernel.options.spec.has_bounded_access || Caching::of(&inst.attrs).level == Level::Volatile
    {
        return None;
    }
    let layout = kernel.layout(v).filter(|l| l.is_disjoint())?;
    let ty = kernel.module.types.get(kernel.func().ty(v));
    let view = axis.view(*inst.operands.first()?)?;
    let fast = view.strides.iter().position(|(_, is_one)| *is_one)?;
    let atom = layout.atom();
    let bases = |dim: InDim| (0..atom.bits(dim)).filter_map(move |i| atom.basis(dim, i));
    let mut of_threads = bases(InDim::Lane).chain(bases(InDim::Warp));
    let along = of_threads.all(|b| b.iter().enumerate().all(|(d, c)| d == fast || *c == 0));
    let row = u64::from(padded(*ty.shape()?.get(fast)?)) * element_bytes(ty.elem());
    (along && row <= LONGEST_ROW).then_some(fast)
}
