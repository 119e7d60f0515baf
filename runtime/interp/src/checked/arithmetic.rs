//! Integer arithmetic that has no result to rely on: divisions by zero, and overflow in the offset of a pointer.

use tk_ops::{DType, ElementwiseOp, Scalar};
use tk_tile::Type;

use super::{DIVISION, OFFSET};
use crate::fault::Fault;
use crate::print::place;
use crate::value::Value;

/// Reports a division of an integer by zero.
pub(crate) fn division(op: ElementwiseOp, values: &[Value], ty: &Type) -> Result<(), Fault> {
    let (ElementwiseOp::Div | ElementwiseOp::Rem | ElementwiseOp::CeilDiv, [_, by]) = (op, values) else {
        return Ok(());
    };
    if !ty.dtype().is_some_and(DType::is_int) {
        return Ok(());
    }
    let zero = |s: Scalar| s.as_int() == Some(0);
    let lane = match by {
        Value::Splat(s) => zero(*s).then_some(0),
        Value::Tile(buf) => (0..buf.len()).find(|i| zero(buf.get(*i))),
        Value::Ramp(r) => (0..r.count).find(|i| zero(r.at(*i))),
        _no_number => None,
    };
    match lane {
        None => Ok(()),
        Some(lane) => {
            let place = place(lane, ty.shape().unwrap_or_default());
            Err(Fault::new(DIVISION, format!("an integer is divided by zero{place}")))
        }
    }
}

/// The smallest and the largest element; of what stays in closed form without looking at each.
fn range(x: &Value) -> Option<(i128, i128)> {
    match x {
        Value::Splat(s) => s.as_int().map(|v| (v, v)),
        Value::Ramp(r) => Some((r.at(0).as_int()?, r.at(r.count.checked_sub(1)?).as_int()?)),
        Value::Tile(buf) => (0..buf.len()).try_fold((i128::MAX, i128::MIN), |(lo, hi), i| {
            let v = buf.get(i).as_int()?;
            Some((lo.min(v), hi.max(v)))
        }),
        _no_number => None,
    }
}

/// The elements; 1 of a scalar, and of a tile whose elements are all the same.
fn count(x: &Value) -> usize {
    match x {
        Value::Tile(buf) => buf.len(),
        Value::Ramp(r) => r.count,
        _uniform => 1,
    }
}

/// The exact result for integers; `None` for what is not part of an offset.
fn exact(op: ElementwiseOp, x: i128, y: i128) -> Option<i128> {
    match op {
        ElementwiseOp::Add => x.checked_add(y),
        ElementwiseOp::Sub => x.checked_sub(y),
        ElementwiseOp::Mul => x.checked_mul(y),
        ElementwiseOp::Neg => x.checked_neg(),
        // A shift by the width or more gives 0, which is inside of every type.
        ElementwiseOp::Shl => {
            u32::try_from(y).ok().filter(|y| *y < 64).and_then(|y| x.checked_mul(1i128 << y))
        }
        _other => None,
    }
}

/// Reports a sum, difference, product or negation in the offset of a pointer that leaves its type. `pointer` is the name
/// of the pointer, empty if it has none.
pub(crate) fn offset(op: ElementwiseOp, values: &[Value], ty: &Type, pointer: &str) -> Result<(), Fault> {
    let Some((dtype, (lo, hi))) = ty.dtype().and_then(|d| Some((d, d.int_range()?))) else { return Ok(()) };
    let (Some(x), second) = (values.first(), values.get(1)) else { return Ok(()) };
    let y = second.unwrap_or(x);
    let (Some((x0, x1)), Some((y0, y1))) = (range(x), range(y)) else { return Ok(()) };
    let inside = |v: Option<i128>| v.is_none_or(|v| (lo..=hi).contains(&v));
    // Each operation is monotonic or, as products are, has its extremes at the corners.
    if [(x0, y0), (x0, y1), (x1, y0), (x1, y1)].into_iter().all(|(x, y)| inside(exact(op, x, y))) {
        return Ok(());
    }
    let number = |v: &Value, lane: usize| v.lane(lane).ok()?.scalar().ok()?.as_int();
    for lane in 0..count(x).max(count(y)) {
        let (Some(x), Some(y)) = (number(x, lane), number(y, lane)) else { continue };
        let v = exact(op, x, y);
        if !inside(v) {
            let (v, place) = (v.unwrap_or(x), place(lane, ty.shape().unwrap_or_default()));
            let pointer = if pointer.is_empty() { "a pointer".to_string() } else { format!("`{pointer}`") };
            let message = format!(
                "the offset of {pointer} is {v}{place}, which does not fit in its type `{dtype}`; convert an operand with `as i64`"
            );
            return Err(Fault::new(OFFSET, message));
        }
    }
    Ok(())
}
