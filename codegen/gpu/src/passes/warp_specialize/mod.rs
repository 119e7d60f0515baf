//! Moves TMA loads of operands of products to a producer warp, while the other warps multiply.
//!
//! ```text
//! for i in lo..hi, acc                    v1 = is_producer_warp
//!   v1 = view_load a, m, i                if v1 {
//!   shared_store v1 {buffer = 0}            if elect {
//!   v2 = view_load b, i, n          =>        for i in lo..hi
//!   shared_store v2 {buffer = 1}                producer_acquire; tma_load a, m, i; tma_load b, i, n; producer_commit
//!   v3 = mma acc {a = 0, b = 1}         }
//! v5 = ..                                 } else {
//!                                           for i in lo..hi, acc
//!                                             v2 = consumer_wait
//!                                             v3 = mma acc, v2 {a = 0, a_stages = 4, asynchronous = true, b = 1, b_stages = 4}
//!                                             v4 = mma_wait v3 {pending = 1}
//!                                             consumer_release when i != lo
//!                                           v5 = mma_wait .. {pending = 0}
//!                                           consumer_release when lo < hi
//!                                         }
//! ```
//!
//! A *TMA pipeline* is a multi-stage buffer with two mbarriers for each stage: one completes when the stage is full,
//! the other when all consumers have released it. The producer waits for the second and fills, the consumers wait for
//! the first and release. The producer runs the program reduced to what computes the addresses of its loads, so it runs
//! ahead by as many stages as the buffer has, also from the end of one tile of the result into the next. Consecutive
//! loops share a multi-stage buffer if their stages have the same sizes.
//!
//! Applies to loads of whole tiles of a matrix that the launch knows ([`boxes`]) in a loop, for a wgmma product in the
//! same block, whose lines TMA can place as the product reads them ([`crate::analysis::wgmma_shared`]): neighbours
//! along the last dimension, which has stride 1; address, other strides and positions along that dimension multiples of
//! 16 bytes; extents and strides above 0; and 0 out of bounds; unless the loop says `specialize = false`. The positions of the loads must not depend
//! on a product or store.
//!
//! A tile that several products of an iteration read, also transposed, is loaded once: these products share a stage, which is
//! released after the last of them ([`feed`]). Programs of a cluster load what they have in common together ([`multicast`]). Operands that stay for a loop are loaded
//! before it ([`resident`]), and so are tiles that are combined with their sums ([`tiles`]).
//!
//! Requires a lowered kernel without offsets. Guarantees the same results: only memory that the kernel does not write
//! is read ahead, and only by loops that end before anything in the kernel orders memory or stops.

pub(crate) mod boxes;
mod feed;
mod multicast;
mod resident;
mod slice;
mod split;
mod tiles;
mod turns;

use std::collections::BTreeSet;

use tk_ops::{ControlOp, DType, Op};
use tk_tile::{BlockId, InstId, walk};

use self::boxes::Known;
use self::feed::{Feed, TmaLoadPlan};
use self::slice::Slice;
use crate::analysis::memory_order::orders_memory;
use crate::analysis::wgmma_shared;
use crate::ir::kernel::BARRIERS;
use crate::ir::kernel::{ALIGN, Buffer, Kernel, Remark, Remedy, STAGES, Shortage};
use crate::ir::op::TmaBox;
use crate::passes::allocate_shared::lives;
use crate::passes::software_pipeline::async_mma;
use crate::passes::{Pass, Property, Run};
use crate::verify::verify_lowered;

/// The pass.
pub const PASS: Pass = Pass {
    name: "warp_specialize",
    purpose: "gives a producer warp the loads that TMA does for matrix products",
    needs: &[Property::SharedAccesses, Property::TmaReductions],
    leaves: &[Property::ProducerWarps],
    run: Run::Kernel { run, verify: verify_lowered },
};

/// Stages that are filled repeatedly, in consecutive loops.
#[derive(Clone, Debug)]
struct PlannedPipeline {
    feeds: Vec<Feed>,
    stages: u32,
}

impl PlannedPipeline {
    /// The buffers of its feeds. Those of the first become multi-stage buffers.
    fn buffers(&self) -> impl Iterator<Item = usize> + '_ {
        self.feeds.iter().flat_map(|f| &f.taken).map(|t| t.buffer)
    }

    /// The blocks in which a consumer releases a stage: those that load to its shared memory.
    fn peers(&self) -> u32 {
        let shared = self.feeds.iter().flat_map(|f| &f.taken).filter_map(|t| t.multicast);
        shared.fold(1, |peers, m| peers | m.peers())
    }

    /// Bytes of a stage.
    fn stage(&self, kernel: &Kernel) -> u64 {
        let bytes =
            |t: &TmaLoadPlan| kernel.buffers.get(t.buffer).map_or(0, placed) * u64::from(t.copies(kernel));
        self.feeds.first().map_or(0, |f| f.taken.iter().map(bytes).sum::<u64>()) + u64::from(BARRIERS)
    }

    /// Returns true if a feed has stages of the same sizes, and its loop begins when the others have ended. The stages
    /// of two products in one loop are committed in the order of the loads and waited for in that of the products, so
    /// these do not share.
    fn takes(&self, kernel: &Kernel, feed: &Feed) -> bool {
        let func = kernel.func();
        let sizes = |f: &Feed| -> Vec<u32> {
            f.taken.iter().filter_map(|t| kernel.buffers.get(t.buffer)).map(|b| b.bytes).collect()
        };
        let inside = |a: &Feed, b: &Feed| {
            let within = func.insts[b.at.1].blocks.iter().flat_map(|body| walk::insts_in(func, *body));
            within.into_iter().any(|i| a.products.contains(&i))
        };
        self.feeds.iter().all(|f| {
            let apart = !inside(feed, f) && !inside(f, feed);
            apart && sizes(f) == sizes(feed) && asked(kernel, f) == asked(kernel, feed)
        })
    }
}

