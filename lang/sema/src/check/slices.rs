//! Slices: compile-time ones of tiles and of buffers of tests, and views of a part of a view.

use tk_ops::Op;
use tk_syntax::ast::{self, ExprKind, Subscript};
use tk_syntax::{Diagnostic, Span, codes};

use super::cx::Cx;
use crate::hir::{HArg, HExpr, HKind, HSlice};
use crate::poly::Poly;
use crate::show;
use crate::types::{Elem, Ty};

impl Cx<'_> {
    pub(super) fn tile_position(&mut self, e: &ast::Expr) -> Option<HExpr> {
        let h = self.value(e);
        self.need_position(h)
    }

    /// Checks that a value is a compile-time position.
    pub(super) fn need_position(&mut self, h: HExpr) -> Option<HExpr> {
        if h.ty.is_err() {
            return None;
        }
        if !self.need_int(&h) {
            return None;
        }
        if !h.konst {
            let d = Diagnostic::error(codes::NOT_CONST, h.span, "a tile can only be indexed by compile-time values", "only known at run time")
                .note("a tile lives in registers; use `gather(x, index)` for run-time positions, or load from memory");
            self.report(self.counted_statically(d, &h));
            return None;
        }
        Some(h)
    }

    /// Reports the index of an element that no tile has.
    pub(super) fn index_outside(&self, n: i128, dim: &Poly, span: Span) -> Diagnostic {
        let extent = show::poly(self.hir(), dim);
        let message = format!("index {n} is out of range for a dimension of {extent}");
        let d = Diagnostic::error(codes::INDEX, span, message, "counted from 0");
        let from_end = match dim.as_int() {
            Some(extent) => format!("{}", extent + n),
            None => format!("{extent} - {}", n.unsigned_abs()),
        };
        match dim.as_int() {
            Some(extent) if n >= 0 || extent + n < 0 => d,
            Some(_) | None => d.fix("nothing counts from the end; name the position", span, from_end),
        }
    }

    pub(super) fn static_slice(
        &mut self,
        a: Option<&ast::Expr>,
        z: Option<&ast::Expr>,
        dim: &Poly,
        span: Span,
    ) -> Option<(HExpr, HExpr, Poly)> {
        let (lo, hi, len) = self.slice_ends(a, z, dim, span)?;
        if len.as_int().is_some_and(|n| n < 1) {
            self.error(codes::INDEX, span, "the slice is empty", "");
            return None;
        }
        Some((lo, hi, len))
    }

    /// The ends of a compile-time slice and its length.
    fn slice_ends(
        &mut self,
        a: Option<&ast::Expr>,
        z: Option<&ast::Expr>,
        dim: &Poly,
        span: Span,
    ) -> Option<(HExpr, HExpr, Poly)> {
        let lo = match a {
            Some(e) => self.tile_position(e)?,
            None => self.lit(HKind::Int(0), super::cx::Lit::Int, span),
        };
        let (hi, hi_poly) = match z {
            Some(e) => {
                let h = self.tile_position(e)?;
                let p = self.poly(&h)?;
                (h, p)
            }
            None => (self.poly_expr(dim, span), dim.clone()),
        };
        let lo_poly = self.poly(&lo)?;
        for (e, p, word) in [(a, &lo_poly, "begins"), (z, &hi_poly, "ends")] {
            if let (Some(e), Some(n)) = (e, p.as_int().filter(|n| *n < 0)) {
                let message = format!("the slice {word} at {n}, but positions count from 0");
                let d = Diagnostic::error(codes::INDEX, span, message, "");
                let d = match dim.as_int() {
                    Some(size) => self.counted_from_end(d, e.span, size + n, &(size + n).to_string()),
                    None if !dim.opaque().is_empty() => d,
                    None => {
                        let size = crate::show::poly(self.hir(), dim);
                        self.counted_from_end(d, e.span, 0, &format!("{size} - {}", n.unsigned_abs()))
                    }
                };
                self.report(d);
                return None;
            }
        }
        let len = hi_poly.sub(&lo_poly)?;
        if let (Some(h), Some(d)) = (hi_poly.as_int(), dim.as_int())
            && h > d
        {
            self.error(
                codes::INDEX,
                span,
                format!("the slice ends at {h}, but the dimension has {d} elements"),
                "",
            );
            return None;
        }
        Some((lo, hi, len))
    }

    /// The position that a negative one would be if it were counted from the end, where there is one.
    fn counted_from_end(&self, d: Diagnostic, at: Span, position: i128, text: &str) -> Diagnostic {
        if position < 0 { d } else { d.fix(format!("counted from the end it is `{text}`"), at, text) }
    }

    /// A position in a view that is negative wherever the view ends: the text of the position that was meant.
    fn meant_from_end(&self, h: &HExpr, base: Span, axis: usize) -> Option<String> {
        let HKind::Int(n @ ..0) = h.kind else { return None };
        Some(format!("{}.shape[{axis}] - {}", self.operand(base), n.unsigned_abs()))
    }

    /// The same for `-k`, which other languages count from the end. It may be meant as it is: only where it is an error.
    fn negated_from_end(&self, e: &ast::Expr, base: Span, axis: usize) -> Option<String> {
        let ExprKind::Unary(ast::UnOp::Neg, k) = &e.kind else { return None };
        Some(format!("{}.shape[{axis}] - {}", self.operand(base), self.operand(k.span)))
    }

    /// The same for the begin or the end of a slice, also where it has a name: `-B`, or a constant that is negative.
    fn end_from_end(&mut self, e: &ast::Expr, h: &HExpr, base: Span, axis: usize) -> Option<String> {
        let of_literal = self.meant_from_end(h, base, axis);
        if of_literal.is_some() {
            return of_literal;
        }
        if !h.konst {
            let HKind::Builtin(_, args) = &h.kind else { return None };
            let [HArg::Expr(k)] = args.as_slice() else { return None };
            let counts = match &k.kind {
                HKind::Extent(..) => true,
                HKind::Builtin(row, _) => matches!(row.op, Op::Control(_)),
                _other => false,
            };
            return self.negated_from_end(e, base, axis).filter(|_| counts);
        }
        let n = self.poly(h)?.as_int();
        match n {
            Some(n @ ..0) => Some(format!("{}.shape[{axis}] - {}", self.operand(base), n.unsigned_abs())),
            Some(_) => None,
            None => self.negated_from_end(e, base, axis),
        }
    }

    /// Reports a part of a view that is counted from the end.
    fn not_from_end(&mut self, at: Span, meant: &str) -> HExpr {
        let message = "positions in a view count from 0, not from the end";
        let d = Diagnostic::error(codes::INDEX, at, message, "a negative position");
        self.fail(d.write_instead(at, meant))
    }

    /// A part of a test's buffer: `b[1:3, :]` with compile-time ends, which may be empty.
    pub(super) fn buffer_slice(
        &mut self,
        b: HExpr,
        elem: Elem,
        dims: &[Poly],
        items: &[Subscript],
        span: Span,
    ) -> HExpr {
        if items.len() > dims.len() {
            let (r, n) = (dims.len(), items.len());
            return self.error(
                codes::RANK_MISMATCH,
                span,
                format!("a buffer of rank {r} takes at most {r} indices, not {n}"),
                format!("{n} indices"),
            );
        }
        let (mut out, mut shape) = (vec![], vec![]);
        for (item, dim) in items.iter().zip(dims) {
            match item {
                Subscript::Slice(None, None, _) => {
                    out.push(HSlice::Whole);
                    shape.push(dim.clone());
                }
                Subscript::Slice(a, z, s) => {
                    let Some((lo, hi, len)) = self.slice_ends(a.as_ref(), z.as_ref(), dim, *s) else {
                        return HExpr::err(span);
                    };
                    if len.as_int().is_some_and(|n| n < 0) {
                        return self.error(codes::INDEX, *s, "the slice ends before it starts", "");
                    }
                    out.push(HSlice::Range(Some(Box::new(lo)), Some(Box::new(hi))));
                    shape.push(len);
                }
                Subscript::Expr(e) => match self.tile_position(e) {
                    Some(i) => out.push(HSlice::At(Box::new(i))),
                    None => return HExpr::err(span),
                },
                Subscript::Named(n, _) => {
                    return self.error(
                        codes::ARGUMENT_NAME,
                        n.span,
                        "an index cannot have a name",
                        "named index",
                    );
                }
            }
        }
        for dim in dims.iter().skip(items.len()) {
            out.push(HSlice::Whole);
            shape.push(dim.clone());
        }
        if shape.is_empty() {
            let message = "an integer for every axis leaves no buffer";
            let d = Diagnostic::error(codes::VIEW_INDEX, span, message, "read the elements with `.tile()`");
            let whole = self.text(span);
            let index = whole.get((b.span.end - span.start) as usize..).unwrap_or("");
            let fixed = format!("{}.tile(){index}", self.text(b.span));
            return self.fail(d.write_instead(span, fixed));
        }
        self.mk(HKind::SubView(Box::new(b), out), Ty::Buffer { elem, shape }, span, false)
    }

    pub(super) fn sub_view(
        &mut self,
        b: HExpr,
        v: (Elem, Poly, bool, bool),
        items: &[Subscript],
        span: Span,
    ) -> HExpr {
        let (elem, rank, mutable, wide) = v;
        let known = self.known_rank(&rank);
        if let Some(rank) = known.filter(|rank| items.len() > *rank as usize) {
            return self.too_many_of_view(rank, items, span);
        }
        let mut out = vec![];
        // The positions that remove an axis, as they should be written.
        let mut removed: Vec<String> = vec![];
        let mut negative = None;
        for (axis, item) in items.iter().enumerate() {
            match item {
                Subscript::Slice(None, None, _) => out.push(HSlice::Whole),
                Subscript::Slice(a, z, _) => {
                    let mut end = |cx: &mut Self, e: Option<&ast::Expr>| {
                        let Some(e) = e else { return Ok(None) };
                        let h = cx.position(e, wide, None).ok_or(())?;
                        let meant = cx.end_from_end(e, &h, b.span, axis);
                        negative = negative.take().or(meant.map(|m| (e.span, m)));
                        Ok::<_, ()>(Some(Box::new(h)))
                    };
                    let (Ok(a), Ok(z)) = (end(self, a.as_ref()), end(self, z.as_ref())) else {
                        return HExpr::err(span);
                    };
                    out.push(HSlice::Range(a, z));
                }
                Subscript::Expr(e) if matches!(e.kind, ExprKind::None) => {
                    let d = Diagnostic::error(
                        codes::VIEW_INDEX,
                        e.span,
                        "`None` adds a dimension to tiles, not to views",
                        "used on a view",
                    )
                    .note("load first, then index the tile");
                    return self.fail(d);
                }
                Subscript::Expr(e) => {
                    let Some(h) = self.position(e, wide, None) else { return HExpr::err(span) };
                    let meant = self.meant_from_end(&h, b.span, axis);
                    let counted = meant.clone().or_else(|| self.negated_from_end(e, b.span, axis));
                    removed.push(counted.unwrap_or_else(|| self.text(e.span)));
                    negative = negative.or(meant.map(|m| (e.span, m)));
                    out.push(HSlice::At(Box::new(h)));
                }
                Subscript::Named(n, _) => {
                    return self.error(
                        codes::ARGUMENT_NAME,
                        n.span,
                        "an index cannot have a name",
                        "named index",
                    );
                }
            }
        }
        let count = removed.len() as u32;
        if known == Some(count) {
            return self.load_instead(b.span, &removed, span);
        }
        if let Some((at, meant)) = negative {
            return self.not_from_end(at, &meant);
        }
        // Further dimensions stay whole.
        let rank = known.map_or(rank, |n| Poly::int(n.into()));
        let Some(rank) = rank.sub(&Poly::int(count.into())) else { return HExpr::err(span) };
        let ty = Ty::View { elem, rank, mutable, wide };
        self.mk(HKind::SubView(Box::new(b), out), ty, span, false)
    }

    fn too_many_of_view(&mut self, rank: u32, items: &[Subscript], span: Span) -> HExpr {
        let n = items.len();
        let most = if rank == 1 { "one index".to_string() } else { format!("{rank} indices") };
        let message = format!("a view of rank {rank} takes at most {most}, not {n}");
        let mut d = Diagnostic::error(codes::RANK_MISMATCH, span, message, format!("{n} indices"));
        if items.iter().any(is_none) {
            d = d.note("`None` adds a dimension to a tile: load it first, `v.load([0], [BLOCK])[None, :]`");
        }
        self.fail(d)
    }

    /// Reports an element of a view that is read by its index.
    fn load_instead(&mut self, base: Span, at: &[String], span: Span) -> HExpr {
        let base = self.text(base);
        let d = Diagnostic::error(
            codes::VIEW_INDEX,
            span,
            "a view cannot be read by indexing",
            "an integer for every axis leaves no view",
        );
        self.fail(d.fix("load the element", span, format!("{base}.load([{}])", at.join(", "))))
    }
}

/// `None`, which adds a dimension.
pub(super) fn is_none(item: &Subscript) -> bool {
    matches!(item, Subscript::Expr(e) if matches!(e.kind, ExprKind::None))
}
