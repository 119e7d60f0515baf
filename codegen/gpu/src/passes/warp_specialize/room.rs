//! Chooses the stages of TMA pipelines: as many as are asked for and fit in shared memory beside what else is live; and which
//! other tiles the producer warp loads, for which memory has to be left.
//!
//! Buffers of a persistent loop whose values are not live together share memory, as [`crate::passes::allocate_shared`] places
//! them. Those that the producer warp fills are live all the time, since it runs ahead, and so are those whose tiles TMA
//! stores, since the next iteration begins meanwhile.

use std::collections::BTreeSet;

use tk_ops::{ControlOp, Op};
use tk_tile::{InstId, walk};

use super::boxes::not_copied;
use super::feed::Feed;
use super::resident::Resident;
use super::{PlannedPipeline, placed};
use crate::analysis::{staged_stores, wgmma_shared};
use crate::ir::kernel::{Kernel, Remark, Remedy, STAGES, Shortage};
use crate::passes::allocate_shared::lives;
use crate::passes::software_pipeline::async_mma;

/// What the producer loads beside the operands of these products, and what it does not.
pub(super) struct Beside {
    /// Operands that stay.
    pub residents: Vec<Resident>,
    /// Tiles that are combined with the sums, by threads where there is no room.
    pub tiles: Vec<Resident>,
    pub remarks: Vec<Remark>,
}

/// What there is memory for.
#[derive(Default)]
pub(super) struct Room {
    pub pipelines: Vec<PlannedPipeline>,
    pub residents: Vec<Resident>,
    pub remarks: Vec<Remark>,
    pub shortages: Vec<Shortage>,
}

/// Chooses stages, and the tiles `beside` products that the producer loads: all, or the smallest, so that all products get the
/// stages that are asked for, as many as keep one of them in flight, or at least two.
pub(super) fn choose(
    kernel: &Kernel,
    pipelines: &[PlannedPipeline],
    beside: impl Fn(&[Feed]) -> Beside,
) -> Room {
    let feeds = |pipelines: &[PlannedPipeline]| -> Vec<Feed> {
        pipelines.iter().flat_map(|p| p.feeds.clone()).collect()
    };
    let buffer = |r: &Resident| r.taken.buffer;
    let Beside { residents, mut tiles, .. } = beside(&feeds(pipelines));
    tiles.sort_by_key(|t| kernel.buffers.get(buffer(t)).map_or(0, placed));
    let filled = |tiles: &[Resident]| residents.iter().chain(tiles).map(buffer).collect();
    let stages = |tiles: &[Resident]| stages(kernel, pipelines.to_vec(), &filled(tiles));
    let fewer: Vec<(&[Resident], Stages)> =
        (0..=tiles.len()).rev().filter_map(|n| tiles.get(..n)).map(|few| (few, stages(few))).collect();
    // With fewer than those of `async_mma`, no product is in flight while the next one begins.
    let wanted = [u32::MAX, async_mma::LEAST_STAGES, 2];
    let enough = |least: u32| fewer.iter().position(|(_, chosen)| chosen.has(kernel, least));
    let place = wanted.into_iter().find_map(enough).unwrap_or(0);
    let Some((fitting, chosen)) = fewer.into_iter().nth(place) else { return Room::default() };
    let fits: BTreeSet<usize> = fitting.iter().map(buffer).collect();
    let why = "fewer than two stages fit in shared memory or are requested";
    let mut remarks: Vec<Remark> = chosen.refused.iter().flat_map(|f| f.without(kernel, why)).collect();
    let Beside { mut residents, tiles, remarks: others } = beside(&feeds(&chosen.pipelines));
    if !chosen.pipelines.is_empty() {
        remarks.extend(others);
    }
    for tile in tiles {
        if fits.contains(&buffer(&tile)) {
            residents.push(tile);
            continue;
        }
        let loc = kernel.func().insts[tile.taken.load].loc;
        let why = "shared memory has no room for it beside the stages of operands";
        remarks.push(not_copied(loc, "a tile that is combined with a product is", why));
    }
    Room { pipelines: chosen.pipelines, residents, remarks, shortages: chosen.shortages }
}

/// Pipelines with their stages, and feeds for which there is no memory.
struct Stages {
    pipelines: Vec<PlannedPipeline>,
    refused: Vec<Feed>,
    shortages: Vec<Shortage>,
}

