//! Powers of e and of 2, and the hyperbolic cosine.
//!
//! 2^x = 2^n * 2^f with n whole and |f| <= 1/2; cosh(x) = (e^x + e^-x) / 2. Accepts any x. Guarantees 2 ulp.

use std::f64::consts::{LN_2, LOG2_E};

use super::log::log2_e;
use super::primitives::{Approx, Math, Width, polynomial, shift_left, shortcut};

/// (2^f - 1) / f for |f| <= 0.501; the relative error of 2^f is 2^-26.2.
const F32: &[f64] = &[LN_2, 0.24022594, 0.055503663, 0.009625437, 0.0013387953, 0.00013338894];
/// The same; the relative error of 2^f is 2^-54.8.
const F64: &[f64] = &[
    LN_2,
    0.24022650695910133,
    0.05550410866482006,
    0.009618129107593569,
    0.0013333558146780184,
    0.00015403530457877088,
    1.5252733489383508e-05,
    1.3215434870618053e-06,
    1.017820048271095e-07,
    7.073858582895264e-09,
    4.4347280063825316e-10,
];

/// Beyond these, 2^x of the width is zero or infinity.
fn range(width: Width) -> (f64, f64) {
    match width {
        Width::F32 => (-151.0, 129.0),
        Width::F64 => (-1076.0, 1025.0),
    }
}

/// e^x.
pub(super) fn exp<M: Math>(m: &mut M, width: Width, fast: bool, x: M::V) -> M::V {
    let (high, _) = log2_e(width);
    let high = m.float(width, high);
    if fast && width == Width::F32 {
        let t = m.mul(x, high);
        if let Some(r) = m.approx(Approx::Exp2Flush, t) {
            return r;
        }
    }
    if width == Width::F32
        && let Some(r) = exp_by_approximation(m, x)
    {
        return r;
    }
    let (least, most) = range(width);
    let x = clamp(m, width, x, least / LOG2_E, most / LOG2_E);
    let whole = m.float(width, width.whole());
    let shifted = m.fma(x, high, whole);
    let n = m.sub(shifted, whole);
    let f = rest(m, width, x, n);
    scaled(m, width, f, shifted)
}

/// x log2(e) - n; the first product is rounded only after the subtraction, so nothing is lost.
fn rest<M: Math>(m: &mut M, width: Width, x: M::V, n: M::V) -> M::V {
    let (high, low) = log2_e(width);
    let (high, low) = (m.float(width, high), m.float(width, low));
    let n = m.neg(n);
    let f = m.fma(x, high, n);
    m.fma(x, low, f)
}

/// e^x of f32 by the target's 2^f, in eight operations.
///
/// n is clamped to -126..126, so that 2^n is a normal number; f is the remainder and may be large, which the target's
/// function turns into zero or infinity. So a subnormal result is rounded once. f has an error of 2^-26, which is 0.2
/// ulp of the result; the product by 2^n is exact; the rest of the error is that of the approximation.
fn exp_by_approximation<M: Math>(m: &mut M, x: M::V) -> Option<M::V> {
    let (n, shifted) = whole_part(m, x, LOG2_E)?;
    let f = rest(m, Width::F32, x, n);
    raised(m, f, shifted)
}

/// 2^x of f32 by the target's 2^f. The target's function alone has an error of 2.4 ulp just below a power of two
/// (measured on an H200, all floats); from 1 to 2, where an ulp is as large as it can be, the same error is 1 ulp.
fn exp2_by_approximation<M: Math>(m: &mut M, x: M::V) -> Option<M::V> {
    let (n, shifted) = whole_part(m, x, 1.0)?;
    let f = m.sub(x, n);
    raised(m, f, shifted)
}

/// n = the whole part of `x * scale`, rounded down, within -126..126, and n plus [`Width::whole`] and the bias of
/// exponents.
fn whole_part<M: Math>(m: &mut M, x: M::V, scale: f64) -> Option<(M::V, M::V)> {
    let width = Width::F32;
    /// Half the span of n.
    const SPAN: f64 = 126.0;
    let slope = m.float(width, scale / (2.0 * SPAN));
    // Half a unit less than the middle: rounding to the nearest then rounds down.
    let middle = m.float(width, 0.5 - 0.5 / (2.0 * SPAN));
    let part = m.saturated_fma(x, slope, middle)?;
    let bias = width.bias() as f64;
    let span = m.float(width, 2.0 * SPAN);
    let lowest = m.float(width, width.whole() + bias - SPAN);
    let shifted = m.fma(part, span, lowest);
    let zero = m.float(width, width.whole() + bias);
    Some((m.sub(shifted, zero), shifted))
}

