//! Measures cases: kernels of the library with their defaults on many shapes, to find those that are slow.
//!
//! Guarantees that a case is timed only after its result was compared, that an error of a case is an entry of the
//! report, and that each case takes a bounded time. Only a kernel that does not end ends the program, after its entry.

use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, available_parallelism};
use std::time::Duration;

use serde_json::{Value, json};
use tk_ops::DType;
use tk_runtime::gpu::{Arg, CallSite, Clock, CudaError, Device, Launcher, Stream};

use crate::case::{Case, Named, Task};
use crate::memory::{COPIED, rate};
use crate::pool::{self, Memory, Numbers};
use crate::program::launcher;
use crate::raw::Copies;
use crate::report::{Report, or_error};
use crate::{Args, Stop, compare};

/// Time that a launch may take.
const LIMIT: Duration = Duration::from_secs(20);
/// The stack of a thread that compiles: that of a main thread.
const STACK: usize = 8 << 20;

/// An argument of a kernel.
pub struct Argument {
    dtype: DType,
    /// A tensor by address, shape and strides; a number; or nothing.
    kind: Kind,
}

enum Kind {
    Tensor(u64, Vec<i64>, Vec<i64>),
    Number(f32),
    Absent,
}

impl Argument {
    fn arg(&self) -> Arg<'_> {
        match &self.kind {
            Kind::Tensor(address, shape, strides) => Arg::foreign(*address, self.dtype, shape, strides),
            Kind::Number(v) => Arg::from(*v),
            Kind::Absent => Arg::Absent,
        }
    }

    /// The same tensor with no memory.
    fn without_memory(&self) -> Arg<'_> {
        match self.arg() {
            Arg::Tensor { address, dtype, shape, strides, .. } => {
                Arg::Tensor { address, bytes: 0, dtype, shape, strides }
            }
            other @ (Arg::Scalar(_) | Arg::Absent) => other,
        }
    }

    #[cfg(test)]
    pub fn host(&self) -> tk_sema::contract::HostArg {
        use tk_sema::contract::HostArg;
        match &self.kind {
            Kind::Tensor(_, shape, strides) => {
                HostArg::Tensor { dtype: self.dtype, shape: shape.clone(), strides: strides.clone() }
            }
            Kind::Number(v) => HostArg::Scalar(tk_ops::Scalar::float(DType::F32, f64::from(*v))),
            Kind::Absent => HostArg::Absent,
        }
    }
}

/// The arguments of a case whose operands, targets and result begin at these addresses.
pub fn arguments(case: &Case, operands: u64, targets: u64, out: u64) -> Vec<Argument> {
    let last = |d: [usize; 2], rank: usize| d.iter().skip(2 - rank).map(|n| *n as i64).collect();
    let mut all: Vec<Argument> = vec![];
    for o in case.operands() {
        let address = operands + (o.first * case.dtype.bytes()) as u64;
        let kind = Kind::Tensor(address, last(o.shape, o.rank), last(o.strides, o.rank));
        all.push(Argument { dtype: case.dtype, kind });
    }
    if matches!(case.task, Task::Product { .. }) {
        // No bias.
        all.push(Argument { dtype: case.dtype, kind: Kind::Absent });
    }
    all.extend(case.targets().map(|count| Argument {
        dtype: DType::I64,
        kind: Kind::Tensor(targets, vec![count as i64], vec![1]),
    }));
    let [rows, columns] = case.result();
    let kind = if case.reduces() {
        Kind::Tensor(out, vec![rows as i64], vec![1])
    } else {
        Kind::Tensor(out, last([rows, columns], 2), last([columns, 1], 2))
    };
    all.push(Argument { dtype: case.out(), kind });
    all.extend(case.eps().map(|eps| Argument { dtype: DType::F32, kind: Kind::Number(eps) }));
    all
}

