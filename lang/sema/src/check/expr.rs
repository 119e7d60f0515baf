//! Owns expressions: literals, names, casts, conditionals, blocks, and and the flow through conditionals.

use std::collections::BTreeSet;

use tk_ops::{DType, DTypeSet};
use tk_syntax::ast::{self, ExprKind};
use tk_syntax::{Diagnostic, Span, codes};

use super::cx::{Cx, Lit, Sym};
use super::names::closest;
use super::{Def, files};
use crate::hir::{CKind, CVarId, HArg, HExpr, HKind, LocalId};
use crate::types::{DTerm, Elem, Shape, Ty};

impl Cx<'_, '_> {
    /// An expression; `want` is what its place would like, for lambdas, functions and `None`.
    pub fn expr(&mut self, e: &ast::Expr, want: Option<&Ty>) -> HExpr {
        let span = e.span;
        match &e.kind {
            ExprKind::Err => HExpr::err(span),
            ExprKind::Int(Some(n)) => match i128::try_from(*n) {
                Ok(n) => self.lit(HKind::Int(n), Lit::Int, span),
                Err(_) => self.error(codes::LITERAL_RANGE, span, "this number fits no type", ""),
            },
            ExprKind::Int(None) => HExpr::err(span),
            ExprKind::Float(text) => match text.parse::<f64>() {
                Ok(x) => self.lit(HKind::Float(x), Lit::Float, span),
                Err(_) => self.error(codes::BAD_LITERAL, span, "this is not a number", ""),
            },
            ExprKind::Str(s) => self.mk(HKind::Str(s.clone()), Ty::Str, span, true),
            ExprKind::Bool(b) => self.mk(HKind::Bool(*b), Ty::bool(), span, true),
            ExprKind::None => self.none(want, span),
            ExprKind::Path(p) => self.path(p, want, span),
            ExprKind::Tuple(items) if items.is_empty() => self.mk(HKind::Unit, Ty::Unit, span, true),
            ExprKind::Tuple(items) | ExprKind::Array(items) => self.tuple(items, want, span),
            ExprKind::Unary(op, x) => self.unary(*op, x, span),
            ExprKind::Binary(op, a, b) => self.binary(*op, a, b, span),
            ExprKind::Cast(x, t) => self.cast(x, t, span),
            ExprKind::Index(base, items) => self.index(base, items, span),
            ExprKind::Call(f, args) => self.call(f, args, span),
            ExprKind::Member(base, name) => self.member(base, name, span),
            ExprKind::If(c, then, els) => self.if_expr(c, then, els.as_deref(), want, span),
            ExprKind::IfLet(n, x, then, els) => self.if_let(n, x, then, els.as_deref(), want, span),
            ExprKind::Block(b) => {
                let (block, ty) = self.block(b, want);
                let konst = block.stmts.is_empty() && block.tail.as_ref().is_some_and(|t| t.konst);
                self.mk(HKind::Block(Box::new(block)), ty, span, konst)
            }
            ExprKind::Lambda(params, body) => self.lambda(params, body, want, span),
            ExprKind::Type(t) => self.type_value(t, span),
            ExprKind::Return(x) => {
                let value = self.return_value(x.as_deref(), span);
                self.diverged = true;
                self.mk(HKind::Return(value.map(Box::new)), Ty::Never, span, false)
            }
        }
    }

    fn type_value(&mut self, t: &ast::Type, span: Span) -> HExpr {
        if !self.ty(t).is_err() {
            self.error(codes::NOT_A_VALUE, span, "this type is not a value", "only scalar element types are compile-time values");
        }
        HExpr::err(span)
    }

    /// A literal of a type that its use decides.
    pub fn lit(&mut self, kind: HKind, lit: Lit, span: Span) -> HExpr {
        let d = self.fresh(lit);
        self.mk(kind, Ty::Tile { elem: Elem::D(d), shape: Shape::scalar() }, span, true)
    }

    fn none(&mut self, want: Option<&Ty>, span: Span) -> HExpr {
        match want {
            Some(t @ Ty::Option(_)) => self.mk(HKind::None, t.clone(), span, true),
            _ => self.error(codes::NOT_A_VALUE, span, "`None` is no value here", "it stands for an absent optional view, or between index brackets"),
        }
    }

