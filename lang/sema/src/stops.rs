//! Where a debugger stops in a file: [`statements`]; and where it cannot, because the compiler evaluates it: [`evaluated`].

use std::collections::BTreeSet;

use tk_syntax::{FileId, Span};

use crate::hir::{Contract, FnId, HExpr, HKind, Hir};
use crate::{lint, visit};

/// The statements of the functions and tests of a file, and the values of blocks and lambdas, which end them.
pub fn statements(hir: &Hir, file: FileId) -> Vec<Span> {
    let mut found = vec![];
    for f in hir.fns.iter().filter(|f| f.file == file) {
        let mut tails = vec![];
        let mut expr = |e: &HExpr| match &e.kind {
            HKind::If { then, els, .. } | HKind::IfLet { then, els, .. } => {
                let blocks = std::iter::once(then).chain(els);
                tails.extend(blocks.filter_map(|b| Some(b.tail.as_ref()?.span)));
            }
            HKind::Block(b) => tails.extend(b.tail.as_ref().map(|t| t.span)),
            HKind::Lambda { body, .. } => tails.extend(lambda_value(body)),
            _other => {}
        };
        lint::each(&f.body, &mut |s| found.push(s.span), &mut expr);
        found.extend(f.body.tail.as_ref().map(|t| t.span));
        found.append(&mut tails);
    }
    found
}

/// The body of a lambda that has no block.
pub(crate) fn lambda_value(body: &HExpr) -> Option<Span> {
    (!matches!(body.kind, HKind::Block(_))).then_some(body.span)
}

/// The places of a file where no program runs, and why: values of constants, clauses, and functions that only such code
/// calls.
pub fn evaluated(hir: &Hir, file: FileId) -> Vec<(Span, String)> {
    let mut found = vec![];
    let mut called = BTreeSet::new();
    let mut compile_time = |e: &HExpr| visit::each_expr(e, &mut |e| called.extend(callee(e)));
    for c in &hir.consts {
        compile_time(&c.value);
        if c.value.span.file == file {
            found.push((
                c.span.to(c.value.span),
                format!("the constant `{}` is evaluated at compile time", c.name),
            ));
        }
    }
    hir.opaque.iter().for_each(&mut compile_time);
    for f in &hir.fns {
        for e in clauses(&f.contract) {
            compile_time(e);
            if f.file == file {
                found.push((e.span, format!("the clauses of `{}` are evaluated before its launch", f.name)));
            }
        }
    }
    let mut run = BTreeSet::new();
    for f in &hir.fns {
        visit::look_block(&f.body, &mut |e| divide(e, &mut run, &mut called));
    }
    for id in called.difference(&run) {
        let f = hir.func(*id);
        if f.file == file {
            found.push((f.span.to(f.body.span), format!("`{}` is called only at compile time", f.name)));
        }
    }
    found
}

/// The functions that an expression calls when it runs, and those that the compiler calls for it.
fn divide(e: &HExpr, run: &mut BTreeSet<FnId>, called: &mut BTreeSet<FnId>) {
    match callee(e) {
        Some(id) if e.konst => called.insert(id),
        // What becomes of a function value is not followed.
        Some(id) => run.insert(id),
        None => false,
    };
    if let HKind::FnRef(id, _) = &e.kind {
        run.insert(*id);
    }
    visit::look(e, &mut |e| divide(e, run, called));
}

fn callee(e: &HExpr) -> Option<FnId> {
    if let HKind::Call { callee, .. } = &e.kind { Some(*callee) } else { None }
}

fn clauses(c: &Contract) -> impl Iterator<Item = &HExpr> {
    let conditions = c.require.iter().chain(c.prefer.iter().flatten()).map(|r| &r.cond);
    let launch = c.launch.iter().map(|(_, e)| e);
    c.grid.iter().chain(conditions).chain(launch).chain(c.scratch.iter().map(|s| &s.count))
}
