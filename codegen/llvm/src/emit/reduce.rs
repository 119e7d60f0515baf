//! Emits reductions inside of warps.
//!
//! A reduction combines *states*, one or more values for each element ([`tk_gpu::ir::attrs::state`]): in registers
//! first, then between lanes with shuffles. Within a warp, neighbours are combined first, the earlier one as the first
//! argument of a function of the user. A reduction that depends on the order of all elements has them in one warp, in
//! their order.

use std::collections::BTreeMap;

use inkwell::IntPredicate;
use inkwell::values::{BasicValueEnum, IntValue};
use tk_gpu::Layout;
use tk_gpu::ir::attrs::state;
use tk_gpu::ir::kernel::LayoutId;
use tk_gpu::layout::linear::InDim;
use tk_ops::{DType, ElementwiseOp, ReduceOp};
use tk_tile::{Inst, ValueId};

use super::state::Nested;
use super::{Emit, Res, Stop, bug};
use crate::target::Lane;

/// The state of a reduction: one or more values.
pub type State<'c> = Vec<BasicValueEnum<'c>>;

/// How two states are combined.
pub struct Combine<'i> {
    /// The instruction.
    pub inst: &'i Inst,
    /// The operation; `None` for the block of the instruction.
    pub op: Option<ReduceOp>,
    /// The element types of a state; `None` for pointers.
    pub dtypes: Vec<Option<DType>>,
}

impl Combine<'_> {
    /// Returns true if it has side effects.
    pub fn has_side_effects(&self, e: &Emit<'_, '_>) -> bool {
        self.op.is_none() && self.inst.blocks.iter().any(|b| e.has_side_effects(*b))
    }
}

