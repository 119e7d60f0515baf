//! [`Machine`]: one program that is being run, as an explicit stack of frames.
//!
//! Guarantees that a program can be left between any two instructions and taken up again, and that neither calls nor
//! loops of the program use the stack of the host.

use tk_ops::table::Effects;
use tk_ops::{CreateOp, HostOp, Op, ReduceOp, ScanOp};

use crate::code::{BlockCode, Code, FuncCode, Slot, Step};
use crate::control::MapState;
use crate::debug::{self, Debugging, Stopped, has_nan};
use crate::exec::{self, Args, Context, Fold, Folding};
use crate::fault::Fault;
use crate::host::HostContext;
use crate::value::Value;
use tk_tile::debug::{DebugFunc, DebugInfo, Statement};
use tk_tile::{FuncId, Loc};

/// Returns true for an operation that computes nothing: its results are constants, or what memory or a file holds.
fn is_given(op: Op) -> bool {
    let is_constant = matches!(op, Op::Create(CreateOp::Const | CreateOp::Table));
    is_constant || matches!(op, Op::Atomic(_) | Op::Host(_)) || tk_tile::effects::effects(op) == Effects::Read
}

/// The position of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// It has returned.
    Done,
    /// It can go on.
    Paused,
    /// It has done [`TURN`] atomics and may be waiting for another program.
    Turn,
    /// It is after a `grid_barrier`.
    Barrier,
}

/// Atomics until it is another program's turn. A program that waits loses some 5 microseconds with them; one that works
/// rarely comes so far.
const TURN: u32 = 32;

/// The role of a cursor's block in the instruction that owns it.
pub(crate) enum Region {
    /// The body of a function.
    Body,
    /// The block of `for`, with the range that is left after this iteration.
    For(crate::control::Range),
    /// The first block of `while`.
    Head,
    /// The second block of `while`.
    Loop,
    /// A block of `if`.
    If,
    /// The block of `map`, element by element.
    Map(Box<MapState>),
    /// The block of `map`, on whole tiles.
    Whole,
    /// The block of `reduce` or `scan`.
    Fold(Box<Fold>),
    /// The block of `host_expect_error`.
    Expect,
}

/// A block that is being run.
pub(crate) struct Cursor<'c, 'm> {
    block: &'c BlockCode<'m>,
    next: usize,
    /// The instruction that owns the block; none for a body.
    pub owner: Option<&'c Step<'m>>,
    pub region: Region,
}

/// A function that is being run.
pub(crate) struct Frame<'c, 'm> {
    func: &'c FuncCode<'m>,
    /// Registers.
    pub slots: Vec<Value>,
    cursors: Vec<Cursor<'c, 'm>>,
    /// The instruction of the frame below that waits for the results.
    call: Option<&'c Step<'m>>,
}

/// One program.
pub(crate) struct Machine<'c, 'm> {
    pub code: &'c Code<'m>,
    pub context: Context,
    /// The host operations that a test can reach; none in a kernel.
    pub host: Option<HostContext<'c>>,
    frames: Vec<Frame<'c, 'm>>,
    /// Registers of frames that are gone, to be used again.
    spare: Vec<Vec<Value>>,
    /// Atomics since the last turn.
    atomics: u32,
    /// Why it stops after this instruction.
    pause: Option<Status>,
}

impl<'c, 'm> Machine<'c, 'm> {
    /// Without a program.
    pub fn new(code: &'c Code<'m>, context: Context, host: Option<HostContext<'c>>) -> Self {
        Machine { code, context, host, frames: vec![], spare: vec![], atomics: 0, pause: None }
    }

    /// Starts a function from its beginning; what was being run is dropped.
    pub fn start(&mut self, func: FuncId, args: &[Value]) -> Result<(), Fault> {
        (self.atomics, self.pause) = (0, None);
        while let Some(frame) = self.frames.pop() {
            self.recycle(frame);
        }
        self.push_frame(func, args.to_vec(), None)
    }

    /// Runs up to `steps` instructions.
    pub fn run(&mut self, steps: u32) -> Result<Status, Fault> {
        for _ in 0..steps {
            if self.frames.is_empty() {
                return Ok(Status::Done);
            }
            if self.code.debugging.is_some() {
                self.debugged_step()?;
            } else {
                self.step().or_else(|fault| self.expected(fault))?;
            }
            if let Some(why) = self.pause.take() {
                self.atomics = 0;
                return Ok(why);
            }
        }
        Ok(if self.frames.is_empty() { Status::Done } else { Status::Paused })
    }

