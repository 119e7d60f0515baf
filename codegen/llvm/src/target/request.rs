//! What emission gives to a target and gets from it: the beginning of a kernel, matrix products, and values to print.

use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::values::{BasicValueEnum, FunctionValue, IntValue};
use tk_gpu::Kernel;
use tk_gpu::analysis::wgmma_shared::WgmmaShared;
use tk_gpu::target::mma::MmaInstruction;
use tk_ops::DType;

/// The state at the beginning of a kernel.
pub struct Start<'a, 'c> {
    /// The context of the types.
    pub context: &'c Context,
    /// The builder, in the entry block.
    pub builder: &'a Builder<'c>,
    /// The module.
    pub module: &'a Module<'c>,
    /// The function.
    pub function: FunctionValue<'c>,
    /// The kernel.
    pub kernel: &'a Kernel,
}

/// The values at the beginning of a kernel.
pub struct Entry<'c> {
    /// The number of the thread in its program.
    pub tid: IntValue<'c>,
    /// The number of programs along each axis.
    pub programs: [IntValue<'c>; 3],
    /// The parameters of the kernel, flattened.
    pub params: Vec<BasicValueEnum<'c>>,
    /// The addresses of its tensor maps.
    pub maps: Vec<IntValue<'c>>,
}

/// Words of 4 bytes.
pub type Words<'c> = Vec<IntValue<'c>>;

/// An address as a uniform one of the warp, and an offset in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Near<'c> {
    /// Uniform; 64 bits.
    pub base: IntValue<'c>,
    /// Nonnegative and below 2^30, as is the sum with the offset of the access; 32 bits.
    pub distance: IntValue<'c>,
}

/// An instruction for operands of these types.
#[derive(Clone, Copy, Debug)]
pub struct MmaRequest {
    /// The instruction.
    pub matrix: MmaInstruction,
    /// The types of the operands.
    pub operands: [DType; 2],
}

/// An operand in shared memory.
#[derive(Clone, Copy, Debug)]
pub struct SharedOperand<'c> {
    /// The address of the part of this warpgroup, the same in all its threads.
    pub address: IntValue<'c>,
    /// Its placement.
    pub swizzled: WgmmaShared,
}

/// The left operand.
#[derive(Clone, Debug)]
pub enum OperandA<'c> {
    /// In shared memory.
    Shared(SharedOperand<'c>),
    /// Words of the thread, one step after the other.
    Registers(Vec<BasicValueEnum<'c>>),
}

/// One instruction.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Its first accumulator element; it has half as many as columns.
    pub accumulator: usize,
    /// Bytes from the address of the left operand, or the number of its first word.
    pub left: i64,
    /// Bytes from the address of the right operand.
    pub right: i64,
}

/// Instructions that are issued together.
#[derive(Clone, Debug)]
pub struct WgmmaOperands<'c> {
    /// The instruction, for the columns of one atom.
    pub product: MmaRequest,
    /// The atoms along the columns that one instruction multiplies.
    pub atoms: u32,
    /// The left operand.
    pub left: OperandA<'c>,
    /// The right operand.
    pub right: SharedOperand<'c>,
    /// In the order of accumulation.
    pub steps: Vec<Step>,
}

impl WgmmaOperands<'_> {
    /// Words of the left operand that a thread owns for an instruction.
    pub fn words(&self) -> usize {
        words_of(&self.product)
    }

    /// Columns of an instruction.
    pub fn columns(&self) -> u32 {
        self.atoms << self.product.matrix.n
    }

    /// Accumulator elements that a thread owns of an instruction.
    pub fn accumulators(&self) -> usize {
        self.columns() as usize / 2
    }
}

/// Words of the left operand that a thread owns for an instruction.
pub fn words_of(product: &MmaRequest) -> usize {
    let m = product.matrix;
    1 << (m.m + m.k - m.lane_bits() - m.warps - m.packed())
}

/// A part of a value that is printed.
#[derive(Clone, Copy, Debug)]
pub struct PrintedPart<'c> {
    /// The number of the value.
    pub value: u32,
    /// For a tile the element in row-major order. For a view 0 for the address, then one for each extent and each
    /// stride. An i32.
    pub position: IntValue<'c>,
    /// The bits, as an i64.
    pub bits: IntValue<'c>,
    /// This thread sends it: exactly one does, if it is shown at all. `None` is always true.
    pub own: Option<IntValue<'c>>,
}
