//! Finds the products of loops whose operands TMA can load.
//!
//! A *feed* is what one stage of a TMA pipeline contains: the operands of a product that its loop loads, and those of other
//! products of the same iteration that have one of them in common. For example `q` in
//!
//! ```text
//! for m in lo..hi
//!   s = mma 0, k, q[m]^T
//!   dk = mma dk, ds, q[m]
//! ```
//!
//! Guarantees that only the products of a feed read its buffers, in their own block, and that all of them find the elements
//! where TMA puts them.

use tk_ops::{MemoryOp, Op};
use tk_tile::{Attr, BlockId, Def, Func, InstId, ValueId, walk};

use super::boxes::{BoxStart, Known, mapped, not_copied};
use super::slice::writes;
use crate::analysis;
use crate::analysis::wgmma_shared::{self, WgmmaShared};
use crate::ir::kernel::{Kernel, Remark};
use crate::ir::op::{BufferRef, GpuOp, MmaOperand, Multicast, Product};
use crate::ir::shared_access::{loaded, other_of, touched};
use crate::passes::software_pipeline::async_mma;

pub(super) const OTHERS: &str = "other operations read or write its buffer in shared memory";

/// A load that the producer does.
#[derive(Clone, Copy, Debug)]
pub(super) struct TmaLoadPlan {
    pub load: InstId,
    pub store: InstId,
    pub buffer: usize,
    /// Bytes of a line in the buffer.
    pub span: u32,
    /// The programs of a cluster that load it together.
    pub multicast: Option<Multicast>,
    /// It loads other rows for each warpgroup, to a copy of the buffer.
    pub of_group: bool,
}

impl TmaLoadPlan {
    /// The copies of its buffer.
    pub fn copies(&self, kernel: &Kernel) -> u32 {
        if self.of_group { kernel.options.groups } else { 1 }
    }
}

/// Products that read the same stages, and their loads.
#[derive(Clone, Debug)]
pub(super) struct Feed {
    /// The products, in the order of their block.
    pub products: Vec<InstId>,
    /// The block that contains all of it, and the loop to which it belongs.
    pub block: BlockId,
    pub at: (BlockId, InstId),
    pub taken: Vec<TmaLoadPlan>,
    pub in_flight: Option<async_mma::AsyncMma>,
}

impl Feed {
    /// Says why no producer warp copies the operands of these products.
    pub fn without(&self, kernel: &Kernel, why: &str) -> Vec<Remark> {
        let locs = self.products.iter().map(|p| kernel.func().insts[*p].loc);
        locs.map(|loc| not_copied(loc, "operands of a product are", why)).collect()
    }

    fn shares(&self, other: &Feed) -> bool {
        self.taken.iter().any(|t| other.taken.iter().any(|o| o.buffer == t.buffer))
    }
}

/// The feeds of a loop with this body; what prevents others adds remarks.
pub(super) fn feeds(
    kernel: &Kernel,
    known: &Known,
    body: BlockId,
    at: (BlockId, InstId),
    remarks: &mut Vec<Remark>,
) -> Vec<Feed> {
    let func = kernel.func();
    let mut feeds: Vec<Feed> = vec![];
    for product in &func.blocks[body].insts {
        let Some(mut one) = feed(kernel, known, *product, body, at, remarks) else { continue };
        // Products before it with a load in common, directly or through others, are one feed with it.
        let (same, apart): (Vec<Feed>, Vec<Feed>) = feeds.into_iter().partition(|f| f.shares(&one));
        feeds = apart;
        for mut f in same {
            f.products.append(&mut one.products);
            one.taken.retain(|t| f.taken.iter().all(|o| o.buffer != t.buffer));
            f.taken.append(&mut one.taken);
            one = f;
        }
        feeds.push(one);
    }
    let place = |p: &InstId| func.blocks[body].insts.iter().position(|i| i == p);
    feeds.iter_mut().for_each(|f| f.products.sort_by_key(place));
    feeds.sort_by_key(|f| f.products.first().and_then(place));
    let complete =
        |f: &Feed| f.taken.iter().all(|t| accesses(func, t.buffer).1.iter().all(|r| f.products.contains(r)));
    let (feeds, others): (Vec<Feed>, Vec<Feed>) = feeds.into_iter().partition(complete);
    remarks.extend(
        others.iter().flat_map(|f| f.without(kernel, "another product reads one of them, and not by TMA")),
    );
    feeds
}

