//! Checks a program again after a change inside of one body: parses that item, checks that body, and takes everything
//! else from the check before.
//!
//! Guarantees the diagnostics and the index of a check of the whole program, except that numbers of symbols, constants
//! and compile-time variables may be others. Spans behind the change stay what they are, so the text must have its old
//! length and the bytes behind the changed item must be where they were; an editor leaves blanks behind items for this.
//! Whatever another item may depend on leads to a check of everything: a change outside of a body, a function whose
//! value the check of something else has computed, or one that is or was not a function of its arguments alone.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use tk_syntax::ast::{Block, File, Fn, Item, ItemKind};
use tk_syntax::{FileId, Reread, Span, parse_item};

use super::indexed::{self, Symbols};
use super::{Program, SigAst, conclude, items, recursion};
use crate::Checked;
use crate::hir::{Contract, FnId, FnKind};
use crate::index::Index;

/// The file that was asked for.
const MAIN: FileId = FileId(0);

/// The number of checks of one body after which all is checked again: each leaves constants and compile-time variables
/// of the body before behind.
const MAX_RECHECKS: usize = 500;

/// A checked program with what an editor asks of it.
pub struct Indexed {
    /// The program.
    pub checked: Checked,
    /// The meaning of its names and expressions.
    pub index: Index,
    /// The rest of the state of the check: sources and HIR are in `checked`.
    program: Program,
    symbols: Symbols,
    /// The number of checks of a body since all was checked.
    rechecks: usize,
}

impl std::fmt::Debug for Indexed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Indexed").field("checked", &self.checked).finish_non_exhaustive()
    }
}

/// A change inside of the clauses or the body of a function or test.
struct Change {
    /// Its first byte.
    start: usize,
    /// The number of the item in its file.
    item: usize,
    /// Its bytes, from its start to a place before the next item.
    range: Range<usize>,
    /// The number of the method in the item, if that is a struct.
    method: Option<usize>,
    /// The name of the function or test.
    name: Span,
}

/// A function or test of a tree.
enum Source {
    Fn(Arc<Fn>),
    Test(Arc<tk_syntax::ast::Test>),
}

impl Source {
    fn of(item: &Item, method: Option<usize>) -> Option<Source> {
        match (&item.kind, method) {
            (ItemKind::Fn(f), None) => Some(Source::Fn(f.clone())),
            (ItemKind::Test(t), None) => Some(Source::Test(t.clone())),
            (ItemKind::Struct(s), Some(m)) => Source::of(s.methods.get(m)?, None),
            (_, _) => None,
        }
    }

    fn name(&self) -> Span {
        match self {
            Source::Fn(f) => f.name.span,
            Source::Test(t) => t.name_span,
        }
    }

    fn body(&self) -> &Block {
        match self {
            Source::Fn(f) => &f.body,
            Source::Test(t) => &t.body,
        }
    }

    /// What no other item is checked by: the clauses and the body.
    fn inside(&self) -> Span {
        match self {
            Source::Fn(f) => Span { start: f.sig_span.end, ..f.body.span },
            Source::Test(t) => Span { start: t.body.span.start + 1, ..t.body.span },
        }
    }
}

impl Indexed {
    pub(super) fn new(mut program: Program, index: Index, symbols: Symbols) -> Indexed {
        let diagnostics = program.diagnostics();
        let (sources, hir) = (std::mem::take(&mut program.sources), std::mem::take(&mut program.hir));
        let checked = Checked { sources, hir, diagnostics };
        Indexed { checked, index, program, symbols, rechecks: 0 }
    }

    /// The program with another text of the file that was asked for, where only one body has changed; `None` if
    /// everything has to be checked.
    pub fn with_text(mut self, text: &str) -> Option<Indexed> {
        let p = &mut self.program;
        (p.sources, p.hir) =
            (std::mem::take(&mut self.checked.sources), std::mem::take(&mut self.checked.hir));
        let change = find(p, text)?;
        let id = FnId(p.hir.fns.iter().position(|f| f.file == MAIN && f.span == change.name)? as u32);
        let callers = callers(p, id);
        if self.rechecks >= MAX_RECHECKS || callers.iter().any(|f| p.bodies.get(f).is_none_or(|b| b.computed))
        {
            return None;
        }
        let source = replace(p, text, &change)?;
        let place = Span { end: change.range.end as u32, ..source.inside() };
        let in_clauses = change.start <= source.body().span.start as usize;
        let (consts, cvars) = (p.hir.consts.len(), p.hir.cvars.len());
        check(p, id, source, in_clauses)?;
        crate::lint::run_again(p, change.item, &callers);
        let (consts, cvars) = (consts..p.hir.consts.len(), cvars..p.hir.cvars.len());
        indexed::update(p, &mut self.index, &mut self.symbols, place, change.item, consts, cvars);
        self.checked.diagnostics = p.diagnostics();
        (self.checked.sources, self.checked.hir) =
            (std::mem::take(&mut p.sources), std::mem::take(&mut p.hir));
        self.rechecks += 1;
        Some(self)
    }
}

