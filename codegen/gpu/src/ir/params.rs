//! The flattened parameters of a kernel, what is known of each before a launch, and the sizes of elements.

use tk_tile::{ElemType, Type};

/// What is known of one kernel parameter when it is compiled. A view is a pointer, its extents and its strides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ArgFacts {
    /// A power of two that divides it: an integer's value, a pointer's address in bytes.
    pub divisible: u32,
    /// Whether it is 1.
    pub one: bool,
    /// Whether it is above 0 and below [`ArgFacts::BOUND`]: an extent or a stride that a tensor map may have.
    pub positive: bool,
}

impl ArgFacts {
    /// What an integer that counts as positive is below. Tensor maps could have longer strides, but no longer ranges of rows.
    pub const BOUND: i64 = 1 << 30;
}

impl Default for ArgFacts {
    fn default() -> Self {
        ArgFacts { divisible: 1, one: false, positive: false }
    }
}

/// Bytes of an element in memory.
pub fn element_bytes(elem: &ElemType) -> u64 {
    match elem {
        ElemType::Scalar(d) => d.bytes() as u64,
        ElemType::Ptr { .. } => 8,
    }
}

/// How many flattened parameters a parameter of this type is.
pub fn flattened(ty: &Type) -> usize {
    match ty {
        Type::Tile { .. } => 1,
        Type::View { rank, .. } => 1 + 2 * *rank as usize,
    }
}
