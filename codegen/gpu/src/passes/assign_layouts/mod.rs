//! Gives every tile a layout, and makes each change of layout an instruction.
//!
//! ```text
//! v2 = load v1 : tile[f16, 64, 64]                  v2 = load v1 : tile[f16, 64, 64] @l0
//! v3 = sum v2 {axis = 0} : tile[f16, 64]       =>   v3 = sum v2 {axis = 0} : tile[f16, 64] @l1
//! store v4, v3                                      v5 = convert v3 : tile[f16, 64] @l2
//!                                                   store v4, v5
//! ```
//!
//! Walks the kernel once. A value with a layout ([`ValueLayout::Fixed`]) is computed there, at its original position; a
//! rematerializable value is computed again in each layout that a user requires, after its operands; where a user
//! requires another layout of a value with one, a `convert` follows its definition, or comes before a cast that makes
//! elements wider, unless it is for nothing ([`unconverted_loads`]).
//!
//! Requires a verified kernel without calls. Guarantees that all operands of an instruction have the layouts that its
//! operation requires (numbered in [`crate::verify`]).

pub mod anchor;
mod unconverted_loads;

use std::collections::{BTreeMap, BTreeSet};

use tk_ops::{ControlOp, DType, ElementwiseOp, MemoryOp, Op, ReduceOp, ScanOp, ShapeOp};
use tk_tile::flow::{Flow, flow};
use tk_tile::{Attrs, BlockId, Def, Func, Id, Inst, InstId, Module, ValueId, walk};

use super::{Pass, Property, Run, TileKernel};
use crate::analysis::axis::AxisInfo;
use crate::ir::attrs::{axis_of, inverse, permutation, units};
use crate::ir::kernel::{CompileOptions, Kernel, LayoutId};
use crate::ir::op::{Convert, GpuOp};
use crate::layout::Layout;
use crate::layout::linear::InDim;
use crate::passes::assign_layouts::anchor::{Anchors, ValueLayout};

/// The pass.
pub const PASS: Pass = Pass {
    name: "assign_layouts",
    purpose: "gives every tile a layout, and makes each change of layout an instruction",
    needs: &[Property::OneFunction, Property::PlainDots, Property::TensorAccesses, Property::ShortDots],
    leaves: &[Property::Layouts],
    run: Run::AssignLayouts(assign_layouts),
};

fn assign_layouts(tile: TileKernel) -> Kernel {
    let func = &tile.module.funcs[tile.kernel];
    let (shortages, remarks) = (tile.shortages, tile.remarks);
    let mut kernel = Kernel { shortages, remarks, ..assign(&tile.module, func, tile.options) };
    unconverted_loads::run(&mut kernel);
    kernel
}

/// Lays out the kernel `func` of a module.
fn assign(module: &Module, func: &Func, options: CompileOptions) -> Kernel {
    let axis = AxisInfo::new(module, func, &options.facts);
    let anchors = Anchors::new(module, func, &axis, &options);
    let mut new = Func::new(func.name.clone(), func.kind);
    new.param_names.clone_from(&func.param_names);
    new.alias.clone_from(&func.alias);
    let mut block_of = vec![None; func.insts.len()];
    place(func, func.body, &mut block_of);
    let mut a = Assign {
        module,
        old: func,
        anchors,
        new,
        of: vec![],
        map: vec![None; func.values.len()],
        other: BTreeMap::new(),
        blocks: BTreeMap::new(),
        block_of,
    };
    let body = a.new.body;
    a.blocks.insert(func.body, body);
    a.args(func.body, body);
    a.block(func.body);
    let layouts = std::mem::take(&mut a.anchors.layouts);
    let (mut new, of) = (a.new, a.of);
    drop_unused_casts(&mut new);
    let mut out = Module { types: module.types.clone(), ..Module::default() };
    out.funcs.push(new);
    Kernel {
        module: out,
        layouts,
        value_layouts: of,
        options,
        buffers: vec![],
        vote: None,
        shortages: vec![],
        remarks: vec![],
    }
}

