//! Tensors of other libraries, without a copy: [`Tensor`], read through DLPack or NumPy's array interface.
//!
//! PyTorch's exchange interface (DLPack 1.3, an attribute of the type) fills a descriptor in 100 ns and says which stream
//! is current; other types are asked by `__dlpack__`. NumPy arrays are read by `__array_interface__`, which also has the
//! types of `ml_dtypes` and says whether the memory may be written.
//!
//! The structures are those of DLPack's header, <https://dmlc.github.io/dlpack/latest/c_api.html>.

use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::ptr;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyTuple, PyType};
use smallvec::SmallVec;
use tk_ops::DType;
use tk_runtime::contiguous;
use tk_runtime::gpu::Elements;

use crate::compile_time::dtype_named;

/// Axes of a tensor that need no memory from the heap.
const RANK: usize = 5;

/// Extents or strides.
pub type Axes = SmallVec<[i64; RANK]>;

/// `DLDeviceType` and the number of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Place {
    kind: i32,
    number: i32,
}

const CPU: i32 = 1;
const CUDA: i32 = 2;
const CUDA_HOST: i32 = 3;
const ROCM: i32 = 10;
const ROCM_HOST: i32 = 11;
const CUDA_MANAGED: i32 = 13;

/// Where the memory of a tensor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum At {
    /// Memory of the host.
    Host,
    /// Memory of NVIDIA's GPU with this number.
    Cuda(usize),
    /// Memory of AMD's GPU with this number.
    Hip(usize),
}

impl std::fmt::Display for At {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            At::Host => f.write_str("cpu"),
            At::Cuda(n) => write!(f, "cuda:{n}"),
            At::Hip(n) => write!(f, "hip:{n}"),
        }
    }
}

/// A tensor of another library, which keeps its memory while the call lasts.
pub struct Tensor {
    /// The address of its first element.
    pub address: u64,
    pub at: At,
    pub dtype: DType,
    pub shape: Axes,
    /// In elements.
    pub strides: Axes,
    pub read_only: bool,
    queue: Queue,
    /// What keeps the memory of `__dlpack__`.
    _owner: Option<Owner>,
}

#[repr(C)]
struct DlDataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device: Place,
    ndim: i32,
    dtype: DlDataType,
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}

#[repr(C)]
struct DlManaged {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut DlManaged)>,
}

#[repr(C)]
struct DlVersioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut DlVersioned)>,
    flags: u64,
    tensor: DlTensor,
}

/// `DLPACK_FLAG_BITMASK_READ_ONLY`
const READ_ONLY: u64 = 1;

/// `DLPackExchangeAPI`, of which two functions are used.
#[repr(C)]
struct Exchange {
    major: u32,
    minor: u32,
    previous: *const Exchange,
    _allocate: *const c_void,
    _managed_from: *const c_void,
    _managed_to: *const c_void,
    borrow: Option<unsafe extern "C" fn(*mut c_void, *mut DlTensor) -> c_int>,
    stream: Option<unsafe extern "C" fn(i32, i32, *mut *mut c_void) -> c_int>,
}

/// What a capsule of `__dlpack__` gave; gives it back on drop.
enum Owner {
    Managed(*mut DlManaged),
    Versioned(*mut DlVersioned),
}

// SAFETY: what is in them is only touched by `drop`, and the libraries allow that in every thread that holds the
// interpreter's lock, as those that drop arguments of a call do.
unsafe impl Send for Owner {}
// SAFETY: as above.
unsafe impl Sync for Owner {}

impl Drop for Owner {
    fn drop(&mut self) {
        // SAFETY: the capsule was renamed, so this is the only call.
        unsafe {
            match *self {
                Owner::Managed(m) => (*m).deleter.into_iter().for_each(|free| free(m)),
                Owner::Versioned(m) => (*m).deleter.into_iter().for_each(|free| free(m)),
            }
        }
    }
}

/// How to learn which stream the library of a tensor puts work into now.
#[derive(Clone, Copy)]
enum Queue {
    /// By a function of this structure.
    Exchange(*const Exchange, Place),
    /// It is this one.
    Known(usize),
    /// Not at all: the default stream.
    Default,
}

// SAFETY: the structure is static, and its functions may be called from every thread.
unsafe impl Send for Queue {}
// SAFETY: as above.
unsafe impl Sync for Queue {}

