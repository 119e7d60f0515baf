//! Makes writes of threads visible to wgmma and TMA.
//!
//! ```text
//! shared_store v0 {buffer = 0}          shared_store v0 {buffer = 0}
//! barrier                               proxy_fence
//! v2 = mma v1 {a = 0, b = 1,       =>   barrier
//!     instruction = "m64k16", ..}       v2 = mma v1 {a = 0, b = 1, instruction = "m64k16", ..}
//! ```
//!
//! These access shared memory through the async proxy. A thread fences its writes, or the copies for which it has
//! waited, before the barrier that precedes the instruction.
//!
//! Requires barriers. Guarantees a fence after every write to memory that such an instruction reads, in the block of
//! the write, and after every wait for copies to it.

use std::collections::BTreeSet;

use tk_tile::{FuncId, Inst, InstId, walk};

use crate::analysis::wgmma_shared::as_wgmma;
use crate::ir::kernel::Kernel;
use crate::ir::op::{GpuOp, ProxyFence};
use crate::ir::shared_access::{buffers, touched};
use crate::passes::{Pass, Property, Run};
use crate::verify::verify_fenced;

/// The pass.
pub const PASS: Pass = Pass {
    name: "insert_proxy_fences",
    purpose: "makes what threads wrote visible to wgmma and TMA",
    needs: &[Property::Barriers],
    leaves: &[Property::ProxyFences],
    run: Run::Kernel { run, verify: verify_fenced },
};

fn run(kernel: &mut Kernel) {
    let mut read = read_by_groups(kernel);
    let insts = walk::insts(kernel.func()).into_iter().map(|i| &kernel.func().insts[i]);
    read.extend(insts.filter_map(|i| match GpuOp::of(i)? {
        GpuOp::TmaStore(store) => Some(store.buffer),
        _ => None,
    }));
    if read.is_empty() {
        return;
    }
    let copies = |i: &Inst| matches!(GpuOp::of(i), Some(GpuOp::AsyncCopy(_))) && writes(i, &read);
    let copied = walk::insts(kernel.func()).into_iter().any(|i| copies(&kernel.func().insts[i]));
    let func = &mut kernel.module.funcs[FuncId(0)];
    let blocks: BTreeSet<_> = walk::insts(func).iter().flat_map(|i| func.insts[*i].blocks.clone()).collect();
    for block in std::iter::once(func.body).chain(blocks) {
        let mut open = false;
        for id in std::mem::take(&mut func.blocks[block].insts) {
            let inst = &func.insts[id];
            let fills = needs_fence(inst, &read, copied);
            // One fence suffices for consecutive stores.
            if open && !fills {
                let loc = func.insts[id].loc;
                let fence = GpuOp::from(ProxyFence { global: false }).inst(vec![], loc);
                func.add_inst(block, fence, &[]);
            }
            open = fills;
            func.blocks[block].insts.push(id);
        }
        if open {
            let end = func.blocks[block].insts.last().copied();
            let loc = end.and_then(|i: InstId| func.insts[i].loc);
            let fence = GpuOp::from(ProxyFence { global: false }).inst(vec![], loc);
            func.add_inst(block, fence, &[]);
        }
    }
}

/// The buffers that wgmma reads.
pub fn read_by_groups(kernel: &Kernel) -> BTreeSet<usize> {
    let func = kernel.func();
    let insts = walk::insts(func).into_iter().map(|i| &func.insts[i]);
    insts.filter(|i| as_wgmma(i).is_some()).flat_map(buffers).map(|b| b.buffer).collect()
}

/// Returns true if a fence must follow an instruction, where wgmma or TMA reads these buffers; `copied` tells whether
/// asynchronous copies fill some of them.
fn needs_fence(inst: &Inst, read: &BTreeSet<usize>, copied: bool) -> bool {
    match GpuOp::of(inst) {
        // A copy is complete where it is waited for.
        Some(GpuOp::AsyncWait(_)) => copied,
        Some(GpuOp::AsyncCopy(_) | GpuOp::TmaLoad(_)) => false,
        _ => writes(inst, read),
    }
}

fn writes(inst: &Inst, buffers: &BTreeSet<usize>) -> bool {
    touched(inst).1.iter().any(|b| buffers.contains(b))
}
