//! Stores in slices what is computed from more tiles than lanes have registers for.
//!
//! ```text
//! v2 = view_load w, v0 : tile[f32, 8192]         v3 = view_load w, v0 : tile[f32, 4096]
//! v3 = mul v1, v2                                v4 = view_load w, v0 + 4096 : tile[f32, 4096]
//! view_store y, v0, v3                     =>    v5 = slice v1 {starts = [0]} : tile[f32, 4096]
//!                                                v6 = mul v5, v3
//!                                                view_store y, v0, v6
//!                                                ..the other half
//! ```
//!
//! A row that was normalized is scaled and shifted by values that are loaded after it, for which its lanes need twice
//! the registers of the row. A slice of each suffices for a slice of the result. If registers are left, the next slice
//! is loaded before one is computed, since a lane that waits for each is idle: layer normalization of rows of 16384
//! went from 0.94 to 0.96 of a copy with that. Programs with matrix products, whose results are stored differently, are
//! unchanged.
//!
//! Requires scheduled kernels, so that barriers are where whole tiles need them. Guarantees that instructions that move
//! after the store of an earlier slice are pure, or load memory that the program does not write; and that slices move
//! no element.

use std::collections::{BTreeMap, BTreeSet};

use tk_ops::{CreateOp, ElementwiseOp, MemoryOp, Op, ShapeOp};
use tk_tile::effects::of_inst;
use tk_tile::rewrite::constant;
use tk_tile::{Attr, Attrs, BlockId, Def, Inst, InstId, Type, TypeId, ValueId, walk};

use crate::analysis::provenance::Roots;
use crate::ir::attrs::is_unit;
use crate::ir::builder::Edit;
use crate::ir::kernel::{Kernel, LayoutId};
use crate::ir::op::GpuOp;
use crate::ir::params::element_bytes;
use crate::layout::padded;
use crate::passes::reallocate_registers::NON_TILE_REGISTERS;
use crate::passes::{Pass, Property, Run};
use crate::verify::verify_fenced;

/// The pass.
pub const PASS: Pass = Pass {
    name: "split_stores",
    purpose: "computes and stores in slices what needs more registers than a lane has",
    needs: &[Property::NarrowTiles],
    leaves: &[Property::SplitStores],
    run: Run::Kernel { run, verify: verify_fenced },
};

/// The fewest elements of a slice in a lane: a wide access of the smallest type that is stored from wider ones.
const SLICE: u32 = 8;

fn run(kernel: &mut Kernel) {
    if kernel.multiplies() {
        return;
    }
    for block in kernel.blocks() {
        for store in kernel.func().blocks[block].insts.clone() {
            if let Some(tail) = Tail::find(kernel, block, store) {
                cut(kernel, block, store, &tail);
            }
        }
    }
}

/// The part of the computation of a store that can be done in slices.
struct Tail {
    /// The number of slices of the stored tile.
    count: u32,
    /// The dimension along which the stored tile is sliced.
    dim: usize,
    /// The values that are computed in slices, with the dimension along which they are sliced.
    inner: BTreeMap<ValueId, usize>,
    /// The instructions that compute it.
    insts: BTreeSet<InstId>,
    /// Registers suffice for the loads of the next slice, too.
    is_ahead: bool,
}

impl Tail {
    /// For a store in a block, if it needs more registers than lanes have.
    fn find(kernel: &Kernel, block: BlockId, store: InstId) -> Option<Tail> {
        let func = kernel.func();
        let inst = &func.insts[store];
        if inst.op != Op::Memory(MemoryOp::ViewStore) {
            return None;
        }
        let v = *inst.operands.last()?;
        let layout = kernel.layout(v)?;
        let most = u32::try_from(layout.registers()).ok()? / SLICE;
        let parts = |d: &usize| layout.most_parts(*d, most);
        let dim = (0..shape(kernel, v).len()).max_by_key(parts)?;
        let (count, extent) = (parts(&dim), *shape(kernel, v).get(dim)?);
        if count <= 1 || padded(extent) != extent {
            return None;
        }
        let mut search = Search {
            kernel,
            block,
            roots: Roots::new(func),
            uses: uses(func),
            at: func.blocks[block].insts.iter().position(|i| *i == store)?,
            tail: Tail { count, dim, inner: BTreeMap::new(), insts: BTreeSet::new(), is_ahead: false },
            outer: BTreeMap::new(),
        };
        if !search.follow(v, dim) {
            return None;
        }
        let words = |v: &ValueId| {
            let bytes = element_bytes(kernel.module.types.get(func.ty(*v)).elem());
            let registers = kernel.layout(*v).map_or(0, |l| l.registers() as u64);
            u32::try_from((registers * bytes).div_ceil(4)).unwrap_or(u32::MAX)
        };
        let loads: u32 = search.tail.inner.keys().filter(|v| is_load(kernel, **v)).map(words).sum();
        let outer: u32 = search.outer.keys().map(words).sum();
        let budget = kernel.registers_of_two_programs();
        search.tail.is_ahead = outer + 2 * (loads / count) + NON_TILE_REGISTERS <= budget;
        (loads > 0 && outer + loads + NON_TILE_REGISTERS > budget).then_some(search.tail)
    }
}

