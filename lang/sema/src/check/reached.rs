//! Reports an element of a view where an operation on memory wants the view and a position: `z[0].store(v)`,
//! `atomic_add(z[0], v)`.

use tk_ops::table::{Effects, ParamKind, Receiver, Row};
use tk_syntax::ast::{self, ExprKind, Subscript};
use tk_syntax::{Diagnostic, Span, codes};

use super::cx::Cx;
use crate::hir::HExpr;
use crate::types::Ty;

impl Cx<'_> {
    /// `z[0].store(v)`: the method of views that `name` is, called on an element of one.
    pub(super) fn method_of_element(
        &mut self,
        base: &ast::Expr,
        name: &ast::Name,
        args: &[ast::Arg],
        span: Span,
    ) -> Option<HExpr> {
        let row = tk_ops::rows::find(&name.text, Receiver::View)?;
        // `z[0].store([], v)`: nothing is left of the position.
        let is_empty = |a: &ast::Arg| matches!(&a.value.kind, ExprKind::Array(items) if items.is_empty());
        let rest = match args {
            [first, rest @ ..] if first.name.is_none() && is_empty(first) => rest,
            all => all,
        };
        self.reached(row, base, rest, span)
    }

    /// `atomic_add(z[0], v)`: a function of pointers, called with an element of a view.
    pub(super) fn function_of_element(&mut self, row: &Row, args: &[ast::Arg], span: Span) -> Option<HExpr> {
        let of_pointers = row.params.first().is_some_and(|p| p.kind == ParamKind::Pointer);
        let (first, rest) = args.split_first().filter(|_| of_pointers)?;
        let row = tk_ops::rows::find(row.name, Receiver::View)?;
        self.reached(row, &first.value, rest, span)
    }

    /// Reports `row` of the element `base`, with these arguments after its position.
    fn reached(&mut self, row: &Row, base: &ast::Expr, rest: &[ast::Arg], span: Span) -> Option<HExpr> {
        let ExprKind::Index(view, items) = &base.kind else { return None };
        let local = self.local(self.variable(view)?);
        let (name, ty) = (local.name.clone(), local.ty.clone());
        let Ty::View { elem, rank, mutable, .. } = &ty else { return None };
        let takes_position = row.params.get(1).is_some_and(|p| p.name == "at");
        let is_whole = self.known_rank(rank) == u32::try_from(items.len()).ok();
        let plain = |i: &Subscript| matches!(i, Subscript::Expr(e) if !matches!(e.kind, ExprKind::None));
        if !takes_position || !is_whole || !items.iter().all(plain) {
            return None;
        }
        let exprs = items.iter().map(|i| match i {
            Subscript::Expr(e) => Some(self.value(e)),
            Subscript::Slice(..) | Subscript::Named(..) => None,
        });
        let at: Vec<Option<HExpr>> = exprs.collect();
        let mut fits =
            at.iter().flatten().all(|h| self.is_int(&h.ty)) && (*mutable || row.effects == Effects::Read);
        for a in rest {
            if self.is_word(&a.value) {
                continue;
            }
            let h = self.value(&a.value);
            fits &= match &h.ty {
                Ty::Tile { elem: have, shape } => {
                    a.name.is_some() || shape.is_scalar() && self.elem_fits(have, elem)
                }
                _ => false,
            };
        }
        let mut parts = vec![format!("[{}]", self.corner(&name, items, &at).join(", "))];
        parts.extend(rest.iter().map(|a| {
            let value = a.value.span;
            self.text(a.name.as_ref().map_or(value, |n| n.span.to(value)))
        }));
        let fixed = format!("{name}.{}({})", row.name, parts.join(", "));
        let message = format!("`{}` takes a view and a position in it", row.name);
        let d = Diagnostic::error(
            codes::VIEW_INDEX,
            base.span,
            message,
            "an integer for every axis leaves no view",
        );
        let short =
            if fixed.contains('\n') { format!("{name}.{}([..], ..)", row.name) } else { fixed.clone() };
        Some(self.fail(match fits {
            true => d.fix(format!("write `{short}`"), span, fixed),
            false => d.note(format!("it is written `{short}`")),
        }))
    }
}