    fn tuple(&mut self, items: &[ast::Expr], want: Option<&Ty>, span: Span) -> HExpr {
        let wants: Vec<Option<Ty>> = match want {
            Some(Ty::Tuple(ts)) if ts.len() == items.len() => ts.iter().cloned().map(Some).collect(),
            _ => vec![None; items.len()],
        };
        let es: Vec<HExpr> = items
            .iter()
            .zip(&wants)
            .map(|(e, w)| {
                let h = self.expr(e, w.as_ref());
                self.need_value(h)
            })
            .collect();
        let ty = if es.iter().any(|e| e.ty.is_err()) { Ty::Err } else { Ty::Tuple(es.iter().map(|e| e.ty.clone()).collect()) };
        let konst = es.iter().all(|e| e.konst);
        self.mk(HKind::Tuple(es), ty, span, konst)
    }

    /// A name as a value.
    fn path(&mut self, p: &ast::Path, want: Option<&Ty>, span: Span) -> HExpr {
        if let [n] = p.segments.as_slice() {
            if n.text.is_empty() {
                return HExpr::err(span);
            }
            match self.lookup(&n.text) {
                Some(Sym::Local(id)) => return self.local_use(id, span),
                Some(Sym::CVar(id)) => return self.cvar_use(id, span),
                Some(Sym::Const(id)) => return self.const_use(id, span),
                None => {}
            }
            if self.lookup_item(&n.text).is_none() {
                return self.builtin_name(n, want, span);
            }
        }
        match self.resolve_path(p) {
            Some(Def::Const(id)) => self.const_use(id, span),
            Some(Def::Fn(id)) => self.fn_value(id, want, span),
            Some(Def::Struct(id)) => {
                let name = self.hir().strukt(id).name.clone();
                self.error(codes::NOT_A_VALUE, span, format!("`{name}` is a struct, not a value"), format!("build one with `{name}(..)`"))
            }
            Some(Def::Module(_)) => {
                let text = self.text(span);
                self.error(codes::NOT_A_VALUE, span, format!("`{text}` is a file, not a value"), format!("name an item of it: `{text}::..`"))
            }
            None => HExpr::err(span),
        }
    }

    fn builtin_name(&mut self, n: &ast::Name, want: Option<&Ty>, span: Span) -> HExpr {
        match n.text.as_str() {
            "inf" => return self.lit(HKind::Float(f64::INFINITY), Lit::Float, span),
            "nan" => return self.lit(HKind::Float(f64::NAN), Lit::Float, span),
            "target" | "device" => {
                return self.error(codes::NOT_A_VALUE, span, format!("`{}` is no value by itself", n.text), "name a property of it");
            }
            _ => {}
        }
        if let Some(d) = DType::parse(&n.text) {
            return self.mk(HKind::DType(DTerm::Known(d)), Ty::DType, span, true);
        }
        if self.find_row(&n.text).is_some() {
            return self.builtin_value(n, want, span);
        }
        self.unknown_name(n)
    }

    /// Reports an unknown name with the nearest known one.
    pub fn unknown_name(&mut self, n: &ast::Name) -> HExpr {
        if self.holes || !self.unknown.insert(n.text.clone()) {
            if let Some(f) = self.func {
                self.p.func_mut(f).broken = true;
            }
            return HExpr::err(n.span);
        }
        let mut names = self.names_in_scope();
        names.extend(tk_ops::rows::functions().map(|r| r.name.to_string()));
        names.extend(DType::ALL.iter().map(|d| d.name().to_string()));
        let mut d = Diagnostic::error(codes::UNKNOWN_NAME, n.span, format!("there is no `{}` here", n.text), "unknown name");
        if let Some(s) = closest(&n.text, names.iter().map(String::as_str)) {
            d = d.fix(format!("use `{s}`"), n.span, s);
        } else if ["gelu", "gelu_tanh", "silu", "relu", "sigmoid"].contains(&n.text.as_str()) {
            let top = Span { start: 0, end: 0, file: n.span.file };
            d = d.fix(format!("import it: `use std::math::{};`", n.text), top, format!("use std::math::{};\n", n.text));
        }
        self.fail(d)
    }

    /// Every name that a body can say, nearest scope first, builtins aside.
    pub fn names_in_scope(&self) -> Vec<String> {
        let own = self.scopes.iter().rev().flat_map(|s| s.iter().rev().map(|(n, _)| n.clone()));
        let file = self.p.files.get(self.file).into_iter().flat_map(|f| f.names.keys().cloned());
        own.chain(file).collect()
    }

