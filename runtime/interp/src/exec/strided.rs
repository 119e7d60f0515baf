//! Copies between a box of a strided array and a box of a tile.
//!
//! Accepts any strides and extents: [`Boxes::hull`] computes, without overflow, which elements of memory are touched,
//! and the caller checks that before it copies.

/// One dimension of a box.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dim {
    /// Elements along it, at least 1.
    pub count: usize,
    /// Elements of memory from one to the next.
    pub memory: i64,
    /// Elements of the tile from one to the next.
    pub tile: usize,
}

/// A box in memory and the box in a tile that it is copied from or to.
#[derive(Clone, Debug)]
pub(super) struct Boxes {
    /// Outermost first.
    dims: Vec<Dim>,
    /// The first element in memory.
    memory: i128,
    /// The first element in the tile.
    tile: usize,
}

impl Boxes {
    /// The box with these dimensions, simplified: dimensions that are contiguous in both are merged.
    pub fn new(all: impl Iterator<Item = Dim>, memory: i128, tile: usize) -> Boxes {
        let mut dims: Vec<Dim> = Vec::with_capacity(5);
        for d in all.filter(|d| d.count != 1) {
            match dims.last_mut() {
                Some(outer)
                    if d.memory.checked_mul(d.count as i64) == Some(outer.memory)
                        && d.tile * d.count == outer.tile =>
                {
                    *outer = Dim { count: outer.count * d.count, ..d };
                }
                Some(_) | None => dims.push(d),
            }
        }
        Boxes { dims, memory, tile }
    }

    /// The lowest and the highest element of memory in the box. A place that i64 cannot name is cut to its limits, which
    /// no buffer reaches.
    pub fn hull(&self) -> (i64, i64) {
        let (mut lo, mut hi) = (self.memory, self.memory);
        for d in &self.dims {
            let reach = i128::from(d.memory) * (d.count as i128 - 1);
            let end = if reach < 0 { &mut lo } else { &mut hi };
            *end = end.saturating_add(reach);
        }
        let fit = |v: i128| v.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64;
        (fit(lo), fit(hi))
    }

    /// Calls `f` with the element of memory and the element of the tile of each place.
    pub fn each(&self, mut f: impl FnMut(i64, usize)) {
        let count: usize = self.dims.iter().map(|d| d.count).product();
        for n in 0..count {
            let (mut rest, mut memory, mut tile) = (n, self.memory, self.tile);
            for d in self.dims.iter().rev() {
                memory += (rest % d.count) as i128 * i128::from(d.memory);
                tile += rest % d.count * d.tile;
                rest /= d.count;
            }
            f(memory as i64, tile);
        }
    }

    /// Calls `f` with the first and the number of consecutive elements of memory, until all places were named.
    pub fn each_run(&self, mut f: impl FnMut(i64, usize)) {
        let (outer, run) = match self.dims.split_last() {
            Some((row, outer)) if row.memory == 1 => (outer, row.count),
            Some(_) | None => (self.dims.as_slice(), 1),
        };
        let outer = Boxes { dims: outer.to_vec(), ..*self };
        outer.each(|memory, _| f(memory, run));
    }

    /// Returns true if two places may be one element of memory: not if each step passes all that smaller steps reach.
    pub fn may_overlap(&self) -> bool {
        let mut steps: Vec<(u64, u64)> =
            self.dims.iter().map(|d| (d.memory.unsigned_abs(), d.count as u64)).collect();
        steps.sort_unstable();
        let mut reach = 0u64;
        steps.iter().any(|(step, count)| {
            let overlaps = *step <= reach;
            reach = reach.saturating_add(step.saturating_mul(count - 1));
            overlaps
        })
    }

    /// Copies from memory to the tile (`READ`) or back.
    ///
    /// # Safety
    /// `lowest` points to the lowest element of the hull, all of which is valid for the copy, and `tile` to a tile of
    /// elements of `size` bytes that contains the box; they do not overlap. No element of the hull is 2^63 bytes away.
    pub unsafe fn copy<const READ: bool>(&self, size: usize, lowest: *mut u8, tile: *mut u8) {
        let first = (self.memory - i128::from(self.hull().0)) as usize;
        // SAFETY: the first element is in the hull, the box in the tile.
        let (memory, tile) = unsafe { (lowest.add(first * size), tile.add(self.tile * size)) };
        // SAFETY: passed on.
        unsafe {
            match size {
                1 => copy::<u8, READ>(&self.dims, memory, tile),
                2 => copy::<u16, READ>(&self.dims, memory, tile),
                4 => copy::<u32, READ>(&self.dims, memory, tile),
                // All other elements, pointers included, have 8 bytes.
                _eight => copy::<u64, READ>(&self.dims, memory, tile),
            }
        }
    }
}

/// # Safety
/// As in [`Boxes::copy`], with pointers to the first elements.
unsafe fn copy<T: Copy, const READ: bool>(dims: &[Dim], memory: *mut u8, tile: *mut u8) {
    let (memory, tile) = (memory.cast::<T>(), tile.cast::<T>());
    let Some((row, outer)) = dims.split_last() else {
        // SAFETY: one element, valid on both sides.
        return unsafe { one::<T, READ>(memory, tile) };
    };
    let rows: usize = outer.iter().map(|d| d.count).product();
    let mut index = [0usize; 5];
    let (mut m, mut t) = (memory, tile);
    for _ in 0..rows {
        if row.memory == 1 && row.tile == 1 {
            // SAFETY: the whole row is in the box on both sides. Memory need not be aligned: bytes are copied.
            unsafe {
                let bytes = row.count * size_of::<T>();
                let (from, to) = if READ { (m, t) } else { (t, m) };
                std::ptr::copy_nonoverlapping(from.cast::<u8>(), to.cast::<u8>(), bytes);
            }
        } else {
            for i in 0..row.count {
                // SAFETY: each element of the row is in the box on both sides.
                unsafe {
                    one::<T, READ>(
                        m.wrapping_offset(i as isize * row.memory as isize),
                        t.wrapping_add(i * row.tile),
                    )
                };
            }
        }
        for (i, d) in index.iter_mut().zip(outer).rev() {
            *i += 1;
            m = m.wrapping_offset(d.memory as isize);
            t = t.wrapping_add(d.tile);
            if *i < d.count {
                break;
            }
            *i = 0;
            m = m.wrapping_offset((d.memory as isize).wrapping_mul(-(d.count as isize)));
            t = t.wrapping_sub(d.tile * d.count);
        }
    }
}

/// # Safety
/// Both pointers are valid for one element.
unsafe fn one<T: Copy, const READ: bool>(memory: *mut T, tile: *mut T) {
    // SAFETY: passed on; memory need not be aligned.
    unsafe {
        if READ {
            tile.write_unaligned(memory.read_unaligned());
        } else {
            memory.write_unaligned(tile.read_unaligned());
        }
    }
}
