//! Prefetches the first operands of the next iteration into registers, so that matrix instructions do not wait for
//! shared memory.
//!
//! ```text
//! async_wait; barrier                            v1, v2 = fragments slot {start = 16}       a, b: loop-carried
//! v3 = mma acc, slot {a, b, k = 32}        =>    v4 = mma acc, a, b {k = 16}
//! copies                                         async_wait; barrier
//!                                                v5, v6 = fragments next slot {start = 0}   the next a, b
//!                                                copies
//!                                                v3 = mma v4, v1, v2 {k = 16}
//! ```
//!
//! The operands of each instruction are read while earlier instructions multiply; the wait for the copies of the next
//! iteration, and for the other warps, is before the last instructions of this one, whose operands have all been read
//! then.
//!
//! Requires a loop whose copies run ahead ([`super::expand`]). A stage of a multi-stage buffer is filled after the
//! barrier of an iteration that comes after its last read, as without this.

use tk_ops::scalar::Scalar;
use tk_ops::{ControlOp, CreateOp, DType, ElementwiseOp, Op};
use tk_tile::{Attr, Attrs, BlockId, InstId, Type, TypeId, ValueId, walk};

use super::expand::Expand;
use crate::analysis;
use crate::ir::kernel::LayoutId;
use crate::ir::op::{AsyncWait, Barrier, Fragments, GpuOp, Mma, MmaOperand, Product};
use crate::ir::shared_access::touched;
use crate::layout::cut;

/// The fewest iterations in flight: while one is multiplied, the first operands of the next are read, and one is
/// copied.
const LEAST_STAGES: u32 = 3;

/// Registers of an accumulator with which no second program fits beside a large one, so that the registers for
/// prefetched operands cost nothing. On an H200, 128 x 256 x 32 on 8 warps, with 128 of them, goes from 360 to 444
/// TFLOP/s; with 64 of them, 128 x 128 x 64 falls from 385 to 265.
const MANY: usize = 128;

/// A product that is split into its instructions.
#[derive(Clone, Debug)]
pub struct OperandPrefetch {
    product: InstId,
    /// Elements along K of one instruction.
    own: u32,
    /// Instructions along K.
    steps: u32,
    /// The part of each operand that one instruction multiplies.
    parts: [(TypeId, LayoutId); 2],
    acc: (TypeId, LayoutId),
    /// The operands that an iteration begins with.
    pub carried: Vec<ValueId>,
}

