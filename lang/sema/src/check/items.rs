//! Items: signatures of structs, functions and kernels, then their bodies and constants.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tk_ops::{DType, DTypeSet};
use tk_syntax::ast;
use tk_syntax::{Diagnostic, Span, codes};

use super::cx::Cx;
use super::{Body, Program, Sig, SigAst, Slot};
use crate::Loader;
use crate::hir::{CKind, CVarId, ConstId, FnId, HExpr, HKind, HParam, HStmtKind, LocalId, StructId};
use crate::types::{DTerm, Ty};

/// Reads the signatures of everything, so that bodies may refer to each other in any order.
pub(super) fn signatures(p: &mut Program) {
    for i in 0..p.structs.len() {
        struct_params(p, StructId(i as u32));
    }
    for i in 0..p.structs.len() {
        struct_defaults(p, StructId(i as u32));
    }
    for i in 0..p.structs.len() {
        struct_fields(p, StructId(i as u32));
    }
    for i in 0..p.structs.len() {
        struct_size(p, StructId(i as u32));
    }
    for i in 0..p.sigs.len() {
        ensure_signature(p, FnId(i as u32));
    }
    p.declared = p.take_notes();
}

/// Reads the signature and the defaults of a function that has not been read yet; a compile-time call in the type of
/// another item may need it before its turn. Gives whether there is a signature: not while it is being read.
pub(super) fn ensure_signature(p: &mut Program, id: FnId) -> bool {
    if p.signatures_open < MAX_OPEN_SIGNATURES && p.signatures_begun.insert(id) {
        p.signatures_open += 1;
        fn_signature(p, id);
        p.signatures_done.insert(id);
        fn_defaults(p, id);
        p.signatures_open -= 1;
    }
    p.signatures_done.contains(&id)
}

/// Checks constants, bodies and exports.
pub(super) fn bodies(p: &mut Program, loader: &dyn Loader) {
    for i in 0..p.hir.consts.len() {
        let mut cx = Cx::new(p, 0, None);
        cx.force_const(ConstId(i as u32));
    }
    for i in 0..p.sigs.len() {
        loader.checkpoint();
        ensure_body(p, FnId(i as u32));
    }
    exports(p);
}

/// Checks the exports.
pub(super) fn exports(p: &mut Program) {
    p.hir.exports.clear();
    let before = p.take_notes();
    for (file, e) in p.exports.clone() {
        super::exports::export(p, file, &e);
    }
    p.exported = std::mem::replace(&mut p.notes, before);
}

fn struct_params(p: &mut Program, id: StructId) {
    let Some((file, s)) = p.structs.get(id.0 as usize).cloned() else { return };
    let mut cx = Cx::new(p, file, None);
    let cparams = cx.cparams(&s.cparams);
    cx.p.hir.structs[id.0 as usize].cparams = cparams;
}

/// Defaults of the parameters of structs, which the types of fields and signatures already use.
fn struct_defaults(p: &mut Program, id: StructId) {
    let Some((file, s)) = p.structs.get(id.0 as usize).cloned() else { return };
    let mut cx = Cx::new(p, file, None);
    cx.rebind(&cx.hir().strukt(id).cparams.clone());
    cx.cparam_defaults(&s.cparams);
    cx.remember();
}

fn struct_fields(p: &mut Program, id: StructId) {
    let Some((file, s)) = p.structs.get(id.0 as usize).cloned() else { return };
    let mut cx = Cx::new(p, file, None);
    cx.rebind(&cx.hir().strukt(id).cparams.clone());
    let mut fields: Vec<(String, Ty, tk_syntax::Span)> = vec![];
    let mut seen: HashMap<&str, tk_syntax::Span> = HashMap::new();
    for f in &s.fields {
        if let Some(before) = seen.get(f.name.text.as_str()) {
            let d = Diagnostic::error(
                codes::DUPLICATE,
                f.name.span,
                format!("the field `{}` is defined twice", f.name.text),
                "second definition",
            )
            .label(*before, "first definition");
            cx.report(d);
            continue;
        }
        if !f.name.text.is_empty() {
            seen.insert(&f.name.text, f.name.span);
        }
        let ty = f.ty.as_ref().map_or(Ty::Err, |t| cx.ty(t));
        if mentions(cx.hir(), &ty, id, &mut HashSet::new()) {
            let name = s.name.text.clone();
            cx.error(codes::RECURSION, f.name.span, format!("`{name}` contains itself"), "recursive field");
            fields.push((f.name.text.clone(), Ty::Err, f.name.span));
            continue;
        }
        fields.push((f.name.text.clone(), ty, f.name.span));
    }
    cx.p.hir.structs[id.0 as usize].fields = fields;
}

