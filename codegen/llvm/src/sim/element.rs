//! Elements of matrix products on the simulated target, and the sums of their products.
//!
//! Every element is an f64: it has the values of all operand types, and sums of products of 8-bit integers are exact.

use tk_ops::DType;
use tk_ops::scalar::Scalar;

/// The value of an operand's element by its bits; higher bits are ignored. All NaN are one.
pub fn element(d: DType, bits: u64) -> f64 {
    let value = match d {
        DType::I8 => f64::from(bits as u8 as i8),
        DType::U8 => f64::from(bits as u8),
        // Most of what is multiplied: converted by an instruction, not field by field.
        DType::F16 => half::f16::from_bits(bits as u16).to_f64(),
        DType::BF16 => half::bf16::from_bits(bits as u16).to_f64(),
        DType::F32 => f32::from_bits(bits as u32).into(),
        _ => Scalar::from_bits(d, bits).as_f64().unwrap_or(f64::NAN),
    };
    if value.is_nan() { f64::NAN } else { value }
}

/// The value of an accumulator by its bits.
pub fn accumulator(acc: DType, bits: u64) -> f64 {
    match acc {
        DType::F64 => f64::from_bits(bits),
        DType::F32 => f32::from_bits(bits as u32).into(),
        _ => (bits as u32).cast_signed().into(),
    }
}

/// The bits of an accumulator with this value: f32 rounded, integers modulo 2^32.
pub fn accumulator_bits(acc: DType, value: f64) -> u64 {
    match acc {
        DType::F64 => value.to_bits(),
        DType::F32 => (value as f32).to_bits().into(),
        _ => (value as i64 as u32).into(),
    }
}

/// Adds `a [m, k] @ b [k, n]` to `c [m, n]`, all in order of rows, in the order of K: sums of f64 by fused
/// multiply-adds, others without rounding to the type of the accumulator.
pub fn multiply(acc: DType, (n, k): (usize, usize), a: &[f64], b: &[f64], c: &mut [f64]) {
    for (a, c) in a.chunks_exact(k).zip(c.chunks_exact_mut(n)) {
        for (x, b) in a.iter().zip(b.chunks_exact(n)) {
            if acc == DType::F64 {
                c.iter_mut().zip(b).for_each(|(c, y)| *c = x.mul_add(*y, *c));
            } else {
                c.iter_mut().zip(b).for_each(|(c, y)| *c += x * y);
            }
        }
    }
}
