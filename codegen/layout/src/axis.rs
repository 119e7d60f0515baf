//! Owns axis analysis: what is known of the elements of a tile along each dimension, from the facts about parameters.
//!
//! May assume a verified kernel. Guarantees facts that hold for every launch for which the facts about the parameters
//! hold. The lattice is that of Triton's AxisInfo: for runs that begin at multiples of their length,
//!
//! - *contiguity*: elements of a run count up by one (by the size of an element, for pointers);
//! - *constancy*: elements of a run are equal;
//! - *divisibility*: the power of two that divides the first element of each run of `contiguity` (bytes, for pointers).
//!
//! Padding of a tile counts as if the tile went on.

use tk_ops::{ControlOp, CreateOp, ElementwiseOp, MemoryOp, Op, ShapeOp};
use tk_tile::{Attr, BlockId, Elem, Func, Id, Inst, InstId, Module, Type, ValueId};

/// The largest power of two that is told apart.
const MOST: u64 = 1 << 24;

/// What is known of one kernel parameter when it is compiled. A view is a pointer, its extents and its strides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ArgFacts {
    /// A power of two that divides it: an integer's value, a pointer's address in bytes.
    pub divisible: u32,
    /// Whether it is 1.
    pub one: bool,
}

impl Default for ArgFacts {
    fn default() -> Self {
        ArgFacts { divisible: 1, one: false }
    }
}

/// What is known along one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dim {
    /// Length of runs that count up by one.
    pub contiguity: u64,
    /// Length of runs of equal elements.
    pub constancy: u64,
    /// What divides the first element of each run that counts up.
    pub divisibility: u64,
}

impl Dim {
    const UNKNOWN: Dim = Dim { contiguity: 1, constancy: 1, divisibility: 1 };

    fn meet(self, o: Dim) -> Dim {
        Dim {
            contiguity: self.contiguity.min(o.contiguity),
            constancy: self.constancy.min(o.constancy),
            divisibility: self.divisibility.min(o.divisibility),
        }
    }
}

/// What is known of a tile; of a scalar, one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// One for each dimension, one for a scalar.
    pub dims: Vec<Dim>,
    /// The value of every element, if it is known.
    pub value: Option<i64>,
}

impl Axis {
    fn unknown(rank: usize) -> Axis {
        Axis { dims: vec![Dim::UNKNOWN; rank.max(1)], value: None }
    }

    fn scalar(divisible: u64, value: Option<i64>) -> Axis {
        let dim = Dim { divisibility: divisible.clamp(1, MOST), ..Dim::UNKNOWN };
        Axis { dims: vec![dim], value }
    }

    fn constant(value: i64) -> Axis {
        Axis::scalar(power(value), Some(value))
    }

    /// What divides the value of a scalar.
    pub fn divisibility(&self) -> u64 {
        self.dims.first().map_or(1, |d| d.divisibility)
    }

    /// What is known along a dimension.
    pub fn dim(&self, d: usize) -> Dim {
        self.dims.get(d).copied().unwrap_or(Dim::UNKNOWN)
    }

    /// The scalar at each place of a tile of this shape.
    fn splat(&self, shape: &[u32]) -> Axis {
        let dim = |n: &u32| Dim {
            contiguity: 1,
            constancy: u64::from(n.next_power_of_two()),
            divisibility: self.divisibility(),
        };
        Axis { dims: shape.iter().map(dim).collect(), value: self.value }
    }
}

/// What is known of a view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewFacts {
    /// What divides the address of its first element.
    pub base: u64,
    /// What divides each extent.
    pub extents: Vec<u64>,
    /// What divides each stride, in elements, and whether it is 1.
    pub strides: Vec<(u64, bool)>,
}

impl ViewFacts {
    fn unknown(rank: usize) -> ViewFacts {
        ViewFacts { base: 1, extents: vec![1; rank], strides: vec![(1, false); rank] }
    }

    fn meet(&self, o: &ViewFacts) -> ViewFacts {
        ViewFacts {
            base: self.base.min(o.base),
            extents: self.extents.iter().zip(&o.extents).map(|(a, b)| *a.min(b)).collect(),
            strides: self.strides.iter().zip(&o.strides).map(|(a, b)| (a.0.min(b.0), a.1 && b.1)).collect(),
        }
    }
}

