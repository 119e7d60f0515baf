//! Splits a kernel into a producer, which loads operands, and consumers, which multiply them.
//!
//! Requires feeds whose loads are part of a slice. Guarantees that both sides count the same iterations: the producer
//! acquires and commits a stage where the consumers wait for one.

use std::collections::{BTreeMap, BTreeSet};

use tk_ops::{ControlOp, DType, ElementwiseOp, Op};
use tk_tile::rewrite::yielded;
use tk_tile::{Attrs, BlockId, Def, FuncId, Inst, InstId, ValueId};

use super::feed::{Feed, TmaLoadPlan, of_group};
use super::messages::{self, Message};
use super::resident::Resident;
use super::slice::{CarriedNumbers, SlicePart, decides, pick};
use super::{PlannedPipeline, box_of, turns};
use crate::ir::builder::Edit;
use crate::ir::caching::Caching;
use crate::ir::kernel::BARRIERS;
use crate::ir::kernel::{Buffer, Kernel};
use crate::ir::op::{
    BufferRef, ClusterSync, ConsumerRelease, ConsumerWait, Elect, GpuOp, IsProducerWarp, MmaOperand,
    Pipeline, Placement, ProducerAcquire, ProducerCommit, ProducerDrain, ProducerSend, ProxyFence, TmaLoad,
};

/// The values of the producer for those of the program.
type Renamed = BTreeMap<ValueId, ValueId>;

/// A feed with the multi-stage buffer that it uses.
struct TmaPipeline<'a> {
    feed: &'a Feed,
    /// The buffer of the mbarriers.
    barriers: usize,
    stages: u32,
    /// The multi-stage buffers, in the order of the loads of the feed.
    buffers: Vec<usize>,
    /// The blocks in which consumers release a stage ([`Pipeline::peers`]).
    peers: u32,
}

impl TmaPipeline<'_> {
    fn pipeline(&self) -> Pipeline {
        Pipeline { barriers: self.barriers, stages: self.stages, peers: self.peers }
    }
}

/// Splits the kernel.
pub fn apply(
    kernel: &mut Kernel,
    pipelines: &[PlannedPipeline],
    residents: &[Resident],
    messages: &[Message],
    slice: &SlicePart,
) {
    let tma_pipelines: Vec<TmaPipeline<'_>> =
        pipelines.iter().flat_map(|r| tma_pipelines(kernel, r)).collect();
    let residents: Vec<(Resident, Pipeline)> =
        residents.iter().map(|r| (r.clone(), of_one_stage(kernel, r.taken))).collect();
    let messages: Vec<Passed> = messages
        .iter()
        .filter_map(|m| Some(Passed { message: *m, place: m.place(kernel)?, pipeline: m.pipeline(kernel) }))
        .collect();
    let body = kernel.func().body;
    let mut insts = std::mem::take(&mut func(kernel).blocks[body].insts);
    let end = insts.pop();
    let (copies, alone, rest, nobody) = {
        let func = func(kernel);
        (func.add_block(), func.add_block(), func.add_block(), func.add_block())
    };
    func(kernel).blocks[rest].insts = insts;
    let mut edit = Edit { kernel, loc: None };
    let flag = edit.scalar(DType::Bool);
    let mut pipelines: Vec<Pipeline> = tma_pipelines.iter().map(TmaPipeline::pipeline).collect();
    pipelines.dedup();
    pipelines.extend(residents.iter().map(|(_, p)| *p));
    pipelines.extend(messages.iter().map(|m| m.pipeline));
    let together: Vec<Pipeline> = pipelines.iter().filter(|p| p.peers > 1).copied().collect();
    let producer = GpuOp::from(IsProducerWarp { pipelines, warps: None, turns: None }).inst(vec![], None);
    let producer = edit.first(body, producer, flag);
    if !together.is_empty() {
        edit.gpu(body, ClusterSync {}, &[], &[]);
    }
    edit.choose(body, producer, [copies, rest]);
    let elect = edit.first(copies, GpuOp::from(Elect {}).inst(vec![], None), flag);
    edit.choose(copies, elect, [alone, nobody]);
    edit.yields(copies, &[]);
    edit.yields(nobody, &[]);
    let mut producer = Producer {
        edit,
        tma_pipelines: &tma_pipelines,
        residents: &residents,
        messages: &messages,
        slice,
        late: vec![],
    };
    producer.block(rest, alone, &mut Renamed::new());
    for pipeline in together {
        producer.edit.gpu(alone, ProducerDrain { pipeline }, &[], &[]);
    }
    producer.edit.yields(alone, &[]);
    for tma_pipeline in &tma_pipelines {
        receive(&mut producer.edit, tma_pipeline, (body, rest));
    }
    for (resident, pipeline) in &residents {
        // The former body of the kernel is now in a branch.
        let block = if resident.block == body { rest } else { resident.block };
        consume_resident(&mut producer.edit, resident, *pipeline, block);
    }
    for Passed { message, pipeline, place } in &messages {
        let block = if message.block == body { rest } else { message.block };
        messages::receive(&mut producer.edit, *message, *pipeline, block, *place);
    }
    drain(&mut producer.edit, &tma_pipelines, &residents, (body, rest));
    let feeds: Vec<(Pipeline, &Feed)> = tma_pipelines.iter().map(|p| (p.pipeline(), p.feed)).collect();
    turns::skip(&mut producer.edit, &feeds, rest);
    producer.edit.yields(rest, &[]);
    func(kernel).blocks[body].insts.extend(end);
}

