//! Positions of threads in TMA pipelines: the number of a stage, and the phase of the mbarrier for which they wait, which
//! flips each time the multi-stage buffer wraps around. They are in variables, which LLVM keeps in registers. The producer
//! begins with the phase before the first, as if every stage had been released.
//!
//! Lanes of a program with several warpgroups have few registers for them. There a position is one number, that of the
//! stages so far, if the number of stages is a power of two: its low bits are the stage, and the next one is the phase. Where
//! consumers advance in all their pipelines equally in each block, such as those of keys and of values in attention, one
//! variable serves all of them ([`Lockstep`]): the distance of a position from it is known at each instruction.
//!
//! `ptxas` keeps addresses of stages in uniform registers if it knows that they are uniform. What a loop with a number of
//! iterations in vector registers leaves, it does not know to be; so each branch in a loop that waits for stages begins with a
//! shuffle of the positions.

use inkwell::IntPredicate;
use inkwell::values::{IntValue, PointerValue};
use tk_gpu::ir::op::GpuOp;
use tk_tile::{BlockId, walk};

use super::state::{Cursor, Lockstep, TmaPipeline};
use super::{Emit, Res};
use crate::target::Lane;

impl<'c> Emit<'_, 'c> {
    /// A position in a pipeline with so many stages: of the producer, or of a consumer.
    pub(super) fn cursor(&self, stages: u32, is_producer: bool) -> Res<Cursor<'c>> {
        let fresh = |value: u32| -> Res<PointerValue<'c>> {
            let place = self.builder.build_alloca(self.i32(), "")?;
            self.builder.build_store(place, self.int(value))?;
            Ok(place)
        };
        let phase = u32::from(is_producer);
        let begin = if self.is_counted(stages) { phase * stages } else { 0 };
        Ok(Cursor { stage: fresh(begin)?, phase: fresh(phase)? })
    }

    /// Returns true if a position in a pipeline with so many stages is one number.
    fn is_counted(&self, stages: u32) -> bool {
        self.group.is_some() && stages.is_power_of_two()
    }

    fn variable(&self, place: PointerValue<'c>) -> Res<IntValue<'c>> {
        Ok(self.builder.build_load(self.i32(), place, "")?.into_int_value())
    }

    /// The variable of a position that is one number, and the distance from it.
    fn counter(&self, place: PointerValue<'c>) -> (PointerValue<'c>, Option<u32>) {
        let all = self.lockstep.as_ref();
        let found = all.and_then(|l| Some((l.count, l.ahead.iter().find(|(p, _)| *p == place)?.1)));
        found.map_or((place, None), |(count, ahead)| (count, Some(ahead)))
    }

    /// The stage and the phase of a position.
    pub(super) fn stage_and_phase(&self, stages: u32, at: &Cursor<'c>) -> Res<[IntValue<'c>; 2]> {
        let b = self.builder;
        if !self.is_counted(stages) {
            return Ok([self.variable(at.stage)?, self.variable(at.phase)?]);
        }
        let (place, ahead) = self.counter(at.stage);
        let count = b.build_int_add(self.variable(place)?, self.int(ahead.unwrap_or(0)), "")?;
        let phase = b.build_right_shift(count, self.int(stages.trailing_zeros()), false, "")?;
        Ok([b.build_and(count, self.int(stages - 1), "")?, b.build_and(phase, self.int(1), "")?])
    }

    /// Advances to the next stage, if `when`.
    pub(super) fn advance(&mut self, stages: u32, at: &Cursor<'c>, when: Option<IntValue<'c>>) -> Res<()> {
        let b = self.builder;
        if self.is_counted(stages) {
            let all = self.lockstep.as_mut().into_iter().flat_map(|l| &mut l.ahead);
            if let Some((_, ahead)) = all.into_iter().find(|(p, _)| *p == at.stage) {
                *ahead += 1;
                return Ok(());
            }
            let by = match when {
                Some(when) => b.build_int_z_extend(when, self.i32(), "")?,
                None => self.int(1),
            };
            b.build_store(at.stage, b.build_int_add(self.variable(at.stage)?, by, "")?)?;
            return Ok(());
        }
        let (stage, phase) = (self.variable(at.stage)?, self.variable(at.phase)?);
        let next = b.build_int_add(stage, self.int(1), "")?;
        let round = b.build_int_compare(IntPredicate::EQ, next, self.int(stages), "")?;
        let next = b.build_select(round, self.int(0), next, "")?.into_int_value();
        let flip = b.build_int_z_extend(round, self.i32(), "")?;
        let flipped = b.build_xor(phase, flip, "")?;
        let chosen = |new: IntValue<'c>, old: IntValue<'c>| -> Res<IntValue<'c>> {
            Ok(match when {
                Some(when) => b.build_select(when, new, old, "")?.into_int_value(),
                None => new,
            })
        };
        b.build_store(at.stage, chosen(next, stage)?)?;
        b.build_store(at.phase, chosen(flipped, phase)?)?;
        Ok(())
    }

    /// Advances by fewer than twice so many stages.
    pub(super) fn skip(&self, stages: u32, at: &Cursor<'c>, by: IntValue<'c>) -> Res<()> {
        let b = self.builder;
        let mut stage = b.build_int_add(self.variable(at.stage)?, by, "")?;
        if self.is_counted(stages) {
            b.build_store(at.stage, stage)?;
            return Ok(());
        }
        let mut phase = self.variable(at.phase)?;
        for _ in 0..2 {
            let round = b.build_int_compare(IntPredicate::UGE, stage, self.int(stages), "")?;
            let begin = b.build_int_sub(stage, self.int(stages), "")?;
            stage = b.build_select(round, begin, stage, "")?.into_int_value();
            phase = b.build_xor(phase, b.build_int_z_extend(round, self.i32(), "")?, "")?;
        }
        b.build_store(at.stage, stage)?;
        b.build_store(at.phase, phase)?;
        Ok(())
    }

    /// Lets the consumers of pipelines with as many stages count together, if they advance equally in each block.
    pub(super) fn count_together(&mut self) -> Res<()> {
        let most = self.tma_pipelines.iter().map(|c| c.stages).max().unwrap_or(1);
        let alike: Vec<TmaPipeline<'c>> =
            self.tma_pipelines.iter().filter(|c| c.stages == most).copied().collect();
        let func = self.func();
        let blocks = walk::insts(func).into_iter().flat_map(|i| func.insts[i].blocks.clone());
        let equal = |block: BlockId| {
            let mut advances = alike.iter().flat_map(|c| self.advances(block, c));
            let first = advances.next().flatten();
            first.is_some() && advances.all(|n| n == first)
        };
        let skips = walk::insts(func)
            .into_iter()
            .any(|i| matches!(GpuOp::of(&func.insts[i]), Some(GpuOp::ConsumerSkip(_))));
        if most == 1 || skips || !self.is_counted(most) || !blocks.chain([func.body]).all(equal) {
            return Ok(());
        }
        let count = self.builder.build_alloca(self.i32(), "")?;
        self.builder.build_store(count, self.int(0))?;
        let ahead = alike.iter().flat_map(|c| [c.receives.stage, c.releases.stage]).map(|p| (p, 0)).collect();
        self.lockstep = Some(Lockstep { count, ahead });
        Ok(())
    }

    /// By how many stages of a pipeline a block itself advances, waiting for them and releasing them; `None` if that
    /// depends on a predicate.
    fn advances(&self, block: BlockId, c: &TmaPipeline<'c>) -> [Option<u32>; 2] {
        let func = self.func();
        let mut advances = [Some(0); 2];
        for i in &func.blocks[block].insts {
            match GpuOp::of(&func.insts[*i]) {
                Some(GpuOp::ConsumerWait(op)) if op.pipeline.barriers == c.buffer => {
                    advances[0] = advances[0].map(|n| n + 1);
                }
                Some(GpuOp::ConsumerRelease(op)) if op.pipeline.barriers == c.buffer => {
                    advances[1] = advances[1].map(|n| n + 1).filter(|_| !op.when);
                }
                _ => {}
            }
        }
        advances
    }

    /// Ends a block: what it has passed goes to the variable of what is counted together.
    pub(super) fn count_block(&mut self, block: BlockId) -> Res<()> {
        let Some(Lockstep { count, ahead }) = &self.lockstep else { return Ok(()) };
        let is_counted = |c: &&TmaPipeline<'c>| ahead.iter().any(|(p, _)| *p == c.receives.stage);
        let one = self.tma_pipelines.iter().find(is_counted);
        let passed = one.and_then(|c| self.advances(block, c)[0]).unwrap_or(0);
        if passed == 0 {
            return Ok(());
        }
        let now = self.builder.build_int_add(self.variable(*count)?, self.int(passed), "")?;
        self.builder.build_store(*count, now)?;
        let all = self.lockstep.iter_mut().flat_map(|l| &mut l.ahead);
        all.for_each(|(_, n)| *n -= passed);
        Ok(())
    }

    /// The positions of the consumers in the pipelines for whose stages a block in a loop waits, in a form that the target
    /// knows to be uniform.
    pub(super) fn uniform_cursors(&self, block: BlockId) -> Res<()> {
        if self.group.is_none() || self.counters.is_empty() {
            return Ok(());
        }
        let waited = self.tma_pipelines.iter().filter(|c| self.advances(block, c)[0] != Some(0));
        let mut places: Vec<PointerValue<'c>> = vec![];
        for c in waited {
            let all: &[PointerValue<'c>] = match self.is_counted(c.stages) {
                true => &[self.counter(c.receives.stage).0, self.counter(c.releases.stage).0],
                false => &[c.receives.stage, c.receives.phase, c.releases.stage],
            };
            places.extend(all.iter().filter(|p| !places.contains(p)).copied().collect::<Vec<_>>());
        }
        places.dedup();
        for place in places {
            let same = self.target.shuffle(self, self.variable(place)?, Lane::Index(self.int(0)))?;
            self.builder.build_store(place, same)?;
        }
        Ok(())
    }
}
