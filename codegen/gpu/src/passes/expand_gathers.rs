//! Turns gathers and scatters of neighbours in memory into loads and stores of tiles of pointers.
//!
//! ```text
//!                                             v6 = view_ptr v0 : *f16
//!                                             v7 = .. v1 * stride 0 + v2 * stride 1
//!                                             v8 = ptr_add v6, v7 : tile[*f16, 64, 64]
//! v5 = view_gather v0, v1, v2, v3, v4     =>  v9 = 0 <= v1 < extent 0 && 0 <= v2 < extent 1 && v3
//!                                             v5 = load v8, v9, v4
//! ```
//!
//! Rows by number, as in mixtures of experts, paged caches and embeddings, are such gathers: the numbers of rows are
//! loaded, the columns count up. A tile of pointers has facts along each dimension, so that its accesses are wide and
//! asynchronous wherever these allow it; a gather goes element by element.
//!
//! Applies if positions along an axis with stride 1 count up along a dimension of the tile.
//!
//! Requires a verified module. Guarantees the same elements.

use tk_ops::{DType, ElementwiseOp, MemoryOp, Op};
use tk_tile::passes::{cse, dce};
use tk_tile::{Attr, Attrs, ElemType, InstId, Type, walk};

use super::tile_edit::TileEdit;
use super::{Pass, Property, Run, TileKernel};
use crate::analysis::axis::AxisInfo;

/// The pass.
pub const PASS: Pass = Pass {
    name: "expand_gathers",
    purpose: "makes gathers and scatters of neighbours accesses of tiles of pointers",
    needs: &[Property::OneFunction],
    leaves: &[Property::ExpandedGathers],
    // Extents and strides of a view that several accesses use.
    run: Run::Tile { run, cleanup: &[cse::PASS, dce::PASS] },
};

fn run(tile: &mut TileKernel) -> bool {
    let Some(func) = tile.module.funcs.get(tile.kernel) else { return false };
    let all: Vec<InstId> = walk::insts(func)
        .into_iter()
        .filter(|i| matches!(func.insts[*i].op, Op::Memory(MemoryOp::ViewGather | MemoryOp::ViewScatter)))
        .collect();
    if all.is_empty() {
        return false;
    }
    let axis = AxisInfo::new(&tile.module, func, &tile.options.facts);
    let found: Vec<InstId> =
        all.into_iter().filter(|i| axis.gathers_neighbours(&tile.module, func, &func.insts[*i])).collect();
    TileEdit::rebuild(&mut tile.module, tile.kernel, |edit, id| {
        found.contains(&id) && expand(edit, &axis, id)
    });
    !found.is_empty()
}

/// Appends a load or store of a tile of pointers instead of an access.
fn expand(edit: &mut TileEdit<'_>, axis: &AxisInfo, id: InstId) -> bool {
    let old = edit.func.insts[id].clone();
    let Some(view) = old.operands.first().copied() else { return false };
    let Type::View { elem, rank, mutable, wide, .. } = edit.types.get(edit.func.ty(view)).clone() else {
        return false;
    };
    let (at, rest) = old.operands.split_at((1 + rank as usize).min(old.operands.len()));
    // A gather has its mask first, a scatter its values.
    let [first, second] = *rest else { return false };
    let gathers = old.op == Op::Memory(MemoryOp::ViewGather);
    let mut mask = if gathers { first } else { second };
    let shape = edit.shape(mask);
    let extent_type = if wide { DType::I64 } else { DType::I32 };
    let strides = axis.view(view).map(|f| f.strides.clone()).unwrap_or_default();
    let mut offset = None;
    for (n, position) in at.iter().skip(1).enumerate() {
        let attrs = || Attrs::new().with("axis", Attr::Int(n as i64));
        let of_view = |edit: &mut TileEdit<'_>, op: MemoryOp, d: DType| {
            let ty = edit.tile(d, &[]);
            let v = edit.add(Op::Memory(op), &[view], attrs(), ty);
            let v = edit.cast(v, DType::I64);
            edit.splat(v, &shape)
        };
        let p = edit.cast(*position, DType::I64);
        let zero = edit.int(DType::I64, 0, &shape);
        let extent = of_view(edit, MemoryOp::ViewShape, extent_type);
        for inside in
            [edit.compare(ElementwiseOp::Ge, [p, zero]), edit.compare(ElementwiseOp::Lt, [p, extent])]
        {
            mask = edit.elementwise(ElementwiseOp::And, &[mask, inside]);
        }
        let by = if strides.get(n).is_some_and(|s| s.1) {
            p
        } else {
            let stride = of_view(edit, MemoryOp::ViewStride, DType::I64);
            edit.elementwise(ElementwiseOp::Mul, &[p, stride])
        };
        offset = Some(offset.map_or(by, |sum| edit.elementwise(ElementwiseOp::Add, &[sum, by])));
    }
    let Some(offset) = offset else { return false };
    let pointer = ElemType::Ptr { pointee: Box::new(elem), mutable };
    let base = edit.types.intern(Type::Tile { elem: pointer.clone(), shape: vec![] });
    let base = edit.add(Op::Memory(MemoryOp::ViewPtr), &[view], Attrs::new(), base);
    let base = edit.splat(base, &shape);
    let pointers = edit.types.intern(Type::Tile { elem: pointer, shape });
    let pointers = edit.add(Op::Memory(MemoryOp::PtrAdd), &[base, offset], Attrs::new(), pointers);
    let inst = &mut edit.func.insts[id];
    (inst.op, inst.operands) = if gathers {
        (Op::Memory(MemoryOp::Load), vec![pointers, mask, second])
    } else {
        (Op::Memory(MemoryOp::Store), vec![pointers, first, mask])
    };
    edit.push(id);
    true
}
