//! Builds an [`Index`] from the records of checking ([`super::record`]).
//!
//! A symbol is known by the place of its name: what was checked twice, or is in a copied tree, is one symbol.

use std::collections::HashMap;
use std::ops::Range;

use tk_ops::table::Row;
use tk_syntax::{FileId, Span, ast};

use super::Program;
use super::record::{Target, Variable};
use crate::hir::{CVarId, FnId, StructId};
use crate::index::{CallFact, Index, IndexedFile, Reference, Symbol, SymbolId, SymbolKind};
use crate::types::Ty;

/// The extent of each declaration in the tree, and its doc comment.
type Declared = HashMap<Span, (Span, String)>;

/// The symbols of a program by what they stand for.
#[derive(Default)]
pub(super) struct Symbols {
    by_place: HashMap<Span, SymbolId>,
    modules: Vec<SymbolId>,
    /// Rows of the op table by address, and their parameters from 1 on.
    rows: HashMap<(usize, u32), SymbolId>,
    aliases: HashMap<(FileId, String), SymbolId>,
    /// Symbols of bodies that have been checked again: their numbers are free.
    free: Vec<SymbolId>,
}

struct Builder {
    index: Index,
    symbols: Symbols,
    declared: Declared,
}

/// The index of a program whose check has ended, and its symbols for [`update`].
pub(super) fn index(p: &mut Program) -> (Index, Symbols) {
    let names = p.record.take_names();
    let (index, symbols) = (Index::default(), Symbols::default());
    let mut b = Builder { index, symbols, declared: declared(p) };
    b.items(p);
    b.variables(p, 0..p.hir.cvars.len());
    for (span, name, target) in &p.record.aliases {
        let Some(to) = b.symbol(*target) else { continue };
        let kind = SymbolKind::Alias(to);
        if let Some(id) = b.add(kind, name, Some(*span), None) {
            b.symbols.aliases.insert((span.file, name.clone()), id);
        }
    }
    b.references(p, names);
    for i in 0..b.index.symbols.len() {
        b.declaration(SymbolId(i as u32));
    }
    b.index.expressions = std::mem::take(&mut p.record.types);
    b.index.calls = std::mem::take(&mut p.record.calls);
    p.record.variables.clear();
    let files = p.files.iter();
    b.index.files =
        files.map(|f| IndexedFile { id: f.id, key: f.key.clone(), tree: f.ast.clone() }).collect();
    b.index.put_in_order();
    (b.index, b.symbols)
}

/// Brings an index up to date after the check of one body of an item, which begins where `place` does and ends before.
/// The check has recorded that body alone, and has added these constants and compile-time variables.
pub(super) fn update(
    p: &mut Program,
    index: &mut Index,
    symbols: &mut Symbols,
    place: Span,
    item: usize,
    consts: Range<usize>,
    cvars: Range<usize>,
) {
    let names = p.record.take_names();
    let taken = (std::mem::take(index), std::mem::take(symbols));
    let mut b = Builder { index: taken.0, symbols: taken.1, declared: Declared::new() };
    b.forget(place);
    let parts = Parts::cut(&mut b.index, place);
    b.consts(p, consts);
    b.variables(p, cvars);
    b.references(p, names);
    let new: Vec<SymbolId> = b.symbols.by_place.iter().filter(|s| holds(place, *s.0)).map(|s| *s.1).collect();
    new.into_iter().for_each(|id| b.declaration(id));
    b.index.expressions = std::mem::take(&mut p.record.types);
    b.index.calls = std::mem::take(&mut p.record.calls);
    p.record.variables.clear();
    b.index.references.retain(|r| holds(place, r.span));
    b.index.expressions.retain(|e| holds(place, e.0));
    b.index.calls.retain(|c| holds(place, c.span));
    b.index.put_in_order();
    parts.join(&mut b.index);
    if let (Some(file), Some(own)) = (b.index.files.first_mut(), p.files.first()) {
        file.tree = own.ast.clone();
        own.ast.items.get(item).into_iter().for_each(|i| declared_item(i, &mut b.declared));
    }
    for (name, (whole, _)) in &b.declared {
        if let Some(id) = b.symbols.by_place.get(name)
            && let Some(symbol) = b.index.symbols.get_mut(id.0 as usize)
        {
            symbol.item = Some(*whole);
        }
    }
    (*index, *symbols) = (b.index, b.symbols);
}

/// Returns true if a span is inside of a body.
fn holds(body: Span, span: Span) -> bool {
    span.file == body.file && body.start <= span.start && span.end <= body.end
}

/// The entries of an index before and behind a body.
struct Parts {
    references: Around<Reference>,
    expressions: Around<(Span, Ty)>,
    calls: Around<CallFact>,
}

/// What is before a place, which takes what is put there, and what follows.
struct Around<T>(Vec<T>, Vec<T>);

