//! Arrays in memory of the host, for launches on the CPU: [`Placed`].
//!
//! The interpreter has addresses of its own, so arrays are copied there and back. Arrays that share memory share it there
//! too: overlapping ranges become one buffer.

use tk_runtime::gpu::{Arg, Buffer, CudaError, Device, Stream};

use crate::dlpack::Tensor;
use crate::launch::Value;

/// A range of memory that arguments use, from its first byte to the one after its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Span {
    begin: u64,
    end: u64,
}

/// Arrays on the CPU device.
pub struct Placed {
    spans: Vec<(Span, Buffer, bool)>,
}

/// The bytes that the elements of a tensor lie in; `None` without elements.
fn span(t: &Tensor) -> Option<Span> {
    let bytes = t.dtype.bytes() as i64;
    let (mut low, mut high) = (0i64, 0i64);
    for (extent, stride) in t.shape.iter().zip(&t.strides) {
        if *extent <= 0 {
            return None;
        }
        let reach = (extent - 1).saturating_mul(*stride);
        (low, high) = (low.saturating_add(reach.min(0)), high.saturating_add(reach.max(0)));
    }
    let at = |elements: i64| t.address.wrapping_add_signed(elements.saturating_mul(bytes));
    Some(Span { begin: at(low), end: at(high.saturating_add(1)) })
}

impl Placed {
    /// Copies the tensors among these values to the device. `writes` says of each whether the kernel may change it.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn new(
        device: &Device,
        stream: &Stream,
        values: &[Value],
        writes: &[bool],
    ) -> Result<Placed, CudaError> {
        let of_value = |(value, writes): (&Value, &bool)| match value {
            Value::Tensor(t) => Some((span(t)?, *writes)),
            Value::Scalar(_) | Value::Absent => None,
        };
        let mut all: Vec<(Span, bool)> = values.iter().zip(writes).filter_map(of_value).collect();
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
            // SAFETY: the arrays of the caller have these bytes, and live while it waits.
            let bytes = unsafe {
                std::slice::from_raw_parts(span.begin as *const u8, (span.end - span.begin) as usize)
            };
            let buffer = device.alloc(bytes.len())?;
            buffer.copy_from(stream, bytes)?;
            spans.push((span, buffer, writes));
        }
        Ok(Placed { spans })
    }

    /// The argument that a tensor is there.
    pub fn arg<'a>(&'a self, t: &'a Tensor) -> Arg<'a> {
        let found = span(t).and_then(|s| {
            let (place, buffer, _) =
                self.spans.iter().find(|(p, ..)| p.begin <= s.begin && s.end <= p.end)?;
            Some(buffer.address() + (t.address - place.begin))
        });
        // One without elements is nowhere: no element of it is ever used.
        Arg::foreign(found.unwrap_or(0), t.dtype, &t.shape, &t.strides)
    }

    /// Copies back what the kernel may have changed.
    ///
    /// # Errors
    /// A copy failed.
    pub fn back(&self, stream: &Stream) -> Result<(), CudaError> {
        for (span, buffer, _) in self.spans.iter().filter(|(_, _, writes)| *writes) {
            // SAFETY: as in `new`; the arrays may be written, which was asked before.
            let bytes = unsafe {
                std::slice::from_raw_parts_mut(span.begin as *mut u8, (span.end - span.begin) as usize)
            };
            buffer.copy_to(stream, bytes)?;
        }
        Ok(())
    }
}
