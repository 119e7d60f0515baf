//! The algebra of linear layouts: which lane of which warp owns each element of a tile, in which register.
//!
//! # A lesson
//!
//! Distribute a tile of 4 x 8 elements over the registers of 8 lanes, 4 elements each. Number everything in binary: an
//! element has a row of 2 bits and a column of 3 bits, a place has a register of 2 bits and a lane of 3 bits. Let lane
//! `l` own 4 neighbours of a row: the columns 0..4 or 4..8 of row `l / 2`. As a table of *bits*:
//!
//! ```text
//! register bit 0 -> (row 0, column 1)     lane bit 0 -> (row 0, column 4)
//! register bit 1 -> (row 0, column 2)     lane bit 1 -> (row 1, column 0)
//!                                         lane bit 2 -> (row 2, column 0)
//! ```
//!
//! This table is the whole layout. Each entry is a *basis*; the element in register `r` of lane `l` is the XOR of the
//! bases of the bits that are set in `r` and in `l`. Register 3 (bits 0 and 1) of lane 5 (bits 0 and 2) owns row
//! 0^0^0^2 = 2, column 1^2^4^0 = 7. A map that is an XOR of bases is *linear over GF(2)*, the field in which 1 + 1 = 0;
//! Gaussian elimination on small matrices of bits answers questions about it.
//!
//! ```
//! use tk_gpu::layout::linear::{InDim, LinearLayout};
//! let rows = LinearLayout::blocked(&[2, 3], &[1, 0], &[0, 2], &[2, 1], &[0, 0]);
//! assert_eq!(rows.basis(InDim::Lane, 0), Some(vec![0, 4]));
//! assert_eq!(rows.apply(3, 5, 0), vec![2, 7]);
//! ```
//!
//! **Broadcast.** A bit of the place with basis zero does not matter: both of its values own the same element. Sum the
//! tile above along its rows: the result has 4 elements, and its layout is the old one without the column
//! ([`LinearLayout::slice_dim`]). Lane bit 0 now has the basis zero, so lanes 0 and 1 both own row 0, which is the
//! result of a butterfly reduction. Register bits with a zero basis are dropped: a lane needs no value twice. The same
//! holds for a basis that is the XOR of others; [`LinearLayout::free_bits`] finds both.
//!
//! **Compose and invert.** [`LinearLayout::pinv`] answers the inverse question: which place owns row 2, column 7? If
//! layout `a` says which element a place needs and `b` which element a place owns, then `b`'s inverse after `a` says
//! from where each place reads the element that it needs ([`LinearLayout::invert_and_compose`]). That map is linear
//! too.
//!
//! **Conversion.** Let another layout of the same tile give lane `l` the columns `l`, 4 rows each:
//!
//! ```text
//! register bit 0 -> (1, 0)   register bit 1 -> (2, 0)   lane bits -> (0, 1) (0, 2) (0, 4)
//! ```
//!
//! To convert the first layout to this one, register bits become lane bits and lane bits register bits. All 8 lanes are
//! in one warp, so [`convert::classify`] returns shuffles; if the lane bits were warp bits, it would be shared memory
//! ([`shared::SharedPlan`]); and to exchange only the two register bits, renaming registers suffices.
//!
//! ```
//! # use tk_gpu::layout::linear::{InDim, LinearLayout, convert::{classify, Conversion}};
//! let rows = LinearLayout::blocked(&[2, 3], &[1, 0], &[0, 2], &[2, 1], &[0, 0]);
//! let columns = LinearLayout::blocked(&[2, 3], &[0, 1], &[2, 0], &[0, 3], &[0, 0]);
//! let Conversion::Shuffle(plan) = classify(&rows, &columns) else { panic!() };
//! assert_eq!(plan.cost(), 4);
//! ```
//!
//! # Limits
//!
//! Extents are powers of two; the callers handle odd repeat counts. Tiles of up to 2^32 elements and places of up to 32
//! bits are supported: [`LinearLayout::new`] rejects others, operations that would leave this range return meaningless
//! bases but do not panic. Indices of dimensions that a tile does not have are ignored.

