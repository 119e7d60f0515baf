//! Tiles that go through shared memory to be stored, because other lanes store them than own their elements.

use tk_ops::{MemoryOp, Op};
use tk_tile::{BlockId, Def, Func, InstId, walk};

use crate::ir::kernel::Kernel;
use crate::ir::op::GpuOp;
use crate::ir::shared_access::touched;

/// A tile that goes through a buffer to be stored, by all threads.
pub struct Staged {
    /// The block that contains all of it.
    pub block: BlockId,
    /// Its store to shared memory.
    pub fill: InstId,
    /// Its load from there.
    pub load: InstId,
    /// Its store to memory.
    pub store: InstId,
    /// The number of the buffer.
    pub buffer: usize,
}

/// The buffers through which tiles go to be stored, as far as their lanes change for that alone: TMA may store from them.
pub fn buffers(kernel: &Kernel) -> Vec<usize> {
    let func = kernel.func();
    let insts = walk::insts(func);
    insts.iter().filter_map(|i| staged(func, &insts, *i)).map(|tile| tile.buffer).collect()
}

/// The tile that an instruction stores, if it goes through a buffer for that alone.
pub fn staged(func: &Func, insts: &[InstId], store: InstId) -> Option<Staged> {
    let inst = &func.insts[store];
    let (Op::Memory(MemoryOp::ViewStore), [.., tile]) = (inst.op, inst.operands.as_slice()) else {
        return None;
    };
    let Def::Inst(load, _) = func.values[*tile].def else { return None };
    let GpuOp::SharedLoad(read) = GpuOp::of(&func.insts[load])? else { return None };
    let buffer = read.buffer.buffer;
    let accesses = insts.iter().copied().filter(|i| {
        let (reads, writes) = touched(&func.insts[*i]);
        reads.contains(&buffer) || writes.contains(&buffer)
    });
    let [fill, last] = accesses.collect::<Vec<_>>()[..] else { return None };
    let alone = insts.iter().filter(|i| func.insts[**i].operands.contains(tile)).count() == 1;
    let together = |b: &BlockId| [fill, load, store].iter().all(|i| func.blocks[*b].insts.contains(i));
    let block = func.blocks.iter().map(|(b, _)| b).find(together)?;
    let GpuOp::SharedStore(filled) = GpuOp::of(&func.insts[fill])? else { return None };
    // Only the owners of elements change: other uses of shared memory transpose, slice or reshape tiles.
    let same = func.insts[fill].operands.first().is_some_and(|v| func.ty(*v) == func.ty(*tile));
    let changes = filled.placement == read.placement
        && !(filled.ahead || filled.chunked || filled.remote.is_some())
        && filled.buffer.stages.is_none();
    let plain = read.buffer.stages.is_none() && !read.own && read.remote.is_none();
    let fits = alone && last == load && same && changes && plain;
    fits.then_some(Staged { block, fill, load, store, buffer })
}