/// Removes casts of which each user took another layout.
fn drop_unused_casts(func: &mut Func) {
    let insts = walk::insts(func);
    let used: BTreeSet<ValueId> = insts.iter().flat_map(|i| func.insts[*i].operands.clone()).collect();
    let ids: Vec<BlockId> = func.blocks.iter().map(|(b, _)| b).collect();
    for block in ids {
        let mut insts = std::mem::take(&mut func.blocks[block].insts);
        insts.retain(|i| {
            let inst = &func.insts[*i];
            let cast = inst.op == Op::Elementwise(ElementwiseOp::Cast);
            !cast || inst.results.iter().any(|r| used.contains(r))
        });
        func.blocks[block].insts = insts;
    }
}

/// The block of each instruction.
fn place(func: &Func, block: BlockId, out: &mut Vec<Option<BlockId>>) {
    for i in &func.blocks[block].insts {
        if let Some(slot) = out.get_mut(i.index()) {
            *slot = Some(block);
        }
        for b in &func.insts[*i].blocks {
            place(func, *b, out);
        }
    }
}

struct Assign<'a> {
    module: &'a Module,
    old: &'a Func,
    anchors: Anchors<'a>,
    new: Func,
    of: Vec<Option<LayoutId>>,
    /// The new value of each old one in its own layout.
    map: Vec<Option<ValueId>>,
    /// The new values in other layouts.
    other: BTreeMap<(ValueId, LayoutId), ValueId>,
    /// The new block, being filled, of each old one.
    blocks: BTreeMap<BlockId, BlockId>,
    block_of: Vec<Option<BlockId>>,
}

