//! The floating-point functions on single values.
//!
//! May assume nothing. Guarantees that `+ - * /`, `sqrt`, `fma` and the roundings are exact or rounded once, that the
//! others keep the bound of their row in the table, and the same bits on every machine: what is not an IEEE operation
//! comes from here or from the `libm` crate, never from the system.
//!
//! The f32 functions are computed in f64 and rounded, so that they are off by little more than half a unit.

use std::f64::consts::LOG2_E;

use super::loops::{Element, Source, binary, unary};
use crate::elementwise::{FloatBinary, FloatUnary};
use crate::float;

/// A function of one float.
pub(super) fn of_one<T: Float>(f: FloatUnary, [x]: [Source<'_, T>; 1], n: usize) -> Vec<T> {
    match f {
        FloatUnary::Exp => unary(x, n, T::exp),
        FloatUnary::Exp2 => unary(x, n, T::exp2),
        FloatUnary::Log => unary(x, n, T::log),
        FloatUnary::Log2 => unary(x, n, T::log2),
        FloatUnary::Sin => unary(x, n, T::sin),
        FloatUnary::Cos => unary(x, n, T::cos),
        FloatUnary::Tanh => unary(x, n, T::tanh),
        FloatUnary::Cosh => unary(x, n, T::cosh),
        FloatUnary::Erf => unary(x, n, T::erf),
        FloatUnary::Sqrt => unary(x, n, T::sqrt),
        FloatUnary::Rsqrt => unary(x, n, T::rsqrt),
    }
}

/// A function of two floats.
pub(super) fn of_two<T: Float>(f: FloatBinary, [a, b]: [Source<'_, T>; 2], n: usize) -> Vec<T> {
    match f {
        FloatBinary::Pow => binary(a, b, n, T::pow),
    }
}

/// Arithmetic of f32 and f64 with the meaning of the language.
pub(super) trait Float: Element + PartialOrd {
    fn add(self, o: Self) -> Self;
    fn sub(self, o: Self) -> Self;
    fn mul(self, o: Self) -> Self;
    fn div(self, o: Self) -> Self;
    /// Remainder of the truncating quotient, exact, with the sign of the dividend.
    fn rem(self, o: Self) -> Self;
    fn neg(self) -> Self;
    fn abs(self) -> Self;
    fn fma(self, b: Self, c: Self) -> Self;
    fn sqrt(self) -> Self;
    fn floor(self) -> Self;
    fn ceil(self) -> Self;
    /// Halves go to the even neighbour.
    fn round(self) -> Self;
    fn trunc(self) -> Self;
    /// The larger, -0 < +0; NaN wins.
    fn maximum(self, o: Self) -> Self;
    /// The smaller, -0 < +0; NaN wins.
    fn minimum(self, o: Self) -> Self;
    fn is_nan(self) -> bool;
    fn is_sign_negative(self) -> bool;
    fn is_inf(self) -> bool;
    fn is_finite(self) -> bool;
    fn exp(self) -> Self;
    fn exp2(self) -> Self;
    fn log(self) -> Self;
    fn log2(self) -> Self;
    fn sin(self) -> Self;
    fn cos(self) -> Self;
    fn tanh(self) -> Self;
    fn cosh(self) -> Self;
    fn erf(self) -> Self;
    fn rsqrt(self) -> Self;
    fn pow(self, y: Self) -> Self;

    /// The larger, -0 < +0; NaN loses.
    #[inline(always)]
    fn maxnum(self, o: Self) -> Self {
        if self.is_nan() {
            return o;
        }
        if o.is_nan() { self } else { self.maximum(o) }
    }

    /// The smaller, -0 < +0; NaN loses.
    #[inline(always)]
    fn minnum(self, o: Self) -> Self {
        if self.is_nan() {
            return o;
        }
        if o.is_nan() { self } else { self.minimum(o) }
    }
}

/// What IEEE defines, the same for both widths.
macro_rules! ieee {
    ($ty:ty, $whole:expr) => {
        #[inline(always)]
        fn add(self, o: Self) -> Self {
            self + o
        }
        #[inline(always)]
        fn sub(self, o: Self) -> Self {
            self - o
        }
        #[inline(always)]
        fn mul(self, o: Self) -> Self {
            self * o
        }
        #[inline(always)]
        fn div(self, o: Self) -> Self {
            self / o
        }
        #[inline(always)]
        fn rem(self, o: Self) -> Self {
            self % o
        }
        #[inline(always)]
        fn neg(self) -> Self {
            -self
        }
        #[inline(always)]
        fn abs(self) -> Self {
            <$ty>::abs(self)
        }
        #[inline(always)]
        fn sqrt(self) -> Self {
            <$ty>::sqrt(self)
        }
        // The four roundings do without a call to the system, so that loops vectorise. The sign of the result is that of
        // the argument, zeros included.
        #[inline(always)]
        fn floor(self) -> Self {
            let near = Float::round(self);
            <$ty>::copysign(if near > self { near - 1.0 } else { near }, self)
        }
        #[inline(always)]
        fn ceil(self) -> Self {
            let near = Float::round(self);
            <$ty>::copysign(if near < self { near + 1.0 } else { near }, self)
        }
        #[inline(always)]
        fn round(self) -> Self {
            // From 2^(mantissa bits) on every value is whole; below, adding it leaves no room for a fraction.
            let whole: $ty = $whole;
            let size = <$ty>::abs(self);
            let rounded = (size + whole) - whole;
            <$ty>::copysign(if size < whole { rounded } else { self }, self)
        }
        #[inline(always)]
        fn trunc(self) -> Self {
            let size = <$ty>::abs(self);
            let near = Float::round(size);
            <$ty>::copysign(if near > size { near - 1.0 } else { near }, self)
        }
        #[inline(always)]
        fn maximum(self, o: Self) -> Self {
            // Equal values differ only as zeros: `and` leaves a sign where both have one.
            let equal = <$ty>::from_bits(self.to_bits() & o.to_bits());
            let unordered = self + o;
            let low = if self == o { equal } else { unordered };
            let low = if self < o { o } else { low };
            if self > o { self } else { low }
        }
        #[inline(always)]
        fn minimum(self, o: Self) -> Self {
            let equal = <$ty>::from_bits(self.to_bits() | o.to_bits());
            let unordered = self + o;
            let high = if self == o { equal } else { unordered };
            let high = if self > o { o } else { high };
            if self < o { self } else { high }
        }
        #[inline(always)]
        fn is_nan(self) -> bool {
            <$ty>::is_nan(self)
        }
        #[inline(always)]
        fn is_sign_negative(self) -> bool {
            <$ty>::is_sign_negative(self)
        }
        #[inline(always)]
        fn is_inf(self) -> bool {
            <$ty>::is_infinite(self)
        }
        #[inline(always)]
        fn is_finite(self) -> bool {
            <$ty>::is_finite(self)
        }
    };
}

impl Float for f32 {
    ieee!(f32, 8_388_608.0);

    #[inline(always)]
    fn fma(self, b: Self, c: Self) -> Self {
        // 24 + 24 bits fit an f64; the sum is rounded to odd there, so that the last rounding is the only one.
        float::add_to_odd(f64::from(self) * f64::from(b), f64::from(c)) as f32
    }
    #[inline(always)]
    fn exp(self) -> Self {
        power_of_two(f64::from(self) * LOG2_E) as f32
    }
    #[inline(always)]
    fn exp2(self) -> Self {
        power_of_two(f64::from(self)) as f32
    }
    fn log(self) -> Self {
        libm::log(f64::from(self)) as f32
    }
    fn log2(self) -> Self {
        libm::log2(f64::from(self)) as f32
    }
    fn sin(self) -> Self {
        libm::sin(f64::from(self)) as f32
    }
    fn cos(self) -> Self {
        libm::cos(f64::from(self)) as f32
    }
    #[inline(always)]
    fn tanh(self) -> Self {
        let x = f64::from(self);
        let e = power_of_two(x * (2.0 * LOG2_E));
        // `e - 1` is exact near 1, but loses what `e` was rounded by; below 2^-10 two terms of the series are closer.
        let quotient = (e - 1.0) / (e + 1.0);
        let series = x * (1.0 - x * x * (1.0 / 3.0));
        (if x.abs() < 1.0 / 1024.0 { series } else { quotient }) as f32
    }
    #[inline(always)]
    fn cosh(self) -> Self {
        let e = power_of_two(f64::from(self) * LOG2_E);
        (0.5 * (e + 1.0 / e)) as f32
    }
    fn erf(self) -> Self {
        libm::erf(f64::from(self)) as f32
    }
    #[inline(always)]
    fn rsqrt(self) -> Self {
        (1.0 / f64::from(self).sqrt()) as f32
    }
    fn pow(self, y: Self) -> Self {
        libm::pow(f64::from(self), f64::from(y)) as f32
    }
}

impl Float for f64 {
    ieee!(f64, 4_503_599_627_370_496.0);

    fn fma(self, b: Self, c: Self) -> Self {
        libm::fma(self, b, c)
    }
    fn exp(self) -> Self {
        libm::exp(self)
    }
    fn exp2(self) -> Self {
        libm::exp2(self)
    }
    fn log(self) -> Self {
        libm::log(self)
    }
    fn log2(self) -> Self {
        libm::log2(self)
    }
    fn sin(self) -> Self {
        libm::sin(self)
    }
    fn cos(self) -> Self {
        libm::cos(self)
    }
    fn tanh(self) -> Self {
        libm::tanh(self)
    }
    fn cosh(self) -> Self {
        libm::cosh(self)
    }
    fn erf(self) -> Self {
        libm::erf(self)
    }
    #[inline(always)]
    fn rsqrt(self) -> Self {
        1.0 / self.sqrt()
    }
    fn pow(self, y: Self) -> Self {
        libm::pow(self, y)
    }
}

/// 2^t for results in the range of f32, without branches so that loops vectorise; beyond 2^±200 it stays there, which
/// f32 cannot tell from infinity and zero. The relative error is below 2^-41.
#[inline(always)]
fn power_of_two(t: f64) -> f64 {
    /// Adding it leaves the nearest whole number in the low bits.
    const WHOLE: f64 = 6_755_399_441_055_744.0;
    /// Coefficients ln(2)^i / i! of the series of 2^f; the first one left out is below 2^-41 for |f| <= 1/2.
    const C: [f64; 11] = [
        1.0,
        std::f64::consts::LN_2,
        0.240_226_506_959_100_72,
        0.055_504_108_664_821_58,
        0.009_618_129_107_628_477,
        0.001_333_355_814_642_844_3,
        0.000_154_035_303_933_816_1,
        0.000_015_252_733_804_059_84,
        0.000_001_321_548_679_014_431,
        0.000_000_101_780_860_092_396_99,
        0.000_000_007_054_911_620_801_123,
    ];
    // Written so that NaN stays.
    let t = if t > 200.0 { 200.0 } else { t };
    let t = if t < -200.0 { -200.0 } else { t };
    let shifted = t + WHOLE;
    let f = t - (shifted - WHOLE);
    let f2 = f * f;
    let f4 = f2 * f2;
    let p01 = C[0] + C[1] * f;
    let p23 = C[2] + C[3] * f;
    let p45 = C[4] + C[5] * f;
    let p67 = C[6] + C[7] * f;
    let p89 = C[8] + C[9] * f;
    let p = (p01 + p23 * f2) + f4 * ((p45 + p67 * f2) + f4 * (p89 + C[10] * f2));
    // The whole part is added to the exponent; the bits of WHOLE above it fall off.
    f64::from_bits(p.to_bits().wrapping_add(shifted.to_bits() << 52))
}
