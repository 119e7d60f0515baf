//! Inserts barriers where the threads of a program must wait for each other.
//!
//! ```text
//! shared_store v0 {buffer = 0, ..}                      shared_store v0 {buffer = 0, ..}
//! v1 = shared_load {buffer = 0, ..} : .. @l1     =>     barrier
//!                                                       v1 = shared_load {buffer = 0, ..} : .. @l1
//! ```
//!
//! The semantics of a program are those of executing it alone, instruction by instruction. Threads run independently,
//! so a barrier separates two accesses to the same memory of which one writes, in shared memory and in device memory,
//! unless the earlier access is always by the same thread, or by another iteration of a loop with whose counter the
//! positions in a view advance. There is also a barrier before an atomic that releases their
//! writes, and after one that acquires writes of others, since one thread executes it for all. If a barrier before a
//! loop saves barriers in it, it is inserted there.
//!
//! Requires offsets of buffers ([`crate::passes::allocate_shared`]). Guarantees that all threads execute each barrier:
//! control flow is uniform.

use std::collections::BTreeSet;

use tk_ops::{AtomicOp, ControlOp, MemoryOp, Op};
use tk_tile::{BlockId, Def, FuncId, Inst, InstId, Loc, Type, ValueId, walk};

use crate::analysis::advance::{self, Advance, Loop};
use crate::analysis::provenance::Roots;
use crate::ir::cluster;
use crate::ir::kernel::{Kernel, LayoutId};
use crate::ir::op::{AsyncCopy, Barrier, ClusterWait, GpuOp, SharedStore};
use crate::ir::shared_access::{is_of_tma_pipeline, is_own, touched};
use crate::layout::linear::InDim;
use crate::passes::{Pass, Property, Run};
use crate::verify::verify_scheduled;

/// The memory of an access.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// Bytes of shared memory, of a buffer.
    Shared { from: u32, to: u32, buffer: usize },
    /// Device memory.
    Global {
        /// The parameter from which its address derives; `None` if unknown, so any of them.
        root: Option<ValueId>,
        /// Pointers, or view and positions, and the layout, if each thread accesses elements of its own.
        own: Option<(Vec<ValueId>, LayoutId)>,
        /// What makes iterations of a loop access different elements.
        advance: Option<Advance>,
        /// It was in an earlier iteration of that loop.
        earlier: bool,
    },
    /// Writes of other programs.
    Acquired,
}

impl Place {
    /// Any elements of device memory that derive from this parameter.
    fn memory(root: Option<ValueId>) -> Place {
        Place::Global { root, own: None, advance: None, earlier: false }
    }
}

/// The kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Read,
    Write,
    /// One of several stores that fill one buffer.
    Fill,
    /// A store for which the load of its buffer waits itself ([`crate::passes::cluster`]).
    Remote {
        alternates: bool,
    },
    /// A copy or store that fills another stage of a multi-stage buffer than is read meanwhile.
    Pipelined,
    /// An access of each thread to elements of its own in a buffer.
    Own,
    /// An atomic operation.
    Atomic(Atomic),
}

/// The ordering properties of an atomic operation. Two of one program are in program order, unless their order is
/// unobservable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Atomic {
    /// The first thread of the program executes it: its own operations are in order.
    one_thread: bool,
    /// The operations with which it commutes: those of this kind, if nothing uses their results.
    commutes: Option<AtomicOp>,
}

