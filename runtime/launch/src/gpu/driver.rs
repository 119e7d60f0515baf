//! Owns the entry points of NVIDIA's driver: [`Driver`], found once in `libcuda`.
//!
//! cudarc's own functions end the process where the library or one of its symbols is missing, and a code that they do
//! not know would be no valid value of their enum. So the library is asked for here, symbol by symbol, and every
//! result is a plain number, 0 for success. Guarantees that nothing of a missing or strange driver is more than an error.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

use cudarc::driver::sys::{
    self, CUcontext, CUdevice, CUdevice_attribute, CUdeviceptr, CUevent, CUfunction, CUfunction_attribute,
    CUgraph, CUgraphExec, CUmodule, CUstream,
};

use super::error::CudaError;

/// One row for each entry point: the name here, the symbol, the types of its parameters.
macro_rules! entry_points {
    ($($name:ident = $symbol:literal ($($ty:ty),*);)*) => {
        /// The entry points of the driver. Each gives 0 or the number of an error.
        pub(crate) struct Driver { $(pub $name: unsafe extern "C" fn($($ty),*) -> u32,)* }

        impl Driver {
            /// Finds all entry points. The error is the symbol that is missing.
            fn find() -> Result<Driver, &'static str> {
                // SAFETY: the caller has seen that the library can be loaded; its initialisers run as in every program
                // that links it.
                let library = unsafe { sys::culib() };
                Ok(Driver { $($name: {
                    // SAFETY: the types are those of `cuda.h` for this symbol, which NVIDIA keeps stable.
                    let found = unsafe { library.get::<unsafe extern "C" fn($($ty),*) -> u32>($symbol.as_bytes()) };
                    *found.map_err(|_| $symbol)?
                },)* })
            }
        }
    };
}

entry_points! {
    init = "cuInit" (c_uint);
    driver_version = "cuDriverGetVersion" (*mut c_int);
    error_name = "cuGetErrorName" (u32, *mut *const c_char);
    error_string = "cuGetErrorString" (u32, *mut *const c_char);
    device_count = "cuDeviceGetCount" (*mut c_int);
    device_get = "cuDeviceGet" (*mut CUdevice, c_int);
    device_name = "cuDeviceGetName" (*mut c_char, c_int, CUdevice);
    device_attribute = "cuDeviceGetAttribute" (*mut c_int, CUdevice_attribute, CUdevice);
    primary_retain = "cuDevicePrimaryCtxRetain" (*mut CUcontext, CUdevice);
    primary_release = "cuDevicePrimaryCtxRelease_v2" (CUdevice);
    primary_reset = "cuDevicePrimaryCtxReset_v2" (CUdevice);
    set_current = "cuCtxSetCurrent" (CUcontext);
    memory_info = "cuMemGetInfo_v2" (*mut usize, *mut usize);
    alloc = "cuMemAlloc_v2" (*mut CUdeviceptr, usize);
    free = "cuMemFree_v2" (CUdeviceptr);
    alloc_async = "cuMemAllocAsync" (*mut CUdeviceptr, usize, CUstream);
    free_async = "cuMemFreeAsync" (CUdeviceptr, CUstream);
    alloc_host = "cuMemHostAlloc" (*mut *mut c_void, usize, c_uint);
    free_host = "cuMemFreeHost" (*mut c_void);
    host_address = "cuMemHostGetDevicePointer_v2" (*mut CUdeviceptr, *mut c_void, c_uint);
    to_device = "cuMemcpyHtoDAsync_v2" (CUdeviceptr, *const c_void, usize, CUstream);
    to_host = "cuMemcpyDtoHAsync_v2" (*mut c_void, CUdeviceptr, usize, CUstream);
    fill = "cuMemsetD8Async" (CUdeviceptr, u8, usize, CUstream);
    stream_create = "cuStreamCreate" (*mut CUstream, c_uint);
    stream_destroy = "cuStreamDestroy_v2" (CUstream);
    stream_synchronize = "cuStreamSynchronize" (CUstream);
    stream_query = "cuStreamQuery" (CUstream);
    stream_wait = "cuStreamWaitEvent" (CUstream, CUevent, c_uint);
    capture_begin = "cuStreamBeginCapture_v2" (CUstream, c_uint);
    capture_end = "cuStreamEndCapture" (CUstream, *mut CUgraph);
    graph_instantiate = "cuGraphInstantiateWithFlags" (*mut CUgraphExec, CUgraph, u64);
    graph_launch = "cuGraphLaunch" (CUgraphExec, CUstream);
    graph_exec_destroy = "cuGraphExecDestroy" (CUgraphExec);
    graph_destroy = "cuGraphDestroy" (CUgraph);
    event_create = "cuEventCreate" (*mut CUevent, c_uint);
    event_destroy = "cuEventDestroy_v2" (CUevent);
    event_record = "cuEventRecord" (CUevent, CUstream);
    event_synchronize = "cuEventSynchronize" (CUevent);
    event_elapsed = "cuEventElapsedTime" (*mut f32, CUevent, CUevent);
    module_load = "cuModuleLoadData" (*mut CUmodule, *const c_void);
    module_unload = "cuModuleUnload" (CUmodule);
    module_function = "cuModuleGetFunction" (*mut CUfunction, CUmodule, *const c_char);
    set_function_attribute = "cuFuncSetAttribute" (CUfunction, CUfunction_attribute, c_int);
    occupancy = "cuOccupancyMaxActiveBlocksPerMultiprocessor" (*mut c_int, CUfunction, c_int, usize);
    launch = "cuLaunchKernel" (
        CUfunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, CUstream, *mut *mut c_void, *mut *mut c_void
    );
    launch_cooperative = "cuLaunchCooperativeKernel" (
        CUfunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, CUstream, *mut *mut c_void
    );
}

impl Driver {
    /// The driver of this machine, initialised.
    pub(crate) fn get() -> Result<&'static Driver, CudaError> {
        static DRIVER: OnceLock<Result<Driver, CudaError>> = OnceLock::new();
        DRIVER.get_or_init(Driver::load).as_ref().map_err(Clone::clone)
    }

    fn load() -> Result<Driver, CudaError> {
        // SAFETY: loading the driver's library runs its initialisers, nothing else.
        if !unsafe { sys::is_culib_present() } {
            return Err(CudaError::no_driver());
        }
        let driver = Driver::find().map_err(CudaError::incomplete)?;
        // SAFETY: the flags must be 0.
        let code = unsafe { (driver.init)(0) };
        driver.check(code, "the NVIDIA driver does not start")?;
        Ok(driver)
    }

    /// The error of a call; `what` says what could not be done.
    pub(crate) fn check(&self, code: u32, what: &str) -> Result<(), CudaError> {
        if code == 0 { Ok(()) } else { Err(CudaError::of(self, code, what)) }
    }

    /// The name of an error, as `cuda.h` has it, and what the driver says of it.
    pub(crate) fn describe(&self, code: u32) -> (String, String) {
        let text = |f: unsafe extern "C" fn(u32, *mut *const c_char) -> u32| {
            let mut out: *const c_char = std::ptr::null();
            // SAFETY: the driver stores the address of a static text, or null for a number that it does not know.
            let code = unsafe { f(code, &raw mut out) };
            // SAFETY: as above, and such a text ends with a zero.
            (code == 0 && !out.is_null())
                .then(|| unsafe { CStr::from_ptr(out) }.to_string_lossy().into_owned())
        };
        let name = text(self.error_name).unwrap_or_else(|| format!("CUDA error {code}"));
        (name, text(self.error_string).unwrap_or_else(|| "the driver does not know this error".to_string()))
    }
}
