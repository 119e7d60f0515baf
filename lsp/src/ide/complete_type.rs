//! Completion of a type.

use tk_ops::{DType, DTypeSet};
use tk_sema::hir::CKind;
use tk_sema::index::{Symbol, SymbolKind};

use super::Analysis;
use super::complete::{CompletionKind as K, List};
use super::context::Context;
use super::scope::Scope;

/// The element types, those that kernels use most first.
pub(super) const DTYPES: [DType; 19] = [
    DType::F32,
    DType::F16,
    DType::I32,
    DType::BF16,
    DType::Bool,
    DType::I64,
    DType::U32,
    DType::I8,
    DType::U8,
    DType::F8E4M3,
    DType::F8E5M2,
    DType::F64,
    DType::U64,
    DType::I16,
    DType::U16,
    DType::E2M1,
    DType::E8M0,
    DType::F8E4M3FNUZ,
    DType::F8E5M2FNUZ,
];

/// The classes of element types, for bounds.
const CLASSES: &[&str] = &["float", "int", "number", "sint", "uint", "f8"];

/// The type of a tile.
const TILE: &str = "tile[T, D0, D1, ..]";

/// The types that fit a context.
pub(super) fn types<'a>(
    a: &'a Analysis,
    s: &Scope,
    items: impl Iterator<Item = &'a Symbol>,
    context: Context<'_>,
    list: &mut List,
) {
    match context {
        Context::Bound => return bounds(list),
        Context::Scratch => return workspaces(a, s, list),
        Context::Constant => {
            ["i32", "f32", "bool"].iter().for_each(|w| list.word(w, K::Type));
            list.insert("tile", K::Type, TILE, "", "tile[$0]", true);
            ["dtype", "shape"].iter().for_each(|w| list.word(w, K::Type));
        }
        _other => {}
    }
    if context == (Context::Element { pointer: true }) {
        list.word("mut", K::Keyword);
    }
    let is_whole = matches!(context, Context::Type | Context::Mutable);
    if is_whole {
        list.insert("view", K::Type, "view[T, R]", "", "view[${1:f32}, ${2:2}]", true);
    }
    if context == Context::Mutable {
        return;
    }
    if is_whole {
        list.insert("mut view", K::Type, "mut view[T, R]", "", "mut view[${1:f32}, ${2:2}]", true);
        list.insert("tile", K::Type, TILE, "", "tile[$0]", true);
    }
    dtypes(a, s).for_each(|(name, symbol)| list.symbol(a, name, symbol));
    if is_whole {
        for symbol in items.filter(|s| matches!(s.kind, SymbolKind::Struct(_))) {
            list.symbol(a, &symbol.name, symbol);
        }
    }
    DTYPES.iter().for_each(|d| list.word(d.name(), K::Type));
    if is_whole {
        list.insert("const", K::Type, "known where the kernel is compiled", "", "const ", false);
        list.insert("fn", K::Type, "fn(A, B) -> R", "", "fn(${1:f32}) -> ${2:f32}", true);
        ["dtype", "shape"].iter().for_each(|w| list.word(w, K::Type));
    }
}

/// The compile-time parameters of a place that are element types.
pub(super) fn dtypes<'a>(a: &'a Analysis, s: &'a Scope) -> impl Iterator<Item = (&'a str, &'a Symbol)> {
    s.names.iter().rev().filter_map(|n| {
        let symbol = a.index.reference(n.span).and_then(|r| a.index.symbol(r.symbol));
        Some((n.text.as_str(), symbol.filter(|s| is_dtype(a, s))?))
    })
}

/// The types of workspaces: pointers that may be written through.
fn workspaces(a: &Analysis, s: &Scope, list: &mut List) {
    let mut add = |name: &str| list.word(&format!("*mut {name}"), K::Type);
    dtypes(a, s).for_each(|(name, _)| add(name));
    // Counters are most of them.
    [DType::U32].into_iter().chain(DTYPES).for_each(|d| add(d.name()));
}

/// Returns true for a compile-time variable that is an element type.
fn is_dtype(a: &Analysis, s: &Symbol) -> bool {
    let SymbolKind::CVar(id) = s.kind else { return false };
    a.checked.hir.cvars.get(id.0 as usize).is_some_and(|c| matches!(c.kind, CKind::DType(_) | CKind::Err))
}

/// The types of compile-time parameters.
fn bounds(list: &mut List) {
    for w in ["i32", "float", "shape", "bool", "dtype", "int", "number"] {
        list.word(w, K::Type);
    }
    list.insert("fn", K::Type, "fn(A, B) -> R", "", "fn(${1:f32}) -> ${2:f32}", true);
    CLASSES.iter().filter(|c| DTypeSet::class(c).is_some()).for_each(|w| list.word(w, K::Type));
    DTYPES.iter().for_each(|d| list.word(d.name(), K::Type));
}
