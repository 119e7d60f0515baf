//! Lowering: one function of the HIR under its bindings becomes one function of the tile IR.
//!
//! Requires a checked program and a function that is not broken. Guarantees that every instruction has a place in the
//! source, that the result passes the verifier of the tile IR, and that whatever cannot be lowered is a diagnostic; a
//! bug in this code is one with the code `E0001`.
//!
//! | file | what |
//! |---|---|
//! | `queue` | the functions to lower and their names |
//! | `value` | what an expression becomes, merges |
//! | `flow` | statements, `if`, `return`, `break`, `continue` |
//! | `loops` | `for`, `while`, compile-time loops |
//! | `exits` | which pieces of code may leave their block, and what they assign |
//! | `expr` | expressions |
//! | `call` | calls, function values, parameters |
//! | `args`, `builtin`, `shape`, `memory`, `fold` | rows of the op table |
//! | `testing` | host operations of tests |
//! | `debug` | where statements begin and what variables hold, for a debugger |

mod args;
mod bits;
mod builtin;
mod call;
mod debug;
mod exits;
mod expr;
mod flow;
mod fold;
mod loops;
mod memory;
mod product;
mod queue;
mod shape;
pub(crate) mod size;
mod testing;
mod value;

use std::collections::BTreeSet;

use tk_ops::Scalar;
use tk_syntax::{Diagnostic, Span, codes};
use tk_tile::{Builder, Func, FuncKind, Loc, Types, ValueId};

use crate::eval::{Bindings, CTy, EvalResult, Evaluator};
use crate::hir::{CVarId, FnId, FnKind, LocalId};
use crate::types::Ty;
use flow::{K, Mode};
use value::{Env, Val};

pub(crate) use call::flat_names;
pub(crate) use queue::{Queue, describe};

/// The most instructions of one function: a kernel of 1000 lines has about 10^4, and a debug build lowers 10^6 in a
/// few seconds. A program that needs more unrolls too much.
const MAX_INSTS: usize = 1_000_000;

/// A mistake of the compiler.
pub(crate) fn bug(span: Span, what: impl std::fmt::Display) -> Box<Diagnostic> {
    crate::eval::bug("lowering", span, what)
}

/// The state of one function or lambda body.
struct Frame {
    bindings: Bindings,
    env: Env,
    ret: CTy,
    fast: bool,
    /// Whose variables these are; of a lambda, the function in which it is written.
    func: FnId,
    /// The loops around the current place, innermost last.
    loops: Vec<LoopCx>,
}

/// A loop around the current place.
struct LoopCx {
    /// The variables and flags that are read after an iteration.
    live: BTreeSet<LocalId>,
}

/// The state of lowering one instance.
pub(crate) struct Lower<'a, 'h> {
    q: &'a mut Queue<'h>,
    b: Builder<'a>,
    frame: Frame,
    /// The number of the instance in the queue.
    instance: usize,
    /// Blocks around the current place.
    nesting: usize,
    /// Lambdas being inlined.
    inlining: usize,
    test: bool,
    /// The variables of the compile-time loops of a test, and their bodies.
    cases: Vec<(CVarId, Span)>,
    /// For a debugger.
    notes: debug::Notes,
}

/// Lowers one instance of the queue. Functions that it calls are added to the queue. Gives the type of the result
/// too, in which absent optional views are marked.
pub(crate) fn lower(q: &mut Queue<'_>, types: &mut Types, index: usize) -> EvalResult<(Func, CTy)> {
    let hir = q.hir;
    let Some(instance) = q.instances.get(index).cloned() else {
        return Err(bug(Span::default(), format!("there is no instance {index}")));
    };
    let f = hir.func(instance.id);
    let kind = match f.kind {
        FnKind::Kernel => FuncKind::Kernel,
        FnKind::Test => FuncKind::Test,
        FnKind::Fn if f.noinline => FuncKind::NoInline,
        FnKind::Fn => FuncKind::Fn,
    };
    let mut func = Func::new(instance.name.clone(), kind);
    let mut l = Lower {
        b: Builder::new(types, &mut func),
        q,
        frame: Frame {
            bindings: instance.bindings.clone(),
            env: Env::new(),
            ret: CTy::Unit,
            fast: f.fast,
            func: instance.id,
            loops: vec![],
        },
        instance: index,
        nesting: 0,
        inlining: 0,
        test: kind == FuncKind::Test,
        cases: vec![],
        notes: debug::Notes::default(),
    };
    let ret = l.function(f, &instance.parts)?;
    Ok((func, ret))
}

