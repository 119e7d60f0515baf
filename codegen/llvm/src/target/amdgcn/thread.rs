//! The number of a thread from that of the first one of its warp, which is in a scalar register, and the number of its lane,
//! which an instruction counts: a vector register that holds it during a loop is one less for tiles.

use inkwell::values::IntValue;

use super::{Amdgcn, intrinsic};
use crate::emit::{Emit, Res, bug};
use crate::target::Start;

impl<'c> Amdgcn<'c> {
    /// The number of the first thread of the warp.
    pub(super) fn first_of_warp(start: &Start<'_, 'c>, tid: IntValue<'c>) -> Res<IntValue<'c>> {
        let lanes = u64::from(start.kernel.options.spec.warp_size);
        let b = start.builder;
        let ty = tid.get_type();
        let first = b.build_and(tid, ty.const_int(!(lanes - 1), false), "")?;
        let name = "llvm.amdgcn.readfirstlane";
        match intrinsic(b, start.module, name, &[ty.into()], &[first.into()])? {
            Some(x) => Ok(x.into_int_value()),
            None => bug("the number of a thread is missing"),
        }
    }

    /// The number of this thread, counted again.
    pub(super) fn counted_thread(&self, e: &Emit<'_, 'c>) -> Res<IntValue<'c>> {
        let Some(first) = self.first_of_warp.get() else { return bug("a thread has no warp") };
        let ty = first.get_type().fn_type(&[first.get_type().into()], false);
        // Assembly that may have effects: LLVM would take the number as it has counted it after another loop.
        let same = e.context.create_inline_asm(ty, String::new(), "=s,0".into(), false, false, None, false);
        let call = e.builder.build_indirect_call(ty, same, &[first.into()], "")?;
        let Some(mut number) = call.try_as_basic_value().basic() else { return bug("assembly gave nothing") };
        let halves: &[&str] = if e.kernel.options.spec.warp_size > 32 { &["lo", "hi"] } else { &["lo"] };
        for half in halves {
            let all = e.i32().const_all_ones().into();
            number = self.given(e, &format!("llvm.amdgcn.mbcnt.{half}"), &[], &[all, number])?;
        }
        Ok(number.into_int_value())
    }
}
