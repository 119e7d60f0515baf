//! Rewrites `dot_scaled` as a `dot` of operands that are scaled before it, since no target has an instruction for it.
//!
//! ```text
//!                                                     v10 = cast v0 : tile[f32, M, K]
//!                                                     v11 = cast v2 : tile[f32, M, B]
//!                                                     v12 = reshape v11 : tile[f32, M, B, 1]
//!                                                     v13 = broadcast v12 : tile[f32, M, B, K / B]
//!                                                     v14 = reshape v13 : tile[f32, M, K]
//! v5 = dot_scaled v0, v1, v2, v3, v4 : tile[..]  =>   v15 = mul v10, v14 : tile[f32, M, K]
//!                                                     v16 = cast v15 : tile[bf16, M, K]
//!                                                     ..
//!                                                     v5 = dot v16, v23, v4 : tile[..]
//! ```
//!
//! The element type of the product is the one that the language defines ([`DType::scaled`]). Operands are multiplied by
//! their scales in f32, or in f64 if that is the type, which is exact wherever the result is representable: so it is
//! rounded once, as in the interpreter.
//!
//! Requires a verified module. Guarantees that no `dot_scaled` is left.

use tk_ops::{DType, DotOp, ElementwiseOp, Op, ShapeOp};
use tk_tile::passes::{cse, dce};
use tk_tile::{InstId, ValueId, walk};

use super::tile_edit::TileEdit;
use super::{Pass, Property, Run, TileKernel};

/// The pass.
pub const PASS: Pass = Pass {
    name: "decompose_dot_scaled",
    purpose: "rewrites `dot_scaled` as a `dot` of operands that are scaled before it",
    needs: &[Property::OneFunction],
    leaves: &[Property::PlainDots],
    // Two products may share a scaled operand.
    run: Run::Tile { run, cleanup: &[cse::PASS, dce::PASS] },
};

const DOT_SCALED: Op = Op::Dot(DotOp::DotScaled);

fn run(tile: &mut TileKernel) -> bool {
    let module = &mut tile.module;
    if !module.funcs.iter().any(|(_, f)| walk::insts(f).into_iter().any(|i| f.insts[i].op == DOT_SCALED)) {
        return false;
    }
    let ids: Vec<_> = module.funcs.iter().map(|(id, _)| id).collect();
    for id in ids {
        TileEdit::rebuild(module, id, product);
    }
    true
}

/// Appends a `dot` of scaled operands instead of a product with scales.
fn product(edit: &mut TileEdit<'_>, id: InstId) -> bool {
    let inst = &edit.func.insts[id];
    let (DOT_SCALED, [a, b, s, t, acc]) = (inst.op, inst.operands.as_slice()) else { return false };
    let (a, b, s, t, acc) = (*a, *b, *s, *t, *acc);
    let (Some(x), Some(y)) = (edit.dtype(a), edit.dtype(b)) else { return false };
    let to = x.scaled(y);
    let (a, b) = (scaled(edit, (a, s), 1, to), scaled(edit, (b, t), 0, to));
    let inst = &mut edit.func.insts[id];
    inst.op = Op::Dot(DotOp::Dot);
    inst.operands = vec![a, b, acc];
    edit.push(id);
    true
}

/// An operand times its scales, which apply to blocks along this axis, rounded to `to`.
fn scaled(edit: &mut TileEdit<'_>, (x, scale): (ValueId, ValueId), axis: usize, to: DType) -> ValueId {
    let width = if to == DType::F64 { DType::F64 } else { DType::F32 };
    let shape = edit.shape(x);
    let mut blocks = edit.shape(scale);
    let count = blocks.get(axis).copied().unwrap_or(1).max(1);
    let size = shape.get(axis).copied().unwrap_or(1) / count;
    let scale = edit.cast(scale, width);
    let mut spread = blocks.clone();
    blocks.insert(axis + 1, 1);
    spread.insert(axis + 1, size);
    let one = edit.shaped(ShapeOp::Reshape, scale, &blocks);
    let each = edit.shaped(ShapeOp::Broadcast, one, &spread);
    let each = edit.shaped(ShapeOp::Reshape, each, &shape);
    let wide = edit.cast(x, width);
    let product = edit.elementwise(ElementwiseOp::Mul, &[wide, each]);
    edit.cast(product, to)
}
