//! Random numbers; their meaning is in `tk_ops`.

use tk_ops::buf::Buf;
use tk_ops::{DType, RandomOp, eval};

use super::Args;
use super::elementwise::wrong;
use crate::fault::Fault;
use crate::value::Value;

/// Runs a random operation.
pub(super) fn run(op: RandomOp, args: &mut Args<'_, '_>) -> Result<(), Fault> {
    let n = args.operand(1)?.ty.count();
    let seed = args.take(0)?.scalar()?;
    let seed = seed.as_int().filter(|_| seed.dtype() == DType::U64).and_then(|s| u64::try_from(s).ok());
    let seed = seed.ok_or_else(|| Fault::internal("a seed is not `u64`"))?;
    let offsets = match args.take(1)? {
        // One offset, one number, in however many elements.
        Value::Splat(offset) => Buf::splat(offset, 1),
        many => many.owned(n)?,
    };
    let results = eval::random(op, seed, &offsets).map_err(wrong)?;
    results.into_iter().enumerate().try_for_each(|(i, x)| args.put(i, Value::tile(x)))
}
