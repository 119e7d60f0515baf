//! Computes the shared memory layout of operands of wgmma.
//!
//! A wgmma reads its operands from shared memory itself, in one of the orders of the PTX manual ("Strides", "Canonical
//! layouts" of `wgmma`). Neighbours are along K or, for elements of two bytes, across it: rows of the left operand,
//! columns of the right one. `span` bytes of neighbours are a line; lines follow one another along the other dimension
//! and form a swizzle atom, and atoms follow one another along the first. Chunks of 16 bytes of a line are permuted by
//! exclusive or with the number of the line, so that eight lines have no bank conflict:
//!
//! ```text
//! place of byte b in a swizzle atom:  b ^ (b >> 3 & (span - 16))        span = 128: bits 4 to 6 change by bits 7 to 9
//! ```
//!
//! ```text
//! 128 x 64 of f16 along K, span 128         64 x 128 of f16, neighbours across K, span 128
//! row 0   k 0 .. 63                         swizzle atom 0: k 0    columns 0 .. 63      swizzle atom 1: columns 64 .. 127
//! row 1   k 0 .. 63                                  k 1    columns 0 .. 63
//! ```
//!
//! Lines across K are as wide as possible also where atoms of the tile are not: the nine atoms of 64 x 144 of f16, of 16
//! columns each, are in lines of 64 columns, four to a line and the last one alone. One instruction multiplies all of them,
//! and reads shared memory at its full speed, which it does not with lines of 32 bytes.
//!
//! Requires operands of [`crate::target::mma`]. Guarantees that lowering, verifier and emission use the same offsets.

use tk_ops::DType;
use tk_tile::{Func, Inst, InstId};

use crate::analysis;
use crate::ir::kernel::{ALIGN, Kernel};
use crate::ir::op::{GpuOp, Mma, Product};
use crate::target::mma::{MmaInstruction, Tiles};

/// Lines after which the exclusive or repeats.
const LINES: u32 = 8;
/// Bytes that stay together.
const CHUNK: u32 = 16;
/// The widest line.
const WIDEST: u32 = 128;

/// Bytes after which every order repeats.
pub const WIDEST_PATTERN: u32 = WIDEST * LINES;

const _: () = assert!(WIDEST_PATTERN == crate::ir::kernel::WIDEST_ALIGN, "copies of buffers stay aligned");

/// A shared memory layout. Sizes are bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WgmmaShared {
    /// Neighbours are across K.
    pub across: bool,
    /// A line: 32, 64 or 128.
    pub span: u32,
    /// From a line to the eighth after it.
    pub lines: u32,
    /// From a swizzle atom to the next.
    pub swizzle_atom: u32,
}

impl WgmmaShared {
    /// The layout with these lines, for an operand whose atoms have `2^across` elements across K and `2^along` along
    /// it.
    fn new(is_across: bool, span: u32, [across, along]: [u32; 2]) -> WgmmaShared {
        let lines = if is_across { along } else { across };
        WgmmaShared { across: is_across, span, lines: span * LINES, swizzle_atom: span << lines }
    }

    /// The offsets of the bits of coordinates across K, then along K, in elements of `bytes`.
    fn bases(&self, [across, along]: [u32; 2], bytes: u32) -> [Vec<i64>; 2] {
        let of_line = (self.span / bytes).trailing_zeros();
        let moved = |b: u32| i64::from((b ^ (b >> 3 & (self.span - CHUNK))) / bytes);
        let near = |bits: u32| -> Vec<i64> {
            let swizzle_atom = |i: u32| i64::from(self.swizzle_atom / bytes) << (i - of_line);
            (0..bits).map(|i| if i < of_line { 1 << i } else { swizzle_atom(i) }).collect()
        };
        let lines = |bits: u32| -> Vec<i64> { (0..bits).map(|i| moved(self.span << i)).collect() };
        if self.across { [near(across), lines(along)] } else { [lines(across), near(along)] }
    }

    /// The layout of an operand whose neighbours in memory are along the dimension `fast`, and remain neighbours.
    /// Returns it with the offset of each bit of the coordinates, as they are in the tile, and then of the numbers of
    /// atoms that share lines, if they may `share`.
    pub fn order(
        fast: usize,
        tiles: &Tiles,
        (side, dtype): (usize, DType),
        k: u32,
        share: bool,
    ) -> (WgmmaShared, Vec<i64>) {
        let mut bits = extents(tiles, side, k);
        let bytes = dtype.bytes() as u32;
        // Columns that are not in one line would be no multiple of 16 bytes apart.
        let mut own = if side == 0 { tiles.matrix.m } else { tiles.matrix.n };
        let wide = |bits: u32| (bytes << bits).min(WIDEST);
        let is_across = bytes == 2 && wide(own) >= 2 * CHUNK && fast == side;
        if is_across && share && side == 1 && tiles.adjoin() && tiles.accumulator().repeats()[1] > 1 {
            let of_line = (WIDEST / bytes).trailing_zeros();
            own = own.max(of_line);
            bits[0] = bits[0].max(of_line);
        }
        let swizzled = WgmmaShared::new(is_across, wide(if is_across { own } else { bits[1] }), bits);
        (swizzled, swizzled.transposed(side, bits, bytes))
    }

