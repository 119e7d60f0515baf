//! V09: the attributes of each operation, and their kinds.
//!
//! Requires nothing. Guarantees names and kinds; attributes that depend on types (an axis, a permutation) are checked
//! with the operation.

use tk_ops::{AtomicOp, ControlOp, CreateOp, DotOp, HostOp, MemoryOp, Op, ReduceOp, ScanOp, ShapeOp};

use crate::attr::Attr;
use crate::ir::Inst;
use crate::verify::{Check, Invariant, ensure, fault};

/// The attributes that an operation needs, and those that it may have besides.
type Known = (&'static [&'static str], &'static [&'static str]);

const NONE: Known = (&[], &[]);
const AXIS: Known = (&["axis"], &[]);
const PERM: Known = (&["perm"], &[]);
/// `vector`, `bounded`, `ragged` and `shifted` are what code generation decides.
const CACHED: Known = (&[], &["cache", "evict", "vector"]);
const POINTERS: Known = (&[], &["cache", "evict", "ragged", "vector"]);
const BOX: Known = (&[], &["bounded", "cache", "evict", "ragged", "shifted", "vector"]);

/// The attributes of `op`.
fn known(op: Op) -> Known {
    match op {
        Op::Elementwise(_) => (&[], &["fast"]),
        Op::Create(o) => match o {
            CreateOp::Const => (&["value"], &[]),
            CreateOp::Table => (&["values"], &[]),
            CreateOp::Arange => (&["start"], &[]),
            CreateOp::Splat | CreateOp::Undef => NONE,
        },
        Op::Shape(o) => match o {
            ShapeOp::Permute => PERM,
            ShapeOp::Flip | ShapeOp::Cat => AXIS,
            ShapeOp::Slice => (&["starts"], &[]),
            ShapeOp::Reshape | ShapeOp::Broadcast | ShapeOp::Join | ShapeOp::Split | ShapeOp::Interleave => {
                NONE
            }
        },
        Op::Memory(o) => memory(o),
        Op::Atomic(o) => match o {
            AtomicOp::Add
            | AtomicOp::Max
            | AtomicOp::Min
            | AtomicOp::And
            | AtomicOp::Or
            | AtomicOp::Xor
            | AtomicOp::Xchg
            | AtomicOp::Cas
            | AtomicOp::Load
            | AtomicOp::Store => (&[], &["order", "scope"]),
        },
        Op::Reduce(o) => match o {
            ReduceOp::Custom => (&["axis"], &["fast", "ordered"]),
            ReduceOp::Sum
            | ReduceOp::Prod
            | ReduceOp::Max
            | ReduceOp::Min
            | ReduceOp::Any
            | ReduceOp::All
            | ReduceOp::XorSum
            | ReduceOp::Or
            | ReduceOp::ArgMax
            | ReduceOp::ArgMin => (&["axis"], &["fast"]),
        },
        Op::Scan(o) => match o {
            ScanOp::CumSum | ScanOp::CumProd => (&["axis"], &["fast", "reverse"]),
            ScanOp::Custom => (&["axis"], &["fast", "ordered", "reverse"]),
            ScanOp::Sort => (&["axis"], &["descending"]),
            ScanOp::TopK => (&["k"], &["axis"]),
            ScanOp::Histogram => (&["bins"], &[]),
            ScanOp::Gather => AXIS,
        },
        Op::Dot(o) => match o {
            DotOp::Dot | DotOp::DotScaled => (&[], &["fast", "precision"]),
        },
        Op::Random(_) => (&[], &["fast"]),
        Op::Control(o) => control(o),
        Op::Host(o) => match o {
            HostOp::Buffer | HostOp::Pointers => NONE,
            HostOp::Tile => (&[], &["case"]),
            HostOp::Empty => (&["shape"], &[]),
            HostOp::Launch => (&["callee"], &["absent", "cargs", "case"]),
            HostOp::Randn | HostOp::Uniform => (&["seed"], &[]),
            HostOp::Npy => (&["path"], &[]),
            HostOp::AssertClose => (&["atol", "rtol"], &["case"]),
            HostOp::ExpectError => (&["code"], &[]),
        },
        // No tile module holds one: V15.
        Op::Target => NONE,
    }
}

fn memory(op: MemoryOp) -> Known {
    match op {
        MemoryOp::PtrAdd | MemoryOp::View | MemoryOp::ViewPtr => NONE,
        MemoryOp::ViewInside => (&[], &["vector"]),
        MemoryOp::ViewLoad | MemoryOp::ViewStore => BOX,
        MemoryOp::Load | MemoryOp::Store => POINTERS,
        MemoryOp::ViewGather | MemoryOp::ViewScatter | MemoryOp::Prefetch => CACHED,
        MemoryOp::ViewShape | MemoryOp::ViewStride => AXIS,
        MemoryOp::ViewSlice => (&["axes"], &[]),
        MemoryOp::ViewPermute => PERM,
    }
}

fn control(op: ControlOp) -> Known {
    match op {
        ControlOp::ProgramId | ControlOp::NumPrograms => AXIS,
        ControlOp::For => (&[], &["flatten", "specialize", "stages", "turns", "unroll"]),
        ControlOp::While
        | ControlOp::If
        | ControlOp::Yield
        | ControlOp::Condition
        | ControlOp::Return
        | ControlOp::Map
        | ControlOp::Assume
        | ControlOp::GridBarrier
        | ControlOp::GlobalTimer
        | ControlOp::SmId => NONE,
        ControlOp::Call => (&["callee"], &[]),
        ControlOp::MultipleOf | ControlOp::MaxContiguous => (&["value"], &[]),
        ControlOp::Assert => (&[], &["case", "compares", "message"]),
        ControlOp::Print => (&[], &["message"]),
        ControlOp::InlineAsm => (&["code"], &["constraints", "pack"]),
    }
}

/// Returns true if a value is of the kind that its name asks for; `value` is a scalar in `const` and an integer
/// elsewhere.
fn kind(op: Op, name: &str, value: &Attr) -> bool {
    match name {
        "value" if op == Op::Create(CreateOp::Const) => matches!(value, Attr::Scalar(_)),
        "axis" | "bins" | "bounded" | "k" | "pack" | "ragged" | "seed" | "stages" | "start" | "turns"
        | "unroll" | "value" | "vector" => matches!(value, Attr::Int(_)),
        "absent" | "axes" | "perm" | "shape" | "starts" | "values" => matches!(value, Attr::Ints(_)),
        "descending" | "fast" | "flatten" | "ordered" | "reverse" | "shifted" | "specialize" => {
            matches!(value, Attr::Bool(_))
        }
        "atol" | "rtol" => matches!(value, Attr::Scalar(s) if s.dtype().is_float()),
        _ => matches!(value, Attr::Str(_)),
    }
}

/// V09 as far as it does not depend on types.
pub(super) fn check(inst: &Inst) -> Check {
    let (needed, more) = known(inst.op);
    for (name, value) in inst.attrs.iter() {
        ensure(needed.contains(&name) || more.contains(&name), Invariant::V09, || {
            format!("unknown attribute `{name}`")
        })?;
        ensure(kind(inst.op, name, value), Invariant::V09, || {
            format!("attribute `{name}` cannot be `{value}`")
        })?;
    }
    match needed.iter().find(|n| inst.attrs.get(n).is_none()) {
        Some(name) => fault(Invariant::V09, format!("missing attribute `{name}`")),
        None => Ok(()),
    }
}
