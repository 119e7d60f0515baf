//! Emits exchanges between the blocks of a cluster: mbarriers of remote stores, and the halves of buffers that take turns.

use inkwell::IntPredicate;
use inkwell::values::{IntValue, PointerValue};
use tk_gpu::ir::cluster::{self, BARRIER};
use tk_gpu::ir::op::{ClusterArrive, Exchange};

use super::{Emit, Res, Stop, bug};

impl<'c> Emit<'_, 'c> {
    /// Initializes the mbarriers of buffers that other blocks fill, and tells the other blocks that this one has begun.
    pub(super) fn cluster_arrive(&mut self, op: &ClusterArrive) -> Res<()> {
        if let Some(buffer) = op.barriers {
            let count = self.kernel.buffers.get(buffer).map_or(0, |b| b.bytes / BARRIER);
            for n in 0..count {
                let phase = self.builder.build_alloca(self.i32(), "phase")?;
                self.builder.build_store(phase, self.int(0))?;
                self.phases.insert(n, phase);
            }
            self.act_where(Some(self.is_first_of_block()?), || {
                for n in 0..count {
                    self.target.mbarrier_init(self, self.mbarrier(n)?, 1)?;
                }
                self.target.mbarriers_ready(self)
            })?;
        }
        self.target.cluster_arrive(self)
    }

    /// Returns true if this is the first thread of its block.
    pub(super) fn is_first_of_block(&self) -> Res<IntValue<'c>> {
        let within = self.kernel.block_threads() - 1;
        let at = self.builder.build_and(self.tid, self.int(within), "")?;
        Ok(self.builder.build_int_compare(IntPredicate::EQ, at, self.int(0), "")?)
    }

    /// The mbarrier of this number of remote stores.
    fn mbarrier(&self, n: u32) -> Res<IntValue<'c>> {
        let Some(barriers) = cluster::barriers(self.kernel) else {
            return bug("a remote store has no barrier");
        };
        Ok(self.int(self.buffer(barriers)? + n * BARRIER))
    }

    /// The variable that counts the executions of an exchange, modulo twice its copies.
    fn executions(&self, exchange: Exchange) -> Res<PointerValue<'c>> {
        let known = self.phases.get(&exchange.barrier).copied();
        known.ok_or_else(|| Stop::Bug("a barrier was not made".into()))
    }

    /// Which copy of its buffer and its mbarrier an exchange uses now: 0 or 1. `None` if there is one.
    pub(super) fn turn(&self, exchange: Exchange) -> Res<Option<IntValue<'c>>> {
        if !exchange.alternates {
            return Ok(None);
        }
        let count = self.builder.build_load(self.i32(), self.executions(exchange)?, "")?.into_int_value();
        Ok(Some(self.builder.build_and(count, self.int(1), "")?))
    }

    /// The mbarrier that an exchange uses now.
    pub(super) fn remote_barrier(&self, exchange: Exchange) -> Res<IntValue<'c>> {
        let (b, barrier) = (self.builder, self.mbarrier(exchange.barrier)?);
        let Some(turn) = self.turn(exchange)? else { return Ok(barrier) };
        Ok(b.build_int_add(barrier, b.build_int_nuw_mul(turn, self.int(BARRIER), "")?, "")?)
    }

    /// Waits until all has arrived, and ends this execution of an exchange.
    pub(super) fn exchanged(&self, exchange: Exchange) -> Res<()> {
        let (b, barrier) = (self.builder, self.remote_barrier(exchange)?);
        let executions = self.executions(exchange)?;
        let count = b.build_load(self.i32(), executions, "")?.into_int_value();
        let copies = exchange.copies();
        let parity = b.build_right_shift(count, self.int(copies.ilog2()), false, "")?;
        self.target.mbarrier_wait(self, barrier, parity)?;
        let next = b.build_and(b.build_int_add(count, self.int(1), "")?, self.int(2 * copies - 1), "")?;
        b.build_store(executions, next)?;
        Ok(())
    }
}
