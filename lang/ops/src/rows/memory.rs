//! The rows that read and write device memory: through pointers, and through views.

use super::{EVICT, LOAD_CACHE, STORE_CACHE, opt, req};
use crate::op::{MemoryOp, Op};
use crate::table::{Accuracy, Effects, ParamKind, Receiver, Row, Scheme};

const LOAD: Row = Row {
    name: "",
    receiver: Receiver::None,
    params: &[],
    scheme: Scheme::Special,
    op: Op::Memory(MemoryOp::Load),
    doc: "",
    example: "",
    effects: Effects::Read,
    accuracy: Accuracy::Exact,
};

const STORE: Row = Row { effects: Effects::Write, ..LOAD };

const OF_VIEW: Row = Row { receiver: Receiver::View, ..LOAD };

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "load",
        params: &[
            req("ptr", ParamKind::Pointer),
            opt("mask", ParamKind::Mask, "true"),
            opt("other", ParamKind::Value, "0"),
            opt("cache", LOAD_CACHE, "all"),
            opt("evict", EVICT, "normal"),
        ],
        doc: "The values at the pointers where the mask is true, `other` elsewhere. Masked-off lanes are not read. \
              `cache` and `evict` do not change results. Data is cached in all caches, only in the one that all \
              programs share (`global`), or as data that is read once (`streaming`); a `volatile` load is never merged \
              or removed, for memory that other programs write concurrently by atomics. `evict` makes data leave the \
              shared cache before (`first`) or after (`last`) other data. Targets without such instructions ignore the \
              hints.",
        example: "kernel part(x: *i32, y: *mut i32, n: i32)
    grid(1)
{
    let i = arange(0, 4);
    store(y + i, load(x + i, i < n, other = -1));
}

