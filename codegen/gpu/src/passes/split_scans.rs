//! Divides scans along a long axis into parts, so that each warp scans a part of its own.
//!
//! ```text
//!                                            v10 = reshape v0 : tile[i32, P, N / P]
//!                                            v11 = cumsum v10 {axis = 1}
//!                                            v12 = reduce v11 {axis = 1, ordered}, the last one : tile[i32, P]
//! v1 = cumsum v0 {axis = 0} : tile[i32, N]   v13 = cumsum v12 {axis = 0}
//!                                         => v14 = gather v13, max(arange - 1, 0) {axis = 0}
//!                                            v15 = add v14, v11
//!                                            v16 = where(part > 0, v15, v11)
//!                                            v1 = reshape v16 : tile[i32, N]
//! ```
//!
//! A warp scans rows of its own. Where a tile has fewer rows than the program has warps, each of them would scan all of
//! it: a tile of one row is as many times more work, and registers, as there are warps. This is the scan of a block by
//! reduction of its parts (Sengupta et al., "Scan Primitives for GPU Computing", 2007).
//!
//! Applies to `cumsum`, `cumprod` and functions without effects, where each part has [`LEAST`] elements for each lane.
//!
//! Requires a verified module. Guarantees the same elements, up to the order in which floats are combined; 16-bit floats are
//! combined in f32, as those of one part are.

use tk_ops::table::Effects;
use tk_ops::{ControlOp, CreateOp, DType, ElementwiseOp, Op, ReduceOp, ScanOp, ShapeOp};
use tk_tile::effects::of_inst;
use tk_tile::passes::{cse, dce};
use tk_tile::rewrite::{Renames, copied};
use tk_tile::{Attr, Attrs, BlockId, Inst, InstId, Type, TypeId, ValueId, walk};

use super::tile_edit::TileEdit;
use super::{Pass, Property, Run, TileKernel};
use crate::ir::attrs::axis_of;
use crate::layout::Threads;

/// The pass.
pub const PASS: Pass = Pass {
    name: "split_scans",
    purpose: "divides scans along a long axis into parts, so that each warp scans a part of its own",
    needs: &[Property::OneFunction],
    leaves: &[Property::ShortScans],
    // Parts of scans of one shape are numbered alike.
    run: Run::Tile { run, cleanup: &[cse::PASS, dce::PASS] },
};

/// The least elements of a part for each lane of a warp: those of an access of f32.
const LEAST: u32 = 4;

fn run(tile: &mut TileKernel) -> bool {
    let threads = tile.options.threads();
    if tile.options.cluster > 1 || threads.warp_bits == 0 {
        return false;
    }
    let mut renames = Renames::default();
    let mut changed = false;
    TileEdit::rebuild(&mut tile.module, tile.kernel, |edit, id| {
        let Some(scan) = Scan::of(edit, id, threads) else { return false };
        for (from, to) in scan.split(edit) {
            renames.set(from, to);
        }
        changed = true;
        true
    });
    if changed {
        let func = &mut tile.module.funcs[tile.kernel];
        for id in walk::insts(func) {
            renames.apply(func, id);
        }
    }
    changed
}

/// A scan that is divided.
struct Scan {
    inst: Inst,
    op: ScanOp,
    axis: usize,
    shape: Vec<u32>,
    /// The number of parts: a power of two, at least 2.
    parts: u32,
}

impl Scan {
    fn of(edit: &TileEdit<'_>, id: InstId, threads: Threads) -> Option<Scan> {
        let inst = &edit.func.insts[id];
        let Op::Scan(op @ (ScanOp::CumSum | ScanOp::CumProd | ScanOp::Custom)) = inst.op else { return None };
        if of_inst(edit.func, id) != Effects::Pure {
            return None;
        }
        let (axis, shape) = (axis_of(inst), edit.shape(*inst.operands.first()?));
        let extent = *shape.get(axis)?;
        let rows = (shape.iter().product::<u32>() / extent.max(1)).next_power_of_two();
        let idle = threads.warp_bits.saturating_sub(rows.trailing_zeros());
        let fit = (extent >> threads.lane_bits) / LEAST;
        let bits = idle.min(extent.trailing_zeros()).min(fit.checked_ilog2()?);
        (bits > 0).then(|| Scan { inst: inst.clone(), op, axis, shape, parts: 1 << bits })
    }