/// How tensors of a type are read.
#[derive(Clone, Copy)]
enum Way {
    /// By the functions of this structure, which lives as long as the process.
    Exchange(*const Exchange),
    /// By `__array_interface__`.
    NumPy,
    /// By `__dlpack__`.
    Capsule,
    /// It is no tensor.
    None,
}

/// A type and how its tensors are read. The reference keeps the type, so that no other gets its address.
struct Known {
    ty: Py<PyType>,
    way: Way,
    is_torch: bool,
}

thread_local! {
    static KNOWN: RefCell<Vec<Known>> = const { RefCell::new(vec![]) };
}

/// Types that a thread remembers; programs use one or two.
const REMEMBERED: usize = 64;

fn way(object: &Bound<'_, PyAny>) -> (Way, bool) {
    let ty = object.get_type();
    let found = KNOWN.with_borrow(|known| {
        known.iter().find(|k| k.ty.as_ptr() == ty.as_ptr()).map(|k| (k.way, k.is_torch))
    });
    found.unwrap_or_else(|| {
        let (way, is_torch) = learn(&ty);
        KNOWN.with_borrow_mut(|known| {
            if known.len() >= REMEMBERED {
                known.clear();
            }
            known.push(Known { ty: ty.unbind(), way, is_torch });
        });
        (way, is_torch)
    })
}

fn learn(ty: &Bound<'_, PyType>) -> (Way, bool) {
    let mro = ty.mro();
    let is_a = |module: &str, name: &str| {
        mro.iter().any(|t| {
            let named = |attribute: &str, wanted: &str| {
                t.getattr(attribute)
                    .ok()
                    .and_then(|n| n.extract::<String>().ok())
                    .is_some_and(|n| n == wanted)
            };
            named("__name__", name) && named("__module__", module)
        })
    };
    if is_a("numpy", "ndarray") {
        return (Way::NumPy, false);
    }
    let is_torch = is_a("torch", "Tensor");
    let exchange = ty.getattr("__dlpack_c_exchange_api__").ok().and_then(|c| {
        let capsule = c.cast_into::<PyCapsule>().ok()?;
        // SAFETY: a capsule of that name holds such a structure, which is static.
        let mut at = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), c"dlpack_exchange_api".as_ptr()) }
            .cast::<Exchange>()
            .cast_const();
        if at.is_null() {
            // SAFETY: the call above has set an error.
            unsafe { ffi::PyErr_Clear() };
        }
        // SAFETY: as above; earlier versions are linked from it.
        unsafe {
            while !at.is_null() && (*at).major != 1 {
                at = (*at).previous;
            }
            (!at.is_null() && (*at).borrow.is_some() && (*at).stream.is_some()).then_some(at)
        }
    });
    let way = match exchange {
        Some(at) => Way::Exchange(at),
        None if ty.hasattr("__dlpack__").unwrap_or(false) => Way::Capsule,
        None => Way::None,
    };
    (way, is_torch)
}

/// Whether an object is a tensor of some library.
pub fn is_tensor(object: &Bound<'_, PyAny>) -> bool {
    !matches!(way(object).0, Way::None)
}

/// The tensor that an object is; `name` is the argument, and `written` whether the kernel may change it.
///
/// # Errors
/// It is none, or one that a kernel cannot take.
pub fn tensor(object: &Bound<'_, PyAny>, name: &str, written: bool) -> PyResult<Tensor> {
    let (way, is_torch) = way(object);
    if is_torch {
        refuse_gradient(object, name)?;
    }
    match way {
        Way::Exchange(exchange) => {
            // SAFETY: a descriptor of zeros is one without a tensor.
            let mut out: DlTensor = unsafe { std::mem::zeroed() };
            // SAFETY: the structure lives as long as the process, and the object is of its type.
            let code = unsafe {
                (*exchange).borrow.map_or(-1, |borrow| borrow(object.as_ptr().cast(), &raw mut out))
            };
            if code != 0 {
                return Err(taken_error(object.py(), name));
            }
            // SAFETY: the function has filled it, and the object keeps what it points to.
            let mut tensor = unsafe { of_dl(&out, name, None) }?;
            if is_torch {
                refuse_negated(object, &tensor, name)?;
            }
            tensor.queue = Queue::Exchange(exchange, out.device);
            Ok(tensor)
        }
        Way::NumPy => numpy(object, name),
        Way::Capsule => capsule(object, name, written),
        Way::None => {
            let ty = object.get_type().name().map(|n| n.to_string()).unwrap_or_default();
            Err(PyTypeError::new_err(format!(
                "argument `{name}` must be a tensor, and `{ty}` has no `__dlpack__`"
            )))
        }
    }
}

