//! Elementwise operations on floats: f32 and f64 directly, f16 and bf16 in f32 with one rounding at the end.
//!
//! May assume what `elementwise` checked. Guarantees correctly rounded `+ - * /`, `sqrt` and `fma` for all four:
//! f32 has more than twice the bits of the narrow types and two to spare, with which rounding twice is as rounding
//! once; `fma`, for which that is not enough, goes through f64 rounded to odd.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use super::functions::{self, Float};
use super::int_ops::operand;
use super::loops::{self, Element, Source, binary, ternary, unary};
use super::{EvalError, Operand, exactly};
use crate::buf::Buf;
use crate::dtype::DType;
use crate::elementwise::{Arithmetic, ElementwiseOp, FloatTest, Group, MinMax, Rounding, Sign};
use crate::float;
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
    Ok(match op.group() {
        Group::Arithmetic(f) => Output::Same(arithmetic(f, exactly(op, args)?, n)),
        Group::Sign(f) => Output::Same(sign(f, exactly(op, args)?, n)),
        Group::FloatUnary(f) => Output::Same(functions::of_one(f, exactly(op, args)?, n)),
        Group::FloatBinary(f) => Output::Same(functions::of_two(f, exactly(op, args)?, n)),
        Group::Fma(_) => {
            let [a, b, c] = exactly(op, args)?;
            Output::Same(ternary(a, b, c, n, T::fma))
        }
        Group::Rounding(f) => Output::Same(rounding(f, exactly(op, args)?, n)),
        Group::MinMax(f) => Output::Same(min_max(f, exactly(op, args)?, n)),
        Group::Clamp(_) => {
            let [x, lo, hi] = exactly(op, args)?;
            Output::Same(ternary(x, lo, hi, n, |x, lo, hi| x.maximum(lo).minimum(hi)))
        }
        Group::Equality(f) => Output::Bool(loops::equality(f, exactly(op, args)?, n)),
        Group::Order(f) => Output::Bool(loops::order(f, exactly(op, args)?, n)),
        Group::FloatTest(f) => Output::Bool(test(f, exactly(op, args)?, n)),
        Group::Bitwise(_)
        | Group::Complement(_)
        | Group::Shift(_)
        | Group::Select(_)
        | Group::IntUnary(_)
        | Group::IntBinary(_)
        | Group::BitCount(_)
        | Group::Cast(_)
        | Group::Bitcast(_) => {
            return Err(EvalError::Unsupported { op: op.name(), dtype: T::buf(Vec::new()).dtype() });
        }
    })
}

fn sign<T: Float>(f: Sign, [x]: [Source<'_, T>; 1], n: usize) -> Vec<T> {
    match f {
        Sign::Neg => unary(x, n, T::neg),
        Sign::Abs => unary(x, n, T::abs),
    }
}

fn arithmetic<T: Float>(f: Arithmetic, [a, b]: [Source<'_, T>; 2], n: usize) -> Vec<T> {
    match f {
        Arithmetic::Add => binary(a, b, n, T::add),
        Arithmetic::Sub => binary(a, b, n, T::sub),
        Arithmetic::Mul => binary(a, b, n, T::mul),
        Arithmetic::Div => binary(a, b, n, T::div),
        Arithmetic::Rem => binary(a, b, n, T::rem),
    }
}

fn rounding<T: Float>(f: Rounding, [x]: [Source<'_, T>; 1], n: usize) -> Vec<T> {
    match f {
        Rounding::Floor => unary(x, n, T::floor),
        Rounding::Ceil => unary(x, n, T::ceil),
        Rounding::Round => unary(x, n, T::round),
        Rounding::Trunc => unary(x, n, T::trunc),
    }
}

fn min_max<T: Float>(f: MinMax, [a, b]: [Source<'_, T>; 2], n: usize) -> Vec<T> {
    match f {
        MinMax::Maximum => binary(a, b, n, T::maximum),
        MinMax::Minimum => binary(a, b, n, T::minimum),
        MinMax::MaxNum => binary(a, b, n, T::maxnum),
        MinMax::MinNum => binary(a, b, n, T::minnum),
    }
}

fn test<T: Float>(f: FloatTest, [x]: [Source<'_, T>; 1], n: usize) -> Vec<bool> {
    match f {
        FloatTest::IsNan => unary(x, n, T::is_nan),
        FloatTest::IsInf => unary(x, n, T::is_inf),
        FloatTest::IsFinite => unary(x, n, T::is_finite),
    }
}
