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
//! The stages that they read are released when they are complete. Loads from shared memory that follow a wait are done before it.
//!
//! Requires lowered products. Guarantees the same results; a kernel whose lanes would lack registers is unchanged.

use std::collections::BTreeSet;

use tk_ops::table::Effects;
use tk_ops::{ControlOp, Op};
use tk_tile::effects::of_inst;
use tk_tile::{BlockId, Def, FuncId, Inst, InstId, ValueId, walk};

use crate::analysis::liveness::register_pressure;
use crate::analysis::wgmma_shared;
use crate::ir::builder::Edit;
use crate::ir::kernel::{Kernel, Remark};
use crate::ir::op::{GpuOp, MmaWait, Pipeline};
use crate::ir::shared_access::{stage_index, touched};
use crate::ir::warps::producer;
use crate::passes::reallocate_registers::{NON_TILE_REGISTERS, share};
use crate::passes::{Pass, Property, Run};
use crate::verify::verify_lowered;

/// The pass.
pub const PASS: Pass = Pass {
    name: "defer_waits",
    purpose: "waits for products where their results are needed",
    needs: &[Property::OverlappedProducts, Property::PipelinedLoads],
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
        let deferred = |early| {
            let mut kernel = before.clone();
            Deferred { issued: vec![], open: vec![], releases: vec![], early }.block(
                &mut kernel,
                block,
                &products,
            );
            Some(kernel).filter(|kernel| fits(kernel, &before))
        };
        let Some(found) = deferred(true).or_else(|| deferred(false)) else {
            let loc = products.first().and_then(|p| before.func().insts[*p].loc);
            let text = "products are waited for one by one: lanes have too few registers for several".into();
            kernel.remarks.push(Remark { loc, text });
            continue;
        };
        *kernel = found;
        load_first(kernel, block);
    }
}

/// Returns true if lanes have registers for a kernel, or need no more than `before`.
fn fits(kernel: &Kernel, before: &Kernel) -> bool {
    let (spec, warps) = (kernel.options.spec, kernel.options.all_warps());
    let (threads, most) = match producer(kernel) {
        Some((_, [_, consumers])) => {
            (consumers, share(spec, warps).map_or(spec.registers_of_launch(warps + 1), |s| s.others))
        }
        None => (kernel.func().body, spec.registers_of_launch(warps)),
    };
    register_pressure(kernel, threads) + NON_TILE_REGISTERS
        <= most.max(register_pressure(before, threads) + NON_TILE_REGISTERS)
}

