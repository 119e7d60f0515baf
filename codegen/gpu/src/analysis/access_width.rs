//! Computes how wide each access to memory may be: the number of elements in consecutive registers that one instruction
//! moves.
//!
//! Guarantees that an access of this width, or of a smaller power of two, is aligned to its size, and that its elements
//! are all in the tile and inside of its view and mask, or none is; unless it is [`ragged`].

use tk_ops::{DType, MemoryOp, Op};
use tk_tile::{Inst, Type, ValueId};

use crate::analysis::axis::AxisInfo;
use crate::analysis::{coalesce, ldmatrix, mma};
use crate::ir::kernel::Kernel;
use crate::ir::op::{AsyncCopy, FragmentLoad, Fragments, Mma, MmaOperand, Placement, SharedStore, Strides};
use crate::ir::params::element_bytes;
use crate::ir::shared_access::{CHUNK, image, neighbours, strided_vector, swizzled_vector};
use crate::target::mma::Fragment;

/// The width of an access to shared memory: the most that alignment and layout allow; 1 for a scalar.
pub fn shared(kernel: &Kernel, placement: &Placement, buffer: usize, v: ValueId) -> u32 {
    let ty = kernel.module.types.get(kernel.func().ty(v));
    let (Some(layout), Some(shape)) = (kernel.layout(v), ty.shape()) else { return 1 };
    let (bytes, most) = (element_bytes(ty.elem()) as i64, i64::from(kernel.options.spec.vector_bytes));
    let begin = kernel.buffers.get(buffer).map_or(0, |b| i64::from(b.offset));
    match placement {
        Placement::Swizzled { bases } => swizzled_vector(layout, bases, begin, bytes, most),
        Placement::Strided(Strides { start, strides }) => {
            strided_vector(layout, shape, (begin + start * bytes, strides), bytes, most)
        }
    }
}

/// The register bits of the neighbours that a store to shared memory moves at once, the nearest first. They are the
/// lowest ones unless stores gather.
pub fn gathered(kernel: &Kernel, store: &SharedStore, v: ValueId) -> Vec<usize> {
    let spec = kernel.options.spec;
    let elem = kernel.module.types.get(kernel.func().ty(v)).elem();
    match (&store.placement, kernel.layout(v)) {
        (Placement::Swizzled { bases }, Some(layout)) if spec.banks().stores_gather => {
            let begin = kernel.buffers.get(store.buffer.buffer).map_or(0, |b| i64::from(b.offset));
            let bytes = element_bytes(elem) as i64;
            let mut bits = neighbours(layout, bases, begin, bytes, spec.vector_bytes.into());
            // A chunk has all registers of an access.
            let in_chunk = |bit: &usize| !store.chunked || 1 << bit < CHUNK;
            let count = bits.iter().take_while(|bit| in_chunk(bit)).count();
            bits.truncate(count);
            bits
        }
        _ => (0..shared(kernel, &store.placement, store.buffer.buffer, v).ilog2() as usize).collect(),
    }
}

/// The tile of an instruction whose accesses to device memory may be wide; `None` for other instructions, and for
/// scalars.
pub fn accessed(kernel: &Kernel, inst: &Inst) -> Option<ValueId> {
    let Op::Memory(op) = inst.op else { return None };
    let first = inst.operands.first().copied()?;
    let v = match op {
        MemoryOp::Load | MemoryOp::Store | MemoryOp::Prefetch => first,
        MemoryOp::ViewLoad | MemoryOp::ViewInside => inst.results.first().copied()?,
        MemoryOp::ViewStore => {
            let Type::View { rank, .. } = kernel.module.types.get(kernel.func().ty(first)) else {
                return None;
            };
            inst.operands.get(1 + *rank as usize).copied()?
        }
        MemoryOp::PtrAdd
        | MemoryOp::View
        | MemoryOp::ViewShape
        | MemoryOp::ViewStride
        | MemoryOp::ViewPtr
        | MemoryOp::ViewSlice
        | MemoryOp::ViewPermute
        | MemoryOp::ViewGather
        | MemoryOp::ViewScatter => return None,
    };
    kernel.layout(v).map(|_| v)
}

