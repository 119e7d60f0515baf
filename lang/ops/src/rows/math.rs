//! The rows of elementwise functions.
//!
//! A bound in ulp holds for every device: the evaluation here stays within one unit and a half, the margin is that of
//! the device libraries.

use super::{opt, req};
use crate::dtype::DTypeSet;
use crate::op::{ElementwiseOp, Op};
use crate::table::{Accuracy, Effects, ElemResult, Param, ParamKind, Receiver, Row, Scheme};

const X: &[Param] = &[req("x", ParamKind::Value)];
const X_FAST: &[Param] = &[req("x", ParamKind::Value), opt("fast", ParamKind::ConstBool, "false")];
const AB: &[Param] = &[req("a", ParamKind::Value), req("b", ParamKind::Value)];

/// A function that keeps a bound.
const FUNCTION: Row = Row {
    name: "",
    receiver: Receiver::None,
    params: X_FAST,
    scheme: Scheme::Elementwise(DTypeSet::FLOAT, ElemResult::Same),
    op: Op::Elementwise(ElementwiseOp::Exp),
    doc: "",
    example: "",
    effects: Effects::Pure,
    accuracy: Accuracy::Ulp(2.0),
};

/// A function of floats without rounding.
const EXACT: Row = Row { params: X, accuracy: Accuracy::Exact, ..FUNCTION };

/// The larger or smaller of two.
const CHOICE: Row =
    Row { params: AB, scheme: Scheme::Elementwise(DTypeSet::ORDERED, ElemResult::Same), ..EXACT };

/// A question about a float.
const QUESTION: Row =
    Row { scheme: Scheme::Elementwise(DTypeSet::FLOAT.or(DTypeSet::F8), ElemResult::Bool), ..EXACT };

/// A function of integers.
const INTEGER: Row = Row { scheme: Scheme::Elementwise(DTypeSet::INT, ElemResult::Same), ..EXACT };

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "exp",
        op: Op::Elementwise(ElementwiseOp::Exp),
        doc: "e to the power of x.",
        example: "assert_close(exp(full([4], 1.0, f32)), full([4], 2.7182818, f32));