/// The number of uses of each value as an operand.
fn uses(func: &tk_tile::Func) -> BTreeMap<ValueId, u32> {
    let mut uses = BTreeMap::new();
    for v in walk::insts(func).into_iter().flat_map(|i| func.insts[i].operands.clone()) {
        *uses.entry(v).or_insert(0) += 1;
    }
    uses
}

fn is_load(kernel: &Kernel, v: ValueId) -> bool {
    let func = kernel.func();
    matches!(func.values[v].def, Def::Inst(i, _) if func.insts[i].op == Op::Memory(MemoryOp::ViewLoad))
}

fn shape(kernel: &Kernel, v: ValueId) -> &[u32] {
    kernel.module.types.get(kernel.func().ty(v)).shape().unwrap_or(&[])
}

/// The dimension along which an operand is sliced for a slice of a result; `None` if all of it is used.
fn dim_of(kernel: &Kernel, x: ValueId, inst: &Inst, dim: usize) -> Option<usize> {
    let (from, to) = (shape(kernel, x), inst.results.first().map_or(&[][..], |r| shape(kernel, *r)));
    match inst.op {
        Op::Shape(ShapeOp::Broadcast) => (from.get(dim) == to.get(dim)).then_some(dim),
        Op::Shape(ShapeOp::Reshape) => {
            let number = to.get(..dim)?.iter().filter(|n| **n != 1).count();
            (0..from.len()).filter(|d| from.get(*d) != Some(&1)).nth(number)
        }
        _ => Some(dim),
    }
}

/// Finds what a tile is computed from.
struct Search<'a> {
    kernel: &'a Kernel,
    block: BlockId,
    roots: Roots,
    uses: BTreeMap<ValueId, u32>,
    /// The position of the store.
    at: usize,
    tail: Tail,
    /// The values that are live all the time, with the dimension along which they are sliced.
    outer: BTreeMap<ValueId, usize>,
}

