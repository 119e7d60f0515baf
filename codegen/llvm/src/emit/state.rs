//! State that emission keeps between parts of a kernel.

use inkwell::IntPredicate;
use inkwell::values::{IntValue, PointerValue};
use tk_gpu::ir::kernel::LayoutId;

use super::value::Tile;
use crate::target::Near;
use tk_gpu::ir::caching::Caching;
use tk_tile::ValueId;

/// The position of one side in a multi-stage buffer.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'c> {
    pub(super) stage: PointerValue<'c>,
    pub(super) phase: PointerValue<'c>,
}

/// Consumers of TMA pipelines that count together: one variable holds the number of stages so far, and their distances from
/// it are known at each instruction.
#[derive(Clone, Debug)]
pub struct Lockstep<'c> {
    pub(super) count: PointerValue<'c>,
    /// The distance of each position, which its variable identifies.
    pub(super) ahead: Vec<(PointerValue<'c>, u32)>,
}

/// A TMA pipeline.
#[derive(Clone, Copy, Debug)]
pub struct TmaPipeline<'c> {
    /// The buffer of its mbarriers.
    pub(super) buffer: usize,
    pub(super) stages: u32,
    /// The blocks in which stages are released ([`Pipeline::peers`]).
    ///
    /// [`Pipeline::peers`]: tk_gpu::ir::op::Pipeline::peers
    pub(super) peers: u32,
    /// The offset of the mbarriers.
    pub(super) start: u32,
    pub(super) fills: Cursor<'c>,
    pub(super) receives: Cursor<'c>,
    pub(super) releases: Cursor<'c>,
}

/// The address of one wide access.
#[derive(Clone, Copy, Debug)]
pub struct MemoryPlace<'c> {
    /// An address.
    pub address: IntValue<'c>,
    /// An offset from it in bytes.
    pub offset: i64,
    /// The access is done only if this is true.
    pub predicate: Option<IntValue<'c>>,
    /// The same address relative to a uniform one, where that is known and the target can use it.
    pub near: Option<Near<'c>>,
    /// What is asked about it first; the predicate is about the other axes then.
    pub ragged: Option<Ragged<'c>>,
}

/// What is asked about an access of neighbours along one axis, which are not known to be all inside or all outside of a view or a
/// mask, or not to follow one another.
#[derive(Clone, Copy, Debug)]
pub struct Ragged<'c> {
    /// Bytes from one element to the next; uniform, 64 bits.
    pub step: IntValue<'c>,
    /// The elements are no neighbours in memory; `None` if they are known to be. Uniform.
    pub apart: Option<IntValue<'c>>,
    /// All elements are inside; `None` if nothing excludes some.
    pub whole: Option<IntValue<'c>>,
    /// Some elements may be inside and others outside.
    pub straddles: Option<IntValue<'c>>,
    /// Which ones.
    pub inside: Inside<'c>,
}

/// Which of the neighbours of a ragged access are inside.
#[derive(Clone, Copy, Debug)]
pub enum Inside<'c> {
    /// Those at such positions of a view.
    Row {
        /// The position of the first element.
        at: IntValue<'c>,
        /// Positions that compare with it in this way are inside.
        end: IntValue<'c>,
        /// That comparison.
        below: IntPredicate,
    },
    /// Those for which a mask holds, from this register of it on.
    Mask(ValueId, usize),
    /// All.
    All,
}

/// A load that is done later.
#[derive(Clone, Debug)]
pub struct Late<'c> {
    /// Neighbours that an access moves.
    pub vector: u32,
    /// The addresses of the accesses.
    pub places: Vec<MemoryPlace<'c>>,
    /// The value where nothing is read; zeros if `None`.
    pub other: Option<Tile<'c>>,
    /// Whether each access is made of two aligned ones.
    pub shifted: bool,
    /// The cache hints of the source.
    pub caching: Caching,
}

/// The elements for which a block is emitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nested {
    /// Those of a tile with this layout, one after the other.
    Map(LayoutId),
    /// Combinations of a reduction, of which the emitter chooses the number and order.
    Fold,
}
