//! Navigation from a name to its definition and its uses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tk_ops::table::Row;
use tk_sema::index::{Symbol, SymbolKind};
use tk_sema::types::Ty;
use tk_syntax::ast::{ItemKind, Name};

use super::workspace::{REFERENCE, REFERENCE_TEXT};
use super::{Analysis, Place, Workspace, describe, hover};

/// A symbol as all analyses know it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Key {
    /// The declaration at a place.
    Declared(Place),
    /// A file.
    File(String),
    /// A builtin, or a parameter of one.
    Builtin(&'static Row, Option<u32>),
}

/// A symbol as all analyses know it.
pub(super) fn key(a: &Analysis, s: &Symbol) -> Option<Key> {
    Some(match &s.kind {
        SymbolKind::Module(f) => Key::File(a.checked.sources.get(*f)?.name.to_string()),
        SymbolKind::Builtin(row) => Key::Builtin(row, None),
        SymbolKind::BuiltinParam(row, i) => Key::Builtin(row, Some(*i)),
        SymbolKind::Fn(_)
        | SymbolKind::Struct(_)
        | SymbolKind::Field(..)
        | SymbolKind::Const(_)
        | SymbolKind::CVar(_)
        | SymbolKind::Param(_)
        | SymbolKind::Local(_)
        | SymbolKind::Alias(_) => Key::Declared(a.place(s.span?)),
    })
}

/// The definition of the symbol at an offset.
pub fn definition(ws: &mut Workspace, path: &str, offset: usize) -> Vec<Place> {
    let a = ws.analysis(path);
    let of_word = || section(hover::word_at(&a, a.offset(offset)?)?.1.1);
    let found = match a.symbol_at(offset) {
        Some((_, symbol)) => declared(&a, symbol),
        None => of_word(),
    };
    found.into_iter().collect()
}

fn declared(a: &Analysis, s: &Symbol) -> Option<Place> {
    match s.kind {
        SymbolKind::Module(f) => {
            Some(Place { path: a.checked.sources.get(f)?.name.to_string(), start: 0, end: 0 })
        }
        // From another name the way leads on to what it stands for.
        SymbolKind::Alias(to) => declared(a, describe::resolve(a, to)?),
        SymbolKind::Builtin(row) => reference(row),
        SymbolKind::Fn(_)
        | SymbolKind::Struct(_)
        | SymbolKind::Field(..)
        | SymbolKind::Const(_)
        | SymbolKind::CVar(_)
        | SymbolKind::Param(_)
        | SymbolKind::Local(_)
        | SymbolKind::BuiltinParam(..) => s.span.map(|s| a.place(s)),
    }
}

/// The section of the reference about a builtin.
fn reference(row: &tk_ops::table::Row) -> Option<Place> {
    section(&tk_ops::reference::signature(row).text)
}

/// The section of the reference whose title is some code.
fn section(code: &str) -> Option<Place> {
    let title = format!("### `{code}`");
    let start = REFERENCE_TEXT.find(&title)?;
    Some(Place { path: REFERENCE.into(), start, end: start + title.len() })
}

/// The definition of the struct that is the type of the symbol at an offset.
pub fn type_definition(ws: &mut Workspace, path: &str, offset: usize) -> Vec<Place> {
    let a = ws.analysis(path);
    let Some(at) = a.offset(offset) else { return vec![] };
    let hir = &a.checked.hir;
    let ty = a.symbol_at(offset).and_then(|(_, s)| match &s.kind {
        SymbolKind::Local(t) | SymbolKind::Param(t) => Some(t.clone()),
        SymbolKind::Field(id, n) => Some(hir.structs.get(id.0 as usize)?.fields.get(*n as usize)?.1.clone()),
        SymbolKind::Const(id) => Some(hir.consts.get(id.0 as usize)?.value.ty.clone()),
        SymbolKind::Struct(id) => Some(Ty::Struct(*id, vec![])),
        SymbolKind::Module(_)
        | SymbolKind::Fn(_)
        | SymbolKind::CVar(_)
        | SymbolKind::Alias(_)
        | SymbolKind::Builtin(_)
        | SymbolKind::BuiltinParam(..) => None,
    });
    let ty = ty.or_else(|| a.index.expression_at(Analysis::ROOT, at).map(|e| e.1.clone()));
    let mut structs = vec![];
    if let Some(t) = ty {
        structs_of(&t, &mut structs);
    }
    structs.iter().filter_map(|id| hir.structs.get(id.0 as usize)).map(|s| a.place(s.span)).collect()
}

