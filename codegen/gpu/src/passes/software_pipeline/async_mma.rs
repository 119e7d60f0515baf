//! Leaves a wgmma product in flight while the next iteration of its loop begins.
//!
//! ```text
//! for i in lo..hi, acc, slot              for i in lo..hi, acc, slot
//!   async_wait; barrier                     async_wait; barrier
//!   copies                          =>      v1 = mma acc, slot {asynchronous = true}
//!   v1 = mma acc, slot                      v2 = mma_wait v1 {pending = 1}; barrier
//!   yield v1, next slot                     copies
//!                                           yield v2, next slot
//!                                         v4 = mma_wait v3 {pending = 0}      v3: the result of the loop
//! ```
//!
//! After the second barrier, the product of the iteration before is complete for all threads, so that copies may fill the stage
//! that it has read. Without that barrier they had to fill that of the product before, and a multi-stage buffer had one stage
//! more: on an H200, 128 x 128 x 64 on 4 warps took 258 us for 4096^3 with four stages, one block to a multiprocessor, and takes
//! 211 with three, two blocks; 128 x 256 x 64 on 8 warps, one block in any case, 215 and 210.
//!
//! Requires a loop whose copies run ahead. Guarantees that only products and waits use accumulators in flight.

use tk_ops::{ControlOp, Op};
use tk_tile::rewrite::yielded;
use tk_tile::{BlockId, Def, InstId, ValueId, walk};

use crate::analysis;
use crate::ir::builder::Edit;
use crate::ir::kernel::Kernel;
use crate::ir::op::{GpuOp, MmaOperand};

/// The stages of a pipeline of TMA: one is multiplied, one is waited for, one is copied.
pub const LEAST_STAGES: u32 = 3;

/// A product that is not waited for at once.
#[derive(Clone, Debug)]
pub struct AsyncMma {
    product: InstId,
    /// Its accumulator.
    pub result: ValueId,
    /// The number of the loop-carried value that it is.
    carried: usize,
}

/// The product of a loop that may remain in flight: its accumulator is only carried to the next iteration, its operands
/// are in multi-stage buffers that this loop fills, and it is the only one.
pub fn product(kernel: &Kernel, body: BlockId, multi_stage_buffers: &[usize]) -> Option<AsyncMma> {
    let func = kernel.func();
    let inside = walk::insts_in(func, body);
    let mut all = inside.iter().filter(|i| matches!(GpuOp::of(&func.insts[**i]), Some(GpuOp::Mma(_))));
    let (product, None) = (*all.next()?, all.next()) else { return None };
    let inst = &func.insts[product];
    if !func.blocks[body].insts.contains(&product) {
        return None;
    }
    let (acc, result) = (*inst.operands.first()?, *inst.results.first()?);
    let GpuOp::Mma(mma) = GpuOp::of(inst)? else { return None };
    let tiles = analysis::mma::tiles(kernel, mma.product, mma.instruction, acc)?;
    let own = kernel.module.types.get(func.ty(acc)).dtype() == Some(tiles.matrix.acc);
    // 8-bit floats are accumulated in parts, unless the source allows otherwise.
    let whole = mma.promote_every.is_none();
    let staged = |o: &MmaOperand| o.buffer().is_some_and(|b| multi_stage_buffers.contains(&b.buffer));
    let ringed = staged(&mma.a) && staged(&mma.b);
    let Def::Arg(block, n) = func.values[acc].def else { return None };
    let carried = (n as usize).checked_sub(1)?;
    let users = |v: ValueId| -> Vec<InstId> {
        inside.iter().copied().filter(|i| func.insts[*i].operands.contains(&v)).collect()
    };
    let ends = yielded(func, body);
    let once = ends.iter().filter(|v| **v == result).count() == 1 && ends.get(carried) == Some(&result);
    let [end] = users(result)[..] else { return None };
    let alone = users(acc) == [product] && func.insts[end].op == Op::Control(ControlOp::Yield);
    let fits = tiles.matrix.is_wgmma() && own && whole && ringed && block == body && once && alone;
    fits.then_some(AsyncMma { product, result, carried })
}

impl AsyncMma {
    /// Waits until at most `pending` products are in flight; returns the accumulator at that point.
    pub fn wait(&self, edit: &mut Edit<'_>, block: BlockId, sums: ValueId, pending: u32) -> ValueId {
        edit.wait_for_product(block, self.product, sums, pending)
    }

    /// Waits for the last product after the loop `id`, at the end of `block`.
    pub fn wait_last(&self, edit: &mut Edit<'_>, block: BlockId, id: InstId) {
        edit.leave_in_flight(self.product);
        let Some(sums) = edit.kernel.func().insts[id].results.get(self.carried).copied() else { return };
        let landed = self.wait(edit, block, sums, 0);
        let wait = edit.kernel.func().values[landed].def;
        let all: Vec<InstId> = edit.kernel.func().insts.iter().map(|(i, _)| i).collect();
        for i in all.into_iter().filter(|i| wait != Def::Inst(*i, 0)) {
            edit.func().insts[i].operands.iter_mut().filter(|v| **v == sums).for_each(|v| *v = landed);
        }
    }
}
