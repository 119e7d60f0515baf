//! Emits matrix instructions of AMD GPUs: MFMA of CDNA, WMMA of RDNA.

use inkwell::types::{BasicType, BasicTypeEnum};
use inkwell::values::{BasicValue, BasicValueEnum, InstructionOpcode, IntValue};
use tk_gpu::target::mma::{FragmentForm, MmaInstruction};
use tk_ops::DType;

use super::Amdgcn;
use crate::emit::value::vector_of;
use crate::emit::{Emit, Res, bug};
use crate::target::Space;
use crate::target::request::MmaRequest;

/// Log2 of the rows and elements along K of the oldest instructions, whose names have no dot before the type.
const SHORT: u32 = 8;

/// Returns true for an instruction that GPUs before CDNA3 have, or whose operands are as long.
fn is_old(matrix: &MmaInstruction) -> bool {
    matrix.form == FragmentForm::Mfma && matrix.m + matrix.k <= SHORT
}

/// The intrinsic of an instruction, without `llvm.amdgcn.`.
fn name(matrix: &MmaInstruction, [left, right]: [DType; 2]) -> String {
    let sum = match matrix.acc {
        DType::F64 => "f64",
        DType::I32 => "i32",
        _ => "f32",
    };
    let wmma = matrix.form != FragmentForm::Mfma;
    let old = is_old(matrix);
    let narrow = |d: DType| match d {
        DType::F8E4M3 | DType::F8E4M3FNUZ => Some("fp8"),
        DType::F8E5M2 | DType::F8E5M2FNUZ => Some("bf8"),
        _ => None,
    };
    let types = match (left, narrow(left).zip(narrow(right))) {
        (_, Some((left, right))) => format!(".{left}.{right}"),
        (DType::F16, _) if old => "f16".to_string(),
        (DType::BF16, _) if old => "bf16.1k".to_string(),
        (DType::F32, _) => "f32".to_string(),
        (DType::F64, _) => "f64".to_string(),
        (DType::F16, _) => ".f16".to_string(),
        (DType::BF16, _) => ".bf16".to_string(),
        (_, _) if wmma => ".iu8".to_string(),
        (_, _) if old => "i8".to_string(),
        (_, _) => ".i8".to_string(),
    };
    let [m, n, k] = [matrix.m, matrix.n, matrix.k].map(|bits| 1 << bits);
    format!("{}.{sum}.{m}x{n}x{k}{types}", if wmma { "wmma" } else { "mfma" })
}

impl<'c> Amdgcn<'c> {
    /// `ds_read_b64_tr_b16`, and `ds_read_b64_tr_b8`.
    pub(super) fn transposed_words(
        &self,
        e: &Emit<'_, 'c>,
        (address, offset): (IntValue<'c>, i64),
        of_element: usize,
    ) -> Res<Vec<IntValue<'c>>> {
        let pointer = self.pointer(e, Space::Shared, address, offset)?;
        let (name, ty) = match of_element {
            1 => ("llvm.amdgcn.ds.read.tr8.b64", e.i32().vec_type(2)),
            _two => ("llvm.amdgcn.ds.read.tr16.b64", e.context.i16_type().vec_type(4)),
        };
        let read = self.given(e, name, &[ty.into()], &[pointer.into()])?;
        if let Some(inst) = read.as_instruction_value() {
            self.reads_nothing_direct(e, inst)?;
        }
        let words = e.builder.build_bit_cast(read, e.i32().vec_type(2), "")?.into_vector_value();
        let word = |i| Ok(e.builder.build_extract_element(words, e.int(i), "")?.into_int_value());
        (0..2).map(word).collect()
    }

