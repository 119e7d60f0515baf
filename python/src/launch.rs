//! Launches from Python: [`Kernel`], from the objects of a call to the driver.
//!
//! A launch on a GPU goes into the stream that the tensors' library uses now, and returns before it has run. Arrays in
//! memory of the host are run by the interpreter, and hold the results when the call returns.

use std::ffi::c_void;
use std::sync::{Arc, Mutex};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use smallvec::SmallVec;
use tk_ops::Scalar;
use tk_runtime::gpu::{Arg, CallSite, CudaError, Device, Kernels, LaunchError, Launcher, Placed, Stream};
use tk_sema::contract::{self, SetValue};
use tk_syntax::SourceMap;

use crate::compile_time::set_text;
use crate::dlpack::{self, At, Tensor};
use crate::number::number;
use crate::program::{self, Form, Inner, Param, Program, Signature, described};
use crate::{devices, errors, interrupt, lock};

/// What a kernel is made of again: path, text, name, compile-time arguments.
type Reduced = (String, Option<String>, String, Vec<(String, String)>);

/// Arguments that need no memory from the heap.
const MOST: usize = 8;

/// Call sites that a kernel remembers: one for each device and set of compile-time arguments.
const SITES: usize = 256;

/// An argument of a launch.
pub enum Value {
    Tensor(Tensor),
    Scalar(Scalar),
    Absent,
}

/// The arguments of a launch, in the order of the parameters.
pub type Values = Vec<Value>;

/// A kernel of a file, with some of its compile-time parameters given.
#[pyclass(frozen, weakref, module = "tk", name = "Kernel")]
pub struct Kernel {
    pub(crate) program: Arc<Inner>,
    pub(crate) signature: Arc<Signature>,
    /// Compile-time arguments by name.
    sets: Vec<(String, String)>,
    /// Of each parameter, whether the kernel may change it.
    pub(crate) writes: Vec<bool>,
    sites: Mutex<Vec<Known>>,
}

/// A call site, by the device and the compile-time arguments.
type Known = (At, Vec<(String, String)>, Arc<Mutex<Site>>);

/// What launches a kernel on one device with the same compile-time arguments.
pub(crate) struct Site {
    pub at: At,
    pub device: Device,
    /// The stream of the launch before.
    stream: Option<(usize, Arc<Stream>)>,
    form: SiteForm,
}

enum SiteForm {
    Source(Box<CallSite>, Launcher),
    /// With the name of the kernel.
    Bundle(Kernels, String),
}

/// The arguments of a call.
pub struct Call {
    pub values: Values,
    pub sets: Vec<(String, String)>,
    pub at: At,
    pub stream: usize,
}

#[pymethods]
impl Kernel {
    /// A kernel of a program; none if it has no kernel of that name.
    #[staticmethod]
    fn of(program: &Program, name: &str) -> Option<Kernel> {
        let signature = Arc::new(program.inner.signature(name)?);
        Some(Kernel::new(Arc::clone(&program.inner), signature, vec![]))
    }

    /// Launches the kernel.
    #[pyo3(signature = (*args, **kwargs))]
    fn __call__(&self, args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let call = self.call(args, kwargs)?;
        self.launch(args.py(), &call)
    }

