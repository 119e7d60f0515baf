//! Advice for names that are used behind the block that declares them.

use std::collections::BTreeMap;

use tk_syntax::ast::{self, ExprKind, PatKind, StmtKind};
use tk_syntax::{Diagnostic, Span};

use super::cx::Cx;

/// The length of a declaration that a title shows.
const TITLE: usize = 60;

/// The length of a chain of `if`s that is looked at, in bytes: each of its parts asks for what follows.
const LONGEST: u32 = 1000;

/// A variable of a block that has ended: its place, and the declaration in place of an `if` between two values.
pub(crate) struct Ended {
    declared: Span,
    choice: Option<(Span, String)>,
}

/// The latest such variable of each name.
pub(crate) type AllEnded = BTreeMap<String, Ended>;

/// The pattern and the value of a `let` without a type.
fn declaration(s: &ast::Stmt) -> Option<(&ast::Pat, &ast::Expr)> {
    match &s.kind {
        StmtKind::Let { pat, ty: None, init: Some(e) } => Some((pat, e)),
        _other => None,
    }
}

/// The names that a pattern declares.
fn names(pat: &ast::Pat) -> Vec<&ast::Name> {
    match &pat.kind {
        PatKind::Name { name, .. } => vec![name],
        PatKind::Tuple(parts) => parts.iter().flat_map(names).collect(),
        PatKind::Err => vec![],
    }
}

/// The declaration that is all of a block.
fn only(b: &ast::Block) -> Option<(&ast::Pat, &ast::Expr)> {
    match (b.stmts.as_slice(), &b.tail) {
        ([s], None) => declaration(s),
        _ => None,
    }
}

impl Cx<'_> {
    /// Notes what a block has declared, at its end.
    pub(super) fn end_block(&mut self, b: &ast::Block) {
        for name in b.stmts.iter().filter_map(declaration).flat_map(|(pat, _)| names(pat)) {
            self.ended.insert(name.text.clone(), Ended { declared: name.span, choice: None });
        }
    }

    /// What `if`s without an `else` of their own choose between: the pattern that all arms declare, and the text of the
    /// choice of its value.
    fn choice<'e>(
        &self,
        c: &ast::Expr,
        then: &'e ast::Block,
        els: &'e ast::Expr,
    ) -> Option<(&'e ast::Pat, String)> {
        if els.span.end - els.span.start > LONGEST {
            return None;
        }
        let (pat, a) = only(then)?;
        let (other, rest) = match &els.kind {
            ExprKind::Block(els) => {
                let (other, b) = only(els)?;
                (other, format!("{{ {} }}", self.text(b.span)))
            }
            ExprKind::If(c, then, Some(els)) => self.choice(c, then, els)?,
            _other => return None,
        };
        let texts = |pat| names(pat).iter().map(|n| n.text.as_str()).collect::<Vec<_>>();
        let same_form =
            matches!(pat.kind, PatKind::Name { .. }) == matches!(other.kind, PatKind::Name { .. });
        let [c, a] = [c, a].map(|e| self.text(e.span));
        (texts(pat) == texts(other) && same_form).then(|| (pat, format!("if {c} {{ {a} }} else {rest}")))
    }

    /// Notes that an `if` declares one variable in all arms, at its end.
    pub(super) fn end_if(&mut self, c: &ast::Expr, then: &ast::Block, els: Option<&ast::Expr>, span: Span) {
        let Some(els) = els else { return };
        let Some((pat, choice)) = self.choice(c, then, els) else {
            // The choice of the rest of a chain has no place before it.
            if let ExprKind::If(_, then, _) = &els.kind {
                for name in only(then).into_iter().flat_map(|(pat, _)| names(pat)) {
                    self.ended.entry(name.text.clone()).and_modify(|e| e.choice = None);
                }
            }
            return;
        };
        let text = format!("let {} = {choice};", self.text(pat.span));
        for name in names(pat) {
            let ended = Ended { declared: name.span, choice: Some((span, text.clone())) };
            self.ended.insert(name.text.clone(), ended);
        }
    }

    /// Says of an unknown name that a block before it declares one.
    pub(super) fn declared_in_block(&self, d: Diagnostic, name: &str) -> Option<Diagnostic> {
        let ended = self.ended.get(name)?;
        let d = d.label(ended.declared, "known until the end of its block");
        Some(match &ended.choice {
            Some((span, text)) => {
                let short = text.len() <= TITLE && !text.contains('\n');
                let title =
                    if short { format!("write `{text}`") } else { "declare the value of the `if`".into() };
                d.fix(title, *span, text.as_str())
            }
            None => d.note(format!(
                "a variable that is declared before the block, `let mut {name} = ..;`, can be assigned in it"
            )),
        })
    }
}
