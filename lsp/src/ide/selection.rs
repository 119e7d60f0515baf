//! Growing a selection along the syntax tree.

use super::hover::token_at;
use super::walk::around;
use super::{Analysis, Place, Workspace};

/// The nodes around an offset, innermost first; each place contains the one before it.
pub fn selection(ws: &mut Workspace, path: &str, offset: usize) -> Vec<Place> {
    let a = ws.analysis(path);
    let Some(at) = a.offset(offset) else { return vec![] };
    let mut spans = vec![tk_syntax::Span::new(Analysis::ROOT, 0, a.root_text().len())];
    spans.extend(a.root().map(|f| around(f, at)).unwrap_or_default().iter().map(|n| n.span()));
    spans.extend(token_at(&a, at));
    let mut out: Vec<tk_syntax::Span> = vec![];
    for s in spans {
        let inner = out.last().is_none_or(|o| o.start <= s.start && s.end <= o.end && *o != s);
        if inner && s.start <= at && at <= s.end {
            out.push(s);
        }
    }
    out.iter().rev().map(|s| a.place(*s)).collect()
}
