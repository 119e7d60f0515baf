//! Scans by name, sorting, counting and picking; their meaning is in `tk_ops`.

use tk_ops::ScanOp;
use tk_ops::buf::Buf;
use tk_ops::eval::{self, Lines};
use tk_ops::scalar::Scalar;

use super::Args;
use super::elementwise::wrong;
use crate::checked::promises;
use crate::fault::Fault;
use crate::value::{Pointer, Value};

/// Runs an operation along one axis.
pub(super) fn run(op: ScanOp, args: &mut Args<'_, '_>, checked: bool) -> Result<(), Fault> {
    match op {
        ScanOp::CumSum | ScanOp::CumProd => {
            let (lines, reverse) = (lines(args, args.int("axis")?)?, args.step.attrs.flag("reverse"));
            let x = args.take(0)?.buf(lines.count())?;
            args.put(0, Value::tile(eval::scan(op, &x, lines, reverse).map_err(wrong)?))
        }
        ScanOp::Sort => sort(args),
        ScanOp::TopK => topk(args),
        ScanOp::Histogram => histogram(args),
        ScanOp::Gather => gather(args, checked),
        ScanOp::Custom => Err(Fault::internal("a scan with a block is not one step")),
    }
}

/// The first operand as lines along an axis.
fn lines(args: &Args<'_, '_>, axis: i64) -> Result<Lines, Fault> {
    let shape = args.operand(0)?.ty.shape().unwrap_or_default();
    let lines = usize::try_from(axis).ok().and_then(|axis| Lines::new(shape, axis));
    lines.ok_or_else(|| Fault::internal("an axis is out of range"))
}

fn sort(args: &mut Args<'_, '_>) -> Result<(), Fault> {
    let (lines, descending) = (lines(args, args.int("axis")?)?, args.step.attrs.flag("descending"));
    let keys = args.take(0)?.buf(lines.count())?;
    let places = eval::sort(&keys, lines, descending).map_err(wrong)?;
    args.put(0, Value::tile(keys.gather(&places)))?;
    for i in 1..args.len() {
        let sorted = picked(args.take(i)?, &places)?;
        args.put(i, sorted)?;
    }
    Ok(())
}

fn topk(args: &mut Args<'_, '_>) -> Result<(), Fault> {
    let last = args.operand(0)?.ty.shape().map_or(0, <[u32]>::len) as i64 - 1;
    let lines = lines(args, args.int("axis").unwrap_or(last))?;
    let k = usize::try_from(args.int("k")?).map_err(|_| Fault::internal("`k` is negative"))?;
    let x = args.take(0)?.buf(lines.count())?;
    let (places, positions) = eval::topk(&x, lines, k).map_err(wrong)?;
    args.put(0, Value::tile(x.gather(&places)))?;
    args.put(1, Value::tile(Buf::I32(positions)))
}

fn histogram(args: &mut Args<'_, '_>) -> Result<(), Fault> {
    let (n, bins) = (args.operand(0)?.ty.count(), args.def(0)?.count);
    let x = args.take(0)?.buf(n)?;
    let mask = if args.len() > 1 { args.take(1)? } else { Value::Splat(Scalar::bool(true)) };
    let mask = mask.buf(n)?;
    let counted = mask.as_bool().ok_or_else(|| Fault::internal("a mask is not bool"))?;
    args.put(0, Value::tile(Buf::I32(eval::histogram(&x, Some(counted), bins).map_err(wrong)?)))
}

fn gather(args: &mut Args<'_, '_>, checked: bool) -> Result<(), Fault> {
    let lines = lines(args, args.int("axis")?)?;
    let n = args.operand(1)?.ty.count();
    let (x, index) = (args.take(0)?, args.take(1)?.buf(n)?);
    if checked {
        let at = index.to_i64().ok_or_else(|| Fault::internal("an index is not an integer"))?;
        let shape = args.operand(1)?.ty.shape().unwrap_or_default();
        promises::indices(&at, shape, lines.len as i64, "a dimension")?;
    }
    let places = eval::gather(&index, lines).map_err(wrong)?;
    args.put(0, picked(x, &places)?)
}

/// The elements of a tile at these places.
fn picked(x: Value, places: &[usize]) -> Result<Value, Fault> {
    Ok(match x {
        uniform @ (Value::Splat(_) | Value::Ptr(_)) => uniform,
        Value::Tile(buf) => Value::tile(buf.gather(places)),
        Value::Ramp(ramp) => Value::tile(ramp.buf().gather(places)),
        pointers => {
            let lane = |place: &usize| match pointers.lane(*place)? {
                Value::Ptr(p) => Ok(p),
                _number => Err(Fault::internal("a pointer is expected")),
            };
            Value::lanes(places.iter().map(lane).collect::<Result<Vec<Pointer>, Fault>>()?)
        }
    })
}
