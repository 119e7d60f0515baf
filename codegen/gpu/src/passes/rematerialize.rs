//! Computes again, behind an exchange between warps, what was computed from a tile of halves before it.
//!
//! ```text
//! v1 = view_load x, .. : tile[f16, ..]           v1 = view_load x, .. : tile[f16, ..]
//! v2 = cast v1 : tile[f32, ..]                   v2 = cast v1 : tile[f32, ..]
//! v3 = sum v2 ..                                 v3 = sum v2 ..
//! shared_store v3 {buffer = 0}             =>    shared_store v3 {buffer = 0}
//! v4 = shared_load {buffer = 0}                  v4 = shared_load {buffer = 0}
//! v5 = sub v2, v4                                v6 = optimization_barrier v1, v4
//!                                                v7 = cast v6 : tile[f32, ..]
//!                                                v5 = sub v7, v4
//! ```
//!
//! Two halves share a register, and their f32 values need one each. A lane that holds 64 elements of a row while it waits for the sums of
//! other warps needs 32 registers less, so twice as many rows are in flight on a multiprocessor: layer normalization of aligned rows of
//! 131072 halves needs 64 registers instead of 103. A conversion and a subtraction take two instructions for each element, which a
//! kernel that waits for memory has to spare.
//!
//! Requires fenced kernels, whose exchanges are stores and loads of shared memory. Guarantees that what is computed again are at most
//! [`MOST`] operations on one tile of halves, and that the compilers behind this one do not merge them with the first ones
//! ([`OptimizationBarrier`]). Programs with matrix products, whose registers the products have, are unchanged.

use std::collections::{BTreeMap, BTreeSet};

use tk_ops::{CreateOp, DType, ElementwiseOp, Group, MemoryOp, Op, ShapeOp};
use tk_tile::{BlockId, Def, Id, Inst, InstId, ValueId, walk};

use crate::analysis::liveness;
use crate::ir::attrs::is_unit;
use crate::ir::builder::Edit;
use crate::ir::kernel::Kernel;
use crate::ir::op::{GpuOp, OptimizationBarrier};
use crate::ir::params::element_bytes;
use crate::passes::{Pass, Property, Run};
use crate::verify::verify_fenced;

/// The pass.
pub const PASS: Pass = Pass {
    name: "rematerialize",
    purpose: "converts halves again after an exchange between warps, instead of keeping their f32 values",
    needs: &[Property::Barriers, Property::ProxyFences],
    leaves: &[Property::NarrowTiles],
    run: Run::Kernel { run, verify: verify_fenced },
};

/// Elements of a lane from which on a tile is kept narrow: fewer cost few registers.
const LEAST: u64 = 16;

/// Elements of a lane up to which a tile is used again as it is, such as the sums of rows.
const FEW: u64 = 8;

/// Registers for all else while warps exchange. With as many as of tiles with products, a row of 16384 halves in 16 warps, which has
/// enough, would be at 0.90 instead of 0.94 of a copy.
const BESIDE: u32 = 8;

/// Operations on each element that are done again.
const MOST: u32 = 4;

fn run(kernel: &mut Kernel) {
    if kernel.multiplies() {
        return;
    }
    let live = liveness::at_each(kernel);
    for block in kernel.blocks() {
        Rematerialize::new(kernel, block, &live).run();
    }
}

