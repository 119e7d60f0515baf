//! The streams of the driver for tests: their work is done when it is asked for, and a recording takes the launches of all.

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use super::{CAPTURE_UNSUPPORTED, NOT_READY, RECORDING, RUNNING, context, finish};

/// The handle of the next stream, which is its number as well.
static STREAMS: AtomicUsize = AtomicUsize::new(0x20);
/// What threads may call while a stream is recorded.
static MODE: AtomicUsize = AtomicUsize::new(0);
/// `CU_STREAM_CAPTURE_MODE_RELAXED`
const RELAXED: usize = 2;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamCreate(out: *mut *mut c_void, _: u32) -> u32 {
    unsafe { *out = STREAMS.fetch_add(1, SeqCst) as *mut c_void };
    context()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamGetId(stream: *mut c_void, out: *mut u64) -> u32 {
    unsafe { *out = stream as u64 };
    context()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamIsCapturing(_: *mut c_void, out: *mut u32) -> u32 {
    unsafe { *out = u32::from(RECORDING.lock().unwrap().is_some()) };
    context()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuThreadExchangeStreamCaptureMode(mode: *mut u32) -> u32 {
    unsafe { *mode = MODE.swap(*mode as usize, SeqCst) as u32 };
    context()
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamDestroy_v2(_: *mut c_void) -> u32 {
    context()
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamSynchronize(_: *mut c_void) -> u32 {
    if RECORDING.lock().unwrap().is_some() && MODE.load(SeqCst) != RELAXED {
        return CAPTURE_UNSUPPORTED;
    }
    finish()
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamQuery(_: *mut c_void) -> u32 {
    if RUNNING.load(SeqCst) { NOT_READY } else { finish() }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamWaitEvent(_: *mut c_void, _: *mut c_void, _: u32) -> u32 {
    context()
}
