//! Computes before a loop what every iteration would recompute.
//!
//! ```text
//! v5 = for v0, v1, v2, v3 : f32 {           v5 = exp v4 : f32
//! block1(v6: i32, v7: f32):                 v6 = for v0, v1, v2, v3 : f32 {
//!   v8 = exp v4 : f32                  =>   block1(v7: i32, v8: f32):
//!   v9 = add v7, v8 : f32                     v9 = add v8, v5 : f32
//!   yield v9                                  yield v9
//! }                                         }
//! ```
//!
//! Requires a verified module. Guarantees that a program does what it did, faults included:
//!
//! - Only instructions without effects move, and loads stay: the writes of the loop are not analysed.
//! - What may fail (an integer division by zero, a promise that checked mode verifies) moves only when it is certain
//!   to run and nothing before it can fail or be seen: from the start of a `for` that makes at least one iteration, or of
//!   the block that decides a `while`.
//! - Out of an `if`, which may choose the other arm in every iteration, comes only what is cheap for each element. `map`,
//!   `reduce` and `scan` move as a whole or not at all: what is in them is scalar and belongs there.
//!
//! A value that moves is alive during the whole loop, so a tile that is computed moves only up to [`MAX_BYTES`].
//! Constants, `arange`, `splat` and `broadcast` move whatever their size: they stand for a scalar or for the number
//! of the lane, so that a back end keeps no registers for them but makes them where they are used.

use tk_ops::table::Effects;
use tk_ops::{ControlOp, CreateOp, ElementwiseOp, MemoryOp, Op, ScanOp, ShapeOp};

use crate::effects::{effects, is_terminator};
use crate::flow::{Flow, flow};
use crate::ir::{BlockId, ElemType, Func, Id, InstId, Module, Type, TypeId, Types, ValueId};
use crate::passes::ModulePass;
use crate::rewrite::constant;
use crate::walk;

/// The pass.
pub const PASS: ModulePass = ModulePass { name: "hoist", run };

/// The largest tile that moves: 16 registers in each thread of four warps, beside the 128 that an accumulator of
/// 128 x 128 f32 takes of their 255. Programs of fewer warps would want less.
pub const MAX_BYTES: usize = 8 << 10;

fn run(module: &mut Module) {
    let ids: Vec<_> = module.funcs.iter().map(|(id, _)| id).collect();
    for id in ids {
        let func = &mut module.funcs[id];
        let body = func.body;
        let inside = vec![false; func.values.len()];
        Hoist { func, types: &module.types, inside }.block(body);
    }
}

/// The frequency of an instruction in a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Runs {
    /// At least once, before anything that can be seen.
    Surely,
    /// Once in each iteration, if there is one.
    EachTrip,
    /// In some iterations.
    Sometimes,
}

struct Hoist<'a> {
    func: &'a mut Func,
    types: &'a Types,
    /// The values that the loop that is being emptied defines.
    inside: Vec<bool>,
}