/// Refuses a struct of structs of structs that holds too much, when the fields of all are known.
fn struct_size(p: &mut Program, id: StructId) {
    let Some((file, s)) = p.structs.get(id.0 as usize).cloned() else { return };
    let mut cx = Cx::new(p, file, None);
    let fields = cx.hir().strukt(id).fields.clone();
    if !cx.few_parts(fields.iter().map(|f| &f.1), s.name.span) {
        cx.p.hir.structs[id.0 as usize].fields.iter_mut().for_each(|f| f.1 = Ty::Err);
    }
}

/// Returns true if a struct is somewhere in a type. Every other struct is visited once, and no more of them than a
/// program has: a circle that is longer is found by its size.
fn mentions(hir: &crate::hir::Hir, t: &Ty, inner: StructId, seen: &mut HashSet<StructId>) -> bool {
    match t {
        Ty::Struct(id, _) if *id == inner => true,
        Ty::Struct(id, _) => {
            seen.len() < 1000
                && seen.insert(*id)
                && hir.strukt(*id).fields.iter().any(|f| mentions(hir, &f.1, inner, seen))
        }
        Ty::Tuple(ts) => ts.iter().any(|t| mentions(hir, t, inner, seen)),
        _ => false,
    }
}

impl Cx<'_> {
    /// Makes compile-time parameters visible again under their names.
    pub fn rebind(&mut self, ids: &[CVarId]) {
        for id in ids {
            let name = self.hir().cvar(*id).name.clone();
            self.bind(&name, super::cx::Sym::CVar(*id));
        }
    }

    /// Declares compile-time parameters; defaults are checked by [`Cx::cparam_defaults`].
    pub fn cparams(&mut self, list: &[ast::CParam]) -> Vec<CVarId> {
        let mut ids: Vec<CVarId> = vec![];
        let mut seen: HashMap<&str, tk_syntax::Span> = HashMap::new();
        for c in list {
            if let Some(at) = seen.get(c.name.text.as_str()) {
                let d = Diagnostic::error(
                    codes::DUPLICATE,
                    c.name.span,
                    format!("the parameter `{}` is defined twice", c.name.text),
                    "second definition",
                )
                .label(*at, "first definition");
                self.report(d);
                continue;
            }
            if !c.name.text.is_empty() {
                seen.insert(&c.name.text, c.name.span);
            }
            let kind = match self.number_with_class(c) {
                Some(number) => number,
                None => self.bound(&c.bound, c.span),
            };
            ids.push(self.new_cvar(&c.name.text, kind, c.name.span));
        }
        ids
    }

    /// Reports `BLOCK: int = 1024`: a class of element types for a number. The number keeps its meaning.
    fn number_with_class(&mut self, c: &ast::CParam) -> Option<CKind> {
        let [bound] = c.bound.as_slice() else { return None };
        let class = self.text(bound.span);
        let of = DTypeSet::class(&class)?;
        let default = c.default.as_ref().filter(|e| is_number(e))?;
        let (dtype, kind) = match of.within(DTypeSet::FLOAT) {
            true => (DType::F32, CKind::Float(DType::F32)),
            false => (DType::I32, CKind::Int(DType::I32)),
        };
        let message = format!("`{class}` is a class of element types, and `{}` is a number", c.name.text);
        let d = Diagnostic::error(codes::TYPE_MISMATCH, bound.span, message, "not the type of a number");
        let d = d.label(default.span, "the default is a number");
        self.report(d.fix(format!("use `{dtype}`"), bound.span, dtype.name()));
        Some(kind)
    }

    /// Says of a parameter `B: int`, which stands for an element type, how a number is declared.
    pub(super) fn number_in_brackets(&self, d: Diagnostic, h: &HExpr) -> Diagnostic {
        let (HKind::CVar(id) | HKind::DType(DTerm::Param(id))) = &h.kind else { return d };
        let v = self.hir().cvar(*id);
        d.label(v.span, "a parameter for an element type")
            .note(format!("for a number it is `{}: i32`", v.name))
    }

    /// Checks defaults: earlier parameters are visible, in kernels run-time parameters too.
    pub fn cparam_defaults(&mut self, list: &[ast::CParam]) {
        for (i, c) in list.iter().enumerate() {
            let (Some(e), Some(id)) = (&c.default, self.cvar_named(&c.name.text)) else { continue };
            self.cvar_default(id, e);
            self.mark_default(id, e);
            self.only_earlier(id, list.get(i..).unwrap_or_default());
        }
    }

    /// Reports a default that uses its own parameter or one after it: those have no value yet.
    fn only_earlier(&mut self, id: CVarId, from_here: &[ast::CParam]) {
        let later: Vec<CVarId> = from_here.iter().filter_map(|c| self.cvar_named(&c.name.text)).collect();
        let mut todo: Vec<&HExpr> = self.hir().cvar(id).default.iter().collect();
        let mut found = None;
        while let Some(h) = todo.pop() {
            if let HKind::CVar(used) = &h.kind
                && later.contains(used)
            {
                found = Some((*used, h.span));
            }
            crate::visit::look(h, &mut |inner| todo.push(inner));
        }
        let Some((used, span)) = found else { return };
        let name = self.hir().cvar(used).name.clone();
        let message = format!("a default can only use earlier parameters, and `{name}` has no value yet");
        self.error(codes::UNKNOWN_NAME, span, message, "a later parameter");
        self.p.hir.cvars[id.0 as usize].default = Some(HExpr::err(span));
    }

    /// A default that is wrong is a hole, so that it is not missed.
    fn mark_default(&mut self, id: CVarId, e: &ast::Expr) {
        if let Some(c) = self.p.hir.cvars.get_mut(id.0 as usize)
            && c.default.is_none()
        {
            c.default = Some(HExpr::err(e.span));
        }
    }

    fn cvar_default(&mut self, id: CVarId, e: &ast::Expr) {
        let kind = self.hir().cvar(id).kind.clone();
        let want = match &kind {
            CKind::Int(d) | CKind::Float(d) => Ty::scalar(*d),
            CKind::Bool => Ty::bool(),
            CKind::DType(_) => Ty::DType,
            CKind::Shape => Ty::ShapeTy,
            CKind::Fn(ps, r) => Ty::Fn(ps.clone(), r.clone()),
            CKind::Err => return,
        };
        let h = if kind == CKind::Shape {
            self.shape_expr(e)
        } else {
            let h = self.expr(e, Some(&want));
            self.settled(h)
        };
        let h = self.need_value(h);
        // Extents are i32 and i64; a derived default takes either.
        let mut h = if matches!(kind, CKind::Int(DType::I32)) && self.fits(&h.ty, &Ty::scalar(DType::I64)) {
            h
        } else {
            self.coerce(h, &want, "the default")
        };
        if h.ty.is_err() {
            return;
        }
        if !h.konst && !self.in_clause && !self.need_const(&h) {
            return;
        }
        if let crate::hir::HKind::DType(d) = &h.kind {
            let d = *d;
            if !self.in_bound(id, d, e.span) {
                return;
            }
        }
        self.zonk_expr(&mut h);
        self.p.hir.cvars[id.0 as usize].default = Some(h);
    }
}

