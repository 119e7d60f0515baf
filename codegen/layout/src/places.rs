//! Gives every buffer its place in shared memory.
//!
//! ```text
//! buffer 0: 65536 bytes at 0        buffer 0: 65536 bytes at 0
//! buffer 1: 65536 bytes at 0   =>   buffer 1: 65536 bytes at 0       buffer 0 is not read any more
//! buffer 2: 65536 bytes at 0        buffer 2: 65536 bytes at 65536   while buffer 1 is
//! ```
//!
//! A buffer is alive from its first to its last access in the order of the text, and as long as a loop runs in which only
//! some of its accesses stand. Guarantees that two buffers share no place while both are alive.

use tk_tile::flow::{Flow, flow};
use tk_tile::{BlockId, Func};

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
    let mut story = Story { touches: vec![vec![]; kernel.buffers.len()], ..Story::default() };
    story.block(kernel.func(), kernel.func().body);
    let lives = story.lives();
    let mut placed: Vec<(usize, usize, u32, u32)> = vec![];
    let mut end = 0;
    for (b, life) in lives.into_iter().enumerate() {
        let (Some((first, last)), Some(buffer)) = (life, kernel.buffers.get_mut(b)) else { continue };
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

/// When buffers are accessed, in the order of the text.
#[derive(Default)]
struct Story {
    now: usize,
    /// For each buffer.
    touches: Vec<Vec<usize>>,
    /// Where loops begin and end.
    loops: Vec<(usize, usize)>,
}

impl Story {
    fn block(&mut self, func: &Func, block: BlockId) {
        for i in &func.blocks[block].insts {
            let inst = &func.insts[*i];
            self.now += 1;
            let (reads, writes) = touched(inst);
            for b in reads.into_iter().chain(writes) {
                self.touches.get_mut(b).into_iter().for_each(|t| t.push(self.now));
            }
            let start = self.now;
            inst.blocks.iter().for_each(|b| self.block(func, *b));
            match flow(inst.op) {
                Flow::For | Flow::While => self.loops.push((start, self.now)),
                Flow::If | Flow::Plain | Flow::Elements | Flow::Expect => {}
            }
        }
    }

    /// From when to when each buffer is alive. Inner loops come first, so one that is extended extends around.
    fn lives(&self) -> Vec<Option<(usize, usize)>> {
        let life = |times: &Vec<usize>| {
            let mut life = (*times.first()?, *times.last()?);
            for (from, to) in &self.loops {
                let inside = times.iter().filter(|t| from < t && *t <= to).count();
                if (1..times.len()).contains(&inside) {
                    life = (life.0.min(*from), life.1.max(*to));
                }
            }
            Some(life)
        };
        self.touches.iter().map(life).collect()
    }
}
