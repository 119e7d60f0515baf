//! Owns elementwise operations on floats: f32 and f64 directly, the narrow ones by the instructions of the target where
//! they give the same bits, else in f32 with one rounding at the end.
//!
//! May assume that the operation accepts the element type. Guarantees correctly rounded `+ - * /`, `sqrt` and `fma`:
//! f32 has more than twice the bits of the narrow types and two to spare, with which rounding twice is as rounding
//! once; `fma`, for which that is not enough, goes through f64 rounded to odd.

use inkwell::values::{BasicValueEnum, FloatValue, IntValue};
use inkwell::{FloatPredicate as P, IntPredicate as Order};
use tk_ops::FloatFormat;
use tk_ops::dtype::DType;
use tk_ops::op::ElementwiseOp;

use super::emit::{float, int};
use super::{Error, Scalars, Width};

/// How two floats compare; every comparison but `!=` is false with NaN.
fn predicate(op: ElementwiseOp) -> Option<P> {
    use ElementwiseOp::*;
    Some(match op {
        Eq => P::OEQ,
        Ne => P::UNE,
        Lt => P::OLT,
        Le => P::OLE,
        Gt => P::OGT,
        Ge => P::OGE,
        Add | Sub | Mul | Div | Rem | And | Or | Xor | Shl | Shr | Neg | Not | Maximum | Minimum | MaxNum
        | MinNum | Fma | Select | Clamp | Exp | Exp2 | Log | Log2 | Sin | Cos | Tanh | Erf | Sqrt | Rsqrt
        | Pow | Floor | Ceil | Round | Trunc | Abs | MulHi | Popcount | Clz | IsNan | IsInf | IsFinite
        | Cast | Bitcast | CeilDiv | NextPow2 => return None,
    })
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
        if let (true, ElementwiseOp::Neg | ElementwiseOp::Abs, [x]) = (narrow, op, args) {
            return self.half_sign(op, d, *x);
        }
        if !narrow || self.has_native(op, d) {
            let args: Vec<FloatValue<'c>> = args.iter().map(|a| float(*a)).collect::<Result<_, Error>>()?;
            let width = if d == DType::F64 { Width::F64 } else { Width::F32 };
            return self.compute(op, width, fast, &args);
        }
        let wide: Vec<FloatValue<'c>> =
            args.iter().map(|a| self.decode(*a, d)).collect::<Result<_, Error>>()?;
        if let (ElementwiseOp::Fma, [a, b, c]) = (op, wide.as_slice()) {
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

    /// Whether the target computes this on f16 or bf16 in one instruction with one rounding.
    fn has_native(&self, op: ElementwiseOp, d: DType) -> bool {
        use ElementwiseOp::*;
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
        match op {
            Fma | Maximum | Minimum | MaxNum | MinNum | Clamp => all || self.spec.has_bf16_fma,
            Add | Sub | Mul | Eq | Ne | Lt | Le | Gt | Ge => all,
            Div | Rem | And | Or | Xor | Shl | Shr | Neg | Not | Select | Exp | Exp2 | Log | Log2 | Sin
            | Cos | Tanh | Erf | Sqrt | Rsqrt | Pow | Floor | Ceil | Round | Trunc | Abs | MulHi
            | Popcount | Clz | IsNan | IsInf | IsFinite | Cast | Bitcast | CeilDiv | NextPow2 => false,
        }
    }

    /// What is done to fp8 without leaving it: signs, and the larger or smaller of two, which is one of them even if it is an
    /// infinity, which no conversion gives.
    fn f8_codes(
        &self,
        op: ElementwiseOp,
        d: DType,
        args: &[BasicValueEnum<'c>],
    ) -> Result<Option<IntValue<'c>>, Error> {
        use ElementwiseOp::*;
        let Some(f) = d.format().filter(|_| d.is_f8()) else { return Ok(None) };
        let args: Vec<IntValue<'c>> = args.iter().map(|a| int(*a)).collect::<Result<_, Error>>()?;
        let code = |v: u8| self.context.i8_type().const_int(u64::from(v), false);
        let b = self.builder;
        Ok(Some(match (op, args.as_slice()) {
            (Neg | Abs, [x]) => {
                let size = b.build_and(*x, code(!F8_SIGN), "")?;
                let other = if op == Neg { b.build_xor(*x, code(F8_SIGN), "")? } else { size };
                if f.signed_zero {
                    other
                } else {
                    // The zero and the NaN have no other sign.
                    self.pick(self.compare(Order::EQ, size, code(0))?, *x, other)?
                }
            }
            (Maximum | Minimum, [x, y]) => self.f8_choice(op == Maximum, false, &f, *x, *y)?,
            (MaxNum | MinNum, [x, y]) => self.f8_choice(op == MaxNum, true, &f, *x, *y)?,
            (Clamp, [x, lo, hi]) => {
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
    fn half_sign(
        &self,
        op: ElementwiseOp,
        d: DType,
        x: BasicValueEnum<'c>,
    ) -> Result<BasicValueEnum<'c>, Error> {
        let ty = self.code_type(d);
        let bits = int(self.builder.build_bit_cast(x, ty, "")?)?;
        let bits = if op == ElementwiseOp::Neg {
            self.builder.build_xor(bits, ty.const_int(HALF_SIGN, false), "")?
        } else {
            self.builder.build_and(bits, ty.const_int(HALF_SIGN - 1, false), "")?
        };
        Ok(self.builder.build_bit_cast(bits, self.element_type(d), "")?)
    }

    /// An operation on floats of one LLVM type. `width` is where its functions are computed.
    fn compute(
        &self,
        op: ElementwiseOp,
        width: Width,
        fast: bool,
        args: &[FloatValue<'c>],
    ) -> Result<BasicValueEnum<'c>, Error> {
        use ElementwiseOp::*;
        let b = self.builder;
        Ok(match (op, args) {
            (_, [x]) => return self.float_unary(op, width, fast, *x),
            (_, [x, y]) if predicate(op).is_some() => {
                self.compare_float(predicate(op).unwrap_or(P::OEQ), *x, *y)?.into()
            }
            (Add, [x, y]) => self.relaxed(b.build_float_add(*x, *y, "")?, fast)?.into(),
            (Sub, [x, y]) => self.relaxed(b.build_float_sub(*x, *y, "")?, fast)?.into(),
            (Mul, [x, y]) => self.relaxed(b.build_float_mul(*x, *y, "")?, fast)?.into(),
            (Div, [x, y]) => {
                let approximate = if fast { self.function(op, width, fast, args) } else { None };
                match approximate {
                    Some(v) => v,
                    None => self.relaxed(b.build_float_div(*x, *y, "")?, fast)?.into(),
                }
            }
            (Rem, [x, y]) => self.float_rem(*x, *y, width)?.into(),
            (Pow, [_, _]) => self.function(op, width, fast, args).ok_or(Error::NoFunction(op, width))?,
            (Maximum | Minimum | MaxNum | MinNum, [x, y]) => self.extreme(op, *x, *y)?.into(),
            (Fma, [_, _, _]) => self.relaxed(self.float_call("llvm.fma", args)?, fast)?.into(),
            (Clamp, [x, lo, hi]) => {
                let x = self.extreme(Maximum, *x, *lo)?;
                self.extreme(Minimum, x, *hi)?.into()
            }
            _others => return Err(Error::Operands(op.name())),
        })
    }

    /// A function of the hook.
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

    fn float_unary(
        &self,
        op: ElementwiseOp,
        width: Width,
        fast: bool,
        x: FloatValue<'c>,
    ) -> Result<BasicValueEnum<'c>, Error> {
        use ElementwiseOp::*;
        let size = || self.float_call("llvm.fabs", &[x]);
        let infinity = x.get_type().const_float(f64::INFINITY);
        Ok(match op {
            Neg => self.builder.build_float_neg(x, "")?.into(),
            Abs => size()?.into(),
            Floor => self.float_call("llvm.floor", &[x])?.into(),
            Ceil => self.float_call("llvm.ceil", &[x])?.into(),
            Round => self.float_call("llvm.roundeven", &[x])?.into(),
            Trunc => self.float_call("llvm.trunc", &[x])?.into(),
            IsNan => self.is_nan(x)?.into(),
            IsInf => self.compare_float(P::OEQ, size()?, infinity)?.into(),
            IsFinite => self.compare_float(P::OLT, size()?, infinity)?.into(),
            Sqrt => match if fast { self.function(op, width, fast, &[x]) } else { None } {
                Some(v) => v,
                None => self.relaxed(self.float_call("llvm.sqrt", &[x])?, fast)?.into(),
            },
            Exp | Exp2 | Log | Log2 | Sin | Cos | Tanh | Erf | Rsqrt => {
                self.function(op, width, fast, &[x]).ok_or(Error::NoFunction(op, width))?
            }
            Add | Sub | Mul | Div | Rem | And | Or | Xor | Shl | Shr | Not | Eq | Ne | Lt | Le | Gt | Ge
            | Maximum | Minimum | MaxNum | MinNum | Fma | Select | Clamp | Pow | MulHi | Popcount | Clz
            | Cast | Bitcast | CeilDiv | NextPow2 => return Err(Error::Operands(op.name())),
        })
    }

    /// The larger or smaller of two, with -0 < +0.
    fn extreme(
        &self,
        op: ElementwiseOp,
        a: FloatValue<'c>,
        b: FloatValue<'c>,
    ) -> Result<FloatValue<'c>, Error> {
        let larger = matches!(op, ElementwiseOp::Maximum | ElementwiseOp::MaxNum);
        let nan_wins = matches!(op, ElementwiseOp::Maximum | ElementwiseOp::Minimum);
        let strict = if larger { "llvm.maximum" } else { "llvm.minimum" };
        let number = if larger { "llvm.maxnum" } else { "llvm.minnum" };
        if nan_wins {
            return self.float_call(strict, &[a, b]);
        }
        if self.spec.has_float_min_max && a.get_type() != self.context.f64_type() {
            return self.float_call(number, &[a, b]);
        }
        // Elsewhere LLVM leaves open which zero `maxnum` gives.
        let both = self.float_call(strict, &[a, b])?;
        let known = self.pick_float(self.is_nan(b)?, a, both)?;
        self.pick_float(self.is_nan(a)?, b, known)
    }

    /// `a * b + c` of values that came from f16 or bf16, as f64 rounded to odd: the product is exact, and rounding the
    /// result to the narrow type is as rounding the exact sum.
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
        // False for NaN: infinities and NaN stay as they are.
        let inexact = self.compare_float(P::ONE, error, zero)?;
        // The exact sum is smaller in size than the rounded one where the signs of error and sum differ.
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
