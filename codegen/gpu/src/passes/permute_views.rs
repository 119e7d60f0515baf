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
use tk_tile::{Attr, Attrs, BlockId, Func, Inst, InstId, Loc, Type, Types, ValueId, walk};

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
    let blocks: Vec<BlockId> = func.blocks.iter().map(|(b, _)| b).collect();
    let (func, types) = (&mut tile.module.funcs[tile.kernel], &mut tile.module.types);
    for block in blocks {
        for id in std::mem::take(&mut func.blocks[block].insts) {
            match found.iter().find(|(i, _)| *i == id) {
                Some((_, perm)) => Change { func, types, block, loc: None }.access(id, perm),
                None => func.blocks[block].insts.push(id),
            }
        }
    }
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

/// A block that is changed.
struct Change<'a> {
    func: &'a mut Func,
    types: &'a mut Types,
    block: BlockId,
    loc: Option<Loc>,
}

impl Change<'_> {
    /// Appends an access with the dimensions of its view in another order.
    fn access(&mut self, id: InstId, perm: &[i64]) {
        let old = self.func.insts[id].clone();
        self.loc = old.loc;
        let Some((view, rest)) = old.operands.split_first() else { return };
        let (at, tiles) = rest.split_at(perm.len().min(rest.len()));
        let ty = self.func.ty(*view);
        let view = self.add(Op::Memory(MemoryOp::ViewPermute), *view, perm, ty);
        let mut operands = vec![view];
        operands.extend(perm.iter().filter_map(|d| at.get(usize::try_from(*d).ok()?).copied()));
        for tile in tiles {
            let tile = self.permuted(*tile, perm);
            operands.push(tile);
        }
        let Some(result) = old.results.first().copied() else {
            self.func.insts[id].operands = operands;
            return self.func.blocks[self.block].insts.push(id);
        };
        let tile = self.func.ty(result);
        let loaded = self.shape(tile, perm);
        let load = Inst { operands, results: vec![], ..old };
        let load = self.func.add_inst(self.block, load, &[loaded]);
        let Some(loaded) = self.func.insts[load].results.first().copied() else { return };
        // The old instruction is the permutation, and keeps its result.
        let mut back = vec![0; perm.len()];
        for (n, d) in perm.iter().enumerate() {
            usize::try_from(*d).ok().and_then(|d| back.get_mut(d)).into_iter().for_each(|b| *b = n as i64);
        }
        let inst = &mut self.func.insts[id];
        inst.op = Op::Shape(ShapeOp::Permute);
        inst.operands = vec![loaded];
        inst.attrs = Attrs::new().with("perm", Attr::Ints(back));
        self.func.blocks[self.block].insts.push(id);
    }

    /// A tile type with its dimensions in this order.
    fn shape(&mut self, ty: tk_tile::TypeId, perm: &[i64]) -> tk_tile::TypeId {
        let Type::Tile { elem, shape } = self.types.get(ty).clone() else { return ty };
        let shape = perm.iter().filter_map(|d| shape.get(usize::try_from(*d).ok()?).copied()).collect();
        self.types.intern(Type::Tile { elem, shape })
    }

    fn permuted(&mut self, tile: ValueId, perm: &[i64]) -> ValueId {
        let ty = self.func.ty(tile);
        let ty = self.shape(ty, perm);
        self.add(Op::Shape(ShapeOp::Permute), tile, perm, ty)
    }

    fn add(&mut self, op: Op, of: ValueId, perm: &[i64], ty: tk_tile::TypeId) -> ValueId {
        let attrs = Attrs::new().with("perm", Attr::Ints(perm.to_vec()));
        let inst = Inst { op, operands: vec![of], attrs, blocks: vec![], results: vec![], loc: self.loc };
        let id = self.func.add_inst(self.block, inst, &[ty]);
        self.func.insts[id].results.first().copied().unwrap_or(of)
    }
}
