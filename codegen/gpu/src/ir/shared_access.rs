//! Computes the effects of instructions on shared memory, for the passes that place buffers and insert barriers.
//!
//! Guarantees that every access is listed.

use std::collections::BTreeSet;

use tk_ops::{MemoryOp, Op};
use tk_tile::effects::is_volatile;
use tk_tile::rewrite::constant;
use tk_tile::{Def, Inst, InstId, ValueId, walk};

use crate::ir::kernel::Kernel;
use crate::ir::op::{
    AsyncCopy, BufferRef, ConsumerReceive, ConsumerRelease, ConsumerSkip, ConsumerWait, Fragments, GpuOp,
    MmaOperand, ProducerAcquire, ProducerCommit, ProducerDrain, ProducerSend, SharedAdd, SharedGather,
    SharedLoad, SharedRank, SharedScatter, SharedStore, TmaStore, TurnPass, TurnWait,
};
use crate::layout::linear::InDim;
use crate::layout::{Cut, Layout, cut, padded};

/// The buffers of an instruction in the order of its fields, each with its stages.
pub fn buffers(inst: &Inst) -> Vec<BufferRef> {
    let Some(op) = GpuOp::of(inst) else { return vec![] };
    let whole = |buffers: &[usize]| buffers.iter().map(|b| BufferRef::whole(*b)).collect();
    match op {
        GpuOp::SharedStore(SharedStore { buffer, .. })
        | GpuOp::SharedLoad(SharedLoad { buffer, .. })
        | GpuOp::Fragments(Fragments { buffer, .. })
        | GpuOp::AsyncCopy(AsyncCopy { buffer, .. }) => vec![*buffer],
        GpuOp::SharedGather(SharedGather { buffer, .. })
        | GpuOp::SharedScatter(SharedScatter { buffer, .. })
        | GpuOp::SharedRank(SharedRank { buffer, .. })
        | GpuOp::SharedAdd(SharedAdd { buffer, .. })
        | GpuOp::TmaStore(TmaStore { buffer, .. }) => whole(&[*buffer]),
        GpuOp::SharedDot(dot) => dot.buffers.to_vec(),
        GpuOp::Mma(mma) => [&mma.a, &mma.b].into_iter().filter_map(MmaOperand::buffer).collect(),
        GpuOp::MmaWait(wait) => whole(&wait.buffers),
        GpuOp::TmaStoreWait(wait) => whole(&wait.buffers),
        GpuOp::TmaLoad(load) => whole(&[load.destination, load.pipeline.barriers]),
        GpuOp::ProducerSend(ProducerSend { pipeline, buffer })
        | GpuOp::ConsumerReceive(ConsumerReceive { pipeline, buffer }) => {
            whole(&[*buffer, pipeline.barriers])
        }
        GpuOp::IsProducerWarp(is) => {
            is.pipelines.iter().map(|p| p.barriers).chain(is.turns).map(BufferRef::whole).collect()
        }
        GpuOp::TurnWait(TurnWait { turns }) | GpuOp::TurnPass(TurnPass { turns }) => whole(&[*turns]),
        GpuOp::ProducerAcquire(ProducerAcquire { pipeline, .. })
        | GpuOp::ProducerCommit(ProducerCommit { pipeline })
        | GpuOp::ProducerDrain(ProducerDrain { pipeline })
        | GpuOp::ConsumerWait(ConsumerWait { pipeline })
        | GpuOp::ConsumerSkip(ConsumerSkip { pipeline })
        | GpuOp::ConsumerRelease(ConsumerRelease { pipeline, .. }) => whole(&[pipeline.barriers]),
        GpuOp::Convert(_)
        | GpuOp::Unspecified(_)
        | GpuOp::OptimizationBarrier(_)
        | GpuOp::AsyncCommit(_)
        | GpuOp::AsyncWait(_)
        | GpuOp::GroupId(_)
        | GpuOp::GroupOwn(_)
        | GpuOp::Elect(_)
        | GpuOp::SetMaxRegisters(_)
        | GpuOp::ProxyFence(_)
        | GpuOp::ClusterArrive(_)
        | GpuOp::ClusterWait(_)
        | GpuOp::ClusterSync(_)
        | GpuOp::Barrier(_)
        | GpuOp::PhaseBarrier(_)
        | GpuOp::HalfBarrier(_) => vec![],
    }
}

