//! Elementwise operations on floats: f32 and f64 directly, f16 and bf16 in f32 with one rounding at the end.
//!
//! May assume what `elementwise` checked. Guarantees correctly rounded `+ - * /`, `sqrt` and `fma` for all four:
//! f32 has more than twice the bits of the narrow types and two to spare, with which rounding twice is as rounding
//! once; `fma`, for which that is not enough, goes through f64 rounded to odd.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use super::functions::Float;
use super::int_ops::operand;
use super::loops::{Element, Source, binary, ternary, unary};
use super::{EvalError, Operand};
use crate::buf::Buf;
use crate::dtype::DType;
use crate::float;
use crate::op::ElementwiseOp;
use crate::table::ElemResult;

/// What an operation on `T` gives.
enum Output<T> {
    Same(Vec<T>),
    Bool(Vec<bool>),
}

/// An elementwise operation on f32 or f64.
pub(super) fn wide<T: Float>(op: ElementwiseOp, args: &[Operand<'_>], n: usize) -> Result<Buf, EvalError> {
    let sources = args.iter().map(|a| operand::<T>(op, a)).collect::<Result<Vec<_>, EvalError>>()?;
    Ok(match compute(op, &sources, n)? {
        Output::Same(v) => T::buf(v),
        Output::Bool(v) => Buf::Bool(v),
    })
}

/// f16 and bf16: exact to f32, rounded back.
pub(super) trait Narrow: Element {
    fn widen(from: &[Self], to: &mut [f32]);
    fn round(from: &[f32], to: &mut [Self]);
    fn to_f64(self) -> f64;
    fn from_f64(v: f64) -> Self;
}

macro_rules! narrow {
    ($($ty:ident, $variant:ident;)*) => {$(
        impl Narrow for $ty {
            fn widen(from: &[Self], to: &mut [f32]) {
                if from.len() == to.len() {
                    from.convert_to_f32_slice(to);
                }
            }
            fn round(from: &[f32], to: &mut [Self]) {
                if from.len() == to.len() {
                    to.convert_from_f32_slice(from);
                }
            }
            fn to_f64(self) -> f64 {
                $ty::to_f64(self)
            }
            fn from_f64(v: f64) -> Self {
                // Not the method of this name, which may round to f32 on the way.
                $ty::from_bits(float::from_f64(DType::$variant, v) as u16)
            }
        }
    )*};
}

narrow! { f16, F16; bf16, BF16; }

/// All elements in f32, exactly.
pub(super) fn widen<H: Narrow>(v: &[H]) -> Vec<f32> {
    let mut out = vec![0.0; v.len()];
    H::widen(v, &mut out);
    out
}

/// All elements rounded once.
pub(super) fn round<H: Narrow>(v: &[f32]) -> Vec<H> {
    let mut out = vec![H::default(); v.len()];
    H::round(v, &mut out);
    out
}

/// Elements that are computed at a time: three operands of f32 stay in a first-level cache of 32 KiB.
const CHUNK: usize = 1024;

/// An elementwise operation on f16 or bf16.
pub(super) fn narrow<H: Narrow>(op: ElementwiseOp, args: &[Operand<'_>], n: usize) -> Result<Buf, EvalError> {
    let sources = args.iter().map(|a| operand::<H>(op, a)).collect::<Result<Vec<_>, EvalError>>()?;
    if let (ElementwiseOp::Fma, [a, b, c]) = (op, sources.as_slice()) {
        return Ok(H::buf(ternary(*a, *b, *c, n, |a, b, c| {
            H::from_f64(float::add_to_odd(a.to_f64() * b.to_f64(), c.to_f64()))
        })));
    }
    let mut same = Vec::new();
    let mut bools = Vec::new();
    for at in (0..n).step_by(CHUNK) {
        let m = CHUNK.min(n - at);
        let held: Vec<(Vec<f32>, bool)> = sources
            .iter()
            .map(|s| match s.part(at, m) {
                Source::Splat(x) => (widen(&[x]), true),
                Source::Slice(v) => (widen(v), false),
            })
            .collect();
        let wide: Vec<Source<'_, f32>> = held.iter().map(|(v, splat)| Source::held(v, *splat)).collect();
        match compute(op, &wide, m)? {
            Output::Same(v) => {
                let start = same.len();
                same.resize(start + v.len(), H::default());
                if let Some(to) = same.get_mut(start..) {
                    H::round(&v, to);
                }
            }
            Output::Bool(v) => bools.extend(v),
        }
    }
    Ok(if op.result() == Some(ElemResult::Bool) { Buf::Bool(bools) } else { H::buf(same) })
}

fn compute<T: Float>(op: ElementwiseOp, args: &[Source<'_, T>], n: usize) -> Result<Output<T>, EvalError> {
    use ElementwiseOp::*;
    match (op, args) {
        (_, [x]) => float_unary(op, *x, n),
        (_, [a, b]) => float_binary(op, *a, *b, n),
        (Fma, [a, b, c]) => Ok(Output::Same(ternary(*a, *b, *c, n, T::fma))),
        (Clamp, [x, lo, hi]) => {
            Ok(Output::Same(ternary(*x, *lo, *hi, n, |x, lo, hi| x.maximum(lo).minimum(hi))))
        }
        _other => Err(EvalError::OperandCount { op: op.name(), expected: op.arity(), found: args.len() }),
    }
}

fn unsupported<T: Float>(op: ElementwiseOp) -> Result<Output<T>, EvalError> {
    Err(EvalError::Unsupported { op: op.name(), dtype: T::buf(Vec::new()).dtype() })
}

fn float_unary<T: Float>(op: ElementwiseOp, x: Source<'_, T>, n: usize) -> Result<Output<T>, EvalError> {
    use ElementwiseOp::*;
    Ok(match op {
        Neg => Output::Same(unary(x, n, T::neg)),
        Abs => Output::Same(unary(x, n, T::abs)),
        Exp => Output::Same(unary(x, n, T::exp)),
        Exp2 => Output::Same(unary(x, n, T::exp2)),
        Log => Output::Same(unary(x, n, T::log)),
        Log2 => Output::Same(unary(x, n, T::log2)),
        Sin => Output::Same(unary(x, n, T::sin)),
        Cos => Output::Same(unary(x, n, T::cos)),
        Tanh => Output::Same(unary(x, n, T::tanh)),
        Erf => Output::Same(unary(x, n, T::erf)),
        Sqrt => Output::Same(unary(x, n, T::sqrt)),
        Rsqrt => Output::Same(unary(x, n, T::rsqrt)),
        Floor => Output::Same(unary(x, n, T::floor)),
        Ceil => Output::Same(unary(x, n, T::ceil)),
        Round => Output::Same(unary(x, n, T::round)),
        Trunc => Output::Same(unary(x, n, T::trunc)),
        IsNan => Output::Bool(unary(x, n, T::is_nan)),
        IsInf => Output::Bool(unary(x, n, T::is_inf)),
        IsFinite => Output::Bool(unary(x, n, T::is_finite)),
        Add | Sub | Mul | Div | Rem | And | Or | Xor | Shl | Shr | Not | Eq | Ne | Lt | Le | Gt | Ge
        | Maximum | Minimum | MaxNum | MinNum | Fma | Select | Clamp | Pow | MulHi | Popcount | Clz
        | Cast | Bitcast | CeilDiv | NextPow2 => return unsupported(op),
    })
}

fn float_binary<T: Float>(
    op: ElementwiseOp,
    a: Source<'_, T>,
    b: Source<'_, T>,
    n: usize,
) -> Result<Output<T>, EvalError> {
    use ElementwiseOp::*;
    Ok(match op {
        Add => Output::Same(binary(a, b, n, T::add)),
        Sub => Output::Same(binary(a, b, n, T::sub)),
        Mul => Output::Same(binary(a, b, n, T::mul)),
        Div => Output::Same(binary(a, b, n, T::div)),
        Rem => Output::Same(binary(a, b, n, T::rem)),
        Pow => Output::Same(binary(a, b, n, T::pow)),
        Maximum => Output::Same(binary(a, b, n, T::maximum)),
        Minimum => Output::Same(binary(a, b, n, T::minimum)),
        MaxNum => Output::Same(binary(a, b, n, T::maxnum)),
        MinNum => Output::Same(binary(a, b, n, T::minnum)),
        Eq => Output::Bool(binary(a, b, n, |a, b| a == b)),
        Ne => Output::Bool(binary(a, b, n, |a, b| a != b)),
        Lt => Output::Bool(binary(a, b, n, |a, b| a < b)),
        Le => Output::Bool(binary(a, b, n, |a, b| a <= b)),
        Gt => Output::Bool(binary(a, b, n, |a, b| a > b)),
        Ge => Output::Bool(binary(a, b, n, |a, b| a >= b)),
        And | Or | Xor | Shl | Shr | Neg | Not | Fma | Select | Clamp | Exp | Exp2 | Log | Log2 | Sin
        | Cos | Tanh | Erf | Sqrt | Rsqrt | Floor | Ceil | Round | Trunc | Abs | MulHi | Popcount | Clz
        | IsNan | IsInf | IsFinite | Cast | Bitcast | CeilDiv | NextPow2 => return unsupported(op),
    })
}