/// What is known of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known {
    /// Of a tile or scalar.
    Tile(Axis),
    /// Of a view.
    View(ViewFacts),
}

impl Known {
    fn meet(&self, o: &Known) -> Known {
        match (self, o) {
            (Known::Tile(a), Known::Tile(b)) => Known::Tile(Axis {
                dims: a.dims.iter().zip(&b.dims).map(|(a, b)| a.meet(*b)).collect(),
                value: a.value.filter(|v| b.value == Some(*v)),
            }),
            (Known::View(a), Known::View(b)) => Known::View(a.meet(b)),
            (Known::Tile(_), Known::View(_)) | (Known::View(_), Known::Tile(_)) => self.clone(),
        }
    }
}

/// The power of two that divides a number.
fn power(v: i64) -> u64 {
    if v == 0 { MOST } else { (1u64 << v.trailing_zeros().min(24)).min(MOST) }
}

/// Bytes of an element in memory.
pub fn element_bytes(elem: &Elem) -> u64 {
    match elem {
        Elem::Scalar(d) => d.bytes() as u64,
        Elem::Ptr { .. } => 8,
    }
}

/// Facts about every value of a kernel.
#[derive(Clone, Debug)]
pub struct AxisInfo {
    known: Vec<Option<Known>>,
}

impl AxisInfo {
    /// Analyses a kernel; `facts` are about its flattened parameters.
    pub fn new(module: &Module, func: &Func, facts: &[ArgFacts]) -> AxisInfo {
        let mut info = AxisInfo { known: vec![None; func.values.len()] };
        let mut facts = facts.iter().copied();
        for v in &func.blocks[func.body].args {
            let known = parameter(module.types.get(func.ty(*v)), &mut facts);
            info.set(*v, known);
        }
        Analysis { module, func, info: &mut info }.block(func.body);
        info
    }

    fn set(&mut self, v: ValueId, known: Known) -> bool {
        let Some(slot) = self.known.get_mut(v.index()) else { return false };
        let changed = slot.as_ref() != Some(&known);
        *slot = Some(known);
        changed
    }

    /// What is known of a tile or scalar.
    pub fn tile(&self, v: ValueId) -> Axis {
        match self.known.get(v.index()) {
            Some(Some(Known::Tile(a))) => a.clone(),
            Some(Some(Known::View(_)) | None) | None => Axis::unknown(1),
        }
    }

    /// What is known of a view.
    pub fn view(&self, v: ValueId) -> Option<&ViewFacts> {
        match self.known.get(v.index()) {
            Some(Some(Known::View(f))) => Some(f),
            Some(Some(Known::Tile(_)) | None) | None => None,
        }
    }
}

/// How many flattened parameters a parameter of this type is.
pub fn flattened(ty: &Type) -> usize {
    match ty {
        Type::Tile { .. } => 1,
        Type::View { rank, .. } => 1 + 2 * *rank as usize,
    }
}

fn parameter(ty: &Type, facts: &mut impl Iterator<Item = ArgFacts>) -> Known {
    let mut next = || facts.next().unwrap_or_default();
    match ty {
        Type::Tile { .. } => {
            let f = next();
            Known::Tile(Axis::scalar(f.divisible.into(), f.one.then_some(1)))
        }
        Type::View { rank, .. } => {
            let base = next().divisible.into();
            let extents = (0..*rank).map(|_| next().divisible.into()).collect();
            let strides = (0..*rank).map(|_| next()).map(|f| (f.divisible.into(), f.one)).collect();
            Known::View(ViewFacts { base, extents, strides })
        }
    }
}

struct Analysis<'a> {
    module: &'a Module,
    func: &'a Func,
    info: &'a mut AxisInfo,
}

