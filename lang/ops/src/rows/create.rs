//! The rows that make tiles from nothing.

use super::req;
use crate::op::{CreateOp, Op};
use crate::table::{Accuracy, Effects, ParamKind, Receiver, Row, Scheme};

const CREATE: Row = Row {
    name: "",
    receiver: Receiver::None,
    params: &[],
    scheme: Scheme::Special,
    op: Op::Create(CreateOp::Splat),
    doc: "",
    example: "",
    effects: Effects::Pure,
    accuracy: Accuracy::Exact,
};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "arange",
        params: &[req("start", ParamKind::ConstInt), req("end", ParamKind::ConstInt)],
        op: Op::Create(CreateOp::Arange),
        doc: "The `i32` tile `start, start + 1, .., end - 1`.",
        example: "let x = arange(2, 5);
assert(min(x) == 2 && max(x) == 4 && sum(x) == 9);",
        ..CREATE
    },
    Row {
        name: "zeros",
        params: &[req("shape", ParamKind::Shape), req("dtype", ParamKind::DType)],
        doc: "A tile of zeros (`false` for `bool`).",
        example: "let x = zeros([2, 3], f32);
assert(all(x == 0.0));
assert(sum(x + 1.0) == 6.0);",
        ..CREATE
    },
    Row {
        name: "full",
        params: &[
            req("shape", ParamKind::Shape),
            req("value", ParamKind::Value),
            req("dtype", ParamKind::DType),
        ],
        doc: "A tile filled with one value.",
        example: "let x = full([4], 2.5, f32);
assert(all(x == 2.5));
assert(sum(x) == 10.0);",
        ..CREATE
    },
];
