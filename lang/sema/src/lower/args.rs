//! The arguments of a builtin while it is lowered: found by name, values lowered, compile-time ones evaluated.

use tk_ops::table::{ParamKind, Row};
use tk_syntax::{Diagnostic, Span, codes};
use tk_tile::ValueId;

use super::value::Val;
use super::{Lower, bug};
use crate::eval::{CVal, EvalResult, FnVal};
use crate::hir::{HArg, HExpr};

/// One argument.
#[derive(Clone, Debug)]
pub(super) enum Arg {
    /// Not given.
    Default,
    /// A value, lowered.
    Val(Val),
    /// A list of values, lowered.
    List(Vec<Val>),
    /// A compile-time value.
    Known(CVal),
    /// A word.
    Word(&'static str),
}

/// The arguments of one call.
#[derive(Clone, Debug)]
pub(super) struct Args {
    pub row: &'static Row,
    /// The call.
    pub span: Span,
    args: Vec<Arg>,
}

impl Args {
    /// Values by position; the other parameters are not given.
    pub fn of_values(row: &'static Row, values: Vec<Val>, span: Span) -> Args {
        Args { row, span, args: values.into_iter().map(Arg::Val).collect() }
    }

    pub fn get(&self, name: &str) -> &Arg {
        self.row.param(name).and_then(|i| self.args.get(i)).unwrap_or(&Arg::Default)
    }

    /// The value of a parameter; `None` when it is not given.
    pub fn opt(&self, name: &str) -> Option<Val> {
        match self.get(name) {
            Arg::Val(v) => Some(v.clone()),
            Arg::Default | Arg::List(_) | Arg::Known(_) | Arg::Word(_) => None,
        }
    }

    /// The value of a required parameter.
    pub fn val(&self, name: &str) -> EvalResult<Val> {
        self.opt(name).ok_or_else(|| self.missing(name))
    }

    /// The values of a list.
    pub fn list(&self, name: &str) -> EvalResult<Vec<Val>> {
        match self.get(name) {
            Arg::List(items) => Ok(items.clone()),
            Arg::Val(Val::Tuple(items)) => Ok(items.clone()),
            Arg::Val(v) => Ok(vec![v.clone()]),
            Arg::Default | Arg::Known(_) | Arg::Word(_) => Err(self.missing(name)),
        }
    }

    /// A compile-time value; `None` when it is not given.
    pub fn known(&self, name: &str) -> Option<&CVal> {
        match self.get(name) {
            Arg::Known(v) => Some(v),
            Arg::Default | Arg::Val(_) | Arg::List(_) | Arg::Word(_) => None,
        }
    }

    /// A compile-time integer; `None` when it is not given.
    pub fn int(&self, name: &str) -> Option<i64> {
        self.known(name).and_then(CVal::as_int).and_then(|i| i64::try_from(i).ok())
    }

    /// A required compile-time integer.
    pub fn need_int(&self, name: &str) -> EvalResult<i64> {
        self.int(name).ok_or_else(|| self.missing(name))
    }

    /// A compile-time bool, false when it is not given.
    pub fn flag(&self, name: &str) -> bool {
        self.known(name).and_then(CVal::as_bool).unwrap_or(false)
    }

    /// A compile-time list of integers.
    pub fn ints(&self, name: &str) -> EvalResult<Vec<i64>> {
        match self.known(name) {
            Some(CVal::Shape(s)) => Ok(s.clone()),
            Some(_) | None => Err(self.missing(name)),
        }
    }

    /// A word; `None` when it is not given.
    pub fn word(&self, name: &str) -> Option<&'static str> {
        match self.get(name) {
            Arg::Word(w) => Some(w),
            Arg::Default | Arg::Val(_) | Arg::List(_) | Arg::Known(_) => None,
        }
    }

