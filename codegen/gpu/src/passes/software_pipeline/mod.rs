//! Pipelines loads of loops: the data of an iteration is copied to shared memory while earlier iterations are computed.
//!
//! ```text
//! for i in lo..hi                               =>   if lo < hi { async_copy x, lo {buffer = 0, buffer_stages = [2]}, 0 }
//!   v0 = view_load x, i                              async_commit
//!   shared_store v0 {buffer = 0}                     for i in lo..hi, slot = 0
//!   v1 = shared_dot acc {buffers = [0, 1]}             async_wait {pending = 0}
//!                                                      barrier
//!                                                      if i + 1 < hi { async_copy x, i + 1 {..}, 1 - slot }
//!                                                      async_commit
//!                                                      v1 = shared_dot acc, slot {buffers = [0, 1], buffer_stages = [2, 2]}
//! ```
//!
//! A buffer becomes a multi-stage buffer with one stage for each iteration in flight (`stages`). The instructions that
//! compute where a load reads (its *slice*) are computed for a later iteration: values that a loop carries for them,
//! such as pointers that are advanced, are carried a second time, that many iterations ahead. Selects loads whose
//! elements reach a product; in a loop that specifies `stages` itself, all. A load whose elements go straight to shared
//! memory is replaced there; of any other the threads copy to elements of their own and read them back.
//!
//! A wgmma product remains in flight while the next iteration begins ([`async_mma`]).
//!
//! Requires a lowered kernel without offsets. Guarantees the same results: only memory that the loop does not write is
//! read ahead, and only if nothing in the loop orders memory.

pub mod async_mma;
mod direct;
mod expand;
mod operand_prefetch;
mod opposite_phases;
mod own_stage;
mod register_stage;

use std::collections::BTreeSet;

use tk_ops::table::Effects;
use tk_ops::{ControlOp, MemoryOp, Op};
use tk_tile::effects::{is_volatile, of_inst};
use tk_tile::rewrite::yielded;
use tk_tile::{BlockId, InstId, ValueId, walk};

use self::expand::{Expand, PipelinePlan, PrefetchTarget, PrefetchedLoad};
use crate::analysis::axis::AxisInfo;
use crate::analysis::coalesce::access;
use crate::analysis::memory_order::orders_memory;
use crate::analysis::provenance::Roots;
use crate::ir::kernel::{ALIGN, Kernel, Remark, Remedy, STAGES, Shortage};
use crate::ir::op::{GpuOp, Placement, Strides};
use crate::ir::params::element_bytes;
use crate::ir::shared_access::other_of;
use crate::ir::shared_access::{buffers, strided_vector, swizzled_vector, touched};
use crate::layout::Layout;
use crate::passes::allocate_shared::{Life, lives};
use crate::passes::{Pass, Property, Run};
use crate::verify::verify_lowered;

/// The pass.
pub const PASS: Pass = Pass {
    name: "software_pipeline",
    purpose: "lets loads of loops run ahead, through multi-stage buffers",
    needs: &[Property::SelectedNumbers, Property::SharedAccesses, Property::ProducerWarps],
    leaves: &[Property::PipelinedLoads],
    run: Run::Kernel { run, verify: verify_lowered },
};

/// Without asynchronous copies a lane keeps the loads for the next iteration in registers while it multiplies: at most
/// this many bytes, a quarter of the registers of a lane that has 256.
const MAX_BYTES_PER_LANE: u32 = 256;
/// They are stored while that stage is not read, so more than two are of no use.
const STAGES_BY_REGISTERS: u32 = 2;

/// Why the warps of a loop have no phases in which they load.
const NOT_AHEAD: &str = "no operand is loaded ahead";

/// The fewest bytes of an asynchronous copy.
const LEAST_BYTES: u32 = 4;

