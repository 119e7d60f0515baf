//! Operations directly on fp8 codes: signs, and the larger or smaller of two.
//!
//! May assume nothing. Guarantees that the result is one of the operands (its sign aside), so that infinities, which no
//! conversion gives, and the payloads of NaN stay.

use super::loops::{Source, binary, ternary, unary};
use super::{EvalError, Operand};
use crate::buf::Buf;
use crate::dtype::DType;
use crate::elementwise::{ElementwiseOp, Group, MinMax, Sign};

/// The sign bit of a code.
const SIGN: u8 = 0x80;

/// An operation that [`is_of_codes`]; `d` is fp8.
pub(super) fn codes(op: ElementwiseOp, args: &[Operand<'_>], d: DType, n: usize) -> Result<Buf, EvalError> {
    let held: Vec<Vec<u8>> = args.iter().map(|a| a.to_buf(n).to_le_bytes()).collect();
    let sources: Vec<Source<'_, u8>> = held.iter().map(|v| Source::Slice(v)).collect();
    let out = match (op.group(), sources.as_slice()) {
        (Group::Sign(Sign::Neg), [x]) => unary(*x, n, |c| if is_fixed(c, d) { c } else { c ^ SIGN }),
        (Group::Sign(Sign::Abs), [x]) => unary(*x, n, |c| if is_fixed(c, d) { c } else { c & !SIGN }),
        (Group::MinMax(f), [a, b]) => binary(*a, *b, n, |a, b| match f {
            MinMax::Maximum => maximum(a, b, d),
            MinMax::Minimum => minimum(a, b, d),
            MinMax::MaxNum => number(a, b, d, maximum),
            MinMax::MinNum => number(a, b, d, minimum),
        }),
        (Group::Clamp(_), [x, lo, hi]) => {
            ternary(*x, *lo, *hi, n, |x, lo, hi| minimum(maximum(x, lo, d), hi, d))
        }
        (_, _) => return Err(EvalError::Unsupported { op: op.name(), dtype: d }),
    };
    Buf::from_le_bytes(d, &out).ok_or(EvalError::Unsupported { op: op.name(), dtype: d })
}

/// Whether an operation on fp8 is one on its codes.
pub(super) fn is_of_codes(op: ElementwiseOp) -> bool {
    matches!(op.group(), Group::Sign(_) | Group::MinMax(_) | Group::Clamp(_))
}

/// Whether a code has no other sign: the zero and the NaN of a type that has one of each.
fn is_fixed(c: u8, d: DType) -> bool {
    c & !SIGN == 0 && d.format().is_some_and(|f| !f.signed_zero)
}

/// Whether a code is NaN.
fn is_nan(c: u8, d: DType) -> bool {
    d.format().is_some_and(|f| f.is_nan(c.into()))
}

/// A number that is ordered as the values are, -0 below +0.
pub(super) fn key(c: u8) -> u8 {
    if c & SIGN == 0 { c | SIGN } else { !c }
}

/// The larger one; the first NaN if there is one.
pub(super) fn maximum(a: u8, b: u8, d: DType) -> u8 {
    let takes = is_nan(b, d) || key(b) > key(a);
    if takes && !is_nan(a, d) { b } else { a }
}

/// The smaller one; the first NaN if there is one.
pub(super) fn minimum(a: u8, b: u8, d: DType) -> u8 {
    let takes = is_nan(b, d) || key(b) < key(a);
    if takes && !is_nan(a, d) { b } else { a }
}

/// One of two by `choose`; the other one if one is NaN.
fn number(a: u8, b: u8, d: DType, choose: fn(u8, u8, DType) -> u8) -> u8 {
    match (is_nan(a, d), is_nan(b, d)) {
        (true, _) => b,
        (false, true) => a,
        (false, false) => choose(a, b, d),
    }
}

/// Whether `new` takes the place of an earlier `best` where the position of the largest, or smallest, is asked for.
pub(super) fn wins(new: u8, best: u8, d: DType, largest: bool) -> bool {
    let better = if largest { key(new) > key(best) } else { key(new) < key(best) };
    (better || is_nan(new, d)) && !is_nan(best, d)
}
