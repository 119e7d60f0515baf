//! Places what a thread copies for itself in a multi-stage buffer.

use tk_tile::{InstId, ValueId};

use super::expand::Expand;
use crate::ir::attrs::row_major;
use crate::ir::kernel::Kernel;
use crate::ir::op::{Placement, Strides};
use crate::ir::params::element_bytes;
use crate::layout::linear::InDim;
use crate::layout::{Layout, padded};

/// Bytes of a stage in which each thread reads what it copied.
pub(super) fn bytes(kernel: &Kernel, load: InstId) -> u32 {
    let func = kernel.func();
    let Some(r) = func.insts[load].results.first() else { return 0 };
    let ty = kernel.module.types.get(func.ty(*r));
    let elements: u32 = ty.shape().unwrap_or(&[]).iter().map(|n| padded(*n)).product();
    elements * element_bytes(ty.elem()) as u32
}

impl Expand<'_> {
    /// A placement in which each thread reads what it copied without bank conflicts: elements that a lane accesses at
    /// once, then lanes, then warps, then the rest of the registers. Also returns whether each thread reads only what
    /// it copied.
    pub(super) fn own_place(&mut self, v: ValueId) -> (Placement, bool) {
        let ty = self.kernel.module.types.get(self.kernel.func().ty(v));
        let (shape, bytes) = (ty.shape().unwrap_or(&[]).to_vec(), element_bytes(ty.elem()) as u32);
        let most = (self.kernel.options.spec.vector_bytes / bytes).max(1);
        let layout = self.kernel.layout(v).cloned();
        let alone = layout
            .as_ref()
            .is_some_and(|l| l.atom().free_bits(InDim::Lane) == 0 && l.atom().free_bits(InDim::Warp) == 0);
        self.needs_barrier |= !alone;
        let placement = match layout.and_then(|l| by_threads(&l, most)) {
            Some(bases) => Placement::Swizzled { bases },
            None => Placement::Strided(Strides { start: 0, strides: row_major(&shape) }),
        };
        (placement, alone)
    }
}

/// The offset of each bit of the coordinates inside of an atom if the adjacent elements of a lane come first, then
/// lanes, warps, and the rest of the registers; `None` if bits of coordinates mix.
fn by_threads(layout: &Layout, most: u32) -> Option<Vec<i64>> {
    let atom = layout.atom();
    if !layout.is_disjoint() {
        return None;
    }
    let of = |dim: InDim| (0..atom.bits(dim)).filter_map(|i| atom.basis(dim, i)).collect::<Vec<_>>();
    let (mut register, mut order) = (of(InDim::Register), vec![]);
    let fastest = (0..atom.rank()).max_by_key(|d| layout.vector(*d)).unwrap_or(0);
    let vector = layout.vector(fastest).min(most).trailing_zeros() as usize;
    order.extend(register.drain(..vector.min(register.len())));
    order.extend(of(InDim::Lane));
    order.extend(of(InDim::Warp));
    order.extend(register);
    let order: Vec<Vec<u32>> = order.into_iter().filter(|b| b.iter().any(|c| *c != 0)).collect();
    let mut bases = vec![];
    for (d, bits) in atom.out_bits().iter().enumerate() {
        for i in 0..*bits {
            let unit: Vec<u32> = (0..atom.rank()).map(|e| if e == d { 1 << i } else { 0 }).collect();
            bases.push(1i64 << order.iter().position(|b| *b == unit)?);
        }
    }
    Some(bases)
}
