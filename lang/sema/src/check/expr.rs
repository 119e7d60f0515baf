//! Expressions: literals, names, casts, conditionals, blocks, and and the flow through conditionals.

use tk_ops::{DType, DTypeSet};
use tk_syntax::ast::{self, ExprKind};
use tk_syntax::slices::STEPS;
use tk_syntax::{Diagnostic, FileId, Span, codes};

use super::cx::{Cx, Flow, Lit, Scope, Sym};
use super::names::{closest, is_slip};
use super::{Def, files};
use crate::hir::{CKind, CVarId, HExpr, HKind, LocalId};
use crate::import;
use crate::types::{DTerm, Elem, Shape, Ty};

/// The number of names compared with unknown ones before suggestions end: a file of a million names with a million
/// mistakes would take days otherwise. About 50 ns each, so 0.1 s in the worst case.
const MAX_COMPARED: usize = 2_000_000;

/// Functions of namespaces of C++: the namespace, the function unless it is any, and what is said.
const NAMESPACES: &[(&str, Option<&str>, &str)] = &[
    ("cg", None, "`grid_barrier()` waits for all programs of a kernel with `launch(cooperative = true)`"),
    ("std", Some("min"), "the smaller of two values is `minimum(a, b)`"),
    ("std", Some("max"), "the larger of two values is `maximum(a, b)`"),
];

