//! Computes coordinates: which element of a tile a register of this thread owns.
//!
//! Guarantees that the part that depends on the thread is computed once for each layout, in the entry block, and where
//! [`Emit::forget_thread`] says so.

use std::collections::BTreeMap;
use std::rc::Rc;

use inkwell::values::{BasicValueEnum, IntValue};
use tk_gpu::Layout;
use tk_gpu::ir::kernel::LayoutId;
use tk_gpu::layout::linear::InDim;
use tk_gpu::layout::padded;
use tk_tile::ValueId;

use super::state::Nested;
use super::{Emit, Res, Stop};

impl<'c> Emit<'_, 'c> {
    /// The layout of a tile.
    pub fn layout_id(&self, v: ValueId) -> Res<LayoutId> {
        self.kernel
            .value_layouts
            .get(v.0 as usize)
            .copied()
            .flatten()
            .ok_or_else(|| Stop::Bug(format!("{v} has no layout")))
    }

    /// The layout of a tile.
    pub fn layout(&self, v: ValueId) -> Res<&Layout> {
        let id = self.layout_id(v)?;
        self.kernel.layouts.find(id).ok_or_else(|| Stop::Bug(format!("{id} is no layout")))
    }

    /// Computes the coordinates of register 0 for every layout of some value, where they dominate all uses: in the entry
    /// block, and after a loop.
    pub(super) fn thread_layouts(&mut self) -> Res<()> {
        let mut used: Vec<LayoutId> = self.kernel.value_layouts.iter().copied().flatten().collect();
        used.sort_unstable();
        used.dedup();
        let mut threads = BTreeMap::new();
        for id in used {
            let Some(layout) = self.kernel.layouts.find(id) else { continue };
            let atom = layout.atom();
            let mut coords = vec![];
            for d in 0..atom.rank() {
                let lanes = (0..atom.bits(InDim::Lane)).map(|i| atom.basis(InDim::Lane, i));
                let warps = (0..atom.bits(InDim::Warp)).map(|i| atom.basis(InDim::Warp, i));
                let images: Vec<u64> = lanes
                    .chain(warps)
                    .map(|b| b.and_then(|b| b.get(d).copied()).unwrap_or(0).into())
                    .collect();
                coords.push(self.linear(self.tid, &images)?);
            }
            threads.insert(id, coords);
        }
        self.threads = Rc::new(threads);
        Ok(())
    }

    /// Computes coordinates again from here on, so that those from before a loop are not in registers during the loop.
    /// `after` is what the loop results in.
    pub(super) fn forget_thread(&mut self, after: Option<BasicValueEnum<'c>>) -> Res<()> {
        let word = match after {
            Some(BasicValueEnum::FloatValue(x)) if x.get_type() == self.context.f32_type() => {
                Some(self.builder.build_bit_cast(x, self.i32(), "")?.into_int_value())
            }
            _ => None,
        };
        self.tid = self.target.thread_again(self, word)?;
        self.thread_layouts()
    }

    /// The exclusive or of `images[i]` over the set bits i of `x`. Runs of bits that move together are one shift.
    pub fn linear(&self, x: IntValue<'c>, images: &[u64]) -> Res<IntValue<'c>> {
        let ty = x.get_type();
        let mut sum: Option<IntValue<'c>> = None;
        let mut i = 0;
        while i < images.len() {
            let image = images.get(i).copied().unwrap_or(0);
            if image == 0 {
                i += 1;
                continue;
            }
            // A run: each image is twice the one before, and each is a single bit.
            let mut n = 1;
            while image.is_power_of_two() && images.get(i + n).copied() == Some(image << n) {
                n += 1;
            }
            let masked = self.builder.build_and(x, ty.const_int(((1u64 << n) - 1) << i, false), "")?;
            let part = if image.is_power_of_two() {
                let to = image.trailing_zeros() as usize;
                match to.cmp(&i) {
                    std::cmp::Ordering::Equal => masked,
                    std::cmp::Ordering::Greater => {
                        self.builder.build_left_shift(masked, ty.const_int((to - i) as u64, false), "")?
                    }
                    std::cmp::Ordering::Less => self.builder.build_right_shift(
                        masked,
                        ty.const_int((i - to) as u64, false),
                        false,
                        "",
                    )?,
                }
            } else {
                let bit = self.builder.build_right_shift(masked, ty.const_int(i as u64, false), false, "")?;
                self.builder.build_int_mul(bit, ty.const_int(image, false), "")?
            };
            sum = Some(match sum {
                Some(sum) => self.builder.build_xor(sum, part, "")?,
                None => part,
            });
            i += n;
        }
        Ok(sum.unwrap_or_else(|| ty.const_zero()))
    }

    /// The coordinates of register 0 of this thread.
    pub fn thread_coords(&self, layout: LayoutId) -> Res<Vec<IntValue<'c>>> {
        self.threads.get(&layout).cloned().ok_or_else(|| Stop::Bug(format!("{layout} has no coordinates")))
    }

    /// The coordinate along a dimension of the element that a register of this thread owns.
    pub fn coord(&self, layout: LayoutId, register: usize, dim: usize) -> Res<IntValue<'c>> {
        let base = self.thread_coords(layout)?.get(dim).copied();
        let base = base.ok_or_else(|| Stop::Bug(format!("{layout} has no dimension {dim}")))?;
        let tile_layout = self.kernel.layouts.get(layout);
        let at = tile_layout.register(register).get(dim).copied().unwrap_or(0);
        self.join(tile_layout, base, at, dim)
    }

    /// Combines the coordinate of a thread with that of a register.
    fn join(&self, layout: &Layout, base: IntValue<'c>, at: u32, dim: usize) -> Res<IntValue<'c>> {
        let at = u64::from(at);
        if at == 0 {
            return Ok(base);
        }
        let ty = base.get_type();
        if layout.adds_registers() {
            return Ok(self.builder.build_int_nuw_add(base, ty.const_int(at, false), "")?);
        }
        // Atoms are consecutive; inside of one it is an exclusive or.
        let inside = (1u64 << layout.atom().out_bits().get(dim).copied().unwrap_or(0)) - 1;
        let near = self.builder.build_xor(base, ty.const_int(at & inside, false), "")?;
        Ok(self.builder.build_int_nuw_add(near, ty.const_int(at & !inside, false), "")?)
    }

    /// The row-major index of the element that a register of this thread owns.
    pub fn position(&self, layout: LayoutId, shape: &[u32], register: usize) -> Res<IntValue<'c>> {
        let mut at = self.i32().const_zero();
        for (dim, stride) in tk_gpu::ir::attrs::row_major(shape).iter().enumerate() {
            let coord = self.coord(layout, register, dim)?;
            let by = self.i32().const_int(stride.cast_unsigned(), false);
            at = self.builder.build_int_add(at, self.builder.build_int_mul(coord, by, "")?, "")?;
        }
        Ok(at)
    }

    /// Returns true if register `register` of this thread owns an element and not padding; `None` if it always does.
    pub fn is_real(&self, layout: LayoutId, shape: &[u32], register: usize) -> Res<Option<IntValue<'c>>> {
        let mut all: Option<IntValue<'c>> = None;
        for (d, n) in shape.iter().enumerate() {
            if padded(*n) == *n {
                continue;
            }
            let at = self.coord(layout, register, d)?;
            let inside = self.builder.build_int_compare(
                inkwell::IntPredicate::ULT,
                at,
                at.get_type().const_int((*n).into(), false),
                "",
            )?;
            all = Some(self.both(all, Some(inside))?.unwrap_or(inside));
        }
        Ok(all)
    }

    /// Returns true if this thread is the first of those that own the same elements; `None` if no two do. For a scalar,
    /// true if it is thread 0.
    pub fn is_first(&self, layout: Option<LayoutId>) -> Res<Option<IntValue<'c>>> {
        if self.is_alone {
            return Ok(None);
        }
        let threads = self.kernel.options.threads();
        // In a function of elements, a scalar, or a tile of one, is one of many.
        let layout = match self.nested {
            Some(Nested::Map(l)) => Some(l),
            Some(Nested::Fold) | None => layout,
        };
        let mask = match layout {
            None => threads.count() - 1,
            Some(l) => {
                let atom = self.kernel.layouts.get(l).atom();
                atom.free_bits(InDim::Lane) | atom.free_bits(InDim::Warp) << threads.lane_bits
            }
        };
        if mask == 0 {
            return Ok(None);
        }
        let bits = self.builder.build_and(self.tid, self.int(mask), "")?;
        Ok(Some(self.builder.build_int_compare(inkwell::IntPredicate::EQ, bits, self.int(0), "")?))
    }

    /// The conjunction of two predicates; `None` is always true.
    pub fn both(&self, a: Option<IntValue<'c>>, b: Option<IntValue<'c>>) -> Res<Option<IntValue<'c>>> {
        Ok(match (a, b) {
            (Some(a), Some(b)) => Some(self.builder.build_and(a, b, "")?),
            (a, b) => a.or(b),
        })
    }

    /// The registers of `layout` whose elements have the same coordinates except along `ignored`, each list in the
    /// order of the coordinate along `ignored`, and the list of the first register first.
    pub fn rows(&self, layout: &Layout, ignored: usize) -> Vec<(Vec<u32>, Vec<usize>)> {
        let mut rows: BTreeMap<Vec<u32>, Vec<(u32, usize)>> = BTreeMap::new();
        for r in 0..layout.registers() {
            let mut at = layout.register(r);
            let along = if ignored < at.len() { at.remove(ignored) } else { 0 };
            rows.entry(at).or_default().push((along, r));
        }
        let sorted = |mut list: Vec<(u32, usize)>| {
            list.sort_unstable();
            list.into_iter().map(|(_, r)| r).collect()
        };
        rows.into_iter().map(|(key, list)| (key, sorted(list))).collect()
    }
}
