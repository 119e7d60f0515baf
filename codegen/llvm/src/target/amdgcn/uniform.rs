//! Recognizes numbers that LLVM knows to be uniform, so that branches on them need no proof: arguments of the kernel, counters
//! of loops, and what is computed from these.

use std::collections::HashSet;

use inkwell::values::{BasicValue, InstructionOpcode, InstructionValue, IntValue, Operand};

use crate::emit::Emit;

/// The most instructions of an expression that are looked at.
const MOST: usize = 128;
/// The intrinsics of two numbers that scalar units have.
const EXTREMES: [&str; 4] = ["llvm.smin", "llvm.smax", "llvm.umin", "llvm.umax"];

/// Returns true if LLVM knows that a number is uniform.
pub(super) fn is_known<'c>(e: &Emit<'_, 'c>, x: IntValue<'c>) -> bool {
    is_uniform(e, x, &mut HashSet::new())
}

fn is_uniform<'c>(e: &Emit<'_, 'c>, x: IntValue<'c>, seen: &mut HashSet<IntValue<'c>>) -> bool {
    // A constant, or an argument.
    let Some(inst) = x.as_instruction_value() else { return true };
    if e.counters.contains(&x) {
        return true;
    }
    // What has been seen is uniform, or its user is not.
    !seen.insert(x)
        || seen.len() <= MOST
            && match inst.get_opcode() {
                InstructionOpcode::Add
                | InstructionOpcode::Sub
                | InstructionOpcode::Mul
                | InstructionOpcode::SDiv
                | InstructionOpcode::UDiv
                | InstructionOpcode::SRem
                | InstructionOpcode::URem
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
                | InstructionOpcode::ZExt => inst.get_operands().all(|o| is_uniform_operand(e, o, seen)),
                InstructionOpcode::Call => {
                    let name = callee(inst);
                    if EXTREMES.iter().any(|f| name.starts_with(f)) {
                        return (0..2).all(|n| is_uniform_operand(e, inst.get_operand(n), seen));
                    }
                    is_scalar_register(&name)
                }
                _other => false,
            }
}

fn is_uniform_operand<'c>(
    e: &Emit<'_, 'c>,
    operand: Option<Operand<'c>>,
    seen: &mut HashSet<IntValue<'c>>,
) -> bool {
    matches!(operand, Some(Operand::Value(v)) if v.is_int_value() && is_uniform(e, v.into_int_value(), seen))
}

/// The name of the function that an instruction calls.
fn callee(call: InstructionValue<'_>) -> String {
    let callee = call.get_num_operands().checked_sub(1).and_then(|last| call.get_operand(last));
    let Some(Operand::Value(callee)) = callee else { return String::new() };
    callee.into_pointer_value().get_name().to_string_lossy().into_owned()
}

/// Returns true for the intrinsics whose result is in a scalar register.
fn is_scalar_register(name: &str) -> bool {
    name.starts_with("llvm.amdgcn.readfirstlane") || name.starts_with("llvm.amdgcn.workgroup.id")
}
