//! The call graph: recursion is an error, since functions are inlined.

use tk_ops::table::{Effects, Receiver};
use tk_ops::{ControlOp, Op};
use tk_syntax::ast::{self, ExprKind, StmtKind, Subscript};
use tk_syntax::{Diagnostic, codes};

use super::{Def, Program, SigAst};
use crate::hir::FnId;

/// Reports every cycle of calls once, at a call that closes it.
pub(super) fn find(p: &mut Program) {
    let n = p.hir.fns.len();
    let mut edges: Vec<Vec<(FnId, tk_syntax::Span)>> = vec![vec![]; n];
    for (a, b, at) in p.calls() {
        if let Some(e) = edges.get_mut(a.0 as usize) {
            e.push((b, at));
        }
    }
    // 0 unseen, 1 on the path, 2 done. An explicit stack: call chains may be long.
    let mut state = vec![0u8; n];
    for root in 0..n {
        if state.get(root) != Some(&0) {
            continue;
        }
        let mut stack = vec![(root, 0usize)];
        set(&mut state, root, 1);
        while let Some((f, i)) = stack.pop() {
            let Some((callee, at)) = edges.get(f).and_then(|e| e.get(i)).copied() else {
                set(&mut state, f, 2);
                continue;
            };
            stack.push((f, i + 1));
            let c = callee.0 as usize;
            match state.get(c) {
                Some(0) => {
                    set(&mut state, c, 1);
                    stack.push((c, 0));
                }
                Some(1) => {
                    let path: Vec<usize> = stack.iter().map(|s| s.0).skip_while(|x| *x != c).collect();
                    report(p, &path, callee, at);
                }
                _ => {}
            }
        }
    }
}

fn set(state: &mut [u8], i: usize, v: u8) {
    if let Some(s) = state.get_mut(i) {
        *s = v;
    }
}

fn report(p: &mut Program, path: &[usize], callee: FnId, at: tk_syntax::Span) {
    let names: Vec<&str> = path.iter().filter_map(|i| p.hir.fns.get(*i)).map(|f| f.name.as_str()).collect();
    let f = p.hir.func(callee);
    let mut d =
        Diagnostic::error(codes::RECURSION, at, format!("`{}` calls itself", f.name), "recursive call")
            .label(f.span, "declared here");
    if names.len() > 1 {
        d = d.note(format!("cycle: {} → {}", names.join(" → "), f.name));
    }
    d = d.note("functions are inlined, so there is no call stack; use a loop");
    for i in path {
        if let Some(f) = p.hir.fns.get_mut(*i) {
            f.broken = true;
        }
    }
    p.report(d);
}

/// Returns true if a function mentions nothing that reads, writes or asks which program it is; over all that it
/// calls.
///
/// Depth-first with an explicit stack, answers are remembered: call chains may be long. A cycle counts as harmless, it
/// is reported as recursion.
pub(super) fn pure(p: &mut Program, id: FnId) -> bool {
    let mut stack: Vec<(FnId, Vec<FnId>)> = vec![];
    enter(p, id, &mut stack);
    while let Some((f, mut callees)) = stack.pop() {
        match callees.pop() {
            Some(c) => match p.pure.get(&c) {
                Some(true) => stack.push((f, callees)),
                Some(false) => {
                    p.pure.insert(f, false);
                }
                None => {
                    callees.push(c);
                    stack.push((f, callees));
                    enter(p, c, &mut stack);
                }
            },
            None => {
                p.pure.entry(f).or_insert(true);
            }
        }
    }
    p.pure.get(&id) == Some(&true)
}

/// Starts the visit of a function: until its callees are known to be impure, it counts as pure.
fn enter(p: &mut Program, id: FnId, stack: &mut Vec<(FnId, Vec<FnId>)>) {
    if p.pure.contains_key(&id) {
        return;
    }
    let mut callees = vec![];
    let own = own_names_pure(p, id, &mut callees);
    p.pure.insert(id, own);
    if own {
        stack.push((id, callees));
    }
}

/// Rows that stay where they are but read and write nothing.
const COMPILE_TIME: &[&str] = &["range", "static_range", "static_assert", "static_print"];

