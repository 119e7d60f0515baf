//! Computes the tensor maps that a launch passes for TMA: [`maps`].
//!
//! A *tensor map* describes a tensor in memory, the box of it that a copy moves, and the placement of its lines in
//! shared memory. Copies of equal boxes of one parameter share a map, wherever they begin.
//!
//! Requires a verified scheduled kernel. Guarantees one order for emission and launch.

use tk_ops::{DType, ElementwiseOp, MemoryOp, Op};
use tk_tile::rewrite::constant;
use tk_tile::{Def, ElemType, Inst, Type, ValueId, walk};

use crate::ir::kernel::Kernel;
use crate::ir::op::{GpuOp, TmaBox};
use crate::ir::params::flattened;
use crate::layout::{cut, padded};

/// An extent or a stride of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapWord {
    /// The flattened parameter of this number.
    Passed(usize),
    /// A constant.
    Value(i64),
}

/// The part of an axis of a tensor that a view contains, as `view_slice` gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AxisTaken {
    /// All of it.
    Whole,
    /// One index, which the program computes.
    Index,
    /// The range between two positions that the program computes.
    Range,
}

/// An axis of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorAxis {
    /// Its extent.
    pub extent: MapWord,
    /// The stride, in elements.
    pub stride: MapWord,
    /// The part in the matrix.
    pub taken: AxisTaken,
}

/// A matrix in a tensor that a launch knows before the kernel runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorMatrix {
    /// The number of the tensor's address among the flattened parameters.
    pub address: usize,
    /// The axes of the tensor, in its order. All but `kept` are taken at one index.
    pub axes: Vec<TensorAxis>,
    /// The axes of rows and columns.
    pub kept: [usize; 2],
    /// Its elements.
    pub dtype: DType,
}

impl TensorMatrix {
    /// The dimensions of its map, the fastest first.
    ///
    /// TMA fills elements outside of a tensor with 0, but not those outside of a range of rows. The map of a tensor
    /// with N rows therefore begins N rows before it and contains its rows twice: row r of a range that has n rows and
    /// ends before row e is at N - n + r along one dimension and e along the other. The first reaches its extent N
    /// where the range ends, wherever that is.
    pub fn dimensions(&self) -> Vec<MapDimension> {
        let [rows, columns] = self.kept;
        let axis = |n: usize, at| self.axes.get(n).map(|a| MapDimension::of(a, at));
        let indices = (0..self.axes.len()).filter(|n| ![rows, columns].contains(n));
        let mut all: Vec<MapDimension> = [axis(columns, Position::Column), axis(rows, Position::Row)]
            .into_iter()
            .chain(indices.map(|n| axis(n, Position::Index(n))))
            .flatten()
            .collect();
        if let Some(row) =
            all.get_mut(1).filter(|_| self.axes.get(rows).is_some_and(|a| a.taken == AxisTaken::Range))
        {
            row.before = true;
            let end =
                MapDimension { extent: MapWord::Value(BEYOND), at: Position::End, before: false, ..*row };
            all.push(end);
        }
        all
    }
}

/// An extent that contains all possible positions.
const BEYOND: i64 = i32::MAX as i64;
/// The lines after which every swizzle repeats (PTX manual, "Swizzling Modes").
const SWIZZLED_LINES: u32 = 8;
/// The most lines, and elements of a line, of one copy: the limit of `cuTensorMapEncodeTiled` for a box.
pub const MOST_OF_BOX: u32 = 256;
/// The most dimensions of a map: the limit of `cuTensorMapEncodeTiled`.
pub const MOST_DIMENSIONS: usize = 5;

/// The start of a copy along a dimension of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// At its column.
    Column,
    /// The row of the copy; in a range, counted so that the range ends where the tensor would.
    Row,
    /// The index on this axis of the tensor.
    Index(usize),
    /// The end of the range of rows.
    End,
}

/// A dimension of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapDimension {
    /// Its extent.
    pub extent: MapWord,
    /// The stride, in elements.
    pub stride: MapWord,
    /// The map begins one extent before the tensor.
    pub before: bool,
    /// The start of copies.
    pub at: Position,
}

impl MapDimension {
    fn of(axis: &TensorAxis, at: Position) -> MapDimension {
        MapDimension { extent: axis.extent, stride: axis.stride, before: false, at }
    }
}

