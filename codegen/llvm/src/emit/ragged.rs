//! Emits accesses to the rows of views, and to neighbours in tiles of pointers, that may begin at any byte and end anywhere.
//!
//! For all accesses of an instruction the lanes of a warp ask once whether one of them is partly inside of the view or the mask, or
//! elements are no neighbours in memory. If not, as everywhere but at the end of a row, each access is a wide one without
//! alignment, and otherwise each element is accessed by itself: nothing outside of the view is touched.
//!
//! A target without unaligned accesses loads elements that are all inside or outside by the two aligned words of 16 bytes that have
//! them, and shifts these. A word of which a byte is read has an element of the view, so it is in the same page and, if this begins
//! and ends at multiples of 16 bytes, in the same allocation.

use std::collections::BTreeMap;

use inkwell::IntPredicate;
use inkwell::intrinsics::Intrinsic;
use inkwell::values::{BasicValueEnum, IntValue};
use tk_gpu::analysis::pointer_steps::{PointerStep, Pointers};
use tk_gpu::ir::kernel::LayoutId;
use tk_ops::DType;
use tk_tile::{Inst, ValueId};

use super::state::{Inside, MemoryPlace, Ragged};
use super::value::{View, is_zero, vector_of};
use super::view::Corner;
use super::{Emit, Res, bug};
use crate::target::{Access, Space};

/// What is asked about the accesses of an instruction along one axis of a view.
pub(super) struct RowEnd<'c> {
    layout: LayoutId,
    along: usize,
    /// Neighbours of an access.
    vector: u32,
    /// The first position of the box; `None` where `end` is what is left from that of this thread on.
    corner: Option<IntValue<'c>>,
    end: IntValue<'c>,
    apart: Option<IntValue<'c>>,
    step: IntValue<'c>,
    /// For each coordinate of a register.
    known: BTreeMap<u32, Ragged<'c>>,
}

/// What is asked about the accesses of an instruction through a tile of pointers.
#[derive(Debug)]
pub(super) struct PointersEnd<'c> {
    step: IntValue<'c>,
    apart: Option<IntValue<'c>>,
    /// Neighbours of an access.
    vector: u32,
    along: usize,
}