/// The change of a block.
struct Rematerialize<'k, 'a> {
    edit: Edit<'k>,
    block: BlockId,
    /// The instructions of the block as they were, with their places.
    old: BTreeMap<InstId, (usize, Inst)>,
    /// Values that nested blocks use: they are kept anyway.
    nested: BTreeSet<ValueId>,
    /// Registers of a lane that are live at each instruction, and those with which two programs fit.
    registers: (&'a [u32], u32),
    /// The place of the last exchange between warps for which registers do not suffice, and what was read there.
    exchange: Option<(usize, ValueId)>,
    /// What is computed again since then.
    again: BTreeMap<ValueId, ValueId>,
}

impl<'k, 'a> Rematerialize<'k, 'a> {
    fn new(kernel: &'k mut Kernel, block: BlockId, live: &'a [u32]) -> Self {
        let func = kernel.func();
        let insts = &func.blocks[block].insts;
        let inner = insts.iter().flat_map(|i| &func.insts[*i].blocks).flat_map(|b| walk::insts_in(func, *b));
        let nested = inner.flat_map(|i| func.insts[i].operands.clone()).collect();
        let old = insts.iter().enumerate().map(|(n, i)| (*i, (n, func.insts[*i].clone()))).collect();
        let registers = (live, kernel.registers_of_two_programs());
        let edit = Edit { kernel, loc: None };
        Rematerialize { edit, block, old, nested, registers, exchange: None, again: BTreeMap::new() }
    }

    fn run(mut self) {
        let insts = std::mem::take(&mut self.edit.func().blocks[self.block].insts);
        let (mut stored, mut is_changed) = (false, false);
        for (at, id) in insts.into_iter().enumerate() {
            let inst = &self.edit.kernel.func().insts[id];
            let read = match GpuOp::of(inst) {
                Some(GpuOp::SharedStore(_)) => {
                    stored = true;
                    None
                }
                Some(GpuOp::SharedLoad(_)) if stored => inst.results.first().copied(),
                _other => None,
            };
            self.edit.loc = inst.loc;
            for (n, v) in inst.operands.clone().into_iter().enumerate() {
                if let Some(again) = self.computed_again(v) {
                    self.edit.func().insts[id].operands[n] = again;
                    is_changed = true;
                }
            }
            self.edit.func().blocks[self.block].insts.push(id);
            if let Some(read) = read {
                let live = self.registers.0.get(id.index()).copied().unwrap_or(0);
                let is_short = live + BESIDE >= self.registers.1;
                (stored, self.exchange) = (false, Some((at, read)).filter(|_| is_short));
                self.again.clear();
            }
        }
        if is_changed {
            self.remove_unused();
        }
    }

    /// A tile that was computed from halves before the last exchange, computed again, if so many registers are worth it.
    fn computed_again(&mut self, v: ValueId) -> Option<ValueId> {
        let (at, read) = self.exchange?;
        let is_earlier = |i: &InstId| self.old.get(i).is_some_and(|(n, _)| *n < at);
        let wide = self.registers(v) >= LEAST && self.bytes(v) == 4 && !self.nested.contains(&v);
        let Def::Inst(id, _) = self.edit.kernel.func().values[v].def else { return None };
        if !wide || !is_earlier(&id) {
            return None;
        }
        let mut from = Sources { narrow: None, operations: 0 };
        (self.follow(v, &mut from) && from.narrow.is_some()).then(|| self.compute(v, read))
    }

    /// Follows what a tile is computed from; false if it cannot be computed again.
    fn follow(&self, v: ValueId, from: &mut Sources) -> bool {
        let func = self.edit.kernel.func();
        if self.is_narrow(v) {
            return *from.narrow.get_or_insert(v) == v;
        }
        if self.registers(v) <= FEW {
            return true;
        }
        let Def::Inst(id, _) = func.values[v].def else { return false };
        let Some((_, inst)) = self.old.get(&id) else { return false };
        let fits = match inst.op {
            Op::Elementwise(op) => {
                from.operations += u32::from(self.bytes(v) == 4);
                is_cheap(op, inst) && from.operations <= MOST
            }
            _ => is_free(self.edit.kernel, inst),
        };
        fits && inst.operands.iter().all(|x| self.follow(*x, from))
    }

