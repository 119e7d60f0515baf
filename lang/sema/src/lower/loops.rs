//! Loops: `for` and `while` of the IR with the values that they carry, and compile-time loops, which are unrolled.
//!
//! Carried are the variables that the body assigns and that exist before the loop. A `for` that may be left early
//! becomes a `while`, which carries its variable and a flag:
//!
//! ```text
//! for i in range(0, n) {             while (i = 0, stop = false) { condition i < n && !stop }
//!     if p { break; }                do { %stop = if p { yield true } else { f(i); yield false }
//!     f(i);                               yield i + 1, %stop }
//! }
//! ```

use std::collections::BTreeSet;

use tk_ops::{ControlOp, DType, ElementwiseOp, Op};
use tk_syntax::{Diagnostic, Span, codes};
use tk_tile::{Attr, Attrs, Type, TypeId, ValueId, infer};

use super::exits::Exits;
use super::flow::{K, Mode, RET, RETVAL, Unroll, brk, is_flag};
use super::size::Unrolled;
use super::value::Val;
use super::{LoopCx, Lower, bug};
use crate::contract::below_least;
use crate::eval::{CVal, EvalResult};
use crate::hir::{HBlock, HExpr, HStmt, HStmtKind, LocalId};

/// Iterations that all compile-time loops of a program may have together. The largest kernel seen unrolls 256; more
/// than this makes code that no instruction cache holds.
const MAX_UNROLLED: u32 = 1 << 16;

/// The values that a loop carries: variables with their values before the loop, flattened values and their types.
struct Carried {
    vars: Vec<(LocalId, Val)>,
    init: Vec<ValueId>,
    types: Vec<TypeId>,
}

/// The flags of a loop that may be left early.
#[derive(Clone, Copy)]
struct Leaves {
    /// It has a flag that says that the loop is over.
    stop: bool,
    /// It may also be left by `return`.
    ret: bool,
}

impl Lower<'_, '_> {
    pub(super) fn loop_stmt(&mut self, s: &HStmt) -> EvalResult<()> {
        match &s.kind {
            HStmtKind::For { var, lo, hi, step, options, body } => {
                let (l, h, st) = (self.scalar(lo)?, self.scalar(hi)?, self.scalar(step)?);
                let known = self.welcome(step)?.and_then(|v| v.as_int());
                if known == Some(0) {
                    let message = "the step of this range is 0";
                    return Err(Box::new(Diagnostic::error(
                        codes::CONST_EVAL,
                        step.span,
                        message,
                        "this is 0",
                    )));
                }
                let range = Range { lo: l, hi: h, step: st, known };
                let exits = self.block_exits(body);
                if exits.ret || exits.brk {
                    return self.for_as_while(*var, &range, body, exits, s.span);
                }
                let attrs = self.loop_options(options)?;
                self.counted(*var, &range, attrs, body, s.span)
            }
            HStmtKind::While { cond, body } => self.while_loop(cond, body, s.span),
            _other => Err(bug(s.span, "no loop")),
        }
    }

