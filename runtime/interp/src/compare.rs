//! `assert_close`: the comparison of two tiles, and its message.

use tk_ops::buf::Buf;
use tk_ops::scalar::Scalar;

use crate::exec::Args;
use crate::fault::Fault;
use crate::host::float_attr;
use crate::print;

/// `host_assert_close`: `|a - b| <= atol + rtol * |b|`; NaN is equal to NaN, an infinity to itself.
pub(crate) fn assert_close(args: &mut Args<'_, '_>) -> Result<(), Fault> {
    let ty = args.operand(0)?.ty;
    let (n, shape) = (ty.count(), ty.shape().unwrap_or_default());
    let (rtol, atol) = (float_attr(args, "rtol"), float_attr(args, "atol"));
    let (a, b) = (args.take(0)?.buf(n)?, args.take(1)?.buf(n)?);
    let (mut off, mut worst) = (0, None);
    for i in 0..n {
        let excess = excess(a.get(i), b.get(i), rtol, atol);
        if excess > 0.0 {
            off += 1;
            if worst.is_none_or(|(_, most)| excess > most) {
                worst = Some((i, excess));
            }
        }
    }
    match worst {
        None => Ok(()),
        Some((i, _)) => Err(Fault::run(message(&a, &b, i, shape, off, (rtol, atol)))),
    }
}

/// What does not hold of an element of the operands 1 and 2 of an `assert`: `3 instead of 4`, `not 3 < 2`.
pub(crate) fn sides(args: &mut Args<'_, '_>, operator: &str, lane: usize) -> Result<String, Fault> {
    let mut side = |i| Ok::<_, Fault>(print::number(args.take(i)?.lane(lane)?.scalar()?));
    let (a, b) = (side(1)?, side(2)?);
    Ok(if operator == "==" { format!("{a} instead of {b}") } else { format!("not {a} {operator} {b}") })
}

/// The excess of the difference over its limit: 0 if it is within, infinite where the difference cannot be measured.
fn excess(a: Scalar, b: Scalar, rtol: f64, atol: f64) -> f64 {
    if a == b {
        return 0.0;
    }
    let (difference, size) = match (a.as_int(), b.as_int()) {
        (Some(a), Some(b)) => ((a - b).unsigned_abs() as f64, b.unsigned_abs() as f64),
        (_, _) => {
            let (a, b) = (number(a), number(b));
            if a == b || (a.is_nan() && b.is_nan()) {
                return 0.0;
            }
            if !a.is_finite() || !b.is_finite() {
                return f64::INFINITY;
            }
            ((a - b).abs(), b.abs())
        }
    };
    let allowed = atol + rtol * size;
    // A difference of 0 counts as none, whatever the tolerances are; a tolerance that is NaN allows nothing.
    if difference <= allowed || difference == 0.0 {
        0.0
    } else {
        (difference - allowed).max(f64::MIN_POSITIVE)
    }
}

/// A float or bool as f64.
fn number(s: Scalar) -> f64 {
    s.as_f64().unwrap_or(if s.as_bool() == Some(true) { 1.0 } else { 0.0 })
}

fn message(a: &Buf, b: &Buf, i: usize, shape: &[u32], off: usize, (rtol, atol): (f64, f64)) -> String {
    let n = shape.iter().map(|d| *d as usize).product::<usize>();
    let place = if shape.is_empty() { String::new() } else { format!(" at {}", index_text(i, shape)) };
    let (a, b) = (print::number(a.get(i)), print::number(b.get(i)));
    format!(
        "values are not close: {a} instead of {b}{place}, the worst mismatch of {off} in {n} elements (allowed: {atol:?} + {rtol:?} * |expected|)"
    )
}

/// The index of element `i` in a tile of this shape: `[1, 2]`.
pub(crate) fn index_text(i: usize, shape: &[u32]) -> String {
    let mut rest = i;
    let mut index: Vec<String> = shape
        .iter()
        .rev()
        .map(|d| {
            let at = rest % (*d as usize).max(1);
            rest /= (*d as usize).max(1);
            at.to_string()
        })
        .collect();
    index.reverse();
    format!("[{}]", index.join(", "))
}
