//! The emitted form of values.

use std::rc::Rc;

use inkwell::context::Context;
use inkwell::types::{BasicTypeEnum, IntType, VectorType};
use inkwell::values::{BasicValueEnum, IntValue};
use tk_tile::ElemType;

use super::stop::{Res, bug};

/// A value.
#[derive(Clone, Debug)]
pub enum Val<'c> {
    /// The same in every thread.
    Scalar(BasicValueEnum<'c>),
    /// A tile: the elements that this thread owns.
    Tile(Tile<'c>),
    /// A view.
    View(View<'c>),
}

/// The elements of a tile that a thread owns. The forms differ only in how much code they need.
#[derive(Clone, Debug)]
pub enum Tile<'c> {
    /// A value for each register of the layout.
    Regs(Rc<Vec<BasicValueEnum<'c>>>),
    /// Every register has the same value.
    Splat(BasicValueEnum<'c>),
    /// Register r is the integer `base + offsets[r]`, or the address, in bytes.
    Affine {
        /// The part that depends on the thread.
        base: IntValue<'c>,
        /// The part that does not.
        offsets: Rc<Vec<i64>>,
    },
}

impl<'c> Tile<'c> {
    /// A tile from a value for each register.
    pub fn regs(values: Vec<BasicValueEnum<'c>>) -> Tile<'c> {
        Tile::Regs(Rc::new(values))
    }
}

/// A view.
#[derive(Clone, Debug)]
pub struct View<'c> {
    /// The address of its first element.
    pub base: IntValue<'c>,
    /// i32 or i64.
    pub extents: Vec<IntValue<'c>>,
    /// In elements; i64.
    pub strides: Vec<IntValue<'c>>,
    /// Size of an element.
    pub bytes: u32,
}

/// Bytes of an element in memory.
pub fn element_bytes(elem: &ElemType) -> u32 {
    tk_gpu::ir::params::element_bytes(elem) as u32
}

/// The width of a scalar; 0 for other types.
pub fn bits(ty: BasicTypeEnum<'_>) -> u32 {
    match ty {
        BasicTypeEnum::IntType(t) => t.get_bit_width(),
        BasicTypeEnum::FloatType(t) => t.get_bit_width(),
        BasicTypeEnum::ArrayType(_)
        | BasicTypeEnum::PointerType(_)
        | BasicTypeEnum::StructType(_)
        | BasicTypeEnum::VectorType(_)
        | BasicTypeEnum::ScalableVectorType(_) => 0,
    }
}

/// The integer type of this many bits.
pub fn word(context: &Context, bits: u32) -> IntType<'_> {
    match bits {
        1 => context.bool_type(),
        2..=8 => context.i8_type(),
        9..=16 => context.i16_type(),
        17..=32 => context.i32_type(),
        _ => context.i64_type(),
    }
}

/// A vector of this many elements of a type.
pub(crate) fn vector_of(element: BasicTypeEnum<'_>, n: u32) -> Res<VectorType<'_>> {
    match element {
        BasicTypeEnum::IntType(t) => Ok(t.vec_type(n)),
        BasicTypeEnum::FloatType(t) => Ok(t.vec_type(n)),
        BasicTypeEnum::ArrayType(_)
        | BasicTypeEnum::PointerType(_)
        | BasicTypeEnum::StructType(_)
        | BasicTypeEnum::VectorType(_)
        | BasicTypeEnum::ScalableVectorType(_) => bug("an element is a number"),
    }
}

/// Returns true if a value is known to have no bit set.
pub(crate) fn is_zero(x: &BasicValueEnum<'_>) -> bool {
    match x {
        BasicValueEnum::IntValue(x) => x.get_zero_extended_constant() == Some(0),
        BasicValueEnum::FloatValue(x) => {
            x.get_constant().is_some_and(|(x, _)| x == 0.0 && x.is_sign_positive())
        }
        _other => false,
    }
}
