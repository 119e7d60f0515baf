//! Finds the assembler of NVIDIA, its disassembler and its profiler, and the linker of LLVM.
//!
//! A program that is found is executed, so only the user decides where it may be: by settings, `PATH`, and what they or
//! the administrator installed. No folder is searched because of the compiled file or its location: a foreign checkout,
//! or a shared parent folder, must not choose the program. Only reads folders: no process is started. Guarantees the
//! same order on the same host.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The assembler.
const PTXAS: &str = "ptxas";
/// The disassembler.
const NVDISASM: &str = "nvdisasm";
/// The profiler of kernels.
const NCU: &str = "ncu";
/// The folder of CUDA where `CUDA_HOME` names none.
const CUDA: &str = "/usr/local/cuda/bin";

/// Folders of Python packages with the assembler, below `site-packages`: the package of the compiler for CUDA 12, that
/// for CUDA 13, and Triton, which brings its own.
const PACKAGES: [&str; 3] = ["nvidia/cuda_nvcc/bin", "nvidia/cu13/bin", "triton/backends/nvidia/bin"];

/// The same for the disassembler.
const DISASSEMBLER: [&str; 2] = ["nvidia/cuda_nvdisasm/bin", "nvidia/cu13/bin"];

/// How what `tk setup` has installed was found.
const OWN: &str = "tk setup";

/// The names of the linker in `PATH`: that of LLVM 22 first, whose objects it links.
const LLD: [&str; 3] = ["ld.lld-22", "ld.lld", "lld"];
/// Folders outside of `PATH` in which it is installed: Debian's package of LLVM 22, and ROCm.
const LLD_FOLDERS: [&str; 2] = ["/usr/lib/llvm-22/bin", "/opt/rocm/llvm/bin"];

/// The variables of the environment that the search reads; an empty value counts as unset.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// `TK_PTXAS`: the assembler to use instead of any other.
    pub tk_ptxas: Option<PathBuf>,
    /// `TK_NVDISASM`: the same for the disassembler.
    pub tk_nvdisasm: Option<PathBuf>,
    /// `TK_NCU`: the same for the profiler.
    pub tk_ncu: Option<PathBuf>,
    /// `TK_LLD`: the same for the linker.
    pub tk_lld: Option<PathBuf>,
    /// `TK_VENV`: a virtual environment whose packages may be used although it is not active.
    pub tk_venv: Option<PathBuf>,
    /// `CUDA_HOME`
    pub cuda_home: Option<PathBuf>,
    /// `VIRTUAL_ENV`
    pub virtual_env: Option<PathBuf>,
    /// `PATH`
    pub path: Vec<PathBuf>,
    /// The folder of the user.
    pub home: Option<PathBuf>,
    /// The folder for the data of the user's programs.
    pub data: Option<PathBuf>,
    /// Folders that may contain a `.venv`, or be below one, which is never used but reported to the user.
    pub beside: Vec<PathBuf>,
}

/// A program, and how it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The program.
    pub path: PathBuf,
    /// How it was found: a variable, or words such as `a Python of PATH`.
    pub from: &'static str,
}

impl Found {
    /// Returns true if a variable led to the program, so that it counts before what `tk setup` installs.
    pub fn is_named(&self) -> bool {
        ["TK_PTXAS", "TK_VENV", "CUDA_HOME", "VIRTUAL_ENV"].contains(&self.from)
    }
}

/// A program in a virtual environment that is neither active nor named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignored {
    /// The program.
    pub path: PathBuf,
    /// The environment.
    pub venv: PathBuf,
}

impl Ignored {
    /// The reason that it is not used, and how to allow it.
    pub fn note(&self) -> String {
        let (path, venv) = (self.path.display(), self.venv.display());
        format!("{path} is not used, since {venv} is not active; TK_VENV={venv} allows it")
    }
}

