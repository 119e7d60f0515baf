//! Layouts of shared memory: the offset of each element of a tile, swizzles without bank conflicts, and plans that
//! convert a tile from one distribution over threads to another through shared memory.
//!
//! # Banks
//!
//! Shared memory has banks of four bytes, side by side; a row is one word of each. An access is served in phases of as
//! many lanes as fill a row. Within a phase every bank serves one word, to any number of lanes; accesses to different
//! words of one bank are serialized. Lane addresses are linear in the bits of the lane, so all banks in use serve
//! equally many words: `2^(rank of the words' addresses - rank of their banks)`.
//!
//! # How a plan is found
//!
//! An offset is, from its low bits up, `[vector
//! bank
//! segment]`: the element of an access, the bank, the row. Each part is a set of directions in the tile, together a
//! basis of it. A lane owns the directions of the vector in its registers, so that one access moves them. Two lanes of
//! a phase conflict in a bank exactly if their elements differ by directions of the segment, so the segment should
//! intersect neither the span of the storing lanes nor that of the loading lanes. Both have at most the dimension that
//! the segment leaves; so for each new direction of the segment there are `e` outside of the one and `f` outside of the
//! other span, and `e`, `f` or `e + f` is outside of both. The other directions become banks. The resulting widths and
//! conflicts are then measured, not assumed.
//!
//! ```
//! use tk_gpu::{layout::linear::{LinearLayout, SharedPlan}, target::spec::SM_90A};
//! // 64 x 64 floats, four warps: every lane has eight neighbours of a row, and shall have eight of a column.
//! let rows = LinearLayout::blocked(&[6, 6], &[1, 0], &[0, 3], &[2, 3], &[2, 0]);
//! let columns = LinearLayout::blocked(&[6, 6], &[0, 1], &[3, 0], &[3, 2], &[0, 2]);
//! let plan = SharedPlan::new(&rows, &columns, 4, SM_90A.banks()).unwrap();
//! // No neighbours are in consecutive registers on both sides: 16-byte stores, 4-byte loads, no conflicts.
//! assert_eq!((plan.store_vector, plan.load_vector), (4, 1));
//! assert_eq!((plan.store_ways, plan.load_ways), (1, 1));
//! ```

use super::gf2::{Span, bit, image, intersection};
use super::{InDim, LinearLayout, pack};

/// The width of a bank, on all supported targets.
const BANK_BYTES: u32 = 4;

/// The placement of a tile in shared memory: a linear map from coordinates to an offset in elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SharedMap {
    out_bits: Vec<u32>,
    /// For each bit of the index in the flattened tile the offset.
    columns: Vec<u64>,
}

impl SharedMap {
    /// Row-major order, the last dimension fastest.
    pub fn row_major(out_bits: &[u32]) -> Self {
        Self { out_bits: out_bits.to_vec(), columns: (0..out_bits.iter().sum()).map(bit).collect() }
    }

    /// A tile of rows in the order of TMA: swizzle atoms as wide as the swizzle spans, one after the other, row after
    /// row in each, swizzled. `rows` and `columns` are logarithms of extents. `None` if a row is narrower than a
    /// swizzle atom, or the tile larger than 4 GiB. The tile must begin at a multiple of 1024 bytes.
    pub fn swizzled(rows: u32, columns: u32, element_bytes: u32, swizzle: Swizzle) -> Option<Self> {
        let swizzle_atom = match swizzle.span_bytes() {
            Some(bytes) => (bytes / element_bytes.max(1)).checked_ilog2()?,
            None => columns,
        };
        if columns < swizzle_atom {
            return None;
        }
        let swizzled = |at: u32| -> Option<u64> {
            let byte = 1u32.checked_shl(at)?.checked_mul(element_bytes)?;
            swizzle.apply(byte).checked_div(element_bytes).map(u64::from)
        };
        // The flattened tile has the columns lowest; those beyond the swizzle atom come after the rows.
        let position = |i: u32| match i {
            i if i < swizzle_atom => i,
            i if i < columns => i + rows,
            i => i - columns + swizzle_atom,
        };
        Some(Self {
            out_bits: vec![rows, columns],
            columns: (0..rows + columns).map(|i| swizzled(position(i))).collect::<Option<_>>()?,
        })
    }