    /// Computes a tile again, behind the exchange that brought `read`.
    fn compute(&mut self, v: ValueId, read: ValueId) -> ValueId {
        if let Some(again) = self.again.get(&v) {
            return *again;
        }
        let func = self.edit.kernel.func();
        let made = (func.ty(v), self.edit.layout_of(v));
        let Def::Inst(id, _) = func.values[v].def else { return v };
        let new = if self.is_narrow(v) {
            self.edit.gpu(self.block, OptimizationBarrier {}, &[v, read], &[made])
        } else if self.registers(v) <= FEW {
            return v;
        } else {
            let Some((_, inst)) = self.old.get(&id).cloned() else { return v };
            let operands = inst.operands.iter().map(|x| self.compute(*x, read)).collect();
            self.edit.add(self.block, Inst { operands, results: vec![], ..inst }, &[made]).1
        };
        let new = new.first().copied().unwrap_or(v);
        self.again.insert(v, new);
        new
    }

    /// Removes what only later instructions used.
    fn remove_unused(&mut self) {
        let func = self.edit.func();
        let mut uses: BTreeMap<ValueId, usize> = BTreeMap::new();
        for v in walk::insts(func).into_iter().flat_map(|i| &func.insts[i].operands) {
            *uses.entry(*v).or_default() += 1;
        }
        let mut insts = std::mem::take(&mut func.blocks[self.block].insts);
        let mut unused = BTreeSet::new();
        for id in insts.iter().rev() {
            let inst = &func.insts[*id];
            let computes = matches!(inst.op, Op::Elementwise(_) | Op::Shape(_) | Op::Create(_));
            if computes && inst.results.iter().all(|r| uses.get(r).is_none_or(|n| *n == 0)) {
                unused.insert(*id);
                inst.operands.iter().for_each(|v| *uses.entry(*v).or_default() -= 1);
            }
        }
        insts.retain(|i| !unused.contains(i));
        func.blocks[self.block].insts = insts;
    }

    fn is_narrow(&self, v: ValueId) -> bool {
        let dtype = self.edit.kernel.module.types.get(self.edit.kernel.func().ty(v)).dtype();
        matches!(dtype, Some(DType::F16 | DType::BF16)) && self.registers(v) >= LEAST
    }

    /// Elements of a lane.
    fn registers(&self, v: ValueId) -> u64 {
        self.edit.kernel.layout(v).map_or(0, |l| l.registers() as u64)
    }

    /// Bytes of an element.
    fn bytes(&self, v: ValueId) -> u64 {
        element_bytes(self.edit.kernel.module.types.get(self.edit.kernel.func().ty(v)).elem())
    }
}

/// What a tile is computed from.
struct Sources {
    /// Its tile of halves.
    narrow: Option<ValueId>,
    /// The operations on each element.
    operations: u32,
}

/// One or two instructions for each element.
fn is_cheap(op: ElementwiseOp, inst: &Inst) -> bool {
    match op.group() {
        Group::Arithmetic(_) => matches!(op, ElementwiseOp::Add | ElementwiseOp::Sub | ElementwiseOp::Mul),
        Group::Sign(_)
        | Group::Bitwise(_)
        | Group::Complement(_)
        | Group::Equality(_)
        | Group::Order(_)
        | Group::Fma(_)
        | Group::MinMax(_)
        | Group::Select(_)
        | Group::Cast(_) => true,
        Group::FloatUnary(_) => op == ElementwiseOp::Exp && inst.attrs.flag("fast"),
        _ => false,
    }
}

/// No instructions: the same elements elsewhere, or what is known of positions.
fn is_free(kernel: &Kernel, inst: &Inst) -> bool {
    let shape = |v: &ValueId| kernel.module.types.get(kernel.func().ty(*v)).shape().unwrap_or(&[]);
    match (inst.op, inst.operands.as_slice(), inst.results.as_slice()) {
        (Op::Create(CreateOp::Const | CreateOp::Splat), ..)
        | (Op::Shape(ShapeOp::Broadcast) | Op::Memory(MemoryOp::ViewInside), ..) => true,
        (Op::Shape(ShapeOp::Reshape), [x], [r]) => is_unit(shape(x), shape(r)),
        _ => false,
    }
}