impl Cx<'_> {
    /// An operand; `want` is what its place would like, for lambdas, functions and `None`. Nothing may leave from
    /// inside of it, since the surrounding expression would be half evaluated.
    pub fn expr(&mut self, e: &ast::Expr, want: Option<&Ty>) -> HExpr {
        let outer = self.operand.replace(self.loops.len());
        let h = self.open_expr(e, want);
        self.operand = outer;
        h
    }

    /// An expression that is a statement, or the value of one or of a block.
    pub fn open_expr(&mut self, e: &ast::Expr, want: Option<&Ty>) -> HExpr {
        let h = self.any_expr(e, want);
        self.saw_type(e.span, &h.ty);
        h
    }

    fn any_expr(&mut self, e: &ast::Expr, want: Option<&Ty>) -> HExpr {
        let span = e.span;
        match &e.kind {
            ExprKind::Err => HExpr::err(span),
            ExprKind::Int(Some(n)) => match i128::try_from(*n) {
                Ok(n) => self.lit(HKind::Int(n), Lit::Int, span),
                Err(_) => self.error(codes::LITERAL_RANGE, span, "this number does not fit in any type", ""),
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
            ExprKind::Array(_) if want == Some(&Ty::ShapeTy) => self.shape_expr(e),
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
                if self.leaves("return", span) {
                    x.iter().for_each(|e| drop(self.value(e)));
                    self.diverged = true;
                    return HExpr::err(span);
                }
                let value = self.return_value(x.as_deref(), span);
                self.diverged = true;
                self.mk(HKind::Return(value.map(Box::new)), Ty::Never, span, false)
            }
        }
    }

    fn type_value(&mut self, t: &ast::TypeExpr, span: Span) -> HExpr {
        if let Some(h) = self.pointed_value(t) {
            return h;
        }
        if !self.ty(t).is_err() {
            self.error(
                codes::NOT_A_VALUE,
                span,
                "this type is not a value",
                "only scalar element types are compile-time values",
            );
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
            _ => self.error(
                codes::NOT_A_VALUE,
                span,
                "`None` is not a value here",
                "it means an absent optional view, or is used in index brackets",
            ),
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
        let small = self.few_parts(es.iter().map(|e| &e.ty), span);
        let ty = if !small || es.iter().any(|e| e.ty.is_err()) {
            Ty::Err
        } else {
            Ty::Tuple(es.iter().map(|e| e.ty.clone()).collect())
        };
        let konst = es.iter().all(|e| e.konst);
        self.mk(HKind::Tuple(es), ty, span, konst)
    }

    /// A name as a value.
    fn path(&mut self, p: &ast::Path, want: Option<&Ty>, span: Span) -> HExpr {
        if let [n] = p.segments.as_slice() {
            if n.text.is_empty() {
                return HExpr::err(span);
            }
            match self.lookup(n) {
                Some(Sym::Local(id)) => return self.local_use(id, span),
                Some(Sym::CVar(id)) => return self.cvar_use(id, span),
                Some(Sym::Const(id)) => return self.const_use(id, span),
                Some(Sym::Lambda(i)) => return self.named_value(i, want, span),
                None => {}
            }
            if self.lookup_item(n).is_none() {
                return self.builtin_name(n, want, span);
            }
        }
        match self.resolve_path(p) {
            Some(Def::Const(id)) => self.const_use(id, span),
            Some(Def::Fn(id)) => self.fn_value(id, want, span),
            Some(Def::Struct(id)) => {
                let name = self.hir().strukt(id).name.clone();
                self.error(
                    codes::NOT_A_VALUE,
                    span,
                    format!("`{name}` is a struct, not a value"),
                    format!("build one with `{name}(..)`"),
                )
            }
            Some(Def::Module(_)) => {
                let text = self.text(span);
                self.error(
                    codes::NOT_A_VALUE,
                    span,
                    format!("`{text}` is a file, not a value"),
                    format!("name an item of it: `{text}::..`"),
                )
            }
            None => HExpr::err(span),
        }
    }

    fn builtin_name(&mut self, n: &ast::Name, want: Option<&Ty>, span: Span) -> HExpr {
        match n.text.as_str() {
            "inf" => return self.lit(HKind::Float(f64::INFINITY), Lit::Float, span),
            "nan" => return self.lit(HKind::Float(f64::NAN), Lit::Float, span),
            "target" | "device" => {
                return self.error(
                    codes::NOT_A_VALUE,
                    span,
                    format!("`{}` is not a value by itself", n.text),
                    "name a property of it",
                );
            }
            _ => {}
        }
        if let Some(d) = DType::parse(&n.text) {
            return self.mk(HKind::DType(DTerm::Known(d)), Ty::DType, span, true);
        }
        if self.find_row(&n.text).is_some() {
            return self.builtin_value(n, want, span);
        }
        self.unknown_name(n, None)
    }

    /// Returns true if this is the name of an import that was not found, which has been reported.
    pub fn is_missing(&self, name: &str) -> bool {
        self.p.files.get(self.file).is_some_and(|f| f.missing.contains(name))
    }

    /// Adds the fix that imports a path into a file.
    fn importing(&self, d: Diagnostic, file: FileId, path: &str) -> Diagnostic {
        let tree = self.p.files.iter().find(|f| f.id == file);
        let (Some(tree), Some(source)) = (tree, self.p.sources.get(file)) else { return d };
        let (at, text) = import::added(&tree.ast, &source.text, path);
        d.fix(format!("import it: `use {path};`"), Span::new(file, at, at), text)
    }

    /// Reports an unknown name with the nearest known one; of a name that is `called`, the nearest that can be.
    pub fn unknown_name(&mut self, n: &ast::Name, call: Option<(&[ast::Arg], Span)>) -> HExpr {
        if self.holes || self.is_missing(&n.text) || !self.unknown.insert(n.text.clone()) {
            if let Some(f) = self.func {
                self.p.func_mut(f).broken = true;
            }
            return HExpr::err(n.span);
        }
        let slips = tk_ops::rows::functions().map(|r| r.name).filter(|name| is_slip(&n.text, name));
        let builtins = slips.chain(DType::ALL.map(DType::name));
        let near = self.nearest_of(&n.text, &[], &builtins.collect::<Vec<_>>(), call.is_some());
        let mut d = Diagnostic::error(
            codes::UNKNOWN_NAME,
            n.span,
            format!("cannot find `{}`", n.text),
            "unknown name",
        );
        if let Some(ended) = self.declared_in_block(d.clone(), &n.text) {
            d = ended;
        } else if let Some(moved) = call.and_then(|(_, at)| self.clause_in_body(d.clone(), &n.text, at)) {
            d = moved;
        } else if let Some(hint) = self.foreign_hint(d.clone(), &n.text, n.span) {
            d = hint;
        } else if let Some(file) = files::of_std(&n.text) {
            // The library has just this name.
            d = self.importing(d, n.span.file, &format!("{}::{}", files::std_path(file), n.text));
        } else if let Some(s) = near {
            d = d.use_instead(n.span, s);
        } else {
            d = self.declared_in_brackets(d, n);
        }
        self.fail(match call {
            Some((args, span)) => self.foreign_call(d, &n.text, args, span),
            None => d,
        })
    }

    /// Returns true unless the name is that of a number or the like.
    pub(super) fn can_be_called(&self, name: &str) -> bool {
        let file = self.p.files.get(self.file).and_then(|f| f.names.get(name));
        match (self.meaning(name), file) {
            (Some(Sym::Lambda(_)), _) => true,
            (Some(Sym::CVar(id)), _) => matches!(self.hir().cvar(id).kind, CKind::Fn(..)),
            (Some(Sym::Local(_) | Sym::Const(_)), _) => false,
            (None, Some(def)) => matches!(def.0, Def::Fn(_) | Def::Struct(_)),
            (None, None) => DType::parse(name).is_none(),
        }
    }

    /// The nearest to a misspelt name among `before`, the names in the body and the file, nearest scope first, and
    /// `after`.
    pub fn nearest(&mut self, name: &str, before: &[&str], after: &[&str]) -> Option<String> {
        self.nearest_of(name, before, after, false)
    }

    fn nearest_of(&mut self, name: &str, before: &[&str], after: &[&str], called: bool) -> Option<String> {
        let file = self.p.files.get(self.file).map(|f| &f.names);
        let count = self.scopes.iter().map(Scope::len).sum::<usize>() + file.map_or(0, |f| f.len());
        self.p.compared += count;
        if self.p.compared > MAX_COMPARED + count {
            return None;
        }
        let file = self.p.files.get(self.file).map(|f| &f.names);
        let own = self.scopes.iter().rev().flat_map(Scope::names).map(String::as_str);
        let file = file.into_iter().flat_map(|f| f.keys().map(String::as_str));
        let all = before.iter().copied().chain(own).chain(file).chain(after.iter().copied());
        closest(name, all.filter(|s| !called || self.can_be_called(s))).map(str::to_string)
    }

    /// The item that a path names; reports when there is none.
    pub fn resolve_path(&mut self, p: &ast::Path) -> Option<Def> {
        match p.segments.as_slice() {
            [n] => {
                let def = self.lookup_item(n);
                if def.is_none() && !n.text.is_empty() {
                    self.unknown_name(n, None);
                }
                def
            }
            [m, n] => match self.lookup_item(m) {
                Some(Def::Module(i)) => {
                    let before = self.p.notes.diags.len();
                    let def = files::member(self.p, self.file, i, n);
                    if self.p.notes.diags.len() > before
                        && let Some(f) = self.func
                    {
                        self.p.func_mut(f).broken = true;
                    }
                    def
                }
                Some(_) => self.no_file(m),
                None if self.lookup(m).is_some() => self.no_file(m),
                None if self.is_missing(&m.text) => None,
                None => {
                    let mut d = Diagnostic::error(
                        codes::UNKNOWN_NAME,
                        m.span,
                        format!("no file `{}` is imported", m.text),
                        "not imported",
                    );
                    let own = files::std_files().find(|f| f.0.rsplit('/').next() == Some(m.text.as_str()));
                    if let Some((file, _)) = own {
                        d = self.importing(d, m.span.file, &files::std_path(file));
                    }
                    let of_cpp =
                        NAMESPACES.iter().find(|(s, f, _)| *s == m.text && f.is_none_or(|f| f == n.text));
                    self.report(of_cpp.into_iter().fold(d, |d, (_, _, sentence)| d.note(*sentence)));
                    None
                }
            },
            _ => {
                self.error(codes::UNKNOWN_NAME, p.span, "a path consists of a file and an item", "");
                None
            }
        }
    }

    /// Reports `::` after a value, which may be meant as a slice with a step.
    fn no_file(&mut self, m: &ast::Name) -> Option<Def> {
        let message = format!("`{}` is not a file, so nothing can follow `::`", m.text);
        let d = Diagnostic::error(codes::NOT_A_VALUE, m.span, message, "not a file");
        let is_index = self.is_in_brackets(m.span);
        self.report(if is_index { d.note("slices have no step").note(STEPS) } else { d });
        None
    }

    fn local_use(&mut self, id: LocalId, span: Span) -> HExpr {
        let (name, at, ty) = {
            let l = self.local(id);
            (l.name.clone(), l.span, l.ty.clone())
        };
        if self.lambda_depth > id.0 as usize && !self.captures(id) {
            return self.not_captured(id, span);
        }
        if self.unassigned.contains(&id) && !self.diverged {
            let d = Diagnostic::error(
                codes::UNASSIGNED,
                span,
                format!("`{name}` may be used before it is assigned"),
                "used here",
            )
            .label(at, "declared here without a value");
            self.unassigned.remove(&id);
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
    fn cast(&mut self, x: &ast::Expr, t: &ast::TypeExpr, span: Span) -> HExpr {
        let h = self.value(x);
        let to = self.ty(t);
        if h.ty.is_err() || to.is_err() {
            return HExpr::err(span);
        }
        let (Ty::Tile { elem: from, shape }, Ty::Tile { elem: into, shape: rank0 }) =
            (h.ty.clone(), to.clone())
        else {
            return self.bad_cast(&h, &to, span);
        };
        if !rank0.is_scalar() {
            return self.bad_cast(&h, &to, span);
        }
        let ok = match (&from, &into) {
            (Elem::D(f), Elem::D(t)) => return self.scalar_cast(h.clone(), *f, *t, shape, span),
            (Elem::Ptr { .. }, Elem::Ptr { .. }) => true,
            (Elem::D(_), Elem::Ptr { .. })
            | (Elem::Ptr { .. }, Elem::D(_))
            | (Elem::Err, _)
            | (_, Elem::Err) => false,
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
            let d = Diagnostic::error(
                codes::BAD_CAST,
                span,
                "cannot cast to `bool`",
                format!("from `{}`", self.show_elem(&Elem::D(from))),
            )
            .fix("compare with 0", span, format!("{text} != 0"));
            return self.fail(d);
        }
        if to_set.has(DType::Bool) {
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
        if !h.konst {
            return;
        }
        match self.literal(from) {
            Some(Lit::Float) if to_set.within(DTypeSet::FLOAT) => {
                self.adapt(from, to);
            }
            Some(Lit::Int) if to_set.within(DTypeSet::NUMBER) && to_set.iter().all(fits) => {
                self.adapt(from, to);
            }
            Some(Lit::Whole) if to_set.within(DTypeSet::INT) && to_set.iter().all(fits) => {
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
        let d = Diagnostic::error(codes::BAD_CAST, span, format!("`{a}` cannot be cast to `{b}`"), "");
        let d = match (&h.ty, to) {
            (Ty::View { .. }, _) => self.read_first(d, h),
            (_, Ty::Tile { elem: Elem::Ptr { .. }, .. }) => self.as_addresses(d, h, &b),
            (_, _) => d,
        };
        self.fail(d)
    }

    pub fn flow(&self) -> Flow {
        (self.unassigned.clone(), self.diverged)
    }

    pub fn set_flow(&mut self, f: Flow) {
        (self.unassigned, self.diverged) = f;
    }
}
