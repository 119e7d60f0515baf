//! Divides the rows of a program among warpgroups, which share the operands that TMA loads.
//!
//! ```text
//! warps 12                                              warps 4, groups 3
//!
//!                                                       v9 = group_id : i32
//!                                                       v10 = mul v9, 64 : i32
//!                                                       v11 = add m, v10 : i32
//! v3 = view_load v0, m, k : tile[f16, 192, 64]          v3 = view_load v0, v11, k : tile[f16, 64, 64]
//! v4 = view_load v1, k, n : tile[f16, 64, 128]     =>   v4 = view_load v1, k, n : tile[f16, 64, 128]
//! v6 = dot v3, v4, v5 : tile[f32, 192, 128]             v6 = dot v3, v4, v5 : tile[f32, 64, 128]
//! v7 = max v6 {axis = 1} : tile[f32, 192]               v7 = max v6 {axis = 1} : tile[f32, 64]
//! view_store v2, m, n, v6                               view_store v2, v11, n, v6
//! ```
//!
//! Each group is a program of its own for these rows: it has its own layouts, its own copy of each buffer and its own
//! barrier. Only the stages that a producer warp fills for all of them are common
//! ([`crate::passes::warp_specialize`]). So the number of warps needs not be a power of two, as layouts ask, and groups wait for
//! one another only where they wait for a stage.
//!
//! Applies where the number of warps is no power of two, and where rows end a loop at different iterations, which then end it
//! by themselves ([`crate::passes::trim_loops`]). All products must have as many rows, which the groups divide into
//! parts of 64 or more; no operation may combine rows, and all stores must be of tiles that have them. A remark says what prevents
//! it; then the program has as many warps as the power of two below: lanes have more registers than with that above.
//!
//! Requires a verified kernel without calls, on a target with TMA and `wgmma`. Guarantees the same elements.

use tk_ops::table::Effects;
use tk_ops::{ControlOp, CreateOp, DType, DotOp, ElementwiseOp, MemoryOp, Op, ShapeOp};
use tk_tile::effects::of_inst;
use tk_tile::passes::dce;
use tk_tile::rewrite::yielded;
use tk_tile::{Attrs, BlockId, ElemType, Func, Id, Inst, InstId, Type, Types, ValueId, walk};

use super::tile_edit::TileEdit;
use super::{Pass, Property, Run, TileKernel, trim_loops};
use crate::analysis::counters::counters;
use crate::analysis::provenance::Roots;
use crate::ir::attrs::{axis_of, is_unit, permutation};
use crate::ir::kernel::Remark;
use crate::ir::op::{GpuOp, GroupId};
use crate::ir::warps::WARPGROUP_WARPS;

/// The pass.
pub const PASS: Pass = Pass {
    name: "split_rows",
    purpose: "divides the rows of a program among warpgroups that share what TMA loads",
    needs: &[Property::OneFunction, Property::ShortDots, Property::TurnsOfGroups],
    leaves: &[Property::RowsOfGroups],
    run: Run::Tile { run, cleanup: &[dce::PASS] },
};

/// The rows of an instruction of a warpgroup.
const ROWS: u32 = 64;

fn run(tile: &mut TileKernel) -> bool {
    let warps = tile.options.warps;
    let has_layouts = warps.is_power_of_two();
    if has_layouts && (warps <= WARPGROUP_WARPS || !trim_loops::differs_by_row(tile)) {
        return false;
    }
    let func = &tile.module.funcs[tile.kernel];
    let loc = func.blocks[func.body].insts.iter().find_map(|i| func.insts[*i].loc);
    match plan(tile) {
        Ok(rows) => {
            rows.apply(tile);
            true
        }
        Err(why) => {
            tile.options.warps = 1 << warps.ilog2();
            let text = match has_layouts {
                true => format!("warpgroups have no rows of their own: {why}"),
                false => format!("a program has {} warps instead of {warps}: {why}", tile.options.warps),
            };
            tile.remarks.push(Remark { loc, text });
            false
        }
    }
}

/// How the rows of a kernel are divided.
struct Rows {
    /// For each value the dimension along which it has the rows.
    dims: Vec<Option<usize>>,
    /// The rows of a group.
    each: u32,
    groups: u32,
}

