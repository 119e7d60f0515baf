//! Computes the *anchor* layout of each tile, in which it is computed once: the first half of layout assignment.
//!
//! Loads, stores and matrix products are anchors: they choose the layout that suits memory or the instruction. From
//! there layouts propagate forward through elementwise operations, reductions and loops. Values that are cheap and
//! depend on no anchor (element indices, constants, masks, pointers made of these) are *rematerializable*: they have no
//! layout of their own and are computed again in each layout in which they are needed
//! ([`crate::passes::assign_layouts`]).
//!
//! Requires a verified kernel without calls.

use std::collections::{BTreeMap, BTreeSet};

use tk_ops::{ControlOp, CreateOp, DotOp, ElementwiseOp, Group, MemoryOp, Op, ScanOp, ShapeOp};
use tk_tile::{BlockId, Def, Func, Id, Inst, InstId, Module, Type, ValueId, rewrite};

use super::REGISTER;
use crate::analysis::axis::AxisInfo;
use crate::analysis::coalesce::{Coalescing, access};
use crate::analysis::dot_chains::{chained, sources};
use crate::analysis::mma::kind;
use crate::analysis::packed_operands::{Word, packed_operands};
use crate::ir::attrs::{axis_of, is_unit, permutation, units};
use crate::ir::kernel::{CompileOptions, LayoutId, Layouts};
use crate::layout::{Layout, Threads, cut, is_relabelling};
use crate::target::mma::{self, Tiles};

/// Where a value is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueLayout {
    /// Uniform over threads: scalars and views.
    Uniform,
    /// Computed once, in this layout.
    Fixed(LayoutId),
    /// Wherever it is needed; with the layout in which it costs nothing, if any.
    Rematerializable(Option<LayoutId>),
}

impl ValueLayout {
    /// The layout that it has or prefers.
    pub fn layout(self) -> Option<LayoutId> {
        match self {
            ValueLayout::Fixed(l) => Some(l),
            ValueLayout::Rematerializable(l) => l,
            ValueLayout::Uniform => None,
        }
    }
}

/// A tile that is scanned along its last dimension.
#[derive(Clone, Copy, Debug)]
struct Scanned<'a> {
    shape: &'a [u32],
    /// The neighbours that a thread has.
    neighbours: u32,
}

/// The anchor layouts of a kernel.
#[derive(Debug)]
pub struct Anchors<'a> {
    module: &'a Module,
    func: &'a Func,
    axis: &'a AxisInfo,
    options: &'a CompileOptions,
    threads: Threads,
    /// The layouts so far.
    pub layouts: Layouts,
    value_layouts: Vec<Option<ValueLayout>>,
    /// Chained products.
    chained: BTreeSet<InstId>,
    /// Shapes that are reduced, and along which dimension.
    folded: BTreeSet<(&'a [u32], usize)>,
    /// By its shape what is scanned along its last dimension, possibly after it has been divided.
    scanned: BTreeMap<&'a [u32], Scanned<'a>>,
    /// How products pack values into words, where loads pass through registers.
    packed: BTreeMap<ValueId, Word>,
}

