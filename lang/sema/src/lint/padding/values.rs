//! The effect of operations on padding: builtins, indices, casts.

use tk_ops::table::Scheme;
use tk_ops::{CreateOp, DType, DotOp, ElementwiseOp, MemoryOp, Op, RandomOp, ReduceOp, Scalar, ShapeOp};

use super::eval::Eval;
use super::report::{Found, Role};
use super::state::{Source, State, Tile, elementwise, loads, number};
use super::{Value, is_exact};
use crate::hir::{CKind, HArg, HExpr, HIndex, HKind, Hir};
use crate::types::{DTerm, Elem, Shape, Ty};

impl<'a> Eval<'a> {
    /// Expressions without control flow.
    pub(super) fn value(&mut self, e: &'a HExpr) -> Value<'a> {
        match &e.kind {
            HKind::Int(v) => {
                self.literal(e, |d| if d.is_int() { Scalar::int(d, *v) } else { Scalar::float(d, *v as f64) })
            }
            HKind::Float(v) => self.literal(e, |d| Scalar::float(d, *v)),
            HKind::Bool(v) => Value::Tile(Tile::constant(0, Scalar::bool(*v))),
            HKind::CVar(_)
            | HKind::DTypeFact(..)
            | HKind::Target(_)
            | HKind::Device(_)
            | HKind::Extent(..)
            | HKind::Stride(..)
            | HKind::ShortCircuit { .. } => Value::Tile(Tile::uniform(0)),
            HKind::Cast(x) => match self.expr(x) {
                Value::Tile(t) => match (dtype(self.hir, &x.ty), dtype(self.hir, &e.ty)) {
                    (Some(from), Some(to)) => {
                        let mut t = elementwise(ElementwiseOp::Cast, &[(t, from)], to);
                        t.not_negative |= is_unsigned(self.hir, &e.ty);
                        Value::Tile(t)
                    }
                    (_, _) => Value::Opaque,
                },
                other @ (Value::Parts(_) | Value::Opaque) => other,
            },
            HKind::Index(x, items) => match self.expr(x) {
                Value::Tile(t) => Value::Tile(index(t, items)),
                Value::Parts(_) | Value::Opaque => Value::Opaque,
            },
            HKind::Transpose(x) => match self.expr(x) {
                Value::Tile(mut t) => {
                    t.sources.resize(t.dims.len(), None);
                    t.sources.reverse();
                    t.dims.reverse();
                    Value::Tile(Tile { moved: true, ..t })
                }
                other @ (Value::Parts(_) | Value::Opaque) => other,
            },
            HKind::Builtin(row, args) => match (self.builtin(e, row.op, args), row.scheme) {
                // `softmax` counts padding as the `max` in it does, and is no fold of its own.
                (Value::Tile(_), Scheme::Special) if matches!(row.op, Op::Reduce(ReduceOp::Max)) => {
                    rank(&e.ty).map_or(Value::Opaque, |r| Value::Tile(Tile::unknown(r)))
                }
                // Beside the element its position, of which the padding tells nothing.
                (Value::Tile(t), Scheme::Reduce(..)) if matches!(e.ty, Ty::Tuple(_)) => {
                    let at = Tile::unknown(t.dims.len());
                    Value::Parts(vec![Value::Tile(t), Value::Tile(at)])
                }
                (found, _) => found,
            },
            // Shapes, views, functions, text, and calls of functions that are not known.
            _other => Value::Opaque,
        }
    }

    fn literal(&self, e: &HExpr, make: impl Fn(DType) -> Scalar) -> Value<'a> {
        match dtype(self.hir, &e.ty) {
            Some(d) => Value::Tile(Tile::constant(0, make(d))),
            None => Value::Opaque,
        }
    }

