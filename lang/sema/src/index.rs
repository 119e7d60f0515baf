//! Owns what an editor asks of a checked program: what each name means and which type each expression has.
//!
//! It is filled while checking ([`crate::check_indexed`]). A function with errors still has entries for all that was
//! understood.

use std::sync::Arc;

use tk_ops::table::Row;
use tk_syntax::{FileId, Span, ast};

use crate::hir::{CVarId, ConstId, FnId, StructId};
use crate::types::{CTerm, Ty};

/// A symbol: index into [`Index::symbols`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SymbolId(pub u32);

/// What a symbol is.
#[derive(Clone, Debug, PartialEq)]
pub enum SymbolKind {
    /// A file, as `use` names it.
    Module,
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
    /// What it is.
    pub kind: SymbolKind,
    /// Its name.
    pub name: String,
    /// Where its name is declared; builtins and files have none.
    pub span: Option<Span>,
    /// All of its declaration.
    pub item: Option<Span>,
    /// Its doc comment.
    pub doc: String,
    /// What it belongs to: the function of a variable, the struct of a field.
    pub owner: Option<SymbolId>,
    /// Whether it may be assigned again.
    pub mutable: bool,
}

/// A name in the source and what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    /// The name.
    pub span: Span,
    /// What it means.
    pub symbol: SymbolId,
    /// Whether something is assigned to it here.
    pub write: bool,
}

/// A call of a function or the launch of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct CallFact {
    /// The whole call.
    pub span: Span,
    /// What is called.
    pub callee: FnId,
    /// Its compile-time arguments, given and inferred.
    pub cargs: Vec<(CVarId, CTerm)>,
}

/// A file of the program.
#[derive(Clone, Debug)]
pub struct IndexedFile {
    /// Its number in the sources.
    pub id: FileId,
    /// What it is imported as: `std::grid`, or its path.
    pub key: String,
    /// Its tree.
    pub tree: Arc<ast::File>,
}

/// What an editor asks of a checked program.
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