/// Returns true if the names that one function mentions are harmless; the functions among them are returned.
fn own_names_pure(p: &Program, id: FnId, callees: &mut Vec<FnId>) -> bool {
    let Some(sig) = p.sigs.get(id.0 as usize) else { return false };
    let SigAst::Fn(f) = &sig.ast else { return false };
    let mut names = vec![];
    block_names(&f.body, &mut names);
    names.iter().all(|path| match path.as_slice() {
        [n] => match p.files.get(sig.file).and_then(|f| f.names.get(n)) {
            Some((Def::Fn(g), _)) => {
                callees.push(*g);
                true
            }
            Some(_) => true,
            None => [Receiver::None, Receiver::View].iter().all(|r| {
                tk_ops::rows::find(n, *r).is_none_or(|row| {
                    (row.effects == Effects::Pure || COMPILE_TIME.contains(&row.name))
                        && !matches!(row.op, Op::Control(ControlOp::ProgramId | ControlOp::NumPrograms))
                })
            }),
        },
        [m, n] => match p.files.get(sig.file).and_then(|f| f.names.get(m)) {
            Some((Def::Module(i), _)) => match p.files.get(*i).and_then(|f| f.names.get(n)) {
                Some((Def::Fn(g), _)) => {
                    callees.push(*g);
                    true
                }
                _ => true,
            },
            _ => true,
        },
        _ => true,
    })
}

fn block_names(b: &ast::Block, out: &mut Vec<Vec<String>>) {
    for s in &b.stmts {
        match &s.kind {
            StmtKind::Let { init, .. } => init.iter().for_each(|e| names(e, out)),
            StmtKind::Const(c) => names(&c.value, out),
            StmtKind::Assign { place, value, .. } => {
                names(place, out);
                names(value, out);
            }
            StmtKind::Expr(e) => names(e, out),
            StmtKind::For { iter, body, .. } => {
                names(iter, out);
                block_names(body, out);
            }
            StmtKind::While { cond, body } => {
                names(cond, out);
                block_names(body, out);
            }
            StmtKind::Return(e) => e.iter().for_each(|e| names(e, out)),
            StmtKind::AssertError { body, .. } => block_names(body, out),
            StmtKind::Break | StmtKind::Continue | StmtKind::Err => {}
        }
    }
    b.tail.iter().for_each(|e| names(e, out));
}

/// Every path and method name of an expression.
fn names(e: &ast::Expr, out: &mut Vec<Vec<String>>) {
    match &e.kind {
        ExprKind::Path(p) => out.push(p.segments.iter().map(|s| s.text.clone()).collect()),
        ExprKind::Tuple(es) | ExprKind::Array(es) => es.iter().for_each(|e| names(e, out)),
        ExprKind::Unary(_, a) | ExprKind::Cast(a, _) => names(a, out),
        ExprKind::Binary(_, a, b) => {
            names(a, out);
            names(b, out);
        }
        ExprKind::Index(a, items) => {
            names(a, out);
            for i in items {
                match i {
                    Subscript::Expr(e) | Subscript::Named(_, e) => names(e, out),
                    Subscript::Slice(a, b, _) => a.iter().chain(b).for_each(|e| names(e, out)),
                }
            }
        }
        ExprKind::Call(f, args) => {
            names(f, out);
            args.iter().for_each(|a| names(&a.value, out));
        }
        ExprKind::Member(a, n) => {
            names(a, out);
            out.push(vec![n.text.clone()]);
        }
        ExprKind::If(c, t, f) => {
            names(c, out);
            block_names(t, out);
            f.iter().for_each(|e| names(e, out));
        }
        ExprKind::IfLet(_, c, t, f) => {
            names(c, out);
            block_names(t, out);
            f.iter().for_each(|e| names(e, out));
        }
        ExprKind::Block(b) => block_names(b, out),
        ExprKind::Lambda(_, b) => names(b, out),
        ExprKind::Return(x) => x.iter().for_each(|e| names(e, out)),
        ExprKind::Int(_)
        | ExprKind::Float(_)
        | ExprKind::Str(_)
        | ExprKind::Bool(_)
        | ExprKind::None
        | ExprKind::Type(_)
        | ExprKind::Err => {}
    }
}
