//! How long a program takes when it is alone on a multiprocessor: [`Timeline::alone`].
//!
//! A warp issues its instructions in order and waits where an operand is not there yet: loads that follow one another
//! overlap, a barrier waits for what was stored. A loop is walked until its iterations take the same time; the others are
//! not walked. Producer warps are not walked: a stage of a TMA pipeline arrives the latency of a copy after it was
//! released.

use std::ops::Range;

use tk_ops::Op;
use tk_tile::flow::{Flow, flow};
use tk_tile::frequency::Frequencies;
use tk_tile::{BlockId, Id, Inst, InstId, ValueId, walk};

use super::work::Work;
use super::{MATRIX, Works, latency};
use crate::ir::kernel::Kernel;
use crate::ir::op::{GpuOp, Pipeline};
use crate::ir::warps;
use crate::target::chip::Chip;

/// The most iterations of a loop that are walked.
const WALKED: f64 = 16.0;
/// The last of these, whose mean counts: with 2, 3 or 4 stages, iterations repeat after as many.
const PERIOD: usize = 12;
/// Iterations that take the same time, after which the others do, at least.
const SAME: usize = 3;

/// What of a kernel's timeline is the same for all launches: its instructions, in a form that is walked quickly.
#[derive(Debug, Default)]
pub struct Timeline {
    /// Warps of a scheduler that need not wait for one another.
    independent: f64,
    /// What producer warps run.
    producers: Option<BlockId>,
    /// Cycles of one instruction of all warps.
    issue: f64,
    /// The parts of a multiprocessor, of which a warp uses one, over the warps; at least 1.
    few: f64,
    /// The steps of all blocks.
    steps: Vec<Step>,
    /// Those of each block, by its index.
    blocks: Vec<Range<usize>>,
    /// Lists of values, by the numbers that are given to them here.
    lists: Vec<u32>,
    /// How many values have a number.
    values: usize,
    /// The TMA pipelines.
    pipelines: Vec<Stages>,
}

/// The stages of a TMA pipeline.
#[derive(Debug)]
struct Stages {
    /// The number of the buffer with its mbarriers.
    barriers: usize,
    count: usize,
    /// Bytes that are copied to one.
    bytes: f64,
}

/// A list of values: a part of [`Timeline::lists`].
type List = Range<usize>;

/// An instruction.
#[derive(Debug)]
struct Step {
    kind: StepKind,
    operands: List,
    results: List,
    /// What it takes if no argument changes that.
    pace: Pace,
    /// Its number among those whose cost the arguments change.
    number: Option<u32>,
}

/// What an instruction waits for, and what waits for it.
#[derive(Debug)]
enum StepKind {
    /// A barrier of warps or blocks.
    Barrier,
    /// Halves of the warps begin to take turns, or end to.
    HalfBarrier {
        begins: bool,
    },
    /// The end of a phase, in which the other half of the warps is in the other one.
    PhaseEnd {
        is_first: bool,
    },
    SharedStore,
    AsyncCopy,
    AsyncCommit,
    /// Of all but so many groups of copies.
    AsyncWait(usize),
    /// Of a pipeline, by its number.
    ConsumerWait(usize),
    ConsumerRelease(usize),
    Mma {
        asynchronous: bool,
    },
    /// Of all but so many products.
    MmaWait(usize),
    /// Another operation without blocks: whether it is one of the target, and whether it is computed as soon as its operands
    /// are there.
    Plain {
        is_target: bool,
        is_early: bool,
    },
    Loop {
        body: BlockId,
        /// The values of the body that an iteration begins with.
        args: List,
        /// Operands that are carried.
        carried: List,
        /// What the end of the body passes on.
        passed: List,
    },
    If(Vec<BlockId>),
    Elements(Vec<BlockId>),
}

/// The cycles of an instruction.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    /// Instructions of warps.
    issue: f64,
    /// Cycles in which all warps issue it.
    duration: f64,
    /// Until its result is there.
    latency: f64,
    /// Operations of the matrix units, and cycles of shared memory for their operands.
    matrix: f64,
    shared: f64,
}

