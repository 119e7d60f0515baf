//! `view(p, shape, strides)`: lists of extents and strides, written out or of another view.

use tk_ops::DType;
use tk_syntax::ast::{self, ExprKind};
use tk_syntax::{Diagnostic, codes};

use super::Slots;
use crate::check::cx::Cx;
use crate::hir::{HArg, HExpr, HKind};
use crate::poly::Poly;
use crate::types::{DTerm, Elem, Ty};

impl Cx<'_> {
    pub(super) fn view_of(&mut self, s: &Slots) -> Option<HExpr> {
        let p = self.value_slot(s, "ptr")?;
        let Ty::Tile { elem: Elem::Ptr { pointee, mutable }, shape } = p.ty.clone() else {
            let shown = self.show(&p.ty);
            self.error(
                codes::TYPE_MISMATCH,
                p.span,
                format!("`view` needs a pointer, not `{shown}`"),
                super::super::this_is(&shown),
            );
            return None;
        };
        if !shape.is_scalar() {
            let shown = self.show(&p.ty);
            self.error(
                codes::TYPE_MISMATCH,
                p.span,
                format!("`view` needs one pointer, not `{shown}`"),
                super::super::this_is(&shown),
            );
            return None;
        }
        let (shape, strides) = (s.get("shape")?, s.get("strides")?);
        let lists = [shape, strides].map(|e| {
            let array = matches!(e.kind, ExprKind::Array(_));
            if array { None } else { Some(self.value(e)) }
        });
        let [shape, strides] = match lists {
            // The extents and strides of views whose rank is a parameter.
            [Some(shape), Some(strides)]
                if matches!((&shape.ty, &strides.ty), (Ty::List(..), Ty::List(..))) =>
            {
                return self.view_of_lists(s, (p, *pointee, mutable), shape, strides);
            }
            [a, b] => {
                let mut each = |e: &ast::Expr, h: Option<HExpr>, what: &str| match h {
                    Some(h) => self.ints_of(h, what),
                    None => self.int_list(e, what),
                };
                [each(shape, a, "the shape of a view")?, each(strides, b, "the strides of a view")?]
            }
        };
        if shape.is_empty() || shape.len() > crate::check::types::MAX_RANK {
            self.error(
                codes::TILE_RANK,
                s.span,
                format!("a view has 1 to {} dimensions, not {}", crate::check::types::MAX_RANK, shape.len()),
                format!("rank {}", shape.len()),
            );
            return None;
        }
        if shape.len() != strides.len() {
            let (m, n) = (shape.len(), strides.len());
            self.error(
                codes::RANK_MISMATCH,
                s.span,
                format!("the shape has {m} extents, but there are {n} strides"),
                "",
            );
            return None;
        }
        let wide = shape.iter().any(|h| self.dterm_of(&h.ty) == Some(DTerm::Known(DType::I64)));
        let cast = |cx: &mut Self, list: Vec<HExpr>, d: DType, what: &str| -> Option<Vec<HExpr>> {
            list.into_iter()
                .map(|h| {
                    let h = cx.coerce(h, &Ty::scalar(d), what);
                    (!h.ty.is_err()).then_some(h)
                })
                .collect()
        };
        let shape = cast(self, shape, if wide { DType::I64 } else { DType::I32 }, "an extent")?;
        let strides = cast(self, strides, DType::I64, "a stride")?;
        let ty = Ty::View { elem: *pointee, rank: Poly::int(shape.len() as i128), mutable, wide };
        Some(self.mk(
            HKind::Builtin(s.row, vec![HArg::Expr(p), HArg::List(shape), HArg::List(strides)]),
            ty,
            s.span,
            false,
        ))
    }

    /// `view(p, x.shape, x.strides)` where the rank of `x` is a parameter.
    fn view_of_lists(
        &mut self,
        s: &Slots,
        (p, elem, mutable): (HExpr, Elem, bool),
        shape: HExpr,
        strides: HExpr,
    ) -> Option<HExpr> {
        let (Ty::List(extent, m), Ty::List(_, n)) = (&shape.ty, &strides.ty) else { return None };
        if !self.dims_equal(m, n) {
            let (m, n) = (crate::show::poly(self.hir(), m), crate::show::poly(self.hir(), n));
            let message = format!("the shape has {m} extents, but there are {n} strides");
            self.error(codes::RANK_MISMATCH, s.span, message, "");
            return None;
        }
        let wide = self.dterm_of(extent) == Some(DTerm::Known(DType::I64));
        let ty = Ty::View { elem, rank: m.clone(), mutable, wide };
        let args = [p, shape, strides].map(HArg::Expr).to_vec();
        Some(self.mk(HKind::Builtin(s.row, args), ty, s.span, false))
    }

    /// `[a, b]` of single integers; tuples such as `x.shape` too.
    pub(super) fn int_list(&mut self, e: &ast::Expr, what: &str) -> Option<Vec<HExpr>> {
        if let ExprKind::Array(items) = &e.kind {
            let hs: Vec<HExpr> = items.iter().map(|i| self.value(i)).collect();
            let ok = hs.iter().all(|h| !h.ty.is_err() && self.need_int(h));
            return ok.then_some(hs);
        }
        let h = self.value(e);
        self.ints_of(h, what)
    }

    /// The entries of a tuple, or of a list whose length is known here.
    pub(super) fn ints_of(&mut self, h: HExpr, what: &str) -> Option<Vec<HExpr>> {
        match h.ty.clone() {
            Ty::Tuple(ts) => Some((0..ts.len() as u32).map(|i| self.field(&h, i)).collect()),
            Ty::List(t, n) => {
                let n = self.need_rank(&n, what, h.span)?;
                let at = |cx: &mut Self, i: u32| cx.mk(HKind::Int(i.into()), Ty::i32(), h.span, true);
                Some(
                    (0..n)
                        .map(|i| {
                            let i = at(self, i);
                            self.entry(h.clone(), i, &t, h.span)
                        })
                        .collect(),
                )
            }
            t if t.is_err() => None,
            other => {
                let shown = self.show(&other);
                let text = self.text(h.span);
                let d = Diagnostic::error(
                    codes::POSITION,
                    h.span,
                    format!("{what} is a list, not `{shown}`"),
                    super::super::this_is(&shown),
                )
                .fix("write it as a list", h.span, format!("[{text}]"));
                self.report(d);
                None
            }
        }
    }
}