/// Returns true for an expression that can only be a number.
fn is_number(e: &ast::Expr) -> bool {
    use ast::ExprKind;
    match &e.kind {
        ExprKind::Unary(_, x) => is_number(x),
        ExprKind::Int(_) | ExprKind::Float(..) | ExprKind::Call(..) | ExprKind::Binary(..) => true,
        _ => false,
    }
}

fn fn_signature(p: &mut Program, id: FnId) {
    let Some(sig) = p.sigs.get(id.0 as usize).cloned() else { return };
    let SigAst::Fn(f) = &sig.ast else { return };
    let mut cx = Cx::new(p, sig.file, Some(id));
    let mut cparams = vec![];
    if let Some(owner) = sig.owner {
        cparams = cx.hir().strukt(owner).cparams.clone();
        cx.rebind(&cparams);
    }
    cparams.extend(cx.cparams(&f.cparams));
    let (mut params, mut slots): (Vec<HParam>, Vec<(String, Slot)>) = (vec![], vec![]);
    let mut seen: HashSet<&str> = HashSet::new();
    for (i, prm) in f.params.iter().enumerate() {
        if !seen.insert(&prm.name.text) && !prm.name.text.is_empty() {
            cx.error(
                codes::DUPLICATE,
                prm.name.span,
                format!("the parameter `{}` is defined twice", prm.name.text),
                "second definition",
            );
            continue;
        }
        if prm.konst {
            let kind = match &prm.ty {
                Some(t) => cx.bound(std::slice::from_ref(t), prm.span),
                None => CKind::Err,
            };
            let c = cx.new_cvar(&prm.name.text, kind, prm.name.span);
            cparams.push(c);
            slots.push((prm.name.text.clone(), Slot::Const(c)));
            continue;
        }
        let ty = param_type(&mut cx, &sig, prm, i, f.kernel);
        let local = LocalId(params.len() as u32);
        slots.push((prm.name.text.clone(), Slot::Run(params.len())));
        params.push(HParam { name: prm.name.text.clone(), local, ty, default: None, span: prm.name.span });
    }
    let ret = match &f.ret {
        Some(t) => cx.ty(t),
        None => Ty::Unit,
    };
    if f.kernel
        && let Some(t) = &f.ret
    {
        cx.error(codes::RETURN_TYPE, t.span, "a kernel cannot return a value", "results go to memory");
    }
    if sig.owner.is_some() && !f.kernel && f.params.first().is_none_or(|p| p.name.text != "self") {
        let message = format!("`{}` is called on a value, so its first parameter is `self`", f.name.text);
        cx.error(codes::NOT_CALLABLE, f.name.span, message, "there is no `self`");
    }
    if f.kernel && sig.owner.is_some() {
        cx.error(codes::KERNEL_CALL, f.name.span, "a kernel cannot be a method", "declared in a struct");
    }
    let h = p.func_mut(id);
    (h.cparams, h.params, h.ret) = (cparams, params, ret);
    if let Some(s) = p.sigs.get_mut(id.0 as usize) {
        s.slots = slots;
    }
}

