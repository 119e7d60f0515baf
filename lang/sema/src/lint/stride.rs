//! W0503: the product of an `i32` parameter and another run-time value in the offset of a pointer, such as
//! `p + row * stride`, which wraps in a tensor of 2^31 elements.
//!
//! Products with a compile-time factor are left alone: `program_id(0) * BLOCK` is as large as the tensor is long, so
//! that the launcher would refuse it before it wraps. A product with the extent of another dimension has no such limit.

use std::collections::BTreeSet;

use tk_ops::{DType, ElementwiseOp, Op};
use tk_syntax::diag::Replacement;
use tk_syntax::{Span, codes};

use super::{Cx, Values, each, warning};
use crate::hir::{HArg, HExpr, HFn, HKind, HParam};
use crate::types::{DTerm, Elem, Ty};

pub(super) fn function(cx: &mut Cx, f: &HFn) {
    let mut offsets = vec![];
    each(&f.body, &mut |_| {}, &mut |e| offsets.extend(offset(e)));
    let mut search = Search { f, values: Values::of(f), seen: BTreeSet::new(), later: vec![], found: vec![] };
    offsets.into_iter().for_each(|e| search.look(e, true));
    while let Some(value) = search.later.pop() {
        search.look(value, false);
    }
    report(cx, &search.found);
}

/// The offset, if this adds one to a pointer.
fn offset(e: &HExpr) -> Option<&HExpr> {
    let HKind::Builtin(row, args) = &e.kind else { return None };
    let moves = matches!(row.op, Op::Elementwise(ElementwiseOp::Add | ElementwiseOp::Sub));
    match args.as_slice() {
        [HArg::Expr(p), HArg::Expr(by)]
            if moves && matches!(p.ty, Ty::Tile { elem: Elem::Ptr { .. }, .. }) =>
        {
            Some(by)
        }
        _ => None,
    }
}

/// A product that may wrap.
struct Found<'a> {
    product: &'a HExpr,
    /// The factor that is a parameter.
    factor: &'a HExpr,
    param: &'a HParam,
    /// Whether it is in the offset itself, so that a wider one fits there.
    direct: bool,
}

/// Warns of all products of a function at once.
fn report(cx: &mut Cx, found: &[Found]) {
    let Some((first, more)) = found.split_first() else { return };
    let mut params: Vec<(&str, Span)> = found.iter().map(|f| (f.param.name.as_str(), f.param.span)).collect();
    params.sort_by_key(|p| p.1.start);
    params.dedup();
    let names: Vec<String> = params.iter().map(|(name, _)| format!("`{name}`")).collect();
    let names = match names.split_last() {
        Some((last, before @ [_, ..])) => format!("{} and {last}", before.join(", ")),
        Some(_) | None => names.concat(),
    };
    let [this, wraps, the, it] = match more {
        [] => ["this product", "wraps", "the", "it"],
        [_, ..] => ["these products", "wrap", "each", "them"],
    };
    let message =
        format!("{this} of `i32` values {wraps} at 2^31, which {names} may be large enough to reach");
    let label =
        |f: &Found| if f.direct { "added to a pointer" } else { "a part of what is added to a pointer" };
    let mut d = warning(codes::NARROW_OFFSET, first.product.span, message, label(first));
    d = more.iter().fold(d, |d, f| d.label(f.product.span, label(f)));
    d = params.iter().fold(d, |d, (_, span)| d.label(*span, "this is `i32`"));
    d = d.note(format!("declare {names} as `i64`, or compute {the} offset in `i64`"));
    let wide = |f: &Found| Replacement { span: f.factor.span.after(), text: " as i64".to_string() };
    let edits: Vec<Replacement> = found.iter().filter(|f| f.direct).map(wide).collect();
    if !edits.is_empty() {
        d = d.fix_all(format!("compute {it} in `i64`"), edits);
    }
    cx.warn(d);
}

struct Search<'a> {
    f: &'a HFn,
    values: Values<'a>,
    /// Values of variables that are in an offset, and those of them still to visit.
    seen: BTreeSet<Span>,
    later: Vec<&'a HExpr>,
    found: Vec<Found<'a>>,
}

impl<'a> Search<'a> {
    /// Looks for products in what an offset is made of.
    fn look(&mut self, e: &'a HExpr, direct: bool) {
        match &e.kind {
            HKind::Builtin(row, args) => {
                let Op::Elementwise(op) = row.op else { return };
                if let [HArg::Expr(a), HArg::Expr(b)] = args.as_slice()
                    && op == ElementwiseOp::Mul
                {
                    self.product(e, a, b, direct);
                }
                // What only divides is no part of the offset.
                let divides = matches!(op, ElementwiseOp::Div | ElementwiseOp::Rem);
                for a in args.iter().take(if divides { 1 } else { args.len() }) {
                    match a {
                        HArg::Expr(e) => self.look(e, direct),
                        HArg::List(_) | HArg::Shape(_) | HArg::Word(_) | HArg::Default => {}
                    }
                }
            }
            // After a cast the product is an `i32` all the same, but the fix would be another.
            HKind::Cast(x) => self.look(x, direct && is_i32(&x.ty) == is_i32(&e.ty)),
            HKind::Index(x, _) | HKind::Transpose(x) => self.look(x, direct),
            HKind::Local(id) => {
                if let Some(value) = self.values.get(*id)
                    && self.seen.insert(value.span)
                {
                    self.later.push(value);
                }
            }
            _opaque => {}
        }
    }

    fn product(&mut self, e: &'a HExpr, a: &'a HExpr, b: &'a HExpr, direct: bool) {
        if !is_i32(&e.ty) || a.konst || b.konst {
            return;
        }
        let param = |x| self.param(x).map(|p| (x, p));
        if let Some((factor, param)) = param(b).or_else(|| param(a))
            && !self.found.iter().any(|f| f.product.span == e.span)
        {
            self.found.push(Found { product: e, factor, param, direct });
        }
    }

    /// The `i32` parameter that this is, under other names too.
    fn param(&self, mut e: &'a HExpr) -> Option<&'a HParam> {
        for _ in 0..MAX_NAMES {
            let HKind::Local(id) = &e.kind else { return None };
            if let Some(p) = self.f.params.iter().find(|p| p.local == *id) {
                return is_i32(&p.ty).then_some(p);
            }
            e = self.values.get(*id)?;
        }
        None
    }
}

/// The number of successive names by which a parameter is known.
const MAX_NAMES: usize = 16;

fn is_i32(t: &Ty) -> bool {
    matches!(t, Ty::Tile { elem: Elem::D(DTerm::Known(DType::I32)), .. })
}
