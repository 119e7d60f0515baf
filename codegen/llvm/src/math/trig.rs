//! Sines and cosines.
//!
//! x = q pi/2 + r with q whole and |r| <= pi/4. Accepts any x. Guarantees 2 ulp for every angle. Angles beyond
//! [`limit`] take a branch.

use std::f64::consts::{FRAC_2_PI, FRAC_PI_2};

use super::primitives::{Approx, Math, Width, polynomial, shift_left, shortcut};

/// (sin(r) / r - 1) / r^2 as a polynomial of r^2 for |r| <= 0.7855; the relative error of the sine is 2^-27.9.
const SIN_F32: &[f64] = &[-0.16666655, 0.008332189, -0.00019518283];
/// (cos(r) - 1 + r^2 / 2) / r^4 as a polynomial of r^2; the relative error of the cosine is 2^-33.
const COS_F32: &[f64] = &[0.041666646, -0.001388731, 2.443236e-05];
/// The sine for f64; the error is 2^-56.4.
const SIN_F64: &[f64] = &[
    -0.1666666666666663,
    0.008333333333322104,
    -0.00019841269829577344,
    2.755731361700237e-06,
    -2.5050747054091947e-08,
    1.589618784281512e-10,
];
/// The cosine for f64; the error is 2^-59.6.
const COS_F64: &[f64] = &[
    0.041666666666666595,
    -0.0013888888888873036,
    2.4801587288838432e-05,
    -2.7557314175360133e-07,
    2.0875700293438853e-09,
    -1.135850744817726e-11,
];

/// pi/2 as the sum of three floats of the width, each the first bits of the remainder: all are positive.
fn half_pi(width: Width) -> [f64; 3] {
    match width {
        // 1.5707963, 1 ulp below the nearest f32.
        Width::F32 => [f64::from(f32::from_bits(0x3fc9_0fda)), 7.5497894e-08, 5.3903025e-15],
        Width::F64 => [FRAC_PI_2, 6.123233995736765e-17, 1.0828566739219139e-32],
    }
}

/// Up to this angle the three floats of [`half_pi`] suffice: their products with q are exact where they cancel, and the
/// remainder is small beside the smallest r that occurs.
fn limit(width: Width) -> f64 {
    match width {
        Width::F32 => 1_048_576.0,
        Width::F64 => 1_073_741_824.0,
    }
}

/// The sine.
pub(super) fn sin<M: Math>(m: &mut M, width: Width, fast: bool, x: M::V) -> M::V {
    if let Some(r) = shortcut(m, width, fast, Approx::SinFlush, x) {
        return r;
    }
    let [r, rest, q] = reduce(m, width, x);
    of_quadrant(m, width, [r, rest, q])
}

/// The cosine: the sine advanced by a quarter turn.
pub(super) fn cos<M: Math>(m: &mut M, width: Width, fast: bool, x: M::V) -> M::V {
    if let Some(r) = shortcut(m, width, fast, Approx::CosFlush, x) {
        return r;
    }
    let [r, rest, q] = reduce(m, width, x);
    let one = m.int(width, 1);
    let q = m.iadd(q, one);
    of_quadrant(m, width, [r, rest, q])
}

/// The cosine of `x` whole turns, 0 <= x < 1, for f32. The angle is reduced before it is multiplied, which is exact:
/// near a root, a rounded angle would leave no correct bits of the cosine.
pub fn cos_of_turns<M: Math>(m: &mut M, x: M::V) -> M::V {
    let width = Width::F32;
    let four = m.float(width, 4.0);
    let whole = m.float(width, width.whole());
    let quarters = m.mul(x, four);
    let shifted = m.add(quarters, whole);
    let n = m.sub(shifted, whole);
    let rest = m.sub(quarters, n);
    let quarter_turn = m.float(width, FRAC_PI_2);
    let r = m.mul(rest, quarter_turn);
    let one = m.int(width, 1);
    let q = m.to_bits(shifted);
    let q = m.iadd(q, one);
    let none = m.float(width, 0.0);
    of_quadrant(m, width, [r, none, q])
}

