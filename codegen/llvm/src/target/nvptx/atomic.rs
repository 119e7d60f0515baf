//! Emits atomic operations of NVIDIA GPUs: one instruction where it exists, a CAS loop otherwise.
//!
//! Requires addresses that are multiples of the size of an element. Guarantees the interpreter's result in memory, with
//! one exception: `add` of f32 is the instruction, which flushes subnormal numbers to zero.

use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValueEnum, IntValue};
use tk_ops::{AtomicOp, DType};

use super::{Kind, Nvptx};
use crate::emit::value::word;
use crate::emit::{Emit, Res, bug};
use crate::target::Atomic;
use crate::target::cas_loop::{Swaps, bits, code, element};

/// The implementation of an operation on a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// An instruction of this name that takes the value: `add.u32`.
    Instruction(&'static str),
    /// `cas` on as many bits as the type has.
    Cas,
    /// A plain load or store with an order.
    Access,
    /// A CAS loop.
    Loop,
}

/// The implementation of each operation and type. Instructions are those of PTX 7.0, which `sm_80` has, and `add` of
/// bf16, which came later.
fn form(op: AtomicOp, d: DType, has_bf16_add: bool) -> Form {
    let (bits, signed) = (bits(d), d.is_signed());
    let integer = |narrow: [&'static str; 2]| match bits {
        32 => narrow.first().map_or(Form::Loop, |n| Form::Instruction(n)),
        64 => narrow.last().map_or(Form::Loop, |n| Form::Instruction(n)),
        _ => Form::Loop,
    };
    match op {
        AtomicOp::Load | AtomicOp::Store => Form::Access,
        AtomicOp::Cas if bits >= 16 => Form::Cas,
        AtomicOp::Cas => Form::Loop,
        AtomicOp::Xchg => integer(["exch.b32", "exch.b64"]),
        AtomicOp::Add => match d {
            DType::F16 => Form::Instruction("add.noftz.f16"),
            DType::BF16 if has_bf16_add => Form::Instruction("add.noftz.bf16"),
            DType::F32 => Form::Instruction("add.f32"),
            DType::F64 => Form::Instruction("add.f64"),
            DType::I32 | DType::U32 | DType::I64 | DType::U64 => integer(["add.u32", "add.u64"]),
            DType::I8 | DType::U8 | DType::I16 | DType::U16 | DType::BF16 => Form::Loop,
            DType::Bool
            | DType::F8E4M3
            | DType::F8E5M2
            | DType::F8E4M3FNUZ
            | DType::F8E5M2FNUZ
            | DType::E2M1
            | DType::E8M0 => Form::Loop,
        },
        AtomicOp::Max if d.is_int() && signed => integer(["max.s32", "max.s64"]),
        AtomicOp::Max if d.is_int() => integer(["max.u32", "max.u64"]),
        AtomicOp::Min if d.is_int() && signed => integer(["min.s32", "min.s64"]),
        AtomicOp::Min if d.is_int() => integer(["min.u32", "min.u64"]),
        // The instructions do not support floats.
        AtomicOp::Max | AtomicOp::Min => Form::Loop,
        AtomicOp::And => integer(["and.b32", "and.b64"]),
        AtomicOp::Or => integer(["or.b32", "or.b64"]),
        AtomicOp::Xor => integer(["xor.b32", "xor.b64"]),
    }
}

/// Order and scope in PTX syntax: `acq_rel.gpu`.
fn semantics(a: &Atomic<'_, '_>) -> String {
    let order = match (a.op, a.order) {
        (_, "relaxed") => "relaxed",
        (AtomicOp::Load, _) => "acquire",
        (AtomicOp::Store, _) => "release",
        (_, other) => other,
    };
    format!("{order}.{}", scope(a))
}

fn scope(a: &Atomic<'_, '_>) -> &'static str {
    match a.scope {
        "block" => "cta",
        "system" => "sys",
        _ => "gpu",
    }
}

/// The constraint letter of a register of this many bits.
fn letter(bits: u32) -> &'static str {
    match bits {
        8 | 16 => "h",
        32 => "r",
        _ => "l",
    }
}