/// Returns true if an instruction accesses a buffer.
pub fn accesses(inst: &Inst, buffer: usize) -> bool {
    buffers(inst).iter().any(|b| b.buffer == buffer)
}

/// Makes a buffer of an instruction a multi-stage buffer; does nothing to instructions that access only whole buffers.
/// Does not change the operand with the number of the stage.
pub fn set_stages(op: &mut GpuOp, buffer: usize, stages: u32) {
    let set = |b: &mut BufferRef| {
        if b.buffer == buffer {
            b.stages = Some(stages);
        }
    };
    match op {
        GpuOp::SharedStore(SharedStore { buffer, .. })
        | GpuOp::SharedLoad(SharedLoad { buffer, .. })
        | GpuOp::Fragments(Fragments { buffer, .. })
        | GpuOp::AsyncCopy(AsyncCopy { buffer, .. }) => set(buffer),
        GpuOp::SharedDot(dot) => dot.buffers.iter_mut().for_each(set),
        GpuOp::Mma(mma) => [&mut mma.a, &mut mma.b].into_iter().for_each(|side| {
            if let MmaOperand::Shared { buffer, .. } = side {
                set(buffer);
            }
        }),
        GpuOp::SharedGather(_)
        | GpuOp::SharedScatter(_)
        | GpuOp::SharedRank(_)
        | GpuOp::SharedAdd(_)
        | GpuOp::TmaStore(_)
        | GpuOp::TmaStoreWait(_)
        | GpuOp::MmaWait(_)
        | GpuOp::TmaLoad(_)
        | GpuOp::IsProducerWarp(_)
        | GpuOp::ProducerSend(_)
        | GpuOp::ConsumerReceive(_)
        | GpuOp::ProducerAcquire(_)
        | GpuOp::ProducerCommit(_)
        | GpuOp::ProducerDrain(_)
        | GpuOp::ConsumerWait(_)
        | GpuOp::ConsumerRelease(_)
        | GpuOp::ConsumerSkip(_)
        | GpuOp::TurnWait(_)
        | GpuOp::TurnPass(_)
        | GpuOp::Convert(_)
        | GpuOp::Unspecified(_)
        | GpuOp::OptimizationBarrier(_)
        | GpuOp::AsyncCommit(_)
        | GpuOp::AsyncWait(_)
        | GpuOp::GroupId(_)
        | GpuOp::GroupOwn(_)
        | GpuOp::Elect(_)
        | GpuOp::SetMaxRegisters(_)
        | GpuOp::ProxyFence(_)
        | GpuOp::ClusterArrive(_)
        | GpuOp::ClusterWait(_)
        | GpuOp::ClusterSync(_)
        | GpuOp::Barrier(_)
        | GpuOp::PhaseBarrier(_)
        | GpuOp::HalfBarrier(_) => {}
    }
}

/// The number of the stage that an instruction accesses, if one of its buffers is a multi-stage buffer.
pub fn stage_index(inst: &Inst) -> Option<ValueId> {
    let staged = buffers(inst).iter().any(|b| b.stages.is_some());
    inst.operands.last().copied().filter(|_| staged)
}

/// Returns true if an operand of an instruction is its predicate.
pub fn has_predicate(inst: &Inst) -> bool {
    match GpuOp::of(inst) {
        Some(GpuOp::AsyncCopy(copy)) => copy.when,
        Some(GpuOp::ConsumerRelease(release)) => release.when,
        _ => false,
    }
}