impl<'c> Emit<'_, 'c> {
    /// What is asked about accesses of neighbours along an axis of a view.
    pub(super) fn row_end(
        &self,
        view: &View<'c>,
        corner: &[Corner<'c>],
        layout: LayoutId,
        (along, vector): (usize, u32),
    ) -> Res<RowEnd<'c>> {
        let of_axis = corner.get(along).zip(view.extents.get(along)).zip(view.strides.get(along));
        let Some(((corner, extent), stride)) = of_axis else { return bug("a row has no axis") };
        let counts_left = corner.non_negative && self.kernel.layouts.get(layout).adds_registers();
        let end = if counts_left { self.left(*corner, *extent, (layout, along), None)? } else { *extent };
        let one = stride.get_type().const_int(1, false);
        let apart = match stride.get_sign_extended_constant() {
            Some(1) => None,
            _other => Some(self.builder.build_int_compare(IntPredicate::NE, *stride, one, "")?),
        };
        let step = self.builder.build_int_mul(*stride, self.long(view.bytes.into()), "")?;
        let corner = (!counts_left).then_some(corner.at);
        Ok(RowEnd { layout, along, vector, corner, end, apart, step, known: BTreeMap::new() })
    }

    /// What is asked about the access of the neighbours from register `n` on.
    pub(super) fn ragged(&self, row: &mut RowEnd<'c>, n: usize) -> Res<Ragged<'c>> {
        let key = self.kernel.layouts.get(row.layout).register(n).get(row.along).copied().unwrap_or(0);
        if let Some(known) = row.known.get(&key) {
            return Ok(*known);
        }
        let (b, end, ty) = (self.builder, row.end, row.end.get_type());
        let number = |x: u32| ty.const_int(x.into(), false);
        let (at, below, whole, straddles) = match row.corner {
            None => {
                let last = number(key + row.vector - 1);
                let whole = b.build_int_compare(IntPredicate::SGT, end, last, "")?;
                // At least 1 and less than all are left.
                let more = b.build_int_sub(end, number(key + 1), "")?;
                let straddles = b.build_int_compare(IntPredicate::ULT, more, number(row.vector - 1), "")?;
                (number(key), IntPredicate::SLT, whole, straddles)
            }
            Some(corner) => {
                let at = self.along(corner, row.layout, n, row.along)?;
                let last = b.build_int_add(at, number(row.vector - 1), "")?;
                let [first, last] = [at, last].map(|x| b.build_int_compare(IntPredicate::ULT, x, end, ""));
                let whole = b.build_and(first?, last?, "")?;
                // Elements after a negative position may be inside.
                let begins = b.build_int_compare(IntPredicate::SLT, at, end, "")?;
                let straddles = b.build_and(begins, b.build_not(whole, "")?, "")?;
                (at, IntPredicate::ULT, whole, straddles)
            }
        };
        let inside = Inside::Row { at, end, below };
        let (whole, straddles) = (Some(whole), Some(straddles));
        let ragged = Ragged { step: row.step, apart: row.apart, whole, straddles, inside };
        row.known.insert(key, ragged);
        Ok(ragged)
    }

    /// What is asked about the accesses through a tile of pointers whose neighbours follow one another along an axis, or by a scalar.
    pub(super) fn pointers_end(&self, inst: &Inst, p: ValueId, d: usize) -> Res<PointersEnd<'c>> {
        let of = Pointers { module: &self.kernel.module, func: self.func(), axis: &self.axis };
        let extent = self.shape(p).get(d).copied().unwrap_or(1);
        let bytes = self.long(self.pointee_bytes(p)?.into());
        let (step, apart) = match of.step(p, d, extent) {
            Some(PointerStep::One(_)) => (bytes, None),
            Some(PointerStep::Scalar(by)) => {
                let signed = self.dtype(by).is_none_or(DType::is_signed);
                let by = self.extend(self.scalar(by)?.into_int_value(), signed)?;
                let is_one = self.long(1);
                let apart = self.builder.build_int_compare(IntPredicate::NE, by, is_one, "")?;
                (self.builder.build_int_mul(by, bytes, "")?, Some(apart))
            }
            None => return bug("neighbours are not known to be equally far apart"),
        };
        let vector = self.vector(inst, p)?;
        Ok(PointersEnd { step, apart, vector, along: d })
    }

    /// What is asked about the access from register `n` of a tile of pointers on.
    pub(super) fn ragged_pointers(
        &self,
        end: &PointersEnd<'c>,
        mask: Option<ValueId>,
        n: usize,
    ) -> Res<Ragged<'c>> {
        let (step, apart) = (end.step, end.apart);
        let Some(mask) = mask else {
            return Ok(Ragged { step, apart, whole: None, straddles: None, inside: Inside::All });
        };
        let (b, tile) = (self.builder, self.tile(mask)?);
        let count = end.vector as usize;
        let of = Pointers { module: &self.kernel.module, func: self.func(), axis: &self.axis };
        let masks = (n..n + count).map(|n| Ok(self.register(&tile, n)?.into_int_value()));
        let masks = masks.collect::<Res<Vec<_>>>()?;
        let (Some(first), Some(last)) = (masks.first(), masks.last()) else {
            return bug("an access has no elements");
        };
        let (mut some, mut whole) = (*first, *last);
        if !of.is_prefix(mask, end.along, end.vector.into()) {
            for x in &masks {
                (some, whole) = (b.build_or(some, *x, "")?, b.build_and(whole, *x, "")?);
            }
        }
        let straddles = b.build_and(some, b.build_not(whole, "")?, "")?;
        let (whole, straddles) = (Some(whole), Some(straddles));
        Ok(Ragged { step, apart, whole, straddles, inside: Inside::Mask(mask, n) })
    }

    /// Whether these accesses are done element by element; `None` if none of them is ragged.
    fn by_element(&self, places: &[MemoryPlace<'c>]) -> Res<Option<IntValue<'c>>> {
        let (mut straddle, mut apart) = (vec![], None);
        for ragged in places.iter().filter_map(|p| p.ragged) {
            straddle.extend(ragged.straddles.filter(|x| !straddle.contains(x)));
            apart = apart.or(ragged.apart);
        }
        if straddle.is_empty() {
            return Ok(apart);
        }
        let some_lane = self.target.some_lane(self, &straddle)?;
        self.either(apart, some_lane)
    }

    /// Executes accesses of `vector` neighbours each, where they are ragged as wide ones or element by element. `act` is given
    /// the accesses and the number of elements of each, and returns their elements, or nothing.
    pub(super) fn wide_or_by_element(
        &self,
        vector: u32,
        places: &[MemoryPlace<'c>],
        act: impl Fn(&[MemoryPlace<'c>], u32) -> Res<Vec<BasicValueEnum<'c>>>,
    ) -> Res<Vec<BasicValueEnum<'c>>> {
        let Some(by_element) = self.by_element(places)? else { return act(places, vector) };
        let b = self.builder;
        let [wide, single, after] = ["wide", "single", "rows"].map(|name| self.new_block(name));
        b.build_conditional_branch(by_element, single, wide)?;
        let mut ends = vec![];
        for block in [wide, single] {
            b.position_at_end(block);
            let regs = if block == wide {
                act(&self.wholes(places)?, vector)?
            } else {
                act(&self.singles(places, vector)?, 1)?
            };
            let vectors = regs.chunks(vector as usize).map(|x| self.as_vector(x));
            ends.push((vectors.collect::<Res<Vec<_>>>()?, self.here()?));
            b.build_unconditional_branch(after)?;
        }
        b.position_at_end(after);
        let [(wide, from_wide), (single, from_single)] = ends.as_slice() else { return Ok(vec![]) };
        let mut merged = vec![];
        for (x, y) in wide.iter().zip(single) {
            let phi = b.build_phi(x.get_type(), "")?;
            phi.add_incoming(&[(x, *from_wide), (y, *from_single)]);
            merged.push(phi.as_basic_value().into_vector_value());
        }
        let mut regs = vec![];
        for x in merged {
            for i in 0..vector {
                regs.push(b.build_extract_element(x, self.int(i), "")?);
            }
        }
        Ok(regs)
    }

    /// Loads elements at an address that nothing is known of: the two aligned words that have them, shifted.
    pub(super) fn load_shifted(
        &self,
        access: &Access<'c>,
        others: &[BasicValueEnum<'c>],
    ) -> Res<Vec<BasicValueEnum<'c>>> {
        let (b, word) = (self.builder, self.context.i32_type());
        let address = b.build_int_add(access.address, self.long(access.offset), "")?;
        let bytes = b.build_int_truncate(address, word, "")?;
        let mut words = match self.target.load_around(self, address, access)? {
            Some(words) => words,
            None => self.aligned_words(address, access)?,
        };
        // By two words, by one, and by the bytes of one.
        for by in [2, 1] {
            let bit = b.build_and(bytes, self.int(4 * by as u32), "")?;
            let moves = b.build_int_compare(IntPredicate::NE, bit, word.const_zero(), "")?;
            let pairs = words.iter().zip(words.iter().skip(by));
            let moved =
                pairs.map(|(here, there)| Ok(b.build_select(moves, *there, *here, "")?.into_int_value()));
            words = moved.collect::<Res<Vec<_>>>()?;
        }
        if access.bytes < 4 {
            let bits = b.build_left_shift(bytes, self.int(3), "")?;
            let bits = b.build_and(bits, self.int(31), "")?;
            let pairs = words.iter().zip(words.iter().skip(1));
            let moved = pairs.map(|(low, high)| self.shifted_right(*low, *high, bits));
            words = moved.collect::<Res<Vec<_>>>()?;
        }
        words.truncate(4);
        let parts: Vec<BasicValueEnum<'c>> = words.into_iter().map(Into::into).collect();
        let ty = vector_of(access.ty, access.count)?;
        let all = b.build_bit_cast(self.as_vector(&parts)?, ty, "")?.into_vector_value();
        let mut out = vec![];
        for (i, other) in others.iter().enumerate() {
            let x = b.build_extract_element(all, self.int(i as u32), "")?;
            out.push(match access.predicate.filter(|_| !is_zero(other)) {
                Some(predicate) => b.build_select(predicate, x, *other, "")?,
                None => x,
            });
        }
        Ok(out)
    }

    /// The two aligned words of 16 bytes that have the elements of an access, as eight of 4 bytes: zeros where the predicate is
    /// false. Nothing of the second one is read where the first has all elements.
    fn aligned_words(&self, address: IntValue<'c>, access: &Access<'c>) -> Res<Vec<IntValue<'c>>> {
        const BYTES: i64 = 16;
        let (b, zeros) = (self.builder, vec![self.int(0).into(); 4]);
        let base = b.build_and(address, self.long(!(BYTES - 1)), "")?;
        let rest = b.build_and(address, self.long(BYTES - 1), "")?;
        let is_split = b.build_int_compare(IntPredicate::NE, rest, self.long(0), "")?;
        let mut words = vec![];
        for (offset, asked) in [(0, None), (BYTES, Some(is_split))] {
            let predicate = self.both(access.predicate, asked)?;
            let one = Access::of(base, offset, self.i32().into(), 4, 4);
            let one = Access { predicate, caching: access.caching, ..one };
            let loaded = self.target.load(self, Space::Global, &one, &zeros)?;
            words.extend(loaded.into_iter().map(BasicValueEnum::into_int_value));
        }
        Ok(words)
    }

    /// 32 bits of 64, from a bit below 32 on.
    fn shifted_right(&self, low: IntValue<'c>, high: IntValue<'c>, bit: IntValue<'c>) -> Res<IntValue<'c>> {
        let declared = Intrinsic::find("llvm.fshr")
            .and_then(|i| i.get_declaration(self.module, &[low.get_type().into()]));
        let Some(declared) = declared else { return bug("LLVM has no `llvm.fshr`") };
        let call = self.builder.build_call(declared, &[high.into(), low.into(), bit.into()], "")?;
        let Some(x) = call.try_as_basic_value().basic() else { return bug("a shift gave nothing") };
        Ok(x.into_int_value())
    }

    /// The accesses, each of all of its elements.
    fn wholes(&self, places: &[MemoryPlace<'c>]) -> Res<Vec<MemoryPlace<'c>>> {
        let whole = |place: &MemoryPlace<'c>| -> Res<_> {
            let predicate = self.both(place.predicate, place.ragged.and_then(|r| r.whole))?;
            Ok(MemoryPlace { predicate, ..*place })
        };
        places.iter().map(whole).collect()
    }

    /// Accesses of single elements.
    fn singles(&self, places: &[MemoryPlace<'c>], vector: u32) -> Res<Vec<MemoryPlace<'c>>> {
        let b = self.builder;
        let mut out = vec![];
        for place in places {
            let Some(ragged) = place.ragged else { continue };
            let mut address = place.address;
            for i in 0..vector {
                if i > 0 {
                    address = b.build_int_add(address, ragged.step, "")?;
                }
                let inside = match ragged.inside {
                    Inside::Row { at, end, below } => {
                        let at = b.build_int_add(at, at.get_type().const_int(i.into(), false), "")?;
                        Some(b.build_int_compare(below, at, end, "")?)
                    }
                    Inside::Mask(mask, first) => {
                        Some(self.register(&self.tile(mask)?, first + i as usize)?.into_int_value())
                    }
                    Inside::All => None,
                };
                let predicate = self.both(place.predicate, inside)?;
                out.push(MemoryPlace { address, predicate, ragged: None, ..*place });
            }
        }
        Ok(out)
    }
}
