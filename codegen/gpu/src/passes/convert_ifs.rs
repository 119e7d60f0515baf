//! If-conversion: branches that only choose between a few numbers become selects.
//!
//! ```text
//! v3 = if v0 : i32 {                  v1 = add v7, v8 : i32
//! block1:                             v3 = select v0, v1, v2 : i32
//!   v1 = add v7, v8 : i32
//!   yield v1                    =>
//! block2:
//!   yield v2
//! }
//! ```
//!
//! Both arms are computed, so later passes see one block: a position that such a branch chooses, as of a page that may
//! not exist, can be computed ahead for an asynchronous copy ([`super::software_pipeline`]).
//!
//! Requires one function. Guarantees the same results: only operations on numbers that cannot fail are moved.

use tk_ops::{ControlOp, CreateOp, ElementwiseOp, Op};
use tk_tile::passes::dce;
use tk_tile::rewrite::{Renames, constant, yielded};
use tk_tile::{Attrs, BlockId, ElemType, Func, Inst, InstId, Type, Types, ValueId, walk};

use super::{Pass, Property, Run, TileKernel};

/// The pass.
pub const PASS: Pass = Pass {
    name: "convert_ifs",
    purpose: "computes both arms of branches that only choose between a few numbers",
    needs: &[Property::OneFunction],
    leaves: &[Property::SelectedNumbers],
    run: Run::Tile { run, cleanup: &[dce::PASS] },
};

/// The most instructions of an arm, without constants: fewer than a branch costs, with those that reload what it
/// interrupts.
const MOST: usize = 4;

fn run(tile: &mut TileKernel) -> bool {
    let (func, types) = (&mut tile.module.funcs[tile.kernel], &tile.module.types);
    let (mut renames, mut changed) = (Renames::default(), false);
    convert(func, types, func.body, &mut renames, &mut changed);
    if changed {
        walk::insts(func).into_iter().for_each(|i| renames.apply(func, i));
    }
    changed
}

/// Converts the branches of a block, inner ones first.
fn convert(func: &mut Func, types: &Types, block: BlockId, renames: &mut Renames, changed: &mut bool) {
    for id in std::mem::take(&mut func.blocks[block].insts) {
        for inner in func.insts[id].blocks.clone() {
            convert(func, types, inner, renames, changed);
        }
        if is_choice(func, types, id) {
            select(func, block, id, renames);
            *changed = true;
        } else {
            func.blocks[block].insts.push(id);
        }
    }
}

/// Returns true if an instruction only chooses between numbers that are cheap to compute.
fn is_choice(func: &Func, types: &Types, id: InstId) -> bool {
    let inst = &func.insts[id];
    let number = |v: &ValueId| matches!(types.get(func.ty(*v)), Type::Tile { elem: ElemType::Scalar(_), shape } if shape.is_empty());
    inst.op == Op::Control(ControlOp::If)
        && inst.blocks.len() == 2
        && !inst.results.is_empty()
        && inst.results.iter().all(number)
        && inst.blocks.iter().all(|arm| {
            let moved = func.blocks[*arm].insts.split_last().map_or(&[][..], |(_, moved)| moved);
            let is_constant = |i: &&InstId| func.insts[**i].op == Op::Create(CreateOp::Const);
            moved.iter().all(|i| func.insts[*i].results.iter().all(number) && cannot_fail(func, *i))
                && moved.iter().filter(|i| !is_constant(i)).count() <= MOST
        })
}

/// Returns true if an instruction may be executed where the program would not.
fn cannot_fail(func: &Func, id: InstId) -> bool {
    let inst = &func.insts[id];
    match inst.op {
        Op::Create(CreateOp::Const) => true,
        Op::Elementwise(ElementwiseOp::Div | ElementwiseOp::Rem | ElementwiseOp::CeilDiv) => {
            // The least number divided by -1 fails too.
            let divisor = inst.operands.get(1).and_then(|v| constant(func, *v)?.as_int());
            divisor.is_some_and(|n| n > 0)
        }
        Op::Elementwise(_) => true,
        _ => false,
    }
}

/// Appends the instructions of both arms, and a select for each result.
fn select(func: &mut Func, block: BlockId, id: InstId, renames: &mut Renames) {
    let Inst { operands, blocks, results, loc, .. } = func.insts[id].clone();
    let arms: Vec<Vec<ValueId>> = blocks.iter().map(|arm| yielded(func, *arm).to_vec()).collect();
    for arm in &blocks {
        let mut moved = std::mem::take(&mut func.blocks[*arm].insts);
        moved.pop();
        func.blocks[block].insts.extend(moved);
    }
    let (Some(condition), [yes, no]) = (operands.first(), &arms[..]) else { return };
    for ((result, yes), no) in results.iter().zip(yes).zip(no) {
        let (op, operands) = (Op::Elementwise(ElementwiseOp::Select), vec![*condition, *yes, *no]);
        let (attrs, ty) = (Attrs::new(), func.ty(*result));
        let chosen =
            func.add_inst(block, Inst { op, operands, attrs, blocks: vec![], results: vec![], loc }, &[ty]);
        func.insts[chosen].results.iter().for_each(|to| renames.set(*result, *to));
    }
}
