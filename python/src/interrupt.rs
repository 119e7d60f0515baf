//! Ctrl-C while a kernel runs on the CPU.
//!
//! Python handles a signal when the main thread interprets again, which a long launch would put off. While one runs, the signal
//! also stops the interpreter, and the launch ends with `KeyboardInterrupt`. On other threads, which Python does not
//! interrupt, nothing changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use signal_hook::consts::SIGINT;
use tk_runtime::gpu::stopped_by;

/// Runs the launches of `work`.
///
/// # Errors
/// A handler of Python raised an exception.
pub fn watched<R>(py: Python<'_>, work: impl FnOnce() -> R) -> PyResult<R> {
    if !is_main_thread(py)? {
        return Ok(work());
    }
    let stop = Arc::new(AtomicBool::new(false));
    // Python's own handler is called first. Where none can be set the signal waits, as it would without this.
    let Ok(registered) = signal_hook::flag::register(SIGINT, Arc::clone(&stop)) else { return Ok(work()) };
    let done = stopped_by(&stop, work);
    signal_hook::low_level::unregister(registered);
    if stop.load(Ordering::Relaxed) {
        py.check_signals()?;
    }
    Ok(done)
}

fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    static FUNCTIONS: PyOnceLock<(Py<PyAny>, Py<PyAny>)> = PyOnceLock::new();
    let (current, main) = FUNCTIONS.get_or_try_init(py, || {
        let threading = py.import("threading")?;
        PyResult::Ok((threading.getattr("get_ident")?.unbind(), threading.getattr("main_thread")?.unbind()))
    })?;
    current.bind(py).call0()?.eq(main.bind(py).call0()?.getattr("ident")?)
}
