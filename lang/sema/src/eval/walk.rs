//! Owns walks over expressions: the operands of one, and every expression in a piece of code.

use crate::hir::{HArg, HBlock, HExpr, HIndex, HKind, HSlice, HStmtKind, StaticIter};

/// Visits an expression and everything inside it.
pub(crate) fn each_expr<'e>(e: &'e HExpr, f: &mut dyn FnMut(&'e HExpr)) {
    f(e);
    match &e.kind {
        HKind::If { cond, then, els } => {
            each_expr(cond, f);
            each_in_block(then, f);
            els.iter().for_each(|b| each_in_block(b, f));
        }
        HKind::IfLet { opt, then, els, .. } => {
            each_expr(opt, f);
            each_in_block(then, f);
            els.iter().for_each(|b| each_in_block(b, f));
        }
        HKind::Block(b) => each_in_block(b, f),
        HKind::Lambda { body, .. } => each_expr(body, f),
        HKind::Call { cargs, .. } | HKind::Launch { cargs, .. } | HKind::FnRef(_, cargs) => {
            for (_, c) in cargs {
                if let crate::types::CTerm::Expr(x) = c {
                    each_expr(x, f);
                }
            }
            operands(e).into_iter().for_each(|x| each_expr(x, f));
        }
        _other => operands(e).into_iter().for_each(|x| each_expr(x, f)),
    }
}

/// Visits every expression in a block.
pub(crate) fn each_in_block<'e>(b: &'e HBlock, f: &mut dyn FnMut(&'e HExpr)) {
    for s in &b.stmts {
        match &s.kind {
            HStmtKind::Let(_, Some(e)) | HStmtKind::Assign { value: e, .. } | HStmtKind::Expr(e) => {
                each_expr(e, f)
            }
            HStmtKind::Return(e) => e.iter().for_each(|e| each_expr(e, f)),
            HStmtKind::For { lo, hi, step, options, body, .. } => {
                [lo, hi, step].into_iter().for_each(|e| each_expr(e, f));
                options.iter().for_each(|(_, e)| each_expr(e, f));
                each_in_block(body, f);
            }
            HStmtKind::StaticFor { iter, body, .. } => {
                match iter {
                    StaticIter::Range(a, b, c) => [a, b, c].into_iter().for_each(|e| each_expr(e, f)),
                    StaticIter::List(items) => items.iter().for_each(|e| each_expr(e, f)),
                }
                each_in_block(body, f);
            }
            HStmtKind::While { cond, body } => {
                each_expr(cond, f);
                each_in_block(body, f);
            }
            HStmtKind::AssertError { body, .. } => body.iter().for_each(|b| each_in_block(b, f)),
            HStmtKind::Let(_, None) | HStmtKind::Break | HStmtKind::Continue | HStmtKind::Err => {}
        }
    }
    b.tail.iter().for_each(|e| each_expr(e, f));
}

/// The operands of an expression without blocks.
pub(crate) fn operands(e: &HExpr) -> Vec<&HExpr> {
    match &e.kind {
        HKind::Tuple(items) | HKind::Struct(items) | HKind::Shape(items) => items.iter().collect(),
        HKind::Builtin(_, args) => args.iter().flat_map(arg).collect(),
        HKind::ShortCircuit { lhs, rhs, .. } => vec![lhs, rhs],
        HKind::Field(x, _)
        | HKind::Cast(x)
        | HKind::Table(x)
        | HKind::Transpose(x)
        | HKind::ViewT(x)
        | HKind::ViewPtr(x)
        | HKind::Extent(x, _)
        | HKind::Stride(x, _) => vec![x],
        HKind::Index(x, at) => [&**x].into_iter().chain(at.iter().flat_map(index)).collect(),
        HKind::SubView(x, at) => [&**x].into_iter().chain(at.iter().flat_map(slice)).collect(),
        HKind::Call { args, .. } | HKind::Launch { args, .. } => args.iter().collect(),
        HKind::CallValue { callee, args } => [&**callee].into_iter().chain(args).collect(),
        HKind::Return(x) => x.iter().map(|x| &**x).collect(),
        HKind::Err
        | HKind::Int(_)
        | HKind::Float(_)
        | HKind::Bool(_)
        | HKind::Str(_)
        | HKind::None
        | HKind::Unit
        | HKind::Local(_)
        | HKind::CVar(_)
        | HKind::Const(_)
        | HKind::DType(_)
        | HKind::DTypeFact(..)
        | HKind::Target(_)
        | HKind::Device(_)
        | HKind::FnRef(..)
        | HKind::BuiltinRef(_)
        | HKind::Lambda { .. }
        | HKind::If { .. }
        | HKind::IfLet { .. }
        | HKind::Block(_) => vec![],
    }
}

fn arg(a: &HArg) -> &[HExpr] {
    match a {
        HArg::Expr(e) => std::slice::from_ref(e),
        HArg::List(items) => items,
        HArg::Default | HArg::Shape(_) | HArg::Word(_) => &[],
    }
}

fn index(i: &HIndex) -> Vec<&HExpr> {
    match i {
        HIndex::New | HIndex::Whole => vec![],
        HIndex::Slice(a, b) => vec![a, b],
        HIndex::At(i) => vec![i],
    }
}

fn slice(s: &HSlice) -> Vec<&HExpr> {
    match s {
        HSlice::Whole => vec![],
        HSlice::Range(a, b) => a.iter().chain(b).map(|e| &**e).collect(),
        HSlice::At(i) => vec![i],
    }
}
