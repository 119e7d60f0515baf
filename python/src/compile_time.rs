//! Compile-time arguments from objects of Python: [`set_text`].

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt, PyList, PyString, PyTuple};
use tk_ops::DType;

use crate::number::is_bool;

/// The element type by its name in NumPy, `ml_dtypes`, PyTorch or the language.
pub fn dtype_named(name: &str) -> Option<DType> {
    Some(match name {
        "bool" => DType::Bool,
        "int8" => DType::I8,
        "int16" => DType::I16,
        "int32" => DType::I32,
        "int64" => DType::I64,
        "uint8" => DType::U8,
        "uint16" => DType::U16,
        "uint32" => DType::U32,
        "uint64" => DType::U64,
        "float16" => DType::F16,
        "bfloat16" => DType::BF16,
        "float32" => DType::F32,
        "float64" => DType::F64,
        "float8_e4m3fn" => DType::F8E4M3,
        "float8_e4m3fnuz" => DType::F8E4M3FNUZ,
        "float8_e5m2" => DType::F8E5M2,
        "float8_e5m2fnuz" => DType::F8E5M2FNUZ,
        "float8_e8m0fnu" => DType::E8M0,
        other => return DType::parse(other),
    })
}

/// The text of a compile-time argument: a number, a bool, an element type of any library, a shape, or a text as the
/// language writes it.
///
/// # Errors
/// It is something else.
pub fn set_text(value: &Bound<'_, PyAny>, name: &str) -> PyResult<String> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(text.to_string());
    }
    if is_bool(value) {
        return Ok(value.is_truthy()?.to_string());
    }
    if value.is_instance_of::<PyInt>() || value.is_instance_of::<PyFloat>() {
        return Ok(value.str()?.to_string());
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let items: PyResult<Vec<String>> = value.try_iter()?.map(|i| set_text(&i?, name)).collect();
        return Ok(format!("[{}]", items?.join(", ")));
    }
    if let Ok(number) = value.call_method0("__index__") {
        return Ok(number.str()?.to_string());
    }
    // `torch.float16`, `numpy.float16`, `numpy.dtype('float16')`, `jnp.float16`.
    let names = ["name", "__name__"].map(|a| value.getattr(a).and_then(|n| n.extract::<String>()).ok());
    let text = value.str()?.to_string();
    let last = text.rsplit('.').next().unwrap_or_default().to_string();
    let spelled = names.into_iter().flatten().chain([last]);
    let found = { spelled }.find_map(|n| dtype_named(&n));
    let ty = value.get_type().name()?;
    found.map(|d| d.name().to_string()).ok_or_else(|| {
        PyTypeError::new_err(format!(
            "`{name}` is a compile-time parameter, and {text} (`{ty}`) is no value of one"
        ))
    })
}
