//! Owns `const`, `arange`, `splat`, `undef`.

use tk_ops::CreateOp;
use tk_ops::buf::Buf;

use super::Args;
use crate::fault::Fault;
use crate::value::Value;

/// Runs a creation. Uniform tiles stay scalars.
pub(super) fn run(op: CreateOp, args: &mut Args<'_, '_>) -> Result<(), Fault> {
    let value = match op {
        CreateOp::Const => {
            args.step.constant.clone().ok_or_else(|| Fault::internal("a constant without value"))?
        }
        CreateOp::Arange => {
            let start = args.int("start")? as i32;
            let n = args.def(0)?.count as i32;
            Value::tile(Buf::I32((0..n).map(|i| start.wrapping_add(i)).collect()))
        }
        CreateOp::Splat => args.take(0)?,
        CreateOp::Undef => Value::zero(args.def(0)?.ty),
    };
    args.put(0, value)
}