impl Timeline {
    /// Of a kernel whose instructions have these costs.
    pub fn new(kernel: &Kernel, works: &[Work], numbers: &[Option<u32>]) -> Timeline {
        let (warps, schedulers) =
            (f64::from(kernel.options.all_warps()), f64::from(kernel.options.spec.sm.schedulers));
        let blocks = f64::from(kernel.options.blocks.max(1));
        let timeline = Timeline {
            independent: independent(kernel),
            producers: warps::producer(kernel).map(|(_, blocks)| blocks[0]),
            // Warps of a scheduler take turns; one alone issues an instruction every second cycle.
            issue: (1.0 / (schedulers * blocks)).max(2.0 / warps),
            few: (schedulers * blocks / warps).max(1.0),
            ..Timeline::default()
        };
        let known = vec![None; kernel.func().values.len()];
        let mut build = Build { kernel, works, numbers, known, timeline };
        for (_, block) in kernel.func().blocks.iter() {
            let begin = build.timeline.steps.len();
            block.insts.iter().for_each(|i| build.step(*i));
            let end = build.timeline.steps.len();
            build.timeline.blocks.push(begin..end);
        }
        build.timeline
    }

    /// Cycles of a program that nothing else disturbs.
    pub fn alone(&self, kernel: &Kernel, works: &Works<'_>, often: &Frequencies, chip: &Chip) -> f64 {
        let blocks = f64::from(kernel.options.blocks.max(1));
        let mut walk = Walk {
            of: self,
            varying: works.varying.iter().map(|work| self.pace(work, false)).collect(),
            often,
            matrix: chip.matrix16 / f64::from(chip.sms) / chip.clock * MATRIX * blocks / self.few,
            now: 0.0,
            begin: 0.0,
            ready: vec![0.0; self.values],
            stores: 0.0,
            free: 0.0,
            products: vec![],
            copied: 0.0,
            groups: vec![],
            stages: vec![(0, vec![]); self.pipelines.len()],
            halves: 1.0,
            phase: (0.0, 0.0),
        };
        walk.block(kernel.func().body, 1.0);
        walk.now
    }

    /// The cycles of an instruction. Those of shared memory for a product go on beside others.
    fn pace(&self, work: &Work, is_product: bool) -> Pace {
        let Work { issue, shared, matrix, latency, .. } = *work;
        let own = if is_product { 0.0 } else { shared };
        let units = own.max(work.accesses).max(work.special * 2.0) * self.few;
        Pace { issue, duration: (issue * self.issue).max(units), latency, matrix, shared }
    }
}

/// Builds a timeline.
struct Build<'k> {
    kernel: &'k Kernel,
    works: &'k [Work],
    numbers: &'k [Option<u32>],
    /// The numbers of values.
    known: Vec<Option<u32>>,
    timeline: Timeline,
}

