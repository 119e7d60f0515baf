//! The lints: warnings about valid programs that probably do not do what was intended.
//!
//! A lint is a file. It sees only checked functions without errors: one mistake gives one message, so a function with
//! an error has no warnings, and neither has a file that could not be parsed completely. Only the requested file is
//! linted, since the others cannot be fixed from there, and a lint that cannot decide is silent.

mod dropped;
mod mask;
mod names;
mod padding;
mod shadow;
mod stride;

use std::collections::BTreeSet;

use tk_syntax::{Code, Diagnostic, FileId, Severity, SourceMap, Span, ast};

use crate::check::Program;
use crate::hir::{FnKind, HBlock, HExpr, HFn, HKind, HPat, HStmt, HStmtKind, Hir, LocalId};
use crate::visit;

/// The input of lints.
struct Cx<'a> {
    hir: &'a Hir,
    sources: &'a SourceMap,
    file: &'a ast::File,
    /// The names of functions that have an error, by their places.
    broken: BTreeSet<Span>,
    /// Whether something is wrong anywhere, so that a missing use may be a mistake elsewhere.
    errors: bool,
    found: Vec<Diagnostic>,
}

impl<'a> Cx<'a> {
    fn warn(&mut self, d: Diagnostic) {
        self.found.push(d);
    }

    /// The functions and kernels of the file that have no error.
    fn fns(&self) -> impl Iterator<Item = &'a HFn> + use<'a> {
        let own = |f: &&HFn| f.file == MAIN && !f.broken && f.kind != FnKind::Test;
        self.hir.fns.iter().filter(own)
    }
}

/// A warning.
fn warning(code: Code, span: Span, message: impl Into<String>, label: impl Into<String>) -> Diagnostic {
    Diagnostic::error(code, span, message, label).severity(Severity::Warning)
}

/// The file that was asked for.
const MAIN: FileId = FileId(0);

/// Runs every lint on the file that was asked for.
pub(crate) fn run(p: &mut Program) {
    let Some(file) = p.files.first().map(|f| f.ast.clone()) else { return };
    // What could not be read may use anything.
    let unread = |d: &Diagnostic| d.primary.span.file == MAIN && d.code.0.starts_with("E01");
    if p.diags.iter().any(unread) {
        return;
    }
    let broken = p.hir.fns.iter().filter(|f| f.broken).map(|f| f.span).collect();
    let errors = p.diags.iter().any(Diagnostic::is_error);
    let mut cx = Cx { hir: &p.hir, sources: &p.sources, file: &file, broken, errors, found: vec![] };
    names::run(&mut cx);
    shadow::run(&mut cx);
    dropped::run(&mut cx);
    stride::run(&mut cx);
    mask::run(&mut cx);
    padding::run(&mut cx);
    let found = cx.found;
    p.diags.extend(found);
}

/// Calls `stmt` for every statement of a block and `expr` for every expression, inner ones included, outer ones first.
fn each<'h>(b: &'h HBlock, stmt: &mut dyn FnMut(&'h HStmt), expr: &mut dyn FnMut(&'h HExpr)) {
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
