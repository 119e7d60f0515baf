//! The call hierarchy, including launches of kernels. A test is a caller too.

use tk_sema::index::SymbolKind as What;
use tk_syntax::Span;
use tk_syntax::ast::{File, Item, ItemKind};

use super::symbols::{self, Symbol};
use super::{Analysis, Place, Workspace, describe, navigate};

/// A caller or callee, with the calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The function at the other end; without children.
    pub symbol: Symbol,
    /// The places where the caller names the callee; all in the file of the caller.
    pub places: Vec<Place>,
}

/// The function that an offset names or is in.
pub fn prepare(ws: &mut Workspace, path: &str, offset: usize) -> Option<Symbol> {
    let a = ws.analysis(path);
    if let Some(found) = a.index.reference_at(Analysis::ROOT, a.offset(offset)?)
        && let Some(s) = describe::resolve(&a, found.symbol)
        && let What::Fn(_) = s.kind
    {
        return named(&a, s.span?);
    }
    caller(&a, a.offset(offset)?)
}

/// The callers of the function whose name is at a position.
pub fn incoming(ws: &mut Workspace, path: &str, offset: usize) -> Vec<Call> {
    let mut out: Vec<Call> = vec![];
    for place in navigate::references(ws, path, offset, false) {
        let a = ws.analysis(&place.path);
        let Some(symbol) = u32::try_from(place.start).ok().and_then(|at| caller(&a, at)) else { continue };
        add(&mut out, symbol, place);
    }
    out
}

/// Whom the function whose name is at a position calls.
pub fn outgoing(ws: &mut Workspace, path: &str, offset: usize) -> Vec<Call> {
    let Some(from) = prepare(ws, path, offset) else { return vec![] };
    let a = ws.analysis(&from.place.path);
    let mut out = vec![];
    for r in a.index.references_in(Analysis::ROOT) {
        let inside = from.place.start <= r.span.start as usize && (r.span.end as usize) <= from.place.end;
        let Some(s) = describe::resolve(&a, r.symbol).filter(|_| inside) else { continue };
        if let (What::Fn(_), Some(name)) = (&s.kind, s.span)
            && name != r.span
            && let Some(symbol) = named(&a, name)
        {
            add(&mut out, symbol, a.place(r.span));
        }
    }
    out
}

fn add(out: &mut Vec<Call>, symbol: Symbol, place: Place) {
    match out.iter_mut().find(|c| c.symbol == symbol) {
        Some(c) => c.places.push(place),
        None => out.push(Call { symbol, places: vec![place] }),
    }
}

/// The function whose name is at a position.
fn named(a: &Analysis, name: Span) -> Option<Symbol> {
    let (item, _) = describe::item_fn(a, name)?;
    let method =
        a.index.reference(name).and_then(|r| a.index.symbol(r.symbol)).is_some_and(|s| s.owner.is_some());
    symbols::of_fn(&a.checked.sources, &a.place(name).path, item, method)
}

/// The function or test around an offset of the file that was asked for.
fn caller(a: &Analysis, at: u32) -> Option<Symbol> {
    let (item, method) = enclosing(a.root()?, at)?;
    symbols::of_fn(&a.checked.sources, &a.place(item.span).path, item, method)
}

fn enclosing(file: &File, at: u32) -> Option<(&Item, bool)> {
    let holds = |i: &&Item| i.span.start <= at && at <= i.span.end;
    let item = file.items.iter().find(holds)?;
    match &item.kind {
        ItemKind::Fn(_) | ItemKind::Test(_) => Some((item, false)),
        ItemKind::Struct(s) => s.methods.iter().find(holds).map(|m| (m, true)),
        ItemKind::Use(_) | ItemKind::Const(_) | ItemKind::Export(_) | ItemKind::Err => None,
    }
}
