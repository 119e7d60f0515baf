//! Roots and the quotient.
//!
//! Accepts any operands. Guarantees correct rounding of the quotient and the root, and 2 ulp of the reciprocal root.

use super::primitives::{Approx, Math, Width, shortcut};

/// The square root, correctly rounded; with `fast` one operation on targets that approximate it.
pub(super) fn sqrt<M: Math>(m: &mut M, width: Width, fast: bool, x: M::V) -> M::V {
    match shortcut(m, width, fast, Approx::SqrtFlush, x) {
        Some(r) => r,
        None => m.sqrt(x),
    }
}

/// 1 / sqrt(x). A target's approximation of f32 meets the bound by itself; elsewhere two correctly rounded operations
/// do.
pub(super) fn rsqrt<M: Math>(m: &mut M, width: Width, fast: bool, x: M::V) -> M::V {
    if let Some(r) = shortcut(m, width, fast, Approx::RsqrtFlush, x) {
        return r;
    }
    if let Some(r) = shortcut(m, width, true, Approx::Rsqrt, x) {
        return r;
    }
    let root = m.sqrt(x);
    let one = m.float(width, 1.0);
    m.div(one, root)
}

/// a / b, correctly rounded. With `fast` the reciprocal is rounded before the product, and is zero for |b| > 2^126.
pub(super) fn div<M: Math>(m: &mut M, width: Width, fast: bool, a: M::V, b: M::V) -> M::V {
    match shortcut(m, width, fast, Approx::RecipFlush, b) {
        Some(r) => m.mul(a, r),
        None => m.div(a, b),
    }
}
