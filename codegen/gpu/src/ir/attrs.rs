//! Attributes of instructions as numbers, and their consequences for shapes and layouts.

use tk_ops::{DType, ReduceOp};
use tk_tile::Inst;

use crate::layout::Layout;

/// The attribute `axis`; the last dimension without it.
pub fn axis_of(inst: &Inst) -> usize {
    inst.attrs.int("axis").and_then(|a| usize::try_from(a).ok()).unwrap_or(usize::MAX)
}

/// The attribute `perm`.
pub fn permutation(inst: &Inst) -> Vec<usize> {
    inst.attrs.ints("perm").unwrap_or(&[]).iter().filter_map(|p| usize::try_from(*p).ok()).collect()
}

/// Returns true if a reshape only adds or removes dimensions of extent 1.
pub fn is_unit(from: &[u32], to: &[u32]) -> bool {
    let real = |s: &[u32]| s.iter().copied().filter(|n| *n != 1).collect::<Vec<u32>>();
    real(from) == real(to)
}

/// The layout after a reshape that only adds or removes dimensions of extent 1.
pub fn units(layout: &Layout, from: &[u32], to: &[u32]) -> Layout {
    let mut out = layout.clone();
    for d in (0..from.len()).rev().filter(|d| from.get(*d) == Some(&1)) {
        out = out.without(d);
    }
    for d in (0..to.len()).filter(|d| to.get(*d) == Some(&1)) {
        out = out.with_unit(d);
    }
    out
}

/// The inverse permutation.
pub fn inverse(perm: &[usize]) -> Vec<usize> {
    let mut out = vec![0; perm.len()];
    for (i, p) in perm.iter().enumerate() {
        if let Some(slot) = out.get_mut(*p) {
            *slot = i;
        }
    }
    out
}

/// The state of a fold from element to element: the result so far, in the accumulator's type, and for positions the
/// element beside it.
pub fn state(op: ReduceOp, from: DType, to: DType) -> Vec<DType> {
    match op {
        ReduceOp::ArgMax | ReduceOp::ArgMin => vec![from, DType::I32],
        ReduceOp::Sum | ReduceOp::Prod => match to {
            DType::F16 | DType::BF16 => vec![DType::F32],
            other => vec![other],
        },
        ReduceOp::Max
        | ReduceOp::Min
        | ReduceOp::Any
        | ReduceOp::All
        | ReduceOp::XorSum
        | ReduceOp::Or
        | ReduceOp::Custom => vec![to],
    }
}

/// Strides of a tile in row-major order.
pub fn row_major(shape: &[u32]) -> Vec<i64> {
    let mut strides = vec![1i64; shape.len()];
    let mut step = 1i64;
    for (s, n) in strides.iter_mut().zip(shape).rev() {
        *s = step;
        step *= i64::from(*n);
    }
    strides
}
