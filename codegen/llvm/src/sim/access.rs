//! The memory of one program: shared memory, the access to device memory, and the state of both.
//!
//! Guarantees that every access is in bounds, aligned, reads only shared memory that was written before, and is ordered
//! with accesses of other lanes of the program to the same bytes.

use tk_ops::eval;
use tk_ops::{AtomicOp, DType, Scalar};

use super::calls::{AtomicRequest, Order, Scope, SimSpace};
use super::clock::Clock;
use super::fault::{FaultKind, Wrong};
use super::launch::Global;
use super::shadow::{AccessKind, Conflict, Pages, Shadow, Stamp, Touch};
use super::tally::{Noted, Statistics, Tally};

/// The lane that executes an operation, and its source position.
#[derive(Clone, Copy)]
pub(super) struct Who {
    pub lane: u32,
    pub loc: i32,
}

/// The result of an atomic.
pub(super) struct Done {
    /// The bits before.
    pub before: u64,
    /// The value in memory has changed.
    pub changed: bool,
}

/// The memory that one program can access.
pub(super) struct Reach {
    shared: Vec<u8>,
    pub clock: Clock,
    shadow: Shadow,
    pages: Pages,
    pub tally: Option<Tally>,
    /// The time of the last proxy fence of each lane.
    fenced: Vec<u32>,
}

impl Reach {
    /// For programs with this many lanes and this much shared memory.
    pub fn new(lanes: u32, warp_size: u32, shared: u32, banks: Option<u32>) -> Reach {
        Reach {
            shared: vec![0; shared as usize],
            clock: Clock::new(lanes, warp_size),
            shadow: Shadow::new(shared as usize),
            pages: Pages::default(),
            tally: banks.map(|b| Tally::new(warp_size, b)),
            fenced: vec![0; lanes as usize],
        }
    }

    /// Begins another program.
    pub fn begin(&mut self) {
        self.clock.begin();
        self.shadow.begin();
        self.pages.begin();
    }

    /// Copies to memory of the lane.
    ///
    /// # Safety
    /// This many bytes may be written there; `global` returns pointers as [`super::run`] requires.
    pub unsafe fn load(
        &mut self,
        global: &dyn Global,
        statistics: &mut Statistics,
        who: Who,
        place: (SimSpace, u64, i32),
        dst: *mut u8,
    ) -> Result<(), Wrong> {
        let (from, bytes) = self.reach(global, who, place, AccessKind::Read)?;
        self.note(statistics, who, place, false);
        // SAFETY: `reach` has found this many bytes there; the caller guarantees the same of the other side.
        unsafe { std::ptr::copy_nonoverlapping(from, dst, bytes) };
        Ok(())
    }

    /// Copies from memory of the lane.
    ///
    /// # Safety
    /// This many bytes may be read there; `global` returns pointers as [`super::run`] requires.
    pub unsafe fn store(
        &mut self,
        global: &dyn Global,
        statistics: &mut Statistics,
        who: Who,
        place: (SimSpace, u64, i32),
        src: *const u8,
    ) -> Result<(), Wrong> {
        let (to, bytes) = self.reach(global, who, place, AccessKind::Write)?;
        self.note(statistics, who, place, true);
        // SAFETY: `reach` has found this many bytes there; the caller guarantees the same of the other side.
        unsafe { std::ptr::copy_nonoverlapping(src, to, bytes) };
        Ok(())
    }

    /// A lane makes its writes to shared memory visible to the async proxy.
    pub fn fence(&mut self, lane: u32) {
        let time = self.clock.mark();
        self.fenced.get_mut(lane as usize).into_iter().for_each(|f| *f = time);
    }

    /// The contents of shared memory, without checks.
    pub fn shared_bytes(&self, at: u32, bytes: usize) -> Option<&[u8]> {
        self.shared.get(at as usize..)?.get(..bytes)
    }

    /// Writes to shared memory for an asynchronous copy.
    pub fn fill(&mut self, global: &dyn Global, who: Who, addr: u32, bytes: &[u8]) -> Result<(), Wrong> {
        let place = (SimSpace::Shared, u64::from(addr), bytes.len() as i32);
        let (to, count) = self.reach(global, who, place, AccessKind::Write)?;
        // SAFETY: `reach` has found this many bytes there.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, count) };
        Ok(())
    }

