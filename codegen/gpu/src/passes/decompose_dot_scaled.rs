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
use tk_tile::{Attrs, BlockId, ElemType, Func, Inst, InstId, Loc, Type, Types, ValueId, walk};

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
        let blocks: Vec<BlockId> = module.funcs[id].blocks.iter().map(|(b, _)| b).collect();
        for block in blocks {
            let mut work = Work { func: &mut module.funcs[id], types: &mut module.types, block, loc: None };
            work.block();
        }
    }
    true
}

/// A block that is rewritten.
struct Work<'a> {
    func: &'a mut Func,
    types: &'a mut Types,
    block: BlockId,
    loc: Option<Loc>,
}

impl Work<'_> {
    fn block(&mut self) {
        for i in std::mem::take(&mut self.func.blocks[self.block].insts) {
            if self.func.insts[i].op == DOT_SCALED {
                self.loc = self.func.insts[i].loc;
                self.product(i);
            }
            self.func.blocks[self.block].insts.push(i);
        }
    }

    /// Makes an instruction a `dot` of scaled operands.
    fn product(&mut self, id: InstId) {
        let [a, b, s, t, acc] = self.func.insts[id].operands[..] else { return };
        let (Some(x), Some(y)) = (self.dtype(a), self.dtype(b)) else { return };
        let to = x.scaled(y);
        let (Some(a), Some(b)) = (self.factor(a, s, 1, to), self.factor(b, t, 0, to)) else { return };
        let inst = &mut self.func.insts[id];
        inst.op = Op::Dot(DotOp::Dot);
        inst.operands = vec![a, b, acc];
    }

    /// An operand times its scales, which apply to blocks along this axis, rounded to `to`.
    fn factor(&mut self, x: ValueId, scale: ValueId, axis: usize, to: DType) -> Option<ValueId> {
        let width = if to == DType::F64 { DType::F64 } else { DType::F32 };
        let shape = self.shape(x);
        let mut blocks = self.shape(scale);
        let count = blocks.get(axis).copied().unwrap_or(1).max(1);
        let size = shape.get(axis).copied().unwrap_or(1) / count;
        let scale = self.cast(scale, width)?;
        let mut spread = blocks.clone();
        blocks.insert(axis + 1, 1);
        spread.insert(axis + 1, size);
        let one = self.shaped(ShapeOp::Reshape, scale, blocks)?;
        let each = self.shaped(ShapeOp::Broadcast, one, spread)?;
        let each = self.shaped(ShapeOp::Reshape, each, shape)?;
        let wide = self.cast(x, width)?;
        let ty = self.func.ty(wide);
        let product = self.add(Op::Elementwise(ElementwiseOp::Mul), vec![wide, each], ty)?;
        self.cast(product, to)
    }

    fn dtype(&self, v: ValueId) -> Option<DType> {
        self.types.get(self.func.ty(v)).dtype()
    }

    fn shape(&self, v: ValueId) -> Vec<u32> {
        self.types.get(self.func.ty(v)).shape().unwrap_or(&[]).to_vec()
    }

    fn cast(&mut self, v: ValueId, to: DType) -> Option<ValueId> {
        if self.dtype(v) == Some(to) {
            return Some(v);
        }
        let shape = self.shape(v);
        let ty = self.types.intern(Type::Tile { elem: ElemType::Scalar(to), shape });
        self.add(Op::Elementwise(ElementwiseOp::Cast), vec![v], ty)
    }

    fn shaped(&mut self, op: ShapeOp, v: ValueId, shape: Vec<u32>) -> Option<ValueId> {
        let elem = self.types.get(self.func.ty(v)).elem().clone();
        let ty = self.types.intern(Type::Tile { elem, shape });
        self.add(Op::Shape(op), vec![v], ty)
    }

    fn add(&mut self, op: Op, operands: Vec<ValueId>, ty: tk_tile::TypeId) -> Option<ValueId> {
        let inst = Inst { op, operands, attrs: Attrs::new(), blocks: vec![], results: vec![], loc: self.loc };
        let id = self.func.add_inst(self.block, inst, &[ty]);
        self.func.insts[id].results.first().copied()
    }
}
