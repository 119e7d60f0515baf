//! Operators, conversions and builtins on compile-time values.
//!
//! Scalar operations are those of [`tk_ops::eval`]; signed overflow and division by zero, which wrap and are
//! unspecified at run time, are errors here: they are never intended.

use tk_ops::eval::{Operand, elementwise};
use tk_ops::table::Row;
use tk_ops::{DType, ElementwiseOp, Op, Scalar};
use tk_syntax::{Diagnostic, Severity, Span, codes};

use super::{CVal, EvalResult, Evaluator, bug, fail};
use crate::hir::{HArg, HExpr};
use crate::types::Ty;

impl Evaluator<'_> {
    pub(super) fn builtin(&mut self, row: &Row, args: &[HArg], e: &HExpr) -> EvalResult<CVal> {
        if row.name == "static_assert" {
            return self.static_assert(args, e.span);
        }
        if row.name == "static_print" {
            return self.static_print(args, e.span);
        }
        let Op::Elementwise(op) = row.op else {
            return self.runtime(e.span);
        };
        let mut values = vec![];
        for arg in args {
            if let HArg::Expr(a) = arg {
                values.push((self.expr(a)?, a));
            }
        }
        // `fast = true` and its like come after the operands.
        values.truncate(op.arity());
        if let (ElementwiseOp::Eq | ElementwiseOp::Ne, [(a, x), (b, y)]) = (op, values.as_slice())
            && !(is_number(&x.ty) && is_number(&y.ty))
        {
            return Ok(CVal::Bool(same(a, b) == (op == ElementwiseOp::Eq)));
        }
        let mut scalars = vec![];
        for (v, a) in &values {
            scalars.push(self.scalar(v, &a.ty, a.span)?);
        }
        let out = self.scalar_type(&e.ty, e.span)?;
        scalar_op(op, &scalars, out, e.span)
    }

    /// A value as a scalar of the element type of its expression.
    pub(super) fn scalar(&mut self, v: &CVal, ty: &Ty, span: Span) -> EvalResult<Scalar> {
        let dtype = self.scalar_type(ty, span)?;
        v.to_scalar(dtype).map_or_else(|| Err(bug("evaluation", span, format!("{v} as {dtype}"))), Ok)
    }

    pub(super) fn cast(&mut self, x: &HExpr, e: &HExpr) -> EvalResult<CVal> {
        let v = self.expr(x)?;
        if !is_number(&e.ty) {
            // `mut view` to `view`, and what has no element type.
            return Ok(v);
        }
        let from = self.scalar(&v, &x.ty, x.span)?;
        let to = self.scalar_type(&e.ty, e.span)?;
        scalar_op(ElementwiseOp::Cast, &[from], to, e.span)
    }

    /// A value of a constant, and the one in floats, in the type that its use gave it.
    pub(super) fn retyped(&mut self, v: CVal, real: Option<CVal>, ty: &Ty, span: Span) -> EvalResult<CVal> {
        if let (CVal::Tuple(items), Ty::Tuple(types)) = (&v, ty) {
            let mut reals = match real {
                Some(CVal::Tuple(reals)) => reals.into_iter(),
                _other => vec![].into_iter(),
            };
            let parts = items.iter().zip(types).map(|(v, t)| self.retyped(v.clone(), reals.next(), t, span));
            return parts.collect::<EvalResult<_>>().map(CVal::Tuple);
        }
        if !matches!(v, CVal::Int(_) | CVal::Float(_)) || !is_number(ty) {
            return Ok(v);
        }
        let dtype = self.scalar_type(ty, span)?;
        let v = real.filter(|_| dtype.is_float()).unwrap_or(v);
        if let (CVal::Int(i), Some((lo, hi))) = (&v, dtype.int_range())
            && !(lo..=hi).contains(i)
        {
            return fail(span, format!("the constant {i} does not fit in `{dtype}`"));
        }
        let s = self.scalar(&v, ty, span)?;
        Ok(CVal::of_scalar(s))
    }

    fn static_assert(&mut self, args: &[HArg], span: Span) -> EvalResult<CVal> {
        let mut exprs = args.iter().flat_map(exprs);
        let Some(cond) = exprs.next() else {
            return Err(bug("evaluation", span, "`static_assert` without a condition"));
        };
        if self.condition(cond)? {
            return Ok(CVal::Unit);
        }
        let message = match exprs.next().map(|m| self.expr(m)).transpose()? {
            Some(CVal::Str(s)) if !s.is_empty() => format!("static_assert failed: {s}"),
            Some(_) | None => "static_assert failed".to_string(),
        };
        Err(Box::new(Diagnostic::error(codes::STATIC_ASSERT, cond.span, message, "this is false")))
    }

    fn static_print(&mut self, args: &[HArg], span: Span) -> EvalResult<CVal> {
        let mut words = vec![];
        for e in args.iter().flat_map(exprs) {
            words.push(match self.expr(e)? {
                CVal::Str(s) => s,
                other => other.to_string(),
            });
        }
        let d = Diagnostic::error(codes::STATIC_ASSERT, span, words.join(" "), "").severity(Severity::Note);
        self.notes.push(d);
        Ok(CVal::Unit)
    }
}

