//! W0504: a reduction in which padding counts, because the padded lanes do not hold the identity of the reduction.
//!
//! A masked load gives padded lanes a value (`other`, by default 0). This lint follows that value through the function:
//! operations on constants are evaluated by the same functions as everywhere, `where` and products with masks replace
//! it, and an operation with data that does not keep it spoils it, as `x - mean` does to zeros. It reports a reduction
//! along a dimension whose padding is spoiled or is another constant than the identity: 0 for `sum` and `dot`, 1 for
//! `prod`, `-inf` for `max` (0 too, when the data is not negative), `inf` for `min`.
//!
//! Of an `if` on a bool that a caller chooses, such as `CAUSAL: bool = false`, each arm is also followed by itself: where
//! only one of them masks, the other one's padding counts.
//!
//! Atomics combine what meets in one place as a reduction does: it reports one whose positions are computed from padding, where
//! nothing masks it and the value is not neutral.
//!
//! An extent that is the tensor's own (`D: i32 = x.shape[1]`, or by a `require`) has no padding. What the lint does not
//! follow has unknown padding, about which it says nothing. It gives up a function that needs more than [`FUEL`] steps.

mod atomics;
mod captured;
mod cases;
mod eval;
mod meaning;
mod report;
mod state;
mod values;
mod vars;

use std::collections::BTreeSet;

use tk_ops::{ElementwiseOp, Op};

use super::{Cx, each_in};
use crate::hir::{CVarId, HFn, HKind, Hir};
use crate::poly::{Atom, Poly};
use state::Tile;

/// The number of expressions visited for one function, the functions that it calls and the iterations of its loops
/// included.
const FUEL: usize = 100_000;

pub(super) fn function(cx: &mut Cx, f: &HFn) {
    for one in cases::found(cx.hir, f) {
        let d = report::diagnostic(cx.hir, cx.sources, f, &one);
        cx.warn(d);
    }
}

/// The abstract value of a variable or expression.
#[derive(Clone, Debug, PartialEq)]
enum Value<'a> {
    /// A tile or scalar.
    Tile(Tile<'a>),
    /// A tuple or struct.
    Parts(Vec<Value<'a>>),
    /// Anything else, of which nothing is known.
    Opaque,
}

/// The compile-time parameters that are extents of tensors: no tile of such an extent leaves its tensor.
fn exact(hir: &Hir, f: &HFn) -> BTreeSet<CVarId> {
    let of_tensor = |c: &&CVarId| {
        let default = hir.cvar(**c).default.as_ref();
        default.is_some_and(|d| matches!(d.kind, HKind::Extent(..)))
    };
    let mut exact: BTreeSet<CVarId> = f.cparams.iter().filter(of_tensor).copied().collect();
    for r in &f.contract.require {
        each_in(&r.cond, &mut |_| {}, &mut |e| {
            if let HKind::Builtin(row, _) = &e.kind
                && matches!(row.op, Op::Elementwise(ElementwiseOp::Eq | ElementwiseOp::Rem))
            {
                each_in(e, &mut |_| {}, &mut |e| exact.extend(cvar(e)));
            }
        });
    }
    exact
}

fn cvar(e: &crate::hir::HExpr) -> Option<CVarId> {
    match &e.kind {
        HKind::CVar(c) => Some(*c),
        _other => None,
    }
}

/// Returns true if an extent is that of a tensor.
fn is_exact(exact: &BTreeSet<CVarId>, extent: &Poly) -> bool {
    extent.as_int() == Some(1)
        || extent
            .terms()
            .any(|(atoms, _)| atoms.iter().any(|a| matches!(a, Atom::Param(c) if exact.contains(c))))
}
