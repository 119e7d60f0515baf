//! The state of checking one body: scopes, variables, literal types, what is known of parameters.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tk_ops::DTypeSet;
use tk_syntax::ast;
use tk_syntax::{Code, Diagnostic, Span, codes};

use super::record::Pending;
use super::{Def, Program};
use crate::hir::{CKind, CVar, CVarId, ConstId, FnId, HExpr, HKind, Hir, Local, LocalId};
use crate::poly::Poly;
use crate::show;
use crate::types::{Elem, Shape, Ty};

/// The meaning of a name in a body.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Sym {
    Local(LocalId),
    CVar(CVarId),
    Const(ConstId),
    /// A lambda that a `let` names: a position in [`Cx::named`].
    Lambda(usize),
}

/// The types that a literal may adapt to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lit {
    Int,
    /// An integer that an operation of integers has taken: it does not become a float.
    Whole,
    Float,
}

/// A literal's type.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Var {
    Free(Lit),
    Bound(crate::types::DTerm),
}

/// The types of literals, by number. A change is remembered, so that taking back a statement costs as much as the
/// statement and not as much as the body.
#[derive(Default)]
pub(crate) struct Vars {
    all: Vec<Var>,
    /// The values of variables before they were set, the latest last.
    before: Vec<(u32, Var)>,
}

impl Vars {
    pub fn push(&mut self, var: Var) -> u32 {
        self.all.push(var);
        self.all.len() as u32 - 1
    }

    pub fn get(&self, v: u32) -> Option<&Var> {
        self.all.get(v as usize)
    }

    pub fn set(&mut self, v: u32, var: Var) {
        if let Some(slot) = self.all.get_mut(v as usize) {
            self.before.push((v, std::mem::replace(slot, var)));
        }
    }

    /// The numbers of variables and changes, for [`Vars::reset`].
    pub fn mark(&self) -> (usize, usize) {
        (self.all.len(), self.before.len())
    }

    /// Takes back what came after a mark.
    pub fn reset(&mut self, (count, changes): (usize, usize)) {
        while self.before.len() > changes {
            if let Some((v, var)) = self.before.pop()
                && let Some(slot) = self.all.get_mut(v as usize)
            {
                *slot = var;
            }
        }
        self.all.truncate(count);
    }
}

/// The names of a block in order; a later one shadows an earlier one.
#[derive(Clone, Default)]
pub(crate) struct Scope {
    entries: Vec<(String, Sym)>,
    /// The position of each name in `entries`, the latest last.
    places: HashMap<String, Vec<usize>>,
}

impl Scope {
    fn push(&mut self, name: &str, sym: Sym) {
        self.places.entry(name.to_string()).or_default().push(self.entries.len());
        self.entries.push((name.to_string(), sym));
    }

    pub fn get(&self, name: &str) -> Option<Sym> {
        self.entries.get(*self.places.get(name)?.last()?).map(|e| e.1)
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Takes back all but the first `n` names.
    pub fn truncate(&mut self, n: usize) {
        while self.entries.len() > n {
            if let Some((name, _)) = self.entries.pop()
                && let Some(places) = self.places.get_mut(&name)
            {
                places.pop();
            }
        }
    }

    /// The names, latest first.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.entries.iter().rev().map(|e| &e.0)
    }
}

/// The state at a place of a body: the variables that are not assigned on every path to it, and whether no path
/// reaches it. Nearly all variables are declared with a value, so this set stays small where its complement would
/// grow with the body and make each branch cost as much as everything before it.
pub(crate) type Flow = (BTreeSet<LocalId>, bool);

/// Facts about a loop that is being checked.
pub(crate) struct LoopCx {
    /// The number of locals before it.
    pub locals_before: usize,
    /// A compile-time loop has no carried state, its body is checked once.
    pub is_static: bool,
}