/// The expressions of an argument.
fn exprs(a: &HArg) -> &[HExpr] {
    match a {
        HArg::Expr(e) => std::slice::from_ref(e),
        HArg::List(items) => items,
        HArg::Default | HArg::Shape(_) | HArg::Word(_) => &[],
    }
}

fn is_number(ty: &Ty) -> bool {
    matches!(ty, Ty::Tile { .. })
}

/// Equality of values that are no numbers; a list of extents equals a tuple of the same integers.
fn same(a: &CVal, b: &CVal) -> bool {
    match (a, b) {
        (CVal::Shape(s), CVal::Tuple(t)) | (CVal::Tuple(t), CVal::Shape(s)) => {
            s.len() == t.len() && s.iter().zip(t).all(|(d, v)| v.as_int() == Some((*d).into()))
        }
        (CVal::Tuple(x), CVal::Tuple(y)) => x.len() == y.len() && x.iter().zip(y).all(|(p, q)| same(p, q)),
        (a, b) => a == b,
    }
}

/// An elementwise operation on single values.
pub(crate) fn scalar_op(op: ElementwiseOp, args: &[Scalar], out: DType, span: Span) -> EvalResult<CVal> {
    check_domain(op, args, out, span)?;
    let operands: Vec<Operand<'_>> = args.iter().map(|s| Operand::Splat(*s)).collect();
    match elementwise(op, &operands, out, 1, false) {
        Ok(buf) => Ok(CVal::of_scalar(buf.get(0))),
        Err(e) => Err(bug("evaluation", span, e)),
    }
}

fn check_domain(op: ElementwiseOp, args: &[Scalar], out: DType, span: Span) -> EvalResult<()> {
    use ElementwiseOp::*;
    let ints: Vec<i128> = args.iter().filter_map(|s| s.as_int()).collect();
    if ints.len() != args.len() {
        return Ok(());
    }
    let exact = match (op, ints.as_slice()) {
        (Div | Rem | CeilDiv, [_, 0]) => return fail(span, "division by zero"),
        (Add, [a, b]) => a.checked_add(*b),
        (Sub, [a, b]) => a.checked_sub(*b),
        (Mul, [a, b]) => a.checked_mul(*b),
        (Div, [a, b]) => a.checked_div(*b),
        (Neg, [a]) => a.checked_neg(),
        (Abs, [a]) => a.checked_abs(),
        (CeilDiv, [a, b]) => crate::poly::eval_fn(crate::poly::PolyFn::CeilDiv, &[*a, *b]),
        (NextPow2, [a]) => crate::poly::eval_fn(crate::poly::PolyFn::NextPow2, &[*a]),
        _others => return Ok(()),
    };
    // Unsigned arithmetic wraps on purpose (hashes).
    if !out.is_signed() && !matches!(op, CeilDiv | NextPow2) {
        return Ok(());
    }
    match (exact, out.int_range()) {
        (Some(v), Some((lo, hi))) if !(lo..=hi).contains(&v) => {
            fail(span, format!("the result {v} does not fit in `{out}`"))
        }
        (Some(_), _) => Ok(()),
        (None, _) => fail(span, format!("the result does not fit in `{out}`")),
    }
}
