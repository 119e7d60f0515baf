//! Finds the parameter from which a pointer or view derives.
//!
//! Parameters do not reach the same memory unless the kernel says so (`alias`, E0711), so accesses through different ones
//! need no order.

use crate::ir::op::GpuOp;
use tk_ops::{ControlOp, CreateOp, MemoryOp, Op, ShapeOp};
use tk_tile::{BlockId, Func, Id, Inst, ValueId, rewrite};

/// The parameter of each value; `None` if it is unknown or the value is no pointer.
#[derive(Debug)]
pub struct Roots(Vec<Option<ValueId>>);

impl Roots {
    /// Analyses all values of a kernel.
    pub fn new(func: &Func) -> Roots {
        let mut roots = Roots(vec![None; func.values.len()]);
        let params = &func.blocks[func.body].args;
        for v in params {
            roots.set(*v, Some(*v));
        }
        // Parameters that may alias count as one.
        for (x, y) in &func.alias {
            let pair = [x, y].map(|n| params.get(*n as usize).and_then(|v| roots.get(*v)));
            for v in params.iter().filter(|v| roots.get(**v) == pair[1]).copied().collect::<Vec<_>>() {
                roots.set(v, pair[0]);
            }
        }
        roots.block(func, func.body);
        roots
    }

    /// The parameter from which a pointer or view derives.
    pub fn get(&self, v: ValueId) -> Option<ValueId> {
        self.0.get(v.index()).copied().flatten()
    }

    fn set(&mut self, v: ValueId, root: Option<ValueId>) {
        if let Some(slot) = self.0.get_mut(v.index()) {
            *slot = root;
        }
    }

    fn block(&mut self, func: &Func, block: BlockId) {
        for i in &func.blocks[block].insts {
            self.inst(func, &func.insts[*i]);
        }
    }

    fn inst(&mut self, func: &Func, inst: &Inst) {
        let first = inst.operands.first().copied();
        match inst.op {
            Op::Control(ControlOp::For) => {
                let (init, body) = (inst.operands.get(3..).unwrap_or(&[]), inst.blocks.first());
                let args = body.map_or(&[][..], |b| func.blocks[*b].args.get(1..).unwrap_or(&[]));
                for (a, i) in args.iter().zip(init) {
                    self.set(*a, self.get(*i));
                }
                // Carried values that an iteration may exchange are unknown; repeat until nothing changes.
                let mut changes = true;
                while changes {
                    changes = false;
                    body.into_iter().for_each(|b| self.block(func, *b));
                    let ends = body.map_or(&[][..], |b| rewrite::yielded(func, *b));
                    for (a, e) in args.iter().zip(ends) {
                        if self.get(*a).is_some() && self.get(*a) != self.get(*e) {
                            self.set(*a, None);
                            changes = true;
                        }
                    }
                }
                for (r, a) in inst.results.iter().zip(args) {
                    self.set(*r, self.get(*a));
                }
            }
            Op::Control(ControlOp::While | ControlOp::If) => {
                inst.blocks.iter().for_each(|b| self.block(func, *b))
            }
            Op::Control(ControlOp::MultipleOf | ControlOp::MaxContiguous)
            | Op::Create(CreateOp::Splat)
            | Op::Shape(ShapeOp::Broadcast | ShapeOp::Reshape | ShapeOp::Permute)
            | Op::Elementwise(tk_ops::ElementwiseOp::Cast)
            | Op::Memory(
                MemoryOp::PtrAdd
                | MemoryOp::View
                | MemoryOp::ViewPtr
                | MemoryOp::ViewSlice
                | MemoryOp::ViewPermute,
            ) => {
                let root = first.and_then(|v| self.get(v));
                inst.results.iter().for_each(|r| self.set(*r, root));
            }
            Op::Target if matches!(GpuOp::of(inst), Some(GpuOp::Convert(_))) => {
                let root = first.and_then(|v| self.get(v));
                inst.results.iter().for_each(|r| self.set(*r, root));
            }
            Op::Control(_)
            | Op::Create(_)
            | Op::Shape(_)
            | Op::Target
            | Op::Elementwise(_)
            | Op::Memory(_)
            | Op::Atomic(_)
            | Op::Reduce(_)
            | Op::Scan(_)
            | Op::Dot(_)
            | Op::Random(_)
            | Op::Host(_) => {}
        }
    }
}
