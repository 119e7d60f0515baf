//! Divides the warps of a program into two halves in opposite phases ("ping-pong"): one multiplies while the other reads shared
//! memory, stores the next tiles there and begins to load those after them.
//!
//! ```text
//! for i, slot                                          barrier
//!   barrier                                            half_barrier {upper = true}
//!   x = view_load a, i + 1                             for i, slot, x          x: the tiles of i + 1, loaded in iteration i - 1
//!   v1 = mma acc, slot {a, b in shared memory}           v2, v3 = fragments slot {a}, fragments slot {b}
//!   shared_store x, 1 - slot               =>            shared_store x, 1 - slot
//!   yield v1, 1 - slot                                   y = view_load a, i + 2
//!                                                        phase_barrier {multiplies = true}
//!                                                        v1 = mma acc, v2, v3
//!                                                        phase_barrier {multiplies = false}
//!                                                        yield v1, 1 - slot, y
//!                                                      half_barrier {upper = false}
//! ```
//!
//! Source: the schedule of Triton's "block ping-pong" for CDNA, with both halves of a scheduler's warps in one block.
//!
//! **Why two stages suffice.** A barrier counts the warps that arrive, wherever they wait; the barriers of a half are one sequence,
//! so the `n`-th barrier of one half is the `n`-th of the other. Let time advance at each. With the extra barrier of the upper half,
//! the lower half is in the memory phase of iteration `i` at time `2 i` and multiplies at `2 i + 1`; the upper half is one later. A
//! phase ends when its own accesses to shared memory are complete (a barrier waits for them), so what happens at a time is over
//! before the next.
//!
//! - *Reads after stores.* Iteration `i + 1` reads at `2 i + 2` and `2 i + 3` what both halves stored in the memory phases of `i`, at
//!   `2 i` and `2 i + 1`. Both are earlier.
//! - *Stores after reads.* Iteration `i` stores, at `2 i` and `2 i + 1`, to the stage of iteration `i - 1`, which the halves read at
//!   `2 i - 2` and `2 i - 1`. Both are earlier.
//! - *Before the loop* all warps wait once after stage 0 is stored. *After it* the lower half waits once more, for the last barrier of
//!   the upper one: all have executed as many barriers, also if there was no iteration, and nothing is read any more.
//!
//! Were the stores in the phase that multiplies, as without opposite phases, the upper half would store tiles of `i + 1` at
//! `2 i + 2`, while the lower half reads them. Hence tiles are in registers for an iteration.
//!
//! Copies that write to shared memory by themselves must be complete a barrier before the lower half reads them, so the upper half
//! would wait in the memory phase in which it began them, or fill a third stage. Such loops are unchanged.
//!
//! Applies to a loop of one block with one product, whose operands are both in stages that this loop fills through registers and that
//! nothing else uses, which writes no memory and has no other barrier; in programs with at least two warps for each scheduler; if
//! accumulator, operands and tiles leave [`BESIDE`] registers. Guarantees S12.

use std::collections::BTreeSet;

use tk_tile::{BlockId, InstId, Type, TypeId, ValueId};

use super::expand::Expand;
use super::{LoopAnalysis, PipelinePlan};
use crate::analysis;
use crate::ir::kernel::{Kernel, LayoutId, Remark};
use crate::ir::op::{Barrier, Fragments, GpuOp, HalfBarrier, Mma, MmaOperand, PhaseBarrier, Product};
use crate::ir::params::element_bytes;
use crate::ir::shared_access::touched;
use crate::ir::warps::AHEAD_IN_PHASES;
use crate::target::mma::InstructionName;

/// Registers of a lane for addresses, masks and what else a loop keeps. The loops of `tests/machine/loops` have 20 to 40 beside
/// accumulators, operands and tiles on `gfx942`; those of arguments without known alignment up to 60.
const BESIDE: u32 = 64;
/// Bytes of a register.
const WORD: u32 = 4;

/// Returns true for a loop with products of a program with two warps for each scheduler, on targets where these can be in opposite
/// phases.
pub(super) fn is_candidate(kernel: &Kernel, id: InstId) -> bool {
    let (func, spec, warps) = (kernel.func(), kernel.options.spec, kernel.options.all_warps());
    let multiplies = |i: &InstId| matches!(GpuOp::of(&func.insts[*i]), Some(GpuOp::Mma(_)));
    let enough = warps.is_multiple_of(2) && warps >= 2 * spec.sm.schedulers;
    let mut bodies = func.insts[id].blocks.iter();
    spec.has_opposite_phases && enough && bodies.any(|b| func.blocks[*b].insts.iter().any(multiplies))
}