impl Build<'_> {
    fn list(&mut self, values: &[ValueId]) -> List {
        let begin = self.timeline.lists.len();
        for v in values {
            let Some(slot) = self.known.get_mut(v.index()) else { continue };
            let number = *slot.get_or_insert_with(|| {
                self.timeline.values += 1;
                self.timeline.values as u32 - 1
            });
            self.timeline.lists.push(number);
        }
        begin..self.timeline.lists.len()
    }

    fn step(&mut self, id: InstId) {
        let kernel = self.kernel;
        let inst = &kernel.func().insts[id];
        let number = self.numbers.get(id.index()).copied().flatten();
        let kind = match flow(inst.op) {
            Flow::Plain => self.plain(inst),
            Flow::For | Flow::While => match inst.blocks.last() {
                Some(body) => self.repeated(inst, *body),
                None => return,
            },
            Flow::If => StepKind::If(inst.blocks.clone()),
            Flow::Elements | Flow::Expect => StepKind::Elements(inst.blocks.clone()),
        };
        let work = self.works.get(id.index()).copied().unwrap_or_default();
        let is_nothing = inst.results.is_empty() || inst.operands.is_empty() && work.latency == 0.0;
        if matches!(kind, StepKind::Plain { is_target: false, .. })
            && number.is_none()
            && work.issue == 0.0
            && is_nothing
        {
            return;
        }
        let is_product = matches!(kind, StepKind::Mma { .. });
        let pace = self.timeline.pace(&work, is_product);
        // No argument changes the cost of a product.
        let number = number.filter(|_| !is_product);
        let (operands, results) = (self.list(&inst.operands), self.list(&inst.results));
        self.timeline.steps.push(Step { kind, operands, results, pace, number });
    }

    fn repeated(&mut self, inst: &Inst, body: BlockId) -> StepKind {
        let func = self.kernel.func();
        let carried = inst.operands.get(if flow(inst.op) == Flow::For { 3 } else { 0 }..);
        let end = func.blocks[body].insts.last().map(|i| func.insts[*i].operands.as_slice());
        let args = self.list(&func.blocks[body].args);
        let [carried, passed] = [carried, end].map(|list| self.list(list.unwrap_or_default()));
        StepKind::Loop { body, args, carried, passed }
    }

    /// The number of a pipeline.
    fn pipeline(&mut self, of: Pipeline) -> usize {
        let all = &mut self.timeline.pipelines;
        all.iter().position(|known| known.barriers == of.barriers).unwrap_or_else(|| {
            all.push(Stages { barriers: of.barriers, count: of.stages as usize, bytes: 0.0 });
            all.len() - 1
        })
    }

    fn plain(&mut self, inst: &Inst) -> StepKind {
        match GpuOp::of(inst) {
            Some(GpuOp::Barrier(_) | GpuOp::ClusterSync(_) | GpuOp::ClusterWait(_)) => StepKind::Barrier,
            Some(GpuOp::HalfBarrier(half)) => StepKind::HalfBarrier { begins: half.upper },
            Some(GpuOp::PhaseBarrier(end)) => StepKind::PhaseEnd { is_first: end.multiplies },
            Some(GpuOp::SharedStore(_)) => StepKind::SharedStore,
            Some(GpuOp::AsyncCopy(_)) => StepKind::AsyncCopy,
            Some(GpuOp::AsyncCommit(_)) => StepKind::AsyncCommit,
            Some(GpuOp::AsyncWait(wait)) => StepKind::AsyncWait(wait.pending as usize),
            Some(GpuOp::ConsumerWait(wait)) => StepKind::ConsumerWait(self.pipeline(wait.pipeline)),
            Some(GpuOp::ConsumerRelease(release)) => {
                StepKind::ConsumerRelease(self.pipeline(release.pipeline))
            }
            Some(GpuOp::ProducerAcquire(acquire)) => {
                let number = self.pipeline(acquire.pipeline);
                if let Some(stages) = self.timeline.pipelines.get_mut(number) {
                    stages.bytes = f64::from(acquire.bytes);
                }
                StepKind::Plain { is_target: true, is_early: false }
            }
            Some(GpuOp::Mma(mma)) => StepKind::Mma { asynchronous: mma.asynchronous },
            Some(GpuOp::MmaWait(wait)) => StepKind::MmaWait(wait.pending as usize),
            Some(_) | None => {
                let is_load = matches!(inst.op, Op::Memory(_)) && !inst.results.is_empty();
                let is_scalar = inst.results.iter().all(|r| self.kernel.layout(*r).is_none());
                StepKind::Plain { is_target: inst.op == Op::Target, is_early: is_load || is_scalar }
            }
        }
    }
}

struct Walk<'a> {
    of: &'a Timeline,
    /// The cycles of instructions whose cost the arguments change, by number.
    varying: Vec<Pace>,
    often: &'a Frequencies,
    /// Operations of the matrix units in a cycle.
    matrix: f64,
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
    /// Of each pipeline, stages that were waited for, and when stages were released.
    stages: Vec<(usize, Vec<f64>)>,
    /// Halves of the warps that have a multiprocessor for themselves in turn: 2 in a loop in opposite phases.
    halves: f64,
    /// When the phase at hand began, and how long the one before took.
    phase: (f64, f64),
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

/// Returns true if so many last iterations take the same time.
fn is_steady(times: &[f64], count: usize) -> bool {
    let last = times.len().checked_sub(count).and_then(|from| times.get(from..)).unwrap_or_default();
    let (least, most) = last.iter().fold((f64::INFINITY, 0.0f64), |(a, b), t| (a.min(*t), b.max(*t)));
    !last.is_empty() && most - least <= 1e-3 * most
}

fn mean(times: &[f64]) -> Option<f64> {
    (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64)
}

