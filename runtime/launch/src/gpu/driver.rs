//! The entry points of drivers: [`Driver`], found once in `libcuda` and once in `libamdhip64`; those of the CPU are in
//! [`super::cpu`].
//!
//! Both libraries have the same calls: a row has the symbols of both, and the types of `cuda.h`, which stand for numbers and addresses
//! of the same size in `hip_runtime_api.h`. The feature `hip-sys` compares the rows with the types of that crate.
//!
//! cudarc's own functions end the process where the library or one of its symbols is missing, and a code that they do
//! not know would be no valid value of their enum. So the library is asked for here, symbol by symbol, and every
//! result is a plain number, 0 for success. Guarantees that nothing of a missing or strange driver is more than an error.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

use cudarc::driver::sys::{
    CUcontext, CUdevice, CUdeviceptr, CUevent, CUfunction, CUfunction_attribute, CUgraph, CUgraphExec,
    CUmodule, CUstream,
};
use libloading::Library;

use super::error::CudaError;
use super::kept::Streams;
use super::maps::Encode;
use super::vendor::{Api, Vendor};

/// Any type, in the place of a known one.
#[cfg(feature = "hip-sys")]
macro_rules! any {
    ($ty:ty) => {
        _
    };
}

/// One row for each entry point: the name here, the symbols of CUDA and HIP, the types of its parameters.
macro_rules! entry_points {
    ($($name:ident = $cuda:ident $hip:ident ($($ty:ty),*);)*) => {
        /// The entry points of a driver. Each gives 0 or the number of an error.
        pub(crate) struct Driver {
            /// In what this driver differs from others.
            pub vendor: &'static Vendor,
            /// Encodes a tensor map, if the driver can.
            pub encode_map: Option<Encode>,
            /// Tells streams apart, if the driver can.
            pub streams: Option<Streams>,
            $(pub $name: unsafe extern "C" fn($($ty),*) -> u32,)*
        }

        impl Driver {
            /// Finds all entry points. The error is the symbol that is missing.
            fn find(vendor: &'static Vendor, library: &'static Library) -> Result<Driver, &'static str> {
                let encode_map = vendor.encode_map.and_then(|symbol| {
                    // SAFETY: the type is that of `cuda.h` for this symbol.
                    unsafe { library.get::<Encode>(symbol.as_bytes()) }.ok().map(|f| *f)
                });
                let streams = vendor.streams.and_then(|[number, recording, exchange_mode]| {
                    // SAFETY: the types are those of `cuda.h` for these symbols.
                    unsafe {
                        Some(Streams {
                            number: *library.get(number.as_bytes()).ok()?,
                            recording: *library.get(recording.as_bytes()).ok()?,
                            exchange_mode: *library.get(exchange_mode.as_bytes()).ok()?,
                        })
                    }
                });
                Ok(Driver { vendor, encode_map, streams, $($name: {
                    let symbol = match vendor.api {
                        Api::Cuda => stringify!($cuda),
                        Api::Hip => stringify!($hip),
                        Api::Cpu => return Err("a library"),
                    };
                    // SAFETY: the types are those of the vendor's header for this symbol, or as large, which both vendors
                    // keep stable.
                    let found =
                        unsafe { library.get::<unsafe extern "C" fn($($ty),*) -> u32>(symbol.as_bytes()) };
                    *found.map_err(|_| symbol)?
                },)* })
            }

            /// The driver of the CPU, whose entry points are functions of this program.
            fn of_cpu() -> Driver {
                Driver { vendor: Api::Cpu.vendor(), encode_map: None, streams: None, $($name: super::cpu::entry::$name,)* }
            }
        }

        #[cfg(feature = "hip-sys")]
        const _: () = {
            use super::hip::signature::{Signature, known, of, same};
            $(assert!(
                same(
                    of(&(known::$hip as unsafe extern "C" fn($(any!($ty)),*) -> _)),
                    <unsafe extern "C" fn($($ty),*) -> u32 as Signature>::SIZES,
                ),
                concat!("hip-sys has another type for ", stringify!($hip))
            );)*
        };
    };
}

