//! Reference results in double precision, and the tolerance of a result.

use half::f16;

use crate::data::{Input, normal, normal_f16};
use crate::work::Kind;

/// Columns of the inputs that all rows share repeat after that many.
pub const MOST_COLUMNS: usize = 1 << 16;
/// What layer normalization adds to the variance.
pub const EPS: f32 = 1e-5;
/// Norm of the difference over the norm of the reference, at most. Rounding to f16 alone gives 3e-4, and 7e-4 for
/// softmax over 65536 columns, whose results are subnormal; a wrong lane in a thousand gives more than this.
const NORM: f64 = 2e-3;
/// Difference of one element over its size, at most: four times the rounding to f16.
const RELATIVE: f64 = 2e-3;
/// Difference of one element that is near zero: between two subnormal numbers of f16 lie 6e-8; sums of differences
/// in f32 cancel to some 1e-6.
const ABSOLUTE: f64 = 5e-6;

/// One row of results: `cols` elements of which the first is at this position.
pub fn row(kind: Kind, first: usize, cols: usize) -> Vec<f64> {
    let x: Vec<f64> = match kind {
        Kind::Add => (first..first + cols).map(|i| f64::from(normal(Input::X, i))).collect(),
        Kind::Gelu { .. }
        | Kind::Softmax
        | Kind::SoftmaxLong
        | Kind::LayerNorm
        | Kind::NnSoftmax
        | Kind::NnLayerNorm => {
            (first..first + cols).map(|i| f64::from(normal_f16(Input::X, i).to_f32())).collect()
        }
    };
    match kind {
        Kind::Add => x.iter().zip(first..).map(|(v, i)| v + f64::from(normal(Input::Y, i))).collect(),
        Kind::Gelu { tanh: true } => x.iter().map(|v| 0.5 * v * (1.0 + inner(*v).tanh())).collect(),
        Kind::Gelu { tanh: false } => {
            x.iter().map(|v| 0.5 * v * (1.0 + libm::erf(v * std::f64::consts::FRAC_1_SQRT_2))).collect()
        }
        Kind::Softmax | Kind::SoftmaxLong | Kind::NnSoftmax => softmax(&x),
        Kind::LayerNorm | Kind::NnLayerNorm => {
            layer_norm(&x, |input, c| f64::from(normal_f16(input, c).to_f32()))
        }
    }
}

/// The argument of `tanh` in the approximate form of gelu.
fn inner(v: f64) -> f64 {
    (2.0 / std::f64::consts::PI).sqrt() * (v + 0.044_715 * v * v * v)
}

/// Softmax of a row.
pub fn softmax(x: &[f64]) -> Vec<f64> {
    let most = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let e: Vec<f64> = x.iter().map(|v| (v - most).exp()).collect();
    let sum: f64 = e.iter().sum();
    e.iter().map(|v| v / sum).collect()
}

/// Layer normalization of a row, with the weight and the bias of a column.
pub fn layer_norm(x: &[f64], at: impl Fn(Input, usize) -> f64) -> Vec<f64> {
    let count = x.len() as f64;
    let mean = x.iter().sum::<f64>() / count;
    let variance = x.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / count;
    let scale = 1.0 / (variance + f64::from(EPS)).sqrt();
    let value = |(c, v): (usize, &f64)| (v - mean) * scale * at(Input::Weight, c) + at(Input::Bias, c);
    x.iter().enumerate().map(value).collect()
}

/// How far results are from the reference.
#[derive(Clone, Copy, Debug, Default)]
pub struct Difference {
    /// Sum of the squares of the differences.
    off: f64,
    /// Sum of the squares of the reference.
    all: f64,
    /// The largest difference of an element, as a part of what it may be.
    worst: f64,
    /// Elements that were compared.
    pub elements: usize,
}