impl<T> Around<T> {
    fn cut(all: &mut Vec<T>, body: Span, span: impl Fn(&T) -> Span) -> Around<T> {
        let key = |t: &T| (span(t).file, span(t).start);
        let end = all.partition_point(|t| key(t) < (body.file, body.end));
        let behind = all.split_off(end);
        let start = all.partition_point(|t| key(t) < (body.file, body.start));
        all.truncate(start);
        Around(std::mem::take(all), behind)
    }

    fn join(mut self, inside: &mut Vec<T>) {
        self.0.append(inside);
        self.0.append(&mut self.1);
        *inside = self.0;
    }
}

impl Parts {
    fn cut(index: &mut Index, body: Span) -> Parts {
        Parts {
            references: Around::cut(&mut index.references, body, |r| r.span),
            expressions: Around::cut(&mut index.expressions, body, |e| e.0),
            calls: Around::cut(&mut index.calls, body, |c| c.span),
        }
    }

    fn join(self, index: &mut Index) {
        self.references.join(&mut index.references);
        self.expressions.join(&mut index.expressions);
        self.calls.join(&mut index.calls);
    }
}

impl Builder {
    /// Frees the symbols that a body declares.
    fn forget(&mut self, body: Span) {
        let Builder { index, symbols, .. } = self;
        symbols.by_place.retain(|span, id| {
            let inside = holds(body, *span);
            if inside && let Some(symbol) = index.symbols.get_mut(id.0 as usize) {
                *symbol = Symbol::free();
                symbols.free.push(*id);
            }
            !inside
        });
    }

    fn references(&mut self, p: &Program, names: Vec<(Span, Target, bool)>) {
        for (span, target, write) in names {
            let Some(mut symbol) = self.symbol(target) else { continue };
            let text = p.sources.text(span);
            let own = self.index.symbols.get(symbol.0 as usize).map_or("", |s| s.name.as_str());
            if own != text
                && let Some(id) = self.symbols.aliases.get(&(span.file, text.to_string()))
            {
                symbol = *id;
            }
            self.index.references.push(Reference { span, symbol, write });
        }
    }

    /// Adds a symbol; one whose name is at a position that has a symbol is that one.
    fn add(
        &mut self,
        kind: SymbolKind,
        name: &str,
        span: Option<Span>,
        owner: Option<SymbolId>,
    ) -> Option<SymbolId> {
        if name.is_empty() || name == "_" {
            return None;
        }
        if let Some(id) = span.and_then(|s| self.symbols.by_place.get(&s)) {
            return Some(*id);
        }
        let (item, doc) = span.and_then(|s| self.declared.get(&s)).cloned().unzip();
        let (doc, item) = (doc.unwrap_or_default(), item.or(span));
        let symbol = Symbol { kind, name: name.to_string(), span, item, doc, owner, mutable: false };
        let next = SymbolId(self.index.symbols.len() as u32);
        let id = self.symbols.free.pop().unwrap_or(next);
        match self.index.symbols.get_mut(id.0 as usize) {
            Some(slot) => *slot = symbol,
            None => self.index.symbols.push(symbol),
        }
        if let Some(s) = span {
            self.symbols.by_place.insert(s, id);
        }
        Some(id)
    }

    /// Files, functions, structs with their fields and parameters, constants.
    fn items(&mut self, p: &Program) {
        for f in &p.files {
            let name = f.key.rsplit(['/', ':']).next().unwrap_or_default().trim_end_matches(".tk");
            let name = if name.is_empty() { "?" } else { name };
            let id = self.add(SymbolKind::Module(f.id), name, None, None);
            self.symbols.modules.extend(id);
        }
        for (i, s) in p.hir.structs.iter().enumerate() {
            let sid = StructId(i as u32);
            let Some(id) = self.add(SymbolKind::Struct(sid), &s.name, Some(s.span), None) else { continue };
            for (n, (name, _, span)) in s.fields.iter().enumerate() {
                self.add(SymbolKind::Field(sid, n as u32), name, Some(*span), Some(id));
            }
            self.cvars(p, &s.cparams, id);
        }
        for (i, f) in p.hir.fns.iter().enumerate() {
            let owner = p.sigs.get(i).and_then(|s| s.owner).and_then(|s| p.hir.structs.get(s.0 as usize));
            let owner = owner.and_then(|s| self.symbols.by_place.get(&s.span).copied());
            let kind = SymbolKind::Fn(FnId(i as u32));
            let Some(id) = self.add(kind, &f.name, Some(f.span), owner) else { continue };
            self.cvars(p, &f.cparams, id);
            for prm in &f.params {
                self.add(SymbolKind::Param(prm.ty.clone()), &prm.name, Some(prm.span), Some(id));
            }
        }
        self.consts(p, 0..p.hir.consts.len());
    }

