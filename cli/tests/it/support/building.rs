//! Building, for a target, the kernels of everything of `everything.rs` and of the tests of the examples and the library, as
//! their launches specialize them: nothing panics, nothing is refused that [`refused_by`] does not name, and the assembler or linker,
//! where there is one, takes all of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use tk_driver::{
    Asked, Cache, CompiledKernel, Environment, Key, ProgramShape, Request, Tools, Unchanged, Until, compile,
    facts_about, schedule,
};
use tk_gpu::TargetSpec;
use tk_gpu::target::spec::SM_80;
use tk_interp::{Arg, Fault, Memory, Options};
use tk_ops::Op;
use tk_ops::rows::rows;
use tk_ops::table::Receiver;
use tk_runtime::Compiled;
use tk_runtime::choice::Place;
use tk_runtime::device::{Device, LaunchOptions};
use tk_sema::contract::{self, kernel_named};
use tk_sema::eval::Bindings;
use tk_sema::specialize::specialize;
use tk_syntax::SourceMap;
use tk_tile::{TileModule, pipeline, walk};

use super::everything::{self, Program, on_large_stack};
use super::lanes::reads_of_inactive_lanes;
use super::program;

/// NVIDIA's assembler.
pub fn ptxas() -> Option<PathBuf> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    Some(Environment::of_process(Some(root)).ptxas()?.path)
}

/// Returns true, and says so, if a test is left out because there is no assembler of NVIDIA. CI has one.
pub fn without_ptxas() -> bool {
    let is_missing = ptxas().is_none();
    assert!(!is_missing || std::env::var_os("CI").is_none(), "CI has no ptxas");
    if is_missing {
        eprintln!("left out: there is no ptxas");
    }
    is_missing
}

/// What a target does not have, by the end of its message before the name of the target: the page of E0805 shows a
/// kernel that holds PTX on every target.
fn refused_by(target: &TargetSpec) -> &'static [&'static str] {
    if target.has_gcn {
        &[
            "`inline_asm` with the constraint `=r` (there are v and s, for values of 16, 32 and 64 bits, and the first one has a \
           `=` before it)",
        ]
    } else {
        &[]
    }
}

/// Kernels of NVIDIA that are assembled together: a process of the assembler costs as much as an average kernel.
const TOGETHER: usize = 32;

/// The lines of a kernel for NVIDIA without those that name the target, and without source positions.
fn code(asm: &str) -> impl Iterator<Item = &str> {
    asm.lines().filter(|line| {
        let line = line.trim_start();
        let left_out = [".version", ".target", ".address_size", ".file", ".loc", ".section"];
        // Memory of a thread is `.local`.
        line.starts_with(".local") || !left_out.iter().any(|word| line.starts_with(word))
    })
}

/// One text for the assembler of the kernels with these texts, each with names of its own and without source positions.
fn joined(waiting: &[Waiting]) -> String {
    let kernels: Vec<&CompiledKernel> = waiting.iter().map(|one| &one.kernel).collect();
    // Kernels ask for the oldest version that has what they use, and the versions have numbers of one digit after the dot.
    let versions = kernels.iter().flat_map(|k| k.asm.lines().filter(|l| l.starts_with(".version")));
    let is_first =
        |l: &&str| [".target", ".address_size"].iter().any(|word| l.trim_start().starts_with(word));
    let first = kernels.iter().flat_map(|k| k.asm.lines()).filter(is_first);
    let mut all: String =
        versions.max().into_iter().chain(first.take(2)).map(|line| format!("{line}\n")).collect();
    for (n, kernel) in kernels.iter().enumerate() {
        let text = kernel.asm.replace("shared_of_launch", &format!("shared_of_{n}"));
        let text = text.replace(&format!(".entry {}(", kernel.name), &format!(".entry kernel_{n}("));
        let text = text.replace(&format!("{}_param_", kernel.name), &format!("kernel_{n}_param_"));
        code(&text).for_each(|line| all += &format!("{line}\n"));
    }
    all
}

/// The kernels that the assembler has taken for the oldest target: a later one takes the same text (PTX manual, ".target"),
/// so that only what differs is assembled for it.
#[derive(Default)]
pub struct Assembled(Mutex<BTreeSet<String>>);

impl Assembled {
    /// What two targets have in common: comments of LLVM name blocks and positions.
    fn text(kernel: &CompiledKernel) -> String {
        code(&kernel.asm)
            .filter(|line| !line.trim_start().starts_with("//"))
            .flat_map(|line| [line, "\n"])
            .collect()
    }

    fn has(&self, kernel: &CompiledKernel) -> bool {
        self.0.lock().unwrap().contains(&Assembled::text(kernel))
    }

    fn add(&self, kernels: &[Waiting]) {
        self.0.lock().unwrap().extend(kernels.iter().map(|one| Assembled::text(&one.kernel)));
    }
}

/// A kernel that is not assembled yet, and under what it is noted when it is.
struct Waiting {
    kernel: CompiledKernel,
    note: Option<Key>,
}