    /// The logarithm of the extent of each dimension of the tile.
    pub fn out_bits(&self) -> &[u32] {
        &self.out_bits
    }

    /// The offset of an element.
    pub fn offset_of(&self, coordinates: &[u32]) -> u32 {
        image(&self.columns, pack(&self.out_bits, coordinates)) as u32
    }

    /// The offsets that a layout's places access, as a layout of the one-dimensional "tile" of offsets. The offset of a
    /// place is the XOR of its bases; if it [is disjoint](LinearLayout::is_disjoint), OR and addition give the same.
    /// `None` for a layout of a tile of another shape.
    pub fn through(&self, layout: &LinearLayout) -> Option<LinearLayout> {
        (self.out_bits == layout.out_bits)
            .then(|| layout.map(vec![self.columns.len() as u32], |b| image(&self.columns, b)))
    }
}

/// How TMA and wgmma permute 16-byte chunks within rows of `span` bytes; named by the span. The pattern is that of the
/// PTX manual (asynchronous warpgroup instructions, shared memory layout): three, two or one bits of the row are added
/// to bits of the chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Swizzle {
    /// No permutation.
    None,
    /// 32 bytes.
    B32,
    /// 64 bytes.
    B64,
    /// 128 bytes.
    B128,
}

impl Swizzle {
    /// The length of a row in bytes; `None` without a permutation.
    pub fn span_bytes(self) -> Option<u32> {
        match self {
            Swizzle::None => None,
            Swizzle::B32 => Some(32),
            Swizzle::B64 => Some(64),
            Swizzle::B128 => Some(128),
        }
    }

    /// The permuted offset of a byte. Linear over GF(2), and its own inverse.
    pub fn apply(self, byte: u32) -> u32 {
        let chunks = match self {
            Swizzle::None => 0,
            Swizzle::B32 => 0x10,
            Swizzle::B64 => 0x30,
            Swizzle::B128 => 0x70,
        };
        byte ^ ((byte >> 3) & chunks)
    }
}

/// The number of words that a bank serves in one phase, for an access of `access_bytes` by each lane. `lanes[i]` is the
/// byte address of bit `i` of the lane; addresses are multiples of the access. 1 is conflict-free.
pub fn bank_conflict_ways(lanes: &[u32], access_bytes: u32, banks: u32) -> u32 {
    let phase = phase_bits(access_bytes, banks) as usize;
    let words = || lanes.iter().take(phase).map(|address| u64::from(address / BANK_BYTES));
    let in_bank = u64::from(banks.saturating_sub(1));
    let apart = Span::of(words()).rank().saturating_sub(Span::of(words().map(|w| w & in_bank)).rank());
    bit(apart as u32) as u32
}

/// The logarithm of the number of lanes in a phase.
fn phase_bits(access_bytes: u32, banks: u32) -> u32 {
    (banks * BANK_BYTES / access_bytes.max(BANK_BYTES)).checked_ilog2().unwrap_or(0)
}

/// One access of each lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedAccess {
    /// The offset that is added by XOR to that of the thread, in elements.
    pub offset: u32,
    /// The registers of the elements from that offset on.
    pub registers: Vec<u32>,
}

/// The properties of a target that determine the cost of an access to shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedBanks {
    /// Banks of 4 bytes, each of which serves one word in a cycle.
    pub count: u32,
    /// Bytes of the widest access of a lane.
    pub vector_bytes: u32,
    /// A store takes its elements from any registers of a lane. Copies from device memory that bypass registers cannot.
    pub stores_gather: bool,
}

/// How to convert one layout to another through shared memory: store, wait for all warps, load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedPlan {
    /// The placement of the elements.
    pub map: SharedMap,
    /// Bytes of an element.
    pub element_bytes: u32,
    /// Elements of one store.
    pub store_vector: u32,
    /// Elements of one load.
    pub load_vector: u32,
    /// Words that a bank serves at a time when storing; 1 is conflict-free.
    pub store_ways: u32,
    /// Words that a bank serves at a time when loading; 1 is conflict-free.
    pub load_ways: u32,
    /// Rows that each warp moves, stores and loads together: the time that it takes.
    pub wavefronts: u32,
    /// Stores and loads of a thread.
    pub accesses: u32,
}

