//! Finds chained matrix products: the result of one becomes, element by element, the left operand of another, as in
//! attention.
//!
//! Requires verified tile IR. Guarantees both ends of every such chain; values that enter a loop are not followed into
//! it.

use std::collections::BTreeSet;

use tk_ops::{ControlOp, DotOp, Op};
use tk_tile::{Def, Func, Id, InstId, ValueId, rewrite, walk};

/// The products whose left operand comes from another product, and the products that compute it.
pub fn chained(func: &Func) -> BTreeSet<InstId> {
    let mut out = BTreeSet::new();
    for id in walk::insts(func) {
        let inst = &func.insts[id];
        let (Op::Dot(DotOp::Dot), Some(left)) = (inst.op, inst.operands.first()) else { continue };
        let before = sources(func, *left);
        if !before.is_empty() {
            out.insert(id);
            out.extend(before);
        }
    }
    out
}

/// The products from which a value derives element by element, also through results of loops and branches.
pub fn sources(func: &Func, v: ValueId) -> Vec<InstId> {
    let mut seen = BTreeSet::new();
    let (mut found, mut open) = (vec![], vec![v]);
    while let Some(v) = open.pop() {
        let Def::Inst(id, n) = func.values[v].def else { continue };
        if !seen.insert(v.index()) {
            continue;
        }
        let inst = &func.insts[id];
        match inst.op {
            Op::Dot(DotOp::Dot) => found.push(id),
            Op::Elementwise(_) | Op::Control(ControlOp::Map) => open.extend(&inst.operands),
            Op::Control(ControlOp::For | ControlOp::If) => {
                let ends = inst.blocks.iter().map(|b| rewrite::yielded(func, *b));
                open.extend(ends.filter_map(|e| e.get(n as usize)));
            }
            Op::Dot(DotOp::DotScaled)
            | Op::Create(_)
            | Op::Shape(_)
            | Op::Memory(_)
            | Op::Atomic(_)
            | Op::Reduce(_)
            | Op::Scan(_)
            | Op::Random(_)
            | Op::Control(_)
            | Op::Host(_)
            | Op::Target => {}
        }
    }
    found
}
