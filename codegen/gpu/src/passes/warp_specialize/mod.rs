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
//! released after the last of them ([`feed`]). Programs of a cluster load what they have in common together
//! ([`multicast`]). Operands that stay for a loop are loaded before it ([`resident`]), and tiles that are combined with
//! their sums near its end ([`tiles`]), as far as memory is left beside the stages of operands ([`room`]).
//!
//! Requires a lowered kernel without offsets. Guarantees the same results: only memory that the kernel does not write
//! is read ahead, and only by loops that end before anything in the kernel orders memory or stops.

pub(crate) mod boxes;
mod feed;
mod messages;
mod multicast;
mod resident;
mod room;
mod slice;
mod split;
mod tiles;
mod turns;

use std::collections::BTreeSet;

use tk_ops::{ControlOp, DType, Op};
use tk_tile::{InstId, walk};

use self::boxes::Known;
use self::feed::{Feed, TmaLoadPlan};
use self::room::{Beside, Room};
use self::slice::Slice;
use crate::analysis::counters::counters;
use crate::analysis::memory_order::orders_memory;
use crate::analysis::mma;
use crate::analysis::provenance::Roots;
use crate::analysis::wgmma_shared::as_wgmma;
use crate::ir::kernel::BARRIERS;
use crate::ir::kernel::{ALIGN, Buffer, Kernel, Remark};
use crate::ir::op::TmaBox;
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

    /// The stage for the product that is in flight while the next one begins.
    fn more(&self) -> u32 {
        u32::from(self.feeds.iter().any(|f| f.in_flight.is_some()))
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
            apart && sizes(f) == sizes(feed) && room::asked(kernel, f) == room::asked(kernel, feed)
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

/// The fewest registers of a lane with which all products can be assembled.
fn least_registers(kernel: &Kernel) -> u32 {
    let func = kernel.func();
    let least = |i: InstId| {
        let inst = &func.insts[i];
        let (mma, acc) = (as_wgmma(inst)?, inst.operands.first()?);
        Some(mma::tiles(kernel, mma.product, mma.instruction, *acc)?.least_registers())
    };
    walk::insts(func).into_iter().filter_map(least).max().unwrap_or(0)
}

fn specialize(kernel: &mut Kernel) {
    let spec = kernel.options.spec;
    // The producer is an additional warp.
    let warps = kernel.options.all_warps() + 1;
    let no_room = if warps * spec.warp_size > spec.max_threads {
        Some("a block has no room for one more warp")
    } else {
        let lacks = least_registers(kernel) > spec.registers_of_launch(warps);
        lacks.then_some("beside one more warp, lanes have too few registers for an instruction")
    };
    if !spec.has_tma || !spec.has_async_mma {
        return;
    }
    let known = Known::new(kernel);
    let free = runs_ahead_until(kernel, &known.counters);
    let (mut feeds, mut remarks): (Vec<Feed>, Vec<Remark>) = (vec![], vec![]);
    for at in walk::for_loops(kernel.func(), kernel.func().body) {
        let Some(body) = kernel.func().insts[at.1].blocks.first().copied() else { continue };
        for found in feed::feeds(kernel, &known, body, at, &mut remarks) {
            let order = "an operation before the end of the loop orders memory";
            match no_room.or((!free.contains(&at.1)).then_some(order)) {
                Some(why) => remarks.extend(found.without(kernel, why)),
                None => feeds.push(found),
            }
        }
    }
    kernel.remarks.extend(remarks);
    if feeds.is_empty() {
        return;
    }
    let messages = messages::messages(kernel, &known);
    let slice = Slice::new(kernel, &known.roots, &messages);
    let reached = |f: &Feed| f.taken.iter().all(|t| slice.reaches(kernel.func(), t.load));
    let (feeds, unreached): (Vec<Feed>, Vec<Feed>) = feeds.into_iter().partition(reached);
    let why = |f: &Feed| match f.taken.iter().any(|t| slice.is_in_while(kernel.func(), t.load)) {
        true => "a loop around the product ends by a condition that depends on a product or a store",
        false => "their positions depend on a product or a store",
    };
    let remarks: Vec<Remark> = unreached.iter().flat_map(|f| f.without(kernel, why(f))).collect();
    kernel.remarks.extend(remarks);
    let mut pipelines: Vec<PlannedPipeline> = vec![];
    for feed in feeds {
        match pipelines.iter_mut().find(|r| r.takes(kernel, &feed)) {
            Some(pipeline) => pipeline.feeds.push(feed),
            None => pipelines.push(PlannedPipeline { feeds: vec![feed], stages: 0 }),
        }
    }
    let may = |load| free.contains(&load);
    let beside = |feeds: &[Feed]| {
        let (residents, mut remarks) = resident::residents(kernel, &known, &slice, feeds, may);
        let (tiles, more) = tiles::tiles(kernel, &known, &slice, feeds, may);
        remarks.extend(more);
        Beside { residents, tiles, remarks }
    };
    let Room { mut pipelines, residents, remarks, shortages } = room::choose(kernel, &pipelines, beside);
    kernel.remarks.extend(remarks);
    kernel.shortages.extend(shortages);
    if pipelines.is_empty() {
        return;
    }
    multicast::choose(kernel, &slice, &mut pipelines);
    let feeds = pipelines.iter().flat_map(|p| &p.feeds);
    let loads = feeds.flat_map(|f| &f.taken).chain(residents.iter().map(|r| &r.taken));
    let slice = slice.of(kernel.func(), loads.map(|t| t.load));
    let Some(messages) = messages::needed(kernel, &known, &messages, &slice) else {
        let why = "the program takes other numbers from the same counter, too";
        let remarks: Vec<Remark> =
            pipelines.iter().flat_map(|p| &p.feeds).flat_map(|f| f.without(kernel, why)).collect();
        kernel.remarks.extend(remarks);
        return;
    };
    split::apply(kernel, &pipelines, &residents, &messages, &slice);
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
    let func = kernel.func();
    let counts = counters(func, &kernel.module.types, &Roots::new(func));
    walk::insts(func).into_iter().all(|i| counts.contains(&i) || !restricts(kernel, i))
}

/// Returns true if memory must not be read ahead of an instruction.
fn restricts(kernel: &Kernel, inst: InstId) -> bool {
    let func = kernel.func();
    orders_memory(func, inst) || func.insts[inst].op == Op::Control(ControlOp::Print)
}

/// The instructions that run before the first one that restricts when memory is read: those of the body of the kernel,
/// with the blocks in them. Whatever a producer reads for these is also read before it.
fn runs_ahead_until(kernel: &Kernel, counts: &BTreeSet<InstId>) -> BTreeSet<InstId> {
    let func = kernel.func();
    let mut free = BTreeSet::new();
    for i in &func.blocks[func.body].insts {
        let inside: Vec<InstId> =
            func.insts[*i].blocks.iter().flat_map(|b| walk::insts_in(func, *b)).chain([*i]).collect();
        if inside.iter().any(|i| !counts.contains(i) && restricts(kernel, *i)) {
            break;
        }
        free.extend(inside);
    }
    free
}
