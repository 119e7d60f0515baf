//! Gives every buffer its offset in shared memory.
//!
//! ```text
//! buffer 0: 65536 bytes at 0        buffer 0: 65536 bytes at 0
//! buffer 1: 65536 bytes at 0   =>   buffer 1: 65536 bytes at 0       buffer 0 is not read any more
//! buffer 2: 65536 bytes at 0        buffer 2: 65536 bytes at 65536   while buffer 1 is
//! ```
//!
//! A buffer is live between its first and its last access in program order; one that is read in a loop and stored to
//! before it, until the loop ends; and one from which TMA stores in a loop, in all of its iterations. Guarantees that two
//! buffers do not overlap while both are live.

use tk_ops::{ControlOp, Op};
use tk_tile::walk;

use crate::analysis::wgmma_shared::alignments;
use crate::ir::cluster;
use crate::ir::kernel::{Buffer, Kernel, WIDEST_ALIGN};
use crate::ir::op::{GpuOp, TmaStore};
use crate::ir::shared_access::touched;
use crate::passes::{Pass, Property, Run};
use crate::verify::verify_placed;

/// The pass.
pub const PASS: Pass = Pass {
    name: "allocate_shared",
    purpose: "gives every buffer its offset in shared memory",
    needs: &[Property::PlacedStores, Property::ChunkedLoads],
    leaves: &[Property::Offsets],
    run: Run::Kernel { run, verify: verify_placed },
};

/// Up to this size no memory is reused, so that no barrier is needed only for reuse: 16 KiB leaves room for fourteen
/// programs on a multiprocessor of 228 KiB.
const SPARE: u32 = 16 << 10;
fn run(kernel: &mut Kernel) {
    let (lives, in_loops) = lives(kernel);
    // Memory that is reused within an iteration costs two barriers in each. Half of the memory leaves room for two
    // programs.
    let apart = places(kernel, &in_loops);
    let fits = apart.iter().zip(&kernel.buffers).all(|(at, b)| {
        at.is_none_or(|at| at.saturating_add(b.bytes) <= kernel.options.spec.shared_bytes / 2)
    });
    let chosen = if fits { apart } else { places(kernel, &lives) };
    let groups = kernel.options.groups;
    for (buffer, at) in kernel.buffers.iter_mut().zip(chosen) {
        match at {
            Some(at) => buffer.offset = at,
            // Nothing accesses it, so groups have no copies, between which there would be its bytes.
            None if groups > 1 => buffer.bytes = 0,
            None => {}
        }
    }
}

/// The bytes of shared memory that a kernel needs at least.
pub(crate) fn bytes(kernel: &Kernel) -> u32 {
    let ends = places(kernel, &lives(kernel).0).into_iter().zip(&kernel.buffers);
    ends.filter_map(|(at, b)| Some((at?).saturating_add(b.bytes))).max().unwrap_or(0)
}

/// The live range of a buffer: its first and last position in program order.
pub(crate) type Life = Option<(usize, usize)>;

/// The offset of each buffer, so that buffers that are live together do not overlap. Behind the copies of each warpgroup
/// comes what is common to groups.
fn places(kernel: &Kernel, lives: &[Life]) -> Vec<Option<u32>> {
    let groups = kernel.options.groups;
    if groups == 1 {
        return places_from(kernel, lives, 0);
    }
    let of = |common: bool| -> Vec<Life> {
        lives.iter().zip(&kernel.buffers).map(|(l, b)| l.filter(|_| b.is_common == common)).collect()
    };
    let own = places_from(kernel, &of(false), 0);
    let ends = own.iter().zip(&kernel.buffers).filter_map(|(at, b)| Some((*at)? + b.bytes));
    let each = ends.max().unwrap_or(0).next_multiple_of(WIDEST_ALIGN);
    let common = places_from(kernel, &of(true), groups * each);
    own.into_iter().zip(common).map(|(own, common)| own.or(common)).collect()
}

