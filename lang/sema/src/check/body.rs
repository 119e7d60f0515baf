//! Blocks and statements: variables, jumps, returns.

use tk_syntax::ast::{self, ExprKind, PatKind, StmtKind};
use tk_syntax::{Diagnostic, Span, codes};

use super::advice::SHOWN;
use super::cx::{Cx, LoopCx};
use crate::hir::{FnKind, HBlock, HExpr, HKind, HPat, HStmt, HStmtKind};
use crate::types::Ty;

impl Cx<'_> {
    /// A block and the type of its value.
    pub fn block(&mut self, b: &ast::Block, want: Option<&Ty>) -> (HBlock, Ty) {
        self.push_scope();
        let mut stmts = vec![];
        let mut split = None;
        for (i, s) in b.stmts.iter().enumerate() {
            let mark = Cx::may_split(s).then(|| self.mark());
            let kind = self.stmt(s);
            if let (Some(e), Some(mark)) = (self.split_after(b, i), mark) {
                self.reset(mark);
                split = Some(self.split_rest(&e, want));
                break;
            }
            stmts.push(HStmt { kind, span: s.span });
        }
        let tail = match split {
            Some(t) => Some(Box::new(t)),
            None => b.tail.as_ref().map(|t| Box::new(self.open_expr(t, want))),
        };
        self.pop_scope();
        self.end_block(b);
        let ty = match &tail {
            Some(t) => t.ty.clone(),
            None if self.diverged => Ty::Never,
            None => Ty::Unit,
        };
        (HBlock { stmts, tail, span: b.span }, ty)
    }

    fn stmt(&mut self, s: &ast::Stmt) -> HStmtKind {
        if !s.attrs.is_empty() && !matches!(s.kind, StmtKind::For { .. } | StmtKind::While { .. }) {
            for a in &s.attrs {
                self.error(codes::UNKNOWN_ATTRIBUTE, a.span, "an attribute applies to an item or a loop", "");
            }
        }
        match &s.kind {
            StmtKind::Err => HStmtKind::Err,
            StmtKind::Let { pat, ty, init } => self.let_stmt(pat, ty.as_ref(), init.as_ref()),
            StmtKind::Const(c) => {
                self.local_const(c);
                HStmtKind::Expr(self.mk(HKind::Unit, Ty::Unit, s.span, true))
            }
            StmtKind::Assign { place, op, value } => match (&place.kind, op) {
                (ExprKind::Tuple(parts), None) => self.assign_parts(place, parts, value, s.span),
                _ => self.assign(place, *op, value, s.span),
            },
            StmtKind::Expr(e) => HStmtKind::Expr(self.open_expr(e, None)),
            StmtKind::For { pat, iter, body } => self.for_stmt(pat, iter, body, &s.attrs),
            StmtKind::While { cond, body } => {
                self.loop_attrs(&s.attrs);
                let before = self.flow();
                self.loops.push(LoopCx { locals_before: self.locals.len(), is_static: false });
                let cond = self.loop_condition(cond);
                let (body, _) = self.loop_body(body);
                self.loops.pop();
                self.set_flow(before);
                HStmtKind::While { cond, body }
            }
            StmtKind::Return(x) => {
                if self.leaves("return", s.span) {
                    x.iter().for_each(|e| drop(self.value(e)));
                    self.diverged = true;
                    return HStmtKind::Err;
                }
                let v = self.return_value(x.as_ref(), s.span);
                self.diverged = true;
                HStmtKind::Return(v)
            }
            StmtKind::Break | StmtKind::Continue => self.leave(matches!(s.kind, StmtKind::Break), s.span),
            StmtKind::AssertError { code, code_span, body } => self.assert_error(code, *code_span, body),
        }
    }

    fn leave(&mut self, is_break: bool, span: Span) -> HStmtKind {
        let word = if is_break { "break" } else { "continue" };
        match self.loops.last() {
            None => {
                self.error(
                    codes::NOT_IN_LOOP,
                    span,
                    format!("`{word}` outside of a loop"),
                    "no loop around this",
                );
            }
            Some(l) if l.is_static => {
                let d = Diagnostic::error(
                    codes::NOT_IN_LOOP,
                    span,
                    format!("`{word}` cannot leave a loop that is unrolled at compile time"),
                    "",
                );
                self.report(d);
            }
            Some(_) => {
                self.leaves(word, span);
            }
        }
        self.diverged = true;
        if is_break { HStmtKind::Break } else { HStmtKind::Continue }
    }

    /// Reports what leaves from inside an operand. A loop in the operand may be left.
    /// Gives whether it did.
    pub fn leaves(&mut self, word: &str, span: Span) -> bool {
        match self.operand {
            Some(_) if self.lambda_depth > 0 => {
                self.error(
                    codes::HALF_DONE,
                    span,
                    format!("a lambda has no `{word}`"),
                    "the value of a lambda is its last expression",
                );
                true
            }
            Some(loops) if word == "return" || self.loops.len() <= loops => {
                let message = format!("`{word}` is not allowed in the middle of an expression");
                let d = Diagnostic::error(codes::HALF_DONE, span, message, "part of a larger expression");
                self.report(d.note("bind this part of the expression with `let` first"));
                true
            }
            Some(_) | None => false,
        }
    }

    fn let_stmt(
        &mut self,
        pat: &ast::Pat,
        ty: Option<&ast::TypeExpr>,
        init: Option<&ast::Expr>,
    ) -> HStmtKind {
        if let (PatKind::Name { mutable: false, name }, None, Some(e)) = (&pat.kind, ty, init)
            && let ExprKind::Lambda(params, body) = &e.kind
        {
            self.name_lambda(name, params, body);
            return HStmtKind::Expr(self.mk(HKind::Unit, Ty::Unit, e.span, true));
        }
        let want = ty.map(|t| self.ty(t));
        match init {
            Some(e) => {
                let h = self.open_expr(e, want.as_ref());
                let mut h = self.need_value(h);
                if let Some(w) = &want {
                    h = self.coerce(h, w, "the declared type");
                }
                let bind = match want {
                    Some(w) if !h.ty.is_err() => w,
                    _ => self.let_type(&h),
                };
                let p = self.bind_pat(pat, &bind, true);
                if let HPat::Local(id) = &p
                    && let Some(local) = self.locals.get_mut(id.0 as usize)
                {
                    local.known = h.konst && !local.mutable;
                    self.remember_quotient(*id, &h);
                    if ty.is_none()
                        && let Some(at) = self.root_param(&h)
                    {
                        self.origins.insert(*id, at);
                    }
                }
                HStmtKind::Let(p, Some(h))
            }
            None => {
                let known = want.clone().unwrap_or(Ty::Err);
                if !matches!(pat.kind, PatKind::Name { .. } | PatKind::Err) {
                    self.error(
                        codes::PATTERN,
                        pat.span,
                        "a pattern of several names needs a value",
                        "declared without a value",
                    );
                }
                let p = self.bind_pat(pat, &known, false);
                if let (HPat::Local(id), None) = (&p, &want) {
                    self.untyped.insert(*id);
                }
                HStmtKind::Let(p, None)
            }
        }
    }

    /// The type of a variable from its value; what is not a run-time value cannot be kept in one.
    pub(super) fn let_type(&mut self, h: &HExpr) -> Ty {
        match &h.ty {
            Ty::DType | Ty::ShapeTy | Ty::Str | Ty::Fn(..) => {
                let shown = self.show(&h.ty);
                let d = Diagnostic::error(
                    codes::NOT_A_VALUE,
                    h.span,
                    format!("`{shown}` is a compile-time value and cannot be stored in a variable"),
                    "known only at compile time",
                );
                let d = self.constants_instead(d, h.span);
                self.report(d);
                Ty::Err
            }
            Ty::Never => Ty::Err,
            t => t.clone(),
        }
    }

    /// Says how what a variable cannot keep is kept: by a constant, and each part of a shape by one of its own.
    fn constants_instead(&self, d: Diagnostic, value: Span) -> Diagnostic {
        let text = self.text(value);
        let names = self.unpacked_names(value);
        let [name, _, ..] = names.as_slice() else {
            return d.note("use `const NAME = ..;` for compile-time values");
        };
        let x = if text.len() <= SHOWN && self.is_postfix(&text) { text.as_str() } else { ".." };
        d.note(format!("each extent is a constant of its own: `const {name} = {x}[0];` and so on"))
    }

    /// The value of a `return`.
    pub fn return_value(&mut self, x: Option<&ast::Expr>, span: Span) -> Option<HExpr> {
        let ret = self.ret.clone();
        match x {
            None if matches!(ret, Ty::Unit | Ty::Err) => None,
            None => {
                let shown = self.show(&ret);
                let d = Diagnostic::error(
                    codes::RETURN_TYPE,
                    span,
                    format!("this function returns a value of type `{shown}`"),
                    "no value",
                )
                .label(self.ret_span, "declared here");
                self.report(d);
                None
            }
            Some(e) => {
                let h = self.open_expr(e, Some(&ret));
                let h = self.need_value(h);
                Some(self.returned(h))
            }
        }
    }

    /// Fits a value to the function's result type.
    pub fn returned(&mut self, h: HExpr) -> HExpr {
        let ret = self.ret.clone();
        if ret == Ty::Unit && !h.ty.is_err() && !matches!(h.ty, Ty::Unit | Ty::Never) {
            let d = self.returned_nowhere(&h);
            return self.fail(d);
        }
        let at = self.ret_span;
        self.coerce_as(h, &ret, "the result", Some(codes::RETURN_TYPE), Some((at, "declared here".into())))
    }

    /// Reports a value that is returned where there is no result type.
    fn returned_nowhere(&self, h: &HExpr) -> Diagnostic {
        let shown = self.show(&h.ty);
        let function = self.func.map(|id| self.hir().func(id));
        let of_kernel = function.is_some_and(|f| f.kind == FnKind::Kernel);
        let message = if of_kernel { "a kernel returns no value" } else { "this function returns no value" };
        let d = Diagnostic::error(codes::RETURN_TYPE, h.span, message, super::this_is(&shown));
        match function {
            Some(_) if of_kernel => {
                d.note("the caller makes an array for the result, and the kernel writes to it: `y: mut view[f32, 1]` and `y.store(at, value)`")
            }
            Some(f) if f.kind == FnKind::Fn => {
                d.note(format!("the result type follows the parameters: `fn {}(..) -> {shown}`", f.name))
            }
            Some(_) | None => d,
        }
    }

    /// `assert_error "E0304" { .. }`: what checking reports in the body counts.
    fn assert_error(&mut self, code: &str, span: Span, body: &ast::Block) -> HStmtKind {
        if !self.in_test {
            self.error(codes::TEST_ONLY, span, "`assert_error` is only allowed in tests", "");
        }
        if codes::find(code).is_none() {
            self.error(
                codes::TEST_EXPECTED,
                span,
                format!("there is no diagnostic `{code}`"),
                "unknown code",
            );
        }
        let start = self.p.notes.diags.len();
        let broken = self.func.map(|f| self.hir().func(f).broken);
        let before = self.flow();
        let (block, _) = self.block(body, None);
        self.set_flow(before);
        let new = self.p.notes.diags.split_off(start.min(self.p.notes.diags.len()));
        let found = new.iter().any(|d| d.code.0 == code);
        let others: Vec<Diagnostic> = new.into_iter().filter(|d| d.code.0 != code).collect();
        if let (Some(f), Some(b)) = (self.func, broken) {
            self.p.func_mut(f).broken = b || others.iter().any(Diagnostic::is_error);
        }
        self.p.notes.diags.extend(others);
        if !found {
            self.expected.push((body.span, code.to_string()));
        }
        HStmtKind::AssertError { code: code.to_string(), body: (!found).then_some(block) }
    }

    /// Matches the `assert_error`s of a test with errors that are found only at the end of its body: literals that do
    /// not fit their types.
    pub fn late_expected(&mut self, body: &mut HBlock, start: usize) {
        for (span, code) in std::mem::take(&mut self.expected) {
            let inside = |d: &Diagnostic| {
                let at = d.primary.span;
                d.code.0 == code && at.file == span.file && span.start <= at.start && at.end <= span.end
            };
            let late = self.p.notes.diags.split_off(start.min(self.p.notes.diags.len()));
            let (found, others): (Vec<_>, Vec<_>) = late.into_iter().partition(inside);
            self.p.notes.diags.extend(others);
            if !found.is_empty() {
                meet(body, span);
            }
        }
    }
}

