//! Completion after a dot.

use tk_sema::index::SymbolKind;
use tk_sema::poly::Poly;
use tk_sema::types::{Elem, Ty};
use tk_syntax::Span;
use tk_syntax::token::Tok;

use super::complete::{CompletionKind, List, receiver};
use super::context::declared;
use super::scope::scope;
use super::site::Site;
use super::{Analysis, Workspace, describe};

/// The members of the value before the dot.
pub(super) fn after_dot(ws: &Workspace, a: &Analysis, site: &Site, list: &mut List) {
    // The value ends before the dot; a line may end in between.
    let Some(value) = site.before.checked_sub(2).and_then(|i| site.tokens.get(i)) else { return };
    if matches!(value.tok, Tok::Int(_) | Tok::Float(_)) {
        return;
    }
    let dot = value.end;
    let facts = base_word(a, dot).map(describe::facts).unwrap_or_default();
    if !facts.is_empty() {
        return properties(&facts, list);
    }
    if let Some(t) = type_before(a, dot) {
        return members(a, in_place(a, dot, &t), list);
    }
    // The line cannot be read: with a name after the dot, as a statement or the head of a block, it may be.
    let range = site.start..site.end;
    for rest in ["shape;", "shape {}"] {
        let mut text = a.root_text().to_string();
        if text.get(range.clone()).is_none() {
            return;
        }
        text.replace_range(range.clone(), rest);
        let whole = ws.analyse(&list.replace.path, &[(list.replace.path.clone(), text)].into());
        if let Some(t) = type_before(&whole, dot) {
            return members(&whole, in_place(&whole, dot, &t), list);
        }
    }
    // A default may use a parameter that is not written yet, which is nearly always a view.
    if matches!(value.tok, Tok::Id(_)) && site.back(3) != Some(Tok::Dot) && declared(site).is_some() {
        let view = Ty::View { elem: Elem::Err, rank: Poly::int(1), mutable: false, wide: false };
        members(a, Members::Extents(&view), list);
    }
}

/// The type whose members a value has: in a clause the extents of an optional view have names, as those of any view.
fn in_place<'t>(a: &Analysis, dot: usize, ty: &'t Ty) -> Members<'t> {
    let at = u32::try_from(dot).unwrap_or(u32::MAX);
    match ty {
        Ty::Option(of)
            if matches!(**of, Ty::View { .. }) && a.root().is_some_and(|f| scope(f, at).clause) =>
        {
            Members::Extents(of)
        }
        ty => Members::All(ty),
    }
}

/// What may follow a dot.
#[derive(Clone, Copy)]
enum Members<'t> {
    /// What a value of a type has.
    All(&'t Ty),
    /// The extents of a view of a type.
    Extents(&'t Ty),
}

/// The single name before a dot.
fn base_word(a: &Analysis, dot: usize) -> Option<&str> {
    let text = a.root_text().get(..dot)?;
    let start = text.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |i| i + 1);
    text.get(start..)
}

/// The type of the expression that ends at a dot.
fn type_before(a: &Analysis, dot: usize) -> Option<Ty> {
    let dot = u32::try_from(dot).ok()?;
    let at = dot.checked_sub(1)?;
    let name = a.index.reference_at(Analysis::ROOT, dot).filter(|r| r.span.end == dot);
    let named = name.and_then(|r| a.index.symbol(r.symbol)).and_then(|s| match &s.kind {
        SymbolKind::Local(t) | SymbolKind::Param(t) => Some(t.clone()),
        SymbolKind::CVar(id) => {
            let kind = a.checked.hir.cvars.get(id.0 as usize).map(|c| &c.kind);
            matches!(kind, Some(tk_sema::hir::CKind::DType(_))).then_some(Ty::DType)
        }
        SymbolKind::Field(id, n) => {
            Some(a.checked.hir.structs.get(id.0 as usize)?.fields.get(*n as usize)?.1.clone())
        }
        SymbolKind::Module(_)
        | SymbolKind::Fn(_)
        | SymbolKind::Struct(_)
        | SymbolKind::Const(_)
        | SymbolKind::Alias(_)
        | SymbolKind::Builtin(_)
        | SymbolKind::BuiltinParam(..) => None,
    });
    let word = base_word(a, dot as usize).and_then(tk_ops::DType::parse).map(|_| Ty::DType);
    let ends_here = |e: &&(Span, Ty)| e.0.file == Analysis::ROOT && e.0.end == dot && e.0.start <= at;
    let whole = a.index.expressions.iter().find(ends_here).map(|e| e.1.clone());
    whole.or(named).or(word).filter(|t| !t.is_err())
}

fn properties(list: &[(&str, &str, &str)], out: &mut List) {
    for (name, ty, doc) in list {
        out.add(name, CompletionKind::Property, &format!("{name}: {ty}"), doc);
    }
}

fn members(a: &Analysis, of: Members, list: &mut List) {
    let ty = match of {
        Members::All(ty) => ty,
        Members::Extents(ty) => {
            let is_extent = |p: &&(&str, &str, &str)| matches!(p.0, "shape" | "strides");
            let all = describe::properties(ty).iter().filter(is_extent);
            return properties(&all.copied().collect::<Vec<_>>(), list);
        }
    };
    properties(describe::properties(ty), list);
    if let Some(r) = receiver(ty) {
        tk_ops::rows::methods(r).filter(|r| describe::has_receiver(r)).for_each(|r| {
            list.row(r, CompletionKind::Method);
        });
    }
    if let Ty::Struct(id, _) = ty
        && let Some(s) = a.checked.hir.structs.get(id.0 as usize)
    {
        for (name, ty, at) in &s.fields {
            let doc = a.index.reference(*at).and_then(|r| a.index.symbol(r.symbol)).map(|s| s.doc.as_str());
            list.add(
                name,
                CompletionKind::Field,
                &format!("{name}: {}", a.show(ty)),
                doc.unwrap_or_default(),
            );
        }
        for (name, f) in &s.methods {
            let at = a.checked.hir.fns.get(f.0 as usize).map(|f| f.span);
            let symbol = at.and_then(|s| a.index.reference(s)).and_then(|r| a.index.symbol(r.symbol));
            symbol.into_iter().for_each(|s| list.symbol(a, name, s));
        }
    }
}
