//! Emits the barriers of loops whose halves of the warps are in opposite phases.
//!
//! Requires S12. Guarantees that nothing is scheduled from one phase into another, and that warps which multiply have priority over
//! those of their scheduler which access memory.

use inkwell::IntPredicate;
use tk_gpu::ir::op::{GpuOp, HalfBarrier, PhaseBarrier};
use tk_tile::BlockId;

use super::{Emit, Res};

impl<'c> Emit<'_, 'c> {
    /// Returns true if an iteration of a loop has phases.
    pub(super) fn opposes_phases(&self, body: BlockId) -> bool {
        let is_phase = |op: Option<&GpuOp>| matches!(op, Some(GpuOp::PhaseBarrier(_)));
        self.func().blocks[body].insts.iter().any(|i| is_phase(GpuOp::of(&self.func().insts[*i])))
    }

    /// The end of a phase.
    pub(super) fn phase_barrier(&self, op: &PhaseBarrier) -> Res<()> {
        if !op.multiplies {
            self.target.set_priority(self, false)?;
        }
        self.target.schedules_after(self)?;
        self.target.barrier(self)?;
        self.target.schedules_after(self)?;
        if op.multiplies {
            self.target.set_priority(self, true)?;
        }
        Ok(())
    }

    /// A barrier at which half of the warps wait, by a branch of whole warps.
    pub(super) fn half_barrier(&self, op: &HalfBarrier) -> Res<()> {
        let (b, threads) = (self.builder, self.kernel.options.threads());
        let warp = b.build_right_shift(self.tid, self.int(threads.lane_bits), false, "")?;
        let warp = self.uniform(warp)?;
        let half = self.int(1 << threads.warp_bits.saturating_sub(1));
        let of_half = if op.upper { IntPredicate::UGE } else { IntPredicate::ULT };
        let waits = b.build_int_compare(of_half, warp, half, "")?;
        self.act_where(Some(waits), || self.target.barrier(self))
    }
}
