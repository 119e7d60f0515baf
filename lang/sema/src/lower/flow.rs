//! Statements and conditionals: what comes after what, and how `return`, `break` and `continue` leave.
//!
//! The tile IR has no jumps. A statement that may leave its block is lowered with its continuation [`K`], the code
//! after it. Where one arm of an `if` always leaves, the code after it moves into the other arm. Otherwise the exit is
//! remembered in a flag (a pseudo variable, see [`RET`]), and the code after it is guarded by it:
//!
//! ```text
//! if c { return; }                   if c { } else { rest }
//! rest
//!
//! if a { if b { return; } x(); }     %ret = if a { if b { yield true } else { x(); yield false } } else { yield false }
//! rest                               if %ret { } else { rest }
//! ```
//!
//! Guarantees that no code is lowered twice.

use tk_ops::{ControlOp, ElementwiseOp, Op};
use tk_syntax::Span;
use tk_tile::{Attrs, BlockId, Inst, ValueId};

use super::value::{Env, Merged, Slots, Val};
use super::{Lower, bug};
use crate::eval::{CVal, EvalResult};
use crate::hir::{CVarId, HBlock, HExpr, HKind, HPat, HStmt, HStmtKind, LocalId};

/// Pseudo variable: whether the function has returned. Pseudo variables live in the environment, so that they are
/// merged and carried like those of the program; what is absent there is false.
pub(super) const RET: LocalId = LocalId(u32::MAX);
/// Pseudo variable: the value that it returned.
pub(super) const RETVAL: LocalId = LocalId(u32::MAX - 1);

/// From here up, ids are pseudo variables. No function has as many variables as that.
const FIRST_FLAG: u32 = u32::MAX - 4096;

/// Pseudo variable: whether the loop at this depth was left by `break`.
pub(super) fn brk(depth: usize) -> LocalId {
    LocalId((u32::MAX - 2).saturating_sub(2 * depth as u32))
}

/// Pseudo variable: whether this iteration of the loop at this depth was left by `continue`.
pub(super) fn cont(depth: usize) -> LocalId {
    LocalId((u32::MAX - 3).saturating_sub(2 * depth as u32))
}

pub(super) fn is_flag(id: LocalId) -> bool {
    id.0 >= FIRST_FLAG
}

/// The meaning of reaching the end of a piece of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// The function returns the value; variables are dead.
    Fn,
    /// The iteration of a loop ends; only what the loop carries is alive.
    Loop,
    /// Other code follows, which looks at the flags.
    Nested,
}

/// The code after the current place.
#[derive(Clone, Copy)]
pub(super) enum K<'k> {
    /// None.
    End,
    /// Statements, then the value of a block, which goes to the next continuation.
    Stmts(&'k [HStmt], Option<&'k HExpr>, &'k K<'k>),
    /// The use of the value, then the next continuation.
    Use(Use<'k>, Span, &'k K<'k>),
    /// The remaining iterations of a compile-time loop, then the next continuation.
    Unroll(&'k Unroll<'k>, &'k K<'k>),
}

/// Iterations of a compile-time loop.
#[derive(Clone, Copy)]
pub(super) struct Unroll<'k> {
    pub var: CVarId,
    pub values: &'k [CVal],
    pub body: &'k HBlock,
    pub span: Span,
}

/// The use of a value.
#[derive(Clone, Copy)]
pub(super) enum Use<'k> {
    Let(&'k HPat),
    Assign(LocalId, &'k [u32]),
    Drop,
    Return,
}

impl K<'_> {
    /// Returns true if no code is left.
    fn is_end(&self) -> bool {
        match self {
            K::End => true,
            K::Stmts(stmts, tail, next) => stmts.is_empty() && tail.is_none() && next.is_end(),
            K::Use(Use::Drop, _, next) => next.is_end(),
            K::Use(Use::Let(_) | Use::Assign(..) | Use::Return, ..) => false,
            K::Unroll(u, next) => u.values.is_empty() && next.is_end(),
        }
    }
}

