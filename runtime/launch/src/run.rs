//! Owns a launch from the host: values to device memory, the launch, results back.

use tk_interp::{Arg, BufferId, Memory};
use tk_ops::{DType, Scalar};
use tk_sema::contract::{self, HostArg, SetValue};
use tk_sema::hir::FnId;
use tk_syntax::Diagnostic;

use crate::npy::Array;
use crate::session::{Argument, Session, Wrong};

/// An argument of a kernel, on the host.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A tensor.
    Array(Array),
    /// A whole number.
    Int(i128),
    /// Another number.
    Float(f64),
    /// A bool.
    Bool(bool),
    /// An optional that is not there.
    Absent,
}

/// What a launch gave.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// The arrays that the kernel may change, in the order of its parameters, by name.
    pub arrays: Vec<(String, Array)>,
    /// What `static_print` said.
    pub notes: Vec<Diagnostic>,
}

impl Session {
    /// Runs a kernel on values in the order of its parameters; what is left out at the end has defaults.
    pub fn run(
        &self,
        kernel: FnId,
        values: Vec<Value>,
        sets: &[(String, SetValue)],
    ) -> Result<Results, Wrong> {
        let memory = Memory::new();
        let params = contract::parameters(&self.checked().hir, kernel);
        let mut args = vec![];
        let mut outputs = vec![];
        for (param, value) in params.iter().filter(|p| !p.compile_time).zip(values) {
            let (argument, output) = place(value, &memory);
            args.push(argument);
            outputs.extend(output.filter(|_| param.mutable).map(|o| (param.name.clone(), o)));
        }
        let notes = self.launch(kernel, &args, sets, &memory)?;
        let read = |(name, (id, dtype, shape)): (String, (BufferId, DType, Vec<usize>))| {
            (name, Array { dtype, shape, bytes: memory.read(id).unwrap_or_default() })
        };
        Ok(Results { arrays: outputs.into_iter().map(read).collect(), notes })
    }
}

/// Brings a value to the device. For an array, also where to read it back.
fn place(value: Value, memory: &Memory) -> (Argument, Option<(BufferId, DType, Vec<usize>)>) {
    let number = |s: Scalar| (Argument { host: HostArg::Scalar(s), place: None }, None);
    match value {
        Value::Array(Array { dtype, shape, bytes }) => {
            let buffer = memory.alloc(bytes);
            // An extent that no i64 holds belongs to an array without elements.
            let extents: Vec<i64> = shape.iter().map(|d| i64::try_from(*d).unwrap_or(i64::MAX)).collect();
            let strides = contiguous(&extents);
            let host = HostArg::Tensor { dtype, shape: extents.clone(), strides: strides.clone() };
            let view = Arg::View { buffer, offset: 0, shape: extents, strides };
            (Argument { host, place: Some(view) }, Some((buffer, dtype, shape)))
        }
        // The launch contract converts numbers to the types of their parameters.
        Value::Int(i) => {
            let dtype = if i32::try_from(i).is_ok() {
                DType::I32
            } else if i64::try_from(i).is_ok() {
                DType::I64
            } else {
                DType::U64
            };
            number(Scalar::int(dtype, i))
        }
        Value::Float(f) => number(Scalar::float(DType::F64, f)),
        Value::Bool(b) => number(Scalar::bool(b)),
        Value::Absent => (Argument { host: HostArg::Absent, place: None }, None),
    }
}

/// The strides of a row-major tensor without gaps.
fn contiguous(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![1i64; shape.len()];
    let mut step = 1i64;
    for (stride, extent) in strides.iter_mut().zip(shape).rev() {
        *stride = step;
        step = step.saturating_mul((*extent).max(1));
    }
    strides
}
