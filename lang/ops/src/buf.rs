//! [`Buf`]: many values of one element type, as the interpreter and the constant folder hold them.
//!
//! May assume nothing about indices and bytes. Guarantees that reading out of range gives zero, that writing out of
//! range does nothing, and that `to_le_bytes` and `from_le_bytes` are inverse. The packed type `e2m1` takes a whole
//! element of the vector here, in its low four bits.

use half::{bf16, f16};

use crate::dtype::DType;
use crate::float;
use crate::scalar::Scalar;

/// Runs an expression with the typed vector of a buffer: `with_buf!(buf, v => v.len())`. The buffer may be owned,
/// borrowed or borrowed mutably; the expression is compiled once for each element type.
#[macro_export]
macro_rules! with_buf {
    ($buf:expr, $v:ident => $body:expr) => {
        match $buf {
            $crate::buf::Buf::Bool($v) => $body,
            $crate::buf::Buf::I8($v) => $body,
            $crate::buf::Buf::I16($v) => $body,
            $crate::buf::Buf::I32($v) => $body,
            $crate::buf::Buf::I64($v) => $body,
            $crate::buf::Buf::U8($v) => $body,
            $crate::buf::Buf::U16($v) => $body,
            $crate::buf::Buf::U32($v) => $body,
            $crate::buf::Buf::U64($v) => $body,
            $crate::buf::Buf::F8E4M3($v) => $body,
            $crate::buf::Buf::F8E5M2($v) => $body,
            $crate::buf::Buf::F8E4M3FNUZ($v) => $body,
            $crate::buf::Buf::F8E5M2FNUZ($v) => $body,
            $crate::buf::Buf::F16($v) => $body,
            $crate::buf::Buf::BF16($v) => $body,
            $crate::buf::Buf::F32($v) => $body,
            $crate::buf::Buf::F64($v) => $body,
            $crate::buf::Buf::E2M1($v) => $body,
            $crate::buf::Buf::E8M0($v) => $body,
        }
    };
}

/// Makes a buffer of the same element type from the typed vector of a buffer:
/// `map_buf!(buf, v => v.iter().rev().copied().collect())`.
#[macro_export]
macro_rules! map_buf {
    ($buf:expr, $v:ident => $body:expr) => {
        match $buf {
            $crate::buf::Buf::Bool($v) => $crate::buf::Buf::Bool($body),
            $crate::buf::Buf::I8($v) => $crate::buf::Buf::I8($body),
            $crate::buf::Buf::I16($v) => $crate::buf::Buf::I16($body),
            $crate::buf::Buf::I32($v) => $crate::buf::Buf::I32($body),
            $crate::buf::Buf::I64($v) => $crate::buf::Buf::I64($body),
            $crate::buf::Buf::U8($v) => $crate::buf::Buf::U8($body),
            $crate::buf::Buf::U16($v) => $crate::buf::Buf::U16($body),
            $crate::buf::Buf::U32($v) => $crate::buf::Buf::U32($body),
            $crate::buf::Buf::U64($v) => $crate::buf::Buf::U64($body),
            $crate::buf::Buf::F8E4M3($v) => $crate::buf::Buf::F8E4M3($body),
            $crate::buf::Buf::F8E5M2($v) => $crate::buf::Buf::F8E5M2($body),
            $crate::buf::Buf::F8E4M3FNUZ($v) => $crate::buf::Buf::F8E4M3FNUZ($body),
            $crate::buf::Buf::F8E5M2FNUZ($v) => $crate::buf::Buf::F8E5M2FNUZ($body),
            $crate::buf::Buf::F16($v) => $crate::buf::Buf::F16($body),
            $crate::buf::Buf::BF16($v) => $crate::buf::Buf::BF16($body),
            $crate::buf::Buf::F32($v) => $crate::buf::Buf::F32($body),
            $crate::buf::Buf::F64($v) => $crate::buf::Buf::F64($body),
            $crate::buf::Buf::E2M1($v) => $crate::buf::Buf::E2M1($body),
            $crate::buf::Buf::E8M0($v) => $crate::buf::Buf::E8M0($body),
        }
    };
}

