//! Finds the layout in which lanes load a tile straight to its places in shared memory.
//!
//! A *direct load* (`global_load_lds_dwordx4`) takes an address of 16 bytes from each lane of a warp, and writes these side by
//! side: those of lane `l` are `16 l` bytes after an address in shared memory that is the same for all. So a lane cannot choose a
//! place, but it can choose what it loads. The order of the buffer is that for the reading lanes, swizzled as
//! [`super::ldmatrix`] chooses it; its inverse says which element belongs at each place, and so which lane loads it:
//!
//! | offset in the buffer, low bits first | neighbours of 16 bytes | those of a warp | swizzled, then others | the rest |
//! |---|---|---|---|---|
//! | owner | registers | lanes | warps | registers |
//!
//! Swizzles exchange 16 bytes of rows, so that a warp reads the same lines of device memory as without.
//!
//! Guarantees that each element has one owner, and that what a lane loads at once is 16 bytes in the buffer.

use tk_tile::ValueId;

use crate::ir::kernel::Kernel;
use crate::ir::op::AsyncCopy;
use crate::ir::params::element_bytes;
use crate::ir::shared_access::image;
use crate::layout::Layout;
use crate::layout::linear::{InDim, LinearLayout};
use crate::target::spec::TargetSpec;

/// The width of a bank.
const BANK_BYTES: u32 = 4;

/// The layout of a tile that is stored in the order `bases` from the layout `source`, in elements of `bytes` bytes; `None` if a
/// warp has no 16 bytes for each lane, or the elements of a load are not neighbours along an axis.
pub fn layout(source: &Layout, bases: &[i64], bytes: u32, spec: &TargetSpec) -> Option<Layout> {
    let atom = source.atom();
    let vector = spec.direct_load_bytes.checked_div(bytes)?.checked_ilog2()? as usize;
    let (lanes, warps) = (atom.bits(InDim::Lane), atom.bits(InDim::Warp));
    let places = places(bases, atom.out_bits())?;
    let (register, rest) = places.split_at_checked(vector)?;
    let (lane, rest) = rest.split_at_checked(lanes)?;
    // Warps may have any of the other places: they get those whose elements depend on the swizzle, and what a lane loads with other
    // instructions is at a known distance.
    let is_single = |b: &&Vec<u32>| b.iter().map(|c| c.count_ones()).sum::<u32>() == 1;
    let swizzled = rest.iter().filter(|b| !is_single(b));
    let others: Vec<Vec<u32>> = swizzled.chain(rest.iter().filter(is_single)).cloned().collect();
    let (warp, rest) = others.split_at_checked(warps)?;
    let register = [register, rest].concat();
    let atom = LinearLayout::new(atom.out_bits(), register, lane.to_vec(), warp.to_vec()).ok()?;
    let found = Layout::repeated(atom, source.repeats().to_vec());
    let is_wide = (0..source.atom().rank()).any(|d| found.vector(d) >= 1 << vector);
    (is_wide && found.adds_registers()).then_some(found)
}

/// The order `bases` for a target with direct loads: rows of all banks follow one another so that those whose elements are swizzled
/// come first, in the lanes of a warp if there is room. Which row of banks an element is in changes no bank.
pub fn arranged(bases: Vec<i64>, bytes: u32, spec: &TargetSpec) -> Vec<i64> {
    let row = i64::from(spec.shared_banks * BANK_BYTES / bytes.max(1));
    let (within, beyond) = (|b: i64| b % row.max(1), |b: i64| b / row.max(1));
    let is_one = |b: &&i64| beyond(**b).count_ones() == 1;
    if spec.direct_load_bytes == 0 || bases.iter().any(|b| beyond(*b) != 0 && !is_one(&b)) {
        return bases;
    }
    let mut places: Vec<i64> = bases.iter().filter(is_one).map(|b| beyond(*b)).collect();
    places.sort_unstable();
    let of = |swizzled: bool| {
        let some = bases.iter().enumerate().filter(move |(_, b)| beyond(**b) != 0);
        some.filter(move |(_, b)| (within(**b) != 0) == swizzled).map(|(n, _)| n)
    };
    let mut arranged: Vec<i64> = bases.iter().map(|b| within(*b)).collect();
    for (n, place) in of(true).chain(of(false)).zip(places) {
        arranged.get_mut(n).into_iter().for_each(|b| *b += place * row);
    }
    arranged
}

/// Returns true if a copy to shared memory is possible: where copies choose their places, always, and otherwise if the lanes of
/// each warp fill their buffer side by side.
pub fn is_possible(kernel: &Kernel, copy: &AsyncCopy, r: ValueId) -> bool {
    let spec = kernel.options.spec;
    let elem = kernel.module.types.get(kernel.func().ty(r)).elem();
    let vector = i64::from(spec.direct_load_bytes) / element_bytes(elem).max(1) as i64;
    let Some(atom) = kernel.layout(r).map(Layout::atom) else { return false };
    let at = |b: Vec<u32>| image(copy.placement.bases(), atom.out_bits(), &b);
    let lane = |i: usize| atom.basis(InDim::Lane, i).map(at);
    let is_whole = copy.vector.is_some_and(|n| i64::from(n) == vector);
    spec.has_async_copy || is_whole && (0..atom.bits(InDim::Lane)).all(|i| lane(i) == Some(vector << i))
}

/// The coordinates of the element at each power of two, by Gaussian elimination; `None` if some place has none or several.
fn places(bases: &[i64], out_bits: &[u32]) -> Option<Vec<Vec<u32>>> {
    let mut rows: Vec<(i64, u64)> = bases.iter().zip(0..).map(|(b, i)| (*b, 1u64 << i)).collect();
    for bit in 0..rows.len() {
        let pivot = (bit..rows.len()).find(|r| rows.get(*r).is_some_and(|r| r.0 >> bit & 1 == 1))?;
        rows.swap(bit, pivot);
        let (at, of) = *rows.get(bit)?;
        let others = rows.iter_mut().enumerate().filter(|(n, r)| *n != bit && r.0 >> bit & 1 == 1);
        others.for_each(|(_, r)| *r = (r.0 ^ at, r.1 ^ of));
    }
    let coordinates = |of: u64| {
        let mut low = 0;
        let along = out_bits.iter().map(|bits| {
            let here = of >> low & ((1 << bits) - 1);
            low += bits;
            here as u32
        });
        along.collect()
    };
    rows.iter().enumerate().map(|(bit, (at, of))| (*at == 1 << bit).then(|| coordinates(*of))).collect()
}