/// The state of checking one body.
pub(crate) struct Cx<'p> {
    pub p: &'p mut Program,
    pub file: usize,
    /// The function, for the call graph; `None` for constants and struct signatures.
    pub func: Option<FnId>,
    pub scopes: Vec<Scope>,
    pub locals: Vec<Local>,
    pub vars: Vars,
    /// Dtype variables whose set is smaller inside an arm of `if T == ..`.
    pub narrowed: Vec<(CVarId, DTypeSet)>,
    /// Equalities that `require`s give, as substitutions of variables.
    pub facts: Vec<(CVarId, Poly)>,
    /// Variables that are axes: each is below this rank, where that matters.
    pub axes: Vec<(CVarId, usize)>,
    /// Quotients invented for divisibility facts.
    pub quotients: u32,
    /// Pairs of dtypes of one width, by `require(T.bits == U.bits)`.
    pub widths: Vec<(crate::types::DTerm, crate::types::DTerm)>,
    pub ret: Ty,
    pub ret_span: Span,
    pub loops: Vec<LoopCx>,
    /// In a condition of a launch: the optional parameters whose extents it asks for.
    pub optionals: Option<Vec<LocalId>>,
    /// The operand of an operation on memory that takes a pointer, and the operation.
    pub pointer: Option<(Span, &'static tk_ops::table::Row)>,
    /// The number of loops around the operand that contains this.
    pub operand: Option<usize>,
    pub in_test: bool,
    /// Blocks of `assert_error` that have shown nothing so far, and the codes that they wait for.
    pub expected: Vec<(Span, String)>,
    /// Whether run-time parameters may appear in compile-time positions of clauses, and `device.*` exists.
    pub in_clause: bool,
    /// Locals that are not assigned on every path to here.
    pub unassigned: BTreeSet<LocalId>,
    /// Locals declared without value whose type the first assignment decides.
    pub untyped: BTreeSet<LocalId>,
    /// Whether the rest of the block cannot be reached.
    pub diverged: bool,
    /// The number of arms of `if`s that are open.
    pub arms: usize,
    pub lambda_depth: usize,
    /// Lambdas see the variables from this one on: those before it are outside of a compile-time argument.
    pub visible_from: usize,
    /// Whether a lambda is open that works on single elements, and so sees scalars only.
    pub elementwise_lambda: bool,
    /// Lambdas that have names.
    pub named: Vec<super::fn_values::Named>,
    /// A compile-time `if` whose arms differ in type: what follows it is checked once for each arm.
    pub split: Option<Span>,
    /// The declarations from which pointers and views in variables come.
    pub origins: BTreeMap<LocalId, Span>,
    /// The quotients of integers from which variables are computed.
    pub fractions: BTreeMap<LocalId, Span>,
    /// Variables of blocks that have ended.
    pub ended: super::ended::AllEnded,
    /// Unknown names that were reported, and whether a syntax error hides names.
    pub unknown: BTreeSet<String>,
    pub holes: bool,
    /// Notes for an editor.
    pub pending: Pending,
    /// The number of such `if`s that are open, as each doubles the work.
    pub splits: usize,
}

impl<'p> Cx<'p> {
    pub fn new(p: &'p mut Program, file: usize, func: Option<FnId>) -> Self {
        Cx {
            p,
            file,
            func,
            scopes: vec![Scope::default()],
            locals: vec![],
            vars: Vars::default(),
            narrowed: vec![],
            facts: vec![],
            axes: vec![],
            quotients: 0,
            widths: vec![],
            ret: Ty::Unit,
            ret_span: Span::default(),
            loops: vec![],
            in_test: false,
            expected: vec![],
            in_clause: false,
            pointer: None,
            operand: None,
            optionals: None,
            unassigned: BTreeSet::new(),
            untyped: BTreeSet::new(),
            diverged: false,
            arms: 0,
            lambda_depth: 0,
            visible_from: 0,
            elementwise_lambda: false,
            named: vec![],
            split: None,
            origins: BTreeMap::new(),
            fractions: BTreeMap::new(),
            ended: super::ended::AllEnded::new(),
            unknown: BTreeSet::new(),
            holes: false,
            pending: Pending::default(),
            splits: 0,
        }
    }

    pub fn hir(&self) -> &Hir {
        &self.p.hir
    }

    /// Reports an error and returns a hole.
    pub fn error(
        &mut self,
        code: Code,
        span: Span,
        message: impl Into<String>,
        label: impl Into<String>,
    ) -> HExpr {
        self.report(Diagnostic::error(code, span, message, label));
        HExpr::err(span)
    }

    pub fn report(&mut self, d: Diagnostic) {
        if d.is_error()
            && let Some(f) = self.func
        {
            self.p.func_mut(f).broken = true;
        }
        self.p.report(d);
    }

    /// Reports a diagnostic and returns a hole.
    pub fn fail(&mut self, d: Diagnostic) -> HExpr {
        let span = d.primary.span;
        self.report(d);
        HExpr::err(span)
    }

    pub fn push_scope(&mut self) {
        self.scopes.push(Scope::default());
    }

    pub fn pop_scope(&mut self) {
        self.scopes.pop();
    }

    pub fn bind(&mut self, name: &str, sym: Sym) {
        if let Some(s) = self.scopes.last_mut() {
            s.push(name, sym);
        }
    }

