//! The types of the language as the checker sees them: generic, with symbolic extents.

use tk_ops::DType;

use crate::hir::{CVarId, HExpr, StructId};
use crate::poly::Poly;

/// The type of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Ty {
    /// The type of a hole: fits everywhere, silently.
    Err,
    /// No value.
    Unit,
    /// The type of what does not return.
    Never,
    /// A tile; rank 0 is a scalar or a single pointer.
    Tile {
        /// The elements.
        elem: Elem,
        /// The extents.
        shape: Shape,
    },
    /// A view of device memory.
    View {
        /// The elements.
        elem: Elem,
        /// 1 to 5; a parameter in what is generic over the rank.
        rank: Poly,
        /// Whether it may be stored through.
        mutable: bool,
        /// Extents and positions are i64.
        wide: bool,
    },
    /// `view[T, R]?`
    Option(Box<Ty>),
    /// A tensor of a `test`, with its extents; serves as a view or pointer argument of a kernel.
    Buffer {
        /// The elements.
        elem: Elem,
        /// The extents.
        shape: Vec<Poly>,
    },
    /// A tuple.
    Tuple(Vec<Ty>),
    /// A tuple of values of one type, as many as a compile-time value says: the extents of a view whose rank is a parameter.
    List(Box<Ty>, Poly),
    /// A struct and its compile-time arguments in order of its parameters.
    Struct(StructId, Vec<CTerm>),
    /// A function, compile-time.
    Fn(Vec<Ty>, Box<Ty>),
    /// An element type, compile-time.
    DType,
    /// A list of extents, compile-time.
    ShapeTy,
    /// Text, compile-time.
    Str,
}

/// The most values that one tuple or struct may hold: tuples of tuples double with every line. Tables written out have a
/// few thousand entries; at this limit checking takes a second and some hundred MB.
pub(crate) const MAX_PARTS: usize = 1 << 16;

/// The element type of a tile, view or buffer.
#[derive(Clone, Debug, PartialEq)]
pub enum Elem {
    /// The type of a hole.
    Err,
    /// A scalar.
    D(DTerm),
    /// A pointer.
    Ptr {
        /// The type of the pointee.
        pointee: Box<Elem>,
        /// Whether it may be stored through.
        mutable: bool,
    },
}

/// A dtype expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DTerm {
    /// Known.
    Known(DType),
    /// A dtype variable.
    Param(CVarId),
    /// `T.acc`
    Acc(CVarId),
    /// The unknown type of a literal; never left when a body has been checked.
    Infer(u32),
}

/// The extents of a tile.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// One by one.
    Dims(Vec<Poly>),
    /// A `shape` variable, as a whole.
    Param(CVarId),
}

/// A compile-time argument, symbolic.
#[derive(Clone, Debug, PartialEq)]
pub enum CTerm {
    /// An integer.
    Int(Poly),
    /// An element type.
    DType(DTerm),
    /// Extents.
    Shape(Shape),
    /// Anything else (bool, float, function): a compile-time expression.
    Expr(Box<HExpr>),
    /// Not known because of an earlier error.
    Err,
}

impl Ty {
    /// The scalar type.
    pub fn scalar(d: DType) -> Ty {
        Ty::Tile { elem: Elem::D(DTerm::Known(d)), shape: Shape::Dims(vec![]) }
    }
    /// `i32`
    pub fn i32() -> Ty {
        Ty::scalar(DType::I32)
    }
    /// `bool`
    pub fn bool() -> Ty {
        Ty::scalar(DType::Bool)
    }
    /// Returns true if it is the type of a hole.
    pub fn is_err(&self) -> bool {
        matches!(self, Ty::Err | Ty::Tile { elem: Elem::Err, .. } | Ty::View { elem: Elem::Err, .. })
    }
}

impl Shape {
    /// Rank 0.
    pub fn scalar() -> Shape {
        Shape::Dims(vec![])
    }
    /// The dims, unless it is a `shape` variable.
    pub fn dims(&self) -> Option<&[Poly]> {
        match self {
            Shape::Dims(d) => Some(d),
            Shape::Param(_) => None,
        }
    }
    /// Returns true if this is rank 0 for certain.
    pub fn is_scalar(&self) -> bool {
        matches!(self, Shape::Dims(d) if d.is_empty())
    }
}
