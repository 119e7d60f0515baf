//! What the warps of a kernel do: compute, or bring tiles for those that do; and the registers that they hand over.

use tk_ops::{ControlOp, Op};
use tk_tile::{BlockId, InstId, walk};

use crate::ir::kernel::Kernel;
use crate::ir::op::GpuOp;

/// Warps that hand registers over together, by the definition of `setmaxnreg`.
pub const GROUP: u32 = 4;

/// The fewest registers that `setmaxnreg` leaves a lane.
pub const FEWEST: u32 = 24;

/// Registers are given out by so many for each lane.
pub const STEP: u32 = 8;

/// Whether warps of a kernel hand registers over.
pub fn moves(kernel: &Kernel) -> bool {
    let func = kernel.func();
    walk::insts(func)
        .into_iter()
        .any(|i| matches!(GpuOp::of(&func.insts[i]), Some(GpuOp::SetMaxRegisters(_))))
}

/// What tells the warps apart, and what they do: those that bring tiles, and the others.
pub fn producer(kernel: &Kernel) -> Option<(InstId, [BlockId; 2])> {
    let func = kernel.func();
    let all = walk::insts(func);
    let id =
        all.iter().copied().find(|i| matches!(GpuOp::of(&func.insts[*i]), Some(GpuOp::IsProducerWarp(_))))?;
    let flag = func.insts[id].results.first()?;
    let choice = all
        .into_iter()
        .map(|i| &func.insts[i])
        .find(|i| i.op == Op::Control(ControlOp::If) && i.operands.first() == Some(flag))?;
    Some((id, choice.blocks.clone().try_into().ok()?))
}

/// Warps beside those of the program: the one that brings tiles, with those of its group if it hands registers over; else 0.
pub fn producers(kernel: &Kernel) -> u32 {
    let func = kernel.func();
    let is = walk::insts(func).into_iter().find_map(|i| match GpuOp::of(&func.insts[i]) {
        Some(GpuOp::IsProducerWarp(is)) => Some(is.warps.unwrap_or(1)),
        _ => None,
    });
    is.unwrap_or(0)
}
