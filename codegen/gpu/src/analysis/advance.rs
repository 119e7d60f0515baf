//! Finds accesses that advance with a loop: each iteration accesses other elements of a view than the iterations before it.
//!
//! A view whose elements share memory, with a stride of 0 or rows that overlap, counts as one whose elements do not
//! (`spec/07-memory.md`, "Conflicting writes and aliasing").

use std::collections::BTreeSet;

use tk_ops::{ControlOp, ElementwiseOp, MemoryOp, Op};
use tk_tile::{Def, Func, Inst, ValueId, rewrite};

/// A loop around an access.
#[derive(Clone, Debug)]
pub struct Loop {
    /// Its counter, and the step of it.
    pub counter: ValueId,
    step: ValueId,
    /// The values that are defined in it.
    pub inside: BTreeSet<ValueId>,
}

impl Loop {
    /// A `for` loop in which these values are defined; `None` for another instruction.
    pub fn of(func: &Func, inst: &Inst, inside: BTreeSet<ValueId>) -> Option<Loop> {
        let body = inst.blocks.first().filter(|_| inst.op == Op::Control(ControlOp::For))?;
        let counter = *func.blocks[*body].args.first()?;
        Some(Loop { counter, step: *inst.operands.get(2)?, inside })
    }

    /// Returns true if a value is the same in each iteration.
    fn is_invariant(&self, func: &Func, v: ValueId) -> bool {
        if !self.inside.contains(&v) {
            return true;
        }
        let Def::Inst(inst, _) = func.values[v].def else { return false };
        let inst = &func.insts[inst];
        let pure = matches!(
            inst.op,
            Op::Elementwise(_)
                | Op::Create(_)
                | Op::Memory(
                    MemoryOp::PtrAdd
                        | MemoryOp::View
                        | MemoryOp::ViewShape
                        | MemoryOp::ViewStride
                        | MemoryOp::ViewPtr
                        | MemoryOp::ViewSlice
                        | MemoryOp::ViewPermute
                )
        );
        pure && inst.operands.iter().all(|v| self.is_invariant(func, *v))
    }

    /// Returns true if a position is the counter, or a number that does not change plus or minus it.
    fn moves(&self, func: &Func, position: ValueId) -> bool {
        if position == self.counter {
            return true;
        }
        let Some(inst) = rewrite::definition(func, position) else { return false };
        match (inst.op, inst.operands.as_slice()) {
            (Op::Elementwise(ElementwiseOp::Add | ElementwiseOp::Sub), [a, b]) => {
                *a == self.counter && self.is_invariant(func, *b)
                    || *b == self.counter && self.is_invariant(func, *a)
            }
            _ => false,
        }
    }

    /// Returns true if the counter changes by at least this many positions.
    fn passes(&self, func: &Func, extent: u32) -> bool {
        let step = rewrite::constant(func, self.step).and_then(|s| s.as_int());
        // A step that is not known is not 0, with which there is no iteration.
        step.map_or(extent <= 1, |step| step.unsigned_abs() >= u128::from(extent))
    }
}

/// What advances: the position of an access along a dimension of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advance {
    /// The counter of the loop.
    pub counter: ValueId,
    view: ValueId,
    dimension: usize,
    position: ValueId,
    /// The elements along it.
    extent: u32,
}

/// What advances in an access to a tile of this shape by `view_load` or `view_store`, with the innermost of these loops
/// for which something does.
pub fn of(func: &Func, loops: &[Loop], inst: &Inst, shape: &[u32]) -> Option<Advance> {
    let (view, positions) = inst.operands.split_first()?;
    loops.iter().rev().find_map(|l| {
        let mut along = positions.iter().zip(shape).enumerate();
        let (dimension, (position, extent)) =
            along.find(|(_, (at, extent))| l.moves(func, **at) && l.passes(func, **extent))?;
        l.is_invariant(func, *view).then_some(Advance {
            counter: l.counter,
            view: *view,
            dimension,
            position: *position,
            extent: *extent,
        })
    })
}