impl Atomic {
    fn ordered_with(self, o: Atomic) -> bool {
        let commute = self.commutes.is_some() && self.commutes == o.commutes;
        !(commute || self.one_thread && o.one_thread)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Touch {
    place: Place,
    act: Act,
}

impl Touch {
    /// The same for any element, and by any thread.
    fn of_any(self) -> Touch {
        let act = match self.act {
            Act::Atomic(a) => Act::Atomic(Atomic { one_thread: false, ..a }),
            act => act,
        };
        match self.place {
            Place::Global { root, .. } => Touch { place: Place::memory(root), act },
            place @ (Place::Shared { .. } | Place::Acquired) => Touch { place, act },
        }
    }

    /// Returns true if a barrier must separate these accesses of two threads.
    fn conflicts(&self, o: &Touch) -> bool {
        let harmless = match (self.act, o.act) {
            (Act::Atomic(a), Act::Atomic(b)) => !a.ordered_with(b),
            (a, b) => a == Act::Read && b == Act::Read,
        };
        match (&self.place, &o.place) {
            (Place::Shared { from: a, to: b, buffer: x }, Place::Shared { from: c, to: d, buffer: y }) => {
                let fills = self.act == Act::Fill && o.act == Act::Fill;
                let ahead = self.act == Act::Pipelined || o.act == Act::Pipelined;
                let own = self.act == Act::Own && o.act == Act::Own;
                // This one comes first.
                let remote_read = matches!(self.act, Act::Remote { .. }) && o.act == Act::Read;
                let alternates = matches!(self.act, Act::Remote { alternates: true })
                    || matches!(o.act, Act::Remote { alternates: true });
                let apart = x == y && (fills || ahead || own || remote_read || alternates);
                a < d && c < b && !harmless && !apart
            }
            (
                Place::Global { root: p, own: x, advance: before, earlier },
                Place::Global { root: q, own: y, advance: now, .. },
            ) => {
                let may_alias = p.is_none() || q.is_none() || p == q;
                let advanced = *earlier && before.is_some() && before == now;
                let own = x.is_some() && x == y;
                may_alias && !harmless && !advanced && !own
            }
            (Place::Acquired, Place::Global { .. }) | (Place::Global { .. }, Place::Acquired) => true,
            (Place::Shared { .. }, _) | (_, Place::Shared { .. }) | (Place::Acquired, Place::Acquired) => {
                false
            }
        }
    }
}

/// Accesses since the last barrier.
type Pending = Vec<Touch>;

fn join(a: &mut Pending, b: &[Touch]) {
    for t in b {
        if !a.contains(t) {
            a.push(t.clone());
        }
    }
}

/// After an iteration, values of a loop denote other elements than in it, so they are not known to be the thread's own.
fn forget(pending: &mut Pending, inside: &BTreeSet<ValueId>) {
    for t in pending {
        let Place::Global { own, advance, earlier, .. } = &mut t.place else { continue };
        if own.as_ref().is_some_and(|(values, _)| values.iter().any(|v| inside.contains(v))) {
            *own = None;
        }
        *earlier |= advance.is_some_and(|a| inside.contains(&a.counter));
    }
}

/// After a loop, its counter begins again.
fn leave(pending: &mut Pending, inside: &BTreeSet<ValueId>) {
    for t in pending {
        let Place::Global { advance, earlier, .. } = &mut t.place else { continue };
        if advance.is_some_and(|a| inside.contains(&a.counter)) {
            (*advance, *earlier) = (None, false);
        }
    }
}

/// The pass.
pub const PASS: Pass = Pass {
    name: "insert_barriers",
    purpose: "puts barriers between accesses of different threads to shared memory",
    needs: &[Property::Offsets],
    leaves: &[Property::Barriers],
    run: Run::Kernel { run, verify: verify_scheduled },
};

fn run(kernel: &mut Kernel) {
    let body = kernel.func().body;
    let roots = Roots::new(kernel.func());
    let mut pending = Pending::default();
    let func = kernel.func();
    let used = walk::insts(func).into_iter().flat_map(|i| func.insts[i].operands.clone()).collect();
    Barriers { kernel, roots, used, loops: vec![], tried: None }.block(body, &mut pending);
    cluster_wait(kernel);
}

/// Makes the blocks of a cluster wait for each other before the first store to shared memory; they need not arrive
/// without one.
fn cluster_wait(kernel: &mut Kernel) {
    let first = cluster::joins(kernel);
    let func = &mut kernel.module.funcs[FuncId(0)];
    let (body, of) = (func.body, &func.insts);
    let Some(at) = func.blocks[body].insts.iter().position(|i| Some(*i) == first) else {
        func.blocks[body].insts.retain(|i| !matches!(GpuOp::of(&of[*i]), Some(GpuOp::ClusterArrive(_))));
        return;
    };
    let loc = first.and_then(|i| func.insts[i].loc);
    func.add_inst(body, GpuOp::from(ClusterWait {}).inst(vec![], loc), &[]);
    if let Some(after) = func.blocks[body].insts.get_mut(at..) {
        after.rotate_right(1);
    }
}

struct Barriers<'a> {
    kernel: &'a mut Kernel,
    roots: Roots,
    /// Values that are operands.
    used: BTreeSet<ValueId>,
    /// The loops around the instruction.
    loops: Vec<Loop>,
    /// In a trial nothing is changed, and the instructions before which barriers would be inserted are recorded.
    tried: Option<BTreeSet<InstId>>,
}

impl Barriers<'_> {
    fn block(&mut self, block: BlockId, pending: &mut Pending) {
        if self.tried.is_some() {
            for i in self.kernel.func().blocks[block].insts.clone() {
                self.inst(block, i, pending);
            }
            return;
        }
        let insts = std::mem::take(&mut self.kernel.module.funcs[FuncId(0)].blocks[block].insts);
        for i in insts {
            self.inst(block, i, pending);
            self.kernel.module.funcs[FuncId(0)].blocks[block].insts.push(i);
        }
    }

