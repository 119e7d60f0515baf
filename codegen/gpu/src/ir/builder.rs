//! Adds instructions to a kernel: [`Edit`].
//!
//! Requires values of the kernel. Guarantees that each result has the requested layout.

use tk_ops::scalar::Scalar;
use tk_ops::{ControlOp, CreateOp, DType, ElementwiseOp, Op};
use tk_tile::rewrite::constant;
use tk_tile::{Attr, Attrs, BlockId, Def, FuncId, Id, Inst, InstId, Type, TypeId, ValueId};

use crate::ir::kernel::{Kernel, LayoutId};
use crate::ir::op::{GpuOp, MmaWait};
use crate::ir::shared_access::buffers;

/// A kernel that is being changed.
pub struct Edit<'a> {
    /// The kernel.
    pub kernel: &'a mut Kernel,
    /// The source position of new instructions.
    pub loc: Option<tk_tile::Loc>,
}

impl Edit<'_> {
    /// The function.
    pub fn func(&mut self) -> &mut tk_tile::Func {
        &mut self.kernel.module.funcs[FuncId(0)]
    }

    /// The layout of a value.
    pub fn layout_of(&self, v: ValueId) -> Option<LayoutId> {
        self.kernel.value_layouts.get(v.index()).copied().flatten()
    }

    /// Gives a value a layout.
    pub fn set_layout(&mut self, v: ValueId, layout: Option<LayoutId>) {
        self.kernel.set_layout(v, layout);
    }

    /// The type of a scalar.
    pub fn scalar(&mut self, d: DType) -> TypeId {
        self.kernel.module.types.intern(Type::scalar(d))
    }

    /// Adds an instruction; returns its first result.
    pub fn add(
        &mut self,
        block: BlockId,
        inst: Inst,
        results: &[(TypeId, Option<LayoutId>)],
    ) -> (InstId, Vec<ValueId>) {
        let types: Vec<TypeId> = results.iter().map(|r| r.0).collect();
        let id = self.func().add_inst(block, inst, &types);
        let made = self.func().insts[id].results.clone();
        made.iter().zip(results).for_each(|(v, r)| self.set_layout(*v, r.1));
        (id, made)
    }

    /// An instruction without results.
    pub fn inst(&self, op: Op, operands: &[ValueId], attrs: Attrs) -> Inst {
        Inst { op, operands: operands.to_vec(), attrs, blocks: vec![], results: vec![], loc: self.loc }
    }

    /// Adds an instruction with an operation of scheduled kernels; returns its results.
    pub fn gpu(
        &mut self,
        block: BlockId,
        op: impl Into<GpuOp>,
        operands: &[ValueId],
        results: &[(TypeId, Option<LayoutId>)],
    ) -> Vec<ValueId> {
        let inst = op.into().inst(operands.to_vec(), self.loc);
        self.add(block, inst, results).1
    }

    /// An integer.
    pub fn int(&mut self, block: BlockId, d: DType, value: i64) -> ValueId {
        let ty = self.scalar(d);
        let attrs = Attrs::new().with("value", Attr::Scalar(Scalar::int(d, value.into())));
        let inst = self.inst(Op::Create(CreateOp::Const), &[], attrs);
        self.first(block, inst, ty)
    }

    /// Adds an instruction with one scalar result.
    pub fn first(&mut self, block: BlockId, inst: Inst, ty: TypeId) -> ValueId {
        let operand = inst.operands.first().copied();
        self.add(block, inst, &[(ty, None)]).1.first().copied().or(operand).unwrap_or(ValueId(0))
    }

    /// An elementwise operation on scalars.
    pub fn compute(&mut self, block: BlockId, op: ElementwiseOp, operands: &[ValueId], to: DType) -> ValueId {
        let ty = self.scalar(to);
        let inst = self.inst(Op::Elementwise(op), operands, Attrs::new());
        self.first(block, inst, ty)
    }

    /// The type of a scalar value.
    pub fn dtype(&self, v: ValueId) -> DType {
        self.kernel.module.types.get(self.kernel.func().ty(v)).dtype().unwrap_or(DType::I32)
    }

    /// Computes whether the loop has the iteration that is `iterations` after `iv`.
    pub fn is_iteration(&mut self, id: InstId, block: BlockId, iv: ValueId, iterations: u32) -> ValueId {
        let inst = self.kernel.func().insts[id].clone();
        let [_, hi, step, ..] = inst.operands.as_slice() else { return iv };
        let inside =
            inst.blocks.first().is_some_and(|b| self.kernel.func().values[iv].def == Def::Arg(*b, 0));
        self.comes(block, (iv, *hi, *step), iterations, inside)
    }

    /// The same in a loop that ends at `hi`, with its step; `inside` tells whether `iv` is known to be one of its iterations.
    pub fn comes(
        &mut self,
        block: BlockId,
        (iv, hi, step): (ValueId, ValueId, ValueId),
        iterations: u32,
        inside: bool,
    ) -> ValueId {
        let known = constant(self.kernel.func(), step).and_then(Scalar::as_int);
        let narrow = self.dtype(iv).bits() < 64;
        if let Some(comes) = known.and_then(|step| self.is_near(block, (iv, hi), step, iterations, inside)) {
            return comes;
        }
        // In 64 bits, so that nothing wraps around, or in the width of the induction variable.
        let mut wide = |v: ValueId| match self.dtype(v) == DType::I64 {
            true => v,
            false => self.compute(block, ElementwiseOp::Cast, &[v], DType::I64),
        };
        let (hi, iv, by) = (wide(hi), wide(iv), wide(step));
        let iterations = self.int(block, DType::I64, iterations.into());
        let far = self.compute(block, ElementwiseOp::Mul, &[by, iterations], DType::I64);
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

    /// Computes whether `far` from `iv` is before `hi`, upwards or downwards; 64-bit numbers, of fewer bits if
    /// `narrow`.
    /// The same in 32 bits for a known step, on targets where 64 are slow. The distance from the counter of an iteration to
    /// the end is then a number without a sign.
    fn is_near(
        &mut self,
        block: BlockId,
        (iv, hi): (ValueId, ValueId),
        step: i128,
        iterations: u32,
        inside: bool,
    ) -> Option<ValueId> {
        let far = u32::try_from(step.checked_abs()? * i128::from(iterations)).ok()?;
        let same = self.dtype(iv).bits() == 32 && self.dtype(iv) == self.dtype(hi);
        if self.kernel.options.spec.has_wide_comparison || !same || step == 0 {
            return None;
        }
        let (from, to) = if step > 0 { (iv, hi) } else { (hi, iv) };
        let left = self.compute(block, ElementwiseOp::Sub, &[to, from], self.dtype(iv));
        let left = match self.dtype(iv) {
            DType::U32 => left,
            _signed => self.compute(block, ElementwiseOp::Cast, &[left], DType::U32),
        };
        let far = self.int(block, DType::U32, far.into());
        let reaches = self.compute(block, ElementwiseOp::Gt, &[left, far], DType::Bool);
        if inside {
            return Some(reaches);
        }
        let any = self.compute(block, ElementwiseOp::Lt, &[from, to], DType::Bool);
        Some(self.compute(block, ElementwiseOp::And, &[any, reaches], DType::Bool))
    }

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
        // The distance of two 64-bit numbers is unsigned.
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

    /// The stage of a multi-stage buffer after another one.
    pub fn next_stage(&mut self, block: BlockId, slot: ValueId, stages: u32) -> ValueId {
        let (one, zero) = (self.int(block, DType::I32, 1), self.int(block, DType::I32, 0));
        let last = self.int(block, DType::I32, i64::from(stages) - 1);
        let ends = self.compute(block, ElementwiseOp::Eq, &[slot, last], DType::Bool);
        let after = self.compute(block, ElementwiseOp::Add, &[slot, one], DType::I32);
        self.compute(block, ElementwiseOp::Select, &[ends, zero, after], DType::I32)
    }

    /// Lets a product of a warpgroup run on after it is issued: [`Edit::wait_for_product`] completes it.
    pub fn leave_in_flight(&mut self, product: InstId) {
        GpuOp::change(&mut self.func().insts[product], |op| {
            if let GpuOp::Mma(mma) = op {
                mma.asynchronous = true;
            }
        });
    }

    /// Waits until at most `pending` products are in flight; returns the sums `sums` of a product at that point.
    pub fn wait_for_product(
        &mut self,
        block: BlockId,
        product: InstId,
        sums: ValueId,
        pending: u32,
    ) -> ValueId {
        self.wait_for_product_after(block, product, sums, pending, None)
    }

    /// The same, behind the computation of a tile.
    pub fn wait_for_product_after(
        &mut self,
        block: BlockId,
        product: InstId,
        sums: ValueId,
        pending: u32,
        computed: Option<ValueId>,
    ) -> ValueId {
        let read = buffers(&self.kernel.func().insts[product]);
        let wait = MmaWait { buffers: read.iter().map(|b| b.buffer).collect(), pending };
        let made = (self.kernel.func().ty(sums), self.layout_of(sums));
        let operands: Vec<ValueId> = [sums].into_iter().chain(computed).collect();
        self.gpu(block, wait, &operands, &[made]).first().copied().unwrap_or(sums)
    }

    /// A branch without results.
    pub fn choose(&mut self, block: BlockId, when: ValueId, [then, other]: [BlockId; 2]) {
        let mut inst = self.inst(Op::Control(ControlOp::If), &[when], Attrs::new());
        inst.blocks = vec![then, other];
        self.add(block, inst, &[]);
    }

    /// The terminator of a branch.
    pub fn yields(&mut self, block: BlockId, values: &[ValueId]) {
        let inst = self.inst(Op::Control(ControlOp::Yield), values, Attrs::new());
        self.add(block, inst, &[]);
    }
}
