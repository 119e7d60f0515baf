//! The inputs: normally distributed numbers that follow from a seed and a position.
//!
//! Guarantees that the number of a position is the same whenever it is asked for, so that a reference needs no copy of
//! the inputs.

use half::f16;

/// Which input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// The first operand.
    X = 1,
    /// The second operand.
    Y = 2,
    /// What a row is multiplied with.
    Weight = 3,
    /// What is added to a row.
    Bias = 4,
}

/// The number at a position of an input.
pub fn normal(input: Input, at: usize) -> f32 {
    // Two uniform numbers make two normal ones (Box and Muller): neighbours share them.
    let bits = mix((input as u64) << 56 | (at as u64 >> 1));
    /// One more than the largest number of 32 bits.
    const SCALE: f32 = 4_294_967_296.0;
    // The logarithm of 0 is never asked for.
    let radius = (-2.0 * (((bits >> 32) as f32 + 1.0) / (SCALE + 512.0)).ln()).sqrt();
    let angle = std::f32::consts::TAU * (bits as u32 as f32 / SCALE);
    if at & 1 == 0 { radius * angle.cos() } else { radius * angle.sin() }
}

/// The same rounded to f16.
pub fn normal_f16(input: Input, at: usize) -> f16 {
    f16::from_f32(normal(input, at))
}

/// A number of an input that other languages make to the same bits: the sum of four uniform numbers, with a standard
/// deviation of 1.15. It is a multiple of 2^-15 below 4.
pub fn bell(input: Input, at: usize) -> f32 {
    let bits = mix((input as u64) << 56 | at as u64);
    let sum: u64 = [0, 16, 32, 48].iter().map(|shift| bits >> shift & 0xffff).sum();
    (sum as f32 - 131_070.0) / 32_768.0
}

/// SplitMix64's way to make neighbouring numbers differ in every bit.
fn mix(n: u64) -> u64 {
    let mut z = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// The values of the first positions, made by all cores.
pub fn many<T: Clone + Send + Default>(count: usize, value: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let mut out = vec![T::default(); count];
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let part = count.div_ceil(cores).max(1);
    std::thread::scope(|scope| {
        for (i, chunk) in out.chunks_mut(part).enumerate() {
            let value = &value;
            scope.spawn(move || {
                chunk.iter_mut().enumerate().for_each(|(j, slot)| *slot = value(i * part + j));
            });
        }
    });
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_normal_and_repeat() {
        let n = 1 << 16;
        let x = many(n, |i| normal(Input::X, i));
        let sums = x.iter().fold((0.0, 0.0), |(a, b), v| (a + f64::from(*v), b + f64::from(v * v)));
        assert!((sums.0 / n as f64).abs() < 0.02 && (sums.1 / n as f64 - 1.0).abs() < 0.03, "{sums:?}");
        assert!(x.iter().all(|v| v.is_finite()));
        assert_eq!(x[12_345], normal(Input::X, 12_345));
        assert_ne!(x[0], normal(Input::Y, 0));
    }

    #[test]
    fn numbers_of_other_languages() {
        // As `bell` of peers.py gives them.
        let first: Vec<f32> = (0..4).map(|at| bell(Input::X, at) * 32_768.0).collect();
        assert_eq!(first, [-27_519.0, -32_059.0, -82_213.0, 13_928.0]);
    }
}
