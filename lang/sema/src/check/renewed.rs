//! Assignments that give a name a value of another type, `x = x.to(f32)` in Python: a new variable of that name is meant.

use tk_syntax::ast::{self, BinOp};
use tk_syntax::codes;

use super::cx::{Cx, Scope, Sym};
use crate::hir::{HExpr, HPat, HStmtKind, LocalId};
use crate::types::{DTerm, Elem, Ty};

impl Cx<'_> {
    /// Reports the assignment of a value of another type to a variable of this block, and declares the variable anew.
    ///
    /// In an inner block that would be another variable; a cast to a type that was written, and of an integer to a float, is
    /// more likely there.
    pub(super) fn declared_anew(
        &mut self,
        place: &ast::Expr,
        (op, value): (Option<BinOp>, &ast::Expr),
        id: LocalId,
        h: &HExpr,
    ) -> Option<HStmtKind> {
        let ty = self.local(id).ty.clone();
        let (Ty::Tile { .. }, Ty::Tile { .. }, ast::ExprKind::Path(p)) = (&ty, &h.ty, &place.kind) else {
            return None;
        };
        let [name] = p.segments.as_slice() else { return None };
        if self.untyped.contains(&id) || !self.is_of_this_block(id, &name.text) || self.has_written_type(id) {
            return None;
        }
        if self.fits(&h.ty, &ty) || self.is_rounded(&h.ty, &ty) {
            return None;
        }
        let mut d = self.mismatch(h, &ty, &format!("`{}`", name.text), None);
        if !matches!(d.code, codes::SHAPE_MISMATCH) {
            d.fixes.clear();
        }
        d.notes.clear();
        let word = if self.assigned_later(name) { "let mut" } else { "let" };
        let title = format!("declare a new `{}` with `{word}`", name.text);
        let text = match op {
            Some(op) => {
                let right = self.operand(value.span);
                format!("{word} {0} = {0} {1} {right}", name.text, op.symbol())
            }
            None => format!("{word} {} = {}", name.text, self.text(value.span)),
        };
        let at = self.local(id).span;
        let d = d.label(at, format!("declared here as `{}`", self.show(&ty)));
        let mut d = d.fix(title, place.span.to(value.span), text);
        // The first help is the one that is followed.
        d.fixes.rotate_right(1);
        self.report(d);
        let ty = self.let_type(h);
        let local = self.new_local(name, ty, true);
        Some(HStmtKind::Let(HPat::Local(local), Some(h.clone())))
    }

    /// Returns true for a variable that the innermost block declares, or a parameter in the block of its function.
    fn is_of_this_block(&self, id: LocalId, name: &str) -> bool {
        let holds = |s: &Scope| s.get(name) == Some(Sym::Local(id));
        let params = self.func.map_or(0, |f| self.hir().func(f).params.len());
        let is_param = (id.0 as usize) < params && self.lambda_depth == 0;
        match self.scopes.as_slice() {
            [.., outer, inner] => holds(inner) || is_param && holds(outer),
            [only] => holds(only),
            [] => false,
        }
    }

    /// Returns true for `let mut x: f16 = ..`.
    fn has_written_type(&self, id: LocalId) -> bool {
        let at = self.local(id).span;
        let params = self.func.map_or(0, |f| self.hir().func(f).params.len());
        let text = self.p.sources.get(at.file).map_or("", |s| &s.text);
        let rest = text.get(at.end as usize..).unwrap_or("");
        (id.0 as usize) >= params && rest.trim_start().starts_with(':')
    }

    /// Returns true for integers where floats of their shape are wanted.
    fn is_rounded(&mut self, have: &Ty, want: &Ty) -> bool {
        let (Ty::Tile { shape: x, .. }, Ty::Tile { shape: y, elem: Elem::D(to) }) = (have, want) else {
            return false;
        };
        let is_float = match self.set_of(*to) {
            Some(set) => set.within(tk_ops::DTypeSet::FLOAT),
            None => matches!(to, DTerm::Infer(_)) && !self.is_int(want),
        };
        self.is_int(have) && is_float && self.shapes_equal(x, y)
    }
}
