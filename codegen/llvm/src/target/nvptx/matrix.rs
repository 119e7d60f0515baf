//! Emits matrix instructions of NVIDIA GPUs: `ldmatrix`, `mma.sync`, and the rounding that tf32 needs.

use inkwell::values::{BasicValueEnum, IntValue};
use tk_ops::DType;

use super::memory::{Parts, offset_text};
use super::{Kind, Nvptx};
use crate::emit::{Emit, Res, bug};
use crate::target::request::MmaRequest;

impl<'c> Nvptx<'c> {
    pub(super) fn ldmatrix(
        &self,
        e: &Emit<'_, 'c>,
        address: IntValue<'c>,
        offset: i64,
        matrices: u32,
        transposed: bool,
    ) -> Res<Vec<IntValue<'c>>> {
        let parts = Parts { count: matrices as usize, bits: 32 };
        let address = self.shared_address(e, address)?;
        let transposed = if transposed { ".trans" } else { "" };
        // A single register is a list, too.
        let list = parts.operands(0);
        let list = if parts.count == 1 { format!("{{{list}}}") } else { list };
        let place = offset_text(parts.count, offset);
        let text = format!("ldmatrix.sync.aligned.m8n8.x{matrices}{transposed}.shared.b16 {list}, {place};");
        let constraints = format!("{},r", vec!["=r"; parts.count].join(","));
        let outputs = vec![e.i32().into(); parts.count];
        let words = self.asm(e, &text, &constraints, &outputs, &[address.into()], Kind::Convergent)?;
        Ok(words.into_iter().map(BasicValueEnum::into_int_value).collect())
    }

    pub(super) fn stmatrix(
        &self,
        e: &Emit<'_, 'c>,
        (address, offset): (IntValue<'c>, i64),
        words: &[BasicValueEnum<'c>],
        transposed: bool,
    ) -> Res<()> {
        let trans = if transposed { ".trans" } else { "" };
        let parts = Parts { count: words.len(), bits: 32 };
        let (list, place) = (parts.operands(1), offset_text(0, offset));
        let text = format!("stmatrix.sync.aligned.m8n8.x{}{trans}.shared.b16 {place}, {list};", words.len());
        let constraints = format!("r{}", ",r".repeat(words.len()));
        let mut inputs: Vec<BasicValueEnum<'c>> = vec![self.shared_address(e, address)?.into()];
        inputs.extend(words);
        self.asm(e, &text, &constraints, &[], &inputs, Kind::Convergent).map(|_| ())
    }

    pub(super) fn mma(
        &self,
        e: &Emit<'_, 'c>,
        product: &MmaRequest,
        a: &[BasicValueEnum<'c>],
        b: &[BasicValueEnum<'c>],
        c: &[BasicValueEnum<'c>],
    ) -> Res<Vec<BasicValueEnum<'c>>> {
        if let Some(acc) = self.mma_intrinsic(e, product, [a, b, c])? {
            return Ok(acc);
        }
        let (name, sum) = (product.matrix.name, matrix_type(product.matrix.acc));
        let [x, y] = product.operands.map(|d| if d == DType::F32 { "tf32" } else { matrix_type(d) });
        let mut next = 0;
        let mut list = |count: usize| {
            next += count;
            let names: Vec<String> = (next - count..next).map(|i| format!("${i}")).collect();
            format!("{{{}}}", names.join(", "))
        };
        let lists = [c.len(), a.len(), b.len(), c.len()].map(&mut list).join(", ");
        let text = format!("mma.sync.aligned.{name}.row.col.{sum}.{x}.{y}.{sum} {lists};");
        let letter = |x: &BasicValueEnum<'c>| match x.get_type() {
            t if t == e.context.f32_type().into() => "f",
            t if t == e.context.f64_type().into() => "d",
            _ => "r",
        };
        let outputs = c.iter().map(|x| format!("={}", letter(x)));
        let inputs: Vec<BasicValueEnum<'c>> = [a, b, c].concat();
        let constraints: Vec<String> = outputs.chain(inputs.iter().map(|x| letter(x).to_string())).collect();
        let types: Vec<_> = c.iter().map(|x| x.get_type()).collect();
        self.asm(e, &text, &constraints.join(","), &types, &inputs, Kind::WgmmaOperands)
    }

    pub(super) fn round_to_tf32(&self, e: &Emit<'_, 'c>, x: IntValue<'c>) -> Res<BasicValueEnum<'c>> {
        let x = e.builder.build_bit_cast(x, e.context.f32_type(), "")?;
        let out = self.asm(e, "cvt.rna.tf32.f32 $0, $1;", "=r,f", &[e.i32().into()], &[x], Kind::Pure)?;
        match out.first() {
            Some(x) => Ok(*x),
            None => bug("a conversion gave nothing"),
        }
    }
}

/// The PTX name of a type in matrix instructions.
pub(super) fn matrix_type(d: DType) -> &'static str {
    match d {
        DType::F32 => "f32",
        DType::F16 => "f16",
        DType::BF16 => "bf16",
        DType::F64 => "f64",
        DType::F8E4M3 => "e4m3",
        DType::F8E5M2 => "e5m2",
        DType::I8 => "s8",
        DType::U8 => "u8",
        DType::I32 => "s32",
        DType::Bool
        | DType::I16
        | DType::I64
        | DType::U16
        | DType::U32
        | DType::U64
        | DType::F8E4M3FNUZ
        | DType::F8E5M2FNUZ
        | DType::E2M1
        | DType::E8M0 => "",
    }
}