fn func(kernel: &mut Kernel) -> &mut tk_tile::Func {
    &mut kernel.module.funcs[FuncId(0)]
}

/// Makes the buffers of the first feed multi-stage buffers, for all feeds that share them.
fn tma_pipelines<'a>(kernel: &mut Kernel, pipeline: &'a PlannedPipeline) -> Vec<TmaPipeline<'a>> {
    let buffers: Vec<usize> =
        pipeline.feeds.first().map_or(vec![], |f| f.taken.iter().map(|t| t.buffer).collect());
    for t in pipeline.feeds.first().iter().flat_map(|f| &f.taken) {
        if let Some(b) = kernel.buffers.get_mut(t.buffer) {
            b.bytes *= pipeline.stages;
            b.is_common = !t.of_group;
        }
    }
    kernel.buffers.push(Buffer::common(BARRIERS * pipeline.stages));
    let barriers = kernel.buffers.len() - 1;
    let (stages, peers) = (pipeline.stages, pipeline.peers());
    let tma_pipeline = |feed| TmaPipeline { feed, barriers, stages, buffers: buffers.clone(), peers };
    pipeline.feeds.iter().map(tma_pipeline).collect()
}

/// A pipeline of one stage. Warpgroups with loads of their own have copies of it: a stage is loaded again when its group
/// has released it.
fn of_one_stage(kernel: &mut Kernel, taken: TmaLoadPlan) -> Pipeline {
    let is_common = !taken.of_group;
    kernel.buffers.get_mut(taken.buffer).into_iter().for_each(|b| b.is_common = is_common);
    kernel.buffers.push(Buffer { is_common, ..Buffer::new(BARRIERS) });
    Pipeline { barriers: kernel.buffers.len() - 1, stages: 1, peers: 1 }
}

/// A message with its pipeline.
struct Passed {
    message: Message,
    /// The instruction before which it is passed on.
    place: InstId,
    pipeline: Pipeline,
}

/// The producer.
struct Producer<'a> {
    edit: Edit<'a>,
    tma_pipelines: &'a [TmaPipeline<'a>],
    residents: &'a [(Resident, Pipeline)],
    messages: &'a [Passed],
    slice: &'a SlicePart,
    late: Vec<Late>,
}

/// A resident that is loaded in an iteration of a loop.
struct Late {
    /// The body of the loop in the program.
    body: BlockId,
    /// Where the loop of the producer begins and ends, and its step.
    bounds: [ValueId; 3],
    /// The number of the resident.
    resident: usize,
}

/// How many iterations before the consumers reach the end of a loop the producer loads what follows it, counting the stages by
/// which it is ahead of them. Four iterations of 128 x 256 x 64 take 2.2 us of a Hopper, and a load 1 to 2.
const LEAD: u32 = 5;

