//! Which operations order memory.

use tk_ops::{ControlOp, Op};

/// Whether an operation minds on which side of it memory is read: it orders memory, or what stands behind it happens only
/// if it goes on.
pub fn orders_memory(op: Op) -> bool {
    matches!(
        op,
        Op::Atomic(_)
            | Op::Control(
                ControlOp::GridBarrier | ControlOp::GlobalTimer | ControlOp::InlineAsm | ControlOp::Assert
            )
    )
}