    /// Compiles what a launch with these arguments needs, without launching.
    #[pyo3(signature = (*args, **kwargs))]
    fn prepare(&self, args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let py = args.py();
        let call = self.call(args, kwargs)?;
        let done = py.detach(|| {
            let site = self.site(&call)?;
            let mut site = lock(&site);
            let _entered = site.device.enter()?;
            let args: SmallVec<[Arg<'_>; MOST]> = call.values.iter().map(foreign).collect();
            match &mut site.form {
                SiteForm::Source(site, _) => site.prepare(&args),
                SiteForm::Bundle(..) => Ok(()),
            }
        });
        done.map_err(|e| errors::launch(py, self.sources(), &e))
    }

    /// A call as arguments of the command: the device, the arguments, and the compile-time arguments by name.
    #[pyo3(signature = (*args, **kwargs))]
    fn describe<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let py = args.py();
        let call = self.call(args, kwargs)?;
        let mut words: Vec<(String, String)> = vec![];
        for (param, value) in self.signature.params.iter().zip(&call.values) {
            let text = match value {
                Value::Absent => continue,
                Value::Scalar(s) => s.to_string(),
                Value::Tensor(t) if !t.is_row_major() => {
                    let name = &param.name;
                    let text =
                        format!("argument `{name}` is not row-major without gaps, which is what is measured");
                    return Err(errors::argument(py, &text));
                }
                Value::Tensor(t) => {
                    let shape: Vec<String> = t.shape.iter().map(ToString::to_string).collect();
                    let fill = if t.dtype.is_float() { "randn" } else { "zeros" };
                    format!("{fill}:{}[{}]", t.dtype, shape.join(","))
                }
            };
            words.push((param.name.clone(), text));
        }
        let out = PyDict::new(py);
        let device = match call.at {
            At::Host => "cpu",
            At::Cuda(_) => "cuda",
            At::Hip(_) => "hip",
        };
        out.set_item("device", device)?;
        out.set_item("arguments", words)?;
        out.set_item("given", call.sets)?;
        Ok(out)
    }

    /// The kernel with compile-time parameters given: `softmax[{"BLOCK": 1024}]`.
    fn __getitem__(&self, given: &Bound<'_, PyAny>) -> PyResult<Kernel> {
        let given = given.cast::<PyDict>().map_err(|_| {
            PyTypeError::new_err("compile-time parameters are given as a dict: `kernel[{\"BLOCK\": 1024}]`")
        })?;
        let mut sets = self.sets.clone();
        for (name, value) in given {
            let name: String = name.extract()?;
            self.known_set(&name)?;
            let text = set_text(&value, &name)?;
            sets.retain(|(n, _)| *n != name);
            sets.push((name, text));
        }
        Ok(Kernel::new(Arc::clone(&self.program), Arc::clone(&self.signature), sets))
    }

    #[getter]
    fn name(&self) -> &str {
        &self.signature.name
    }

    #[getter]
    fn doc(&self) -> &str {
        &self.signature.doc
    }

    /// The file of the kernel.
    #[getter]
    fn path(&self) -> &str {
        &self.program.path
    }

    /// The compile-time arguments given by `[..]`.
    #[getter]
    fn given(&self) -> Vec<(String, String)> {
        self.sets.clone()
    }

    /// The parameters: a dictionary for each.
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        described(py, &self.signature)
    }

    /// A kernel never changes.
    fn __copy__(this: Py<Kernel>) -> Py<Kernel> {
        this
    }

    fn __deepcopy__(this: Py<Kernel>, _memo: &Bound<'_, PyAny>) -> Py<Kernel> {
        this
    }

    /// The source, its name and the kernel: another process compiles it again.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Reduced)> {
        let restore = py.import("tk._kernel")?.getattr("_restore")?;
        let (path, text) = (self.program.file.clone(), self.program.text.clone());
        Ok((restore, (path, text, self.signature.name.clone(), self.sets.clone())))
    }

    /// The file of the kernel as an absolute path; `None` if its source is a text.
    #[getter]
    fn file(&self) -> Option<&str> {
        self.program.text.is_none().then_some(self.program.file.as_str())
    }

    fn __repr__(&self) -> String {
        let given: Vec<String> = self.sets.iter().map(|(n, v)| format!("{n}={v}")).collect();
        let given = if given.is_empty() { String::new() } else { format!("[{}]", given.join(", ")) };
        format!("<kernel {}{given} of {}>", self.signature.name, self.program.path)
    }
}

impl Kernel {
    fn new(program: Arc<Inner>, signature: Arc<Signature>, sets: Vec<(String, String)>) -> Kernel {
        let writes = signature.params.iter().map(|p| p.mutable).collect();
        Kernel { program, signature, sets, writes, sites: Mutex::default() }
    }