/// Takes away the block of the `assert_error` there: its diagnostic has been found.
fn meet(b: &mut HBlock, at: Span) {
    for s in &mut b.stmts {
        match &mut s.kind {
            HStmtKind::AssertError { body, .. } => {
                if body.as_ref().is_some_and(|b| b.span == at) {
                    *body = None;
                } else {
                    body.iter_mut().for_each(|b| meet(b, at));
                }
            }
            HStmtKind::For { body, .. }
            | HStmtKind::StaticFor { body, .. }
            | HStmtKind::While { body, .. } => meet(body, at),
            HStmtKind::Let(_, Some(e)) | HStmtKind::Assign { value: e, .. } | HStmtKind::Expr(e) => {
                meet_in(e, at);
            }
            HStmtKind::Let(_, None)
            | HStmtKind::Return(_)
            | HStmtKind::Break
            | HStmtKind::Continue
            | HStmtKind::Err => {}
        }
    }
    b.tail.iter_mut().for_each(|e| meet_in(e, at));
}

fn meet_in(e: &mut HExpr, at: Span) {
    match &mut e.kind {
        HKind::Block(b) => meet(b, at),
        HKind::If { then, els, .. } | HKind::IfLet { then, els, .. } => {
            meet(then, at);
            els.iter_mut().for_each(|b| meet(b, at));
        }
        _value => {}
    }
}