impl<'a> Walk<'a> {
    fn block(&mut self, block: BlockId, runs: f64) {
        if Some(block) == self.of.producers {
            return;
        }
        let of = self.of;
        let before = std::mem::replace(&mut self.begin, self.now);
        let steps = of.blocks.get(block.index()).and_then(|range| of.steps.get(range.clone()));
        steps.unwrap_or_default().iter().for_each(|step| self.step(step, runs));
        self.begin = before;
    }

    fn step(&mut self, step: &'a Step, runs: f64) {
        let mut pace = match step.number {
            Some(n) => self.varying.get(n as usize).copied().unwrap_or_default(),
            None => step.pace,
        };
        pace.duration /= self.halves;
        match &step.kind {
            StepKind::Loop { body, args, carried, passed } => {
                self.repeat(step, (*body, args), (carried, passed), runs);
            }
            StepKind::If(blocks) => {
                for b in blocks.iter().filter(|b| self.often.of(**b) > 0.0) {
                    let share = self.often.of(*b) / runs.max(1e-9);
                    let before = self.now;
                    self.block(*b, self.often.of(*b));
                    // A side that seldom runs takes its share of the time.
                    self.now = before + (self.now - before) * share.min(1.0);
                }
                self.set(&step.results, self.now);
            }
            StepKind::Elements(blocks) => {
                let before = self.now;
                blocks.iter().for_each(|b| self.block(*b, self.often.of(*b)));
                self.now = before.max(self.last(&step.operands)) + pace.issue * self.of.issue;
                self.set(&step.results, self.now + pace.latency.max(latency::ALU));
            }
            StepKind::Plain { is_target, is_early } => {
                let operands = self.last(&step.operands);
                if *is_target || pace.issue > 0.0 {
                    self.now = self.now.max(operands) + pace.duration;
                }
                // What only renames registers takes no time, but its operands may. Loads and positions are computed as soon
                // as their operands are there, at the earliest where their block begins.
                let from = match pace.issue > 0.0 {
                    true if *is_early => operands.max(self.begin) + pace.duration,
                    true => self.now,
                    false => operands,
                };
                self.set(&step.results, from + pace.latency);
            }
            StepKind::Barrier
            | StepKind::HalfBarrier { .. }
            | StepKind::PhaseEnd { .. }
            | StepKind::SharedStore
            | StepKind::AsyncCopy
            | StepKind::AsyncCommit
            | StepKind::AsyncWait(_)
            | StepKind::ConsumerWait(_)
            | StepKind::ConsumerRelease(_)
            | StepKind::Mma { .. }
            | StepKind::MmaWait(_) => self.ordered(step, &pace),
        }
    }

