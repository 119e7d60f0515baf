//! The types of operations that rearrange tiles.

use tk_ops::ShapeOp;
use tk_syntax::{Diagnostic, codes};

use super::Slots;
use crate::check::axes::Axis;
use crate::check::cx::Cx;
use crate::hir::{HArg, HExpr, HKind};
use crate::poly::Poly;
use crate::types::{Elem, Shape, Ty};

impl Cx<'_> {
    pub fn shape_row(&mut self, s: &Slots, op: ShapeOp) -> Option<HExpr> {
        let first = if s.row.param("x").is_some() { "x" } else { "a" };
        let (x, elem, shape) = self.tile_slot(s, first)?;
        let mut args = vec![HArg::Expr(x.clone())];
        let one = |dims: Vec<Poly>, elem: Elem| Ty::Tile { elem, shape: Shape::Dims(dims) };
        let ty = match (op, s.row.name) {
            (ShapeOp::Reshape, "expand") => {
                let dims = self.dims_of(s, &shape)?;
                let rank = dims.len() + 1;
                let (axis, arg) = self.axis(s.get("axis")?, rank)?;
                args.push(arg);
                let dims = self.dims_along(&axis, rank, |n| {
                    let mut dims = dims.clone();
                    dims.insert(n, Poly::int(1));
                    Some(dims)
                })?;
                one(dims, elem)
            }
            (ShapeOp::Reshape, "ravel") => {
                let n = self.count(&shape)?;
                one(vec![n], elem)
            }
            (ShapeOp::Reshape, _) => {
                let to = self.reshaped(s, &x, &shape)?;
                args.push(HArg::Shape(to.clone()));
                Ty::Tile { elem, shape: to }
            }
            (ShapeOp::Broadcast, _) => {
                let to = self.shape_arg(s.get("shape")?)?;
                let at = s.get("shape").map_or(s.span, |e| e.span);
                let joined = self.broadcast_two("`broadcast_to`", (&to, at), (&shape, x.span))?;
                if !self.shapes_equal(&joined, &to) {
                    let (a, b) = (self.show_shape(&shape), self.show_shape(&to));
                    self.error(
                        codes::SHAPE_MISMATCH,
                        x.span,
                        format!("`{a}` does not broadcast to `{b}`"),
                        super::super::this_is(&a),
                    );
                    return None;
                }
                args.push(HArg::Shape(to.clone()));
                Ty::Tile { elem, shape: to }
            }
            (ShapeOp::Permute, _) => {
                let dims = self.dims_of(s, &shape)?;
                let order = self.permutation(s.get("order")?, dims.len())?;
                let list =
                    order.iter().map(|i| self.mk(HKind::Int(*i as i128), Ty::i32(), s.span, true)).collect();
                args.push(HArg::List(list));
                one(order.iter().filter_map(|i| dims.get(*i).cloned()).collect(), elem)
            }
            (ShapeOp::Flip, _) => {
                let dims = self.dims_of(s, &shape)?;
                args.push(self.axis_arg(s, "axis", dims.len(), None)?.1);
                Ty::Tile { elem, shape }
            }
            (ShapeOp::Split, _) => {
                let mut dims = self.dims_of(s, &shape)?;
                if dims.pop().and_then(|d| d.as_int()) != Some(2) {
                    self.unsplit(&x, &shape);
                    return None;
                }
                let t = one(dims, elem);
                Ty::Tuple(vec![t.clone(), t])
            }
            (ShapeOp::Join | ShapeOp::Interleave | ShapeOp::Cat, _) => {
                return self.pair_row(s, op, x, shape);
            }
            (ShapeOp::Slice, _) => return None,
        };
        self.built(s, args, ty, false)
    }

    /// Reports `split` of a tile whose last extent is not 2, with the tile of its pairs if it is a row.
    fn unsplit(&mut self, x: &HExpr, shape: &Shape) {
        let shown = self.show(&x.ty);
        let message = format!("`split` needs a last dimension of 2, but this is `{shown}`");
        let mut d = Diagnostic::error(codes::SHAPE_MISMATCH, x.span, message, super::super::this_is(&shown));
        if let Some([extent]) = shape.dims()
            && let Some(pairs) = self.quotient(extent, &Poly::int(2)).filter(|p| p.opaque().is_empty())
        {
            let (text, pairs) = (self.text(x.span), crate::show::poly(self.hir(), &pairs));
            d = d.fix("split the pairs of neighbours", x.span, format!("reshape({text}, [{pairs}, 2])"));
        }
        self.report(d);
    }

    fn reshaped(&mut self, s: &Slots, x: &HExpr, from: &Shape) -> Option<Shape> {
        let written = s.get("shape")?;
        if let Some(count) = self.count(from)
            && self.inferred_extent(written, &count)
        {
            return None;
        }
        let to = self.shape_arg(written)?;
        self.same_count(s, from, &to, x)?;
        Some(to)
    }

    fn pair_row(&mut self, s: &Slots, op: ShapeOp, mut x: HExpr, shape: Shape) -> Option<HExpr> {
        let (mut y, _, other) = self.tile_slot(s, "b")?;
        let what = format!("`{}`", s.row.name);
        let common = self.join_elems(&what, &mut [&mut x, &mut y])?;
        let (mut d, e) = (self.dims_of(s, &shape)?, self.dims_of(s, &other)?);
        let mut args = vec![];
        if op == ShapeOp::Cat {
            self.need_dimension(s, &d, x.span)?;
        }
        let axis = if op == ShapeOp::Cat { Some(self.axis_arg(s, "axis", d.len(), Some(0))?) } else { None };
        let may_differ = match &axis {
            Some((Axis::Known(n), _)) => Some(*n),
            Some((Axis::Symbolic(_), _)) | None => None,
        };
        let fits = d.len() == e.len()
            && d.iter().zip(&e).enumerate().all(|(i, (p, q))| may_differ == Some(i) || self.dims_equal(p, q));
        if !fits || (op == ShapeOp::Interleave && d.is_empty()) {
            let (a, b) = (self.show_shape(&shape), self.show_shape(&other));
            let diag = Diagnostic::error(
                codes::SHAPE_MISMATCH,
                y.span,
                format!("{what} needs compatible shapes, but has `{a}` and `{b}`"),
                super::super::this_is(&b),
            )
            .label(x.span, super::super::this_is(&a));
            self.report(diag);
            return None;
        }
        args.extend([HArg::Expr(x), HArg::Expr(y)]);
        match (op, axis) {
            (ShapeOp::Cat, Some((axis, arg))) => {
                d = self.dims_along(&axis, d.len(), |n| {
                    let mut out = d.clone();
                    *out.get_mut(n)? = d.get(n)?.add(e.get(n)?)?;
                    Some(out)
                })?;
                args.push(arg);
            }
            (ShapeOp::Interleave, _) => {
                let last = d.last_mut()?;
                *last = last.mul(&Poly::int(2))?;
            }
            _ => d.push(Poly::int(2)),
        }
        self.built(s, args, Ty::Tile { elem: Elem::D(common), shape: Shape::Dims(d) }, false)
    }

    pub(in crate::check) fn count(&self, shape: &Shape) -> Option<Poly> {
        match shape {
            Shape::Dims(d) => d.iter().try_fold(Poly::int(1), |acc, p| acc.mul(p)),
            Shape::Param(id) => Some(Poly::atom(crate::poly::Atom::ShapeCount(*id))),
        }
    }

    fn same_count(&mut self, s: &Slots, from: &Shape, to: &Shape, x: &HExpr) -> Option<()> {
        let (a, b) = (self.count(from)?, self.count(to)?);
        if self.dims_equal(&a, &b) {
            return Some(());
        }
        let (sa, sb) = (self.show_shape(from), self.show_shape(to));
        let at = s.get("shape").map_or(s.span, |e| e.span);
        let mut d = Diagnostic::error(
            codes::SHAPE_MISMATCH,
            at,
            format!("`reshape` keeps the number of elements, but goes from `{sa}` to `{sb}`"),
            super::super::this_is(&sb),
        )
        .label(x.span, super::super::this_is(&sa));
        d = self.equality_hint(d, &a, &b);
        self.report(d);
        None
    }
}
