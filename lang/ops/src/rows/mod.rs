//! **the op table**: every builtin, a file per class.
//!
//! Guarantees (tested) that names are unique per receiver, that every row has documentation and an example, and that
//! every default can stand where its parameter is.
//!
//! An example that starts with `kernel` is the text of a whole file; any other is the body of a `test`.

mod atomics;
mod control;
mod create;
mod dot;
pub(crate) mod elementwise;
mod memory;
mod random;
mod reduce;
mod scan;
mod shape;
mod testing;

use crate::table::{BuiltinParam, ParamKind, Receiver, Row};

/// The classes in the order of the reference: a title and its rows.
pub const CLASSES: &[(&str, &[Row])] = &[
    ("Program model", control::PROGRAM),
    ("Creation", create::ROWS),
    ("Shape", shape::ROWS),
    ("Memory", memory::ROWS),
    ("Operators", elementwise::OPERATORS),
    ("Math", elementwise::MATH),
    ("Reductions", reduce::ROWS),
    ("Scans, sorting and counting", scan::ROWS),
    ("Matrix products", dot::ROWS),
    ("Atomics", atomics::ROWS),
    ("Random numbers", random::ROWS),
    ("Control", control::FLOW),
    ("Hints", control::HINTS),
    ("Debugging", control::DEBUG),
    ("Machine", control::MACHINE),
    ("Tests", testing::ROWS),
];

/// Every row, in the order of the reference.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    CLASSES.iter().flat_map(|(_, rows)| *rows)
}

/// The row with this name and receiver. Operators are found by their symbol: `+`, `==`, `unary -`, `as`.
pub fn find(name: &str, receiver: Receiver) -> Option<&'static Row> {
    rows().find(|r| r.name == name && r.receiver == receiver)
}

/// The plain functions that can be called by name.
pub fn functions() -> impl Iterator<Item = &'static Row> {
    methods(Receiver::None).filter(|r| !is_operator(r))
}

/// The rows of a receiver.
pub fn methods(receiver: Receiver) -> impl Iterator<Item = &'static Row> {
    rows().filter(move |r| r.receiver == receiver)
}

/// Whether a row is written as an operator, not as a call.
pub fn is_operator(row: &Row) -> bool {
    row.name == "as" || !row.name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// A required parameter.
const fn req(name: &'static str, kind: ParamKind) -> BuiltinParam {
    BuiltinParam { name, kind, default: None }
}

/// A parameter with a default.
const fn opt(name: &'static str, kind: ParamKind, default: &'static str) -> BuiltinParam {
    BuiltinParam { name, kind, default: Some(default) }
}

/// How loads use the caches.
const LOAD_CACHE: ParamKind = ParamKind::Word(&["all", "global", "streaming", "volatile"]);
/// How stores use the caches.
const STORE_CACHE: ParamKind = ParamKind::Word(&["back", "global", "streaming", "through"]);
/// How long a line stays in the cache.
const EVICT: ParamKind = ParamKind::Word(&["normal", "first", "last"]);
/// What an atomic orders.
const ORDER: ParamKind = ParamKind::Word(&["relaxed", "acquire", "release", "acq_rel"]);
/// Who sees the order.
const SCOPE: ParamKind = ParamKind::Word(&["block", "device", "system"]);
