//! Verifies S05 and S06: offsets and live ranges of buffers, and that they are stored to before they are read.
//!
//! Requires L01 and S03. Guarantees that a buffer contains what was stored when it is read, if threads wait (S07).

use tk_tile::flow::{Flow, flow};
use tk_tile::{BlockId, InstId};

use super::fault::GpuInvariant::{S05, S06};
use super::fault::{Check, ensure};
use crate::analysis::wgmma_shared::alignments;
use crate::ir::cluster;
use crate::ir::kernel::Kernel;
use crate::ir::op::GpuOp;
use crate::ir::shared_access::touched;

/// An access to a buffer.
struct Access {
    buffer: usize,
    /// Its position in program order.
    at: usize,
    stores: bool,
    /// A copy, possibly in a branch: it fills the stage for an iteration that may not be executed.
    ahead: bool,
    /// It waits for an access that has begun, if there is one.
    waits: bool,
    /// The enclosing blocks, the body of the kernel first.
    blocks: Vec<BlockId>,
}

/// The accesses of a kernel to its buffers.
#[derive(Default)]
struct AccessTrace {
    accesses: Vec<Access>,
    /// The beginnings and ends of loops.
    loops: Vec<(usize, usize)>,
    now: usize,
}

/// Checks all buffers.
pub(super) fn check(kernel: &Kernel) -> Check {
    let mut trace = AccessTrace::default();
    trace.block(kernel, kernel.func().body, &mut vec![]);
    trace.stored_first()?;
    let mut placed: Vec<(usize, (usize, usize), u64, u64)> = vec![];
    for ((b, buffer), align) in kernel.buffers.iter().enumerate().zip(alignments(kernel)) {
        let (from, to) = (u64::from(buffer.offset), u64::from(buffer.offset) + u64::from(buffer.bytes));
        let ok = buffer.offset.is_multiple_of(align) && u32::try_from(to).is_ok();
        ensure(ok, S05, || format!("buffer {b} begins at {from} and ends at {to}"))?;
        let always = [cluster::barriers(kernel), kernel.vote].contains(&Some(b));
        let life = if always { Some((0, usize::MAX)) } else { trace.life(b) };
        let Some(life) = life else { continue };
        let other = placed.iter().find(|(_, l, f, t)| l.0 <= life.1 && life.0 <= l.1 && *f < to && from < *t);
        ensure(other.is_none(), S05, || {
            let other = other.map_or(0, |o| o.0);
            format!("buffers {other} and {b} share a place while both are alive")
        })?;
        placed.push((b, life, from, to));
    }
    Ok(())
}

impl AccessTrace {
    fn block(&mut self, kernel: &Kernel, block: BlockId, around: &mut Vec<BlockId>) {
        around.push(block);
        let insts = kernel.func().blocks.get(block).map_or(&[][..], |b| &b.insts);
        insts.iter().for_each(|i| self.inst(kernel, *i, around));
        around.pop();
    }

    fn inst(&mut self, kernel: &Kernel, id: InstId, around: &mut Vec<BlockId>) {
        let Some(inst) = kernel.func().insts.get(id) else { return };
        self.now += 1;
        let (reads, writes) = touched(inst);
        for (list, stores) in [(reads, false), (writes, true)] {
            for buffer in list {
                // Additions read what was stored before.
                let stores = stores && !crate::ir::shared_access::is_addition(inst);
                let ahead = matches!(
                    GpuOp::of(inst),
                    Some(GpuOp::AsyncCopy(_) | GpuOp::TmaLoad(_) | GpuOp::ProducerSend(_))
                );
                let waits = matches!(GpuOp::of(inst), Some(GpuOp::TmaStoreWait(_)));
                let (at, blocks) = (self.now, around.clone());
                self.accesses.push(Access { buffer, at, stores, ahead, waits, blocks });
            }
        }
        let start = self.now;
        inst.blocks.iter().for_each(|b| self.block(kernel, *b, around));
        match flow(inst.op) {
            Flow::For | Flow::While => self.loops.push((start, self.now)),
            Flow::If | Flow::Plain | Flow::Elements | Flow::Expect => {}
        }
    }

    /// S06.
    fn stored_first(&self) -> Check {
        self.accesses.iter().filter(|a| !a.stores && !a.waits).try_for_each(|a| {
            let before = |s: &Access| {
                let here = s.ahead || a.blocks.starts_with(&s.blocks);
                s.stores && s.buffer == a.buffer && s.at < a.at && here
            };
            ensure(self.accesses.iter().any(before), S06, || {
                format!("buffer {} is read, and nothing was stored to it before", a.buffer)
            })
        })
    }

    /// The live range: from the first to the last access. If a loop contains only some of them, all of its iterations
    /// count.
    fn life(&self, buffer: usize) -> Option<(usize, usize)> {
        let times: Vec<usize> = self.accesses.iter().filter(|a| a.buffer == buffer).map(|a| a.at).collect();
        let mut life = (*times.iter().min()?, *times.iter().max()?);
        for (from, to) in &self.loops {
            let inside = times.iter().filter(|t| from < t && **t <= *to).count();
            if (1..times.len()).contains(&inside) {
                life = (life.0.min(*from), life.1.max(*to));
            }
        }
        Some(life)
    }
}
