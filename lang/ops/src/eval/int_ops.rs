//! Integer and bool arithmetic: wrapping, division and shifts with a defined result for every operand.
//!
//! May assume what `elementwise` checked. Guarantees that no operand panics or is undefined.

use super::loops::{Element, Source, binary, ternary, unary};
use super::{EvalError, Operand};
use crate::buf::Buf;
use crate::dtype::DType;
use crate::op::ElementwiseOp;

/// Integer arithmetic with the meaning of the language.
pub(super) trait Int: Element + Ord {
    /// Wrapping sum.
    fn add(self, o: Self) -> Self;
    /// Wrapping difference.
    fn sub(self, o: Self) -> Self;
    /// Wrapping product.
    fn mul(self, o: Self) -> Self;
    /// Truncating quotient; by zero 0; `MIN / -1` is `MIN`.
    fn div(self, o: Self) -> Self;
    /// Remainder with the sign of the dividend; by zero the dividend; `MIN % -1` is 0.
    fn rem(self, o: Self) -> Self;
    /// Quotient rounded up; by zero 0.
    fn cdiv(self, o: Self) -> Self;
    /// The smallest power of two that is not less, at least 1; one that does not fit wraps.
    fn next_pow2(self) -> Self;
    /// By the width or more: 0.
    fn shl(self, by: u32) -> Self;
    /// By the width or more: 0, or the sign.
    fn shr(self, by: u32) -> Self;
    /// This value as a shift amount; negative ones count as too large.
    fn amount(self) -> u32;
    /// The upper half of the product.
    fn mulhi(self, o: Self) -> Self;
    /// Wrapping.
    fn neg(self) -> Self;
    /// `abs(MIN)` is `MIN`.
    fn abs(self) -> Self;
    fn and(self, o: Self) -> Self;
    fn or(self, o: Self) -> Self;
    fn xor(self, o: Self) -> Self;
    fn not(self) -> Self;
    fn popcount(self) -> i32;
    fn clz(self) -> i32;
}

macro_rules! int_body {
    ($ty:ty, $signed:literal, $abs:expr) => {
        #[inline(always)]
        fn add(self, o: Self) -> Self {
            self.wrapping_add(o)
        }
        #[inline(always)]
        fn sub(self, o: Self) -> Self {
            self.wrapping_sub(o)
        }
        #[inline(always)]
        fn mul(self, o: Self) -> Self {
            self.wrapping_mul(o)
        }
        #[inline(always)]
        fn div(self, o: Self) -> Self {
            if o == 0 { 0 } else { self.wrapping_div(o) }
        }
        #[inline(always)]
        fn rem(self, o: Self) -> Self {
            if o == 0 { self } else { self.wrapping_rem(o) }
        }
        #[inline(always)]
        fn cdiv(self, o: Self) -> Self {
            // Truncation rounded down where the exact quotient is positive and not whole.
            let down = self.rem(o) != 0 && o != 0 && ((self > 0) == (o > 0));
            self.div(o).wrapping_add(<$ty>::from(down))
        }
        #[inline(always)]
        fn next_pow2(self) -> Self {
            if self <= 1 {
                return 1;
            }
            let bits = <$ty>::BITS - (self - 1).leading_zeros();
            (1 as $ty).checked_shl(bits).unwrap_or(0)
        }
        #[inline(always)]
        fn shl(self, by: u32) -> Self {
            self.checked_shl(by).unwrap_or(0)
        }
        #[inline(always)]
        fn shr(self, by: u32) -> Self {
            // The last bit is the sign of a signed value, and no bit at all is left of an unsigned one.
            self.checked_shr(by).unwrap_or(if $signed { self >> (<$ty>::BITS - 1) } else { 0 })
        }
        #[inline(always)]
        fn amount(self) -> u32 {
            u32::try_from(self).unwrap_or(u32::MAX)
        }
        #[inline(always)]
        fn mulhi(self, o: Self) -> Self {
            // Of two u64 the product is no i128, of two negative values no u128.
            if $signed {
                ((self as i128).wrapping_mul(o as i128) >> <$ty>::BITS) as $ty
            } else {
                ((self as u128).wrapping_mul(o as u128) >> <$ty>::BITS) as $ty
            }
        }
        #[inline(always)]
        fn neg(self) -> Self {
            self.wrapping_neg()
        }
        #[inline(always)]
        fn abs(self) -> Self {
            $abs(self)
        }
        #[inline(always)]
        fn and(self, o: Self) -> Self {
            self & o
        }
        #[inline(always)]
        fn or(self, o: Self) -> Self {
            self | o
        }
        #[inline(always)]
        fn xor(self, o: Self) -> Self {
            self ^ o
        }
        #[inline(always)]
        fn not(self) -> Self {
            !self
        }
        #[inline(always)]
        fn popcount(self) -> i32 {
            self.count_ones() as i32
        }
        #[inline(always)]
        fn clz(self) -> i32 {
            self.leading_zeros() as i32
        }
    };
}

