//! Moves data that is exchanged between warps through shared memory.
//!
//! ```text
//! v1 = convert v0 : tile[f32, 64, 64] @l1    =>    shared_store v0 {bases = [..], buffer = 0}
//!                                                  v1 = shared_load {bases = [..], buffer = 0} : tile[f32, 64, 64] @l1
//!
//! v1 = sum v0 {axis = 0} : f32               =>    v1 = sum v0 {axis = 0, part = true} : tile[f32, 4] @l1
//!                                                  v2 = convert v1 : tile[f32, 4] @l2
//!                                                  v3 = sum v2 {axis = 0, merge = true} : f32
//! ```
//!
//! A conversion remains one if every warp owns the elements that it needs. A reduction over several warps becomes one
//! inside of each warp and one over their results, with a copy of its function if it is the user's. Rearrangements,
//! gathers, sorts, histograms and the operands of plain products go through shared memory in row-major order; those of
//! matrix instructions as [`operands`] describes.
//!
//! Requires a verified laid-out kernel. Guarantees that every other operation finds its operands in the same warp.

mod operands;
mod sort;

use tk_ops::scalar::Scalar;
use tk_ops::{ControlOp, CreateOp, DType, DotOp, Op, ReduceOp, ScanOp, ShapeOp};
use tk_tile::effects::is_volatile;
use tk_tile::rewrite::{Renames, copied};
use tk_tile::{Attr, Attrs, BlockId, ElemType, Id, Inst, InstId, Type, TypeId, ValueId, walk};

use crate::analysis::axis::AxisInfo;
use crate::analysis::conversion;
use crate::ir::attrs::axis_of;
use crate::ir::attrs::{row_major, state};
use crate::ir::kernel::{Buffer, Kernel, LayoutId};
use crate::ir::op::{
    BufferRef, Convert, GpuOp, Placement, SharedAdd, SharedGather, SharedLoad, SharedStore, Strides,
};
use crate::ir::params::element_bytes;
use crate::layout::linear::InDim;
use crate::layout::padded;
use crate::passes::{Pass, Property, Run};
use crate::verify::verify_lowered;

/// The pass.
pub const PASS: Pass = Pass {
    name: "lower_to_shared",
    purpose: "brings what moves between warps into shared memory",
    needs: &[Property::Layouts],
    leaves: &[Property::SharedAccesses],
    run: Run::Kernel { run, verify: verify_lowered },
};

fn run(kernel: &mut Kernel) {
    let func = kernel.func();
    let body = func.body;
    let mut uses = vec![0; func.values.len()];
    let home = operands::homes(func);
    for i in walk::insts(func) {
        for v in &func.insts[i].operands {
            uses.get_mut(v.index()).into_iter().for_each(|u| *u += 1);
        }
    }
    let around = vec![];
    let axis = AxisInfo::new(&kernel.module, kernel.func(), &kernel.options.facts);
    Lower { kernel, loc: None, uses, alone: false, home, around, axis, stored: vec![] }.block(body, false);
    sweep(kernel);
    vote(kernel);
}

/// Adds the buffer through which warps vote, to a kernel that asserts.
fn vote(kernel: &mut Kernel) {
    const WORD: u32 = 4;
    let func = kernel.func();
    let asserts = |i: InstId| func.insts[i].op == Op::Control(ControlOp::Assert);
    if kernel.options.spec.has_gcn && walk::insts(func).into_iter().any(asserts) {
        kernel.buffers.push(Buffer::new(WORD));
        kernel.vote = Some(kernel.buffers.len() - 1);
    }
}

/// Removes rearrangements without uses.
fn sweep(kernel: &mut Kernel) {
    let func = &mut kernel.module.funcs[tk_tile::FuncId(0)];
    let mut used = vec![false; func.values.len()];
    for i in walk::insts(func) {
        for v in &func.insts[i].operands {
            used.get_mut(v.index()).into_iter().for_each(|u| *u = true);
        }
    }
    let blocks: Vec<BlockId> =
        walk::insts(func).iter().flat_map(|i| func.insts[*i].blocks.clone()).chain([func.body]).collect();
    for block in blocks {
        let (insts, blocks) = (&func.insts, &mut func.blocks);
        blocks[block].insts.retain(|i| {
            let inst = &insts[*i];
            let needed = inst.results.iter().any(|v| used.get(v.index()).copied().unwrap_or(false));
            needed || inst.op != Op::Shape(ShapeOp::Permute)
        });
    }
}

