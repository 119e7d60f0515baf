//! Turns masked tiles of pointers into loads of boxes through views, where TMA can load them.
//!
//! ```text
//! v5 = ptr_add a, row * m + column         =>    v9 = view a, rows, columns, m, 1
//! v6 = row + i < rows && column + j < columns    ..
//! v7 = load v5, v6 : tile[f16, 128, 64]          v7 = view_load v9, row, column : tile[f16, 128, 64]
//! v8 = dot v7, ..                                v8 = dot v7, ..
//! ```
//!
//! A load in a loop whose elements become an operand of a product is such a box if its pointers count up along both
//! dimensions by strides that the launch knows, from a row and a column that the offset determines, and its mask
//! excludes elements after a bound that the launch knows, along either dimension or none ([`affine`]). If neighbours
//! are along the first dimension, the box is transposed.
//!
//! Requires a verified module. Guarantees the same elements; a load that is not known to become a box with a tensor map
//! is unchanged.

pub mod affine;

use std::collections::BTreeSet;

use tk_ops::scalar::Scalar;
use tk_ops::{ControlOp, CreateOp, DType, DotOp, ElementwiseOp, MemoryOp, Op, ShapeOp};
use tk_tile::effects::{hints, is_volatile};
use tk_tile::passes::dce;
use tk_tile::rewrite::constant;
use tk_tile::{
    Attr, Attrs, BlockId, Def, ElemType, Func, FuncId, Id, Inst, InstId, Module, Type, TypeId, Types,
    ValueId, walk,
};

use self::affine::{Affine, Below, Sum};
use super::{Pass, Property, Run, TileKernel};
use crate::analysis::axis::AxisInfo;
use crate::ir::kernel::CompileOptions;
use crate::ir::params::ArgFacts;
use crate::ir::params::flattened;
use crate::layout::padded;

/// A number that the launch knows: a parameter or a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Param(ValueId),
    Value(i64),
}

/// A load that is a box.
#[derive(Clone, Debug)]
struct Boxed {
    load: InstId,
    base: ValueId,
    /// Along the dimensions of the tile.
    extents: [Known; 2],
    strides: [Known; 2],
    places: [Sum; 2],
    /// Neighbours are along the first dimension.
    transposed: bool,
}

/// The pass.
pub const PASS: Pass = Pass {
    name: "form_tensor_accesses",
    purpose: "makes loads through views of masked tiles of pointers that TMA can load",
    needs: &[Property::OneFunction, Property::PlainDots],
    leaves: &[Property::TensorAccesses],
    // Pointers that loops carried only for these loads.
    run: Run::Tile { run, cleanup: &[dce::PASS] },
};

fn run(tile: &mut TileKernel) -> bool {
    let found = find(&tile.module, tile.kernel, &tile.options);
    apply(&mut tile.module, tile.kernel, &found);
    !found.is_empty()
}

/// The loads of a kernel that are boxes, with their blocks.
fn find(module: &Module, kernel: FuncId, options: &CompileOptions) -> Vec<(BlockId, Boxed)> {
    let Some(func) = module.funcs.get(kernel) else { return vec![] };
    let loads = walk::insts(func).into_iter().any(|i| func.insts[i].op == Op::Memory(MemoryOp::Load));
    if !options.spec.has_tma || !options.spec.has_async_mma || !loads {
        return vec![];
    }
    let axis = AxisInfo::new(module, func, &options.facts);
    Search { module, func, affine: Affine::new(module, func), axis, options }.all()
}

/// Changes these loads.
fn apply(module: &mut Module, kernel: FuncId, found: &[(BlockId, Boxed)]) {
    for (block, one) in found {
        Change { func: &mut module.funcs[kernel], types: &mut module.types, made: vec![] }.load(*block, one);
    }
}

struct Search<'a> {
    module: &'a Module,
    func: &'a Func,
    affine: Affine<'a>,
    axis: AxisInfo,
    options: &'a CompileOptions,
}

