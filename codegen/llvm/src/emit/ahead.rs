//! Emits loops whose loads run ahead: an iteration loads what the next one multiplies, and stores it to shared memory at its end.
//!
//! Addresses of these loads are carried from iteration to iteration and advanced by a uniform step, instead of the product of a
//! position and a stride each time. The loads are masked where there is no next iteration, so the loop has no branch.

use std::cell::{Cell, RefCell};

use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::types::IntType;
use inkwell::values::{
    AnyValueEnum, BasicValue, BasicValueEnum, InstructionOpcode, InstructionValue, IntValue, Operand,
};
use tk_gpu::ir::kernel::LayoutId;
use tk_gpu::ir::op::{BufferRef, GpuOp};
use tk_gpu::ir::shared_access::stage_index;
use tk_gpu::ir::warps::AHEAD_IN_PHASES;
use tk_ops::{ControlOp, CreateOp, ElementwiseOp, MemoryOp, Op};
use tk_tile::{BlockId, Def, Inst, InstId, ValueId, rewrite};

use super::ahead_loop::{AheadLoop, CarriedAddress, ToggledOffset};
use super::value::{Val, View};
use super::{Emit, Res};

/// Bytes of a register: loads of less are many, and their branches are better taken all at once.
const WORD: u32 = 4;
/// Registers of a lane that are few.
const FEW: u32 = 256;