/// The state of the flags at a place.
pub(super) enum Exit {
    /// Control is here.
    No,
    /// Control is not here.
    Yes,
    /// Control is not here if one of these is true.
    If(Vec<ValueId>),
}

impl Lower<'_, '_> {
    /// Lowers a block and the code after it.
    pub(super) fn block_k(&mut self, b: &HBlock, k: &K<'_>, mode: Mode) -> EvalResult<Val> {
        self.stmts(&b.stmts, b.tail.as_deref(), k, mode)
    }

    fn arm_k(&mut self, b: Option<&HBlock>, k: &K<'_>, mode: Mode) -> EvalResult<Val> {
        match b {
            Some(b) => self.block_k(b, k, mode),
            None => self.go(Val::Unit, k, mode),
        }
    }

    fn stmts(&mut self, stmts: &[HStmt], tail: Option<&HExpr>, k: &K<'_>, mode: Mode) -> EvalResult<Val> {
        let mut rest = stmts;
        while let Some((s, after)) = rest.split_first() {
            rest = after;
            self.statement(s.span);
            let behind = K::Stmts(rest, tail, k);
            let (value, to) = match &s.kind {
                HStmtKind::Let(pat, None) => {
                    self.declare(pat);
                    continue;
                }
                HStmtKind::Let(pat, Some(e)) => (e, Use::Let(pat)),
                HStmtKind::Assign { local, path, value } => (value, Use::Assign(*local, path)),
                HStmtKind::Expr(e) => (e, Use::Drop),
                HStmtKind::Return(Some(e)) => {
                    return self.expr_k(e, &K::Use(Use::Return, s.span, &K::End), mode);
                }
                HStmtKind::Return(None) => return Ok(self.leave_function(Val::Unit, mode)),
                HStmtKind::Break => return self.set_flag(brk(self.depth()), s.span),
                HStmtKind::Continue if mode == Mode::Loop => return Ok(Val::Unit),
                HStmtKind::Continue => return self.set_flag(cont(self.depth()), s.span),
                HStmtKind::StaticFor { var, iter, body } => {
                    let values = self.eval(|ev| ev.static_values(iter))?;
                    let u = Unroll { var: *var, values: &values, body, span: s.span };
                    if self.block_exits(body).any() {
                        return self.unroll(&u, &behind, mode);
                    }
                    self.unroll(&u, &K::End, Mode::Nested)?;
                    continue;
                }
                HStmtKind::For { .. } | HStmtKind::While { .. } => {
                    self.loop_stmt(s)?;
                    match self.exit() {
                        Exit::No => continue,
                        Exit::Yes | Exit::If(_) => return self.resume(Val::Unit, &behind, mode, s.span),
                    }
                }
                HStmtKind::AssertError { code, body } => {
                    self.expect_error(code, body.as_ref(), s.span)?;
                    continue;
                }
                HStmtKind::Err => return Err(bug(s.span, "a hole was left in a checked function")),
            };
            // At the end of a function or iteration variables are dead: nothing needs merging for them.
            let last = matches!(to, Use::Drop) && behind.is_end();
            if last || self.expr_exits(value).any() {
                return self.expr_k(value, &K::Use(to, s.span, &behind), mode);
            }
            let v = self.expr(value)?;
            self.no_exit(value.span)?;
            self.consume(to, v, s.span)?;
        }
        tail.iter().for_each(|e| self.statement(e.span));
        match tail {
            Some(e) if self.expr_exits(e).any() || matches!(k, K::End) => self.expr_k(e, k, mode),
            Some(e) => {
                let v = self.expr(e)?;
                self.no_exit(e.span)?;
                self.go(v, k, mode)
            }
            None => self.go(Val::Unit, k, mode),
        }
    }

    /// Hands a value to a continuation.
    pub(super) fn go(&mut self, v: Val, k: &K<'_>, mode: Mode) -> EvalResult<Val> {
        match k {
            K::End if mode == Mode::Loop => Ok(Val::Unit),
            K::End => Ok(v),
            K::Stmts(stmts, tail, next) => self.stmts(stmts, *tail, next, mode),
            K::Unroll(u, next) => self.iterations(u, next, mode),
            K::Use(Use::Return, _, _) => Ok(self.leave_function(v, mode)),
            K::Use(to, span, next) => {
                self.consume(*to, v, *span)?;
                self.go(Val::Unit, next, mode)
            }
        }
    }

