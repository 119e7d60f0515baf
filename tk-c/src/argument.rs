//! Arguments of a launch: the structures of `tklang.h`, and what a launch takes.

use std::ffi::{c_char, c_void};

use tk_ops::{DType, Scalar};
use tk_runtime::contiguous;
use tk_runtime::gpu::{Arg, Elements, Placed};

use crate::{Failure, Status, array};

/// `tk_argument`
#[repr(C)]
pub struct Argument {
    kind: i32,
    dtype: i32,
    rank: i32,
    data: *const c_void,
    shape: *const i64,
    strides: *const i64,
    integer: i64,
    number: f64,
}

/// `tk_choice`
#[repr(C)]
pub struct Choice {
    pub name: *const c_char,
    pub value: *const c_char,
}

/// The element types in the order of `tk_dtype`, whose first number is 1.
const DTYPES: [DType; 19] = [
    DType::Bool,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
    DType::F8E4M3,
    DType::F8E5M2,
    DType::F16,
    DType::BF16,
    DType::F32,
    DType::F64,
    DType::E2M1,
    DType::E8M0,
    DType::F8E4M3FNUZ,
    DType::F8E5M2FNUZ,
];

/// The highest rank, from the specification.
const RANK: i32 = 5;

// `tk_argument_kind`
const ABSENT: i32 = 0;
const TENSOR: i32 = 1;
const INTEGER: i32 = 2;
const NUMBER: i32 = 3;
const BOOLEAN: i32 = 4;

/// A value of a launch.
pub enum Value<'a> {
    Tensor(Elements<'a>),
    Scalar(Scalar),
    Absent,
}

/// The strides of tensors that are given without.
#[derive(Default)]
pub struct Strides(Vec<Option<Vec<i64>>>);

impl Value<'_> {
    /// The elements, if it is a tensor.
    pub fn elements(&self) -> Option<Elements<'_>> {
        match self {
            Value::Tensor(elements) => Some(*elements),
            Value::Scalar(_) | Value::Absent => None,
        }
    }

    /// The argument of a launch: where it was placed on the CPU, or where it is on a GPU.
    pub fn arg(&self, placed: Option<&Placed>) -> Arg<'_> {
        match (self, placed) {
            (Value::Tensor(t), Some(placed)) => placed.arg(*t),
            (Value::Tensor(t), None) => t.arg(),
            (Value::Scalar(s), _) => Arg::Scalar(*s),
            (Value::Absent, _) => Arg::Absent,
        }
    }
}

/// What a caller gives, with strides made in `made`. `name` is that of an argument, for messages.
///
/// # Safety
/// Shapes and strides have as many numbers as the rank.
pub unsafe fn values<'a>(
    arguments: &'a [Argument],
    made: &'a mut Strides,
    name: impl Fn(usize) -> String,
) -> Result<Vec<Value<'a>>, Failure> {
    let mut tensors = Vec::with_capacity(arguments.len());
    for (i, a) in arguments.iter().enumerate() {
        // SAFETY: the caller promises it.
        let tensor = if a.kind == TENSOR { Some(unsafe { tensor(a, || name(i)) }?) } else { None };
        let is_row_major = tensor.is_some() && a.strides.is_null();
        made.0.push(tensor.filter(|_| is_row_major).map(|(_, shape)| contiguous(shape)));
        tensors.push(tensor);
    }
    let mut out = Vec::with_capacity(arguments.len());
    for (i, ((a, tensor), own)) in arguments.iter().zip(tensors).zip(&made.0).enumerate() {
        out.push(match (a.kind, tensor) {
            (_, Some((dtype, shape))) => {
                let strides = match own {
                    Some(own) => own.as_slice(),
                    // SAFETY: the caller promises it.
                    None => unsafe { array(a.strides, shape.len(), "strides") }?,
                };
                let elements = Elements { address: a.data as u64, dtype, shape, strides };
                elements.check().map_err(|e| Failure(Status::Argument, format!("{}: {e}", name(i))))?;
                Value::Tensor(elements)
            }
            (ABSENT, None) => Value::Absent,
            (INTEGER, None) => Value::Scalar(Scalar::from_bits(DType::I64, a.integer as u64)),
            (NUMBER, None) => Value::Scalar(Scalar::from_bits(DType::F64, a.number.to_bits())),
            (BOOLEAN, None) => Value::Scalar(Scalar::bool(a.integer != 0)),
            (kind, None) => {
                let text = format!("{} has the kind {kind}, which is no `tk_argument_kind`", name(i));
                return Err(Failure(Status::Argument, text));
            }
        });
    }
    Ok(out)
}

/// The element type and the shape of a tensor.
///
/// # Safety
/// The shape has as many numbers as the rank.
unsafe fn tensor(a: &Argument, name: impl Fn() -> String) -> Result<(DType, &[i64]), Failure> {
    let wrong = |what: String| Failure(Status::Argument, format!("{} {what}", name()));
    if !(0..=RANK).contains(&a.rank) {
        return Err(wrong(format!("has rank {}; ranks are 0 to {RANK}", a.rank)));
    }
    let number = usize::try_from(a.dtype).ok().and_then(|n| DTYPES.get(n.checked_sub(1)?));
    let dtype = number.ok_or_else(|| wrong(format!("has the type {}, which is no `tk_dtype`", a.dtype)))?;
    // SAFETY: the caller promises it.
    let shape = unsafe { array(a.shape, a.rank as usize, "extents") }
        .map_err(|_| wrong("has a rank, and the address of its extents is NULL".to_string()))?;
    if a.data.is_null() && shape.iter().all(|n| *n > 0) {
        return Err(wrong("has elements, and its address is NULL".to_string()));
    }
    Ok((*dtype, shape))
}
