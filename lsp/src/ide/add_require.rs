//! The action that makes a condition over arguments a requirement of the launch or the call, where it fails with a sentence
//! before anything runs.
//!
//! Offered for a selected condition, and for the comparison around the cursor, if every call comes to it (the condition of an
//! `assert`, or of an `if` that only returns, which is negated), and the names in it are those of the signature, of the
//! file, or of variables that have one value computed from these.

use std::ops::Range;

use tk_ops::DType;
use tk_sema::index::SymbolKind;
use tk_sema::types::Ty;
use tk_syntax::Span;
use tk_syntax::ast::{BinOp, Expr, ExprKind, Fn, ItemKind, StmtKind};

use super::actions::{Action, ActionKind};
use super::inline_let::is_atom;
use super::walk::{Node, around, declaration};
use super::{Analysis, TextEdit};

/// The variables of variables that are replaced by their values.
const DEPTH: usize = 8;

/// The action for a selection, or for the place of the cursor if nothing is selected.
pub fn add_require(a: &Analysis, range: &Range<usize>) -> Option<Action> {
    let text = a.root_text().get(range.clone())?;
    let start = a.offset(range.start + (text.len() - text.trim_start().len()))?;
    let end = a.offset(range.start + text.trim_end().len())?;
    let nodes = around(a.root()?, start);
    let owner = owner(&nodes)?;
    let found = nodes.iter().rev().filter_map(|n| if let Node::Expr(e) = n { Some(*e) } else { None });
    let found = found.into_iter().find(|e| match start < end {
        true => (e.span.start, e.span.end) == (start, end),
        false => is_comparison(e),
    })?;
    let holds = holds(a, owner, found)?;
    let condition = in_signature(a, found, DEPTH).filter(|_| is_condition(a, found))?;
    let condition = if holds { condition } else { format!("!({condition})") };
    let is_required = |arg: &tk_syntax::ast::Arg| a.text(arg.value.span) == condition;
    let mut clauses = owner.clauses.iter().filter(|c| c.name.text == "require");
    if clauses.any(|c| c.args.iter().any(is_required)) {
        return None;
    }
    let (place, text) = owner.with_require(&condition);
    let edits = vec![TextEdit { place: a.place(place), text }];
    let title = format!("add `require({condition})` to the signature");
    Some(Action { title, kind: ActionKind::Refactor, edits, diagnostic: None })
}

/// The innermost function or kernel.
fn owner<'a>(nodes: &[Node<'a>]) -> Option<&'a Fn> {
    nodes.iter().rev().find_map(|n| match n {
        Node::Item(item) => match &item.kind {
            ItemKind::Fn(f) => Some(&**f),
            _other => None,
        },
        _other => None,
    })
}

/// Whether a condition holds where a call goes on: true for one of an `assert`, false for one of an `if` that only returns.
/// `None` for any other condition, and for those that not every call comes to.
fn holds(a: &Analysis, owner: &Fn, condition: &Expr) -> Option<bool> {
    let own =
        owner.body.stmts.iter().filter_map(|s| if let StmtKind::Expr(e) = &s.kind { Some(e) } else { None });
    let mut own = own.chain(owner.body.tail.as_deref());
    let e = own.find(|e| e.span.start <= condition.span.start && condition.span.end <= e.span.end)?;
    match &e.kind {
        ExprKind::Call(callee, args) if matches!(a.text(callee.span), "assert" | "static_assert") => {
            is_part(&args.first()?.value, condition, BinOp::And).then_some(true)
        }
        ExprKind::If(c, then, None) => {
            let returns = matches!(then.stmts.as_slice(), [s] if matches!(s.kind, StmtKind::Return(_)));
            (returns && then.tail.is_none() && is_part(c, condition, BinOp::Or)).then_some(false)
        }
        _other => None,
    }
}

/// Returns true if an expression is another one, or is joined to others by an operator to be that one.
fn is_part(e: &Expr, part: &Expr, join: BinOp) -> bool {
    let parts = |l: &Expr, r: &Expr| is_part(l, part, join) || is_part(r, part, join);
    e.span == part.span || matches!(&e.kind, ExprKind::Binary(op, l, r) if *op == join && parts(l, r))
}

fn is_comparison(e: &Expr) -> bool {
    use BinOp::{Eq, Ge, Gt, Le, Lt, Ne};
    matches!(&e.kind, ExprKind::Binary(op, ..) if matches!(op, Eq | Ne | Lt | Le | Gt | Ge))
}

/// Returns true for one truth value.
fn is_condition(a: &Analysis, e: &Expr) -> bool {
    a.index.type_of(e.span).is_some_and(|ty| *ty == Ty::scalar(DType::Bool))
}

/// An expression as the signature would write it; `None` if it names what the signature does not know.
fn in_signature(a: &Analysis, e: &Expr, depth: usize) -> Option<String> {
    let mut replaced: Vec<(Span, String)> = vec![];
    let mut is_known = true;
    Node::Expr(e).each(&mut |n| {
        let Node::Expr(name) = n else { return };
        let ExprKind::Path(_) = name.kind else { return };
        let symbol = a.index.reference(name.span).and_then(|r| a.index.symbol(r.symbol));
        let Some(SymbolKind::Local(_)) = symbol.map(|s| &s.kind) else { return };
        let value = symbol.filter(|s| !s.mutable && depth > 0).and_then(|s| declaration(a.root()?, s.span?));
        match value.and_then(|found| Some((found.init, in_signature(a, found.init, depth - 1)?))) {
            Some((init, text)) if is_atom(init) => replaced.push((name.span, text)),
            Some((_, text)) => replaced.push((name.span, format!("({text})"))),
            None => is_known = false,
        }
    });
    let mut text = a.text(e.span).to_string();
    for (span, value) in replaced.iter().rev() {
        let at = |offset: u32| (offset - e.span.start) as usize;
        text.replace_range(at(span.start)..at(span.end), value);
    }
    is_known.then_some(text)
}