/// The bytes of a buffer with its alignment.
fn placed(buffer: &Buffer) -> u64 {
    buffer.bytes.next_multiple_of(ALIGN).into()
}

fn run(kernel: &mut Kernel) {
    let asked = kernel.options.cluster;
    specialize(kernel);
    if !multicast::applies(kernel) {
        kernel.options.cluster = 1;
        if asked > 1 {
            let text =
                "programs form no cluster: TMA copies no operand that is the same in several of them".into();
            kernel.remarks.push(Remark { loc: None, text });
        }
    }
}

fn specialize(kernel: &mut Kernel) {
    let spec = kernel.options.spec;
    // The producer is an additional warp.
    let fits = (kernel.options.all_warps() + 1) * spec.warp_size <= spec.max_threads;
    if !spec.has_tma || !spec.has_async_mma {
        return;
    }
    let free = runs_ahead_until(kernel);
    let known = Known::new(kernel);
    let (mut feeds, mut remarks): (Vec<Feed>, Vec<Remark>) = (vec![], vec![]);
    for (at, body) in loops(kernel, kernel.func().body) {
        for found in feed::feeds(kernel, &known, body, at, &mut remarks) {
            if free.contains(&at.1) && fits {
                feeds.push(found);
            } else if fits {
                remarks
                    .extend(found.without(kernel, "an operation before the end of the loop orders memory"));
            } else {
                remarks.extend(found.without(kernel, "a block has no room for one more warp"));
            }
        }
    }
    kernel.remarks.extend(remarks);
    if feeds.is_empty() {
        return;
    }
    let slice = Slice::new(kernel, &known.roots);
    let reached = |f: &Feed| f.taken.iter().all(|t| slice.reaches(kernel.func(), t.load));
    let (feeds, unreached): (Vec<Feed>, Vec<Feed>) = feeds.into_iter().partition(reached);
    let why = "their positions depend on a product or a store";
    let remarks: Vec<Remark> = unreached.iter().flat_map(|f| f.without(kernel, why)).collect();
    kernel.remarks.extend(remarks);
    let mut pipelines: Vec<PlannedPipeline> = vec![];
    for feed in feeds {
        match pipelines.iter_mut().find(|r| r.takes(kernel, &feed)) {
            Some(pipeline) => pipeline.feeds.push(feed),
            None => pipelines.push(PlannedPipeline { feeds: vec![feed], stages: 0 }),
        }
    }
    let mut chosen: Vec<PlannedPipeline> = vec![];
    for mut pipeline in pipelines {
        let max_stages = max_stages(kernel, &pipeline, &chosen);
        for feed in &mut pipeline.feeds {
            let buffers: Vec<usize> = feed.taken.iter().map(|t| t.buffer).collect();
            let in_flight = async_mma::product(kernel, feed.block, &buffers);
            feed.in_flight = in_flight.filter(|_| max_stages >= async_mma::LEAST_STAGES);
        }
        let asked = pipeline.feeds.first().map_or(STAGES, |f| asked(kernel, f));
        let more = u32::from(pipeline.feeds.iter().any(|f| f.in_flight.is_some()));
        pipeline.stages = (asked.min(kernel.options.most_stages) + more).min(max_stages);
        if pipeline.stages < 2 || kernel.options.most_stages < 2 {
            let why = "fewer than two stages fit in shared memory or are requested";
            let remarks: Vec<Remark> = pipeline.feeds.iter().flat_map(|f| f.without(kernel, why)).collect();
            kernel.remarks.extend(remarks);
            continue;
        }
        let fits = pipeline.stages - more;
        if fits < asked {
            let locs = pipeline.feeds.iter().map(|f| kernel.func().insts[f.at.1].loc);
            let remedy = Remedy::Stages { asked, fits };
            let shortages: Vec<Shortage> = locs.map(|loc| Shortage { loc, remedy }).collect();
            kernel.shortages.extend(shortages);
        }
        chosen.push(pipeline);
    }
    multicast::choose(kernel, &slice, &mut chosen);
    if chosen.is_empty() {
        return;
    }
    let feeds: Vec<Feed> = chosen.iter().flat_map(|r| r.feeds.clone()).collect();
    let may = |load| free.contains(&load);
    let (mut residents, remarks) = resident::residents(kernel, &known, &slice, &feeds, may);
    kernel.remarks.extend(remarks);
    let (tiles, remarks) = tiles::tiles(kernel, &known, &slice, &feeds, may);
    kernel.remarks.extend(remarks);
    residents.extend(tiles);
    let loads = feeds.iter().flat_map(|f| &f.taken).chain(residents.iter().map(|r| &r.taken));
    let slice = slice.of(kernel.func(), loads.map(|t| t.load));
    split::apply(kernel, &chosen, &residents, &slice);
}

