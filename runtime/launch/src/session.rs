//! The one path from a kernel to its results: plan, specialize, passes, then the interpreter or a device.
//!
//! A [`Session`] is a checked program together with its specializations, each compiled once. Requires a program
//! without errors. Guarantees that a launch of the command line and one of a `test` block go through the same code,
//! and that whatever is wrong is a list of diagnostics.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tk_interp::print::Echo;
use tk_interp::{Arg, BufferId, Debugger, Debugging, Fault, Memory, Options, Printed, Trace};
use tk_ops::{ControlOp, Op};
use tk_sema::Checked;
use tk_sema::contract::{self, HostArg, Plan, ScratchPlan, SetValue};
use tk_sema::eval::Bindings;
use tk_sema::hir::{FnId, HFn};
use tk_sema::specialize::{specialize, specialize_for_debugger};
use tk_syntax::codes::{self, Code};
use tk_syntax::{Diagnostic, FileId, Span};
use tk_tile::debug::DebugInfo;
use tk_tile::{ElemType, Func, FuncId, FuncKind, Module, TileModule, Type, pipeline, text, walk};

use crate::choice::{Choices, Place};
use crate::device::{Device, LaunchOptions};
use crate::{pass, room};

/// The diagnostics of a failure: at least one is an error.
pub type Wrong = Vec<Diagnostic>;

/// A checked program that can be run.
pub struct Session {
    checked: Checked,
    /// The folder of `npy("x.npy", ..)` in tests.
    folder: PathBuf,
    compiled: Mutex<Vec<(FnId, Bindings, Arc<Compiled>)>>,
    dumps: Option<Mutex<Vec<(String, String)>>>,
    /// The time limit of a launch or a test.
    timeout: Option<Duration>,
    /// Whether launches and tests run in checked mode.
    checked_mode: bool,
    /// Kernels print how long their loops took.
    stamps: bool,
    places_of_calls: bool,
    /// Who looks at what the interpreter runs.
    debugger: Option<Arc<dyn Debugger>>,
    /// The output of kernels.
    printed: Printed,
    /// Is told of accesses to memory on the interpreter.
    trace: Option<Trace>,
    /// The device of kernels; none is the interpreter.
    device: Option<Arc<dyn Device>>,
    /// None if launches use the defaults.
    choices: Option<Choices>,
    /// The messages about records that have been given.
    shown_notes: Mutex<BTreeSet<String>>,
}

/// A kernel or test with all that it calls, ready to run.
#[derive(Debug)]
pub struct Compiled {
    /// A number that no other specialization of this process has.
    pub id: u64,
    /// The functions that are left after the passes.
    pub module: TileModule,
    /// The kernel or test.
    pub entry: FuncId,
    /// The messages of `static_print`.
    pub notes: Vec<Diagnostic>,
    /// What a debugger asks for, if there is one; then no pass has run.
    pub debug: Arc<DebugInfo>,
}

/// The memory of an argument of a launch: a number has no place.
#[derive(Clone, Debug)]
pub struct Argument {
    /// The argument as the launch contract sees it.
    pub host: HostArg,
    /// A view of the tensor, if it is one.
    pub place: Option<Arg>,
}

impl Session {
    /// A session of a program without errors.
    pub fn new(checked: Checked) -> Session {
        let main = checked.sources.get(FileId(0)).map(|s| s.name.to_string()).unwrap_or_default();
        let folder = Path::new(&main).parent().map(Path::to_path_buf).unwrap_or_default();
        Session {
            checked,
            folder,
            compiled: Mutex::new(vec![]),
            dumps: None,
            timeout: None,
            checked_mode: false,
            stamps: false,
            places_of_calls: false,
            debugger: None,
            printed: Printed::default(),
            trace: None,
            device: None,
            choices: Some(Choices::default()),
            shown_notes: Mutex::default(),
        }
    }

    /// The same, running kernels on a device instead of the interpreter. What a `test` block does around its launches
    /// is still interpreted. Checked mode stays the interpreter's: in it, no device is asked.
    pub fn on(mut self, device: Arc<dyn Device>) -> Session {
        self.device = Some(device);
        self
    }

    /// The device of launches, as their contracts and records see it.
    pub(crate) fn place(&self) -> Place {
        match &self.device {
            Some(device) if !self.checked_mode => device.place(),
            Some(_) | None => Place::cpu(),
        }
    }

