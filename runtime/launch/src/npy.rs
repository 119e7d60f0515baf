//! The `.npy` file format: reading into and writing from contiguous row-major [`Array`]s.
//!
//! Accepts any bytes: a header of any length, nesting or extents gives one sentence, never a panic and never an
//! allocation that the file does not back. That is why the header, a dictionary of three known keys, is read here by
//! a scanner without recursion and not by a general parser of Python literals. Guarantees that what [`to_bytes`]
//! writes, NumPy and [`parse`] read back bit by bit.
//!
//! NumPy has no bf16 and no 8-bit floats. Their bytes come as raw elements (`V2`, `V1`) and are taken as the type
//! that the parameter has; they are written as raw elements too.

use std::path::Path;

use tk_ops::{DType, DTypeSet};

use crate::element::Element;
use crate::files::Input;
use crate::room;

/// A tensor on the host: row-major, little-endian, without gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    /// Element type.
    pub dtype: DType,
    /// Extents; empty for a single value.
    pub shape: Vec<usize>,
    /// The elements, [`DType::bytes`] each.
    pub bytes: Vec<u8>,
}

impl Array {
    /// A copy of elements, with these extents. Elements that are missing are zero, and more than there are extents for are
    /// left out.
    pub fn of<T: Element>(elements: &[T], shape: &[usize]) -> Array {
        let count = crate::room::bytes(shape, size_of::<T>()).unwrap_or(0);
        // SAFETY: an `Element` has no padding, so each of its bytes is written.
        let bytes =
            unsafe { std::slice::from_raw_parts(elements.as_ptr().cast::<u8>(), size_of_val(elements)) };
        let mut bytes = bytes.to_vec();
        bytes.resize(count, 0);
        Array { dtype: T::DTYPE, shape: shape.to_vec(), bytes }
    }

    /// Its elements; none if they are of another type.
    pub fn to_vec<T: Element>(&self) -> Vec<T> {
        if T::DTYPE != self.dtype {
            return vec![];
        }
        // SAFETY: every bit pattern is an `Element`, and each read is inside of the bytes, wherever it is aligned.
        let one = |chunk: &[u8]| unsafe { chunk.as_ptr().cast::<T>().read_unaligned() };
        self.bytes.chunks_exact(size_of::<T>()).map(one).collect()
    }
}

const MAGIC: &[u8] = b"\x93NUMPY";

/// The contents of the header of a file.
struct Header {
    descr: String,
    fortran: bool,
    shape: Vec<usize>,
}

/// Reads a file. `wanted` are the element types that fit where it is used: raw elements become one of them.
/// The error is one sentence that names the file.
pub fn read(path: &Path, wanted: DTypeSet) -> Result<Array, String> {
    from_file(Input::open(path)?, wanted).map_err(|what| format!("{} {what}", path.display()))
}

fn from_file(mut file: Input, wanted: DTypeSet) -> Result<Array, String> {
    let start = file.take(START)?;
    let length = match header_length(&start) {
        Ok(length) => length,
        // The header may be missing altogether.
        Err(what) => return Err(if start.is_empty() { "is empty".into() } else { what }),
    };
    let mut header = start;
    header.extend(file.take(length.saturating_sub(header.len()))?);
    let (text, begun) = split(&header)?;
    let header = Header::read(text)?.typed(wanted)?;
    let begun = begun.to_vec();
    header.announced(file.length.saturating_sub(file.at) + begun.len())?;
    room::check(header.size.checked_mul(if header.fortran { 2 } else { 1 }))?;
    let mut data = begun;
    data.extend(file.take(header.size.saturating_sub(data.len()))?);
    header.array(data)
}

/// Reads the contents of a file. The error continues a sentence that begins with the file's name.
pub fn parse(bytes: &[u8], wanted: DTypeSet) -> Result<Array, String> {
    if bytes.is_empty() {
        return Err("is empty".into());
    }
    let (text, data) = split(bytes)?;
    let header = Header::read(text)?.typed(wanted)?;
    header.announced(data.len())?;
    let data = data.get(..header.size).unwrap_or(data).to_vec();
    header.array(data)
}

impl Header {
    fn read(text: &[u8]) -> Result<Header, String> {
        Scanner { text, at: 0 }.header().ok_or_else(|| "has a header that is not a NumPy array's".into())
    }

