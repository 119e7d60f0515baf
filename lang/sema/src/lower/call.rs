//! Calls: parameters, functions of the program, function values, requirements.

use std::collections::BTreeMap;

use tk_ops::{ControlOp, Op};
use tk_syntax::{Diagnostic, Span, codes};
use tk_tile::{Attr, Attrs, TypeId};

use super::flow::{K, Mode};
use super::queue::Parts;
use super::value::{Env, Val};
use super::{Frame, Lower, bug};
use crate::eval::{CTy, CVal, EvalResult, Evaluator, FnVal, Lambda};
use crate::hir::{CVarId, FnId, FnKind, HFn, Hir};
use crate::types::Ty;

/// Lambdas inside lambdas that are inlined at one place. A lambda cannot reach itself; this bounds the stack.
const MAX_INLINING: usize = 32;

impl Lower<'_, '_> {
    /// Adds the parameters of a function and puts them into the environment.
    pub(super) fn parameters(&mut self, f: &HFn, parts: &Parts) -> EvalResult<()> {
        // Where each parameter begins that is there.
        let mut starts = BTreeMap::new();
        for p in &f.params {
            let ty = self.ty(&p.ty, p.span)?;
            if let CTy::Option(_) = ty
                && self.frame.bindings.present.get(&p.local) == Some(&false)
            {
                self.frame.env.insert(p.local, Val::Opt(None));
                continue;
            }
            starts.insert(p.local, self.b.params());
            let mut names = vec![];
            flat_names(self.q.hir, &p.ty, p.name.clone(), &mut names);
            let ty = match parts.get(&p.local) {
                Some(present) => without_absent(&ty, &mut names, &mut 0, &mut present.iter().copied()),
                None => ty,
            };
            let mut types = vec![];
            Self::flat_types(&ty, &mut types);
            let mut values = vec![];
            for (t, name) in types.into_iter().zip(names) {
                let t = self.b.ty(t);
                values.push(self.b.param(name, t));
            }
            let v = self.unflatten(&ty, &mut values.into_iter(), p.span)?;
            self.frame.env.insert(p.local, v);
        }
        for (x, y) in &f.contract.alias {
            if let (Some(x), Some(y)) = (starts.get(x), starts.get(y)) {
                self.b.alias(*x, *y);
            }
        }
        for s in &f.contract.scratch {
            let Some(local) = f.locals.get(s.local.0 as usize) else {
                return Err(bug(f.span, "a scratch area without variable"));
            };
            let ty = self.tile_ty(&local.ty, local.span)?;
            let ty = self.b.ty(ty);
            let v = self.b.param(local.name.clone(), ty);
            self.frame.env.insert(s.local, Val::One(v));
        }
        Ok(())
    }

    /// Requirements over compile-time values hold or are reported. Those of a kernel over run-time values are the
    /// launcher's.
    pub(super) fn check_requirements(&mut self, f: &HFn) -> EvalResult<()> {
        for r in &f.contract.require {
            if !r.compile_time {
                if f.kind == FnKind::Kernel {
                    continue;
                }
                let message = "a `require` of a function is about compile-time values";
                let d = Diagnostic::error(
                    codes::NOT_CONST,
                    r.cond.span,
                    message,
                    "this is only known at run time",
                );
                return Err(Box::new(d));
            }
            let (holds, parts) = self.eval(|ev| Ok((ev.condition(&r.cond)?, ev.parts(&r.cond, f))))?;
            if !holds {
                let values = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
                let kind = if f.kind == FnKind::Kernel { "kernel " } else { "" };
                let message =
                    format!("{kind}`{}` requires `{}`, which does not hold{values}", f.name, r.text);
                return Err(Box::new(Diagnostic::error(
                    codes::INSTANCE,
                    r.cond.span,
                    message,
                    "required here",
                )));
            }
        }
        Ok(())
    }

    /// Calls a function of the program.
    pub(super) fn call(
        &mut self,
        id: FnId,
        cvars: BTreeMap<CVarId, CVal>,
        args: Vec<Val>,
        span: Span,
    ) -> EvalResult<Val> {
        let hir: &Hir = self.q.hir;
        let f = hir.func(id);
        if f.broken {
            let message = format!("`{}` cannot be called: it has errors", f.name);
            return Err(Box::new(
                Diagnostic::error(codes::INSTANCE, span, message, "called here")
                    .label(f.span, "declared here"),
            ));
        }
        if args.len() != f.params.len() {
            return Err(bug(span, format!("`{}` is called with {} arguments", f.name, args.len())));
        }
        let mut bindings = self.frame.bindings.inner(cvars);
        let (mut operands, mut parts) = (vec![], Parts::new());
        for (p, v) in f.params.iter().zip(&args) {
            match v {
                Val::Opt(None) => {
                    bindings.present.insert(p.local, false);
                }
                Val::Tuple(_) => {
                    let mut present = vec![];
                    v.presence(&mut present);
                    if present.contains(&false) {
                        parts.insert(p.local, present);
                    }
                }
                Val::Unit | Val::Never | Val::Unset | Val::One(_) | Val::Opt(Some(_)) | Val::Static(_) => {}
            }
            v.flatten(&mut operands);
        }
        let mut ret = Evaluator::new(hir, &bindings).ty(&f.ret, span)?;
        let index = self.q.instance(id, bindings, parts, Some((self.instance, span)))?;
        if ret.has_optional() {
            ret = self.q.result(self.b.types, index, span)?;
        }
        let name = self.q.instances.get(index).map(|i| i.name.clone()).unwrap_or_default();
        let mut types = vec![];
        Self::flat_types(&ret, &mut types);
        let types: Vec<TypeId> = types.into_iter().map(|t| self.b.ty(t)).collect();
        self.at(span);
        let attrs = Attrs::new().with("callee", Attr::Str(name));
        let results = self.b.inst(Op::Control(ControlOp::Call), &operands, attrs, &types);
        self.unflatten(&ret, &mut results.into_iter(), span)
    }