    fn consume(&mut self, to: Use<'_>, v: Val, span: Span) -> EvalResult<()> {
        match to {
            Use::Let(pat) => self.bind(pat, v, span),
            Use::Assign(local, path) => self.assign(local, path, v, span),
            Use::Drop | Use::Return => Ok(()),
        }
    }

    /// Lowers an expression and the code after it.
    pub(super) fn expr_k(&mut self, e: &HExpr, k: &K<'_>, mode: Mode) -> EvalResult<Val> {
        match &e.kind {
            HKind::If { cond, then, els } => self.if_k(cond, then, els.as_deref(), (k, mode), e.span),
            HKind::IfLet { opt, bind, then, els } => match self.expr(opt)? {
                Val::Opt(None) => self.arm_k(els.as_deref(), k, mode),
                Val::Opt(Some(v)) | Val::One(v) => {
                    self.frame.env.insert(*bind, Val::One(v));
                    self.block_k(then, k, mode)
                }
                other => Err(bug(opt.span, format!("an optional is {other:?}"))),
            },
            HKind::Block(b) => self.block_k(b, k, mode),
            HKind::Return(Some(v)) => self.expr_k(v, &K::Use(Use::Return, e.span, &K::End), mode),
            HKind::Return(None) => Ok(self.leave_function(Val::Unit, mode)),
            _value => {
                let v = self.expr(e)?;
                self.no_exit(e.span)?;
                self.go(v, k, mode)
            }
        }
    }

