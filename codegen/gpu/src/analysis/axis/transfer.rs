//! Transfer functions of axis analysis: the facts about a result from the facts about the operands.
//!
//! Requires facts that hold for the operands. Guarantees facts that hold if sums and products of nonnegative numbers do
//! not wrap: checked mode reports a program whose offsets overflow, and elsewhere its behaviour is undefined.

use tk_ops::elementwise::{Arithmetic, IntBinary, MinMax, Order, Shift};
use tk_ops::{ControlOp, CreateOp, ElementwiseOp, Group, MemoryOp, Op, ShapeOp};
use tk_tile::{Attr, Def, ElemType, Inst, Type, ValueId};

use super::flow::Analysis;
use super::{Dim, MOST, TileFacts, ValueFacts, ViewFacts, power};
use crate::ir::op::GpuOp;
use crate::ir::params::element_bytes;

impl Analysis<'_> {
    /// The facts about the first result; `None` if nothing is known.
    pub fn result(&self, inst: &Inst, result: ValueId) -> Option<ValueFacts> {
        let operand = |i: usize| inst.operands.get(i).copied();
        match inst.op {
            Op::Create(op) => self.created(op, inst, result).map(ValueFacts::Tile),
            Op::Elementwise(op) => self.elementwise(op, inst, result).map(ValueFacts::Tile),
            Op::Shape(op) => self.shaped(op, inst, result).map(ValueFacts::Tile),
            Op::Memory(op) => self.memory(op, inst),
            Op::Control(ControlOp::MultipleOf) => {
                let mut axis = self.axis(operand(0)?);
                let by = power(inst.attrs.int("value")?);
                axis.dims.iter_mut().for_each(|d| d.divisibility = d.divisibility.max(by));
                Some(ValueFacts::Tile(axis))
            }
            Op::Control(ControlOp::MaxContiguous) => {
                let mut axis = self.axis(operand(0)?);
                let run = power(inst.attrs.int("value")?);
                if let Some(d) = axis.dims.last_mut() {
                    d.contiguity = d.contiguity.max(run);
                }
                Some(ValueFacts::Tile(axis))
            }
            Op::Control(ControlOp::ProgramId | ControlOp::NumPrograms) => {
                Some(ValueFacts::Tile(TileFacts::scalar(1, None).non_negative()))
            }
            Op::Target if matches!(GpuOp::of(inst), Some(GpuOp::GroupId(_))) => {
                Some(ValueFacts::Tile(TileFacts::scalar(1, None).non_negative()))
            }
            Op::Target if matches!(GpuOp::of(inst), Some(GpuOp::GroupOwn(_))) => {
                let [all, own] = [self.axis(operand(0)?), self.axis(operand(1)?)];
                Some(ValueFacts::Tile(TileFacts {
                    dims: vec![either(all.dim(0), own.dim(0))],
                    value: None,
                    non_negative: all.non_negative && own.non_negative,
                }))
            }
            // The same elements, owned by other lanes.
            Op::Target if matches!(GpuOp::of(inst), Some(GpuOp::Convert(_))) => Some(self.known(operand(0)?)),
            Op::Control(_)
            | Op::Atomic(_)
            | Op::Reduce(_)
            | Op::Scan(_)
            | Op::Dot(_)
            | Op::Random(_)
            | Op::Host(_)
            | Op::Target => None,
        }
    }

    fn created(&self, op: CreateOp, inst: &Inst, result: ValueId) -> Option<TileFacts> {
        let shape = self.ty(result).shape()?;
        match op {
            CreateOp::Const => {
                let Some(Attr::Scalar(s)) = inst.attrs.get("value") else { return None };
                let value = s.as_int().and_then(|v| i64::try_from(v).ok());
                let scalar = value.map_or_else(|| TileFacts::scalar(1, None), TileFacts::constant);
                Some(if shape.is_empty() { scalar } else { scalar.splat(shape) })
            }
            CreateOp::Arange => {
                let start = inst.attrs.int("start").unwrap_or(0);
                let n = u64::from(shape.first()?.next_power_of_two());
                let dim = Dim { contiguity: n, constancy: 1, divisibility: power(start) };
                Some(TileFacts { dims: vec![dim], value: None, non_negative: start >= 0 })
            }
            CreateOp::Splat => Some(self.axis(*inst.operands.first()?).splat(shape)),
            CreateOp::Table | CreateOp::Undef => None,
        }
    }

    fn shaped(&self, op: ShapeOp, inst: &Inst, result: ValueId) -> Option<TileFacts> {
        let x = *inst.operands.first()?;
        let (axis, from, to) = (self.axis(x), self.ty(x).shape()?, self.ty(result).shape()?);
        match op {
            ShapeOp::Broadcast => {
                let dim = |(d, (a, b)): (usize, (&u32, &u32))| {
                    let known = axis.dim(d);
                    if a == b {
                        known
                    } else {
                        Dim { contiguity: 1, constancy: u64::from(b.next_power_of_two()), ..known }
                    }
                };
                Some(TileFacts { dims: from.iter().zip(to).enumerate().map(dim).collect(), ..axis })
            }
            ShapeOp::Permute => {
                let perm = inst.attrs.ints("perm")?;
                let dims = perm.iter().map(|p| usize::try_from(*p).map_or(Dim::UNKNOWN, |p| axis.dim(p)));
                Some(TileFacts { dims: dims.collect(), ..axis })
            }
            ShapeOp::Reshape => {
                // Only dimensions of extent 1 are added or removed.
                let real = |s: &[u32]| s.iter().copied().filter(|n| *n != 1).collect::<Vec<u32>>();
                if real(from) != real(to) {
                    return None;
                }
                let mut dims = from.iter().zip(&axis.dims).filter(|(n, _)| **n != 1).map(|(_, d)| *d);
                let divisibility = axis.dims.iter().map(|d| d.divides_all()).min().unwrap_or(1);
                let unit = Dim { contiguity: 1, constancy: 1, divisibility };
                let dims =
                    to.iter().map(|n| if *n == 1 { unit } else { dims.next().unwrap_or(unit) }).collect();
                Some(TileFacts { dims, ..axis })
            }
            ShapeOp::Flip
            | ShapeOp::Slice
            | ShapeOp::Join
            | ShapeOp::Split
            | ShapeOp::Cat
            | ShapeOp::Interleave => None,
        }
    }

    /// Returns true if no element is negative, by its facts or because its type is unsigned.
    fn is_non_negative(&self, v: ValueId) -> bool {
        self.axis(v).non_negative || self.ty(v).dtype().is_some_and(|d| d.is_int() && !d.is_signed())
    }

    fn elementwise(&self, op: ElementwiseOp, inst: &Inst, result: ValueId) -> Option<TileFacts> {
        let args = Args {
            known: inst.operands.iter().map(|v| self.axis(*v)).collect(),
            non_negative: inst.operands.iter().all(|v| self.is_non_negative(*v)),
            rank: self.ty(result).shape()?.len().max(1),
        };
        let is_int = |v: &ValueId| self.ty(*v).dtype().is_some_and(|d| d.is_int());
        if !inst.operands.iter().all(is_int) {
            return Some(args.same());
        }
        match op.group() {
            Group::Arithmetic(f) => self.arithmetic(f, inst, &args),
            Group::IntBinary(IntBinary::CeilDiv) | Group::Shift(Shift::Shr) => {
                Some(TileFacts { non_negative: args.non_negative, ..args.same() })
            }
            Group::Shift(Shift::Shl) => {
                let by = args.known.get(1).and_then(|a| a.value).filter(|v| (0..24).contains(v))?;
                args.each(&|a, _| Dim {
                    contiguity: 1,
                    constancy: a.constancy,
                    divisibility: (a.divides_all() << by).min(MOST),
                })
            }
            Group::Order(Order::Lt | Order::Ge) => args.each(&compare),
            Group::Order(Order::Gt | Order::Le) => args.each(&|a, b| compare(b, a)),
            Group::Cast(_) => self.cast(inst, &args, result),
            Group::MinMax(f) => {
                let larger = matches!(f, MinMax::Maximum | MinMax::MaxNum);
                let non_negative = larger && inst.operands.iter().any(|v| self.is_non_negative(*v));
                let one = args.each(&either)?;
                Some(TileFacts { non_negative: non_negative || one.non_negative, ..one })
            }
            // One of the limits, or a value between them.
            Group::Clamp(_) => {
                let non_negative = inst.operands.iter().skip(1).all(|v| self.is_non_negative(*v));
                Some(TileFacts { non_negative, ..args.same() })
            }
            Group::Sign(_)
            | Group::Bitwise(_)
            | Group::Complement(_)
            | Group::Equality(_)
            | Group::FloatUnary(_)
            | Group::FloatBinary(_)
            | Group::Fma(_)
            | Group::Rounding(_)
            | Group::Select(_)
            | Group::IntUnary(_)
            | Group::IntBinary(IntBinary::MulHi)
            | Group::BitCount(_)
            | Group::FloatTest(_)
            | Group::Bitcast(_) => Some(args.same()),
        }
    }

    fn arithmetic(&self, f: Arithmetic, inst: &Inst, args: &Args) -> Option<TileFacts> {
        match f {
            Arithmetic::Add => args.folded(&add, i64::checked_add),
            Arithmetic::Sub => {
                let is_left = matches!(inst.operands.as_slice(), [a, b] if self.is_behind_a_band(*a, *b));
                args.folded(&sub, i64::checked_sub).map(|a| TileFacts { non_negative: is_left, ..a })
            }
            Arithmetic::Mul => match args.known.as_slice() {
                [a, b] if b.value == Some(1) => Some(a.clone()),
                [a, b] if a.value == Some(1) => Some(b.clone()),
                _ => args.folded(&mul, i64::checked_mul),
            },
            Arithmetic::Rem => {
                // The sign is that of the left side: a run of negative numbers is broken at a multiple.
                let non_negative = inst.operands.first().is_some_and(|v| self.is_non_negative(*v));
                args.each(&|a, b| rem(a, b, non_negative)).map(|a| TileFacts { non_negative, ..a })
            }
            Arithmetic::Div if args.non_negative => args.each(&compare),
            Arithmetic::Div => Some(args.same()),
        }
    }

    /// A cast to an integer type: it keeps the low bits, in which aligned runs remain runs if there are enough bits.
    fn cast(&self, inst: &Inst, args: &Args, result: ValueId) -> Option<TileFacts> {
        let (x, axis) = (*inst.operands.first()?, args.known.first()?);
        let (from, to) = (self.ty(x).dtype()?, self.ty(result).dtype()?);
        // Divisors and aligned runs are at most 2^24 long.
        if !to.is_int() || to.bits() < 32 {
            return Some(args.same());
        }
        let wider = to.bits() > from.bits() || to.bits() == from.bits() && from.is_signed();
        Some(TileFacts { non_negative: wider && args.non_negative, ..axis.clone() })
    }

    fn memory(&self, op: MemoryOp, inst: &Inst) -> Option<ValueFacts> {
        let operand = |i: usize| inst.operands.get(i).copied();
        let view = || match self.known(operand(0)?) {
            ValueFacts::View(f) => Some(f),
            ValueFacts::Tile(_) => None,
        };
        match op {
            MemoryOp::PtrAdd => {
                let (p, at) = (operand(0)?, operand(1)?);
                let Type::Tile { elem: ElemType::Ptr { pointee, .. }, shape } = self.ty(p) else {
                    return None;
                };
                let size = element_bytes(pointee);
                let (p, at) = (self.axis(p), self.axis(at));
                let dim = |d: usize| pointer(p.dim(d), at.dim(d), size);
                Some(ValueFacts::Tile(TileFacts {
                    dims: (0..shape.len().max(1)).map(dim).collect(),
                    ..TileFacts::unknown(0)
                }))
            }
            MemoryOp::View => {
                let Type::View { rank, .. } = self.ty(*inst.results.first()?) else { return None };
                let rank = *rank as usize;
                let base = self.axis(operand(0)?).divisibility();
                let extents = (1..=rank).filter_map(operand).map(|v| self.axis(v).divisibility()).collect();
                let strides = (1 + rank..=2 * rank).filter_map(operand).map(|v| self.axis(v));
                let strides = strides.map(|a| (a.divisibility(), a.value == Some(1))).collect();
                Some(ValueFacts::View(ViewFacts { base, extents, strides }))
            }
            MemoryOp::ViewShape | MemoryOp::ViewStride => {
                let (view, axis) = (view()?, usize::try_from(inst.attrs.int("axis")?).ok()?);
                Some(ValueFacts::Tile(if op == MemoryOp::ViewShape {
                    let non_negative = self.has_non_negative_extent(operand(0)?, axis);
                    TileFacts { non_negative, ..TileFacts::scalar(*view.extents.get(axis)?, None) }
                } else {
                    let (d, one) = *view.strides.get(axis)?;
                    TileFacts::scalar(d, one.then_some(1))
                }))
            }
            MemoryOp::ViewPtr => Some(ValueFacts::Tile(TileFacts::scalar(view()?.base, None))),
            MemoryOp::ViewSlice => self.sliced(inst, &view()?).map(ValueFacts::View),
            MemoryOp::ViewPermute => {
                let (view, perm) = (view()?, inst.attrs.ints("perm")?);
                let perm: Vec<usize> = perm.iter().filter_map(|p| usize::try_from(*p).ok()).collect();
                Some(ValueFacts::View(ViewFacts {
                    base: view.base,
                    extents: perm.iter().filter_map(|p| view.extents.get(*p).copied()).collect(),
                    strides: perm.iter().filter_map(|p| view.strides.get(*p).copied()).collect(),
                }))
            }
            MemoryOp::Load
            | MemoryOp::Store
            | MemoryOp::ViewLoad
            | MemoryOp::ViewStore
            | MemoryOp::ViewInside
            | MemoryOp::ViewGather
            | MemoryOp::ViewScatter
            | MemoryOp::Prefetch => None,
        }
    }

    /// Returns true if the extent of a view along an axis is known to be nonnegative: launches ensure it for
    /// parameters, and slices are clamped.
    fn has_non_negative_extent(&self, view: ValueId, axis: usize) -> bool {
        let Def::Inst(id, _) = self.func.values[view].def else {
            return self.func.blocks[self.func.body].args.contains(&view);
        };
        let inst = &self.func.insts[id];
        let of = inst.operands.first().copied();
        match inst.op {
            Op::Memory(MemoryOp::View) => {
                inst.operands.get(1 + axis).is_some_and(|v| self.is_non_negative(*v))
            }
            Op::Memory(MemoryOp::ViewSlice) => {
                let codes = inst.attrs.ints("axes").unwrap_or(&[]).iter().enumerate();
                let kept = codes.filter(|(_, code)| **code != 0).nth(axis);
                kept.zip(of).is_some_and(|((n, code), of)| *code != 1 || self.has_non_negative_extent(of, n))
            }
            Op::Memory(MemoryOp::ViewPermute) => {
                let perm = inst.attrs.ints("perm").and_then(|p| usize::try_from(*p.get(axis)?).ok());
                perm.zip(of).is_some_and(|(n, of)| self.has_non_negative_extent(of, n))
            }
            _ => false,
        }
    }

    fn sliced(&self, inst: &Inst, view: &ViewFacts) -> Option<ViewFacts> {
        let elem = match self.ty(*inst.operands.first()?) {
            Type::View { elem, .. } => element_bytes(elem),
            Type::Tile { .. } => return None,
        };
        let mut rest = inst.operands.iter().skip(1).map(|v| self.axis(*v));
        let mut out = ViewFacts { base: view.base, extents: vec![], strides: vec![] };
        let start = |out: &mut ViewFacts, at: &TileFacts, stride: u64| {
            let moved = at.divisibility().saturating_mul(stride).saturating_mul(elem);
            out.base = out.base.min(power(i64::try_from(moved).unwrap_or(1)));
        };
        for (axis, code) in inst.attrs.ints("axes")?.iter().enumerate() {
            let (extent, stride) = (*view.extents.get(axis)?, *view.strides.get(axis)?);
            match code {
                0 => start(&mut out, &rest.next()?, stride.0),
                1 => {
                    out.extents.push(extent);
                    out.strides.push(stride);
                }
                _ => {
                    let (a, b) = (rest.next()?, rest.next()?);
                    start(&mut out, &a, stride.0);
                    out.extents.push(a.divisibility().min(b.divisibility()).min(extent));
                    out.strides.push(stride);
                }
            }
        }
        Some(out)
    }
}

