//! The instructions of a function in text order.
//!
//! Requires that every block has one owner. Walks without recursion.

use crate::ir::{BlockId, Func, InstId};

/// The instructions that can be reached from the body, each before those inside of it.
pub fn insts(func: &Func) -> Vec<InstId> {
    insts_in(func, func.body)
}

/// The instructions of a block and of the blocks inside, each before those inside of it.
pub fn insts_in(func: &Func, block: BlockId) -> Vec<InstId> {
    let mut out = vec![];
    let mut work: Vec<InstId> = func.blocks[block].insts.iter().rev().copied().collect();
    while let Some(i) = work.pop() {
        out.push(i);
        for b in func.insts[i].blocks.iter().rev() {
            work.extend(func.blocks[*b].insts.iter().rev());
        }
    }
    out
}
