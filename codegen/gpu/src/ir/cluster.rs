//! Decides which kernels can be split over the blocks of a cluster, and which stores cross blocks.

use std::collections::BTreeSet;

use tk_ops::{ControlOp, Op};
use tk_tile::{Inst, InstId, walk};

use crate::ir::kernel::Kernel;
use crate::ir::op::{Exchange, GpuOp, Multicast, Pipeline, TmaLoad};
use crate::ir::params::element_bytes;
use crate::ir::shared_access;
use crate::layout::linear::InDim;

/// Cluster sizes: more than 8 blocks are not on every GPU that has clusters (CUDA programming guide, "Thread Block
/// Clusters").
pub const SIZES: [u32; 4] = [1, 2, 4, 8];

/// The number of blocks for the hint of `launch(ctas = ..)`: the next power of two, as layouts need, at most the
/// largest size.
pub fn blocks_for(hint: u64) -> u32 {
    SIZES.into_iter().find(|n| u64::from(*n) >= hint).unwrap_or(SIZES[SIZES.len() - 1])
}

/// Returns true if an instruction works within a block only: matrix instructions and copies that read shared memory
/// themselves, atomic operations, and votes or waits of all threads of a block by other means than barriers of the
/// schedule.
pub fn stays_in_block(inst: &Inst) -> bool {
    match inst.op {
        Op::Target => !matches!(
            GpuOp::of(inst),
            Some(
                GpuOp::Convert(_)
                    | GpuOp::OptimizationBarrier(_)
                    | GpuOp::SharedStore(_)
                    | GpuOp::SharedLoad(_)
                    | GpuOp::SharedGather(_)
                    | GpuOp::SharedScatter(_)
                    | GpuOp::SharedRank(_)
                    | GpuOp::ClusterArrive(_)
                    | GpuOp::ClusterWait(_)
                    | GpuOp::Barrier(_)
            )
        ),
        Op::Control(op) => {
            matches!(
                op,
                ControlOp::Assert
                    | ControlOp::Print
                    | ControlOp::GridBarrier
                    | ControlOp::GlobalTimer
                    | ControlOp::SmId
                    | ControlOp::InlineAsm
            )
        }
        Op::Atomic(_) | Op::Dot(_) => true,
        Op::Elementwise(_)
        | Op::Create(_)
        | Op::Shape(_)
        | Op::Memory(_)
        | Op::Reduce(_)
        | Op::Scan(_)
        | Op::Random(_)
        | Op::Host(_) => false,
    }
}

/// Returns true if a program can be split over this many blocks.
pub fn fits(kernel: &Kernel, blocks: u32) -> bool {
    let (options, func) = (&kernel.options, kernel.func());
    blocks == 1
        || SIZES.contains(&blocks)
            && options.spec.has_clusters
            && blocks <= 1 << options.threads().warp_bits
            && !walk::insts(func).into_iter().any(|i| stays_in_block(&func.insts[i]))
}

/// The instruction of the outermost block before which the blocks of a program must have begun: the first that contains
/// a store to shared memory, or a wait.
pub fn joins(kernel: &Kernel) -> Option<InstId> {
    let func = kernel.func();
    let one = |i: InstId| {
        let inst = &func.insts[i];
        matches!(GpuOp::of(inst), Some(GpuOp::Barrier(_))) || !shared_access::touched(inst).1.is_empty()
    };
    let inside = |i: InstId| func.insts[i].blocks.iter().flat_map(|b| walk::insts_in(func, *b)).any(one);
    let first = |i: &&InstId| one(**i) || inside(**i);
    func.blocks[func.body].insts.iter().find(first).copied().filter(|_| kernel.options.blocks > 1)
}

/// The buffers whose stores are remote, in the order of their numbers.
pub fn remote_buffers(kernel: &Kernel) -> Vec<usize> {
    let func = kernel.func();
    let remote = walk::insts(func).into_iter().map(|i| &func.insts[i]).filter(|i| is_remote(i));
    let buffers = remote.flat_map(shared_access::buffers).map(|b| b.buffer);
    buffers.collect::<BTreeSet<_>>().into_iter().collect()
}

/// The buffer with the barriers of remote stores, which is always in use.
pub fn barriers(kernel: &Kernel) -> Option<usize> {
    let func = kernel.func();
    walk::insts(func).into_iter().find_map(|i| match GpuOp::of(&func.insts[i]) {
        Some(GpuOp::ClusterArrive(arrive)) => arrive.barriers,
        _ => None,
    })
}

/// Checks that the blocks of a kernel wait for each other: they arrive first of all, and wait in the outermost block
/// before anything is stored to shared memory.
///
/// # Errors
/// What is missing.
pub fn waits(kernel: &Kernel) -> Result<(), &'static str> {
    let func = kernel.func();
    let place = |wanted: fn(&GpuOp) -> bool| {
        let found = |i: &InstId| GpuOp::of(&func.insts[*i]).is_some_and(wanted);
        let all = walk::insts(func).into_iter().filter(|i| found(i)).count();
        (all, func.blocks[func.body].insts.iter().position(found))
    };
    let arrive = place(|op| matches!(op, GpuOp::ClusterArrive(_)));
    let wait = place(|op| matches!(op, GpuOp::ClusterWait(_)));
    let Some(first) = joins(kernel) else {
        return if wait.0 == 0 { Ok(()) } else { Err("a kernel of one block waits for others") };
    };
    let first = func.blocks[func.body].insts.iter().position(|i| *i == first);
    let in_order = arrive == (1, Some(0)) && wait.0 == 1 && wait.1.is_some() && wait.1 < first;
    let bytes = barriers(kernel).and_then(|b| kernel.buffers.get(b)).map_or(0, |b| b.bytes);
    let remote = walk::insts(func).into_iter().filter_map(|i| exchange(&func.insts[i]));
    let remote = remote.into_iter().all(|e| e.barrier + e.copies() <= bytes / BARRIER);
    if in_order && remote { Ok(()) } else { Err("blocks do not wait for each other before the first store") }
}

