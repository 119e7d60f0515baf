//! Owns the one way from a kernel to its results: plan, specialize, passes, interpreter.
//!
//! A [`Session`] is a checked program together with its specializations, each compiled once. May assume that the
//! program has no errors. Guarantees that a launch of the command line and one of a `test` block go through the same
//! code, and that whatever is wrong is a list of diagnostics.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use tk_interp::{Arg, Fault, Memory, Options};
use tk_sema::Checked;
use tk_sema::contract::{self, HostArg, Plan, SetValue};
use tk_sema::eval::Bindings;
use tk_sema::hir::{FnId, HFn};
use tk_sema::specialize::specialize;
use tk_syntax::{Diagnostic, FileId, Span, codes};
use tk_tile::{Elem, FuncId, FuncKind, Module, TileModule, Type, pipeline, text};

use crate::pass;

/// What is wrong: at least one diagnostic is an error.
pub type Wrong = Vec<Diagnostic>;

/// A checked program that can be run.
pub struct Session {
    checked: Checked,
    /// Where `npy("x.npy", ..)` of a test looks.
    folder: PathBuf,
    compiled: Mutex<Vec<(FnId, Bindings, Arc<Compiled>)>>,
    dumps: Option<Mutex<Vec<(String, String)>>>,
}

/// A kernel or test with all that it calls, ready to run.
#[derive(Debug)]
pub struct Compiled {
    /// The functions that are left after the passes.
    pub module: TileModule,
    /// The kernel or test.
    pub entry: FuncId,
    /// What `static_print` said.
    pub notes: Vec<Diagnostic>,
}

/// Where an argument of a launch lies: a number has no place.
#[derive(Clone, Debug)]
pub struct Argument {
    /// What the launch contract sees.
    pub host: HostArg,
    /// A view of the tensor, if it is one.
    pub place: Option<Arg>,
}

impl Session {
    /// A session of a program without errors.
    pub fn new(checked: Checked) -> Session {
        let main = checked.sources.get(FileId(0)).map(|s| s.name.to_string()).unwrap_or_default();
        let folder = Path::new(&main).parent().map(Path::to_path_buf).unwrap_or_default();
        Session { checked, folder, compiled: Mutex::new(vec![]), dumps: None }
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

    /// The kernels of the main file, in order.
    pub fn kernels(&self) -> impl Iterator<Item = (FnId, &HFn)> {
        self.checked.hir.kernels().filter(|(_, f)| f.file == FileId(0))
    }

    /// The tests of the main file and their names, in order.
    pub fn tests(&self) -> impl Iterator<Item = (FnId, &str)> {
        self.checked.hir.tests().filter(|(_, f)| f.file == FileId(0)).map(|(id, f)| (id, f.name.as_str()))
    }

    /// The tile IR after every pass, by file name, if it was asked for.
    pub fn dumps(&self) -> Vec<(String, String)> {
        self.dumps.as_ref().map(|d| lock(d).clone()).unwrap_or_default()
    }

    /// Launches a kernel. Gives what `static_print` said if this is the first launch of its specialization.
    pub fn launch(
        &self,
        kernel: FnId,
        args: &[Argument],
        sets: &[(String, SetValue)],
        memory: &Memory,
    ) -> Result<Vec<Diagnostic>, Wrong> {
        pass::enter("launch contract");
        let host: Vec<HostArg> = args.iter().map(|a| a.host.clone()).collect();
        let plan = contract::plan(&self.checked.hir, kernel, &host, sets).map_err(|e| vec![*e.diagnostic])?;
        let (compiled, notes) = self.compile(kernel, &plan.bindings)?;
        if plan.grid.contains(&0) {
            return Ok(notes);
        }
        let place = self.checked.hir.func(kernel).span;
        let (bound, scratch) =
            bind(&compiled, &plan, args, memory).map_err(|what| vec![bug(place, &what)])?;
        pass::enter("interpreter");
        let module = &compiled.module;
        let done = tk_interp::launch(module, compiled.entry, &bound, plan.grid, memory, &Options::default());
        scratch.into_iter().for_each(|id| memory.free(id));
        done.map_err(|fault| vec![diagnostic(&fault, place)])?;
        Ok(notes)
    }

    /// The specialization of a kernel or test; what `static_print` said if it is new.
    pub fn compile(&self, id: FnId, bindings: &Bindings) -> Result<(Arc<Compiled>, Vec<Diagnostic>), Wrong> {
        let known = |list: &[(FnId, Bindings, Arc<Compiled>)]| {
            list.iter().find(|(f, b, _)| *f == id && b == bindings).map(|(_, _, c)| Arc::clone(c))
        };
        if let Some(compiled) = known(&lock(&self.compiled)) {
            return Ok((compiled, vec![]));
        }
        pass::enter("specialize");
        let special = specialize(&self.checked.hir, id, bindings)?;
        let span = self.checked.hir.func(id).span;
        let module = self.optimise(&special.kernel, special.module).map_err(|what| vec![bug(span, &what)])?;
        let entry =
            module.find(&special.kernel).ok_or_else(|| vec![bug(span, "the entry function is gone")])?;
        let compiled = Arc::new(Compiled { module, entry, notes: special.notes });
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
        // The observer is called behind a pass: what begins then is the next one.
        let mut next = pipeline::PASSES.iter().skip(1).map(|p| p.name);
        pass::enter(pipeline::PASSES.first().map_or("verify", |p| p.name));
        let mut observer = |stage: &'static str, module: &Module| {
            dump(stage, module);
            pass::enter(next.next().unwrap_or("verify"));
        };
        pipeline::run(module, Some(&mut observer)).map_err(|e| e.to_string())
    }
}

