//! Attributes: the compile-time facts of an instruction, a short list sorted by name.

use tk_ops::scalar::Scalar;

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

/// Attributes by name, in name order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Attrs(Vec<(&'static str, Attr)>);

/// Every attribute name that the IR knows; text with another name does not parse.
pub const NAMES: &[&str] = &[
    "absent",
    "ahead",
    "async",
    "atol",
    "axes",
    "axis",
    "bases",
    "bases_a",
    "bases_b",
    "bins",
    "buffer",
    "buffer_stages",
    "buffers",
    "bytes",
    "cache",
    "callee",
    "cargs",
    "chunked",
    "code",
    "constraints",
    "count",
    "descending",
    "elem",
    "evict",
    "fast",
    "flatten",
    "k",
    "matrix",
    "merge",
    "message",
    "once",
    "order",
    "ordered",
    "own",
    "pack",
    "part",
    "path",
    "pending",
    "perm",
    "pipeline_stages",
    "precision",
    "remote",
    "reverse",
    "rtol",
    "scope",
    "seed",
    "shape",
    "span",
    "specialize",
    "stages",
    "start",
    "starts",
    "strides",
    "unroll",
    "value",
    "values",
    "warps",
    "when",
];

impl Attrs {
    /// No attributes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds or replaces an attribute; `name` must be in [`NAMES`].
    pub fn set(&mut self, name: &'static str, value: Attr) {
        match self.0.binary_search_by(|(n, _)| (*n).cmp(name)) {
            Ok(i) => {
                if let Some(slot) = self.0.get_mut(i) {
                    slot.1 = value;
                }
            }
            Err(i) => self.0.insert(i, (name, value)),
        }
    }

    /// The same with an attribute added.
    pub fn with(mut self, name: &'static str, value: Attr) -> Self {
        self.set(name, value);
        self
    }

    /// The attribute with this name.
    pub fn get(&self, name: &str) -> Option<&Attr> {
        self.0.iter().find(|(n, _)| *n == name).map(|(_, a)| a)
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
        self.0.iter().map(|(n, a)| (*n, a))
    }
}