macro_rules! ints {
    ($($signed:ty, $unsigned:ty;)*) => {$(
        impl Int for $signed {
            int_body!($signed, true, <$signed>::wrapping_abs);
        }
        impl Int for $unsigned {
            int_body!($unsigned, false, std::convert::identity);
        }
    )*};
}

ints! { i8, u8; i16, u16; i32, u32; i64, u64; }

/// An elementwise operation on an integer type.
pub(super) fn int<T: Int>(op: ElementwiseOp, args: &[Operand<'_>], n: usize) -> Result<Buf, EvalError> {
    let count = EvalError::OperandCount { op: op.name(), expected: op.arity(), found: args.len() };
    match args {
        [x] => int_unary(op, operand::<T>(op, x)?, n),
        [x, amount] if op == ElementwiseOp::Shl => shift(op, operand::<T>(op, x)?, amount, n, T::shl),
        [x, amount] if op == ElementwiseOp::Shr => shift(op, operand::<T>(op, x)?, amount, n, T::shr),
        [a, b] => int_binary(op, operand::<T>(op, a)?, operand::<T>(op, b)?, n),
        [x, lo, hi] if op == ElementwiseOp::Clamp => {
            let (x, lo, hi) = (operand::<T>(op, x)?, operand::<T>(op, lo)?, operand::<T>(op, hi)?);
            Ok(T::buf(ternary(x, lo, hi, n, |x, lo, hi| x.max(lo).min(hi))))
        }
        _other => Err(count),
    }
}

/// The operand with its type known.
pub(super) fn operand<'a, T: Element>(
    op: ElementwiseOp,
    x: &Operand<'a>,
) -> Result<Source<'a, T>, EvalError> {
    x.source().ok_or(EvalError::Unsupported { op: op.name(), dtype: x.dtype() })
}

fn int_unary<T: Int>(op: ElementwiseOp, x: Source<'_, T>, n: usize) -> Result<Buf, EvalError> {
    use ElementwiseOp::*;
    Ok(match op {
        Neg => T::buf(unary(x, n, T::neg)),
        Not => T::buf(unary(x, n, T::not)),
        Abs => T::buf(unary(x, n, T::abs)),
        NextPow2 => T::buf(unary(x, n, T::next_pow2)),
        Popcount => Buf::I32(unary(x, n, T::popcount)),
        Clz => Buf::I32(unary(x, n, T::clz)),
        Add | Sub | Mul | Div | Rem | And | Or | Xor | Shl | Shr | Eq | Ne | Lt | Le | Gt | Ge | Maximum
        | Minimum | MaxNum | MinNum | Fma | Select | Clamp | Exp | Exp2 | Log | Log2 | Sin | Cos | Tanh
        | Erf | Sqrt | Rsqrt | Pow | Floor | Ceil | Round | Trunc | MulHi | IsNan | IsInf | IsFinite
        | Cast | Bitcast | CeilDiv => return unsupported::<T>(op),
    })
}

