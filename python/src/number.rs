//! Numbers that objects of Python are for parameters.

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt};
use tk_ops::{DType, Scalar};
use tk_sema::contract;

use crate::errors;
use crate::program::Param;

/// The number that an object is for a parameter.
pub(crate) fn number(param: &Param, object: &Bound<'_, PyAny>) -> PyResult<Scalar> {
    let py = object.py();
    let name = &param.name;
    let is_float = param.number.is_some_and(|d| d.is_float());
    let float = |object: &Bound<'_, PyAny>| -> PyResult<Scalar> {
        let float = object.call_method0(pyo3::intern!(py, "__float__")).map_err(|e| {
            if e.is_instance_of::<PyOverflowError>(py) {
                return e;
            }
            let ty = object.get_type().name().map(|n| n.to_string()).unwrap_or_default();
            PyTypeError::new_err(format!("argument `{name}` must be a number (`{}`), not `{ty}`", param.ty))
        })?;
        Ok(Scalar::from_bits(DType::F64, float.extract::<f64>()?.to_bits()))
    };
    let given = if is_bool(object) {
        Scalar::bool(object.is_truthy()?)
    } else if let Ok(f) = object.cast::<PyFloat>() {
        Scalar::from_bits(DType::F64, f.value().to_bits())
    } else {
        let int = if object.is_instance_of::<PyInt>() {
            Some(object.clone())
        } else {
            object.call_method0(pyo3::intern!(py, "__index__")).ok()
        };
        match int {
            Some(int) => match (int.extract::<i64>(), int.extract::<u64>()) {
                (Ok(i), _) => Scalar::from_bits(DType::I64, i as u64),
                (Err(_), Ok(u)) => Scalar::from_bits(DType::U64, u),
                (Err(_), Err(_)) if is_float => float(&int)?,
                (Err(_), Err(_)) => {
                    let text = format!("argument `{name}` is an integer of more than 64 bits");
                    return Err(PyOverflowError::new_err(text));
                }
            },
            None => float(object)?,
        }
    };
    let Some(to) = param.number else { return Ok(given) };
    contract::fit(given, to).ok_or_else(|| {
        errors::argument(py, &format!("argument `{name}` is {given}, which is not a value of the type {to}"))
    })
}

/// Returns true for bools of Python, NumPy and PyTorch.
pub(crate) fn is_bool(object: &Bound<'_, PyAny>) -> bool {
    if object.is_instance_of::<PyBool>() {
        return true;
    }
    if object.is_instance_of::<PyInt>() || object.is_instance_of::<PyFloat>() {
        return false;
    }
    let dtype = object.getattr(pyo3::intern!(object.py(), "dtype")).and_then(|d| Ok(d.str()?.to_string()));
    dtype.is_ok_and(|d| d == "bool" || d == "torch.bool")
}
