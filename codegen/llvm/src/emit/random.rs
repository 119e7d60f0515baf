//! Emits random numbers: Philox-4x32-10 in integer instructions, as [`tk_ops::philox`] defines it.

use inkwell::values::{BasicValueEnum, IntValue};
use tk_ops::{DType, ElementwiseOp, RandomOp};
use tk_tile::Inst;

use super::{Emit, Res, Stop, bug};
use crate::math::{Approximations, LlvmMath, cos_of_turns};

/// The multipliers and the increments of the key, of `tk_ops::philox`.
const MULTIPLIERS: [u64; 2] = [0xd251_1f53, 0xcd9e_8d57];
const WEYL: [u64; 2] = [0x9e37_79b9, 0xbb67_ae85];
const ROUNDS: usize = 10;

impl<'c> Emit<'_, 'c> {
    pub(super) fn random(&mut self, inst: &Inst, op: RandomOp) -> Res<()> {
        let seed = self.scalar(self.operand(inst, 0)?)?.into_int_value();
        let offsets = self.registers(self.operand(inst, 1)?)?;
        let mut drawn: Vec<Vec<BasicValueEnum<'c>>> = vec![vec![]; inst.results.len()];
        for at in offsets {
            let words = self.words(seed, at.into_int_value())?;
            let [a, b, c, d] = words;
            let values: Vec<BasicValueEnum<'c>> = match op {
                RandomOp::Rand => vec![self.unit(a)?],
                RandomOp::Rand4 => vec![self.unit(a)?, self.unit(b)?, self.unit(c)?, self.unit(d)?],
                RandomOp::Randn => vec![self.normal(a, b)?],
                RandomOp::RandInt => vec![a.into()],
            };
            for (list, x) in drawn.iter_mut().zip(values) {
                list.push(x);
            }
        }
        for (r, regs) in inst.results.iter().zip(drawn) {
            self.define_regs(*r, regs)?;
        }
        Ok(())
    }

    /// The four words at an offset.
    fn words(&self, seed: IntValue<'c>, at: IntValue<'c>) -> Res<[IntValue<'c>; 4]> {
        let b = self.builder;
        let low = |x: IntValue<'c>| b.build_int_truncate(x, self.i32(), "");
        let high = |x: IntValue<'c>| low(b.build_right_shift(x, self.long(32), false, "")?);
        let times = |x: IntValue<'c>, by: u64| {
            b.build_int_mul(b.build_int_z_extend(x, self.i64(), "")?, self.i64().const_int(by, false), "")
        };
        let zero = self.int(0);
        let mut key = [low(seed)?, high(seed)?];
        let mut c = [at, zero, zero, zero];
        for _ in 0..ROUNDS {
            let (p, q) = (times(c[0], MULTIPLIERS[0])?, times(c[2], MULTIPLIERS[1])?);
            let first = b.build_xor(b.build_xor(high(q)?, c[1], "")?, key[0], "")?;
            let third = b.build_xor(b.build_xor(high(p)?, c[3], "")?, key[1], "")?;
            c = [first, low(q)?, third, low(p)?];
            for (k, by) in key.iter_mut().zip(WEYL) {
                *k = b.build_int_add(*k, self.i32().const_int(by, false), "")?;
            }
        }
        Ok(c)
    }

    /// A word as a number in [0, 1): 24 bits, exact in f32.
    fn unit(&self, word: IntValue<'c>) -> Res<BasicValueEnum<'c>> {
        let b = self.builder;
        let bits = b.build_right_shift(word, self.int(8), false, "")?;
        let x = b.build_unsigned_int_to_float(bits, self.context.f32_type(), "")?;
        Ok(b.build_float_mul(x, self.context.f32_type().const_float(1.0 / 16_777_216.0), "")?.into())
    }

    /// Box-Muller of two words in f32: `sqrt(-2 ln(u)) * cos(2 pi v)`, within the bound of the row.
    fn normal(&self, first: IntValue<'c>, second: IntValue<'c>) -> Res<BasicValueEnum<'c>> {
        let b = self.builder;
        let f32 = self.context.f32_type();
        let one = |op, x: BasicValueEnum<'c>| {
            self.with_scalars(|e| e.elementwise(op, &[Some(DType::F32)], Some(DType::F32), false, &[x]))
        };
        let u =
            b.build_float_add(self.unit(first)?.into_float_value(), f32.const_float(1.0 / 16_777_216.0), "")?;
        let log = one(ElementwiseOp::Log, u.into())?.into_float_value();
        let radius = one(ElementwiseOp::Sqrt, b.build_float_mul(log, f32.const_float(-2.0), "")?.into())?;
        let turns = self.unit(second)?;
        let mut math = LlvmMath::new(b, self.module, Approximations::None);
        let cos = cos_of_turns(&mut math, turns);
        math.finish().map_err(Stop::Bug)?;
        let (BasicValueEnum::FloatValue(radius), BasicValueEnum::FloatValue(cos)) = (radius, cos) else {
            return bug("a function of a float gave something else");
        };
        Ok(b.build_float_mul(radius, cos, "").map_err(Stop::from)?.into())
    }
}
