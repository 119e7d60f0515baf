//! The entry points of the driver of the CPU: a function for each row of [`super::super::driver`], by its name.
//!
//! Relies on the contract of a driver: handles are those that it gave out, and host memory has the stated number of
//! bytes. Handles of modules, functions, streams, graphs and events are addresses of boxes.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr;
use std::sync::Arc;
use std::time::Instant;

use cudarc::driver::sys::{
    CUcontext, CUdevice, CUdeviceptr, CUevent, CUfunction, CUfunction_attribute, CUgraph, CUgraphExec,
    CUmodule, CUstream,
};
use tk_interp::Fault;

use super::super::error::code::{FAULT, OUT_OF_MEMORY};
use super::work::{Function, Queue, Task, fail, last, machine};
use crate::room;
use crate::session::lock;

/// Success.
const DONE: u32 = 0;
/// `CUDA_ERROR_INVALID_VALUE`
const INVALID: u32 = 1;
/// `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED`
const NOT_RECORDED: u32 = 900;
/// `CUDA_ERROR_STREAM_CAPTURE_INVALIDATED`
const BROKEN: u32 = 901;

fn code(done: Result<(), Fault>) -> u32 {
    done.map_or_else(|fault| fail(&fault), |()| DONE)
}

/// Stores a result.
unsafe fn give<T>(to: *mut T, value: T) -> u32 {
    // SAFETY: the caller of an entry point gives a place for its result.
    unsafe { to.write(value) };
    DONE
}

/// A handle of something.
fn handle<T, H>(value: T) -> *mut H {
    Box::into_raw(Box::new(value)).cast()
}

/// The object of a handle.
unsafe fn of<'a, T, H>(handle: *mut H) -> &'a T {
    // SAFETY: it is one of `handle`, as long as it was not dropped.
    unsafe { &*handle.cast::<T>() }
}

unsafe fn dropped<T, H>(handle: *mut H) -> u32 {
    // SAFETY: as above, and it is no longer used.
    drop(unsafe { Box::from_raw(handle.cast::<T>()) });
    DONE
}

/// One function for each row: its name, its parameters, its body, in which pointers may be used as the row says.
macro_rules! entries {
    ($($name:ident($($param:ident: $ty:ty),*) $body:block)*) => {$(
        pub unsafe extern "C" fn $name($($param: $ty),*) -> u32 {
            // SAFETY: the caller keeps what the row promises; see the head of this file.
            #[allow(unused_unsafe, reason = "some need nothing of it")]
            unsafe { $body }
        }
    )*};
}