/// The defaults of a function: closed over its parameters, in a kernel the run-time ones too.
fn fn_defaults(p: &mut Program, id: FnId) {
    let Some(sig) = p.sigs.get(id.0 as usize).cloned() else { return };
    let SigAst::Fn(f) = &sig.ast else { return };
    let (cparams, params) = {
        let h = p.hir.func(id);
        (h.cparams.clone(), h.params.clone())
    };
    let mut cx = Cx::new(p, sig.file, Some(id));
    cx.rebind(&cparams);
    if f.kernel {
        cx.in_clause = true;
        cx.declare_params(&params, f);
    }
    cx.all_defaults(id, f);
    cx.remember();
}

fn param_type(cx: &mut Cx, sig: &Sig, prm: &ast::Param, i: usize, kernel: bool) -> Ty {
    match (&prm.ty, sig.owner) {
        (None, Some(owner)) if prm.name.text == "self" && i == 0 => {
            let args = cx.hir().strukt(owner).cparams.clone();
            let terms = args
                .iter()
                .map(|c| {
                    let e = cx.cvar_use(*c, prm.span);
                    cx.as_cterm(&e)
                })
                .collect();
            Ty::Struct(owner, terms)
        }
        (None, _) => {
            if !prm.name.text.is_empty() {
                cx.error(
                    codes::TYPE_MISMATCH,
                    prm.span,
                    format!("the parameter `{}` needs a type", prm.name.text),
                    "no type",
                );
            }
            Ty::Err
        }
        (Some(t), _) => {
            let ty = cx.ty(t);
            match &ty {
                Ty::DType | Ty::ShapeTy | Ty::Fn(..) => {
                    let shown = cx.show(&ty);
                    let d = Diagnostic::error(
                        codes::NOT_CONST,
                        t.span,
                        format!("a `{shown}` is a compile-time value"),
                        "used as a run-time parameter",
                    )
                    .fix("mark it `const`", t.span.before(), "const ");
                    cx.report(d);
                    Ty::Err
                }
                Ty::Tile { shape, .. } if kernel && !shape.is_scalar() => {
                    let shown = cx.show(&ty);
                    cx.error(
                        codes::TYPE_MISMATCH,
                        t.span,
                        format!("a kernel takes pointers, views and scalars, not `{shown}`"),
                        "tiles exist inside kernels only",
                    );
                    Ty::Err
                }
                _ => ty,
            }
        }
    }
}

