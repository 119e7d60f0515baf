//! Emits `wgmma`: matrix instructions of warpgroups of NVIDIA GPUs.

use std::collections::BTreeSet;

use inkwell::values::{BasicValueEnum, IntValue};

use super::matrix::matrix_type;
use super::{Kind, Nvptx};
use crate::emit::{Emit, Res};
use crate::target::request::{OperandA, SharedOperand, WgmmaOperands};

/// The address bits in a descriptor, and the number of low bits that it omits.
const ADDRESS: u64 = 0x3FFFF;
const LEFT_OUT: u64 = 4;

/// The descriptor without the address: the stride between chunks of 16 bytes (16 where lines are whole, that between
/// swizzle atoms where neighbours are across K), the stride between groups of eight lines, and the swizzle (PTX manual,
/// "Matrix Descriptor Format").
pub fn descriptor(operand: &SharedOperand<'_>) -> u64 {
    let p = operand.swizzled;
    let leading = if p.across { u64::from(p.swizzle_atom) } else { 16 };
    let mode: u64 = match p.span {
        128 => 1,
        64 => 2,
        _ => 3,
    };
    (leading >> LEFT_OUT) << 16 | (u64::from(p.lines) >> LEFT_OUT) << 32 | mode << 62
}

/// Returns true for a constant 0, whose sign does not matter in a sum.
fn is_zero(x: &BasicValueEnum<'_>) -> bool {
    match x {
        BasicValueEnum::FloatValue(x) => x.get_constant().is_some_and(|(v, _)| v == 0.0),
        BasicValueEnum::IntValue(x) => x.get_zero_extended_constant() == Some(0),
        _ => false,
    }
}

/// Text that computes the descriptor of what is `bytes` after an operand, in the register `name`, and that descriptor.
fn moved(name: &str, operand: &str, bytes: i64) -> (String, String) {
    match bytes {
        0 => (String::new(), operand.to_string()),
        n => (format!("add.s64 {name}, {operand}, {};\n\t", n >> LEFT_OUT), name.to_string()),
    }
}