impl Producer<'_> {
    /// The part of a block that is in the slice, appended to a new block.
    fn block(&mut self, old: BlockId, new: BlockId, renamed: &mut Renamed) {
        for i in self.edit.kernel.func().blocks[old].insts.clone() {
            for Passed { message, pipeline, place } in self.messages {
                if message.atomic == i {
                    self.take(new, *message, renamed);
                }
                let number = self.edit.kernel.func().insts[message.load].results.first();
                if let (true, Some(number)) = (*place == i, number.and_then(|v| renamed.get(v)).copied()) {
                    let send = ProducerSend { pipeline: *pipeline, buffer: message.buffer };
                    self.edit.gpu(new, send, &[number], &[]);
                }
            }
            if self.slice.insts.contains(&i) && !self.messages.iter().any(|m| m.message.load == i) {
                self.inst(new, i, renamed);
            }
            for tma_pipeline in self.tma_pipelines.iter().filter(|c| c.feed.block == old) {
                let last =
                    tma_pipeline.feed.taken.iter().map(|t| t.load).max_by_key(|l| {
                        self.edit.kernel.func().blocks[old].insts.iter().position(|k| k == l)
                    });
                if last == Some(i) {
                    let taken = tma_pipeline.feed.taken.iter().zip(tma_pipeline.buffers.iter().copied());
                    self.copies(new, tma_pipeline.pipeline(), taken, renamed);
                    self.load_late(old, new, renamed);
                }
            }
            for (n, (resident, _)) in self.residents.iter().enumerate() {
                if resident.taken.load == i && resident.during.is_none() {
                    self.load_resident(n, new, renamed);
                }
            }
        }
    }

    /// Takes a number from a counter.
    fn take(&mut self, block: BlockId, message: Message, renamed: &mut Renamed) {
        let func = self.edit.kernel.func();
        let (inst, number) = (func.insts[message.atomic].clone(), func.insts[message.load].results.clone());
        let of = |v: &ValueId| renamed.get(v).copied().unwrap_or(*v);
        let types: Vec<_> = inst.results.iter().map(|v| (func.ty(*v), None)).collect();
        let operands = inst.operands.iter().map(of).collect();
        let same = Inst { operands, results: vec![], ..inst };
        let (_, taken) = self.edit.add(block, same, &types);
        renamed.extend(number.into_iter().zip(taken));
    }

    fn load_resident(&mut self, n: usize, block: BlockId, renamed: &Renamed) {
        let Some((resident, pipeline)) = self.residents.get(n) else { return };
        let taken = std::iter::once((&resident.taken, resident.taken.buffer));
        self.copies(block, *pipeline, taken, renamed);
    }

    /// Loads what was left for an iteration of the loop with the body `old`: the first one, or one of the last for what
    /// follows the loop.
    fn load_late(&mut self, old: BlockId, new: BlockId, renamed: &Renamed) {
        let (now, later): (Vec<_>, Vec<_>) = self.late.drain(..).partition(|late| late.body == old);
        self.late = later;
        let Some(iv) = self.edit.kernel.func().blocks[new].args.first().copied() else { return };
        for by_threads in [false, true] {
            let of_kind = |late: &&Late| {
                let resident = self.residents.get(late.resident);
                resident.is_some_and(|(r, _)| r.by_threads.is_some() == by_threads)
            };
            let now: Vec<&Late> = now.iter().filter(of_kind).collect();
            let Some(Late { bounds: [lo, hi, step], .. }) = now.first() else { continue };
            let is_first = self.edit.compute(new, ElementwiseOp::Eq, &[iv, *lo], DType::Bool);
            let when = match by_threads {
                false => is_first,
                true => {
                    let ahead = self.tma_pipelines.iter().filter(|p| p.feed.block == old).map(|p| p.stages);
                    let lead = LEAD.saturating_sub(ahead.max().unwrap_or(0)).max(1);
                    let [at, before] =
                        [lead - 1, lead].map(|n| self.edit.comes(new, (iv, *hi, *step), n, true));
                    let starts = self.edit.compute(new, ElementwiseOp::Or, &[is_first, at], DType::Bool);
                    let not = self.edit.inst(Op::Elementwise(ElementwiseOp::Not), &[before], Attrs::new());
                    let flag = self.edit.scalar(DType::Bool);
                    let ends = self.edit.first(new, not, flag);
                    self.edit.compute(new, ElementwiseOp::And, &[starts, ends], DType::Bool)
                }
            };
            let [some, others] = [(); 2].map(|()| self.edit.func().add_block());
            now.iter().for_each(|late| self.load_resident(late.resident, some, renamed));
            self.end_arms(new, when, [some, others]);
        }
    }

    /// Adds a branch to these blocks, which end here.
    fn end_arms(&mut self, block: BlockId, condition: ValueId, arms: [BlockId; 2]) {
        arms.iter().for_each(|arm| self.edit.yields(*arm, &[]));
        self.edit.choose(block, condition, arms);
    }

    fn inst(&mut self, block: BlockId, id: InstId, renamed: &mut Renamed) {
        let inst = self.edit.kernel.func().insts[id].clone();
        self.edit.loc = inst.loc;
        let of = |v: &ValueId, renamed: &Renamed| renamed.get(v).copied().unwrap_or(*v);
        if let (Some(GpuOp::GroupOwn(_)), [all, ..], [r]) =
            (GpuOp::of(&inst), inst.operands.as_slice(), inst.results.as_slice())
        {
            renamed.insert(*r, of(all, renamed));
            return;
        }
        let mut operands: Vec<ValueId> = inst.operands.iter().map(|v| of(v, renamed)).collect();
        let mut results = inst.results.clone();
        let mut blocks = vec![];
        let late: Vec<usize> = (0..self.residents.len())
            .filter(|n| self.residents.get(*n).is_some_and(|(r, _)| r.during == Some(id)))
            .collect();
        let lo = operands.first().copied();
        if let (Some(body), [lo, hi, step, ..]) = (inst.blocks.first(), operands.as_slice()) {
            let late = late.iter().map(|n| Late { body: *body, bounds: [*lo, *hi, *step], resident: *n });
            self.late.extend(late);
        }
        if !inst.blocks.is_empty() {
            let numbers = CarriedNumbers::of(self.slice, id, inst.op);
            operands = [
                operands.get(..numbers.bounds).unwrap_or(&operands).to_vec(),
                pick(operands.get(numbers.bounds..).unwrap_or(&[]), &numbers.carried),
            ]
            .concat();
            results = pick(&results, &numbers.passed);
            blocks = inst.blocks.iter().map(|old| self.inner(*old, &inst, &numbers, renamed)).collect();
        }
        let types: Vec<_> = results.iter().map(|v| (self.edit.kernel.func().ty(*v), None)).collect();
        let new = Inst { operands, blocks, results: vec![], ..inst };
        let (added, made) = self.edit.add(block, new, &types);
        renamed.extend(results.into_iter().zip(made));
        if let (Some(lo), false) = (lo, late.is_empty()) {
            let came = self.edit.is_iteration(added, block, lo, 0);
            let [some, none] = [(); 2].map(|()| self.edit.func().add_block());
            late.iter().for_each(|n| self.load_resident(*n, none, renamed));
            self.end_arms(block, came, [some, none]);
        }
    }

    /// The part of a block of a loop or branch that is in the slice.
    fn inner(
        &mut self,
        old: BlockId,
        owner: &Inst,
        numbers: &CarriedNumbers,
        renamed: &mut Renamed,
    ) -> BlockId {
        let begins = decides(owner, old);
        let (received, given) = match begins {
            true => (&numbers.carried, &numbers.passed),
            false => (&numbers.passed, &numbers.carried),
        };
        let new = self.edit.func().add_block();
        let args = self.edit.kernel.func().blocks[old].args.clone();
        // A counter comes before what a loop carries.
        let counter = args.len().min(numbers.bounds.min(1));
        let others = pick(args.get(counter..).unwrap_or(&[]), received);
        for old in args.into_iter().take(counter).chain(others) {
            let ty = self.edit.kernel.func().ty(old);
            let arg = self.edit.func().add_arg(new, ty);
            self.edit.set_layout(arg, None);
            renamed.insert(old, arg);
        }
        self.block(old, new, renamed);
        let ends = yielded(self.edit.kernel.func(), old);
        let (goes_on, ends) = ends.split_at(usize::from(begins).min(ends.len()));
        let ends = [goes_on.to_vec(), pick(ends, given)].concat();
        let ends: Vec<ValueId> = ends.iter().map(|v| renamed.get(v).copied().unwrap_or(*v)).collect();
        if begins {
            let end = self.edit.inst(Op::Control(ControlOp::Condition), &ends, Attrs::new());
            self.edit.add(new, end, &[]);
        } else {
            self.edit.yields(new, &ends);
        }
        new
    }

    /// Fills a stage.
    fn copies<'t>(
        &mut self,
        block: BlockId,
        pipeline: Pipeline,
        taken: impl Iterator<Item = (&'t TmaLoadPlan, usize)> + Clone,
        renamed: &Renamed,
    ) {
        let groups = self.edit.kernel.options.groups;
        // Groups with copies of the pipeline wait for one another nowhere.
        let is_common = self.edit.kernel.buffers.get(pipeline.barriers).is_none_or(|b| b.is_common);
        let rounds: Vec<Vec<u32>> = match is_common {
            true => vec![(0..groups).collect()],
            false => (0..groups).map(|n| vec![n]).collect(),
        };
        for round in rounds {
            let loaded = |t: &TmaLoadPlan| if t.of_group { round.len() as u32 } else { 1 };
            let bytes = |(t, b): (&TmaLoadPlan, usize)| {
                let buffer = self.edit.kernel.buffers.get(b);
                buffer.map_or(0, |b| b.bytes / pipeline.stages.max(1) * loaded(t))
            };
            let bytes: u32 = taken.clone().map(bytes).sum();
            let group = round.first().copied().filter(|_| !is_common);
            self.edit.gpu(block, ProducerAcquire { pipeline, bytes, group }, &[], &[]);
            for (t, staged) in taken.clone() {
                for n in round.iter().take(loaded(t) as usize) {
                    self.load(block, (t, staged), pipeline, *n, renamed);
                }
            }
        }
        self.edit.gpu(block, ProducerCommit { pipeline }, &[], &[]);
    }

    /// Loads a tile, for a warpgroup if it depends on that.
    fn load(
        &mut self,
        block: BlockId,
        (t, destination): (&TmaLoadPlan, usize),
        pipeline: Pipeline,
        group: u32,
        renamed: &Renamed,
    ) {
        let Some((copied, _)) = box_of(self.edit.kernel, t) else { return };
        let load = self.edit.kernel.func().insts[t.load].clone();
        let places = load.operands.iter().take(3);
        let operands = places.map(|v| self.for_group(block, *v, group, renamed)).collect();
        let copy = TmaLoad {
            destination,
            group: t.of_group.then_some(group),
            pipeline,
            copied,
            multicast: t.multicast,
            caching: Caching::of(&load.attrs),
        };
        self.edit.add(block, GpuOp::from(copy).inst(operands, load.loc), &[]);
    }

    /// A position of the producer, for a warpgroup if it depends on that.
    fn for_group(&mut self, block: BlockId, v: ValueId, group: u32, renamed: &Renamed) -> ValueId {
        if !of_group(self.edit.kernel.func(), v) {
            return renamed.get(&v).copied().unwrap_or(v);
        }
        let Def::Inst(id, _) = self.edit.kernel.func().values[v].def else { return v };
        let inst = self.edit.kernel.func().insts[id].clone();
        if inst.op == Op::Target {
            return self.edit.int(block, DType::I32, group.into());
        }
        let ty = self.edit.kernel.func().ty(v);
        let operands = inst.operands.iter().map(|v| self.for_group(block, *v, group, renamed)).collect();
        let same = Inst { operands, results: vec![], ..inst };
        self.edit.first(block, same, ty)
    }
}

