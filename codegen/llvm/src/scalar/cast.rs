//! Emits `as`: the conversion between element types.
//!
//! Accepts any operand. Guarantees: integers keep the low bits, a float becomes an integer by truncation with
//! saturation (NaN is 0), everything that rounds does so to nearest even and once, fp8 saturates.

use inkwell::IntPredicate as P;
use inkwell::values::{BasicValueEnum, FloatValue, IntValue};
use tk_ops::dtype::DType;

use super::emit::{float, int};
use super::{Error, Scalars, Width};

impl<'c> Scalars<'_, 'c> {
    /// The element as another type. bool is no result type.
    ///
    /// Errors: a conversion to bool, or a value of another type than `from`.
    pub fn cast(&self, v: BasicValueEnum<'c>, from: DType, to: DType) -> Result<BasicValueEnum<'c>, Error> {
        if from == to {
            return Ok(v);
        }
        match from {
            DType::Bool => {
                let code = self.builder.build_int_z_extend(int(v)?, self.context.i8_type(), "")?;
                self.int_to(code, DType::U8, to)
            }
            DType::I8
            | DType::I16
            | DType::I32
            | DType::I64
            | DType::U8
            | DType::U16
            | DType::U32
            | DType::U64 => self.int_to(int(v)?, from, to),
            DType::F8E4M3 | DType::F8E5M2 if to == DType::F16 && self.converts_f8(from) => {
                Ok(self.f8_to_f16(int(v)?, from)?.into())
            }
            DType::F8E4M3
            | DType::F8E5M2
            | DType::F8E4M3FNUZ
            | DType::F8E5M2FNUZ
            | DType::F16
            | DType::BF16
            | DType::E2M1
            | DType::E8M0 => self.float_to(self.decode(v, from)?, Width::F32, to),
            DType::F32 => self.float_to(float(v)?, Width::F32, to),
            DType::F64 => self.float_to(float(v)?, Width::F64, to),
        }
    }

    /// The same bits as another type of that width.
    ///
    /// Instruction selection of LLVM 19 for NVPTX has no bit cast from f16 to bf16 or back, and `instcombine` makes one of
    /// two that go through an integer: there the integer goes through a move, which `ptxas` removes.
    pub(super) fn bitcast(&self, x: BasicValueEnum<'c>, to: DType) -> Result<BasicValueEnum<'c>, Error> {
        let ty = self.element_type(to);
        if to == DType::E2M1 {
            // The upper half of a byte is not part of it.
            let low = self.context.i8_type().const_int(0xf, false);
            return Ok(self.builder.build_and(int(x)?, low, "")?.into());
        }
        if !self.spec.has_ptx || !matches!(to, DType::F16 | DType::BF16) {
            return Ok(self.builder.build_bit_cast(x, ty, "")?);
        }
        let bits = self.builder.build_bit_cast(x, self.code_type(to), "")?;
        let same = self.assembly("mov.b16 $0, $1;", "=h,h", self.code_type(to), &[bits])?;
        Ok(self.builder.build_bit_cast(same, ty, "")?)
    }

    fn float_to(&self, x: FloatValue<'c>, width: Width, to: DType) -> Result<BasicValueEnum<'c>, Error> {
        let b = self.builder;
        Ok(match (to, width) {
            (DType::Bool, _) => return Err(Error::Operands("cast")),
            (
                DType::I8
                | DType::I16
                | DType::I32
                | DType::I64
                | DType::U8
                | DType::U16
                | DType::U32
                | DType::U64,
                _,
            ) => self.float_to_int(x, width, to)?.into(),
            (DType::F32, Width::F32) | (DType::F64, Width::F64) => x.into(),
            (DType::F32, Width::F64) => b.build_float_trunc(x, self.context.f32_type(), "")?.into(),
            (DType::F64, Width::F32) => b.build_float_ext(x, self.context.f64_type(), "")?.into(),
            (
                DType::F16
                | DType::BF16
                | DType::F8E4M3
                | DType::F8E5M2
                | DType::F8E4M3FNUZ
                | DType::F8E5M2FNUZ
                | DType::E2M1
                | DType::E8M0,
                Width::F32,
            ) => self.encode(x, to)?,
            (
                DType::F16
                | DType::BF16
                | DType::F8E4M3
                | DType::F8E5M2
                | DType::F8E4M3FNUZ
                | DType::F8E5M2FNUZ
                | DType::E2M1
                | DType::E8M0,
                Width::F64,
            ) => self.encode_f64(x, to)?,
        })
    }

    /// Truncates and saturates; NaN is 0.
    fn float_to_int(&self, x: FloatValue<'c>, width: Width, to: DType) -> Result<IntValue<'c>, Error> {
        let ty = self.code_type(to);
        if !self.spec.float_to_int_saturates {
            let name = if to.is_signed() { "llvm.fptosi.sat" } else { "llvm.fptoui.sat" };
            return int(self.call(name, &[ty.into(), x.get_type().into()], &[x.into()])?);
        }
        // One instruction saturates. It is inline assembly because LLVM rewrites the intrinsics of the same names
        // (`llvm.nvvm.f2ui.rz` and its kin) to `fptoui` and `fptosi`, which are poison out of range, and folds them.
        // NaN becomes the most negative value if either side has 64 bits.
        let (result, output) =
            if to.bits() > 32 { (self.context.i64_type(), "=l") } else { (self.context.i32_type(), "=r") };
        let (float_bits, input) = match width {
            Width::F32 => (32, "f"),
            Width::F64 => (64, "d"),
        };
        let sign = if to.is_signed() { 's' } else { 'u' };
        let text = format!("cvt.rzi.{sign}{}.f{float_bits} $0, $1;", result.get_bit_width());
        let mut r = self.assembly(&text, &format!("{output},{input}"), result, &[x.into()])?;
        if width == Width::F64 || to.bits() > 32 {
            let nan = self.is_nan(x)?;
            r = self.pick(nan, r.get_type().const_zero(), r)?;
        }
        if to.bits() >= 32 {
            return Ok(r);
        }
        let (lo, hi) = to.int_range().ok_or(Error::Operands("cast"))?;
        let limit = |v: i128| r.get_type().const_int(v as u64, true);
        let r = if to.is_signed() {
            let r = self.int_call("llvm.smax", &[r, limit(lo)])?;
            self.int_call("llvm.smin", &[r, limit(hi)])?
        } else {
            self.int_call("llvm.umin", &[r, limit(hi)])?
        };
        Ok(self.builder.build_int_truncate(r, ty, "")?)
    }

    fn int_to(&self, v: IntValue<'c>, from: DType, to: DType) -> Result<BasicValueEnum<'c>, Error> {
        let signed = from.is_signed();
        Ok(match to {
            DType::Bool => return Err(Error::Operands("cast")),
            DType::I8
            | DType::I16
            | DType::I32
            | DType::I64
            | DType::U8
            | DType::U16
            | DType::U32
            | DType::U64 => self.builder.build_int_cast_sign_flag(v, self.code_type(to), signed, "")?.into(),
            DType::F32 => self.int_to_float(v, signed, Width::F32)?.into(),
            DType::F64 => self.int_to_float(v, signed, Width::F64)?.into(),
            // The interpreter uses the nearest f64.
            DType::E8M0 => self.encode_f64(self.int_to_float(v, signed, Width::F64)?, to)?,
            DType::F16
            | DType::BF16
            | DType::F8E4M3
            | DType::F8E5M2
            | DType::F8E4M3FNUZ
            | DType::F8E5M2FNUZ
            | DType::E2M1
                if from.bits() <= 16 =>
            {
                self.encode(self.int_to_float(v, signed, Width::F32)?, to)?
            }
            DType::BF16 => self.long_to_bf16(v, signed)?,
            DType::F16
            | DType::F8E4M3
            | DType::F8E5M2
            | DType::F8E4M3FNUZ
            | DType::F8E5M2FNUZ
            | DType::E2M1 => {
                // Twice the largest f16 overflows every one of them, and has few enough bits for f32.
                let limit = |n: i64| v.get_type().const_int(n.cast_unsigned(), true);
                let v = if signed {
                    let v = self.int_call("llvm.smax", &[v, limit(-(1 << 17))])?;
                    self.int_call("llvm.smin", &[v, limit(1 << 17)])?
                } else {
                    self.int_call("llvm.umin", &[v, limit(1 << 17)])?
                };
                let v = self.builder.build_int_cast_sign_flag(v, self.context.i32_type(), true, "")?;
                self.encode(self.int_to_float(v, true, Width::F32)?, to)?
            }
        })
    }

    /// The nearest f32 or f64, ties to even.
    fn int_to_float(&self, v: IntValue<'c>, signed: bool, width: Width) -> Result<FloatValue<'c>, Error> {
        let ty = match width {
            Width::F32 => self.context.f32_type(),
            Width::F64 => self.context.f64_type(),
        };
        Ok(if signed {
            self.builder.build_signed_int_to_float(v, ty, "")?
        } else {
            self.builder.build_unsigned_int_to_float(v, ty, "")?
        })
    }

    /// A 32-bit or 64-bit integer to bf16, rounded once. A large one is too long for the intermediate float: its lowest
    /// bits, which only tell on which side of a tie it is, are combined into one.
    fn long_to_bf16(&self, v: IntValue<'c>, signed: bool) -> Result<BasicValueEnum<'c>, Error> {
        let b = self.builder;
        let ty = v.get_type();
        // Magnitudes below 2^exact are unchanged, and the `low` bits of others are combined, so that f32 (24 bits) or
        // f64 (53) represents the result. A tie of bf16 is a multiple of 2^(exact - 8), far above them.
        let (exact, low, width) =
            if ty.get_bit_width() == 32 { (24, 9, Width::F32) } else { (40, 12, Width::F64) };
        let number = |v: u64| ty.const_int(v, false);
        let small = if signed {
            let moved = b.build_int_add(v, number(1 << exact), "")?;
            self.compare(P::ULT, moved, number(1 << (exact + 1)))?
        } else {
            self.compare(P::ULT, v, number(1 << exact))?
        };
        let ones = number((1 << low) - 1);
        let rest = b.build_and(v, ones, "")?;
        let whole = b.build_xor(v, rest, "")?;
        let any = self.compare(P::NE, rest, number(0))?;
        let any = self.pick(any, number(1 << (low - 1)), number(0))?;
        let long = b.build_or(whole, any, "")?;
        let kept = self.pick(small, v, long)?;
        let x = self.int_to_float(kept, signed, width)?;
        match width {
            Width::F32 => self.encode(x, DType::BF16),
            Width::F64 => self.encode_f64(x, DType::BF16),
        }
    }
}
