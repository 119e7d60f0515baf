//! The rows that only `test` blocks know.

use super::{opt, req};
use crate::op::{HostOp, Op};
use crate::table::{Accuracy, Effects, ParamKind, Receiver, Row, Scheme};

const HOST: Row = Row {
    name: "",
    receiver: Receiver::Test,
    params: &[],
    scheme: Scheme::Special,
    op: Op::Host(HostOp::Buffer),
    doc: "",
    example: "",
    effects: Effects::Ordered,
    accuracy: Accuracy::Exact,
};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "buffer",
        params: &[req("x", ParamKind::Value)],
        doc: "A contiguous tensor in device memory with the elements of a tile, as an argument for a kernel.",
        example: "let x = buffer(arange(0, 4));
assert(all(x.tile() == arange(0, 4)));",
        ..HOST
    },
    Row {
        name: "empty",
        params: &[req("shape", ParamKind::Shape), req("dtype", ParamKind::DType)],
        op: Op::Host(HostOp::Empty),
        doc: "An uninitialized contiguous tensor in device memory, for results of a kernel. In checked mode reading an \
              element before it is written is E0709, in the kernel and by `tile`.",
        example: "kernel fill(x: mut view[i32, 1])
    grid(1)
{
    x.store([0], full([4], 7, i32));
}

test \"empty\" {
    let x = empty([4], i32);
    fill(x);
    assert(all(x.tile() == 7));
}",
        ..HOST
    },
    Row {
        name: "pointers",
        params: &[req("x", ParamKind::Rest)],
        op: Op::Host(HostOp::Pointers),
        doc: "A table in device memory with the addresses of buffers of one element type: an argument for a `view[*T, 1]`, \
              `view[*mut T, 1]` or `**T`.",
        example: "kernel fill(tables: view[*mut i32, 1])
    grid(tables.shape[0])
{
    let p = program_id(0);
    view(tables.load([p]), [4], [1]).store([0], full([4], p, i32));
}

test \"pointers\" {
    let (x, y) = (empty([4], i32), empty([4], i32));
    fill(pointers(x, y));
    assert(all(x.tile() == 0));
    assert(all(y.tile() == 1));
}",
        ..HOST
    },
    Row {
        name: "tile",
        receiver: Receiver::Buffer,
        params: &[req("x", ParamKind::View)],
        op: Op::Host(HostOp::Tile),
        doc: "The current elements of the buffer, as a tile.",
        example: "let x = buffer(reshape(arange(0, 6), [2, 3]));
assert(all(sum(x.tile(), axis = 1) == arange(0, 2) * 9 + 3));",
        ..HOST
    },
    Row {
        name: "randn",
        params: &[
            req("shape", ParamKind::Shape),
            req("dtype", ParamKind::DType),
            req("seed", ParamKind::ConstInt),
        ],
        op: Op::Host(HostOp::Randn),
        doc: "Normal numbers that depend only on the seed: element i is that of offset i of the device function \
              `randn`, computed in f64 and rounded to the element type.",
        example: "let x = randn([1024], f32, seed = 7);
assert(abs(sum(where(arange(0, 1024) == 1, x, 0.0)) - 0.37640346) < 0.000001);
assert(abs(sum(x) / 1024.0) < 0.2 && abs(sum(x * x) / 1024.0 - 1.0) < 0.2);",
        ..HOST
    },
    Row {
        name: "uniform",
        params: &[
            req("shape", ParamKind::Shape),
            req("low", ParamKind::Value),
            req("high", ParamKind::Value),
            req("dtype", ParamKind::DType),
            req("seed", ParamKind::ConstInt),
        ],
        op: Op::Host(HostOp::Uniform),
        doc: "Uniform numbers in [low, high) that depend only on the seed; integers are rounded down.",
        example: "let x = uniform([1024], -2.0, 2.0, f32, seed = 7);
assert(all(x >= -2.0 && x < 2.0));
assert(abs(sum(x) / 1024.0) < 0.2);
let i = uniform([64], 0, 4, i32, seed = 7);
assert(min(i) == 0 && max(i) == 3);",
        ..HOST
    },
    Row {
        name: "npy",
        params: &[
            req("path", ParamKind::Str),
            req("shape", ParamKind::Shape),
            req("dtype", ParamKind::DType),
        ],
        op: Op::Host(HostOp::Npy),
        doc: "The contents of an `.npy` file next to the test, or of a tensor of a `.safetensors` file \
              (`model.safetensors#key`); shape and element type must be those of the file. The file of the example \
              contains `arange(0, 6)` as `[2, 3]`.",
        example: "let x = npy(\"arange.npy\", [2, 3], i32);
assert(all(x == reshape(arange(0, 6), [2, 3])));",
        ..HOST
    },
    Row {
        name: "assert_close",
        params: &[
            req("a", ParamKind::Value),
            req("b", ParamKind::Value),
            opt("rtol", ParamKind::ConstFloat, "1e-5"),
            opt("atol", ParamKind::ConstFloat, "1e-8"),
        ],
        op: Op::Host(HostOp::AssertClose),
        doc: "Fails unless `abs(a - b) <= atol + rtol * abs(b)` for every element, and names the worst one. NaN is \
              close to NaN, an infinity to itself.",
        example: "assert_close(full([4], 1.0, f32), full([4], 1.000001, f32));
assert_close(full([4], 1.0, f32), full([4], 1.4, f32), rtol = 0.0, atol = 0.5);
assert_close(full([4], nan, f32), full([4], nan, f32));",
        ..HOST
    },
];