/// The facts about the operands of an elementwise operation on integers.
struct Args {
    known: Vec<TileFacts>,
    /// No operand has a negative element.
    non_negative: bool,
    /// The rank of the result, at least 1.
    rank: usize,
}

impl Args {
    /// The facts about any function of the elements at one position.
    fn same(&self) -> TileFacts {
        let constancy = |d: usize| self.known.iter().map(|a| a.dim(d).constancy).min().unwrap_or(1);
        let dims = (0..self.rank).map(|d| Dim { constancy: constancy(d), ..Dim::UNKNOWN });
        TileFacts { dims: dims.collect(), value: None, non_negative: false }
    }

    /// Applies a rule for two operands along each dimension.
    fn each(&self, rule: &dyn Fn(Dim, Dim) -> Dim) -> Option<TileFacts> {
        let [a, b] = self.known.as_slice() else { return None };
        let dims = (0..self.rank).map(|d| rule(a.dim(d), b.dim(d))).collect();
        Some(TileFacts { dims, value: None, non_negative: self.non_negative })
    }

    /// Applies the rule along each dimension, and folds the value if both are known. A value that does not fit every
    /// integer type is left out: it may have wrapped.
    fn folded(&self, rule: &dyn Fn(Dim, Dim) -> Dim, fold: fn(i64, i64) -> Option<i64>) -> Option<TileFacts> {
        let [a, b] = self.known.as_slice() else { return None };
        let value = a.value.zip(b.value).and_then(|(a, b)| fold(a, b));
        let value = value.filter(|v| i8::try_from(*v).is_ok_and(|v| v >= 0));
        Some(TileFacts { value, ..self.each(rule)? })
    }
}

