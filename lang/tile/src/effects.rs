//! The side effects of each operation.
//!
//! May assume a verified function for [`of_inst`]. Guarantees an answer for every operation, internal ones too; the
//! rows of the op table must agree for those that a user can write (there is a test).

use tk_ops::table::Effects;
use tk_ops::{AtomicOp, ControlOp, CreateOp, HostOp, MemoryOp, Op};

use crate::attr::Attrs;
use crate::ir::{Func, Inst, InstId};

/// What `op` does by itself. The blocks that an instruction owns count too: [`of_inst`].
pub fn effects(op: Op) -> Effects {
    match op {
        Op::Elementwise(_) | Op::Shape(_) | Op::Reduce(_) | Op::Scan(_) | Op::Dot(_) | Op::Random(_) => {
            Effects::Pure
        }
        Op::Create(o) => match o {
            CreateOp::Const | CreateOp::Table | CreateOp::Arange | CreateOp::Splat | CreateOp::Undef => {
                Effects::Pure
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
            | AtomicOp::Store => Effects::Ordered,
        },
        Op::Control(o) => control(o),
        // Each has its own: [`of_inst`].
        Op::Target => Effects::Ordered,
        // What happens on the host happens in the order in which it is written.
        Op::Host(o) => match o {
            HostOp::Buffer
            | HostOp::Empty
            | HostOp::Pointers
            | HostOp::Tile
            | HostOp::Launch
            | HostOp::Randn
            | HostOp::Uniform
            | HostOp::Npy
            | HostOp::AssertClose
            | HostOp::ExpectError => Effects::Ordered,
        },
    }
}

fn memory(op: MemoryOp) -> Effects {
    match op {
        MemoryOp::Load | MemoryOp::ViewLoad | MemoryOp::ViewGather => Effects::Read,
        MemoryOp::Store | MemoryOp::ViewStore | MemoryOp::ViewScatter => Effects::Write,
        // It has no result that could keep it alive.
        MemoryOp::Prefetch => Effects::Ordered,
        MemoryOp::PtrAdd
        | MemoryOp::View
        | MemoryOp::ViewShape
        | MemoryOp::ViewStride
        | MemoryOp::ViewPtr
        | MemoryOp::ViewSlice
        | MemoryOp::ViewPermute
        | MemoryOp::ViewInside => Effects::Pure,
    }
}

fn control(op: ControlOp) -> Effects {
    match op {
        ControlOp::ProgramId | ControlOp::NumPrograms => Effects::Pure,
        // The effects of these are those of their blocks. A loop without effects whose results are unused may go,
        // whether it ends or not.
        ControlOp::For | ControlOp::While | ControlOp::If | ControlOp::Map => Effects::Pure,
        ControlOp::MultipleOf | ControlOp::MaxContiguous => Effects::Pure,
        ControlOp::Yield | ControlOp::Condition | ControlOp::Return => Effects::Ordered,
        // The callee may do anything.
        ControlOp::Call => Effects::Ordered,
        ControlOp::Assume
        | ControlOp::Assert
        | ControlOp::Print
        | ControlOp::GridBarrier
        | ControlOp::GlobalTimer
        | ControlOp::SmId
        | ControlOp::InlineAsm => Effects::Ordered,
    }
}

/// Whether `op` ends a block.
pub fn is_terminator(op: Op) -> bool {
    matches!(op, Op::Control(ControlOp::Yield | ControlOp::Condition | ControlOp::Return))
}

/// What an instruction does, its blocks included; the terminators of these count as nothing.
pub fn of_inst(func: &Func, id: InstId) -> Effects {
    let inst = &func.insts[id];
    let inner = inst.blocks.iter().flat_map(|b| &func.blocks[*b].insts);
    let inner = inner.filter(|i| !is_terminator(func.insts[**i].op)).map(|i| of_inst(func, *i));
    let own = match inst.attrs.target() {
        Some(op) => op.effects(),
        None if is_volatile(inst) => Effects::Ordered,
        None => effects(inst.op),
    };
    inner.fold(own, strongest)
}

/// Whether an access is done each time that the text says, in its order: what it reads may be written by another program
/// meanwhile.
pub fn is_volatile(inst: &Inst) -> bool {
    inst.attrs.str("cache") == Some("volatile")
}

/// What an access asks of the caches, for one that takes its place.
pub fn hints(inst: &Inst) -> Attrs {
    let mut attrs = Attrs::new();
    for name in ["cache", "evict"] {
        if let Some(word) = inst.attrs.get(name) {
            attrs.set(name, word.clone());
        }
    }
    attrs
}

fn strongest(a: Effects, b: Effects) -> Effects {
    let rank = |e: Effects| match e {
        Effects::Pure => 0,
        Effects::Read => 1,
        Effects::Write => 2,
        Effects::Ordered => 3,
    };
    if rank(a) >= rank(b) { a } else { b }
}
