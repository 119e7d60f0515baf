//! Checking: syntax trees to typed HIR with diagnostics.
//!
//! Order: files are loaded along `use` and their names collected ([`files`]); signatures of structs, functions and
//! kernels are read ([`items`]); then bodies are checked one by one ([`body`], [`expr`] and their friends), each with
//! a [`Cx`] of its own; last, recursion is detected. A hole has type `Err`, which is silent everywhere, so a mistake
//! is reported once.

mod advice;
mod args;
mod arms;
mod assembly_calls;
mod assign;
mod axes;
mod body;
mod builtins;
mod call;
mod casts;
mod clauses;
mod coerce;
mod conditional;
mod consts;
pub(crate) mod cx;
mod dtypes;
mod elements;
mod ended;
mod exports;
mod expr;
pub(crate) mod files;
mod fn_values;
mod foreign;
mod foreign_calls;
mod foreign_names;
mod fractions;
mod given;
mod index;
mod indexed;
mod infer;
mod integers;
mod items;
mod launch;
mod loaded;
mod looked_up;
mod loops;
mod meant;
mod members;
mod named_types;
pub(crate) mod names;
mod operators;
mod patterns;
mod pointers;
mod positions;
mod reached;
mod recheck;
mod record;
mod recursion;
mod renewed;
mod shapes;
mod slices;
mod split;
mod structs;
mod subst;
mod tables;
mod tests_only;
mod tuned;
mod types;
mod zonk;

use std::sync::Arc;

pub use given::Written;
pub use recheck::Indexed;
use tk_syntax::{Diagnostic, FileId, SourceMap, Span, ast};

use crate::hir::{CVarId, ConstId, FnId, HFn, Hir, StructId};
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
pub fn check_indexed(loader: &dyn Loader, path: &str) -> Indexed {
    let mut program = run(loader, path, true, &[]);
    loader.checkpoint();
    let (index, symbols) = indexed::index(&mut program);
    Indexed::new(program, index, symbols)
}

