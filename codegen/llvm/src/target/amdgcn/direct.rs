//! Emits loads straight to shared memory (`global_load_lds_dwordx4`), and waits for them.
//!
//! LLVM waits for all of them before each read of shared memory that may be of what they write. Kernels read only stages for
//! which they have waited, so reads are said to alias none (`noalias`); nothing moves across the wait.

use inkwell::AddressSpace;
use inkwell::values::{BasicMetadataValueEnum, InstructionValue, MetadataValue};
use tk_gpu::ir::op::GpuOp;
use tk_tile::walk;

use super::{Amdgcn, GLOBAL, is_streamed};
use crate::emit::{Emit, Res, Stop, bug};
use crate::target::{Access, Space};
use inkwell::intrinsics::Intrinsic;

/// The instruction.
const LOAD: &str = "llvm.amdgcn.global.load.lds";
/// The bit `nt` of its cache policy.
const STREAMED: u32 = 2;

impl<'c> Amdgcn<'c> {
    /// A list with the scope of all direct loads.
    fn scope(e: &Emit<'_, 'c>) -> MetadataValue<'c> {
        let named = |name: &str| e.context.metadata_string(name);
        let domain = e.context.metadata_node(&[named("tk.direct").into()]);
        let scope = e.context.metadata_node(&[named("tk.direct.loads").into(), domain.into()]);
        e.context.metadata_node(&[scope.into()])
    }

    /// Loads from the address of each lane to its place in shared memory, zeros where a predicate is false: a lane that loads
    /// nothing would leave what was there.
    pub(super) fn direct_load(&self, e: &Emit<'_, 'c>, from: &Access<'c>, to: &Access<'c>) -> Res<()> {
        let size = from.bytes * from.count;
        if size != e.kernel.options.spec.direct_load_bytes {
            return bug("a load to shared memory has another size");
        }
        let place = self.place(e, Space::Global, from)?;
        let place = match e.both(from.predicate, to.predicate)? {
            Some(predicate) => {
                let zeros = self.zeros(e, size)?;
                e.builder.build_select(predicate, place, zeros, "")?.into_pointer_value()
            }
            None => place,
        };
        // It is that of the first lane (`copying_thread`), in a scalar register.
        let shared = self.pointer(e, Space::Shared, to.address, to.offset)?;
        let ty = e.context.ptr_type(AddressSpace::from(GLOBAL));
        let found = Intrinsic::find(LOAD).and_then(|f| {
            let types = [ty.into()];
            f.get_declaration(e.module, if f.is_overloaded() { &types } else { &[] })
        });
        let Some(load) = found else { return bug(format!("LLVM has no `{LOAD}`")) };
        // An offset would be added to both addresses.
        let policy = if is_streamed(from.caching) { STREAMED } else { 0 };
        let args = [place.into(), shared.into(), e.int(size).into(), e.int(0).into(), e.int(policy).into()];
        let args: [BasicMetadataValueEnum<'c>; 5] = args;
        let call = e.builder.build_call(load, &args, "")?;
        let inst = call.try_as_basic_value().instruction();
        let Some(inst) = inst else { return bug("a load to shared memory gives a value") };
        let kind = e.context.get_kind_id("alias.scope");
        inst.set_metadata(Self::scope(e), kind).map_err(|e| Stop::Bug(e.to_string()))
    }

    /// Waits for all loads of this wave.
    pub(super) fn wait_for_direct_loads(&self, e: &Emit<'_, 'c>, pending: u32) -> Res<()> {
        if pending > 0 {
            return bug("loads to shared memory are waited for all at once");
        }
        let ty = e.context.void_type().fn_type(&[], false);
        let (text, constraints) = ("s_waitcnt vmcnt(0)".into(), "~{memory}".into());
        let wait = e.context.create_inline_asm(ty, text, constraints, true, false, None, false);
        Ok(e.builder.build_indirect_call(ty, wait, &[], "").map(|_| ())?)
    }

    /// Says of a read of shared memory that no load to it is in flight.
    pub(super) fn reads_nothing_direct(&self, e: &Emit<'_, 'c>, read: InstructionValue<'c>) -> Res<()> {
        let insts = &e.func().insts;
        let copies = |i| matches!(insts.get(i).and_then(GpuOp::of), Some(GpuOp::AsyncCopy(_)));
        let has_some = || walk::insts(e.func()).into_iter().any(copies);
        if !self.has_direct_loads.get_or_init(has_some) {
            return Ok(());
        }
        read.set_metadata(Self::scope(e), e.context.get_kind_id("noalias"))
            .map_err(|e| Stop::Bug(e.to_string()))
    }
}