    /// The facts that launch contracts and compile-time code may ask for about the device.
    pub(crate) fn facts(&self) -> contract::Device {
        self.place().facts
    }

    /// The same, with the defaults of kernels for what no launch gives by name: tuning records are not read, and the cost
    /// model is not asked.
    pub fn without_tuning(mut self) -> Session {
        self.choices = None;
        self
    }

    pub(crate) fn choices(&self) -> Option<&Choices> {
        self.choices.as_ref()
    }

    pub(crate) fn shown_notes(&self) -> &Mutex<BTreeSet<String>> {
        &self.shown_notes
    }

    /// The same, ending what runs longer with a fault.
    pub fn with_timeout(mut self, timeout: Option<Duration>) -> Session {
        self.timeout = timeout;
        self
    }

    /// The same, in checked mode or not: reporting what a device would not.
    pub fn checked_mode(mut self, on: bool) -> Session {
        self.checked_mode = on;
        self
    }

    /// The same, giving what functions of other files do the places of their calls in the file of the program.
    pub fn with_places_of_calls(mut self) -> Session {
        self.places_of_calls = true;
        self
    }

    /// The same, telling each line of `print` at once, too.
    pub fn with_echo(mut self, echo: Echo) -> Session {
        self.printed = Printed::echoing(echo);
        self
    }

    /// Tells a line that a test prints itself.
    pub(crate) fn echo(&self, line: &str) {
        self.printed.echo(line);
    }

    /// The same, telling a trace of the launches on the interpreter. Their programs run on one thread.
    pub fn with_trace(mut self, trace: Trace) -> Session {
        self.trace = Some(trace);
        self
    }

    /// The same with kernels that print clock stamps ([`tk_tile::passes::stamp`]).
    pub fn with_stamps(mut self) -> Session {
        self.stamps = true;
        self
    }

    /// The same on the interpreter, under a debugger. Nothing is inlined or changed by passes.
    pub fn with_debugger(mut self, debugger: Arc<dyn Debugger>) -> Session {
        self.debugger = Some(debugger);
        self
    }

    /// Returns true if launches and tests run in checked mode.
    pub(crate) fn is_checked(&self) -> bool {
        self.checked_mode
    }

    /// The options of the interpreter for a specialization.
    pub(crate) fn options(&self, compiled: &Compiled) -> Options {
        let debugging = |debugger: &Arc<dyn Debugger>| Debugging {
            debugger: Arc::clone(debugger),
            info: Arc::clone(&compiled.debug),
        };
        Options {
            debugging: self.debugger.as_ref().map(debugging),
            timeout: self.timeout,
            checked: self.checked_mode,
            printed: self.printed.clone(),
            trace: self.trace.clone(),
            ..Options::default()
        }
    }

    /// The output of kernels since the last call: lines that end in a line break.
    pub fn printed(&self) -> String {
        self.printed.take()
    }

    /// The same, keeping the tile IR after every pass.
    pub fn dumping(mut self) -> Session {
        self.dumps = Some(Mutex::new(vec![]));
        self
    }

    /// The same with another folder for the `.npy` files of tests than that of the source.
    pub fn in_folder(mut self, folder: &Path) -> Session {
        self.folder = folder.to_path_buf();
        self
    }

    /// The program.
    pub fn checked(&self) -> &Checked {
        &self.checked
    }

    /// The folder for the `.npy` files of tests.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The kernels of the main file, and those of other files that it exports.
    pub fn kernels(&self) -> impl Iterator<Item = (FnId, &HFn)> {
        let main = FileId(0);
        let exports =
            move |id| self.checked.hir.exports.iter().any(|e| e.kernel == id && e.span.file == main);
        self.checked.hir.kernels().filter(move |(id, f)| f.file == main || exports(*id))
    }

    /// The tests of the main file and their names, in order.
    pub fn tests(&self) -> impl Iterator<Item = (FnId, &str)> {
        self.checked.hir.tests().filter(|(_, f)| f.file == FileId(0)).map(|(id, f)| (id, f.name.as_str()))
    }

    /// The tile IR after every pass, by file name, if it was asked for.
    pub fn dumps(&self) -> Vec<(String, String)> {
        self.dumps.as_ref().map(|d| lock(d).clone()).unwrap_or_default()
    }

