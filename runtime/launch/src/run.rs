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
use crate::table;

/// An argument of a kernel, on the host.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A tensor.
    Array(Array),
    /// A tensor that is made once the launch contract agrees with its shape.
    Made(Description),
    /// Tensors whose addresses are the elements of one in device memory: for a `view[*T, 1]` or a `**T`.
    Table(Vec<Value>),
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

/// The results of a launch.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// The arrays that the kernel may change, in the order of its parameters, by name.
    pub arrays: Vec<(String, Array)>,
    /// The messages of `static_print`.
    pub notes: Vec<Diagnostic>,
}

impl Value {
    /// Element type and extents of a tensor.
    pub fn tensor(&self) -> Option<(DType, &[usize])> {
        match self {
            Value::Array(a) => Some((a.dtype, &a.shape)),
            Value::Made(d) => Some((d.dtype, &d.shape)),
            Value::Table(_) | Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Absent => None,
        }
    }

    /// The tensors that it has: one, or those of a table.
    fn tensors(&self) -> Vec<&Value> {
        match self {
            Value::Array(_) | Value::Made(_) => vec![self],
            Value::Table(entries) => entries.iter().flat_map(Value::tensors).collect(),
            Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Absent => vec![],
        }
    }
}

/// A tensor in device memory: where it is read back from.
pub(crate) struct Output {
    /// The text after the name of the parameter: `[2]` for an entry of a table.
    pub entry: String,
    pub buffer: BufferId,
    pub dtype: DType,
    pub shape: Vec<usize>,
}

impl Session {
    /// Fails when the arrays that are still to be made do not fit in memory, together with a copy of the largest
    /// result. The error is one sentence.
    pub fn room(&self, kernel: FnId, values: &[Value]) -> Result<(), String> {
        let params = contract::parameters(&self.checked().hir, kernel);
        let (mut made, mut largest) = (Some(0usize), 0);
        for (param, value) in params.iter().filter(|p| !p.compile_time).zip(values) {
            let mutable = param.table.map_or(param.mutable, |t| t.mutable);
            for tensor in value.tensors() {
                let bytes = tensor.tensor().and_then(|(dtype, shape)| room::bytes(shape, dtype.bytes()));
                let bytes = bytes.unwrap_or(0);
                if let Value::Made(_) = tensor {
                    made = made.and_then(|n| n.checked_add(bytes));
                }
                largest = if mutable { bytes.max(largest) } else { largest };
            }
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
        let hir = &self.checked().hir;
        let params = contract::parameters(hir, kernel);
        let arguments: Vec<_> = params.iter().filter(|p| !p.compile_time).zip(&values).collect();
        let sets = table::sets_of(hir, kernel, &arguments, sets)?;
        let hosts: Vec<HostArg> = values.iter().map(host).collect();
        contract::plan_on(hir, kernel, &hosts, &sets, self.facts()).map_err(|e| vec![*e.diagnostic])?;
        let memory = Memory::new();
        let mut args = vec![];
        let mut outputs = vec![];
        for (param, value) in params.iter().filter(|p| !p.compile_time).zip(values) {
            let mutable = param.table.map_or(param.mutable, |t| t.mutable);
            let (argument, tensors) = place(value, &memory);
            args.push(argument);
            let named = |o: Output| (format!("{}{}", param.name, o.entry), o);
            outputs.extend(tensors.into_iter().filter(|_| mutable).map(named));
        }
        let notes = self.launch(kernel, &args, &sets, &memory)?;
        if self.is_checked() {
            outputs.iter().try_for_each(|output| self.written(kernel, output, &memory))?;
        }
        // One at a time: memory need not hold all results twice.
        let read = |(name, o): (String, Output)| {
            let bytes = memory.read(o.buffer).unwrap_or_default();
            memory.free(o.buffer);
            (name, Array { dtype: o.dtype, shape: o.shape, bytes })
        };
        Ok(Results { arrays: outputs.into_iter().map(read).collect(), notes })
    }
}

impl Session {
    /// Reports an uninitialized element of a result.
    fn written(&self, kernel: FnId, (name, output): &(String, Output), memory: &Memory) -> Result<(), Wrong> {
        let Some(byte) = memory.unwritten(output.buffer) else { return Ok(()) };
        let element = byte / output.dtype.bytes().max(1);
        let message = format!("element {element} of the result `{name}` was never written");
        let place = self.checked().hir.func(kernel).span;
        Err(vec![Diagnostic::error(codes::UNWRITTEN, place, message, "this kernel")])
    }
}

/// A value as the launch contract sees it, which converts numbers to the types of their parameters.
pub fn host(value: &Value) -> HostArg {
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
        // Addresses are integers of 64 bits on the host.
        Value::Table(entries) => {
            let n = i64::try_from(entries.len()).unwrap_or(i64::MAX);
            HostArg::Tensor { dtype: DType::U64, shape: vec![n], strides: vec![1] }
        }
        Value::Array(_) | Value::Made(_) | Value::Absent => HostArg::Absent,
    }
}

/// Brings a value to the device. Also where to read its tensors back.
pub(crate) fn place(value: Value, memory: &Memory) -> (Argument, Vec<Output>) {
    let host = host(&value);
    let mut outputs = vec![];
    let buffer = allocate(value, String::new(), memory, &mut outputs);
    let place = match (&host, buffer) {
        (HostArg::Tensor { shape, strides, .. }, Some(buffer)) => {
            Some(Arg::View { buffer, offset: 0, shape: shape.clone(), strides: strides.clone() })
        }
        (HostArg::Tensor { .. } | HostArg::Scalar(_) | HostArg::Absent, _) => None,
    };
    (Argument { host, place }, outputs)
}

/// The buffer of a tensor or of a table; `None` for what is neither.
fn allocate(value: Value, entry: String, memory: &Memory, outputs: &mut Vec<Output>) -> Option<BufferId> {
    let (buffer, dtype, shape) = match value {
        Value::Array(array) => (memory.alloc(array.bytes), array.dtype, array.shape),
        Value::Made(made) => {
            let buffer = match made.make() {
                Some(bytes) => memory.alloc(bytes),
                None => memory.alloc_unwritten(made.bytes()),
            };
            (buffer, made.dtype, made.shape)
        }
        Value::Table(entries) => {
            let mut bytes = vec![];
            for (i, value) in entries.into_iter().enumerate() {
                let buffer = allocate(value, format!("{entry}[{i}]"), memory, outputs);
                let address = buffer.and_then(|id| memory.address(id)).unwrap_or(0);
                bytes.extend(address.to_le_bytes());
            }
            return Some(memory.alloc(bytes));
        }
        Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Absent => return None,
    };
    outputs.push(Output { entry, buffer, dtype, shape });
    Some(buffer)
}

/// The strides, in elements, of a row-major tensor without gaps.
pub fn contiguous(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![1i64; shape.len()];
    let mut step = 1i64;
    for (stride, extent) in strides.iter_mut().zip(shape).rev() {
        *stride = step;
        step = step.saturating_mul((*extent).max(1));
    }
    strides
}