    /// Reads device memory for an asynchronous copy.
    pub fn look(&mut self, global: &dyn Global, who: Who, addr: u64, to: &mut [u8]) -> Result<(), Wrong> {
        let (from, count) =
            self.reach(global, who, (SimSpace::Global, addr, to.len() as i32), AccessKind::Read)?;
        // SAFETY: `reach` has found this many bytes there, which may be read as `run` requires.
        unsafe { std::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), count) };
        Ok(())
    }

    /// Writes device memory for an asynchronous copy.
    pub fn put(&mut self, global: &dyn Global, who: Who, addr: u64, bytes: &[u8]) -> Result<(), Wrong> {
        let (to, count) =
            self.reach(global, who, (SimSpace::Global, addr, bytes.len() as i32), AccessKind::Write)?;
        // SAFETY: `reach` has found this many bytes there, which may be written as `run` requires.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, count) };
        Ok(())
    }

    /// Copies the shared memory that a wgmma, or a copy to device memory, reads.
    pub fn read_by_async_proxy(
        &mut self,
        global: &dyn Global,
        who: Who,
        addr: u64,
        to: &mut [u8],
    ) -> Result<(), Wrong> {
        let (from, bytes) =
            self.reach(global, who, (SimSpace::Shared, addr, to.len() as i32), AccessKind::Read)?;
        let hidden = self
            .shadow
            .writes(addr as usize, bytes)
            .find(|w| w.time > self.fenced.get(w.lane as usize).copied().unwrap_or(0));
        if let Some(write) = hidden {
            let message = format!(
                "an instruction of groups or a copy reads {bytes} bytes at {addr:#x} of shared memory, which lane {} \
                 wrote without a fence for these",
                write.lane
            );
            return Err(Wrong::with(FaultKind::Race, message, write.loc));
        }
        // SAFETY: `reach` has found this many bytes there.
        unsafe { std::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), bytes) };
        Ok(())
    }

    fn note(&mut self, statistics: &mut Statistics, who: Who, place: (SimSpace, u64, i32), store: bool) {
        let (space, addr, bytes) = place;
        let bytes = bytes as u32;
        match space {
            SimSpace::Global => {
                statistics.global_accesses += 1;
                statistics.global_bytes += u64::from(bytes);
            }
            SimSpace::Shared => statistics.shared_accesses += 1,
        }
        if let Some(tally) = &mut self.tally {
            let Who { lane, loc } = who;
            tally.note(Noted { shared: space == SimSpace::Shared, store, loc, lane, addr, bytes });
        }
    }

    /// Reads and writes memory atomically.
    ///
    /// # Safety
    /// `global` returns pointers as [`super::run`] requires.
    pub unsafe fn atomic(
        &mut self,
        global: &dyn Global,
        lane: u32,
        r: &AtomicRequest,
    ) -> Result<Done, Wrong> {
        let unknown = |what: &str, code: i32| {
            Wrong::new(FaultKind::Call, format!("an atomic is called with an unknown {what}, {code}"))
        };
        let of = |code: i32| usize::try_from(code).unwrap_or(usize::MAX);
        let op = *AtomicOp::ALL.get(of(r.op)).ok_or_else(|| unknown("operation", r.op))?;
        let dtype = *DType::ALL.get(of(r.ty)).ok_or_else(|| unknown("type", r.ty))?;
        let space = SimSpace::from_code(r.space).ok_or_else(|| unknown("memory", r.space))?;
        let order = Order::from_code(r.order).ok_or_else(|| unknown("order", r.order))?;
        Scope::from_code(r.scope).ok_or_else(|| unknown("scope", r.scope))?;
        let access_kind = match op {
            AtomicOp::Load => AccessKind::AtomicRead,
            AtomicOp::Store => AccessKind::AtomicWrite,
            AtomicOp::Add | AtomicOp::Max | AtomicOp::Min | AtomicOp::And | AtomicOp::Or => {
                AccessKind::AtomicUpdate
            }
            AtomicOp::Xor | AtomicOp::Xchg | AtomicOp::Cas => AccessKind::AtomicUpdate,
        };
        let size = dtype.bytes();
        let who = Who { lane, loc: r.loc };
        let (memory, _) = self.reach(global, who, (space, r.addr, size as i32), access_kind)?;
        let mut bytes = [0; 8];
        // SAFETY: `reach` has found an element of this size there, and none has more than 8 bytes.
        unsafe { std::ptr::copy_nonoverlapping(memory, bytes.as_mut_ptr(), size.min(8)) };
        let bits = u64::from_le_bytes(bytes);
        // Bytes of memory may have any value: every value but 0 is true.
        let old = Scalar::from_bits(dtype, if dtype == DType::Bool { u64::from(bits != 0) } else { bits });
        let value = |bits: u64| Scalar::from_bits(dtype, bits);
        let after = updated(op, old, value(r.value), value(r.compare))?;
        if let Some(after) = after {
            let bytes = after.bits().to_le_bytes();
            // SAFETY: as above.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), memory, size.min(8)) };
        }
        if order.acquires() {
            self.clock.acquire(lane, (space, r.addr));
        }
        if order.releases() {
            self.clock.release(lane, (space, r.addr));
        }
        let before = if op == AtomicOp::Store { 0 } else { old.bits() };
        Ok(Done { before, changed: after.is_some_and(|a| a != old) })
    }

    /// The address of these bytes in host memory, if the lane may access them.
    fn reach(
        &mut self,
        global: &dyn Global,
        who: Who,
        (space, addr, bytes): (SimSpace, u64, i32),
        access_kind: AccessKind,
    ) -> Result<(*mut u8, usize), Wrong> {
        if ![1, 2, 4, 8, 16].contains(&bytes) {
            return Err(Wrong::new(FaultKind::Call, format!("an access is called with {bytes} bytes")));
        }
        let size = bytes as usize;
        if !addr.is_multiple_of(size as u64) {
            return Err(Wrong::new(
                FaultKind::Misaligned,
                format!("{size} bytes at the address {addr:#x} of {} are not aligned", name(space)),
            ));
        }
        let memory = match space {
            SimSpace::Global => {
                global.resolve(addr, size).map_err(|message| Wrong::new(FaultKind::Global, message))?
            }
            SimSpace::Shared => {
                let found =
                    usize::try_from(addr).ok().and_then(|at| self.shared.get_mut(at..)?.get_mut(..size));
                let Some(found) = found else { return Err(self.outside(addr, size)) };
                found.as_mut_ptr()
            }
        };
        let by = Stamp { time: self.clock.now(), lane: who.lane, loc: who.loc };
        let touch = Touch { at: 0, bytes: size, access_kind, by, strict: space == SimSpace::Shared };
        let found = match space {
            SimSpace::Global => self.pages.touch(addr, touch, &self.clock),
            SimSpace::Shared => self.shadow.touch(Touch { at: addr as usize, ..touch }, &self.clock),
        };
        found.map_err(|conflict| explain(&conflict, space, addr, &touch))?;
        Ok((memory, size))
    }

    #[cold]
    fn outside(&self, addr: u64, size: usize) -> Wrong {
        let len = self.shared.len();
        Wrong::new(
            FaultKind::Shared,
            format!(
                "{size} bytes at byte {addr} of shared memory are touched, of which the program has {len}"
            ),
        )
    }
}