impl<'c> Emit<'_, 'c> {
    /// Returns true if an iteration stores what was loaded for the next one, and asks whether there is one.
    pub(super) fn loads_run_ahead(&self, body: BlockId) -> bool {
        let stores = |i: &InstId| match GpuOp::of(&self.func().insts[*i]) {
            Some(GpuOp::SharedStore(store)) => store.ahead,
            Some(GpuOp::AsyncCopy(copy)) => copy.ahead,
            _other => false,
        };
        self.func().blocks[body].insts.iter().any(stores)
    }

    /// A loop whose loads run ahead: its counter and block, the first number and the step, and the block before it, its first
    /// one and the one after it.
    pub(super) fn ahead_loop(
        &self,
        (counter, body): (ValueId, BlockId),
        inst: &Inst,
        [lo, by]: [IntValue<'c>; 2],
        [before, header, after]: [BasicBlock<'c>; 3],
    ) -> AheadLoop<'c> {
        let operand = |n: usize| inst.operands.get(n).copied().unwrap_or(counter);
        let rises = |by| 0 < by && by < i64::from(i32::MAX);
        let earlier = self.function.get_basic_blocks().into_iter();
        AheadLoop {
            counter,
            count: (lo, by),
            end: operand(1),
            counts_up: self.axis.tile(operand(0)).non_negative
                && by.get_sign_extended_constant().is_some_and(rises),
            blocks: (before, header),
            earlier: earlier.filter(|x| ![header, after].contains(x)).collect(),
            body: (body, inst.operands.iter().skip(3).copied().collect()),
            carried: RefCell::default(),
            toggled: RefCell::default(),
            guard: None,
            order: RefCell::default(),
            opposes_phases: self.opposes_phases(body),
            is_raised: Cell::default(),
        }
    }

    /// Whether an iteration is followed by another one, for a constant step and a counter of this type.
    ///
    /// The distance from the counter to the end is a number without a sign, which has no more bits than the counter. Where no
    /// counter is negative it has a sign, and is compared in another way than for the loads, whose result would be
    /// kept for the whole iteration.
    pub(super) fn follows(
        &self,
        (at, ty): (IntValue<'c>, IntType<'c>),
        hi: IntValue<'c>,
        by: IntValue<'c>,
        counts_up: bool,
    ) -> Res<IntValue<'c>> {
        let b = self.builder;
        let (hi, by) = (b.build_int_truncate(hi, ty, "")?, b.build_int_truncate(by, ty, "")?);
        if counts_up {
            let left = b.build_int_sub(hi, b.build_int_add(at, by, "")?, "")?;
            return Ok(b.build_int_compare(IntPredicate::SGT, left, ty.const_zero(), "")?);
        }
        let falls = by.get_sign_extended_constant().is_some_and(|by| by < 0);
        let (from, to, by) = if falls { (hi, at, b.build_int_neg(by, "")?) } else { (at, hi, by) };
        let left = b.build_int_sub(to, from, "")?;
        Ok(b.build_int_compare(IntPredicate::UGT, left, by, "")?)
    }

    /// Emits an `if` that loads for the next iteration without a branch, if it is one. What the other arm gives nothing
    /// reads.
    pub(super) fn loads_without_branch(&mut self, inst: &Inst, cond: IntValue<'c>) -> Res<bool> {
        let [then, other] = *inst.blocks.as_slice() else { return Ok(false) };
        if self.ahead.is_none() || !self.is_unspecified(other) || !self.is_maskable(then)? {
            return Ok(false);
        }
        let is_ordered = self.multiplies_ahead() && self.orders_iterations();
        if is_ordered {
            self.raise_priority()?;
        }
        if self.is_in_phases() {
            // The tiles that were stored have the registers of these.
            self.target.schedules_after(self)?;
        }
        let guard = self.ahead.as_mut().and_then(|a| a.guard.replace(cond));
        self.block(then)?;
        self.ahead.iter_mut().for_each(|a| a.guard = guard);
        let given = rewrite::yielded(self.func(), then).to_vec();
        // Addresses advance between the loads, after each has read its own.
        for v in &given {
            self.advance_last(&self.parts(*v)?);
        }
        self.advance_between_loads()?;
        // The loads begin before the products, which take as long as they do.
        if is_ordered {
            self.order_loads(then)?;
        } else {
            self.target.schedules_after(self)?;
            self.raise_priority()?;
        }
        for (r, v) in inst.results.iter().zip(given) {
            let val: Val<'c> = self.value(v)?.clone();
            self.define(*r, val);
        }
        Ok(true)
    }

    /// From the loads of the next iteration to its stores to shared memory, a warp that multiplies goes before those that load and
    /// store.
    fn raise_priority(&self) -> Res<()> {
        let raises = self.multiplies_ahead() && !self.is_in_phases();
        let Some(ahead) = self.ahead.as_ref().filter(|_| raises) else { return Ok(()) };
        ahead.is_raised.set(true);
        self.target.set_priority(self, true)
    }

    /// Returns true if an iteration of the loop multiplies.
    fn multiplies_ahead(&self) -> bool {
        let multiplies = |i: &InstId| matches!(GpuOp::of(&self.func().insts[*i]), Some(GpuOp::Mma(_)));
        let body = self.ahead.as_ref().map(|a| a.body.0);
        body.is_some_and(|body| self.func().blocks[body].insts.iter().any(multiplies))
    }

    /// Returns true if an order of iterations is chosen here: lanes have registers for what is read between products (waves of 32
    /// lanes have 256), and products have no phase of their own.
    pub(super) fn orders_iterations(&self) -> bool {
        self.kernel.options.spec.registers > FEW && !self.is_in_phases()
    }

    /// Returns true in a loop whose halves of the warps are in opposite phases.
    fn is_in_phases(&self) -> bool {
        self.ahead.as_ref().is_some_and(|a| a.opposes_phases)
    }

    /// Ends the order of an iteration: what was noted is executed in groups.
    pub(super) fn order_iteration(&self) -> Res<()> {
        let Some(ahead) = &self.ahead else { return Ok(()) };
        let groups = ahead.order.take().groups(self.here()?);
        groups.into_iter().try_for_each(|(group, n)| self.target.schedule_group(self, group, n))
    }

    /// After the copies of an iteration to shared memory, for the next one: they begin before the products.
    pub(super) fn after_copies(&self) -> Res<()> {
        if self.ahead.is_some() {
            self.advance_between_loads()?;
            self.target.schedules_after(self)?;
            self.raise_priority()?;
        }
        Ok(())
    }

    /// Advances addresses here if this is the first block of the loop.
    fn advance_between_loads(&self) -> Res<()> {
        match self.ahead.as_ref().filter(|a| self.here().is_ok_and(|b| b == a.blocks.1)) {
            Some(ahead) => self.advance_carried(ahead),
            None => Ok(()),
        }
    }

    /// Where an iteration ends without stores: what it multiplies is in order, and has no priority any more.
    pub(super) fn end_iteration(&self) -> Res<()> {
        self.order_iteration()?;
        self.lower_priority()
    }

    /// Notes the loads of a block for the order of the iteration.
    fn order_loads(&self, block: BlockId) -> Res<()> {
        let Some(ahead) = &self.ahead else { return Ok(()) };
        let mut loads = 0;
        for i in &self.func().blocks[block].insts {
            let inst = &self.func().insts[*i];
            if let Op::Memory(MemoryOp::Load | MemoryOp::ViewLoad) = inst.op {
                let r = self.result(inst)?;
                loads += self.count(r)? / self.vector(inst, r)?.max(1) as usize;
            }
        }
        ahead.order.borrow_mut().load(self.here()?, loads);
        Ok(())
    }

    /// Ends it before the first store.
    pub(super) fn lower_priority(&self) -> Res<()> {
        match self.ahead.as_ref().is_some_and(|a| a.is_raised.take()) {
            true => self.target.set_priority(self, false),
            false => Ok(()),
        }
    }

    /// Returns true if a block has values that nobody reads.
    fn is_unspecified(&self, block: BlockId) -> bool {
        let unspecified =
            |i: &InstId| matches!(GpuOp::of(&self.func().insts[*i]), Some(GpuOp::Unspecified(_)));
        match self.func().blocks[block].insts.as_slice() {
            [values @ .., _] => !values.is_empty() && values.iter().all(unspecified),
            [] => false,
        }
    }

    /// Returns true if a block only computes and loads, each access a register or more of a tile, and none that asks how
    /// it is done.
    fn is_maskable(&self, block: BlockId) -> Res<bool> {
        for i in &self.func().blocks[block].insts {
            let inst = &self.func().insts[*i];
            let fits = match inst.op {
                Op::Elementwise(_) | Op::Create(_) | Op::Shape(_) => true,
                Op::Memory(MemoryOp::PtrAdd) => true,
                Op::Memory(MemoryOp::Load | MemoryOp::ViewLoad) => {
                    let r = self.result(inst)?;
                    let bytes = self.dtype(r).map_or(8, |d| d.bytes() as u32);
                    let is_wide = self.vector(inst, r)? * bytes >= WORD;
                    !self.shape(r).is_empty() && is_wide && inst.attrs.int("ragged").is_none()
                }
                Op::Control(ControlOp::Yield) => true,
                _other => false,
            };
            if !fits {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether there is an iteration for which the current loads are.
    pub fn guard(&self) -> Option<IntValue<'c>> {
        self.ahead.as_ref().and_then(|a| a.guard)
    }

    /// A length; zero if there is no iteration for which it is.
    pub(super) fn or_zero(&self, length: IntValue<'c>, asked: Option<IntValue<'c>>) -> Res<IntValue<'c>> {
        let Some(asked) = asked else { return Ok(length) };
        Ok(self.builder.build_select(asked, length, length.get_type().const_zero(), "")?.into_int_value())
    }

    /// Returns true if a position changes in the loop.
    pub(super) fn moves(&self, v: ValueId) -> Res<bool> {
        let Some(ahead) = &self.ahead else { return Ok(false) };
        Ok(!ahead.is_before(self.scalar(v)?.into_int_value()))
    }

    /// Returns true if a position is that of the iteration for which this one loads, and beyond this extent if there is none.
    pub(super) fn ends_with_loop(&self, v: ValueId, extent: IntValue<'c>) -> Res<bool> {
        let Some(ahead) = self.ahead.as_ref() else { return Ok(false) };
        Ok(self.is_next(v)? && self.scalar(ahead.end)?.into_int_value() == extent)
    }

    /// Returns true if a position is the counter of the iteration for which this one loads, and no counter is negative.
    fn is_next(&self, v: ValueId) -> Res<bool> {
        let Some(ahead) = self.ahead.as_ref().filter(|a| a.counts_up) else { return Ok(false) };
        let (_, by) = ahead.count;
        let distance = self.distance(ahead.counter, v)?;
        let far = if ahead.opposes_phases { i64::from(AHEAD_IN_PHASES) } else { 1 };
        Ok(distance.is_some_and(|d| by.get_sign_extended_constant().map(|by| far * by) == Some(d)))
    }

    /// Returns true if a mask is false for an iteration that is not executed.
    pub(super) fn ends_mask(&self, v: ValueId) -> Res<bool> {
        let Def::Inst(id, _) = self.func().values[v].def else { return Ok(false) };
        let inst = &self.func().insts[id];
        match (&inst.op, inst.operands.as_slice()) {
            (Op::Elementwise(ElementwiseOp::And), [a, b]) => Ok(self.ends_mask(*a)? || self.ends_mask(*b)?),
            _other => self.ends_comparison(v),
        }
    }

    /// The same for a comparison of numbers that are not negative with what is left from the next iteration on, in any shape.
    fn ends_comparison(&self, v: ValueId) -> Res<bool> {
        let Some(ahead) = &self.ahead else { return Ok(false) };
        let made_by = |v: ValueId| match self.func().values[v].def {
            Def::Inst(id, _) => Some(&self.func().insts[id]),
            Def::Arg(..) => None,
        };
        let Some(inst) = made_by(v) else { return Ok(false) };
        match (&inst.op, inst.operands.as_slice()) {
            (Op::Shape(_), [of]) => self.ends_comparison(*of),
            (Op::Elementwise(ElementwiseOp::Lt), [number, left]) => {
                let Some(inst) = made_by(self.splatted(*left)) else { return Ok(false) };
                let (Op::Elementwise(ElementwiseOp::Sub), [end, at]) = (&inst.op, inst.operands.as_slice())
                else {
                    return Ok(false);
                };
                Ok(*end == ahead.end && self.axis.tile(*number).non_negative && self.is_next(*at)?)
            }
            _other => Ok(false),
        }
    }

    /// The mask of one access in a form that costs one comparison in each iteration, where a mask is the conjunction of what is
    /// known before the loop and of a comparison with what is left. Nothing is left beyond the largest number, which is
    /// that of elements that are masked anyway.
    pub(super) fn with_one_comparison(
        &self,
        mask: ValueId,
        asked: IntValue<'c>,
    ) -> Res<Option<IntValue<'c>>> {
        let Some(ahead) = &self.ahead else { return Ok(None) };
        let Def::Inst(id, _) = self.func().values[mask].def else { return Ok(None) };
        let inst = &self.func().insts[id];
        let (Op::Elementwise(ElementwiseOp::And), [a, b]) = (&inst.op, inst.operands.as_slice()) else {
            return Ok(None);
        };
        let [first, second] = [self.ends_comparison(*a)?, self.ends_comparison(*b)?];
        let both = asked.as_instruction_value().filter(|i| i.get_opcode() == InstructionOpcode::And);
        let Some(both) = both.filter(|_| !ahead.is_before(asked)) else { return Ok(None) };
        let part = |of: InstructionValue<'c>, n| match of.get_operand(n).and_then(Operand::value) {
            Some(BasicValueEnum::IntValue(x)) => Some(x),
            _other => None,
        };
        let (known, compared) = match (first, second) {
            (false, true) => (part(both, 0), part(both, 1)),
            (true, false) => (part(both, 1), part(both, 0)),
            (true, true) | (false, false) => return Ok(None),
        };
        let compared = compared.and_then(|x| x.as_instruction_value());
        let compared = compared.filter(|i| i.get_icmp_predicate() == Some(IntPredicate::SLT));
        let Some((number, left)) = compared.and_then(|i| part(i, 0).zip(part(i, 1))) else { return Ok(None) };
        // A constant is compared with what is left from the number of a lane on.
        let (number, left) = match left.as_instruction_value().filter(|_| number.is_const()) {
            Some(i) if i.get_opcode() == InstructionOpcode::Call => {
                let Some((left, lane)) = part(i, 0).zip(part(i, 1)) else { return Ok(None) };
                (self.builder.build_int_add(lane, number, "")?, left)
            }
            Some(_) | None => (number, left),
        };
        match known {
            Some(known) if ahead.is_before(known) => {
                let number = self.or_largest(number, known)?;
                Ok(Some(self.builder.build_int_compare(IntPredicate::SGT, left, number, "")?))
            }
            Some(_) | None => Ok(None),
        }
    }

    /// A number that is not negative; the largest one where a condition does not hold.
    pub(super) fn or_largest(&self, number: IntValue<'c>, holds: IntValue<'c>) -> Res<IntValue<'c>> {
        let ty = number.get_type();
        let largest = ty.const_int(u64::MAX >> (65 - ty.get_bit_width()), false);
        // LLVM would make a comparison with a selected number two conditions.
        let none = self.builder.build_select(holds, ty.const_zero(), largest, "")?.into_int_value();
        Ok(self.builder.build_or(number, none, "")?)
    }

    /// The scalar of which all elements of a tile are, or the tile.
    fn splatted(&self, v: ValueId) -> ValueId {
        match self.func().values[v].def {
            Def::Inst(id, _) if self.func().insts[id].op == Op::Create(CreateOp::Splat) => {
                self.func().insts[id].operands.first().copied().unwrap_or(v)
            }
            Def::Inst(..) | Def::Arg(..) => v,
        }
    }

    /// How far a position is ahead of a counter, if that is known.
    fn distance(&self, counter: ValueId, v: ValueId) -> Res<Option<i64>> {
        if v == counter {
            return Ok(Some(0));
        }
        let Def::Inst(id, _) = self.func().values[v].def else { return Ok(None) };
        let inst = &self.func().insts[id];
        let (Op::Elementwise(ElementwiseOp::Add), [a, b]) = (&inst.op, inst.operands.as_slice()) else {
            return Ok(None);
        };
        for (at, by) in [(*a, *b), (*b, *a)] {
            let by = self.scalar(by)?.into_int_value().get_sign_extended_constant();
            if let (Some(by), Some(at)) = (by, self.distance(counter, at)?) {
                return Ok(Some(at + by));
            }
        }
        Ok(None)
    }

    /// The address of register 0 in a box of a view whose corner moves with the counter of the loop along one axis, carried by
    /// the loop. `None` if something else changes in the loop too.
    pub(super) fn carried_address(
        &self,
        view: &View<'c>,
        at: &[ValueId],
        layout: LayoutId,
    ) -> Res<Option<IntValue<'c>>> {
        let Some(ahead) = &self.ahead else { return Ok(None) };
        let (lo, _) = ahead.count;
        let mut moving = None;
        for (d, v) in at.iter().enumerate() {
            match self.distance(ahead.counter, *v)? {
                Some(by) if moving.is_none() => moving = Some((d, by)),
                None if ahead.is_before(self.scalar(*v)?.into_int_value()) => {}
                Some(_) | None => return Ok(None),
            }
        }
        let known = view.strides.iter().chain([&view.base]).all(|x| ahead.is_before(*x));
        let Some((axis, by)) = moving.filter(|_| known) else { return Ok(None) };
        let Some(stride) = view.strides.get(axis).copied() else { return Ok(None) };
        let (b, here) = (self.builder, self.here()?);
        ahead.before(b);
        let mut first = vec![];
        for (d, v) in at.iter().enumerate() {
            first.push(if d == axis { b.build_int_add(lo, self.long(by), "")? } else { self.wide(*v)? });
        }
        let threads = self.thread_coords(layout)?;
        let threads = threads.into_iter().map(|x| self.extend(x, false)).collect::<Res<Vec<_>>>()?;
        let origin = self.advanced(view, view.base, &first)?;
        let start = self.advanced(view, origin, &threads)?;
        let (phi, header) = (ahead.phi(b, start)?, ahead.blocks.1);
        match header.get_instructions().find(|i| i.get_opcode() != InstructionOpcode::Phi) {
            Some(inner) => b.position_before(&inner),
            None => b.position_at_end(header),
        }
        let opaque = self.target.opaque_address(self, phi.as_basic_value().into_int_value())?;
        b.position_at_end(here);
        ahead.carried.borrow_mut().push(CarriedAddress {
            phi,
            opaque,
            stride,
            bytes: view.bytes,
            next: None,
        });
        Ok(Some(opaque))
    }

    /// The stage of a buffer of two that a number selects: whether it is the other one than that of a value that the loop
    /// carries, which alternates, and the first one of that.
    fn alternates(&self, ahead: &AheadLoop<'c>, v: ValueId) -> Res<Option<(bool, bool)>> {
        let (body, ref first) = ahead.body;
        let other_than = |v: ValueId| -> Option<ValueId> {
            let Def::Inst(id, _) = self.func().values[v].def else { return None };
            let inst = &self.func().insts[id];
            let (Op::Elementwise(ElementwiseOp::Sub), [one, of]) = (&inst.op, inst.operands.as_slice())
            else {
                return None;
            };
            (self.axis.tile(*one).value == Some(1)).then_some(*of)
        };
        let other = other_than(v);
        let carried = other.unwrap_or(v);
        let args = self.func().blocks[body].args.iter().skip(1);
        let Some(n) = args.clone().position(|a| *a == carried) else { return Ok(None) };
        let next = rewrite::yielded(self.func(), body).get(n).copied();
        if next.and_then(other_than) != Some(carried) {
            return Ok(None);
        }
        let Some(first) = first.get(n).copied() else { return Ok(None) };
        let first = self.scalar(first)?.into_int_value().get_zero_extended_constant();
        Ok(first.filter(|n| *n < 2).map(|n| (other.is_some(), n == 1)))
    }

    /// The exclusive or of `images[i]` over the set bits i of the number of a thread, which are offsets in a stage, and the
    /// offset of the stage of a buffer that an instruction accesses, carried by the loop. Their bits are different.
    pub(super) fn toggled(
        &self,
        images: &[u64],
        inst: &Inst,
        buffer: BufferRef,
    ) -> Res<Option<IntValue<'c>>> {
        let (Some(ahead), Some(slot)) = (&self.ahead, stage_index(inst)) else { return Ok(None) };
        let stage = self.kernel.buffers.get(buffer.buffer).map_or(0, |b| b.bytes / 2);
        let inside = stage.is_power_of_two() && images.iter().all(|x| *x < stage.into());
        if buffer.count() != 2 || !inside {
            return Ok(None);
        }
        let Some((is_other, first)) = self.alternates(ahead, slot)? else { return Ok(None) };
        let of = (self.tid, images.to_vec(), is_other != first);
        if let Some(known) = ahead.toggled.borrow().iter().find(|t| t.of == of && t.stage == stage) {
            return Ok(Some(known.phi.as_basic_value().into_int_value()));
        }
        let (b, here) = (self.builder, self.here()?);
        ahead.before(b);
        let by = self.int(if of.2 { stage } else { 0 });
        let start = b.build_or(self.linear(self.tid, images)?, by, "")?;
        let phi = ahead.phi(b, start)?;
        b.position_at_end(here);
        ahead.toggled.borrow_mut().push(ToggledOffset { phi, stage, of });
        Ok(Some(phi.as_basic_value().into_int_value()))
    }

    /// Hides from LLVM how the pointers among these values advance.
    pub(super) fn hide_pointers(&mut self, carried: &[ValueId]) -> Res<()> {
        for v in carried {
            if self.dtype(*v).is_none() && !self.shape(*v).is_empty() {
                let addresses = self.registers(*v)?.into_iter().map(BasicValueEnum::into_int_value);
                let hidden = addresses.map(|x| Ok(self.target.opaque_address(self, x)?.into()));
                self.define_regs(*v, hidden.collect::<Res<_>>()?)?;
            }
        }
        Ok(())
    }

    /// Moves sums that only the next iteration reads to here: the addresses of this one have been read, and need no other
    /// registers.
    fn advance_last(&self, next: &[BasicValueEnum<'c>]) {
        let is_phi = |user| match user {
            AnyValueEnum::IntValue(x) => {
                x.as_instruction_value().is_some_and(|i| i.get_opcode() == InstructionOpcode::Phi)
            }
            _other => false,
        };
        for x in next {
            let Some(sum) = x.as_instruction_value().filter(|i| i.get_opcode() == InstructionOpcode::Add)
            else {
                continue;
            };
            let mut uses = std::iter::successors(sum.get_first_use(), |u| u.get_next_use());
            if self.here().ok() == sum.get_parent() && uses.all(|u| is_phi(u.get_user())) {
                sum.remove_from_basic_block();
                self.builder.insert_instruction(&sum, None);
            }
        }
    }

    /// Advances the addresses that have not been advanced yet.
    fn advance_carried(&self, ahead: &AheadLoop<'c>) -> Res<()> {
        let (_, by) = ahead.count;
        for carried in ahead.carried.borrow_mut().iter_mut().filter(|c| c.next.is_none()) {
            carried.next = Some(self.moved(carried.opaque, by, carried.stride, carried.bytes)?);
        }
        Ok(())
    }

    /// Advances what the loop carries, at its end.
    pub(super) fn advance_addresses(&self, ahead: &AheadLoop<'c>) -> Res<()> {
        let end = self.here()?;
        self.advance_carried(ahead)?;
        for carried in ahead.carried.borrow().iter() {
            carried.next.iter().for_each(|next| carried.phi.add_incoming(&[(next, end)]));
        }
        for toggled in ahead.toggled.borrow().iter() {
            let now = toggled.phi.as_basic_value().into_int_value();
            let next = self.builder.build_xor(now, self.int(toggled.stage), "")?;
            toggled.phi.add_incoming(&[(&next, end)]);
        }
        Ok(())
    }
}
