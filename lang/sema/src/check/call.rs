//! Calls: functions with their compile-time arguments inferred, methods, calls of function values.

use tk_ops::table::{ParamKind, Receiver};
use tk_syntax::ast::{self, ExprKind, Subscript};
use tk_syntax::{Diagnostic, Span, codes};

use super::args::Params;
use super::cx::{Cx, Sym};
use super::record::Target;
use super::subst::Subst;
use super::{Def, Sig, Slot};
use crate::hir::{CKind, FnId, FnKind, HExpr, HKind};
use crate::types::{CTerm, Elem, Ty};

impl Cx<'_> {
    pub fn call(&mut self, f: &ast::Expr, args: &[ast::Arg], span: Span) -> HExpr {
        let (target, cargs): (&ast::Expr, &[Subscript]) = match &f.kind {
            ExprKind::Index(base, items) if self.names_item(base) => (base, items),
            _ => (f, &[]),
        };
        match &target.kind {
            ExprKind::Path(p) => self.call_path(p, cargs, args, span),
            ExprKind::Member(base, name) => self.method(base, name, cargs, args, span),
            _ => {
                let callee = self.value(f);
                self.call_value(callee, args, span)
            }
        }
    }

    /// Returns true if brackets after this hold compile-time arguments: a function, struct or method.
    fn names_item(&self, e: &ast::Expr) -> bool {
        match &e.kind {
            ExprKind::Path(p) => match p.segments.as_slice() {
                [n] => match self.lookup(n) {
                    Some(_) => false,
                    None => self.lookup_item(n).is_some() || self.find_row(&n.text).is_some(),
                },
                _ => true,
            },
            ExprKind::Member(base, name) => {
                !matches!(name.text.as_str(), "shape" | "strides" | "T")
                    && !matches!(&base.kind, ExprKind::Err)
            }
            _ => false,
        }
    }

    fn call_path(&mut self, p: &ast::Path, cargs: &[Subscript], args: &[ast::Arg], span: Span) -> HExpr {
        if let [n] = p.segments.as_slice() {
            match self.lookup(n) {
                Some(Sym::CVar(id)) => {
                    let callee = self.cvar_use(id, n.span);
                    return self.call_value(callee, args, span);
                }
                Some(Sym::Const(id)) => {
                    let callee = self.const_use(id, n.span);
                    return self.call_value(callee, args, span);
                }
                Some(Sym::Lambda(i)) => return self.call_named(i, args, span),
                Some(Sym::Local(_)) => {
                    self.check_rest(args);
                    return self.error(
                        codes::NOT_CALLABLE,
                        n.span,
                        format!("`{}` is a variable, not a function", n.text),
                        "a variable",
                    );
                }
                None => {}
            }
            if self.lookup_item(n).is_none() {
                return self.call_builtin(n, args, span);
            }
        }
        match self.resolve_path(p) {
            Some(Def::Fn(id)) => self.call_fn(id, cargs, None, args, span),
            Some(Def::Struct(id)) => self.struct_value(id, cargs, args, span),
            Some(Def::Const(id)) => {
                let callee = self.const_use(id, p.span);
                self.call_value(callee, args, span)
            }
            Some(Def::Module(_)) => {
                self.check_rest(args);
                self.file_called(p.span)
            }
            None => {
                self.check_rest(args);
                HExpr::err(span)
            }
        }
    }

    fn call_builtin(&mut self, n: &ast::Name, args: &[ast::Arg], span: Span) -> HExpr {
        if let Some(row) = self.find_row(&n.text) {
            let row = self.overload(row, args);
            self.p.record.name(n, Target::Row(row));
            if let Some(h) = self.function_of_element(row, args, span) {
                return h;
            }
            if let Some(f) = self.func.filter(|_| !self.in_test && row.receiver == Receiver::Test) {
                self.p.notes.test_uses.push((f, row.name, n.span));
            }
            return self.builtin(row, None, args, span);
        }
        if let Some(d) = tk_ops::DType::parse(&n.text) {
            let mut diag = Diagnostic::error(
                codes::NOT_CALLABLE,
                n.span,
                format!("`{d}` is a type, not a function"),
                "a type",
            );
            if let [a] = args {
                let text = self.cast_text(a.value.span, d.name());
                let title = if d == tk_ops::DType::Bool { "compare with 0" } else { "cast with `as`" };
                diag = diag.fix(title, span, text);
            }
            return self.fail(diag);
        }
        self.check_rest(args);
        if tk_ops::rows::find(&n.text, tk_ops::table::Receiver::Test).is_some() {
            return self.error(
                codes::TEST_ONLY,
                n.span,
                format!("`{}` is only available in tests", n.text),
                "used outside of a test",
            );
        }
        if ["inf", "nan", "target", "device"].contains(&n.text.as_str()) {
            return self.error(codes::NOT_CALLABLE, n.span, format!("`{}` is not a function", n.text), "");
        }
        self.unknown_name(n, Some((args, span)))
    }

    /// Checks arguments whose call means nothing, for their own mistakes.
    pub fn check_rest(&mut self, args: &[ast::Arg]) {
        for a in args {
            let is_plain = !matches!(a.value.kind, ExprKind::Lambda(..) | ExprKind::None);
            if is_plain && !self.is_word(&a.value) && !self.is_builtin(&a.value) {
                self.expr(&a.value, None);
            }
        }
    }

    /// Returns true for the name of a builtin function.
    fn is_builtin(&self, e: &ast::Expr) -> bool {
        let ExprKind::Path(p) = &e.kind else { return false };
        let [n] = p.segments.as_slice() else { return false };
        self.find_row(&n.text).is_some() && self.lookup(n).is_none() && self.lookup_item(n).is_none()
    }

    /// Returns true if this is not the name of a value but a word that some operation takes, such as `acquire`.
    pub(super) fn is_word(&self, e: &ast::Expr) -> bool {
        let ExprKind::Path(p) = &e.kind else { return false };
        let [n] = p.segments.as_slice() else { return false };
        let mut kinds = tk_ops::rows::rows().flat_map(|row| row.params.iter().map(|p| p.kind));
        let known = self.lookup(n).is_some() || self.lookup_item(n).is_some();
        !known && kinds.any(|k| matches!(k, ParamKind::Word(words) if words.contains(&n.text.as_str())))
    }

    fn method(
        &mut self,
        base: &ast::Expr,
        name: &ast::Name,
        cargs: &[Subscript],
        args: &[ast::Arg],
        span: Span,
    ) -> HExpr {
        if let Some(d) = self.foreign_made(base, name, args, span) {
            return self.fail(d);
        }
        if let Some(d) = self.foreign_applied(base, name, args, span) {
            self.check_rest(args);
            return self.fail(d);
        }
        if let Some(h) = self.foreign_member(base, name) {
            self.check_rest(args);
            return h;
        }
        if let Some(h) = self.method_of_element(base, name, args, span) {
            return h;
        }
        let b = self.value(base);
        if let Some(h) = self.foreign_method(&b, name, args, span) {
            return h;
        }
        let receiver = match &b.ty {
            Ty::View { .. } => Receiver::View,
            Ty::Tile { .. } => Receiver::Tile,
            Ty::Buffer { .. } => Receiver::Buffer,
            Ty::Struct(id, _) => {
                let found = self.hir().strukt(*id).methods.iter().find(|m| m.0 == name.text).map(|m| m.1);
                return match found {
                    Some(f) => {
                        self.saw_item(name, Def::Fn(f));
                        self.call_fn(f, cargs, Some(b), args, span)
                    }
                    None => {
                        let ty = b.ty.clone();
                        self.check_rest(args);
                        if self.struct_field(&ty, name).is_some() {
                            return self.error(
                                codes::NOT_CALLABLE,
                                name.span,
                                format!("`{}` is a field, not a method", name.text),
                                "a field",
                            );
                        }
                        HExpr::err(span)
                    }
                };
            }
            t if t.is_err() => {
                self.check_rest(args);
                return HExpr::err(span);
            }
            _ => Receiver::None,
        };
        match tk_ops::rows::find(&name.text, receiver) {
            Some(row) if receiver != Receiver::None => {
                self.p.record.name(name, Target::Row(row));
                self.builtin(row, Some(b), args, span)
            }
            _ => {
                self.check_rest(args);
                self.called_member(base, name, args, span)
            }
        }
    }

    /// Returns true if the signature of a function can be used; reports where it needs itself.
    pub fn has_signature(&mut self, id: FnId, span: Span) -> bool {
        if super::items::ensure_signature(self.p, id) {
            return true;
        }
        let f = self.hir().func(id);
        let (name, at) = (f.name.clone(), f.span);
        let d = if self.p.signatures_begun.contains(&id) {
            let message = format!("the signature of `{name}` depends on itself");
            Diagnostic::error(codes::RECURSION, span, message, "used here, on the way to it")
        } else {
            let limit = super::items::MAX_OPEN_SIGNATURES;
            let message = format!("`{name}` is at the end of a chain of {limit} signatures");
            Diagnostic::error(codes::TOO_DEEP, span, message, "each needs the next one")
        };
        self.report(d.label(at, "declared here"));
        false
    }

    /// A call of a user's function.
    pub fn call_fn(
        &mut self,
        id: FnId,
        cargs: &[Subscript],
        this: Option<HExpr>,
        args: &[ast::Arg],
        span: Span,
    ) -> HExpr {
        if !self.has_signature(id, span) {
            self.check_rest(args);
            return HExpr::err(span);
        }
        let kind = self.hir().func(id).kind;
        if kind == FnKind::Kernel {
            return self.launch(id, cargs, args, span);
        }
        let Some(sig) = self.p.sigs.get(id.0 as usize).cloned() else { return HExpr::err(span) };
        if let Some(f) = self.func {
            self.p.notes.calls.push((f, id, span));
        }
        let mut map = Subst::new();
        let name = self.hir().func(id).name.clone();
        if !self.explicit_cargs(id, &name, cargs, &mut map, true) {
            self.check_rest(args);
            return HExpr::err(span);
        }
        self.saw_args(id, &sig.slots, args);
        let Some(slots) = self.fn_slots(id, &sig, &name, this.is_some(), args, span) else {
            self.check_rest(args);
            return HExpr::err(span);
        };
        let mut run = self.run_args(id, &sig, this, &slots, &mut map);
        self.explicit_cargs(id, &name, cargs, &mut map, false);
        self.const_args(&sig, &slots, &mut map);
        let bad = run.iter().any(|a| a.as_ref().is_some_and(|h| h.ty.is_err()));
        if !self.complete(id, &name, &mut map, span, bad) {
            return HExpr::err(span);
        }
        let params: Vec<(String, Ty, Option<HExpr>)> = self
            .hir()
            .func(id)
            .params
            .iter()
            .map(|p| (p.name.clone(), p.ty.clone(), p.default.clone()))
            .collect();
        let mut out = vec![];
        for (i, (pname, ty, default)) in params.into_iter().enumerate() {
            let want = self.subst_ty(&ty, &map);
            match run.get_mut(i).and_then(Option::take) {
                Some(h) if matches!(h.kind, HKind::None) => out.push(HExpr { ty: want, ..h }),
                Some(h) => out.push(self.coerce_arg(h, &want, &pname, &name)),
                None => match default.and_then(|d| self.subst_expr(&d, &map)) {
                    Some(d) => out.push(d),
                    None => return HExpr::err(span),
                },
            }
        }
        self.saw_call(span, id, &map);
        let ret = self.hir().func(id).ret.clone();
        let ret = self.subst_ty(&ret, &map);
        if out.iter().any(|h| h.ty.is_err()) {
            return HExpr { ty: ret, ..HExpr::err(span) };
        }
        let konst = is_plain(&ret) && out.iter().all(|h| h.konst) && self.pure_fn(id);
        let cargs = self
            .hir()
            .func(id)
            .cparams
            .clone()
            .into_iter()
            .filter_map(|c| map.get(&c).map(|v| (c, v.clone())))
            .collect();
        self.mk(HKind::Call { callee: id, cargs, args: out }, ret, span, konst)
    }

    fn fn_slots<'e>(
        &mut self,
        id: FnId,
        sig: &Sig,
        name: &str,
        is_method: bool,
        args: &'e [ast::Arg],
        span: Span,
    ) -> Option<Vec<Option<&'e ast::Expr>>> {
        let skip = usize::from(is_method);
        let names: Vec<&str> = sig.slots.iter().skip(skip).map(|s| s.0.as_str()).collect();
        let optional = sig
            .slots
            .iter()
            .skip(skip)
            .map(|(_, s)| match s {
                Slot::Run(i) => self.hir().func(id).params.get(*i).is_some_and(|p| p.default.is_some()),
                Slot::Const(c) => self.hir().cvar(*c).default.is_some(),
            })
            .collect();
        let ps = Params {
            what: format!("`{name}`"),
            names,
            optional,
            rest: false,
            positional: usize::MAX,
            declared: Some(sig.span),
            launch: false,
        };
        let (mut slots, _) = self.match_args(&ps, args, span)?;
        if is_method {
            slots.insert(0, None);
        }
        Some(slots)
    }

    /// Compile-time arguments in brackets: first those that need nothing else, later functions.
    pub fn explicit_cargs(
        &mut self,
        id: FnId,
        name: &str,
        cargs: &[Subscript],
        map: &mut Subst,
        first: bool,
    ) -> bool {
        let params = self.hir().func(id).cparams.clone();
        for c in cargs {
            let (n, e) = match c {
                Subscript::Named(n, e) => (n, e),
                Subscript::Expr(e) => {
                    if first {
                        let d = self.unnamed_carg(id, e, cargs);
                        self.report(d);
                    }
                    return false;
                }
                Subscript::Slice(_, _, s) => {
                    if first {
                        self.error(
                            codes::INDEX,
                            *s,
                            "compile-time arguments are given by name",
                            "as in `f[N = 4](..)`",
                        );
                    }
                    return false;
                }
            };
            let Some(p) = params.iter().copied().find(|p| self.hir().cvar(*p).name == n.text) else {
                if first {
                    let names: Vec<String> =
                        params.iter().map(|p| self.hir().cvar(*p).name.clone()).collect();
                    let d = Diagnostic::error(
                        codes::ARGUMENT_NAME,
                        n.span,
                        format!("`{name}` has no compile-time parameter `{}`", n.text),
                        "unknown compile-time parameter",
                    )
                    .label(self.hir().func(id).span, "declared here");
                    let near = super::names::closest(&n.text, names.iter().map(String::as_str));
                    self.report(match (Self::launch_option(&n.text), near) {
                        (Some(sentence), _) => d.note(sentence),
                        (None, Some(s)) => d.use_instead(n.span, s),
                        (None, None) => d,
                    });
                }
                return false;
            };
            self.saw_cvar(n, p);
            let kind = self.hir().cvar(p).kind.clone();
            let is_fn = matches!(kind, CKind::Fn(..));
            if is_fn == first {
                continue;
            }
            let kind = self.subst_kind(&kind, map);
            let value = self.carg_of(&kind, p, e);
            map.insert(p, value);
        }
        true
    }

    pub fn subst_kind(&mut self, k: &CKind, map: &Subst) -> CKind {
        match k {
            CKind::Fn(ps, r) => {
                CKind::Fn(ps.iter().map(|p| self.subst_ty(p, map)).collect(), Box::new(self.subst_ty(r, map)))
            }
            other => other.clone(),
        }
    }

    fn run_args(
        &mut self,
        id: FnId,
        sig: &Sig,
        this: Option<HExpr>,
        slots: &[Option<&ast::Expr>],
        map: &mut Subst,
    ) -> Vec<Option<HExpr>> {
        let params: Vec<Ty> = self.hir().func(id).params.iter().map(|p| p.ty.clone()).collect();
        let cparams = self.hir().func(id).cparams.clone();
        let mut out: Vec<Option<HExpr>> = vec![None; params.len()];
        let mut this = this;
        for (i, (_, slot)) in sig.slots.iter().enumerate() {
            let Slot::Run(r) = slot else { continue };
            let want = params.get(*r).map(|t| self.subst_ty(t, map));
            let h = match slots.get(i).copied().flatten() {
                Some(e) => {
                    let h = self.expr(e, want.as_ref());
                    Some(self.need_value(h))
                }
                None => this.take(),
            };
            if let Some(o) = out.get_mut(*r) {
                *o = h;
            }
        }
        // Literals bind last: what the other arguments say comes first.
        for literals in [false, true] {
            for (h, p) in out.iter().zip(&params) {
                if let Some(h) = h
                    && self.is_literal(&h.ty) == literals
                {
                    let t = h.ty.clone();
                    // `None` says nothing about what is absent.
                    if !matches!(h.kind, HKind::None) {
                        self.bind_ty(p, &t, &cparams, map);
                    }
                }
            }
        }
        out
    }

    fn is_literal(&self, t: &Ty) -> bool {
        self.dterm_of(t).is_some_and(|d| self.literal(d).is_some())
    }

    fn const_args(&mut self, sig: &Sig, slots: &[Option<&ast::Expr>], map: &mut Subst) {
        for (i, (_, slot)) in sig.slots.iter().enumerate() {
            if let (Slot::Const(c), Some(e)) = (slot, slots.get(i).copied().flatten()) {
                let kind = self.hir().cvar(*c).kind.clone();
                let kind = self.subst_kind(&kind, map);
                let v = self.carg_of(&kind, *c, e);
                map.insert(*c, v);
            }
        }
    }

    /// Fills in defaults and checks bounds; reports what cannot be inferred unless an argument was wrong already.
    pub fn complete(&mut self, id: FnId, name: &str, map: &mut Subst, span: Span, quiet: bool) -> bool {
        for c in self.hir().func(id).cparams.clone() {
            let value = match map.get(&c).cloned() {
                Some(v) => v,
                None => {
                    let Some(v) = self.default_in(c, map) else {
                        if !quiet {
                            let cname = self.hir().cvar(c).name.clone();
                            let at = self.hir().cvar(c).span;
                            let d = Diagnostic::error(
                                codes::CANNOT_INFER,
                                span,
                                format!("cannot infer `{cname}` in call to `{name}`"),
                                format!("no argument determines `{cname}`"),
                            )
                            .label(at, "this compile-time parameter")
                            .note(format!("give it by name: `{name}[{cname} = ..](..)`"));
                            self.report(d);
                        }
                        return false;
                    };
                    v
                }
            };
            if value == CTerm::Err {
                return false;
            }
            if let CTerm::DType(d) = &value
                && !self.in_bound(c, *d, span)
            {
                return false;
            }
            map.insert(c, value);
        }
        true
    }

    /// A call of a function value.
    fn call_value(&mut self, callee: HExpr, args: &[ast::Arg], span: Span) -> HExpr {
        let Ty::Fn(ps, r) = callee.ty.clone() else {
            self.check_rest(args);
            if callee.ty.is_err() {
                return HExpr::err(span);
            }
            let shown = self.show(&callee.ty);
            return self.error(
                codes::NOT_CALLABLE,
                callee.span,
                format!("`{shown}` cannot be called"),
                super::this_is(&shown),
            );
        };
        if let Some(a) = args.iter().find_map(|a| a.name.as_ref()) {
            return self.error(
                codes::ARGUMENT_NAME,
                a.span,
                "a function value has no parameter names",
                "named argument",
            );
        }
        if args.len() != ps.len() {
            self.check_rest(args);
            let (n, m) = (ps.len(), args.len());
            return self.error(
                codes::ARGUMENT_COUNT,
                span,
                format!("this function takes {n} arguments, but {m} are given"),
                format!("{m} given"),
            );
        }
        let mut out = vec![];
        for (a, p) in args.iter().zip(&ps) {
            let h = self.value(&a.value);
            if let (Ty::Tile { shape, .. }, Ty::Tile { shape: want, .. }) = (&h.ty, p)
                && want.is_scalar()
                && !shape.is_scalar()
            {
                let (f, x) = (self.text(callee.span), self.text(a.value.span));
                let shown = self.show(&h.ty);
                let mut d = Diagnostic::error(
                    codes::RANK_MISMATCH,
                    h.span,
                    format!("this function takes a scalar, not `{shown}`"),
                    super::this_is(&shown),
                );
                if args.len() == 1 {
                    d = d.fix("apply it to every element", span, format!("map({f}, {x})"));
                }
                return self.fail(d);
            }
            out.push(self.coerce(h, p, "the argument"));
        }
        let konst = false;
        self.mk(HKind::CallValue { callee: Box::new(callee), args: out }, *r, span, konst)
    }
}

/// Returns true if the compile-time evaluator has values of this type.
fn is_plain(t: &Ty) -> bool {
    match t {
        Ty::Tile { elem: Elem::D(_), shape } => shape.is_scalar(),
        Ty::Tuple(ts) => ts.iter().all(is_plain),
        Ty::DType | Ty::ShapeTy => true,
        _ => false,
    }
}