/// The predicate of an instruction, if it has one.
pub fn predicate(inst: &Inst) -> Option<ValueId> {
    let after = usize::from(stage_index(inst).is_some());
    let at = inst.operands.len().checked_sub(1 + after).filter(|_| has_predicate(inst))?;
    inst.operands.get(at).copied()
}

/// The operands of an instruction without its predicate and the number of the stage.
pub fn plain_operands(inst: &Inst) -> &[ValueId] {
    let more = usize::from(stage_index(inst).is_some()) + usize::from(predicate(inst).is_some());
    inst.operands.get(..inst.operands.len().saturating_sub(more)).unwrap_or(&[])
}

/// The number of neighbours in consecutive registers that one access to a buffer with these `bases` moves. All sizes
/// are bytes; `start` is the offset of the buffer, `most` the widest access.
pub fn swizzled_vector(layout: &Layout, bases: &[i64], start: i64, bytes: i64, most: i64) -> u32 {
    let bits = neighbours(layout, bases, start, bytes, most);
    1 << bits.iter().enumerate().take_while(|(i, bit)| i == *bit).count()
}

/// The register bits of the neighbours that one access moves, the nearest first.
pub fn neighbours(layout: &Layout, bases: &[i64], start: i64, bytes: i64, most: i64) -> Vec<usize> {
    let atom = layout.atom();
    let of = |dim: InDim| {
        (0..atom.bits(dim))
            .filter_map(|i| atom.basis(dim, i))
            .map(|b| image(bases, atom.out_bits(), &b) * bytes)
            .collect::<Vec<_>>()
    };
    let (register, mut thread) = (of(InDim::Register), of(InDim::Lane));
    thread.extend(of(InDim::Warp));
    let mut found = vec![];
    loop {
        let wide = (2 * bytes) << found.len();
        let Some(next) = register.iter().position(|p| 2 * p == wide) else { return found };
        let others = register.iter().enumerate().filter(|(i, _)| *i != next && !found.contains(i));
        let mut others = others.map(|(_, p)| p).chain(&thread);
        if wide > most || start % wide != 0 || others.any(|p| p % wide != 0) {
            return found;
        }
        found.push(next);
    }
}

/// The offset of coordinates, in elements, if `bases` has an entry for each of their `out_bits`, dimension by
/// dimension.
pub fn image(bases: &[i64], out_bits: &[u32], at: &[u32]) -> i64 {
    let mut bases = bases.iter();
    let mut place = 0;
    for (c, bits) in at.iter().zip(out_bits) {
        for i in 0..*bits {
            let base = bases.next().copied().unwrap_or(0);
            place ^= if c >> i & 1 == 1 { base } else { 0 };
        }
    }
    place
}

/// The place of atom `n` in a buffer with these `bases`, in elements: where its group begins, and the exclusive or for it
/// in the group ([`Placement::Swizzled`]). A tile has `along` atoms along its last dimension, of `out_bits`.
pub fn atom_place(bases: &[i64], out_bits: &[u32], along: usize, n: usize) -> [i64; 2] {
    let bits = out_bits.iter().sum::<u32>() as usize;
    let more = bases.get(bits..).unwrap_or(&[]);
    let (across, n) = (n / along.max(1), n % along.max(1));
    let group = across * along.div_ceil(1 << more.len()) + (n >> more.len());
    let inside = more.iter().enumerate().filter(|(i, _)| n >> i & 1 == 1).fold(0, |all, (_, b)| all ^ b);
    [(group as i64) << bits.max(bases.len()), inside]
}

/// The elements of a buffer that has room for a tile with these `bases`.
pub fn swizzled_elements(shape: &[u32], bases: &[i64]) -> u64 {
    let cuts: Vec<Cut> = shape.iter().map(|n| cut(*n)).collect();
    let bits: u32 = cuts.iter().map(|c| c.log2).sum();
    let more = (bases.len() as u32).saturating_sub(bits);
    let (last, before) = cuts.split_last().map_or((1, &[][..]), |(last, before)| (last.repeats, before));
    let groups =
        before.iter().map(|c| u64::from(c.repeats)).product::<u64>() * u64::from(last.div_ceil(1 << more));
    groups << (bits + more)
}

