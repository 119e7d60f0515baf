//! What the test files share: a source of numbers, and rounding by search instead of by bits.
#![allow(clippy::unwrap_used, clippy::panic, reason = "failing is how tests report")]

pub mod values;

use std::cmp::Ordering;

use tk_ops::eval::{EvalError, Operand, elementwise};
use tk_ops::{Buf, DType, ElementwiseOp, Scalar};

/// A small generator (splitmix64), so that tests are the same everywhere.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

/// Evaluates on buffers of one length.
pub fn run(op: ElementwiseOp, args: &[&Buf], out: DType) -> Result<Buf, EvalError> {
    let operands: Vec<Operand<'_>> = args.iter().map(|b| Operand::Buf(b)).collect();
    elementwise(op, &operands, out, args[0].len(), false)
}

/// Evaluates on single values.
pub fn one(op: ElementwiseOp, args: &[Scalar], out: DType) -> Scalar {
    let operands: Vec<Operand<'_>> = args.iter().map(|s| Operand::Splat(*s)).collect();
    elementwise(op, &operands, out, 1, false).unwrap().get(0)
}

/// Whether the code of -0 is the only NaN.
pub fn is_fnuz(d: DType) -> bool {
    matches!(d, DType::F8E4M3FNUZ | DType::F8E5M2FNUZ)
}

/// The value of a code by the formula of the format: exponent bits, mantissa bits, bias.
pub fn decode(d: DType, code: u64) -> f64 {
    let (e, m, bias) = match d {
        DType::F8E4M3 => (4, 3, 7),
        DType::F8E5M2 => (5, 2, 15),
        DType::F8E4M3FNUZ => (4, 3, 8),
        DType::F8E5M2FNUZ => (5, 2, 16),
        DType::E2M1 => (2, 1, 1),
        DType::F16 => (5, 10, 15),
        DType::BF16 => (8, 7, 127),
        DType::F32 => (8, 23, 127),
        other => panic!("no formula for {other}"),
    };
    let sign = if code >> (e + m) & 1 == 1 { -1.0 } else { 1.0 };
    let exponent = (code >> m & ((1 << e) - 1)) as i32;
    let fraction = (code & ((1 << m) - 1)) as f64 / (1u64 << m) as f64;
    let top = exponent == (1 << e) - 1;
    if is_fnuz(d) && code == 0x80 {
        return f64::NAN;
    }
    let infinities = !matches!(d, DType::F8E4M3 | DType::E2M1) && !is_fnuz(d);
    if top && infinities {
        return if fraction == 0.0 { sign * f64::INFINITY } else { f64::NAN };
    }
    if d == DType::F8E4M3 && top && fraction == 0.875 {
        return f64::NAN;
    }
    if exponent == 0 {
        return sign * fraction * 2f64.powi(1 - bias);
    }
    sign * (1.0 + fraction) * 2f64.powi(exponent - bias)
}

/// An exact number `m * 2^e`.
#[derive(Clone, Copy, Debug)]
pub struct Exact(pub i128, pub i32);

impl Exact {
    pub fn of(v: f64) -> Exact {
        let bits = v.to_bits();
        let field = (bits >> 52 & 0x7ff) as i32;
        let fraction = (bits & ((1 << 52) - 1)) as i128;
        let m = if field == 0 { fraction } else { fraction | 1 << 52 };
        let mut e = field.max(1) - 1075;
        let mut m = if bits >> 63 == 1 { -m } else { m };
        while m != 0 && m % 2 == 0 {
            m /= 2;
            e += 1;
        }
        Exact(m, if m == 0 { 0 } else { e })
    }

    pub fn mul(self, o: Exact) -> Exact {
        Exact(self.0 * o.0, self.1 + o.1)
    }

    /// Needs exponents that lie close enough for 127 bits.
    pub fn add(self, o: Exact) -> Exact {
        if self.0 == 0 {
            return o;
        }
        if o.0 == 0 {
            return self;
        }
        let e = self.1.min(o.1);
        let shift = |x: Exact| x.0.checked_mul(1i128.checked_shl((x.1 - e) as u32).unwrap()).unwrap();
        Exact(shift(self) + shift(o), e)
    }

    /// Comparison of magnitudes of any size.
    pub fn cmp(self, o: Exact) -> Ordering {
        let sign = self.0.signum().cmp(&o.0.signum());
        if sign != Ordering::Equal || self.0 == 0 {
            return sign;
        }
        let top = |x: Exact| 128 - x.0.unsigned_abs().leading_zeros() as i32 + x.1;
        let size = top(self).cmp(&top(o)).then_with(|| {
            // Equal tops: the shifts are small enough.
            let e = self.1.min(o.1);
            (self.0.unsigned_abs() << (self.1 - e)).cmp(&(o.0.unsigned_abs() << (o.1 - e)))
        });
        if self.0 < 0 { size.reverse() } else { size }
    }
}

/// Rounding by search among all values of the type.
pub struct Search {
    /// Codes and values of the finite numbers that are not negative, in order.
    values: Vec<(u64, f64)>,
    sign: u64,
    signed_zero: bool,
    saturates: bool,
    infinity: u64,
}

impl Search {
    pub fn new(d: DType) -> Search {
        let sign = 1u64 << (d.bits() - 1);
        let values: Vec<(u64, f64)> =
            (0..sign).map(|c| (c, decode(d, c))).filter(|(_, v)| v.is_finite()).collect();
        let saturates = d.is_f8() || d == DType::E2M1;
        let infinity = values.len() as u64;
        Search { values, sign, signed_zero: !is_fnuz(d), saturates, infinity }
    }

    /// The values and the halves between neighbours, the one beyond the largest included.
    pub fn interesting(&self) -> Vec<f64> {
        let mut out = vec![];
        let last = self.values[self.values.len() - 1].1;
        let before = self.values[self.values.len() - 2].1;
        let beyond = (last + (last - before), ());
        let next = self.values.iter().skip(1).map(|(_, v)| *v).chain([beyond.0]);
        for ((_, a), b) in self.values.iter().zip(next) {
            out.extend([*a, (a + b) / 2.0]);
        }
        out
    }

    /// The code of the nearest value, ties to the even code.
    pub fn nearest(&self, x: Exact) -> u64 {
        let size = Exact(x.0.abs(), x.1);
        let sign = if x.0 < 0 { self.sign } else { 0 };
        let above = self.values.partition_point(|(_, v)| Exact::of(*v).cmp(size) != Ordering::Greater);
        let (code, low) = self.values[above - 1];
        let step = match self.values.get(above) {
            Some((_, high)) => high - low,
            None => low - self.values[above - 2].1,
        };
        let up = match size.cmp(Exact::of(low + step / 2.0)) {
            Ordering::Less => 0,
            Ordering::Equal => code & 1,
            Ordering::Greater => 1,
        };
        let code = code + up;
        if code == 0 && !self.signed_zero {
            return 0;
        }
        if code < self.infinity {
            return sign | code;
        }
        sign | if self.saturates { self.infinity - 1 } else { self.infinity }
    }
}
