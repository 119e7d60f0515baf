//! The action that puts the value of a `let` where its name is used, and removes the `let`.
//!
//! Offered where the program then means the same: the variable is never assigned again, its value only computes (no access
//! to memory, no random numbers, no printing), from names that mean the same at every use and are not assigned either.

use tk_ops::table::Effects;
use tk_sema::index::{Symbol, SymbolId, SymbolKind};
use tk_syntax::ast::{BinOp, Expr, ExprKind};
use tk_syntax::{FileId, Span};

use super::actions::{Action, ActionKind};
use super::form::value_form;
use super::scope::scope;
use super::walk::{Let, Node, around, declaration};
use super::{Analysis, TextEdit};

/// The action for the variable whose name is at an offset.
pub fn inline_let(a: &Analysis, at: u32) -> Option<Action> {
    let here = a.index.reference_at(Analysis::ROOT, at)?;
    let symbol = a.index.symbol(here.symbol)?;
    if !matches!(symbol.kind, SymbolKind::Local(_)) || symbol.mutable {
        return None;
    }
    let Let { stmt, ty, init } = declaration(a.root()?, symbol.span?)?;
    // With a type of its own, the value may have another one without it.
    if ty.is_some() {
        return None;
    }
    let names = pure_names(a, init)?;
    let own = a.index.references_in(Analysis::ROOT).iter();
    let uses: Vec<Span> =
        own.filter(|r| r.symbol == here.symbol && Some(r.span) != symbol.span).map(|r| r.span).collect();
    let same = |place: &Span| names.iter().all(|(name, id)| meaning(a, name, place.start) == Some(*id));
    if uses.is_empty() || !uses.iter().all(same) {
        return None;
    }
    let text = value_form(a.text(init.span)).unwrap_or_else(|| a.text(init.span).to_string());
    let value = |place: Span| {
        if is_atom(init) || !needs_parens(a, place, init) { text.to_string() } else { format!("({text})") }
    };
    let mut edits =
        vec![TextEdit { place: a.place(whole_lines(a.root_text(), stmt.span)), text: String::new() }];
    edits.extend(uses.iter().map(|place| TextEdit { place: a.place(*place), text: value(*place) }));
    let title = format!("inline `{}`", symbol.name);
    Some(Action { title, kind: ActionKind::Inline, edits, diagnostic: None })
}

/// Returns true if the value of the variable at an offset has the type of the variable wherever an action has put it: a literal
/// adapts to what is around it.
pub fn keeps_types(a: &Analysis, at: u32, action: &Action, inlined: &Analysis) -> bool {
    let symbol = a.index.reference_at(Analysis::ROOT, at).and_then(|r| a.index.symbol(r.symbol));
    let Some(SymbolKind::Local(ty)) = symbol.map(|s| &s.kind) else { return false };
    let ty = a.show(ty);
    let mut moved = 0;
    action.edits.iter().all(|e| {
        let start = (e.place.start as i64 + moved) as usize;
        moved += e.text.len() as i64 - (e.place.end - e.place.start) as i64;
        let inside = usize::from(e.text.starts_with('('));
        let spans = [inside, 0].map(|n| Span::new(Analysis::ROOT, start + n, start + e.text.len() - n));
        e.text.is_empty()
            || spans.iter().any(|s| inlined.index.type_of(*s).is_some_and(|t| inlined.show(t) == ty))
    })
}

/// The variables and parameters that a value is computed from; `None` if it does more than to compute.
fn pure_names(a: &Analysis, e: &Expr) -> Option<Vec<(String, SymbolId)>> {
    let (mut names, mut is_pure) = (vec![], true);
    Node::Expr(e).each(&mut |n| {
        let Node::Expr(e) = n else { return };
        match &e.kind {
            ExprKind::Path(_) => match named(a, e.span) {
                Some((id, s)) if is_variable(s) => {
                    is_pure &= !s.mutable;
                    names.push((s.name.clone(), id));
                }
                _ => {}
            },
            ExprKind::Call(callee, _) => is_pure &= is_pure_call(a, callee),
            ExprKind::If(..)
            | ExprKind::IfLet(..)
            | ExprKind::Block(_)
            | ExprKind::Lambda(..)
            | ExprKind::Return(_)
            | ExprKind::Err => is_pure = false,
            ExprKind::Int(_)
            | ExprKind::Float(_)
            | ExprKind::Str(_)
            | ExprKind::Bool(_)
            | ExprKind::None
            | ExprKind::Tuple(_)
            | ExprKind::Array(_)
            | ExprKind::Unary(..)
            | ExprKind::Binary(..)
            | ExprKind::Cast(..)
            | ExprKind::Index(..)
            | ExprKind::Member(..)
            | ExprKind::Type(_) => {}
        }
    });
    is_pure.then_some(names)
}

