//! Logarithms.
//!
//! log x = e log 2 + log m with m between 2/3 and 4/3. Accepts any x. Guarantees 2 ulp.

use std::f64::consts::{LN_2, LOG2_E};

use super::primitives::{Approx, Math, Width, polynomial, shortcut};

/// (log(1 + f) - f) / f^2 for |f| <= 1/3; the relative error of the logarithm is 2^-27.6.
const F32: &[f64] = &[
    -0.5,
    0.33333197,
    -0.2499992,
    0.20011434,
    -0.16674449,
    0.13989724,
    -0.12273275,
    0.14059934,
    -0.12490801,
];
/// (log((1 + s) / (1 - s)) / s - 2) / s^2 as a polynomial of s^2 for |s| <= 0.2; the relative error of the logarithm
/// is 2^-62.
const F64: &[f64] = &[
    0.666666666666666,
    0.4000000000005671,
    0.285714285558198,
    0.22222224297552007,
    0.18181665801491337,
    0.1539111469133186,
    0.1317354788845736,
    0.13843421515363494,
];

/// A float split into its parts: `x = 2^exponent * (1 + f)`, -1/3 <= f < 1/3.
pub(super) struct Parts<V> {
    /// The bits of x, or of x times a power of two if it is subnormal.
    bits: V,
    /// A whole number as a float.
    pub(super) exponent: V,
    /// Exact.
    pub(super) f: V,
}

/// The natural logarithm.
pub(super) fn log<M: Math>(m: &mut M, width: Width, fast: bool, x: M::V) -> M::V {
    if let Some(r) = shortcut(m, width, fast, Approx::Log2Flush, x) {
        let ln_2 = m.float(width, LN_2);
        return m.mul(r, ln_2);
    }
    let parts = split(m, width, x);
    let value = match width {
        Width::F32 => {
            let ln_2 = m.float(width, LN_2);
            let square = m.mul(parts.f, parts.f);
            let p = polynomial(m, width, F32, parts.f);
            let r = m.fma(p, square, parts.f);
            // The exponent is 0 or at least twice as large as the rest, so that one float for log 2 loses little.
            m.fma(parts.exponent, ln_2, r)
        }
        Width::F64 => {
            // The first 42 bits of log 2: their product with an exponent is exact.
            let high = f64::from_bits(LN_2.to_bits() & !0x7ff);
            let (high, low) = (m.float(width, high), m.float(width, LN_2_REST + (LN_2 - high)));
            let (f, tail) = log_of_mantissa(m, width, parts.f);
            let tail = m.fma(parts.exponent, low, tail);
            let whole = m.mul(parts.exponent, high);
            sum_of_three(m, whole, f, tail)
        }
    };
    special(m, width, x, parts.bits, value)
}

/// The difference of log 2 and its nearest f64.
const LN_2_REST: f64 = 2.319_046_813_846_299_6e-17;

/// The logarithm to base 2.
pub(super) fn log2<M: Math>(m: &mut M, width: Width, fast: bool, x: M::V) -> M::V {
    if let Some(r) = shortcut(m, width, fast, Approx::Log2Flush, x) {
        return r;
    }
    let parts = split(m, width, x);
    let (f, tail) = log_of_mantissa(m, width, parts.f);
    let (high, low) = log2_e(width);
    let (high, low) = (m.float(width, high), m.float(width, low));
    // exponent + (f + tail) (high + low) with the error of the first sum; exponent - sum is exact, since it is small
    // and a multiple of the last place of the sum.
    let sum = m.fma(f, high, parts.exponent);
    let left = m.sub(parts.exponent, sum);
    let lost = m.fma(f, high, left);
    let lost = m.fma(f, low, lost);
    let lost = m.fma(tail, high, lost);
    let value = m.add(sum, lost);
    special(m, width, x, parts.bits, value)
}

/// log2(e) as the sum of two floats of the width.
pub(super) fn log2_e(width: Width) -> (f64, f64) {
    match width {
        // The rest of the decimal expansion after the nearest f32.
        Width::F32 => (f64::from(LOG2_E as f32), LOG2_E - f64::from(LOG2_E as f32)),
        Width::F64 => (LOG2_E, 2.035_527_374_093_103_3e-17),
    }
}

/// Splits a positive finite float; for others the parts have no meaning.
pub(super) fn split<M: Math>(m: &mut M, width: Width, x: M::V) -> Parts<M::V> {
    let mantissa = width.mantissa();
    let normal = m.float(width, f64::powi(2.0, 1 - width.bias() as i32));
    let subnormal = m.lt(x, normal);
    let factor = m.float(width, f64::powi(2.0, mantissa as i32));
    let larger = m.mul(x, factor);
    let x = m.select(subnormal, larger, x);
    let moved = m.float(width, -f64::from(mantissa));
    let zero = m.float(width, 0.0);
    let moved = m.select(subnormal, moved, zero);
    let bits = m.to_bits(x);
    let lowest = match width {
        Width::F32 => i64::from((2.0f32 / 3.0).to_bits()),
        Width::F64 => (2.0f64 / 3.0).to_bits() as i64,
    };
    let lowest = m.int(width, lowest);
    let above = m.isub(bits, lowest);
    let mask = m.int(width, -1 << mantissa);
    let power = m.and(above, mask);
    let rest = m.isub(bits, power);
    let rest = m.as_float(rest);
    let one = m.float(width, 1.0);
    let f = m.sub(rest, one);
    // A multiple of a power of two is exact as a float.
    let power = m.to_float(power);
    let unit = m.float(width, f64::powi(2.0, -(mantissa as i32)));
    let exponent = m.fma(power, unit, moved);
    Parts { bits, exponent, f }
}

/// log(1 + f) as a sum, the first term of which is a few times larger and exact.
fn log_of_mantissa<M: Math>(m: &mut M, width: Width, f: M::V) -> (M::V, M::V) {
    let square = m.mul(f, f);
    match width {
        Width::F32 => {
            let p = polynomial(m, width, F32, f);
            (f, m.mul(p, square))
        }
        Width::F64 => {
            // With s = f / (2 + f): log(1 + f) = f - f^2 / 2 + s (f^2 / 2 + s^2 P(s^2)).
            let two = m.float(width, 2.0);
            let sum = m.add(f, two);
            let s = m.div(f, sum);
            let z = m.mul(s, s);
            let p = polynomial(m, width, F64, z);
            let half = m.float(width, 0.5);
            let half_square = m.mul(square, half);
            let inner = m.fma(z, p, half_square);
            let minus = m.neg(half_square);
            (f, m.fma(s, inner, minus))
        }
    }
}

/// a + b + c, rounded nearly once, if a is 0 or larger than b, and b larger than c.
fn sum_of_three<M: Math>(m: &mut M, a: M::V, b: M::V, c: M::V) -> M::V {
    let sum = m.add(a, b);
    let left = m.sub(a, sum);
    let lost = m.add(left, b);
    let lost = m.add(lost, c);
    m.add(sum, lost)
}

/// The logarithm with -inf for 0, NaN for negative numbers, infinity and NaN unchanged.
fn special<M: Math>(m: &mut M, width: Width, x: M::V, bits: M::V, value: M::V) -> M::V {
    let limit = m.int(width, width.infinity());
    let finite = m.ult(bits, limit);
    let infinity = m.float(width, f64::INFINITY);
    let other = m.fma(x, infinity, infinity);
    let value = m.select(finite, value, other);
    let zero = m.float(width, 0.0);
    let is_zero = m.eq(x, zero);
    let lowest = m.float(width, f64::NEG_INFINITY);
    m.select(is_zero, lowest, value)
}
