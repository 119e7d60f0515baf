//! Owns [`Shadow`]: per place of a buffer, who wrote it last and who read it since.
//!
//! A place is as large as the accesses that have come so far; where smaller or shifted ones come, places are split. Of
//! the reads since the last write two are kept, of different programs or parameters: of any two readers one is not the
//! writer that comes next, which is what a race needs.

use std::ops::Range;

use super::memory::{Stamp, StampId};

/// A place.
#[derive(Clone, Copy, Default)]
pub(super) struct Cell {
    /// The last write.
    pub write: StampId,
    /// The last read since then.
    pub read: StampId,
    /// The last read since then by somebody else.
    pub other: StampId,
}

impl Cell {
    /// Notes a write: what was read before it has been compared with it.
    pub fn wrote(&mut self, by: StampId) {
        *self = Cell { write: by, ..Cell::default() };
    }

    /// Notes a read.
    pub fn was_read(&mut self, by: StampId, stamps: &[Stamp]) {
        let who = |id: StampId| stamps.get(id as usize).map(|s| (s.program, s.param, s.access.atomic));
        if self.read != by && who(self.read) != who(by) {
            self.other = self.read;
        }
        self.read = by;
    }
}

/// The places of one buffer.
#[derive(Default)]
pub(super) struct Shadow {
    /// Bytes of a place; 0 before the first access.
    grain: usize,
    cells: Vec<Cell>,
}

impl Shadow {
    /// The places of an access to `count` elements of `size` bytes at byte `start`, and the bytes of each place. `None`
    /// if there is no memory for them; `len` is the length of the buffer.
    pub fn cells(
        &mut self,
        len: usize,
        start: usize,
        count: usize,
        size: usize,
    ) -> Option<(&mut [Cell], usize)> {
        if self.grain == 0 {
            self.grain = if start.is_multiple_of(size) { size } else { 1 };
            let n = len.div_ceil(self.grain);
            self.cells.try_reserve_exact(n).ok()?;
            self.cells.resize(n, Cell::default());
        }
        let grain = gcd(gcd(self.grain, start), size);
        if grain != self.grain {
            self.split(grain)?;
        }
        let cells: Range<usize> = start / grain..(start + count * size) / grain;
        Some((self.cells.get_mut(cells)?, grain))
    }

    fn split(&mut self, grain: usize) -> Option<()> {
        let into = self.grain / grain;
        let mut cells = vec![];
        cells.try_reserve_exact(self.cells.len().checked_mul(into)?).ok()?;
        self.cells.iter().for_each(|c| cells.extend(std::iter::repeat_n(*c, into)));
        (self.cells, self.grain) = (cells, grain);
        Some(())
    }
}

/// The greatest common divisor; that of 0 and `a` is `a`.
fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}
