//! Kernels in programs of JAX: the handler of a custom call of XLA, and the calls that it may make.
//!
//! A call is registered while a program is traced: which parameter is which operand or result, and the numbers. Its
//! index is an attribute of the operation. The structures are those of XLA's `ffi/api/c_api.h` (version 0.3).

use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::{Arc, Mutex};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};
use tk_ops::DType;
use tk_runtime::contiguous;
use tk_runtime::gpu::LaunchError;

use crate::dlpack::{At, Axes, Tensor};
use crate::launch::{Call, Kernel, Value, write_printed};
use crate::lock;
use crate::number::number;

/// What a parameter of the kernel is in a call.
#[derive(Clone, Copy, Debug)]
enum Slot {
    Operand(usize),
    Result(usize),
    Number(tk_ops::Scalar),
    Absent,
}

/// A call that was traced.
struct Traced {
    kernel: Arc<Kernel>,
    slots: Vec<Slot>,
    sets: Vec<(String, String)>,
}

/// All calls of the process, by the index in their operation. Compiled programs name them, so none is removed.
static CALLS: Mutex<Vec<Arc<Traced>>> = Mutex::new(vec![]);

/// Registers a call and returns its index. `slots` has an entry for each parameter: `("operand", i)`, `("result", i)`,
/// `("number", value)` or `None`.
#[pyfunction]
pub fn jax_call(kernel: &Bound<'_, Kernel>, slots: &Bound<'_, PyList>) -> PyResult<usize> {
    let own = Arc::new(kernel.get().again());
    let mut out = vec![];
    for (param, slot) in own.signature.params.iter().zip(slots) {
        out.push(match slot.extract::<Option<(String, Bound<'_, PyAny>)>>()? {
            None => Slot::Absent,
            Some((kind, value)) => match kind.as_str() {
                "operand" => Slot::Operand(value.extract()?),
                "result" => Slot::Result(value.extract()?),
                "number" => Slot::Number(number(param, &value)?),
                other => return Err(PyValueError::new_err(format!("a parameter is no `{other}`"))),
            },
        });
    }
    let sets = own.given_sets();
    let mut calls = lock(&CALLS);
    calls.push(Arc::new(Traced { kernel: own, slots: out, sets }));
    Ok(calls.len() - 1)
}

/// The handlers for `jax.ffi.register_ffi_target`, by the platform.
#[pyfunction]
pub fn jax_handlers(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let out = PyDict::new(py);
    let all: [(&str, Handler); 3] = [("cpu", on_cpu), ("CUDA", on_cuda), ("ROCM", on_rocm)];
    for (platform, handler) in all {
        // SAFETY: a function lives as long as the process.
        let capsule = unsafe {
            PyCapsule::new_with_pointer(
                py,
                ptr::NonNull::new_unchecked(handler as *mut c_void),
                c"xla._CUSTOM_CALL_TARGET",
            )
        }?;
        out.set_item(platform, capsule)?;
    }
    Ok(out)
}

type Handler = unsafe extern "C" fn(*mut Frame) -> *mut c_void;

unsafe extern "C" fn on_cpu(frame: *mut Frame) -> *mut c_void {
    // SAFETY: XLA gives a frame that lives while the call lasts.
    unsafe { handle(frame, |_| At::Host) }
}

unsafe extern "C" fn on_cuda(frame: *mut Frame) -> *mut c_void {
    // SAFETY: as above.
    unsafe { handle(frame, At::Cuda) }
}

unsafe extern "C" fn on_rocm(frame: *mut Frame) -> *mut c_void {
    // SAFETY: as above.
    unsafe { handle(frame, At::Hip) }
}

/// `XLA_FFI_Extension_Base`
#[repr(C)]
struct Extension {
    size: usize,
    kind: c_int,
    next: *mut Extension,
}

/// `XLA_FFI_Extension_Metadata`
const METADATA: c_int = 1;

/// `XLA_FFI_Metadata_Extension`
#[repr(C)]
struct MetadataExtension {
    base: Extension,
    metadata: *mut Metadata,
}

/// `XLA_FFI_Metadata`, its first fields.
#[repr(C)]
struct Metadata {
    size: usize,
    version: Version,
    traits: u32,
}

/// `XLA_FFI_Api_Version`
#[repr(C)]
struct Version {
    size: usize,
    extension: *mut Extension,
    major: c_int,
    minor: c_int,
}

