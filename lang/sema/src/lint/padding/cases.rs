//! The cases of W0504: a walk over the function for either value of each bool that decides an `if` at compile time.
//!
//! A bool that a launch decides, as `EVEN: bool = n % B == 0` is, may say that there is no padding, so it makes no cases.

use tk_ops::{ElementwiseOp, Op};

use super::eval::Eval;
use super::report::Found;
use super::{FUEL, cvar};
use crate::hir::{CVarId, HArg, HExpr, HFn, HKind, Hir};
use crate::lint::each;

/// The most bools that make cases; each takes two walks.
const MOST: usize = 4;

/// A bool of a function and its value.
pub(super) type Case = Option<(CVarId, bool)>;

/// The findings of all cases, one for each place.
pub(super) fn found<'a>(hir: &'a Hir, f: &'a HFn) -> Vec<Found<'a>> {
    let Some(mut all) = walk(hir, f, None) else { return vec![] };
    for id in deciding(hir, f).into_iter().take(MOST) {
        for value in [true, false] {
            let is_new = |one: &Found| all.iter().all(|f| f.place.span != one.place.span);
            let of_case = walk(hir, f, Some((id, value))).unwrap_or_default();
            let new: Vec<Found> = of_case.into_iter().filter(is_new).collect();
            all.extend(new);
        }
    }
    all
}

fn walk<'a>(hir: &'a Hir, f: &'a HFn, case: Case) -> Option<Vec<Found<'a>>> {
    let mut eval = Eval::new(hir, f, FUEL, case);
    eval.function();
    eval.finish()
}

/// The bools that decide an `if` of the function and have a literal for a default.
fn deciding(hir: &Hir, f: &HFn) -> Vec<CVarId> {
    let literal =
        |c: &CVarId| hir.cvar(*c).default.as_ref().is_some_and(|d| matches!(d.kind, HKind::Bool(_)));
    let mut found = vec![];
    each(&f.body, &mut |_| {}, &mut |e| {
        if let HKind::If { cond, .. } = &e.kind
            && let Some((id, _)) = asked(cond).filter(|(id, _)| literal(id))
            && !found.contains(&id)
        {
            found.push(id);
        }
    });
    found
}

/// The bool that a condition asks for, and the value of it that takes the first arm.
fn asked(cond: &HExpr) -> Option<(CVarId, bool)> {
    match &cond.kind {
        HKind::Builtin(row, args) => match (row.op, args.as_slice()) {
            (Op::Elementwise(ElementwiseOp::Not), [HArg::Expr(of)]) => asked(of).map(|(id, v)| (id, !v)),
            (_, _) => None,
        },
        _other => cvar(cond).map(|id| (id, true)),
    }
}

/// Whether a condition takes the first arm in a case, if the case tells.
pub(super) fn decides(case: Case, cond: &HExpr) -> Option<bool> {
    let (of, value) = case?;
    asked(cond).filter(|(id, _)| *id == of).map(|(_, then)| value == then)
}
