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
//! The estimate is the most that tiles need which are live together with a product, and [`BESIDE`] for everything else.
//! The assembler orders elementwise code between products so that it needs less: moving registers for it made attention
//! slower by three percent.
//!
//! Requires a scheduled kernel. Guarantees that the counts fit the pool.

use std::collections::BTreeSet;

use tk_ops::{Op, ShapeOp};
use tk_tile::{BlockId, Def, FuncId, ValueId, walk};

use crate::ir::kernel::Kernel;
use crate::ir::op::{GpuOp, SetMaxRegisters};
use crate::ir::params::element_bytes;
use crate::ir::warps::{GROUP, STEP, producer};
use crate::passes::{Pass, Property, Run};
use crate::target::spec::TargetSpec;
use crate::verify::verify_scheduled;

/// The pass.
pub const PASS: Pass = Pass {
    name: "reallocate_registers",
    purpose: "moves registers from producer warps to the others",
    needs: &[Property::ProducerWarps, Property::Clusters, Property::SplitStores],
    leaves: &[Property::Registers],
    run: Run::Kernel { run, verify: verify_scheduled },
};

/// The fewest registers of a lane of a producer: its addresses and positions. CUTLASS leaves it between 24 and 40.
const LEAST: u32 = 32;
/// Registers for addresses, positions, conditions and values in flight, beside tiles: products with 128 and with 192
/// accumulators use 26 more than these.
pub const BESIDE: u32 = 32;

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
    let all = warps + GROUP;
    if !spec.moves_registers || !warps.is_multiple_of(GROUP) || all * spec.warp_size > spec.max_threads {
        return None;
    }
    let down = |n: u32| n / STEP * STEP;
    let pool = all * down(spec.registers_of_launch(all));
    let others = down((pool.saturating_sub(LEAST * GROUP) / warps).min(spec.registers));
    let producer = down((pool.saturating_sub(others * warps) / GROUP).min(spec.registers));
    (others > spec.registers_of_launch(warps + 1)).then_some(Share { producer, others })
}

fn run(kernel: &mut Kernel) {
    let func = kernel.func();
    let Some((id, [brings, others])) = producer(kernel) else { return };
    let (spec, warps) = (kernel.options.spec, 1 << kernel.options.threads().warp_bits);
    let Some(share) = share(spec, warps) else { return };
    if held(kernel, others) + BESIDE <= spec.registers_of_launch(warps + 1) {
        return;
    }
    let loc = func.insts[id].loc;
    let func = &mut kernel.module.funcs[FuncId(0)];
    GpuOp::change(&mut func.insts[id], |op| {
        if let GpuOp::IsProducerWarp(is) = op {
            is.warps = Some(GROUP);
        }
    });
    for (block, count) in [(brings, share.producer), (others, share.others)] {
        func.add_inst(block, GpuOp::from(SetMaxRegisters { count }).inst(vec![], loc), &[]);
        func.blocks[block].insts.rotate_right(1);
    }
}

/// The most registers of a lane for tiles that are live together with a product of a block.
pub fn held(kernel: &Kernel, block: BlockId) -> u32 {
    Held { kernel }.most(block, &BTreeSet::new())
}

/// The register use of lanes.
struct Held<'a> {
    kernel: &'a Kernel,
}

impl Held<'_> {
    /// Registers of a value: none if all of its elements are constants, or one scalar.
    fn words(&self, v: ValueId) -> u32 {
        let func = self.kernel.func();
        if matches!(func.values[v].def, Def::Inst(i, _) if matches!(func.insts[i].op, Op::Create(_))) {
            return 0;
        }
        let elem = self.kernel.module.types.get(func.ty(v)).elem();
        let bytes = self.kernel.layout(v).map_or(0, |l| l.registers() as u64 * element_bytes(elem));
        u32::try_from(bytes.div_ceil(4)).unwrap_or(u32::MAX)
    }

    /// The value whose registers these are: some changes of shape only rename them.
    fn source(&self, mut v: ValueId) -> ValueId {
        let func = self.kernel.func();
        while let Def::Inst(i, _) = func.values[v].def
            && let Op::Shape(ShapeOp::Broadcast | ShapeOp::Permute | ShapeOp::Reshape) = func.insts[i].op
            && let Some(from) = func.insts[i].operands.first()
        {
            v = *from;
        }
        v
    }

    fn sources(&self, values: &[ValueId]) -> Vec<ValueId> {
        values.iter().map(|v| self.source(*v)).collect()
    }

    fn sum(&self, live: &BTreeSet<ValueId>) -> u32 {
        live.iter().map(|v| self.words(*v)).sum()
    }

    /// The most that is live at once with a product in a block, given what is live after it.
    fn most(&self, block: BlockId, behind: &BTreeSet<ValueId>) -> u32 {
        let func = self.kernel.func();
        let mut live = behind.clone();
        let mut most = 0;
        for i in func.blocks[block].insts.iter().rev() {
            let inst = &func.insts[*i];
            live.extend(self.sources(&inst.results));
            let around = live.clone();
            inst.results.iter().for_each(|r| {
                live.remove(r);
            });
            // A value that is read inside of a loop is live in all of its iterations.
            inst.blocks.iter().for_each(|body| live.extend(self.read_from_outside(*body)));
            most = inst.blocks.iter().map(|body| self.most(*body, &live)).fold(most, u32::max);
            live.extend(self.sources(&inst.operands));
            if matches!(GpuOp::of(inst), Some(GpuOp::Mma(_))) {
                // Accumulators are updated in place.
                let sums = inst.operands.first().map(|v| self.source(*v));
                let with = around.iter().chain(live.iter().filter(|v| Some(**v) != sums));
                most = most.max(self.sum(&with.copied().collect()));
            }
        }
        most
    }

    /// The values that a block reads and does not define.
    fn read_from_outside(&self, block: BlockId) -> BTreeSet<ValueId> {
        let func = self.kernel.func();
        let insts = walk::insts_in(func, block);
        let inside = insts.iter().flat_map(|i| &func.insts[*i].blocks).chain([&block]);
        let args = inside.flat_map(|b| &func.blocks[*b].args);
        let made: BTreeSet<ValueId> =
            insts.iter().flat_map(|i| &func.insts[*i].results).chain(args).copied().collect();
        let read = insts.iter().flat_map(|i| &func.insts[*i].operands);
        read.map(|v| self.source(*v)).filter(|v| !made.contains(v)).collect()
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
        assert_eq!(share(&SM_90A, 8), some(40, 232));
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
            let pool = (warps + GROUP) * SM_90A.registers_of_launch(warps + GROUP);
            assert!(found.others * warps + found.producer * GROUP <= pool, "{warps}: {found:?}");
        }
    }
}
