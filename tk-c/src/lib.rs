//! The functions of `include/tklang.h`, which documents them.
//!
//! Guarantees that no panic leaves the library: what goes wrong is a status and a sentence. Nothing is printed, but by a panic,
//! which is a bug.

mod argument;
mod device;

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use argument::{Argument, Choice, Strides};
use tk_bundle::{Bundle, ErrorKind};
use tk_runtime::gpu::{Api, Arg, CudaError, Device, Kernels, LaunchError, Placed, Stream};

/// `tk_status`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Status {
    /// `TK_OK`
    Ok = 0,
    /// `TK_NO_DRIVER`
    NoDriver = 1,
    /// `TK_NO_TARGET`
    NoTarget = 3,
    /// `TK_NO_VARIANT`
    NoVariant = 4,
    /// `TK_ARGUMENT`
    Argument = 5,
    /// `TK_REQUIREMENT`
    Requirement = 6,
    /// `TK_GRID`
    Grid = 7,
    /// `TK_FAILED`
    Failed = 8,
    /// `TK_BUNDLE`
    Bundle = 9,
}

/// A status that is not `TK_OK`, and the sentence for it.
struct Failure(Status, String);

impl From<tk_bundle::Error> for Failure {
    fn from(error: tk_bundle::Error) -> Failure {
        let status = match error.kind {
            ErrorKind::Bundle => Status::Bundle,
            ErrorKind::Argument => Status::Argument,
            ErrorKind::Target => Status::NoTarget,
            ErrorKind::Variant => Status::NoVariant,
            ErrorKind::Requirement => Status::Requirement,
            ErrorKind::Grid => Status::Grid,
            ErrorKind::Kernel => Status::Failed,
        };
        Failure(status, error.to_string())
    }
}

impl From<CudaError> for Failure {
    fn from(error: CudaError) -> Failure {
        Failure(Status::Failed, error.to_string())
    }
}

impl From<LaunchError> for Failure {
    fn from(error: LaunchError) -> Failure {
        match error {
            LaunchError::Shipped(error) => error.into(),
            LaunchError::Device(error) => error.into(),
            LaunchError::Refused(_) => Failure(Status::Argument, error.to_string()),
        }
    }
}

/// `tk_bundle`
pub struct Opened {
    kernels: Kernels,
    names: Vec<CString>,
    /// The stream of launches on the CPU.
    stream: Option<Stream>,
}

/// Bytes of a sentence, with the zero byte at its end; a longer one is cut.
const SENTENCE: usize = 2048;

thread_local! {
    // It never moves, so that what a caller holds is never freed: `printf("%d %s", tk_bundle_launch(..), tk_bundle_error())`.
    static ERROR: RefCell<[u8; SENTENCE]> = const { RefCell::new([0; SENTENCE]) };
    static PRINTED: RefCell<CString> = RefCell::default();
}

/// A text for C, which ends at its first zero byte.
fn text(from: &str) -> CString {
    CString::new(from.split('\0').next().unwrap_or_default()).unwrap_or_default()
}

/// Runs the body of a function that returns a status.
fn guarded(body: impl FnOnce() -> Result<(), Failure>) -> Status {
    let done = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        Err(Failure(Status::Failed, "internal error of libtklang; please report it".into()))
    });
    let Err(Failure(status, sentence)) = done else { return Status::Ok };
    let end = (0..SENTENCE).rev().find(|n| sentence.is_char_boundary(*n)).unwrap_or(0);
    let bytes = sentence.bytes().take(end).filter(|b| *b != 0).chain([0]);
    ERROR.with_borrow_mut(|slot| slot.iter_mut().zip(bytes).for_each(|(to, from)| *to = from));
    status
}

/// A string that a caller gives; `what` names it.
///
/// # Safety
/// It is null or ends with a zero byte.
unsafe fn string<'a>(from: *const c_char, what: &str) -> Result<&'a str, Failure> {
    if from.is_null() {
        return Err(Failure(Status::Argument, format!("{what} is NULL")));
    }
    // SAFETY: it is not null; the caller promises the rest.
    let bytes = unsafe { CStr::from_ptr(from) };
    bytes.to_str().map_err(|_| Failure(Status::Argument, format!("{what} is not UTF-8")))
}

/// An array that a caller gives; `what` names it.
///
/// # Safety
/// It has that many elements, or is null.
unsafe fn array<'a, T>(from: *const T, count: usize, what: &str) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    if from.is_null() {
        return Err(Failure(Status::Argument, format!("the address of the {what} is NULL")));
    }
    if count > isize::MAX as usize / size_of::<T>().max(1) {
        return Err(Failure(Status::Argument, format!("there cannot be {count} {what}")));
    }
    // SAFETY: it is not null, and memory may have so many; the caller promises the rest.
    Ok(unsafe { std::slice::from_raw_parts(from, count) })
}

/// Puts kernels on a device where the caller wants them; NULL if that fails, so that nobody uses or frees what is not
/// there.
///
/// # Safety
/// The device is a text that ends with a zero byte, and `to` can be written; each may be null.
unsafe fn open(
    to: *mut *mut Opened,
    device: *const c_char,
    bundle: impl FnOnce() -> Result<Bundle, Failure>,
) -> Status {
    guarded(|| {
        if to.is_null() {
            return Err(Failure(Status::Argument, "the place for the bundle is NULL".into()));
        }
        // SAFETY: it is not null; the caller promises the rest.
        unsafe { *to = std::ptr::null_mut() };
        let bundle = bundle()?;
        // SAFETY: the caller promises it.
        let (api, device) = device::open(unsafe { string(device, "the device") }?)?;
        let names = bundle.manifest().kernels.iter().map(|k| text(&k.name)).collect();
        let stream = if api == Api::Cpu { Some(device.stream()?) } else { None };
        let opened = Opened { kernels: Kernels::new(device, Arc::new(bundle)), names, stream };
        // SAFETY: as above.
        unsafe { *to = Box::into_raw(Box::new(opened)) };
        Ok(())
    })
}

