//! A launch from the host: values to device memory, the launch, results back.

use tk_interp::{Arg, BufferId, Memory};
use tk_ops::{DType, Scalar};
use tk_sema::contract::{self, HostArg, SetValue};
use tk_sema::hir::FnId;
use tk_syntax::{Diagnostic, codes};

use crate::make::Description;
use crate::npy::Array;
use crate::pass;
use crate::room;
use crate::session::{Argument, Session, Wrong};

/// An argument of a kernel, on the host.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A tensor.
    Array(Array),
    /// A tensor that is made once the launch contract agrees with its shape.
    Made(Description),
    /// A whole number.
    Int(i128),
    /// Another number.
    Float(f64),
    /// A bool.
    Bool(bool),
    /// An optional that is not there.
    Absent,
}

impl From<Array> for Value {
    fn from(array: Array) -> Value {
        Value::Array(array)
    }
}

/// What a launch gave.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// The arrays that the kernel may change, in the order of its parameters, by name.
    pub arrays: Vec<(String, Array)>,
    /// What `static_print` said.
    pub notes: Vec<Diagnostic>,
}

impl Value {
    /// Element type and extents of a tensor.
    pub fn tensor(&self) -> Option<(DType, &[usize])> {
        match self {
            Value::Array(a) => Some((a.dtype, &a.shape)),
            Value::Made(d) => Some((d.dtype, &d.shape)),
            Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Absent => None,
        }
    }
}

impl Session {
    /// Fails when the arrays that are still to be made do not fit in memory, together with a copy of the largest
    /// result. The error is one sentence.
    pub fn room(&self, kernel: FnId, values: &[Value]) -> Result<(), String> {
        let params = contract::parameters(&self.checked().hir, kernel);
        let (mut made, mut largest) = (Some(0usize), 0);
        for (param, value) in params.iter().filter(|p| !p.compile_time).zip(values) {
            let bytes =
                value.tensor().and_then(|(dtype, shape)| room::bytes(shape, dtype.bytes())).unwrap_or(0);
            if let Value::Made(_) = value {
                made = made.and_then(|n| n.checked_add(bytes));
            }
            largest = if param.mutable { bytes.max(largest) } else { largest };
        }
        room::check(made.and_then(|n| n.checked_add(largest))).map_err(|what| format!("the launch {what}"))
    }

    /// Runs a kernel on values in the order of its parameters; what is left out at the end has defaults.
    pub fn run(
        &self,
        kernel: FnId,
        values: Vec<Value>,
        sets: &[(String, SetValue)],
    ) -> Result<Results, Wrong> {
        // What the contract refuses is refused before anything is made.
        pass::enter("launch contract");
        let hosts: Vec<HostArg> = values.iter().map(host).collect();
        contract::plan_on(&self.checked().hir, kernel, &hosts, sets, self.facts())
            .map_err(|e| vec![*e.diagnostic])?;
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
        if self.is_checked() {
            outputs.iter().try_for_each(|output| self.written(kernel, output, &memory))?;
        }
        // One at a time: memory need not hold all results twice.
        let read = |(name, (id, dtype, shape)): (String, (BufferId, DType, Vec<usize>))| {
            let bytes = memory.read(id).unwrap_or_default();
            memory.free(id);
            (name, Array { dtype, shape, bytes })
        };
        Ok(Results { arrays: outputs.into_iter().map(read).collect(), notes })
    }
}

impl Session {
    /// Reports an uninitialized element of a result.
    fn written(
        &self,
        kernel: FnId,
        (name, (id, dtype, _)): &(String, (BufferId, DType, Vec<usize>)),
        memory: &Memory,
    ) -> Result<(), Wrong> {
        let Some(byte) = memory.unwritten(*id) else { return Ok(()) };
        let message =
            format!("element {} of the result `{name}` was never written", byte / dtype.bytes().max(1));
        let place = self.checked().hir.func(kernel).span;
        Err(vec![Diagnostic::error(codes::UNWRITTEN, place, message, "")])
    }
}

/// What the launch contract sees of a value. It converts numbers to the types of their parameters.
pub(crate) fn host(value: &Value) -> HostArg {
    if let Some((dtype, shape)) = value.tensor() {
        // An extent that no i64 holds belongs to an array without elements.
        let shape: Vec<i64> = shape.iter().map(|d| i64::try_from(*d).unwrap_or(i64::MAX)).collect();
        let strides = contiguous(&shape);
        return HostArg::Tensor { dtype, shape, strides };
    }
    match value {
        Value::Int(i) => {
            let dtype = if i32::try_from(*i).is_ok() {
                DType::I32
            } else if i64::try_from(*i).is_ok() {
                DType::I64
            } else {
                DType::U64
            };
            HostArg::Scalar(Scalar::int(dtype, *i))
        }
        Value::Float(f) => HostArg::Scalar(Scalar::float(DType::F64, *f)),
        Value::Bool(b) => HostArg::Scalar(Scalar::bool(*b)),
        Value::Array(_) | Value::Made(_) | Value::Absent => HostArg::Absent,
    }
}

/// Brings a value to the device. For an array, also where to read it back.
pub(crate) fn place(value: Value, memory: &Memory) -> (Argument, Option<(BufferId, DType, Vec<usize>)>) {
    let host = host(&value);
    let (buffer, dtype, shape) = match value {
        Value::Array(array) => (memory.alloc(array.bytes), array.dtype, array.shape),
        Value::Made(made) => {
            let buffer = match made.make() {
                Some(bytes) => memory.alloc(bytes),
                None => memory.alloc_unwritten(made.bytes()),
            };
            (buffer, made.dtype, made.shape)
        }
        Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Absent => {
            return (Argument { host, place: None }, None);
        }
    };
    let place = match &host {
        HostArg::Tensor { shape, strides, .. } => {
            Some(Arg::View { buffer, offset: 0, shape: shape.clone(), strides: strides.clone() })
        }
        HostArg::Scalar(_) | HostArg::Absent => None,
    };
    (Argument { host, place }, Some((buffer, dtype, shape)))
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
