//! Accesses control memory, votes, and synchronizes with other programs on AMD GPUs.

use inkwell::IntPredicate;
use inkwell::values::IntValue;
use tk_tile::message::control;

use super::{Amdgcn, text};
use crate::emit::{Emit, Res, bug};
use crate::target::message::{MessageBuffer, Speaks};
use crate::target::{Space, TargetEmitter};

impl<'c> Speaks<'c> for Amdgcn<'c> {
    fn message_buffer(&self) -> &MessageBuffer<'c> {
        &self.message_buffer
    }

    fn count_up(
        &self,
        e: &Emit<'_, 'c>,
        address: IntValue<'c>,
        offset: i64,
        by: IntValue<'c>,
    ) -> Res<IntValue<'c>> {
        let at = self.pointer(e, Space::Global, address, offset)?;
        let add = text::modify("add", "i64", "monotonic", "agent");
        Ok(self.result(e, &add, &[at.into(), by.into()])?.into_int_value())
    }

    fn publish(&self, e: &Emit<'_, 'c>, address: IntValue<'c>, value: IntValue<'c>) -> Res<()> {
        let at = self.pointer(e, Space::Global, address, 0)?;
        self.inlined(e, &text::store("i64", 8, "release", ""), &[at.into(), value.into()]).map(|_| ())
    }

    fn raise(&self, e: &Emit<'_, 'c>, address: IntValue<'c>, offset: i64) -> Res<()> {
        let at = self.pointer(e, Space::Global, address, offset)?;
        let store = text::store("i32", 4, "monotonic", "agent");
        self.inlined(e, &store, &[at.into(), e.int(1).into()]).map(|_| ())
    }

    fn raised(
        &self,
        e: &Emit<'_, 'c>,
        address: IntValue<'c>,
        offset: i64,
        predicate: IntValue<'c>,
    ) -> Res<IntValue<'c>> {
        let flag = self.where_holds(e, Some(predicate), e.int(0).into(), || {
            let at = self.pointer(e, Space::Global, address, offset)?;
            self.result(e, &text::load("i32", 4, "monotonic", "agent"), &[at.into()])
        })?;
        Ok(flag.into_int_value())
    }

    /// Warps have no common vote: one word of shared memory is cleared, set by threads for which it is true, and read.
    fn any(&self, e: &Emit<'_, 'c>, holds: IntValue<'c>) -> Res<IntValue<'c>> {
        let b = e.builder;
        let Some(buffer) = e.kernel.vote else { return bug("warps have no buffer to vote through") };
        let vote = self.pointer(e, Space::Shared, e.int(e.buffer(buffer)?), 0)?;
        let leads = b.build_int_compare(IntPredicate::EQ, e.tid, e.int(0), "")?;
        e.act_where(Some(leads), || {
            b.build_store(vote, e.int(0))?;
            Ok(())
        })?;
        self.barrier(e)?;
        e.act_where(Some(holds), || self.inlined(e, &text::mark(), &[vote.into()]).map(|_| ()))?;
        self.barrier(e)?;
        let found = b.build_load(e.i32(), vote, "")?;
        // The next vote clears the word.
        self.barrier(e)?;
        let same = self.given(e, "llvm.amdgcn.readfirstlane", &[e.i32().into()], &[found])?;
        Ok(b.build_int_compare(IntPredicate::NE, same.into_int_value(), e.int(0), "")?)
    }

    fn grid_barrier_wait(
        &self,
        e: &Emit<'_, 'c>,
        address: IntValue<'c>,
        by: IntValue<'c>,
        stops: bool,
    ) -> Res<IntValue<'c>> {
        let b = e.builder;
        self.release_fence(e, "device")?;
        let before = e.here()?;
        let (leads, again, after) = (e.new_block("leads"), e.new_block("again"), e.new_block("met"));
        let is_first = b.build_int_compare(IntPredicate::EQ, e.tid, e.int(0), "")?;
        b.build_conditional_branch(is_first, leads, after)?;
        b.position_at_end(leads);
        let counter = self.pointer(e, Space::Global, address, control::BARRIER)?;
        let flag = self.pointer(e, Space::Global, address, control::STOP)?;
        let add = text::modify("add", "i32", "acq_rel", "agent");
        let old = self.result(e, &add, &[counter.into(), by.into()])?.into_int_value();
        b.build_unconditional_branch(again)?;
        b.position_at_end(again);
        let now = self.result(e, &text::load("i32", 4, "acquire", "agent"), &[counter.into()])?;
        let changed = b.build_xor(now.into_int_value(), old, "")?;
        let mut over = b.build_int_compare(IntPredicate::SLT, changed, e.int(0), "")?;
        let mut stop = e.int(0);
        if stops {
            let seen = self.result(e, &text::load("i32", 4, "monotonic", "agent"), &[flag.into()])?;
            stop = seen.into_int_value();
            let raised = b.build_int_compare(IntPredicate::NE, stop, e.int(0), "")?;
            over = b.build_or(over, raised, "")?;
        }
        let end = e.here()?;
        b.build_conditional_branch(over, after, again)?;
        b.position_at_end(after);
        let given = b.build_phi(e.i32(), "")?;
        given.add_incoming(&[(&e.int(0), before), (&stop, end)]);
        self.barrier(e)?;
        match given.as_basic_value() {
            inkwell::values::BasicValueEnum::IntValue(x) => Ok(x),
            _other => bug("a flag is a number"),
        }
    }
}
