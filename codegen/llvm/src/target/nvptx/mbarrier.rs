//! Emits mbarriers, and TMA loads and stores of Hopper.
//!
//! Requires addresses of mbarriers that a thread has initialized and all others know. Guarantees that data whose
//! arrival a wait has observed is visible to the waiting threads.

use inkwell::values::{BasicValueEnum, IntValue};

use super::memory::{Words, with_policy};
use super::{Kind, Nvptx};
use crate::emit::{Emit, Res};
use crate::target::PlacedBox;

impl<'c> Nvptx<'c> {
    /// Assembly on an mbarrier.
    fn phase(
        &self,
        e: &Emit<'_, 'c>,
        text: &str,
        address: IntValue<'c>,
        more: &[(&str, IntValue<'c>)],
    ) -> Res<()> {
        let address = self.shared_address(e, address)?;
        let mut inputs: Vec<BasicValueEnum<'c>> = vec![address.into()];
        inputs.extend(more.iter().map(|(_, x)| BasicValueEnum::from(*x)));
        let constraints: String = more.iter().map(|(c, _)| format!(",{c}")).collect();
        self.asm(e, text, &format!("r{constraints}"), &[], &inputs, Kind::Convergent).map(|_| ())
    }

    /// Initializes an mbarrier for this many arrivals.
    pub(super) fn begin_phase(&self, e: &Emit<'_, 'c>, address: IntValue<'c>, arrivals: u32) -> Res<()> {
        self.phase(e, &format!("mbarrier.init.shared::cta.b64 [$0], {arrivals};"), address, &[])
    }

    /// Makes all mbarriers visible, for TMA too.
    pub(super) fn show_phases(&self, e: &Emit<'_, 'c>) -> Res<()> {
        let text = "fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;";
        self.asm(e, text, "", &[], &[], Kind::Memory).map(|_| ())
    }

    /// Arrives, and announces the number of bytes.
    pub(super) fn expect_bytes(&self, e: &Emit<'_, 'c>, address: IntValue<'c>, bytes: u32) -> Res<()> {
        let text = format!("mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], {bytes};");
        self.phase(e, &text, address, &[])
    }

    /// Arrives where the predicate is true, in this block or another one of the cluster. A release at the scope of the
    /// cluster would wait for all that the thread wrote, half a microsecond each time; consumers only have read.
    pub(super) fn arrive(
        &self,
        e: &Emit<'_, 'c>,
        address: IntValue<'c>,
        block: Option<IntValue<'c>>,
        predicate: IntValue<'c>,
    ) -> Res<()> {
        let Some(block) = block else {
            let text = "@$1 mbarrier.arrive.shared::cta.b64 _, [$0];";
            return self.phase(e, text, address, &[("b", predicate)]);
        };
        let text = "{ .reg .b32 %at; @$1 mapa.shared::cluster.u32 %at, $0, $2; \
            @$1 mbarrier.arrive.shared::cluster.b64 _, [%at]; }";
        self.phase(e, text, address, &[("b", predicate), ("r", block)])
    }

    /// Waits until a phase with this parity is complete.
    pub(super) fn wait_for_phase(
        &self,
        e: &Emit<'_, 'c>,
        address: IntValue<'c>,
        parity: IntValue<'c>,
    ) -> Res<()> {
        let text = "{ .reg .pred p; \
            WAIT_${:uid}: mbarrier.try_wait.parity.shared::cta.b64 p, [$0], $1; @!p bra WAIT_${:uid}; }";
        self.phase(e, text, address, &[("r", parity)])
    }

    /// Starts a load of a box to shared memory, of this block or at the same place of the blocks of the cluster in a set
    /// of ranks, which counts for the mbarrier there.
    pub(super) fn copy_box(
        &self,
        e: &Emit<'_, 'c>,
        what: &PlacedBox<'c>,
        barrier: IntValue<'c>,
        ranks: Option<IntValue<'c>>,
    ) -> Res<()> {
        let PlacedBox { map, at, shared, caching } = what;
        let Words { hint, policy, .. } = Words::of(*caching);
        let (to, barrier) = (self.shared_address(e, *shared)?, self.shared_address(e, barrier)?);
        let places: Vec<String> = (3..at.len() + 3).map(|i| format!("${i}")).collect();
        let (multicast, mask) = match ranks {
            None => ("", String::new()),
            Some(_) => (".multicast::cluster", format!(", ${}", at.len() + 3)),
        };
        let text = format!(
            "cp.async.bulk.tensor.{}d.shared::cluster.global.mbarrier::complete_tx::bytes{multicast}{hint} [$0], [$1, {{{}}}], [$2]{mask}{policy};",
            at.len(),
            places.join(", ")
        );
        let mut inputs: Vec<BasicValueEnum<'c>> = vec![to.into(), (*map).into(), barrier.into()];
        inputs.extend(at.iter().map(|x| BasicValueEnum::from(*x)));
        let mut constraints = format!("r,l,r{}", ",r".repeat(at.len()));
        if let Some(ranks) = ranks {
            inputs.push(ranks.into());
            constraints.push_str(",h");
        }
        self.asm(e, &with_policy(*caching, text), &constraints, &[], &inputs, Kind::Memory).map(|_| ())
    }

    /// Starts a store of a box from shared memory.
    pub(super) fn store_box(&self, e: &Emit<'_, 'c>, what: &PlacedBox<'c>, adds: bool) -> Res<()> {
        let PlacedBox { map, at, shared, caching } = what;
        let Words { hint, policy, .. } = Words::of(*caching);
        let places: Vec<String> = (2..at.len() + 2).map(|i| format!("${i}")).collect();
        let (copy, add) = if adds { ("cp.reduce", ".add") } else { ("cp", "") };
        let text = format!(
            "{copy}.async.bulk.tensor.{}d.global.shared::cta{add}.bulk_group{hint} [$0, {{{}}}], [$1]{policy};",
            at.len(),
            places.join(", ")
        );
        let mut inputs: Vec<BasicValueEnum<'c>> =
            vec![(*map).into(), self.shared_address(e, *shared)?.into()];
        inputs.extend(at.iter().map(|x| BasicValueEnum::from(*x)));
        let constraints = format!("l,r{}", ",r".repeat(at.len()));
        self.asm(e, &with_policy(*caching, text), &constraints, &[], &inputs, Kind::Memory).map(|_| ())
    }

    /// Waits until the boxes are stored, or only have `left` shared memory.
    pub(super) fn wait_for_boxes(&self, e: &Emit<'_, 'c>, left: bool) -> Res<()> {
        let what = if left { ".read" } else { "" };
        let text = format!("cp.async.bulk.commit_group; cp.async.bulk.wait_group{what} 0;");
        self.asm(e, &text, "", &[], &[], Kind::Memory).map(|_| ())
    }
}