impl Hoist<'_> {
    /// Empties the loops of a block, inner ones first: what leaves them may leave the outer one too.
    fn block(&mut self, id: BlockId) {
        for i in std::mem::take(&mut self.func.blocks[id].insts) {
            let blocks = self.func.insts[i].blocks.clone();
            blocks.iter().for_each(|b| self.block(*b));
            let mut moved = vec![];
            match (flow(self.func.insts[i].op), blocks.as_slice()) {
                (Flow::For, [body]) => {
                    let runs = if self.makes_a_trip(i) { Runs::Surely } else { Runs::EachTrip };
                    self.mark(&blocks, true);
                    self.collect(*body, runs, &mut moved);
                }
                (Flow::While, [head, body]) => {
                    self.mark(&blocks, true);
                    self.collect(*head, Runs::Surely, &mut moved);
                    self.collect(*body, Runs::EachTrip, &mut moved);
                }
                (Flow::For | Flow::While | Flow::Plain | Flow::If | Flow::Elements | Flow::Expect, _) => {}
            }
            self.mark(&blocks, false);
            self.func.blocks[id].insts.extend(moved);
            self.func.blocks[id].insts.push(i);
        }
    }

    /// Returns true if the bounds of a `for` are known and give at least one iteration.
    fn makes_a_trip(&self, i: InstId) -> bool {
        let bound = |v: &ValueId| constant(self.func, *v).and_then(|s| s.as_int());
        match self.func.insts[i].operands.get(..3).map(|list| list.iter().map(bound).collect::<Vec<_>>()) {
            Some(list) => match list.as_slice() {
                [Some(lo), Some(hi), Some(step)] => *step > 0 && lo < hi || *step < 0 && lo > hi,
                _ => false,
            },
            None => false,
        }
    }

    /// Marks what the blocks define.
    fn mark(&mut self, blocks: &[BlockId], inside: bool) {
        for b in blocks {
            let args = self.func.blocks[*b].args.clone();
            args.into_iter().for_each(|v| self.set(v, inside));
            for i in self.func.blocks[*b].insts.clone() {
                self.mark_inst(i, inside);
            }
        }
    }

    fn mark_inst(&mut self, i: InstId, inside: bool) {
        let inst = &self.func.insts[i];
        let (results, blocks) = (inst.results.clone(), inst.blocks.clone());
        results.into_iter().for_each(|v| self.set(v, inside));
        self.mark(&blocks, inside);
    }

    fn set(&mut self, v: ValueId, inside: bool) {
        if let Some(slot) = self.inside.get_mut(v.index()) {
            *slot = inside;
        }
    }

    /// Takes what may move out of a block of the loop, in order. What is left of inner loops depends on them.
    fn collect(&mut self, block: BlockId, mut runs: Runs, moved: &mut Vec<InstId>) {
        let mut kept = vec![];
        for i in std::mem::take(&mut self.func.blocks[block].insts) {
            if self.moves(i, runs) {
                self.mark_inst(i, false);
                moved.push(i);
                continue;
            }
            if runs == Runs::Surely && !self.total(i) {
                runs = Runs::EachTrip;
            }
            if flow(self.func.insts[i].op) == Flow::If {
                for b in self.func.insts[i].blocks.clone() {
                    self.collect(b, Runs::Sometimes, moved);
                }
            }
            kept.push(i);
        }
        self.func.blocks[block].insts = kept;
    }

    fn moves(&self, i: InstId, runs: Runs) -> bool {
        let inst = &self.func.insts[i];
        if is_terminator(inst.op) || !self.reads_only_outside(i) {
            return false;
        }
        let allowed = match runs {
            Runs::Surely => self.total(i) || self.may_fail(i),
            Runs::EachTrip => self.total(i),
            Runs::Sometimes => cheap(inst.op) && self.total(i),
        };
        allowed && (makes_no_tile(inst.op) || inst.results.iter().all(|v| self.small(self.func.ty(*v))))
    }

    /// Returns true if the operands, those inside of its blocks included, are defined outside of the loop or by the
    /// instruction itself.
    fn reads_only_outside(&self, i: InstId) -> bool {
        let inst = &self.func.insts[i];
        let outside = |v: &ValueId| self.inside.get(v.index()) == Some(&false);
        if !inst.operands.iter().all(outside) {
            return false;
        }
        let mut own: Vec<ValueId> = vec![];
        let mut blocks = inst.blocks.clone();
        let insts: Vec<InstId> = blocks.iter().flat_map(|b| walk::insts_in(self.func, *b)).collect();
        for j in &insts {
            own.extend(&self.func.insts[*j].results);
            blocks.extend(&self.func.insts[*j].blocks);
        }
        own.extend(blocks.iter().flat_map(|b| &self.func.blocks[*b].args));
        own.sort();
        let known = |v: &ValueId| outside(v) || own.binary_search(v).is_ok();
        insts.iter().all(|j| self.func.insts[*j].operands.iter().all(known))
    }

    /// Returns true if an instruction, its blocks included, has no effects, cannot fail and ends. A loop inside may
    /// not end.
    fn total(&self, i: InstId) -> bool {
        let inst = &self.func.insts[i];
        let looping = matches!(flow(inst.op), Flow::For | Flow::While);
        if looping || effects(inst.op) != Effects::Pure || self.may_fail(i) {
            return false;
        }
        let inner = inst.blocks.iter().flat_map(|b| &self.func.blocks[*b].insts);
        inner.filter(|j| !is_terminator(self.func.insts[**j].op)).all(|j| self.total(*j))
    }

    /// Returns true for operations without effects that checked mode may report: divisions by zero, pointers and
    /// views out of range, promises.
    fn may_fail(&self, i: InstId) -> bool {
        let inst = &self.func.insts[i];
        match inst.op {
            Op::Elementwise(ElementwiseOp::Div | ElementwiseOp::Rem | ElementwiseOp::CeilDiv) => {
                let float =
                    |v: &ValueId| self.types.get(self.func.ty(*v)).dtype().is_some_and(|d| d.is_float());
                let known = |v: &ValueId| constant(self.func, *v).is_some_and(|s| s.as_int() != Some(0));
                !inst.operands.get(1).is_some_and(|v| float(v) || known(v))
            }
            Op::Memory(o) => matches!(o, MemoryOp::PtrAdd | MemoryOp::View | MemoryOp::ViewSlice),
            Op::Scan(o) => o == ScanOp::Gather,
            Op::Control(o) => matches!(o, ControlOp::MultipleOf | ControlOp::MaxContiguous),
            Op::Elementwise(_)
            | Op::Create(_)
            | Op::Shape(_)
            | Op::Atomic(_)
            | Op::Reduce(_)
            | Op::Dot(_)
            | Op::Random(_)
            | Op::Host(_)
            | Op::Target => false,
        }
    }

    fn small(&self, ty: TypeId) -> bool {
        match self.types.get(ty) {
            Type::View { .. } => true,
            ty @ Type::Tile { elem, shape } => {
                let bits = match elem {
                    ElemType::Scalar(d) => d.bits() as usize,
                    ElemType::Ptr { .. } => 64,
                };
                shape.is_empty() || ty.count().saturating_mul(bits) <= MAX_BYTES * 8
            }
        }
    }
}

/// Returns true if an operation costs so little per element that computing it once for nothing is no loss.
fn cheap(op: Op) -> bool {
    match op {
        Op::Elementwise(_) | Op::Create(_) | Op::Shape(_) | Op::Memory(_) => true,
        Op::Control(o) => matches!(o, ControlOp::ProgramId | ControlOp::NumPrograms),
        Op::Atomic(_)
        | Op::Reduce(_)
        | Op::Scan(_)
        | Op::Dot(_)
        | Op::Random(_)
        | Op::Host(_)
        | Op::Target => false,
    }
}

/// Returns true if an operation needs no registers of its own.
fn makes_no_tile(op: Op) -> bool {
    match op {
        Op::Create(o) => match o {
            CreateOp::Const | CreateOp::Arange | CreateOp::Splat | CreateOp::Table | CreateOp::Undef => true,
        },
        Op::Shape(o) => o == ShapeOp::Broadcast,
        Op::Elementwise(_)
        | Op::Memory(_)
        | Op::Atomic(_)
        | Op::Reduce(_)
        | Op::Scan(_)
        | Op::Dot(_)
        | Op::Random(_)
        | Op::Control(_)
        | Op::Host(_)
        | Op::Target => false,
    }
}
