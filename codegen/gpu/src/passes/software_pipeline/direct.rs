//! Decides which loops load straight to shared memory on targets whose loads do, in an order of lanes ([`direct_loads`]).
//!
//! ```text
//! v0 = view_load x, i + 1 : .. @l0                 async_copy x, i + 1, stage {ahead = true, buffer = 0, ..} : .. @l1
//! v1 = mma acc, slot {a = 0, ..}            =>     v1 = mma acc, slot {a = 0, ..}
//! shared_store v0, stage {buffer = 0, ..}          async_wait {pending = 0}
//! ```
//!
//! No registers hold the elements of the next iteration, and nothing stores them. The order of the buffer stays: the layout of
//! the load follows from it.
//!
//! Guarantees that all loads of a loop that run ahead do so, or none.

use tk_ops::{MemoryOp, Op};
use tk_tile::{InstId, ValueId};

use super::LoopAnalysis;
use super::expand::{PrefetchTarget, PrefetchedLoad};
use crate::analysis::coalesce::access;
use crate::analysis::direct_loads;
use crate::ir::kernel::Remark;
use crate::ir::op::GpuOp;
use crate::layout::Layout;

impl LoopAnalysis<'_> {
    /// The layouts in which all of these loads are direct, or the reasons why they are not. `pure` says that where they read is
    /// computed without other loads.
    pub(super) fn direct(
        &self,
        taken: &[PrefetchedLoad],
        pure: bool,
    ) -> (Vec<(ValueId, Layout)>, Vec<Remark>) {
        if self.kernel.options.spec.direct_load_bytes == 0 {
            return (vec![], vec![]);
        }
        let (mut layouts, mut remarks) = (vec![], vec![]);
        for load in taken {
            let why = match self.direct_layout(load) {
                Ok(_) if !pure => "where it is loaded from is loaded too",
                Ok(found) => {
                    layouts.push(found);
                    continue;
                }
                Err(why) => why,
            };
            let text = format!("an operand of a product is not loaded straight to shared memory: {why}");
            remarks.push(Remark { loc: self.kernel.func().insts[load.load].loc, text });
        }
        if remarks.is_empty() { (layouts, remarks) } else { (vec![], remarks) }
    }

    fn direct_layout(&self, taken: &PrefetchedLoad) -> Result<(ValueId, Layout), &'static str> {
        const NOT_STORED: &str = "it is changed before it is stored";
        let (func, options) = (self.kernel.func(), &self.kernel.options);
        let inst = &func.insts[taken.load];
        if inst.op != Op::Memory(MemoryOp::ViewLoad) {
            return Err("it is not loaded through a view");
        }
        let (Some(r), PrefetchTarget::Buffer { store, .. }) = (inst.results.first().copied(), taken.target)
        else {
            return Err(NOT_STORED);
        };
        let (Some(source), Some(bases)) = (self.kernel.layout(r), self.bases(store)) else {
            return Err(NOT_STORED);
        };
        let known = access(&self.kernel.module, func, &self.axis, options, inst).ok_or(NOT_STORED)?;
        let whole = options.spec.direct_load_bytes;
        if known.vector * known.bytes < whole {
            return Err(known.limit);
        }
        if known.certain * known.bytes < whole {
            return Err("neighbours are not known to be inside together, at an aligned address");
        }
        if source.registers() as u32 * known.bytes < whole {
            return Err("lanes have less than 16 bytes each");
        }
        let layout = direct_loads::layout(source, bases, known.bytes, options.spec);
        let fastest = known.order.first().copied().unwrap_or(0);
        let layout = layout.filter(|l| l.vector(fastest) * known.bytes >= whole);
        Ok((r, layout.ok_or("shared memory has them in another order than the lanes of a warp can load")?))
    }

    /// The order in which a store places a tile.
    fn bases(&self, store: InstId) -> Option<&[i64]> {
        match GpuOp::of(&self.kernel.func().insts[store]) {
            Some(GpuOp::SharedStore(store)) => Some(store.placement.bases()).filter(|b| !b.is_empty()),
            _other => None,
        }
    }
}
