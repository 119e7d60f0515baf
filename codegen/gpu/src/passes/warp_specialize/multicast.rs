//! Chooses the loads that the programs of a cluster do together, by multicast.
//!
//! ```text
//! cluster 4                                         cluster 4
//!
//! p = program_id 2                                  is_producer_warp {pipeline_peers = [7]}
//! m = (p % 2) * 128, n = (p / 2) * 256              cluster_sync
//! for k in lo..hi
//!   a: view_load x, m, k  [128, 64]           =>      tma_load x, .. {multicast = 2, multicast_stride = 2}
//!   b: view_load y, k, n  [64, 256]                   tma_load y, .. {multicast = 2}
//!                                                     consumer_release           (in each block that loads to this one)
//!                                                   producer_drain
//! ```
//!
//! The programs of a cluster differ in `program_id(2)` only, `p`. A load is the same in all of them if `p` has no
//! influence on its position; in those with the same `p % c`, or the same `p / c`, if it has influence only through that.
//! Each of these programs loads a part to the shared memory of all, so each multiprocessor requests only that part from
//! L2. A stage is filled when the parts of all blocks have arrived, which are as many bytes as without multicast, and
//! released in every block that loads to it. A block ends when all have released its stages.
//!
//! Guarantees that all programs of a cluster fill and release the stages of such a pipeline equally often: all of its
//! loads are in loops that depend neither on `program_id(2)` nor on numbers that each program takes for itself from a counter.

use std::collections::BTreeSet;

use tk_ops::elementwise::{Arithmetic, Group};
use tk_ops::{ControlOp, Op};
use tk_tile::rewrite::constant;
use tk_tile::{Func, InstId, ValueId, walk};

use super::feed::TmaLoadPlan;
use super::slice::Slice;
use super::{PlannedPipeline, box_of};
use crate::ir::kernel::Kernel;
use crate::ir::op::{GpuOp, Multicast};
use crate::ir::tensor_map::parts;

/// The axis of the grid along which programs form a cluster.
const AXIS: i64 = 2;

/// Marks the loads that are the same in several programs of a cluster.
pub fn choose(kernel: &Kernel, slice: &Slice, pipelines: &mut [PlannedPipeline]) {
    if kernel.options.cluster == 1 || !kernel.options.spec.has_clusters {
        return;
    }
    for pipeline in pipelines {
        let loads = pipeline.feeds.iter_mut().flat_map(|f| &mut f.taken);
        loads.for_each(|t| t.multicast = shared(kernel, slice, t));
        // Then the loops around all loads are the same in all programs.
        if !pipeline.feeds.iter().all(|f| f.taken.iter().any(|t| t.multicast.is_some())) {
            pipeline.feeds.iter_mut().flat_map(|f| &mut f.taken).for_each(|t| t.multicast = None);
        }
    }
}

/// The programs of a cluster that do a load at the same positions and can divide it, if all do it equally often.
fn shared(kernel: &Kernel, slice: &Slice, t: &TmaLoadPlan) -> Option<Multicast> {
    let func = kernel.func();
    if slice.of_loops(func, t.load).insts.into_iter().any(|i| is_rank(func, i)) {
        return None;
    }
    let part = slice.of(func, std::iter::once(t.load));
    if slice.takes_numbers(&part) {
        return None;
    }
    let together = same(func, kernel.options.cluster, t.load, &part.insts)?;
    let (copied, dtype) = box_of(kernel, t)?;
    parts(copied, dtype, together.blocks).map(|_| together)
}

fn is_rank(func: &Func, i: InstId) -> bool {
    let inst = &func.insts[i];
    inst.op == Op::Control(ControlOp::ProgramId) && inst.attrs.int("axis").unwrap_or(0) == AXIS
}

/// The programs of a cluster of this size that do a load with this slice at the same positions.
fn same(func: &Func, cluster: u32, load: InstId, slice: &BTreeSet<InstId>) -> Option<Multicast> {
    let ranks: BTreeSet<ValueId> = slice
        .iter()
        .filter(|i| is_rank(func, **i))
        .flat_map(|i| func.insts[*i].results.iter().copied())
        .collect();
    let mut found = None;
    for i in walk::insts(func) {
        let inst = &func.insts[i];
        // What another instruction computes from the rank has no influence on the load.
        let counts = slice.contains(&i) || i == load || matches!(inst.op, Op::Control(ControlOp::Yield));
        if !counts || !inst.operands.iter().any(|v| ranks.contains(v)) {
            continue;
        }
        let multicast = part_of_rank(func, cluster, i, &ranks)?;
        if *found.get_or_insert(multicast) != multicast {
            return None;
        }
    }
    found.or(Some(Multicast { blocks: cluster, stride: 1 })).filter(|m| m.blocks > 1)
}

/// The programs with the same value of an instruction: the remainder or the quotient of the rank and a constant.
fn part_of_rank(func: &Func, cluster: u32, i: InstId, ranks: &BTreeSet<ValueId>) -> Option<Multicast> {
    let inst = &func.insts[i];
    let [rank, by] = inst.operands.as_slice() else { return None };
    let by = u32::try_from(constant(func, *by)?.as_int()?).ok()?;
    if !ranks.contains(rank) || !by.is_power_of_two() || by > cluster {
        return None;
    }
    let Op::Elementwise(op) = inst.op else { return None };
    match op.group() {
        Group::Arithmetic(Arithmetic::Rem) => Some(Multicast { blocks: cluster / by, stride: by }),
        Group::Arithmetic(Arithmetic::Div) => Some(Multicast { blocks: by, stride: 1 }),
        _ => None,
    }
}

/// Returns true if a kernel has a load that the programs of a cluster do together.
pub fn applies(kernel: &Kernel) -> bool {
    let func = kernel.func();
    let shared =
        |i| matches!(GpuOp::of(&func.insts[i]), Some(GpuOp::TmaLoad(load)) if load.multicast.is_some());
    walk::insts(func).into_iter().any(shared)
}
