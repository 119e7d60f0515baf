//! Checking: syntax trees to typed HIR with diagnostics.
//!
//! Order: files are loaded along `use` and their names collected ([`files`]); signatures of structs, functions and
//! kernels are read ([`items`]); then bodies are checked one by one ([`body`], [`expr`] and their friends), each with
//! a [`Cx`] of its own; last, recursion is detected. A hole has type `Err`, which is silent everywhere, so a mistake
//! is reported once.

mod args;
mod assign;
mod axes;
mod body;
mod builtins;
mod call;
mod clauses;
mod coerce;
mod conditional;
mod consts;
mod cx;
mod dtypes;
mod exports;
mod expr;
pub(crate) mod files;
mod fn_values;
mod foreign;
mod given;
mod index;
mod indexed;
mod infer;
mod items;
mod launch;
mod loops;
mod members;
pub(crate) mod names;
mod operators;
mod patterns;
mod positions;
mod record;
mod recursion;
mod shapes;
mod split;
mod structs;
mod subst;
mod tables;
mod tests_only;
mod types;
mod zonk;

use std::sync::Arc;

pub use given::Written;
use tk_syntax::{Diagnostic, FileId, SourceMap, Span, ast};

use crate::hir::{CVarId, ConstId, FnId, HFn, Hir, StructId};
use crate::index::Index;
use crate::types::Ty;
use crate::{Checked, Loader};

/// Checks a file and everything that it uses.
pub fn check(loader: &dyn Loader, path: &str) -> Checked {
    run(loader, path, false, &[]).finish()
}

