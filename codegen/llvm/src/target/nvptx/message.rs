//! Accesses control memory, votes, and synchronizes with other programs on NVIDIA GPUs.

use inkwell::values::IntValue;
use tk_tile::message::control;

use super::{Kind, Nvptx};
use crate::emit::{Emit, Res, bug};
use crate::target::message::{MessageBuffer, Speaks};

impl<'c> Speaks<'c> for Nvptx<'c> {
    fn message_buffer(&self) -> &MessageBuffer<'c> {
        &self.message_buffer
    }

    fn count_up(
        &self,
        e: &Emit<'_, 'c>,
        address: IntValue<'c>,
        offset: i64,
        by: IntValue<'c>,
    ) -> Res<IntValue<'c>> {
        let text = format!("atom.relaxed.gpu.global.add.u64 $0, [$1+{offset}], $2;");
        let inputs = [address.into(), by.into()];
        Ok(self.one(e, &text, "=l,l,l", e.i64().into(), &inputs)?.into_int_value())
    }

    fn publish(&self, e: &Emit<'_, 'c>, address: IntValue<'c>, value: IntValue<'c>) -> Res<()> {
        let inputs = [address.into(), value.into()];
        self.asm(e, "st.release.sys.global.b64 [$0], $1;", "l,l", &[], &inputs, Kind::Memory).map(|_| ())
    }

    fn raise(&self, e: &Emit<'_, 'c>, address: IntValue<'c>, offset: i64) -> Res<()> {
        let text = format!("st.relaxed.gpu.global.b32 [$0+{offset}], 1;");
        self.asm(e, &text, "l", &[], &[address.into()], Kind::Memory).map(|_| ())
    }

    fn raised(
        &self,
        e: &Emit<'_, 'c>,
        address: IntValue<'c>,
        offset: i64,
        predicate: IntValue<'c>,
    ) -> Res<IntValue<'c>> {
        let text = format!("@$2 ld.relaxed.gpu.global.b32 $0, [$1+{offset}];");
        let inputs = [address.into(), predicate.into(), e.int(0).into()];
        Ok(self.one(e, &text, "=r,l,b,0", e.i32().into(), &inputs)?.into_int_value())
    }

    fn any(&self, e: &Emit<'_, 'c>, holds: IntValue<'c>) -> Res<IntValue<'c>> {
        if e.kernel.options.threads().warp_bits == 0 {
            let args = [self.all_lanes(e), holds.into()];
            return Ok(self.given(e, "vote.any.sync", &args)?.into_int_value());
        }
        Ok(self
            .given(e, "barrier.cta.red.or.aligned.all", &[e.int(0).into(), holds.into()])?
            .into_int_value())
    }

    fn grid_barrier_wait(
        &self,
        e: &Emit<'_, 'c>,
        address: IntValue<'c>,
        by: IntValue<'c>,
        stops: bool,
    ) -> Res<IntValue<'c>> {
        let sync = self.barrier_scope(e).text();
        let (barrier, stop) = (control::BARRIER, control::STOP);
        let stops = if stops {
            format!("ld.relaxed.gpu.global.b32 $0, [$1+{stop}]; setp.eq.and.u32 %again, $0, 0, %again; ")
        } else {
            String::new()
        };
        let text = format!(
            "{{ .reg .pred %other, %again; .reg .b32 %old, %now; mov.b32 $0, 0; {sync} \
             setp.ne.u32 %other, $2, 0; @%other bra DONE; \
             atom.acq_rel.gpu.global.add.u32 %old, [$1+{barrier}], $3; \
             AGAIN: ld.acquire.gpu.global.b32 %now, [$1+{barrier}]; xor.b32 %now, %now, %old; \
             setp.ge.s32 %again, %now, 0; {stops}@%again bra AGAIN; DONE: {sync} }}"
        );
        let inputs = [address.into(), e.tid.into(), by.into()];
        let out = self.asm(e, &text, "=&r,l,r,r", &[e.i32().into()], &inputs, Kind::Convergent)?;
        let Some(stop) = out.first() else { return bug("a barrier gave nothing") };
        Ok(stop.into_int_value())
    }
}
