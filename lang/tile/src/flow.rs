//! The kinds of instructions that own blocks, so that what walks blocks need not list every operation.
//!
//! May assume nothing. A new operation with blocks gets its kind here; all matches on [`Flow`] are exhaustive.

use tk_ops::{ControlOp, HostOp, Op, ReduceOp, ScanOp};

/// How an operation uses its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// It has none.
    Plain,
    /// `for`: one block, once per iteration.
    For,
    /// `while`: a block that decides and a block that runs, in turn.
    While,
    /// `if`: one of two blocks.
    If,
    /// `map`, `reduce`, `scan`: one block over scalars, once per element.
    Elements,
    /// `host_expect_error`: one block, which is expected to fail.
    Expect,
}

/// How `op` uses its blocks.
pub fn flow(op: Op) -> Flow {
    match op {
        Op::Control(o) => match o {
            ControlOp::For => Flow::For,
            ControlOp::While => Flow::While,
            ControlOp::If => Flow::If,
            ControlOp::Map => Flow::Elements,
            ControlOp::ProgramId
            | ControlOp::NumPrograms
            | ControlOp::Yield
            | ControlOp::Condition
            | ControlOp::Return
            | ControlOp::Call
            | ControlOp::Assume
            | ControlOp::MultipleOf
            | ControlOp::MaxContiguous
            | ControlOp::Assert
            | ControlOp::Print
            | ControlOp::GridBarrier
            | ControlOp::GlobalTimer
            | ControlOp::SmId
            | ControlOp::InlineAsm => Flow::Plain,
        },
        Op::Reduce(ReduceOp::Custom) | Op::Scan(ScanOp::Custom) => Flow::Elements,
        Op::Host(HostOp::ExpectError) => Flow::Expect,
        Op::Elementwise(_)
        | Op::Create(_)
        | Op::Shape(_)
        | Op::Memory(_)
        | Op::Atomic(_)
        | Op::Reduce(_)
        | Op::Scan(_)
        | Op::Dot(_)
        | Op::Random(_)
        | Op::Host(_)
        | Op::Target => Flow::Plain,
    }
}

impl Flow {
    /// How many blocks there are.
    pub fn blocks(self) -> usize {
        match self {
            Flow::Plain => 0,
            Flow::For | Flow::Elements | Flow::Expect => 1,
            Flow::While | Flow::If => 2,
        }
    }

    /// What ends block number `n`.
    pub fn terminator(self, n: usize) -> Op {
        match self {
            Flow::While if n == 0 => Op::Control(ControlOp::Condition),
            Flow::Plain | Flow::For | Flow::While | Flow::If | Flow::Elements | Flow::Expect => {
                Op::Control(ControlOp::Yield)
            }
        }
    }
}
