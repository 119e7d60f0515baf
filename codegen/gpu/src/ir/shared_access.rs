//! Owns what instructions do to shared memory, for those who decide where it lies and who waits.
//!
//! May assume nothing: attributes that are missing name no buffer. Guarantees that every access is listed.

use std::collections::BTreeSet;

use tk_ops::{MachineOp, MemoryOp, Op};
use tk_tile::effects::is_volatile;
use tk_tile::rewrite::constant;
use tk_tile::{Def, Inst, InstId, ValueId, walk};

use crate::ir::kernel::Kernel;
use crate::layout::linear::InDim;
use crate::layout::{Layout, padded};

/// The buffers that an instruction names, in the order of its attributes; `None` for no buffer.
pub fn named(inst: &Inst) -> Vec<Option<usize>> {
    let list = inst.attrs.int("buffer").map(|b| vec![b]);
    let list = list.unwrap_or_else(|| inst.attrs.ints("buffers").unwrap_or(&[]).to_vec());
    list.iter().map(|b| usize::try_from(*b).ok()).collect()
}

/// The stages of each buffer that an instruction names: 1 where it is no multi-stage buffer.
pub fn buffer_stages(inst: &Inst) -> Vec<(usize, u32)> {
    let slots = inst.attrs.ints("buffer_stages").unwrap_or(&[]).iter().copied().chain(std::iter::repeat(1));
    let stages = |n: i64| u32::try_from(n).unwrap_or(1).max(1);
    named(inst).into_iter().zip(slots).filter_map(|(b, n)| Some((b?, stages(n)))).collect()
}

/// The number of the stage that an instruction accesses, if one of its buffers is a multi-stage buffer.
pub fn stage_index(inst: &Inst) -> Option<ValueId> {
    inst.attrs.ints("buffer_stages").and_then(|_| inst.operands.last().copied())
}

/// Without which nothing happens, if there is such a condition.
pub fn condition(inst: &Inst) -> Option<ValueId> {
    let slots = usize::from(stage_index(inst).is_some());
    let at = inst.operands.len().checked_sub(1 + slots).filter(|_| inst.attrs.flag("when"))?;
    inst.operands.get(at).copied()
}

/// The operands of an instruction but its condition and the number of a stage.
pub fn plain_operands(inst: &Inst) -> &[ValueId] {
    let more = usize::from(stage_index(inst).is_some()) + usize::from(condition(inst).is_some());
    inst.operands.get(..inst.operands.len().saturating_sub(more)).unwrap_or(&[])
}

/// Neighbours in consecutive registers that one access to a buffer serves, if an element lies where `bases` say. All sizes
/// are bytes; `start` is where the buffer begins, `most` the widest access.
pub fn swizzled_vector(layout: &Layout, bases: &[i64], start: i64, bytes: i64, most: i64) -> u32 {
    let atom = layout.atom();
    let of = |dim: InDim| {
        (0..atom.bits(dim))
            .filter_map(|i| atom.basis(dim, i))
            .map(|b| image(bases, atom.out_bits(), &b) * bytes)
            .collect::<Vec<_>>()
    };
    let (register, mut thread) = (of(InDim::Register), of(InDim::Lane));
    thread.extend(of(InDim::Warp));
    let mut vector = 1i64;
    for (i, p) in register.iter().enumerate() {
        let wide = (2 * bytes) << i;
        let aligned =
            thread.iter().chain(register.iter().skip(i + 1)).all(|p| p % wide == 0) && start % wide == 0;
        if *p != bytes << i || !aligned || wide > most {
            break;
        }
        vector = 2 << i;
    }
    vector as u32
}

/// Where coordinates lie, in elements, if `bases` say it for each of their `out_bits`, dimension by dimension.
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

/// The same, if an element lies at `start`, in bytes, plus the sum of its coordinates times `strides`, in elements, in a
/// tile of this shape. Elements of a vector are all padding or none.
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

/// Whether an instruction adds to what others may add to at the same time.
pub fn is_addition(inst: &Inst) -> bool {
    inst.op == Op::Machine(MachineOp::SharedAdd)
}

