//! Chooses how each access to memory is done: its width, `stmatrix`, `ldmatrix`, bounds that the hardware checks, rows that
//! are read by wide accesses wherever they begin and end.
//!
//! ```text
//! v1 = view_load v0, ..                    v1 = view_load v0, .. {vector = 8}
//! shared_store v1 {buffer = 0, ..}    =>   shared_store v1 {buffer = 0, .., vector = 8}
//! v3 = mma v2 {a = 0, ..}                  v3 = mma v2 {a = 0, a_load = "ldmatrix", ..}
//! ```
//!
//! Chooses the widest access that alignment and layouts allow ([`access_width`]). The verifier proves the choice (S09),
//! and emission follows it.

use tk_tile::{Attr, FuncId, Inst, walk};

use crate::analysis::axis::AxisInfo;
use crate::analysis::bounded::bounded;
use crate::analysis::{access_width, stmatrix};
use crate::ir::kernel::Kernel;
use crate::ir::op::{GpuOp, MmaOperand, StoreAccess};
use crate::passes::{Pass, Property, Run};
use crate::verify::verify_selected;

/// The pass.
pub const PASS: Pass = Pass {
    name: "select_instructions",
    purpose: "chooses the width and the instruction of each access to memory",
    needs: &[Property::Offsets, Property::SplitStores],
    leaves: &[Property::Instructions],
    run: Run::Kernel { run, verify: verify_selected },
};

fn run(kernel: &mut Kernel) {
    let axis = AxisInfo::new(&kernel.module, kernel.func(), &kernel.options.facts);
    for id in walk::insts(kernel.func()) {
        let inst = &kernel.func().insts[id];
        if let Some(v) = access_width::accessed(kernel, inst) {
            let vector = access_width::memory(kernel, &axis, inst, v);
            let ragged = access_width::ragged(kernel, &axis, inst, vector);
            let bounded = bounded(kernel, &axis, inst, v).filter(|_| ragged.is_none());
            let is_shifted = access_width::shifted(kernel, &axis, inst).is_some();
            let attrs = &mut kernel.module.funcs[FuncId(0)].insts[id].attrs;
            attrs.set("vector", Attr::Int(vector.into()));
            if is_shifted {
                attrs.set("shifted", Attr::Bool(true));
            }
            for (name, along) in [("bounded", bounded), ("ragged", ragged)] {
                along.into_iter().for_each(|d| attrs.set(name, Attr::Int(d as i64)));
            }
        } else if let Some(op) = selected(kernel, &axis, inst) {
            kernel.module.funcs[FuncId(0)].insts[id].attrs = op.attrs();
        }
    }
}

/// The operation with its instruction; `None` if there is nothing to choose.
fn selected(kernel: &Kernel, axis: &AxisInfo, inst: &Inst) -> Option<GpuOp> {
    let operand = inst.operands.first().copied();
    let result = inst.results.first().copied();
    let mut op = GpuOp::of(inst)?.clone();
    match &mut op {
        GpuOp::SharedStore(store) => {
            let v = operand?;
            let vector = || 1 << access_width::gathered(kernel, store, v).len();
            store.access = Some(match stmatrix::rows(kernel, store, v) {
                Some(rows) if rows.transposed => StoreAccess::TransposedMatrices,
                Some(_) => StoreAccess::Matrices,
                None => StoreAccess::Vector(vector()),
            });
        }
        GpuOp::SharedLoad(load) => {
            load.vector = Some(access_width::shared(kernel, &load.placement, load.buffer.buffer, result?));
        }
        GpuOp::AsyncCopy(copy) => {
            copy.vector = Some(access_width::copy(kernel, axis, inst, copy, result?));
        }
        GpuOp::Mma(mma) => {
            let loads = access_width::of_mma(kernel, mma, operand?)?;
            for (side, how) in [&mut mma.a, &mut mma.b].into_iter().zip(loads) {
                if let MmaOperand::Shared { load, .. } = side {
                    *load = Some(how);
                }
            }
        }
        GpuOp::Fragments(fragments) => {
            fragments.load = Some(access_width::of_fragments(kernel, fragments, operand?)?);
        }
        _ => return None,
    }
    Some(op)
}