/// A file of the library and what launches its kernels, or why nothing does.
type Files = Vec<(&'static str, Result<Launcher, String>)>;

/// Why a case has no result.
enum Wrong {
    Failed(String),
    /// Its kernel does not end.
    Hangs(String),
}

impl From<String> for Wrong {
    fn from(sentence: String) -> Wrong {
        Wrong::Failed(sentence)
    }
}

fn gpu(e: CudaError) -> String {
    e.to_string()
}

/// Measures the cases, and a copy if there is an operation on rows.
pub fn run(args: &Args, device: &Device, cases: &[Named], report: &mut Report) -> Result<(), Stop> {
    let known: Vec<&Case> = cases.iter().filter_map(|(_, case)| case.as_ref().ok()).collect();
    let numbers = pool::numbers(&known);
    let has_rows = known.iter().any(|c| matches!(c.task, Task::Rows { .. }));
    if let Some(numbers) = numbers.first().filter(|_| has_rows) {
        report.put("copy", or_error(copy(args, device, numbers)))?;
    }
    let mut files: Files = vec![];
    for (file, _) in known.iter().map(|c| c.kernel()) {
        if !files.iter().any(|(f, _)| *f == file) {
            files.push((file, launcher(&args.root, file, device)));
        }
    }
    let mut memory = Memory::new(device, &numbers, &known)?;
    compile_ahead(args, device, &files, &known, &memory);
    for (name, case) in cases {
        if device.lost().is_some() {
            device.recover().map_err(gpu)?;
            // What belonged to the lost context stays lost.
            memory = Memory::new(device, &numbers, &known)?;
        }
        // This is what remains of a case that ends the program.
        report.put_in(
            "cases",
            name,
            json!({ "error": format!("{name}: the program ended in this case") }),
        )?;
        let measured = case.as_ref().map_err(|e| Wrong::Failed(e.clone())).and_then(|case| {
            catch_unwind(AssertUnwindSafe(|| measure(case, &files, &numbers, &memory)))
                .unwrap_or_else(|_| Err(Wrong::Failed("internal error: the compiler panicked".to_string())))
        });
        let hangs = matches!(measured, Err(Wrong::Hangs(_)));
        let said = |(Wrong::Failed(e) | Wrong::Hangs(e))| format!("{name}: {e}");
        report.put_in("cases", name, or_error(measured.map_err(said)))?;
        if hangs {
            return Err(Stop::Failed(format!("{name} keeps the GPU busy; the cases after it are left out")));
        }
    }
    Ok(())
}

/// The device copy, of numbers that are not alike: bytes read and written.
fn copy(args: &Args, device: &Device, numbers: &Numbers) -> Result<Value, String> {
    let bytes = args.elements as usize * COPIED;
    let (clock, copies) = (Clock::new(device)?, Copies::new()?);
    let (from, to) = (device.alloc(bytes).map_err(gpu)?, device.alloc(bytes).map_err(gpu)?);
    numbers.fill(&copies, &clock.stream, &from)?;
    let ms = clock.median(&mut |stream| copies.copy(stream, to.address(), from.address(), bytes))?;
    Ok(json!({ "bytes": 2 * bytes, "ms": ms, "TBps": rate(2 * bytes, ms) }))
}

/// The call site of a case, and its arguments.
fn site(case: &Case, files: &Files, memory: &Memory) -> Result<(CallSite, Vec<Argument>), String> {
    let (file, kernel) = case.kernel();
    let found = files.iter().find(|(f, _)| *f == file).map(|(_, launcher)| launcher.as_ref());
    let launcher = found.ok_or("there is no such file")?.map_err(Clone::clone)?;
    let site = launcher.site(kernel, &case.sets).map_err(|e| e.to_string())?;
    let (operands, targets) = (memory.address(case.dtype), memory.targets.address());
    Ok((site, arguments(case, operands, targets, memory.out.address())))
}

/// Compiles the kernels of all cases on all cores, since the GPU waits for it. A launch compiles before it checks that
/// tensors fit in their memory, so one with tensors of no memory compiles and never runs. What goes wrong is left to the
/// launch that counts.
fn compile_ahead(args: &Args, device: &Device, files: &Files, cases: &[&Case], memory: &Memory) {
    let cores = available_parallelism().map_or(1, NonZero::get);
    let threads = args.threads.map_or(cores, |n| n as usize).min(cases.len());
    let next = AtomicUsize::new(0);
    let work = || {
        let Ok(stream) = device.stream() else { return };
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            let compile = || {
                if let Ok((mut site, arguments)) = site(case, files, memory) {
                    let arguments: Vec<Arg<'_>> = arguments.iter().map(Argument::without_memory).collect();
                    let _ = site.launch(&stream, &arguments);
                }
            };
            let _ = catch_unwind(AssertUnwindSafe(compile));
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads {
            // A thread that cannot be started is not missed: the launch that counts compiles as well.
            let _ = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
        }
    });
}

fn measure(case: &Case, files: &Files, numbers: &[Numbers], memory: &Memory) -> Result<Value, Wrong> {
    let (mut site, arguments) = site(case, files, memory)?;
    let arguments: Vec<Arg<'_>> = arguments.iter().map(Argument::arg).collect();
    let mut launch = |stream: &Stream| site.launch(stream, &arguments).map_err(|e| e.to_string());
    let stream = &memory.clock.stream;
    memory.copies.poison(stream, memory.out.address(), case.results() * case.out().bytes())?;
    launch(stream)?;
    if !stream.synchronize_within(LIMIT).map_err(gpu)? {
        return Err(Wrong::Hangs(format!("its kernel takes more than {} s", LIMIT.as_secs())));
    }
    let norm = compare::check(case, pool::of_type(numbers, case.dtype)?, memory)?;
    let ms = memory.clock.brief(&mut launch)?;
    let (unit, speed) = case.speed(ms);
    Ok(json!({ "ms": ms, "seconds": ms / 1e3, unit: speed, "norm_of_error": norm, "error": Value::Null }))
}
