//! Axis analysis: facts about the elements of a tile along each dimension, from the facts about parameters.
//!
//! Requires a verified kernel. Guarantees facts that hold for every launch for which the facts about the parameters
//! hold. The lattice is that of Triton's AxisInfo: for runs that begin at multiples of their length,
//!
//! - *contiguity*: elements of a run count up by one (by the size of an element, for pointers);
//! - *constancy*: elements of a run are equal;
//! - *divisibility*: the power of two that divides the first element of each run of `contiguity` (bytes, for pointers),
//!   wherever the run is along the other dimensions.
//!
//! Padding counts as if the tile continued. `x[:, None]` of `x = arange(0, 16)` counts up along dimension 0 in a run of
//! 16 whose first element 0 is divisible by anything, and along dimension 1 in runs of 1 that begin with any number.
//! [`flow`] walks the kernel, [`transfer`] has a rule for each operation.

mod bands;
mod flow;
mod transfer;

use tk_ops::{MemoryOp, Op};
use tk_tile::{Def, Func, Id, Inst, InstId, Module, Type, ValueId, walk};

use self::flow::Analysis;
use crate::ir::params::{ArgFacts, element_bytes};

/// The largest power of two that is distinguished.
const MOST: u64 = 1 << 24;

/// The facts along one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dim {
    /// Length of runs that count up by one.
    pub contiguity: u64,
    /// Length of runs of equal elements.
    pub constancy: u64,
    /// The divisor of the first element of each run that counts up.
    pub divisibility: u64,
}

impl Dim {
    const UNKNOWN: Dim = Dim { contiguity: 1, constancy: 1, divisibility: 1 };

    fn meet(self, o: Dim) -> Dim {
        let contiguity = self.contiguity.min(o.contiguity);
        Dim {
            contiguity,
            constancy: self.constancy.min(o.constancy),
            divisibility: self.divides_each(contiguity).min(o.divides_each(contiguity)),
        }
    }

    /// The divisor of the elements at multiples of `length`: runs that count up may be longer, and then some of these
    /// elements are inside of one. A lower bound for pointers, which count up by more than one.
    fn divides_each(self, length: u64) -> u64 {
        if self.contiguity > length { self.divisibility.min(length) } else { self.divisibility }
    }

    /// The divisor of every element.
    fn divides_all(self) -> u64 {
        if self.contiguity > 1 { 1 } else { self.divisibility }
    }
}

/// The facts about a tile; about a scalar, one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileFacts {
    /// One for each dimension, one for a scalar.
    pub dims: Vec<Dim>,
    /// The value of every element, if it is known.
    pub value: Option<i64>,
    /// No element is negative.
    pub non_negative: bool,
}

impl TileFacts {
    fn unknown(rank: usize) -> TileFacts {
        TileFacts { dims: vec![Dim::UNKNOWN; rank.max(1)], value: None, non_negative: false }
    }

    fn scalar(divisible: u64, value: Option<i64>) -> TileFacts {
        let dim = Dim { divisibility: divisible.clamp(1, MOST), ..Dim::UNKNOWN };
        TileFacts { dims: vec![dim], value, non_negative: value.is_some_and(|v| v >= 0) }
    }

    fn constant(value: i64) -> TileFacts {
        TileFacts::scalar(power(value), Some(value))
    }

    /// The same, known not to be negative.
    fn non_negative(self) -> TileFacts {
        TileFacts { non_negative: true, ..self }
    }

    /// The divisor of the value of a scalar.
    pub fn divisibility(&self) -> u64 {
        self.dims.first().map_or(1, |d| d.divisibility)
    }

    /// The facts along a dimension.
    pub fn dim(&self, d: usize) -> Dim {
        self.dims.get(d).copied().unwrap_or(Dim::UNKNOWN)
    }

    /// This scalar at each position of a tile of this shape.
    fn splat(&self, shape: &[u32]) -> TileFacts {
        let dim = |n: &u32| Dim {
            contiguity: 1,
            constancy: u64::from(n.next_power_of_two()),
            divisibility: self.divisibility(),
        };
        TileFacts { dims: shape.iter().map(dim).collect(), ..self.clone() }
    }
}

/// The facts about a view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewFacts {
    /// The divisor of the address of its first element.
    pub base: u64,
    /// The divisor of each extent.
    pub extents: Vec<u64>,
    /// The divisor of each stride, in elements, and whether it is 1.
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

/// The facts about a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueFacts {
    /// About a tile or scalar.
    Tile(TileFacts),
    /// About a view.
    View(ViewFacts),
}

impl ValueFacts {
    fn meet(&self, o: &ValueFacts) -> ValueFacts {
        match (self, o) {
            (ValueFacts::Tile(a), ValueFacts::Tile(b)) => ValueFacts::Tile(TileFacts {
                dims: a.dims.iter().zip(&b.dims).map(|(a, b)| a.meet(*b)).collect(),
                value: a.value.filter(|v| b.value == Some(*v)),
                non_negative: a.non_negative && b.non_negative,
            }),
            (ValueFacts::View(a), ValueFacts::View(b)) => ValueFacts::View(a.meet(b)),
            (ValueFacts::Tile(_), ValueFacts::View(_)) | (ValueFacts::View(_), ValueFacts::Tile(_)) => {
                self.clone()
            }
        }
    }
}

/// The power of two that divides a number.
fn power(v: i64) -> u64 {
    if v == 0 { MOST } else { (1u64 << v.trailing_zeros().min(24)).min(MOST) }
}

/// Facts about every value of a kernel.
#[derive(Clone, Debug)]
pub struct AxisInfo {
    known: Vec<Option<ValueFacts>>,
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

