//! Finds counters: memory that a kernel accesses only by relaxed atomics of single numbers, such as the number of the next tile,
//! which the programs of a grid take one after the other.
//!
//! Nothing else can be read or written too early or too late because of these, so they order no memory.

use std::collections::BTreeSet;

use tk_ops::Op;
use tk_ops::table::Effects;
use tk_tile::effects::of_inst;
use tk_tile::{Func, InstId, Types, ValueId, walk};

use super::provenance::Roots;
use crate::ir::op::GpuOp;

/// The atomics on counters.
pub fn counters(func: &Func, types: &Types, roots: &Roots) -> BTreeSet<InstId> {
    let of = |i: &InstId| func.insts[*i].operands.first().and_then(|v| roots.get(*v));
    let insts = walk::insts(func);
    let all = insts.iter().copied().filter(|i| is_single(func, types, *i));
    let found: BTreeSet<InstId> = all.filter(|i| of(i).is_some()).collect();
    if found.is_empty() {
        return found;
    }
    let other = |i: &&InstId| !found.contains(i) && may_access(func, **i);
    let others: Vec<Option<ValueId>> = insts.iter().filter(other).map(of).collect();
    found.iter().filter(|i| !others.iter().any(|root| root.is_none() || *root == of(i))).copied().collect()
}

/// Returns true if an instruction is a relaxed atomic of one number of 32 bits in device memory.
fn is_single(func: &Func, types: &Types, id: InstId) -> bool {
    let inst = &func.insts[id];
    let relaxed = inst.attrs.str("order").is_none_or(|order| order == "relaxed");
    let single = |v: &ValueId| {
        let ty = types.get(func.ty(*v));
        ty.shape().is_some_and(<[u32]>::is_empty) && ty.dtype().is_some_and(|d| d.is_int() && d.bits() == 32)
    };
    matches!(inst.op, Op::Atomic(_)) && relaxed && !inst.results.is_empty() && inst.results.iter().all(single)
}

/// Returns true if an instruction may access device memory.
fn may_access(func: &Func, id: InstId) -> bool {
    match func.insts[id].op {
        Op::Memory(_) | Op::Atomic(_) => of_inst(func, id) != Effects::Pure,
        Op::Target => matches!(
            GpuOp::of(&func.insts[id]),
            Some(GpuOp::AsyncCopy(_) | GpuOp::TmaLoad(_) | GpuOp::TmaStore(_))
        ),
        _ => false,
    }
}
