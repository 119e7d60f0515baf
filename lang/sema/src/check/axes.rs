//! Axes of tiles: numbers, or compile-time parameters whose value each specialization decides.
//!
//! What an operation along a symbolic axis gives has an extent `if AXIS == 0 { .. } else { .. }` for each dimension.

use tk_syntax::ast;
use tk_syntax::codes;

use super::builtins::Slots;
use super::cx::Cx;
use crate::hir::{CVarId, HArg, HExpr, HKind};
use crate::poly::{Poly, PolyFn};
use crate::types::Ty;

/// Along which dimension an operation goes.
pub(super) enum Axis {
    /// This one.
    Known(usize),
    /// One that a compile-time expression names, below the rank.
    Symbolic(Poly),
}

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

    /// An axis below a rank; a number is counted from the end when it is negative.
    pub(super) fn axis(&mut self, e: &ast::Expr, rank: usize) -> Option<(Axis, HArg)> {
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
