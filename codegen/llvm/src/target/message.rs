//! Communication of programs on GPUs with their launch, and each other: records of `print` and of failed asserts, the
//! end of a launch, grid barriers. Their form, and the layout of control memory, is that of [`tk_tile::message`].
//!
//! A program in which an assert fails ends: its threads agree on that at the assert, and leave together, so that
//! nothing after the assert is executed and no thread waits for one that has left. Programs that wait for others, at a
//! grid barrier or in a loop with atomics, read a flag and end as well. So a launch that failed ends by itself, and
//! costs neither the context nor the process. In a function of elements threads are not together: there one that fails
//! reports it and continues.

use std::cell::{Cell, RefCell};

use inkwell::IntPredicate;
use inkwell::values::{IntValue, PointerValue};
use tk_gpu::Kernel;
use tk_ops::{ControlOp, Op};
use tk_tile::message::{Form, Kind as MessageKind, Message, control, record};
use tk_tile::{Loc, walk};

use super::{Access, Failing, Space, Start, TargetEmitter};
use crate::emit::{Emit, Res, bug};
use crate::target::request::PrintedPart;

/// The reasons for which a kernel has control memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// It prints.
    pub prints: bool,
    /// It asserts.
    pub asserts: bool,
    /// Its programs synchronize.
    pub has_grid_barrier: bool,
}

impl Needs {
    /// Those of this kernel.
    pub fn of(kernel: &Kernel) -> Needs {
        let func = kernel.func();
        let has = |op| walk::insts(func).into_iter().any(|i| func.insts[i].op == Op::Control(op));
        let (prints, asserts) = (has(ControlOp::Print), has(ControlOp::Assert));
        Needs { prints, asserts, has_grid_barrier: has(ControlOp::GridBarrier) }
    }

    /// Returns true if it has control memory.
    pub fn any(self) -> bool {
        self.prints || self.asserts || self.has_grid_barrier
    }
}

/// A 64-bit word at an address.
fn access<'c>(
    e: &Emit<'_, 'c>,
    address: IntValue<'c>,
    offset: i64,
    predicate: Option<IntValue<'c>>,
) -> Access<'c> {
    Access { predicate, ..Access::of(address, offset, e.i64().into(), 8, 1) }
}

/// The message state of a program during emission; collects the messages to which records refer by number.
#[derive(Debug, Default)]
pub struct MessageBuffer<'c> {
    /// The source position of the next instructions.
    pub loc: Cell<Option<Loc>>,
    needs: Cell<Needs>,
    /// The address of control memory, if the kernel has some.
    control: Cell<Option<IntValue<'c>>>,
    /// Counts the lines that a thread prints.
    line: Cell<Option<PointerValue<'c>>>,
    messages: RefCell<Vec<Message>>,
}

impl<'c> MessageBuffer<'c> {
    /// Begins the program, with the address of control memory if it has some.
    pub fn begin(&self, start: &Start<'_, 'c>, control: Option<IntValue<'c>>) -> Res<()> {
        self.needs.set(Needs::of(start.kernel));
        self.control.set(control);
        if control.is_some() {
            let place = start.builder.build_alloca(start.context.i32_type(), "")?;
            start.builder.build_store(place, start.context.i32_type().const_zero())?;
            self.line.set(Some(place));
        }
        Ok(())
    }

    /// The messages of the kernel.
    pub fn into_messages(self) -> Vec<Message> {
        self.messages.into_inner()
    }
}

/// The primitives that a target provides. Addresses are those of control memory.
pub trait Speaks<'c>: TargetEmitter<'c> {
    /// The message state of the program.
    fn message_buffer(&self) -> &MessageBuffer<'c>;

    /// Adds to a 64-bit counter that all programs of the launch share; returns the old value.
    fn count_up(
        &self,
        e: &Emit<'_, 'c>,
        address: IntValue<'c>,
        offset: i64,
        by: IntValue<'c>,
    ) -> Res<IntValue<'c>>;

    /// Stores 64 bits after all earlier stores of this thread; the host may read them while the kernel runs.
    fn publish(&self, e: &Emit<'_, 'c>, address: IntValue<'c>, value: IntValue<'c>) -> Res<()>;

    /// Sets a 32-bit flag that other programs read.
    fn raise(&self, e: &Emit<'_, 'c>, address: IntValue<'c>, offset: i64) -> Res<()>;

    /// Reads such a flag, 0 where the predicate is false.
    fn raised(
        &self,
        e: &Emit<'_, 'c>,
        address: IntValue<'c>,
        offset: i64,
        predicate: IntValue<'c>,
    ) -> Res<IntValue<'c>>;

    /// Returns whether a predicate is true in some thread of the program; a barrier of all of them.
    fn any(&self, e: &Emit<'_, 'c>, holds: IntValue<'c>) -> Res<IntValue<'c>>;

    /// A barrier of all threads of a program, after which the first one adds `by` to the counter of barriers and waits
    /// until its highest bit changes or, with `stops`, the flag that stops programs is set; then another barrier.
    /// Returns that flag in the first thread, 0 in others.
    fn grid_barrier_wait(
        &self,
        e: &Emit<'_, 'c>,
        address: IntValue<'c>,
        by: IntValue<'c>,
        stops: bool,
    ) -> Res<IntValue<'c>>;

    /// The address of control memory.
    fn control(&self) -> Res<IntValue<'c>> {
        match self.message_buffer().control.get() {
            Some(address) => Ok(address),
            None => bug("a kernel that says something has control memory"),
        }
    }

    /// A word of control memory that no program writes.
    fn given(&self, e: &Emit<'_, 'c>, offset: i64) -> Res<IntValue<'c>> {
        match self.load(e, Space::Global, &access(e, self.control()?, offset, None), &[])?.first() {
            Some(x) => Ok(x.into_int_value()),
            None => bug("a load gave nothing"),
        }
    }

