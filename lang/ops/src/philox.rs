//! The random numbers of the language: Philox-4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as
//! easy as 1, 2, 3", 2011) and what is made of its words.
//!
//! May assume nothing. Guarantees that a number depends on seed and offset only, the same on every machine.

use crate::buf::Buf;
use crate::dtype::DType;
use crate::scalar::Scalar;

/// The block function: ten rounds of two multiplications.
pub fn philox(key: [u32; 2], counter: [u32; 4]) -> [u32; 4] {
    let [mut k0, mut k1] = key;
    let [mut c0, mut c1, mut c2, mut c3] = counter;
    for _ in 0..10 {
        let a = u64::from(c0) * 0xd251_1f53;
        let b = u64::from(c2) * 0xcd9e_8d57;
        (c0, c1, c2, c3) = ((b >> 32) as u32 ^ c1 ^ k0, b as u32, (a >> 32) as u32 ^ c3 ^ k1, a as u32);
        k0 = k0.wrapping_add(0x9e37_79b9);
        k1 = k1.wrapping_add(0xbb67_ae85);
    }
    [c0, c1, c2, c3]
}

/// The four words of the language at an offset: key = (seed low, seed high), counter = (offset, 0, 0, 0).
pub fn words(seed: u64, offset: u32) -> [u32; 4] {
    philox([seed as u32, (seed >> 32) as u32], [offset, 0, 0, 0])
}

/// A word as a number in [0, 1): 24 bits, exact in f32.
pub fn unit(word: u32) -> f64 {
    f64::from(word >> 8) / 16_777_216.0
}

/// Box-Muller of two words: `sqrt(-2 ln(u)) * cos(2 pi v)` with `v = unit(second)` and `u = unit(first) + 2^-24`, which
/// is in (0, 1] so that the logarithm is finite.
pub fn normal(first: u32, second: u32) -> f64 {
    let u = unit(first) + 1.0 / 16_777_216.0;
    let radius = (-2.0 * libm::log(u)).sqrt();
    radius * libm::cos(std::f64::consts::TAU * unit(second))
}

/// Number `i` of [`randn`].
pub fn normal_at(seed: u64, i: usize) -> f64 {
    let [a, b, _, _] = words(seed, i as u32);
    normal(a, b)
}

/// `n` normal numbers: offsets 0, 1, ..; words 0 and 1 of each.
pub fn randn(seed: u64, n: usize) -> Vec<f64> {
    (0..n).map(|i| normal_at(seed, i)).collect()
}

/// `n` uniform numbers in [0, 1): offsets 0, 1, ..; word 0 of each.
pub fn uniform(seed: u64, n: usize) -> Vec<f64> {
    let number = |i: usize| {
        let [word, _, _, _] = words(seed, i as u32);
        unit(word)
    };
    (0..n).map(number).collect()
}

/// `n` uniform numbers in [low, high) of a number type. Integers are rounded down; a float that would round up to
/// `high` becomes `low`.
pub fn uniform_between(seed: u64, low: Scalar, high: Scalar, dtype: DType, n: usize) -> Buf {
    let value = |s: Scalar| s.as_f64().or(s.as_int().map(|i| i as f64)).unwrap_or(0.0);
    let (lo, hi) = (value(low), value(high));
    let first = Scalar::float(dtype, lo);
    let mut out = Buf::splat(first, n);
    for (i, u) in uniform(seed, n).into_iter().enumerate() {
        let x = lo + (hi - lo) * u;
        let rounded = Scalar::float(dtype, if dtype.is_int() { x.floor() } else { x });
        if value(rounded) < hi {
            out.set(i, rounded);
        }
    }
    out
}