/// sin(r + rest + q pi/2); of q only the last two bits matter, and the rest does not affect the cosine.
///
/// The rest is added to the small part of the sine: added to r, it would cost a rounding, which counts twice where the
/// sine is below a power of two and r above.
fn of_quadrant<M: Math>(m: &mut M, width: Width, [r, rest, q]: [M::V; 3]) -> M::V {
    let (sine, cosine) = match width {
        Width::F32 => (SIN_F32, COS_F32),
        Width::F64 => (SIN_F64, COS_F64),
    };
    let square = m.mul(r, r);
    let p = polynomial(m, width, sine, square);
    // Adding +0 makes the cube of -0 positive, and its product with p negative: so both sums stay -0.
    let zero = m.float(width, 0.0);
    let cube = m.fma(square, r, zero);
    let small = m.fma(cube, p, rest);
    let sine = m.add(r, small);
    let p = polynomial(m, width, cosine, square);
    let minus_half = m.float(width, -0.5);
    let p = m.fma(p, square, minus_half);
    let one = m.float(width, 1.0);
    let cosine = m.fma(p, square, one);

    let bit = m.int(width, 1);
    let odd = m.and(q, bit);
    let odd = m.ieq(odd, bit);
    let value = m.select(odd, cosine, sine);
    let half_turn = m.int(width, 2);
    let transposed = m.and(q, half_turn);
    let sign = shift_left(m, width, transposed, width.mantissa() + width.exponent() - 1);
    let bits = m.to_bits(value);
    let bits = m.xor(bits, sign);
    m.as_float(bits)
}

/// r in two parts, the second of which is small, and an integer with the last bits of q.
fn reduce<M: Math>(m: &mut M, width: Width, x: M::V) -> [M::V; 3] {
    let turns = m.float(width, FRAC_2_PI);
    let whole = m.float(width, width.whole());
    let shifted = m.fma(x, turns, whole);
    // -q, for the products; -0 for 0, so that x = -0 keeps its sign.
    let n = m.sub(shifted, whole);
    let n = m.neg(n);
    let [first, second, third] = half_pi(width).map(|part| m.float(width, part));
    let r = m.fma(n, first, x);
    let r = m.fma(n, second, r);
    let rest = m.mul(n, third);
    let q = m.to_bits(shifted);
    let size = m.abs(x);
    let limit = m.float(width, limit(width));
    let large = m.lt(limit, size);
    m.rarely(large, [r, rest, q], |m| reduce_large(m, width, x))
}

/// The first bits of 2/pi after 64 zeros, as many as the largest exponent of f64 needs.
const TWO_OVER_PI: [u64; 20] = [
    0x0000000000000000,
    0xa2f9836e4e441529,
    0xfc2757d1f534ddc0,
    0xdb6295993c439041,
    0xfe5163abdebbc561,
    0xb7246e3a424dd2e0,
    0x06492eea09d1921c,
    0xfe1deb1cb129a73e,
    0xe88235f52ebb4484,
    0xe99c7026b45f7e41,
    0x3991d639835339f4,
    0x9c845f8bbdf9283b,
    0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f,
    0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea,
    0x6bfb5fb11f8d5d08,
    0x56033046fc7b6bab,
];

/// The result of [`reduce`] for an angle beyond [`limit`], by the method of Payne and Hanek; for infinity r is NaN.
///
/// x = M 2^E with a whole M. The bits of 2/pi that become whole multiples of 4 with 2^E change only whole turns; those
/// after the next 192 are too small to matter. M times these 192 bits gives q and 126 bits of a fraction of a quarter
/// turn, of which at most 62 are zero.
fn reduce_large<M: Math>(m: &mut M, width: Width, x: M::V) -> [M::V; 3] {
    const WIDE: Width = Width::F64;
    let wide = match width {
        Width::F32 => m.widen(x),
        Width::F64 => x,
    };
    let size = m.abs(wide);
    let bits = m.to_bits(size);
    let shift = m.int(WIDE, i64::from(WIDE.mantissa()));
    let exponent = m.lshr(bits, shift);
    let first = m.int(WIDE, 1 << WIDE.mantissa());
    let mask = m.int(WIDE, (1 << WIDE.mantissa()) - 1);
    let mantissa = m.and(bits, mask);
    let mantissa = m.or(mantissa, first);
    let window = window(m, width, exponent);
    let (top, next) = product(m, mantissa, window);

    // The first two bits are q; the fraction after them is moved between -1/2 and 1/2.
    let half = m.int(WIDE, 1 << 61);
    let q = m.iadd(top, half);
    let by = m.int(WIDE, 62);
    let q = m.lshr(q, by);
    let r = quarter_turns(m, top, next);

    let zero = m.float(WIDE, 0.0);
    let negative = m.lt(wide, zero);
    let minus_r = m.neg(r);
    let r = m.select(negative, minus_r, r);
    let none = m.int(WIDE, 0);
    let minus_q = m.isub(none, q);
    let q = m.select(negative, minus_q, q);
    let infinity = m.float(WIDE, f64::INFINITY);
    let finite = m.lt(size, infinity);
    let nan = m.float(WIDE, f64::NAN);
    let r = m.select(finite, r, nan);
    let rest = m.float(width, 0.0);
    match width {
        Width::F32 => [m.narrow(r), rest, m.low_half(q)],
        Width::F64 => [r, rest, q],
    }
}

