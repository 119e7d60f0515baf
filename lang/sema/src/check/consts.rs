//! Compile-time expressions while checking: extents, symbolic integers, compile-time arguments, constants.

use tk_ops::DType;
use tk_syntax::ast;
use tk_syntax::{Diagnostic, Span, codes};

use super::cx::{Cx, Lit};
use super::subst::Subst;
use super::{ConstState, ConstTy};
use crate::eval::{Bindings, CVal, Evaluator};
use crate::hir::{CKind, CVarId, ConstId, HArg, HExpr, HKind};
use crate::poly::{Atom, Poly, PolyFn};
use crate::types::{CTerm, DTerm, Elem, Shape, Ty};

/// The maximum length of a chain of constants, each defined by the next: their check is recursive.
const MAX_CONST_DEPTH: usize = 64;

impl Cx<'_> {
    /// An extent: a compile-time integer in normal form; reports and gives `None` otherwise.
    pub fn extent(&mut self, e: &ast::Expr) -> Option<Poly> {
        let h = self.positive(e).and_then(|e| self.const_int(e))?;
        self.poly(&h)
    }

    /// A compile-time integer expression.
    pub fn const_int(&mut self, e: &ast::Expr) -> Option<HExpr> {
        let h = self.value(e);
        if h.ty.is_err() {
            return None;
        }
        if !self.need_int(&h) {
            return None;
        }
        self.need_const(&h).then_some(h)
    }

    /// Checks that an expression is a single integer.
    pub fn need_int(&mut self, h: &HExpr) -> bool {
        let ok = match &h.ty {
            Ty::Tile { elem: Elem::D(d), shape } if shape.is_scalar() => match self.set_of(*d) {
                Some(s) => s.within(tk_ops::DTypeSet::INT),
                None => matches!(self.literal(*d), Some(Lit::Int | Lit::Whole)),
            },
            _ => false,
        };
        if !ok && !h.ty.is_err() {
            let shown = self.show(&h.ty);
            let text = self.text(h.span);
            let d = Diagnostic::error(
                codes::TYPE_MISMATCH,
                h.span,
                format!("expected an integer, found `{shown}`"),
                super::this_is(&shown),
            );
            let d = if text == "None" { d.note("`None` adds a dimension in index brackets only") } else { d };
            let d = if h.ty == Ty::DType { self.number_in_brackets(d, h) } else { d };
            self.report(self.selecting(self.list_of_positions(d, h), &h.ty));
        }
        ok
    }

    /// Checks that an expression is known at compile time.
    pub fn need_const(&mut self, h: &HExpr) -> bool {
        if h.konst || h.ty.is_err() {
            return true;
        }
        let mut d = Diagnostic::error(
            codes::NOT_CONST,
            h.span,
            "expected a compile-time value",
            "this is only known at run time",
        );
        d = match &h.kind {
            _ if matches!(h.ty, Ty::View { .. }) => d.note(super::advice::VIEWS),
            HKind::Local(id) => self.known_at_run_time(d, self.local(*id)),
            _ => self.taken_at_launch(d, h),
        };
        self.report(d);
        false
    }

    /// The normal form of a compile-time integer expression.
    pub fn poly(&mut self, h: &HExpr) -> Option<Poly> {
        if h.ty.is_err() {
            return None;
        }
        let found = match self.try_poly(h) {
            Some(p) => Some(p),
            None => self.closed_value(h).map(Poly::int),
        };
        Some(found.unwrap_or_else(|| self.opaque(h)))
    }

    /// The symbol of an expression without normal form; the same expression in another place is the same value.
    fn opaque(&mut self, h: &HExpr) -> Poly {
        // Expressions kept beside the bodies are not visited when their literals get their types.
        let mut h = h.clone();
        self.zonk_expr(&mut h);
        let mut plain = h.clone();
        without_places(&mut plain);
        let known = self.p.opaque_forms.iter().position(|e| *e == plain);
        let id = known.unwrap_or(self.p.hir.opaque.len()) as u32;
        if known.is_none() {
            self.p.opaque_forms.push(plain);
            self.p.hir.opaque.push(h);
        }
        Poly::atom(Atom::Opaque(id))
    }

    fn try_poly(&mut self, h: &HExpr) -> Option<Poly> {
        match &h.kind {
            HKind::Int(n) => Some(Poly::int(*n)),
            HKind::CVar(id) => match self.hir().cvar(*id).kind {
                CKind::Int(_) => Some(Poly::param(*id)),
                _ => None,
            },
            HKind::Const(id) => {
                let value = self.hir().constant(*id).value.clone();
                self.try_poly(&value)
            }
            HKind::Cast(inner) => match (self.dterm_of(&h.ty), self.dterm_of(&inner.ty)) {
                (Some(DTerm::Known(to)), Some(from))
                    if to.is_int()
                        && to.bits() >= 32
                        && self.set_of(from).is_none_or(|s| s.within(tk_ops::DTypeSet::INT)) =>
                {
                    self.try_poly(inner)
                }
                _ => None,
            },
            HKind::DTypeFact(d, fact) => match self.norm(*d) {
                DTerm::Known(k) => super::dtypes::dtype_fact(k, fact).map(Poly::int),
                DTerm::Param(id) => Some(Poly::atom(Atom::DTypeFact(id, fact))),
                DTerm::Acc(_) | DTerm::Infer(_) => None,
            },
            HKind::Field(base, i) => match (&base.kind, &base.ty) {
                (HKind::CVar(id), Ty::ShapeTy) => Some(Poly::atom(Atom::ShapeDim(*id, *i))),
                (HKind::Shape(dims), _) => {
                    let d = dims.get(*i as usize).cloned()?;
                    self.try_poly(&d)
                }
                _ => None,
            },
            HKind::Builtin(row, args) => {
                let mut ps = vec![];
                for a in args {
                    match a {
                        HArg::Expr(e) => ps.push(self.try_poly(e)?),
                        HArg::Default => {}
                        HArg::List(_) | HArg::Shape(_) | HArg::Word(_) => return None,
                    }
                }
                // Extents have this type; of others it would say which bits are lost.
                let is_i32 = matches!(self.dterm_of(&h.ty), Some(DTerm::Known(DType::I32) | DTerm::Infer(_)));
                let f = match (row.name, ps.as_slice()) {
                    ("+", [a, b]) => return a.add(b),
                    ("-", [a, b]) => return a.sub(b),
                    ("*", [a, b]) => return a.mul(b),
                    ("unary -", [a]) => return a.neg(),
                    ("<<", [a, k]) if is_i32 => {
                        return a.mul(&Poly::apply(PolyFn::Shl, vec![Poly::int(1), k.clone()])?);
                    }
                    (">>", _) => PolyFn::Shr,
                    ("/", _) => PolyFn::Div,
                    ("%", _) => PolyFn::Rem,
                    ("cdiv", _) => PolyFn::CeilDiv,
                    ("minimum", _) => PolyFn::Min,
                    ("maximum", _) => PolyFn::Max,
                    ("next_pow2", _) => PolyFn::NextPow2,
                    (_, _) => return None,
                };
                Poly::apply(f, ps)
            }
            HKind::If { cond, then, els: Some(els) } if then.stmts.is_empty() && els.stmts.is_empty() => {
                let HKind::Builtin(row, sides) = &cond.kind else { return None };
                let [HArg::Expr(a), HArg::Expr(b)] = sides.as_slice() else { return None };
                let (a, b) = (self.try_poly(a)?, self.try_poly(b)?);
                let (then, els) = (self.try_poly(then.tail.as_ref()?)?, self.try_poly(els.tail.as_ref()?)?);
                match row.name {
                    "==" => Poly::apply(PolyFn::Choose, vec![a, b, then, els]),
                    "!=" => Poly::apply(PolyFn::Choose, vec![a, b, els, then]),
                    _ => None,
                }
            }
            HKind::Block(b) if b.stmts.is_empty() => self.try_poly(b.tail.as_ref()?),
            _ => None,
        }
    }

    /// The number of an expression without variables (`w(2048)`).
    fn closed_value(&mut self, h: &HExpr) -> Option<i128> {
        match self.computed(h)? {
            CVal::Int(n) => Some(n),
            CVal::Float(_)
            | CVal::Bool(_)
            | CVal::DType(_)
            | CVal::Shape(_)
            | CVal::Str(_)
            | CVal::Tuple(_)
            | CVal::Fn(_)
            | CVal::View(_)
            | CVal::Unit
            | CVal::None => None,
        }
    }

    /// The value of an expression without variables, computed now; the functions that it calls are checked first.
    pub fn computed(&mut self, h: &HExpr) -> Option<CVal> {
        let (mut copy, mut callees) = (h.clone(), vec![]);
        if !closed(&mut copy, &mut callees) {
            return None;
        }
        let mut next = 0;
        while let Some(f) = callees.get(next).copied() {
            super::items::ensure_body(self.p, f);
            let body = self.p.bodies.get_mut(&f)?;
            body.computed = true;
            let declared = self.p.declared.calls.iter().filter(|c| c.0 == f);
            for (_, callee, _) in body.notes.calls.iter().chain(declared) {
                if !callees.contains(callee) {
                    callees.push(*callee);
                }
            }
            if self.hir().func(f).broken {
                return None;
            }
            next += 1;
        }
        self.zonk_expr(&mut copy);
        Evaluator::new(&self.p.hir, &Bindings::default()).expr(&copy).ok()
    }

    /// A compile-time integer whose number must be known while checking (an axis, a permutation).
    pub fn known_int(&mut self, e: &ast::Expr, what: &str) -> Option<i128> {
        let h = self.const_int(e)?;
        let p = self.poly(&h)?;
        if let Some(n) = self.with_facts(&p).as_int() {
            return Some(n);
        }
        self.error(
            codes::UNKNOWN_EXTENT,
            e.span,
            format!("{what} must be a number known before specialization"),
            "not known before specialization",
        );
        None
    }

    /// The compile-time argument for a parameter, checked against what it ranges over.
    pub fn carg(&mut self, param: CVarId, e: &ast::Expr) -> CTerm {
        let kind = self.hir().cvar(param).kind.clone();
        self.carg_of(&kind, param, e)
    }

    pub fn carg_of(&mut self, kind: &CKind, param: CVarId, e: &ast::Expr) -> CTerm {
        match kind {
            CKind::Err => CTerm::Err,
            CKind::DType(_) => {
                let h = self.value(e);
                if h.ty.is_err() || !self.need_const(&h) {
                    return CTerm::Err;
                }
                if h.ty != Ty::DType {
                    return self.wrong_carg(param, &h);
                }
                match self.need_dtype(h) {
                    Some((_, d)) if self.in_bound(param, d, e.span) => CTerm::DType(d),
                    Some(_) | None => CTerm::Err,
                }
            }
            CKind::Shape => match self.shape_arg(e) {
                Some(s) => CTerm::Shape(s),
                None => CTerm::Err,
            },
            CKind::Int(d) | CKind::Float(d) => {
                let h = self.value(e);
                let want = Ty::scalar(*d);
                let h = self.coerce(h, &want, "the compile-time argument");
                if h.ty.is_err() || !self.need_const(&h) {
                    return CTerm::Err;
                }
                if d.is_int() {
                    self.poly(&h).map_or(CTerm::Err, CTerm::Int)
                } else {
                    CTerm::Expr(Box::new(h))
                }
            }
            CKind::Bool => {
                let h = self.value(e);
                let h = self.coerce(h, &Ty::bool(), "the compile-time argument");
                if h.ty.is_err() || !self.need_const(&h) { CTerm::Err } else { CTerm::Expr(Box::new(h)) }
            }
            CKind::Fn(ps, r) => {
                let want = Ty::Fn(ps.clone(), r.clone());
                let h = self.expr(e, Some(&want));
                let h = self.coerce(h, &want, "the compile-time argument");
                if h.ty.is_err() || !self.need_const(&h) { CTerm::Err } else { CTerm::Expr(Box::new(h)) }
            }
        }
    }

    fn wrong_carg(&mut self, param: CVarId, h: &HExpr) -> CTerm {
        let (name, kind) = (self.hir().cvar(param).name.clone(), self.hir().cvar(param).kind.clone());
        let want = crate::show::ckind(self.hir(), &kind);
        let shown = self.show(&h.ty);
        self.error(
            codes::NOT_STATIC_ARG,
            h.span,
            format!("`{name}` is of {want}, but this is `{shown}`"),
            super::this_is(&shown),
        );
        CTerm::Err
    }

    /// Returns true if a dtype is in the set of a parameter; reports otherwise.
    pub fn in_bound(&mut self, param: CVarId, d: DTerm, span: Span) -> bool {
        let CKind::DType(set) = self.hir().cvar(param).kind.clone() else { return true };
        let ok = match self.set_of(d) {
            Some(s) => s.within(set),
            None => match self.literal(d) {
                Some(Lit::Int) => set.and(tk_ops::DTypeSet::NUMBER) != tk_ops::DTypeSet::EMPTY,
                Some(Lit::Whole) => set.and(tk_ops::DTypeSet::INT) != tk_ops::DTypeSet::EMPTY,
                Some(Lit::Float) => set.and(tk_ops::DTypeSet::FLOAT) != tk_ops::DTypeSet::EMPTY,
                None => true,
            },
        };
        if !ok {
            let name = self.hir().cvar(param).name.clone();
            let at = self.hir().cvar(param).span;
            let mut shown = self.show_elem(&Elem::D(d));
            let mut note = None;
            if let (DTerm::Param(_) | DTerm::Acc(_), Some(have)) = (self.norm(d), self.set_of(d)) {
                let outside: Vec<&str> = have.without(set).iter().map(DType::name).collect();
                note = Some(format!("{} not possible", super::dtypes::not_possible(&outside)));
                shown = format!("{shown}` with values in `{have}");
            }
            let mut d = Diagnostic::error(
                codes::NOT_STATIC_ARG,
                span,
                format!("`{name}` must be {set}, but is `{shown}` here"),
                format!("this sets `{name}` to `{shown}`"),
            )
            .label(at, "the bound");
            d.notes.extend(note);
            self.report(d);
        }
        ok
    }

    /// The default of a compile-time parameter as an argument, where it needs no run-time value; it may use parameters
    /// before it.
    pub fn default_in(&mut self, param: CVarId, earlier: &Subst) -> Option<CTerm> {
        let default = self.hir().cvar(param).default.clone()?;
        if default.ty.is_err() {
            return Some(CTerm::Err);
        }
        if !default.konst {
            return None;
        }
        let term = self.as_cterm(&default);
        Some(self.subst_cterm(&term, earlier))
    }

    /// A compile-time expression as an argument.
    pub fn as_cterm(&mut self, h: &HExpr) -> CTerm {
        match (&h.kind, &h.ty) {
            (HKind::DType(d), _) => CTerm::DType(*d),
            (HKind::CVar(id), Ty::DType) => CTerm::DType(DTerm::Param(*id)),
            (HKind::CVar(id), Ty::ShapeTy) => CTerm::Shape(Shape::Param(*id)),
            (HKind::Shape(dims), _) => {
                let dims = dims.clone();
                let ps: Option<Vec<Poly>> = dims.iter().map(|d| self.poly(d)).collect();
                ps.map_or(CTerm::Err, |d| CTerm::Shape(Shape::Dims(d)))
            }
            (_, Ty::Tile { elem: Elem::D(d), .. })
                if self.set_of(*d).is_some_and(|s| s.within(tk_ops::DTypeSet::INT))
                    || matches!(self.literal(*d), Some(Lit::Int | Lit::Whole)) =>
            {
                self.poly(h).map_or(CTerm::Err, CTerm::Int)
            }
            (_, t) if t.is_err() => CTerm::Err,
            _ => CTerm::Expr(Box::new(h.clone())),
        }
    }

    /// A shape argument: `[BM, BN]`, a `shape` variable, or `x.shape` of a tile.
    pub fn shape_arg(&mut self, e: &ast::Expr) -> Option<Shape> {
        if let ast::ExprKind::Array(items) = &e.kind {
            if items.len() > super::types::MAX_RANK {
                self.error(
                    codes::TILE_RANK,
                    e.span,
                    format!("a tile has at most {} dimensions, not {}", super::types::MAX_RANK, items.len()),
                    format!("{} dimensions", items.len()),
                );
                return None;
            }
            let dims: Option<Vec<Poly>> = items.iter().map(|i| self.extent(i)).collect();
            return dims.map(Shape::Dims);
        }
        let h = self.expr(e, Some(&Ty::ShapeTy));
        let h = self.need_value(h);
        if h.ty.is_err() {
            return None;
        }
        if h.ty != Ty::ShapeTy {
            let shown = self.show(&h.ty);
            let mut d = Diagnostic::error(
                codes::TYPE_MISMATCH,
                e.span,
                format!("expected a shape, found `{shown}`"),
                super::this_is(&shown),
            );
            if shown.starts_with('i') {
                let text = self.text(e.span);
                d = d.fix("write it as a list", e.span, format!("[{text}]"));
            }
            d = self.relisted(d, e, true);
            self.report(d);
            return None;
        }
        if !self.need_const(&h) {
            return None;
        }
        let h = self.settled(h);
        self.need_shape(&h)
    }

    /// The extents that an expression of type `shape` gives; reports where their number depends on a specialization.
    fn need_shape(&mut self, h: &HExpr) -> Option<Shape> {
        match self.as_cterm(h) {
            CTerm::Shape(s) => Some(s),
            CTerm::Err => None,
            _ if crate::visit::has_hole(h) => None,
            CTerm::Int(_) | CTerm::DType(_) | CTerm::Expr(_) => {
                let message = "the shape must be known before specialization";
                let d = Diagnostic::error(
                    codes::UNKNOWN_EXTENT,
                    h.span,
                    message,
                    "this depends on compile-time parameters",
                );
                self.report(d.note("extents may depend on them: `[if WIDE { 8 } else { 4 }]`"));
                None
            }
        }
    }

    /// A shape argument as a value of type `shape`.
    pub fn shape_expr(&mut self, e: &ast::Expr) -> HExpr {
        match self.shape_arg(e) {
            Some(Shape::Dims(d)) => {
                let dims = d.iter().map(|p| self.poly_expr(p, e.span)).collect();
                self.mk(HKind::Shape(dims), Ty::ShapeTy, e.span, true)
            }
            Some(Shape::Param(s)) => self.cvar_use(s, e.span),
            None => HExpr::err(e.span),
        }
    }

    /// A use of a constant: a flexible one takes a new literal type.
    pub fn const_use(&mut self, id: ConstId, span: Span) -> HExpr {
        let ty = self.const_type(id, span);
        let ty = self.const_use_ty(ty);
        // Types are made of these: they stand for themselves.
        if let Ty::DType | Ty::ShapeTy = ty {
            return HExpr { span, ..self.hir().constant(id).value.clone() };
        }
        self.mk(HKind::Const(id), ty, span, true)
    }

    fn const_type(&mut self, id: ConstId, span: Span) -> ConstTy {
        let index = id.0 as usize;
        let state = self.p.consts.get(index).cloned();
        match state {
            Some(ConstState::Done(t)) => t,
            Some(ConstState::Active) => {
                let name = self.hir().constant(id).name.clone();
                self.error(codes::RECURSION, span, format!("the value of `{name}` depends on itself"), "");
                ConstTy::Fixed(Ty::Err)
            }
            Some(ConstState::Waiting { .. }) if self.p.const_depth >= MAX_CONST_DEPTH => {
                let name = self.hir().constant(id).name.clone();
                self.error(
                    codes::TOO_DEEP,
                    span,
                    format!("`{name}` is at the end of a chain of {MAX_CONST_DEPTH} constants"),
                    "",
                );
                ConstTy::Fixed(Ty::Err)
            }
            Some(ConstState::Waiting { file, ast }) => {
                self.p.const_depth += 1;
                self.set_const(id, ConstState::Active);
                let (value, real, ty) = {
                    let mut cx = Cx::new(self.p, file, None);
                    let done = cx.const_value(&ast.0);
                    cx.remember();
                    done
                };
                self.p.const_depth -= 1;
                let constant = &mut self.p.hir.consts[index];
                (constant.value, constant.real) = (value, real);
                self.set_const(id, ConstState::Done(ty.clone()));
                ty
            }
            None => ConstTy::Fixed(Ty::Err),
        }
    }

    fn set_const(&mut self, id: ConstId, state: ConstState) {
        if let Some(slot) = self.p.consts.get_mut(id.0 as usize) {
            *slot = state;
        }
    }

    /// Checks every constant that nothing has used yet.
    pub fn force_const(&mut self, id: ConstId) {
        let span = self.hir().constant(id).span;
        self.const_type(id, span);
    }

    /// The value and type of a constant. Flexible values are kept in the widest type, and as floats too.
    fn const_value(&mut self, c: &ast::Const) -> (HExpr, Option<HExpr>, ConstTy) {
        let want = c.ty.as_ref().map(|t| self.ty(t));
        let mut h = self.expr(&c.value, want.as_ref());
        h = self.need_value(h);
        if let Some(w) = &want {
            let tile = matches!(w, Ty::Tile { shape, .. } if !shape.is_scalar());
            if tile && !h.ty.is_err() {
                let span = h.span;
                h = self.as_table(h).unwrap_or_else(|| HExpr::err(span));
            }
            h = self.coerce(h, w, "the constant");
        }
        if !self.need_const(&h) {
            h = HExpr::err(h.span);
        }
        if h.ty == Ty::DType {
            h = self.need_dtype(h).map_or_else(|| HExpr::err(c.value.span), |(h, _)| h);
        } else if h.ty == Ty::ShapeTy {
            h = self.settled(h);
            if self.need_shape(&h).is_none() {
                h = HExpr::err(c.value.span);
            }
        }
        let real = self.as_real(&h);
        let ty = self.const_ty(&h.ty.clone());
        self.zonk_expr(&mut h);
        (h, real, ty)
    }

    /// A local `const`.
    pub fn local_const(&mut self, c: &ast::Const) {
        let (value, real, ty) = self.const_value(c);
        let id = ConstId(self.p.hir.consts.len() as u32);
        let (name, span) = (c.name.text.clone(), c.name.span);
        self.p.hir.consts.push(crate::hir::HConst { name, value, real, span });
        self.p.consts.push(ConstState::Done(ty));
        self.bind(&c.name.text.clone(), super::cx::Sym::Const(id));
    }
}

