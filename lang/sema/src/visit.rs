//! The walk over HIR expressions: the one place that knows the subexpressions of each expression.

use crate::hir::{HArg, HBlock, HExpr, HIndex, HKind, HSlice, HStmtKind, StaticIter};
use crate::types::CTerm;

/// The walk, for borrows of one kind.
macro_rules! walk {
    ($children:ident, $block:ident, $term:ident, $iter:ident $(, $m:tt)?) => {
        /// Calls `f` for every expression directly inside `h`, those in its blocks and compile-time arguments included.
        pub(crate) fn $children<'h>(h: &'h $($m)? HExpr, f: &mut dyn FnMut(&'h $($m)? HExpr)) {
            match &$($m)? h.kind {
                HKind::Shape(es) | HKind::Tuple(es) | HKind::Struct(es) => es.$iter().for_each(f),
                HKind::Field(e, _)
                | HKind::Cast(e)
                | HKind::Table(e)
                | HKind::Transpose(e)
                | HKind::ViewT(e)
                | HKind::ViewPtr(e)
                | HKind::Extent(e, _)
                | HKind::Stride(e, _)
                | HKind::Lambda { body: e, .. } => f(e),
                HKind::Builtin(_, args) => args.$iter().for_each(|a| match a {
                    HArg::Expr(e) => f(e),
                    HArg::List(es) => es.$iter().for_each(&mut *f),
                    HArg::Default | HArg::Shape(_) | HArg::Word(_) => {}
                }),
                HKind::Extents { view, .. } => f(view),
                HKind::ShortCircuit { lhs, rhs, .. } | HKind::Entry(lhs, rhs) => {
                    f(lhs);
                    f(rhs);
                }
                HKind::Index(e, items) => {
                    f(e);
                    for i in items {
                        match i {
                            HIndex::New | HIndex::Whole => {}
                            HIndex::Slice(a, b) => {
                                f(a);
                                f(b);
                            }
                            HIndex::At(a) => f(a),
                        }
                    }
                }
                HKind::SubView(e, items) => {
                    f(e);
                    for i in items {
                        match i {
                            HSlice::Whole => {}
                            HSlice::Range(a, b) => a.$iter().chain(b).for_each(|x| f(x)),
                            HSlice::At(a) => f(a),
                        }
                    }
                }
                HKind::Call { cargs, args, .. } | HKind::Launch { cargs, args, .. } => {
                    cargs.$iter().for_each(|(_, c)| $term(c, f));
                    args.$iter().for_each(f);
                }
                HKind::CallValue { callee, args } => {
                    f(callee);
                    args.$iter().for_each(f);
                }
                HKind::FnRef(_, cargs) => cargs.$iter().for_each(|(_, c)| $term(c, f)),
                HKind::If { cond: e, then, els } | HKind::IfLet { opt: e, then, els, .. } => {
                    f(e);
                    $block(then, f);
                    els.$iter().for_each(|b| $block(b, f));
                }
                HKind::Block(b) => $block(b, f),
                HKind::Return(e) => e.$iter().for_each(|e| f(e)),
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
                | HKind::BuiltinRef(_) => {}
            }
        }

        fn $term<'h>(c: &'h $($m)? CTerm, f: &mut dyn FnMut(&'h $($m)? HExpr)) {
            match c {
                CTerm::Expr(e) => f(e),
                CTerm::Int(_) | CTerm::DType(_) | CTerm::Shape(_) | CTerm::Err => {}
            }
        }

        /// Calls `f` for every expression directly inside a block.
        pub(crate) fn $block<'h>(b: &'h $($m)? HBlock, f: &mut dyn FnMut(&'h $($m)? HExpr)) {
            for s in &$($m)? b.stmts {
                match &$($m)? s.kind {
                    HStmtKind::Err | HStmtKind::Break | HStmtKind::Continue => {}
                    HStmtKind::Let(_, e) | HStmtKind::Return(e) => e.$iter().for_each(&mut *f),
                    HStmtKind::Assign { value: e, .. } | HStmtKind::Expr(e) => f(e),
                    HStmtKind::For { lo, hi, step, options, body, .. } => {
                        [lo, hi, step].into_iter().for_each(&mut *f);
                        options.$iter().for_each(|(_, e)| f(e));
                        $block(body, f);
                    }
                    HStmtKind::StaticFor { iter, body, .. } => {
                        match iter {
                            StaticIter::Range(a, b, c) => [a, b, c].into_iter().for_each(&mut *f),
                            StaticIter::List(es) => es.$iter().for_each(&mut *f),
                        }
                        $block(body, f);
                    }
                    HStmtKind::While { cond, body } => {
                        f(cond);
                        $block(body, f);
                    }
                    HStmtKind::AssertError { body, .. } => body.$iter().for_each(|b| $block(b, f)),
                }
            }
            b.tail.$iter().for_each(|e| f(e));
        }
    };
}

walk!(children, block, term, iter_mut, mut);
walk!(look, look_block, look_term, iter);

/// Calls `f` for an expression and everything inside it.
pub(crate) fn each_expr<'h>(h: &'h HExpr, f: &mut dyn FnMut(&'h HExpr)) {
    f(h);
    look(h, &mut |e| each_expr(e, f));
}

/// Calls `f` for every expression in a block.
pub(crate) fn each_in_block<'h>(b: &'h HBlock, f: &mut dyn FnMut(&'h HExpr)) {
    look_block(b, &mut |e| each_expr(e, f));
}

/// Returns true if an expression contains a hole, whose mistake has been reported.
pub(crate) fn has_hole(h: &HExpr) -> bool {
    let mut found = matches!(h.kind, HKind::Err);
    look(h, &mut |e| found = found || has_hole(e));
    found
}
