//! Computes products in chunks along K, for targets that cannot keep the whole operands in shared memory.
//!
//! ```text
//!                                                  v10 = view_load v0, m, k : tile[f16, M, K / 2]
//!                                                  v11 = view_load v1, k, n : tile[f16, K / 2, N]
//! v3 = view_load v0, m, k : tile[f16, M, K]        v12 = dot v10, v11, v5 : tile[f32, M, N]
//! v4 = view_load v1, k, n : tile[f16, K, N]        v13 = add k, K / 2
//! v6 = dot v3, v4, v5 : tile[f32, M, N]       =>   v14 = view_load v0, m, v13 : tile[f16, M, K / 2]
//!                                                  v15 = view_load v1, v13, n : tile[f16, K / 2, N]
//!                                                  v6 = dot v14, v15, v12 : tile[f32, M, N]
//! ```
//!
//! An operand can be split if it is a load through a view that nothing else reads, possibly transposed or cast. Its
//! chunks are loaded right before their product, one after the other in the same shared memory, unless something that
//! may write is between the load and the product, or the load is in an outer block: then they are loaded there.
//!
//! Requires a verified module. Guarantees the same sums, added along K in the same order; products that cannot be split
//! are unchanged.

use tk_ops::scalar::Scalar;
use tk_ops::table::Effects;
use tk_ops::{CreateOp, DotOp, ElementwiseOp, MemoryOp, Op, ShapeOp};
use tk_tile::effects::{is_volatile, of_inst};
use tk_tile::passes::dce;
use tk_tile::{
    Attr, Attrs, BlockId, Def, ElemType, Func, FuncId, Id, Inst, InstId, Loc, Module, Type, TypeId, Types,
    ValueId, walk,
};

use super::{Pass, Property, Run, TileKernel};
use crate::ir::attrs::permutation;
use crate::ir::kernel::{Remedy, Shortage};

/// The pass.
pub const PASS: Pass = Pass {
    name: "split_dots",
    purpose: "computes products in chunks along K where shared memory cannot keep whole operands",
    needs: &[Property::OneFunction, Property::PlainDots, Property::TensorAccesses],
    leaves: &[Property::ShortDots],
    // The loads of whole operands.
    run: Run::Tile { run, cleanup: &[dce::PASS] },
};

fn run(tile: &mut TileKernel) -> bool {
    let most = tile.options.operands.most_k;
    if most == u32::MAX {
        return false;
    }
    tile.shortages.extend(apply(&mut tile.module, tile.kernel, most));
    true
}

/// Splits the products of a kernel whose K is larger than `most`, a power of two; returns those that it split.
fn apply(module: &mut Module, kernel: FuncId, most: u32) -> Vec<Shortage> {
    let mut uses = vec![0; module.funcs[kernel].values.len()];
    let func = &module.funcs[kernel];
    for v in walk::insts(func).iter().flat_map(|i| &func.insts[*i].operands) {
        uses.get_mut(v.index()).into_iter().for_each(|u| *u += 1);
    }
    let blocks: Vec<BlockId> =
        walk::insts(func).iter().flat_map(|i| func.insts[*i].blocks.clone()).chain([func.body]).collect();
    let mut split = Split {
        func: &mut module.funcs[kernel],
        types: &mut module.types,
        uses,
        block: BlockId(0),
        done: vec![],
    };
    for block in blocks {
        split.block(block, most);
    }
    split.done
}

struct Split<'a> {
    func: &'a mut Func,
    types: &'a mut Types,
    /// The number of uses of each value as an operand.
    uses: Vec<u32>,
    /// The block that is rewritten.
    block: BlockId,
    done: Vec<Shortage>,
}

/// The part of an operand that a chunk of a product reads.
#[derive(Clone, Copy)]
struct Chunk {
    axis: usize,
    start: u32,
    size: u32,
}

