//! The rows of atomics, on pointers and on views.

use super::{ORDER, SCOPE, opt, req};
use crate::op::{AtomicOp, Op};
use crate::table::{Accuracy, BuiltinParam, Effects, ParamKind, Receiver, Row, Scheme};

/// A pointer and a value.
const UPDATE: &[BuiltinParam] = &[
    req("ptr", ParamKind::Pointer),
    req("value", ParamKind::Value),
    opt("mask", ParamKind::Mask, "true"),
    opt("order", ORDER, "relaxed"),
    opt("scope", SCOPE, "device"),
];

/// Positions in a view and a value.
const UPDATE_VIEW: &[BuiltinParam] = &[
    req("v", ParamKind::View),
    req("at", ParamKind::Positions),
    req("value", ParamKind::Value),
    opt("mask", ParamKind::Mask, "true"),
    opt("order", ORDER, "relaxed"),
    opt("scope", SCOPE, "device"),
];

const ATOMIC: Row = Row {
    name: "",
    receiver: Receiver::None,
    params: UPDATE,
    scheme: Scheme::Special,
    op: Op::Atomic(AtomicOp::Add),
    doc: "",
    example: "",
    effects: Effects::Ordered,
    accuracy: Accuracy::Exact,
};

const OF_VIEW: Row = Row { receiver: Receiver::View, params: UPDATE_VIEW, ..ATOMIC };

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "atomic_add",
        doc: "Adds to memory in one step and returns the old value. Pointers and values broadcast; each element acts \
              once. Masked-off lanes give zero.",
        example: "kernel update(y: *mut i32)
    grid(4)
{
    let i = program_id(0);
    atomic_add(y, i + 1);
}

