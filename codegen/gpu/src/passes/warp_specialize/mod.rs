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
//! Applies to loads of whole tiles of a matrix that the launch knows ([`maps`]) in a loop, for a wgmma product in the
//! same block, whose lines TMA can place as the product reads them ([`crate::analysis::wgmma_shared`]): neighbours
//! along the last dimension, which has stride 1; address, other strides and positions along that dimension multiples of
//! 16 bytes; extents and strides above 0; and 0 out of bounds; unless the loop says `specialize = false`. The positions of the loads must not depend
//! on a product or store.
//!
//! Programs of a cluster load what they have in common together ([`multicast`]). Operands that stay for a loop are loaded
//! before it ([`resident`]).
//!
//! Requires a lowered kernel without offsets. Guarantees the same results: only memory that the kernel does not write
//! is read ahead, and only by loops that end before anything in the kernel orders memory or stops.

mod multicast;
mod resident;
mod slice;
mod split;

use std::collections::BTreeSet;

use tk_ops::{ControlOp, MemoryOp, Op};
use tk_tile::{Attr, BlockId, Func, InstId, Loc, ValueId, walk};

use self::slice::{Slice, writes};
use crate::analysis;
use crate::analysis::axis::AxisInfo;
use crate::analysis::memory_order::orders_memory;
use crate::analysis::provenance::Roots;
use crate::analysis::wgmma_shared::{self, WgmmaShared};
use crate::ir::kernel::BARRIERS;
use crate::ir::kernel::{ALIGN, Buffer, Kernel, Remark, Remedy, STAGES, Shortage};
use crate::ir::op::{BufferRef, GpuOp, MmaOperand, Multicast, Product, TmaBox};
use crate::ir::params::ArgFacts;
use crate::ir::shared_access::other_of;
use crate::ir::shared_access::{loaded, touched};
use crate::ir::tensor_map::{self, AxisTaken, MOST_DIMENSIONS, MapWord, TensorMatrix};
use crate::passes::allocate_shared::lives;
use crate::passes::software_pipeline::async_mma;
use crate::passes::{Pass, Property, Run};
use crate::verify::verify_lowered;

/// The pass.
pub const PASS: Pass = Pass {
    name: "warp_specialize",
    purpose: "gives a producer warp the loads that TMA does for matrix products",
    needs: &[Property::SharedAccesses],
    leaves: &[Property::ProducerWarps],
    run: Run::Kernel { run, verify: verify_lowered },
};

/// The alignment of address and strides of a tensor map and of positions along a line, in bytes.
const ALIGNED: u32 = 16;

/// A load that the producer does.
#[derive(Clone, Copy, Debug)]
struct Taken {
    load: InstId,
    store: InstId,
    buffer: usize,
    /// Bytes of a line in the buffer.
    span: u32,
    /// The programs of a cluster that load it together.
    multicast: Option<Multicast>,
}

/// A product and its loads.
#[derive(Clone, Debug)]
struct Feed {
    product: InstId,
    /// The block that contains all of it, and the loop to which it belongs.
    block: BlockId,
    at: (BlockId, InstId),
    taken: Vec<Taken>,
    in_flight: Option<async_mma::AsyncMma>,
}

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
        let bytes = |t: &Taken| kernel.buffers.get(t.buffer).map_or(0, placed);
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
            within.into_iter().any(|i| i == a.product)
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

/// The facts about the values of a kernel.
pub(crate) struct Known {
    /// The parameters from which they derive.
    pub roots: Roots,
    axes: AxisInfo,
}