fn run(loader: &dyn Loader, path: &str, record: bool, written: &[Written<'_>]) -> Program {
    let mut program = Program::default();
    program.record.on = record;
    files::load(&mut program, loader, path);
    items::signatures(&mut program);
    items::bodies(&mut program, loader);
    given::check(&mut program, written);
    loader.checkpoint();
    conclude(&mut program);
    crate::lint::run(&mut program);
    program
}

/// What only the bodies of all functions together show.
fn conclude(p: &mut Program) {
    let before = p.take_notes();
    recursion::find(p);
    tests_only::find(p);
    p.concluded = std::mem::replace(&mut p.notes, before).diags;
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

impl SigAst {
    /// From the keyword to the body.
    fn signature(&self) -> Span {
        match self {
            SigAst::Fn(f) => Span { end: f.sig_span.end.max(f.body.span.start), ..f.sig_span },
            SigAst::Test(t) => t.name_span,
        }
    }
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

/// The label of a value of a type. One function of all, since a format is larger than a call.
#[inline(never)]
pub(crate) fn this_is(shown: &str) -> String {
    format!("this is `{shown}`")
}

/// The type of a constant.
#[derive(Clone, PartialEq)]
pub(crate) enum ConstTy {
    Fixed(Ty),
    FlexInt,
    FlexFloat,
    Parts(Vec<ConstTy>),
}

/// What checking reports and records beside the HIR: of one body, or of what is checked before and after all bodies.
#[derive(Default)]
pub(crate) struct Notes {
    pub diags: Vec<Diagnostic>,
    /// Compiler bugs reported by evaluation. It expects a program without errors; where there is one, these follow
    /// from it.
    pub echoes: Vec<Diagnostic>,
    /// Caller, callee, place.
    pub calls: Vec<(FnId, FnId, Span)>,
    /// Functions that use what exists in tests only: which, what, where.
    pub test_uses: Vec<(FnId, &'static str, Span)>,
}

/// A function whose body has been checked.
#[derive(Default)]
pub(crate) struct Body {
    pub notes: Notes,
    /// Whether its signature has an error.
    pub broken_before: bool,
    /// Whether it has an error, those left out that [`conclude`] finds.
    pub broken: bool,
    /// Whether its value has been computed for the check of something else.
    pub computed: bool,
}

/// The program while it is being checked.
#[derive(Default)]
pub(crate) struct Program {
    pub sources: SourceMap,
    /// What is wrong with the texts.
    pub syntax: Vec<Diagnostic>,
    /// Of the signatures.
    pub declared: Notes,
    /// Of what is being checked: a body, or what is checked outside of bodies.
    pub notes: Notes,
    /// Of each function whose body has been checked, by number.
    pub bodies: std::collections::BTreeMap<FnId, Body>,
    /// Of the exports.
    pub exported: Notes,
    /// Reported by [`conclude`].
    pub concluded: Vec<Diagnostic>,
    pub lints: crate::lint::Lints,
    pub hir: Hir,
    pub files: Vec<FileInfo>,
    pub sigs: Vec<Sig>,
    pub structs: Vec<(usize, Arc<ast::Struct>)>,
    pub consts: Vec<ConstState>,
    /// The number of constants being checked, each inside the one before.
    pub const_depth: usize,
    pub exports: Vec<(usize, Arc<ast::Export>)>,
    /// Signatures that wait for others to be read.
    pub signatures_open: usize,
    pub signatures_begun: std::collections::BTreeSet<FnId>,
    pub signatures_done: std::collections::BTreeSet<FnId>,
    /// Bodies whose check has begun; those whose check has ended are in `bodies`.
    pub bodies_begun: std::collections::BTreeSet<FnId>,
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

impl Program {
    /// Reports a diagnostic.
    pub fn report(&mut self, d: Diagnostic) {
        self.notes.diags.push(d);
    }

    /// Reports what came of an evaluation while the program was being checked.
    pub fn report_evaluation(&mut self, d: Diagnostic) {
        if d.code == tk_syntax::codes::INTERNAL { self.notes.echoes.push(d) } else { self.report(d) }
    }

    /// The function being built.
    pub fn func_mut(&mut self, id: FnId) -> &mut HFn {
        &mut self.hir.fns[id.0 as usize]
    }

    /// The notes so far; new ones are empty.
    pub fn take_notes(&mut self) -> Notes {
        std::mem::take(&mut self.notes)
    }

    /// All notes but those of the exports.
    fn all_notes(&self) -> impl Iterator<Item = &Notes> {
        [&self.declared, &self.notes].into_iter().chain(self.bodies.values().map(|b| &b.notes))
    }

    /// All calls: those of a caller in the order of their check.
    pub fn calls(&self) -> impl Iterator<Item = (FnId, FnId, Span)> + use<'_> {
        self.all_notes().flat_map(|n| n.calls.iter().copied())
    }

    /// The functions that use what exists in tests only.
    pub fn test_uses(&self) -> Vec<(FnId, &'static str, Span)> {
        self.all_notes().flat_map(|n| n.test_uses.iter().copied()).collect()
    }

    /// Returns true if there is an error anywhere.
    pub fn has_errors(&self) -> bool {
        self.all_diagnostics().any(Diagnostic::is_error)
    }

    fn all_diagnostics(&self) -> impl Iterator<Item = &Diagnostic> {
        let of_notes = self.all_notes().chain([&self.exported]).flat_map(|n| &n.diags);
        // Of some characters the type of an operand says more.
        let is_bad = |d: &&Diagnostic| d.code == tk_syntax::codes::BAD_TOKEN;
        let known: Vec<Span> = self
            .bodies
            .values()
            .flat_map(|b| &b.notes.diags)
            .filter(is_bad)
            .map(|d| d.primary.span)
            .collect();
        let syntax = self.syntax.iter().filter(move |d| !is_bad(d) || !known.contains(&d.primary.span));
        syntax.chain(of_notes).chain(&self.concluded)
    }

    /// The diagnostics of the program in order of place.
    fn diagnostics(&self) -> Vec<Diagnostic> {
        let mut all: Vec<Diagnostic> = self.all_diagnostics().chain(self.lints.found()).cloned().collect();
        self.without_consequences(&mut all);
        if !all.iter().any(Diagnostic::is_error) {
            all.extend(self.all_notes().chain([&self.exported]).flat_map(|n| n.echoes.iter().cloned()));
        }
        all.sort_by_key(|d| (d.primary.span.file, d.primary.span.start, d.primary.span.end, d.code));
        all.dedup();
        all
    }

    /// Removes errors that may follow from one of the syntax: about a text that contains it, about what a signature that contains
    /// it declares, elsewhere, and about names that this signature may have lost.
    fn without_consequences(&self, all: &mut Vec<Diagnostic>) {
        let errors = self.syntax.iter().filter(|d| d.is_error());
        let labels = errors.flat_map(|d| d.secondary.iter().chain([&d.primary]));
        let places: Vec<Span> = labels.map(|label| label.span).collect();
        if places.is_empty() {
            return;
        }
        let is_in =
            |at: Span, outer: Span| at.file == outer.file && outer.start <= at.start && at.end <= outer.end;
        let contains_one = |outer: &Span| places.iter().any(|at| is_in(*at, *outer));
        let signatures = self.sigs.iter().map(|sig| sig.ast.signature());
        let broken: Vec<Span> = signatures.filter(contains_one).collect();
        let names = |d: &Diagnostic, signature: Span| {
            let mut declared = d.secondary.iter().map(|label| label.span).chain(d.declared);
            !is_in(d.primary.span, signature) && declared.any(|at| is_in(at, signature))
        };
        let is_lost = |d: &Diagnostic, signature: Span| {
            d.code == tk_syntax::codes::UNKNOWN_NAME && is_in(d.primary.span, signature)
        };
        let follows = |d: &Diagnostic| {
            contains_one(&d.primary.span) || broken.iter().any(|s| names(d, *s) || is_lost(d, *s))
        };
        all.retain(|d| d.code.0.starts_with("E01") || !follows(d));
    }

    fn finish(self) -> Checked {
        let diagnostics = self.diagnostics();
        Checked { sources: self.sources, hir: self.hir, diagnostics }
    }
}
