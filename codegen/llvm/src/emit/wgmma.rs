//! Emits wgmma: the right operand is in shared memory, the left one is too or is in registers as words, and
//! accumulators stay in registers. Products are issued, and waited for before anything else uses their accumulators.
//!
//! Requires `mma` as verified in scheduled kernels. Guarantees that every address is that of the warpgroup plus an
//! offset that depends on the step.

use inkwell::basic_block::BasicBlock;
use inkwell::values::{BasicValueEnum, IntValue};
use tk_gpu::analysis::wgmma_shared::{self, WgmmaShared};
use tk_gpu::ir::op::{GpuOp, Mma, MmaOperand, MmaWait};
use tk_gpu::ir::shared_access;
use tk_gpu::layout::cut;
use tk_gpu::target::mma::Tiles;
use tk_tile::{BlockId, Inst, InstId};

use super::{Emit, Res, Stop, bug};
use crate::target::Lane;
use crate::target::request::MmaRequest;
use crate::target::request::{OperandA, SharedOperand, Step, WgmmaOperands, words_of};

/// Log2 of the lines after which the swizzle repeats.
const LINES_LOG2: u32 = 3;

/// Returns true if the atoms of the right operand along the columns, of so many bytes, follow one another in memory as lines
/// or swizzle atoms do, so that one instruction multiplies all of them ([`Tiles::adjoin`]).
fn follow(tiles: &Tiles, right: &SharedOperand<'_>, bytes: i64) -> bool {
    let n = tiles.matrix.n;
    let p = right.swizzled;
    let lines = i64::from(p.lines) << n >> LINES_LOG2;
    tiles.adjoin() && n >= LINES_LOG2 && (p.across || lines == bytes)
}

/// The registers of accumulators in the order of instructions that multiply so many atoms along the columns each.
fn accumulator_order(tiles: &Tiles, atoms: u32) -> Vec<usize> {
    let acc = tiles.accumulator();
    let all = acc.registers() * acc.repeats().iter().product::<u32>() as usize;
    if atoms == 1 {
        return (0..all).collect();
    }
    // In a layout atoms come first, then the rows of instructions in each.
    let (rows, atoms, each) = (1 << tiles.more(0).len(), atoms as usize, 1 << (tiles.matrix.n - 1));
    let place = |m: usize, n: usize, row: usize| ((m * atoms + n) * rows + row) * each;
    let instructions = (0..acc.repeats()[0] as usize).flat_map(|m| (0..rows).map(move |row| (m, row)));
    let of_atoms = instructions.flat_map(|(m, row)| (0..atoms).map(move |n| place(m, n, row)));
    of_atoms.flat_map(|first| first..first + each).collect()
}

