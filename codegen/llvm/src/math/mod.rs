//! Functions of floats, in terms of arithmetic that every target has.
//!
//! A function is written once over the trait [`Math`]: [`LlvmMath`] emits instructions, the tests compute. Requires
//! IEEE arithmetic with subnormal numbers and rounding to nearest, an `fma` that rounds once, and no reassociation by
//! later passes. Guarantees the special values of the interpreter, and the bounds that the rows of the operations
//! state, for both widths. Without approximations of the target, every target gives the same bits.
//!
//! Without `fast`, an approximation of the target is used only if the result still meets the bound. With `fast` the
//! results are those of the target's approximation: relative errors around 2^-20 (`tanh`: 2^-11, sines of small angles:
//! absolute), subnormal numbers may be flushed to zero. Without an approximation `fast` changes nothing.
//!
//! Measured errors in ulp without approximations of the target (half an ulp is correct rounding), and PTX instructions
//! for one f32, without moves and changes of sign:
//!
//! | function | f32   | f64  | PTX | PTX, `fast` |
//! |----------|-------|------|-----|-------------|
//! | `exp`    | 1.115 | 0.91 | 8   | 2           |
//! | `exp2`   | 0.919 | 1.00 | 7   | 1           |
//! | `log`    | 0.940 | 0.73 | 26  | 2           |
//! | `log2`   | 1.163 | 0.84 | 31  | 1           |
//! | `sin`    | 1.550 | 1.25 | 23, beyond 2^20 91 | 1 |
//! | `cos`    | 1.542 | 1.18 | 24, beyond 2^20 92 | 1 |
//! | `tanh`   | 1.356 | 0.96 | 16  | 1           |
//! | `cosh`   | 1.438 | 1.30 | 24  | 4           |
//! | `erf`    | 1.216 | 0.94 | 21  | 21          |
//! | `sqrt`   | 0.500 | 0.50 | 1   | 1           |
//! | `rsqrt`  | 1.490 | 1.32 | 1   | 1           |
//! | `pow`    | 0.95  | 1.13 | 117 | 37          |
//! | `div`    | 0.500 | 0.50 | 1   | 2           |
//!
//! f32 is the largest error over all 2^32 numbers (from `cos` on, over every 37th) against f64, of `pow` over 140 000
//! pairs; f64 is the largest over 40 000 operands of all sizes against 300 bits. On PTX, `exp`, `exp2`, `tanh`, `erf`,
//! `rsqrt` and `pow` have the errors of its approximations besides: on an H200, over all 2^32 numbers, `exp` is within
//! 1.93, `exp2` 1.65, `tanh` 1.77, `erf` 1.43 and `rsqrt` 1.51 ulp; `pow` was not measured there.
//!
//! Polynomials are minimax fits by exchange (Remez) of the relative error, computed with 60 digits; for f32 the
//! coefficients were rounded one after the other, lowest power first, each time refitting the rest. The errors stated
//! with them are those of the rounded coefficients. Another interval or form needs another fit.

mod erf;
mod exp;
mod llvm;
mod log;
mod pow;
mod primitives;
mod root;
mod tanh;
mod trig;

use tk_ops::elementwise::{Arithmetic, ElementwiseOp, FloatBinary, FloatUnary, Group};

pub use self::llvm::{Approximations, LlvmMath};
pub use self::primitives::{Approx, Math, Width};
pub use self::trig::cos_of_turns;

/// The value of an elementwise function of floats, `None` for an operation that is not one of them.
///
/// `args` are floats of the width, one or two (division and `pow`). `fast` allows the approximations of the module
/// documentation. f16 and bf16 are computed as f32 and rounded by the caller.
pub fn function<M: Math>(
    m: &mut M,
    op: ElementwiseOp,
    width: Width,
    fast: bool,
    args: &[M::V],
) -> Option<M::V> {
    let x = args.first().copied()?;
    let y = args.get(1).copied();
    match op.group() {
        Group::FloatUnary(f) => Some(of_one(m, f, width, fast, x)),
        Group::FloatBinary(FloatBinary::Pow) => Some(pow::pow(m, width, fast, x, y?)),
        Group::Arithmetic(Arithmetic::Div) => Some(root::div(m, width, fast, x, y?)),
        Group::Arithmetic(Arithmetic::Add | Arithmetic::Sub | Arithmetic::Mul | Arithmetic::Rem)
        | Group::Sign(_)
        | Group::Bitwise(_)
        | Group::Complement(_)
        | Group::Shift(_)
        | Group::Equality(_)
        | Group::Order(_)
        | Group::Fma(_)
        | Group::Rounding(_)
        | Group::MinMax(_)
        | Group::Clamp(_)
        | Group::Select(_)
        | Group::IntUnary(_)
        | Group::IntBinary(_)
        | Group::BitCount(_)
        | Group::FloatTest(_)
        | Group::Cast(_)
        | Group::Bitcast(_) => None,
    }
}

/// A function of one float.
fn of_one<M: Math>(m: &mut M, f: FloatUnary, width: Width, fast: bool, x: M::V) -> M::V {
    match f {
        FloatUnary::Exp => exp::exp(m, width, fast, x),
        FloatUnary::Exp2 => exp::exp2(m, width, fast, x),
        FloatUnary::Log => log::log(m, width, fast, x),
        FloatUnary::Log2 => log::log2(m, width, fast, x),
        FloatUnary::Sin => trig::sin(m, width, fast, x),
        FloatUnary::Cos => trig::cos(m, width, fast, x),
        FloatUnary::Tanh => tanh::tanh(m, width, fast, x),
        FloatUnary::Cosh => exp::cosh(m, width, fast, x),
        FloatUnary::Erf => erf::erf(m, width, x),
        FloatUnary::Sqrt => root::sqrt(m, width, fast, x),
        FloatUnary::Rsqrt => root::rsqrt(m, width, fast, x),
    }
}