    /// The item that a path names; reports when there is none.
    pub fn resolve_path(&mut self, p: &ast::Path) -> Option<Def> {
        match p.segments.as_slice() {
            [n] => {
                let def = self.lookup_item(&n.text);
                if def.is_none() && !n.text.is_empty() {
                    self.unknown_name(n);
                }
                def
            }
            [m, n] => match self.lookup_item(&m.text) {
                Some(Def::Module(i)) => {
                    let before = self.p.diags.len();
                    let def = files::member(self.p, self.file, i, n);
                    if self.p.diags.len() > before
                        && let Some(f) = self.func
                    {
                        self.p.func_mut(f).broken = true;
                    }
                    def
                }
                Some(_) => {
                    self.error(codes::NOT_A_VALUE, m.span, format!("`{}` is not a file, nothing can follow `::`", m.text), "");
                    None
                }
                None => {
                    let mut d = Diagnostic::error(codes::UNKNOWN_NAME, m.span, format!("there is no file `{}` imported here", m.text), "");
                    if ["grid", "math"].contains(&m.text.as_str()) {
                        let top = Span { start: 0, end: 0, file: m.span.file };
                        d = d.fix(format!("import it: `use std::{};`", m.text), top, format!("use std::{};\n", m.text));
                    }
                    self.report(d);
                    None
                }
            },
            _ => {
                self.error(codes::UNKNOWN_NAME, p.span, "a path names a file and an item of it", "");
                None
            }
        }
    }

    fn local_use(&mut self, id: LocalId, span: Span) -> HExpr {
        let (name, at, ty) = {
            let l = self.local(id);
            (l.name.clone(), l.span, l.ty.clone())
        };
        if self.lambda_depth > id.0 as usize {
            let d = Diagnostic::error(codes::NOT_CONST, span, format!("a lambda cannot use the run-time variable `{name}`"), "known at run time only")
                .label(at, "declared here")
                .note("lambdas capture compile-time values; pass run-time values to `map` as further arguments");
            return self.fail(d);
        }
        if !self.assigned.contains(&id) && !self.diverged {
            let d = Diagnostic::error(codes::UNASSIGNED, span, format!("`{name}` may be used before it is assigned"), "used here")
                .label(at, "declared here without a value");
            self.assigned.insert(id);
            return self.fail(d);
        }
        self.mk(HKind::Local(id), ty, span, false)
    }

    pub fn cvar_use(&mut self, id: CVarId, span: Span) -> HExpr {
        match self.hir().cvar(id).kind.clone() {
            CKind::Int(d) | CKind::Float(d) => self.mk(HKind::CVar(id), Ty::scalar(d), span, true),
            CKind::Bool => self.mk(HKind::CVar(id), Ty::bool(), span, true),
            CKind::DType(_) => self.mk(HKind::DType(DTerm::Param(id)), Ty::DType, span, true),
            CKind::Shape => self.mk(HKind::CVar(id), Ty::ShapeTy, span, true),
            CKind::Fn(ps, r) => self.mk(HKind::CVar(id), Ty::Fn(ps, r), span, true),
            CKind::Err => HExpr::err(span),
        }
    }

    /// `x as T`
    fn cast(&mut self, x: &ast::Expr, t: &ast::Type, span: Span) -> HExpr {
        let h = self.value(x);
        let to = self.ty(t);
        if h.ty.is_err() || to.is_err() {
            return HExpr::err(span);
        }
        let (Ty::Tile { elem: from, shape }, Ty::Tile { elem: into, shape: rank0 }) = (h.ty.clone(), to.clone()) else {
            return self.bad_cast(&h, &to, span);
        };
        if !rank0.is_scalar() {
            return self.bad_cast(&h, &to, span);
        }
        let ok = match (&from, &into) {
            (Elem::D(f), Elem::D(t)) => return self.scalar_cast(h.clone(), *f, *t, shape, span),
            (Elem::Ptr { .. }, Elem::Ptr { .. }) => true,
            (Elem::D(_), Elem::Ptr { .. }) | (Elem::Ptr { .. }, Elem::D(_)) | (Elem::Err, _) | (_, Elem::Err) => false,
        };
        if !ok {
            return self.bad_cast(&h, &to, span);
        }
        let konst = h.konst;
        self.mk(HKind::Cast(Box::new(h)), Ty::Tile { elem: into, shape }, span, konst)
    }

