//! **The table of elementwise operations**: operators and functions.
//!
//! A group states what its operations have in common, an entry what a user reads of one. A new operation of a group is
//! an entry here, its evaluation in `eval/`, and its emission in `codegen/llvm` (`math/` or `scalar/`). The form of the
//! table is that of `elementwise_ops`.
//!
//! A bound in ulp holds for every device: the evaluation here stays within one unit and a half, the margin is that of
//! the device libraries.

use super::{opt, req};
use crate::dtype::DTypeSet;
use crate::elementwise::{Facts, elementwise_ops};
use crate::table::{Accuracy, BuiltinParam, ElemResult, ParamKind, Row, Scheme};

const FAST: BuiltinParam = opt("fast", ParamKind::ConstBool, "false");
const X: &[BuiltinParam] = &[req("x", ParamKind::Value)];
const X_FAST: &[BuiltinParam] = &[req("x", ParamKind::Value), FAST];
const XY_FAST: &[BuiltinParam] = &[req("x", ParamKind::Value), req("y", ParamKind::Value), FAST];
const X_DTYPE: &[BuiltinParam] = &[req("x", ParamKind::Value), req("dtype", ParamKind::DType)];
const X_LO_HI: &[BuiltinParam] =
    &[req("x", ParamKind::Value), req("lo", ParamKind::Value), req("hi", ParamKind::Value)];
const AB: &[BuiltinParam] = &[req("a", ParamKind::Value), req("b", ParamKind::Value)];
const ABC: &[BuiltinParam] =
    &[req("a", ParamKind::Value), req("b", ParamKind::Value), req("c", ParamKind::Value)];
const COND_AB: &[BuiltinParam] =
    &[req("cond", ParamKind::Mask), req("a", ParamKind::Value), req("b", ParamKind::Value)];