/// The remark about such a loop.
pub(super) fn remark(kernel: &Kernel, id: InstId, found: Result<InstId, &'static str>) -> Remark {
    let text = match found {
        Ok(_) => "halves of the warps multiply and access memory in turns".to_string(),
        Err(why) => format!("halves of the warps do not multiply and access memory in turns: {why}"),
    };
    Remark { loc: kernel.func().insts[id].loc, text }
}

impl LoopAnalysis<'_> {
    /// The product of the loop if it can be in opposite phases, or why not.
    pub(super) fn opposite_phases(&self, plan: &PipelinePlan) -> Result<InstId, &'static str> {
        let func = self.kernel.func();
        if !plan.direct.is_empty() {
            return Err("loads that go straight to shared memory would need a third stage");
        }
        if !plan.by_registers || plan.stages < super::STAGES_BY_REGISTERS {
            return Err("it has no two stages");
        }
        let insts = &func.blocks[self.body].insts;
        if insts.iter().any(|i| !func.insts[*i].blocks.is_empty()) {
            return Err("it has branches");
        }
        if !self.written.is_empty() {
            return Err("it writes memory");
        }
        let stores: BTreeSet<InstId> = plan.taken.iter().filter_map(|t| t.target.store()).collect();
        let uses_shared = |i: &&InstId| {
            let (reads, writes) = touched(&func.insts[**i]);
            let is_barrier = matches!(GpuOp::of(&func.insts[**i]), Some(GpuOp::Barrier(_)));
            !stores.contains(i) && (is_barrier || !reads.is_empty() || !writes.is_empty())
        };
        let [product] = insts.iter().filter(uses_shared).copied().collect::<Vec<_>>()[..] else {
            return Err("it has several products, or uses shared memory for other things too");
        };
        let Some(GpuOp::Mma(mma)) = GpuOp::of(&func.insts[product]) else {
            return Err("it has no product by matrix instructions");
        };
        let filled: Vec<usize> = plan.taken.iter().filter_map(|t| t.target.buffer()).collect();
        let staged = |o: &MmaOperand| o.buffer().is_some_and(|b| filled.contains(&b.buffer));
        if !staged(&mma.a) || !staged(&mma.b) {
            return Err("not both operands are loaded ahead");
        }
        let needed = self.registers_of(product, mma, plan).ok_or("the product has no tiles")?;
        let available = self.kernel.options.spec.registers_of_launch(self.kernel.options.all_warps());
        match needed + BESIDE <= available {
            true => Ok(product),
            false => Err("lanes have too few registers for the operands of an iteration"),
        }
    }

    /// Registers of a lane for the accumulator and the operands of a product, and for the tiles that a loop loads.
    fn registers_of(&self, product: InstId, mma: &Mma, plan: &PipelinePlan) -> Option<u32> {
        let acc = *self.kernel.func().insts[product].operands.first()?;
        let tiles = analysis::mma::tiles(self.kernel, mma.product, mma.instruction, acc)?;
        let words = |registers: usize, bytes: u32| (registers as u32 * bytes).div_ceil(WORD);
        let bytes = element_bytes(self.kernel.module.types.get(self.kernel.func().ty(acc)).elem()) as u32;
        let mut all = words(self.kernel.layout(acc)?.registers(), bytes.max(WORD));
        for (side, elem) in mma.product.elems.iter().enumerate() {
            let layout = tiles.operand(side, mma.product.k).layout()?;
            all += words(layout.registers(), elem.bytes() as u32);
        }
        let tiles: u32 = plan.taken.iter().map(|t| self.bytes_per_lane(t.load).div_ceil(WORD)).sum();
        Some(all + tiles)
    }
}