impl Search<'_> {
    /// The loads in loops, with their blocks.
    fn all(&self) -> Vec<(BlockId, Boxed)> {
        let mut out = vec![];
        for i in walk::insts(self.func) {
            let inst = &self.func.insts[i];
            let (Op::Control(ControlOp::For), Some(body)) = (inst.op, inst.blocks.first()) else { continue };
            let own = self.func.blocks[*body].insts.iter().filter(|i| self.is_dot_operand(**i));
            out.extend(own.filter_map(|i| Some((*body, self.boxed(*i)?))));
        }
        out
    }

    /// Returns true if a load of a matrix is all that an operand of a product consists of.
    fn is_dot_operand(&self, load: InstId) -> bool {
        let inst = &self.func.insts[load];
        let (Op::Memory(MemoryOp::Load), [r]) = (inst.op, inst.results.as_slice()) else { return false };
        let users = walk::insts(self.func).into_iter().map(|i| &self.func.insts[i]);
        let mut users = users.filter(|i| i.operands.contains(r));
        let (Some(user), None) = (users.next(), users.next()) else { return false };
        let is_operand = user.op == Op::Dot(DotOp::Dot) && user.operands.iter().take(2).any(|v| v == r);
        is_operand && self.shape(*r).len() == 2 && !is_volatile(inst)
    }

    fn shape(&self, v: ValueId) -> &[u32] {
        self.module.types.get(self.func.ty(v)).shape().unwrap_or(&[])
    }

    fn boxed(&self, load: InstId) -> Option<Boxed> {
        let inst = &self.func.insts[load];
        let (pointer, rest) = inst.operands.split_first()?;
        let (base, at) = self.affine.pointers(*pointer)?;
        let mask = rest.first().map_or(Some(vec![]), |m| self.affine.mask(*m))?;
        let zero = |v: &ValueId| constant(self.func, *v).is_some_and(|s| s.bits() == 0);
        if !rest.iter().skip(1).all(zero) {
            return None;
        }
        let [rows, columns] = at.dims.as_slice() else { return None };
        let strides = [self.known(rows)?, self.known(columns)?];
        let places = split(&at.start, [rows, columns])?;
        // At a negative position pointers may access memory, and boxes do not.
        let non_negative = |v: &ValueId| self.axis.tile(*v).non_negative;
        let narrow =
            |v: &ValueId| self.module.types.get(self.func.ty(*v)).dtype().is_some_and(|d| d.bits() <= 32);
        let known = self.known_at(load);
        let inside = |(p, factor): (&[ValueId], i64)| {
            (1..=i64::from(i32::MAX)).contains(&factor)
                && p.iter().all(|v| non_negative(v) && narrow(v) && known.contains(v))
        };
        if !places.iter().flat_map(Sum::products).all(inside) {
            return None;
        }
        let shape = self.shape(*inst.results.first()?);
        let bound = |dim: usize| -> Option<Known> {
            let own: Vec<&Below> = mask.iter().filter(|b| b.dim == dim).collect();
            match own[..] {
                // Padding would be read, which may not be allocated.
                [] if shape.get(dim).is_some_and(|n| padded(*n) == *n) => Some(Known::Value(i32::MAX.into())),
                [] => None,
                [b] => self.known(&places[dim].add(&b.start, -1)?),
                _ => None,
            }
        };
        let extents = [bound(0)?, bound(1)?];
        let transposed = !self.is_one(strides[1]) && self.is_one(strides[0]);
        let boxed = Boxed { load, base, extents, strides, places, transposed };
        self.is_mapped(&boxed).then_some(boxed)
    }

    /// The values that are defined before an instruction.
    fn known_at(&self, inst: InstId) -> BTreeSet<ValueId> {
        let mut known = BTreeSet::new();
        self.gather(self.func.body, inst, &mut known);
        known
    }

    /// Adds those of a block, up to the instruction if it is in the block; returns whether it is.
    fn gather(&self, block: BlockId, inst: InstId, known: &mut BTreeSet<ValueId>) -> bool {
        known.extend(&self.func.blocks[block].args);
        for i in &self.func.blocks[block].insts {
            if *i == inst {
                return true;
            }
            for b in &self.func.insts[*i].blocks {
                let before = known.clone();
                if self.gather(*b, inst, known) {
                    return true;
                }
                *known = before;
            }
            known.extend(&self.func.insts[*i].results);
        }
        false
    }

    /// A sum as a number that the launch knows.
    fn known(&self, sum: &Sum) -> Option<Known> {
        if let Some(value) = sum.value() {
            return Some(Known::Value(value));
        }
        let products: Vec<_> = sum.products().collect();
        let [([v], 1)] = products[..] else { return None };
        let params = &self.func.blocks[self.func.body].args;
        params.contains(v).then_some(Known::Param(*v))
    }

    fn fact(&self, v: ValueId) -> ArgFacts {
        let params = &self.func.blocks[self.func.body].args;
        let before = params.iter().take_while(|p| **p != v);
        let at: usize = before.map(|p| flattened(self.module.types.get(self.func.ty(*p)))).sum();
        self.options.facts.get(at).copied().unwrap_or_default()
    }

    fn is_one(&self, k: Known) -> bool {
        match k {
            Known::Value(v) => v == 1,
            Known::Param(v) => self.fact(v).one,
        }
    }

    /// Returns true if it may have a tensor map, as far as is known here: [`crate::passes::warp_specialize`] checks
    /// again.
    fn is_mapped(&self, b: &Boxed) -> bool {
        const ALIGNED: u32 = 16;
        let Type::Tile { elem: ElemType::Ptr { pointee, .. }, .. } =
            self.module.types.get(self.func.ty(b.base))
        else {
            return false;
        };
        let ElemType::Scalar(d) = **pointee else { return false };
        let (line, row) =
            if b.transposed { (b.strides[0], b.strides[1]) } else { (b.strides[1], b.strides[0]) };
        let bytes = d.bytes() as u32;
        let apart = match row {
            Known::Value(v) => {
                (1..ArgFacts::BOUND).contains(&v) && v % i64::from(ALIGNED / bytes.min(ALIGNED)) == 0
            }
            Known::Param(v) => self.fact(v).positive && self.fact(v).divisible * bytes >= ALIGNED,
        };
        let narrow = |k: &Known| match k {
            Known::Value(v) => (1..=i64::from(i32::MAX)).contains(v),
            Known::Param(v) => {
                let dtype = self.module.types.get(self.func.ty(*v)).dtype();
                dtype == Some(DType::I32) && self.fact(*v).positive
            }
        };
        // Boxes begin at multiples of 16 bytes of a line.
        let [rows, columns] = &b.places;
        let begins = if b.transposed { rows } else { columns };
        let aligned = begins.products().all(|(values, factor)| {
            let zeros = |v: &ValueId| self.axis.tile(*v).divisibility().trailing_zeros();
            let zeros = values.iter().map(zeros).sum::<u32>() + factor.trailing_zeros();
            zeros + bytes.trailing_zeros() >= ALIGNED.trailing_zeros()
        });
        self.is_one(line)
            && apart
            && aligned
            && self.fact(b.base).divisible >= ALIGNED
            && b.extents.iter().all(narrow)
    }
}