pub mod convert;
pub(crate) mod gf2;
mod shape;
pub mod shared;
pub mod shuffle;

pub use self::convert::{Conversion, classify};
use self::gf2::{Span, bit, low};
pub use self::shared::{SharedAccess, SharedMap, SharedPlan, Swizzle, bank_conflict_ways};
pub use self::shuffle::{Pair, Round, Select, ShufflePlan};

/// The parts of a place, that is, the inputs of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum InDim {
    /// A register of a lane; each register is one element, whatever its size.
    Register,
    /// A lane of a warp.
    Lane,
    /// A warp of a block.
    Warp,
    /// A block of a cluster.
    Block,
}

impl InDim {
    /// All of them. A sequence of all bits of a place has this order.
    pub const ALL: [InDim; 4] = [InDim::Register, InDim::Lane, InDim::Warp, InDim::Block];
}

/// A register of a lane of a warp of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LaneRegister {
    /// The register of the lane.
    pub register: u32,
    /// The lane of the warp.
    pub lane: u32,
    /// The warp of the block.
    pub warp: u32,
    /// The block of the cluster.
    pub block: u32,
}

/// A linear map over GF(2) from the bits of places to the bits of the coordinates in a tile.
///
/// Invariant: a basis is one `u64` of the concatenated coordinates in row-major order, the last dimension lowest,
/// without gaps. So a basis, read as a number, is the index of an element in the flattened tile.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LinearLayout {
    out_bits: Vec<u32>,
    register: Vec<u64>,
    lane: Vec<u64>,
    warp: Vec<u64>,
    block: Vec<u64>,
}

/// A right inverse of a layout: for each element one place that owns it, with zeros for the bits that do not matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inverse {
    out_bits: Vec<u32>,
    in_bits: [u32; 4],
    /// For each bit of the flattened tile the place, its parts concatenated with the register lowest.
    columns: Vec<u64>,
}

impl Inverse {
    /// The place that owns the element with these coordinates.
    pub fn place(&self, coordinates: &[u32]) -> LaneRegister {
        split(gf2::image(&self.columns, pack(&self.out_bits, coordinates)), self.in_bits)
    }
}

impl LinearLayout {
    /// A layout of a tile of `2^out_bits[d]` elements along each dimension `d`; `register[i]` is the basis of bit `i`
    /// of the register, and so on for lanes and warps.
    ///
    /// # Errors
    /// A sentence, if a basis has another rank than the tile or is out of bounds, or if there are more than 32 bits.
    pub fn new(
        out_bits: &[u32],
        register: Vec<Vec<u32>>,
        lane: Vec<Vec<u32>>,
        warp: Vec<Vec<u32>>,
    ) -> Result<Self, String> {
        let total: u32 = out_bits.iter().fold(0, |a, b| a.saturating_add(*b));
        if total > 32 {
            return Err(format!("a tile of 2^{total} elements is too large for a layout"));
        }
        let places = register.len() + lane.len() + warp.len();
        if places > 32 {
            return Err(format!("a layout of 2^{places} places is too large"));
        }
        let pack_all = |name: &str, bases: Vec<Vec<u32>>| -> Result<Vec<u64>, String> {
            let inside = |b: &[u32]| {
                b.len() == out_bits.len() && b.iter().zip(out_bits).all(|(c, n)| u64::from(*c) < bit(*n))
            };
            bases
                .iter()
                .enumerate()
                .map(|(i, b)| match inside(b) {
                    true => Ok(pack(out_bits, b)),
                    false => Err(format!("the basis {b:?} of {name} bit {i} is outside of the tile")),
                })
                .collect()
        };
        Ok(Self {
            out_bits: out_bits.to_vec(),
            register: pack_all("register", register)?,
            lane: pack_all("lane", lane)?,
            warp: pack_all("warp", warp)?,
            block: vec![],
        })
    }

