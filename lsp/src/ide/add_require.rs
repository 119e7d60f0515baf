//! The action that makes a condition over arguments a requirement of the launch or the call, where it fails with a sentence
//! before anything runs.
//!
//! Offered for a selected condition or its statement, and for the comparison, `&&` or `||` around the cursor, or all of the
//! condition behind the word `assert` or `if`, if every call comes to it (the condition of an `assert`, or of an `if` that only
//! returns before anything is written, which is negated), and the names in it are those of the signature, at least one
//! argument among them, of the file, or of variables that have one value computed from these.

use std::ops::Range;

use tk_ops::DType;
use tk_ops::table::Effects;
use tk_sema::index::SymbolKind;
use tk_sema::types::Ty;
use tk_syntax::Span;
use tk_syntax::ast::{BinOp, Expr, ExprKind, Fn, ItemKind, StmtKind, UnOp};

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
    let found = of_statement(a, owner, (start, end)).or_else(|| {
        let mut found =
            nodes.iter().rev().filter_map(|n| if let Node::Expr(e) = n { Some(*e) } else { None });
        found.find(|e| match start < end {
            true => (e.span.start, e.span.end) == (start, end),
            false => is_comparison(e) || joins(e, start),
        })
    })?;
    let holds = holds(a, owner, found)?;
    if !names_argument(a, owner, found, DEPTH) {
        return None;
    }
    if !is_condition(a, found) {
        return None;
    }
    let condition = if holds { in_signature(a, owner, found, DEPTH)? } else { negated(a, owner, found)? };
    let is_required = |arg: &tk_syntax::ast::Arg| a.text(arg.value.span) == condition;
    let mut clauses = owner.clauses.iter().filter(|c| c.name.text == "require");
    if clauses.any(|c| c.args.iter().any(is_required)) {
        return None;
    }
    let (place, text) = own_line(a, owner, owner.with_require(&condition));
    let edits = vec![TextEdit { place: a.place(place), text }];
    let title = format!("add `require({condition})` to the signature");
    Some(Action { title, kind: ActionKind::Refactor, edits, diagnostic: None })
}

/// The edit that adds a clause, with a line for it as `tk fmt` has it where the file has not that layout: the brace of the body
/// goes to a line of its own.
fn own_line(a: &Analysis, owner: &Fn, (place, text): (Span, String)) -> (Span, String) {
    let text_of = |start: u32, end: u32| a.text(Span { start, end, ..place });
    let begin = a.root_text().get(..owner.sig_span.start as usize).unwrap_or("");
    let line = begin.rsplit('\n').next().unwrap_or("");
    let indent: String = line.chars().take_while(|c| *c == ' ').collect();
    let brace = owner.body.span.start;
    if !text.starts_with(' ') {
        return (place, text);
    }
    // It comes behind the comments that follow the last clause.
    let comments = text_of(place.end, brace).trim_end().len() as u32;
    let clause = format!("\n{indent}    {}\n{indent}", text.trim_start());
    (Span { start: place.end + comments, end: brace, ..place }, clause)
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

/// The condition of an `assert` or `if` of the function that is selected, or whose word the cursor is at.
fn of_statement<'a>(a: &Analysis, owner: &'a Fn, (start, end): (u32, u32)) -> Option<&'a Expr> {
    own(owner).find_map(|(whole, e)| {
        let (word, condition) = match &e.kind {
            ExprKind::Call(callee, args) if is_assert(a, callee) => (callee.span, &args.first()?.value),
            ExprKind::If(c, ..) => (Span { end: e.span.start + 2, ..e.span }, &**c),
            _other => return None,
        };
        let is_selected = start == e.span.start && (end == e.span.end || end == whole.end);
        let is_at_word = start == end && word.start <= start && start <= word.end;
        (start < end && is_selected || is_at_word).then_some(condition)
    })
}

fn is_assert(a: &Analysis, callee: &Expr) -> bool {
    matches!(a.text(callee.span), "assert" | "static_assert")
}

/// The expressions that are statements of the body itself, with the extents of these.
fn own(owner: &Fn) -> impl Iterator<Item = (Span, &Expr)> {
    let own = owner.body.stmts.iter();
    let own = own.filter_map(|s| if let StmtKind::Expr(e) = &s.kind { Some((s.span, e)) } else { None });
    own.chain(owner.body.tail.as_deref().map(|e| (e.span, e)))
}

