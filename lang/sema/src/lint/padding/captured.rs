//! A mask for the padding that is computed before the load, where its names mean something else later: after
//! `let k = k.load(..)` the view has no name any more.

use tk_syntax::diag::Replacement;
use tk_syntax::{SourceMap, Span};

use super::meaning::{Scopes, within};
use crate::hir::{HFn, HStmtKind};

/// Names for the mask, of which the first free one is taken.
const NAMES: [&str; 3] = ["inside", "in_view", "is_data"];

/// The name of a mask in a function.
pub(super) fn name(f: &HFn) -> Option<&'static str> {
    NAMES.into_iter().find(|n| f.locals.iter().all(|l| l.name != *n))
}

/// The edits that declare a mask before the statement of a load, and replace a value by a text in which its name is. `None` if the declaration would not be known at the value, or of another iteration.
pub(super) fn edits(
    f: &HFn,
    sources: &SourceMap,
    (name, mask): (&str, &str),
    (load, value): (Span, Span),
    used: &str,
) -> Option<Vec<Replacement>> {
    let body = f.body.span;
    if !within(load, body) || !within(value, body) || load.end > value.start || mask.contains('\n') {
        return None;
    }
    let mut statements = vec![];
    let Scopes { loops, blocks, .. } = Scopes::new(f, &mut |s| {
        if matches!(s.kind, HStmtKind::Let(..)) {
            statements.push(s.span);
        }
    });
    let holding = statements.into_iter().filter(|s| within(load, *s));
    let statement = holding.min_by_key(|s| s.end - s.start)?;
    let known = |b: &Span| !within(load, *b) || within(statement, *b) && within(value, *b);
    let again = |l: &Span| within(value, *l) && !within(load, *l);
    if within(value, statement) || !blocks.iter().all(known) || loops.iter().any(again) {
        return None;
    }
    let text = sources.get(load.file).map_or("", |s| &s.text);
    let line = text.get(..statement.start as usize)?.rsplit('\n').next()?;
    if !line.trim().is_empty() {
        return None;
    }
    let declared = Replacement { span: statement.before(), text: format!("let {name} = {mask};\n{line}") };
    Some(vec![declared, Replacement { span: value, text: used.to_string() }])
}
