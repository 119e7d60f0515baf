//! Emits TMA operations and TMA pipelines: the producer warp, and the mbarriers by which it and the consumers count
//! stages.
//!
//! Both sides go through a multi-stage buffer cyclically; each thread keeps its position ([`super::cursor`]).
//!
//! Requires operations as verified in scheduled kernels. A stage has two mbarriers of eight bytes each: full, then
//! free.

use inkwell::IntPredicate;
use inkwell::values::{IntValue, PointerValue};
use tk_gpu::ir::caching::Caching;
use tk_gpu::ir::kernel::BARRIERS;
use tk_gpu::ir::op::{
    ConsumerReceive, ConsumerRelease, ConsumerSkip, ConsumerWait, GpuOp, IsProducerWarp, Multicast, Pipeline,
    ProducerAcquire, ProducerCommit, ProducerDrain, ProducerSend, TmaLoad, TmaStore, TmaStoreWait, TurnPass,
    TurnWait,
};
use tk_gpu::ir::tensor_map::{self, Position, TensorMap};
use tk_ops::{MemoryOp, Op};
use tk_tile::{Inst, ValueId, walk};

use super::state::TmaPipeline;
use super::value::Val;
use super::view::Cut;
use super::{Emit, Res, Stop, bug};
use crate::target::{Access, Lane, PlacedBox, Space};

/// Bytes of an mbarrier.
const BARRIER: u32 = BARRIERS / 2;

/// The farthest start of a box. A multiple of 16 bytes, as all starts along a line, and 2^16 elements before the end of
/// 32 bits: no tile has more along a dimension.
const FARTHEST: i64 = (1 << 31) - (1 << 16);

fn nothing() -> Stop {
    Stop::Bug("a copy lacks what it copies".into())
}