    pub(crate) fn sources(&self) -> Option<&SourceMap> {
        match &self.program.form {
            Form::Source(source) => Some(&source.session.checked().sources),
            Form::Bundle(_) => None,
        }
    }

    fn known_set(&self, name: &str) -> PyResult<()> {
        let is_known = self.signature.compile_time.iter().any(|(n, ..)| n == name);
        let is_option = matches!(self.program.form, Form::Source(_)) && contract::is_launch_option(name);
        if is_known || is_option { Ok(()) } else { Err(self.unknown(name)) }
    }

    #[cold]
    fn unknown(&self, name: &str) -> PyErr {
        if self.signature.params.iter().any(|p| p.name == name) {
            let kernel = &self.signature.name;
            let text = format!(
                "`{name}` of kernel `{kernel}` is an argument of a launch, not a compile-time parameter"
            );
            return PyTypeError::new_err(text);
        }
        let all = self.signature.params.iter().map(|p| &p.name);
        let all: Vec<String> = all
            .chain(self.signature.compile_time.iter().map(|(n, ..)| n))
            .map(|n| format!("`{n}`"))
            .collect();
        let kernel = &self.signature.name;
        PyTypeError::new_err(format!(
            "kernel `{kernel}` has no parameter `{name}`; it has {}",
            all.join(", ")
        ))
    }

