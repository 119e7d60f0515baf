//! The cases of W0504: a walk over the function for either value of each bool that decides an `if` at compile time.
//!
//! A bool that a launch decides, as `EVEN: bool = n % B == 0` is, may say that there is no padding, so it makes no cases.

use tk_ops::{ElementwiseOp, Op, Scalar};
use tk_syntax::Span;

use super::eval::Eval;
use super::report::Found;
use super::state::State;
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

/// Whether a load with this `other` mends what was found: nothing counts in that reduction, for certain, and in no other one
/// in which nothing did.
pub(super) fn is_mended_by(hir: &Hir, f: &HFn, one: &Found, load: &HExpr, other: Scalar) -> bool {
    let Some(before) = walk(hir, f, one.case) else { return false };
    let mut eval = Eval::new(hir, f, FUEL, one.case);
    eval.trial = Some(Trial { load: load.span, other, place: one.place.span, certain: true });
    eval.function();
    let certain = eval.trial.as_ref().is_some_and(|t| t.certain);
    let Some(after) = eval.finish() else { return false };
    let is_old =
        |a: &Found| a.place.span != one.place.span && before.iter().any(|b| b.place.span == a.place.span);
    certain && after.iter().all(is_old)
}

/// A walk that takes another value for the padding of a load.
pub(super) struct Trial {
    load: Span,
    other: Scalar,
    /// The reduction that should be mended.
    place: Span,
    /// Whether the padding is known there.
    certain: bool,
}

impl Trial {
    /// The value of the padding of a load, if it is the one that is tried.
    pub fn other(&self, load: &HExpr) -> Option<Scalar> {
        (load.span == self.load).then_some(self.other)
    }

    /// Notes what is known of the padding of a dimension in a reduction.
    pub fn look(&mut self, place: &HExpr, state: State) {
        let known = matches!(state, State::Same | State::Data | State::Known(_));
        self.certain &= known || place.span != self.place;
    }
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