impl Expand<'_> {
    /// Adds the tiles that were loaded in the iteration before, as values that the loop carries.
    pub(super) fn tiles_in_registers(&mut self) -> Vec<ValueId> {
        let body = self.plan.body;
        let types: Vec<_> = self.copies.iter().map(|c| (c.ty, c.layout)).collect();
        let add = |(ty, layout)| {
            let v = self.func().add_arg(body, ty);
            self.set_layout(v, layout);
            v
        };
        types.into_iter().map(add).collect()
    }

    /// An iteration in two phases; returns the slice after it, and the tiles that it has loaded.
    pub(super) fn iterate_in_phases(
        &mut self,
        product: InstId,
        (slot, ahead, tiles): (ValueId, &[ValueId], &[ValueId]),
        insts: Vec<InstId>,
    ) -> (Vec<ValueId>, Vec<ValueId>) {
        let body = self.plan.body;
        let args = self.kernel.func().blocks[body].args.clone();
        let step = self.kernel.func().insts[self.plan.at.1].operands.get(2).copied();
        let (Some(iv), Some(step)) = (args.first().copied(), step) else { return (vec![], vec![]) };
        let mut before = insts;
        let at = before.iter().position(|i| *i == product).unwrap_or(before.len());
        let after = before.split_off(at);
        self.func().blocks[body].insts.extend(before);
        let operands = self.operands(product, slot);
        let stage = self.other_stage(body, slot);
        self.store(body, &mut tiles.to_vec(), stage, true);
        let is_iteration = self.edit.is_iteration(self.plan.at.1, body, iv, AHEAD_IN_PHASES);
        let mut next =
            self.branch(body, is_iteration, &args, ahead, (iv, step, AHEAD_IN_PHASES), stage, true);
        let loaded = next.split_off(next.len().saturating_sub(self.copies.len()));
        self.gpu(body, PhaseBarrier { multiplies: true }, &[], &[]);
        self.multiply_registers(product, &operands);
        self.func().blocks[body].insts.extend(after);
        self.gpu(body, PhaseBarrier { multiplies: false }, &[], &[]);
        (next, loaded)
    }

    /// All operands of a product, from a stage.
    fn operands(&mut self, product: InstId, slot: ValueId) -> Vec<ValueId> {
        let inst = self.kernel.func().insts[product].clone();
        let (Some(GpuOp::Mma(mma)), Some(acc)) = (GpuOp::of(&inst).cloned(), inst.operands.first().copied())
        else {
            return vec![];
        };
        let mut out = vec![];
        for (axis, operand) in [mma.a, mma.b].into_iter().enumerate() {
            let MmaOperand::Shared { buffer, bases, .. } = operand else { continue };
            let Some(part) = self.operand_tile((mma.product, mma.instruction), axis, acc) else { continue };
            let (product, instruction) = (Product { fast: false, ..mma.product }, mma.instruction);
            let fragments = Fragments { axis, buffer, bases, product, instruction, start: 0, load: None };
            let body = self.plan.body;
            out.extend(self.gpu(body, fragments, &[acc, slot], &[(part.0, Some(part.1))]));
        }
        out
    }

    /// The type and the layout of an operand.
    fn operand_tile(
        &mut self,
        (product, instruction): (Product, InstructionName),
        axis: usize,
        acc: ValueId,
    ) -> Option<(TypeId, LayoutId)> {
        let tiles = analysis::mma::tiles(self.kernel, product, instruction, acc)?;
        let [m, n] = *self.kernel.module.types.get(self.kernel.func().ty(acc)).shape()? else { return None };
        let shape = if axis == 0 { [m, product.k] } else { [product.k, n] };
        let layout = self.kernel.layouts.intern(tiles.operand(axis, product.k).layout()?);
        let elem = *product.elems.get(axis)?;
        Some((self.kernel.module.types.intern(Type::tile(elem, &shape)), layout))
    }

    /// Makes a product one of operands in registers.
    fn multiply_registers(&mut self, product: InstId, operands: &[ValueId]) {
        let inst = &mut self.func().insts[product];
        inst.operands.truncate(1);
        inst.operands.extend(operands);
        GpuOp::change(inst, |op| {
            if let GpuOp::Mma(mma) = op {
                (mma.a, mma.b) = (MmaOperand::Registers, MmaOperand::Registers);
            }
        });
    }

    /// Waits for the stores before the loop, and lets the upper half of the warps wait for the first phase of the lower one.
    pub(super) fn part_halves(&mut self, block: BlockId) {
        self.gpu(block, Barrier {}, &[], &[]);
        self.gpu(block, HalfBarrier { upper: true }, &[], &[]);
    }

    /// Lets the lower half wait for the last phase of the upper one, after the loop.
    pub(super) fn join_halves(&mut self, block: BlockId) {
        self.gpu(block, HalfBarrier { upper: false }, &[], &[]);
    }
}
