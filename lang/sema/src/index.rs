//! Queries of an editor on a checked program: the meaning of each name and the type of each expression.
//!
//! It is filled while checking ([`crate::check_indexed`]). A function with errors still has entries for all that was
//! understood.

use std::sync::Arc;

use tk_ops::table::Row;
use tk_syntax::{FileId, Span, ast};

use crate::eval::{Bindings, CVal, Evaluator};
use crate::hir::{CVarId, ConstId, FnId, HExpr, Hir, StructId};
use crate::types::{CTerm, Ty};
use crate::visit;

/// A symbol: index into [`Index::symbols`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SymbolId(pub u32);

/// The kinds of symbols.
#[derive(Clone, Debug, PartialEq)]
pub enum SymbolKind {
    /// A file, as `use` names it.
    Module(FileId),
    /// A function, kernel, method or test.
    Fn(FnId),
    /// A struct.
    Struct(StructId),
    /// A field: the struct and its number.
    Field(StructId, u32),
    /// A constant of a file or of a body.
    Const(ConstId),
    /// A compile-time parameter, or the variable of a loop that is unrolled.
    CVar(CVarId),
    /// A run-time parameter.
    Param(Ty),
    /// A run-time variable.
    Local(Ty),
    /// Another name of an item, `use a::f as g`.
    Alias(SymbolId),
    /// A builtin.
    Builtin(&'static Row),
    /// A parameter of a builtin.
    BuiltinParam(&'static Row, u32),
}

/// A name that stands for something.
#[derive(Clone, Debug, PartialEq)]
pub struct Symbol {
    /// The kind of symbol.
    pub kind: SymbolKind,
    /// Its name.
    pub name: String,
    /// The declaration of its name; builtins and files have none.
    pub span: Option<Span>,
    /// All of its declaration.
    pub item: Option<Span>,
    /// Its doc comment.
    pub doc: String,
    /// The owner: the function of a variable, the struct of a field.
    pub owner: Option<SymbolId>,
    /// Whether it may be assigned again.
    pub mutable: bool,
}

impl Symbol {
    /// No symbol: the number of one that is gone.
    pub(crate) fn free() -> Symbol {
        let kind = SymbolKind::Local(Ty::Err);
        let (name, doc) = (String::new(), String::new());
        Symbol { kind, name, span: None, item: None, doc, owner: None, mutable: false }
    }
}

/// A name in the source and what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    /// The name.
    pub span: Span,
    /// The symbol that it names.
    pub symbol: SymbolId,
    /// Whether something is assigned to it here.
    pub write: bool,
}

/// A call of a function or the launch of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct CallFact {
    /// The whole call.
    pub span: Span,
    /// The callee.
    pub callee: FnId,
    /// Its compile-time arguments, given and inferred.
    pub cargs: Vec<(CVarId, CTerm)>,
}

/// A file of the program.
#[derive(Clone, Debug)]
pub struct IndexedFile {
    /// Its number in the sources.
    pub id: FileId,
    /// The name that it is imported by: `std::grid`, or its path.
    pub key: String,
    /// Its tree.
    pub tree: Arc<ast::File>,
}

/// The answers to an editor's questions about a checked program.
#[derive(Clone, Debug, Default)]
pub struct Index {
    /// Every symbol.
    pub symbols: Vec<Symbol>,
    /// Every name with a meaning in order of its place, the declarations included.
    pub references: Vec<Reference>,
    /// The type of each expression, in order of place; of two with one start the longer comes first.
    pub expressions: Vec<(Span, Ty)>,
    /// The calls in order of place.
    pub calls: Vec<CallFact>,
    /// The files in the order in which they were read.
    pub files: Vec<IndexedFile>,
}

impl Index {
    /// The symbol.
    pub fn symbol(&self, id: SymbolId) -> Option<&Symbol> {
        self.symbols.get(id.0 as usize)
    }

    /// The file.
    pub fn file(&self, id: FileId) -> Option<&IndexedFile> {
        self.files.iter().find(|f| f.id == id)
    }

