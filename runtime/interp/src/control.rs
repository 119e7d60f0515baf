//! Control flow, program ids, hints and assertions: the steps that move a [`Machine`] between blocks.

use std::sync::Arc;

use tk_ops::buf::Buf;
use tk_ops::scalar::Scalar;
use tk_ops::{ControlOp, DType, Op};
use tk_tile::Type;

use crate::checked::promises;
use crate::code::Step;
use crate::exec::{Args, Fold, Folding};
use crate::fault::Fault;
use crate::machine::{Machine, Region, Status};
use crate::print;
use crate::value::{Pointer, Value};

/// The rest of the range of a `for`. In 128 bits nothing overflows.
#[derive(Clone, Copy)]
pub(crate) struct Range {
    next: i128,
    end: i128,
    step: i128,
    dtype: DType,
}

impl Range {
    /// The next loop variable, if there is one.
    fn advance(&mut self) -> Option<Value> {
        let inside = if self.step > 0 { self.next < self.end } else { self.next > self.end };
        let v = inside.then_some(Value::Splat(Scalar::int(self.dtype, self.next)))?;
        self.next += self.step;
        Some(v)
    }
}

/// A `map` that goes element by element.
pub(crate) struct MapState {
    /// The element that is being computed.
    at: usize,
    count: usize,
    inputs: Vec<Value>,
    outputs: Vec<Output>,
}

enum Output {
    Numbers(Buf),
    Pointers(Vec<Pointer>),
}

impl MapState {
    fn arguments(&self) -> Result<Vec<Value>, Fault> {
        self.inputs.iter().map(|x| x.lane(self.at)).collect()
    }

    fn keep(&mut self, results: &[Value]) -> Result<(), Fault> {
        for (out, value) in self.outputs.iter_mut().zip(results) {
            match out {
                Output::Numbers(buf) => buf.set(self.at, value.scalar()?),
                Output::Pointers(lanes) => lanes.push(value.pointer()?),
            }
        }
        self.at += 1;
        Ok(())
    }

    fn results(self) -> Vec<Value> {
        let value = |out| match out {
            Output::Numbers(buf) => Value::tile(buf),
            Output::Pointers(lanes) => Value::lanes(lanes),
        };
        self.outputs.into_iter().map(value).collect()
    }
}

impl<'c, 'm> Machine<'c, 'm> {
    /// Runs a step of control flow.
    pub(crate) fn control(&mut self, op: ControlOp, step: &'c Step<'m>) -> Result<(), Fault> {
        match op {
            ControlOp::ProgramId => self.put_axis(step, self.context.program),
            ControlOp::NumPrograms => self.put_axis(step, self.context.grid),
            ControlOp::For => self.begin_for(step),
            ControlOp::While => {
                let carried = self.operands(step, 0)?;
                self.enter(step, 0, Region::Head, carried)
            }
            ControlOp::If => {
                let holds = Args::new(step, &mut self.frame()?.slots).take(0)?.bool()?;
                self.enter(step, usize::from(!holds), Region::If, vec![])
            }
            ControlOp::Yield => self.end_block(step),
            ControlOp::Condition => self.decide(step),
            ControlOp::Return => {
                let results = self.operands(step, 0)?;
                self.pop_frame(results)
            }
            ControlOp::Call => {
                let args = self.operands(step, 0)?;
                let callee = step.callee.ok_or_else(|| Fault::internal("a call without a function"))?;
                self.push_frame(callee, args, Some(step))
            }
            ControlOp::Map => self.begin_map(step),
            ControlOp::Assume => {
                let x = Args::new(step, &mut self.frame()?.slots).take(0)?;
                match step.uses.first() {
                    Some(used) if self.context.checked() => promises::assume(&x, used.ty),
                    Some(_) | None => Ok(()),
                }
            }
            ControlOp::MultipleOf | ControlOp::MaxContiguous => self.promised(op, step),
            ControlOp::Assert => self.assert(step),
            ControlOp::GridBarrier if self.host.is_some() => {
                Err(Fault::internal("`grid_barrier` outside of a kernel"))
            }
            ControlOp::GridBarrier => {
                self.pause(Status::Barrier);
                Ok(())
            }
            ControlOp::GlobalTimer => {
                let now = Scalar::int(DType::U64, i128::from(nanoseconds()));
                Args::new(step, &mut self.frame()?.slots).put(0, Value::Splat(now))
            }
            // There is one processor, which all programs share.
            ControlOp::SmId => Args::new(step, &mut self.frame()?.slots).put(0, Value::int(DType::I32, 0)),
            ControlOp::Print => self.print(step),
            ControlOp::InlineAsm => Err(Fault::unsupported(Op::Control(op))),
        }
    }

