//! The report of W0504: where padding has an effect, where it comes from, and what fixes it: `other` of the load, or a
//! `where`.

use tk_ops::{DType, DTypeSet, MemoryOp, Op, ReduceOp, Scalar};
use tk_syntax::{Diagnostic, SourceMap, Span, codes};

use super::super::warning;
use super::captured;
use super::cases::{Case, is_mended_by};
use super::meaning::{Scopes, is_same, within};
use super::state::{State, Tile, number};
use super::values::{dtype, extents};
use crate::hir::{CKind, HArg, HExpr, HFn, HKind, HStmtKind, Hir};
use crate::poly::Poly;
use crate::types::{DTerm, Elem, Ty};

/// A reduction in which padding counts.
pub(super) struct Found<'a> {
    /// The reduction.
    pub place: &'a HExpr,
    /// As it is written.
    pub what: &'static str,
    /// The operand of the reduction.
    pub value: &'a HExpr,
    /// The dimension that has the padding.
    pub dim: usize,
    /// The value of the padding.
    pub state: State,
    /// Facts about the operand.
    pub from: Tile<'a>,
    /// The reduction.
    pub op: ReduceOp,
    /// What the operand is to it.
    pub role: Role,
    /// The case in which it counts, where others are without it.
    pub case: Case,
}

/// What the operand that has the padding is to an operation.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Role {
    /// It is reduced.
    Reduced,
    /// It is the position of an atomic, which may have a mask.
    Position { masked: bool },
}

/// A text in a note: a name or two.
const SHOWN: usize = 24;

impl<'a> Found<'a> {
    /// The extent of the dimension that has the padding.
    fn extent(&self) -> Option<&Poly> {
        extents(&self.value.ty)?.get(self.dim)
    }

    /// The masked load that gives the dimension its padding: where it is not known, of several the one that has its extent.
    pub fn load(&self) -> Option<&'a HExpr> {
        if let Some((load, _)) = self.from.source(self.dim) {
            return Some(load);
        }
        let has = |l: &&HExpr| self.extent().is_some_and(|e| extents(&l.ty).is_some_and(|d| d.contains(e)));
        let origin = self.from.origin?;
        let other = self.from.loads.iter().copied().find(has).filter(|_| !has(&origin));
        Some(other.unwrap_or(origin))
    }
}

/// The identity as people write it, so that it checks for elements of this type, be it one or a parameter.
fn identity(op: ReduceOp, hir: &Hir, ty: &Ty) -> String {
    let dtype = dtype(hir, ty);
    match (op, dtype) {
        (ReduceOp::Sum | ReduceOp::XorSum | ReduceOp::Max | ReduceOp::ArgMax, Some(DType::Bool)) => {
            "false".into()
        }
        (ReduceOp::Prod | ReduceOp::Min | ReduceOp::ArgMin, Some(DType::Bool)) => "true".into(),
        (ReduceOp::Max | ReduceOp::ArgMax, _) => {
            finite(hir, ty).map_or("-inf".into(), |t| format!("{t}.min"))
        }
        (ReduceOp::Min | ReduceOp::ArgMin, _) => finite(hir, ty).map_or("inf".into(), |t| format!("{t}.max")),
        (op, _) => of_numbers(op).into(),
    }
}

/// The name of the type of the elements if it has no infinity, or may have none.
fn finite(hir: &Hir, ty: &Ty) -> Option<String> {
    let Ty::Tile { elem: Elem::D(d), .. } = ty else { return None };
    let infinite = match d {
        DTerm::Known(d) => DTypeSet::FLOAT.has(*d),
        DTerm::Param(c) => matches!(&hir.cvar(*c).kind, CKind::DType(set) if set.within(DTypeSet::FLOAT)),
        // The type in which a float is accumulated is a float; an integer's has no name that a program can ask.
        DTerm::Acc(_) | DTerm::Infer(_) => true,
    };
    (!infinite).then(|| crate::show::dterm(hir, *d))
}