macro_rules! buf_enum {
    ($($variant:ident($ty:ty) from $from:expr, into $into:expr;)*) => {
        /// A vector of elements of one type. The fp8 and packed types are held as their codes.
        #[derive(Clone, Debug)]
        #[allow(missing_docs, reason = "the variants are the element types")]
        pub enum Buf { $($variant(Vec<$ty>),)* }

        impl Buf {
            /// The element type.
            pub fn dtype(&self) -> DType {
                match self { $(Buf::$variant(_) => DType::$variant,)* }
            }

            /// No elements.
            pub fn empty(dtype: DType) -> Buf {
                match dtype { $(DType::$variant => Buf::$variant(Vec::new()),)* }
            }

            /// `n` times the same value.
            pub fn splat(value: Scalar, n: usize) -> Buf {
                let bits = value.bits();
                match value.dtype() { $(DType::$variant => Buf::$variant(vec![$from(bits); n]),)* }
            }

            /// The element at `i`; out of range gives zero.
            pub fn get(&self, i: usize) -> Scalar {
                let bits = match self { $(Buf::$variant(v) => v.get(i).map(|x| $into(*x)),)* };
                Scalar::from_bits(self.dtype(), bits.unwrap_or(0))
            }

            /// Writes the element at `i`; out of range, or with a value of another type, nothing happens.
            pub fn set(&mut self, i: usize, value: Scalar) {
                if value.dtype() != self.dtype() {
                    return;
                }
                let bits = value.bits();
                match self {
                    $(Buf::$variant(v) => if let Some(slot) = v.get_mut(i) { *slot = $from(bits) },)*
                }
            }
        }
    };
}

buf_enum! {
    Bool(bool) from |b| b != 0, into u64::from;
    I8(i8) from |b| b as i8, into |x| x as u64;
    I16(i16) from |b| b as i16, into |x| x as u64;
    I32(i32) from |b| b as i32, into |x| x as u64;
    I64(i64) from |b| b as i64, into |x| x as u64;
    U8(u8) from |b| b as u8, into u64::from;
    U16(u16) from |b| b as u16, into u64::from;
    U32(u32) from |b| b as u32, into u64::from;
    U64(u64) from |b| b, into |x| x;
    F8E4M3(u8) from |b| b as u8, into u64::from;
    F8E5M2(u8) from |b| b as u8, into u64::from;
    F8E4M3FNUZ(u8) from |b| b as u8, into u64::from;
    F8E5M2FNUZ(u8) from |b| b as u8, into u64::from;
    F16(f16) from |b| f16::from_bits(b as u16), into |x: f16| u64::from(x.to_bits());
    BF16(bf16) from |b| bf16::from_bits(b as u16), into |x: bf16| u64::from(x.to_bits());
    F32(f32) from |b| f32::from_bits(b as u32), into |x: f32| u64::from(x.to_bits());
    F64(f64) from f64::from_bits, into f64::to_bits;
    E2M1(u8) from |b| b as u8, into u64::from;
    E8M0(u8) from |b| b as u8, into u64::from;
}

/// The bytes of a slice of numbers, and back.
macro_rules! to_bytes {
    ($v:expr) => {
        $v.iter().map(|x| x.to_le_bytes()).collect::<Vec<_>>().into_flattened()
    };
}

macro_rules! from_bytes {
    ($ty:ty, $bytes:expr) => {{
        const SIZE: usize = size_of::<$ty>();
        let chunks = $bytes.chunks_exact(SIZE);
        if !chunks.remainder().is_empty() {
            return None;
        }
        chunks.map(|c| <$ty>::from_le_bytes(c.try_into().unwrap_or([0; SIZE]))).collect()
    }};
}

impl Buf {
    /// `n` zeros (false; the smallest value of `e8m0`, which has no zero).
    pub fn zeros(dtype: DType, n: usize) -> Buf {
        Buf::splat(Scalar::zero(dtype), n)
    }

