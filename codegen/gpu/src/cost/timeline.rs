//! How long a program takes when it is alone on a multiprocessor: [`Timeline::alone`].
//!
//! A warp issues its instructions in order and waits where an operand is not there yet: loads that follow one another
//! overlap, a barrier waits for what was stored. A loop is walked until its iterations take the same time; the others are
//! not walked. Producer warps are not walked: a stage of a TMA pipeline arrives the latency of a copy after it was
//! released.

use tk_ops::Op;
use tk_tile::flow::{Flow, flow};
use tk_tile::frequency::Frequencies;
use tk_tile::{BlockId, Id, Inst, InstId, ValueId, walk};

use super::work::Work;
use super::{MATRIX, Works, latency};
use crate::ir::kernel::Kernel;
use crate::ir::op::GpuOp;
use crate::ir::warps;
use crate::target::chip::Chip;

/// The most iterations of a loop that are walked.
const WALKED: f64 = 16.0;
/// The last of these, whose mean counts: with 2, 3 or 4 stages, iterations repeat after as many.
const PERIOD: usize = 12;
/// Iterations that take the same time, after which the others do.
const SAME: usize = 3;

/// What of a kernel's timeline is the same for all launches.
#[derive(Debug)]
pub struct Timeline {
    /// Warps of a scheduler that need not wait for one another.
    independent: f64,
    /// What producer warps run.
    producers: Option<BlockId>,
}

impl Timeline {
    /// Of a kernel.
    pub fn new(kernel: &Kernel) -> Timeline {
        let producers = warps::producer(kernel).map(|(_, blocks)| blocks[0]);
        Timeline { independent: independent(kernel), producers }
    }

    /// Cycles of a program that nothing else disturbs.
    pub fn alone(&self, kernel: &Kernel, works: &Works<'_>, often: &Frequencies, chip: &Chip) -> f64 {
        let mut walk = Walk::new(self, kernel, works, often, chip);
        walk.block(kernel.func().body, 1.0);
        walk.now
    }
}

struct Walk<'a> {
    of: &'a Timeline,
    kernel: &'a Kernel,
    works: &'a Works<'a>,
    often: &'a Frequencies,
    /// Cycles of one instruction of all warps.
    issue: f64,
    /// Operations of the matrix units in a cycle.
    matrix: f64,
    /// The parts of a multiprocessor, of which a warp uses one, over the warps; at least 1.
    few: f64,
    /// The cycle at which the next instruction can be issued.
    now: f64,
    /// When the block at hand began.
    begin: f64,
    /// When each value is there.
    ready: Vec<f64>,
    /// When what was stored to shared memory is there.
    stores: f64,
    /// When the matrix units are free.
    free: f64,
    /// When each asynchronous product ends.
    products: Vec<f64>,
    /// When the copies since the last commit end.
    copied: f64,
    /// When each group of copies ends.
    groups: Vec<f64>,
    /// Stages that were waited for, and when stages were released.
    waits: usize,
    releases: Vec<f64>,
}

impl<'a> Walk<'a> {
    fn new(
        of: &'a Timeline,
        kernel: &'a Kernel,
        works: &'a Works<'a>,
        often: &'a Frequencies,
        chip: &Chip,
    ) -> Walk<'a> {
        let (warps, schedulers) =
            (f64::from(kernel.options.all_warps()), f64::from(kernel.options.spec.sm.schedulers));
        let blocks = f64::from(kernel.options.blocks.max(1));
        let few = (schedulers * blocks / warps).max(1.0);
        Walk {
            of,
            kernel,
            works,
            often,
            // Warps of a scheduler take turns; one alone issues an instruction every second cycle.
            issue: (1.0 / (schedulers * blocks)).max(2.0 / warps),
            matrix: chip.matrix16 / f64::from(chip.sms) / chip.clock * MATRIX * blocks / few,
            few,
            now: 0.0,
            begin: 0.0,
            ready: vec![0.0; kernel.func().values.len()],
            stores: 0.0,
            free: 0.0,
            products: vec![],
            copied: 0.0,
            groups: vec![],
            waits: 0,
            releases: vec![],
        }
    }
}

