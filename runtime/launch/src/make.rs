//! Owns arrays that are described instead of stored: `zeros:f16[512,512]`, `randn:f16[64]@3`, `arange:i32[10]`.
//!
//! May assume nothing about the text. Guarantees the same bits for the same text on every machine, and an error
//! instead of an attempt to allocate what does not fit in memory.

use tk_ops::{Buf, DType, Scalar, philox};

use crate::npy::Array;

/// The generators, as a user writes them.
pub const KINDS: [&str; 5] = ["zeros", "ones", "full", "randn", "arange"];

/// The array that a text such as `zeros:f16[512,512]` describes; `None` when it does not begin with a generator and
/// a colon. The error is one sentence.
pub fn parse(text: &str) -> Option<Result<Array, String>> {
    let (kind, rest) = text.split_once(':')?;
    KINDS.contains(&kind).then(|| make(text, kind, rest))
}

fn make(text: &str, kind: &str, rest: &str) -> Result<Array, String> {
    let malformed = || format!("`{text}` is not understood; write `{}`", sample(kind));
    let (spec, after) = match rest.split_once('@') {
        Some((spec, after)) => (spec, Some(after)),
        None => (rest, None),
    };
    let (dtype, dims) = spec.strip_suffix(']').and_then(|s| s.split_once('[')).ok_or_else(malformed)?;
    let dtype = DType::parse(dtype)
        .ok_or_else(|| format!("`{dtype}` in `{text}` is not an element type, such as f32"))?;
    let dims = dims.trim();
    let shape: Option<Vec<usize>> =
        if dims.is_empty() { Some(vec![]) } else { dims.split(',').map(|d| d.trim().parse().ok()).collect() };
    let shape = shape.ok_or_else(malformed)?;
    let count = room(text, dtype, &shape)?;
    let (buf, takes_after) = match kind {
        "zeros" => (Buf::zeros(dtype, count), false),
        "ones" => (Buf::splat(Scalar::int(dtype, 1), count), false),
        "arange" => (arange(dtype, count), false),
        "randn" => (randn(text, dtype, count, after)?, true),
        _ => (full(dtype, count, after.ok_or_else(malformed)?).ok_or_else(malformed)?, true),
    };
    if after.is_some() && !takes_after {
        return Err(malformed());
    }
    Ok(Array { dtype, shape, bytes: buf.to_le_bytes() })
}

fn sample(kind: &str) -> String {
    match kind {
        "full" => "full:f32[4,8]@0.5".to_string(),
        "randn" => "randn:f32[4,8]@SEED".to_string(),
        other => format!("{other}:f32[4,8]"),
    }
}

/// The number of elements, if that many fit in memory.
fn room(text: &str, dtype: DType, shape: &[usize]) -> Result<usize, String> {
    let count = shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d));
    let bytes = count.and_then(|n| n.checked_mul(dtype.bytes()));
    let fits = |n: usize| Vec::<u8>::new().try_reserve_exact(n).is_ok();
    match (count, bytes) {
        (Some(count), Some(bytes)) if fits(bytes) => Ok(count),
        _ => Err(format!("`{text}` does not fit in memory")),
    }
}

fn arange(dtype: DType, count: usize) -> Buf {
    let mut buf = Buf::zeros(dtype, count);
    for i in 0..count {
        buf.set(i, Scalar::int(dtype, i as i128));
    }
    buf
}

fn randn(text: &str, dtype: DType, count: usize, seed: Option<&str>) -> Result<Buf, String> {
    if !dtype.is_float() {
        return Err(format!("`{text}`: normal numbers need a float type, not {dtype}"));
    }
    let seed =
        seed.map_or(Ok(0), str::parse).map_err(|_| format!("`{text}`: the seed is not a whole number"))?;
    Ok(Buf::from_f64(dtype, &philox::randn(seed, count)))
}

fn full(dtype: DType, count: usize, value: &str) -> Option<Buf> {
    Scalar::parse(value, dtype).map(|v| Buf::splat(v, count))
}
