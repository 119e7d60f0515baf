//! Decides which stores to shared memory `stmatrix` can do, and computes the addresses of its rows.
//!
//! An instruction stores four matrices of eight rows of 16 bytes; each lane gives the address of one row, and its words
//! are the elements that an accumulator of `mma` gives a lane: neighbours in a register, four lanes to a row, eight
//! times four lanes to a matrix (PTX ISA, `stmatrix`). The bits of the lane that gives an address then choose the row
//! and the matrix, which in the layout are bits 2 to 4 of a lane and bits 1 and 2 of a register. `stmatrix.trans` stores the
//! rows of a matrix as columns: what lanes have next to one another lies in one row, and a row is chosen by bit 0 of a
//! register and bits 0 and 1 of a lane.

use tk_tile::ValueId;

use crate::ir::kernel::Kernel;
use crate::ir::op::{Placement, SharedStore};
use crate::ir::params::element_bytes;
use crate::ir::shared_access::image;
use crate::layout::linear::InDim;

/// Bytes of a row of a matrix.
const ROW: i64 = 16;

/// Offsets of rows, in bytes from the start of the buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    /// The offset of each bit of a thread: the row that it addresses.
    pub thread: Vec<i64>,
    /// The offset of each register bit; 0 for those that an instruction covers.
    pub register: Vec<i64>,
    /// By `stmatrix.trans`.
    pub transposed: bool,
}

/// The rows of a store, if `stmatrix` can do it.
pub fn rows(kernel: &Kernel, store: &SharedStore, v: ValueId) -> Option<Rows> {
    let (Placement::Swizzled { bases }, None) = (&store.placement, store.buffer.stages) else { return None };
    let elem = kernel.module.types.get(kernel.func().ty(v)).elem();
    let bytes = element_bytes(elem);
    if !kernel.options.spec.has_matrix_store || bytes != 2 || store.chunked || elem_is_pointer(elem) {
        return None;
    }
    let atom = kernel.layout(v)?.atom();
    let of = |dim: InDim| -> Vec<i64> {
        let all = (0..atom.bits(dim)).filter_map(|i| atom.basis(dim, i));
        all.map(|b| image(bases, atom.out_bits(), &b) * bytes as i64).collect()
    };
    let (register, lane, warp) = (of(InDim::Register), of(InDim::Lane), of(InDim::Warp));
    let ([near, r1, r2, more @ ..], [l0, l1, l2, l3, l4]) = (register.as_slice(), lane.as_slice()) else {
        return None;
    };
    // What is next to one another in a row of 16 bytes, and the bits that choose the row.
    let [plain, across] = [[near, l0, l1], [l2, l3, l4]];
    let rows = |transposed: bool| {
        let (of_row, rows) = if transposed { (across, plain) } else { (plain, across) };
        let thread: Vec<i64> = rows.into_iter().chain([r1, r2]).chain(&warp).copied().collect();
        let aligned = thread.iter().chain(more).all(|p| *p != 0 && p % ROW == 0);
        let fits = of_row.map(|p| *p) == [2, 4, 8] && aligned;
        fits.then(|| Rows { thread, register: [&[0, 0, 0], more].concat(), transposed })
    };
    rows(false).or_else(|| rows(true))
}

fn elem_is_pointer(elem: &tk_tile::ElemType) -> bool {
    matches!(elem, tk_tile::ElemType::Ptr { .. })
}
