//! `for` loops: ranges, loops over lists and `static_range`, and what the body of a loop is.

use tk_ops::{DType, DTypeSet};
use tk_syntax::ast::{self, ExprKind, PatKind};
use tk_syntax::{Diagnostic, Span, codes};

use super::cx::{Cx, LoopCx};
use super::record::Target;
use crate::contract;
use crate::hir::{CKind, HBlock, HExpr, HKind, HPat, HStmtKind, StaticIter};
use crate::types::{DTerm, Elem, Shape, Ty};

impl Cx<'_> {
    pub fn loop_attrs(&mut self, attrs: &[ast::AstAttr]) {
        for a in attrs {
            let name = a.name.text.clone();
            let d = Diagnostic::error(
                codes::UNKNOWN_ATTRIBUTE,
                a.span,
                format!("unknown attribute `@{name}` on a loop"),
                "unknown attribute",
            )
            .note("loops are configured by arguments: `range(0, n, stages = 3, unroll = 2)`");
            self.report(d);
        }
    }

    pub fn loop_body(&mut self, body: &ast::Block) -> (HBlock, Ty) {
        let (b, ty) = self.block(body, None);
        if !matches!(ty, Ty::Unit | Ty::Never | Ty::Err) {
            let shown = self.show(&ty);
            let at = b.tail.as_ref().map_or(b.span, |t| t.span);
            self.error(
                codes::TYPE_MISMATCH,
                at,
                format!("the body of a loop has no value, but this is `{shown}`"),
                "add `;`",
            );
        }
        (b, ty)
    }

    pub fn for_stmt(
        &mut self,
        pat: &ast::Pat,
        iter: &ast::Expr,
        body: &ast::Block,
        attrs: &[ast::AstAttr],
    ) -> HStmtKind {
        self.loop_attrs(attrs);
        if let ExprKind::Array(items) = &iter.kind {
            return self.list_loop(pat, items, iter.span, body);
        }
        if let ExprKind::Call(f, args) = &iter.kind
            && let ExprKind::Path(p) = &f.kind
            && let [n] = p.segments.as_slice()
            && self.lookup(n).is_none()
        {
            if let Some(row) = self.find_row(&n.text).filter(|r| matches!(r.name, "range" | "static_range")) {
                self.p.record.name(n, Target::Row(row));
                self.saw_row_args(row, args);
            }
            match n.text.as_str() {
                "range" => return self.range_loop(pat, args, iter.span, body),
                "static_range" => return self.static_range(pat, args, iter.span, body),
                _ => {}
            }
        }
        let h = self.value(iter);
        if !h.ty.is_err() {
            let shown = self.show(&h.ty);
            let text = self.text(iter.span);
            let d = Diagnostic::error(
                codes::NOT_ITERABLE,
                iter.span,
                format!("a loop runs over `range(..)`, `static_range(..)` or a list, not over `{shown}`"),
                super::this_is(&shown),
            );
            let of_views = matches!(&h.ty, Ty::Tuple(ts) if ts.iter().any(|t| matches!(t, Ty::View { .. })));
            let d = if of_views { d.note(super::advice::VIEWS) } else { d };
            self.report(self.visited(d, &h, &text));
        }
        self.push_scope();
        self.bind_pat(pat, &Ty::Err, true);
        self.loops.push(LoopCx { locals_before: self.locals.len(), is_static: false });
        let before = self.flow();
        self.loop_body(body);
        self.set_flow(before);
        self.loops.pop();
        self.pop_scope();
        HStmtKind::Err
    }

    /// `(end)`, `(start, end)`, `(start, end, step)` as in Python; all of them by name too.
    fn range_args<'e>(
        &mut self,
        args: &'e [ast::Arg],
        span: Span,
        options: &[&'static str],
    ) -> Option<[Option<&'e ast::Expr>; 3]> {
        let positional: Vec<&ast::Expr> =
            args.iter().filter(|a| a.name.is_none()).map(|a| &a.value).collect();
        let mut out = match positional.as_slice() {
            [] => [None, None, None],
            [end] => [None, Some(*end), None],
            [start, end] => [Some(*start), Some(*end), None],
            [start, end, step] => [Some(*start), Some(*end), Some(*step)],
            more => {
                let n = more.len();
                self.error(
                    codes::ARGUMENT_COUNT,
                    span,
                    format!("a range takes start, end and step, but {n} arguments are given"),
                    format!("{n} given"),
                );
                return None;
            }
        };
        for a in args {
            let Some(n) = &a.name else { continue };
            let slot = match n.text.as_str() {
                "start" => 0,
                "end" => 1,
                "step" => 2,
                other if options.contains(&other) => continue,
                other => {
                    let mut d = Diagnostic::error(
                        codes::ARGUMENT_NAME,
                        n.span,
                        format!("a range has no parameter `{other}`"),
                        "unknown parameter",
                    );
                    let all: Vec<&str> = ["start", "end", "step"].iter().chain(options).copied().collect();
                    let ours = Self::foreign_parameter(other, &all);
                    if let Some(s) = ours.or_else(|| super::names::closest(other, all.iter().copied())) {
                        d = d.use_instead(n.span, s);
                    }
                    self.report(d);
                    return None;
                }
            };
            if let Some(s) = out.get_mut(slot) {
                *s = Some(&a.value);
            }
        }
        if out[1].is_none() {
            self.error(codes::ARGUMENT_COUNT, span, "a range needs an end", "end missing");
            return None;
        }
        Some(out)
    }

    fn range_loop(&mut self, pat: &ast::Pat, args: &[ast::Arg], span: Span, body: &ast::Block) -> HStmtKind {
        const OPTIONS: [&str; 5] = ["stages", "unroll", "flatten", "specialize", "turns"];
        let bounds = self.range_args(args, span, &OPTIONS);
        let mut ok = bounds.is_some();
        let [start, end, step] = bounds.unwrap_or_default();
        let mut bound = |cx: &mut Self, e: Option<&ast::Expr>, default: i128| match e {
            Some(e) => {
                let h = cx.value(e);
                ok &= !h.ty.is_err() && cx.need_int(&h);
                h
            }
            None => cx.lit(HKind::Int(default), super::cx::Lit::Int, span),
        };
        let mut lo = bound(self, start, 0);
        let mut hi = bound(self, end, 0);
        let mut st = bound(self, step, 1);
        let common = if ok { self.join_elems("a range", &mut [&mut lo, &mut hi, &mut st]) } else { None };
        // The variable counts: a use as a float does not make it one.
        if let Some(d) = common {
            self.adapt(d, DTerm::Known(DType::I32));
        }
        let mut options = vec![];
        for a in args {
            let Some(n) = &a.name else { continue };
            if let Some(name) = OPTIONS.iter().find(|o| **o == n.text) {
                let h = self.value(&a.value);
                let want = if matches!(*name, "flatten" | "specialize") { Ty::bool() } else { Ty::i32() };
                let h = self.coerce(h, &want, &format!("`{name}`"));
                if let HKind::Int(v) = h.kind
                    && let Some(d) = contract::below_least(codes::CONST_EVAL, name, v, h.span)
                {
                    self.report(d);
                } else if self.need_const(&h) {
                    options.push((*name, h));
                }
            }
        }
        let ty = common.map_or(Ty::Err, |d| Ty::Tile { elem: Elem::D(d), shape: Shape::scalar() });
        self.push_scope();
        let p = self.bind_pat(pat, &ty, true);
        let var = match p {
            HPat::Local(id) => id,
            HPat::Ignore | HPat::Tuple(_) => {
                let name = ast::Name { text: "_".into(), span: pat.span };
                self.new_local(&name, ty.clone(), false)
            }
        };
        let before = self.flow();
        self.loops.push(LoopCx { locals_before: self.locals.len(), is_static: false });
        let (body, _) = self.loop_body(body);
        self.loops.pop();
        self.set_flow(before);
        self.pop_scope();
        if common.is_none() {
            return HStmtKind::Err;
        }
        HStmtKind::For { var, lo, hi, step: st, options, body }
    }

    fn static_range(
        &mut self,
        pat: &ast::Pat,
        args: &[ast::Arg],
        span: Span,
        body: &ast::Block,
    ) -> HStmtKind {
        let bounds = self.range_args(args, span, &[]);
        let [start, end, step] = bounds.unwrap_or_default();
        let part = |cx: &mut Self, e: Option<&ast::Expr>, default: i128| match e {
            Some(e) => cx.const_int(e),
            None => Some(cx.lit(HKind::Int(default), super::cx::Lit::Int, span)),
        };
        let parts = (part(self, start, 0), part(self, end, 0), part(self, step, 1));
        let iter = match parts {
            (Some(a), Some(b), Some(c)) => Some(StaticIter::Range(a, b, c)),
            _ => None,
        };
        self.static_loop(pat, CKind::Int(DType::I32), iter, body)
    }

    fn list_loop(&mut self, pat: &ast::Pat, items: &[ast::Expr], span: Span, body: &ast::Block) -> HStmtKind {
        let mut es: Vec<HExpr> = items.iter().map(|e| self.value(e)).collect();
        let mut ok = !es.iter().any(|e| e.ty.is_err());
        for e in &es {
            ok = ok && self.need_const(e);
        }
        let kind = if !ok {
            CKind::Err
        } else if es.iter().all(|e| e.ty == Ty::DType) {
            let sets = es.iter().map(|e| match &e.kind {
                HKind::DType(d) => self.set_of(*d).unwrap_or(DTypeSet::EMPTY),
                _ => DTypeSet::ANY,
            });
            CKind::DType(sets.fold(DTypeSet::EMPTY, DTypeSet::or))
        } else if let Some(odd) = es.iter().find(|e| !is_scalar(&e.ty)) {
            let what = "a loop over a list needs numbers, bools or element types, all of one kind";
            self.error(codes::NOT_ITERABLE, odd.span, what, "");
            CKind::Err
        } else {
            let mut refs: Vec<&mut HExpr> = es.iter_mut().collect();
            match self.join_elems("a list", &mut refs).map(|d| (self.literal(d), d)) {
                Some((Some(super::cx::Lit::Int | super::cx::Lit::Whole), d)) => {
                    self.adapt(d, DTerm::Known(DType::I32));
                    CKind::Int(DType::I32)
                }
                Some((Some(super::cx::Lit::Float), d)) => {
                    self.adapt(d, DTerm::Known(DType::F32));
                    CKind::Float(DType::F32)
                }
                Some((None, DTerm::Known(DType::Bool))) => CKind::Bool,
                Some((None, DTerm::Known(d))) if d.is_int() => CKind::Int(d),
                Some((None, DTerm::Known(d))) if d.is_float() => CKind::Float(d),
                Some(_) => {
                    self.error(
                        codes::NOT_ITERABLE,
                        span,
                        "a loop over a list needs numbers, bools or element types",
                        "",
                    );
                    CKind::Err
                }
                None => CKind::Err,
            }
        };
        let iter = (kind != CKind::Err).then_some(StaticIter::List(es));
        self.static_loop(pat, kind, iter, body)
    }

    fn static_loop(
        &mut self,
        pat: &ast::Pat,
        kind: CKind,
        iter: Option<StaticIter>,
        body: &ast::Block,
    ) -> HStmtKind {
        self.push_scope();
        let var = match &pat.kind {
            PatKind::Name { name, .. } => self.new_cvar(&name.text, kind, name.span),
            PatKind::Tuple(_) | PatKind::Err => {
                if matches!(pat.kind, PatKind::Tuple(_)) {
                    self.error(
                        codes::PATTERN,
                        pat.span,
                        "a compile-time loop has a single variable",
                        "more than one name",
                    );
                }
                self.new_cvar("_", CKind::Err, pat.span)
            }
        };
        let before = self.flow();
        self.loops.push(LoopCx { locals_before: self.locals.len(), is_static: true });
        let (body, _) = self.loop_body(body);
        self.loops.pop();
        self.set_flow(before);
        self.pop_scope();
        match iter {
            Some(iter) => HStmtKind::StaticFor { var, iter, body },
            None => HStmtKind::Err,
        }
    }
}

/// A number or bool.
fn is_scalar(ty: &Ty) -> bool {
    matches!(ty, Ty::Tile { elem: Elem::D(_), shape } if shape.is_scalar())
}
