//! Keeps the process alive when LLVM reports a fatal error.
//!
//! LLVM reports fatal errors (`Cannot select`, out of registers) to a handler that must not return, and aborts the
//! process without one. Here LLVM runs on a thread of its own, and the handler sends the message to the thread that
//! waits for it and then blocks forever: LLVM cannot be resumed, and its frames are never unwound. A failure costs the
//! memory of one module and one blocked thread; a success costs starting a thread (about 30 us).

use std::cell::RefCell;
use std::ffi::{CStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Once;
use std::sync::mpsc::{Sender, channel};

/// Instruction selection recurses over the expressions of a block, which are as long as an unrolled tile is large.
const STACK: usize = 64 << 20;

thread_local! {
    /// Where this thread reports LLVM's fatal error.
    static WAITING: RefCell<Option<Sender<String>>> = const { RefCell::new(None) };
}

/// The result of `work`, or the message of LLVM's fatal error in it.
///
/// `work` runs on another thread while this one waits. Panics in it continue here.
pub(crate) fn contained<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, String> {
    static INSTALLED: Once = Once::new();
    // SAFETY: the handler has the signature that LLVM calls, never returns, and nothing else installs one.
    INSTALLED.call_once(|| unsafe { llvm_sys::error_handling::LLVMInstallFatalErrorHandler(Some(give_up)) });
    let (report, reported) = channel();
    let mut result = None;
    let slot = SendPointer(&raw mut result);
    let done = report.clone();
    let body = move || {
        let slot = slot;
        WAITING.with(|w| *w.borrow_mut() = Some(report));
        let value = catch_unwind(AssertUnwindSafe(work));
        // SAFETY: the waiting thread keeps `result` until it has received from this one, which happens below.
        unsafe { *slot.0 = Some(value) };
        WAITING.with(|w| w.borrow_mut().take());
        let _ = done.send(String::new());
    };
    let body: Box<dyn FnOnce() + Send> = Box::new(body);
    // SAFETY: the closure's borrows outlive their use: this function returns after the thread has finished with it, or
    // after the thread has blocked forever and accesses nothing any more.
    let body: Box<dyn FnOnce() + Send + 'static> = unsafe { std::mem::transmute(body) };
    let thread = std::thread::Builder::new().name("llvm".into()).stack_size(STACK).spawn(body);
    let thread = thread.map_err(|e| format!("no thread for LLVM: {e}"))?;
    let message = reported.recv().map_err(|e| e.to_string())?;
    match result {
        None => Err(message),
        Some(value) => {
            let _ = thread.join();
            Ok(value.unwrap_or_else(|panic| resume_unwind(panic)))
        }
    }
}

/// A pointer that another thread writes through while its owner waits.
struct SendPointer<T>(*mut T);

// SAFETY: only one thread uses it at a time.
unsafe impl<T: Send> Send for SendPointer<T> {}

extern "C" fn give_up(reason: *const c_char) {
    // SAFETY: LLVM passes a zero-terminated string.
    let reason = unsafe { CStr::from_ptr(reason) }.to_string_lossy();
    let first = reason.lines().next().unwrap_or_default().trim().to_string();
    let heard = WAITING.with(|w| w.borrow_mut().take().map(|s| s.send(first.clone())));
    if heard.is_none() {
        // Not called through `contained`: no thread waits, and LLVM must not continue.
        eprintln!("tk: LLVM: {first}");
        std::process::abort();
    }
    loop {
        std::thread::park();
    }
}