    fn inst(&mut self, block: BlockId, id: InstId, pending: &mut Pending) {
        let inst = self.kernel.func().insts[id].clone();
        if self.tried.as_ref().is_some_and(|t| t.contains(&id)) {
            pending.clear();
        }
        let loops = matches!(inst.op, Op::Control(ControlOp::For | ControlOp::While));
        // The number of barriers is computed without optimizing inner loops.
        if loops
            && self.tried.is_none()
            && !pending.is_empty()
            && self.needed(id, &[]) < self.needed(id, pending)
        {
            self.insert_barrier((block, id), inst.loc);
            pending.clear();
        }
        match inst.op {
            Op::Target if matches!(GpuOp::of(&inst), Some(GpuOp::Barrier(_) | GpuOp::PhaseBarrier(_))) => {
                pending.clear();
            }
            Op::Control(ControlOp::GridBarrier) => pending.clear(),
            Op::Control(ControlOp::For | ControlOp::While) => self.looped(id, pending),
            Op::Control(ControlOp::If) => {
                let before = std::mem::take(pending);
                for b in &inst.blocks {
                    let mut arm = before.clone();
                    self.block(*b, &mut arm);
                    join(pending, &arm);
                }
            }
            Op::Target | Op::Memory(_) | Op::Atomic(_) => {
                let touches = self.touches(&inst);
                let releases = matches!(inst.op, Op::Atomic(_)) && ordered(&inst, "release");
                self.access((block, id), inst.loc, &touches, releases, pending);
            }
            // A function of elements contains no barrier, so it is before it.
            Op::Control(ControlOp::Map) | Op::Reduce(_) | Op::Scan(_) => {
                let func = self.kernel.func();
                let inner = inst.blocks.iter().flat_map(|b| walk::insts_in(func, *b));
                let inner: Vec<Inst> = inner.map(|i| func.insts[i].clone()).collect();
                let touches =
                    inner.iter().flat_map(|i| self.touches(i)).map(Touch::of_any).collect::<Vec<_>>();
                let releases = inner.iter().any(|i| matches!(i.op, Op::Atomic(_)) && ordered(i, "release"));
                self.access((block, id), inst.loc, &touches, releases, pending);
            }
            Op::Elementwise(_)
            | Op::Create(_)
            | Op::Shape(_)
            | Op::Dot(_)
            | Op::Random(_)
            | Op::Control(_)
            | Op::Host(_) => {}
        }
    }