/// A tensor map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorMap {
    /// The matrix that it describes.
    pub matrix: TensorMatrix,
    /// Lines of a copy.
    pub lines: u32,
    /// Bytes of a line: 32, 64 or 128.
    pub span: u32,
}

/// One box of a copy: TMA moves a tile in boxes whose lines are as long as a swizzle is wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoxPart {
    /// The row and column of the tile at which it begins.
    pub at: [u32; 2],
    /// Bytes from the start of the tile in shared memory.
    pub place: u32,
}

/// The tensor maps of a kernel, in the order in which they are passed.
pub fn maps(kernel: &Kernel) -> Vec<TensorMap> {
    let func = kernel.func();
    let mut all: Vec<TensorMap> = vec![];
    for id in walk::insts(func) {
        let found = boxes(kernel, &func.insts[id]).map(|b| b.0);
        all.extend(found.filter(|m| !all.contains(m)));
    }
    all
}

/// The map of a copy and its boxes. Blocks of a cluster that load together take as many each, one after the other.
pub fn boxes(kernel: &Kernel, inst: &Inst) -> Option<(TensorMap, Vec<BoxPart>)> {
    let copied = copied(inst)?;
    let matrix = matrix(kernel, *inst.operands.first()?)?;
    let blocks = match GpuOp::of(inst) {
        Some(GpuOp::TmaLoad(load)) => load.multicast.map_or(1, |m| m.blocks),
        _ => 1,
    };
    let (lines, parts) = parts(copied, matrix.dtype, blocks)?;
    Some((TensorMap { matrix, lines, span: copied.span }, parts))
}

/// The lines of each box of a tile that this many blocks load together, as many boxes each, and the boxes; `None` if they
/// cannot. Rows that follow one another in shared memory are in one box. Where atoms of the tile share lines
/// ([`wgmma_shared`](crate::analysis::wgmma_shared)), the last box has columns after the tile, which nothing reads: boxes with
/// lines that are shorter than a swizzle is wide are no faster (measured on an H200: docs/performance.md).
pub fn parts(of: TmaBox, dtype: DType, blocks: u32) -> Option<(u32, Vec<BoxPart>)> {
    let bytes = dtype.bytes() as u32;
    let [mut tall, wide] = of.shape.map(cut);
    let of_line = (of.span / bytes).max(1);
    // Swizzle atoms along an atom of the tile; or atoms of the tile share lines.
    let (groups, each) = match (1 << wide.log2) / of_line {
        0 => ((wide.repeats << wide.log2).div_ceil(of_line), 1),
        each => (wide.repeats, each),
    };
    let mut rows = 1 << tall.log2;
    if groups * each == 1 {
        rows *= std::mem::replace(&mut tall.repeats, 1);
    }
    let beside = u64::from(tall.repeats) * u64::from(groups * each);
    let divides = |lines: &u32| {
        // A swizzle repeats after so many lines.
        let whole = rows.is_multiple_of(*lines) && (lines.is_multiple_of(SWIZZLED_LINES) || *lines == rows);
        whole && (beside * u64::from(rows / lines)).is_multiple_of(blocks.into())
    };
    let lines = (1..=rows.min(MOST_OF_BOX)).rev().find(divides)?;
    let atom = of.span << tall.log2 << each.ilog2();
    let mut parts = vec![];
    for (m, n) in (0..tall.repeats).flat_map(|m| (0..groups * each).map(move |n| (m, n))) {
        for first in (0..rows).step_by(lines as usize) {
            let place = (m * groups + n / each) * atom + (((n % each) << tall.log2) + first) * of.span;
            parts.push(BoxPart { at: [(m << tall.log2) + first, n * of_line], place });
        }
    }
    Some((lines, parts))
}

/// The bytes of shared memory in which a copy places a tile.
pub fn placed_bytes(of: TmaBox, dtype: DType) -> u64 {
    let bytes = dtype.bytes() as u64;
    let [tall, wide] = of.shape.map(|n| u64::from(padded(n)));
    let of_line = (u64::from(of.span) / bytes).max(1);
    tall * wide.next_multiple_of(of_line) * bytes
}

/// The box of a TMA load or store.
pub fn copied(inst: &Inst) -> Option<TmaBox> {
    match GpuOp::of(inst)? {
        GpuOp::TmaLoad(load) => Some(load.copied),
        GpuOp::TmaStore(store) => Some(store.copied),
        _ => None,
    }
}