    fn builtin(&mut self, e: &'a HExpr, op: Op, args: &'a [HArg]) -> Value<'a> {
        let values: Vec<Value<'a>> = args.iter().map(|a| self.arg(a)).collect();
        self.loads |= matches!(op, Op::Memory(_));
        let tile = |i: usize| match values.get(i) {
            Some(Value::Tile(t)) => Some(t.clone()),
            Some(Value::Parts(_) | Value::Opaque) | None => None,
        };
        let found = match op {
            Op::Elementwise(op) => self.elementwise(op, e, args, &values),
            Op::Create(CreateOp::Arange) => Some(Tile { linear: true, ..Tile::data(1) }),
            Op::Create(CreateOp::Const | CreateOp::Splat) => self.filled(e, args, &values),
            Op::Create(CreateOp::Table | CreateOp::Undef) => None,
            Op::Memory(MemoryOp::Load) => tile(0).map(|p| {
                let rank = p.dims.len().max(tile(1).map_or(0, |m| m.dims.len()));
                self.load(e, rank, tile(1), &args.get(2), tile(2))
            }),
            Op::Memory(MemoryOp::ViewLoad) => self.view_load(e, &args.get(3), tile(3)),
            Op::Memory(MemoryOp::ViewGather) => self.gather(e, args, tile(2), tile(3)),
            Op::Memory(MemoryOp::ViewInside) => extents(&e.ty).map(|shape| {
                let outside = State::Known(Scalar::bool(false));
                let dims = shape.iter().map(|d| if is_exact(&self.exact, d) { State::Same } else { outside });
                Tile { dims: dims.collect(), ..Tile::uniform(0) }
            }),
            Op::Reduce(op) => tile(0).map(|t| self.reduce(e, op, args, t)),
            Op::Dot(DotOp::Dot) => match (tile(0), tile(1)) {
                (Some(a), Some(b)) => self.dot(e, args, a, b, tile(2)),
                (_, _) => None,
            },
            Op::Random(RandomOp::Rand | RandomOp::Randn | RandomOp::RandInt) => rank(&e.ty).map(Tile::data),
            Op::Atomic(op) => {
                self.atomic(e, op, args, &values);
                rank(&e.ty).map(|r| if r == 0 { Tile::uniform(0) } else { Tile::unknown(r) })
            }
            // A number of the program or the like; a tile that is not followed has unknown padding.
            Op::Control(_) | Op::Random(_) | Op::Host(_) | Op::Target | Op::Dot(_) => {
                rank(&e.ty).map(|r| if r == 0 { Tile::uniform(0) } else { Tile::unknown(r) })
            }
            // Padding stays along its dimension.
            Op::Shape(ShapeOp::Flip) => tile(0).map(|t| Tile { moved: true, linear: false, ..t }),
            Op::Shape(_) | Op::Scan(_) | Op::Memory(_) => rank(&e.ty).map(Tile::unknown),
        };
        found.map_or(Value::Opaque, Value::Tile)
    }

    fn arg(&mut self, a: &'a HArg) -> Value<'a> {
        match a {
            HArg::Expr(e) => self.expr(e),
            HArg::List(es) => {
                es.iter().for_each(|e| {
                    self.expr(e);
                });
                Value::Opaque
            }
            HArg::Default | HArg::Shape(_) | HArg::Word(_) => Value::Opaque,
        }
    }

    fn elementwise(
        &self,
        op: ElementwiseOp,
        e: &HExpr,
        args: &[HArg],
        values: &[Value<'a>],
    ) -> Option<Tile<'a>> {
        if matches!(e.ty, Ty::Tile { elem: Elem::Ptr { .. }, .. }) {
            return pointers(values);
        }
        let mut operands = vec![];
        for (a, v) in args.iter().zip(values).take(op.arity()) {
            let (HArg::Expr(x), Value::Tile(t)) = (a, v) else { return None };
            operands.push((t.clone(), dtype(self.hir, &x.ty)?));
        }
        let squared =
            matches!((op, args), (ElementwiseOp::Mul, [HArg::Expr(a), HArg::Expr(b)]) if same(a, b));
        let mut result = elementwise(op, &operands, dtype(self.hir, &e.ty)?);
        result.not_negative |= squared || is_unsigned(self.hir, &e.ty);
        Some(result)
    }

    /// `zeros` and `full`.
    fn filled(&self, e: &HExpr, args: &[HArg], values: &[Value<'a>]) -> Option<Tile<'a>> {
        let rank = rank(&e.ty)?;
        let d = dtype(self.hir, &e.ty)?;
        match args.get(1) {
            Some(HArg::Expr(x)) if x.ty != Ty::DType => match values.get(1) {
                Some(Value::Tile(Tile { constant: Some(c), .. })) => Some(Tile::constant(rank, *c)),
                _ => Some(Tile::uniform(rank)),
            },
            _ => Some(Tile::constant(rank, Scalar::zero(d))),
        }
    }

    /// The value of masked-off lanes; `None` if it is no constant.
    pub(super) fn other(&self, e: &HExpr, arg: &Option<&'a HArg>, value: Option<Tile<'a>>) -> Option<Scalar> {
        if let Some(tried) = self.trial.as_ref().and_then(|t| t.other(e)) {
            return Some(tried);
        }
        match (arg, value) {
            (None | Some(HArg::Default), _) => dtype(self.hir, &e.ty).map(Scalar::zero),
            (Some(_), Some(t)) => t.constant,
            (Some(_), None) => None,
        }
    }

    fn load(
        &self,
        e: &'a HExpr,
        rank: usize,
        mask: Option<Tile<'a>>,
        other: &Option<&'a HArg>,
        value: Option<Tile<'a>>,
    ) -> Tile<'a> {
        let Some(mask) = mask else { return Tile::data(rank) };
        let padded = self.other(e, other, value).map_or(State::Unknown, State::Known);
        let along = |d: usize| match mask.dims.get(d) {
            None | Some(State::Same) => State::Data,
            Some(_) => padded,
        };
        let sources = (0..rank).map(|d| Some((e, d))).collect();
        Tile {
            dims: (0..rank).map(along).collect(),
            sources,
            origin: Some(e),
            loads: vec![e],
            ..Tile::uniform(0)
        }
    }

    fn view_load(&self, e: &'a HExpr, other: &Option<&'a HArg>, value: Option<Tile<'a>>) -> Option<Tile<'a>> {
        let padded = self.other(e, other, value).map_or(State::Unknown, State::Known);
        let along = |d| if is_exact(&self.exact, d) { State::Data } else { padded };
        let dims: Vec<State> = extents(&e.ty)?.iter().map(along).collect();
        let sources = (0..dims.len()).map(|d| Some((e, d))).collect();
        let not_negative = is_unsigned(self.hir, &e.ty);
        Some(Tile { dims, sources, origin: Some(e), loads: vec![e], not_negative, ..Tile::uniform(0) })
    }

    fn reduce(&mut self, e: &'a HExpr, op: ReduceOp, args: &'a [HArg], t: Tile<'a>) -> Tile<'a> {
        let n = t.dims.len();
        let folded = match &e.ty {
            Ty::Tuple(parts) => parts.first().and_then(rank),
            other => rank(other),
        };
        let axis = match args.get(1) {
            Some(HArg::Expr(HExpr { kind: HKind::Int(a), .. })) => {
                usize::try_from(if *a < 0 { *a + n as i128 } else { *a }).ok()
            }
            Some(HArg::Default) => None,
            _ => return folded.map_or(Tile::uniform(0), Tile::unknown),
        };
        let dims = || t.dims.iter().enumerate();
        dims().filter(|(d, _)| axis.is_none_or(|a| a == *d)).for_each(|(_, s)| self.look(e, *s));
        let worst = dims().filter(|(d, _)| axis.is_none_or(|a| a == *d)).find(|(_, s)| counts(op, **s, &t));
        if let (Some((dim, state)), Some(HArg::Expr(x))) = (worst, args.first()) {
            self.report(Found {
                place: e,
                what: match &e.kind {
                    HKind::Builtin(row, _) => row.name,
                    _other => op.name(),
                },
                value: x,
                dim,
                state: *state,
                from: t.clone(),
                op,
                role: Role::Reduced,
                case: self.case,
            });
        }
        let rest = dims().filter(|(d, _)| axis.is_some_and(|a| a != *d)).map(|(_, s)| match (op, s) {
            (_, State::Same | State::Data | State::Spoiled) => *s,
            (ReduceOp::Max | ReduceOp::Min | ReduceOp::Any | ReduceOp::All, State::Known(_)) => *s,
            (ReduceOp::Sum, State::Known(c)) if number(*c) == 0.0 => *s,
            (_, State::Known(_) | State::Mask | State::Unknown) => State::Unknown,
        });
        let mut dims: Vec<State> = rest.collect();
        let left = (0..n).filter(|d| axis.is_some_and(|a| a != *d));
        let mut sources: Vec<Source> = left.map(|d| t.source(d)).collect();
        if let Some(kept) = folded.filter(|r| *r == n && n > 0) {
            // `keep`: what was folded is one lane.
            dims = match axis {
                Some(a) => {
                    dims.insert(a.min(dims.len()), State::Same);
                    sources.insert(a.min(sources.len()), None);
                    dims
                }
                None => vec![State::Same; kept],
            };
        }
        let keeps = matches!(op, ReduceOp::Sum | ReduceOp::Prod | ReduceOp::Max | ReduceOp::Min);
        let summed = t.summed || matches!(op, ReduceOp::Sum | ReduceOp::Prod);
        let not_negative = keeps && t.not_negative;
        Tile { dims, sources, constant: None, not_negative, moved: true, summed, ..t }
    }

    fn dot(
        &mut self,
        e: &'a HExpr,
        args: &'a [HArg],
        a: Tile<'a>,
        b: Tile<'a>,
        acc: Option<Tile<'a>>,
    ) -> Option<Tile<'a>> {
        let ([HArg::Expr(x), HArg::Expr(y), ..], Some(out)) = (args, dtype(self.hir, &e.ty)) else {
            return None;
        };
        let along = |t: &Tile<'a>, d: usize| Tile {
            dims: vec![*t.dims.get(d).unwrap_or(&State::Unknown)],
            sources: vec![t.source(d)],
            ..t.clone()
        };
        // A batch has one dimension more, the first of both.
        let batched = usize::from(a.dims.len() == 3 || b.dims.len() == 3);
        let (inner, over) = (1 + batched, batched);
        let product =
            elementwise(ElementwiseOp::Mul, &[(along(&a, inner), out), (along(&b, over), out)], out);
        product.dims.first().into_iter().for_each(|s| self.look(e, *s));
        if let Some(state) = product.dims.first().filter(|s| counts(ReduceOp::Sum, **s, &product)) {
            // The operand whose own padding is not 0, the first one if both are such.
            let is_cause = |t: &Tile<'a>, d: usize| {
                t.origin.is_some() && t.dims.get(d).is_some_and(|s| counts(ReduceOp::Sum, *s, t))
            };
            let (value, dim, from) = match is_cause(&a, inner) || !is_cause(&b, over) {
                true if a.origin.is_some() => (x, inner, a.clone()),
                true => {
                    let sources = std::iter::repeat_n(b.source(over), inner + 1).collect();
                    (x, inner, Tile { moved: true, sources, ..b.clone() })
                }
                false => (y, over, b.clone()),
            };
            let (state, case) = (*state, self.case);
            let (op, role) = (ReduceOp::Sum, Role::Reduced);
            self.report(Found { place: e, what: "dot", value, dim, state, from, op, role, case });
        }
        let kept = |s: Option<&State>| match s {
            Some(State::Same | State::Data) => State::Data,
            Some(State::Known(c)) if number(*c) == 0.0 => State::Known(Scalar::zero(out)),
            Some(State::Spoiled) => State::Spoiled,
            Some(State::Known(_) | State::Mask | State::Unknown) | None => State::Unknown,
        };
        let first = (batched == 1).then(|| match (a.dims.first(), b.dims.first()) {
            (Some(x), Some(State::Same)) => kept(Some(x)),
            (Some(State::Same), y) => kept(y),
            (_, _) => State::Unknown,
        });
        let rest = [kept(a.dims.get(batched)), kept(b.dims.get(1 + batched))];
        let dims = first.into_iter().chain(rest).collect();
        let outer = (batched == 1).then(|| a.source(0).or(b.source(0)));
        let sources = outer.into_iter().chain([a.source(batched), b.source(1 + batched)]).collect();
        let (origin, loads) = (a.origin.or(b.origin), loads([&a, &b]));
        let product = Tile { dims, sources, origin, loads, moved: true, summed: true, ..Tile::uniform(0) };
        Some(match acc {
            Some(acc) => elementwise(ElementwiseOp::Add, &[(product, out), (acc, out)], out),
            None => product,
        })
    }
}

