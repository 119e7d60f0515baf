//! The bit forms of the float types and the one rounding that leads into each.
//!
//! May assume nothing about its arguments. Guarantees that every conversion rounds to nearest, ties to even, exactly
//! once, that the saturating types (fp8 and `e2m1`) never overflow, and that decoding is exact.

use crate::dtype::DType;
use crate::format::FloatFormat;

/// `m * 2^e` as a code of the format, without a sign; `m` is not zero.
fn round_into(f: &FloatFormat, m: u128, e: i32) -> u64 {
    let top = 127 - m.leading_zeros() as i32;
    let smallest = 1 - f.bias as i32;
    let exponent = (top + e).max(smallest);
    // `m * 2^e` counted in units of the last place of its binade.
    let shift = exponent - f.mantissa as i32 - e;
    let units = if shift <= 0 {
        // The top bit lands at or below the hidden bit, so that nothing is lost.
        m << -shift
    } else if shift > top + 1 {
        0
    } else {
        let shift = shift as u32;
        let kept = m.checked_shr(shift).unwrap_or(0);
        let half = 1u128 << (shift - 1);
        let low = m & (half | (half - 1));
        let up = low > half || (low == half && kept & 1 == 1);
        kept + u128::from(up)
    };
    // The hidden bit of a normal number counts the exponent field up by one, and so does a carry of the rounding.
    let code = (((exponent - smallest) as u64) << f.mantissa) + units as u64;
    if code > f.largest { f.overflow } else { code }
}

/// The code of the power of two nearest to `v`, ties to the even code; what is not positive becomes the smallest.
fn power_code(v: f64) -> u64 {
    if v.is_nan() {
        return 0xff;
    }
    let bits = v.to_bits();
    if v <= 0.0 || v < f64::from_bits((1023 - 127) << 52) {
        return 0;
    }
    let code = (bits >> 52) as i64 - 1023 + 127;
    let fraction = bits & ((1 << 52) - 1);
    let half = 1u64 << 51;
    let up = fraction > half || (fraction == half && code & 1 == 1);
    (code + i64::from(up)).clamp(0, 254) as u64
}

/// The bits of `d` nearest to `v`. What is not a float type gives the bits of a saturating truncation.
pub(crate) fn from_f64(d: DType, v: f64) -> u64 {
    if d == DType::F64 {
        return v.to_bits();
    }
    if d == DType::E8M0 {
        return power_code(v);
    }
    let Some(f) = d.format() else { return int_from_f64(d, v) };
    if v.is_nan() {
        return f.nan;
    }
    let sign = u64::from(v.is_sign_negative()) << f.sign;
    if v.is_infinite() {
        return sign | f.overflow;
    }
    let bits = v.to_bits();
    let field = ((bits >> 52) & 0x7ff) as i32;
    let fraction = bits & ((1 << 52) - 1);
    let m = if field == 0 { fraction } else { fraction | 1 << 52 };
    if m == 0 {
        return with_sign(&f, sign, 0);
    }
    with_sign(&f, sign, round_into(&f, u128::from(m), field.max(1) - 1075))
}

/// The bits of `d` nearest to an integer. An integer type keeps the low bits.
pub(crate) fn from_int(d: DType, v: i128) -> u64 {
    if d == DType::Bool {
        return u64::from(v != 0);
    }
    if d == DType::E8M0 {
        return power_code(v as f64);
    }
    let Some(f) = d.format() else { return v as u64 & mask(d) };
    if v == 0 {
        return 0;
    }
    with_sign(&f, u64::from(v < 0) << f.sign, round_into(&f, v.unsigned_abs(), 0))
}

/// A code with a sign, which a zero may not have.
fn with_sign(f: &FloatFormat, sign: u64, code: u64) -> u64 {
    if code == 0 && !f.signed_zero { 0 } else { sign | code }
}

fn int_from_f64(d: DType, v: f64) -> u64 {
    match d.int_range() {
        Some((lo, hi)) => (v as i128).clamp(lo, hi) as u64 & mask(d),
        None => u64::from(v != 0.0),
    }
}

/// The bits that a value of the type can have.
pub(crate) fn mask(d: DType) -> u64 {
    if d == DType::Bool { 1 } else { u64::MAX >> (64 - d.bits()) }
}