/// Checks a body that has not been checked yet; a compile-time call may need it before its turn.
pub(super) fn ensure_body(p: &mut Program, id: FnId) {
    if p.bodies_begun.len() < p.bodies.len() + MAX_OPEN_BODIES && p.bodies_begun.insert(id) {
        let (outer, broken_before) = (p.take_notes(), p.hir.func(id).broken);
        fn_body(p, id);
        let notes = std::mem::replace(&mut p.notes, outer);
        let broken = p.hir.func(id).broken;
        p.bodies.insert(id, Body { notes, broken_before, broken, computed: false });
    }
}

/// The maximum number of signatures under check at once, each waiting for the next: their check is recursive.
pub(super) const MAX_OPEN_SIGNATURES: usize = 16;

/// The maximum number of bodies under check at once, each waiting for the next: their check is recursive.
const MAX_OPEN_BODIES: usize = 16;

fn fn_body(p: &mut Program, id: FnId) {
    let Some(sig) = p.sigs.get(id.0 as usize).cloned() else { return };
    match &sig.ast {
        SigAst::Test(t) => test_body(p, id, &sig, t),
        SigAst::Fn(f) => {
            let f = f.clone();
            user_body(p, id, &sig, &f);
        }
    }
}

fn test_body(p: &mut Program, id: FnId, sig: &Sig, t: &Arc<ast::Test>) {
    let mut cx = Cx::new(p, sig.file, Some(id));
    cx.in_test = true;
    let (mut body, ty) = cx.block(&t.body, None);
    if !matches!(ty, Ty::Unit | Ty::Never | Ty::Err) {
        let at = body.tail.as_ref().map_or(body.span, |t| t.span);
        cx.error(codes::TYPE_MISMATCH, at, "a test has no value", "add `;`, or use `assert(..)`");
    }
    let (broken, before) = (cx.hir().func(id).broken, cx.p.notes.diags.len());
    cx.zonk_block(&mut body);
    cx.late_expected(&mut body, before);
    let late = cx.p.notes.diags.iter().skip(before).any(Diagnostic::is_error);
    cx.p.func_mut(id).broken = broken || late;
    cx.zonk_locals();
    cx.remember();
    let locals = std::mem::take(&mut cx.locals);
    let h = p.func_mut(id);
    (h.body, h.locals) = (body, locals);
}