/// The facts about a value that is one of the two.
fn either(a: Dim, b: Dim) -> Dim {
    Dim {
        contiguity: 1,
        constancy: a.constancy.min(b.constancy),
        divisibility: a.divides_all().min(b.divides_all()),
    }
}

fn add(a: Dim, b: Dim) -> Dim {
    let contiguity = a.contiguity.min(b.constancy).max(a.constancy.min(b.contiguity));
    Dim {
        contiguity,
        constancy: a.constancy.min(b.constancy),
        divisibility: a.divides_each(contiguity).min(b.divides_each(contiguity)),
    }
}

/// As for a sum, but a run that is subtracted from a constant counts down.
fn sub(a: Dim, b: Dim) -> Dim {
    let contiguity = a.contiguity.min(b.constancy);
    Dim {
        contiguity,
        constancy: a.constancy.min(b.constancy),
        divisibility: a.divides_each(contiguity).min(b.divides_each(contiguity)),
    }
}

fn mul(a: Dim, b: Dim) -> Dim {
    Dim {
        contiguity: 1,
        constancy: a.constancy.min(b.constancy),
        divisibility: a.divides_all().saturating_mul(b.divides_all()).min(MOST),
    }
}

/// `a % b`: where `a` counts up from a multiple of a divisor of `b`, no run has a multiple of `b` inside.
fn rem(a: Dim, b: Dim, is_non_negative: bool) -> Dim {
    let aligned = a.contiguity.min(a.divisibility).min(b.divides_all()).min(b.constancy);
    let contiguity = if is_non_negative { aligned } else { 1 };
    Dim {
        contiguity,
        constancy: a.constancy.min(b.constancy),
        divisibility: a.divides_each(contiguity).min(b.divides_all()),
    }
}

/// `a < b`, `a >= b`, and `a / b` of nonnegative numbers: where `a` counts up from a multiple of a divisor of `b`, all of a
/// run is on one side, or has one quotient.
fn compare(a: Dim, b: Dim) -> Dim {
    let aligned = a.contiguity.min(a.divisibility).min(b.divides_all()).min(b.constancy);
    Dim { constancy: a.constancy.min(b.constancy).max(aligned), ..Dim::UNKNOWN }
}

/// A pointer moved by an offset in elements.
fn pointer(p: Dim, at: Dim, size: u64) -> Dim {
    let contiguity = p.contiguity.min(at.constancy).max(p.constancy.min(at.contiguity));
    let bytes = contiguity.saturating_mul(size);
    let divisibility = if p.contiguity > contiguity { p.divisibility.min(bytes) } else { p.divisibility };
    let moved = at.divides_each(contiguity).saturating_mul(size).min(MOST);
    Dim { contiguity, constancy: p.constancy.min(at.constancy), divisibility: divisibility.min(moved) }
}
