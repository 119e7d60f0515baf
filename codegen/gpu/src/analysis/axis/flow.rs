//! Runs axis analysis over blocks, branches and loops.
//!
//! Requires a verified kernel without calls. Guarantees that the facts about a loop-carried value hold before the first
//! iteration and after every iteration.

use tk_ops::{ControlOp, Op};
use tk_tile::{BlockId, Func, Id, Inst, InstId, Module, Type, ValueId};

use super::{AxisInfo, TileFacts, ValueFacts, ViewFacts};

/// The traversal of one kernel.
pub(super) struct Analysis<'a> {
    pub module: &'a Module,
    pub func: &'a Func,
    pub info: &'a mut AxisInfo,
}

impl Analysis<'_> {
    pub fn ty(&self, v: ValueId) -> &Type {
        self.module.types.get(self.func.ty(v))
    }

    fn unknown(&self, v: ValueId) -> ValueFacts {
        match self.ty(v) {
            Type::Tile { shape, .. } => ValueFacts::Tile(TileFacts::unknown(shape.len())),
            Type::View { rank, .. } => ValueFacts::View(ViewFacts::unknown(*rank as usize)),
        }
    }

    pub fn known(&self, v: ValueId) -> ValueFacts {
        match self.info.known.get(v.index()) {
            Some(Some(k)) => k.clone(),
            Some(None) | None => self.unknown(v),
        }
    }

    pub fn block(&mut self, block: BlockId) {
        for i in &self.func.blocks[block].insts {
            self.inst(*i);
        }
    }

    fn inst(&mut self, id: InstId) {
        let inst = &self.func.insts[id];
        match inst.op {
            Op::Control(ControlOp::For) => return self.for_loop(inst),
            Op::Control(ControlOp::While) => return self.while_loop(inst),
            Op::Control(ControlOp::If) => {
                inst.blocks.iter().for_each(|b| self.block(*b));
                let arms: Vec<Vec<ValueId>> = inst.blocks.iter().map(|b| self.ends(*b).to_vec()).collect();
                for (n, r) in inst.results.iter().enumerate() {
                    let mut arms = arms.iter().filter_map(|a| a.get(n)).map(|v| self.known(*v));
                    let known = arms.next().map(|first| arms.fold(first, |a, b| a.meet(&b)));
                    let known = known.unwrap_or_else(|| self.unknown(*r));
                    self.info.set(*r, known);
                }
                return;
            }
            Op::Elementwise(_)
            | Op::Create(_)
            | Op::Shape(_)
            | Op::Memory(_)
            | Op::Atomic(_)
            | Op::Reduce(_)
            | Op::Scan(_)
            | Op::Dot(_)
            | Op::Random(_)
            | Op::Control(_)
            | Op::Host(_)
            | Op::Target => {}
        }
        // Blocks of `map`, `reduce` and `scan` work on single elements, about which nothing is known.
        let first = inst.results.first().copied();
        for r in &inst.results {
            let known = if Some(*r) == first { self.result(inst, *r) } else { None };
            let known = known.unwrap_or_else(|| self.unknown(*r));
            self.info.set(*r, known);
        }
    }

    /// The operands of the terminator of a block.
    fn ends(&self, block: BlockId) -> &[ValueId] {
        tk_tile::rewrite::yielded(self.func, block)
    }

    fn for_loop(&mut self, inst: &Inst) {
        let ([lo, _, step, init @ ..], [body]) = (inst.operands.as_slice(), inst.blocks.as_slice()) else {
            return;
        };
        let args = self.func.blocks[*body].args.clone();
        let Some((iv, carried)) = args.split_first() else { return };
        let (lo, step) = (self.axis(*lo), self.axis(*step));
        let counter = TileFacts::scalar(lo.divisibility().min(step.divisibility()), None);
        let counter = TileFacts { non_negative: lo.non_negative && step.non_negative, ..counter };
        self.info.set(*iv, ValueFacts::Tile(counter));
        self.fixpoint(carried, init, *body);
        for (r, v) in inst.results.iter().zip(carried) {
            let known = self.known(*v);
            self.info.set(*r, known);
        }
    }

    fn while_loop(&mut self, inst: &Inst) {
        let [decides, body] = inst.blocks.as_slice() else { return };
        let carried = self.func.blocks[*decides].args.clone();
        self.enter(&carried, &inst.operands);
        loop {
            self.block(*decides);
            let forwarded: Vec<ValueId> = self.ends(*decides).iter().skip(1).copied().collect();
            let args = self.func.blocks[*body].args.clone();
            for (a, v) in args.iter().zip(&forwarded) {
                let known = self.known(*v);
                self.info.set(*a, known);
            }
            self.block(*body);
            let ends = self.ends(*body).to_vec();
            if !self.lower(&carried, &ends) {
                for (r, v) in inst.results.iter().zip(&forwarded) {
                    let known = self.known(*v);
                    self.info.set(*r, known);
                }
                return;
            }
        }
    }

    /// Joins the facts about carried values with those an iteration yields; returns whether anything changed. Facts
    /// only become weaker, so this terminates.
    fn lower(&mut self, carried: &[ValueId], ends: &[ValueId]) -> bool {
        let mut changed = false;
        for (v, end) in carried.iter().zip(ends) {
            let met = self.known(*v).meet(&self.known(*end));
            changed |= self.info.set(*v, met);
        }
        changed
    }

    /// Sets the facts of the first iteration.
    fn enter(&mut self, carried: &[ValueId], init: &[ValueId]) {
        for (v, i) in carried.iter().zip(init) {
            let known = self.known(*i);
            self.info.set(*v, known);
        }
    }

    fn fixpoint(&mut self, carried: &[ValueId], init: &[ValueId], body: BlockId) {
        self.enter(carried, init);
        loop {
            self.block(body);
            let ends = self.ends(body).to_vec();
            if !self.lower(carried, &ends) {
                return;
            }
        }
    }

    pub fn axis(&self, v: ValueId) -> TileFacts {
        match self.known(v) {
            ValueFacts::Tile(a) => a,
            ValueFacts::View(_) => TileFacts::unknown(1),
        }
    }
}