test \"atomic_add\" {
    let y = buffer(full([1], 0, i32));
    update(y);
    assert(all(y.tile() == 10));
}",
        accuracy: Accuracy::Rounded,
        ..ATOMIC
    },
    Row {
        name: "atomic_max",
        op: Op::Atomic(AtomicOp::Max),
        doc: "Stores the larger of memory and value (by the total order of floats) and returns the old value. Pointers \
              and values broadcast; each element acts once. Masked-off lanes give zero.",
        example: "kernel update(y: *mut i32)
    grid(4)
{
    let i = program_id(0);
    atomic_max(y, i);
}

test \"atomic_max\" {
    let y = buffer(full([1], 2, i32));
    update(y);
    assert(all(y.tile() == 3));
}",
        ..ATOMIC
    },
    Row {
        name: "atomic_min",
        op: Op::Atomic(AtomicOp::Min),
        doc: "Stores the smaller of memory and value (by the total order of floats) and returns the old value. \
              Pointers and values broadcast; each element acts once. Masked-off lanes give zero.",
        example: "kernel update(y: *mut i32)
    grid(4)
{
    let i = program_id(0);
    atomic_min(y, i - 2);
}

test \"atomic_min\" {
    let y = buffer(full([1], 0, i32));
    update(y);
    assert(all(y.tile() == -2));
}",
        ..ATOMIC
    },
    Row {
        name: "atomic_and",
        op: Op::Atomic(AtomicOp::And),
        doc: "Clears the bits of memory that are not set in the value and returns the old bits. Pointers and values \
              broadcast; each element acts once. Masked-off lanes give zero.",
        example: "kernel update(y: *mut i32)
    grid(4)
{
    let i = program_id(0);
    atomic_and(y, 15 - (1 << i));
}

test \"atomic_and\" {
    let y = buffer(full([1], 31, i32));
    update(y);
    assert(all(y.tile() == 0));
}",
        ..ATOMIC
    },
    Row {
        name: "atomic_or",
        op: Op::Atomic(AtomicOp::Or),
        doc: "Sets the bits of memory that are set in the value and returns the old bits. Pointers and values \
              broadcast; each element acts once. Masked-off lanes give zero.",
        example: "kernel update(y: *mut i32)
    grid(4)
{
    let i = program_id(0);
    atomic_or(y, 1 << i);
}

test \"atomic_or\" {
    let y = buffer(full([1], 16, i32));
    update(y);
    assert(all(y.tile() == 31));
}",
        ..ATOMIC
    },
    Row {
        name: "atomic_xor",
        op: Op::Atomic(AtomicOp::Xor),
        doc: "Flips the bits of memory that are set in the value and returns the old bits. Pointers and values \
              broadcast; each element acts once. Masked-off lanes give zero.",
        example: "kernel update(y: *mut i32)
    grid(4)
{
    let i = program_id(0);
    atomic_xor(y, 3 << i);
}

test \"atomic_xor\" {
    let y = buffer(full([1], 0, i32));
    update(y);
    assert(all(y.tile() == 17));
}",
        ..ATOMIC
    },
    Row {
        name: "atomic_xchg",
        op: Op::Atomic(AtomicOp::Xchg),
        doc: "Writes the value and returns the old one. Pointers and values broadcast; each element acts once. \
              Masked-off lanes give zero.",
        example: "kernel update(y: *mut i32)
    grid(4)
{
    let i = program_id(0);
    atomic_xchg(y, 7);
}

test \"atomic_xchg\" {
    let y = buffer(full([1], 1, i32));
    update(y);
    assert(all(y.tile() == 7));
}",
        ..ATOMIC
    },
    Row {
        name: "atomic_cas",
        params: &[
            req("ptr", ParamKind::Pointer),
            req("compare", ParamKind::Value),
            req("value", ParamKind::Value),
            opt("mask", ParamKind::Mask, "true"),
            opt("order", ORDER, "relaxed"),
            opt("scope", SCOPE, "device"),
        ],
        op: Op::Atomic(AtomicOp::Cas),
        doc: "Writes the value where memory equals `compare`, in one step, and returns the old value. The comparison \
              is by bits. Masked-off lanes give zero.",
        example: "kernel update(y: *mut i32)
    grid(4)
{
    let i = program_id(0);
    atomic_cas(y, i, i + 1);
}

test \"atomic_cas\" {
    let y = buffer(full([1], 3, i32));
    update(y);
    assert(all(y.tile() == 4));
}",
        ..ATOMIC
    },
    Row {
        name: "atomic_load",
        params: &[
            req("ptr", ParamKind::Pointer),
            opt("mask", ParamKind::Mask, "true"),
            opt("other", ParamKind::Value, "0"),
            opt("order", ORDER, "relaxed"),
            opt("scope", SCOPE, "device"),
        ],
        op: Op::Atomic(AtomicOp::Load),
        doc: "Reads memory that other programs write concurrently; `other` where the mask is false.",
        example: "kernel update(y: *mut i32)
    grid(4)
{
    let i = program_id(0);
    atomic_add(y, where(atomic_load(y) > 100, 1, 0));
}

test \"atomic_load\" {
    let y = buffer(full([1], 200, i32));
    update(y);
    assert(all(y.tile() == 204));
}",
        ..ATOMIC
    },
    Row {
        name: "atomic_store",
        op: Op::Atomic(AtomicOp::Store),
        doc: "Writes memory that other programs read concurrently.",
        example: "kernel update(y: *mut i32)
    grid(4)
{
    let i = program_id(0);
    atomic_store(y, 9);
}

test \"atomic_store\" {
    let y = buffer(full([1], 0, i32));
    update(y);
    assert(all(y.tile() == 9));
}",
        ..ATOMIC
    },
    Row {
        name: "atomic_add",
        doc: "Adds to memory in one step and returns the old value at these positions of the view. Positions that are \
              out of bounds or masked off are not modified and give zero.",
        example: "kernel update(y: mut view[i32, 1])
    grid(4)
{
    let i = program_id(0);
    y.atomic_add([0], i + 1);
}

test \"view.atomic_add\" {
    let y = buffer(full([1], 0, i32));
    update(y);
    assert(all(y.tile() == 10));
}",
        accuracy: Accuracy::Rounded,
        ..OF_VIEW
    },
    Row {
        name: "atomic_max",
        op: Op::Atomic(AtomicOp::Max),
        doc: "Stores the larger of memory and value (by the total order of floats) and returns the old value at these \
              positions of the view. Positions that are out of bounds or masked off are not modified and give zero.",
        example: "kernel update(y: mut view[i32, 1])
    grid(4)
{
    let i = program_id(0);
    y.atomic_max([0], i);
}

test \"view.atomic_max\" {
    let y = buffer(full([1], 2, i32));
    update(y);
    assert(all(y.tile() == 3));
}",
        ..OF_VIEW
    },
    Row {
        name: "atomic_min",
        op: Op::Atomic(AtomicOp::Min),
        doc: "Stores the smaller of memory and value (by the total order of floats) and returns the old value at these \
              positions of the view. Positions that are out of bounds or masked off are not modified and give zero.",
        example: "kernel update(y: mut view[i32, 1])
    grid(4)
{
    let i = program_id(0);
    y.atomic_min([0], i - 2);
}

test \"view.atomic_min\" {
    let y = buffer(full([1], 0, i32));
    update(y);
    assert(all(y.tile() == -2));
}",
        ..OF_VIEW
    },
    Row {
        name: "atomic_and",
        op: Op::Atomic(AtomicOp::And),
        doc: "Clears the bits of memory that are not set in the value and returns the old bits at these positions of \
              the view. Positions that are out of bounds or masked off are not modified and give zero.",
        example: "kernel update(y: mut view[i32, 1])
    grid(4)
{
    let i = program_id(0);
    y.atomic_and([0], 15 - (1 << i));
}

test \"view.atomic_and\" {
    let y = buffer(full([1], 31, i32));
    update(y);
    assert(all(y.tile() == 0));
}",
        ..OF_VIEW
    },
    Row {
        name: "atomic_or",
        op: Op::Atomic(AtomicOp::Or),
        doc: "Sets the bits of memory that are set in the value and returns the old bits at these positions of the \
              view. Positions that are out of bounds or masked off are not modified and give zero.",
        example: "kernel update(y: mut view[i32, 1])
    grid(4)
{
    let i = program_id(0);
    y.atomic_or([0], 1 << i);
}

test \"view.atomic_or\" {
    let y = buffer(full([1], 16, i32));
    update(y);
    assert(all(y.tile() == 31));
}",
        ..OF_VIEW
    },
    Row {
        name: "atomic_xor",
        op: Op::Atomic(AtomicOp::Xor),
        doc: "Flips the bits of memory that are set in the value and returns the old bits at these positions of the \
              view. Positions that are out of bounds or masked off are not modified and give zero.",
        example: "kernel update(y: mut view[i32, 1])
    grid(4)
{
    let i = program_id(0);
    y.atomic_xor([0], 3 << i);
}

test \"view.atomic_xor\" {
    let y = buffer(full([1], 0, i32));
    update(y);
    assert(all(y.tile() == 17));
}",
        ..OF_VIEW
    },
    Row {
        name: "atomic_xchg",
        op: Op::Atomic(AtomicOp::Xchg),
        doc: "Writes the value and returns the old one at these positions of the view. Positions that are out of \
              bounds or masked off are not modified and give zero.",
        example: "kernel update(y: mut view[i32, 1])
    grid(4)
{
    let i = program_id(0);
    y.atomic_xchg([0], 7);
}

test \"view.atomic_xchg\" {
    let y = buffer(full([1], 1, i32));
    update(y);
    assert(all(y.tile() == 7));
}",
        ..OF_VIEW
    },
    Row {
        name: "atomic_cas",
        params: &[
            req("v", ParamKind::View),
            req("at", ParamKind::Positions),
            req("compare", ParamKind::Value),
            req("value", ParamKind::Value),
            opt("mask", ParamKind::Mask, "true"),
            opt("order", ORDER, "relaxed"),
            opt("scope", SCOPE, "device"),
        ],
        op: Op::Atomic(AtomicOp::Cas),
        doc: "Writes the value where the element equals `compare`, in one step, and returns the old value. Positions \
              that are out of bounds or masked off are not modified and give zero.",
        example: "kernel update(y: mut view[i32, 1])
    grid(4)
{
    let i = program_id(0);
    y.atomic_cas([0], i, i + 1);
}

test \"view.atomic_cas\" {
    let y = buffer(full([1], 3, i32));
    update(y);
    assert(all(y.tile() == 4));
}",
        ..OF_VIEW
    },
];