    /// Appends the scan of the parts; returns the results that it replaces, with those that replace them.
    fn split(&self, edit: &mut TileEdit<'_>) -> Vec<(ValueId, ValueId)> {
        let axis = self.axis;
        let mut divided = self.shape.clone();
        divided.splice(axis..=axis, [self.parts, self.shape.get(axis).map_or(1, |n| n / self.parts)]);
        let mut operands = vec![];
        for v in &self.inst.operands {
            let wide = self.wide(edit, *v);
            operands.push(edit.shaped(ShapeOp::Reshape, wide, &divided));
        }
        let scanned = self.scan(edit, &operands, axis + 1);
        let totals = self.totals(edit, &scanned);
        let through = self.scan(edit, &totals, axis);
        let mut before = vec![];
        let (previous, has_previous) = self.neighbours(edit, &totals);
        for v in &through {
            let ty = edit.func.ty(*v);
            let attrs = Attrs::new().with("axis", Attr::Int(axis as i64));
            let v = edit.add(Op::Scan(ScanOp::Gather), &[*v, previous], attrs, ty);
            before.push(each(edit, v, &divided, axis + 1));
        }
        let has_previous = each(edit, has_previous, &divided, axis + 1);
        let both = self.combined(edit, &before, &scanned);
        let mut out = vec![];
        for ((r, own), both) in self.inst.results.iter().zip(scanned).zip(both) {
            let ty = edit.func.ty(own);
            let select = Op::Elementwise(ElementwiseOp::Select);
            let v = edit.add(select, &[has_previous, both, own], Attrs::new(), ty);
            let v = edit.shaped(ShapeOp::Reshape, v, &self.shape);
            let narrow = edit.dtype(*r);
            out.push((*r, narrow.map_or(v, |d| edit.cast(v, d))));
        }
        out
    }

    /// An operand in the type in which its elements are combined.
    fn wide(&self, edit: &mut TileEdit<'_>, v: ValueId) -> ValueId {
        let is_short = matches!(edit.dtype(v), Some(DType::F16 | DType::BF16));
        if is_short && self.op != ScanOp::Custom { edit.cast(v, DType::F32) } else { v }
    }

    /// The same scan of other tiles.
    fn scan(&self, edit: &mut TileEdit<'_>, operands: &[ValueId], axis: usize) -> Vec<ValueId> {
        let types: Vec<TypeId> = operands.iter().map(|v| edit.func.ty(*v)).collect();
        let attrs = self.inst.attrs.clone().with("axis", Attr::Int(axis as i64));
        let blocks = self.blocks(edit);
        several(edit, self.inst.op, operands, attrs, blocks, &types)
    }

    fn blocks(&self, edit: &mut TileEdit<'_>) -> Vec<BlockId> {
        self.inst.blocks.iter().map(|b| copied(edit.func, *b, &mut Renames::default())).collect()
    }

