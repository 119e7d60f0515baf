//! Emits masked accesses as buffer instructions: a uniform address, a 32-bit offset of each lane, and a bound that the
//! hardware checks. A masked lane has an offset beyond the bound, so no branch is needed: its loads return 0, its
//! stores do nothing.
//!
//! Requires distances below 2^30 ([`Near`]). The words of a descriptor are those of the manuals of CDNA3 and RDNA3,
//! "Buffer resource descriptor".

use inkwell::AddressSpace;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValueEnum, IntValue};

use super::{Amdgcn, BUFFER, GLOBAL, is_streamed};
use crate::emit::value::{is_zero, vector_of, word};
use crate::emit::{Emit, Res};
use crate::target::{Access, Near, Space};

/// The bound, in bytes: every distance is below it, and [`OUTSIDE`] is not.
const BOUND: u32 = 0x7FFF_FFFE;
/// The offset of a masked lane.
const OUTSIDE: u32 = 0x8000_0000;

/// The last word of a descriptor: the components of an element, and its format, one of 32 bits; neither affects
/// instructions without a format.
const PLAIN: u32 = 7 << 12 | 4 << 15;
/// For RDNA in addition: a bit that must be set, and that only the offset is compared with the bound.
const PLAIN_RDNA: u32 = PLAIN | 1 << 24 | 3 << 28;

/// An access with its address and predicate.
type Bounded<'a, 'c> = (&'a Access<'c>, Near<'c>, IntValue<'c>);

impl<'c> Amdgcn<'c> {
    /// The operands after the data: descriptor, offset of the lane, uniform offset, cache policy.
    fn bounded(
        &self,
        e: &Emit<'_, 'c>,
        (access, near, predicate): Bounded<'_, 'c>,
        stores: bool,
    ) -> Res<[BasicValueEnum<'c>; 4]> {
        let base = self.pointer(e, Space::Global, near.base, 0)?;
        let flags = if e.kernel.options.spec.has_rdna { PLAIN_RDNA } else { PLAIN };
        let bound = word(e.context, 64).const_int(BOUND.into(), false);
        let args = [base.into(), word(e.context, 16).const_zero().into(), bound.into(), e.int(flags).into()];
        let types = [BUFFER, GLOBAL].map(|space| e.context.ptr_type(AddressSpace::from(space)).into());
        let resource = self.given(e, "llvm.amdgcn.make.buffer.rsrc", &types, &args)?;
        let by = e.i32().const_int(access.offset.cast_unsigned(), false);
        let inside = e.builder.build_int_add(near.distance, by, "")?;
        let offset = e.builder.build_select(predicate, inside, e.int(OUTSIDE), "")?;
        let [of_loads, of_stores] = e.kernel.options.spec.streaming_policies;
        let streaming = if stores { of_stores } else { of_loads };
        let caches = if is_streamed(access.caching) { streaming } else { 0 };
        Ok([resource, offset, e.int(0).into(), e.int(caches).into()])
    }

    /// The words that an instruction moves.
    fn words(&self, e: &Emit<'_, 'c>, access: &Access<'c>) -> Res<BasicTypeEnum<'c>> {
        Ok(match access.bytes * access.count {
            bytes @ (1 | 2 | 4) => word(e.context, 8 * bytes).into(),
            bytes => vector_of(e.i32().into(), bytes / 4)?.into(),
        })
    }

    /// Loads; `other` where the predicate is false.
    pub(super) fn bounded_load(
        &self,
        e: &Emit<'_, 'c>,
        what: Bounded<'_, 'c>,
        ty: BasicTypeEnum<'c>,
        other: &[BasicValueEnum<'c>],
    ) -> Res<BasicValueEnum<'c>> {
        let words = self.words(e, what.0)?;
        let args = self.bounded(e, what, false)?;
        let loaded = self.given(e, "llvm.amdgcn.raw.ptr.buffer.load", &[words], &args)?;
        let loaded = if words == ty { loaded } else { e.builder.build_bit_cast(loaded, ty, "")? };
        if other.iter().all(is_zero) {
            return Ok(loaded);
        }
        let other = self.joined(e, what.0, other)?;
        Ok(e.builder.build_select(what.2, loaded, other, "")?)
    }

    /// Stores.
    pub(super) fn bounded_store(
        &self,
        e: &Emit<'_, 'c>,
        what: Bounded<'_, 'c>,
        all: BasicValueEnum<'c>,
    ) -> Res<()> {
        let words = self.words(e, what.0)?;
        let data = if words == all.get_type() { all } else { e.builder.build_bit_cast(all, words, "")? };
        let [resource, offset, shared, caches] = self.bounded(e, what, true)?;
        let args = [data, resource, offset, shared, caches];
        super::intrinsic(e.builder, e.module, "llvm.amdgcn.raw.ptr.buffer.store", &[words], &args)?;
        Ok(())
    }
}