/// The order in which products read the lines of a buffer. Fails if something else reads it, or they differ.
pub(super) fn read_alike(
    kernel: &Kernel,
    readers: &[InstId],
    buffer: usize,
) -> Result<Option<WgmmaShared>, String> {
    let mut orders = vec![];
    for reader in readers {
        orders.extend(read_by(kernel, *reader, buffer).ok_or(OTHERS)?);
    }
    let first = orders.first().copied().flatten();
    // Lines may be along K for one and across it for another.
    let span = |order: Option<WgmmaShared>| order.map(|o| o.span);
    if orders.iter().any(|o| span(*o) != span(first)) {
        return Err("products read its lines in different orders".to_string());
    }
    Ok(first)
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
    let mma = wgmma_shared::as_wgmma(inst).filter(|_| !refused)?;
    let tiles = analysis::mma::tiles(kernel, mma.product, mma.instruction, *inst.operands.first()?)?;
    let Product { elems, k, .. } = mma.product;
    let (mut taken, mut possible): (Vec<TmaLoadPlan>, bool) = (vec![], true);
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
            Some(store) if readers.iter().all(|r| func.blocks[block].insts.contains(r)) => {
                read_alike(kernel, &readers, buffer)
                    .and_then(|_| plan_load(kernel, known, block, (store, load), swizzled))
                    .map(|(load, span)| TmaLoadPlan {
                        load,
                        store,
                        buffer,
                        span,
                        multicast: None,
                        of_group: depends_on_group(func, load),
                    })
            }
            _ => Err(OTHERS.to_string()),
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
    (possible && !taken.is_empty()).then_some(Feed {
        products: vec![product],
        block,
        at,
        taken,
        in_flight: None,
    })
}

/// Returns true if the positions of a load depend on the warpgroup.
pub(super) fn depends_on_group(func: &Func, load: InstId) -> bool {
    func.insts[load].operands.iter().any(|v| of_group(func, *v))
}

/// Returns true if a scalar depends on the warpgroup: one that is computed in its block and those around it, by
/// [`crate::passes::split_rows`].
pub(super) fn of_group(func: &Func, v: ValueId) -> bool {
    let Def::Inst(id, _) = func.values[v].def else { return false };
    let inst = &func.insts[id];
    match inst.op {
        Op::Target => matches!(GpuOp::of(inst), Some(GpuOp::GroupId(_))),
        Op::Elementwise(_) => inst.operands.iter().any(|v| of_group(func, *v)),
        _ => false,
    }
}

/// The instructions that write a buffer, and those that read it.
pub(super) fn accesses(func: &Func, buffer: usize) -> (Vec<InstId>, Vec<InstId>) {
    let (mut stores, mut readers) = (vec![], vec![]);
    for i in walk::insts(func) {
        let (reads, writes) = touched(&func.insts[i]);
        readers.extend(reads.contains(&buffer).then_some(i));
        stores.extend(writes.contains(&buffer).then_some(i));
    }
    (stores, readers)
}

/// The load of an operand, which may have one, with the bytes of its lines, if TMA can do it, or why it cannot.
pub(super) fn plan_load(
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
    let matrix = mapped(kernel, *view, BoxStart::of(known, [*row, *column]))?;
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
    may_copy(kernel, known, (load, *view))?;
    Ok((load, span))
}

/// Fails if a producer warp cannot load this tile of a view ahead of the program.
pub(super) fn may_copy(
    kernel: &Kernel,
    known: &Known,
    (load, view): (InstId, ValueId),
) -> Result<(), String> {
    if known.roots.get(view).is_none_or(|root| writes(kernel, &known.roots, root)) {
        return Err("the kernel may write to its memory".into());
    }
    if other_of(kernel, load).is_some() {
        return Err("elements out of bounds are not 0".into());
    }
    Ok(())
}

/// How a product of warpgroups reads a buffer, as each operand that it is; `None` for other operations.
fn read_by(kernel: &Kernel, reader: InstId, buffer: usize) -> Option<Vec<Option<WgmmaShared>>> {
    let inst = &kernel.func().insts[reader];
    let mma = wgmma_shared::as_wgmma(inst)?;
    let tiles = analysis::mma::tiles(kernel, mma.product, mma.instruction, *inst.operands.first()?)?;
    let Product { elems, k, .. } = mma.product;
    let read = |(side, operand): (usize, &MmaOperand)| match operand {
        MmaOperand::Shared { buffer: b, bases, .. } if b.buffer == buffer => {
            Some(WgmmaShared::find(&tiles, side, elems[side.min(1)], k, bases))
        }
        _ => None,
    };
    Some([&mma.a, &mma.b].into_iter().enumerate().filter_map(read).collect())
}
