//! What emission asks a target for: matrix products, and what a kernel prints.

use inkwell::values::{BasicValueEnum, IntValue};
use tk_gpu::analysis::wgmma_shared::WgmmaShared;
use tk_gpu::target::mma::MmaInstruction;
use tk_ops::DType;

/// An instruction for factors of these types.
#[derive(Clone, Copy, Debug)]
pub struct MmaRequest {
    /// The instruction.
    pub matrix: MmaInstruction,
    /// The types of the factors.
    pub operands: [DType; 2],
}

/// A factor in shared memory.
#[derive(Clone, Copy, Debug)]
pub struct Lies<'c> {
    /// Where the part of this group begins, the same in all its threads.
    pub address: IntValue<'c>,
    /// Its order.
    pub swizzled: WgmmaShared,
}

/// The left factor.
#[derive(Clone, Debug)]
pub enum Left<'c> {
    /// In shared memory.
    Lies(Lies<'c>),
    /// Words that the thread holds, one step after the other.
    Words(Vec<BasicValueEnum<'c>>),
}

/// One instruction.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Its first sum; it has half as many as columns.
    pub accumulator: usize,
    /// Bytes from the address of the left factor, or the number of its first word.
    pub left: i64,
    /// Bytes from the address of the right factor.
    pub right: i64,
}

/// Instructions that are begun together.
#[derive(Clone, Debug)]
pub struct WgmmaOperands<'c> {
    /// The instruction.
    pub product: MmaRequest,
    /// The left factor.
    pub left: Left<'c>,
    /// The right factor.
    pub right: Lies<'c>,
    /// In the order in which they add up.
    pub steps: Vec<Step>,
}

impl WgmmaOperands<'_> {
    /// Words of the left factor that a thread holds for an instruction.
    pub fn words(&self) -> usize {
        words_of(&self.product)
    }

    /// Sums that a thread has of an instruction.
    pub fn accumulators(&self) -> usize {
        1 << (self.product.matrix.n - 1)
    }
}

/// Words of the left factor that a thread holds for an instruction.
pub fn words_of(product: &MmaRequest) -> usize {
    let m = product.matrix;
    1 << (m.m + m.k - m.lane_bits() - m.warps - m.packed())
}

/// A part of a value that is printed.
#[derive(Clone, Copy, Debug)]
pub struct PrintedPart<'c> {
    /// Which of the values.
    pub value: u32,
    /// Of a tile the element in row-major order. Of a view 0 for the address, then one for each extent and each stride. An
    /// i32.
    pub position: IntValue<'c>,
    /// The bits, as an i64.
    pub bits: IntValue<'c>,
    /// Whether it is this thread that says it: one does, if it is shown at all. `None` is always true.
    pub own: Option<IntValue<'c>>,
}
