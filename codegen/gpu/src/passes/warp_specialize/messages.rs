//! Numbers that the producer takes from a counter, for itself and the consumers: such as that of the next tile.
//!
//! ```text
//! while n < all, n                           while n < all, n                  while n < all, n
//!   v1 = atomic_add p, 1                       v1 = atomic_add p, 1              ..
//!   shared_store v1 {buffer = 0}         =>    tma_load ..                       v2 = consumer_receive {buffer = 0}
//!   v2 = shared_load {buffer = 0}              producer_send v1 {buffer = 0}     yield v2
//!   ..                                         yield v1
//!   yield v2
//! ```
//!
//! Both sides pass a number on where it is used first, so the consumers need not wait for what the producer does before.
//! A pipeline of one stage: the producer is at most one number ahead.

use tk_tile::{BlockId, InstId, ValueId, walk};

use super::boxes::Known;
use super::slice::SlicePart;
use crate::ir::builder::Edit;
use crate::ir::kernel::{BARRIERS, Buffer, Kernel};
use crate::ir::op::{BufferRef, ConsumerReceive, GpuOp, Pipeline};
use crate::ir::shared_access::accesses;

/// A number that an atomic returns, and all threads read from shared memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    /// The block of all three instructions.
    pub block: BlockId,
    /// The atomic on a counter.
    pub atomic: InstId,
    /// Where its thread stores the number.
    pub store: InstId,
    /// Where all threads load it.
    pub load: InstId,
    /// The buffer between the two.
    pub buffer: usize,
}

/// The numbers of a kernel that a producer may take.
pub(super) fn messages(kernel: &Kernel, known: &Known) -> Vec<Message> {
    let func = kernel.func();
    let taken = &known.counters;
    if taken.is_empty() {
        return vec![];
    }
    let blocks: Vec<BlockId> = std::iter::once(func.body)
        .chain(walk::insts(func).into_iter().flat_map(|i| func.insts[i].blocks.clone()))
        .collect();
    let of = |atomic: InstId| {
        let result = func.insts[atomic].results.first()?;
        let all = walk::insts(func);
        let mut users = all.iter().copied().filter(|i| func.insts[*i].operands.contains(result));
        let (store, None) = (users.next()?, users.next()) else { return None };
        let Some(GpuOp::SharedStore(stored)) = GpuOp::of(&func.insts[store]) else { return None };
        let BufferRef { buffer, stages: None } = stored.buffer else { return None };
        let mut readers = all.iter().copied().filter(|i| *i != store && accesses(&func.insts[*i], buffer));
        let (load, None) = (readers.next()?, readers.next()) else { return None };
        let read = &func.insts[load];
        let same = read.results.first().is_some_and(|r| func.ty(*r) == func.ty(*result));
        if !matches!(GpuOp::of(read), Some(GpuOp::SharedLoad(_))) || !same {
            return None;
        }
        let holds = |b: &BlockId| [atomic, store, load].iter().all(|i| func.blocks[*b].insts.contains(i));
        Some(Message { block: blocks.iter().copied().find(holds)?, atomic, store, load, buffer })
    };
    taken.iter().copied().filter_map(of).collect()
}

impl Message {
    /// The instruction of its block before which it is passed on: the first that uses it, also inside, or the last one.
    pub(super) fn place(self, kernel: &Kernel) -> Option<InstId> {
        let func = kernel.func();
        let number = func.insts[self.load].results.first()?;
        let uses = |i: InstId| func.insts[i].operands.contains(number);
        let within =
            |i: InstId| func.insts[i].blocks.iter().any(|b| walk::insts_in(func, *b).into_iter().any(uses));
        let insts = &func.blocks[self.block].insts;
        insts.iter().copied().find(|i| uses(*i) || within(*i)).or(insts.last().copied())
    }

    /// A pipeline of one stage for it, whose number is in its buffer.
    pub(super) fn pipeline(self, kernel: &mut Kernel) -> Pipeline {
        kernel.buffers.get_mut(self.buffer).into_iter().for_each(|b| b.is_common = true);
        kernel.buffers.push(Buffer::common(BARRIERS));
        Pipeline { barriers: kernel.buffers.len() - 1, stages: 1, peers: 1 }
    }
}

/// The messages that a slice of the producer needs; `None` if the consumers would take other numbers from the same counter,
/// which the producer does not wait for.
pub(super) fn needed(
    kernel: &Kernel,
    known: &Known,
    messages: &[Message],
    slice: &SlicePart,
) -> Option<Vec<Message>> {
    let func = kernel.func();
    let needed: Vec<Message> = messages.iter().copied().filter(|m| slice.insts.contains(&m.load)).collect();
    let counter = |i: InstId| func.insts[i].operands.first().and_then(|v| known.roots.get(*v));
    let mut others = known.counters.clone();
    needed.iter().for_each(|m| _ = others.remove(&m.atomic));
    let shared = |i: &InstId| needed.iter().any(|m| counter(m.atomic) == counter(*i));
    (!others.iter().any(shared)).then_some(needed)
}

/// The consumers receive a number at `place` in `block`, instead of taking it.
pub(super) fn receive(
    edit: &mut Edit<'_>,
    message: Message,
    pipeline: Pipeline,
    block: BlockId,
    place: InstId,
) {
    let Message { atomic, store, load, buffer, .. } = message;
    let func = edit.func();
    let number: Vec<ValueId> = func.insts[load].results.clone();
    edit.loc = edit.kernel.func().insts[atomic].loc;
    for i in std::mem::take(&mut edit.func().blocks[block].insts) {
        if i == place {
            // The load becomes what receives the number, which keeps its name.
            let loc = edit.loc;
            let op = GpuOp::from(ConsumerReceive { pipeline, buffer });
            let func = edit.func();
            func.insts[load] = tk_tile::Inst { results: number.clone(), ..op.inst(vec![], loc) };
            func.blocks[block].insts.push(load);
        }
        if ![atomic, store, load].contains(&i) {
            edit.func().blocks[block].insts.push(i);
        }
    }
}