/// Where the texts differ, if that is inside of one function or test.
fn find(p: &Program, text: &str) -> Option<Change> {
    let old = &p.sources.get(MAIN)?.text;
    let file = &p.files.first()?.ast;
    if old.len() != text.len() || !file.paired {
        return None;
    }
    let same = |(a, b): &(&u8, &u8)| a == b;
    let start = old.bytes().zip(text.bytes()).take_while(|(a, b)| a == b).count();
    let end =
        old.len() - old.as_bytes().iter().rev().zip(text.as_bytes().iter().rev()).take_while(same).count();
    let item = file.items.partition_point(|i| (i.span.start as usize) < start).checked_sub(1)?;
    let (own, next) = (file.items.get(item)?, file.items.get(item + 1));
    let end = end.max(own.span.end as usize);
    if next.is_some_and(|next| end > next.span.start as usize) {
        return None;
    }
    let inside = |source: &Source| {
        let place = source.inside();
        (place.start as usize..place.end as usize).contains(&start)
    };
    let method = match &own.kind {
        ItemKind::Struct(s) => {
            Some(s.methods.iter().position(|m| Source::of(m, None).is_some_and(|m| inside(&m)))?)
        }
        _other => None,
    };
    let source = Source::of(own, method)?;
    let range = own.span.start as usize..end;
    inside(&source).then(|| Change { start, item, range, method, name: source.name() })
}

/// Parses the item and puts it in the place of the old one; gives the function or test that has changed.
fn replace(p: &mut Program, text: &str, change: &Change) -> Option<Source> {
    let Reread { mut item, comments, diagnostics } = parse_item(MAIN, text, change.range.clone())?;
    let file: &mut File = Arc::make_mut(&mut p.files.first_mut()?.ast);
    let old = file.items.get_mut(change.item)?;
    let rest = text.get(item.span.end as usize..change.range.end)?;
    let alone = rest.trim().is_empty() || !rest.contains('\n');
    if !alone || !alike(&item, old, change.method) {
        return None;
    }
    item.doc.clone_from(&old.doc);
    let source = Source::of(&item, change.method)?;
    *old = item;
    let own = |s: Span| s.file == MAIN && change.range.contains(&(s.start as usize));
    let at = file.comments.partition_point(|c| (c.span.start as usize) < change.range.start);
    file.comments.retain(|c| !own(c.span));
    file.comments.splice(at..at, comments);
    // A mistake at the end of a text is behind its last byte.
    let last = change.range.end == text.len();
    p.syntax.retain(|d| {
        let at = d.primary.span;
        !(own(at) || last && at.file == MAIN && at.start as usize == text.len())
    });
    p.syntax.extend(diagnostics);
    p.sources.replace(MAIN, text);
    Some(source)
}

/// Returns true if only clauses and body of one function of two items differ. What cannot be read in a clause may hide
/// the signature.
fn alike(new: &Item, old: &Item, method: Option<usize>) -> bool {
    if new.span.start != old.span.start {
        return false;
    }
    match (&new.kind, &old.kind) {
        (ItemKind::Fn(a), ItemKind::Fn(b)) => {
            let signature =
                |f: &Fn| format!("{:?}", (f.kernel, &f.name, &f.cparams, &f.params, &f.ret, f.sig_span));
            signature(a) == signature(b)
        }
        (ItemKind::Test(a), ItemKind::Test(b)) => {
            a.name_span == b.name_span && a.body.span.start == b.body.span.start
        }
        // What is behind the changed body has moved.
        (ItemKind::Struct(a), ItemKind::Struct(b)) => {
            let fields = a.fields.iter().map(|f| f.span).eq(b.fields.iter().map(|f| f.span));
            let same = a.methods.len() == b.methods.len()
                && a.methods.iter().zip(&b.methods).all(|(a, b)| alike(a, b, None));
            fields && same && method.is_some_and(|m| m + 1 == b.methods.len())
        }
        (_, _) => false,
    }
}

/// A function and all that call it, directly or not.
fn callers(p: &Program, id: FnId) -> BTreeSet<FnId> {
    let (mut found, mut open) = (BTreeSet::from([id]), vec![id]);
    while let Some(f) = open.pop() {
        for (caller, callee, _) in p.calls() {
            if callee == f && found.insert(caller) {
                open.push(caller);
            }
        }
    }
    found
}

/// Checks the body of a function again; `None` if others may depend on what is new about it.
fn check(p: &mut Program, id: FnId, source: Source, in_clauses: bool) -> Option<()> {
    let old = p.bodies.remove(&id)?;
    p.bodies_begun.remove(&id);
    let sig = p.sigs.get_mut(id.0 as usize)?;
    sig.ast = match source {
        Source::Fn(f) => SigAst::Fn(f),
        Source::Test(t) => SigAst::Test(t),
    };
    let concluded: Vec<bool> = p.hir.fns.iter().map(|f| f.broken).collect();
    let f = p.func_mut(id);
    (f.broken, f.contract) = (old.broken_before, Contract::default());
    f.locals.clear();
    let called = f.kind == FnKind::Fn;
    p.compared = 0;
    items::ensure_body(p, id);
    let pure = p.pure.remove(&id);
    if pure.is_some_and(|pure| pure != recursion::pure(p, id)) {
        return None;
    }
    // Conditions of launches may compute with functions, and an export of a kernel with an error says nothing.
    if called || in_clauses || p.bodies.get(&id)?.broken != old.broken {
        let on = std::mem::replace(&mut p.record.on, false);
        items::exports(p);
        p.record.on = on;
    }
    for (id, body) in &p.bodies {
        if let Some(f) = p.hir.fns.get_mut(id.0 as usize) {
            f.broken = body.broken;
        }
    }
    conclude(p);
    let others = p.hir.fns.iter().zip(concluded).enumerate().filter(|(i, _)| *i != id.0 as usize);
    others.into_iter().all(|(_, (f, before))| f.broken == before).then_some(())
}