/// The warps of a scheduler that go on independently of one another: while some wait, others use the matrix units. A
/// barrier in a loop keeps them together.
fn independent(kernel: &Kernel) -> f64 {
    let func = kernel.func();
    let is_loop = |i: &InstId| matches!(flow(func.insts[*i].op), Flow::For | Flow::While);
    let is_barrier = |i: InstId| matches!(GpuOp::of(&func.insts[i]), Some(GpuOp::Barrier(_)));
    let loops = walk::insts(func).into_iter().filter(is_loop);
    let mut bodies = loops.flat_map(|i| func.insts[i].blocks.clone());
    let together = bodies.any(|b| walk::insts_in(func, b).into_iter().any(is_barrier));
    let warps = f64::from(kernel.options.all_warps());
    if together { 1.0 } else { (warps / f64::from(kernel.options.spec.sm.schedulers)).max(1.0) }
}

/// Returns true if the last iterations take the same time.
fn is_steady(times: &[f64]) -> bool {
    let last = times.len().checked_sub(SAME).and_then(|from| times.get(from..)).unwrap_or_default();
    let (least, most) = last.iter().fold((f64::INFINITY, 0.0f64), |(a, b), t| (a.min(*t), b.max(*t)));
    !last.is_empty() && most - least <= 1e-3 * most
}

fn mean(times: &[f64]) -> Option<f64> {
    (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64)
}

impl<'w> Walk<'w> {
    fn block(&mut self, block: BlockId, runs: f64) {
        if Some(block) == self.of.producers {
            return;
        }
        let before = std::mem::replace(&mut self.begin, self.now);
        self.insts(block, runs);
        self.begin = before;
    }

    fn insts(&mut self, block: BlockId, runs: f64) {
        let kernel = self.kernel;
        for i in &kernel.func().blocks[block].insts {
            let inst = &kernel.func().insts[*i];
            match flow(inst.op) {
                Flow::Plain => self.plain(*i),
                Flow::For | Flow::While => self.repeat(inst, runs),
                Flow::If => {
                    for b in inst.blocks.iter().filter(|b| self.often.of(**b) > 0.0) {
                        let share = self.often.of(*b) / runs.max(1e-9);
                        let before = self.now;
                        self.block(*b, self.often.of(*b));
                        // A side that seldom runs takes its share of the time.
                        self.now = before + (self.now - before) * share.min(1.0);
                    }
                    self.set(&inst.results, self.now);
                }
                Flow::Elements | Flow::Expect => {
                    let cost = self.work(*i);
                    let before = self.now;
                    inst.blocks.iter().for_each(|b| self.block(*b, self.often.of(*b)));
                    self.now = before.max(self.operands(inst)) + cost.issue * self.issue;
                    self.set(&inst.results, self.now + cost.latency.max(latency::ALU));
                }
            }
        }
    }

    /// A loop: its first iterations, and for those that follow the mean of the last of these.
    fn repeat(&mut self, inst: &Inst, runs: f64) {
        let Some(body) = inst.blocks.last().copied() else { return };
        let iterations = self.often.of(body) / runs.max(1e-9);
        let first = self.operands(inst);
        self.now = self.now.max(first);
        let walked = if iterations > 0.0 { iterations.min(WALKED).ceil().max(1.0) } else { 0.0 };
        let args = &self.kernel.func().blocks[body].args;
        let carried = inst.operands.get(if flow(inst.op) == Flow::For { 3 } else { 0 }..).unwrap_or_default();
        let skip = args.len().saturating_sub(carried.len());
        let mut values: Vec<f64> = carried.iter().map(|v| self.at(*v)).collect();
        let (begin, mut times) = (self.now, Vec::with_capacity(walked as usize));
        while times.len() < walked as usize && !is_steady(&times) {
            let before = self.now;
            for (arg, at) in args.iter().skip(skip).zip(&values) {
                self.put(*arg, *at);
            }
            for arg in args.iter().take(skip) {
                self.put(*arg, before);
            }
            self.block(body, self.often.of(body));
            let end = self.kernel.func().blocks[body].insts.last();
            let end = end.map(|i| self.kernel.func().insts[*i].operands.clone()).unwrap_or_default();
            values = end.iter().map(|v| self.at(*v)).collect();
            times.push(self.now - before);
        }
        let last = times.get(times.len() - times.len().min(PERIOD)..).unwrap_or_default();
        let last = if is_steady(&times) { last.last().copied() } else { mean(last) };
        let more = (iterations - times.len() as f64).max(0.0) * last.unwrap_or(0.0);
        // A loop that runs less than once on average takes its share.
        if iterations < 1.0 {
            self.now = begin + (self.now - begin) * iterations;
        }
        self.shift(more);
        let results = inst.results.clone();
        for (r, at) in results.iter().zip(values) {
            self.put(*r, at + more);
        }
    }