/// The same, with values that options write for compile-time parameters of kernels.
pub fn check_given(loader: &dyn Loader, path: &str, written: &[Written<'_>]) -> Checked {
    run(loader, path, false, written).finish()
}

/// The same, with what an editor asks of the program.
pub fn check_indexed(loader: &dyn Loader, path: &str) -> (Checked, Index) {
    let mut program = run(loader, path, true, &[]);
    let index = indexed::index(&mut program);
    (program.finish(), index)
}

fn run<'a>(loader: &'a dyn Loader, path: &str, record: bool, written: &[Written<'_>]) -> Program<'a> {
    let mut program = Program::new(loader);
    program.record.on = record;
    files::load(&mut program, path);
    items::signatures(&mut program);
    items::bodies(&mut program);
    given::check(&mut program, written);
    recursion::find(&mut program);
    tests_only::find(&mut program);
    crate::lint::run(&mut program);
    program
}

/// The meaning of a name of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Def {
    /// A file: index into [`Program::files`].
    Module(usize),
    Fn(FnId),
    Struct(StructId),
    Const(ConstId),
}

/// A loaded file.
pub(crate) struct FileInfo {
    pub id: FileId,
    /// `std::grid` or the path.
    pub key: String,
    pub ast: Arc<ast::File>,
    pub names: std::collections::BTreeMap<String, (Def, Span)>,
    /// Names of imports that were not found: their uses are not reported again.
    pub missing: std::collections::BTreeSet<String>,
}

/// The mapping of the parameters in `(..)` to run-time parameters and compile-time ones.
#[derive(Clone, Debug)]
pub(crate) enum Slot {
    Run(usize),
    Const(CVarId),
}

/// Facts about a function beyond its HIR while bodies are checked.
#[derive(Clone)]
pub(crate) struct Sig {
    pub ast: SigAst,
    pub file: usize,
    pub slots: Vec<(String, Slot)>,
    /// The struct of a method.
    pub owner: Option<StructId>,
    /// From `fn` to the end of the result type, for labels.
    pub span: Span,
}

/// The source of a function.
#[derive(Clone)]
pub(crate) enum SigAst {
    Fn(Arc<ast::Fn>),
    Test(Arc<ast::Test>),
}

/// The state of the check of a constant.
#[derive(Clone, PartialEq)]
pub(crate) enum ConstState {
    Waiting {
        file: usize,
        ast: Arc<ConstAst>,
    },
    Active,
    /// Its type; a flexible one takes the type that each use needs.
    Done(ConstTy),
}

/// A constant's source, compared by identity of its place.
pub(crate) struct ConstAst(pub ast::Const);

impl PartialEq for ConstAst {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

/// The type of a constant.
#[derive(Clone, PartialEq)]
pub(crate) enum ConstTy {
    Fixed(Ty),
    FlexInt,
    FlexFloat,
    Parts(Vec<ConstTy>),
}

/// The program while it is being checked.
pub(crate) struct Program<'a> {
    pub loader: &'a dyn Loader,
    pub sources: SourceMap,
    pub diags: Vec<Diagnostic>,
    /// Compiler bugs reported by evaluation. It expects a program without errors; where there is one, these follow
    /// from it.
    pub echoes: Vec<Diagnostic>,
    pub hir: Hir,
    pub files: Vec<FileInfo>,
    pub sigs: Vec<Sig>,
    pub structs: Vec<(usize, Arc<ast::Struct>)>,
    pub consts: Vec<ConstState>,
    /// The number of constants being checked, each inside the one before.
    pub const_depth: usize,
    pub exports: Vec<(usize, Arc<ast::Export>)>,
    /// Caller, callee, place.
    pub calls: Vec<(FnId, FnId, Span)>,
    /// Functions that use what exists in tests only: which, what, where.
    pub test_uses: Vec<(FnId, &'static str, Span)>,
    /// Bodies whose check has begun, and those whose check has ended.
    /// Signatures that wait for others to be read.
    pub signatures_open: usize,
    pub signatures_begun: std::collections::BTreeSet<FnId>,
    pub signatures_done: std::collections::BTreeSet<FnId>,
    pub bodies_begun: std::collections::BTreeSet<FnId>,
    pub bodies_done: std::collections::BTreeSet<FnId>,
    /// The expressions of `hir.opaque` without their places.
    pub opaque_forms: Vec<crate::hir::HExpr>,
    /// Functions by whether their calls may be compile-time values.
    pub pure: std::collections::BTreeMap<FnId, bool>,
    /// The number of names compared with unknown ones so far.
    pub compared: usize,
    /// Notes for an editor.
    pub record: record::Recorder,
    /// The file of builtin functions written in the language.
    pub prelude: Option<usize>,
}

impl<'a> Program<'a> {
    fn new(loader: &'a dyn Loader) -> Self {
        Program {
            loader,
            sources: SourceMap::default(),
            diags: vec![],
            echoes: vec![],
            hir: Hir::default(),
            files: vec![],
            sigs: vec![],
            structs: vec![],
            consts: vec![],
            const_depth: 0,
            exports: vec![],
            calls: vec![],
            test_uses: vec![],
            signatures_open: 0,
            signatures_begun: std::collections::BTreeSet::new(),
            signatures_done: std::collections::BTreeSet::new(),
            bodies_begun: std::collections::BTreeSet::new(),
            bodies_done: std::collections::BTreeSet::new(),
            opaque_forms: vec![],
            pure: std::collections::BTreeMap::new(),
            compared: 0,
            record: record::Recorder::default(),
            prelude: None,
        }
    }

    /// Reports a diagnostic.
    pub fn report(&mut self, d: Diagnostic) {
        self.diags.push(d);
    }

    /// Reports what came of an evaluation while the program was being checked.
    pub fn report_evaluation(&mut self, d: Diagnostic) {
        if d.code == tk_syntax::codes::INTERNAL { self.echoes.push(d) } else { self.report(d) }
    }

    /// The function being built.
    pub fn func_mut(&mut self, id: FnId) -> &mut HFn {
        &mut self.hir.fns[id.0 as usize]
    }

    fn finish(mut self) -> Checked {
        if !self.diags.iter().any(Diagnostic::is_error) {
            self.diags.append(&mut self.echoes);
        }
        self.diags.sort_by_key(|d| (d.primary.span.file, d.primary.span.start, d.primary.span.end, d.code));
        self.diags.dedup();
        Checked { sources: self.sources, hir: self.hir, diagnostics: self.diags }
    }
}
