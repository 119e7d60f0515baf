//! Integer and bool arithmetic: wrapping, division and shifts with a defined result for every operand.
//!
//! May assume what `elementwise` checked. Guarantees that no operand panics or is undefined.

use super::loops::{self, Element, Source, binary, ternary, unary};
use super::{EvalError, Operand, exactly};
use crate::buf::Buf;
use crate::dtype::DType;
use crate::elementwise::{
    Arithmetic, BitCount, Bitwise, ElementwiseOp, Group, IntBinary, IntUnary, MinMax, Shift, Sign,
};

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
    if let (Group::Shift(f), [x, by]) = (op.group(), args) {
        let x = operand::<T>(op, x)?;
        return match f {
            Shift::Shl => shift(op, x, by, n, T::shl),
            Shift::Shr => shift(op, x, by, n, T::shr),
        };
    }
    let sources = args.iter().map(|a| operand::<T>(op, a)).collect::<Result<Vec<_>, EvalError>>()?;
    let args = sources.as_slice();
    Ok(match op.group() {
        Group::Arithmetic(f) => T::buf(arithmetic(f, exactly(op, args)?, n)),
        Group::Sign(f) => T::buf(sign(f, exactly(op, args)?, n)),
        Group::Bitwise(f) => T::buf(bitwise(f, exactly(op, args)?, n)),
        Group::Complement(_) => {
            let [x] = exactly(op, args)?;
            T::buf(unary(x, n, T::not))
        }
        Group::MinMax(f) => T::buf(min_max(f, exactly(op, args)?, n)),
        Group::Clamp(_) => {
            let [x, lo, hi] = exactly(op, args)?;
            T::buf(ternary(x, lo, hi, n, |x, lo, hi| x.max(lo).min(hi)))
        }
        Group::IntUnary(f) => T::buf(of_one(f, exactly(op, args)?, n)),
        Group::IntBinary(f) => T::buf(of_two(f, exactly(op, args)?, n)),
        Group::BitCount(f) => Buf::I32(bit_count(f, exactly(op, args)?, n)),
        Group::Equality(f) => Buf::Bool(loops::equality(f, exactly(op, args)?, n)),
        Group::Order(f) => Buf::Bool(loops::order(f, exactly(op, args)?, n)),
        Group::Shift(_)
        | Group::FloatUnary(_)
        | Group::FloatBinary(_)
        | Group::Fma(_)
        | Group::Rounding(_)
        | Group::FloatTest(_)
        | Group::Select(_)
        | Group::Cast(_)
        | Group::Bitcast(_) => {
            return Err(EvalError::Unsupported { op: op.name(), dtype: T::buf(Vec::new()).dtype() });
        }
    })
}

/// The operand with its type known.
pub(super) fn operand<'a, T: Element>(
    op: ElementwiseOp,
    x: &Operand<'a>,
) -> Result<Source<'a, T>, EvalError> {
    x.source().ok_or(EvalError::Unsupported { op: op.name(), dtype: x.dtype() })
}

fn arithmetic<T: Int>(f: Arithmetic, [a, b]: [Source<'_, T>; 2], n: usize) -> Vec<T> {
    match f {
        Arithmetic::Add => binary(a, b, n, T::add),
        Arithmetic::Sub => binary(a, b, n, T::sub),
        Arithmetic::Mul => binary(a, b, n, T::mul),
        Arithmetic::Div => binary(a, b, n, T::div),
        Arithmetic::Rem => binary(a, b, n, T::rem),
    }
}

fn sign<T: Int>(f: Sign, [x]: [Source<'_, T>; 1], n: usize) -> Vec<T> {
    match f {
        Sign::Neg => unary(x, n, T::neg),
        Sign::Abs => unary(x, n, T::abs),
    }
}

fn bitwise<T: Int>(f: Bitwise, [a, b]: [Source<'_, T>; 2], n: usize) -> Vec<T> {
    match f {
        Bitwise::And => binary(a, b, n, T::and),
        Bitwise::Or => binary(a, b, n, T::or),
        Bitwise::Xor => binary(a, b, n, T::xor),
    }
}

/// There is no NaN to tell the two kinds apart.
fn min_max<T: Int>(f: MinMax, [a, b]: [Source<'_, T>; 2], n: usize) -> Vec<T> {
    match f {
        MinMax::Maximum | MinMax::MaxNum => binary(a, b, n, T::max),
        MinMax::Minimum | MinMax::MinNum => binary(a, b, n, T::min),
    }
}

fn of_one<T: Int>(f: IntUnary, [x]: [Source<'_, T>; 1], n: usize) -> Vec<T> {
    match f {
        IntUnary::NextPow2 => unary(x, n, T::next_pow2),
    }
}

fn of_two<T: Int>(f: IntBinary, [a, b]: [Source<'_, T>; 2], n: usize) -> Vec<T> {
    match f {
        IntBinary::MulHi => binary(a, b, n, T::mulhi),
        IntBinary::CeilDiv => binary(a, b, n, T::cdiv),
    }
}

fn bit_count<T: Int>(f: BitCount, [x]: [Source<'_, T>; 1], n: usize) -> Vec<i32> {
    match f {
        BitCount::Popcount => unary(x, n, T::popcount),
        BitCount::Clz => unary(x, n, T::clz),
    }
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
    let sources = args.iter().map(|a| operand::<bool>(op, a)).collect::<Result<Vec<_>, EvalError>>()?;
    Ok(Buf::Bool(match (op.group(), sources.as_slice()) {
        (Group::Complement(_), [x]) => unary(*x, n, |a| !a),
        (Group::Bitwise(Bitwise::And), [a, b]) => binary(*a, *b, n, |a, b| a & b),
        (Group::Bitwise(Bitwise::Or), [a, b]) => binary(*a, *b, n, |a, b| a | b),
        (Group::Bitwise(Bitwise::Xor), [a, b]) => binary(*a, *b, n, |a, b| a ^ b),
        (Group::Equality(f), [a, b]) => loops::equality(f, [*a, *b], n),
        // No other group accepts bools.
        (_, _) => return Err(EvalError::Unsupported { op: op.name(), dtype: DType::Bool }),
    }))
}
