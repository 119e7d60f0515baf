//! The lints: warnings about valid programs that probably do not do what was intended.
//!
//! A lint is a file. It sees only checked functions without errors: one mistake gives one message, so a function with
//! an error has no warnings, and neither has a file that could not be parsed completely. Only the requested file is
//! linted, since the others cannot be fixed from there, and a lint that cannot decide is silent.

mod dropped;
mod fraction;
mod grid;
mod mask;
mod meeting;
mod names;
mod padding;
mod remainder;
mod shadow;
mod stride;

use std::collections::{BTreeMap, BTreeSet};

use tk_syntax::{Code, Diagnostic, FileId, Severity, SourceMap, Span, ast};

use crate::check::Program;
use crate::hir::{FnId, FnKind, HBlock, HExpr, HFn, HKind, HPat, HStmt, HStmtKind, Hir, LocalId};
use crate::visit;

/// What the lints have found, by what they have looked at.
#[derive(Default)]
pub(crate) struct Lints {
    /// Whether they have looked at everything but what is outdated.
    complete: bool,
    /// Whether nothing is said, because a part of the file could not be read, which may use anything.
    silent: bool,
    /// Items and functions that have changed since, while nothing was said.
    outdated: (BTreeSet<usize>, BTreeSet<FnId>),
    /// By function.
    functions: BTreeMap<FnId, Vec<Diagnostic>>,
    /// By item of the file.
    items: Vec<OfItem>,
    /// About the uses of items, empty where there are errors.
    file: Vec<Diagnostic>,
}

/// What the lints have found in the tree of an item.
#[derive(Default)]
struct OfItem {
    found: Vec<Diagnostic>,
    /// The names of items that it mentions.
    used: BTreeSet<String>,
}

impl Lints {
    /// All that was found.
    pub fn found(&self) -> impl Iterator<Item = &Diagnostic> {
        let items = self.items.iter().flat_map(|i| &i.found);
        let all = self.functions.values().flatten().chain(items).chain(&self.file);
        all.filter(|_| !self.silent)
    }
}

/// The input of lints.
struct Cx<'a> {
    hir: &'a Hir,
    sources: &'a SourceMap,
    /// The names of functions that have an error, by their places.
    broken: BTreeSet<Span>,
    found: Vec<Diagnostic>,
}

impl<'a> Cx<'a> {
    fn new(p: &'a Program) -> Self {
        let broken = p.hir.fns.iter().filter(|f| f.broken).map(|f| f.span).collect();
        Cx { hir: &p.hir, sources: &p.sources, broken, found: vec![] }
    }

    fn warn(&mut self, d: Diagnostic) {
        self.found.push(d);
    }

    /// Runs the lints of checked functions on one.
    fn function(&mut self, f: &'a HFn) -> Vec<Diagnostic> {
        if !f.broken {
            dropped::function(self, f);
            fraction::function(self, f);
            if f.kind != FnKind::Test {
                grid::function(self, f);
                stride::function(self, f);
                mask::function(self, f);
                padding::function(self, f);
                meeting::function(self, f);
                remainder::function(self, f);
            }
        }
        std::mem::take(&mut self.found)
    }

    /// Runs the lints of trees on an item.
    fn item(&mut self, item: &ast::Item) -> OfItem {
        let used = names::item(self, item);
        shadow::item(self, item);
        OfItem { found: std::mem::take(&mut self.found), used }
    }
}

/// The file that was asked for.
const MAIN: FileId = FileId(0);

/// Returns true if a part of the file could not be read.
fn unread(p: &Program) -> bool {
    p.syntax.iter().any(|d| d.primary.span.file == MAIN && d.code.0.starts_with("E01"))
}

/// Runs every lint on the file that was asked for.
pub(crate) fn run(p: &mut Program) {
    p.lints = Lints::default();
    let Some(file) = p.files.first().map(|f| f.ast.clone()) else { return };
    if unread(p) {
        return;
    }
    let mut cx = Cx::new(p);
    let own = p.hir.fns.iter().enumerate().filter(|(_, f)| f.file == MAIN);
    let functions = own.map(|(i, f)| (FnId(i as u32), cx.function(f))).collect();
    let items = file.items.iter().map(|i| cx.item(i)).collect();
    p.lints = Lints { complete: true, functions, items, ..Lints::default() };
    uses(p, &file);
}