impl SharedPlan {
    /// The cheapest plan that the method finds. `element_bytes` is a power of two. `None` if the layouts are not of one
    /// tile or if an element is in another block.
    pub fn new(
        src: &LinearLayout,
        dst: &LinearLayout,
        element_bytes: u32,
        banks: SharedBanks,
    ) -> Option<Self> {
        if !stays_in_block(src, dst) || !element_bytes.is_power_of_two() {
            return None;
        }
        let cap = (banks.vector_bytes / element_bytes).checked_ilog2().unwrap_or(0);
        let mut best: Option<Self> = None;
        let gathered = banks.stores_gather.then_some(Vectors::Gathered);
        for who in [Vectors::Both, Vectors::Stores, Vectors::Loads].into_iter().chain(gathered) {
            for size in (0..=cap).rev() {
                let Some(map) = (Search { src, dst, element_bytes, banks, who }).map(size) else { continue };
                let plan = Self::measure(map, src, dst, element_bytes, banks)?;
                if best.as_ref().is_none_or(|b| plan.weight() < b.weight()) {
                    best = Some(plan);
                }
            }
        }
        best
    }

    /// The same order of the elements, for other storing and loading layouts.
    pub fn for_others(&self, src: &LinearLayout, dst: &LinearLayout, banks: SharedBanks) -> Option<Self> {
        Self::measure(self.map.clone(), src, dst, self.element_bytes, banks)
    }

    /// The bytes of shared memory of the buffer.
    pub fn bytes(&self) -> u64 {
        u64::from(self.element_bytes).saturating_mul(bit(self.map.columns.len() as u32))
    }

    /// The stores of each thread. Registers with copies are left out; threads that only have copies may be left out
    /// too.
    pub fn stores(&self, src: &LinearLayout) -> Vec<SharedAccess> {
        accesses(&self.map, src, self.store_vector)
    }

    /// The loads of each thread. Registers that become copies are left out:
    /// [`canonical_register`](LinearLayout::canonical_register) is the one to copy.
    pub fn loads(&self, dst: &LinearLayout) -> Vec<SharedAccess> {
        accesses(&self.map, dst, self.load_vector)
    }

    /// Shared memory serves wavefronts, lanes issue accesses; both take a cycle of their pipe.
    fn weight(&self) -> u32 {
        self.wavefronts + self.accesses
    }

    fn measure(
        map: SharedMap,
        src: &LinearLayout,
        dst: &LinearLayout,
        element_bytes: u32,
        banks: SharedBanks,
    ) -> Option<Self> {
        let store = Side::measure(&map.through(src)?, element_bytes, banks, banks.stores_gather);
        let load = Side::measure(&map.through(dst)?, element_bytes, banks, false);
        Some(Self {
            map,
            element_bytes,
            store_vector: store.vector,
            load_vector: load.vector,
            store_ways: store.ways,
            load_ways: load.ways,
            wavefronts: store.wavefronts + load.wavefronts,
            accesses: store.accesses + load.accesses,
        })
    }
}

/// Returns true if each block owns in `src` every element that it owns in `dst`.
fn stays_in_block(src: &LinearLayout, dst: &LinearLayout) -> bool {
    let owned = Span::of(src.register.iter().chain(&src.lane).chain(&src.warp).copied());
    let between_blocks = src.block.iter().zip(&dst.block).map(|(s, d)| s ^ d);
    src.out_bits == dst.out_bits
        && src.block.len() == dst.block.len()
        && dst.register.iter().chain(&dst.lane).chain(&dst.warp).all(|d| owned.contains(*d))
        && between_blocks.into_iter().all(|d| owned.contains(d))
}

/// The cost of one side, stores or loads.
struct Side {
    vector: u32,
    ways: u32,
    wavefronts: u32,
    accesses: u32,
}