    /// Adds to a counter of control memory; returns the old value.
    fn counted(&self, e: &Emit<'_, 'c>, offset: i64, by: IntValue<'c>) -> Res<IntValue<'c>> {
        self.count_up(e, self.control()?, offset, by)
    }

    /// Combines two halves of a word, the low one first.
    fn halves(&self, e: &Emit<'_, 'c>, low: IntValue<'c>, high: IntValue<'c>) -> Res<IntValue<'c>> {
        let (low, high) = (e.extend(low, false)?, e.extend(high, false)?);
        let high = e.builder.build_left_shift(high, e.long(32), "")?;
        Ok(e.builder.build_or(low, high, "")?)
    }

    /// The number of a new message.
    fn message(&self, text: &str, kind: MessageKind) -> u32 {
        let mut messages = self.message_buffer().messages.borrow_mut();
        messages.push(Message { text: text.to_string(), kind, loc: self.message_buffer().loc.get() });
        messages.len() as u32 - 1
    }

    /// Writes the head of a record, whose first word is written last; `parts` is their number and whether the thread
    /// leads.
    fn head(
        &self,
        e: &Emit<'_, 'c>,
        at: IntValue<'c>,
        (message, line): (u32, IntValue<'c>),
        parts: IntValue<'c>,
        body: impl FnOnce() -> Res<()>,
    ) -> Res<()> {
        let [x, y, z] = [0, 1, 2].map(|axis| self.program_id(e, axis));
        let second = self.halves(e, x?, y?)?;
        let third = self.halves(e, z?, parts)?;
        self.store(e, Space::Global, &access(e, at, 8, None), &[second.into()])?;
        self.store(e, Space::Global, &access(e, at, 16, None), &[third.into()])?;
        body()?;
        let first = self.halves(e, e.int(message + 1), line)?;
        self.publish(e, at, first)
    }

    /// The number of lines that this thread has printed.
    fn lines(&self, e: &Emit<'_, 'c>) -> Res<IntValue<'c>> {
        match self.message_buffer().line.get() {
            Some(place) => Ok(e.builder.build_load(e.i32(), place, "")?.into_int_value()),
            None => bug("lines are counted in every kernel that says something"),
        }
    }

    /// Each thread writes one record of its own parts; thread 0 always does, and counts the line if no space is left.
    fn print_line(
        &self,
        e: &Emit<'_, 'c>,
        text: &str,
        values: Vec<Form>,
        parts: &[PrintedPart<'c>],
    ) -> Res<()> {
        let b = e.builder;
        let message = self.message(text, MessageKind::Print(values));
        let line = self.lines(e)?;
        if let Some(place) = self.message_buffer().line.get() {
            b.build_store(place, b.build_int_add(line, e.int(1), "")?)?;
        }
        let mut count = e.int(0);
        for part in parts {
            let one = match part.own {
                Some(own) => b.build_int_z_extend(own, e.i32(), "")?,
                None => e.int(1),
            };
            count = b.build_int_add(count, one, "")?;
        }
        let leads = b.build_int_compare(IntPredicate::EQ, e.tid, e.int(0), "")?;
        let some = b.build_int_compare(IntPredicate::NE, count, e.int(0), "")?;
        e.act_where(Some(b.build_or(leads, some, "")?), || {
            let bytes = b.build_int_mul(e.extend(count, false)?, e.long(record::PART.into()), "")?;
            let bytes = b.build_int_add(bytes, e.long(record::HEAD.into()), "")?;
            let at = self.counted(e, control::PRINTED, bytes)?;
            let end = b.build_int_add(at, bytes, "")?;
            let capacity = self.given(e, control::PRINTS_ROOM)?;
            let fits = b.build_int_compare(IntPredicate::ULE, end, capacity, "")?;
            let (inside, full, after) = (e.new_block("fits"), e.new_block("full"), e.new_block("all"));
            b.build_conditional_branch(fits, inside, full)?;
            b.position_at_end(inside);
            let at = b.build_int_add(self.given(e, control::PRINTS)?, at, "")?;
            let lead = b.build_select(leads, e.int(record::LEADS), e.int(0), "")?.into_int_value();
            let head = b.build_or(count, lead, "")?;
            self.head(e, at, (message, line), head, || self.parts(e, at, parts))?;
            b.build_unconditional_branch(after)?;
            b.position_at_end(full);
            e.act_where(Some(leads), || self.counted(e, control::LOST, e.long(1)).map(|_| ()))?;
            b.build_unconditional_branch(after)?;
            b.position_at_end(after);
            Ok(())
        })
    }

    /// Writes this thread's own parts, one after the other.
    fn parts(&self, e: &Emit<'_, 'c>, at: IntValue<'c>, parts: &[PrintedPart<'c>]) -> Res<()> {
        let b = e.builder;
        let mut at = b.build_int_add(at, e.long(record::HEAD.into()), "")?;
        for part in parts {
            let first = self.halves(e, e.int(part.value), part.position)?;
            self.store(e, Space::Global, &access(e, at, 0, part.own), &[first.into()])?;
            self.store(e, Space::Global, &access(e, at, 8, part.own), &[part.bits.into()])?;
            let by = match part.own {
                Some(own) => {
                    let (some, none) = (e.long(record::PART.into()), e.long(0));
                    b.build_select(own, some, none, "")?.into_int_value()
                }
                None => e.long(record::PART.into()),
            };
            at = b.build_int_add(at, by, "")?;
        }
        Ok(())
    }