fn run(kernel: &mut Kernel) {
    for id in loops(kernel, kernel.func().body) {
        let Some(analysis) = LoopAnalysis::new(kernel, id) else {
            if opposite_phases::is_candidate(kernel, id.1) {
                kernel.remarks.push(opposite_phases::remark(kernel, id.1, Err(NOT_AHEAD)));
            }
            continue;
        };
        let (plan, mut remarks) = analysis.plan();
        let mut phases = None;
        if opposite_phases::is_candidate(kernel, id.1) {
            let found = plan.as_ref().map_or(Err(NOT_AHEAD), |p| analysis.opposite_phases(p));
            remarks.push(opposite_phases::remark(kernel, id.1, found));
            phases = found.ok();
        }
        let plan = plan.map(|plan| PipelinePlan { phases, ..plan });
        kernel.remarks.extend(remarks);
        let Some(plan) = plan else { continue };
        let own = kernel.func().insts[id.1].attrs.int("stages").and_then(|n| u32::try_from(n).ok());
        let fits = plan.ahead() + 1;
        // Lanes that keep the next iteration in registers have no use for more stages than that.
        let most = if plan.alternates() { STAGES_BY_REGISTERS } else { u32::MAX };
        let fits = if plan.by_registers { plan.stages } else { fits };
        // A kernel that fits only with fewer stages reports it even if no more were requested.
        let usual = Some(STAGES).filter(|_| kernel.options.most_stages < STAGES);
        let asked = own.or(kernel.options.stages).or(usual);
        if let Some(asked) = asked.filter(|n| fits < (*n).min(most)) {
            let loc = kernel.func().insts[id.1].loc;
            kernel.shortages.push(Shortage { loc, remedy: Remedy::Stages { asked, fits } });
        }
        // With a single stage the loop is unchanged.
        if kernel.options.most_stages > 1 && (plan.ahead() > 0 || plan.by_registers) {
            plan.direct.iter().for_each(|(v, layout)| set_layout(kernel, *v, layout.clone()));
            kernel.remarks.extend(plan.remarks.iter().cloned());
            Expand::new(kernel, plan).apply();
        }
    }
}

fn set_layout(kernel: &mut Kernel, v: ValueId, layout: Layout) {
    let layout = kernel.layouts.intern(layout);
    kernel.set_layout(v, Some(layout));
}

/// The loops of a block, inner ones first.
fn loops(kernel: &Kernel, block: BlockId) -> Vec<(BlockId, InstId)> {
    let func = kernel.func();
    let mut out = vec![];
    for i in &func.blocks[block].insts {
        let inst = &func.insts[*i];
        inst.blocks.iter().for_each(|b| out.extend(loops(kernel, *b)));
        if inst.op == Op::Control(ControlOp::For) {
            out.push((block, *i));
        }
    }
    out
}

/// The analysis of a loop.
struct LoopAnalysis<'a> {
    kernel: &'a Kernel,
    at: (BlockId, InstId),
    body: BlockId,
    /// Iterations in flight, and whether the loop itself specifies them.
    stages: u32,
    own: bool,
    roots: Roots,
    axis: AxisInfo,
    /// The parameters whose memory the loop writes.
    written: Vec<Option<ValueId>>,
}