/// Whether an operation is ordered by the barriers of a TMA pipeline ([`crate::passes::warp_specialize`]).
pub fn is_of_tma_pipeline(op: MachineOp) -> bool {
    matches!(
        op,
        MachineOp::IsProducerWarp
            | MachineOp::TmaLoad
            | MachineOp::ProducerAcquire
            | MachineOp::ProducerCommit
            | MachineOp::ConsumerWait
            | MachineOp::ConsumerRelease
    )
}

/// The load whose elements a store to shared memory takes, and nobody else.
pub fn loaded(kernel: &Kernel, store: InstId) -> Option<InstId> {
    let func = kernel.func();
    let v = *func.insts[store].operands.first()?;
    let Def::Inst(load, _) = func.values[v].def else { return None };
    let inst = &func.insts[load];
    let is_load = matches!(inst.op, Op::Memory(MemoryOp::Load | MemoryOp::ViewLoad)) && !is_volatile(inst);
    let users = walk::insts(func).into_iter().filter(|i| func.insts[*i].operands.contains(&v)).count();
    (is_load && users == 1).then_some(load)
}

/// Tiles that the store reads which puts them to shared memory, chunk by chunk ([`crate::passes::chunk_loads`]).
pub fn chunked(kernel: &Kernel) -> BTreeSet<ValueId> {
    let func = kernel.func();
    let insts = walk::insts(func).into_iter().map(|i| &func.insts[i]);
    let stores = insts.filter(|i| i.op == Op::Machine(MachineOp::SharedStore) && i.attrs.flag("chunked"));
    stores.filter_map(|i| i.operands.first().copied()).collect()
}

/// The buffers that an instruction reads and writes.
pub fn touched(inst: &Inst) -> (Vec<usize>, Vec<usize>) {
    let Op::Machine(op) = inst.op else { return (vec![], vec![]) };
    let buffers = named(inst).into_iter().flatten().collect();
    match op {
        MachineOp::SharedStore | MachineOp::SharedScatter | MachineOp::AsyncCopy => (vec![], buffers),
        MachineOp::SharedLoad
        | MachineOp::SharedGather
        | MachineOp::SharedRank
        | MachineOp::SharedDot
        | MachineOp::Mma
        | MachineOp::MmaWait
        | MachineOp::TmaStore
        | MachineOp::Fragments => (buffers, vec![]),
        // Atomic additions of several threads may follow each other without waiting, but nothing else beside them.
        MachineOp::SharedAdd => (vec![], buffers),
        // Barriers of TMA pipelines are counted with, the elements are written.
        MachineOp::IsProducerWarp | MachineOp::TmaLoad => (vec![], buffers),
        MachineOp::ProducerAcquire
        | MachineOp::ProducerCommit
        | MachineOp::ConsumerWait
        | MachineOp::ConsumerRelease => (buffers, vec![]),
        MachineOp::Elect
        | MachineOp::SetMaxRegisters
        | MachineOp::Convert
        | MachineOp::Barrier
        | MachineOp::ProxyFence
        | MachineOp::AsyncCommit
        | MachineOp::AsyncWait => (vec![], vec![]),
    }
}

/// What a load gives for elements that it leaves out, unless that is 0, as a copy has it.
pub fn other_of(kernel: &Kernel, load: InstId) -> Option<ValueId> {
    let inst = &kernel.func().insts[load];
    let other = inst.operands.get(places(kernel, load).len()).copied()?;
    let zero = constant(kernel.func(), other).is_some_and(|s| s.bits() == 0);
    (!zero).then_some(other)
}

/// The operands of a load that say where it reads.
pub fn places(kernel: &Kernel, load: InstId) -> &[ValueId] {
    let inst = &kernel.func().insts[load];
    let rank = |v: &ValueId| kernel.module.types.get(kernel.func().ty(*v)).shape().map_or(0, <[u32]>::len);
    let view = inst.op == Op::Memory(MemoryOp::ViewLoad);
    let plain = if view { 1 + inst.results.first().map_or(0, rank) } else { 2 };
    inst.operands.get(..plain.min(inst.operands.len())).unwrap_or(&[])
}
