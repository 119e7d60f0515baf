//! The few entry points of the driver that only a measurement needs: copies on the GPU and parts of buffers, and
//! the bare launch that others are compared with.
//!
//! May assume that a device is open and its context current in this thread, as it is after any call to the runtime.

use std::ffi::{c_char, c_uint, c_void};
use std::ptr::{from_ref, null_mut};

use cudarc::driver::sys::{self, CUfunction, CUmodule, CUstream};
use tk_runtime::gpu::{Element, Stream};

type Copy = unsafe extern "C" fn(u64, u64, usize, CUstream) -> u32;
type ToDevice = unsafe extern "C" fn(u64, *const c_void, usize) -> u32;
type ToHost = unsafe extern "C" fn(*mut c_void, u64, usize) -> u32;
type Fill = unsafe extern "C" fn(u64, u8, usize, CUstream) -> u32;
type Load = unsafe extern "C" fn(*mut CUmodule, *const c_void) -> u32;
type Find = unsafe extern "C" fn(*mut CUfunction, CUmodule, *const c_char) -> u32;
type Launch = unsafe extern "C" fn(
    CUfunction,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    CUstream,
    *mut *mut c_void,
    *mut *mut c_void,
) -> u32;

/// The address of an entry point.
fn find<F: std::marker::Copy>(name: &str) -> Result<F, String> {
    // SAFETY: a device is open, so the library is there.
    let library = unsafe { sys::culib() };
    // SAFETY: the types above are those of `cuda.h`.
    let found = unsafe { library.get::<F>(name.as_bytes()) };
    found.map(|f| *f).map_err(|_| format!("the NVIDIA driver has no `{name}`"))
}

fn done(code: u32, what: &str) -> Result<(), String> {
    if code == 0 { Ok(()) } else { Err(format!("{what} failed (CUDA error {code})")) }
}

/// Copies on the GPU and of parts of buffers.
pub struct Copies {
    copy: Copy,
    to_device: ToDevice,
    to_host: ToHost,
    fill: Fill,
}

impl Copies {
    /// Fails where the driver lacks something.
    pub fn new() -> Result<Copies, String> {
        Ok(Copies {
            copy: find("cuMemcpyDtoDAsync_v2")?,
            to_device: find("cuMemcpyHtoD_v2")?,
            to_host: find("cuMemcpyDtoH_v2")?,
            fill: find("cuMemsetD8Async")?,
        })
    }

    /// Starts to copy on the GPU. The driver refuses addresses that are in no buffer.
    pub fn copy(&self, stream: &Stream, to: u64, from: u64, bytes: usize) -> Result<(), String> {
        // SAFETY: no host memory takes part.
        done(unsafe { (self.copy)(to, from, bytes, stream.raw()) }, "a copy on the GPU")
    }

    /// Writes elements from the host, from this address on.
    pub fn to_device<T: Element>(&self, to: u64, from: &[T]) -> Result<(), String> {
        // SAFETY: the slice has that many bytes, and the call waits.
        done(unsafe { (self.to_device)(to, from.as_ptr().cast(), size_of_val(from)) }, "a copy to the GPU")
    }

    /// Bytes from this address on, once everything that was started is done.
    pub fn to_host(&self, stream: &Stream, from: u64, bytes: usize) -> Result<Vec<u8>, String> {
        stream.synchronize().map_err(|e| e.to_string())?;
        let mut out = vec![0u8; bytes];
        // SAFETY: there is room for that many bytes, and the call waits.
        done(unsafe { (self.to_host)(out.as_mut_ptr().cast(), from, bytes) }, "a copy from the GPU")?;
        Ok(out)
    }

    /// Starts to fill bytes that are no result: each is 255, so each float is no number.
    pub fn poison(&self, stream: &Stream, at: u64, bytes: usize) -> Result<(), String> {
        // SAFETY: no host memory takes part.
        done(unsafe { (self.fill)(at, 0xff, bytes, stream.raw()) }, "filling memory of the GPU")
    }
}

/// A kernel with four parameters and nothing to do, for any GPU that this project makes code for.
const NOTHING: &[u8] = b".version 7.0
.target sm_80
.address_size 64
.visible .entry nothing(.param .u64 x, .param .u64 y, .param .u64 z, .param .u32 n)
{
    ret;
}
\0";

/// A launch as short as the driver allows: everything is found and written beforehand.
pub struct Bare {
    launch: Launch,
    function: CUfunction,
    /// What `pointers` point to.
    _values: Box<[u64]>,
    pointers: Box<[*mut c_void]>,
    threads: u32,
}

impl Bare {
    /// Of a kernel with four parameters, in blocks of that many threads.
    pub fn nothing(address: u64, threads: u32) -> Result<Bare, String> {
        let (load, find_function): (Load, Find) = (find("cuModuleLoadData")?, find("cuModuleGetFunction")?);
        let (mut module, mut function) = (null_mut(), null_mut());
        // SAFETY: the place lives, and the text ends with a zero.
        done(unsafe { load(&raw mut module, NOTHING.as_ptr().cast()) }, "loading an empty kernel")?;
        // SAFETY: place and module live, and the name ends with a zero.
        let code = unsafe { find_function(&raw mut function, module, c"nothing".as_ptr()) };
        done(code, "finding an empty kernel")?;
        let values: Box<[u64]> = [address, address, address, 1].into();
        let pointers = values.iter().map(|v| from_ref(v).cast_mut().cast()).collect();
        Ok(Bare { launch: find("cuLaunchKernel")?, function, _values: values, pointers, threads })
    }

    /// Launches one block.
    #[inline]
    pub fn launch(&mut self, stream: &Stream) -> Result<(), String> {
        let params = self.pointers.as_mut_ptr();
        // SAFETY: function and stream live, and there is a pointer for each parameter.
        let code = unsafe {
            (self.launch)(self.function, 1, 1, 1, self.threads, 1, 1, 0, stream.raw(), params, null_mut())
        };
        done(code, "launching an empty kernel")
    }
}
