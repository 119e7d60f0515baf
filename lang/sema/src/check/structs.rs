//! Struct values: fields by name, compile-time arguments from the fields.

use tk_syntax::ast::{self, Subscript};
use tk_syntax::{Diagnostic, Span, codes};

use super::cx::Cx;
use super::record::Target;
use super::subst::Subst;
use crate::hir::{HExpr, HKind, Hir, StructId};
use crate::types::{CTerm, MAX_PARTS, Ty};

impl Cx<'_> {
    /// Returns true if a tuple or struct of these parts is small enough; reports otherwise.
    pub fn few_parts<'t>(&mut self, mut parts: impl Iterator<Item = &'t Ty>, span: Span) -> bool {
        let mut left = MAX_PARTS;
        if parts.all(|t| take_parts(self.hir(), t, 0, &mut left)) {
            return true;
        }
        let message = format!(
            "this holds more than {MAX_PARTS} values, or is nested more than {} levels deep",
            tk_syntax::MAX_DEPTH
        );
        self.error(codes::TOO_DEEP, span, message, "tuples and structs are made of single values");
        false
    }

    /// `S(f = x)`
    pub fn struct_value(
        &mut self,
        id: StructId,
        cargs: &[Subscript],
        args: &[ast::Arg],
        span: Span,
    ) -> HExpr {
        let s = self.hir().strukt(id).clone();
        let mut map = Subst::new();
        if !cargs.is_empty() {
            match self.struct_type(id, cargs, span) {
                Ty::Struct(_, terms) => map.extend(s.cparams.iter().copied().zip(terms)),
                _ => {
                    self.check_rest(args);
                    return HExpr::err(span);
                }
            }
        }
        let mut values: Vec<Option<HExpr>> = vec![None; s.fields.len()];
        let mut ok = true;
        for a in args {
            let slot = a.name.as_ref().and_then(|n| s.fields.iter().position(|f| f.0 == n.text));
            if let (Some(n), Some(f)) = (&a.name, slot.and_then(|i| s.fields.get(i))) {
                self.p.record.name(n, Target::Place(f.2));
            }
            let want = slot.and_then(|i| s.fields.get(i)).map(|f| self.subst_ty(&f.1, &map));
            let h = self.expr(&a.value, want.as_ref());
            let h = self.need_value(h);
            match (slot, &a.name) {
                (Some(i), Some(n)) => {
                    if values.get(i).is_some_and(Option::is_some) {
                        self.error(
                            codes::FIELDS,
                            n.span,
                            format!("`{}` is given twice", n.text),
                            "given again",
                        );
                        ok = false;
                    } else if let Some(v) = values.get_mut(i) {
                        *v = Some(h);
                    }
                }
                (None, Some(n)) => {
                    let names: Vec<&str> = s.fields.iter().map(|f| f.0.as_str()).collect();
                    let mut d = Diagnostic::error(
                        codes::FIELDS,
                        n.span,
                        format!("`{}` has no field `{}`", s.name, n.text),
                        "unknown field",
                    )
                    .label(s.span, "declared here");
                    if let Some(best) = super::names::closest(&n.text, names.into_iter()) {
                        d = d.use_instead(n.span, best);
                    }
                    self.report(d);
                    ok = false;
                }
                _ => {
                    self.error(
                        codes::FIELDS,
                        a.value.span,
                        format!("fields of `{}` are given by name", s.name),
                        "as in `S(x = 1)`",
                    );
                    ok = false;
                }
            }
        }
        ok = ok && self.all_fields(&s, &values, span);
        if !ok {
            return HExpr::err(span);
        }
        for (f, v) in s.fields.iter().zip(&values) {
            if let Some(h) = v {
                let t = h.ty.clone();
                self.bind_ty(&f.1, &t, &s.cparams, &mut map);
            }
        }
        self.finish_struct(id, &s, values, map, span)
    }

    /// Reports fields without a value.
    fn all_fields(&mut self, s: &crate::hir::HStruct, values: &[Option<HExpr>], span: Span) -> bool {
        let missing: Vec<String> = s
            .fields
            .iter()
            .zip(values)
            .filter(|(_, v)| v.is_none())
            .map(|(f, _)| format!("`{}`", f.0))
            .collect();
        if !missing.is_empty() {
            let fields = if missing.len() == 1 { "field" } else { "fields" };
            let d = Diagnostic::error(
                codes::FIELDS,
                span,
                format!("missing {fields} {} in `{}`", missing.join(", "), s.name),
                format!("{} missing", missing.join(", ")),
            )
            .label(s.span, "declared here");
            self.report(d);
        }
        missing.is_empty()
    }

    fn finish_struct(
        &mut self,
        id: StructId,
        s: &crate::hir::HStruct,
        values: Vec<Option<HExpr>>,
        mut map: Subst,
        span: Span,
    ) -> HExpr {
        for c in &s.cparams {
            if !map.contains_key(c) {
                match self.default_in(*c, &map) {
                    Some(v) => {
                        map.insert(*c, v);
                    }
                    None => {
                        if values.iter().flatten().all(|h| !h.ty.is_err()) {
                            let n = self.hir().cvar(*c).name.clone();
                            self.error(
                                codes::CANNOT_INFER,
                                span,
                                format!("cannot infer `{n}` of `{}` from the fields", s.name),
                                format!("no field determines `{n}`"),
                            );
                        }
                        return HExpr::err(span);
                    }
                }
            }
        }
        let mut out = vec![];
        for (f, v) in s.fields.iter().zip(values) {
            let want = self.subst_ty(&f.1, &map);
            let Some(h) = v else { return HExpr::err(span) };
            out.push(self.coerce(h, &want, &format!("field `{}`", f.0)));
        }
        let args = s.cparams.iter().map(|c| map.get(c).cloned().unwrap_or(CTerm::Err)).collect();
        if out.iter().any(|h| h.ty.is_err()) {
            return HExpr { ty: Ty::Struct(id, args), ..HExpr::err(span) };
        }
        let konst = out.iter().all(|h| h.konst);
        self.mk(HKind::Struct(out), Ty::Struct(id, args), span, konst)
    }
}

/// Counts the tuples, structs and values of a type down; false where there are more than are left.
fn take_parts(hir: &Hir, t: &Ty, depth: usize, left: &mut usize) -> bool {
    // Empty ones count too: the walk is as long as this number.
    *left = left.saturating_sub(1);
    *left > 0
        && depth < tk_syntax::MAX_DEPTH
        && match t {
            Ty::Tuple(items) => items.iter().all(|t| take_parts(hir, t, depth + 1, left)),
            Ty::Struct(id, _) => {
                hir.strukt(*id).fields.iter().all(|(_, t, _)| take_parts(hir, t, depth + 1, left))
            }
            Ty::Err
            | Ty::Unit
            | Ty::Never
            | Ty::Tile { .. }
            | Ty::View { .. }
            | Ty::Option(_)
            | Ty::Buffer { .. }
            | Ty::List(..)
            | Ty::Fn(..)
            | Ty::DType
            | Ty::ShapeTy
            | Ty::Str => true,
        }
}
