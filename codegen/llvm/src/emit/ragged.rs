//! Emits accesses to the rows of views that may begin at any byte and end anywhere.
//!
//! For all accesses of an instruction the lanes of a warp ask once whether one of them is partly inside of the view, or
//! elements are no neighbours in memory. If not, as everywhere but at the end of a row, each access is a wide one without
//! alignment, and otherwise each element is accessed by itself: nothing outside of the view is touched.

use inkwell::IntPredicate;
use inkwell::values::{BasicValueEnum, IntValue};
use tk_gpu::ir::kernel::LayoutId;

use super::state::{MemoryPlace, Ragged};
use super::value::View;
use super::view::Corner;
use super::{Emit, Res};

impl<'c> Emit<'_, 'c> {
    /// What is asked about an access of the neighbours from register `n` on, `vector` of them along the axis `along`.
    pub(super) fn ragged(
        &self,
        (view, corner): (&View<'c>, &[Corner<'c>]),
        (layout, n): (LayoutId, usize),
        (along, vector): (usize, u32),
    ) -> Res<Option<Ragged<'c>>> {
        let b = self.builder;
        let (Some(corner), Some(extent), Some(stride)) =
            (corner.get(along), view.extents.get(along), view.strides.get(along))
        else {
            return Ok(None);
        };
        let tile_layout = self.kernel.layouts.get(layout);
        let counts_left = corner.non_negative && tile_layout.is_disjoint();
        let (at, end, below) = if counts_left {
            let at = tile_layout.register(n).get(along).copied().unwrap_or(0);
            let at = extent.get_type().const_int(at.into(), false);
            (at, self.left(*corner, *extent, (layout, along), None)?, IntPredicate::SLT)
        } else {
            (self.along(corner.at, layout, n, along)?, *extent, IntPredicate::ULT)
        };
        let last = b.build_int_add(at, at.get_type().const_int(u64::from(vector) - 1, false), "")?;
        let first_inside = b.build_int_compare(below, at, end, "")?;
        let last_inside = b.build_int_compare(below, last, end, "")?;
        let (whole, straddles) = if counts_left {
            (last_inside, b.build_xor(first_inside, last_inside, "")?)
        } else {
            // Elements after a negative position may be inside.
            let whole = b.build_and(first_inside, last_inside, "")?;
            let begins_before_end = b.build_int_compare(IntPredicate::SLT, at, end, "")?;
            (whole, b.build_and(begins_before_end, b.build_not(whole, "")?, "")?)
        };
        let one = stride.get_type().const_int(1, false);
        let apart = match stride.get_sign_extended_constant() {
            Some(1) => None,
            _other => Some(b.build_int_compare(IntPredicate::NE, *stride, one, "")?),
        };
        let step = b.build_int_mul(*stride, self.long(view.bytes.into()), "")?;
        Ok(Some(Ragged { step, apart, at, end, below, whole, straddles }))
    }

    /// Whether these accesses are done element by element; `None` if none of them is ragged.
    pub(super) fn by_element(&self, places: &[MemoryPlace<'c>]) -> Res<Option<IntValue<'c>>> {
        let (mut straddles, mut apart): (Option<IntValue<'c>>, _) = (None, None);
        for ragged in places.iter().filter_map(|p| p.ragged) {
            straddles = Some(match straddles {
                Some(before) => self.builder.build_or(before, ragged.straddles, "")?,
                None => ragged.straddles,
            });
            apart = apart.or(ragged.apart);
        }
        let Some(straddles) = straddles else { return Ok(None) };
        let some_lane = self.target.some_lane(self, straddles)?;
        Ok(Some(match apart {
            Some(apart) => self.builder.build_or(some_lane, apart, "")?,
            None => some_lane,
        }))
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

    /// The accesses, each of all of its elements.
    fn wholes(&self, places: &[MemoryPlace<'c>]) -> Res<Vec<MemoryPlace<'c>>> {
        let whole = |place: &MemoryPlace<'c>| -> Res<_> {
            let predicate = self.both(place.predicate, place.ragged.map(|r| r.whole))?;
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
                let at = b.build_int_add(ragged.at, ragged.at.get_type().const_int(i.into(), false), "")?;
                let inside = b.build_int_compare(ragged.below, at, ragged.end, "")?;
                let predicate = self.both(place.predicate, Some(inside))?;
                out.push(MemoryPlace { address, predicate, ragged: None, ..*place });
            }
        }
        Ok(out)
    }
}
