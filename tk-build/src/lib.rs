//! Compile kernels of the tk language in a build script.
//!
//! ```no_run
//! // In the `main` of build.rs:
//! tk_build::Build::new("kernels/softmax.tk").target("sm_90a").target("sm_80").compile();
//! ```
//! The program then contains the kernels, with a typed function for each:
//! ```ignore
//! tk::include_kernels!("softmax");
//! let kernels = Softmax::new(&device)?;
//! kernels.softmax(&stream, x.view(), y.view_mut())?;
//! ```
//! Cargo runs the script again only when a source file or a relevant setting has changed, and unchanged kernels come
//! from the compile cache.

#![forbid(unsafe_code)]

mod generate;

use std::path::{Path, PathBuf};

use tk_driver::{
    Asking, Cache, Environment, Refused, Specializations, Tools, add_ptx, ship, specializations,
};
use tk_gpu::TargetSpec;
use tk_gpu::target::spec::CPU;
use tk_runtime::Session;
use tk_runtime::files::{Files, write_all};
use tk_sema::contract::SetValue;
use tk_syntax::render;
use tk_syntax::{Diagnostic, SourceMap};

/// One file of kernels.
#[derive(Clone, Debug)]
pub struct Build {
    source: PathBuf,
    targets: Vec<String>,
    sets: Vec<(String, SetValue)>,
    members: usize,
    ptx: bool,
    or_cpu: bool,
    out: Option<PathBuf>,
}

impl Build {
    /// Builds a `.tk` file, relative to the folder of the package.
    pub fn new(source: impl Into<PathBuf>) -> Build {
        Build {
            source: source.into(),
            targets: vec![],
            sets: vec![],
            members: tk_runtime::choice::SHIPPED,
            ptx: true,
            or_cpu: false,
            out: None,
        }
    }

    /// Adds a target: that of a GPU, such as `sm_90a` or `gfx942`, `compute_80` (PTX), or `cpu`, which needs neither
    /// LLVM nor an assembler.
    pub fn target(mut self, name: &str) -> Build {
        self.targets.push(name.to_string());
        self
    }

    /// Sets a compile-time parameter, in the syntax of the language, overriding `export`.
    pub fn set(mut self, name: &str, value: &str) -> Build {
        self.sets.push((name.to_string(), SetValue::parse(value)));
        self
    }

    /// Builds a kernel with at most so many members of its `tune` list beside its defaults; a launch chooses by its key.
    pub fn members(mut self, most: usize) -> Build {
        self.members = most;
        self
    }

    /// Where a tool that makes binaries is missing, builds for the CPU instead, and says so in a warning: the program works
    /// on every machine.
    pub fn or_cpu(mut self) -> Build {
        self.or_cpu = true;
        self
    }

    /// Whether NVIDIA GPUs that are newer than the targets run the kernels too: PTX is shipped beside the binaries, which
    /// their drivers assemble. On by default.
    pub fn ptx(mut self, on: bool) -> Build {
        self.ptx = on;
        self
    }

    /// Writes to this folder instead of Cargo's `OUT_DIR`.
    pub fn out(mut self, folder: impl Into<PathBuf>) -> Build {
        self.out = Some(folder.into());
        self
    }

    /// Compiles, and writes `NAME.tkb` and `NAME.rs`. On errors, ends the build script with the messages.
    pub fn compile(self) {
        for name in ["TK_PTXAS", "TK_LLD", "TK_VENV", "CUDA_HOME", "VIRTUAL_ENV", "TK_CACHE_DIR"] {
            println!("cargo::rerun-if-env-changed={name}");
        }
        match self.try_compile() {
            Ok(read) => read.iter().for_each(|path| println!("cargo::rerun-if-changed={}", path.display())),
            Err(text) => {
                println!("cargo::rerun-if-changed={}", self.source.display());
                for line in text.lines() {
                    println!("cargo::error={line}");
                }
                std::process::exit(1);
            }
        }
    }