/// Returns true if padding in this state counts in a reduction.
pub(super) fn counts(op: ReduceOp, s: State, t: &Tile) -> bool {
    let c = match s {
        State::Spoiled => return op != ReduceOp::Custom,
        State::Known(c) => number(c),
        State::Same | State::Data | State::Mask | State::Unknown => return false,
    };
    match op {
        ReduceOp::Sum | ReduceOp::Any | ReduceOp::XorSum | ReduceOp::Or => c != 0.0,
        ReduceOp::Prod | ReduceOp::All => c != 1.0,
        // A large finite number stands for infinity in types and formats that have none.
        ReduceOp::Max | ReduceOp::ArgMax => c > -LARGE && !(t.not_negative && c <= 0.0),
        ReduceOp::Min | ReduceOp::ArgMin => c < LARGE,
        ReduceOp::Custom => false,
    }
}

/// The smallest magnitude of numbers that people write for infinity: -65504 in f16, -1e30, `T.min`.
pub(super) const LARGE: f64 = 1e4;

/// Pointers: along which dimensions they differ.
fn pointers<'a>(values: &[Value<'a>]) -> Option<Tile<'a>> {
    let tiles: Vec<&Tile> = values
        .iter()
        .filter_map(|v| match v {
            Value::Tile(t) => Some(t),
            Value::Parts(_) | Value::Opaque => None,
        })
        .collect();
    let rank = tiles.iter().map(|t| t.dims.len()).max()?;
    // A pointer beside offsets: where those are padding, the sum is.
    let [base, offsets] = tiles.as_slice() else { return Some(Tile::data(rank)) };
    let is_padded = |s: &State| matches!(s, State::Known(_) | State::Spoiled);
    if !base.dims.is_empty() || !offsets.dims.iter().any(is_padded) {
        return Some(Tile::data(rank));
    }
    Some(Tile { constant: None, ..(*offsets).clone() })
}

