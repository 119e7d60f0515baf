//! Chooses how a tile changes layout: through registers, shuffles or shared memory.
//!
//! Requires two layouts of one shape. Guarantees that emission and lowering choose the same.

use crate::layout::Layout;
use crate::layout::linear::{Conversion, SharedMap, SharedPlan, classify};
use crate::target::spec::TargetSpec;

/// The most shuffles of a conversion: shared memory costs about as much as this many (two barriers of some thirty
/// cycles each and the accesses themselves; a shuffle of a warp issues every two cycles).
const MOST_SHUFFLES: usize = 32;

/// The conversion between layouts whose elements stay in their warps; `None` if shared memory is needed or cheaper. It
/// holds for each atom; `bytes` is the size of an element.
pub fn in_warp(from: &Layout, to: &Layout, bytes: u32) -> Option<Conversion> {
    if from.repeats() != to.repeats() {
        return None;
    }
    let repeats: u32 = from.repeats().iter().product();
    match classify(from.atom(), to.atom()) {
        Conversion::Shared => None,
        Conversion::Shuffle(plan) => {
            let shuffles = plan.cost_of(bytes * 8) * repeats as usize;
            (shuffles <= MOST_SHUFFLES).then_some(Conversion::Shuffle(plan))
        }
        way @ (Conversion::Same | Conversion::Registers(_)) => Some(way),
    }
}

/// The offset in shared memory, in elements, of each bit of the coordinates of an atom: dimension by dimension, low
/// bits first. Atoms are consecutive.
pub fn swizzle(from: &Layout, to: &Layout, bytes: u32, spec: &TargetSpec) -> Vec<i64> {
    let bits = from.atom().out_bits();
    let map = SharedPlan::new(from.atom(), to.atom(), bytes, spec.banks())
        .map_or_else(|| SharedMap::row_major(bits), |p| p.map);
    bases(&map)
}

/// The offsets of the bits of coordinates, dimension by dimension, low bits first.
pub fn bases(map: &SharedMap) -> Vec<i64> {
    let bits = map.out_bits();
    let mut bases = vec![];
    for (d, n) in bits.iter().enumerate() {
        for i in 0..*n {
            let at: Vec<u32> = (0..bits.len()).map(|e| if e == d { 1 << i } else { 0 }).collect();
            bases.push(i64::from(map.offset_of(&at)));
        }
    }
    bases
}
