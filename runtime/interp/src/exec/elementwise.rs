//! Elementwise operations: numbers through `tk_ops`, which holds their meaning, and the few that pointers have.

use tk_ops::buf::Buf;
use tk_ops::eval::{self, EvalError, Operand};
use tk_ops::{DType, ElementwiseOp, Scalar};

use super::Args;
use crate::checked::arithmetic;
use crate::fault::Fault;
use crate::ramp::Compared;
use crate::space::size_of;
use crate::value::Value;

/// Runs an elementwise operation. The element count follows from the operands, so that a scalar instruction of a
/// `map` block may work on whole tiles.
pub(super) fn run(op: ElementwiseOp, args: &mut Args<'_, '_>, checked: bool) -> Result<(), Fault> {
    // No operation has more than three operands.
    let mut values = [const { Value::Empty }; 3];
    let n = args.len();
    for (i, value) in values.iter_mut().enumerate().take(n) {
        *value = args.take(i)?;
    }
    let values = values.get(..n).ok_or_else(|| Fault::internal("too many operands"))?;
    let ty = args.def(0)?.ty;
    if checked {
        arithmetic::division(op, values, ty)?;
    }
    if let Some(pointer) = args.step.offset {
        arithmetic::offset(op, values, ty, pointer)?;
    }
    let value = match ty.dtype() {
        Some(out) => numbers(op, values, out, args.step.attrs.flag("fast"))?,
        None => pointers(op, values, args)?,
    };
    args.put(0, value)
}

fn numbers(op: ElementwiseOp, values: &[Value], out: DType, fast: bool) -> Result<Value, Fault> {
    match (op, values) {
        (ElementwiseOp::Cast, [Value::Tile(x)]) if x.dtype() == out => return Ok(Value::Tile(x.clone())),
        (ElementwiseOp::Cast, [Value::Tile(x)]) => return eval::cast(x, out).map(Value::tile).map_err(wrong),
        (ElementwiseOp::Select, [Value::Splat(cond), a, b]) => {
            return Ok(if cond.as_bool() == Some(true) { a } else { b }.clone());
        }
        (_other, _) => {}
    }
    if let Some(value) = consecutive(op, values, out) {
        return Ok(value);
    }
    let mut operands = [Operand::Splat(Scalar::zero(DType::Bool)); 3];
    let mut written = [const { None::<Buf> }; 3];
    for (slot, value) in written.iter_mut().zip(values) {
        if let Value::Ramp(r) = value {
            *slot = Some(r.buf());
        }
    }
    let mut n = None;
    for ((slot, value), written) in operands.iter_mut().zip(values).zip(&written) {
        *slot = match (value, written) {
            (_ramp, Some(buf)) => {
                n = Some(buf.len());
                Operand::Buf(buf)
            }
            (Value::Tile(buf), None) => {
                n = Some(buf.len());
                Operand::Buf(buf)
            }
            (other, None) => Operand::Splat(other.scalar()?),
        };
    }
    let operands = operands.get(..values.len()).ok_or_else(|| Fault::internal("too many operands"))?;
    let buf = eval::elementwise(op, operands, out, n.unwrap_or(1), fast).map_err(wrong)?;
    Ok(Value::tile(buf))
}

/// Consecutive integers with a number: what stays consecutive, and comparisons.
fn consecutive(op: ElementwiseOp, values: &[Value], out: DType) -> Option<Value> {
    match (op, values) {
        (ElementwiseOp::Cast, [Value::Ramp(r)]) => r.shifted(0, out).map(Value::Ramp),
        (ElementwiseOp::Add, [Value::Ramp(r), Value::Splat(s)] | [Value::Splat(s), Value::Ramp(r)]) => {
            r.shifted(s.as_int()?, out).map(Value::Ramp)
        }
        (ElementwiseOp::Sub, [Value::Ramp(r), Value::Splat(s)]) => {
            r.shifted(s.as_int()?.checked_neg()?, out).map(Value::Ramp)
        }
        (compare, [Value::Ramp(r), Value::Splat(s)]) if out == DType::Bool => {
            Some(match r.compare(compare, s.as_int()?)? {
                Compared::Uniform(holds) => Value::Splat(Scalar::bool(holds)),
                Compared::Some(buf) => Value::tile(buf),
            })
        }
        (_other, _) => None,
    }
}

/// The verifier rules these out.
pub(super) fn wrong(e: EvalError) -> Fault {
    Fault::internal(e)
}

/// The elementwise operations on pointers: `select`, and casts to other pointers.
fn pointers(op: ElementwiseOp, values: &[Value], args: &Args<'_, '_>) -> Result<Value, Fault> {
    let def = args.def(0)?;
    match (op, values) {
        (ElementwiseOp::Select, [cond, a, b]) => select(cond, a, b, def.count),
        (ElementwiseOp::Cast, [x]) => {
            let (from, to) = (pointee_size(args.operand(0)?.ty), pointee_size(def.ty));
            match x {
                Value::Ptr(p) => Ok(Value::Ptr(p.cast(from, to))),
                same if from == to => Ok(same.clone()),
                many => Ok(Value::lanes(
                    many.to_lanes(def.count)?.into_iter().map(|p| p.cast(from, to)).collect(),
                )),
            }
        }
        (_other, _) => Err(Fault::internal(format_args!("`{}` does not work on pointers", op.name()))),
    }
}

/// Bytes of what the pointers of a type point to.
pub(crate) fn pointee_size(ty: &tk_tile::Type) -> usize {
    match ty.elem() {
        tk_tile::ElemType::Ptr { pointee, .. } => elem_size(pointee),
        tk_tile::ElemType::Scalar(_) => 1,
    }
}

/// Bytes of an element in memory.
pub(crate) fn elem_size(elem: &tk_tile::ElemType) -> usize {
    match elem {
        tk_tile::ElemType::Scalar(d) => size_of(Some(*d)),
        tk_tile::ElemType::Ptr { .. } => size_of(None),
    }
}

fn select(cond: &Value, a: &Value, b: &Value, n: usize) -> Result<Value, Fault> {
    let cond = match cond {
        Value::Tile(c) => c.as_bool().ok_or_else(|| Fault::internal("a condition is not bool"))?,
        uniform => return Ok(if uniform.bool()? { a } else { b }.clone()),
    };
    let n = n.max(cond.len());
    let (a, b) = (a.to_lanes(n)?, b.to_lanes(n)?);
    let picked = cond.iter().zip(a.into_iter().zip(b)).map(|(c, (a, b))| if *c { a } else { b });
    Ok(Value::lanes(picked.collect()))
}