/// Runs the lints again after a change of an item: on it, and on these functions.
pub(crate) fn run_again(p: &mut Program, item: usize, functions: &BTreeSet<FnId>) {
    p.lints.outdated.0.insert(item);
    p.lints.outdated.1.extend(functions);
    p.lints.silent = unread(p);
    if p.lints.silent {
        return;
    }
    if !p.lints.complete {
        run(p);
        return;
    }
    let Some(file) = p.files.first().map(|f| f.ast.clone()) else { return };
    let (items, functions) = std::mem::take(&mut p.lints.outdated);
    let mut cx = Cx::new(p);
    let own = |id: FnId| p.hir.fns.get(id.0 as usize).filter(|f| f.file == MAIN).map(|f| (id, f));
    let of_functions: Vec<_> =
        functions.into_iter().filter_map(own).map(|(id, f)| (id, cx.function(f))).collect();
    let of_items: Vec<_> = items.into_iter().filter_map(|i| Some((i, cx.item(file.items.get(i)?)))).collect();
    p.lints.functions.extend(of_functions);
    for (i, of_item) in of_items {
        if let Some(slot) = p.lints.items.get_mut(i) {
            *slot = of_item;
        }
    }
    uses(p, &file);
}

/// The lints about the uses of items. A mistake may have been meant as the use.
fn uses(p: &mut Program, file: &ast::File) {
    let mut found = vec![];
    if !p.has_errors() {
        let used = p.lints.items.iter().flat_map(|i| &i.used).map(String::as_str).collect();
        let mut cx = Cx::new(p);
        names::file(&mut cx, file, &used);
        found = cx.found;
    }
    p.lints.file = found;
}

/// A warning.
fn warning(code: Code, span: Span, message: impl Into<String>, label: impl Into<String>) -> Diagnostic {
    Diagnostic::error(code, span, message, label).severity(Severity::Warning)
}

/// Calls `stmt` for every statement of a block and `expr` for every expression, inner ones included, outer ones first.
pub(crate) fn each<'h>(b: &'h HBlock, stmt: &mut dyn FnMut(&'h HStmt), expr: &mut dyn FnMut(&'h HExpr)) {
    for s in &b.stmts {
        stmt(s);
        match &s.kind {
            // Code in an `assert_error` is there to fail.
            HStmtKind::Err | HStmtKind::Break | HStmtKind::Continue | HStmtKind::AssertError { .. } => {}
            HStmtKind::Let(_, e) | HStmtKind::Return(e) => e.iter().for_each(|e| each_in(e, stmt, expr)),
            HStmtKind::Assign { value: e, .. } | HStmtKind::Expr(e) => each_in(e, stmt, expr),
            HStmtKind::For { lo, hi, step, body, .. } => {
                [lo, hi, step].into_iter().for_each(|e| each_in(e, stmt, expr));
                each(body, stmt, expr);
            }
            HStmtKind::StaticFor { body, .. } => each(body, stmt, expr),
            HStmtKind::While { cond, body } => {
                each_in(cond, stmt, expr);
                each(body, stmt, expr);
            }
        }
    }
    b.tail.iter().for_each(|e| each_in(e, stmt, expr));
}

fn each_in<'h>(e: &'h HExpr, stmt: &mut dyn FnMut(&'h HStmt), expr: &mut dyn FnMut(&'h HExpr)) {
    expr(e);
    match &e.kind {
        HKind::If { cond: e, then, els } | HKind::IfLet { opt: e, then, els, .. } => {
            each_in(e, stmt, expr);
            each(then, stmt, expr);
            els.iter().for_each(|b| each(b, stmt, expr));
        }
        HKind::Block(b) => each(b, stmt, expr),
        _no_blocks => visit::look(e, &mut |e| each_in(e, stmt, expr)),
    }
}

/// The values of the variables of a function whose only assignment is their declaration.
struct Values<'a>(Vec<Option<&'a HExpr>>);

impl<'a> Values<'a> {
    fn of(f: &'a HFn) -> Values<'a> {
        let mut values = vec![None; f.locals.len()];
        let mut of_let = |s: &'a HStmt| {
            if let HStmtKind::Let(HPat::Local(id), Some(e)) = &s.kind
                && f.locals.get(id.0 as usize).is_some_and(|l| !l.mutable)
                && let Some(slot) = values.get_mut(id.0 as usize)
            {
                *slot = Some(e);
            }
        };
        each(&f.body, &mut of_let, &mut |_| {});
        Values(values)
    }

    fn get(&self, id: LocalId) -> Option<&'a HExpr> {
        self.0.get(id.0 as usize).copied().flatten()
    }
}
