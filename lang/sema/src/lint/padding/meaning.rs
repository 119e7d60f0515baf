//! Whether a text that a fix repeats means at its new place what it means where it is written.

use std::collections::BTreeSet;

use tk_syntax::Span;

use super::super::each;
use crate::hir::{HExpr, HFn, HKind, HPat, HStmt, HStmtKind, LocalId};

/// The places of the loops and blocks of a body, the body itself left out.
#[derive(Default)]
pub(super) struct Scopes {
    /// Statements that repeat a block.
    pub loops: Vec<Span>,
    /// Those of them that declare a variable, which ends with the loop.
    pub counted: Vec<Span>,
    /// Blocks of statements and of expressions.
    pub blocks: Vec<Span>,
}

impl Scopes {
    /// Of the body of a function; `also` gets its statements.
    pub fn new<'a>(f: &'a HFn, also: &mut dyn FnMut(&'a HStmt)) -> Scopes {
        let (mut scopes, mut arms) = (Scopes::default(), vec![]);
        let statement = &mut |s: &'a HStmt| {
            match &s.kind {
                HStmtKind::For { body, .. } | HStmtKind::StaticFor { body, .. } => {
                    scopes.loops.push(s.span);
                    scopes.counted.push(s.span);
                    scopes.blocks.push(body.span);
                }
                HStmtKind::While { body, .. } => {
                    scopes.loops.push(s.span);
                    scopes.blocks.push(body.span);
                }
                HStmtKind::Let(..)
                | HStmtKind::Assign { .. }
                | HStmtKind::Expr(_)
                | HStmtKind::Return(_)
                | HStmtKind::AssertError { .. }
                | HStmtKind::Break
                | HStmtKind::Continue
                | HStmtKind::Err => {}
            }
            also(s);
        };
        each(&f.body, statement, &mut |e| arms.extend(blocks_of(e)));
        scopes.blocks.extend(arms);
        scopes
    }
}

/// The blocks of an expression.
fn blocks_of(e: &HExpr) -> Vec<Span> {
    match &e.kind {
        HKind::If { then, els, .. } | HKind::IfLet { then, els, .. } => {
            std::iter::once(then.span).chain(els.iter().map(|b| b.span)).collect()
        }
        HKind::Block(b) => vec![b.span],
        _no_blocks => vec![],
    }
}

/// Returns true if the names in `text` mean the same in `from` and, later in the same function, in `to`: nothing between
/// declares one of them again or assigns to it, a loop that holds only `to` changes none, and all are in scope.
pub(super) fn is_same(f: &HFn, text: &str, from: Span, to: Span) -> bool {
    let body = f.body.span;
    if !within(from, body) || !within(to, body) || from.end > to.start {
        return false;
    }
    let words: BTreeSet<&str> = text.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let used = |id: LocalId| f.locals.get(id.0 as usize).is_some_and(|l| words.contains(l.name.as_str()));
    let between = |span: Span| span.start >= from.end && span.start < to.start;
    if f.locals.iter().any(|l| words.contains(l.name.as_str()) && within(l.span, body) && between(l.span)) {
        return false;
    }
    let mut changes = vec![];
    // The statement that holds the first place gives a name another meaning: `let k = k.load(..)`.
    let mut renames = false;
    let Scopes { loops, counted, mut blocks } = Scopes::new(f, &mut |s| match &s.kind {
        HStmtKind::Let(pat, _) if within(from, s.span) => renames |= declares(pat, &used),
        HStmtKind::Assign { local, .. } if used(*local) => {
            renames |= within(from, s.span);
            changes.push(s.span);
        }
        HStmtKind::Let(..)
        | HStmtKind::Assign { .. }
        | HStmtKind::For { .. }
        | HStmtKind::StaticFor { .. }
        | HStmtKind::While { .. }
        | HStmtKind::Expr(_)
        | HStmtKind::Return(_)
        | HStmtKind::AssertError { .. }
        | HStmtKind::Break
        | HStmtKind::Continue
        | HStmtKind::Err => {}
    });
    blocks.extend(counted.into_iter().chain([body]));
    let again =
        |change: &Span| loops.iter().any(|l| within(*change, *l) && within(to, *l) && !within(from, *l));
    if renames || changes.iter().any(|c| between(*c) || again(c)) {
        return false;
    }
    // A block that holds the declaration and the first place holds the second one.
    let declared = f.locals.iter().filter(|l| words.contains(l.name.as_str()) && l.span.start < from.start);
    let mut declared = declared.filter(|l| within(l.span, body));
    declared.all(|l| {
        let holds = |b: &&Span| within(l.span, **b) && within(from, **b);
        blocks.iter().filter(holds).all(|b| within(to, *b))
    })
}

/// Returns true if a pattern declares a variable for which `of` is true.
fn declares(pat: &HPat, of: &dyn Fn(LocalId) -> bool) -> bool {
    match pat {
        HPat::Local(id) => of(*id),
        HPat::Tuple(ps) => ps.iter().any(|p| declares(p, of)),
        HPat::Ignore => false,
    }
}

/// Returns true if a place is a part of another one.
pub(super) fn within(inner: Span, outer: Span) -> bool {
    inner.file == outer.file && inner.start >= outer.start && inner.end <= outer.end
}