    /// A loop.
    fn looped(&mut self, id: InstId, pending: &mut Pending) {
        let inst = self.kernel.func().insts[id].clone();
        let inside = self.defined(&inst);
        // The end of a loop precedes its beginning: a second pass over carried accesses adds nothing.
        if let Some(this) = Loop::of(self.kernel.func(), &inst, inside.clone()) {
            self.loops.push(this);
            for _ in 0..2 {
                let before = pending.clone();
                inst.blocks.iter().for_each(|b| self.block(*b, pending));
                forget(pending, &inside);
                join(pending, &before);
            }
            self.loops.pop();
            leave(pending, &inside);
            return;
        }
        // The other kind ends after its first block.
        let [decides, body] = inst.blocks.as_slice() else { return };
        let mut end = vec![];
        for _ in 0..2 {
            let before = pending.clone();
            self.block(*decides, pending);
            end.clone_from(pending);
            self.block(*body, pending);
            forget(pending, &inside);
            join(pending, &before);
        }
        *pending = end;
    }

    /// The values that are defined in the blocks of an instruction.
    fn defined(&self, inst: &Inst) -> BTreeSet<ValueId> {
        let func = self.kernel.func();
        let mut out = BTreeSet::new();
        for b in &inst.blocks {
            out.extend(&func.blocks[*b].args);
            for i in walk::insts_in(func, *b) {
                let inner = &func.insts[i];
                out.extend(&inner.results);
                out.extend(inner.blocks.iter().flat_map(|b| &func.blocks[*b].args));
            }
        }
        out
    }

    /// An access to memory: a barrier before it if necessary.
    fn access(
        &mut self,
        at: (BlockId, InstId),
        loc: Option<Loc>,
        touches: &[Touch],
        releases: bool,
        pending: &mut Pending,
    ) {
        let global = |t: &Touch| !matches!(t.place, Place::Shared { .. });
        let waits = pending.iter().any(|p| touches.iter().any(|t| p.conflicts(t)) || releases && global(p));
        if waits {
            self.insert_barrier(at, loc);
            pending.clear();
        }
        join(pending, touches);
    }

    /// Inserts a barrier at the end of a block, before the next instruction.
    fn insert_barrier(&mut self, (block, before): (BlockId, InstId), loc: Option<Loc>) {
        if let Some(tried) = &mut self.tried {
            tried.insert(before);
            return;
        }
        let barrier = GpuOp::from(Barrier {}).inst(vec![], loc);
        self.kernel.module.funcs[FuncId(0)].add_inst(block, barrier, &[]);
    }

    /// The number of barriers that a loop would contain.
    fn needed(&mut self, of: InstId, pending: &[Touch]) -> usize {
        let outer = self.tried.replace(BTreeSet::new());
        // Barriers before this loop are not considered again.
        self.looped(of, &mut pending.to_vec());
        std::mem::replace(&mut self.tried, outer).map_or(0, |t| t.len())
    }

    /// The ordering properties of an atomic operation.
    fn atomic(&self, inst: &Inst, op: AtomicOp) -> Atomic {
        let func = self.kernel.func();
        let is_scalar =
            |v: &ValueId| self.kernel.module.types.get(func.ty(*v)).shape().is_none_or(<[u32]>::is_empty);
        let unused = inst.results.iter().all(|r| !self.used.contains(r));
        let commutes = match op {
            AtomicOp::Load => true,
            AtomicOp::Add | AtomicOp::Max | AtomicOp::Min | AtomicOp::And | AtomicOp::Or | AtomicOp::Xor => {
                unused
            }
            AtomicOp::Xchg | AtomicOp::Cas | AtomicOp::Store => false,
        };
        Atomic { one_thread: inst.operands.iter().all(is_scalar), commutes: commutes.then_some(op) }
    }

