//! The types of `map` and folds with user functions, running folds, sorting and counting.

use tk_ops::{DType, DTypeSet, Op, ReduceOp, ScanOp};
use tk_syntax::{Diagnostic, Span, codes};

use super::Slots;
use super::misc::tile;
use crate::check::axes::Axis;
use crate::check::cx::{Cx, Lit};
use crate::check::subst::Subst;
use crate::hir::{CKind, HArg, HExpr, HKind};
use crate::poly::Poly;
use crate::types::{CTerm, DTerm, Elem, Shape, Ty};

impl Cx<'_> {
    /// The operands that a function of elements sees for tiles of one shape: a tuple or struct of them keeps its form
    /// and becomes scalars. Returns that type and the shape.
    pub fn scalars_of(&mut self, t: &Ty, span: Span) -> Option<(Ty, Shape)> {
        match t {
            Ty::Tile { elem, shape } => {
                Some((Ty::Tile { elem: elem.clone(), shape: Shape::scalar() }, shape.clone()))
            }
            Ty::Tuple(ts) => {
                let (parts, shape) = self.parts_of(t, ts, span)?;
                Some((Ty::Tuple(parts), shape))
            }
            Ty::Struct(id, _) => {
                let fields = self.field_types(t);
                let (parts, shape) = self.parts_of(t, &fields, span)?;
                let scalar = self.spread(t, &Shape::scalar());
                let at_zero = self.field_types(&scalar);
                if parts.iter().zip(&at_zero).all(|(a, b)| self.fits(a, b)) {
                    return Some((scalar, shape));
                }
                let strukt = self.hir().strukt(*id);
                let (name, at) = (strukt.name.clone(), strukt.span);
                let d = Diagnostic::error(
                    codes::TYPE_MISMATCH,
                    span,
                    format!("`{name}` has no scalar form for the function to work on"),
                    "this is a struct of tiles",
                )
                .label(at, "the shape of its fields is not a parameter")
                .note(format!(
                    "make it `struct {name}[S: shape] {{ .. }}` with fields such as `tile[f32, S]`"
                ));
                self.report(d);
                None
            }
            other => {
                let shown = self.show(other);
                self.error(
                    codes::TYPE_MISMATCH,
                    span,
                    format!("tiles, or a tuple or struct of tiles, are needed here, not `{shown}`"),
                    super::super::this_is(&shown),
                );
                None
            }
        }
    }

    /// The scalars that the parts of a tuple or struct consist of, and their one shape.
    fn parts_of(&mut self, whole: &Ty, parts: &[Ty], span: Span) -> Option<(Vec<Ty>, Shape)> {
        let mut shape: Option<Shape> = None;
        let mut out = vec![];
        for t in parts {
            let (part, found) = self.scalars_of(t, span)?;
            if shape.as_ref().is_some_and(|s| !self.shapes_equal(s, &found)) {
                let shown = self.show(whole);
                let message = format!("the parts need one shape, but this is `{shown}`");
                self.error(codes::SHAPE_MISMATCH, span, message, "the parts differ in shape");
                return None;
            }
            shape = Some(found);
            out.push(part);
        }
        if shape.is_none() {
            let shown = self.show(whole);
            self.error(
                codes::TYPE_MISMATCH,
                span,
                format!("`{shown}` has no values to work on"),
                super::super::this_is(&shown),
            );
        }
        Some((out, shape?))
    }

    /// The types of the fields of a struct with its arguments in place.
    fn field_types(&mut self, t: &Ty) -> Vec<Ty> {
        let Ty::Struct(id, args) = t else { return vec![] };
        let strukt = self.hir().strukt(*id).clone();
        let map: Subst = strukt.cparams.iter().copied().zip(args.iter().cloned()).collect();
        strukt.fields.iter().map(|f| self.subst_ty(&f.1, &map)).collect()
    }

    /// The same form with every tile of a shape; in a struct, every `shape` parameter becomes that shape.
    pub fn spread(&self, t: &Ty, shape: &Shape) -> Ty {
        match t {
            Ty::Tile { elem, .. } => Ty::Tile { elem: elem.clone(), shape: shape.clone() },
            Ty::Tuple(ts) => Ty::Tuple(ts.iter().map(|t| self.spread(t, shape)).collect()),
            Ty::Struct(id, args) => {
                let cparams = &self.hir().strukt(*id).cparams;
                let args = cparams.iter().zip(args).map(|(c, a)| match self.hir().cvar(*c).kind {
                    CKind::Shape => CTerm::Shape(shape.clone()),
                    CKind::Int(_)
                    | CKind::Float(_)
                    | CKind::Bool
                    | CKind::DType(_)
                    | CKind::Fn(..)
                    | CKind::Err => a.clone(),
                });
                Ty::Struct(*id, args.collect())
            }
            Ty::Err
            | Ty::Unit
            | Ty::Never
            | Ty::View { .. }
            | Ty::Option(_)
            | Ty::Buffer { .. }
            | Ty::Fn(..)
            | Ty::DType
            | Ty::List(..)
            | Ty::ShapeTy
            | Ty::Str => t.clone(),
        }
    }

    /// `reduce` and `scan` with a user function.
    pub fn fold(&mut self, s: &Slots, reduces: bool) -> Option<HExpr> {
        let x = self.value_slot(s, "x")?;
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
                format!("gives `{a}`"),
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
        let ty = self.spread(&scalar, &out);
        self.built(s, args, ty, false)
    }

    /// `map(f, x, ..)`: arguments broadcast; tuples come out as tuples of tiles.
    pub fn map_row(&mut self, s: &Slots) -> Option<HExpr> {
        let mut xs = vec![];
        for e in s.rest.clone() {
            let h = self.value(e);
            if h.ty.is_err() {
                return None;
            }
            let Ty::Tile { elem, .. } = h.ty.clone() else {
                let shown = self.show(&h.ty);
                self.error(
                    codes::TYPE_MISMATCH,
                    h.span,
                    format!("`map` works on tiles, not on `{shown}`"),
                    super::super::this_is(&shown),
                );
                return None;
            };
            // The function sees a definite type, so a literal settles here.
            if let Elem::D(d) = elem
                && let Some(l) = self.literal(d)
            {
                self.adapt(d, DTerm::Known(if l == Lit::Float { DType::F32 } else { DType::I32 }));
            }
            xs.push(h);
        }
        if xs.is_empty() {
            self.error(codes::ARGUMENT_COUNT, s.span, "`map` needs tiles to work on", "as in `map(f, x)`");
            return None;
        }
        let shape = self.broadcast("`map`", &xs.iter().collect::<Vec<_>>())?;
        let ps: Vec<Ty> = xs
            .iter()
            .map(|h| match &h.ty {
                Ty::Tile { elem, .. } => Ty::Tile { elem: self.resolve_elem(elem), shape: Shape::scalar() },
                _ => Ty::Err,
            })
            .collect();
        let f = self.callable(s.get("f")?, &ps);
        let Ty::Fn(_, r) = &f.ty else { return None };
        let r = (**r).clone();
        let (_, inner) = self.scalars_of(&r, f.span)?;
        if !inner.is_scalar() {
            let shown = self.show(&r);
            let message =
                format!("`map` applies a function that gives scalars, but this one gives `{shown}`");
            self.error(codes::TYPE_MISMATCH, f.span, message, format!("gives `{shown}`"));
            return None;
        }
        let ty = self.spread(&r, &shape);
        self.built(s, vec![HArg::Expr(f), HArg::List(xs)], ty, false)
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
                let (x, elem, shape) = self.tile_slot(s, "x")?;
                if let Elem::D(d) = elem
                    && !self.need_class("`histogram`", d, DTypeSet::INT, x.span)
                {
                    return None;
                }
                let dims = self.dims_of(s, &shape)?;
                self.need_dimension(s, &dims, x.span)?;
                let bins = self.const_int(s.get("bins")?)?;
                let n = self.poly(&bins)?;
                let mask = match self.mask(s)? {
                    Some(mask) => {
                        self.broadcast("`histogram`", &[&x, &mask])?;
                        HArg::Expr(mask)
                    }
                    None => HArg::Default,
                };
                self.built(
                    s,
                    vec![HArg::Expr(x), HArg::Expr(bins), mask],
                    tile(DType::I32, Shape::Dims(vec![n])),
                    false,
                )
            }
            ScanOp::Gather => {
                let x = self.value_slot(s, "x")?;
                let x = self.as_table(x)?;
                let (x, elem, shape) = self.need_tile(s, x)?;
                let (i, ielem, ishape) = self.tile_slot(s, "index")?;
                if let Elem::D(d) = ielem
                    && !self.need_class("an index", d, DTypeSet::INT, i.span)
                {
                    return None;
                }
                let dims = self.dims_of(s, &shape)?;
                self.need_dimension(s, &dims, x.span)?;
                let (along, axis) = self.axis_arg(s, "axis", dims.len(), Some(0))?;
                self.gathers_along(&dims, &along, &i, &ishape)?;
                self.built(
                    s,
                    vec![HArg::Expr(x), HArg::Expr(i), axis],
                    Ty::Tile { elem, shape: ishape },
                    false,
                )
            }
        }
    }

    /// The index of `gather` has the extents of the tile, that along the axis aside; that of a tile of rank 1 has any.
    fn gathers_along(&mut self, dims: &[Poly], axis: &Axis, index: &HExpr, ishape: &Shape) -> Option<()> {
        if dims.len() == 1 {
            return Some(());
        }
        // Along an axis that is not known here every extent must agree.
        let (along, shown) = match axis {
            Axis::Known(n) => (Some(*n), n.to_string()),
            Axis::Symbolic(p) => (None, crate::show::poly(self.hir(), p)),
        };
        let found = ishape.dims().map(<[Poly]>::to_vec);
        let fits = found.as_ref().is_some_and(|f| {
            f.len() == dims.len()
                && dims.iter().zip(f).enumerate().all(|(n, (d, i))| along == Some(n) || self.dims_equal(d, i))
        });
        if fits {
            return Some(());
        }
        let (a, b) = (self.show_shape(&Shape::Dims(dims.to_vec())), self.show_shape(ishape));
        let message = format!(
            "`gather` along axis {shown} of a tile `{a}` needs an index of these extents, the axis aside, not of `{b}`"
        );
        let mut d = Diagnostic::error(codes::SHAPE_MISMATCH, index.span, message, super::super::this_is(&b));
        if let (Some([count]), Some(axis)) = (found.as_deref(), along) {
            let text = self.along(&self.text(index.span), (dims, axis), count);
            d = d.fix("take these positions everywhere along the axis", index.span, text);
        }
        self.report(d);
        None
    }

    /// The element type in which products of all members of a set are summed.
    pub(super) fn sums_of(&self, operand: DTerm, of: DTypeSet) -> String {
        let mut sums = of.iter().map(DType::acc);
        match (sums.next(), self.norm(operand)) {
            (_, _) if of.within(DTypeSet::INT) => "i32".to_string(),
            (Some(first), _) if sums.all(|s| s == first) => first.to_string(),
            (_, operand) => format!("{}.acc", self.show_elem(&Elem::D(operand))),
        }
    }

    /// Refuses a scalar as the operand of an operation along a dimension.
    pub fn need_dimension(&mut self, s: &Slots, dims: &[Poly], span: Span) -> Option<()> {
        if dims.is_empty() {
            let message = format!("`{}` needs a dimension, and a scalar has none", s.row.name);
            let d = Diagnostic::error(codes::AXIS, span, message, "this is a scalar");
            let joins = matches!(s.row.name, "cat" | "join");
            self.report(if joins { d.note(crate::check::advice::ONE_ELEMENT) } else { d });
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
                        super::super::this_is(&b),
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

/// The tile of `all(x)`, so that an assertion about it can say which element is false.
pub(super) fn every_element(h: HExpr) -> HExpr {
    match (&h.kind, &h.ty) {
        (HKind::Builtin(row, args), Ty::Tile { shape, .. }) if row.op == Op::Reduce(ReduceOp::All) => {
            match args.as_slice() {
                [HArg::Expr(x), ..] if shape.is_scalar() => x.clone(),
                _other => h,
            }
        }
        (_, _) => h,
    }
}
