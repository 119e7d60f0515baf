//! [`Lines`]: a tile seen as lines along one of its dimensions, for what works on one line after the other.
//!
//! May assume nothing. Guarantees that places are in row-major order of the tile.

use super::EvalError;
use crate::buf::Buf;

/// A tile as `[outer, len, inner]`: element `(o, l, i)` is at `(o * len + l) * inner + i`, and a line has `len` elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lines {
    /// The product of the extents before the dimension.
    pub outer: usize,
    /// The extent of the dimension.
    pub len: usize,
    /// The product of the extents after the dimension.
    pub inner: usize,
}

impl Lines {
    /// The lines of a tile of this shape along a dimension; `None` if there is no such dimension.
    pub fn new(shape: &[u32], axis: usize) -> Option<Lines> {
        let len = *shape.get(axis)? as usize;
        let product = |part: &[u32]| part.iter().map(|d| *d as usize).product();
        Some(Lines { outer: product(shape.get(..axis)?), len, inner: product(shape.get(axis + 1..)?) })
    }

    /// Elements of the tile.
    pub fn count(self) -> usize {
        self.outer.saturating_mul(self.len).saturating_mul(self.inner)
    }

    /// That a buffer has these elements, and at least one.
    pub(super) fn check(self, op: &'static str, x: &Buf) -> Result<(), EvalError> {
        if x.len() == self.count() && self.count() > 0 {
            return Ok(());
        }
        Err(EvalError::Length { op, expected: self.count().max(1), found: x.len() })
    }

    /// Where each line begins; its elements are `inner` apart.
    pub(super) fn starts(self) -> impl Iterator<Item = usize> {
        (0..self.outer).flat_map(move |o| (0..self.inner).map(move |i| o * self.len * self.inner + i))
    }
}