impl<'c> Emit<'_, 'c> {
    pub(super) fn reduce(&mut self, inst: &Inst, op: ReduceOp) -> Res<()> {
        let x = self.operand(inst, 0)?;
        let r = self.result(inst)?;
        let axis = tk_gpu::ir::attrs::axis_of(inst);
        let layout = self.layout_id(x)?;
        let from = self.dtype(x);
        let merge = inst.attrs.flag("merge");
        let dtypes: Vec<Option<DType>> = if op == ReduceOp::Custom || merge {
            inst.operands.iter().map(|v| self.dtype(*v)).collect()
        } else {
            let from = from.ok_or_else(|| Stop::Bug("pointers are not reduced".into()))?;
            let to = self.dtype(r).unwrap_or(from);
            state(op, from, to).into_iter().map(Some).collect()
        };
        let combine = Combine { inst, op: (op != ReduceOp::Custom).then_some(op), dtypes };
        let tile_layout = self.kernel.layouts.get(layout).clone();
        let states = self.states(inst, &combine, merge)?;
        let padded_extent = self.shape(x).get(axis).copied().unwrap_or(1);
        // Of the partial results of warps, the first `k` are real.
        let extent = inst.attrs.int("k").and_then(|k| u32::try_from(k).ok()).unwrap_or(padded_extent);
        let ragged = tk_gpu::layout::padded(padded_extent) != extent;
        let mut done: BTreeMap<Vec<u32>, State<'c>> = BTreeMap::new();
        for (key, regs) in self.rows(&tile_layout, axis) {
            let mut atoms = vec![];
            for regs in in_order(inst, &tile_layout, axis, regs) {
                let row = regs.iter().map(|n| {
                    let s = states.get(*n).cloned().ok_or_else(|| Stop::Bug("no such register".into()))?;
                    let real = if ragged { Some(self.is_along(layout, *n, axis, extent)?) } else { None };
                    Ok((s, real))
                });
                let row = row.collect::<Res<Vec<_>>>()?;
                let row = self.in_registers(&combine, row)?;
                atoms.push(self.between_lanes(&combine, &tile_layout, axis, row)?);
            }
            let (s, _) = self.in_registers(&combine, atoms)?;
            done.insert(key, s);
        }
        self.define_folded(inst, &combine, axis, &done)
    }

    /// The state of each register.
    fn states(&mut self, inst: &Inst, combine: &Combine<'_>, merge: bool) -> Res<Vec<State<'c>>> {
        let operands = inst.operands.iter().map(|v| self.registers(*v)).collect::<Res<Vec<_>>>()?;
        let count = operands.first().map_or(0, Vec::len);
        let mut states = vec![];
        for n in 0..count {
            let mut s: State<'c> = operands.iter().filter_map(|o| o.get(n).copied()).collect();
            match combine.op {
                Some(ReduceOp::ArgMax | ReduceOp::ArgMin) if !merge => {
                    let x = self.operand(inst, 0)?;
                    let layout = self.layout_id(x)?;
                    s.push(self.coord(layout, n, tk_gpu::ir::attrs::axis_of(inst))?.into());
                }
                Some(_) if !merge => {
                    let from = self.dtype(self.operand(inst, 0)?);
                    if let (Some(from), Some(Some(to)), Some(x)) =
                        (from, combine.dtypes.first(), s.first().copied())
                    {
                        s = vec![self.converted(x, from, *to)?];
                    }
                }
                Some(_) | None => {}
            }
            states.push(s);
        }
        Ok(states)
    }

    /// An element converted to another type; bool becomes 0 and 1.
    pub fn converted(&self, x: BasicValueEnum<'c>, from: DType, to: DType) -> Res<BasicValueEnum<'c>> {
        if from == to { Ok(x) } else { self.with_scalars(|e| e.cast(x, from, to)) }
    }

    /// Returns true if the coordinate of a register along an axis is below an extent.
    pub fn is_along(&self, layout: LayoutId, n: usize, axis: usize, extent: u32) -> Res<IntValue<'c>> {
        let at = self.coord(layout, n, axis)?;
        Ok(self.builder.build_int_compare(IntPredicate::ULT, at, self.int(extent), "")?)
    }

    /// Reduces states in the order of their positions, neighbours first, so that rounding errors grow with the
    /// logarithm of their number.
    fn in_registers(
        &mut self,
        combine: &Combine<'_>,
        mut row: Vec<(State<'c>, Option<IntValue<'c>>)>,
    ) -> Res<(State<'c>, Option<IntValue<'c>>)> {
        if let Some(extreme) = self.extreme_in_registers(combine, &row)? {
            return Ok((vec![extreme], None));
        }
        while row.len() > 1 {
            let mut next = vec![];
            for pair in row.chunks(2) {
                next.push(match pair {
                    [a, b] => self.guarded(combine, a, b)?,
                    [a, ..] => a.clone(),
                    [] => return bug("nothing to fold"),
                });
            }
            row = next;
        }
        row.pop().ok_or_else(|| Stop::Bug("nothing to fold".into()))
    }

    /// The largest or smallest of several floats without padding, where the target has no instruction that propagates NaN.
    fn extreme_in_registers(
        &self,
        combine: &Combine<'_>,
        row: &[(State<'c>, Option<IntValue<'c>>)],
    ) -> Res<Option<BasicValueEnum<'c>>> {
        let larger = match combine.op {
            Some(ReduceOp::Max) => true,
            Some(ReduceOp::Min) => false,
            Some(_) | None => return Ok(None),
        };
        let is_wide = matches!(combine.dtypes.first(), Some(Some(DType::F32 | DType::F64)));
        if !is_wide || self.kernel.options.spec.propagates_nan || row.len() < 2 {
            return Ok(None);
        }
        let floats = row.iter().map(|(state, real)| match (state.as_slice(), real) {
            ([x], None) => Some(x.into_float_value()),
            _ => None,
        });
        let Some(floats) = floats.collect::<Option<Vec<_>>>() else { return Ok(None) };
        Ok(Some(self.with_scalars(|e| e.extreme_of(larger, &floats))?.into()))
    }

    /// Combines states of which the second, or both, may be of padding. Padding comes after elements, so the result is
    /// real if the first is.
    fn guarded(
        &mut self,
        combine: &Combine<'_>,
        a: &(State<'c>, Option<IntValue<'c>>),
        b: &(State<'c>, Option<IntValue<'c>>),
    ) -> Res<(State<'c>, Option<IntValue<'c>>)> {
        let has_effects = combine.has_side_effects(self);
        let both = self.only_where(b.1, has_effects, &a.0, |e| e.combined(combine, &a.0, &b.0))?;
        let Some(real) = b.1 else { return Ok((both, a.1)) };
        let kept = both.iter().zip(&a.0).map(|(x, a)| Ok(self.builder.build_select(real, *x, *a, "")?));
        Ok((kept.collect::<Res<_>>()?, a.1))
    }

    /// Reduces the states of the lanes of a warp along an axis; all of them get the result.
    fn between_lanes(
        &mut self,
        combine: &Combine<'_>,
        tile_layout: &Layout,
        axis: usize,
        mut row: (State<'c>, Option<IntValue<'c>>),
    ) -> Res<(State<'c>, Option<IntValue<'c>>)> {
        let atom = tile_layout.atom();
        let mut bits: Vec<(u32, usize)> = (0..atom.bits(InDim::Lane))
            .filter_map(|i| atom.basis(InDim::Lane, i).and_then(|b| b.get(axis).copied()).map(|c| (c, i)))
            .filter(|(c, _)| *c != 0)
            .collect();
        // Blocks of neighbours are reduced, then adjacent blocks.
        bits.sort_unstable();
        for (_, i) in bits {
            let lane = Lane::Xor(1 << i);
            let other = row.0.iter().map(|x| self.shuffle(*x, lane)).collect::<Res<State<'c>>>()?;
            let real = row.1.map(|r| self.shuffle(r.into(), lane)).transpose()?.map(|r| r.into_int_value());
            if combine.op.is_some() && real.is_none() {
                row = (self.combined(combine, &row.0, &other)?, None);
                continue;
            }
            // The lane whose bit is 0 owns the earlier state.
            let bit = self.builder.build_and(self.tid, self.int(1 << i), "")?;
            let first = self.builder.build_int_compare(IntPredicate::EQ, bit, self.int(0), "")?;
            let choose = |a: BasicValueEnum<'c>, b: BasicValueEnum<'c>| -> Res<BasicValueEnum<'c>> {
                Ok(self.builder.build_select(first, a, b, "")?)
            };
            let low = row.0.iter().zip(&other).map(|(a, b)| choose(*a, *b)).collect::<Res<State<'c>>>()?;
            let high = row.0.iter().zip(&other).map(|(a, b)| choose(*b, *a)).collect::<Res<State<'c>>>()?;
            let (low_real, high_real) = match (row.1, real) {
                (Some(a), Some(b)) => {
                    let low = choose(a.into(), b.into())?.into_int_value();
                    (Some(low), Some(choose(b.into(), a.into())?.into_int_value()))
                }
                _ => (None, None),
            };
            row = self.guarded(combine, &(low, low_real), &(high, high_real))?;
        }
        Ok(row)
    }

    /// Combines two states; `a` comes first.
    pub fn combined(
        &mut self,
        combine: &Combine<'_>,
        a: &[BasicValueEnum<'c>],
        b: &[BasicValueEnum<'c>],
    ) -> Res<State<'c>> {
        let Some(op) = combine.op else {
            let args: Vec<_> = a.iter().chain(b).copied().collect();
            let block = combine.inst.blocks.first().copied();
            let block = block.ok_or_else(|| Stop::Bug("a fold has a block".into()))?;
            return self.per_element(block, &args, Nested::Fold);
        };
        let fast = combine.inst.attrs.flag("fast");
        let d = combine.dtypes.first().copied().flatten();
        let with = match op {
            ReduceOp::Sum => ElementwiseOp::Add,
            ReduceOp::Prod => ElementwiseOp::Mul,
            ReduceOp::Max => ElementwiseOp::Maximum,
            ReduceOp::Min => ElementwiseOp::Minimum,
            ReduceOp::All => ElementwiseOp::And,
            ReduceOp::XorSum => ElementwiseOp::Xor,
            ReduceOp::Any | ReduceOp::Or => ElementwiseOp::Or,
            ReduceOp::ArgMax | ReduceOp::ArgMin => return self.better(op, d, a, b),
            ReduceOp::Custom => return bug("a fold without its block"),
        };
        let ([a], [b]) = (a, b) else { return bug("a state of one value") };
        Ok(vec![self.with_scalars(|e| e.elementwise(with, &[d, d], d, fast, &[*a, *b]))?])
    }

    /// The larger (smaller) of two elements with its position; of equal ones the first. NaN wins, and -0 is less than
    /// +0.
    fn better(
        &self,
        op: ReduceOp,
        d: Option<DType>,
        a: &[BasicValueEnum<'c>],
        b: &[BasicValueEnum<'c>],
    ) -> Res<State<'c>> {
        let (Some(d), [x, i], [y, j]) = (d, a, b) else { return bug("a state of a value and its position") };
        let (p, q) = (self.order_key(d, *x)?, self.order_key(d, *y)?);
        let signed = d.is_signed() && !d.is_float();
        let wins = match (op == ReduceOp::ArgMax, signed) {
            (true, true) => IntPredicate::SGT,
            (true, false) => IntPredicate::UGT,
            (false, true) => IntPredicate::SLT,
            (false, false) => IntPredicate::ULT,
        };
        let builder = self.builder;
        let mut more = builder.build_int_compare(wins, q, p, "")?;
        let mut same = builder.build_int_compare(IntPredicate::EQ, p, q, "")?;
        if d.is_float() || d.is_f8() {
            let nan = |v: BasicValueEnum<'c>| -> Res<IntValue<'c>> {
                let from = [Some(d)];
                let to = Some(DType::Bool);
                Ok(self
                    .with_scalars(|e| e.elementwise(ElementwiseOp::IsNan, &from, to, false, &[v]))?
                    .into_int_value())
            };
            let (nx, ny) = (nan(*x)?, nan(*y)?);
            let any = builder.build_or(nx, ny, "")?;
            let only = builder.build_and(ny, builder.build_not(nx, "")?, "")?;
            let all = builder.build_and(nx, ny, "")?;
            more = builder.build_select(any, only, more, "")?.into_int_value();
            same = builder.build_select(any, all, same, "")?.into_int_value();
        }
        let earlier =
            builder.build_int_compare(IntPredicate::SLT, j.into_int_value(), i.into_int_value(), "")?;
        let takes = builder.build_or(more, builder.build_and(same, earlier, "")?, "")?;
        Ok(vec![builder.build_select(takes, *y, *x, "")?, builder.build_select(takes, *j, *i, "")?])
    }

    /// Defines the results from the state of each row.
    fn define_folded(
        &mut self,
        inst: &Inst,
        combine: &Combine<'_>,
        axis: usize,
        done: &BTreeMap<Vec<u32>, State<'c>>,
    ) -> Res<()> {
        let part = inst.attrs.flag("part");
        let missing = || Stop::Bug("a result of a fold is in no row".into());
        // Positions are the requested part of a state of two.
        let position = matches!(combine.op, Some(ReduceOp::ArgMax | ReduceOp::ArgMin)) && !part;
        for (n, r) in inst.results.iter().enumerate() {
            let of = if position { 1 } else { n };
            let tile_layout = combine.dtypes.get(of).copied().flatten();
            let mut regs = vec![];
            for at in self.rows_of(*r, part.then_some(axis))? {
                let s = done.get(&at).ok_or_else(missing)?;
                let x = *s.get(of).ok_or_else(missing)?;
                regs.push(match (tile_layout, self.dtype(*r)) {
                    (Some(from), Some(to)) => self.converted(x, from, to)?,
                    _ => x,
                });
            }
            self.define_regs(*r, regs)?;
        }
        Ok(())
    }

    /// The coordinates of each register of a result, without those along a reduced axis that it still has.
    fn rows_of(&self, r: ValueId, folded: Option<usize>) -> Res<Vec<Vec<u32>>> {
        if self.shape(r).is_empty() {
            return Ok(vec![vec![]]);
        }
        let layout = self.layout(r)?;
        let key = |n| {
            let mut at = layout.register(n);
            if let Some(axis) = folded.filter(|a| *a < at.len()) {
                at.remove(axis);
            }
            at
        };
        Ok((0..layout.registers()).map(key).collect())
    }
}

/// The registers along an axis in groups, each of which is reduced by itself. If a lane has neighbours at several places of
/// the axis, a function that depends on the order of all elements reduces what is between these, which is in other
/// lanes, one after the other.
fn in_order(inst: &Inst, tile_layout: &Layout, axis: usize, regs: Vec<usize>) -> Vec<Vec<usize>> {
    if !inst.attrs.flag("ordered") {
        return vec![regs];
    }
    let (_, bits) = tile_layout.chunk(axis);
    let mut atoms: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for n in regs {
        let at = tile_layout.register(n).get(axis).copied().unwrap_or(0);
        atoms.entry(at >> bits).or_default().push(n);
    }
    atoms.into_values().collect()
}
