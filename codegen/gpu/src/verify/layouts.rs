//! Verifies L03 to L11: the layouts of values, and how those of an instruction agree.
//!
//! Requires L01. Guarantees that every layout that emission needs exists and is the required one.

use tk_ops::{ControlOp, DotOp, Op, ReduceOp, ScanOp, ShapeOp};
use tk_tile::flow::{Flow, flow};
use tk_tile::rewrite::yielded;
use tk_tile::verify::is_machine;
use tk_tile::{BlockId, Inst, Type, ValueId};

use super::fault::GpuInvariant::{L03, L04, L05, L06, L07, L08, L09, L10, L11};
use super::fault::{Check, Fault, GpuVerifyError, at, each, ensure, fault, whole};
use crate::ir::attrs::{axis_of, is_unit, permutation, units};
use crate::ir::kernel::{Kernel, LayoutId};
use crate::ir::op::GpuOp;
use crate::layout::linear::InDim;
use crate::layout::{Layout, cut};

/// Checks all layouts and all instructions.
pub(super) fn check(kernel: &Kernel) -> Result<(), GpuVerifyError> {
    let func = kernel.func();
    let cx = Cx { kernel };
    let params = func.blocks.get(func.body).map_or(&[][..], |b| &b.args);
    params.iter().try_for_each(|v| cx.value(*v)).map_err(|(i, m)| whole(i, format!("a parameter: {m}")))?;
    each(kernel, |inst| {
        let args = inst.blocks.iter().filter_map(|b| func.blocks.get(*b)).flat_map(|b| &b.args);
        inst.results.iter().chain(args).try_for_each(|v| cx.value(*v))
    })?;
    let insts = tk_tile::walk::insts(func);
    insts.into_iter().filter_map(|id| Some((id, func.insts.get(id)?))).try_for_each(|(id, inst)| {
        let own = if is_machine(inst) { cx.machine(inst) } else { cx.inst(inst) };
        own.and_then(|()| cx.blocks(inst)).map_err(|f| at(inst, id, f))
    })
}

/// The kernel being verified.
#[derive(Clone, Copy)]
pub(super) struct Cx<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
}