    fn scalar_cast(&mut self, h: HExpr, from: DTerm, to: DTerm, shape: Shape, span: Span) -> HExpr {
        let ty = Ty::Tile { elem: Elem::D(to), shape };
        let to_set = self.set_of(to).unwrap_or(DTypeSet::EMPTY);
        if self.norm(from) == self.norm(to) {
            let konst = h.konst;
            return self.mk(HKind::Cast(Box::new(h)), ty, span, konst);
        }
        if to_set.has(DType::Bool) && to_set.single().is_some() {
            let text = self.text(h.span);
            let text = if self.is_postfix(&text) { text } else { format!("({text})") };
            let d = Diagnostic::error(codes::BAD_CAST, span, "nothing is cast to `bool`", "").fix("compare with 0", span, format!("{text} != 0"));
            return self.fail(d);
        }
        let packed = DTypeSet::of(&[DType::E2M1, DType::E8M0]);
        let from_set = self.set_of(from).unwrap_or(DTypeSet::EMPTY);
        if to_set.or(from_set).and(packed) != DTypeSet::EMPTY || to_set.has(DType::Bool) {
            return self.bad_cast(&h, &ty, span);
        }
        self.adapt_cast(&h, from, to, to_set);
        let konst = h.konst;
        self.mk(HKind::Cast(Box::new(h)), ty, span, konst)
    }

    /// A literal under a cast is of the target's type if it fits: `0.1 as f64` is exact, `300 as u8` keeps low bits.
    fn adapt_cast(&mut self, h: &HExpr, from: DTerm, to: DTerm, to_set: DTypeSet) {
        let fits = |d: DType| match &h.kind {
            HKind::Int(n) => d.int_range().is_none_or(|(lo, hi)| (lo..=hi).contains(n)),
            _ => d.is_float() || d.bits() >= 32,
        };
        match self.literal(from) {
            Some(Lit::Float) if to_set.within(DTypeSet::FLOAT) => {
                self.adapt(from, to);
            }
            Some(Lit::Int) if to_set.within(DTypeSet::NUMBER) && to_set.iter().all(fits) => {
                self.adapt(from, to);
            }
            Some(Lit::Int) if matches!(h.kind, HKind::Int(n) if i32::try_from(n).is_err()) => {
                self.adapt(from, DTerm::Known(DType::I64));
            }
            Some(_) | None => {}
        }
    }

    fn bad_cast(&mut self, h: &HExpr, to: &Ty, span: Span) -> HExpr {
        let (a, b) = (self.show(&h.ty), self.show(to));
        self.error(codes::BAD_CAST, span, format!("`{a}` cannot be cast to `{b}`"), "")
    }

    /// `if c { .. } else { .. }`
    fn if_expr(&mut self, c: &ast::Expr, then: &ast::Block, els: Option<&ast::Expr>, want: Option<&Ty>, span: Span) -> HExpr {
        let cond = self.condition(c);
        let (narrow_then, narrow_else) = if cond.konst { self.narrowing(&cond) } else { (vec![], vec![]) };
        let before = self.flow();
        let want_arm = if cond.konst { want } else { None };
        let (then_b, then_ty) = self.narrowed_block(narrow_then, |cx| {
            let arm = cx.block(then, want);
            cx.fit_arm(arm, want_arm)
        });
        let after_then = self.flow();
        self.set_flow(before.clone());
        let els_b = els.map(|e| {
            self.narrowed_block(narrow_else, |cx| {
                let arm = cx.else_block(e, want);
                cx.fit_arm(arm, want_arm)
            })
        });
        let after_else = self.flow();
        self.set_flow(merge(after_then, after_else));
        let (then_b, els_b, ty) = self.join_arms(then_b, then_ty, els_b, cond.konst, span);
        let konst = cond.konst && then_b.tail.as_ref().is_some_and(|t| t.konst) && els_b.as_ref().is_some_and(|b| b.tail.as_ref().is_some_and(|t| t.konst))
            && then_b.stmts.is_empty() && els_b.as_ref().is_some_and(|b| b.stmts.is_empty());
        let kind = HKind::If { cond: Box::new(cond), then: Box::new(then_b), els: els_b.map(Box::new) };
        self.mk(kind, ty, span, konst)
    }