type Function = unsafe extern "C" fn(*mut c_void) -> *mut c_void;

/// `XLA_FFI_Api`
#[repr(C)]
struct Api {
    size: usize,
    extension: *mut Extension,
    version: Version,
    internal: *const c_void,
    error_create: Function,
    _error_message: *const c_void,
    error_destroy: unsafe extern "C" fn(*mut c_void),
    _handler_register: *const c_void,
    stream_get: Function,
    /// From the registration of types to the identity of a run.
    _others: [*const c_void; 12],
    /// Since version 0.1; the size tells whether it is there.
    ordinal_get: Function,
}

/// `XLA_FFI_Args`, `XLA_FFI_Rets`: the kinds, then the values.
#[repr(C)]
struct Values {
    size: usize,
    extension: *mut Extension,
    count: i64,
    kinds: *mut c_int,
    values: *mut *mut c_void,
}

/// `XLA_FFI_Attrs`
#[repr(C)]
struct Attributes {
    size: usize,
    extension: *mut Extension,
    count: i64,
    kinds: *mut c_int,
    names: *mut *mut Bytes,
    values: *mut *mut c_void,
}

/// `XLA_FFI_ByteSpan`
#[repr(C)]
struct Bytes {
    start: *const u8,
    count: usize,
}

/// `XLA_FFI_Scalar`
#[repr(C)]
struct ScalarAttribute {
    dtype: c_int,
    value: *const c_void,
}

/// `XLA_FFI_CallFrame`
#[repr(C)]
struct Frame {
    size: usize,
    extension: *mut Extension,
    api: *const Api,
    context: *mut c_void,
    stage: c_int,
    operands: Values,
    results: Values,
    attributes: Attributes,
}

/// `XLA_FFI_ExecutionStage_EXECUTE`
const EXECUTE: c_int = 3;

/// `XLA_FFI_Buffer`
#[repr(C)]
struct Buffer {
    size: usize,
    extension: *mut Extension,
    dtype: c_int,
    data: *mut c_void,
    rank: i64,
    dims: *const i64,
}

/// The arguments of calls that give one thing: the context, then its place.
#[repr(C)]
struct Get<T> {
    size: usize,
    extension: *mut Extension,
    context: *mut c_void,
    out: T,
}

/// `XLA_FFI_Error_Create_Args`
#[repr(C)]
struct ErrorCreate {
    size: usize,
    extension: *mut Extension,
    message: *const c_char,
    code: c_int,
}

/// `XLA_FFI_Error_Code_INTERNAL`
const INTERNAL: c_int = 13;

/// # Safety
/// The frame is one of XLA.
unsafe fn handle(frame: *mut Frame, at: fn(usize) -> At) -> *mut c_void {
    // SAFETY: the caller has said so; XLA gives as many values as it counts.
    unsafe {
        let frame = &*frame;
        if metadata(frame) {
            return ptr::null_mut();
        }
        if frame.stage != EXECUTE {
            return ptr::null_mut();
        }
        let done = std::panic::catch_unwind(|| execute(frame, at));
        let text = match done {
            Ok(Ok(())) => return ptr::null_mut(),
            Ok(Err(text)) => text,
            Err(_) => "the compiler failed; this is a bug in tk, please report it".to_string(),
        };
        let message = CString::new(text.replace('\0', " ")).unwrap_or_default();
        let mut args = ErrorCreate {
            size: size_of::<ErrorCreate>(),
            extension: ptr::null_mut(),
            message: message.as_ptr(),
            code: INTERNAL,
        };
        ((*frame.api).error_create)((&raw mut args).cast())
    }
}

/// Answers the question for the version of the interface: that of the XLA that asks.
unsafe fn metadata(frame: &Frame) -> bool {
    // SAFETY: as for `handle`.
    unsafe {
        if frame.extension.is_null() || (*frame.extension).kind != METADATA {
            return false;
        }
        let metadata = (*frame.extension.cast::<MetadataExtension>()).metadata;
        (*metadata).version.major = (*frame.api).version.major;
        (*metadata).version.minor = (*frame.api).version.minor;
        (*metadata).traits = 0;
        true
    }
}

