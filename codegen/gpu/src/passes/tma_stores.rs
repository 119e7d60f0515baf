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
//! TMA cannot write a box that begins before the first row or column. Where that is not known before the kernel runs, a
//! branch decides it, and threads store the others:
//!
//! ```text
//! v2 = ge m, 0
//! if v2 {
//!   shared_store v0 {bases = .., buffer = 0}
//!   tma_store c, m, n {buffer = 0, once = true, shape = [128, 256], span = 128}
//! } else {
//!   shared_store v0 {buffer = 0, ..}
//!   v1 = shared_load {buffer = 0, ..} : .. @l1
//!   view_store c, m, n, v1
//! }
//! ```
//!
//! Applies to tiles of kernels with wgmma products, if the launch knows the matrix ([`crate::ir::tensor_map`]) and
//! nothing else in the kernel reads it or orders memory: TMA accesses memory through another proxy than threads do. A remark
//! says why another tile is stored by threads.
//!
//! Requires a lowered kernel without offsets. Guarantees the same results.

use tk_ops::table::Effects;
use tk_ops::{ControlOp, DType, ElementwiseOp, MemoryOp, Op};
use tk_tile::effects::of_inst;
use tk_tile::{Func, InstId, ValueId, walk};

use crate::analysis::provenance::Roots;
use crate::analysis::staged_stores::{Staged, staged};
use crate::analysis::wgmma_shared;
use crate::ir::builder::Edit;
use crate::ir::caching::Caching;
use crate::ir::kernel::{Kernel, Remark};
use crate::ir::op::{GpuOp, Placement, ProxyFence, TmaBox, TmaStore};
use crate::passes::warp_specialize;
use crate::passes::warp_specialize::boxes::{BoxStart, Known, mapped_for_writes, placed};
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

/// How TMA stores it.
struct TmaStorePlan {
    tile: Staged,
    bases: Vec<i64>,
    copied: TmaBox,
    once: bool,
    /// Where the box begins, as far as it may be negative.
    signed: Vec<ValueId>,
}

fn run(kernel: &mut Kernel) {
    let func = kernel.func();
    let insts = walk::insts(func);
    if !kernel.options.spec.has_tma || !wgmma_shared::multiplies(func, &insts) {
        return;
    }
    let runs_ahead = warp_specialize::may_run_ahead(kernel);
    let known = Known::new(kernel);
    let (mut plans, mut remarks) = (vec![], vec![]);
    for tile in insts.iter().filter_map(|i| staged(func, &insts, *i)) {
        let loc = func.insts[tile.store].loc;
        let planned = match runs_ahead {
            true => plan(kernel, &known, &insts, tile),
            false => Err("an operation of the kernel orders memory".into()),
        };
        match planned {
            Ok(plan) => plans.push(plan),
            Err(why) => {
                remarks.push(Remark { loc, text: format!("a tile is stored by threads, not by TMA: {why}") });
            }
        }
    }
    kernel.remarks.extend(remarks);
    for plan in plans {
        plan.apply(&mut Edit { kernel, loc: None });
    }
}

/// How TMA stores a tile, or why it does not.
fn plan(kernel: &Kernel, known: &Known, insts: &[InstId], tile: Staged) -> Result<TmaStorePlan, String> {
    let func = kernel.func();
    let [view, row, column, stored] = func.insts[tile.store].operands[..] else {
        return Err("it has more than two dimensions".into());
    };
    let ty = kernel.module.types.get(func.ty(stored));
    let Some([tall, wide]) = ty.shape().and_then(|s| <[u32; 2]>::try_from(s).ok()) else {
        return Err("it has more than two dimensions".into());
    };
    let begins = BoxStart::of(known, [row, column]);
    let signed = [(row, begins.non_negative_row), (column, begins.non_negative_column)];
    let signed: Vec<ValueId> = signed.into_iter().filter(|(_, proven)| !proven).map(|(v, _)| v).collect();
    let begins = BoxStart { non_negative_row: true, non_negative_column: true, ..begins };
    let matrix = mapped_for_writes(kernel, view, begins)?;
    let root = known.roots.get(view).ok_or("its memory is not that of one parameter")?;
    if insts.iter().any(|i| *i != tile.store && reaches(func, &known.roots, *i, root)) {
        return Err("the kernel also accesses the memory in other ways".into());
    }
    let buffer = kernel.buffers.get(tile.buffer);
    let (span, bases) = placed([tall, wide], matrix.dtype.bytes() as u32, buffer)?;
    let once = runs_once(func, tile.store);
    Ok(TmaStorePlan { tile, bases, copied: TmaBox { shape: [tall, wide], span }, once, signed })
}

impl TmaStorePlan {
    fn apply(self, edit: &mut Edit<'_>) {
        let Staged { block, fill, load, store, buffer } = self.tile;
        let by_threads = [fill, load, store].map(|i| edit.kernel.func().insts[i].clone());
        let [filled, _, stored] = &by_threads;
        let mut by_tma = filled.clone();
        GpuOp::change(&mut by_tma, |op| {
            if let GpuOp::SharedStore(fill) = op {
                fill.placement = Placement::Swizzled { bases: self.bases.clone() };
            }
        });
        let caching = Caching::of(&stored.attrs);
        let copy = TmaStore { buffer, copied: self.copied, adds: false, once: self.once, caching };
        let copy = GpuOp::from(copy).inst(stored.operands.iter().take(3).copied().collect(), stored.loc);
        edit.loc = stored.loc;
        if self.signed.is_empty() {
            edit.func().insts[fill] = by_tma;
            edit.func().insts[store] = copy;
            edit.func().blocks[block].insts.retain(|i| *i != load);
            return;
        }
        let [then, other] = [edit.func().add_block(), edit.func().add_block()];
        edit.add(then, by_tma, &[]);
        edit.add(then, copy, &[]);
        edit.func().blocks[other].insts.extend([fill, load, store]);
        if !self.once {
            // TMA may write the same elements later.
            edit.gpu(other, ProxyFence { global: true }, &[], &[]);
        }
        [then, other].iter().for_each(|b| edit.yields(*b, &[]));
        for i in std::mem::take(&mut edit.func().blocks[block].insts) {
            if i == store {
                let when = self.begins_inside(edit);
                edit.choose(block, when, [then, other]);
            } else if i != fill && i != load {
                edit.func().blocks[block].insts.push(i);
            }
        }
    }

    /// Computes whether the box begins neither before the first row nor before the first column.
    fn begins_inside(&self, edit: &mut Edit<'_>) -> ValueId {
        let block = self.tile.block;
        let mut inside: Option<ValueId> = None;
        for v in &self.signed {
            let dtype = edit.dtype(*v);
            let zero = edit.int(block, dtype, 0);
            let one = edit.compute(block, ElementwiseOp::Ge, &[*v, zero], DType::Bool);
            inside = Some(
                inside.map_or(one, |both| edit.compute(block, ElementwiseOp::And, &[both, one], DType::Bool)),
            );
        }
        inside.unwrap_or_else(|| edit.int(block, DType::Bool, 1))
    }
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