test \"load\" {
    let x = buffer(full([4], 7, i32));
    let y = buffer(zeros([4], i32));
    part(x, y, 2);
    assert(all(y.tile() == where(arange(0, 4) < 2, 7, -1)));
}",
        ..LOAD
    },
    Row {
        name: "store",
        params: &[
            req("ptr", ParamKind::Pointer),
            req("value", ParamKind::Value),
            opt("mask", ParamKind::Mask, "true"),
            opt("cache", STORE_CACHE, "back"),
            opt("evict", EVICT, "normal"),
        ],
        op: Op::Memory(MemoryOp::Store),
        doc: "Writes the values where the mask is true. If several lanes have the same address, it is unspecified \
              which one wins. `cache` and `evict` are hints as in `load`; `through` also writes to memory at once.",
        example: "kernel fill(y: *mut i32, n: i32)
    grid(1)
{
    let i = arange(0, 4);
    store(y + i, i + 10, i < n);
}

test \"store\" {
    let y = buffer(zeros([4], i32));
    fill(y, 3);
    let i = arange(0, 4);
    assert(all(y.tile() == where(i < 3, i + 10, 0)));
}",
        ..STORE
    },
    Row {
        name: "prefetch",
        params: &[
            req("ptr", ParamKind::Pointer),
            opt("mask", ParamKind::Mask, "true"),
            opt("cache", LOAD_CACHE, "all"),
        ],
        op: Op::Memory(MemoryOp::Prefetch),
        doc: "Prefetches the memory at the pointers into the caches, or, with a `cache` other than `all`, into the one \
              that all programs share. A hint without a result; ignored on AMD GPUs.",
        example: "kernel copy(x: *i32, y: *mut i32)
    grid(1)
{
    let i = arange(0, 4);
    prefetch(x + i);
    store(y + i, load(x + i));
}

test \"prefetch\" {
    let y = buffer(zeros([4], i32));
    copy(buffer(arange(0, 4)), y);
    assert(all(y.tile() == arange(0, 4)));
}",
        effects: Effects::Ordered,
        ..LOAD
    },
    Row {
        name: "view",
        params: &[
            req("ptr", ParamKind::Pointer),
            req("shape", ParamKind::Position),
            req("strides", ParamKind::Position),
        ],
        op: Op::Memory(MemoryOp::View),
        doc: "A view of memory with this shape and these strides, counted in elements; `mut` if the pointer is.",
        example: "kernel transpose(x: *i32, y: *mut i32)
    grid(1)
{
    let v = view(x, [2, 3], [3, 1]);
    let w = view(y, [2, 3], [1, 2]);
    w.store([0, 0], v.load([0, 0], [2, 3]));
}

test \"view\" {
    let y = buffer(zeros([3, 2], i32));
    transpose(buffer(arange(0, 6)), y);
    assert(all(y.tile() == reshape(arange(0, 6), [2, 3]).T));
}",
        effects: Effects::Pure,
        ..LOAD
    },
    Row {
        name: "load",
        params: &[
            req("v", ParamKind::View),
            req("at", ParamKind::Position),
            opt("shape", ParamKind::Shape, "one element"),
            opt("other", ParamKind::Value, "0"),
            opt("cache", LOAD_CACHE, "all"),
            opt("evict", EVICT, "normal"),
        ],
        op: Op::Memory(MemoryOp::ViewLoad),
        doc: "The box of this shape that starts at `at`, or without `shape` the element there. Positions outside the \
              view, including negative ones, read `other`.",
        example: "kernel shifted(x: view[i32, 1], y: mut view[i32, 1])
    grid(1)
{
    y.store([0], x.load([1], [4], other = -1) * 10 + x.load([2]));
}

test \"view.load\" {
    let y = buffer(zeros([4], i32));
    shifted(buffer(arange(0, 4)), y);
    let i = arange(0, 4);
    assert(all(y.tile() == where(i < 3, i + 1, -1) * 10 + 2));
}",
        ..OF_VIEW
    },
    Row {
        name: "store",
        params: &[
            req("v", ParamKind::View),
            req("at", ParamKind::Position),
            req("value", ParamKind::Value),
            opt("cache", STORE_CACHE, "back"),
            opt("evict", EVICT, "normal"),
        ],
        op: Op::Memory(MemoryOp::ViewStore),
        doc: "Writes a tile to the box that starts at `at`, or a scalar to the element there. Positions outside the \
              view are not written.",
        example: "kernel corner(y: mut view[i32, 2])
    grid(1)
{
    y.store([1, 1], full([4, 4], 5, i32));
    y.store([0, 0], 3);
}

test \"view.store\" {
    let y = buffer(zeros([3, 3], i32));
    corner(y);
    assert(sum(y.tile()) == 23);
    assert(all(max(y.tile(), axis = 1) == where(arange(0, 3) == 0, 3, 5)));
}",
        effects: Effects::Write,
        ..OF_VIEW
    },
    Row {
        name: "inside",
        params: &[req("v", ParamKind::View), req("at", ParamKind::Position), req("shape", ParamKind::Shape)],
        op: Op::Memory(MemoryOp::ViewInside),
        doc: "The `bool` tile of the positions of a box that are inside the view.",
        example: "kernel count(x: view[i32, 2], y: mut view[i32, 1])
    grid(1)
{
    let inside = x.inside([1, -1], [4, 4]);
    y.store([0], sum(inside as i32, axis = 1));
}

test \"view.inside\" {
    let y = buffer(zeros([4], i32));
    count(buffer(zeros([3, 2], i32)), y);
    assert(all(y.tile() == where(arange(0, 4) < 2, 2, 0)));
}",
        effects: Effects::Pure,
        ..OF_VIEW
    },
    Row {
        name: "permute",
        params: &[req("v", ParamKind::View), req("order", ParamKind::ConstInts)],
        op: Op::Memory(MemoryOp::ViewPermute),
        doc: "The view with its dimensions in another order: dimension `i` is dimension `order[i]`, without a copy; \
              `v.T` is the order `[1, 0]`.",
        example: "kernel turn(x: view[i32, 2], y: mut view[i32, 2])
    grid(1)
{
    y.store([0, 0], x.permute([1, 0]).load([0, 0], [3, 2]));
}

test \"view.permute\" {
    let x = reshape(arange(0, 6), [2, 3]);
    let y = buffer(zeros([3, 2], i32));
    turn(buffer(x), y);
    assert(all(y.tile() == x.T));
}",
        effects: Effects::Pure,
        ..OF_VIEW
    },
    Row {
        name: "gather",
        params: &[
            req("v", ParamKind::View),
            req("at", ParamKind::Positions),
            opt("mask", ParamKind::Mask, "true"),
            opt("other", ParamKind::Value, "0"),
            opt("cache", LOAD_CACHE, "all"),
            opt("evict", EVICT, "normal"),
        ],
        op: Op::Memory(MemoryOp::ViewGather),
        doc: "The elements at these positions: one integer tile or scalar per axis, broadcast to one shape. Where \
              the mask is false or a position is outside, `other`.",
        example: "kernel pick(x: view[i32, 2], y: mut view[i32, 1])
    grid(1)
{
    let i = arange(0, 4);
    y.store([0], x.gather([i, 1], i != 2, other = -1));
}

test \"view.gather\" {
    let y = buffer(zeros([4], i32));
    pick(buffer(reshape(arange(0, 6), [3, 2])), y);
    let i = arange(0, 4);
    assert(all(y.tile() == where(i < 2, i * 2 + 1, -1)));
}",
        ..OF_VIEW
    },
    Row {
        name: "scatter",
        params: &[
            req("v", ParamKind::View),
            req("at", ParamKind::Positions),
            req("value", ParamKind::Value),
            opt("mask", ParamKind::Mask, "true"),
            opt("cache", STORE_CACHE, "back"),
            opt("evict", EVICT, "normal"),
        ],
        op: Op::Memory(MemoryOp::ViewScatter),
        doc: "Writes values to these positions: one integer tile or scalar per axis, broadcast to one shape. Where \
              the mask is false or a position is outside, nothing is written.",
        example: "kernel place(y: mut view[i32, 2])
    grid(1)
{
    let i = arange(0, 4);
    y.scatter([i, 1], i + 5, i != 1);
}

test \"view.scatter\" {
    let y = buffer(zeros([3, 2], i32));
    place(y);
    assert(sum(y.tile()) == 12);
    assert(all(sum(y.tile(), axis = 0) == arange(0, 2) * 12));
}",
        effects: Effects::Write,
        ..OF_VIEW
    },
];