/// The values that have the rows, or what prevents dividing them.
fn plan(tile: &TileKernel) -> Result<Rows, String> {
    let (func, types, options) = (&tile.module.funcs[tile.kernel], &tile.module.types, &tile.options);
    let (spec, groups) = (options.spec, options.warps / WARPGROUP_WARPS);
    if !spec.has_tma || !spec.has_async_mma || !options.warps.is_multiple_of(WARPGROUP_WARPS) {
        return Err("warpgroups need products of warpgroups".into());
    }
    if !options.may_have_groups {
        return Err("the copies of tiles that warpgroups have do not fit in shared memory".into());
    }
    if options.blocks > 1 {
        return Err("it is split over several blocks".into());
    }
    let mut rows = Search { func, types, dims: vec![None; func.values.len()], open: vec![] };
    let insts = walk::insts(func);
    let products = insts.iter().filter(|i| matches!(func.insts[**i].op, Op::Dot(_)));
    let mut all = None;
    for product in products {
        let Some(r) = func.insts[*product].results.first() else { continue };
        let own = rows.shape(*r).first().copied().unwrap_or(0);
        if *all.get_or_insert(own) != own {
            return Err("its products have different numbers of rows".into());
        }
        rows.mark(*r, 0)?;
    }
    let all = all.ok_or("it has no product")?;
    if !all.is_multiple_of(groups * ROWS) {
        return Err(format!("{groups} warpgroups do not divide {all} rows into multiples of {ROWS}"));
    }
    rows.follow()?;
    rows.check_effects(&insts)?;
    Ok(Rows { dims: rows.dims, each: all / groups, groups })
}

/// Finds the values that have the rows of a product.
struct Search<'a> {
    func: &'a Func,
    types: &'a Types,
    dims: Vec<Option<usize>>,
    /// Marked values whose neighbours are not marked yet.
    open: Vec<ValueId>,
}

/// Two values of an instruction, and their dimensions whose elements belong together.
type Link = (ValueId, ValueId, Vec<[usize; 2]>);

