//! Emits exchanges between the lanes of a warp: conversions of layouts within a warp, and shuffles of values of any
//! width.

use inkwell::IntPredicate;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValueEnum, IntValue};
use tk_gpu::layout::linear::{Conversion, InDim, Pair, Select, ShufflePlan};
use tk_tile::Inst;

use super::value::{bits, vector_of, word};
use super::{Emit, Res, Stop, bug};
use crate::target::Lane;

/// The selectors of the bytes of a word of the lower halves of two words, and of the upper ones: in their order, and
/// exchanged.
const SELECTORS: [(u32, u32); 2] = [(0x0504_0100, 0x0100_0504), (0x0706_0302, 0x0302_0706)];

impl<'c> Emit<'_, 'c> {
    pub(super) fn convert(&mut self, inst: &Inst) -> Res<()> {
        let (x, r) = (self.operand(inst, 0)?, self.result(inst)?);
        if let super::value::Tile::Splat(_) = self.tile(x)? {
            return self.alias(inst);
        }
        let bytes = self.bytes_of(x);
        let (from, to) = (self.layout(x)?.clone(), self.layout(r)?.clone());
        let regs = self.registers(x)?;
        let (of, into) =
            (1usize << from.atom().bits(InDim::Register), 1usize << to.atom().bits(InDim::Register));
        let mut out = vec![];
        let way = tk_gpu::analysis::conversion::in_warp(&from, &to, bytes);
        for atom in 0..to.registers() / into {
            let part = regs.get(atom * of..(atom + 1) * of).unwrap_or(&[]);
            match &way {
                Some(Conversion::Same) => out.extend_from_slice(part),
                Some(Conversion::Registers(list)) => {
                    for n in list {
                        out.push(*part.get(*n as usize).ok_or_else(|| Stop::Bug("no such register".into()))?);
                    }
                }
                Some(Conversion::Shuffle(plan)) => out.extend(self.in_words(plan, part)?),
                Some(Conversion::Shared) | None => return bug("a conversion was not lowered"),
            }
        }
        self.define_regs(r, out)
    }

    /// Executes a plan of shuffles, with small values that move together in words. `ptxas` also waits for each `wgmma` of a
    /// kernel that selects between 16-bit values of accumulators (C7514), not between words of them.
    fn in_words(&self, plan: &ShufflePlan, regs: &[BasicValueEnum<'c>]) -> Res<Vec<BasicValueEnum<'c>>> {
        let Some(first) = regs.first() else { return Ok(vec![]) };
        let ty = first.get_type();
        let bits = bits(ty);
        let Some(pair) = plan.paired().filter(|_| bits == 8 || bits == 16) else {
            return self.shuffled(plan, regs);
        };
        let b = self.builder;
        let (small, wide) = (word(self.context, bits), word(self.context, 2 * bits));
        let high = wide.const_int(bits.into(), false);
        let mut words = vec![];
        for (x, y) in pairs(regs, pair.source) {
            if ty.is_float_type() && self.target.keeps_vectors(self) {
                let both = b.build_insert_element(vector_of(ty, 2)?.get_poison(), x, self.int(0), "")?;
                let both = b.build_insert_element(both, y, self.int(1), "")?;
                words.push(b.build_bit_cast(both, wide, "")?);
                continue;
            }
            let [x, y] = [x, y].map(|v| b.build_bit_cast(v, small, ""));
            let (x, y) = (x?.into_int_value(), y?.into_int_value());
            let y = b.build_left_shift(b.build_int_z_extend(y, wide, "")?, high, "")?;
            words.push(b.build_or(y, b.build_int_z_extend(x, wide, "")?, "")?.into());
        }
        if let Some(out) = self.interleaved(&pair, &words, ty)? {
            return Ok(out);
        }
        let words = self.in_words(&pair.plan, &words)?;
        let mut out = vec![*first; 2 * words.len()];
        let places = (0..out.len()).filter(|i| i >> pair.result & 1 == 0).collect::<Vec<_>>();
        for (at, both) in places.into_iter().zip(words) {
            let both = both.into_int_value();
            let above = b.build_right_shift(both, high, false, "")?;
            for (at, part) in [(at, both), (at | 1 << pair.result, above)] {
                let part = b.build_bit_cast(b.build_int_truncate(part, small, "")?, ty, "")?;
                out.get_mut(at).into_iter().for_each(|o| *o = part);
            }
        }
        Ok(out)
    }

    /// Executes a plan for words of two 16-bit values whose results are words of one value of each of two: bytes that a lane
    /// selects, instead of selects between words and halves that are put together again.
    fn interleaved(
        &self,
        pair: &Pair,
        words: &[BasicValueEnum<'c>],
        ty: BasicTypeEnum<'c>,
    ) -> Res<Option<Vec<BasicValueEnum<'c>>>> {
        let (plan, registers) = (&pair.plan, &pair.plan.registers);
        let ([stage], 16, true) = (plan.after.as_slice(), bits(ty), self.target.permutes_bytes()) else {
            return Ok(None);
        };
        // The bit of a register's number in which the two words differ that lanes exchange.
        let differs = |at: usize, i: usize| {
            let ends = registers.get(i).zip(registers.get(i ^ 1 << at));
            ends.is_some_and(|(a, b)| a ^ b == stage.xor)
        };
        let count = registers.len();
        let mut numbers = 0..count.checked_ilog2().unwrap_or(0) as usize;
        let Some(at) = numbers.find(|at| (0..count).all(|i| differs(*at, i))) else { return Ok(None) };
        let chosen = self.is_chosen(stage)?;
        let brought = self.rounds_of(plan, words)?;
        let place = |i: usize| i & ((1 << pair.result) - 1) | i >> pair.result << (pair.result + 1);
        let mut out = vec![ty.const_zero(); 2 * count];
        for (half, (own, exchanged)) in SELECTORS.into_iter().enumerate() {
            let b = self.builder;
            let selector = b.build_select(chosen, self.int(exchanged), self.int(own), "")?.into_int_value();
            for i in (0..count).filter(|i| i >> at & 1 == 0) {
                let first = registers.get(i).copied().unwrap_or(0);
                let word = |n: u32| brought.get(n as usize).map(|x| x.into_int_value());
                let (Some(x), Some(y)) = (word(first), word(first ^ stage.xor)) else {
                    return bug("a plan names no register");
                };
                let both = self.target.permute_bytes(self, [x, y], selector)?;
                let values = self.unpacked_words(ty, 2, &[both.into()])?;
                for (i, value) in [i, i | 1 << at].into_iter().zip(values) {
                    let slot = out.get_mut(place(i) | half << pair.result);
                    slot.into_iter().for_each(|o| *o = value);
                }
            }
        }
        Ok(Some(out))
    }

    /// Executes a plan of shuffles.
    fn shuffled(&self, plan: &ShufflePlan, regs: &[BasicValueEnum<'c>]) -> Res<Vec<BasicValueEnum<'c>>> {
        let after = self.selected(&plan.after, &self.rounds_of(plan, regs)?)?;
        let pick = |n: &u32| {
            after.get(*n as usize).copied().ok_or_else(|| Stop::Bug("a plan names no register".into()))
        };
        plan.registers.iter().map(pick).collect()
    }

    /// The results of the rounds of a plan.
    fn rounds_of(&self, plan: &ShufflePlan, regs: &[BasicValueEnum<'c>]) -> Res<Vec<BasicValueEnum<'c>>> {
        let before = self.selected(&plan.before, regs)?;
        let mut brought = vec![];
        for round in &plan.rounds {
            let Some(x) = before.get(round.register as usize).copied() else {
                return bug("a plan names no register");
            };
            if plan.is_own_lane(round) {
                brought.push(x);
                continue;
            }
            let lane = if plan.is_butterfly() {
                Lane::Xor(round.lane_xor)
            } else {
                let images: Vec<u64> = plan.lane_of.iter().map(|l| u64::from(*l)).collect();
                let lane = self.linear(self.tid, &images)?;
                Lane::Index(self.builder.build_xor(lane, self.int(round.lane_xor), "")?)
            };
            brought.push(self.shuffle(x, lane)?);
        }
        Ok(brought)
    }

    /// Reorders registers: in chosen threads, index x becomes index x ^ xor.
    fn selected(&self, stages: &[Select], regs: &[BasicValueEnum<'c>]) -> Res<Vec<BasicValueEnum<'c>>> {
        let mut now = regs.to_vec();
        for stage in stages {
            let chosen = self.is_chosen(stage)?;
            let mut next = vec![];
            for (n, x) in now.iter().enumerate() {
                let Some(y) = now.get(n ^ stage.xor as usize) else { return bug("a plan names no register") };
                next.push(self.builder.build_select(chosen, *y, *x, "")?);
            }
            now = next;
        }
        Ok(now)
    }

    /// Returns true in the threads that a stage chooses.
    fn is_chosen(&self, stage: &Select) -> Res<IntValue<'c>> {
        let images: Vec<u64> = (0..32).map(|i| u64::from(stage.mask >> i & 1)).collect();
        let threads = self.kernel.options.threads();
        let bits = (threads.lane_bits + threads.warp_bits) as usize;
        let sum = self.linear(self.tid, images.get(..bits).unwrap_or(&images))?;
        Ok(self.builder.build_int_compare(IntPredicate::NE, sum, self.int(0), "")?)
    }

    /// A value of another lane, of any width.
    pub fn shuffle(&self, x: BasicValueEnum<'c>, lane: Lane<'c>) -> Res<BasicValueEnum<'c>> {
        let b = self.builder;
        let ty = x.get_type();
        let bits = bits(ty);
        let word = word(self.context, bits);
        let whole = if ty.is_int_type() {
            x.into_int_value()
        } else {
            b.build_bit_cast(x, word, "")?.into_int_value()
        };
        let back = |v: IntValue<'c>| -> Res<BasicValueEnum<'c>> {
            Ok(if ty.is_int_type() { v.into() } else { b.build_bit_cast(v, ty, "")? })
        };
        if bits <= 32 {
            let wide = b.build_int_z_extend_or_bit_cast(whole, self.i32(), "")?;
            let got = self.target.shuffle(self, wide, lane)?;
            return back(b.build_int_truncate_or_bit_cast(got, word, "")?);
        }
        let low = self.target.shuffle(self, b.build_int_truncate(whole, self.i32(), "")?, lane)?;
        let high = b.build_right_shift(whole, self.long(32), false, "")?;
        let high = self.target.shuffle(self, b.build_int_truncate(high, self.i32(), "")?, lane)?;
        let high = b.build_left_shift(b.build_int_z_extend(high, self.i64(), "")?, self.long(32), "")?;
        back(b.build_or(high, b.build_int_z_extend(low, self.i64(), "")?, "")?)
    }
}

/// The values whose numbers differ in this bit only.
fn pairs<'c>(
    regs: &[BasicValueEnum<'c>],
    bit: u32,
) -> impl Iterator<Item = (BasicValueEnum<'c>, BasicValueEnum<'c>)> {
    let first = (0..regs.len()).filter(move |i| i >> bit & 1 == 0);
    first.filter_map(move |i| regs.get(i).copied().zip(regs.get(i | 1 << bit).copied()))
}
