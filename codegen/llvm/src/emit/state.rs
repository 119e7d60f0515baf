//! What emission keeps of parts of a kernel while it works on others.

use inkwell::values::{IntValue, PointerValue};
use tk_gpu::ir::kernel::LayoutId;

use super::value::Tile;
use crate::target::Near;
use tk_gpu::ir::caching::Caching;

/// Where one side is in a multi-stage buffer.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'c> {
    pub(super) stage: PointerValue<'c>,
    pub(super) phase: PointerValue<'c>,
}

/// A TMA pipeline.
#[derive(Clone, Copy, Debug)]
pub struct TmaPipeline<'c> {
    /// The buffer of its barriers.
    pub(super) buffer: usize,
    pub(super) stages: u32,
    /// Where the barriers begin.
    pub(super) start: u32,
    pub(super) fills: Cursor<'c>,
    pub(super) receives: Cursor<'c>,
    pub(super) releases: Cursor<'c>,
}

/// Where the elements of one wide access lie.
#[derive(Clone, Copy, Debug)]
pub struct MemoryPlace<'c> {
    /// An address.
    pub address: IntValue<'c>,
    /// Bytes behind it.
    pub offset: i64,
    /// Nothing happens without it.
    pub predicate: Option<IntValue<'c>>,
    /// The same address, where that is known and the target has use for it.
    pub near: Option<Near<'c>>,
}

/// What a load reads.
#[derive(Clone, Debug)]
pub struct Late<'c> {
    /// Neighbours that an access takes.
    pub vector: u32,
    /// Where the accesses go.
    pub places: Vec<MemoryPlace<'c>>,
    /// What is held where nothing is read; zeros if there is none.
    pub other: Option<Tile<'c>>,
    /// What the source asks of the caches.
    pub caching: Caching,
}

/// Whose elements a block is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nested {
    /// Those of a tile with this layout, one after the other.
    Map(LayoutId),
    /// What a fold combines, as often as that suits it.
    Fold,
}
