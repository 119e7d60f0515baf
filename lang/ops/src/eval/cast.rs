//! `as`: the conversion between element types.
//!
//! May assume nothing. Guarantees: integers keep the low bits, a float becomes an integer by truncation with
//! saturation (NaN is 0), everything that rounds does so to nearest even and once, fp8 saturates.

use std::sync::OnceLock;

use half::{bf16, f16};

use super::EvalError;
use super::float_ops::{round, widen};
use crate::buf::Buf;
use crate::dtype::{DType, DTypeSet};
use crate::float;
use crate::op::ElementwiseOp;

/// The values of all codes of an fp8 type.
fn f8_values(d: DType) -> &'static [f32] {
    static TABLES: OnceLock<Vec<(DType, Vec<f32>)>> = OnceLock::new();
    let codes = |d| (0..=255).map(|code| float::f8_to_f32(d, code)).collect();
    let tables = TABLES.get_or_init(|| DTypeSet::F8.iter().map(|d| (d, codes(d))).collect());
    tables.iter().find(|(of, _)| *of == d).map_or(&[], |(_, values)| values)
}

/// Every element as another type. There is no conversion to bool.
pub fn cast(x: &Buf, to: DType) -> Result<Buf, EvalError> {
    if x.dtype() == to {
        return Ok(x.clone());
    }
    if to == DType::Bool {
        return Err(EvalError::Unsupported { op: ElementwiseOp::Cast.name(), dtype: to });
    }
    Ok(match x {
        Buf::Bool(v) => from_int(&v.iter().map(|b| u8::from(*b)).collect::<Vec<u8>>(), to),
        Buf::I8(v) => from_int(v, to),
        Buf::I16(v) => from_int(v, to),
        Buf::I32(v) => from_int(v, to),
        Buf::I64(v) => from_int(v, to),
        Buf::U8(v) => from_int(v, to),
        Buf::U16(v) => from_int(v, to),
        Buf::U32(v) => from_int(v, to),
        Buf::U64(v) => from_int(v, to),
        Buf::F16(v) => from_float(&widen(v), to),
        Buf::BF16(v) => from_float(&widen(v), to),
        Buf::F32(v) => from_float(v, to),
        Buf::F64(v) => from_float(v, to),
        Buf::F8E4M3(v) | Buf::F8E5M2(v) | Buf::F8E4M3FNUZ(v) | Buf::F8E5M2FNUZ(v) => {
            let values = f8_values(x.dtype());
            let value = |code: &u8| values.get(usize::from(*code)).copied().unwrap_or(f32::NAN);
            from_float(&v.iter().map(value).collect::<Vec<f32>>(), to)
        }
        Buf::E2M1(v) | Buf::E8M0(v) => {
            let value = |code: &u8| float::to_f64(x.dtype(), u64::from(*code)).unwrap_or(f64::NAN);
            from_float(&v.iter().map(value).collect::<Vec<f64>>(), to)
        }
    })
}

/// The primitive number types, whose `as` is the conversion of the language: integers keep the low bits, floats
/// truncate and saturate, what becomes a float rounds to nearest even.
trait Primitive: Copy {
    /// Whether every value is a whole number of at most 24 bits, which f32 holds exactly.
    const SHORT: bool;
    fn i8(self) -> i8;
    fn i16(self) -> i16;
    fn i32(self) -> i32;
    fn i64(self) -> i64;
    fn u8(self) -> u8;
    fn u16(self) -> u16;
    fn u32(self) -> u32;
    fn u64(self) -> u64;
    fn f32(self) -> f32;
    fn f64(self) -> f64;
}

macro_rules! primitives {
    ($($ty:ty, $short:expr;)*) => {$(
        impl Primitive for $ty {
            const SHORT: bool = $short;
            fn i8(self) -> i8 { self as i8 }
            fn i16(self) -> i16 { self as i16 }
            fn i32(self) -> i32 { self as i32 }
            fn i64(self) -> i64 { self as i64 }
            fn u8(self) -> u8 { self as u8 }
            fn u16(self) -> u16 { self as u16 }
            fn u32(self) -> u32 { self as u32 }
            fn u64(self) -> u64 { self as u64 }
            fn f32(self) -> f32 { self as f32 }
            fn f64(self) -> f64 { self as f64 }
        }
    )*};
}

primitives! {
    i8, true; i16, true; i32, false; i64, false; u8, true; u16, true; u32, false; u64, false;
    f32, false; f64, false;
}