impl Search<'_> {
    fn shape(&self, v: ValueId) -> &[u32] {
        self.types.get(self.func.ty(v)).shape().unwrap_or(&[])
    }

    fn mark(&mut self, v: ValueId, dim: usize) -> Result<(), String> {
        match self.dims.get_mut(v.index()) {
            Some(Some(other)) if *other != dim => Err("rows become columns of the same tile".into()),
            Some(slot @ None) => {
                *slot = Some(dim);
                self.open.push(v);
                Ok(())
            }
            Some(Some(_)) | None => Ok(()),
        }
    }

    fn dim(&self, v: ValueId) -> Option<usize> {
        self.dims.get(v.index()).copied().flatten()
    }

    /// Marks everything that has the rows.
    fn follow(&mut self) -> Result<(), String> {
        let insts = walk::insts(self.func);
        while !self.open.is_empty() {
            self.open.clear();
            for i in &insts {
                let inst = &self.func.insts[*i];
                let marked = |v: &ValueId| self.dim(*v).is_some();
                if !inst.operands.iter().chain(&inst.results).any(marked) && inst.blocks.is_empty() {
                    continue;
                }
                for (a, b, pairs) in self.links(inst) {
                    self.relate(inst, [a, b], |n| pairs.iter().find(|p| p[0] == n).map(|p| p[1]))?;
                    self.relate(inst, [b, a], |n| pairs.iter().find(|p| p[1] == n).map(|p| p[0]))?;
                }
                self.supports(inst)?;
            }
        }
        Ok(())
    }

    /// Marks `to` where `from` is marked.
    fn relate(
        &mut self,
        inst: &Inst,
        [from, to]: [ValueId; 2],
        pair: impl Fn(usize) -> Option<usize>,
    ) -> Result<(), String> {
        let Some(dim) = self.dim(from) else { return Ok(()) };
        match pair(dim) {
            Some(to_dim) => self.mark(to, to_dim),
            // The same for all rows.
            None if inst.op == Op::Shape(ShapeOp::Broadcast) => Ok(()),
            None => Err(format!("`{}` combines rows", inst.name())),
        }
    }

    /// The values of an instruction that have the same rows.
    fn links(&self, inst: &Inst) -> Vec<Link> {
        let tiles = |list: &[ValueId]| -> Vec<ValueId> {
            list.iter().copied().filter(|v| !self.shape(*v).is_empty()).collect()
        };
        let alike = |a: ValueId, b: ValueId| (a, b, (0..self.shape(a).len()).map(|d| [d, d]).collect());
        let all = tiles(&[inst.operands.as_slice(), inst.results.as_slice()].concat());
        let chain = |all: &[ValueId]| all.windows(2).map(|w| alike(w[0], w[1])).collect::<Vec<Link>>();
        let ends = || inst.blocks.iter().map(|b| yielded(self.func, *b));
        match (inst.op, inst.operands.as_slice(), inst.results.as_slice()) {
            (Op::Elementwise(_) | Op::Control(ControlOp::Map), ..) => chain(&all),
            (Op::Memory(_), ..) => chain(&all),
            (Op::Shape(ShapeOp::Broadcast), [x], [r]) => {
                let (from, to) = (self.shape(*x), self.shape(*r));
                let same = (0..from.len()).filter(|d| from.get(*d) == to.get(*d));
                vec![(*x, *r, same.map(|d| [d, d]).collect())]
            }
            (Op::Shape(ShapeOp::Permute), [x], [r]) => {
                let perm = permutation(inst);
                vec![(*x, *r, perm.iter().enumerate().map(|(to, from)| [*from, to]).collect())]
            }
            (Op::Shape(ShapeOp::Reshape), [x], [r]) if is_unit(self.shape(*x), self.shape(*r)) => {
                let real = |v: ValueId| {
                    self.shape(v).iter().enumerate().filter(|(_, n)| **n != 1).map(|(d, _)| d).collect()
                };
                let (from, to): (Vec<usize>, Vec<usize>) = (real(*x), real(*r));
                vec![(*x, *r, from.into_iter().zip(to).map(|(a, b)| [a, b]).collect())]
            }
            (Op::Reduce(_), [x], [r]) if !self.shape(*r).is_empty() => {
                let axis = axis_of(inst).min(self.shape(*x).len() - 1);
                let kept = (0..self.shape(*x).len()).filter(|d| *d != axis);
                vec![(*x, *r, kept.map(|d| [d, d - usize::from(d > axis)]).collect())]
            }
            (Op::Dot(DotOp::Dot), [a, _, acc], [r]) => {
                vec![(*a, *r, vec![[0, 0]]), alike(*acc, *r)]
            }
            (Op::Control(ControlOp::For), [_, _, _, init @ ..], results) => {
                let args = inst.blocks.iter().flat_map(|b| self.func.blocks[*b].args.iter().skip(1));
                let ends = ends().next().unwrap_or(&[]);
                let carried = init.iter().zip(args).zip(ends.iter().zip(results));
                let of = |((i, a), (e, r)): ((&ValueId, &ValueId), (&ValueId, &ValueId))| {
                    chain(&tiles(&[*i, *a, *e, *r]))
                };
                carried.flat_map(of).collect()
            }
            (Op::Control(ControlOp::If), _, results) => {
                let of = |(k, r): (usize, &ValueId)| {
                    let arms = ends().filter_map(|e| e.get(k).copied());
                    chain(&tiles(&arms.chain([*r]).collect::<Vec<_>>()))
                };
                results.iter().enumerate().flat_map(of).collect()
            }
            _ => vec![],
        }
    }

    /// An instruction that has marked values must be one of those whose links say all that it does.
    fn supports(&self, inst: &Inst) -> Result<(), String> {
        let marked = |v: &ValueId| self.dim(*v).is_some();
        let (reads, makes) = (inst.operands.iter().any(marked), inst.results.iter().any(marked));
        let known = match inst.op {
            Op::Elementwise(_) | Op::Dot(DotOp::Dot) => true,
            Op::Create(CreateOp::Const | CreateOp::Splat | CreateOp::Undef | CreateOp::Arange) => true,
            Op::Shape(ShapeOp::Broadcast | ShapeOp::Permute) | Op::Reduce(_) => true,
            Op::Shape(ShapeOp::Reshape) => {
                let shapes = inst.operands.first().zip(inst.results.first());
                shapes.is_some_and(|(x, r)| is_unit(self.shape(*x), self.shape(*r)))
            }
            Op::Memory(
                MemoryOp::Load
                | MemoryOp::Store
                | MemoryOp::PtrAdd
                | MemoryOp::ViewLoad
                | MemoryOp::ViewStore,
            ) => true,
            Op::Control(
                ControlOp::For
                | ControlOp::If
                | ControlOp::Yield
                | ControlOp::Map
                | ControlOp::MultipleOf
                | ControlOp::MaxContiguous,
            ) => true,
            _ => false,
        };
        // The right operand of a product has no rows of it.
        let right = inst.op == Op::Dot(DotOp::Dot) && inst.operands.get(1).is_some_and(marked);
        let scalar = matches!(inst.op, Op::Reduce(_)) && reads && !makes;
        if (reads || makes) && !known || right || scalar {
            return Err(format!("`{}` combines rows", inst.name()));
        }
        Ok(())
    }

    /// What a program does once must not be done by each group.
    fn check_effects(&self, insts: &[InstId]) -> Result<(), String> {
        let (func, roots) = (self.func, Roots::new(self.func));
        // A producer warp takes numbers from counters for all groups.
        let counts = counters(func, self.types, &roots);
        let root = |inst: &Inst| inst.operands.first().and_then(|v| roots.get(*v));
        let plain =
            || insts.iter().copied().filter(|i| func.insts[*i].blocks.is_empty() && !counts.contains(i));
        let written: Vec<Option<ValueId>> =
            plain().filter(|i| of_inst(func, *i) == Effects::Write).map(|i| root(&func.insts[i])).collect();
        for i in plain() {
            let inst = &func.insts[i];
            let ends =
                matches!(inst.op, Op::Control(ControlOp::Yield | ControlOp::Condition | ControlOp::Return));
            match of_inst(func, i) {
                Effects::Ordered if !ends => {
                    return Err(format!("`{}` is done once in a program", inst.name()));
                }
                Effects::Write if !inst.operands.iter().any(|v| self.dim(*v).is_some()) => {
                    return Err("it stores a tile without the rows of its products".into());
                }
                Effects::Read if written.iter().any(|w| w.is_none() || *w == root(inst)) => {
                    return Err("it reads memory that it writes".into());
                }
                Effects::Pure | Effects::Read | Effects::Write | Effects::Ordered => {}
            }
        }
        Ok(())
    }
}