impl Search<'_> {
    /// Returns true if a value has slices along a dimension: computed in slices, or sliced.
    fn follow(&mut self, v: ValueId, dim: usize) -> bool {
        let fits = self.kernel.layout(v).is_some_and(|l| l.part(dim, self.tail.count).is_some());
        if !fits || self.outer.get(&v).is_some_and(|d| *d != dim) {
            return false;
        }
        let before = (self.tail.inner.clone(), self.tail.insts.clone(), self.outer.clone());
        if !self.outer.contains_key(&v) && self.inside(v, dim).is_some() {
            return true;
        }
        (self.tail.inner, self.tail.insts, self.outer) = before;
        self.outer.insert(v, dim);
        true
    }

    /// Follows the operands of a value that is computed only for this, and may be sliced.
    fn inside(&mut self, v: ValueId, dim: usize) -> Option<()> {
        let func = self.kernel.func();
        let Def::Inst(id, _) = func.values[v].def else { return None };
        let inst = &func.insts[id];
        let place = func.blocks[self.block].insts.iter().position(|i| *i == id)?;
        let known = matches!(inst.op, Op::Create(CreateOp::Const | CreateOp::Splat));
        if !known && self.uses.get(&v) != Some(&1) || !inst.blocks.is_empty() {
            return None;
        }
        let tiles: Vec<ValueId> =
            inst.operands.iter().copied().filter(|x| self.kernel.layout(*x).is_some()).collect();
        let (from, to) = (tiles.first().map_or(&[][..], |x| shape(self.kernel, *x)), shape(self.kernel, v));
        let all = |s: &mut Self| tiles.iter().all(|x| s.follow(*x, dim)).then_some(());
        match inst.op {
            Op::Create(CreateOp::Const | CreateOp::Splat) => {}
            Op::Elementwise(_) => all(self)?,
            Op::Memory(MemoryOp::ViewInside) => {}
            Op::Memory(MemoryOp::ViewLoad) if self.may_wait(id, place) => all(self)?,
            Op::Shape(ShapeOp::Broadcast) if from.get(dim) == to.get(dim) => all(self)?,
            Op::Shape(ShapeOp::Broadcast) => {
                let slice = self.kernel.layout(v)?.part(dim, self.tail.count)?;
                let whole = (0..to.len()).filter(|d| from.get(*d) != to.get(*d));
                let wanted = whole.fold(slice, |l, d| l.collapsed(d));
                (self.kernel.layout(*tiles.first()?) == Some(&wanted)).then_some(())?;
            }
            Op::Shape(ShapeOp::Reshape) if is_unit(from, to) => {
                let x = *tiles.first()?;
                let from = dim_of(self.kernel, x, inst, dim)?;
                self.follow(x, from).then_some(())?;
            }
            _ => return None,
        }
        self.tail.inner.insert(v, dim);
        // Values with other uses remain whole.
        if self.uses.get(&v) == Some(&1) {
            self.tail.insts.insert(id);
        }
        Some(())
    }

    /// Returns true if a load may move to the store: no effect that others observe is between them, and the program
    /// does not write the loaded memory.
    fn may_wait(&self, load: InstId, place: usize) -> bool {
        let func = self.kernel.func();
        let minds = |i: &InstId| {
            let machine = matches!(func.insts[*i].op, Op::Target) && func.insts[*i].blocks.is_empty();
            of_inst(func, *i) == tk_ops::table::Effects::Ordered && !machine
        };
        let between = func.blocks[self.block].insts.get(place..self.at).unwrap_or(&[]);
        let root = func.insts[load].operands.first().and_then(|v| self.roots.get(*v));
        root.is_some_and(|root| !self.writes(root)) && !between.iter().any(minds)
    }

    fn writes(&self, root: ValueId) -> bool {
        let func = self.kernel.func();
        walk::insts(func).into_iter().map(|i| &func.insts[i]).any(|inst| {
            let writes = match inst.op {
                Op::Memory(op) => {
                    matches!(op, MemoryOp::Store | MemoryOp::ViewStore | MemoryOp::ViewScatter)
                }
                Op::Atomic(_) => true,
                Op::Target => matches!(GpuOp::of(inst), Some(GpuOp::TmaStore(_))),
                _ => false,
            };
            let to = inst.operands.first().and_then(|v| self.roots.get(*v));
            writes && to.is_none_or(|to| to == root)
        })
    }
}

/// Replaces a store by slices.
fn cut(kernel: &mut Kernel, block: BlockId, store: InstId, tail: &Tail) {
    let old = kernel.func().insts[store].clone();
    let mut edit = Edit { kernel, loc: old.loc };
    let insts = std::mem::take(&mut edit.func().blocks[block].insts);
    let mut rest = insts.into_iter().filter(|i| !tail.insts.contains(i));
    let head: Vec<InstId> = rest.by_ref().take_while(|i| *i != store).collect();
    edit.func().blocks[block].insts = head;
    let Some(v) = old.operands.last().copied() else { return };
    let count = tail.count;
    let mut next = loaded(&mut edit, block, tail, 0);
    for number in 0..count {
        let made = next;
        next = loaded(&mut edit, block, tail, if tail.is_ahead { number + 1 } else { count });
        let mut slices = Slices { edit: &mut edit, block, tail, number, made };
        let value = slices.of(v, tail.dim);
        let mut operands = slices.placed(&old, tail.dim, v);
        operands.truncate(old.operands.len() - 1);
        operands.push(value);
        edit.loc = old.loc;
        edit.add(block, Inst { operands, results: vec![], ..old.clone() }, &[]);
    }
    let after: Vec<InstId> = rest.collect();
    edit.func().blocks[block].insts.extend(after);
}

/// Loads for a slice, if there is a slice of this number.
fn loaded(edit: &mut Edit<'_>, block: BlockId, tail: &Tail, number: u32) -> BTreeMap<ValueId, ValueId> {
    let mut slices = Slices { edit, block, tail, number, made: BTreeMap::new() };
    for (v, dim) in &tail.inner {
        if number < tail.count && is_load(slices.edit.kernel, *v) {
            slices.of(*v, *dim);
        }
    }
    slices.made
}