impl<'a> Cx<'a> {
    pub fn ty(&self, v: ValueId) -> &'a Type {
        self.kernel.module.types.get(self.kernel.func().ty(v))
    }

    /// The extents of a tile; empty for a scalar or a view.
    pub fn shape(&self, v: ValueId) -> &'a [u32] {
        self.ty(v).shape().unwrap_or(&[])
    }

    pub fn id(&self, v: ValueId) -> Option<LayoutId> {
        self.kernel.value_layouts.get(tk_tile::Id::index(v)).copied().flatten()
    }

    /// The layout of a tile; `None` for scalars and views, once L03 holds.
    pub fn layout(&self, v: ValueId) -> Option<&'a Layout> {
        self.kernel.layouts.find(self.id(v)?)
    }

    /// L03 to L06.
    fn value(&self, v: ValueId) -> Check {
        let (shape, id) = (self.shape(v), self.id(v));
        let layout = match (shape.is_empty(), id) {
            (true, None) => return Ok(()),
            (true, Some(l)) => return fault(L03, format!("{v} of type `{}` has the layout {l}", self.ty(v))),
            (false, None) => return fault(L03, format!("{v} of type `{}` has no layout", self.ty(v))),
            (false, Some(l)) => match self.kernel.layouts.find(l) {
                Some(layout) => layout,
                None => return fault(L03, format!("the layout {l} does not exist")),
            },
        };
        let cuts: Vec<_> = shape.iter().map(|n| cut(*n)).collect();
        let bits: Vec<u32> = cuts.iter().map(|c| c.log2).collect();
        let repeats: Vec<u32> = cuts.iter().map(|c| c.repeats).collect();
        let atom = layout.atom();
        ensure(atom.out_bits() == bits && layout.repeats() == repeats, L04, || {
            format!("{v} of type `{}` has the layout of another shape", self.ty(v))
        })?;
        let threads = self.kernel.options.threads();
        let found = [InDim::Lane, InDim::Warp, InDim::Block].map(|d| atom.bits(d) as u32);
        ensure(found == [threads.lane_bits, threads.warp_bits, 0], L05, || {
            let [lanes, warps, blocks] = found.map(|b| 1u64 << b);
            format!("the layout of {v} has {lanes} lanes, {warps} warps and {blocks} blocks")
        })?;
        ensure(atom.is_surjective(), L06, || format!("the layout of {v} leaves elements out"))
    }

    /// L07: the tiles among these have one layout.
    fn one(&self, values: impl IntoIterator<Item = ValueId>) -> Check {
        let mut tiles = values.into_iter().filter(|v| !self.shape(*v).is_empty());
        let Some(first) = tiles.next() else { return Ok(()) };
        let other = tiles.find(|v| self.id(*v) != self.id(first));
        ensure(other.is_none(), L07, || "its tiles have several layouts".into())
    }

    /// The same layout, or none; otherwise a violation of an invariant about `what`.
    fn agree(&self, a: ValueId, b: ValueId, what: &str) -> Check {
        ensure(self.id(a) == self.id(b), L10, || format!("{what} changes its layout"))
    }

    fn inst(&self, inst: &Inst) -> Check {
        let all = || inst.operands.iter().chain(&inst.results).copied();
        match inst.op {
            Op::Elementwise(_) | Op::Random(_) | Op::Atomic(_) | Op::Memory(_) => self.one(all()),
            Op::Control(op) => match op {
                ControlOp::Map | ControlOp::MultipleOf | ControlOp::MaxContiguous | ControlOp::InlineAsm => {
                    self.one(all())
                }
                ControlOp::ProgramId
                | ControlOp::NumPrograms
                | ControlOp::For
                | ControlOp::While
                | ControlOp::If
                | ControlOp::Yield
                | ControlOp::Condition
                | ControlOp::Return
                | ControlOp::Call
                | ControlOp::Assume
                | ControlOp::Assert
                | ControlOp::Print
                | ControlOp::GridBarrier
                | ControlOp::GlobalTimer
                | ControlOp::SmId => Ok(()),
            },
            Op::Reduce(op) => self.reduce(inst, op),
            Op::Scan(op) => self.scan(inst, op),
            Op::Dot(DotOp::Dot | DotOp::DotScaled) => {
                self.one(inst.operands.last().into_iter().chain(&inst.results).copied())
            }
            Op::Shape(op) => self.rearranged(inst, op),
            Op::Create(_) | Op::Host(_) | Op::Target => Ok(()),
        }
    }

    /// L08: no other warp owns a part of the dimension.
    fn in_warp(&self, x: ValueId, axis: usize) -> Check {
        let warps = self.layout(x).map_or(1, |l| l.partial(axis).1.len() as u32);
        ensure(warps == 1, L08, || format!("{warps} warps share the dimension"))
    }

    fn reduce(&self, inst: &Inst, op: ReduceOp) -> Check {
        let axis = axis_of(inst);
        let Some(x) = inst.operands.first() else { return Ok(()) };
        self.one(inst.operands.iter().copied())?;
        if op == ReduceOp::Custom && inst.attrs.flag("ordered") {
            self.in_warp(*x, axis)?;
        }
        inst.results.iter().try_for_each(|r| self.folded(*x, *r, axis))
    }

    /// L08 of a result.
    pub fn folded(&self, x: ValueId, r: ValueId, axis: usize) -> Check {
        let kept = self.layout(x).map(|l| l.without(axis));
        let found = self.layout(r);
        ensure(self.shape(r).is_empty() || found == kept.as_ref(), L08, || {
            format!("{r} does not have the layout of {x} without dimension {axis}")
        })
    }

    fn scan(&self, inst: &Inst, op: ScanOp) -> Check {
        let Some(x) = inst.operands.first() else { return Ok(()) };
        match op {
            ScanOp::CumSum | ScanOp::CumProd | ScanOp::Custom => {
                self.one(inst.operands.iter().chain(&inst.results).copied())?;
                self.in_warp(*x, axis_of(inst))
            }
            ScanOp::Gather => self.one(inst.operands.iter().skip(1).chain(&inst.results).copied()),
            ScanOp::Histogram => self.one(inst.operands.iter().copied()),
            ScanOp::Sort | ScanOp::TopK => Ok(()),
        }
    }

    /// L09.
    fn rearranged(&self, inst: &Inst, op: ShapeOp) -> Check {
        let (Some(x), Some(r)) = (inst.operands.first(), inst.results.first()) else { return Ok(()) };
        let (from, to) = (self.shape(*x), self.shape(*r));
        let both = || {
            let everywhere = Layout::blocked(&[2], &[0], 2, self.kernel.options.threads());
            Some(everywhere)
        };
        let (wanted, found) = match (op, self.layout(*x), self.layout(*r)) {
            (ShapeOp::Broadcast, Some(a), Some(b)) => {
                let differs = (0..to.len()).filter(|d| from.get(*d) != to.get(*d));
                (Some(differs.fold(b.clone(), |l, d| l.collapsed(d))), Some(a))
            }
            (ShapeOp::Permute, Some(a), b) => (Some(a.permuted(&permutation(inst))), b),
            (ShapeOp::Reshape, Some(a), Some(b)) if is_unit(from, to) => (Some(units(a, from, to)), Some(b)),
            (ShapeOp::Join, None, b) => (both(), b),
            (ShapeOp::Split, a, None) => (both(), a),
            (ShapeOp::Join | ShapeOp::Split, Some(_), _) | (ShapeOp::Split, None, Some(_)) => return Ok(()),
            (ShapeOp::Broadcast | ShapeOp::Permute | ShapeOp::Reshape, _, _) => return Ok(()),
            (ShapeOp::Flip | ShapeOp::Slice | ShapeOp::Cat | ShapeOp::Interleave, _, _) => return Ok(()),
        };
        ensure(wanted.as_ref() == found, L09, || "elements would have to move".into())
    }

    /// L11 here; the stage checks the others.
    fn machine(&self, inst: &Inst) -> Check {
        if !matches!(GpuOp::of(inst), Some(GpuOp::Convert(_))) {
            return Ok(());
        }
        let ([x], [r]) = (inst.operands.as_slice(), inst.results.as_slice()) else {
            return fault(L11, "it has one operand and one result");
        };
        ensure(self.ty(*x) == self.ty(*r), L11, || "the types differ".into())?;
        ensure(inst.blocks.is_empty(), L11, || "it has no blocks".into())?;
        ensure(!self.shape(*x).is_empty(), L11, || "a scalar has no layout".into())
    }

    /// L10.
    fn blocks(&self, inst: &Inst) -> Check {
        let func = self.kernel.func();
        let args = |b: &BlockId| func.blocks.get(*b).map_or(&[][..], |b| &b.args);
        let ends = |b: &BlockId| yielded(func, *b);
        match (flow(inst.op), inst.blocks.as_slice()) {
            (Flow::For, [body]) => {
                let (Some(init), Some(carried)) = (inst.operands.get(3..), args(body).get(1..)) else {
                    return Ok(());
                };
                self.pairs(init, carried, "what enters the loop")?;
                self.pairs(ends(body), carried, "what an iteration yields")?;
                self.pairs(carried, &inst.results, "what leaves the loop")
            }
            (Flow::While, [decides, body]) => {
                self.pairs(&inst.operands, args(decides), "what enters the loop")?;
                self.pairs(ends(body), args(decides), "what an iteration yields")?;
                let forwarded = ends(decides).get(1..).unwrap_or(&[]);
                self.pairs(forwarded, args(body), "what is forwarded")?;
                self.pairs(forwarded, &inst.results, "what leaves the loop")
            }
            (Flow::If, arms) => {
                arms.iter().try_for_each(|b| self.pairs(ends(b), &inst.results, "what an arm yields"))
            }
            (Flow::Plain | Flow::Elements | Flow::Expect | Flow::For | Flow::While, _) => Ok(()),
        }
    }

    fn pairs(&self, a: &[ValueId], b: &[ValueId], what: &str) -> Result<(), Fault> {
        a.iter().zip(b).try_for_each(|(a, b)| self.agree(*a, *b, what))
    }
}
