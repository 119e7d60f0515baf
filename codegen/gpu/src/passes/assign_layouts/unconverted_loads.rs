//! Loads in the layout of their only user.
//!
//! ```text
//! v2 = view_load v1, v0 : tile[f16, 5120] @l0     =>    v2 = view_load v1, v0 : tile[f16, 5120] @l1
//! v3 = convert v2 : tile[f16, 5120] @l1                 v4 = add v2, ..
//! v4 = add v3, ..
//! ```
//!
//! A load that memory does not align moves an element smaller than a register at a time. It takes as many instructions and
//! transactions in any layout in which a lane has a register of neighbours and the lanes of a warp follow one another, so a
//! conversion through shared memory would be for nothing. The same holds where a lane reads the neighbours of at most a sector in
//! several accesses, such as f32 weights beside rows of halves: all but the first find the sector in the cache; and where a load
//! of two aligned accesses, shifted, needs such a lane.
//!
//! Requires layouts. Guarantees the same elements in the layout of the conversion, in no more registers.

use tk_ops::{MemoryOp, Op};
use tk_tile::rewrite::Renames;
use tk_tile::{BlockId, Def, FuncId, Id, InstId, ValueId, walk};

use super::{REGISTER, SECTOR, run as neighbours};
use crate::analysis::axis::AxisInfo;
use crate::analysis::coalesce::{access, shifted};
use crate::ir::kernel::{Kernel, LayoutId};
use crate::ir::op::GpuOp;

/// Removes conversions of such loads.
pub fn run(kernel: &mut Kernel) {
    let func = kernel.func();
    let axis = AxisInfo::new(&kernel.module, func, &kernel.options.facts);
    let converts = walk::insts(func);
    let found: Vec<Needless> = converts.into_iter().filter_map(|i| needless(kernel, &axis, i)).collect();
    let mut renames = Renames::default();
    for Needless { convert, loaded, converted, layout } in found {
        kernel.set_layout(loaded, Some(layout));
        renames.set(converted, loaded);
        let blocks = &mut kernel.module.funcs[FuncId(0)].blocks;
        let ids: Vec<BlockId> = blocks.iter().map(|(b, _)| b).collect();
        ids.into_iter().for_each(|b| blocks[b].insts.retain(|i| *i != convert));
    }
    let func = &mut kernel.module.funcs[FuncId(0)];
    for i in walk::insts(func) {
        renames.apply(func, i);
    }
}

/// A conversion that is for nothing.
struct Needless {
    convert: InstId,
    loaded: ValueId,
    converted: ValueId,
    layout: LayoutId,
}

/// The conversion of a load, if it is one of these.
fn needless(kernel: &Kernel, axis: &AxisInfo, convert: InstId) -> Option<Needless> {
    let func = kernel.func();
    let inst = &func.insts[convert];
    let (Some(GpuOp::Convert(_)), [loaded], [converted]) =
        (GpuOp::of(inst), inst.operands.as_slice(), inst.results.as_slice())
    else {
        return None;
    };
    let Def::Inst(load, _) = func.values[*loaded].def else { return None };
    let load = &func.insts[load];
    let uses = walk::insts(func).into_iter().flat_map(|i| func.insts[i].operands.iter());
    // What a masked element is has a layout, too.
    let plain = load.operands.iter().all(|v| kernel.layout(*v).is_none());
    if load.op != Op::Memory(MemoryOp::ViewLoad) || !plain || uses.filter(|v| *v == loaded).count() > 1 {
        return None;
    }
    let of = access(&kernel.module, func, axis, &kernel.options, load)?;
    let (from, to) = (kernel.layout(*loaded)?, kernel.layout(*converted)?);
    let fastest = *of.order.first()?;
    let run = to.vector(fastest);
    let is_narrow = of.vector == 1 && run * of.bytes <= REGISTER;
    let is_wide = of.vector * of.bytes >= REGISTER && run > of.vector && run * of.bytes <= SECTOR;
    // As far as the lanes of a warp reach with an element each.
    let same =
        to.registers() <= from.registers() && neighbours(to, fastest, of.bytes) * of.bytes >= 2 * SECTOR;
    let layout = kernel.value_layouts.get(converted.index()).copied().flatten()?;
    let module = &kernel.module;
    let is_shifted = run * of.bytes <= SECTOR
        && shifted(module, func, axis, &kernel.options, load, |d| to.vector(d)).is_some();
    ((is_narrow || is_wide || is_shifted) && same).then_some(Needless {
        convert,
        loaded: *loaded,
        converted: *converted,
        layout,
    })
}
