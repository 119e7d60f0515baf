//! Adds tiles to device memory with TMA.
//!
//! ```text
//! v4 = m + arange, v5 = n + arange          shared_store v6 {bases = .., buffer = 1}
//! atomic_add c, v4, v5, v6            =>    tma_store c, m, n {adds = true, buffer = 1, shape = [64, 128], span = 128}
//! ```
//!
//! Atomic additions of an accumulator's elements are an instruction for each of them; here one thread issues a copy, which
//! the memory adds line by line: as the partial sums of split products, and the gradient of the queries of attention.
//!
//! Applies to relaxed additions of whole tiles of 32-bit elements to boxes of a matrix that the launch knows
//! ([`crate::ir::tensor_map`]), without a mask and whose results nothing uses, in kernels with wgmma products that access the
//! matrix in no way but additions: TMA accesses memory through another proxy than threads do.
//!
//! Requires a lowered kernel. Guarantees the same sums, in any order.

use tk_ops::{AtomicOp, ControlOp, DType, ElementwiseOp, Op};
use tk_tile::{BlockId, FuncId, InstId, Type, ValueId, walk};

use super::form_tensor_accesses::affine::{Affine, Ramp, Sum};
use super::tma_stores::{reaches, runs_once};
use crate::analysis::memory_order::orders_memory;
use crate::analysis::wgmma_shared;
use crate::ir::builder::Edit;
use crate::ir::caching::Caching;
use crate::ir::kernel::{Buffer, Kernel, Remark};
use crate::ir::op::{BufferRef, Placement, SharedStore, TmaBox, TmaStore};
use crate::passes::warp_specialize::boxes::{BoxStart, Known, mapped_for_writes, placed};
use crate::passes::{Pass, Property, Run};
use crate::verify::verify_lowered;

/// The pass.
pub const PASS: Pass = Pass {
    name: "tma_reduce",
    purpose: "lets TMA add tiles to memory",
    needs: &[Property::SharedAccesses],
    leaves: &[Property::TmaReductions],
    run: Run::Kernel { run, verify: verify_lowered },
};

/// A tile that is added.
struct Added {
    block: BlockId,
    atomic: InstId,
    view: ValueId,
    places: [Sum; 2],
    tile: ValueId,
    bases: Vec<i64>,
    shape: [u32; 2],
    span: u32,
    once: bool,
}

fn run(kernel: &mut Kernel) {
    let func = kernel.func();
    if !kernel.options.spec.has_tma || !wgmma_shared::multiplies(func, &walk::insts(func)) {
        return;
    }
    let known = Known::new(kernel);
    let (mut all, mut remarks) = (vec![], vec![]);
    for block in blocks(kernel) {
        for i in &func.blocks[block].insts {
            match added(kernel, &known, block, *i) {
                Ok(one) => all.push(one),
                Err(None) => {}
                Err(Some(why)) => {
                    let text = format!("elements are added one by one, not by TMA: {why}");
                    remarks.push(Remark { loc: func.insts[*i].loc, text });
                }
            }
        }
    }
    kernel.remarks.extend(remarks);
    all.into_iter().for_each(|one| one.apply(kernel));
}

/// The blocks that all threads run together.
fn blocks(kernel: &Kernel) -> Vec<BlockId> {
    let func = kernel.func();
    let inside = walk::insts(func).into_iter().filter(|i| {
        matches!(func.insts[*i].op, Op::Control(ControlOp::For | ControlOp::While | ControlOp::If))
    });
    std::iter::once(func.body).chain(inside.flat_map(|i| func.insts[i].blocks.clone())).collect()
}