    fn if_k(
        &mut self,
        cond: &HExpr,
        then: &HBlock,
        els: Option<&HBlock>,
        (k, mode): (&K<'_>, Mode),
        span: Span,
    ) -> EvalResult<Val> {
        if cond.konst {
            let taken = if self.eval(|ev| ev.condition(cond))? { Some(then) } else { els };
            return self.arm_k(taken, k, mode);
        }
        let c = self.scalar(cond)?;
        let t = self.block_exits(then);
        let f = els.map_or_else(Default::default, |b| self.block_exits(b));
        let (kt, kf) = match (t.always, f.always) {
            (true, true) => (&K::End, &K::End),
            (true, false) => (&K::End, k),
            (false, true) => (k, &K::End),
            (false, false) if k.is_end() => (k, k),
            (false, false) => {
                let (end, nested) = (&K::End, Mode::Nested);
                let v = self.branch(
                    c,
                    |l| l.block_k(then, end, nested),
                    |l| l.arm_k(els, end, nested),
                    nested,
                    span,
                )?;
                return self.resume(v, k, mode, span);
            }
        };
        self.branch(c, |l| l.block_k(then, kt, mode), |l| l.arm_k(els, kf, mode), mode, span)
    }

    /// Goes on after code that may have left, guarded by the flags.
    fn resume(&mut self, v: Val, k: &K<'_>, mode: Mode, span: Span) -> EvalResult<Val> {
        match self.exit() {
            Exit::No => self.go(v, k, mode),
            Exit::Yes => Ok(self.exited(mode)),
            Exit::If(_) if k.is_end() && mode == Mode::Nested => Ok(v),
            Exit::If(_) if k.is_end() && mode == Mode::Loop => Ok(Val::Unit),
            Exit::If(flags) => {
                let c = self.any_of(&flags, span);
                self.branch(
                    c,
                    |l| {
                        l.set_single(&flags);
                        Ok(l.exited(mode))
                    },
                    |l| {
                        l.clear_flags();
                        l.go(v, k, mode)
                    },
                    mode,
                    span,
                )
            }
        }
    }

    /// The value of code that has been left already.
    fn exited(&mut self, mode: Mode) -> Val {
        match mode {
            Mode::Fn => self.frame.env.get(&RETVAL).cloned().unwrap_or(Val::Unit),
            Mode::Loop => Val::Unit,
            Mode::Nested => Val::Never,
        }
    }

    /// `return v`
    fn leave_function(&mut self, v: Val, mode: Mode) -> Val {
        if mode == Mode::Fn {
            return v;
        }
        self.frame.env.insert(RET, Val::Static(CVal::Bool(true)));
        self.frame.env.insert(RETVAL, v);
        self.exited(mode)
    }

    fn set_flag(&mut self, flag: LocalId, span: Span) -> EvalResult<Val> {
        if self.frame.loops.is_empty() {
            return Err(bug(span, "a loop exit outside of a loop"));
        }
        self.frame.env.insert(flag, Val::Static(CVal::Bool(true)));
        Ok(Val::Never)
    }

    /// The number of loops around this place.
    pub(super) fn depth(&self) -> usize {
        self.frame.loops.len()
    }

    /// The state of the flags at this place.
    pub(super) fn exit(&self) -> Exit {
        let depth = self.depth();
        let mut dynamic = vec![];
        for flag in [RET, brk(depth), cont(depth)] {
            match self.frame.env.get(&flag) {
                Some(Val::Static(CVal::Bool(true))) => return Exit::Yes,
                Some(Val::One(v)) => dynamic.push(*v),
                Some(_) | None => {}
            }
        }
        if dynamic.is_empty() { Exit::No } else { Exit::If(dynamic) }
    }

    /// After a branch on one flag, it is true.
    fn set_single(&mut self, flags: &[ValueId]) {
        let [single] = flags else { return };
        let depth = self.depth();
        for flag in [RET, brk(depth), cont(depth)] {
            if let Some(v) = self.frame.env.get_mut(&flag)
                && *v == Val::One(*single)
            {
                *v = Val::Static(CVal::Bool(true));
            }
        }
    }

    pub(super) fn clear_flags(&mut self) {
        let depth = self.depth();
        for flag in [RET, brk(depth), cont(depth)] {
            if let Some(v) = self.frame.env.get_mut(&flag) {
                *v = Val::Static(CVal::Bool(false));
            }
        }
    }

    /// Code in the middle of an expression cannot leave: the surrounding expression would be half evaluated.
    pub(super) fn no_exit(&self, span: Span) -> EvalResult<()> {
        match self.exit() {
            Exit::No => Ok(()),
            Exit::Yes | Exit::If(_) => Err(bug(span, "this leaves from the middle of an expression")),
        }
    }

    pub(super) fn any_of(&mut self, flags: &[ValueId], span: Span) -> ValueId {
        self.at(span);
        let mut flags = flags.iter();
        let first = flags.next().copied();
        let mut c = match first {
            Some(v) => v,
            None => self.const_bool(false),
        };
        for f in flags {
            c = self.b.elementwise(ElementwiseOp::Or, &[c, *f]);
        }
        c
    }

    /// An `if` of the IR: both sides are lowered, and what differs after them becomes its results.
    pub(super) fn branch(
        &mut self,
        c: ValueId,
        then: impl FnOnce(&mut Self) -> EvalResult<Val>,
        els: impl FnOnce(&mut Self) -> EvalResult<Val>,
        mode: Mode,
        span: Span,
    ) -> EvalResult<Val> {
        // The code after a place in a compile-time loop gives its variable other values.
        let (outer, cvars) = (self.frame.env.clone(), self.frame.bindings.cvars.clone());
        self.enter(span, &[])?;
        let left = then(self)?;
        let left_block = self.leave();
        let left_env = std::mem::replace(&mut self.frame.env, outer.clone());
        self.frame.bindings.cvars.clone_from(&cvars);
        self.enter(span, &[])?;
        let right = els(self)?;
        let right_block = self.leave();
        let right_env = std::mem::replace(&mut self.frame.env, outer);
        self.frame.bindings.cvars = cvars;

        self.at(span);
        let mut slots = Slots { cond: c, left: vec![], right: vec![], types: vec![] };
        let value = self.merge(&left, &right, &mut slots, span)?;
        let merged = self.merge_env(&left_env, &right_env, &mut slots, mode, span)?;
        let idle = |l: &Self, b: BlockId| l.b.func.blocks[b].insts.is_empty();
        // A debugger stops in arms that do nothing.
        let dropped = slots.types.is_empty() && self.q.debug.is_none();
        let results = if dropped && idle(self, left_block) && idle(self, right_block) {
            vec![]
        } else {
            self.yield_in(left_block, &slots.left);
            self.yield_in(right_block, &slots.right);
            let blocks = vec![left_block, right_block];
            self.b.inst_with(Op::Control(ControlOp::If), &[c], Attrs::new(), blocks, &slots.types)
        };
        for (id, m) in merged {
            self.frame.env.insert(id, m.finish(&results));
        }
        Ok(value.finish(&results))
    }

    /// Merges the variables that are alive after an `if`.
    fn merge_env(
        &mut self,
        left: &Env,
        right: &Env,
        slots: &mut Slots,
        mode: Mode,
        span: Span,
    ) -> EvalResult<Vec<(LocalId, Merged)>> {
        let flags = || left.keys().chain(right.keys()).filter(|id| is_flag(**id)).copied();
        let ids: std::collections::BTreeSet<LocalId> = match (mode, self.frame.loops.last()) {
            (Mode::Fn, _) => Default::default(),
            (Mode::Loop, Some(l)) => l.live.clone(),
            (Mode::Loop | Mode::Nested, _) => self.frame.env.keys().copied().chain(flags()).collect(),
        };
        let mut out = vec![];
        for id in ids {
            let absent =
                if is_flag(id) && id != RETVAL { Val::Static(CVal::Bool(false)) } else { Val::Unset };
            let (a, b) = (left.get(&id).unwrap_or(&absent), right.get(&id).unwrap_or(&absent));
            out.push((id, self.merge(a, b, slots, span)?));
        }
        Ok(out)
    }

    /// Ends a block that is closed already.
    fn yield_in(&mut self, block: BlockId, values: &[ValueId]) {
        let inst = Inst {
            op: Op::Control(ControlOp::Yield),
            operands: values.to_vec(),
            attrs: Attrs::new(),
            blocks: vec![],
            results: vec![],
            loc: self.b.loc,
        };
        self.b.func.add_inst(block, inst, &[]);
    }

    fn declare(&mut self, pat: &HPat) {
        match pat {
            HPat::Ignore => {}
            HPat::Local(id) => {
                self.frame.env.insert(*id, Val::Unset);
            }
            HPat::Tuple(items) => items.iter().for_each(|p| self.declare(p)),
        }
    }

    pub(super) fn bind(&mut self, pat: &HPat, v: Val, span: Span) -> EvalResult<()> {
        match (pat, v) {
            (HPat::Ignore, _) => Ok(()),
            (HPat::Local(id), v) => {
                self.frame.env.insert(*id, v);
                Ok(())
            }
            (HPat::Tuple(pats), Val::Tuple(items)) if pats.len() == items.len() => {
                pats.iter().zip(items).try_for_each(|(p, v)| self.bind(p, v, span))
            }
            // After an exit every variable has any value.
            (HPat::Tuple(pats), Val::Never) => pats.iter().try_for_each(|p| self.bind(p, Val::Never, span)),
            (HPat::Tuple(_), v) => Err(bug(span, format!("{v:?} has no parts"))),
        }
    }

    fn assign(&mut self, local: LocalId, path: &[u32], value: Val, span: Span) -> EvalResult<()> {
        let mut place = self.frame.env.entry(local).or_insert(Val::Unset);
        for i in path {
            let part = match place {
                Val::Tuple(items) => items.get_mut(*i as usize),
                Val::Unit | Val::Never | Val::Unset | Val::One(_) | Val::Opt(_) | Val::Static(_) => None,
            };
            place = part.ok_or_else(|| bug(span, "a part of something without parts is assigned"))?;
        }
        *place = value;
        Ok(())
    }
}