    fn consts(&mut self, p: &Program, ids: Range<usize>) {
        for (i, c) in ids.clone().zip(p.hir.consts.get(ids).unwrap_or_default()) {
            let kind = SymbolKind::Const(crate::hir::ConstId(i as u32));
            self.add(kind, &c.name, Some(c.span), None);
        }
    }

    fn cvars(&mut self, p: &Program, ids: &[CVarId], owner: SymbolId) {
        for id in ids {
            if let Some(c) = p.hir.cvars.get(id.0 as usize) {
                self.add(SymbolKind::CVar(*id), &c.name, Some(c.span), Some(owner));
            }
        }
    }

    /// Run-time variables, and the compile-time ones of loops, which are among these.
    fn variables(&mut self, p: &Program, cvars: Range<usize>) {
        for v in &p.record.variables {
            let Variable { name, span, ty, mutable, func, param } = v;
            let owner = func.and_then(|f| p.hir.fns.get(f.0 as usize)).map(|f| f.span);
            let owner = owner.and_then(|s| self.symbols.by_place.get(&s).copied());
            let kind = if *param { SymbolKind::Param(ty.clone()) } else { SymbolKind::Local(ty.clone()) };
            let Some(id) = self.add(kind, name, Some(*span), owner) else { continue };
            let Some(s) = self.index.symbols.get_mut(id.0 as usize) else { continue };
            s.mutable |= *mutable;
            // Of a variable that is checked in two arms the first type that is known counts.
            if let SymbolKind::Local(t) | SymbolKind::Param(t) = &mut s.kind
                && t.is_err()
            {
                t.clone_from(ty);
            }
        }
        for (i, c) in cvars.clone().zip(p.hir.cvars.get(cvars).unwrap_or_default()) {
            if p.sources.text(c.span) == c.name {
                self.add(SymbolKind::CVar(CVarId(i as u32)), &c.name, Some(c.span), None);
            }
        }
    }

    fn symbol(&mut self, target: Target) -> Option<SymbolId> {
        match target {
            Target::Place(span) => self.symbols.by_place.get(&span).copied(),
            Target::Module(i) => self.symbols.modules.get(i).copied(),
            Target::Row(row) => self.builtin(row, None),
            Target::RowParam(row, i) => self.builtin(row, Some(i)),
        }
    }

    fn builtin(&mut self, row: &'static Row, param: Option<u32>) -> Option<SymbolId> {
        let key = (std::ptr::from_ref(row).addr(), param.map_or(0, |p| p + 1));
        if let Some(id) = self.symbols.rows.get(&key) {
            return Some(*id);
        }
        let id = match param {
            None => self.add(SymbolKind::Builtin(row), row.name, None, None),
            Some(i) => {
                let owner = self.builtin(row, None);
                let name = row.params.get(i as usize)?.name;
                self.add(SymbolKind::BuiltinParam(row, i), name, None, owner)
            }
        }?;
        self.symbols.rows.insert(key, id);
        Some(id)
    }

    /// A declaration is a use too; that of a test is no name.
    fn declaration(&mut self, symbol: SymbolId) {
        let Some(s) = self.index.symbols.get(symbol.0 as usize) else { return };
        let Some(span) = s.span else { return };
        if (span.end - span.start) as usize == s.name.len() {
            self.index.references.push(Reference { span, symbol, write: true });
        }
    }
}

/// The declarations in the trees of all files.
fn declared(p: &Program) -> Declared {
    let mut out = Declared::new();
    for f in &p.files {
        for item in &f.ast.items {
            declared_item(item, &mut out);
        }
    }
    out
}

fn declared_item(item: &ast::Item, out: &mut Declared) {
    let mut add = |name: Span, whole: Span, doc: &str| drop(out.insert(name, (whole, doc.to_string())));
    match &item.kind {
        ast::ItemKind::Const(c) => add(c.name.span, item.span, &item.doc),
        ast::ItemKind::Test(t) => add(t.name_span, item.span, &item.doc),
        ast::ItemKind::Fn(f) => {
            add(f.name.span, item.span, &item.doc);
            f.cparams.iter().for_each(|c| add(c.name.span, c.span, ""));
            f.params.iter().for_each(|p| add(p.name.span, p.span, &p.doc));
        }
        ast::ItemKind::Struct(s) => {
            add(s.name.span, item.span, &item.doc);
            s.cparams.iter().for_each(|c| add(c.name.span, c.span, ""));
            s.fields.iter().for_each(|p| add(p.name.span, p.span, &p.doc));
            s.methods.iter().for_each(|m| declared_item(m, out));
        }
        ast::ItemKind::Use(_) | ast::ItemKind::Export(_) | ast::ItemKind::Err => {}
    }
}
