//! Emits views: slices, and accesses through views.
//!
//! A position is inside if it is nonnegative and below the extent, which is one unsigned comparison.

use inkwell::IntPredicate;
use inkwell::values::IntValue;
use tk_gpu::ir::kernel::LayoutId;
use tk_ops::{DType, MemoryOp};
use tk_tile::{Inst, Type, ValueId};

use super::state::{Late, MemoryPlace};
use super::value::{Val, View};
use super::{Emit, Res, Stop, bug};
use crate::target::Near;
use tk_gpu::ir::caching::Caching;

/// Accesses of a lane, each of which is worth a register for its mask.
pub(super) const FEW: usize = 4;

/// The part of an axis that a slice contains, in 64-bit numbers.
pub(super) enum Cut<'c> {
    Whole,
    /// One position, which may be out of bounds.
    Index(IntValue<'c>),
    /// A length, from a position that is inside or at the end.
    Range {
        start: IntValue<'c>,
        count: IntValue<'c>,
    },
}

/// The position of a box along one axis.
#[derive(Clone, Copy)]
pub(super) struct Corner<'c> {
    pub(super) at: IntValue<'c>,
    /// It is known to be nonnegative.
    pub(super) non_negative: bool,
    /// It changes in a loop whose loads run ahead.
    moves: bool,
    /// It is outside for an iteration that is not executed.
    ends: bool,
    /// A lane has few accesses.
    few: bool,
}

/// Addresses in the order in which they were computed, and the distance of each from register 0 along each axis.
type Chain<'c> = Vec<(Vec<u32>, IntValue<'c>)>;

