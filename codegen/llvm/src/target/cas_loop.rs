//! Emits atomic operations without an instruction on a target, as a CAS loop.
//!
//! Requires addresses that are multiples of the size of an element. Guarantees the interpreter's result in memory.

use inkwell::IntPredicate;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValueEnum, IntValue};
use tk_ops::DType;

use super::Atomic;
use crate::emit::value::word;
use crate::emit::{Emit, Res};

/// The primitives that a target provides.
pub trait Swaps<'c> {
    /// The bits of the word that is compared and swapped for an element of `element` bits.
    fn swapped_bits(&self, element: u32) -> u32;

    /// The current word, read without order.
    fn seen(
        &self,
        e: &Emit<'_, 'c>,
        a: &Atomic<'_, 'c>,
        address: IntValue<'c>,
        bits: u32,
    ) -> Res<IntValue<'c>>;

    /// Stores the new word if the old one is unchanged, with the order of the operation; returns the previous word.
    fn swap(
        &self,
        e: &Emit<'_, 'c>,
        a: &Atomic<'_, 'c>,
        address: IntValue<'c>,
        words: [IntValue<'c>; 2],
    ) -> Res<IntValue<'c>>;

    /// Reads the word that contains the element, and swaps in the result of the operation until no other thread has
    /// intervened. The word of a smaller element is the 32-bit one around it, whose other bits are unchanged. A swap
    /// that changes nothing is done as well, for its order.
    fn swapped(&self, e: &Emit<'_, 'c>, a: &Atomic<'_, 'c>) -> Res<BasicValueEnum<'c>> {
        let b = e.builder;
        let own = bits(a.dtype);
        let bits = self.swapped_bits(own);
        let ty = word(e.context, bits);
        let before = e.here()?;
        let (inside, again, after) = (e.new_block("atomic"), e.new_block("again"), e.new_block("all"));
        match a.predicate {
            Some(p) => b.build_conditional_branch(p, inside, after)?,
            None => b.build_unconditional_branch(inside)?,
        };
        b.position_at_end(inside);
        let place = if own == bits { None } else { Some(around(e, a.address)?) };
        let address = place.map_or(a.address, |(address, _)| address);
        let first = self.seen(e, a, address, bits)?;
        b.build_unconditional_branch(again)?;
        b.position_at_end(again);
        let seen = b.build_phi(ty, "")?;
        let word = seen.as_basic_value().into_int_value();
        let low = match place {
            Some((_, shift)) => b.build_right_shift(word, shift, false, "")?,
            None => word,
        };
        let old = element(e, a.dtype, low)?;
        let new = e.with_scalars(|s| s.atomic(a.op, a.dtype, old, a.value, a.compare))?;
        let new = code(e, new, bits)?;
        let new = match place {
            Some((_, shift)) => {
                let mask = b.build_left_shift(ty.const_int((1 << own) - 1, false), shift, "")?;
                let others = b.build_and(word, b.build_not(mask, "")?, "")?;
                b.build_or(others, b.build_left_shift(new, shift, "")?, "")?
            }
            None => new,
        };
        let found = self.swap(e, a, address, [word, new])?;
        let same = b.build_int_compare(IntPredicate::EQ, found, word, "")?;
        let end = e.here()?;
        seen.add_incoming(&[(&first, inside), (&found, end)]);
        b.build_conditional_branch(same, after, again)?;
        b.position_at_end(after);
        let given = b.build_phi(old.get_type(), "")?;
        given.add_incoming(&[(&old, end)]);
        if a.predicate.is_some() {
            given.add_incoming(&[(&old.get_type().const_zero(), before)]);
        }
        Ok(given.as_basic_value())
    }
}

/// Bits of an element in memory.
pub fn bits(d: DType) -> u32 {
    8 * d.bytes() as u32
}

/// The bits of an element as an integer of this many bits, zeros above.
pub fn code<'c>(e: &Emit<'_, 'c>, x: BasicValueEnum<'c>, bits: u32) -> Res<IntValue<'c>> {
    let x = match x {
        BasicValueEnum::FloatValue(f) => {
            let own = word(e.context, f.get_type().get_bit_width());
            e.builder.build_bit_cast(f, own, "")?.into_int_value()
        }
        other => other.into_int_value(),
    };
    Ok(e.builder.build_int_z_extend_or_bit_cast(x, word(e.context, bits), "")?)
}

/// The element whose bits are the low ones of an integer.
pub fn element<'c>(e: &Emit<'_, 'c>, d: DType, code: IntValue<'c>) -> Res<BasicValueEnum<'c>> {
    let ty = e.zero(Some(d)).get_type();
    let bits = match ty {
        BasicTypeEnum::FloatType(f) => f.get_bit_width(),
        other => other.into_int_type().get_bit_width(),
    };
    let code = e.builder.build_int_truncate_or_bit_cast(code, word(e.context, bits), "")?;
    if ty.is_int_type() { Ok(code.into()) } else { Ok(e.builder.build_bit_cast(code, ty, "")?) }
}

/// The 32-bit word around a smaller element: its address, and the shift of the element in it.
fn around<'c>(e: &Emit<'_, 'c>, address: IntValue<'c>) -> Res<(IntValue<'c>, IntValue<'c>)> {
    let b = e.builder;
    let inside = b.build_and(address, e.long(3), "")?;
    let shift = b.build_left_shift(b.build_int_truncate(inside, e.i32(), "")?, e.int(3), "")?;
    Ok((b.build_and(address, e.long(!3), "")?, shift))
}
