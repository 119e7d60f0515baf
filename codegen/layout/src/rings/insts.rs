//! Owns how instructions are added to a loop whose loads run ahead.
//!
//! May assume values of the kernel. Guarantees that each result has the layout that is asked for.

use tk_ops::scalar::Scalar;
use tk_ops::{ControlOp, CreateOp, DType, ElementwiseOp, Op};
use tk_tile::rewrite::constant;
use tk_tile::{Attr, Attrs, BlockId, FuncId, Id, Inst, InstId, Type, TypeId, ValueId};

use super::ahead::Ahead;
use crate::kernel::LayoutId;

impl Ahead<'_> {
    pub(super) fn func(&mut self) -> &mut tk_tile::Func {
        &mut self.kernel.module.funcs[FuncId(0)]
    }

    pub(super) fn layout_of(&self, v: ValueId) -> Option<LayoutId> {
        self.kernel.of.get(v.index()).copied().flatten()
    }

    pub(super) fn hold(&mut self, v: ValueId, layout: Option<LayoutId>) {
        if self.kernel.of.len() <= v.index() {
            self.kernel.of.resize(v.index() + 1, None);
        }
        if let Some(slot) = self.kernel.of.get_mut(v.index()) {
            *slot = layout;
        }
    }

    pub(super) fn scalar(&mut self, d: DType) -> TypeId {
        self.kernel.module.types.intern(Type::scalar(d))
    }

    /// Adds an instruction; gives its first result.
    pub(super) fn add(
        &mut self,
        block: BlockId,
        inst: Inst,
        results: &[(TypeId, Option<LayoutId>)],
    ) -> (InstId, Vec<ValueId>) {
        let types: Vec<TypeId> = results.iter().map(|r| r.0).collect();
        let id = self.func().add_inst(block, inst, &types);
        let made = self.func().insts[id].results.clone();
        made.iter().zip(results).for_each(|(v, r)| self.hold(*v, r.1));
        (id, made)
    }

    pub(super) fn inst(&self, op: Op, operands: &[ValueId], attrs: Attrs) -> Inst {
        Inst { op, operands: operands.to_vec(), attrs, blocks: vec![], results: vec![], loc: self.loc }
    }

    pub(super) fn int(&mut self, block: BlockId, d: DType, value: i64) -> ValueId {
        let ty = self.scalar(d);
        let attrs = Attrs::new().with("value", Attr::Scalar(Scalar::int(d, value.into())));
        let inst = self.inst(Op::Create(CreateOp::Const), &[], attrs);
        self.first(block, inst, ty)
    }

    pub(super) fn first(&mut self, block: BlockId, inst: Inst, ty: TypeId) -> ValueId {
        let operand = inst.operands.first().copied();
        self.add(block, inst, &[(ty, None)]).1.first().copied().or(operand).unwrap_or(ValueId(0))
    }

    /// An elementwise operation on scalars.
    pub(super) fn compute(
        &mut self,
        block: BlockId,
        op: ElementwiseOp,
        operands: &[ValueId],
        to: DType,
    ) -> ValueId {
        let ty = self.scalar(to);
        let inst = self.inst(Op::Elementwise(op), operands, Attrs::new());
        self.first(block, inst, ty)
    }

    pub(super) fn dtype(&self, v: ValueId) -> DType {
        self.kernel.module.types.get(self.kernel.func().ty(v)).dtype().unwrap_or(DType::I32)
    }

    /// Whether the trip that is so many behind `iv` comes.
    pub(super) fn comes(&mut self, block: BlockId, iv: ValueId, trips: u32) -> ValueId {
        let inst = self.kernel.func().insts[self.plan.at.1].clone();
        let [_, hi, step, ..] = inst.operands.as_slice() else { return iv };
        let known = constant(self.kernel.func(), *step).and_then(Scalar::as_int);
        let narrow = self.dtype(iv).bits() < 64;
        // In 64 bits: so that nothing wraps around, or as machines count.
        let mut wide = |v: ValueId| match self.dtype(v) == DType::I64 {
            true => v,
            false => self.compute(block, ElementwiseOp::Cast, &[v], DType::I64),
        };
        let (hi, iv, by) = (wide(*hi), wide(iv), wide(*step));
        let trips = self.int(block, DType::I64, trips.into());
        let far = self.compute(block, ElementwiseOp::Mul, &[by, trips], DType::I64);
        if let Some(step) = known {
            return self.reaches(block, (iv, hi, far), step > 0, narrow);
        }
        let zero = self.int(block, DType::I64, 0);
        let mut both = vec![];
        for (sign, up) in [(ElementwiseOp::Gt, true), (ElementwiseOp::Lt, false)] {
            let runs = self.compute(block, sign, &[by, zero], DType::Bool);
            let reaches = self.reaches(block, (iv, hi, far), up, narrow);
            both.push(self.compute(block, ElementwiseOp::And, &[runs, reaches], DType::Bool));
        }
        self.compute(block, ElementwiseOp::Or, &both, DType::Bool)
    }

    /// Whether `far` from `iv` is in front of `hi`, upwards or downwards; 64-bit numbers, of fewer bits if `narrow`.
    fn reaches(
        &mut self,
        block: BlockId,
        (iv, hi, far): (ValueId, ValueId, ValueId),
        up: bool,
        narrow: bool,
    ) -> ValueId {
        let left = self.compute(block, ElementwiseOp::Sub, &[hi, iv], DType::I64);
        if narrow {
            let op = if up { ElementwiseOp::Gt } else { ElementwiseOp::Lt };
            return self.compute(block, op, &[left, far], DType::Bool);
        }
        // The distance of two numbers of 64 bits is one without a sign.
        let zero = self.int(block, DType::I64, 0);
        let mut distance = |v: ValueId| {
            let v = if up { v } else { self.compute(block, ElementwiseOp::Sub, &[zero, v], DType::I64) };
            self.compute(block, ElementwiseOp::Cast, &[v], DType::U64)
        };
        let (left, far) = (distance(left), distance(far));
        let farther = self.compute(block, ElementwiseOp::Gt, &[left, far], DType::Bool);
        let op = if up { ElementwiseOp::Lt } else { ElementwiseOp::Gt };
        let comes = self.compute(block, op, &[iv, hi], DType::Bool);
        self.compute(block, ElementwiseOp::And, &[comes, farther], DType::Bool)
    }

    /// The piece behind another one.
    pub(super) fn behind(&mut self, block: BlockId, slot: ValueId) -> ValueId {
        let (one, zero) = (self.int(block, DType::I32, 1), self.int(block, DType::I32, 0));
        let last = self.int(block, DType::I32, i64::from(self.plan.stages) - 1);
        let ends = self.compute(block, ElementwiseOp::Eq, &[slot, last], DType::Bool);
        let after = self.compute(block, ElementwiseOp::Add, &[slot, one], DType::I32);
        self.compute(block, ElementwiseOp::Select, &[ends, zero, after], DType::I32)
    }

    /// The end of a branch.
    pub(super) fn yields(&mut self, block: BlockId, values: &[ValueId]) {
        let inst = self.inst(Op::Control(ControlOp::Yield), values, Attrs::new());
        self.add(block, inst, &[]);
    }
}
