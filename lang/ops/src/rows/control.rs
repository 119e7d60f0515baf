//! The rows of the program model, control flow, hints, debugging and the machine.

use super::{opt, req};
use crate::op::{ControlOp, Op};
use crate::table::{Accuracy, BuiltinParam, Effects, ParamKind, Receiver, Row, Scheme};

const CONTROL: Row = Row {
    name: "",
    receiver: Receiver::None,
    params: &[],
    scheme: Scheme::Special,
    op: Op::Control(ControlOp::For),
    doc: "",
    example: "",
    effects: Effects::Ordered,
    accuracy: Accuracy::Exact,
};

pub(super) const PROGRAM: &[Row] = &[
    Row {
        name: "program_id",
        params: &[req("axis", ParamKind::ConstInt)],
        op: Op::Control(ControlOp::ProgramId),
        doc: "The position of this program in the grid along an axis, an `i32`.",
        example: "kernel number(y: mut view[i32, 2])
    grid(2, 3)
{
    y.store([program_id(0), program_id(1)], program_id(0) * 10 + program_id(1));
}

test \"program_id\" {
    let y = buffer(zeros([2, 3], i32));
    number(y);
    assert(all(y.tile() == (arange(0, 2) * 10)[:, None] + arange(0, 3)[None, :]));
}",
        effects: Effects::Pure,
        ..CONTROL
    },
    Row {
        name: "num_programs",
        params: &[req("axis", ParamKind::ConstInt)],
        op: Op::Control(ControlOp::NumPrograms),
        doc: "The number of programs in the grid along an axis, an `i32`.",
        example: "kernel size(y: mut view[i32, 1])
    grid(2, 3)
{
    y.store([program_id(0) * 3 + program_id(1)], num_programs(0) * 10 + num_programs(1));
}

test \"num_programs\" {
    let y = empty([6], i32);
    size(y);
    assert(all(y.tile() == 23));
}",
        effects: Effects::Pure,
        ..CONTROL
    },
];

pub(super) const FLOW: &[Row] = &[
    Row {
        name: "range",
        params: &[
            req("start", ParamKind::Int),
            req("end", ParamKind::Int),
            opt("step", ParamKind::Int, "1"),
            opt("stages", ParamKind::ConstInt, "none"),
            opt("unroll", ParamKind::ConstInt, "1"),
            opt("flatten", ParamKind::ConstBool, "false"),
            opt("specialize", ParamKind::ConstBool, "false"),
            opt("turns", ParamKind::ConstInt, "1"),
        ],
        doc: "The range of a `for` loop: `start, start + step, ..` up to but excluding `end`. A negative step must be \
              known at compile time. `stages` is the number of iterations in flight, `unroll` the unroll factor, both \
              at least 1; `flatten` fuses a nest of two loops into one, `specialize` gives loads and arithmetic \
              separate warps; devices for which either is faster do it by default. None of them changes a result. With \
              `turns = n` the iterations are as independent as programs: `n` groups of four warps may take them in turns, \
              so that one multiplies while another stores.",
        example: "let mut s = 0;
for i in range(0, 10, 3) {
    s = s * 10 + i;
}
assert(s == 369);
for i in range(2, 0, -1) {
    s += i;
}
assert(s == 372);",
        ..CONTROL
    },
    Row {
        name: "static_range",
        params: &[
            req("start", ParamKind::ConstInt),
            req("end", ParamKind::ConstInt),
            opt("step", ParamKind::ConstInt, "1"),
        ],
        doc: "The range of a `for` loop that is unrolled at compile time: the variable is a compile-time value.",
        example: "let mut s = 0;
for i in static_range(1, 4) {
    s += sum(full([i], i, i32));
}
assert(s == 14);",
        ..CONTROL
    },
    Row {
        name: "map",
        params: &[req("f", ParamKind::Fn), req("x", ParamKind::Rest)],
        op: Op::Control(ControlOp::Map),
        doc: "Applies a function of scalars, including branches, to every element of one or more tiles, which \
              broadcast. It may return a tuple, which gives a tuple of tiles.",
        example: "let x = map(|a, b| a * a + b, arange(0, 4), 1);
assert(all(x == arange(0, 4) * arange(0, 4) + 1));",
        effects: Effects::Pure,
        ..CONTROL
    },
];

