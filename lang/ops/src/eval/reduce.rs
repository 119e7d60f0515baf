//! The named reductions along one dimension.
//!
//! May assume nothing. Guarantees an order of combination that depends on the extents only, and sums and products whose
//! error grows with the logarithm of the length: blocks are folded into partial results, these pairwise.

use super::float_ops::{round, widen};
use super::functions::Float;
use super::int_ops::Int;
use super::{EvalError, cast, code_ops};
use crate::buf::Buf;
use crate::dtype::DType;
use crate::op::ReduceOp;

/// Reduces the middle dimension of `[outer, len, inner]`: element `(o, l, i)` is at `(o * len + l) * inner + i`, the
/// result has `outer * inner` elements. The result type is that of [`ReduceOp::result`].
pub fn reduce(op: ReduceOp, x: &Buf, outer: usize, len: usize, inner: usize) -> Result<Buf, EvalError> {
    let dtype = x.dtype();
    let unsupported = EvalError::Unsupported { op: op.name(), dtype };
    if !op.accepts().has(dtype) || op == ReduceOp::Custom {
        return Err(unsupported);
    }
    let expected = outer.saturating_mul(len).saturating_mul(inner);
    if len == 0 || inner == 0 || x.len() != expected {
        return Err(EvalError::Length { op: op.name(), expected: expected.max(1), found: x.len() });
    }
    let shape = Shape { len, inner };
    let summed = matches!(op, ReduceOp::Sum | ReduceOp::Prod);
    let result = op.result().of(dtype);
    let widened = if summed && result != dtype { Some(cast(x, result)?) } else { None };
    match widened.as_ref().unwrap_or(x) {
        Buf::Bool(v) if op == ReduceOp::Any => Some(Buf::Bool(shape.fold(v, |a, b| a | b))),
        Buf::Bool(v) if op == ReduceOp::All => Some(Buf::Bool(shape.fold(v, |a, b| a & b))),
        Buf::Bool(_) => None,
        Buf::I8(v) => ints(op, v, shape),
        Buf::I16(v) => ints(op, v, shape),
        Buf::I32(v) => ints(op, v, shape),
        Buf::I64(v) => ints(op, v, shape),
        Buf::U8(v) => ints(op, v, shape),
        Buf::U16(v) => ints(op, v, shape),
        Buf::U32(v) => ints(op, v, shape),
        Buf::U64(v) => ints(op, v, shape),
        Buf::F16(v) => floats(op, &widen(v), shape, |v| Buf::F16(round(&v))),
        Buf::BF16(v) => floats(op, &widen(v), shape, |v| Buf::BF16(round(&v))),
        Buf::F32(v) => floats(op, v, shape, Buf::F32),
        Buf::F64(v) => floats(op, v, shape, Buf::F64),
        Buf::F8E4M3(v) | Buf::F8E5M2(v) | Buf::F8E4M3FNUZ(v) | Buf::F8E5M2FNUZ(v) => {
            codes(op, v, dtype, shape)
        }
        Buf::E2M1(_) | Buf::E8M0(_) => None,
    }
    .ok_or(unsupported)
}

fn ints<T: Int>(op: ReduceOp, v: &[T], shape: Shape) -> Option<Buf> {
    Some(match op {
        ReduceOp::Sum => T::buf(shape.fold(v, T::add)),
        ReduceOp::Prod => T::buf(shape.fold(v, T::mul)),
        ReduceOp::Max => T::buf(shape.fold(v, T::max)),
        ReduceOp::Min => T::buf(shape.fold(v, T::min)),
        ReduceOp::XorSum => T::buf(shape.fold(v, T::xor)),
        ReduceOp::Or => T::buf(shape.fold(v, T::or)),
        ReduceOp::ArgMax => Buf::I32(shape.position(v, |new, best| new > best)),
        ReduceOp::ArgMin => Buf::I32(shape.position(v, |new, best| new < best)),
        ReduceOp::Any | ReduceOp::All | ReduceOp::Custom => return None,
    })
}

fn floats<T: Float>(op: ReduceOp, v: &[T], shape: Shape, buf: impl Fn(Vec<T>) -> Buf) -> Option<Buf> {
    Some(match op {
        ReduceOp::Sum => buf(shape.fold(v, T::add)),
        ReduceOp::Prod => buf(shape.fold(v, T::mul)),
        ReduceOp::Max => buf(shape.fold(v, T::maximum)),
        ReduceOp::Min => buf(shape.fold(v, T::minimum)),
        ReduceOp::ArgMax => Buf::I32(shape.position(v, |new, best| wins(new, best, new > best, false))),
        ReduceOp::ArgMin => Buf::I32(shape.position(v, |new, best| wins(new, best, new < best, true))),
        ReduceOp::XorSum | ReduceOp::Or | ReduceOp::Any | ReduceOp::All | ReduceOp::Custom => return None,
    })
}

