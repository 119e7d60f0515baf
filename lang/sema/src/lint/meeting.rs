//! W0505: the elements of a tile meet in one element of memory, in an atomic at a single position.
//!
//! `y.atomic_add([at], x)` looks like `y.store([at], x)`, whose position is the corner of a box. Atomics have a position for
//! each element, as `scatter` has: at one position all of the tile goes there.

use tk_ops::{AtomicOp, Op};
use tk_syntax::codes;

use super::{Cx, each, warning};
use crate::hir::{HArg, HExpr, HFn, HKind};
use crate::types::{Elem, Shape, Ty};

pub(super) fn function(cx: &mut Cx, f: &HFn) {
    let mut found = vec![];
    each(&f.body, &mut |_| {}, &mut |e| found.extend(meeting(e).map(|value| (e, value))));
    for (e, value) in found {
        let HKind::Builtin(row, _) = &e.kind else { continue };
        let Ty::Tile { shape: Shape::Dims(dims), .. } = &value.ty else { continue };
        let extents: Vec<String> = dims.iter().map(|d| crate::show::poly(cx.hir, d)).collect();
        let message = format!("`{}` combines all elements of this tile in one place", row.name);
        let mut d =
            warning(codes::MEETING, value.span, message, format!("this is `[{}]`", extents.join(", ")));
        d = match extents.as_slice() {
            [n] => d.note(position(cx, e, n)),
            _more => d.note(
                "each element needs a position: `(i + arange(0, M))[:, None]`, `(j + arange(0, N))[None, :]`",
            ),
        };
        if matches!(row.op, Op::Atomic(AtomicOp::Add)) {
            d = d.note("the sum of all is added by one atomic: `sum(..)`");
        }
        cx.warn(d);
    }
}

/// A sentence with the positions from the one that is written on, a position for each of `extent` elements.
fn position(cx: &Cx, e: &HExpr, extent: &str) -> String {
    let lanes = format!("arange(0, {extent})");
    let HKind::Builtin(_, args) = &e.kind else { return format!("`{lanes}` is a position for each element") };
    let of_element = |at: &HExpr| match (&at.kind, cx.sources.text(at.span)) {
        (HKind::Int(0), _) => lanes.clone(),
        (_, text) if text.contains(['&', '|', '^', '<', '>', '{', '\n']) => format!("({text}) + {lanes}"),
        (_, text) => format!("{text} + {lanes}"),
    };
    let at = args.iter().find_map(|a| match a {
        HArg::List(at) => Some(at.iter().collect::<Vec<_>>()),
        HArg::Expr(e) if matches!(e.ty, Ty::Tile { elem: Elem::Ptr { .. }, .. }) => Some(vec![e]),
        HArg::Expr(_) | HArg::Default | HArg::Shape(_) | HArg::Word(_) => None,
    });
    let text = match at.as_deref().and_then(<[_]>::split_last) {
        Some((last, [])) => of_element(last),
        // Along another axis it would be a column.
        Some((last, rows)) => {
            let rows: Vec<&str> = rows.iter().map(|r| cx.sources.text(r.span)).collect();
            let text = format!("[{}, {}]", rows.join(", "), of_element(last));
            return format!("a position for each element of a row is `{text}`");
        }
        None => lanes,
    };
    format!("a position for each element is `{text}`")
}

/// The tile of an atomic that changes one element of memory.
fn meeting(e: &HExpr) -> Option<&HExpr> {
    let HKind::Builtin(row, args) = &e.kind else { return None };
    let Op::Atomic(op) = row.op else { return None };
    if op == AtomicOp::Load {
        return None;
    }
    let single = |e: &HExpr| matches!(&e.ty, Ty::Tile { shape, .. } if shape.is_scalar());
    let is_one_place = args.iter().all(|a| match a {
        HArg::List(at) => at.iter().all(single),
        HArg::Expr(e) if matches!(e.ty, Ty::Tile { elem: Elem::Ptr { .. }, .. }) => single(e),
        HArg::Expr(_) | HArg::Default | HArg::Shape(_) | HArg::Word(_) => true,
    });
    let mut values = row.params.iter().zip(args).filter(|(p, _)| matches!(p.name, "value" | "compare"));
    let wide = values.find_map(|(_, a)| match a {
        HArg::Expr(e) => Some(e).filter(|e| !single(e)),
        HArg::List(_) | HArg::Default | HArg::Shape(_) | HArg::Word(_) => None,
    });
    wide.filter(|_| is_one_place)
}
