//! The members of a `tune` list for one launch: each combination of values that the kernel can be launched with.

use std::collections::{BTreeMap, BTreeSet};

use super::sets::{SetValue, set_text};
use super::{Device, HostArg, LaunchError, Plan, plan_on};
use crate::eval::{Bindings, CVal, EvalResult, Evaluator};
use crate::hir::{CKind, CVarId, FnId, HExpr, HFn, HTuneRow, Hir};
use crate::target::Target;
use crate::types::Ty;

/// The most members that are looked at: what follows is left out.
const MOST: usize = 4096;
/// The most members that are proposed for a kernel without a list.
const MOST_PROPOSED: usize = 256;
/// Warps that are proposed.
const WARPS: [i128; 5] = [1, 2, 4, 8, 16];
/// The least extent of a tile that is proposed, and the largest.
const EXTENTS: std::ops::RangeInclusive<i128> = 8..=65536;

/// Values of compile-time parameters and launch options, by name.
pub type Values = Vec<(String, SetValue)>;

/// What is given by name, and what a member chooses beside it.
pub fn with_values(sets: &[(String, SetValue)], values: &[(String, SetValue)]) -> Values {
    let is_given = |name: &str| sets.iter().any(|(n, _)| n == name);
    sets.iter().chain(values.iter().filter(|(name, _)| !is_given(name))).cloned().collect()
}

/// A member, and the launch with it.
#[derive(Clone, Debug)]
pub struct Member {
    /// What it chooses, in the order of its row.
    pub values: Values,
    /// The launch with these values and those that were given.
    pub plan: Plan,
}

/// The candidates of a launch: the combinations of the `tune` list of a kernel whose conditions hold, or proposed ones
/// without a list; each once, and only those that agree with the values that were given by name. What can be launched
/// with a candidate, [`plan_on`] says. `default` is the launch without one.
///
/// # Errors
/// The list has no values for this launch.
pub fn candidates(
    hir: &Hir,
    kernel: FnId,
    sets: &[(String, SetValue)],
    device: Device,
    default: &Plan,
) -> Result<Vec<Values>, LaunchError> {
    let f = hir.func(kernel);
    let mut lists = vec![];
    match &f.contract.tune {
        Some(tune) => {
            for row in &tune.rows {
                combine(hir, f, row, &default.bindings, &mut lists)?;
            }
        }
        None => lists = proposed(hir, f, sets, device, &default.bindings),
    }
    let agrees = |(name, v): &(String, SetValue)| sets.iter().all(|(n, given)| n != name || given == v);
    let text = |(name, v): &(String, SetValue)| (name.clone(), v.to_string());
    let mut known = BTreeSet::new();
    lists.retain(|values| {
        values.iter().all(agrees) && known.insert(values.iter().map(text).collect::<Vec<_>>())
    });
    Ok(lists)
}

/// The members that a launch can choose among: the candidates with which it is not refused.
///
/// # Errors
/// The launch is refused with the defaults too.
pub fn members(
    hir: &Hir,
    kernel: FnId,
    args: &[HostArg],
    sets: &[(String, SetValue)],
    device: Device,
) -> Result<Vec<Member>, LaunchError> {
    let default = plan_on(hir, kernel, args, sets, device)?;
    let candidates = candidates(hir, kernel, sets, device, &default)?;
    let member = |values: Values| {
        let plan = plan_on(hir, kernel, args, &with_values(sets, &values), device).ok()?;
        Some(Member { values, plan })
    };
    Ok(candidates.into_iter().filter_map(member).collect())
}

/// Returns true if the `tune` list of a kernel has a member; `bindings` are those with its values.
pub fn is_listed(hir: &Hir, kernel: FnId, bindings: &Bindings, member: &Values) -> bool {
    let rows = hir.func(kernel).contract.tune.iter().flat_map(|tune| &tune.rows);
    let names = |entries: &[(String, _)]| entries.iter().map(|(n, _)| n).eq(member.iter().map(|(n, _)| n));
    let text = |e: &_| Evaluator::new(hir, bindings).expr(e).ok().and_then(|v| set_text(&v));
    rows.filter(|(entries, _)| names(entries)).any(|(entries, condition)| {
        let has = |((_, list), (_, v)): (&(String, Vec<_>), &(String, SetValue))| {
            list.iter().any(|e| text(e).is_some_and(|text| SetValue::parse(&text) == *v))
        };
        let holds = |c| Evaluator::new(hir, bindings).condition(c).unwrap_or(false);
        entries.iter().zip(member).all(has) && condition.as_ref().is_none_or(holds)
    })
}

