//! Puts barriers where the threads of a program have to wait for each other.
//!
//! ```text
//! shared_store v0 {buffer = 0, ..}                      shared_store v0 {buffer = 0, ..}
//! v1 = shared_load {buffer = 0, ..} : .. @l1     =>     barrier
//!                                                       v1 = shared_load {buffer = 0, ..} : .. @l1
//! ```
//!
//! A program means what it would mean if it ran alone, instruction by instruction. Threads run on by themselves, so they
//! meet between two accesses to the same place of which one writes, in shared memory and in device memory, unless every
//! thread only meets its own earlier access. They also meet before an atomic that releases what they wrote, and behind
//! one that acquires what others wrote, since one thread does it for all. Where a loop needs fewer barriers if all meet before
//! it, they do.
//!
//! May assume the places of buffers ([`crate::passes::allocate_shared`]). Guarantees that barriers stand where all threads come by: control
//! flow is uniform.

use std::collections::BTreeSet;

use tk_ops::{AtomicOp, ControlOp, MemoryOp, Op};
use tk_tile::{BlockId, Def, FuncId, Inst, InstId, Loc, Type, ValueId, walk};

use crate::analysis::provenance::Roots;
use crate::ir::kernel::{Kernel, LayoutId};
use crate::ir::op::{AsyncCopy, Barrier, GpuOp, SharedStore};
use crate::ir::shared_access::{is_of_tma_pipeline, is_own, touched};
use crate::layout::linear::InDim;
use crate::passes::{Pass, Property, Run};
use crate::verify::verify_scheduled;

/// Where something is accessed.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// Bytes of shared memory, of a buffer.
    Shared { from: u32, to: u32, buffer: usize },
    /// Device memory.
    Global {
        /// The parameter that reaches it; any of them if it is unknown.
        root: Option<ValueId>,
        /// Pointers, or view and positions, and the layout, if each thread accesses elements of its own.
        own: Option<(Vec<ValueId>, LayoutId)>,
    },
    /// What other programs wrote.
    Acquired,
}

/// What is done there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Read,
    Write,
    /// One of several stores that fill one buffer.
    Fill,
    /// A store for which the load of its buffer waits by itself ([`crate::passes::cluster`]).
    Remote,
    /// A copy or store that runs ahead into another stage of a multi-stage buffer than is read meanwhile.
    Pipelined,
    /// An access of each thread to places of its own in a buffer.
    Own,
    /// One step of memory.
    Atomic(Atomic),
}

/// What is known of an atomic operation. Two of one program are in program order, unless no order of them can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Atomic {
    /// The first thread of the program does it: it keeps the order of its own.
    one_thread: bool,
    /// With which others it may change places: operations of this kind, whose results nothing uses.
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
    /// The same of any element, and by any thread.
    fn of_any(self) -> Touch {
        let act = match self.act {
            Act::Atomic(a) => Act::Atomic(Atomic { one_thread: false, ..a }),
            act => act,
        };
        match self.place {
            Place::Global { root, own: _ } => Touch { place: Place::Global { root, own: None }, act },
            place @ (Place::Shared { .. } | Place::Acquired) => Touch { place, act },
        }
    }

    /// Whether two threads may not do these without meeting.
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
                let remote_read = self.act == Act::Remote && o.act == Act::Read;
                a < d && c < b && !harmless && !(x == y && (fills || ahead || own || remote_read))
            }
            (Place::Global { root: p, own: x }, Place::Global { root: q, own: y }) => {
                let may_alias = p.is_none() || q.is_none() || p == q;
                may_alias && !harmless && !(x.is_some() && x == y)
            }
            (Place::Acquired, Place::Global { .. }) | (Place::Global { .. }, Place::Acquired) => true,
            (Place::Shared { .. }, _) | (_, Place::Shared { .. }) | (Place::Acquired, Place::Acquired) => {
                false
            }
        }
    }
}

/// Accesses since all threads met last.
type Pending = Vec<Touch>;

fn join(a: &mut Pending, b: &[Touch]) {
    for t in b {
        if !a.contains(t) {
            a.push(t.clone());
        }
    }
}

