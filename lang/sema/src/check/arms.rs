//! What an `if` or `while` with a condition for each element is meant to be: a choice, accesses with masks, or neither.

use std::collections::BTreeSet;

use tk_ops::op::AtomicOp;
use tk_ops::table::{Effects, Receiver, Row};
use tk_ops::{CreateOp, Op};
use tk_syntax::ast::{self, BinOp, ExprKind, PatKind, StmtKind, Subscript};
use tk_syntax::{Diagnostic, Span};

use super::cx::{Cx, Sym};
use crate::types::Ty;

/// The length of an access that a note shows.
const MASKED: usize = 60;

/// What such a condition is meant for.
pub(super) enum Meant {
    /// A choice for each element, in place of the `if`.
    Choice(Span, String),
    /// Accesses with masks, in place of the `if`.
    Masks(Span, String),
    /// Stores of views, which have no mask.
    Stores,
    /// Accesses to elements, for which no text is known.
    Accesses,
    /// The end of the program for some elements: the others remain where this is true.
    Return(String),
    /// Another iteration for some elements.
    Loop,
}

/// An insertion: the offset and the text.
type Insertion = (u32, String);

impl Cx<'_> {
    /// What an `if` would be for each element.
    pub(super) fn meant(
        &self,
        c: &ast::Expr,
        then: &ast::Block,
        els: Option<&ast::Expr>,
        span: Span,
    ) -> Option<Meant> {
        let choice = self.as_where(c, then, els, span).or_else(|| self.as_assigned(c, then, els, span));
        choice
            .or_else(|| self.as_return(c, then, els))
            .or_else(|| self.of_elements(then, els).then(|| self.as_masks(c, then, els, span)))
    }

    /// Explains a condition that is a tile of bools.
    pub(super) fn of_each(&self, d: Diagnostic, c: Span, meant: Option<Meant>) -> Diagnostic {
        let whole = "an `if` decides for a whole program";
        let together = "`any(c)` and `all(c)` test all elements together";
        match meant {
            Some(Meant::Masks(place, text)) => {
                let line = text.lines().find(|l| l.contains("mask = ")).unwrap_or("");
                let line = line.trim().trim_end_matches(';');
                let line = if line.is_empty() || line.len() > MASKED { "store(p, x, mask = c)" } else { line };
                let d = d.note(format!("{whole}; a mask decides for each element: `{line}`"));
                d.fix("give the condition as a mask", place, text)
            }
            Some(Meant::Stores) => d.note(format!(
                "{whole}; `store` of a view leaves out what is outside, and `y.scatter([positions], value, mask = m)` what a mask says"
            )),
            Some(Meant::Accesses) => d.note(format!(
                "{whole}; a mask decides for each element, in each load and store: `store(p, x, mask = c)`"
            )).note(together),
            Some(Meant::Choice(place, text)) => {
                let d = d.note(format!("{whole}; `where(c, a, b)` chooses for each element"));
                d.note(together).fix("choose for each element", place, text)
            }
            Some(Meant::Return(mask)) => d.note(format!(
                "`return` ends a whole program; each load and store leaves elements out by its mask, here `mask = {mask}`"
            )),
            Some(Meant::Loop) => d.note(
                "a loop goes on for a whole program: while `any(c)` is true, for instance, where `where(c, a, b)` changes some elements and keeps the others",
            ),
            None => {
                let text = self.text(c);
                d.fix("test whether any element is true", c, format!("any({text})"))
                    .fix("test whether all elements are true", c, format!("all({text})"))
                    .note("an `if` decides for a whole program; `where(c, a, b)` chooses for each element, and a mask for each access to memory")
            }
        }
    }

    /// `where(c, a, b)` for an `if` between two values on a line, and its place.
    fn as_where(
        &self,
        c: &ast::Expr,
        then: &ast::Block,
        els: Option<&ast::Expr>,
        span: Span,
    ) -> Option<Meant> {
        let els = else_block(els)??;
        let value =
            |b: &ast::Block| b.tail.as_ref().filter(|_| b.stmts.is_empty()).map(|t| self.text(t.span));
        let (cond, then, els) = (self.text(c.span), value(then)?, value(els)?);
        // Numbers alone may be meant for all elements, and accesses may have masks.
        let arms = format!("{then} {els}");
        let plain = !arms.contains("load(") && !arms.contains("store(");
        let of_elements = !names(&cond).is_disjoint(&names(&arms))
            || plain && names(&arms).iter().any(|n| self.is_tile_name(n));
        let text = format!("where({cond}, {then}, {els})");
        (of_elements && !text.contains('\n')).then_some(Meant::Choice(span, text))
    }

    /// `v = where(c, a, v);` for an `if` around one assignment to a tile, or two to the same one.
    fn as_assigned(
        &self,
        c: &ast::Expr,
        then: &ast::Block,
        els: Option<&ast::Expr>,
        span: Span,
    ) -> Option<Meant> {
        let assigned = |b: &ast::Block| {
            let ([s], None) = (b.stmts.as_slice(), &b.tail) else { return None };
            let StmtKind::Assign { place, op, value } = &s.kind else { return None };
            let name = self.text(place.span);
            self.is_tile_name(&name).then_some(())?;
            let mut calls = vec![];
            (calls_in(value, &mut calls) && calls.iter().all(|e| self.is_computed(e))).then_some(())?;
            let value = self.text(value.span);
            Some((
                name.clone(),
                match op {
                    Some(op) => {
                        let tight = self.is_postfix(&value);
                        let value = if tight { value } else { format!("({value})") };
                        format!("{name} {} {value}", op.symbol())
                    }
                    None => value,
                },
            ))
        };
        let (name, a) = assigned(then)?;
        let b = match else_block(els) {
            None => name.clone(),
            Some(els) => assigned(els?).filter(|(other, _)| *other == name)?.1,
        };
        let text = format!("{name} = where({}, {a}, {b});", self.text(c.span));
        (!text.contains('\n')).then_some(Meant::Choice(span, text))
    }

    /// `if c { return; }`
    fn as_return(&self, c: &ast::Expr, then: &ast::Block, els: Option<&ast::Expr>) -> Option<Meant> {
        let leaves = match (then.stmts.as_slice(), &then.tail) {
            ([s], None) => matches!(s.kind, StmtKind::Return(None)),
            ([], Some(e)) => matches!(e.kind, ExprKind::Return(None)),
            (_, _) => false,
        };
        (leaves && els.is_none()).then_some(())?;
        let text = self.text(c.span);
        let opposite = |op: BinOp| match op {
            BinOp::Ge => Some("<"),
            BinOp::Gt => Some("<="),
            BinOp::Lt => Some(">="),
            BinOp::Le => Some(">"),
            _other => None,
        };
        // Of floats the opposite would differ for NaN.
        let whole = |e: &ast::Expr| {
            matches!(e.kind, ExprKind::Int(_))
                || self.variable(e).is_some_and(|id| self.is_int(&self.local(id).ty))
        };
        Some(Meant::Return(match &c.kind {
            ExprKind::Binary(op, a, b) if opposite(*op).is_some() && (whole(a) || whole(b)) => {
                format!("{} {} {}", self.text(a.span), opposite(*op).unwrap_or(""), self.text(b.span))
            }
            _other if self.is_postfix(&text) => format!("!{text}"),
            _other => format!("!({text})"),
        }))
    }

    /// Returns true for the name of a variable that is a tile of several elements.
    fn is_tile_name(&self, name: &str) -> bool {
        let Some(Sym::Local(id)) = self.meaning(name) else { return false };
        matches!(&self.local(id).ty, Ty::Tile { shape, .. } if !shape.is_scalar())
    }

    /// Returns true if arms have to do with elements: they mention a tile.
    fn of_elements(&self, then: &ast::Block, els: Option<&ast::Expr>) -> bool {
        let arms = [Some(then.span), els.map(|e| e.span)];
        arms.into_iter().flatten().any(|s| names(&self.text(s)).iter().any(|n| self.is_tile_name(n)))
    }

    /// The accesses of an `if`, with its condition as their masks.
    fn as_masks(&self, c: &ast::Expr, then: &ast::Block, els: Option<&ast::Expr>, span: Span) -> Meant {
        let first = then.stmts.first().map(|s| s.span).or(then.tail.as_ref().map(|e| e.span));
        let last = then.tail.as_ref().map(|e| e.span).or(then.stmts.last().map(|s| s.span));
        let cond = self.text(c.span);
        let (Some(first), Some(last), None, false) = (first, last, els, cond.contains('\n')) else {
            return Meant::Accesses;
        };
        let mut edits = vec![];
        match self.masked(then, &cond, &mut edits) {
            Ok(()) if !edits.is_empty() => {}
            Ok(()) => return Meant::Accesses,
            Err(other) => return other,
        }
        edits.sort_by_key(|e| e.0);
        let (mut text, mut done) = (String::new(), first.start);
        for (at, inserted) in edits {
            text += &self.text(Span { start: done, end: at, ..span });
            text += &inserted;
            done = at;
        }
        text += &self.text(Span { start: done, end: last.end, ..span });
        text += if then.tail.is_some() { ";" } else { "" };
        Meant::Masks(span, text.replace("\n    ", "\n"))
    }

    /// The insertions that give every access in a block the mask `cond`; what else is meant, where that is not enough.
    fn masked(&self, b: &ast::Block, cond: &str, edits: &mut Vec<Insertion>) -> Result<(), Meant> {
        let mut parts: Vec<&ast::Expr> = vec![];
        for s in &b.stmts {
            match &s.kind {
                StmtKind::Expr(e) => parts.push(e),
                // A new name may hide another one after the `if`.
                StmtKind::Let { pat, init: Some(e), .. } => match &pat.kind {
                    PatKind::Name { name, .. } if self.meaning(&name.text).is_none() => parts.push(e),
                    PatKind::Name { .. } | PatKind::Tuple(_) | PatKind::Err => return Err(Meant::Accesses),
                },
                _other => return Err(Meant::Accesses),
            }
        }
        parts.extend(b.tail.as_deref());
        let mut calls = vec![];
        if !parts.into_iter().all(|e| calls_in(e, &mut calls)) {
            return Err(Meant::Accesses);
        }
        let is_store = |row: &Row| {
            row.effects == Effects::Write || matches!(row.op, Op::Atomic(op) if op != AtomicOp::Load)
        };
        let (mut unmasked, mut stores) = (false, true);
        for call in calls.into_iter().filter(|e| !self.is_computed(e)) {
            let Some((row, given)) = self.access(call) else { return Err(Meant::Accesses) };
            stores &= is_store(row);
            match row.param("mask") {
                Some(at) => edits.extend(self.with_mask(call, at, given, cond)),
                None => unmasked = true,
            }
        }
        match unmasked {
            true if stores => Err(Meant::Stores),
            true => Err(Meant::Accesses),
            false => Ok(()),
        }
    }

    /// The insertions that give a call this mask, besides one that it has. `given` parameters are before its arguments.
    fn with_mask(&self, call: &ast::Expr, at: usize, given: usize, cond: &str) -> Vec<Insertion> {
        let ExprKind::Call(_, args) = &call.kind else { return vec![] };
        let mut unnamed = args.iter().filter(|a| a.name.is_none());
        let named = args.iter().find(|a| a.name.as_ref().is_some_and(|n| n.text == "mask"));
        let own = named.or_else(|| at.checked_sub(given).and_then(|i| unnamed.nth(i)));
        let tight = |text: &str| !text.contains("||") && !text.contains('{') || self.is_postfix(text);
        let cond = if own.is_none() || tight(cond) { cond.to_string() } else { format!("({cond})") };
        let Some(own) = own else {
            let before = self.text(Span { end: call.span.end - 1, ..call.span });
            let comma = if before.trim_end().ends_with([',', '(']) { " " } else { ", " };
            return vec![(call.span.end - 1, format!("{comma}mask = {cond}"))];
        };
        let span = own.value.span;
        match tight(&self.text(span)) {
            true => vec![(span.end, format!(" && {cond}"))],
            false => vec![(span.start, "(".to_string()), (span.end, format!(") && {cond}"))],
        }
    }

    /// The builtin that a call reads or writes memory with, and how many of its parameters are before the arguments.
    fn access(&self, e: &ast::Expr) -> Option<(&'static Row, usize)> {
        let ExprKind::Call(f, _) = &e.kind else { return None };
        let (row, given) = match &f.kind {
            ExprKind::Path(p) => match p.segments.as_slice() {
                [n] if self.lookup(n).is_none() && self.lookup_item(n).is_none() => {
                    (self.find_row(&n.text)?, 0)
                }
                _other => return None,
            },
            ExprKind::Member(_, name) => (tk_ops::rows::find(&name.text, Receiver::View)?, 1),
            _other => return None,
        };
        matches!(row.op, Op::Memory(_) | Op::Atomic(_)).then_some((row, given))
    }

    /// Returns true for a call that computes each element from those at its place.
    fn is_computed(&self, e: &ast::Expr) -> bool {
        let ExprKind::Call(f, _) = &e.kind else { return false };
        let ExprKind::Path(p) = &f.kind else { return false };
        let [n] = p.segments.as_slice() else { return false };
        let row =
            self.find_row(&n.text).filter(|_| self.lookup(n).is_none() && self.lookup_item(n).is_none());
        row.is_some_and(|r| matches!(r.op, Op::Elementwise(_) | Op::Create(CreateOp::Arange)))
    }
}

