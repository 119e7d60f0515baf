//! Stores tiles that go through shared memory with TMA.
//!
//! ```text
//! shared_store v0 {buffer = 0, ..}                      shared_store v0 {bases = .., buffer = 0}
//! v1 = shared_load {buffer = 0, ..} : .. @l1     =>     tma_store c, m, n {buffer = 0, once = true, shape = [128, 256], span = 128}
//! view_store c, m, n, v1
//! ```
//!
//! The elements of an accumulator are in the registers that its instruction requires, and go through shared memory to
//! be stored in wide accesses. One thread issues a TMA store for the second half, which computes addresses and limits
//! itself. The placement in shared memory is that of a tensor map ([`crate::analysis::wgmma_shared`]).
//!
//! Applies to tiles of kernels with wgmma products, if the launch knows the matrix ([`crate::ir::tensor_map`]) and
//! nothing else in the kernel reads it or orders memory: TMA accesses memory through another proxy than threads do.
//!
//! Requires a lowered kernel without offsets. Guarantees the same results.

use std::collections::BTreeSet;

use tk_ops::table::Effects;
use tk_ops::{ControlOp, MemoryOp, Op};
use tk_tile::effects::of_inst;
use tk_tile::{Def, Func, FuncId, InstId, ValueId, walk};

use crate::analysis::provenance::Roots;
use crate::analysis::wgmma_shared::{self, WgmmaShared};
use crate::ir::caching::Caching;
use crate::ir::kernel::Kernel;
use crate::ir::op::{GpuOp, Placement, TmaBox, TmaStore};
use crate::ir::shared_access::touched;
use crate::layout::{cut, padded};
use crate::passes::warp_specialize;
use crate::passes::warp_specialize::boxes::{BoxStart, Known, mapped_for_writes};
use crate::passes::{Pass, Property, Run};
use crate::verify::verify_lowered;

/// The pass.
pub const PASS: Pass = Pass {
    name: "tma_stores",
    purpose: "lets TMA store tiles that go through shared memory",
    needs: &[Property::ProducerWarps, Property::DeferredWaits],
    leaves: &[Property::TmaStores],
    run: Run::Kernel { run, verify: verify_lowered },
};

/// A tile that is stored.
struct TmaStorePlan {
    fill: InstId,
    load: InstId,
    store: InstId,
    buffer: usize,
    bases: Vec<i64>,
    shape: [u32; 2],
    span: u32,
    once: bool,
}

fn run(kernel: &mut Kernel) {
    let func = kernel.func();
    let insts = walk::insts(func);
    if !kernel.options.spec.has_tma
        || !wgmma_shared::multiplies(func, &insts)
        || !warp_specialize::may_run_ahead(kernel)
    {
        return;
    }
    let known = Known::new(kernel);
    let taken: Vec<TmaStorePlan> = insts.iter().filter_map(|i| taken(kernel, &known, *i)).collect();
    let func = &mut kernel.module.funcs[FuncId(0)];
    let gone: BTreeSet<InstId> = taken.iter().map(|t| t.load).collect();
    for t in taken {
        GpuOp::change(&mut func.insts[t.fill], |op| {
            if let GpuOp::SharedStore(fill) = op {
                fill.placement = Placement::Swizzled { bases: t.bases };
            }
        });
        let (places, loc) =
            (func.insts[t.store].operands.iter().take(3).copied().collect(), func.insts[t.store].loc);
        let store = TmaStore {
            buffer: t.buffer,
            copied: TmaBox { shape: t.shape, span: t.span },
            adds: false,
            once: t.once,
            caching: Caching::of(&func.insts[t.store].attrs),
        };
        func.insts[t.store] = GpuOp::from(store).inst(places, loc);
    }
    let blocks: BTreeSet<_> = insts.iter().flat_map(|i| func.insts[*i].blocks.clone()).collect();
    for block in std::iter::once(func.body).chain(blocks) {
        func.blocks[block].insts.retain(|i| !gone.contains(i));
    }
}

