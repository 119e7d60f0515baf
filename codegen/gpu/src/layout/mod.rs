//! [`Layout`]: which thread owns each element of a tile with any extents.
//!
//! A tile is divided into *atoms*: blocks whose extents are powers of two, on which a [`LinearLayout`] assigns elements
//! to threads. An odd factor of an extent repeats the atom, always in registers: 96 elements are three atoms of 32. An
//! extent without a suitable factor is rounded up, and the elements after the real extent are *padding*: a thread owns
//! them, but no operation may depend on them ([`padded`]).
//!
//! Requires extents of at least 1 and at most 2^20. Guarantees that layouts of equal shapes have equal atoms, so that
//! they differ only in which thread owns each element.

pub mod linear;
pub mod svg;

use self::linear::{InDim, LinearLayout};

/// The division of an extent: `2^log2` elements of an atom, `repeats` times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Log2 of the extent of the atom.
    pub log2: u32,
    /// The number of atoms.
    pub repeats: u32,
}

/// The smallest extent of an atom that is repeated: a smaller one is too small to distribute over the threads of a
/// warp.
const SMALLEST_ATOM: u32 = 16;
/// The most repeats, which are all in registers of each thread.
const MOST_REPEATS: u32 = 15;

/// Elements along a gathered dimension that a thread keeps in registers: four accesses of 16 bytes. Shuffles combine more in
/// fewer instructions, as blocks of a cluster have with up to 128 warps.
const GATHERED: u32 = 16;

/// Divides an extent. A power of two is one atom; otherwise the division with the least padding, and among these the
/// one with the largest atom.
pub fn cut(extent: u32) -> Cut {
    let whole = extent.next_power_of_two();
    let mut best = Cut { log2: whole.trailing_zeros(), repeats: 1 };
    let mut atom = whole / 2;
    while atom >= SMALLEST_ATOM {
        let repeats = extent.div_ceil(atom);
        if repeats > MOST_REPEATS {
            break;
        }
        if repeats * atom < (best.repeats << best.log2) {
            best = Cut { log2: atom.trailing_zeros(), repeats };
        }
        atom /= 2;
    }
    best
}

/// Returns true if a reshape moves no element in any layout: it only renames bits of positions.
pub fn is_relabelling(from: &[u32], to: &[u32]) -> bool {
    from.iter().chain(to).all(|n| n.is_power_of_two())
}

/// The extent with its padding.
pub fn padded(extent: u32) -> u32 {
    let cut = cut(extent);
    cut.repeats << cut.log2
}

/// Log2 of the lanes of a warp and of the warps of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threads {
    /// Bits of the lane number.
    pub lane_bits: u32,
    /// Bits of the warp number.
    pub warp_bits: u32,
}

impl Threads {
    /// The number of threads.
    pub fn count(self) -> u32 {
        1 << (self.lane_bits + self.warp_bits)
    }
}

/// The assignment of the elements of a tile to registers of lanes of warps. A register number is that inside of the
/// atom, plus the number of the atom times the registers of an atom; atoms are numbered in row-major order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    atom: LinearLayout,
    repeats: Vec<u32>,
}

impl Layout {
    /// The layout with this atom for a tile of this shape.
    pub fn new(atom: LinearLayout, shape: &[u32]) -> Layout {
        let repeats = shape.iter().map(|n| cut(*n).repeats).collect();
        Layout { atom, repeats }
    }

    /// The layout with this atom, repeated this many times along each dimension.
    pub fn repeated(atom: LinearLayout, repeats: Vec<u32>) -> Layout {
        Layout { atom, repeats }
    }

    /// Each thread owns `vector` neighbours along the fastest dimension, lanes continue along `order`, then warps; the
    /// rest repeats in registers.
    pub fn blocked(shape: &[u32], order: &[usize], vector: u32, threads: Threads) -> Layout {
        Layout::blocked_rows(shape, order, (vector, 1), threads)
    }

