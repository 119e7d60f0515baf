//! Owns the question what it takes to go from one layout of a tile to another one of the same tile.
//!
//! Guarantees the cheapest kind that suffices; whether shuffles are cheaper than shared memory is for the caller to
//! weigh, with [`ShufflePlan::cost`].

use super::gf2::{Span, bit, image};
use super::{InDim, LinearLayout, ShufflePlan};

/// What it takes to go from one layout to another of the same tile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// Nothing: every place holds already what it shall hold.
    Same,
    /// Renaming: for each register of the destination the register of the source, the same in all lanes and warps.
    Registers(Vec<u32>),
    /// Everything a lane needs is in its own warp; also where lanes only have to choose among their own registers.
    Shuffle(ShufflePlan),
    /// Something has to go from one warp to another, or the layouts are of different numbers of lanes or warps.
    Shared,
}

/// What it takes to go from `src` to `dst`. Both are layouts of one tile; where they are not, the answer is
/// [`Conversion::Shared`] and no plan for shared memory exists.
pub fn classify(src: &LinearLayout, dst: &LinearLayout) -> Conversion {
    if src == dst {
        return Conversion::Same;
    }
    if let Some(registers) = renaming(src, dst) {
        return Conversion::Registers(registers);
    }
    ShufflePlan::new(src, dst).map_or(Conversion::Shared, Conversion::Shuffle)
}

/// For each register of `dst` the register of `src` that holds the same in every lane and warp.
fn renaming(src: &LinearLayout, dst: &LinearLayout) -> Option<Vec<u32>> {
    let threads_agree =
        [InDim::Lane, InDim::Warp, InDim::Block].into_iter().all(|d| src.bases(d) == dst.bases(d));
    if src.out_bits != dst.out_bits || !threads_agree {
        return None;
    }
    let held = Span::of(src.register.iter().copied());
    let columns: Vec<u64> = dst.register.iter().map(|b| held.solve(*b)).collect::<Option<_>>()?;
    Some((0..bit(dst.register.len() as u32)).map(|r| image(&columns, r) as u32).collect())
}