impl Split<'_> {
    fn block(&mut self, block: BlockId, most: u32) {
        self.block = block;
        for i in std::mem::take(&mut self.func.blocks[block].insts) {
            if self.func.insts[i].op == Op::Dot(DotOp::Dot) {
                self.product(i, most);
            }
            self.func.blocks[block].insts.push(i);
        }
    }

    fn shape(&self, v: ValueId) -> &[u32] {
        self.types.get(self.func.ty(v)).shape().unwrap_or(&[])
    }

    fn product(&mut self, id: InstId, most: u32) {
        let inst = self.func.insts[id].clone();
        let ([a, b, acc], Some(result)) = (inst.operands.as_slice(), inst.results.first().copied()) else {
            return;
        };
        let [_, k] = *self.shape(*a) else { return };
        // The largest power of two that divides K and is not above `most`.
        let chunk = 1 << k.trailing_zeros().min(most.trailing_zeros());
        if chunk >= k || chunk < most.min(LEAST) || !self.is_divisible(*a) || !self.is_divisible(*b) {
            return;
        }
        let ty = self.func.ty(result);
        let mut acc = *acc;
        for start in (0..k).step_by(chunk as usize) {
            let of = |axis| Chunk { axis, start, size: chunk };
            let (Some(x), Some(y)) = (self.part(*a, of(1)), self.part(*b, of(0))) else { return };
            if start + chunk == k {
                self.func.insts[id].operands = vec![x, y, acc];
            } else {
                acc = self.add(inst.op, vec![x, y, acc], inst.attrs.clone(), ty, inst.loc);
            }
        }
        self.done.push(Shortage { loc: inst.loc, remedy: Remedy::Chunks { k, chunk } });
    }

    /// Returns true if an operand is a load of which parts can be loaded.
    fn is_divisible(&self, v: ValueId) -> bool {
        let Def::Inst(id, _) = self.func.values[v].def else { return false };
        let inst = &self.func.insts[id];
        if self.uses.get(v.index()).is_none_or(|n| *n > 1) || is_volatile(inst) {
            return false;
        }
        match inst.op {
            Op::Memory(MemoryOp::ViewLoad) => inst.operands.iter().all(|o| self.shape(*o).is_empty()),
            Op::Shape(ShapeOp::Permute) | Op::Elementwise(ElementwiseOp::Cast) => {
                inst.operands.first().is_some_and(|x| self.is_divisible(*x))
            }
            _ => false,
        }
    }

    /// A part of an operand that [`is_divisible`](Self::is_divisible) allows.
    fn part(&mut self, v: ValueId, chunk: Chunk) -> Option<ValueId> {
        let Def::Inst(id, _) = self.func.values[v].def else { return None };
        let inst = self.func.insts[id].clone();
        let ty = self.smaller(v, chunk);
        let x = inst.operands.first().copied()?;
        match inst.op {
            Op::Memory(_) => self.load(id, &inst, chunk, ty),
            Op::Shape(_) => {
                let axis = permutation(&inst).get(chunk.axis).copied()?;
                let x = self.part(x, Chunk { axis, ..chunk })?;
                Some(self.add(inst.op, vec![x], inst.attrs, ty, inst.loc))
            }
            _ => {
                let x = self.part(x, chunk)?;
                Some(self.add(inst.op, vec![x], inst.attrs, ty, inst.loc))
            }
        }
    }

    /// The type of a part of a value.
    fn smaller(&mut self, v: ValueId, chunk: Chunk) -> TypeId {
        let mut shape = self.shape(v).to_vec();
        shape.get_mut(chunk.axis).into_iter().for_each(|n| *n = chunk.size);
        let elem: ElemType = self.types.get(self.func.ty(v)).elem().clone();
        self.types.intern(Type::Tile { elem, shape })
    }

    fn load(&mut self, id: InstId, inst: &Inst, chunk: Chunk, ty: TypeId) -> Option<ValueId> {
        let mut operands = inst.operands.clone();
        let offset = operands.get_mut(1 + chunk.axis)?;
        // The new instructions go to the end of the block that is rewritten.
        let first = self.func.blocks[self.block].insts.len();
        if chunk.start > 0 {
            let index = self.func.ty(*offset);
            let value = Scalar::int(self.types.get(index).dtype()?, chunk.start.into());
            let attrs = Attrs::new().with("value", Attr::Scalar(value));
            let start = self.add(Op::Create(CreateOp::Const), vec![], attrs, index, inst.loc);
            let sum = Op::Elementwise(ElementwiseOp::Add);
            *offset = self.add(sum, vec![*offset, start], Attrs::new(), index, inst.loc);
        }
        let part = self.add(inst.op, operands, inst.attrs.clone(), ty, inst.loc);
        if let Some((block, at)) = self.place(id, first) {
            let new = self.func.blocks[self.block].insts.split_off(first);
            self.func.blocks[block].insts.splice(at..at, new);
        }
        Some(part)
    }

    /// The position after a load that cannot be done later, in its block; otherwise `None`, for the end of the block
    /// that is written.
    fn place(&self, load: InstId, end: usize) -> Option<(BlockId, usize)> {
        let insts = &self.func.blocks[self.block].insts;
        if let Some(at) = insts.iter().position(|i| *i == load) {
            let reads = |i: &InstId| matches!(of_inst(self.func, *i), Effects::Pure | Effects::Read);
            let between = insts.get(at..end).unwrap_or_default();
            return (!between.iter().all(reads)).then_some((self.block, at + 1));
        }
        let all = self.func.blocks.iter();
        all.filter_map(|(b, block)| Some((b, block.insts.iter().position(|i| *i == load)? + 1))).next()
    }

    fn add(&mut self, op: Op, operands: Vec<ValueId>, attrs: Attrs, ty: TypeId, loc: Option<Loc>) -> ValueId {
        let inst = Inst { op, operands, attrs, blocks: vec![], results: vec![], loc };
        let id = self.func.add_inst(self.block, inst, &[ty]);
        self.func.insts[id].results.first().copied().unwrap_or(ValueId(0))
    }
}

/// The smallest chunk: the K of the matrix instructions for 16-bit types on most targets.
pub const LEAST: u32 = 16;
