//! How far apart in memory neighbours of an access are, for the arguments of a launch: [`Steps::of_access`].
//!
//! A difference of addresses, as symbolic differentiation has it: `x + i * 32 + j` rises by 32 along `i` and by 1 along
//! `j`. Positions that are loaded lie anywhere. An estimate: where neighbours wrap around (`% M`), it is that of the others.

use std::cell::Cell;

use tk_ops::{ControlOp, CreateOp, ElementwiseOp, MemoryOp, Op, ShapeOp};
use tk_tile::frequency::LaunchArg;
use tk_tile::{Def, Func, Inst, Type, ValueId, rewrite, walk};

use crate::analysis::axis::AxisInfo;
use crate::ir::attrs::permutation;
use crate::ir::kernel::Kernel;
use crate::ir::op::GpuOp;

/// Elements between neighbours that lie anywhere.
const ANYWHERE: f64 = 1e9;
/// Definitions that are looked at for an access.
const LOOKED_AT: u32 = 256;

/// A kernel, and the arguments of a launch.
pub(super) struct Steps<'a> {
    kernel: &'a Kernel,
    axis: &'a AxisInfo,
    args: &'a [LaunchArg],
    /// Definitions that may still be looked at.
    left: Cell<u32>,
}

impl<'a> Steps<'a> {
    /// Of a kernel.
    pub fn new(kernel: &'a Kernel, axis: &'a AxisInfo, args: &'a [LaunchArg]) -> Steps<'a> {
        Steps { kernel, axis, args, left: Cell::new(LOOKED_AT) }
    }

    /// The instruction that defines a value, and which of its results it is; `None` for a parameter, and once enough was looked at.
    fn definition(&self, v: ValueId) -> Option<(&'a Inst, usize)> {
        self.left.set(self.left.get().checked_sub(1)?);
        match self.func().values[v].def {
            Def::Inst(id, n) => Some((&self.func().insts[id], n as usize)),
            Def::Arg(..) => None,
        }
    }

    fn func(&self) -> &'a Func {
        self.kernel.func()
    }

