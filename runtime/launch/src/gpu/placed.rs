//! Arrays in memory of the host, for launches on the CPU: [`Placed`].
//!
//! The interpreter has addresses of its own, at which arrays are made known for a launch; none is copied. Arrays that share
//! memory share it there too: overlapping ranges become one buffer.

use tk_interp::BufferId;
use tk_ops::DType;

use super::cpu::memory;
use super::error::CudaError;
use super::key::Arg;

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
    /// Each with its buffer, and the address that it has there.
    spans: Vec<(Span, BufferId, u64)>,
}

impl<'a> Elements<'a> {
    /// The bytes that its elements lie in; `None` without elements. Fails if these are no addresses.
    fn span(&self) -> Result<Option<Span>, CudaError> {
        let bytes = self.dtype.bytes() as i128;
        let (mut low, mut high) = (0i128, 0i128);
        for (extent, stride) in self.shape.iter().zip(self.strides) {
            if *extent <= 0 {
                return Ok(None);
            }
            let reach = (i128::from(*extent) - 1) * i128::from(*stride);
            (low, high) = (low.saturating_add(reach.min(0)), high.saturating_add(reach.max(0)));
        }
        let at = |elements: i128| {
            let address = elements.checked_mul(bytes)?.checked_add(self.address.into())?;
            u64::try_from(address).ok().filter(|a| i64::try_from(*a).is_ok())
        };
        match (at(low), at(high.saturating_add(1))) {
            (Some(begin), Some(end)) => Ok(Some(Span { begin, end })),
            _ => Err(CudaError::new(
                format!(
                    "an array of the shape {:?} and the strides {:?} leaves memory",
                    self.shape, self.strides
                ),
                "check its extents and strides",
            )),
        }
    }

    /// Fails if its elements have no addresses.
    ///
    /// # Errors
    /// They leave memory.
    pub fn check(&self) -> Result<(), CudaError> {
        self.span().map(|_| ())
    }

    /// The argument that it is where it is, in memory that the device shares with its library.
    pub fn arg(self) -> Arg<'a> {
        Arg::foreign(self.address, self.dtype, self.shape, self.strides)
    }
}

impl Placed {
    /// Makes arrays known to the CPU device, until this is dropped.
    ///
    /// # Errors
    /// An array leaves memory.
    ///
    /// # Safety
    /// The elements of each array can be read, and written where the kernel writes, until this is dropped.
    pub unsafe fn new<'a>(arrays: impl IntoIterator<Item = Elements<'a>>) -> Result<Placed, CudaError> {
        let mut all = vec![];
        for array in arrays {
            all.extend(array.span()?);
        }
        all.sort();
        let mut merged: Vec<Span> = vec![];
        for span in all {
            match merged.last_mut() {
                Some(before) if span.begin < before.end => before.end = before.end.max(span.end),
                Some(_) | None => merged.push(span),
            }
        }
        let place = |span: Span| {
            // SAFETY: programs access elements of the arrays alone, for which the caller promises it.
            let id = unsafe { memory().foreign(span.begin as *mut u8, (span.end - span.begin) as usize) };
            (span, id, memory().address(id).unwrap_or(0))
        };
        Ok(Placed { spans: merged.into_iter().map(place).collect() })
    }

    /// The argument that an array is there.
    pub fn arg<'a>(&self, array: Elements<'a>) -> Arg<'a> {
        let found = array.span().ok().flatten().and_then(|s| {
            let (place, _, address) =
                self.spans.iter().find(|(p, ..)| p.begin <= s.begin && s.end <= p.end)?;
            Some(address + (array.address - place.begin))
        });
        // One without elements is nowhere: no element of it is ever used.
        Arg::foreign(found.unwrap_or(0), array.dtype, array.shape, array.strides)
    }
}

impl Drop for Placed {
    fn drop(&mut self) {
        self.spans.iter().for_each(|(_, id, _)| memory().free(*id));
    }
}
