//! Copies between the elements of a tile and bytes in memory, and copies for tiles of pointers.
//!
//! Guarantees that consecutive pointers are copied as runs, that masked-off lanes are not touched, and that every run
//! was located in one buffer before it is copied.

use tk_ops::DType;
use tk_ops::buf::Buf;
use tk_ops::with_buf;
use tk_tile::ElemType;

use super::elementwise::elem_size;
use crate::checked::lanes;
use crate::fault::Fault;
use crate::space::{Access, Denied, Space};
use crate::value::{Pointer, Value, offset_at};

/// The lanes that take part.
#[derive(Clone, Copy)]
pub(super) enum Mask<'a> {
    All,
    Lanes(&'a [bool]),
}

impl Mask<'_> {
    /// The number of lanes from `i` on that take part without a gap; `n` lanes in all.
    fn run(self, i: usize, n: usize) -> usize {
        match self {
            Mask::All => n - i,
            Mask::Lanes(lanes) => run_length(lanes.get(i..).unwrap_or_default(), |chunk, _| {
                chunk.iter().fold(true, |all, lane| all & lane)
            }),
        }
    }

    /// The first lane from `i` on that takes part.
    fn next(self, i: usize) -> Option<usize> {
        match self {
            Mask::All => Some(i),
            Mask::Lanes(lanes) => lanes.get(i..)?.iter().position(|lane| *lane).map(|skip| i + skip),
        }
    }
}

/// The length of the longest start of `all` that holds throughout: `holds(part, position)` is called for whole
/// chunks, which the compiler turns into vector instructions, and for single elements where a chunk breaks it.
fn run_length<T>(all: &[T], holds: impl Fn(&[T], usize) -> bool) -> usize {
    // Long enough for a few vectors, short enough to find a row of 64 quickly.
    const CHUNK: usize = 32;
    let mut done = 0;
    for chunk in all.chunks(CHUNK) {
        if !holds(chunk, done) {
            let single = chunk.iter().enumerate();
            return done + single.take_while(|(i, x)| holds(std::slice::from_ref(x), done + i)).count();
        }
        done += chunk.len();
    }
    done
}

/// An integer that may be an offset.
trait Offset: Copy + PartialEq + Into<i64> {
    /// The largest.
    const MAX: i64;
    /// `self + i`, wrapping.
    fn plus(self, i: usize) -> Self;
}

impl Offset for i32 {
    const MAX: i64 = i32::MAX as i64;
    fn plus(self, i: usize) -> Self {
        self.wrapping_add(i as i32)
    }
}

impl Offset for i64 {
    const MAX: i64 = i64::MAX;
    fn plus(self, i: usize) -> Self {
        self.wrapping_add(i as i64)
    }
}

/// The number of consecutive offsets from the start on.
fn consecutive<O: Offset>(offsets: &[O]) -> usize {
    match offsets {
        [] => 0,
        [first, second, ..] if *second != first.plus(1) => 1,
        [first, ..] => {
            let n = run_length(offsets, |part, at| {
                part.iter().enumerate().fold(true, |all, (i, o)| all & (*o == first.plus(at + i)))
            });
            // Where the type wraps, the run ends.
            let left = O::MAX.saturating_sub((*first).into()).saturating_add(1);
            n.min(usize::try_from(left).unwrap_or(usize::MAX))
        }
    }
}

