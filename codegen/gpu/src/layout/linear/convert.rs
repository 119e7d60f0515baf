//! Classifies how to convert one layout of a tile to another layout of the same tile.
//!
//! Guarantees the cheapest kind that suffices; the caller decides whether shuffles are cheaper than shared memory, with
//! [`ShufflePlan::cost`].

use super::gf2::{Span, bit, image};
use super::{InDim, LinearLayout, ShufflePlan};

/// The kind of a conversion between two layouts of the same tile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// Nothing: every place already owns its element.
    Same,
    /// Renaming: for each register of the destination the register of the source, the same in all lanes and warps.
    Registers(Vec<u32>),
    /// Every element that a lane needs is in its own warp; also if lanes only choose among their own registers.
    Shuffle(ShufflePlan),
    /// Elements move between warps, or the layouts have different numbers of lanes or warps.
    Shared,
}

/// Classifies the conversion from `src` to `dst`. Both are layouts of one tile; otherwise the result is
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

/// For each register of `dst` the register of `src` with the same element in every lane and warp.
fn renaming(src: &LinearLayout, dst: &LinearLayout) -> Option<Vec<u32>> {
    let threads_agree =
        [InDim::Lane, InDim::Warp, InDim::Block].into_iter().all(|d| src.bases(d) == dst.bases(d));
    if src.out_bits != dst.out_bits || !threads_agree {
        return None;
    }
    let owned = Span::of(src.register.iter().copied());
    let columns: Vec<u64> = dst.register.iter().map(|b| owned.solve(*b)).collect::<Option<_>>()?;
    Some((0..bit(dst.register.len() as u32)).map(|r| image(&columns, r) as u32).collect())
}