/// Bytes of a barrier of a remote store.
pub const BARRIER: u32 = 8;

/// Checks that the programs of a cluster are in one block each, and wait for each other after the initialization of
/// their mbarriers, if they load together.
///
/// # Errors
/// What is wrong.
pub fn loads_together(kernel: &Kernel) -> Result<(), &'static str> {
    let (options, func) = (&kernel.options, kernel.func());
    let all = walk::insts(func);
    let op = |i: &InstId| GpuOp::of(&func.insts[*i]);
    let syncs = all.iter().filter(|i| matches!(op(i), Some(GpuOp::ClusterSync(_)))).count();
    let fits = |p: &Pipeline| p.peers & 1 == 1 && u64::from(p.peers) >> options.cluster == 0;
    let within = |load: &TmaLoad| {
        load.multicast.is_none_or(|Multicast { blocks, stride }| {
            let powers = blocks > 1 && blocks.is_power_of_two() && stride.is_power_of_two();
            let inside = blocks.checked_mul(stride).is_some_and(|n| n <= options.cluster);
            powers && inside && load.multicast.is_some_and(|m| m.peers() & !load.pipeline.peers == 0)
        })
    };
    let fits = all.iter().filter_map(op).all(|op| match op {
        GpuOp::IsProducerWarp(is) => is.pipelines.iter().all(fits),
        GpuOp::TmaLoad(load) => within(load),
        _ => true,
    });
    if !fits {
        return Err("a pipeline is not filled by the blocks of the cluster");
    }
    if options.cluster == 1 {
        return if syncs == 0 { Ok(()) } else { Err("a program that is in no cluster waits for others") };
    }
    if options.blocks > 1 || !options.spec.has_clusters {
        return Err("a program of several blocks, or of a target without clusters, is in a cluster");
    }
    let of_body: Vec<Option<&GpuOp>> = func.blocks[func.body].insts.iter().map(op).collect();
    let begun = of_body.iter().position(|op| matches!(op, Some(GpuOp::IsProducerWarp(_))));
    let next = begun.and_then(|at| of_body.get(at + 1));
    let in_place = matches!(next, Some(Some(GpuOp::ClusterSync(_)))) && syncs == 1;
    if in_place { Ok(()) } else { Err("programs of a cluster do not wait for each other when they begin") }
}

/// The exchange of a store to the shared memory of the cluster's blocks, or of a load of such data.
pub fn exchange(inst: &Inst) -> Option<Exchange> {
    match GpuOp::of(inst)? {
        GpuOp::SharedStore(store) => store.remote,
        GpuOp::SharedLoad(load) => load.remote,
        _ => None,
    }
}

/// Returns true for a store to the shared memory of the cluster's blocks, and for a load of such data.
pub fn is_remote(inst: &Inst) -> bool {
    exchange(inst).is_some()
}

/// Bytes that a remote store writes to each block.
pub fn remote_store_bytes(kernel: &Kernel, store: &Inst) -> u32 {
    let Some(v) = store.operands.first() else { return 0 };
    let ty = kernel.module.types.get(kernel.func().ty(*v));
    ty.shape().unwrap_or(&[]).iter().product::<u32>() * element_bytes(ty.elem()) as u32
}

/// Returns true if a buffer can be filled by a remote store, and its store and its load both say so.
pub fn may_store_remotely(kernel: &Kernel, buffer: usize) -> bool {
    let says = |i: InstId| is_remote(&kernel.func().insts[i]);
    kernel.options.blocks > 1 && pair(kernel, buffer).is_some_and(|pair| pair.into_iter().all(says))
}

/// The only store to a buffer and the only load from it, if each element is stored by one thread once, in words, and
/// the load runs as often as the store.
pub fn pair(kernel: &Kernel, buffer: usize) -> Option<[InstId; 2]> {
    const WORD: u64 = 4;
    let func = kernel.func();
    let names = |i: &InstId| shared_access::accesses(&func.insts[*i], buffer);
    let users: Vec<InstId> = walk::insts(func).into_iter().filter(names).collect();
    let [store, load] = users.try_into().ok()?;
    let (Some(GpuOp::SharedStore(fills)), Some(GpuOp::SharedLoad(reads))) =
        (GpuOp::of(&func.insts[store]), GpuOp::of(&func.insts[load]))
    else {
        return None;
    };
    let together = func.blocks.iter().any(|(_, b)| b.insts.contains(&store) && b.insts.contains(&load));
    let is_plain = !fills.ahead && !fills.chunked && !reads.own && fills.buffer.stages.is_none();
    let v = *func.insts[store].operands.first()?;
    let once = kernel.layout(v)?.atom().free_bits(InDim::Register) == 0;
    let words = element_bytes(kernel.module.types.get(func.ty(v)).elem()) >= WORD;
    (together && is_plain && once && words).then_some([store, load])
}

/// Returns true if all warps of the program store to the buffer of a pair. Who has read what such a store brought knows
/// that all warps have read what earlier ones brought.
pub fn every_warp_stores(kernel: &Kernel, store: InstId) -> bool {
    let v = kernel.func().insts[store].operands.first();
    v.and_then(|v| kernel.layout(*v)).is_some_and(|layout| layout.atom().free_bits(InDim::Warp) == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints() {
        assert_eq!([0, 1, 2, 3, 4, 5, 8, 9, u64::MAX].map(blocks_for), [1, 1, 2, 4, 4, 8, 8, 8, 8]);
    }
}
