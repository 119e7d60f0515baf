//! Emits conversions of narrow floats: their values in f32, and the one rounding to each type.
//!
//! Requires that the code of an `e2m1` has zeros above its four bits. Guarantees that decoding is exact, and that
//! encoding rounds to nearest even once with the limits of the language: f16 and bf16 overflow to infinity, fp8 and
//! `e2m1` saturate, NaN is preserved if the type has one.

use inkwell::types::{FloatType, IntType};
use inkwell::values::{BasicValueEnum, FloatValue, IntValue};
use inkwell::{FloatPredicate, IntPredicate as P};
use tk_ops::FloatFormat;
use tk_ops::dtype::DType;

use super::emit::{float, int};
use super::{Error, Scalars};

/// Mantissa bits of f32.
const MANTISSA: u32 = 23;
/// Bias of f32.
const BIAS: u32 = 127;
/// NaN in f32.
const NAN: u32 = 0x7fc0_0000;
/// Infinity in f32.
const INFINITY: u64 = 0x7f80_0000;

impl<'c> Scalars<'_, 'c> {
    fn i32(&self) -> IntType<'c> {
        self.context.i32_type()
    }

    fn f32(&self) -> FloatType<'c> {
        self.context.f32_type()
    }

    fn word(&self, v: u32) -> IntValue<'c> {
        self.i32().const_int(u64::from(v), false)
    }

    /// A code of a format of at most 16 bits.
    fn code(&self, v: u64) -> IntValue<'c> {
        self.i32().const_int(v, false)
    }

    /// Returns true if conversions of f16 and bf16 from and to f32 are instructions.
    fn converts(&self, d: DType) -> bool {
        d == DType::F16 && self.spec.has_f16_arithmetic || d == DType::BF16 && self.spec.has_bf16_fma
    }

    /// Returns true if conversions of an fp8 type are instructions; those of NVIDIA are for the types of OCP.
    pub(super) fn converts_f8(&self, d: DType) -> bool {
        matches!(d, DType::F8E4M3 | DType::F8E5M2) && self.spec.has_f8_conversion
    }

    /// The value of a narrow float in f32, exactly.
    pub(super) fn decode(&self, x: BasicValueEnum<'c>, d: DType) -> Result<FloatValue<'c>, Error> {
        if d == DType::F16 && self.converts(d) {
            return Ok(self.builder.build_float_ext(float(x)?, self.f32(), "")?);
        }
        if self.converts_f8(d) {
            let half = self.f8_to_f16(int(x)?, d)?;
            return Ok(self.builder.build_float_ext(half, self.f32(), "")?);
        }
        let code = int(self.builder.build_bit_cast(x, self.code_type(d), "")?)?;
        let code = self.builder.build_int_z_extend(code, self.i32(), "")?;
        if d == DType::BF16 {
            // The upper half of an f32. LLVM's conversion is not lowered before sm_90.
            let bits = self.builder.build_left_shift(code, self.word(16), "")?;
            return self.of_bits(bits, self.f32());
        }
        if d == DType::E8M0 {
            return self.decode_power(code);
        }
        let f = d.format().ok_or(Error::Operands("cast"))?;
        self.decode_format(code, &f)
    }

    /// 2^(code - 127); the code 255 is NaN.
    fn decode_power(&self, code: IntValue<'c>) -> Result<FloatValue<'c>, Error> {
        let power = self.builder.build_left_shift(code, self.word(MANTISSA), "")?;
        let first = self.compare(P::EQ, code, self.word(0))?;
        // 2^-127 is subnormal: half of the smallest normal value.
        let bits = self.pick(first, self.word(1 << (MANTISSA - 1)), power)?;
        let last = self.compare(P::EQ, code, self.word(0xff))?;
        let nan = self.word(NAN);
        let bits = self.pick(last, nan, bits)?;
        self.of_bits(bits, self.f32())
    }

    /// The magnitude is moved to the exponent and mantissa of f32; a product then changes the bias, which makes
    /// subnormal values normal as well.
    fn decode_format(&self, code: IntValue<'c>, f: &FloatFormat) -> Result<FloatValue<'c>, Error> {
        let b = self.builder;
        let size = b.build_and(code, self.word((1 << f.sign) - 1), "")?;
        let placed = b.build_left_shift(size, self.word(MANTISSA - f.mantissa), "")?;
        let factor = self.of_bits(self.word((2 * BIAS - f.bias) << MANTISSA), self.f32())?;
        let scaled = b.build_float_mul(self.of_bits(placed, self.f32())?, factor, "")?;
        let mut bits = self.bits(scaled, self.i32())?;
        if f.signed_zero && (f.nan != f.overflow || f.infinity.is_some()) {
            // All ones in the exponent; the rest of the mantissa distinguishes NaN from infinity. Without an infinity
            // the mantissa of NaN is not zero.
            let special = self.compare(P::UGT, size, self.code(f.largest))?;
            let ones = b.build_or(placed, self.i32().const_int(INFINITY, false), "")?;
            bits = self.pick(special, ones, bits)?;
        }
        let sign = b.build_and(code, self.word(1 << f.sign), "")?;
        let sign = b.build_left_shift(sign, self.word(31 - f.sign), "")?;
        let mut bits = b.build_or(bits, sign, "")?;
        if !f.signed_zero {
            let nan = self.compare(P::EQ, code, self.code(f.nan))?;
            bits = self.pick(nan, self.word(NAN), bits)?;
        }
        self.of_bits(bits, self.f32())
    }

    /// The narrow float nearest to an f32, ties to even.
    pub(super) fn encode(&self, x: FloatValue<'c>, d: DType) -> Result<BasicValueEnum<'c>, Error> {
        if self.converts(d) {
            let ty = if d == DType::F16 { self.context.f16_type() } else { self.context.bf16_type() };
            return Ok(self.builder.build_float_trunc(x, ty, "")?.into());
        }
        if self.converts_f8(d) {
            return Ok(self.f32_to_f8(x, d)?.into());
        }
        let bits = self.bits(x, self.i32())?;
        let code = match (d, d.format()) {
            (DType::E8M0, _) => self.encode_power(bits)?,
            (_, Some(f)) => self.encode_format(bits, &f)?,
            (_, None) => return Err(Error::Operands("cast")),
        };
        let code = self.builder.build_int_truncate(code, self.code_type(d), "")?;
        Ok(self.builder.build_bit_cast(code, self.element_type(d), "")?)
    }

    /// The code nearest to an f32 with these bits.
    fn encode_format(&self, bits: IntValue<'c>, f: &FloatFormat) -> Result<IntValue<'c>, Error> {
        let b = self.builder;
        let dropped = MANTISSA - f.mantissa;
        let size = b.build_and(bits, self.word(0x7fff_ffff), "")?;
        // Normal: half an ulp is added, minus one bit if the code is even, and the bias is changed.
        let odd = b.build_right_shift(size, self.word(dropped), false, "")?;
        let odd = b.build_and(odd, self.word(1), "")?;
        let near = b.build_int_add(size, odd, "")?;
        let near = b.build_int_add(near, self.word((1 << (dropped - 1)) - 1), "")?;
        let near = b.build_right_shift(near, self.word(dropped), false, "")?;
        let mut code = b.build_int_sub(near, self.word((BIAS - f.bias) << f.mantissa), "")?;
        if f.bias != BIAS {
            // Subnormal: next to this power of two, the ulp of f32 is the smallest value.
            let counter = self.word((BIAS + MANTISSA + 1 - f.bias - f.mantissa) << MANTISSA);
            let counted =
                b.build_float_add(self.of_bits(size, self.f32())?, self.of_bits(counter, self.f32())?, "")?;
            let counted = b.build_int_sub(self.bits(counted, self.i32())?, counter, "")?;
            let small = self.compare(P::ULT, size, self.word((BIAS + 1 - f.bias) << MANTISSA))?;
            code = self.pick(small, counted, code)?;
        }
        let large = self.compare(P::UGT, code, self.code(f.largest))?;
        let code = self.pick(large, self.code(f.overflow), code)?;
        let sign = b.build_right_shift(bits, self.word(31 - f.sign), false, "")?;
        let mut sign = b.build_and(sign, self.word(1 << f.sign), "")?;
        if !f.signed_zero {
            let zero = self.compare(P::EQ, code, self.word(0))?;
            sign = self.pick(zero, self.word(0), sign)?;
        }
        let code = b.build_or(code, sign, "")?;
        let nan = self.compare(P::UGT, size, self.i32().const_int(INFINITY, false))?;
        self.pick(nan, self.code(f.nan), code)
    }

    /// The code of the nearest power of two, ties to the even code; nonpositive numbers become the smallest.
    fn encode_power(&self, bits: IntValue<'c>) -> Result<IntValue<'c>, Error> {
        let b = self.builder;
        let odd = b.build_right_shift(bits, self.word(MANTISSA), false, "")?;
        let odd = b.build_and(odd, self.word(1), "")?;
        let near = b.build_int_add(bits, odd, "")?;
        let near = b.build_int_add(near, self.word((1 << (MANTISSA - 1)) - 1), "")?;
        let near = b.build_right_shift(near, self.word(MANTISSA), false, "")?;
        let code = self.int_call("llvm.umin", &[near, self.word(254)])?;
        // The subnormal values of f32 that are above 2^-127 by more than a half of it become 2^-126.
        let subnormal = self.compare(P::ULT, bits, self.word(1 << MANTISSA))?;
        let half = 1 << (MANTISSA - 1);
        let above = self.compare(P::UGT, bits, self.word(half + half / 2))?;
        let above = b.build_int_z_extend(above, self.i32(), "")?;
        let code = self.pick(subnormal, above, code)?;
        let positive = self.compare(P::SGE, bits, self.word(0))?;
        let code = self.pick(positive, code, self.word(0))?;
        let size = b.build_and(bits, self.word(0x7fff_ffff), "")?;
        let nan = self.compare(P::UGT, size, self.i32().const_int(INFINITY, false))?;
        self.pick(nan, self.word(0xff), code)
    }

    /// An f64 rounded to odd as f32: rounding it to a narrower float equals rounding the f64 itself.
    pub(super) fn f64_to_odd_f32(&self, x: FloatValue<'c>) -> Result<FloatValue<'c>, Error> {
        let b = self.builder;
        let near = b.build_float_trunc(x, self.f32(), "")?;
        let back = b.build_float_ext(near, self.context.f64_type(), "")?;
        // False for NaN, which remains unchanged.
        let inexact = self.compare_float(FloatPredicate::ONE, back, x)?;
        let back = self.float_call("llvm.fabs", &[back])?;
        let size = self.float_call("llvm.fabs", &[x])?;
        let away = self.compare_float(FloatPredicate::OGT, back, size)?;
        let bits = self.bits(near, self.i32())?;
        let away = b.build_int_z_extend(away, self.i32(), "")?;
        let toward = b.build_int_sub(bits, away, "")?;
        let odd = b.build_or(toward, self.word(1), "")?;
        let bits = self.pick(inexact, odd, bits)?;
        self.of_bits(bits, self.f32())
    }

    /// The narrow float nearest to an f64, ties to even, rounded once.
    pub(super) fn encode_f64(&self, x: FloatValue<'c>, d: DType) -> Result<BasicValueEnum<'c>, Error> {
        if d == DType::F16 && self.converts(d) {
            return Ok(self.builder.build_float_trunc(x, self.context.f16_type(), "")?.into());
        }
        self.encode(self.f64_to_odd_f32(x)?, d)
    }

    /// The name of an fp8 type in instructions.
    fn f8_name(d: DType) -> &'static str {
        if d == DType::F8E4M3 { "e4m3x2" } else { "e5m2x2" }
    }

    /// Converts with the instruction, which converts two at a time. It saturates as the language does.
    fn f32_to_f8(&self, x: FloatValue<'c>, d: DType) -> Result<IntValue<'c>, Error> {
        let text = format!("cvt.rn.satfinite.{}.f32 $0, $1, $2;", Self::f8_name(d));
        let other = self.f32().const_zero();
        let pair = self.assembly(&text, "=h,f,f", self.context.i16_type(), &[other.into(), x.into()])?;
        Ok(self.builder.build_int_truncate(pair, self.context.i8_type(), "")?)
    }

    /// Converts with the instruction; every value of fp8 is one of f16.
    pub(super) fn f8_to_f16(&self, x: IntValue<'c>, d: DType) -> Result<FloatValue<'c>, Error> {
        let text = format!("cvt.rn.f16x2.{} $0, $1;", Self::f8_name(d));
        let wide = self.builder.build_int_z_extend(x, self.context.i16_type(), "")?;
        let pair = self.assembly(&text, "=r,h", self.i32(), &[wide.into()])?;
        let low = self.builder.build_int_truncate(pair, self.context.i16_type(), "")?;
        self.of_bits(low, self.context.f16_type())
    }
}
