//! The rows that rearrange elements.

use super::{opt, req};
use crate::op::{Op, ShapeOp};
use crate::table::{Accuracy, Effects, ParamKind, Receiver, Row, Scheme};

const SHAPE: Row = Row {
    name: "",
    receiver: Receiver::None,
    params: &[],
    scheme: Scheme::Special,
    op: Op::Shape(ShapeOp::Reshape),
    doc: "",
    example: "",
    effects: Effects::Pure,
    accuracy: Accuracy::Exact,
};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "reshape",
        params: &[req("x", ParamKind::Value), req("shape", ParamKind::Shape)],
        doc: "The same elements in row-major order with another shape of the same size.",
        example: "let x = reshape(arange(0, 6), [2, 3]);
assert(all(sum(x, axis = 1) == arange(0, 2) * 9 + 3));",
        ..SHAPE
    },
    Row {
        name: "permute",
        params: &[req("x", ParamKind::Value), req("order", ParamKind::ConstInts)],
        op: Op::Shape(ShapeOp::Permute),
        doc: "Dimensions in another order: dimension `i` of the result is dimension `order[i]` of `x`.",
        example: "let x = permute(reshape(arange(0, 6), [2, 3]), [1, 0]);
assert(all(sum(x, axis = 1) == arange(0, 3) * 2 + 3));",
        ..SHAPE
    },
    Row {
        name: "permute",
        receiver: Receiver::Tile,
        params: &[req("x", ParamKind::Value), req("order", ParamKind::ConstInts)],
        op: Op::Shape(ShapeOp::Permute),
        doc: "Dimensions in another order: dimension `i` of the result is dimension `order[i]` of the tile. `x.T` is \
              the order `[1, 0]`.",
        example: "let x = reshape(arange(0, 6), [2, 3]);
assert(all(x.permute([1, 0]) == x.T));
assert(all(sum(x.permute([1, 0]), axis = 1) == arange(0, 3) * 2 + 3));",
        ..SHAPE
    },
    Row {
        name: "broadcast_to",
        params: &[req("x", ParamKind::Value), req("shape", ParamKind::Shape)],
        op: Op::Shape(ShapeOp::Broadcast),
        doc: "Dimensions of extent 1 repeated up to a shape of the same rank. A scalar fills any shape.",
        example: "let x = broadcast_to(arange(0, 3)[None, :], [2, 3]);
assert(all(sum(x, axis = 0) == arange(0, 3) * 2));
assert(all(sum(x, axis = 1) == 3));",
        ..SHAPE
    },
    Row {
        name: "expand",
        params: &[req("x", ParamKind::Value), req("axis", ParamKind::Axis)],
        doc: "A new dimension of extent 1 at `axis`. `expand(x, 0)` is `x[None, :]` for rank 1.",
        example: "let x = expand(arange(0, 3), 0) + expand(arange(0, 2), 1);
assert(all(sum(x, axis = 1) == arange(0, 2) * 3 + 3));",
        ..SHAPE
    },
    Row {
        name: "ravel",
        params: &[req("x", ParamKind::Value)],
        doc: "All elements in row-major order as a tile of rank 1.",
        example: "assert(all(ravel(reshape(arange(0, 6), [2, 3])) == arange(0, 6)));",
        ..SHAPE
    },
    Row {
        name: "flip",
        params: &[req("x", ParamKind::Value), req("axis", ParamKind::Axis)],
        op: Op::Shape(ShapeOp::Flip),
        doc: "The elements along `axis` in reverse order.",
        example: "assert(all(flip(arange(0, 3), axis = 0) == 2 - arange(0, 3)));",
        ..SHAPE
    },
    Row {
        name: "join",
        params: &[req("a", ParamKind::Value), req("b", ParamKind::Value)],
        op: Op::Shape(ShapeOp::Join),
        doc: "Two tiles of one shape side by side in a new last dimension of 2.",
        example: "let x = join(arange(0, 2), arange(2, 4));
assert(all(sum(x, axis = 0) == arange(0, 2) * 4 + 1));",
        ..SHAPE
    },
    Row {
        name: "split",
        params: &[req("x", ParamKind::Value)],
        op: Op::Shape(ShapeOp::Split),
        doc: "The two halves of a last dimension of 2, as a tuple: the inverse of `join`.",
        example: "let (a, b) = split(reshape(arange(0, 4), [2, 2]));
assert(all(a == arange(0, 2) * 2));
assert(all(b == arange(0, 2) * 2 + 1));",
        ..SHAPE
    },
    Row {
        name: "cat",
        params: &[req("a", ParamKind::Value), req("b", ParamKind::Value), opt("axis", ParamKind::Axis, "0")],
        op: Op::Shape(ShapeOp::Cat),
        doc: "One tile after the other along `axis`; the other extents agree.",
        example: "assert(all(cat(arange(0, 2), arange(2, 5)) == arange(0, 5)));",
        ..SHAPE
    },
    Row {
        name: "interleave",
        params: &[req("a", ParamKind::Value), req("b", ParamKind::Value)],
        op: Op::Shape(ShapeOp::Interleave),
        doc: "Alternating elements of two tiles of one shape along the last dimension.",
        example: "assert(all(interleave(arange(0, 2) * 2, arange(0, 2) * 2 + 1) == arange(0, 4)));",
        ..SHAPE
    },
];