    fn touches(&self, inst: &Inst) -> Vec<Touch> {
        match inst.op {
            Op::Target => {
                let Some(op) = GpuOp::of(inst) else { return vec![] };
                let (reads, writes) = touched(inst);
                let range = |b: &usize| {
                    let found = self.kernel.buffers.get(*b)?;
                    Some(Place::Shared { from: found.offset, to: found.offset + found.bytes, buffer: *b })
                };
                let act = act(op);
                let own = is_own(op) || is_of_tma_pipeline(op);
                let read = if own { Act::Own } else { Act::Read };
                let reads = reads.iter().filter_map(range).map(|place| Touch { place, act: read });
                let copied = matches!(op, GpuOp::AsyncCopy(_)).then(|| self.copied(inst, Act::Read));
                let stored = matches!(op, GpuOp::TmaStore(_)).then(|| self.copied(inst, Act::Write));
                let writes = writes.iter().filter_map(range).map(|place| Touch { place, act });
                reads.chain(writes).chain(copied).chain(stored).chain(self.loaded(inst)).collect()
            }
            Op::Memory(op) => self.global(inst, op).into_iter().collect(),
            Op::Atomic(op) => {
                let root = inst.operands.first().and_then(|v| self.roots.get(*v));
                let act = Act::Atomic(self.atomic(inst, op));
                let mut touches = vec![Touch { place: Place::memory(root), act }];
                if ordered(inst, "acquire") {
                    touches.push(Touch { place: Place::Acquired, act: Act::Write });
                }
                touches
            }
            Op::Elementwise(_)
            | Op::Create(_)
            | Op::Shape(_)
            | Op::Reduce(_)
            | Op::Scan(_)
            | Op::Dot(_)
            | Op::Random(_)
            | Op::Control(_)
            | Op::Host(_) => vec![],
        }
    }

    /// The memory that a store to shared memory reads if it does its load in chunks, after the barrier before it.
    fn loaded(&self, inst: &Inst) -> Option<Touch> {
        let func = self.kernel.func();
        let GpuOp::SharedStore(SharedStore { chunked: true, .. }) = GpuOp::of(inst)? else { return None };
        let v = inst.operands.first()?;
        let Def::Inst(load, _) = func.values[*v].def else { return None };
        let load = &func.insts[load];
        let Op::Memory(op) = load.op else { return None };
        self.global(load, op)
    }

    /// The device memory that a copy reads or writes.
    fn copied(&self, inst: &Inst, act: Act) -> Touch {
        let root = inst.operands.first().and_then(|v| self.roots.get(*v));
        Touch { place: Place::memory(root), act }
    }

    fn global(&self, inst: &Inst, op: MemoryOp) -> Option<Touch> {
        let place = *inst.operands.first()?;
        let (act, tile) = match op {
            MemoryOp::Load => (Act::Read, Some(place)),
            MemoryOp::Store => (Act::Write, Some(place)),
            MemoryOp::ViewLoad => (Act::Read, inst.results.first().copied()),
            MemoryOp::ViewStore => (Act::Write, inst.operands.last().copied()),
            MemoryOp::ViewGather => (Act::Read, None),
            MemoryOp::ViewScatter => (Act::Write, None),
            MemoryOp::PtrAdd
            | MemoryOp::View
            | MemoryOp::ViewShape
            | MemoryOp::ViewStride
            | MemoryOp::ViewPtr
            | MemoryOp::ViewSlice
            | MemoryOp::ViewPermute
            | MemoryOp::ViewInside
            | MemoryOp::Prefetch => return None,
        };
        let func = self.kernel.func();
        let ty = self.kernel.module.types.get(func.ty(place));
        let layout = tile.and_then(|t| self.kernel.value_layouts.get(t.0 as usize).copied().flatten());
        // An element that two threads own is not a thread's own.
        let alone = layout.filter(|l| {
            let atom = self.kernel.layouts.get(*l).atom();
            atom.free_bits(InDim::Lane) == 0 && atom.free_bits(InDim::Warp) == 0
        });
        let count = match ty {
            Type::View { rank, .. } => 1 + *rank as usize,
            Type::Tile { .. } => 1,
        };
        let own = alone.map(|l| (inst.operands.iter().take(count).copied().collect(), l));
        let shape = tile.and_then(|t| self.kernel.module.types.get(func.ty(t)).shape());
        let boxes = matches!(op, MemoryOp::ViewLoad | MemoryOp::ViewStore);
        let advance = shape.filter(|_| boxes).and_then(|s| advance::of(func, &self.loops, inst, s));
        let root = self.roots.get(place);
        Some(Touch { place: Place::Global { root, own, advance, earlier: false }, act })
    }
}