    /// Launches a kernel. Returns the messages of `static_print` if this is the first launch of its specialization.
    pub fn launch(
        &self,
        kernel: FnId,
        args: &[Argument],
        sets: &[(String, SetValue)],
        memory: &Memory,
    ) -> Result<Vec<Diagnostic>, Wrong> {
        pass::enter("launch contract");
        let host: Vec<HostArg> = args.iter().map(|a| a.host.clone()).collect();
        let device = self.device.as_ref().filter(|_| !self.checked_mode);
        let compiler = device.and_then(|d| d.compiler());
        let choice = self.choose(kernel, &host, sets, &self.place(), compiler)?;
        let plan = &choice.plan;
        let (compiled, mut notes) = self.compile(kernel, &plan.bindings)?;
        notes.extend(choice.notes.iter().cloned());
        if plan.grid.contains(&0) {
            return Ok(notes);
        }
        let place = self.checked.hir.func(kernel).span;
        meeting(&compiled.module, plan, place)?;
        let mut bound = bind(&compiled, plan, args).map_err(|what| vec![bug(place, &what)])?;
        let scratch = workspaces(plan, place, memory)?;
        bound.extend(scratch.iter().map(|id| Arg::Ptr { buffer: *id, offset: 0 }));
        let done = match &self.device {
            Some(device) if !self.checked_mode => {
                pass::enter("device");
                let (timeout, printed) = (self.timeout, self.printed.clone());
                let options = LaunchOptions { timeout, printed, ..LaunchOptions::of(&plan.launch) };
                device.launch(&compiled, &bound, plan.grid, &options, memory)
            }
            Some(_) | None => self.interpret(&compiled, plan, &bound, memory),
        };
        let done = done.map_err(|fault| vec![diagnostic(&fault, place)]);
        let done = done.and_then(|()| are_restored(plan, &scratch, place, memory));
        scratch.into_iter().for_each(|id| memory.free(id));
        done.map(|()| notes)
    }

    /// Launches on the interpreter.
    fn interpret(
        &self,
        compiled: &Compiled,
        plan: &Plan,
        args: &[Arg],
        memory: &Memory,
    ) -> Result<(), Fault> {
        pass::enter("interpreter");
        let names = argument_names(compiled, plan);
        let name = |i: usize| names.get(i).cloned().unwrap_or_default();
        let alias = plan.alias.iter().map(|(a, b)| (name(*a), name(*b))).collect();
        let options = Options { alias, ..self.options(compiled) };
        tk_interp::launch(&compiled.module, compiled.entry, args, plan.grid, memory, &options)
    }

    /// The specialization of a kernel or test, and the messages of `static_print` if it is new.
    pub fn compile(&self, id: FnId, bindings: &Bindings) -> Result<(Arc<Compiled>, Vec<Diagnostic>), Wrong> {
        let known = |list: &[(FnId, Bindings, Arc<Compiled>)]| {
            list.iter().find(|(f, b, _)| *f == id && b == bindings).map(|(_, _, c)| Arc::clone(c))
        };
        if let Some(compiled) = known(&lock(&self.compiled)) {
            return Ok((compiled, vec![]));
        }
        pass::enter("specialize");
        let specialize = if self.debugger.is_some() { specialize_for_debugger } else { specialize };
        let special = specialize(&self.checked.hir, id, bindings)?;
        let span = self.checked.hir.func(id).span;
        let module = self.optimise(&special.kernel, special.module).map_err(|what| vec![bug(span, &what)])?;
        let entry =
            module.find(&special.kernel).ok_or_else(|| vec![bug(span, "the entry function is gone")])?;
        static IDS: AtomicU64 = AtomicU64::new(0);
        let number = IDS.fetch_add(1, Ordering::Relaxed);
        let (notes, debug) = (special.notes, Arc::new(special.debug));
        let compiled = Arc::new(Compiled { id: number, module, entry, notes, debug });
        lock(&self.compiled).push((id, bindings.clone(), Arc::clone(&compiled)));
        Ok((Arc::clone(&compiled), compiled.notes.clone()))
    }

