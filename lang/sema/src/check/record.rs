//! Records for editors while checking: the meaning of each name, and the type of each expression.
//!
//! Costs nothing unless requested. Every lookup of a name is recorded in place, so there is one way of resolving
//! names. A part of a body that is checked twice is remembered twice; [`super::indexed`] puts it right.

use std::sync::{Mutex, PoisonError};

use tk_ops::table::Row;
use tk_syntax::{Span, ast};

use super::cx::{Cx, Sym};
use super::{Def, Program};
use crate::hir::{CVarId, FnId, LocalId};
use crate::index::CallFact;
use crate::types::{CTerm, Ty};

/// The meaning of a name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Target {
    /// The declaration at this name.
    Place(Span),
    /// A file, by its number in the program.
    Module(usize),
    /// A builtin.
    Row(&'static Row),
    /// A parameter of a builtin.
    RowParam(&'static Row, u32),
}

/// A run-time variable.
pub(crate) struct Variable {
    pub name: String,
    pub span: Span,
    pub ty: Ty,
    pub mutable: bool,
    pub func: Option<FnId>,
    pub param: bool,
}

/// The notes for an editor.
#[derive(Default)]
pub(crate) struct Recorder {
    pub on: bool,
    /// Names with their meaning and whether they are written to. Looking up does not change the program otherwise.
    names: Mutex<Vec<(Span, Target, bool)>>,
    pub types: Vec<(Span, Ty)>,
    pub variables: Vec<Variable>,
    pub calls: Vec<CallFact>,
    /// Other names of items in `use`: the name and what it stands for.
    pub aliases: Vec<(Span, String, Target)>,
}

impl Recorder {
    /// A name means something.
    pub fn name(&self, name: &ast::Name, target: Target) {
        if self.on && !name.text.is_empty() {
            self.push((name.span, target, false));
        }
    }

    /// A name is assigned to.
    pub fn written(&self, span: Span, target: Target) {
        if self.on {
            self.push((span, target, true));
        }
    }

    /// All names so far.
    pub fn take_names(&mut self) -> Vec<(Span, Target, bool)> {
        std::mem::take(self.names.get_mut().unwrap_or_else(PoisonError::into_inner))
    }

    fn push(&self, name: (Span, Target, bool)) {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).push(name);
    }
}

/// The notes of one body until the types of its literals are known.
#[derive(Default)]
pub(crate) struct Pending {
    types: Vec<(Span, Ty)>,
    calls: Vec<CallFact>,
}

impl Pending {
    /// The lengths, for [`Pending::reset`].
    pub fn mark(&self) -> (usize, usize) {
        (self.types.len(), self.calls.len())
    }

    /// Forgets what came after a mark.
    pub fn reset(&mut self, (types, calls): (usize, usize)) {
        self.types.truncate(types);
        self.calls.truncate(calls);
    }
}

impl Program {
    /// The place where an item is declared; a file has none.
    pub fn target(&self, def: Def) -> Option<Target> {
        let at = match def {
            Def::Module(i) => return Some(Target::Module(i)),
            Def::Fn(id) => self.hir.fns.get(id.0 as usize)?.span,
            Def::Struct(id) => self.hir.structs.get(id.0 as usize)?.span,
            Def::Const(id) => self.hir.consts.get(id.0 as usize)?.span,
        };
        Some(Target::Place(at))
    }
}

impl Cx<'_> {
    /// Remembers what a name of a body means.
    pub fn saw_symbol(&self, name: &ast::Name, sym: Sym) {
        if self.p.record.on {
            self.p.record.name(name, Target::Place(self.declared_at(sym)));
        }
    }

    /// Remembers what a name of a file means.
    pub fn saw_item(&self, name: &ast::Name, def: Def) {
        if self.p.record.on
            && let Some(target) = self.p.target(def)
        {
            self.p.record.name(name, target);
        }
    }

    /// Remembers that a name means a compile-time parameter.
    pub fn saw_cvar(&self, name: &ast::Name, id: CVarId) {
        self.p.record.name(name, Target::Place(self.hir().cvar(id).span));
    }

    /// Remembers that a variable is assigned to.
    pub fn saw_write(&self, place: &ast::Expr, id: LocalId) {
        let mut root = place;
        while let ast::ExprKind::Member(base, _) | ast::ExprKind::Index(base, _) = &root.kind {
            root = base;
        }
        if let ast::ExprKind::Path(p) = &root.kind {
            self.p.record.written(p.span, Target::Place(self.local(id).span));
        }
    }

    /// Remembers which parameters of a builtin the named arguments mean.
    pub fn saw_row_args(&self, row: &'static Row, args: &[ast::Arg]) {
        for n in args.iter().filter_map(|a| a.name.as_ref()) {
            if let Some(i) = row.param(&n.text) {
                self.p.record.name(n, Target::RowParam(row, i as u32));
            }
        }
    }

    /// Remembers which parameters of a function the named arguments mean.
    pub fn saw_args(&self, id: FnId, slots: &[(String, super::Slot)], args: &[ast::Arg]) {
        if !self.p.record.on {
            return;
        }
        for n in args.iter().filter_map(|a| a.name.as_ref()) {
            let Some((_, slot)) = slots.iter().find(|s| s.0 == n.text) else { continue };
            let at = match slot {
                super::Slot::Run(i) => self.hir().func(id).params.get(*i).map(|p| p.span),
                super::Slot::Const(c) => Some(self.hir().cvar(*c).span),
            };
            if let Some(at) = at {
                self.p.record.name(n, Target::Place(at));
            }
        }
    }

    /// Remembers the type of an expression.
    pub fn saw_type(&mut self, span: Span, ty: &Ty) {
        if self.p.record.on && !ty.is_err() {
            self.pending.types.push((span, ty.clone()));
        }
    }

    /// Remembers a call with its compile-time arguments.
    pub fn saw_call(&mut self, span: Span, callee: FnId, map: &super::subst::Subst) {
        if self.p.record.on {
            let f = self.hir().func(callee);
            let cargs: Vec<(CVarId, CTerm)> =
                f.cparams.iter().filter_map(|c| map.get(c).map(|v| (*c, v.clone()))).collect();
            self.pending.calls.push(CallFact { span, callee, cargs });
        }
    }

    /// Hands over what a body remembers, now that its types are known. Its variables have their final types already.
    pub fn remember(&mut self) {
        if !self.p.record.on {
            return;
        }
        let Pending { types, mut calls } = std::mem::take(&mut self.pending);
        for (span, ty) in types {
            let ty = self.settle_ty(&ty);
            self.p.record.types.push((span, ty));
        }
        for c in &mut calls {
            c.cargs.iter_mut().for_each(|(_, t)| *t = self.settle_cterm(t));
        }
        self.p.record.calls.extend(calls);
        let params = self.func.map_or(0, |f| self.hir().func(f).params.len());
        for (i, l) in self.locals.iter().enumerate() {
            if l.name.is_empty() || l.name == "_" {
                continue;
            }
            self.p.record.variables.push(Variable {
                name: l.name.clone(),
                span: l.span,
                ty: l.ty.clone(),
                mutable: l.mutable,
                func: self.func,
                param: i < params,
            });
        }
    }

    fn declared_at(&self, sym: Sym) -> Span {
        match sym {
            Sym::Local(id) => self.local(id).span,
            Sym::CVar(id) => self.hir().cvar(id).span,
            Sym::Const(id) => self.hir().constant(id).span,
            Sym::Lambda(n) => self.named.get(n).map_or_else(Span::default, |l| l.span),
        }
    }
}