/// The arguments of a specialization, and the workspaces that were allocated for it.
fn bind(
    compiled: &Compiled,
    plan: &Plan,
    args: &[Argument],
    memory: &Memory,
) -> Result<(Vec<Arg>, Vec<tk_interp::BufferId>), String> {
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
    let mut scratch = vec![];
    for s in &plan.scratch {
        let size = element_size(&s.elem);
        let bytes = usize::try_from(s.count).ok().and_then(|n| n.checked_mul(size));
        let bytes = bytes.ok_or_else(|| format!("workspace `{}` does not fit in memory", s.name))?;
        let buffer = memory.alloc(vec![0; bytes]);
        scratch.push(buffer);
        bound.push(Arg::Ptr { buffer, offset: 0 });
    }
    Ok((bound, scratch))
}

/// A tensor where a pointer is asked for is its first element.
fn as_type(arg: &Arg, ty: &Type) -> Arg {
    match (arg, ty) {
        (Arg::View { buffer, offset, .. }, Type::Tile { .. }) => {
            Arg::Ptr { buffer: *buffer, offset: *offset }
        }
        (Arg::View { .. } | Arg::Ptr { .. } | Arg::Null | Arg::Scalar(_), _) => arg.clone(),
    }
}

/// Bytes of an element in memory; pointers are 64-bit addresses.
fn element_size(elem: &Elem) -> usize {
    match elem {
        Elem::Scalar(d) => d.bytes(),
        Elem::Ptr { .. } => 8,
    }
}

/// A fault as a diagnostic; without a place of its own it is about `place`.
pub(crate) fn diagnostic(fault: &Fault, place: Span) -> Diagnostic {
    let span = fault.loc.map_or(place, |l| Span::new(FileId(l.file), l.start as usize, l.end as usize));
    let code = codes::find(fault.code).unwrap_or(codes::FAULT);
    let d = Diagnostic::error(code, span, fault.message.clone(), "");
    match fault.program {
        Some([x, y, z]) => d.note(format!("in the program with the ids {x}, {y}, {z}")),
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
