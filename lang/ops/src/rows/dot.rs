//! The rows of matrix products.

use super::{opt, req};
use crate::op::{DotOp, Op};
use crate::table::{Accuracy, Effects, ParamKind, Receiver, Row, Scheme};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "dot",
        receiver: Receiver::None,
        params: &[
            req("a", ParamKind::Value),
            req("b", ParamKind::Value),
            opt("acc", ParamKind::Value, "none"),
            opt("precision", ParamKind::Word(&["ieee", "tf32", "tf32x3", "bf16x3", "bf16x6"]), "ieee"),
        ],
        scheme: Scheme::Special,
        op: Op::Dot(DotOp::Dot),
        doc: "The matrix product of `[M, K]` and `[K, N]`, added to `acc` in its type; for `[B, M, K]` and `[B, K, N]` \
              the product of each of the `B` pairs, which is `[B, M, N]`. Without `acc` the result has type `T.acc`. \
              The element types agree, except that the two fp8 types mix; f32 operands keep all their bits by default: \
              `tf32` and `tf32x3` round operands to one or two tf32, `bf16x3` and `bf16x6` split them into the sum of \
              two or three bf16 and add 3 or 6 products of these.",
        example: "let a = reshape(arange(0, 4), [2, 2]) as f32;
assert(all(sum(dot(a, a), axis = 1) == (arange(0, 2) * 12 + 5) as f32));
assert(sum(dot(a as f16, a as f16, full([2, 2], 1.0, f32))) == 26.0);
let both = cat(a[None], (a + 1.0)[None], axis = 0);
assert(all(dot(both, both)[1] == dot(a + 1.0, a + 1.0)));
assert(all(dot(a + 0.0625, a, precision = bf16x3) == dot(a + 0.0625, a)));",
        effects: Effects::Pure,
        accuracy: Accuracy::Ulp(1.0),
    },
    Row {
        name: "dot_scaled",
        receiver: Receiver::None,
        params: &[
            req("a", ParamKind::Value),
            req("a_scale", ParamKind::Value),
            req("b", ParamKind::Value),
            req("b_scale", ParamKind::Value),
            opt("acc", ParamKind::Value, "none"),
        ],
        scheme: Scheme::Special,
        op: Op::Dot(DotOp::DotScaled),
        doc: "The matrix product of narrow floats (fp8, `e2m1`, f16, bf16) with a common `e8m0` scale for each block \
              along K. `a_scale` is `[M, K / B]`, `b_scale` is `[K / B, N]`; the result is f32. An operand times its \
              scale is rounded to bf16 if both operands have at most 8 bits, else to f32, or to f64 if one of them is \
              f64, which only changes values that are too large or too small for that type. The rest is as in `dot`.",
        example: "let a = full([2, 32], 1.0, f32) as f8e4m3;
let s = bitcast(full([2, 1], 128, u8), e8m0);
assert(all(dot_scaled(a, s, a.T, s.T) == 128.0));",
        effects: Effects::Pure,
        accuracy: Accuracy::Ulp(1.0),
    },
];