impl Rows {
    fn dim(&self, v: ValueId) -> Option<usize> {
        self.dims.get(v.index()).copied().flatten()
    }

    fn apply(&self, tile: &mut TileKernel) {
        tile.options.warps = WARPGROUP_WARPS;
        tile.options.groups = self.groups;
        let (func, types) = (&mut tile.module.funcs[tile.kernel], &mut tile.module.types);
        let first = first_row(func, types, self.each);
        let values: Vec<ValueId> = func.values.iter().map(|(v, _)| v).collect();
        for v in values {
            let Some(dim) = self.dim(v) else { continue };
            let mut ty = types.get(func.ty(v)).clone();
            if let Type::Tile { shape, .. } = &mut ty {
                shape.get_mut(dim).into_iter().for_each(|n| *n = self.each);
            }
            func.values[v].ty = types.intern(ty);
        }
        TileEdit::rebuild(&mut tile.module, tile.kernel, |edit, id| self.change(edit, id, first));
    }

    /// Adds the first row of the group to the positions of rows.
    fn change(&self, edit: &mut TileEdit<'_>, id: InstId, first: ValueId) -> bool {
        let inst = edit.func.insts[id].clone();
        match inst.op {
            Op::Create(CreateOp::Arange) => {
                let Some(r) = inst.results.first().copied().filter(|r| self.dim(*r).is_some()) else {
                    return false;
                };
                let (shape, ty) = (edit.shape(r), edit.func.ty(r));
                let Some(dtype) = edit.dtype(r) else { return false };
                let own = edit.add(inst.op, &[], inst.attrs.clone(), ty);
                let start = edit.cast(first, dtype);
                let start = edit.splat(start, &shape);
                let sum = &mut edit.func.insts[id];
                sum.op = Op::Elementwise(ElementwiseOp::Add);
                (sum.operands, sum.attrs) = (vec![own, start], Attrs::new());
            }
            Op::Memory(MemoryOp::ViewLoad | MemoryOp::ViewStore) => {
                let tiles = inst.operands.iter().skip(1).chain(&inst.results);
                let Some(dim) = tiles.filter_map(|v| self.dim(*v)).next() else { return false };
                let Some(at) = inst.operands.get(1 + dim).copied() else { return false };
                let Some(dtype) = edit.dtype(at) else { return false };
                let start = edit.cast(first, dtype);
                let moved = edit.elementwise(ElementwiseOp::Add, &[at, start]);
                edit.func.insts[id].operands.get_mut(1 + dim).into_iter().for_each(|v| *v = moved);
            }
            _ => return false,
        }
        edit.push(id);
        true
    }
}

/// Adds the number of the first row of a group to the beginning of a kernel.
fn first_row(func: &mut Func, types: &mut Types, each: u32) -> ValueId {
    let block = BlockId::new(func.body.index());
    let rest = std::mem::take(&mut func.blocks[block].insts);
    let i32 = types.intern(Type::Tile { elem: ElemType::Scalar(DType::I32), shape: vec![] });
    let made = func.add_inst(block, GpuOp::from(GroupId {}).inst(vec![], None), &[i32]);
    let group = func.insts[made].results.first().copied().unwrap_or(ValueId::new(0));
    let mut edit = TileEdit { func, types, block, loc: None };
    let each = edit.int(DType::I32, each.into(), &[]);
    let first = edit.elementwise(ElementwiseOp::Mul, &[group, each]);
    func.blocks[block].insts.extend(rest);
    first
}