    fn typed(self, wanted: DTypeSet) -> Result<Typed, String> {
        let dtype = element_type(&self.descr, wanted)?;
        let size = room::bytes(&self.shape, dtype.bytes())
            .ok_or_else(|| format!("claims more elements than fit in memory: {:?}", self.shape))?;
        Ok(Typed { dtype, size, fortran: self.fortran && self.shape.len() > 1, shape: self.shape })
    }
}

/// A header whose size is known.
struct Typed {
    dtype: DType,
    shape: Vec<usize>,
    fortran: bool,
    /// Bytes of data.
    size: usize,
}

impl Typed {
    /// Fails when less data is there than announced.
    fn announced(&self, there: usize) -> Result<(), String> {
        if there >= self.size {
            return Ok(());
        }
        Err(format!("is truncated: its header declares {} bytes of data, found {there}", self.size))
    }

    fn array(self, data: Vec<u8>) -> Result<Array, String> {
        self.announced(data.len())?;
        let bytes = if self.fortran { transpose(&data, &self.shape, self.dtype.bytes()) } else { data };
        Ok(Array { dtype: self.dtype, shape: self.shape, bytes })
    }
}

/// Bytes that are enough to know the length of the header.
const START: usize = MAGIC.len() + 6;

const CUT: &str = "is truncated: its header is not complete";

/// The length of the file up to its data.
fn header_length(bytes: &[u8]) -> Result<usize, String> {
    let seen = bytes.len().min(MAGIC.len());
    if bytes.get(..seen) != MAGIC.get(..seen) {
        return Err("is not an .npy file".into());
    }
    let major = *bytes.get(MAGIC.len()).ok_or(CUT)?;
    let width = match major {
        1 => 2,
        2 | 3 => 4,
        other => return Err(format!("has version {other} of the .npy format; 1 to 3 are supported")),
    };
    let before = MAGIC.len() + 2;
    let digits = bytes.get(before..before + width).ok_or(CUT)?;
    Ok(before + width + digits.iter().rev().fold(0usize, |n, b| n << 8 | usize::from(*b)))
}

/// The header's text and what is after it.
fn split(bytes: &[u8]) -> Result<(&[u8], &[u8]), String> {
    let (header, data) = bytes.split_at_checked(header_length(bytes)?).ok_or(CUT)?;
    let width = if header.get(MAGIC.len()) == Some(&1) { 2 } else { 4 };
    Ok((header.get(MAGIC.len() + 2 + width..).unwrap_or_default(), data))
}

/// The element type that a description such as `<f4` stands for.
fn element_type(descr: &str, wanted: DTypeSet) -> Result<DType, String> {
    let (order, kind) = match descr.chars().next() {
        Some(c @ ('<' | '>' | '|' | '=')) => (c, descr.get(1..).unwrap_or("")),
        Some(_) | None => ('=', descr),
    };
    let raw = |set: DTypeSet| match set.and(wanted) {
        DTypeSet::EMPTY => Err(format!("holds raw elements ({descr}), where {wanted} is expected")),
        some => some.single().ok_or_else(|| {
            format!("holds raw elements ({descr}), which may be {some}; choose one with --set")
        }),
    };
    let dtype = match kind {
        "b1" | "?" => DType::Bool,
        "i1" => DType::I8,
        "i2" => DType::I16,
        "i4" => DType::I32,
        "i8" => DType::I64,
        "u1" => DType::U8,
        "u2" => DType::U16,
        "u4" => DType::U32,
        "u8" => DType::U64,
        "f2" => DType::F16,
        "f4" => DType::F32,
        "f8" => DType::F64,
        "V2" => raw(DTypeSet::of(&[DType::BF16]))?,
        "V1" => raw(DTypeSet::F8)?,
        "O" => return Err("holds Python objects; only numbers and bools can be read".into()),
        "" => return Err("holds records; only arrays of numbers or bools can be read".into()),
        _ => return Err(format!("holds elements of NumPy type {descr}, which the language does not have")),
    };
    if order == '>' && dtype.bytes() > 1 {
        return Err(format!("is big-endian ({descr}); save it with byte order '<'"));
    }
    Ok(dtype)
}

