//! The operations without control flow: each reads registers, computes, and writes registers. A file per class.
//!
//! Expects the types and shapes that the verifier guarantees; anything else is a fault `E0001`.

mod atomics;
mod create;
mod dot;
mod elementwise;
mod fold;
mod pointers;
mod random;
mod reduce;
mod scan;
mod scattered;
mod shape;
mod strided;
mod transfer;
mod view;

use std::sync::Arc;

use tk_ops::{MemoryOp, Op};

use crate::code::{Def, Step, Use};
use crate::fault::Fault;
use crate::print::Printed;
use crate::space::Space;
use crate::value::Value;

pub(crate) use elementwise::{elem_size, pointee_size};
pub(crate) use fold::{Fold, Folding};
pub(crate) use view::{contiguous, load_all, tile_bytes};

/// The surroundings of a program.
#[derive(Clone)]
pub(crate) struct Context {
    /// The position of the program in the grid.
    pub program: [u32; 3],
    /// The grid.
    pub grid: [u32; 3],
    /// The memory it can reach.
    pub space: Arc<Space>,
    /// The output of programs.
    pub printed: Printed,
}

impl Context {
    /// Returns true if checked mode is on.
    pub fn checked(&self) -> bool {
        self.space.checker.is_some()
    }
}

/// The registers of one step.
pub(crate) struct Args<'a, 'm> {
    /// The instruction.
    pub step: &'a Step<'m>,
    slots: &'a mut [Value],
}

impl<'a, 'm> Args<'a, 'm> {
    /// The registers of `step` in a frame.
    pub fn new(step: &'a Step<'m>, slots: &'a mut [Value]) -> Self {
        Args { step, slots }
    }

    /// The number of operands.
    pub fn len(&self) -> usize {
        self.step.uses.len()
    }

    /// An operand.
    pub fn operand(&self, i: usize) -> Result<&'a Use<'m>, Fault> {
        self.step
            .uses
            .get(i)
            .ok_or_else(|| Fault::internal(format_args!("`{}` lacks an operand", self.step.op.name())))
    }

    /// A result.
    pub fn def(&self, i: usize) -> Result<&'a Def<'m>, Fault> {
        self.step
            .defs
            .get(i)
            .ok_or_else(|| Fault::internal(format_args!("`{}` lacks a result", self.step.op.name())))
    }

    /// The value of an operand, out of its register if it is not read later. To be called once for each operand.
    pub fn take(&mut self, i: usize) -> Result<Value, Fault> {
        let operand = self.operand(i)?;
        let slot = self
            .slots
            .get_mut(operand.slot as usize)
            .ok_or_else(|| Fault::internal("a register is missing"))?;
        let value = if operand.last { std::mem::take(slot) } else { slot.clone() };
        match value {
            Value::Empty => {
                Err(Fault::internal(format_args!("`{}` reads a value that is gone", self.step.op.name())))
            }
            value => Ok(value),
        }
    }

    /// The values of operands `from..`, with room for one more.
    pub fn rest(&mut self, from: usize) -> Result<Vec<Value>, Fault> {
        let mut values = Vec::with_capacity(self.len().saturating_sub(from) + 1);
        for i in from..self.len() {
            values.push(self.take(i)?);
        }
        Ok(values)
    }

    /// Sets a result.
    pub fn put(&mut self, i: usize, value: Value) -> Result<(), Fault> {
        let def = self.def(i)?;
        let slot =
            self.slots.get_mut(def.slot as usize).ok_or_else(|| Fault::internal("a register is missing"))?;
        *slot = if def.dead { Value::Empty } else { value };
        Ok(())
    }

    /// An integer attribute.
    pub fn int(&self, name: &str) -> Result<i64, Fault> {
        self.step.attrs.int(name).ok_or_else(|| self.lacks(name))
    }

    /// A list attribute.
    pub fn ints(&self, name: &str) -> Result<&'a [i64], Fault> {
        self.step.attrs.ints(name).ok_or_else(|| self.lacks(name))
    }

    fn lacks(&self, name: &str) -> Fault {
        Fault::internal(format_args!("`{}` lacks the attribute `{name}`", self.step.op.name()))
    }
}

/// Runs an operation that neither moves between blocks nor speaks to the host.
pub(crate) fn run(step: &Step<'_>, slots: &mut [Value], context: &Context) -> Result<(), Fault> {
    if let (true, Op::Memory(_) | Op::Atomic(_)) = (context.space.is_observed(), step.op) {
        context.space.at(context.program, step.loc, step.attrs.str("cache") == Some("volatile"));
    }
    let mut args = Args::new(step, slots);
    match step.op {
        Op::Elementwise(op) => elementwise::run(op, &mut args, context.checked()),
        Op::Create(op) => create::run(op, &mut args),
        Op::Shape(op) => shape::run(op, &mut args),
        Op::Memory(op) => memory(op, &mut args, context),
        Op::Reduce(op) => reduce::run(op, &mut args),
        Op::Dot(op) => dot::run(op, &mut args),
        Op::Atomic(op) => atomics::run(op, &mut args, &context.space),
        Op::Scan(op) => scan::run(op, &mut args, context.checked()),
        Op::Random(op) => random::run(op, &mut args),
        Op::Control(_) | Op::Host(_) | Op::Target => Err(Fault::unsupported(step.op)),
    }
}

fn memory(op: MemoryOp, args: &mut Args<'_, '_>, context: &Context) -> Result<(), Fault> {
    match op {
        MemoryOp::PtrAdd => pointers::add(args),
        MemoryOp::Load => pointers::load(args, &context.space),
        MemoryOp::Store => pointers::store(args, &context.space),
        MemoryOp::View => view::make(args),
        MemoryOp::ViewShape => view::shape(args),
        MemoryOp::ViewStride => view::stride(args),
        MemoryOp::ViewPtr => view::base(args),
        MemoryOp::ViewSlice => view::slice(args, &context.space),
        MemoryOp::ViewPermute => view::permute(args),
        MemoryOp::ViewLoad => view::load(args, &context.space),
        MemoryOp::ViewStore => view::store(args, &context.space),
        MemoryOp::ViewInside => view::inside(args),
        MemoryOp::Prefetch => Ok(()),
        MemoryOp::ViewGather => scattered::gather(args, &context.space),
        MemoryOp::ViewScatter => scattered::scatter(args, &context.space),
    }
}