/// The box of a load, and the type of its elements.
fn box_of(kernel: &Kernel, t: &TmaLoadPlan) -> Option<(TmaBox, DType)> {
    let func = kernel.func();
    let result = func.insts[t.load].results.first()?;
    let ty = kernel.module.types.get(func.ty(*result));
    Some((TmaBox { shape: ty.shape()?.try_into().ok()?, span: t.span }, ty.dtype()?))
}

/// Returns true if no instruction of a kernel restricts when memory is read and written.
pub(crate) fn may_run_ahead(kernel: &Kernel) -> bool {
    walk::insts(kernel.func()).into_iter().all(|i| !restricts(kernel, i))
}

/// Returns true if memory must not be read ahead of an instruction.
fn restricts(kernel: &Kernel, inst: InstId) -> bool {
    let func = kernel.func();
    orders_memory(func, inst) || func.insts[inst].op == Op::Control(ControlOp::Print)
}

/// The instructions that run before the first one that restricts when memory is read: those of the body of the kernel,
/// with the blocks in them. Whatever a producer reads for these is also read before it.
fn runs_ahead_until(kernel: &Kernel) -> BTreeSet<InstId> {
    let func = kernel.func();
    let mut free = BTreeSet::new();
    for i in &func.blocks[func.body].insts {
        let inside: Vec<InstId> =
            func.insts[*i].blocks.iter().flat_map(|b| walk::insts_in(func, *b)).chain([*i]).collect();
        if inside.iter().any(|i| restricts(kernel, *i)) {
            break;
        }
        free.extend(inside);
    }
    free
}

/// The loops of a block with their bodies, including inner loops.
fn loops(kernel: &Kernel, block: BlockId) -> Vec<((BlockId, InstId), BlockId)> {
    let func = kernel.func();
    let mut out = vec![];
    for i in &func.blocks[block].insts {
        let inst = &func.insts[*i];
        inst.blocks.iter().for_each(|b| out.extend(loops(kernel, *b)));
        if let (Op::Control(ControlOp::For), Some(body)) = (inst.op, inst.blocks.first()) {
            out.push(((block, *i), *body));
        }
    }
    out
}

/// The requested number of iterations in flight.
fn asked(kernel: &Kernel, feed: &Feed) -> u32 {
    let own = kernel.func().insts[feed.at.1].attrs.int("stages").and_then(|n| u32::try_from(n).ok());
    own.or(kernel.options.stages).unwrap_or(STAGES)
}

/// The stages for which shared memory has room, beside what is live until the last loop around the products ends and
/// what other multi-stage buffers need.
fn max_stages(kernel: &Kernel, pipeline: &PlannedPipeline, others: &[PlannedPipeline]) -> u32 {
    let func = kernel.func();
    let ends = walk::insts(func).into_iter().enumerate().filter_map(|(start, i)| {
        let inst = &func.insts[i];
        if !matches!(inst.op, Op::Control(ControlOp::For | ControlOp::While)) {
            return None;
        }
        let inside: Vec<InstId> = inst.blocks.iter().flat_map(|b| walk::insts_in(func, *b)).collect();
        let feeds = pipeline.feeds.iter().flat_map(|f| &f.products);
        feeds.into_iter().any(|p| inside.contains(p)).then_some(start + inside.len())
    });
    let end = ends.max().unwrap_or(usize::MAX);
    let apart: Vec<usize> = others.iter().chain([pipeline]).flat_map(PlannedPipeline::buffers).collect();
    let (lives, _) = lives(kernel);
    let alive = lives
        .iter()
        .enumerate()
        .filter(|(b, life)| !apart.contains(b) && life.is_some_and(|(from, _)| from <= end));
    let taken: u64 = alive.filter_map(|(b, _)| kernel.buffers.get(b)).map(placed).sum();
    let taken = taken * u64::from(kernel.options.groups)
        + others.iter().map(|r| u64::from(r.stages) * r.stage(kernel)).sum::<u64>();
    // The alignment of stages is the period of their order.
    let slack = u64::from(wgmma_shared::WIDEST_PATTERN);
    let left = u64::from(kernel.options.spec.shared_bytes).saturating_sub(taken + slack);
    u32::try_from(left / pipeline.stage(kernel)).unwrap_or(u32::MAX)
}