/// Splits an offset into row and column: a product that contains the stride of rows is a row, one with that of columns
/// is a column.
fn split(offset: &Sum, strides: [&Sum; 2]) -> Option<[Sum; 2]> {
    let mut places = [Sum::default(), Sum::default()];
    let strides: Vec<(&[ValueId], i64)> =
        strides.iter().map(|s| s.products().next().unwrap_or((&[], 1))).collect();
    // The stride that is not 1 comes first: every product contains a stride of 1.
    let mut order = [0, 1];
    order.sort_by_key(|d| std::cmp::Reverse((strides[*d].0.len(), strides[*d].1)));
    for (product, factor) in offset.products() {
        let found = order.into_iter().find_map(|d| {
            let (stride, by) = strides[d];
            let mut rest = product.to_vec();
            for v in stride {
                rest.remove(rest.iter().position(|p| p == v)?);
            }
            (factor % by == 0).then_some((d, rest, factor / by))
        });
        let (d, rest, factor) = found?;
        let one = rest.iter().try_fold(Sum::constant(factor), |sum, v| sum.mul(&Sum::scalar(*v)))?;
        places[d] = places[d].add(&one, 1)?;
    }
    Some(places)
}

/// A block that is changed.
struct Change<'a> {
    func: &'a mut Func,
    types: &'a mut Types,
    /// Instructions at the position of the load.
    made: Vec<InstId>,
}