fn codes(op: ReduceOp, v: &[u8], d: DType, shape: Shape) -> Option<Buf> {
    let found = match op {
        ReduceOp::Max => shape.fold(v, |a, b| code_ops::maximum(a, b, d)),
        ReduceOp::Min => shape.fold(v, |a, b| code_ops::minimum(a, b, d)),
        ReduceOp::ArgMax => {
            return Some(Buf::I32(shape.position(v, |new, best| code_ops::wins(new, best, d, true))));
        }
        ReduceOp::ArgMin => {
            return Some(Buf::I32(shape.position(v, |new, best| code_ops::wins(new, best, d, false))));
        }
        ReduceOp::Sum
        | ReduceOp::Prod
        | ReduceOp::XorSum
        | ReduceOp::Or
        | ReduceOp::Any
        | ReduceOp::All
        | ReduceOp::Custom => return None,
    };
    Buf::from_le_bytes(d, &found)
}

/// Whether `new` takes the place of an earlier `best` in the total order: the first NaN stays, zeros are told apart.
fn wins<T: Float>(new: T, best: T, better: bool, negative: bool) -> bool {
    if better || new.is_nan() {
        return !best.is_nan();
    }
    // Equal values with different signs are zeros.
    new == best && new.is_sign_negative() == negative && best.is_sign_negative() != negative
}

/// The extents from the reduced dimension on.
#[derive(Clone, Copy)]
struct Shape {
    len: usize,
    inner: usize,
}

/// Partial results of a row, as many as the widest vector registers hold of f32.
const LANES: usize = 16;
/// Elements that are folded one after the other into the same partial result; beyond it blocks are folded pairwise.
const RUN: usize = 32;

impl Shape {
    /// Folds each row. There is at least one element along the dimension.
    fn fold<T: Copy>(self, v: &[T], f: impl Fn(T, T) -> T + Copy) -> Vec<T> {
        if self.inner == 1 {
            return v.chunks_exact(self.len).filter_map(|row| fold_row(row, f)).collect();
        }
        v.chunks_exact(self.len * self.inner).flat_map(|block| fold_planes(block, self.inner, f)).collect()
    }

    /// The position along the dimension of the element that no later one beats.
    fn position<T: Copy>(self, v: &[T], beats: impl Fn(T, T) -> bool + Copy) -> Vec<i32> {
        if self.inner == 1 {
            return v.chunks_exact(self.len).map(|row| row_position(row, beats)).collect();
        }
        let mut out = Vec::new();
        for block in v.chunks_exact(self.len * self.inner) {
            let mut planes = block.chunks_exact(self.inner);
            let Some(first) = planes.next() else { continue };
            let mut best: Vec<(T, i32)> = first.iter().map(|x| (*x, 0)).collect();
            for (at, plane) in (1..).zip(planes) {
                for (best, x) in best.iter_mut().zip(plane) {
                    if beats(*x, best.0) {
                        *best = (*x, at);
                    }
                }
            }
            out.extend(best.iter().map(|(_, at)| *at));
        }
        out
    }
}

/// The position in a contiguous row of the element that no later one beats.
fn row_position<T: Copy>(row: &[T], beats: impl Fn(T, T) -> bool) -> i32 {
    let mut places = (0..).zip(row);
    let Some((mut at, mut best)) = places.next() else { return 0 };
    for (i, x) in places {
        if beats(*x, *best) {
            (at, best) = (i, x);
        }
    }
    at
}

/// Folds a contiguous row: `LANES` partial results side by side, long rows in halves.
fn fold_row<T: Copy>(row: &[T], f: impl Fn(T, T) -> T + Copy) -> Option<T> {
    if row.len() > LANES * RUN {
        // Halves of whole blocks: the order depends on the length only.
        let blocks = row.len().div_ceil(LANES * RUN);
        let (a, b) = row.split_at(blocks / 2 * LANES * RUN);
        return match (fold_row(a, f), fold_row(b, f)) {
            (Some(a), Some(b)) => Some(f(a, b)),
            (a, b) => a.or(b),
        };
    }
    let mut chunks = row.chunks_exact(LANES);
    let mut lanes: Vec<T> = match chunks.next() {
        Some(first) => {
            let mut lanes: [T; LANES] = first.try_into().ok()?;
            for chunk in chunks.by_ref() {
                for (lane, x) in lanes.iter_mut().zip(chunk) {
                    *lane = f(*lane, *x);
                }
            }
            lanes.to_vec()
        }
        None => Vec::new(),
    };
    lanes.extend(chunks.remainder());
    // Neighbours first: a tree over what is left.
    while lanes.len() > 1 {
        lanes = lanes.chunks(2).filter_map(|pair| pair.iter().copied().reduce(f)).collect();
    }
    lanes.first().copied()
}

/// Folds the planes of `inner` elements of a block, long blocks in halves.
fn fold_planes<T: Copy>(block: &[T], inner: usize, f: impl Fn(T, T) -> T + Copy) -> Vec<T> {
    let planes = block.len() / inner;
    if planes > RUN {
        let (a, b) = block.split_at(planes.div_ceil(RUN) / 2 * RUN * inner);
        let (a, b) = (fold_planes(a, inner, f), fold_planes(b, inner, f));
        return a.iter().zip(&b).map(|(a, b)| f(*a, *b)).collect();
    }
    let (first, rest) = block.split_at(inner.min(block.len()));
    let mut out = first.to_vec();
    for plane in rest.chunks_exact(inner) {
        for (out, x) in out.iter_mut().zip(plane) {
            *out = f(*out, *x);
        }
    }
    out
}
