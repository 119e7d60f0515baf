//! The operations of closed expressions, and their types.

use tk_ops::{DType, ElementwiseOp};

use super::{Closed, ClosedOp};

/// An `and` or `or` without what is known to change nothing.
pub(super) fn simpler(op: ClosedOp, dtype: DType, mut args: Vec<Closed>) -> Closed {
    let neutral = Closed::Int(i64::from(op == ClosedOp::And));
    args.retain(|a| *a != neutral);
    match args.len() {
        0 => neutral,
        1 => args.remove(0),
        _both => Closed::Op { op, dtype, args },
    }
}

/// In which types closed expressions have an operation.
#[derive(Clone, Copy)]
enum In {
    /// Integers with a sign: sums of others wrap around.
    Signed,
    /// These, and floats that a launcher computes with.
    SignedOrFloat,
    /// Integers that an i64 holds.
    Ints,
    /// These and floats.
    Numbers,
    /// These and bools.
    Any,
    /// Bools.
    Bools,
    /// Bools and integers that an i64 holds.
    BoolsOrInts,
}

/// The operations of closed expressions; `clamp`, `and` and `or` are made of others.
const OPERATIONS: &[(ElementwiseOp, In, ClosedOp)] = &[
    (ElementwiseOp::Add, In::Signed, ClosedOp::Add),
    (ElementwiseOp::Sub, In::Signed, ClosedOp::Sub),
    (ElementwiseOp::Mul, In::Signed, ClosedOp::Mul),
    (ElementwiseOp::Div, In::Ints, ClosedOp::Div),
    (ElementwiseOp::Rem, In::Ints, ClosedOp::Rem),
    (ElementwiseOp::CeilDiv, In::Signed, ClosedOp::CeilDiv),
    (ElementwiseOp::NextPow2, In::Signed, ClosedOp::NextPow2),
    (ElementwiseOp::Neg, In::SignedOrFloat, ClosedOp::Neg),
    (ElementwiseOp::Abs, In::Signed, ClosedOp::Abs),
    (ElementwiseOp::Maximum, In::Ints, ClosedOp::Max),
    (ElementwiseOp::MaxNum, In::Ints, ClosedOp::Max),
    (ElementwiseOp::Minimum, In::Ints, ClosedOp::Min),
    (ElementwiseOp::MinNum, In::Ints, ClosedOp::Min),
    (ElementwiseOp::Eq, In::Any, ClosedOp::Eq),
    (ElementwiseOp::Ne, In::Any, ClosedOp::Ne),
    (ElementwiseOp::Lt, In::Numbers, ClosedOp::Lt),
    (ElementwiseOp::Le, In::Numbers, ClosedOp::Le),
    (ElementwiseOp::Gt, In::Numbers, ClosedOp::Gt),
    (ElementwiseOp::Ge, In::Numbers, ClosedOp::Ge),
    (ElementwiseOp::Xor, In::Bools, ClosedOp::Ne),
    (ElementwiseOp::Not, In::Bools, ClosedOp::Not),
    (ElementwiseOp::Select, In::BoolsOrInts, ClosedOp::Select),
];

/// An elementwise operation; `None` for one that closed expressions do not have in this type.
pub(super) fn operation(op: ElementwiseOp, dtype: DType, mut args: Vec<Closed>) -> Option<Closed> {
    // Narrow floats are bits to a launcher.
    let (bool, float) = (dtype == DType::Bool, matches!(dtype, DType::F32 | DType::F64));
    // No number of 64 bits without a sign is an i64.
    let exact = dtype.is_int() && (dtype.is_signed() || dtype.bits() < 64);
    let signed = dtype.is_int() && dtype.is_signed();
    match op {
        ElementwiseOp::And if bool => return Some(simpler(ClosedOp::And, dtype, args)),
        ElementwiseOp::Or if bool => return Some(simpler(ClosedOp::Or, dtype, args)),
        ElementwiseOp::Clamp if exact => {
            let hi = args.pop()?;
            let lower = Closed::Op { op: ClosedOp::Max, dtype, args };
            return Some(Closed::Op { op: ClosedOp::Min, dtype, args: vec![lower, hi] });
        }
        _other => {}
    }
    let (_, types, closed) = OPERATIONS.iter().find(|(known, ..)| *known == op)?;
    let fits = match types {
        In::Signed => signed,
        In::SignedOrFloat => signed || float,
        In::Ints => exact,
        In::Numbers => exact || float,
        In::Any => exact || float || bool,
        In::Bools => bool,
        In::BoolsOrInts => exact || bool,
    };
    fits.then_some(Closed::Op { op: *closed, dtype, args })
}