impl Environment {
    /// The environment of this process. `source` is the compiled file: a `.venv` beside or above it, or the current
    /// folder, is reported to the user but not used.
    pub fn of_process(source: Option<&Path>) -> Environment {
        let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty());
        let path = |name: &str| set(name).map(PathBuf::from);
        let folder = source.and_then(Path::parent).and_then(|folder| std::path::absolute(folder).ok());
        let current = std::env::current_dir().ok();
        Environment {
            tk_ptxas: path("TK_PTXAS"),
            tk_nvdisasm: path("TK_NVDISASM"),
            tk_ncu: path("TK_NCU"),
            tk_lld: path("TK_LLD"),
            tk_venv: path("TK_VENV"),
            cuda_home: path("CUDA_HOME"),
            virtual_env: path("VIRTUAL_ENV"),
            path: set("PATH").map(|p| std::env::split_paths(&p).collect()).unwrap_or_default(),
            home: dirs::home_dir(),
            data: dirs::data_local_dir(),
            beside: folder.into_iter().chain(current).collect(),
        }
    }

    /// The assembler: that of `TK_PTXAS`, or the first that exists.
    pub fn ptxas(&self) -> Option<Found> {
        named(self.tk_ptxas.as_ref(), "TK_PTXAS").or_else(|| self.tool(PTXAS, &PACKAGES))
    }

    /// The disassembler: that of `TK_NVDISASM`, or the first that exists.
    pub fn nvdisasm(&self) -> Option<Found> {
        named(self.tk_nvdisasm.as_ref(), "TK_NVDISASM").or_else(|| self.tool(NVDISASM, &DISASSEMBLER))
    }

    /// The profiler, Nsight Compute: that of `TK_NCU`, or the first that exists.
    pub fn ncu(&self) -> Option<Found> {
        named(self.tk_ncu.as_ref(), "TK_NCU")
            .or_else(|| self.tool(NCU, &[]))
            .or_else(|| there(Path::new(CUDA), NCU, "a folder of the system"))
    }

    /// The linker: that of `TK_LLD`, or the first that exists.
    pub fn lld(&self) -> Option<Found> {
        let system = LLD_FOLDERS.map(|folder| (PathBuf::from(folder), "a folder of the system"));
        let path = || self.folders().map(|folder| (folder.to_path_buf(), "PATH"));
        let folders = || path().chain(system.iter().cloned());
        let one = |name: &str| folders().find_map(|(folder, from)| there(&folder, name, from));
        named(self.tk_lld.as_ref(), "TK_LLD").or_else(|| LLD.iter().find_map(|name| one(name)))
    }

    /// An assembler in a `.venv` beside or above the source or the current folder, which the search ignores.
    pub fn ignored_ptxas(&self) -> Option<Ignored> {
        self.ignored(PTXAS, &PACKAGES)
    }

    fn ignored(&self, name: &str, packages: &[&str]) -> Option<Ignored> {
        let real = |path: &Path| path.canonicalize().ok();
        let allowed: Vec<PathBuf> =
            [&self.tk_venv, &self.virtual_env].into_iter().flatten().flat_map(|p| real(p)).collect();
        let around =
            self.beside.iter().flat_map(|folder| folder.ancestors()).map(|folder| folder.join(".venv"));
        let mut others = around.filter(|venv| real(venv).is_some_and(|venv| !allowed.contains(&venv)));
        others.find_map(|venv| {
            packaged(&venv, name, packages, "").map(|found| Ignored { path: found.path, venv })
        })
    }

    /// A program by its name: in the named environment, in CUDA's folder, in the active environment, among what `tk setup`
    /// has installed, in `PATH`, then in packages of the Pythons of `PATH` and of the user.
    fn tool(&self, name: &str, packages: &[&str]) -> Option<Found> {
        let of = |venv: &Option<PathBuf>, from| packaged(venv.as_ref()?, name, packages, from);
        of(&self.tk_venv, "TK_VENV")
            .or_else(|| there(&self.cuda_home.as_ref()?.join("bin"), name, "CUDA_HOME"))
            .or_else(|| of(&self.virtual_env, "VIRTUAL_ENV"))
            .or_else(|| self.own_tools().and_then(|own| of_packages(&own, name, packages, OWN)))
            .or_else(|| self.folders().find_map(|folder| there(folder, name, "PATH")))
            .or_else(|| self.pythons().iter().find_map(|p| packaged(p, name, packages, "a Python of PATH")))
            .or_else(|| packaged(&self.home.as_ref()?.join(".local"), name, packages, "~/.local"))
    }

    /// The folder of the packages that `tk setup` installs.
    pub fn own_tools(&self) -> Option<PathBuf> {
        self.data.as_ref().filter(|folder| folder.is_absolute()).map(|folder| folder.join("tk/tools"))
    }

    /// The first `python3` of `PATH`.
    pub fn python(&self) -> Option<PathBuf> {
        self.folders().map(|folder| folder.join("python3")).find(|python| python.is_file())
    }

    /// The folders of `PATH`, without relative ones: the current folder may be another user's.
    fn folders(&self) -> impl Iterator<Item = &Path> {
        self.path.iter().map(PathBuf::as_path).filter(|folder| folder.is_absolute())
    }

    /// The installation folder of each `python3` in `PATH`.
    fn pythons(&self) -> Vec<PathBuf> {
        let mut found = vec![];
        for folder in self.folders().filter(|folder| folder.join("python3").exists()) {
            let Some(prefix) = folder.parent() else { continue };
            if folder.file_name() == Some(OsStr::new("shims")) {
                // A version manager: PATH has scripts, the Pythons are beside them.
                found.extend(versions(&prefix.join("versions"), ""));
            } else {
                found.push(prefix.to_path_buf());
                // Debian installs packages of the administrator apart from its own.
                found.push(prefix.join("local"));
            }
        }
        found
    }
}

