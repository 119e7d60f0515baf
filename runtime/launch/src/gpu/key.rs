//! The key of a launch: two launches with the same key differ only in addresses.
//!
//! A key holds everything that the plan and the binary depend on: element types, ranks, what is known of addresses and
//! numbers, and the extents, strides and numbers themselves where a clause of the kernel reads them. Guarantees that
//! launches with equal keys differ in nothing but what [`super::launcher`] writes for each of them.

use std::hash::Hasher;

use tk_ops::{DType, Scalar};
use tk_sema::contract::{ArgUse, HostArg};

use super::buffer::Buffer;
use crate::compile::ArgFacts;

/// The highest rank of a view, from the specification.
pub(crate) const RANK: usize = 5;

/// An argument of a kernel on a GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arg<'a> {
    /// A tensor in memory of the GPU.
    Tensor {
        /// The address of its first element.
        address: u64,
        /// Bytes from there on that belong to it; `usize::MAX` if that is not known.
        bytes: usize,
        /// Its element type.
        dtype: DType,
        /// Its extents.
        shape: &'a [i64],
        /// Its strides in elements; none for row-major without gaps.
        strides: Option<&'a [i64]>,
    },
    /// A number or bool.
    Scalar(Scalar),
    /// An optional argument that is not there, or one that has a default.
    Absent,
}

impl<'a> Arg<'a> {
    /// A row-major tensor at the start of a buffer.
    pub fn tensor(buffer: &Buffer, dtype: DType, shape: &'a [i64]) -> Arg<'a> {
        Arg::Tensor { address: buffer.address(), bytes: buffer.len(), dtype, shape, strides: None }
    }

    /// A tensor in memory of another library.
    pub fn foreign(address: u64, dtype: DType, shape: &'a [i64], strides: &'a [i64]) -> Arg<'a> {
        Arg::Tensor { address, bytes: usize::MAX, dtype, shape, strides: Some(strides) }
    }

    /// As the launch contract sees it.
    pub(crate) fn host(&self) -> HostArg {
        match self {
            Arg::Absent => HostArg::Absent,
            Arg::Scalar(s) => HostArg::Scalar(*s),
            Arg::Tensor { dtype, shape, strides, .. } => {
                let strides = strides.map_or_else(
                    || (0..shape.len()).map(|axis| contiguous(shape, axis)).collect(),
                    <[i64]>::to_vec,
                );
                HostArg::Tensor { dtype: *dtype, shape: shape.to_vec(), strides }
            }
        }
    }

    /// Returns true if the elements of a tensor are inside its memory.
    #[inline]
    pub(crate) fn inside(&self) -> bool {
        let Arg::Tensor { bytes, dtype, shape, strides, .. } = self else { return true };
        if *bytes == usize::MAX {
            return true;
        }
        // What overflows is in no memory.
        let mut last = Some(0i64);
        for (axis, extent) in shape.iter().enumerate() {
            if *extent <= 0 {
                return true;
            }
            let stride = self.stride(axis, shape, *strides);
            if stride < 0 {
                return false;
            }
            last = stride.checked_mul(*extent - 1).and_then(|step| last?.checked_add(step));
        }
        let needed = last.and_then(|n| n.checked_add(1)?.checked_mul(dtype.bytes() as i64));
        needed.and_then(|n| usize::try_from(n).ok()).is_some_and(|n| n <= *bytes)
    }

    #[inline]
    fn stride(&self, axis: usize, shape: &[i64], strides: Option<&[i64]>) -> i64 {
        strides.map_or_else(|| contiguous(shape, axis), |s| s.get(axis).copied().unwrap_or(0))
    }

    /// An extent of a tensor.
    #[inline]
    pub(crate) fn extent_of(&self, axis: usize) -> u64 {
        match self {
            Arg::Tensor { shape, .. } => shape.get(axis).copied().unwrap_or(0) as u64,
            Arg::Scalar(_) | Arg::Absent => 0,
        }
    }

    /// A stride of a tensor.
    #[inline]
    pub(crate) fn stride_of(&self, axis: usize) -> u64 {
        match self {
            Arg::Tensor { shape, strides, .. } => self.stride(axis, shape, *strides) as u64,
            Arg::Scalar(_) | Arg::Absent => 0,
        }
    }

    /// The address of a tensor, the bits of a number.
    #[inline]
    pub(crate) fn bits(&self) -> u64 {
        match self {
            Arg::Tensor { address, .. } => *address,
            Arg::Scalar(s) => s.bits(),
            Arg::Absent => 0,
        }
    }
}

