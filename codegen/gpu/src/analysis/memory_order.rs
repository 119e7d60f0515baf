//! Decides which operations order memory.

use tk_ops::{ControlOp, Op};
use tk_tile::{Func, InstId, ValueId, walk};

/// Returns true if reads of memory must not move across an instruction: it orders memory, or execution may not continue
/// after it. A relaxed atomic whose result nothing uses only writes.
pub fn orders_memory(func: &Func, id: InstId) -> bool {
    let inst = &func.insts[id];
    match inst.op {
        Op::Atomic(_) => {
            let relaxed = inst.attrs.str("order").is_none_or(|order| order == "relaxed");
            !relaxed || walk::insts(func).iter().any(|i| uses(func, *i, &inst.results))
        }
        Op::Control(
            ControlOp::GridBarrier | ControlOp::GlobalTimer | ControlOp::InlineAsm | ControlOp::Assert,
        ) => true,
        _ => false,
    }
}

fn uses(func: &Func, id: InstId, results: &[ValueId]) -> bool {
    func.insts[id].operands.iter().any(|v| results.contains(v))
}