impl Assign<'_> {
    fn shape(&self, v: ValueId) -> &[u32] {
        self.module.types.get(self.old.ty(v)).shape().unwrap_or(&[])
    }

    fn is_tile(&self, v: ValueId) -> bool {
        !self.shape(v).is_empty()
    }

    fn note(&mut self, new: ValueId, layout: Option<LayoutId>) {
        if self.of.len() <= new.index() {
            self.of.resize(new.index() + 1, None);
        }
        if let Some(slot) = self.of.get_mut(new.index()) {
            *slot = layout;
        }
    }

    fn bind(&mut self, old: ValueId, new: ValueId, layout: Option<LayoutId>) {
        self.note(new, layout);
        if let Some(slot) = self.map.get_mut(old.index()) {
            *slot = Some(new);
        }
    }

    /// The arguments of an old block as arguments of its new one.
    fn args(&mut self, old: BlockId, new: BlockId) {
        for v in self.old.blocks[old].args.clone() {
            let n = self.new.add_arg(new, self.old.ty(v));
            let layout = if self.is_tile(v) { Some(self.anchors.wanted(v)) } else { None };
            self.bind(v, n, layout);
        }
    }

    /// The new value of a scalar or view; of a tile, in its own layout.
    fn base(&mut self, v: ValueId) -> ValueId {
        match self.map.get(v.index()).copied().flatten() {
            Some(n) => n,
            // A rematerializable value that is used as it is.
            None => {
                let layout = self.anchors.wanted(v);
                self.want(v, layout)
            }
        }
    }

    /// The new value in a layout.
    fn want(&mut self, v: ValueId, layout: LayoutId) -> ValueId {
        if !self.is_tile(v) {
            return self.base(v);
        }
        if let Some(n) = self.other.get(&(v, layout)) {
            return *n;
        }
        let wanted = self.anchors.value_layout(v);
        let base = self.map.get(v.index()).copied().flatten();
        let n = match (wanted, base, self.widened(v)) {
            (ValueLayout::Fixed(l), Some(base), _) if l == layout => return base,
            (ValueLayout::Rematerializable(_) | ValueLayout::Uniform, None, _) => self.again(v, layout),
            (_, Some(_), Some(narrow)) => self.cast_again(v, narrow, layout),
            (_, Some(base), None) => {
                let block = self.home(v);
                let convert = GpuOp::from(Convert {}).attrs();
                let convert = self.add(block, Op::Target, &[base], convert, v, layout);
                self.new.insts[convert].loc = self.loc(v);
                self.new.insts[convert].results[0]
            }
            (ValueLayout::Fixed(_), None, _) => self.again(v, layout),
        };
        self.other.insert((v, layout), n);
        n
    }

    /// The elements of a cast that makes them wider: it is cheaper to move them before.
    fn widened(&self, v: ValueId) -> Option<ValueId> {
        let Def::Inst(i, _) = self.old.values[v].def else { return None };
        let inst = &self.old.insts[i];
        let bits = |v: ValueId| self.module.types.get(self.old.ty(v)).dtype().map(DType::bits);
        let from = *inst.operands.first()?;
        let widens = inst.op == Op::Elementwise(ElementwiseOp::Cast) && bits(from)? < bits(v)?;
        widens.then_some(from)
    }

    /// The same cast in another layout.
    fn cast_again(&mut self, v: ValueId, from: ValueId, layout: LayoutId) -> ValueId {
        let Def::Inst(i, _) = self.old.values[v].def else { return self.base(v) };
        let inst = self.old.insts[i].clone();
        let from = self.want(from, layout);
        let block = self.home(v);
        let id = self.add(block, inst.op, &[from], inst.attrs, v, layout);
        self.new.insts[id].loc = inst.loc;
        self.new.insts[id].results[0]
    }

    fn loc(&self, v: ValueId) -> Option<tk_tile::Loc> {
        match self.old.values[v].def {
            Def::Inst(i, _) => self.old.insts[i].loc,
            Def::Arg(_, _) => None,
        }
    }

    /// The new block in which an old value is defined.
    fn home(&self, v: ValueId) -> BlockId {
        let old = match self.old.values[v].def {
            Def::Inst(i, _) => self.block_of.get(i.index()).copied().flatten(),
            Def::Arg(b, _) => Some(b),
        };
        old.and_then(|b| self.blocks.get(&b)).copied().unwrap_or(self.new.body)
    }

    /// Adds an instruction with one result of the type of `like`.
    fn add(
        &mut self,
        block: BlockId,
        op: Op,
        operands: &[ValueId],
        attrs: Attrs,
        like: ValueId,
        layout: LayoutId,
    ) -> InstId {
        let inst =
            Inst { op, operands: operands.to_vec(), attrs, blocks: vec![], results: vec![], loc: None };
        let id = self.new.add_inst(block, inst, &[self.old.ty(like)]);
        let result = self.new.insts[id].results.first().copied();
        if let Some(r) = result {
            self.note(r, Some(layout));
        }
        id
    }

    /// Computes a rematerializable value in a layout, after its operands.
    fn again(&mut self, v: ValueId, layout: LayoutId) -> ValueId {
        let Def::Inst(i, _) = self.old.values[v].def else { return self.base(v) };
        let inst = self.old.insts[i].clone();
        let mut operands = vec![];
        for o in &inst.operands {
            operands.push(if self.is_tile(*o) {
                let wanted = self.before(&inst, self.shape(*o), self.shape(v), layout);
                let wanted = self.anchors.layouts.intern(wanted);
                self.want(*o, wanted)
            } else {
                self.base(*o)
            });
        }
        let block = self.home(v);
        let id = self.add(block, inst.op, &operands, inst.attrs.clone(), v, layout);
        self.new.insts[id].loc = inst.loc;
        self.new.insts[id].results.first().copied().unwrap_or(ValueId(0))
    }

    /// The layout of an operand for which a rematerializable value of this layout costs nothing.
    fn before(&self, inst: &Inst, from: &[u32], to: &[u32], layout: LayoutId) -> Layout {
        let layout = self.anchors.layouts.get(layout).clone();
        let Op::Shape(op) = inst.op else { return layout };
        match op {
            ShapeOp::Broadcast => {
                let differs = (0..to.len()).filter(|d| from.get(*d) != to.get(*d));
                differs.fold(layout, |l, d| l.collapsed(d))
            }
            ShapeOp::Reshape => layout.reshaped(to, from).unwrap_or_else(|| units(&layout, to, from)),
            ShapeOp::Permute => layout.permuted(&inverse(&permutation(inst))),
            ShapeOp::Flip
            | ShapeOp::Slice
            | ShapeOp::Join
            | ShapeOp::Split
            | ShapeOp::Cat
            | ShapeOp::Interleave => layout,
        }
    }

    fn block(&mut self, old: BlockId) {
        for i in self.old.blocks[old].insts.clone() {
            self.inst(old, i);
        }
    }

    /// Returns true if a result is computed only where it is used.
    fn is_free(&self, inst: &Inst) -> bool {
        let mut results = inst.results.iter().filter(|r| self.is_tile(**r)).peekable();
        results.peek().is_some()
            && results.all(|r| matches!(self.anchors.value_layout(*r), ValueLayout::Rematerializable(_)))
    }

    fn inst(&mut self, old: BlockId, id: InstId) {
        let inst = self.old.insts[id].clone();
        if self.is_free(&inst) {
            return;
        }
        let block = self.blocks.get(&old).copied().unwrap_or(self.new.body);
        let operands = self.operands(&inst);
        let blocks = self.regions(&inst);
        let new = Inst { operands, blocks, results: vec![], ..inst.clone() };
        let types: Vec<_> = inst.results.iter().map(|r| self.old.ty(*r)).collect();
        let new = self.new.add_inst(block, new, &types);
        for (o, n) in inst.results.iter().zip(self.new.insts[new].results.clone()) {
            let layout = if self.is_tile(*o) { Some(self.anchors.wanted(*o)) } else { None };
            self.bind(*o, n, layout);
        }
    }

    /// The operands of an instruction in the layouts that it requires.
    fn operands(&mut self, inst: &Inst) -> Vec<ValueId> {
        let wanted: Vec<Option<LayoutId>> = self.wanted(inst);
        let pairs: Vec<_> = inst.operands.iter().copied().zip(wanted).collect();
        pairs
            .into_iter()
            .map(|(v, l)| match l {
                Some(l) => self.want(v, l),
                None => self.base(v),
            })
            .collect()
    }

    /// The layout that an instruction requires for each operand; `None` where any layout works.
    fn wanted(&mut self, inst: &Inst) -> Vec<Option<LayoutId>> {
        let n = inst.operands.len();
        let result = inst.results.first().copied().filter(|r| self.is_tile(*r));
        let same = |l: Option<LayoutId>| vec![l; n];
        match inst.op {
            Op::Elementwise(_) | Op::Random(_) | Op::Atomic(_) => {
                let layout = match result {
                    Some(r) => Some(self.anchors.wanted(r)),
                    None => self.of_largest(&inst.operands),
                };
                same(layout)
            }
            Op::Memory(op) => same(self.of_access(op, inst, result)),
            Op::Reduce(op) => {
                let Some(x) = inst.operands.first().copied() else { return vec![] };
                let layout = if op == ReduceOp::Custom && inst.attrs.flag("ordered") {
                    self.anchors.along(x, axis_of(inst))
                } else {
                    self.anchors.wanted(x)
                };
                same(Some(layout))
            }
            Op::Scan(ScanOp::CumSum | ScanOp::CumProd | ScanOp::Custom) => {
                same(result.map(|r| self.anchors.wanted(r)))
            }
            Op::Scan(ScanOp::Gather) => vec![None, result.map(|r| self.anchors.wanted(r))],
            Op::Scan(ScanOp::Sort | ScanOp::TopK) => same(None),
            Op::Scan(ScanOp::Histogram) => {
                let x = inst.operands.first().map(|x| self.anchors.wanted(*x));
                same(x)
            }
            Op::Dot(_) => {
                let mut wanted = same(None);
                if let (Some(last), Some(r)) = (wanted.last_mut(), result) {
                    *last = Some(self.anchors.wanted(r));
                }
                wanted
            }
            Op::Shape(op) => self.of_shape(op, inst, result),
            Op::Control(op) => self.of_control(op, inst, result),
            Op::Create(_) | Op::Host(_) | Op::Target => same(None),
        }
    }

    fn of_largest(&mut self, operands: &[ValueId]) -> Option<LayoutId> {
        let tile = operands
            .iter()
            .copied()
            .find(|v| self.is_tile(*v) && matches!(self.anchors.value_layout(*v), ValueLayout::Fixed(_)));
        tile.or_else(|| operands.iter().copied().find(|v| self.is_tile(*v))).map(|v| self.anchors.wanted(v))
    }

    /// Loads use the layout of their result. A store uses the layout of the value if neighbours are adjacent there, and
    /// the order of memory otherwise.
    fn of_access(&mut self, op: MemoryOp, inst: &Inst, result: Option<ValueId>) -> Option<LayoutId> {
        if let Some(r) = result {
            return Some(self.anchors.wanted(r));
        }
        let value = match op {
            MemoryOp::Store => inst.operands.get(1),
            MemoryOp::ViewStore => inst.operands.last(),
            MemoryOp::PtrAdd
            | MemoryOp::Load
            | MemoryOp::View
            | MemoryOp::ViewShape
            | MemoryOp::ViewStride
            | MemoryOp::ViewPtr
            | MemoryOp::ViewSlice
            | MemoryOp::ViewPermute
            | MemoryOp::ViewLoad
            | MemoryOp::ViewInside
            | MemoryOp::ViewGather
            | MemoryOp::ViewScatter
            | MemoryOp::Prefetch => return self.of_largest(&inst.operands),
        };
        let value = value.copied().filter(|v| self.is_tile(*v))?;
        let shape = self.shape(value).to_vec();
        let access = self.anchors.access(inst)?;
        let best = self.anchors.coalesced(&shape, &access);
        match self.anchors.value_layout(value) {
            ValueLayout::Fixed(l) => {
                let fastest = access.order.first().copied().unwrap_or(0);
                let fixed = self.anchors.layouts.get(l);
                // Neighbours of a lane, or of adjacent lanes, are neighbours in memory. A lane that stores several of
                // them one by one, each less than a register, leaves gaps between lanes.
                let vector = fixed.vector(fastest);
                let gaps = vector > access.vector && access.vector * access.bytes < REGISTER;
                let together =
                    vector >= access.vector && !gaps && (vector > 1 || lanes_along(fixed, fastest))
                        || run(fixed, fastest, access.bytes) * access.bytes >= SECTOR && !gaps;
                // A tile larger than shared memory cannot go through it.
                let elements: u32 = shape.iter().map(|n| crate::layout::padded(*n)).product();
                let fits = elements * access.bytes <= self.anchors.shared_bytes();
                Some(if together || !fits { l } else { best })
            }
            ValueLayout::Rematerializable(_) | ValueLayout::Uniform => Some(best),
        }
    }

    fn of_shape(&mut self, op: ShapeOp, inst: &Inst, result: Option<ValueId>) -> Vec<Option<LayoutId>> {
        let n = inst.operands.len();
        let layout = match op {
            ShapeOp::Join => result.and_then(|r| {
                let l = self.anchors.wanted(r);
                let l = self.anchors.layouts.get(l).clone();
                let rank = l.repeats().len().checked_sub(1)?;
                let half = l.without(rank);
                // Only a layout with pairs is split in place; others go through shared memory.
                (half.paired().as_ref() == Some(&l)).then(|| self.anchors.layouts.intern(half))
            }),
            ShapeOp::Split => match result {
                Some(r) => {
                    let l = self.anchors.wanted(r);
                    let pair = self.anchors.layouts.get(l).paired();
                    pair.map(|pair| self.anchors.layouts.intern(pair))
                }
                None => Some(self.anchors.pair()),
            },
            ShapeOp::Reshape
            | ShapeOp::Permute
            | ShapeOp::Broadcast
            | ShapeOp::Flip
            | ShapeOp::Slice
            | ShapeOp::Cat
            | ShapeOp::Interleave => None,
        };
        vec![layout; n]
    }

    fn of_control(&mut self, op: ControlOp, inst: &Inst, result: Option<ValueId>) -> Vec<Option<LayoutId>> {
        let n = inst.operands.len();
        match op {
            ControlOp::For => {
                let args = inst.blocks.first().map_or(vec![], |b| self.old.blocks[*b].args.clone());
                let carried = args.iter().skip(1).map(|a| self.fixed(*a));
                [None, None, None].into_iter().chain(carried).collect()
            }
            ControlOp::While => {
                let args = inst.blocks.first().map_or(vec![], |b| self.old.blocks[*b].args.clone());
                args.iter().map(|a| self.fixed(*a)).collect()
            }
            ControlOp::Map | ControlOp::MultipleOf | ControlOp::MaxContiguous | ControlOp::InlineAsm => {
                vec![result.map(|r| self.anchors.wanted(r)); n]
            }
            ControlOp::Assert | ControlOp::Assume | ControlOp::Print => {
                inst.operands.iter().map(|v| self.fixed(*v)).collect()
            }
            ControlOp::ProgramId
            | ControlOp::NumPrograms
            | ControlOp::If
            | ControlOp::Yield
            | ControlOp::Condition
            | ControlOp::Return
            | ControlOp::Call
            | ControlOp::GridBarrier
            | ControlOp::GlobalTimer
            | ControlOp::SmId => vec![None; n],
        }
    }

    /// The layout of a tile; `None` for a scalar.
    fn fixed(&mut self, v: ValueId) -> Option<LayoutId> {
        self.is_tile(v).then(|| self.anchors.wanted(v))
    }

    /// The blocks of an instruction.
    fn regions(&mut self, inst: &Inst) -> Vec<BlockId> {
        let first = inst.blocks.first().map_or(vec![], |b| self.old.blocks[*b].args.clone());
        let wanted: Vec<Vec<Option<LayoutId>>> = match flow(inst.op) {
            Flow::For => vec![first.iter().skip(1).map(|a| self.fixed(*a)).collect()],
            Flow::If => {
                let layouts: Vec<_> = inst.results.iter().map(|r| self.fixed(*r)).collect();
                vec![layouts; inst.blocks.len()]
            }
            Flow::While => {
                let decides = inst.results.iter().map(|r| self.fixed(*r));
                let decides = std::iter::once(None).chain(decides).collect();
                vec![decides, first.iter().map(|a| self.fixed(*a)).collect()]
            }
            // Blocks over single elements contain no tiles.
            Flow::Elements | Flow::Plain | Flow::Expect => vec![vec![]; inst.blocks.len()],
        };
        let blocks: Vec<BlockId> = inst.blocks.clone();
        blocks.into_iter().zip(wanted).map(|(b, w)| self.region(b, &w)).collect()
    }

    /// A block whose terminator yields values in these layouts.
    fn region(&mut self, old: BlockId, wanted: &[Option<LayoutId>]) -> BlockId {
        let new = self.new.add_block();
        self.blocks.insert(old, new);
        self.args(old, new);
        let insts = self.old.blocks[old].insts.clone();
        let Some((end, insts)) = insts.split_last() else { return new };
        for i in insts {
            self.inst(old, *i);
        }
        let end = self.old.insts[*end].clone();
        let mut operands = vec![];
        for (n, v) in end.operands.iter().enumerate() {
            operands.push(match wanted.get(n).copied().flatten() {
                Some(l) => self.want(*v, l),
                None => self.base(*v),
            });
        }
        self.new.add_inst(new, Inst { operands, results: vec![], ..end }, &[]);
        new
    }
}

