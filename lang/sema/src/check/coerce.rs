//! Coercion of a value to a type, with lossless conversions, and the message when they do not match.

use tk_syntax::{Code, Diagnostic, Span, codes};

use super::conditional::coerce_tail;
use super::cx::Cx;
use crate::hir::{HExpr, HKind};
use crate::types::{DTerm, Elem, Shape, Ty};

impl Cx<'_> {
    /// Reports with another code when `code` is given (a loop's state, a return value).
    pub fn coerce_as(
        &mut self,
        h: HExpr,
        want: &Ty,
        what: &str,
        code: Option<Code>,
        other: Option<(Span, String)>,
    ) -> HExpr {
        if h.ty.is_err() || want.is_err() || h.ty == Ty::Never {
            return h;
        }
        if self.fits(&h.ty, want) {
            return self.convert(h, want);
        }
        let d = self.mismatch(&h, want, what, code);
        let d = match other {
            Some((span, text)) => d.label(span, text),
            None => d,
        };
        self.fail(d)
    }

    /// The expression as a value of a type, with lossless conversions; reports when it does not fit.
    pub fn coerce(&mut self, h: HExpr, want: &Ty, what: &str) -> HExpr {
        self.coerce_as(h, want, what, None, None)
    }

    /// The expression as an argument of a function; a tile for a function of one number is reported with what takes a tile.
    pub(super) fn coerce_arg(&mut self, h: HExpr, want: &Ty, name: &str, function: &str) -> HExpr {
        let what = format!("`{name}` of `{function}`");
        match (&h.ty, want) {
            (Ty::Tile { shape: x, .. }, Ty::Tile { shape: y, elem: Elem::D(_) })
                if y.is_scalar() && !x.is_scalar() =>
            {
                let (d, one) = (self.mismatch(&h, want, &what, None), self.show(want));
                self.fail(d.note(format!(
                    "`map({function}, {name})` calls it for each element; `[S: shape]` and `{name}: tile[{one}, S]` take a tile of any shape"
                )))
            }
            _other => self.coerce(h, want, &what),
        }
    }

    pub(super) fn mismatch(&mut self, h: &HExpr, want: &Ty, what: &str, code: Option<Code>) -> Diagnostic {
        let (have, need) = (self.show(&h.ty), self.show(want));
        let default = match (&h.ty, want) {
            (Ty::Tile { elem: a, shape: x }, Ty::Tile { elem: b, shape: y }) => {
                if !self.shapes_equal(x, y) {
                    if x.dims().map(<[_]>::len) == y.dims().map(<[_]>::len) {
                        codes::SHAPE_MISMATCH
                    } else {
                        codes::RANK_MISMATCH
                    }
                } else if matches!((a, b), (Elem::D(_), Elem::D(_))) {
                    codes::ELEMENT_MISMATCH
                } else {
                    codes::TYPE_MISMATCH
                }
            }
            _ => codes::TYPE_MISMATCH,
        };
        let mut d = Diagnostic::error(
            code.unwrap_or(default),
            h.span,
            format!("{what} is `{need}`, but this is `{have}`"),
            super::this_is(&have),
        );
        if have == need
            && let Some(d) = self.namesakes(d.clone(), &have)
        {
            return d;
        }
        if let (Ty::Tile { elem: Elem::D(_), shape: x }, Ty::Tile { elem: Elem::D(b), shape: y }) =
            (&h.ty, want)
        {
            if self.shapes_equal(x, y) && self.castable(*b) && !matches!(h.kind, HKind::Table(_)) {
                let to = self.show_elem(&Elem::D(*b));
                let cast = self.cast_text(h.span, &to);
                if is_int_division(h) && matches!(b, DTerm::Known(t) if t.is_float()) {
                    d = d.note(format!(
                        "`/` of integers truncates; cast its operands to `{to}` for a fraction"
                    ));
                } else if is_int(h)
                    && matches!(b, DTerm::Known(t) if t.is_float())
                    && let Some(lost) =
                        self.named_quotient(d.clone(), h.span).or_else(|| self.lost_fraction(d.clone(), h))
                {
                    d = lost;
                } else {
                    d = match &h.ty {
                        Ty::Tile { elem: Elem::D(a), .. } => self.of_result(d, (*a, h.span), *b),
                        _other => d,
                    };
                    d = d.fix(format!("cast to `{to}`"), h.span, cast);
                }
            } else if let (Shape::Dims(p), Shape::Dims(q)) = (x, y)
                && p.len() == q.len()
                && let Some(transposed) = self.transposed(d.clone(), (y, None), (x, h.span))
            {
                d = transposed;
            } else if let (Shape::Dims(p), Shape::Dims(q)) = (x, y)
                && p.len() == q.len()
                && let Some((a, b)) = p.iter().zip(q).find(|(a, b)| !self.dims_equal(a, b))
            {
                d = self.equality_hint(d, a, b);
            }
        }
        if let (
            Ty::Tile { elem: Elem::Ptr { mutable: false, .. }, .. },
            Ty::Tile { elem: Elem::Ptr { mutable: true, .. }, .. },
        )
        | (Ty::View { mutable: false, .. }, Ty::View { mutable: true, .. }) = (&h.ty, want)
        {
            d = d.note("a `mut` one is needed to write through it");
        }
        if matches!(want, Ty::Tile { .. }) { self.read_first(d, h) } else { d }
    }

    /// Returns true if a value of type `have` serves as `want`; literal types are fixed on the way.
    pub fn fits(&mut self, have: &Ty, want: &Ty) -> bool {
        match (have, want) {
            (Ty::Err, _) | (_, Ty::Err) | (Ty::Never, _) => true,
            (Ty::Tile { elem: a, shape: x }, Ty::Tile { elem: b, shape: y }) => {
                self.shapes_equal(x, y) && self.elem_fits(a, b)
            }
            (
                Ty::View { elem: a, rank: r, mutable: m, wide: w },
                Ty::View { elem: b, rank: s, mutable: n, wide: v },
            ) => self.dims_equal(r, s) && w == v && (*m || !*n) && self.same_elem(a, b),
            (Ty::List(a, n), Ty::List(b, m)) => self.dims_equal(n, m) && self.fits(a, b),
            (Ty::Option(a), Ty::Option(b)) => self.fits(a, b),
            (a, Ty::Option(b)) => self.fits(a, b),
            (Ty::Tuple(a), Ty::Tuple(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(x, y)| self.fits(x, y))
            }
            (Ty::Struct(i, a), Ty::Struct(j, b)) => {
                i == j && a.iter().zip(b).all(|(x, y)| self.same_cterm(x, y))
            }
            (Ty::Fn(a, r), Ty::Fn(b, s)) => {
                a.len() == b.len()
                    && a.iter().zip(b).all(|(x, y)| self.fits(x, y) && self.fits(y, x))
                    && self.fits(r, s)
            }
            (Ty::Buffer { elem: a, shape: x }, Ty::Buffer { elem: b, shape: y }) => {
                self.same_elem(a, b) && self.shapes_equal(&Shape::Dims(x.clone()), &Shape::Dims(y.clone()))
            }
            (a, b) => a == b,
        }
    }

    pub(super) fn elem_fits(&mut self, have: &Elem, want: &Elem) -> bool {
        match (self.resolve_elem(have), self.resolve_elem(want)) {
            (Elem::D(a), Elem::D(b)) => a == b || self.adapt(a, b) || self.adapt(b, a) || self.widens(a, b),
            (Elem::Ptr { pointee: a, mutable: m }, Elem::Ptr { pointee: b, mutable: n }) => {
                (m || !n) && self.same_elem(&a, &b)
            }
            (a, b) => self.same_elem(&a, &b),
        }
    }

    pub fn same_cterm(&mut self, a: &crate::types::CTerm, b: &crate::types::CTerm) -> bool {
        use crate::types::CTerm;
        match (a, b) {
            (CTerm::Err, _) | (_, CTerm::Err) => true,
            (CTerm::Int(p), CTerm::Int(q)) => self.dims_equal(p, q),
            (CTerm::DType(x), CTerm::DType(y)) => self.same_elem(&Elem::D(*x), &Elem::D(*y)),
            (CTerm::Shape(x), CTerm::Shape(y)) => self.shapes_equal(x, y),
            (CTerm::Expr(x), CTerm::Expr(y)) => x.kind == y.kind,
            _ => false,
        }
    }

    /// Adds the conversion for a type that fits.
    pub fn convert(&mut self, h: HExpr, want: &Ty) -> HExpr {
        let (have, want) = (self.resolve_ty(&h.ty), self.resolve_ty(want));
        if have == want {
            return h;
        }
        if let (HKind::Tuple(_), Ty::Tuple(ts)) = (&h.kind, &want) {
            let HKind::Tuple(es) = h.kind else { return h };
            let es = es.into_iter().zip(ts).map(|(e, t)| self.convert(e, t)).collect();
            return HExpr { kind: HKind::Tuple(es), ty: want, span: h.span, konst: h.konst };
        }
        // Shapes that are equal by a `require` may be written differently: nothing to convert then.
        let elem_differs = match (&have, &want) {
            (Ty::Tile { elem: a, .. }, Ty::Tile { elem: b, .. }) => a != b,
            (Ty::Struct(..), Ty::Struct(..)) | (Ty::Fn(..), Ty::Fn(..)) => false,
            _ => true,
        };
        if !elem_differs {
            return h;
        }
        let (span, konst) = (h.span, h.konst);
        // The arms are converted one by one: one of them may leave, which a conversion of the whole would not see.
        let kind = match h.kind {
            HKind::If { cond, mut then, els: Some(mut els) } => {
                coerce_tail(self, &mut then, &want);
                coerce_tail(self, &mut els, &want);
                HKind::If { cond, then, els: Some(els) }
            }
            HKind::IfLet { opt, bind, mut then, els: Some(mut els) } => {
                coerce_tail(self, &mut then, &want);
                coerce_tail(self, &mut els, &want);
                HKind::IfLet { opt, bind, then, els: Some(els) }
            }
            HKind::Block(mut b) => {
                coerce_tail(self, &mut b, &want);
                HKind::Block(b)
            }
            kind => HKind::Cast(Box::new(HExpr { kind, ..h })),
        };
        HExpr { span, konst, ty: want, kind }
    }
}

/// Returns true for `a / b` of integers, whose result has lost its fraction already.
fn is_int_division(h: &HExpr) -> bool {
    matches!(&h.kind, HKind::Builtin(row, _) if row.name == "/") && is_int(h)
}

fn is_int(h: &HExpr) -> bool {
    matches!(&h.ty, Ty::Tile { elem: Elem::D(DTerm::Known(t)), .. } if t.is_int())
}