/// What is tried for a kernel without a `tune` list: multiples by powers of two of its integers that have a constant
/// default and are powers of two, such as the extents of its tiles, and other numbers of warps.
fn proposed(
    hir: &Hir,
    f: &HFn,
    sets: &[(String, SetValue)],
    device: Device,
    default: &Bindings,
) -> Vec<Values> {
    let is_given = |name: &str| sets.iter().any(|(n, _)| n == name);
    let mut axes: Vec<(String, Vec<SetValue>)> = vec![];
    for id in &f.cparams {
        let c = hir.cvar(*id);
        let follows = f.params.iter().any(|p| mentions(&p.ty, *id));
        let (CKind::Int(_), Some(CVal::Int(v))) = (&c.kind, default.cvars.get(id)) else { continue };
        let is_extent = EXTENTS.contains(v) && v & (v - 1) == 0;
        // A default that follows from the arguments is rarely a choice.
        let is_constant = c.default.as_ref().is_some_and(|d| d.konst);
        if !is_constant || is_given(&c.name) || follows || !is_extent {
            continue;
        }
        let near = [v / 4, v / 2, *v, v * 2, v * 4];
        let values = near.into_iter().filter(|n| EXTENTS.contains(n)).map(SetValue::Int).collect();
        axes.push((c.name.clone(), values));
    }
    // The interpreter has none.
    if !is_given("warps") && device.target != Target::CPU {
        axes.push(("warps".into(), WARPS.map(SetValue::Int).to_vec()));
    }
    let mut lists: Vec<Values> = vec![vec![]];
    for (name, values) in axes {
        if lists.len() * values.len() > MOST_PROPOSED {
            continue;
        }
        let with = |known: &Values, v: &SetValue| {
            let mut next = known.clone();
            next.push((name.clone(), v.clone()));
            next
        };
        lists = lists.iter().flat_map(|l| values.iter().map(move |v| with(l, v))).collect();
    }
    lists.retain(|l| !l.is_empty());
    lists
}

/// Returns true if the rank or the elements of a tensor decide a parameter.
fn mentions(ty: &Ty, id: CVarId) -> bool {
    super::elem_param(ty) == Some(id) || super::bind::rank_param(ty).is_some_and(|(rank, _)| rank == id)
}

/// Adds the combinations of a row whose condition holds. Values and the condition may read the parameters before them,
/// and those that the row does not choose.
fn combine(
    hir: &Hir,
    f: &HFn,
    (entries, condition): &HTuneRow,
    default: &Bindings,
    out: &mut Vec<Values>,
) -> EvalResult<()> {
    for (values, bindings) in of_row(hir, f, entries, default)? {
        let holds = condition.as_ref().is_none_or(|c| {
            // A condition that has no value for a member does not choose it.
            Evaluator::new(hir, &bindings).condition(c).unwrap_or(false)
        });
        if holds && out.len() < MOST && !values.is_empty() {
            out.push(values);
        }
    }
    Ok(())
}

/// The combinations of the values of a row, and the compile-time values that each gives.
pub(crate) fn of_row(
    hir: &Hir,
    f: &HFn,
    entries: &[(String, Vec<HExpr>)],
    default: &Bindings,
) -> EvalResult<Vec<(Values, Bindings)>> {
    let mut all: Vec<(Values, BTreeMap<CVarId, CVal>)> = vec![(vec![], default.cvars.clone())];
    for (name, list) in entries {
        let id = f.cparams.iter().find(|c| hir.cvar(**c).name == *name);
        let mut next = vec![];
        for (values, known) in &all {
            for e in list {
                let bindings = Bindings { cvars: known.clone(), ..default.clone() };
                let v = Evaluator::new(hir, &bindings).expr(e)?;
                let Some(text) = set_text(&v) else { continue };
                let (mut values, mut known) = (values.clone(), known.clone());
                values.push((name.clone(), SetValue::parse(&text)));
                if let Some(id) = id {
                    known.insert(*id, v);
                }
                next.push((values, known));
                if next.len() > MOST {
                    break;
                }
            }
        }
        all = next;
    }
    let bind = |(values, cvars)| (values, Bindings { cvars, ..default.clone() });
    Ok(all.into_iter().map(bind).collect())
}
