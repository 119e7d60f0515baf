//! Operations by the order of elements or with values as positions: sorting, top-k, counting and gathering.
//!
//! May assume nothing. Guarantees the one total order of the language, in which -0 comes before +0, and that equal
//! elements keep their order.

use super::{EvalError, Lines};
use crate::buf::Buf;
use crate::dtype::DType;
use crate::op::ScanOp;
use crate::scalar::Scalar;

/// Where the elements of each line come from when they are sorted: for every place of the result a place of `keys`.
/// NaN comes last in both directions.
pub fn sort(keys: &Buf, lines: Lines, descending: bool) -> Result<Vec<usize>, EvalError> {
    let name = ScanOp::Sort.name();
    lines.check(name, keys)?;
    let ranks = ranks(name, keys, |rank| if descending { !rank } else { rank })?;
    let ranks: Vec<u64> = ranks.into_iter().map(|r| r.unwrap_or(u64::MAX)).collect();
    let mut places = vec![0; lines.count()];
    for start in lines.starts() {
        for (l, from) in sorted(&ranks, lines, start).into_iter().enumerate() {
            put(&mut places, start + l * lines.inner, start + from * lines.inner);
        }
    }
    Ok(places)
}

/// The places of the `k` largest elements of each line, and their positions in the line, largest first. NaN counts as
/// the largest, of equal elements the first comes first.
pub fn topk(x: &Buf, lines: Lines, k: usize) -> Result<(Vec<usize>, Vec<i32>), EvalError> {
    let name = ScanOp::TopK.name();
    lines.check(name, x)?;
    if k > lines.len {
        return Err(EvalError::Length { op: name, expected: k, found: lines.len });
    }
    // No float but NaN gets the rank 0, and there is no NaN among integers.
    let ranks = ranks(name, x, |rank| !rank)?;
    let ranks: Vec<u64> = ranks.into_iter().map(|r| r.unwrap_or(0)).collect();
    let result = Lines { len: k, ..lines };
    let (mut places, mut positions) = (vec![0; result.count()], vec![0; result.count()]);
    for (start, to) in lines.starts().zip(result.starts()) {
        for (l, from) in sorted(&ranks, lines, start).into_iter().take(k).enumerate() {
            put(&mut places, to + l * lines.inner, start + from * lines.inner);
            put(&mut positions, to + l * lines.inner, from as i32);
        }
    }
    Ok((places, positions))
}

/// The positions in a line by rank.
fn sorted(ranks: &[u64], lines: Lines, start: usize) -> Vec<usize> {
    let mut line: Vec<usize> = (0..lines.len).collect();
    line.sort_by_key(|l| ranks.get(start + l * lines.inner).copied().unwrap_or(u64::MAX));
    line
}

fn put<T>(to: &mut [T], at: usize, value: T) {
    if let Some(slot) = to.get_mut(at) {
        *slot = value;
    }
}

/// A number for each element that is ordered as the elements are, changed by `turn`; none for NaN.
fn ranks(op: &'static str, x: &Buf, turn: impl Fn(u64) -> u64) -> Result<Vec<Option<u64>>, EvalError> {
    let dtype = x.dtype();
    if matches!(dtype, DType::E2M1 | DType::E8M0) {
        return Err(EvalError::Unsupported { op, dtype });
    }
    let sign = 1u64 << (dtype.bits() - 1);
    let rank = |s: Scalar| -> Option<u64> {
        if s.as_f64().is_some_and(f64::is_nan) {
            return None;
        }
        let bits = s.bits() & (sign | (sign - 1));
        let float = dtype.is_float() || dtype.is_f8();
        Some(turn(match (float, bits & sign != 0) {
            // Larger bits of a negative number are a smaller number.
            (true, true) => !bits & (sign | (sign - 1)),
            (true, false) => bits | sign,
            (false, _) if dtype.is_signed() => bits ^ sign,
            (false, _) => bits,
        }))
    };
    Ok((0..x.len()).map(|i| rank(x.get(i))).collect())
}

/// How often each of `0, .., bins - 1` occurs where the mask is true.
pub fn histogram(x: &Buf, mask: Option<&[bool]>, bins: usize) -> Result<Vec<i32>, EvalError> {
    let name = ScanOp::Histogram.name();
    let values = x.to_i64().ok_or(EvalError::Unsupported { op: name, dtype: x.dtype() })?;
    if let Some(mask) = mask.filter(|m| m.len() != values.len()) {
        return Err(EvalError::Length { op: name, expected: values.len(), found: mask.len() });
    }
    let mut counts = vec![0i32; bins];
    for (i, v) in values.iter().enumerate() {
        let counted = mask.is_none_or(|m| m.get(i) == Some(&true));
        let bin = usize::try_from(*v).ok().filter(|_| counted).and_then(|b| counts.get_mut(b));
        bin.into_iter().for_each(|n| *n = n.wrapping_add(1));
    }
    Ok(counts)
}

/// Where the elements that `index` asks for lie: `lines` are those of the tile that is read, `index` has the same except
/// for its length. A position outside becomes the nearest inside.
pub fn gather(index: &Buf, lines: Lines) -> Result<Vec<usize>, EvalError> {
    let name = ScanOp::Gather.name();
    let at = index.to_i64().ok_or(EvalError::Unsupported { op: name, dtype: index.dtype() })?;
    let across = lines.outer.saturating_mul(lines.inner);
    if across == 0 || lines.len == 0 || at.len() % across != 0 {
        return Err(EvalError::Length { op: name, expected: across, found: at.len() });
    }
    let len = at.len() / across;
    let place = |(p, i): (usize, &i64)| {
        let (o, inner) = (p / lines.inner / len.max(1), p % lines.inner);
        let l = usize::try_from(*i).unwrap_or(if *i < 0 { 0 } else { usize::MAX }).min(lines.len - 1);
        (o * lines.len + l) * lines.inner + inner
    };
    Ok(at.iter().enumerate().map(place).collect())
}
