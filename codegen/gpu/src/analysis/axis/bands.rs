//! Programs in grouped order: what is left of a grid of tiles behind the first row of a band is not negative.
//!
//! ```text
//! v4 = program_id v0, v1 {axis = 0}       a program of v0 * v1 tiles, v1 to a row
//! v6 = div v4, (mul 8, v1)                its band of 8 rows
//! v8 = sub v0, (mul v6, 8)             => not negative
//! ```
//! With `t < p q` and `c > 0`, `floor(t / (c q)) c q <= t < p q`, so `floor(t / (c q)) c < p`, as far as `c q` does not wrap.

use tk_ops::{ControlOp, CreateOp, ElementwiseOp, MemoryOp, Op};
use tk_tile::{Def, ValueId, rewrite, walk};

use super::flow::Analysis;

/// Instructions that are followed to tell whether two numbers are the same.
const DEPTH: u32 = 6;

impl Analysis<'_> {
    /// Returns true if the first row of a band is subtracted from the number of rows of tiles.
    pub fn is_behind_a_band(&self, rows: ValueId, first: ValueId) -> bool {
        let Some([a, b]) = self.operands(first, ElementwiseOp::Mul) else { return false };
        [(a, b), (b, a)].into_iter().any(|(band, height)| self.begins_band(rows, band, height))
    }

    fn begins_band(&self, rows: ValueId, band: ValueId, height: ValueId) -> bool {
        let Some(height_is) = rewrite::constant(self.func, height).and_then(|c| c.as_int()) else {
            return false;
        };
        let Some([tile, tiles_of_band]) = self.operands(band, ElementwiseOp::Div) else { return false };
        let Some([a, b]) = self.operands(tiles_of_band, ElementwiseOp::Mul) else { return false };
        let width = match (self.same(a, height, DEPTH), self.same(b, height, DEPTH)) {
            (true, _) => b,
            (false, true) => a,
            (false, false) => return false,
        };
        let Some([p, q]) = self.below(tile) else { return false };
        let same = |a, b| self.same(a, b, DEPTH);
        let is_grid = same(rows, p) && same(width, q) || same(rows, q) && same(width, p);
        height_is > 0 && is_grid && self.is_small(width, height_is)
    }

    /// The factors of the number of tiles, of which this is one: a program, or the counter of a loop over tiles.
    fn below(&self, tile: ValueId) -> Option<[ValueId; 2]> {
        match self.func.values[tile].def {
            Def::Inst(id, _) => {
                let inst = &self.func.insts[id];
                let is_id = inst.op == Op::Control(ControlOp::ProgramId);
                <[ValueId; 2]>::try_from(inst.operands.as_slice()).ok().filter(|_| is_id)
            }
            Def::Arg(block, 0) => {
                let owner = &self.func.insts[walk::owner(self.func, block)?];
                let is_loop = owner.op == Op::Control(ControlOp::For);
                let [lo, hi, step] = owner.operands.first_chunk().filter(|_| is_loop)?;
                let counts_up = [*lo, *step].into_iter().all(|v| self.info.tile(v).non_negative);
                self.operands(*hi, ElementwiseOp::Mul).filter(|_| counts_up)
            }
            Def::Arg(..) => None,
        }
    }

    /// Returns true if so many times a number of tiles do not wrap: it is of 64 bits, or a quotient by twice as much.
    fn is_small(&self, tiles: ValueId, times: i128) -> bool {
        let divisor = self.operands(tiles, ElementwiseOp::CeilDiv).map(|[_, by]| by);
        let by = divisor.and_then(|by| rewrite::constant(self.func, by)).and_then(|c| c.as_int());
        self.ty(tiles).dtype().is_some_and(|d| d.bits() > 32) || by.is_some_and(|by| by >= 2 * times)
    }

    fn operands(&self, v: ValueId, op: ElementwiseOp) -> Option<[ValueId; 2]> {
        let inst = rewrite::definition(self.func, v).filter(|inst| inst.op == Op::Elementwise(op))?;
        inst.operands.as_slice().try_into().ok()
    }

    /// Returns true if two numbers are computed in the same way.
    fn same(&self, a: ValueId, b: ValueId, depth: u32) -> bool {
        if a == b {
            return true;
        }
        let (Some(depth), Some(x), Some(y)) =
            (depth.checked_sub(1), rewrite::definition(self.func, a), rewrite::definition(self.func, b))
        else {
            return false;
        };
        let is_pure = matches!(
            x.op,
            Op::Elementwise(_) | Op::Create(CreateOp::Const) | Op::Memory(MemoryOp::ViewShape)
        );
        is_pure
            && x.op == y.op
            && x.attrs == y.attrs
            && self.ty(a) == self.ty(b)
            && x.operands.len() == y.operands.len()
            && x.operands.iter().zip(&y.operands).all(|(a, b)| self.same(*a, *b, depth))
    }
}
