//! Elements at positions in W0504's walk: atomics, in which padding counts as in a reduction, and `gather`.

use tk_ops::{AtomicOp, ReduceOp};
use tk_syntax::{Diagnostic, SourceMap, codes};

use super::super::warning;
use super::eval::Eval;
use super::report::{Found, Role, given_other, mask_of};
use super::state::{State, Tile, number};
use super::values::{LARGE, counts, extents, is_unsigned};
use super::{Value, is_exact};
use crate::hir::{HArg, HExpr, HFn, HKind};

impl<'a> Eval<'a> {
    /// The positions of an operation: tiles, and where they are written.
    fn positions(&mut self, args: &'a [HArg], values: &[Value<'a>]) -> Vec<(&'a HExpr, Tile<'a>)> {
        let mut all = vec![];
        let mut add = |e: &'a HExpr, v: Value<'a>| match v {
            Value::Tile(t) => all.push((e, t)),
            Value::Parts(_) | Value::Opaque => {}
        };
        match (args, values) {
            ([_view, HArg::List(at), ..], _) => at.iter().for_each(|e| add(e, self.expr(e))),
            ([HArg::Expr(ptr), ..], [value, ..]) => add(ptr, value.clone()),
            (_, _) => {}
        }
        all
    }

    /// Reports an atomic in which padding takes part.
    pub(super) fn atomic(&mut self, e: &'a HExpr, op: AtomicOp, args: &'a [HArg], values: &[Value<'a>]) {
        let HKind::Builtin(row, _) = &e.kind else { return };
        let fold = match op {
            AtomicOp::Add => ReduceOp::Sum,
            AtomicOp::Max => ReduceOp::Max,
            AtomicOp::Min => ReduceOp::Min,
            AtomicOp::Or => ReduceOp::Or,
            AtomicOp::Xor => ReduceOp::XorSum,
            AtomicOp::And | AtomicOp::Xchg | AtomicOp::Cas | AtomicOp::Load | AtomicOp::Store => return,
        };
        let positions = self.positions(args, values);
        let named = |name: &str| match row.param(name).and_then(|i| values.get(i)) {
            Some(Value::Tile(t)) => Some(t.clone()),
            Some(Value::Parts(_) | Value::Opaque) | None => None,
        };
        let Some(value) = named("value") else { return };
        let mask = row.param("mask").and_then(|i| args.get(i)).filter(|a| !matches!(a, HArg::Default));
        let masked = match (mask, named("mask")) {
            (None, _) => Some(Tile::uniform(0)),
            (Some(_), mask) => mask,
        };
        let Some(masked) = masked else { return };
        let rank = positions.iter().map(|(_, t)| t.dims.len()).max().unwrap_or(0);
        for dim in 0..rank {
            let passes = match masked.dims.get(dim) {
                None | Some(State::Same) => masked.constant.is_none_or(|c| number(c) == 1.0),
                Some(State::Known(c)) => number(*c) == 1.0,
                Some(State::Data | State::Mask | State::Spoiled | State::Unknown) => false,
            };
            let takes = match (value.constant, value.dims.get(dim)) {
                (Some(c), _) => counts(fold, State::Known(c), &value),
                (None, Some(State::Mask | State::Unknown)) => false,
                (None, Some(State::Known(c))) => counts(fold, State::Known(*c), &value),
                (None, Some(State::Same | State::Data | State::Spoiled) | None) => true,
            };
            let at = positions.iter().find(|(_, t)| is_place(t, dim));
            let Some((at, t)) = at.filter(|_| passes && takes) else { continue };
            if positions.iter().any(|(_, t)| is_elsewhere(t, dim)) {
                continue;
            }
            let (state, from) = (t.dims.get(dim).copied().unwrap_or(State::Unknown), t.clone());
            let (what, role, case) = (row.name, Role::Position { masked: mask.is_some() }, self.case);
            self.report(Found { place: e, what, value: at, dim, state, from, op: fold, role, case });
            return;
        }
    }

    /// The elements at positions. What is past the end has the value `other`; positions that end by themselves, as those that
    /// a tile gives or a remainder does, are not known to be there or not.
    pub(super) fn gather(
        &mut self,
        e: &'a HExpr,
        args: &'a [HArg],
        mask: Option<Tile<'a>>,
        other: Option<Tile<'a>>,
    ) -> Option<Tile<'a>> {
        let padding = self.other(e, &args.get(3), other).map_or(State::Unknown, State::Known);
        let has_mask = args.get(2).is_some_and(|a| !matches!(a, HArg::Default));
        let positions = self.positions(args, &[]);
        let along = |(d, extent): (usize, &crate::poly::Poly)| {
            let masked = match (&mask, has_mask) {
                (None, false) => false,
                (None, true) => return State::Unknown,
                (Some(m), _) => !matches!(m.dims.get(d), None | Some(State::Same)),
            };
            let varying =
                positions.iter().filter(|(_, t)| !matches!(t.dims.get(d), None | Some(State::Same)));
            let mut state = if masked { padding } else { State::Same };
            for (_, t) in varying {
                let ends = t.dims.get(d) != Some(&State::Data) || !t.linear;
                state = match state {
                    _ if ends => return State::Unknown,
                    State::Same if is_exact(&self.exact, extent) => State::Data,
                    State::Same
                    | State::Data
                    | State::Mask
                    | State::Known(_)
                    | State::Spoiled
                    | State::Unknown => padding,
                };
            }
            state
        };
        let dims: Vec<State> = extents(&e.ty)?.iter().enumerate().map(along).collect();
        let sources = (0..dims.len()).map(|d| Some((e, d))).collect();
        let not_negative = is_unsigned(self.hir, &e.ty);
        Some(Tile { dims, sources, origin: Some(e), loads: vec![e], not_negative, ..Tile::uniform(0) })
    }
}