/// Removes the spans of a compile-time expression, so that equal ones compare equal.
fn without_places(h: &mut HExpr) {
    h.span = Span::default();
    crate::visit::children(h, &mut without_places);
}

/// Returns true if an expression has no variables; collects the functions that it calls.
fn closed(h: &mut HExpr, callees: &mut Vec<crate::hir::FnId>) -> bool {
    match &h.kind {
        HKind::CVar(_) | HKind::Local(_) | HKind::Err | HKind::Target(_) | HKind::Device(_) => return false,
        HKind::DType(d) | HKind::DTypeFact(d, _) if !matches!(d, DTerm::Known(_)) => return false,
        HKind::Call { callee, cargs, .. } => {
            let plain = cargs.iter().all(|(_, c)| match c {
                CTerm::Int(p) => p.as_int().is_some(),
                CTerm::DType(d) => matches!(d, DTerm::Known(_)),
                CTerm::Expr(_) => true,
                CTerm::Shape(_) | CTerm::Err => false,
            });
            if !plain {
                return false;
            }
            callees.push(*callee);
        }
        HKind::FnRef(..) | HKind::Lambda { .. } | HKind::CallValue { .. } => return false,
        _ => {}
    }
    let mut ok = true;
    crate::visit::children(h, &mut |e| ok = ok && closed(e, callees));
    ok
}