/// 2^(n + f) by the target's 2^f; `shifted` as from [`whole_part`].
fn raised<M: Math>(m: &mut M, f: M::V, shifted: M::V) -> Option<M::V> {
    let width = Width::F32;
    let power = m.approx(Approx::Exp2Flush, f)?;
    let bits = m.to_bits(shifted);
    let bits = shift_left(m, width, bits, width.mantissa());
    let scale = m.as_float(bits);
    Some(m.mul(power, scale))
}

/// 2^x.
pub(super) fn exp2<M: Math>(m: &mut M, width: Width, fast: bool, x: M::V) -> M::V {
    if let Some(r) = shortcut(m, width, fast, Approx::Exp2Flush, x) {
        return r;
    }
    if width == Width::F32
        && let Some(r) = exp2_by_approximation(m, x)
    {
        return r;
    }
    let (least, most) = range(width);
    let x = clamp(m, width, x, least, most);
    let whole = m.float(width, width.whole());
    let shifted = m.add(x, whole);
    let n = m.sub(shifted, whole);
    let f = m.sub(x, n);
    scaled(m, width, f, shifted)
}

/// The hyperbolic cosine: h + 1 / 4h with h = e^|x| / 2, which is finite where e^x overflows. An error of h has the
/// opposite sign in the second term, and an error of the second term is small where the first one is large.
///
/// The power is not the one by the target's 2^f, whose error exceeds 2 ulp together with the rounding of the sum.
pub(super) fn cosh<M: Math>(m: &mut M, width: Width, fast: bool, x: M::V) -> M::V {
    let size = m.abs(x);
    let half = half_exp(m, width, fast, size);
    let quarter = m.float(width, 0.25);
    if width == Width::F32
        && let Some(inverse) = m.approx(Approx::RecipFlush, half)
    {
        return m.fma(inverse, quarter, half);
    }
    let inverse = m.div(quarter, half);
    m.add(half, inverse)
}

/// e^x / 2 for nonnegative x.
fn half_exp<M: Math>(m: &mut M, width: Width, fast: bool, x: M::V) -> M::V {
    let (high, _) = log2_e(width);
    let high = m.float(width, high);
    let one = m.float(width, 1.0);
    if fast && width == Width::F32 {
        let minus_one = m.neg(one);
        let t = m.fma(x, high, minus_one);
        if let Some(r) = m.approx(Approx::Exp2Flush, t) {
            return r;
        }
    }
    let (_, most) = range(width);
    let most = m.float(width, (most + 1.0) / LOG2_E);
    let above = m.lt(most, x);
    let x = m.select(above, most, x);
    let whole = m.float(width, width.whole());
    let shifted = m.fma(x, high, whole);
    let n = m.sub(shifted, whole);
    let f = rest(m, width, x, n);
    let halved = m.sub(shifted, one);
    scaled(m, width, f, halved)
}

/// The nearest value in `least..=most`; NaN stays.
pub(super) fn clamp<M: Math>(m: &mut M, width: Width, x: M::V, least: f64, most: f64) -> M::V {
    let (least, most) = (m.float(width, least), m.float(width, most));
    let below = m.lt(x, least);
    let x = m.select(below, least, x);
    let above = m.lt(most, x);
    m.select(above, most, x)
}

/// 2^f for |f| <= 0.501.
fn power_of_fraction<M: Math>(m: &mut M, width: Width, f: M::V) -> M::V {
    let coefficients = match width {
        Width::F32 => F32,
        Width::F64 => F64,
    };
    let p = polynomial(m, width, coefficients, f);
    let one = m.float(width, 1.0);
    m.fma(p, f, one)
}

/// 2^(n + f), where `shifted` is n plus [`Width::whole`].
pub(super) fn scaled<M: Math>(m: &mut M, width: Width, f: M::V, shifted: M::V) -> M::V {
    let p = power_of_fraction(m, width, f);
    scale(m, width, p, shifted)
}

/// p 2^n for p near 1, where `shifted` is n plus [`Width::whole`].
///
/// 2^n itself may be too large or too small for the width; two powers are not, and the first product is exact.
fn scale<M: Math>(m: &mut M, width: Width, p: M::V, shifted: M::V) -> M::V {
    let whole = m.float(width, width.whole());
    let (shifted, whole) = (m.to_bits(shifted), m.to_bits(whole));
    let n = m.isub(shifted, whole);
    let one = m.int(width, 1);
    let first = m.ashr(n, one);
    let second = m.isub(n, first);
    let bias = m.int(width, width.bias());
    let mut p = p;
    for part in [first, second] {
        let part = m.iadd(part, bias);
        let part = shift_left(m, width, part, width.mantissa());
        let part = m.as_float(part);
        p = m.mul(p, part);
    }
    p
}
