//! Owns integers and bools: wrapping, division and shifts with a defined result for every operand.
//!
//! May assume that the operation accepts the element type. Guarantees that nothing is undefined for LLVM: a divisor of
//! zero and a shift by too much are replaced before they are used.

use inkwell::IntPredicate as P;
use inkwell::values::{BasicValueEnum, IntValue};
use tk_ops::dtype::DType;
use tk_ops::op::ElementwiseOp;

use super::emit::int;
use super::{Error, Scalars};

/// How two integers compare.
fn predicate(op: ElementwiseOp, signed: bool) -> Option<P> {
    use ElementwiseOp::*;
    Some(match (op, signed) {
        (Eq, _) => P::EQ,
        (Ne, _) => P::NE,
        (Lt, true) => P::SLT,
        (Lt, false) => P::ULT,
        (Le, true) => P::SLE,
        (Le, false) => P::ULE,
        (Gt, true) => P::SGT,
        (Gt, false) => P::UGT,
        (Ge, true) => P::SGE,
        (Ge, false) => P::UGE,
        (
            Add | Sub | Mul | Div | Rem | And | Or | Xor | Shl | Shr | Neg | Not | Maximum | Minimum | MaxNum
            | MinNum | Fma | Select | Clamp | Exp | Exp2 | Log | Log2 | Sin | Cos | Tanh | Erf | Sqrt | Rsqrt
            | Pow | Floor | Ceil | Round | Trunc | Abs | MulHi | Popcount | Clz | IsNan | IsInf | IsFinite
            | Cast | Bitcast | CeilDiv | NextPow2,
            _,
        ) => return None,
    })
}

