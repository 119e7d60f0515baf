//! The rows of random numbers on the device.

use super::req;
use crate::op::{Op, RandomOp};
use crate::table::{Accuracy, BuiltinParam, Effects, ParamKind, Receiver, Row, Scheme};

const PARAMS: &[BuiltinParam] = &[req("seed", ParamKind::Int), req("offset", ParamKind::Int)];

const RANDOM: Row = Row {
    name: "",
    receiver: Receiver::None,
    params: PARAMS,
    scheme: Scheme::Special,
    op: Op::Random(RandomOp::Rand),
    doc: "",
    example: "",
    effects: Effects::Pure,
    accuracy: Accuracy::Exact,
};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "rand",
        doc: "Uniform f32 numbers in [0, 1), one for each offset: Philox-4x32-10 with the `u64` seed as key and \
              (offset, 0, 0, 0) as counter, `(word 0 >> 8) * 2^-24`.",
        example: "assert(all(rand(0, zeros([4], i32)) == 0.3990464210510254));
let r = rand(7, arange(0, 64));
assert(all(r >= 0.0 && r < 1.0));",
        ..RANDOM
    },
    Row {
        name: "rand4",
        op: Op::Random(RandomOp::Rand4),
        doc: "Four uniform f32 tiles as a tuple, from the four words of each offset; see `rand`.",
        example: "let (a, b, c, d) = rand4(0, zeros([4], i32));
assert(all(a == 0.3990464210510254) && all(b == 0.8805201649665833));
assert(all(c == 0.7357127666473389) && all(d == 0.6054818034172058));",
        ..RANDOM
    },
    Row {
        name: "randn",
        op: Op::Random(RandomOp::Randn),
        doc: "Normal f32 numbers, one for each offset: `sqrt(-2 log(u)) * cos(2 pi v)` of words 0 and 1 of `rand4`, \
              where u is the first plus 2^-24.",
        example: "assert_close(randn(0, zeros([4], i32)), full([4], 0.99113748, f32));",
        accuracy: Accuracy::Ulp(8.0),
        ..RANDOM
    },
    Row {
        name: "randint",
        op: Op::Random(RandomOp::RandInt),
        doc: "Uniform `u32` numbers, one for each offset: word 0; see `rand`.",
        example: "assert(all(randint(0, zeros([4], i32)) == 1713891541));",
        ..RANDOM
    },
];