impl Expand<'_> {
    /// The product of the loop, if it is the only user of shared memory.
    pub(crate) fn prefetch(&mut self) -> Option<OperandPrefetch> {
        let (body, stages) = (self.plan.body, self.plan.stages);
        let func = self.kernel.func();
        let alone = |i: &InstId| matches!(GpuOp::of(&func.insts[*i]), Some(GpuOp::Mma(_)));
        let users: Vec<InstId> = walk::insts_in(func, body)
            .into_iter()
            .filter(|i| {
                let (reads, writes) = touched(&func.insts[*i]);
                let is_barrier = matches!(GpuOp::of(&func.insts[*i]), Some(GpuOp::Barrier(_)));
                is_barrier || !reads.is_empty() || !writes.is_empty()
            })
            .collect();
        let [product] = users[..] else { return None };
        let here = func.blocks[body].insts.contains(&product);
        let inst = func.insts[product].clone();
        let GpuOp::Mma(mma) = GpuOp::of(&inst)? else { return None };
        let staged = |o: &MmaOperand| o.buffer().is_some_and(|b| b.stages == Some(stages));
        let is_multi_stage = staged(&mma.a) && staged(&mma.b);
        let acc = *inst.operands.first()?;
        let tiles = analysis::mma::tiles(self.kernel, mma.product, mma.instruction, acc)?;
        let Product { k, elems, .. } = mma.product;
        let own = 1u32 << tiles.matrix.k;
        let steps = k / own;
        let registers = self.kernel.layout(acc).map_or(0, |l| l.registers());
        // A warpgroup reads its operands itself, and a pair of instructions reads its own together.
        let long = !tiles.matrix.is_wgmma()
            && !mma.product.paired
            && steps > 1
            && cut(k).repeats == 1
            && registers >= MANY
            && stages >= LEAST_STAGES;
        if !(here && alone(&product) && is_multi_stage && long) {
            return None;
        }
        let acc = (func.ty(acc), self.layout_of(acc)?);
        let [m, n] = *self.kernel.module.types.get(acc.0).shape()? else { return None };
        let mut part = |side: usize, shape: [u32; 2]| -> Option<(TypeId, LayoutId)> {
            let layout = self.kernel.layouts.intern(tiles.operand(side, own).layout()?);
            Some((self.kernel.module.types.intern(Type::tile(elems[side], &shape)), layout))
        };
        let parts = [part(0, [m, own])?, part(1, [own, n])?];
        let carried = parts
            .iter()
            .map(|(ty, layout)| {
                let v = self.func().add_arg(body, *ty);
                self.set_layout(v, Some(*layout));
                v
            })
            .collect();
        Some(OperandPrefetch { product, own, steps, parts, acc, carried })
    }

    /// The first operands of the first iteration; zeros if it is not executed.
    pub(crate) fn first_operands(
        &mut self,
        block: BlockId,
        prefetch: &OperandPrefetch,
        is_iteration: ValueId,
    ) -> Vec<ValueId> {
        let pending = self.plan.stages.saturating_sub(2);
        self.arrive(block, pending);
        let acc = self.nothing(block, (prefetch.acc.0, Some(prefetch.acc.1)));
        let stage = self.int(block, DType::I32, 0);
        let (then, other) = (self.func().add_block(), self.func().add_block());
        let found = self.read(then, prefetch, (acc, stage), 0);
        self.yields(then, &found);
        let none: Vec<ValueId> =
            prefetch.parts.iter().map(|p| self.nothing(other, (p.0, Some(p.1)))).collect();
        self.yields(other, &none);
        let mut inst = self.inst(Op::Control(ControlOp::If), &[is_iteration], Attrs::new());
        inst.blocks = vec![then, other];
        let results: Vec<_> = prefetch.parts.iter().map(|(ty, l)| (*ty, Some(*l))).collect();
        self.add(block, inst, &results).1
    }

    /// The instructions of the product of an iteration; returns the slice ahead, and the operands of the next
    /// iteration.
    pub(crate) fn multiply(
        &mut self,
        prefetch: &OperandPrefetch,
        slot: ValueId,
        copies: impl FnOnce(&mut Self) -> Vec<ValueId>,
    ) -> (Vec<ValueId>, Vec<ValueId>) {
        let body = self.plan.body;
        let product = self.kernel.func().insts[prefetch.product].clone();
        let (Some(acc), Some(result)) = (product.operands.first().copied(), product.results.first().copied())
        else {
            return (vec![], vec![]);
        };
        let (mut sum, mut operands) = (acc, prefetch.carried.clone());
        for step in 1..prefetch.steps {
            let next = self.read(body, prefetch, (acc, slot), step);
            sum = self.instruction(prefetch, sum, &operands);
            operands = next;
        }
        self.arrive(body, self.plan.stages.saturating_sub(3));
        let stage = self.next_stage(body, slot);
        let next = self.read(body, prefetch, (acc, stage), 0);
        let ahead = copies(self);
        let last = self.instruction(prefetch, sum, &operands);
        // The result keeps its name.
        let func = self.func();
        if let tk_tile::Def::Inst(id, _) = func.values[last].def {
            func.values[result].def = tk_tile::Def::Inst(id, 0);
            func.insts[id].results = vec![result];
        }
        (ahead, next)
    }

    /// The stage of the next iteration; that of this one if it is the last, since it has been filled.
    fn next_stage(&mut self, block: BlockId, slot: ValueId) -> ValueId {
        let args = self.kernel.func().blocks[self.plan.body].args.clone();
        let Some(iv) = args.first().copied() else { return slot };
        let is_iteration = self.edit.is_iteration(self.plan.at.1, block, iv, 1);
        let next = self.edit.next_stage(block, slot, self.plan.stages);
        self.compute(block, ElementwiseOp::Select, &[is_iteration, next, slot], DType::I32)
    }

    /// Waits until all copies of all threads except the last groups are complete.
    fn arrive(&mut self, block: BlockId, pending: u32) {
        self.gpu(block, AsyncWait { pending }, &[], &[]);
        self.gpu(block, Barrier {}, &[], &[]);
    }

    /// A tile of zeros.
    fn nothing(&mut self, block: BlockId, (ty, layout): (TypeId, Option<LayoutId>)) -> ValueId {
        let d = self.kernel.module.types.get(ty).dtype().unwrap_or(DType::F32);
        let attrs = Attrs::new().with("value", Attr::Scalar(Scalar::zero(d)));
        let inst = self.inst(Op::Create(CreateOp::Const), &[], attrs);
        self.add(block, inst, &[(ty, layout)]).1.first().copied().unwrap_or(ValueId(0))
    }

    /// The parts of both operands that one instruction multiplies.
    fn read(
        &mut self,
        block: BlockId,
        prefetch: &OperandPrefetch,
        (acc, stage): (ValueId, ValueId),
        step: u32,
    ) -> Vec<ValueId> {
        let Some(GpuOp::Mma(mma)) = GpuOp::of(&self.kernel.func().insts[prefetch.product]).cloned() else {
            return vec![];
        };
        let mut out = vec![];
        for (axis, (operand, part)) in [mma.a, mma.b].into_iter().zip(prefetch.parts).enumerate() {
            let MmaOperand::Shared { buffer, bases, .. } = operand else { continue };
            let fragments = Fragments {
                axis,
                buffer,
                bases,
                product: Product { fast: false, ..mma.product },
                instruction: mma.instruction,
                start: step * prefetch.own,
                load: None,
            };
            out.extend(self.gpu(block, fragments, &[acc, stage], &[(part.0, Some(part.1))]));
        }
        out
    }

    /// One instruction along K.
    fn instruction(&mut self, prefetch: &OperandPrefetch, sum: ValueId, operands: &[ValueId]) -> ValueId {
        let product = &self.kernel.func().insts[prefetch.product];
        let Some(GpuOp::Mma(whole)) = GpuOp::of(product) else { return sum };
        let mma = Mma {
            a: MmaOperand::Registers,
            b: MmaOperand::Registers,
            product: Product { k: prefetch.own, ..whole.product },
            instruction: whole.instruction,
            asynchronous: false,
            promote_every: None,
        };
        let operands = [sum].into_iter().chain(operands.iter().copied()).collect();
        let inst = GpuOp::from(mma).inst(operands, product.loc);
        let (ty, layout) = prefetch.acc;
        self.edit.add(self.plan.body, inst, &[(ty, Some(layout))]).1.first().copied().unwrap_or(sum)
    }
}
