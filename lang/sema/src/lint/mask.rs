//! W0501 and W0502: a load or store through pointers whose lanes may be past the end although the grid or the loop
//! shows that they do.
//!
//! A dimension of a tile of pointers is *open* when its lanes are `arange` plus a multiple of the number of a program
//! whose axis of the grid is rounded up by `cdiv` from a run-time parameter, or plus the variable of a loop that steps
//! up to a run-time parameter or extent. The last block of such a dimension has lanes past the end.
//!
//! - W0501: an open dimension that the mask does not compare while it compares another one, or no mask at all.
//! - W0502: lanes that are compared by `<=` with the parameter that `cdiv` rounds up.
//!
//! What runs only under a condition that is decided at run time or by the launch is left alone, because the condition may say that the
//! block is a full one; so are workspaces, whose size the kernel chooses. Lanes that are wrapped or limited (`%`, `minimum`, `clamp`, `where`) are not open, and a kernel that promises how
//! sizes divide (`%` or `==` in a `require`, `assume`, `multiple_of`) is left alone.

use std::collections::{BTreeMap, BTreeSet};

use tk_ops::{ControlOp, CreateOp, ElementwiseOp, MemoryOp, Op};
use tk_syntax::{Span, codes};

use super::{Cx, Values, each, each_in, warning};
use crate::hir::{CKind, FnKind, HArg, HExpr, HFn, HIndex, HKind, HPat, HStmt, HStmtKind, Hir, LocalId};
use crate::types::{Elem, Shape, Ty};

pub(super) fn function<'a>(cx: &mut Cx<'a>, f: &'a HFn) {
    if f.kind != FnKind::Kernel || promises(f) {
        return;
    }
    let mut accesses = vec![];
    each(&f.body, &mut |_| {}, &mut |e| accesses.extend(access(e)));
    if accesses.is_empty() {
        return;
    }
    let facts = Facts::of(f);
    let guards = guards(cx.hir, f);
    let mut seen = BTreeSet::new();
    for (name, ptr, mask) in accesses {
        let guarded = guards.iter().any(|g| g.start <= ptr.span.start && ptr.span.end <= g.end);
        if !guarded && !is_workspace(f, ptr) {
            cover(cx, &facts, name, ptr, mask);
        }
        mask.iter().for_each(|m| strict(cx, &facts, m, &mut seen));
    }
}

/// Returns true if the kernel declares divisibility of sizes.
fn promises(f: &HFn) -> bool {
    let mut found = false;
    let mut look = |e: &HExpr| {
        if let HKind::Builtin(row, args) = &e.kind {
            let elementwise = |op| row.op == Op::Elementwise(op);
            let of_param = |a: &HArg| matches!(a, HArg::Expr(e) if matches!(e.kind, HKind::Local(_)));
            found |= elementwise(ElementwiseOp::Rem)
                || elementwise(ElementwiseOp::Eq) && args.iter().any(of_param);
        }
    };
    f.contract.require.iter().for_each(|r| each_in(&r.cond, &mut |_| {}, &mut look));
    let promise = |op| matches!(op, Op::Control(ControlOp::Assume | ControlOp::MultipleOf));
    each(&f.body, &mut |_| {}, &mut |e| {
        found |= matches!(&e.kind, HKind::Builtin(row, _) if promise(row.op));
    });
    found
}

/// Returns true if a compile-time condition depends on a bool that a launch decides, as `EVEN: bool = n % BK == 0` is.
fn is_of_launch(hir: &Hir, cond: &HExpr) -> bool {
    let literal = |d: &HExpr| matches!(d.kind, HKind::Bool(_));
    let mut found = false;
    each_in(cond, &mut |_| {}, &mut |e| {
        if let HKind::CVar(id) = e.kind {
            let var = hir.cvar(id);
            found |= var.kind == CKind::Bool && !var.default.as_ref().is_some_and(literal);
        }
    });
    found
}

/// Where the program runs only under a condition that is decided when it runs or is launched, such as that its block is
/// a full one: the arms of an `if`, and what follows one that may leave.
fn guards(hir: &Hir, f: &HFn) -> Vec<Span> {
    let mut guards = vec![];
    each(&f.body, &mut |_| {}, &mut |e| {
        if let HKind::If { cond, then, els } = &e.kind
            && (!cond.konst || is_of_launch(hir, cond))
        {
            guards.push(Span { start: cond.span.end, ..e.span });
            let (mut by_stmt, mut by_expr) = (false, false);
            for arm in std::iter::once(then).chain(els) {
                let mut stmt = |s: &HStmt| by_stmt |= matches!(s.kind, HStmtKind::Return(_));
                each(arm, &mut stmt, &mut |e| by_expr |= matches!(e.kind, HKind::Return(_)));
            }
            if by_stmt || by_expr {
                guards.push(Span { start: e.span.end, end: u32::MAX, ..e.span });
            }
        }
    });
    guards
}