fn index<'a>(t: Tile<'a>, items: &[HIndex]) -> Tile<'a> {
    let mut rest = t.dims.iter().enumerate().map(|(d, state)| (*state, t.source(d)));
    let mut dims = vec![];
    for i in items {
        match i {
            HIndex::New => dims.push((State::Same, None)),
            HIndex::Whole => dims.extend(rest.next()),
            HIndex::Slice(..) => dims.push((State::Unknown, None)),
            HIndex::At(_) => {}
        }
        if matches!(i, HIndex::Slice(..) | HIndex::At(_)) {
            rest.next();
        }
    }
    let (dims, sources): (Vec<State>, Vec<Source>) = dims.into_iter().chain(rest).unzip();
    Tile { moved: t.moved || dims != t.dims, dims, sources, ..t }
}

/// Returns true if two expressions are one variable.
fn same(a: &HExpr, b: &HExpr) -> bool {
    matches!((&a.kind, &b.kind), (HKind::Local(x), HKind::Local(y)) if x == y)
}

pub(super) fn extents(t: &Ty) -> Option<&[crate::poly::Poly]> {
    match t {
        Ty::Tile { shape: Shape::Dims(d), .. } => Some(d),
        _other => None,
    }
}

fn rank(t: &Ty) -> Option<usize> {
    extents(t).map(<[crate::poly::Poly]>::len)
}

/// The element type; of a generic one a member of its bound that stands for the others.
pub(super) fn dtype(hir: &Hir, t: &Ty) -> Option<DType> {
    let member = |c| match &hir.cvar(c).kind {
        CKind::DType(set) if set.has(DType::F32) => Some(DType::F32),
        CKind::DType(set) => set.iter().next(),
        CKind::Int(_) | CKind::Float(_) | CKind::Bool | CKind::Shape | CKind::Fn(..) | CKind::Err => None,
    };
    match t {
        Ty::Tile { elem: Elem::D(d), .. } => match d {
            DTerm::Known(d) => Some(*d),
            DTerm::Param(c) => member(*c),
            DTerm::Acc(c) => member(*c).map(DType::acc),
            DTerm::Infer(_) => None,
        },
        _other => None,
    }
}

pub(super) fn is_unsigned(hir: &Hir, t: &Ty) -> bool {
    dtype(hir, t).is_some_and(|d| d == DType::Bool || d.is_int() && !d.is_signed())
}