impl<'a> Anchors<'a> {
    /// Chooses the anchor layouts.
    pub fn new(
        module: &'a Module,
        func: &'a Func,
        axis: &'a AxisInfo,
        options: &'a CompileOptions,
    ) -> Anchors<'a> {
        let value_layouts = vec![None; func.values.len()];
        let threads = options.threads();
        let chained = chained(func);
        let layouts = Layouts::default();
        let (folded, scanned) = (BTreeSet::new(), BTreeMap::new());
        let packed = if options.spec.has_async_copy {
            BTreeMap::new()
        } else {
            packed_operands(module, func, options.spec)
        };
        let mut n = Anchors {
            module,
            func,
            axis,
            options,
            threads,
            layouts,
            value_layouts,
            chained,
            folded,
            scanned,
            packed,
        };
        let insts = tk_tile::walk::insts(func).into_iter().map(|i| &func.insts[i]);
        // Tiles that are reduced beside products are mostly their accumulators, which have the layout of the
        // instruction.
        if !insts.clone().any(|i| matches!(i.op, Op::Dot(_))) {
            n.folded = insts.clone().filter_map(|i| n.folds(i)).collect();
        }
        n.scanned = insts.filter_map(|i| n.scans(i)).collect();
        n.block(func.body);
        n
    }

    /// Where a value is computed.
    pub fn value_layout(&self, v: ValueId) -> ValueLayout {
        self.value_layouts.get(v.index()).copied().flatten().unwrap_or(ValueLayout::Uniform)
    }

    /// The layout in which a tile exists: its own, or the preferred one of a rematerializable value.
    pub fn wanted(&mut self, v: ValueId) -> LayoutId {
        match self.value_layout(v).layout() {
            Some(l) => l,
            None => {
                let shape = self.shape(v).to_vec();
                self.default(&shape)
            }
        }
    }

    /// The best order and vector for the accesses of an instruction.
    pub fn access(&self, inst: &Inst) -> Option<Coalescing> {
        access(self.module, self.func, self.axis, self.options, inst)
    }

    fn ty(&self, v: ValueId) -> &'a Type {
        self.module.types.get(self.func.ty(v))
    }

    fn shape(&self, v: ValueId) -> &'a [u32] {
        self.ty(v).shape().unwrap_or(&[])
    }

    fn is_tile(&self, v: ValueId) -> bool {
        !self.shape(v).is_empty()
    }

    /// The layout of a tile without any anchor: rows of neighbours.
    pub fn default(&mut self, shape: &[u32]) -> LayoutId {
        let order: Vec<usize> = (0..shape.len()).rev().collect();
        self.blocked(shape, &order, DEFAULT_VECTOR)
    }

    fn blocked(&mut self, shape: &[u32], order: &[usize], vector: u32) -> LayoutId {
        // Threads come before vectors: every thread gets work first.
        let each = (shape.iter().product::<u32>() / self.threads.count()).max(1);
        let vector = vector.min(each);
        if let Some(layout) = self.scan_of(shape, order, vector) {
            return self.layouts.intern(layout);
        }
        let is_folded = order.first().is_some_and(|d| self.folded.contains(&(shape, *d)))
            && !self.is_shared_by_blocks(shape, order);
        self.layouts.intern(if is_folded {
            // The lanes of a warp are neighbours all the same.
            Layout::folded(shape, order, vector, self.threads)
        } else {
            Layout::blocked(shape, order, vector, self.threads)
        })
    }

    /// Returns true if all blocks of a cluster reduce each row: a lane then has the same columns of all rows.
    fn is_shared_by_blocks(&self, shape: &[u32], order: &[usize]) -> bool {
        let rows = order.iter().skip(1).filter_map(|d| shape.get(*d)).product::<u32>();
        self.options.blocks > 1 && rows < 1 << self.threads.warp_bits
    }

    /// Returns true if a tile of this shape is reduced along its last dimension.
    fn is_folded_along_rows(&self, v: ValueId) -> bool {
        let shape = self.shape(v);
        shape.len().checked_sub(1).is_some_and(|last| self.folded.contains(&(shape, last)))
    }

    /// The shape and the dimension that an instruction reduces.
    fn folds(&self, inst: &Inst) -> Option<(&'a [u32], usize)> {
        let x = inst.operands.first().filter(|_| matches!(inst.op, Op::Reduce(_)))?;
        Some((self.shape(*x), axis_of(inst)))
    }

    /// What an instruction scans along its last dimension, and the shape of the tile that becomes that.
    fn scans(&self, inst: &Inst) -> Option<(&'a [u32], Scanned<'a>)> {
        let is_scan = matches!(inst.op, Op::Scan(ScanOp::CumSum | ScanOp::CumProd | ScanOp::Custom));
        let x = inst.operands.first().filter(|_| is_scan)?;
        let to = self.shape(*x);
        let divided = rewrite::operand_of(self.func, *x, Op::Shape(ShapeOp::Reshape)).map(|x| self.shape(x));
        let from = divided.filter(|from| is_relabelling(from, to)).unwrap_or(to);
        let neighbours = self.neighbours(*x, axis_of(inst));
        (axis_of(inst) + 1 == to.len()).then_some((from, Scanned { shape: to, neighbours }))
    }

    /// The layout of a tile of this shape that moves nothing before it is scanned, if accesses are as wide as its neighbours.
    fn scan_of(&self, shape: &[u32], order: &[usize], vector: u32) -> Option<Layout> {
        let Scanned { shape: to, neighbours } = *self.scanned.get(shape)?;
        let layout = Layout::in_warps(to, to.len().checked_sub(1)?, neighbours, self.threads);
        let fits = order.first().is_some_and(|d| d + 1 == shape.len()) && neighbours <= vector;
        if shape == to { Some(layout) } else { layout.reshaped(to, shape) }.filter(|_| fits)
    }

    /// The layout for an access to memory.
    pub fn coalesced(&mut self, shape: &[u32], access: &Coalescing) -> LayoutId {
        self.blocked(shape, &access.order, access.vector)
    }

    /// The layout of a load: where its elements pass through registers on the way to a product that packs neighbours along
    /// K into words, each thread loads all elements of a word, and packs them when it stores them ([`packed_operands`]); not
    /// where a read transposes. Accesses become as narrow as a register at the least; where they are narrower anyway, each
    /// thread loads what a lane multiplies.
    fn loaded(&mut self, r: ValueId, shape: &[u32], access: &Coalescing) -> LayoutId {
        let (Some(word), [fastest, next, ..]) = (self.packed.get(&r), access.order.as_slice()) else {
            return self.coalesced(shape, access);
        };
        let each = (shape.iter().product::<u32>() / self.threads.count()).max(1);
        let narrowest = (REGISTER / access.bytes).clamp(1, access.vector);
        let is_narrow = access.vector * access.bytes < REGISTER;
        let most = shape.get(word.along).map_or(1, |n| 1 << cut(*n).log2);
        let of_thread = if is_narrow { word.of_lane } else { word.elements };
        let of_thread = of_thread.min(self.options.spec.vector_bytes / access.bytes).min(most);
        if word.along == *next && (is_narrow || !word.is_transposed) {
            let rows = of_thread.min(each / narrowest).max(1);
            let vector = access.vector.min(each / rows);
            return self.layouts.intern(Layout::blocked_rows(
                shape,
                &access.order,
                (vector, rows),
                self.threads,
            ));
        }
        let vector = if word.along == *fastest { access.vector.max(of_thread) } else { access.vector };
        self.blocked(shape, &access.order, vector)
    }

    /// The layout of two scalars as a tile: each thread owns both.
    pub fn pair(&mut self) -> LayoutId {
        self.layouts.intern(Layout::blocked(&[2], &[0], 2, self.threads))
    }

    /// The layout in which one warp owns all of a dimension, neighbours first in registers, then in lanes. Along the last
    /// dimension, which mostly has neighbours in memory, they are those of an access, and the rest follows in registers;
    /// along another each lane has all that it can, so that lanes exchange least.
    pub fn along(&mut self, v: ValueId, axis: usize) -> LayoutId {
        let layout = Layout::in_warps(self.shape(v), axis, self.neighbours(v, axis), self.threads);
        self.layouts.intern(layout)
    }

    /// The neighbours along an axis that each thread has in [`Self::along`].
    fn neighbours(&self, v: ValueId, axis: usize) -> u32 {
        let shape = self.shape(v);
        let bits = shape.get(axis).map_or(0, |n| cut(*n).log2);
        let most = 1 << bits.saturating_sub(self.threads.lane_bits);
        let bytes = self.ty(v).dtype().map_or(8, |d| d.bytes() as u32);
        let of_access = (self.options.spec.vector_bytes / bytes.max(1)).max(1);
        if axis + 1 == shape.len() { of_access.min(most) } else { most }
    }

    fn set(&mut self, v: ValueId, value_layout: ValueLayout) {
        let value_layout = if self.is_tile(v) { value_layout } else { ValueLayout::Uniform };
        if let Some(slot) = self.value_layouts.get_mut(v.index()) {
            *slot = Some(value_layout);
        }
    }

    fn block(&mut self, block: BlockId) {
        for i in self.func.blocks[block].insts.clone() {
            self.inst(i);
        }
    }

    fn inst(&mut self, id: InstId) {
        let inst = &self.func.insts[id];
        match inst.op {
            Op::Control(ControlOp::For) => self.for_loop(inst),
            Op::Control(ControlOp::While) => self.while_loop(inst),
            Op::Control(ControlOp::If) => {
                inst.blocks.iter().for_each(|b| self.block(*b));
                let arms: Vec<ValueId> = inst.blocks.first().map_or(vec![], |b| self.ends(*b).to_vec());
                for (r, v) in inst.results.iter().zip(arms) {
                    if self.is_tile(*r) {
                        let l = self.wanted(v);
                        self.set(*r, ValueLayout::Fixed(l));
                    }
                }
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
            | Op::Target => {
                for r in &inst.results {
                    if self.is_tile(*r) {
                        let value_layout = self.result(id, inst, *r);
                        self.set(*r, value_layout);
                    }
                }
            }
        }
    }

    fn ends(&self, block: BlockId) -> &'a [ValueId] {
        rewrite::yielded(self.func, block)
    }

    /// A loop-carried value keeps the layout with which it enters; if that is rematerializable, or an iteration yields
    /// the result of a product, the layout of the yielded value, or of its user in the loop. `iteration` analyses the
    /// blocks once.
    fn carried(
        &mut self,
        args: &[ValueId],
        init: &[ValueId],
        bodies: &[BlockId],
        iteration: impl Fn(&mut Self),
    ) {
        let ends = bodies.last().map_or(&[][..], |b| self.ends(*b)).to_vec();
        let skip = ends.len().saturating_sub(args.len());
        let mut open = vec![];
        for (n, (a, i)) in args.iter().zip(init).enumerate() {
            let of_product = ends.get(n + skip).is_some_and(|v| !sources(self.func, *v).is_empty());
            match self.value_layout(*i) {
                ValueLayout::Fixed(l) if !of_product => self.set(*a, ValueLayout::Fixed(l)),
                ValueLayout::Fixed(_) | ValueLayout::Rematerializable(_) | ValueLayout::Uniform => {
                    self.set(*a, ValueLayout::Rematerializable(None));
                    open.push(*a);
                }
            }
        }
        iteration(self);
        for (n, a) in args.iter().enumerate().filter(|(_, a)| open.contains(a)) {
            if !self.is_tile(*a) {
                continue;
            }
            let yielded = ends.get(n + skip).and_then(|v| self.value_layout(*v).layout());
            let layout = yielded.or_else(|| self.user(*a, bodies));
            let shape = self.shape(*a).to_vec();
            let layout = layout.unwrap_or_else(|| self.default(&shape));
            self.set(*a, ValueLayout::Fixed(layout));
        }
        iteration(self);
    }

    /// The layout of values that are computed or loaded elementwise with a value inside of these blocks.
    fn user(&self, v: ValueId, bodies: &[BlockId]) -> Option<LayoutId> {
        let mut reached = vec![v];
        for b in bodies {
            for i in tk_tile::walk::insts_in(self.func, *b) {
                let inst = &self.func.insts[i];
                let like =
                    matches!(inst.op, Op::Elementwise(_) | Op::Memory(MemoryOp::PtrAdd | MemoryOp::Load));
                if !like || !inst.operands.iter().any(|o| reached.contains(o)) {
                    continue;
                }
                for r in &inst.results {
                    match self.value_layout(*r) {
                        ValueLayout::Fixed(l) => return Some(l),
                        ValueLayout::Rematerializable(_) | ValueLayout::Uniform => reached.push(*r),
                    }
                }
            }
        }
        None
    }

    fn for_loop(&mut self, inst: &Inst) {
        let ([_, _, _, init @ ..], [body]) = (inst.operands.as_slice(), inst.blocks.as_slice()) else {
            return;
        };
        let args = self.func.blocks[*body].args.clone();
        let Some((iv, args)) = args.split_first() else { return };
        self.set(*iv, ValueLayout::Uniform);
        self.carried(args, init, &[*body], |n| n.block(*body));
        for (r, a) in inst.results.iter().zip(args) {
            self.set(*r, self.value_layout(*a));
        }
    }

    fn while_loop(&mut self, inst: &Inst) {
        let [decides, body] = inst.blocks.as_slice() else { return };
        let args = self.func.blocks[*decides].args.clone();
        let forwarded: Vec<ValueId> = self.ends(*decides).iter().skip(1).copied().collect();
        let inner = self.func.blocks[*body].args.clone();
        // Forwarded values are known after the first block has been analysed.
        self.carried(&args, &inst.operands, &[*decides, *body], |n| {
            n.block(*decides);
            for ((b, r), v) in inner.iter().zip(&inst.results).zip(&forwarded) {
                if n.is_tile(*b) {
                    let layout = n.wanted(*v);
                    n.set(*b, ValueLayout::Fixed(layout));
                    n.set(*r, ValueLayout::Fixed(layout));
                }
            }
            n.block(*body);
        });
    }

    /// The layout of the first of these tiles that has or prefers one.
    fn like(&self, values: &[ValueId]) -> Option<LayoutId> {
        let tiles = || values.iter().filter(|v| self.is_tile(**v)).map(|v| self.value_layout(*v));
        let fixed = tiles().find_map(|h| if let ValueLayout::Fixed(l) = h { Some(l) } else { None });
        fixed.or_else(|| tiles().find_map(ValueLayout::layout))
    }

    fn like_or_default(&mut self, values: &[ValueId], result: ValueId) -> LayoutId {
        let shape = self.shape(result).to_vec();
        let same: Vec<ValueId> = values.iter().copied().filter(|v| self.shape(*v) == shape).collect();
        self.like(&same).unwrap_or_else(|| self.default(&shape))
    }

    fn result(&mut self, id: InstId, inst: &Inst, r: ValueId) -> ValueLayout {
        let ops = &inst.operands;
        match inst.op {
            Op::Create(
                CreateOp::Const | CreateOp::Arange | CreateOp::Splat | CreateOp::Undef | CreateOp::Table,
            ) => ValueLayout::Rematerializable(None),
            Op::Elementwise(op) => self.elementwise(is_cheap(op), ops, r),
            Op::Control(ControlOp::MultipleOf | ControlOp::MaxContiguous) | Op::Memory(MemoryOp::PtrAdd) => {
                self.elementwise(true, ops, r)
            }
            Op::Memory(MemoryOp::ViewInside) => ValueLayout::Rematerializable(None),
            Op::Memory(MemoryOp::Load | MemoryOp::ViewLoad) => {
                let shape = self.shape(r).to_vec();
                let layout = match self.access(inst) {
                    Some(a) => self.loaded(r, &shape, &a),
                    None => self.default(&shape),
                };
                ValueLayout::Fixed(layout)
            }
            // A reduction along rows wants them in one warp; positions are rematerializable.
            Op::Memory(MemoryOp::ViewGather) if self.is_folded_along_rows(r) => {
                let shape = self.shape(r).to_vec();
                ValueLayout::Fixed(self.default(&shape))
            }
            Op::Memory(_) | Op::Atomic(_) | Op::Random(_) | Op::Control(_) | Op::Host(_) | Op::Target => {
                ValueLayout::Fixed(self.like_or_default(ops, r))
            }
            Op::Shape(op) => self.shaped(op, inst, r),
            Op::Reduce(op) => {
                let Some(x) = ops.first() else { return ValueLayout::Rematerializable(None) };
                let axis = axis_of(inst);
                let from = if op == tk_ops::ReduceOp::Custom && inst.attrs.flag("ordered") {
                    self.along(*x, axis)
                } else {
                    self.wanted(*x)
                };
                let layout = self.layouts.get(from).without(axis);
                ValueLayout::Fixed(self.layouts.intern(layout))
            }
            Op::Scan(op) => self.scanned(op, inst, r),
            Op::Dot(DotOp::Dot) => ValueLayout::Fixed(self.product(id, inst, r)),
            Op::Dot(DotOp::DotScaled) => {
                let shape = self.shape(r).to_vec();
                ValueLayout::Fixed(self.plain_product(&shape))
            }
        }
    }

    /// The shared memory of a program.
    pub fn shared_bytes(&self) -> u32 {
        self.options.spec.shared_bytes
    }

    /// The accumulator layout of a matrix product: that of the instruction, if it has one. Rows of chained products
    /// stay in a warp, where the next product reads them.
    fn product(&mut self, id: InstId, inst: &Inst, r: ValueId) -> LayoutId {
        let (shape, spec, warps) = (self.shape(r).to_vec(), self.options.spec, self.options.all_warps());
        let tiles = || -> Option<Tiles> {
            let kind = kind(spec, self.module, self.func, inst)?;
            let [m, n] = shape.as_slice() else { return None };
            let chained = self.chained.contains(&id);
            // The first among equals computes more at once; before that, one whose rows stay in a warp where they should, and in lanes.
            mma::find(spec, kind)
                .filter_map(|matrix| Tiles::choose(matrix, [*m, *n], self.threads, chained))
                .filter(|t| t.least_registers() <= spec.registers_of_launch(warps))
                .min_by_key(|t| {
                    let chained = chained.then(|| (t.shares(), !t.matrix.form.exchanges()));
                    (t.work(), chained)
                })
        };
        match tiles().and_then(|t| t.accumulator().layout()) {
            Some(layout) => self.layouts.intern(layout),
            None => self.plain_product(&shape),
        }
    }

    /// The accumulator layout of a product of plain multiplications: a small square of neighbours in each thread, since
    /// each operand element that is read serves a row or column of it.
    fn plain_product(&mut self, shape: &[u32]) -> LayoutId {
        self.blocked(shape, &[1, 0], DEFAULT_VECTOR)
    }

    fn elementwise(&mut self, cheap: bool, ops: &[ValueId], r: ValueId) -> ValueLayout {
        let free = ops
            .iter()
            .filter(|v| self.is_tile(**v))
            .all(|v| matches!(self.value_layout(*v), ValueLayout::Rematerializable(_)));
        if free && cheap {
            return ValueLayout::Rematerializable(self.like(ops));
        }
        ValueLayout::Fixed(self.like_or_default(ops, r))
    }

    fn shaped(&mut self, op: ShapeOp, inst: &Inst, r: ValueId) -> ValueLayout {
        let to = self.shape(r).to_vec();
        let Some(x) = inst.operands.first().copied() else { return ValueLayout::Rematerializable(None) };
        let from = self.shape(x).to_vec();
        let layout = match op {
            ShapeOp::Broadcast => return ValueLayout::Rematerializable(None),
            ShapeOp::Reshape if is_unit(&from, &to) => {
                let hint = self.value_layout(x).layout().map(|l| units(self.layouts.get(l), &from, &to));
                return ValueLayout::Rematerializable(hint.map(|l| self.layouts.intern(l)));
            }
            ShapeOp::Permute => {
                let perm = permutation(inst);
                let own = self.value_layout(x);
                let hint = own.layout().map(|l| self.layouts.get(l).permuted(&perm));
                let hint = hint.map(|l| self.layouts.intern(l));
                return match (own, hint) {
                    // A transposed accumulator moves where it is stored, after casts that make it narrower.
                    (ValueLayout::Fixed(_), Some(l)) if !self.is_load(x) => ValueLayout::Fixed(l),
                    _ => ValueLayout::Rematerializable(hint),
                };
            }
            // A rematerialized value is computed in the layout that a reshape takes to the requested one.
            ShapeOp::Reshape
                if matches!(self.value_layout(x), ValueLayout::Rematerializable(_))
                    && !from.is_empty()
                    && is_relabelling(&from, &to) =>
            {
                let hint =
                    self.value_layout(x).layout().and_then(|l| self.layouts.get(l).reshaped(&from, &to));
                return ValueLayout::Rematerializable(hint.map(|l| self.layouts.intern(l)));
            }
            ShapeOp::Reshape if !from.is_empty() => {
                let l = self.wanted(x);
                self.layouts.get(l).reshaped(&from, &to)
            }
            ShapeOp::Join if from.is_empty() => return ValueLayout::Fixed(self.pair()),
            ShapeOp::Join => {
                let l = self.wanted(x);
                self.layouts.get(l).paired()
            }
            ShapeOp::Split => {
                let l = self.wanted(x);
                Some(self.layouts.get(l).halves())
            }
            ShapeOp::Reshape | ShapeOp::Flip | ShapeOp::Slice | ShapeOp::Cat | ShapeOp::Interleave => None,
        };
        ValueLayout::Fixed(match layout {
            Some(l) => self.layouts.intern(l),
            None => self.default(&to),
        })
    }

    fn is_load(&self, v: ValueId) -> bool {
        let Def::Inst(i, _) = self.func.values[v].def else { return false };
        matches!(self.func.insts[i].op, Op::Memory(MemoryOp::Load | MemoryOp::ViewLoad))
    }

    fn scanned(&mut self, op: ScanOp, inst: &Inst, r: ValueId) -> ValueLayout {
        let shape = self.shape(r).to_vec();
        ValueLayout::Fixed(match op {
            // All results have the layout of the first, whatever their types are.
            ScanOp::CumSum | ScanOp::CumProd | ScanOp::Custom => {
                let first = inst.results.first().copied().unwrap_or(r);
                self.along(first, axis_of(inst))
            }
            ScanOp::Gather => {
                let at: Vec<ValueId> = inst.operands.iter().skip(1).copied().collect();
                self.like_or_default(&at, r)
            }
            ScanOp::Sort | ScanOp::TopK | ScanOp::Histogram => self.default(&shape),
        })
    }
}

/// Neighbours in a thread by default: four 32-bit registers are one access to shared memory.
const DEFAULT_VECTOR: u32 = 4;

/// Returns true for operations that are recomputed rather than moved: an instruction or two for an element.
fn is_cheap(op: ElementwiseOp) -> bool {
    !matches!(op.group(), Group::FloatUnary(_) | Group::FloatBinary(_))
}
