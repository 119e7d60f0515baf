//! Emits elementwise operations on floats: f32 and f64 directly, the narrow ones by target instructions that give the
//! same bits, else in f32 with one rounding at the end.
//!
//! Requires that the operation accepts the element type. Guarantees correctly rounded `+ - * /`, `sqrt` and `fma`: f32
//! has more than twice the bits of the narrow types and two to spare, so that rounding twice equals rounding once;
//! `fma`, for which that is not enough, goes through f64 rounded to odd.

use inkwell::values::{BasicValueEnum, FastMathFlags, FloatValue, IntValue};
use inkwell::{FloatPredicate as P, IntPredicate as Order};
use tk_ops::FloatFormat;
use tk_ops::dtype::DType;
use tk_ops::elementwise::{
    Arithmetic, ElementwiseOp, Equality, FloatTest, FloatUnary, Group, MinMax, Order as Ordered, Rounding,
    Sign,
};

use super::emit::{float, int};
use super::{Error, Scalars, Width, exactly};

/// The LLVM predicate of an order; false with NaN.
fn predicate(f: Ordered) -> P {
    match f {
        Ordered::Lt => P::OLT,
        Ordered::Le => P::OLE,
        Ordered::Gt => P::OGT,
        Ordered::Ge => P::OGE,
    }
}

/// Returns whether the larger of two is chosen, and whether a number is preferred to NaN.
fn larger_of_numbers(f: MinMax) -> (bool, bool) {
    match f {
        MinMax::Maximum => (true, false),
        MinMax::Minimum => (false, false),
        MinMax::MaxNum => (true, true),
        MinMax::MinNum => (false, true),
    }
}

/// The intrinsic of a rounding.
fn rounding(f: Rounding) -> &'static str {
    match f {
        Rounding::Floor => "llvm.floor",
        Rounding::Ceil => "llvm.ceil",
        Rounding::Round => "llvm.roundeven",
        Rounding::Trunc => "llvm.trunc",
    }
}

/// The sign bit of f16 and bf16.
const HALF_SIGN: u64 = 0x8000;
/// The sign bit of fp8.
const F8_SIGN: u8 = 0x80;

