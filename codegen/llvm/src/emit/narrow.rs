//! Keeps halves as they are where their f32 values would be kept.
//!
//! Two halves share a register, and their f32 values need one each. LLVM and `ptxas` move conversions of tiles of which a loop changes
//! nothing, such as the weights of rows, in front of the loop, where twice the registers hold them; and they merge conversions before
//! and behind a barrier. So they must not know that the words are the same.

use inkwell::values::{BasicValueEnum, IntValue};
use tk_ops::{DType, ElementwiseOp, Op};
use tk_tile::{BlockId, Inst, ValueId, walk};

use super::value::{bits, word};
use super::{Emit, Res, bug};

/// Elements of a lane from which on a tile is kept narrow: fewer cost few registers, and conversions take instructions.
const LEAST: usize = 16;

impl<'c> Emit<'_, 'c> {
    /// Emits the body of a loop, which does not know that narrow tiles that it converts are the same in each iteration. Where `ptxas`
    /// moves conversions in front of it all the same, it has registers for them: words that differ in each iteration need more.
    pub(super) fn loop_body(&mut self, body: BlockId) -> Res<()> {
        let mut outside = vec![];
        for v in self.widened(body) {
            let Some(dtype) = self.dtype(v).filter(|_| !self.late.contains_key(&v)) else { continue };
            let elements = self.hidden(v, dtype, |w| self.target.opaque_value(self, w))?;
            outside.push((v, self.value(v)?.clone()));
            self.define_regs(v, elements)?;
        }
        self.block(body)?;
        outside.into_iter().for_each(|(v, x)| self.define(v, x));
        Ok(())
    }

    /// Emits a tile of halves that is not known to be the first operand, nor known before the second one.
    pub(super) fn optimization_barrier(&mut self, inst: &Inst) -> Res<()> {
        let (v, r) = (self.operand(inst, 0)?, self.result(inst)?);
        let after = self.registers(self.operand(inst, 1)?)?;
        let (Some(dtype), Some(after)) = (self.dtype(v), after.first()) else {
            return bug("a tile of nothing");
        };
        let after = self.word_of(*after)?;
        let elements = self.hidden(v, dtype, |w| self.target.opaque_word(self, w, after))?;
        self.define_regs(r, elements)
    }

    /// The elements of a tile of halves, each word of two of which is hidden.
    fn hidden(
        &self,
        v: ValueId,
        dtype: DType,
        hide: impl Fn(IntValue<'c>) -> Res<IntValue<'c>>,
    ) -> Res<Vec<BasicValueEnum<'c>>> {
        let elements = self.registers(v)?;
        let Some(first) = elements.first().map(|x| x.get_type()) else { return Ok(vec![]) };
        let words = self.packed_words(dtype, 1, &elements)?.into_iter().map(BasicValueEnum::into_int_value);
        let hidden = words.map(|w| Ok(hide(w)?.into())).collect::<Res<Vec<_>>>()?;
        self.unpacked_words(first, 2, &hidden)
    }

    /// The bits of a number, or the last 32 of them.
    fn word_of(&self, x: BasicValueEnum<'c>) -> Res<IntValue<'c>> {
        let (b, width) = (self.builder, bits(x.get_type()));
        let x = b.build_bit_cast(x, word(self.context, width), "")?.into_int_value();
        Ok(match width {
            0..=32 => b.build_int_z_extend_or_bit_cast(x, self.i32(), "")?,
            _ => b.build_int_truncate(x, self.i32(), "")?,
        })
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