/// The granularity of device memory transactions in bytes (CUDA C++ programming guide, global memory): a store of whole
/// ones costs no more than one of longer rows.
const SECTOR: u32 = 32;
/// Bytes of a register.
const REGISTER: u32 = 4;

/// Neighbours along a dimension that adjacent lanes own together.
fn run(layout: &Layout, dim: usize, bytes: u32) -> u32 {
    let atom = layout.atom();
    let mut run = layout.vector(dim);
    // A lane that stores less than a register at once takes more instructions than a conversion through shared memory.
    if run * bytes < REGISTER {
        return run;
    }
    let lanes = (0..atom.bits(InDim::Lane)).filter_map(|i| atom.basis(InDim::Lane, i));
    // Lanes with copies store nothing.
    for basis in lanes.filter(|basis| basis.iter().any(|c| *c != 0)) {
        let next = basis.iter().enumerate().all(|(d, c)| if d == dim { *c == run } else { *c == 0 });
        if !next {
            break;
        }
        run *= 2;
    }
    run
}
/// Returns true if lane 1 owns the neighbour of lane 0 along a dimension.
fn lanes_along(layout: &Layout, dim: usize) -> bool {
    let (a, b) = (layout.coords(0, 0, 0), layout.coords(0, 1, 0));
    a.iter()
        .zip(&b)
        .enumerate()
        .all(|(d, (a, b))| if d == dim { *b == a + layout.vector(dim) } else { a == b })
}