    /// The same, where each thread owns such vectors of `rows` neighbours along the second dimension of `order`.
    pub fn blocked_rows(
        shape: &[u32],
        order: &[usize],
        (vector, rows): (u32, u32),
        threads: Threads,
    ) -> Layout {
        let bits: Vec<u32> = shape.iter().map(|n| cut(*n).log2).collect();
        let mut left = bits.clone();
        // What each thread owns is along these two dimensions only.
        let mut register = vec![0; bits.len()];
        for (d, count) in order.iter().zip([vector, rows]) {
            if let (Some(own), Some(left)) = (register.get_mut(*d), left.get_mut(*d)) {
                *own = count.max(1).ilog2().min(*left);
                *left -= *own;
            }
        }
        let mut take = |wanted: u32| -> Vec<u32> {
            let mut taken = vec![0; bits.len()];
            let mut wanted = wanted;
            for d in order {
                if let (Some(left), Some(taken)) = (left.get_mut(*d), taken.get_mut(*d)) {
                    *taken = wanted.min(*left);
                    *left -= *taken;
                    wanted -= *taken;
                }
            }
            // Threads without elements of their own own copies: zero bases, along the slowest dimension.
            if let Some(taken) = order.last().and_then(|d| taken.get_mut(*d)) {
                *taken += wanted;
            }
            taken
        };
        let lane = take(threads.lane_bits);
        let warp = take(threads.warp_bits);
        Layout::new(LinearLayout::blocked(&bits, order, &register, &lane, &warp), shape)
    }

    /// The same for a tile that is reduced along its fastest dimension: warps are first along the others, so that the
    /// reduction stays inside of warps if there are enough; lanes are along the others only after warps.
    pub fn folded(shape: &[u32], order: &[usize], vector: u32, threads: Threads) -> Layout {
        let bits: Vec<u32> = shape.iter().map(|n| cut(*n).log2).collect();
        let (fastest, others) = order.split_at(order.len().min(1));
        let mut used = vec![0; bits.len()];
        // Up to this many bases, along these dimensions one after the other.
        let mut take = |order: &[usize], most: u32| {
            let mut bases = vec![];
            for d in order {
                while bases.len() < most as usize && used.get(*d) < bits.get(*d) {
                    bases.push((0..bits.len()).map(|i| if i == *d { 1 << used[i] } else { 0 }).collect());
                    used[*d] += 1;
                }
            }
            bases
        };
        let none = vec![0; bits.len()];
        let mut register = take(fastest, vector.max(1).ilog2());
        let mut lane = take(fastest, threads.lane_bits);
        let mut warp = take(&[others, fastest].concat(), threads.warp_bits);
        warp.resize(threads.warp_bits as usize, none.clone());
        lane.extend(take(order, threads.lane_bits - lane.len() as u32));
        // Threads without elements of their own own copies.
        lane.resize(threads.lane_bits as usize, none);
        register.extend(take(order, u32::MAX));
        let atom = LinearLayout::new(&bits, register, lane, warp);
        atom.map_or_else(|_| Layout::blocked(shape, order, vector, threads), |atom| Layout::new(atom, shape))
    }

    /// Each thread owns `vector` neighbours along a dimension, lanes continue along it, and the rest of it repeats in registers,
    /// so that it is in one warp, in its order: the layout of a scan. Warps are along the other dimensions.
    pub fn in_warps(shape: &[u32], axis: usize, vector: u32, threads: Threads) -> Layout {
        let mut order: Vec<usize> = (0..shape.len()).rev().filter(|d| *d != axis).collect();
        order.insert(0, axis);
        let bits: Vec<u32> = shape.iter().map(|n| cut(*n).log2).collect();
        let along = bits.get(axis).copied().unwrap_or(0);
        let of_lane = vector.max(1).ilog2().min(along);
        let chunk = (of_lane + threads.lane_bits).min(along);
        // The layout of one such chunk, and registers for the chunks.
        let mut one = bits.clone();
        one.get_mut(axis).into_iter().for_each(|n| *n = chunk);
        let small: Vec<u32> = one.iter().map(|n| 1 << n).collect();
        let first = Layout::blocked(&small, &order, 1 << of_lane, threads);
        let chunks =
            (chunk..along).map(|i| (0..bits.len()).map(|d| if d == axis { 1 << i } else { 0 }).collect());
        let register = first.bases(InDim::Register, |b| b).into_iter().chain(chunks).collect();
        let (lane, warp) = (first.bases(InDim::Lane, |b| b), first.bases(InDim::Warp, |b| b));
        LinearLayout::new(&bits, register, lane, warp).map_or(first, |atom| Layout::new(atom, shape))
    }

