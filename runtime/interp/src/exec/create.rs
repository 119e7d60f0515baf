//! `const`, `table`, `arange`, `splat`, `undef`.

use tk_ops::{CreateOp, DType};

use super::Args;
use crate::fault::Fault;
use crate::ramp::Ramp;
use crate::value::Value;

/// Runs a creation. Uniform tiles stay scalars.
pub(super) fn run(op: CreateOp, args: &mut Args<'_, '_>) -> Result<(), Fault> {
    let value = match op {
        CreateOp::Const | CreateOp::Table => {
            args.step.constant.clone().ok_or_else(|| Fault::internal("a constant without value"))?
        }
        CreateOp::Arange => {
            let (start, count) = (args.int("start")?, args.def(0)?.count);
            let ramp = Ramp::new(DType::I32, i128::from(start), count);
            Value::ramp(ramp.ok_or_else(|| Fault::internal("the elements of `arange` do not fit `i32`"))?)
        }
        CreateOp::Splat => args.take(0)?,
        CreateOp::Undef => Value::zero(args.def(0)?.ty),
    };
    args.put(0, value)
}
