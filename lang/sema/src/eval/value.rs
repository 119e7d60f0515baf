//! Compile-time values: [`CVal`], function values, and the values that a specialization gives to variables.
//!
//! A value carries no element type: the expression that it belongs to does. Integers are exact, floats are the exact
//! value of their (possibly narrower) type.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use tk_ops::table::Row;
use tk_ops::{DType, Scalar};

use crate::hir::{CVarId, FnId, HExpr, LocalId};
use crate::target::{CPU_SMEM, FactValue, Target};

/// A compile-time value.
#[derive(Clone, Debug, PartialEq)]
pub enum CVal {
    /// An integer of any type.
    Int(i128),
    /// A float of any type.
    Float(f64),
    /// A bool.
    Bool(bool),
    /// An element type.
    DType(DType),
    /// A list of extents.
    Shape(Vec<i64>),
    /// Text.
    Str(String),
    /// A tuple, or a struct by its fields in order.
    Tuple(Vec<CVal>),
    /// A function.
    Fn(FnVal),
    /// The extents and strides of a tensor argument of a launch.
    View(TensorArg),
    /// No value.
    Unit,
    /// An absent optional.
    None,
}

/// A tensor argument of a launch: extents and strides in elements.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct TensorArg {
    pub shape: Vec<i64>,
    pub strides: Vec<i64>,
}

/// A function value.
#[derive(Clone, Debug)]
pub enum FnVal {
    /// A known function and its compile-time arguments.
    Fn {
        /// The function.
        id: FnId,
        /// Its name, for display.
        name: String,
        /// Its compile-time arguments.
        cvars: BTreeMap<CVarId, CVal>,
    },
    /// A builtin.
    Builtin(&'static Row),
    /// A lambda.
    Lambda(Arc<Lambda>),
}

/// A lambda with what it captured.
#[derive(Clone, Debug)]
pub struct Lambda {
    /// Its parameters.
    pub params: Vec<LocalId>,
    /// Its result.
    pub body: HExpr,
    /// Compile-time variables around it; run-time ones are not captured.
    pub cvars: BTreeMap<CVarId, CVal>,
}

/// The values that a specialization gives to the variables of one function.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bindings {
    /// Compile-time variables.
    pub cvars: BTreeMap<CVarId, CVal>,
    /// The presence of optional parameters; those not listed are present.
    pub present: BTreeMap<LocalId, bool>,
    /// The machine that is compiled for.
    pub target: Target,
}

impl Bindings {
    /// Nothing is bound on this target.
    pub fn on(target: Target) -> Bindings {
        Bindings { target, ..Bindings::default() }
    }

    /// Those of a function that is called under these: the same target.
    pub(crate) fn inner(&self, cvars: BTreeMap<CVarId, CVal>) -> Bindings {
        Bindings { cvars, ..Bindings::on(self.target) }
    }
}

/// The run-time facts of one launch, for the expressions of a contract.
#[derive(Clone, Debug, PartialEq)]
pub struct HostValues {
    /// Values of the parameters: scalars, tensors, [`CVal::None`].
    pub locals: BTreeMap<LocalId, CVal>,
    /// `device.sms`: multiprocessors, or threads of the CPU.
    pub sms: i64,
    /// `device.smem`: bytes of shared memory of one program.
    pub smem: i64,
}

impl Default for HostValues {
    fn default() -> Self {
        HostValues { locals: BTreeMap::new(), sms: 1, smem: CPU_SMEM.into() }
    }
}

impl CVal {
    /// The value of a scalar. A NaN loses its bits.
    pub fn of_scalar(s: Scalar) -> CVal {
        match (s.as_int(), s.as_f64()) {
            (Some(i), _) => CVal::Int(i),
            (None, Some(f)) => CVal::Float(f),
            (None, None) => CVal::Bool(s.as_bool().unwrap_or(false)),
        }
    }

    /// A fact about a target.
    pub fn of_fact(f: FactValue) -> CVal {
        match f {
            FactValue::Bool(b) => CVal::Bool(b),
            FactValue::Int(i) => CVal::Int(i.into()),
        }
    }