    /// Log2 of the neighbours along a dimension that a thread owns before lanes continue, and of those of all its lanes: what
    /// repeats in registers begins there.
    pub fn chunk(&self, dim: usize) -> (u32, u32) {
        let along = |in_dim| -> Vec<u32> {
            self.bases(in_dim, |b| b).iter().filter_map(|b| b.get(dim).copied()).filter(|c| *c != 0).collect()
        };
        let lanes = along(InDim::Lane);
        let first = lanes.iter().min().copied().unwrap_or(u32::MAX);
        let neighbours = along(InDim::Register).iter().filter(|c| **c < first).count() as u32;
        (neighbours, neighbours + lanes.len() as u32)
    }

    /// The atom.
    pub fn atom(&self) -> &LinearLayout {
        &self.atom
    }

    /// The number of repetitions of the atom along each dimension.
    pub fn repeats(&self) -> &[u32] {
        &self.repeats
    }

    /// Registers of each thread.
    pub fn registers(&self) -> usize {
        self.repeats.iter().map(|r| *r as usize).product::<usize>() << self.atom.bits(InDim::Register)
    }

    /// The offset that a register adds to the coordinates of its thread, which are those of register 0: exclusive or
    /// inside of the atom, sum over atoms. No bit of it is set in the coordinates of a thread if
    /// [`Layout::is_disjoint`].
    pub fn register(&self, register: usize) -> Vec<u32> {
        let per_atom = 1usize << self.atom.bits(InDim::Register);
        let mut coords = self.atom.apply((register % per_atom) as u32, 0, 0);
        let mut number = register / per_atom;
        for (d, repeats) in self.repeats.iter().enumerate().rev() {
            let at = (number % *repeats as usize) as u32;
            number /= *repeats as usize;
            if let (Some(c), Some(bits)) = (coords.get_mut(d), self.atom.out_bits().get(d)) {
                *c += at << bits;
            }
        }
        coords
    }

    /// The coordinates of an element that a thread owns.
    pub fn coords(&self, register: usize, lane: u32, warp: u32) -> Vec<u32> {
        let per_atom = 1usize << self.atom.bits(InDim::Register);
        let inside = self.atom.apply((register % per_atom) as u32, lane, warp);
        let start = self.register(register / per_atom * per_atom);
        inside.iter().zip(&start).map(|(a, b)| a + b).collect()
    }

    /// Returns true if addition gives the same as exclusive or.
    pub fn is_disjoint(&self) -> bool {
        self.atom.is_disjoint()
    }

    /// Returns true if adding the coordinates of a register to those of a thread gives the same as exclusive or.
    pub fn adds_registers(&self) -> bool {
        self.atom.adds_registers()
    }

    /// Neighbours along a dimension in consecutive registers, from register 0 on: a power of two.
    pub fn vector(&self, dim: usize) -> u32 {
        1 << self.atom.vector_log2(dim)
    }

    /// The most equal parts into which a dimension can be divided so that each thread has its registers of every part, up to so many
    /// registers.
    pub fn most_parts(&self, dim: usize, most: u32) -> u32 {
        let repeats = self.repeats.get(dim).copied().unwrap_or(1);
        let counts = (0..u32::BITS).map_while(|n| repeats.checked_mul(1 << n));
        counts.take_while(|n| *n <= most && self.part(dim, *n).is_some()).last().unwrap_or(1)
    }

