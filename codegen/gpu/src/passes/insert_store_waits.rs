//! Waits for TMA stores of loops: before their buffer is filled again, and after the loop.
//!
//! ```text
//! for i in lo..hi                           for i in lo..hi
//!   ..                                        ..
//!                                             tma_store_wait {buffers = [0]}
//!   shared_store v1 {buffer = 0}      =>      shared_store v1 {buffer = 0}
//!   tma_store c, m, n {buffer = 0}            tma_store c, m, n {buffer = 0}
//!                                           tma_store_wait {buffers = [0], read = true}
//! ```
//!
//! TMA stores are not ordered among each other, and two iterations may store to the same elements, so the wait in the
//! loop is for memory, unless all of them add to it. It costs nothing where an iteration takes longer than a store: a
//! persistent kernel multiplies the next tile meanwhile. It is placed before an earlier exchange through shared memory,
//! whose barrier it then shares.
//!
//! Requires a kernel whose stores to shared memory are at their final positions. Guarantees that a buffer is not filled
//! before TMA has read it, that it is live as long as TMA may read it, and that a program does not end before that.

use tk_ops::{ControlOp, Op};
use tk_tile::{BlockId, FuncId, InstId, walk};

use crate::ir::kernel::Kernel;
use crate::ir::op::{GpuOp, TmaStoreWait};
use crate::ir::shared_access::touched;
use crate::passes::{Pass, Property, Run};
use crate::verify::verify_lowered;

/// The pass.
pub const PASS: Pass = Pass {
    name: "insert_store_waits",
    purpose: "waits for TMA stores of loops",
    needs: &[Property::TmaStores, Property::PlacedStores],
    leaves: &[Property::StoreWaits],
    run: Run::Kernel { run, verify: verify_lowered },
};

fn run(kernel: &mut Kernel) {
    let func = kernel.func();
    let stores = || {
        walk::insts(func).into_iter().filter_map(|i| match GpuOp::of(&func.insts[i])? {
            GpuOp::TmaStore(store) if !store.once => Some(store),
            _ => None,
        })
    };
    let repeated: Vec<usize> = stores().map(|store| store.buffer).collect();
    if repeated.is_empty() {
        return;
    }
    // Additions of several iterations to the same elements need no order.
    let read = stores().all(|store| store.adds);
    let fills = |i: &InstId| touched(&func.insts[*i]).1.iter().any(|b| repeated.contains(b));
    let fills: Vec<InstId> = walk::insts(func).into_iter().filter(fills).collect();
    let mut places: Vec<(InstId, bool)> =
        fills.iter().map(|i| (exchanged_before(kernel, *i), false)).collect();
    places.extend(outermost(kernel, func.body, &repeated).into_iter().map(|i| (i, true)));
    let blocks: Vec<BlockId> = func.blocks.iter().map(|(b, _)| b).collect();
    let func = &mut kernel.module.funcs[FuncId(0)];
    for block in blocks {
        for id in std::mem::take(&mut func.blocks[block].insts) {
            let place = places.iter().find(|(i, _)| *i == id).map(|(_, after)| *after);
            let wait = |func: &mut tk_tile::Func, read: bool| {
                let loc = func.insts[id].loc;
                func.add_inst(
                    block,
                    GpuOp::from(TmaStoreWait { buffers: repeated.clone(), read }).inst(vec![], loc),
                    &[],
                );
            };
            if place == Some(false) {
                wait(func, read);
            }
            func.blocks[block].insts.push(id);
            if place == Some(true) {
                wait(func, true);
            }
        }
    }
}

/// The store to shared memory that fills a buffer, or an earlier one of its block if what that stores is read before the
/// buffer is filled: the barrier between these two is also one between the wait and the fill.
fn exchanged_before(kernel: &Kernel, fill: InstId) -> InstId {
    let func = kernel.func();
    let blocks = func.blocks.iter().map(|(_, b)| &b.insts);
    let Some(before) = blocks
        .into_iter()
        .find_map(|insts| insts.iter().position(|i| *i == fill).and_then(|at| insts.get(..at)))
    else {
        return fill;
    };
    let mut read: Vec<usize> = vec![];
    for i in before.iter().rev() {
        let inst = &func.insts[*i];
        let (reads, writes) = touched(inst);
        if matches!(GpuOp::of(inst), Some(GpuOp::SharedStore(s)) if read.contains(&s.buffer.buffer)) {
            return *i;
        }
        if !inst.blocks.is_empty() || matches!(GpuOp::of(inst), Some(GpuOp::TmaStore(_))) {
            break;
        }
        read.extend(reads);
        read.retain(|b| !writes.contains(b));
    }
    fill
}

/// The outermost loops that contain stores from these buffers.
fn outermost(kernel: &Kernel, block: BlockId, buffers: &[usize]) -> Vec<InstId> {
    let func = kernel.func();
    let stores = |i: InstId| {
        let inside = func.insts[i].blocks.iter().flat_map(|b| walk::insts_in(func, *b));
        inside.into_iter().any(
            |i| matches!(GpuOp::of(&func.insts[i]), Some(GpuOp::TmaStore(s)) if buffers.contains(&s.buffer)),
        )
    };
    let mut found = vec![];
    for i in func.blocks[block].insts.iter().copied().filter(|i| stores(*i)) {
        if matches!(func.insts[i].op, Op::Control(ControlOp::For | ControlOp::While)) {
            found.push(i);
        } else {
            found.extend(func.insts[i].blocks.iter().flat_map(|b| outermost(kernel, *b, buffers)));
        }
    }
    found
}
