//! Recognizes numbers that LLVM or `ptxas` knows to be uniform, so that branches on them need no proof: arguments of the kernel,
//! counters of loops, and what is computed from these.

use std::collections::HashSet;

use inkwell::values::{BasicValue, InstructionOpcode, InstructionValue, IntValue, Operand, PhiValue};

use crate::emit::Emit;

/// The most instructions of an expression that are looked at.
const MOST: usize = 128;
/// The intrinsics of two numbers that scalar units have.
const EXTREMES: [&str; 4] = ["llvm.smin", "llvm.smax", "llvm.umin", "llvm.umax"];

/// What the scalar instructions of a target give.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScalarUnit {
    /// The beginnings of the names of intrinsics whose results are uniform.
    pub intrinsics: &'static [&'static str],
    /// Quotients of uniform numbers are known to be uniform, and not those by powers of two alone.
    pub divides: bool,
    /// What branches on uniform numbers leave is known to be uniform.
    pub joins: bool,
}

/// Returns true if a number is known to be uniform.
pub(super) fn is_known<'c>(e: &Emit<'_, 'c>, unit: ScalarUnit, x: IntValue<'c>) -> bool {
    is_uniform((e, unit), x, &mut HashSet::new())
}

fn is_uniform<'c>(
    (e, unit): (&Emit<'_, 'c>, ScalarUnit),
    x: IntValue<'c>,
    seen: &mut HashSet<IntValue<'c>>,
) -> bool {
    // A constant, or an argument.
    let Some(inst) = x.as_instruction_value() else { return true };
    if e.counters.contains(&x) {
        return true;
    }
    // What has been seen is uniform, or its user is not.
    !seen.insert(x)
        || seen.len() <= MOST
            && match inst.get_opcode() {
                InstructionOpcode::SDiv
                | InstructionOpcode::UDiv
                | InstructionOpcode::SRem
                | InstructionOpcode::URem
                    if !unit.divides && !is_by_power(inst) =>
                {
                    false
                }
                InstructionOpcode::Phi if unit.joins => {
                    let phi = PhiValue::try_from(inst).ok();
                    phi.is_some_and(|phi| {
                        phi.get_incomings()
                            .all(|(x, _)| x.is_int_value() && is_uniform((e, unit), x.into_int_value(), seen))
                    })
                }
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
                | InstructionOpcode::ZExt => {
                    inst.get_operands().all(|o| is_uniform_operand((e, unit), o, seen))
                }
                InstructionOpcode::Call => {
                    let name = callee(inst);
                    if EXTREMES.iter().any(|f| name.starts_with(f)) {
                        return (0..2).all(|n| is_uniform_operand((e, unit), inst.get_operand(n), seen));
                    }
                    unit.intrinsics.iter().any(|f| name.starts_with(f))
                }
                _other => false,
            }
}

/// Returns true for a division by a constant power of two, which becomes shifts.
fn is_by_power(division: InstructionValue<'_>) -> bool {
    let Some(Operand::Value(by)) = division.get_operand(1) else { return false };
    let by = by.into_int_value().get_sign_extended_constant();
    by.is_some_and(|by| by.unsigned_abs().is_power_of_two())
}

fn is_uniform_operand<'c>(
    of: (&Emit<'_, 'c>, ScalarUnit),
    operand: Option<Operand<'c>>,
    seen: &mut HashSet<IntValue<'c>>,
) -> bool {
    matches!(operand, Some(Operand::Value(v)) if v.is_int_value() && is_uniform(of, v.into_int_value(), seen))
}

/// The name of the function that an instruction calls.
fn callee(call: InstructionValue<'_>) -> String {
    let callee = call.get_num_operands().checked_sub(1).and_then(|last| call.get_operand(last));
    let Some(Operand::Value(callee)) = callee else { return String::new() };
    callee.into_pointer_value().get_name().to_string_lossy().into_owned()
}