    fn put_axis(&mut self, step: &'c Step<'m>, of: [u32; 3]) -> Result<(), Fault> {
        let mut args = Args::new(step, &mut self.frame()?.slots);
        let axis = usize::try_from(args.int("axis")?).ok();
        let v = axis.and_then(|a| of.get(a)).ok_or_else(|| Fault::internal("an axis is out of range"))?;
        args.put(0, Value::int(DType::I32, i64::from(*v)))
    }

    fn begin_for(&mut self, step: &'c Step<'m>) -> Result<(), Fault> {
        let mut args = Args::new(step, &mut self.frame()?.slots);
        let (lo, hi, by) = (args.take(0)?.scalar()?, args.take(1)?.scalar()?, args.take(2)?.scalar()?);
        let carried = args.rest(3)?;
        let int =
            |s: Scalar| s.as_int().ok_or_else(|| Fault::internal("the range of a loop is not of integers"));
        let mut range = Range { next: int(lo)?, end: int(hi)?, step: int(by)?, dtype: lo.dtype() };
        if range.step == 0 {
            return Err(Fault::run("the step of this loop is 0; it would never end"));
        }
        match range.advance() {
            Some(v) => self.enter(step, 0, Region::For(range), with_first(v, carried)),
            None => self.skip(step, carried),
        }
    }

    fn end_block(&mut self, step: &'c Step<'m>) -> Result<(), Fault> {
        let values = self.operands(step, 0)?;
        match &mut self.cursor()?.region {
            Region::For(range) => match range.advance() {
                Some(v) => self.again(0, with_first(v, values)),
                None => self.finish(values),
            },
            Region::Loop => {
                self.cursor()?.region = Region::Head;
                self.again(0, values)
            }
            Region::If | Region::Whole => self.finish(values),
            Region::Map(state) => {
                state.keep(&values)?;
                if state.at < state.count {
                    let next = state.arguments()?;
                    return self.again(0, next);
                }
                match std::mem::replace(&mut self.cursor()?.region, Region::Whole) {
                    Region::Map(state) => self.finish(state.results()),
                    _other => Err(Fault::internal("a `map` lost its state")),
                }
            }
            Region::Fold(fold) => {
                fold.keep(values)?;
                if let Some(next) = fold.arguments() {
                    return self.again(0, next);
                }
                match std::mem::replace(&mut self.cursor()?.region, Region::Whole) {
                    Region::Fold(fold) => self.finish(fold.results()),
                    _other => Err(Fault::internal("a fold lost its state")),
                }
            }
            Region::Expect => {
                let owner = self.cursor()?.owner;
                let code = owner.and_then(|o| o.attrs.str("code")).unwrap_or_default();
                let fault = Fault::new("E0901", format!("expected error {code}, but no error occurred"));
                // Out of the block first: it must not catch its own failure.
                self.finish(vec![])?;
                Err(fault.at(owner.and_then(|o| o.loc), None))
            }
            Region::Body | Region::Head => Err(Fault::internal("`yield` ends the wrong block")),
        }
    }

    fn decide(&mut self, step: &'c Step<'m>) -> Result<(), Fault> {
        let mut args = Args::new(step, &mut self.frame()?.slots);
        let holds = args.take(0)?.bool()?;
        let forwarded = args.rest(1)?;
        let cursor = self.cursor()?;
        match (&cursor.region, holds) {
            (Region::Head, true) => {
                cursor.region = Region::Loop;
                self.again(1, forwarded)
            }
            (Region::Head, false) => self.finish(forwarded),
            (_other, _) => Err(Fault::internal("`condition` ends the wrong block")),
        }
    }

