//! The expressions of a launch contract as those of a bundle.

use tk_bundle::{DeviceFact, Expr, Kind, Operation};
use tk_sema::contract::{Closed, ClosedOp};
use tk_sema::eval::CVal;
use tk_sema::target::DeviceFact as Asked;

/// An operation on these.
pub(crate) fn apply(op: Kind, bits: u32, args: Vec<Expr>) -> Expr {
    Expr::Apply(Operation { op, bits, args })
}

/// The condition that a launch gives a compile-time parameter this value.
pub(crate) fn equals(e: &Closed, value: Option<&CVal>) -> Option<Expr> {
    let value = value?;
    let number = value.as_int().or_else(|| value.as_bool().map(i128::from))?;
    let value = i64::try_from(number).ok()?;
    Some(apply(Kind::Eq, 64, vec![expr(e), Expr::Int(value)]))
}

/// The expression of a bundle for one of a contract.
pub(crate) fn expr(e: &Closed) -> Expr {
    match e {
        Closed::Int(i) => Expr::Int(*i),
        Closed::Float(f) => Expr::Float(*f),
        Closed::Number(arg) => Expr::Number(*arg as u32),
        Closed::Extent(arg, axis) => Expr::Extent(*arg as u32, *axis as u32),
        Closed::Stride(arg, axis) => Expr::Stride(*arg as u32, *axis as u32),
        Closed::Device(Asked::Sms) => Expr::Device(DeviceFact::Sms),
        Closed::Device(Asked::Smem) => Expr::Device(DeviceFact::SharedBytes),
        Closed::Op { op, dtype, args } => {
            // A `u32` is computed as an `i64`.
            let unsigned = !dtype.is_signed();
            let bits = if unsigned && *op != ClosedOp::Wrap { 64 } else { dtype.bits() };
            let op = match op {
                ClosedOp::Add => Kind::Add,
                ClosedOp::Sub => Kind::Sub,
                ClosedOp::Mul => Kind::Mul,
                ClosedOp::Div => Kind::Div,
                ClosedOp::Rem => Kind::Rem,
                ClosedOp::CeilDiv => Kind::CeilDiv,
                ClosedOp::Min => Kind::Min,
                ClosedOp::Max => Kind::Max,
                ClosedOp::Neg => Kind::Neg,
                ClosedOp::Abs => Kind::Abs,
                ClosedOp::NextPow2 => Kind::NextPow2,
                ClosedOp::Wrap if unsigned => Kind::WrapUnsigned,
                ClosedOp::Wrap => Kind::Wrap,
                ClosedOp::Eq => Kind::Eq,
                ClosedOp::Ne => Kind::Ne,
                ClosedOp::Lt => Kind::Lt,
                ClosedOp::Le => Kind::Le,
                ClosedOp::Gt => Kind::Gt,
                ClosedOp::Ge => Kind::Ge,
                ClosedOp::And => Kind::And,
                ClosedOp::Or => Kind::Or,
                ClosedOp::Not => Kind::Not,
                ClosedOp::Select => Kind::Select,
            };
            apply(op, bits, args.iter().map(expr).collect())
        }
    }
}
