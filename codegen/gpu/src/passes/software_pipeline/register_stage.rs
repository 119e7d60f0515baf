//! Pipelines loads on targets without asynchronous copies: lanes keep the data of the next iteration in registers while
//! this one is computed, and store it to a stage that is not being read.
//!
//! ```text
//! for i { a = load i            x = if any { load first }; store x to stage 0
//!         store a           =>  for i { barrier; x = if comes { load i + step }
//!         barrier                       multiply this stage
//!         multiply }                    store x to the other stage }
//! ```
//!
//! Requires a plan with at most two stages. Guarantees that nothing is read for an iteration that is not executed.

use tk_ops::{DType, ElementwiseOp};
use tk_tile::{BlockId, Inst, TypeId, ValueId};

use super::expand::{Expand, Renamed};
use crate::ir::kernel::LayoutId;
use crate::ir::op::{GpuOp, SharedStore, Unspecified};

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

    /// The stage that an iteration does not read; its own, if there is no other.
    pub(super) fn other_stage(&mut self, block: BlockId, slot: ValueId) -> ValueId {
        let last = i64::from(self.plan.stages) - 1;
        let last = self.int(block, DType::I32, last);
        self.compute(block, ElementwiseOp::Sub, &[last, slot], DType::I32)
    }

    /// What is stored for an iteration that is not executed.
    pub(super) fn unspecified(&mut self, block: BlockId, like: (TypeId, Option<LayoutId>)) -> ValueId {
        self.gpu(block, Unspecified {}, &[], &[like]).first().copied().unwrap_or(ValueId(0))
    }

    /// Stores the loaded values, the last of these, to a stage.
    pub(super) fn store(&mut self, block: BlockId, next: &mut Vec<ValueId>, stage: ValueId, ahead: bool) {
        let loaded = next.split_off(next.len().saturating_sub(self.copies.len()));
        for (n, v) in loaded.into_iter().enumerate() {
            let Some(c) = self.copies.get(n) else { continue };
            let (buffer, placement) = (c.buffer, c.placement.clone());
            let store = SharedStore { buffer, placement, chunked: false, ahead, remote: None, access: None };
            let inst = GpuOp::from(store).inst(vec![v, stage], c.inst.loc);
            self.add(block, inst, &[]);
        }
    }
}