/// Computes a slice.
struct Slices<'a, 'k> {
    edit: &'a mut Edit<'k>,
    block: BlockId,
    tail: &'a Tail,
    number: u32,
    /// The values of this slice so far.
    made: BTreeMap<ValueId, ValueId>,
}

impl Slices<'_, '_> {
    /// The slice of a value.
    fn of(&mut self, v: ValueId, dim: usize) -> ValueId {
        if let Some(made) = self.made.get(&v) {
            return *made;
        }
        let kernel = &*self.edit.kernel;
        let func = kernel.func();
        let Def::Inst(id, _) = func.values[v].def else { return self.sliced(v, dim) };
        if !self.tail.inner.contains_key(&v) {
            return self.sliced(v, dim);
        }
        let inst = func.insts[id].clone();
        let result = self.result(v, dim);
        let mut operands = self.placed(&inst, dim, v);
        for x in &mut operands {
            let Some(dim) =
                self.edit.kernel.layout(*x).and_then(|_| dim_of(self.edit.kernel, *x, &inst, dim))
            else {
                continue;
            };
            *x = self.of(*x, dim);
        }
        self.edit.loc = inst.loc;
        let (_, made) = self.edit.add(self.block, Inst { operands, results: vec![], ..inst }, &[result]);
        let slice = made.first().copied().unwrap_or(v);
        self.made.insert(v, slice);
        slice
    }

    /// A slice of an existing value.
    fn sliced(&mut self, v: ValueId, dim: usize) -> ValueId {
        let result = self.result(v, dim);
        let shape = shape(self.edit.kernel, v);
        let start = |d: usize| if d == dim { i64::from(self.start(v, dim)) } else { 0 };
        let attrs = Attrs::new().with("starts", Attr::Ints((0..shape.len()).map(start).collect()));
        let inst = self.edit.inst(Op::Shape(ShapeOp::Slice), &[v], attrs);
        let (_, made) = self.edit.add(self.block, inst, &[result]);
        let slice = made.first().copied().unwrap_or(v);
        self.made.insert(v, slice);
        slice
    }

    /// The start of the slice of a tile along its dimension.
    fn start(&self, v: ValueId, dim: usize) -> u32 {
        (shape(self.edit.kernel, v).get(dim).copied().unwrap_or(1) / self.tail.count) * self.number
    }

    /// The type and the layout of a slice.
    fn result(&mut self, v: ValueId, dim: usize) -> (TypeId, Option<LayoutId>) {
        let count = self.tail.count;
        let layout = self.edit.kernel.layout(v).and_then(|l| l.part(dim, count));
        let layout = layout.map(|l| self.edit.kernel.layouts.intern(l));
        let ty = self.edit.kernel.module.types.get(self.edit.kernel.func().ty(v)).clone();
        let Type::Tile { elem, mut shape } = ty else { return (self.edit.kernel.func().ty(v), layout) };
        shape.get_mut(dim).into_iter().for_each(|n| *n /= count);
        (self.edit.kernel.module.types.intern(Type::Tile { elem, shape }), layout)
    }

    /// The operands of an access to a view, advanced to the slice of `tile`; those of other instructions unchanged.
    fn placed(&mut self, inst: &Inst, dim: usize, tile: ValueId) -> Vec<ValueId> {
        let mut operands = inst.operands.clone();
        let views = [MemoryOp::ViewLoad, MemoryOp::ViewStore, MemoryOp::ViewInside];
        let by = self.start(tile, dim);
        let Some(at) = operands.get_mut(1 + dim).filter(|_| views.iter().any(|o| inst.op == Op::Memory(*o)))
        else {
            return operands;
        };
        if by > 0 {
            *at = self.moved(*at, i64::from(by));
        }
        operands
    }

    /// A position advanced by an offset.
    fn moved(&mut self, at: ValueId, by: i64) -> ValueId {
        let d = self.edit.dtype(at);
        let known = constant(self.edit.kernel.func(), at)
            .and_then(|s| s.as_int())
            .and_then(|s| i64::try_from(s).ok());
        match known {
            Some(at) => self.edit.int(self.block, d, at + by),
            None => {
                let by = self.edit.int(self.block, d, by);
                self.edit.compute(self.block, ElementwiseOp::Add, &[at, by], d)
            }
        }
    }
}