entries! {
    init(_flags: c_uint) { DONE }
    driver_version(to: *mut c_int) { give(to, 0) }
    error_name(number: u32, to: *mut *const c_char) {
        give(to, match number {
            FAULT => last().0,
            OUT_OF_MEMORY => c"not enough memory".as_ptr(),
            NOT_RECORDED | BROKEN => c"not while a graph is recorded".as_ptr(),
            _other => c"refused".as_ptr(),
        })
    }
    error_string(number: u32, to: *mut *const c_char) {
        give(to, match number {
            FAULT | OUT_OF_MEMORY => last().1,
            NOT_RECORDED | BROKEN => c"cannot wait for recorded work".as_ptr(),
            _other => c"a value has no meaning".as_ptr(),
        })
    }
    device_count(to: *mut c_int) { give(to, 1) }
    device_get(to: *mut CUdevice, _ordinal: c_int) { give(to, 0) }
    device_name(to: *mut c_char, room: c_int, _device: CUdevice) {
        let name = c"CPU";
        let bytes = name.count_bytes().min(usize::try_from(room).unwrap_or(0).saturating_sub(1));
        ptr::copy_nonoverlapping(name.as_ptr(), to, bytes);
        give(to.add(bytes), 0)
    }
    device_attribute(to: *mut c_int, attribute: c_int, _device: CUdevice) {
        let cores = std::thread::available_parallelism().map_or(1, |n| c_int::try_from(n.get()).unwrap_or(1));
        let facts = tk_sema::contract::Device::default();
        give(to, match attribute {
            super::SMS => cores,
            super::SHARED_BYTES => c_int::try_from(facts.smem).unwrap_or(c_int::MAX),
            super::THREADS => c_int::MAX,
            _other => return INVALID,
        })
    }
    primary_retain(to: *mut CUcontext, _device: CUdevice) { give(to, ptr::NonNull::dangling().as_ptr()) }
    primary_release(_device: CUdevice) { DONE }
    primary_reset(_device: CUdevice) { DONE }
    set_current(_context: CUcontext) { DONE }
    get_current(to: *mut CUcontext) { give(to, ptr::null_mut()) }
    memory_info(free: *mut usize, total: *mut usize) {
        let bytes = room::available().map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(usize::MAX));
        give(free, bytes);
        give(total, bytes)
    }
    alloc(to: *mut CUdeviceptr, bytes: usize) {
        if let Err(what) = room::check(Some(bytes)) {
            fail(&Fault::new("E0701", what));
            return OUT_OF_MEMORY;
        }
        // Zeros cost nothing until they are written, and uninitialized memory may be anything.
        let id = machine().memory.alloc(vec![0; bytes]);
        machine().memory.address(id).map_or(INVALID, |address| give(to, address))
    }
    free(address: CUdeviceptr) {
        let place = machine().memory.buffers().at(address);
        place.map_or(INVALID, |place| { machine().memory.free(place.id); DONE })
    }
    alloc_async(to: *mut CUdeviceptr, bytes: usize, stream: CUstream) {
        if of::<Queue, _>(stream).is_done() { alloc(to, bytes) } else { NOT_RECORDED }
    }
    free_async(address: CUdeviceptr, stream: CUstream) {
        if of::<Queue, _>(stream).is_done() { free(address) } else { NOT_RECORDED }
    }
    alloc_host(to: *mut *mut c_void, bytes: usize, _flags: c_uint) {
        if let Err(what) = room::check(Some(bytes)) {
            fail(&Fault::new("E0701", what));
            return OUT_OF_MEMORY;
        }
        let words = bytes.div_ceil(8);
        let start = Box::into_raw(vec![0u64; words].into_boxed_slice()).cast::<u64>();
        lock(&machine().pinned).insert(start as usize, words);
        give(to, start.cast())
    }
    free_host(start: *mut c_void) {
        let Some(words) = lock(&machine().pinned).remove(&(start as usize)) else { return INVALID };
        drop(Box::from_raw(ptr::slice_from_raw_parts_mut(start.cast::<u64>(), words)));
        DONE
    }
    host_address(_to: *mut CUdeviceptr, _host: *mut c_void, _flags: c_uint) { INVALID }
    to_device(to: CUdeviceptr, from: *const c_void, bytes: usize, stream: CUstream) {
        code(of::<Queue, _>(stream).put(Task::Write { to, from: from as usize, bytes }))
    }
    to_host(to: *mut c_void, from: CUdeviceptr, bytes: usize, stream: CUstream) {
        code(of::<Queue, _>(stream).put(Task::Read { to: to as usize, from, bytes }))
    }
    fill(at: CUdeviceptr, byte: u8, bytes: usize, stream: CUstream) {
        code(of::<Queue, _>(stream).put(Task::Fill { at, byte, bytes }))
    }
    stream_create(to: *mut CUstream, _flags: c_uint) { give(to, handle(Queue::default())) }
    stream_destroy(stream: CUstream) { dropped::<Queue, _>(stream) }
    stream_synchronize(stream: CUstream) { stream_query(stream) }
    stream_query(stream: CUstream) { if of::<Queue, _>(stream).is_done() { DONE } else { NOT_RECORDED } }
    stream_wait(_stream: CUstream, _event: CUevent, _flags: c_uint) { DONE }
    capture_begin(stream: CUstream, _mode: c_uint) {
        if of::<Queue, _>(stream).record() { DONE } else { NOT_RECORDED }
    }
    capture_end(stream: CUstream, to: *mut CUgraph) {
        match of::<Queue, _>(stream).recorded() {
            Some(tasks) => give(to, handle(Arc::new(tasks))),
            None => BROKEN,
        }
    }
    graph_instantiate(to: *mut CUgraphExec, graph: CUgraph, _flags: u64) {
        give(to, handle(Arc::clone(of::<Arc<Vec<Task>>, _>(graph))))
    }
    graph_launch(exec: CUgraphExec, stream: CUstream) {
        let queue = of::<Queue, _>(stream);
        code(of::<Arc<Vec<Task>>, _>(exec).iter().try_for_each(|task| queue.put(task.clone())))
    }
    graph_exec_destroy(exec: CUgraphExec) { dropped::<Arc<Vec<Task>>, _>(exec) }
    graph_destroy(graph: CUgraph) { dropped::<Arc<Vec<Task>>, _>(graph) }
    event_create(to: *mut CUevent, _flags: c_uint) { give(to, handle(std::sync::Mutex::new(Instant::now()))) }
    event_destroy(event: CUevent) { dropped::<std::sync::Mutex<Instant>, _>(event) }
    // A moment in work that is recorded never comes, and a wait for it would return at once.
    event_record(event: CUevent, stream: CUstream) {
        if !of::<Queue, _>(stream).is_done() {
            return NOT_RECORDED;
        }
        *lock(of::<std::sync::Mutex<Instant>, _>(event)) = Instant::now();
        DONE
    }
    event_synchronize(_event: CUevent) { DONE }
    event_elapsed(to: *mut f32, first: CUevent, second: CUevent) {
        let at = |event| *lock(of::<std::sync::Mutex<Instant>, _>(event));
        give(to, at(second).saturating_duration_since(at(first)).as_secs_f32() * 1e3)
    }
    module_load(to: *mut CUmodule, image: *const c_void) {
        match Function::load(CStr::from_ptr(image.cast())) {
            Ok(function) => give(to, handle(Arc::new(function))),
            Err(fault) => fail(&fault),
        }
    }
    module_unload(module: CUmodule) { dropped::<Arc<Function>, _>(module) }
    // A module has one kernel, whatever its name is.
    module_function(to: *mut CUfunction, module: CUmodule, _name: *const c_char) { give(to, module.cast()) }
    set_function_attribute(_function: CUfunction, _attribute: CUfunction_attribute, _value: c_int) { DONE }
    occupancy(to: *mut c_int, _function: CUfunction, _threads: c_int, _shared: usize) { give(to, c_int::MAX) }
    launch(
        function: CUfunction, x: c_uint, y: c_uint, z: c_uint, _tx: c_uint, _ty: c_uint, _tz: c_uint,
        _shared: c_uint, stream: CUstream, params: *mut *mut c_void, _extra: *mut *mut c_void
    ) {
        let function = Arc::clone(of::<Arc<Function>, _>(function));
        // Every value is passed as 64 bits.
        let values = (0..function.values()).map(|i| (*params.add(i)).cast::<u64>().read()).collect();
        code(of::<Queue, _>(stream).put(Task::Launch { function, values, grid: [x, y, z] }))
    }
    launch_cooperative(
        function: CUfunction, x: c_uint, y: c_uint, z: c_uint, tx: c_uint, ty: c_uint, tz: c_uint,
        shared: c_uint, stream: CUstream, params: *mut *mut c_void
    ) {
        launch(function, x, y, z, tx, ty, tz, shared, stream, params, ptr::null_mut())
    }
}