entry_points! {
    init = cuInit hipInit (c_uint);
    driver_version = cuDriverGetVersion hipRuntimeGetVersion (*mut c_int);
    error_name = cuGetErrorName hipDrvGetErrorName (u32, *mut *const c_char);
    error_string = cuGetErrorString hipDrvGetErrorString (u32, *mut *const c_char);
    device_count = cuDeviceGetCount hipGetDeviceCount (*mut c_int);
    device_get = cuDeviceGet hipDeviceGet (*mut CUdevice, c_int);
    device_name = cuDeviceGetName hipDeviceGetName (*mut c_char, c_int, CUdevice);
    device_attribute = cuDeviceGetAttribute hipDeviceGetAttribute (*mut c_int, c_int, CUdevice);
    primary_retain = cuDevicePrimaryCtxRetain hipDevicePrimaryCtxRetain (*mut CUcontext, CUdevice);
    primary_release = cuDevicePrimaryCtxRelease_v2 hipDevicePrimaryCtxRelease (CUdevice);
    primary_reset = cuDevicePrimaryCtxReset_v2 hipDevicePrimaryCtxReset (CUdevice);
    set_current = cuCtxSetCurrent hipCtxSetCurrent (CUcontext);
    get_current = cuCtxGetCurrent hipCtxGetCurrent (*mut CUcontext);
    memory_info = cuMemGetInfo_v2 hipMemGetInfo (*mut usize, *mut usize);
    alloc = cuMemAlloc_v2 hipMalloc (*mut CUdeviceptr, usize);
    free = cuMemFree_v2 hipFree (CUdeviceptr);
    alloc_async = cuMemAllocAsync hipMallocAsync (*mut CUdeviceptr, usize, CUstream);
    free_async = cuMemFreeAsync hipFreeAsync (CUdeviceptr, CUstream);
    alloc_host = cuMemHostAlloc hipHostMalloc (*mut *mut c_void, usize, c_uint);
    free_host = cuMemFreeHost hipHostFree (*mut c_void);
    host_address = cuMemHostGetDevicePointer_v2 hipHostGetDevicePointer (*mut CUdeviceptr, *mut c_void, c_uint);
    to_device = cuMemcpyHtoDAsync_v2 hipMemcpyHtoDAsync (CUdeviceptr, *const c_void, usize, CUstream);
    to_host = cuMemcpyDtoHAsync_v2 hipMemcpyDtoHAsync (*mut c_void, CUdeviceptr, usize, CUstream);
    fill = cuMemsetD8Async hipMemsetD8Async (CUdeviceptr, u8, usize, CUstream);
    stream_create = cuStreamCreate hipStreamCreateWithFlags (*mut CUstream, c_uint);
    stream_destroy = cuStreamDestroy_v2 hipStreamDestroy (CUstream);
    stream_synchronize = cuStreamSynchronize hipStreamSynchronize (CUstream);
    stream_query = cuStreamQuery hipStreamQuery (CUstream);
    stream_wait = cuStreamWaitEvent hipStreamWaitEvent (CUstream, CUevent, c_uint);
    capture_begin = cuStreamBeginCapture_v2 hipStreamBeginCapture (CUstream, c_uint);
    capture_end = cuStreamEndCapture hipStreamEndCapture (CUstream, *mut CUgraph);
    graph_instantiate = cuGraphInstantiateWithFlags hipGraphInstantiateWithFlags (*mut CUgraphExec, CUgraph, u64);
    graph_launch = cuGraphLaunch hipGraphLaunch (CUgraphExec, CUstream);
    graph_exec_destroy = cuGraphExecDestroy hipGraphExecDestroy (CUgraphExec);
    graph_destroy = cuGraphDestroy hipGraphDestroy (CUgraph);
    event_create = cuEventCreate hipEventCreateWithFlags (*mut CUevent, c_uint);
    event_destroy = cuEventDestroy_v2 hipEventDestroy (CUevent);
    event_record = cuEventRecord hipEventRecord (CUevent, CUstream);
    event_synchronize = cuEventSynchronize hipEventSynchronize (CUevent);
    event_elapsed = cuEventElapsedTime hipEventElapsedTime (*mut f32, CUevent, CUevent);
    module_load = cuModuleLoadData hipModuleLoadData (*mut CUmodule, *const c_void);
    module_unload = cuModuleUnload hipModuleUnload (CUmodule);
    module_function = cuModuleGetFunction hipModuleGetFunction (*mut CUfunction, CUmodule, *const c_char);
    set_function_attribute = cuFuncSetAttribute hipFuncSetAttribute (CUfunction, CUfunction_attribute, c_int);
    occupancy = cuOccupancyMaxActiveBlocksPerMultiprocessor hipModuleOccupancyMaxActiveBlocksPerMultiprocessor (
        *mut c_int, CUfunction, c_int, usize
    );
    launch = cuLaunchKernel hipModuleLaunchKernel (
        CUfunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, CUstream, *mut *mut c_void, *mut *mut c_void
    );
    launch_cooperative = cuLaunchCooperativeKernel hipModuleLaunchCooperativeKernel (
        CUfunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, CUstream, *mut *mut c_void
    );
}