/// Kernels have no gradients by themselves: a tensor that asks for one would silently get none.
fn refuse_gradient(object: &Bound<'_, PyAny>, name: &str) -> PyResult<()> {
    if !object.getattr(pyo3::intern!(object.py(), "requires_grad"))?.is_truthy()? {
        return Ok(());
    }
    let torch = object.py().import("torch")?;
    if !torch.call_method0("is_grad_enabled")?.is_truthy()? {
        return Ok(());
    }
    Err(PyValueError::new_err(format!(
        "argument `{name}` requires a gradient, which a kernel alone does not have; register the kernel with \
         `tk.torch.op(.., backward = ..)`, or pass `{name}.detach()`, or call it under `torch.no_grad()`"
    )))
}

/// PyTorch's views of imaginary parts of conjugates hold what must be negated, and say so beside the memory. They have
/// gaps, since real parts are between; asking costs time, so only tensors with gaps are asked.
fn refuse_negated(object: &Bound<'_, PyAny>, tensor: &Tensor, name: &str) -> PyResult<()> {
    let has_gaps = !tensor.strides.contains(&1) && !tensor.strides.is_empty();
    if has_gaps && object.call_method0(pyo3::intern!(object.py(), "is_neg"))?.is_truthy()? {
        let text = format!(
            "argument `{name}` is a view that PyTorch negates when it is read; pass `{name}.resolve_neg()`"
        );
        return Err(PyValueError::new_err(text));
    }
    Ok(())
}

/// The error that a function of another library has set, with the argument before it.
fn taken_error(py: Python<'_>, name: &str) -> PyErr {
    match PyErr::take(py) {
        Some(error) => about(py, name, &error),
        None => PyValueError::new_err(format!("argument `{name}` is no tensor in memory")),
    }
}

fn about(py: Python<'_>, name: &str, error: &PyErr) -> PyErr {
    // Libraries in C++ append the frames of their stack.
    let said = error.value(py).to_string();
    let first = said.lines().next().unwrap_or_default();
    let text = format!("argument `{name}`: {first}");
    let new = PyValueError::new_err(text);
    new.set_cause(py, Some(error.clone_ref(py)));
    new
}

/// # Safety
/// The descriptor points to as many extents and strides as it has axes.
unsafe fn of_dl(t: &DlTensor, name: &str, owner: Option<Owner>) -> PyResult<Tensor> {
    let number = usize::try_from(t.device.number).unwrap_or(0);
    let at = match t.device.kind {
        CPU | CUDA_HOST | ROCM_HOST => At::Host,
        CUDA | CUDA_MANAGED => At::Cuda(number),
        ROCM => At::Hip(number),
        other => {
            let text =
                format!("argument `{name}` is on a device (DLPack's number {other}) that runs no kernels");
            return Err(PyValueError::new_err(text));
        }
    };
    let dtype = dtype(&t.dtype).ok_or_else(|| {
        let DlDataType { code, bits, lanes } = t.dtype;
        let text = format!("argument `{name}` has elements without a type in the language (DLPack {code}, {bits} bits, {lanes} lanes)");
        PyTypeError::new_err(text)
    })?;
    let rank = usize::try_from(t.ndim).unwrap_or(0);
    let axes = |at: *const i64| -> Option<Axes> {
        // SAFETY: the caller has said so.
        (!at.is_null()).then(|| unsafe { std::slice::from_raw_parts(at, rank) }.into())
    };
    let shape = if rank == 0 { Axes::new() } else { axes(t.shape).unwrap_or_default() };
    let strides =
        if rank == 0 { Axes::new() } else { axes(t.strides).unwrap_or_else(|| contiguous(&shape).into()) };
    if t.data.is_null() && !shape.contains(&0) {
        let text =
            format!("argument `{name}` has no memory: it is a tensor for tracing, or its storage was freed");
        return Err(PyValueError::new_err(text));
    }
    let address = (t.data as u64).wrapping_add(t.byte_offset);
    Ok(Tensor { address, at, dtype, shape, strides, read_only: false, queue: Queue::Default, _owner: owner })
}

