//! Verifies S09 and S10: the width and the instruction of each access, and both sides of each TMA pipeline.
//!
//! Requires S01 to S08. Guarantees that emission makes no choices, and that no warp waits for a barrier at which none
//! arrives.

use tk_tile::{Inst, InstId, walk};

use super::fault::GpuInvariant::{S09, S10};
use super::fault::{Check, GpuVerifyError, each, ensure, fault, whole};
use crate::analysis::axis::AxisInfo;
use crate::analysis::bounded::bounded;
use crate::analysis::{access_width, stmatrix};
use crate::ir::kernel::Kernel;
use crate::ir::op::{FragmentLoad, GpuOp, MmaOperand, Pipeline, StoreAccess};

/// Checks every instruction, then the pipelines.
pub(super) fn check(kernel: &Kernel) -> Result<(), GpuVerifyError> {
    let axis = AxisInfo::new(&kernel.module, kernel.func(), &kernel.options.facts);
    each(kernel, |inst| access(kernel, &axis, inst))?;
    pipelines(kernel).map_err(|(invariant, message)| whole(invariant, message))
}

/// The chosen width against the largest possible one.
fn width(chosen: Option<u32>, most: u32) -> Check {
    let Some(n) = chosen else { return fault(S09, "its width is not decided") };
    ensure(n.is_power_of_two() && n <= most, S09, || {
        format!("it accesses {n} elements at once, and alignment and layout allow {most}")
    })
}

/// S09.
fn access(kernel: &Kernel, axis: &AxisInfo, inst: &Inst) -> Check {
    if let Some(v) = access_width::accessed(kernel, inst) {
        let chosen = inst.attrs.int("vector").map(|n| u32::try_from(n).unwrap_or(0));
        let along = inst.attrs.int("bounded");
        let can = bounded(kernel, axis, inst, v);
        ensure(along.is_none() || along == can.map(|d| d as i64), S09, || {
            "its lanes do not differ along this axis alone, whose bound is the hardware's".into()
        })?;
        return width(chosen, access_width::memory(kernel, axis, inst, v));
    }
    let (operand, result) = (inst.operands.first().copied(), inst.results.first().copied());
    match (GpuOp::of(inst), operand, result) {
        (Some(GpuOp::SharedStore(store)), Some(v), _) => match store.access {
            Some(StoreAccess::Matrices) => {
                let can = stmatrix::rows(kernel, store, v).is_some();
                ensure(can, S09, || "`stmatrix` does not store this layout there".into())
            }
            Some(StoreAccess::Vector(n)) => {
                width(Some(n), access_width::shared(kernel, &store.placement, store.buffer.buffer, v))
            }
            None => width(None, 1),
        },
        (Some(GpuOp::SharedLoad(load)), _, Some(r)) => {
            width(load.vector, access_width::shared(kernel, &load.placement, load.buffer.buffer, r))
        }
        (Some(GpuOp::AsyncCopy(copy)), _, Some(r)) => {
            width(copy.vector, access_width::copy(kernel, axis, inst, copy, r))
        }
        (Some(GpuOp::Mma(mma)), Some(acc), _) => {
            let Some(best) = access_width::of_mma(kernel, mma, acc) else { return Ok(()) };
            [&mma.a, &mma.b].into_iter().zip(best).try_for_each(|(operand, best)| match operand {
                MmaOperand::Shared { load, .. } => fragments(*load, best),
                MmaOperand::Registers => Ok(()),
            })
        }
        (Some(GpuOp::Fragments(op)), Some(acc), _) => {
            let best = access_width::of_fragments(kernel, op, acc);
            best.map_or(Ok(()), |best| fragments(op.load, best))
        }
        _ => Ok(()),
    }
}

/// The chosen way to read fragments against the best one.
fn fragments(chosen: Option<FragmentLoad>, best: FragmentLoad) -> Check {
    match (chosen, best) {
        (Some(FragmentLoad::Vector(n)), FragmentLoad::Vector(most)) => width(Some(n), most),
        (Some(chosen), best) => ensure(chosen == best, S09, || "it cannot read its operands that way".into()),
        (None, _) => width(None, 1),
    }
}

/// The operations found on a pipeline.
#[derive(Default)]
struct Sides {
    is_declared: bool,
    is_filled: bool,
    is_waited_for: bool,
    is_released: bool,
}

/// S10.
fn pipelines(kernel: &Kernel) -> Check {
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
            GpuOp::ConsumerWait(wait) => used.push(wait.pipeline),
            GpuOp::ConsumerRelease(release) => used.push(release.pipeline),
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
fn sides(kernel: &Kernel, pipeline: Pipeline, declared: &[Pipeline]) -> Result<Sides, super::fault::Fault> {
    let func = kernel.func();
    let mut sides = Sides { is_declared: declared.contains(&pipeline), ..Sides::default() };
    let blocks = walk::insts(func).into_iter().flat_map(|i| func.insts[i].blocks.clone());
    for block in std::iter::once(func.body).chain(blocks) {
        let mut open: Option<u64> = None;
        for inst in func.blocks[block].insts.iter().map(|i| &func.insts[*i]) {
            match GpuOp::of(inst) {
                Some(GpuOp::ProducerAcquire(op)) if op.pipeline == pipeline => {
                    ensure(open.is_none(), S10, || {
                        "a stage is acquired before the last is committed".into()
                    })?;
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
                Some(GpuOp::ConsumerWait(op)) if op.pipeline == pipeline => sides.is_waited_for = true,
                Some(GpuOp::ConsumerRelease(op)) if op.pipeline == pipeline => sides.is_released = true,
                _ => {}
            }
        }
        ensure(open.is_none(), S10, || "an acquired stage is not committed in its block".into())?;
    }
    Ok(sides)
}
