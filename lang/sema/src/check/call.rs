//! Owns calls: functions with their compile-time arguments inferred, methods, struct values, function values, lambdas.

use tk_syntax::ast::{self, ExprKind, Index};
use tk_syntax::{Diagnostic, Span, codes};

use super::args::Params;
use super::cx::{Cx, Sym};
use super::subst::Subst;
use super::{Def, Sig, Slot};
use crate::hir::{CKind, CVarId, FnId, FnKind, HBlock, HExpr, HKind, HPat, HStmt, HStmtKind, StructId};
use crate::poly::Poly;
use crate::types::{CTerm, DTerm, Elem, Shape, Ty};

impl Cx<'_, '_> {
    pub fn call(&mut self, f: &ast::Expr, args: &[ast::Arg], span: Span) -> HExpr {
        let (target, cargs): (&ast::Expr, &[Index]) = match &f.kind {
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

    /// Whether brackets behind this hold compile-time arguments: a function, struct or method.
    fn names_item(&self, e: &ast::Expr) -> bool {
        match &e.kind {
            ExprKind::Path(p) => match p.segments.as_slice() {
                [n] => match self.lookup(&n.text) {
                    Some(_) => false,
                    None => self.lookup_item(&n.text).is_some() || self.find_row(&n.text).is_some(),
                },
                _ => true,
            },
            ExprKind::Member(base, name) => !matches!(name.text.as_str(), "shape" | "strides" | "T") && !matches!(&base.kind, ExprKind::Err),
            _ => false,
        }
    }

    fn call_path(&mut self, p: &ast::Path, cargs: &[Index], args: &[ast::Arg], span: Span) -> HExpr {
        if let [n] = p.segments.as_slice() {
            match self.lookup(&n.text) {
                Some(Sym::CVar(id)) => {
                    let callee = self.cvar_use(id, n.span);
                    return self.call_value(callee, args, span);
                }
                Some(Sym::Const(id)) => {
                    let callee = self.const_use(id, n.span);
                    return self.call_value(callee, args, span);
                }
                Some(Sym::Local(_)) => {
                    self.check_rest(args);
                    return self.error(codes::NOT_CALLABLE, n.span, format!("`{}` is a variable, not a function", n.text), "");
                }
                None => {}
            }
            if self.lookup_item(&n.text).is_none() {
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
                let text = self.text(p.span);
                self.check_rest(args);
                self.error(codes::NOT_CALLABLE, p.span, format!("`{text}` is a file, not a function"), "")
            }
            None => {
                self.check_rest(args);
                HExpr::err(span)
            }
        }
    }

    fn call_builtin(&mut self, n: &ast::Name, args: &[ast::Arg], span: Span) -> HExpr {
        if let Some(row) = self.find_row(&n.text) {
            return self.builtin(row, None, args, span);
        }
        if let Some(d) = tk_ops::DType::parse(&n.text) {
            let mut diag = Diagnostic::error(codes::NOT_CALLABLE, n.span, format!("`{d}` is a type, not a function"), "");
            if let [a] = args {
                let text = self.cast_text(a.value.span, d.name());
                diag = diag.fix("cast with `as`", span, text);
            }
            return self.fail(diag);
        }
        self.check_rest(args);
        if tk_ops::rows::find(&n.text, tk_ops::table::Receiver::Test).is_some() {
            return self.error(codes::TEST_ONLY, n.span, format!("`{}` exists in tests only", n.text), "");
        }
        if ["inf", "nan", "target", "device"].contains(&n.text.as_str()) {
            return self.error(codes::NOT_CALLABLE, n.span, format!("`{}` is not a function", n.text), "");
        }
        self.unknown_name(n)
    }

    /// Checks arguments whose call means nothing, for their own mistakes.
    pub fn check_rest(&mut self, args: &[ast::Arg]) {
        for a in args {
            if !matches!(a.value.kind, ExprKind::Lambda(..) | ExprKind::None) {
                self.expr(&a.value, None);
            }
        }
    }

    fn method(&mut self, base: &ast::Expr, name: &ast::Name, cargs: &[Index], args: &[ast::Arg], span: Span) -> HExpr {
        use tk_ops::table::Receiver;
        let b = self.value(base);
        let receiver = match &b.ty {
            Ty::View { .. } => Receiver::View,
            Ty::Tile { .. } => Receiver::Tile,
            Ty::Buffer { .. } => Receiver::Buffer,
            Ty::Struct(id, _) => {
                let found = self.hir().strukt(*id).methods.iter().find(|m| m.0 == name.text).map(|m| m.1);
                return match found {
                    Some(f) => self.call_fn(f, cargs, Some(b), args, span),
                    None => {
                        let ty = b.ty.clone();
                        self.check_rest(args);
                        if self.struct_field(&ty, name, base.span).is_some() {
                            return self.error(codes::NOT_CALLABLE, name.span, format!("`{}` is a field, not a method", name.text), "");
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
            Some(row) if receiver != Receiver::None => self.builtin(row, Some(b), args, span),
            _ => {
                self.check_rest(args);
                let h = self.member(base, name, span);
                if h.ty.is_err() {
                    return h;
                }
                let shown = self.show(&h.ty);
                self.error(codes::NOT_CALLABLE, name.span, format!("`{}` is a `{shown}`, not a method", name.text), "")
            }
        }
    }

    /// A call of a user's function.
    pub fn call_fn(&mut self, id: FnId, cargs: &[Index], this: Option<HExpr>, args: &[ast::Arg], span: Span) -> HExpr {
        let kind = self.hir().func(id).kind;
        if kind == FnKind::Kernel {
            return self.launch(id, cargs, args, span);
        }
        let Some(sig) = self.p.sigs.get(id.0 as usize).cloned() else { return HExpr::err(span) };
        if let Some(f) = self.func {
            self.p.calls.push((f, id, span));
        }
        let mut map = Subst::new();
        let name = self.hir().func(id).name.clone();
        if !self.explicit_cargs(id, &name, cargs, &mut map, true) {
            self.check_rest(args);
            return HExpr::err(span);
        }
        let Some(slots) = self.fn_slots(id, &sig, &name, this.is_some(), args, span) else {
            self.check_rest(args);
            return HExpr::err(span);
        };
        let mut run = self.run_args(id, &sig, this, &slots, &mut map);
        self.explicit_cargs(id, &name, cargs, &mut map, false);
        self.const_args(id, &sig, &slots, &mut map);
        let bad = run.iter().any(|a| a.as_ref().is_some_and(|h| h.ty.is_err()));
        if !self.complete(id, &name, &mut map, span, bad) {
            return HExpr::err(span);
        }
        let params: Vec<(String, Ty, Option<HExpr>)> =
            self.hir().func(id).params.iter().map(|p| (p.name.clone(), p.ty.clone(), p.default.clone())).collect();
        let mut out = vec![];
        for (i, (pname, ty, default)) in params.into_iter().enumerate() {
            let want = self.subst_ty(&ty, &map);
            match run.get_mut(i).and_then(Option::take) {
                Some(h) => out.push(self.coerce(h, &want, &format!("`{pname}` of `{name}`"))),
                None => match default {
                    Some(d) => out.push(d),
                    None => return HExpr::err(span),
                },
            }
        }
        let ret = self.subst_ty(&self.hir().func(id).ret.clone(), &map);
        if out.iter().any(|h| h.ty.is_err()) {
            return HExpr { ty: ret, ..HExpr::err(span) };
        }
        let konst = self.pure_fn(id) && out.iter().all(|h| h.konst) && is_plain(&ret);
        let cargs = self.hir().func(id).cparams.clone().into_iter().filter_map(|c| map.get(&c).map(|v| (c, v.clone()))).collect();
        self.mk(HKind::Call { callee: id, cargs, args: out }, ret, span, konst)
    }

    fn fn_slots<'e>(&mut self, id: FnId, sig: &Sig, name: &str, is_method: bool, args: &'e [ast::Arg], span: Span) -> Option<Vec<Option<&'e ast::Expr>>> {
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
        let ps = Params { what: format!("`{name}`"), names, optional, rest: false, declared: Some(sig.span), launch: false };
        let (mut slots, _) = self.match_args(&ps, args, span)?;
        if is_method {
            slots.insert(0, None);
        }
        Some(slots)
    }

    /// Compile-time arguments in brackets: first those that need nothing else, later functions.
    pub fn explicit_cargs(&mut self, id: FnId, name: &str, cargs: &[Index], map: &mut Subst, first: bool) -> bool {
        let params = self.hir().func(id).cparams.clone();
        for c in cargs {
            let (n, e) = match c {
                Index::Named(n, e) => (n, e),
                Index::Expr(e) => {
                    if first {
                        let mut d = Diagnostic::error(codes::ARGUMENT_NAME, e.span, "compile-time arguments are given by name", "as in `f[N = 4](..)`");
                        if let Some(p) = params.first() {
                            let pn = self.hir().cvar(*p).name.clone();
                            d = d.fix(format!("name it `{pn}`"), e.span.before(), format!("{pn} = "));
                        }
                        self.report(d);
                    }
                    return false;
                }
                Index::Slice(_, _, s) => {
                    if first {
                        self.error(codes::INDEX, *s, "compile-time arguments are given by name", "as in `f[N = 4](..)`");
                    }
                    return false;
                }
            };
            let Some(p) = params.iter().copied().find(|p| self.hir().cvar(*p).name == n.text) else {
                if first {
                    let names: Vec<String> = params.iter().map(|p| self.hir().cvar(*p).name.clone()).collect();
                    let mut d = Diagnostic::error(codes::ARGUMENT_NAME, n.span, format!("`{name}` has no compile-time parameter `{}`", n.text), "")
                        .label(self.hir().func(id).span, "declared here");
                    if let Some(s) = super::names::closest(&n.text, names.iter().map(String::as_str)) {
                        d = d.fix(format!("use `{s}`"), n.span, s);
                    }
                    self.report(d);
                }
                return false;
            };
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

    pub fn subst_kind(&self, k: &CKind, map: &Subst) -> CKind {
        match k {
            CKind::Fn(ps, r) => CKind::Fn(ps.iter().map(|p| self.subst_ty(p, map)).collect(), Box::new(self.subst_ty(r, map))),
            other => other.clone(),
        }
    }

    fn run_args(&mut self, id: FnId, sig: &Sig, this: Option<HExpr>, slots: &[Option<&ast::Expr>], map: &mut Subst) -> Vec<Option<HExpr>> {
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
                    self.bind_ty(p, &t, &cparams, map);
                }
            }
        }
        out
    }

    fn is_literal(&self, t: &Ty) -> bool {
        self.dterm_of(t).is_some_and(|d| self.literal(d).is_some())
    }

    fn const_args(&mut self, id: FnId, sig: &Sig, slots: &[Option<&ast::Expr>], map: &mut Subst) {
        let _ = id;
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
    fn complete(&mut self, id: FnId, name: &str, map: &mut Subst, span: Span, quiet: bool) -> bool {
        for c in self.hir().func(id).cparams.clone() {
            let value = match map.get(&c).cloned() {
                Some(v) => v,
                None => {
                    let Some(v) = self.default_cterm(c) else {
                        if !quiet {
                            let cname = self.hir().cvar(c).name.clone();
                            let at = self.hir().cvar(c).span;
                            let d = Diagnostic::error(codes::CANNOT_INFER, span, format!("`{cname}` of `{name}` does not follow from the arguments"), "")
                                .label(at, "this compile-time parameter")
                                .note(format!("give it by name: `{name}[{cname} = ..](..)`"));
                            self.report(d);
                        }
                        return false;
                    };
                    if matches!(v, CTerm::Expr(_)) && !self.closed(c) {
                        continue; // evaluated at specialization, in terms of the callee's variables
                    }
                    self.subst_cterm(&v, map)
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

    /// Whether a default is a plain literal or function name.
    fn closed(&self, c: CVarId) -> bool {
        self.hir().cvar(c).default.as_ref().is_some_and(|d| matches!(d.kind, HKind::Bool(_) | HKind::Int(_) | HKind::Float(_) | HKind::FnRef(..) | HKind::BuiltinRef(_)))
    }

    /// What the compile-time parameters must be for a parameter of type `p` to take a value of type `a`.
    pub fn bind_ty(&mut self, p: &Ty, a: &Ty, cparams: &[CVarId], map: &mut Subst) {
        match (p, a) {
            (Ty::Tile { elem: e, shape: s }, Ty::Tile { elem: f, shape: t }) => {
                self.bind_elem(e, f, cparams, map);
                self.bind_shape(s, t, cparams, map);
            }
            (Ty::View { elem: e, .. }, Ty::View { elem: f, .. } | Ty::Buffer { elem: f, .. }) => self.bind_elem(e, f, cparams, map),
            (Ty::Option(p), Ty::Option(a)) => self.bind_ty(p, a, cparams, map),
            (Ty::Option(p), a) => self.bind_ty(p, a, cparams, map),
            (Ty::Tuple(ps), Ty::Tuple(ts)) => {
                for (p, a) in ps.iter().zip(ts) {
                    self.bind_ty(p, a, cparams, map);
                }
            }
            (Ty::Struct(i, ps), Ty::Struct(j, ts)) if i == j => {
                for (p, a) in ps.iter().zip(ts) {
                    match (p, a) {
                        (CTerm::Int(p), a @ CTerm::Int(_)) => {
                            if let Some(id) = p.as_param()
                                && cparams.contains(&id)
                            {
                                map.entry(id).or_insert_with(|| a.clone());
                            }
                        }
                        (CTerm::DType(p), CTerm::DType(a)) => self.bind_elem(&Elem::D(*p), &Elem::D(*a), cparams, map),
                        (CTerm::Shape(p), CTerm::Shape(a)) => self.bind_shape(p, a, cparams, map),
                        (CTerm::Expr(p), a @ CTerm::Expr(_)) => {
                            if let HKind::CVar(id) = &p.kind
                                && cparams.contains(id)
                            {
                                map.entry(*id).or_insert_with(|| a.clone());
                            }
                        }
                        _ => {}
                    }
                }
            }
            (Ty::Fn(ps, r), Ty::Fn(ts, s)) => {
                for (p, a) in ps.iter().zip(ts) {
                    self.bind_ty(p, a, cparams, map);
                }
                self.bind_ty(r, s, cparams, map);
            }
            _ => {}
        }
    }

    pub fn bind_elem(&mut self, p: &Elem, a: &Elem, cparams: &[CVarId], map: &mut Subst) {
        match (p, a) {
            (Elem::D(DTerm::Param(id)), Elem::D(d)) if cparams.contains(id) => {
                let d = self.norm(*d);
                map.entry(*id).or_insert(CTerm::DType(d));
            }
            (Elem::D(DTerm::Param(id)), Elem::Err) if cparams.contains(id) => {
                map.entry(*id).or_insert(CTerm::Err);
            }
            (Elem::Ptr { pointee: p, .. }, Elem::Ptr { pointee: a, .. }) => self.bind_elem(p, a, cparams, map),
            _ => {}
        }
    }

    fn bind_shape(&mut self, p: &Shape, a: &Shape, cparams: &[CVarId], map: &mut Subst) {
        match (p, a) {
            (Shape::Param(id), s) if cparams.contains(id) => {
                map.entry(*id).or_insert_with(|| CTerm::Shape(s.clone()));
            }
            (Shape::Dims(ps), Shape::Dims(ds)) if ps.len() == ds.len() => {
                for (p, d) in ps.iter().zip(ds) {
                    if let Some(id) = p.as_param()
                        && cparams.contains(&id)
                    {
                        map.entry(id).or_insert_with(|| CTerm::Int(Poly::clone(d)));
                    }
                }
            }
            _ => {}
        }
    }

    /// A call of a function value.
    fn call_value(&mut self, callee: HExpr, args: &[ast::Arg], span: Span) -> HExpr {
        let Ty::Fn(ps, r) = callee.ty.clone() else {
            self.check_rest(args);
            if callee.ty.is_err() {
                return HExpr::err(span);
            }
            let shown = self.show(&callee.ty);
            return self.error(codes::NOT_CALLABLE, callee.span, format!("`{shown}` cannot be called"), "");
        };
        if let Some(a) = args.iter().find_map(|a| a.name.as_ref()) {
            return self.error(codes::ARGUMENT_NAME, a.span, "a function value has no parameter names", "");
        }
        if args.len() != ps.len() {
            self.check_rest(args);
            let (n, m) = (ps.len(), args.len());
            return self.error(codes::ARGUMENT_COUNT, span, format!("this function takes {n} arguments, but {m} are given"), "");
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
                let mut d = Diagnostic::error(codes::RANK_MISMATCH, h.span, format!("this function takes a scalar, not `{shown}`"), format!("this is `{shown}`"));
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

    /// `S(f = x)`
    fn struct_value(&mut self, id: StructId, cargs: &[Index], args: &[ast::Arg], span: Span) -> HExpr {
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
            let want = slot.and_then(|i| s.fields.get(i)).map(|f| self.subst_ty(&f.1, &map));
            let h = self.expr(&a.value, want.as_ref());
            let h = self.need_value(h);
            match (slot, &a.name) {
                (Some(i), Some(n)) => {
                    if values.get(i).is_some_and(Option::is_some) {
                        self.error(codes::FIELDS, n.span, format!("`{}` is given twice", n.text), "");
                        ok = false;
                    } else if let Some(v) = values.get_mut(i) {
                        *v = Some(h);
                    }
                }
                (None, Some(n)) => {
                    let names: Vec<&str> = s.fields.iter().map(|f| f.0.as_str()).collect();
                    let mut d = Diagnostic::error(codes::FIELDS, n.span, format!("`{}` has no field `{}`", s.name, n.text), "").label(s.span, "declared here");
                    if let Some(best) = super::names::closest(&n.text, names.into_iter()) {
                        d = d.fix(format!("use `{best}`"), n.span, best);
                    }
                    self.report(d);
                    ok = false;
                }
                _ => {
                    self.error(codes::FIELDS, a.value.span, format!("fields of `{}` are given by name", s.name), "as in `S(x = 1)`");
                    ok = false;
                }
            }
        }
        let missing: Vec<String> = s.fields.iter().zip(&values).filter(|(_, v)| v.is_none()).map(|(f, _)| format!("`{}`", f.0)).collect();
        if ok && !missing.is_empty() {
            let d = Diagnostic::error(codes::FIELDS, span, format!("`{}` is built without {}", s.name, missing.join(", ")), "").label(s.span, "declared here");
            self.report(d);
            ok = false;
        }
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

    fn finish_struct(&mut self, id: StructId, s: &crate::hir::HStruct, values: Vec<Option<HExpr>>, mut map: Subst, span: Span) -> HExpr {
        for c in &s.cparams {
            if !map.contains_key(c) {
                match self.default_cterm(*c) {
                    Some(v) => {
                        map.insert(*c, v);
                    }
                    None => {
                        if values.iter().flatten().all(|h| !h.ty.is_err()) {
                            let n = self.hir().cvar(*c).name.clone();
                            self.error(codes::CANNOT_INFER, span, format!("`{n}` of `{}` does not follow from the fields", s.name), "");
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

    /// A function as a value.
    pub fn fn_value(&mut self, id: FnId, want: Option<&Ty>, span: Span) -> HExpr {
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
                self.error(codes::NOT_A_VALUE, span, format!("`{name}` is a function"), "call it, or pass it where a function is expected")
            }
        }
    }

    /// A function used with arguments of these types; its type says what comes out.
    pub fn fn_ref(&mut self, id: FnId, ps: &[Ty], span: Span) -> HExpr {
        let f = self.hir().func(id).clone();
        if f.kind != FnKind::Fn {
            return self.error(codes::NOT_A_VALUE, span, format!("`{}` is a kernel, not a function value", f.name), "");
        }
        if let Some(me) = self.func {
            self.p.calls.push((me, id, span));
        }
        if f.params.len() != ps.len() {
            let (n, m) = (f.params.len(), ps.len());
            let d = Diagnostic::error(codes::TYPE_MISMATCH, span, format!("a function of {m} arguments is needed, but `{}` takes {n}", f.name), "").label(f.span, "declared here");
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
                let d = Diagnostic::error(codes::TYPE_MISMATCH, span, format!("`{}` takes `{y}` as `{}`, but is used with `{x}`", f.name, p.name), "").label(f.span, "declared here");
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
            ExprKind::Lambda(params, body) => self.lambda_with(params, body, ps, e.span),
            ExprKind::Path(p) => {
                if let [n] = p.segments.as_slice()
                    && self.lookup(&n.text).is_none()
                    && self.lookup_item(&n.text).is_none()
                    && self.find_row(&n.text).is_some()
                {
                    return self.builtin_ref(n, ps, e.span);
                }
                let is_item = matches!(p.segments.as_slice(), [n] if self.lookup(&n.text).is_some());
                if !is_item {
                    return match self.resolve_path(p) {
                        Some(Def::Fn(id)) => self.fn_ref(id, ps, e.span),
                        Some(Def::Const(_)) => self.callable_value(e, ps),
                        Some(_) => {
                            let text = self.text(e.span);
                            self.error(codes::NOT_CALLABLE, e.span, format!("`{text}` is not a function"), "")
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
            return self.error(codes::NOT_CALLABLE, e.span, format!("a function is needed here, not `{shown}`"), "");
        };
        if !self.need_const(&h) {
            return HExpr::err(e.span);
        }
        let ok = qs.len() == ps.len() && ps.iter().zip(&qs).all(|(p, q)| self.fits(p, q));
        if !ok {
            let shown = self.show(&h.ty);
            let args: Vec<String> = ps.iter().map(|p| self.show(p)).collect();
            return self.error(codes::TYPE_MISMATCH, e.span, format!("`{shown}` cannot be called with ({})", args.join(", ")), "");
        }
        h
    }

    pub fn lambda(&mut self, params: &[(ast::Pat, Option<ast::Type>)], body: &ast::Expr, want: Option<&Ty>, span: Span) -> HExpr {
        if let Some(Ty::Fn(ps, _)) = want {
            let ps = ps.clone();
            return self.lambda_with(params, body, &ps, span);
        }
        if params.iter().any(|p| p.1.is_none()) {
            return self.error(codes::CANNOT_INFER, span, "the types of this lambda's parameters are not known here", "write them: `|x: f32| ..`");
        }
        let ps: Vec<Ty> = params.iter().filter_map(|p| p.1.as_ref()).map(|t| self.ty(t)).collect();
        self.lambda_with(params, body, &ps, span)
    }

    fn lambda_with(&mut self, params: &[(ast::Pat, Option<ast::Type>)], body: &ast::Expr, ps: &[Ty], span: Span) -> HExpr {
        if params.len() != ps.len() {
            let (n, m) = (ps.len(), params.len());
            return self.error(codes::TYPE_MISMATCH, span, format!("a function of {n} arguments is needed, but this lambda takes {m}"), "");
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
                        self.error(codes::TYPE_MISMATCH, t.span, format!("this parameter is `{b}` here, not `{a}`"), "");
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
            self.assigned.insert(id);
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
        self.mk(HKind::Lambda { params: locals, body: Box::new(body) }, Ty::Fn(ps.to_vec(), Box::new(ret)), span, true)
    }
}

/// Whether the compile-time evaluator has values of this type.
fn is_plain(t: &Ty) -> bool {
    match t {
        Ty::Tile { elem: Elem::D(_), shape } => shape.is_scalar(),
        Ty::Tuple(ts) => ts.iter().all(is_plain),
        _ => false,
    }
}
