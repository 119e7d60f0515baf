//! The error function.
//!
//! Accepts any x. Guarantees 2 ulp. Branch-free: computes both a polynomial near zero and 1 - 2^q(x) elsewhere.

use super::exp;
use super::primitives::{Approx, Math, Width, polynomial, with_sign_of};

/// erf(x) / x - 1 as a polynomial of x^2 for |x| <= 0.93; the relative error of erf is 2^-30.
const F32_SMALL: &[f64] =
    &[0.12837917, -0.3761263, 0.11283626, -0.026855731, 0.005192405, -0.0008049769, 7.996642e-05];
/// log2(1 - erf(x)) for 0.92 <= x <= 4; the relative error of erf is 2^-34. Beyond 4 the value stays below -25.9.
const F32_LARGE: &[f64] = &[
    0.0002520149,
    -1.6295456,
    -0.9137265,
    -0.15621504,
    0.036239587,
    -0.006017534,
    0.0006267886,
    -3.043294e-05,
];
/// The first for f64 and |x| <= 1; the error is 2^-56.3.
const F64_SMALL: &[f64] = &[
    0.1283791670955126,
    -0.3761263890318375,
    0.11283791670954857,
    -0.02686617064507289,
    0.005223977624780827,
    -0.0008548326978740135,
    0.00012055331036831225,
    -1.4925593505399197e-05,
    1.6460972795307923e-06,
    -1.6350025013555397e-07,
    1.4657878565059675e-08,
    -1.136566148038592e-09,
    5.945254870251626e-11,
];
/// The second for f64 and 1 <= x <= 5.95; the error is 2^-57.
const F64_LARGE: &[f64] = &[
    -2.5915445980168367e-07,
    -1.6279043769882968,
    -0.9184607648420886,
    -0.14823294795906808,
    0.02752395264689326,
    0.000404672404753132,
    -0.002552144054407168,
    0.0009250312145715126,
    -6.467581369031482e-05,
    -0.00010151136095910241,
    6.497229153582371e-05,
    -2.3823506601590327e-05,
    6.242295203153244e-06,
    -1.2270519708605826e-06,
    1.8134284570231335e-07,
    -1.9657851155015303e-08,
    1.4796636858725089e-09,
    -6.918656825617381e-11,
    1.5141488072169762e-12,
];

/// Both tables, the limit between them, and the upper limit of the second, above which erf is 1.
fn segments(width: Width) -> (&'static [f64], &'static [f64], f64, Option<f64>) {
    match width {
        Width::F32 => (F32_SMALL, F32_LARGE, 0.925, None),
        Width::F64 => (F64_SMALL, F64_LARGE, 1.0, Some(5.95)),
    }
}

/// The error function.
pub(super) fn erf<M: Math>(m: &mut M, width: Width, x: M::V) -> M::V {
    let (small, large, limit, most) = segments(width);
    let size = m.abs(x);
    let square = m.mul(x, x);
    let p = polynomial(m, width, small, square);
    let small = m.fma(size, p, size);
    let mut bounded = size;
    if let Some(most) = most {
        let most = m.float(width, most);
        let above = m.lt(most, size);
        bounded = m.select(above, most, size);
    }
    let q = polynomial(m, width, large, bounded);
    let rest = complement(m, width, q);
    let one = m.float(width, 1.0);
    let large = m.sub(one, rest);
    let limit = m.float(width, limit);
    let near = m.lt(size, limit);
    let size = m.select(near, small, large);
    with_sign_of(m, width, size, x)
}

/// 2^q; a subnormal result vanishes beside 1.
fn complement<M: Math>(m: &mut M, width: Width, q: M::V) -> M::V {
    if width == Width::F32
        && let Some(r) = m.approx(Approx::Exp2Flush, q)
    {
        return r;
    }
    exp::exp2(m, width, false, q)
}
