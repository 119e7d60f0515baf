//! Gives every buffer its place in shared memory.
//!
//! ```text
//! buffer 0: 65536 bytes at 0        buffer 0: 65536 bytes at 0
//! buffer 1: 65536 bytes at 0   =>   buffer 1: 65536 bytes at 0       buffer 0 is not read any more
//! buffer 2: 65536 bytes at 0        buffer 2: 65536 bytes at 65536   while buffer 1 is
//! ```
//!
//! May assume that a buffer is stored to and read in one block, so that it is alive between its first and its last access
//! in the order of the text. Guarantees that two buffers share no place while both are alive.

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
    let mut lives: Vec<Option<(usize, usize)>> = vec![None; kernel.buffers.len()];
    let func = kernel.func();
    for (at, i) in walk::insts(func).into_iter().enumerate() {
        let (reads, writes) = touched(&func.insts[i]);
        for b in reads.into_iter().chain(writes) {
            if let Some(life) = lives.get_mut(b) {
                *life = Some((life.map_or(at, |l| l.0), at));
            }
        }
    }
    let mut placed: Vec<(usize, usize, u32, u32)> = vec![];
    let mut end = 0;
    for (b, life) in lives.iter().enumerate() {
        let (Some((first, last)), Some(buffer)) = (*life, kernel.buffers.get_mut(b)) else { continue };
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
