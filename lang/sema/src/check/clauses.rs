//! The clauses of a kernel: grid, launch options, requirements, preferences, tuning space, aliases, workspaces.

use tk_ops::{DType, Op};
use tk_syntax::ast::{self, ExprKind};
use tk_syntax::diag::Replacement;
use tk_syntax::{Diagnostic, Span, codes};

use super::SigAst;
use super::cx::{Cx, Sym};
use super::names::closest;
use crate::contract;
use crate::hir::{CVarId, FnId, HExpr, HKind, HTuneRow, LocalId, Requirement, Scratch, Tune};
use crate::launch::{LAUNCH_OPTIONS, LaunchOption, launch_options};
use crate::types::{Elem, Ty};

const CLAUSES: &[&str] = &["grid", "launch", "require", "prefer", "alias", "scratch", "tune"];

impl Cx<'_> {
    /// Checks all clauses into the contract of a function.
    pub fn clauses(&mut self, id: FnId, f: &ast::Fn, kernel: bool) {
        let mut seen: Vec<(&str, Span)> = vec![];
        for c in &f.clauses {
            let name = c.name.text.as_str();
            if !CLAUSES.contains(&name) {
                let mut d = Diagnostic::error(
                    codes::UNKNOWN_ATTRIBUTE,
                    c.name.span,
                    format!("unknown clause `{name}`"),
                    "unknown clause",
                );
                if let Some(ours) = Self::launch_option_named(name) {
                    d = d.note(format!("it is an option of a launch: `launch({ours} = ..)`"));
                } else if let Some(s) = closest(name, CLAUSES.iter().copied()) {
                    d = d.use_instead(c.name.span, s);
                }
                self.report(d);
                continue;
            }
            if !kernel && name != "require" {
                self.error(
                    codes::CLAUSE,
                    c.span,
                    format!("`{name}` is only allowed on kernels"),
                    "a function is not launched",
                );
                continue;
            }
            if name != "tune" && !c.rows.is_empty() {
                let message = format!("only `tune` has rows, not `{name}`");
                self.error(codes::CLAUSE, c.span, message, "rows follow");
            }
            let once = matches!(name, "grid" | "launch" | "tune");
            if let Some((_, before)) = seen.iter().find(|s| s.0 == name && once) {
                let d = Diagnostic::error(
                    codes::CLAUSE,
                    c.span,
                    format!("`{name}` is given twice"),
                    "given again",
                )
                .label(*before, "first given here");
                self.report(d);
                continue;
            }
            seen.push((name, c.span));
            match name {
                "grid" => self.grid(id, c),
                "launch" => self.launch_options(id, c),
                "require" => {
                    let list = self.conditions(c, true);
                    if !kernel && let Some(r) = list.iter().find(|r| !r.compile_time) {
                        let span = r.cond.span;
                        self.error(
                            codes::NOT_CONST,
                            span,
                            "`require` of a function needs a compile-time condition",
                            "this is only known at run time",
                        );
                    }
                    self.p.func_mut(id).contract.require.extend(list);
                }
                "prefer" => {
                    let list = self.conditions(c, false);
                    self.p.func_mut(id).contract.prefer.push(list);
                }
                "alias" => self.alias(id, c),
                "scratch" => self.scratch(id, c),
                _ => self.tune(id, c),
            }
        }
        self.clusters(id);
        self.rows_without_members(id, f);
    }

    /// Says where a clause belongs that is a statement, and moves it there.
    pub(super) fn clause_in_body(&self, d: Diagnostic, name: &str, call: Span) -> Option<Diagnostic> {
        let sig = self.func.and_then(|id| self.p.sigs.get(id.0 as usize));
        let Some(SigAst::Fn(f)) = sig.map(|s| &s.ast).filter(|_| CLAUSES.contains(&name)) else {
            return None;
        };
        let d = d.note(format!(
            "`{name}(..)` is a clause of a kernel: it is written between its parameters and its body"
        ));
        let (text, source) = (self.text(call), &self.p.sources.get(call.file)?.text);
        let is_of_body = |word: &str| matches!(self.meaning(word), Some(Sym::Local(id)) if id.0 as usize >= f.params.len());
        let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
        let is_known = f.clauses.iter().any(|c| c.name.text == name);
        let before = source.get(..call.start as usize)?.trim_end().len() as u32;
        let is_statement = source.get(call.end as usize..)?.starts_with(';');
        if !f.kernel || is_known || !is_statement || words.any(is_of_body) {
            return Some(d);
        }
        let removed = Span { start: before, end: call.end + 1, ..call };
        let place = f.clauses.last().map_or(f.sig_span, |c| c.span).after();
        let edits = vec![
            Replacement { span: place, text: format!(" {text}") },
            Replacement { span: removed, text: String::new() },
        ];
        Some(d.fix_all("move it there", edits))
    }

    fn clause_int(&mut self, e: &ast::Expr) -> Option<HExpr> {
        let mut h = self.value(e);
        if h.ty.is_err() || !self.need_int(&h) || !self.closed(&mut h) {
            return None;
        }
        self.zonk_expr(&mut h);
        Some(h)
    }

    /// Clauses are evaluated by the launcher: scalars in, scalars out, no memory; reports otherwise.
    fn closed(&mut self, h: &mut HExpr) -> bool {
        let bad = match &h.kind {
            HKind::Builtin(row, _) => !matches!(row.op, Op::Elementwise(_)),
            HKind::Call { callee, .. } => {
                let callee = *callee;
                !self.pure_fn(callee)
            }
            _ => false,
        };
        if bad {
            let d = Diagnostic::error(
                codes::CLAUSE,
                h.span,
                "a clause is evaluated before the launch and cannot use this",
                "not known before the launch",
            )
            .note("it may use parameters, shapes, `device.*`, arithmetic and functions of these");
            self.report(d);
            return false;
        }
        let mut ok = true;
        crate::visit::children(h, &mut |e| ok = ok && self.closed(e));
        ok
    }

    fn grid(&mut self, id: FnId, c: &ast::Clause) {
        if c.args.is_empty() || c.args.len() > 3 {
            let n = c.args.len();
            self.error(
                codes::GRID,
                c.span,
                format!("a grid has 1 to 3 axes, not {n}"),
                if n == 0 { "no axes".to_string() } else { format!("{n} axes") },
            );
            return;
        }
        if let [one] = c.args.as_slice()
            && matches!(one.value.kind, ExprKind::Tuple(_) | ExprKind::Array(_))
        {
            let d = Diagnostic::error(codes::GRID, one.value.span, "a grid takes its extents one by one", "");
            self.report(self.relisted(d, &one.value, false));
            return;
        }
        let list: Vec<Option<HExpr>> = c.args.iter().map(|a| self.clause_int(&a.value)).collect();
        if let Some(list) = list.into_iter().collect::<Option<Vec<_>>>() {
            self.p.func_mut(id).contract.grid = list;
        }
    }

    fn launch_options(&mut self, id: FnId, c: &ast::Clause) {
        let mut names: Vec<(&str, Span)> = vec![];
        for a in &c.args {
            let Some(n) = &a.name else {
                self.error(
                    codes::CLAUSE,
                    a.value.span,
                    "launch options are given by name",
                    "as in `launch(warps = 8)`",
                );
                continue;
            };
            let Some(LaunchOption { name, is_bool, .. }) = LAUNCH_OPTIONS.iter().find(|o| o.name == n.text)
            else {
                self.unknown_option(n);
                continue;
            };
            if let Some((_, first)) = names.iter().find(|x| x.0 == *name) {
                let message = format!("`{name}` is given twice");
                let d = Diagnostic::error(codes::CLAUSE, n.span, message, "second value");
                self.report(d.label(*first, "first given here"));
                continue;
            }
            names.push((name, n.span));
            let h = if *is_bool {
                let mut h = self.condition(&a.value);
                self.zonk_expr(&mut h);
                (!h.ty.is_err()).then_some(h)
            } else {
                self.clause_int(&a.value)
            };
            if let Some(h) = h {
                self.at_least(name, &h);
                self.p.func_mut(id).contract.launch.push(((*name).to_string(), h));
            }
        }
    }

    /// Says where an option of launches belongs, for a name that is one here or in Triton.
    pub fn launch_option(name: &str) -> Option<String> {
        let ours = Self::launch_option_named(name)?;
        Some(format!("the kernel has this option in its signature: `launch({ours} = ..)`"))
    }

    /// The launch option with a name, here or in another language.
    pub fn launch_option_named(name: &str) -> Option<&'static str> {
        let names: Vec<&str> = launch_options().collect();
        let ours = names.iter().copied().find(|n| *n == name);
        ours.or_else(|| Self::foreign_parameter(name, &names))
    }

    /// Reports a number that is too small for its launch option, where it is known.
    fn at_least(&mut self, name: &str, h: &HExpr) {
        if let HKind::Int(v) = h.kind
            && let Some(d) = contract::below_least(codes::CLAUSE, name, v, h.span)
        {
            self.report(d);
        }
    }

    fn unknown_option(&mut self, n: &ast::Name) {
        let mut d = Diagnostic::error(
            codes::CLAUSE,
            n.span,
            format!("unknown launch option `{}`", n.text),
            "unknown option",
        );
        let names: Vec<&str> = launch_options().collect();
        let ours = Self::foreign_parameter(&n.text, &names);
        if let Some(s) = ours.or_else(|| closest(&n.text, names.iter().copied())) {
            d = d.use_instead(n.span, s);
        } else {
            let list: Vec<String> = launch_options().map(|o| format!("`{o}`")).collect();
            d = d.note(format!("there are {}", list.join(", ")));
        }
        self.report(d);
    }

    fn conditions(&mut self, c: &ast::Clause, learn: bool) -> Vec<Requirement> {
        let mut out = vec![];
        for a in &c.args {
            self.optionals = Some(vec![]);
            let mut h = self.condition(&a.value);
            let optionals = self.optionals.take().unwrap_or_default();
            if h.ty.is_err() || !self.closed(&mut h) {
                continue;
            }
            self.zonk_expr(&mut h);
            if learn && h.konst {
                self.learn(&h, true);
            }
            let text = self.text(a.value.span);
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let compile_time = h.konst;
            out.push(Requirement { cond: h, text, compile_time, optionals });
        }
        out
    }

    fn alias(&mut self, id: FnId, c: &ast::Clause) {
        let params: Vec<LocalId> = self.hir().func(id).params.iter().map(|p| p.local).collect();
        let mut named: Vec<(LocalId, Span)> = vec![];
        let before = self.p.notes.diags.len();
        for a in &c.args {
            let h = self.expr(&a.value, None);
            let memory =
                matches!(h.ty, Ty::View { .. } | Ty::Option(_) | Ty::Tile { elem: Elem::Ptr { .. }, .. });
            match h.kind {
                HKind::Local(l) if memory && params.contains(&l) && a.name.is_none() => {
                    if let Some((_, first)) = named.iter().find(|n| n.0 == l) {
                        let d = Diagnostic::error(
                            codes::CLAUSE,
                            h.span,
                            "this parameter is named twice",
                            "named again",
                        )
                        .label(*first, "first named here");
                        self.report(d);
                    } else {
                        named.push((l, h.span));
                    }
                }
                _not_memory if h.ty.is_err() => {}
                _not_memory => {
                    self.error(
                        codes::CLAUSE,
                        a.value.span,
                        "`alias` names pointer and view parameters",
                        "neither a pointer nor a view parameter",
                    );
                }
            }
        }
        if named.len() < 2 && self.p.notes.diags.len() == before {
            self.error(
                codes::CLAUSE,
                c.span,
                "`alias` needs at least two parameters",
                "fewer than two parameters",
            );
        }
        for (i, (x, _)) in named.iter().enumerate() {
            for (y, _) in named.iter().skip(i + 1) {
                self.p.func_mut(id).contract.alias.push((*x, *y));
            }
        }
    }

    /// The value of an argument of a clause that is `true` or `false`.
    fn clause_bool(&mut self, name: &ast::Name, value: &ast::Expr) -> bool {
        if let ExprKind::Bool(b) = value.kind {
            return b;
        }
        let message = format!("`{}` is `true` or `false`", name.text);
        self.error(codes::CLAUSE, value.span, message, "neither `true` nor `false`");
        false
    }

    fn scratch(&mut self, id: FnId, c: &ast::Clause) {
        let (mut ptr, mut count, mut zeroed, mut restored) = (None, None, None, None);
        for a in &c.args {
            let name = a.name.as_ref().map_or("count", |n| n.text.as_str());
            let is_again = match (&a.name, &a.value.kind) {
                (Some(n), ExprKind::Type(t)) => {
                    let local = self.workspace(n, t);
                    ptr.replace(local).is_some()
                }
                (Some(n), _) if name == "zeroed" => zeroed.replace(self.clause_bool(n, &a.value)).is_some(),
                (Some(n), _) if name == "restored" => {
                    restored.replace(self.clause_bool(n, &a.value)).is_some()
                }
                (Some(n), _) if name != "count" => {
                    let message = format!("`scratch` has no `{name}`");
                    let takes = "it takes a pointer, a count, `zeroed` and `restored`";
                    self.error(codes::CLAUSE, n.span, message, takes);
                    false
                }
                _ => count.replace(self.clause_int(&a.value)).is_some(),
            };
            if is_again {
                let message = format!("`scratch` has `{name}` more than once");
                self.error(codes::CLAUSE, a.value.span, message, "given again");
            }
        }
        let Some(local) = ptr else {
            let message = "a workspace is declared as `scratch(name: *mut T, count)`";
            self.error(codes::CLAUSE, c.span, message, "");
            return;
        };
        let Some(count) = count else {
            let message = "`scratch` needs the number of elements";
            self.error(codes::CLAUSE, c.span, message, "number of elements missing");
            return;
        };
        let (zeroed, restored) = (zeroed.unwrap_or(false), restored.unwrap_or(false));
        if restored && !zeroed {
            let message =
                "`restored` needs `zeroed = true`: the zeros that it leaves are those of the next launch";
            self.error(codes::CLAUSE, c.span, message, "nothing zeroes it the first time");
        }
        if let Some(count) = count {
            self.p.func_mut(id).contract.scratch.push(Scratch { local, count, zeroed, restored });
        }
    }

    /// The variable of a workspace.
    fn workspace(&mut self, name: &ast::Name, t: &ast::TypeExpr) -> LocalId {
        let ty = self.ty(t);
        if !matches!(ty, Ty::Tile { elem: Elem::Ptr { mutable: true, .. }, .. } | Ty::Err) {
            let shown = self.show(&ty);
            let message = format!("a workspace is a `*mut` pointer, not `{shown}`");
            self.error(codes::CLAUSE, t.span, message, super::this_is(&shown));
        }
        if let Some(before) = self.locals.iter().find(|l| l.name == name.text).map(|l| l.span) {
            let message = format!("`{}` is defined twice", name.text);
            let d = Diagnostic::error(codes::DUPLICATE, name.span, message, "this workspace");
            self.report(d.label(before, "first definition"));
        }
        self.new_local(name, ty, false)
    }

    fn tune(&mut self, id: FnId, c: &ast::Clause) {
        let mut tune = Tune::default();
        for a in &c.args {
            match &a.name {
                Some(n) if n.text == "key" => {
                    let items: Vec<&ast::Expr> = match &a.value.kind {
                        ExprKind::Tuple(items) | ExprKind::Array(items) => items.iter().collect(),
                        _ => vec![&a.value],
                    };
                    tune.key = items.into_iter().filter_map(|e| self.tune_key(e)).collect();
                }
                Some(n) => {
                    self.error(
                        codes::CLAUSE,
                        n.span,
                        format!("`tune` has no `{}`", n.text),
                        "it takes `key`",
                    );
                }
                None => {
                    self.error(codes::CLAUSE, a.value.span, "`tune` takes `key = (..)`", "`key` missing");
                }
            }
        }
        for r in &c.rows {
            let row = self.tune_row(id, r);
            tune.rows.push(row);
        }
        self.p.func_mut(id).contract.tune = Some(tune);
    }

    /// A part of the key of a tuner: a number, where Triton has the name of an argument.
    fn tune_key(&mut self, e: &ast::Expr) -> Option<HExpr> {
        if matches!(e.kind, ExprKind::Str(_)) {
            let message = "a key is a number of the launch, not the name of one";
            let d = Diagnostic::error(codes::TYPE_MISMATCH, e.span, message, "this is `text`");
            self.report(d.note("it is computed from the arguments, as in `key = (x.shape[0])`"));
            return None;
        }
        if self.is_unknown(e) {
            let text = self.text(e.span);
            let d = Diagnostic::error(
                codes::UNKNOWN_NAME,
                e.span,
                format!("cannot find `{text}`"),
                "unknown name",
            );
            self.report(d.note("a key is computed from the arguments, as in `key = (x.shape[0])`"));
            return None;
        }
        self.clause_int(e)
    }

    fn tune_row(&mut self, id: FnId, r: &ast::TuneRow) -> HTuneRow {
        let mut entries = vec![];
        let mut names: Vec<(&str, Span)> = vec![];
        for a in &r.entries {
            let Some(n) = &a.name else {
                self.error(
                    codes::CLAUSE,
                    a.value.span,
                    "an entry of a tuning row needs a name",
                    "name missing",
                );
                continue;
            };
            if let Some((_, first)) = names.iter().find(|x| x.0 == n.text) {
                let message = format!("`{}` is given twice in this row", n.text);
                let d = Diagnostic::error(codes::CLAUSE, n.span, message, "second value");
                self.report(d.label(*first, "first given here"));
                continue;
            }
            names.push((n.text.as_str(), n.span));
            let cvar =
                self.hir().func(id).cparams.iter().copied().find(|c| self.hir().cvar(*c).name == n.text);
            let option = LAUNCH_OPTIONS.iter().find(|o| o.name == n.text);
            let values = match (cvar, option) {
                (Some(c), _) => {
                    self.saw_cvar(n, c);
                    self.follows_from_arguments(id, c, n.span);
                    self.value_list(c, &a.value)
                }
                (None, Some(o)) => self.option_values(o.name, o.is_bool, &a.value),
                (None, None) => {
                    self.not_tunable(id, n);
                    continue;
                }
            };
            entries.push((n.text.clone(), values));
        }
        let cond = r.cond.as_ref().map(|e| {
            let mut h = self.condition(e);
            if !h.konst && !h.ty.is_err() {
                let d = self.row_by_arguments(id, r, e);
                h = self.fail(d);
            }
            self.zonk_expr(&mut h);
            h
        });
        (entries, cond)
    }

    /// A tuner cannot choose what the arguments of a launch decide.
    fn follows_from_arguments(&mut self, id: FnId, c: CVarId, span: Span) {
        let f = self.hir().func(id);
        let Some(p) = f.params.iter().find(|p| contract::elem_param(&p.ty) == Some(c)) else { return };
        let message = format!("`{}` is determined by the argument `{}`", self.hir().cvar(c).name, p.name);
        let d = Diagnostic::error(codes::CLAUSE, span, message, "a tuner cannot choose it");
        let d = d.label(p.span, "declared here");
        self.report(d);
    }

    fn not_tunable(&mut self, id: FnId, n: &ast::Name) {
        let mut names: Vec<String> =
            self.hir().func(id).cparams.iter().map(|c| self.hir().cvar(*c).name.clone()).collect();
        names.extend(launch_options().map(str::to_string));
        let mut d = Diagnostic::error(
            codes::CLAUSE,
            n.span,
            format!("`{}` is neither a compile-time parameter nor a launch option", n.text),
            "unknown name",
        );
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let ours = Self::foreign_parameter(&n.text, &names);
        if let Some(s) = ours.or_else(|| closest(&n.text, names.iter().copied())) {
            d = d.use_instead(n.span, s);
        }
        self.report(d);
    }

    /// The values of a launch option in a tuning row.
    fn option_values(&mut self, name: &str, is_bool: bool, value: &ast::Expr) -> Vec<HExpr> {
        let list: Vec<&ast::Expr> = match &value.kind {
            ExprKind::Array(items) => items.iter().collect(),
            _ => vec![value],
        };
        self.no_empty_list(list.len(), value.span);
        let want = if is_bool { Ty::bool() } else { Ty::scalar(DType::I32) };
        let mut out: Vec<HExpr> = vec![];
        for e in list {
            let h = self.value(e);
            let mut h = self.coerce(h, &want, &format!("`{name}`"));
            if h.ty.is_err() || !self.need_const(&h) {
                continue;
            }
            self.zonk_expr(&mut h);
            self.at_least(name, &h);
            match out.iter().find(|x| x.kind == h.kind).map(|x| x.span) {
                Some(first) => self.repeated_value(h.span, first),
                None => out.push(h),
            }
        }
        out
    }
}