    fn begin_map(&mut self, step: &'c Step<'m>) -> Result<(), Fault> {
        let inputs = self.operands(step, 0)?;
        let pointwise = self.is_pointwise(step)?;
        if pointwise && !inputs.iter().any(Value::is_pointer) {
            return self.enter(step, 0, Region::Whole, inputs);
        }
        let count = step.defs.first().map_or(1, |d| d.count);
        let output = |d: &crate::code::Def<'_>| match d.ty.dtype() {
            Some(dtype) => Output::Numbers(Buf::zeros(dtype, count)),
            None => Output::Pointers(Vec::with_capacity(count)),
        };
        let outputs = step.defs.iter().map(output).collect();
        let state = MapState { at: 0, count, inputs, outputs };
        let first = state.arguments()?;
        self.enter(step, 0, Region::Map(Box::new(state)), first)
    }

    /// `reduce` and `scan` with a block.
    pub(crate) fn begin_fold(&mut self, folding: Folding, step: &'c Step<'m>) -> Result<(), Fault> {
        let inputs = self.operands(step, 0)?;
        let whole = self.is_pointwise(step)?;
        let space = Arc::clone(&self.context.space);
        let mut fold = Fold::new(folding, step, inputs, whole, space)?;
        match fold.arguments() {
            Some(first) => self.enter(step, 0, Region::Fold(Box::new(fold)), first),
            None => self.skip(step, fold.results()),
        }
    }

    fn assert(&mut self, step: &'c Step<'m>) -> Result<(), Fault> {
        let mut args = Args::new(step, &mut self.frame()?.slots);
        let Some(lane) = promises::first_false(&args.take(0)?)? else { return Ok(()) };
        let shape = step.uses.first().and_then(|u| u.ty.shape()).unwrap_or_default();
        let place = crate::print::place(lane, shape);
        let message = step.attrs.str("message").filter(|m| !m.is_empty()).map(str::to_string);
        let sides = match step.attrs.str("compares") {
            Some(operator) => Some(crate::compare::sides(&mut args, operator, lane)?),
            None => None,
        };
        let said: Vec<String> = message.into_iter().chain(sides).collect();
        let colon = if said.is_empty() { "" } else { ": " };
        Err(Fault::run(format!("assertion failed{place}{colon}{}", said.join("; "))))
    }

    fn promised(&mut self, op: ControlOp, step: &'c Step<'m>) -> Result<(), Fault> {
        let (checked, space) = (self.context.checked(), Arc::clone(&self.context.space));
        let mut args = Args::new(step, &mut self.frame()?.slots);
        let x = args.take(0)?;
        if checked {
            promises::run_of(op, &x, args.def(0)?.ty, args.int("value")?, &space)?;
        }
        args.put(0, x)
    }

    fn print(&mut self, step: &'c Step<'m>) -> Result<(), Fault> {
        let values = self.operands(step, 0)?;
        let types: Vec<&Type> = step.uses.iter().map(|u| u.ty).collect();
        let message = step.attrs.str("message").unwrap_or_default();
        let text = print::fill(message, &values, &types, &self.context.space)?;
        match self.host {
            Some(host) => host.host.print(&text),
            None => self.context.printed.line(self.context.program, self.context.grid, &text),
        }
        Ok(())
    }
}

/// `Args::rest` leaves room for this one.
fn with_first(first: Value, mut rest: Vec<Value>) -> Vec<Value> {
    rest.insert(0, first);
    rest
}

/// The time since 1970.
#[cfg(not(target_family = "wasm"))]
fn nanoseconds() -> u64 {
    use std::time::{SystemTime, UNIX_EPOCH};
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |t| u64::try_from(t.as_nanos()).unwrap_or(u64::MAX))
}

/// In a browser the standard library has no clock: each look is a microsecond after the one before.
#[cfg(target_family = "wasm")]
fn nanoseconds() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static TIME: AtomicU64 = AtomicU64::new(0);
    TIME.fetch_add(1000, Ordering::Relaxed)
}