/// The matrix that a view of rank 2 is: a tensor that the launch knows completely, with slices and permutations of it.
pub fn matrix(kernel: &Kernel, view: ValueId) -> Option<TensorMatrix> {
    let (tensor, kept) = sliced(kernel, view)?;
    Some(TensorMatrix { kept: kept.try_into().ok()?, ..tensor })
}

/// The tensor of which a view is a part, and the axes of it that are the axes of the view.
fn sliced(kernel: &Kernel, view: ValueId) -> Option<(TensorMatrix, Vec<usize>)> {
    let Some(inst) = subview(kernel, view) else {
        let tensor = tensor(kernel, view)?;
        let all = (0..tensor.axes.len()).collect();
        return Some((tensor, all));
    };
    let (mut tensor, kept) = sliced(kernel, *inst.operands.first()?)?;
    if inst.op == Op::Memory(MemoryOp::ViewPermute) {
        let perm = crate::ir::attrs::permutation(inst);
        return Some((tensor, perm.iter().map(|p| kept.get(*p).copied()).collect::<Option<_>>()?));
    }
    let mut left = vec![];
    for (axis, code) in kept.iter().zip(inst.attrs.ints("axes")?) {
        let of = tensor.axes.get_mut(*axis)?;
        match code {
            0 => of.taken = AxisTaken::Index,
            1 => left.push(*axis),
            _ => {
                of.taken = AxisTaken::Range;
                left.push(*axis);
            }
        }
    }
    Some((tensor, left))
}

/// The slice or the permutation that defines a view.
pub fn subview(kernel: &Kernel, view: ValueId) -> Option<&Inst> {
    let func = kernel.func();
    let Def::Inst(id, _) = func.values[view].def else { return None };
    let is_subview = |i: &&Inst| matches!(i.op, Op::Memory(MemoryOp::ViewSlice | MemoryOp::ViewPermute));
    Some(&func.insts[id]).filter(is_subview)
}

/// A parameter, or a view made of an address and numbers that are parameters or constants. No axis is kept yet.
fn tensor(kernel: &Kernel, view: ValueId) -> Option<TensorMatrix> {
    let func = kernel.func();
    let Type::View { elem: ElemType::Scalar(dtype), rank, .. } = kernel.module.types.get(func.ty(view))
    else {
        return None;
    };
    let (dtype, rank) = (*dtype, *rank as usize);
    let place = |v: ValueId| -> Option<usize> {
        let params = &func.blocks[func.body].args;
        let before = params.iter().take(params.iter().position(|p| *p == v)?);
        Some(before.map(|p| flattened(kernel.module.types.get(func.ty(*p)))).sum())
    };
    let (address, words): (usize, Vec<MapWord>) = if let Some(address) = place(view) {
        (address, (1..=2 * rank).map(|i| MapWord::Passed(address + i)).collect())
    } else {
        let Def::Inst(id, _) = func.values[view].def else { return None };
        let inst = Some(&func.insts[id]).filter(|i| i.op == Op::Memory(MemoryOp::View))?;
        let (address, numbers) = inst.operands.split_first()?;
        (place(*address)?, numbers.iter().map(|v| number(kernel, *v, &place)).collect::<Option<_>>()?)
    };
    let (extents, strides) = words.split_at_checked(rank)?;
    let axes = extents.iter().zip(strides).map(|(e, s)| TensorAxis {
        extent: *e,
        stride: *s,
        taken: AxisTaken::Whole,
    });
    Some(TensorMatrix { address, axes: axes.collect(), kept: [0; 2], dtype })
}

/// A parameter or a constant, possibly extended to more bits.
fn number(kernel: &Kernel, v: ValueId, place: &dyn Fn(ValueId) -> Option<usize>) -> Option<MapWord> {
    let func = kernel.func();
    if let Some(i) = place(v) {
        return Some(MapWord::Passed(i));
    }
    if let Some(value) = constant(func, v) {
        return Some(MapWord::Value(i64::try_from(value.as_int()?).ok()?));
    }
    let Def::Inst(id, _) = func.values[v].def else { return None };
    let inst = &func.insts[id];
    let dtype =
        |v: ValueId| kernel.module.types.get(func.ty(v)).dtype().filter(|d| d.is_int() && d.is_signed());
    let from = *inst.operands.first()?;
    let cast = inst.op == Op::Elementwise(ElementwiseOp::Cast);
    let widens = cast && dtype(from)?.bits() <= dtype(v)?.bits();
    if widens { number(kernel, from, place) } else { None }
}
