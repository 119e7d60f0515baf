//! Emits operations on integers and bools: wrapping arithmetic, division and shifts with a defined result for every
//! operand.
//!
//! Requires that the operation accepts the element type. Guarantees no undefined behaviour in LLVM: a divisor of zero
//! and an oversized shift amount are replaced before they are used.

use inkwell::IntPredicate as P;
use inkwell::values::{BasicValueEnum, IntValue};
use tk_ops::dtype::DType;
use tk_ops::elementwise::{
    Arithmetic, BitCount, Bitwise, ElementwiseOp, Equality, Group, IntBinary, IntUnary, MinMax, Order, Shift,
    Sign,
};

use super::emit::int;
use super::{Error, Scalars, exactly};

/// The LLVM predicate of an order.
fn predicate(f: Order, signed: bool) -> P {
    match (f, signed) {
        (Order::Lt, true) => P::SLT,
        (Order::Lt, false) => P::ULT,
        (Order::Le, true) => P::SLE,
        (Order::Le, false) => P::ULE,
        (Order::Gt, true) => P::SGT,
        (Order::Gt, false) => P::UGT,
        (Order::Ge, true) => P::SGE,
        (Order::Ge, false) => P::UGE,
    }
}

impl<'c> Scalars<'_, 'c> {
    /// An operation on bools.
    pub(super) fn logical(
        &self,
        op: ElementwiseOp,
        args: &[BasicValueEnum<'c>],
    ) -> Result<BasicValueEnum<'c>, Error> {
        let b = self.builder;
        let args: Vec<IntValue<'c>> = args.iter().map(|a| int(*a)).collect::<Result<_, Error>>()?;
        Ok(match (op.group(), args.as_slice()) {
            (Group::Complement(_), [x]) => b.build_not(*x, "")?,
            (Group::Bitwise(f), [x, y]) => self.bitwise(f, [*x, *y])?,
            (Group::Equality(Equality::Eq), [x, y]) => self.compare(P::EQ, *x, *y)?,
            (Group::Equality(Equality::Ne), [x, y]) => b.build_xor(*x, *y, "")?,
            // No other group accepts bools.
            (_, _) => return Err(Error::Operands(op.name())),
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
        Ok(match op.group() {
            Group::Arithmetic(f) => self.int_arithmetic(f, exactly(op, &args)?, signed)?,
            Group::Sign(f) => self.int_sign(f, exactly(op, &args)?, signed)?,
            Group::Bitwise(f) => self.bitwise(f, exactly(op, &args)?)?,
            Group::Complement(_) => {
                let [x] = exactly(op, &args)?;
                self.builder.build_not(x, "")?
            }
            Group::Shift(f) => {
                let [x, by] = exactly(op, &args)?;
                self.shift(f, d, x, amount, by)?
            }
            Group::Equality(f) => {
                let [a, b] = exactly(op, &args)?;
                self.compare(if f == Equality::Eq { P::EQ } else { P::NE }, a, b)?
            }
            Group::Order(f) => {
                let [a, b] = exactly(op, &args)?;
                self.compare(predicate(f, signed), a, b)?
            }
            Group::MinMax(MinMax::Maximum | MinMax::MaxNum) => self.int_max(exactly(op, &args)?, signed)?,
            Group::MinMax(MinMax::Minimum | MinMax::MinNum) => self.int_min(exactly(op, &args)?, signed)?,
            Group::Clamp(_) => {
                let [x, lo, hi] = exactly(op, &args)?;
                self.int_min([self.int_max([x, lo], signed)?, hi], signed)?
            }
            Group::IntUnary(IntUnary::NextPow2) => {
                let [x] = exactly(op, &args)?;
                self.next_pow2(x, signed)?
            }
            Group::IntBinary(f) => {
                let [a, b] = exactly(op, &args)?;
                match f {
                    IntBinary::MulHi => self.product_high(a, b, signed)?,
                    IntBinary::CeilDiv => self.quotient_up(a, b, signed)?,
                }
            }
            Group::BitCount(f) => self.bit_count(f, exactly(op, &args)?)?,
            Group::FloatUnary(_)
            | Group::FloatBinary(_)
            | Group::Fma(_)
            | Group::Rounding(_)
            | Group::FloatTest(_)
            | Group::Select(_)
            | Group::Cast(_)
            | Group::Bitcast(_) => return Err(Error::Operands(op.name())),
        }
        .into())
    }

    fn int_arithmetic(
        &self,
        f: Arithmetic,
        [a, b]: [IntValue<'c>; 2],
        signed: bool,
    ) -> Result<IntValue<'c>, Error> {
        Ok(match f {
            Arithmetic::Add => self.builder.build_int_add(a, b, "")?,
            Arithmetic::Sub => self.builder.build_int_sub(a, b, "")?,
            Arithmetic::Mul => self.builder.build_int_mul(a, b, "")?,
            Arithmetic::Div => self.quotient(a, b, signed)?,
            Arithmetic::Rem => self.remainder(a, b, signed)?,
        })
    }

    fn int_sign(&self, f: Sign, [x]: [IntValue<'c>; 1], signed: bool) -> Result<IntValue<'c>, Error> {
        let never = self.context.bool_type().const_zero();
        Ok(match f {
            Sign::Neg => self.builder.build_int_neg(x, "")?,
            Sign::Abs if signed && self.spec.has_ptx && x.get_type().get_bit_width() == 64 => {
                // `ptxas` (12.9) assumes that `abs.s64` is positive, which it is not for the most negative number.
                let text = "{ .reg .s64 n; neg.s64 n, $1; max.s64 $0, $1, n; }";
                self.assembly(text, "=l,l", x.get_type(), &[x.into()])?
            }
            Sign::Abs if signed => self.int_call("llvm.abs", &[x, never])?,
            Sign::Abs => x,
        })
    }

    fn bitwise(&self, f: Bitwise, [a, b]: [IntValue<'c>; 2]) -> Result<IntValue<'c>, Error> {
        Ok(match f {
            Bitwise::And => self.builder.build_and(a, b, "")?,
            Bitwise::Or => self.builder.build_or(a, b, "")?,
            Bitwise::Xor => self.builder.build_xor(a, b, "")?,
        })
    }

    fn int_max(&self, args: [IntValue<'c>; 2], signed: bool) -> Result<IntValue<'c>, Error> {
        self.int_call(if signed { "llvm.smax" } else { "llvm.umax" }, &args)
    }

    fn int_min(&self, args: [IntValue<'c>; 2], signed: bool) -> Result<IntValue<'c>, Error> {
        self.int_call(if signed { "llvm.smin" } else { "llvm.umin" }, &args)
    }

    /// A count is at most 64, so the sign does not matter.
    fn bit_count(&self, f: BitCount, [x]: [IntValue<'c>; 1]) -> Result<IntValue<'c>, Error> {
        let never = self.context.bool_type().const_zero();
        let count = match f {
            BitCount::Popcount => self.int_call("llvm.ctpop", &[x])?,
            BitCount::Clz => self.int_call("llvm.ctlz", &[x, never])?,
        };
        Ok(self.builder.build_int_cast_sign_flag(count, self.context.i32_type(), false, "")?)
    }

    /// Returns whether division by `b` needs care, and the divisor to use instead: 1 for 0 and, signed, for -1, whose
    /// quotient of `MIN` does not fit.
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
            // Truncation rounded down only if the exact quotient is positive: if the signs agree.
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

    /// A shift by the width or more, or by a negative amount, gives 0 or the sign.
    fn shift(
        &self,
        f: Shift,
        d: DType,
        x: IntValue<'c>,
        amount: DType,
        by: IntValue<'c>,
    ) -> Result<IntValue<'c>, Error> {
        let ty = x.get_type();
        let width = u64::from(ty.get_bit_width());
        if !amount.is_int() {
            return Err(Error::Operands("shift"));
        }
        // As an unsigned number, a negative amount is above every width.
        let fits = self.compare(P::ULT, by, by.get_type().const_int(width, false))?;
        let by = self.builder.build_int_cast_sign_flag(by, ty, false, "")?;
        if f == Shift::Shr && d.is_signed() {
            let by = self.pick(fits, by, ty.const_int(width - 1, false))?;
            return Ok(self.builder.build_right_shift(x, by, true, "")?);
        }
        // The select does not choose LLVM's poison.
        let shifted = if f == Shift::Shl {
            self.builder.build_left_shift(x, by, "")?
        } else {
            self.builder.build_right_shift(x, by, false, "")?
        };
        self.pick(fits, shifted, ty.const_zero())
    }
}
