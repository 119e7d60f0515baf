//! What lies between neighbours of a tile of pointers, and which of them a mask excludes.
//!
//! Requires the facts of [`crate::analysis::axis`]. Guarantees that the distance of neighbours along an axis is the given one, in
//! every iteration, and that a mask that is a *prefix* along an axis holds for the first elements of each run and for no others.

use std::collections::BTreeSet;

use tk_ops::{ControlOp, CreateOp, ElementwiseOp, MemoryOp, Op, ShapeOp};
use tk_tile::{Def, Func, Module, ValueId, rewrite, walk};

use crate::analysis::axis::AxisInfo;

/// The distance of neighbours, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointerStep {
    /// They follow one another in runs of this length.
    One(u64),
    /// A scalar of the program, everywhere.
    Scalar(ValueId),
}

/// A kernel and the facts about it.
#[derive(Clone, Copy, Debug)]
pub struct Pointers<'a> {
    /// Its types.
    pub module: &'a Module,
    /// The kernel.
    pub func: &'a Func,
    /// Its facts.
    pub axis: &'a AxisInfo,
}

impl Pointers<'_> {
    /// The distance of neighbours along an axis of a tile of pointers with so many elements along it; `None` where it is not
    /// known to be the same for all.
    pub fn step(&self, v: ValueId, d: usize, extent: u32) -> Option<PointerStep> {
        match self.axis.tile(v).dim(d).contiguity {
            0 | 1 => self.scalar(v, (d, extent), &mut vec![])?.map(PointerStep::Scalar),
            run => Some(PointerStep::One(run)),
        }
    }

    /// The scalar by which pointers or offsets rise along an axis; `Some(None)` for those of an earlier iteration, which are moved
    /// as a whole, so that it is that of the first. `carried` are the values whose first iteration is being looked at.
    fn scalar(&self, v: ValueId, along: (usize, u32), carried: &mut Vec<ValueId>) -> Option<Option<ValueId>> {
        let (id, result) = match self.func.values[v].def {
            Def::Inst(id, n) => (id, n as usize),
            Def::Arg(..) if carried.contains(&v) => return Some(None),
            Def::Arg(block, n) => {
                let first = self.before_loop(v)?;
                carried.push(v);
                let next = *rewrite::yielded(self.func, block).get((n as usize).checked_sub(1)?)?;
                return self.same([first, next], along, carried);
            }
        };
        let inst = &self.func.insts[id];
        match (&inst.op, inst.operands.as_slice()) {
            (Op::Control(ControlOp::If), _) => {
                let arms = inst.blocks.iter().map(|b| rewrite::yielded(self.func, *b).get(result).copied());
                self.same(arms.collect::<Option<Vec<_>>>()?, along, carried)
            }
            (Op::Memory(MemoryOp::PtrAdd) | Op::Elementwise(ElementwiseOp::Add), [a, b]) => {
                if self.is_constant(*b, along) {
                    self.scalar(*a, along, carried)
                } else if self.is_constant(*a, along) {
                    self.scalar(*b, along, carried)
                } else {
                    None
                }
            }
            (Op::Elementwise(ElementwiseOp::Mul), [a, b]) => {
                let (d, extent) = along;
                let counts_up = |v: ValueId| self.axis.tile(v).dim(d).contiguity >= u64::from(extent);
                let (number, by) = if counts_up(*a) { (*a, *b) } else { (*b, *a) };
                counts_up(number).then(|| self.splatted(by)).flatten().map(Some)
            }
            (Op::Elementwise(ElementwiseOp::Cast) | Op::Shape(ShapeOp::Broadcast), [a]) => {
                self.scalar(*a, along, carried)
            }
            _other => None,
        }
    }

    /// Returns true if `%` of numbers of which nothing says that they are not negative is all that separates neighbours along an
    /// axis: below 0, the first of a run may be 0 and the others are negative.
    pub fn wraps_below_zero(&self, v: ValueId, d: usize) -> bool {
        self.wraps(v, d, &mut BTreeSet::new())
    }

    fn wraps(&self, v: ValueId, d: usize, seen: &mut BTreeSet<(ValueId, usize)>) -> bool {
        if !seen.insert((v, d)) {
            return false;
        }
        let Def::Inst(id, _) = self.func.values[v].def else {
            return self.before_loop(v).is_some_and(|first| self.wraps(first, d, seen));
        };
        let inst = &self.func.insts[id];
        match (&inst.op, inst.operands.as_slice()) {
            (Op::Elementwise(ElementwiseOp::Rem), [a, b]) => {
                let [number, divisor] = [a, b].map(|v| self.axis.tile(*v));
                !number.non_negative && number.dim(d).contiguity > 1 && divisor.dim(d).divisibility > 1
            }
            (Op::Memory(MemoryOp::PtrAdd) | Op::Elementwise(_) | Op::Shape(ShapeOp::Broadcast), operands) => {
                operands.iter().any(|v| self.wraps(*v, d, seen))
            }
            (Op::Shape(ShapeOp::Reshape), [a]) => {
                self.before_reshape(v, *a, d).is_some_and(|d| self.wraps(*a, d, seen))
            }
            _other => false,
        }
    }

    /// What a value that a loop carries is before its first iteration.
    fn before_loop(&self, v: ValueId) -> Option<ValueId> {
        let Def::Arg(block, n) = self.func.values[v].def else { return None };
        let owner = &self.func.insts[walk::owner(self.func, block)?];
        // The counter comes first, and three numbers before what is carried.
        let at = 3 + (n as usize).checked_sub(1)?;
        owner.operands.get(at).copied().filter(|_| owner.op == Op::Control(ControlOp::For))
    }

    /// The scalar of several values, where it is the same.
    fn same(
        &self,
        values: impl IntoIterator<Item = ValueId>,
        along: (usize, u32),
        carried: &mut Vec<ValueId>,
    ) -> Option<Option<ValueId>> {
        let mut found = None;
        for v in values {
            if let Some(by) = self.scalar(v, along, carried)? {
                if found.is_some_and(|other| other != by) {
                    return None;
                }
                found = Some(by);
            }
        }
        Some(found)
    }

    fn is_constant(&self, v: ValueId, (d, extent): (usize, u32)) -> bool {
        self.axis.tile(v).dim(d).constancy >= u64::from(extent)
    }

    /// The scalar of which all elements of a tile are.
    fn splatted(&self, v: ValueId) -> Option<ValueId> {
        let Def::Inst(id, _) = self.func.values[v].def else { return None };
        let inst = &self.func.insts[id];
        let of = *inst.operands.first()?;
        match inst.op {
            Op::Create(CreateOp::Splat) => Some(of),
            Op::Shape(_) | Op::Elementwise(ElementwiseOp::Cast) => self.splatted(of),
            _other => None,
        }
    }

    /// Returns true if a mask excludes nothing but the last elements of each run of `length` neighbours along an axis.
    pub fn is_prefix(&self, mask: ValueId, d: usize, length: u64) -> bool {
        let of = |v: ValueId| self.axis.tile(v).dim(d);
        if of(mask).constancy >= length {
            return true;
        }
        let Def::Inst(id, _) = self.func.values[mask].def else { return false };
        let inst = &self.func.insts[id];
        match (&inst.op, inst.operands.as_slice()) {
            (Op::Elementwise(ElementwiseOp::And), [a, b]) => {
                self.is_prefix(*a, d, length) && self.is_prefix(*b, d, length)
            }
            (Op::Elementwise(ElementwiseOp::Lt | ElementwiseOp::Le), [number, end])
            | (Op::Elementwise(ElementwiseOp::Gt | ElementwiseOp::Ge), [end, number]) => {
                of(*number).contiguity >= length && of(*end).constancy >= length
            }
            (Op::Shape(ShapeOp::Broadcast), [a]) => self.is_prefix(*a, d, length),
            (Op::Shape(ShapeOp::Reshape), [a]) => {
                self.before_reshape(mask, *a, d).is_some_and(|d| self.is_prefix(*a, d, length))
            }
            _other => false,
        }
    }

    /// The axis of an operand that is this axis of its reshaped form, where only extents of 1 come or go.
    fn before_reshape(&self, v: ValueId, of: ValueId, d: usize) -> Option<usize> {
        let shape = |v: ValueId| self.module.types.get(self.func.ty(v)).shape();
        let wide = |shape: &[u32]| (0..shape.len()).filter(|d| shape.get(*d) != Some(&1)).collect::<Vec<_>>();
        let (to, from) = (shape(v)?, shape(of)?);
        let [after, before] = [wide(to), wide(from)];
        let alike =
            after.len() == before.len() && after.iter().zip(&before).all(|(a, b)| to.get(*a) == from.get(*b));
        before.get(after.iter().position(|axis| *axis == d).filter(|_| alike)?).copied()
    }
}
