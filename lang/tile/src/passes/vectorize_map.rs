//! Computes `map` on whole tiles where its function is made of elementwise operations.
//!
//! ```text
//! v1 = map v0 : tile[f32, 64] {                 v1 = const {value = 0.0 : f32} : tile[f32, 64]
//! block1(v2: f32):                              v2 = gt v0, v1 : tile[bool, 64]
//!   v3 = const {value = 0.0 : f32} : f32        v3 = exp v0 : tile[f32, 64]
//!   v4 = gt v2, v3 : bool                  =>   v4 = select v2, v0, v3 : tile[f32, 64]
//!   v5 = if v4 : f32 {
//!   block2:
//!     yield v2
//!   block3:
//!     v6 = exp v2 : f32
//!     yield v6
//!   }
//!   yield v5
//! }
//! ```
//!
//! Requires a verified module. Guarantees the same bits as without it. An `if` becomes `select`, so that both arms
//! are computed for every element: harmless, because every elementwise operation gives a value for all operands,
//! except that checked mode reports an integer division by zero. A division inside of an arm therefore stays in its
//! `map`, unless its divisor is a constant other than zero. Loops, calls and memory operations stay too.

use std::collections::HashMap;

use tk_ops::{ControlOp, CreateOp, ElementwiseOp, Op};

use crate::attr::Attrs;
use crate::flow::{Flow, flow};
use crate::infer;
use crate::ir::{BlockId, Func, Inst, InstId, Loc, Module, TypeId, Types, ValueId};
use crate::passes::ModulePass;
use crate::rewrite::{Renames, constant, yielded};

/// The pass.
pub const PASS: ModulePass = ModulePass { name: "vectorize_map", run };

fn run(module: &mut Module) {
    let ids: Vec<_> = module.funcs.iter().map(|(id, _)| id).collect();
    for id in ids {
        let func = &mut module.funcs[id];
        let body = func.body;
        Vectorize { types: &mut module.types, func, renames: Renames::default() }.block(body);
    }
}

struct Vectorize<'a> {
    types: &'a mut Types,
    func: &'a mut Func,
    renames: Renames,
}

/// The place for the tile operations of one `map`.
struct Target {
    block: BlockId,
    shape: Vec<u32>,
    /// The place of the `map` in the source.
    loc: Option<Loc>,
    /// The tile for each scalar of the function.
    tiles: HashMap<ValueId, ValueId>,
}

