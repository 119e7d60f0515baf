//! Attributes: the compile-time facts of an instruction, a short list sorted by name.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use tk_ops::scalar::Scalar;

use crate::target_op::TargetOp;

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Attr {
    /// `axis = 1`
    Int(i64),
    /// `keep = true`
    Bool(bool),
    /// `perm = [1, 0]`
    Ints(Vec<i64>),
    /// `callee = "f"`, quoted.
    Str(String),
    /// `value = 1.5 : f32`
    Scalar(Scalar),
}

/// Attributes by name, in name order; of an operation of a code generator, its own type instead.
#[derive(Clone, Debug, Default)]
pub struct Attrs {
    named: Vec<(&'static str, Attr)>,
    target: Option<Arc<dyn TargetOp>>,
}

/// Every attribute name that the IR knows; text with another name does not parse.
pub const NAMES: &[&str] = &[
    "absent",
    "atol",
    "axes",
    "axis",
    "bins",
    "bounded",
    "cache",
    "callee",
    "cargs",
    "case",
    "code",
    "compares",
    "constraints",
    "descending",
    "evict",
    "fast",
    "flatten",
    "k",
    "merge",
    "message",
    "order",
    "ordered",
    "pack",
    "part",
    "path",
    "perm",
    "precision",
    "ragged",
    "reverse",
    "rtol",
    "scope",
    "seed",
    "shape",
    "shifted",
    "specialize",
    "stages",
    "start",
    "starts",
    "turns",
    "unroll",
    "value",
    "values",
    "vector",
];

impl Attrs {
    /// No attributes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Those of an operation of a code generator.
    pub fn of_target(op: Arc<dyn TargetOp>) -> Self {
        Attrs { named: vec![], target: Some(op) }
    }

    /// The operation of a code generator that these belong to.
    pub fn target(&self) -> Option<&dyn TargetOp> {
        self.target.as_deref()
    }

    /// Adds or replaces an attribute; `name` must be in [`NAMES`].
    pub fn set(&mut self, name: &'static str, value: Attr) {
        match self.named.binary_search_by(|(n, _)| (*n).cmp(name)) {
            Ok(i) => {
                if let Some(slot) = self.named.get_mut(i) {
                    slot.1 = value;
                }
            }
            Err(i) => self.named.insert(i, (name, value)),
        }
    }

    /// The same with an attribute added.
    pub fn with(mut self, name: &'static str, value: Attr) -> Self {
        self.set(name, value);
        self
    }

    /// The attribute with this name.
    pub fn get(&self, name: &str) -> Option<&Attr> {
        self.named.iter().find(|(n, _)| *n == name).map(|(_, a)| a)
    }

    /// An integer attribute.
    pub fn int(&self, name: &str) -> Option<i64> {
        match self.get(name) {
            Some(Attr::Int(i)) => Some(*i),
            _ => None,
        }
    }

    /// A list attribute.
    pub fn ints(&self, name: &str) -> Option<&[i64]> {
        match self.get(name) {
            Some(Attr::Ints(i)) => Some(i),
            _ => None,
        }
    }

    /// A bool attribute; absent is false.
    pub fn flag(&self, name: &str) -> bool {
        matches!(self.get(name), Some(Attr::Bool(true)))
    }

    /// A text attribute.
    pub fn str(&self, name: &str) -> Option<&str> {
        match self.get(name) {
            Some(Attr::Str(s)) => Some(s),
            _ => None,
        }
    }

    /// Names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Attr)> {
        self.named.iter().map(|(n, a)| (*n, a))
    }
}

impl PartialEq for Attrs {
    fn eq(&self, other: &Attrs) -> bool {
        let target = match (self.target(), other.target()) {
            (Some(a), Some(b)) => a.name() == b.name() && a.fields() == b.fields(),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        target && self.named == other.named
    }
}

impl Eq for Attrs {}

impl Hash for Attrs {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.named.hash(state);
        if let Some(op) = self.target() {
            op.name().hash(state);
            op.fields().hash(state);
        }
    }
}