/// The same for an element at `start`, in bytes, plus the sum of its coordinates times `strides`, in elements, in a
/// tile of this shape. Elements of a vector are all padding or none is.
pub fn strided_vector(
    layout: &Layout,
    shape: &[u32],
    (start, strides): (i64, &[i64]),
    bytes: i64,
    most: i64,
) -> u32 {
    let rank = layout.repeats().len();
    let step = |d: usize| strides.get(d).copied().unwrap_or(0) * bytes;
    let Some(along) = (0..rank).find(|d| step(*d) == bytes) else { return 1 };
    let mut vector = i64::from(layout.vector(along)).min((most / bytes).max(1));
    let fits = |v: i64| start % v == 0 && (0..rank).filter(|d| *d != along).all(|d| step(d) % v == 0);
    while vector > 1 && (!layout.is_disjoint() || !fits(vector * bytes)) {
        vector /= 2;
    }
    let padding = shape.iter().filter(|n| padded(**n) != **n);
    padding.fold(vector, |v, n| v.min(1 << n.trailing_zeros().min(4))) as u32
}

/// Returns true if each thread reads only what it wrote itself, so that no barrier is needed.
pub fn is_own(op: &GpuOp) -> bool {
    match op {
        GpuOp::SharedLoad(load) => load.own,
        GpuOp::AsyncCopy(copy) => copy.own,
        _ => false,
    }
}

/// Returns true if an access fills the stage of a later iteration.
pub fn is_ahead(op: &GpuOp) -> bool {
    match op {
        GpuOp::SharedStore(store) => store.ahead,
        GpuOp::AsyncCopy(copy) => copy.ahead,
        _ => false,
    }
}

/// Returns true if an instruction adds to elements to which other threads may add at the same time.
pub fn is_addition(inst: &Inst) -> bool {
    matches!(GpuOp::of(inst), Some(GpuOp::SharedAdd(_)))
}

/// Returns true if an operation is ordered by the mbarriers of a TMA pipeline ([`crate::passes::warp_specialize`]).
pub fn is_of_tma_pipeline(op: &GpuOp) -> bool {
    matches!(
        op,
        GpuOp::IsProducerWarp(_)
            | GpuOp::ProducerSend(_)
            | GpuOp::ConsumerReceive(_)
            | GpuOp::TmaLoad(_)
            | GpuOp::ProducerAcquire(_)
            | GpuOp::ProducerCommit(_)
            | GpuOp::ProducerDrain(_)
            | GpuOp::ConsumerWait(_)
            | GpuOp::ConsumerRelease(_)
            | GpuOp::ConsumerSkip(_)
            | GpuOp::TurnWait(_)
            | GpuOp::TurnPass(_)
    )
}

/// The load whose elements a store to shared memory stores, and nothing else uses.
pub fn loaded(kernel: &Kernel, store: InstId) -> Option<InstId> {
    let func = kernel.func();
    let v = *func.insts[store].operands.first()?;
    let Def::Inst(load, _) = func.values[v].def else { return None };
    let inst = &func.insts[load];
    let is_load = matches!(inst.op, Op::Memory(MemoryOp::Load | MemoryOp::ViewLoad)) && !is_volatile(inst);
    let users = walk::insts(func).into_iter().filter(|i| func.insts[*i].operands.contains(&v)).count();
    (is_load && users == 1).then_some(load)
}

/// Registers of a lane that a chunk of such a load fills: enough accesses at once that their latencies overlap.
pub const CHUNK: u32 = 16;

