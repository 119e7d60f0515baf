//! The clause `tune(..)` for a launcher without a compiler: its key as closed expressions, and what it chooses.

use super::{Closed, Closer};
use crate::eval::{Bindings, EvalResult};
use crate::hir::{FnId, Hir};

/// The key of [`crate::contract::Plan`] under these values of compile-time parameters; empty without a `tune` list.
///
/// # Errors
/// A part of the key has no closed form (E1005).
pub fn close_key(hir: &Hir, kernel: FnId, bindings: &Bindings) -> EvalResult<Vec<Closed>> {
    let mut closer = Closer::of_kernel(hir, kernel, bindings);
    let key = hir.func(kernel).contract.tune.iter().flat_map(|tune| &tune.key);
    key.map(|e| closer.number(e)).collect()
}

/// The parameters and launch options that a `tune` list chooses, each once.
pub fn tuned_names(hir: &Hir, kernel: FnId) -> Vec<&str> {
    let rows = hir.func(kernel).contract.tune.iter().flat_map(|tune| &tune.rows);
    let mut names: Vec<&str> = rows.flat_map(|(entries, _)| entries).map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names
}
