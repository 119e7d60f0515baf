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
//! Stores that are together have buffers that are live together. Where shared memory has no room for that, loads move instead,
//! right before the stores, so that buffers can share memory:
//!
//! ```text
//! v1 = view_load a, ..                           v1 = view_load a, ..
//! v2 = view_load b, ..                           shared_store v1 {buffer = 0}
//! shared_store v1 {buffer = 0}             =>    v3 = shared_load {buffer = 0}
//! v3 = shared_load {buffer = 0}                  v4 = add v0, v3
//! v4 = add v0, v3                                v2 = view_load b, ..
//! shared_store v2 {buffer = 1}                   shared_store v2 {buffer = 1}
//! ```
//!
//! Requires lowered kernels. Guarantees that a store moves within its block, before the only load of its buffer, and a load
//! across nothing that writes or orders memory.

use tk_ops::table::Effects;
use tk_ops::{MemoryOp, Op};
use tk_tile::effects::{is_volatile, of_inst};
use tk_tile::{BlockId, Def, Func, FuncId, InstId, ValueId, walk};

use crate::analysis::memory_order::orders_memory;
use crate::ir::kernel::Kernel;
use crate::ir::op::{BufferRef, GpuOp, SharedStore};
use crate::ir::shared_access::accesses;
use crate::passes::allocate_shared::bytes;
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
    for block in kernel.blocks() {
        let order = kernel.func().blocks[block].insts.clone();
        for store in &order {
            if let Some(to) = earlier(kernel, block, *store) {
                let insts = &mut kernel.module.funcs[FuncId(0)].blocks[block].insts;
                insts.retain(|i| i != store);
                insts.insert(to, *store);
            }
        }
        let is_as_before = kernel.func().blocks[block].insts == order;
        if !is_as_before && bytes(kernel) > kernel.options.spec.shared_bytes {
            kernel.module.funcs[FuncId(0)].blocks[block].insts.clone_from(&order);
            order.iter().for_each(|store| sink_load(kernel, block, *store));
        }
    }
}

/// Moves the load of a tile that changes its layout to the store for that.
fn sink_load(kernel: &mut Kernel, block: BlockId, store: InstId) {
    let func = kernel.func();
    let Some((load, value)) = converted(kernel, store) else { return };
    let insts = &func.blocks[block].insts;
    let at = |id: InstId| insts.iter().position(|i| *i == id);
    let (Some(from), Some(to)) = (at(load), at(store)) else { return };
    let may_pass = |i: &InstId| {
        let inst = &func.insts[*i];
        let writes = match GpuOp::of(inst) {
            Some(op) => matches!(op, GpuOp::TmaStore(_)),
            None => !matches!(of_inst(func, *i), Effects::Pure | Effects::Read),
        };
        inst.blocks.is_empty() && !writes && !orders_memory(func, *i) && !inst.operands.contains(&value)
    };
    if is_volatile(&func.insts[load]) || !insts.get(from + 1..to).is_some_and(|i| i.iter().all(may_pass)) {
        return;
    }
    let insts = &mut kernel.module.funcs[FuncId(0)].blocks[block].insts;
    insts.retain(|i| *i != load);
    insts.insert(to - 1, load);
}

/// The load of a tile that a store puts into a buffer only to change its layout, and the tile.
fn converted(kernel: &Kernel, store: InstId) -> Option<(InstId, ValueId)> {
    let func = kernel.func();
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
    let value = *inst.operands.first()?;
    let Def::Inst(from, _) = func.values[value].def else { return None };
    (converts && loads(func, from)).then_some((from, value))
}

fn loads(func: &Func, id: InstId) -> bool {
    matches!(func.insts[id].op, Op::Memory(MemoryOp::Load | MemoryOp::ViewLoad | MemoryOp::ViewGather))
}

/// The better position of a store in its block: after its operand, and the last load before it.
fn earlier(kernel: &Kernel, block: BlockId, store: InstId) -> Option<usize> {
    let func = kernel.func();
    let insts = &func.blocks[block].insts;
    let (from, _) = converted(kernel, store)?;
    let at = |i: InstId| insts.iter().position(|other| *other == i);
    let (now, loaded) = (at(store)?, at(from)?);
    let last = insts.get(..now)?.iter().rposition(|i| loads(func, *i))?;
    // Stores that have moved there keep their order.
    let after = |n: &usize| {
        insts.get(*n).is_some_and(|i| matches!(GpuOp::of(&func.insts[*i]), Some(GpuOp::SharedStore(_))))
    };
    let to = (last.max(loaded) + 1..).find(|n| !after(n))?;
    (to < now).then_some(to)
}
