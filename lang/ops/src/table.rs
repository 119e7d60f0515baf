//! The shape of **the op table**: one [`Row`] for each builtin that a user can write.
//!
//! From the rows follow type checking, hover, completion, the reference in `spec/ops.md` and its tests. The rows
//! stand in `rows/`, a file per class.

use crate::dtype::DTypeSet;
use crate::op::Op;

/// One builtin.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The name that a user writes.
    pub name: &'static str,
    /// On what it is a method (`v.load`); its receiver is `params[0]`.
    pub receiver: Receiver,
    /// Parameters in order, the receiver included.
    pub params: &'static [BuiltinParam],
    /// How it is typed.
    pub scheme: Scheme,
    /// What carries its meaning in tile IR.
    pub op: Op,
    /// One sentence, then details. Shown by hover and in the reference.
    pub doc: &'static str,
    /// A `test` body (statements, without the `test` line) that runs and fails when the row is wrong.
    pub example: &'static str,
    /// What it does besides giving a value.
    pub effects: Effects,
    /// How exact it is.
    pub accuracy: Accuracy,
}

/// What a row is called on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receiver {
    /// A plain function.
    None,
    /// A view.
    View,
    /// A tile (`t.permute(..)`).
    Tile,
    /// Only in `test` blocks, a plain function.
    Test,
    /// Only in `test` blocks, a method of a buffer.
    Buffer,
}

/// A parameter of a builtin.
#[derive(Clone, Copy, Debug)]
pub struct BuiltinParam {
    /// Its name.
    pub name: &'static str,
    /// What may stand there.
    pub kind: ParamKind,
    /// Absent: the argument is required. Otherwise the default as shown to users (`"0"`, `"none"`).
    pub default: Option<&'static str>,
}

/// What may stand for a parameter of a builtin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// A tile or scalar whose element type takes part in the scheme.
    Value,
    /// A bool tile or scalar that broadcasts to the shape of the operation.
    Mask,
    /// An integer tile or scalar of any integer type.
    Int,
    /// A pointer or tile of pointers.
    Pointer,
    /// A view.
    View,
    /// A compile-time list of extents `[BM, BN]`, or a `shape` parameter.
    Shape,
    /// A compile-time axis; negative counts from the end.
    Axis,
    /// A compile-time integer.
    ConstInt,
    /// A compile-time bool.
    ConstBool,
    /// A compile-time float.
    ConstFloat,
    /// A compile-time list of integers (`permute([1, 0])`).
    ConstInts,
    /// An element type, compile-time.
    DType,
    /// A function, compile-time.
    Fn,
    /// Run-time integers, one per axis: `[i, j]`.
    Position,
    /// A list of integer tiles, one per axis.
    Positions,
    /// One of these words, known only there (`order = acquire`, `precision = tf32`).
    Word(&'static [&'static str]),
    /// A string literal.
    Str,
    /// Any number of further values (`print`).
    Rest,
}

/// How a row is typed. `T` is the common element type of the `Value` parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// `Value` parameters share one element type of the set and broadcast; `Mask` parameters broadcast along.
    Elementwise(DTypeSet, ElemResult),
    /// `(x, axis, keep)`: x of the set; the axis goes away, or becomes 1.
    Reduce(DTypeSet, ElemResult),
    /// The checker has an arm for its op.
    Special,
}

/// The element type of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElemResult {
    /// `T`.
    Same,
    /// `bool`.
    Bool,
    /// `i32`.
    I32,
    /// `T`, but i32 for bool and signed integers below 32 bits, u32 for unsigned ones.
    Widened,
}

/// What an operation does besides giving a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effects {
    /// Nothing: may be removed, merged and moved.
    Pure,
    /// Reads memory.
    Read,
    /// Writes memory.
    Write,
    /// Must stay where it is, once.
    Ordered,
}

/// How exact a result is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Accuracy {
    /// No rounding takes place, or the bits are defined.
    Exact,
    /// The nearest representable value, ties to even.
    Rounded,
    /// At most this many units in the last place for f32 and f64; narrower types are computed in f32 and rounded.
    Ulp(f32),
}

impl Row {
    /// The position of a parameter.
    pub fn param(&self, name: &str) -> Option<usize> {
        self.params.iter().position(|p| p.name == name)
    }
}

impl PartialEq for Row {
    /// Rows are unique by receiver and name.
    fn eq(&self, other: &Row) -> bool {
        self.name == other.name && self.receiver == other.receiver
    }
}
