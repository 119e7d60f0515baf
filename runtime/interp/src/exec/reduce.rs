//! Reductions by name; their meaning is in `tk_ops`.

use tk_ops::{ReduceOp, eval};

use super::Args;
use super::elementwise::wrong;
use crate::fault::Fault;
use crate::value::Value;

/// Runs a reduction along one axis.
pub(super) fn run(op: ReduceOp, args: &mut Args<'_, '_>) -> Result<(), Fault> {
    let ty = args.operand(0)?.ty;
    let shape = ty.shape().ok_or_else(|| Fault::internal("a tile is expected, not a view"))?;
    let axis = usize::try_from(args.int("axis")?).ok().filter(|a| *a < shape.len());
    let axis = axis.ok_or_else(|| Fault::internal("an axis is out of range"))?;
    let product =
        |part: Option<&[u32]>| part.unwrap_or_default().iter().map(|d| *d as usize).product::<usize>();
    let (outer, inner) = (product(shape.get(..axis)), product(shape.get(axis + 1..)));
    let len = product(shape.get(axis..=axis));
    let x = match (op, args.take(0)?) {
        // Of equal elements each is the largest, and the first one is found first.
        (ReduceOp::Max | ReduceOp::Min | ReduceOp::Any | ReduceOp::All, uniform @ Value::Splat(_)) => {
            return args.put(0, uniform);
        }
        (_other, x) => x.buf(ty.count())?,
    };
    args.put(0, Value::tile(eval::reduce(op, &x, outer, len, inner).map_err(wrong)?))
}