/// Returns true for a builtin that only computes.
fn is_pure_call(a: &Analysis, callee: &Expr) -> bool {
    let name = match &callee.kind {
        ExprKind::Member(_, name) => name.span,
        _other => callee.span,
    };
    matches!(named(a, name), Some((_, Symbol { kind: SymbolKind::Builtin(row), .. })) if row.effects == Effects::Pure)
}

fn named(a: &Analysis, span: Span) -> Option<(SymbolId, &Symbol)> {
    let r = a.index.reference(span)?;
    Some((r.symbol, a.index.symbol(r.symbol)?))
}

fn is_variable(s: &Symbol) -> bool {
    matches!(s.kind, SymbolKind::Local(_) | SymbolKind::Param(_) | SymbolKind::CVar(_))
}

/// What a name means at an offset.
fn meaning(a: &Analysis, name: &str, at: u32) -> Option<SymbolId> {
    let scope = scope(a.root()?, at);
    let declared = scope.names.iter().rev().find(|n| n.text == name)?;
    a.index.reference(declared.span).map(|r| r.symbol)
}

/// Returns true if an expression is a part of a larger one that would take a part of the value that replaces it.
fn needs_parens(a: &Analysis, place: Span, value: &Expr) -> bool {
    let Some(root) = a.root() else { return true };
    let nodes = around(root, place.start);
    let outer = nodes.iter().rev().filter_map(|n| if let Node::Expr(e) = n { Some(*e) } else { None });
    let Some(parent) = outer.into_iter().find(|e| e.span != place && e.span.end >= place.end) else {
        return false;
    };
    match &parent.kind {
        ExprKind::Binary(op, left, _) => !binds_tighter(value, *op, left.span == place),
        ExprKind::Unary(..) | ExprKind::Cast(..) => true,
        ExprKind::Index(base, _) | ExprKind::Member(base, _) | ExprKind::Call(base, _) => base.span == place,
        _lists_and_blocks => false,
    }
}

/// Returns true for a value that is one operand of an operator without parentheses, as one expects it: of arithmetic,
/// comparisons and logic, not of bits.
fn binds_tighter(value: &Expr, op: BinOp, is_left: bool) -> bool {
    let level = |op: BinOp| match op {
        BinOp::Mul | BinOp::Div | BinOp::Rem => Some(4),
        BinOp::Add | BinOp::Sub => Some(3),
        BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge => Some(2),
        BinOp::And => Some(1),
        BinOp::Or => Some(0),
        BinOp::BitAnd | BinOp::BitOr | BinOp::BitXor | BinOp::Shl | BinOp::Shr => None,
    };
    match (&value.kind, level(op)) {
        (ExprKind::Cast(of, _), Some(_)) => is_atom(of),
        (ExprKind::Unary(..), Some(_)) => is_left,
        // Comparisons do not follow one another.
        (ExprKind::Binary(inner, ..), Some(outer)) => {
            level(*inner).is_some_and(|i| i > outer || i == outer && is_left && i != 2)
        }
        (_, _) => false,
    }
}

/// Returns true for an expression that needs no parentheses anywhere.
pub(super) fn is_atom(e: &Expr) -> bool {
    matches!(
        e.kind,
        ExprKind::Path(_)
            | ExprKind::Int(_)
            | ExprKind::Float(_)
            | ExprKind::Str(_)
            | ExprKind::Bool(_)
            | ExprKind::None
            | ExprKind::Tuple(_)
            | ExprKind::Array(_)
            | ExprKind::Index(..)
            | ExprKind::Call(..)
            | ExprKind::Member(..)
    )
}

/// A statement with its line, if there is nothing else in it.
fn whole_lines(text: &str, stmt: Span) -> Span {
    let (start, end) = (stmt.start as usize, stmt.end as usize);
    let (before, after) = (text.get(..start).unwrap_or(""), text.get(end..).unwrap_or(""));
    let indent = before.len() - before.trim_end_matches([' ', '\t']).len();
    let line_end = after.find('\n').map(|n| n + 1);
    let is_alone = before.get(..start - indent).is_some_and(|b| b.is_empty() || b.ends_with('\n'));
    match line_end {
        Some(n) if is_alone && after.get(..n).is_some_and(|rest| rest.trim().is_empty()) => {
            Span::new(FileId(stmt.file.0), start - indent, end + n)
        }
        // A comment behind it takes its place.
        _ if is_alone && after.trim_start_matches([' ', '\t']).starts_with("//") => {
            let gap = after.len() - after.trim_start_matches([' ', '\t']).len();
            Span::new(FileId(stmt.file.0), start, end + gap)
        }
        _ => stmt,
    }
}
