//! Emits operations on shared memory: stores and loads of tiles, gathers, ranks, histograms.

use inkwell::IntPredicate;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValueEnum, IntValue};
use tk_gpu::analysis::{access_width, stmatrix};
use tk_gpu::ir::cluster;
use tk_gpu::ir::op::{
    AsyncCopy, BufferRef, GpuOp, Placement, SharedAdd, SharedGather, SharedLoad, SharedRank, SharedScatter,
    SharedStore, StoreAccess, Strides,
};
use tk_gpu::ir::shared_access::CHUNK;
use tk_ops::{DType, ElementwiseOp};
use tk_tile::{Inst, ValueId};

use super::place::{At, Places, Slot};
use super::value::{Val, word};
use super::{Emit, Res, Stop, bug};
use crate::target::{Access, Space};

/// The choice of `select_instructions`.
pub(super) fn decided<T>(choice: Option<T>) -> Res<T> {
    choice.ok_or_else(|| Stop::Bug("an access has no instruction".into()))
}

/// Bytes between adjacent elements along an axis.
fn step_bytes(placement: &Strides, axis: usize, bytes: u32) -> i64 {
    placement.strides.get(axis).copied().unwrap_or(0) * i64::from(bytes)
}

impl<'c> Emit<'_, 'c> {
    pub(super) fn gpu_op(&mut self, inst: &Inst) -> Res<()> {
        let Some(op) = GpuOp::of(inst) else { return bug("an operation has no fields") };
        match op {
            GpuOp::Convert(_) => self.convert(inst),
            GpuOp::Unspecified(_) => self.unspecified(inst),
            GpuOp::SharedStore(op) => self.shared_store(inst, op),
            GpuOp::SharedLoad(op) => self.shared_load(inst, op),
            GpuOp::SharedGather(op) => self.shared_gather(inst, op),
            GpuOp::SharedScatter(op) => self.shared_scatter(inst, op),
            GpuOp::SharedRank(op) => self.shared_rank(inst, op),
            GpuOp::SharedAdd(op) => self.shared_add(inst, op),
            GpuOp::SharedDot(op) => self.shared_dot(inst, op),
            GpuOp::AsyncCopy(op) => self.async_copy(inst, op),
            GpuOp::AsyncCommit(_) => self.target.async_commit(self).and_then(|()| self.after_copies()),
            GpuOp::AsyncWait(op) => self.target.async_wait(self, op.pending),
            GpuOp::Mma(op) => self.mma(inst, op),
            GpuOp::IsProducerWarp(op) => self.producer(inst, op),
            GpuOp::GroupId(_) => self.group_id(inst),
            GpuOp::GroupOwn(_) => self.group_own(inst),
            GpuOp::Elect(_) => self.elect(inst),
            GpuOp::SetMaxRegisters(op) => self.target.set_max_registers(self, op.count),
            GpuOp::ProducerAcquire(op) => self.producer_acquire(op),
            GpuOp::TmaLoad(op) => self.tma_load(inst, op),
            GpuOp::TmaStore(op) => self.tma_store(inst, op),
            GpuOp::TmaStoreWait(op) => self.tma_store_wait(op),
            GpuOp::ProducerCommit(op) => self.producer_commit(op),
            GpuOp::ProducerDrain(op) => self.producer_drain(op),
            GpuOp::ConsumerWait(op) => self.consumer_wait(inst, op),
            GpuOp::ConsumerRelease(op) => self.consumer_release(inst, op),
            GpuOp::ProducerSend(op) => self.producer_send(inst, op),
            GpuOp::ConsumerReceive(op) => self.consumer_receive(inst, op),
            GpuOp::ConsumerSkip(op) => self.consumer_skip(inst, op),
            GpuOp::TurnWait(op) => self.turn_wait(op),
            GpuOp::TurnPass(op) => self.turn_pass(op),
            GpuOp::MmaWait(op) => self.mma_wait(inst, op),
            GpuOp::Fragments(op) => self.fragments(inst, op),
            GpuOp::ClusterArrive(op) => self.cluster_arrive(op),
            GpuOp::ClusterWait(_) => self.target.cluster_wait(self),
            GpuOp::ClusterSync(_) => self.target.cluster_sync(self),
            GpuOp::Barrier(_) => self.target.barrier(self),
            GpuOp::PhaseBarrier(op) => self.phase_barrier(op),
            GpuOp::HalfBarrier(op) => self.half_barrier(op),
            GpuOp::OptimizationBarrier(_) => self.optimization_barrier(inst),
            GpuOp::ProxyFence(op) => self.target.proxy_fence(self, op.global),
        }
    }

    fn group_id(&mut self, inst: &Inst) -> Res<()> {
        let group = self.group.unwrap_or_else(|| self.int(0));
        self.define(self.result(inst)?, Val::Scalar(group.into()));
        Ok(())
    }

    /// The smaller of two signed integers.
    fn group_own(&mut self, inst: &Inst) -> Res<()> {
        let own = self.scalar(self.operand(inst, 1)?)?;
        self.define(self.result(inst)?, Val::Scalar(own));
        Ok(())
    }

    /// Registers that nobody fills.
    fn unspecified(&mut self, inst: &Inst) -> Res<()> {
        let r = self.result(inst)?;
        let any: BasicValueEnum<'c> = match self.zero(self.dtype(r)).get_type() {
            BasicTypeEnum::FloatType(t) => t.get_undef().into(),
            BasicTypeEnum::IntType(t) => t.get_undef().into(),
            _other => return bug("an element is a number"),
        };
        self.define_regs(r, vec![any; self.count(r)?])
    }

    /// The offset of a buffer.
    pub fn buffer(&self, buffer: usize) -> Res<u32> {
        let buffer = self.kernel.buffers.get(buffer);
        Ok(buffer.ok_or_else(|| Stop::Bug("there is no such buffer".into()))?.offset)
    }

    /// An address in a buffer, in the copy of the warpgroup of this thread.
    pub(super) fn in_group(&self, buffer: usize, address: IntValue<'c>) -> Res<IntValue<'c>> {
        Ok(match self.copy_of_group(buffer)? {
            Some(copy) => self.builder.build_int_add(address, copy, "")?,
            None => address,
        })
    }

    /// Returns true if each warpgroup has a copy of a buffer.
    pub(super) fn has_copies(&self, buffer: usize) -> bool {
        self.group.is_some() && self.kernel.buffers.get(buffer).is_some_and(|b| !b.is_common)
    }

    /// Bytes from a buffer to its copy of the warpgroup of this thread; `None` if there is one.
    fn copy_of_group(&self, buffer: usize) -> Res<Option<IntValue<'c>>> {
        let Some(group) = self.group.filter(|_| self.has_copies(buffer)) else { return Ok(None) };
        Ok(Some(self.builder.build_int_nuw_mul(group, self.int(self.kernel.group_bytes()), "")?))
    }

    /// The offset in a buffer of what an instruction accesses: of the stage in a multi-stage buffer, in the copy of the group
    /// of warps, or of the copy that an exchange uses now. `None` if it is 0.
    pub(super) fn stage(&self, inst: &Inst, buffer: BufferRef) -> Res<Option<IntValue<'c>>> {
        if let Some(turn) = cluster::exchange(inst).map(|e| self.turn(e)).transpose()?.flatten() {
            let whole = self.kernel.buffers.get(buffer.buffer).map_or(0, |b| b.bytes);
            return Ok(Some(self.builder.build_int_nuw_mul(turn, self.int(whole / 2), "")?));
        }
        let stages = buffer.count();
        let copy = self.copy_of_group(buffer.buffer)?;
        let (Some(slot), Some(whole)) =
            (tk_gpu::ir::shared_access::stage_index(inst), self.kernel.buffers.get(buffer.buffer))
        else {
            return Ok(copy);
        };
        if stages == 1 {
            return Ok(copy);
        }
        let slot = self.scalar(slot)?.into_int_value();
        let stage = self.builder.build_int_nuw_mul(slot, self.int(whole.bytes / stages), "")?;
        Ok(Some(match copy {
            Some(copy) => self.builder.build_int_nuw_add(stage, copy, "")?,
            None => stage,
        }))
    }

    /// Every access to device memory is one copy to shared memory; elements that are masked or out of bounds become 0
    /// there.
    fn async_copy(&mut self, inst: &Inst, op: &AsyncCopy) -> Res<()> {
        let (place, r) = (self.operand(inst, 0)?, self.result(inst)?);
        let vector = decided(op.vector)?;
        let at = Slot { inst, buffer: op.buffer, placement: &op.placement, vector };
        let own = self.tid;
        self.tid = self.target.copying_thread().unwrap_or(own);
        let to = self.places_of(at, r);
        self.tid = own;
        let to = to?;
        let when = match tk_gpu::ir::shared_access::predicate(inst) {
            Some(when) => Some(self.scalar(when)?.into_int_value()),
            None => None,
        };
        // In a loop whose loads run ahead the mask says whether there is a next iteration.
        let outer = self.ahead.as_mut().map(|a| std::mem::replace(&mut a.guard, when));
        let from = match self.ty(place) {
            tk_tile::Type::View { .. } => self.box_places(inst, r, vector)?,
            tk_tile::Type::Tile { .. } => {
                let mask = tk_gpu::ir::shared_access::plain_operands(inst).get(1).copied();
                self.places(inst, (place, mask), vector)?
            }
        };
        let mut first = self.is_first(Some(self.layout_id(r)?))?;
        match (outer, &mut self.ahead) {
            (Some(outer), Some(ahead)) => ahead.guard = outer,
            _without => first = self.both(when, first)?,
        }
        for (i, from) in from.iter().enumerate() {
            let n = i * vector as usize;
            let copies = self.both(self.lies(&op.placement, r, n)?, first)?;
            let from = self.access_at(self.dtype(r), from, vector, op.caching);
            self.target.async_copy(self, &from, &self.shared_access(r, &to, n, copies))?;
        }
        Ok(())
    }

    /// The bytes of an element in shared memory.
    pub(super) fn bytes_of(&self, tile: ValueId) -> u32 {
        self.dtype(tile).map_or(8, |d| d.bytes() as u32)
    }

    /// One access to shared memory for consecutive registers from `n` on.
    fn shared_access(
        &self,
        tile: ValueId,
        places: &Places<'c>,
        n: usize,
        predicate: Option<IntValue<'c>>,
    ) -> Access<'c> {
        let dtype = self.dtype(tile);
        let (address, offset) = match places.registers.get(n) {
            Some(At::Place(p, o)) => (*p, *o),
            Some(At::Bytes(o)) => (places.base, *o),
            None => (places.base, 0),
        };
        let (ty, bytes) = (self.memory_type(dtype), self.bytes_of(tile));
        Access { predicate, ..Access::of(address, offset, ty, bytes, places.vector) }
    }

    /// Stores elements of 16 bits with `stmatrix`: matrices of eight rows of 16 bytes, four at a time.
    fn store_matrices(&mut self, op: &SharedStore, v: ValueId) -> Res<()> {
        let Some(rows) = stmatrix::rows(self.kernel, op, v) else { return bug("no matrices of this layout") };
        let tile_layout = self.kernel.layouts.get(self.layout_id(v)?);
        let start = i64::from(self.buffer(op.buffer.buffer)?);
        let placed = (start, op.placement.bases(), i64::from(self.bytes_of(v)));
        let images: Vec<u64> = rows.thread.iter().map(|p| p.cast_unsigned()).collect();
        let near = (self.linear(self.tid, &images)?, rows.thread.as_slice());
        let (base, places) = self.spread(tile_layout, placed, near, &rows.register)?;
        let base = self.in_group(op.buffer.buffer, base)?;
        let dtype = self.dtype(v).ok_or_else(|| Stop::Bug("pointers have 64 bits".into()))?;
        let regs = self.registers(v)?;
        for (part, place) in regs.chunks(8).zip(places.iter().step_by(8)) {
            let (address, offset) = match place {
                At::Place(p, o) => (self.in_group(op.buffer.buffer, *p)?, *o),
                At::Bytes(o) => (base, *o),
            };
            let words = self.packed_words(dtype, 1, part)?;
            let plain = |w: BasicValueEnum<'c>| self.builder.build_bit_cast(w, self.i32(), "");
            let words = words.into_iter().map(plain).collect::<Result<Vec<_>, _>>()?;
            self.target.store_matrices(self, (address, offset), &words, rows.transposed)?;
        }
        Ok(())
    }

    fn shared_store(&mut self, inst: &Inst, op: &SharedStore) -> Res<()> {
        let v = self.operand(inst, 0)?;
        let remote = op.remote.map(|e| self.remote_barrier(e)).transpose()?;
        if let Some(barrier) = remote {
            let bytes = tk_gpu::ir::cluster::remote_store_bytes(self.kernel, inst);
            let first = self.is_first_of_block()?;
            self.act_where(Some(first), || self.target.mbarrier_expect(self, barrier, bytes))?;
        }
        if op.ahead {
            self.order_iteration()?;
            self.target.schedules_after(self)?;
            self.lower_priority()?;
        }
        let step = match op.access {
            Some(StoreAccess::Matrices | StoreAccess::TransposedMatrices) => {
                return self.store_matrices(op, v);
            }
            Some(StoreAccess::Vector(n)) => n,
            None => decided(None)?,
        };
        let dtype = self.dtype(v);
        let at = Slot { inst, buffer: op.buffer, placement: &op.placement, vector: step };
        let places = self.places_of(at, v)?;
        let layout = if self.shape(v).is_empty() { None } else { Some(self.layout_id(v)?) };
        let first = self.is_first(layout)?;
        let mut bits = if layout.is_some() { access_width::gathered(self.kernel, op, v) } else { vec![] };
        bits.truncate(step.ilog2() as usize);
        let moving = bits.iter().fold(0, |all, bit| all | 1 << bit);
        let neighbour = |i: u32| {
            let own = bits.iter().enumerate().filter(|(n, _)| i >> n & 1 == 1);
            own.fold(0, |all, (_, bit)| all | 1 << bit)
        };
        let store = |from: usize, regs: &[BasicValueEnum<'c>]| -> Res<()> {
            for n in (0..regs.len()).filter(|n| n & moving == 0) {
                let values = (0..step).map(|i| regs.get(n | neighbour(i)).copied());
                let Some(values) = values.collect::<Option<Vec<_>>>() else {
                    return bug("a chunk is too small");
                };
                let predicate = self.both(self.lies(&op.placement, v, from + n)?, first)?;
                let values = values.into_iter().map(|x| self.to_memory(dtype, x)).collect::<Res<Vec<_>>>()?;
                let access = self.shared_access(v, &places, from + n, predicate);
                match remote {
                    Some(barrier) => self.target.remote_store(self, &access, &values, barrier)?,
                    None => self.target.store(self, Space::Shared, &access, &values)?,
                }
            }
            Ok(())
        };
        let Some(late) = self.late.get(&v) else { return store(0, &self.registers(v)?) };
        let each = (CHUNK / late.vector).max(1) as usize;
        for from in (0..late.places.len()).step_by(each) {
            let regs = self.read(v, late, from..from + each)?;
            store(from * late.vector as usize, &regs)?;
        }
        Ok(())
    }

    fn shared_load(&mut self, inst: &Inst, op: &SharedLoad) -> Res<()> {
        let r = self.result(inst)?;
        let vector = decided(op.vector)?;
        let places = self.places_of(Slot { inst, buffer: op.buffer, placement: &op.placement, vector }, r)?;
        if let Some(exchange) = op.remote {
            self.exchanged(exchange)?;
        }
        let regs = self.read_shared(&op.placement, r, &places)?;
        self.define_regs(r, regs)
    }

    fn read_shared(
        &self,
        placement: &Placement,
        r: ValueId,
        places: &Places<'c>,
    ) -> Res<Vec<BasicValueEnum<'c>>> {
        let dtype = self.dtype(r);
        let zero = self.memory_type(dtype);
        let others =
            vec![inkwell::types::BasicType::as_basic_type_enum(&zero).const_zero(); places.vector as usize];
        let mut regs = vec![];
        for n in (0..self.count(r)?).step_by(places.vector as usize) {
            let predicate = self.lies(placement, r, n)?;
            let access = self.shared_access(r, places, n, predicate);
            for x in self.target.load(self, Space::Shared, &access, &others)? {
                regs.push(self.from_memory(dtype, x)?);
            }
        }
        Ok(regs)
    }

    /// `places`, each advanced by `at` elements that are this many bytes apart.
    fn moved_along(&self, stride: i64, places: &Places<'c>, at: ValueId) -> Res<Places<'c>> {
        let stride = self.i32().const_int(stride.cast_unsigned(), true);
        let mut registers = vec![];
        for (n, x) in self.registers(at)?.into_iter().enumerate() {
            let x = x.into_int_value();
            let x = if x.get_type().get_bit_width() > 32 {
                self.builder.build_int_truncate(x, self.i32(), "")?
            } else {
                self.builder.build_int_z_extend_or_bit_cast(x, self.i32(), "")?
            };
            let by = self.builder.build_int_mul(x, stride, "")?;
            let access = self.shared_access(at, places, n, None);
            let place = self.builder.build_int_add(
                access.address,
                self.i32().const_int(access.offset.cast_unsigned(), true),
                "",
            )?;
            registers.push(At::Place(self.builder.build_int_add(place, by, "")?, 0));
        }
        Ok(Places { base: places.base, registers, vector: 1 })
    }

    /// Positions out of bounds have no defined result; the interpreter reports them in checked mode only.
    fn shared_gather(&mut self, inst: &Inst, op: &SharedGather) -> Res<()> {
        let (at, r) = (self.operand(inst, 0)?, self.result(inst)?);
        let dtype = self.dtype(r);
        let bytes = self.bytes_of(r);
        let start = i64::from(self.buffer(op.buffer)?);
        let places = self.strided(self.layout_id(r)?, start, &op.placement, bytes, Some(op.axis))?;
        let places = self.moved_along(step_bytes(&op.placement, op.axis, bytes), &places, at)?;
        let extent = i64::from(op.extent);
        let zero = inkwell::types::BasicType::as_basic_type_enum(&self.memory_type(dtype)).const_zero();
        let signed = self.dtype(at).is_none_or(DType::is_signed);
        let mut regs = vec![];
        for (n, x) in self.registers(at)?.into_iter().enumerate() {
            let x = self.extend(x.into_int_value(), signed)?;
            let inside = self.builder.build_int_compare(IntPredicate::ULT, x, self.long(extent), "")?;
            let predicate = self.both(Some(inside), self.is_no_padding(r, n)?)?;
            let access = self.shared_access(r, &places, n, predicate);
            for x in self.target.load(self, Space::Shared, &access, &[zero])? {
                regs.push(self.from_memory(dtype, x)?);
            }
        }
        self.define_regs(r, regs)
    }

    fn shared_scatter(&mut self, inst: &Inst, op: &SharedScatter) -> Res<()> {
        let (v, at) = (self.operand(inst, 0)?, self.operand(inst, 1)?);
        let dtype = self.dtype(v);
        let layout = self.layout_id(v)?;
        let bytes = self.bytes_of(v);
        let start = i64::from(self.buffer(op.buffer)?);
        let places = self.strided(layout, start, &op.placement, bytes, Some(op.axis))?;
        let places = self.moved_along(step_bytes(&op.placement, op.axis, bytes), &places, at)?;
        let first = self.is_first(Some(layout))?;
        for (n, x) in self.registers(v)?.into_iter().enumerate() {
            let predicate = self.both(first, self.is_no_padding(v, n)?)?;
            let value = self.to_memory(dtype, x)?;
            self.target.store(
                self,
                Space::Shared,
                &self.shared_access(v, &places, n, predicate),
                &[value],
            )?;
        }
        Ok(())
    }

    fn shared_add(&mut self, inst: &Inst, op: &SharedAdd) -> Res<()> {
        let at = self.operand(inst, 0)?;
        let layout = self.layout_id(at)?;
        let bins = i64::from(op.bins);
        let start = self.int(self.buffer(op.buffer)?);
        let first = self.is_first(Some(layout))?;
        let signed = self.dtype(at).is_none_or(DType::is_signed);
        let mask = inst.operands.get(1).map(|m| self.registers(*m)).transpose()?;
        for (n, x) in self.registers(at)?.into_iter().enumerate() {
            let x = self.extend(x.into_int_value(), signed)?;
            let inside = self.builder.build_int_compare(IntPredicate::ULT, x, self.long(bins), "")?;
            let mut predicate = self.both(Some(inside), first)?;
            predicate = self.both(predicate, self.is_real(layout, self.shape(at), n)?)?;
            let asked = mask.as_ref().and_then(|m| m.get(n)).map(|m| m.into_int_value());
            predicate = self.both(predicate, asked)?;
            let at = self.builder.build_int_truncate(x, self.i32(), "")?;
            let at = self.builder.build_left_shift(at, self.int(2), "")?;
            let address = self.builder.build_int_add(start, at, "")?;
            self.target.shared_increment(self, address, predicate)?;
        }
        Ok(())
    }

    /// Counts, for each element, those that precede it: a loop over the elements along the axis, which all threads read
    /// at the same address.
    fn shared_rank(&mut self, inst: &Inst, op: &SharedRank) -> Res<()> {
        let (keys, r) = (self.operand(inst, 0)?, self.result(inst)?);
        let axis = op.axis;
        let layout = self.layout_id(keys)?;
        let dtype = self.dtype(keys);
        let bytes = self.bytes_of(keys);
        let start = i64::from(self.buffer(op.buffer)?);
        let stride = step_bytes(&op.placement, axis, bytes);
        let places = self.strided(layout, start, &op.placement, bytes, Some(axis))?;
        let places = Places { vector: 1, ..places };
        let mut own = vec![];
        for x in self.registers(keys)? {
            own.push(self.rank_key(op, dtype, x)?);
        }
        let zero = inkwell::types::BasicType::as_basic_type_enum(&self.memory_type(dtype)).const_zero();
        let ranks = vec![self.int(0).into(); own.len()];
        let ranks = self.counted(self.int(op.extent), &ranks, |e, at, ranks| {
            let moved = e.builder.build_int_mul(at, e.i32().const_int(stride.cast_unsigned(), true), "")?;
            let mut next = vec![];
            for (n, (key, rank)) in own.iter().zip(ranks).enumerate() {
                let mut access = e.shared_access(keys, &places, n, e.is_no_padding(keys, n)?);
                access.address = e.builder.build_int_add(access.address, moved, "")?;
                let other = e.target.load(e, Space::Shared, &access, &[zero])?;
                let Some(other) = other.first().copied() else { return bug("nothing was loaded") };
                let other = e.rank_key(op, dtype, e.from_memory(dtype, other)?)?;
                let before = e.comes_before(op, dtype, (other, at), (*key, e.coord(layout, n, axis)?))?;
                let one = e.builder.build_int_z_extend(before, e.i32(), "")?;
                next.push(e.builder.build_int_add(rank.into_int_value(), one, "")?.into());
            }
            Ok(next)
        })?;
        self.define_regs(r, ranks)
    }

    /// Returns true if the key `a` precedes `b`, each with its position: equal elements keep their order.
    fn comes_before(
        &self,
        op: &SharedRank,
        dtype: Option<DType>,
        a: (IntValue<'c>, IntValue<'c>),
        b: (IntValue<'c>, IntValue<'c>),
    ) -> Res<IntValue<'c>> {
        let signed = dtype.is_some_and(|d| d.is_signed() && !d.is_float());
        let (strict, or_equal) = match (signed, op.descending) {
            (true, false) => (IntPredicate::SLT, IntPredicate::SLE),
            (true, true) => (IntPredicate::SGT, IntPredicate::SGE),
            (false, false) => (IntPredicate::ULT, IntPredicate::ULE),
            (false, true) => (IntPredicate::UGT, IntPredicate::UGE),
        };
        let strictly = self.builder.build_int_compare(strict, a.0, b.0, "")?;
        let weakly = self.builder.build_int_compare(or_equal, a.0, b.0, "")?;
        let earlier = self.builder.build_int_compare(IntPredicate::ULT, a.1, b.1, "")?;
        Ok(self.builder.build_or(strictly, self.builder.build_and(weakly, earlier, "")?, "")?)
    }

    /// An integer in the order of a sort. All NaN are equal, and before or after all numbers: their key is the least or the
    /// largest integer, which is that of no number.
    fn rank_key(&self, op: &SharedRank, dtype: Option<DType>, x: BasicValueEnum<'c>) -> Res<IntValue<'c>> {
        let Some(d) = dtype else { return bug("pointers are not sorted") };
        let key = self.order_key(d, x)?;
        if !d.is_float() {
            return Ok(key);
        }
        let is_nan = self
            .with_scalars(|e| e.elementwise(ElementwiseOp::IsNan, &[dtype], Some(DType::Bool), false, &[x]))?
            .into_int_value();
        let word = key.get_type();
        let of_nan = if op.nan_first == op.descending { word.const_all_ones() } else { word.const_zero() };
        Ok(self.builder.build_select(is_nan, of_nan, key, "")?.into_int_value())
    }

    /// An integer in the order of the elements: for floats, the code with the negative ones inverted, so that -0
    /// precedes +0.
    pub(super) fn order_key(&self, d: DType, x: BasicValueEnum<'c>) -> Res<IntValue<'c>> {
        let b = self.builder;
        let word = word(self.context, d.bits());
        if d == DType::Bool {
            return Ok(b.build_int_z_extend(x.into_int_value(), word, "")?);
        }
        if !d.is_float() && !d.is_f8() {
            return Ok(x.into_int_value());
        }
        let code = b.build_bit_cast(x, word, "")?.into_int_value();
        let last = word.const_int(u64::from(d.bits()) - 1, false);
        let negative = b.build_right_shift(code, last, true, "")?;
        let sign = b.build_left_shift(word.const_int(1, false), last, "")?;
        Ok(b.build_xor(code, b.build_or(negative, sign, "")?, "")?)
    }

    /// A loop that runs `count` times over values, with the code of one iteration.
    pub fn counted(
        &mut self,
        count: IntValue<'c>,
        init: &[BasicValueEnum<'c>],
        body: impl FnOnce(&mut Self, IntValue<'c>, &[BasicValueEnum<'c>]) -> Res<Vec<BasicValueEnum<'c>>>,
    ) -> Res<Vec<BasicValueEnum<'c>>> {
        let b = self.builder;
        let before = b.get_insert_block().ok_or_else(|| Stop::Bug("no block is open".into()))?;
        let (header, inside, after) = (
            self.context.append_basic_block(self.function, "count"),
            self.context.append_basic_block(self.function, "each"),
            self.context.append_basic_block(self.function, "counted"),
        );
        b.build_unconditional_branch(header)?;
        b.position_at_end(header);
        let at = b.build_phi(self.i32(), "")?;
        at.add_incoming(&[(&self.int(0), before)]);
        let mut carried = vec![];
        for x in init {
            let phi = b.build_phi(x.get_type(), "")?;
            phi.add_incoming(&[(x, before)]);
            carried.push(phi);
        }
        let iv = at.as_basic_value().into_int_value();
        let goes_on = b.build_int_compare(IntPredicate::ULT, iv, count, "")?;
        b.build_conditional_branch(goes_on, inside, after)?;
        b.position_at_end(inside);
        let values: Vec<_> = carried.iter().map(|p| p.as_basic_value()).collect();
        let next = body(self, iv, &values)?;
        let end = b.get_insert_block().ok_or_else(|| Stop::Bug("no block is open".into()))?;
        let more = b.build_int_nuw_add(iv, self.int(1), "")?;
        at.add_incoming(&[(&more, end)]);
        for (phi, x) in carried.iter().zip(&next) {
            phi.add_incoming(&[(x, end)]);
        }
        b.build_unconditional_branch(header)?;
        b.position_at_end(after);
        Ok(values)
    }
}