    /// The index of the part before each part, or of the first one if it is that; and whether it is not.
    fn neighbours(&self, edit: &mut TileEdit<'_>, totals: &[ValueId]) -> (ValueId, ValueId) {
        let shape = totals.first().map_or(vec![], |v| edit.shape(*v));
        let reverse = self.inst.attrs.flag("reverse");
        let (by, first) = if reverse { (1, i64::from(self.parts) - 1) } else { (-1, 0) };
        let ty = edit.tile(DType::I32, &[self.parts]);
        let along = |edit: &mut TileEdit<'_>, start: i64| {
            let attrs = Attrs::new().with("start", Attr::Int(start));
            edit.add(Op::Create(CreateOp::Arange), &[], attrs, ty)
        };
        let (number, previous) = (along(edit, 0), along(edit, by));
        let bound = edit.int(DType::I32, first, &[self.parts]);
        let (clamp, beside) = if reverse {
            (ElementwiseOp::Minimum, ElementwiseOp::Lt)
        } else {
            (ElementwiseOp::Maximum, ElementwiseOp::Gt)
        };
        let previous = edit.elementwise(clamp, &[previous, bound]);
        let has_previous = edit.compare(beside, [number, bound]);
        let mut spread = |v| {
            let mut of_axis = vec![1; shape.len()];
            of_axis.get_mut(self.axis).into_iter().for_each(|n| *n = self.parts);
            let v = edit.shaped(ShapeOp::Reshape, v, &of_axis);
            edit.shaped(ShapeOp::Broadcast, v, &shape)
        };
        (spread(previous), spread(has_previous))
    }

    /// What a scan ends with in each part, as a reduction: lanes have it where the parts are.
    fn totals(&self, edit: &mut TileEdit<'_>, parts: &[ValueId]) -> Vec<ValueId> {
        let (axis, reverse) = (self.axis + 1, self.inst.attrs.flag("reverse"));
        let body = edit.func.add_block();
        let (mut types, mut ends) = (vec![], vec![]);
        for is_last in [false, true] {
            for v in parts {
                let Type::Tile { elem, mut shape } = edit.types.get(edit.func.ty(*v)).clone() else {
                    continue;
                };
                let scalar = edit.types.intern(Type::Tile { elem: elem.clone(), shape: vec![] });
                let arg = edit.func.add_arg(body, scalar);
                if is_last != reverse {
                    shape.remove(axis);
                    types.push(edit.types.intern(Type::Tile { elem, shape }));
                    ends.push(arg);
                }
            }
        }
        let (op, attrs) = (Op::Control(ControlOp::Yield), Attrs::new());
        let inst = Inst { op, operands: ends, attrs, blocks: vec![], results: vec![], loc: edit.loc };
        edit.func.add_inst(body, inst, &[]);
        let attrs = Attrs::new().with("axis", Attr::Int(axis as i64)).with("ordered", Attr::Bool(true));
        several(edit, Op::Reduce(ReduceOp::Custom), parts, attrs, vec![body], &types)
    }

    /// What precedes each element, and the element.
    fn combined(&self, edit: &mut TileEdit<'_>, before: &[ValueId], own: &[ValueId]) -> Vec<ValueId> {
        let types: Vec<TypeId> = own.iter().map(|v| edit.func.ty(*v)).collect();
        let operands = [before, own].concat();
        let fast = self.inst.attrs.get("fast").map(|f| Attrs::new().with("fast", f.clone()));
        let (op, attrs) = match self.op {
            ScanOp::CumProd => (Op::Elementwise(ElementwiseOp::Mul), fast.unwrap_or_default()),
            ScanOp::CumSum => (Op::Elementwise(ElementwiseOp::Add), fast.unwrap_or_default()),
            ScanOp::Custom | ScanOp::Sort | ScanOp::TopK | ScanOp::Histogram | ScanOp::Gather => {
                (Op::Control(ControlOp::Map), Attrs::new())
            }
        };
        let blocks = self.blocks(edit);
        several(edit, op, &operands, attrs, blocks, &types)
    }
}

/// Appends an instruction with blocks and any number of results.
fn several(
    edit: &mut TileEdit<'_>,
    op: Op,
    operands: &[ValueId],
    attrs: Attrs,
    blocks: Vec<BlockId>,
    types: &[TypeId],
) -> Vec<ValueId> {
    let inst = Inst { op, operands: operands.to_vec(), attrs, blocks, results: vec![], loc: edit.loc };
    let id = edit.func.add_inst(edit.block, inst, types);
    edit.func.insts[id].results.clone()
}

/// A tile that is the same along one more axis of a shape.
fn each(edit: &mut TileEdit<'_>, v: ValueId, shape: &[u32], axis: usize) -> ValueId {
    let mut one = shape.to_vec();
    one.get_mut(axis).into_iter().for_each(|n| *n = 1);
    let v = edit.shaped(ShapeOp::Reshape, v, &one);
    edit.shaped(ShapeOp::Broadcast, v, shape)
}
