//! Primitives of the functions of this folder: the operations of a target, and a few that are composed of them.

/// The width of the floats that a function takes and returns; integers of the same name have the same width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// 32 bits, 24 of them precision.
    F32,
    /// 64 bits, 53 of them precision.
    F64,
}

impl Width {
    /// Bits of the mantissa that are stored.
    pub(super) fn mantissa(self) -> u32 {
        match self {
            Width::F32 => 23,
            Width::F64 => 52,
        }
    }

    /// Bits of the exponent.
    pub(super) fn exponent(self) -> u32 {
        match self {
            Width::F32 => 8,
            Width::F64 => 11,
        }
    }

    /// The bias of the exponent.
    pub(super) fn bias(self) -> i64 {
        match self {
            Width::F32 => 127,
            Width::F64 => 1023,
        }
    }

    /// The bits of infinity.
    pub(super) fn infinity(self) -> i64 {
        (2 * self.bias() + 1) << self.mantissa()
    }

    /// The bits of -0.
    fn sign(self) -> i64 {
        match self {
            Width::F32 => i64::from(i32::MIN),
            Width::F64 => i64::MIN,
        }
    }

    /// Added to a float well below it, it leaves the nearest whole number (halves to the even one) in the low bits: one
    /// and a half times the first power of two above the mantissa, so that both signs stay in one binade.
    pub(super) fn whole(self) -> f64 {
        match self {
            Width::F32 => 12_582_912.0,
            Width::F64 => 6_755_399_441_055_744.0,
        }
    }
}

/// A function that a target may have as one operation on f32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approx {
    /// 2^x within 2 ulp; subnormal numbers are flushed to zero.
    Exp2Flush,
    /// The binary logarithm, near 1 with an absolute error of about 2^-22; subnormal numbers are flushed to zero.
    Log2Flush,
    /// 1 / x within 1 ulp; subnormal numbers are flushed to zero.
    RecipFlush,
    /// 1 / sqrt(x) within 2 ulp, subnormal numbers included.
    Rsqrt,
    /// 1 / sqrt(x) within 2 ulp; subnormal numbers are flushed to zero.
    RsqrtFlush,
    /// sqrt(x); subnormal numbers are flushed to zero.
    SqrtFlush,
    /// The sine, with an absolute error of about 2^-20 for angles between -pi and pi.
    SinFlush,
    /// The cosine, with an absolute error of about 2^-20 for angles between -pi and pi.
    CosFlush,
    /// The hyperbolic tangent with a relative error of about 2^-11.
    Tanh,
}

/// Arithmetic on one element, over which a function is written once for every target.
///
/// Floats and integers come in the two widths, and both operands of an operation have the same one unless it says
/// otherwise. Floats follow IEEE 754 with rounding to nearest; integers wrap.
pub trait Math {
    /// A float, an integer or a truth value.
    type V: Copy;

    /// A constant, rounded to the width.
    fn float(&mut self, width: Width, value: f64) -> Self::V;
    /// A constant of the low bits.
    fn int(&mut self, width: Width, value: i64) -> Self::V;

