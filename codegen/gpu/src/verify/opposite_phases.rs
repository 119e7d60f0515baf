//! Verifies S12: loops whose halves of the warps are in opposite phases.
//!
//! Requires L01 and S03. Guarantees what the proof in [`crate::passes::software_pipeline`] requires of the places of barriers and of
//! accesses to shared memory. Which stage an access has follows from that pass; the simulated target, whose lanes are ordered by
//! barriers alone, checks it.

use std::collections::BTreeSet;

use tk_ops::{ControlOp, Op};
use tk_tile::{BlockId, InstId, walk};

use super::fault::GpuInvariant::S12;
use super::fault::{GpuVerifyError, at, fault};
use crate::ir::kernel::Kernel;
use crate::ir::op::{GpuOp, HalfBarrier, PhaseBarrier};
use crate::ir::shared_access::{buffers, is_ahead, touched};

/// Checks the barriers of halves and phases.
pub(super) fn check(kernel: &Kernel) -> Result<(), GpuVerifyError> {
    let func = kernel.func();
    let mut known = BTreeSet::new();
    for (_, block) in func.blocks.iter() {
        for around in block.insts.windows(4) {
            known.extend(phases(kernel, around)?);
        }
    }
    for id in walk::insts(func) {
        let inst = &func.insts[id];
        let parts = matches!(GpuOp::of(inst), Some(GpuOp::HalfBarrier(_) | GpuOp::PhaseBarrier(_)));
        if parts && !known.contains(&id) {
            return fault(S12, "it is not where a loop in opposite phases has it")
                .map_err(|f| at(inst, id, f));
        }
    }
    Ok(())
}

/// The barriers of a loop in opposite phases, with what is around it: a barrier, the upper half, the loop, the lower half.
fn phases(kernel: &Kernel, around: &[InstId]) -> Result<Vec<InstId>, GpuVerifyError> {
    let func = kernel.func();
    let op = |i: InstId| GpuOp::of(&func.insts[i]);
    let [barrier, upper, looped, lower] = *around else { return Ok(vec![]) };
    let is_half = |i: InstId, half: bool| op(i) == Some(&GpuOp::HalfBarrier(HalfBarrier { upper: half }));
    let parts =
        matches!(op(barrier), Some(GpuOp::Barrier(_))) && is_half(upper, true) && is_half(lower, false);
    let (Some(body), true) = (func.insts[looped].blocks.first(), parts) else { return Ok(vec![]) };
    if func.insts[looped].op != Op::Control(ControlOp::For) || !kernel.options.all_warps().is_multiple_of(2) {
        return Ok(vec![]);
    }
    let [first, second] = body_phases(kernel, *body)?;
    Ok([upper, lower].into_iter().chain(first).chain(second).collect())
}

/// The ends of both phases of an iteration, as far as they are where they have to be.
fn body_phases(kernel: &Kernel, body: BlockId) -> Result<[Option<InstId>; 2], GpuVerifyError> {
    let func = kernel.func();
    let insts = &func.blocks[body].insts;
    let is_end = |i: InstId, multiplies: bool| {
        GpuOp::of(&func.insts[i]) == Some(&GpuOp::PhaseBarrier(PhaseBarrier { multiplies }))
    };
    let first = insts.iter().copied().find(|i| is_end(*i, true));
    let after = insts.iter().copied().skip_while(|i| Some(*i) != first);
    let last = after.into_iter().find(|i| is_end(*i, false));
    let mut accesses = first.is_some();
    for id in walk::insts_in(func, body) {
        let inst = &func.insts[id];
        accesses &= Some(id) != first;
        let (reads, writes) = touched(inst);
        let is_access = !reads.is_empty() || !writes.is_empty();
        let why = match GpuOp::of(inst) {
            Some(GpuOp::Barrier(_)) => "a barrier in a loop in opposite phases",
            Some(_) if !accesses && is_access => "only the first phase accesses shared memory",
            Some(_) if buffers(inst).iter().any(|b| b.count() != 2) => "its buffer has no two stages",
            Some(op) if !writes.is_empty() && !is_ahead(op) => "it stores to the stage that is read",
            Some(_) | None => continue,
        };
        return fault(S12, why).map_err(|f| at(inst, id, f));
    }
    Ok([first, last])
}
