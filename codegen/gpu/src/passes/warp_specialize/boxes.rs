//! Decides which tiles of a view TMA can access: those at known positions of a matrix that the launch describes
//! ([`crate::ir::tensor_map`]).

use std::collections::BTreeSet;

use tk_tile::{InstId, Loc, ValueId};

use crate::analysis::axis::AxisInfo;
use crate::analysis::counters::counters;
use crate::analysis::provenance::Roots;
use crate::analysis::wgmma_shared::WgmmaShared;
use crate::ir::kernel::{Buffer, Kernel, Remark};
use crate::ir::params::ArgFacts;
use crate::ir::tensor_map::{self, AxisTaken, MOST_DIMENSIONS, MapWord, TensorMatrix};
use crate::layout::{cut, padded};

/// The alignment of address and strides of a tensor map and of positions along a line, in bytes.
const ALIGNED: u32 = 16;

/// The facts about the values of a kernel.
pub(crate) struct Known {
    /// The parameters from which they derive.
    pub roots: Roots,
    /// Their divisibility and contiguity.
    pub axes: AxisInfo,
    /// The atomics on counters, which order nothing.
    pub counters: BTreeSet<InstId>,
}

impl Known {
    /// Analyses a kernel.
    pub fn new(kernel: &Kernel) -> Known {
        let func = kernel.func();
        let axes = AxisInfo::new(&kernel.module, func, &kernel.options.facts);
        let roots = Roots::new(func);
        let counters = counters(func, &kernel.module.types, &roots);
        Known { roots, axes, counters }
    }
}

/// What is known of the position of a box in a matrix.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BoxStart {
    /// Its row is not negative.
    pub non_negative_row: bool,
    /// Its column is not negative.
    pub non_negative_column: bool,
    /// A power of two that divides its column.
    pub column_divisor: u64,
}

impl BoxStart {
    /// The position at these values.
    pub fn of(known: &Known, [row, column]: [ValueId; 2]) -> BoxStart {
        let [non_negative_row, non_negative_column] = [row, column].map(|v| known.axes.tile(v).non_negative);
        BoxStart {
            non_negative_row,
            non_negative_column,
            column_divisor: known.axes.tile(column).divisibility(),
        }
    }
}

/// The matrix of a view, if TMA can access tiles of it that begin there, or why it cannot.
///
/// A box must begin at a multiple of 16 bytes of a line: H100s end the kernel with an illegal instruction where it does
/// not, though the PTX manual does not say so.
pub(crate) fn mapped(kernel: &Kernel, view: ValueId, start: BoxStart) -> Result<TensorMatrix, String> {
    let matrix = tensor_map::matrix(kernel, view)
        .ok_or("its view is not made of parameters, constants, slices and permutations alone")?;
    described(kernel, &matrix)?;
    // Before a range of rows are other rows, which are not out of bounds.
    let ranged = matrix.axes.iter().any(|a| a.taken == AxisTaken::Range);
    if ranged && !start.non_negative_row {
        return Err("its first row in a range of rows may be negative".into());
    }
    let bytes = matrix.dtype.bytes() as u32;
    if start.column_divisor * u64::from(bytes) < ALIGNED.into() {
        return Err(format!("its first column is not known to be a multiple of {}", ALIGNED / bytes));
    }
    Ok(matrix)
}

/// The same for what TMA writes: H100s end the kernel with an illegal instruction where a box that is stored or added begins
/// before the first row or column, and leave out what is after the last one.
pub(crate) fn mapped_for_writes(
    kernel: &Kernel,
    view: ValueId,
    start: BoxStart,
) -> Result<TensorMatrix, String> {
    if !(start.non_negative_row && start.non_negative_column) {
        return Err("its first row or column may be negative".into());
    }
    mapped(kernel, view, start)
}

/// The span of the lines of a tile in shared memory, and the offsets of the bits of its coordinates, where TMA places them; fails
/// if TMA has no box of a tile with this shape and so many bytes an element, or `buffer` has other bytes than those of the tile.
pub(crate) fn placed(
    [tall, wide]: [u32; 2],
    bytes: u32,
    buffer: Option<&Buffer>,
) -> Result<(u32, Vec<i64>), String> {
    // Padding would be copied too.
    let whole = [tall, wide].iter().all(|n| padded(*n) == *n)
        && buffer.is_none_or(|b| b.bytes == tall * wide * bytes);
    let of_tile = WgmmaShared::of_tile([tall, wide].map(|n| cut(n).log2), bytes);
    of_tile.filter(|_| whole).ok_or_else(|| "TMA has no box of such a tile".into())
}

/// Fails with the reason if there are launches in which no tensor map describes a matrix.
fn described(kernel: &Kernel, matrix: &TensorMatrix) -> Result<(), String> {
    let fact = |w: MapWord| match w {
        MapWord::Passed(i) => kernel.options.facts.get(i).copied().unwrap_or_default(),
        MapWord::Value(v) => {
            let divisible = 1 << v.trailing_zeros().min(ALIGNED.trailing_zeros());
            ArgFacts { divisible, one: v == 1, positive: (1..ArgFacts::BOUND).contains(&v) }
        }
    };
    // A pointer without a mask becomes a view that is longer than any memory.
    let exists = |axis: &tensor_map::TensorAxis| match axis.extent {
        MapWord::Value(v) if axis.taken != AxisTaken::Range => (1..=i64::from(i32::MAX)).contains(&v),
        of => fact(of).positive,
    };
    let [_, columns] = matrix.kept;
    let bytes = matrix.dtype.bytes() as u32;
    if fact(MapWord::Passed(matrix.address)).divisible < ALIGNED {
        return Err(format!("its address is not known to be a multiple of {ALIGNED} bytes"));
    }
    if matrix.dimensions().len() > MOST_DIMENSIONS {
        return Err(format!("it has more than {MOST_DIMENSIONS} dimensions"));
    }
    for (n, axis) in matrix.axes.iter().enumerate() {
        let stride = fact(axis.stride);
        if n == columns && !stride.one {
            return Err(format!("the stride of axis {n} is not known to be 1"));
        }
        if n == columns && axis.taken != AxisTaken::Whole {
            return Err(format!("it is a range along axis {n}, whose stride is 1"));
        }
        if n != columns && !stride.positive {
            return Err(format!("the stride of axis {n} is not known to be positive"));
        }
        if n != columns && stride.divisible * bytes < ALIGNED {
            let multiple = ALIGNED / bytes;
            return Err(format!("the stride of axis {n} is not known to be a multiple of {multiple}"));
        }
        if !exists(axis) {
            return Err(format!("the extent of axis {n} is not known to be positive and below 2^30"));
        }
    }
    Ok(())
}

/// Says why TMA does not copy something.
pub(super) fn not_copied(loc: Option<Loc>, what: &str, why: &str) -> Remark {
    Remark { loc, text: format!("{what} not copied by TMA: {why}") }
}
