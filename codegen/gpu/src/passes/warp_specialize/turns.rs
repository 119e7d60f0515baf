//! Warpgroups that take the iterations of a loop in turns pass over the stages of one another ([`crate::passes::take_turns`]).
//!
//! ```text
//!                                v1 = group_id
//!                                consumer_skip (v1 * n)
//! for t in lo..hi          =>    for t in lo..hi
//!   for k in ..                    turn_wait
//!     consumer_wait ..             for k in ..
//!                                    consumer_wait ..
//!                                  turn_pass
//!                                  consumer_skip ((groups - 1) * n)
//! ```
//!
//! A warp that waits for a phase of an mbarrier must not be more than one behind it. So a group waits for its first stage when the
//! one before it has waited for its last.
//!
//! `n` is the number of stages of an iteration, which is the same for all of them. So it is counted modulo twice the stages of the
//! buffer, after which stage and phase are the same again.

use tk_ops::{DType, ElementwiseOp};
use tk_tile::{BlockId, InstId, ValueId, walk};

use super::feed::Feed;
use crate::ir::builder::Edit;
use crate::ir::kernel::{BARRIERS, Buffer};
use crate::ir::op::{ConsumerSkip, GpuOp, GroupId, Pipeline, TurnPass, TurnWait};
use crate::ir::warps::{producer, takes_turns};

/// Adds what consumers in `block` pass over, for pipelines with their feeds.
pub(super) fn skip(edit: &mut Edit<'_>, feeds: &[(Pipeline, &Feed)], block: BlockId) {
    let func = edit.kernel.func();
    let taken: Vec<InstId> =
        func.blocks[block].insts.iter().copied().filter(|i| takes_turns(func, &func.insts[*i])).collect();
    let mut pipelines: Vec<Pipeline> = feeds.iter().map(|(p, _)| *p).collect();
    pipelines.dedup();
    for id in taken {
        pass_on(edit, id, feeds);
        for pipeline in &pipelines {
            let own = feeds.iter().filter(|(p, _)| p == pipeline).map(|(_, f)| f.at.1).collect::<Vec<_>>();
            skip_in(edit, (block, id), *pipeline, &own);
        }
    }
}

/// Adds the turns of an iteration of a loop: from its first loop with these feeds to its last.
fn pass_on(edit: &mut Edit<'_>, id: InstId, feeds: &[(Pipeline, &Feed)]) {
    let func = edit.kernel.func();
    let Some(body) = func.insts[id].blocks.first().copied() else { return };
    let insts = func.blocks[body].insts.clone();
    let waits = |i: &InstId| feeds.iter().any(|(_, f)| f.at.1 == *i);
    let (Some(first), Some(last)) = (insts.iter().position(waits), insts.iter().rposition(waits)) else {
        return;
    };
    let Some((producer, _)) = producer(edit.kernel) else { return };
    edit.loc = func.insts[id].loc;
    edit.kernel.buffers.push(Buffer::common(edit.kernel.options.groups * BARRIERS / 2));
    let turns = edit.kernel.buffers.len() - 1;
    GpuOp::change(&mut edit.func().insts[producer], |op| {
        if let GpuOp::IsProducerWarp(is) = op {
            is.turns = Some(turns);
        }
    });
    edit.func().blocks[body].insts.clear();
    for (n, i) in insts.into_iter().enumerate() {
        if n == first {
            edit.gpu(body, TurnWait { turns }, &[], &[]);
        }
        edit.func().blocks[body].insts.push(i);
        if n == last {
            edit.gpu(body, TurnPass { turns }, &[], &[]);
        }
    }
}

/// The same for a pipeline that these loops fill, in a loop of a block.
fn skip_in(edit: &mut Edit<'_>, (block, id): (BlockId, InstId), pipeline: Pipeline, loops: &[InstId]) {
    let func = edit.kernel.func();
    let Some(body) = func.insts[id].blocks.first().copied() else { return };
    let inside = walk::insts_in(func, body);
    let Some(place) = func.blocks[block].insts.iter().position(|i| *i == id) else { return };
    edit.loc = func.insts[id].loc;
    let tail = edit.func().blocks[block].insts.split_off(place);
    let mut all = None;
    for inner in loops.iter().filter(|i| inside.contains(i)) {
        let n = iterations(edit, block, *inner, pipeline.stages);
        all = match (all, n) {
            (Some(all), Some(n)) => Some(edit.compute(block, ElementwiseOp::Add, &[all, n], DType::I32)),
            (all, n) => all.or(n),
        };
    }
    if let Some(n) = all {
        let i32 = edit.scalar(DType::I32);
        let group = edit.first(block, GpuOp::from(GroupId {}).inst(vec![], edit.loc), i32);
        let others = edit.int(block, DType::I32, i64::from(edit.kernel.options.groups) - 1);
        let around = edit.int(block, DType::I32, i64::from(2 * pipeline.stages));
        let [before, between] = [group, others].map(|iterations| {
            let all = edit.compute(block, ElementwiseOp::Mul, &[n, iterations], DType::I32);
            edit.compute(block, ElementwiseOp::Rem, &[all, around], DType::I32)
        });
        edit.gpu(block, ConsumerSkip { pipeline }, &[before], &[]);
        let end = edit.func().blocks[body].insts.pop();
        edit.gpu(body, ConsumerSkip { pipeline }, &[between], &[]);
        edit.func().blocks[body].insts.extend(end);
    }
    edit.func().blocks[block].insts.extend(tail);
}

/// The number of iterations of a loop, modulo twice so many stages.
fn iterations(edit: &mut Edit<'_>, block: BlockId, id: InstId, stages: u32) -> Option<ValueId> {
    let [lo, hi, step] = *edit.kernel.func().insts[id].operands.get(..3)? else { return None };
    let mut wide = |v: ValueId| edit.compute(block, ElementwiseOp::Cast, &[v], DType::I64);
    let [lo, hi, step] = [lo, hi, step].map(&mut wide);
    let zero = edit.int(block, DType::I64, 0);
    let around = edit.int(block, DType::I64, i64::from(2 * stages));
    let far = edit.compute(block, ElementwiseOp::Sub, &[hi, lo], DType::I64);
    let n = edit.compute(block, ElementwiseOp::CeilDiv, &[far, step], DType::I64);
    let n = edit.compute(block, ElementwiseOp::Maximum, &[n, zero], DType::I64);
    let n = edit.compute(block, ElementwiseOp::Rem, &[n, around], DType::I64);
    Some(edit.compute(block, ElementwiseOp::Cast, &[n], DType::I32))
}