    /// The same layout in a cluster of blocks; `block[i]` is the basis of bit `i` of the block.
    ///
    /// # Errors
    /// As [`LinearLayout::new`].
    pub fn with_block(&self, block: Vec<Vec<u32>>) -> Result<Self, String> {
        let blocks = Self::new(&self.out_bits, block, vec![], vec![])?;
        Ok(Self { block: blocks.register, ..self.clone() })
    }

    /// The number of dimensions of the tile.
    pub fn rank(&self) -> usize {
        self.out_bits.len()
    }

    /// The logarithm of the extent of each dimension of the tile.
    pub fn out_bits(&self) -> &[u32] {
        &self.out_bits
    }

    /// The logarithm of the number of elements of the tile.
    pub fn total_bits(&self) -> u32 {
        self.out_bits.iter().sum()
    }

    /// The number of bits of a part of the place.
    pub fn bits(&self, dim: InDim) -> usize {
        self.bases(dim).len()
    }

    /// The coordinates that are the basis of a bit of the place; `None` if it has no such bit.
    pub fn basis(&self, dim: InDim, bit: usize) -> Option<Vec<u32>> {
        self.bases(dim).get(bit).map(|b| unpack(&self.out_bits, *b))
    }

    /// The coordinates of the element that a lane owns in a register.
    pub fn apply(&self, register: u32, lane: u32, warp: u32) -> Vec<u32> {
        self.element(LaneRegister { register, lane, warp, block: 0 })
    }

    /// The coordinates of the element at a place.
    pub fn element(&self, place: LaneRegister) -> Vec<u32> {
        unpack(&self.out_bits, self.flat(place))
    }

    /// One place for each element. `None` if some element has no place.
    pub fn pinv(&self) -> Option<Inverse> {
        let span = self.span();
        let columns = (0..self.total_bits()).map(|i| span.solve(bit(i))).collect::<Option<_>>()?;
        Some(Inverse { out_bits: self.out_bits.clone(), in_bits: self.in_bits(), columns })
    }

    /// Returns true if every element has a place.
    pub fn is_surjective(&self) -> bool {
        self.span().rank() == self.total_bits() as usize
    }

    /// Returns true if no element has two places.
    pub fn is_injective(&self) -> bool {
        self.span().rank() == self.all_bases().count()
    }

    /// The bits of a part of the place that do not matter, as a mask: their basis is zero or the XOR of bases of lower
    /// bits (registers are lowest, then lanes, warps, blocks). Places that differ in them own the same element.
    pub fn free_bits(&self, dim: InDim) -> u32 {
        let mut span = Span::default();
        let mut free = 0;
        for of in InDim::ALL {
            for (i, basis) in self.bases(of).iter().enumerate() {
                if !span.insert(*basis) && of == dim {
                    free |= bit(i as u32) as u32;
                }
            }
        }
        free
    }

    /// The canonical one of all registers of a lane that own the same element as this one.
    pub fn canonical_register(&self, register: u32) -> u32 {
        let element = gf2::image(&self.register, u64::from(register));
        // The element is in the span, so a solution exists.
        Span::of(self.register.iter().copied()).solve(element).unwrap_or(0) as u32
    }

    /// Returns true if every basis has at most one bit and no two are equal: XOR, OR and addition of bases agree.
    pub fn is_disjoint(&self) -> bool {
        let mut seen = 0;
        self.all_bases().all(|b| {
            let fresh = b.count_ones() <= 1 && seen & b == 0;
            seen |= b;
            fresh
        })
    }

    /// Returns true if the bases of registers have a bit each that nothing else has: addition of the element of a register to
    /// that of a thread is exclusive or.
    pub fn adds_registers(&self) -> bool {
        let mut seen = self.thread_bases().iter().fold(0, |all, b| all | b);
        self.register.iter().all(|b| {
            let fresh = b.count_ones() <= 1 && seen & b == 0;
            seen |= b;
            fresh
        })
    }