impl Difference {
    /// Compares one more row. The sum of two f32 numbers is exact but for one rounding; of the others each element has
    /// a bound.
    pub fn row(&mut self, kind: Kind, out: &[f64], reference: &[f64]) {
        self.elements += reference.len();
        for (o, r) in out.iter().zip(reference) {
            let bound = match kind {
                Kind::Add => 0.0,
                Kind::Gelu { .. }
                | Kind::Softmax
                | Kind::SoftmaxLong
                | Kind::LayerNorm
                | Kind::NnSoftmax
                | Kind::NnLayerNorm => RELATIVE * r.abs() + ABSOLUTE,
            };
            let expected = if kind == Kind::Add { f64::from(*r as f32) } else { *r };
            let off = (o - expected).abs();
            // What is no number is as far off as can be.
            let part = if off <= bound { off / bound.max(f64::MIN_POSITIVE) } else { f64::INFINITY };
            let part = if part.is_infinite() && bound > 0.0 && off.is_finite() { off / bound } else { part };
            self.worst = self.worst.max(part);
            self.off += off * off;
            self.all += r * r;
        }
    }

    /// Norm of the difference over the norm of the reference.
    pub fn norm(&self) -> f64 {
        (self.off / self.all.max(f64::MIN_POSITIVE)).sqrt()
    }

    /// One sentence if the results are not right.
    pub fn check(&self) -> Result<(), String> {
        let norm = self.norm();
        if norm <= NORM && self.worst <= 1.0 {
            return Ok(());
        }
        let worst = self.worst;
        Err(format!(
            "the results are wrong: norm of the error {norm:.1e} (at most {NORM:.0e}), largest error of an element \
             {worst:.1e} of what it may be, among {} elements",
            self.elements
        ))
    }
}

/// The elements of a row from their bytes.
pub fn elements(kind: Kind, bytes: &[u8]) -> Vec<f64> {
    match kind {
        Kind::Add => {
            let words = bytes.chunks_exact(4).filter_map(|c| c.try_into().ok());
            words.map(|c| f64::from(f32::from_le_bytes(c))).collect()
        }
        Kind::Gelu { .. }
        | Kind::Softmax
        | Kind::SoftmaxLong
        | Kind::LayerNorm
        | Kind::NnSoftmax
        | Kind::NnLayerNorm => {
            let words = bytes.chunks_exact(2).filter_map(|c| c.try_into().ok());
            words.map(|c| f64::from(f16::from_le_bytes(c).to_f32())).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounded(kind: Kind, reference: &[f64]) -> Vec<f64> {
        match kind {
            Kind::Add => reference.iter().map(|v| f64::from(*v as f32)).collect(),
            _ => reference.iter().map(|v| f64::from(f16::from_f64(*v).to_f32())).collect(),
        }
    }

    #[test]
    fn rounded_results_pass_and_wrong_ones_do_not() {
        for kind in [Kind::Add, Kind::Gelu { tanh: true }, Kind::Softmax, Kind::LayerNorm] {
            for cols in [781, 65536] {
                let reference = row(kind, cols, cols);
                let good = rounded(kind, &reference);
                let check = |out: &[f64]| {
                    let mut d = Difference::default();
                    d.row(kind, out, &reference);
                    d.check()
                };
                assert_eq!(check(&good), Ok(()), "{kind:?} {cols}");
                let at = 700;
                let with = |v: f64| [&good[..at], &[v], &good[at + 1..]].concat();
                assert!(check(&with(f64::NAN)).is_err(), "{kind:?}");
                assert!(check(&with(good[at] * 1.01 + 1e-4)).is_err(), "{kind:?}");
            }
        }
    }

    #[test]
    fn elements_are_read_in_the_order_of_memory() {
        assert_eq!(elements(Kind::Add, &1.5f32.to_le_bytes()), [1.5]);
        assert_eq!(elements(Kind::Softmax, &[0x00, 0x3c, 0x00, 0xc0]), [1.0, -2.0]);
    }
}