    /// The sum of floats.
    fn add(&mut self, a: Self::V, b: Self::V) -> Self::V;
    /// The difference of floats.
    fn sub(&mut self, a: Self::V, b: Self::V) -> Self::V;
    /// The product of floats.
    fn mul(&mut self, a: Self::V, b: Self::V) -> Self::V;
    /// The quotient of floats.
    fn div(&mut self, a: Self::V, b: Self::V) -> Self::V;
    /// `a * b + c`, rounded once.
    fn fma(&mut self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// The float with the other sign.
    fn neg(&mut self, a: Self::V) -> Self::V;
    /// The float without its sign.
    fn abs(&mut self, a: Self::V) -> Self::V;
    /// The square root, correctly rounded.
    fn sqrt(&mut self, a: Self::V) -> Self::V;
    /// Returns `a < b`; false if one is NaN.
    fn lt(&mut self, a: Self::V, b: Self::V) -> Self::V;
    /// Returns whether two floats are equal; false if one is NaN.
    fn eq(&mut self, a: Self::V, b: Self::V) -> Self::V;

    /// The sum of integers.
    fn iadd(&mut self, a: Self::V, b: Self::V) -> Self::V;
    /// The difference of integers.
    fn isub(&mut self, a: Self::V, b: Self::V) -> Self::V;
    /// The low half of the product of integers.
    fn imul(&mut self, a: Self::V, b: Self::V) -> Self::V;
    /// The high half of the product of unsigned integers.
    fn umulhi(&mut self, a: Self::V, b: Self::V) -> Self::V;
    /// Bitwise on integers, logical on truth values.
    fn and(&mut self, a: Self::V, b: Self::V) -> Self::V;
    /// Bitwise on integers, logical on truth values.
    fn or(&mut self, a: Self::V, b: Self::V) -> Self::V;
    /// Bitwise on integers, logical on truth values.
    fn xor(&mut self, a: Self::V, b: Self::V) -> Self::V;
    /// Shifts left by an integer below the width.
    fn shl(&mut self, a: Self::V, by: Self::V) -> Self::V;
    /// Shifts right by an integer below the width, with zeros.
    fn lshr(&mut self, a: Self::V, by: Self::V) -> Self::V;
    /// Shifts right by an integer below the width, with the sign.
    fn ashr(&mut self, a: Self::V, by: Self::V) -> Self::V;
    /// Returns `a < b` for unsigned integers.
    fn ult(&mut self, a: Self::V, b: Self::V) -> Self::V;
    /// Returns whether two integers are equal.
    fn ieq(&mut self, a: Self::V, b: Self::V) -> Self::V;

    /// The bits of a float.
    fn to_bits(&mut self, a: Self::V) -> Self::V;
    /// The float of the bits.
    fn as_float(&mut self, a: Self::V) -> Self::V;
    /// A signed integer as a float of the same width, rounded.
    fn to_float(&mut self, a: Self::V) -> Self::V;
    /// A 32-bit float as a 64-bit one.
    fn widen(&mut self, a: Self::V) -> Self::V;
    /// A 64-bit float as a 32-bit one, rounded.
    fn narrow(&mut self, a: Self::V) -> Self::V;
    /// The low half of a 64-bit integer.
    fn low_half(&mut self, a: Self::V) -> Self::V;

    /// `a` if the truth value is true, else `b`; of any type.
    fn select(&mut self, cond: Self::V, a: Self::V, b: Self::V) -> Self::V;
    /// The result of `slow` if the truth value is true, else `usual`. It is rarely true, so that a branch around `slow`
    /// pays.
    fn rarely<const N: usize>(
        &mut self,
        cond: Self::V,
        usual: [Self::V; N],
        slow: impl FnOnce(&mut Self) -> [Self::V; N],
    ) -> [Self::V; N];

    /// An approximation of f32 if the target has it.
    fn approx(&mut self, function: Approx, x: Self::V) -> Option<Self::V>;
    /// `a * b + c` of f32, rounded once, then clamped to 0..1, where NaN gives 0; if the target has it as one operation.
    fn saturated_fma(&mut self, a: Self::V, b: Self::V, c: Self::V) -> Option<Self::V>;
}

/// An approximation of the target if `fast` requests it and the width is that of the approximations.
pub(super) fn shortcut<M: Math>(
    m: &mut M,
    width: Width,
    fast: bool,
    function: Approx,
    x: M::V,
) -> Option<M::V> {
    match width {
        Width::F32 if fast => m.approx(function, x),
        Width::F32 | Width::F64 => None,
    }
}

/// The polynomial of the coefficients, lowest power first.
pub(super) fn polynomial<M: Math>(m: &mut M, width: Width, coefficients: &[f64], x: M::V) -> M::V {
    let mut value = None;
    for &c in coefficients.iter().rev() {
        let c = m.float(width, c);
        value = Some(match value {
            Some(value) => m.fma(value, x, c),
            None => c,
        });
    }
    value.unwrap_or(x)
}

/// A float shifted to the left as an integer of bits.
pub(super) fn shift_left<M: Math>(m: &mut M, width: Width, a: M::V, by: u32) -> M::V {
    let by = m.int(width, i64::from(by));
    m.shl(a, by)
}

/// `size` with the sign of `x`; `size` has none.
pub(super) fn with_sign_of<M: Math>(m: &mut M, width: Width, size: M::V, x: M::V) -> M::V {
    let mask = m.int(width, width.sign());
    let (size, x) = (m.to_bits(size), m.to_bits(x));
    let sign = m.and(x, mask);
    let bits = m.or(size, sign);
    m.as_float(bits)
}
