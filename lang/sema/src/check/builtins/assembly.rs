//! `inline_asm`: several results and values, which broadcast to one shape.

use tk_syntax::{ast, codes};

use super::Slots;
use crate::check::cx::Cx;
use crate::hir::{HArg, HExpr};
use crate::types::{DTerm, Elem, Shape, Ty};

/// The results of `inline_asm`.
enum Results {
    /// A tile or scalar of this element type.
    One(Box<HExpr>, DTerm),
    /// A tuple of them.
    Tuple(Vec<DTerm>),
}

impl Cx<'_> {
    pub(super) fn inline_asm(&mut self, s: &Slots) -> Option<HExpr> {
        let (text, cons) = (self.plain_slot(s, "text")?, self.plain_slot(s, "constraints")?);
        let results = self.result_dtypes(s)?;
        let pack = self.plain_slot(s, "pack")?;
        let values: Vec<HExpr> = s.rest.clone().into_iter().map(|e| self.value(e)).collect();
        if values.iter().any(|h| h.ty.is_err()) {
            return None;
        }
        let shape =
            self.broadcast("`inline_asm`", &values.iter().collect::<Vec<_>>()).unwrap_or_else(Shape::scalar);
        let of = |d| Ty::Tile { elem: Elem::D(d), shape: shape.clone() };
        // The element types of several results are in the type of the call.
        let (dtype, ty) = match results {
            Results::One(h, d) => (HArg::Expr(*h), of(d)),
            Results::Tuple(ds) => (HArg::Default, Ty::Tuple(ds.into_iter().map(of).collect())),
        };
        self.built(s, vec![text, cons, dtype, pack, HArg::List(values)], ty, false)
    }

    /// The element types that `inline_asm` gives: one, or a tuple of them.
    fn result_dtypes(&mut self, s: &Slots) -> Option<Results> {
        let e = s.get("dtype")?;
        let ast::ExprKind::Tuple(parts) = &e.kind else {
            return self.dtype_slot(s, "dtype").map(|(h, d)| Results::One(Box::new(h), d));
        };
        if parts.is_empty() {
            self.error(
                codes::ARGUMENT_COUNT,
                e.span,
                "`inline_asm` gives at least one value",
                "an empty list of element types",
            );
            return None;
        }
        let p = s.row.params.iter().find(|p| p.name == "dtype")?;
        let found: Vec<Option<DTerm>> = parts
            .iter()
            .map(|part| {
                let h = self.plain_arg(p, part);
                self.need_dtype(h).map(|(_, d)| d)
            })
            .collect();
        Some(Results::Tuple(found.into_iter().collect::<Option<_>>()?))
    }
}