/// The addition of a tile. Fails for other instructions, or with the reason why TMA cannot do it.
fn added(kernel: &Kernel, known: &Known, block: BlockId, atomic: InstId) -> Result<Added, Option<String>> {
    let func = kernel.func();
    let inst = &func.insts[atomic];
    let (Op::Atomic(AtomicOp::Add), [view, row, column, tile, mask @ ..]) =
        (inst.op, inst.operands.as_slice())
    else {
        return Err(None);
    };
    let types = &kernel.module.types;
    let (Type::View { rank: 2, .. }, Some([tall, wide])) =
        (types.get(func.ty(*view)), types.get(func.ty(*tile)).shape())
    else {
        return Err(None);
    };
    let (tall, wide) = (*tall, *wide);
    let refused = |why: &str| Err(Some(why.to_string()));
    if !matches!(types.get(func.ty(*tile)).dtype(), Some(DType::F32 | DType::I32 | DType::U32)) {
        return refused("their type has no more and no less than 32 bits in such additions");
    }
    let device = inst.attrs.str("scope").is_none_or(|scope| scope == "device");
    if orders_memory(func, atomic) || !device || !mask.is_empty() {
        return refused("they have a mask, an order, a scope or a result");
    }
    let affine = Affine::new(&kernel.module, func);
    let along = |v: ValueId, dim: usize| -> Option<Sum> {
        let Ramp { start, dims } = affine.ramp(v)?;
        let counts = dims.iter().enumerate().all(|(d, by)| by.value() == Some(i64::from(d == dim)));
        counts.then_some(start)
    };
    let (Some(from), Some(left)) = (along(*row, 0), along(*column, 1)) else {
        return refused("their positions do not count up from a row and a column");
    };
    let non_negative = |(values, factor): (&[ValueId], i64)| {
        factor >= 0 && values.iter().all(|v| known.axes.tile(*v).non_negative)
    };
    let divisor = |(values, factor): (&[ValueId], i64)| {
        let own = values.iter().map(|v| known.axes.tile(*v).divisibility().trailing_zeros()).sum::<u32>();
        1u64 << (own + factor.trailing_zeros()).min(u64::BITS / 2)
    };
    let start = BoxStart {
        non_negative_row: from.products().all(non_negative),
        non_negative_column: left.products().all(non_negative),
        column_divisor: left.products().map(divisor).min().unwrap_or(1 << (u64::BITS / 2)),
    };
    let matrix = mapped_for_writes(kernel, *view, start).map_err(Some)?;
    let root = known.roots.get(*view).ok_or(None)?;
    let adds = |i: InstId| func.insts[i].op == Op::Atomic(AtomicOp::Add) && !orders_memory(func, i);
    if walk::insts(func).into_iter().any(|i| !adds(i) && reaches(func, &known.roots, i, root)) {
        return refused("the kernel also reads the memory, or writes it in other ways");
    }
    let bytes = matrix.dtype.bytes() as u32;
    let (span, bases) = placed([tall, wide], bytes, None).map_err(Some)?;
    let taken: u32 = kernel.buffers.iter().map(|b| b.bytes).sum();
    if taken + tall * wide * bytes > kernel.options.spec.shared_bytes {
        return refused("shared memory has no room for them");
    }
    let once = runs_once(func, atomic);
    let (places, shape) = ([from, left], [tall, wide]);
    Ok(Added { block, atomic, view: *view, places, tile: *tile, bases, shape, span, once })
}

impl Added {
    fn apply(self, kernel: &mut Kernel) {
        let loc = kernel.func().insts[self.atomic].loc;
        let bytes = self.shape.iter().product::<u32>() * u32::BITS / 8;
        kernel.buffers.push(Buffer::new(bytes));
        let buffer = kernel.buffers.len() - 1;
        let mut edit = Edit { kernel, loc };
        let caching = Caching::of(&edit.kernel.func().insts[self.atomic].attrs);
        for i in std::mem::take(&mut edit.func().blocks[self.block].insts) {
            if i != self.atomic {
                edit.func().blocks[self.block].insts.push(i);
                continue;
            }
            let [row, column] = self.places.each_ref().map(|sum| computed(&mut edit, self.block, sum));
            let placement = Placement::Swizzled { bases: self.bases.clone() };
            let buffer_ref = BufferRef::whole(buffer);
            let fill = SharedStore {
                buffer: buffer_ref,
                placement,
                chunked: false,
                ahead: false,
                remote: None,
                access: None,
            };
            edit.gpu(self.block, fill, &[self.tile], &[]);
            let copied = TmaBox { shape: self.shape, span: self.span };
            let store = TmaStore { buffer, copied, adds: true, once: self.once, caching };
            edit.gpu(self.block, store, &[self.view, row, column], &[]);
        }
        edit.kernel.module.funcs[FuncId(0)].insts[self.atomic].results.clear();
    }
}

/// A sum as a value of a block.
fn computed(edit: &mut Edit<'_>, block: BlockId, sum: &Sum) -> ValueId {
    let mut all: Option<ValueId> = None;
    for (values, factor) in sum.products() {
        let mut one = if factor == 1 { None } else { Some(edit.int(block, DType::I64, factor)) };
        for v in values {
            let wide = edit.compute(block, ElementwiseOp::Cast, &[*v], DType::I64);
            let product =
                |x, edit: &mut Edit<'_>| edit.compute(block, ElementwiseOp::Mul, &[x, wide], DType::I64);
            one = Some(one.map_or(wide, |x| product(x, edit)));
        }
        let one = one.unwrap_or_else(|| edit.int(block, DType::I64, 1));
        all = Some(all.map_or(one, |x| edit.compute(block, ElementwiseOp::Add, &[x, one], DType::I64)));
    }
    all.unwrap_or_else(|| edit.int(block, DType::I64, 0))
}
