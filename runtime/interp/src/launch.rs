//! Launching: binding arguments, and running a test.
//!
//! Guarantees that a program gets values of the types that it asks for.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tk_ops::scalar::Scalar;
use tk_tile::{ElemType, Func, FuncId, FuncKind, TileModule, Type, ValueId};

use crate::checked::Checker;
use crate::code::Code;
use crate::debug::Debugging;
use crate::exec::Context;
use crate::fault::Fault;
use crate::host::{Host, HostContext};
use crate::machine::{Machine, Status};
use crate::memory::{BufferId, Memory};
use crate::print::Printed;
use crate::schedule::{self, Deadline, SLICE};
use crate::space::Space;
use crate::trace::{self, Trace};
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
        /// Elements after its start.
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

/// The options of a run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Threads that run programs; without a number as many as the machine has cores.
    pub threads: Option<usize>,
    /// A launch that is not done after this time stops with a fault.
    pub timeout: Option<Duration>,
    /// A launch stops with a fault once this is true.
    pub stop: Option<Arc<AtomicBool>>,
    /// Reports what a device would not: see the faults `E0709` to `E0716`. Programs run on one thread then.
    pub checked: bool,
    /// Pairs of parameters that may reach the same memory, by name.
    pub alias: Vec<(String, String)>,
    /// The output of programs.
    pub printed: Printed,
    /// Somebody who looks at what runs. The module must not have been changed since it was lowered.
    pub debugging: Option<Debugging>,
    /// Is told of accesses to memory. Programs run on one thread then.
    pub trace: Option<Trace>,
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
    kernel_of(module, kernel)?;
    let code = Code::new(module, kernel, options)?;
    run_grid(module, &code, kernel, args, grid, memory, options)
}

fn kernel_of(module: &TileModule, kernel: FuncId) -> Result<&Func, Fault> {
    let func = module.funcs.get(kernel).filter(|f| f.kind == FuncKind::Kernel);
    func.ok_or_else(|| Fault::new("E0701", "only kernels can be launched"))
}

fn run_grid(
    module: &TileModule,
    code: &Code<'_>,
    kernel: FuncId,
    args: &[Arg],
    grid: [u32; 3],
    memory: &Memory,
    options: &Options,
) -> Result<(), Fault> {
    let func = kernel_of(module, kernel)?;
    let mut space = memory.space();
    let checker = || Checker::of_grid(grid, func.param_names.clone(), options.alias.clone());
    space.observe(options.checked.then(checker), options.trace.clone());
    let values = bind(module, func, args, &mut space)?;
    if let Some(trace) = &options.trace {
        trace.begin(traced(module, func, args, grid, memory));
    }
    let total = grid.iter().try_fold(1u64, |n, d| n.checked_mul(u64::from(*d))).filter(|n| *n < 1 << 62);
    let total =
        total.ok_or_else(|| Fault::new("E0705", format!("a grid of {grid:?} has too many programs")))?;
    let printed = options.printed.clone();
    let context = Context { program: [0; 3], grid, space: Arc::new(space), printed: printed.clone() };
    let done = schedule::run(code, kernel, &values, &context, total, options);
    printed.end_launch();
    if let (Some(trace), Err(fault)) = (&options.trace, &done) {
        trace.end(fault.program);
    }
    done
}

self_cell::self_cell!(
    /// A module and what is computed of it for launches.
    struct Prepared {
        owner: TileModule,
        #[covariant]
        dependent: Code,
    }
);

/// A kernel that is prepared once and launched again and again, without checked mode.
pub struct Program {
    kernel: FuncId,
    prepared: Prepared,
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program").field("kernel", &self.kernel).finish_non_exhaustive()
    }
}

impl Program {
    /// Of a kernel of a module.
    pub fn new(module: TileModule, kernel: FuncId) -> Result<Program, Fault> {
        kernel_of(&module, kernel)?;
        let prepared = Prepared::try_new(module, |module| Code::new(module, kernel, &Options::default()))?;
        Ok(Program { kernel, prepared })
    }

    /// The types of its parameters, in order.
    pub fn params(&self) -> Vec<&Type> {
        let module = self.prepared.borrow_owner();
        let Some(func) = module.funcs.get(self.kernel) else { return vec![] };
        params(func).iter().map(|p| module.types.get(func.ty(*p))).collect()
    }

