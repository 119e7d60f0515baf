//! `export`, and the lists of values that `export` and `tune` give to compile-time parameters.
//!
//! Guarantees that what an `export` names can be specialized as far as parameters and `require` say.

use tk_syntax::ast::{self, ExprKind};
use tk_syntax::{Diagnostic, Span, codes};

use super::cx::Cx;
use super::names::closest;
use super::{Def, Program};
use crate::contract;
use crate::hir::{CKind, CVarId, FnId, FnKind, HExport, HExpr, HKind};
use crate::target::Target;
use crate::types::{CTerm, Shape, Ty};

/// Checks `export k[A = .., B = [..]];`.
pub(super) fn export(p: &mut Program, file: usize, e: &ast::Export) {
    let mut cx = Cx::new(p, file, None);
    let Some(Def::Fn(id)) = cx.resolve_path(&e.path) else { return };
    if cx.hir().func(id).kind != FnKind::Kernel {
        let text = cx.text(e.path.span);
        cx.error(
            codes::CLAUSE,
            e.path.span,
            format!("`{text}` is not a kernel"),
            "only kernels can be exported",
        );
        return;
    }
    let before = cx.p.notes.diags.len();
    let mut values: Vec<(CVarId, Vec<HExpr>)> = vec![];
    let mut names: Vec<(CVarId, Span)> = vec![];
    for a in &e.args {
        let Some(n) = &a.name else {
            cx.error(
                codes::ARGUMENT_NAME,
                a.value.span,
                "instances are given by name",
                "as in `export k[N = [64, 128]];`",
            );
            continue;
        };
        let Some(c) = cx.exported_param(id, n) else { continue };
        if let Some((_, first)) = names.iter().find(|x| x.0 == c) {
            let message = format!("`{}` is given twice", n.text);
            let d = Diagnostic::error(codes::ARGUMENT_NAME, n.span, message, "second value");
            cx.report(
                d.label(*first, "first given here").note("write several values as one list: `[16, 32]`"),
            );
            continue;
        }
        names.push((c, n.span));
        let list = cx.value_list(c, &a.value);
        values.push((c, list));
    }
    cx.remember();
    if cx.p.notes.diags.len() > before || cx.hir().func(id).broken {
        return;
    }
    let new = HExport { kernel: id, values, span: e.path.span };
    match contract::instances(cx.hir(), &new, Target::CPU) {
        Ok(list) => {
            let hir = cx.hir();
            let same = |x: &&HExport| {
                x.kernel == id
                    && contract::instances(hir, x, Target::CPU)
                        .is_ok_and(|y| list.iter().all(|i| y.contains(i)))
            };
            if let Some(first) = hir.exports.iter().find(same).map(|x| x.span) {
                let message = "these instances are already exported";
                let d = Diagnostic::error(codes::CLAUSE, e.path.span, message, "the same instances");
                cx.report(d.label(first, "exported here"));
            }
        }
        Err(d) => cx.p.report_evaluation(*d),
    }
    p.hir.exports.push(new);
}