unsafe fn execute(frame: &Frame, at: fn(usize) -> At) -> Result<(), String> {
    // SAFETY: as for `handle`.
    unsafe {
        let index = index(&frame.attributes).ok_or("the operation has no attribute `call`")?;
        let traced = lock(&CALLS).get(index).cloned();
        let traced = traced.ok_or("this call was traced by another process; trace it again")?;
        let is_host = at(0) == At::Host;
        let at = if is_host { At::Host } else { at(ordinal(frame)?) };
        let stream = if is_host { 0 } else { get(frame, (*frame.api).stream_get)? };
        let mut call = Call { values: Default::default(), sets: traced.sets.clone(), at, stream };
        for slot in &traced.slots {
            call.values.push(match *slot {
                Slot::Absent => Value::Absent,
                Slot::Number(s) => Value::Scalar(s),
                Slot::Operand(i) => Value::Tensor(tensor(&frame.operands, i, at)?),
                Slot::Result(i) => Value::Tensor(tensor(&frame.results, i, at)?),
            });
        }
        let (done, printed) = traced.kernel.start(&call);
        if let Some(text) = printed {
            Python::attach(|py| write_printed(py, &text)).map_err(|e| e.to_string())?;
        }
        done.map_err(|e: LaunchError| e.to_string())
    }
}

unsafe fn index(attributes: &Attributes) -> Option<usize> {
    // SAFETY: as for `handle`.
    unsafe {
        (0..usize::try_from(attributes.count).ok()?).find_map(|i| {
            let name = &**attributes.names.add(i);
            let name = std::slice::from_raw_parts(name.start, name.count);
            // `XLA_FFI_AttrType_SCALAR`
            let is_call = name == b"call" && *attributes.kinds.add(i) == 3;
            let scalar = &*(*attributes.values.add(i)).cast::<ScalarAttribute>();
            is_call.then(|| usize::try_from(scalar.value.cast::<i64>().read()).ok())?
        })
    }
}

/// Asks the execution context for a number or an address.
unsafe fn get(frame: &Frame, function: Function) -> Result<usize, String> {
    let size = size_of::<Get<usize>>();
    let mut args = Get { size, extension: ptr::null_mut(), context: frame.context, out: 0usize };
    // SAFETY: as for `handle`; the structure is the one of this function.
    unsafe {
        let error = function((&raw mut args).cast());
        if !error.is_null() {
            let mut destroy =
                Get { size: size_of::<Get<()>>(), extension: ptr::null_mut(), context: error, out: () };
            ((*frame.api).error_destroy)((&raw mut destroy).cast());
            return Err("XLA does not tell where the call runs".to_string());
        }
    }
    Ok(args.out)
}

unsafe fn ordinal(frame: &Frame) -> Result<usize, String> {
    // SAFETY: as for `handle`.
    unsafe {
        if (*frame.api).size < size_of::<Api>() {
            return Err("this XLA does not tell which GPU a call runs on; update JAX".to_string());
        }
        // The place has 32 bits.
        get(frame, (*frame.api).ordinal_get).map(|n| n & 0xffff_ffff)
    }
}

unsafe fn tensor(values: &Values, i: usize, at: At) -> Result<Tensor, String> {
    // SAFETY: as for `handle`.
    unsafe {
        if usize::try_from(values.count).is_ok_and(|count| i >= count) {
            return Err("the operation has other operands than the call".to_string());
        }
        let buffer = &*(*values.values.add(i)).cast::<Buffer>();
        let dtype = dtype(buffer.dtype).ok_or_else(|| {
            format!("an array has elements without a type in the language (XLA's {})", buffer.dtype)
        })?;
        let rank = usize::try_from(buffer.rank).unwrap_or(0);
        let shape: Axes =
            if rank == 0 { Axes::new() } else { std::slice::from_raw_parts(buffer.dims, rank).into() };
        let strides = contiguous(&shape).into();
        Ok(Tensor::new(buffer.data as u64, at, dtype, shape, strides))
    }
}

/// The element type of an `XLA_FFI_DataType`.
fn dtype(number: c_int) -> Option<DType> {
    Some(match number {
        1 => DType::Bool,
        2 => DType::I8,
        3 => DType::I16,
        4 => DType::I32,
        5 => DType::I64,
        6 => DType::U8,
        7 => DType::U16,
        8 => DType::U32,
        9 => DType::U64,
        10 => DType::F16,
        11 => DType::F32,
        12 => DType::F64,
        16 => DType::BF16,
        19 => DType::F8E5M2,
        20 => DType::F8E4M3,
        24 => DType::F8E5M2FNUZ,
        25 => DType::F8E4M3FNUZ,
        33 => DType::E8M0,
        _other => return None,
    })
}
