//! Emits scans inside of warps: each thread scans its neighbours, lanes scan the totals with shuffles, and each element
//! is combined with the total of what precedes it.
//!
//! Requires the layout of [`tk_gpu::passes::assign_layouts::anchor::Anchors::along`]: neighbours in registers, then in
//! the low lanes; atoms are consecutive.

use inkwell::IntPredicate;
use inkwell::values::IntValue;
use tk_gpu::layout::linear::InDim;
use tk_ops::{DType, ReduceOp, ScanOp};
use tk_tile::Inst;

use super::reduce::{Combine, State};
use super::{Emit, Res, Stop, bug};
use crate::target::Lane;

/// The state of an element and whether it is one, if some are padding.
type Item<'c> = (State<'c>, Option<IntValue<'c>>);

/// The lanes that share a row.
#[derive(Clone, Copy)]
struct Segment {
    /// Log2 of their number.
    bits: u32,
    /// From the end to the start.
    reverse: bool,
}

impl<'c> Emit<'_, 'c> {
    pub(super) fn scan(&mut self, inst: &Inst, op: ScanOp) -> Res<()> {
        let reduce = match op {
            ScanOp::CumSum => Some(ReduceOp::Sum),
            ScanOp::CumProd => Some(ReduceOp::Prod),
            ScanOp::Custom => None,
            ScanOp::Sort | ScanOp::TopK | ScanOp::Histogram | ScanOp::Gather => {
                return bug(format!("`{}` was not lowered", op.name()));
            }
        };
        let x = self.operand(inst, 0)?;
        let layout = self.layout_id(x)?;
        let tile_layout = self.kernel.layouts.get(layout).clone();
        let axis = tk_gpu::ir::attrs::axis_of(inst);
        let extent = self.shape(x).get(axis).copied().unwrap_or(1);
        let reverse = inst.attrs.flag("reverse");
        let wide = |d: Option<DType>| match (reduce, d) {
            (Some(_), Some(DType::F16 | DType::BF16)) => Some(DType::F32),
            (_, d) => d,
        };
        let from: Vec<Option<DType>> = inst.operands.iter().map(|v| self.dtype(*v)).collect();
        let combine = Combine { inst, op: reduce, dtypes: from.iter().map(|d| wide(*d)).collect() };
        let operands = inst.operands.iter().map(|v| self.registers(*v)).collect::<Res<Vec<_>>>()?;
        let ragged = (reverse || combine.has_side_effects(self)) && tk_gpu::layout::padded(extent) != extent;
        let lanes = (0..tile_layout.atom().bits(InDim::Lane)).filter(|i| {
            tile_layout.atom().basis(InDim::Lane, *i).and_then(|b| b.get(axis).copied()).unwrap_or(0) != 0
        });
        let segment = Segment { bits: lanes.count() as u32, reverse };
        let mut done: Vec<Option<State<'c>>> = vec![None; tile_layout.registers()];
        for (_, mut regs) in self.rows(&tile_layout, axis) {
            if reverse {
                regs.reverse();
            }
            let mut carry: Option<Item<'c>> = None;
            for atom in regs.chunks(1 << tile_layout.chunk(axis).0) {
                let mut items = vec![];
                for n in atom {
                    let mut state = vec![];
                    for ((o, from), to) in operands.iter().zip(&from).zip(&combine.dtypes) {
                        let x = *o.get(*n).ok_or_else(|| Stop::Bug("no such register".into()))?;
                        state.push(match (from, to) {
                            (Some(from), Some(to)) => self.converted(x, *from, *to)?,
                            _ => x,
                        });
                    }
                    let real = if ragged { Some(self.is_along(layout, *n, axis, extent)?) } else { None };
                    items.push((state, real));
                }
                carry = Some(self.scan_atom(&combine, segment, &mut items, carry)?);
                for (n, (s, _)) in atom.iter().zip(items) {
                    if let Some(slot) = done.get_mut(*n) {
                        *slot = Some(s);
                    }
                }
            }
        }
        for (i, r) in inst.results.iter().enumerate() {
            let mut regs = vec![];
            for s in &done {
                let x = s
                    .as_ref()
                    .and_then(|s| s.get(i).copied())
                    .ok_or_else(|| Stop::Bug("a register was not scanned".into()))?;
                regs.push(match (combine.dtypes.get(i).copied().flatten(), self.dtype(*r)) {
                    (Some(from), Some(to)) => self.converted(x, from, to)?,
                    _ => x,
                });
            }
            self.define_regs(*r, regs)?;
        }
        Ok(())
    }

    /// Scans one atom of a row; returns the total of it and everything before it.
    fn scan_atom(
        &mut self,
        combine: &Combine<'_>,
        segment: Segment,
        items: &mut [Item<'c>],
        carry: Option<Item<'c>>,
    ) -> Res<Item<'c>> {
        for n in 1..items.len() {
            let (before, behind) = items.split_at_mut(n);
            let (Some(a), Some(b)) = (before.last(), behind.first_mut()) else {
                return bug("nothing to scan");
            };
            *b = self.after(combine, a, b, None)?;
        }
        let Some(total) = items.last().cloned() else { return bug("nothing to scan") };
        let mut running = total;
        let lane = self.builder.build_and(self.tid, self.int((1 << segment.bits) - 1), "")?;
        for i in 0..segment.bits {
            let by = 1 << i;
            let from = self.other_lane(&running, segment, by)?;
            let there = self.is_there(segment, lane, by)?;
            running = self.after(combine, &from, &running, Some(there))?;
        }
        if segment.bits > 0 {
            // The total of the lanes before this one.
            let before = self.other_lane(&running, segment, 1)?;
            let there = self.is_there(segment, lane, 1)?;
            for item in items.iter_mut() {
                *item = self.after(combine, &before, item, Some(there))?;
            }
        }
        // The last lane of the segment has the total of all of it.
        let mask = self.int((1 << segment.bits) - 1);
        let low = self.builder.build_and(self.tid, self.int(self.kernel.options.spec.warp_size - 1), "")?;
        let last = if segment.reverse {
            self.builder.build_and(low, self.builder.build_not(mask, "")?, "")?
        } else {
            self.builder.build_or(low, mask, "")?
        };
        let whole = self.brought(&running, Lane::Index(last))?;
        let Some(carry) = carry else { return Ok(whole) };
        for item in items.iter_mut() {
            *item = self.after(combine, &carry, item, None)?;
        }
        self.after(combine, &carry, &whole, None)
    }

    /// The state of the lane `by` before this one in the order of the scan.
    fn other_lane(&self, item: &Item<'c>, segment: Segment, by: u32) -> Res<Item<'c>> {
        self.brought(item, if segment.reverse { Lane::Down(by) } else { Lane::Up(by) })
    }

    fn brought(&self, item: &Item<'c>, lane: Lane<'c>) -> Res<Item<'c>> {
        let state = item.0.iter().map(|x| self.shuffle(*x, lane)).collect::<Res<_>>()?;
        let real = item.1.map(|r| self.shuffle(r.into(), lane)).transpose()?.map(|r| r.into_int_value());
        Ok((state, real))
    }

    /// Returns true if its segment has a lane `by` before this one.
    fn is_there(&self, segment: Segment, lane: IntValue<'c>, by: u32) -> Res<IntValue<'c>> {
        let (predicate, bound) = if segment.reverse {
            (IntPredicate::ULT, (1 << segment.bits) - by)
        } else {
            (IntPredicate::UGE, by)
        };
        Ok(self.builder.build_int_compare(predicate, lane, self.int(bound), "")?)
    }

    /// `a` then `b`; only `b` if `a` is padding or does not exist.
    fn after(
        &mut self,
        combine: &Combine<'_>,
        a: &Item<'c>,
        b: &Item<'c>,
        there: Option<IntValue<'c>>,
    ) -> Res<Item<'c>> {
        let first = self.both(a.1, there)?;
        let has_effects = combine.has_side_effects(self);
        let real = if has_effects { self.both(first, b.1)? } else { None };
        let both = self.only_where(real, has_effects, &b.0, |e| e.combined(combine, &a.0, &b.0))?;
        match first {
            Some(first) => self.chosen(first, &(both, b.1), b),
            None => Ok((both, b.1)),
        }
    }

    fn chosen(&self, which: IntValue<'c>, a: &Item<'c>, b: &Item<'c>) -> Res<Item<'c>> {
        let state = a.0.iter().zip(&b.0).map(|(x, y)| Ok(self.builder.build_select(which, *x, *y, "")?));
        let real = match (a.1, b.1) {
            (Some(x), Some(y)) => Some(self.builder.build_select(which, x, y, "")?.into_int_value()),
            _ => None,
        };
        Ok((state.collect::<Res<_>>()?, real))
    }
}
