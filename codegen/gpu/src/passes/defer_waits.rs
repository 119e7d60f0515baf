//! Waits for products where their results are needed, in blocks with several products.
//!
//! ```text
//! s = mma 0, k, q                    s1 = mma 0, k, q {asynchronous = true}
//! p = .. s                           dp1 = mma 0, v, g {asynchronous = true}
//! dp = mma 0, v, g            =>     s = mma_wait s1 {pending = 1}
//! dv = mma dv, p, g                  p = .. s
//! ds = .. p, dp                      dv1 = mma dv, p, g {asynchronous = true}
//! consumer_release                   dp = mma_wait dp1 {pending = 1}
//! ds = .. p, dp                      ds = .. p, dp
//!                                    dv2 = mma_wait dv1 {pending = 0}
//!                                    consumer_release
//! ```
//!
//! The matrix units multiply while the warps compute what does not depend on these products. They are issued in the order of
//! the source (`dp` before `p` above) and complete in that order.
//!
//! Applies to blocks that issue several products of warpgroups themselves. Products are waited for before anything that uses
//! their results or fills a buffer that they read, before loops and products in inner blocks, and at the end of the block.
//! The stages that they read are released when they are complete.
//!
//! Requires lowered products. Guarantees the same results; a kernel whose lanes would lack registers is unchanged.

use std::collections::BTreeSet;

use tk_ops::{ControlOp, Op};
use tk_tile::{BlockId, Def, InstId, ValueId, walk};

use crate::analysis::liveness::held;
use crate::analysis::wgmma_shared;
use crate::ir::builder::Edit;
use crate::ir::kernel::{Kernel, Remark};
use crate::ir::op::{GpuOp, Pipeline};
use crate::ir::shared_access::{stage_index, touched};
use crate::ir::warps::producer;
use crate::passes::reallocate_registers::{BESIDE, share};
use crate::passes::{Pass, Property, Run};
use crate::verify::verify_lowered;

/// The pass.
pub const PASS: Pass = Pass {
    name: "defer_waits",
    purpose: "waits for products where their results are needed",
    needs: &[Property::OverlappedProducts],
    leaves: &[Property::DeferredWaits],
    run: Run::Kernel { run, verify: verify_lowered },
};

fn run(kernel: &mut Kernel) {
    let body = kernel.func().body;
    let blocks = walk::insts(kernel.func()).into_iter().flat_map(|i| kernel.func().insts[i].blocks.clone());
    for block in blocks.chain([body]).collect::<BTreeSet<_>>() {
        let products: Vec<InstId> =
            kernel.func().blocks[block].insts.iter().copied().filter(|i| waits(kernel, *i)).collect();
        if products.len() < 2 {
            continue;
        }
        let before = kernel.clone();
        Deferred { issued: vec![], open: vec![], releases: vec![] }.block(kernel, block, &products);
        let (spec, warps) = (kernel.options.spec, 1 << kernel.options.threads().warp_bits);
        let (threads, most) = match producer(kernel) {
            Some((_, [_, consumers])) => {
                (consumers, share(spec, warps).map_or(spec.registers_of_launch(warps + 1), |s| s.others))
            }
            None => (kernel.func().body, spec.registers_of_launch(warps)),
        };
        if held(kernel, threads) + BESIDE > most.max(held(&before, threads) + BESIDE) {
            let loc = products.first().and_then(|p| before.func().insts[*p].loc);
            *kernel = before;
            let text = "products are waited for one by one: lanes have too few registers for several".into();
            kernel.remarks.push(Remark { loc, text });
        }
    }
}

/// Returns true for a product of warpgroups that is waited for where it is issued, and need not be.
fn waits(kernel: &Kernel, id: InstId) -> bool {
    let mma = wgmma_shared::group(&kernel.func().insts[id]);
    // 8-bit floats are accumulated in parts.
    mma.is_some_and(|mma| !mma.asynchronous && mma.promote_every.is_none())
}

/// The products of a block that is rebuilt.
struct Deferred {
    /// Those that were issued, in order.
    issued: Vec<InstId>,
    /// Those that nothing has waited for, with their results.
    open: Vec<(InstId, ValueId)>,
    /// Releases of stages that some of these read.
    releases: Vec<InstId>,
}

