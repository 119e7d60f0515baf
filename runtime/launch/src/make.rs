//! Arrays from descriptions: `zeros:f16[512,512]`, `randn:f16[64]@3`, `arange:i32[10]`.
//!
//! Accepts any text. Guarantees the same bits for the same text on every machine, and an error instead of an
//! allocation that does not fit in memory, or for values that the element type cannot represent. Reading a
//! description allocates nothing: the launch contract compares shapes before anything is filled.

use std::ops::Range;

use tk_ops::{Buf, DType, Scalar, philox};

use crate::room;

/// The generators, as a user writes them.
pub const KINDS: [&str; 6] = ["zeros", "ones", "full", "randn", "arange", "empty"];

/// Elements that are made at once, so that their number in other types stays small.
const CHUNK: usize = 1 << 16;

/// An array that can be made.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// Element type.
    pub dtype: DType,
    /// Extents; empty for a single value.
    pub shape: Vec<usize>,
    fill: Fill,
}

/// The values of the elements.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fill {
    /// Nobody has written them.
    Nothing,
    Value(Scalar),
    /// Their numbers.
    Range,
    /// Normally distributed, with this seed.
    Normal(u64),
}

/// The array that a text such as `zeros:f16[512,512]` describes; `None` when it does not begin with a generator and
/// a colon. The error is one sentence.
pub fn parse(text: &str) -> Option<Result<Description, String>> {
    let (kind, rest) = text.split_once(':')?;
    KINDS.contains(&kind).then(|| describe(text, kind, rest))
}

fn describe(text: &str, kind: &str, rest: &str) -> Result<Description, String> {
    let malformed = || format!("`{text}` is not understood; write `{}`", sample(kind));
    let (spec, after) = match rest.split_once('@') {
        Some((spec, after)) => (spec, Some(after)),
        None => (rest, None),
    };
    let (dtype, dims) = spec.strip_suffix(']').and_then(|s| s.split_once('[')).ok_or_else(malformed)?;
    let dtype = DType::parse(dtype)
        .ok_or_else(|| format!("`{dtype}` in `{text}` is not an element type, such as f32"))?;
    let shape = extents(text, dims)?.ok_or_else(malformed)?;
    if after.is_some() && !matches!(kind, "randn" | "full") {
        return Err(malformed());
    }
    room::check(room::bytes(&shape, dtype.bytes())).map_err(|what| format!("`{text}` {what}"))?;
    let fill = match kind {
        "empty" => Fill::Nothing,
        "zeros" => Fill::Value(Scalar::zero(dtype)),
        "ones" => Fill::Value(Scalar::int(dtype, 1)),
        "arange" => range(text, dtype, shape.iter().product())?,
        "randn" => normal(text, dtype, after)?,
        _ => Fill::Value(value(text, dtype, after.ok_or_else(malformed)?)?),
    };
    Ok(Description { dtype, shape, fill })
}

/// The extents; `None` when there is something else than whole numbers.
fn extents(text: &str, dims: &str) -> Result<Option<Vec<usize>>, String> {
    if dims.trim().is_empty() {
        return Ok(Some(vec![]));
    }
    let mut shape = vec![];
    for d in dims.split(',').map(str::trim) {
        if d.starts_with(|c: char| c.is_alphabetic()) {
            return Err(format!("`{d}` in `{text}` has no value; extents are whole numbers"));
        }
        if d.is_empty() || !d.bytes().all(|b| b.is_ascii_digit()) {
            return Ok(None);
        }
        // An extent is an i64 in the language.
        let extent = d.parse::<i64>().ok().and_then(|d| usize::try_from(d).ok());
        shape.push(extent.ok_or_else(|| format!("`{text}`: the extent {d} is larger than {}", i64::MAX))?);
    }
    Ok(Some(shape))
}

fn sample(kind: &str) -> String {
    match kind {
        "full" => "full:f32[4,8]@0.5".to_string(),
        "randn" => "randn:f32[4,8]@SEED".to_string(),
        other => format!("{other}:f32[4,8]"),
    }
}

fn range(text: &str, dtype: DType, count: usize) -> Result<Fill, String> {
    let last = count.saturating_sub(1) as i128;
    match Scalar::int_in_range(dtype, last) {
        Some(_) => Ok(Fill::Range),
        None => Err(format!("`{text}` counts to {last}, which is too large for {dtype}")),
    }
}

fn normal(text: &str, dtype: DType, seed: Option<&str>) -> Result<Fill, String> {
    if !dtype.is_float() {
        return Err(format!("`{text}`: normal numbers need a float type, not {dtype}"));
    }
    let seed = seed.map_or(Ok(0), str::parse);
    seed.map(Fill::Normal)
        .map_err(|_| format!("`{text}`: the seed is not a whole number from 0 to {}", u64::MAX))
}

fn value(text: &str, dtype: DType, value: &str) -> Result<Scalar, String> {
    let scalar =
        Scalar::parse(value, dtype).ok_or_else(|| format!("`{text}`: {value} is no value of {dtype}"))?;
    let number = value.parse::<f64>().ok().filter(|_| value.contains(|c: char| c.is_ascii_digit()));
    let overflows = |v: f64| !v.is_finite() || Scalar::float_in_range(dtype, v).is_none();
    match number {
        Some(v) if scalar.as_f64().is_some() && overflows(v) => {
            Err(format!("`{text}`: {value} is too large for {dtype}"))
        }
        Some(_) | None => Ok(scalar),
    }
}

impl Description {
    /// The bytes that the array will have. They were found to fit in memory when the description was read.
    pub fn bytes(&self) -> usize {
        room::bytes(&self.shape, self.dtype.bytes()).unwrap_or(usize::MAX)
    }

    /// The same as [`Description::make`], but random numbers repeat after `period` elements, so that large arrays are
    /// made in a short time.
    pub fn make_repeated(&self, period: usize) -> Option<Vec<u8>> {
        let (size, part) = (self.bytes(), period.saturating_mul(self.dtype.bytes()));
        if !matches!(self.fill, Fill::Normal(_)) || size <= part {
            return self.make();
        }
        let mut bytes = Description { shape: vec![period], ..self.clone() }.make()?;
        bytes.reserve_exact(size - bytes.len());
        while bytes.len() < size {
            let more = bytes.len().min(size - bytes.len());
            bytes.extend_from_within(..more);
        }
        Some(bytes)
    }

    /// Makes the bytes of the array; `None` if they are uninitialized.
    pub fn make(&self) -> Option<Vec<u8>> {
        let size = self.bytes();
        let count = size / self.dtype.bytes().max(1);
        Some(match self.fill {
            Fill::Nothing => return None,
            // Pages of zeros cost nothing until something else is written to them.
            Fill::Value(v) if v.bits() == 0 => vec![0; size],
            Fill::Value(v) => chunks(size, count, |r| Buf::splat(v, r.len())),
            Fill::Range => chunks(size, count, |r| {
                let mut buf = Buf::zeros(self.dtype, r.len());
                r.enumerate().for_each(|(at, i)| buf.set(at, Scalar::int(self.dtype, i as i128)));
                buf
            }),
            Fill::Normal(seed) => chunks(size, count, |r| {
                let numbers: Vec<f64> = r.map(|i| philox::normal_at(seed, i)).collect();
                Buf::from_f64(self.dtype, &numbers)
            }),
        })
    }
}

fn chunks(size: usize, count: usize, part: impl Fn(Range<usize>) -> Buf) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size);
    let mut at = 0;
    while at < count {
        let end = count.min(at + CHUNK);
        bytes.extend_from_slice(&part(at..end).to_le_bytes());
        at = end;
    }
    bytes
}