fn structs_of(t: &Ty, out: &mut Vec<tk_sema::hir::StructId>) {
    match t {
        Ty::Struct(id, _) => out.push(*id),
        Ty::Tuple(ts) => ts.iter().for_each(|t| structs_of(t, out)),
        Ty::Option(t) => structs_of(t, out),
        Ty::Err
        | Ty::Unit
        | Ty::Never
        | Ty::Tile { .. }
        | Ty::View { .. }
        | Ty::Buffer { .. }
        | Ty::List(..)
        | Ty::Fn(..)
        | Ty::DType
        | Ty::ShapeTy
        | Ty::Str => {}
    }
}

/// Every use of the symbol at an offset, in all files of the workspace.
pub fn references(ws: &mut Workspace, path: &str, offset: usize, with_declaration: bool) -> Vec<Place> {
    let a = ws.analysis(path);
    let Some((_, symbol)) = a.symbol_at(offset) else { return vec![] };
    let Some(key) = key(&a, symbol) else { return vec![] };
    let mut found: Vec<Place> = uses(ws, path, &a, symbol, &key);
    if !with_declaration && let Key::Declared(at) = &key {
        found.retain(|p| p != at);
    }
    found
}

/// Every use of a symbol, sorted by place.
pub(super) fn uses(ws: &mut Workspace, path: &str, a: &Arc<Analysis>, s: &Symbol, key: &Key) -> Vec<Place> {
    let mut files = BTreeSet::from([path.to_string()]);
    if !inside(s) {
        files.extend(a.read.iter().cloned());
        files.extend(ws.files());
    }
    let mut out = vec![];
    for f in files {
        ws.stop.check();
        // A file that does not contain the name does not use it, under whatever name it imports it.
        if f != path && ws.text(&f).is_none_or(|t| !t.contains(&s.name)) {
            continue;
        }
        out.extend(known_uses(ws, &f, key));
    }
    out.sort();
    out.dedup();
    out
}

/// The uses of a symbol in a file, from the last search if that was for the same and nothing has changed.
fn known_uses(ws: &mut Workspace, file: &str, key: &Key) -> Vec<Place> {
    let number = ws.number(file);
    let searched = ws.searched.take().filter(|s| s.0 == *key);
    let (_, known) = ws.searched.insert(searched.unwrap_or_else(|| (key.clone(), BTreeMap::new())));
    if let Some((_, places)) = known.get(file).filter(|(of, _)| number == Some(*of)) {
        return places.clone();
    }
    let a = ws.analysis(file);
    let places = uses_in(&a, key);
    ws.searched.iter_mut().for_each(|s| drop(s.1.insert(file.to_string(), (a.number, places.clone()))));
    places
}

/// The uses of a symbol in the file that was asked for.
pub(super) fn uses_in(a: &Analysis, wanted: &Key) -> Vec<Place> {
    let Some(id) = a.index.symbols.iter().position(|s| key(a, s).as_ref() == Some(wanted)) else {
        return vec![];
    };
    let own = a.index.references_in(Analysis::ROOT).iter();
    own.filter(|r| r.symbol.0 as usize == id).map(|r| a.place(r.span)).collect()
}

/// Returns true if no other file can name it.
fn inside(s: &Symbol) -> bool {
    match s.kind {
        SymbolKind::Local(_) | SymbolKind::Alias(_) => true,
        // A constant of a body is no item of its file.
        SymbolKind::Const(_) => s.item == s.span || s.item.is_none(),
        SymbolKind::Module(_)
        | SymbolKind::Fn(_)
        | SymbolKind::Struct(_)
        | SymbolKind::Field(..)
        | SymbolKind::CVar(_)
        | SymbolKind::Param(_)
        | SymbolKind::Builtin(_)
        | SymbolKind::BuiltinParam(..) => false,
    }
}

/// Every use in this file, with whether it writes.
pub fn highlight(ws: &mut Workspace, path: &str, offset: usize) -> Vec<(Place, bool)> {
    let a = ws.analysis(path);
    let Some(at) = a.offset(offset) else { return vec![] };
    let Some(here) = a.index.reference_at(Analysis::ROOT, at) else { return vec![] };
    let own = a.index.references_in(Analysis::ROOT).iter();
    own.filter(|r| r.symbol == here.symbol).map(|r| (a.place(r.span), r.write)).collect()
}

/// The files that the `use` lines of a file name: each name of a file, and its path.
pub fn links(ws: &mut Workspace, path: &str) -> Vec<(Place, String)> {
    let a = ws.analysis(path);
    let items = a.root().map_or(&[][..], |file| &file.items);
    let uses = items.iter().filter_map(|i| if let ItemKind::Use(u) = &i.kind { Some(u) } else { None });
    let names = uses.flat_map(|u| u.path.segments.iter().chain(u.names.iter().flatten()));
    let file = |name: &Name| {
        let symbol = a.index.reference(name.span).and_then(|r| a.index.symbol(r.symbol))?;
        let SymbolKind::Module(file) = symbol.kind else { return None };
        Some((a.place(name.span), a.checked.sources.get(file)?.name.to_string()))
    };
    names.filter_map(file).collect()
}