/// Column-major elements in row-major order. `data` holds exactly the elements of `shape`.
fn transpose(data: &[u8], shape: &[usize], size: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len());
    let mut index = vec![0usize; shape.len()];
    while out.len() < data.len() {
        let at = index.iter().zip(shape).rev().fold(0, |at, (i, d)| at * d + i);
        out.extend_from_slice(data.get(at * size..(at + 1) * size).unwrap_or(&[]));
        for (i, d) in index.iter_mut().zip(shape).rev() {
            *i += 1;
            if *i < *d {
                break;
            }
            *i = 0;
        }
    }
    out
}

/// Reads the dictionary of a header from left to right.
struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

impl Scanner<'_> {
    fn header(mut self) -> Option<Header> {
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        self.expect(b'{')?;
        while self.peek()? != b'}' {
            let key = self.string()?;
            self.expect(b':')?;
            match key.as_str() {
                "descr" => descr = Some(self.descr()?),
                "fortran_order" => fortran = Some(self.boolean()?),
                "shape" => shape = Some(self.shape()?),
                _ => return None,
            }
            self.comma();
        }
        Some(Header { descr: descr?, fortran: fortran?, shape: shape? })
    }

    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn expect(&mut self, c: u8) -> Option<()> {
        (self.peek()? == c).then(|| self.at += 1)
    }

    fn comma(&mut self) {
        let _ = self.expect(b',');
    }

    /// The text up to a byte for which `stop` holds.
    fn until(&mut self, stop: impl Fn(u8) -> bool) -> Option<String> {
        let rest = self.text.get(self.at..)?;
        let (word, _) = rest.split_at_checked(rest.iter().position(|b| stop(*b))?)?;
        self.at += word.len();
        String::from_utf8(word.to_vec()).ok()
    }

    fn string(&mut self) -> Option<String> {
        let quote = self.peek().filter(|c| matches!(c, b'\'' | b'"'))?;
        self.at += 1;
        let text = self.until(|c| c == quote || c == b'\\')?;
        self.expect(quote)?;
        Some(text)
    }

    /// The description; that of records is a list, which is skipped and gives the empty text.
    fn descr(&mut self) -> Option<String> {
        if self.peek()? != b'[' {
            return self.string();
        }
        let end = self.text.iter().rposition(|c| *c == b']')?;
        self.at = self.at.max(end) + 1;
        Some(String::new())
    }

    fn boolean(&mut self) -> Option<bool> {
        self.peek()?;
        match self.until(|c| !c.is_ascii_alphabetic())?.as_str() {
            "True" => Some(true),
            "False" => Some(false),
            _ => None,
        }
    }

    fn shape(&mut self) -> Option<Vec<usize>> {
        let mut shape = vec![];
        self.expect(b'(')?;
        while self.peek()? != b')' {
            let digits = self.until(|c| !c.is_ascii_digit())?;
            shape.push(digits.parse().ok()?);
            // Python 2 wrote `3L`.
            let _ = self.expect(b'L');
            self.comma();
        }
        self.expect(b')')?;
        Some(shape)
    }
}

/// The contents of a file: version 1.0, C order, data at a multiple of 64 bytes as NumPy writes it.
pub fn to_bytes(array: &Array) -> Vec<u8> {
    let shape = match array.shape.as_slice() {
        [one] => format!("({one},)"),
        dims => format!("({})", dims.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    };
    let dict = format!("{{'descr': '{}', 'fortran_order': False, 'shape': {shape}, }}", descr(array.dtype));
    let before = MAGIC.len() + 4;
    let total = (before + dict.len() + 1).next_multiple_of(64);
    let header = format!("{dict:width$}\n", width = total - before - 1);
    let mut out = Vec::with_capacity(total + array.bytes.len());
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&[1, 0]);
    // It holds at most five extents, so its length fits two bytes.
    out.extend_from_slice(&(header.len() as u16).to_le_bytes());
    out.extend_from_slice(header.as_bytes());
    out.extend_from_slice(&array.bytes);
    out
}

fn descr(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "|b1",
        DType::I8 => "|i1",
        DType::I16 => "<i2",
        DType::I32 => "<i4",
        DType::I64 => "<i8",
        DType::U8 => "|u1",
        DType::U16 => "<u2",
        DType::U32 => "<u4",
        DType::U64 => "<u8",
        DType::F16 => "<f2",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
        DType::BF16 => "<V2",
        DType::F8E4M3 | DType::F8E5M2 | DType::F8E4M3FNUZ | DType::F8E5M2FNUZ | DType::E2M1 | DType::E8M0 => {
            "|V1"
        }
    }
}