/// The program that a variable names, even if it does not exist, so that a wrong setting is an error.
fn named(path: Option<&PathBuf>, from: &'static str) -> Option<Found> {
    path.map(|path| Found { path: path.clone(), from })
}

/// The program of this name in a folder.
fn there(folder: &Path, name: &str, from: &'static str) -> Option<Found> {
    let path = folder.join(name);
    path.is_file().then_some(Found { path, from })
}

/// The program of this name in packages of the Python with this prefix.
fn packaged(prefix: &Path, name: &str, packages: &[&str], from: &'static str) -> Option<Found> {
    sites(prefix).iter().find_map(|site| of_packages(site, name, packages, from))
}

/// The program of this name in packages of one folder.
fn of_packages(site: &Path, name: &str, packages: &[&str], from: &'static str) -> Option<Found> {
    packages.iter().find_map(|p| there(&site.join(p), name, from))
}

/// The package folders of the Python with this prefix.
fn sites(prefix: &Path) -> Vec<PathBuf> {
    let lib = prefix.join("lib");
    let pythons = versions(&lib, "python");
    pythons.iter().flat_map(|p| ["site-packages", "dist-packages"].map(|site| p.join(site))).collect()
}

/// The entries of a folder whose names are `prefix` and a version, the newest first.
fn versions(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return vec![] };
    let number = |path: &PathBuf| -> Option<Vec<u32>> {
        let name = path.file_name()?.to_str()?.strip_prefix(prefix)?;
        Some(name.split('.').map_while(|part| part.parse().ok()).collect())
    };
    let mut found: Vec<(Vec<u32>, PathBuf)> =
        entries.flatten().map(|e| e.path()).filter_map(|p| Some((number(&p)?, p))).collect();
    found.retain(|(number, _)| prefix.is_empty() || !number.is_empty());
    found.sort();
    found.into_iter().rev().map(|(_, p)| p).collect()
}