fn user_body(p: &mut Program, id: FnId, sig: &Sig, f: &Arc<ast::Fn>) {
    let (cparams, params, ret) = {
        let h = p.hir.func(id);
        (h.cparams.clone(), h.params.clone(), h.ret.clone())
    };
    let mut cx = Cx::new(p, sig.file, Some(id));
    cx.rebind(&cparams);
    cx.push_scope();
    cx.declare_params(&params, f);
    cx.ret = ret.clone();
    cx.ret_span = f.ret.as_ref().map_or(f.name.span, |t| t.span);
    cx.in_clause = f.kernel;
    cx.clauses(id, f, f.kernel);
    cx.in_clause = false;
    let (mut body, ty) = cx.block(&f.body, Some(&ret));
    let valueless = body.tail.as_ref().is_some_and(|t| {
        t.ty == Ty::Unit
            && !matches!(ret, Ty::Unit | Ty::Err)
            && matches!(t.kind, HKind::If { .. } | HKind::IfLet { .. } | HKind::Block(_))
    });
    if !valueless && let Some(t) = body.tail.take() {
        let done = matches!(t.ty, Ty::Never) || (ret == Ty::Unit && t.ty == Ty::Unit);
        body.tail = Some(Box::new(if done { *t } else { cx.returned(*t) }));
    } else if ty != Ty::Never && !matches!(ret, Ty::Unit | Ty::Err) {
        let shown = cx.show(&ret);
        let end = tk_syntax::Span { start: f.body.span.end.saturating_sub(1), ..f.body.span };
        let mut d = Diagnostic::error(
            codes::MISSING_RETURN,
            end,
            format!("`{}` returns `{shown}`, but not every path returns a value", f.name.text),
            "ends without a value",
        )
        .label(cx.ret_span, "declared here");
        if let Some(last) = body.stmts.last()
            && let HStmtKind::Expr(e) = &last.kind
            && !e.ty.is_err()
        {
            d = d.note("without `;` the last expression is the value of the function");
        }
        cx.report(d);
    }
    cx.zonk_block(&mut body);
    cx.zonk_locals();
    cx.remember();
    let locals = std::mem::take(&mut cx.locals);
    let h = p.func_mut(id);
    (h.body, h.locals) = (body, locals);
}

impl Cx<'_> {
    fn declare_params(&mut self, params: &[HParam], f: &ast::Fn) {
        for prm in params {
            let name = ast::Name { text: prm.name.clone(), span: prm.span };
            self.new_local(&name, prm.ty.clone(), false);
        }
        let mut names = f.params.iter().map(|p| &p.name).chain(f.cparams.iter().map(|p| &p.name));
        self.holes = names.any(|n| n.text.is_empty());
    }

    fn all_defaults(&mut self, id: FnId, f: &ast::Fn) {
        self.cparam_defaults(&f.cparams);
        for prm in &f.params {
            let Some(e) = &prm.default else { continue };
            if prm.konst {
                if let Some(c) = self.cvar_named(&prm.name.text) {
                    self.cvar_default(c, e);
                    self.mark_default(c, e);
                }
                continue;
            }
            let Some(i) = self.hir().func(id).params.iter().position(|p| p.name == prm.name.text) else {
                continue;
            };
            let Some(want) = self.hir().func(id).params.get(i).map(|p| p.ty.clone()) else { continue };
            if matches!(e.kind, ast::ExprKind::None) && !want.is_err() {
                self.absent_default(prm, e.span, &want);
                continue;
            }
            let h = self.value(e);
            let mut h = self.coerce(h, &want, "the default");
            if self.need_const(&h) && !h.ty.is_err() {
                self.zonk_expr(&mut h);
                if let Some(p) = self.p.func_mut(id).params.get_mut(i) {
                    p.default = Some(h);
                }
            }
        }
    }

    /// Reports `bias: view[f32, 1] = None`: whether a parameter may be absent is part of its type.
    fn absent_default(&mut self, prm: &ast::Param, at: Span, want: &Ty) {
        let name = &prm.name.text;
        let end = prm.ty.as_ref().map_or(at.start, |t| t.span.end);
        let given = Span { start: end, ..at };
        let message = "a parameter that may be absent has an optional type, and no default";
        let d = Diagnostic::error(codes::NOT_A_VALUE, at, message, "");
        self.report(match want {
            Ty::Option(_) => d.fix("remove the default", given, ""),
            Ty::View { .. } => d.fix("make the view optional", given, "?"),
            _other => d.note(format!(
                "only views can be optional: `{name}: view[f32, 1]?`, tested by `if let v = {name} {{ .. }}`"
            )),
        });
    }

    /// Returns true if a function computes its value from its arguments alone, by the names that it mentions.
    pub fn pure_fn(&mut self, id: FnId) -> bool {
        super::recursion::pure(self.p, id)
    }
}
