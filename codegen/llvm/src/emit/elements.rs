//! Emits functions of elements: the blocks of `map`, of `reduce` and of `scan`, once for each register.
//!
//! In such a block scalars and control flow differ between threads, so no operation in it may need another thread.
//! Padding is no element: side effects of the block are suppressed for it.

use inkwell::values::{BasicValueEnum, IntValue};
use tk_gpu::ir::op::GpuOp;
use tk_ops::{ControlOp, MemoryOp, Op};
use tk_tile::{BlockId, Inst, Type, ValueId, walk};

use super::reduce::State;
use super::state::Nested;
use super::value::Val;
use super::{Emit, Res, Stop};

impl<'c> Emit<'_, 'c> {
    /// Checks that an instruction can be emitted in its block.
    pub(super) fn allowed(&self, inst: &Inst) -> Res<()> {
        let Some(nested) = self.nested else { return Ok(()) };
        // Every thread owns a tile of one element.
        let is_spread = |v: &ValueId| match self.ty(*v) {
            Type::Tile { shape, .. } => shape.iter().any(|n| *n != 1),
            Type::View { .. } => false,
        };
        let moves = GpuOp::of(inst).is_some_and(|op| !matches!(op, GpuOp::Convert(_)));
        if moves || inst.operands.iter().chain(&inst.results).any(is_spread) {
            return self.unsupported("a tile in a function of elements");
        }
        let name = inst.name();
        match inst.op {
            Op::Control(ControlOp::Print | ControlOp::GridBarrier | ControlOp::GlobalTimer) => {
                self.unsupported(format!("`{name}` in a function of elements"))
            }
            Op::Memory(MemoryOp::Store | MemoryOp::ViewStore | MemoryOp::ViewScatter) | Op::Atomic(_)
                if nested == Nested::Fold =>
            {
                self.unsupported(format!("`{name}` in a function that combines elements"))
            }
            // Only the thread that acts for those with the same element receives its result.
            Op::Atomic(_) if self.is_first(None)?.is_some() && !inst.results.is_empty() => {
                self.unsupported(format!("`{name}` in a function of elements of so small a tile"))
            }
            Op::Control(_)
            | Op::Memory(_)
            | Op::Atomic(_)
            | Op::Elementwise(_)
            | Op::Create(_)
            | Op::Shape(_)
            | Op::Reduce(_)
            | Op::Scan(_)
            | Op::Dot(_)
            | Op::Random(_)
            | Op::Host(_)
            | Op::Target => Ok(()),
        }
    }

    /// Returns true if a block has side effects: it fails, may not terminate, or accesses memory.
    pub(super) fn has_side_effects(&self, block: BlockId) -> bool {
        walk::insts_in(self.func(), block).into_iter().any(|i| match self.func().insts[i].op {
            Op::Memory(_) | Op::Atomic(_) => true,
            Op::Control(ControlOp::For | ControlOp::While | ControlOp::Assert) => true,
            Op::Control(_)
            | Op::Elementwise(_)
            | Op::Create(_)
            | Op::Shape(_)
            | Op::Reduce(_)
            | Op::Scan(_)
            | Op::Dot(_)
            | Op::Random(_)
            | Op::Host(_)
            | Op::Target => false,
        })
    }

    /// The block of an instruction for one element.
    pub fn per_element(
        &mut self,
        block: BlockId,
        args: &[BasicValueEnum<'c>],
        nested: Nested,
    ) -> Res<State<'c>> {
        for (v, x) in self.func().blocks[block].args.iter().zip(args) {
            self.define(*v, Val::Scalar(*x));
        }
        let outer = self.nested.replace(nested);
        self.block(block)?;
        self.nested = outer;
        tk_tile::rewrite::yielded(self.func(), block).iter().map(|v| self.scalar(*v)).collect()
    }

    /// Executes code only where a predicate is true, if it has side effects, and returns `otherwise` elsewhere. Code
    /// without side effects is executed everywhere.
    pub(super) fn only_where(
        &mut self,
        predicate: Option<IntValue<'c>>,
        has_effects: bool,
        otherwise: &[BasicValueEnum<'c>],
        act: impl FnOnce(&mut Self) -> Res<State<'c>>,
    ) -> Res<State<'c>> {
        let Some(predicate) = predicate.filter(|_| has_effects) else { return act(self) };
        let b = self.builder;
        let (before, inside, after) = (self.here()?, self.new_block("element"), self.new_block("all"));
        b.build_conditional_branch(predicate, inside, after)?;
        b.position_at_end(inside);
        let done = act(self)?;
        let end = self.here()?;
        b.build_unconditional_branch(after)?;
        b.position_at_end(after);
        done.iter()
            .zip(otherwise)
            .map(|(x, instead)| {
                let phi = b.build_phi(x.get_type(), "")?;
                phi.add_incoming(&[(x, end), (instead, before)]);
                Ok(phi.as_basic_value())
            })
            .collect()
    }

    /// Executes the block for each register.
    pub(super) fn map(&mut self, inst: &Inst) -> Res<()> {
        let block = *inst.blocks.first().ok_or_else(|| Stop::Bug("`map` has a block".into()))?;
        let operands = inst.operands.iter().map(|v| self.registers(*v)).collect::<Res<Vec<_>>>()?;
        let r = self.result(inst)?;
        let layout = self.layout_id(r)?;
        let has_effects = self.has_side_effects(block);
        let zeros: Vec<_> = inst.results.iter().map(|r| self.zero(self.dtype(*r))).collect();
        let mut out: Vec<Vec<BasicValueEnum<'c>>> = vec![vec![]; inst.results.len()];
        for n in 0..self.count(r)? {
            let args: Vec<_> = operands.iter().filter_map(|o| o.get(n).copied()).collect();
            let real = self.is_real(layout, self.shape(r), n)?;
            let done = self.only_where(real, has_effects, &zeros, |e| {
                e.per_element(block, &args, Nested::Map(layout))
            })?;
            for (list, x) in out.iter_mut().zip(done) {
                list.push(x);
            }
        }
        for (r, regs) in inst.results.iter().zip(out) {
            self.define_regs(*r, regs)?;
        }
        Ok(())
    }
}