fn name(space: SimSpace) -> &'static str {
    match space {
        SimSpace::Global => "device memory",
        SimSpace::Shared => "shared memory",
    }
}

#[cold]
fn explain(conflict: &Conflict, space: SimSpace, addr: u64, t: &Touch) -> Wrong {
    let (space, size, lane) = (name(space), t.bytes, t.by.lane);
    match *conflict {
        Conflict::Unwritten => Wrong::new(
            FaultKind::Unwritten,
            format!(
                "lane {lane} reads {size} bytes at byte {addr} of shared memory, which no lane has written yet"
            ),
        ),
        Conflict::Race { before, wrote } => {
            let did = if wrote { "wrote" } else { "read" };
            let does = match t.access_kind {
                AccessKind::Read => "reads",
                AccessKind::Write => "writes",
                AccessKind::AtomicRead => "atomically reads",
                AccessKind::AtomicWrite => "atomically writes",
                AccessKind::AtomicUpdate => "atomically updates",
            };
            let message = format!(
                "lane {lane} {does} {size} bytes at {addr:#x} of {space}, which lane {} {did} before; nothing orders \
                 the two",
                before.lane
            );
            Wrong::with(FaultKind::Race, message, before.loc)
        }
    }
}

/// The new value in memory; `None` if it does not change.
fn updated(op: AtomicOp, old: Scalar, value: Scalar, compare: Scalar) -> Result<Option<Scalar>, Wrong> {
    let wrong = |_| {
        Wrong::new(
            FaultKind::Call,
            format!("an atomic cannot {} {}", op.name().trim_start_matches("atomic_"), old.dtype()),
        )
    };
    eval::atomic(op, old, value, compare).map_err(wrong)
}
