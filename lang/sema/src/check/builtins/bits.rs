//! The type of `bitcast`: of one width, or between bytes and the pairs of `e2m1` in them.

use std::collections::BTreeSet;

use tk_ops::{DType, DTypeSet};
use tk_syntax::{Diagnostic, Span, codes};

use super::Slots;
use crate::check::cx::{Cx, Lit};
use crate::hir::{HArg, HExpr};
use crate::poly::{Poly, PolyFn};
use crate::types::{DTerm, Elem, Shape, Ty};

impl Cx<'_> {
    pub fn bitcast_row(&mut self, s: &Slots) -> Option<HExpr> {
        let (mut x, elem, shape) = self.tile_slot(s, "x")?;
        let (dh, d) = self.dtype_slot(s, "dtype")?;
        let Elem::D(mut from) = elem else { return None };
        // A literal has the bits of its default type.
        if let Some(literal) = self.literal(from) {
            from = DTerm::Known(if literal == Lit::Float { DType::F32 } else { DType::I32 });
            x = self.coerce(x, &Ty::Tile { elem: Elem::D(from), shape: shape.clone() }, "`x`");
        }
        for (of, span) in [(from, x.span), (d, dh.span)] {
            if self.norm(of) == DTerm::Known(DType::Bool)
                && !self.need_class("`bitcast`", of, DTypeSet::ANY.without(DTypeSet::BOOL), span)
            {
                return None;
            }
        }
        if let (DTerm::Known(a), DTerm::Known(b)) = (self.norm(from), self.norm(d))
            && is_packing(a, b)
        {
            let shape = self.packed_shape(s, &shape, b == DType::E2M1)?;
            let ty = Ty::Tile { elem: Elem::D(d), shape };
            return self.built(s, vec![HArg::Expr(x), HArg::Expr(dh)], ty, false);
        }
        self.same_width(s, from, d)?;
        let konst = x.konst && shape.is_scalar();
        self.built(s, vec![HArg::Expr(x), HArg::Expr(dh)], Ty::Tile { elem: Elem::D(d), shape }, konst)
    }

    /// `cast(x, dtype, rounding, bits)`, between floats.
    pub fn cast_row(&mut self, s: &Slots) -> Option<HExpr> {
        let (mut x, elem, shape) = self.tile_slot(s, "x")?;
        let (dh, to) = self.dtype_slot(s, "dtype")?;
        let Elem::D(from) = elem else { return None };
        if self.literal(from).is_some() {
            x = self.coerce(
                x,
                &Ty::Tile { elem: Elem::D(DTerm::Known(DType::F32)), shape: shape.clone() },
                "`x`",
            );
        }
        let floats = DTypeSet::FLOAT.or(DTypeSet::F8).or(DTypeSet::of(&[DType::E2M1]));
        let from = self.dterm_of(&x.ty)?;
        if self.cast_instead_of_rounding(s, &x, to, floats, dh.span) {
            return None;
        }
        if !self.need_class("`cast`", from, DTypeSet::FLOAT, x.span)
            || !self.need_class("the result of `cast`", to, floats, dh.span)
        {
            return None;
        }
        let kind = s.row.params.iter().find(|p| p.name == "rounding").map(|p| p.kind)?;
        let rounding = self.word(s, "rounding", kind)?;
        let stochastic = matches!(rounding, HArg::Word("stochastic"));
        let bits = match s.get("bits") {
            Some(e) if stochastic => {
                let h = self.value(e);
                let want = Ty::Tile { elem: Elem::D(DTerm::Known(DType::U32)), shape: shape.clone() };
                let h = self.coerce(h, &want, "`bits`");
                if h.ty.is_err() {
                    return None;
                }
                HArg::Expr(h)
            }
            None if !stochastic => HArg::Default,
            given => {
                let message = match given {
                    Some(_) => "`bits` requires `rounding = stochastic`",
                    None => "`rounding = stochastic` needs `bits`, such as `randint(seed, offset)`",
                };
                self.error(codes::ARGUMENT_COUNT, s.span, message, "");
                return None;
            }
        };
        let ty = Ty::Tile { elem: Elem::D(to), shape };
        self.built(s, vec![HArg::Expr(x), HArg::Expr(dh), rounding, bits], ty, false)
    }

    /// Reports `cast(x, i32)`: a cast without a rounding is written with `as`, to every element type.
    fn cast_instead_of_rounding(
        &mut self,
        s: &Slots,
        x: &HExpr,
        to: DTerm,
        floats: DTypeSet,
        at: Span,
    ) -> bool {
        let of_floats = |set: DTypeSet| set.and(floats) != DTypeSet::EMPTY;
        let is_known = self.set_of(to).is_some_and(|set| !of_floats(set))
            || self.dterm_of(&x.ty).and_then(|d| self.set_of(d)).is_some_and(|set| !of_floats(set));
        if !is_known || s.get("rounding").is_some() || s.get("bits").is_some() {
            return false;
        }
        let to = self.show_elem(&Elem::D(to));
        let message = format!("`cast` rounds floats to floats; a cast to `{to}` is written `as {to}`");
        let d = Diagnostic::error(codes::CLASS, at, message, super::super::this_is(&to));
        let text = format!("({})", self.cast_text(x.span, &to));
        self.report(d.fix(format!("cast to `{to}`"), s.span, text));
        true
    }

    fn same_width(&mut self, s: &Slots, from: DTerm, to: DTerm) -> Option<()> {
        let (Some(a), Some(b)) = (self.set_of(from), self.set_of(to)) else { return Some(()) };
        let widths = |set: DTypeSet| set.iter().map(DType::bits).collect::<BTreeSet<_>>();
        let differ = widths(a) != widths(b) || (widths(a).len() > 1 && self.norm(from) != self.norm(to));
        if !differ || self.width_fact(from, to) {
            return Some(());
        }
        let (ta, tb) = (self.show_elem(&Elem::D(from)), self.show_elem(&Elem::D(to)));
        let message = format!("`bitcast` keeps the width, but the widths of `{ta}` and `{tb}` differ");
        let diag = Diagnostic::error(codes::BAD_CAST, s.span, message, format!("from `{ta}` to `{tb}`"));
        let diag = if matches!((from, to), (DTerm::Known(_), DTerm::Known(_))) {
            diag
        } else {
            self.require_fix(diag, &format!("{ta}.bits == {tb}.bits"), "make it valid")
        };
        self.report(diag);
        None
    }

    /// Returns true if a `require` says that two dtypes have one width.
    fn width_fact(&self, a: DTerm, b: DTerm) -> bool {
        self.widths.iter().any(|(x, y)| (*x, *y) == (a, b) || (*x, *y) == (b, a))
    }

    /// The last dimension of the bytes is half of that of the `e2m1` in them.
    fn packed_shape(&mut self, s: &Slots, shape: &Shape, unpack: bool) -> Option<Shape> {
        let mut dims = self.dims_of(s, shape)?;
        let Some(last) = dims.pop() else {
            let message = "a byte holds two `e2m1`, so `bitcast` between them needs a tile with a dimension";
            self.error(codes::BAD_CAST, s.span, message, "no dimension to pack or unpack");
            return None;
        };
        let two = Poly::int(2);
        let packed = if unpack { last.mul(&two) } else { half(&last).or_else(|| self.known_half(&last)) };
        let Some(packed) = packed else {
            let n = crate::show::poly(self.hir(), &last);
            let message =
                format!("two `e2m1` make a byte, and the last dimension, `{n}`, is not known to be even");
            let mut diag =
                Diagnostic::error(codes::BAD_CAST, s.span, message, format!("the last dimension is `{n}`"));
            if last.as_int().is_none() {
                diag = self.require_fix(diag, &format!("{n} % 2 == 0"), "make it valid");
            }
            self.report(diag);
            return None;
        };
        dims.push(packed);
        Some(Shape::Dims(dims))
    }

    /// Half of what a `require` says is even.
    fn known_half(&self, p: &Poly) -> Option<Poly> {
        let half = Poly::apply(PolyFn::Div, vec![p.clone(), Poly::int(2)])?;
        self.dims_equal(&half.mul(&Poly::int(2))?, p).then_some(half)
    }
}

/// Returns true if a `bitcast` is between bytes and the pairs of `e2m1` in them.
fn is_packing(a: DType, b: DType) -> bool {
    let is_byte = |d| matches!(d, DType::U8 | DType::I8);
    a == DType::E2M1 && is_byte(b) || is_byte(a) && b == DType::E2M1
}

/// Half of what is even in each of its terms.
fn half(p: &Poly) -> Option<Poly> {
    p.terms().try_fold(Poly::int(0), |sum, (atoms, n)| {
        let part = (n % 2 == 0).then(|| Poly::int(n / 2))?;
        let part = atoms.iter().try_fold(part, |part, a| part.mul(&Poly::atom(a.clone())))?;
        sum.add(&part)
    })
}