struct Lower<'a> {
    kernel: &'a mut Kernel,
    loc: Option<tk_tile::Loc>,
    /// The number of uses of each value as an operand.
    uses: Vec<u32>,
    /// Inside of a function of elements, where threads do not exchange data.
    alone: bool,
    /// The block in which each value is defined.
    home: Vec<Option<BlockId>>,
    /// The enclosing blocks, outermost first, and whether each is that of a loop.
    around: Vec<(BlockId, bool)>,
    /// The facts about views.
    axis: AxisInfo,
    /// Operands that are in shared memory already.
    stored: Vec<operands::Stored>,
}

impl Lower<'_> {
    fn ty(&self, v: ValueId) -> &Type {
        self.kernel.module.types.get(self.kernel.func().ty(v))
    }

    fn shape(&self, v: ValueId) -> Vec<u32> {
        self.ty(v).shape().unwrap_or(&[]).to_vec()
    }

    fn layout_id(&self, v: ValueId) -> Option<LayoutId> {
        self.kernel.value_layouts.get(v.index()).copied().flatten()
    }

    fn block(&mut self, block: BlockId, of_loop: bool) {
        self.around.push((block, of_loop));
        let insts = std::mem::take(&mut self.kernel.module.funcs[tk_tile::FuncId(0)].blocks[block].insts);
        for i in insts {
            let (op, blocks) = (self.kernel.func().insts[i].op, self.kernel.func().insts[i].blocks.clone());
            let elements = matches!(op, Op::Control(ControlOp::Map) | Op::Reduce(_) | Op::Scan(_));
            let outer = self.alone;
            self.alone |= elements;
            let of_loop = matches!(op, Op::Control(ControlOp::For | ControlOp::While));
            blocks.into_iter().for_each(|b| self.block(b, of_loop));
            self.alone = outer;
            self.loc = self.kernel.func().insts[i].loc;
            self.inst(block, i);
        }
        self.around.pop();
    }

    /// Appends an existing instruction to a block.
    fn keep(&mut self, block: BlockId, id: InstId) {
        self.kernel.module.funcs[tk_tile::FuncId(0)].blocks[block].insts.push(id);
    }

    /// Adds an instruction; its results have these layouts.
    fn add(
        &mut self,
        block: BlockId,
        op: Op,
        operands: &[ValueId],
        attrs: Attrs,
        results: &[(TypeId, Option<LayoutId>)],
    ) -> InstId {
        let inst =
            Inst { op, operands: operands.to_vec(), attrs, blocks: vec![], results: vec![], loc: self.loc };
        let types: Vec<TypeId> = results.iter().map(|r| r.0).collect();
        let func = &mut self.kernel.module.funcs[tk_tile::FuncId(0)];
        let id = func.add_inst(block, inst, &types);
        for (v, (_, layout)) in func.insts[id].results.clone().iter().zip(results) {
            self.kernel.set_layout(*v, *layout);
        }
        id
    }

    /// The same for an operation of scheduled kernels.
    fn gpu(
        &mut self,
        block: BlockId,
        op: impl Into<GpuOp>,
        operands: &[ValueId],
        results: &[(TypeId, Option<LayoutId>)],
    ) -> InstId {
        self.add(block, Op::Target, operands, op.into().attrs(), results)
    }

    /// Makes an added instruction define the results of an old one.
    fn becomes(&mut self, old: InstId, new: InstId) {
        let func = self.kernel.func();
        let (old, new_results) = (func.insts[old].results.clone(), func.insts[new].results.clone());
        for (n, (o, r)) in old.iter().zip(&new_results).enumerate() {
            let layout = self.kernel.value_layouts.get(r.index()).copied().flatten();
            let func = &mut self.kernel.module.funcs[tk_tile::FuncId(0)];
            // The old value keeps its name; the new instruction defines it.
            func.values[*o].def = tk_tile::Def::Inst(new, n as u32);
            if let Some(slot) = func.insts[new].results.get_mut(n) {
                *slot = *o;
            }
            self.kernel.set_layout(*o, layout);
        }
    }

    fn inst(&mut self, block: BlockId, id: InstId) {
        let inst = self.kernel.func().insts[id].clone();
        match inst.op {
            Op::Target if matches!(GpuOp::of(&inst), Some(GpuOp::Convert(_))) => {
                self.convert(block, id, &inst)
            }
            Op::Reduce(op) => self.reduce(block, id, &inst, op),
            Op::Shape(op) => self.rearrange(block, id, &inst, op),
            Op::Scan(ScanOp::Gather) => self.gather(block, id, &inst),
            Op::Scan(ScanOp::Histogram) => self.histogram(block, id, &inst),
            Op::Scan(ScanOp::Sort | ScanOp::TopK) => self.sort(block, id, &inst),
            Op::Dot(DotOp::Dot) => self.dot(block, id, &inst),
            Op::Atomic(_) | Op::Control(ControlOp::GlobalTimer) => self.broadcast_result(block, id, &inst),
            Op::Memory(_) if is_volatile(&inst) => self.broadcast_result(block, id, &inst),
            Op::Dot(DotOp::DotScaled)
            | Op::Scan(ScanOp::CumSum | ScanOp::CumProd | ScanOp::Custom)
            | Op::Elementwise(_)
            | Op::Create(_)
            | Op::Memory(_)
            | Op::Random(_)
            | Op::Control(_)
            | Op::Host(_)
            | Op::Target => self.keep(block, id),
        }
    }

    fn buffer(&mut self, elements: u32, bytes: u32) -> usize {
        self.kernel.buffers.push(Buffer::new(elements * bytes));
        self.kernel.buffers.len() - 1
    }

    fn bytes(&self, v: ValueId) -> u32 {
        element_bytes(self.ty(v).elem()) as u32
    }

    /// Stores a tile to a buffer.
    fn store(&mut self, block: BlockId, v: ValueId, place: &Slot) {
        let (buffer, placement) = (BufferRef::whole(place.buffer), place.placement.clone());
        let store =
            SharedStore { buffer, placement, chunked: false, ahead: false, remote: None, access: None };
        self.gpu(block, store, &[v], &[]);
    }

    /// Loads from a buffer; returns the instruction.
    fn load(&mut self, block: BlockId, place: &Slot, ty: TypeId, layout: Option<LayoutId>) -> InstId {
        let (buffer, placement) = (BufferRef::whole(place.buffer), place.placement.clone());
        self.gpu(
            block,
            SharedLoad { buffer, placement, own: false, remote: None, vector: None },
            &[],
            &[(ty, layout)],
        )
    }

    /// Loads the result number `n` of an instruction.
    fn load_result(&mut self, block: BlockId, place: &Slot, inst: &Inst, n: usize) -> Option<InstId> {
        let r = inst.results.get(n).copied()?;
        let (ty, layout) = (self.kernel.func().ty(r), self.layout_id(r));
        Some(self.load(block, place, ty, layout))
    }

    /// One of the threads that own the same element acts for all of them; its result is shared with the others, which
    /// would read another value themselves.
    fn broadcast_result(&mut self, block: BlockId, id: InstId, inst: &Inst) {
        let Some(r) = inst.results.first().copied() else { return self.keep(block, id) };
        let alone = self.alone
            || self.kernel.layout(r).is_some_and(|l| {
                l.atom().free_bits(InDim::Lane) == 0 && l.atom().free_bits(InDim::Warp) == 0
            });
        if alone || self.uses.get(r.index()).is_none_or(|n| *n == 0) {
            return self.keep(block, id);
        }
        let (ty, layout) = (self.kernel.func().ty(r), self.layout_id(r));
        let own = self.add(block, inst.op, &inst.operands, inst.attrs.clone(), &[(ty, layout)]);
        let Some(own) = self.kernel.func().insts[own].results.first().copied() else { return };
        let (buffer, strides) = self.stored(block, own);
        self.becomes_load(block, id, inst, 0, &strided(buffer, 0, &strides));
    }

    fn convert(&mut self, block: BlockId, id: InstId, inst: &Inst) {
        let (Some(x), Some(r)) = (inst.operands.first().copied(), inst.results.first().copied()) else {
            return;
        };
        let (Some(from), Some(to)) = (self.kernel.layout(x), self.kernel.layout(r)) else { return };
        if conversion::in_warp(from, to, self.bytes(x)).is_some() {
            return self.keep(block, id);
        }
        let bases = conversion::swizzle(from, to, self.bytes(x), self.kernel.options.spec);
        let elements = self.shape(x).iter().map(|n| padded(*n)).product();
        let buffer = self.buffer(elements, self.bytes(x));
        let place = Slot { buffer, placement: Placement::Swizzled { bases } };
        self.store(block, x, &place);
        if let Some(load) = self.load_result(block, &place, inst, 0) {
            self.becomes(id, load);
        }
    }

    /// A buffer in row-major order.
    fn rows(&mut self, v: ValueId) -> (usize, Vec<i64>) {
        let shape = self.shape(v);
        let buffer = self.buffer(shape.iter().product(), self.bytes(v));
        (buffer, row_major(&shape))
    }

    fn stored(&mut self, block: BlockId, v: ValueId) -> (usize, Vec<i64>) {
        let (buffer, strides) = self.rows(v);
        self.store(block, v, &strided(buffer, 0, &strides));
        (buffer, strides)
    }

    fn reduce(&mut self, block: BlockId, id: InstId, inst: &Inst, op: ReduceOp) {
        let Some(x) = inst.operands.first().copied() else { return };
        let axis = axis_of(inst);
        let Some((part, starts)) = self.kernel.layout(x).map(|l| l.partial(axis)) else { return };
        let warps = starts.len() as u32;
        if warps == 1 {
            return self.keep(block, id);
        }
        let wide = part.gathered(axis, warps.trailing_zeros());
        let (part, wide) = (self.kernel.layouts.intern(part), self.kernel.layouts.intern(wide));
        let attrs = inst.attrs.clone().with("part", Attr::Bool(true));
        let states = self.states(inst, op, axis, warps);
        let results: Vec<_> = states.iter().map(|t| (*t, Some(part))).collect();
        let parts = self.add(block, inst.op, &inst.operands, attrs, &results);
        let func = &mut self.kernel.module.funcs[tk_tile::FuncId(0)];
        func.insts[parts].blocks = inst.blocks.clone();
        let parts = func.insts[parts].results.clone();
        let merged = self.exchanged(block, &parts, wide);
        // A warp that owns only padding has no result.
        let extent = self.shape(x).get(axis).copied().unwrap_or(1);
        let real = starts.iter().filter(|s| **s < extent).count();
        let attrs = inst.attrs.clone().with("merge", Attr::Bool(true)).with("k", Attr::Int(real as i64));
        let results: Vec<_> =
            inst.results.iter().map(|r| (self.kernel.func().ty(*r), self.layout_id(*r))).collect();
        let last = self.add(block, inst.op, &merged, attrs, &results);
        let func = &mut self.kernel.module.funcs[tk_tile::FuncId(0)];
        let copies = inst.blocks.iter().map(|b| copied(func, *b, &mut Renames::default())).collect();
        func.insts[last].blocks = copies;
        self.becomes(id, last);
    }

    /// The types of the partial results of the warps that share an axis.
    fn states(&mut self, inst: &Inst, op: ReduceOp, axis: usize, warps: u32) -> Vec<TypeId> {
        let Some(x) = inst.operands.first().copied() else { return vec![] };
        let mut shape = self.shape(x);
        shape.get_mut(axis).into_iter().for_each(|n| *n = warps);
        let elems: Vec<ElemType> = if op == ReduceOp::Custom {
            inst.operands.iter().map(|v| self.ty(*v).elem().clone()).collect()
        } else {
            let from = self.ty(x).dtype().unwrap_or(DType::I32);
            let to = inst.results.first().and_then(|r| self.ty(*r).dtype()).unwrap_or(from);
            state(op, from, to).into_iter().map(ElemType::Scalar).collect()
        };
        let types = &mut self.kernel.module.types;
        elems.into_iter().map(|elem| types.intern(Type::Tile { elem, shape: shape.clone() })).collect()
    }

    /// Tiles in another layout, through shared memory: all are stored before the first one is loaded, so that one
    /// barrier suffices.
    fn exchanged(&mut self, block: BlockId, tiles: &[ValueId], layout: LayoutId) -> Vec<ValueId> {
        let insts = |l: &Self| l.kernel.func().blocks[block].insts.len();
        let begin = insts(self);
        let out = tiles.iter().map(|v| self.converted_to(block, *v, Some(layout))).collect();
        let func = &mut self.kernel.module.funcs[tk_tile::FuncId(0)];
        let (of, blocks) = (&func.insts, &mut func.blocks);
        // A stable sort: only stores and loads.
        if let Some(made) = blocks[block].insts.get_mut(begin..) {
            made.sort_by_key(|i| matches!(GpuOp::of(&of[*i]), Some(GpuOp::SharedLoad(_))));
        }
        out
    }

    fn rearrange(&mut self, block: BlockId, id: InstId, inst: &Inst, op: ShapeOp) {
        let (Some(x), Some(r)) = (inst.operands.first().copied(), inst.results.first().copied()) else {
            return;
        };
        let (from, to) = (self.shape(x), self.shape(r));
        if (to.is_empty() || from.is_empty()) && op != ShapeOp::Split {
            // One element, which every thread owns.
            return self.keep(block, id);
        }
        let in_place = match (op, self.kernel.layout(x), self.kernel.layout(r)) {
            (ShapeOp::Permute | ShapeOp::Broadcast, _, _) => true,
            (ShapeOp::Reshape, Some(a), Some(b)) => {
                crate::ir::attrs::is_unit(&from, &to) || a.reshaped(&from, &to).as_ref() == Some(b)
            }
            (ShapeOp::Join, Some(a), Some(b)) => a.paired().as_ref() == Some(b),
            (ShapeOp::Split, Some(a), Some(b)) => b.paired().as_ref() == Some(a),
            (ShapeOp::Flip | ShapeOp::Slice | ShapeOp::Cat | ShapeOp::Interleave, _, _) => false,
            (ShapeOp::Reshape | ShapeOp::Join | ShapeOp::Split, _, _) => false,
        };
        if in_place {
            return self.keep(block, id);
        }
        let strides = row_major(&to);
        match op {
            ShapeOp::Flip | ShapeOp::Slice | ShapeOp::Reshape | ShapeOp::Permute | ShapeOp::Broadcast => {
                let (buffer, rows) = self.stored(block, x);
                let (start, strides) = match op {
                    ShapeOp::Flip => flipped(&from, &rows, axis_of(inst)),
                    ShapeOp::Slice => {
                        let starts = inst.attrs.ints("starts").unwrap_or(&[]);
                        (starts.iter().zip(&rows).map(|(a, b)| a * b).sum(), rows)
                    }
                    ShapeOp::Reshape
                    | ShapeOp::Permute
                    | ShapeOp::Broadcast
                    | ShapeOp::Join
                    | ShapeOp::Split
                    | ShapeOp::Cat
                    | ShapeOp::Interleave => (0, strides),
                };
                self.becomes_load(block, id, inst, 0, &strided(buffer, start, &strides));
            }
            ShapeOp::Split => {
                let (buffer, _) = self.stored(block, x);
                let strides: Vec<i64> = strides.iter().map(|s| s * 2).collect();
                let loads: Vec<InstId> = (0..2)
                    .filter_map(|n| self.load_result(block, &strided(buffer, n, &strides), inst, n as usize))
                    .collect();
                self.split_results(id, &loads);
            }
            ShapeOp::Join | ShapeOp::Interleave | ShapeOp::Cat => {
                let (buffer, rows) = self.rows(r);
                let mut start = 0;
                for (n, v) in inst.operands.iter().enumerate() {
                    let (at, place) = match op {
                        ShapeOp::Join => (n as i64, rows.iter().take(from.len()).copied().collect()),
                        ShapeOp::Interleave => {
                            let mut place = rows.clone();
                            place.last_mut().into_iter().for_each(|s| *s *= 2);
                            (n as i64, place)
                        }
                        ShapeOp::Cat
                        | ShapeOp::Flip
                        | ShapeOp::Slice
                        | ShapeOp::Reshape
                        | ShapeOp::Permute
                        | ShapeOp::Broadcast
                        | ShapeOp::Split => (start, rows.clone()),
                    };
                    self.store(block, *v, &strided(buffer, at, &place));
                    let axis = axis_of(inst);
                    let extent = self.shape(*v).get(axis).copied().unwrap_or(0);
                    start += i64::from(extent) * rows.get(axis).copied().unwrap_or(0);
                }
                self.becomes_load(block, id, inst, 0, &strided(buffer, 0, &rows));
            }
        }
    }

    fn becomes_load(&mut self, block: BlockId, id: InstId, inst: &Inst, n: usize, place: &Slot) {
        if let Some(load) = self.load_result(block, place, inst, n) {
            self.becomes(id, load);
        }
    }

    /// One load for each result of an instruction with several.
    fn split_results(&mut self, id: InstId, loads: &[InstId]) {
        let func = &mut self.kernel.module.funcs[tk_tile::FuncId(0)];
        let results = func.insts[id].results.clone();
        for (v, load) in results.iter().zip(loads) {
            func.values[*v].def = tk_tile::Def::Inst(*load, 0);
            func.insts[*load].results = vec![*v];
        }
    }

    fn gather(&mut self, block: BlockId, id: InstId, inst: &Inst) {
        let [x, at] = inst.operands.as_slice() else { return };
        let Some(r) = inst.results.first().copied() else { return };
        let (buffer, strides) = self.stored(block, *x);
        let axis = axis_of(inst);
        let extent = self.shape(*x).get(axis).copied().unwrap_or(1);
        let gather = SharedGather { buffer, placement: Strides { start: 0, strides }, axis, extent };
        let (ty, layout) = (self.kernel.func().ty(r), self.layout_id(r));
        let new = self.gpu(block, gather, &[*at], &[(ty, layout)]);
        self.becomes(id, new);
    }

    fn histogram(&mut self, block: BlockId, id: InstId, inst: &Inst) {
        let Some(r) = inst.results.first().copied() else { return };
        let (ty, layout) = (self.kernel.func().ty(r), self.layout_id(r));
        let (buffer, strides) = self.rows(r);
        let place = strided(buffer, 0, &strides);
        let zero = Attrs::new().with("value", Attr::Scalar(Scalar::zero(DType::I32)));
        let zeros = self.add(block, Op::Create(CreateOp::Const), &[], zero, &[(ty, layout)]);
        if let Some(v) = self.kernel.func().insts[zeros].results.first().copied() {
            self.store(block, v, &place);
        }
        let bins = self.shape(r).first().copied().unwrap_or(1);
        self.gpu(block, SharedAdd { buffer, bins }, &inst.operands, &[]);
        self.becomes_load(block, id, inst, 0, &place);
    }

    fn one(
        &mut self,
        block: BlockId,
        op: Op,
        operands: &[ValueId],
        attrs: Attrs,
        result: (TypeId, Option<LayoutId>),
    ) -> Option<ValueId> {
        let id = self.add(block, op, operands, attrs, &[result]);
        self.kernel.func().insts[id].results.first().copied()
    }

    /// A tile in a layout: itself, or a conversion, lowered.
    fn converted_to(&mut self, block: BlockId, v: ValueId, layout: Option<LayoutId>) -> ValueId {
        if self.layout_id(v) == layout {
            return v;
        }
        let ty = self.kernel.func().ty(v);
        let id = self.gpu(block, Convert {}, &[v], &[(ty, layout)]);
        let convert = self.kernel.func().insts[id].clone();
        self.kernel.module.funcs[tk_tile::FuncId(0)].blocks[block].insts.pop();
        self.convert(block, id, &convert);
        convert.results.first().copied().unwrap_or(v)
    }
}

/// The placement of a tile in shared memory.
struct Slot {
    buffer: usize,
    placement: Placement,
}

fn strided(buffer: usize, start: i64, strides: &[i64]) -> Slot {
    Slot { buffer, placement: Placement::Strided(Strides { start, strides: strides.to_vec() }) }
}

fn flipped(shape: &[u32], rows: &[i64], axis: usize) -> (i64, Vec<i64>) {
    let mut strides = rows.to_vec();
    let mut start = 0;
    if let (Some(s), Some(n)) = (strides.get_mut(axis), shape.get(axis)) {
        start = *s * (i64::from(*n) - 1);
        *s = -*s;
    }
    (start, strides)
}
