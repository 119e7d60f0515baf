//! The rows of running folds, sorting and counting.

use super::{opt, req};
use crate::op::{Op, ScanOp};
use crate::table::{Accuracy, BuiltinParam, Effects, ParamKind, Receiver, Row, Scheme};

const RUNNING: &[BuiltinParam] = &[
    req("x", ParamKind::Value),
    req("axis", ParamKind::Axis),
    opt("reverse", ParamKind::ConstBool, "false"),
];

const SCAN: Row = Row {
    name: "",
    receiver: Receiver::None,
    params: RUNNING,
    scheme: Scheme::Special,
    op: Op::Scan(ScanOp::CumSum),
    doc: "",
    example: "",
    effects: Effects::Pure,
    accuracy: Accuracy::Exact,
};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "cumsum",
        op: Op::Scan(ScanOp::CumSum),
        doc: "The sum of the elements up to and including each one along `axis`; from the end with `reverse`.",
        example: "let x = cumsum(arange(0, 5), axis = 0);
assert(all(x == arange(0, 5) * arange(1, 6) / 2));
assert(all(cumsum(full([3], 1, i32), axis = 0, reverse = true) == 3 - arange(0, 3)));",
        accuracy: Accuracy::Ulp(1.0),
        ..SCAN
    },
    Row {
        name: "cumprod",
        op: Op::Scan(ScanOp::CumProd),
        doc: "The product of the elements up to and including each one along `axis`; from the end with `reverse`.",
        example: "assert(all(cumprod(full([4], 2, i32), axis = 0) == (1 << arange(1, 5))));",
        accuracy: Accuracy::Ulp(1.0),
        ..SCAN
    },
    Row {
        name: "scan",
        params: &[
            req("x", ParamKind::Value),
            req("axis", ParamKind::Axis),
            req("combine", ParamKind::Fn),
            opt("reverse", ParamKind::ConstBool, "false"),
        ],
        op: Op::Scan(ScanOp::Custom),
        doc: "Folds the elements up to and including each one along `axis` with an associative function of two \
              values; `reverse` is flip, scan, flip. `x` may be a tuple or struct of tiles.",
        example: "let x = scan(arange(0, 4), axis = 0, combine = |a, b| a + b);
assert(all(x == arange(0, 4) * arange(1, 5) / 2));",
        ..SCAN
    },
    Row {
        name: "sort",
        params: &[
            req("keys", ParamKind::Value),
            opt("values", ParamKind::Value, "none"),
            opt("axis", ParamKind::Axis, "-1"),
            opt("descending", ParamKind::ConstBool, "false"),
        ],
        op: Op::Scan(ScanOp::Sort),
        doc: "The keys in ascending order along `axis`, or the keys and their values as a tuple. Stable in both \
              directions; NaN is last in both, and -0 < +0.",
        example: "assert(all(sort(3 - arange(0, 4)) == arange(0, 4)));
let (k, v) = sort(3 - arange(0, 4), values = arange(0, 4));
assert(all(k == arange(0, 4)) && all(v == 3 - arange(0, 4)));",
        ..SCAN
    },
    Row {
        name: "topk",
        params: &[req("x", ParamKind::Value), req("k", ParamKind::ConstInt)],
        op: Op::Scan(ScanOp::TopK),
        doc: "The `k` largest elements along the last dimension, largest first, and their `i32` positions, as a tuple. \
              As in `argmax`, NaN counts as the largest, and equal elements keep their order.",
        example: "let (v, i) = topk(arange(0, 8) * 2, 2);
assert(all(v == 14 - arange(0, 2) * 2) && all(i == 7 - arange(0, 2)));",
        ..SCAN
    },
    Row {
        name: "histogram",
        params: &[
            req("x", ParamKind::Int),
            req("bins", ParamKind::ConstInt),
            opt("mask", ParamKind::Mask, "true"),
        ],
        op: Op::Scan(ScanOp::Histogram),
        doc: "The number of occurrences of each value `0, .., bins - 1` where the mask is true, as an `i32` tile; \
              other values are ignored.",
        example: "let h = histogram(arange(0, 10) / 2, 4);
assert(all(h == 2));",
        ..SCAN
    },
    Row {
        name: "gather",
        params: &[
            req("x", ParamKind::Value),
            req("index", ParamKind::Int),
            opt("axis", ParamKind::Axis, "0"),
        ],
        op: Op::Scan(ScanOp::Gather),
        doc: "The elements of `x` at these positions along `axis`. Other extents of `index` are those of `x`; if `x` \
              has rank 1, `index` has any shape. `x` may be a compile-time list of numbers: a lookup table. A position \
              out of bounds is an error in checked mode and gives an unspecified element otherwise.",
        example: "assert(all(gather(arange(0, 4) * 10, 3 - arange(0, 4)) == 30 - arange(0, 4) * 10));
const SQUARES = [0, 1, 4, 9];
assert(sum(gather(SQUARES, arange(0, 4))) == 14);",
        ..SCAN
    },
];
