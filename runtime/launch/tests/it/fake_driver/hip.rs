//! The fake driver as AMD's runtime: the same machine with the names and numbers of HIP.

use super::*;

/// Entry points that differ in their names alone.
macro_rules! same {
    ($($hip:ident = $cuda:ident ($($arg:ident: $ty:ty),*);)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $hip($($arg: $ty),*) -> u32 {
            unsafe { $cuda($($arg),*) }
        }
    )*};
}

same! {
    hipInit = cuInit(a: u32);
    hipDrvGetErrorString = cuGetErrorString(a: u32, b: *mut *const c_char);
    hipGetDeviceCount = cuDeviceGetCount(a: *mut i32);
    hipDeviceGet = cuDeviceGet(a: *mut i32, b: i32);
    hipDeviceGetName = cuDeviceGetName(a: *mut c_char, b: i32, c: i32);
    hipDevicePrimaryCtxRetain = cuDevicePrimaryCtxRetain(a: *mut *mut c_void, b: i32);
    hipDevicePrimaryCtxRelease = cuDevicePrimaryCtxRelease_v2(a: i32);
    hipDevicePrimaryCtxReset = cuDevicePrimaryCtxReset_v2(a: i32);
    hipCtxSetCurrent = cuCtxSetCurrent(a: *mut c_void);
    hipCtxGetCurrent = cuCtxGetCurrent(a: *mut *mut c_void);
    hipMemGetInfo = cuMemGetInfo_v2(a: *mut usize, b: *mut usize);
    hipMalloc = cuMemAlloc_v2(a: *mut u64, b: usize);
    hipFree = cuMemFree_v2(a: u64);
    hipMallocAsync = cuMemAllocAsync(a: *mut u64, b: usize, c: *mut c_void);
    hipFreeAsync = cuMemFreeAsync(a: u64, b: *mut c_void);
    hipHostMalloc = cuMemHostAlloc(a: *mut *mut c_void, b: usize, c: u32);
    hipHostFree = cuMemFreeHost(a: *mut c_void);
    hipHostGetDevicePointer = cuMemHostGetDevicePointer_v2(a: *mut u64, b: *mut c_void, c: u32);
    hipMemcpyHtoDAsync = cuMemcpyHtoDAsync_v2(a: u64, b: *const c_void, c: usize, d: *mut c_void);
    hipMemcpyDtoHAsync = cuMemcpyDtoHAsync_v2(a: *mut c_void, b: u64, c: usize, d: *mut c_void);
    hipMemsetD8Async = cuMemsetD8Async(a: u64, b: u8, c: usize, d: *mut c_void);
    hipStreamCreateWithFlags = cuStreamCreate(a: *mut *mut c_void, b: u32);
    hipStreamDestroy = cuStreamDestroy_v2(a: *mut c_void);
    hipStreamSynchronize = cuStreamSynchronize(a: *mut c_void);
    hipStreamQuery = cuStreamQuery(a: *mut c_void);
    hipStreamWaitEvent = cuStreamWaitEvent(a: *mut c_void, b: *mut c_void, c: u32);
    hipStreamBeginCapture = cuStreamBeginCapture_v2(a: *mut c_void, b: u32);
    hipStreamEndCapture = cuStreamEndCapture(a: *mut c_void, b: *mut *mut c_void);
    hipGraphInstantiateWithFlags = cuGraphInstantiateWithFlags(a: *mut *mut c_void, b: *mut c_void, c: u64);
    hipGraphLaunch = cuGraphLaunch(a: *mut c_void, b: *mut c_void);
    hipGraphExecDestroy = cuGraphExecDestroy(a: *mut c_void);
    hipGraphDestroy = cuGraphDestroy(a: *mut c_void);
    hipEventCreateWithFlags = cuEventCreate(a: *mut *mut c_void, b: u32);
    hipEventDestroy = cuEventDestroy_v2(a: *mut c_void);
    hipEventRecord = cuEventRecord(a: *mut c_void, b: *mut c_void);
    hipEventSynchronize = cuEventSynchronize(a: *mut c_void);
    hipEventElapsedTime = cuEventElapsedTime(a: *mut f32, b: *mut c_void, c: *mut c_void);
    hipModuleLoadData = cuModuleLoadData(a: *mut *mut c_void, b: *const c_void);
    hipModuleUnload = cuModuleUnload(a: *mut c_void);
    hipModuleGetFunction = cuModuleGetFunction(a: *mut *mut c_void, b: *mut c_void, c: *const c_char);
    hipModuleOccupancyMaxActiveBlocksPerMultiprocessor =
        cuOccupancyMaxActiveBlocksPerMultiprocessor(a: *mut i32, b: *mut c_void, c: i32, d: usize);
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipRuntimeGetVersion(out: *mut i32) -> u32 {
    unsafe { *out = if machine() == "old" { 50_222_804 } else { 60_140_093 } };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipDrvGetErrorName(code: u32, out: *mut *const c_char) -> u32 {
    let name = match code {
        2 => c"hipErrorOutOfMemory",
        100 => c"hipErrorNoDevice",
        209 => c"hipErrorNoBinaryForGpu",
        500 => c"hipErrorNotFound",
        700 => c"hipErrorIllegalAddress",
        900 => c"hipErrorStreamCaptureUnsupported",
        _ => return INVALID_VALUE,
    };
    unsafe { *out = name.as_ptr() };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipDeviceGetAttribute(out: *mut i32, attribute: i32, _: i32) -> u32 {
    // The numbers are those of `hipDeviceAttribute_t`. The GPU is plugged in at 0000:c1:00.
    let value = match attribute {
        56 => 1024,
        63 => 104,
        67 => 0xc1,
        68 | 69 => 0,
        74 => 65_536,
        _ => return INVALID_VALUE,
    };
    unsafe { *out = value };
    0
}

/// As of ROCm 6: the architecture is a text after many numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGetDevicePropertiesR0600(out: *mut u8, _: i32) -> u32 {
    if std::env::var("FAKE_CUDA").as_deref() != Ok("contained") {
        return INVALID_VALUE;
    }
    let write = |at: usize, text: &[u8]| unsafe { text.as_ptr().copy_to(out.add(at), text.len()) };
    write(0, b"gfx paper\0");
    write(1160, b"gfx1100\0");
    0
}

/// Functions of code objects have no attributes, and their shared memory is not up to a launch.
#[unsafe(no_mangle)]
pub extern "C" fn hipFuncSetAttribute(_: *mut c_void, _: i32, _: i32) -> u32 {
    INVALID_VALUE
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipModuleLaunchKernel(
    function: *mut c_void,
    x: u32,
    y: u32,
    z: u32,
    threads: u32,
    a: u32,
    b: u32,
    shared: u32,
    stream: *mut c_void,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> u32 {
    if shared != 0 {
        return INVALID_VALUE;
    }
    unsafe { cuLaunchKernel(function, x, y, z, threads, a, b, shared, stream, params, extra) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipModuleLaunchCooperativeKernel(
    function: *mut c_void,
    x: u32,
    y: u32,
    z: u32,
    threads: u32,
    a: u32,
    b: u32,
    shared: u32,
    stream: *mut c_void,
    params: *mut *mut c_void,
) -> u32 {
    if shared != 0 {
        return INVALID_VALUE;
    }
    unsafe { cuLaunchCooperativeKernel(function, x, y, z, threads, a, b, shared, stream, params) }
}
