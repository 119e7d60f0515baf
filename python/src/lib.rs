//! The extension module `tk._native`: programs, kernels, and the command.
//!
//! The package in `tk/` is what people use; it adds names, documentation and the ways into PyTorch and JAX. Guarantees
//! that no array is copied on the way to a GPU, and that nothing is printed but what kernels print.

mod bench;
mod compile_time;
mod devices;
mod dlpack;
mod errors;
mod interrupt;
mod jax;
mod launch;
mod number;
mod program;

use std::ffi::OsString;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyList;

/// Locks, whatever a thread that panicked has left.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs work whose recursion may be deeper than the stack of this thread.
fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    tk_syntax::stack::on_large_stack(work).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The diagnostics of a file, or of a text under the name of a file.
#[pyfunction]
#[pyo3(signature = (path, text = None))]
fn check<'py>(py: Python<'py>, path: &str, text: Option<&str>) -> PyResult<Bound<'py, PyList>> {
    let checked = py.detach(|| on_large_stack(|| program::checked(path, text)));
    let list = PyList::empty(py);
    for d in &checked.diagnostics {
        list.append(errors::diagnostic(py, &checked.sources, d)?)?;
    }
    Ok(list)
}

/// Runs the command with these arguments, the first of which is its name; returns the exit code.
#[pyfunction]
fn command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| tk_cli::execute(arguments, &["-m", "tk"]))
}

/// Returns true if an object is a tensor that a kernel can take.
#[pyfunction]
fn is_tensor(object: &Bound<'_, PyAny>) -> bool {
    dlpack::is_tensor(object)
}

#[pymodule]
fn _native(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add_class::<program::Program>()?;
    m.add_class::<launch::Kernel>()?;
    m.add_function(wrap_pyfunction!(check, m)?)?;
    m.add_function(wrap_pyfunction!(command, m)?)?;
    m.add_function(wrap_pyfunction!(is_tensor, m)?)?;
    m.add_function(wrap_pyfunction!(jax::jax_call, m)?)?;
    m.add_function(wrap_pyfunction!(jax::jax_handlers, m)?)?;
    Ok(())
}
