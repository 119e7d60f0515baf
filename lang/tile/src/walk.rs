//! The instructions of a function in text order.
//!
//! Requires that every block has one owner. Walks over instructions go without recursion.

use crate::flow::{Flow, flow};
use crate::ir::{BlockId, Func, Id, InstId};

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

/// The `for` loops of a block with the block of each, inner ones before the one around them.
pub fn for_loops(func: &Func, block: BlockId) -> Vec<(BlockId, InstId)> {
    let mut out = vec![];
    for i in &func.blocks[block].insts {
        let inst = &func.insts[*i];
        inst.blocks.iter().for_each(|b| out.extend(for_loops(func, *b)));
        if flow(inst.op) == Flow::For {
            out.push((block, *i));
        }
    }
    out
}

/// The instruction that owns a block; none owns the body. [`owners`] finds those of all.
pub fn owner(func: &Func, block: BlockId) -> Option<InstId> {
    insts(func).into_iter().find(|i| func.insts[*i].blocks.contains(&block))
}

/// The instruction that owns each block, by the number of the block; none owns the body.
pub fn owners(func: &Func) -> Vec<Option<InstId>> {
    let mut owner = vec![None; func.blocks.len()];
    for i in insts(func) {
        for b in &func.insts[i].blocks {
            if let Some(slot) = owner.get_mut(b.index()) {
                *slot = Some(i);
            }
        }
    }
    owner
}