/// Returns true for `&&` or `||` at an offset.
fn joins(e: &Expr, at: u32) -> bool {
    matches!(&e.kind, ExprKind::Binary(BinOp::And | BinOp::Or, l, r) if l.span.end < at && at < r.span.start)
}

/// Returns true if a condition depends on an argument, a compile-time one included.
fn names_argument(a: &Analysis, owner: &Fn, e: &Expr, depth: usize) -> bool {
    let mut is_named = false;
    Node::Expr(e).each(&mut |n| {
        let Node::Expr(Expr { kind: ExprKind::Path(_), span }) = n else { return };
        let symbol = a.index.reference(*span).and_then(|r| a.index.symbol(r.symbol));
        let Some(symbol) = symbol else { return };
        let is_own = |s: Span| owner.cparams.iter().any(|c| c.name.span == s);
        is_named |= match (&symbol.kind, symbol.span) {
            (SymbolKind::Param(_), _) => true,
            (SymbolKind::CVar(_), Some(s)) => is_own(s),
            (SymbolKind::Local(_), Some(s)) if depth > 0 => {
                let value = a.root().and_then(|f| declaration(f, s));
                value.is_some_and(|found| names_argument(a, owner, found.init, depth - 1))
            }
            _other => false,
        };
    });
    is_named
}

/// Returns true if a statement before a place may leave something behind: it writes, or calls what may.
fn writes_before(a: &Analysis, owner: &Fn, place: Span) -> bool {
    let mut writes = false;
    for s in owner.body.stmts.iter().take_while(|s| s.span.end <= place.start) {
        Node::Stmt(s).each(&mut |n| {
            let Node::Expr(Expr { kind: ExprKind::Call(callee, _), .. }) = n else { return };
            let name = match &callee.kind {
                ExprKind::Member(_, name) => name.span,
                ExprKind::Index(of, _) => of.span,
                _name => callee.span,
            };
            let symbol = a.index.reference(name).and_then(|r| super::describe::resolve(a, r.symbol));
            writes |= match symbol.map(|s| &s.kind) {
                Some(SymbolKind::Builtin(row)) => {
                    matches!(row.effects, Effects::Write | Effects::Ordered) && !is_assert(a, callee)
                }
                // A function without a result is called for what it does.
                Some(SymbolKind::Fn(id)) => {
                    let f = a.checked.hir.fns.get(id.0 as usize);
                    f.is_none_or(|f| f.ret == Ty::Unit)
                }
                _value => false,
            };
        });
    }
    writes
}

/// Returns true if every call comes to a statement of the body: nothing before it returns, and no loop may go on for ever.
fn is_reached(owner: &Fn, place: Span) -> bool {
    let mut is_reached = true;
    for s in owner.body.stmts.iter().take_while(|s| s.span.end <= place.start) {
        Node::Stmt(s).each(&mut |n| {
            is_reached &= match n {
                Node::Stmt(s) => !matches!(s.kind, StmtKind::Return(_) | StmtKind::While { .. }),
                Node::Expr(e) => !matches!(e.kind, ExprKind::Return(_)),
                _other => true,
            };
        });
    }
    is_reached
}