/// The 192 bits of [`TWO_OVER_PI`] of which the first has weight 2 in the product with a mantissa of the exponent.
fn window<M: Math>(m: &mut M, width: Width, exponent: M::V) -> [M::V; 3] {
    const WIDE: Width = Width::F64;
    // Bit k of 2/pi (the first is 1) is at k + 63 of the table and has weight 2^(exponent - 1075 - k).
    let before = m.int(WIDE, 1013);
    let position = m.isub(exponent, before);
    let one = m.int(WIDE, 1);
    let six = m.int(WIDE, 6);
    let index = m.lshr(position, six);
    // The largest exponent of f32 gives index 2, that of f64 16.
    let steps: &[usize] = match width {
        Width::F32 => &[2, 1],
        Width::F64 => &[16, 8, 4, 2, 1],
    };
    let mut words: Vec<M::V> = TWO_OVER_PI.iter().map(|&word| m.int(WIDE, word.cast_signed())).collect();
    // Four words from the index on: each bit of the index halves the remaining distance.
    for &step in steps {
        let bit = m.int(WIDE, step as i64);
        let set = m.and(index, bit);
        let set = m.ieq(set, bit);
        let zero = m.int(WIDE, 0);
        let moved = words.iter().skip(step).copied().chain(std::iter::repeat(zero));
        let pairs: Vec<_> = words.iter().copied().zip(moved).take(step + 3).collect();
        words = pairs.into_iter().map(|(stay, go)| m.select(set, go, stay)).collect();
    }
    let low = m.int(WIDE, 63);
    let shift = m.and(position, low);
    let back = m.isub(low, shift);
    let mut after = words.iter().copied().skip(1);
    let mut window = [shift; 3];
    for (out, &word) in window.iter_mut().zip(&words) {
        let next = after.next().unwrap_or(word);
        let high = m.shl(word, shift);
        let next = m.lshr(next, one);
        let next = m.lshr(next, back);
        *out = m.or(high, next);
    }
    window
}

/// The first two words of the product of a number and three words, modulo overflow.
fn product<M: Math>(m: &mut M, a: M::V, [first, second, third]: [M::V; 3]) -> (M::V, M::V) {
    const WIDE: Width = Width::F64;
    let top = m.imul(a, first);
    let high = m.umulhi(a, second);
    let top = m.iadd(top, high);
    let low = m.imul(a, second);
    let rest = m.umulhi(a, third);
    let next = m.iadd(low, rest);
    let overflows = m.ult(next, low);
    let (zero, one) = (m.int(WIDE, 0), m.int(WIDE, 1));
    let carry = m.select(overflows, one, zero);
    (m.iadd(top, carry), next)
}

/// The fraction after the first two bits, as a signed part of a quarter turn, in radians.
fn quarter_turns<M: Math>(m: &mut M, top: M::V, next: M::V) -> M::V {
    const WIDE: Width = Width::F64;
    let two = m.int(WIDE, 2);
    let by = m.int(WIDE, 62);
    let top = m.shl(top, two);
    let over = m.lshr(next, by);
    let top = m.or(top, over);
    let next = m.shl(next, two);
    // The first 53 bits are one float, the last 11 of them and 53 more another.
    let eleven = m.int(WIDE, 11);
    let tail = m.int(WIDE, (1 << 11) - 1);
    let low = m.and(top, tail);
    let high = m.isub(top, low);
    let next = m.lshr(next, eleven);
    let (high, low, next) = (m.to_float(high), m.to_float(low), m.to_float(next));
    let unit = m.float(WIDE, f64::powi(2.0, -64));
    let small = m.float(WIDE, f64::powi(2.0, -117));
    let high = m.mul(high, unit);
    let low = m.mul(low, unit);
    let low = m.fma(next, small, low);
    let [first, second, _] = half_pi(WIDE).map(|part| m.float(WIDE, part));
    let r = m.mul(high, first);
    let minus = m.neg(r);
    let lost = m.fma(high, first, minus);
    let lost = m.fma(high, second, lost);
    let lost = m.fma(low, first, lost);
    m.add(r, lost)
}
