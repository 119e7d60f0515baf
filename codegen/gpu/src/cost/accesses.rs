//! What an access of device memory costs: the instructions of its width, and the lines and sectors that the lanes of a warp
//! reach.

use tk_ops::MemoryOp;
use tk_tile::frequency::LaunchArg;
use tk_tile::{ElemType, Id, Inst, InstId, Type, ValueId};

use super::latency;
use super::steps::Steps;
use super::work::{Costs, SECTOR, Work};
use crate::analysis::{access_width, coalesce};
use crate::ir::params::element_bytes;
use crate::layout::linear::InDim;

/// Bytes of a line of the first-level cache, which one access reaches.
const LINE: f64 = 128.0;
/// Bytes that memory could move while it goes to another row of a tensor.
const PAGE: f64 = 64.0;
/// Bytes of the widest access of a lane.
const WIDE: f64 = 16.0;

/// What of an access of device memory no argument changes.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    /// The dimension of the tile along which neighbours are.
    d: Option<usize>,
    /// The neighbours along it that the lanes of a warp reach together, and the lanes that differ.
    run: f64,
    lanes: f64,
    /// Why an access of a lane is not wider.
    limit: &'static str,
}

impl Costs<'_> {
    /// The lanes of a warp along a dimension and over all: how many neighbours along `d` they reach together, beginning
    /// with `vector` of one lane, and how many of the lanes differ.
    fn run(&self, v: ValueId, d: Option<usize>, vector: u32) -> (f64, f64) {
        let Some(layout) = self.kernel.layout(v) else { return (f64::from(vector), 1.0) };
        let bits = self.kernel.options.threads().lane_bits as usize;
        let bases: Vec<Vec<u32>> = (0..bits).filter_map(|b| layout.atom().basis(InDim::Lane, b)).collect();
        let lanes = bases.iter().filter(|b| b.iter().any(|c| *c != 0)).count();
        let mut run = vector;
        if let Some(d) = d {
            let reaches = |run: u32| {
                bases
                    .iter()
                    .any(|b| b.iter().enumerate().all(|(i, c)| if i == d { *c == run } else { *c == 0 }))
            };
            while reaches(run) {
                run *= 2;
            }
        }
        (f64::from(run), f64::from(1u32 << lanes))
    }

    /// The pattern of an access of device memory of the elements of `v`, by `vector` of them at a time.
    fn pattern(&self, inst: &Inst, v: ValueId, vector: u32) -> Pattern {
        let (module, func) = (&self.kernel.module, self.kernel.func());
        let access = coalesce::access(module, func, self.axis, &self.kernel.options, inst);
        let ty = module.types.get(func.ty(v));
        // Where a row of the tile is one element, neighbours are those of the next dimension.
        let several = |d: &&usize| ty.shape().and_then(|s| s.get(**d)).is_none_or(|n| *n > 1);
        let d = access.as_ref().and_then(|a| a.order.iter().find(several).or(a.order.first()).copied());
        let (run, lanes) = self.run(v, d, vector.max(1));
        let limit = match &access {
            Some(access) if access.vector > vector => "a thread has no more neighbours",
            Some(access) => access.limit,
            None => "its elements are nowhere in order",
        };
        Pattern { d, run, lanes, limit }
    }

    /// An access of device memory of the elements of `v`, by `vector` of them at a time.
    pub(super) fn global(&self, id: InstId, v: ValueId, bytes: f64, vector: u32) -> Work {
        let inst = &self.kernel.func().insts[id];
        let ty = self.kernel.module.types.get(self.kernel.func().ty(v));
        let known = self.patterns.get(id.index());
        let find = || self.pattern(inst, v, vector);
        let Pattern { d, run, lanes, limit } =
            known.map_or_else(find, |pattern| pattern.get_or_init(find).clone());
        // One at any address is two aligned ones.
        let each = if inst.attrs.flag("shifted") { 2.0 } else { 1.0 };
        let instructions = each * self.registers(v) / f64::from(vector.max(1)) * self.warps;
        let runs = (lanes * f64::from(vector.max(1)) / run).max(1.0);
        let step = match d {
            Some(d) if vector <= 1 => Steps::new(self.kernel, self.axis, self.args).of_access(inst, d),
            Some(_) | None => 1.0,
        };
        let span = ((run - 1.0) * step + 1.0) * bytes;
        let lines = runs * (span / LINE).ceil().clamp(1.0, run);
        // Neighbours along the fastest dimension are in one sector; what one access leaves of it, the next finds in the
        // first-level cache.
        let along = d.and_then(|d| ty.shape()?.get(d).copied()).map_or(1.0, f64::from);
        let (from, row) = (inst.operands.first().copied(), along * bytes);
        let used = row.min(SECTOR);
        let apart = (step * bytes).clamp(bytes, SECTOR.max(bytes)) / bytes;
        let moved = self.count(v) * bytes * (SECTOR / used.max(1.0)).max(1.0).max(apart);
        // What is out of bounds is not read.
        let inside = self.inside(from, ty);
        let (moved, whole) = (moved * inside, self.count(v) * bytes * inside);
        // A position and a predicate for each access, beside it.
        Work {
            issue: 2.5 * instructions,
            accesses: lines * instructions,
            bytes: moved * if step > 1.0 { 1.0 } else { self.split(from, row) },
            needed: whole,
            lane_bytes: (bytes * f64::from(vector.max(1))) as u32,
            limit,
            scattered: whole * PAGE / self.contiguous(from, ty, row),
            // Programs that follow one another share a line, which one of them brings, and what many programs read is there after the first of them.
            latency: if whole < LINE || self.is_shared(from, whole) {
                latency::CACHE
            } else {
                latency::MEMORY + Self::longer(self.registers(v) * bytes)
            },
            ..Work::default()
        }
    }

    /// Cycles by which a load of so many bytes in a lane takes longer than one of a wide access.
    fn longer(bytes: f64) -> f64 {
        let times = (bytes / WIDE).log2();
        if times > 0.0 { latency::MORE * times } else { latency::LESS * times.max(-1.0) }
    }

    /// The part of a tile that is inside of the argument that it comes from, if it is larger than that.
    fn inside(&self, v: Option<ValueId>, ty: &Type) -> f64 {
        let (Some((shape, _)), Some(extents)) = (self.argument(v), ty.shape()) else { return 1.0 };
        if shape.len() != extents.len() {
            return 1.0;
        }
        let part = |(n, extent): (&i64, &u32)| (*n as f64 / f64::from(*extent)).min(1.0);
        shape.iter().zip(extents).map(part).product()
    }

    /// Returns true if the programs together read an argument several times.
    fn is_shared(&self, v: Option<ValueId>, bytes: f64) -> bool {
        /// More often than the neighbours of a tile overlap.
        const SEVERAL: f64 = 8.0;
        let elements = self.argument(v).map(|(shape, _)| shape.iter().map(|d| *d as f64).product::<f64>());
        elements.is_some_and(|n| bytes * self.programs > SEVERAL * n * v.map_or(1.0, |v| self.pointee(v)))
    }

    /// The extents and strides of the argument that a pointer or view comes from.
    fn argument(&self, v: Option<ValueId>) -> Option<(&[i64], &[i64])> {
        let root = self.roots.get(v?)?;
        let func = self.kernel.func();
        let number = func.blocks[func.body].args.iter().position(|p| *p == root)?;
        match self.args.get(number)? {
            LaunchArg::Tensor(shape, strides) => Some((shape, strides)),
            LaunchArg::Scalar(_) | LaunchArg::Unknown => None,
        }
    }

    /// By how much more lines than the bytes of a row need are read where rows of memory do not begin at lines: two in
    /// the place of one, and of sectors less.
    pub(super) fn split(&self, v: Option<ValueId>, row: f64) -> f64 {
        let Some((_, strides)) = self.argument(v) else { return 1.0 };
        let bytes = v.map_or(1.0, |v| self.pointee(v));
        let Some(pitch) = strides.iter().filter(|s| **s > 1).min() else { return 1.0 };
        let pitch = *pitch as f64 * bytes;
        let more = if pitch % LINE == 0.0 {
            0.0
        } else if pitch % SECTOR == 0.0 {
            0.5
        } else {
            1.0
        };
        1.0 + more * LINE / row.max(SECTOR)
    }

    /// Bytes that a tile has in a row of memory: whole rows that follow one another are one.
    fn contiguous(&self, v: Option<ValueId>, ty: &Type, row: f64) -> f64 {
        let Some((shape, strides)) = self.argument(v) else { return row.max(SECTOR) };
        let (Some(extents), Some(last)) = (ty.shape(), shape.last()) else { return row.max(SECTOR) };
        let whole = extents.last().is_some_and(|n| i64::from(*n) >= *last) && strides.last() == Some(&1);
        let bytes = v.map_or(1.0, |v| self.pointee(v));
        let rows =
            if whole && extents.len() > 1 { extents.iter().rev().nth(1).copied().unwrap_or(1) } else { 1 };
        ((*last as f64 * bytes).min(row) * f64::from(rows)).max(SECTOR)
    }

    /// Bytes of an element that a pointer or view leads to.
    fn pointee(&self, v: ValueId) -> f64 {
        match self.kernel.module.types.get(self.kernel.func().ty(v)).elem() {
            ElemType::Ptr { pointee, .. } => element_bytes(pointee) as f64,
            elem @ ElemType::Scalar(_) => element_bytes(elem) as f64,
        }
    }

    pub(super) fn memory(&self, op: MemoryOp, id: InstId) -> Work {
        let inst = &self.kernel.func().insts[id];
        let vector = inst.attrs.int("vector").and_then(|v| u32::try_from(v).ok()).unwrap_or(1);
        let result = inst.results.first().copied();
        match op {
            MemoryOp::Load | MemoryOp::ViewLoad => {
                result.map_or(Work::default(), |v| self.global(id, v, self.bytes(v), vector))
            }
            MemoryOp::ViewGather => result.map_or(Work::default(), |v| self.global(id, v, self.bytes(v), 1)),
            MemoryOp::Store => {
                let (Some(to), Some(v)) = (inst.operands.first(), inst.operands.get(1)) else {
                    return Work::default();
                };
                Work { latency: 0.0, ..self.global(id, *to, self.bytes(*v), vector) }
            }
            MemoryOp::ViewStore => {
                let stored = access_width::accessed(self.kernel, inst).or(inst.operands.last().copied());
                stored.map_or(Work::default(), |v| Work {
                    latency: 0.0,
                    ..self.global(id, v, self.bytes(v), vector)
                })
            }
            MemoryOp::ViewScatter => inst.operands.get(1).map_or(Work::default(), |v| Work {
                latency: 0.0,
                ..self.global(id, *v, self.bytes(inst.operands.last().copied().unwrap_or(*v)), 1)
            }),
            MemoryOp::PtrAdd => self.simple(inst, 1.0, 0.0, latency::ALU),
            MemoryOp::ViewInside => self.simple(inst, 1.0, 0.0, latency::ALU),
            MemoryOp::Prefetch
            | MemoryOp::View
            | MemoryOp::ViewShape
            | MemoryOp::ViewStride
            | MemoryOp::ViewPtr
            | MemoryOp::ViewSlice
            | MemoryOp::ViewPermute => Work::default(),
        }
    }
}