    fn set(&mut self, v: ValueId, known: ValueFacts) -> bool {
        let Some(slot) = self.known.get_mut(v.index()) else { return false };
        let changed = slot.as_ref() != Some(&known);
        *slot = Some(known);
        changed
    }

    /// The facts about operands of accesses to tiles in memory, in program order, as far as these count: all on which code
    /// depends if one access of a lane moves at most `bytes` bytes. For matrices that are parts of views this includes those
    /// views, which TMA may be given.
    pub fn of_accesses(
        &self,
        module: &Module,
        func: &Func,
        bytes: u32,
        counts: impl Fn(InstId) -> bool,
    ) -> Vec<ValueFacts> {
        let is_tile = |v: &ValueId| match module.types.get(func.ty(*v)) {
            Type::Tile { shape, .. } => !shape.is_empty(),
            Type::View { .. } => false,
        };
        let insts = walk::insts(func).into_iter().filter(|i| counts(*i)).map(|i| &func.insts[i]);
        let accesses = insts.filter(|i| {
            // Accesses element by element are never wide.
            let scattered = matches!(i.op, Op::Memory(MemoryOp::ViewGather | MemoryOp::ViewScatter));
            (!scattered || self.gathers_neighbours(module, func, i))
                && matches!(i.op, Op::Memory(_) | Op::Atomic(_))
                && i.operands.iter().chain(&i.results).any(is_tile)
        });
        let most = |elem| (u64::from(bytes) / element_bytes(elem)).max(1);
        let capped = |v: &ValueId| {
            let mut known = self.known.get(v.index()).cloned().flatten()?;
            if let (ValueFacts::View(view), Type::View { elem, .. }) =
                (&mut known, module.types.get(func.ty(*v)))
            {
                let most = most(elem);
                view.extents.iter_mut().for_each(|e| *e = (*e).min(most));
                view.strides.iter_mut().for_each(|s| s.0 = s.0.min(most));
            }
            Some(known)
        };
        let tensor = |v: &ValueId| {
            let Type::View { rank: 2, .. } = module.types.get(func.ty(*v)) else { return None };
            let mut root = *v;
            while let Def::Inst(id, _) = func.values[root].def {
                let inst = &func.insts[id];
                if !matches!(inst.op, Op::Memory(MemoryOp::ViewSlice | MemoryOp::ViewPermute)) {
                    break;
                }
                root = *inst.operands.first()?;
            }
            // The start and the length of a slice are facts about the slice.
            match capped(&root).filter(|_| root != *v)? {
                ValueFacts::View(f) => Some(ValueFacts::View(ViewFacts { base: 1, extents: vec![], ..f })),
                ValueFacts::Tile(_) => None,
            }
        };
        // Of a position along a line only the alignment of an access counts, and none of one along an axis whose stride is
        // aligned itself.
        let position = |i: &Inst, n: usize| {
            let (view, at) = (*i.operands.first()?, *i.operands.get(n)?);
            let viewed = matches!(i.op, Op::Memory(MemoryOp::ViewLoad | MemoryOp::ViewStore));
            let (stride, one) = *self.view(view).filter(|_| viewed)?.strides.get(n.checked_sub(1)?)?;
            let Type::View { elem, .. } = module.types.get(func.ty(view)) else { return None };
            let mut known = self.tile(at);
            let limit = if !one && stride >= most(elem) { 1 } else { most(elem) };
            known.dims.iter_mut().for_each(|d| d.divisibility = d.divisibility.min(limit));
            Some(ValueFacts::Tile(known))
        };
        let facts = |i: &Inst| -> Vec<Option<ValueFacts>> {
            let of = |(n, v): (usize, &ValueId)| [position(i, n).or_else(|| capped(v)), tensor(v)];
            i.operands.iter().enumerate().flat_map(of).collect()
        };
        accesses.flat_map(facts).flatten().collect()
    }

    /// Returns true if a gather or scatter accesses neighbours in memory: positions along an axis with stride 1 count up
    /// along a dimension of the tile.
    pub fn gathers_neighbours(&self, module: &Module, func: &Func, inst: &Inst) -> bool {
        let Some(view) = inst.operands.first() else { return false };
        let strides = self.view(*view).map_or(&[][..], |f| &f.strides);
        inst.operands.iter().skip(1).zip(strides).any(|(at, stride)| {
            let dims = module.types.get(func.ty(*at)).shape().map_or(0, <[u32]>::len);
            stride.1 && (0..dims).any(|d| self.tile(*at).dim(d).contiguity > 1)
        })
    }

    /// The facts about a tile or scalar.
    pub fn tile(&self, v: ValueId) -> TileFacts {
        match self.known.get(v.index()) {
            Some(Some(ValueFacts::Tile(a))) => a.clone(),
            Some(Some(ValueFacts::View(_)) | None) | None => TileFacts::unknown(1),
        }
    }

    /// The facts about a view.
    pub fn view(&self, v: ValueId) -> Option<&ViewFacts> {
        match self.known.get(v.index()) {
            Some(Some(ValueFacts::View(f))) => Some(f),
            Some(Some(ValueFacts::Tile(_)) | None) | None => None,
        }
    }
}

fn parameter(ty: &Type, facts: &mut impl Iterator<Item = ArgFacts>) -> ValueFacts {
    let mut next = || facts.next().unwrap_or_default();
    match ty {
        Type::Tile { .. } => {
            let f = next();
            ValueFacts::Tile(TileFacts::scalar(f.divisible.into(), f.one.then_some(1)))
        }
        Type::View { rank, .. } => {
            let base = next().divisible.into();
            let extents = (0..*rank).map(|_| next().divisible.into()).collect();
            let strides = (0..*rank).map(|_| next()).map(|f| (f.divisible.into(), f.one)).collect();
            ValueFacts::View(ViewFacts { base, extents, strides })
        }
    }
}
