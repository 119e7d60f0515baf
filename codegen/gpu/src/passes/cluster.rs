//! Decides which programs are divided among several blocks: a cluster, whose blocks reach each other's shared memory.
//!
//! ```text
//! warps 32                                   warps 32
//! blocks 4                                   blocks 4
//!
//! kernel @k() { .. sum v0 {axis = 0} .. } => kernel @k() { .. }
//! kernel @k() { .. mma v0, v1 .. }        => (no line `blocks`)
//! ```
//!
//! A program of `blocks 4` is what it would be in one block: the number of a warp is that in the program, every store to
//! shared memory goes to the memory of all its blocks, and where it waits, all its blocks wait. What is read is then in the
//! memory of the block that reads it. So a program has the registers of several multiprocessors, and what its warps say to
//! each other crosses blocks once, when it is written.
//!
//! Where one store fills a buffer that one load reads, nobody waits for all others: the store is *remote*. What is written
//! tells the block in whose memory it arrives, and the load waits until all of it has. A barrier of all blocks would wait, besides,
//! until all that threads have written is known to have arrived, which took a fifth of the time of softmax.
//!
//! May assume a kernel behind everything that chooses instructions. Guarantees S08: a program of several blocks does only
//! what [`stays_in_block`] does not name, has a warp for each of them, and a target whose blocks reach each other.

use tk_tile::{FuncId, InstId};

use crate::ir::cluster::{fits, pair};
use crate::ir::kernel::Kernel;
use crate::ir::op::GpuOp;
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
    let pairs: Vec<[InstId; 2]> = (0..kernel.buffers.len()).filter_map(|b| pair(kernel, b)).collect();
    let func = &mut kernel.module.funcs[FuncId(0)];
    for id in pairs.into_iter().flatten() {
        GpuOp::change(&mut func.insts[id], |op| match op {
            GpuOp::SharedStore(store) => store.remote = true,
            GpuOp::SharedLoad(load) => load.remote = true,
            _ => {}
        });
    }
}