impl<'c> Nvptx<'c> {
    /// An atomic operation in device memory.
    pub(super) fn atomic_in_memory(&self, e: &Emit<'_, 'c>, a: &Atomic<'_, 'c>) -> Res<BasicValueEnum<'c>> {
        let form = form(a.op, a.dtype, e.kernel.options.spec.has_bf16_arithmetic);
        if form == Form::Loop {
            return self.swapped(e, a);
        }
        let (bits, how) = (bits(a.dtype), semantics(a));
        // A byte is moved in a register of 16 bits.
        let (register, letter) = (word(e.context, bits.max(16)), letter(bits));
        let zero: BasicValueEnum<'c> = register.const_zero().into();
        let value = || Ok::<_, crate::emit::Stop>(code(e, a.value, bits.max(16))?.into());
        let mut inputs: Vec<BasicValueEnum<'c>> = vec![a.address.into()];
        let (mut text, gives) = match form {
            Form::Access if a.op == AtomicOp::Load => (format!("ld.{how}.global.b{bits} $0, [$1];"), true),
            Form::Access => {
                inputs.push(value()?);
                (format!("st.{how}.global.b{bits} [$0], $1;"), false)
            }
            Form::Cas => {
                let Some(compare) = a.compare else { return bug("`cas` compares with something") };
                inputs.extend([code(e, compare, bits)?.into(), value()?]);
                (format!("atom.{how}.global.cas.b{bits} $0, [$1], $2, $3;"), true)
            }
            Form::Instruction(name) => {
                inputs.push(value()?);
                (format!("atom.{how}.global.{name} $0, [$1], $2;"), true)
            }
            Form::Loop => return bug("a loop is no instruction"),
        };
        let outputs: Vec<BasicTypeEnum<'c>> = if gives { vec![register.into()] } else { vec![] };
        let mut constraints: Vec<String> = outputs.iter().map(|_| format!("={letter}")).collect();
        constraints.push("l".into());
        constraints.extend(inputs.iter().skip(1).map(|_| letter.to_string()));
        if let Some(p) = a.predicate {
            text = format!("@${} {text}", outputs.len() + inputs.len());
            constraints.push("b".into());
            inputs.push(p.into());
            if gives {
                constraints.push("0".into());
                inputs.push(zero);
            }
        }
        let out = self.asm(e, &text, &constraints.join(","), &outputs, &inputs, Kind::Memory)?;
        match out.first() {
            Some(x) => element(e, a.dtype, x.into_int_value()),
            None => Ok(e.zero(Some(a.dtype))),
        }
    }
}

impl<'c> Swaps<'c> for Nvptx<'c> {
    fn swapped_bits(&self, element: u32) -> u32 {
        // `cas` does not support a byte.
        if element == 8 { 32 } else { element }
    }

    fn seen(
        &self,
        e: &Emit<'_, 'c>,
        a: &Atomic<'_, 'c>,
        address: IntValue<'c>,
        bits: u32,
    ) -> Res<IntValue<'c>> {
        let read = format!("ld.relaxed.{}.global.b{bits} $0, [$1];", scope(a));
        let constraints = format!("={},l", letter(bits));
        let ty = word(e.context, bits).into();
        Ok(self.one(e, &read, &constraints, ty, &[address.into()])?.into_int_value())
    }

    fn swap(
        &self,
        e: &Emit<'_, 'c>,
        a: &Atomic<'_, 'c>,
        address: IntValue<'c>,
        [old, new]: [IntValue<'c>; 2],
    ) -> Res<IntValue<'c>> {
        let bits = old.get_type().get_bit_width();
        let letter = letter(bits);
        let swap = format!("atom.{}.global.cas.b{bits} $0, [$1], $2, $3;", semantics(a));
        let constraints = format!("={letter},l,{letter},{letter}");
        let inputs = [address.into(), old.into(), new.into()];
        Ok(self.one(e, &swap, &constraints, old.get_type().into(), &inputs)?.into_int_value())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_an_instruction_is_one() {
        use Form::{Access, Cas, Instruction, Loop};
        let of = |op, d| form(op, d, true);
        assert_eq!(of(AtomicOp::Add, DType::I64), Instruction("add.u64"));
        assert_eq!(of(AtomicOp::Max, DType::I32), Instruction("max.s32"));
        assert_eq!(of(AtomicOp::Max, DType::U64), Instruction("max.u64"));
        assert_eq!(of(AtomicOp::Xchg, DType::F32), Instruction("exch.b32"));
        assert_eq!(of(AtomicOp::Add, DType::BF16), Instruction("add.noftz.bf16"));
        assert_eq!(form(AtomicOp::Add, DType::BF16, false), Loop);
        assert_eq!([DType::F32, DType::U16, DType::I8].map(|d| of(AtomicOp::Min, d)), [Loop; 3]);
        assert_eq!([DType::U8, DType::F16].map(|d| of(AtomicOp::Cas, d)), [Loop, Cas]);
        assert_eq!([DType::Bool, DType::F64].map(|d| of(AtomicOp::Load, d)), [Access; 2]);
    }
}