/// The stride of an axis of a row-major tensor without gaps.
#[inline]
fn contiguous(shape: &[i64], axis: usize) -> i64 {
    let inner = shape.get(axis + 1..).unwrap_or_default();
    inner.iter().fold(1i64, |step, extent| step.saturating_mul((*extent).max(1)))
}

macro_rules! numbers {
    ($($ty:ty, $v:ident => $scalar:expr;)*) => {
        $(impl From<$ty> for Arg<'_> {
            fn from($v: $ty) -> Self { Arg::Scalar($scalar) }
        })*
    };
}

numbers! {
    bool, v => Scalar::bool(v);
    i32, v => Scalar::from_bits(DType::I32, u64::from(v as u32));
    u32, v => Scalar::from_bits(DType::U32, u64::from(v));
    i64, v => Scalar::from_bits(DType::I64, v as u64);
    u64, v => Scalar::from_bits(DType::U64, v);
    f32, v => Scalar::from_bits(DType::F32, u64::from(v.to_bits()));
    f64, v => Scalar::from_bits(DType::F64, v.to_bits());
    i8, v => Scalar::from_bits(DType::I8, u64::from(v as u8));
    u8, v => Scalar::from_bits(DType::U8, u64::from(v));
    i16, v => Scalar::from_bits(DType::I16, u64::from(v as u16));
    u16, v => Scalar::from_bits(DType::U16, u64::from(v));
    half::f16, v => Scalar::from_bits(DType::F16, u64::from(v.to_bits()));
    half::bf16, v => Scalar::from_bits(DType::BF16, u64::from(v.to_bits()));
    Scalar, v => v;
}

// The head of an argument: what it is, its element type, its rank, whether its numbers follow, what is known of it.
const TENSOR: u64 = 1 << 56;
const NUMBER: u64 = 2 << 56;
const ABSENT: u64 = 3 << 56;
const DTYPE: u32 = 48;
const RANK_AT: u32 = 32;
const EXACT: u64 = 1 << 31;

/// The facts about a machine parameter, in [`FACT_BITS`] bits.
#[inline]
fn fact(f: ArgFacts) -> u64 {
    u64::from(f.divisible.trailing_zeros()) << 2 | u64::from(f.positive) << 1 | u64::from(f.one)
}

/// Five bits: the powers of two up to 16 are five, and there are two bits more. Extents and strides of the highest rank fit
/// in a word.
const FACT_BITS: u32 = 5;

/// Returns true if the numbers of an argument are part of the key, in the words of [`ArgUse`]. What is not understood
/// here is exact, so that the plan says what is wrong with it.
#[inline]
pub(crate) fn exact(u: Option<&ArgUse>, arg: &Arg<'_>) -> bool {
    let Some(u) = u else { return true };
    match arg {
        Arg::Absent => false,
        Arg::Scalar(s) => u.read || u.number != Some(s.dtype()),
        Arg::Tensor { shape, strides, .. } => {
            u.read
                || shape.len() > RANK
                || strides.is_some_and(|s| s.len() != shape.len())
                || shape.iter().any(|d| !(0..=i64::from(i32::MAX)).contains(d))
        }
    }
}

