//! A file of kernels in Python: [`Program`], source or a shipped bundle, and what it says about its kernels.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use tk_driver::{Cache, Environment, Jit};
use tk_ops::DType;
use tk_runtime::Session;
use tk_runtime::files::Files;
use tk_runtime::gpu::{CudaError, Device, Kernels, Launcher};
use tk_sema::contract::{self, ArgUse};
use tk_sema::hir::{FnId, HFn, Hir};
use tk_sema::{Checked, Loader};
use tk_syntax::FileId;

use crate::dlpack::At;
use crate::{devices, errors, lock};

/// Kernels of one file, for all devices.
#[pyclass(frozen, module = "tk", name = "Program")]
pub struct Program {
    pub(crate) inner: Arc<Inner>,
}

/// What the kernels of a file share.
pub struct Inner {
    /// The file, as it was named.
    pub path: String,
    /// Its absolute path, or the name of a text.
    pub file: String,
    /// The source, where it is in no file of the user.
    pub text: Option<String>,
    pub form: Form,
}

/// The form of the kernels.
pub enum Form {
    Source(Source),
    Bundle(Bundle),
}

/// Source, compiled when a kernel is launched.
pub struct Source {
    pub session: Arc<Session>,
    jit: Arc<Jit>,
    pub launchers: Mutex<HashMap<At, Launcher>>,
}

/// Kernels compiled by `tk build`.
pub struct Bundle {
    file: Arc<tk_bundle::Bundle>,
    pub kernels: Mutex<HashMap<At, Kernels>>,
}

impl Source {
    /// What launches on a device.
    ///
    /// # Errors
    /// The device is not there, or no target fits it.
    pub fn launcher(&self, at: At) -> Result<Launcher, CudaError> {
        if let Some(launcher) = lock(&self.launchers).get(&at) {
            return Ok(launcher.clone());
        }
        let launcher =
            Launcher::new(Arc::clone(&self.session), devices::open(at)?, Arc::<Jit>::clone(&self.jit))?;
        Ok(lock(&self.launchers).entry(at).or_insert(launcher).clone())
    }
}

impl Bundle {
    /// What launches on a device.
    pub fn kernels(&self, device: &Device, at: At) -> Kernels {
        let make = || Kernels::new(device.clone(), Arc::clone(&self.file));
        lock(&self.kernels).entry(at).or_insert_with(make).clone()
    }
}

/// A parameter of a kernel.
#[derive(Clone, Debug)]
pub struct Param {
    pub name: String,
    /// As written: `mut view[T, 2]`, `i32`.
    pub ty: String,
    pub tensor: bool,
    pub mutable: bool,
    pub optional: bool,
    /// The type of a number, if nothing but the parameter decides it.
    pub number: Option<DType>,
}

/// A kernel, as a launch sees it.
#[derive(Clone, Debug)]
pub struct Signature {
    pub name: String,
    pub doc: String,
    /// Compile-time parameters: name, type, whether it may be left out.
    pub compile_time: Vec<(String, String, bool)>,
    pub params: Vec<Param>,
}

/// The files of a program whose first one is a text.
struct Cell<'a> {
    name: &'a str,
    text: &'a str,
    files: Files,
}

impl Loader for Cell<'_> {
    fn load(&self, path: &str) -> Result<String, String> {
        if path == self.name { Ok(self.text.to_string()) } else { self.files.load(path) }
    }

    fn used(&self, path: &str, from: &str) -> Result<String, Option<String>> {
        self.files.used(path, from)
    }

    fn std(&self, name: &str) -> Option<(String, String)> {
        self.files.std(name)
    }
}

/// The path, whatever the current folder becomes.
fn absolute(path: &str) -> String {
    std::path::absolute(path).map_or_else(|_| path.to_string(), |p| p.to_string_lossy().into_owned())
}

/// Checks a file, or a text under the name of a file.
pub fn checked(path: &str, text: Option<&str>) -> Checked {
    match text {
        Some(text) => tk_sema::check(&Cell { name: path, text, files: Files::default() }, path),
        None => tk_sema::check(&Files::default(), path),
    }
}

#[pymethods]
impl Program {
    /// Checks a source file or opens a bundle. `text` is the source where it is in no file; `prefix` is the folder of the
    /// Python that runs, whose packages may have NVIDIA's assembler.
    #[new]
    fn new(py: Python<'_>, path: &str, text: Option<&str>, prefix: PathBuf) -> PyResult<Program> {
        if text.is_none() && Path::new(path).extension().is_some_and(|e| e == "tkb") {
            let opened = tk_bundle::Bundle::open(path.as_ref());
            let bundle = Arc::new(opened.map_err(|e| errors::file(py, &e.to_string()))?);
            let form = Form::Bundle(Bundle { file: bundle, kernels: Mutex::default() });
            let file = absolute(path);
            return Ok(Program { inner: Arc::new(Inner { path: path.to_string(), file, text: None, form }) });
        }
        let library = tk_sema::std_files().find(|(name, _)| tk_sema::std_path(name) == path);
        let shown = library.map(|(name, _)| format!("std/{name}.tk"));
        let (path, text) = (shown.as_deref().unwrap_or(path), text.or(library.map(|(_, text)| text)));
        let checked = py.detach(|| crate::on_large_stack(|| checked(path, text)));
        if checked.diagnostics.iter().any(tk_syntax::Diagnostic::is_error) {
            return Err(errors::compile(py, &checked.sources, &checked.diagnostics));
        }
        let mut environment = Environment::of_process(text.is_none().then_some(path.as_ref()));
        environment.tk_venv.get_or_insert(prefix);
        let jit = Arc::new(Jit::new(checked.sources.clone(), environment, Cache::of_process()));
        let session = Arc::new(Session::new(checked));
        let form = Form::Source(Source { session, jit, launchers: Mutex::default() });
        let file = if text.is_some() { path.to_string() } else { absolute(path) };
        let text = text.map(ToString::to_string);
        Ok(Program { inner: Arc::new(Inner { path: path.to_string(), file, text, form }) })
    }

