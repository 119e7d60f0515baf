//! Verifies S07: barriers between accesses of different threads.
//!
//! Requires L01 and S03 to S05. Independent of how barriers were inserted. Guarantees that no thread sees a partial write of another, except for multi-stage buffers:
//! that a stage is waited for, and not read while it is filled, follows from how loops run ahead
//! ([`crate::passes::software_pipeline`]), and only the simulated target checks it: its copies destroy the previous
//! contents when they begin, and arrive when they are waited for.

use std::collections::{BTreeMap, BTreeSet};

use tk_ops::{ControlOp, Op};
use tk_tile::{Inst, InstId};

use super::fault::GpuInvariant::S07;
use super::fault::{GpuVerifyError, at, fault};
use super::forward::{State, forward};
use crate::ir::cluster::exchange;
use crate::ir::kernel::Kernel;
use crate::ir::op::{GpuOp, Placement, SharedStore};
use crate::ir::shared_access::{is_addition, is_ahead, is_of_tma_pipeline, is_own, touched};

/// The kind of an access to a buffer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Read,
    Store,
    Add,
    /// A store for which the load of its buffer waits itself.
    Remote,
    /// Such a store to a buffer whose halves take turns.
    Alternating,
    /// A copy into another stage of a multi-stage buffer than is read meanwhile.
    Pipelined,
    /// By each thread to elements of its own.
    Own,
}

/// An access since the last barrier.
type Access = (InstId, usize, Kind);

impl State for BTreeSet<Access> {
    fn join(&mut self, other: Self) -> bool {
        let known = self.len();
        self.extend(other);
        self.len() > known
    }
}

/// Checks every access.
pub(super) fn check(kernel: &Kernel) -> Result<(), GpuVerifyError> {
    let mut walk = Walk { kernel, apart: BTreeMap::new() };
    let func = kernel.func();
    forward(func, func.body, &mut BTreeSet::new(), &mut |id, since| walk.inst(id, since))
}

struct Walk<'a> {
    kernel: &'a Kernel,
    /// Known pairs of stores to one buffer, and whether they fill different elements.
    apart: BTreeMap<(InstId, InstId), bool>,
}

impl Walk<'_> {
    fn inst(&mut self, id: InstId, since: &mut BTreeSet<Access>) -> Result<(), GpuVerifyError> {
        let Some(inst) = self.kernel.func().insts.get(id) else { return Ok(()) };
        match GpuOp::of(inst) {
            Some(GpuOp::Barrier(_) | GpuOp::PhaseBarrier(_)) => since.clear(),
            Some(op) => return self.access((inst, op), id, since),
            // It begins and ends with a barrier of the block.
            None if inst.op == Op::Control(ControlOp::GridBarrier) => since.clear(),
            None => {}
        }
        Ok(())
    }

    fn access(
        &mut self,
        (inst, op): (&Inst, &GpuOp),
        id: InstId,
        since: &mut BTreeSet<Access>,
    ) -> Result<(), GpuVerifyError> {
        let (reads, writes) = touched(inst);
        let own = is_own(op) || is_of_tma_pipeline(op);
        let (read, write) = match (own, is_ahead(op)) {
            (true, _) => (Kind::Own, Kind::Own),
            (false, true) => (Kind::Read, Kind::Pipelined),
            (false, false) if is_addition(inst) => (Kind::Read, Kind::Add),
            (false, false) if exchange(inst).is_some_and(|e| e.alternates) => (Kind::Read, Kind::Alternating),
            (false, false) if exchange(inst).is_some() => (Kind::Read, Kind::Remote),
            (false, false) => (Kind::Read, Kind::Store),
        };
        let reads = reads.into_iter().map(|b| (id, b, read));
        let own: Vec<Access> = reads.chain(writes.into_iter().map(|b| (id, b, write))).collect();
        for access in &own {
            if let Some(other) = since.iter().find(|o| self.conflict(o, access)).copied() {
                let name = self.kernel.func().insts.get(other.0).map_or("", Inst::name);
                let message = format!("no barrier after `{name}` of buffer {}", other.1);
                return fault(S07, message).map_err(|f| at(inst, id, f));
            }
        }
        since.extend(own);
        Ok(())
    }

    fn conflict(&mut self, a: &Access, b: &Access) -> bool {
        let range = |n: usize| {
            let buffer = self.kernel.buffers.get(n);
            buffer.map_or((0, 0), |b| (u64::from(b.offset), u64::from(b.offset) + u64::from(b.bytes)))
        };
        let (x, y) = (range(a.1), range(b.1));
        let overlap = x.0 < y.1 && y.0 < x.1;
        match (a.2, b.2) {
            (Kind::Read, Kind::Read) => false,
            (Kind::Add, Kind::Add) => overlap && a.1 != b.1,
            // It came first.
            (Kind::Remote, Kind::Read) if a.1 == b.1 => false,
            (Kind::Alternating, _) | (_, Kind::Alternating) if a.1 == b.1 => false,
            (Kind::Store, Kind::Store) if a.1 == b.1 => !self.are_apart(a.0, b.0),
            (Kind::Own, Kind::Own) | (Kind::Pipelined, _) | (_, Kind::Pipelined) if a.1 == b.1 => false,
            (Kind::Store | Kind::Remote | Kind::Alternating | Kind::Own | Kind::Pipelined, _)
            | (_, Kind::Store | Kind::Remote | Kind::Alternating | Kind::Own | Kind::Pipelined)
            | (Kind::Read, Kind::Add)
            | (Kind::Add, Kind::Read) => overlap,
        }
    }

    /// Returns true if two stores to one buffer fill different elements: `cat` and `join` have several.
    fn are_apart(&mut self, a: InstId, b: InstId) -> bool {
        if let Some(known) = self.apart.get(&(a, b)) {
            return *known;
        }
        let insts = &self.kernel.func().insts;
        let copies =
            |i: InstId| insts.get(i).is_some_and(|i| matches!(GpuOp::of(i), Some(GpuOp::AsyncCopy(_))));
        if copies(a) && copies(b) {
            // Those of iterations in flight have different stages.
            return true;
        }
        let apart = match (self.elements(a), self.elements(b)) {
            (Some(mut x), Some(y)) => {
                x.sort_unstable();
                y.iter().all(|e| x.binary_search(e).is_err())
            }
            (None, _) | (_, None) => false,
        };
        self.apart.insert((a, b), apart);
        apart
    }

    /// The elements of its buffer that a store fills, if they are given by strides.
    fn elements(&self, id: InstId) -> Option<Vec<i64>> {
        let func = self.kernel.func();
        let inst = func.insts.get(id)?;
        let GpuOp::SharedStore(SharedStore { placement: Placement::Strided(places), .. }) = GpuOp::of(inst)?
        else {
            return None;
        };
        let shape = self.kernel.module.types.get(func.ty(*inst.operands.first()?)).shape()?;
        let mut all = vec![places.start];
        for (n, stride) in shape.iter().zip(&places.strides) {
            all = all.iter().flat_map(|e| (0..i64::from(*n)).map(move |i| e + i * stride)).collect();
        }
        Some(all)
    }
}
