//! Finds the instructions that compute the offset of a pointer: their arithmetic must not overflow.
//!
//! From the offset of each `ptr_add` it goes back through sums, differences, products, shifts to the left, conversions
//! to wider types, rearrangements and control flow. It ends where a value is made from scratch: at a quotient, a
//! remainder, a bit operation, a comparison, a load, a narrowing conversion. So a hash that wraps and is then reduced
//! by `%` or `&` is no offset, and `row * stride + column` is one throughout.

use std::collections::{BTreeMap, BTreeSet};

use tk_ops::{ControlOp, CreateOp, DType, ElementwiseOp, MemoryOp, Op};
use tk_tile::{BlockId, Def, Func, InstId, Types, ValueId, walk};

/// The instructions of a function whose result is part of the offset of a pointer and may overflow, with the name of the
/// parameter that the pointer comes from; empty if it comes from elsewhere.
pub(crate) fn find<'f>(func: &'f Func, types: &Types) -> BTreeMap<InstId, &'f str> {
    let insts = walk::insts(func);
    let mut owners = BTreeMap::new();
    let mut todo = vec![];
    for id in &insts {
        let Some(inst) = func.insts.get(*id) else { continue };
        owners.extend(inst.blocks.iter().map(|b| (*b, *id)));
        if inst.op == Op::Memory(MemoryOp::PtrAdd) {
            todo.extend(inst.operands.get(1).map(|offset| (*offset, name(func, inst.operands.first()))));
        }
    }
    let mut slice = Slice { func, types, owners, found: vec![] };
    let (mut seen, mut found, mut next) = (BTreeSet::new(), BTreeMap::new(), vec![]);
    while let Some((v, name)) = todo.pop() {
        if seen.insert(v) {
            slice.sources(v, &mut next);
            found.extend(slice.found.drain(..).map(|id| (id, name)));
            todo.extend(next.drain(..).map(|v| (v, name)));
        }
    }
    found
}

/// The name of the parameter that a pointer comes from.
fn name<'f>(func: &'f Func, pointer: Option<&ValueId>) -> &'f str {
    let mut at = pointer.copied();
    while let Some(value) = at.and_then(|v| func.values.get(v)) {
        match value.def {
            Def::Arg(block, n) if block == func.body => {
                return func.param_names.get(n as usize).map_or("", |n| n);
            }
            Def::Arg(..) => return "",
            Def::Inst(id, _) => at = func.insts.get(id).and_then(|i| i.operands.first()).copied(),
        }
    }
    ""
}

struct Slice<'f> {
    func: &'f Func,
    types: &'f Types,
    /// The instruction that owns a block.
    owners: BTreeMap<BlockId, InstId>,
    /// Arithmetic that was come across.
    found: Vec<InstId>,
}

impl Slice<'_> {
    fn dtype(&self, v: ValueId) -> Option<DType> {
        self.types.get(self.func.values.get(v)?.ty).dtype()
    }

    /// What a value is computed from, as far as that is part of the offset too.
    fn sources(&mut self, v: ValueId, out: &mut Vec<ValueId>) {
        let Some(value) = self.func.values.get(v) else { return };
        match value.def {
            Def::Inst(id, n) => self.of_result(id, n as usize, v, out),
            Def::Arg(block, n) => self.of_argument(block, n as usize, out),
        }
    }

    fn of_result(&mut self, id: InstId, n: usize, v: ValueId, out: &mut Vec<ValueId>) {
        let Some(inst) = self.func.insts.get(id) else { return };
        let operand = |i: usize| inst.operands.get(i).copied();
        match inst.op {
            Op::Elementwise(
                ElementwiseOp::Add | ElementwiseOp::Sub | ElementwiseOp::Mul | ElementwiseOp::Neg,
            ) => {
                self.found.push(id);
                out.extend(&inst.operands);
            }
            Op::Elementwise(ElementwiseOp::Shl) => {
                self.found.push(id);
                out.extend(operand(0));
            }
            Op::Elementwise(ElementwiseOp::Cast) => {
                let bits = |v: Option<ValueId>| v.and_then(|v| self.dtype(v)).map(DType::bits);
                if bits(operand(0)) <= bits(Some(v)) {
                    out.extend(operand(0));
                }
            }
            Op::Create(CreateOp::Splat) | Op::Shape(_) => out.extend(&inst.operands),
            Op::Control(ControlOp::MultipleOf | ControlOp::MaxContiguous) => out.extend(operand(0)),
            Op::Control(ControlOp::For) => {
                out.extend(operand(n + 3));
                out.extend(self.yielded(inst.blocks.first(), n));
            }
            Op::Control(ControlOp::While) => out.extend(self.yielded(inst.blocks.first(), n + 1)),
            Op::Control(ControlOp::If | ControlOp::Map) => {
                out.extend(inst.blocks.iter().filter_map(|b| self.yielded(Some(b), n)));
            }
            Op::Elementwise(_)
            | Op::Create(_)
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
    }

    fn of_argument(&self, block: BlockId, n: usize, out: &mut Vec<ValueId>) {
        let owner = self.owners.get(&block).and_then(|id| self.func.insts.get(*id));
        let Some(inst) = owner else { return };
        match inst.op {
            // The first argument counts.
            Op::Control(ControlOp::For) if n > 0 => {
                out.extend(inst.operands.get(n + 2));
                out.extend(self.yielded(inst.blocks.first(), n - 1));
            }
            Op::Control(ControlOp::While) if inst.blocks.first() == Some(&block) => {
                out.extend(inst.operands.get(n));
                out.extend(self.yielded(inst.blocks.get(1), n));
            }
            Op::Control(ControlOp::While) => out.extend(self.yielded(inst.blocks.first(), n + 1)),
            Op::Control(ControlOp::Map) => out.extend(inst.operands.get(n)),
            _no_arithmetic => {}
        }
    }

    /// Operand `n` of the terminator of a block.
    fn yielded(&self, block: Option<&BlockId>, n: usize) -> Option<ValueId> {
        let last = self.func.blocks.get(*block?)?.insts.last()?;
        self.func.insts.get(*last)?.operands.get(n).copied()
    }
}