/// The width of an access to device memory with the elements, or the pointers, `v`. For `view_inside`, the number of
/// neighbours that are inside or outside together.
pub fn memory(kernel: &Kernel, axis: &AxisInfo, inst: &Inst, v: ValueId) -> u32 {
    let (module, func, options) = (&kernel.module, kernel.func(), &kernel.options);
    let Some(layout) = kernel.layout(v) else { return 1 };
    if inst.op == Op::Memory(MemoryOp::ViewInside) {
        let together = coalesce::inside(module, func, axis, inst);
        return together.map_or(1, |(d, n)| n.min(layout.vector(d)));
    }
    let Some(access) = coalesce::access(module, func, axis, options, inst) else { return 1 };
    if let Some(width) = shifted(kernel, axis, inst) {
        return width;
    }
    let fastest = access.order.first().copied().unwrap_or(0);
    access.vector.min(layout.vector(fastest))
}

/// The width of a load that is made of two aligned ones.
pub fn shifted(kernel: &Kernel, axis: &AxisInfo, inst: &Inst) -> Option<u32> {
    let layout = kernel.layout(*inst.results.first()?)?;
    let module = &kernel.module;
    coalesce::shifted(module, kernel.func(), axis, &kernel.options, inst, |d| layout.vector(d))
}

/// The axis along which the neighbours of an access of this width must be tested when it is executed.
pub fn ragged(kernel: &Kernel, axis: &AxisInfo, inst: &Inst, width: u32) -> Option<usize> {
    if shifted(kernel, axis, inst) == Some(width) {
        return None;
    }
    let access = coalesce::access(&kernel.module, kernel.func(), axis, &kernel.options, inst)?;
    access.order.first().copied().filter(|_| access.certain < width)
}

/// The width of an asynchronous copy with the result `r`: what both sides of it allow.
pub fn copy(kernel: &Kernel, axis: &AxisInfo, inst: &Inst, copy: &AsyncCopy, r: ValueId) -> u32 {
    memory(kernel, axis, inst, r).min(shared(kernel, &copy.placement, copy.buffer.buffer, r))
}

/// How the fragments of an operand in a buffer with these `bases` are read.
fn fragment_load(kernel: &Kernel, f: &Fragment, bases: &[i64], elem: DType) -> FragmentLoad {
    let bytes = elem.bytes() as u32;
    match ldmatrix::read(f, bases, bytes, kernel.options.spec) {
        ldmatrix::Read::Rows => FragmentLoad::Matrices,
        ldmatrix::Read::Columns => FragmentLoad::TransposedMatrices,
        ldmatrix::Read::Transposed => FragmentLoad::Transposed,
        ldmatrix::Read::Own => {
            let at = |b: &[u32; 2]| image(bases, &f.out_bits(), b);
            let threads: Vec<i64> = f.lane().iter().chain(f.warp()).map(at).collect();
            let registers: Vec<i64> = f.register().iter().map(at).collect();
            let most =
                (kernel.options.spec.vector_bytes / bytes.max(1)).checked_ilog2().unwrap_or(0) as usize;
            FragmentLoad::Vector(1 << ldmatrix::neighbours(f, &registers, &threads, most).len())
        }
    }
}

/// How a product reads each of its operands, including those in registers.
pub fn of_mma(kernel: &Kernel, op: &Mma, acc: ValueId) -> Option<[FragmentLoad; 2]> {
    let tiles = mma::tiles(kernel, op.product, op.instruction, acc)?;
    let of = |side: usize, operand: &MmaOperand| {
        if tiles.matrix.is_wgmma() {
            return FragmentLoad::Instruction;
        }
        let fragment = tiles.operand(side, op.product.k);
        fragment_load(kernel, &fragment, operand.bases(), op.product.elems[side.min(1)])
    };
    Some([of(0, &op.a), of(1, &op.b)])
}

/// How fragments are read.
pub fn of_fragments(kernel: &Kernel, op: &Fragments, acc: ValueId) -> Option<FragmentLoad> {
    let tiles = mma::tiles(kernel, op.product, op.instruction, acc)?;
    let fragment = tiles.operand(op.axis, op.product.k);
    let elem = *op.product.elems.get(op.axis)?;
    Some(fragment_load(kernel, &fragment, &op.bases, elem))
}
