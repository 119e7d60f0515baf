//! [`Scalar`]: one value of one element type, by its bits.
//!
//! May assume nothing. Guarantees that the bits above the width of the type are zero, that constructors round at most
//! once, and that the text form reads back to the same bits.

use std::fmt;

use crate::dtype::DType;
use crate::float;

/// A value of an element type. Equality and order are those of type and bits: NaN equals itself, -0 is not +0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scalar {
    dtype: DType,
    bits: u64,
}

impl Scalar {
    /// An integer; an integer type keeps the low bits, a float type gets the nearest value, bool is `v != 0`.
    pub fn int(dtype: DType, v: i128) -> Scalar {
        Scalar { dtype, bits: float::from_int(dtype, v) }
    }

    /// A float, rounded to nearest even once; an integer type truncates and saturates, bool is `v != 0`.
    pub fn float(dtype: DType, v: f64) -> Scalar {
        Scalar { dtype, bits: float::from_f64(dtype, v) }
    }

    /// As [`Scalar::int`], but `None` for what the type does not reach: an integer out of range, a number that a float
    /// type would make infinite or clamp. Bools are 0 and 1.
    pub fn int_in_range(dtype: DType, v: i128) -> Option<Scalar> {
        let within = match dtype.int_range() {
            Some((lo, hi)) => (lo..=hi).contains(&v),
            None if dtype == DType::Bool => matches!(v, 0 | 1),
            None => reaches(dtype, v as f64),
        };
        within.then(|| Scalar::int(dtype, v))
    }

    /// As [`Scalar::float`] for a float type, but `None` for a finite number that the type would make infinite or
    /// clamp, and for other types.
    pub fn float_in_range(dtype: DType, v: f64) -> Option<Scalar> {
        let float = !dtype.is_int() && dtype != DType::Bool;
        (float && (!v.is_finite() || reaches(dtype, v))).then(|| Scalar::float(dtype, v))
    }

    /// A bool.
    pub fn bool(v: bool) -> Scalar {
        Scalar { dtype: DType::Bool, bits: u64::from(v) }
    }

    /// The value with these bits; those above the width of the type are dropped.
    pub fn from_bits(dtype: DType, bits: u64) -> Scalar {
        Scalar { dtype, bits: bits & float::mask(dtype) }
    }

    /// Zero, or false. `e8m0` has no zero: its smallest value.
    pub fn zero(dtype: DType) -> Scalar {
        Scalar { dtype, bits: 0 }
    }

    /// The element type.
    pub fn dtype(self) -> DType {
        self.dtype
    }

    /// The bits, zero above the width of the type.
    pub fn bits(self) -> u64 {
        self.bits
    }

    /// The value of an integer.
    pub fn as_int(self) -> Option<i128> {
        if !self.dtype.is_int() {
            return None;
        }
        let unused = 64 - self.dtype.bits();
        Some(if self.dtype.is_signed() {
            i128::from((self.bits << unused) as i64 >> unused)
        } else {
            i128::from(self.bits)
        })
    }

    /// The value of a float, exactly; fp8 and the packed types too.
    pub fn as_f64(self) -> Option<f64> {
        float::to_f64(self.dtype, self.bits)
    }

    /// The value of a bool.
    pub fn as_bool(self) -> Option<bool> {
        (self.dtype == DType::Bool).then_some(self.bits != 0)
    }

    /// Reads the text form: `true`, `-3`, `0.5`, `1e-7`, `inf`, `-inf`, `nan`. An integer must fit its type.
    pub fn parse(text: &str, dtype: DType) -> Option<Scalar> {
        if dtype == DType::Bool {
            return text.parse().ok().map(Scalar::bool);
        }
        if let Some((lo, hi)) = dtype.int_range() {
            let v: i128 = text.parse().ok()?;
            return (lo..=hi).contains(&v).then(|| Scalar::int(dtype, v));
        }
        if let Some(hex) = text.strip_prefix("nan0x") {
            let bits = u64::from_str_radix(hex, 16).ok()?;
            let s = Scalar::from_bits(dtype, bits);
            return (s.bits == bits && s.as_f64()?.is_nan()).then_some(s);
        }
        let plain = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '-' | '+');
        if !matches!(text, "inf" | "-inf" | "nan") && !text.chars().all(plain) {
            return None;
        }
        if text == "nan" && dtype == DType::E2M1 {
            return None;
        }
        // The library reads f32 with one rounding; through f64 there could be two.
        if dtype == DType::F32 {
            return text.parse::<f32>().ok().map(|v| Scalar::from_bits(dtype, u64::from(v.to_bits())));
        }
        let v: f64 = text.parse().ok()?;
        // Only a stored fp8 infinity prints as `inf`: it reads back as itself.
        if dtype == DType::F8E5M2 && v.is_infinite() {
            return Some(Scalar::from_bits(dtype, if v > 0.0 { 0x7c } else { 0xfc }));
        }
        Some(Scalar::float(dtype, v))
    }
}

/// Whether a float type has a value near a finite number: rounding is no overflow.
fn reaches(dtype: DType, v: f64) -> bool {
    let finite = |s: Scalar| s.as_f64().filter(|x| x.is_finite());
    let top = Scalar::float(dtype, f64::MAX);
    match finite(top) {
        // A type that clamps: half a step above the largest value is still rounding.
        Some(largest) => {
            let below = finite(Scalar::from_bits(dtype, top.bits.saturating_sub(1))).unwrap_or(largest);
            v.abs() <= largest + (largest - below) / 2.0
        }
        None => finite(Scalar::float(dtype, v)).is_some(),
    }
}

impl fmt::Display for Scalar {
    /// The shortest text that [`Scalar::parse`] reads back. A NaN with other bits than the canonical one shows them
    /// (`nan0x7fc00001`).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(i) = self.as_int() {
            return write!(f, "{i}");
        }
        let Some(v) = self.as_f64() else { return write!(f, "{}", self.bits != 0) };
        if v.is_nan() {
            return if self.bits == float::nan(self.dtype) {
                f.write_str("nan")
            } else {
                write!(f, "nan0x{:x}", self.bits)
            };
        }
        if v.is_infinite() {
            return f.write_str(if v > 0.0 { "inf" } else { "-inf" });
        }
        if self.dtype == DType::F32 {
            return write!(f, "{:?}", v as f32);
        }
        // f64 is its own shortest text; 9 digits are enough for the narrower types, and searching them is cheap.
        let digits = if self.dtype == DType::F64 { 0..0 } else { 0..9 };
        let shortest = digits
            .filter_map(|digits| format!("{v:.digits$e}").parse::<f64>().ok())
            .find(|short| Scalar::float(self.dtype, *short) == *self);
        write!(f, "{:?}", shortest.unwrap_or(v))
    }
}
