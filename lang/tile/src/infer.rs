//! The result types that follow from the operand types alone.
//!
//! Accepts any input: the result is `None` where no type follows. The builder, the passes and the verifier use the
//! same functions, so they cannot disagree.

use tk_ops::{DType, ElementwiseOp};

use crate::ir::{ElemType, Type};

/// The type of an elementwise operation on operands of these types. `None` where the result says itself what it is
/// (`cast`, `bitcast`) and where there are no operands or they are views.
pub fn elementwise(op: ElementwiseOp, operands: &[&Type]) -> Option<Type> {
    let first = operands.first()?;
    // The first operand of `select` is its condition.
    let typed = if op == ElementwiseOp::Select { operands.get(1)? } else { first };
    let result = op.result()?;
    let elem = match typed.elem() {
        ElemType::Scalar(d) => ElemType::Scalar(result.of(*d)),
        ElemType::Ptr { .. } => typed.elem().clone(),
    };
    Some(Type::Tile { elem, shape: first.shape()?.to_vec() })
}

/// The tile type with these extents and the elements of `ty`.
pub fn with_shape(ty: &Type, shape: &[u32]) -> Type {
    Type::Tile { elem: ty.elem().clone(), shape: shape.to_vec() }
}

/// The shape after a permutation: result dimension i is operand dimension `perm[i]`. `None` if `perm` is not a
/// permutation.
pub fn permuted(shape: &[u32], perm: &[i64]) -> Option<Vec<u32>> {
    if !is_permutation(perm, shape.len()) {
        return None;
    }
    perm.iter().map(|&p| shape.get(usize::try_from(p).ok()?).copied()).collect()
}

/// Returns true if `perm` holds each of `0..rank` once.
pub fn is_permutation(perm: &[i64], rank: usize) -> bool {
    perm.len() == rank && (0..rank).all(|i| perm.contains(&(i as i64)))
}

/// Returns true if a value of type `found` can be used as `wanted`: the same type, or one that may be stored through
/// where the other may not. This is the only implicit conversion of the IR.
pub fn serves(found: &Type, wanted: &Type) -> bool {
    match (found, wanted) {
        (Type::Tile { elem: a, shape: s }, Type::Tile { elem: b, shape: t }) => s == t && elem_serves(a, b),
        (
            Type::View { elem: a, rank: r, mutable: m, wide: w },
            Type::View { elem: b, rank: s, mutable: n, wide: v },
        ) => a == b && r == s && w == v && (*m || !*n),
        (Type::Tile { .. }, Type::View { .. }) | (Type::View { .. }, Type::Tile { .. }) => false,
    }
}

/// [`serves`] for elements.
pub fn elem_serves(found: &ElemType, wanted: &ElemType) -> bool {
    match (found, wanted) {
        (ElemType::Scalar(a), ElemType::Scalar(b)) => a == b,
        (ElemType::Ptr { pointee: a, mutable: m }, ElemType::Ptr { pointee: b, mutable: n }) => {
            a == b && (*m || !*n)
        }
        (ElemType::Scalar(_), ElemType::Ptr { .. }) | (ElemType::Ptr { .. }, ElemType::Scalar(_)) => false,
    }
}

/// The same shape with elements of another type.
pub fn with_dtype(ty: &Type, dtype: DType) -> Type {
    Type::tile(dtype, ty.shape().unwrap_or(&[]))
}
