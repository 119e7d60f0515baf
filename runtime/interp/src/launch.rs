//! Owns launching: binding arguments, running the programs of a grid in parallel, and running a test.
//!
//! Guarantees that of several faults the one of the lowest program in linear order (x fastest) is reported, as long as
//! programs do not race and no time limit ends them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tk_ops::scalar::Scalar;
use tk_tile::{Elem, Func, FuncId, FuncKind, TileModule, Type};

use crate::code::Code;
use crate::exec::Context;
use crate::fault::Fault;
use crate::host::{Host, HostContext};
use crate::machine::{Machine, Status};
use crate::memory::{BufferId, Memory, Space};
use crate::value::{Pointer, Value, View};

/// An argument of a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arg {
    /// A number or bool.
    Scalar(Scalar),
    /// A pointer into a buffer.
    Ptr {
        /// The buffer.
        buffer: BufferId,
        /// Elements behind its start.
        offset: i64,
    },
    /// A pointer to nothing.
    Null,
    /// A view.
    View {
        /// The buffer.
        buffer: BufferId,
        /// Elements between its start and the first element of the view.
        offset: i64,
        /// Extents.
        shape: Vec<i64>,
        /// Strides in elements.
        strides: Vec<i64>,
    },
}

/// How to run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Threads that run programs; without a number as many as the machine has cores.
    pub threads: Option<usize>,
    /// What is not done after this time stops with a fault.
    pub timeout: Option<Duration>,
}

/// Instructions between two looks at the clock: one on the largest tile takes milliseconds, so that a limit is kept
/// within a fraction of a second; one on a scalar takes 100 ns, so that the 25 ns of a look are not felt.
const SLICE: u32 = 32;

/// Time that may pass.
#[derive(Clone, Copy)]
struct Deadline(Option<(Instant, Duration)>);

impl Deadline {
    fn new(options: &Options) -> Deadline {
        Deadline(options.timeout.map(|limit| (Instant::now(), limit)))
    }

    fn check(self, machine: &Machine<'_, '_>) -> Result<(), Fault> {
        let Some((start, limit)) = self.0 else { return Ok(()) };
        if start.elapsed() < limit {
            return Ok(());
        }
        let message = format!("it is still running after {limit:?}, the time limit; a loop may never end");
        let program = if machine.host.is_none() { Some(machine.context.program) } else { None };
        Err(Fault::run(message).at(machine.loc(), program))
    }
}

/// Runs all programs of a grid. An empty grid does nothing.
pub fn launch(
    module: &TileModule,
    kernel: FuncId,
    args: &[Arg],
    grid: [u32; 3],
    memory: &Memory,
    options: &Options,
) -> Result<(), Fault> {
    let func = module.funcs.get(kernel).filter(|f| f.kind == FuncKind::Kernel);
    let func = func.ok_or_else(|| Fault::new("E0701", "what is launched is not a kernel"))?;
    let space = Arc::new(memory.space());
    let values = bind(module, func, args, &space)?;
    let total = grid.iter().try_fold(1u64, |n, d| n.checked_mul(u64::from(*d))).filter(|n| *n < 1 << 62);
    let total =
        total.ok_or_else(|| Fault::new("E0705", format!("a grid of {grid:?} has too many programs")))?;
    let code = Code::new(module, kernel)?;
    let workers = options.threads.unwrap_or_else(rayon::current_num_threads).max(1);
    let run = Grid {
        kernel,
        code: &code,
        values: &values,
        context: Context { program: [0; 3], grid, space },
        total,
        // Several chunks for each worker even the load out; beyond 64 programs the counter costs nothing.
        chunk: (total / (workers as u64 * 16)).clamp(1, 64),
        next: AtomicU64::new(0),
        lowest: AtomicU64::new(u64::MAX),
        fault: Mutex::new(None),
        deadline: Deadline::new(options),
    };
    let workers = total.div_ceil(run.chunk).min(workers as u64);
    if workers <= 1 {
        run.work();
    } else {
        rayon::scope(|scope| (0..workers).for_each(|_| scope.spawn(|_| run.work())));
    }
    let fault = run.fault.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    fault.map_or(Ok(()), Err)
}

/// A launch on its way.
struct Grid<'c, 'm> {
    kernel: FuncId,
    code: &'c Code<'m>,
    values: &'c [Value],
    context: Context,
    total: u64,
    /// Programs that a worker takes at a time.
    chunk: u64,
    next: AtomicU64,
    /// The lowest program that failed; those above need not run any more.
    lowest: AtomicU64,
    fault: Mutex<Option<Fault>>,
    deadline: Deadline,
}

