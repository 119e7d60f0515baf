//! W0301: a quotient of integers becomes a float, `(a / b) as f32`, when its fraction is gone.
//!
//! A quotient with a name, `let row = i / n;`, may be cast silently, and so may one by a literal: half of an even position is
//! exact.

use tk_ops::{ElementwiseOp, Op};
use tk_syntax::{Diagnostic, Span, codes};

use super::{Cx, each, warning};
use crate::hir::{HArg, HExpr, HFn, HKind};
use crate::types::{DTerm, Elem, Ty};

pub(super) fn function(cx: &mut Cx, f: &HFn) {
    let mut found = vec![];
    each(&f.body, &mut |_| {}, &mut |e| found.extend(lost(e).map(|parts| (e, parts))));
    for (e, (quotient, a, b)) in found {
        let Ty::Tile { elem, .. } = &e.ty else { continue };
        let to = crate::show::elem(cx.hir, elem);
        let message = format!("`/` of integers drops the fraction before the cast to `{to}`");
        let d = warning(codes::FRACTION, quotient.span, message, "this is an integer");
        let d = d.note("a quotient that is meant to be whole gets a name, `let q = a / b;`");
        let d = cast_operands(cx, d, e, [a, b], &to);
        cx.warn(d);
    }
}

/// The quotient, and what is divided by what, if this is a cast of a quotient of integers to a float.
fn lost(e: &HExpr) -> Option<(&HExpr, &HExpr, &HExpr)> {
    let HKind::Cast(quotient) = &e.kind else { return None };
    let HKind::Builtin(row, args) = &quotient.kind else { return None };
    let [HArg::Expr(a), HArg::Expr(b)] = args.as_slice() else { return None };
    let divides = row.op == Op::Elementwise(ElementwiseOp::Div);
    let is_lost = is_of(&e.ty, tk_ops::DType::is_float) && is_of(&quotient.ty, tk_ops::DType::is_int);
    (divides && is_lost && !matches!(b.kind, HKind::Int(_))).then_some((quotient, a, b))
}

fn is_of(ty: &Ty, class: fn(tk_ops::DType) -> bool) -> bool {
    matches!(ty, Ty::Tile { elem: Elem::D(DTerm::Known(d)), .. } if class(*d))
}

/// Offers `(a as f32 / b as f32)`, where both operands are names or calls.
fn cast_operands(cx: &Cx, d: Diagnostic, cast: &HExpr, [a, b]: [&HExpr; 2], to: &str) -> Diagnostic {
    let is_plain = |h: &HExpr| match &h.kind {
        HKind::Builtin(row, _) => !tk_ops::rows::is_operator(row),
        HKind::Local(_) | HKind::CVar(_) | HKind::Const(_) | HKind::Int(_) | HKind::Call { .. } => true,
        HKind::Extent(..) => true,
        _other => false,
    };
    let between = cx.sources.text(Span { start: a.span.end, end: b.span.start, ..a.span });
    if between.trim() != "/" || !is_plain(a) || !is_plain(b) {
        return d.note(format!("for the fraction, the operands are cast: `a as {to} / b as {to}`"));
    }
    let [a, b] = [a, b].map(|h| cx.sources.text(h.span));
    d.fix("cast the operands", cast.span, format!("({a} as {to} / {b} as {to})"))
}