    /// The offsets of the bits of the coordinates of a tile that TMA stores, whose atoms have `bits` rows and columns
    /// (log2), and the span of its lines. `None` if no layout has such lines.
    pub fn of_tile(bits: [u32; 2], bytes: u32) -> Option<(u32, Vec<i64>)> {
        let span = (bytes << bits[1]).min(WIDEST);
        let fits = span >= 2 * CHUNK && 1 << bits[0] >= LINES && bytes <= CHUNK;
        let swizzled = WgmmaShared::new(false, span, bits);
        fits.then(|| (span, swizzled.bases(bits, bytes).concat()))
    }

    /// The layout with these offsets.
    pub fn find(tiles: &Tiles, side: usize, dtype: DType, k: u32, bases: &[i64]) -> Option<WgmmaShared> {
        let mut bits = extents(tiles, side, k);
        let bytes = dtype.bytes() as u32;
        let more = (bases.len() as u32).checked_sub(bits.iter().sum())?;
        if more > 0 && (side == 0 || !tiles.adjoin()) {
            return None;
        }
        bits[0] += more;
        let all = [2 * CHUNK, 4 * CHUNK, WIDEST].into_iter();
        let all = all.flat_map(|span| [false, true].map(|across| WgmmaShared::new(across, span, bits)));
        let fits = |p: &WgmmaShared| {
            let lines = if p.across { bits[1] } else { bits[0] };
            let line = if p.across { bits[0] } else { bits[1] };
            let atoms = more == 0 || p.across && bytes << line == p.span;
            (!p.across || bytes == 2) && bytes << line >= p.span && 1 << lines >= LINES && atoms
        };
        all.filter(fits).find(|p| p.transposed(side, bits, bytes) == bases)
    }

    fn transposed(&self, side: usize, bits: [u32; 2], bytes: u32) -> Vec<i64> {
        let [x, y] = self.bases(bits, bytes);
        if side == 0 { [x, y].concat() } else { [y, x].concat() }
    }
}

/// Log2 of the elements of an atom of an operand across and along K.
fn extents(tiles: &Tiles, side: usize, k: u32) -> [u32; 2] {
    let bits = tiles.operand(side, k).out_bits();
    if side == 0 { bits } else { [bits[1], bits[0]] }
}

/// The alignment of each buffer: that of wgmma operands, and of tiles that TMA loads or stores, is the period of their
/// exclusive or.
pub fn alignments(kernel: &Kernel) -> Vec<u32> {
    let func = kernel.func();
    let mut all = vec![ALIGN; kernel.buffers.len()];
    for id in tk_tile::walk::insts(func) {
        let inst = &func.insts[id];
        let boxed = match GpuOp::of(inst) {
            Some(GpuOp::TmaStore(store)) => Some((store.buffer, store.copied.span)),
            Some(GpuOp::TmaLoad(load)) => Some((load.destination, load.copied.span)),
            _ => None,
        };
        if let Some((slot, span)) = boxed.and_then(|(b, span)| Some((all.get_mut(b)?, span))) {
            *slot = (*slot).max(span.saturating_mul(LINES));
        }
        let Some(mma) = as_wgmma(inst) else { continue };
        let acc = inst.operands.first();
        let tiles = acc.and_then(|acc| analysis::mma::tiles(kernel, mma.product, mma.instruction, *acc));
        let Some(tiles) = tiles else { continue };
        for (side, operand) in [&mma.a, &mma.b].into_iter().enumerate() {
            let Some(slot) = operand.buffer().and_then(|b| all.get_mut(b.buffer)) else { continue };
            let Product { elems, k, .. } = mma.product;
            let found = WgmmaShared::find(&tiles, side, elems[side.min(1)], k, operand.bases());
            *slot = (*slot).max(found.map_or(ALIGN, |p| p.lines));
        }
    }
    all
}

/// The product, if a warpgroup computes it.
pub fn as_wgmma(inst: &Inst) -> Option<&Mma> {
    match GpuOp::of(inst)? {
        GpuOp::Mma(mma) if mma.instruction.is_wgmma() => Some(mma),
        _ => None,
    }
}

/// Returns true if warpgroups compute a product in these instructions.
pub fn multiplies(func: &Func, insts: &[InstId]) -> bool {
    insts.iter().any(|i| as_wgmma(&func.insts[*i]).is_some())
}

/// Bytes from the start of an operand to the elements that an instruction reads, from row or column `across` and from
/// `along` along K.
pub fn offset(matrix: &MmaInstruction, side: usize, bits: [u32; 2], bases: &[i64], at: [u32; 2]) -> i64 {
    let at = if side == 0 { at } else { [at[1], at[0]] };
    crate::ir::shared_access::image(bases, &bits, &at) * i64::from(matrix.bytes())
}