impl Tensor {
    /// A tensor in memory that its owner keeps.
    pub fn new(address: u64, at: At, dtype: DType, shape: Axes, strides: Axes) -> Tensor {
        Tensor { address, at, dtype, shape, strides, read_only: false, queue: Queue::Default, _owner: None }
    }

    /// Its elements.
    pub fn elements(&self) -> Elements<'_> {
        Elements { address: self.address, dtype: self.dtype, shape: &self.shape, strides: &self.strides }
    }

    /// The stream that its library puts work into now; 0 is the default one.
    ///
    /// # Errors
    /// The library does not tell.
    pub fn stream(&self, py: Python<'_>) -> PyResult<usize> {
        let (exchange, place) = match self.queue {
            Queue::Exchange(exchange, place) => (exchange, place),
            Queue::Known(stream) => return Ok(stream),
            Queue::Default => return Ok(0),
        };
        let mut stream = ptr::null_mut();
        // SAFETY: the structure lives as long as the process.
        let code = unsafe { (*exchange).stream.map_or(-1, |f| f(place.kind, place.number, &raw mut stream)) };
        if code == 0 { Ok(stream as usize) } else { Err(taken_error(py, "stream")) }
    }

    /// Returns true if it has no gaps, and its last axis varies fastest.
    pub fn is_row_major(&self) -> bool {
        let same = contiguous(&self.shape);
        self.shape.iter().zip(self.strides.iter().zip(&same)).all(|(d, (a, b))| *d <= 1 || a == b)
    }
}

/// The element type of `DLDataType`.
fn dtype(t: &DlDataType) -> Option<DType> {
    if t.lanes != 1 {
        return None;
    }
    Some(match (t.code, t.bits) {
        (0, 8) => DType::I8,
        (0, 16) => DType::I16,
        (0, 32) => DType::I32,
        (0, 64) => DType::I64,
        (1, 8) => DType::U8,
        (1, 16) => DType::U16,
        (1, 32) => DType::U32,
        (1, 64) => DType::U64,
        (2, 16) => DType::F16,
        (2, 32) => DType::F32,
        (2, 64) => DType::F64,
        (4, 16) => DType::BF16,
        (6, 8) => DType::Bool,
        (10, 8) => DType::F8E4M3,
        (11, 8) => DType::F8E4M3FNUZ,
        (12, 8) => DType::F8E5M2,
        (13, 8) => DType::F8E5M2FNUZ,
        (14, 8) => DType::E8M0,
        _other => return None,
    })
}

fn capsule(object: &Bound<'_, PyAny>, name: &str, written: bool) -> PyResult<Tensor> {
    let (py, module) = (object.py(), module_of(object));
    let asked = object.call_method0("__dlpack_device__").map_err(|e| match module.starts_with("jax") {
        true => PyTypeError::new_err(format!(
            "argument `{name}` is traced by JAX; `tk.jax.call` makes a function for traced arrays of a kernel"
        )),
        false => about(py, name, &e),
    });
    let place: (i32, i32) = asked?.extract()?;
    let options = PyDict::new(py);
    let is_host = matches!(place.0, CPU | CUDA_HOST | ROCM_HOST);
    if !is_host {
        // A launch goes into the stream of the library, so nothing has to wait (-1); of a library whose stream is not known, into
        // the default stream, which waits for the tensor. Its number is 1, and 0 for AMD.
        let stream = match place.0 {
            _ if module.starts_with("torch") || module.starts_with("cupy") => -1,
            CUDA | CUDA_MANAGED => 1,
            _ => 0,
        };
        options.set_item("stream", stream)?;
    }
    let with_version = options.copy()?;
    with_version.set_item("max_version", PyTuple::new(py, [1, 0])?)?;
    let asked = object.call_method("__dlpack__", (), Some(&with_version));
    let capsule = match asked {
        Err(e) if e.is_instance_of::<PyTypeError>(py) => object.call_method("__dlpack__", (), Some(&options)),
        other => other,
    };
    let capsule = capsule.map_err(|e| about(py, name, &e))?;
    let taken = |old: &std::ffi::CStr, new: &std::ffi::CStr| {
        // SAFETY: a capsule of that name holds such a structure; with the new name nobody else gives it back.
        unsafe {
            (ffi::PyCapsule_IsValid(capsule.as_ptr(), old.as_ptr()) != 0).then(|| {
                let at = ffi::PyCapsule_GetPointer(capsule.as_ptr(), old.as_ptr());
                ffi::PyCapsule_SetName(capsule.as_ptr(), new.as_ptr());
                at
            })
        }
    };
    let mut tensor = if let Some(at) = taken(c"dltensor_versioned", c"used_dltensor_versioned") {
        let at = at.cast::<DlVersioned>();
        let owner = Owner::Versioned(at);
        // SAFETY: the owner keeps it.
        unsafe {
            if (*at).major != 1 {
                let text = format!("argument `{name}` comes with DLPack {}, which is not known", (*at).major);
                return Err(PyValueError::new_err(text));
            }
            let mut tensor = of_dl(&(*at).tensor, name, Some(owner))?;
            tensor.read_only = (*at).flags & READ_ONLY != 0;
            tensor
        }
    } else if let Some(at) = taken(c"dltensor", c"used_dltensor") {
        let at = at.cast::<DlManaged>();
        // SAFETY: as above.
        unsafe { of_dl(&(*at).tensor, name, Some(Owner::Managed(at))) }?
    } else {
        return Err(PyTypeError::new_err(format!("`__dlpack__` of argument `{name}` gives no tensor")));
    };
    // Arrays of JAX are values: the compiler shares and reuses their memory.
    tensor.read_only |= module.starts_with("jax");
    if written && tensor.read_only && module.starts_with("jax") {
        return Err(PyValueError::new_err(format!(
            "argument `{name}` is an array of JAX, which never changes; `tk.jax.call` returns what a kernel writes"
        )));
    }
    if tensor.at != At::Host {
        tensor.queue = current_stream(object, &module)?.map_or(Queue::Default, Queue::Known);
    }
    Ok(tensor)
}

