//! Emits masked loads without a branch: a masked lane loads zeros of the code object instead.
//!
//! A branch around each load would end the block in which LLVM schedules, and make the values that meet after it copies. An
//! address that is selected costs two instructions, whatever it is and whichever lanes are masked.

use inkwell::AddressSpace;
use inkwell::module::Linkage;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValue, BasicValueEnum, GlobalValue, IntValue, PointerValue};

use super::{ALIGN, Amdgcn, GLOBAL, SCALAR_UNIT, marked};
use crate::emit::value::is_zero;
use crate::emit::{Emit, Res, Stop, bug};
use crate::target::uniform;
use crate::target::{Access, Space};
use tk_gpu::Kernel;
use tk_gpu::analysis::coalesce::has_large_accumulators;
use tk_gpu::ir::caching::Level;

/// Offsets that an instruction adds to an address are below this, on all targets (RDNA3 has 12 bits and a sign).
const REACH: u32 = 1 << 12;

/// Bytes of a register.
const WORD: u32 = 4;
/// Registers of a lane that are few.
const FEW: u32 = 256;

/// The zeros of a kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Zeros<'c> {
    global: GlobalValue<'c>,
    bytes: u32,
    pointer: PointerValue<'c>,
}

impl<'c> Amdgcn<'c> {
    /// Returns true if a masked load is done without a branch. Loads of less than a register are many, and all of their
    /// addresses need registers at once: where a lane has 256, large products of elements one by one spilled up to 96 bytes; so did
    /// loops with nothing else to do meanwhile (244). Volatile loads read nothing but what they are asked to.
    pub(super) fn selects_address(
        &self,
        e: &Emit<'_, 'c>,
        access: &Access<'c>,
        predicate: IntValue<'c>,
    ) -> bool {
        let has_room = || e.ahead.is_some() && (e.kernel.options.spec.registers > FEW || !self.is_crowded(e));
        access.caching.level != Level::Volatile
            && (access.bytes * access.count >= WORD || has_room())
            && (e.guard().is_some() || !uniform::is_known(e, SCALAR_UNIT, predicate))
    }

    /// Whether sums of products take half of the registers of a lane.
    fn is_crowded(&self, e: &Emit<'_, 'c>) -> bool {
        let Kernel { module, options, .. } = e.kernel;
        *self.is_crowded.get_or_init(|| has_large_accumulators((module, e.func()), options))
    }

    /// A pointer to at least this many zeros.
    pub(super) fn zeros(&self, e: &Emit<'_, 'c>, bytes: u32) -> Res<PointerValue<'c>> {
        let known = self.zeros.get();
        if let Some(zeros) = known.filter(|z| z.bytes >= bytes) {
            return Ok(zeros.pointer);
        }
        let array = e.context.i8_type().array_type(bytes);
        let global = e.module.add_global(array, Some(AddressSpace::from(GLOBAL)), "zeros");
        global.set_linkage(Linkage::Private);
        global.set_initializer(&array.const_zero());
        global.set_constant(true);
        global.set_alignment(ALIGN);
        let pointer = match known {
            Some(fewer) => {
                fewer.global.as_pointer_value().replace_all_uses_with(global.as_pointer_value());
                // SAFETY: nothing uses it.
                unsafe { fewer.global.delete() };
                fewer.pointer
            }
            None => self.at_entry(e, global.as_pointer_value())?,
        };
        self.zeros.set(Some(Zeros { global, bytes, pointer }));
        Ok(pointer)
    }

    /// A pointer in registers, which LLVM would otherwise compute again for each load. On CDNA a selection of addresses, whose
    /// mask is a scalar register already, cannot take it from another.
    fn at_entry(&self, e: &Emit<'_, 'c>, pointer: PointerValue<'c>) -> Res<PointerValue<'c>> {
        let builder = e.context.create_builder();
        let entry =
            e.function.get_first_basic_block().ok_or_else(|| Stop::Bug("a function is empty".into()))?;
        match entry.get_first_instruction() {
            Some(first) => builder.position_before(&first),
            None => builder.position_at_end(entry),
        }
        let ty = pointer.get_type().fn_type(&[pointer.get_type().into()], false);
        let kept = if e.kernel.options.spec.has_rdna { "=s,0" } else { "=v,0" };
        let same = e.context.create_inline_asm(ty, String::new(), kept.into(), false, false, None, false);
        match builder.build_indirect_call(ty, same, &[pointer.into()], "")?.try_as_basic_value().basic() {
            Some(x) => Ok(x.into_pointer_value()),
            None => bug("assembly gave nothing"),
        }
    }

    /// Loads; `other` where the predicate is false.
    pub(super) fn masked_load(
        &self,
        e: &Emit<'_, 'c>,
        (access, predicate): (&Access<'c>, IntValue<'c>),
        ty: BasicTypeEnum<'c>,
        other: &[BasicValueEnum<'c>],
    ) -> Res<BasicValueEnum<'c>> {
        let size = access.bytes * access.count;
        // The instruction adds the offset to either address.
        let offset = u32::try_from(access.offset).ok().filter(|o| o + size <= REACH);
        let before = if offset.is_some() { 0 } else { access.offset };
        let place = self.pointer(e, Space::Global, access.address, before)?;
        let zeros = self.zeros(e, offset.unwrap_or(0) + size)?;
        let chosen = e.builder.build_select(predicate, place, zeros, "")?.into_pointer_value();
        let by = e.int(offset.unwrap_or(0));
        // SAFETY: inside of the zeros, or of the device memory that was passed to the program.
        let place = unsafe { e.builder.build_gep(e.context.i8_type(), chosen, &[by], "")? };
        let loaded = e.builder.build_load(ty, place, "")?;
        if let Some(inst) = loaded.as_instruction_value() {
            marked(e, inst, access)?;
        }
        if other.iter().all(is_zero) {
            return Ok(loaded);
        }
        let other = self.joined(e, access, other)?;
        Ok(e.builder.build_select(predicate, loaded, other, "")?)
    }
}
