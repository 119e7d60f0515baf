//! Recognizes numbers that LLVM knows to be uniform, so that branches on them need no proof: arguments of the kernel, counters
//! of loops, and what is computed from these.

use inkwell::values::{BasicValue, InstructionOpcode, InstructionValue, IntValue, Operand};

use crate::emit::Emit;

/// The most instructions of an expression that are looked at.
const MOST: u32 = 32;

/// Returns true if LLVM knows that a number is uniform.
pub(super) fn is_known<'c>(e: &Emit<'_, 'c>, x: IntValue<'c>) -> bool {
    is_uniform(e, x, &mut MOST.clone())
}

fn is_uniform<'c>(e: &Emit<'_, 'c>, x: IntValue<'c>, left: &mut u32) -> bool {
    // A constant, or an argument.
    let Some(inst) = x.as_instruction_value() else { return true };
    if e.counters.contains(&x) {
        return true;
    }
    *left = left.saturating_sub(1);
    *left > 0
        && match inst.get_opcode() {
            InstructionOpcode::Add
            | InstructionOpcode::Sub
            | InstructionOpcode::Mul
            | InstructionOpcode::And
            | InstructionOpcode::Or
            | InstructionOpcode::Xor
            | InstructionOpcode::Shl
            | InstructionOpcode::LShr
            | InstructionOpcode::AShr
            | InstructionOpcode::ICmp
            | InstructionOpcode::Select
            | InstructionOpcode::Trunc
            | InstructionOpcode::SExt
            | InstructionOpcode::ZExt => {
                let mut operands = inst.get_operands();
                operands.all(|o| matches!(o, Some(Operand::Value(v)) if v.is_int_value() && is_uniform(e, v.into_int_value(), left)))
            }
            InstructionOpcode::Call => is_scalar_register(inst),
            _other => false,
        }
}

/// Returns true for the intrinsics whose result is in a scalar register.
fn is_scalar_register(call: InstructionValue<'_>) -> bool {
    let callee = call.get_num_operands().checked_sub(1).and_then(|last| call.get_operand(last));
    let Some(Operand::Value(callee)) = callee else { return false };
    let name = callee.into_pointer_value().get_name().to_string_lossy().into_owned();
    name.starts_with("llvm.amdgcn.readfirstlane") || name.starts_with("llvm.amdgcn.workgroup.id")
}