impl Lower<'_, '_> {
    fn function(&mut self, f: &crate::hir::HFn, parts: &queue::Parts) -> EvalResult<CTy> {
        self.at(f.span);
        self.begin_debug(f);
        self.check_requirements(f)?;
        self.parameters(f, parts)?;
        self.frame.ret = self.ty(&f.ret, f.span)?;
        let v = self.block_k(&f.body, &K::End, Mode::Fn)?;
        self.at(f.span);
        let v = if v == Val::Never || v == Val::Unset { self.undef_of(&self.frame.ret.clone()) } else { v };
        let ret = self.frame.ret.refined(&v);
        let mut types = vec![];
        if f.kind == FnKind::Fn {
            Self::flat_types(&ret, &mut types);
        }
        let mut out = vec![];
        if !types.is_empty() {
            v.flatten(&mut out);
        }
        if out.len() != types.len() {
            return Err(bug(f.span, format!("`{}` returns {v:?} for {:?}", f.name, self.frame.ret)));
        }
        self.b.ret(&out);
        for t in types {
            let t = self.b.ty(t);
            self.b.func.results.push(t);
        }
        Ok(ret)
    }

    /// Instructions come from here until the next call.
    fn at(&mut self, span: Span) {
        self.b.loc = Some(Loc { file: span.file.0, start: span.start, end: span.end });
    }

    /// Evaluates something at compile time, under the bindings and known variables of this place.
    fn eval<T>(&mut self, f: impl FnOnce(&mut Evaluator<'_>) -> EvalResult<T>) -> EvalResult<T> {
        self.eval_up_to(None, f)
    }

    /// The same with a limit of steps.
    fn eval_up_to<T>(
        &mut self,
        limit: Option<u64>,
        f: impl FnOnce(&mut Evaluator<'_>) -> EvalResult<T>,
    ) -> EvalResult<T> {
        let known = |id| self.frame.env.get(&id).and_then(Val::known);
        let mut ev = Evaluator::new(self.q.hir, &self.frame.bindings).with_known(&known);
        if let Some(limit) = limit {
            ev = ev.with_limit(limit);
        }
        let out = f(&mut ev);
        let mut notes = std::mem::take(&mut ev.notes);
        if out.is_ok() {
            self.q.notes.append(&mut notes);
        }
        out
    }

    /// A type under the bindings of this place.
    fn ty(&mut self, ty: &Ty, span: Span) -> EvalResult<CTy> {
        self.eval(|ev| ev.ty(ty, span))
    }

    /// The type of a tile or view.
    fn tile_ty(&mut self, ty: &Ty, span: Span) -> EvalResult<tk_tile::Type> {
        match self.ty(ty, span)? {
            CTy::One(t) | CTy::Option(t) => Ok(t),
            other => Err(bug(span, format!("a tile has the type {other:?}"))),
        }
    }

    fn const_bool(&mut self, v: bool) -> ValueId {
        self.b.constant(Scalar::bool(v), &[])
    }

    /// Enters an inner block; every entrance has its [`Lower::leave`].
    fn enter(&mut self, span: Span, args: &[tk_tile::TypeId]) -> EvalResult<Vec<ValueId>> {
        // The verifier refuses deeper nesting, and the walks after it rely on that.
        if self.nesting + 2 >= tk_tile::verify::MAX_NESTING {
            let message = "loops, conditions and functions of elements nest too deeply here";
            return Err(Box::new(Diagnostic::error(codes::LOWERING_LIMIT, span, message, "")));
        }
        if self.b.func.insts.len() > MAX_INSTS {
            let message = format!("this function expands to more than {MAX_INSTS} instructions; unroll less");
            return Err(Box::new(Diagnostic::error(codes::LOWERING_LIMIT, span, message, "")));
        }
        self.nesting += 1;
        Ok(self.b.begin(args))
    }

    fn leave(&mut self) -> tk_tile::BlockId {
        self.nesting -= 1;
        self.b.end()
    }
}
