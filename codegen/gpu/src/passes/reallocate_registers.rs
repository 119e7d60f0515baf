//! Moves registers from producer warps to those that multiply, if the latter need more than a launch gives them.
//!
//! ```text
//! v1 = is_producer_warp                    v1 = is_producer_warp {warps = 4}
//! if v1 {                          if v1 {
//!   ..                        =>     setmaxnreg {count = 40}
//! } else {                           ..
//!   ..                             } else {
//! }                                  setmaxnreg {count = 232}
//!                                    ..
//!                                  }
//! ```
//!
//! All lanes of a launch begin with the same number of registers: those of a multiprocessor, divided by the warps of
//! the scheduler with the most of them. Beside one producer warp, 8 warps have 168 each. Registers move by warpgroups
//! of four warps, through a pool that has the registers of the launch, so the producer becomes a warpgroup, three warps
//! of which do nothing else. That makes the launch larger, so it is done only where the estimate says that lanes would
//! run out.
//!
//! The estimate is the most that tiles need which are live together with a product, or where the program goes on with its sums,
//! and [`NON_TILE_REGISTERS`] for everything else. The assembler orders elementwise code between products so that it needs less:
//! moving registers for it made attention slower by three percent.
//!
//! Requires a scheduled kernel. Guarantees that the counts fit the pool.

use tk_tile::FuncId;

use crate::analysis::liveness::{epilogue_pressure, register_pressure};
use crate::ir::kernel::Kernel;
use crate::ir::op::{GpuOp, SetMaxRegisters};
use crate::ir::warps::{SETMAXNREG_STEP, WARPGROUP_WARPS, producer};
use crate::passes::{Pass, Property, Run};
use crate::target::spec::TargetSpec;
use crate::verify::verify_fenced;

/// The pass.
pub const PASS: Pass = Pass {
    name: "reallocate_registers",
    purpose: "moves registers from producer warps to the others",
    needs: &[Property::ProducerWarps, Property::Clusters, Property::SplitStores],
    leaves: &[Property::Registers],
    run: Run::Kernel { run, verify: verify_fenced },
};

/// The fewest registers of a lane of a producer: its addresses and positions. CUTLASS leaves it between 24 and 40.
const LEAST: u32 = 24;
/// Registers for addresses, positions, conditions and values in flight, beside tiles: products with 128 and with 192
/// accumulators use 26 more than these.
pub const NON_TILE_REGISTERS: u32 = 32;
/// More of these where warpgroups take turns: each computes the addresses of whole tiles alone, and keeps its place among the
/// stages of the others. Tiles of 128 x 128 and 64 x 256 spill with 168 registers.
const OF_TURNS: u32 = 24;

/// More of these for functions of floats, of which the assembler computes several elements at a time: `erf` of 128 sums beside
/// nothing else spills 64 bytes with 168 registers.
const OF_FUNCTIONS: u32 = 16;

/// Registers of a lane of producers, and of the other warps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Of producers.
    pub producer: u32,
    /// Of the others.
    pub others: u32,
}

/// The distribution of registers, if it gives `warps` warps more than a launch with one warp beside them does.
pub fn share(spec: &TargetSpec, warps: u32) -> Option<Share> {
    let all = warps + WARPGROUP_WARPS;
    if !spec.moves_registers
        || !warps.is_multiple_of(WARPGROUP_WARPS)
        || all * spec.warp_size > spec.max_threads
    {
        return None;
    }
    let down = |n: u32| n / SETMAXNREG_STEP * SETMAXNREG_STEP;
    let pool = all * down(spec.registers_of_launch(all));
    let others = down((pool.saturating_sub(LEAST * WARPGROUP_WARPS) / warps).min(spec.registers));
    let producer = down((pool.saturating_sub(others * warps) / WARPGROUP_WARPS).min(spec.registers));
    (others > spec.registers_of_launch(warps + 1)).then_some(Share { producer, others })
}

fn run(kernel: &mut Kernel) {
    let func = kernel.func();
    let Some((id, [brings, others])) = producer(kernel) else { return };
    let (spec, warps) = (kernel.options.spec, kernel.options.all_warps());
    let Some(share) = share(spec, warps) else { return };
    let takes_turns =
        matches!(GpuOp::of(&func.insts[id]), Some(GpuOp::IsProducerWarp(is)) if is.turns.is_some());
    let beside = NON_TILE_REGISTERS + if takes_turns { OF_TURNS } else { 0 };
    let (epilogue, calls) = epilogue_pressure(kernel, others);
    let epilogue = epilogue + if calls { OF_FUNCTIONS } else { 0 };
    if register_pressure(kernel, others).max(epilogue) + beside <= spec.registers_of_launch(warps + 1) {
        return;
    }
    let loc = func.insts[id].loc;
    let func = &mut kernel.module.funcs[FuncId(0)];
    GpuOp::change(&mut func.insts[id], |op| {
        if let GpuOp::IsProducerWarp(is) = op {
            is.warps = Some(WARPGROUP_WARPS);
        }
    });
    for (block, count) in [(brings, share.producer), (others, share.others)] {
        func.add_inst(block, GpuOp::from(SetMaxRegisters { count }).inst(vec![], loc), &[]);
        func.blocks[block].insts.rotate_right(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::spec::{SIM_64, SM_80, SM_90A};

    /// The pool has the registers that are moved, and lanes have more than without.
    #[test]
    fn shares_fit_into_the_pool() {
        let some = |producer, others| Some(Share { producer, others });
        assert_eq!(share(&SM_90A, 8), some(24, 240));
        assert_eq!(share(&SM_90A, 12), some(32, 160));
        assert_eq!(share(&SM_90A, 16), some(32, 112));
        // With four warps, a lane can have the maximum; 36 warps are too many.
        assert_eq!(share(&SM_90A, 4), None);
        assert_eq!(share(&SM_90A, 32), None);
        assert_eq!(share(&SM_90A, 2), None);
        assert_eq!(share(&SM_80, 8), None);
        assert_eq!(share(&SIM_64, 8), None);
        for warps in [8, 12, 16, 20, 24, 28] {
            let Some(found) = share(&SM_90A, warps) else { continue };
            let pool = (warps + WARPGROUP_WARPS) * SM_90A.registers_of_launch(warps + WARPGROUP_WARPS);
            assert!(found.others * warps + found.producer * WARPGROUP_WARPS <= pool, "{warps}: {found:?}");
        }
    }
}
