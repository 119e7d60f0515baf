//! Powers of two operands.
//!
//! x^y = 2^(y log2 |x|), the logarithm as the sum of two floats: the product may be as large as the exponent range, and
//! its absolute error is the relative error of the result. Accepts any operands. Guarantees 2 ulp and the special cases
//! of IEEE 754.

use super::exp;
use super::log::{Parts, split};
use super::primitives::{Approx, Math, Width, polynomial, with_sign_of};

/// (atanh(s) / s - 1 - s^2 / 3) / s^4 as a polynomial of s^2 for |s| <= 0.2; the relative error of the logarithm is
/// 2^-34.5.
const F32: &[f64] = &[0.20000196, 0.14262807, 0.11936549];
/// The same for f64; the error is 2^-66.3.
const F64: &[f64] = &[
    0.1999999999999986,
    0.14285714285789675,
    0.11111111095439898,
    0.09090910779878073,
    0.07692202464910869,
    0.06670596976859412,
    0.057958039317640576,
    0.06288049202123293,
];

/// The constants of a width.
struct Constants {
    series: &'static [f64],
    /// 1/3 as the sum of two floats.
    third: [f64; 2],
    /// 2 log2(e) as the sum of two floats.
    factor: [f64; 2],
    /// An exponent beyond which every result is zero or infinity.
    most: f64,
}

fn constants(width: Width) -> Constants {
    match width {
        Width::F32 => Constants {
            series: F32,
            third: [f64::from(1.0f32 / 3.0), -9.934108e-09],
            factor: [2.88539, 3.851926e-08],
            most: 160.0,
        },
        Width::F64 => Constants {
            series: F64,
            third: [1.0 / 3.0, 1.850371707708594e-17],
            factor: [2.8853900817779268, 4.0710547481862066e-17],
            most: 1100.0,
        },
    }
}

/// x to the power of y.
pub(super) fn pow<M: Math>(m: &mut M, width: Width, fast: bool, x: M::V, y: M::V) -> M::V {
    let size = m.abs(x);
    let power = match fast_power(m, width, fast, size, y) {
        Some(power) => power,
        None => power(m, width, size, y),
    };
    special(m, width, x, y, power)
}

/// x^y for x >= 0 by the target's approximations.
fn fast_power<M: Math>(m: &mut M, width: Width, fast: bool, x: M::V, y: M::V) -> Option<M::V> {
    if !fast || width != Width::F32 {
        return None;
    }
    let log = m.approx(Approx::Log2Flush, x)?;
    let product = m.mul(y, log);
    m.approx(Approx::Exp2Flush, product)
}

/// x^y for x >= 0, except where y is 0 or x is 1.
fn power<M: Math>(m: &mut M, width: Width, x: M::V, y: M::V) -> M::V {
    let [log, tail] = log2(m, width, x);
    // Zero, infinity and NaN have the logarithm that gives the right power.
    let infinity = m.float(width, f64::INFINITY);
    let finite = m.lt(x, infinity);
    let log = m.select(finite, log, x);
    let zero = m.float(width, 0.0);
    let is_zero = m.eq(x, zero);
    let lowest = m.float(width, f64::NEG_INFINITY);
    let log = m.select(is_zero, lowest, log);

    let product = m.mul(y, log);
    let minus = m.neg(product);
    let lost = m.fma(y, log, minus);
    let lost = m.fma(y, tail, lost);
    let Constants { most, .. } = constants(width);
    let size = m.abs(product);
    let limit = m.float(width, most);
    let inside = m.lt(size, limit);
    let lost = m.select(inside, lost, zero);
    let product = exp::clamp(m, width, product, -most, most);

    let whole = m.float(width, width.whole());
    let shifted = m.add(product, whole);
    let n = m.sub(shifted, whole);
    let f = m.sub(product, n);
    let f = m.add(f, lost);
    exp::scaled(m, width, f, shifted)
}