    /// Stops after this instruction.
    pub fn pause(&mut self, why: Status) {
        self.pause = Some(why);
    }

    /// The source place of the next instruction.
    pub fn loc(&self) -> Option<Loc> {
        let cursor = self.frames.last()?.cursors.last()?;
        cursor.block.steps.get(cursor.next)?.loc
    }

    /// The source place of the instruction that ran last.
    pub fn last_loc(&self) -> Option<Loc> {
        let cursor = self.frames.last()?.cursors.last()?;
        cursor.block.steps.get(cursor.next.checked_sub(1)?)?.loc
    }

    fn step(&mut self) -> Result<(), Fault> {
        let frame = self.frames.last_mut().ok_or_else(|| Fault::internal("no function is running"))?;
        let cursor = frame.cursors.last_mut().ok_or_else(|| Fault::internal("no block is running"))?;
        let Some(step) = cursor.block.steps.get(cursor.next) else {
            return Err(Fault::internal(format_args!("a block of `{}` has no end", frame.func.name)));
        };
        cursor.next += 1;
        let done = match step.op {
            Op::Control(op) => self.control(op, step),
            Op::Host(op) => self.host_step(op, step),
            Op::Target => Err(Fault::unsupported(step.op)),
            Op::Reduce(ReduceOp::Custom) => self.begin_fold(Folding::Reduce, step),
            Op::Scan(ScanOp::Custom) => {
                self.begin_fold(Folding::Scan { reverse: step.attrs.flag("reverse") }, step)
            }
            Op::Atomic(_) => {
                self.atomics += 1;
                if self.atomics >= TURN {
                    self.pause = Some(Status::Turn);
                }
                exec::run(step, &mut frame.slots, &self.context)
            }
            Op::Elementwise(_)
            | Op::Create(_)
            | Op::Shape(_)
            | Op::Memory(_)
            | Op::Reduce(_)
            | Op::Scan(_)
            | Op::Dot(_)
            | Op::Random(_) => exec::run(step, &mut frame.slots, &self.context),
        };
        done.map_err(|fault| {
            // A test is no program of a grid.
            let program = if self.host.is_none() { Some(self.context.program) } else { None };
            fault.at(step.loc, program).within(step.attrs.str("case"))
        })
    }

    /// A step under a debugger.
    fn debugged_step(&mut self) -> Result<(), Fault> {
        let Some(Debugging { debugger, info }) = self.code.debugging.clone() else { return self.step() };
        let Some((frame, cursor)) = self.frames.last().and_then(|f| Some((f, f.cursors.last()?))) else {
            return self.step();
        };
        let (block, next, depth) = (cursor.block, cursor.next, self.frames.len());
        let statements = info.get(frame.func.name).map(|f| f.statements.as_slice()).unwrap_or_default();
        let here =
            statements.iter().enumerate().filter(|(_, s)| s.begins && s.block == block.id && s.index == next);
        for (number, _) in here {
            debugger.statement(&self.stopped(&info, Some(number), true))?;
        }
        if debugger.interrupts() {
            debugger.interrupt(&self.stopped(&info, None, true))?;
        }
        let step = block.steps.get(next);
        if let Some(Op::Host(HostOp::Launch)) = step.map(|s| s.op) {
            let expects = |f: &Frame<'_, '_>| f.cursors.iter().any(|c| matches!(c.region, Region::Expect));
            debugger.launch(&self.stopped(&info, None, true), self.frames.iter().any(expects));
            let done = self.step();
            debugger.launched();
            return done.or_else(|fault| self.expected(fault));
        }
        let done = self.step().or_else(|fault| self.expected(fault));
        if let Err(fault) = &done {
            debugger.fault(&self.stopped(&info, None, false), fault);
        }
        done?;
        if self.frames.len() < depth && self.is_in_statement(&info) {
            debugger.returned(&self.stopped(&info, None, false))?;
        }
        let nan = |slots: &[Slot]| {
            let frame = self.frames.last().filter(|_| self.frames.len() == depth);
            frame.is_some_and(|f| slots.iter().any(|s| f.slots.get(*s as usize).is_some_and(has_nan)))
        };
        // What is given, such as by memory, has become NaN elsewhere.
        let computes = |s: &Step<'_>| s.blocks.is_empty() && !is_given(s.op);
        if let Some(step) = step.filter(|s| computes(s) && debugger.watches_nan()) {
            let results: Vec<Slot> = step.defs.iter().map(|d| d.slot).collect();
            let operands: Vec<Slot> = step.uses.iter().map(|u| u.slot).collect();
            if nan(&results) && !nan(&operands) {
                debugger.nan(&self.stopped(&info, None, false))?;
            }
        }
        Ok(())
    }

