//! Tiles that TMA loads for what follows the products of a loop: such as a residual that is added to their sums.
//!
//! ```text
//! for t in ..                              for t in ..
//!   v1 = for i in lo..hi, acc                for i in lo..hi
//!     ..                                       ..
//!   v2 = view_load c, m, n          =>         if 2 iterations are left
//!   shared_store v2 {buffer = 2}                 producer_acquire; tma_load c, m, n {destination = 2}; producer_commit
//!   v3 = shared_load {buffer = 2}
//!   v4 = add v1, v3                        for t in ..
//!                                            v1 = for i in lo..hi, acc
//!                                              ..
//!                                            consumer_wait
//!                                            v3 = shared_load {buffer = 2}
//!                                            proxy_fence
//!                                            consumer_release
//!                                            v4 = add v1, v3
//! ```
//!
//! Such a tile goes through shared memory, since the lanes that load it in wide accesses do not own the elements of the
//! sums that belong to it. Loaded by TMA, it needs no registers, and its latency is under the products. The producer loads it
//! near the end of the loop: earlier, its bytes would come before the operands of products.
//!
//! Applies to tiles that the body of a loop loads from a matrix that the launch knows ([`super::boxes`]) after products
//! whose operands a producer warp loads. Outside of a loop, its buffer is in the room of stages, which are read by
//! then.

use tk_ops::{MemoryOp, Op};
use tk_tile::{BlockId, Def, InstId, ValueId, walk};

use super::boxes::{BoxStart, Known, mapped, not_copied, placed};
use super::feed::{Feed, OTHERS, TmaLoadPlan, accesses, depends_on_group, may_copy};
use super::resident::{Resident, shared_by_groups};
use super::slice::Slice;
use crate::ir::kernel::{Kernel, Remark};
use crate::ir::op::GpuOp;
use crate::ir::shared_access::loaded;

/// A tile that goes through a buffer to the lanes that compute with it.
struct Exchanged {
    block: BlockId,
    load: InstId,
    store: InstId,
    /// The loads from shared memory, all in the block.
    readers: Vec<InstId>,
    buffer: usize,
}

/// The tiles that blocks load once after these products; `may` tells whether a producer may do a load, and what prevents others
/// adds remarks.
pub(super) fn tiles(
    kernel: &Kernel,
    known: &Known,
    slice: &Slice,
    feeds: &[Feed],
    may: impl Fn(InstId) -> bool,
) -> (Vec<Resident>, Vec<Remark>) {
    let func = kernel.func();
    let (mut found, mut remarks) = (vec![], vec![]);
    for store in walk::insts(func) {
        let Some(tile) = exchanged(kernel, slice, store) else { continue };
        let insts = &func.blocks[tile.block].insts;
        let place = |id: InstId| insts.iter().position(|i| *i == id);
        let before = feeds
            .iter()
            .map(|f| f.at)
            .filter(|(outer, l)| *outer == tile.block && place(*l) < place(tile.load));
        let Some((_, last)) = before.max_by_key(|(_, l)| place(*l)) else { continue };
        if tile.block == func.body {
            continue;
        }
        // What it depends on is computed before the loop, or the producer loads it after the operands of all iterations.
        let is_late = |v: &ValueId| match func.values[*v].def {
            Def::Inst(i, _) => place(i) >= place(last),
            Def::Arg(..) => false,
        };
        let during = (!func.insts[tile.load].operands.iter().any(is_late)).then_some(last);
        let loc = func.insts[tile.load].loc;
        let load = tile.load;
        let may = match slice.reaches(func, load) && may(load) {
            true => Ok(()),
            false => Err(
                "an operation before it orders memory, or its position depends on what the kernel computes",
            ),
        };
        match may.map_err(str::to_string).and_then(|()| resident(kernel, known, tile, during)) {
            Ok(resident) => found.push(resident),
            Err(why) => remarks.push(not_copied(loc, "a tile that is combined with a product is", &why)),
        }
    }
    (found, remarks)
}

/// The tile that a store puts into shared memory, if it is loaded for lanes that read it in the same block.
fn exchanged(kernel: &Kernel, slice: &Slice, store: InstId) -> Option<Exchanged> {
    let func = kernel.func();
    let GpuOp::SharedStore(stored) = GpuOp::of(&func.insts[store])? else { return None };
    let load = loaded(kernel, store)?;
    let block = slice.block(store)?;
    let buffer = stored.buffer.buffer;
    let (stores, readers) = accesses(func, buffer);
    let tile = func.ty(*func.insts[load].results.first()?);
    let is_plain = |i: &InstId| match GpuOp::of(&func.insts[*i]) {
        Some(GpuOp::SharedLoad(read)) => {
            let same = func.insts[*i].results.iter().all(|r| func.ty(*r) == tile);
            same && read.placement == stored.placement
                && !read.own
                && read.remote.is_none()
                && read.buffer.stages.is_none()
                && slice.block(*i) == Some(block)
        }
        _ => false,
    };
    let plain =
        !(stored.ahead || stored.chunked || stored.remote.is_some()) && stored.buffer.stages.is_none();
    let fits = plain
        && stores == [store]
        && !readers.is_empty()
        && readers.iter().all(is_plain)
        && slice.block(load) == Some(block)
        && func.insts[load].op == Op::Memory(MemoryOp::ViewLoad);
    fits.then_some(Exchanged { block, load, store, readers, buffer })
}

/// How TMA loads a tile, or why it does not.
fn resident(
    kernel: &Kernel,
    known: &Known,
    tile: Exchanged,
    during: Option<InstId>,
) -> Result<Resident, String> {
    let func = kernel.func();
    let Exchanged { block, load, store, readers, buffer } = tile;
    shared_by_groups(kernel, block)?;
    let inst = &func.insts[load];
    let ([view, row, column], [r]) = (inst.operands.as_slice(), inst.results.as_slice()) else {
        return Err("it has more than two dimensions".into());
    };
    let matrix = mapped(kernel, *view, BoxStart::of(known, [*row, *column]))?;
    may_copy(kernel, known, (load, *view))?;
    let shape = kernel.module.types.get(func.ty(*r)).shape().and_then(|s| <[u32; 2]>::try_from(s).ok());
    let shape = shape.ok_or("it has more than two dimensions")?;
    let (span, bases) = placed(shape, matrix.dtype.bytes() as u32, kernel.buffers.get(buffer))?;
    let place = |id: &InstId| func.blocks[block].insts.iter().position(|i| i == id);
    let last = readers.iter().copied().max_by_key(place).ok_or(OTHERS)?;
    let of_group = depends_on_group(func, load);
    let taken = TmaLoadPlan { load, store, buffer, span, multicast: None, of_group };
    Ok(Resident { taken, block, during, last, by_threads: Some((readers, bases)) })
}