impl<'c> Scalars<'_, 'c> {
    /// An operation on a float type.
    pub(super) fn float(
        &self,
        op: ElementwiseOp,
        d: DType,
        fast: bool,
        args: &[BasicValueEnum<'c>],
    ) -> Result<BasicValueEnum<'c>, Error> {
        let narrow = !matches!(d, DType::F32 | DType::F64);
        if let Some(found) = self.f8_codes(op, d, args)? {
            return Ok(found.into());
        }
        if let (true, Group::Sign(f), [x]) = (narrow, op.group(), args) {
            return self.half_sign(f, d, *x);
        }
        if !narrow || self.has_native(op, d) {
            let args: Vec<FloatValue<'c>> = args.iter().map(|a| float(*a)).collect::<Result<_, Error>>()?;
            let width = if d == DType::F64 { Width::F64 } else { Width::F32 };
            return self.compute(op, width, fast, &args);
        }
        let wide: Vec<FloatValue<'c>> =
            args.iter().map(|a| self.decode(*a, d)).collect::<Result<_, Error>>()?;
        if let (Group::Fma(_), [a, b, c]) = (op.group(), wide.as_slice()) {
            return self.encode_f64(self.fma_to_odd(*a, *b, *c)?, d);
        }
        match self.compute(op, Width::F32, fast, &wide)? {
            BasicValueEnum::FloatValue(r) => self.encode(r, d),
            r @ (BasicValueEnum::ArrayValue(_)
            | BasicValueEnum::IntValue(_)
            | BasicValueEnum::PointerValue(_)
            | BasicValueEnum::StructValue(_)
            | BasicValueEnum::VectorValue(_)
            | BasicValueEnum::ScalableVectorValue(_)) => Ok(r),
        }
    }

    /// Returns true if the target computes this on f16 or bf16 in one instruction with one rounding.
    fn has_native(&self, op: ElementwiseOp, d: DType) -> bool {
        let all = match d {
            DType::F16 => self.spec.has_f16_arithmetic,
            DType::BF16 => self.spec.has_bf16_arithmetic,
            DType::Bool
            | DType::I8
            | DType::I16
            | DType::I32
            | DType::I64
            | DType::U8
            | DType::U16
            | DType::U32
            | DType::U64
            | DType::F8E4M3
            | DType::F8E5M2
            | DType::F8E4M3FNUZ
            | DType::F8E5M2FNUZ
            | DType::F32
            | DType::F64
            | DType::E2M1
            | DType::E8M0 => return false,
        };
        match op.group() {
            Group::Fma(_) | Group::MinMax(_) | Group::Clamp(_) => all || self.spec.has_bf16_fma,
            Group::Arithmetic(Arithmetic::Add | Arithmetic::Sub | Arithmetic::Mul)
            | Group::Equality(_)
            | Group::Order(_) => all,
            Group::Arithmetic(Arithmetic::Div | Arithmetic::Rem)
            | Group::Sign(_)
            | Group::Bitwise(_)
            | Group::Complement(_)
            | Group::Shift(_)
            | Group::FloatUnary(_)
            | Group::FloatBinary(_)
            | Group::Rounding(_)
            | Group::Select(_)
            | Group::IntUnary(_)
            | Group::IntBinary(_)
            | Group::BitCount(_)
            | Group::FloatTest(_)
            | Group::Cast(_)
            | Group::Bitcast(_) => false,
        }
    }

    /// Operations on fp8 codes: signs, and the larger or smaller of two, which is one of them even if it is an
    /// infinity, which no conversion gives.
    fn f8_codes(
        &self,
        op: ElementwiseOp,
        d: DType,
        args: &[BasicValueEnum<'c>],
    ) -> Result<Option<IntValue<'c>>, Error> {
        let Some(f) = d.format().filter(|_| d.is_f8()) else { return Ok(None) };
        let args: Vec<IntValue<'c>> = args.iter().map(|a| int(*a)).collect::<Result<_, Error>>()?;
        let code = |v: u8| self.context.i8_type().const_int(u64::from(v), false);
        let b = self.builder;
        Ok(Some(match (op.group(), args.as_slice()) {
            (Group::Sign(sign), [x]) => {
                let size = b.build_and(*x, code(!F8_SIGN), "")?;
                let other = if sign == Sign::Neg { b.build_xor(*x, code(F8_SIGN), "")? } else { size };
                if f.signed_zero {
                    other
                } else {
                    // The zero and the NaN have no other sign.
                    self.pick(self.compare(Order::EQ, size, code(0))?, *x, other)?
                }
            }
            (Group::MinMax(choice), [x, y]) => {
                let (larger, numbers) = larger_of_numbers(choice);
                self.f8_choice(larger, numbers, &f, *x, *y)?
            }
            (Group::Clamp(_), [x, lo, hi]) => {
                let above = self.f8_choice(true, false, &f, *x, *lo)?;
                self.f8_choice(false, false, &f, above, *hi)?
            }
            (_, _) => return Ok(None),
        }))
    }

    /// The larger or smaller of two codes; NaN wins, or with `numbers` loses.
    fn f8_choice(
        &self,
        larger: bool,
        numbers: bool,
        f: &FloatFormat,
        x: IntValue<'c>,
        y: IntValue<'c>,
    ) -> Result<IntValue<'c>, Error> {
        let b = self.builder;
        let code = |v: u8| self.context.i8_type().const_int(u64::from(v), false);
        let key = |c: IntValue<'c>| -> Result<IntValue<'c>, Error> {
            // All bits of a negative code, the sign of another one.
            let ones = b.build_right_shift(c, code(7), true, "")?;
            Ok(b.build_xor(c, b.build_or(ones, code(F8_SIGN), "")?, "")?)
        };
        let nan = |c: IntValue<'c>| -> Result<IntValue<'c>, Error> {
            if !f.signed_zero {
                return self.compare(Order::EQ, c, code(F8_SIGN));
            }
            self.compare(Order::UGT, b.build_and(c, code(!F8_SIGN), "")?, code(f.last_number() as u8))
        };
        let (x_nan, y_nan) = (nan(x)?, nan(y)?);
        let better = self.compare(if larger { Order::UGT } else { Order::ULT }, key(y)?, key(x)?)?;
        let takes = if numbers {
            b.build_or(x_nan, b.build_and(better, b.build_not(y_nan, "")?, "")?, "")?
        } else {
            b.build_and(b.build_or(better, y_nan, "")?, b.build_not(x_nan, "")?, "")?
        };
        self.pick(takes, y, x)
    }

    /// `-x` or `abs(x)` of f16 or bf16, on the sign bit.
    fn half_sign(&self, f: Sign, d: DType, x: BasicValueEnum<'c>) -> Result<BasicValueEnum<'c>, Error> {
        let ty = self.code_type(d);
        let bits = int(self.builder.build_bit_cast(x, ty, "")?)?;
        let bits = if f == Sign::Neg {
            self.builder.build_xor(bits, ty.const_int(HALF_SIGN, false), "")?
        } else {
            self.builder.build_and(bits, ty.const_int(HALF_SIGN - 1, false), "")?
        };
        Ok(self.builder.build_bit_cast(bits, self.element_type(d), "")?)
    }

    /// An operation on floats of one LLVM type. `width` is the one in which its functions are computed.
    fn compute(
        &self,
        op: ElementwiseOp,
        width: Width,
        fast: bool,
        args: &[FloatValue<'c>],
    ) -> Result<BasicValueEnum<'c>, Error> {
        Ok(match op.group() {
            Group::Arithmetic(f) => self.float_arithmetic(f, exactly(op, args)?, width, fast)?,
            Group::Sign(f) => self.float_sign(f, exactly(op, args)?)?.into(),
            Group::FloatUnary(FloatUnary::Sqrt) => {
                match if fast { self.function(op, width, fast, args) } else { None } {
                    Some(v) => v,
                    None => self.relaxed(self.float_call("llvm.sqrt", args)?, fast)?.into(),
                }
            }
            Group::FloatUnary(_) | Group::FloatBinary(_) => {
                self.function(op, width, fast, args).ok_or(Error::NoFunction(op, width))?
            }
            Group::Fma(_) => self.relaxed(self.float_call("llvm.fma", args)?, fast)?.into(),
            Group::Rounding(f) => self.float_call(rounding(f), args)?.into(),
            Group::MinMax(f) => self.extreme(f, exactly(op, args)?)?.into(),
            Group::Clamp(_) => {
                let [x, lo, hi] = exactly(op, args)?;
                let x = self.extreme(MinMax::Maximum, [x, lo])?;
                self.extreme(MinMax::Minimum, [x, hi])?.into()
            }
            Group::Equality(f) => {
                let [a, b] = exactly(op, args)?;
                // NaN differs from every value.
                self.compare_float(if f == Equality::Eq { P::OEQ } else { P::UNE }, a, b)?.into()
            }
            Group::Order(f) => {
                let [a, b] = exactly(op, args)?;
                self.compare_float(predicate(f), a, b)?.into()
            }
            Group::FloatTest(f) => self.float_test(f, exactly(op, args)?)?.into(),
            Group::Bitwise(_)
            | Group::Complement(_)
            | Group::Shift(_)
            | Group::Select(_)
            | Group::IntUnary(_)
            | Group::IntBinary(_)
            | Group::BitCount(_)
            | Group::Cast(_)
            | Group::Bitcast(_) => return Err(Error::Operands(op.name())),
        })
    }

    /// A function of [`Scalars::math`].
    fn function(
        &self,
        op: ElementwiseOp,
        width: Width,
        fast: bool,
        args: &[FloatValue<'c>],
    ) -> Option<BasicValueEnum<'c>> {
        let args: Vec<BasicValueEnum<'c>> = args.iter().map(|a| (*a).into()).collect();
        (self.math)(op, width, fast, &args)
    }

    fn float_arithmetic(
        &self,
        f: Arithmetic,
        [x, y]: [FloatValue<'c>; 2],
        width: Width,
        fast: bool,
    ) -> Result<BasicValueEnum<'c>, Error> {
        let b = self.builder;
        let result = match f {
            Arithmetic::Add => b.build_float_add(x, y, "")?,
            Arithmetic::Sub => b.build_float_sub(x, y, "")?,
            Arithmetic::Mul => b.build_float_mul(x, y, "")?,
            Arithmetic::Div => {
                match if fast { self.function(ElementwiseOp::Div, width, fast, &[x, y]) } else { None } {
                    Some(v) => return Ok(v),
                    None => b.build_float_div(x, y, "")?,
                }
            }
            Arithmetic::Rem => return Ok(self.float_rem(x, y, width)?.into()),
        };
        Ok(self.relaxed(result, fast)?.into())
    }

    fn float_sign(&self, f: Sign, [x]: [FloatValue<'c>; 1]) -> Result<FloatValue<'c>, Error> {
        match f {
            Sign::Neg => Ok(self.builder.build_float_neg(x, "")?),
            Sign::Abs => self.float_call("llvm.fabs", &[x]),
        }
    }

    fn float_test(&self, f: FloatTest, [x]: [FloatValue<'c>; 1]) -> Result<IntValue<'c>, Error> {
        let size = || self.float_call("llvm.fabs", &[x]);
        let infinity = x.get_type().const_float(f64::INFINITY);
        match f {
            FloatTest::IsNan => self.is_nan(x),
            FloatTest::IsInf => self.compare_float(P::OEQ, size()?, infinity),
            FloatTest::IsFinite => self.compare_float(P::OLT, size()?, infinity),
        }
    }

    /// The larger or smaller of two, with -0 < +0.
    fn extreme(&self, f: MinMax, [a, b]: [FloatValue<'c>; 2]) -> Result<FloatValue<'c>, Error> {
        let (larger, numbers) = larger_of_numbers(f);
        let strict = if larger { "llvm.maximum" } else { "llvm.minimum" };
        let number = if larger { "llvm.maxnum" } else { "llvm.minnum" };
        if !numbers {
            return self.float_call(strict, &[a, b]);
        }
        if self.spec.has_float_min_max && a.get_type() != self.context.f64_type() {
            return self.float_call(number, &[a, b]);
        }
        // Otherwise LLVM leaves the sign of a zero result of `maxnum` open.
        let both = self.float_call(strict, &[a, b])?;
        let known = self.pick_float(self.is_nan(b)?, a, both)?;
        self.pick_float(self.is_nan(a)?, b, known)
    }

    /// The largest or smallest of floats, in a tree; NaN if one is NaN. For targets whose instructions return the number if
    /// one of two is NaN: pairs are tested for NaN once, instead of every result of the tree.
    pub fn extreme_of(&self, larger: bool, all: &[FloatValue<'c>]) -> Result<FloatValue<'c>, Error> {
        let name = if larger { "llvm.maximum" } else { "llvm.minimum" };
        let (mut level, mut has_nan) = (all.to_vec(), None);
        for pair in all.chunks(2) {
            let (Some(a), Some(b)) = (pair.first(), pair.last()) else { continue };
            let unordered = self.compare_float(P::UNO, *a, *b)?;
            has_nan = Some(match has_nan {
                Some(before) => self.builder.build_or(before, unordered, "")?,
                None => unordered,
            });
        }
        while level.len() > 1 {
            let mut next = vec![];
            for pair in level.chunks(2) {
                next.push(match pair {
                    [a, b] => self.flagged(self.float_call(name, &[*a, *b])?, FastMathFlags::NoNaNs)?,
                    [a, ..] => *a,
                    [] => continue,
                });
            }
            level = next;
        }
        let (Some(result), Some(has_nan)) = (level.pop(), has_nan) else {
            return Err(Error::Operands(name));
        };
        // A NaN is a poison value to the tree, and is not selected.
        self.pick_float(has_nan, result.get_type().const_float(f64::NAN), result)
    }

    /// `a * b + c` of values converted from f16 or bf16, as f64 rounded to odd: the product is exact, and rounding the
    /// result to the narrow type equals rounding the exact sum.
    fn fma_to_odd(
        &self,
        a: FloatValue<'c>,
        b: FloatValue<'c>,
        c: FloatValue<'c>,
    ) -> Result<FloatValue<'c>, Error> {
        let build = self.builder;
        let f64_type = self.context.f64_type();
        let i64_type = self.context.i64_type();
        let wide = |x| build.build_float_ext(x, f64_type, "");
        let p = build.build_float_mul(wide(a)?, wide(b)?, "")?;
        let c = wide(c)?;
        let sum = build.build_float_add(p, c, "")?;
        // The error of the sum, exactly (Knuth's two-sum).
        let part = build.build_float_sub(sum, p, "")?;
        let rest = build.build_float_sub(sum, part, "")?;
        let first = build.build_float_sub(p, rest, "")?;
        let second = build.build_float_sub(c, part, "")?;
        let error = build.build_float_add(first, second, "")?;
        let zero = f64_type.const_zero();
        // False for NaN: infinities and NaN remain unchanged.
        let inexact = self.compare_float(P::ONE, error, zero)?;
        // The exact sum is smaller in magnitude than the rounded one if the signs of error and sum differ.
        let up: IntValue<'c> = self.compare_float(P::OGT, error, zero)?;
        let positive = self.compare_float(P::OGT, sum, zero)?;
        let smaller = build.build_xor(up, positive, "")?;
        let bits = self.bits(sum, i64_type)?;
        let down = build.build_int_z_extend(smaller, i64_type, "")?;
        let even = build.build_and(bits, i64_type.const_int(1, false), "")?;
        let odd = build.build_int_sub(bits, down, "")?;
        let odd = build.build_or(odd, i64_type.const_int(1, false), "")?;
        let is_even = self.compare(inkwell::IntPredicate::EQ, even, i64_type.const_zero())?;
        let step = build.build_and(inexact, is_even, "")?;
        let bits = self.pick(step, odd, bits)?;
        self.of_bits(bits, f64_type)
    }
}
