//! Launches by a Rust program: [`Launcher`] and [`Site`], from a kernel's name and arguments to the driver.
//!
//! The first launch of its kind is planned by the kernel's contract, specialized and compiled; the result is an
//! [`Entry`]. A launch with the same key afterwards writes addresses into the entry's values and calls the driver: a
//! [`Site`] compares its key with the one before, then looks among those it has seen, and only then takes a lock.

use std::collections::HashMap;
use std::fmt;
use std::hash::BuildHasherDefault;
use std::sync::{Arc, Mutex};

use tk_interp::{Fault, Printed};
use tk_sema::contract::{self, ArgUse, HostArg, Plan, SetValue};
use tk_sema::hir::FnId;
use tk_syntax::{Diagnostic, Span, codes};
use tk_tile::traffic::Traffic;
use tk_tile::{ElemType, Type};

use super::binaries::{Binaries, traffic_of};
use super::device::Device;
use super::error::CudaError;
use super::kernel::Kernel;
use super::key::{self, Arg, KeyHasher};
use super::log;
use super::messages::Messages;
use super::stream::Stream;
use super::vendor::Code;
use super::with_memory::{Failed, Scratch, WithMemory};
use crate::choice::Place;
use crate::compile::{ArgFacts, Compile, ParamKind, flatten};
use crate::device::{LaunchOptions, with_notes};
use crate::session::{Compiled, Session, Wrong, diagnostic, lock, meeting};
use crate::workspace_bytes;

/// Entries that a site remembers before it forgets all: a program whose shapes never repeat must not fill memory.
pub(crate) const REMEMBERED: usize = 1024;

/// Why a launch failed, or the failure of earlier work.
#[derive(Clone, Debug)]
pub enum LaunchError {
    /// Rejected by the kernel's contract or the compiler.
    Refused(Vec<Diagnostic>),
    /// Failed on the GPU or in its driver.
    Device(CudaError),
    /// No shipped variant of the bundle supports it.
    Shipped(tk_bundle::Error),
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LaunchError::Device(error) => error.fmt(f),
            LaunchError::Shipped(error) => error.fmt(f),
            LaunchError::Refused(wrong) => match wrong.first() {
                Some(d) => write!(f, "{}: {}", d.code, with_notes(d)),
                None => f.write_str("a launch was refused"),
            },
        }
    }
}

impl std::error::Error for LaunchError {}

impl From<CudaError> for LaunchError {
    fn from(error: CudaError) -> Self {
        LaunchError::Device(error)
    }
}

impl From<Wrong> for LaunchError {
    fn from(wrong: Wrong) -> Self {
        LaunchError::Refused(wrong)
    }
}

/// A kernel and what it is given by name. Keys name it by its position.
#[derive(Clone, PartialEq)]
struct Class {
    kernel: FnId,
    sets: Vec<(String, SetValue)>,
}

/// A map from keys.
pub(crate) type ByKey<T> = HashMap<Box<[u64]>, T, BuildHasherDefault<KeyHasher>>;

/// Launches the kernels of a program on a GPU. Clones share compiled kernels.
#[derive(Clone, Debug)]
pub struct Launcher(Arc<Inner>);

struct Inner {
    session: Arc<Session>,
    binaries: Binaries,
    classes: Mutex<Vec<Class>>,
    entries: Mutex<ByKey<Arc<Entry>>>,
    /// Sites of [`Launcher::launch`], by the name of the kernel.
    sites: Mutex<HashMap<String, Site>>,
    notes: Mutex<Vec<Diagnostic>>,
    printed: Printed,
    /// Control memory of an earlier launch that may be used again.
    spare: Mutex<Option<Messages>>,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launcher").field("binaries", &self.binaries).finish_non_exhaustive()
    }
}