    /// The name that contains an offset or ends there.
    pub fn reference_at(&self, file: FileId, offset: u32) -> Option<Reference> {
        let end = self.references.partition_point(|r| (r.span.file, r.span.start) <= (file, offset));
        let before = self.references.get(..end)?.iter().rev();
        before.take(2).find(|r| r.span.file == file && r.span.end >= offset).copied()
    }

    /// The name with just this place.
    pub fn reference(&self, span: Span) -> Option<Reference> {
        let i = self.references.binary_search_by_key(&span, |r| r.span).ok()?;
        self.references.get(i).copied()
    }

    /// The names of a file, in order.
    pub fn references_in(&self, file: FileId) -> &[Reference] {
        let start = self.references.partition_point(|r| r.span.file < file);
        let end = self.references.partition_point(|r| r.span.file <= file);
        self.references.get(start..end).unwrap_or(&[])
    }

    /// The type of the expression with just this place.
    pub fn type_of(&self, span: Span) -> Option<&Ty> {
        let key = order(span);
        let i = self.expressions.binary_search_by_key(&key, |e| order(e.0)).ok()?;
        self.expressions.get(i).map(|e| &e.1)
    }

    /// The smallest expression around an offset.
    pub fn expression_at(&self, file: FileId, offset: u32) -> Option<&(Span, Ty)> {
        let end = self.expressions.partition_point(|e| (e.0.file, e.0.start) <= (file, offset));
        let before = self.expressions.get(..end)?.iter().rev();
        before.take_while(|e| e.0.file == file).find(|e| e.0.end >= offset)
    }

    /// The calls with just this place.
    pub fn call(&self, span: Span) -> Option<&CallFact> {
        let i = self.calls.binary_search_by_key(&order(span), |c| order(c.span)).ok()?;
        self.calls.get(i)
    }

    /// Sorts, and keeps one of what is there twice.
    pub(crate) fn put_in_order(&mut self) {
        // What is written first comes first of two with one place, and stays.
        self.references.sort_by_key(|r| (r.span, !r.write));
        self.references.dedup_by_key(|r| r.span);
        self.expressions.sort_by_key(|e| order(e.0));
        self.expressions.dedup_by_key(|e| e.0);
        self.calls.sort_by_key(|c| order(c.span));
        self.calls.dedup_by_key(|c| c.span);
    }
}

/// By start; of two with one start the longer first.
fn order(s: Span) -> (FileId, u32, std::cmp::Reverse<u32>) {
    (s.file, s.start, std::cmp::Reverse(s.end))
}

/// The value of a constant, where it depends on no parameter.
pub fn const_value(hir: &Hir, id: ConstId) -> Option<String> {
    value(hir, &hir.consts.get(id.0 as usize)?.value)
}

/// The value of the compile-time expression with just this place in a function, where it depends on no parameter.
pub fn value_at(hir: &Hir, id: FnId, span: Span) -> Option<String> {
    let mut found = None;
    visit::look_block(&hir.fns.get(id.0 as usize)?.body, &mut |e| find(e, span, &mut found));
    found.filter(|e| e.konst).and_then(|e| value(hir, e))
}

fn find<'h>(e: &'h HExpr, span: Span, found: &mut Option<&'h HExpr>) {
    if e.span == span && found.is_none() {
        *found = Some(e);
    }
    if found.is_none() {
        visit::look(e, &mut |e| find(e, span, found));
    }
}

fn value(hir: &Hir, e: &HExpr) -> Option<String> {
    // A hole may stand for a constant that depends on itself.
    if e.ty.is_err() {
        return None;
    }
    match Evaluator::new(hir, &Bindings::default()).expr(e).ok()? {
        v @ (CVal::Int(_)
        | CVal::Float(_)
        | CVal::Bool(_)
        | CVal::DType(_)
        | CVal::Shape(_)
        | CVal::Tuple(_)) => Some(v.to_string()),
        CVal::Str(_) | CVal::Fn(_) | CVal::View(_) | CVal::Unit | CVal::None => None,
    }
}