    fn loop_options(&mut self, options: &[(&'static str, HExpr)]) -> EvalResult<Attrs> {
        let mut attrs = Attrs::new();
        for (name, e) in options {
            match self.eval(|ev| ev.expr(e))? {
                CVal::Int(i) => match below_least(codes::CONST_EVAL, name, i, e.span) {
                    Some(d) => return Err(Box::new(d)),
                    None => attrs.set(name, Attr::Int(i64::try_from(i).unwrap_or(i64::MAX))),
                },
                CVal::Bool(true) => attrs.set(name, Attr::Bool(true)),
                CVal::Bool(false) => {}
                other => return Err(bug(e.span, format!("the option `{name}` is {other}"))),
            }
        }
        Ok(attrs)
    }

    /// The values that a loop carries if its code assigns these variables.
    fn carried(&mut self, assigned: &BTreeSet<LocalId>, span: Span) -> EvalResult<Carried> {
        let mut out = Carried { vars: vec![], init: vec![], types: vec![] };
        for id in assigned {
            let Some(v) = self.frame.env.get(id).cloned() else { continue };
            // What is not assigned before the loop is assigned in every iteration before it is read.
            if matches!(v, Val::Unset | Val::Unit | Val::Never) {
                continue;
            }
            let mut flat = vec![];
            v.flatten(&mut flat);
            let declared = self.declared_types(*id, span);
            for (i, x) in flat.iter().enumerate() {
                let found = self.b.type_of(*x).clone();
                let wanted = declared.get(i).filter(|t| infer::serves(&found, t)).cloned();
                let ty = self.b.ty(wanted.unwrap_or(found));
                out.types.push(ty);
            }
            out.init.extend(flat);
            out.vars.push((*id, v));
        }
        Ok(out)
    }

    /// The declared type of a variable, flattened: a `*mut T` may be assigned to a `*T`.
    fn declared_types(&mut self, id: LocalId, span: Span) -> Vec<Type> {
        let hir = self.q.hir;
        let Some(local) = hir.func(self.frame.func).locals.get(id.0 as usize) else { return vec![] };
        let mut out = vec![];
        if let Ok(ty) = self.ty(&local.ty, span) {
            Self::flat_types(&ty, &mut out);
        }
        out
    }

    /// Puts new values into carried variables.
    fn refill(&mut self, carried: &Carried, from: &mut impl Iterator<Item = ValueId>) {
        for (id, v) in &carried.vars {
            let v = v.refill(from);
            self.frame.env.insert(*id, v);
        }
    }

    /// The values of carried variables at the end of an iteration.
    fn carried_now(&mut self, carried: &Carried, span: Span) -> EvalResult<Vec<ValueId>> {
        let mut out = vec![];
        for (id, before) in &carried.vars {
            let now = self.frame.env.get(id).cloned().unwrap_or(Val::Unset);
            if !same_structure(before, &now) {
                let message = "this loop changes a value that must be known at compile time";
                return Err(Box::new(Diagnostic::error(codes::NOT_CONST, span, message, "")));
            }
            now.flatten(&mut out);
        }
        Ok(out)
    }

    fn push_loop(&mut self, carried: &Carried, leaves: Leaves) {
        let mut live: BTreeSet<LocalId> = carried.vars.iter().map(|(id, _)| *id).collect();
        if leaves.stop {
            live.insert(brk(self.depth() + 1));
        }
        if leaves.ret {
            live.extend([RET, RETVAL]);
        }
        self.frame.loops.push(LoopCx { live });
    }

    fn counted(
        &mut self,
        var: LocalId,
        r: &Range,
        attrs: Attrs,
        body: &HBlock,
        span: Span,
    ) -> EvalResult<()> {
        let mut assigned = BTreeSet::new();
        self.assigned(body, &mut assigned);
        let carried = self.carried(&assigned, span)?;
        let outer = self.frame.env.clone();
        let mut arg_types = vec![self.b.func.ty(r.lo)];
        arg_types.extend(&carried.types);
        let mut args = self.enter(span, &arg_types)?.into_iter();
        if let Some(i) = args.next() {
            self.frame.env.insert(var, Val::One(i));
        }
        self.refill(&carried, &mut args);
        self.push_loop(&carried, Leaves { stop: false, ret: false });
        self.block_k(body, &K::End, Mode::Loop)?;
        let now = self.carried_now(&carried, span)?;
        self.frame.loops.pop();
        self.at(span);
        self.b.yield_(&now);
        let block = self.leave();
        self.frame.env = outer;
        let mut operands = vec![r.lo, r.hi, r.step];
        operands.extend(&carried.init);
        let op = Op::Control(ControlOp::For);
        let results = self.b.inst_with(op, &operands, attrs, vec![block], &carried.types);
        self.refill(&carried, &mut results.into_iter());
        Ok(())
    }

    fn for_as_while(
        &mut self,
        var: LocalId,
        r: &Range,
        body: &HBlock,
        exits: Exits,
        span: Span,
    ) -> EvalResult<()> {
        let mut assigned = BTreeSet::new();
        self.assigned(body, &mut assigned);
        let carried = self.carried(&assigned, span)?;
        let leaves = Leaves { stop: true, ret: exits.ret };
        self.at(span);
        if r.known.is_none() {
            let zero = self.zero_like(r.step);
            let ok = self.b.elementwise(ElementwiseOp::Ne, &[r.step, zero]);
            let attrs = Attrs::new().with("message", Attr::Str("the step of this range is 0".into()));
            self.b.inst(Op::Control(ControlOp::Assert), &[ok], attrs, &[]);
        }
        let head = |l: &mut Self, i: Option<ValueId>, stop: Option<ValueId>| {
            let i = i.ok_or_else(|| bug(span, "a loop without variable"))?;
            l.at(span);
            let more = l.before(r, i, r.hi);
            Ok(match stop {
                Some(s) => {
                    let on = l.b.elementwise(ElementwiseOp::Not, &[s]);
                    l.b.elementwise(ElementwiseOp::And, &[more, on])
                }
                None => more,
            })
        };
        let state = State { var: Some((var, r)), carried, leaves };
        self.looped(&state, head, body, span)
    }

    fn zero_like(&mut self, v: ValueId) -> ValueId {
        let d = self.b.type_of(v).dtype().unwrap_or(DType::I32);
        self.b.const_int(d, 0)
    }

    /// A bool: `a` comes before `b` in the direction of a range.
    fn before(&mut self, r: &Range, a: ValueId, b: ValueId) -> ValueId {
        let up = |l: &mut Self| l.b.elementwise(ElementwiseOp::Lt, &[a, b]);
        let down = |l: &mut Self| l.b.elementwise(ElementwiseOp::Gt, &[a, b]);
        match r.known {
            Some(s) if s > 0 => up(self),
            Some(_) => down(self),
            None => {
                let zero = self.zero_like(r.step);
                let positive = self.b.elementwise(ElementwiseOp::Gt, &[r.step, zero]);
                let (u, d) = (up(self), down(self));
                self.b.elementwise(ElementwiseOp::Select, &[positive, u, d])
            }
        }
    }

    fn while_loop(&mut self, cond: &HExpr, body: &HBlock, span: Span) -> EvalResult<()> {
        if cond.konst && !self.eval(|ev| ev.condition(cond))? {
            return Ok(());
        }
        let exits = self.block_exits(body);
        let mut assigned = BTreeSet::new();
        self.assigned(body, &mut assigned);
        self.assigned_in(cond, &mut assigned);
        let carried = self.carried(&assigned, span)?;
        let leaves = Leaves { stop: exits.brk || exits.ret, ret: exits.ret };
        let head = |l: &mut Self, _: Option<ValueId>, stop: Option<ValueId>| {
            l.statement(cond.span);
            let Some(stop) = stop else {
                let c = l.scalar(cond)?;
                l.no_exit(cond.span)?;
                return Ok(c);
            };
            if cond.konst {
                l.at(cond.span);
                return Ok(l.b.elementwise(ElementwiseOp::Not, &[stop]));
            }
            let value = l.branch(
                stop,
                |_| Ok(Val::Static(CVal::Bool(false))),
                |l| l.expr(cond),
                Mode::Nested,
                cond.span,
            )?;
            l.no_exit(cond.span)?;
            l.one(&value, cond.span)
        };
        let state = State { var: None, carried, leaves };
        self.looped(&state, head, body, span)
    }

    /// A `while` of the IR: `head` computes the condition from the loop variable and the stop flag.
    fn looped(
        &mut self,
        state: &State<'_>,
        head: impl FnOnce(&mut Self, Option<ValueId>, Option<ValueId>) -> EvalResult<ValueId>,
        body: &HBlock,
        span: Span,
    ) -> EvalResult<()> {
        let (init, types) = self.initial(state)?;
        let outer = self.frame.env.clone();

        let args = self.enter(span, &types)?;
        let at_head = self.open(state, &args);
        let c = head(self, at_head.i, at_head.stop)?;
        let mut forwarded = vec![c];
        forwarded.extend(at_head.i);
        forwarded.extend(self.carried_now(&state.carried, span)?);
        forwarded.extend(at_head.stop);
        forwarded.extend(at_head.ret);
        forwarded.extend(&at_head.retval);
        self.at(span);
        self.b.inst(Op::Control(ControlOp::Condition), &forwarded, Attrs::new(), &[]);
        let head_block = self.leave();
        self.frame.env = outer.clone();

        let args = self.enter(span, &types)?;
        let in_body = self.open(state, &args);
        if let (Some((var, _)), Some(i)) = (state.var, in_body.i) {
            self.frame.env.insert(var, Val::One(i));
        }
        self.push_loop(&state.carried, state.leaves);
        self.clear_flags();
        self.block_k(body, &K::End, Mode::Loop)?;
        let next = self.next_state(state, &in_body, span)?;
        self.frame.loops.pop();
        self.b.yield_(&next);
        let body_block = self.leave();
        self.frame.env = outer;

        self.at(span);
        let blocks = vec![head_block, body_block];
        let results = self.b.inst_with(Op::Control(ControlOp::While), &init, Attrs::new(), blocks, &types);
        let after = self.open(state, &results);
        if let Some(ret) = after.ret {
            self.frame.env.insert(RET, Val::One(ret));
            let ty = self.frame.ret.clone();
            let v = self.unflatten(&ty, &mut after.retval.iter().copied(), span)?;
            self.frame.env.insert(RETVAL, v);
        }
        Ok(())
    }

    /// The state of a loop before its first iteration.
    fn initial(&mut self, state: &State<'_>) -> EvalResult<(Vec<ValueId>, Vec<TypeId>)> {
        let (mut init, mut types) = (vec![], vec![]);
        if let Some((_, r)) = state.var {
            init.push(r.lo);
            types.push(self.b.func.ty(r.lo));
        }
        init.extend(&state.carried.init);
        types.extend(&state.carried.types);
        let bool = self.b.ty(Type::scalar(DType::Bool));
        for _ in 0..u32::from(state.leaves.stop) + u32::from(state.leaves.ret) {
            init.push(self.const_bool(false));
            types.push(bool);
        }
        if state.leaves.ret {
            let ty = self.frame.ret.clone();
            self.undef_of(&ty).flatten(&mut init);
            let mut flat = vec![];
            Self::flat_types(&ty, &mut flat);
            for t in flat {
                types.push(self.b.ty(t));
            }
        }
        Ok((init, types))
    }

    /// Takes the state apart and puts the carried variables into the environment.
    fn open(&mut self, state: &State<'_>, values: &[ValueId]) -> Opened {
        let mut from = values.iter().copied();
        let i = state.var.and_then(|_| from.next());
        self.refill(&state.carried, &mut from);
        let stop = if state.leaves.stop { from.next() } else { None };
        let ret = if state.leaves.ret { from.next() } else { None };
        Opened { i, stop, ret, retval: from.collect() }
    }

    /// The state after an iteration.
    fn next_state(&mut self, state: &State<'_>, now: &Opened, span: Span) -> EvalResult<Vec<ValueId>> {
        self.at(span);
        let mut out = vec![];
        let mut wrapped = None;
        if let (Some((_, r)), Some(i)) = (state.var, now.i) {
            let next = self.b.elementwise(ElementwiseOp::Add, &[i, r.step]);
            // With a step of 1 or -1 the variable meets the end before it can wrap.
            if !matches!(r.known, Some(1 | -1)) {
                wrapped = Some(self.before(r, next, i));
            }
            out.push(next);
        }
        out.extend(self.carried_now(&state.carried, span)?);
        self.at(span);
        let flag = |l: &Self, id: LocalId| l.frame.env.get(&id).cloned();
        let (left, ret) = (flag(self, brk(self.depth())), flag(self, RET));
        if state.leaves.stop {
            out.push(self.stop_flag(&[left, ret.clone()], wrapped, span));
        }
        if state.leaves.ret {
            out.push(match ret {
                Some(Val::One(v)) => v,
                Some(Val::Static(CVal::Bool(true))) => self.const_bool(true),
                Some(_) | None => self.const_bool(false),
            });
            let mut flat = vec![];
            if let Some(v) = flag(self, RETVAL) {
                v.flatten(&mut flat);
            }
            out.extend(if flat.len() == now.retval.len() { flat } else { now.retval.clone() });
        }
        Ok(out)
    }

    fn stop_flag(&mut self, flags: &[Option<Val>], wrapped: Option<ValueId>, span: Span) -> ValueId {
        let mut dynamic: Vec<ValueId> = wrapped.into_iter().collect();
        for f in flags {
            match f {
                Some(Val::Static(CVal::Bool(true))) => return self.const_bool(true),
                Some(Val::One(v)) => dynamic.push(*v),
                Some(_) | None => {}
            }
        }
        self.any_of(&dynamic, span)
    }

    /// Lowers the remaining iterations of a compile-time loop, then the code after it. An iteration that may return
    /// has the next ones as its continuation.
    pub(super) fn unroll(&mut self, u: &Unroll<'_>, next: &K<'_>, mode: Mode) -> EvalResult<Val> {
        let first = self.b.func.insts.len();
        let value = self.iterations(u, next, mode)?;
        let insts = first..self.b.func.insts.len();
        let (instance, iterations) = (self.instance, u.values.len());
        self.q.loops.push(Unrolled { instance, span: u.span, iterations, insts });
        Ok(value)
    }

    /// The same without a record of the loop: where the rest of its iterations follows one that may return.
    pub(super) fn iterations(&mut self, u: &Unroll<'_>, next: &K<'_>, mode: Mode) -> EvalResult<Val> {
        let case = (u.var, u.body.span);
        if self.test && !self.cases.contains(&case) {
            self.cases.push(case);
        }
        let mut rest = u.values;
        while let Some((v, after)) = rest.split_first() {
            rest = after;
            self.q.unrolled += 1;
            if self.q.unrolled > MAX_UNROLLED {
                let message = format!("compile-time loops have more than {MAX_UNROLLED} iterations together");
                return Err(Box::new(Diagnostic::error(codes::LOWERING_LIMIT, u.span, message, "this loop")));
            }
            self.frame.bindings.cvars.insert(u.var, v.clone());
            if self.block_exits(u.body).any() {
                let others = Unroll { values: rest, ..*u };
                return self.block_k(u.body, &K::Unroll(&others, next), mode);
            }
            let before: BTreeSet<LocalId> = self.frame.env.keys().copied().collect();
            self.block_k(u.body, &K::End, Mode::Nested)?;
            self.frame.env.retain(|id, _| before.contains(id) || is_flag(*id));
        }
        self.go(Val::Unit, next, mode)
    }
}

/// A range, with its step if that is known.
struct Range {
    lo: ValueId,
    hi: ValueId,
    step: ValueId,
    known: Option<i128>,
}

/// The values that a `while` of the IR carries: the loop variable, the variables, the flags, the returned value.
struct State<'r> {
    var: Option<(LocalId, &'r Range)>,
    carried: Carried,
    leaves: Leaves,
}

/// The parts of the state that are no variables.
struct Opened {
    i: Option<ValueId>,
    stop: Option<ValueId>,
    ret: Option<ValueId>,
    retval: Vec<ValueId>,
}

fn same_structure(a: &Val, b: &Val) -> bool {
    match (a, b) {
        (Val::Tuple(x), Val::Tuple(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(p, q)| same_structure(p, q))
        }
        (Val::One(_), Val::One(_)) | (Val::Opt(Some(_)), Val::Opt(Some(_))) => true,
        (a, b) => a == b,
    }
}
