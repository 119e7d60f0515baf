//! Moves registers from the warps that bring tiles to those that multiply, where these hold more than a launch gives them.
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
//! All lanes of a launch begin with the same number of registers: what a multiprocessor has, over the warps of the scheduler
//! that has the most of them. Beside one warp that brings tiles, 8 warps have 168 each. Registers are handed over by groups
//! of four warps, through a pool that has what the launch gave, so the producer becomes such a group, three warps of which
//! do nothing else. That costs a larger launch, so it is done only where the estimate says that lanes would run out.
//!
//! The estimate is the most that tiles need which are alive together with a product, and [`BESIDE`] for everything else. What
//! happens between products, element by element, the assembler puts in an order that needs less: moving registers for that
//! made attention slower by three percent.
//!
//! May assume a scheduled kernel. Guarantees counts that the pool has.

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

/// The fewest registers of a lane that brings tiles: its addresses and positions. CUTLASS leaves it between 24 and 40.
const LEAST: u32 = 32;
/// Registers for addresses, positions, conditions and what is on its way, beside tiles: products of 128 and of 192 sums use 26
/// more than these.
pub const BESIDE: u32 = 32;

/// Registers of a lane that brings tiles, and of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Of the former.
    pub producer: u32,
    /// Of the latter.
    pub others: u32,
}

/// How registers are shared where that gives more to `warps` warps than a launch with one warp beside them does.
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

/// The most registers of a lane that tiles take which are alive together with a product of a block.
pub fn held(kernel: &Kernel, block: BlockId) -> u32 {
    Held { kernel }.most(block, &BTreeSet::new())
}

/// What lanes hold.
struct Held<'a> {
    kernel: &'a Kernel,
}

impl Held<'_> {
    /// Registers for a value: none if all of its elements are known, or one scalar.
    fn words(&self, v: ValueId) -> u32 {
        let func = self.kernel.func();
        if matches!(func.values[v].def, Def::Inst(i, _) if matches!(func.insts[i].op, Op::Create(_))) {
            return 0;
        }
        let elem = self.kernel.module.types.get(func.ty(v)).elem();
        let bytes = self.kernel.layout(v).map_or(0, |l| l.registers() as u64 * element_bytes(elem));
        u32::try_from(bytes.div_ceil(4)).unwrap_or(u32::MAX)
    }

    /// The value whose registers these are: some changes of shape only name them differently.
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

    /// The most that is alive at once with a product in a block, behind which this is alive.
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
            // What is read inside of a loop is alive in all of its iterations.
            inst.blocks.iter().for_each(|body| live.extend(self.read_from_outside(*body)));
            most = inst.blocks.iter().map(|body| self.most(*body, &live)).fold(most, u32::max);
            live.extend(self.sources(&inst.operands));
            if matches!(GpuOp::of(inst), Some(GpuOp::Mma(_))) {
                // Sums are added to where they are.
                let sums = inst.operands.first().map(|v| self.source(*v));
                let with = around.iter().chain(live.iter().filter(|v| Some(**v) != sums));
                most = most.max(self.sum(&with.copied().collect()));
            }
        }
        most
    }

    /// What a block reads and does not make.
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

    /// The pool has what is handed out, and lanes have more than without.
    #[test]
    fn shares_fit_into_the_pool() {
        let some = |producer, others| Some(Share { producer, others });
        assert_eq!(share(&SM_90A, 8), some(40, 232));
        assert_eq!(share(&SM_90A, 12), some(32, 160));
        assert_eq!(share(&SM_90A, 16), some(32, 112));
        // Beside four warps there is room for what a lane can have; 36 warps are too many.
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
