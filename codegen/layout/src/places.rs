//! Gives every buffer its place in shared memory.
//!
//! ```text
//! buffer 0: 65536 bytes at 0        buffer 0: 65536 bytes at 0
//! buffer 1: 65536 bytes at 0   =>   buffer 1: 65536 bytes at 0       buffer 0 is not read any more
//! buffer 2: 65536 bytes at 0        buffer 2: 65536 bytes at 65536   while buffer 1 is
//! ```
//!
//! A buffer is alive between its first and its last access in the order of the text; one that is read in a loop and stored
//! to in front of it, until the loop ends. Guarantees that two buffers share no place while both are alive.

use tk_ops::{ControlOp, Op};
use tk_tile::walk;

use crate::kernel::Kernel;
use crate::pipeline::Pass;
use crate::shared::touched;
use crate::verify::verify_placed;

/// The pass.
pub const PASS: Pass = Pass { name: "places", run, verify: verify_placed };

/// Up to here no place is used twice, so that nobody waits only because of that: 16 KiB leaves room for fourteen
/// programs on a multiprocessor of 228 KiB.
const SPARE: u32 = 16 << 10;
/// Where a buffer may begin: what the widest access needs.
const ALIGN: u32 = 16;

fn run(kernel: &mut Kernel) {
    let lives = lives(kernel);
    let mut placed: Vec<(usize, usize, u32, u32)> = vec![];
    let mut end = 0;
    for (life, buffer) in lives.iter().zip(&mut kernel.buffers) {
        let Some((first, last)) = *life else { continue };
        let bytes = buffer.bytes.next_multiple_of(ALIGN);
        let mut offset = if end + bytes <= SPARE { end } else { 0 };
        if end + bytes > SPARE {
            // The lowest place that is free for all of its life.
            let mut alive: Vec<(u32, u32)> =
                placed.iter().filter(|p| p.0 <= last && first <= p.1).map(|p| (p.2, p.3)).collect();
            alive.sort_unstable();
            for (from, to) in alive {
                if offset + bytes <= from {
                    break;
                }
                offset = offset.max(to);
            }
        }
        buffer.offset = offset;
        end = end.max(offset + bytes);
        placed.push((first, last, offset, offset + bytes));
    }
}

/// The first and the last moment of each buffer. If a loop holds only some of its accesses, all of its trips count.
fn lives(kernel: &Kernel) -> Vec<Option<(usize, usize)>> {
    let func = kernel.func();
    let mut times: Vec<Vec<usize>> = vec![vec![]; kernel.buffers.len()];
    let order = walk::insts(func);
    for (at, i) in order.iter().enumerate() {
        let (reads, writes) = touched(&func.insts[*i]);
        for b in reads.into_iter().chain(writes) {
            times.get_mut(b).into_iter().for_each(|t| t.push(at));
        }
    }
    let loops = order.iter().enumerate().filter(|(_, i)| {
        matches!(func.insts[**i].op, Op::Control(ControlOp::For | ControlOp::While))
    });
    let loops: Vec<(usize, usize)> = loops
        .map(|(at, i)| (at, at + func.insts[*i].blocks.iter().map(|b| walk::insts_in(func, *b).len()).sum::<usize>()))
        .collect();
    let life = |times: &Vec<usize>| {
        let mut life = (*times.iter().min()?, *times.iter().max()?);
        for (from, to) in &loops {
            let inside = times.iter().filter(|t| from < t && **t <= *to).count();
            if (1..times.len()).contains(&inside) {
                life = (life.0.min(*from), life.1.max(*to));
            }
        }
        Some(life)
    };
    times.iter().map(life).collect()
}