/// What a kernel is noted by if nothing was wrong with it: by what it is examined, too.
fn note(request: &Request<'_>, assembles: bool) -> Option<Key> {
    Unchanged::of_process()?;
    let scheduled = schedule(request, None).ok()?.scheduled;
    let examined = [include_str!("building.rs"), include_str!("lanes.rs")].map(str::as_bytes);
    let kernel = Unchanged::key(&scheduled);
    Some(Key::of(&[b"builds", kernel.bytes(), &[u8::from(assembles)], examined[0], examined[1]]))
}

/// Returns true if nothing was wrong with a kernel in an earlier run.
fn is_noted(note: Option<&Key>) -> bool {
    note.zip(Unchanged::of_process()).is_some_and(|(key, known)| known.get(key).is_some())
}

fn add_note(note: Option<&Key>) {
    if let Some((key, known)) = note.zip(Unchanged::of_process()) {
        known.put(key, &[]);
    }
}

/// What the compiler computes by itself.
const COMPILE_TIME: &[&str] = &["next_pow2"];

/// Builds kernels and runs them on the interpreter.
struct Building {
    target: &'static TargetSpec,
    tools: Tools,
    assembles: bool,
    /// Kernels that were built, by their text: a test may launch one often.
    built: Mutex<BTreeSet<String>>,
    /// The operations that were in them.
    operations: Mutex<BTreeSet<Op>>,
    /// What was refused, with one of the kernels.
    refused: Mutex<BTreeMap<String, String>>,
    /// Kernels that are not assembled yet.
    waiting: Mutex<Vec<Waiting>>,
    assembled: Arc<Assembled>,
}

impl Building {
    fn new(target: &'static TargetSpec, assembled: &Arc<Assembled>) -> Building {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
        let folder = std::env::temp_dir().join(format!("tk-targets-{}", std::process::id()));
        let tools = Tools::new(Environment::of_process(Some(&here)), Cache::at(&folder, 1 << 20));
        let found = tools.assembler(target).map(|_| ()).map_err(|e| e.message);
        let _ = std::fs::remove_dir_all(&folder);
        if let Err(missing) = &found {
            assert!(std::env::var_os("CI").is_none(), "CI: {missing}");
            eprintln!("{missing}: text is made and not assembled");
        }
        Building {
            target,
            tools,
            assembles: found.is_ok(),
            built: Mutex::default(),
            operations: Mutex::default(),
            refused: Mutex::default(),
            waiting: Mutex::default(),
            assembled: Arc::clone(assembled),
        }
    }

    /// Assembles these kernels: together if that is possible, else one after the other, which says what is refused.
    fn assemble(&self, waiting: &[Waiting]) {
        let Ok(assembler) = self.tools.assembler(self.target) else { return };
        if let ([first, _, ..], true) = (waiting, self.target.has_ptx) {
            let whole = CompiledKernel { asm: joined(waiting), ..first.kernel.clone() };
            match assembler.assemble(&whole) {
                Ok(_) => return self.taken(waiting),
                Err(e) => eprintln!("assembled one by one: {}", e.message),
            }
        }
        for one in waiting {
            match assembler.assemble(&one.kernel) {
                Ok(_) => self.taken(std::slice::from_ref(one)),
                Err(e) => self.refuse(e.message, &one.kernel.name),
            }
        }
    }

    fn taken(&self, kernels: &[Waiting]) {
        kernels.iter().for_each(|one| add_note(one.note.as_ref()));
        if self.target.name == SM_80.name {
            self.assembled.add(kernels);
        }
    }

    fn refuse(&self, message: String, kernel: &str) {
        self.refused.lock().unwrap().entry(message).or_insert_with(|| kernel.to_string());
    }

    fn build(&self, compiled: &Compiled, options: &LaunchOptions, assemble: bool) {
        let func = &compiled.module.funcs[compiled.entry];
        let ops = walk::insts(func).into_iter().map(|i| func.insts[i].op);
        self.operations.lock().unwrap().extend(ops);
        let shape = ProgramShape::of(self.target, Asked::from(options));
        let text = format!("{shape:?} {}", *compiled.module);
        if !self.built.lock().unwrap().insert(text) {
            return;
        }
        let sources = SourceMap::default();
        let target = self.target;
        let request = Request {
            module: &compiled.module,
            entry: compiled.entry,
            target,
            shape,
            facts: vec![],
            sources: &sources,
        };
        let note = note(&request, self.assembles && assemble);
        if is_noted(note.as_ref()) {
            return;
        }
        // The text is what `reads_of_inactive_lanes` looks at; an object as well is code that is generated twice.
        let until = match (target.has_gcn, self.assembles && assemble) {
            (true, true) => Until::BinaryAndText,
            (true, false) => Until::Text,
            (false, _) => Until::Binary,
        };
        let made = compile(&request, target.has_gcn, until);
        if let Some(stages) = made.as_ref().ok().and_then(|k| k.stages.as_ref()) {
            let lines = reads_of_inactive_lanes(&stages.asm);
            assert!(
                lines.is_empty(),
                "{}: lanes that are off: {lines:?}\n{}\n{}",
                target.name,
                *compiled.module,
                stages.asm
            );
        }
        match made {
            Err(wrong) => {
                wrong.iter().for_each(|d| self.refuse(format!("{}: {}", d.code, d.message), &func.name));
            }
            Ok(kernel) if self.assembles && assemble && !self.assembled.has(&kernel) => {
                let mut waiting = self.waiting.lock().unwrap();
                waiting.push(Waiting { kernel, note });
                if waiting.len() >= TOGETHER {
                    let kernels = std::mem::take(&mut *waiting);
                    drop(waiting);
                    self.assemble(&kernels);
                }
            }
            Ok(_) => add_note(note.as_ref()),
        }
    }
}