impl<'c> Emit<'_, 'c> {
    pub(super) fn view_op(&mut self, inst: &Inst, op: MemoryOp) -> Res<()> {
        let r = self.result(inst)?;
        let first = self.operand(inst, 0)?;
        let axis = || inst.attrs.int("axis").and_then(|a| usize::try_from(a).ok()).unwrap_or(0);
        let missing = || Stop::Bug(format!("`{}` of an axis that is not there", op.name()));
        let val = match op {
            MemoryOp::View => {
                let Type::View { rank, elem, .. } = self.ty(r) else { return bug("`view` gives a view") };
                let rank = *rank as usize;
                let scalar = |i: usize| Ok(self.scalar(self.operand(inst, i)?)?.into_int_value());
                Val::View(View {
                    base: scalar(0)?,
                    extents: (1..=rank).map(scalar).collect::<Res<_>>()?,
                    strides: (1 + rank..=2 * rank).map(scalar).collect::<Res<_>>()?,
                    bytes: super::value::element_bytes(elem),
                })
            }
            MemoryOp::ViewShape => {
                Val::Scalar((*self.view(first)?.extents.get(axis()).ok_or_else(missing)?).into())
            }
            MemoryOp::ViewStride => {
                Val::Scalar((*self.view(first)?.strides.get(axis()).ok_or_else(missing)?).into())
            }
            MemoryOp::ViewPtr => Val::Scalar(self.view(first)?.base.into()),
            MemoryOp::ViewSlice => Val::View(self.sliced(inst)?),
            MemoryOp::ViewPermute => {
                let view = self.view(first)?;
                let perm = tk_gpu::ir::attrs::permutation(inst);
                let pick =
                    |list: &[IntValue<'c>]| perm.iter().filter_map(|p| list.get(*p).copied()).collect();
                Val::View(View { extents: pick(&view.extents), strides: pick(&view.strides), ..view })
            }
            MemoryOp::PtrAdd
            | MemoryOp::Load
            | MemoryOp::Store
            | MemoryOp::ViewLoad
            | MemoryOp::ViewStore
            | MemoryOp::ViewInside
            | MemoryOp::ViewGather
            | MemoryOp::ViewScatter
            | MemoryOp::Prefetch => return bug(format!("`{}` is no operation of views", op.name())),
        };
        self.define(r, val);
        Ok(())
    }

    /// The address of a view advanced by `at` elements along an axis.
    pub(super) fn moved(
        &self,
        base: IntValue<'c>,
        at: IntValue<'c>,
        stride: IntValue<'c>,
        bytes: u32,
    ) -> Res<IntValue<'c>> {
        let step = self.builder.build_int_mul(stride, self.long(bytes.into()), "")?;
        let by = self.builder.build_int_mul(at, step, "")?;
        Ok(self.builder.build_int_add(base, by, "")?)
    }

    /// The part of each axis that a slice contains.
    pub(super) fn cuts(&self, inst: &Inst) -> Res<Vec<Cut<'c>>> {
        let view = self.view(self.operand(inst, 0)?)?;
        let mut rest = inst.operands.iter().skip(1);
        let mut next = || -> Res<IntValue<'c>> {
            self.wide(rest.next().copied().ok_or_else(|| Stop::Bug("a position is missing".into()))?)
        };
        let mut cuts = vec![];
        for (code, extent) in inst.attrs.ints("axes").unwrap_or(&[]).iter().zip(&view.extents) {
            cuts.push(match code {
                0 => Cut::Index(next()?),
                1 => Cut::Whole,
                _ => {
                    // Both ends are clamped to the extent, as in the interpreter.
                    let (zero, whole) = (self.long(0), self.extend(*extent, true)?);
                    let clamp = |x: IntValue<'c>| -> Res<IntValue<'c>> {
                        let low = self.builder.build_int_compare(IntPredicate::SLT, x, zero, "")?;
                        let x = self.builder.build_select(low, zero, x, "")?.into_int_value();
                        let high = self.builder.build_int_compare(IntPredicate::SGT, x, whole, "")?;
                        Ok(self.builder.build_select(high, whole, x, "")?.into_int_value())
                    };
                    let (start, end) = (clamp(next()?)?, clamp(next()?)?);
                    let left = self.builder.build_int_sub(end, start, "")?;
                    let none = self.builder.build_int_compare(IntPredicate::SLT, left, zero, "")?;
                    let count = self.builder.build_select(none, zero, left, "")?.into_int_value();
                    Cut::Range { start, count }
                }
            });
        }
        Ok(cuts)
    }

    fn sliced(&self, inst: &Inst) -> Res<View<'c>> {
        let view = self.view(self.operand(inst, 0)?)?;
        let mut out = View { base: view.base, extents: vec![], strides: vec![], bytes: view.bytes };
        let mut outside: Option<IntValue<'c>> = None;
        for ((cut, extent), stride) in self.cuts(inst)?.iter().zip(&view.extents).zip(&view.strides) {
            match cut {
                Cut::Index(at) => {
                    out.base = self.moved(out.base, *at, *stride, view.bytes)?;
                    // As unsigned numbers, negative positions are far beyond the end.
                    let whole = self.extend(*extent, true)?;
                    let here = self.builder.build_int_compare(IntPredicate::UGE, *at, whole, "")?;
                    outside = self.either(outside, here)?;
                    continue;
                }
                Cut::Whole => out.extents.push(*extent),
                Cut::Range { start, count } => {
                    out.base = self.moved(out.base, *start, *stride, view.bytes)?;
                    out.extents.push(self.builder.build_int_truncate_or_bit_cast(
                        *count,
                        extent.get_type(),
                        "",
                    )?);
                }
            }
            out.strides.push(*stride);
        }
        // An index out of bounds makes the view empty, as in the interpreter.
        if let Some(outside) = outside {
            for extent in &mut out.extents {
                let none = extent.get_type().const_zero();
                *extent = self.builder.build_select(outside, none, *extent, "")?.into_int_value();
            }
        }
        Ok(out)
    }

    /// The disjunction of two conditions, the first of which is optional.
    pub(super) fn either(&self, a: Option<IntValue<'c>>, b: IntValue<'c>) -> Res<Option<IntValue<'c>>> {
        match a {
            Some(a) => Ok(Some(self.builder.build_or(a, b, "")?)),
            None => Ok(Some(b)),
        }
    }

    /// The position of a box: one scalar for each axis, as wide as the extents.
    fn corner(&self, view: &View<'c>, at: &[ValueId]) -> Res<Vec<Corner<'c>>> {
        let mut corner = vec![];
        for (v, extent) in at.iter().zip(&view.extents) {
            let x = self.wide(*v)?;
            // A position that does not fit is out of bounds, and must not wrap around to the inside.
            let at = if extent.get_type().get_bit_width() == 64 { x } else { self.saturated(x)? };
            let constant = at.get_sign_extended_constant();
            corner.push(Corner {
                at,
                non_negative: constant.map_or(self.axis.tile(*v).non_negative, |c| c >= 0),
                moves: self.moves(*v)?,
                ends: self.ends_with_loop(*v, *extent)?,
                few: false,
            });
        }
        Ok(corner)
    }

    /// A 64-bit position as 32 bits; one that does not fit is far out of bounds.
    pub(super) fn saturated(&self, x: IntValue<'c>) -> Res<IntValue<'c>> {
        let low = self.builder.build_int_truncate(x, self.i32(), "")?;
        if x.get_sign_extended_constant().is_some_and(|v| i32::try_from(v).is_ok()) {
            return Ok(low);
        }
        let back = self.builder.build_int_s_extend(low, self.i64(), "")?;
        let same = self.builder.build_int_compare(IntPredicate::EQ, back, x, "")?;
        let far = self.i32().const_int(u64::from(i32::MIN.cast_unsigned()), false);
        Ok(self.builder.build_select(same, low, far, "")?.into_int_value())
    }

    /// The coordinate of a register along an axis of a view, as wide as its extents.
    pub(super) fn along(
        &self,
        corner: IntValue<'c>,
        layout: LayoutId,
        n: usize,
        d: usize,
    ) -> Res<IntValue<'c>> {
        let ty = corner.get_type();
        let tile_layout = self.kernel.layouts.get(layout);
        let thread =
            self.thread_coords(layout)?.get(d).copied().ok_or_else(|| Stop::Bug("no such axis".into()))?;
        if tile_layout.adds_registers() {
            // The part that depends on the thread first: it is the same for every register.
            let start = self.builder.build_int_add(
                corner,
                self.builder.build_int_z_extend_or_bit_cast(thread, ty, "")?,
                "",
            )?;
            let at = tile_layout.register(n).get(d).copied().unwrap_or(0);
            if at == 0 {
                return Ok(start);
            }
            return Ok(self.builder.build_int_add(start, ty.const_int(at.into(), false), "")?);
        }
        let at = self.coord(layout, n, d)?;
        Ok(self.builder.build_int_add(
            corner,
            self.builder.build_int_z_extend_or_bit_cast(at, ty, "")?,
            "",
        )?)
    }

    /// Returns true if the element of a register is inside of a view, along all axes but one that is asked about `later`.
    fn is_inside(
        &self,
        view: &View<'c>,
        corner: &[Corner<'c>],
        (layout, n): (LayoutId, usize),
        shape: &[u32],
        later: Option<usize>,
    ) -> Res<Option<IntValue<'c>>> {
        let mut all = self.is_real(layout, shape, n)?;
        let (tile_layout, mut guard) = (self.kernel.layouts.get(layout), self.guard());
        let mut moving = None;
        let axes = corner.iter().zip(&view.extents).enumerate();
        for (d, (corner, extent)) in axes.filter(|(d, _)| Some(*d) != later) {
            let inside = if corner.non_negative && tile_layout.adds_registers() {
                let asked = if corner.moves { guard.take().filter(|_| !corner.ends) } else { None };
                if corner.moves && corner.few && moving.is_none() {
                    let behind = self.builder.build_int_sub(*extent, corner.at, "")?;
                    moving = Some((self.or_zero(behind, asked)?, self.coord(layout, n, d)?));
                    continue;
                }
                let at = tile_layout.register(n).get(d).copied().unwrap_or(0);
                // The length of the view from this thread on: computed once for all of its registers.
                let left = self.left(*corner, *extent, (layout, d), asked)?;
                let at = left.get_type().const_int(at.into(), false);
                self.builder.build_int_compare(IntPredicate::SGT, left, at, "")?
            } else {
                let at = self.along(corner.at, layout, n, d)?;
                self.builder.build_int_compare(IntPredicate::ULT, at, *extent, "")?
            };
            all = self.both(all, Some(inside))?;
        }
        if let Some((behind, within)) = moving {
            let ty = behind.get_type();
            // Positions inside of the box do not change in the loop, so they are compared as they are. Nothing is behind the
            // largest one, which is that of elements that are outside along another axis.
            let mut within = self.builder.build_int_z_extend_or_bit_cast(within, ty, "")?;
            if let Some(others) = all.take() {
                within = self.or_largest(within, others)?;
            }
            all = Some(self.builder.build_int_compare(IntPredicate::SGT, behind, within, "")?);
        }
        self.both(all, guard)
    }

    /// The number of elements of a view from register 0 of this thread on along an axis; zero or negative if it is out
    /// of bounds, or if `asked` is false.
    pub(super) fn left(
        &self,
        corner: Corner<'c>,
        extent: IntValue<'c>,
        (layout, d): (LayoutId, usize),
        asked: Option<IntValue<'c>>,
    ) -> Res<IntValue<'c>> {
        let ty = extent.get_type();
        let thread =
            self.thread_coords(layout)?.get(d).copied().ok_or_else(|| Stop::Bug("no such axis".into()))?;
        let thread = self.builder.build_int_z_extend_or_bit_cast(thread, ty, "")?;
        if corner.at.get_sign_extended_constant() == Some(0) {
            return Ok(self.builder.build_int_sub(extent, thread, "")?);
        }
        // Neither of the two is negative, so this does not overflow; it is at least 0, so the next one does not either.
        let behind = self.builder.build_int_sub(extent, corner.at, "")?;
        let none = self.builder.build_int_compare(IntPredicate::SLT, behind, ty.const_zero(), "")?;
        let behind = self.builder.build_select(none, ty.const_zero(), behind, "")?.into_int_value();
        let behind = self.or_zero(behind, asked)?;
        Ok(self.builder.build_int_sub(behind, thread, "")?)
    }

    /// The address of a view advanced to an element of a box.
    pub(super) fn advanced(
        &self,
        view: &View<'c>,
        mut address: IntValue<'c>,
        at: &[IntValue<'c>],
    ) -> Res<IntValue<'c>> {
        for (at, stride) in at.iter().zip(&view.strides) {
            address = self.moved(address, *at, *stride, view.bytes)?;
        }
        Ok(address)
    }

    /// The address of the element of a register, and an offset in bytes. `origin` is that of the corner, and `chain` has
    /// the addresses for earlier registers.
    fn box_address(
        &self,
        view: &View<'c>,
        origin: IntValue<'c>,
        layout: LayoutId,
        n: usize,
        chain: &mut Chain<'c>,
    ) -> Res<(IntValue<'c>, i64)> {
        let tile_layout = self.kernel.layouts.get(layout);
        let extended = |at: Vec<IntValue<'c>>| -> Res<Vec<_>> {
            at.into_iter().map(|x| self.extend(x, false)).collect()
        };
        if !tile_layout.adds_registers() {
            let at = (0..view.strides.len()).map(|d| self.coord(layout, n, d)).collect::<Res<_>>()?;
            return Ok((self.advanced(view, origin, &extended(at)?)?, 0));
        }
        if chain.is_empty() {
            let thread = extended(self.thread_coords(layout)?)?;
            chain.push((vec![0; thread.len()], self.advanced(view, origin, &thread)?));
        }
        let (mut at, mut offset) = (tile_layout.register(n), 0);
        for (at, stride) in at.iter_mut().zip(&view.strides) {
            if stride.get_sign_extended_constant() == Some(1) {
                offset += i64::from(std::mem::take(at)) * i64::from(view.bytes);
            }
        }
        Ok((self.chained(view, at, chain)?, offset))
    }

    /// The address of the registers at a distance from register 0, in elements along each axis, computed from the last
    /// address in `chain` that is not beyond it along any axis. Registers are in order, so that most differ from the one
    /// before by the same distance along one axis, and its product with the stride is computed once. (Straight-line
    /// strength reduction, which LLVM 22 does not do where an instruction multiplies and adds.)
    fn chained(&self, view: &View<'c>, at: Vec<u32>, chain: &mut Chain<'c>) -> Res<IntValue<'c>> {
        let before = |from: &[u32]| from.iter().zip(&at).all(|(from, at)| from <= at);
        let last = chain.iter().rev().find(|(from, _)| before(from)).cloned();
        let (from, mut address) =
            last.ok_or_else(|| Stop::Bug("a chain of addresses has no start".into()))?;
        if from == at {
            return Ok(address);
        }
        for ((from, at), stride) in from.iter().zip(&at).zip(&view.strides) {
            if from != at {
                address = self.moved(address, self.long((at - from).into()), *stride, view.bytes)?;
            }
        }
        chain.push((at, address));
        Ok(address)
    }

    /// The address of the element of a register relative to a uniform one: lanes differ only along the axis `fast`, whose
    /// elements are neighbours in memory.
    fn box_near(
        &self,
        view: &View<'c>,
        origin: IntValue<'c>,
        layout: LayoutId,
        n: usize,
        (fast, chain): (usize, &mut Chain<'c>),
    ) -> Res<Near<'c>> {
        let tile_layout = self.kernel.layouts.get(layout);
        if chain.is_empty() {
            chain.push((vec![0; view.strides.len()], origin));
        }
        let mut at = tile_layout.register(n);
        if let Some(at) = at.get_mut(fast) {
            *at = 0;
        }
        let base = self.chained(view, at, chain)?;
        let coords = self.thread_coords(layout)?;
        let thread = coords.get(fast).copied().ok_or_else(|| Stop::Bug("no such axis".into()))?;
        let distance = self.builder.build_int_mul(thread, self.int(view.bytes), "")?;
        Ok(Near { base, distance })
    }

    /// The addresses of the wide accesses to a box of a view, the first register of each; `vector` neighbours at once.
    pub(super) fn box_places(&self, inst: &Inst, tile: ValueId, vector: u32) -> Res<Vec<MemoryPlace<'c>>> {
        let mut view = self.view(self.operand(inst, 0)?)?;
        if self.chunked.contains(&tile) {
            // Values that depend only on them would stay live for all iterations of a loop, a number for each row.
            for stride in view.strides.iter_mut().filter(|s| !s.is_const()) {
                *stride = self.target.opaque_value(self, *stride)?;
            }
        }
        let rank = view.extents.len();
        let mut corner = self.corner(&view, inst.operands.get(1..=rank).unwrap_or(&[]))?;
        let shape = self.shape(tile);
        Ok(if shape.is_empty() {
            let (mut address, mut inside) = (view.base, None);
            for ((at, extent), stride) in corner.iter().zip(&view.extents).zip(&view.strides) {
                address = self.moved(address, self.extend(at.at, true)?, *stride, view.bytes)?;
                let one = self.builder.build_int_compare(IntPredicate::ULT, at.at, *extent, "")?;
                inside = self.both(inside, Some(one))?;
            }
            vec![MemoryPlace { address, offset: 0, predicate: inside, near: None, ragged: None }]
        } else {
            let layout = self.layout_id(tile)?;
            let few = self.count(tile)? <= FEW * vector as usize;
            corner.iter_mut().for_each(|c| c.few = few);
            let at = corner.iter().map(|c| self.extend(c.at, true)).collect::<Res<Vec<_>>>()?;
            let origin = self.advanced(&view, view.base, &at)?;
            let axis = |name| inst.attrs.int(name).and_then(|d| usize::try_from(d).ok());
            let (bounded, along) = (axis("bounded"), axis("ragged"));
            let (mut places, mut own, mut uniform) = (vec![], vec![], vec![]);
            if bounded.is_none() && self.kernel.layouts.get(layout).adds_registers() {
                let at = inst.operands.get(1..=rank).unwrap_or(&[]);
                let carried = self.carried_address(&view, at, layout)?;
                own.extend(carried.map(|address| (vec![0; rank], address)));
            }
            let mut row = match along {
                Some(d) => Some(self.row_end(&view, &corner, layout, (d, vector))?),
                None => None,
            };
            for n in (0..self.count(tile)?).step_by(vector as usize) {
                let (address, offset) = self.box_address(&view, origin, layout, n, &mut own)?;
                let predicate = self.is_inside(&view, &corner, (layout, n), shape, along)?;
                let near = bounded
                    .map(|fast| self.box_near(&view, origin, layout, n, (fast, &mut uniform)))
                    .transpose()?;
                let ragged = row.as_mut().map(|row| self.ragged(row, n)).transpose()?;
                places.push(MemoryPlace { address, offset, predicate, near, ragged });
            }
            places
        })
    }

    pub(super) fn box_access(&mut self, inst: &Inst, op: MemoryOp) -> Res<()> {
        let rank = self.view(self.operand(inst, 0)?)?.extents.len();
        let loads = op == MemoryOp::ViewLoad;
        let tile = if loads { self.result(inst)? } else { self.operand(inst, 1 + rank)? };
        let vector = self.vector(inst, tile)?;
        let places = self.box_places(inst, tile, vector)?;
        if !loads {
            return self.write(tile, (vector, &places), Caching::of(&inst.attrs));
        }
        let other = inst.operands.get(1 + rank).map(|v| self.tile(*v)).transpose()?;
        let (shifted, caching) = (inst.attrs.flag("shifted"), Caching::of(&inst.attrs));
        self.read_now_or_late(tile, Late { vector, places, other, shifted, caching })
    }

    pub(super) fn inside(&mut self, inst: &Inst) -> Res<()> {
        let view = self.view(self.operand(inst, 0)?)?;
        let corner = self.corner(&view, inst.operands.get(1..).unwrap_or(&[]))?;
        let r = self.result(inst)?;
        let shape = self.shape(r);
        if shape.is_empty() {
            let mut all: Option<IntValue<'c>> = None;
            for (at, extent) in corner.iter().zip(&view.extents) {
                let one = self.builder.build_int_compare(IntPredicate::ULT, at.at, *extent, "")?;
                all = self.both(all, Some(one))?;
            }
            let all = all.unwrap_or(self.context.bool_type().const_int(1, false));
            self.define(r, Val::Scalar(all.into()));
            return Ok(());
        }
        let layout = self.layout_id(r)?;
        let vector = self.vector(inst, r)?;
        let mut regs = vec![];
        for n in (0..self.count(r)?).step_by(vector as usize) {
            let inside = self.is_inside(&view, &corner, (layout, n), shape, None)?;
            let inside = inside.unwrap_or(self.context.bool_type().const_int(1, false));
            regs.resize(regs.len() + vector as usize, inside.into());
        }
        self.define_regs(r, regs)
    }

    /// Accesses to single elements: `at` is one tile for each axis.
    pub(super) fn scattered(&mut self, inst: &Inst, op: MemoryOp) -> Res<()> {
        let view = self.view(self.operand(inst, 0)?)?;
        let rank = view.extents.len();
        let at: Vec<ValueId> = inst.operands.iter().skip(1).take(rank).copied().collect();
        let gathers = op == MemoryOp::ViewGather;
        let (mask, tile) = if gathers {
            (self.operand(inst, 1 + rank)?, self.result(inst)?)
        } else {
            (self.operand(inst, 2 + rank)?, self.operand(inst, 1 + rank)?)
        };
        let places = self.element_places(&view, &at, Some(mask), tile)?;
        if !gathers {
            return self.write(tile, (1, &places), Caching::of(&inst.attrs));
        }
        let other = self.tile(self.operand(inst, 2 + rank)?)?;
        let (other, caching) = (Some(other), Caching::of(&inst.attrs));
        let what = Late { vector: 1, places, other, shifted: false, caching };
        let regs = self.read(tile, &what, 0..what.places.len())?;
        self.define_regs(tile, regs)
    }

    /// The addresses of single elements of a view; those that are out of bounds, or masked, have none.
    pub fn element_places(
        &self,
        view: &View<'c>,
        at: &[ValueId],
        mask: Option<ValueId>,
        like: ValueId,
    ) -> Res<Vec<MemoryPlace<'c>>> {
        let tiles = at.iter().map(|v| self.tile(*v)).collect::<Res<Vec<_>>>()?;
        let mask = mask.map(|m| self.tile(m)).transpose()?;
        let mut places = vec![];
        for n in 0..self.count(like)? {
            let mut predicate =
                mask.as_ref().map(|m| self.register(m, n)).transpose()?.map(|x| x.into_int_value());
            if !self.shape(like).is_empty() {
                predicate =
                    self.both(predicate, self.is_real(self.layout_id(like)?, self.shape(like), n)?)?;
            }
            let mut address = view.base;
            for (d, (tile, v)) in tiles.iter().zip(at).enumerate() {
                let (Some(extent), Some(stride)) = (view.extents.get(d), view.strides.get(d)) else {
                    continue;
                };
                let signed = self.dtype(*v).is_none_or(DType::is_signed);
                let x = self.extend(self.register(tile, n)?.into_int_value(), signed)?;
                let inside =
                    self.builder.build_int_compare(IntPredicate::ULT, x, self.extend(*extent, true)?, "")?;
                predicate = self.both(predicate, Some(inside))?;
                address = self.moved(address, x, *stride, view.bytes)?;
            }
            places.push(MemoryPlace { address, offset: 0, predicate, near: None, ragged: None });
        }
        Ok(places)
    }
}
