//! The hyperbolic tangent.
//!
//! Accepts any x. Guarantees 2 ulp. Branch-free: computes both a polynomial near zero and 1 - 2 / (e^2x + 1) elsewhere.

use std::f64::consts::LOG2_E;

use super::exp;
use super::primitives::{Approx, Math, Width, polynomial, shortcut, with_sign_of};

/// (tanh(x) / x - 1) / x^2 as a polynomial of x^2 for |x| <= 0.65; the relative error of the tangent is 2^-27.1.
const F32: &[f64] = &[-0.3333326, 0.13330829, -0.053687923, 0.020469122, -0.0055148695];
/// The same for |x| <= 0.75; the error is 2^-55.8.
const F64: &[f64] = &[
    -0.3333333333333327,
    0.13333333333324177,
    -0.053968253963723296,
    0.021869488422948977,
    -0.008863233856281377,
    0.0035921120748372056,
    -0.0014557310122475565,
    0.0005895588150826591,
    -0.00023761864584619265,
    9.344081410450394e-05,
    -3.361500200942432e-05,
    9.491275700295045e-06,
    -1.4853919710320454e-06,
];

/// The coefficients, and the limit up to which they apply.
fn near_zero(width: Width) -> (&'static [f64], f64) {
    match width {
        Width::F32 => (F32, 0.65),
        Width::F64 => (F64, 0.75),
    }
}

/// The hyperbolic tangent.
pub(super) fn tanh<M: Math>(m: &mut M, width: Width, fast: bool, x: M::V) -> M::V {
    if let Some(r) = shortcut(m, width, fast, Approx::Tanh, x) {
        return r;
    }
    let a = m.abs(x);
    let (coefficients, limit) = near_zero(width);
    let square = m.mul(x, x);
    let p = polynomial(m, width, coefficients, square);
    let cube = m.mul(a, square);
    let small = m.fma(cube, p, a);
    let large = away_from_zero(m, width, a);
    let limit = m.float(width, limit);
    let near = m.lt(a, limit);
    let size = m.select(near, small, large);
    with_sign_of(m, width, size, x)
}

/// 1 - 2 / (e^2a + 1). The larger a is, the less the errors of the power and the quotient matter.
fn away_from_zero<M: Math>(m: &mut M, width: Width, a: M::V) -> M::V {
    let one = m.float(width, 1.0);
    let minus_two = m.float(width, -2.0);
    if width == Width::F32 {
        let twice = m.float(width, 2.0 * LOG2_E);
        let t = m.mul(a, twice);
        if let Some(power) = m.approx(Approx::Exp2Flush, t) {
            let sum = m.add(power, one);
            if let Some(r) = m.approx(Approx::RecipFlush, sum) {
                return m.fma(minus_two, r, one);
            }
        }
    }
    let twice = m.add(a, a);
    let power = exp::exp(m, width, false, twice);
    let sum = m.add(power, one);
    let quotient = m.div(minus_two, sum);
    m.add(quotient, one)
}