/// The consumers of what a block loads once: they wait for it where they stored it, and release it after they read it last.
fn consume_resident(edit: &mut Edit<'_>, resident: &Resident, pipeline: Pipeline, block: BlockId) {
    let TmaLoadPlan { load, store, .. } = resident.taken;
    edit.loc = edit.kernel.func().insts[load].loc;
    let i32 = edit.scalar(DType::I32);
    if let Some((readers, bases)) = &resident.by_threads {
        for reader in readers {
            GpuOp::change(&mut edit.func().insts[*reader], |op| {
                if let GpuOp::SharedLoad(read) = op {
                    read.placement = Placement::Swizzled { bases: bases.clone() };
                }
            });
        }
    }
    for i in std::mem::take(&mut edit.func().blocks[block].insts) {
        if i == store {
            let receive = GpuOp::from(ConsumerWait { pipeline }).inst(vec![], edit.loc);
            edit.first(block, receive, i32);
        }
        if i != store && i != load {
            edit.func().blocks[block].insts.push(i);
        }
        if i == resident.last {
            if resident.by_threads.is_some() {
                // TMA writes where threads have read.
                edit.gpu(block, ProxyFence { global: false }, &[], &[]);
            }
            edit.gpu(block, ConsumerRelease { pipeline, when: false, converge: true }, &[], &[]);
        }
    }
}