    /// A loop: its first iterations, and for those that follow the mean of the last of these.
    fn repeat(
        &mut self,
        step: &'a Step,
        (body, args): (BlockId, &'a List),
        (carried, passed): (&'a List, &'a List),
        runs: f64,
    ) {
        let of = self.of;
        let iterations = self.often.of(body) / runs.max(1e-9);
        let first = self.last(&step.operands);
        self.now = self.now.max(first);
        let walked = if iterations > 0.0 { iterations.min(WALKED).ceil().max(1.0) } else { 0.0 };
        let [args, carried, passed, results] =
            [args, carried, passed, &step.results].map(|l| of.lists.get(l.clone()).unwrap_or_default());
        let skip = args.len().saturating_sub(carried.len());
        let mut values: Vec<f64> = carried.iter().map(|v| self.at(*v)).collect();
        let (begin, mut times) = (self.now, Vec::with_capacity(walked as usize));
        // A copy may be waited for in one of as many iterations as there are stages.
        let stages = of.pipelines.iter().map(|p| p.count).max().unwrap_or(0);
        let is_steady = |times: &[f64]| is_steady(times, SAME.max(stages + 1));
        while times.len() < walked as usize && !is_steady(&times) {
            let before = self.now;
            for (arg, at) in args.iter().skip(skip).zip(&values) {
                self.put(*arg, *at);
            }
            for arg in args.iter().take(skip) {
                self.put(*arg, before);
            }
            self.block(body, self.often.of(body));
            values.clear();
            values.extend(passed.iter().map(|v| self.at(*v)));
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
        for (r, at) in results.iter().zip(&values) {
            self.put(*r, at + more);
        }
    }

    /// Time passes in which everything goes on as before.
    fn shift(&mut self, by: f64) {
        for t in [&mut self.now, &mut self.stores, &mut self.free, &mut self.copied] {
            *t += by;
        }
        let releases = self.stages.iter_mut().map(|(_, releases)| releases);
        for list in [&mut self.products, &mut self.groups].into_iter().chain(releases) {
            list.iter_mut().for_each(|t| *t += by);
        }
    }

    /// An operation that others wait for without using its result.
    fn ordered(&mut self, step: &Step, pace: &Pace) {
        let start = self.now.max(self.last(&step.operands));
        match step.kind {
            StepKind::Barrier => self.now = start.max(self.stores) + pace.latency,
            StepKind::HalfBarrier { begins } => {
                self.halves = if begins { 2.0 } else { 1.0 };
                self.phase = (self.now, 0.0);
            }
            StepKind::PhaseEnd { is_first } => self.end_phase(start + pace.latency, is_first),
            StepKind::SharedStore => {
                self.now = start + pace.duration;
                self.stores = self.stores.max(self.now + pace.latency);
            }
            StepKind::AsyncCopy => {
                self.now = start + pace.duration;
                self.copied = self.copied.max(self.now + latency::MEMORY);
            }
            StepKind::AsyncCommit => {
                self.groups.push(self.copied);
                self.now = start;
            }
            StepKind::AsyncWait(pending) => self.now = start.max(done(&self.groups, pending)),
            StepKind::ConsumerWait(pipeline) => {
                let (of, state) = (self.of.pipelines.get(pipeline), self.stages.get_mut(pipeline));
                let Some((of, (waits, releases))) = of.zip(state) else { return };
                // The stage was free from the beginning, or since it was released.
                let free = waits.checked_sub(of.count).and_then(|i| releases.get(i)).copied();
                let copied = free.unwrap_or(0.0) + latency::TMA + of.bytes / latency::TMA_BYTES;
                self.now = start.max(copied) + pace.latency;
                *waits += 1;
                self.set(&step.results, self.now);
            }
            StepKind::ConsumerRelease(pipeline) => {
                self.now = start;
                if let Some((_, releases)) = self.stages.get_mut(pipeline) {
                    releases.push(self.now);
                }
            }
            StepKind::Mma { asynchronous } => {
                let begin = start.max(self.free);
                // The others use the matrix units in the meantime; all of them count for the multiprocessor.
                let others = if self.halves > 1.0 { self.halves } else { self.of.independent };
                self.free = begin + (pace.matrix / self.matrix).max(pace.shared) / others;
                self.now = start + pace.duration;
                if asynchronous {
                    self.products.push(self.free + pace.latency);
                    self.set(&step.results, self.now);
                } else {
                    self.set(&step.results, self.free.max(self.now) + pace.latency);
                }
            }
            StepKind::MmaWait(pending) => {
                self.now = start.max(done(&self.products, pending));
                self.set(&step.results, self.now);
            }
            StepKind::Plain { .. } | StepKind::Loop { .. } | StepKind::If(_) | StepKind::Elements(_) => {}
        }
    }

    /// A phase ends: the other half is in the other phase, so two of them take as long as the longer one twice.
    fn end_phase(&mut self, end: f64, is_first: bool) {
        let length = end.max(self.stores).max(self.free) - self.phase.0;
        let more = if is_first { 0.0 } else { (length - self.phase.1).abs() };
        self.now = self.phase.0 + length + more;
        self.phase = (self.now, length);
    }

    /// When the last of some values is there.
    fn last(&self, list: &List) -> f64 {
        let list = self.of.lists.get(list.clone()).unwrap_or_default();
        list.iter().map(|v| self.at(*v)).fold(0.0, f64::max)
    }

    fn at(&self, v: u32) -> f64 {
        self.ready.get(v as usize).copied().unwrap_or(0.0)
    }

    fn put(&mut self, v: u32, at: f64) {
        if let Some(slot) = self.ready.get_mut(v as usize) {
            *slot = at;
        }
    }

    fn set(&mut self, list: &List, at: f64) {
        let of = self.of;
        of.lists.get(list.clone()).unwrap_or_default().iter().for_each(|v| self.put(*v, at));
    }
}

/// When all but the last few of these are done.
fn done(all: &[f64], pending: usize) -> f64 {
    let last = all.len().saturating_sub(pending);
    all.get(..last).unwrap_or_default().iter().copied().fold(0.0, f64::max)
}
