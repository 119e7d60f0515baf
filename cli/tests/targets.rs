//! Builds, for every NVIDIA target, the kernels of everything of `support/everything.rs` and of the tests of the examples
//! and the library, as their launches specialize them: nothing panics, nothing is refused that is not in [`REFUSED`], and
//! the assembler, where there is one, takes all of it.
#![cfg(feature = "llvm")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[allow(dead_code, reason = "another test runs the programs")]
#[path = "support/everything.rs"]
mod everything;
#[allow(dead_code, reason = "another test writes pages")]
#[path = "support/markdown.rs"]
mod markdown;
#[allow(dead_code, reason = "another test shows diagnostics")]
#[path = "support/program.rs"]
mod program;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};

use tk_driver::{Cache, Environment, Ptxas, Request, assemble, compile, facts_about, warps_for};
use tk_interp::{Arg, Fault, Memory, Options};
use tk_layout::TargetSpec;
use tk_layout::spec::{SM_80, SM_90A};
use tk_ops::Op;
use tk_ops::rows::rows;
use tk_ops::table::Receiver;
use tk_runtime::Compiled;
use tk_runtime::device::{Device, LaunchOptions};
use tk_sema::contract::{self, kernel_named};
use tk_sema::eval::Bindings;
use tk_sema::specialize::specialize;
use tk_syntax::SourceMap;
use tk_tile::{TileModule, pipeline, walk};

use everything::{Program, on_large_stack};

/// What no NVIDIA target has, by the end of its message in front of the name of the target, and why.
const REFUSED: &[(&str, &str)] = &[];

/// What the compiler computes by itself.
const COMPILE_TIME: &[&str] = &["next_pow2"];

/// Builds kernels and runs them on the interpreter.
struct Building {
    target: &'static TargetSpec,
    ptxas: Option<Ptxas>,
    /// Kernels that were built, by their text: a test may launch one often.
    built: Mutex<BTreeSet<String>>,
    /// The operations that were in them.
    operations: Mutex<BTreeSet<Op>>,
    /// What was refused, with one of the kernels.
    refused: Mutex<BTreeMap<String, String>>,
}

impl Building {
    fn new(target: &'static TargetSpec) -> Building {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
        let folder = std::env::temp_dir().join(format!("tk-targets-{}", std::process::id()));
        let ptxas = Ptxas::find(&Environment::of_process(Some(&here)), &Cache::at(&folder, 1 << 20)).ok();
        let _ = std::fs::remove_dir_all(&folder);
        if ptxas.is_none() {
            assert!(std::env::var_os("CI").is_none(), "CI has no ptxas");
            eprintln!("there is no ptxas: PTX is made and not assembled");
        }
        Building {
            target,
            ptxas,
            built: Mutex::default(),
            operations: Mutex::default(),
            refused: Mutex::default(),
        }
    }

    fn build(&self, compiled: &Compiled, warps: u32, stages: Option<u32>) {
        let func = &compiled.module.funcs[compiled.entry];
        let ops = walk::insts(func).into_iter().map(|i| func.insts[i].op);
        self.operations.lock().unwrap().extend(ops);
        let text = format!("{warps} {stages:?} {}", *compiled.module);
        if !self.built.lock().unwrap().insert(text) {
            return;
        }
        let sources = SourceMap::default();
        let (target, warps) = (self.target, warps_for(self.target, warps.into()));
        let request = Request {
            module: &compiled.module,
            entry: compiled.entry,
            target,
            warps,
            stages,
            facts: vec![],
            sources: &sources,
        };
        let wrong = match compile(&request, false) {
            Err(wrong) => wrong.iter().map(|d| format!("{}: {}", d.code, d.message)).collect(),
            Ok(kernel) => match &self.ptxas {
                Some(ptxas) => assemble(&kernel, ptxas).err().map(|e| e.message).into_iter().collect(),
                None => vec![],
            },
        };
        for message in wrong {
            self.refused.lock().unwrap().entry(message).or_insert_with(|| func.name.clone());
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
        self.build(compiled, options.warps, options.stages);
        let options = Options { printed: options.printed.clone(), ..Options::default() };
        tk_interp::launch(&compiled.module, compiled.entry, args, grid, memory, &options)
    }

    fn facts(&self) -> contract::Device {
        let smem = self.target.shared_bytes.into();
        contract::Device { smem, target: facts_about(self.target), ..contract::Device::default() }
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
    building.build(&Compiled { id: 0, module, entry, notes: vec![] }, 1, None);
}

/// The programs in files, which find each other.
fn in_files(building: &Arc<Building>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for folder in ["examples", "stdlib"] {
        let mut paths: Vec<_> =
            std::fs::read_dir(root.join(folder)).unwrap().flatten().map(|e| e.path()).collect();
        paths.sort();
        for path in paths.iter().filter(|p| p.extension().is_some_and(|e| e == "tk")) {
            let device: Arc<dyn Device> = building.clone();
            program::run_on(&std::fs::read_to_string(path).unwrap(), Some(&device));
        }
    }
}

fn refused(target: &'static TargetSpec) -> Vec<String> {
    let building = Arc::new(Building::new(target));
    let device: Arc<dyn Device> = building.clone();
    for program in everything::programs() {
        program::run_on(&program.text, Some(&device));
    }
    in_files(&building);
    everything::operations().iter().for_each(|p| unfolded(&building, p));
    let of_target = format!(" cannot be compiled for `{}` yet", target.name);
    let allowed = |m: &str| REFUSED.iter().any(|(what, _)| *m == format!("E1003: {what}{of_target}"));
    let refused = building.refused.lock().unwrap();
    let mut problems: Vec<String> =
        refused.iter().filter(|(m, _)| !allowed(m)).map(|(m, k)| format!("{k}: {m}")).collect();
    let needless =
        REFUSED.iter().filter(|(what, _)| !refused.contains_key(&format!("E1003: {what}{of_target}")));
    problems.extend(needless.map(|(what, _)| format!("{what} is not refused any more")));
    let seen = building.operations.lock().unwrap();
    let wanted = rows().filter(|r| !matches!(r.receiver, Receiver::Test | Receiver::Buffer));
    let missing: BTreeSet<&str> =
        wanted.filter(|r| !matches!(r.op, Op::Host(_)) && !seen.contains(&r.op)).map(|r| r.name).collect();
    let missing = missing.into_iter().filter(|name| !COMPILE_TIME.contains(name));
    problems.extend(missing.map(|name| format!("no kernel has `{name}`")));
    problems
}

#[test]
fn the_first_target_has_everything() {
    on_large_stack(|| refused(&SM_80));
}

#[test]
fn the_second_target_has_everything() {
    on_large_stack(|| refused(&SM_90A));
}
