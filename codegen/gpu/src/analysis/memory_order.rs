//! Decides which operations order memory.

use tk_ops::{ControlOp, Op};

/// Returns true if reads of memory must not move across an operation: it orders memory, or execution may not continue
/// after it.
pub fn orders_memory(op: Op) -> bool {
    matches!(
        op,
        Op::Atomic(_)
            | Op::Control(
                ControlOp::GridBarrier | ControlOp::GlobalTimer | ControlOp::InlineAsm | ControlOp::Assert
            )
    )
}
