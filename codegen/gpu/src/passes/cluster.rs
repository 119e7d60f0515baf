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
//! Requires a kernel after all passes that choose instructions. Guarantees S08: a program of several blocks contains no
//! instruction for which [`stays_in_block`] is true, and has a warp for each block and a target with clusters.

use tk_tile::{FuncId, InstId};

use crate::ir::cluster::{BARRIER, fits, pair};
use crate::ir::kernel::{Buffer, Kernel};
use crate::ir::op::{ClusterArrive, GpuOp};
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
    let barriers = (!pairs.is_empty()).then(|| {
        kernel.buffers.push(Buffer::new(BARRIER * pairs.len() as u32));
        kernel.buffers.len() - 1
    });
    let func = &mut kernel.module.funcs[FuncId(0)];
    for (n, pair) in (0..).zip(pairs) {
        for id in pair {
            GpuOp::change(&mut func.insts[id], |op| match op {
                GpuOp::SharedStore(store) => store.remote = Some(n),
                GpuOp::SharedLoad(load) => load.remote = Some(n),
                _ => {}
            });
        }
    }
    let body = func.body;
    func.add_inst(body, GpuOp::from(ClusterArrive { barriers }).inst(vec![], None), &[]);
    func.blocks[body].insts.rotate_right(1);
}
