//! The instances of an `export`: every combination of its values, with defaults and requirements evaluated.

use std::collections::BTreeMap;

use tk_syntax::{Diagnostic, codes};

use super::sets::{SetValue, set_text};
use crate::eval::{Bindings, CVal, EvalResult, Evaluator};
use crate::hir::{CVarId, HExport, Hir};
use crate::target::Target;
use crate::types::Ty;

/// The most instances of one `export`: a thousand binaries of one kernel are a mistake in its lists.
const MAX_INSTANCES: usize = 1000;

/// The values of the compile-time parameters of every instance for a target, in the order of the lists: the last one varies first.
///
/// What has no value without a launch, or breaks a `require` over compile-time values, is a diagnostic.
pub fn instances(hir: &Hir, export: &HExport, target: Target) -> EvalResult<Vec<BTreeMap<CVarId, CVal>>> {
    let f = hir.func(export.kernel);
    let count = export.values.iter().try_fold(1usize, |n, (_, list)| n.checked_mul(list.len()));
    if count.is_none_or(|n| n > MAX_INSTANCES) {
        let n = count.map_or("too many".to_string(), |n| n.to_string());
        let message = format!("this exports {n} instances of `{}`, the limit is {MAX_INSTANCES}", f.name);
        return Err(Box::new(Diagnostic::error(codes::CLAUSE, export.span, message, "lists multiply")));
    }
    let mut all: Vec<BTreeMap<CVarId, CVal>> = vec![BTreeMap::new()];
    for (id, list) in &export.values {
        let mut next = vec![];
        for known in &all {
            for e in list {
                let v = Evaluator::new(hir, &Bindings::on(target)).expr(e)?;
                let mut values = known.clone();
                values.insert(*id, v);
                next.push(values);
            }
        }
        all = next;
    }
    let bindings = |cvars| Bindings { cvars, ..Bindings::on(target) };
    all.into_iter().map(|values| complete(hir, export, bindings(values))).collect()
}

/// The values of an instance as arguments that are given by name.
pub fn as_sets(hir: &Hir, values: &BTreeMap<CVarId, CVal>) -> Vec<(String, SetValue)> {
    let value = |v: &CVal| set_text(v).map(|text| SetValue::parse(&text));
    values.iter().filter_map(|(id, v)| Some((hir.cvar(*id).name.clone(), value(v)?))).collect()
}

/// Adds defaults and checks requirements.
fn complete(hir: &Hir, export: &HExport, mut bindings: Bindings) -> EvalResult<BTreeMap<CVarId, CVal>> {
    let f = hir.func(export.kernel);
    for id in &f.cparams {
        if bindings.cvars.contains_key(id) {
            continue;
        }
        let c = hir.cvar(*id);
        let Some(default) = c.default.as_ref().filter(|d| d.konst) else {
            let message = format!(
                "`{}` of `{}` is derived from the launch, so an export must give its value",
                c.name, f.name
            );
            let label = format!("as in `{}[{} = ..]`", f.name, c.name);
            let d = Diagnostic::error(codes::CANNOT_INFER, export.span, message, label);
            return Err(Box::new(d.label(c.span, "declared here")));
        };
        let v = Evaluator::new(hir, &bindings).expr(default)?;
        bindings.cvars.insert(*id, v);
    }
    // The ranks of views must be those of some tensor; an optional view may be absent.
    for p in f.params.iter().filter(|p| matches!(p.ty, Ty::View { .. })) {
        let ty = Evaluator::new(hir, &bindings).ty(&p.ty, p.span);
        ty.map_err(|d| Box::new(d.label(export.span, "exported here")))?;
    }
    for r in f.contract.require.iter().filter(|r| r.compile_time) {
        if Evaluator::new(hir, &bindings).condition(&r.cond)? {
            continue;
        }
        let shown: Vec<String> =
            bindings.cvars.iter().map(|(id, v)| format!("{} = {v}", hir.cvar(*id).name)).collect();
        let message = format!("`{}[{}]` violates `{}`", f.name, shown.join(", "), r.text);
        let d = Diagnostic::error(codes::INSTANCE, export.span, message, "exported here");
        return Err(Box::new(d.label(r.cond.span, "required here")));
    }
    Ok(bindings.cvars)
}
