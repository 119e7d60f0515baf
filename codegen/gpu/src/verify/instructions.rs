//! Verifies S09: the width and the instruction of each access.
//!
//! Requires S01 to S08. Guarantees that emission makes no choices.

use tk_tile::Inst;

use super::fault::GpuInvariant::S09;
use super::fault::{Check, GpuVerifyError, each, ensure, fault};
use crate::analysis::axis::AxisInfo;
use crate::analysis::bounded::bounded;
use crate::analysis::{access_width, direct_loads, stmatrix};
use crate::ir::kernel::Kernel;
use crate::ir::op::{FragmentLoad, GpuOp, MmaOperand, StoreAccess};

/// Checks every instruction.
pub(super) fn check(kernel: &Kernel) -> Result<(), GpuVerifyError> {
    let axis = AxisInfo::new(&kernel.module, kernel.func(), &kernel.options.facts);
    each(kernel, |inst| access(kernel, &axis, inst))
}

/// The chosen width against the largest possible one.
fn width(chosen: Option<u32>, most: u32) -> Check {
    let Some(n) = chosen else { return fault(S09, "its width is not decided") };
    ensure(n.is_power_of_two() && n <= most, S09, || {
        format!("it accesses {n} elements at once, and alignment and layout allow {most}")
    })
}

/// S09.
fn access(kernel: &Kernel, axis: &AxisInfo, inst: &Inst) -> Check {
    if let Some(v) = access_width::accessed(kernel, inst) {
        let chosen = inst.attrs.int("vector").map(|n| u32::try_from(n).unwrap_or(0));
        let along = inst.attrs.int("bounded");
        let can = bounded(kernel, axis, inst, v);
        ensure(along.is_none() || along == can.map(|d| d as i64), S09, || {
            "its lanes do not differ along this axis alone, whose bound is the hardware's".into()
        })?;
        width(chosen, access_width::memory(kernel, axis, inst, v))?;
        let ragged = access_width::ragged(kernel, axis, inst, chosen.unwrap_or(1));
        ensure(inst.attrs.int("ragged") == ragged.map(|d| d as i64), S09, || match ragged {
            Some(_) => {
                "its neighbours are not known to be aligned, and all inside or outside; nothing asks".into()
            }
            None => {
                "its neighbours are known to be aligned, and all inside or outside; nothing must ask".into()
            }
        })?;
        let is_shifted = chosen.is_some() && access_width::shifted(kernel, axis, inst) == chosen;
        ensure(inst.attrs.flag("shifted") || !is_shifted, S09, || {
            "its address is not known to be aligned, and it is not made of aligned loads".into()
        })?;
        return ensure(ragged.is_none() || along.is_none(), S09, || {
            "its bounds are the hardware's, which does not know where a row ends".into()
        });
    }
    let (operand, result) = (inst.operands.first().copied(), inst.results.first().copied());
    match (GpuOp::of(inst), operand, result) {
        (Some(GpuOp::SharedStore(store)), Some(v), _) => match store.access {
            Some(access @ (StoreAccess::Matrices | StoreAccess::TransposedMatrices)) => {
                let transposed = access == StoreAccess::TransposedMatrices;
                let can = stmatrix::rows(kernel, store, v).is_some_and(|rows| rows.transposed == transposed);
                ensure(can, S09, || "`stmatrix` does not store this layout there".into())
            }
            Some(StoreAccess::Vector(n)) => {
                width(Some(n), 1 << access_width::gathered(kernel, store, v).len())
            }
            None => width(None, 1),
        },
        (Some(GpuOp::SharedLoad(load)), _, Some(r)) => {
            width(load.vector, access_width::shared(kernel, &load.placement, load.buffer.buffer, r))
        }
        (Some(GpuOp::AsyncCopy(copy)), _, Some(r)) => {
            ensure(direct_loads::is_possible(kernel, copy, r), S09, || {
                "the lanes of a warp do not copy 16 bytes each, side by side".into()
            })?;
            width(copy.vector, access_width::copy(kernel, axis, inst, copy, r))
        }
        (Some(GpuOp::Mma(mma)), Some(acc), _) => {
            let Some(best) = access_width::of_mma(kernel, mma, acc) else { return Ok(()) };
            [&mma.a, &mma.b].into_iter().zip(best).try_for_each(|(operand, best)| match operand {
                MmaOperand::Shared { load, .. } => fragments(*load, best),
                MmaOperand::Registers => Ok(()),
            })
        }
        (Some(GpuOp::Fragments(op)), Some(acc), _) => {
            let best = access_width::of_fragments(kernel, op, acc);
            best.map_or(Ok(()), |best| fragments(op.load, best))
        }
        _ => Ok(()),
    }
}

/// The chosen way to read fragments against the best one.
fn fragments(chosen: Option<FragmentLoad>, best: FragmentLoad) -> Check {
    match (chosen, best) {
        (Some(FragmentLoad::Vector(n)), FragmentLoad::Vector(most)) => width(Some(n), most),
        (Some(chosen), best) => ensure(chosen == best, S09, || "it cannot read its operands that way".into()),
        (None, _) => width(None, 1),
    }
}
