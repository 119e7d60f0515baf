//! Owns what instructions do to shared memory, for those who decide where it lies and who waits.
//!
//! May assume nothing: attributes that are missing name no buffer. Guarantees that every access is listed.

use tk_ops::{MachineOp, Op};
use tk_tile::Inst;

/// Whether an instruction adds to what others may add to at the same time.
pub fn is_addition(inst: &Inst) -> bool {
    inst.op == Op::Machine(MachineOp::SharedAdd)
}

/// The buffers that an instruction reads and writes.
pub fn touched(inst: &Inst) -> (Vec<usize>, Vec<usize>) {
    let buffer =
        || inst.attrs.int("buffer").and_then(|b| usize::try_from(b).ok()).into_iter().collect::<Vec<_>>();
    let Op::Machine(op) = inst.op else { return (vec![], vec![]) };
    match op {
        MachineOp::SharedStore | MachineOp::SharedScatter => (vec![], buffer()),
        MachineOp::SharedLoad | MachineOp::SharedGather | MachineOp::SharedRank => (buffer(), vec![]),
        // Atomic additions of several threads may follow each other without waiting, but nothing else beside them.
        MachineOp::SharedAdd => (vec![], buffer()),
        MachineOp::SharedDot | MachineOp::Mma => {
            let list = inst.attrs.ints("buffers").unwrap_or(&[]);
            (list.iter().filter_map(|b| usize::try_from(*b).ok()).collect(), vec![])
        }
        MachineOp::Convert | MachineOp::Barrier => (vec![], vec![]),
    }
}