impl Side {
    /// `offsets` are the offsets that the places of a layout access, in consecutive registers unless it gathers.
    fn measure(offsets: &LinearLayout, element_bytes: u32, banks: SharedBanks, gathers: bool) -> Self {
        let cap = (banks.vector_bytes / element_bytes).checked_ilog2().unwrap_or(0);
        let registers = Span::of(offsets.register.iter().copied());
        // The offset of a thread must not vary within an access.
        let aligned = offsets.thread_bases().iter().fold(0, |all, b| all | b).trailing_zeros();
        // The other registers must not vary within an access either.
        let owner = |i: u32| offsets.register.iter().position(|b| *b == bit(i));
        let follows = |(i, n): &(usize, usize)| gathers || i == n;
        let owners = (0..cap.min(aligned)).map_while(owner).enumerate().take_while(follows);
        let owners: Vec<usize> = owners.map(|(_, n)| n).collect();
        let reaches = |run: usize| {
            let own = owners.get(..run).unwrap_or(&[]);
            let others = offsets.register.iter().enumerate().filter(|(i, _)| !own.contains(i));
            others.map(|(_, b)| b).any(|b| (b.trailing_zeros() as usize) < run)
        };
        let run = (0..=owners.len()).rev().find(|n| !reaches(*n)).unwrap_or(0) as u32;
        let vector = bit(run) as u32;
        let access_bytes = vector * element_bytes;
        let lanes: Vec<u32> = offsets.lane.iter().map(|b| (*b as u32).wrapping_mul(element_bytes)).collect();
        let ways = bank_conflict_ways(&lanes, access_bytes, banks.count);
        let phases = (lanes.len() as u32).saturating_sub(phase_bits(access_bytes, banks.count));
        let accesses = bit(registers.rank() as u32 - run) as u32;
        Self { vector, ways, wavefronts: accesses * ways * bit(phases) as u32, accesses }
    }
}

fn accesses(map: &SharedMap, layout: &LinearLayout, vector: u32) -> Vec<SharedAccess> {
    let Some(offsets) = map.through(layout) else { return vec![] };
    let free = offsets.free_bits(InDim::Register);
    let mut elements: Vec<(u32, u32)> = (0..bit(offsets.register.len() as u32) as u32)
        .filter(|r| r & free == 0)
        .map(|r| (image(&offsets.register, u64::from(r)) as u32, r))
        .collect();
    elements.sort_unstable();
    let mut accesses: Vec<SharedAccess> = elements
        .chunk_by(|(a, _), (b, _)| a / vector.max(1) == b / vector.max(1))
        .map(|group| SharedAccess {
            offset: group.first().map_or(0, |(offset, _)| *offset),
            registers: group.iter().map(|(_, r)| *r).collect(),
        })
        .collect();
    accesses.sort_by_key(|a| a.registers.iter().copied().min());
    accesses
}

/// Which side accesses several elements at a time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Vectors {
    Both,
    Stores,
    Loads,
    /// Stores, whose first elements are those that loads access together.
    Gathered,
}

/// One attempt to find a map.
struct Search<'a> {
    src: &'a LinearLayout,
    dst: &'a LinearLayout,
    element_bytes: u32,
    banks: SharedBanks,
    who: Vectors,
}

