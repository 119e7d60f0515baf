//! Patterns: what a `let`, a loop or a lambda binds.

use tk_syntax::ast::{self, PatKind};
use tk_syntax::{Diagnostic, Span, codes};

use super::cx::Cx;
use crate::hir::HPat;
use crate::types::Ty;

impl Cx<'_> {
    /// Binds a pattern to a value of a type.
    pub fn bind_pat(&mut self, p: &ast::Pat, ty: &Ty, assigned: bool) -> HPat {
        match &p.kind {
            PatKind::Err => {
                self.holes = true;
                HPat::Ignore
            }
            PatKind::Name { mutable, name } => {
                let id = self.new_local(name, ty.clone(), *mutable);
                if !assigned {
                    self.unassigned.insert(id);
                }
                if name.text == "_" { HPat::Ignore } else { HPat::Local(id) }
            }
            PatKind::Tuple(parts) => {
                let tys = self.pattern_types(p.span, parts.len(), ty);
                HPat::Tuple(parts.iter().zip(&tys).map(|(p, t)| self.bind_pat(p, t, assigned)).collect())
            }
        }
    }

    /// The types of the parts that a pattern of that many parts takes a value apart into.
    pub fn pattern_types(&mut self, span: Span, parts: usize, ty: &Ty) -> Vec<Ty> {
        match ty {
            Ty::Tuple(ts) if ts.len() == parts => ts.clone(),
            t if t.is_err() => vec![Ty::Err; parts],
            Ty::Tuple(ts) => {
                let (n, m) = (ts.len(), parts);
                let d = Diagnostic::error(
                    codes::PATTERN,
                    span,
                    format!("the pattern has {m} parts, but the value has {n}"),
                    format!("{m} parts"),
                );
                self.report(d);
                vec![Ty::Err; parts]
            }
            other => {
                let shown = self.show(other);
                self.error(
                    codes::PATTERN,
                    span,
                    format!("`{shown}` cannot be destructured"),
                    "expected a tuple",
                );
                vec![Ty::Err; parts]
            }
        }
    }
}
