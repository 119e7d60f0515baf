//! Operands that TMA loads once for the products of loops: such as the queries of attention.
//!
//! ```text
//! v1 = view_load a, ..                     producer_acquire; tma_load a, ..; producer_commit
//! shared_store v1 {buffer = 0}
//! for i in lo..hi, acc             =>      consumer_wait
//!   v2 = mma acc {a = 0, b = 1}            for i in lo..hi, acc
//!   ..                                       v2 = mma acc {a = 0, b = 1}
//!                                          consumer_release
//! ```
//!
//! A pipeline of one stage: where a loop is around all of this, the producer loads for its next iteration as soon as the
//! consumers have released the stage.
//! The producer loads the operands of the first iteration of the inner loop before it: their stages are free when this one may still be
//! in use, and it does not wait for two things one after the other.
//!
//! Applies to operands that only products of warpgroups read, in loops of the block that loads them, where a producer warp
//! loads others of these products. [`super::tiles`] finds what threads read after such loops.

use tk_tile::{BlockId, InstId, walk};

use super::boxes::{Known, not_copied};
use super::feed::{Feed, OTHERS, TmaLoadPlan, accesses, depends_on_group, plan_load, read_alike};
use super::slice::Slice;
use crate::analysis::wgmma_shared;
use crate::ir::kernel::{Kernel, Remark};
use crate::ir::op::MmaOperand;
use crate::ir::shared_access::loaded;
use crate::ir::warps::takes_turns;

/// A tile that is loaded once in an execution of a block.
#[derive(Clone, Debug)]
pub(super) struct Resident {
    /// Its load.
    pub taken: TmaLoadPlan,
    /// The block that loads it.
    pub block: BlockId,
    /// The loop with the iteration in which the producer loads it, behind the operands of that iteration; where it was,
    /// without one.
    pub during: Option<InstId>,
    /// The instruction of that block that reads it last.
    pub last: InstId,
    /// If threads read it, their loads from shared memory and the placement there.
    pub by_threads: Option<(Vec<InstId>, Vec<i64>)>,
}

/// The operands of these products that stay for their loops; `may` tells whether a producer may do a load, and what prevents
/// others adds remarks.
pub(super) fn residents(
    kernel: &Kernel,
    known: &Known,
    slice: &Slice,
    feeds: &[Feed],
    may: impl Fn(InstId) -> bool,
) -> (Vec<Resident>, Vec<Remark>) {
    let func = kernel.func();
    let (mut found, mut remarks): (Vec<Resident>, Vec<Remark>) = (vec![], vec![]);
    let mut seen: Vec<usize> = feeds.iter().flat_map(|f| &f.taken).map(|t| t.buffer).collect();
    for product in feeds.iter().flat_map(|f| &f.products) {
        let Some(mma) = wgmma_shared::as_wgmma(&func.insts[*product]) else { continue };
        for (side, operand) in [&mma.a, &mma.b].into_iter().enumerate() {
            let MmaOperand::Shared { buffer, .. } = operand else { continue };
            if seen.contains(&buffer.buffer) || buffer.stages.is_some() {
                continue;
            }
            seen.push(buffer.buffer);
            let (stores, readers) = accesses(func, buffer.buffer);
            let [store] = stores[..] else { continue };
            // What is computed has to be stored by the threads.
            let Some(load) = loaded(kernel, store) else { continue };
            let Some(block) = slice.block(store) else { continue };
            match resident(kernel, known, (block, feeds), (buffer.buffer, store, load), &readers) {
                Ok(resident) if slice.reaches(func, load) && may(load) => found.push(resident),
                Ok(_) => {}
                Err(why) => {
                    let what = ["operand a of a product is", "operand b of a product is"][side.min(1)];
                    remarks.push(not_copied(func.insts[load].loc, what, &why));
                }
            }
        }
    }
    (found, remarks)
}

fn resident(
    kernel: &Kernel,
    known: &Known,
    (block, feeds): (BlockId, &[Feed]),
    (buffer, store, load): (usize, InstId, InstId),
    readers: &[InstId],
) -> Result<Resident, String> {
    let func = kernel.func();
    shared_by_groups(kernel, block)?;
    let first = read_alike(kernel, readers, buffer)?;
    let (load, span) = plan_load(kernel, known, block, (store, Some(load)), first)?;
    let insts = &func.blocks[block].insts;
    let at = |id: InstId| {
        insts.iter().position(|i| {
            *i == id || func.insts[*i].blocks.iter().any(|b| walk::insts_in(func, *b).contains(&id))
        })
    };
    let ends = readers.iter().map(|r| at(*r)).collect::<Option<Vec<_>>>().ok_or(OTHERS)?;
    let last = ends.into_iter().max().and_then(|n| insts.get(n)).copied().ok_or(OTHERS)?;
    let taken =
        TmaLoadPlan { load, store, buffer, span, multicast: None, of_group: depends_on_group(func, load) };
    // The operands of the first iteration come before the resident: their stage is free when that of the resident may
    // still be in use, by the iteration before of a loop around both.
    let place = |id: InstId| insts.iter().position(|i| *i == id);
    let is_repeated = block != func.body;
    let loops = feeds.iter().map(|f| f.at.1).filter(|l| is_repeated && place(*l) > place(load));
    Ok(Resident { taken, block, during: loops.min_by_key(|l| place(*l)), last, by_threads: None })
}

/// Fails if warpgroups run a block in turns.
pub(super) fn shared_by_groups(kernel: &Kernel, block: BlockId) -> Result<(), String> {
    let func = kernel.func();
    let is_around = |i: &InstId| takes_turns(func, &func.insts[*i]) && func.insts[*i].blocks.contains(&block);
    if walk::insts(func).iter().any(is_around) {
        return Err("warpgroups take turns, each with one of its own".into());
    }
    Ok(())
}
