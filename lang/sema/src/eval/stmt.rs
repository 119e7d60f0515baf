//! The evaluation of blocks, statements and loops at compile time.

use tk_syntax::Span;

use super::{CVal, EvalResult, Evaluator, bug, fail};
use crate::hir::{HBlock, HExpr, HPat, HStmt, HStmtKind, LocalId, StaticIter};

/// The way in which code ended.
pub(super) enum Flow {
    /// With this value, going on.
    Next(CVal),
    Break,
    Continue,
    Return(CVal),
}

impl Evaluator<'_> {
    pub(super) fn block(&mut self, b: &HBlock) -> EvalResult<Flow> {
        for s in &b.stmts {
            match self.stmt(s)? {
                Flow::Next(_) => {}
                exit => return Ok(exit),
            }
        }
        match &b.tail {
            Some(e) => self.flow(e),
            None => Ok(Flow::Next(CVal::Unit)),
        }
    }

    fn stmt(&mut self, s: &HStmt) -> EvalResult<Flow> {
        self.step(s.span)?;
        let next = Ok(Flow::Next(CVal::Unit));
        match &s.kind {
            HStmtKind::Let(_, None) => next,
            HStmtKind::Let(pat, Some(e)) => match self.flow(e)? {
                Flow::Next(v) => {
                    self.bind(pat, v, s.span)?;
                    next
                }
                exit => Ok(exit),
            },
            HStmtKind::Assign { local, path, value } => match self.flow(value)? {
                Flow::Next(v) => {
                    self.assign(*local, path, v, s.span)?;
                    next
                }
                exit => Ok(exit),
            },
            HStmtKind::Expr(e) => self.flow(e),
            HStmtKind::For { var, lo, hi, step, body, .. } => self.run_for(*var, (lo, hi, step), body),
            HStmtKind::StaticFor { var, iter, body } => {
                let values = self.static_values(iter)?;
                for v in values {
                    self.step(s.span)?;
                    self.cvars.insert(*var, v);
                    match self.block(body)? {
                        Flow::Next(_) | Flow::Continue => {}
                        Flow::Break => break,
                        Flow::Return(v) => return Ok(Flow::Return(v)),
                    }
                }
                next
            }
            HStmtKind::While { cond, body } => {
                while self.condition(cond)? {
                    self.step(s.span)?;
                    match self.block(body)? {
                        Flow::Next(_) | Flow::Continue => {}
                        Flow::Break => break,
                        Flow::Return(v) => return Ok(Flow::Return(v)),
                    }
                }
                next
            }
            HStmtKind::Return(e) => Ok(Flow::Return(e.as_ref().map_or(Ok(CVal::Unit), |e| self.expr(e))?)),
            HStmtKind::Break => Ok(Flow::Break),
            HStmtKind::Continue => Ok(Flow::Continue),
            HStmtKind::AssertError { .. } => fail(s.span, "`assert_error` does not run at compile time"),
            HStmtKind::Err => Err(bug("evaluation", s.span, "a hole was left in a checked function")),
        }
    }

    fn run_for(&mut self, var: LocalId, range: (&HExpr, &HExpr, &HExpr), body: &HBlock) -> EvalResult<Flow> {
        let (mut i, hi, step) = (self.int(range.0)?, self.int(range.1)?, self.int(range.2)?);
        if step == 0 {
            return fail(range.2.span, "the step of this range is 0");
        }
        while if step > 0 { i < hi } else { i > hi } {
            self.step(body.span)?;
            self.locals.insert(var, CVal::Int(i));
            match self.block(body)? {
                Flow::Next(_) | Flow::Continue => {}
                Flow::Break => break,
                Flow::Return(v) => return Ok(Flow::Return(v)),
            }
            i += step;
        }
        Ok(Flow::Next(CVal::Unit))
    }

    /// The values of a compile-time loop, in order.
    pub(crate) fn static_values(&mut self, iter: &StaticIter) -> EvalResult<Vec<CVal>> {
        match iter {
            StaticIter::List(items) => items.iter().map(|e| self.expr(e)).collect(),
            StaticIter::Range(lo, hi, step) => {
                let (mut i, end, by) = (self.int(lo)?, self.int(hi)?, self.int(step)?);
                if by == 0 {
                    return fail(step.span, "the step of this range is 0");
                }
                let mut out = vec![];
                while if by > 0 { i < end } else { i > end } {
                    self.step(lo.span.to(hi.span))?;
                    out.push(CVal::Int(i));
                    i += by;
                }
                Ok(out)
            }
        }
    }

    pub(super) fn bind(&mut self, pat: &HPat, value: CVal, span: Span) -> EvalResult<()> {
        match (pat, value) {
            (HPat::Ignore, _) => Ok(()),
            (HPat::Local(id), v) => {
                self.locals.insert(*id, v);
                Ok(())
            }
            (HPat::Tuple(pats), CVal::Tuple(items)) if pats.len() == items.len() => {
                pats.iter().zip(items).try_for_each(|(p, v)| self.bind(p, v, span))
            }
            (HPat::Tuple(pats), CVal::Shape(dims)) if pats.len() == dims.len() => {
                pats.iter().zip(dims).try_for_each(|(p, d)| self.bind(p, CVal::Int(d.into()), span))
            }
            (HPat::Tuple(_), v) => Err(bug("evaluation", span, format!("{v} has no parts"))),
        }
    }

    fn assign(&mut self, local: LocalId, path: &[u32], value: CVal, span: Span) -> EvalResult<()> {
        if path.is_empty() {
            self.locals.insert(local, value);
            return Ok(());
        }
        let mut place = self.locals.get_mut(&local);
        for i in path {
            place = match place {
                Some(CVal::Tuple(items)) => items.get_mut(*i as usize),
                Some(_) | None => None,
            };
        }
        match place {
            Some(slot) => {
                *slot = value;
                Ok(())
            }
            None => self.runtime(span),
        }
    }
}