    fn shape(&self, v: ValueId) -> Option<&'a [u32]> {
        self.kernel.module.types.get(self.func().ty(v)).shape()
    }

    /// Elements between neighbours of a load or store along a dimension of its tile, never negative; 1 where that is not known.
    pub fn of_access(&self, inst: &Inst, d: usize) -> f64 {
        let step = inst.operands.first().and_then(|place| self.of_place(inst, *place, d));
        step.map_or(1.0, f64::abs)
    }

    fn of_place(&self, inst: &Inst, place: ValueId, d: usize) -> Option<f64> {
        let types = &self.kernel.module.types;
        match types.get(self.func().ty(place)) {
            // What is known to follow one another needs no arguments.
            Type::Tile { .. } if self.axis.tile(place).dim(d).contiguity > 1 => Some(1.0),
            Type::Tile { .. } => self.step(place, d),
            Type::View { rank, .. } => {
                let is_box = matches!(inst.op, Op::Memory(MemoryOp::ViewLoad | MemoryOp::ViewStore))
                    || matches!(GpuOp::of(inst), Some(GpuOp::AsyncCopy(_)));
                // The rows of a view of which nothing is known are far apart.
                let guess = if d + 1 == *rank as usize { 1.0 } else { ANYWHERE };
                is_box.then(|| self.stride(place, d).unwrap_or(guess))
            }
        }
    }

    /// The stride of an axis of a view, in elements.
    fn stride(&self, view: ValueId, axis: usize) -> Option<f64> {
        if self.axis.view(view).and_then(|f| f.strides.get(axis)).is_some_and(|s| s.1) {
            return Some(1.0);
        }
        let Some((inst, _)) = self.definition(view) else {
            return match self.argument(view)? {
                LaunchArg::Tensor(_, strides) => strides.get(axis).map(|s| *s as f64),
                LaunchArg::Scalar(_) | LaunchArg::Unknown => None,
            };
        };
        let of = *inst.operands.first()?;
        if inst.op == Op::Memory(MemoryOp::ViewPermute) {
            self.stride(of, *permutation(inst).get(axis)?)
        } else if inst.op == Op::Memory(MemoryOp::ViewSlice) {
            let codes = inst.attrs.ints("axes")?.iter().enumerate();
            self.stride(of, codes.filter(|(_, code)| **code != 0).nth(axis)?.0)
        } else {
            None
        }
    }

    /// The argument that a parameter is.
    fn argument(&self, v: ValueId) -> Option<&'a LaunchArg> {
        let func = self.func();
        self.args.get(func.blocks[func.body].args.iter().position(|p| *p == v)?)
    }

    /// By how much pointers or positions rise along a dimension.
    fn step(&self, v: ValueId, d: usize) -> Option<f64> {
        let shape = self.shape(v)?;
        let extent = u64::from(*shape.get(d)?);
        let known = self.axis.tile(v).dim(d);
        if known.constancy >= extent {
            return Some(0.0);
        }
        let Some((inst, n)) = self.definition(v) else { return self.step(self.carried(v)?, d) };
        if inst.op == Op::Create(CreateOp::Arange) {
            return Some(1.0);
        }
        let first = *inst.operands.first()?;
        match inst.op {
            Op::Elementwise(op) => self.elementwise(op, inst, d),
            Op::Memory(MemoryOp::PtrAdd) => self.elementwise(ElementwiseOp::Add, inst, d),
            Op::Memory(_) | Op::Atomic(_) | Op::Random(_) => Some(ANYWHERE),
            Op::Shape(ShapeOp::Broadcast) => self.step(first, d),
            Op::Shape(ShapeOp::Permute) => self.step(first, *permutation(inst).get(d)?),
            Op::Shape(ShapeOp::Reshape) => {
                let wide = |shape: &[u32]| (0..shape.len()).filter(|d| shape.get(*d) != Some(&1)).collect();
                let [to, from]: [Vec<usize>; 2] = [wide(shape), wide(self.shape(first)?)];
                let at = to.iter().position(|axis| *axis == d).filter(|_| to.len() == from.len())?;
                self.step(first, *from.get(at)?)
            }
            Op::Target if matches!(GpuOp::of(inst), Some(GpuOp::Convert(_))) => self.step(first, d),
            Op::Control(ControlOp::If) => {
                let of = |block: &tk_tile::BlockId| rewrite::yielded(self.func(), *block).get(n).copied();
                inst.blocks.iter().filter_map(of).find_map(|v| self.step(v, d))
            }
            Op::Control(ControlOp::For) => self.step(*inst.operands.get(3 + n)?, d),
            _other => None,
        }
    }

    fn elementwise(&self, op: ElementwiseOp, inst: &Inst, d: usize) -> Option<f64> {
        use ElementwiseOp::*;
        let of = |n: usize| inst.operands.get(n).and_then(|v| self.step(*v, d));
        let number = |n: usize| inst.operands.get(n).and_then(|v| self.number(*v));
        match op {
            Cast | Bitcast => of(0),
            Add => Some(of(0)? + of(1)?),
            Sub => Some(of(0)? - of(1)?),
            Neg => Some(-of(0)?),
            Mul => match (of(0)?, of(1)?) {
                (0.0, 0.0) => Some(0.0),
                (a, 0.0) => Some(a * number(1)?),
                (0.0, b) => Some(b * number(0)?),
                _both_vary => None,
            },
            // Neighbours that wrap around are few.
            Rem | And | Maximum | Minimum => [of(0), of(1)].into_iter().flatten().find(|step| *step != 0.0),
            Div => Some(of(0)? / number(1)?),
            Shl => Some(of(0)? * number(1)?.exp2()),
            Shr => Some(of(0)? / number(1)?.exp2()),
            Select => of(1).filter(|step| *step != 0.0).or_else(|| of(2)),
            _other => None,
        }
    }

    /// What a value carried by a loop is before its first iteration.
    fn carried(&self, v: ValueId) -> Option<ValueId> {
        let func = self.func();
        let Def::Arg(block, n) = func.values[v].def else { return None };
        let owner = &func.insts[walk::owner(func, block)?];
        let at = match owner.op {
            // The counter comes first, and three numbers before what is carried.
            Op::Control(ControlOp::For) => n as usize + 2,
            Op::Control(ControlOp::While) => n as usize,
            _other => return None,
        };
        owner.operands.get(at).copied()
    }

    /// A number that is the same for all elements.
    fn number(&self, v: ValueId) -> Option<f64> {
        if let Some(value) = self.axis.tile(v).value {
            return Some(value as f64);
        }
        let Some((inst, _)) = self.definition(v) else {
            return match self.argument(v)? {
                LaunchArg::Scalar(s) => s.as_int().map(|n| n as f64),
                LaunchArg::Tensor(..) | LaunchArg::Unknown => None,
            };
        };
        let of = |n: usize| self.number(*inst.operands.get(n)?);
        match inst.op {
            Op::Create(CreateOp::Splat) | Op::Shape(ShapeOp::Broadcast | ShapeOp::Reshape) => of(0),
            Op::Elementwise(ElementwiseOp::Cast) => of(0),
            Op::Elementwise(ElementwiseOp::Add) => Some(of(0)? + of(1)?),
            Op::Elementwise(ElementwiseOp::Mul) => Some(of(0)? * of(1)?),
            Op::Memory(MemoryOp::ViewStride) => {
                let axis = usize::try_from(inst.attrs.int("axis")?).ok()?;
                self.stride(*inst.operands.first()?, axis)
            }
            Op::Memory(MemoryOp::ViewShape) => {
                let axis = usize::try_from(inst.attrs.int("axis")?).ok()?;
                match self.argument(*inst.operands.first()?)? {
                    LaunchArg::Tensor(shape, _) => shape.get(axis).map(|n| *n as f64),
                    LaunchArg::Scalar(_) | LaunchArg::Unknown => None,
                }
            }
            _other => None,
        }
    }
}
