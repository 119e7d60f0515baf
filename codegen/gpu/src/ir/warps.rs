//! What the warps of a kernel do: compute, or bring tiles for those that do; and the registers that they hand over.

use tk_ops::{ControlOp, MachineOp, Op};
use tk_tile::{BlockId, InstId, walk};

use crate::ir::kernel::Kernel;

/// Warps that hand registers over together, by the definition of `setmaxnreg`.
pub const GROUP: u32 = 4;

/// The fewest registers that `setmaxnreg` leaves a lane.
pub const FEWEST: u32 = 24;

/// Registers are given out by so many for each lane.
pub const STEP: u32 = 8;

/// Whether warps of a kernel hand registers over.
pub fn moves(kernel: &Kernel) -> bool {
    let func = kernel.func();
    walk::insts(func).into_iter().any(|i| func.insts[i].op == Op::Machine(MachineOp::SetMaxRegisters))
}

/// What tells the warps apart, and what they do: those that bring tiles, and the others.
pub fn producer(kernel: &Kernel) -> Option<(InstId, [BlockId; 2])> {
    let func = kernel.func();
    let all = walk::insts(func);
    let id = all.iter().copied().find(|i| func.insts[*i].op == Op::Machine(MachineOp::IsProducerWarp))?;
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
    let producer =
        walk::insts(func).into_iter().find(|i| func.insts[*i].op == Op::Machine(MachineOp::IsProducerWarp));
    let warps = |i: InstId| func.insts[i].attrs.int("warps").and_then(|n| u32::try_from(n).ok());
    producer.map_or(0, |i| warps(i).unwrap_or(1))
}
