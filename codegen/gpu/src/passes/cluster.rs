//! Decides which programs are split over the blocks of a cluster, which access each other's shared memory.
//!
//! ```text
//! warps 32                                   warps 32
//! blocks 4                                   blocks 4
//!
//! kernel @k() { .. sum v0 {axis = 0} .. } => kernel @k() { .. }
//! kernel @k() { .. mma v0, v1 .. }        => (no line `blocks`)
//! ```
//!
//! A program of `blocks 4` computes what it would in one block: warps are numbered within the program, every store to
//! shared memory goes to the memory of all its blocks, and each barrier waits for all its blocks. Each block then reads
//! from its own memory. So a program has the registers of several multiprocessors, and data between its warps crosses
//! blocks once, when it is written.
//!
//! If one store fills a buffer that one load reads, no barrier of all blocks is needed: the store is *remote*. Its
//! bytes are counted in the block in whose memory they arrive, and the load waits until all have. A barrier of all
//! blocks would also wait until all writes of the threads are known to have arrived, which took a fifth of the time of
//! softmax.
//!
//! In a loop, the next store must not reach a block that still waits for this one, or reads it. If every warp stores, the
//! exchange alternates between two halves of the buffer with a barrier each: what the next store brings to a warp shows that
//! all have read what this one brought, so that the store after it may take its place.
//!
//! Requires a kernel after all passes that choose instructions. Guarantees S08: a program of several blocks contains no
//! instruction for which [`stays_in_block`] is true, and has a warp for each block and a target with clusters.

use std::collections::BTreeSet;

use tk_ops::{ControlOp, Op};
use tk_tile::{Func, FuncId, InstId, walk};

use crate::ir::cluster::{BARRIER, every_warp_stores, fits, pair};
use crate::ir::kernel::{Buffer, Kernel};
use crate::ir::op::{ClusterArrive, Exchange, GpuOp};
use crate::passes::{Pass, Property, Run};
use crate::verify::verify_lowered;

/// The pass.
pub const PASS: Pass = Pass {
    name: "cluster",
    purpose: "decides which programs several blocks share",
    needs: &[Property::PlacedStores],
    leaves: &[Property::Clusters],
    run: Run::Kernel { run, verify: verify_lowered },
};

fn run(kernel: &mut Kernel) {
    let warps = 1 << kernel.options.threads().warp_bits;
    let blocks = kernel.options.blocks.min(warps);
    kernel.options.blocks = if fits(kernel, blocks) { blocks } else { 1 };
    if kernel.options.blocks == 1 {
        return;
    }
    let repeated = repeated(kernel.func());
    let mut count = 0;
    for buffer in 0..kernel.buffers.len() {
        let Some(pair) = pair(kernel, buffer) else { continue };
        let alternates = repeated.contains(&pair[0]) && every_warp_stores(kernel, pair[0]);
        let exchange = Exchange { barrier: count, alternates };
        count += exchange.copies();
        kernel.buffers[buffer].bytes *= exchange.copies();
        for id in pair {
            GpuOp::change(&mut kernel.module.funcs[FuncId(0)].insts[id], |op| match op {
                GpuOp::SharedStore(store) => store.remote = Some(exchange),
                GpuOp::SharedLoad(load) => load.remote = Some(exchange),
                _ => {}
            });
        }
    }
    let barriers = (count > 0).then(|| {
        kernel.buffers.push(Buffer::new(BARRIER * count));
        kernel.buffers.len() - 1
    });
    let func = &mut kernel.module.funcs[FuncId(0)];
    let body = func.body;
    func.add_inst(body, GpuOp::from(ClusterArrive { barriers }).inst(vec![], None), &[]);
    func.blocks[body].insts.rotate_right(1);
}

/// The instructions in loops.
fn repeated(func: &Func) -> BTreeSet<InstId> {
    let loops = |i: &InstId| matches!(func.insts[*i].op, Op::Control(ControlOp::For | ControlOp::While));
    let blocks = walk::insts(func).into_iter().filter(loops).flat_map(|i| func.insts[i].blocks.clone());
    blocks.flat_map(|b| walk::insts_in(func, b)).collect()
}