/// The value of these bits, exactly; `None` when `d` is not a float type.
pub(crate) fn to_f64(d: DType, bits: u64) -> Option<f64> {
    if d == DType::F64 {
        return Some(f64::from_bits(bits));
    }
    if d == DType::E8M0 {
        let power = f64::from_bits(((bits & 0xff) + 1023 - 127) << 52);
        return Some(if bits & 0xff == 0xff { f64::NAN } else { power });
    }
    let f = d.format()?;
    let sign = if bits >> f.sign & 1 == 1 { -1.0 } else { 1.0 };
    let code = bits & ((1 << f.sign) - 1);
    if f.is_nan(bits) {
        return Some(f64::NAN);
    }
    if code > f.largest {
        return Some(sign * f64::INFINITY);
    }
    let field = (code >> f.mantissa) as i32;
    let fraction = code & ((1 << f.mantissa) - 1);
    let m = if field == 0 { fraction } else { fraction | 1 << f.mantissa };
    let e = field.max(1) - f.bias as i32 - f.mantissa as i32;
    // 2^e is a normal f64 for every narrower format: e is -149 or more.
    Some(sign * m as f64 * f64::from_bits(((e + 1023) as u64) << 52))
}

/// The canonical NaN of a float type.
pub(crate) fn nan(d: DType) -> u64 {
    from_f64(d, f64::NAN)
}

/// The value of an fp8 code.
pub(crate) fn f8_to_f32(d: DType, code: u8) -> f32 {
    to_f64(d, u64::from(code)).unwrap_or(f64::NAN) as f32
}

/// The sign bit of an fp8 code.
const SIGN: u8 = 0x80;

/// The codes nearest to these values in an fp8 type.
pub(crate) fn f32s_to_f8(d: DType, values: &[f32]) -> Option<Vec<u8>> {
    macro_rules! each {
        ($($dtype:ident $mantissa:literal $bias:literal)*) => {
            match d {
                $(DType::$dtype => {
                    let f = d.format()?;
                    let (largest, nan) = (f.largest as u32, f.nan as u8);
                    values.iter().map(|x| f32_to_f8::<$mantissa, $bias>(*x, largest, nan)).collect()
                })*
                _wider => return None,
            }
        };
    }
    Some(each!(F8E4M3 3 7 F8E5M2 2 15 F8E4M3FNUZ 3 8 F8E5M2FNUZ 2 16))
}

/// The code nearest to `v` in an fp8 format with this mantissa, bias, largest finite code and NaN: the same as [`from_f64`],
/// without branches.
#[inline(always)]
fn f32_to_f8<const MANTISSA: u32, const BIAS: u32>(v: f32, largest: u32, nan: u8) -> u8 {
    let bits = v.to_bits() & 0x7fff_ffff;
    let dropped = 23 - MANTISSA;
    // Normal: half of the last place is added, less one bit where the code is even, and the bias is exchanged.
    let odd = bits >> dropped & 1;
    let near = bits + (1 << (dropped - 1)) - 1 + odd;
    let normal = (near >> dropped).wrapping_sub((127 - BIAS) << MANTISSA);
    // Subnormal: next to this power of two, f32 counts in units of the smallest value.
    let counter = f32::from_bits((127 + 24 - BIAS - MANTISSA) << 23);
    let subnormal = (f32::from_bits(bits) + counter).to_bits().wrapping_sub(counter.to_bits());
    let code = if bits < (128 - BIAS) << 23 { subnormal } else { normal };
    let code = if code > largest { largest } else { code };
    let code = code as u8 | (v.to_bits() >> 24 & 0x80) as u8;
    // Where NaN has the code of -0, a negative zero has no sign.
    let code = if code == SIGN && nan == SIGN { 0 } else { code };
    // A NaN keeps its sign where there is another code for it.
    let nan = if nan == SIGN { nan } else { nan | (v.to_bits() >> 24 & 0x80) as u8 };
    if bits > 0x7f80_0000 { nan } else { code }
}

/// Adds two doubles rounding to odd: rounding the result to a type of at most 51 bits is as if the exact sum had been
/// rounded once. Needs a sum that does not overflow, which holds for sums and products of narrower types.
#[inline(always)]
pub(crate) fn add_to_odd(a: f64, b: f64) -> f64 {
    let sum = a + b;
    // The error of the sum, exactly (Knuth's two-sum).
    let bv = sum - a;
    let err = (a - (sum - bv)) + (b - bv);
    let bits = sum.to_bits();
    // NaN compares false: infinities and NaN stay as they are.
    let inexact = err.abs() > 0.0;
    let away = (err > 0.0) == (sum > 0.0);
    let odd = if away { bits | 1 } else { (bits.wrapping_sub(1)) | 1 };
    f64::from_bits(if inexact && bits & 1 == 0 { odd } else { bits })
}