impl<'c> Nvptx<'c> {
    fn described(&self, e: &Emit<'_, 'c>, operand: &SharedOperand<'c>) -> Res<IntValue<'c>> {
        let (b, long) = (e.builder, e.context.i64_type());
        let address = self.shared_address(e, operand.address)?;
        let address = b.build_and(address, e.int(ADDRESS as u32), "")?;
        let address = b.build_right_shift(address, e.int(LEFT_OUT as u32), false, "")?;
        let address = b.build_int_z_extend(address, long, "")?;
        Ok(b.build_or(address, long.const_int(descriptor(operand), false), "")?)
    }

    pub(super) fn wgmma(
        &self,
        e: &Emit<'_, 'c>,
        what: &WgmmaOperands<'c>,
        acc: &[BasicValueEnum<'c>],
    ) -> Res<Vec<BasicValueEnum<'c>>> {
        let matrix = what.product.matrix;
        let count = acc.len();
        let letter = if acc.first().is_some_and(|x| x.is_float_value()) { "f" } else { "r" };
        // A product that adds to zeros does not read them: nothing has to write registers while others are in flight.
        let adds = !acc.iter().all(is_zero);
        let mut constraints: Vec<String> = vec![format!("=&{letter}"); count];
        let mut inputs = vec![];
        if adds {
            constraints = vec![format!("={letter}"); count];
            constraints.extend((0..count).map(|i| i.to_string()));
            inputs.extend_from_slice(acc);
        }
        let first = inputs.len() + count;
        let right = format!("${first}");
        inputs.push(self.described(e, &what.right)?.into());
        constraints.push("l".into());
        match &what.left {
            OperandA::Shared(operand) => {
                inputs.push(self.described(e, operand)?.into());
                constraints.push("l".into());
            }
            OperandA::Registers(words) => {
                inputs.extend(words);
                constraints.extend(words.iter().map(|_| "r".to_string()));
            }
        }
        let [x, y] = what.product.operands.map(matrix_type);
        let columns = what.columns();
        let depth = 1u32 << matrix.k;
        let sum = matrix_type(matrix.acc);
        let mut text = String::from("{\n\t.reg .pred p, q;\n\t.reg .b64 x, y;\n\tsetp.eq.b32 p, 0, 0;\n\t");
        text += if adds { "" } else { "setp.ne.b32 q, 0, 0;\n\t" };
        text += "wgmma.fence.sync.aligned;\n\t";
        let mut begun = BTreeSet::new();
        for step in &what.steps {
            let list = |from: usize, n: usize| {
                let names: Vec<String> = (from..from + n).map(|i| format!("${i}")).collect();
                format!("{{{}}}", names.join(", "))
            };
            let (add, b) = moved("y", &right, step.right);
            text += &add;
            let a = match &what.left {
                OperandA::Shared(_) => {
                    let (add, a) = moved("x", &format!("${}", first + 1), step.left);
                    text += &add;
                    a
                }
                OperandA::Registers(_) => list(first + 1 + step.left as usize, what.words()),
            };
            let d = list(step.accumulator, what.accumulators());
            let keeps = if begun.insert(step.accumulator) && !adds { "q" } else { "p" };
            text += &format!(
                "wgmma.mma_async.sync.aligned.m64n{columns}k{depth}.{sum}.{x}.{y} {d}, {a}, {b}, {keeps}"
            );
            // Operands keep their signs; 16-bit ones state whether neighbours are across K.
            if !matrix.acc.is_int() {
                text += ", 1, 1";
            }
            if matrix.bytes() == 2 {
                if let OperandA::Shared(operand) = &what.left {
                    text += &format!(", {}", u32::from(operand.swizzled.across));
                }
                text += &format!(", {}", u32::from(what.right.swizzled.across));
            }
            text += ";\n\t";
        }
        text += "wgmma.commit_group.sync.aligned;\n\t}";
        let types: Vec<_> = acc.iter().map(|x| x.get_type()).collect();
        self.asm(e, &text, &constraints.join(","), &types, &inputs, Kind::Convergent)
    }

    /// `ptxas` moves waits up past arithmetic, but not past an instruction whose predicate depends on these numbers: a sleep of no
    /// time, where their sum is the largest finite number.
    pub(super) fn never_before(&self, e: &Emit<'_, 'c>, values: &[BasicValueEnum<'c>]) -> Res<()> {
        if values.is_empty() || !values.iter().all(|x| x.get_type() == e.context.f32_type().into()) {
            return Ok(());
        }
        let adds: String = (1..values.len()).map(|n| format!("add.f32 sum, sum, ${n}; ")).collect();
        let text = format!(
            "{{ .reg .pred holds; .reg .f32 sum; mov.f32 sum, $0; {adds}setp.eq.f32 holds, sum, 0f7F7FFFFF; \
             @holds nanosleep.u32 0; }}"
        );
        let constraints = vec!["f"; values.len()].join(",");
        self.asm(e, &text, &constraints, &[], values, Kind::Convergent).map(|_| ())
    }

    /// The accumulators pass through the wait, so that no read of them moves before it.
    pub(super) fn wgmma_wait(
        &self,
        e: &Emit<'_, 'c>,
        pending: u32,
        acc: &[BasicValueEnum<'c>],
    ) -> Res<Vec<BasicValueEnum<'c>>> {
        let letter = if acc.first().is_some_and(|x| x.is_float_value()) { "f" } else { "r" };
        let outputs = vec![format!("={letter}"); acc.len()];
        let inputs = (0..acc.len()).map(|i| i.to_string());
        let constraints: Vec<String> = outputs.into_iter().chain(inputs).collect();
        let text = format!("wgmma.wait_group.sync.aligned {pending};");
        let types: Vec<_> = acc.iter().map(|x| x.get_type()).collect();
        self.asm(e, &text, &constraints.join(","), &types, acc, Kind::Convergent)
    }
}