/// Returns true if an atomic has an order, alone or combined with the other one.
fn ordered(inst: &Inst, order: &str) -> bool {
    matches!(inst.attrs.str("order"), Some(o) if o == order || o == "acq_rel")
}

/// How an operation accesses the buffers that it writes.
fn act(op: &GpuOp) -> Act {
    match op {
        GpuOp::SharedAdd(_) => Act::Atomic(Atomic { one_thread: false, commutes: Some(AtomicOp::Add) }),
        // TMA pipelines have mbarriers of their own.
        GpuOp::IsProducerWarp(_)
        | GpuOp::GroupId(_)
        | GpuOp::GroupOwn(_)
        | GpuOp::Elect(_)
        | GpuOp::SetMaxRegisters(_)
        | GpuOp::TmaLoad(_)
        | GpuOp::ProducerSend(_)
        | GpuOp::ConsumerReceive(_)
        | GpuOp::ProducerAcquire(_)
        | GpuOp::ProducerCommit(_)
        | GpuOp::ProducerDrain(_)
        | GpuOp::ConsumerWait(_)
        | GpuOp::ConsumerRelease(_)
        | GpuOp::ConsumerSkip(_)
        | GpuOp::TurnWait(_)
        | GpuOp::TurnPass(_) => Act::Own,
        GpuOp::AsyncCopy(copy) if copy.own => Act::Own,
        GpuOp::AsyncCopy(AsyncCopy { ahead: true, .. })
        | GpuOp::SharedStore(SharedStore { ahead: true, .. }) => Act::Pipelined,
        GpuOp::SharedStore(SharedStore { remote: Some(exchange), .. }) => {
            Act::Remote { alternates: exchange.alternates }
        }
        // A loop that begins again fills the same stages.
        GpuOp::SharedStore(store) if store.buffer.stages.is_some() => Act::Write,
        GpuOp::SharedStore(_) | GpuOp::AsyncCopy(_) => Act::Fill,
        GpuOp::SharedScatter(_)
        | GpuOp::SharedLoad(_)
        | GpuOp::SharedGather(_)
        | GpuOp::SharedRank(_)
        | GpuOp::SharedDot(_)
        | GpuOp::AsyncCommit(_)
        | GpuOp::AsyncWait(_)
        | GpuOp::ProxyFence(_)
        | GpuOp::Mma(_)
        | GpuOp::MmaWait(_)
        | GpuOp::TmaStore(_)
        | GpuOp::TmaStoreWait(_)
        | GpuOp::Fragments(_)
        | GpuOp::Convert(_)
        | GpuOp::Unspecified(_)
        | GpuOp::OptimizationBarrier(_)
        | GpuOp::ClusterArrive(_)
        | GpuOp::ClusterWait(_)
        | GpuOp::ClusterSync(_)
        | GpuOp::Barrier(_)
        | GpuOp::PhaseBarrier(_)
        | GpuOp::HalfBarrier(_) => Act::Write,
    }
}