impl<'a> LoopAnalysis<'a> {
    /// `None` if nothing in it may run ahead.
    fn new(kernel: &'a Kernel, at: (BlockId, InstId)) -> Option<LoopAnalysis<'a>> {
        let func = kernel.func();
        let inst = &func.insts[at.1];
        let requested = inst.attrs.int("stages").and_then(|n| u32::try_from(n).ok());
        let stages = requested.or(kernel.options.stages).unwrap_or(STAGES);
        let body = *inst.blocks.first()?;
        let roots = Roots::new(func);
        let mut written = vec![];
        for i in walk::insts_in(func, body) {
            let inner = &func.insts[i];
            match inner.op {
                _ if orders_memory(func, i) => return None,
                Op::Atomic(_) | Op::Memory(MemoryOp::Store | MemoryOp::ViewStore | MemoryOp::ViewScatter) => {
                    written.push(inner.operands.first().and_then(|v| roots.get(*v)));
                }
                Op::Target if matches!(GpuOp::of(inner), Some(GpuOp::TmaStore(_))) => {
                    written.push(inner.operands.first().and_then(|v| roots.get(*v)));
                }
                Op::Target
                    if requested.is_none() && matches!(GpuOp::of(inner), Some(GpuOp::AsyncWait(_))) =>
                {
                    return None;
                }
                _ => {}
            }
        }
        let axis = AxisInfo::new(&kernel.module, func, &kernel.options.facts);
        let own = requested.is_some();
        (stages > 1).then_some(LoopAnalysis { kernel, at, body, stages, own, roots, axis, written })
    }

    /// What runs ahead, if anything, and why other loads of operands do not.
    fn plan(&self) -> (Option<PipelinePlan>, Vec<Remark>) {
        let func = self.kernel.func();
        let insts = &func.blocks[self.body].insts;
        let (mut taken, mut remarks): (Vec<PrefetchedLoad>, Vec<Remark>) = (vec![], vec![]);
        let mut slice = BTreeSet::new();
        let mut carried = BTreeSet::new();
        for i in insts.iter().filter(|i| self.can_copy(**i)) {
            if !self.own && !self.reaches_product(*i) {
                continue;
            }
            let (mut more, mut args) = (slice.clone(), carried.clone());
            let mut operands = func.insts[*i].operands.iter();
            match operands.try_for_each(|v| self.needs(*v, &mut more, &mut args)) {
                Ok(()) => {
                    (slice, carried) = (more, args);
                    taken.push(PrefetchedLoad { load: *i, target: self.target(*i) });
                }
                Err(what) if self.reaches_product(*i) => remarks.push(self.not_ahead(*i, what)),
                Err(_) => {}
            }
        }
        (self.planned(taken, &slice, carried), remarks)
    }

    /// The plan for these loads, whose positions are computed by `slice` from what the loop carries in `carried`.
    fn planned(
        &self,
        mut taken: Vec<PrefetchedLoad>,
        slice: &BTreeSet<InstId>,
        carried: BTreeSet<usize>,
    ) -> Option<PipelinePlan> {
        let func = self.kernel.func();
        let insts = &func.blocks[self.body].insts;
        // A load that computes where another load reads is needed at once.
        taken.retain(|t| !slice.contains(&t.load));
        if taken.is_empty() {
            return None;
        }
        let slice = insts.iter().copied().filter(|i| slice.contains(i)).collect();
        let slice: Vec<InstId> = slice;
        let pure = slice.iter().all(|i| of_inst(func, *i) == Effects::Pure);
        let by_registers = !self.kernel.options.spec.has_async_copy;
        if by_registers {
            taken.retain(|t| t.target.buffer().is_some());
            if taken.is_empty()
                || taken.iter().map(|t| self.bytes_per_lane(t.load)).sum::<u32>() > MAX_BYTES_PER_LANE
            {
                return None;
            }
        }
        let max_stages = self.fitting(&taken);
        let multi_stage_buffers: Vec<usize> = taken.iter().filter_map(|t| t.target.buffer()).collect();
        let most = if by_registers { STAGES_BY_REGISTERS } else { u32::MAX };
        let stages = self.stages.min(self.kernel.options.most_stages).min(max_stages).min(most);
        let in_flight =
            async_mma::product(self.kernel, self.body, &multi_stage_buffers).filter(|_| stages > 1);
        let (direct, remarks) = match by_registers && stages > 1 {
            true => self.direct(&taken, pure),
            false => (vec![], vec![]),
        };
        let by_registers = by_registers && direct.is_empty();
        Some(PipelinePlan {
            at: self.at,
            body: self.body,
            stages,
            taken,
            slice,
            pure,
            carried,
            in_flight,
            by_registers,
            phases: None,
            direct,
            remarks,
        })
    }

    /// Bytes of a load that a thread owns.
    fn bytes_per_lane(&self, load: InstId) -> u32 {
        let Some(r) = self.kernel.func().insts[load].results.first() else { return 0 };
        let bytes = element_bytes(self.kernel.module.types.get(self.kernel.func().ty(*r)).elem()) as u32;
        self.kernel.layout(*r).map_or(0, |l| l.registers() as u32 * bytes)
    }

    /// Returns true if a load can be an asynchronous copy, or be done for a later iteration.
    fn can_copy(&self, id: InstId) -> bool {
        let func = self.kernel.func();
        let inst = &func.insts[id];
        let (Some(place), Some(r)) = (inst.operands.first(), inst.results.first()) else { return false };
        if !matches!(inst.op, Op::Memory(MemoryOp::Load | MemoryOp::ViewLoad)) || is_volatile(inst) {
            return false;
        }
        let wide = access(&self.kernel.module, func, &self.axis, &self.kernel.options, inst)
            .is_some_and(|a| a.bytes * a.vector.min(self.vector(*r, &a)) >= LEAST_BYTES);
        // A load into registers may have any width.
        (wide || !self.kernel.options.spec.has_async_copy) && self.may_read(*place)
    }

    /// Neighbours in memory that a thread owns in consecutive registers.
    fn vector(&self, v: ValueId, a: &crate::analysis::coalesce::Coalescing) -> u32 {
        let fastest = a.order.first().copied().unwrap_or(0);
        self.kernel.layout(v).map_or(1, |l| l.vector(fastest))
    }

    /// Returns true if the loop does not write the memory of a pointer or view.
    fn may_read(&self, place: ValueId) -> bool {
        let root = self.roots.get(place);
        self.written.iter().all(|w| root.is_some() && w.is_some() && *w != root)
    }

    /// Why an operand is loaded where it is used.
    fn not_ahead(&self, load: InstId, what: InstId) -> Remark {
        let func = self.kernel.func();
        let reason = match of_inst(func, what) {
            _ if !func.insts[what].blocks.is_empty() => "a branch or another loop decides where it is",
            Effects::Read => "where it is comes from memory that the loop writes",
            _ => "where it is comes from an operation that cannot be done early",
        };
        let text = format!("an operand of a product is not loaded ahead: {reason}");
        Remark { loc: func.insts[load].loc, text }
    }

    /// Adds the values on which a value depends inside of the loop.
    ///
    /// # Errors
    /// The instruction that cannot be computed ahead.
    fn needs(
        &self,
        v: ValueId,
        slice: &mut BTreeSet<InstId>,
        carried: &mut BTreeSet<usize>,
    ) -> Result<(), InstId> {
        let func = self.kernel.func();
        match func.values[v].def {
            tk_tile::Def::Arg(block, n) if block == self.body => {
                // The first is the induction variable.
                let Some(n) = (n as usize).checked_sub(1) else { return Ok(()) };
                if !carried.insert(n) {
                    return Ok(());
                }
                let next = yielded(func, self.body).get(n).copied();
                next.map_or(Ok(()), |next| self.needs(next, slice, carried))
            }
            tk_tile::Def::Arg(..) => Ok(()),
            tk_tile::Def::Inst(i, _) => {
                if !func.blocks[self.body].insts.contains(&i) || slice.contains(&i) {
                    return Ok(());
                }
                let inst = &func.insts[i];
                let may = match of_inst(func, i) {
                    Effects::Pure => true,
                    Effects::Read => inst.operands.first().is_some_and(|p| self.may_read(*p)),
                    Effects::Write | Effects::Ordered => false,
                };
                if !may || !inst.blocks.is_empty() {
                    return Err(i);
                }
                inst.operands.iter().try_for_each(|v| self.needs(*v, slice, carried))?;
                slice.insert(i);
                Ok(())
            }
        }
    }

    /// Returns true if the elements of a load become operands of a product in the loop.
    fn reaches_product(&self, load: InstId) -> bool {
        let func = self.kernel.func();
        let mut values: BTreeSet<ValueId> = func.insts[load].results.iter().copied().collect();
        let mut buffers: BTreeSet<usize> = BTreeSet::new();
        for i in walk::insts_in(func, self.body) {
            let inst = &func.insts[i];
            let (reads, writes) = touched(inst);
            let reached =
                inst.operands.iter().any(|v| values.contains(v)) || reads.iter().any(|b| buffers.contains(b));
            if !reached {
                continue;
            }
            if matches!(GpuOp::of(inst), Some(GpuOp::SharedDot(_) | GpuOp::Mma(_))) {
                return true;
            }
            if matches!(inst.op, Op::Memory(_) | Op::Reduce(_) | Op::Scan(_) | Op::Control(_)) {
                continue;
            }
            values.extend(&inst.results);
            buffers.extend(writes);
        }
        false
    }

    /// The destination of the elements of a load: the buffer to which the next instruction that uses them stores them,
    /// if nothing else uses either.
    fn target(&self, load: InstId) -> PrefetchTarget {
        let func = self.kernel.func();
        let Some(r) = func.insts[load].results.first().copied() else { return PrefetchTarget::Own };
        let all = walk::insts(func);
        let users: Vec<InstId> =
            all.iter().copied().filter(|i| func.insts[*i].operands.contains(&r)).collect();
        let [store] = users[..] else { return PrefetchTarget::Own };
        let inst = &func.insts[store];
        let here = func.blocks[self.body].insts.contains(&store);
        let (true, Some(GpuOp::SharedStore(stored))) = (here, GpuOp::of(inst)) else {
            return PrefetchTarget::Own;
        };
        let buffer = stored.buffer.buffer;
        let inside: BTreeSet<InstId> = walk::insts_in(func, self.body).into_iter().collect();
        let zero = other_of(self.kernel, load).is_none();
        let others = zero
            && all.iter().filter(|i| **i != store).all(|i| {
                let (reads, writes) = touched(&func.insts[*i]);
                // A read of a multi-stage buffer of an inner loop has a stage of that loop.
                let free = buffers(&func.insts[*i]).iter().all(|b| b.stages.is_none());
                let knows_stages = free
                    && matches!(
                        GpuOp::of(&func.insts[*i]),
                        Some(GpuOp::SharedLoad(_) | GpuOp::SharedDot(_) | GpuOp::Mma(_))
                    );
                !writes.contains(&buffer) && (!reads.contains(&buffer) || inside.contains(i) && knows_stages)
            });
        if others && self.is_wide(r, &stored.placement) {
            PrefetchTarget::Buffer { store, buffer }
        } else {
            PrefetchTarget::Own
        }
    }

    /// Returns true if neighbours in memory are adjacent in a buffer, as many as a copy moves at least.
    fn is_wide(&self, v: ValueId, placement: &Placement) -> bool {
        let ty = self.kernel.module.types.get(self.kernel.func().ty(v));
        let (Some(layout), Some(shape)) = (self.kernel.layout(v), ty.shape()) else { return false };
        let (bytes, most) =
            (element_bytes(ty.elem()) as i64, i64::from(self.kernel.options.spec.vector_bytes));
        let vector = match placement {
            Placement::Swizzled { bases } => swizzled_vector(layout, bases, 0, bytes, most),
            Placement::Strided(Strides { start, strides }) => {
                strided_vector(layout, shape, (start * bytes, strides), bytes, most)
            }
        };
        i64::from(vector) * bytes >= i64::from(LEAST_BYTES) || !self.kernel.options.spec.has_async_copy
    }

    /// The number of iterations for which shared memory has room, beside what is live there while the loop runs; at
    /// least one.
    fn fitting(&self, taken: &[PrefetchedLoad]) -> u32 {
        let func = self.kernel.func();
        let multi_stage_buffers: Vec<usize> = taken.iter().filter_map(|t| t.target.buffer()).collect();
        let whole = |bytes: u32| u64::from(bytes.next_multiple_of(ALIGN));
        let bytes = |b: usize| self.kernel.buffers.get(b).map_or(0, |b| whole(b.bytes));
        let start = walk::insts(func).iter().position(|i| *i == self.at.1).unwrap_or(0);
        let end = start + walk::insts_in(func, self.body).len();
        let (lives, _) = lives(self.kernel);
        let overlaps = |life: &Life| life.is_some_and(|(from, to)| from <= end && start <= to);
        let others =
            lives.iter().enumerate().filter(|(b, life)| !multi_stage_buffers.contains(b) && overlaps(life));
        let others: u64 = others.map(|(b, _)| bytes(b)).sum();
        let own = taken.iter().filter(|t| t.target.buffer().is_none());
        let own = own.map(|t| whole(own_stage::bytes(self.kernel, t.load)));
        let each: u64 = multi_stage_buffers.iter().map(|b| bytes(*b)).chain(own).sum();
        let available = u64::from(self.kernel.options.spec.shared_bytes).saturating_sub(others);
        let most = u32::try_from(available / each.max(1)).unwrap_or(u32::MAX);
        most.max(1)
    }
}
