//! The element types of values by their names: `x.dtype` and `x_ptr.dtype.element_ty` of Triton.

use tk_syntax::ast::{self, ExprKind};
use tk_syntax::{Diagnostic, codes};

use super::cx::{Cx, Sym};
use crate::hir::HExpr;
use crate::types::{DTerm, Elem, Ty};

/// What tells where the addresses in memory are of a type.
fn addresses(of: &str) -> String {
    format!("memory of addresses is a `*{of}`, in a view a `view[{of}, 1]`: then what is loaded is a `{of}`")
}

impl Cx<'_> {
    /// The element type of the variable that `w.dtype` names, as it is written here.
    pub(super) fn dtype_of_value(&self, e: &ast::Expr) -> Option<String> {
        let ExprKind::Member(base, member) = &e.kind else { return None };
        match (&base.kind, member.text.as_str()) {
            (ExprKind::Path(p), "dtype") => match p.segments.as_slice() {
                [name] => self.dtype_of_name(name),
                _ => None,
            },
            (ExprKind::Member(..), "element_ty") => self.dtype_of_value(base),
            (_, _) => None,
        }
    }

    /// The element type of a variable: of the memory, for a pointer.
    fn dtype_of_name(&self, name: &ast::Name) -> Option<String> {
        let Some(Sym::Local(id)) = self.meaning(&name.text) else { return None };
        let elem = match &self.local(id).ty {
            Ty::Tile { elem: Elem::Ptr { pointee, .. }, .. } => pointee.as_ref(),
            Ty::Tile { elem, .. } | Ty::View { elem, .. } | Ty::Buffer { elem, .. } => elem,
            _ => return None,
        };
        match elem {
            Elem::D(DTerm::Infer(_)) => None,
            Elem::D(_) => Some(self.show_elem(elem)),
            _ => None,
        }
    }

    /// Reports `w.dtype` as a type.
    pub(super) fn not_an_element_type(&mut self, name: &ast::Name, member: &ast::Name) {
        let message = format!("`{}` is not an element type", name.text);
        let d = Diagnostic::error(codes::NOT_A_VALUE, name.span, message, "used as an element type");
        let to = if member.text == "dtype" { self.dtype_of_name(name) } else { None };
        self.report(match to {
            Some(to) => d.fix(format!("use `{to}`"), name.span.to(member.span), to),
            None => d,
        });
    }

    /// Says of an integer that is cast to a pointer how its memory is declared.
    pub(super) fn as_addresses(&self, d: Diagnostic, h: &HExpr, to: &str) -> Diagnostic {
        if self.is_int(&h.ty) { d.note(addresses(to)) } else { d }
    }
}