/// Returns true if pointers lead into a workspace, whose size the kernel chooses.
fn is_workspace(f: &HFn, ptr: &HExpr) -> bool {
    let mut found = false;
    each_in(ptr, &mut |_| {}, &mut |e| {
        found |= matches!(&e.kind, HKind::Local(id) if f.contract.scratch.iter().any(|s| s.local == *id));
    });
    found
}

/// Name, pointers and mask of a load or store through pointers.
fn access(e: &HExpr) -> Option<(&'static str, &HExpr, Option<&HExpr>)> {
    let HKind::Builtin(row, args) = &e.kind else { return None };
    if !matches!(row.op, Op::Memory(MemoryOp::Load | MemoryOp::Store) | Op::Atomic(_)) {
        return None;
    }
    let HArg::Expr(ptr) = args.first()? else { return None };
    let mask = match row.param("mask").and_then(|i| args.get(i)) {
        Some(HArg::Expr(mask)) => Some(mask),
        Some(HArg::Default | HArg::List(_) | HArg::Shape(_) | HArg::Word(_)) | None => None,
    };
    Some((row.name, ptr, mask))
}

/// The lanes of a dimension.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lane {
    /// The same along the dimension.
    Same,
    /// Different, and not known to be past an end.
    Lanes,
    /// `arange` and what makes a block of it.
    Open,
    /// Not understood, so nothing is reported.
    Unknown,
}

/// Facts about a variable.
struct Known {
    lanes: Option<Vec<Lane>>,
    begins_block: bool,
    is_program: bool,
}

/// Facts about a kernel.
struct Facts<'a> {
    values: Values<'a>,
    /// Facts about variables whose only assignment is their declaration.
    locals: BTreeMap<LocalId, Known>,
    /// Axes of the grid that are rounded up from run-time parameters, and these parameters.
    axes: Vec<bool>,
    rounded: BTreeSet<LocalId>,
    /// Variables of loops that step up to a run-time parameter or extent.
    steps: BTreeSet<LocalId>,
}