impl<'c> Scalars<'_, 'c> {
    /// An operation on bools.
    pub(super) fn logical(
        &self,
        op: ElementwiseOp,
        args: &[BasicValueEnum<'c>],
    ) -> Result<BasicValueEnum<'c>, Error> {
        use ElementwiseOp::*;
        let b = self.builder;
        Ok(match (op, args) {
            (Not, [x]) => b.build_not(int(*x)?, "")?,
            (And, [x, y]) => b.build_and(int(*x)?, int(*y)?, "")?,
            (Or, [x, y]) => b.build_or(int(*x)?, int(*y)?, "")?,
            (Xor | Ne, [x, y]) => b.build_xor(int(*x)?, int(*y)?, "")?,
            (Eq, [x, y]) => self.compare(P::EQ, int(*x)?, int(*y)?)?,
            _others => return Err(Error::Operands(op.name())),
        }
        .into())
    }

    /// An operation on integers of type `d`; `amount` is the type of the second operand of a shift.
    pub(super) fn integer(
        &self,
        op: ElementwiseOp,
        d: DType,
        amount: DType,
        args: &[BasicValueEnum<'c>],
    ) -> Result<BasicValueEnum<'c>, Error> {
        let signed = d.is_signed();
        let args: Vec<IntValue<'c>> = args.iter().map(|a| int(*a)).collect::<Result<_, Error>>()?;
        Ok(match args.as_slice() {
            [x] => self.int_unary(op, *x, signed)?,
            [a, b] => match (predicate(op, signed), op) {
                (Some(p), _) => self.compare(p, *a, *b)?,
                (None, ElementwiseOp::Shl | ElementwiseOp::Shr) => self.shift(op, d, *a, amount, *b)?,
                (None, _) => self.int_binary(op, *a, *b, signed)?,
            },
            [x, lo, hi] => {
                let low = self.int_call(if signed { "llvm.smax" } else { "llvm.umax" }, &[*x, *lo])?;
                self.int_call(if signed { "llvm.smin" } else { "llvm.umin" }, &[low, *hi])?
            }
            _others => return Err(Error::Operands(op.name())),
        }
        .into())
    }

    fn int_unary(&self, op: ElementwiseOp, x: IntValue<'c>, signed: bool) -> Result<IntValue<'c>, Error> {
        use ElementwiseOp::*;
        let never = self.context.bool_type().const_zero();
        let i32_type = self.context.i32_type();
        Ok(match op {
            Neg => self.builder.build_int_neg(x, "")?,
            Not => self.builder.build_not(x, "")?,
            Abs if signed && self.spec.has_ptx && x.get_type().get_bit_width() == 64 => {
                // `ptxas` (12.9) takes `abs.s64` for positive, which it is not of the most negative number.
                let text = "{ .reg .s64 n; neg.s64 n, $1; max.s64 $0, $1, n; }";
                self.assembly(text, "=l,l", x.get_type(), &[x.into()])?
            }
            Abs if signed => self.int_call("llvm.abs", &[x, never])?,
            Abs => x,
            // A count is at most 64: the sign does not matter.
            Popcount => {
                let count = self.int_call("llvm.ctpop", &[x])?;
                self.builder.build_int_cast_sign_flag(count, i32_type, false, "")?
            }
            Clz => {
                let count = self.int_call("llvm.ctlz", &[x, never])?;
                self.builder.build_int_cast_sign_flag(count, i32_type, false, "")?
            }
            NextPow2 => self.next_pow2(x, signed)?,
            Add | Sub | Mul | Div | Rem | And | Or | Xor | Shl | Shr | Eq | Ne | Lt | Le | Gt | Ge
            | Maximum | Minimum | MaxNum | MinNum | Fma | Select | Clamp | Exp | Exp2 | Log | Log2 | Sin
            | Cos | Tanh | Erf | Sqrt | Rsqrt | Pow | Floor | Ceil | Round | Trunc | MulHi | IsNan
            | IsInf | IsFinite | Cast | Bitcast | CeilDiv => return Err(Error::Operands(op.name())),
        })
    }

    fn int_binary(
        &self,
        op: ElementwiseOp,
        a: IntValue<'c>,
        b: IntValue<'c>,
        signed: bool,
    ) -> Result<IntValue<'c>, Error> {
        use ElementwiseOp::*;
        let build = self.builder;
        Ok(match op {
            Add => build.build_int_add(a, b, "")?,
            Sub => build.build_int_sub(a, b, "")?,
            Mul => build.build_int_mul(a, b, "")?,
            Div => self.quotient(a, b, signed)?,
            Rem => self.remainder(a, b, signed)?,
            CeilDiv => self.quotient_up(a, b, signed)?,
            And => build.build_and(a, b, "")?,
            Or => build.build_or(a, b, "")?,
            Xor => build.build_xor(a, b, "")?,
            Maximum | MaxNum => self.int_call(if signed { "llvm.smax" } else { "llvm.umax" }, &[a, b])?,
            Minimum | MinNum => self.int_call(if signed { "llvm.smin" } else { "llvm.umin" }, &[a, b])?,
            MulHi => self.product_high(a, b, signed)?,
            Shl | Shr | Neg | Not | Eq | Ne | Lt | Le | Gt | Ge | Fma | Select | Clamp | Exp | Exp2 | Log
            | Log2 | Sin | Cos | Tanh | Erf | Sqrt | Rsqrt | Pow | Floor | Ceil | Round | Trunc | Abs
            | Popcount | Clz | IsNan | IsInf | IsFinite | Cast | Bitcast | NextPow2 => {
                return Err(Error::Operands(op.name()));
            }
        })
    }

    /// Whether dividing by `b` needs care, and what to divide by instead: 1 for 0 and, signed, for -1, whose quotient
    /// of `MIN` does not fit.
    fn divisor(&self, b: IntValue<'c>, signed: bool) -> Result<(IntValue<'c>, IntValue<'c>), Error> {
        let ty = b.get_type();
        let one = ty.const_int(1, false);
        let special = if signed {
            let next = self.builder.build_int_add(b, one, "")?;
            self.compare(P::ULT, next, ty.const_int(2, false))?
        } else {
            self.compare(P::EQ, b, ty.const_zero())?
        };
        Ok((special, self.pick(special, one, b)?))
    }

    /// Truncates; by zero 0; `MIN / -1` is `MIN`.
    fn quotient(&self, a: IntValue<'c>, b: IntValue<'c>, signed: bool) -> Result<IntValue<'c>, Error> {
        let (special, by) = self.divisor(b, signed)?;
        if !signed {
            let q = self.builder.build_int_unsigned_div(a, by, "")?;
            return self.pick(special, b, q);
        }
        let q = self.builder.build_int_signed_div(a, by, "")?;
        // `-a` for a divisor of -1 and nothing for 0.
        let minus = self.builder.build_int_neg(a, "")?;
        let other = self.builder.build_and(minus, b, "")?;
        self.pick(special, other, q)
    }

    /// The sign of the dividend; by zero the dividend; `MIN % -1` is 0.
    fn remainder(&self, a: IntValue<'c>, b: IntValue<'c>, signed: bool) -> Result<IntValue<'c>, Error> {
        let (_, by) = self.divisor(b, signed)?;
        let r = if signed {
            self.builder.build_int_signed_rem(a, by, "")?
        } else {
            self.builder.build_int_unsigned_rem(a, by, "")?
        };
        let zero = self.compare(P::EQ, b, b.get_type().const_zero())?;
        self.pick(zero, a, r)
    }

    /// Rounds up; by zero 0.
    fn quotient_up(&self, a: IntValue<'c>, b: IntValue<'c>, signed: bool) -> Result<IntValue<'c>, Error> {
        let zero = a.get_type().const_zero();
        let q = self.quotient(a, b, signed)?;
        let whole = self.builder.build_int_mul(q, b, "")?;
        let rest = self.builder.build_int_sub(a, whole, "")?;
        let mut up = self.compare(P::NE, rest, zero)?;
        let divides = self.compare(P::NE, b, zero)?;
        up = self.builder.build_and(up, divides, "")?;
        if signed {
            // Truncation rounded down only where the exact quotient is positive: where the signs agree.
            let signs = self.builder.build_xor(a, b, "")?;
            let positive = self.compare(P::SGE, signs, zero)?;
            up = self.builder.build_and(up, positive, "")?;
        }
        let up = self.builder.build_int_z_extend(up, a.get_type(), "")?;
        Ok(self.builder.build_int_add(q, up, "")?)
    }

    /// The smallest power of two that is not less, at least 1; one that does not fit is 0.
    fn next_pow2(&self, x: IntValue<'c>, signed: bool) -> Result<IntValue<'c>, Error> {
        let ty = x.get_type();
        let width = ty.const_int(u64::from(ty.get_bit_width()), false);
        let one = ty.const_int(1, false);
        let before = self.builder.build_int_sub(x, one, "")?;
        let clear = self.int_call("llvm.ctlz", &[before, self.context.bool_type().const_zero()])?;
        let bits = self.builder.build_int_sub(width, clear, "")?;
        let fits = self.compare(P::ULT, bits, width)?;
        let power = self.builder.build_left_shift(one, bits, "")?;
        let power = self.pick(fits, power, ty.const_zero())?;
        let small = self.compare(if signed { P::SLE } else { P::ULE }, x, one)?;
        self.pick(small, one, power)
    }

    /// The upper half of the product of unsigned values.
    fn product_high(&self, a: IntValue<'c>, b: IntValue<'c>, signed: bool) -> Result<IntValue<'c>, Error> {
        let ty = a.get_type();
        let double = match ty.get_bit_width() {
            8 => self.context.i16_type(),
            16 => self.context.i32_type(),
            32 => self.context.i64_type(),
            _ => self.context.i128_type(),
        };
        let a = self.builder.build_int_cast_sign_flag(a, double, signed, "")?;
        let b = self.builder.build_int_cast_sign_flag(b, double, signed, "")?;
        let product = self.builder.build_int_mul(a, b, "")?;
        let width = double.const_int(u64::from(ty.get_bit_width()), false);
        let high = self.builder.build_right_shift(product, width, false, "")?;
        Ok(self.builder.build_int_truncate(high, ty, "")?)
    }

    /// By the width or more, or by a negative amount: 0, or the sign.
    fn shift(
        &self,
        op: ElementwiseOp,
        d: DType,
        x: IntValue<'c>,
        amount: DType,
        by: IntValue<'c>,
    ) -> Result<IntValue<'c>, Error> {
        let ty = x.get_type();
        let width = u64::from(ty.get_bit_width());
        if !amount.is_int() {
            return Err(Error::Operands(op.name()));
        }
        // Without a sign, a negative amount is above every width.
        let fits = self.compare(P::ULT, by, by.get_type().const_int(width, false))?;
        let by = self.builder.build_int_cast_sign_flag(by, ty, false, "")?;
        if op == ElementwiseOp::Shr && d.is_signed() {
            let by = self.pick(fits, by, ty.const_int(width - 1, false))?;
            return Ok(self.builder.build_right_shift(x, by, true, "")?);
        }
        // What LLVM calls poison is not chosen.
        let shifted = if op == ElementwiseOp::Shl {
            self.builder.build_left_shift(x, by, "")?
        } else {
            self.builder.build_right_shift(x, by, false, "")?
        };
        self.pick(fits, shifted, ty.const_zero())
    }
}
