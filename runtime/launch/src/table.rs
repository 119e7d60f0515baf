//! Tables of addresses as arguments of a launch: tensors for a `view[*T, 1]` or a `**T`.
//!
//! Guarantees that every entry of a table has an element type that the kernel takes there, and that a `T` of which only
//! tables are made has the type of their entries.

use tk_ops::{DType, DTypeSet};
use tk_sema::contract::{HostParam, SetValue};
use tk_sema::hir::{FnId, Hir};
use tk_sema::types::DTerm;
use tk_syntax::{Diagnostic, codes};

use crate::emit::types_of;
use crate::run::Value;
use crate::session::Wrong;

/// The element types that the tensors of a table may have.
pub fn entry_types(hir: &Hir, param: &HostParam, sets: &[(String, SetValue)]) -> Option<DTypeSet> {
    param.table.map(|t| types_of(hir, t.element, sets))
}

/// The compile-time parameters of a launch: those that are given, and element types that follow from entries of tables.
pub(crate) fn sets_of(
    hir: &Hir,
    kernel: FnId,
    arguments: &[(&HostParam, &Value)],
    sets: &[(String, SetValue)],
) -> Result<Vec<(String, SetValue)>, Wrong> {
    let mut sets = sets.to_vec();
    let span = hir.func(kernel).span;
    let refuse = |message: String| Err(vec![Diagnostic::error(codes::LAUNCH_DTYPE, span, message, "")]);
    for (param, value) in arguments {
        let Value::Table(entries) = value else { continue };
        let (name, kernel, ty) = (&param.name, &hir.func(kernel).name, &param.ty);
        let Some(table) = param.table else {
            return refuse(format!("`{name}` is a list of tensors, but kernel `{kernel}` takes `{ty}`"));
        };
        let leaves = leaves(entries, table.depth);
        for (i, leaf) in leaves.iter().enumerate() {
            let Some(dtype) = *leaf else {
                return refuse(format!(
                    "entry {i} of `{name}` is no tensor, but kernel `{kernel}` takes `{ty}`"
                ));
            };
            if let DTerm::Param(id) = table.element {
                let cvar = &hir.cvar(id).name;
                if !sets.iter().any(|(n, _)| n == cvar) {
                    sets.push((cvar.clone(), SetValue::DType(dtype)));
                }
            }
            if !types_of(hir, table.element, &sets).has(dtype) {
                let wanted = types_of(hir, table.element, &sets);
                return refuse(format!(
                    "entry {i} of `{name}` has element type {dtype}, but kernel `{kernel}` takes `{ty}`, here of {wanted}"
                ));
            }
        }
    }
    Ok(sets)
}

/// The element types of the tensors below a table of tables; `None` for anything else, or at another depth.
fn leaves(entries: &[Value], depth: u32) -> Vec<Option<DType>> {
    let below = |value: &Value| match value {
        Value::Table(entries) if depth > 1 => leaves(entries, depth - 1),
        value if depth == 1 => vec![value.tensor().map(|(dtype, _)| dtype)],
        _ => vec![None],
    };
    entries.iter().flat_map(below).collect()
}