/// # Safety
/// Texts end with a zero byte, and `bundle` can be written; each may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_bundle_open(
    path: *const c_char,
    device: *const c_char,
    bundle: *mut *mut Opened,
) -> Status {
    // SAFETY: the caller promises it.
    unsafe { open(bundle, device, || Ok(Bundle::open(string(path, "the path")?.as_ref())?)) }
}

/// # Safety
/// As [`tk_bundle_open`]; `bytes` are that many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_bundle_read(
    bytes: *const c_void,
    count: usize,
    device: *const c_char,
    bundle: *mut *mut Opened,
) -> Status {
    let read = || {
        // SAFETY: the caller promises it.
        let bytes = unsafe { array(bytes.cast::<u8>(), count, "bytes") }?;
        Ok(Bundle::from_vec(bytes.to_vec())?)
    };
    // SAFETY: the caller promises it.
    unsafe { open(bundle, device, read) }
}

/// # Safety
/// The bundle is null, or was opened here and not closed, and no other call uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_bundle_close(bundle: *mut Opened) {
    if !bundle.is_null() {
        // SAFETY: it is of `Box::into_raw`, as the caller promises.
        let opened = unsafe { Box::from_raw(bundle) };
        // What is freed asks the driver, whose errors nobody can be told any more.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(opened)));
    }
}

/// # Safety
/// The bundle is null, or was opened here and not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_bundle_kernel(bundle: *const Opened, number: usize) -> *const c_char {
    // SAFETY: the caller promises it.
    let name = unsafe { bundle.as_ref() }.and_then(|b| b.names.get(number));
    name.map_or(std::ptr::null(), |n| n.as_ptr())
}

/// # Safety
/// The bundle was opened here and not closed; texts end with a zero byte; arrays have that many elements, the shape and the
/// strides of a tensor as many as its rank; tensors lie in memory of the device, which on the CPU can be read, and written
/// where the kernel writes; the stream belongs to the primary context of the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_bundle_launch(
    bundle: *mut Opened,
    stream: *mut c_void,
    kernel: *const c_char,
    arguments: *const Argument,
    argument_count: usize,
    choices: *const Choice,
    choice_count: usize,
) -> Status {
    guarded(|| {
        // SAFETY: the caller promises it.
        let (bundle, kernel, arguments, choices) = unsafe {
            let bundle =
                bundle.as_ref().ok_or_else(|| Failure(Status::Argument, "the bundle is NULL".to_string()))?;
            (
                bundle,
                string(kernel, "the name of the kernel")?,
                array(arguments, argument_count, "arguments")?,
                array(choices, choice_count, "compile-time parameters")?,
            )
        };
        // SAFETY: the caller promises it.
        unsafe { bundle.launch(stream, kernel, arguments, choices) }
    })
}

impl Opened {
    /// # Safety
    /// As [`tk_bundle_launch`].
    unsafe fn launch(
        &self,
        stream: *mut c_void,
        kernel: &str,
        arguments: &[Argument],
        choices: &[Choice],
    ) -> Result<(), Failure> {
        let known = self.kernels.bundle().manifest().kernels.iter().find(|k| k.name == kernel);
        let params = known.map(|k| k.params.as_slice()).unwrap_or_default();
        let name = |i: usize| match params.get(i) {
            Some(p) => format!("`{}` of kernel `{kernel}`", p.name),
            None => format!("argument {} of kernel `{kernel}`", i + 1),
        };
        let mut strides = Strides::default();
        // SAFETY: the caller promises it.
        let values = unsafe { argument::values(arguments, &mut strides, name) }?;
        let mut named = Vec::with_capacity(choices.len());
        for choice in choices {
            // SAFETY: the caller promises it.
            named.push(unsafe {
                (
                    string(choice.name, "the name of a compile-time parameter")?,
                    string(choice.value, "a compile-time argument")?,
                )
            });
        }
        let device: &Device = self.kernels.device();
        let _entered = device.enter()?;
        let Some(own) = &self.stream else {
            // SAFETY: the caller promises it.
            let stream = unsafe { Stream::foreign(device, stream) };
            let args: Vec<Arg<'_>> = values.iter().map(|v| v.arg(None)).collect();
            return Ok(self.kernels.launch(&stream, kernel, &args, &named)?);
        };
        // SAFETY: the caller promises it.
        let placed = unsafe { Placed::new(values.iter().filter_map(argument::Value::elements)) }?;
        let args: Vec<Arg<'_>> = values.iter().map(|v| v.arg(Some(&placed))).collect();
        Ok(self.kernels.launch(own, kernel, &args, &named)?)
    }
}

/// # Safety
/// The bundle is null, or was opened here and not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_bundle_printed(bundle: *mut Opened) -> *const c_char {
    // SAFETY: the caller promises it.
    let bundle = unsafe { bundle.as_ref() };
    let printed = catch_unwind(AssertUnwindSafe(|| bundle.map(|b| b.kernels.printed()).unwrap_or_default()));
    PRINTED.with(|slot| {
        slot.replace(text(&printed.unwrap_or_default()));
        slot.borrow().as_ptr()
    })
}

/// The sentence for the last status of this thread.
#[unsafe(no_mangle)]
pub extern "C" fn tk_bundle_error() -> *const c_char {
    ERROR.with(|slot| slot.as_ptr().cast())
}
