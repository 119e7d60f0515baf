//! Axes of tiles: numbers, or compile-time parameters whose value each specialization decides.
//!
//! What an operation along a symbolic axis gives has an extent `if AXIS == 0 { .. } else { .. }` for each dimension.

use tk_syntax::ast;
use tk_syntax::{Diagnostic, Span, codes};

use super::builtins::Slots;
use super::cx::Cx;
use crate::hir::{CVarId, HArg, HExpr, HKind, LocalId};
use crate::poly::{Poly, PolyFn};
use crate::types::Ty;

/// Along which dimension an operation goes.
pub(super) enum Axis {
    /// This one.
    Known(usize),
    /// One that a compile-time expression names, below the rank.
    Symbolic(Poly),
}

/// What makes the axes of a tile known.
pub(super) const WRITTEN_OUT: &str =
    "with its rank written out it is known: `fn f[M: i32, N: i32](x: tile[f32, M, N]) -> ..`";

impl Cx<'_> {
    /// An axis argument, below a rank: where it is, and the argument of the operation.
    pub(super) fn axis_arg(
        &mut self,
        s: &Slots,
        name: &str,
        rank: usize,
        default: Option<usize>,
    ) -> Option<(Axis, HArg)> {
        match (s.get(name), default) {
            (Some(e), _) => self.axis(e, rank),
            (None, Some(d)) => {
                let arg = self.mk(HKind::Int(d as i128), Ty::i32(), s.span, true);
                Some((Axis::Known(d), HArg::Expr(arg)))
            }
            (None, None) => None,
        }
    }

    /// The expression of an extent, unless it is written as 0.
    pub(super) fn positive<'e>(&mut self, e: &'e ast::Expr) -> Option<&'e ast::Expr> {
        let is_zero = matches!(e.kind, ast::ExprKind::Int(Some(0)));
        if is_zero {
            self.error(codes::EXTENT, e.span, "an extent is at least 1", "this is 0");
        }
        (!is_zero).then_some(e)
    }

    /// Returns true for an integer parameter that a caller gives at run time.
    fn is_given_at_launch(&self, id: LocalId) -> bool {
        let of = self.func.map(|f| self.hir().func(f));
        of.is_some_and(|f| f.params.iter().any(|p| p.local == id)) && self.is_int(&self.local(id).ty)
    }

    /// Reports an axis of a tile whose shape is a parameter.
    pub(super) fn axis_of_any_shape(&mut self, at: Span) {
        let message = "an axis of a tile of generic shape is not known here";
        self.report(Diagnostic::error(codes::UNKNOWN_EXTENT, at, message, "").note(WRITTEN_OUT));
    }

    /// An axis below a rank; a number is counted from the end when it is negative.
    pub(super) fn axis(&mut self, e: &ast::Expr, rank: usize) -> Option<(Axis, HArg)> {
        if let Some(id) = self.variable(e).filter(|id| self.is_given_at_launch(*id)) {
            let local = self.local(id);
            let message = "an axis must be known at compile time";
            let d = Diagnostic::error(codes::NOT_CONST, e.span, message, "this is only known at run time");
            let sentence = format!("a parameter that is an axis is declared `{}: const i32`", local.name);
            let d = d.label(local.span, "declared here").note(sentence);
            self.report(d);
            return None;
        }
        let h = self.const_int(e)?;
        let p = self.poly(&h)?;
        let Some(n) = self.with_facts(&p).as_int() else {
            if let Some(id) = p.as_param() {
                self.axes.push((id, rank));
            }
            return Some((Axis::Symbolic(p), HArg::Expr(h)));
        };
        let r = rank as i128;
        if n >= -r && n < r {
            let at = if n < 0 { n + r } else { n };
            let arg = HExpr { ty: Ty::i32(), kind: HKind::Int(at), ..h };
            return Some((Axis::Known(at as usize), HArg::Expr(arg)));
        }
        let label = if rank == 0 {
            "a scalar has no axis; the larger or smaller of two values is `maximum(a, b)`, `minimum(a, b)`"
                .to_string()
        } else {
            format!("axes go from 0 to {}, or from -1 to -{rank} from the end", rank - 1)
        };
        self.error(codes::AXIS, e.span, format!("axis {n} is out of range for a tile of rank {rank}"), label);
        None
    }

    /// The variable that a polynomial is, where it is an axis, and the lowest rank that it was used with.
    pub(super) fn axis_range(&self, p: &Poly) -> Option<(CVarId, usize)> {
        let id = p.as_param()?;
        self.axes.iter().filter(|(x, _)| *x == id).map(|(_, rank)| *rank).min().map(|rank| (id, rank))
    }

    /// The extents after an operation along an axis, which are `of` for each axis that there is.
    pub(super) fn dims_along(
        &self,
        axis: &Axis,
        rank: usize,
        of: impl Fn(usize) -> Option<Vec<Poly>>,
    ) -> Option<Vec<Poly>> {
        let p = match axis {
            Axis::Known(n) => return of(*n),
            Axis::Symbolic(p) => p,
        };
        // The last one needs no question: it is the only one left.
        let mut out = of(rank.checked_sub(1)?)?;
        for n in (0..rank - 1).rev() {
            for (d, yes) in out.iter_mut().zip(of(n)?) {
                let no = std::mem::take(d);
                *d = Poly::apply(PolyFn::Choose, vec![p.clone(), Poly::int(n as i128), yes, no])?;
            }
        }
        Some(out)
    }
}