impl Analysis<'_> {
    fn ty(&self, v: ValueId) -> &Type {
        self.module.types.get(self.func.ty(v))
    }

    fn unknown(&self, v: ValueId) -> Known {
        match self.ty(v) {
            Type::Tile { shape, .. } => Known::Tile(Axis::unknown(shape.len())),
            Type::View { rank, .. } => Known::View(ViewFacts::unknown(*rank as usize)),
        }
    }

    fn known(&self, v: ValueId) -> Known {
        match self.info.known.get(v.index()) {
            Some(Some(k)) => k.clone(),
            Some(None) | None => self.unknown(v),
        }
    }

    fn block(&mut self, block: BlockId) {
        for i in &self.func.blocks[block].insts {
            self.inst(*i);
        }
    }

    fn inst(&mut self, id: InstId) {
        let inst = &self.func.insts[id];
        match inst.op {
            Op::Control(ControlOp::For) => return self.for_loop(inst),
            Op::Control(ControlOp::While) => return self.while_loop(inst),
            Op::Control(ControlOp::If) => {
                inst.blocks.iter().for_each(|b| self.block(*b));
                let arms: Vec<Vec<ValueId>> = inst.blocks.iter().map(|b| self.ends(*b).to_vec()).collect();
                for (n, r) in inst.results.iter().enumerate() {
                    let mut arms = arms.iter().filter_map(|a| a.get(n)).map(|v| self.known(*v));
                    let known = arms.next().map(|first| arms.fold(first, |a, b| a.meet(&b)));
                    let known = known.unwrap_or_else(|| self.unknown(*r));
                    self.info.set(*r, known);
                }
                return;
            }
            Op::Elementwise(_)
            | Op::Create(_)
            | Op::Shape(_)
            | Op::Memory(_)
            | Op::Atomic(_)
            | Op::Reduce(_)
            | Op::Scan(_)
            | Op::Dot(_)
            | Op::Random(_)
            | Op::Control(_)
            | Op::Host(_)
            | Op::Machine(_) => {}
        }
        // Blocks of `map`, `reduce` and `scan` work on single elements, of which nothing is known.
        let first = inst.results.first().copied();
        for r in &inst.results {
            let known = if Some(*r) == first { self.result(inst, *r) } else { None };
            let known = known.unwrap_or_else(|| self.unknown(*r));
            self.info.set(*r, known);
        }
    }

    /// The operands of the terminator of a block.
    fn ends(&self, block: BlockId) -> &[ValueId] {
        tk_tile::rewrite::yielded(self.func, block)
    }

    /// Loops: what is carried is at most what holds before the first trip and behind every other one.
    fn for_loop(&mut self, inst: &Inst) {
        let ([lo, _, step, init @ ..], [body]) = (inst.operands.as_slice(), inst.blocks.as_slice()) else {
            return;
        };
        let args = self.func.blocks[*body].args.clone();
        let Some((iv, carried)) = args.split_first() else { return };
        let d = self.axis(*lo).divisibility().min(self.axis(*step).divisibility());
        self.info.set(*iv, Known::Tile(Axis::scalar(d, None)));
        self.fixpoint(carried, init, *body, *body);
        for (r, v) in inst.results.iter().zip(carried) {
            let known = self.known(*v);
            self.info.set(*r, known);
        }
    }

    fn while_loop(&mut self, inst: &Inst) {
        let [decides, body] = inst.blocks.as_slice() else { return };
        let carried = self.func.blocks[*decides].args.clone();
        // Three rounds as in `fixpoint`, through both blocks.
        for (v, i) in carried.iter().zip(&inst.operands) {
            let known = self.known(*i);
            self.info.set(*v, known);
        }
        loop {
            self.block(*decides);
            let forwarded: Vec<ValueId> = self.ends(*decides).iter().skip(1).copied().collect();
            let args = self.func.blocks[*body].args.clone();
            for (a, v) in args.iter().zip(&forwarded) {
                let known = self.known(*v);
                self.info.set(*a, known);
            }
            self.block(*body);
            let ends = self.ends(*body).to_vec();
            if !self.lower(&carried, &ends) {
                for (r, v) in inst.results.iter().zip(&forwarded) {
                    let known = self.known(*v);
                    self.info.set(*r, known);
                }
                return;
            }
        }
    }

    /// Meets what is carried with what a trip yields; whether anything changed. Facts only become fewer, so this ends.
    fn lower(&mut self, carried: &[ValueId], ends: &[ValueId]) -> bool {
        let mut changed = false;
        for (v, end) in carried.iter().zip(ends) {
            let met = self.known(*v).meet(&self.known(*end));
            changed |= self.info.set(*v, met);
        }
        changed
    }

    fn fixpoint(&mut self, carried: &[ValueId], init: &[ValueId], body: BlockId, ends: BlockId) {
        for (v, i) in carried.iter().zip(init) {
            let known = self.known(*i);
            self.info.set(*v, known);
        }
        loop {
            self.block(body);
            let ends = self.ends(ends).to_vec();
            if !self.lower(carried, &ends) {
                return;
            }
        }
    }

    fn axis(&self, v: ValueId) -> Axis {
        match self.known(v) {
            Known::Tile(a) => a,
            Known::View(_) => Axis::unknown(1),
        }
    }

    /// The facts about the first result; `None` if nothing is known.
    fn result(&self, inst: &Inst, result: ValueId) -> Option<Known> {
        let operand = |i: usize| inst.operands.get(i).copied();
        match inst.op {
            Op::Create(op) => self.created(op, inst, result).map(Known::Tile),
            Op::Elementwise(op) => self.elementwise(op, inst, result).map(Known::Tile),
            Op::Shape(op) => self.shaped(op, inst, result).map(Known::Tile),
            Op::Memory(op) => self.memory(op, inst),
            Op::Control(ControlOp::MultipleOf) => {
                let mut axis = self.axis(operand(0)?);
                let by = power(inst.attrs.int("value")?);
                axis.dims.iter_mut().for_each(|d| d.divisibility = d.divisibility.max(by));
                Some(Known::Tile(axis))
            }
            Op::Control(ControlOp::MaxContiguous) => {
                let mut axis = self.axis(operand(0)?);
                let run = power(inst.attrs.int("value")?);
                if let Some(d) = axis.dims.last_mut() {
                    d.contiguity = d.contiguity.max(run);
                }
                Some(Known::Tile(axis))
            }
            Op::Control(_)
            | Op::Atomic(_)
            | Op::Reduce(_)
            | Op::Scan(_)
            | Op::Dot(_)
            | Op::Random(_)
            | Op::Host(_) => None,
            Op::Machine(_) => None,
        }
    }

    fn created(&self, op: CreateOp, inst: &Inst, result: ValueId) -> Option<Axis> {
        let shape = self.ty(result).shape()?;
        match op {
            CreateOp::Const => {
                let Some(Attr::Scalar(s)) = inst.attrs.get("value") else { return None };
                let value = s.as_int().and_then(|v| i64::try_from(v).ok());
                let scalar = value.map_or_else(|| Axis::scalar(1, None), Axis::constant);
                Some(if shape.is_empty() { scalar } else { scalar.splat(shape) })
            }
            CreateOp::Arange => {
                let start = inst.attrs.int("start").unwrap_or(0);
                let n = u64::from(shape.first()?.next_power_of_two());
                let dim = Dim { contiguity: n, constancy: 1, divisibility: power(start) };
                Some(Axis { dims: vec![dim], value: None })
            }
            CreateOp::Splat => Some(self.axis(*inst.operands.first()?).splat(shape)),
            CreateOp::Table | CreateOp::Undef => None,
        }
    }

    fn shaped(&self, op: ShapeOp, inst: &Inst, result: ValueId) -> Option<Axis> {
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
                Some(Axis { dims: from.iter().zip(to).enumerate().map(dim).collect(), value: axis.value })
            }
            ShapeOp::Permute => {
                let perm = inst.attrs.ints("perm")?;
                let dims = perm.iter().map(|p| usize::try_from(*p).map_or(Dim::UNKNOWN, |p| axis.dim(p)));
                Some(Axis { dims: dims.collect(), value: axis.value })
            }
            ShapeOp::Reshape => {
                // Only dimensions of extent 1 come and go.
                let real = |s: &[u32]| s.iter().copied().filter(|n| *n != 1).collect::<Vec<u32>>();
                if real(from) != real(to) {
                    return None;
                }
                let mut dims = from.iter().zip(&axis.dims).filter(|(n, _)| **n != 1).map(|(_, d)| *d);
                let divisibility = axis.dims.iter().map(|d| d.divisibility).min().unwrap_or(1);
                let unit = Dim { contiguity: 1, constancy: 1, divisibility };
                let dims =
                    to.iter().map(|n| if *n == 1 { unit } else { dims.next().unwrap_or(unit) }).collect();
                Some(Axis { dims, value: axis.value })
            }
            ShapeOp::Flip
            | ShapeOp::Slice
            | ShapeOp::Join
            | ShapeOp::Split
            | ShapeOp::Cat
            | ShapeOp::Interleave => None,
        }
    }

    fn elementwise(&self, op: ElementwiseOp, inst: &Inst, result: ValueId) -> Option<Axis> {
        let rank = self.ty(result).shape()?.len();
        let args: Vec<Axis> = inst.operands.iter().map(|v| self.axis(*v)).collect();
        let constancy = |d: usize| args.iter().map(|a| a.dim(d).constancy).min().unwrap_or(1);
        let plain = || Axis {
            dims: (0..rank.max(1)).map(|d| Dim { constancy: constancy(d), ..Dim::UNKNOWN }).collect(),
            value: None,
        };
        let is_int = |v: &ValueId| self.ty(*v).dtype().is_some_and(|d| d.is_int());
        if !inst.operands.iter().all(is_int) && op != ElementwiseOp::Select && op != ElementwiseOp::And {
            return Some(plain());
        }
        let dims = |f: &dyn Fn(Dim, Dim) -> Dim| -> Option<Axis> {
            let [a, b] = args.as_slice() else { return None };
            Some(Axis { dims: (0..rank.max(1)).map(|d| f(a.dim(d), b.dim(d))).collect(), value: None })
        };
        let values = |f: fn(i64, i64) -> Option<i64>| match args.as_slice() {
            [a, b] => a.value.zip(b.value).and_then(|(a, b)| f(a, b)),
            _ => None,
        };
        let folded = |axis: Option<Axis>, value: Option<i64>| axis.map(|a| Axis { value, ..a });
        match op {
            ElementwiseOp::Add => folded(dims(&add), values(i64::checked_add)),
            ElementwiseOp::Sub => folded(dims(&sub), values(i64::checked_sub)),
            ElementwiseOp::Mul => {
                let one = |i: usize| args.get(i).and_then(|a| a.value) == Some(1);
                if one(1) {
                    args.first().cloned()
                } else if one(0) {
                    args.get(1).cloned()
                } else {
                    folded(dims(&mul), values(i64::checked_mul))
                }
            }
            ElementwiseOp::Rem => dims(&rem),
            ElementwiseOp::Shl => {
                let by = args.get(1).and_then(|a| a.value).filter(|v| (0..24).contains(v))?;
                dims(&|a, _| Dim {
                    contiguity: 1,
                    constancy: a.constancy,
                    divisibility: (first(a) << by).min(MOST),
                })
            }
            ElementwiseOp::Lt | ElementwiseOp::Ge => dims(&|a, b| compare(a, b)),
            ElementwiseOp::Gt | ElementwiseOp::Le => dims(&|a, b| compare(b, a)),
            ElementwiseOp::Cast => {
                let wide = self.ty(result).dtype().is_some_and(|d| d.is_int() && d.bits() >= 32);
                if wide { args.first().cloned() } else { Some(plain()) }
            }
            ElementwiseOp::Maximum | ElementwiseOp::Minimum => dims(&|a, b| Dim {
                contiguity: 1,
                constancy: a.constancy.min(b.constancy),
                divisibility: first(a).min(first(b)),
            }),
            _ => Some(plain()),
        }
    }

    fn memory(&self, op: MemoryOp, inst: &Inst) -> Option<Known> {
        let operand = |i: usize| inst.operands.get(i).copied();
        let view = || match self.known(operand(0)?) {
            Known::View(f) => Some(f),
            Known::Tile(_) => None,
        };
        match op {
            MemoryOp::PtrAdd => {
                let (p, at) = (operand(0)?, operand(1)?);
                let Type::Tile { elem: Elem::Ptr { pointee, .. }, shape } = self.ty(p) else { return None };
                let size = element_bytes(pointee);
                let (p, at) = (self.axis(p), self.axis(at));
                let dim = |d: usize| pointer(p.dim(d), at.dim(d), size);
                Some(Known::Tile(Axis { dims: (0..shape.len().max(1)).map(dim).collect(), value: None }))
            }
            MemoryOp::View => {
                let Type::View { rank, .. } = self.ty(*inst.results.first()?) else { return None };
                let rank = *rank as usize;
                let base = self.axis(operand(0)?).divisibility();
                let extents = (1..=rank).filter_map(operand).map(|v| self.axis(v).divisibility()).collect();
                let strides = (1 + rank..=2 * rank).filter_map(operand).map(|v| self.axis(v));
                let strides = strides.map(|a| (a.divisibility(), a.value == Some(1))).collect();
                Some(Known::View(ViewFacts { base, extents, strides }))
            }
            MemoryOp::ViewShape | MemoryOp::ViewStride => {
                let (view, axis) = (view()?, usize::try_from(inst.attrs.int("axis")?).ok()?);
                Some(Known::Tile(if op == MemoryOp::ViewShape {
                    Axis::scalar(*view.extents.get(axis)?, None)
                } else {
                    let (d, one) = *view.strides.get(axis)?;
                    Axis::scalar(d, one.then_some(1))
                }))
            }
            MemoryOp::ViewPtr => Some(Known::Tile(Axis::scalar(view()?.base, None))),
            MemoryOp::ViewSlice => self.sliced(inst, &view()?).map(Known::View),
            MemoryOp::ViewPermute => {
                let (view, perm) = (view()?, inst.attrs.ints("perm")?);
                let perm: Vec<usize> = perm.iter().filter_map(|p| usize::try_from(*p).ok()).collect();
                Some(Known::View(ViewFacts {
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

    fn sliced(&self, inst: &Inst, view: &ViewFacts) -> Option<ViewFacts> {
        let elem = match self.ty(*inst.operands.first()?) {
            Type::View { elem, .. } => element_bytes(elem),
            Type::Tile { .. } => return None,
        };
        let mut rest = inst.operands.iter().skip(1).map(|v| self.axis(*v));
        let mut out = ViewFacts { base: view.base, extents: vec![], strides: vec![] };
        let start = |out: &mut ViewFacts, at: &Axis, stride: u64| {
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

/// What divides every element of a run, the first or not.
fn first(d: Dim) -> u64 {
    if d.contiguity > 1 { 1 } else { d.divisibility }
}

fn add(a: Dim, b: Dim) -> Dim {
    Dim {
        contiguity: a.contiguity.min(b.constancy).max(a.constancy.min(b.contiguity)),
        constancy: a.constancy.min(b.constancy),
        divisibility: run(a, b),
    }
}

fn sub(a: Dim, b: Dim) -> Dim {
    Dim {
        contiguity: a.contiguity.min(b.constancy),
        constancy: a.constancy.min(b.constancy),
        divisibility: run(a, b),
    }
}

/// What divides the first element of each run of a sum: runs may become shorter, and then begin inside of longer ones,
/// at multiples of their length.
fn run(a: Dim, b: Dim) -> u64 {
    let contiguity = a.contiguity.min(b.constancy).max(a.constancy.min(b.contiguity));
    inside(a, contiguity).min(inside(b, contiguity))
}

/// What divides the elements at multiples of `length` in runs of `d`.
fn inside(d: Dim, length: u64) -> u64 {
    if d.contiguity > length { d.divisibility.min(length) } else { d.divisibility }
}

fn mul(a: Dim, b: Dim) -> Dim {
    Dim {
        contiguity: 1,
        constancy: a.constancy.min(b.constancy),
        divisibility: first(a).saturating_mul(first(b)).min(MOST),
    }
}

fn rem(a: Dim, b: Dim) -> Dim {
    let contiguity = a.contiguity.min(a.divisibility).min(b.divisibility).min(b.constancy);
    Dim {
        contiguity,
        constancy: a.constancy.min(b.constancy),
        divisibility: inside(a, contiguity).min(b.divisibility),
    }
}

/// `a < b` and `a >= b`: where a counts up from a multiple of what divides b, all of a run is on one side.
fn compare(a: Dim, b: Dim) -> Dim {
    let aligned = a.contiguity.min(a.divisibility).min(b.divisibility).min(b.constancy);
    Dim { constancy: a.constancy.min(b.constancy).max(aligned), ..Dim::UNKNOWN }
}

/// A pointer moved by an offset in elements.
fn pointer(p: Dim, at: Dim, size: u64) -> Dim {
    let contiguity = p.contiguity.min(at.constancy).max(p.constancy.min(at.contiguity));
    let moved = inside(at, contiguity).saturating_mul(size).min(MOST);
    Dim {
        contiguity,
        constancy: p.constancy.min(at.constancy),
        divisibility: inside_bytes(p, contiguity, size).min(moved),
    }
}

fn inside_bytes(p: Dim, length: u64, size: u64) -> u64 {
    if p.contiguity > length { p.divisibility.min(length.saturating_mul(size)) } else { p.divisibility }
}