/// Writes the key of a launch. `class` stands for the kernel and what it is given by name.
#[inline]
pub(crate) fn write(class: u64, uses: &[ArgUse], args: &[Arg<'_>], key: &mut Vec<u64>) {
    key.clear();
    key.push(class);
    for (i, arg) in args.iter().enumerate() {
        let exact = exact(uses.get(i), arg);
        let mark = if exact { EXACT } else { 0 };
        match arg {
            Arg::Absent => key.push(ABSENT),
            Arg::Scalar(s) => {
                let head = NUMBER | (s.dtype() as u64) << DTYPE | mark;
                if exact {
                    key.extend([head, s.bits()]);
                } else {
                    let kind = crate::compile::ParamKind::Scalar(s.dtype());
                    key.push(head | fact(ArgFacts::of(kind, s.bits())));
                }
            }
            Arg::Tensor { address, dtype, shape, strides, .. } => {
                let rank = (shape.len() as u64) << RANK_AT;
                let head = TENSOR | (*dtype as u64) << DTYPE | rank | mark;
                key.push(head | fact(ArgFacts::of_address(*address)));
                let axes = 0..shape.len();
                if exact {
                    key.extend(shape.iter().map(|d| *d as u64));
                    // A tensor whose strides do not fit its rank is refused by the plan: all of them are told apart.
                    key.push(strides.map_or(u64::MAX, |s| s.len() as u64));
                    key.extend(strides.unwrap_or_default().iter().map(|s| *s as u64));
                } else {
                    let known = |word: u64, v: u64| word << FACT_BITS | fact(ArgFacts::of_int(v as i64));
                    let word = axes.clone().fold(0, |w, axis| known(w, arg.extent_of(axis)));
                    key.push(axes.fold(word, |w, axis| known(w, arg.stride_of(axis))));
                }
            }
        }
    }
}

/// A hash of keys: their words are multiplied into one. Keys are made here and not by a party that could want them to
/// collide, and equal hashes of different keys cost time only.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(size_of::<u64>()) {
            let mut word = [0; size_of::<u64>()];
            word.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
            self.write_u64(u64::from_ne_bytes(word));
        }
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        /// 2^64 divided by the golden ratio: an odd number without a pattern in its bits.
        const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(FACTOR);
    }

    #[inline]
    fn finish(&self) -> u64 {
        // A product has its best bits at the top, a map looks at the lowest ones first.
        self.0 ^ self.0 >> 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: ArgUse = ArgUse { read: true, number: None };
    const PLAIN: ArgUse = ArgUse { read: false, number: None };
    const INT: ArgUse = ArgUse { read: false, number: Some(DType::I32) };

    fn key(uses: &[ArgUse], args: &[Arg<'_>]) -> Vec<u64> {
        let mut out = vec![];
        write(7, uses, args, &mut out);
        out
    }

    fn at(address: u64, shape: &[i64]) -> Arg<'_> {
        Arg::Tensor { address, bytes: usize::MAX, dtype: DType::F16, shape, strides: None }
    }

    #[test]
    fn launches_that_differ_in_what_decides_have_different_keys() {
        let same = |uses: &[ArgUse], a: Arg<'_>, b: Arg<'_>| key(uses, &[a]) == key(uses, &[b]);
        // Addresses differ in what is known of them only.
        assert!(same(&[READ], at(0x1000, &[4, 8]), at(0x2000, &[4, 8])));
        assert!(!same(&[READ], at(0x1000, &[4, 8]), at(0x1008, &[4, 8])));
        // Extents: all, or what is known of them.
        assert!(!same(&[READ], at(0x1000, &[4, 64]), at(0x1000, &[4, 128])));
        assert!(same(&[PLAIN], at(0x1000, &[4, 64]), at(0x1000, &[4, 128])));
        assert!(!same(&[PLAIN], at(0x1000, &[4, 64]), at(0x1000, &[4, 65])));
        assert!(!same(&[PLAIN], at(0x1000, &[4, 64]), at(0x1000, &[4, 1])));
        assert!(!same(&[PLAIN], at(0x1000, &[4, 64]), at(0x1000, &[4, 1 << 40])));
        assert!(!same(&[PLAIN], at(0x1000, &[4, 64]), at(0x1000, &[64])));
        // Numbers: those of another type than the parameter are converted by the plan.
        assert!(same(&[INT], Arg::from(3), Arg::from(5)));
        assert!(!same(&[INT], Arg::from(3), Arg::from(4)));
        assert!(!same(&[INT], Arg::from(3), Arg::from(1)));
        assert!(!same(&[INT], Arg::from(3i64), Arg::from(5i64)));
        assert!(!same(&[PLAIN], Arg::from(3), Arg::from(5)));
        assert!(!same(&[INT], Arg::from(3), Arg::Absent));
        let strided = |strides| Arg::foreign(0x1000, DType::F16, &[4, 8], strides);
        assert!(!same(&[READ], strided(&[8, 1]), strided(&[1, 4])));
        assert!(same(&[PLAIN], strided(&[8, 1]), at(0x1000, &[4, 8])));
    }

    #[test]
    fn a_tensor_has_to_lie_in_its_buffer() {
        let tensor =
            |bytes, shape, strides| Arg::Tensor { address: 0, bytes, dtype: DType::F32, shape, strides };
        assert!(tensor(16, &[2, 2], None).inside());
        assert!(!tensor(15, &[2, 2], None).inside());
        assert!(tensor(0, &[0, 2], None).inside());
        assert!(tensor(4, &[100], Some(&[0])).inside());
        assert!(!tensor(4, &[2], Some(&[-1])).inside());
        assert!(!tensor(usize::MAX - 1, &[i64::MAX, i64::MAX], None).inside());
    }
}