    /// The meaning of a name of the body.
    pub fn lookup(&self, name: &ast::Name) -> Option<Sym> {
        let sym = self.meaning(&name.text)?;
        self.saw_symbol(name, sym);
        Some(sym)
    }

    /// The meaning of a name without a place.
    pub fn meaning(&self, name: &str) -> Option<Sym> {
        self.scopes.iter().rev().find_map(|s| s.get(name))
    }

    /// A name of the file, or of the prelude.
    pub fn lookup_item(&self, name: &ast::Name) -> Option<Def> {
        let own = self.p.files.get(self.file).and_then(|f| f.names.get(&name.text)).map(|d| d.0);
        let def = own.or_else(|| {
            let prelude = self.p.files.get(self.p.prelude?)?;
            prelude.names.get(&name.text).map(|d| d.0)
        })?;
        self.saw_item(name, def);
        Some(def)
    }

    pub fn new_local(&mut self, name: &ast::Name, ty: Ty, mutable: bool) -> LocalId {
        let id = LocalId(self.locals.len() as u32);
        self.locals.push(Local { name: name.text.clone(), ty, mutable, known: false, span: name.span });
        if name.text != "_" && !name.text.is_empty() {
            self.bind(&name.text.clone(), Sym::Local(id));
        }
        id
    }

    pub fn local(&self, id: LocalId) -> &Local {
        &self.locals[id.0 as usize]
    }

    pub fn new_cvar(&mut self, name: &str, kind: CKind, span: Span) -> CVarId {
        let id = CVarId(self.p.hir.cvars.len() as u32);
        self.p.hir.cvars.push(CVar { name: name.to_string(), kind, default: None, span });
        self.bind(name, Sym::CVar(id));
        id
    }

    /// A type in the user's words, literal types resolved.
    pub fn show(&self, t: &Ty) -> String {
        show::ty(self.hir(), &self.settle_ty(&self.resolve_ty(t)))
    }

    pub fn show_elem(&self, e: &Elem) -> String {
        show::elem(self.hir(), &self.settle_elem(&self.resolve_elem(e)))
    }

    pub fn show_shape(&self, s: &Shape) -> String {
        show::shape(self.hir(), s)
    }

    /// The text of a place. Python's `//`, which has been reported and would comment out what follows it, is `/`.
    pub fn text(&self, span: Span) -> String {
        let mut text = self.p.sources.text(span).to_string();
        let inside = |d: &&Diagnostic| {
            let at = d.primary.span;
            d.code == codes::BAD_TOKEN && at.file == span.file && at.start >= span.start && at.end <= span.end
        };
        for d in self.p.syntax.iter().rev().filter(inside) {
            let at = (d.primary.span.start - span.start) as usize;
            if text.get(at..).is_some_and(|t| t.starts_with("//")) {
                text.replace_range(at..at + 2, "/");
            }
        }
        text
    }

    /// An expression that is a value, not the result of something without one.
    pub fn value(&mut self, e: &ast::Expr) -> HExpr {
        let h = self.expr(e, None);
        self.need_value(h)
    }

    pub fn need_value(&mut self, h: HExpr) -> HExpr {
        if h.ty == Ty::Unit && h.kind != HKind::Unit {
            let d = Diagnostic::error(codes::TYPE_MISMATCH, h.span, "this has no value", "expected a value");
            return self.fail(match &h.kind {
                HKind::Call { callee, .. } => {
                    let name = &self.hir().func(*callee).name;
                    d.note(format!("`{name}` has no result type, which is written `fn {name}(..) -> f32`"))
                }
                HKind::Launch { .. } => d.note(
                    "a kernel returns nothing: it writes to a buffer that the caller makes, `let y = empty([N], f32);`",
                ),
                HKind::If { .. } | HKind::IfLet { .. } | HKind::Block(_) => self.value_discarded(d, &h),
                _ => d,
            });
        }
        h
    }

    /// Says of a block that its last expression is its value, where a `;` discards it.
    fn value_discarded(&self, d: Diagnostic, h: &HExpr) -> Diagnostic {
        let block = match &h.kind {
            HKind::If { then, .. } | HKind::IfLet { then, .. } | HKind::Block(then) => then,
            _other => return d,
        };
        match block.stmts.last().map(|s| &s.kind) {
            Some(crate::hir::HStmtKind::Expr(e)) if block.tail.is_none() && !e.ty.is_err() => {
                d.note("without `;` the last expression of a block is its value")
            }
            _other => d,
        }
    }

    pub fn mk(&self, kind: HKind, ty: Ty, span: Span, konst: bool) -> HExpr {
        HExpr { kind, ty, span, konst }
    }
}
