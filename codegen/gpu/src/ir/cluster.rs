//! Programs that several blocks share: which kernels can be, and which stores cross blocks.

use std::collections::BTreeSet;

use tk_ops::{ControlOp, Op};
use tk_tile::{Inst, InstId, walk};

use crate::ir::kernel::Kernel;
use crate::ir::op::GpuOp;
use crate::ir::params::element_bytes;
use crate::ir::shared_access;
use crate::layout::linear::InDim;

/// Numbers of blocks: more than 8 are not on every GPU that has clusters (CUDA programming guide, "Thread Block Clusters").
pub const SIZES: [u32; 4] = [1, 2, 4, 8];

/// The number of blocks for what `launch(ctas = ..)` says, which is a hint: the next power of two, as layouts need, up to the
/// most that there are.
pub fn blocks_for(hint: u64) -> u32 {
    SIZES.into_iter().find(|n| u64::from(*n) >= hint).unwrap_or(SIZES[SIZES.len() - 1])
}

/// Whether it works within a block only: matrix instructions and copies that read shared memory by themselves, atomic
/// operations, and whatever all threads of a block vote or wait for by other means than barriers of the schedule.
pub fn stays_in_block(inst: &Inst) -> bool {
    match inst.op {
        Op::Target => !matches!(
            GpuOp::of(inst),
            Some(
                GpuOp::Convert(_)
                    | GpuOp::SharedStore(_)
                    | GpuOp::SharedLoad(_)
                    | GpuOp::SharedGather(_)
                    | GpuOp::SharedScatter(_)
                    | GpuOp::SharedRank(_)
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

/// Whether a program can be divided into so many blocks.
pub fn fits(kernel: &Kernel, blocks: u32) -> bool {
    let (options, func) = (&kernel.options, kernel.func());
    blocks == 1
        || SIZES.contains(&blocks)
            && options.spec.has_clusters
            && blocks <= 1 << options.threads().warp_bits
            && !walk::insts(func).into_iter().any(|i| stays_in_block(&func.insts[i]))
}

/// The instruction of the outermost block in front of which the blocks of a program must have begun: the first with a store
/// to shared memory, or a wait, in it.
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

/// Whether an access is one of stores to the blocks that load, or one of their loads.
pub fn is_remote(inst: &Inst) -> bool {
    match GpuOp::of(inst) {
        Some(GpuOp::SharedStore(s)) => s.remote,
        Some(GpuOp::SharedLoad(l)) => l.remote,
        _ => false,
    }
}

/// Bytes that a remote store brings to each block.
pub fn remote_store_bytes(kernel: &Kernel, store: &Inst) -> u32 {
    let Some(v) = store.operands.first() else { return 0 };
    let ty = kernel.module.types.get(kernel.func().ty(*v));
    ty.shape().unwrap_or(&[]).iter().product::<u32>() * element_bytes(ty.elem()) as u32
}

/// Whether a buffer can be filled by a remote store, and both who fill and who read it say so.
pub fn may_store_remotely(kernel: &Kernel, buffer: usize) -> bool {
    let says = |i: InstId| is_remote(&kernel.func().insts[i]);
    kernel.options.blocks > 1 && pair(kernel, buffer).is_some_and(|pair| pair.into_iter().all(says))
}

/// The only store to a buffer and the only load from it, if each element is stored by one thread once, in words, and the load
/// comes as often as the store.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints() {
        assert_eq!([0, 1, 2, 3, 4, 5, 8, 9, u64::MAX].map(blocks_for), [1, 1, 2, 4, 4, 8, 8, 8, 8]);
    }
}
