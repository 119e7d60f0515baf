//! The rows of the operators, which the checker finds by their symbol.

use super::req;
use crate::dtype::DTypeSet;
use crate::op::{ElementwiseOp, Op};
use crate::table::{Accuracy, Effects, ElemResult, Param, ParamKind, Receiver, Row, Scheme};

const AB: &[Param] = &[req("a", ParamKind::Value), req("b", ParamKind::Value)];
const X: &[Param] = &[req("x", ParamKind::Value)];

/// An arithmetic operator.
const ARITHMETIC: Row = Row {
    name: "",
    receiver: Receiver::None,
    params: AB,
    scheme: Scheme::Elementwise(DTypeSet::NUMBER, ElemResult::Same),
    op: Op::Elementwise(ElementwiseOp::Add),
    doc: "",
    example: "",
    effects: Effects::Pure,
    accuracy: Accuracy::Rounded,
};

/// A comparison by order.
const COMPARISON: Row = Row {
    scheme: Scheme::Elementwise(DTypeSet::ORDERED, ElemResult::Bool),
    accuracy: Accuracy::Exact,
    ..ARITHMETIC
};

/// An operator on the bits of integers.
const BITS: Row = Row {
    scheme: Scheme::Elementwise(DTypeSet::INT, ElemResult::Same),
    accuracy: Accuracy::Exact,
    ..ARITHMETIC
};

/// An operator on bools.
const LOGIC: Row = Row {
    scheme: Scheme::Elementwise(DTypeSet::BOOL, ElemResult::Same),
    accuracy: Accuracy::Exact,
    ..ARITHMETIC
};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "+",
        doc: "Sum. Integers wrap; floats round to nearest even.",
        example: "assert(all(arange(0, 3) + 1 == arange(1, 4)));