impl Known {
    /// Analyses a kernel.
    pub fn new(kernel: &Kernel) -> Known {
        let func = kernel.func();
        let axes = AxisInfo::new(&kernel.module, func, &kernel.options.facts);
        Known { roots: Roots::new(func), axes }
    }
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
    let fits = kernel.options.threads().count() + spec.warp_size <= spec.max_threads;
    if !spec.has_tma || !spec.has_async_mma {
        return;
    }
    let free = runs_ahead_until(kernel);
    let known = Known::new(kernel);
    let (mut feeds, mut remarks): (Vec<Feed>, Vec<Remark>) = (vec![], vec![]);
    for (at, body) in loops(kernel, kernel.func().body) {
        let func = kernel.func();
        for p in &func.blocks[body].insts {
            let Some(found) = feed(kernel, &known, *p, body, at, &mut remarks) else { continue };
            if free.contains(&at.1) && fits {
                feeds.push(found);
            } else if fits {
                remarks.push(without(func, *p, "an operation before the end of the loop orders memory"));
            } else {
                remarks.push(without(func, *p, "a block has no room for one more warp"));
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
    let remarks: Vec<Remark> = unreached.iter().map(|f| without(kernel.func(), f.product, why)).collect();
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
        let room = room(kernel, &pipeline, &chosen);
        for feed in &mut pipeline.feeds {
            let buffers: Vec<usize> = feed.taken.iter().map(|t| t.buffer).collect();
            let in_flight = async_mma::product(kernel, feed.block, &buffers);
            feed.in_flight = in_flight.filter(|_| room >= async_mma::LEAST_STAGES);
        }
        let asked = pipeline.feeds.first().map_or(STAGES, |f| asked(kernel, f));
        let more = u32::from(pipeline.feeds.iter().any(|f| f.in_flight.is_some()));
        pipeline.stages = (asked.min(kernel.options.most_stages) + more).min(room);
        if pipeline.stages < 2 || kernel.options.most_stages < 2 {
            let why = "fewer than two stages fit in shared memory or are requested";
            let remarks: Vec<Remark> =
                pipeline.feeds.iter().map(|f| without(kernel.func(), f.product, why)).collect();
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
    let (residents, remarks) =
        resident::residents(kernel, &known, &slice, &feeds, |load| free.contains(&load));
    kernel.remarks.extend(remarks);
    let loads = feeds.iter().flat_map(|f| &f.taken).chain(residents.iter().map(|r| &r.taken));
    let slice = slice.of(kernel.func(), loads.map(|t| t.load));
    split::apply(kernel, &chosen, &residents, &slice);
}

/// The box of a load.
fn box_of(kernel: &Kernel, t: &Taken) -> Option<TmaBox> {
    let func = kernel.func();
    let result = func.insts[t.load].results.first()?;
    let shape = kernel.module.types.get(func.ty(*result)).shape()?.try_into().ok()?;
    Some(TmaBox { shape, span: t.span })
}

/// Says why no producer warp copies the operands of a product.
fn without(func: &Func, product: InstId, why: &str) -> Remark {
    not_copied(func.insts[product].loc, "operands of a product are", why)
}

/// Says why TMA does not copy something.
fn not_copied(loc: Option<Loc>, what: &str, why: &str) -> Remark {
    Remark { loc, text: format!("{what} not copied by TMA: {why}") }
}

/// Returns true if no instruction of a kernel restricts when memory is read and written.
pub(crate) fn may_run_ahead(kernel: &Kernel) -> bool {
    walk::insts(kernel.func()).into_iter().all(|i| !restricts(kernel, i))
}

/// Returns true if memory must not be read ahead of an instruction.
fn restricts(kernel: &Kernel, inst: InstId) -> bool {
    let op = kernel.func().insts[inst].op;
    orders_memory(op) || op == Op::Control(ControlOp::Print)
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

/// A wgmma product of a loop, if TMA can load all of its operands that the loop loads; what prevents that adds remarks.
fn feed(
    kernel: &Kernel,
    known: &Known,
    product: InstId,
    block: BlockId,
    at: (BlockId, InstId),
    remarks: &mut Vec<Remark>,
) -> Option<Feed> {
    let func = kernel.func();
    let inst = &func.insts[product];
    let refused = func.insts[at.1].attrs.get("specialize") == Some(&Attr::Bool(false));
    let mma = wgmma_shared::group(inst).filter(|_| !refused)?;
    let tiles = analysis::mma::tiles(kernel, mma.product, mma.instruction, *inst.operands.first()?)?;
    let Product { elems, k, .. } = mma.product;
    let (mut taken, mut possible): (Vec<Taken>, bool) = (vec![], true);
    for (side, operand) in [&mma.a, &mma.b].into_iter().enumerate() {
        let MmaOperand::Shared { buffer: BufferRef { buffer, .. }, bases, .. } = operand else { continue };
        let buffer = *buffer;
        // Both operands may be the same.
        if taken.iter().any(|t| t.buffer == buffer) {
            continue;
        }
        let (stores, readers) = accesses(func, buffer);
        let store = if let [store] = stores[..] { Some(store) } else { None };
        // It is loaded before the loop.
        if store.is_some_and(|s| !func.blocks[block].insts.contains(&s)) {
            continue;
        }
        let load = store.and_then(|s| loaded(kernel, s));
        let swizzled = WgmmaShared::find(&tiles, side, elems[side.min(1)], k, bases);
        let found = match store {
            Some(store) if readers == [product] => bring(kernel, known, block, (store, load), swizzled)
                .map(|(load, span)| Taken { load, store, buffer, span, multicast: None }),
            _ => Err("other operations read or write its buffer in shared memory".to_string()),
        };
        match found {
            Ok(one) => taken.push(one),
            Err(why) => {
                let loc = load.and_then(|l| func.insts[l].loc).or(inst.loc);
                let what = ["operand a of a product is", "operand b of a product is"][side.min(1)];
                remarks.push(not_copied(loc, what, &why));
                possible = false;
            }
        }
    }
    if !possible && let Some(other) = taken.first() {
        let loc = func.insts[other.load].loc;
        remarks.push(not_copied(loc, "an operand of a product is", "the other one is not"));
    }
    (possible && !taken.is_empty()).then_some(Feed { product, block, at, taken, in_flight: None })
}

/// The instructions that write a buffer, and those that read it.
fn accesses(func: &Func, buffer: usize) -> (Vec<InstId>, Vec<InstId>) {
    let (mut stores, mut readers) = (vec![], vec![]);
    for i in walk::insts(func) {
        let (reads, writes) = touched(&func.insts[i]);
        readers.extend(reads.contains(&buffer).then_some(i));
        stores.extend(writes.contains(&buffer).then_some(i));
    }
    (stores, readers)
}

/// The load of an operand, which may have one, with the bytes of its lines, if TMA can do it, or why it cannot.
fn bring(
    kernel: &Kernel,
    known: &Known,
    block: BlockId,
    (store, load): (InstId, Option<InstId>),
    swizzled: Option<WgmmaShared>,
) -> Result<(InstId, u32), String> {
    const UNPLACED: &str = "TMA cannot place its lines in shared memory as the product reads them";
    let func = kernel.func();
    let load = load.ok_or("it is computed, not loaded")?;
    let inst = &func.insts[load];
    if inst.op != Op::Memory(MemoryOp::ViewLoad) {
        return Err("it is not known to be a tile of a view with a stride of 1".into());
    }
    if !func.blocks[block].insts.contains(&load) {
        return Err("the loop does not load it".into());
    }
    let span = swizzled.ok_or(UNPLACED)?.span;
    let ([view, row, column, ..], [r, ..]) = (inst.operands.as_slice(), inst.results.as_slice()) else {
        return Err(UNPLACED.into());
    };
    let matrix = mapped(kernel, known, *view, [*row, *column])?;
    let bytes = matrix.dtype.bytes() as u32;
    // Neighbours of a line are neighbours in memory.
    let Some(GpuOp::SharedStore(stored)) = GpuOp::of(&func.insts[store]) else { return Err(UNPLACED.into()) };
    let bases = stored.placement.bases();
    let shape = kernel.module.types.get(func.ty(*r)).shape().unwrap_or(&[]);
    let [tall, _] = shape else { return Err(UNPLACED.into()) };
    let last = bases.get(crate::layout::cut(*tall).log2 as usize..).unwrap_or(&[]);
    let of_line = (span / bytes).trailing_zeros() as usize;
    let in_order = last.len() >= of_line && (0..of_line).all(|i| last.get(i) == Some(&(1 << i)));
    if !in_order {
        return Err(UNPLACED.into());
    }
    if known.roots.get(*view).is_none_or(|root| writes(kernel, &known.roots, root)) {
        return Err("the kernel may write to its memory".into());
    }
    if other_of(kernel, load).is_some() {
        return Err("elements out of bounds are not 0".into());
    }
    Ok((load, span))
}

/// The matrix of a view, if TMA can access tiles of it that begin at a row and a column, or why it cannot.
///
/// A box must begin at a multiple of 16 bytes of a line: H100s end the kernel with an illegal instruction where it does
/// not, though the PTX manual does not say so.
pub(crate) fn mapped(
    kernel: &Kernel,
    known: &Known,
    view: ValueId,
    [row, column]: [ValueId; 2],
) -> Result<TensorMatrix, String> {
    let matrix = tensor_map::matrix(kernel, view)
        .ok_or("its view is not made of parameters, constants, slices and permutations alone")?;
    described(kernel, &matrix)?;
    // Before a range of rows are other rows, which are not out of bounds.
    let ranged = matrix.axes.iter().any(|a| a.taken == AxisTaken::Range);
    if ranged && !known.axes.tile(row).natural {
        return Err("its first row in a range of rows may be negative".into());
    }
    let bytes = matrix.dtype.bytes() as u32;
    if known.axes.tile(column).divisibility() * u64::from(bytes) < ALIGNED.into() {
        return Err(format!("its first column is not known to be a multiple of {}", ALIGNED / bytes));
    }
    Ok(matrix)
}

/// Fails with the reason if there are launches in which no tensor map describes a matrix.
fn described(kernel: &Kernel, matrix: &TensorMatrix) -> Result<(), String> {
    let fact = |w: MapWord| match w {
        MapWord::Passed(i) => kernel.options.facts.get(i).copied().unwrap_or_default(),
        MapWord::Value(v) => {
            let divisible = 1 << v.trailing_zeros().min(ALIGNED.trailing_zeros());
            ArgFacts { divisible, one: v == 1, positive: (1..ArgFacts::BOUND).contains(&v) }
        }
    };
    // A pointer without a mask becomes a view that is longer than any memory.
    let exists = |axis: &tensor_map::TensorAxis| match axis.extent {
        MapWord::Value(v) if axis.taken != AxisTaken::Range => (1..=i64::from(i32::MAX)).contains(&v),
        of => fact(of).positive,
    };
    let [_, columns] = matrix.kept;
    let bytes = matrix.dtype.bytes() as u32;
    if fact(MapWord::Passed(matrix.address)).divisible < ALIGNED {
        return Err(format!("its address is not known to be a multiple of {ALIGNED} bytes"));
    }
    if matrix.dimensions().len() > MOST_DIMENSIONS {
        return Err(format!("it has more than {MOST_DIMENSIONS} dimensions"));
    }
    for (n, axis) in matrix.axes.iter().enumerate() {
        let stride = fact(axis.stride);
        if n == columns && !stride.one {
            return Err(format!("the stride of axis {n} is not known to be 1"));
        }
        if n == columns && axis.taken != AxisTaken::Whole {
            return Err(format!("it is a range along axis {n}, whose stride is 1"));
        }
        if n != columns && !stride.positive {
            return Err(format!("the stride of axis {n} is not known to be positive"));
        }
        if n != columns && stride.divisible * bytes < ALIGNED {
            let multiple = ALIGNED / bytes;
            return Err(format!("the stride of axis {n} is not known to be a multiple of {multiple}"));
        }
        if !exists(axis) {
            return Err(format!("the extent of axis {n} is not known to be positive and below 2^30"));
        }
    }
    Ok(())
}

/// The requested number of iterations in flight.
fn asked(kernel: &Kernel, feed: &Feed) -> u32 {
    let own = kernel.func().insts[feed.at.1].attrs.int("stages").and_then(|n| u32::try_from(n).ok());
    own.or(kernel.options.stages).unwrap_or(STAGES)
}

/// The stages for which shared memory has room, beside what is live until the last loop around the products ends and
/// what other multi-stage buffers need.
fn room(kernel: &Kernel, pipeline: &PlannedPipeline, others: &[PlannedPipeline]) -> u32 {
    let func = kernel.func();
    let ends = walk::insts(func).into_iter().enumerate().filter_map(|(start, i)| {
        let inst = &func.insts[i];
        if !matches!(inst.op, Op::Control(ControlOp::For | ControlOp::While)) {
            return None;
        }
        let inside: Vec<InstId> = inst.blocks.iter().flat_map(|b| walk::insts_in(func, *b)).collect();
        pipeline.feeds.iter().any(|f| inside.contains(&f.product)).then_some(start + inside.len())
    });
    let end = ends.max().unwrap_or(usize::MAX);
    let apart: Vec<usize> = others.iter().chain([pipeline]).flat_map(PlannedPipeline::buffers).collect();
    let (lives, _) = lives(kernel);
    let alive = lives
        .iter()
        .enumerate()
        .filter(|(b, life)| !apart.contains(b) && life.is_some_and(|(from, _)| from <= end));
    let taken: u64 = alive.filter_map(|(b, _)| kernel.buffers.get(b)).map(placed).sum();
    let taken = taken + others.iter().map(|r| u64::from(r.stages) * r.stage(kernel)).sum::<u64>();
    // The alignment of stages is the period of their order.
    let slack = u64::from(wgmma_shared::WIDEST_PATTERN);
    let left = u64::from(kernel.options.spec.shared_bytes).saturating_sub(taken + slack);
    u32::try_from(left / pipeline.stage(kernel)).unwrap_or(u32::MAX)
}
