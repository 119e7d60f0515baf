//! Owns what instructions do to shared memory, for those who decide where it lies and who waits.
//!
//! May assume nothing: attributes that are missing name no buffer. Guarantees that every access is listed.

use tk_ops::{MachineOp, Op};
use tk_tile::{Inst, ValueId};

/// The buffers that an instruction names, in the order of its attributes.
fn named(inst: &Inst) -> Vec<Option<usize>> {
    let list = inst.attrs.int("buffer").map(|b| vec![b]);
    let list = list.unwrap_or_else(|| inst.attrs.ints("buffers").unwrap_or(&[]).to_vec());
    list.iter().map(|b| usize::try_from(*b).ok()).collect()
}

/// The pieces of each buffer that an instruction names: 1 where it is no ring.
pub fn slots(inst: &Inst) -> Vec<(usize, u32)> {
    let slots = inst.attrs.ints("slots").unwrap_or(&[]).iter().copied().chain(std::iter::repeat(1));
    let pieces = |n: i64| u32::try_from(n).unwrap_or(1).max(1);
    named(inst).into_iter().zip(slots).filter_map(|(b, n)| Some((b?, pieces(n)))).collect()
}

/// The number of the piece that an instruction accesses, if one of its buffers is a ring.
pub fn slot(inst: &Inst) -> Option<ValueId> {
    inst.attrs.ints("slots").and_then(|_| inst.operands.last().copied())
}

/// The operands of an instruction but the number of a piece.
pub fn plain_operands(inst: &Inst) -> &[ValueId] {
    match (slot(inst), inst.operands.split_last()) {
        (Some(_), Some((_, rest))) => rest,
        (None, _) | (_, None) => &inst.operands,
    }
}

/// Whether an instruction adds to what others may add to at the same time.
pub fn is_addition(inst: &Inst) -> bool {
    inst.op == Op::Machine(MachineOp::SharedAdd)
}

/// The buffers that an instruction reads and writes.
pub fn touched(inst: &Inst) -> (Vec<usize>, Vec<usize>) {
    let Op::Machine(op) = inst.op else { return (vec![], vec![]) };
    let buffers = named(inst).into_iter().flatten().collect();
    match op {
        MachineOp::SharedStore | MachineOp::SharedScatter | MachineOp::AsyncCopy => (vec![], buffers),
        MachineOp::SharedLoad | MachineOp::SharedGather | MachineOp::SharedRank | MachineOp::SharedDot => {
            (buffers, vec![])
        }
        // Atomic additions of several threads may follow each other without waiting, but nothing else beside them.
        MachineOp::SharedAdd => (vec![], buffers),
        MachineOp::Convert | MachineOp::Barrier | MachineOp::AsyncCommit | MachineOp::AsyncWait => {
            (vec![], vec![])
        }
    }
}