/// The same, not before `begin`.
fn places_from(kernel: &Kernel, lives: &[Life], begin: u32) -> Vec<Option<u32>> {
    let mut placed: Vec<(usize, usize, u32, u32)> = vec![];
    let mut end = begin;
    let mut place = |life: &Life, buffer: &Buffer, align: u32| {
        let (first, last) = (*life)?;
        let bytes = buffer.bytes.next_multiple_of(align);
        let next = end.next_multiple_of(align);
        let mut offset = if next + bytes <= SPARE { next } else { begin };
        if next + bytes > SPARE {
            // The lowest offset that is free for all of its live range.
            let mut alive: Vec<(u32, u32)> =
                placed.iter().filter(|p| p.0 <= last && first <= p.1).map(|p| (p.2, p.3)).collect();
            alive.sort_unstable();
            for (from, to) in alive {
                if offset + bytes <= from {
                    break;
                }
                offset = offset.max(to.next_multiple_of(align));
            }
        }
        end = end.max(offset + bytes);
        placed.push((first, last, offset, offset + bytes));
        Some(offset)
    };
    let all = lives.iter().zip(&kernel.buffers).zip(alignments(kernel));
    all.map(|((life, buffer), align)| place(life, buffer, align)).collect()
}

/// The live range of each buffer: if a loop contains only some of its accesses, all of its iterations count. Then the
/// same if all iterations of the innermost loop around an access count.
pub(crate) fn lives(kernel: &Kernel) -> (Vec<Life>, Vec<Life>) {
    let func = kernel.func();
    let mut times: Vec<Vec<usize>> = vec![vec![]; kernel.buffers.len()];
    let order = walk::insts(func);
    let (mut loops, mut stored) = (vec![], vec![]);
    for (at, i) in order.iter().enumerate() {
        let inst = &func.insts[*i];
        let (reads, writes) = touched(inst);
        for b in reads.into_iter().chain(writes) {
            times.get_mut(b).into_iter().for_each(|t| t.push(at));
        }
        if matches!(inst.op, Op::Control(ControlOp::For | ControlOp::While)) {
            let inside: usize = inst.blocks.iter().map(|b| walk::insts_in(func, *b).len()).sum();
            loops.push((at, at + inside));
        }
        if let Some(GpuOp::TmaStore(TmaStore { buffer, once: false, .. })) = GpuOp::of(inst) {
            stored.push((*buffer, at));
        }
    }
    // TMA may read it until the next iteration fills it again, and until it is waited for behind the loops.
    for (buffer, at) in stored {
        let outermost = loops.iter().find(|(from, to)| *from < at && at <= *to);
        let behind = outermost.map(|(_, to)| to + 1);
        times.get_mut(buffer).into_iter().for_each(|t| t.extend(behind));
    }
    let life = |times: &Vec<usize>| -> Option<[(usize, usize); 2]> {
        let mut life = (*times.iter().min()?, *times.iter().max()?);
        let mut in_loops = life;
        for (from, to) in &loops {
            let inside = times.iter().filter(|t| from < t && **t <= *to).count();
            if (1..times.len()).contains(&inside) {
                life = (life.0.min(*from), life.1.max(*to));
            }
        }
        for at in times {
            let around = loops.iter().filter(|(from, to)| from < at && at <= to);
            if let Some((from, to)) = around.max_by_key(|(from, _)| *from) {
                in_loops = (in_loops.0.min(*from), in_loops.1.max(*to));
            }
        }
        Some([life, (in_loops.0.min(life.0), in_loops.1.max(life.1))])
    };
    let (mut lives, mut in_loops): (Vec<Life>, Vec<Life>) =
        times.iter().map(life).map(|l| (l.map(|l| l[0]), l.map(|l| l[1]))).unzip();
    for b in [cluster::barriers(kernel), kernel.vote].into_iter().flatten() {
        let always = Some((0, order.len()));
        for life in [lives.get_mut(b), in_loops.get_mut(b)].into_iter().flatten() {
            *life = always;
        }
    }
    (lives, in_loops)
}