impl Device for Building {
    fn launch(
        &self,
        compiled: &Compiled,
        args: &[Arg],
        grid: [u32; 3],
        options: &LaunchOptions,
        memory: &Memory,
    ) -> Result<(), Fault> {
        // Where LLVM assembles, its linker has little to refuse: the examples of operations are enough for it.
        self.build(compiled, options, self.target.has_ptx);
        let options = Options { printed: options.printed.clone(), ..Options::default() };
        tk_interp::launch(&compiled.module, compiled.entry, args, grid, memory, &options)
    }

    fn place(&self) -> Place {
        let smem = self.target.shared_bytes.into();
        let facts =
            contract::Device { smem, target: facts_about(self.target), ..contract::Device::default() };
        Place { facts, target: self.target.name.into(), name: self.target.name.into() }
    }
}

/// Builds the example of an operation as it was written: the passes would compute most of it.
fn unfolded(building: &Building, program: &Program) {
    let checked = program::checked(&program.text);
    let id = kernel_named(&checked.hir, "example").unwrap();
    let special = specialize(&checked.hir, id, &Bindings::default()).unwrap();
    let module = TileModule::new(special.module).unwrap();
    let module = pipeline::run_passes(pipeline::CHECKED, module, None).unwrap();
    let entry = module.find(&special.kernel).unwrap();
    let options = LaunchOptions { warps: 1, ..LaunchOptions::of(&[]) };
    building.build(
        &Compiled { id: 0, module, entry, notes: vec![], debug: std::sync::Arc::default() },
        &options,
        true,
    );
}

/// The programs in files, which find each other.
fn in_files() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut texts = vec![];
    for folder in ["examples", "stdlib"] {
        let mut paths: Vec<_> =
            std::fs::read_dir(root.join(folder)).unwrap().flatten().map(|e| e.path()).collect();
        paths.sort();
        paths.retain(|p| p.extension().is_some_and(|e| e == "tk"));
        texts.extend(paths.iter().map(|path| std::fs::read_to_string(path).unwrap()));
    }
    texts
}

/// Does something with each item, on all processors.
fn each<T: Sync>(items: &[T], run: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            run(item);
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            thread::Builder::new().stack_size(everything::STACK).spawn_scoped(scope, work).unwrap();
        }
    });
}

fn refused(target: &'static TargetSpec, whole: bool, assembled: &Arc<Assembled>) -> Vec<String> {
    let building = Arc::new(Building::new(target, assembled));
    let device: Arc<dyn Device> = building.clone();
    let programs = everything::programs();
    let programs = programs.iter().filter(|_| whole).map(|p| p.text.clone());
    let programs: Vec<String> = programs.chain(in_files()).collect();
    each(&programs, |text| {
        program::run_on(text, Some(&device));
    });
    each(&everything::operations(), |p| unfolded(&building, p));
    building.assemble(&std::mem::take(&mut *building.waiting.lock().unwrap()));
    let of_target = format!(" cannot be compiled for `{}` yet", target.name);
    let allowed = |m: &str| refused_by(target).iter().any(|what| *m == format!("E1003: {what}{of_target}"));
    let refused = building.refused.lock().unwrap();
    let mut problems: Vec<String> =
        refused.iter().filter(|(m, _)| !allowed(m)).map(|(m, k)| format!("{k}: {m}")).collect();
    if !whole {
        return problems;
    }
    let needless =
        refused_by(target).iter().filter(|what| !refused.contains_key(&format!("E1003: {what}{of_target}")));
    problems.extend(needless.map(|what| format!("{what} is not refused any more")));
    let seen = building.operations.lock().unwrap();
    let wanted = rows().filter(|r| !matches!(r.receiver, Receiver::Test | Receiver::Buffer));
    let missing: BTreeSet<&str> =
        wanted.filter(|r| !matches!(r.op, Op::Host(_)) && !seen.contains(&r.op)).map(|r| r.name).collect();
    let missing = missing.into_iter().filter(|name| !COMPILE_TIME.contains(name));
    problems.extend(missing.map(|name| format!("no kernel has `{name}`")));
    problems
}

/// Whatever a target refuses is a mistake.
pub fn has_everything(target: &'static TargetSpec, assembled: &Arc<Assembled>) {
    let assembled = Arc::clone(assembled);
    on_large_stack(move || refused(target, true, &assembled));
}

/// The same of the examples, the library and the example of every operation, for a target that differs little from another.
pub fn has_operations(target: &'static TargetSpec, assembled: &Arc<Assembled>) {
    let assembled = Arc::clone(assembled);
    on_large_stack(move || refused(target, false, &assembled));
}