impl Driver {
    /// The driver of this machine for a way to devices, initialised.
    pub(crate) fn get(api: Api) -> Result<&'static Driver, CudaError> {
        static CUDA: OnceLock<Result<Driver, CudaError>> = OnceLock::new();
        static HIP: OnceLock<Result<Driver, CudaError>> = OnceLock::new();
        static CPU: OnceLock<Driver> = OnceLock::new();
        let driver = match api {
            Api::Cuda => &CUDA,
            Api::Hip => &HIP,
            Api::Cpu => return Ok(CPU.get_or_init(Driver::of_cpu)),
        };
        driver.get_or_init(|| Driver::load(api.vendor())).as_ref().map_err(Clone::clone)
    }

    fn load(vendor: &'static Vendor) -> Result<Driver, CudaError> {
        let library = (vendor.load)().ok_or_else(|| CudaError::no_driver(vendor))?;
        let driver = Driver::find(vendor, library).map_err(|symbol| CudaError::incomplete(vendor, symbol))?;
        // SAFETY: the flags must be 0.
        let code = unsafe { (driver.init)(0) };
        driver.check(code, &format!("the {} does not start", vendor.driver))?;
        Ok(driver)
    }

    /// An attribute of a device; the number is one of the vendor's.
    pub(crate) fn attribute(&self, device: CUdevice, attribute: c_int) -> Result<u32, CudaError> {
        let mut n: c_int = 0;
        // SAFETY: the place lives.
        let code = unsafe { (self.device_attribute)(&raw mut n, attribute, device) };
        self.check(code, "cannot query the properties of the GPU")?;
        Ok(u32::try_from(n).unwrap_or(0))
    }

    /// The error of a call; `what` says what could not be done.
    pub(crate) fn check(&self, code: u32, what: &str) -> Result<(), CudaError> {
        if code == 0 { Ok(()) } else { Err(CudaError::of(self, code, what)) }
    }

    /// The name of an error, as the vendor's header has it, and what the driver says of it.
    pub(crate) fn describe(&self, code: u32) -> (String, String) {
        let text = |f: unsafe extern "C" fn(u32, *mut *const c_char) -> u32| {
            let mut out: *const c_char = std::ptr::null();
            // SAFETY: the driver stores the address of a static text, or null for a number that it does not know.
            let code = unsafe { f(code, &raw mut out) };
            // SAFETY: as above, and such a text ends with a zero.
            (code == 0 && !out.is_null())
                .then(|| unsafe { CStr::from_ptr(out) }.to_string_lossy().into_owned())
        };
        let name = text(self.error_name).unwrap_or_else(|| format!("{} error {code}", self.vendor.platform));
        (name, text(self.error_string).unwrap_or_else(|| "the driver does not know this error".to_string()))
    }
}
