//! Emits programs of several blocks ([`tk_gpu::passes::cluster`]).
//!
//! Requires that the blocks of a program are adjacent on axis 0 of the launch. Guarantees that no block writes to the
//! memory of one that has not begun: all arrive when they begin, and wait before their first write. None ends while
//! another one writes to it, since a barrier of the schedule is between a store and its reads.

use inkwell::values::{BasicValueEnum, IntValue};

use super::memory::offset_text;
use super::{Nvptx, special};
use crate::emit::{Emit, Res};
use crate::target::{Access, Start};

/// The number of this thread in its program.
pub fn thread<'c>(start: &Start<'_, 'c>) -> Res<IntValue<'c>> {
    let (kernel, b) = (start.kernel, start.builder);
    let tid = special(start, "tid.x")?;
    if kernel.options.blocks == 1 {
        return Ok(tid);
    }
    let rank = special(start, "cluster.ctarank")?;
    let each = start.context.i32_type().const_int(kernel.block_threads().into(), false);
    Ok(b.build_int_nuw_add(b.build_int_nuw_mul(rank, each, "")?, tid, "")?)
}

/// Stores `values` at `$0` plus `offset` in the memory of all blocks.
pub fn store(blocks: u32, predicate: &str, suffix: &str, offset: i64, values: &str) -> String {
    let one = |block| {
        let to = offset_text(0, offset).replace("$0", "%to");
        format!(
            "mapa.shared::cluster.u32 %to, $0, {block}; {predicate}st.shared::cluster{suffix} {to}, {values}; "
        )
    };
    format!("{{ .reg .b32 %to; {}}}", (0..blocks).map(one).collect::<String>())
}

impl<'c> Nvptx<'c> {
    /// Stores words in the memory of all blocks, where they count for the mbarrier of the block.
    pub(super) fn post_to_all(
        &self,
        e: &Emit<'_, 'c>,
        access: &Access<'c>,
        values: &[BasicValueEnum<'c>],
        barrier: IntValue<'c>,
    ) -> Res<()> {
        let to = offset_text(0, access.offset).replace("$0", "%to");
        let addresses =
            [("r", self.shared_address(e, access.address)?), ("r", self.shared_address(e, barrier)?)];
        self.write(e, access, &addresses, values, |predicate, suffix, words| {
            let one = |block| {
                format!(
                    "mapa.shared::cluster.u32 %to, $0, {block}; mapa.shared::cluster.u32 %at, $1, {block}; \
                     {predicate}st.async.weak.shared::cluster.mbarrier::complete_tx::bytes{suffix} {to}, {words}, \
                     [%at]; "
                )
            };
            let all: String = (0..e.kernel.options.blocks).map(one).collect();
            format!("{{ .reg .b32 %to, %at; {all}}}")
        })
    }
}
