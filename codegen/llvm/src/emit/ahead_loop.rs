//! What a loop whose loads run ahead is ([`super::ahead`] emits it), and what it carries from iteration to iteration.

use std::cell::{Cell, RefCell};

use inkwell::basic_block::BasicBlock;
use inkwell::builder::Builder;
use inkwell::values::{BasicValue, IntValue, PhiValue};
use tk_tile::{BlockId, ValueId};

use super::interleave::IterationOrder;
use super::stop::{Res, bug};

/// A loop whose loads run ahead.
#[derive(Debug)]
pub struct AheadLoop<'c> {
    /// Its counter, in the kernel.
    pub(super) counter: ValueId,
    /// The first number, and the step.
    pub(super) count: (IntValue<'c>, IntValue<'c>),
    /// The end of its numbers, in the kernel.
    pub(super) end: ValueId,
    /// No number is negative, and the step is positive.
    pub(super) counts_up: bool,
    /// The block before the loop, and its first one.
    pub(super) blocks: (BasicBlock<'c>, BasicBlock<'c>),
    /// All blocks that existed before the loop.
    pub(super) earlier: Vec<BasicBlock<'c>>,
    /// Its block, and the values that it carries before the first iteration.
    pub(super) body: (BlockId, Vec<ValueId>),
    /// The addresses that it carries.
    pub(super) carried: RefCell<Vec<CarriedAddress<'c>>>,
    /// The offsets in multi-stage buffers that it carries.
    pub(super) toggled: RefCell<Vec<ToggledOffset<'c>>>,
    /// Whether there is a next iteration, where loads are masked by that.
    pub(super) guard: Option<IntValue<'c>>,
    /// What an iteration does, where its order is chosen here.
    pub(super) order: RefCell<IterationOrder<'c>>,
    /// Halves of the warps are in opposite phases: an iteration has an order and priorities of its own.
    pub(super) opposes_phases: bool,
    /// Whether the warp has a raised priority here.
    pub(super) is_raised: Cell<bool>,
}

/// An address that a loop carries.
#[derive(Debug)]
pub(super) struct CarriedAddress<'c> {
    pub(super) phi: PhiValue<'c>,
    /// The same number, about which LLVM knows nothing.
    pub(super) opaque: IntValue<'c>,
    /// The stride along which it advances, in elements of so many bytes.
    pub(super) stride: IntValue<'c>,
    pub(super) bytes: u32,
    /// That of the next iteration.
    pub(super) next: Option<IntValue<'c>>,
}

/// An offset that alternates between two stages.
#[derive(Debug)]
pub(super) struct ToggledOffset<'c> {
    pub(super) phi: PhiValue<'c>,
    pub(super) stage: u32,
    /// What it is computed from: a thread, the offsets of its bits, and the stage of the first iteration.
    pub(super) of: (IntValue<'c>, Vec<u64>, bool),
}

impl<'c> AheadLoop<'c> {
    /// Moves a builder to the end of the block before the loop.
    pub(super) fn before(&self, b: &Builder<'c>) {
        let (before, _) = self.blocks;
        match before.get_terminator() {
            Some(end) => b.position_before(&end),
            None => b.position_at_end(before),
        }
    }

    /// A number that the loop carries.
    pub(super) fn phi(&self, b: &Builder<'c>, start: IntValue<'c>) -> Res<PhiValue<'c>> {
        let (before, header) = self.blocks;
        let Some(top) = header.get_first_instruction() else { return bug("a loop has no counter") };
        b.position_before(&top);
        let phi = b.build_phi(start.get_type(), "")?;
        phi.add_incoming(&[(&start, before)]);
        Ok(phi)
    }

    /// Returns true if a number is known before the loop.
    pub(super) fn is_before(&self, x: IntValue<'c>) -> bool {
        let block = x.as_instruction_value().and_then(|i| i.get_parent());
        block.is_none_or(|b| self.earlier.contains(&b))
    }
}
