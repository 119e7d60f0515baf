//! Stores to shared memory right after the load, for loaded values that change layout.
//!
//! ```text
//! v1 = view_load a, ..                           v1 = view_load a, ..
//! v2 = view_load b, ..                           v2 = view_load b, ..
//! v3 = sum v2 ..                           =>    shared_store v1 {buffer = 0}
//! shared_store v1 {buffer = 0}                   v3 = sum v2 ..
//! v4 = shared_load {buffer = 0}                  v4 = shared_load {buffer = 0}
//! ```
//!
//! A conversion is placed where its result is needed. Its operand may have been loaded long before, and would occupy
//! registers until then; and each conversion would have a barrier of its own. After the last load before it, the store
//! waits for loads that are in flight anyway, and several stores share a barrier.
//!
//! Requires lowered kernels. Guarantees that a store moves within its block, before the only load of its buffer.

use std::collections::BTreeSet;

use tk_ops::{MemoryOp, Op};
use tk_tile::{BlockId, Def, FuncId, InstId, walk};

use crate::ir::kernel::Kernel;
use crate::ir::op::{BufferRef, GpuOp, SharedStore};
use crate::ir::shared_access::accesses;
use crate::passes::{Pass, Property, Run};
use crate::verify::verify_lowered;

/// The pass.
pub const PASS: Pass = Pass {
    name: "hoist_shared_stores",
    purpose: "stores to shared memory right after the load what was loaded to change its layout",
    needs: &[Property::PipelinedLoads, Property::TmaStores],
    leaves: &[Property::PlacedStores],
    run: Run::Kernel { run, verify: verify_lowered },
};

fn run(kernel: &mut Kernel) {
    let func = kernel.func();
    let nested = walk::insts(func).into_iter().flat_map(|i| func.insts[i].blocks.clone());
    let blocks: BTreeSet<BlockId> = nested.chain([func.body]).collect();
    for block in blocks {
        for store in kernel.func().blocks[block].insts.clone() {
            if let Some(to) = earlier(kernel, block, store) {
                let insts = &mut kernel.module.funcs[FuncId(0)].blocks[block].insts;
                insts.retain(|i| *i != store);
                insts.insert(to, store);
            }
        }
    }
}

/// The better position of a store in its block: after its operand, and the last load before it.
fn earlier(kernel: &Kernel, block: BlockId, store: InstId) -> Option<usize> {
    let func = kernel.func();
    let insts = &func.blocks[block].insts;
    let op = |i: InstId| func.insts[i].op;
    let inst = &func.insts[store];
    let GpuOp::SharedStore(SharedStore {
        buffer: BufferRef { buffer, stages: None },
        ahead: false,
        chunked: false,
        ..
    }) = GpuOp::of(inst)?
    else {
        return None;
    };
    let mut users = walk::insts(func).into_iter().filter(|i| accesses(&func.insts[*i], *buffer));
    let converts = users.next() == Some(store)
        && users.next().is_some_and(|i| matches!(GpuOp::of(&func.insts[i]), Some(GpuOp::SharedLoad(_))))
        && users.next().is_none();
    let Def::Inst(from, _) = func.values[*inst.operands.first()?].def else { return None };
    let loads =
        |i: &InstId| matches!(op(*i), Op::Memory(MemoryOp::Load | MemoryOp::ViewLoad | MemoryOp::ViewGather));
    let at = |i: InstId| insts.iter().position(|other| *other == i);
    let (now, loaded) = (at(store)?, at(from).filter(|_| loads(&from))?);
    let last = insts.get(..now)?.iter().rposition(loads)?;
    // Stores that have moved there keep their order.
    let after = |n: &usize| {
        insts.get(*n).is_some_and(|i| matches!(GpuOp::of(&func.insts[*i]), Some(GpuOp::SharedStore(_))))
    };
    let to = (last.max(loaded) + 1..).find(|n| !after(n))?;
    (converts && to < now).then_some(to)
}