impl<'c> Emit<'_, 'c> {
    /// Initializes mbarriers and variables; returns whether this thread is of the producer warp.
    pub(super) fn producer(&mut self, inst: &Inst, op: &IsProducerWarp) -> Res<()> {
        let r = self.result(inst)?;
        let threads = self.kernel.options.threads();
        let (warps, lanes) = (self.kernel.options.all_warps(), 1u32 << threads.lane_bits);
        for Pipeline { barriers, stages, peers } in &op.pipelines {
            let tma_pipeline = TmaPipeline {
                buffer: *barriers,
                stages: *stages,
                peers: *peers,
                start: self.buffer(*barriers)?,
                fills: self.cursor(*stages, true)?,
                receives: self.cursor(*stages, false)?,
                releases: self.cursor(*stages, false)?,
            };
            self.tma_pipelines.push(tma_pipeline);
        }
        let b = self.builder;
        let turns = op.turns.map(|buffer| self.buffer(buffer)).transpose()?;
        if turns.is_some() {
            self.turn = Some(self.first_turn()?);
        }
        let first = b.build_int_compare(IntPredicate::EQ, self.thread, self.int(warps * lanes), "")?;
        self.count_together()?;
        let tma_pipelines = self.tma_pipelines.clone();
        let maps = self.maps.clone();
        self.act_where(Some(first), || {
            maps.iter().try_for_each(|map| self.target.prefetch_tensor_map(self, *map))?;
            for c in &tma_pipelines {
                for stage in 0..c.stages {
                    // One thread announces the bytes, and one thread of each warp of each block releases.
                    let of_group = 1 << threads.warp_bits;
                    let (copies, warps) = match self.has_copies(c.buffer) {
                        true => (self.kernel.options.groups, of_group),
                        false => (1, if self.skips(c) { of_group } else { warps }),
                    };
                    for copy in 0..copies {
                        let at = c.start + stage * BARRIERS + copy * self.kernel.group_bytes();
                        self.target.mbarrier_init(self, self.int(at), 1)?;
                        let releases = warps * c.peers.count_ones();
                        self.target.mbarrier_init(self, self.int(at + BARRIER), releases)?;
                    }
                }
            }
            for at in
                turns.iter().flat_map(|at| (0..self.kernel.options.groups).map(move |n| at + n * BARRIER))
            {
                // One thread of each warp of the group before passes the turn on.
                self.target.mbarrier_init(self, self.int(at), 1 << threads.warp_bits)?;
            }
            self.target.mbarriers_ready(self)
        })?;
        // The threads of a cluster meet next.
        if tma_pipelines.iter().all(|c| c.peers == 1) {
            self.target.barrier_all_warps(self)?;
        }
        let warp = b.build_right_shift(self.thread, self.int(threads.lane_bits), false, "")?;
        let warp = self.target.shuffle(self, warp, Lane::Index(self.int(0)))?;
        let brings = b.build_int_compare(IntPredicate::UGE, warp, self.int(warps), "")?;
        if self.producers > 1 {
            self.brings = Some(b.build_int_compare(IntPredicate::EQ, warp, self.int(warps), "")?);
        }
        self.define(r, Val::Scalar(brings.into()));
        Ok(())
    }

    pub(super) fn elect(&mut self, inst: &Inst) -> Res<()> {
        let r = self.result(inst)?;
        let mut one = self.target.elect(self)?;
        if let Some(brings) = self.brings {
            one = self.builder.build_and(brings, one, "")?;
        }
        self.define(r, Val::Scalar(one.into()));
        Ok(())
    }

    fn tma_pipeline(&self, pipeline: Pipeline) -> Res<TmaPipeline<'c>> {
        let found = self.tma_pipelines.iter().find(|c| c.buffer == pipeline.barriers).copied();
        found.ok_or_else(|| Stop::Bug("there is no such TMA pipeline".into()))
    }

    /// The mbarriers of a stage.
    fn barriers(&self, c: &TmaPipeline<'c>, stage: IntValue<'c>) -> Res<[IntValue<'c>; 2]> {
        let by = self.builder.build_int_mul(stage, self.int(BARRIERS), "")?;
        let full = self.builder.build_int_add(by, self.int(c.start), "")?;
        Ok([full, self.builder.build_int_add(full, self.int(BARRIER), "")?])
    }

    pub(super) fn producer_acquire(&mut self, op: &ProducerAcquire) -> Res<()> {
        let c = self.tma_pipeline(op.pipeline)?;
        let [stage, phase] = self.stage_and_phase(c.stages, &c.fills)?;
        let copy = op.group.unwrap_or(0) * self.kernel.group_bytes();
        let of_copy = |at: IntValue<'c>| self.builder.build_int_add(at, self.int(copy), "");
        let [full, free] = self.barriers(&c, stage)?;
        let (full, free) = (of_copy(full)?, of_copy(free)?);
        self.target.mbarrier_wait(self, free, phase)?;
        self.target.mbarrier_expect(self, full, op.bytes)
    }

    pub(super) fn producer_commit(&mut self, op: &ProducerCommit) -> Res<()> {
        let c = self.tma_pipeline(op.pipeline)?;
        self.advance(c.stages, &c.fills, None)
    }

    pub(super) fn producer_drain(&mut self, op: &ProducerDrain) -> Res<()> {
        let c = self.tma_pipeline(op.pipeline)?;
        let copies = if self.has_copies(c.buffer) { self.kernel.options.groups } else { 1 };
        for _ in 0..c.stages {
            let [stage, phase] = self.stage_and_phase(c.stages, &c.fills)?;
            let [_, free] = self.barriers(&c, stage)?;
            for copy in 0..copies {
                let by = self.int(copy * self.kernel.group_bytes());
                let free = self.builder.build_int_add(free, by, "")?;
                self.target.mbarrier_wait(self, free, phase)?;
            }
            self.advance(c.stages, &c.fills, None)?;
        }
        Ok(())
    }

    pub(super) fn consumer_wait(&mut self, inst: &Inst, op: &ConsumerWait) -> Res<()> {
        let (c, r) = (self.tma_pipeline(op.pipeline)?, self.result(inst)?);
        let [mut stage, phase] = self.stage_and_phase(c.stages, &c.receives)?;
        if self.turn.is_some() {
            // `ptxas` does not know that positions which differ between warpgroups are uniform in these, even if those before the
            // loop are: descriptors of products would be computed in vector registers.
            stage = self.target.shuffle(self, stage, Lane::Index(self.int(0)))?;
        }
        let [full, _] = self.barriers(&c, stage)?;
        let full = self.in_group(c.buffer, full)?;
        self.target.mbarrier_wait(self, full, phase)?;
        self.advance(c.stages, &c.receives, None)?;
        self.define(r, Val::Scalar(stage.into()));
        Ok(())
    }

    pub(super) fn consumer_release(&mut self, inst: &Inst, op: &ConsumerRelease) -> Res<()> {
        let c = self.tma_pipeline(op.pipeline)?;
        let when = match tk_gpu::ir::shared_access::predicate(inst) {
            Some(v) => Some(self.scalar(v)?.into_int_value()),
            None => None,
        };
        if op.converge {
            self.target.barrier_warp(self)?;
        }
        let lanes = 1u32 << self.kernel.options.threads().lane_bits;
        let lane = self.builder.build_and(self.tid, self.int(lanes - 1), "")?;
        // As many lanes as blocks, each in one of them.
        let blocks = self.int(c.peers.count_ones());
        let one = self.builder.build_int_compare(IntPredicate::ULT, lane, blocks, "")?;
        let arrives = match when {
            Some(when) => self.builder.build_and(one, when, "")?,
            None => one,
        };
        let [released, _] = self.stage_and_phase(c.stages, &c.releases)?;
        let [_, free] = self.barriers(&c, released)?;
        let free = self.in_group(c.buffer, free)?;
        let block = if c.peers == 1 { None } else { Some(self.peer(&c, lane)?) };
        self.target.mbarrier_arrive(self, free, block, arrives)?;
        self.advance(c.stages, &c.releases, when)
    }

    /// Where a number is that the producer tells the consumers.
    fn message(&self, number: ValueId, buffer: usize) -> Res<Access<'c>> {
        let (ty, bytes) = (self.memory_type(self.dtype(number)), self.bytes_of(number));
        Ok(Access::of(self.int(self.buffer(buffer)?), 0, ty, bytes, 1))
    }

    pub(super) fn producer_send(&mut self, inst: &Inst, op: &ProducerSend) -> Res<()> {
        let c = self.tma_pipeline(op.pipeline)?;
        let number = self.operand(inst, 0)?;
        let [stage, phase] = self.stage_and_phase(c.stages, &c.fills)?;
        let [full, free] = self.barriers(&c, stage)?;
        self.target.mbarrier_wait(self, free, phase)?;
        let value = self.scalar(number)?;
        self.target.store(self, Space::Shared, &self.message(number, op.buffer)?, &[value])?;
        let always = self.context.bool_type().const_all_ones();
        self.target.mbarrier_arrive(self, full, None, always)?;
        self.advance(c.stages, &c.fills, None)
    }

    pub(super) fn consumer_receive(&mut self, inst: &Inst, op: &ConsumerReceive) -> Res<()> {
        let (c, r) = (self.tma_pipeline(op.pipeline)?, self.result(inst)?);
        let [stage, phase] = self.stage_and_phase(c.stages, &c.receives)?;
        let [full, free] = self.barriers(&c, stage)?;
        self.target.mbarrier_wait(self, full, phase)?;
        let lanes = 1u32 << self.kernel.options.threads().lane_bits;
        let lane = self.builder.build_and(self.tid, self.int(lanes - 1), "")?;
        let one = self.builder.build_int_compare(IntPredicate::EQ, lane, self.int(0), "")?;
        let access = Access { predicate: Some(one), ..self.message(r, op.buffer)? };
        let zero = access.ty.const_zero();
        let loaded = self.target.load(self, Space::Shared, &access, &[zero])?;
        let number = loaded.first().copied().ok_or_else(nothing)?.into_int_value();
        // All lanes have seen the phase before the one that has read the number says so, and `ptxas` knows that it is the same for
        // them.
        let number = self.target.shuffle(self, number, Lane::Index(self.int(0)))?;
        self.target.mbarrier_arrive(self, free, None, one)?;
        self.advance(c.stages, &c.receives, None)?;
        self.define(r, Val::Scalar(number.into()));
        Ok(())
    }

    /// Returns true if a stage of a pipeline is consumed by one warpgroup.
    fn skips(&self, c: &TmaPipeline<'c>) -> bool {
        let func = self.func();
        walk::insts(func).into_iter().any(|i| {
            matches!(GpuOp::of(&func.insts[i]), Some(GpuOp::ConsumerSkip(op)) if op.pipeline.barriers == c.buffer)
        })
    }

    pub(super) fn consumer_skip(&mut self, inst: &Inst, op: &ConsumerSkip) -> Res<()> {
        let c = self.tma_pipeline(op.pipeline)?;
        let by = self.scalar(self.operand(inst, 0)?)?.into_int_value();
        self.skip(c.stages, &c.receives, by)?;
        self.skip(c.stages, &c.releases, by)
    }

    /// The phase for which a warpgroup waits first: the first group for the one before the first, as if the last group had
    /// passed the turn on.
    fn first_turn(&self) -> Res<PointerValue<'c>> {
        let group = self.group.unwrap_or_else(|| self.int(0));
        let is_first = self.builder.build_int_compare(IntPredicate::EQ, group, self.int(0), "")?;
        let place = self.builder.build_alloca(self.i32(), "")?;
        let phase = self.builder.build_int_z_extend(is_first, self.i32(), "")?;
        self.builder.build_store(place, phase)?;
        Ok(place)
    }

    /// The mbarrier of a warpgroup, so many after this one.
    fn turn_of(&self, buffer: usize, after: u32) -> Res<IntValue<'c>> {
        let b = self.builder;
        let group = self.group.unwrap_or_else(|| self.int(0));
        let other = b.build_int_add(group, self.int(after), "")?;
        let around =
            b.build_int_compare(IntPredicate::UGE, other, self.int(self.kernel.options.groups), "")?;
        let other = b.build_select(around, self.int(0), other, "")?.into_int_value();
        let by = b.build_int_mul(other, self.int(BARRIER), "")?;
        Ok(b.build_int_add(by, self.int(self.buffer(buffer)?), "")?)
    }

    pub(super) fn turn_wait(&mut self, op: &TurnWait) -> Res<()> {
        let Some(turn) = self.turn else { return bug("nobody takes turns") };
        let b = self.builder;
        let phase = b.build_load(self.i32(), turn, "")?.into_int_value();
        self.target.mbarrier_wait(self, self.turn_of(op.turns, 0)?, phase)?;
        b.build_store(turn, b.build_xor(phase, self.int(1), "")?)?;
        Ok(())
    }

    pub(super) fn turn_pass(&mut self, op: &TurnPass) -> Res<()> {
        // All lanes have seen the phase of their turn, which may be over once the others have theirs: a turn without products
        // does not make them wait for one another otherwise.
        self.target.barrier_warp(self)?;
        let lanes = 1u32 << self.kernel.options.threads().lane_bits;
        let lane = self.builder.build_and(self.tid, self.int(lanes - 1), "")?;
        let one = self.builder.build_int_compare(IntPredicate::EQ, lane, self.int(0), "")?;
        self.target.mbarrier_arrive(self, self.turn_of(op.turns, 1)?, None, one)
    }

    /// The rank of the block in which a lane releases a stage.
    fn peer(&self, c: &TmaPipeline<'c>, lane: IntValue<'c>) -> Res<IntValue<'c>> {
        // The differences of the ranks, four bits each.
        let differ = (0..u32::BITS).filter(|i| c.peers >> i & 1 == 1);
        let packed = (0u32..).zip(differ).fold(0, |all, (n, i)| all | i << (4 * n));
        let (b, rank) = (self.builder, self.target.cluster_rank(self)?);
        let by = b.build_left_shift(lane, self.int(2), "")?;
        // Lanes after the last block have no rank.
        let by = b.build_and(by, self.int(u32::BITS - 1), "")?;
        let differs = b.build_right_shift(self.int(packed), by, false, "")?;
        let differs = b.build_and(differs, self.int(15), "")?;
        Ok(b.build_xor(rank, differs, "")?)
    }

    /// The number of this block among those that load together, and the set of their ranks.
    fn blocks_together(&self, m: Multicast) -> Res<(IntValue<'c>, IntValue<'c>)> {
        let (b, rank) = (self.builder, self.target.cluster_rank(self)?);
        let own = (m.blocks - 1) * m.stride;
        let number = b.build_right_shift(rank, self.int(m.stride.trailing_zeros()), false, "")?;
        let number = b.build_and(number, self.int(m.blocks - 1), "")?;
        let first = b.build_and(rank, self.int(!own), "")?;
        let ranks = b.build_left_shift(self.int(m.peers()), first, "")?;
        Ok((number, b.build_int_truncate(ranks, self.context.i16_type(), "")?))
    }

    /// Starts a load to the acquired stage of a TMA pipeline.
    pub(super) fn tma_load(&mut self, inst: &Inst, op: &TmaLoad) -> Res<()> {
        let buffer = self.kernel.buffers.get(op.destination).copied().ok_or_else(nothing)?;
        let c = self.tma_pipeline(op.pipeline)?;
        let [stage, _] = self.stage_and_phase(c.stages, &c.fills)?;
        let [full, _] = self.barriers(&c, stage)?;
        let by = self.builder.build_int_mul(stage, self.int(buffer.bytes / c.stages), "")?;
        let of_group = op.group.unwrap_or(0) * self.kernel.group_bytes();
        let full = match self.has_copies(c.buffer) {
            true => self.builder.build_int_add(full, self.int(of_group), "")?,
            false => full,
        };
        let start = self.builder.build_int_add(by, self.int(buffer.offset + of_group), "")?;
        let boxes = self.boxes((inst, op.caching), start)?;
        let Some(multicast) = op.multicast else {
            return boxes.iter().try_for_each(|what| self.target.tma_load(self, what, full, None));
        };
        let (number, ranks) = self.blocks_together(multicast)?;
        let each = (boxes.len() / multicast.blocks as usize).max(1);
        let parts: Vec<&[PlacedBox<'c>]> = boxes.chunks(each).collect();
        let Some((first, rest)) = parts.split_first() else { return Ok(()) };
        for (n, what) in first.iter().enumerate() {
            let others: Vec<&PlacedBox<'c>> = rest.iter().filter_map(|part| part.get(n)).collect();
            let own = self.of_block(what, &others, number)?;
            self.target.tma_load(self, &own, full, Some(ranks))?;
        }
        Ok(())
    }

    /// Of the boxes that blocks load together, the one of the block with this number.
    fn of_block(
        &self,
        first: &PlacedBox<'c>,
        others: &[&PlacedBox<'c>],
        number: IntValue<'c>,
    ) -> Res<PlacedBox<'c>> {
        let (b, mut own) = (self.builder, first.clone());
        for (n, other) in (1u32..).zip(others) {
            let is = b.build_int_compare(IntPredicate::EQ, number, self.int(n), "")?;
            let places = own.at.iter_mut().zip(&other.at).chain([(&mut own.shared, &other.shared)]);
            for (own, other) in places {
                *own = b.build_select(is, *other, *own, "")?.into_int_value();
            }
        }
        Ok(own)
    }

    /// The thread that issues TMA stores waits for them.
    pub(super) fn tma_store_wait(&mut self, op: &TmaStoreWait) -> Res<()> {
        self.elected(|| self.target.wait_tma_stores(self, op.read))
    }

    /// A lane of the first warp acts, always the same one.
    fn elected(&self, act: impl FnOnce() -> Res<()>) -> Res<()> {
        let lanes = self.int(1 << self.kernel.options.threads().lane_bits);
        let first = self.builder.build_int_compare(IntPredicate::ULT, self.tid, lanes, "")?;
        self.act_where(Some(first), || {
            let one = self.target.elect(self)?;
            self.act_where(Some(one), act)
        })
    }

    /// One thread stores a tile, and waits for it if it is the only one.
    pub(super) fn tma_store(&mut self, inst: &Inst, op: &TmaStore) -> Res<()> {
        let start = self.in_group(op.buffer, self.int(self.buffer(op.buffer)?))?;
        let boxes = self.boxes((inst, op.caching), start)?;
        let matrix = inst.operands.first().and_then(|view| tensor_map::matrix(self.kernel, *view));
        let adds = matrix.map(|m| m.dtype).filter(|_| op.adds);
        self.elected(|| {
            for what in &boxes {
                self.target.tma_store(self, what, adds)?;
            }
            if op.once { self.target.wait_tma_stores(self, true) } else { Ok(()) }
        })
    }

    /// The boxes of a copy to or from `start` in shared memory.
    fn boxes(&self, (inst, caching): (&Inst, Caching), start: IntValue<'c>) -> Res<Vec<PlacedBox<'c>>> {
        let (map, parts) = tensor_map::boxes(self.kernel, inst).ok_or_else(nothing)?;
        let number = tensor_map::maps(self.kernel).iter().position(|m| *m == map).ok_or_else(nothing)?;
        let address = *self.maps.get(number).ok_or_else(nothing)?;
        let begin = self.corner_of_copy(inst, &map)?;
        let b = self.builder;
        let mut boxes = vec![];
        for part in parts {
            let [rows, columns] = part.at;
            let mut at = begin.clone();
            for (place, by) in at.iter_mut().zip([columns, rows]) {
                *place = b.build_int_add(*place, self.int(by), "")?;
            }
            let shared = b.build_int_add(start, self.int(part.place), "")?;
            boxes.push(PlacedBox { map: address, at, shared, caching });
        }
        Ok(boxes)
    }

    /// The part of each axis of the tensor of which a view is a part, the extents of the tensor, and the axes of it that
    /// are the axes of the view.
    fn taken(&self, view: ValueId) -> Res<TakenParts<'c>> {
        let Some(inst) = tensor_map::subview(self.kernel, view) else {
            let extents = self.view(view)?.extents.clone();
            let cuts = extents.iter().map(|_| Cut::Whole).collect();
            return Ok(TakenParts { cuts, kept: (0..extents.len()).collect(), extents });
        };
        let mut of = self.taken(self.operand(inst, 0)?)?;
        if inst.op == Op::Memory(MemoryOp::ViewPermute) {
            let perm = tk_gpu::ir::attrs::permutation(inst);
            of.kept = perm.iter().filter_map(|p| of.kept.get(*p).copied()).collect();
            return Ok(of);
        }
        let mut kept = vec![];
        for (axis, cut) in of.kept.iter().zip(self.cuts(inst)?) {
            if !matches!(cut, Cut::Index(_)) {
                kept.push(*axis);
            }
            let slot = of.cuts.get_mut(*axis).ok_or_else(nothing)?;
            *slot = self.cut_again(std::mem::replace(slot, Cut::Whole), cut)?;
        }
        Ok(TakenParts { kept, ..of })
    }

    /// A part of a part of an axis.
    fn cut_again(&self, outer: Cut<'c>, inner: Cut<'c>) -> Res<Cut<'c>> {
        let b = self.builder;
        Ok(match (outer, inner) {
            (Cut::Whole, cut) => cut,
            (outer, Cut::Whole) => outer,
            (Cut::Range { start, count }, Cut::Index(at)) => {
                // What is outside of the range is outside of the tensor.
                let inside = b.build_int_compare(IntPredicate::ULT, at, count, "")?;
                let at = b.build_int_add(start, at, "")?;
                let outside = self.i64().const_all_ones();
                Cut::Index(b.build_select(inside, at, outside, "")?.into_int_value())
            }
            (Cut::Range { start, .. }, Cut::Range { start: more, count }) => {
                Cut::Range { start: b.build_int_add(start, more, "")?, count }
            }
            (Cut::Index(_), _) => return bug("an index leaves no axis"),
        })
    }

    /// A 64-bit position as 32 bits, at most [`FARTHEST`] from 0, which is outside of what a launch accepts.
    fn near(&self, x: IntValue<'c>) -> Res<IntValue<'c>> {
        let b = self.builder;
        let far = FARTHEST;
        if let Some(v) = x.get_sign_extended_constant() {
            return Ok(self.i32().const_int(v.clamp(-far, far).cast_unsigned(), true));
        }
        let (low, high) = (self.long(-far), self.long(far));
        let below = b.build_int_compare(IntPredicate::SLT, x, low, "")?;
        let x = b.build_select(below, low, x, "")?.into_int_value();
        let above = b.build_int_compare(IntPredicate::SGT, x, high, "")?;
        let x = b.build_select(above, high, x, "")?.into_int_value();
        Ok(b.build_int_truncate(x, self.i32(), "")?)
    }

    /// The start of a copy along each dimension of its map.
    fn corner_of_copy(&self, inst: &Inst, map: &TensorMap) -> Res<Vec<IntValue<'c>>> {
        let b = self.builder;
        let at = |n: usize| self.near(self.wide(self.operand(inst, n)?)?);
        let TakenParts { cuts, extents, .. } = self.taken(self.operand(inst, 0)?)?;
        let [rows, _] = map.matrix.kept;
        let range = match cuts.get(rows) {
            Some(Cut::Range { start, count }) => Some((*start, *count)),
            Some(Cut::Whole | Cut::Index(_)) | None => None,
        };
        let place = |position: Position| -> Res<IntValue<'c>> {
            Ok(match (position, range) {
                (Position::Column, _) => at(2)?,
                (Position::Row, None) => at(1)?,
                (Position::Row, Some((_, count))) => {
                    let count = b.build_int_truncate(count, self.i32(), "")?;
                    let whole = *extents.get(rows).ok_or_else(nothing)?;
                    let whole = b.build_int_truncate_or_bit_cast(whole, self.i32(), "")?;
                    b.build_int_add(b.build_int_sub(whole, count, "")?, at(1)?, "")?
                }
                (Position::End, Some((start, count))) => {
                    let end = b.build_int_add(start, count, "")?;
                    b.build_int_truncate(end, self.i32(), "")?
                }
                (Position::Index(axis), _) => match cuts.get(axis) {
                    Some(Cut::Index(at)) => self.near(*at)?,
                    Some(Cut::Whole | Cut::Range { .. }) | None => return bug("a slice has no such index"),
                },
                (Position::End, None) => return bug("a slice has no range"),
            })
        };
        map.matrix.dimensions().iter().map(|d| place(d.at)).collect()
    }
}

/// The part of a tensor that a view is.
struct TakenParts<'c> {
    /// The part of each axis of the tensor.
    cuts: Vec<Cut<'c>>,
    /// The extents of the tensor.
    extents: Vec<IntValue<'c>>,
    /// The axes of the tensor that are the axes of the view.
    kept: Vec<usize>,
}