    /// The logarithm of the number of neighbours along a dimension in consecutive registers: the largest `n` such that
    /// register bit `i` has the basis `1 << i` along `dim` for all `i < n`.
    pub fn vector_log2(&self, dim: usize) -> u32 {
        let extent = self.out_bits.get(dim).copied().unwrap_or(0);
        let run = self.register.iter().zip(0..extent);
        run.take_while(|(b, i)| **b == unit(&self.out_bits, dim, *i)).count() as u32
    }

    /// For each bit of a part of the place the index in the flattened tile.
    pub(crate) fn bases(&self, dim: InDim) -> &[u64] {
        match dim {
            InDim::Register => &self.register,
            InDim::Lane => &self.lane,
            InDim::Warp => &self.warp,
            InDim::Block => &self.block,
        }
    }

    /// The bases of lanes, warps and blocks, which identify threads.
    pub(crate) fn thread_bases(&self) -> Vec<u64> {
        [&self.lane[..], &self.warp, &self.block].concat()
    }

    fn all_bases(&self) -> impl Iterator<Item = u64> {
        InDim::ALL.into_iter().flat_map(|d| self.bases(d)).copied()
    }

    fn span(&self) -> Span {
        Span::of(self.all_bases())
    }

    fn in_bits(&self) -> [u32; 4] {
        InDim::ALL.map(|d| self.bits(d) as u32)
    }

    fn flat(&self, place: LaneRegister) -> u64 {
        gf2::image(&self.register, u64::from(place.register))
            ^ gf2::image(&self.lane, u64::from(place.lane))
            ^ gf2::image(&self.warp, u64::from(place.warp))
            ^ gf2::image(&self.block, u64::from(place.block))
    }

    /// Applies a function to each basis.
    fn map(&self, out_bits: Vec<u32>, f: impl Fn(u64) -> u64) -> Self {
        let all = |bases: &[u64]| bases.iter().map(|b| f(*b)).collect();
        Self {
            out_bits,
            register: all(&self.register),
            lane: all(&self.lane),
            warp: all(&self.warp),
            block: all(&self.block),
        }
    }
}

/// Concatenates coordinates, the last one lowest. Missing coordinates are zero.
pub(crate) fn pack(out_bits: &[u32], coordinates: &[u32]) -> u64 {
    let missing = std::iter::repeat(&0);
    out_bits
        .iter()
        .zip(coordinates.iter().chain(missing))
        .fold(0, |all, (bits, c)| all.checked_shl(*bits).unwrap_or(0) | (u64::from(*c) & low(*bits)))
}

/// The inverse of [`pack`].
pub(crate) fn unpack(out_bits: &[u32], packed: u64) -> Vec<u32> {
    let mut rest = packed;
    let mut coordinates: Vec<u32> = out_bits
        .iter()
        .rev()
        .map(|bits| {
            let c = rest & low(*bits);
            rest = rest.checked_shr(*bits).unwrap_or(0);
            c as u32
        })
        .collect();
    coordinates.reverse();
    coordinates
}

/// The basis `1 << position` along a dimension; zero outside of the tile.
fn unit(out_bits: &[u32], dim: usize, position: u32) -> u64 {
    match out_bits.get(dim) {
        Some(extent) if position < *extent => bit(position + out_bits.iter().skip(dim + 1).sum::<u32>()),
        Some(_) | None => 0,
    }
}

/// Splits a place into its parts, the register lowest.
fn split(packed: u64, in_bits: [u32; 4]) -> LaneRegister {
    let [register, lane, warp, block] = in_bits;
    let parts = unpack(&[block, warp, lane, register], packed);
    let part = |i: usize| parts.get(i).copied().unwrap_or(0);
    LaneRegister { register: part(3), lane: part(2), warp: part(1), block: part(0) }
}
