//! Analyses pointers, positions and masks as affine expressions: [`Affine`].
//!
//! A *ramp* is a tile of integers whose element at `(i, j)` is `start + i * dims[0] + j * dims[1]`, where `start` and
//! `dims` are sums of products of scalars ([`Sum`]). A tile of pointers is a pointer plus a ramp of elements; one that
//! a loop advances by the same ramp in each iteration is a ramp that contains the number of the iteration.
//!
//! Requires verified tile IR. Guarantees equality of elements if integers do not overflow: checked mode reports a
//! program whose offsets do, and elsewhere its behaviour is undefined, as in [`crate::analysis::axis`].

use std::collections::{BTreeMap, BTreeSet};

use tk_ops::{ControlOp, CreateOp, DType, ElementwiseOp, MemoryOp, Op, ShapeOp};
use tk_tile::rewrite::{constant, yielded};
use tk_tile::{BlockId, Def, Func, InstId, Module, ValueId, walk};

/// The most products of a sum, and factors of a product: anything longer is not analysed.
const MOST: usize = 16;

/// A sum of products of scalars, each with a coefficient. The empty product is a constant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sum(BTreeMap<Vec<ValueId>, i64>);

impl Sum {
    /// A constant.
    pub fn constant(value: i64) -> Sum {
        Sum::default().plus(&[], value)
    }

    /// A scalar.
    pub fn scalar(v: ValueId) -> Sum {
        Sum::default().plus(&[v], 1)
    }

    fn plus(mut self, product: &[ValueId], factor: i64) -> Sum {
        let slot = self.0.entry(product.to_vec()).or_default();
        *slot = slot.wrapping_add(factor);
        self.0.retain(|_, f| *f != 0);
        self
    }

    /// Its products with their coefficients.
    pub fn products(&self) -> impl Iterator<Item = (&[ValueId], i64)> {
        self.0.iter().map(|(p, f)| (p.as_slice(), *f))
    }

    /// The sum of both, the other one times a coefficient.
    pub fn add(&self, o: &Sum, factor: i64) -> Option<Sum> {
        let mut sum = self.clone();
        for (p, f) in o.products() {
            sum = sum.plus(p, f.checked_mul(factor)?);
        }
        (sum.0.len() <= MOST).then_some(sum)
    }

    /// The product of both.
    pub fn mul(&self, o: &Sum) -> Option<Sum> {
        let mut sum = Sum::default();
        for (a, f) in self.products() {
            for (b, g) in o.products() {
                let mut product = [a, b].concat();
                product.sort_unstable();
                sum = sum.plus(&product, f.checked_mul(g)?);
                if product.len() > MOST || sum.0.len() > MOST {
                    return None;
                }
            }
        }
        Some(sum)
    }

    /// Returns true if it is 0.
    pub fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    /// Its value, if it is a constant.
    pub fn value(&self) -> Option<i64> {
        match self.products().collect::<Vec<_>>()[..] {
            [] => Some(0),
            [([], f)] => Some(f),
            _ => None,
        }
    }

    /// The quotient by a number that divides every coefficient.
    fn divided(&self, by: i64) -> Option<Sum> {
        let mut sum = Sum::default();
        for (p, f) in self.products() {
            sum = sum.plus(p, f.checked_rem(by).filter(|r| *r == 0).map(|_| f / by)?);
        }
        Some(sum)
    }
}

/// A tile of integers; without dimensions for a scalar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ramp {
    /// The first element.
    pub start: Sum,
    /// The difference of adjacent elements along each dimension.
    pub dims: Vec<Sum>,
}

impl Ramp {
    fn uniform(start: Sum, rank: usize) -> Ramp {
        Ramp { start, dims: vec![Sum::default(); rank] }
    }

    fn add(&self, o: &Ramp, factor: i64) -> Option<Ramp> {
        let dims = self.dims.iter().zip(&o.dims).map(|(a, b)| a.add(b, factor));
        Some(Ramp { start: self.start.add(&o.start, factor)?, dims: dims.collect::<Option<_>>()? })
    }

    fn is_uniform(&self) -> bool {
        self.dims.iter().all(Sum::is_zero)
    }

    fn scaled(&self, by: &Sum) -> Option<Ramp> {
        let dims = self.dims.iter().map(|d| d.mul(by)).collect::<Option<_>>()?;
        Some(Ramp { start: self.start.mul(by)?, dims })
    }
}