    /// The arm of a compile-time `if` as a value of the wanted type, seen with what the arm knows of its parameters.
    fn fit_arm(&mut self, arm: (crate::hir::HBlock, Ty), want: Option<&Ty>) -> (crate::hir::HBlock, Ty) {
        let (mut block, ty) = arm;
        match want {
            Some(w) if !matches!(ty, Ty::Never | Ty::Unit) && !ty.is_err() && !w.is_err() && self.fits(&ty, w) => {
                coerce_tail(self, &mut block, w);
                (block, w.clone())
            }
            _ => (block, ty),
        }
    }

    fn else_block(&mut self, e: &ast::Expr, want: Option<&Ty>) -> (crate::hir::HBlock, Ty) {
        match &e.kind {
            ExprKind::Block(b) => self.block(b, want),
            _ => {
                let h = self.expr(e, want);
                let ty = h.ty.clone();
                let span = h.span;
                (crate::hir::HBlock { stmts: vec![], tail: Some(Box::new(h)), span }, ty)
            }
        }
    }

    fn narrowed_block<R>(&mut self, narrow: Vec<(CVarId, DTypeSet)>, f: impl FnOnce(&mut Self) -> R) -> R {
        let n = self.narrowed.len();
        self.narrowed.extend(narrow);
        let r = f(self);
        self.narrowed.truncate(n);
        r
    }

    /// The common type of two arms.
    fn join_arms(
        &mut self,
        mut then: crate::hir::HBlock,
        then_ty: Ty,
        els: Option<(crate::hir::HBlock, Ty)>,
        konst: bool,
        span: Span,
    ) -> (crate::hir::HBlock, Option<crate::hir::HBlock>, Ty) {
        let Some((mut els, els_ty)) = els else {
            if !matches!(then_ty, Ty::Unit | Ty::Never | Ty::Err) {
                let shown = self.show(&then_ty);
                let at = then.tail.as_ref().map_or(span, |t| t.span);
                self.error(codes::BRANCHES, at, format!("this arm has the value `{shown}`, but there is no `else`"), "add `;` if the value is not meant");
            }
            return (then, None, Ty::Unit);
        };
        if then_ty == Ty::Never || then_ty.is_err() {
            return (then, Some(els), els_ty);
        }
        if els_ty == Ty::Never || els_ty.is_err() {
            return (then, Some(els), then_ty);
        }
        if self.fits(&els_ty, &then_ty) {
            coerce_tail(self, &mut els, &then_ty);
            return (then, Some(els), self.resolve_ty(&then_ty));
        }
        if self.fits(&then_ty, &els_ty) {
            coerce_tail(self, &mut then, &els_ty);
            return (then, Some(els), self.resolve_ty(&els_ty));
        }
        let (a, b) = (self.show(&then_ty), self.show(&els_ty));
        let at = |blk: &crate::hir::HBlock| blk.tail.as_ref().map_or(blk.span, |t| t.span);
        let mut d = Diagnostic::error(codes::BRANCHES, at(&els), format!("the arms of this `if` have different types: `{a}` and `{b}`"), format!("this is `{b}`"))
            .label(at(&then), format!("this is `{a}`"));
        if konst {
            self.split = Some(span);
            d = d.note("arms of a compile-time `if` may differ where it initialises a `let`; otherwise give both arms one type");
        }
        self.report(d);
        (then, Some(els), Ty::Err)
    }

    /// `if let v = opt { .. } else { .. }`
    fn if_let(&mut self, n: &ast::Name, x: &ast::Expr, then: &ast::Block, els: Option<&ast::Expr>, want: Option<&Ty>, span: Span) -> HExpr {
        let opt = self.value(x);
        let inner = match &opt.ty {
            Ty::Option(t) => (**t).clone(),
            Ty::Err => Ty::Err,
            other => {
                let shown = self.show(other);
                self.error(codes::TYPE_MISMATCH, opt.span, format!("`if let` asks whether an optional view is there, but this is `{shown}`"), "");
                Ty::Err
            }
        };
        if !opt.ty.is_err() && !matches!(opt.kind, HKind::Local(_)) {
            self.error(codes::TYPE_MISMATCH, opt.span, "`if let` asks a parameter", "this is no parameter");
        }
        let before = self.flow();
        self.push_scope();
        let bind = self.new_local(n, inner, false);
        self.assigned.insert(bind);
        let (then_b, then_ty) = self.block(then, want);
        self.pop_scope();
        let after_then = self.flow();
        self.set_flow(before);
        let els_b = els.map(|e| self.else_block(e, want));
        let after_else = self.flow();
        self.set_flow(merge(after_then, after_else));
        let (then_b, els_b, ty) = self.join_arms(then_b, then_ty, els_b, true, span);
        let kind = HKind::IfLet { opt: Box::new(opt), bind, then: Box::new(then_b), els: els_b.map(Box::new) };
        self.mk(kind, ty, span, false)
    }