fn of_numbers(op: ReduceOp) -> &'static str {
    match op {
        ReduceOp::Sum | ReduceOp::XorSum | ReduceOp::Or | ReduceOp::Custom => "0",
        ReduceOp::Prod => "1",
        ReduceOp::Max | ReduceOp::ArgMax => "-inf",
        ReduceOp::Min | ReduceOp::ArgMin => "inf",
        ReduceOp::Any => "false",
        ReduceOp::All => "true",
    }
}

pub(super) fn diagnostic(hir: &Hir, sources: &SourceMap, of: &HFn, f: &Found) -> Diagnostic {
    if let Role::Position { masked } = f.role {
        return super::atomics::diagnostic(sources, of, f, masked);
    }
    let wanted = identity(f.op, hir, &f.value.ty);
    let now = match f.state {
        State::Known(c) if c.as_bool().is_some() => format!("is {}", number(c) != 0.0),
        State::Known(c) => format!("is {}", number(c)),
        State::Same | State::Data | State::Mask | State::Spoiled | State::Unknown => {
            format!("is no longer {wanted}")
        }
    };
    let message = format!("padding lanes affect this `{}`: their value {now}", f.what);
    let label = if f.from.dims.len() > 1 {
        format!("dimension {} of this has padding that is not {wanted}", f.dim)
    } else {
        format!("its padding is not {wanted}")
    };
    let d = warning(codes::PADDING, f.value.span, message, label);
    advised(hir, sources, of, f, (d, wanted))
}

/// The warning with where the padding comes from, and what makes it neutral.
fn advised(
    hir: &Hir,
    sources: &SourceMap,
    of: &HFn,
    f: &Found,
    (mut d, wanted): (Diagnostic, String),
) -> Diagnostic {
    if let Some((bool, value)) = f.case {
        d = d.note(format!("this is so where `{}` is {value}", hir.cvar(bool).name));
    }
    let Some(origin) = f.load() else { return d };
    d = d.label(origin.span, "padded where the mask is false or the view ends");
    let value = sources.text(f.value.span);
    // The load itself gives the padding its value.
    if f.value.span == origin.span
        && let Some(open) = value.strip_suffix(')').filter(|_| !value.contains("other"))
    {
        let title = format!("give the padding the value {wanted}");
        return d.fix(
            title,
            f.value.span,
            format!("{}, other = {wanted})", open.trim_end_matches([',', ' '])),
        );
    }
    let fits = !f.from.moved
        && f.from.origin.is_some_and(|o| o.span == origin.span)
        && origin_rank(origin) == Some(f.from.dims.len());
    let is_meant = |text: &str| means(of, text, origin, f.value.span);
    let is_line = !value.contains('\n');
    // Where names of the mask mean something else at the value, it is computed before the load.
    let before = |d: Diagnostic, mask: &str, index: &str| {
        let name = captured::name(of)?;
        let used = format!("where({name}{index}, {value}, {wanted})");
        let edits = captured::edits(of, sources, (name, mask), (origin.span, f.value.span), &used)?;
        let title = format!("declare `let {name} = {mask};` before the load, and take `{used}`");
        is_line.then(|| d.fix_all(title, edits))
    };
    if let Some(inside) = inside(sources, origin).filter(|_| fits && is_line && !value.contains('{')) {
        if is_meant(&inside) {
            let title = format!("give the padding the value {wanted}");
            return d.fix(title, f.value.span, format!("where({inside}, {value}, {wanted})"));
        }
        if let Some(d) = before(d.clone(), &inside, "") {
            return d;
        }
    }
    // What is computed from a value of `other` is another value.
    if !f.from.summed && other_of(hir, of, f, origin, &wanted) {
        return d.note(format!(
            "`other = {wanted}` of the load gives its padding a neutral value, and `where(inside, .., {wanted})` that of a result"
        ));
    }
    if let Some(sentence) = accumulated(sources, of, f, origin, &wanted) {
        return d.note(sentence);
    }
    let lanes = lanes(hir, sources, origin, f);
    if let Some((mask, index)) = &lanes
        && !is_meant(mask)
        && let Some(d) = before(d.clone(), mask, index)
    {
        return d;
    }
    let shown = if value.len() <= SHOWN && is_line { value } else { ".." };
    d.note(match lanes.filter(|(mask, _)| is_meant(mask)) {
        Some((mask, index)) => {
            let lanes = if index.is_empty() { mask } else { format!("({mask}){index}") };
            format!("`where({lanes}, {shown}, {wanted})` gives the padding of this value a neutral one")
        }
        None => format!(
            "`where(inside, {shown}, {wanted})` gives the padding of this value a neutral one, with the mask of the load, or `x.inside(at, shape)` of a view, as `inside`"
        ),
    })
}

