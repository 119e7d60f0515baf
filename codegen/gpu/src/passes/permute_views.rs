//! Permutes views, so that accesses go along the last dimension where another one is contiguous in memory.
//!
//! ```text
//!                                                v4 = view_permute v0 {perm = [1, 0]} : view[f16, 2]
//! v3 = view_load v0, v1, v2 : tile[f16, 64, 32]  =>   v5 = view_load v4, v2, v1 : tile[f16, 32, 64]
//!                                                v3 = permute v5 {perm = [1, 0]} : tile[f16, 64, 32]
//! ```
//!
//! Applies to loads and stores of tiles through a view that is known to have stride 1 along a dimension that is not the
//! last, and not along the last. The permutation of the tile moves no data: it changes the layout.
//!
//! Requires a verified module. Guarantees the same elements, and that later passes find neighbours in memory along the
//! last dimension wherever the facts about arguments show one.

use tk_ops::{MemoryOp, Op, ShapeOp};
use tk_tile::passes::{cse, dce, fold};
use tk_tile::{Attr, Attrs, Func, Inst, InstId, Type, Types, walk};

use super::tile_edit::TileEdit;
use super::{Pass, Property, Run, TileKernel};
use crate::analysis::axis::AxisInfo;

/// The pass.
pub const PASS: Pass = Pass {
    name: "permute_views",
    purpose: "permutes views whose neighbours in memory are not along the last dimension",
    needs: &[Property::OneFunction],
    leaves: &[Property::LastDimensionContiguous],
    // Tiles that are permuted twice; accesses that permute the same view.
    run: Run::Tile { run, cleanup: &[fold::PASS, cse::PASS, dce::PASS] },
};

fn run(tile: &mut TileKernel) -> bool {
    let Some(func) = tile.module.funcs.get(tile.kernel) else { return false };
    let axis = AxisInfo::new(&tile.module, func, &tile.options.facts);
    let found: Vec<(InstId, Vec<i64>)> = walk::insts(func)
        .into_iter()
        .filter_map(|i| Some((i, order(&tile.module.types, func, &axis, &func.insts[i])?)))
        .collect();
    TileEdit::rebuild(&mut tile.module, tile.kernel, |edit, id| {
        let perm = found.iter().find(|(i, _)| *i == id).map(|(_, perm)| perm);
        perm.is_some_and(|perm| access(edit, id, perm))
    });
    !found.is_empty()
}

/// The dimensions of the view of an access, the contiguous one last; `None` if they stay as they are.
fn order(types: &Types, func: &Func, axis: &AxisInfo, inst: &Inst) -> Option<Vec<i64>> {
    let view = *inst.operands.first()?;
    let rank = match (inst.op, types.get(func.ty(view))) {
        (Op::Memory(MemoryOp::ViewLoad | MemoryOp::ViewStore), Type::View { rank, .. }) => *rank as usize,
        _ => return None,
    };
    let tile = match inst.op {
        Op::Memory(MemoryOp::ViewLoad) => *inst.results.first()?,
        _ => *inst.operands.get(1 + rank)?,
    };
    if types.get(func.ty(tile)).shape()?.len() != rank {
        return None;
    }
    let strides = &axis.view(view)?.strides;
    let unit = |d: usize| strides.get(d).is_some_and(|s| s.1);
    let fastest = (0..rank).rev().find(|d| unit(*d)).filter(|d| d + 1 < rank)?;
    Some((0..rank).filter(|d| *d != fastest).chain([fastest]).map(|d| d as i64).collect())
}

/// Appends an access with the dimensions of its view in another order.
fn access(edit: &mut TileEdit<'_>, id: InstId, perm: &[i64]) -> bool {
    let old = edit.func.insts[id].clone();
    let Some((view, rest)) = old.operands.split_first() else { return false };
    let (at, tiles) = rest.split_at(perm.len().min(rest.len()));
    let mut operands = vec![edit.permuted(*view, perm)];
    operands.extend(perm.iter().filter_map(|d| at.get(usize::try_from(*d).ok()?).copied()));
    for tile in tiles {
        let tile = edit.permuted(*tile, perm);
        operands.push(tile);
    }
    let Some(result) = old.results.first().copied() else {
        edit.func.insts[id].operands = operands;
        edit.push(id);
        return true;
    };
    let ty = edit.func.ty(result);
    let ty = edit.permuted_type(ty, perm);
    let loaded = edit.add(old.op, &operands, old.attrs, ty);
    // The old instruction is the permutation, and keeps its result.
    let place = |d: usize| perm.iter().position(|p| usize::try_from(*p) == Ok(d)).unwrap_or(d);
    let back: Vec<i64> = (0..perm.len()).map(|d| place(d) as i64).collect();
    let inst = &mut edit.func.insts[id];
    inst.op = Op::Shape(ShapeOp::Permute);
    inst.operands = vec![loaded];
    inst.attrs = Attrs::new().with("perm", Attr::Ints(back));
    edit.push(id);
    true
}