impl<'c> Emit<'_, 'c> {
    /// A product by warpgroups.
    pub(super) fn multiply_wgmma(
        &mut self,
        (inst, op): (&Inst, &Mma),
        (product, tiles, k): (&MmaRequest, &Tiles, u32),
        acc: Vec<BasicValueEnum<'c>>,
    ) -> Res<Vec<BasicValueEnum<'c>>> {
        let together = self.together((inst, op), (product, tiles, k))?;
        // Registers of an instruction for several atoms are those of all of them, although others may lie between.
        let order = accumulator_order(tiles, together.atoms);
        let in_order = order.iter().filter_map(|r| acc.get(*r).copied()).collect();
        let sums = self.multiply_in_order((op, k), together, in_order)?;
        let mut all = acc;
        for (r, x) in order.into_iter().zip(sums) {
            all.get_mut(r).into_iter().for_each(|slot| *slot = x);
        }
        Ok(all)
    }

    /// The same for accumulators in the order of the instructions.
    fn multiply_in_order(
        &mut self,
        (op, k): (&Mma, u32),
        mut together: WgmmaOperands<'c>,
        acc: Vec<BasicValueEnum<'c>>,
    ) -> Res<Vec<BasicValueEnum<'c>>> {
        if op.asynchronous {
            return self.target.wgmma_issue(self, &together, &acc);
        }
        let Some(every) = op.promote_every else {
            let begun = self.target.wgmma_issue(self, &together, &acc)?;
            return self.target.wgmma_wait(self, 0, &begun);
        };
        let (mut all, depth) = (acc, together.product.matrix.k);
        let steps = std::mem::take(&mut together.steps);
        let each = steps.len() / (k >> depth).max(1) as usize;
        for part in steps.chunks(each * (every >> depth) as usize) {
            together.steps = part.to_vec();
            let zeros: Vec<_> = all.iter().map(|x| x.get_type().const_zero()).collect();
            let begun = self.target.wgmma_issue(self, &together, &zeros)?;
            let found = self.target.wgmma_wait(self, 0, &begun)?;
            for (acc, x) in all.iter_mut().zip(found) {
                *acc = self.builder.build_float_add(acc.into_float_value(), x.into_float_value(), "")?.into();
            }
        }
        Ok(all)
    }

    /// A wait for products.
    pub(super) fn mma_wait(&mut self, inst: &Inst, op: &MmaWait) -> Res<()> {
        let (v, r) = (self.operand(inst, 0)?, self.result(inst)?);
        let acc = self.registers(v)?;
        if let Some(computed) = inst.operands.get(1) {
            self.target.schedule_after(self, &self.registers(*computed)?)?;
        }
        let acc = self.target.wgmma_wait(self, op.pending, &acc)?;
        self.define_regs(r, acc)
    }

    /// The block to which a loop goes at its end, before `after`. Where warpgroups take turns, it waits for products that the last
    /// iteration has begun: a wait behind a loop that may have had no iteration is none to `ptxas`, which serializes all of them.
    pub(super) fn leave_loop(&self, body: BlockId, after: BasicBlock<'c>) -> Res<BasicBlock<'c>> {
        if self.turn.is_none() || !self.leaves_products(body) {
            return Ok(after);
        }
        let here = self.here()?;
        let left = self.new_block("done");
        self.builder.position_at_end(left);
        self.target.complete_products(self)?;
        self.builder.build_unconditional_branch(after)?;
        self.builder.position_at_end(here);
        Ok(left)
    }

    /// Returns true if products that an iteration begins are complete in the next one.
    fn leaves_products(&self, body: BlockId) -> bool {
        let func = self.func();
        let waits =
            |i: &InstId| matches!(GpuOp::of(&func.insts[*i]), Some(GpuOp::MmaWait(wait)) if wait.pending > 0);
        func.blocks[body].insts.iter().any(waits)
    }

    /// Its instructions: step by step along K, in each all rows and columns of the warpgroup.
    fn together(
        &mut self,
        (inst, op): (&Inst, &Mma),
        (product, tiles, k): (&MmaRequest, &Tiles, u32),
    ) -> Res<WgmmaOperands<'c>> {
        let matrix = product.matrix;
        let group = self.group(matrix.warps)?;
        let sides = [0, 1].map(|side| self.shared_operand((inst, op), (product, tiles, k), side, group));
        let [left, right] = sides;
        let (left, right) = (left?, right?);
        let Some(right) = right else { return bug("operand B of wgmma is in registers") };
        let acc = tiles.accumulator();
        let (atoms, along) = (acc.repeats(), cut(k));
        let (rows, columns) = (tiles.more(0).len(), tiles.more(1).len());
        let bits = [0, 1].map(|side| tiles.operand(side, k).out_bits());
        let bases = [&op.a, &op.b].map(|operand| operand.bases());
        let size = |side: usize| i64::from(matrix.bytes()) << bits[side].iter().sum::<u32>();
        let offset = |side: usize, inside: [u32; 2]| {
            wgmma_shared::offset(&matrix, side, bits[side], bases[side], inside)
        };
        let words = words_of(product) as i64;
        let merged = if follow(tiles, &right, size(1)) { atoms[1] } else { 1 };
        let mut steps = vec![];
        for (atom, step) in
            (0..along.repeats).flat_map(|a| (0..1 << (along.log2 - matrix.k)).map(move |s| (a, s)))
        {
            let at = step << matrix.k;
            for (m, n) in (0..atoms[0]).flat_map(|m| (0..atoms[1] / merged).map(move |n| (m, n))) {
                for (row, column) in (0..1u32 << rows).flat_map(|r| (0..1u32 << columns).map(move |c| (r, c)))
                {
                    // With several atoms to an instruction, it has all columns.
                    let instruction = match merged {
                        1 => ((((m * atoms[1] + n) << rows) + row) << columns) + column,
                        _ => ((m << rows) + row) * merged,
                    };
                    let inside = offset(0, [row << matrix.m, at]);
                    let of_left = i64::from(m * along.repeats + atom);
                    // Words are those of an atom of the operand, steps first, then rows.
                    let register =
                        (((of_left << (along.log2 - matrix.k)) + i64::from(step)) << rows) + i64::from(row);
                    let left = if left.is_some() { of_left * size(0) + inside } else { register * words };
                    let of_right = (atom * atoms[1] + n) as usize;
                    let [group, _] =
                        shared_access::atom_place(bases[1], &bits[1], atoms[1] as usize, of_right);
                    steps.push(Step {
                        accumulator: (instruction as usize) << (matrix.n - 1),
                        left,
                        right: group * i64::from(matrix.bytes()) + offset(1, [column << matrix.n, at]),
                    });
                }
            }
        }
        let left = match left {
            Some(operand) => OperandA::Shared(operand),
            None => OperandA::Registers(self.left_words(inst, product, tiles, k)?),
        };
        Ok(WgmmaOperands { product: *product, atoms: merged, left, right, steps })
    }

    /// The number of the warpgroup of this thread, as a value that is uniform in a warp.
    fn group(&self, warps: u32) -> Res<IntValue<'c>> {
        let threads = self.kernel.options.threads();
        let by = self.int(threads.lane_bits + warps);
        let own = self.builder.build_right_shift(self.tid, by, false, "")?;
        if threads.warp_bits == warps {
            Ok(self.int(0))
        } else {
            self.target.shuffle(self, own, Lane::Index(self.int(0)))
        }
    }

    /// The location of an operand in shared memory; `None` if it is in registers.
    fn shared_operand(
        &self,
        (inst, op): (&Inst, &Mma),
        (product, tiles, k): (&MmaRequest, &Tiles, u32),
        side: usize,
        group: IntValue<'c>,
    ) -> Res<Option<SharedOperand<'c>>> {
        let MmaOperand::Shared { buffer, bases, .. } = [&op.a, &op.b][side.min(1)] else { return Ok(None) };
        let buffer = *buffer;
        let Some(found) = self.kernel.buffers.get(buffer.buffer) else {
            return bug("an operand has no buffer");
        };
        let dtype = product.operands[side.min(1)];
        let Some(swizzled) = WgmmaShared::find(tiles, side, dtype, k, bases) else {
            return bug("an operand is not in shared memory as wgmma reads it");
        };
        let bits = tiles.operand(side, k).out_bits();
        let images: Vec<u64> = tiles
            .groups()
            .iter()
            .map(|at| {
                wgmma_shared::offset(&product.matrix, side, bits, bases, [at[side.min(1)], 0]).cast_unsigned()
            })
            .collect();
        let mut address =
            self.builder.build_int_add(self.linear(group, &images)?, self.int(found.offset), "")?;
        if let Some(stage) = self.stage(inst, buffer)? {
            address = self.builder.build_int_add(address, stage, "")?;
        }
        Ok(Some(SharedOperand { address, swizzled }))
    }

    /// The words of a left operand in registers: those of an instruction, rows, steps along K, atoms.
    fn left_words(
        &mut self,
        inst: &Inst,
        product: &MmaRequest,
        tiles: &Tiles,
        k: u32,
    ) -> Res<Vec<BasicValueEnum<'c>>> {
        let Some(v) = shared_access::plain_operands(inst).get(1) else { return bug("an operand is missing") };
        let registers = self.registers(*v)?;
        let fragment = tiles.operand(0, k);
        let atoms: u32 = fragment.repeats().iter().product();
        let each = fragment.registers();
        let elements: Option<Vec<_>> = (0..atoms as usize * each)
            .map(|n| registers.get(fragment.register_index(n / each, n % each)).copied())
            .collect();
        let elements = elements.ok_or_else(|| Stop::Bug("an operand lacks a register".into()))?;
        let dtype = product.operands[0];
        self.packed_words(dtype, product.matrix.packed() as usize, &elements)
    }
}