    /// The layout of each of `count` parts of a tile along a dimension, if these are registers of each thread: the repetitions of its
    /// atom, and parts of that by its topmost bits.
    pub fn part(&self, dim: usize, count: u32) -> Option<Layout> {
        let mut repeats = self.repeats.clone();
        let of_atom = count / std::mem::replace(repeats.get_mut(dim)?, 1).max(1);
        let is_whole = count == self.repeats.get(dim)? * of_atom && of_atom.is_power_of_two();
        (is_whole && repeats.iter().all(|r| *r == 1)).then_some(())?;
        let log2 = of_atom.ilog2();
        let mut bits = self.atom.out_bits().to_vec();
        let left = bits.get(dim)?.checked_sub(log2)?;
        *bits.get_mut(dim)? = left;
        let of = |in_dim| self.bases(in_dim, |b| b);
        let above = |b: &Vec<u32>| b.get(dim).is_some_and(|c| c >> left != 0);
        let alone = |b: &Vec<u32>| {
            let elsewhere = b.iter().enumerate().any(|(d, c)| d != dim && *c != 0);
            b.get(dim).is_some_and(|c| c.is_power_of_two()) && !elsewhere
        };
        let (cut, register): (Vec<_>, Vec<_>) = of(InDim::Register).into_iter().partition(above);
        let (lane, warp) = (of(InDim::Lane), of(InDim::Warp));
        let is_of_threads = lane.iter().chain(&warp).any(above);
        (!is_of_threads && cut.len() == log2 as usize && cut.iter().all(alone)).then_some(())?;
        let atom = LinearLayout::new(&bits, register, lane, warp).ok()?;
        Some(Layout { atom, repeats })
    }

    /// The layout of the result when a dimension is reduced; every thread that owned a part owns the result.
    pub fn without(&self, axis: usize) -> Layout {
        let mut repeats = self.repeats.clone();
        if axis < repeats.len() {
            repeats.remove(axis);
        }
        Layout { atom: self.atom.slice_dim(axis), repeats }
    }

    /// The layout with a dimension of extent 1 inserted before dimension `at`.
    pub fn with_unit(&self, at: usize) -> Layout {
        let mut repeats = self.repeats.clone();
        repeats.insert(at.min(repeats.len()), 1);
        Layout { atom: self.atom.expand_dim(at), repeats }
    }

    /// The layout of a dimension of extent 1 before it is broadcast to a tile of this layout.
    pub fn collapsed(&self, axis: usize) -> Layout {
        self.without(axis).with_unit(axis)
    }

    /// Dimension i is dimension `perm[i]`.
    pub fn permuted(&self, perm: &[usize]) -> Layout {
        let repeats = perm.iter().map(|p| self.repeats.get(*p).copied().unwrap_or(1)).collect();
        Layout { atom: self.atom.permute_dims(perm), repeats }
    }

    /// The layout after a reshape, if no element has to move: without repeats and padding, by renaming bits.
    pub fn reshaped(&self, from: &[u32], to: &[u32]) -> Option<Layout> {
        if !is_relabelling(from, to) {
            return None;
        }
        let bits: Vec<u32> = to.iter().map(|n| n.trailing_zeros()).collect();
        Some(Layout { atom: self.atom.reshape(&bits)?, repeats: vec![1; to.len()] })
    }

    /// The layout with a new last dimension of extent 2, both elements of which every thread owns, the second in the
    /// upper half of its registers.
    pub fn paired(&self) -> Option<Layout> {
        if self.repeats.iter().any(|r| *r != 1) {
            return None;
        }
        let mut bits = self.atom.out_bits().to_vec();
        bits.push(1);
        let rank = bits.len();
        let mut register = self.bases(InDim::Register, |mut b| {
            b.push(0);
            b
        });
        let mut pair = vec![0; rank];
        if let Some(last) = pair.last_mut() {
            *last = 1;
        }
        register.push(pair);
        let widen = |mut b: Vec<u32>| {
            b.push(0);
            b
        };
        let (lane, warp) = (self.bases(InDim::Lane, widen), self.bases(InDim::Warp, widen));
        let atom = LinearLayout::new(&bits, register, lane, warp).ok()?;
        Some(Layout { atom, repeats: vec![1; rank] })
    }

