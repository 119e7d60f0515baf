//! Flattened parameters of a kernel, the facts about each before a launch, and the sizes of elements.

use tk_tile::{ElemType, Type};

/// The facts about one kernel parameter at compile time. A view is a pointer, its extents and its strides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ArgFacts {
    /// A power of two that divides it: an integer's value, a pointer's address in bytes.
    pub divisible: u32,
    /// It is 1.
    pub one: bool,
    /// It is above 0 and below [`ArgFacts::BOUND`]: an extent or a stride that a tensor map may have.
    pub positive: bool,
}

impl ArgFacts {
    /// The upper bound of an integer that counts as positive. Tensor maps could have longer strides, but no longer
    /// ranges of rows.
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

/// The number of flattened parameters for a parameter of this type.
pub fn flattened(ty: &Type) -> usize {
    match ty {
        Type::Tile { .. } => 1,
        Type::View { rank, .. } => 1 + 2 * *rank as usize,
    }
}
