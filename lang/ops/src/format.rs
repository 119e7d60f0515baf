//! The table of binary float formats: what evaluation, code generation and the limits of the language read of each.

use crate::dtype::DType;

/// An IEEE-like binary format: sign, exponent, mantissa, in that order from the top.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FloatFormat {
    /// Bits of the mantissa that are stored.
    pub mantissa: u32,
    /// What the exponent field of 1.0 holds.
    pub bias: u32,
    /// Position of the sign bit.
    pub sign: u32,
    /// Code of the largest finite value.
    pub largest: u64,
    /// Code of what is too large: infinity, or the largest finite value of a saturating type.
    pub overflow: u64,
    /// Code of NaN; `e2m1` has none and uses its largest value, as the hardware conversions do.
    pub nan: u64,
    /// Whether the sign of a zero is told; where it is not, its code with the sign bit is the only NaN (`fnuz`).
    pub signed_zero: bool,
    /// Code of infinity, whether or not a conversion gives it.
    pub infinity: Option<u64>,
}

impl DType {
    /// The format of a float with a sign; `e8m0` and what is not a float have none.
    pub fn format(self) -> Option<FloatFormat> {
        let (mantissa, bias, sign, largest, overflow, nan, infinity) = match self {
            DType::F8E4M3 => (3, 7, 7, 0x7e, 0x7e, 0x7f, None),
            DType::F8E5M2 => (2, 15, 7, 0x7b, 0x7b, 0x7f, Some(0x7c)),
            DType::F8E4M3FNUZ => (3, 8, 7, 0x7f, 0x7f, 0x80, None),
            DType::F8E5M2FNUZ => (2, 16, 7, 0x7f, 0x7f, 0x80, None),
            DType::E2M1 => (1, 1, 3, 0x7, 0x7, 0x7, None),
            DType::F16 => (10, 15, 15, 0x7bff, 0x7c00, 0x7e00, Some(0x7c00)),
            DType::BF16 => (7, 127, 15, 0x7f7f, 0x7f80, 0x7fc0, Some(0x7f80)),
            DType::F32 => (23, 127, 31, 0x7f7f_ffff, 0x7f80_0000, 0x7fc0_0000, Some(0x7f80_0000)),
            DType::F64 => {
                let inf = 0x7ff0_0000_0000_0000;
                (52, 1023, 63, inf - 1, inf, 0x7ff8_0000_0000_0000, Some(inf))
            }
            DType::Bool
            | DType::I8
            | DType::I16
            | DType::I32
            | DType::I64
            | DType::U8
            | DType::U16
            | DType::U32
            | DType::U64
            | DType::E8M0 => return None,
        };
        let signed_zero = nan != 1 << sign;
        Some(FloatFormat { mantissa, bias, sign, largest, overflow, nan, signed_zero, infinity })
    }
}

impl FloatFormat {
    /// The largest code without sign that is no NaN.
    pub fn last_number(&self) -> u64 {
        self.infinity.unwrap_or(self.largest)
    }

    /// Whether a code is NaN.
    pub fn is_nan(&self, code: u64) -> bool {
        let only = !self.signed_zero && code == self.nan;
        only || code & ((1 << self.sign) - 1) > self.last_number()
    }
}
