//! Owns where the assembler of NVIDIA may lie, its disassembler, and the linker of LLVM.
//!
//! Only looks at folders: no process is started. Guarantees the same order for the same machine.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The file.
const PTXAS: &str = "ptxas";
/// That of the disassembler.
const NVDISASM: &str = "nvdisasm";

/// Where Python packages keep it, below `site-packages`: the package of the compiler for CUDA 12, that for CUDA 13,
/// and Triton, which brings its own.
const PACKAGES: [&str; 3] = ["nvidia/cuda_nvcc/bin", "nvidia/cu13/bin", "triton/backends/nvidia/bin"];

/// The same of the disassembler.
const DISASSEMBLER: [&str; 2] = ["nvidia/cuda_nvdisasm/bin", "nvidia/cu13/bin"];

/// The linker by its names in `PATH`: that of LLVM 19 first, whose objects it links.
const LLD: [&str; 3] = ["ld.lld-19", "ld.lld", "lld"];
/// Folders outside of `PATH` that it is installed to: Debian's package of LLVM 19, and ROCm.
const LLD_FOLDERS: [&str; 2] = ["/usr/lib/llvm-19/bin", "/opt/rocm/llvm/bin"];

/// The variables of the environment that the search reads; a value that is empty counts as not set.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// `TK_PTXAS`: the one to use, whatever else there is.
    pub tk_ptxas: Option<PathBuf>,
    /// `TK_LLD`: the same for the linker.
    pub tk_lld: Option<PathBuf>,
    /// `CUDA_HOME`
    pub cuda_home: Option<PathBuf>,
    /// `VIRTUAL_ENV`
    pub virtual_env: Option<PathBuf>,
    /// `PATH`
    pub path: Vec<PathBuf>,
    /// The folder of the user.
    pub home: Option<PathBuf>,
    /// Folders that may hold a `.venv`.
    pub beside: Vec<PathBuf>,
}

impl Environment {
    /// That of this process. `source` is the file that is compiled; a `.venv` beside it, or in the current folder, is
    /// searched as well.
    pub fn of_process(source: Option<&Path>) -> Environment {
        let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty());
        let path = |name: &str| set(name).map(PathBuf::from);
        let folder = source.and_then(Path::parent).map(Path::to_path_buf);
        let current = std::env::current_dir().ok();
        Environment {
            tk_ptxas: path("TK_PTXAS"),
            tk_lld: path("TK_LLD"),
            cuda_home: path("CUDA_HOME"),
            virtual_env: path("VIRTUAL_ENV"),
            path: set("PATH").map(|p| std::env::split_paths(&p).collect()).unwrap_or_default(),
            home: dirs::home_dir(),
            beside: folder.into_iter().chain(current).collect(),
        }
    }

    /// The assembler: the first that exists, or what `TK_PTXAS` says.
    pub fn ptxas(&self) -> Option<PathBuf> {
        self.tk_ptxas.clone().or_else(|| self.tool(PTXAS, &PACKAGES))
    }

    /// The disassembler.
    pub fn nvdisasm(&self) -> Option<PathBuf> {
        self.tool(NVDISASM, &DISASSEMBLER)
    }

    /// The linker: what `TK_LLD` says, or the first that exists.
    pub fn lld(&self) -> Option<PathBuf> {
        let folders = || self.path.iter().cloned().chain(LLD_FOLDERS.map(PathBuf::from));
        let found = || LLD.iter().find_map(|n| folders().map(|f| f.join(n)).find(|p| p.is_file()));
        self.tk_lld.clone().or_else(found)
    }

    /// A program by its name: in CUDA's folder, in these folders of Python packages, in `PATH`.
    fn tool(&self, name: &str, packages: &[&str]) -> Option<PathBuf> {
        let there = |folder: PathBuf| Some(folder.join(name)).filter(|p| p.is_file());
        if let Some(found) = self.cuda_home.as_ref().and_then(|home| there(home.join("bin"))) {
            return Some(found);
        }
        let in_packages = |site: &Path| packages.iter().find_map(|p| there(site.join(p)));
        let prefixes = self.prefixes();
        prefixes
            .iter()
            .flat_map(|p| sites(p))
            .find_map(|site| in_packages(&site))
            .or_else(|| self.path.iter().find_map(|folder| there(folder.clone())))
    }

    /// The folders that Pythons are installed in: virtual environments, then those of each `python3` in `PATH`, then
    /// what a user has installed for themselves.
    fn prefixes(&self) -> Vec<PathBuf> {
        let mut found: Vec<PathBuf> = self.virtual_env.iter().cloned().collect();
        let around = self.beside.iter().flat_map(|folder| folder.ancestors());
        found.extend(around.filter(|f| !f.as_os_str().is_empty()).map(|folder| folder.join(".venv")));
        for folder in self.path.iter().filter(|folder| folder.join("python3").exists()) {
            let Some(prefix) = folder.parent() else { continue };
            if folder.file_name() == Some(OsStr::new("shims")) {
                // A version manager: what lies in PATH are scripts, the Pythons are beside them.
                found.extend(versions(&prefix.join("versions"), ""));
            } else {
                found.push(prefix.to_path_buf());
                // Debian installs packages of the administrator apart from its own.
                found.push(prefix.join("local"));
            }
        }
        found.extend(self.home.iter().map(|home| home.join(".local")));
        found
    }
}

/// The folders of packages below a folder that a Python is installed in.
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