/// Pointers of a tile.
pub(super) enum Lanes<'a> {
    /// So many, to consecutive elements.
    Run(Pointer, usize),
    /// A base and offsets.
    Offsets(Pointer, &'a Buf),
    /// Each for itself.
    Each(&'a [Pointer]),
}

impl<'a> Lanes<'a> {
    /// The pointers of a tile.
    pub fn of(v: &'a Value) -> Result<Lanes<'a>, Fault> {
        match v {
            Value::Run(p, count) => Ok(Lanes::Run(*p, *count)),
            Value::Offsets(base, offsets) => Ok(Lanes::Offsets(*base, offsets)),
            Value::Lanes(each) => Ok(Lanes::Each(each)),
            other => {
                Err(Fault::internal(format_args!("a tile of pointers is expected, not {}", other.kind())))
            }
        }
    }

    /// One of them; none where all are consecutive and so no two are the same.
    fn at(&self, i: usize) -> Option<Pointer> {
        match self {
            Lanes::Run(..) => None,
            Lanes::Offsets(base, offsets) => Some(base.add(offset_at(offsets, i))),
            Lanes::Each(lanes) => lanes.get(i).copied(),
        }
    }

    fn len(&self) -> usize {
        match self {
            Lanes::Run(_, count) => *count,
            Lanes::Offsets(_, offsets) => offsets.len(),
            Lanes::Each(lanes) => lanes.len(),
        }
    }
}

/// Copies the lanes that take part from memory to `tile` (`READ`) or back.
///
/// # Safety
/// `tile` points to as many elements of `size` bytes as there are pointers.
unsafe fn copy<const READ: bool>(
    space: &Space,
    lanes: &Lanes<'_>,
    mask: Mask<'_>,
    size: usize,
    tile: *mut u8,
) -> Result<(), Denied> {
    // SAFETY: passed on.
    unsafe {
        match lanes {
            Lanes::Run(p, count) => {
                let mut next = 0;
                while let Some(i) = mask.next(next).filter(|i| i < count) {
                    let n = mask.run(i, *count).clamp(1, *count - i);
                    run::<READ>(space, p, i as i64, n, size, tile.add(i * size))?;
                    next = i + n;
                }
                Ok(())
            }
            Lanes::Offsets(base, Buf::I32(offsets)) => {
                runs::<i32, READ>(space, *base, offsets, mask, size, tile)
            }
            Lanes::Offsets(base, Buf::I64(offsets)) => {
                runs::<i64, READ>(space, *base, offsets, mask, size, tile)
            }
            Lanes::Offsets(base, other) => {
                let mut wide = Vec::with_capacity(other.len());
                crate::value::for_offsets(other, |o| wide.push(o));
                runs::<i64, READ>(space, *base, &wide, mask, size, tile)
            }
            Lanes::Each(lanes) => {
                let mut next = 0;
                while let Some(i) = mask.next(next) {
                    let Some(p) = lanes.get(i) else { break };
                    run::<READ>(space, p, 0, 1, size, tile.add(i * size))?;
                    next = i + 1;
                }
                Ok(())
            }
        }
    }
}

/// # Safety
/// As in [`copy`].
unsafe fn runs<O: Offset, const READ: bool>(
    space: &Space,
    base: Pointer,
    offsets: &[O],
    mask: Mask<'_>,
    size: usize,
    tile: *mut u8,
) -> Result<(), Denied> {
    let mut next = 0;
    while let Some(i) = mask.next(next) {
        let Some(rest @ [first, ..]) = offsets.get(i..) else { break };
        let n = mask.run(i, offsets.len()).min(rest.len());
        let n = consecutive(rest.get(..n).unwrap_or_default()).max(1);
        // SAFETY: `i + n` is within the tile.
        unsafe { run::<READ>(space, &base, (*first).into(), n, size, tile.add(i * size))? };
        next = i + n;
    }
    Ok(())
}

/// # Safety
/// `tile` points to `n` elements.
#[inline]
unsafe fn run<const READ: bool>(
    space: &Space,
    p: &Pointer,
    first: i64,
    n: usize,
    size: usize,
    tile: *mut u8,
) -> Result<(), Denied> {
    let access = if READ { Access::READ } else { Access::WRITE };
    let memory = space.locate_run(p, size, first, n, access)?;
    let (from, to) = if READ { (memory.cast_const(), tile) } else { (tile.cast_const(), memory) };
    // SAFETY: both sides hold the run; a tile is never in device memory. The lengths of single elements are spelled
    // out, so that they become plain moves.
    unsafe {
        match (n, size) {
            (1, 4) => std::ptr::copy_nonoverlapping(from, to, 4),
            (1, 8) => std::ptr::copy_nonoverlapping(from, to, 8),
            (1, 2) => std::ptr::copy_nonoverlapping(from, to, 2),
            (n, size) => std::ptr::copy_nonoverlapping(from, to, n * size),
        }
    }
    Ok(())
}

/// Elements on their way from memory.
pub(super) struct Loading {
    buf: Buf,
    pointers: bool,
}

impl Loading {
    /// `n` elements; those that are not read are `other`, zero without it.
    pub fn new(elem: &ElemType, n: usize, other: Option<Value>, space: &Space) -> Result<Loading, Fault> {
        let (dtype, pointers) = match elem {
            ElemType::Scalar(d) => (*d, false),
            ElemType::Ptr { .. } => (DType::U64, true),
        };
        let buf = match other {
            None => Buf::zeros(dtype, n),
            Some(other) if pointers => to_memory(elem, other, n, space)?,
            Some(other) => other.owned(n)?,
        };
        if buf.dtype() != dtype || buf.len() != n {
            return Err(Fault::internal("`other` does not fit the tile that is loaded"));
        }
        Ok(Loading { buf, pointers })
    }

    /// Reads through pointers.
    pub fn read(&mut self, space: &Space, lanes: &Lanes<'_>, mask: Mask<'_>) -> Result<(), Denied> {
        let n = self.buf.len().min(lanes.len());
        if n < lanes.len() || n < self.buf.len() {
            return Ok(());
        }
        let size = self.buf.dtype().bytes();
        // SAFETY: the buffer has as many elements as there are pointers, of `size` bytes each.
        unsafe { copy::<true>(space, lanes, mask, size, self.raw()) }
    }

    /// The elements, to be overwritten byte by byte.
    pub fn raw(&mut self) -> *mut u8 {
        with_buf!(&mut self.buf, v => v.as_mut_ptr().cast())
    }

    /// The tile. Bytes of memory may be anything: what is not 0 is true, and of a packed number four bits count.
    pub fn done(mut self, space: &Space) -> Value {
        if let Buf::Bool(v) = &mut self.buf {
            let (raw, n) = (v.as_mut_ptr().cast::<u8>(), v.len());
            for i in 0..n {
                // SAFETY: `i` is in the vector, whose elements are bytes; they are not read as `bool` before this.
                unsafe { raw.add(i).write(u8::from(raw.add(i).read() != 0)) };
            }
        }
        match self.buf {
            Buf::U64(v) if self.pointers => Value::lanes(v.into_iter().map(|a| space.resolve(a)).collect()),
            Buf::E2M1(v) => Value::tile(Buf::E2M1(v.into_iter().map(|b| b & 0xf).collect())),
            other => Value::tile(other),
        }
    }
}

/// The elements of a value as they are in memory: pointers become addresses.
pub(super) fn to_memory(elem: &ElemType, value: Value, n: usize, space: &Space) -> Result<Buf, Fault> {
    let (buf, dtype) = match elem {
        ElemType::Ptr { pointee, .. } => {
            let size = elem_size(pointee);
            (Buf::U64(value.to_lanes(n)?.iter().map(|p| space.address(p, size)).collect()), DType::U64)
        }
        ElemType::Scalar(d) => (value.owned(n)?, *d),
    };
    if buf.dtype() == dtype && buf.len() == n {
        Ok(buf)
    } else {
        Err(Fault::internal("a value does not fit its type"))
    }
}

/// Writes a tile through pointers.
pub(super) fn write(space: &Space, lanes: &Lanes<'_>, mask: Mask<'_>, buf: &Buf) -> Result<(), Denied> {
    if lanes.len() != buf.len() {
        return Ok(());
    }
    let tile = with_buf!(buf, v => v.as_ptr().cast::<u8>());
    // SAFETY: as many elements as pointers; with `READ` false the tile is only read.
    unsafe { copy::<false>(space, lanes, mask, buf.dtype().bytes(), tile.cast_mut()) }?;
    if space.checker.is_some() {
        let written = |i: &usize| match mask {
            Mask::All => true,
            Mask::Lanes(lanes) => lanes.get(*i) == Some(&true),
        };
        let places = (0..buf.len()).filter(written).filter_map(|i| Some((lanes.at(i)?, i)));
        lanes::differ(space, buf.dtype().bytes(), places, buf)?;
    }
    Ok(())
}