fn int_binary<T: Int>(
    op: ElementwiseOp,
    a: Source<'_, T>,
    b: Source<'_, T>,
    n: usize,
) -> Result<Buf, EvalError> {
    use ElementwiseOp::*;
    Ok(match op {
        Add => T::buf(binary(a, b, n, T::add)),
        Sub => T::buf(binary(a, b, n, T::sub)),
        Mul => T::buf(binary(a, b, n, T::mul)),
        Div => T::buf(binary(a, b, n, T::div)),
        Rem => T::buf(binary(a, b, n, T::rem)),
        CeilDiv => T::buf(binary(a, b, n, T::cdiv)),
        And => T::buf(binary(a, b, n, T::and)),
        Or => T::buf(binary(a, b, n, T::or)),
        Xor => T::buf(binary(a, b, n, T::xor)),
        MulHi => T::buf(binary(a, b, n, T::mulhi)),
        // There is no NaN to tell the two kinds apart.
        Maximum | MaxNum => T::buf(binary(a, b, n, T::max)),
        Minimum | MinNum => T::buf(binary(a, b, n, T::min)),
        Eq => Buf::Bool(binary(a, b, n, |a, b| a == b)),
        Ne => Buf::Bool(binary(a, b, n, |a, b| a != b)),
        Lt => Buf::Bool(binary(a, b, n, |a, b| a < b)),
        Le => Buf::Bool(binary(a, b, n, |a, b| a <= b)),
        Gt => Buf::Bool(binary(a, b, n, |a, b| a > b)),
        Ge => Buf::Bool(binary(a, b, n, |a, b| a >= b)),
        Shl | Shr | Neg | Not | Fma | Select | Clamp | Exp | Exp2 | Log | Log2 | Sin | Cos | Tanh | Erf
        | Sqrt | Rsqrt | Pow | Floor | Ceil | Round | Trunc | Abs | Popcount | Clz | IsNan | IsInf
        | IsFinite | Cast | Bitcast | NextPow2 => return unsupported::<T>(op),
    })
}

fn unsupported<T: Int>(op: ElementwiseOp) -> Result<Buf, EvalError> {
    Err(EvalError::Unsupported { op: op.name(), dtype: T::buf(Vec::new()).dtype() })
}

/// A shift by an amount of any integer type.
fn shift<T: Int>(
    op: ElementwiseOp,
    x: Source<'_, T>,
    by: &Operand<'_>,
    n: usize,
    f: impl Fn(T, u32) -> T,
) -> Result<Buf, EvalError> {
    macro_rules! amounts {
        ($($ty:ty, $variant:ident;)*) => {
            match by {
                Operand::Splat(s) => s.as_int().map(|i| Source::Splat(u32::try_from(i).unwrap_or(u32::MAX))),
                $(Operand::Buf(Buf::$variant(v)) => return {
                    Ok(T::buf(binary(x, Source::Slice(v), n, |x, by: $ty| f(x, by.amount()))))
                },)*
                Operand::Buf(_) => None,
            }
        };
    }
    let amount: Option<Source<'_, u32>> = amounts! {
        i8, I8; i16, I16; i32, I32; i64, I64; u8, U8; u16, U16; u32, U32; u64, U64;
    };
    let amount = amount.ok_or(EvalError::Unsupported { op: op.name(), dtype: by.dtype() })?;
    Ok(T::buf(binary(x, amount, n, f)))
}

/// An operation on bools.
pub(super) fn logical(op: ElementwiseOp, args: &[Operand<'_>], n: usize) -> Result<Buf, EvalError> {
    use ElementwiseOp::*;
    let unsupported = EvalError::Unsupported { op: op.name(), dtype: DType::Bool };
    let f: fn(bool, bool) -> bool = match op {
        Not => |a, _| !a,
        And => |a, b| a & b,
        Or => |a, b| a | b,
        Xor | Ne => |a, b| a ^ b,
        Eq => |a, b| a == b,
        Add | Sub | Mul | Div | Rem | Shl | Shr | Neg | Lt | Le | Gt | Ge | Maximum | Minimum | MaxNum
        | MinNum | Fma | Select | Clamp | Exp | Exp2 | Log | Log2 | Sin | Cos | Tanh | Erf | Sqrt | Rsqrt
        | Pow | Floor | Ceil | Round | Trunc | Abs | MulHi | Popcount | Clz | IsNan | IsInf | IsFinite
        | Cast | Bitcast | CeilDiv | NextPow2 => return Err(unsupported),
    };
    match args {
        [x] => Ok(Buf::Bool(unary(operand(op, x)?, n, |x| f(x, x)))),
        [a, b] => Ok(Buf::Bool(binary(operand(op, a)?, operand(op, b)?, n, f))),
        _other => Err(unsupported),
    }
}
