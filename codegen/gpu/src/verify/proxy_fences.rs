//! Verifies S11: fences between writes of threads to shared memory and what reads them through the async proxy.
//!
//! Requires S07. Independent of how fences were inserted. Guarantees that each thread fences what it wrote, or the copies
//! for which it waited, before the barrier after which wgmma or TMA reads it. Which iteration's copies a wait is for is not
//! followed: a fence belongs after each wait, if copies fill what such an instruction reads.

use std::collections::{BTreeMap, BTreeSet};

use tk_ops::{ControlOp, Op};

use super::fault::GpuInvariant::S11;
use super::fault::{GpuVerifyError, at, fault};
use super::forward::{State, forward};
use crate::analysis::wgmma_shared::as_wgmma;
use crate::ir::kernel::Kernel;
use crate::ir::op::GpuOp;
use crate::ir::shared_access::touched;

/// How far what threads wrote is on its way to the async proxy.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Written {
    /// Fenced, but no barrier has followed.
    Fenced,
    /// Not fenced.
    Unfenced,
}

/// Buffers with writes that are not visible to the async proxy, and those that copies fill.
#[derive(Clone, Default)]
struct Pending {
    written: BTreeMap<usize, Written>,
    copied: BTreeSet<usize>,
}

impl State for Pending {
    fn join(&mut self, other: Pending) -> bool {
        let mut is_new = false;
        for (buffer, written) in other.written {
            let known = self.written.get(&buffer).copied();
            if known < Some(written) {
                self.written.insert(buffer, written);
                is_new = true;
            }
        }
        for buffer in other.copied {
            is_new |= self.copied.insert(buffer);
        }
        is_new
    }
}

/// Checks every read through the async proxy.
pub(super) fn check(kernel: &Kernel) -> Result<(), GpuVerifyError> {
    let func = kernel.func();
    forward(func, func.body, &mut Pending::default(), &mut |id, pending| {
        let Some(inst) = func.insts.get(id) else { return Ok(()) };
        if inst.op == Op::Control(ControlOp::GridBarrier) {
            // It begins and ends with a barrier of the block.
            pending.written.retain(|_, w| *w == Written::Unfenced);
            return Ok(());
        }
        let Some(op) = GpuOp::of(inst) else { return Ok(()) };
        let (reads, writes) = touched(inst);
        if as_wgmma(inst).is_some() || matches!(op, GpuOp::TmaStore(_)) {
            if let Some(buffer) = reads.iter().find(|b| pending.written.contains_key(b)) {
                let message =
                    format!("no proxy fence and barrier after what threads wrote to buffer {buffer}");
                return fault(S11, message).map_err(|f| at(inst, id, f));
            }
            return Ok(());
        }
        match op {
            GpuOp::Barrier(_) => pending.written.retain(|_, w| *w == Written::Unfenced),
            GpuOp::ProxyFence(_) => pending.written.values_mut().for_each(|w| *w = Written::Fenced),
            GpuOp::AsyncCopy(_) => pending.copied.extend(writes),
            GpuOp::AsyncWait(_) => {
                let copied: Vec<usize> = pending.copied.iter().copied().collect();
                pending.written.extend(copied.into_iter().map(|b| (b, Written::Unfenced)));
            }
            // TMA writes through the async proxy, and barriers are initialized for both.
            GpuOp::TmaLoad(_) | GpuOp::IsProducerWarp(_) => {}
            _ => pending.written.extend(writes.into_iter().map(|b| (b, Written::Unfenced))),
        }
        Ok(())
    })
}
