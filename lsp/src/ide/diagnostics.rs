//! The messages about one file.

use tk_syntax::ast::{Stmt, StmtKind};
use tk_syntax::codes::{self, Code};
use tk_syntax::{Diagnostic, Span};

use super::walk::{Node, around};
use super::{Analysis, Workspace};

/// What is about an operation and all of its operands.
const OF_OPERATION: &[Code] = &[codes::RANK_MISMATCH, codes::SHAPE_MISMATCH, codes::DOT_SHAPE];

/// The diagnostics whose primary place is in the file; their spans belong to the sources of its analysis.
pub fn diagnostics(ws: &mut Workspace, path: &str) -> Vec<Diagnostic> {
    let a = ws.analysis(path);
    a.checked.diagnostics.iter().filter(|d| d.primary.span.file == Analysis::ROOT).cloned().collect()
}

/// What an editor underlines: the primary place, or the whole operation whose operands do not fit.
pub fn underlined(a: &Analysis, d: &Diagnostic) -> Span {
    let primary = d.primary.span;
    let holds = |outer: Span, inner: Span| {
        outer.file == inner.file && outer.start <= inner.start && inner.end <= outer.end
    };
    if !OF_OPERATION.contains(&d.code) || d.secondary.is_empty() {
        return primary;
    }
    let nodes = a.root().map(|file| around(file, primary.start)).unwrap_or_default();
    let holds_all =
        |span: &Span| holds(*span, primary) && d.secondary.iter().all(|label| holds(*span, label.span));
    let operations = nodes.iter().rev().filter_map(|n| match n {
        Node::Expr(e) => Some(e.span),
        Node::Stmt(Stmt { kind: StmtKind::Assign { place, op: Some(_), value }, .. }) => {
            Some(place.span.to(value.span))
        }
        _other => None,
    });
    operations.into_iter().find(holds_all).unwrap_or(primary)
}
