//! Checks the promises of a program: `assume`, `multiple_of`, `max_contiguous`, and indices in bounds.

use tk_ops::ControlOp;
use tk_tile::{ElemType, Type};

use super::{INDEX, PROMISE};
use crate::exec::pointee_size;
use crate::fault::Fault;
use crate::print::{place, pointer};
use crate::space::Space;
use crate::value::Value;

/// The first element that is false.
pub(crate) fn first_false(x: &Value) -> Result<Option<usize>, Fault> {
    Ok(match x {
        Value::Tile(lanes) => lanes.as_bool().and_then(|lanes| lanes.iter().position(|ok| !ok)),
        uniform => (!uniform.bool()?).then_some(0),
    })
}

/// `assume`.
pub(crate) fn assume(x: &Value, ty: &Type) -> Result<(), Fault> {
    match first_false(x)? {
        None => Ok(()),
        Some(lane) => {
            let place = place(lane, ty.shape().unwrap_or_default());
            Err(Fault::new(PROMISE, format!("this assumption does not hold{place}")))
        }
    }
}

/// `multiple_of` and `max_contiguous`: what they say of each run of `n` elements along the last dimension, aligned to
/// its length.
pub(crate) fn run_of(op: ControlOp, x: &Value, ty: &Type, n: i64, space: &Space) -> Result<(), Fault> {
    let n = i128::from(n.max(1));
    let shape = ty.shape().unwrap_or_default();
    let row = shape.last().map_or(1, |d| *d as usize).max(1);
    let size = pointee_size(ty);
    // A pointer counts in elements.
    let number = |lane: usize| {
        Ok::<i128, Fault>(match x.lane(lane)? {
            Value::Ptr(p) => i128::from(space.address(&p, size)) / size as i128,
            number => {
                number.scalar()?.as_int().ok_or_else(|| Fault::internal("a promise about no integer"))?
            }
        })
    };
    let shown = |lane: usize| match x.lane(lane)? {
        Value::Ptr(p) => Ok::<String, Fault>(pointer(&p, size, space)),
        number => Ok(number.scalar()?.to_string()),
    };
    for lane in 0..ty.count().max(1) {
        let in_run = (lane % row) as i128 % n;
        let (v, place) = (number(lane)?, || place(lane, shape));
        if op == ControlOp::MultipleOf && in_run == 0 && v % n != 0 {
            let (what, place) = (shown(lane)?, place());
            return Err(Fault::new(PROMISE, format!("{what}{place} is not a multiple of {n}{}", unit(ty))));
        }
        if op == ControlOp::MaxContiguous && in_run != 0 {
            let before = number(lane - 1)?;
            if v != before + 1 {
                let (what, before, place) = (shown(lane)?, shown(lane - 1)?, place());
                let message = format!("{what}{place} follows {before}: runs of {n} do not count up by one");
                return Err(Fault::new(PROMISE, message));
            }
        }
    }
    Ok(())
}

/// The unit of a promise about this type.
fn unit(ty: &Type) -> &'static str {
    match ty.elem() {
        ElemType::Ptr { .. } => " elements",
        ElemType::Scalar(_) => "",
    }
}

/// Indices that must be below an extent, those of a tile of this shape.
pub(crate) fn indices(all: &[i64], shape: &[u32], extent: i64, of: &str) -> Result<(), Fault> {
    match all.iter().position(|i| !(0..extent).contains(i)) {
        None => Ok(()),
        Some(lane) => {
            let (i, place) = (all.get(lane).copied().unwrap_or_default(), place(lane, shape));
            Err(Fault::new(INDEX, format!("index {i}{place} is out of bounds for {of} of extent {extent}")))
        }
    }
}
