//! Owns the types of folds with user functions, running folds, sorting and counting.

use tk_ops::{DType, DTypeSet, ScanOp};
use tk_syntax::{Diagnostic, Span, codes};

use super::cx::Cx;
use super::rows::Slots;
use super::rows_more::tile;
use crate::hir::{HArg, HExpr};
use crate::poly::Poly;
use crate::types::{Elem, Shape, Ty};

impl Cx<'_, '_> {
    /// Parts of a tuple or struct of tiles of one shape: scalar types of the same form, and that shape.
    pub fn scalars_of(&mut self, t: &Ty, span: Span) -> Option<(Ty, Shape)> {
        match t {
            Ty::Tile { elem, shape } => {
                Some((Ty::Tile { elem: elem.clone(), shape: Shape::scalar() }, shape.clone()))
            }
            Ty::Tuple(ts) => {
                let mut shape: Option<Shape> = None;
                let mut parts = vec![];
                for t in ts {
                    let (e, sh) = self.scalars_of(t, span)?;
                    if shape.as_ref().is_some_and(|s| !self.shapes_equal(s, &sh)) {
                        let shown = self.show(&Ty::Tuple(ts.clone()));
                        self.error(
                            codes::SHAPE_MISMATCH,
                            span,
                            format!("the parts need one shape, but this is `{shown}`"),
                            "",
                        );
                        return None;
                    }
                    shape = Some(sh);
                    parts.push(e);
                }
                Some((Ty::Tuple(parts), shape?))
            }
            other => {
                let shown = self.show(other);
                self.error(
                    codes::TYPE_MISMATCH,
                    span,
                    format!("tiles or a tuple of tiles are needed here, not `{shown}`"),
                    "",
                );
                None
            }
        }
    }

    /// A type of scalars with every scalar turned into a tile of a shape.
    pub fn spread(t: &Ty, shape: &Shape) -> Ty {
        match t {
            Ty::Tile { elem, .. } => Ty::Tile { elem: elem.clone(), shape: shape.clone() },
            Ty::Tuple(ts) => Ty::Tuple(ts.iter().map(|t| Self::spread(t, shape)).collect()),
            other => other.clone(),
        }
    }

    /// `reduce` and `scan` with a user function.
    pub fn fold(&mut self, s: &Slots, reduces: bool) -> Option<HExpr> {
        let x = self.value_slot(s, "x")?;
        if let Ty::Struct(..) = &x.ty {
            return self.struct_fold(s, x);
        }
        let (scalar, shape) = self.scalars_of(&x.ty.clone(), x.span)?;
        let f = self.callable(s.get("combine")?, &[scalar.clone(), scalar.clone()]);
        let Ty::Fn(_, r) = &f.ty else { return None };
        let r = (**r).clone();
        if !self.fits(&r, &scalar) {
            let (a, b) = (self.show(&r), self.show(&scalar));
            self.error(
                codes::TYPE_MISMATCH,
                f.span,
                format!("the function combines two `{b}` and must give `{b}`, but gives `{a}`"),
                "",
            );
            return None;
        }
        let as_tile = HExpr { ty: Ty::Tile { elem: Elem::Err, shape: shape.clone() }, ..x.clone() };
        let (out, axis) = if reduces {
            self.reduced(s, &as_tile)?
        } else {
            let dims = self.dims_of(s, &shape)?;
            (shape, self.axis_arg(s, "axis", dims.len(), None)?.1)
        };
        let mut args = vec![HArg::Expr(x), axis, HArg::Expr(f)];
        for name in if reduces { vec!["ordered", "keep"] } else { vec!["reverse"] } {
            args.push(self.plain_slot(s, name)?);
        }
        self.built(s, args, Self::spread(&scalar, &out), false)
    }

    /// A struct of tiles: the function takes and returns the struct at rank 0, where its parameters say so.
    fn struct_fold(&mut self, s: &Slots, x: HExpr) -> Option<HExpr> {
        let shown = self.show(&x.ty);
        let d = Diagnostic::error(
            codes::UNSUPPORTED,
            x.span,
            format!("`{}` over the struct `{shown}` is not supported yet", s.row.name),
            "",
        )
        .note("use a tuple of its fields");
        self.report(d);
        None
    }

