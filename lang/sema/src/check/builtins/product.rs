//! `dot` and `dot_scaled`: the types and shapes of their operands, accumulators and scales.

use tk_ops::{DType, DTypeSet, DotOp};
use tk_syntax::{Diagnostic, codes};

use super::Slots;
use super::misc::tile;
use crate::check::advice::TRANSPOSE;
use crate::check::cx::Cx;
use crate::hir::{HArg, HExpr};
use crate::poly::Poly;
use crate::types::{DTerm, Elem, Shape, Ty};

impl Cx<'_> {
    pub(super) fn dot_row(&mut self, s: &Slots, op: DotOp) -> Option<HExpr> {
        let (mut a, _, sa) = self.tile_slot(s, "a")?;
        let (mut b, _, sb) = self.tile_slot(s, "b")?;
        let mut set = DTypeSet::FLOAT.or(DTypeSet::F8).or(DTypeSet::of(&[DType::I8, DType::U8]));
        if op == DotOp::DotScaled {
            set = set.or(DTypeSet::of(&[DType::E2M1]));
        }
        for h in [&a, &b] {
            let d = self.dterm_of(&h.ty)?;
            if !self.need_class("`dot`", d, set, h.span) {
                return None;
            }
        }
        let both_f8 = [&a, &b].iter().all(|h| {
            self.dterm_of(&h.ty).and_then(|d| self.set_of(d)).is_some_and(|x| x.within(DTypeSet::F8))
        });
        let common = if both_f8 || op == DotOp::DotScaled {
            self.dterm_of(&a.ty)?
        } else {
            self.join_elems("`dot`", &mut [&mut a, &mut b])?
        };
        let shape = self.dot_shape(&a, &b, &sa, &sb, op)?;
        let acc_of = match self.norm(common) {
            DTerm::Known(k) => DTerm::Known(k.acc()),
            DTerm::Param(id) => self.norm(DTerm::Acc(id)),
            other @ (DTerm::Acc(_) | DTerm::Infer(_)) => other,
        };
        if op == DotOp::DotScaled {
            let (x, y) = (self.value(s.get("a_scale")?), self.value(s.get("b_scale")?));
            self.scales((&sa, &sb), (&x, &y))?;
            let ty = tile(DType::F32, shape);
            let acc = self.plain_slot(s, "acc")?;
            return self.built(
                s,
                vec![HArg::Expr(a), HArg::Expr(x), HArg::Expr(b), HArg::Expr(y), acc],
                ty,
                false,
            );
        }
        let (acc, ty) = match s.get("acc") {
            None => (HArg::Default, Ty::Tile { elem: Elem::D(acc_of), shape }),
            Some(e) => {
                let h = self.value(e);
                let d = self.dterm_of(&h.ty)?;
                self.acc_class(common, d, &h)?;
                let want = Ty::Tile { elem: Elem::D(d), shape };
                let h = self.coerce_as(h, &want, "`acc` of `dot`", Some(codes::DOT_SHAPE), None);
                if h.ty.is_err() {
                    return None;
                }
                (HArg::Expr(h), want)
            }
        };
        let precision = s.row.params.iter().find(|p| p.name == "precision").map(|p| p.kind)?;
        let word = self.word(s, "precision", precision)?;
        self.built(s, vec![HArg::Expr(a), HArg::Expr(b), acc, word], ty, false)
    }

    /// Integers accumulate in integers, floats in floats that are no narrower.
    fn acc_class(&mut self, operand: DTerm, acc: DTerm, h: &HExpr) -> Option<()> {
        if let DTerm::Param(id) = self.norm(operand)
            && self.norm(acc) == self.norm(DTerm::Acc(id))
        {
            return Some(());
        }
        let (Some(o), Some(a)) = (self.set_of(operand), self.set_of(acc)) else { return Some(()) };
        let ok = if o.within(DTypeSet::INT) {
            a == DTypeSet::of(&[DType::I32])
        } else {
            a.within(DTypeSet::FLOAT)
                && o.iter().all(|x| {
                    a.iter().all(|y| y == x || y.bits() >= x.acc().bits() && y.is_float())
                        || (x == DType::F16 && a == DTypeSet::of(&[DType::F16]))
                })
        };
        if ok {
            return Some(());
        }
        let (x, y) = (self.show_elem(&Elem::D(operand)), self.show_elem(&Elem::D(acc)));
        let message = format!("`dot` of `{x}` cannot accumulate in `{y}`");
        let d = Diagnostic::error(codes::ELEMENT_MISMATCH, h.span, message, super::super::this_is(&y));
        let shape = match &h.ty {
            Ty::Tile { shape, .. } => self.show_shape(shape),
            _other => "[M, N]".to_string(),
        };
        let sums = self.sums_of(operand, o);
        self.fail(d.note(format!("the accumulator is a tile of `{sums}`, such as `zeros({shape}, {sums})`")));
        None
    }

    /// The shape of a product: of matrices, or of one matrix for each position of a first dimension that both have.
    fn dot_shape(&mut self, a: &HExpr, b: &HExpr, sa: &Shape, sb: &Shape, op: DotOp) -> Option<Shape> {
        let (ta, tb) = (self.show_shape(sa), self.show_shape(sb));
        let (batch, x, y) = match (sa, sb) {
            (Shape::Dims(x), Shape::Dims(y)) => match (x.as_slice(), y.as_slice()) {
                ([m, k], [l, n]) => (None, [m, k], [l, n]),
                ([p, m, k], [q, l, n]) if op == DotOp::Dot => (Some((p, q)), [m, k], [l, n]),
                (_, _) => return self.no_dot(a, b, [&ta, &tb], op),
            },
            (_, _) => return self.no_dot(a, b, [&ta, &tb], op),
        };
        let differ = |cx: &Self, which: &str, p: &Poly, q: &Poly| {
            let (p, q) = (crate::show::poly(cx.hir(), p), crate::show::poly(cx.hir(), q));
            let message = format!("`dot` of `{ta}` with `{tb}`: the {which} extents `{p}` and `{q}` differ");
            Diagnostic::error(codes::DOT_SHAPE, b.span, message, super::super::this_is(&tb))
                .label(a.span, super::super::this_is(&ta))
        };
        if let Some((p, q)) = batch
            && !self.dims_equal(p, q)
        {
            let d = differ(self, "first", p, q);
            let d = self.equality_hint(d, p, q);
            self.report(d);
            return None;
        }
        let ([m, k], [l, n]) = (x, y);
        if self.dims_equal(k, l) {
            let first = batch.map(|b| b.0.clone());
            return Some(Shape::Dims(first.into_iter().chain([m.clone(), n.clone()]).collect()));
        }
        let mut d = differ(self, "inner", k, l);
        // `[BM, BK] x [BN, BK]` is the product with the second operand transposed, `[BK, BM] x [BK, BN]` with the first.
        let turned = [(b, self.dims_equal(n, k), "second"), (a, self.dims_equal(m, l), "first")];
        for (h, _, which) in turned.iter().filter(|t| t.1) {
            let turned = if batch.is_some() { ".permute([0, 2, 1])" } else { ".T" };
            d = self.turn(d, h.span, turned, &format!("transpose the {which} operand"));
        }
        if d.fixes.is_empty() {
            d = self.equality_hint(d, k, l);
        }
        self.report(d);
        None
    }

    fn no_dot<T>(&mut self, a: &HExpr, b: &HExpr, shapes: [&str; 2], op: DotOp) -> Option<T> {
        let [ta, tb] = shapes;
        let message = match op {
            DotOp::Dot => {
                format!(
                    "`dot` multiplies matrices of rank 2, or batches of them of rank 3, not `{ta}` with `{tb}`"
                )
            }
            DotOp::DotScaled => {
                format!("`dot_scaled` multiplies matrices of rank 2, not `{ta}` with `{tb}`")
            }
        };
        let mut d = Diagnostic::error(codes::DOT_SHAPE, b.span, message, super::super::this_is(tb))
            .label(a.span, super::super::this_is(ta));
        if let Some(d) = [a, b].into_iter().find_map(|h| self.element_loaded(d.clone(), h)) {
            self.report(d);
            return None;
        }
        let rank = |h: &HExpr| match &h.ty {
            Ty::Tile { shape, .. } => shape.dims().map(<[_]>::len),
            _other => None,
        };
        let (x, y) = (self.text(a.span), self.text(b.span));
        let sum = match (rank(a), rank(b)) {
            (Some(1), Some(1)) => Some(format!("sum({x} * {y})")),
            (Some(2), Some(1)) => Some(format!("sum({x} * {y}[None, :], axis = 1)")),
            (Some(1), Some(2)) => Some(format!("sum({x}[:, None] * {y}, axis = 0)")),
            (_, _) => None,
        };
        if let Some(sum) = sum.filter(|s| op == DotOp::Dot && !s.contains('\n')) {
            d = d.note(format!("with a vector, a product is a sum: `{sum}`"));
        }
        self.report(d);
        None
    }

    /// Scales are `e8m0` tiles `[M, K / B]` and `[K / B, N]` of one block length `B`.
    fn scales(&mut self, (a, b): (&Shape, &Shape), (x, y): (&HExpr, &HExpr)) -> Option<()> {
        if x.ty.is_err() || y.ty.is_err() {
            return None;
        }
        for h in [x, y] {
            self.scale_type(h)?;
        }
        let (Some([m, k]), Some([_, n])) = (a.dims(), b.dims()) else { return Some(()) };
        let of = |h: &HExpr| match &h.ty {
            Ty::Tile { shape, .. } => shape.dims().map(<[Poly]>::to_vec),
            _other => None,
        };
        let (of_x, of_y) = (of(x), of(y));
        // The count of blocks is what the scale that fits says.
        let blocks = match (of_x.as_deref(), of_y.as_deref()) {
            (Some([p, blocks]), _) if self.dims_equal(p, m) => Some(blocks.clone()),
            (_, Some([blocks, q])) if self.dims_equal(q, n) => Some(blocks.clone()),
            (_, _) => None,
        };
        let divides = match (blocks.as_ref().and_then(Poly::as_int), k.as_int()) {
            (Some(blocks), Some(k)) => blocks > 0 && k % blocks == 0,
            (_, _) => true,
        };
        let count = match &blocks {
            Some(blocks) if divides => crate::show::poly(self.hir(), blocks),
            Some(_) | None => format!("{} / B", crate::show::poly(self.hir(), k)),
        };
        let [shown_m, shown_n] = [m, n].map(|e| crate::show::poly(self.hir(), e));
        let wanted = [
            (x, "a", [Some(m), blocks.as_ref()], of_x, format!("[{shown_m}, {count}]")),
            (y, "b", [blocks.as_ref(), Some(n)], of_y, format!("[{count}, {shown_n}]")),
        ];
        for (h, operand, wanted, found, shape) in wanted {
            let is_extent = |(p, q): (&Poly, &Option<&Poly>)| q.is_some_and(|q| self.dims_equal(p, q));
            let fits = found.as_ref().is_some_and(|f| f.len() == 2 && f.iter().zip(&wanted).all(is_extent));
            if fits && divides {
                continue;
            }
            let shown = self.show(&h.ty);
            let message = format!(
                "the scales of `{operand}` in `dot_scaled` are `tile[e8m0]` of shape `{shape}`, not `{shown}`"
            );
            let d = Diagnostic::error(codes::DOT_SHAPE, h.span, message, super::super::this_is(&shown));
            let turned = found.is_some_and(|f| f.len() == 2 && f.iter().rev().zip(&wanted).all(is_extent));
            self.report(match turned && divides {
                true => self.turn(d, h.span, ".T", TRANSPOSE),
                false => d.note("each block of the same length along K has one scale"),
            });
            return None;
        }
        Some(())
    }

    /// Reports scales that are no tile of `e8m0`.
    fn scale_type(&mut self, h: &HExpr) -> Option<()> {
        let Some(dtype) = self.dterm_of(&h.ty) else {
            let shown = self.show(&h.ty);
            let message = format!("a scale is a tile of `e8m0`, not `{shown}`");
            let d =
                Diagnostic::error(codes::ELEMENT_MISMATCH, h.span, message, super::super::this_is(&shown));
            self.report(self.read_first(d, h));
            return None;
        };
        let set = self.set_of(dtype).unwrap_or(DTypeSet::of(&[DType::I32]));
        if set.has(DType::E8M0) {
            return Some(());
        }
        let shown = self.show_elem(&Elem::D(dtype));
        let message = format!("a scale is of type `e8m0`, not `{shown}`");
        let d = Diagnostic::error(codes::ELEMENT_MISMATCH, h.span, message, super::super::this_is(&shown));
        let bytes = set.within(DTypeSet::of(&[DType::U8, DType::I8]));
        let text = self.text(h.span);
        self.report(match bytes {
            true => d.fix("take the bytes as `e8m0`", h.span, format!("bitcast({text}, e8m0)")),
            false => d.note("a power of two becomes one with `as e8m0`"),
        });
        None
    }
}