/// The conversions that `as` does; `None` for those to the narrow floats.
fn primitive<T: Primitive>(v: &[T], to: DType) -> Option<Buf> {
    Some(match to {
        DType::I8 => Buf::I8(v.iter().map(|x| x.i8()).collect()),
        DType::I16 => Buf::I16(v.iter().map(|x| x.i16()).collect()),
        DType::I32 => Buf::I32(v.iter().map(|x| x.i32()).collect()),
        DType::I64 => Buf::I64(v.iter().map(|x| x.i64()).collect()),
        DType::U8 => Buf::U8(v.iter().map(|x| x.u8()).collect()),
        DType::U16 => Buf::U16(v.iter().map(|x| x.u16()).collect()),
        DType::U32 => Buf::U32(v.iter().map(|x| x.u32()).collect()),
        DType::U64 => Buf::U64(v.iter().map(|x| x.u64()).collect()),
        DType::F32 => Buf::F32(v.iter().map(|x| x.f32()).collect()),
        DType::F64 => Buf::F64(v.iter().map(|x| x.f64()).collect()),
        DType::Bool
        | DType::F16
        | DType::BF16
        | DType::F8E4M3
        | DType::F8E5M2
        | DType::F8E4M3FNUZ
        | DType::F8E5M2FNUZ
        | DType::E2M1
        | DType::E8M0 => return None,
    })
}

/// The conversions to the narrow floats, from a function that gives the bits.
fn coded<T: Copy>(v: &[T], to: DType, code: impl Fn(T) -> u64) -> Buf {
    let byte = |x: &T| code(*x) as u8;
    match to {
        DType::F16 => Buf::F16(v.iter().map(|x| f16::from_bits(code(*x) as u16)).collect()),
        DType::BF16 => Buf::BF16(v.iter().map(|x| bf16::from_bits(code(*x) as u16)).collect()),
        DType::F8E4M3 => Buf::F8E4M3(v.iter().map(byte).collect()),
        DType::F8E5M2 => Buf::F8E5M2(v.iter().map(byte).collect()),
        DType::F8E4M3FNUZ => Buf::F8E4M3FNUZ(v.iter().map(byte).collect()),
        DType::F8E5M2FNUZ => Buf::F8E5M2FNUZ(v.iter().map(byte).collect()),
        DType::E2M1 => Buf::E2M1(v.iter().map(byte).collect()),
        DType::E8M0 => Buf::E8M0(v.iter().map(byte).collect()),
        // `primitive` has these; through bits they are right as well.
        DType::Bool
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U8
        | DType::U16
        | DType::U32
        | DType::U64
        | DType::F32
        | DType::F64 => {
            let mut out = Buf::zeros(to, v.len());
            for (i, x) in v.iter().enumerate() {
                out.set(i, crate::scalar::Scalar::from_bits(to, code(*x)));
            }
            out
        }
    }
}

fn from_int<T: Primitive + Into<i128>>(v: &[T], to: DType) -> Buf {
    if T::SHORT && matches!(to, DType::F16 | DType::BF16) {
        return from_float(&v.iter().map(|x| x.f32()).collect::<Vec<f32>>(), to);
    }
    primitive(v, to).unwrap_or_else(|| coded(v, to, |x| float::from_int(to, x.into())))
}

/// Widens to f64 exactly; `round_f32` serves the pairs for which a faster way is known.
fn from_float<T: Primitive + FloatSource>(v: &[T], to: DType) -> Buf {
    if let Some(done) = T::round_f32(v, to) {
        return done;
    }
    primitive(v, to).unwrap_or_else(|| coded(v, to, |x| float::from_f64(to, x.f64())))
}

/// f32 and f64.
trait FloatSource: Sized {
    /// f32 to f16, bf16 and fp8, whose rounding is a hardware instruction or a few integer operations.
    fn round_f32(v: &[Self], to: DType) -> Option<Buf>;
}

impl FloatSource for f32 {
    fn round_f32(v: &[Self], to: DType) -> Option<Buf> {
        if to == DType::F16 {
            return Some(Buf::F16(round(v)));
        }
        if to == DType::BF16 {
            return Some(Buf::BF16(round(v)));
        }
        Buf::from_le_bytes(to, &float::f32s_to_f8(to, v)?)
    }
}

impl FloatSource for f64 {
    fn round_f32(_: &[Self], _: DType) -> Option<Buf> {
        None
    }
}
