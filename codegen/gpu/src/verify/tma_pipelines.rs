//! Verifies S10: both sides of each TMA pipeline.
//!
//! Requires S03. Guarantees that no warp waits for a barrier at which none arrives, anywhere in the kernel: how often each
//! side runs is not followed.

use tk_tile::{InstId, walk};

use super::fault::GpuInvariant::S10;
use super::fault::{Check, Fault, ensure, fault};
use crate::ir::kernel::Kernel;
use crate::ir::op::{GpuOp, Pipeline};

/// The operations found on a pipeline.
#[derive(Default)]
struct Sides {
    is_declared: bool,
    is_filled: bool,
    is_waited_for: bool,
    is_released: bool,
    /// Whether no other block releases stages of one that has ended.
    is_drained: bool,
}

/// Checks every pipeline.
pub(super) fn check(kernel: &Kernel) -> Check {
    let func = kernel.func();
    let ops = |i: InstId| GpuOp::of(&func.insts[i]);
    let mut declared: Vec<Pipeline> = vec![];
    let mut used: Vec<Pipeline> = vec![];
    for op in walk::insts(func).into_iter().filter_map(ops) {
        match op {
            GpuOp::IsProducerWarp(is) => declared.extend(&is.pipelines),
            GpuOp::ProducerAcquire(acquire) => used.push(acquire.pipeline),
            GpuOp::TmaLoad(load) => used.push(load.pipeline),
            GpuOp::ProducerCommit(commit) => used.push(commit.pipeline),
            GpuOp::ProducerDrain(drain) => used.push(drain.pipeline),
            GpuOp::ProducerSend(send) => used.push(send.pipeline),
            GpuOp::ConsumerReceive(receive) => used.push(receive.pipeline),
            GpuOp::ConsumerWait(wait) => used.push(wait.pipeline),
            GpuOp::ConsumerRelease(release) => used.push(release.pipeline),
            GpuOp::ConsumerSkip(skip) => used.push(skip.pipeline),
            _ => {}
        }
    }
    let mut checked: Vec<Pipeline> = vec![];
    for pipeline in used.into_iter().chain(declared.clone()) {
        if checked.contains(&pipeline) {
            continue;
        }
        checked.push(pipeline);
        let sides = sides(kernel, pipeline, &declared)?;
        let missing = [
            (sides.is_declared, "is not initialized by `is_producer_warp`"),
            (sides.is_filled, "has no producer that fills it"),
            (sides.is_waited_for, "has no consumer that waits for it"),
            (sides.is_released, "has no consumer that releases its stages"),
            (
                sides.is_drained || pipeline.peers == 1,
                "has no producer that waits for other blocks at its end",
            ),
        ];
        let missing = missing.into_iter().find(|(there, _)| !there);
        ensure(missing.is_none(), S10, || {
            let barriers = pipeline.barriers;
            format!("the pipeline with the barriers in buffer {barriers} {}", missing.map_or("", |m| m.1))
        })?;
    }
    Ok(())
}

/// The operations on a pipeline. Each acquired stage receives the announced bytes, and is committed, in its block.
fn sides(kernel: &Kernel, pipeline: Pipeline, declared: &[Pipeline]) -> Result<Sides, Fault> {
    let func = kernel.func();
    let mut sides = Sides { is_declared: declared.contains(&pipeline), ..Sides::default() };
    let blocks = walk::insts(func).into_iter().flat_map(|i| func.insts[i].blocks.clone());
    for block in std::iter::once(func.body).chain(blocks) {
        let mut open: Option<u64> = None;
        for inst in func.blocks[block].insts.iter().map(|i| &func.insts[*i]) {
            match GpuOp::of(inst) {
                Some(GpuOp::ProducerAcquire(op)) if op.pipeline == pipeline => {
                    let complete = open.is_none() || open == Some(0) && op.group.is_some_and(|g| g > 0);
                    ensure(complete, S10, || "a stage is acquired before the last is committed".into())?;
                    open = Some(op.bytes.into());
                }
                Some(GpuOp::TmaLoad(op)) if op.pipeline == pipeline => {
                    let whole = kernel.buffers.get(op.destination).map_or(0, |b| b.bytes);
                    let bytes = u64::from(whole / pipeline.stages.max(1));
                    open = match open.map(|left| left.checked_sub(bytes)) {
                        Some(Some(left)) => Some(left),
                        Some(None) => return fault(S10, "more bytes arrive than were announced"),
                        None => return fault(S10, "`tma_load` fills a stage that is not acquired"),
                    };
                }
                Some(GpuOp::ProducerCommit(op)) if op.pipeline == pipeline => {
                    ensure(open == Some(0), S10, || {
                        let left = open.map_or("of no acquired stage".into(), |n| format!("{n} bytes early"));
                        format!("`producer_commit` {left}")
                    })?;
                    (open, sides.is_filled) = (None, true);
                }
                Some(GpuOp::ProducerSend(op)) if op.pipeline == pipeline => sides.is_filled = true,
                Some(GpuOp::ProducerDrain(op)) if op.pipeline == pipeline => sides.is_drained = true,
                Some(GpuOp::ConsumerReceive(op)) if op.pipeline == pipeline => {
                    (sides.is_waited_for, sides.is_released) = (true, true);
                }
                Some(GpuOp::ConsumerWait(op)) if op.pipeline == pipeline => sides.is_waited_for = true,
                Some(GpuOp::ConsumerRelease(op)) if op.pipeline == pipeline => sides.is_released = true,
                _ => {}
            }
        }
        ensure(open.is_none(), S10, || "an acquired stage is not committed in its block".into())?;
    }
    Ok(sides)
}
