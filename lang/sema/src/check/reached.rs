//! Reports an element of a view where an operation on memory wants the view and a position: `z[0].store(v)`,
//! `atomic_add(z[0], v)`.

use tk_ops::table::{Effects, ParamKind, Receiver, Row};
use tk_syntax::ast::{self, ExprKind, Subscript};
use tk_syntax::{Diagnostic, Span, codes};

use super::cx::Cx;
use crate::hir::HExpr;
use crate::types::{Elem, Ty};

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
        match tk_ops::rows::find(row.name, Receiver::View) {
            Some(method) if !self.is_of_table(&first.value) => self.reached(method, &first.value, rest, span),
            Some(_) | None => self.pointer_of_element(row, &first.value),
        }
    }

    /// Returns true for an element of a variable that is a view of pointers.
    fn is_of_table(&self, e: &ast::Expr) -> bool {
        let ExprKind::Index(view, _) = &e.kind else { return false };
        let of = |id| matches!(&self.local(id).ty, Ty::View { elem: Elem::Ptr { .. }, .. });
        self.variable(view).is_some_and(of)
    }

    /// Reports `atomic_load(z[0])`, and `atomic_add(table[0], v)`, where the pointer is the element.
    fn pointer_of_element(&mut self, row: &Row, base: &ast::Expr) -> Option<HExpr> {
        let ExprKind::Index(view, items) = &base.kind else { return None };
        let local = self.local(self.variable(view)?);
        let Ty::View { rank, .. } = &local.ty else { return None };
        let plain = |i: &Subscript| match i {
            Subscript::Expr(e) if !matches!(e.kind, ExprKind::None) => Some(self.text(e.span)),
            Subscript::Expr(_) | Subscript::Slice(..) | Subscript::Named(..) => None,
        };
        let at: Vec<String> = items.iter().map(plain).collect::<Option<_>>()?;
        if self.known_rank(rank) != u32::try_from(at.len()).ok() {
            return None;
        }
        let text = match self.is_of_table(base) {
            true => format!("{}.load([{}])", local.name, at.join(", ")),
            false => self.element_pointer(&local.name, &at),
        };
        let message = format!("`{}` takes a pointer", row.name);
        let label = "an integer for every axis leaves no view";
        let d = Diagnostic::error(codes::VIEW_INDEX, base.span, message, label);
        Some(self.fail(d.write_instead(base.span, text)))
    }

    /// The pointer to an element of a view.
    pub(super) fn element_pointer(&self, view: &str, at: &[String]) -> String {
        let held = |text: &str| if self.is_postfix(text) { text.to_string() } else { format!("({text})") };
        let view = held(view);
        let step = |(d, at): (usize, &String)| {
            let number = at.chars().all(|c| c.is_ascii_digit());
            let at = if number { at.clone() } else { format!("{} as i64", held(at)) };
            if at == "0" { String::new() } else { format!(" + {at} * {view}.strides[{d}]") }
        };
        let steps: String = at.iter().enumerate().map(step).collect();
        format!("{view}.ptr{steps}")
    }

    /// Reports `y.atomic_load([i])`: a function of pointers that no view has as a method.
    pub(super) fn no_method_of_view(
        &mut self,
        d: Diagnostic,
        row: &Row,
        base: &HExpr,
        args: &[ast::Arg],
        span: Span,
    ) -> Diagnostic {
        let Ty::View { rank, .. } = &base.ty else { return d };
        let view = self.text(base.span);
        let position = args.split_first().and_then(|(first, rest)| match &first.value.kind {
            ExprKind::Array(items) if first.name.is_none() => Some((items.as_slice(), rest)),
            _ => None,
        });
        let given = position.filter(|(items, _)| self.known_rank(rank) == u32::try_from(items.len()).ok());
        let (at, rest) = given.unwrap_or((&[], args));
        let at: Vec<String> = at.iter().map(|e| self.text(e.span)).collect();
        let rest = rest.iter().map(|a| {
            let value = a.value.span;
            format!(", {}", self.text(a.name.as_ref().map_or(value, |n| n.span.to(value))))
        });
        let fixed = format!("{}({}{})", row.name, self.element_pointer(&view, &at), rest.collect::<String>());
        let short = if fixed.contains('\n') { format!("{}(..)", row.name) } else { fixed.clone() };
        match position.is_some() == given.is_some() {
            true => d.fix(format!("call `{short}`"), span, fixed),
            false => d.note(format!("it takes a pointer: `{short}`")),
        }
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
        if matches!(elem, Elem::Ptr { .. }) {
            return Some(self.of_what_it_points_to(&name, items, row, rest, base.span));
        }
        // The position in what is left, where nothing is left.
        let is_zero = |e: &ast::Expr| matches!(e.kind, ExprKind::Int(Some(0)));
        let rest = match rest {
            [first, others @ ..] if first.name.is_none() => match &first.value.kind {
                ExprKind::Array(list) if list.iter().all(is_zero) => others,
                _ => rest,
            },
            all => all,
        };
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

    /// Reports `table[0].load([0], [4])` of a table of pointers.
    fn of_what_it_points_to(
        &mut self,
        table: &str,
        items: &[Subscript],
        row: &Row,
        args: &[ast::Arg],
        base: Span,
    ) -> HExpr {
        let at: Vec<String> = items
            .iter()
            .filter_map(|i| match i {
                Subscript::Expr(e) => Some(self.text(e.span)),
                Subscript::Slice(..) | Subscript::Named(..) => None,
            })
            .collect();
        let rank = args.first().map_or(1, |a| match &a.value.kind {
            ExprKind::Array(items) => items.len(),
            _ => 1,
        });
        let lists = if rank == 2 { "[m, n], [n, 1]" } else { "[n], [1]" };
        let message = format!("`{}` takes a view, and this is a pointer of a table", row.name);
        let d = Diagnostic::error(codes::VIEW_INDEX, base, message, "an element of a view of pointers");
        let view = format!("view({table}.load([{}]), {lists})", at.join(", "));
        self.fail(d.note(format!("`{view}` is a view of what it points to, with extents and strides")))
    }
}