assert(all(full([2], 127, i8) + 1 == -128));
assert(all(full([2], 0.5, f32) + 0.25 == 0.75));",
        ..ARITHMETIC
    },
    Row {
        name: "-",
        op: Op::Elementwise(ElementwiseOp::Sub),
        doc: "Difference. Integers wrap; floats round to nearest even.",
        example: "assert(all(arange(1, 4) - 1 == arange(0, 3)));
assert(all(full([2], 0, u8) - 1 == 255));",
        ..ARITHMETIC
    },
    Row {
        name: "*",
        op: Op::Elementwise(ElementwiseOp::Mul),
        doc: "Product. Integers wrap; floats round to nearest even.",
        example: "assert(sum(arange(0, 4) * arange(0, 4)) == 14);
assert(all(full([2], 16, u8) * 16 == 0));
assert(all(full([2], 1.5, f32) * -2.0 == -3.0));",
        ..ARITHMETIC
    },
    Row {
        name: "/",
        op: Op::Elementwise(ElementwiseOp::Div),
        doc: "Quotient: truncated toward zero for integers, rounded to nearest even for floats. Division of an \
              integer by zero gives an unspecified value, in checked mode an error. `MIN / -1` is `MIN`.",
        example: "assert(all(full([2], -7, i32) / 2 == -3));
assert(all(full([2], -128, i8) / -1 == -128));
assert(all(full([2], 1.0, f32) / 4.0 == 0.25));",
        ..ARITHMETIC
    },
    Row {
        name: "%",
        op: Op::Elementwise(ElementwiseOp::Rem),
        doc: "Remainder of the truncating quotient, with the sign of the dividend; exact for floats. `MIN % -1` is \
              0; by an integer zero it is unspecified.",
        example: "assert(all(full([2], -7, i32) % 2 == -1));
assert(all(full([2], 7, i32) % -4 == 3));
assert(all(full([2], -5.5, f32) % 2.0 == -1.5));",
        accuracy: Accuracy::Exact,
        ..ARITHMETIC
    },
    Row {
        name: "unary -",
        params: X,
        scheme: Scheme::Elementwise(DTypeSet::ORDERED, ElemResult::Same),
        op: Op::Elementwise(ElementwiseOp::Neg),
        doc: "Negation. Integers wrap; a float changes its sign, including zero and NaN.",
        example: "let x = arange(0, 3);
assert(all(-x + x == 0) && min(-x) == -2);
assert(all(1.0 / -zeros([2], f32) == -inf));",
        accuracy: Accuracy::Exact,
        ..ARITHMETIC
    },
    Row {
        name: "&",
        op: Op::Elementwise(ElementwiseOp::And),
        doc: "Bitwise and.",
        example: "assert(all(full([2], 12, i32) & 10 == 8));",
        ..BITS
    },
    Row {
        name: "|",
        op: Op::Elementwise(ElementwiseOp::Or),
        doc: "Bitwise or.",
        example: "assert(all((full([2], 12, i32) | 10) == 14));",
        ..BITS
    },
    Row {
        name: "^",
        op: Op::Elementwise(ElementwiseOp::Xor),
        doc: "Bitwise exclusive or.",
        example: "assert(all((full([2], 12, i32) ^ 10) == 6));",
        ..BITS
    },
    Row {
        name: "<<",
        scheme: Scheme::Special,
        op: Op::Elementwise(ElementwiseOp::Shl),
        doc: "Shift to the left. An amount of the width or more, or a negative one, gives 0; the amount may be of \
              another integer type.",
        example: "assert(all((full([2], 3, i32) << 4) == 48));
assert(all((full([2], 1, i32) << 32) == 0));
assert(all((full([2], 1, i32) << -1) == 0));",
        ..BITS
    },
    Row {
        name: ">>",
        scheme: Scheme::Special,
        op: Op::Elementwise(ElementwiseOp::Shr),
        doc: "Shift to the right: arithmetic for signed integers, logical for unsigned ones. An amount of the width or \
              more, or a negative one, gives only sign bits or zeros; the amount may be of another integer type.",
        example: "assert(all((full([2], -8, i32) >> 1) == -4));
assert(all((full([2], -8, i32) >> 40) == -1));
assert(all((full([2], 128, u8) >> 7) == 1));
assert(all((full([2], 128, u8) >> 8) == 0));",
        ..BITS
    },
    Row {
        name: "==",
        scheme: Scheme::Elementwise(DTypeSet::VALUE, ElemResult::Bool),
        op: Op::Elementwise(ElementwiseOp::Eq),
        doc: "Whether the values are equal. NaN equals nothing; -0 equals +0.",
        example: "assert(sum(arange(0, 4) == 2) == 1);
let x = full([2], nan, f32);
assert(!any(x == x));
assert(all(zeros([2], f32) == -0.0));",
        ..COMPARISON
    },
    Row {
        name: "!=",
        scheme: Scheme::Elementwise(DTypeSet::VALUE, ElemResult::Bool),
        op: Op::Elementwise(ElementwiseOp::Ne),
        doc: "Whether the values differ. NaN differs from everything, itself included.",
        example: "assert(sum(arange(0, 4) != 2) == 3);
let x = full([2], nan, f32);
assert(all(x != x));",
        ..COMPARISON
    },
    Row {
        name: "<",
        op: Op::Elementwise(ElementwiseOp::Lt),
        doc: "Whether the first is less. False with NaN.",
        example: "assert(sum(arange(0, 4) < 2) == 2);
assert(!any(full([2], nan, f32) < 1.0));",
        ..COMPARISON
    },
    Row {
        name: "<=",
        op: Op::Elementwise(ElementwiseOp::Le),
        doc: "Whether the first is less or equal. False with NaN.",
        example: "assert(sum(arange(0, 4) <= 2) == 3);
assert(!any(full([2], nan, f32) <= 1.0));",
        ..COMPARISON
    },
    Row {
        name: ">",
        op: Op::Elementwise(ElementwiseOp::Gt),
        doc: "Whether the first is greater. False with NaN.",
        example: "assert(sum(arange(0, 4) > 2) == 1);
assert(!any(full([2], nan, f32) > 1.0));",
        ..COMPARISON
    },
    Row {
        name: ">=",
        op: Op::Elementwise(ElementwiseOp::Ge),
        doc: "Whether the first is greater or equal. False with NaN.",
        example: "assert(sum(arange(0, 4) >= 2) == 2);
assert(!any(full([2], nan, f32) >= 1.0));",
        ..COMPARISON
    },
    Row {
        name: "&&",
        op: Op::Elementwise(ElementwiseOp::And),
        doc: "Whether both are true. The second of two scalars is evaluated only when the first is true; of tiles \
              both are.",
        example: "let i = arange(0, 6);
assert(sum(i > 1 && i < 4) == 2);",
        ..LOGIC
    },
    Row {
        name: "||",
        op: Op::Elementwise(ElementwiseOp::Or),
        doc: "Whether either is true. The second of two scalars is evaluated only when the first is false; of tiles \
              both are.",
        example: "let i = arange(0, 6);
assert(sum(i < 1 || i > 3) == 3);",
        ..LOGIC
    },
    Row {
        name: "unary !",
        params: X,
        op: Op::Elementwise(ElementwiseOp::Not),
        doc: "The opposite of a bool.",
        example: "let i = arange(0, 6);
assert(sum(!(i < 2)) == 4);",
        ..LOGIC
    },
    Row {
        name: "as",
        params: &[req("x", ParamKind::Value), req("dtype", ParamKind::DType)],
        scheme: Scheme::Special,
        op: Op::Elementwise(ElementwiseOp::Cast),
        doc: "The value as another element type. Integers keep the low bits, a bool gives 0 or 1, a float becomes an \
              integer by truncation with saturation (NaN gives 0); conversions to floats round to nearest even, fp8 \
              and `e2m1` saturate. There is no cast to bool: write `x != 0`.",
        example: "assert(all(full([2], 300, i32) as u8 == 44));
assert(all(full([2], -2.75, f32) as i32 == -2));
assert(all(full([2], 1000.0, f32) as i8 == 127));
assert(all(full([2], nan, f32) as i32 == 0));
assert(all(full([2], 2049, i32) as f16 == 2048.0));
assert(all(full([2], inf, f32) as f8e4m3 as f32 == 448.0));",
        ..ARITHMETIC
    },
];