    /// Runs the passes.
    fn optimise(&self, name: &str, module: Module) -> Result<TileModule, String> {
        let module = TileModule::new(module).map_err(|e| e.to_string())?;
        let mut number = 0;
        let mut dump = |stage: &str, module: &Module| {
            if let Some(dumps) = &self.dumps {
                let file = format!("{}.{number:02}-{stage}.tir", file_name(name));
                lock(dumps).push((file, text::print(module, text::Options::default())));
                number += 1;
            }
        };
        dump("specialize", &module);
        // The observer is called after a pass: what begins then is the next one.
        let mut next = pipeline::PASSES.iter().skip(1).map(|p| p.name);
        pass::enter(pipeline::PASSES.first().map_or("verify", |p| p.name));
        let mut observer = |stage: &'static str, module: &Module| {
            dump(stage, module);
            pass::enter(next.next().unwrap_or("verify"));
        };
        let passes = match self.debugger {
            Some(_) => vec![],
            None if self.checked_mode => pipeline::CHECKED.to_vec(),
            None if self.places_of_calls => pipeline::passes_at_calls(),
            None => pipeline::PASSES.to_vec(),
        };
        let module = pipeline::run_passes(&passes, module, Some(&mut observer)).map_err(|e| e.to_string())?;
        let stamps = if self.stamps { pipeline::STAMPS } else { &[] };
        pipeline::run_passes(stamps, module, None).map_err(|e| e.to_string())
    }
}

/// The names of the arguments in a specialization; one that is absent has none there.
fn argument_names(compiled: &Compiled, plan: &Plan) -> Vec<String> {
    let names = compiled.module.funcs.get(compiled.entry).map(|f| f.param_names.as_slice());
    let mut names = names.unwrap_or_default().iter();
    let name = |arg: &HostArg| match arg {
        HostArg::Absent => String::new(),
        HostArg::Scalar(_) | HostArg::Tensor { .. } => names.next().cloned().unwrap_or_default(),
    };
    plan.args.iter().map(name).collect()
}

/// The arguments of a specialization, without its workspaces.
fn bind(compiled: &Compiled, plan: &Plan, args: &[Argument]) -> Result<Vec<Arg>, String> {
    let (module, entry) = (&compiled.module, compiled.entry);
    let func = module.funcs.get(entry).filter(|f| f.kind == FuncKind::Kernel).ok_or("there is no kernel")?;
    let params = func.blocks.get(func.body).map(|b| b.args.as_slice()).unwrap_or_default();
    let mut types = params.iter().map(|v| module.types.get(func.ty(*v)));
    let mut bound = vec![];
    for (i, host) in plan.args.iter().enumerate() {
        let place = args.get(i).and_then(|a| a.place.as_ref());
        match (host, place) {
            (HostArg::Absent, _) => {}
            (HostArg::Scalar(s), _) => {
                types.next();
                bound.push(Arg::Scalar(*s));
            }
            (HostArg::Tensor { .. }, Some(arg)) => {
                bound.push(as_type(arg, types.next().ok_or("a parameter is missing")?))
            }
            (HostArg::Tensor { .. }, None) => return Err(format!("argument {i} has no place")),
        }
    }
    Ok(bound)
}

/// Allocates the workspaces of a launch.
fn workspaces(plan: &Plan, kernel: Span, memory: &Memory) -> Result<Vec<BufferId>, Wrong> {
    let alloc = |s: &ScratchPlan| {
        let bytes = room::workspace_bytes(s);
        let wrong = |what: String| {
            let message = format!("workspace `{}` of {} `{}` {what}", s.name, s.count, s.elem);
            vec![Diagnostic::error(codes::CLAUSE, kernel, message, "this kernel")]
        };
        room::check(bytes).map_err(wrong)?;
        let made = bytes.and_then(|n| memory.try_alloc(n, s.zeroed));
        made.ok_or_else(|| wrong("does not fit in memory".into()))
    };
    plan.scratch.iter().map(alloc).collect()
}

