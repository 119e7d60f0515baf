//! Distinguishes the warps of a kernel: producers of tiles and consumers; and the registers that they exchange.

use tk_ops::{ControlOp, Op};
use tk_tile::rewrite::definition;
use tk_tile::{BlockId, Func, Inst, InstId, ValueId, walk};

use crate::ir::kernel::Kernel;
use crate::ir::op::GpuOp;

/// Warps that change their registers together, by the definition of `setmaxnreg`.
pub const WARPGROUP_WARPS: u32 = 4;

/// How many iterations ahead a loop whose halves of the warps are in opposite phases loads tiles.
pub const AHEAD_IN_PHASES: u32 = 2;

/// The fewest registers that `setmaxnreg` leaves a lane.
pub const SETMAXNREG_MIN: u32 = 24;

/// The granularity of registers of a lane.
pub const SETMAXNREG_STEP: u32 = 8;

/// Returns true if warps of a kernel change their number of registers.
pub fn uses_setmaxnreg(kernel: &Kernel) -> bool {
    let func = kernel.func();
    walk::insts(func)
        .into_iter()
        .any(|i| matches!(GpuOp::of(&func.insts[i]), Some(GpuOp::SetMaxRegisters(_))))
}

/// The branch on the role of a warp, with its blocks: those of producers, and of the others.
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

/// Returns true if warpgroups take the iterations of a loop in turns: each begins with its own.
pub fn takes_turns(func: &Func, inst: &Inst) -> bool {
    let begins = inst.operands.first().and_then(|v| definition(func, *v)).and_then(GpuOp::of);
    inst.op == Op::Control(ControlOp::For) && matches!(begins, Some(GpuOp::GroupOwn(_)))
}

/// Returns true if each warpgroup takes numbers from a counter that a program takes once: no producer takes them for all groups
/// ([`crate::passes::warp_specialize`]).
pub fn repeats_counts(kernel: &Kernel) -> bool {
    let func = kernel.func();
    let consumers = producer(kernel).map_or(func.body, |(_, [_, rest])| rest);
    let is_scalar = |v: &ValueId| kernel.module.types.get(func.ty(*v)).shape().is_some_and(<[u32]>::is_empty);
    kernel.options.groups > 1
        && walk::insts_in(func, consumers).into_iter().map(|i| &func.insts[i]).any(|inst| {
            matches!(inst.op, Op::Atomic(_)) && !inst.results.is_empty() && inst.results.iter().all(is_scalar)
        })
}

/// The number of warps beside those of the program: the producer, with the rest of its warpgroup if it gives up
/// registers; 0 without one.
pub fn producers(kernel: &Kernel) -> u32 {
    let func = kernel.func();
    let is = walk::insts(func).into_iter().find_map(|i| match GpuOp::of(&func.insts[i]) {
        Some(GpuOp::IsProducerWarp(is)) => Some(is.warps.unwrap_or(1)),
        _ => None,
    });
    is.unwrap_or(0)
}
