//! A driver for tests: `libcuda`, and with the names of `hip.rs` `libamdhip64`, with a GPU whose memory is the host's and whose
//! kernels are the functions below.
//!
//! Expects correct use, and returns an error otherwise: a call without a current context, a kernel that is not
//! loaded. `FAKE_CUDA` says what is wrong with the machine. Built by `process.rs`.
#![allow(non_snake_case, clippy::missing_safety_doc)]

mod hip;
mod streams;
mod tensor_maps;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering::SeqCst};

use streams::*;

const INVALID_VALUE: u32 = 1;
const INVALID_CONTEXT: u32 = 201;
const ILLEGAL_ADDRESS: u32 = 700;
const NOT_READY: u32 = 600;
const CAPTURE_UNSUPPORTED: u32 = 900;

/// What the context has become; 0 while it works.
static BROKEN: AtomicU32 = AtomicU32::new(0);
/// The error that the running kernel will give.
static FAILING: AtomicU32 = AtomicU32::new(0);
static RUNNING: AtomicBool = AtomicBool::new(false);
static RETAINED: AtomicI64 = AtomicI64::new(0);
static MEMORY: Mutex<BTreeMap<u64, usize>> = Mutex::new(BTreeMap::new());
static LAUNCHES: AtomicU32 = AtomicU32::new(0);
/// Launches and their arguments.
type Recorded = Vec<(Kernel, Vec<u64>)>;
/// The launches since a recording began.
static RECORDING: Mutex<Option<Recorded>> = Mutex::new(None);

thread_local! { static CURRENT: Cell<usize> = const { Cell::new(0) }; }

fn machine() -> String {
    std::env::var("FAKE_CUDA").unwrap_or_default()
}

/// What a call gives that needs a context.
fn context() -> u32 {
    if CURRENT.get() == 0 { INVALID_CONTEXT } else { BROKEN.load(SeqCst) }
}

/// The work of all streams is done.
fn finish() -> u32 {
    let error = FAILING.swap(0, SeqCst);
    if error != 0 {
        BROKEN.store(error, SeqCst);
    }
    context()
}

