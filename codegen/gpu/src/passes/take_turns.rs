//! Lets warpgroups take the iterations of a loop in turns, so that one multiplies while another stores ("ping-pong").
//!
//! ```text
//! warps 8                                     warps 4, groups 2
//!
//!                                             v1 = group_id : i32
//!                                             v2 = group_own lo, (add lo, (mul v1, step)) : i32
//!                                             v3 = group_own step, (mul step, 2) : i32
//! for t in lo..hi by step {turns = 2}         for t in v2..hi by v3
//!   v4 = for k in ..                    =>      v4 = for k in ..
//!     dot a, b, acc                               dot a, b, acc
//!   view_store c, .., v4                        view_store c, .., v4
//! ```
//!
//! Each group is a program of its own for its iterations: it has its own layouts, its own copy of each buffer and its own
//! barrier. A producer warp loads for all iterations in order, to stages that one group after the other consumes
//! ([`crate::passes::warp_specialize`]); so a group begins to multiply as soon as the last stages of the group before it are in use.
//!
//! Applies to a loop of the body of a kernel that says `turns = n` and carries no values, in a program of `n` warpgroups: its
//! products are in inner loops whose bounds do not change in it, nothing else in the kernel multiplies or stores, and nothing
//! reads memory that it writes. A remark says what prevents it; then all warps do each iteration together.
//!
//! Requires a verified kernel without calls, on a target with TMA and `wgmma`. Guarantees the same iterations, as independent of
//! one another as programs are.

use tk_ops::table::Effects;
use tk_ops::{ControlOp, DType, ElementwiseOp, Op};
use tk_tile::effects::of_inst;
use tk_tile::passes::dce;
use tk_tile::{Def, Func, Inst, InstId, ValueId, walk};

use super::tile_edit::TileEdit;
use super::{Pass, Property, Run, TileKernel};
use crate::analysis::axis::AxisInfo;
use crate::analysis::provenance::Roots;
use crate::ir::kernel::Remark;
use crate::ir::op::{GpuOp, GroupId, GroupOwn};
use crate::ir::warps::WARPGROUP_WARPS;

/// The pass.
pub const PASS: Pass = Pass {
    name: "take_turns",
    purpose: "lets warpgroups take the iterations of a loop in turns",
    needs: &[Property::OneFunction, Property::ShortDots],
    leaves: &[Property::TurnsOfGroups],
    run: Run::Tile { run, cleanup: &[dce::PASS] },
};

fn run(tile: &mut TileKernel) -> bool {
    let func = &tile.module.funcs[tile.kernel];
    let asks = |id: &InstId| turns(func, *id) > 1;
    let Some(id) = walk::insts(func).into_iter().find(asks) else { return false };
    if let Err(why) = check(tile, id) {
        let text = format!("warpgroups do not take the iterations of this loop in turns: {why}");
        tile.remarks.push(Remark { loc: func.insts[id].loc, text });
        return false;
    }
    apply(tile, id);
    true
}

/// The warpgroups that a loop asks for.
fn turns(func: &Func, id: InstId) -> u32 {
    func.insts[id].attrs.int("turns").and_then(|n| u32::try_from(n).ok()).unwrap_or(1)
}

/// Says what prevents it.
fn check(tile: &TileKernel, id: InstId) -> Result<(), String> {
    let (func, options) = (&tile.module.funcs[tile.kernel], &tile.options);
    let (spec, groups) = (options.spec, turns(func, id));
    let inst = &func.insts[id];
    if !spec.has_tma || !spec.has_async_mma {
        return Err("the target has no products of warpgroups".into());
    }
    if options.blocks > 1 || options.warps != groups.saturating_mul(WARPGROUP_WARPS) {
        return Err(format!("{groups} warpgroups are {} warps in one block", groups * WARPGROUP_WARPS));
    }
    if !options.may_have_groups {
        return Err("the copies of tiles that warpgroups have do not fit in shared memory".into());
    }
    let body = &func.blocks[func.body].insts;
    if !body.contains(&id) {
        return Err("it is in a branch or another loop".into());
    }
    if !inst.results.is_empty() {
        return Err("an iteration needs values of the one before".into());
    }
    let narrow =
        inst.operands.first().is_some_and(|v| tile.module.types.get(func.ty(*v)).dtype() == Some(DType::I32));
    if !narrow {
        return Err("it does not count in 32 bits".into());
    }
    let info = AxisInfo::new(&tile.module, func, &options.facts);
    let counts = |v: &ValueId| info.tile(*v).non_negative;
    if ![0, 2].iter().all(|n| inst.operands.get(*n).is_some_and(counts)) {
        return Err("its first number or its step may be negative".into());
    }
    let inside: Vec<InstId> = inst.blocks.iter().flat_map(|b| walk::insts_in(func, *b)).collect();
    check_products(func, id, &inside)?;
    check_effects(func, &inside)
}