impl Cx<'_> {
    fn exported_param(&mut self, id: FnId, n: &ast::Name) -> Option<CVarId> {
        let f = self.hir().func(id);
        let known: Vec<(CVarId, String)> =
            f.cparams.iter().map(|c| (*c, self.hir().cvar(*c).name.clone())).collect();
        if let Some((c, _)) = known.iter().find(|k| k.1 == n.text) {
            self.saw_cvar(n, *c);
            return Some(*c);
        }
        let message = format!("`{}` has no compile-time parameter `{}`", f.name, n.text);
        let mut d =
            Diagnostic::error(codes::ARGUMENT_NAME, n.span, message, "unknown compile-time parameter");
        d.declared = Some(f.span);
        if let Some(best) = closest(&n.text, known.iter().map(|k| k.1.as_str())) {
            d = d.use_instead(n.span, best);
        }
        self.report(d);
        None
    }

    /// The values of a compile-time parameter, one or a list; what is wrong with one is reported.
    pub fn value_list(&mut self, c: CVarId, value: &ast::Expr) -> Vec<HExpr> {
        let items: Vec<&ast::Expr> = match &value.kind {
            // A list of extents is one value of a `shape` parameter; a list of such lists is several.
            ExprKind::Array(items) if self.hir().cvar(c).kind == CKind::Shape => {
                let nested = !items.is_empty() && items.iter().all(|i| matches!(i.kind, ExprKind::Array(_)));
                if nested { items.iter().collect() } else { vec![value] }
            }
            ExprKind::Array(items) => items.iter().collect(),
            _ => vec![value],
        };
        if self.union_of_types(c, value) {
            return vec![];
        }
        self.no_empty_list(items.len(), value.span);
        let mut terms: Vec<(CTerm, Span)> = vec![];
        for e in items {
            let term = self.carg(c, e);
            if term == CTerm::Err {
                continue;
            }
            if let Some((_, first)) =
                terms.iter().find(|t| self.p.hir.cvar(c).kind != CKind::Err && t.0 == term)
            {
                let first = *first;
                self.repeated_value(e.span, first);
                continue;
            }
            terms.push((term, e.span));
        }
        terms.into_iter().map(|(t, span)| self.cterm_expr(c, &t, span)).collect()
    }

    /// Reports `T = f16 | f32`, which is how a bound is written.
    fn union_of_types(&mut self, c: CVarId, value: &ast::Expr) -> bool {
        let union = matches!(value.kind, ExprKind::Binary(ast::BinOp::BitOr, ..));
        if !union || !matches!(self.hir().cvar(c).kind, CKind::DType(_)) {
            return false;
        }
        let list = self.text(value.span).split('|').map(str::trim).collect::<Vec<_>>().join(", ");
        let message = "several types are given as a list";
        let d =
            Diagnostic::error(codes::TYPE_MISMATCH, value.span, message, "this is how a bound is written");
        self.report(d.fix("write a list", value.span, format!("[{list}]")));
        true
    }

    /// Reports a list of values without any.
    pub fn no_empty_list(&mut self, len: usize, span: Span) {
        if len == 0 {
            self.error(codes::CLAUSE, span, "this list is empty, so no value is chosen", "no values");
        }
    }

    /// Reports a value that occurs in a list twice.
    pub fn repeated_value(&mut self, span: Span, first: Span) {
        let d = Diagnostic::error(codes::CLAUSE, span, "duplicate value in this list", "second occurrence");
        self.report(d.label(first, "first occurrence"));
    }

    /// A compile-time argument as an expression.
    fn cterm_expr(&mut self, c: CVarId, t: &CTerm, span: Span) -> HExpr {
        let mut h = match t {
            CTerm::Int(p) => {
                let want = match self.hir().cvar(c).kind {
                    CKind::Int(d) => Ty::scalar(d),
                    CKind::Float(_)
                    | CKind::Bool
                    | CKind::DType(_)
                    | CKind::Shape
                    | CKind::Fn(..)
                    | CKind::Err => Ty::i32(),
                };
                match p.as_int() {
                    Some(n) => self.mk(HKind::Int(n), want, span, true),
                    None => {
                        let h = self.poly_expr(p, span);
                        self.convert(h, &want)
                    }
                }
            }
            CTerm::DType(d) => self.mk(HKind::DType(*d), Ty::DType, span, true),
            CTerm::Shape(Shape::Dims(d)) => {
                let dims = d.iter().map(|p| self.poly_expr(p, span)).collect();
                self.mk(HKind::Shape(dims), Ty::ShapeTy, span, true)
            }
            CTerm::Shape(Shape::Param(s)) => self.cvar_use(*s, span),
            CTerm::Expr(h) => (**h).clone(),
            CTerm::Err => HExpr::err(span),
        };
        self.zonk_expr(&mut h);
        h
    }
}
