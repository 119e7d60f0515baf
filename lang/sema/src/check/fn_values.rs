//! Functions as compile-time values: names of functions and builtins, lambdas.

use tk_syntax::ast::{self, ExprKind};
use tk_syntax::{Diagnostic, Span, codes};

use super::Def;
use super::cx::{Cx, Scope, Sym};
use super::subst::Subst;
use crate::hir::{FnId, FnKind, HBlock, HExpr, HKind, HPat, HStmt, HStmtKind, LocalId};
use crate::types::{Elem, Ty};

/// A lambda with a name: it is checked where it is used, for the types that it is used with.
pub(crate) struct Named {
    params: Vec<(ast::Pat, Option<ast::TypeExpr>)>,
    body: ast::Expr,
    /// The names before it.
    scopes: Vec<Scope>,
    /// The position of the name.
    pub span: Span,
    /// Whether a use showed a mistake in it, which others do not repeat.
    broken: bool,
}

impl Cx<'_> {
    /// A function as a value.
    pub fn fn_value(&mut self, id: FnId, want: Option<&Ty>, span: Span) -> HExpr {
        if !self.has_signature(id, span) {
            return HExpr::err(span);
        }
        match want {
            Some(Ty::Fn(ps, _)) => {
                let ps = ps.clone();
                self.fn_ref(id, &ps, span)
            }
            _ if self.hir().func(id).cparams.is_empty() && self.hir().func(id).kind == FnKind::Fn => {
                let ps: Vec<Ty> = self.hir().func(id).params.iter().map(|p| p.ty.clone()).collect();
                self.fn_ref(id, &ps, span)
            }
            _ => {
                let name = self.hir().func(id).name.clone();
                self.error(
                    codes::NOT_A_VALUE,
                    span,
                    format!("`{name}` is a function"),
                    "call it, or pass it where a function is expected",
                )
            }
        }
    }

    /// A function used with arguments of these types; its type says what comes out.
    pub fn fn_ref(&mut self, id: FnId, ps: &[Ty], span: Span) -> HExpr {
        if !self.has_signature(id, span) {
            return HExpr::err(span);
        }
        let f = self.hir().func(id).clone();
        if f.kind != FnKind::Fn {
            return self.error(
                codes::NOT_A_VALUE,
                span,
                format!("`{}` is a kernel, not a function value", f.name),
                "a kernel",
            );
        }
        if let Some(me) = self.func {
            self.p.notes.calls.push((me, id, span));
        }
        if f.params.len() != ps.len() {
            let (n, m) = (f.params.len(), ps.len());
            let d = Diagnostic::error(
                codes::TYPE_MISMATCH,
                span,
                format!("expected a function of {m} arguments, but `{}` takes {n}", f.name),
                format!("takes {n}"),
            )
            .label(f.span, "declared here");
            return self.fail(d);
        }
        let mut map = Subst::new();
        for (p, a) in f.params.iter().zip(ps) {
            self.bind_ty(&p.ty, a, &f.cparams, &mut map);
        }
        if !self.complete(id, &f.name, &mut map, span, ps.iter().any(Ty::is_err)) {
            return HExpr::err(span);
        }
        for (p, a) in f.params.iter().zip(ps) {
            let t = self.subst_ty(&p.ty, &map);
            if !self.fits(a, &t) {
                let (x, y) = (self.show(a), self.show(&t));
                let d = Diagnostic::error(
                    codes::TYPE_MISMATCH,
                    span,
                    format!("`{}` takes `{y}` as `{}`, but is used with `{x}`", f.name, p.name),
                    format!("takes `{y}`"),
                )
                .label(f.span, "declared here");
                return self.fail(d);
            }
        }
        let ret = self.subst_ty(&f.ret, &map);
        let cargs = f.cparams.iter().filter_map(|c| map.get(c).map(|v| (*c, v.clone()))).collect();
        self.mk(HKind::FnRef(id, cargs), Ty::Fn(ps.to_vec(), Box::new(ret)), span, true)
    }

    /// A function argument that will be called with these types: its result type is found here.
    pub fn callable(&mut self, e: &ast::Expr, ps: &[Ty]) -> HExpr {
        match &e.kind {
            ExprKind::Lambda(params, body) => {
                self.seeing(true, |cx| cx.lambda_with(params, body, ps, e.span))
            }
            ExprKind::Path(p) => {
                if let [n] = p.segments.as_slice()
                    && self.lookup(n).is_none()
                    && self.lookup_item(n).is_none()
                    && self.find_row(&n.text).is_some()
                {
                    return self.builtin_ref(n, ps, e.span);
                }
                if let [n] = p.segments.as_slice()
                    && let Some(Sym::Lambda(i)) = self.lookup(n)
                {
                    return self.seeing(true, |cx| cx.named_with(i, ps, e.span));
                }
                let is_item = matches!(p.segments.as_slice(), [n] if self.lookup(n).is_some());
                if !is_item {
                    return match self.resolve_path(p) {
                        Some(Def::Fn(id)) => self.fn_ref(id, ps, e.span),
                        Some(Def::Const(_)) => self.callable_value(e, ps),
                        Some(_) => {
                            let text = self.text(e.span);
                            self.error(
                                codes::NOT_CALLABLE,
                                e.span,
                                format!("`{text}` is not a function"),
                                "not a function",
                            )
                        }
                        None => HExpr::err(e.span),
                    };
                }
                self.callable_value(e, ps)
            }
            _ => self.callable_value(e, ps),
        }
    }

    fn callable_value(&mut self, e: &ast::Expr, ps: &[Ty]) -> HExpr {
        let h = self.value(e);
        if h.ty.is_err() {
            return h;
        }
        let Ty::Fn(qs, _) = h.ty.clone() else {
            let shown = self.show(&h.ty);
            return self.error(
                codes::NOT_CALLABLE,
                e.span,
                format!("expected a function, found `{shown}`"),
                super::this_is(&shown),
            );
        };
        if !self.need_const(&h) {
            return HExpr::err(e.span);
        }
        let ok = qs.len() == ps.len() && ps.iter().zip(&qs).all(|(p, q)| self.fits(p, q));
        if !ok {
            let shown = self.show(&h.ty);
            let args: Vec<String> = ps.iter().map(|p| self.show(p)).collect();
            return self.error(
                codes::TYPE_MISMATCH,
                e.span,
                format!("`{shown}` cannot be called with ({})", args.join(", ")),
                super::this_is(&shown),
            );
        }
        h
    }

    pub fn lambda(
        &mut self,
        params: &[(ast::Pat, Option<ast::TypeExpr>)],
        body: &ast::Expr,
        want: Option<&Ty>,
        span: Span,
    ) -> HExpr {
        if let Some(Ty::Fn(ps, _)) = want {
            let ps = ps.clone();
            return self.blind(|cx| cx.lambda_with(params, body, &ps, span));
        }
        if params.iter().any(|p| p.1.is_none()) {
            return self.error(
                codes::CANNOT_INFER,
                span,
                "cannot infer the parameter types of this lambda",
                "annotate them: `|x: f32| ..`",
            );
        }
        let ps: Vec<Ty> = params.iter().filter_map(|p| p.1.as_ref()).map(|t| self.ty(t)).collect();
        self.blind(|cx| cx.lambda_with(params, body, &ps, span))
    }

    pub(super) fn lambda_with(
        &mut self,
        params: &[(ast::Pat, Option<ast::TypeExpr>)],
        body: &ast::Expr,
        ps: &[Ty],
        span: Span,
    ) -> HExpr {
        if params.len() != ps.len() {
            let (n, m) = (ps.len(), params.len());
            return self.error(
                codes::TYPE_MISMATCH,
                span,
                format!("expected a function of {n} arguments, but this lambda takes {m}"),
                format!("takes {m}"),
            );
        }
        let (depth, loops) = (self.lambda_depth, std::mem::take(&mut self.loops));
        let flow = self.flow();
        self.lambda_depth = self.locals.len();
        self.push_scope();
        let (mut locals, mut lets) = (vec![], vec![]);
        for ((pat, ty), want) in params.iter().zip(ps) {
            let t = match ty {
                Some(t) => {
                    let declared = self.ty(t);
                    if !self.fits(want, &declared) {
                        let (a, b) = (self.show(&declared), self.show(want));
                        self.error(
                            codes::TYPE_MISMATCH,
                            t.span,
                            format!("this parameter is `{b}` here, not `{a}`"),
                            format!("declared as `{a}`"),
                        );
                    }
                    declared
                }
                None => want.clone(),
            };
            let hidden = ast::Name { text: String::new(), span: pat.span };
            let p = match &pat.kind {
                ast::PatKind::Name { .. } => self.bind_pat(pat, &t, true),
                ast::PatKind::Tuple(_) | ast::PatKind::Err => HPat::Ignore,
            };
            let id = match p {
                HPat::Local(id) => id,
                HPat::Ignore | HPat::Tuple(_) => self.new_local(&hidden, t.clone(), false),
            };
            if matches!(pat.kind, ast::PatKind::Tuple(_)) {
                let p = self.bind_pat(pat, &t, true);
                let value = self.mk(HKind::Local(id), t, pat.span, false);
                lets.push(HStmt { kind: HStmtKind::Let(p, Some(value)), span: pat.span });
            }
            locals.push(id);
        }
        let b = self.expr(body, None);
        let b = self.need_value(b);
        self.pop_scope();
        (self.lambda_depth, self.loops) = (depth, loops);
        self.set_flow(flow);
        let ret = b.ty.clone();
        let body = if lets.is_empty() {
            b
        } else {
            let block = HBlock { stmts: lets, span: b.span, tail: Some(Box::new(b)) };
            self.mk(HKind::Block(Box::new(block)), ret.clone(), span, false)
        };
        if ret.is_err() {
            return HExpr::err(span);
        }
        self.mk(
            HKind::Lambda { params: locals, body: Box::new(body) },
            Ty::Fn(ps.to_vec(), Box::new(ret)),
            span,
            true,
        )
    }

    /// `let f = |v| ..;`
    pub(super) fn name_lambda(
        &mut self,
        name: &ast::Name,
        params: &[(ast::Pat, Option<ast::TypeExpr>)],
        body: &ast::Expr,
    ) {
        let (params, body) = (params.to_vec(), body.clone());
        let scopes = self.scopes.clone();
        self.named.push(Named { params, body, scopes, span: name.span, broken: false });
        if name.text != "_" && !name.text.is_empty() {
            self.bind(&name.text, Sym::Lambda(self.named.len() - 1));
        }
    }

    /// A named lambda for arguments of these types, with the names that stood before it.
    fn named_with(&mut self, i: usize, ps: &[Ty], span: Span) -> HExpr {
        let Some(l) = self.named.get(i).filter(|l| !l.broken) else { return HExpr::err(span) };
        let (params, body, scopes) = (l.params.clone(), l.body.clone(), l.scopes.clone());
        let reported = self.p.notes.diags.len();
        let outer = std::mem::replace(&mut self.scopes, scopes);
        let mut h = self.lambda_with(&params, &body, ps, span);
        self.scopes = outer;
        let fails =
            self.p.notes.diags.get(reported..).is_some_and(|new| new.iter().any(Diagnostic::is_error));
        if let Some(l) = self.named.get_mut(i) {
            l.broken = fails;
        }
        h.span = span;
        h
    }

    /// A named lambda where a function of known type is expected.
    pub(super) fn named_value(&mut self, i: usize, want: Option<&Ty>, span: Span) -> HExpr {
        if let Some(Ty::Fn(ps, _)) = want {
            let ps = ps.clone();
            return self.blind(|cx| cx.named_with(i, &ps, span));
        }
        let text = self.text(span);
        self.error(
            codes::NOT_A_VALUE,
            span,
            format!("`{text}` is a function"),
            "call it, or pass it where a function is expected",
        )
    }

    /// A call of a named lambda: its parameters have the types of the arguments, unless they are written.
    pub(super) fn call_named(&mut self, i: usize, args: &[ast::Arg], span: Span) -> HExpr {
        if let Some(a) = args.iter().find_map(|a| a.name.as_ref()) {
            return self.error(
                codes::ARGUMENT_NAME,
                a.span,
                "a function value has no parameter names",
                "named argument",
            );
        }
        let types = self.named.get(i).map(|l| l.params.iter().map(|p| p.1.clone()).collect::<Vec<_>>());
        let mut values = vec![];
        for (n, a) in args.iter().enumerate() {
            let h = self.value(&a.value);
            let written = types.as_ref().and_then(|t| t.get(n)).and_then(Option::as_ref);
            values.push(match written {
                Some(t) => {
                    let want = self.ty(t);
                    self.coerce(h, &want, "the argument")
                }
                None => h,
            });
        }
        if values.iter().any(|h| h.ty.is_err()) {
            return HExpr::err(span);
        }
        let ps: Vec<Ty> = values.iter().map(|h| h.ty.clone()).collect();
        let elementwise = self.elementwise_lambda;
        let callee = self.seeing(elementwise, |cx| cx.named_with(i, &ps, span));
        let Ty::Fn(_, r) = callee.ty.clone() else { return HExpr::err(span) };
        self.mk(HKind::CallValue { callee: Box::new(callee), args: values }, *r, span, false)
    }

    /// Checks a lambda that is put where it is used, and so sees variables: scalars if it works on single elements.
    fn seeing<R>(&mut self, elementwise: bool, f: impl FnOnce(&mut Self) -> R) -> R {
        let before = self.elementwise_lambda;
        self.elementwise_lambda |= elementwise;
        let r = f(self);
        self.elementwise_lambda = before;
        r
    }

    /// Checks a lambda that is a compile-time argument: a function elsewhere calls it, which has other variables.
    fn blind<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        let before = std::mem::replace(&mut self.visible_from, self.locals.len());
        let r = f(self);
        self.visible_from = before;
        r
    }

    /// Returns true if a lambda may use a variable from outside of it.
    pub(super) fn captures(&self, id: LocalId) -> bool {
        let l = self.local(id);
        let fits = match &l.ty {
            Ty::Tile { elem: Elem::D(_), shape } => shape.is_scalar() || !self.elementwise_lambda,
            ty => ty.is_err() || !self.elementwise_lambda,
        };
        id.0 as usize >= self.visible_from && !l.mutable && fits
    }

    /// A variable from outside of a lambda that the lambda does not see.
    pub(super) fn not_captured(&mut self, id: LocalId, span: Span) -> HExpr {
        let (name, at, mutable) = {
            let l = self.local(id);
            (l.name.clone(), l.span, l.mutable)
        };
        let (message, note) = if (id.0 as usize) < self.visible_from {
            (
                format!("a lambda that is a compile-time argument cannot use the run-time variable `{name}`"),
                "it captures only compile-time values; pass run-time values as arguments".to_string(),
            )
        } else if mutable {
            (
                format!("a lambda cannot use `{name}`, which may change"),
                format!("bind its value before the lambda: `let {name} = {name};`"),
            )
        } else {
            (
                format!("a function of elements cannot use `{name}`, which is not a scalar"),
                "pass tiles to `map` as further arguments".to_string(),
            )
        };
        let d = Diagnostic::error(codes::NOT_CONST, span, message, "used here").label(at, "declared here");
        self.fail(d.note(note))
    }
}