    /// The same; returns the source files that were read, or the messages.
    pub fn try_compile(&self) -> Result<Vec<PathBuf>, String> {
        let path = self.source.to_string_lossy().into_owned();
        if self.targets.is_empty() {
            return Err(format!("{path}: no target; add `.target(\"sm_90a\")`"));
        }
        let targets = self.targets.iter().map(|name| {
            let known = tk_driver::buildable().find(|t| t.name == name);
            known.ok_or_else(|| {
                let names: Vec<&str> = tk_driver::buildable().map(|t| t.name).collect();
                format!("unknown target `{name}`; the targets are {}", names.join(", "))
            })
        });
        let mut targets = targets.collect::<Result<Vec<_>, String>>()?;
        if let Err(e) = std::fs::metadata(&self.source) {
            return Err(format!("cannot read {path}: {}", tk_runtime::files::reason(&e)));
        }
        let checked = tk_sema::check(&Files::default(), &path);
        let sources = checked.sources.clone();
        if checked.diagnostics.iter().any(Diagnostic::is_error) {
            return Err(shown(&sources, &checked.diagnostics));
        }
        let session = Session::new(checked);
        let tools = Tools::new(Environment::of_process(Some(&self.source)), Cache::of_process());
        let missing = |t: &&TargetSpec| match tools.assembler(t) {
            _any if t.is_interpreted() => None,
            _any if tk_driver::llvm_version().is_empty() => Some("there is no LLVM".to_string()),
            Ok(_) => None,
            Err(error) => Some(error.message),
        };
        if self.or_cpu
            && let Some((target, why)) = targets.iter().find_map(|t| Some((t.name, missing(t)?)))
        {
            println!("cargo::warning={path}: built for the CPU alone, and not for {target}: {why}");
            targets = vec![&CPU];
        }
        let refused = |refused| match refused {
            Refused::Wrong(wrong) => shown(&sources, &wrong),
            Refused::Sentence(sentence) => format!("{path}: {sentence}"),
        };
        let (sets, members) = (&self.sets, self.members);
        let asking = Asking { path: &path, kernel: None, sets, targets: &targets, members };
        let mut found = specializations(&session, asking).map_err(refused)?;
        if self.ptx {
            add_ptx(&session, asking, &mut found);
        }
        let Specializations { all: specials, open, notes } = found;
        for sentence in open {
            println!("cargo::warning={path}: left out: {sentence}");
        }
        for sentence in notes {
            println!("cargo::warning={path}: {sentence}");
        }
        let shipped = ship(&session, &specials, &tools, false).map_err(|wrong| shown(&sources, &wrong))?;
        for sentence in &shipped.left_out {
            println!("cargo::warning={path}: {sentence}");
        }
        let stem = self.source.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        let out = self.out.clone().or_else(|| std::env::var_os("OUT_DIR").map(PathBuf::from));
        let out =
            out.ok_or("there is no OUT_DIR; `tk_build` runs in a build script, or with `.out(folder)`")?;
        let in_out_dir = self.out.is_none();
        let code = generate::module(&shipped.manifest, &stem, in_out_dir)
            .map_err(|what| format!("{path}: {what}"))?;
        let files = [
            (out.join(format!("{stem}.tkb")), shipped.bundle()),
            (out.join(format!("{stem}.rs")), code.into_bytes()),
        ];
        let changed: Vec<(PathBuf, Vec<u8>)> =
            files.into_iter().filter(|(path, bytes)| differs(path, bytes)).collect();
        std::fs::create_dir_all(&out).map_err(|e| format!("cannot create {}: {e}", out.display()))?;
        write_all(&changed)?;
        // The files of the library are part of the compiler.
        let read = sources.iter().map(|(_, s)| PathBuf::from(&*s.name)).filter(|p| p.exists());
        // A folder without tuning records may get some: Cargo looks at a file that is missing each time, so it is not named.
        let records = tk_runtime::tuning::path_of(&path);
        Ok(read.chain(records.exists().then_some(records)).collect())
    }
}

/// Returns true if the contents of a file differ: an unchanged file is not compiled again.
fn differs(path: &Path, bytes: &[u8]) -> bool {
    std::fs::read(path).map_or(true, |old| old != bytes)
}

fn shown(sources: &SourceMap, wrong: &[Diagnostic]) -> String {
    wrong.iter().filter(|d| d.is_error()).map(|d| render(sources, d, false)).collect()
}
