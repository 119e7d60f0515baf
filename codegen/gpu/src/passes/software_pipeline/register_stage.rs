//! Owns loads that run ahead on machines without asynchronous copies: lanes hold what the next iteration reads while this one is
//! computed, and store it where nobody reads meanwhile.
//!
//! ```text
//! for i { a = load i            x = if any { load first }; store x to stage 0
//!         store a           =>  for i { barrier; x = if comes { load i + step }
//!         barrier                       multiply what lies in this stage
//!         multiply }                    store x to the other stage }
//! ```
//!
//! May assume a plan with at most two stages. Guarantees that nothing is read for an iteration that does not come.

use tk_tile::{BlockId, Inst, ValueId};

use super::expand::{Expand, Renamed};
use crate::ir::op::{GpuOp, SharedStore};

impl Expand<'_> {
    /// Loads for a later iteration.
    pub(super) fn load(&mut self, block: BlockId, renamed: &Renamed) -> Vec<ValueId> {
        let mut loaded = vec![];
        for n in 0..self.copies.len() {
            let Some(c) = self.copies.get(n) else { continue };
            let operands = c.inst.operands.iter().map(|v| renamed.get(v).copied().unwrap_or(*v)).collect();
            let inst = Inst { operands, blocks: vec![], results: vec![], ..c.inst.clone() };
            let result = (c.ty, c.layout);
            loaded.extend(self.add(block, inst, &[result]).1);
        }
        loaded
    }

    /// Stores what was loaded, the last of these values, to a stage.
    pub(super) fn store(&mut self, block: BlockId, next: &mut Vec<ValueId>, stage: ValueId, ahead: bool) {
        let loaded = next.split_off(next.len().saturating_sub(self.copies.len()));
        for (n, v) in loaded.into_iter().enumerate() {
            let Some(c) = self.copies.get(n) else { continue };
            let (buffer, placement) = (c.buffer, c.placement.clone());
            let store = SharedStore { buffer, placement, chunked: false, ahead, remote: false };
            let inst = GpuOp::from(store).inst(vec![v, stage], c.inst.loc);
            self.add(block, inst, &[]);
        }
    }
}