/// The data that is needed to store a tile.
fn taken(kernel: &Kernel, known: &Known, store: InstId) -> Option<TmaStorePlan> {
    let func = kernel.func();
    let inst = &func.insts[store];
    let (Op::Memory(MemoryOp::ViewStore), [view, row, column, tile]) = (inst.op, inst.operands.as_slice())
    else {
        return None;
    };
    let Def::Inst(load, _) = func.values[*tile].def else { return None };
    let GpuOp::SharedLoad(read) = GpuOp::of(&func.insts[load])? else { return None };
    let buffer = read.buffer.buffer;
    let all = walk::insts(func);
    let accesses: Vec<InstId> = all
        .iter()
        .copied()
        .filter(|i| {
            let (reads, writes) = touched(&func.insts[*i]);
            reads.contains(&buffer) || writes.contains(&buffer)
        })
        .collect();
    let [fill, last] = accesses[..] else { return None };
    let alone = all.iter().filter(|i| func.insts[**i].operands.contains(tile)).count() == 1;
    let GpuOp::SharedStore(filled) = GpuOp::of(&func.insts[fill])? else { return None };
    // All threads execute the store.
    let together = func.blocks.iter().any(|(_, b)| [fill, load, store].iter().all(|i| b.insts.contains(i)));
    let plain =
        filled.buffer.stages.is_none() && read.buffer.stages.is_none() && !read.own && read.remote.is_none();
    let root = known.roots.get(*view)?;
    let written = all.iter().all(|i| *i == store || !reaches(func, &known.roots, *i, root));
    let matrix = mapped_for_writes(kernel, *view, BoxStart::of(known, [*row, *column])).ok()?;
    let [tall, wide] = *kernel.module.types.get(func.ty(*tile)).shape()? else { return None };
    let bits = [tall, wide].map(|n| cut(n).log2);
    let bytes = matrix.dtype.bytes() as u32;
    let (span, bases) = WgmmaShared::of_tile(bits, bytes)?;
    // Only the owners of elements change: other uses of shared memory transpose, slice or reshape tiles.
    let same = |v: &ValueId| func.ty(*v) == func.ty(*tile);
    let changes = filled.placement == read.placement
        && !(filled.ahead || filled.chunked || filled.remote.is_some())
        && func.insts[fill].operands.first().is_some_and(same);
    // Padding would be stored too.
    let whole = [tall, wide].iter().all(|n| padded(*n) == *n)
        && kernel.buffers.get(buffer)?.bytes == tall * wide * bytes;
    let fits = alone && last == load && together && plain && written && changes && whole;
    let shape = [tall, wide];
    let once = runs_once(func, store);
    fits.then_some(TmaStorePlan { fill, load, store, buffer, bases, shape, span, once })
}

/// Returns true for an instruction that is in no loop.
pub(super) fn runs_once(func: &Func, id: InstId) -> bool {
    let mut loops = walk::insts(func)
        .into_iter()
        .map(|i| &func.insts[i])
        .filter(|i| matches!(i.op, Op::Control(ControlOp::For | ControlOp::While)));
    !loops.any(|i| i.blocks.iter().any(|b| walk::insts_in(func, *b).contains(&id)))
}

/// Returns true if an instruction reads or writes memory of a parameter.
pub(super) fn reaches(func: &Func, roots: &Roots, id: InstId, root: ValueId) -> bool {
    let inst = &func.insts[id];
    let accesses = match inst.op {
        Op::Memory(MemoryOp::Prefetch) => false,
        Op::Memory(_) | Op::Atomic(_) => of_inst(func, id) != Effects::Pure,
        Op::Target => matches!(GpuOp::of(inst), Some(GpuOp::AsyncCopy(_) | GpuOp::TmaLoad(_))),
        _ => false,
    };
    accesses && inst.operands.first().is_none_or(|v| roots.get(*v).is_none_or(|r| r == root))
}