    /// A condition: one bool.
    pub fn condition(&mut self, c: &ast::Expr) -> HExpr {
        let h = self.value(c);
        match &h.ty {
            Ty::Tile { elem: Elem::D(d), shape } if self.norm(*d) == DTerm::Known(DType::Bool) => {
                if shape.is_scalar() {
                    return h;
                }
                let text = self.text(h.span);
                let shown = self.show(&h.ty);
                let d = Diagnostic::error(codes::CONDITION, h.span, format!("a condition is one bool, not `{shown}`"), "a tile of bools")
                    .fix("ask whether any element is true", h.span, format!("any({text})"))
                    .fix("ask whether all elements are true", h.span, format!("all({text})"));
                self.fail(d)
            }
            t if t.is_err() => h,
            other => {
                let shown = self.show(other);
                let text = self.text(h.span);
                let mut d = Diagnostic::error(codes::CONDITION, h.span, format!("a condition is a bool, not `{shown}`"), format!("this is `{shown}`"));
                if let Ty::Tile { elem: Elem::D(_), shape } = other
                    && shape.is_scalar()
                {
                    let text = if self.is_postfix(&text) { text } else { format!("({text})") };
                    d = d.fix("compare with 0", h.span, format!("{text} != 0"));
                }
                self.fail(d)
            }
        }
    }

    /// What a compile-time condition says about dtype variables in its two arms.
    fn narrowing(&self, c: &HExpr) -> (Vec<(CVarId, DTypeSet)>, Vec<(CVarId, DTypeSet)>) {
        match &c.kind {
            HKind::Builtin(row, args) => {
                let [HArg::Expr(a), HArg::Expr(b)] = args.as_slice() else { return (vec![], vec![]) };
                let (HKind::DType(x), HKind::DType(y)) = (&a.kind, &b.kind) else { return (vec![], vec![]) };
                let (DTerm::Param(id), Some(other)) = (*x, self.set_of(*y)) else { return (vec![], vec![]) };
                if other.single().is_none() {
                    return (vec![], vec![]);
                }
                let all = self.members(id);
                let (yes, no) = (vec![(id, all.and(other))], vec![(id, all.without(other))]);
                match row.name {
                    "==" => (yes, no),
                    "!=" => (no, yes),
                    _ => (vec![], vec![]),
                }
            }
            HKind::ShortCircuit { or, lhs, rhs } => {
                let ((at, ae), (bt, be)) = (self.narrowing(lhs), self.narrowing(rhs));
                match (or, at.as_slice(), bt.as_slice()) {
                    // `T == f16 || T == bf16`: one of the two; otherwise none of them.
                    (true, [(x, s)], [(y, t)]) if x == y => {
                        let none = ae.iter().chain(&be).fold(self.members(*x), |m, (_, e)| m.and(*e));
                        (vec![(*x, s.or(*t))], vec![(*x, none)])
                    }
                    (true, _, _) => (vec![], ae.into_iter().chain(be).collect()),
                    (false, _, _) => (at.into_iter().chain(bt).collect(), vec![]),
                }
            }
            _ => (vec![], vec![]),
        }
    }

    pub fn flow(&self) -> (BTreeSet<LocalId>, bool) {
        (self.assigned.clone(), self.diverged)
    }

    pub fn set_flow(&mut self, f: (BTreeSet<LocalId>, bool)) {
        (self.assigned, self.diverged) = f;
    }

}

/// The state behind an `if`: what both arms guarantee; an arm that does not come back guarantees everything.
pub(crate) fn merge(a: (BTreeSet<LocalId>, bool), b: (BTreeSet<LocalId>, bool)) -> (BTreeSet<LocalId>, bool) {
    match (a.1, b.1) {
        (true, true) => (a.0.intersection(&b.0).copied().collect(), true),
        (true, false) => b,
        (false, true) => a,
        (false, false) => (a.0.intersection(&b.0).copied().collect(), false),
    }
}

fn coerce_tail(cx: &mut Cx, b: &mut crate::hir::HBlock, want: &Ty) {
    if let Some(t) = b.tail.take() {
        let t = cx.convert(*t, want);
        b.tail = Some(Box::new(t));
    }
}