/// Fails if a workspace that the kernel promises to leave zero is not.
fn are_restored(plan: &Plan, workspaces: &[BufferId], kernel: Span, memory: &Memory) -> Result<(), Wrong> {
    for (s, id) in plan.scratch.iter().zip(workspaces).filter(|(s, _)| s.restored) {
        let bytes = memory.read(*id).unwrap_or_default();
        let Some(at) = bytes.iter().position(|b| *b != 0) else { continue };
        let element = at / element_size(&s.elem).max(1);
        let message = format!(
            "element {element} of the workspace `{}`, which is `restored`, has other bits than 0 at the end",
            s.name
        );
        let note = "a later launch of this stream begins with what is left there";
        return Err(vec![Diagnostic::error(codes::PROMISE, kernel, message, "this kernel").note(note)]);
    }
    Ok(())
}

/// A kernel whose programs meet is launched as a cooperative one.
pub(crate) fn meeting(module: &Module, plan: &Plan, kernel: Span) -> Result<(), Wrong> {
    if plan.launch.iter().any(|(name, v)| name == "cooperative" && *v != 0) {
        return Ok(());
    }
    let barrier = Op::Control(ControlOp::GridBarrier);
    let inside = |f: &Func| {
        walk::insts(f).into_iter().filter_map(|i| f.insts.get(i).cloned()).find(|i| i.op == barrier)
    };
    let Some(inst) = module.funcs.iter().find_map(|(_, f)| inside(f)) else { return Ok(()) };
    let span = inst.loc.map_or(kernel, |l| Span::new(FileId(l.file), l.start as usize, l.end as usize));
    let message = "`grid_barrier` needs a launch whose programs all run at the same time";
    let label = "the kernel does not declare `launch(cooperative = true)`";
    Err(vec![Diagnostic::error(codes::CLAUSE, span, message, label)])
}

/// A tensor passed as a pointer is its first element.
fn as_type(arg: &Arg, ty: &Type) -> Arg {
    match (arg, ty) {
        (Arg::View { buffer, offset, .. }, Type::Tile { .. }) => {
            Arg::Ptr { buffer: *buffer, offset: *offset }
        }
        (Arg::View { .. } | Arg::Ptr { .. } | Arg::Null | Arg::Scalar(_), _) => arg.clone(),
    }
}

/// Bytes of an element in memory; pointers are 64-bit addresses.
pub(crate) fn element_size(elem: &ElemType) -> usize {
    match elem {
        ElemType::Scalar(d) => d.bytes(),
        ElemType::Ptr { .. } => 8,
    }
}

/// The text at the place of a fault. It is empty where the message says all.
fn at_fault(code: Code) -> &'static str {
    match code {
        codes::UNWRITTEN => "read before initialization",
        codes::RACE | codes::ALIAS => "conflicting access",
        codes::OFFSET => "this offset overflows",
        codes::PROMISE => "does not hold",
        codes::DIVISION => "the divisor is 0",
        codes::LANES => "conflicting writes",
        codes::OUTSIDE => "out of bounds",
        codes::TEST_EXPECTED => "this block",
        _ => "",
    }
}

/// A fault as a diagnostic; without a place of its own it is about `place`.
pub(crate) fn diagnostic(fault: &Fault, place: Span) -> Diagnostic {
    let span = fault.loc.map_or(place, |l| Span::new(FileId(l.file), l.start as usize, l.end as usize));
    let code = codes::find(fault.code).unwrap_or(codes::FAULT);
    let d = Diagnostic::error(code, span, fault.message.clone(), at_fault(code));
    let d = match fault.other.as_deref() {
        Some((l, what)) => d.label(Span::new(FileId(l.file), l.start as usize, l.end as usize), what.clone()),
        None => d,
    };
    let d = match fault.program {
        Some([x, y, z]) => d.note(format!("in the program with the ids {x}, {y}, {z}")),
        None => d,
    };
    in_case(d, fault)
}

/// Says in which iteration of its compile-time loops a test has failed.
pub(crate) fn in_case(d: Diagnostic, fault: &Fault) -> Diagnostic {
    match &fault.case {
        Some(case) => d.note(format!("where {case}")),
        None => d,
    }
}

/// A mistake of the compiler, in the pass that runs now.
fn bug(span: Span, what: &str) -> Diagnostic {
    Diagnostic::error(codes::INTERNAL, span, format!("internal error in {}: {what}", pass::current()), "")
}

/// The contents of a mutex; a panic of another thread has been reported already.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The name of a specialization as a file name.
fn file_name(name: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || matches!(c, '=' | '_' | '-' | '.') { c } else { '_' };
    name.chars().map(plain).take(100).collect()
}