/// log2(x) of a positive finite number, as the sum of two floats.
///
/// With s = f / (2 + f): log2(1 + f) = 2 log2(e) (s + s^3 (1/3 + s^2 P(s^2))). All but s^2 P is computed in two floats.
fn log2<M: Math>(m: &mut M, width: Width, x: M::V) -> [M::V; 2] {
    let c = constants(width);
    let [third, third_rest] = c.third.map(|part| m.float(width, part));
    let [factor, factor_rest] = c.factor.map(|part| m.float(width, part));
    let Parts { exponent, f, .. } = split(m, width, x);
    let [s, s_rest] = quotient(m, width, f);

    let [z, z_rest] = product(m, s, s);
    let twice = m.add(s, s);
    let z_rest = m.fma(twice, s_rest, z_rest);

    let p = polynomial(m, width, c.series, z);
    let p = m.mul(p, z);
    let [p, p_rest] = sum(m, third, p);
    let p_rest = m.add(p_rest, third_rest);

    let [u, u_rest] = product(m, z, p);
    let u_rest = m.fma(z, p_rest, u_rest);
    let u_rest = m.fma(z_rest, p, u_rest);

    let [v, v_rest] = product(m, s, u);
    let v_rest = m.fma(s, u_rest, v_rest);
    let v_rest = m.fma(s_rest, u, v_rest);

    let [w, w_rest] = sum(m, s, v);
    let rest = m.add(v_rest, s_rest);
    let w_rest = m.add(w_rest, rest);

    let [t, t_rest] = product(m, w, factor);
    let t_rest = m.fma(w, factor_rest, t_rest);
    let t_rest = m.fma(w_rest, factor, t_rest);

    let [log, rest] = sum(m, exponent, t);
    let rest = m.add(rest, t_rest);
    // The first of the two absorbs as much as it can of the second, so that the product with y is exact.
    sum(m, log, rest)
}

/// f / (2 + f) as the sum of two floats. The error of the first is computed from it, so that it need not be rounded
/// well.
fn quotient<M: Math>(m: &mut M, width: Width, f: M::V) -> [M::V; 2] {
    let two = m.float(width, 2.0);
    let sum = m.add(f, two);
    let reciprocal = match width {
        Width::F32 => m.approx(Approx::RecipFlush, sum),
        Width::F64 => None,
    };
    let reciprocal = match reciprocal {
        Some(reciprocal) => reciprocal,
        None => {
            let one = m.float(width, 1.0);
            m.div(one, sum)
        }
    };
    let s = m.mul(f, reciprocal);
    let minus = m.neg(s);
    let rest = m.fma(minus, two, f);
    let rest = m.fma(minus, f, rest);
    [s, m.mul(rest, reciprocal)]
}

/// a b as the sum of two floats, exact.
fn product<M: Math>(m: &mut M, a: M::V, b: M::V) -> [M::V; 2] {
    let product = m.mul(a, b);
    let minus = m.neg(product);
    [product, m.fma(a, b, minus)]
}

/// a + b as the sum of two floats, exact if a is 0 or not smaller than b.
fn sum<M: Math>(m: &mut M, a: M::V, b: M::V) -> [M::V; 2] {
    let sum = m.add(a, b);
    let left = m.sub(a, sum);
    [sum, m.add(left, b)]
}

/// The power of |x| with the special cases and the sign.
fn special<M: Math>(m: &mut M, width: Width, x: M::V, y: M::V, power: M::V) -> M::V {
    let zero = m.float(width, 0.0);
    let one = m.float(width, 1.0);
    let infinity = m.float(width, f64::INFINITY);
    let lowest = m.float(width, f64::NEG_INFINITY);
    let nan = m.float(width, f64::NAN);
    let half = m.float(width, 0.5);

    let whole = is_whole(m, width, y);
    let half = m.mul(y, half);
    let even = is_whole(m, width, half);
    // A negative finite number has powers with whole exponents only; odd ones are negative.
    let below = m.lt(x, zero);
    let above = m.lt(lowest, x);
    let negative = m.and(below, above);
    let real = m.select(whole, power, nan);
    let power = m.select(negative, real, power);
    let signed = with_sign_of(m, width, power, x);
    let odd_power = m.select(whole, signed, power);
    let power = m.select(even, power, odd_power);

    // 1 to every power is 1, everything to the power 0 is, and -1 to an infinite one.
    let size = m.abs(x);
    let unit = m.eq(size, one);
    let size = m.abs(y);
    let endless = m.eq(size, infinity);
    let turning = m.and(unit, endless);
    let is_one = m.eq(x, one);
    let is_one = m.or(is_one, turning);
    let no_power = m.eq(y, zero);
    let is_one = m.or(is_one, no_power);
    m.select(is_one, one, power)
}

/// Returns true if a float is a whole number or infinite.
fn is_whole<M: Math>(m: &mut M, width: Width, y: M::V) -> M::V {
    let size = m.abs(y);
    // Floats from here on are whole; below, adding it leaves no bits for a fraction.
    let limit = m.float(width, f64::powi(2.0, width.mantissa() as i32));
    let near = m.add(size, limit);
    let near = m.sub(near, limit);
    let small = m.lt(size, limit);
    let near = m.select(small, near, size);
    m.eq(near, size)
}