/// The iterations of loops that a warpgroup leaves out, but others do not: it waits for their stages and releases them.
fn drain(
    edit: &mut Edit<'_>,
    tma_pipelines: &[TmaPipeline<'_>],
    residents: &[(Resident, Pipeline)],
    (body, rest): (BlockId, BlockId),
) {
    let loops: BTreeSet<(BlockId, InstId)> = tma_pipelines.iter().map(|p| p.feed.at).collect();
    // What threads read after a loop may be loaded after all of its iterations.
    let of_products: Vec<Pipeline> =
        residents.iter().filter(|(r, _)| r.by_threads.is_none()).map(|(_, p)| *p).collect();
    for (outer, id) in loops {
        let inst = edit.kernel.func().insts[id].clone();
        let [lo, hi, step, ..] = inst.operands.as_slice() else { continue };
        let Def::Inst(end, _) = edit.kernel.func().values[*hi].def else { continue };
        let end = edit.kernel.func().insts[end].clone();
        let (Some(GpuOp::GroupOwn(_)), Some(all)) = (GpuOp::of(&end), end.operands.first()) else { continue };
        let own: Vec<Pipeline> =
            tma_pipelines.iter().filter(|p| p.feed.at.1 == id).map(TmaPipeline::pipeline).collect();
        let outer = if outer == body { rest } else { outer };
        // Behind what is released after the loop.
        let insts = &edit.kernel.func().blocks[outer].insts;
        let releases = |i: &InstId| match GpuOp::of(&edit.kernel.func().insts[*i]) {
            Some(GpuOp::ConsumerRelease(r)) => own.iter().chain(&of_products).any(|p| *p == r.pipeline),
            _ => *i == id,
        };
        let place = insts.iter().rposition(releases).unwrap_or(0);
        let tail = edit.func().blocks[outer].insts.split_off(place + 1);
        edit.loc = inst.loc;
        let ty = edit.dtype(*lo);
        // The first iteration that is left out.
        let zero = edit.int(outer, ty, 0);
        let done = edit.compute(outer, ElementwiseOp::Sub, &[*hi, *lo], ty);
        let done = edit.compute(outer, ElementwiseOp::Maximum, &[done, zero], ty);
        let done = edit.compute(outer, ElementwiseOp::CeilDiv, &[done, *step], ty);
        let done = edit.compute(outer, ElementwiseOp::Mul, &[done, *step], ty);
        let next = edit.compute(outer, ElementwiseOp::Add, &[*lo, done], ty);
        let rounds = edit.func().add_block();
        let iv = edit.kernel.func().ty(*lo);
        let arg = edit.func().add_arg(rounds, iv);
        edit.set_layout(arg, None);
        let i32 = edit.scalar(DType::I32);
        for pipeline in own {
            let receive = GpuOp::from(ConsumerWait { pipeline }).inst(vec![], inst.loc);
            edit.first(rounds, receive, i32);
            edit.gpu(rounds, ConsumerRelease { pipeline, when: false, converge: true }, &[], &[]);
        }
        edit.yields(rounds, &[]);
        let mut skipped = edit.inst(Op::Control(ControlOp::For), &[next, *all, *step], Attrs::new());
        skipped.blocks = vec![rounds];
        edit.add(outer, skipped, &[]);
        edit.func().blocks[outer].insts.extend(tail);
    }
}

/// The consumers: they wait for stages, and release each when its product is complete.
fn receive(edit: &mut Edit<'_>, tma_pipeline: &TmaPipeline<'_>, (body, rest): (BlockId, BlockId)) {
    let feed = tma_pipeline.feed;
    let (Some(first), Some(last)) = (feed.products.first().copied(), feed.products.last().copied()) else {
        return;
    };
    edit.loc = edit.kernel.func().insts[first].loc;
    let gone = |i: &InstId| feed.taken.iter().any(|t| t.load == *i || t.store == *i);
    let insts = std::mem::take(&mut edit.func().blocks[feed.block].insts);
    let pipeline = tma_pipeline.pipeline();
    let i32 = edit.scalar(DType::I32);
    let mut stage = None;
    for i in insts.into_iter().filter(|i| !gone(i)) {
        if i == first {
            let receive = GpuOp::from(ConsumerWait { pipeline }).inst(vec![], edit.loc);
            stage = Some(edit.first(feed.block, receive, i32));
        }
        if feed.products.contains(&i) {
            let inst = &mut edit.func().insts[i];
            // The multi-stage buffer of each operand that is loaded.
            let staged = |operand: &mut MmaOperand| {
                let MmaOperand::Shared { buffer, .. } = operand else { return };
                let mut taken = feed.taken.iter().zip(&tma_pipeline.buffers);
                if let Some((_, staged)) = taken.find(|(t, _)| t.buffer == buffer.buffer) {
                    *buffer = BufferRef { buffer: *staged, stages: Some(tma_pipeline.stages) };
                }
            };
            GpuOp::change(inst, |op| {
                if let GpuOp::Mma(mma) = op {
                    [&mut mma.a, &mut mma.b].into_iter().for_each(staged);
                }
            });
            inst.operands.extend(stage);
        }
        edit.func().blocks[feed.block].insts.push(i);
        if i == last && feed.in_flight.is_none() {
            edit.gpu(feed.block, ConsumerRelease { pipeline, when: false, converge: false }, &[], &[]);
        }
    }
    let Some(in_flight) = &feed.in_flight else { return };
    let Some(end) = edit.func().blocks[feed.block].insts.pop() else { return };
    let waited = in_flight.wait(edit, feed.block, in_flight.result, 1);
    edit.func().insts[end].operands.iter_mut().filter(|v| **v == in_flight.result).for_each(|v| *v = waited);
    let id = feed.at.1;
    // The former body of the kernel is now in a branch.
    let outer = if feed.at.0 == body { rest } else { feed.at.0 };
    let iv = edit.kernel.func().blocks[feed.block].args.first().copied();
    let lo = edit.kernel.func().insts[id].operands.first().copied();
    if let (Some(iv), Some(lo)) = (iv, lo) {
        let later = edit.compute(feed.block, ElementwiseOp::Ne, &[iv, lo], DType::Bool);
        edit.gpu(feed.block, ConsumerRelease { pipeline, when: true, converge: false }, &[later], &[]);
    }
    edit.func().blocks[feed.block].insts.push(end);
    let Some(at) = edit.func().blocks[outer].insts.iter().position(|i| *i == id) else { return };
    let tail = edit.func().blocks[outer].insts.split_off(at + 1);
    in_flight.wait_last(edit, outer, id);
    if let Some(lo) = lo {
        let came = edit.is_iteration(id, outer, lo, 0);
        edit.gpu(outer, ConsumerRelease { pipeline, when: true, converge: false }, &[came], &[]);
    }
    edit.func().blocks[outer].insts.extend(tail);
}