impl Deferred {
    fn block(&mut self, kernel: &mut Kernel, block: BlockId, products: &[InstId]) {
        let mut edit = Edit { kernel, loc: None };
        for i in std::mem::take(&mut edit.func().blocks[block].insts) {
            // Where one is complete, those before it are too.
            let last = self.open.iter().rposition(|(p, v)| needs(edit.kernel, i, *p, *v));
            for (product, result) in self.open.drain(..last.map_or(0, |n| n + 1)).collect::<Vec<_>>() {
                self.wait(&mut edit, block, product, result);
            }
            self.release(&mut edit, block);
            if self.is_read(edit.kernel, i) {
                self.releases.push(i);
                continue;
            }
            edit.func().blocks[block].insts.push(i);
            if products.contains(&i) {
                self.wait_for_stage_first(&mut edit, block, i);
                edit.leave_in_flight(i);
                self.issued.push(i);
                self.open.extend(edit.kernel.func().insts[i].results.first().map(|r| (i, *r)));
            } else if wgmma_shared::group(&edit.kernel.func().insts[i]).is_some() {
                self.issued.push(i);
            }
        }
    }

    /// Moves the wait for a stage that a product reads before the products in flight: `ptxas` completes these before it waits
    /// in a loop.
    fn wait_for_stage_first(&self, edit: &mut Edit<'_>, block: BlockId, product: InstId) {
        let func = edit.kernel.func();
        let Some(Def::Inst(wait, _)) = stage_index(&func.insts[product]).map(|v| func.values[v].def) else {
            return;
        };
        let insts = &func.blocks[block].insts;
        let at = |id: InstId| insts.iter().position(|i| *i == id);
        let Some((first, place)) = self.open.first().and_then(|(p, _)| at(*p)).zip(at(wait)) else { return };
        let between = insts.get(first..place).unwrap_or_default();
        let fixed =
            between.iter().any(|i| matches!(GpuOp::of(&func.insts[*i]), Some(GpuOp::ConsumerRelease(_))));
        if !fixed && !between.is_empty() {
            let insts = &mut edit.func().blocks[block].insts;
            insts.get_mut(first..=place).into_iter().for_each(|part| part.rotate_right(1));
        }
    }

    /// Returns true if an instruction releases a stage that a product in flight reads.
    fn is_read(&self, kernel: &Kernel, id: InstId) -> bool {
        let func = kernel.func();
        let Some(GpuOp::ConsumerRelease(release)) = GpuOp::of(&func.insts[id]) else { return false };
        self.open.iter().any(|(p, _)| pipeline_of(kernel, *p) == Some(release.pipeline))
    }

    /// Releases the stages that only complete products have read.
    fn release(&mut self, edit: &mut Edit<'_>, block: BlockId) {
        for i in std::mem::take(&mut self.releases) {
            if self.is_read(edit.kernel, i) {
                self.releases.push(i);
            } else {
                edit.func().blocks[block].insts.push(i);
            }
        }
    }

    /// Waits for a product: everything after this uses what it waited for.
    fn wait(&self, edit: &mut Edit<'_>, block: BlockId, product: InstId, result: ValueId) {
        edit.loc = edit.kernel.func().insts[product].loc;
        let after = self.issued.iter().rev().take_while(|p| **p != product).count() as u32;
        let waited = edit.wait_for_product(block, product, result, after);
        let own = edit.kernel.func().values[waited].def;
        for i in edit.kernel.func().insts.iter().map(|(i, _)| i).collect::<Vec<_>>() {
            if own != Def::Inst(i, 0) {
                let operands = edit.func().insts[i].operands.iter_mut();
                operands.filter(|v| **v == result).for_each(|v| *v = waited);
            }
        }
    }
}

/// Returns true if an instruction needs a product to be complete.
fn needs(kernel: &Kernel, id: InstId, product: InstId, result: ValueId) -> bool {
    let func = kernel.func();
    let inst = &func.insts[id];
    let (read, _) = touched(&func.insts[product]);
    let own = |i: InstId| {
        let inst = &func.insts[i];
        inst.operands.contains(&result) || touched(inst).1.iter().any(|b| read.contains(b))
    };
    let inside: Vec<InstId> = inst.blocks.iter().flat_map(|b| walk::insts_in(func, *b)).collect();
    let multiplies = inside.iter().any(|i| wgmma_shared::group(&func.insts[*i]).is_some());
    let control = match inst.op {
        Op::Control(ControlOp::For | ControlOp::While | ControlOp::Yield) => true,
        Op::Control(_) => multiplies,
        _ => false,
    };
    control || inside.into_iter().chain([id]).any(own)
}

/// The pipeline whose stage a product reads.
fn pipeline_of(kernel: &Kernel, product: InstId) -> Option<Pipeline> {
    let func = kernel.func();
    let Def::Inst(wait, _) = func.values[stage_index(&func.insts[product])?].def else { return None };
    match GpuOp::of(&func.insts[wait])? {
        GpuOp::ConsumerWait(wait) => Some(wait.pipeline),
        _ => None,
    }
}
