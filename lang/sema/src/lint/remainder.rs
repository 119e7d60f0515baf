//! W0506: `%` of what may be negative gives a position or the offset of a pointer, such as `(i - 1) % n`, or a slice of a
//! view begins or ends at a negated value, `x[:-n]`.
//!
//! `%` has the sign of its left side, so that the remainder is negative where that is: as a position it is outside, where
//! Python's counts on a ring. Reported is a left side that is a difference of non-negative numbers of which the first one
//! may be the smaller one, or has a negative literal, where nothing else adds to the remainder before it is a position.

use std::collections::BTreeSet;

use tk_ops::{ControlOp, CreateOp, ElementwiseOp, MemoryOp, Op};
use tk_syntax::{Span, codes};

use super::{Cx, Values, each, warning};
use crate::hir::{HArg, HExpr, HFn, HKind, HSlice, HStmtKind, LocalId};
use crate::types::{DTerm, Elem, Ty};

pub(super) fn function(cx: &mut Cx, f: &HFn) {
    let (mut places, mut guarded, mut counters) = (vec![], vec![], BTreeSet::new());
    let mut slices = vec![];
    each(
        &f.body,
        &mut |s| {
            if let HStmtKind::For { var, lo, .. } = &s.kind
                && matches!(lo.kind, HKind::Int(0))
            {
                counters.insert(*var);
            }
        },
        &mut |e| {
            places.extend(positions(e));
            slices.extend(negated_ends(e));
            if let HKind::If { cond, then, els } = &e.kind
                && !cond.konst
            {
                guarded.push(then.span);
                guarded.extend(els.iter().map(|b| b.span));
            }
        },
    );
    let search = Search { values: Values::of(f), counters };
    let within = |e: &HExpr, b: &Span| b.start <= e.span.start && e.span.end <= b.end;
    let is_free = |e: &HExpr| !guarded.iter().any(|b| within(e, b));
    slices.into_iter().filter(|(end, ..)| is_free(end)).for_each(|one| from_end(cx, one));
    let mut found: Vec<&HExpr> = vec![];
    for place in places.into_iter().filter(|p| is_free(p)) {
        let remainder = search.value(place).filter(|r| search.is_negative(r));
        let is_new = |r: &&HExpr| found.iter().all(|f| f.span != r.span);
        if let Some(r) = remainder.filter(is_new) {
            found.push(r);
        }
    }
    for e in found {
        report(cx, e);
    }
}

/// What is a position in a view, or an offset of a pointer. A mask may leave out those that are negative.
fn positions(e: &HExpr) -> Vec<&HExpr> {
    let HKind::Builtin(row, args) = &e.kind else { return vec![] };
    let mask = row.param("mask").and_then(|i| args.get(i));
    if mask.is_some_and(|m| !matches!(m, HArg::Default)) {
        return vec![];
    }
    let is_pointer = |e: &HExpr| matches!(e.ty, Ty::Tile { elem: Elem::Ptr { .. }, .. });
    match (row.op, args.as_slice()) {
        (Op::Elementwise(ElementwiseOp::Add), [HArg::Expr(p), HArg::Expr(by)]) if is_pointer(p) => vec![by],
        (
            Op::Atomic(_)
            | Op::Memory(
                MemoryOp::ViewLoad | MemoryOp::ViewStore | MemoryOp::ViewGather | MemoryOp::ViewScatter,
            ),
            [_view, HArg::List(at), ..],
        ) => at.iter().collect(),
        (_, _) => vec![],
    }
}

/// The ends of a slice of a view that are negated: the end, what is negated, the view and the axis.
fn negated_ends(e: &HExpr) -> Vec<(&HExpr, &HExpr, &HExpr, usize)> {
    let HKind::SubView(view, items) = &e.kind else { return vec![] };
    let ends = items.iter().enumerate().flat_map(|(axis, item)| match item {
        HSlice::Range(a, z) => [a, z].into_iter().flatten().map(|h| (&**h, axis)).collect(),
        HSlice::Whole | HSlice::At(_) => vec![],
    });
    ends.filter_map(|(end, axis)| match &end.kind {
        HKind::Builtin(row, args) if row.op == Op::Elementwise(ElementwiseOp::Neg) => match args.as_slice() {
            [HArg::Expr(k)] => Some((end, k, &**view, axis)),
            _ => None,
        },
        _other => None,
    })
    .collect()
}

/// Reports such an end.
fn from_end(cx: &mut Cx, (end, k, view, axis): (&HExpr, &HExpr, &HExpr, usize)) {
    let message = "this end of a slice may be negative, which no position is";
    let d = warning(codes::REMAINDER, end.span, message, "counts from 0, not from the end");
    let [k, view] = [k.span, view.span].map(|s| cx.sources.text(s));
    let is_plain = |t: &str| t.chars().all(|c| c.is_alphanumeric() || "_.[]".contains(c));
    cx.warn(match is_plain(k) && is_plain(view) {
        true => {
            let text = format!("{view}.shape[{axis}] - {k}");
            d.fix(format!("write `{text}`"), end.span, text)
        }
        false => d.note("from the end it is `x.shape[0] - n`"),
    });
}

/// The number of names, casts and operations that are looked through.
const MOST: usize = 8;

