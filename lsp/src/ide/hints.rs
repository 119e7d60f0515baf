//! Inlay hints: inferred types and compile-time arguments.

use std::ops::Range;

use tk_ops::table::ParamKind;
use tk_sema::hir::CVarId;
use tk_sema::index::SymbolKind;
use tk_sema::show;
use tk_sema::types::CTerm;
use tk_syntax::Span;
use tk_syntax::ast::{Expr, ExprKind, Pat, StmtKind, Subscript, UnOp};

use super::scope::pattern;
use super::walk::Node;
use super::{Analysis, Workspace};

/// The kinds of hints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HintKind {
    /// The type of a variable.
    Type,
    /// Compile-time arguments of a call.
    Argument,
}

/// Text that is shown but not written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// Where.
    pub offset: usize,
    /// The text.
    pub label: String,
    /// The kind of hint.
    pub kind: HintKind,
    /// Whether it belongs to what follows it.
    pub before: bool,
}

/// The hints of a range, in order.
pub fn hints(ws: &mut Workspace, path: &str, range: Range<usize>) -> Vec<Hint> {
    let a = ws.analysis(path);
    let Some(file) = a.root() else { return vec![] };
    let mut out = vec![];
    let wanted = |n: &Node| (n.span().start as usize) < range.end && range.start < n.span().end as usize;
    let mut add = |n: Node| match n {
        Node::Stmt(s) if wanted(&n) => match &s.kind {
            StmtKind::Let { ty: None, init: Some(e), .. } if says_type(&a, e) => {}
            StmtKind::Let { pat, ty: None, .. } | StmtKind::For { pat, .. } => types(&a, pat, &mut out),
            _other => {}
        },
        Node::Expr(e) if wanted(&n) => match &e.kind {
            ExprKind::Call(f, _) => out.extend(arguments(&a, e, f)),
            ExprKind::Lambda(params, _) => {
                params.iter().filter(|p| p.1.is_none()).for_each(|p| types(&a, &p.0, &mut out));
            }
            _other => {}
        },
        _other => {}
    };
    file.items.iter().map(Node::Item).filter(wanted).for_each(|item| item.each(&mut add));
    out.retain(|h| range.contains(&h.offset) || h.offset == range.end);
    out.sort_by_key(|h| h.offset);
    out
}

/// Returns true for an expression in which its type is written: a literal, a constructor, a conversion to a type.
fn says_type(a: &Analysis, e: &Expr) -> bool {
    let is_type = |span: Span| a.index.type_of(e.span).is_some_and(|ty| a.show(ty) == a.text(span));
    match &e.kind {
        ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) | ExprKind::Str(_) => true,
        ExprKind::Unary(UnOp::Neg, of) => matches!(of.kind, ExprKind::Int(_) | ExprKind::Float(_)),
        ExprKind::Cast(_, to) => is_type(to.span),
        ExprKind::Call(f, args) => {
            let name = match &f.kind {
                ExprKind::Index(of, _) => of.span,
                _name => f.span,
            };
            let symbol = a.index.reference(name).and_then(|r| super::describe::resolve(a, r.symbol));
            match symbol.map(|s| &s.kind) {
                Some(SymbolKind::Struct(_)) => is_type(f.span),
                Some(SymbolKind::Builtin(row)) => {
                    let given = |kind: ParamKind| {
                        let at = row.params.iter().position(|p| p.kind == kind)?;
                        let name = row.params.get(at)?.name;
                        let named = args.iter().find(|x| x.name.as_ref().is_some_and(|n| n.text == name));
                        named.or(args.get(at).filter(|x| x.name.is_none())).map(|x| &x.value)
                    };
                    let Some(dtype) = given(ParamKind::DType) else { return false };
                    let has_shape = |e: &Expr| matches!(e.kind, ExprKind::Array(_));
                    given(ParamKind::Shape).is_some_and(has_shape) || is_type(dtype.span)
                }
                _other => false,
            }
        }
        _other => false,
    }
}

/// The types of the names of a pattern.
fn types(a: &Analysis, p: &Pat, out: &mut Vec<Hint>) {
    let mut names = vec![];
    pattern(p, &mut names);
    for n in names {
        let symbol = a.index.reference(n.span).and_then(|r| a.index.symbol(r.symbol));
        let label = symbol.and_then(|s| match &s.kind {
            SymbolKind::Local(ty) | SymbolKind::Param(ty) if !ty.is_err() => {
                Some(a.show(ty)).filter(|ty| is_known(ty)).map(|ty| format!(": {ty}"))
            }
            _compile_time => None,
        });
        let offset = n.span.end as usize;
        out.extend(label.map(|label| Hint { offset, label, kind: HintKind::Type, before: false }));
    }
}

/// The compile-time arguments of a call that were not written and do not come from a default.
fn arguments(a: &Analysis, call: &Expr, callee: &Expr) -> Option<Hint> {
    let fact = a.index.call(call.span)?;
    let hir = &a.checked.hir;
    let (written, offset): (Vec<&str>, u32) = match &callee.kind {
        ExprKind::Index(_, items) => {
            let name = |i: &'_ Subscript| match i {
                Subscript::Named(n, _) => Some(n.span),
                Subscript::Expr(_) | Subscript::Slice(..) => None,
            };
            (items.iter().filter_map(name).map(|s| a.text(s)).collect(), callee.span.end.saturating_sub(1))
        }
        _name => (vec![], callee.span.end),
    };
    let inferred: Vec<(CVarId, CTerm)> = fact
        .cargs
        .iter()
        .filter(|(c, _)| {
            let known = hir.cvars.get(c.0 as usize);
            known.is_some_and(|v| v.default.is_none() && !written.contains(&v.name.as_str()))
        })
        // `[T = T]` says nothing.
        .filter(|(c, t)| hir.cvars.get(c.0 as usize).is_none_or(|v| shown(a, t).as_ref() != Some(&v.name)))
        .filter(|(_, t)| shown(a, t).is_none_or(|text| is_known(&text)))
        .cloned()
        .collect();
    let list = cargs(a, &inferred);
    if list.is_empty() {
        return None;
    }
    let label = if written.is_empty() { format!("[{list}]") } else { format!(", {list}") };
    Some(Hint { offset: offset as usize, label, kind: HintKind::Argument, before: false })
}

/// Returns true unless a type or value has a part that is not known, which is shown as `_`.
fn is_known(text: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').all(|word| word != "_")
}

/// `T = f16, BM = 64`
pub(super) fn cargs(a: &Analysis, list: &[(CVarId, CTerm)]) -> String {
    let name = |c: &CVarId| a.checked.hir.cvars.get(c.0 as usize).map(|v| &v.name);
    let one = |(c, t): &(CVarId, CTerm)| Some(format!("{} = {}", name(c)?, shown(a, t)?));
    list.iter().filter_map(one).collect::<Vec<_>>().join(", ")
}

/// A compile-time value; nothing for one that is not known because of an error.
fn shown(a: &Analysis, t: &CTerm) -> Option<String> {
    match t {
        CTerm::Expr(e) => Some(super::describe::line(a.text(e.span))),
        CTerm::Err => None,
        CTerm::Int(_) | CTerm::DType(_) | CTerm::Shape(_) => Some(show::cterm(&a.checked.hir, t)),
    }
}