    pub fn scan_row(&mut self, s: &Slots, op: ScanOp) -> Option<HExpr> {
        match op {
            ScanOp::CumSum | ScanOp::CumProd => {
                let (x, elem, shape) = self.tile_slot(s, "x")?;
                let Elem::D(d) = elem else { return None };
                if !self.need_class(&format!("`{}`", s.row.name), d, DTypeSet::NUMBER, x.span) {
                    return None;
                }
                let dims = self.dims_of(s, &shape)?;
                let axis = self.axis_arg(s, "axis", dims.len(), None)?.1;
                let reverse = self.plain_slot(s, "reverse")?;
                let ty = x.ty.clone();
                self.built(s, vec![HArg::Expr(x), axis, reverse], ty, false)
            }
            ScanOp::Custom => self.fold(s, false),
            ScanOp::Sort => self.sort_row(s),
            ScanOp::TopK => {
                let (x, elem, shape) = self.tile_slot(s, "x")?;
                let k = self.const_int(s.get("k")?)?;
                let mut dims = self.dims_of(s, &shape)?;
                self.need_dimension(s, &dims, x.span)?;
                let kp = self.poly(&k)?;
                *dims.last_mut()? = kp;
                let shape = Shape::Dims(dims);
                let ty = Ty::Tuple(vec![Ty::Tile { elem, shape: shape.clone() }, tile(DType::I32, shape)]);
                self.built(s, vec![HArg::Expr(x), HArg::Expr(k)], ty, false)
            }
            ScanOp::Histogram => {
                let (x, elem, _) = self.tile_slot(s, "x")?;
                if let Elem::D(d) = elem
                    && !self.need_class("`histogram`", d, DTypeSet::INT, x.span)
                {
                    return None;
                }
                let bins = self.const_int(s.get("bins")?)?;
                let n = self.poly(&bins)?;
                let mask = self.plain_slot(s, "mask")?;
                self.built(
                    s,
                    vec![HArg::Expr(x), HArg::Expr(bins), mask],
                    tile(DType::I32, Shape::Dims(vec![n])),
                    false,
                )
            }
            ScanOp::Gather => {
                let (x, elem, shape) = self.tile_slot(s, "x")?;
                let (i, ielem, ishape) = self.tile_slot(s, "index")?;
                if let Elem::D(d) = ielem
                    && !self.need_class("an index", d, DTypeSet::INT, i.span)
                {
                    return None;
                }
                let rank = self.dims_of(s, &shape)?.len();
                let axis = self.axis_arg(s, "axis", rank, Some(0))?.1;
                self.built(
                    s,
                    vec![HArg::Expr(x), HArg::Expr(i), axis],
                    Ty::Tile { elem, shape: ishape },
                    false,
                )
            }
        }
    }

    /// What goes along a dimension is refused for a scalar.
    fn need_dimension(&mut self, s: &Slots, dims: &[Poly], span: Span) -> Option<()> {
        if dims.is_empty() {
            let message = format!("`{}` goes along a dimension, and a scalar has none", s.row.name);
            self.error(codes::AXIS, span, message, "this is a scalar");
            return None;
        }
        Some(())
    }

    /// `sort(keys, values = v)`: the keys, or a tuple of both.
    fn sort_row(&mut self, s: &Slots) -> Option<HExpr> {
        let (x, elem, shape) = self.tile_slot(s, "keys")?;
        if let Elem::D(d) = elem
            && !self.need_class("`sort`", d, DTypeSet::NUMBER, x.span)
        {
            return None;
        }
        let dims = self.dims_of(s, &shape)?;
        self.need_dimension(s, &dims, x.span)?;
        let axis = self.axis_arg(s, "axis", dims.len(), dims.len().checked_sub(1))?.1;
        let desc = self.plain_slot(s, "descending")?;
        let keys = x.ty.clone();
        let (values, ty) = match s.get("values") {
            None => (HArg::Default, keys),
            Some(_) => {
                let (v, _, vs) = self.tile_slot(s, "values")?;
                if !self.shapes_equal(&vs, &shape) {
                    let (a, b) = (self.show_shape(&shape), self.show_shape(&vs));
                    self.error(
                        codes::SHAPE_MISMATCH,
                        v.span,
                        format!("keys have shape `{a}`, but values have `{b}`"),
                        "",
                    );
                    return None;
                }
                let vt = v.ty.clone();
                (HArg::Expr(v), Ty::Tuple(vec![keys, vt]))
            }
        };
        self.built(s, vec![HArg::Expr(x), values, axis, desc], ty, false)
    }
}