    /// Returns true if something runs whose next instruction begins no statement.
    fn is_in_statement(&self, info: &DebugInfo) -> bool {
        let Some((frame, cursor)) = self.frames.last().and_then(|f| Some((f, f.cursors.last()?))) else {
            return false;
        };
        let statements = info.get(frame.func.name).map(|f| f.statements.as_slice()).unwrap_or_default();
        !statements.iter().any(|s| s.begins && s.block == cursor.block.id && s.index == cursor.next)
    }

    /// What runs, for a debugger; the innermost function begins the statement with this number. `waits` says whether its
    /// next instruction has not run.
    fn stopped<'a>(&'a self, info: &'a DebugInfo, begins: Option<usize>, waits: bool) -> Stopped<'a> {
        let frames = self.frames.iter().rev().enumerate().map(|(i, f)| {
            let func = info.get(f.func.name);
            let begins = begins.filter(|_| i == 0).and_then(|n| func?.statements.get(n));
            let cursor = f.cursors.last();
            let running = cursor.and_then(|c| c.block.steps.get(c.next.saturating_sub(1))?.loc);
            debug::Frame {
                func,
                statement: begins.or_else(|| f.statement(func?, i == 0 && waits)),
                loc: running,
                // Tests call functions too: the lowest of these is the test.
                is_test: self.host.is_some() && i + 1 == self.frames.len(),
                code: f.func,
                slots: &f.slots,
                space: &self.context.space,
            }
        });
        let program = if self.host.is_none() { Some(self.context.program) } else { None };
        Stopped { program, grid: self.context.grid, frames: frames.collect() }
    }

    /// The frame on top.
    pub fn frame(&mut self) -> Result<&mut Frame<'c, 'm>, Fault> {
        self.frames.last_mut().ok_or_else(|| Fault::internal("no function is running"))
    }

    /// The block on top.
    pub fn cursor(&mut self) -> Result<&mut Cursor<'c, 'm>, Fault> {
        self.frame()?.cursors.last_mut().ok_or_else(|| Fault::internal("no block is running"))
    }

    /// Values of the operands `from..` of a step.
    pub fn operands(&mut self, step: &'c Step<'m>, from: usize) -> Result<Vec<Value>, Fault> {
        Args::new(step, &mut self.frame()?.slots).rest(from)
    }

    /// Begins a block of `owner`.
    pub fn enter(
        &mut self,
        owner: &'c Step<'m>,
        which: usize,
        region: Region,
        args: Vec<Value>,
    ) -> Result<(), Fault> {
        let frame = self.frame()?;
        let block = frame.func.block(block_of(owner, which)?)?;
        frame.cursors.push(Cursor { block, next: 0, owner: Some(owner), region });
        assign(&mut frame.slots, &block.args, args)
    }

    /// Begins the block on top again, or another one of its owner, in its place.
    pub fn again(&mut self, which: usize, args: Vec<Value>) -> Result<(), Fault> {
        let frame = self.frame()?;
        let func = frame.func;
        let cursor = frame.cursors.last_mut().ok_or_else(|| Fault::internal("no block is running"))?;
        let owner = cursor.owner.ok_or_else(|| Fault::internal("a block has no owner"))?;
        cursor.block = func.block(block_of(owner, which)?)?;
        cursor.next = 0;
        assign(&mut frame.slots, &cursor.block.args, args)
    }

    /// Ends the block on top and sets the results of its owner.
    pub fn finish(&mut self, results: Vec<Value>) -> Result<(), Fault> {
        let frame = self.frame()?;
        let owner = frame
            .cursors
            .pop()
            .and_then(|c| c.owner)
            .ok_or_else(|| Fault::internal("a block has no owner"))?;
        define(&mut frame.slots, owner, results)
    }

    /// Sets the results of a step whose blocks do not run.
    pub fn skip(&mut self, step: &'c Step<'m>, results: Vec<Value>) -> Result<(), Fault> {
        define(&mut self.frame()?.slots, step, results)
    }

    /// Whether the block of a step may run on whole tiles. Where a debugger stops, it runs element by element.
    pub fn is_pointwise(&mut self, step: &Step<'_>) -> Result<bool, Fault> {
        let func = self.frame()?.func;
        let block = func.block(block_of(step, 0)?)?;
        let stops = self.code.debugging.as_ref().is_some_and(|Debugging { debugger, info }| {
            let statements = info.get(func.name).map(|f| f.statements.as_slice()).unwrap_or_default();
            statements.iter().any(|s| s.block == block.id && s.begins && debugger.may_stop(s))
        });
        Ok(block.pointwise && !stops)
    }