impl Search<'_> {
    /// A map whose `2^size` lowest offsets are one access. `None` if registers do not contain that many elements.
    fn map(&self, size: u32) -> Option<SharedMap> {
        let vector = self.vector(size)?;
        let total = self.src.total_bits();
        // All other directions, those of the threads that access vectors first: vectors do not vary along them.
        let mut all = Span::of(vector.iter().copied());
        let first = match self.who {
            // Loads are shorter than stores: those of words that are used together are near one another, so that one
            // instruction with two offsets loads both.
            Vectors::Gathered => [&self.dst.lane[..], &self.dst.register].concat(),
            Vectors::Both | Vectors::Stores | Vectors::Loads => self.threads(),
        };
        let others = [self.src.thread_bases(), self.dst.thread_bases()].concat();
        let across = first.into_iter().chain(others).chain((0..total).map(bit));
        let rest: Vec<u64> = across.filter(|b| all.insert(*b)).collect();
        let row = (self.banks.count * BANK_BYTES / self.element_bytes).checked_ilog2().unwrap_or(0);
        let word = (BANK_BYTES / self.element_bytes).checked_ilog2().unwrap_or(0);
        // Accesses to one word never conflict; a word comes from the vector and, if that is too short, from lanes.
        let in_word: Vec<u64> = vector.iter().chain(&rest).take(word as usize).copied().collect();
        let mut segment = self.segment(&vector, &in_word, &rest, total.saturating_sub(row));
        if self.who == Vectors::Gathered {
            segment.reverse();
        }
        let mut order = vector;
        order.extend(in_word.iter().skip(order.len()));
        let mut used = Span::of(order.iter().chain(&segment).copied());
        order.extend(rest.iter().filter(|b| used.insert(**b)));
        order.extend(segment);
        let span = Span::of(order);
        let columns = (0..total).map(|i| span.solve(bit(i))).collect::<Option<_>>()?;
        Some(SharedMap { out_bits: self.src.out_bits.clone(), columns })
    }

    /// Directions in registers, along which no thread that accesses vectors moves.
    fn vector(&self, size: u32) -> Option<Vec<u64>> {
        let (src, dst) = (&self.src.register, &self.dst.register);
        let of_dst = Span::of(dst.iter().copied());
        // Unchanged bases come first: they need no reordering of registers. If only one side accesses vectors, it has
        // them in order.
        let common = src.iter().copied().filter(|b| of_dst.contains(*b)).chain(intersection(src, dst));
        let own: &[u64] = match self.who {
            Vectors::Both => &[],
            Vectors::Stores | Vectors::Gathered => src,
            Vectors::Loads => dst,
        };
        let own = own.iter().copied();
        let mut used = Span::of(self.threads());
        let ordered: Vec<u64> = match self.who {
            Vectors::Gathered => common.chain(own).collect(),
            Vectors::Both | Vectors::Stores | Vectors::Loads => own.chain(common).collect(),
        };
        let free = ordered.into_iter().filter(|b| used.insert(*b));
        let vector: Vec<u64> = free.take(size as usize).collect();
        (vector.len() == size as usize).then_some(vector)
    }

    fn threads(&self) -> Vec<u64> {
        match self.who {
            Vectors::Both => [self.src.thread_bases(), self.dst.thread_bases()].concat(),
            Vectors::Stores | Vectors::Gathered => self.src.thread_bases(),
            Vectors::Loads => self.dst.thread_bases(),
        }
    }

    /// Directions for the row, from `rest`, that avoid the lanes of a phase where possible.
    fn segment(&self, vector: &[u64], in_word: &[u64], rest: &[u64], size: u32) -> Vec<u64> {
        let lanes = |layout: &LinearLayout| {
            let own = reachable(layout, vector);
            let phase = phase_bits(self.element_bytes << own.len(), self.banks.count) as usize;
            Span::of(in_word.iter().chain(own).chain(layout.lane.iter().take(phase)).copied())
        };
        let (mut stores, mut loads) = (lanes(self.src), lanes(self.dst));
        let mut used = Span::of(vector.iter().chain(in_word).copied());
        let mut segment = vec![];
        for _ in 0..size {
            let outside = |span: &Span| rest.iter().rev().copied().find(|b| !span.contains(*b));
            let best = rest.iter().rev().copied().find(|b| !stores.contains(*b) && !loads.contains(*b));
            let next = match (best, outside(&stores), outside(&loads)) {
                (Some(both), _, _) => Some(both),
                (None, Some(e), Some(f)) => Some(e ^ f),
                // One side cannot be improved any more.
                (None, Some(only), None) | (None, None, Some(only)) => Some(only),
                (None, None, None) => outside(&used),
            };
            let Some(next) = next else { break };
            stores.insert(next);
            loads.insert(next);
            used.insert(next);
            segment.push(next);
        }
        segment
    }
}

/// The part of a vector that a layout could access at a time too: its registers contain the elements, and no thread
/// moves along them.
fn reachable<'a>(layout: &LinearLayout, vector: &'a [u64]) -> &'a [u64] {
    let owned = Span::of(layout.register.iter().copied());
    let mut used = Span::of(layout.thread_bases());
    let count = vector.iter().take_while(|v| owned.contains(**v) && used.insert(**v)).count();
    vector.get(..count).unwrap_or(vector)
}
