//! Expands a pipelined loop, as [`super`] plans it.
//!
//! Requires a plan whose slice has no effects but reads of memory that the loop does not write. Guarantees one group of
//! copies for each iteration, also for iterations that are not executed, so that the number of groups determines which
//! iterations' copies are complete.

use std::collections::{BTreeMap, BTreeSet};

use tk_ops::table::Effects;
use tk_ops::{ControlOp, DType, ElementwiseOp, MemoryOp, Op};
use tk_tile::effects::of_inst;
use tk_tile::rewrite::yielded;
use tk_tile::{Attrs, BlockId, Def, Inst, InstId, Type, TypeId, Value, ValueId, walk};

use super::async_mma::AsyncMma;
use super::operand_prefetch::OperandPrefetch;
use super::own_stage;
use crate::ir::builder::Edit;
use crate::ir::caching::Caching;
use crate::ir::kernel::{ALIGN, Buffer, Kernel, LayoutId, Remark};
use crate::ir::op::{AsyncCommit, AsyncCopy, AsyncWait, Barrier, BufferRef, GpuOp, Placement, SharedLoad};
use crate::ir::shared_access;
use crate::ir::shared_access::touched;
use crate::ir::warps::AHEAD_IN_PHASES;
use crate::layout::Layout;

/// Threads of a large program: with as many registers as a lane can have, it fills a multiprocessor of 65536.
const LARGE: u32 = 256;

/// A load that runs ahead.
#[derive(Clone, Debug)]
pub struct PrefetchedLoad {
    /// The load.
    pub load: InstId,
    /// The destination of its elements.
    pub target: PrefetchTarget,
}

/// The destination of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefetchTarget {
    /// A buffer in which each thread reads what it copied.
    Own,
    /// The buffer to which this instruction would store.
    Buffer {
        /// The store.
        store: InstId,
        /// Its buffer.
        buffer: usize,
    },
}

impl PrefetchTarget {
    /// The store that it replaces.
    pub fn store(self) -> Option<InstId> {
        match self {
            PrefetchTarget::Own => None,
            PrefetchTarget::Buffer { store, .. } => Some(store),
        }
    }

    /// The buffer that exists already.
    pub fn buffer(self) -> Option<usize> {
        match self {
            PrefetchTarget::Own => None,
            PrefetchTarget::Buffer { buffer, .. } => Some(buffer),
        }
    }
}

/// The plan for a loop.
#[derive(Clone, Debug)]
pub struct PipelinePlan {
    /// The loop and its block.
    pub at: (BlockId, InstId),
    /// The body of the loop.
    pub body: BlockId,
    /// Stages of a multi-stage buffer: iterations in flight.
    pub stages: u32,
    /// The loads.
    pub taken: Vec<PrefetchedLoad>,
    /// The instructions that compute where they read, in order.
    pub slice: Vec<InstId>,
    /// The slice reads no memory.
    pub pure: bool,
    /// The loop-carried values of the slice, by number.
    pub carried: BTreeSet<usize>,
    /// A product that remains in flight while the next iteration begins.
    pub in_flight: Option<AsyncMma>,
    /// The target has no asynchronous copies: lanes keep loaded values in registers until the iteration is over.
    pub by_registers: bool,
    /// The product of a loop whose halves of the warps are in opposite phases.
    pub phases: Option<InstId>,
    /// The results of loads that go straight to shared memory without asynchronous copies of any order, with their layouts; all
    /// of them or none.
    pub direct: Vec<(ValueId, Layout)>,
    /// Why they do not, if the target has such loads.
    pub remarks: Vec<Remark>,
}

impl PipelinePlan {
    /// Returns true if an iteration fills the other one of two stages.
    pub fn alternates(&self) -> bool {
        self.by_registers || !self.direct.is_empty()
    }

    /// The distance between an iteration and the one for which it copies.
    pub fn ahead(&self) -> u32 {
        match self.phases {
            Some(_) => AHEAD_IN_PHASES,
            None if self.by_registers => 1,
            None => self.stages - 1,
        }
    }
}

/// A load with the destination of its copies.
pub(super) struct Copied {
    pub inst: Inst,
    pub buffer: BufferRef,
    pub placement: Placement,
    /// Each thread reads only what it copied.
    pub own: bool,
    pub ty: TypeId,
    pub layout: Option<LayoutId>,
}

