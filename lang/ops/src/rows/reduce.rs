//! The rows of reductions.

use super::{opt, req};
use crate::dtype::DTypeSet;
use crate::op::{Op, ReduceOp};
use crate::table::{Accuracy, BuiltinParam, Effects, ElemResult, ParamKind, Receiver, Row, Scheme};

const PARAMS: &[BuiltinParam] = &[
    req("x", ParamKind::Value),
    opt("axis", ParamKind::Axis, "all"),
    opt("keep", ParamKind::ConstBool, "false"),
];

/// Of a fold that picks an element, which also knows where it was.
const PICKED: &[BuiltinParam] = &[
    req("x", ParamKind::Value),
    opt("axis", ParamKind::Axis, "all"),
    opt("keep", ParamKind::ConstBool, "false"),
    opt("return_indices", ParamKind::ConstBool, "false"),
];

/// How far a sum may be off for one element; it grows with the logarithm of the count.
const SUM: Row = Row {
    name: "",
    receiver: Receiver::None,
    params: PARAMS,
    scheme: Scheme::Reduce(DTypeSet::NUMBER.or(DTypeSet::BOOL), ElemResult::Widened),
    op: Op::Reduce(ReduceOp::Sum),
    doc: "",
    example: "",
    effects: Effects::Pure,
    accuracy: Accuracy::Ulp(1.0),
};

const CHOICE: Row =
    Row { scheme: Scheme::Reduce(DTypeSet::ORDERED, ElemResult::Same), accuracy: Accuracy::Exact, ..SUM };

const POSITION: Row =
    Row { scheme: Scheme::Reduce(DTypeSet::ORDERED, ElemResult::I32), accuracy: Accuracy::Exact, ..SUM };

const LOGIC: Row =
    Row { scheme: Scheme::Reduce(DTypeSet::BOOL, ElemResult::Same), accuracy: Accuracy::Exact, ..SUM };

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "sum",
        op: Op::Reduce(ReduceOp::Sum),
        doc: "The sum along `axis`, or of all elements. `bool` and integers below 32 bits give `i32` or `u32`; f16 \
              and bf16 accumulate in f32. The order is unspecified but fixed; the error of floats is a unit for \
              each doubling of the count.",
        example: "let x = reshape(arange(0, 6), [2, 3]);