/// Returns true for a product of warpgroups that is waited for where it is issued, and need not be.
fn waits(kernel: &Kernel, id: InstId) -> bool {
    let mma = wgmma_shared::as_wgmma(&kernel.func().insts[id]);
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
    /// Accumulators are computed before the first product in flight.
    early: bool,
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
                if self.early {
                    self.begin_first(&mut edit, block, i);
                }
                edit.leave_in_flight(i);
                self.issued.push(i);
                self.open.extend(edit.kernel.func().insts[i].results.first().map(|r| (i, *r)));
            } else if wgmma_shared::as_wgmma(&edit.kernel.func().insts[i]).is_some() {
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

    /// Moves what computes the accumulator of a product before the products in flight, for which `ptxas` waits where it writes
    /// registers of another accumulator.
    fn begin_first(&self, edit: &mut Edit<'_>, block: BlockId, product: InstId) {
        let func = edit.kernel.func();
        let insts = &func.blocks[block].insts;
        let at = |id: InstId| insts.iter().position(|i| *i == id);
        let Some(first) = self.open.first().and_then(|(p, _)| at(*p)) else { return };
        let Some(acc) = func.insts[product].operands.first().copied() else { return };
        let mut needed = BTreeSet::new();
        let mut values = vec![acc];
        while let Some(v) = values.pop() {
            let Def::Inst(id, _) = func.values[v].def else { continue };
            let Some(place) = at(id).filter(|n| *n > first) else { continue };
            let inst = &func.insts[id];
            let is_load = matches!(GpuOp::of(inst), Some(GpuOp::SharedLoad(load)) if load.remote.is_none());
            if !(inst.blocks.is_empty() && (is_load || of_inst(func, id) == Effects::Pure)) {
                return;
            }
            needed.insert(place);
            values.extend(&inst.operands);
        }
        let between = insts.get(first..).unwrap_or_default();
        let fills =
            between.iter().any(|i| !touched(&func.insts[*i]).1.is_empty() && !runs_ahead(&func.insts[*i]));
        if needed.is_empty() || fills {
            return;
        }
        let mut rest = edit.func().blocks[block].insts.split_off(first);
        let (mut moved, mut others) = (vec![], vec![]);
        for (n, i) in rest.drain(..).enumerate() {
            if needed.contains(&(first + n)) { moved.push(i) } else { others.push(i) }
        }
        edit.func().blocks[block].insts.extend(moved);
        edit.loc = edit.kernel.func().insts[product].loc;
        // In registers of its own from here on.
        let wait = MmaWait { buffers: vec![], pending: 0 };
        let made = (edit.kernel.func().ty(acc), edit.layout_of(acc));
        let own = edit.gpu(block, wait, &[acc], &[made]).first().copied().unwrap_or(acc);
        edit.func().insts[product].operands.first_mut().into_iter().for_each(|v| *v = own);
        edit.func().blocks[block].insts.extend(others);
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

/// Moves loads from shared memory before the products and waits that precede them, with nothing but computations between:
/// products in flight hide their latency, across whose waits `ptxas` does not move loads. One for which lanes would lack
/// registers stays.
fn load_first(kernel: &mut Kernel, block: BlockId) {
    let is_load = |i: &InstId| matches!(GpuOp::of(&kernel.func().insts[*i]), Some(GpuOp::SharedLoad(load)) if load.remote.is_none());
    let loads: Vec<InstId> = kernel.func().blocks[block].insts.iter().copied().filter(is_load).collect();
    for load in loads {
        let Some((from, to)) = earlier(kernel, block, load) else { continue };
        let before = kernel.clone();
        let insts = &mut kernel.module.funcs[FuncId(0)].blocks[block].insts;
        insts.get_mut(to..=from).into_iter().for_each(|part| part.rotate_right(1));
        if !fits(kernel, &before) {
            *kernel = before;
        }
    }
}

/// The position of a load in its block, and an earlier one before products and waits, if there are some.
fn earlier(kernel: &Kernel, block: BlockId, load: InstId) -> Option<(usize, usize)> {
    let func = kernel.func();
    let insts = &func.blocks[block].insts;
    let from = insts.iter().position(|i| *i == load)?;
    let mut to = None;
    for (n, i) in insts.iter().enumerate().take(from).rev() {
        let inst = &func.insts[*i];
        let uses = inst.results.iter().any(|r| func.insts[load].operands.contains(r));
        let waits = matches!(GpuOp::of(inst), Some(GpuOp::MmaWait(_) | GpuOp::Mma(_)));
        let passes = match GpuOp::of(inst) {
            Some(GpuOp::ConsumerRelease(_) | GpuOp::AsyncCommit(_)) => true,
            _ => waits || runs_ahead(inst) || of_inst(func, *i) == Effects::Pure,
        };
        if uses || !passes {
            break;
        }
        if waits {
            to = Some(n);
        } else if to.is_some() && computes(kernel, *i) {
            // Its elements would stay in registers while others are computed.
            break;
        }
    }
    to.map(|to| (from, to))
}

/// Returns true for copies that run ahead: they fill other stages than an iteration reads.
fn runs_ahead(inst: &Inst) -> bool {
    matches!(GpuOp::of(inst), Some(GpuOp::AsyncCopy(copy)) if copy.ahead)
}

/// Returns true if an instruction has tiles as results.
fn computes(kernel: &Kernel, id: InstId) -> bool {
    let func = kernel.func();
    let is_tile =
        |v: &ValueId| kernel.module.types.get(func.ty(*v)).shape().is_some_and(|shape| !shape.is_empty());
    func.insts[id].results.iter().any(is_tile)
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
    let multiplies = wgmma_shared::multiplies(func, &inside);
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