/// The values of another iteration for those of the program text.
pub(super) type Renamed = BTreeMap<ValueId, ValueId>;

/// Expands a loop.
pub struct Expand<'a> {
    pub(crate) edit: Edit<'a>,
    pub(crate) plan: PipelinePlan,
    pub(super) copies: Vec<Copied>,
    /// The values of the carried part of the slice at the end of an iteration.
    ends: Vec<ValueId>,
    /// Some thread reads what others copied.
    pub(super) needs_barrier: bool,
}

impl<'a> std::ops::Deref for Expand<'a> {
    type Target = Edit<'a>;

    fn deref(&self) -> &Edit<'a> {
        &self.edit
    }
}

impl std::ops::DerefMut for Expand<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.edit
    }
}

impl<'a> Expand<'a> {
    /// Prepares the expansion of a loop.
    pub fn new(kernel: &'a mut Kernel, plan: PipelinePlan) -> Expand<'a> {
        let ends = yielded(kernel.func(), plan.body);
        let ends = plan.carried.iter().filter_map(|k| ends.get(*k).copied()).collect();
        Expand { edit: Edit { kernel, loc: None }, plan, copies: vec![], ends, needs_barrier: false }
    }

    /// Expands it.
    pub fn apply(mut self) {
        let (outer, id) = self.plan.at;
        self.loc = self.kernel.func().insts[id].loc;
        let (slot, ahead) = self.arguments();
        self.stage_buffers(slot);
        let Some(at) = self.kernel.func().blocks[outer].insts.iter().position(|i| *i == id) else { return };
        let tail = self.func().blocks[outer].insts.split_off(at);
        let mut begin = self.prologue(outer);
        let zero = self.int(outer, DType::I32, 0);
        let prefetches = self.needs_barrier && self.is_alone() && !self.plan.alternates();
        let prefetch = if prefetches { self.prefetch() } else { None };
        let tiles = if self.plan.phases.is_some() { self.tiles_in_registers() } else { vec![] };
        let loaded = begin.split_off(begin.len().saturating_sub(tiles.len()));
        let prefetched = match (&prefetch, self.kernel.func().insts[id].operands.first().copied()) {
            (Some(prefetch), Some(lo)) => {
                let is_iteration = self.is_iteration(id, outer, lo, 0);
                self.first_operands(outer, prefetch, is_iteration)
            }
            (None, _) | (_, None) => loaded,
        };
        if self.plan.phases.is_some() {
            self.part_halves(outer);
        }
        self.func().blocks[outer].insts.extend(tail);
        let begin: Vec<ValueId> = begin.into_iter().chain([zero]).chain(prefetched).collect();
        self.carry(id, &begin);
        self.iteration(slot, &ahead, &tiles, prefetch);
        if let Some(in_flight) = self.plan.in_flight.clone() {
            let at = self.kernel.func().blocks[outer].insts.iter().position(|i| *i == id).unwrap_or(0);
            let tail = self.func().blocks[outer].insts.split_off(at + 1);
            in_flight.wait_last(&mut self.edit, outer, id);
            self.func().blocks[outer].insts.extend(tail);
        }
        if !self.plan.direct.is_empty() || self.plan.phases.is_some() {
            // The last iteration may load zeros that nothing reads, into memory that others use then.
            let at = self.kernel.func().blocks[outer].insts.iter().position(|i| *i == id).unwrap_or(0);
            let tail = self.func().blocks[outer].insts.split_off(at + 1);
            match self.plan.phases {
                Some(_) => self.join_halves(outer),
                None => drop(self.gpu(outer, AsyncWait { pending: 0 }, &[], &[])),
            }
            self.func().blocks[outer].insts.extend(tail);
        }
        self.sweep();
    }

    /// Adds loop-carried values: the stage that an iteration reads, and the slice of the iteration ahead.
    fn arguments(&mut self) -> (ValueId, Vec<ValueId>) {
        let body = self.plan.body;
        let args = self.kernel.func().blocks[body].args.clone();
        let mut ahead = vec![];
        for k in self.plan.carried.clone() {
            let Some(old) = args.get(k + 1).copied() else { continue };
            let (ty, layout) = (self.kernel.func().ty(old), self.layout_of(old));
            let new = self.func().add_arg(body, ty);
            self.set_layout(new, layout);
            ahead.push(new);
        }
        let ty = self.scalar(DType::I32);
        let slot = self.func().add_arg(body, ty);
        self.set_layout(slot, None);
        (slot, ahead)
    }

    /// Makes the buffers multi-stage buffers, and the loads reads of them.
    fn stage_buffers(&mut self, slot: ValueId) {
        let stages = self.plan.stages;
        for taken in self.plan.taken.clone() {
            let inst = self.kernel.func().insts[taken.load].clone();
            let Some(r) = inst.results.first().copied() else { continue };
            let (ty, layout) = (self.kernel.func().ty(r), self.layout_of(r));
            let (buffer, placement, own) = match taken.target {
                PrefetchTarget::Buffer { store, buffer } => {
                    self.widen(buffer);
                    self.read_stages(buffer, slot);
                    self.needs_barrier = true;
                    let Some(GpuOp::SharedStore(store)) = GpuOp::of(&self.kernel.func().insts[store]) else {
                        continue;
                    };
                    (buffer, store.placement.clone(), false)
                }
                PrefetchTarget::Own => {
                    let bytes = own_stage::bytes(self.kernel, taken.load);
                    self.kernel.buffers.push(Buffer::new(bytes));
                    let buffer = self.kernel.buffers.len() - 1;
                    self.widen(buffer);
                    let (placement, own) = self.own_place(r);
                    (buffer, placement, own)
                }
            };
            let buffer = BufferRef { buffer, stages: Some(stages) };
            let read = SharedLoad { buffer, placement: placement.clone(), own, remote: None, vector: None };
            self.replace(&taken, read, slot);
            let operands = shared_access::places(self.kernel, taken.load).to_vec();
            let inst = Inst { operands, ..inst };
            self.copies.push(Copied { inst, buffer, placement, own, ty, layout });
        }
    }

    fn widen(&mut self, buffer: usize) {
        let stages = self.plan.stages;
        if let Some(b) = self.kernel.buffers.get_mut(buffer) {
            b.bytes = b.bytes.next_multiple_of(ALIGN) * stages;
        }
    }

    /// Gives everything that reads a buffer in the loop the stage that it reads.
    fn read_stages(&mut self, buffer: usize, slot: ValueId) {
        let (body, stages) = (self.plan.body, self.plan.stages);
        for i in walk::insts_in(self.kernel.func(), body) {
            let inst = &mut self.func().insts[i];
            if !touched(inst).0.contains(&buffer) {
                continue;
            }
            if shared_access::stage_index(inst).is_none() {
                inst.operands.push(slot);
            }
            GpuOp::change(inst, |op| shared_access::set_stages(op, buffer, stages));
        }
    }

    /// Removes a load from the loop: with its store, or replaced by a read of the stage.
    fn replace(&mut self, taken: &PrefetchedLoad, read: SharedLoad, slot: ValueId) {
        let body = self.plan.body;
        let Some(at) = self.kernel.func().blocks[body].insts.iter().position(|i| *i == taken.load) else {
            return;
        };
        match taken.target {
            PrefetchTarget::Buffer { store, .. } => {
                self.func().blocks[body].insts.retain(|i| *i != taken.load && *i != store);
            }
            PrefetchTarget::Own => {
                let results = self.kernel.func().insts[taken.load].results.clone();
                let rest = self.func().blocks[body].insts.split_off(at);
                let read = GpuOp::from(read).inst(vec![slot], self.loc);
                let last = self.read_back(taken.load, read);
                let func = self.func();
                if let Def::Inst(id, _) = func.values[last].def {
                    func.insts[id].results.clone_from(&results);
                    results.iter().for_each(|r| func.values[*r].def = Def::Inst(id, 0));
                }
                func.blocks[body].insts.extend(rest.into_iter().skip(1));
            }
        }
    }

    /// The result of a load, from what was copied: elements that it leaves out are 0 there.
    fn read_back(&mut self, load: InstId, read: Inst) -> ValueId {
        let body = self.plan.body;
        let inst = self.kernel.func().insts[load].clone();
        let Some(r) = inst.results.first().copied() else { return ValueId(0) };
        let (ty, layout) = (self.kernel.func().ty(r), self.layout_of(r));
        let all = |(_, made): (InstId, Vec<ValueId>)| made.first().copied().unwrap_or(r);
        let copied = all(self.add(body, read, &[(ty, layout)]));
        let Some(other) = shared_access::other_of(self.kernel, load) else { return copied };
        let places = shared_access::places(self.kernel, load).to_vec();
        let shape = self.kernel.module.types.get(ty).shape().unwrap_or(&[]).to_vec();
        let inside = if inst.op == Op::Memory(MemoryOp::ViewLoad) {
            let flags = self.kernel.module.types.intern(Type::tile(DType::Bool, &shape));
            let inside = self.inst(Op::Memory(MemoryOp::ViewInside), &places, Attrs::new());
            Some(all(self.add(body, inside, &[(flags, layout)])))
        } else {
            places.get(1).copied()
        };
        let Some(inside) = inside else { return copied };
        let select =
            self.inst(Op::Elementwise(ElementwiseOp::Select), &[inside, copied, other], Attrs::new());
        all(self.add(body, select, &[(ty, layout)]))
    }

    /// The copies of the first iterations; returns the slice after them.
    fn prologue(&mut self, block: BlockId) -> Vec<ValueId> {
        let body = self.plan.body;
        let inst = self.kernel.func().insts[self.plan.at.1].clone();
        let [lo, _, step, init @ ..] = inst.operands.as_slice() else { return vec![] };
        let args = self.kernel.func().blocks[body].args.clone();
        let mut current: Vec<ValueId> =
            self.plan.carried.iter().filter_map(|k| init.get(*k).copied()).collect();
        for iteration in 0..self.plan.ahead() {
            let is_iteration = self.edit.is_iteration(self.plan.at.1, block, *lo, iteration);
            let stage = self.int(block, DType::I32, iteration.into());
            let (outer, from) = (block, (*lo, *step, iteration));
            current = self.branch(outer, is_iteration, &args, &current, from, stage, false);
            if self.plan.by_registers {
                // In opposite phases, the tiles after the first remain in registers.
                if iteration == 0 {
                    self.store(block, &mut current, stage, false);
                }
                continue;
            }
            self.gpu(block, AsyncCommit {}, &[], &[]);
        }
        current
    }

    /// Copies for a later iteration if it is executed; returns the slice after it.
    #[allow(
        clippy::too_many_arguments,
        reason = "what differs between the first iterations and those in the loop"
    )]
    pub(super) fn branch(
        &mut self,
        outer: BlockId,
        is_iteration: ValueId,
        args: &[ValueId],
        current: &[ValueId],
        (iv, step, iterations): (ValueId, ValueId, u32),
        stage: ValueId,
        ahead: bool,
    ) -> Vec<ValueId> {
        // Without reads of memory, computing it for an iteration that is not executed is harmless, and code without
        // branches can overlap with products.
        let straight = self.plan.pure && !self.plan.by_registers;
        let then = if straight { outer } else { self.func().add_block() };
        let mut renamed = Renamed::new();
        let d = self.dtype(iv);
        // Before the branch, where the loop counts on too.
        let before = if self.plan.by_registers { outer } else { then };
        let far = self.int(before, d, iterations.into());
        let far = self.compute(before, ElementwiseOp::Mul, &[step, far], d);
        let later = self.compute(before, ElementwiseOp::Add, &[iv, far], d);
        renamed.extend(args.first().map(|a| (*a, later)));
        for (k, c) in self.plan.carried.iter().zip(current) {
            renamed.extend(args.get(k + 1).map(|a| (*a, *c)));
        }
        self.slice(then, &mut renamed);
        let when = straight.then_some(is_iteration);
        let loaded = if self.plan.by_registers {
            self.load(then, &renamed)
        } else {
            self.copy(then, &renamed, (when, stage), ahead);
            vec![]
        };
        let ends = self.ends.iter().map(|v| renamed.get(v).copied().unwrap_or(*v));
        let next: Vec<ValueId> = ends.chain(loaded.iter().copied()).collect();
        if straight {
            return next;
        }
        self.yields(then, &next);
        let other = self.func().add_block();
        let types = |v: &ValueId| (self.kernel.func().ty(*v), self.layout_of(*v));
        let types: Vec<_> = loaded.iter().map(types).collect();
        let nothing = types.into_iter().map(|like| self.unspecified(other, like)).collect::<Vec<_>>();
        let current: Vec<ValueId> = current.iter().copied().chain(nothing).collect();
        self.yields(other, &current);
        let results: Vec<_> =
            current.iter().map(|v| (self.kernel.func().ty(*v), self.layout_of(*v))).collect();
        let mut inst = self.inst(Op::Control(ControlOp::If), &[is_iteration], Attrs::new());
        inst.blocks = vec![then, other];
        self.add(outer, inst, &results).1
    }

    /// Computes the slice for another iteration.
    fn slice(&mut self, block: BlockId, renamed: &mut Renamed) {
        for i in self.plan.slice.clone() {
            let old = self.kernel.func().insts[i].clone();
            let results: Vec<_> =
                old.results.iter().map(|v| (self.kernel.func().ty(*v), self.layout_of(*v))).collect();
            let operands = old.operands.iter().map(|v| renamed.get(v).copied().unwrap_or(*v)).collect();
            let (_, new) = self.add(block, Inst { operands, ..old.clone() }, &results);
            renamed.extend(old.results.iter().copied().zip(new));
        }
    }

    fn copy(
        &mut self,
        block: BlockId,
        renamed: &Renamed,
        (when, stage): (Option<ValueId>, ValueId),
        ahead: bool,
    ) {
        for n in 0..self.copies.len() {
            let Some(c) = self.copies.get(n) else { continue };
            let copy = AsyncCopy {
                buffer: c.buffer,
                placement: c.placement.clone(),
                ahead,
                own: c.own,
                when: when.is_some(),
                caching: Caching::of(&c.inst.attrs),
                vector: None,
            };
            let operands = c.inst.operands.iter().map(|v| renamed.get(v).copied().unwrap_or(*v));
            let operands = operands.chain(when).chain([stage]).collect();
            let inst = GpuOp::from(copy).inst(operands, c.inst.loc);
            let result = (c.ty, c.layout);
            self.add(block, inst, &[result]);
        }
    }

    /// Adds values that the loop carries.
    fn carry(&mut self, id: InstId, begin: &[ValueId]) {
        for v in begin {
            let (ty, layout) = (self.kernel.func().ty(*v), self.layout_of(*v));
            let func = self.func();
            let n = func.insts[id].results.len() as u32;
            let result = func.values.push(Value { ty, def: Def::Inst(id, n) });
            func.insts[id].results.push(result);
            func.insts[id].operands.push(*v);
            self.set_layout(result, layout);
        }
    }

    /// An iteration waits for its own copies, and issues copies for a later one.
    fn iteration(
        &mut self,
        slot: ValueId,
        ahead: &[ValueId],
        tiles: &[ValueId],
        prefetch: Option<OperandPrefetch>,
    ) {
        let body = self.plan.body;
        let mut rest = std::mem::take(&mut self.func().blocks[body].insts);
        let end = rest.pop();
        let apart = self.is_alone() && self.plan.direct.is_empty() || self.plan.in_flight.is_some();
        let product = rest.iter().position(|i| self.is_product(*i)).filter(|_| apart);
        let mut after = rest.split_off(product.map_or(0, |n| n + 1));
        let mut waited = None;
        let (next, prefetched) = match (prefetch, self.plan.phases) {
            (_, Some(product)) => {
                rest.append(&mut after);
                self.iterate_in_phases(product, (slot, ahead, tiles), rest)
            }
            _ if self.plan.by_registers => {
                self.wait();
                let (mut next, stage) = self.copies_ahead(slot, ahead);
                self.func().blocks[body].insts.extend(rest);
                self.func().blocks[body].insts.append(&mut after);
                self.store(body, &mut next, stage, self.plan.stages > 1);
                (next, vec![])
            }
            (Some(prefetch), None) => {
                rest.pop();
                self.func().blocks[body].insts.extend(rest);
                self.multiply(&prefetch, slot, |e| e.copies_ahead(slot, ahead).0)
            }
            (None, None) => {
                self.wait();
                self.func().blocks[body].insts.extend(rest);
                if let Some(f) = self.plan.in_flight.clone() {
                    waited = Some((f.result, f.wait(&mut self.edit, body, f.result, 1)));
                    self.gpu(body, Barrier {}, &[], &[]);
                }
                (self.copies_ahead(slot, ahead).0, vec![])
            }
        };
        self.func().blocks[body].insts.append(&mut after);
        let slot = match self.plan.alternates() {
            true => self.other_stage(body, slot),
            false => self.edit.next_stage(body, slot, self.plan.stages),
        };
        let Some(end) = end else { return };
        let func = self.func();
        if let Some((sums, waited)) = waited {
            func.insts[end].operands.iter_mut().filter(|v| **v == sums).for_each(|v| *v = waited);
        }
        func.insts[end].operands.extend(next.into_iter().chain([slot]).chain(prefetched));
        func.blocks[body].insts.push(end);
    }

    /// Waits until the copies of this iteration are complete, and all threads have read those of the iteration before.
    fn wait(&mut self) {
        let body = self.plan.body;
        if self.plan.by_registers {
            self.gpu(body, Barrier {}, &[], &[]);
            return;
        }
        let pending = self.plan.ahead().saturating_sub(1);
        self.gpu(body, AsyncWait { pending }, &[], &[]);
        if self.needs_barrier {
            self.gpu(body, Barrier {}, &[], &[]);
        }
    }

    /// Copies for a later iteration; returns the slice after it, and the stage.
    fn copies_ahead(&mut self, slot: ValueId, ahead: &[ValueId]) -> (Vec<ValueId>, ValueId) {
        let (body, far) = (self.plan.body, self.plan.ahead());
        let args = self.kernel.func().blocks[body].args.clone();
        let step = self.kernel.func().insts[self.plan.at.1].operands.get(2).copied();
        let (Some(iv), Some(step)) = (args.first().copied(), step) else { return (vec![], slot) };
        // The stage of the previous iteration, which is no longer read.
        if self.plan.by_registers {
            let is_iteration = self.edit.is_iteration(self.plan.at.1, body, iv, far);
            let stage = self.other_stage(body, slot);
            return (self.branch(body, is_iteration, &args, ahead, (iv, step, far), stage, true), stage);
        }
        if self.plan.alternates() {
            let is_iteration = self.edit.is_iteration(self.plan.at.1, body, iv, far);
            let stage = self.other_stage(body, slot);
            let next = self.branch(body, is_iteration, &args, ahead, (iv, step, far), stage, true);
            self.gpu(body, AsyncCommit {}, &[], &[]);
            return (next, stage);
        }
        let back = i64::from(self.plan.stages) - i64::from(far);
        let (by, more) = (self.int(body, DType::I32, back), self.int(body, DType::I32, far.into()));
        let is_iteration = self.edit.is_iteration(self.plan.at.1, body, iv, far);
        let begins = self.compute(body, ElementwiseOp::Lt, &[slot, by], DType::Bool);
        let before = self.compute(body, ElementwiseOp::Sub, &[slot, by], DType::I32);
        let around = self.compute(body, ElementwiseOp::Add, &[slot, more], DType::I32);
        let stage = self.compute(body, ElementwiseOp::Select, &[begins, around, before], DType::I32);
        let next = self.branch(body, is_iteration, &args, ahead, (iv, step, far), stage, true);
        self.gpu(body, AsyncCommit {}, &[], &[]);
        (next, stage)
    }

    /// Returns true if the program is too large for another one to run on its multiprocessor. Then copies come after
    /// the first product, which need not wait for their addresses; otherwise they begin as early as possible. On an
    /// H200, of the best possible: 128 x 256 x 64 on 8 warps 417 and 389 TFLOP/s, 128 x 128 x 32 on 4 warps 385 and
    /// 430.
    fn is_alone(&self) -> bool {
        self.kernel.block_threads() >= LARGE
    }

    fn is_product(&self, id: InstId) -> bool {
        matches!(GpuOp::of(&self.kernel.func().insts[id]), Some(GpuOp::Mma(_) | GpuOp::SharedDot(_)))
    }

    /// Removes instructions that only computed where the loads read.
    fn sweep(&mut self) {
        for i in self.plan.slice.clone().into_iter().rev() {
            let func = self.kernel.func();
            let used: BTreeSet<ValueId> =
                walk::insts(func).into_iter().flat_map(|i| func.insts[i].operands.clone()).collect();
            let inst = &func.insts[i];
            let dead = matches!(of_inst(func, i), Effects::Pure | Effects::Read)
                && inst.results.iter().all(|v| !used.contains(v));
            if dead {
                let body = self.plan.body;
                self.func().blocks[body].insts.retain(|k| *k != i);
            }
        }
    }
}