    /// These values; `None` when one has another type.
    pub fn from_scalars(dtype: DType, values: &[Scalar]) -> Option<Buf> {
        let mut out = Buf::zeros(dtype, values.len());
        for (i, v) in values.iter().enumerate() {
            if v.dtype() != dtype {
                return None;
            }
            out.set(i, *v);
        }
        Some(out)
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        with_buf!(self, v => v.len())
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether type and bits of all elements agree (NaN equals itself, -0 is not +0).
    pub fn same_bits(&self, other: &Buf) -> bool {
        self.dtype() == other.dtype()
            && self.len() == other.len()
            && (0..self.len()).all(|i| self.get(i) == other.get(i))
    }

    /// Reads elements from memory, lowest byte first; `None` when a part of an element is left. Any byte but 0 is
    /// true.
    pub fn from_le_bytes(dtype: DType, bytes: &[u8]) -> Option<Buf> {
        Some(match dtype {
            DType::Bool => Buf::Bool(bytes.iter().map(|b| *b != 0).collect()),
            DType::I8 => Buf::I8(from_bytes!(i8, bytes)),
            DType::I16 => Buf::I16(from_bytes!(i16, bytes)),
            DType::I32 => Buf::I32(from_bytes!(i32, bytes)),
            DType::I64 => Buf::I64(from_bytes!(i64, bytes)),
            DType::U8 => Buf::U8(bytes.to_vec()),
            DType::U16 => Buf::U16(from_bytes!(u16, bytes)),
            DType::U32 => Buf::U32(from_bytes!(u32, bytes)),
            DType::U64 => Buf::U64(from_bytes!(u64, bytes)),
            DType::F8E4M3 => Buf::F8E4M3(bytes.to_vec()),
            DType::F8E5M2 => Buf::F8E5M2(bytes.to_vec()),
            DType::F8E4M3FNUZ => Buf::F8E4M3FNUZ(bytes.to_vec()),
            DType::F8E5M2FNUZ => Buf::F8E5M2FNUZ(bytes.to_vec()),
            DType::F16 => Buf::F16(from_bytes!(f16, bytes)),
            DType::BF16 => Buf::BF16(from_bytes!(bf16, bytes)),
            DType::F32 => Buf::F32(from_bytes!(f32, bytes)),
            DType::F64 => Buf::F64(from_bytes!(f64, bytes)),
            DType::E2M1 => Buf::E2M1(bytes.iter().map(|b| b & 0xf).collect()),
            DType::E8M0 => Buf::E8M0(bytes.to_vec()),
        })
    }

    /// The elements as they stand in memory, lowest byte first, [`DType::bytes`] each.
    pub fn to_le_bytes(&self) -> Vec<u8> {
        match self {
            Buf::Bool(v) => v.iter().map(|b| u8::from(*b)).collect(),
            Buf::I8(v) => to_bytes!(v),
            Buf::I16(v) => to_bytes!(v),
            Buf::I32(v) => to_bytes!(v),
            Buf::I64(v) => to_bytes!(v),
            Buf::U8(v)
            | Buf::F8E4M3(v)
            | Buf::F8E5M2(v)
            | Buf::F8E4M3FNUZ(v)
            | Buf::F8E5M2FNUZ(v)
            | Buf::E2M1(v)
            | Buf::E8M0(v) => v.clone(),
            Buf::U16(v) => to_bytes!(v),
            Buf::U32(v) => to_bytes!(v),
            Buf::U64(v) => to_bytes!(v),
            Buf::F16(v) => to_bytes!(v),
            Buf::BF16(v) => to_bytes!(v),
            Buf::F32(v) => to_bytes!(v),
            Buf::F64(v) => to_bytes!(v),
        }
    }

    /// The elements at `idx(0), idx(1), ..`; out of range gives zero.
    pub fn take(&self, idx: impl Fn(usize) -> usize, n: usize) -> Buf {
        map_buf!(self, v => (0..n).map(|i| v.get(idx(i)).copied().unwrap_or_default()).collect())
    }

    /// The elements at these places; out of range gives zero.
    pub fn gather(&self, at: &[usize]) -> Buf {
        map_buf!(self, v => at.iter().map(|i| v.get(*i).copied().unwrap_or_default()).collect())
    }

    /// A row-major tile of this shape whose element at index `i, j, ..` is the one at
    /// `start + i * strides[0] + j * strides[1] + ..`; out of range gives zero. A stride may be zero (broadcast) or
    /// negative (flip); an absent one counts as zero.
    pub fn strided(&self, start: isize, shape: &[usize], strides: &[isize]) -> Buf {
        map_buf!(self, v => {
            let mut out = Vec::new();
            for_rows(start, shape, strides, |at, n, step| read_row(v, at, n, step, &mut out));
            out
        })
    }

    /// The inverse of [`Buf::strided`]: writes a row-major tile into these places; those out of range are left out.
    /// With a source of another type nothing happens.
    pub fn put_strided(&mut self, start: isize, shape: &[usize], strides: &[isize], source: &Buf) {
        macro_rules! put {
            ($($variant:ident)*) => {
                match (self, source) {
                    $((Buf::$variant(to), Buf::$variant(from)) => {
                        let mut from = from.iter();
                        for_rows(start, shape, strides, |at, n, step| {
                            for (i, x) in (0..n as isize).zip(&mut from) {
                                if let Some(slot) = place(at, i, step).and_then(|p| to.get_mut(p)) {
                                    *slot = *x;
                                }
                            }
                        });
                    })*
                    (Buf::Bool(_) | Buf::I8(_) | Buf::I16(_) | Buf::I32(_) | Buf::I64(_) | Buf::U8(_) | Buf::U16(_)
                    | Buf::U32(_) | Buf::U64(_) | Buf::F8E4M3(_) | Buf::F8E5M2(_) | Buf::F8E4M3FNUZ(_) | Buf::F8E5M2FNUZ(_) | Buf::F16(_) | Buf::BF16(_)
                    | Buf::F32(_) | Buf::F64(_) | Buf::E2M1(_) | Buf::E8M0(_), _) => {}
                }
            };
        }
        put!(Bool I8 I16 I32 I64 U8 U16 U32 U64 F8E4M3 F8E5M2 F8E4M3FNUZ F8E5M2FNUZ F16 BF16 F32 F64 E2M1 E8M0)
    }

    /// The elements of a bool buffer.
    pub fn as_bool(&self) -> Option<&[bool]> {
        if let Buf::Bool(v) = self { Some(v) } else { None }
    }

    /// The elements of an f32 buffer.
    pub fn as_f32(&self) -> Option<&[f32]> {
        if let Buf::F32(v) = self { Some(v) } else { None }
    }

    /// The elements of an f64 buffer.
    pub fn as_f64(&self) -> Option<&[f64]> {
        if let Buf::F64(v) = self { Some(v) } else { None }
    }

    /// The elements of an integer buffer; u64 beyond the largest i64 saturates, which no index reaches.
    pub fn to_i64(&self) -> Option<Vec<i64>> {
        if let Buf::I64(v) = self {
            return Some(v.clone());
        }
        if !self.dtype().is_int() {
            return None;
        }
        let wide = |i| self.get(i).as_int().and_then(|x| i64::try_from(x).ok()).unwrap_or(i64::MAX);
        Some(match self {
            Buf::I32(v) => v.iter().map(|x| i64::from(*x)).collect(),
            other => (0..other.len()).map(wide).collect(),
        })
    }

    /// The values of a float buffer (f16 to f64, fp8, packed), exactly.
    pub fn to_f64(&self) -> Option<Vec<f64>> {
        let code = |v: &[u8]| v.iter().map(|c| float::to_f64(self.dtype(), u64::from(*c))).collect();
        match self {
            Buf::F16(v) => Some(v.iter().map(|x| x.to_f64()).collect()),
            Buf::BF16(v) => Some(v.iter().map(|x| x.to_f64()).collect()),
            Buf::F32(v) => Some(v.iter().map(|x| f64::from(*x)).collect()),
            Buf::F64(v) => Some(v.clone()),
            Buf::F8E4M3(v)
            | Buf::F8E5M2(v)
            | Buf::F8E4M3FNUZ(v)
            | Buf::F8E5M2FNUZ(v)
            | Buf::E2M1(v)
            | Buf::E8M0(v) => code(v),
            Buf::Bool(_)
            | Buf::I8(_)
            | Buf::I16(_)
            | Buf::I32(_)
            | Buf::I64(_)
            | Buf::U8(_)
            | Buf::U16(_)
            | Buf::U32(_)
            | Buf::U64(_) => None,
        }
    }

    /// Float values rounded to a float type, each once.
    pub fn from_f64(dtype: DType, values: &[f64]) -> Buf {
        if dtype == DType::F64 {
            return Buf::F64(values.to_vec());
        }
        if dtype == DType::F32 {
            return Buf::F32(values.iter().map(|x| *x as f32).collect());
        }
        let mut out = Buf::zeros(dtype, values.len());
        for (i, v) in values.iter().enumerate() {
            out.set(i, Scalar::float(dtype, *v));
        }
        out
    }
}

/// Calls `row(start, length, step)` for each run along the last axis, in row-major order.
fn for_rows(start: isize, shape: &[usize], strides: &[isize], mut row: impl FnMut(isize, usize, isize)) {
    let Some((last, outer)) = shape.split_last() else {
        return row(start, 1, 0);
    };
    let stride = |axis: usize| strides.get(axis).copied().unwrap_or(0);
    let rows = outer.iter().fold(1, |n: usize, extent| n.saturating_mul(*extent));
    let mut index = vec![0usize; outer.len()];
    let mut at = start;
    for _ in 0..rows {
        row(at, *last, stride(outer.len()));
        // The next index: the last axis that is not at its end goes one up, those after it go back to zero.
        for (axis, (i, extent)) in index.iter_mut().zip(outer).enumerate().rev() {
            *i += 1;
            at = at.wrapping_add(stride(axis));
            if *i < *extent {
                break;
            }
            at = at.wrapping_sub(stride(axis).wrapping_mul(*extent as isize));
            *i = 0;
        }
    }
}

/// The place of element `i` of a run; `None` below zero and beyond what can be counted.
fn place(start: isize, i: isize, step: isize) -> Option<usize> {
    usize::try_from(start.checked_add(i.checked_mul(step)?)?).ok()
}

/// Appends `n` elements at `start, start + step, ..`; out of range gives zero.
fn read_row<T: Copy + Default>(v: &[T], start: isize, n: usize, step: isize, out: &mut Vec<T>) {
    if let (Ok(first), 1) = (usize::try_from(start), step)
        && let Some(run) = first.checked_add(n).and_then(|end| v.get(first..end))
    {
        out.extend_from_slice(run);
        return;
    }
    let read = |p: Option<usize>| p.and_then(|p| v.get(p)).copied().unwrap_or_default();
    if step == 0 {
        out.resize(out.len() + n, read(usize::try_from(start).ok()));
    } else {
        out.extend((0..n as isize).map(|i| read(place(start, i, step))));
    }
}
