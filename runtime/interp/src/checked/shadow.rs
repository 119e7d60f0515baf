//! [`Shadow`]: per place of a buffer, who wrote it last and who read it since.
//!
//! A place is as large as the accesses that have come so far; where smaller or shifted ones come, places are split. Plain
//! accesses and atomic ones are kept apart, so that neither hides the other. Of the reads since the last plain write, and
//! of the atomics, two are kept, of different programs or parameters: of any two one is not the program that comes next,
//! which is what a race needs. Memory is used for what is touched, a page at a time.

use std::collections::BTreeMap;

use super::memory::{Stamp, StampId};

/// Places that are made together.
const PAGE: usize = 4096;

/// The last two accesses by different programs or parameters; 0 where there is none.
#[derive(Clone, Copy, Default)]
struct Pair {
    last: StampId,
    other: StampId,
}

impl Pair {
    fn push(&mut self, by: StampId, stamps: &[Stamp]) {
        let who = |id: StampId| stamps.get(id as usize).map(|s| (s.program, s.param));
        if self.last != by && who(self.last) != who(by) {
            self.other = self.last;
        }
        self.last = by;
    }
}

/// A place.
#[derive(Clone, Copy, Default)]
struct Cell {
    /// The last plain write.
    write: StampId,
    /// The plain reads since then.
    read: Pair,
}

/// The places of one buffer.
#[derive(Default)]
pub(super) struct Shadow {
    /// Bytes of a place; 0 before the first access.
    grain: usize,
    pages: Vec<Option<Box<[Cell]>>>,
    /// The atomics since the last plain write, of the places that have had one.
    atomics: BTreeMap<usize, Pair>,
}

/// An access to a run of bytes.
#[derive(Clone, Copy)]
pub(super) struct Touch {
    pub start: usize,
    pub bytes: usize,
    /// Bytes of an element.
    pub size: usize,
    pub by: StampId,
}

impl Shadow {
    /// Compares an access with the past of each of its places by `judge`, and notes it. Gives the first byte and the
    /// access before for which `judge` gives something. `len` is the length of the buffer.
    pub fn touch<W>(
        &mut self,
        len: usize,
        t: Touch,
        stamps: &[Stamp],
        judge: impl Fn(StampId) -> Option<W>,
    ) -> Option<(usize, StampId, W)> {
        let access = stamps.get(t.by as usize)?.access;
        self.prepare(len, t.start, t.size);
        let grain = self.grain;
        // Neighbours mostly have the same past: what was found right is not judged again.
        let mut right = 0;
        for place in t.start / grain..(t.start + t.bytes) / grain {
            let page = self.pages.get_mut(place / PAGE)?;
            let cell =
                page.get_or_insert_with(|| vec![Cell::default(); PAGE].into()).get_mut(place % PAGE)?;
            let atomics = self.atomics.get(&place).copied().unwrap_or_default();
            for before in [cell.write, cell.read.last, cell.read.other, atomics.last, atomics.other] {
                if before == 0 || before == t.by || before == right {
                    continue;
                }
                if let Some(wrong) = judge(before) {
                    return Some((place * grain, before, wrong));
                }
                right = before;
            }
            if access.atomic {
                self.atomics.entry(place).or_default().push(t.by, stamps);
            } else if access.writes {
                // All before has been compared with it.
                *cell = Cell { write: t.by, ..Cell::default() };
                self.atomics.remove(&place);
            } else {
                cell.read.push(t.by, stamps);
            }
        }
        None
    }

    /// Makes places that an access to elements of `size` bytes at byte `start` fits.
    fn prepare(&mut self, len: usize, start: usize, size: usize) {
        if self.grain == 0 {
            self.grain = if start.is_multiple_of(size) { size } else { 1 };
            self.pages.resize_with(len.div_ceil(self.grain).div_ceil(PAGE), || None);
        }
        let grain = gcd(gcd(self.grain, start), size);
        if grain == self.grain {
            return;
        }
        let into = self.grain / grain;
        let mut pages: Vec<Option<Box<[Cell]>>> = Vec::with_capacity(self.pages.len() * into);
        for page in self.pages.drain(..) {
            let part = |i: usize, cells: &[Cell]| {
                let first = i * PAGE;
                (first..first + PAGE).filter_map(|c| cells.get(c / into).copied()).collect::<Box<[Cell]>>()
            };
            pages.extend((0..into).map(|i| page.as_deref().map(|cells| part(i, cells))));
        }
        let atomics = self.atomics.iter();
        self.atomics = atomics.flat_map(|(p, a)| (p * into..(p + 1) * into).map(|p| (p, *a))).collect();
        (self.pages, self.grain) = (pages, grain);
    }
}

/// The greatest common divisor; that of 0 and `a` is `a`.
fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}