    /// A text.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.known(name) {
            Some(CVal::Str(s)) => Some(s),
            Some(_) | None => None,
        }
    }

    /// A function.
    pub fn function(&self, name: &str) -> EvalResult<FnVal> {
        match self.known(name) {
            Some(CVal::Fn(f)) => Ok(f.clone()),
            Some(_) | None => Err(self.missing(name)),
        }
    }

    fn missing(&self, name: &str) -> Box<Diagnostic> {
        bug(self.span, format!("`{}` without `{name}`: {:?}", self.row.name, self.get(name)))
    }

    /// The axis as a position below `rank`; `None` when it is not given.
    pub fn axis(&self, name: &str, rank: usize) -> EvalResult<Option<usize>> {
        match self.int(name) {
            Some(a) => self.axis_at(a, rank).map(Some),
            None => Ok(None),
        }
    }

    /// An axis as a position below `rank`. The checker has counted negative numbers from the end; a negative value of
    /// a compile-time parameter would contradict the types that it found.
    pub fn axis_at(&self, axis: i64, rank: usize) -> EvalResult<usize> {
        let n = rank as i64;
        if axis < 0 {
            let message = format!(
                "`{}` has the axis {axis}, but a parameter that is an axis counts from 0",
                self.row.name
            );
            let d = Diagnostic::error(codes::AXIS, self.span, message, "");
            return Err(Box::new(match axis + n {
                at if at >= 0 => d.note(format!("{at} is this axis of a tile of rank {rank}")),
                _ => d,
            }));
        }
        if axis >= n {
            let message = format!("`{}` has axis {axis}, but the tile has rank {rank}", self.row.name);
            return Err(Box::new(Diagnostic::error(codes::AXIS, self.span, message, "")));
        }
        Ok(axis as usize)
    }
}

impl Lower<'_, '_> {
    /// Lowers the arguments of a builtin, in order.
    pub(super) fn args(&mut self, row: &'static Row, args: &[HArg], span: Span) -> EvalResult<Args> {
        let mut out = vec![];
        for (i, a) in args.iter().enumerate() {
            let kind = row.params.get(i).map(|p| p.kind);
            out.push(self.arg(kind, a, span)?);
        }
        Ok(Args { row, span, args: out })
    }

    fn arg(&mut self, kind: Option<ParamKind>, a: &HArg, span: Span) -> EvalResult<Arg> {
        let known = kind.is_some_and(|k| match k {
            ParamKind::Shape
            | ParamKind::Axis
            | ParamKind::ConstInt
            | ParamKind::ConstBool
            | ParamKind::ConstFloat
            | ParamKind::ConstInts
            | ParamKind::DType
            | ParamKind::Fn
            | ParamKind::Str => true,
            ParamKind::Value
            | ParamKind::Mask
            | ParamKind::Int
            | ParamKind::Pointer
            | ParamKind::View
            | ParamKind::Position
            | ParamKind::Positions
            | ParamKind::Word(_)
            | ParamKind::Rest => false,
        });
        Ok(match a {
            HArg::Default => Arg::Default,
            HArg::Word(w) => Arg::Word(w),
            HArg::Shape(s) => Arg::Known(CVal::Shape(self.eval(|ev| ev.shape(s, span))?)),
            HArg::Expr(e) if known => Arg::Known(self.eval(|ev| ev.expr(e))?),
            HArg::List(items) if known => Arg::Known(CVal::Shape(self.known_ints(items)?)),
            HArg::Expr(e) => Arg::Val(self.expr(e)?),
            HArg::List(items) => Arg::List(items.iter().map(|e| self.expr(e)).collect::<EvalResult<_>>()?),
        })
    }

    fn known_ints(&mut self, items: &[HExpr]) -> EvalResult<Vec<i64>> {
        let mut out = vec![];
        for e in items {
            let i = self.eval(|ev| ev.int(e))?;
            out.push(i64::try_from(i).map_err(|_| bug(e.span, "an integer is too large"))?);
        }
        Ok(out)
    }

    /// The single value of a required parameter.
    pub(super) fn operand(&mut self, a: &Args, name: &str) -> EvalResult<ValueId> {
        let v = a.val(name)?;
        self.one(&v, a.span)
    }

    /// The single value of a parameter that may be left out.
    pub(super) fn opt_operand(&mut self, a: &Args, name: &str) -> EvalResult<Option<ValueId>> {
        match a.opt(name) {
            Some(v) => self.one(&v, a.span).map(Some),
            None => Ok(None),
        }
    }

    /// The single values of a list.
    pub(super) fn operands(&mut self, a: &Args, name: &str) -> EvalResult<Vec<ValueId>> {
        let items = a.list(name)?;
        items.iter().map(|v| self.one(v, a.span)).collect()
    }
}