    /// The arguments of a call.
    pub(crate) fn call(
        &self,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Call> {
        let params = &self.signature.params;
        if args.len() > params.len() {
            let (kernel, takes, given) = (&self.signature.name, params.len(), args.len());
            let text = format!("kernel `{kernel}` takes {takes} arguments, and {given} were given");
            return Err(PyTypeError::new_err(text));
        }
        let mut values = Values::with_capacity(params.len());
        for (param, object) in params.iter().zip(args.iter_borrowed()) {
            values.push(value(param, &object)?);
        }
        let given = values.len();
        values.resize_with(params.len(), || Value::Absent);
        let (mut sets, mut stream) = (vec![], None);
        if let Some(kwargs) = kwargs {
            sets.clone_from(&self.sets);
            for (name, object) in kwargs {
                let name = name.cast::<PyString>()?.to_string();
                let position = params.iter().position(|p| p.name == name);
                match (position, params.get(position.unwrap_or(0)), values.get_mut(position.unwrap_or(0))) {
                    (Some(i), Some(param), Some(slot)) => {
                        if i < given {
                            let kernel = &self.signature.name;
                            let text = format!("kernel `{kernel}` got its argument `{name}` twice");
                            return Err(PyTypeError::new_err(text));
                        }
                        *slot = value(param, &object)?;
                    }
                    _other if name == "stream" => stream = stream_handle(&object)?,
                    _other => {
                        self.known_set(&name)?;
                        let text = set_text(&object, &name)?;
                        sets.retain(|(n, _)| *n != name);
                        sets.push((name, text));
                    }
                }
            }
        } else if !self.sets.is_empty() {
            sets.clone_from(&self.sets);
        }
        let first = self.first(args.py(), &values)?;
        let at = first.map_or(At::Host, |t| t.at);
        let stream = match (stream, first) {
            (Some(stream), _) => stream,
            (None, Some(t)) if at != At::Host => t.stream(args.py())?,
            (None, _) => 0,
        };
        Ok(Call { values, sets, at, stream })
    }

    /// The first tensor, whose device is that of all others.
    fn first<'a>(&self, py: Python<'_>, values: &'a Values) -> PyResult<Option<&'a Tensor>> {
        let mut first: Option<(usize, &Tensor)> = None;
        for (i, value) in values.iter().enumerate() {
            let Value::Tensor(t) = value else { continue };
            match first {
                None => first = Some((i, t)),
                Some((before, other)) if other.at != t.at => {
                    let name = |i: usize| self.signature.params.get(i).map_or("", |p| p.name.as_str());
                    let text = format!(
                        "argument `{}` is on {}, and `{}` on {}: all tensors of a launch are on one device",
                        name(i),
                        t.at,
                        name(before),
                        other.at
                    );
                    return Err(errors::argument(py, &text));
                }
                Some(_) => {}
            }
            if t.read_only && self.writes.get(i).copied().unwrap_or(false) {
                let name = self.signature.params.get(i).map_or("", |p| p.name.as_str());
                let text = format!("argument `{name}` is read-only, and the kernel may write to it");
                return Err(errors::argument(py, &text));
            }
        }
        Ok(first.map(|(_, t)| t))
    }

    /// What launches a call of this kind.
    pub(crate) fn site(&self, call: &Call) -> Result<Arc<Mutex<Site>>, LaunchError> {
        {
            let sites = lock(&self.sites);
            let found = sites.iter().find(|(at, sets, _)| *at == call.at && *sets == call.sets);
            if let Some((_, _, site)) = found {
                return Ok(Arc::clone(site));
            }
        }
        let device = devices::open(call.at)?;
        let form = match &self.program.form {
            Form::Source(source) => {
                let launcher = source.launcher(call.at)?;
                let sets: Vec<(String, SetValue)> =
                    call.sets.iter().map(|(n, v)| (n.clone(), SetValue::parse(v))).collect();
                let hir = &source.session.checked().hir;
                let id = program::kernel_id(hir, &self.signature.name);
                let name = id.map(|id| contract::launch_name(hir, id)).unwrap_or_default();
                SiteForm::Source(Box::new(launcher.site(&name, &sets)?), launcher)
            }
            Form::Bundle(bundle) => {
                SiteForm::Bundle(bundle.kernels(&device, call.at), self.signature.name.clone())
            }
        };
        let site = Arc::new(Mutex::new(Site { at: call.at, device, stream: None, form }));
        let mut sites = lock(&self.sites);
        if sites.len() >= SITES {
            sites.clear();
        }
        sites.push((call.at, call.sets.clone(), Arc::clone(&site)));
        Ok(site)
    }

    /// Launches the kernel; returns what kernels have printed since the last launch. Needs no interpreter.
    pub(crate) fn start(&self, call: &Call) -> (Result<(), LaunchError>, Option<String>) {
        let site = match self.site(call) {
            Ok(site) => site,
            Err(error) => return (Err(error), None),
        };
        let mut site = lock(&site);
        let done = site.launch(call);
        (done, site.printed())
    }

    /// Launches the kernel and shows what it prints.
    fn launch(&self, py: Python<'_>, call: &Call) -> PyResult<()> {
        let start = || py.detach(|| self.start(call));
        let (done, printed) = match call.at {
            At::Host => interrupt::watched(py, start)?,
            At::Cuda(_) | At::Hip(_) => start(),
        };
        if let Some(text) = printed {
            write_printed(py, &text)?;
        }
        done.map_err(|e| errors::launch(py, self.sources(), &e))
    }

    /// The same kernel, with call sites of its own.
    pub(crate) fn again(&self) -> Kernel {
        Kernel::new(Arc::clone(&self.program), Arc::clone(&self.signature), self.sets.clone())
    }

    /// The compile-time arguments given by `[..]`.
    pub(crate) fn given_sets(&self) -> Vec<(String, String)> {
        self.sets.clone()
    }
}

impl Call {
    /// Its arrays, which are in memory of the host, on the CPU device.
    pub(crate) fn placed(&self) -> Result<Placed, CudaError> {
        let arrays = self.values.iter().filter_map(|value| match value {
            Value::Tensor(t) => Some(t.elements()),
            Value::Scalar(_) | Value::Absent => None,
        });
        // SAFETY: a call holds its tensors until it has ended; that they may be written was asked before.
        unsafe { Placed::new(arrays) }
    }
}

/// Prints what kernels have printed.
pub(crate) fn write_printed(py: Python<'_>, text: &str) -> PyResult<()> {
    let options = PyDict::new(py);
    options.set_item("end", "")?;
    py.import("builtins")?.call_method("print", (text,), Some(&options)).map(drop)
}

impl Site {
    fn launch(&mut self, call: &Call) -> Result<(), LaunchError> {
        let _entered = self.device.enter()?;
        if self.at == At::Host {
            let stream = self.stream(0)?;
            let placed = call.placed()?;
            let args: SmallVec<[Arg<'_>; MOST]> = call.values.iter().map(|v| arg(v, Some(&placed))).collect();
            return self.start(&stream, &args, &call.sets);
        }
        let stream = self.stream(call.stream)?;
        let args: SmallVec<[Arg<'_>; MOST]> = call.values.iter().map(foreign).collect();
        self.start(&stream, &args, &call.sets)
    }

    pub(crate) fn start(
        &mut self,
        stream: &Stream,
        args: &[Arg<'_>],
        sets: &[(String, String)],
    ) -> Result<(), LaunchError> {
        match &mut self.form {
            SiteForm::Source(site, _) => site.launch(stream, args),
            SiteForm::Bundle(kernels, name) => {
                let named: Vec<(&str, &str)> = sets.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
                kernels.launch(stream, name, args, &named)
            }
        }
    }

    /// What kernels have printed since the last call.
    fn printed(&self) -> Option<String> {
        let text = match &self.form {
            SiteForm::Source(_, launcher) => launcher.printed(),
            SiteForm::Bundle(kernels, _) => kernels.printed(),
        };
        Some(text).filter(|t| !t.is_empty())
    }

    /// The stream of a handle; on the CPU, one of this site.
    pub(crate) fn stream(&mut self, raw: usize) -> Result<Arc<Stream>, LaunchError> {
        if let Some((known, stream)) = &self.stream
            && *known == raw
        {
            return Ok(Arc::clone(stream));
        }
        let stream = match self.at {
            At::Host => self.device.stream()?,
            // SAFETY: the library of the tensors uses it now, so it lives, and belongs to their device.
            At::Cuda(_) | At::Hip(_) => unsafe { Stream::foreign(&self.device, raw as *mut c_void) },
        };
        let stream = Arc::new(stream);
        self.stream = Some((raw, Arc::clone(&stream)));
        Ok(stream)
    }
}

/// The argument that a value is in memory of the GPU.
pub(crate) fn foreign(value: &Value) -> Arg<'_> {
    match value {
        Value::Tensor(t) => t.elements().arg(),
        Value::Scalar(s) => Arg::Scalar(*s),
        Value::Absent => Arg::Absent,
    }
}

/// The argument that a value is: where it was placed on the CPU, or where it is on a GPU.
pub(crate) fn arg<'a>(value: &'a Value, placed: Option<&'a Placed>) -> Arg<'a> {
    match (value, placed) {
        (Value::Tensor(t), Some(placed)) => placed.arg(t.elements()),
        (Value::Tensor(_) | Value::Scalar(_) | Value::Absent, _) => foreign(value),
    }
}

/// The handle of a stream: a number, or an object of PyTorch, CuPy or `cuda.core`.
fn stream_handle(object: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
    if object.is_none() {
        return Ok(None);
    }
    if let Ok(protocol) = object.call_method0("__cuda_stream__") {
        let (_, handle): (u32, usize) = protocol.extract()?;
        return Ok(Some(handle));
    }
    let attribute = |name: &str| object.getattr(name).ok();
    let number = attribute("cuda_stream").or_else(|| attribute("ptr"));
    let handle: usize = number.as_ref().unwrap_or(object).extract().map_err(|_| {
        PyTypeError::new_err(
            "`stream` is a stream of PyTorch or CuPy, an object with `__cuda_stream__`, or a handle",
        )
    })?;
    Ok(Some(handle))
}

/// The argument that an object is for a parameter.
fn value(param: &Param, object: &Bound<'_, PyAny>) -> PyResult<Value> {
    if object.is_none() {
        return Ok(Value::Absent);
    }
    if param.tensor {
        return Ok(Value::Tensor(dlpack::tensor(object, &param.name, param.mutable)?));
    }
    number(param, object).map(Value::Scalar)
}
