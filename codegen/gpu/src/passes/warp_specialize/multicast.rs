//! Chooses the loads that the programs of a cluster do together, by multicast.
//!
//! ```text
//! cluster 2                                         cluster 2
//!
//! p = program_id 2                                  is_producer_warp {pipeline_blocks = [2]}
//! for k in lo..hi                                   cluster_sync
//!   a: view_load x, p * 128, k  [128, 64]     =>      tma_load x, ..                      (128 lines of this program)
//!   b: view_load y, k, n        [64, 256]             tma_load y, .. {multicast = true}   (half of it, to both)
//!                                                     consumer_release                    (in both)
//!                                                   cluster_sync
//! ```
//!
//! The programs of a cluster differ in `program_id(2)` only. A load on whose position and loops it has no influence is
//! the same in all of them: each loads a part to the shared memory of all, so each multiprocessor requests only that
//! part from L2. A stage is then released in every block, and filled when the parts of all blocks have arrived, which
//! are as many bytes as without multicast.
//!
//! Guarantees that all programs of a cluster fill and release the stages of such a pipeline equally often: all of its
//! loads are in loops that do not depend on `program_id(2)`.

use tk_ops::{ControlOp, Op};
use tk_tile::walk;

use super::slice::Slice;
use super::{PlannedPipeline, Taken, box_of};
use crate::ir::kernel::Kernel;
use crate::ir::op::GpuOp;
use crate::ir::tensor_map::lines_of_box;

/// The axis of the grid along which programs form a cluster.
const AXIS: i64 = 2;

/// Marks the loads that are the same in all programs of a cluster.
pub fn choose(kernel: &Kernel, slice: &Slice, pipelines: &mut [PlannedPipeline]) {
    if kernel.options.cluster == 1 || !kernel.options.spec.has_clusters {
        return;
    }
    for pipeline in pipelines {
        let loads = pipeline.feeds.iter_mut().flat_map(|f| &mut f.taken);
        loads.for_each(|t| t.multicast = is_shared(kernel, slice, t));
        // Then the loops around all loads are the same in all programs.
        if !pipeline.feeds.iter().all(|f| f.taken.iter().any(|t| t.multicast)) {
            pipeline.feeds.iter_mut().flat_map(|f| &mut f.taken).for_each(|t| t.multicast = false);
        }
    }
}

/// Returns true if all programs of a cluster do a load equally often at the same positions, and can divide it.
fn is_shared(kernel: &Kernel, slice: &Slice, t: &Taken) -> bool {
    let func = kernel.func();
    let differs = |i| {
        let inst = &func.insts[i];
        inst.op == Op::Control(ControlOp::ProgramId) && inst.attrs.int("axis").unwrap_or(0) == AXIS
    };
    let dtype = func.insts[t.load].results.first().and_then(|r| kernel.module.types.get(func.ty(*r)).dtype());
    let divides = box_of(kernel, t).zip(dtype);
    let divides = divides.and_then(|(of, dtype)| lines_of_box(of, dtype, kernel.options.cluster));
    divides.is_some() && !slice.of(func, std::iter::once(t.load)).insts.into_iter().any(differs)
}

/// Returns true if a kernel has a load that the programs of a cluster do together.
pub fn applies(kernel: &Kernel) -> bool {
    let func = kernel.func();
    let shared = |i| matches!(GpuOp::of(&func.insts[i]), Some(GpuOp::TmaLoad(load)) if load.multicast);
    walk::insts(func).into_iter().any(shared)
}