    /// Reports the element that fails, and ends the program if one does.
    fn assert_holds(&self, e: &Emit<'_, 'c>, failing: &Failing<'_, 'c>) -> Res<()> {
        let b = e.builder;
        let message = self.message(failing.text, MessageKind::Assert(failing.shape.to_vec()));
        e.act_where(Some(failing.own), || {
            let bytes = e.long((record::HEAD + record::PART).into());
            let at = self.counted(e, control::FAILED, bytes)?;
            let end = b.build_int_add(at, bytes, "")?;
            let capacity = self.given(e, control::ASSERTS_ROOM)?;
            let fits = b.build_int_compare(IntPredicate::ULE, end, capacity, "")?;
            e.act_where(Some(fits), || {
                let at = b.build_int_add(self.given(e, control::ASSERTS)?, at, "")?;
                self.head(e, at, (message, self.lines(e)?), e.int(1), || {
                    let part = self.halves(e, e.int(0), failing.element)?;
                    let first = access(e, at, record::HEAD.into(), None);
                    self.store(e, Space::Global, &first, &[part.into()])?;
                    let second = Access { offset: first.offset + 8, ..first };
                    self.store(e, Space::Global, &second, &[e.long(0).into()])
                })
            })?;
            self.raise(e, self.control()?, control::STOP)
        })?;
        if e.nested.is_some() {
            return Ok(());
        }
        let any = if failing.shape.is_empty() { failing.fails } else { self.any(e, failing.fails)? };
        self.leave(e, any)
    }

    /// Ends the program if this is true, which must be uniform.
    fn leave(&self, e: &Emit<'_, 'c>, goes: IntValue<'c>) -> Res<()> {
        let (left, on) = (e.new_block("left"), e.new_block("on"));
        e.builder.build_conditional_branch(goes, left, on)?;
        e.builder.position_at_end(left);
        e.builder.build_return(None)?;
        e.builder.position_at_end(on);
        Ok(())
    }

    /// Ends the program if a loop may wait for a program that has ended.
    fn waits(&self, e: &Emit<'_, 'c>) -> Res<()> {
        if !self.message_buffer().needs.get().asserts || e.nested.is_some() {
            return Ok(());
        }
        let leads = e.builder.build_int_compare(IntPredicate::EQ, e.tid, e.int(0), "")?;
        let stop = self.raised(e, self.control()?, control::STOP, leads)?;
        let stop = e.builder.build_int_compare(IntPredicate::NE, stop, e.int(0), "")?;
        let any = self.any(e, stop)?;
        self.leave(e, any)
    }

    /// A barrier of all programs at a counter. Each adds one and waits until the highest bit changes; the first program
    /// adds the number that makes the sum of all exactly that bit. So the other bits are unchanged for the next barrier
    /// or launch.
    fn meet_all(&self, e: &Emit<'_, 'c>) -> Res<()> {
        let b = e.builder;
        let [x, y, z] = e.programs;
        let others = b.build_int_sub(b.build_int_mul(b.build_int_mul(x, y, "")?, z, "")?, e.int(1), "")?;
        let mut at = e.int(0);
        for axis in 0..3 {
            at = b.build_or(at, self.program_id(e, axis)?, "")?;
        }
        let is_first = b.build_int_compare(IntPredicate::EQ, at, e.int(0), "")?;
        let rest = b.build_int_sub(e.int(1 << 31), others, "")?;
        let by = b.build_select(is_first, rest, e.int(1), "")?.into_int_value();
        let stops = self.message_buffer().needs.get().asserts;
        // Writes of all threads come before the first barrier, and so before other programs read the counter.
        let stop = self.grid_barrier_wait(e, self.control()?, by, stops)?;
        if !stops {
            return Ok(());
        }
        let stop = b.build_int_compare(IntPredicate::NE, stop, e.int(0), "")?;
        let any = self.any(e, stop)?;
        self.leave(e, any)
    }
}
