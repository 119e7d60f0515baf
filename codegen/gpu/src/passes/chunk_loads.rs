//! Loads in chunks what goes straight to shared memory, if lanes lack registers for all of it beside the accumulators
//! of a product, or if a multiprocessor can then run two programs.
//!
//! ```text
//! v1 = view_load a, ..                      v1 = view_load a, ..
//! v2 = view_load b, ..                 =>   shared_store v1 {buffer = 0, chunked = true}
//! shared_store v1 {buffer = 0}              v2 = view_load b, ..
//! shared_store v2 {buffer = 1}              shared_store v2 {buffer = 1, chunked = true}
//! v3 = mma acc {a = 0, b = 1}               v3 = mma acc {a = 0, b = 1}
//! ```
//!
//! All loads of an iteration are in flight at once, which hides the latency of memory, so they stay together if they
//! fit. Elements of 16 bits without alignment need a register each, and their rows an address each that a loop would
//! keep: with 128 accumulators, 96 of them do not fit. A second program hides more than that: products of 128 x 128 x
//! 64 of matrices of 4095 rows went from 0.83 to 1.36 of cuBLAS with it.
//!
//! Requires a lowered kernel without offsets. Guarantees that nothing is between a chunked load and its store;
//! [`crate::passes::insert_barriers`] may insert a barrier there, and treats the load as part of the store.

use std::collections::BTreeSet;

use tk_ops::Op;
use tk_ops::table::Effects;
use tk_tile::effects::of_inst;
use tk_tile::{BlockId, FuncId, InstId, ValueId, walk};

use crate::analysis::axis::AxisInfo;
use crate::analysis::coalesce::access;
use crate::analysis::liveness::register_pressure;
use crate::ir::kernel::Kernel;
use crate::ir::op::GpuOp;
use crate::ir::params::element_bytes;
use crate::ir::shared_access::{CHUNK, loaded};
use crate::ir::warps::producers;
use crate::passes::reallocate_registers::NON_TILE_REGISTERS;
use crate::passes::{Pass, Property, Run};
use crate::verify::verify_lowered;

/// The pass.
pub const PASS: Pass = Pass {
    name: "chunk_loads",
    purpose: "loads values that go straight to shared memory in chunks, where registers do not suffice",
    needs: &[Property::PipelinedLoads, Property::Clusters],
    leaves: &[Property::ChunkedLoads],
    run: Run::Kernel { run, verify: verify_lowered },
};

/// Registers of a lane for one that a load fills: its element, and a part of its address.
const REGISTERS_OF_LOAD: u32 = 2;

/// A load whose elements a store stores, and nothing else uses.
#[derive(Clone, Copy, Debug)]
struct LoadPlan {
    load: InstId,
    store: InstId,
    registers: u32,
}

fn run(kernel: &mut Kernel) {
    let (spec, warps) = (kernel.options.spec, kernel.options.all_warps());
    let func = kernel.func();
    let needed = register_pressure(kernel, func.body) + NON_TILE_REGISTERS;
    let all = warps + producers(kernel);
    let limits = [2, 1].map(|programs| spec.registers_of_launch(programs * all));
    let limit = limits.into_iter().find(|limit| needed + CHUNK <= *limit).unwrap_or(limits[1]);
    let axis = AxisInfo::new(&kernel.module, func, &kernel.options.facts);
    let blocks: BTreeSet<BlockId> =
        walk::insts(func).into_iter().flat_map(|i| func.insts[i].blocks.clone()).collect();
    let mut chosen = vec![];
    for block in blocks {
        for loads in loads(kernel, &axis, block) {
            if needed + loads.iter().map(|t| t.registers * REGISTERS_OF_LOAD).sum::<u32>() > limit {
                chosen.extend(loads.into_iter().map(|t| (block, t)));
            }
        }
    }
    let func = &mut kernel.module.funcs[FuncId(0)];
    for (block, taken) in chosen {
        let insts = &mut func.blocks[block].insts;
        insts.retain(|i| *i != taken.load);
        let at = insts.iter().position(|i| *i == taken.store).unwrap_or(insts.len());
        insts.insert(at, taken.load);
        GpuOp::change(&mut func.insts[taken.store], |op| {
            if let GpuOp::SharedStore(store) = op {
                store.chunked = true;
            }
        });
    }
}

/// The loads for shared memory of a block before each of its products, with nothing between load and store that must be
/// ordered with both: operations of scheduled IR only access buffers, or store to memory that nothing else accesses.
fn loads(kernel: &Kernel, axis: &AxisInfo, block: BlockId) -> Vec<Vec<LoadPlan>> {
    let func = kernel.func();
    let insts = &func.blocks[block].insts;
    let minds = |i: &InstId| {
        let inst = &func.insts[*i];
        let order = !matches!(of_inst(func, *i), Effects::Pure | Effects::Read);
        !inst.blocks.is_empty() || order && inst.op != Op::Target
    };
    let taken = |(at, store): (usize, &InstId)| -> Option<LoadPlan> {
        let inst = &func.insts[*store];
        let (GpuOp::SharedStore(_), [v]) = (GpuOp::of(inst)?, inst.operands.as_slice()) else { return None };
        let load = loaded(kernel, *store)?;
        let from = insts.iter().position(|i| *i == load)?;
        if insts.get(from..at)?.iter().any(minds) {
            return None;
        }
        Some(LoadPlan { load, store: *store, registers: registers(kernel, axis, load, *v)? })
    };
    let mut loads = vec![vec![]];
    for (at, i) in insts.iter().enumerate() {
        if matches!(GpuOp::of(&func.insts[*i]), Some(GpuOp::Mma(_))) {
            loads.push(vec![]);
        } else if let (Some(taken), Some(last)) = (taken((at, i)), loads.last_mut()) {
            last.push(taken);
        }
    }
    // No product uses the last ones.
    loads.pop();
    loads
}

/// Registers of a lane that a load fills: accesses of less than 32 bits have one each.
fn registers(kernel: &Kernel, axis: &AxisInfo, load: InstId, v: ValueId) -> Option<u32> {
    let layout = kernel.layout(v)?;
    let found = access(&kernel.module, kernel.func(), axis, &kernel.options, &kernel.func().insts[load]);
    let vector =
        found.as_ref().map_or(1, |f| f.vector.min(layout.vector(f.order.first().copied().unwrap_or(0))));
    let bytes = element_bytes(kernel.module.types.get(kernel.func().ty(v)).elem()) as u32;
    let accesses = u32::try_from(layout.registers()).ok()?.div_ceil(vector.max(1));
    Some(accesses * (vector.max(1) * bytes).div_ceil(4))
}