/// Whether a condition holds where a call goes on: true for one of an `assert`, false for one of an `if` that only returns.
/// `None` for any other condition, and for those that not every call comes to.
fn holds(a: &Analysis, owner: &Fn, condition: &Expr) -> Option<bool> {
    let (_, e) =
        own(owner).find(|(_, e)| e.span.start <= condition.span.start && condition.span.end <= e.span.end)?;
    if !is_reached(owner, e.span) {
        return None;
    }
    match &e.kind {
        ExprKind::Call(callee, args) if is_assert(a, callee) => {
            is_part(&args.first()?.value, condition, BinOp::And).then_some(true)
        }
        ExprKind::If(c, then, None) => {
            let returns = matches!(then.stmts.as_slice(), [s] if matches!(s.kind, StmtKind::Return(_)));
            let leaves = returns && then.tail.is_none() && !writes_before(a, owner, e.span);
            (leaves && is_part(c, condition, BinOp::Or)).then_some(false)
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

/// Returns true if a block of a function has a constant with a name.
fn has_constant(owner: &Fn, name: &str) -> bool {
    let mut found = false;
    Node::Block(&owner.body).each(&mut |n| {
        found |= matches!(n, Node::Stmt(s) if matches!(&s.kind, StmtKind::Const(c) if c.name.text == name));
    });
    found
}

/// The opposite of a condition as the signature would write it.
fn negated(a: &Analysis, owner: &Fn, e: &Expr) -> Option<String> {
    match &e.kind {
        ExprKind::Unary(UnOp::Not, inner) => in_signature(a, owner, inner, DEPTH),
        ExprKind::Binary(op, l, r) => {
            let Some(opposite) = opposite(*op, is_integer(a, l) && is_integer(a, r)) else {
                return Some(format!("!({})", in_signature(a, owner, e, DEPTH)?));
            };
            let between = Span { start: l.span.end, end: r.span.start, ..e.span };
            let start = between.start + u32::try_from(a.text(between).find(op.symbol())?).ok()?;
            let place = Span { start, end: start + op.symbol().len() as u32, ..e.span };
            written(a, owner, e, DEPTH, vec![(place, opposite.symbol().to_string())])
        }
        _other => Some(format!("!({})", in_signature(a, owner, e, DEPTH)?)),
    }
}

/// The comparison that holds where another one does not. NaN have no order.
fn opposite(op: BinOp, is_ordered: bool) -> Option<BinOp> {
    use BinOp::{Eq, Ge, Gt, Le, Lt, Ne};
    match op {
        Eq => Some(Ne),
        Ne => Some(Eq),
        Lt if is_ordered => Some(Ge),
        Le if is_ordered => Some(Gt),
        Gt if is_ordered => Some(Le),
        Ge if is_ordered => Some(Lt),
        _other => None,
    }
}

/// Returns true for an integer, and for a literal of one.
fn is_integer(a: &Analysis, e: &Expr) -> bool {
    let is_of = |d: DType| a.index.type_of(e.span).is_some_and(|ty| *ty == Ty::scalar(d));
    matches!(e.kind, ExprKind::Int(_)) || DType::ALL.into_iter().any(|d| d.is_int() && is_of(d))
}

/// An expression as the signature would write it; `None` if it names what the signature does not know.
fn in_signature(a: &Analysis, owner: &Fn, e: &Expr, depth: usize) -> Option<String> {
    written(a, owner, e, depth, vec![])
}

/// The same with other text at some places.
fn written(
    a: &Analysis,
    owner: &Fn,
    e: &Expr,
    depth: usize,
    mut replaced: Vec<(Span, String)>,
) -> Option<String> {
    let mut is_known = true;
    Node::Expr(e).each(&mut |n| {
        let Node::Expr(name) = n else { return };
        let ExprKind::Path(path) = &name.kind else { return };
        let symbol = a.index.reference(name.span).and_then(|r| a.index.symbol(r.symbol));
        let Some(SymbolKind::Local(_)) = symbol.map(|s| &s.kind) else {
            // A constant of a block means something else in the signature, or nothing.
            let body = owner.body.span;
            is_known &= match symbol.and_then(|s| s.span) {
                Some(s) => s.file != body.file || s.end <= body.start || body.end <= s.start,
                None => !path.segments.last().is_some_and(|n| has_constant(owner, &n.text)),
            };
            return;
        };
        let value = symbol.filter(|s| !s.mutable && depth > 0).and_then(|s| declaration(a.root()?, s.span?));
        match value.and_then(|found| Some((found.init, in_signature(a, owner, found.init, depth - 1)?))) {
            Some((init, text)) if is_atom(init) => replaced.push((name.span, text)),
            Some((_, text)) => replaced.push((name.span, format!("({text})"))),
            None => is_known = false,
        }
    });
    let mut text = a.text(e.span).to_string();
    replaced.sort_by_key(|(span, _)| span.start);
    for (span, value) in replaced.iter().rev() {
        let at = |offset: u32| (offset - e.span.start) as usize;
        text.replace_range(at(span.start)..at(span.end), value);
    }
    is_known.then_some(text)
}