impl<'a> Facts<'a> {
    fn of(f: &'a HFn) -> Facts<'a> {
        let mut rounded = BTreeSet::new();
        let mut axes = vec![];
        for g in &f.contract.grid {
            let before = rounded.len();
            each_in(g, &mut |_| {}, &mut |e| rounded.extend(rounded_up(e)));
            axes.push(rounded.len() > before || mentions(g, &rounded) && has_cdiv(g));
        }
        let values = Values::of(f);
        let mut steps = BTreeSet::new();
        let mut of_loop = |s: &'a HStmt| {
            if let HStmtKind::For { var, hi, step, .. } = &s.kind
                && !matches!(step.kind, HKind::Int(1))
                && step.konst
                && is_size(f, &values, hi)
            {
                steps.insert(*var);
            }
        };
        each(&f.body, &mut of_loop, &mut |_| {});
        let mut facts = Facts { values, locals: BTreeMap::new(), axes, rounded, steps };
        // In order, so that what a value mentions is known.
        let mut of_let = |s: &'a HStmt| {
            if let HStmtKind::Let(HPat::Local(id), Some(_)) = &s.kind
                && let Some(e) = facts.values.get(*id)
            {
                let (begins_block, is_program) = (facts.begins_block(e), facts.is_program(e));
                facts.locals.insert(*id, Known { lanes: facts.lanes(e), begins_block, is_program });
            }
        };
        each(&f.body, &mut of_let, &mut |_| {});
        facts
    }

    /// The lanes of each dimension; a scalar has one entry less, and says by `open` whether it begins a block.
    fn lanes(&self, e: &'a HExpr) -> Option<Vec<Lane>> {
        let rank = match &e.ty {
            Ty::Tile { shape: Shape::Dims(d), .. } => d.len(),
            _ => return None,
        };
        Some(match &e.kind {
            HKind::Local(id) => match self.locals.get(id) {
                Some(known) => known.lanes.clone()?,
                None if rank == 0 => vec![],
                None => vec![Lane::Unknown; rank],
            },
            HKind::Cast(x) => self.lanes(x)?,
            HKind::Transpose(x) => self.lanes(x)?.into_iter().rev().collect(),
            HKind::Index(x, items) => self.index(x, items)?,
            HKind::Builtin(row, args) => self.builtin(row.op, args, rank),
            _scalar if rank == 0 => vec![],
            _opaque => vec![Lane::Unknown; rank],
        })
    }

    fn index(&self, x: &'a HExpr, items: &[HIndex]) -> Option<Vec<Lane>> {
        let mut rest = self.lanes(x)?.into_iter();
        let mut lanes = vec![];
        for i in items {
            match i {
                HIndex::New => lanes.push(Lane::Same),
                HIndex::Whole => lanes.push(rest.next()?),
                HIndex::Slice(..) => lanes.push(rest.next().map(|_| Lane::Unknown)?),
                HIndex::At(_) => {
                    rest.next()?;
                }
            }
        }
        lanes.extend(rest);
        Some(lanes)
    }

    fn builtin(&self, op: Op, args: &'a [HArg], rank: usize) -> Vec<Lane> {
        if let Op::Create(CreateOp::Arange) = op {
            return vec![Lane::Lanes];
        }
        let Op::Elementwise(op) = op else { return vec![Lane::Unknown; rank] };
        let operands = args.iter().filter_map(|a| match a {
            HArg::Expr(e) => Some(e),
            HArg::Default | HArg::List(_) | HArg::Shape(_) | HArg::Word(_) => None,
        });
        let moves = matches!(op, ElementwiseOp::Add | ElementwiseOp::Sub | ElementwiseOp::Mul);
        let begins = op == ElementwiseOp::Add && operands.clone().any(|e| self.begins_block(e));
        let mut lanes = vec![Lane::Same; rank];
        for e in operands {
            let of = self.lanes(e).unwrap_or_else(|| vec![Lane::Unknown; rank]);
            for (lane, of) in lanes.iter_mut().zip(of) {
                *lane = match (*lane, of) {
                    (Lane::Unknown, _) | (_, Lane::Unknown) => Lane::Unknown,
                    (Lane::Same, x) | (x, Lane::Same) => x,
                    (Lane::Open, Lane::Open) => Lane::Open,
                    (_, _) => Lane::Lanes,
                };
            }
        }
        for lane in &mut lanes {
            *lane = match *lane {
                Lane::Lanes if begins => Lane::Open,
                Lane::Open if !moves => Lane::Lanes,
                other => other,
            };
        }
        lanes
    }

    /// Returns true if a scalar is where a block begins: a multiple of the number of a program, or a loop variable.
    fn begins_block(&self, e: &'a HExpr) -> bool {
        match &e.kind {
            HKind::Local(id) if self.steps.contains(id) => true,
            HKind::Local(id) => self.locals.get(id).is_some_and(|k| k.begins_block),
            HKind::Builtin(row, args) => match (row.op, args.as_slice()) {
                (Op::Elementwise(ElementwiseOp::Mul), [HArg::Expr(a), HArg::Expr(b)]) => {
                    (b.konst && self.is_program(a)) || (a.konst && self.is_program(b))
                }
                (
                    Op::Elementwise(ElementwiseOp::Add) | Op::Memory(MemoryOp::PtrAdd),
                    [HArg::Expr(a), HArg::Expr(b)],
                ) => self.begins_block(a) || self.begins_block(b),
                _ => false,
            },
            _other => false,
        }
    }

    /// Returns true if this is the number of a program along an axis that is rounded up.
    fn is_program(&self, e: &'a HExpr) -> bool {
        match &e.kind {
            HKind::Local(id) => self.locals.get(id).is_some_and(|k| k.is_program),
            HKind::Builtin(row, args) if row.op == Op::Control(ControlOp::ProgramId) => match args.first() {
                Some(HArg::Expr(HExpr { kind: HKind::Int(axis), .. })) => {
                    usize::try_from(*axis).ok().and_then(|a| self.axes.get(a)) == Some(&true)
                }
                _ => false,
            },
            _other => false,
        }
    }
}

/// Returns true if this is a run-time parameter or an extent, or a variable with such a value.
fn is_size(f: &HFn, values: &Values, e: &HExpr) -> bool {
    let plain = |e: &HExpr| match &e.kind {
        HKind::Extent(..) => true,
        HKind::Local(id) => f.params.iter().any(|p| p.local == *id),
        _other => false,
    };
    plain(e) || matches!(&e.kind, HKind::Local(id) if values.get(*id).is_some_and(plain))
}

fn has_cdiv(e: &HExpr) -> bool {
    let mut found = false;
    each_in(e, &mut |_| {}, &mut |e| {
        found |=
            matches!(&e.kind, HKind::Builtin(row, _) if row.op == Op::Elementwise(ElementwiseOp::CeilDiv));
    });
    found
}