/// Says of a value that a loop accumulates that what is added is masked, where the mask of the load is known.
fn accumulated(sources: &SourceMap, of: &HFn, f: &Found, load: &HExpr, wanted: &str) -> Option<String> {
    let HKind::Local(id) = &f.value.kind else { return None };
    let mut steps = vec![];
    let Scopes { loops, .. } = Scopes::new(of, &mut |s| {
        if let HStmtKind::Assign { local, value, .. } = &s.kind
            && local == id
        {
            steps.push(value);
        }
    });
    let around = loops.iter().find(|l| within(load.span, **l) && !within(f.place.span, **l))?;
    let step = steps.into_iter().find(|s| within(s.span, *around))?;
    let (name, symbol, added) = match &step.kind {
        HKind::Builtin(row, args) => match args.as_slice() {
            [HArg::Expr(x), HArg::Expr(by)] if x.kind == f.value.kind && ["+", "*"].contains(&row.name) => {
                (sources.text(f.value.span), row.name, sources.text(by.span))
            }
            _ => ("", "", ""),
        },
        _other => ("", "", ""),
    };
    let added = if added.len() > SHOWN || added.contains('\n') { ".." } else { added };
    let fits = origin_rank(load) == Some(f.from.dims.len());
    let mask = inside(sources, load).filter(|m| fits && m.len() <= 2 * SHOWN && !m.contains('\n'));
    let masked = format!("where({}, {added}, {wanted})", mask.as_deref().unwrap_or("inside"));
    Some(match symbol {
        "" => {
            format!("the loop accumulates it: `where(inside, .., {wanted})` masks what is accumulated there")
        }
        _ => format!("in the loop, `{name} {symbol}= {masked}` masks what is accumulated"),
    })
}

/// Whether `other = {wanted}` of a load checks, and makes the padding neutral where it counts.
fn other_of(hir: &Hir, of: &HFn, f: &Found, load: &HExpr, wanted: &str) -> bool {
    let Some(dtype) = dtype(hir, &load.ty) else { return false };
    let is_bool = |ty: &Ty| super::values::dtype(hir, ty) == Some(DType::Bool);
    // An infinity times other data has any sign.
    if f.from.loads.len() > 1 && wanted != "0" {
        return false;
    }
    if is_bool(&load.ty) != is_bool(&f.value.ty) || identity(f.op, hir, &load.ty) != wanted {
        return false;
    }
    let other = match (wanted, dtype.int_range()) {
        ("true" | "1", None) if dtype == DType::Bool => Scalar::bool(true),
        (_, _) if dtype == DType::Bool => Scalar::bool(false),
        ("0", _) => Scalar::zero(dtype),
        ("1", Some(_)) => Scalar::int(dtype, 1),
        ("1", None) => Scalar::float(dtype, 1.0),
        (_, Some((least, most))) => Scalar::int(dtype, if wanted.ends_with(".min") { least } else { most }),
        ("-inf", None) => Scalar::float(dtype, f64::NEG_INFINITY),
        (text, None) if text.ends_with(".min") => Scalar::float(dtype, f64::NEG_INFINITY),
        (_, None) => Scalar::float(dtype, f64::INFINITY),
    };
    is_mended_by(hir, of, f, load, other)
}

/// Whether the text of a mask means at `to` what it means at a load.
fn means(of: &HFn, text: &str, load: &HExpr, to: Span) -> bool {
    let holds = to.file == load.span.file && to.start <= load.span.start && load.span.end <= to.end;
    // In one expression no name changes, but in a block.
    holds || is_same(of, text, load.span, to)
}

