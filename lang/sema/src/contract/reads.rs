//! The properties of arguments that a plan depends on: a launcher that caches plans must compare exactly these.

use std::collections::BTreeSet;

use tk_ops::DType;

use super::bind::flat_tys;
use crate::hir::{FnId, HExpr, HKind, Hir, LocalId};
use crate::types::{DTerm, Elem, Ty};
use crate::visit::each_expr;

/// The properties of one argument that a plan depends on, beside its element type and rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgUse {
    /// A clause or a default reads its parameter: its value, extents and strides decide.
    pub read: bool,
    /// The type of a number, if that follows from nothing else.
    pub number: Option<DType>,
}

/// The properties of each argument of a kernel that a plan depends on, in their order. The extents of a tensor must
/// also be in the range of its view, and a number of another type than its parameter is converted: both are decided
/// by the plan.
pub fn argument_uses(hir: &Hir, kernel: FnId) -> Vec<ArgUse> {
    let f = hir.func(kernel);
    let mut read: BTreeSet<LocalId> = BTreeSet::new();
    let mut note = |e: &HExpr| {
        if let HKind::Local(id) = &e.kind {
            read.insert(*id);
        }
    };
    let c = &f.contract;
    let conditions = c.require.iter().chain(c.prefer.iter().flatten()).map(|r| &r.cond);
    let defaults = f.cparams.iter().filter_map(|id| hir.cvar(*id).default.as_ref());
    let values = f.params.iter().filter_map(|p| p.default.as_ref());
    let launch = c.launch.iter().map(|(_, e)| e);
    let scratch = c.scratch.iter().map(|s| &s.count);
    let key = c.tune.iter().flat_map(|t| &t.key);
    let all =
        c.grid.iter().chain(key).chain(conditions).chain(defaults).chain(values).chain(launch).chain(scratch);
    all.for_each(|e| each_expr(e, &mut note));
    let mut out = vec![];
    for p in &f.params {
        let mut types = vec![];
        flat_tys(hir, &p.ty, &mut types);
        let read = read.contains(&p.local);
        out.extend(types.iter().map(|ty| ArgUse { read, number: number(ty) }));
    }
    out
}

fn number(ty: &Ty) -> Option<DType> {
    match ty {
        Ty::Tile { elem: Elem::D(DTerm::Known(d)), .. } => Some(*d),
        Ty::Tile { .. }
        | Ty::View { .. }
        | Ty::Option(_)
        | Ty::Buffer { .. }
        | Ty::Tuple(_)
        | Ty::List(..)
        | Ty::Struct(..)
        | Ty::Err
        | Ty::Unit
        | Ty::Never
        | Ty::Fn(..)
        | Ty::DType
        | Ty::ShapeTy
        | Ty::Str => None,
    }
}
