//! Owns shared memory over time: places of buffers, and where threads wait for each other.
//!
//! May assume that a buffer is stored to and read in one block. Guarantees that two buffers share no place while both
//! are alive, and that between an access of one thread and an access of another to the same place, one of which writes,
//! there is a barrier.

use tk_ops::{ControlOp, MachineOp, Op};
use tk_tile::{Attrs, BlockId, FuncId, Inst, InstId, walk};

use crate::kernel::Kernel;

/// Up to here no place is used twice, so that nobody waits only because of that: 16 KiB leaves room for fourteen
/// programs on a multiprocessor of 228 KiB.
const SPARE: u32 = 16 << 10;
/// Where a buffer may begin: what the widest access needs.
const ALIGN: u32 = 16;

/// The buffers that an instruction reads and writes.
fn touched(inst: &Inst) -> (Vec<usize>, Vec<usize>) {
    let buffer =
        || inst.attrs.int("buffer").and_then(|b| usize::try_from(b).ok()).into_iter().collect::<Vec<_>>();
    let Op::Machine(op) = inst.op else { return (vec![], vec![]) };
    match op {
        MachineOp::SharedStore | MachineOp::SharedScatter => (vec![], buffer()),
        MachineOp::SharedLoad | MachineOp::SharedGather | MachineOp::SharedRank => (buffer(), vec![]),
        // Atomic additions of several threads may follow each other without waiting, but nothing else beside them.
        MachineOp::SharedAdd => (vec![], buffer()),
        MachineOp::SharedDot => {
            let list = inst.attrs.ints("buffers").unwrap_or(&[]);
            (list.iter().filter_map(|b| usize::try_from(*b).ok()).collect(), vec![])
        }
        MachineOp::Convert | MachineOp::Barrier => (vec![], vec![]),
    }
}

/// Gives every buffer its place.
pub fn allocate(kernel: &mut Kernel) {
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

/// Places touched since all threads met last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Pending {
    reads: Vec<(u32, u32)>,
    writes: Vec<(u32, u32)>,
    /// Whether the writes are additions, which need no order among themselves.
    adds: Vec<(u32, u32)>,
}

impl Pending {
    fn join(&mut self, o: &Pending) {
        for (a, b) in [(&mut self.reads, &o.reads), (&mut self.writes, &o.writes), (&mut self.adds, &o.adds)]
        {
            for range in b {
                if !a.contains(range) {
                    a.push(*range);
                }
            }
        }
    }
}

/// Puts barriers where they are needed.
pub fn barriers(kernel: &mut Kernel) {
    let body = kernel.func().body;
    let mut pending = Pending::default();
    Barriers { kernel }.block(body, &mut pending);
}

struct Barriers<'a> {
    kernel: &'a mut Kernel,
}

impl Barriers<'_> {
    fn range(&self, buffer: usize) -> Option<(u32, u32)> {
        self.kernel.buffers.get(buffer).map(|b| (b.offset, b.offset + b.bytes))
    }

    fn block(&mut self, block: BlockId, pending: &mut Pending) {
        let insts = std::mem::take(&mut self.kernel.module.funcs[FuncId(0)].blocks[block].insts);
        for i in insts {
            self.inst(block, i, pending);
            self.kernel.module.funcs[FuncId(0)].blocks[block].insts.push(i);
        }
    }

    fn inst(&mut self, block: BlockId, id: InstId, pending: &mut Pending) {
        let inst = self.kernel.func().insts[id].clone();
        match inst.op {
            Op::Machine(MachineOp::Barrier) => *pending = Pending::default(),
            // A loop may begin behind its own end.
            Op::Control(ControlOp::For | ControlOp::While) => {
                for _ in 0..2 {
                    let before = pending.clone();
                    inst.blocks.iter().for_each(|b| self.block(*b, pending));
                    pending.join(&before);
                }
            }
            Op::Control(ControlOp::If) => {
                let before = pending.clone();
                let mut after = before.clone();
                for b in &inst.blocks {
                    let mut arm = before.clone();
                    self.block(*b, &mut arm);
                    after.join(&arm);
                }
                *pending = after;
            }
            Op::Machine(op) => self.access(block, &inst, op, pending),
            Op::Elementwise(_)
            | Op::Create(_)
            | Op::Shape(_)
            | Op::Memory(_)
            | Op::Atomic(_)
            | Op::Reduce(_)
            | Op::Scan(_)
            | Op::Dot(_)
            | Op::Random(_)
            | Op::Control(_)
            | Op::Host(_) => {}
        }
    }

    fn access(&mut self, block: BlockId, inst: &Inst, op: MachineOp, pending: &mut Pending) {
        let (reads, writes) = touched(inst);
        let ranges = |list: &[usize]| list.iter().filter_map(|b| self.range(*b)).collect::<Vec<_>>();
        let (reads, writes) = (ranges(&reads), ranges(&writes));
        let meets = |list: &[(u32, u32)], r: &(u32, u32)| list.iter().any(|p| p.0 < r.1 && r.0 < p.1);
        let is_add = op == MachineOp::SharedAdd;
        let conflict = reads.iter().any(|r| meets(&pending.writes, r) || meets(&pending.adds, r))
            || writes.iter().any(|r| {
                meets(&pending.reads, r)
                    || meets(&pending.writes, r) && !self.same_store(r, pending)
                    || !is_add && meets(&pending.adds, r)
            });
        if conflict {
            let barrier = Inst {
                op: Op::Machine(MachineOp::Barrier),
                operands: vec![],
                attrs: Attrs::new(),
                blocks: vec![],
                results: vec![],
                loc: inst.loc,
            };
            self.kernel.module.funcs[FuncId(0)].add_inst(block, barrier, &[]);
            *pending = Pending::default();
        }
        pending.reads.extend(reads);
        if is_add { pending.adds.extend(writes) } else { pending.writes.extend(writes) }
    }

    /// Several stores to one buffer fill different places of it: `cat` and `join` do.
    fn same_store(&self, range: &(u32, u32), pending: &Pending) -> bool {
        let overlapping = pending.writes.iter().filter(|p| p.0 < range.1 && range.0 < p.1);
        let is_buffer = self.kernel.buffers.iter().any(|b| (b.offset, b.offset + b.bytes) == *range);
        is_buffer && overlapping.clone().count() > 0 && overlapping.clone().all(|p| p == range)
    }
}