    /// The scalar of an element type; `None` when the value is no number or bool.
    pub fn to_scalar(&self, dtype: DType) -> Option<Scalar> {
        match self {
            CVal::Int(i) => Some(Scalar::int(dtype, *i)),
            CVal::Float(f) => Some(Scalar::float(dtype, *f)),
            CVal::Bool(b) if dtype == DType::Bool => Some(Scalar::bool(*b)),
            CVal::Bool(_)
            | CVal::DType(_)
            | CVal::Shape(_)
            | CVal::Str(_)
            | CVal::Tuple(_)
            | CVal::Fn(_)
            | CVal::View(_)
            | CVal::Unit
            | CVal::None => None,
        }
    }

    /// The integer.
    pub fn as_int(&self) -> Option<i128> {
        if let CVal::Int(i) = self { Some(*i) } else { None }
    }

    /// The bool.
    pub fn as_bool(&self) -> Option<bool> {
        if let CVal::Bool(b) = self { Some(*b) } else { None }
    }

    /// Text that is equal for equal values only, and the same in every run.
    pub fn key(&self) -> String {
        match self {
            CVal::Float(f) => format!("f{:016x}", f.to_bits()),
            CVal::Str(s) => format!("{s:?}"),
            CVal::Tuple(items) => {
                format!("({})", items.iter().map(CVal::key).collect::<Vec<_>>().join(","))
            }
            CVal::Fn(f) => f.key(),
            CVal::View(v) => format!("view{:?}{:?}", v.shape, v.strides),
            CVal::Int(_) | CVal::Bool(_) | CVal::DType(_) | CVal::Shape(_) | CVal::Unit | CVal::None => {
                self.to_string()
            }
        }
    }
}

impl FnVal {
    /// Text that is equal for equal functions only, and the same in every run.
    pub fn key(&self) -> String {
        match self {
            FnVal::Fn { id, cvars, .. } => format!("fn{}{}", id.0, key_of(cvars)),
            FnVal::Builtin(row) => format!("builtin:{:?}:{}", row.receiver, row.name),
            FnVal::Lambda(l) => {
                let at = l.body.span;
                format!("lambda{}:{}:{}{}", at.file.0, at.start, at.end, key_of(&l.cvars))
            }
        }
    }
}

impl PartialEq for FnVal {
    fn eq(&self, other: &FnVal) -> bool {
        self.key() == other.key()
    }
}

/// Text of an assignment to compile-time variables that is equal for equal assignments only.
pub fn key_of(cvars: &BTreeMap<CVarId, CVal>) -> String {
    let items: Vec<String> = cvars.iter().map(|(id, v)| format!("{}={}", id.0, v.key())).collect();
    format!("[{}]", items.join(","))
}

/// A float as a user writes it.
pub(crate) fn show_float(v: f64) -> String {
    if v.is_nan() {
        "nan".into()
    } else if v.is_infinite() {
        if v > 0.0 { "inf".into() } else { "-inf".into() }
    } else {
        format!("{v:?}")
    }
}

impl fmt::Display for CVal {
    /// As a user writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CVal::Int(i) => write!(f, "{i}"),
            CVal::Float(v) => f.write_str(&show_float(*v)),
            CVal::Bool(b) => write!(f, "{b}"),
            CVal::DType(d) => write!(f, "{d}"),
            CVal::Shape(s) => write!(f, "{s:?}"),
            CVal::Str(s) => write!(f, "{s:?}"),
            CVal::Tuple(items) => {
                let text: Vec<String> = items.iter().map(CVal::to_string).collect();
                let comma = if items.len() == 1 { "," } else { "" };
                write!(f, "({}{comma})", text.join(", "))
            }
            CVal::Fn(FnVal::Fn { name, .. }) => f.write_str(name),
            CVal::Fn(FnVal::Builtin(row)) => f.write_str(row.name),
            CVal::Fn(FnVal::Lambda(_)) => f.write_str("|..|"),
            CVal::View(v) => write!(f, "view of shape {:?}", v.shape),
            CVal::Unit => f.write_str("()"),
            CVal::None => f.write_str("None"),
        }
    }
}