    /// The layout of each half of a tile that is split along its last dimension, of extent 2. Lanes and warps that
    /// owned one half each take over elements that were in registers, the highest first, as long as there are any:
    /// otherwise they would own copies, and a chain of splits would double the registers each time.
    pub fn halves(&self) -> Layout {
        let Some(last) = self.repeats.len().checked_sub(1) else { return self.clone() };
        let half = self.without(last);
        let mut register = half.bases(InDim::Register, |b| b);
        let mut threads = |dim| -> Vec<Vec<u32>> {
            let was = self.bases(dim, |b| b).into_iter().map(|b| b.iter().any(|c| *c != 0));
            let bases = half.bases(dim, |b| b).into_iter().zip(was);
            bases
                .map(
                    |(b, was)| if was && b.iter().all(|c| *c == 0) { register.pop().unwrap_or(b) } else { b },
                )
                .collect()
        };
        let (lane, warp) = (threads(InDim::Lane), threads(InDim::Warp));
        let atom = LinearLayout::new(half.atom.out_bits(), register, lane, warp);
        Layout { atom: atom.unwrap_or_else(|_| half.atom.clone()), repeats: half.repeats }
    }

    /// The layout after a reduction of `axis` inside of each warp: one partial result for each warp along it, in the
    /// order of the elements; and the coordinate of the first element of each. It is one if all of the dimension is in
    /// each warp.
    pub fn partial(&self, axis: usize) -> (Layout, Vec<u32>) {
        let folded = |mut b: Vec<u32>| {
            if let Some(c) = b.get_mut(axis) {
                *c = 0;
            }
            b
        };
        let mut register = self.bases(InDim::Register, folded);
        register.retain(|b| b.iter().any(|c| *c != 0));
        let lane = self.bases(InDim::Lane, folded);
        let mut warp = self.bases(InDim::Warp, |b| b);
        let mut along: Vec<u32> =
            warp.iter().filter_map(|b| b.get(axis).copied()).filter(|c| *c != 0).collect();
        along.sort_unstable();
        for c in warp.iter_mut().filter_map(|b| b.get_mut(axis)).filter(|c| **c != 0) {
            *c = 1 << along.iter().position(|a| a == c).unwrap_or(0);
        }
        let warps = along.len() as u32;
        let start =
            |n: u32| (0..).zip(&along).filter(|(i, _)| n >> i & 1 == 1).fold(0, |sum, (_, c)| sum ^ c);
        let starts = (0..1 << warps).map(start).collect();
        let mut bits = self.atom.out_bits().to_vec();
        let mut repeats = self.repeats.clone();
        if let (Some(b), Some(r)) = (bits.get_mut(axis), repeats.get_mut(axis)) {
            *b = warps;
            *r = 1;
        }
        let atom = LinearLayout::new(&bits, register, lane, warp).unwrap_or_else(|_| self.atom.clone());
        (Layout { atom, repeats }, starts)
    }

    /// All of dimension `axis`, which has extent `2^bits`, in every warp that owns one of its elements: up to
    /// [`GATHERED`] in registers of each thread, and more in other lanes, if those would have the same.
    pub fn gathered(&self, axis: usize, bits: u32) -> Layout {
        let kept = self.without(axis);
        let widen = |mut b: Vec<u32>| {
            b.insert(axis.min(b.len()), 0);
            b
        };
        let rank = self.repeats.len();
        let along = |i: u32| -> Vec<u32> { (0..rank).map(|d| if d == axis { 1 << i } else { 0 }).collect() };
        let (mut lane, warp) = (kept.bases(InDim::Lane, widen), kept.bases(InDim::Warp, widen));
        let free = lane.iter_mut().filter(|b| b.iter().all(|x| *x == 0));
        let held = GATHERED.ilog2().min(bits);
        let mut rest = held..bits;
        for (basis, i) in free.zip(rest.by_ref()) {
            *basis = along(i);
        }
        let mut register: Vec<Vec<u32>> = (0..held).chain(rest).map(along).collect();
        register.extend(kept.bases(InDim::Register, widen));
        let mut out = kept.atom.out_bits().to_vec();
        out.insert(axis.min(out.len()), bits);
        let mut repeats = kept.repeats.clone();
        repeats.insert(axis.min(repeats.len()), 1);
        let atom = LinearLayout::new(&out, register, lane, warp).unwrap_or_else(|_| self.atom.clone());
        Layout { atom, repeats }
    }

    /// The bases of one input, each changed.
    fn bases(&self, dim: InDim, change: impl Fn(Vec<u32>) -> Vec<u32> + Copy) -> Vec<Vec<u32>> {
        (0..self.atom.bits(dim)).filter_map(|i| self.atom.basis(dim, i)).map(change).collect()
    }
}