impl Vectorize<'_> {
    fn block(&mut self, id: BlockId) {
        for i in std::mem::take(&mut self.func.blocks[id].insts) {
            self.renames.apply(self.func, i);
            // Inner functions first: without them, the outer one may be elementwise.
            let blocks = self.func.insts[i].blocks.clone();
            blocks.iter().for_each(|b| self.block(*b));
            let body = blocks.first().filter(|_| self.func.insts[i].op == Op::Control(ControlOp::Map));
            match body.filter(|b| self.is_elementwise(**b, false)) {
                Some(body) => self.spread(i, *body, id),
                None => self.func.blocks[id].insts.push(i),
            }
        }
    }

    /// Returns true if a block has only elementwise operations on scalars, constants and decisions between such.
    /// `arm`: it runs for some elements only.
    fn is_elementwise(&self, block: BlockId, arm: bool) -> bool {
        let func = &*self.func;
        func.blocks[block].insts.iter().map(|i| &func.insts[*i]).all(|inst| {
            let scalars = inst.results.iter().all(|v| self.types.get(func.ty(*v)).shape() == Some(&[]));
            scalars
                && match inst.op {
                    Op::Elementwise(o) => !arm || !self.may_fail(o, inst),
                    Op::Create(o) => !matches!(o, CreateOp::Arange | CreateOp::Table),
                    Op::Control(ControlOp::Yield) => true,
                    Op::Control(ControlOp::If) => inst.blocks.iter().all(|b| self.is_elementwise(*b, true)),
                    Op::Control(_)
                    | Op::Shape(_)
                    | Op::Memory(_)
                    | Op::Atomic(_)
                    | Op::Reduce(_)
                    | Op::Scan(_)
                    | Op::Dot(_)
                    | Op::Random(_)
                    | Op::Host(_)
                    | Op::Target => false,
                }
        })
    }

    /// Returns true if checked mode may report the operation: an integer division by what may be zero.
    fn may_fail(&self, op: ElementwiseOp, inst: &Inst) -> bool {
        let divides = matches!(op, ElementwiseOp::Div | ElementwiseOp::Rem | ElementwiseOp::CeilDiv);
        let Some(divisor) = inst.operands.get(1).filter(|_| divides) else { return false };
        let integer = self.types.get(self.func.ty(*divisor)).dtype().is_some_and(|d| d.is_int());
        let known = constant(self.func, *divisor).and_then(|s| s.as_int());
        integer && known.is_none_or(|n| n == 0)
    }

    /// Puts the function of a `map`, on tiles, at the end of a block.
    fn spread(&mut self, map: InstId, body: BlockId, block: BlockId) {
        let operands = self.func.insts[map].operands.clone();
        let first = operands.first().map(|v| self.types.get(self.func.ty(*v)));
        let shape = first.and_then(|t| t.shape()).unwrap_or(&[]).to_vec();
        let loc = self.func.insts[map].loc;
        let mut target = Target { block, shape, loc, tiles: HashMap::new() };
        for (arg, tile) in self.func.blocks[body].args.iter().zip(operands) {
            target.tiles.insert(*arg, tile);
        }
        let values = self.insts(body, &mut target);
        for (r, v) in self.func.insts[map].results.clone().into_iter().zip(values) {
            self.renames.set(r, v);
        }
    }

    /// The instructions of a block on tiles; gives the tiles of what it yields.
    fn insts(&mut self, block: BlockId, target: &mut Target) -> Vec<ValueId> {
        for i in self.func.blocks[block].insts.clone() {
            let inst = self.func.insts[i].clone();
            match flow(inst.op) {
                Flow::If => self.select(&inst, target),
                Flow::Plain if inst.op != Op::Control(ControlOp::Yield) => {
                    let operands = inst.operands.iter().map(|v| self.tile(*v, target)).collect();
                    let results: Vec<TypeId> =
                        inst.results.iter().map(|v| self.tile_type(*v, target)).collect();
                    let tiles = self.add(Inst { operands, ..inst.clone() }, &results, target);
                    target.tiles.extend(inst.results.iter().copied().zip(tiles));
                }
                Flow::Plain | Flow::For | Flow::While | Flow::Elements | Flow::Expect => {}
            }
        }
        let values = yielded(self.func, block).to_vec();
        values.into_iter().map(|v| self.tile(v, target)).collect()
    }

    /// Both arms of an `if`, and the choice between them.
    fn select(&mut self, inst: &Inst, target: &mut Target) {
        let (Some(cond), [then, otherwise]) = (inst.operands.first(), inst.blocks.as_slice()) else { return };
        let a = self.insts(*then, target);
        let b = self.insts(*otherwise, target);
        let cond = self.tile(*cond, target);
        for (r, (a, b)) in inst.results.iter().zip(a.into_iter().zip(b)) {
            let op = Op::Elementwise(ElementwiseOp::Select);
            let select = plain(op, vec![cond, a, b], inst.loc);
            let ty = self.tile_type(*r, target);
            let tile = self.add(select, &[ty], target).first().copied();
            target.tiles.extend(tile.map(|t| (*r, t)));
        }
    }

    /// The tile for a value; one from outside of the function is the same for every element.
    fn tile(&mut self, v: ValueId, target: &mut Target) -> ValueId {
        let v = self.renames.get(v);
        if let Some(t) = target.tiles.get(&v).copied() {
            return t;
        }
        if target.shape.is_empty() {
            return v;
        }
        let ty = self.tile_type(v, target);
        let splat = plain(Op::Create(CreateOp::Splat), vec![v], target.loc);
        let tile = self.add(splat, &[ty], target).first().copied().unwrap_or(v);
        target.tiles.insert(v, tile);
        tile
    }

    fn tile_type(&mut self, v: ValueId, target: &Target) -> TypeId {
        let ty = infer::with_shape(self.types.get(self.func.ty(v)), &target.shape);
        self.types.intern(ty)
    }

    fn add(&mut self, inst: Inst, results: &[TypeId], target: &Target) -> Vec<ValueId> {
        let id = self.func.add_inst(target.block, inst, results);
        self.func.insts[id].results.clone()
    }
}

/// An instruction without attributes and blocks.
fn plain(op: Op, operands: Vec<ValueId>, loc: Option<Loc>) -> Inst {
    Inst { op, operands, attrs: Attrs::new(), blocks: vec![], results: vec![], loc }
}