/// The module of the type of an object.
fn module_of(object: &Bound<'_, PyAny>) -> String {
    object.get_type().getattr("__module__").and_then(|m| m.extract::<String>()).unwrap_or_default()
}

/// The stream into which the library of a tensor puts its work; the default stream if it does not say.
fn current_stream(object: &Bound<'_, PyAny>, module: &str) -> PyResult<Option<usize>> {
    let py = object.py();
    let raw: usize = if module.starts_with("cupy") {
        py.import("cupy")?.getattr("cuda")?.call_method0("get_current_stream")?.getattr("ptr")?.extract()?
    } else if module.starts_with("torch") {
        let device = object.getattr("device")?;
        let cuda = py.import("torch")?.getattr("cuda")?;
        cuda.call_method1("current_stream", (device,))?.getattr("cuda_stream")?.extract()?
    } else {
        return Ok(None);
    };
    Ok(Some(raw))
}

fn numpy(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Tensor> {
    let py = object.py();
    let numpy_dtype = object.getattr(pyo3::intern!(py, "dtype"))?;
    let spelled = numpy_dtype.getattr("name")?.extract::<String>()?;
    let is_native = numpy_dtype.getattr("isnative")?.is_truthy()?;
    let dtype = dtype_named(&spelled).filter(|_| is_native).ok_or_else(|| {
        let order = if is_native { "" } else { " of the other byte order" };
        PyTypeError::new_err(format!(
            "argument `{name}` has elements of type {spelled}{order}, which the language does not have"
        ))
    })?;
    let interface = object.getattr(pyo3::intern!(py, "__array_interface__"))?.cast_into::<PyDict>()?;
    let item = |key: &str| {
        interface
            .get_item(key)?
            .ok_or_else(|| PyValueError::new_err(format!("argument `{name}` has no `{key}`")))
    };
    let (address, read_only): (u64, bool) = item("data")?.extract()?;
    let shape: Vec<i64> = item("shape")?.extract()?;
    let bytes = dtype.bytes().max(1) as i64;
    let strides = match interface.get_item("strides")?.filter(|s| !s.is_none()) {
        None => contiguous(&shape).into(),
        Some(strides) => {
            let strides: Vec<i64> = strides.extract()?;
            if strides.iter().zip(&shape).any(|(s, d)| *d > 1 && s % bytes != 0) {
                let text = format!("argument `{name}` has strides that are no multiple of its elements");
                return Err(PyValueError::new_err(text));
            }
            strides.iter().map(|s| s / bytes).collect()
        }
    };
    let shape = shape.into_iter().collect();
    Ok(Tensor {
        address,
        at: At::Host,
        dtype,
        shape,
        strides,
        read_only,
        queue: Queue::Default,
        _owner: None,
    })
}