/// Tiles that the store to shared memory loads itself, chunk by chunk ([`crate::passes::chunk_loads`]).
pub fn chunked(kernel: &Kernel) -> BTreeSet<ValueId> {
    let func = kernel.func();
    let insts = walk::insts(func).into_iter().map(|i| &func.insts[i]);
    let stores = insts.filter(|i| matches!(GpuOp::of(i), Some(GpuOp::SharedStore(s)) if s.chunked));
    stores.filter_map(|i| i.operands.first().copied()).collect()
}

/// The buffers that an instruction reads and writes.
pub fn touched(inst: &Inst) -> (Vec<usize>, Vec<usize>) {
    let Some(op) = GpuOp::of(inst) else { return (vec![], vec![]) };
    let buffers = buffers(inst).into_iter().map(|b| b.buffer).collect();
    match op {
        GpuOp::SharedStore(_) | GpuOp::SharedScatter(_) | GpuOp::AsyncCopy(_) => (vec![], buffers),
        GpuOp::SharedLoad(_)
        | GpuOp::SharedGather(_)
        | GpuOp::SharedRank(_)
        | GpuOp::SharedDot(_)
        | GpuOp::Mma(_)
        | GpuOp::MmaWait(_)
        | GpuOp::TmaStore(_)
        | GpuOp::TmaStoreWait(_)
        | GpuOp::Fragments(_) => (buffers, vec![]),
        // Atomic additions of several threads need no barrier between them, but one before any other access.
        GpuOp::SharedAdd(_) => (vec![], buffers),
        // The mbarriers of TMA pipelines are among them; the elements are written.
        GpuOp::IsProducerWarp(_) | GpuOp::TmaLoad(_) | GpuOp::ProducerSend(_) => (vec![], buffers),
        GpuOp::ProducerAcquire(_)
        | GpuOp::ConsumerReceive(_)
        | GpuOp::ProducerCommit(_)
        | GpuOp::ProducerDrain(_)
        | GpuOp::ConsumerWait(_)
        | GpuOp::ConsumerRelease(_)
        | GpuOp::ConsumerSkip(_)
        | GpuOp::TurnWait(_)
        | GpuOp::TurnPass(_) => (buffers, vec![]),
        GpuOp::GroupId(_)
        | GpuOp::GroupOwn(_)
        | GpuOp::Elect(_)
        | GpuOp::SetMaxRegisters(_)
        | GpuOp::Convert(_)
        | GpuOp::Unspecified(_)
        | GpuOp::OptimizationBarrier(_)
        | GpuOp::ClusterArrive(_)
        | GpuOp::ClusterWait(_)
        | GpuOp::ClusterSync(_)
        | GpuOp::Barrier(_)
        | GpuOp::PhaseBarrier(_)
        | GpuOp::HalfBarrier(_)
        | GpuOp::ProxyFence(_)
        | GpuOp::AsyncCommit(_)
        | GpuOp::AsyncWait(_) => (vec![], vec![]),
    }
}

/// The value of elements that a load leaves out, unless it is 0, as for a copy.
pub fn other_of(kernel: &Kernel, load: InstId) -> Option<ValueId> {
    let inst = &kernel.func().insts[load];
    let other = inst.operands.get(places(kernel, load).len()).copied()?;
    let zero = constant(kernel.func(), other).is_some_and(|s| s.bits() == 0);
    (!zero).then_some(other)
}

/// The operands of a load that give the addresses.
pub fn places(kernel: &Kernel, load: InstId) -> &[ValueId] {
    let inst = &kernel.func().insts[load];
    let rank = |v: &ValueId| kernel.module.types.get(kernel.func().ty(*v)).shape().map_or(0, <[u32]>::len);
    let view = inst.op == Op::Memory(MemoryOp::ViewLoad);
    let plain = if view { 1 + inst.results.first().map_or(0, rank) } else { 2 };
    inst.operands.get(..plain.min(inst.operands.len())).unwrap_or(&[])
}