impl Grid<'_, '_> {
    /// Takes chunks in order until none is left. Every program below one that failed is finished by whoever took it.
    fn work(&self) {
        let mut machine = Machine::new(self.code, self.context.clone(), None);
        loop {
            let start = self.next.fetch_add(self.chunk, Ordering::Relaxed);
            if start >= self.total {
                return;
            }
            for p in start..(start + self.chunk).min(self.total) {
                if p > self.lowest.load(Ordering::Relaxed) {
                    return;
                }
                if let Err(fault) = self.program(&mut machine, p) {
                    self.failed(p, fault);
                    return;
                }
            }
        }
    }

    fn program(&self, machine: &mut Machine<'_, '_>, p: u64) -> Result<(), Fault> {
        let [x, y, _] = self.context.grid.map(|d| u64::from(d).max(1));
        machine.context.program = [(p % x) as u32, (p / x % y) as u32, (p / x / y) as u32];
        machine.start(self.kernel, self.values)?;
        while machine.run(SLICE)? == Status::Paused {
            self.deadline.check(machine)?;
            if p > self.lowest.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
        Ok(())
    }

    fn failed(&self, p: u64, fault: Fault) {
        let mut slot = self.fault.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if p < self.lowest.load(Ordering::Relaxed) {
            self.lowest.store(p, Ordering::Relaxed);
            *slot = Some(fault);
        }
    }
}

/// The values of the parameters.
fn bind(module: &TileModule, func: &Func, args: &[Arg], space: &Space) -> Result<Vec<Value>, Fault> {
    let params = func.blocks.get(func.body).map_or(&[][..], |b| &b.args);
    if params.len() != args.len() {
        let message = format!("kernel `{}` takes {} arguments, not {}", func.name, params.len(), args.len());
        return Err(Fault::new("E0701", message));
    }
    let bound = params.iter().zip(args).enumerate().map(|(i, (param, arg))| {
        let ty = module.types.get(func.ty(*param));
        bind_one(ty, arg, space).map_err(|(code, message)| {
            let name = func.param_names.get(i).map_or("", |n| n);
            Fault::new(code, format!("argument `{name}` of kernel `{}`: {message}", func.name))
        })
    });
    bound.collect()
}

fn bind_one(ty: &Type, arg: &Arg, space: &Space) -> Result<Value, (&'static str, String)> {
    let freed = || ("E0701", "its buffer was freed".to_string());
    let wrong = |found: &str| Err(("E0702", format!("`{ty}` is asked for, not {found}")));
    match (ty, arg) {
        (Type::Tile { elem: Elem::Scalar(d), .. }, Arg::Scalar(s)) if s.dtype() == *d => Ok(Value::Splat(*s)),
        (Type::Tile { elem: Elem::Ptr { .. }, .. }, Arg::Null) => Ok(Value::Ptr(Pointer::NULL)),
        (Type::Tile { elem: Elem::Ptr { .. }, .. }, Arg::Ptr { buffer, offset }) => {
            Ok(Value::Ptr(space.pointer(*buffer).ok_or_else(freed)?.add(*offset)))
        }
        (Type::View { rank, wide, .. }, Arg::View { buffer, offset, shape, strides }) => {
            if shape.len() != *rank as usize || strides.len() != shape.len() {
                return Err((
                    "E0703",
                    format!("a view of rank {rank} is asked for, not of rank {}", shape.len()),
                ));
            }
            let most = if *wide { i64::MAX } else { i64::from(i32::MAX) };
            if let Some(d) = shape.iter().find(|d| !(0..=most).contains(*d)) {
                return Err(("E0701", format!("an extent of {d} is not between 0 and {most}")));
            }
            let base = space.pointer(*buffer).ok_or_else(freed)?.add(*offset);
            Ok(Value::View(Arc::new(View { base, shape: shape.clone(), strides: strides.clone() })))
        }
        (_, Arg::Scalar(s)) => wrong(&format!("a number of type `{}`", s.dtype())),
        (_, Arg::Null) => wrong("a null pointer"),
        (_, Arg::Ptr { .. }) => wrong("a pointer"),
        (_, Arg::View { .. }) => wrong("a view"),
    }
}

/// Runs a `test`.
pub fn run_test(
    module: &TileModule,
    test: FuncId,
    host: &dyn Host,
    memory: &Memory,
    options: &Options,
) -> Result<(), Fault> {
    let code = Code::new(module, test)?;
    let context = Context { program: [0; 3], grid: [1; 3], space: Arc::new(memory.space()) };
    let mut machine = Machine::new(&code, context, Some(HostContext { host, memory }));
    let deadline = Deadline::new(options);
    machine.start(test, &[])?;
    while machine.run(SLICE)? == Status::Paused {
        deadline.check(&machine)?;
    }
    Ok(())
}