/// Products are in inner loops whose bounds do not change.
fn check_products(func: &Func, id: InstId, inside: &[InstId]) -> Result<(), String> {
    let is_product = |i: &InstId| matches!(func.insts[*i].op, Op::Dot(_));
    let of = |i: &InstId| -> Vec<InstId> {
        let blocks = func.insts[*i].blocks.iter().flat_map(|b| walk::insts_in(func, *b));
        blocks.filter(is_product).collect()
    };
    let own = func.insts[id].blocks.iter().flat_map(|b| &func.blocks[*b].insts);
    let mut found = 0;
    for inner in own.filter(|i| func.insts[**i].op == Op::Control(ControlOp::For)) {
        let products = of(inner);
        let here = |p: &&InstId| func.insts[*inner].blocks.iter().any(|b| func.blocks[*b].insts.contains(p));
        found += products.iter().filter(here).count();
        let changes = |v: &ValueId| is_inside(func, id, inside, *v);
        if !products.is_empty() && func.insts[*inner].operands.iter().take(3).any(changes) {
            return Err("its products are in a loop whose bounds differ between its iterations".into());
        }
    }
    if found == 0 || found != walk::insts(func).iter().filter(|i| is_product(i)).count() {
        return Err("not all products of the kernel are in loops of its body".into());
    }
    Ok(())
}

/// Returns true if a value is made in a loop.
fn is_inside(func: &Func, id: InstId, inside: &[InstId], v: ValueId) -> bool {
    match func.values[v].def {
        Def::Inst(i, _) => inside.contains(&i),
        Def::Arg(block, _) => {
            let blocks = inside.iter().chain([&id]).flat_map(|i| &func.insts[*i].blocks);
            blocks.into_iter().any(|b| *b == block)
        }
    }
}

/// Nothing is done once in a program, and what is read is not written.
fn check_effects(func: &Func, inside: &[InstId]) -> Result<(), String> {
    let roots = Roots::new(func);
    let root = |inst: &Inst| inst.operands.first().and_then(|v| roots.get(*v));
    let plain: Vec<InstId> =
        walk::insts(func).into_iter().filter(|i| func.insts[*i].blocks.is_empty()).collect();
    let written: Vec<Option<ValueId>> = plain
        .iter()
        .filter(|i| of_inst(func, **i) == Effects::Write)
        .map(|i| root(&func.insts[*i]))
        .collect();
    for i in &plain {
        let inst = &func.insts[*i];
        let ends = matches!(inst.op, Op::Control(ControlOp::Yield | ControlOp::Return));
        match of_inst(func, *i) {
            Effects::Ordered if !ends => {
                return Err(format!("`{}` is done once in a program, or in order", inst.name()));
            }
            Effects::Write if !inside.contains(i) => return Err("something is stored outside of it".into()),
            Effects::Read if written.iter().any(|w| w.is_none() || *w == root(inst)) => {
                return Err("the kernel reads memory that it writes".into());
            }
            Effects::Pure | Effects::Read | Effects::Write | Effects::Ordered => {}
        }
    }
    Ok(())
}

/// Gives the loop the beginning and the step of a group.
fn apply(tile: &mut TileKernel, id: InstId) {
    let groups = turns(&tile.module.funcs[tile.kernel], id);
    tile.options.warps = WARPGROUP_WARPS;
    tile.options.groups = groups;
    let (func, types) = (&mut tile.module.funcs[tile.kernel], &mut tile.module.types);
    let loc = func.insts[id].loc;
    let block = func.body;
    let place = func.blocks[block].insts.iter().position(|i| *i == id).unwrap_or(0);
    let rest = func.blocks[block].insts.split_off(place);
    let mut edit = TileEdit { func, types, block, loc };
    if let Some(own) = numbers_of_group(&mut edit, id, groups) {
        let operands = edit.func.insts[id].operands.iter_mut();
        operands.zip([Some(own[0]), None, Some(own[1])]).for_each(|(v, own)| *v = own.unwrap_or(*v));
    }
    func.blocks[block].insts.extend(rest);
}

/// The first iteration of a group and its step, none of which wraps around.
fn numbers_of_group(edit: &mut TileEdit<'_>, id: InstId, groups: u32) -> Option<[ValueId; 2]> {
    let [lo, hi, step] = *edit.func.insts[id].operands.get(..3)? else { return None };
    let i32 = edit.tile(DType::I32, &[]);
    let made = edit.func.add_inst(edit.block, GpuOp::from(GroupId {}).inst(vec![], edit.loc), &[i32]);
    let group = edit.func.insts[made].results.first().copied()?;
    let [group, first, end, by] = [group, lo, hi, step].map(|v| edit.cast(v, DType::I64));
    let end = edit.elementwise(ElementwiseOp::Maximum, &[first, end]);
    let before = edit.elementwise(ElementwiseOp::Mul, &[group, by]);
    let own = edit.elementwise(ElementwiseOp::Add, &[first, before]);
    let own = edit.elementwise(ElementwiseOp::Minimum, &[own, end]);
    let groups = edit.int(DType::I64, groups.into(), &[]);
    let round = edit.elementwise(ElementwiseOp::Mul, &[by, groups]);
    let most = edit.int(DType::I64, i32::MAX.into(), &[]);
    let round = edit.elementwise(ElementwiseOp::Minimum, &[round, most]);
    let mut of_group = |all: ValueId, own: ValueId| {
        let own = edit.cast(own, DType::I32);
        let ty = edit.func.ty(all);
        let made =
            edit.func.add_inst(edit.block, GpuOp::from(GroupOwn {}).inst(vec![all, own], edit.loc), &[ty]);
        edit.func.insts[made].results.first().copied()
    };
    Some([of_group(lo, own)?, of_group(step, round)?])
}