fn mentions(e: &HExpr, locals: &BTreeSet<LocalId>) -> bool {
    let mut found = false;
    each_in(e, &mut |_| {}, &mut |e| found |= matches!(&e.kind, HKind::Local(id) if locals.contains(id)));
    found
}

/// `n` in `cdiv(n, BLOCK)`.
fn rounded_up(e: &HExpr) -> Option<LocalId> {
    match &e.kind {
        HKind::Builtin(row, args) if row.op == Op::Elementwise(ElementwiseOp::CeilDiv) => {
            match args.first() {
                Some(HArg::Expr(HExpr { kind: HKind::Local(id), .. })) => Some(*id),
                _ => None,
            }
        }
        _other => None,
    }
}

/// W0501.
fn cover<'a>(cx: &mut Cx<'a>, facts: &Facts<'a>, name: &str, ptr: &'a HExpr, mask: Option<&'a HExpr>) {
    let is_ptr = matches!(ptr.ty, Ty::Tile { elem: Elem::Ptr { .. }, .. });
    let Some(lanes) = facts.lanes(ptr).filter(|_| is_ptr) else { return };
    let open = |d: &usize| lanes.get(*d) == Some(&Lane::Open);
    let Some(mask) = mask else {
        if let Some(d) = (0..lanes.len()).find(open) {
            let what = dimension(d, lanes.len());
            let text = format!("this `{name}` has no mask, but the last block has lanes past the end{what}");
            let d =
                warning(codes::UNMASKED_LANES, ptr.span, text, "some of these pointers may be out of bounds");
            cx.warn(d.note("compare the offsets with the size, as in `mask = offs < n`"));
        }
        return;
    };
    let Some(compared) = facts.lanes(mask) else { return };
    let covers = |d: usize| !matches!(compared.get(d), Some(Lane::Same) | None);
    let missed = (0..lanes.len()).find(|d| open(d) && !covers(*d));
    if let Some(d) = missed
        && (0..lanes.len()).any(covers)
    {
        let what = dimension(d, lanes.len());
        let text = format!("the mask of this `{name}` does not exclude lanes past the end{what}");
        let d = warning(codes::UNMASKED_LANES, mask.span, text, "this does not compare that dimension");
        cx.warn(d.label(ptr.span, "some of these pointers may be out of bounds"));
    }
}

fn dimension(d: usize, rank: usize) -> String {
    if rank == 1 { String::new() } else { format!(" of dimension {d}") }
}

/// W0502.
fn strict<'a>(cx: &mut Cx<'a>, facts: &Facts<'a>, mask: &'a HExpr, seen: &mut BTreeSet<Span>) {
    let mut work = vec![mask];
    while let Some(mask) = work.pop() {
        if !seen.insert(mask.span) {
            continue;
        }
        match &mask.kind {
            HKind::Local(id) => work.extend(facts.values.get(*id)),
            HKind::Index(m, _) | HKind::Transpose(m) => work.push(m),
            HKind::Builtin(row, args) => {
                let [HArg::Expr(a), HArg::Expr(b)] = args.as_slice() else { continue };
                match row.op {
                    Op::Elementwise(ElementwiseOp::And) => work.extend([a, b]),
                    Op::Elementwise(ElementwiseOp::Le) => closed(cx, facts, (a, b), ("<=", "<")),
                    Op::Elementwise(ElementwiseOp::Ge) => closed(cx, facts, (b, a), (">=", ">")),
                    _other => {}
                }
            }
            _other => {}
        }
    }
}

/// A comparison of lanes with an end, the operator as written and the one that was meant.
fn closed<'a>(
    cx: &mut Cx<'a>,
    facts: &Facts<'a>,
    (lanes, end): (&'a HExpr, &'a HExpr),
    (symbol, meant): (&str, &str),
) {
    let HKind::Local(id) = &end.kind else { return };
    let open = facts.lanes(lanes).is_some_and(|l| l.contains(&Lane::Open));
    if !open || !facts.rounded.contains(id) {
        return;
    }
    let (first, second) = if lanes.span < end.span { (lanes.span, end.span) } else { (end.span, lanes.span) };
    let name = cx.sources.text(end.span).to_string();
    let text =
        format!("the lane at `{name}` is not masked, but lanes count from 0: the last one is `{name} - 1`");
    let between = Span { start: first.end, end: second.start, ..first };
    let mut d = warning(codes::MASK_OFF_BY_ONE, first.to(second), text, format!("also true at `{name}`"));
    if let Some(at) = cx.sources.text(between).find(symbol) {
        let start = between.start + at as u32;
        let operator = Span { start, end: start + symbol.len() as u32, ..between };
        d = d.fix("exclude it", operator, meant);
    }
    cx.warn(d);
}