/// A condition on the elements of a tile: `start` plus the index along this dimension is below 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Below {
    /// The dimension.
    pub dim: usize,
    /// The position of the first element less the bound.
    pub start: Sum,
}

/// The affine expressions of values of a kernel.
pub struct Affine<'a> {
    module: &'a Module,
    func: &'a Func,
    owner: BTreeMap<BlockId, InstId>,
}

impl<'a> Affine<'a> {
    /// Analyses a kernel.
    pub fn new(module: &'a Module, func: &'a Func) -> Affine<'a> {
        let mut owner = BTreeMap::new();
        for i in walk::insts(func) {
            owner.extend(func.insts[i].blocks.iter().map(|b| (*b, i)));
        }
        Affine { module, func, owner }
    }

    fn shape(&self, v: ValueId) -> &[u32] {
        self.module.types.get(self.func.ty(v)).shape().unwrap_or(&[])
    }

    fn dtype(&self, v: ValueId) -> Option<DType> {
        self.module.types.get(self.func.ty(v)).dtype()
    }

    fn is_int(&self, v: ValueId) -> bool {
        self.dtype(v).is_some_and(|d| d.is_int() && d.is_signed() && d.bits() >= 32)
    }

    fn def(&self, v: ValueId) -> Option<&'a tk_tile::Inst> {
        match self.func.values[v].def {
            Def::Inst(id, _) => Some(&self.func.insts[id]),
            Def::Arg(..) => None,
        }
    }

    /// The expression of a scalar.
    pub fn scalar(&self, v: ValueId) -> Option<Sum> {
        if !self.is_int(v) || !self.shape(v).is_empty() {
            return None;
        }
        let own = || Some(Sum::scalar(v));
        if let Some(value) = constant(self.func, v).and_then(|s| s.as_int()) {
            return i64::try_from(value).ok().map(Sum::constant);
        }
        let Some(inst) = self.def(v) else { return own() };
        let operand = |i: usize| inst.operands.get(i).and_then(|o| self.scalar(*o));
        let found = match inst.op {
            Op::Elementwise(ElementwiseOp::Add) => operand(0)?.add(&operand(1)?, 1),
            Op::Elementwise(ElementwiseOp::Sub) => operand(0)?.add(&operand(1)?, -1),
            Op::Elementwise(ElementwiseOp::Mul) => operand(0)?.mul(&operand(1)?),
            Op::Elementwise(ElementwiseOp::Cast) if self.widens(inst) => operand(0),
            Op::Control(ControlOp::MultipleOf | ControlOp::MaxContiguous) => operand(0),
            _ => None,
        };
        found.filter(|f| !self.outgrows(f, v)).or_else(own)
    }

    /// Returns true if a 64-bit number is computed from numbers of fewer bits, so that it may not fit these.
    fn outgrows(&self, sum: &Sum, v: ValueId) -> bool {
        let bits = |v: ValueId| self.dtype(v).map_or(0, |d| d.bits());
        let computed = self.def(v).is_some_and(|i| i.op != Op::Elementwise(ElementwiseOp::Cast));
        let narrow = sum.products().any(|(p, _)| p.iter().any(|s| bits(*s) < bits(v)));
        computed && narrow
    }

    fn widens(&self, inst: &tk_tile::Inst) -> bool {
        let bits = |v: Option<&ValueId>| v.and_then(|v| self.dtype(*v)).map_or(0, |d| d.bits());
        inst.operands.first().is_some_and(|v| self.is_int(*v))
            && bits(inst.operands.first()) <= bits(inst.results.first())
    }

    /// The expression of a tile of integers.
    pub fn ramp(&self, v: ValueId) -> Option<Ramp> {
        let rank = self.shape(v).len();
        if rank == 0 {
            return Some(Ramp { start: self.scalar(v)?, dims: vec![] });
        }
        if !self.is_int(v) {
            return None;
        }
        if let Some(value) = constant(self.func, v).and_then(|s| s.as_int()) {
            return Some(Ramp::uniform(Sum::constant(i64::try_from(value).ok()?), rank));
        }
        let found = self.computed(v, rank)?;
        let moved = matches!(self.def(v)?.op, Op::Create(_) | Op::Shape(_));
        let uniform = found.is_uniform() && !moved;
        (!uniform || !self.outgrows(&found.start, v)).then_some(found)
    }

    fn computed(&self, v: ValueId, rank: usize) -> Option<Ramp> {
        let inst = self.def(v)?;
        let operand = |i: usize| inst.operands.get(i).and_then(|o| self.ramp(*o));
        match inst.op {
            Op::Create(CreateOp::Arange) => {
                let start = Sum::constant(inst.attrs.int("start")?);
                Some(Ramp { start, dims: vec![Sum::constant(1)] })
            }
            Op::Create(CreateOp::Splat) => Some(Ramp::uniform(operand(0)?.start, rank)),
            Op::Elementwise(ElementwiseOp::Add) => operand(0)?.add(&operand(1)?, 1),
            Op::Elementwise(ElementwiseOp::Sub) => operand(0)?.add(&operand(1)?, -1),
            Op::Elementwise(ElementwiseOp::Mul) => {
                let (a, b) = (operand(0)?, operand(1)?);
                if b.is_uniform() {
                    a.scaled(&b.start)
                } else {
                    b.scaled(Some(&a.start).filter(|_| a.is_uniform())?)
                }
            }
            Op::Elementwise(ElementwiseOp::Cast) if self.widens(inst) => operand(0),
            Op::Control(ControlOp::MultipleOf | ControlOp::MaxContiguous) => operand(0),
            Op::Shape(op) => self
                .moved(op, inst, operand(0)?.dims)
                .map(|dims| Ramp { start: operand(0).map_or_else(Sum::default, |r| r.start), dims }),
            _ => None,
        }
    }

    /// The dimensions after a change of shape.
    fn moved(&self, op: ShapeOp, inst: &tk_tile::Inst, dims: Vec<Sum>) -> Option<Vec<Sum>> {
        let (from, to) = (self.shape(*inst.operands.first()?), self.shape(*inst.results.first()?));
        match op {
            ShapeOp::Broadcast => {
                let one = |((a, b), d): ((&u32, &u32), Sum)| if a == b { d } else { Sum::default() };
                Some(from.iter().zip(to).zip(dims).map(one).collect())
            }
            ShapeOp::Reshape => {
                let real = |s: &[u32]| s.iter().copied().filter(|n| *n != 1).collect::<Vec<u32>>();
                if real(from) != real(to) {
                    return None;
                }
                let mut own = from.iter().zip(dims).filter(|(n, _)| **n != 1).map(|(_, d)| d);
                Some(
                    to.iter()
                        .map(|n| if *n == 1 { Sum::default() } else { own.next().unwrap_or_default() })
                        .collect(),
                )
            }
            ShapeOp::Permute => {
                let perm = crate::ir::attrs::permutation(inst);
                perm.iter().map(|p| dims.get(*p).cloned()).collect()
            }
            ShapeOp::Flip
            | ShapeOp::Slice
            | ShapeOp::Join
            | ShapeOp::Split
            | ShapeOp::Cat
            | ShapeOp::Interleave => None,
        }
    }

    /// The expression of a tile of pointers: a pointer that is a parameter, and the offset of each from it in elements.
    pub fn pointers(&self, v: ValueId) -> Option<(ValueId, Ramp)> {
        let rank = self.shape(v).len();
        let inst = match self.func.values[v].def {
            Def::Arg(block, _) if block == self.func.body && rank == 0 => {
                return Some((v, Ramp { start: Sum::default(), dims: vec![] }));
            }
            Def::Arg(block, n) => return self.carried(block, (n as usize).checked_sub(1)?),
            Def::Inst(id, _) => &self.func.insts[id],
        };
        let first = *inst.operands.first()?;
        match inst.op {
            Op::Create(CreateOp::Splat) => {
                let (base, at) = self.pointers(first)?;
                Some((base, Ramp::uniform(at.start, rank)))
            }
            Op::Memory(MemoryOp::PtrAdd) => {
                let (base, at) = self.pointers(first)?;
                Some((base, at.add(&self.ramp(*inst.operands.get(1)?)?, 1)?))
            }
            Op::Shape(op) => {
                let (base, at) = self.pointers(first)?;
                let dims = self.moved(op, inst, at.dims)?;
                Some((base, Ramp { start: at.start, dims }))
            }
            Op::Control(ControlOp::MultipleOf | ControlOp::MaxContiguous) => self.pointers(first),
            _ => None,
        }
    }

    /// Pointers that a loop advances by the same number of elements in each iteration.
    fn carried(&self, block: BlockId, k: usize) -> Option<(ValueId, Ramp)> {
        let inst = &self.func.insts[*self.owner.get(&block)?];
        let (Op::Control(ControlOp::For), [lo, _, step, init @ ..]) = (inst.op, inst.operands.as_slice())
        else {
            return None;
        };
        let (base, at) = self.pointers(*init.get(k)?)?;
        let arg = *self.func.blocks[block].args.get(k + 1)?;
        let end = *yielded(self.func, block).get(k)?;
        if end == arg {
            return Some((base, at));
        }
        let next = self.def(end)?;
        let (Op::Memory(MemoryOp::PtrAdd), [from, by]) = (next.op, next.operands.as_slice()) else {
            return None;
        };
        let by = self.ramp(*by).filter(|r| *from == arg && r.is_uniform())?;
        // A step that differs between iterations is not multiplied by their number.
        let mut own: BTreeSet<ValueId> = self.func.blocks[block].args.iter().copied().collect();
        for i in walk::insts_in(self.func, block) {
            let inst = &self.func.insts[i];
            own.extend(&inst.results);
            own.extend(inst.blocks.iter().flat_map(|b| &self.func.blocks[*b].args));
        }
        if by.start.products().any(|(p, _)| p.iter().any(|v| own.contains(v))) {
            return None;
        }
        // In iteration `i` it has been advanced `(i - lo) / step` times.
        let step = self.scalar(*step)?.value().filter(|s| *s > 0)?;
        let each = by.start.divided(step)?;
        let iv = Sum::scalar(*self.func.blocks[block].args.first()?);
        let iterations = iv.add(&self.scalar(*lo)?, -1)?;
        Some((base, Ramp { start: at.start.add(&each.mul(&iterations)?, 1)?, dims: at.dims }))
    }

    /// A mask as conditions that must all hold.
    pub fn mask(&self, v: ValueId) -> Option<Vec<Below>> {
        if let Some(value) = constant(self.func, v) {
            return (value.bits() != 0).then_some(vec![]);
        }
        let inst = self.def(v)?;
        let [first, rest @ ..] = inst.operands.as_slice() else { return None };
        let below = |small: ValueId, large: ValueId, more: i64| -> Option<Vec<Below>> {
            let left = self.ramp(small)?.add(&self.ramp(large)?, -1)?;
            let moving: Vec<usize> = (0..left.dims.len()).filter(|d| !left.dims[*d].is_zero()).collect();
            let [dim] = moving[..] else { return None };
            let start = left.start.add(&Sum::constant(more), -1)?;
            (left.dims[dim].value() == Some(1)).then(|| vec![Below { dim, start }])
        };
        match (inst.op, rest) {
            (Op::Elementwise(ElementwiseOp::And), [second]) => {
                Some([self.mask(*first)?, self.mask(*second)?].concat())
            }
            (Op::Elementwise(ElementwiseOp::Lt), [second]) => below(*first, *second, 0),
            (Op::Elementwise(ElementwiseOp::Gt), [second]) => below(*second, *first, 0),
            (Op::Elementwise(ElementwiseOp::Le), [second]) => below(*first, *second, 1),
            (Op::Elementwise(ElementwiseOp::Ge), [second]) => below(*second, *first, 1),
            (Op::Shape(op), []) => self.moved_mask(op, inst, self.mask(*first)?),
            _ => None,
        }
    }

    /// The dimensions of conditions after a change of shape.
    fn moved_mask(&self, op: ShapeOp, inst: &tk_tile::Inst, list: Vec<Below>) -> Option<Vec<Below>> {
        let rank = self.shape(*inst.operands.first()?).len();
        list.into_iter()
            .map(|b| {
                // The new position of a dimension along which alone it counts up by one.
                let dims = (0..rank).map(|d| Sum::constant(i64::from(d == b.dim))).collect();
                let dims = self.moved(op, inst, dims)?;
                let dim = dims.iter().position(|d| !d.is_zero())?;
                Some(Below { dim, start: b.start })
            })
            .collect()
    }
}