    /// Calls a function value.
    pub(super) fn apply(&mut self, f: &FnVal, args: Vec<Val>, span: Span) -> EvalResult<Val> {
        match f {
            FnVal::Fn { id, cvars, .. } => self.call(*id, cvars.clone(), args, span),
            FnVal::Builtin(row) => self.builtin_values(row, args, span),
            FnVal::Lambda(l) => self.inline(l, args, span),
        }
    }

    /// The function in which a lambda is written: the last one that begins before it.
    fn written_in(&self, at: Span) -> Option<FnId> {
        let fns = self.q.hir.fns.iter().enumerate();
        let before = fns.filter(|(_, f)| f.file == at.file && f.span.start <= at.start);
        before.max_by_key(|(_, f)| f.span.start).and_then(|(i, _)| Some(FnId(u32::try_from(i).ok()?)))
    }

    /// Puts the body of a lambda here, with an environment of its own.
    fn inline(&mut self, l: &Lambda, args: Vec<Val>, span: Span) -> EvalResult<Val> {
        if self.inlining >= MAX_INLINING {
            let message = format!("more than {MAX_INLINING} function values call each other here");
            return Err(Box::new(Diagnostic::error(codes::LOWERING_LIMIT, span, message, "")));
        }
        let func = self.written_in(l.body.span).unwrap_or(self.frame.func);
        // What it captures are variables around it; where it is a compile-time argument, it captures none.
        let mut env = if func == self.frame.func { self.frame.env.clone() } else { Env::new() };
        env.extend(l.params.iter().copied().zip(args));
        let frame = Frame {
            bindings: self.frame.bindings.inner(l.cvars.clone()),
            env,
            ret: CTy::Unit,
            fast: self.q.hir.func(func).fast,
            func,
            loops: vec![],
        };
        let outer = std::mem::replace(&mut self.frame, frame);
        self.inlining += 1;
        self.frame.ret = self.ty(&l.body.ty, l.body.span)?;
        let notes = self.begin_lambda(&l.body);
        let v = self.expr_k(&l.body, &K::End, Mode::Fn)?;
        self.end_lambda(notes);
        self.inlining -= 1;
        self.frame = outer;
        self.at(span);
        Ok(v)
    }
}

/// The type of a parameter with its absent parts marked; those from `at` on also leave the list of names.
fn without_absent(
    ty: &CTy,
    names: &mut Vec<String>,
    at: &mut usize,
    present: &mut impl Iterator<Item = bool>,
) -> CTy {
    match ty {
        CTy::Tuple(items) => {
            CTy::Tuple(items.iter().map(|t| without_absent(t, names, at, present)).collect())
        }
        CTy::Option(_) if present.next() == Some(false) => {
            if *at < names.len() {
                names.remove(*at);
            }
            CTy::Absent
        }
        CTy::One(_) | CTy::Option(_) => {
            *at += 1;
            ty.clone()
        }
        CTy::Unit | CTy::Never | CTy::Absent | CTy::Static => ty.clone(),
    }
}

/// Names of the flattened parts of a parameter: `st.m`, `pair.0`.
pub(crate) fn flat_names(hir: &Hir, ty: &Ty, name: String, out: &mut Vec<String>) {
    match ty {
        Ty::Tuple(items) => {
            for (i, t) in items.iter().enumerate() {
                flat_names(hir, t, format!("{name}.{i}"), out);
            }
        }
        Ty::Struct(id, _) => {
            for (field, t, _) in &hir.strukt(*id).fields {
                flat_names(hir, t, format!("{name}.{field}"), out);
            }
        }
        Ty::Tile { .. } | Ty::View { .. } | Ty::Option(_) | Ty::Buffer { .. } => out.push(name),
        Ty::Unit | Ty::Never | Ty::Err | Ty::Fn(..) | Ty::List(..) | Ty::DType | Ty::ShapeTy | Ty::Str => {}
    }
}