/// The operands of an operation of two.
fn operands(e: &HExpr) -> Option<(ElementwiseOp, &HExpr, &HExpr)> {
    let HKind::Builtin(row, args) = &e.kind else { return None };
    match (row.op, args.as_slice()) {
        (Op::Elementwise(op), [HArg::Expr(a), HArg::Expr(b)]) => Some((op, a, b)),
        (_, _) => None,
    }
}

/// The terms of a sum.
#[derive(Default)]
struct Terms<'a> {
    added: Vec<&'a HExpr>,
    subtracted: Vec<&'a HExpr>,
}

struct Search<'a> {
    values: Values<'a>,
    /// The variables of loops that count from 0.
    counters: BTreeSet<LocalId>,
}

impl<'a> Search<'a> {
    /// What an expression is by other names, without casts and added dimensions.
    fn value(&self, mut e: &'a HExpr) -> Option<&'a HExpr> {
        for _ in 0..MOST {
            e = match &e.kind {
                HKind::Local(id) => match self.values.get(*id) {
                    Some(value) => value,
                    None => return Some(e),
                },
                HKind::Cast(x) | HKind::Index(x, _) | HKind::Transpose(x) => x,
                _other => return Some(e),
            };
        }
        None
    }

    /// Whether this is a remainder of what may be negative: of a sum that subtracts from numbers that count from 0.
    fn is_negative(&self, e: &'a HExpr) -> bool {
        let signed =
            matches!(&e.ty, Ty::Tile { elem: Elem::D(DTerm::Known(d)), .. } if d.is_signed() && d.is_int());
        let Some((ElementwiseOp::Rem, a, _)) = operands(e).filter(|_| signed && !e.konst) else {
            return false;
        };
        let mut terms = Terms::default();
        self.terms(a, false, MOST, &mut terms);
        !terms.subtracted.is_empty() && terms.added.iter().all(|t| self.counts(t, MOST))
    }

    /// The terms of a sum, those that are added and those that are subtracted.
    fn terms(&self, e: &'a HExpr, minus: bool, depth: usize, out: &mut Terms<'a>) {
        let Some(e) = self.value(e).filter(|_| depth > 0) else {
            out.added.push(e);
            return;
        };
        match (operands(e), &e.kind) {
            (Some((op @ (ElementwiseOp::Add | ElementwiseOp::Sub), a, b)), _) => {
                self.terms(a, minus, depth - 1, out);
                self.terms(b, minus ^ (op == ElementwiseOp::Sub), depth - 1, out);
            }
            (None, HKind::Builtin(row, args)) if row.op == Op::Elementwise(ElementwiseOp::Neg) => {
                if let Some(HArg::Expr(x)) = args.first() {
                    self.terms(x, !minus, depth - 1, out);
                }
            }
            (None, HKind::Int(0)) => {}
            (None, HKind::Int(n)) if (*n < 0) != minus => out.subtracted.push(e),
            (_, _) if minus => out.subtracted.push(e),
            (_, _) => out.added.push(e),
        }
    }

    /// Whether a term counts from 0, so that what is subtracted may be more. An extent, a parameter or a number may be
    /// there to make the sum positive.
    fn counts(&self, e: &'a HExpr, depth: usize) -> bool {
        let Some(e) = self.value(e).filter(|_| depth > 0) else { return false };
        match (operands(e), &e.kind) {
            (Some((ElementwiseOp::Mul, a, b)), _) => self.counts(a, depth - 1) || self.counts(b, depth - 1),
            (Some((ElementwiseOp::Div | ElementwiseOp::Rem, a, _)), _) => self.counts(a, depth - 1),
            (_, HKind::Local(id)) => self.counters.contains(id),
            (_, HKind::Builtin(row, args)) => match (row.op, args.first()) {
                (Op::Create(CreateOp::Arange), Some(HArg::Expr(from))) => matches!(from.kind, HKind::Int(0)),
                (op, _) => op == Op::Control(ControlOp::ProgramId),
            },
            (_, _) => false,
        }
    }
}

fn report(cx: &mut Cx, e: &HExpr) {
    let Some((_, a, n)) = operands(e) else { return };
    let message = "this remainder may be negative, which no position is";
    let d = warning(codes::REMAINDER, e.span, message, "has the sign of its left side");
    let d = d.note("where Python's `-1 % n` is `n - 1`, this one is -1");
    let [whole, left, by] = [e.span, a.span, n.span].map(|s| cx.sources.text(s));
    let is_plain = !whole.contains('\n') && by.chars().all(|c| c.is_alphanumeric() || "_.[]".contains(c));
    if !is_plain {
        cx.warn(d.note("`(a % b + b) % b` has the sign of `b`"));
        return;
    }
    let bare = left.strip_prefix('(').and_then(|t| t.strip_suffix(')')).filter(|t| !t.contains(['(', ')']));
    let bare = bare.unwrap_or(left);
    // What is less than the divisor may be subtracted once.
    let by_one =
        operands(a).is_some_and(|(op, _, k)| op == ElementwiseOp::Sub && matches!(k.kind, HKind::Int(1)));
    let text = match by_one {
        true => format!("({bare} + {by}) % {by}"),
        false if bare == left && !left.contains(' ') => format!("({left} % {by} + {by}) % {by}"),
        false => format!("(({bare}) % {by} + {by}) % {by}"),
    };
    cx.warn(d.write_instead(e.span, text));
}
