//! The loops: one function per operand count, over slices and repeated values, written so that they vectorise.
//!
//! May assume that all slices have `n` elements (the caller checked). Guarantees `n` results.

use half::{bf16, f16};

use crate::buf::Buf;
use crate::dtype::DType;
use crate::elementwise::{Equality, Order};
use crate::scalar::Scalar;

/// A type that stands for exactly one element type.
pub(super) trait Element: Copy + Default {
    /// The elements of a buffer of this type.
    fn slice(b: &Buf) -> Option<&[Self]>;
    /// A buffer of these elements.
    fn buf(v: Vec<Self>) -> Buf;
    /// The value of a scalar of this type.
    fn from_scalar(s: Scalar) -> Option<Self>;
}

macro_rules! elements {
    ($($ty:ty, $variant:ident, $from:expr;)*) => {$(
        impl Element for $ty {
            fn slice(b: &Buf) -> Option<&[Self]> {
                if let Buf::$variant(v) = b { Some(v) } else { None }
            }
            fn buf(v: Vec<Self>) -> Buf {
                Buf::$variant(v)
            }
            fn from_scalar(s: Scalar) -> Option<Self> {
                (s.dtype() == DType::$variant).then(|| $from(s.bits()))
            }
        }
    )*};
}

elements! {
    bool, Bool, |b| b != 0;
    i8, I8, |b| b as i8;
    i16, I16, |b| b as i16;
    i32, I32, |b| b as i32;
    i64, I64, |b| b as i64;
    u8, U8, |b| b as u8;
    u16, U16, |b| b as u16;
    u32, U32, |b| b as u32;
    u64, U64, |b| b;
    f16, F16, |b| f16::from_bits(b as u16);
    bf16, BF16, |b| bf16::from_bits(b as u16);
    f32, F32, |b| f32::from_bits(b as u32);
    f64, F64, f64::from_bits;
}

/// An operand with its element type known.
#[derive(Clone, Copy)]
pub(super) enum Source<'a, T> {
    /// The same value for every element.
    Splat(T),
    /// One value for each element.
    Slice(&'a [T]),
}

impl<'a, T: Copy + Default> Source<'a, T> {
    /// A slice, or the value of a slice of one.
    pub fn held(v: &'a [T], splat: bool) -> Self {
        if splat { Source::Splat(v.first().copied().unwrap_or_default()) } else { Source::Slice(v) }
    }

    /// The elements from `at` on, `n` of them.
    pub fn part(self, at: usize, n: usize) -> Self {
        match self {
            Source::Splat(x) => Source::Splat(x),
            Source::Slice(v) => Source::Slice(v.get(at..at + n).unwrap_or(&[])),
        }
    }
}

/// `f` of each element.
#[inline]
pub(super) fn unary<T: Copy, R: Copy>(x: Source<'_, T>, n: usize, f: impl Fn(T) -> R) -> Vec<R> {
    match x {
        Source::Splat(x) => vec![f(x); n],
        Source::Slice(v) => v.iter().map(|x| f(*x)).collect(),
    }
}

/// `f` of each pair of elements.
#[inline]
pub(super) fn binary<T: Copy, U: Copy, R: Copy>(
    a: Source<'_, T>,
    b: Source<'_, U>,
    n: usize,
    f: impl Fn(T, U) -> R,
) -> Vec<R> {
    match (a, b) {
        (Source::Splat(a), Source::Splat(b)) => vec![f(a, b); n],
        (Source::Splat(a), Source::Slice(b)) => b.iter().map(|b| f(a, *b)).collect(),
        (Source::Slice(a), Source::Splat(b)) => a.iter().map(|a| f(*a, b)).collect(),
        (Source::Slice(a), Source::Slice(b)) => a.iter().zip(b).map(|(a, b)| f(*a, *b)).collect(),
    }
}

/// Which pairs of elements are equal, or are not.
pub(super) fn equality<T: Copy + PartialEq>(f: Equality, [a, b]: [Source<'_, T>; 2], n: usize) -> Vec<bool> {
    match f {
        Equality::Eq => binary(a, b, n, |a, b| a == b),
        Equality::Ne => binary(a, b, n, |a, b| a != b),
    }
}

/// Which pairs of elements are in an order.
pub(super) fn order<T: Copy + PartialOrd>(f: Order, [a, b]: [Source<'_, T>; 2], n: usize) -> Vec<bool> {
    match f {
        Order::Lt => binary(a, b, n, |a, b| a < b),
        Order::Le => binary(a, b, n, |a, b| a <= b),
        Order::Gt => binary(a, b, n, |a, b| a > b),
        Order::Ge => binary(a, b, n, |a, b| a >= b),
    }
}

/// `f` of each triple of elements. Repeated values among them are written out, except where the last two are repeated
/// (the bounds of `clamp`).
#[inline]
pub(super) fn ternary<T: Copy>(
    a: Source<'_, T>,
    b: Source<'_, T>,
    c: Source<'_, T>,
    n: usize,
    f: impl Fn(T, T, T) -> T,
) -> Vec<T> {
    if let (Source::Slice(a), Source::Splat(b), Source::Splat(c)) = (a, b, c) {
        return a.iter().map(|a| f(*a, b, c)).collect();
    }
    let written = |s: Source<'_, T>| match s {
        Source::Splat(x) => vec![x; n],
        Source::Slice(_) => Vec::new(),
    };
    let held = [written(a), written(b), written(c)];
    let [ha, hb, hc] = &held;
    let slice = |s, held| match s {
        Source::Splat(_) => held,
        Source::Slice(v) => v,
    };
    let (a, b, c) = (slice(a, ha.as_slice()), slice(b, hb.as_slice()), slice(c, hc.as_slice()));
    a.iter().zip(b).zip(c).map(|((a, b), c)| f(*a, *b, *c)).collect()
}

/// The first where the condition holds, else the second.
pub(super) fn select<T: Copy>(cond: &[bool], a: Source<'_, T>, b: Source<'_, T>) -> Vec<T> {
    match (a, b) {
        (Source::Splat(a), Source::Splat(b)) => cond.iter().map(|c| if *c { a } else { b }).collect(),
        (Source::Splat(a), Source::Slice(b)) => {
            cond.iter().zip(b).map(|(c, b)| if *c { a } else { *b }).collect()
        }
        (Source::Slice(a), Source::Splat(b)) => {
            cond.iter().zip(a).map(|(c, a)| if *c { *a } else { b }).collect()
        }
        (Source::Slice(a), Source::Slice(b)) => {
            cond.iter().zip(a).zip(b).map(|((c, a), b)| if *c { *a } else { *b }).collect()
        }
    }
}
