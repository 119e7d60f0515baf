//! Emits accesses to device memory through tiles of pointers, and groups registers into wide accesses.

use std::rc::Rc;

use inkwell::values::{BasicValueEnum, IntValue};
use tk_ops::{DType, MemoryOp};
use tk_tile::{Inst, ValueId};

use super::state::{Late, MemoryPlace};
use super::value::{Tile, Val, element_bytes};
use super::view::FEW;
use super::{Emit, Res, Stop};
use crate::target::{Access, Space};
use tk_gpu::ir::caching::Caching;

impl<'c> Emit<'_, 'c> {
    pub(super) fn memory(&mut self, inst: &Inst, op: MemoryOp) -> Res<()> {
        match op {
            MemoryOp::PtrAdd => self.ptr_add(inst),
            MemoryOp::Load => self.load(inst),
            MemoryOp::Store => self.store(inst),
            MemoryOp::Prefetch => self.prefetch(inst),
            MemoryOp::View
            | MemoryOp::ViewShape
            | MemoryOp::ViewStride
            | MemoryOp::ViewPtr
            | MemoryOp::ViewSlice
            | MemoryOp::ViewPermute => self.view_op(inst, op),
            MemoryOp::ViewLoad | MemoryOp::ViewStore => self.box_access(inst, op),
            MemoryOp::ViewInside => self.inside(inst),
            MemoryOp::ViewGather | MemoryOp::ViewScatter => self.scattered(inst, op),
        }
    }

    /// The size of an element of a tile of pointers, or of a view.
    pub fn pointee_bytes(&self, v: ValueId) -> Res<u32> {
        match self.ty(v) {
            tk_tile::Type::Tile { elem: tk_tile::ElemType::Ptr { pointee, .. }, .. } => {
                Ok(element_bytes(pointee))
            }
            tk_tile::Type::View { elem, .. } => Ok(element_bytes(elem)),
            tk_tile::Type::Tile { .. } => Err(Stop::Bug(format!("{v} holds no pointers"))),
        }
    }

    fn ptr_add(&mut self, inst: &Inst) -> Res<()> {
        let (p, at, r) = (self.operand(inst, 0)?, self.operand(inst, 1)?, self.result(inst)?);
        let bytes = self.long(i64::from(self.pointee_bytes(p)?));
        let signed = self.dtype(at).is_none_or(DType::is_signed);
        let b = self.builder;
        let moved = |p: IntValue<'c>, at: IntValue<'c>| -> Res<IntValue<'c>> {
            let at = b.build_int_mul(self.extend(at, signed)?, bytes, "")?;
            Ok(b.build_int_add(p, at, "")?)
        };
        if self.shape(r).is_empty() {
            let x = moved(self.scalar(p)?.into_int_value(), self.scalar(at)?.into_int_value())?;
            self.define(r, Val::Scalar(x.into()));
            return Ok(());
        }
        let size = i64::from(self.pointee_bytes(p)?);
        let tile = match (self.tile(p)?, self.tile(at)?) {
            (Tile::Splat(p), Tile::Splat(at)) => {
                Tile::Splat(moved(p.into_int_value(), at.into_int_value())?.into())
            }
            // An offset does not overflow (E0712), so the last addend can be added to the address.
            (Tile::Splat(p), Tile::Affine { base, offsets }) => {
                let base = moved(p.into_int_value(), base)?;
                Tile::Affine { base, offsets: Rc::new(offsets.iter().map(|o| o * size).collect()) }
            }
            (Tile::Affine { base, offsets }, Tile::Splat(at)) => {
                Tile::Affine { base: moved(base, at.into_int_value())?, offsets }
            }
            (Tile::Affine { base, offsets }, Tile::Affine { base: at, offsets: more }) => {
                let sum = offsets.iter().zip(more.iter()).map(|(a, b)| a + b * size).collect();
                Tile::Affine { base: moved(base, at)?, offsets: Rc::new(sum) }
            }
            (p, at) => {
                let mut regs = vec![];
                for n in 0..self.count(r)? {
                    let (p, at) = (self.register(&p, n)?, self.register(&at, n)?);
                    regs.push(moved(p.into_int_value(), at.into_int_value())?.into());
                }
                Tile::regs(regs)
            }
        };
        self.define(r, Val::Tile(tile));
        Ok(())
    }

    /// The number of consecutive registers of `tile` that one access moves.
    pub(super) fn vector(&self, inst: &Inst, tile: ValueId) -> Res<u32> {
        if self.shape(tile).is_empty() {
            return Ok(1);
        }
        super::shared::decided(inst.attrs.int("vector").and_then(|n| u32::try_from(n).ok()))
    }

    /// The address of a register of a tile of pointers.
    fn address(&self, tile: &Tile<'c>, n: usize) -> Res<(IntValue<'c>, i64)> {
        Ok(match tile {
            Tile::Affine { base, offsets } => (*base, offsets.get(n).copied().unwrap_or(0)),
            Tile::Regs(_) | Tile::Splat(_) => (self.register(tile, n)?.into_int_value(), 0),
        })
    }

    /// The addresses of the wide accesses of an instruction through a tile of pointers, the first register of each; `vector`
    /// neighbours at once.
    pub(super) fn places(
        &self,
        inst: &Inst,
        (p, mask): (ValueId, Option<ValueId>),
        vector: u32,
    ) -> Res<Vec<MemoryPlace<'c>>> {
        let pointers = self.tile(p)?;
        let asking = mask;
        let guard = match mask {
            Some(mask) if self.ends_mask(mask)? => None,
            Some(_) | None => self.guard(),
        };
        let mask = mask.map(|m| self.tile(m)).transpose()?;
        let few = self.count(p)? <= FEW * vector as usize;
        if self.shape(p).is_empty() {
            let (address, offset) = self.address(&pointers, 0)?;
            let predicate =
                mask.map(|m| self.register(&m, 0)).transpose()?.map(BasicValueEnum::into_int_value);
            return Ok(vec![MemoryPlace { address, offset, predicate, near: None, ragged: None }]);
        }
        let (layout, shape) = (self.layout_id(p)?, self.shape(p));
        let along = inst.attrs.int("ragged").and_then(|d| usize::try_from(d).ok());
        let end = along.map(|d| self.pointers_end(inst, p, d)).transpose()?;
        let mut places = vec![];
        for n in (0..self.count(p)?).step_by(vector as usize) {
            let (address, offset) = self.address(&pointers, n)?;
            let real = self.is_real(layout, shape, n)?;
            if let Some(end) = &end {
                let predicate = self.both(real, guard)?;
                let ragged = Some(self.ragged_pointers(end, asking, n)?);
                places.push(MemoryPlace { address, offset, predicate, near: None, ragged });
                continue;
            }
            let mut asked =
                mask.as_ref().map(|m| self.register(m, n)).transpose()?.map(BasicValueEnum::into_int_value);
            if let (Some(mask), Some(x), true) = (asking, asked, few) {
                asked = self.with_one_comparison(mask, x)?.or(asked);
            }
            let predicate = self.both(self.both(asked.filter(|m| !is_true(*m)), real)?, guard)?;
            places.push(MemoryPlace { address, offset, predicate, near: None, ragged: None });
        }
        Ok(places)
    }

    fn load(&mut self, inst: &Inst) -> Res<()> {
        let (p, r) = (self.operand(inst, 0)?, self.result(inst)?);
        let vector = self.vector(inst, p)?;
        let places = self.places(inst, (p, inst.operands.get(1).copied()), vector)?;
        let other = inst.operands.get(2).map(|v| self.tile(*v)).transpose()?;
        let (shifted, caching) = (false, Caching::of(&inst.attrs));
        self.read_now_or_late(r, Late { vector, places, other, shifted, caching })
    }

    /// Reads a tile, unless its store reads it in chunks.
    pub(super) fn read_now_or_late(&mut self, r: ValueId, what: Late<'c>) -> Res<()> {
        if self.chunked.contains(&r) {
            self.late.insert(r, what);
            return Ok(());
        }
        let mut regs = self.read(r, &what, 0..what.places.len())?;
        // What is computed from numbers of the program, such as positions and extents, is uniform too.
        if let ([], [BasicValueEnum::IntValue(x)]) = (self.shape(r), regs.as_mut_slice())
            && x.get_type().get_bit_width() >= u32::BITS
        {
            *x = self.uniform(*x)?;
        }
        self.define_regs(r, regs)
    }

    /// Reads these elements of `like` in wide accesses.
    pub(super) fn read(
        &self,
        like: ValueId,
        what: &Late<'c>,
        numbers: std::ops::Range<usize>,
    ) -> Res<Vec<BasicValueEnum<'c>>> {
        let dtype = self.dtype(like);
        let zero = self.zero(dtype);
        let each = what.vector as usize;
        let places = what.places.iter().copied().take(numbers.end).skip(numbers.start).collect::<Vec<_>>();
        let others = (numbers.start * each..(numbers.start + places.len()) * each)
            .map(|n| what.other.as_ref().map_or(Ok(zero), |o| self.register(o, n)))
            .collect::<Res<Vec<_>>>()?;
        let others = others.into_iter().map(|x| self.to_memory(dtype, x)).collect::<Res<Vec<_>>>()?;
        let loaded = self.wide_or_by_element(what.vector, &places, |places, vector| {
            let mut regs = vec![];
            for (place, others) in places.iter().zip(others.chunks(vector as usize)) {
                let access = self.access_at(dtype, place, vector, what.caching);
                regs.extend(if what.shifted && vector > 1 {
                    self.load_shifted(&access, others)?
                } else {
                    self.target.load(self, Space::Global, &access, others)?
                });
            }
            Ok(regs)
        })?;
        loaded.into_iter().map(|x| self.from_memory(dtype, x)).collect()
    }

    /// Writes the elements of a tile in wide accesses; of threads that own the same, the first writes.
    pub fn write(
        &self,
        value: ValueId,
        (vector, places): (u32, &[MemoryPlace<'c>]),
        caching: Caching,
    ) -> Res<()> {
        let dtype = self.dtype(value);
        let regs = self.registers(value)?;
        let layout = if self.shape(value).is_empty() { None } else { Some(self.layout_id(value)?) };
        let first = self.is_first(layout)?;
        let own = |place: &MemoryPlace<'c>| -> Res<_> {
            Ok(MemoryPlace { predicate: self.both(place.predicate, first)?, ..*place })
        };
        let places = places.iter().map(own).collect::<Res<Vec<_>>>()?;
        let values = regs.iter().map(|x| self.to_memory(dtype, *x)).collect::<Res<Vec<_>>>()?;
        let write = |places: &[MemoryPlace<'c>], vector: u32| {
            for (place, values) in places.iter().zip(values.chunks(vector as usize)) {
                let access = self.access_at(dtype, place, vector, caching);
                self.target.store(self, Space::Global, &access, values)?;
            }
            Ok(vec![])
        };
        self.wide_or_by_element(vector, &places, write).map(|_| ())
    }

    pub(super) fn access_at(
        &self,
        dtype: Option<DType>,
        place: &MemoryPlace<'c>,
        count: u32,
        caching: Caching,
    ) -> Access<'c> {
        let bytes = dtype.map_or(8, |d| d.bytes() as u32);
        let (predicate, near) = (place.predicate, place.near);
        let access = Access::of(place.address, place.offset, self.memory_type(dtype), bytes, count);
        let alignment = if place.ragged.is_some() { bytes } else { access.alignment };
        Access { predicate, near, caching, alignment, ..access }
    }

    /// The type of an element in memory: bool is a byte.
    pub fn memory_type(&self, dtype: Option<DType>) -> inkwell::types::BasicTypeEnum<'c> {
        let zero = self.zero(dtype);
        if dtype == Some(DType::Bool) { self.context.i8_type().into() } else { zero.get_type() }
    }

    /// Converts an element to its form in memory.
    pub fn to_memory(&self, dtype: Option<DType>, x: BasicValueEnum<'c>) -> Res<BasicValueEnum<'c>> {
        if dtype != Some(DType::Bool) {
            return Ok(x);
        }
        Ok(self.builder.build_int_z_extend(x.into_int_value(), self.context.i8_type(), "")?.into())
    }

    /// Converts an element from its form in memory.
    pub fn from_memory(&self, dtype: Option<DType>, x: BasicValueEnum<'c>) -> Res<BasicValueEnum<'c>> {
        if dtype != Some(DType::Bool) {
            return Ok(x);
        }
        let zero = self.context.i8_type().const_zero();
        Ok(self.builder.build_int_compare(inkwell::IntPredicate::NE, x.into_int_value(), zero, "")?.into())
    }

    fn store(&mut self, inst: &Inst) -> Res<()> {
        let (p, value) = (self.operand(inst, 0)?, self.operand(inst, 1)?);
        let vector = self.vector(inst, p)?;
        let places = self.places(inst, (p, inst.operands.get(2).copied()), vector)?;
        self.write(value, (vector, &places), Caching::of(&inst.attrs))
    }

    fn prefetch(&mut self, inst: &Inst) -> Res<()> {
        let p = self.operand(inst, 0)?;
        let vector = self.vector(inst, p)?;
        let places = self.places(inst, (p, inst.operands.get(1).copied()), vector)?;
        let layout = if self.shape(p).is_empty() { None } else { Some(self.layout_id(p)?) };
        let first = self.is_first(layout)?;
        let bytes = self.pointee_bytes(p)?;
        for place in places {
            let access =
                Access::of(place.address, place.offset, self.context.i8_type().into(), bytes, vector);
            let predicate = self.both(place.predicate, first)?;
            let caching = Caching::of(&inst.attrs);
            self.target.prefetch(self, &Access { predicate, caching, ..access })?;
        }
        Ok(())
    }
}

/// Returns true if a predicate is known to hold.
pub fn is_true(x: IntValue<'_>) -> bool {
    x.get_zero_extended_constant() == Some(1)
}