impl Stages {
    /// Returns true if every pipeline has at least this many stages, or as many as it would have in all of shared memory.
    fn has(&self, kernel: &Kernel, least: u32) -> bool {
        let most = |p: &PlannedPipeline| p.feeds.first().map_or(STAGES, |f| asked(kernel, f)) + p.more();
        self.refused.is_empty() && self.pipelines.iter().all(|p| p.stages >= least.min(most(p)))
    }
}

/// The stages of each pipeline, where the producer fills these other buffers too.
fn stages(kernel: &Kernel, pipelines: Vec<PlannedPipeline>, filled: &BTreeSet<usize>) -> Stages {
    let mut chosen = Stages { pipelines: vec![], refused: vec![], shortages: vec![] };
    for mut pipeline in pipelines {
        let max_stages = max_stages(kernel, &pipeline, &chosen.pipelines, filled);
        for feed in &mut pipeline.feeds {
            let buffers: Vec<usize> = feed.taken.iter().map(|t| t.buffer).collect();
            let in_flight = async_mma::product(kernel, feed.block, &buffers);
            feed.in_flight = in_flight.filter(|_| max_stages >= async_mma::LEAST_STAGES);
        }
        let asked = pipeline.feeds.first().map_or(STAGES, |f| asked(kernel, f));
        let more = pipeline.more();
        pipeline.stages = (asked.min(kernel.options.most_stages) + more).min(max_stages);
        if pipeline.stages < 2 || kernel.options.most_stages < 2 {
            chosen.refused.extend(pipeline.feeds);
            continue;
        }
        let fits = pipeline.stages - more;
        if fits < asked {
            let locs = pipeline.feeds.iter().map(|f| kernel.func().insts[f.at.1].loc);
            let remedy = Remedy::Stages { asked, fits };
            chosen.shortages.extend(locs.map(|loc| Shortage { loc, remedy }));
        }
        chosen.pipelines.push(pipeline);
    }
    chosen
}

/// The requested number of iterations in flight.
pub(super) fn asked(kernel: &Kernel, feed: &Feed) -> u32 {
    let own = kernel.func().insts[feed.at.1].attrs.int("stages").and_then(|n| u32::try_from(n).ok());
    own.or(kernel.options.stages).unwrap_or(STAGES)
}

/// The stages for which shared memory has room, beside what is live until the last loop around the products ends and
/// what other multi-stage buffers need.
fn max_stages(
    kernel: &Kernel,
    pipeline: &PlannedPipeline,
    others: &[PlannedPipeline],
    filled: &BTreeSet<usize>,
) -> u32 {
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
    let always: BTreeSet<usize> = filled.iter().copied().chain(staged_stores::buffers(kernel)).collect();
    let (lives, _) = lives(kernel);
    let alive = lives.iter().enumerate().filter(|(b, _)| !apart.contains(b)).filter_map(|(b, life)| {
        let (from, to) = (*life).filter(|(from, _)| *from <= end)?;
        Some((b, if always.contains(&b) { (0, end) } else { (from, to) }))
    });
    let taken = most_bytes(kernel, alive) * u64::from(kernel.options.groups)
        + others.iter().map(|r| u64::from(r.stages) * r.stage(kernel)).sum::<u64>();
    // The alignment of stages is the period of their order.
    let slack = u64::from(wgmma_shared::WIDEST_PATTERN);
    let left = u64::from(kernel.options.spec.shared_bytes).saturating_sub(taken + slack);
    u32::try_from(left / pipeline.stage(kernel)).unwrap_or(u32::MAX)
}

/// The most bytes of buffers that are live at once.
fn most_bytes(kernel: &Kernel, alive: impl Iterator<Item = (usize, (usize, usize))>) -> u64 {
    let bytes = |b: usize| kernel.buffers.get(b).map_or(0, placed);
    let alive: Vec<(u64, (usize, usize))> = alive.map(|(b, life)| (bytes(b), life)).collect();
    let at = |time: usize| -> u64 {
        alive.iter().filter(|(_, (from, to))| (*from..=*to).contains(&time)).map(|(bytes, _)| bytes).sum()
    };
    alive.iter().map(|(_, (from, _))| at(*from)).max().unwrap_or(0)
}