impl Change<'_> {
    fn load(&mut self, block: BlockId, b: &Boxed) {
        let body = self.func.body;
        let old = self.func.insts[b.load].clone();
        let Some(result) = old.results.first().copied() else { return };
        let view = self.view(&old, b);
        let begin = std::mem::take(&mut self.made);
        let places: Vec<ValueId> = b.places.iter().map(|p| self.place(&old, p)).collect();
        let tile = self.func.ty(result);
        let load = Op::Memory(MemoryOp::ViewLoad);
        if b.transposed {
            let Type::Tile { elem, shape } = self.types.get(tile).clone() else { return };
            let transposed =
                self.types.intern(Type::Tile { elem, shape: shape.iter().rev().copied().collect() });
            let loaded = self.add(&old, load, &[view, places[1], places[0]], hints(&old), transposed);
            let perm = Attrs::new().with("perm", Attr::Ints(vec![1, 0]));
            self.add(&old, Op::Shape(ShapeOp::Permute), &[loaded], perm, tile);
        } else {
            self.add(&old, load, &[view, places[0], places[1]], hints(&old), tile);
        }
        // The last one replaces the load.
        if let Some(last) = self.made.last().copied() {
            self.func.insts[last].results = vec![result];
            self.func.values[result].def = Def::Inst(last, 0);
        }
        self.func.insts[b.load].results.clear();
        let made = std::mem::take(&mut self.made);
        let insts = &mut self.func.blocks[block].insts;
        if let Some(at) = insts.iter().position(|i| *i == b.load) {
            insts.splice(at..=at, made);
        }
        self.func.blocks[body].insts.splice(0..0, begin);
    }

    /// Creates an instruction that is in no block yet; returns its result.
    fn add(&mut self, like: &Inst, op: Op, operands: &[ValueId], attrs: Attrs, ty: TypeId) -> ValueId {
        let body = self.func.body;
        let inst =
            Inst { op, operands: operands.to_vec(), attrs, blocks: vec![], results: vec![], loc: like.loc };
        let id = self.func.add_inst(body, inst, &[ty]);
        self.func.blocks[body].insts.pop();
        self.made.push(id);
        self.func.insts[id].results.first().copied().unwrap_or(ValueId::new(0))
    }

    fn int(&mut self, like: &Inst, d: DType, value: i64) -> ValueId {
        let ty = self.types.intern(Type::scalar(d));
        let attrs = Attrs::new().with("value", Attr::Scalar(Scalar::int(d, value.into())));
        self.add(like, Op::Create(CreateOp::Const), &[], attrs, ty)
    }

    /// A value converted to another integer type.
    fn cast(&mut self, like: &Inst, v: ValueId, d: DType) -> ValueId {
        if self.types.get(self.func.ty(v)).dtype() == Some(d) {
            return v;
        }
        let ty = self.types.intern(Type::scalar(d));
        self.add(like, Op::Elementwise(ElementwiseOp::Cast), &[v], Attrs::new(), ty)
    }

    fn view(&mut self, like: &Inst, b: &Boxed) -> ValueId {
        let mut number = |k: Known, d: DType| match k {
            Known::Value(v) => self.int(like, d, v),
            Known::Param(v) => self.cast(like, v, d),
        };
        let mut extents = b.extents.map(|e| number(e, DType::I32));
        let mut strides = b.strides.map(|s| number(s, DType::I64));
        if b.transposed {
            extents.reverse();
            strides.reverse();
        }
        let elem = match self.types.get(self.func.ty(b.base)) {
            Type::Tile { elem: ElemType::Ptr { pointee, .. }, .. } => (**pointee).clone(),
            _ => ElemType::Scalar(DType::F32),
        };
        let ty = self.types.intern(Type::View { elem, rank: 2, mutable: false, wide: false });
        let operands: Vec<ValueId> = [b.base].into_iter().chain(extents).chain(strides).collect();
        self.add(like, Op::Memory(MemoryOp::View), &operands, Attrs::new(), ty)
    }

    /// A position as one value.
    fn place(&mut self, like: &Inst, sum: &Sum) -> ValueId {
        let i32 = self.types.intern(Type::scalar(DType::I32));
        let mut all: Option<ValueId> = None;
        for (product, factor) in sum.products() {
            let mut one = if factor == 1 && !product.is_empty() {
                None
            } else {
                Some(self.int(like, DType::I32, factor))
            };
            for v in product {
                let v = self.cast(like, *v, DType::I32);
                one = Some(match one {
                    Some(x) => {
                        self.add(like, Op::Elementwise(ElementwiseOp::Mul), &[x, v], Attrs::new(), i32)
                    }
                    None => v,
                });
            }
            let Some(one) = one else { continue };
            all = Some(match all {
                Some(x) => self.add(like, Op::Elementwise(ElementwiseOp::Add), &[x, one], Attrs::new(), i32),
                None => one,
            });
        }
        all.unwrap_or_else(|| self.int(like, DType::I32, 0))
    }
}