assert(sum(x) == 15);
assert(all(sum(x, axis = 0) == arange(0, 3) * 2 + 3));
assert(all(sum(x, axis = 1, keep = true) == (arange(0, 2) * 9 + 3)[:, None]));
assert(sum(full([4], 100, i8)) == 400);",
        ..SUM
    },
    Row {
        name: "prod",
        op: Op::Reduce(ReduceOp::Prod),
        doc: "The product along `axis`, or of all elements, with the type rules of `sum`.",
        example: "assert(prod(arange(1, 6)) == 120);
assert(prod(full([3], 100, i8)) == 1000000);",
        ..SUM
    },
    Row {
        name: "max",
        params: PICKED,
        op: Op::Reduce(ReduceOp::Max),
        doc: "The largest element along `axis`, or of all; NaN if there is one, and -0 < +0. With `return_indices` a tuple \
              of it and its `i32` position, which is that of `argmax`.",
        example: "let x = reshape(arange(0, 6), [2, 3]);
assert(max(x) == 5);
assert(all(max(x, axis = 0) == arange(3, 6)));
assert(isnan(max(where(arange(0, 4) == 2, nan, full([4], 1.0, f32)))));
assert(max(x as f32 as f8e4m3) == 5.0);
let (most, at) = max(x % 3, axis = 1, return_indices = true);
assert(all(most == 2) && all(at == 2));",
        ..CHOICE
    },
    Row {
        name: "min",
        params: PICKED,
        op: Op::Reduce(ReduceOp::Min),
        doc: "The smallest element along `axis`, or of all; NaN if there is one, and -0 < +0. With `return_indices` a tuple \
              of it and its `i32` position, which is that of `argmin`.",
        example: "let x = reshape(arange(0, 6), [2, 3]);
assert(min(x) == 0);
assert(all(min(x, axis = 1) == arange(0, 2) * 3));
let (least, at) = min((x - 4) * (x - 4), return_indices = true);
assert(least == 0 && at == 4);",
        ..CHOICE
    },
    Row {
        name: "argmax",
        op: Op::Reduce(ReduceOp::ArgMax),
        doc: "The position of the first largest element along `axis`, or among all in row-major order; the first \
              NaN if there is one.",
        example: "let x = arange(0, 7);
assert(argmax(x * (6 - x)) == 3);
assert(argmax(full([4], 1, i32)) == 0);",
        ..POSITION
    },
    Row {
        name: "argmin",
        op: Op::Reduce(ReduceOp::ArgMin),
        doc: "The position of the first smallest element along `axis`, or among all in row-major order; the first \
              NaN if there is one.",
        example: "let x = arange(0, 7);
assert(argmin(x * (x - 6)) == 3);
assert(argmin(full([4], 1, i32)) == 0);",
        ..POSITION
    },
    Row {
        name: "any",
        op: Op::Reduce(ReduceOp::Any),
        doc: "Whether any element along `axis`, or of all, is true.",
        example: "let x = arange(0, 4);
assert(any(x == 3) && !any(x == 4));",
        ..LOGIC
    },
    Row {
        name: "all",
        op: Op::Reduce(ReduceOp::All),
        doc: "Whether every element along `axis`, or of all, is true.",
        example: "let x = arange(0, 4);
assert(all(x < 4) && !all(x < 3));",
        ..LOGIC
    },
    Row {
        name: "xor_sum",
        scheme: Scheme::Reduce(DTypeSet::INT, ElemResult::Same),
        op: Op::Reduce(ReduceOp::XorSum),
        doc: "The exclusive or of the integers along `axis`, or of all.",
        example: "assert(xor_sum(arange(0, 6)) == 1);",
        ..LOGIC
    },
    Row {
        name: "reduce_or",
        scheme: Scheme::Reduce(DTypeSet::INT, ElemResult::Same),
        op: Op::Reduce(ReduceOp::Or),
        doc: "The bitwise or of the integers along `axis`, or of all.",
        example: "let x = reshape(arange(0, 6), [2, 3]);
assert(reduce_or(x) == 7);
assert(all(
    reduce_or(x, axis = 0)
        == arange(0, 3) + 3 + where(arange(0, 3) == 2, 2, where(arange(0, 3) == 1, 1, 0)),
));",
        ..LOGIC
    },
    Row {
        name: "softmax",
        params: &[
            req("x", ParamKind::Value),
            opt("axis", ParamKind::Axis, "-1"),
            opt("fast", ParamKind::ConstBool, "false"),
        ],
        scheme: Scheme::Special,
        // What it counts padding for: `-inf` is left out. The value is made of other operations.
        op: Op::Reduce(ReduceOp::Max),
        doc: "`exp(x - max(x)) / sum(exp(x - max(x)))` along `axis`, a tile of the shape and type of `x`; f16 and bf16 \
              are computed in f32 and rounded once. A line of only `-inf` gives NaN, as does one with NaN or `inf`.",
        example: "let x = reshape(arange(0, 8), [2, 4]) as f32;
assert_close(softmax(x)[1], softmax(x)[0]);
assert_close(sum(softmax(x, axis = 0), axis = 0), full([4], 1.0, f32));
assert(all(softmax(full([4], 7.0, f16)) == 0.25));",
        accuracy: Accuracy::Ulp(8.0),
        ..SUM
    },
    Row {
        name: "reduce",
        params: &[
            req("x", ParamKind::Value),
            opt("axis", ParamKind::Axis, "all"),
            req("combine", ParamKind::Fn),
            opt("ordered", ParamKind::ConstBool, "false"),
            opt("keep", ParamKind::ConstBool, "false"),
        ],
        scheme: Scheme::Special,
        op: Op::Reduce(ReduceOp::Custom),
        doc: "Folds `axis` with a function of two values, which is assumed to be associative, and commutative unless \
              `ordered`. `x` may be a tuple or struct of tiles; the function then takes and returns such values of \
              scalars.",
        example: "let x = reshape(arange(0, 6), [2, 3]);
assert(all(reduce(x, axis = 1, combine = |a, b| maximum(a, b)) == arange(0, 2) * 3 + 2));",
        ..SUM
    },
];
