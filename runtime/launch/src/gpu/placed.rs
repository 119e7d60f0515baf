//! Arrays in memory of the host, for launches on the CPU: [`Placed`].
//!
//! The interpreter has addresses of its own, so arrays are copied there and back. Arrays that share memory share it there
//! too: overlapping ranges become one buffer.

use tk_ops::DType;

use super::buffer::Buffer;
use super::device::Device;
use super::error::CudaError;
use super::key::Arg;
use super::stream::Stream;

/// The elements of an array: where they are, and how they are arranged.
#[derive(Clone, Copy, Debug)]
pub struct Elements<'a> {
    /// The address of its first element.
    pub address: u64,
    /// Its element type.
    pub dtype: DType,
    /// Its extents.
    pub shape: &'a [i64],
    /// Its strides, in elements.
    pub strides: &'a [i64],
}

/// A range of memory that arrays use, from its first byte to the one after its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Span {
    begin: u64,
    end: u64,
}

/// Arrays of the host on the CPU device.
#[derive(Debug)]
pub struct Placed {
    spans: Vec<(Span, Buffer, bool)>,
}

impl<'a> Elements<'a> {
    /// The bytes that its elements lie in; `None` without elements.
    fn span(&self) -> Option<Span> {
        let bytes = self.dtype.bytes() as i64;
        let (mut low, mut high) = (0i64, 0i64);
        for (extent, stride) in self.shape.iter().zip(self.strides) {
            if *extent <= 0 {
                return None;
            }
            let reach = (extent - 1).saturating_mul(*stride);
            (low, high) = (low.saturating_add(reach.min(0)), high.saturating_add(reach.max(0)));
        }
        let at = |elements: i64| self.address.wrapping_add_signed(elements.saturating_mul(bytes));
        Some(Span { begin: at(low), end: at(high.saturating_add(1)) })
    }

    /// The argument that it is where it is, in memory that the device shares with its library.
    pub fn arg(self) -> Arg<'a> {
        Arg::foreign(self.address, self.dtype, self.shape, self.strides)
    }
}

impl Placed {
    /// Copies arrays to the device, each with whether the kernel may change it.
    ///
    /// # Errors
    /// There is not enough memory.
    ///
    /// # Safety
    /// The memory of each array can be read, and written where the kernel may change it, until [`Placed::back`] has
    /// returned.
    pub unsafe fn new<'a>(
        device: &Device,
        stream: &Stream,
        arrays: impl IntoIterator<Item = (Elements<'a>, bool)>,
    ) -> Result<Placed, CudaError> {
        let mut all: Vec<(Span, bool)> =
            arrays.into_iter().filter_map(|(array, writes)| Some((array.span()?, writes))).collect();
        all.sort();
        let mut merged: Vec<(Span, bool)> = vec![];
        for (span, writes) in all {
            match merged.last_mut() {
                Some((before, also)) if span.begin < before.end => {
                    before.end = before.end.max(span.end);
                    *also |= writes;
                }
                Some(_) | None => merged.push((span, writes)),
            }
        }
        let mut spans = vec![];
        for (span, writes) in merged {
            // SAFETY: the caller promises it.
            let bytes = unsafe {
                std::slice::from_raw_parts(span.begin as *const u8, (span.end - span.begin) as usize)
            };
            let buffer = device.alloc(bytes.len())?;
            buffer.copy_from(stream, bytes)?;
            spans.push((span, buffer, writes));
        }
        Ok(Placed { spans })
    }

    /// The argument that an array is there.
    pub fn arg<'a>(&self, array: Elements<'a>) -> Arg<'a> {
        let found = array.span().and_then(|s| {
            let (place, buffer, _) =
                self.spans.iter().find(|(p, ..)| p.begin <= s.begin && s.end <= p.end)?;
            Some(buffer.address() + (array.address - place.begin))
        });
        // One without elements is nowhere: no element of it is ever used.
        Arg::foreign(found.unwrap_or(0), array.dtype, array.shape, array.strides)
    }

    /// Copies back what the kernel may have changed.
    ///
    /// # Errors
    /// A copy failed.
    pub fn back(&self, stream: &Stream) -> Result<(), CudaError> {
        for (span, buffer, _) in self.spans.iter().filter(|(_, _, writes)| *writes) {
            // SAFETY: as the caller of `new` has promised.
            let bytes = unsafe {
                std::slice::from_raw_parts_mut(span.begin as *mut u8, (span.end - span.begin) as usize)
            };
            buffer.copy_to(stream, bytes)?;
        }
        Ok(())
    }
}
