//! The exceptions of the package, made from the errors of the compiler and the runtime.
//!
//! The classes are in `tk/errors.py`. Their text is the sentence that the command prints; `rendered` is the text with the
//! place in the source.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use tk_runtime::gpu::{CudaError, LaunchError};
use tk_syntax::{Diagnostic, SourceMap, render};

/// An exception of this class.
fn raise(py: Python<'_>, class: &str, text: &str, fields: &Bound<'_, PyDict>) -> PyErr {
    let made = py.import("tk.errors").and_then(|m| m.getattr(class)?.call((text,), Some(fields)));
    made.map_or_else(|e| e, PyErr::from_value)
}

/// The source is wrong: `tk.CompileError` with all diagnostics.
pub fn compile(py: Python<'_>, sources: &SourceMap, wrong: &[Diagnostic]) -> PyErr {
    let errors: Vec<Diagnostic> = wrong.iter().filter(|d| d.is_error()).cloned().collect();
    of_diagnostics(py, "CompileError", sources, &errors).unwrap_or_else(|e| e)
}

fn of_diagnostics(py: Python<'_>, class: &str, sources: &SourceMap, wrong: &[Diagnostic]) -> PyResult<PyErr> {
    let rendered: Vec<String> = wrong.iter().map(|d| render(sources, d, false)).collect();
    let fields = PyDict::new(py);
    let list = PyList::empty(py);
    for d in wrong {
        list.append(diagnostic(py, sources, d)?)?;
    }
    fields.set_item("diagnostics", list)?;
    Ok(raise(py, class, rendered.concat().trim_end(), &fields))
}

/// A diagnostic as the arguments of `tk.Diagnostic`.
pub fn diagnostic<'py>(py: Python<'py>, sources: &SourceMap, d: &Diagnostic) -> PyResult<Bound<'py, PyAny>> {
    let (file, line, column) = sources.position(d.primary.span);
    let out = PyDict::new(py);
    out.set_item("code", d.code.to_string())?;
    out.set_item("severity", if d.is_error() { "error" } else { "warning" })?;
    out.set_item("message", &d.message)?;
    out.set_item("file", file)?;
    out.set_item("line", line)?;
    out.set_item("column", column)?;
    out.set_item("rendered", render(sources, d, false))?;
    py.import("tk.errors")?.getattr("Diagnostic")?.call((), Some(&out))
}

/// A launch was refused, or failed.
pub fn launch(py: Python<'_>, sources: Option<&SourceMap>, error: &LaunchError) -> PyErr {
    let fields = PyDict::new(py);
    match (error, sources) {
        (LaunchError::Refused(wrong), Some(sources)) => {
            of_diagnostics(py, "LaunchError", sources, wrong).unwrap_or_else(|e| e)
        }
        (LaunchError::Device(error), _) if error.is_fault() => {
            // "kernel `k` failed with ..: assertion failed: too few (E0708)"
            let code = error.sentence.rsplit_once('(').and_then(|(_, code)| code.strip_suffix(')'));
            match fields.set_item("code", code) {
                Ok(()) => raise(py, "LaunchError", &error.sentence, &fields),
                Err(e) => e,
            }
        }
        (LaunchError::Device(error), _) => device(py, error),
        (LaunchError::Refused(_) | LaunchError::Shipped(_), _) => {
            raise(py, "LaunchError", &error.to_string(), &fields)
        }
    }
}

/// A device or its driver failed, or is not there.
pub fn device(py: Python<'_>, error: &CudaError) -> PyErr {
    let fields = PyDict::new(py);
    match fields.set_item("code", error.code) {
        Ok(()) => raise(py, "DeviceError", &error.to_string(), &fields),
        Err(e) => e,
    }
}

/// An argument of a launch is wrong.
pub fn argument(py: Python<'_>, text: &str) -> PyErr {
    raise(py, "LaunchError", text, &PyDict::new(py))
}

/// A file cannot be read, or is none of ours.
pub fn file(py: Python<'_>, text: &str) -> PyErr {
    raise(py, "Error", text, &PyDict::new(py))
}