    /// Time passes in which everything goes on as before.
    fn shift(&mut self, by: f64) {
        for t in [&mut self.now, &mut self.stores, &mut self.free, &mut self.copied] {
            *t += by;
        }
        for list in [&mut self.products, &mut self.groups, &mut self.releases] {
            list.iter_mut().for_each(|t| *t += by);
        }
    }

    fn work(&self, inst: InstId) -> &'w Work {
        self.works.get(inst)
    }

    fn plain(&mut self, inst: InstId) {
        let cost = self.work(inst);
        let kernel = self.kernel;
        let inst = &kernel.func().insts[inst];
        let start = self.now.max(self.operands(inst));
        match GpuOp::of(inst) {
            Some(GpuOp::Barrier(_) | GpuOp::ClusterSync(_) | GpuOp::ClusterWait(_)) => {
                self.now = start.max(self.stores) + cost.latency;
            }
            Some(GpuOp::SharedStore(_)) => {
                self.now = start + self.duration(cost);
                self.stores = self.stores.max(self.now + cost.latency);
            }
            Some(GpuOp::AsyncCopy(_)) => {
                self.now = start + self.duration(cost);
                self.copied = self.copied.max(self.now + latency::MEMORY);
            }
            Some(GpuOp::AsyncCommit(_)) => {
                self.groups.push(self.copied);
                self.now = start;
            }
            Some(GpuOp::AsyncWait(wait)) => {
                let last = self.groups.len().saturating_sub(wait.pending as usize);
                let done = self.groups.get(..last).unwrap_or_default().iter().copied().fold(0.0, f64::max);
                self.now = start.max(done);
            }
            Some(GpuOp::ConsumerWait(wait)) => {
                // The stage was free from the beginning, or since it was released.
                let stages = wait.pipeline.stages as usize;
                let free = self.waits.checked_sub(stages).and_then(|i| self.releases.get(i)).copied();
                self.now = start.max(free.unwrap_or(0.0) + latency::TMA) + cost.latency;
                self.waits += 1;
                self.set(&inst.results, self.now);
            }
            Some(GpuOp::ConsumerRelease(_)) => {
                self.now = start;
                self.releases.push(self.now);
            }
            Some(GpuOp::Mma(mma)) => {
                let begin = start.max(self.free);
                // The others use the matrix units in the meantime; all of them count for the multiprocessor.
                self.free = begin + (cost.matrix / self.matrix).max(cost.shared) / self.of.independent;
                self.now = start + self.duration(&Work { shared: 0.0, ..*cost });
                if mma.asynchronous {
                    self.products.push(self.free + cost.latency);
                    self.set(&inst.results, self.now);
                } else {
                    self.set(&inst.results, self.free.max(self.now) + cost.latency);
                }
            }
            Some(GpuOp::MmaWait(wait)) => {
                let last = self.products.len().saturating_sub(wait.pending as usize);
                let done = self.products.get(..last).unwrap_or_default().iter().copied().fold(0.0, f64::max);
                self.now = start.max(done);
                self.set(&inst.results, self.now);
            }
            Some(_) | None => {
                self.now = if inst.op == Op::Target || cost.issue > 0.0 {
                    start + self.duration(cost)
                } else {
                    self.now
                };
                // What only renames registers takes no time, but its operands may. Loads and positions are computed as soon
                // as their operands are there, at the earliest where their block begins.
                let is_load = matches!(inst.op, Op::Memory(_)) && !inst.results.is_empty();
                let is_scalar = inst.results.iter().all(|r| self.kernel.layout(*r).is_none());
                let from = match cost.issue > 0.0 {
                    true if is_load || is_scalar => {
                        self.operands(inst).max(self.begin) + self.duration(cost)
                    }
                    true => self.now,
                    false => self.operands(inst),
                };
                self.set(&inst.results, from + cost.latency);
            }
        }
    }

    /// Cycles in which all warps issue an instruction.
    fn duration(&self, cost: &Work) -> f64 {
        (cost.issue * self.issue).max(cost.shared.max(cost.accesses).max(cost.special * 2.0) * self.few)
    }

    fn operands(&self, inst: &Inst) -> f64 {
        inst.operands.iter().map(|v| self.at(*v)).fold(0.0, f64::max)
    }

    fn at(&self, v: ValueId) -> f64 {
        self.ready.get(v.index()).copied().unwrap_or(0.0)
    }

    fn put(&mut self, v: ValueId, at: f64) {
        if let Some(slot) = self.ready.get_mut(v.index()) {
            *slot = at;
        }
    }

    fn set(&mut self, values: &[ValueId], at: f64) {
        values.iter().for_each(|v| self.put(*v, at));
    }
}