/// The names in a text.
fn names(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.filter(|w| w.starts_with(|c: char| c.is_alphabetic() || c == '_')).map(str::to_string).collect()
}

/// The block of an `else`, unless it is another `if`. Nothing without an `else`.
fn else_block(els: Option<&ast::Expr>) -> Option<Option<&ast::Block>> {
    els.map(|e| match &e.kind {
        ExprKind::Block(b) => Some(&**b),
        _other => None,
    })
}

/// Collects the calls in an expression; false if it has parts that run on some condition.
fn calls_in<'e>(e: &'e ast::Expr, out: &mut Vec<&'e ast::Expr>) -> bool {
    match &e.kind {
        ExprKind::Path(_)
        | ExprKind::Int(_)
        | ExprKind::Float(_)
        | ExprKind::Str(_)
        | ExprKind::Bool(_)
        | ExprKind::None
        | ExprKind::Type(_) => true,
        ExprKind::Tuple(items) | ExprKind::Array(items) => items.iter().all(|e| calls_in(e, out)),
        ExprKind::Unary(_, a) | ExprKind::Cast(a, _) | ExprKind::Member(a, _) => calls_in(a, out),
        ExprKind::Binary(_, a, b) => calls_in(a, out) && calls_in(b, out),
        ExprKind::Index(base, items) => {
            calls_in(base, out)
                && items.iter().all(|i| match i {
                    Subscript::Expr(e) | Subscript::Named(_, e) => calls_in(e, out),
                    Subscript::Slice(a, b, _) => a.iter().chain(b).all(|e| calls_in(e, out)),
                })
        }
        ExprKind::Call(f, args) => {
            out.push(e);
            let base = match &f.kind {
                ExprKind::Member(base, _) => calls_in(base, out),
                _name => calls_in(f, out),
            };
            base && args.iter().all(|a| calls_in(&a.value, out))
        }
        ExprKind::If(..)
        | ExprKind::IfLet(..)
        | ExprKind::Block(_)
        | ExprKind::Lambda(..)
        | ExprKind::Return(_)
        | ExprKind::Err => false,
    }
}
