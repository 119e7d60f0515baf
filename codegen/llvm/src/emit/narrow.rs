//! Keeps conversions of what a loop does not change in the loop.
//!
//! Two halves share a register, and their f32 values need one each. LLVM moves conversions of tiles of which a loop changes
//! nothing, such as the weights of rows, in front of the loop, where twice the registers hold them. So it must not know that
//! their words are the same in each iteration.

use inkwell::values::BasicValueEnum;
use tk_ops::{DType, ElementwiseOp, Op};
use tk_tile::{BlockId, ValueId, walk};

use super::{Emit, Res};

/// Elements of a lane from which on a tile is kept narrow: fewer cost few registers, and conversions take instructions.
const LEAST: usize = 16;

impl Emit<'_, '_> {
    /// Emits the body of a loop, which does not know that narrow tiles that it converts are the same in each iteration.
    pub(super) fn loop_body(&mut self, body: BlockId) -> Res<()> {
        let mut outside = vec![];
        for v in self.widened(body) {
            let Some(dtype) = self.dtype(v).filter(|_| !self.late.contains_key(&v)) else { continue };
            let elements = self.registers(v)?;
            let Some(first) = elements.first().map(|x| x.get_type()) else { continue };
            let words =
                self.packed_words(dtype, 1, &elements)?.into_iter().map(BasicValueEnum::into_int_value);
            let hidden = words.map(|w| Ok(self.target.opaque_value(self, w)?.into()));
            let hidden = hidden.collect::<Res<Vec<_>>>()?;
            outside.push((v, self.value(v)?.clone()));
            let elements = self.unpacked_words(first, 2, &hidden)?;
            self.define_regs(v, elements)?;
        }
        self.block(body)?;
        outside.into_iter().for_each(|(v, x)| self.define(v, x));
        Ok(())
    }

    /// The tiles of 16-bit floats from outside of a block that it converts to f32.
    fn widened(&self, body: BlockId) -> Vec<ValueId> {
        let func = self.func();
        let inside = walk::insts_in(func, body);
        let mut out: Vec<ValueId> = vec![];
        for inst in inside.iter().map(|i| &func.insts[*i]) {
            let (Op::Elementwise(ElementwiseOp::Cast), [v], [r]) =
                (inst.op, inst.operands.as_slice(), inst.results.as_slice())
            else {
                continue;
            };
            let narrow = matches!(self.dtype(*v), Some(DType::F16 | DType::BF16));
            let is_known = self.value(*v).is_ok();
            let many = self.count(*v).is_ok_and(|n| n >= LEAST && n % 2 == 0);
            if narrow && is_known && many && self.dtype(*r) == Some(DType::F32) && !out.contains(v) {
                out.push(*v);
            }
        }
        out
    }
}