#[unsafe(no_mangle)]
pub extern "C" fn cuInit(_: u32) -> u32 {
    if machine() == "mismatch" { 803 } else { 0 }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDriverGetVersion(out: *mut i32) -> u32 {
    unsafe { *out = if machine() == "old" { 11040 } else { 12080 } };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorName(code: u32, out: *mut *const c_char) -> u32 {
    let name = match code {
        2 => c"CUDA_ERROR_OUT_OF_MEMORY",
        100 => c"CUDA_ERROR_NO_DEVICE",
        209 => c"CUDA_ERROR_NO_BINARY_FOR_GPU",
        222 => c"CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
        500 => c"CUDA_ERROR_NOT_FOUND",
        700 => c"CUDA_ERROR_ILLEGAL_ADDRESS",
        803 => c"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
        900 => c"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
        _ => return INVALID_VALUE,
    };
    unsafe { *out = name.as_ptr() };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorString(_: u32, out: *mut *const c_char) -> u32 {
    unsafe { *out = c"something is wrong".as_ptr() };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetCount(out: *mut i32) -> u32 {
    if machine() == "none" {
        return 100;
    }
    unsafe { *out = 1 };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGet(out: *mut i32, ordinal: i32) -> u32 {
    unsafe { *out = ordinal };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetName(out: *mut c_char, _: i32, _: i32) -> u32 {
    let name = c"Paper GPU".to_bytes_with_nul();
    unsafe { std::ptr::copy_nonoverlapping(name.as_ptr(), out.cast(), name.len()) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetAttribute(out: *mut i32, attribute: i32, _: i32) -> u32 {
    // The numbers are those of `CUdevice_attribute`.
    let value = match attribute {
        1 => 1024,
        16 => 132,
        75 => match machine().as_str() {
            "next" => 13,
            "ada" => 8,
            "former" => 7,
            _other => 9,
        },
        76 => if machine() == "ada" { 9 } else { 0 },
        97 => 232_448,
        _ => return INVALID_VALUE,
    };
    unsafe { *out = value };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDevicePrimaryCtxRetain(out: *mut *mut c_void, _: i32) -> u32 {
    RETAINED.fetch_add(1, SeqCst);
    unsafe { *out = 0x10 as *mut c_void };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDevicePrimaryCtxRelease_v2(_: i32) -> u32 {
    if RETAINED.fetch_sub(1, SeqCst) > 0 { 0 } else { INVALID_CONTEXT }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDevicePrimaryCtxReset_v2(_: i32) -> u32 {
    if machine() != "gone" {
        BROKEN.store(0, SeqCst);
    }
    MEMORY.lock().unwrap().clear();
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSetCurrent(context: *mut c_void) -> u32 {
    CURRENT.set(context as usize);
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxGetCurrent(out: *mut *mut c_void) -> u32 {
    unsafe { *out = CURRENT.get() as *mut c_void };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> u32 {
    unsafe {
        *free = 3 << 30;
        *total = 4 << 30;
    }
    context()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAlloc_v2(out: *mut u64, bytes: usize) -> u32 {
    if bytes == 0 {
        return INVALID_VALUE;
    }
    if bytes > 1 << 30 {
        return 2;
    }
    // Forgotten memory stays readable: what is wrong is found by the list, not by a crash.
    let words: Box<[u128]> = vec![u128::MAX; bytes.div_ceil(16) + 16].into();
    let address = (Box::leak(words).as_ptr() as u64).next_multiple_of(256);
    MEMORY.lock().unwrap().insert(address, bytes);
    unsafe { *out = address };
    context()
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemFree_v2(address: u64) -> u32 {
    match MEMORY.lock().unwrap().remove(&address) {
        Some(_) => context(),
        None => INVALID_VALUE,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAllocAsync(out: *mut u64, bytes: usize, _: *mut c_void) -> u32 {
    unsafe { cuMemAlloc_v2(out, bytes) }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemFreeAsync(address: u64, _: *mut c_void) -> u32 {
    cuMemFree_v2(address)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemHostAlloc(out: *mut *mut c_void, bytes: usize, _: u32) -> u32 {
    unsafe { *out = Box::leak(vec![u128::MAX; bytes.div_ceil(16)].into_boxed_slice()).as_mut_ptr().cast() };
    context()
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemFreeHost(_: *mut c_void) -> u32 {
    context()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemHostGetDevicePointer_v2(out: *mut u64, host: *mut c_void, _: u32) -> u32 {
    unsafe { *out = host as u64 };
    context()
}

/// Returns true if a range lies in memory of the GPU.
fn holds(address: u64, bytes: usize) -> bool {
    let memory = MEMORY.lock().unwrap();
    let found = memory.range(..=address).next_back();
    found.is_some_and(|(start, len)| address + bytes as u64 <= start + *len as u64)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyHtoDAsync_v2(to: u64, from: *const c_void, n: usize, _: *mut c_void) -> u32 {
    if !holds(to, n) {
        return INVALID_VALUE;
    }
    unsafe { std::ptr::copy_nonoverlapping(from.cast::<u8>(), to as *mut u8, n) };
    context()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: u64, n: usize, _: *mut c_void) -> u32 {
    if !holds(from, n) {
        return INVALID_VALUE;
    }
    unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to.cast::<u8>(), n) };
    context()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemsetD8Async(to: u64, byte: u8, n: usize, _: *mut c_void) -> u32 {
    if machine() == "gone" && BROKEN.load(SeqCst) != 0 {
        return BROKEN.load(SeqCst);
    }
    if !holds(to, n) {
        return INVALID_VALUE;
    }
    unsafe { std::ptr::write_bytes(to as *mut u8, byte, n) };
    context()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventCreate(out: *mut *mut c_void, _: u32) -> u32 {
    unsafe { *out = 0x30 as *mut c_void };
    context()
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventDestroy_v2(_: *mut c_void) -> u32 {
    context()
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventRecord(_: *mut c_void, _: *mut c_void) -> u32 {
    context()
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventSynchronize(_: *mut c_void) -> u32 {
    finish()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventElapsedTime(out: *mut f32, _: *mut c_void, _: *mut c_void) -> u32 {
    unsafe { *out = 1.5 };
    context()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleLoadData(out: *mut *mut c_void, image: *const c_void) -> u32 {
    let text = unsafe { CStr::from_ptr(image.cast()) }.to_bytes();
    unsafe { *out = 0x40 as *mut c_void };
    match text {
        _ if machine() == "foreign" => 209,
        _ if machine() == "behind" => 222,
        b"image" => context(),
        b"image for another GPU" => 209,
        b"image of tomorrow" => 222,
        // PTX reaches it, and it has no assembler.
        _ if text.starts_with(b"//") => 218,
        _ => 200,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuModuleUnload(_: *mut c_void) -> u32 {
    context()
}

type Kernel = unsafe fn(&Launch);

struct Launch {
    blocks: [u32; 3],
    threads: u32,
    shared: u32,
    params: *mut *mut c_void,
}

impl Launch {
    unsafe fn get<T: Copy>(&self, i: usize) -> T {
        unsafe { *(*self.params.add(i)).cast::<T>() }
    }
}

/// Parameters: pointer, i32, i64 (a view of rank 1), grid. Doubles the elements.
unsafe fn twice(l: &Launch) {
    let (x, n, stride) = unsafe { (l.get::<*mut f32>(0), l.get::<i32>(1), l.get::<i64>(2)) };
    for i in 0..n as isize {
        unsafe { *x.offset(i * stride as isize) *= 2.0 };
    }
}

/// Parameters: a pointer to i32, grid. Says how it was launched.
unsafe fn how(l: &Launch) {
    let out = unsafe { l.get::<*mut i32>(0) };
    let [x, y, z] = l.blocks;
    let grid = unsafe { [l.get::<u32>(1), l.get::<u32>(2), l.get::<u32>(3)] };
    let all = [x, y, z, l.threads, l.shared, grid[0], grid[1], grid[2]];
    all.iter().enumerate().for_each(|(i, v)| unsafe { *out.add(i) = *v as i32 });
}

/// Parameters: a table of pointers to f32, and how many. Moves the first element after each pointer to the next one, and
/// turns the table round.
unsafe fn rotate(l: &Launch) {
    let (table, n) = unsafe { (l.get::<*mut *mut f32>(0), l.get::<i32>(1) as usize) };
    let mut pointers: Vec<*mut f32> = (0..n).map(|i| unsafe { *table.add(i) }).collect();
    let values: Vec<f32> = pointers.iter().map(|p| unsafe { **p }).collect();
    for (i, v) in values.iter().enumerate() {
        unsafe {
            *pointers[(i + 1) % n] = *v;
            *table.add(i) = pointers[n - 1 - i];
        }
    }
}

/// Parameters: a pointer to f32, a number, a workspace of zeros. Adds the number, once for each launch.
unsafe fn add(l: &Launch) {
    let (x, v, work) = unsafe { (l.get::<*mut f32>(0), l.get::<f32>(1), l.get::<*mut f32>(2)) };
    unsafe {
        *work += v;
        *x += *work;
    }
}

unsafe fn wild(_: &Launch) {
    FAILING.store(ILLEGAL_ADDRESS, SeqCst);
}

unsafe fn slow(_: &Launch) {
    RUNNING.store(true, SeqCst);
}

unsafe fn nothing(_: &Launch) {}

/// Words of 64 bits of control memory, as `tk_tile::message::control` has them.
const LOST: usize = 2;
const PRINTS: usize = 3;
const ASSERTS: usize = 5;

/// What says that the first thread of a program gives a record.
const LEADS: u64 = 1 << 31;

/// Appends records, each a list of words without the number of parts, to a region whose address is a word of control.
unsafe fn records(control: *const u64, region: usize, records: &[(u64, [u64; 3], u64, &[(u64, u64, u64)])]) {
    let mut at = unsafe { *control.add(region) } as *mut u64;
    for (message, [x, y, z], line, parts) in records {
        let head = [message + 1 | line << 32, x | y << 32, z | (parts.len() as u64 | LEADS) << 32];
        let parts = parts.iter().flat_map(|(value, position, bits)| [value | position << 32, *bits]);
        for word in head.into_iter().chain(parts) {
            unsafe {
                *at = word;
                at = at.add(1);
            }
        }
    }
}

/// Parameters: a pointer to i32, grid, control memory. Prints `x = {}` of the pointer and `{} and {}` of a tile and a
/// number, by two threads in the program 1, by one in the program 0, whose second line lacks a part.
unsafe fn says(l: &Launch) {
    let (x, control) = unsafe { (l.get::<u64>(0), l.get::<*const u64>(4)) };
    let second: &[(u64, u64, u64)] = &[(0, 0, 7), (0, 1, 8), (1, 0, u32::MAX as u64)];
    let said = [
        (1, [1, 0, 0], 1, second),
        (0, [1, 0, 0], 0, &[(0, 0, x + 4)][..]),
        (1, [1, 0, 0], 1, &[(0, 2, 9)][..]),
        (0, [0, 0, 0], 0, &[(0, 0, 0)][..]),
        (1, [0, 0, 0], 1, second),
    ];
    unsafe { records(control, PRINTS, &said) };
}

/// The same parameters. Says a line, and that an assert fails in two programs; two lines found no room.
unsafe fn fails(l: &Launch) {
    let control = unsafe { l.get::<*mut u64>(4) };
    let part = |element| [(0, element, 0)];
    let (third, sixth) = (part(2), part(5));
    unsafe {
        records(control, PRINTS, &[(0, [0, 0, 0], 0, &[(0, 0, 0)][..])]);
        *control.add(LOST) = 2;
        let first = (2, [0, 1, 0], 0, &third[..]);
        records(control, ASSERTS, &[(2, [1, 1, 0], 0, &part(0)[..]), (2, [0, 1, 0], 0, &sixth[..]), first]);
    }
}

/// The same parameters. Says a line and then uses an address of nothing.
unsafe fn says_and_fails(l: &Launch) {
    let control = unsafe { l.get::<*mut u64>(4) };
    unsafe { records(control, PRINTS, &[(0, [0, 0, 0], 0, &[(0, 0, 0)][..])]) };
    FAILING.store(ILLEGAL_ADDRESS, SeqCst);
}

/// Parameters: a pointer to i32, i32, grid, control memory. Adds the counter of the barrier to the number and leaves one more there.
unsafe fn meets(l: &Launch) {
    let (x, control) = unsafe { (l.get::<*mut i32>(0), l.get::<*mut i32>(5)) };
    unsafe {
        *x += 1 + *control.add(15);
        *control.add(15) += 1;
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleGetFunction(
    out: *mut *mut c_void,
    _: *mut c_void,
    name: *const c_char,
) -> u32 {
    let kernel: Kernel = match unsafe { CStr::from_ptr(name) }.to_bytes() {
        b"twice" => twice,
        b"mapped" => tensor_maps::mapped,
        b"how" => how,
        b"rotate" => rotate,
        b"add" => add,
        b"wild" => wild,
        b"slow" => slow,
        b"idle" => nothing,
        b"says" => says,
        b"fails" => fails,
        b"says_and_fails" => says_and_fails,
        b"meets" => meets,
        _ => return 500,
    };
    unsafe { *out = kernel as *mut c_void };
    context()
}

#[unsafe(no_mangle)]
pub extern "C" fn cuFuncSetAttribute(_: *mut c_void, _: i32, bytes: i32) -> u32 {
    if bytes > 232_448 { INVALID_VALUE } else { context() }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLaunchKernel(
    function: *mut c_void,
    x: u32,
    y: u32,
    z: u32,
    threads: u32,
    _: u32,
    _: u32,
    shared: u32,
    _: *mut c_void,
    params: *mut *mut c_void,
    _: *mut *mut c_void,
) -> u32 {
    LAUNCHES.fetch_add(1, SeqCst);
    let state = context();
    if let Some(recorded) = RECORDING.lock().unwrap().as_mut() {
        // How many parameters there are, only the kernel knows: these have six.
        let known = [twice as Kernel, add as Kernel].into_iter().find(|k| *k as *mut c_void == function);
        let Some(kernel) = known else { return CAPTURE_UNSUPPORTED };
        let words = (0..6).map(|i| unsafe { *(*params.add(i)).cast::<u64>() }).collect();
        recorded.push((kernel, words));
        return state;
    }
    if state == 0 {
        let kernel: Kernel = unsafe { std::mem::transmute(function) };
        unsafe { kernel(&Launch { blocks: [x, y, z], threads, shared, params }) };
    }
    state
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
    out: *mut i32,
    _: *mut c_void,
    threads: i32,
    _: usize,
) -> u32 {
    unsafe { *out = 256 / threads };
    context()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLaunchCooperativeKernel(
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
    if x * y * z > 132 * (256 / threads) {
        return 720;
    }
    unsafe { cuLaunchKernel(function, x, y, z, threads, a, b, shared, stream, params, std::ptr::null_mut()) }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamBeginCapture_v2(_: *mut c_void, _: u32) -> u32 {
    *RECORDING.lock().unwrap() = Some(vec![]);
    context()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamEndCapture(_: *mut c_void, out: *mut *mut c_void) -> u32 {
    let recorded = RECORDING.lock().unwrap().take().unwrap();
    unsafe { *out = Box::into_raw(Box::new(recorded)).cast() };
    context()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphInstantiateWithFlags(out: *mut *mut c_void, graph: *mut c_void, _: u64) -> u32 {
    let recorded = unsafe { (*graph.cast::<Recorded>()).clone() };
    unsafe { *out = Box::into_raw(Box::new(recorded)).cast() };
    context()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphLaunch(exec: *mut c_void, _: *mut c_void) -> u32 {
    for (kernel, words) in unsafe { &*exec.cast::<Recorded>() } {
        let mut params: Vec<*mut c_void> = words.iter().map(|w| std::ptr::from_ref(w).cast_mut().cast()).collect();
        unsafe { kernel(&Launch { blocks: [1; 3], threads: 32, shared: 0, params: params.as_mut_ptr() }) };
    }
    context()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphDestroy(graph: *mut c_void) -> u32 {
    drop(unsafe { Box::from_raw(graph.cast::<Recorded>()) });
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphExecDestroy(exec: *mut c_void) -> u32 {
    unsafe { cuGraphDestroy(exec) }
}