/// A promise about the first operand, which it gives back.
const PROMISE: &[BuiltinParam] = &[req("x", ParamKind::Value), req("value", ParamKind::ConstInt)];

pub(super) const HINTS: &[Row] = &[
    Row {
        name: "assume",
        params: &[req("cond", ParamKind::Mask)],
        op: Op::Control(ControlOp::Assume),
        doc: "Promises that a condition holds; the compiler may use it. Checked mode verifies it.",
        example: "let x = arange(0, 4);
assume(all(x < 4));
assert(sum(x) == 6);",
        ..CONTROL
    },
    Row {
        name: "multiple_of",
        params: PROMISE,
        op: Op::Control(ControlOp::MultipleOf),
        doc: "The same integer, or pointer counted in elements, with the promise that it is a multiple; for a tile, \
              that the first element of each aligned run is. Checked mode verifies it.",
        example: "let n = sum(arange(0, 4)) * 8;
assert(multiple_of(n, 16) == 48);",
        effects: Effects::Pure,
        ..CONTROL
    },
    Row {
        name: "max_contiguous",
        params: PROMISE,
        op: Op::Control(ControlOp::MaxContiguous),
        doc: "The same tile with the promise that each aligned run of that many elements along the last dimension \
              counts up by one. Checked mode verifies it.",
        example: "assert(all(max_contiguous(arange(0, 8), 8) == arange(0, 8)));",
        effects: Effects::Pure,
        ..CONTROL
    },
];