    /// Runs all programs of a grid. An empty grid does nothing.
    pub fn launch(
        &self,
        args: &[Arg],
        grid: [u32; 3],
        memory: &Memory,
        options: &Options,
    ) -> Result<(), Fault> {
        let options = Options { checked: false, ..options.clone() };
        let (module, code) = (self.prepared.borrow_owner(), self.prepared.borrow_dependent());
        run_grid(module, code, self.kernel, args, grid, memory, &options)
    }
}

/// The parameters of a function.
fn params(func: &Func) -> &[ValueId] {
    func.blocks.get(func.body).map_or(&[][..], |b| &b.args)
}

/// The values of the parameters.
fn bind(module: &TileModule, func: &Func, args: &[Arg], space: &mut Space) -> Result<Vec<Value>, Fault> {
    let params = params(func);
    if params.len() != args.len() {
        let message = format!("kernel `{}` takes {} arguments, not {}", func.name, params.len(), args.len());
        return Err(Fault::new("E0701", message));
    }
    let bound = params.iter().zip(args).enumerate().map(|(i, (param, arg))| {
        let ty = module.types.get(func.ty(*param));
        let name = func.param_names.get(i).map_or("", |n| n);
        let mut start = |id: BufferId| space.parameter(id, i as u32, name);
        bind_one(ty, arg, &mut start).map_err(|(code, message)| {
            Fault::new(code, format!("argument `{name}` of kernel `{}`: {message}", func.name))
        })
    });
    bound.collect()
}

/// A launch for a trace.
fn traced(module: &TileModule, func: &Func, args: &[Arg], grid: [u32; 3], memory: &Memory) -> trace::Launch {
    let param = |(i, (value, arg)): (usize, (&ValueId, &Arg))| {
        let elem = match module.types.get(func.ty(*value)) {
            Type::Tile { elem: ElemType::Ptr { pointee, .. }, .. } => pointee.as_ref(),
            ty => ty.elem(),
        };
        let bytes = match arg {
            Arg::Ptr { buffer, .. } | Arg::View { buffer, .. } => memory.len(*buffer),
            Arg::Scalar(_) | Arg::Null => 0,
        };
        let name = func.param_names.get(i).cloned().unwrap_or_default();
        trace::Param { name, elem: elem.clone(), arg: arg.clone(), bytes }
    };
    let params = params(func).iter().zip(args).enumerate().map(param).collect();
    trace::Launch { kernel: func.name.clone(), grid, params, accesses: vec![], fault: None, is_cut: false }
}

/// The value of one parameter; `start` gives the pointer to the first byte of a buffer.
fn bind_one(
    ty: &Type,
    arg: &Arg,
    start: &mut dyn FnMut(BufferId) -> Option<Pointer>,
) -> Result<Value, (&'static str, String)> {
    let freed = || ("E0701", "its buffer was freed".to_string());
    let wrong = |found: &str| Err(("E0702", format!("expected `{ty}`, found {found}")));
    match (ty, arg) {
        (Type::Tile { elem: ElemType::Scalar(d), .. }, Arg::Scalar(s)) if s.dtype() == *d => {
            Ok(Value::Splat(*s))
        }
        (Type::Tile { elem: ElemType::Ptr { .. }, .. }, Arg::Null) => Ok(Value::Ptr(Pointer::NULL)),
        (Type::Tile { elem: ElemType::Ptr { .. }, .. }, Arg::Ptr { buffer, offset }) => {
            Ok(Value::Ptr(start(*buffer).ok_or_else(freed)?.add(*offset)))
        }
        (Type::View { rank, wide, .. }, Arg::View { buffer, offset, shape, strides }) => {
            if shape.len() != *rank as usize || strides.len() != shape.len() {
                return Err((
                    "E0703",
                    format!("expected a view of rank {rank}, not of rank {}", shape.len()),
                ));
            }
            let most = if *wide { i64::MAX } else { i64::from(i32::MAX) };
            if let Some(d) = shape.iter().find(|d| !(0..=most).contains(*d)) {
                return Err(("E0701", format!("an extent of {d} is not between 0 and {most}")));
            }
            let base = start(*buffer).ok_or_else(freed)?.add(*offset);
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
    let code = Code::new(module, test, options)?;
    let mut space = memory.space();
    space.observe(options.checked.then(Checker::alone), None);
    let context =
        Context { program: [0; 3], grid: [1; 3], space: Arc::new(space), printed: options.printed.clone() };
    let mut machine = Machine::new(&code, context, Some(HostContext { host, memory }));
    let deadline = Deadline::new(options);
    machine.start(test, &[])?;
    while machine.run(SLICE)? != Status::Done {
        deadline.check(&machine)?;
    }
    Ok(())
}
