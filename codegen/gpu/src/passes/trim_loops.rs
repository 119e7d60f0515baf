//! Ends a loop where none of its values changes any more.
//!
//! ```text
//! for i in lo..hi, acc                          v9 = group_own hi, end : i32
//!   v3 = dot a, b, acc : tile[f32, 64, 128]     for i in lo..v9, acc
//!   v4 = lt i, ends : tile[bool, 64]       =>     v3 = dot a, b, acc : tile[f32, 64, 128]
//!   v5 = select v4, v3, acc                       yield v3
//!   yield v5
//! ```
//!
//! So rows that take part in the first iterations of a loop alone, such as those of causal attention, are a program whose
//! warpgroups skip what all of their rows leave out ([`crate::passes::split_rows`]).
//!
//! Applies to loops without effects that count up, all of whose values change only where the number of the iteration is below a
//! bound that does not change in the loop, and is one number for all rows of a warpgroup. A remark says where it is not.
//!
//! Requires a verified kernel without calls. Guarantees the same elements.

use tk_ops::scalar::Scalar;
use tk_ops::table::Effects;
use tk_ops::{ControlOp, CreateOp, ElementwiseOp, Op, ShapeOp};
use tk_tile::effects::of_inst;
use tk_tile::passes::dce;
use tk_tile::rewrite::{constant, definition, yielded};
use tk_tile::{Def, Func, Inst, InstId, Loc, Types, ValueId, walk};

use super::tile_edit::TileEdit;
use super::{Pass, Property, Run, TileKernel};
use crate::analysis::axis::AxisInfo;
use crate::ir::kernel::Remark;
use crate::ir::op::{GpuOp, GroupOwn};
use crate::ir::warps::takes_turns;

/// The pass.
pub const PASS: Pass = Pass {
    name: "trim_loops",
    purpose: "ends loops where none of their values changes any more",
    needs: &[Property::OneFunction, Property::RowsOfGroups],
    leaves: &[Property::TrimmedLoops],
    run: Run::Tile { run, cleanup: &[dce::PASS] },
};

fn run(tile: &mut TileKernel) -> bool {
    let func = &tile.module.funcs[tile.kernel];
    // Such warpgroups count the iterations of one another.
    if walk::insts(func).into_iter().any(|i| takes_turns(func, &func.insts[i])) {
        return false;
    }
    let groups = tile.options.groups;
    let info = AxisInfo::new(&tile.module, &tile.module.funcs[tile.kernel], &tile.options.facts);
    let (func, types) = (&mut tile.module.funcs[tile.kernel], &mut tile.module.types);
    let mut changed = false;
    for (block, id) in walk::for_loops(func, func.body) {
        let Some(trim) = Trim::of(func, id) else { continue };
        let loc = func.insts[id].loc;
        let place = func.blocks[block].insts.iter().position(|i| *i == id).unwrap_or(0);
        let rest = func.blocks[block].insts.split_off(place);
        let is_one = is_one_number(func, types, &info, trim.bound);
        let mut edit = TileEdit { func, types, block, loc };
        let end = if is_one { first_element(&mut edit, trim.bound) } else { None };
        if let Some(end) = end {
            trim.apply(&mut edit, id, end, groups > 1);
            changed = true;
        } else {
            tile.remarks.push(remark(loc));
        }
        func.blocks[block].insts.extend(rest);
    }
    changed
}

/// Returns true if a loop of a kernel has values that change in different iterations for different rows.
pub(super) fn differs_by_row(tile: &TileKernel) -> bool {
    let (func, types) = (&tile.module.funcs[tile.kernel], &tile.module.types);
    let loops = walk::for_loops(func, func.body).into_iter();
    let mut trims = loops.filter_map(|(_, id)| Trim::of(func, id)).peekable();
    if trims.peek().is_none() {
        return false;
    }
    let info = AxisInfo::new(&tile.module, func, &tile.options.facts);
    trims.any(|trim| !is_one_number(func, types, &info, trim.bound))
}

/// Returns true if all elements of a tile are known to be the same.
fn is_one_number(func: &Func, types: &Types, info: &AxisInfo, v: ValueId) -> bool {
    let shape = types.get(func.ty(v)).shape().unwrap_or(&[]);
    (0..).zip(shape).all(|(d, n)| info.tile(v).dim(d).constancy >= u64::from(*n))
}

fn remark(loc: Option<Loc>) -> Remark {
    let text = "all iterations are done for all rows: they end at numbers that differ in a warpgroup, or are not known";
    Remark { loc, text: text.into() }
}

/// A loop whose values change only in iterations below a bound.
struct Trim {
    bound: ValueId,
    /// What a changed value becomes, for each one that the loop carries.
    changed: Vec<ValueId>,
}