pub(super) const DEBUG: &[Row] = &[
    Row {
        name: "assert",
        params: &[req("cond", ParamKind::Mask), opt("message", ParamKind::Str, "\"\"")],
        op: Op::Control(ControlOp::Assert),
        doc: "Fails with the message unless the condition holds everywhere.",
        example: "let x = arange(0, 4);
assert(sum(x) == 6, \"the sum of 0 to 3\");
assert(all(x < 4));",
        ..CONTROL
    },
    Row {
        name: "static_assert",
        params: &[req("cond", ParamKind::ConstBool), opt("message", ParamKind::Str, "\"\"")],
        op: Op::Control(ControlOp::Assert),
        doc: "Fails at compile time with the message unless the condition holds.",
        example: "const N: i32 = 8;
static_assert(N % 4 == 0, \"N is a multiple of 4\");
assert(sum(full([N], 1, i32)) == 8);",
        effects: Effects::Pure,
        ..CONTROL
    },
    Row {
        name: "print",
        params: &[req("values", ParamKind::Rest)],
        op: Op::Control(ControlOp::Print),
        doc: "Prints values of each program, with its ids; string literals are printed verbatim. Lines appear in the \
              order of the programs when the launch ends.",
        example: "kernel show(x: view[i32, 1])
    grid(1)
{
    print(\"x =\", x.load([0], [4]));
}

test \"print\" {
    let x = buffer(arange(0, 4));
    show(x);
    assert(all(x.tile() == arange(0, 4)));
}",
        ..CONTROL
    },
    Row {
        name: "static_print",
        params: &[req("values", ParamKind::Rest)],
        op: Op::Control(ControlOp::Print),
        doc: "Prints compile-time values, types and shapes while compiling.",
        example: "let x = arange(0, 4);
static_print(\"eight is\", 8);
assert(sum(x) == 6);",
        effects: Effects::Pure,
        ..CONTROL
    },
];

pub(super) const MACHINE: &[Row] = &[
    Row {
        name: "grid_barrier",
        op: Op::Control(ControlOp::GridBarrier),
        doc: "Waits until every program of the grid has arrived; afterwards all see what each did before. Needs \
              `launch(cooperative = true)`.",
        example: "kernel turn(x: mut view[i32, 1], y: mut view[i32, 1])
    grid(4)
    launch(cooperative = true)
{
    let i = program_id(0);
    x.store([i], i);
    grid_barrier();
    y.store([i], x.load([3 - i]));
}

test \"grid_barrier\" {
    let y = buffer(zeros([4], i32));
    turn(buffer(zeros([4], i32)), y);
    assert(all(y.tile() == 3 - arange(0, 4)));
}",
        ..CONTROL
    },
    Row {
        name: "globaltimer",
        op: Op::Control(ControlOp::GlobalTimer),
        doc: "The nanoseconds of a clock that all programs share, a `u64`. The resolution depends on the device: on \
              NVIDIA GPUs every 32 ns to 1 µs, on AMD GPUs every 10 or 40 ns.",
        example: "kernel took(y: mut view[u64, 1])
    grid(1)
{
    let before = globaltimer();
    y.store([0], globaltimer() - before);
}

test \"globaltimer\" {
    let y = empty([1], u64);
    took(y);
    assert(all(y.tile() < 10000000000));
}",
        ..CONTROL
    },
    Row {
        name: "smid",
        op: Op::Control(ControlOp::SmId),
        doc: "The number of the multiprocessor that runs this program, an `i32`, to observe how programs are \
              distributed: numbers may have gaps. On the CPU it is 0.",
        example: "kernel places(y: mut view[i32, 1])
    grid(4)
{
    y.store([program_id(0)], smid());
}

test \"smid\" {
    let y = empty([4], i32);
    places(y);
    assert(all(y.tile() >= 0));
}",
        ..CONTROL
    },
    Row {
        name: "inline_asm",
        params: &[
            req("text", ParamKind::Str),
            req("constraints", ParamKind::Str),
            req("dtype", ParamKind::DType),
            opt("pack", ParamKind::ConstInt, "1"),
            req("values", ParamKind::Rest),
        ],
        op: Op::Control(ControlOp::InlineAsm),
        doc: "Instructions of the target for each element, with LLVM's constraints: first those of the results, each \
              with a `=` before it, then those of the values. The result is of type `dtype`; a tuple such as \
              `(i32, f32)` gives a tuple of results. The letters are `b`, `h`, `r`, `l`, `f` and `d` for PTX, and `v` and `s` (values that are \
              the same in all lanes) for AMD; there are no clobbers, and no tied operands. With `pack = n`, which is given by name and is 1, 2, 4, 8 or 16, \
              the instructions run once for n elements of a thread, in an order that is not specified: elements of \
              less than 32 bits come packed in registers of 32, the first in the lowest bits, and others in n \
              registers; each register has a constraint, and `bool` is not packed. Where a thread has fewer elements, its last \
              one is repeated. For use under a compile-time `if`, such as \
              `if target.has_ptx` or `if target.has_gcn`.",
        example: "kernel twice(y: mut view[i32, 1])
    grid(1)
{
    let x = arange(0, 4);
    if target.has_ptx {
        y.store([0], inline_asm(\"add.s32 $0, $1, $1;\", \"=r,r\", i32, x));
    } else if target.has_gcn {
        y.store([0], inline_asm(\"v_lshlrev_b32 $0, 1, $1\", \"=v,v\", i32, x));
    } else {
        y.store([0], x + x);
    }
}

/// The low and the high halves of the squares.
fn squares[N: i32](x: tile[u32, N]) -> (tile[u32, N], tile[u32, N]) {
    if target.has_ptx {
        inline_asm(\"mul.lo.u32 $0, $2, $2; mul.hi.u32 $1, $2, $2;\", \"=&r,=r,r\", (u32, u32), x)
    } else {
        (x * x, mulhi(x, x))
    }
}

/// Sums of halves, two by one instruction.
fn halves_sum[N: i32](x: tile[f16, N], y: tile[f16, N]) -> tile[f16, N] {
    if target.has_ptx {
        inline_asm(\"add.f16x2 $0, $1, $2;\", \"=r,r,r\", f16, x, y, pack = 2)
    } else {
        x + y
    }
}

kernel many(low: mut view[u32, 1], high: mut view[u32, 1], sums: mut view[f16, 1]) {
    let (l, h) = squares(full([4], 1 << 17, u32));
    low.store([0], l);
    high.store([0], h);
    let x = arange(0, 4) as f16;
    sums.store([0], halves_sum(x, x));
}

test \"inline_asm\" {
    let y = buffer(zeros([4], i32));
    twice(y);
    assert(all(y.tile() == arange(0, 4) * 2));
    let (low, high, sums) = (empty([4], u32), empty([4], u32), empty([4], f16));
    many(low, high, sums);
    assert(all(low.tile() == 0) && all(high.tile() == 4));
    assert(all(sums.tile() == (arange(0, 4) * 2) as f16));
}",
        ..CONTROL
    },
];
