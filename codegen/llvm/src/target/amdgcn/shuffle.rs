//! Emits reads of registers of other lanes of a wave: the cheapest instruction for each pattern.
//!
//! An exchange within sixteen lanes is one or two operands of ordinary instructions (DPP), one within 32 goes through
//! the crossbar of shared memory with the pattern in the instruction (`ds_swizzle`; on RDNA `v_permlanex16`, which has no
//! latency of shared memory), any other through it with a lane number for each lane (`ds_bpermute`). Codes of DPP are those
//! of the manuals of CDNA3 and RDNA3, "DPP".
//!
//! All of these read lanes that must be active, so they must be convergent in LLVM's IR and in its machine code, as
//! `v_permlanex16_b32` was not before LLVM 21 (llvm-project #142962).

use inkwell::IntPredicate;
use inkwell::values::IntValue;

use super::Amdgcn;
use crate::emit::{Emit, Res};
use crate::target::Lane;

/// DPP: lane `i` of four reads lane `pattern[i]` of them.
const fn quad(pattern: [u32; 4]) -> u32 {
    pattern[0] | pattern[1] << 2 | pattern[2] << 4 | pattern[3] << 6
}

/// DPP: eight lanes in reverse order.
const HALF_MIRROR: u32 = 0x141;
/// DPP: sixteen lanes in reverse order.
const MIRROR: u32 = 0x140;
/// DPP: sixteen lanes are rotated by eight.
const ROTATE_8: u32 = 0x128;
/// DPP of RDNA: lane `i` of sixteen reads lane `i ^ n`.
const XOR: u32 = 0x160;

/// The operands of DPP, one after the other, that exchange lanes whose numbers differ in these bits; `None` if DPP
/// cannot do it.
fn exchange(bits: u32, has_rdna: bool) -> Option<Vec<u32>> {
    let inside = |bits: u32| quad([0, 1, 2, 3].map(|n| n ^ bits));
    Some(match bits {
        1..=3 => vec![inside(bits)],
        n if has_rdna && n < 16 => vec![XOR | n],
        // Reversing eight lanes exchanges them by 7.
        4..=6 => vec![HALF_MIRROR, inside(bits ^ 7)],
        7 => vec![HALF_MIRROR],
        8 => vec![ROTATE_8],
        9..=11 => vec![ROTATE_8, inside(bits ^ 8)],
        12..=14 => vec![MIRROR, inside(bits ^ 15)],
        15 => vec![MIRROR],
        _ => return None,
    })
}

/// The lanes of the other sixteen that lanes 0 to 7 and 8 to 15 read, four bits each, to exchange lanes whose numbers
/// differ in these bits.
fn row_lanes(bits: u32) -> [u32; 2] {
    [0, 8].map(|first| (0..8).fold(0, |all, i| all | ((first + i) ^ (bits & 0xF)) << (4 * i)))
}

impl<'c> Amdgcn<'c> {
    /// 32 bits of another lane.
    pub(super) fn other_lane(
        &self,
        e: &Emit<'_, 'c>,
        value: IntValue<'c>,
        lane: Lane<'c>,
    ) -> Res<IntValue<'c>> {
        let lanes = e.kernel.options.spec.warp_size;
        let own = e.builder.build_and(e.tid, e.int(lanes - 1), "")?;
        let b = e.builder;
        match lane {
            Lane::Xor(bits) => self.exchanged(e, value, own, bits),
            Lane::Up(n) => {
                let from = b.build_int_sub(own, e.int(n), "")?;
                let there = b.build_int_compare(IntPredicate::UGE, own, e.int(n), "")?;
                self.fetched(e, value, b.build_select(there, from, own, "")?.into_int_value())
            }
            Lane::Down(n) => {
                let from = b.build_int_add(own, e.int(n), "")?;
                let there = b.build_int_compare(IntPredicate::ULT, from, e.int(lanes), "")?;
                self.fetched(e, value, b.build_select(there, from, own, "")?.into_int_value())
            }
            Lane::Index(from) => self.fetched(e, value, from),
        }
    }

    fn exchanged(
        &self,
        e: &Emit<'_, 'c>,
        value: IntValue<'c>,
        own: IntValue<'c>,
        bits: u32,
    ) -> Res<IntValue<'c>> {
        let has_rdna = e.kernel.options.spec.has_rdna;
        if bits == 0 {
            return Ok(value);
        }
        if let Some(list) = exchange(bits, has_rdna) {
            return list.into_iter().try_fold(value, |x, code| self.dpp(e, x, code));
        }
        if bits < 32 && has_rdna {
            let no = e.context.bool_type().const_zero().into();
            let [low, high] = row_lanes(bits).map(|lanes| e.int(lanes).into());
            let args = [e.i32().get_poison().into(), value.into(), low, high, no, no];
            return Ok(self.given(e, "llvm.amdgcn.permlanex16", &[e.i32().into()], &args)?.into_int_value());
        }
        if bits < 32 {
            // All bits of the lane number are kept, none is set, these are inverted.
            let pattern = e.int(0x1F | bits << 10);
            let name = "llvm.amdgcn.ds.swizzle";
            return Ok(self.given(e, name, &[], &[value.into(), pattern.into()])?.into_int_value());
        }
        let from = e.builder.build_xor(own, e.int(bits), "")?;
        self.fetched(e, value, from)
    }

    fn dpp(&self, e: &Emit<'_, 'c>, value: IntValue<'c>, code: u32) -> Res<IntValue<'c>> {
        let all = e.int(0xF).into();
        let bound = e.context.bool_type().const_int(1, false).into();
        let args = [e.i32().get_poison().into(), value.into(), e.int(code).into(), all, all, bound];
        Ok(self.given(e, "llvm.amdgcn.update.dpp", &[e.i32().into()], &args)?.into_int_value())
    }

    /// Each lane reads the one with this number.
    fn fetched(&self, e: &Emit<'_, 'c>, value: IntValue<'c>, from: IntValue<'c>) -> Res<IntValue<'c>> {
        let bytes = e.builder.build_left_shift(from, e.int(2), "")?;
        Ok(self.given(e, "llvm.amdgcn.ds.bpermute", &[], &[bytes.into(), value.into()])?.into_int_value())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lane of sixteen that a lane reads, by the manual's text on each operand.
    fn reads(code: u32, lane: u32) -> u32 {
        match code {
            0..=0xFF => lane & !3 | code >> (2 * (lane & 3)) & 3,
            HALF_MIRROR => lane & 8 | (7 - (lane & 7)),
            MIRROR => 15 - lane,
            ROTATE_8 => (lane + 8) % 16,
            code => lane ^ (code & 15),
        }
    }

    #[test]
    fn lanes_of_a_row_are_exchanged() {
        for has_rdna in [false, true] {
            for bits in 1..16 {
                let list = exchange(bits, has_rdna).unwrap_or_default();
                for lane in 0..16 {
                    let from = list.iter().rev().fold(lane, |at, code| reads(*code, at));
                    assert_eq!(from, lane ^ bits, "{bits} {list:x?}");
                }
            }
            assert_eq!(exchange(16, has_rdna), None);
        }
        assert_eq!(row_lanes(16), [0x7654_3210, 0xFEDC_BA98]);
        assert_eq!(row_lanes(17), [0x6745_2301, 0xEFCD_AB89]);
        assert_eq!(row_lanes(31), [0x89AB_CDEF, 0x0123_4567]);
    }
}