    /// Begins a function.
    pub fn push_frame(
        &mut self,
        id: FuncId,
        args: Vec<Value>,
        call: Option<&'c Step<'m>>,
    ) -> Result<(), Fault> {
        let func = self.code.func(id)?;
        let mut slots = self.spare.pop().unwrap_or_default();
        slots.resize(func.slots, Value::Empty);
        let block = func.block(func.body)?;
        assign(&mut slots, &block.args, args)?;
        let body = Cursor { block, next: 0, owner: None, region: Region::Body };
        self.frames.push(Frame { func, slots, cursors: vec![body], call });
        Ok(())
    }

    /// Ends the function on top.
    pub fn pop_frame(&mut self, results: Vec<Value>) -> Result<(), Fault> {
        let Some(frame) = self.frames.pop() else { return Err(Fault::internal("no function is running")) };
        let call = frame.call;
        self.recycle(frame);
        match (call, self.frames.last_mut()) {
            (Some(call), Some(caller)) => define(&mut caller.slots, call, results),
            (_, _) => Ok(()),
        }
    }

    fn recycle(&mut self, mut frame: Frame<'c, 'm>) {
        frame.slots.clear();
        self.spare.push(frame.slots);
    }

    /// Offers a fault to the `host_expect_error` blocks around it, from the inside out.
    fn expected(&mut self, mut fault: Fault) -> Result<(), Fault> {
        loop {
            let waits =
                |f: &Frame<'_, '_>| f.cursors.iter().rposition(|c| matches!(c.region, Region::Expect));
            let found = self.frames.iter().enumerate().rev().find_map(|(i, f)| Some((i, waits(f)?)));
            let Some((depth, at)) = found else { return Err(fault) };
            while self.frames.len() > depth + 1 {
                if let Some(frame) = self.frames.pop() {
                    self.recycle(frame);
                }
            }
            let frame = self.frame()?;
            frame.cursors.truncate(at + 1);
            let owner = frame.cursors.last().and_then(|c| c.owner);
            let owner = owner.ok_or_else(|| Fault::internal("a block has no owner"))?;
            self.finish(vec![])?;
            let code = owner.attrs.str("code").unwrap_or_default();
            if fault.code == code {
                return Ok(());
            }
            let message =
                format!("expected error {code}, but {} was reported: {}", fault.code, fault.message);
            fault = Fault::new("E0901", message).at(fault.loc.or(owner.loc), fault.program);
        }
    }
}

impl Frame<'_, '_> {
    /// The statement that runs: the last one that began in the innermost block that has one.
    /// Before its next instruction runs, one that begins with it counts.
    fn statement<'a>(&self, func: &'a DebugFunc, waits: bool) -> Option<&'a Statement> {
        let (mut cursors, mut end) = (self.cursors.iter().rev(), usize::from(waits));
        cursors.find_map(|c| {
            let end = std::mem::take(&mut end) + c.next;
            let began = func.statements.iter().filter(|s| s.block == c.block.id && s.index < end.max(1));
            began.max_by_key(|s| s.index)
        })
    }
}

fn block_of(owner: &Step<'_>, which: usize) -> Result<u32, Fault> {
    let found = owner.blocks.get(which).copied();
    found.ok_or_else(|| Fault::internal(format_args!("`{}` lacks a block", owner.op.name())))
}

/// Sets registers.
fn assign(slots: &mut [Value], to: &[Slot], values: Vec<Value>) -> Result<(), Fault> {
    if to.len() != values.len() {
        return Err(Fault::internal("a block gets another number of values than it takes"));
    }
    for (slot, value) in to.iter().zip(values) {
        *slots.get_mut(*slot as usize).ok_or_else(|| Fault::internal("a register is missing"))? = value;
    }
    Ok(())
}

/// Sets the results of a step and drops what is dead after it.
fn define(slots: &mut [Value], step: &Step<'_>, results: Vec<Value>) -> Result<(), Fault> {
    if step.defs.len() != results.len() {
        return Err(Fault::internal(format_args!("`{}` gives another number of results", step.op.name())));
    }
    for slot in &step.frees {
        if let Some(value) = slots.get_mut(*slot as usize) {
            *value = Value::Empty;
        }
    }
    let mut args = Args::new(step, slots);
    results.into_iter().enumerate().try_for_each(|(i, value)| args.put(i, value))
}