    /// An element of an accumulator of MFMA in a register that an instruction can read two of: for stores to shared memory.
    /// LLVM 19 merges two such stores into `ds_write2_b32`, whose operands it then leaves in accumulator registers, which
    /// its verifier rejects.
    pub(super) fn out_of_accumulators(
        &self,
        e: &Emit<'_, 'c>,
        x: BasicValueEnum<'c>,
    ) -> Res<BasicValueEnum<'c>> {
        let spec = e.kernel.options.spec;
        let mfma = spec.matrices.iter().any(|m| m.form == FragmentForm::Mfma);
        // Of an instruction, or of a loop.
        let element = x.as_instruction_value().is_some_and(|i| {
            matches!(i.get_opcode(), InstructionOpcode::ExtractElement | InstructionOpcode::Phi)
        });
        let word = match x {
            BasicValueEnum::FloatValue(x) => x.get_type() == e.context.f32_type(),
            BasicValueEnum::IntValue(x) => x.get_type() == e.i32(),
            _ => false,
        };
        if !mfma || !element || !word {
            return Ok(x);
        }
        let ty = x.get_type();
        let code = e.context.create_inline_asm(
            ty.fn_type(&[ty.into()], false),
            String::new(),
            "=v,0".to_string(),
            false,
            false,
            None,
            false,
        );
        let call = e.builder.build_indirect_call(ty.fn_type(&[ty.into()], false), code, &[x.into()], "")?;
        call.try_as_basic_value().basic().map_or_else(|| bug("a value was lost"), Ok)
    }

    /// The words of an operand in the type of the instruction.
    fn operand(
        &self,
        e: &Emit<'_, 'c>,
        matrix: &MmaInstruction,
        dtype: DType,
        words: &[BasicValueEnum<'c>],
    ) -> Res<BasicValueEnum<'c>> {
        let elements = (words.len() as u32) << matrix.packed();
        let ty: BasicTypeEnum<'c> = match dtype {
            DType::F16 => vector_of(e.context.f16_type().into(), elements)?.into(),
            DType::BF16 if matrix.form == FragmentForm::Mfma && !is_old(matrix) => {
                vector_of(e.context.bf16_type().into(), elements)?.into()
            }
            DType::BF16 => vector_of(e.context.i16_type().into(), elements)?.into(),
            DType::F32 => e.context.f32_type().into(),
            DType::F64 => e.context.f64_type().into(),
            _ => match words.len() {
                1 => e.i32().into(),
                2 if matrix.form == FragmentForm::Mfma => e.i64().into(),
                n => vector_of(e.i32().into(), n as u32)?.into(),
            },
        };
        let whole = match words {
            [one] => *one,
            several => {
                let Some(first) = several.first() else { return bug("an operand of nothing") };
                let mut vector = vector_of(first.get_type(), several.len() as u32)?.get_poison();
                for (i, x) in several.iter().enumerate() {
                    vector = e.builder.build_insert_element(vector, *x, e.int(i as u32), "")?;
                }
                vector.into()
            }
        };
        Ok(if whole.get_type() == ty { whole } else { e.builder.build_bit_cast(whole, ty, "")? })
    }

    pub(super) fn matrix_product(
        &self,
        e: &Emit<'_, 'c>,
        product: &MmaRequest,
        operands: [&[BasicValueEnum<'c>]; 2],
        acc: &[BasicValueEnum<'c>],
    ) -> Res<Vec<BasicValueEnum<'c>>> {
        let ([a, b], Some(first)) = (operands, acc.first()) else { return bug("a product of nothing") };
        let [x, y] = product.operands;
        let (a, b) = (self.operand(e, &product.matrix, x, a)?, self.operand(e, &product.matrix, y, b)?);
        let ty = vector_of(first.get_type(), acc.len() as u32)?;
        let mut c = ty.get_poison();
        for (i, sum) in acc.iter().enumerate() {
            c = e.builder.build_insert_element(c, *sum, e.int(i as u32), "")?;
        }
        let c: BasicValueEnum<'c> = c.into();
        let bit = |on: bool| BasicValueEnum::from(e.context.bool_type().const_int(on.into(), false));
        let args = match (product.matrix.form, x.is_int()) {
            (FragmentForm::Wmma | FragmentForm::TransposedWmma | FragmentForm::SplitWmma, true) => {
                vec![bit(x.is_signed()), a, bit(y.is_signed()), b, c, bit(false)]
            }
            (FragmentForm::Wmma | FragmentForm::TransposedWmma | FragmentForm::SplitWmma, false) => {
                vec![a, b, c]
            }
            // No broadcast or permutation of the operands.
            (FragmentForm::Mfma | FragmentForm::Quads, _) => {
                let none = e.int(0).into();
                vec![a, b, c, none, none, none]
            }
        };
        let name = format!("llvm.amdgcn.{}", name(&product.matrix, [x, y]));
        let out = self.given(e, &name, &[ty.into(), a.get_type()], &args)?.into_vector_value();
        let one = |i| Ok(e.builder.build_extract_element(out, e.int(i as u32), "")?);
        (0..acc.len()).map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use tk_gpu::target::mma::{CDNA2, CDNA3, CDNA4, RDNA3, RDNA4};

    use super::*;

    #[test]
    fn every_instruction_has_an_intrinsic() {
        for m in [CDNA2, CDNA3, CDNA4, RDNA3, RDNA4].into_iter().flatten() {
            for (a, b) in m.operands.iter().flat_map(|a| m.operands.iter().map(move |b| (*a, *b))) {
                let name = format!("llvm.amdgcn.{}", name(m, [a, b]));
                assert!(inkwell::intrinsics::Intrinsic::find(&name).is_some(), "{name}");
            }
        }
    }
}
