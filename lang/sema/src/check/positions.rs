//! Positions in views: integers of any type, as the type that the view counts in.

use tk_ops::{DType, DTypeSet};
use tk_syntax::ast;
use tk_syntax::{Diagnostic, Span, codes};

use super::builtins::Slots;
use super::cx::Cx;
use crate::hir::{HExpr, HKind};
use crate::types::{DTerm, Ty};

/// What is said of a view of positions.
pub(super) const LOADED_FIRST: &str = "the positions are loaded first: `let i = ids.load([0], [BLOCK]);`";

impl Cx<'_> {
    /// A position in a view, for this operation: i32, or i64 where the view's extents are.
    pub(super) fn position(&mut self, e: &ast::Expr, wide: bool, of: Option<&Slots>) -> Option<HExpr> {
        let h = self.value(e);
        if h.ty.is_err() {
            return None;
        }
        let is_view = matches!(&h.ty, Ty::View { .. });
        if is_view || matches!(&h.ty, Ty::Tile { shape, .. } if !shape.is_scalar()) {
            let d = self.no_position(&h);
            let d = self.takes_positions(d, of);
            self.report(if is_view { d.note(LOADED_FIRST) } else { d });
            return None;
        }
        if !self.need_int(&h) {
            return None;
        }
        self.fit_position(h, wide)
    }

    fn no_position(&self, h: &HExpr) -> Diagnostic {
        let shown = self.show(&h.ty);
        let message = format!("a position is one integer per axis, not `{shown}`");
        Diagnostic::error(codes::POSITION, h.span, message, super::this_is(&shown))
    }

    /// A tile of positions, for `gather` and the like. Reports a view of them, which is loaded first.
    pub(super) fn positions_of(&mut self, e: &ast::Expr) -> Option<HExpr> {
        let h = self.value(e);
        if matches!(&h.ty, Ty::View { .. }) {
            let d = self.no_position(&h).note(LOADED_FIRST);
            self.report(d);
            return None;
        }
        let h = self.need_value(h);
        let Some(d) = self.dterm_of(&h.ty) else {
            if !h.ty.is_err() {
                let d = self.no_position(&h);
                self.report(d);
            }
            return None;
        };
        self.need_class("a position", d, DTypeSet::INT, h.span).then_some(h)
    }

    /// A position as the type that the view counts in. One of another integer type becomes the nearest value of that
    /// type: no extent reaches its ends, so what is outside stays outside.
    pub fn fit_position(&mut self, h: HExpr, wide: bool) -> Option<HExpr> {
        let to = if wide { DType::I64 } else { DType::I32 };
        let want = Ty::scalar(to);
        let from = match self.dterm_of(&h.ty) {
            Some(DTerm::Known(d)) if d != to => d.int_range(),
            _ => None,
        };
        if let (Some((low, high)), Some((least, most)), Ty::Tile { shape, .. }) =
            (from, to.int_range(), &h.ty)
            && shape.is_scalar()
        {
            let (span, ty) = (h.span, h.ty.clone());
            let mut out = h;
            for (name, bound, beyond) in [("maximum", least, low < least), ("minimum", most, high > most)] {
                if beyond && let Some(row) = self.find_row(name) {
                    let bound = self.mk(HKind::Int(bound), ty.clone(), span, true);
                    out = self.elementwise(row, "a position", vec![Some(out), Some(bound)], span);
                }
            }
            let konst = out.konst;
            return Some(self.mk(HKind::Cast(Box::new(out)), want, span, konst));
        }
        let h = self.coerce_as(h, &want, "a position in this view", Some(codes::POSITION), None);
        (!h.ty.is_err()).then_some(h)
    }

    /// Reports `y.store(v, [i, j])`: a list in the place of the value.
    pub(super) fn swapped(&self, s: &Slots, h: &HExpr) -> Option<Diagnostic> {
        let (at, value) = (s.get("at")?, s.get("value")?);
        let is_list = matches!(value.kind, ast::ExprKind::Array(_));
        if !is_list || at.span.end > value.span.start {
            return None;
        }
        let between = self.text(Span { start: at.span.end, end: value.span.start, ..at.span });
        let message = format!("`{}` takes positions first, then the value", s.row.name);
        let d =
            Diagnostic::error(codes::POSITION, at.span, message, format!("this is `{}`", self.show(&h.ty)));
        let text = format!("{}, {}", self.text(value.span), self.text(at.span));
        Some(if between.trim() == "," { d.fix("swap them", at.span.to(value.span), text) } else { d })
    }

    /// Reports `y.scatter(rows, v)` with a value of more dimensions: its other positions are counted.
    pub(super) fn position_of_each(&mut self, d: Diagnostic, s: &Slots, h: &HExpr) -> Option<Diagnostic> {
        let value = self.value(s.get("value")?);
        let (Ty::Tile { shape: own, .. }, Ty::Tile { shape, .. }) = (&h.ty, &value.ty) else { return None };
        let ([count], dims @ [_, _, ..]) = (own.dims()?, shape.dims()?) else { return None };
        let place = dims.iter().position(|d| self.dims_equal(count, d))?;
        let entries = dims.iter().enumerate().map(|(i, extent)| {
            let places: Vec<&str> = (0..dims.len()).map(|n| if n == i { ":" } else { "None" }).collect();
            let text = match i == place {
                true => self.operand(h.span),
                false => format!("arange(0, {})", crate::show::poly(self.hir(), extent)),
            };
            format!("{text}[{}]", places.join(", "))
        });
        let list = format!("[{}]", entries.collect::<Vec<_>>().join(", "));
        Some(d.fix(format!("count the other positions: `{list}`"), h.span, list))
    }
}
