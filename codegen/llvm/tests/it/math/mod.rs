//! Tests of the functions of floats: their accuracy, their special values, and what is emitted for them.

#![allow(clippy::expect_used, clippy::panic)]

mod double;
mod emitted;
mod host;
mod single;

use tk_llvm::math::{Width, function};
use tk_ops::eval::{Operand, elementwise};
use tk_ops::rows::rows;
use tk_ops::table::Accuracy;
use tk_ops::{DType, ElementwiseOp, Group, Op, Scalar};

use host::{Host, Value};

/// A function as the tests use it.
struct Function {
    op: ElementwiseOp,
    /// The bound of its row in units in the last place; a half is correct rounding.
    bound: f64,
}

/// The functions of floats, and the quotient.
fn functions() -> impl Iterator<Item = Function> {
    ElementwiseOp::ALL.iter().filter_map(|&op| {
        let row = rows().find(|r| r.op == Op::Elementwise(op)).expect("it has a row");
        let bound = match row.accuracy {
            Accuracy::Exact | Accuracy::Rounded => 0.5,
            Accuracy::Ulp(bound) => f64::from(bound),
        };
        let here = matches!(op.group(), Group::FloatUnary(_) | Group::FloatBinary(_));
        (here || op == ElementwiseOp::Div).then_some(Function { op, bound })
    })
}

/// What the interpreter gives in f64, precise enough as a reference for f32.
fn reference(op: ElementwiseOp, x: f64, y: f64) -> f64 {
    let args = [x, y].map(|v| Operand::Splat(Scalar::float(DType::F64, v)));
    let result = elementwise(op, &args[..op.arity()], DType::F64, 1, false).expect("it is evaluated");
    result.get(0).as_f64().expect("an f64")
}

/// Computes the function on this machine.
fn compute(op: ElementwiseOp, width: Width, args: &[Value]) -> Value {
    function(&mut Host, op, width, false, args).expect("the function is there")
}

/// The error of an f32 in units in the last place; infinite where a special value is wrong.
fn error(got: f32, want: f64) -> f64 {
    if want.is_nan() || got.is_nan() {
        return if want.is_nan() && got.is_nan() { 0.0 } else { f64::INFINITY };
    }
    let rounded = want as f32;
    if rounded == got {
        let same_zero = got != 0.0 || got.is_sign_negative() == want.is_sign_negative();
        if !same_zero {
            return f64::INFINITY;
        }
        if got.is_infinite() {
            return 0.0;
        }
    }
    // Infinity stands where the next number after the largest would stand.
    let got = if got.is_infinite() { f64::from(got.signum()) * 2f64.powi(128) } else { f64::from(got) };
    let exponent = libm::ilogb(want).clamp(-126, 127);
    (got - want).abs() / 2f64.powi(exponent - 23)
}

/// f32 numbers of all exponents and both signs, `each` of every binade, with the special values.
fn samples(each: u32) -> impl Iterator<Item = f32> {
    let step = (1 << 23) / each;
    let ends = [0u32, 1, 2, 0x7f_fffe, 0x7f_ffff];
    (0..512u32).flat_map(move |top| {
        let inner = (0..each).map(move |i| i * step + i.wrapping_mul(2_654_435_761) % step);
        inner.chain(ends).map(move |low| f32::from_bits(top << 23 | low))
    })
}