/// The text of the bools that are true where a value of the shape of a load is inside of the data, if it means that at `to`.
pub(super) fn mask_of(sources: &SourceMap, of: &HFn, f: &Found, load: &HExpr, to: Span) -> Option<String> {
    let fits = !f.from.moved
        && f.from.origin.is_some_and(|o| o.span == load.span)
        && origin_rank(load) == Some(f.from.dims.len());
    inside(sources, load).filter(|text| fits && means(of, text, load, to) && !sources.text(to).contains('{'))
}

/// The value of padded lanes that a load is given.
pub(super) fn given_other(load: &HExpr) -> Option<&HExpr> {
    let HKind::Builtin(row, args) = &load.kind else { return None };
    match row.param("other").and_then(|i| args.get(i)) {
        Some(HArg::Expr(e)) => Some(e),
        Some(HArg::Default | HArg::List(_) | HArg::Shape(_) | HArg::Word(_)) | None => None,
    }
}

/// The text of the bools that are true where a dimension of a value is inside of the view that was loaded, and the index
/// that gives them the rank of the value.
fn lanes(hir: &Hir, sources: &SourceMap, origin: &HExpr, f: &Found) -> Option<(String, String)> {
    let HKind::Builtin(row, args) = &origin.kind else { return None };
    let (Op::Memory(MemoryOp::ViewLoad), [HArg::Expr(view), HArg::List(at), ..]) = (row.op, args.as_slice())
    else {
        return None;
    };
    let of_load = extents(&origin.ty)?;
    let axis = match f.from.source(f.dim) {
        Some((_, axis)) => axis,
        None => of_load.iter().position(|e| f.extent() == Some(e))?,
    };
    let extent = of_load.get(axis)?;
    let (start, view) = (sources.text(at.get(axis)?.span), sources.text(view.span));
    let names = |t: &str| t.len() <= SHOWN && t.chars().all(|c| c.is_alphanumeric() || c == '_');
    if !names(start) || !names(view) {
        return None;
    }
    let lanes = format!("arange(0, {})", crate::show::poly(hir, extent));
    let lanes = if start == "0" { lanes } else { format!("{start} + {lanes}") };
    let inside = format!("{lanes} < {view}.shape[{axis}]");
    let rank = f.from.dims.len();
    let index: Vec<&str> = (0..rank).map(|d| if d == f.dim { ":" } else { "None" }).collect();
    let index = if rank == 1 { String::new() } else { format!("[{}]", index.join(", ")) };
    Some((inside, index))
}

fn origin_rank(e: &HExpr) -> Option<usize> {
    match &e.ty {
        Ty::Tile { shape, .. } => shape.dims().map(<[_]>::len),
        _other => None,
    }
}

/// The text of the bools that are true inside of the data.
fn inside(sources: &SourceMap, origin: &HExpr) -> Option<String> {
    let HKind::Builtin(row, args) = &origin.kind else { return None };
    match (row.op, args.as_slice()) {
        (Op::Memory(MemoryOp::Load), [_, HArg::Expr(mask), ..]) => Some(sources.text(mask.span).to_string()),
        (Op::Memory(MemoryOp::ViewLoad), [HArg::Expr(view), HArg::List(at), HArg::Shape(_), ..]) => {
            let text = sources.text(origin.span);
            // `at` and `shape` as written: the text in the parentheses up to `other` and the like.
            let (first, last) = (at.first()?, at.last()?);
            let begin =
                sources.text(tk_syntax::Span { start: first.span.start, end: last.span.end, ..first.span });
            let behind = text.get((last.span.end.checked_sub(origin.span.start)?) as usize..)?;
            let shape = behind.split_once('[')?.1.split_once(']')?.0;
            let simple = !shape.contains(['(', '\n']);
            simple.then(|| format!("{}.inside([{begin}], [{shape}])", sources.text(view.span)))
        }
        (_, _) => None,
    }
}