elementwise_ops! {
    // The operators, which the checker finds by their symbol.
    OPERATORS {
        /// Arithmetic of numbers.
        group Arithmetic {
            params: AB,
            accepts: DTypeSet::NUMBER,
            result: Some(ElemResult::Same),
            accuracy: Accuracy::Rounded,

            Add = "add" {
                name: "+",
                doc: "Sum. Integers wrap; floats round to nearest even.",
                example: "assert(all(arange(0, 3) + 1 == arange(1, 4)));
assert(all(full([2], 127, i8) + 1 == -128));
assert(all(full([2], 0.5, f32) + 0.25 == 0.75));",
            }
            Sub = "sub" {
                name: "-",
                doc: "Difference. Integers wrap; floats round to nearest even.",
                example: "assert(all(arange(1, 4) - 1 == arange(0, 3)));
assert(all(full([2], 0, u8) - 1 == 255));",
            }
            Mul = "mul" {
                name: "*",
                doc: "Product. Integers wrap; floats round to nearest even.",
                example: "assert(sum(arange(0, 4) * arange(0, 4)) == 14);
assert(all(full([2], 16, u8) * 16 == 0));
assert(all(full([2], 1.5, f32) * -2.0 == -3.0));",
            }
            Div = "div" {
                name: "/",
                doc: "Quotient: truncated toward zero for integers, rounded to nearest even for floats. Division of \
                      an integer by zero gives an unspecified value, in checked mode an error. `MIN / -1` is `MIN`.",
                example: "assert(all(full([2], -7, i32) / 2 == -3));
assert(all(full([2], -128, i8) / -1 == -128));
assert(all(full([2], 1.0, f32) / 4.0 == 0.25));",
            }
            Rem = "rem" {
                name: "%",
                doc: "Remainder of the truncating quotient, with the sign of the dividend; exact for floats. `MIN % \
                      -1` is 0; by an integer zero it is unspecified.",
                example: "assert(all(full([2], -7, i32) % 2 == -1));
assert(all(full([2], 7, i32) % -4 == 3));
assert(all(full([2], -5.5, f32) % 2.0 == -1.5));",
                accuracy: Accuracy::Exact,
            }
        }

        /// Functions of the sign of a number.
        group Sign {
            params: X,
            accepts: DTypeSet::ORDERED,
            result: Some(ElemResult::Same),
            accuracy: Accuracy::Exact,

            Neg = "neg" {
                name: "unary -",
                doc: "Negation. Integers wrap; a float changes its sign, including zero and NaN.",
                example: "let x = arange(0, 3);
assert(all(-x + x == 0) && min(-x) == -2);
assert(all(1.0 / -zeros([2], f32) == -inf));",
            }
            Abs = "abs"
        }

        /// Of two operands, bitwise on integers, logical on bool.
        group Bitwise {
            params: AB,
            accepts: DTypeSet::INT.or(DTypeSet::BOOL),
            result: Some(ElemResult::Same),
            accuracy: Accuracy::Exact,

            And = "and" {
                name: "&",
                scheme: Scheme::Elementwise(DTypeSet::INT, ElemResult::Same),
                doc: "Bitwise and.",
                example: "assert(all(full([2], 12, i32) & 10 == 8));",
            }
            Or = "or" {
                name: "|",
                scheme: Scheme::Elementwise(DTypeSet::INT, ElemResult::Same),
                doc: "Bitwise or.",
                example: "assert(all((full([2], 12, i32) | 10) == 14));",
            }
            Xor = "xor" {
                name: "^",
                scheme: Scheme::Elementwise(DTypeSet::INT, ElemResult::Same),
                doc: "Bitwise exclusive or.",
                example: "assert(all((full([2], 12, i32) ^ 10) == 6));",
            }
        }

        /// Shifts; the second operand may have another integer type.
        group Shift {
            params: AB,
            accepts: DTypeSet::INT,
            result: Some(ElemResult::Same),
            accuracy: Accuracy::Exact,

            Shl = "shl" {
                name: "<<",
                scheme: Scheme::Special,
                doc: "Shift to the left. An amount of the width or more, or a negative one, gives 0; the amount may \
                      be of another integer type.",
                example: "assert(all((full([2], 3, i32) << 4) == 48));
assert(all((full([2], 1, i32) << 32) == 0));
assert(all((full([2], 1, i32) << -1) == 0));",
            }
            Shr = "shr" {
                name: ">>",
                scheme: Scheme::Special,
                doc: "Shift to the right: arithmetic for signed integers, logical for unsigned ones. An amount of \
                      the width or more, or a negative one, gives only sign bits or zeros; the amount may be of \
                      another integer type.",
                example: "assert(all((full([2], -8, i32) >> 1) == -4));
assert(all((full([2], -8, i32) >> 40) == -1));
assert(all((full([2], 128, u8) >> 7) == 1));
assert(all((full([2], 128, u8) >> 8) == 0));",
            }
        }

        /// Whether two values are equal.
        group Equality {
            params: AB,
            accepts: DTypeSet::VALUE,
            result: Some(ElemResult::Bool),
            accuracy: Accuracy::Exact,

            Eq = "eq" {
                name: "==",
                doc: "Whether the values are equal. NaN equals nothing; -0 equals +0.",
                example: "assert(sum(arange(0, 4) == 2) == 1);
let x = full([2], nan, f32);
assert(!any(x == x));
assert(all(zeros([2], f32) == -0.0));",
            }
            Ne = "ne" {
                name: "!=",
                doc: "Whether the values differ. NaN differs from everything, itself included.",
                example: "assert(sum(arange(0, 4) != 2) == 3);
let x = full([2], nan, f32);
assert(all(x != x));",
            }
        }

        /// How two numbers are ordered.
        group Order {
            params: AB,
            accepts: DTypeSet::ORDERED,
            result: Some(ElemResult::Bool),
            accuracy: Accuracy::Exact,

            Lt = "lt" {
                name: "<",
                doc: "Whether the first is less. False with NaN.",
                example: "assert(sum(arange(0, 4) < 2) == 2);
assert(!any(full([2], nan, f32) < 1.0));",
            }
            Le = "le" {
                name: "<=",
                doc: "Whether the first is less or equal. False with NaN.",
                example: "assert(sum(arange(0, 4) <= 2) == 3);
assert(!any(full([2], nan, f32) <= 1.0));",
            }
            Gt = "gt" {
                name: ">",
                doc: "Whether the first is greater. False with NaN.",
                example: "assert(sum(arange(0, 4) > 2) == 1);
assert(!any(full([2], nan, f32) > 1.0));",
            }
            Ge = "ge" {
                name: ">=",
                doc: "Whether the first is greater or equal. False with NaN.",
                example: "assert(sum(arange(0, 4) >= 2) == 2);
assert(!any(full([2], nan, f32) >= 1.0));",
            }
        }

        also {
            And {
                name: "&&",
                scheme: Scheme::Elementwise(DTypeSet::BOOL, ElemResult::Same),
                doc: "Whether both are true. The second of two scalars is evaluated only when the first is true; of \
                      tiles both are.",
                example: "let i = arange(0, 6);
assert(sum(i > 1 && i < 4) == 2);",
            }
            Or {
                name: "||",
                scheme: Scheme::Elementwise(DTypeSet::BOOL, ElemResult::Same),
                doc: "Whether either is true. The second of two scalars is evaluated only when the first is false; \
                      of tiles both are.",
                example: "let i = arange(0, 6);
assert(sum(i < 1 || i > 3) == 3);",
            }
        }

        /// Of one operand, bitwise on integers, logical on bool.
        group Complement {
            params: X,
            accepts: DTypeSet::INT.or(DTypeSet::BOOL),
            result: Some(ElemResult::Same),
            accuracy: Accuracy::Exact,

            Not = "not" {
                name: "unary !",
                scheme: Scheme::Elementwise(DTypeSet::BOOL, ElemResult::Same),
                doc: "The opposite of a bool.",
                example: "let i = arange(0, 6);
assert(sum(!(i < 2)) == 4);",
            }
        }

        also {
            Cast {
                name: "as",
                doc: "The value as another element type. Integers keep the low bits, a bool gives 0 or 1, a float \
                      becomes an integer by truncation with saturation (NaN gives 0); conversions to floats round \
                      to nearest even, fp8 and `e2m1` saturate. There is no cast to bool: write `x != 0`.",
                example: "assert(all(full([2], 300, i32) as u8 == 44));
assert(all(full([2], -2.75, f32) as i32 == -2));
assert(all(full([2], 1000.0, f32) as i8 == 127));
assert(all(full([2], nan, f32) as i32 == 0));
assert(all(full([2], 2049, i32) as f16 == 2048.0));
assert(all(full([2], inf, f32) as f8e4m3 as f32 == 448.0));",
            }
        }
    }

    // The functions.
    MATH {
        /// Functions of one float, within a bound.
        group FloatUnary {
            params: X_FAST,
            accepts: DTypeSet::FLOAT,
            result: Some(ElemResult::Same),
            accuracy: Accuracy::Ulp(2.0),

            Exp = "exp" {
                doc: "e to the power of x.",
                example: "assert_close(exp(full([4], 1.0, f32)), full([4], 2.7182818, f32));
assert(all(exp(full([4], -inf, f32)) == 0.0));",
            }
            Exp2 = "exp2" {
                doc: "2 to the power of x.",
                example: "assert_close(exp2(full([4], 3.0, f32)), full([4], 8.0, f32));
assert_close(exp2(full([4], 0.5, f32), fast = true), full([4], 1.4142135, f32));",
            }
            Log = "log" {
                doc: "The natural logarithm; of 0 it is `-inf`, of a negative number NaN.",
                example: "assert_close(log(full([4], 2.0, f32)), full([4], 0.6931472, f32));
assert(all(log(zeros([4], f32)) == -inf));",
            }
            Log2 = "log2" {
                doc: "The logarithm to base 2; of 0 it is `-inf`, of a negative number NaN.",
                example: "assert_close(log2(full([4], 8.0, f32)), full([4], 3.0, f32));",
            }
            Sin = "sin" {
                doc: "The sine of an angle in radians.",
                example: "assert_close(sin(full([4], 1.0, f32)), full([4], 0.841471, f32));",
            }
            Cos = "cos" {
                doc: "The cosine of an angle in radians.",
                example: "assert_close(cos(full([4], 1.0, f32)), full([4], 0.5403023, f32));",
            }
            Tanh = "tanh" {
                doc: "The hyperbolic tangent.",
                example: "assert_close(tanh(full([4], 1.0, f32)), full([4], 0.7615942, f32));
assert(all(tanh(full([4], -inf, f32)) == -1.0));",
            }
            Cosh = "cosh" {
                doc: "The hyperbolic cosine.",
                example: "assert_close(cosh(full([4], 1.0, f32)), full([4], 1.5430806, f32));
assert(all(cosh(full([4], -89.0, f32)) < inf) && all(cosh(full([4], -inf, f32)) == inf));",
            }
            Erf = "erf" {
                doc: "The error function.",
                example: "assert_close(erf(full([4], 1.0, f32)), full([4], 0.8427008, f32));",
            }
            Sqrt = "sqrt" {
                doc: "The square root, correctly rounded; of a negative number NaN.",
                example: "assert(all(sqrt(full([4], 2.25, f32)) == 1.5));
assert(all(isnan(sqrt(full([4], -1.0, f32)))));",
                accuracy: Accuracy::Rounded,
            }
            Rsqrt = "rsqrt" {
                doc: "1 divided by the square root; of 0 it is `inf`.",
                example: "assert_close(rsqrt(full([4], 4.0, f32)), full([4], 0.5, f32));
assert(all(rsqrt(zeros([4], f32)) == inf));",
            }
        }

        /// Functions of two floats, within a bound.
        group FloatBinary {
            params: XY_FAST,
            accepts: DTypeSet::FLOAT,
            result: Some(ElemResult::Same),
            accuracy: Accuracy::Ulp(4.0),

            Pow = "pow" {
                doc: "x to the power of y, with the special cases of IEEE 754.",
                example: "assert_close(pow(full([4], 2.0, f32), 10.0), full([4], 1024.0, f32));
assert_close(pow(full([4], 9.0, f32), -0.5), full([4], 0.3333333, f32));",
            }
        }

        /// `fma(a, b, c)` = a * b + c, rounded once.
        group Fma {
            params: ABC,
            accepts: DTypeSet::FLOAT,
            result: Some(ElemResult::Same),
            accuracy: Accuracy::Rounded,

            Fma = "fma" {
                doc: "`a * b + c`, rounded once.",
                example: "assert(all(fma(full([4], 2.0, f32), 3.0, 1.0) == 7.0));
let x = full([4], 1.0, f32) + 0.000244140625;
assert(all(fma(x, x, -x * x) == 0.000000059604644775390625));",
            }
        }

        /// Floats to whole numbers.
        group Rounding {
            params: X,
            accepts: DTypeSet::FLOAT,
            result: Some(ElemResult::Same),
            accuracy: Accuracy::Exact,

            Floor = "floor" {
                doc: "The largest whole number that is not greater.",
                example: "assert(all(floor(full([4], -1.5, f32)) == -2.0));
assert(all(floor(full([4], 1.5, f32)) == 1.0));",
            }
            Ceil = "ceil" {
                doc: "The smallest whole number that is not less.",
                example: "assert(all(ceil(full([4], -1.5, f32)) == -1.0));
assert(all(ceil(full([4], 1.5, f32)) == 2.0));",
            }
            Round = "round" {
                doc: "The nearest whole number, halves to the even one.",
                example: "assert(all(round(full([4], 2.5, f32)) == 2.0));
assert(all(round(full([4], 3.5, f32)) == 4.0));
assert(all(round(full([4], -1.75, f32)) == -2.0));",
            }
            Trunc = "trunc" {
                doc: "The whole number toward zero.",
                example: "assert(all(trunc(full([4], -1.5, f32)) == -1.0));
assert(all(trunc(full([4], 1.75, f32)) == 1.0));",
            }
        }

        also {
            Abs {
                doc: "The value without its sign; `abs(MIN)` of a signed integer is `MIN`.",
                example: "assert(all(abs(full([4], -3, i32)) == 3));
assert(all(abs(full([4], -128, i8)) == -128));
assert(all(abs(full([4], -1.5, f32)) == 1.5));",
            }
        }

        /// The larger or smaller of two.
        group MinMax {
            params: AB,
            accepts: DTypeSet::ORDERED,
            result: Some(ElemResult::Same),
            accuracy: Accuracy::Exact,

            Maximum = "maximum" {
                doc: "The larger of two values; NaN if either is, and -0 < +0.",
                example: "assert(sum(maximum(arange(0, 4), 2)) == 9);
assert(all(isnan(maximum(full([4], nan, f32), 1.0))));",
            }
            Minimum = "minimum" {
                doc: "The smaller of two values; NaN if either is, and -0 < +0.",
                example: "assert(sum(minimum(arange(0, 4), 2)) == 5);
assert(all(isnan(minimum(full([4], nan, f32), 1.0))));",
            }
            MaxNum = "maxnum" {
                doc: "The larger of two values; the other one if one is NaN.",
                example: "assert(sum(maxnum(arange(0, 4), 2)) == 9);
assert(all(maxnum(full([4], nan, f32), 1.0) == 1.0));",
            }
            MinNum = "minnum" {
                doc: "The smaller of two values; the other one if one is NaN.",
                example: "assert(sum(minnum(arange(0, 4), 2)) == 5);
assert(all(minnum(full([4], nan, f32), 1.0) == 1.0));",
            }
        }

        /// `clamp(x, lo, hi)` = minimum(maximum(x, lo), hi).
        group Clamp {
            params: X_LO_HI,
            accepts: DTypeSet::ORDERED,
            result: Some(ElemResult::Same),
            accuracy: Accuracy::Exact,

            Clamp = "clamp" {
                doc: "`minimum(maximum(x, lo), hi)`.",
                example: "assert(sum(clamp(arange(0, 6), 2, 4)) == 17);",
            }
        }

        /// `select(cond: bool, a, b)`; pointers too.
        group Select {
            params: COND_AB,
            accepts: DTypeSet::ANY,
            result: Some(ElemResult::Same),
            accuracy: Accuracy::Exact,

            Select = "select" {
                name: "where",
                scheme: Scheme::Special,
                doc: "`a` where the condition holds, else `b`. Both are evaluated; they may be pointers.",
                example: "assert(sum(where(arange(0, 4) < 1, 10, 2)) == 16);",
            }
        }

        /// Functions of two integers.
        group IntBinary {
            params: AB,
            accepts: DTypeSet::INT,
            result: Some(ElemResult::Same),
            accuracy: Accuracy::Exact,

            MulHi = "mulhi" {
                name: "umulhi",
                scheme: Scheme::Elementwise(DTypeSet::UINT, ElemResult::Same),
                doc: "The upper half of the product of two unsigned integers.",
                example: "assert(all(umulhi(full([4], 4294967295, u32), 3) == 2));",
            }
            CeilDiv = "cdiv"
        }

        also {
            MulHi {
                doc: "The upper half of the product of two integers, signed or unsigned according to their type.",
                example: "assert(all(mulhi(full([4], -2147483648, i32), 3) == -2));
assert(all(mulhi(full([4], 255, u8), 255) == 254));",
            }
        }

        /// Numbers of bits of an integer.
        group BitCount {
            params: X,
            accepts: DTypeSet::INT,
            result: Some(ElemResult::I32),
            accuracy: Accuracy::Exact,

            Popcount = "popcount" {
                doc: "The number of set bits, an `i32`.",
                example: "assert(all(popcount(full([4], -1, i8)) == 8));
assert(all(popcount(full([4], 5, u64)) == 2));",
            }
            Clz = "clz" {
                doc: "The number of zero bits above the highest set one, an `i32`; of 0 it is the width.",
                example: "assert(all(clz(full([4], 1, i32)) == 31));
assert(all(clz(full([4], 0, u16)) == 16));",
            }
        }

        /// Questions about a float.
        group FloatTest {
            params: X,
            accepts: DTypeSet::FLOAT.or(DTypeSet::F8),
            result: Some(ElemResult::Bool),
            accuracy: Accuracy::Exact,

            IsNan = "isnan" {
                doc: "Whether the value is NaN.",
                example: "assert(all(isnan(full([4], nan, f32))));
assert(!any(isnan(full([4], inf, f32))));",
            }
            IsInf = "isinf" {
                doc: "Whether the value is an infinity.",
                example: "assert(all(isinf(full([4], -inf, f32))));
assert(!any(isinf(full([4], nan, f32))));",
            }
            IsFinite = "isfinite" {
                doc: "Whether the value is neither NaN nor an infinity.",
                example: "assert(all(isfinite(zeros([4], f32))));
assert(!any(isfinite(full([4], nan, f32))));",
            }
        }

        /// The same bits as the element type of the result, which is as wide.
        group Bitcast {
            params: X_DTYPE,
            accepts: DTypeSet::ANY.without(DTypeSet::BOOL),
            result: None,
            accuracy: Accuracy::Exact,

            Bitcast = "bitcast" {
                doc: "The same bits as another element type of the same width. Between bytes and `e2m1` the last \
                      dimension is doubled or halved: two per byte, the low half first.",
                example: "assert(all(bitcast(full([4], 1.0, f32), u32) == 1065353216));
assert(all(bitcast(full([4], 255, u8), i8) == -1));
assert(all(bitcast(full([4], 0x44, u8), e2m1) as f32 == full([8], 2.0, f32)));",
            }
        }

        /// The value as the element type of the result.
        group Cast {
            params: X_DTYPE,
            accepts: DTypeSet::ANY,
            result: None,
            accuracy: Accuracy::Rounded,

            Cast = "cast" {
                params: &[
                    req("x", ParamKind::Value),
                    req("dtype", ParamKind::DType),
                    opt("rounding", ParamKind::Word(&["nearest", "toward_zero", "stochastic"]), "nearest"),
                    opt("bits", ParamKind::Value, "none"),
                ],
                doc: "A float as another float type, with the given rounding. `nearest` is `as`. `toward_zero` \
                      never increases the magnitude. `stochastic` gives one of the two neighbours, each with a \
                      probability that depends on its distance, decided by the upper 24 of the random `bits` \
                      (`u32`, such as `randint(seed, offset)`), so that the expected value is the value itself. \
                      Values beyond the largest finite one become that one, except infinities.",
                example: "let x = full([4], 1.00390625, f32);
assert(all(cast(x * 1.5, bf16, rounding = toward_zero) == 1.5));
assert(all(cast(-x * 1.99, f8e4m3, rounding = toward_zero) == -1.875));
let y = cast(
    full([4096], 1.25, f32), e2m1, rounding = stochastic, bits = randint(7, arange(0, 4096)),
);
assert(abs(sum(y as f32) / 4096.0 - 1.25) < 0.02);",
            }
        }

        also {
            CeilDiv {
                doc: "Integer quotient rounded up; by zero it is unspecified, in checked mode an error.",
                example: "assert(cdiv(7, 2) == 4 && cdiv(8, 2) == 4);
assert(all(cdiv(full([4], -7, i32), 2) == -3));",
            }
        }

        /// Functions of one integer.
        group IntUnary {
            params: X,
            accepts: DTypeSet::INT,
            result: Some(ElemResult::Same),
            accuracy: Accuracy::Exact,

            NextPow2 = "next_pow2" {
                doc: "The smallest power of two that is not less, at least 1.",
                example: "assert(next_pow2(100) == 128 && next_pow2(64) == 64 && next_pow2(0) == 1);",
            }
        }
    }
}