impl Launcher {
    /// Of a program, a GPU and what makes binaries for it. Fails if no target fits the GPU.
    pub fn new(
        session: Arc<Session>,
        device: Device,
        compiler: Arc<dyn Compile>,
    ) -> Result<Launcher, CudaError> {
        Ok(Launcher(Arc::new(Inner {
            session,
            binaries: Binaries::new(device, compiler)?,
            classes: Mutex::default(),
            entries: Mutex::default(),
            sites: Mutex::default(),
            notes: Mutex::default(),
            printed: Printed::default(),
            spare: Mutex::default(),
        })))
    }

    /// The GPU.
    pub fn device(&self) -> &Device {
        self.0.binaries.device()
    }

    /// The program.
    pub fn session(&self) -> &Session {
        &self.0.session
    }

    /// The compiler whose cost model predicts times of launches; `None` for the CPU.
    pub fn compiler(&self) -> Option<&dyn Compile> {
        self.0.binaries.compiler()
    }

    /// The GPU as launch contracts and tuning records see it.
    pub fn place(&self) -> Place {
        self.0.binaries.place()
    }

    /// Launches a kernel. A loop that launches is faster with a [`Site`].
    pub fn launch(&self, stream: &Stream, kernel: &str, args: &[Arg<'_>]) -> Result<(), LaunchError> {
        let mut sites = lock(&self.0.sites);
        if let Some(site) = sites.get_mut(kernel) {
            return site.launch(&self.0, stream, args);
        }
        let site = sites.entry(kernel.to_string()).or_insert(Site::new(&self.0, kernel, &[])?);
        site.launch(&self.0, stream, args)
    }

    /// A call site of one kernel, with compile-time parameters by name.
    pub fn site(&self, kernel: &str, sets: &[(String, SetValue)]) -> Result<CallSite, LaunchError> {
        Ok(CallSite { site: Site::new(&self.0, kernel, sets)?, launcher: self.clone() })
    }

    /// What a launch does at least: bytes and operations.
    ///
    /// # Errors
    /// It is refused, or the kernel cannot be specialized.
    pub fn traffic(
        &self,
        kernel: FnId,
        args: &[Arg<'_>],
        sets: &[(String, SetValue)],
    ) -> Result<Traffic, LaunchError> {
        let hosts: Vec<HostArg> = args.iter().map(Arg::host).collect();
        let choice = self.session().choose(kernel, &hosts, sets, &self.place(), self.compiler())?;
        Ok(traffic_of(self.session(), kernel, &choice.plan)?)
    }

    /// The output of kernels since the last call: lines that end in a line break. A launch of a kernel that prints or
    /// asserts waits for it. On the CPU, of all programs.
    pub fn printed(&self) -> String {
        match self.device().vendor().code {
            Code::Tile => super::cpu::printed().take(),
            Code::Machine => self.0.printed.take(),
        }
    }

    /// The output of `static_print` since the last call.
    pub fn notes(&self) -> Vec<Diagnostic> {
        std::mem::take(&mut *lock(&self.0.notes))
    }
}

/// A call site of one kernel: repeated launches with arguments of the same kind are fast.
#[derive(Debug)]
pub struct CallSite {
    site: Site,
    launcher: Launcher,
}

impl CallSite {
    /// Plans and compiles what a launch with these arguments needs.
    pub fn prepare(&mut self, args: &[Arg<'_>]) -> Result<(), LaunchError> {
        key::write(self.site.class, &self.site.uses, args, &mut self.site.next);
        self.site.last = self.site.find(&self.launcher.0, args)?;
        Ok(())
    }

    /// Launches the kernel.
    #[inline]
    pub fn launch(&mut self, stream: &Stream, args: &[Arg<'_>]) -> Result<(), LaunchError> {
        self.site.launch(&self.launcher.0, stream, args)
    }
}

/// The state of one place that launches.
#[derive(Debug)]
struct Site {
    class: u64,
    uses: Vec<ArgUse>,
    /// The key of the launch at hand.
    next: Vec<u64>,
    known: Vec<Known>,
    by_key: ByKey<usize>,
    /// The entry of the launch before.
    last: usize,
}

/// An entry with values of its own, which the next launch changes.
#[derive(Debug)]
struct Known {
    key: Box<[u64]>,
    entry: Arc<Entry>,
    values: Box<[u64]>,
}

/// A launch but for the addresses.
#[derive(Debug)]
struct Entry {
    kernel: Arc<Kernel>,
    grid: [u32; 3],
    cooperative: bool,
    values: Box<[u64]>,
    changes: Box<[Change]>,
    scratch: Box<[Scratch]>,
    /// It needs no memory beside its arguments.
    plain: bool,
    /// The names of the parameters.
    names: Box<[String]>,
    /// The kernel in the source.
    place: Span,
}

/// A value that each launch writes.
#[derive(Clone, Copy, Debug)]
struct Change {
    value: usize,
    arg: usize,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    /// The address of a tensor or the bits of a number.
    Bits,
    Extent(usize),
    Stride(usize),
}

impl Site {
    fn new(inner: &Inner, kernel: &str, sets: &[(String, SetValue)]) -> Result<Site, LaunchError> {
        let hir = &inner.session.checked().hir;
        let Some(id) = contract::kernel_named(hir, kernel) else {
            let message = format!("there is no kernel `{kernel}`");
            return Err(vec![Diagnostic::error(codes::LAUNCH_ARGS, Span::default(), message, "")].into());
        };
        let mut classes = lock(&inner.classes);
        let class = Class { kernel: id, sets: sets.to_vec() };
        let number = classes.iter().position(|c| *c == class).unwrap_or(classes.len());
        if number == classes.len() {
            classes.push(class);
        }
        Ok(Site {
            class: number as u64,
            uses: inner.uses(id),
            next: vec![],
            known: vec![],
            by_key: ByKey::default(),
            last: 0,
        })
    }

    #[inline]
    fn launch(&mut self, inner: &Inner, stream: &Stream, args: &[Arg<'_>]) -> Result<(), LaunchError> {
        key::write(self.class, &self.uses, args, &mut self.next);
        let same = self.known.get(self.last).is_some_and(|k| *k.key == *self.next);
        if !same {
            self.last = self.find(inner, args)?;
        }
        if !args.iter().all(Arg::inside) {
            return Err(outside(args).into());
        }
        let Some(Known { entry, values, .. }) = self.known.get_mut(self.last) else { return Ok(()) };
        for change in &entry.changes {
            if let (Some(value), Some(arg)) = (values.get_mut(change.value), args.get(change.arg)) {
                *value = match change.what {
                    What::Bits => arg.bits(),
                    What::Extent(axis) => arg.extent_of(axis),
                    What::Stride(axis) => arg.stride_of(axis),
                };
            }
        }
        if entry.plain {
            return Ok(entry.kernel.start(stream, entry.grid, values, entry.cooperative, None)?);
        }
        let (device, spare, printed) = (inner.binaries.device(), &inner.spare, &inner.printed);
        let Entry { kernel, grid, cooperative, scratch, names, .. } = entry.as_ref();
        let launch = WithMemory {
            device,
            spare,
            printed,
            kernel,
            grid: *grid,
            cooperative: *cooperative,
            scratch,
            names,
            stream,
            args,
        };
        launch.start(values).map_err(|failed| match failed {
            Failed::Device(error) => error.into(),
            Failed::Fault(fault) => vec![inner.failed(&fault, &kernel.info().name, entry.place)].into(),
        })
    }

    /// The entry of a key that is not the one before.
    #[cold]
    fn find(&mut self, inner: &Inner, args: &[Arg<'_>]) -> Result<usize, LaunchError> {
        if let Some(i) = self.by_key.get(self.next.as_slice()) {
            return Ok(*i);
        }
        let entry = inner.entry(&self.next, args)?;
        if self.known.len() >= REMEMBERED {
            self.known.clear();
            self.by_key.clear();
        }
        let (key, values) = (self.next.clone().into_boxed_slice(), entry.values.clone());
        self.by_key.insert(key.clone(), self.known.len());
        self.known.push(Known { key, entry, values });
        Ok(self.known.len() - 1)
    }
}

#[cold]
pub(crate) fn outside(args: &[Arg<'_>]) -> CudaError {
    let number = args.iter().position(|a| !a.inside()).unwrap_or(0);
    let (shape, has) = match args.get(number) {
        Some(Arg::Tensor { shape, bytes, dtype, .. }) => (format!("{dtype}{shape:?}"), *bytes),
        Some(Arg::Scalar(_) | Arg::Absent) | None => (String::new(), 0),
    };
    let sentence = format!("argument {number}, {shape}, does not fit in its buffer of {has} bytes");
    CudaError::new(sentence, "allocate more, or give the extents and strides that the buffer has")
}

impl Inner {
    /// An assert that failed, with its place in words: its reader may have no source to show.
    fn failed(&self, fault: &Fault, kernel: &str, place: Span) -> Diagnostic {
        let d = diagnostic(fault, place);
        let sources = &self.session.checked().sources;
        let (file, line, column) = sources.position(d.primary.span);
        d.note(format!("in kernel `{kernel}`, {file}:{line}:{column}"))
    }

    /// What of the arguments decides: where a member is chosen, all extents and numbers do.
    fn uses(&self, kernel: FnId) -> Vec<ArgUse> {
        let mut uses = contract::argument_uses(&self.session.checked().hir, kernel);
        let is_tuned = self.session.checked().hir.func(kernel).contract.tune.is_some();
        if is_tuned || self.session.has_records(kernel) {
            uses.iter_mut().for_each(|u| u.read = true);
        }
        uses
    }

    /// The entry of a key, from any thread's launches.
    fn entry(&self, key: &[u64], args: &[Arg<'_>]) -> Result<Arc<Entry>, LaunchError> {
        if let Some(entry) = lock(&self.entries).get(key) {
            return Ok(Arc::clone(entry));
        }
        let class = key.first().and_then(|c| usize::try_from(*c).ok()).unwrap_or(usize::MAX);
        let known = lock(&self.classes).get(class).cloned();
        let Class { kernel, sets } = known.ok_or_else(|| vec![bug("a class of launches is gone")])?;
        let entry = Arc::new(self.plan(kernel, &sets, args)?);
        let mut entries = lock(&self.entries);
        if entries.len() >= REMEMBERED {
            entries.clear();
        }
        Ok(Arc::clone(entries.entry(key.into()).or_insert(entry)))
    }

    fn plan(
        &self,
        kernel: FnId,
        sets: &[(String, SetValue)],
        args: &[Arg<'_>],
    ) -> Result<Entry, LaunchError> {
        let (hir, device) = (&self.session.checked().hir, self.binaries.device());
        let func = hir.func(kernel);
        let (names, place) = (func.params.iter().map(|p| p.name.clone()).collect(), func.span);
        let hosts: Vec<HostArg> = args.iter().map(Arg::host).collect();
        let (place_of, compiler) = (self.binaries.place(), self.binaries.compiler());
        let choice = self.session.choose(kernel, &hosts, sets, &place_of, compiler)?;
        log::once(|| choice.origin.text().map(|text| format!("kernel `{}`: {text}", func.name)));
        let plan = &choice.plan;
        let (compiled, notes) = self.session.compile(kernel, &plan.bindings)?;
        lock(&self.notes).extend(notes.into_iter().chain(choice.notes.iter().cloned()));
        meeting(&compiled.module, plan, place)?;
        let uses = self.uses(kernel);
        let recipe = Recipe::new(&compiled, plan, &uses, args).map_err(|what| vec![bug(&what)])?;
        let options = LaunchOptions::of(&plan.launch);
        let facts = recipe.kinds.iter().zip(&recipe.values).map(|(k, v)| ArgFacts::of(*k, *v)).collect();
        let kernel = self.binaries.get(&compiled, &options, facts)?;
        kernel.fits(device)?;
        let plain = recipe.scratch.is_empty() && !kernel.info().has_control();
        Ok(Entry {
            plain,
            names,
            place,
            kernel,
            grid: plan.grid,
            cooperative: options.cooperative,
            values: recipe.values.into(),
            changes: recipe.changes.into(),
            scratch: recipe.scratch.into(),
        })
    }
}

pub(crate) fn bug(what: &str) -> Diagnostic {
    Diagnostic::error(codes::INTERNAL, Span::default(), format!("internal error in a launch: {what}"), "")
}

/// The mapping of the arguments to the machine parameters.
#[derive(Default)]
struct Recipe {
    kinds: Vec<ParamKind>,
    values: Vec<u64>,
    changes: Vec<Change>,
    scratch: Vec<Scratch>,
}

impl Recipe {
    fn new(compiled: &Compiled, plan: &Plan, uses: &[ArgUse], args: &[Arg<'_>]) -> Result<Recipe, String> {
        let (module, mut recipe) = (&compiled.module, Recipe::default());
        let func = module.funcs.get(compiled.entry).ok_or("there is no kernel")?;
        let params = func.blocks.get(func.body).map(|b| b.args.as_slice()).unwrap_or_default();
        let mut types = params.iter().map(|v| module.types.get(func.ty(*v)));
        for (i, host) in plan.args.iter().enumerate().filter(|(_, h)| **h != HostArg::Absent) {
            let ty = types.next().ok_or("a parameter is missing")?;
            let arg = args.get(i).copied().unwrap_or(Arg::Absent);
            // What the key holds is the same in each launch; an address never is part of it.
            let fixed = key::exact(uses.get(i), &arg) || arg == Arg::Absent;
            recipe.argument(i, ty, host, fixed, &arg)?;
        }
        for s in &plan.scratch {
            recipe.kinds.push(ParamKind::Pointer);
            let bytes = workspace_bytes(s).ok_or("a workspace is larger than memory")?;
            let scratch =
                Scratch { value: recipe.values.len(), bytes, zeroed: s.zeroed, restored: s.restored };
            // One without elements takes no time: its address is null.
            recipe.scratch.extend((bytes > 0).then_some(scratch));
            // The driver aligns memory to 256 bytes: a null pointer is as well aligned.
            recipe.values.push(0);
        }
        if recipe.values.len() != recipe.kinds.len() {
            return Err("the arguments do not fit the kernel".to_string());
        }
        Ok(recipe)
    }

    fn argument(
        &mut self,
        i: usize,
        ty: &Type,
        host: &HostArg,
        fixed: bool,
        arg: &Arg<'_>,
    ) -> Result<(), String> {
        flatten(ty, &mut self.kinds).ok_or("a kernel takes a tile")?;
        let mut push = |value: u64, change: Option<What>| {
            self.changes.extend(change.map(|what| Change { value: self.values.len(), arg: i, what }));
            self.values.push(value);
        };
        let varies = |what| Some(what).filter(|_| !fixed);
        match (ty, host) {
            (Type::Tile { elem: ElemType::Scalar(_), .. }, HostArg::Scalar(s)) => {
                push(s.bits(), varies(What::Bits));
            }
            (Type::Tile { elem: ElemType::Ptr { .. }, .. }, HostArg::Tensor { .. }) => {
                push(arg.bits(), Some(What::Bits));
            }
            (Type::View { .. }, HostArg::Tensor { shape, strides, .. }) => {
                push(arg.bits(), Some(What::Bits));
                let axes = |n: usize| 0..n;
                axes(shape.len()).zip(shape).for_each(|(a, d)| push(*d as u64, varies(What::Extent(a))));
                axes(strides.len()).zip(strides).for_each(|(a, s)| push(*s as u64, varies(What::Stride(a))));
            }
            (Type::Tile { .. } | Type::View { .. }, _) => {
                return Err("an argument has another type".to_string());
            }
        }
        Ok(())
    }
}
