//! Emits control flow, program indices, hints and asserts.

use std::ops::Range;

use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{
    BasicValue, BasicValueEnum, InstructionOpcode, InstructionValue, IntValue, PhiValue, VectorValue,
};
use tk_gpu::ir::op::GpuOp;
use tk_gpu::ir::warps::takes_turns;
use tk_ops::{ControlOp, Op};
use tk_tile::{BlockId, Def, Inst, Type, ValueId, rewrite, walk};

use super::value::{Tile, Val, View};
use super::{Emit, Res, Stop, bug};
use crate::target::Failing;

impl<'c> Emit<'_, 'c> {
    pub(super) fn control(&mut self, inst: &Inst, op: ControlOp) -> Res<()> {
        let axis =
            || inst.attrs.int("axis").and_then(|a| u32::try_from(a).ok()).filter(|a| *a < 3).unwrap_or(0);
        match op {
            ControlOp::ProgramId => {
                let (r, x) = (self.result(inst)?, self.target.program_id(self, axis())?);
                self.define(r, Val::Scalar(x.into()));
                Ok(())
            }
            ControlOp::NumPrograms => {
                let [x, y, z] = self.programs;
                let n = [x, y, z].into_iter().nth(axis() as usize).unwrap_or(x);
                let r = self.result(inst)?;
                self.define(r, Val::Scalar(n.into()));
                Ok(())
            }
            ControlOp::For => self.for_loop(inst),
            ControlOp::While => self.while_loop(inst),
            ControlOp::If => self.branch(inst),
            ControlOp::Map => self.map(inst),
            ControlOp::MultipleOf | ControlOp::MaxContiguous => self.alias(inst),
            // A promise that this code generator does not use.
            ControlOp::Assume => Ok(()),
            ControlOp::Assert => self.assert(inst),
            ControlOp::GridBarrier => self.target.grid_barrier(self),
            ControlOp::GlobalTimer => {
                let (r, x) = (self.result(inst)?, self.target.global_timer(self)?);
                self.define(r, Val::Scalar(x.into()));
                Ok(())
            }
            ControlOp::SmId => {
                let (r, x) = (self.result(inst)?, self.target.multiprocessor(self)?);
                self.define(r, Val::Scalar(x.into()));
                Ok(())
            }
            ControlOp::InlineAsm => self.inline_asm(inst),
            ControlOp::Print => self.print(inst),
            ControlOp::Call => bug("a call was not inlined"),
            ControlOp::Yield | ControlOp::Condition | ControlOp::Return => {
                bug("a terminator is no instruction")
            }
        }
    }

    /// The LLVM values of a value, in the order of [`Emit::whole`].
    pub(super) fn parts(&self, v: ValueId) -> Res<Vec<BasicValueEnum<'c>>> {
        Ok(match self.value(v)? {
            Val::Scalar(x) => vec![*x],
            Val::Tile(_) => self.registers(v)?,
            Val::View(view) => {
                let mut parts: Vec<BasicValueEnum<'c>> = vec![view.base.into()];
                parts.extend(view.extents.iter().chain(&view.strides).map(|x| BasicValueEnum::from(*x)));
                parts
            }
        })
    }

    /// The value with the type and layout of `like` from its LLVM values.
    fn whole(&self, like: ValueId, parts: &[BasicValueEnum<'c>]) -> Res<Val<'c>> {
        let missing = || Stop::Bug("a value has too few parts".into());
        Ok(match self.ty(like) {
            Type::View { rank, elem, .. } => {
                let rank = *rank as usize;
                let ints: Vec<IntValue<'c>> = parts.iter().map(|p| p.into_int_value()).collect();
                let (base, rest) = ints.split_first().ok_or_else(missing)?;
                let (extents, strides) = rest.split_at_checked(rank).ok_or_else(missing)?;
                let bytes = super::value::element_bytes(elem);
                Val::View(View { base: *base, extents: extents.to_vec(), strides: strides.to_vec(), bytes })
            }
            Type::Tile { shape, .. } if shape.is_empty() => Val::Scalar(*parts.first().ok_or_else(missing)?),
            Type::Tile { .. } => Val::Tile(Tile::regs(parts.to_vec())),
        })
    }

    /// Phis for the parts of values, with incoming values from the current block.
    fn phis(&self, types: &[BasicTypeEnum<'c>]) -> Res<Vec<PhiValue<'c>>> {
        types.iter().map(|t| Ok(self.builder.build_phi(*t, "")?)).collect()
    }

    fn all_parts(&self, values: &[ValueId]) -> Res<Vec<Vec<BasicValueEnum<'c>>>> {
        values.iter().map(|v| self.parts(*v)).collect()
    }

    /// Defines values from phis, each from as many as it has parts.
    fn define_phis(&mut self, values: &[ValueId], counts: &[usize], phis: &[PhiValue<'c>]) -> Res<()> {
        let parts: Vec<_> = phis.iter().map(|p| p.as_basic_value()).collect();
        self.define_parts(values, counts, &parts)
    }

    /// Defines values, each from as many parts as it has.
    fn define_parts(
        &mut self,
        values: &[ValueId],
        counts: &[usize],
        parts: &[BasicValueEnum<'c>],
    ) -> Res<()> {
        let mut rest = parts;
        for (v, n) in values.iter().zip(counts) {
            let (own, more) = rest.split_at_checked(*n).ok_or_else(|| Stop::Bug("too few parts".into()))?;
            let val = self.whole(*v, own)?;
            self.define(*v, val);
            rest = more;
        }
        Ok(())
    }

    /// The current block of the builder.
    pub fn here(&self) -> Res<inkwell::basic_block::BasicBlock<'c>> {
        self.builder.get_insert_block().ok_or_else(|| Stop::Bug("no block is open".into()))
    }

    /// Appends a block to the function.
    pub fn new_block(&self, name: &str) -> inkwell::basic_block::BasicBlock<'c> {
        self.context.append_basic_block(self.function, name)
    }

    /// A scalar of the program, which is uniform, in the form on which the target branches. Scalars in a function of
    /// elements are not uniform.
    pub(super) fn uniform(&self, x: IntValue<'c>) -> Res<IntValue<'c>> {
        if self.nested.is_some() || x.is_const() { Ok(x) } else { self.target.uniform(self, x) }
    }

    /// Returns true for a branch that one thread of a warp takes.
    fn is_election(&self, inst: &Inst) -> bool {
        let Some(Def::Inst(id, _)) = inst.operands.first().map(|v| self.func().values[*v].def) else {
            return false;
        };
        matches!(GpuOp::of(&self.func().insts[id]), Some(GpuOp::Elect(_)))
    }

    /// The operands of the terminator of a block.
    fn ends(&self, block: BlockId) -> Vec<ValueId> {
        rewrite::yielded(self.func(), block).to_vec()
    }

    /// Counts in 64 bits, so that the last step does not overflow. A step of 0 executes no iteration.
    fn for_loop(&mut self, inst: &Inst) -> Res<()> {
        let ([lo, hi, step, init @ ..], [body]) = (inst.operands.as_slice(), inst.blocks.as_slice()) else {
            return bug("a loop has bounds and a body");
        };
        let b = self.builder;
        let [lo, hi, by] = [self.wide(*lo)?, self.wide(*hi)?, self.wide(*step)?];
        let (lo, hi, by) = (self.uniform(lo)?, self.uniform(hi)?, self.uniform(by)?);
        let args = self.func().blocks[*body].args.clone();
        let Some((counter, carried)) = args.split_first() else { return bug("a loop counts") };
        let start = self.all_parts(init)?;
        let counts: Vec<usize> = start.iter().map(Vec::len).collect();
        let start: Vec<BasicValueEnum<'c>> = start.into_iter().flatten().collect();
        let types: Vec<_> = start.iter().map(|x| x.get_type()).collect();
        // Where the test is at the end, the values of an iteration are those of the next one, without copies.
        let keeps_vectors = self.target.keeps_vectors(self);
        // Lanes of a warpgroup lack registers for counters of 64 bits.
        let at_end = keeps_vectors || self.group.is_some();
        let header = self.new_block("for");
        let inside = if at_end { header } else { self.new_block("iteration") };
        let after = self.new_block("end");
        let goes = if at_end { Some(self.uniform(self.goes(lo, hi, by)?)?) } else { None };
        let narrow = self.zero(self.dtype(*counter)).into_int_value().get_type();
        let runs_ahead = keeps_vectors && self.loads_run_ahead(*body);
        let may_be_short = at_end && narrow.get_bit_width() == 32 && by.is_const();
        let is_short = may_be_short && (runs_ahead || self.group.is_some());
        let before = self.here()?;
        let ahead =
            runs_ahead.then(|| self.ahead_loop((*counter, *body), inst, [lo, by], [before, header, after]));
        let counts_up = ahead.as_ref().is_some_and(|a| a.counts_up);
        self.go(goes, [header, after])?;
        b.position_at_end(header);
        let iv = b.build_phi(self.i64(), "")?;
        iv.add_incoming(&[(&lo, before)]);
        let phis = self.phis(&types)?;
        for (p, x) in phis.iter().zip(&start) {
            p.add_incoming(&[(x, before)]);
        }
        let at = iv.as_basic_value().into_int_value();
        self.note_counter(inst, at);
        if !at_end {
            b.build_conditional_branch(self.goes(at, hi, by)?, inside, after)?;
            b.position_at_end(inside);
        }
        let count = b.build_int_truncate_or_bit_cast(at, narrow, "")?;
        self.define(*counter, Val::Scalar(count.into()));
        self.define_phis(carried, &counts, &phis)?;
        if ahead.is_some() {
            self.hide_pointers(carried)?;
        }
        let outer = std::mem::replace(&mut self.ahead, ahead);
        self.loop_body(*body).and_then(|()| self.end_iteration())?;
        let ahead = std::mem::replace(&mut self.ahead, outer);
        ahead.iter().try_for_each(|a| self.advance_addresses(a))?;
        let next: Vec<_> = self.all_parts(&self.ends(*body))?.into_iter().flatten().collect();
        let end = self.here()?;
        let more = b.build_int_nsw_add(at, by, "")?;
        iv.add_incoming(&[(&more, end)]);
        for (p, x) in phis.iter().zip(&next) {
            p.add_incoming(&[(x, end)]);
        }
        let another = match (at_end, is_short) {
            (true, true) => Some(self.uniform(self.follows((count, narrow), hi, by, counts_up)?)?),
            (true, false) => Some(self.uniform(self.goes(more, hi, by)?)?),
            (false, _) => None,
        };
        let left = self.leave_loop(*body, after)?;
        let back = self.go(another, [header, left])?;
        crate::module::keep_rolled(self.context, back);
        b.position_at_end(after);
        if !at_end {
            return self.define_phis(&inst.results, &counts, &phis);
        }
        let left = if left == after { end } else { left };
        let results = self.carried_vectors(&phis, [(&start, before), (&next, end)], [left, after])?;
        if self.lacks_registers(start.len()) {
            self.forget_thread(results.first().copied())?;
        }
        self.define_parts(&inst.results, &counts, &results)
    }

    /// Returns true if so many registers of a lane are half of what it has, or a tile in a lane of a warpgroup, which has fewer.
    fn lacks_registers(&self, carried: usize) -> bool {
        2 * carried >= self.kernel.options.spec.registers as usize || self.group.is_some() && carried >= 16
    }

    /// Notes the counter of a loop, if targets know that it is uniform: not one that begins with a number of a warpgroup.
    fn note_counter(&mut self, inst: &Inst, at: IntValue<'c>) {
        if !takes_turns(self.func(), inst) {
            self.counters.push(at);
        }
    }

    /// Goes to the first of two blocks, or to the second one where a condition does not hold.
    fn go(
        &self,
        condition: Option<IntValue<'c>>,
        [to, other]: [BasicBlock<'c>; 2],
    ) -> Res<InstructionValue<'c>> {
        Ok(match condition {
            Some(condition) => self.builder.build_conditional_branch(condition, to, other)?,
            None => self.builder.build_unconditional_branch(to)?,
        })
    }

    /// Carries what is a vector at the end of an iteration as one, in the place of the phis of its elements: registers of
    /// vectors are then the same in every iteration. Gives the values after the loop, whose phis begin `after`.
    fn carried_vectors(
        &self,
        phis: &[PhiValue<'c>],
        from: [(&[BasicValueEnum<'c>], BasicBlock<'c>); 2],
        [left, after]: [BasicBlock<'c>; 2],
    ) -> Res<Vec<BasicValueEnum<'c>>> {
        let b = self.builder;
        let [(_, before), (next, _)] = from;
        let vectors = match self.target.keeps_vectors(self) {
            true => vectors(std::iter::once(next), usize::MAX),
            false => vec![],
        };
        let mut incoming = vec![];
        for (parts, block) in from {
            match block.get_terminator() {
                Some(end) => b.position_before(&end),
                None => b.position_at_end(block),
            }
            incoming.push((self.with_vectors(parts, &vectors)?, block));
        }
        let merge = |types: &[BasicTypeEnum<'c>]| -> Res<Vec<BasicValueEnum<'c>>> {
            let merged = self.phis(types)?;
            for ((parts, _), block) in incoming.iter().zip([before, left]) {
                merged.iter().zip(parts).for_each(|(p, x)| p.add_incoming(&[(x, block)]));
            }
            Ok(merged.iter().map(|p| p.as_basic_value()).collect())
        };
        let types: Vec<_> =
            incoming.first().map_or(vec![], |(p, _)| p.iter().map(|x| x.get_type()).collect());
        let mut elements = vec![];
        for range in &vectors {
            let old = phis.get(range.clone()).unwrap_or_default();
            let Some(first) = old.first().map(|p| p.as_instruction()) else { continue };
            let Some(header) = first.get_parent() else { return bug("a phi is in no block") };
            b.position_before(&first);
            let at = out_index(range, &vectors);
            let vector =
                b.build_phi(*types.get(at).ok_or_else(|| Stop::Bug("a vector has no type".into()))?, "")?;
            for (parts, block) in &incoming {
                let x = parts.get(at).ok_or_else(|| Stop::Bug("a vector is missing".into()))?;
                vector.add_incoming(&[(x, *block)]);
            }
            let inner = header.get_instructions().find(|i| i.get_opcode() != InstructionOpcode::Phi);
            inner.into_iter().for_each(|i| b.position_before(&i));
            for (i, p) in old.iter().enumerate() {
                let whole = vector.as_basic_value().into_vector_value();
                let element = b.build_extract_element(whole, self.int(i as u32), "")?;
                let Some(element) = element.as_instruction_value() else { return bug("an element is none") };
                elements.push((p.as_instruction(), element));
            }
        }
        b.position_at_end(after);
        let merged = merge(&types)?;
        let results = self.without_vectors(&merged, &vectors)?;
        // What goes into the new phis may be an old one.
        for (old, new) in elements {
            old.replace_all_uses_with(&new);
            old.erase_from_basic_block();
        }
        Ok(results)
    }

    /// Whether a loop has an iteration with this counter.
    fn goes(&self, at: IntValue<'c>, hi: IntValue<'c>, by: IntValue<'c>) -> Res<IntValue<'c>> {
        let (b, zero) = (self.builder, self.long(0));
        let up = b.build_int_compare(IntPredicate::SLT, at, hi, "")?;
        let down = b.build_int_compare(IntPredicate::SGT, at, hi, "")?;
        let rises = b.build_int_compare(IntPredicate::SGT, by, zero, "")?;
        let falls = b.build_int_compare(IntPredicate::SLT, by, zero, "")?;
        Ok(b.build_or(b.build_and(rises, up, "")?, b.build_and(falls, down, "")?, "")?)
    }

    fn while_loop(&mut self, inst: &Inst) -> Res<()> {
        let [decides, body] = inst.blocks.as_slice() else { return bug("a loop decides and runs") };
        let b = self.builder;
        let start = self.all_parts(&inst.operands)?;
        let counts: Vec<usize> = start.iter().map(Vec::len).collect();
        let start: Vec<BasicValueEnum<'c>> = start.into_iter().flatten().collect();
        let types: Vec<_> = start.iter().map(|x| x.get_type()).collect();
        let before = self.here()?;
        let (header, inside, after) =
            (self.new_block("while"), self.new_block("iteration"), self.new_block("end"));
        b.build_unconditional_branch(header)?;
        b.position_at_end(header);
        let phis = self.phis(&types)?;
        for (p, x) in phis.iter().zip(&start) {
            p.add_incoming(&[(x, before)]);
        }
        let args = self.func().blocks[*decides].args.clone();
        self.define_phis(&args, &counts, &phis)?;
        let waits = inst.blocks.iter().any(|b| self.is_atomic(*b));
        self.target.loop_header(self, waits)?;
        self.block(*decides)?;
        let ends = self.ends(*decides);
        let Some((goes, forwarded)) = ends.split_first() else { return bug("a loop decides") };
        let goes = self.uniform(self.scalar(*goes)?.into_int_value())?;
        b.build_conditional_branch(goes, inside, after)?;
        b.position_at_end(inside);
        let inner = self.func().blocks[*body].args.clone();
        let vals = forwarded.iter().map(|v| self.value(*v).cloned()).collect::<Res<Vec<_>>>()?;
        for (v, val) in inner.iter().zip(&vals) {
            self.define(*v, val.clone());
        }
        self.block(*body)?;
        let next: Vec<_> = self.all_parts(&self.ends(*body))?.into_iter().flatten().collect();
        let end = self.here()?;
        for (p, x) in phis.iter().zip(&next) {
            p.add_incoming(&[(x, end)]);
        }
        b.build_unconditional_branch(header)?;
        b.position_at_end(after);
        for (r, val) in inst.results.iter().zip(vals) {
            self.define(*r, val);
        }
        Ok(())
    }

    /// Returns true if a block contains atomics: it may wait for other programs.
    fn is_atomic(&self, block: BlockId) -> bool {
        let ops = walk::insts_in(self.func(), block);
        ops.into_iter().any(|i| matches!(self.func().insts[i].op, Op::Atomic(_)))
    }

    fn branch(&mut self, inst: &Inst) -> Res<()> {
        let b = self.builder;
        let cond = self.scalar(self.operand(inst, 0)?)?.into_int_value();
        let is_election = self.is_election(inst);
        let cond = if is_election { cond } else { self.uniform(cond)? };
        if self.loads_without_branch(inst, cond)? {
            return Ok(());
        }
        let arms: Vec<_> = inst.blocks.iter().map(|_| self.new_block("arm")).collect();
        let after = self.new_block("end");
        let [yes, no] = arms.as_slice() else { return bug("`if` has two arms") };
        b.build_conditional_branch(cond, *yes, *no)?;
        let mut ends = vec![];
        let mut counts = vec![];
        let was_alone = self.is_alone;
        self.is_alone |= is_election;
        for (block, arm) in inst.blocks.iter().zip(&arms) {
            b.position_at_end(*arm);
            self.uniform_cursors(*block)?;
            self.block(*block)?;
            let parts = self.all_parts(&self.ends(*block))?;
            counts = parts.iter().map(Vec::len).collect();
            ends.push((parts.into_iter().flatten().collect::<Vec<_>>(), self.here()?));
        }
        self.is_alone = was_alone;
        let vectors = match self.target.keeps_vectors(self) {
            true => vectors(ends.iter().map(|(parts, _)| parts.as_slice()), 32),
            false => vec![],
        };
        for (parts, from) in &mut ends {
            b.position_at_end(*from);
            *parts = self.with_vectors(parts, &vectors)?;
            b.build_unconditional_branch(after)?;
        }
        b.position_at_end(after);
        let types: Vec<_> = ends.first().map_or(vec![], |(p, _)| p.iter().map(|x| x.get_type()).collect());
        let phis = self.phis(&types)?;
        for (parts, from) in &ends {
            for (p, x) in phis.iter().zip(parts) {
                p.add_incoming(&[(x, *from)]);
            }
        }
        let merged: Vec<_> = phis.iter().map(|p| p.as_basic_value()).collect();
        // What an arm has forgotten behind a loop.
        if self.group.is_some() && self.lacks_registers(merged.len()) {
            self.forget_thread(merged.first().copied())?;
        }
        self.define_parts(&inst.results, &counts, &self.without_vectors(&merged, &vectors)?)
    }

    /// The parts with each of these ranges as one vector in the place of its first one.
    fn with_vectors(
        &self,
        parts: &[BasicValueEnum<'c>],
        vectors: &[Range<usize>],
    ) -> Res<Vec<BasicValueEnum<'c>>> {
        let (mut out, mut rest) = (vec![], 0);
        for range in vectors {
            let (before, inside) = (parts.get(rest..range.start), parts.get(range.clone()));
            let (Some(before), Some(inside)) = (before, inside) else { return bug("a vector has no parts") };
            out.extend_from_slice(before);
            out.push(self.as_vector(inside)?.into());
            rest = range.end;
        }
        out.extend_from_slice(parts.get(rest..).unwrap_or_default());
        Ok(out)
    }

    /// The opposite of [`Emit::with_vectors`].
    fn without_vectors(
        &self,
        packed: &[BasicValueEnum<'c>],
        vectors: &[Range<usize>],
    ) -> Res<Vec<BasicValueEnum<'c>>> {
        let mut out = vec![];
        for x in packed {
            match vectors.iter().find(|v| v.start == out.len()) {
                Some(range) => {
                    for i in 0..range.len() as u32 {
                        let vector = x.into_vector_value();
                        out.push(self.builder.build_extract_element(vector, self.int(i), "")?);
                    }
                }
                None => out.push(*x),
            }
        }
        Ok(out)
    }

    /// These numbers as a vector.
    pub(super) fn as_vector(&self, parts: &[BasicValueEnum<'c>]) -> Res<VectorValue<'c>> {
        whole_vector(parts).map_or_else(|| self.vector_of_parts(parts), Ok)
    }

    fn vector_of_parts(&self, parts: &[BasicValueEnum<'c>]) -> Res<VectorValue<'c>> {
        let Some(first) = parts.first() else { return bug("a vector has no parts") };
        let count = parts.len() as u32;
        let ty = match first.get_type() {
            BasicTypeEnum::FloatType(t) => t.vec_type(count),
            BasicTypeEnum::IntType(t) => t.vec_type(count),
            _other => return bug("a vector is of numbers"),
        };
        let mut out = ty.get_poison();
        for (i, x) in parts.iter().enumerate() {
            out = self.builder.build_insert_element(out, *x, self.int(i as u32), "")?;
        }
        Ok(out)
    }

    /// Fails at the first element that is false, in the order of the interpreter.
    fn assert(&mut self, inst: &Inst) -> Res<()> {
        let x = self.operand(inst, 0)?;
        let b = self.builder;
        let shape = self.shape(x);
        let mut first: Option<(IntValue<'c>, IntValue<'c>)> = None;
        for (n, condition) in self.registers(x)?.into_iter().enumerate() {
            let mut fails = b.build_not(condition.into_int_value(), "")?;
            let mut element = self.int(0);
            if !shape.is_empty() {
                let layout = self.layout_id(x)?;
                if let Some(real) = self.is_real(layout, shape, n)? {
                    fails = b.build_and(fails, real, "")?;
                }
                element = self.position(layout, shape, n)?;
            }
            first = Some(match first {
                None => (fails, element),
                Some((before, at)) => {
                    let below = b.build_int_compare(IntPredicate::ULT, element, at, "")?;
                    let none = b.build_not(before, "")?;
                    let takes = b.build_and(fails, b.build_or(none, below, "")?, "")?;
                    let at = b.build_select(takes, element, at, "")?.into_int_value();
                    (b.build_or(before, fails, "")?, at)
                }
            });
        }
        let Some((fails, element)) = first else { return Ok(()) };
        // In a function of elements each thread has elements of its own, or combines what no other thread does.
        let own = match (self.nested, shape.is_empty()) {
            (Some(_), _) => None,
            (None, true) => self.is_first(None)?,
            (None, false) => self.is_first(Some(self.layout_id(x)?))?,
        };
        let own = self.both(Some(fails), own)?.unwrap_or(fails);
        let text = inst.attrs.str("message").unwrap_or("");
        self.target.assert(self, &Failing { fails, own, element, text, shape })
    }

    /// Executes `act` only where a predicate is true; `None` is always true.
    pub fn act_where(&self, predicate: Option<IntValue<'c>>, act: impl FnOnce() -> Res<()>) -> Res<()> {
        let Some(p) = predicate else { return act() };
        let (inside, after) = (self.new_block("lane"), self.new_block("all"));
        self.builder.build_conditional_branch(p, inside, after)?;
        self.builder.position_at_end(inside);
        act()?;
        self.builder.build_unconditional_branch(after)?;
        self.builder.position_at_end(after);
        Ok(())
    }
}

/// The vector of small elements of which these are all elements, in order.
fn whole_vector<'c>(parts: &[BasicValueEnum<'c>]) -> Option<VectorValue<'c>> {
    let of = |part: &BasicValueEnum<'c>| {
        let inst =
            part.as_instruction_value().filter(|i| i.get_opcode() == InstructionOpcode::ExtractElement)?;
        let (vector, at) = (inst.get_operand(0)?.value()?, inst.get_operand(1)?.value()?);
        Some((vector.into_vector_value(), at.into_int_value().get_zero_extended_constant()?))
    };
    let (vector, _) = of(parts.first()?)?;
    let whole = vector.get_type().get_size() as usize == parts.len();
    let all = parts.iter().enumerate().all(|(i, p)| of(p) == Some((vector, i as u64)));
    (whole && all).then_some(vector)
}

/// The place of a vector among the parts with vectors.
fn out_index(range: &Range<usize>, vectors: &[Range<usize>]) -> usize {
    let before: usize = vectors.iter().filter(|v| v.start < range.start).map(|v| v.len() - 1).sum();
    range.start - before
}

/// The parts that some block has as all elements of a vector of elements with fewer than so many bits.
fn vectors<'c, 'p>(
    blocks: impl Iterator<Item = &'p [BasicValueEnum<'c>]> + Clone,
    bits: usize,
) -> Vec<Range<usize>>
where
    'c: 'p,
{
    let count = blocks.clone().map(<[_]>::len).min().unwrap_or(0);
    let (mut out, mut at) = (vec![], 0);
    while at < count {
        let size = |parts: &'p [BasicValueEnum<'c>]| {
            let inst = parts.get(at)?.as_instruction_value()?;
            let ty = inst.get_operand(0)?.value()?.get_type();
            let BasicTypeEnum::VectorType(ty) = ty else { return None };
            let small = match ty.get_element_type() {
                BasicTypeEnum::IntType(t) => (t.get_bit_width() as usize) < bits,
                BasicTypeEnum::FloatType(t) => (t.get_bit_width() as usize) < bits,
                _other => false,
            };
            let range = at..at + ty.get_size() as usize;
            (small && range.end <= count && whole_vector(parts.get(range.clone())?).is_some())
                .then_some(range)
        };
        match blocks.clone().find_map(size) {
            Some(range) => {
                at = range.end;
                out.push(range);
            }
            None => at += 1,
        }
    }
    out
}