/// Whether the padding of a dimension has positions at which there is something: where `other` was chosen, it may be one that
/// is outside.
fn is_place(t: &Tile, dim: usize) -> bool {
    match t.dims.get(dim) {
        Some(State::Known(c)) => (0.0..LARGE).contains(&number(*c)) && t.origin.is_some(),
        Some(State::Spoiled) => t.origin.is_some_and(|load| given_other(load).is_none()),
        Some(State::Same | State::Data | State::Mask | State::Unknown) | None => false,
    }
}

/// Whether the padding of a dimension may be outside of the view by this position.
fn is_elsewhere(t: &Tile, dim: usize) -> bool {
    match t.dims.get(dim) {
        Some(State::Known(c)) => !(0.0..LARGE).contains(&number(*c)),
        Some(State::Unknown | State::Mask) => true,
        Some(State::Same | State::Data | State::Spoiled) | None => false,
    }
}

/// The warning about an atomic.
pub(super) fn diagnostic(sources: &SourceMap, of: &HFn, f: &Found, masked: bool) -> Diagnostic {
    let at = match f.state {
        State::Known(c) => format!(": their position is {}", number(c)),
        State::Same | State::Data | State::Mask | State::Spoiled | State::Unknown => String::new(),
    };
    let message = format!("padding lanes take part in this `{}`{at}", f.what);
    let d = warning(codes::PADDING, f.value.span, message, "computed from padding");
    let Some(load) = f.load() else { return d };
    let d = d.label(load.span, "padded where the mask is false or the view ends");
    let text = sources.text(f.place.span);
    match (mask_of(sources, of, f, load, f.place.span), text.strip_suffix(')')) {
        (Some(mask), Some(open)) if !masked && !text.contains('\n') => {
            let open = open.trim_end_matches([',', ' ']);
            d.fix("leave them out with a mask", f.place.span, format!("{open}, mask = {mask})"))
        }
        (Some(mask), _) if !mask.contains('\n') => d.note(format!("`{mask}` in its mask leaves them out")),
        (_, _) => d.note(
            "a mask of the atomic leaves them out: the mask of the load, or `x.inside(at, shape)` of a view",
        ),
    }
}