    /// The names of the kernels.
    #[getter]
    fn names(&self) -> Vec<String> {
        match &self.inner.form {
            Form::Source(source) => {
                let hir = &source.session.checked().hir;
                let mut names: Vec<String> = own(hir).map(|(_, f)| f.name.clone()).collect();
                names.dedup();
                names
            }
            Form::Bundle(bundle) => bundle.file.manifest().kernels.iter().map(|k| k.name.clone()).collect(),
        }
    }

    /// The warnings of the check, as `tk.Diagnostic`.
    #[getter]
    fn warnings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        if let Form::Source(source) = &self.inner.form {
            let Checked { sources, diagnostics, .. } = source.session.checked();
            for d in diagnostics {
                list.append(errors::diagnostic(py, sources, d)?)?;
            }
        }
        Ok(list)
    }
}

impl Inner {
    /// The kernel of this name.
    pub fn signature(&self, name: &str) -> Option<Signature> {
        match &self.form {
            Form::Source(source) => {
                let hir = &source.session.checked().hir;
                let id = kernel_id(hir, name)?;
                let uses = contract::argument_uses(hir, id);
                Some(source_signature(name, &hir.func(id).doc, contract::parameters(hir, id), &uses))
            }
            Form::Bundle(bundle) => {
                Some(bundle_signature(bundle.file.manifest().kernels.iter().find(|k| k.name == name)?))
            }
        }
    }
}

/// The kernel of this name: that of the file itself before one of a file that it uses.
pub fn kernel_id(hir: &Hir, name: &str) -> Option<FnId> {
    own(hir).find(|(_, f)| f.name == name).map(|(id, _)| id)
}

/// The kernels that a file offers: its own, then those of other files that it exports.
fn own(hir: &Hir) -> impl Iterator<Item = (FnId, &HFn)> {
    let is_main = |f: &HFn| f.file == FileId(0);
    let exported = move |id| hir.exports.iter().any(|e| e.kernel == id);
    let first = hir.kernels().filter(move |(_, f)| is_main(f));
    first.chain(hir.kernels().filter(move |(id, f)| !is_main(f) && exported(*id)))
}

fn source_signature(name: &str, doc: &str, params: Vec<contract::HostParam>, uses: &[ArgUse]) -> Signature {
    let (first, rest): (Vec<_>, Vec<_>) = params.into_iter().partition(|p| p.compile_time);
    let number = |i: usize| uses.get(i).and_then(|u| u.number);
    let param = |(i, p): (usize, contract::HostParam)| Param {
        number: number(i).filter(|_| !p.tensor),
        name: p.name,
        ty: p.ty,
        tensor: p.tensor,
        mutable: p.mutable,
        optional: p.optional,
    };
    Signature {
        name: name.to_string(),
        doc: doc.to_string(),
        compile_time: first.into_iter().map(|p| (p.name, p.ty, p.optional)).collect(),
        params: rest.into_iter().enumerate().map(param).collect(),
    }
}

fn bundle_signature(kernel: &tk_bundle::Kernel) -> Signature {
    let param = |p: &tk_bundle::Param| {
        let (ty, tensor, mutable) = match p.kind {
            tk_bundle::ParamKind::View { rank, mutable, .. } => (format!("view[_, {rank}]"), true, mutable),
            tk_bundle::ParamKind::Pointer { mutable } => ("*_".to_string(), true, mutable),
            tk_bundle::ParamKind::Number => ("number".to_string(), false, false),
        };
        let ty = if mutable { format!("mut {ty}") } else { ty };
        let optional = p.optional || p.default.is_some();
        Param { name: p.name.clone(), ty, tensor, mutable, optional, number: None }
    };
    Signature {
        name: kernel.name.clone(),
        doc: kernel.doc.clone(),
        compile_time: kernel.choices.iter().map(|c| (c.name.clone(), c.values.join(" | "), false)).collect(),
        params: kernel.params.iter().map(param).collect(),
    }
}

/// A signature for Python: what `inspect` and the writer of stubs read.
pub fn described<'py>(py: Python<'py>, signature: &Signature) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    let row = |name: &str, ty: &str, kind: &str, optional: bool, mutable: bool| -> PyResult<()> {
        let d = PyDict::new(py);
        d.set_item("name", name)?;
        d.set_item("type", ty)?;
        d.set_item("kind", kind)?;
        d.set_item("optional", optional)?;
        d.set_item("mutable", mutable)?;
        list.append(d)
    };
    for p in &signature.params {
        row(&p.name, &p.ty, if p.tensor { "tensor" } else { "number" }, p.optional, p.mutable)?;
    }
    for (name, ty, optional) in &signature.compile_time {
        row(name, ty, "compile-time", *optional, false)?;
    }
    Ok(list)
}