/// Behind an iteration, values of a loop name other elements than they did in it: nobody knows that they are its own.
fn forget(pending: &mut Pending, inside: &BTreeSet<ValueId>) {
    for t in pending {
        if let Place::Global { own, .. } = &mut t.place
            && own.as_ref().is_some_and(|(values, _)| values.iter().any(|v| inside.contains(v)))
        {
            *own = None;
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
    Barriers { kernel, roots, used, tried: None }.block(body, &mut pending);
}

struct Barriers<'a> {
    kernel: &'a mut Kernel,
    roots: Roots,
    /// Values that some instruction takes.
    used: BTreeSet<ValueId>,
    /// Nothing is changed, and the instructions before which barriers would stand are written down.
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
        // What would be needed is counted without asking the same of inner loops.
        if loops
            && self.tried.is_none()
            && !pending.is_empty()
            && self.needed(id, &[]) < self.needed(id, pending)
        {
            self.meet((block, id), inst.loc);
            pending.clear();
        }
        match inst.op {
            Op::Target if matches!(GpuOp::of(&inst), Some(GpuOp::Barrier(_))) => pending.clear(),
            Op::Control(ControlOp::GridBarrier) => pending.clear(),
            Op::Control(ControlOp::For | ControlOp::While) => self.looped(id, pending),
            Op::Control(ControlOp::If) => {
                let before = pending.clone();
                let mut after = before.clone();
                for b in &inst.blocks {
                    let mut arm = before.clone();
                    self.block(*b, &mut arm);
                    join(&mut after, &arm);
                }
                *pending = after;
            }
            Op::Target | Op::Memory(_) | Op::Atomic(_) => {
                let touches = self.touches(&inst);
                let releases = matches!(inst.op, Op::Atomic(_)) && ordered(&inst, "release");
                self.access((block, id), inst.loc, &touches, releases, pending);
            }
            // Nobody meets inside of a function of elements, so all meet before it.
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
        // A loop may begin behind its own end: what came round once has no more to tell a second time.
        if inst.op == Op::Control(ControlOp::For) {
            for _ in 0..2 {
                let before = pending.clone();
                inst.blocks.iter().for_each(|b| self.block(*b, pending));
                forget(pending, &inside);
                join(pending, &before);
            }
            return;
        }
        // The other kind ends behind its first block.
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

    /// Something touches memory: all meet before it if they must.
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
            self.meet(at, loc);
            pending.clear();
        }
        join(pending, touches);
    }

    /// Puts a barrier at the end of a block, in front of an instruction that is next.
    fn meet(&mut self, (block, before): (BlockId, InstId), loc: Option<Loc>) {
        if let Some(tried) = &mut self.tried {
            tried.insert(before);
            return;
        }
        let barrier = GpuOp::from(Barrier {}).inst(vec![], loc);
        self.kernel.module.funcs[FuncId(0)].add_inst(block, barrier, &[]);
    }

    /// How many barriers a loop would have in it.
    fn needed(&mut self, of: InstId, pending: &[Touch]) -> usize {
        let outer = self.tried.replace(BTreeSet::new());
        // Whether all meet before this loop is not asked again.
        self.looped(of, &mut pending.to_vec());
        std::mem::replace(&mut self.tried, outer).map_or(0, |t| t.len())
    }

    /// What is known of an atomic operation.
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
                    let (from, to) = (found.offset, found.offset + found.bytes);
                    Some(Place::Shared { from, to, buffer: *b })
                };
                let act = match op {
                    GpuOp::SharedAdd(_) => {
                        Act::Atomic(Atomic { one_thread: false, commutes: Some(AtomicOp::Add) })
                    }
                    // TMA pipelines have barriers of their own.
                    GpuOp::IsProducerWarp(_)
                    | GpuOp::Elect(_)
                    | GpuOp::SetMaxRegisters(_)
                    | GpuOp::TmaLoad(_)
                    | GpuOp::ProducerAcquire(_)
                    | GpuOp::ProducerCommit(_)
                    | GpuOp::ConsumerWait(_)
                    | GpuOp::ConsumerRelease(_) => Act::Own,
                    GpuOp::AsyncCopy(copy) if copy.own => Act::Own,
                    GpuOp::AsyncCopy(AsyncCopy { ahead: true, .. })
                    | GpuOp::SharedStore(SharedStore { ahead: true, .. }) => Act::Pipelined,
                    GpuOp::SharedStore(store) if store.remote => Act::Remote,
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
                    | GpuOp::Fragments(_)
                    | GpuOp::Convert(_)
                    | GpuOp::Barrier(_) => Act::Write,
                };
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
                let mut touches = vec![Touch { place: Place::Global { root, own: None }, act }];
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

    /// What a store to shared memory reads that does its load chunk by chunk, behind the barrier in front of it.
    fn loaded(&self, inst: &Inst) -> Option<Touch> {
        let func = self.kernel.func();
        let GpuOp::SharedStore(SharedStore { chunked: true, .. }) = GpuOp::of(inst)? else { return None };
        let v = inst.operands.first()?;
        let Def::Inst(load, _) = func.values[*v].def else { return None };
        let load = &func.insts[load];
        let Op::Memory(op) = load.op else { return None };
        self.global(load, op)
    }

    /// What a copy reads or writes in device memory.
    fn copied(&self, inst: &Inst, act: Act) -> Touch {
        let root = inst.operands.first().and_then(|v| self.roots.get(*v));
        Touch { place: Place::Global { root, own: None }, act }
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
        let layout = tile.and_then(|t| self.kernel.of.get(t.0 as usize).copied().flatten());
        // Two threads that hold the same element are not alone with it.
        let alone = layout.filter(|l| {
            let atom = self.kernel.layouts.get(*l).atom();
            atom.free_bits(InDim::Lane) == 0 && atom.free_bits(InDim::Warp) == 0
        });
        let count = match ty {
            Type::View { rank, .. } => 1 + *rank as usize,
            Type::Tile { .. } => 1,
        };
        let own = alone.map(|l| (inst.operands.iter().take(count).copied().collect(), l));
        let root = self.roots.get(place);
        Some(Touch { place: Place::Global { root, own }, act })
    }
}

/// Whether an atomic has an order, alone or with the other one.
fn ordered(inst: &Inst, order: &str) -> bool {
    matches!(inst.attrs.str("order"), Some(o) if o == order || o == "acq_rel")
}
