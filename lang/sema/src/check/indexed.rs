//! Builds an [`Index`] from the records of checking ([`super::record`]).
//!
//! A symbol is known by the place of its name: what was checked twice, or is in a copied tree, is one symbol.

use std::collections::HashMap;

use tk_ops::table::Row;
use tk_syntax::{Span, ast};

use super::Program;
use super::record::{Target, Variable};
use crate::hir::{CVarId, FnId, StructId};
use crate::index::{Index, IndexedFile, Reference, Symbol, SymbolId, SymbolKind};

/// The extent of each declaration in the tree, and its doc comment.
type Declared = HashMap<Span, (Span, String)>;

struct Builder {
    index: Index,
    by_place: HashMap<Span, SymbolId>,
    modules: Vec<SymbolId>,
    rows: HashMap<(*const Row, u32), SymbolId>,
    declared: Declared,
}

/// The index of a program whose check has ended.
pub(super) fn index(p: &mut Program) -> Index {
    let names = p.record.take_names();
    let mut b = Builder {
        index: Index::default(),
        by_place: HashMap::new(),
        modules: vec![],
        rows: HashMap::new(),
        declared: declared(p),
    };
    b.items(p);
    b.variables(p);
    let mut aliases: HashMap<(tk_syntax::FileId, String), SymbolId> = HashMap::new();
    for (span, name, target) in &p.record.aliases {
        let Some(to) = b.symbol(*target) else { continue };
        let kind = SymbolKind::Alias(to);
        if let Some(id) = b.add(kind, name, Some(*span), None) {
            aliases.insert((span.file, name.clone()), id);
        }
    }
    for (span, target, write) in names {
        let Some(mut symbol) = b.symbol(target) else { continue };
        let text = p.sources.text(span);
        let own = b.index.symbols.get(symbol.0 as usize).map_or("", |s| s.name.as_str());
        if own != text
            && let Some(id) = aliases.get(&(span.file, text.to_string()))
        {
            symbol = *id;
        }
        b.index.references.push(Reference { span, symbol, write });
    }
    b.declarations();
    b.index.expressions = std::mem::take(&mut p.record.types);
    b.index.calls = std::mem::take(&mut p.record.calls);
    let files = p.files.iter();
    b.index.files =
        files.map(|f| IndexedFile { id: f.id, key: f.key.clone(), tree: f.ast.clone() }).collect();
    b.index.put_in_order();
    b.index
}

impl Builder {
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
        if let Some(id) = span.and_then(|s| self.by_place.get(&s)) {
            return Some(*id);
        }
        let id = SymbolId(self.index.symbols.len() as u32);
        let (item, doc) = span.and_then(|s| self.declared.get(&s)).cloned().unzip();
        let doc = doc.unwrap_or_default();
        self.index.symbols.push(Symbol {
            kind,
            name: name.to_string(),
            span,
            item: item.or(span),
            doc,
            owner,
            mutable: false,
        });
        if let Some(s) = span {
            self.by_place.insert(s, id);
        }
        Some(id)
    }

    /// Files, functions, structs with their fields and parameters, constants.
    fn items(&mut self, p: &Program) {
        for f in &p.files {
            let name = f.key.rsplit(['/', ':']).next().unwrap_or_default().trim_end_matches(".tk");
            let name = if name.is_empty() { "?" } else { name };
            let id = self.add(SymbolKind::Module(f.id), name, None, None);
            self.modules.extend(id);
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
            let owner = owner.and_then(|s| self.by_place.get(&s.span).copied());
            let kind = SymbolKind::Fn(FnId(i as u32));
            let Some(id) = self.add(kind, &f.name, Some(f.span), owner) else { continue };
            self.cvars(p, &f.cparams, id);
            for prm in &f.params {
                self.add(SymbolKind::Param(prm.ty.clone()), &prm.name, Some(prm.span), Some(id));
            }
        }
        for (i, c) in p.hir.consts.iter().enumerate() {
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

    /// Run-time variables, and the compile-time ones of loops.
    fn variables(&mut self, p: &Program) {
        for v in &p.record.variables {
            let Variable { name, span, ty, mutable, func, param } = v;
            let owner = func.and_then(|f| p.hir.fns.get(f.0 as usize)).map(|f| f.span);
            let owner = owner.and_then(|s| self.by_place.get(&s).copied());
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
        for (i, c) in p.hir.cvars.iter().enumerate() {
            if p.sources.text(c.span) == c.name {
                self.add(SymbolKind::CVar(CVarId(i as u32)), &c.name, Some(c.span), None);
            }
        }
    }

    fn symbol(&mut self, target: Target) -> Option<SymbolId> {
        match target {
            Target::Place(span) => self.by_place.get(&span).copied(),
            Target::Module(i) => self.modules.get(i).copied(),
            Target::Row(row) => self.builtin(row, None),
            Target::RowParam(row, i) => self.builtin(row, Some(i)),
        }
    }

    fn builtin(&mut self, row: &'static Row, param: Option<u32>) -> Option<SymbolId> {
        let key = (std::ptr::from_ref(row), param.map_or(0, |p| p + 1));
        if let Some(id) = self.rows.get(&key) {
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
        self.rows.insert(key, id);
        Some(id)
    }

    /// The declarations are uses too; that of a test is no name.
    fn declarations(&mut self) {
        for (i, s) in self.index.symbols.iter().enumerate() {
            let Some(span) = s.span else { continue };
            if (span.end - span.start) as usize == s.name.len() {
                let symbol = SymbolId(i as u32);
                self.index.references.push(Reference { span, symbol, write: true });
            }
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