impl Trim {
    fn of(func: &Func, id: InstId) -> Option<Trim> {
        let inst = &func.insts[id];
        let ([_, _, step, ..], [body]) = (inst.operands.as_slice(), inst.blocks.as_slice()) else {
            return None;
        };
        let counts_up = constant(func, *step)
            .filter(|s| s.dtype().is_signed())
            .and_then(Scalar::as_int)
            .is_some_and(|n| n > 0);
        let (iv, carried) = func.blocks[*body].args.split_first()?;
        let inside = walk::insts_in(func, *body);
        let is_plain = |i: &InstId| {
            let ends = func.insts[*i].op == Op::Control(ControlOp::Yield);
            ends || matches!(of_inst(func, *i), Effects::Pure | Effects::Read)
        };
        if !counts_up || !inside.iter().all(is_plain) {
            return None;
        }
        let (mut bound, mut changed) = (None, vec![]);
        for (old, end) in carried.iter().zip(yielded(func, *body)) {
            let select = definition(func, *end).filter(|i| i.op == Op::Elementwise(ElementwiseOp::Select))?;
            let [when, new, kept] = select.operands.as_slice() else { return None };
            let below = upper_bound(func, *when, *iv).filter(|b| bound.is_none_or(|other| other == *b));
            bound = Some(below.filter(|_| kept == old)?);
            changed.push(*new);
        }
        let bound = bound?;
        let is_made_inside = match func.values[bound].def {
            Def::Inst(i, _) => inside.contains(&i),
            Def::Arg(block, _) => block != func.body,
        };
        (!is_made_inside).then_some(Trim { bound, changed })
    }

    fn apply(&self, edit: &mut TileEdit<'_>, id: InstId, own: ValueId, has_groups: bool) {
        let Some(all) = edit.func.insts[id].operands.get(1).copied() else { return };
        let own = edit.elementwise(ElementwiseOp::Minimum, &[all, own]);
        let end = if has_groups {
            let ty = edit.func.ty(all);
            let made = edit.func.add_inst(
                edit.block,
                GpuOp::from(GroupOwn {}).inst(vec![all, own], edit.loc),
                &[ty],
            );
            edit.func.insts[made].results.first().copied()
        } else {
            Some(own)
        };
        edit.func.insts[id].operands.get_mut(1).into_iter().zip(end).for_each(|(v, end)| *v = end);
        let last =
            edit.func.insts[id].blocks.first().and_then(|b| edit.func.blocks[*b].insts.last().copied());
        if let Some(last) = last {
            edit.func.insts[last].operands.clone_from(&self.changed);
        }
    }
}

/// The value whose elements these are, in another shape.
fn same_elements(func: &Func, v: ValueId) -> ValueId {
    match definition(func, v) {
        Some(Inst {
            op: Op::Create(CreateOp::Splat) | Op::Shape(ShapeOp::Broadcast | ShapeOp::Reshape),
            operands,
            ..
        }) => operands.first().map_or(v, |x| same_elements(func, *x)),
        _ => v,
    }
}

/// The bound of a condition that says that a number is below it.
fn upper_bound(func: &Func, when: ValueId, number: ValueId) -> Option<ValueId> {
    let inst = definition(func, same_elements(func, when))?;
    let [a, b] = inst.operands.as_slice() else { return None };
    let (low, high) = match inst.op {
        Op::Elementwise(ElementwiseOp::Lt) => (*a, *b),
        Op::Elementwise(ElementwiseOp::Gt) => (*b, *a),
        _ => return None,
    };
    (same_elements(func, low) == number).then(|| same_elements(func, high))
}

/// The first element of a tile that is computed element by element, as a scalar.
fn first_element(edit: &mut TileEdit<'_>, v: ValueId) -> Option<ValueId> {
    if edit.shape(v).is_empty() {
        return Some(v);
    }
    let inst = definition(edit.func, v)?.clone();
    let dtype = edit.dtype(v)?;
    let first = |edit: &mut TileEdit<'_>| first_element(edit, *inst.operands.first()?);
    match inst.op {
        Op::Create(CreateOp::Arange) => Some(edit.int(dtype, inst.attrs.int("start").unwrap_or(0), &[])),
        Op::Create(CreateOp::Const) => {
            let ty = edit.tile(dtype, &[]);
            Some(edit.add(inst.op, &[], inst.attrs, ty))
        }
        Op::Create(CreateOp::Splat) | Op::Shape(ShapeOp::Broadcast | ShapeOp::Reshape) => first(edit),
        Op::Elementwise(_) => {
            let operands: Option<Vec<ValueId>> =
                inst.operands.iter().map(|x| first_element(edit, *x)).collect();
            let ty = edit.tile(dtype, &[]);
            Some(edit.add(inst.op, &operands?, inst.attrs, ty))
        }
        _ => None,
    }
}
