//! The slice of a function that decides how often its blocks run: [`needed`] and [`same_in_all_programs`].

use std::collections::BTreeSet;

use tk_ops::{ControlOp, MemoryOp, Op};

use crate::flow::{Flow, flow};
use crate::ir::{BlockId, Def, Func, Id, Inst, InstId, ValueId};
use crate::walk;

/// Takes from the lists of blocks the instructions that follow from arguments alone, whatever block they are in, in order.
pub(super) fn same_in_all_programs(func: &Func, insts: &mut [Vec<InstId>]) -> Vec<InstId> {
    let mut is_same = vec![false; func.values.len()];
    func.blocks[func.body].args.iter().for_each(|v| is_same[v.index()] = true);
    let mut same = vec![];
    for i in walk::insts(func) {
        let inst = &func.insts[i];
        let is_plain = flow(inst.op) == Flow::Plain && inst.op != Op::Control(ControlOp::ProgramId);
        if is_plain && inst.operands.iter().all(|v| is_same.get(v.index()) == Some(&true)) {
            inst.results.iter().for_each(|v| is_same[v.index()] = true);
            same.push(i);
        }
    }
    let taken: BTreeSet<InstId> = same.iter().copied().collect();
    let kept: BTreeSet<InstId> = insts.iter().flatten().copied().collect();
    insts.iter_mut().for_each(|list| list.retain(|i| !taken.contains(i)));
    same.retain(|i| kept.contains(i));
    same
}

/// The values that decide how often something runs, and what these follow from.
pub(super) fn needed(func: &Func) -> Vec<bool> {
    let mut needed = vec![false; func.values.len()];
    let mut work: Vec<ValueId> = vec![];
    for i in walk::insts(func) {
        let inst = &func.insts[i];
        let roots = match flow(inst.op) {
            Flow::For => inst.operands.get(..3),
            Flow::If => inst.operands.get(..1),
            _ if inst.op == Op::Control(ControlOp::Condition) => inst.operands.get(..1),
            _ => None,
        };
        work.extend(roots.unwrap_or_default());
    }
    let owner = walk::owners(func);
    while let Some(v) = work.pop() {
        match needed.get_mut(v.index()) {
            Some(slot) if !*slot => *slot = true,
            _ => continue,
        }
        match func.values[v].def {
            Def::Inst(i, n) => {
                let inst = &func.insts[i];
                match flow(inst.op) {
                    // A carried value is that before the loop, or of its end.
                    Flow::For => work.extend(carried(func, inst, n as usize)),
                    Flow::If | Flow::While => work.extend(passed_through(func, inst)),
                    // Its number does not follow from the extent of its grid.
                    Flow::Plain if inst.op == Op::Control(ControlOp::ProgramId) => {}
                    Flow::Plain => work.extend(reads(inst)),
                    Flow::Elements | Flow::Expect => {}
                }
            }
            Def::Arg(block, n) => {
                let Some(inst) = owner.get(block.index()).copied().flatten().map(|i| &func.insts[i]) else {
                    continue;
                };
                match flow(inst.op) {
                    Flow::For if n > 0 => work.extend(carried(func, inst, n as usize - 1)),
                    Flow::While => work.extend(passed_through(func, inst)),
                    Flow::For | Flow::If | Flow::Plain | Flow::Elements | Flow::Expect => {}
                }
            }
        }
    }
    needed
}

/// The operands of an instruction without blocks from which its result follows: where a slice of a view has one position
/// along an axis, it has neither an extent nor a stride.
fn reads(inst: &Inst) -> Vec<ValueId> {
    let axes = inst.attrs.ints("axes").filter(|_| inst.op == Op::Memory(MemoryOp::ViewSlice));
    let Some(axes) = axes else { return inst.operands.clone() };
    let mut operands = inst.operands.iter().copied();
    let mut out: Vec<ValueId> = operands.next().into_iter().collect();
    for kind in axes {
        match kind {
            0 => drop(operands.next()),
            1 => {}
            _range => out.extend(operands.by_ref().take(2)),
        }
    }
    out
}

/// The operands of a `for` and of its end for carried value number `n`.
fn carried<'f>(func: &'f Func, inst: &'f Inst, n: usize) -> impl Iterator<Item = ValueId> {
    let end = inst.blocks.first().and_then(|b| terminator(func, *b));
    let last = end.and_then(|t| t.operands.get(n)).copied();
    inst.operands.get(3 + n).copied().into_iter().chain(last)
}

/// What an `if` or `while` reads, and what its blocks pass on.
fn passed_through<'f>(func: &'f Func, inst: &'f Inst) -> impl Iterator<Item = ValueId> {
    let ends = inst.blocks.iter().filter_map(|b| terminator(func, *b));
    inst.operands.iter().chain(ends.flat_map(|t| &t.operands)).copied()
}

/// The last instruction of a block.
pub(super) fn terminator(func: &Func, block: BlockId) -> Option<&Inst> {
    func.blocks[block].insts.last().map(|i| &func.insts[*i])
}