assert(all(exp(full([4], -inf, f32)) == 0.0));",
        ..FUNCTION
    },
    Row {
        name: "exp2",
        op: Op::Elementwise(ElementwiseOp::Exp2),
        doc: "2 to the power of x.",
        example: "assert_close(exp2(full([4], 3.0, f32)), full([4], 8.0, f32));
assert_close(exp2(full([4], 0.5, f32), fast = true), full([4], 1.4142135, f32));",
        ..FUNCTION
    },
    Row {
        name: "log",
        op: Op::Elementwise(ElementwiseOp::Log),
        doc: "The natural logarithm; of 0 it is `-inf`, of a negative number NaN.",
        example: "assert_close(log(full([4], 2.0, f32)), full([4], 0.6931472, f32));
assert(all(log(zeros([4], f32)) == -inf));",
        ..FUNCTION
    },
    Row {
        name: "log2",
        op: Op::Elementwise(ElementwiseOp::Log2),
        doc: "The logarithm to base 2; of 0 it is `-inf`, of a negative number NaN.",
        example: "assert_close(log2(full([4], 8.0, f32)), full([4], 3.0, f32));",
        ..FUNCTION
    },
    Row {
        name: "sin",
        op: Op::Elementwise(ElementwiseOp::Sin),
        doc: "The sine of an angle in radians.",
        example: "assert_close(sin(full([4], 1.0, f32)), full([4], 0.841471, f32));",
        ..FUNCTION
    },
    Row {
        name: "cos",
        op: Op::Elementwise(ElementwiseOp::Cos),
        doc: "The cosine of an angle in radians.",
        example: "assert_close(cos(full([4], 1.0, f32)), full([4], 0.5403023, f32));",
        ..FUNCTION
    },
    Row {
        name: "tanh",
        op: Op::Elementwise(ElementwiseOp::Tanh),
        doc: "The hyperbolic tangent.",
        example: "assert_close(tanh(full([4], 1.0, f32)), full([4], 0.7615942, f32));
assert(all(tanh(full([4], -inf, f32)) == -1.0));",
        ..FUNCTION
    },
    Row {
        name: "erf",
        op: Op::Elementwise(ElementwiseOp::Erf),
        doc: "The error function.",
        example: "assert_close(erf(full([4], 1.0, f32)), full([4], 0.8427008, f32));",
        ..FUNCTION
    },
    Row {
        name: "sqrt",
        op: Op::Elementwise(ElementwiseOp::Sqrt),
        doc: "The square root, correctly rounded; of a negative number NaN.",
        example: "assert(all(sqrt(full([4], 2.25, f32)) == 1.5));
assert(all(isnan(sqrt(full([4], -1.0, f32)))));",
        accuracy: Accuracy::Rounded,
        ..FUNCTION
    },
    Row {
        name: "rsqrt",
        op: Op::Elementwise(ElementwiseOp::Rsqrt),
        doc: "1 divided by the square root; of 0 it is `inf`.",
        example: "assert_close(rsqrt(full([4], 4.0, f32)), full([4], 0.5, f32));
assert(all(rsqrt(zeros([4], f32)) == inf));",
        ..FUNCTION
    },
    Row {
        name: "pow",
        params: &[
            req("x", ParamKind::Value),
            req("y", ParamKind::Value),
            opt("fast", ParamKind::ConstBool, "false"),
        ],
        op: Op::Elementwise(ElementwiseOp::Pow),
        doc: "x to the power of y, with the special cases of IEEE 754.",
        example: "assert_close(pow(full([4], 2.0, f32), 10.0), full([4], 1024.0, f32));
assert_close(pow(full([4], 9.0, f32), -0.5), full([4], 0.3333333, f32));",
        accuracy: Accuracy::Ulp(4.0),
        ..FUNCTION
    },
    Row {
        name: "fma",
        params: &[req("a", ParamKind::Value), req("b", ParamKind::Value), req("c", ParamKind::Value)],
        op: Op::Elementwise(ElementwiseOp::Fma),
        doc: "`a * b + c`, rounded once.",
        example: "assert(all(fma(full([4], 2.0, f32), 3.0, 1.0) == 7.0));
let x = full([4], 1.0, f32) + 0.000244140625;
assert(all(fma(x, x, -x * x) == 0.000000059604644775390625));",
        accuracy: Accuracy::Rounded,
        ..FUNCTION
    },
    Row {
        name: "floor",
        op: Op::Elementwise(ElementwiseOp::Floor),
        doc: "The largest whole number that is not greater.",
        example: "assert(all(floor(full([4], -1.5, f32)) == -2.0));
assert(all(floor(full([4], 1.5, f32)) == 1.0));",
        ..EXACT
    },
    Row {
        name: "ceil",
        op: Op::Elementwise(ElementwiseOp::Ceil),
        doc: "The smallest whole number that is not less.",
        example: "assert(all(ceil(full([4], -1.5, f32)) == -1.0));
assert(all(ceil(full([4], 1.5, f32)) == 2.0));",
        ..EXACT
    },
    Row {
        name: "round",
        op: Op::Elementwise(ElementwiseOp::Round),
        doc: "The nearest whole number, halves to the even one.",
        example: "assert(all(round(full([4], 2.5, f32)) == 2.0));
assert(all(round(full([4], 3.5, f32)) == 4.0));
assert(all(round(full([4], -1.75, f32)) == -2.0));",
        ..EXACT
    },
    Row {
        name: "trunc",
        op: Op::Elementwise(ElementwiseOp::Trunc),
        doc: "The whole number toward zero.",
        example: "assert(all(trunc(full([4], -1.5, f32)) == -1.0));
assert(all(trunc(full([4], 1.75, f32)) == 1.0));",
        ..EXACT
    },
    Row {
        name: "abs",
        scheme: Scheme::Elementwise(DTypeSet::ORDERED, ElemResult::Same),
        op: Op::Elementwise(ElementwiseOp::Abs),
        doc: "The value without its sign; `abs(MIN)` of a signed integer is `MIN`.",
        example: "assert(all(abs(full([4], -3, i32)) == 3));
assert(all(abs(full([4], -128, i8)) == -128));
assert(all(abs(full([4], -1.5, f32)) == 1.5));",
        ..EXACT
    },
    Row {
        name: "maximum",
        op: Op::Elementwise(ElementwiseOp::Maximum),
        doc: "The larger of two values; NaN if either is, and -0 < +0.",
        example: "assert(sum(maximum(arange(0, 4), 2)) == 9);
assert(all(isnan(maximum(full([4], nan, f32), 1.0))));",
        ..CHOICE
    },
    Row {
        name: "minimum",
        op: Op::Elementwise(ElementwiseOp::Minimum),
        doc: "The smaller of two values; NaN if either is, and -0 < +0.",
        example: "assert(sum(minimum(arange(0, 4), 2)) == 5);
assert(all(isnan(minimum(full([4], nan, f32), 1.0))));",
        ..CHOICE
    },
    Row {
        name: "maxnum",
        op: Op::Elementwise(ElementwiseOp::MaxNum),
        doc: "The larger of two values; the other one if one is NaN.",
        example: "assert(sum(maxnum(arange(0, 4), 2)) == 9);
assert(all(maxnum(full([4], nan, f32), 1.0) == 1.0));",
        ..CHOICE
    },
    Row {
        name: "minnum",
        op: Op::Elementwise(ElementwiseOp::MinNum),
        doc: "The smaller of two values; the other one if one is NaN.",
        example: "assert(sum(minnum(arange(0, 4), 2)) == 5);
assert(all(minnum(full([4], nan, f32), 1.0) == 1.0));",
        ..CHOICE
    },
    Row {
        name: "clamp",
        params: &[req("x", ParamKind::Value), req("lo", ParamKind::Value), req("hi", ParamKind::Value)],
        op: Op::Elementwise(ElementwiseOp::Clamp),
        doc: "`minimum(maximum(x, lo), hi)`.",
        example: "assert(sum(clamp(arange(0, 6), 2, 4)) == 17);",
        ..CHOICE
    },
    Row {
        name: "where",
        params: &[req("cond", ParamKind::Mask), req("a", ParamKind::Value), req("b", ParamKind::Value)],
        scheme: Scheme::Special,
        op: Op::Elementwise(ElementwiseOp::Select),
        doc: "`a` where the condition holds, else `b`. Both are evaluated; they may be pointers.",
        example: "assert(sum(where(arange(0, 4) < 1, 10, 2)) == 16);",
        ..EXACT
    },
    Row {
        name: "umulhi",
        params: AB,
        scheme: Scheme::Elementwise(DTypeSet::UINT, ElemResult::Same),
        op: Op::Elementwise(ElementwiseOp::MulHi),
        doc: "The upper half of the product of two unsigned integers.",
        example: "assert(all(umulhi(full([4], 4294967295, u32), 3) == 2));",
        ..EXACT
    },
    Row {
        name: "mulhi",
        params: AB,
        op: Op::Elementwise(ElementwiseOp::MulHi),
        doc: "The upper half of the product of two integers, signed or unsigned according to their type.",
        example: "assert(all(mulhi(full([4], -2147483648, i32), 3) == -2));
assert(all(mulhi(full([4], 255, u8), 255) == 254));",
        ..INTEGER
    },
    Row {
        name: "popcount",
        scheme: Scheme::Elementwise(DTypeSet::INT, ElemResult::I32),
        op: Op::Elementwise(ElementwiseOp::Popcount),
        doc: "The number of set bits, an `i32`.",
        example: "assert(all(popcount(full([4], -1, i8)) == 8));
assert(all(popcount(full([4], 5, u64)) == 2));",
        ..EXACT
    },
    Row {
        name: "clz",
        scheme: Scheme::Elementwise(DTypeSet::INT, ElemResult::I32),
        op: Op::Elementwise(ElementwiseOp::Clz),
        doc: "The number of zero bits above the highest set one, an `i32`; of 0 it is the width.",
        example: "assert(all(clz(full([4], 1, i32)) == 31));
assert(all(clz(full([4], 0, u16)) == 16));",
        ..EXACT
    },
    Row {
        name: "isnan",
        op: Op::Elementwise(ElementwiseOp::IsNan),
        doc: "Whether the value is NaN.",
        example: "assert(all(isnan(full([4], nan, f32))));
assert(!any(isnan(full([4], inf, f32))));",
        ..QUESTION
    },
    Row {
        name: "isinf",
        op: Op::Elementwise(ElementwiseOp::IsInf),
        doc: "Whether the value is an infinity.",
        example: "assert(all(isinf(full([4], -inf, f32))));
assert(!any(isinf(full([4], nan, f32))));",
        ..QUESTION
    },
    Row {
        name: "isfinite",
        op: Op::Elementwise(ElementwiseOp::IsFinite),
        doc: "Whether the value is neither NaN nor an infinity.",
        example: "assert(all(isfinite(zeros([4], f32))));
assert(!any(isfinite(full([4], nan, f32))));",
        ..QUESTION
    },
    Row {
        name: "bitcast",
        params: &[req("x", ParamKind::Value), req("dtype", ParamKind::DType)],
        scheme: Scheme::Special,
        op: Op::Elementwise(ElementwiseOp::Bitcast),
        doc: "The same bits as another element type of the same width. Between bytes and `e2m1` the last dimension is \
              doubled or halved: two per byte, the low half first.",
        example: "assert(all(bitcast(full([4], 1.0, f32), u32) == 1065353216));
assert(all(bitcast(full([4], 255, u8), i8) == -1));
assert(all(bitcast(full([4], 0x44, u8), e2m1) as f32 == full([8], 2.0, f32)));",
        ..EXACT
    },
    Row {
        name: "cast",
        params: &[
            req("x", ParamKind::Value),
            req("dtype", ParamKind::DType),
            opt("rounding", ParamKind::Word(&["nearest", "toward_zero", "stochastic"]), "nearest"),
            opt("bits", ParamKind::Value, "none"),
        ],
        scheme: Scheme::Special,
        op: Op::Elementwise(ElementwiseOp::Cast),
        doc: "A float as another float type, with the given rounding. `nearest` is `as`. `toward_zero` never increases \
              the magnitude. `stochastic` gives one of the two neighbours, each with a probability that depends on its \
              distance, decided by the upper 24 of the random `bits` (`u32`, such as `randint(seed, offset)`), so that \
              the expected value is the value itself. Values beyond the largest finite one become that one, except \
              infinities.",
        example: "let x = full([4], 1.00390625, f32);
assert(all(cast(x * 1.5, bf16, rounding = toward_zero) == 1.5));
assert(all(cast(-x * 1.99, f8e4m3, rounding = toward_zero) == -1.875));
let y = cast(
    full([4096], 1.25, f32), e2m1, rounding = stochastic, bits = randint(7, arange(0, 4096)),
);
assert(abs(sum(y as f32) / 4096.0 - 1.25) < 0.02);",
        accuracy: Accuracy::Rounded,
        ..EXACT
    },
    Row {
        name: "cdiv",
        params: AB,
        op: Op::Elementwise(ElementwiseOp::CeilDiv),
        doc: "Integer quotient rounded up; by zero it is unspecified, in checked mode an error.",
        example: "assert(cdiv(7, 2) == 4 && cdiv(8, 2) == 4);
assert(all(cdiv(full([4], -7, i32), 2) == -3));",
        ..INTEGER
    },
    Row {
        name: "next_pow2",
        op: Op::Elementwise(ElementwiseOp::NextPow2),
        doc: "The smallest power of two that is not less, at least 1.",
        example: "assert(next_pow2(100) == 128 && next_pow2(64) == 64 && next_pow2(0) == 1);",
        ..INTEGER
    },
];
