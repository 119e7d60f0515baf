//! mbarriers, which count arrivals and bytes, and copies of boxes, which are asynchronous.
//!
//! A GPU does such a copy to shared memory at any time after its start. Here the previous contents of the destination
//! are destroyed at the start, its elements arrive at a time that the seed draws, at the latest when every lane waits,
//! and then its bytes count for its mbarrier. A copy to device memory reads shared memory at one such time, and writes
//! at a later one, which may be after the end of its program if no lane waits for it. The placement of a box in shared
//! memory is written here as in the PTX manual ("Swizzling modes"), not taken from [`tk_gpu::analysis::wgmma_shared`],
//! so that a bug there is found.

use std::collections::BTreeMap;

use tk_gpu::ir::tensor_map::MOST_DIMENSIONS;

use super::access::Who;
use super::block::Block;
use super::calls::{AtomicRequest, SimSpace, TensorRequest};
use super::env::Env;
use super::fault::{FaultKind, Wrong};
use super::sync::{SyncPoint, Wait};

/// Bytes that stay together in every order.
const CHUNK: usize = 16;
/// The contents of the destination of a copy in flight: no float that a program computes with, and no small integer.
const DESTROYED: [u8; CHUNK] = [0xa5; CHUNK];
/// The contents of an mbarrier.
const BARRIER: [u8; 8] = *b"barrier!";
/// The probability, out of 256, that a copy in flight arrives between two turns of lanes.
const ARRIVES: u32 = 24;

/// The fraction, out of 256, of late copies to device memory.
const LATE: u32 = 128;
/// The probability, out of 256, that a late copy which has left shared memory then arrives in device memory: in a loop,
/// the one of the next iteration may overtake it.
const ARRIVES_LATE: u32 = 4;

/// The limit of strides in bytes: that of `cuTensorMapEncodeTiled`.
const FARTHEST: u64 = 1 << 40;

/// A tensor map, in the form of the simulated target.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimTensorMap {
    /// The address of the first element.
    pub address: u64,
    /// The dimensions, the fastest first: the first are those of a line and of the lines of a box.
    pub dimensions: [SimDimension; MOST_DIMENSIONS],
    /// Bytes of an element.
    pub bytes: u32,
    /// Lines of a box.
    pub lines: u32,
    /// Bytes of a line.
    pub span: u32,
}

/// A dimension of a tensor.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimDimension {
    /// Its extent.
    pub extent: u64,
    /// The stride in bytes. Addresses have 64 bits; those that do not fit are out of bounds.
    pub step: u64,
}

impl SimDimension {
    /// A dimension that the tensor lacks.
    pub const NONE: SimDimension = SimDimension { extent: 1, step: 0 };
}

impl SimTensorMap {
    /// Fails if TMA does not accept it, or a box at this address or that begins at this element of a line.
    fn takes(&self, shared: u32, column: i32) -> Result<(), Wrong> {
        let fits = [32, 64, 128].contains(&self.span)
            && (1..=256).contains(&self.lines)
            && self.bytes.is_power_of_two()
            && self.address.is_multiple_of(16)
            && self.dimensions.iter().skip(1).all(|d| d.step.is_multiple_of(16) && d.step < FARTHEST)
            && (i64::from(column) * i64::from(self.bytes)) % CHUNK as i64 == 0
            && shared.is_multiple_of(8 * self.span);
        let (lines, span) = (self.lines, self.span);
        let message = || {
            format!(
                "a box of {lines} lines of {span} bytes from element {column} of a line lies at byte {shared} of \
                 shared memory"
            )
        };
        if fits { Ok(()) } else { Err(Wrong::new(FaultKind::Call, message())) }
    }

    /// The address of an element of a box that begins at these positions, if it is in bounds.
    fn place(&self, at: &[i32; MOST_DIMENSIONS], line: u32, column: u32) -> Option<u64> {
        let beside = [column, line].into_iter().chain(std::iter::repeat(0));
        let at = at.iter().zip(beside).map(|(at, by)| i64::from(*at) + i64::from(by));
        self.dimensions.iter().zip(at).try_fold(self.address, |from, (d, at)| {
            let at = u64::try_from(at).ok().filter(|at| *at < d.extent)?;
            Some(from.wrapping_add(at.wrapping_mul(d.step)))
        })
    }
}

/// An mbarrier.
#[derive(Clone, Copy)]
struct Phase {
    /// Arrivals of a phase, and the number missing in this one.
    arrivals: u32,
    missing: u32,
    /// Bytes that were announced and have not arrived.
    bytes: i64,
    /// Completed phases.
    over: u32,
}

/// The mbarriers and copies of a program.
#[derive(Default)]
pub(super) struct Phases {
    barriers: BTreeMap<u32, Phase>,
    /// Copies to shared memory in flight.
    begun: Vec<Begun>,
    /// Copies to device memory in flight.
    stores: Vec<Store>,
}

/// A copy, with the lane that started it.
#[derive(Clone, Copy)]
struct Begun {
    lane: u32,
    copy: TensorRequest,
    map: SimTensorMap,
}

impl Begun {
    /// Fails if TMA does not support it.
    ///
    /// # Safety
    /// The request has the address of a [`SimTensorMap`].
    unsafe fn new(lane: u32, copy: TensorRequest) -> Result<Begun, Wrong> {
        // SAFETY: guaranteed by the caller.
        let map = unsafe { *(copy.map as *const SimTensorMap) };
        map.takes(copy.shared, copy.at[0])?;
        Ok(Begun { lane, copy, map })
    }

    fn who(&self) -> Who {
        Who { lane: self.lane, loc: self.copy.loc }
    }
}

/// A copy to device memory.
struct Store {
    begun: Begun,
    /// The data that has left shared memory, and its addresses.
    left: Option<Vec<(u64, Vec<u8>)>>,
    late: bool,
}

fn wrong(address: u32) -> Wrong {
    Wrong::new(FaultKind::Call, format!("there is no barrier at byte {address} of shared memory"))
}

impl Block {
    /// A lane initializes an mbarrier.
    pub fn begin_phase(
        &mut self,
        (lane, loc): (u32, i32),
        address: u32,
        arrivals: i32,
        env: &mut Env<'_>,
    ) -> Result<(), Wrong> {
        let arrivals = u32::try_from(arrivals).unwrap_or(0);
        if !address.is_multiple_of(8) || arrivals == 0 {
            let message = format!("a barrier of {arrivals} arrivals at byte {address} of shared memory");
            return Err(Wrong::new(FaultKind::Call, message));
        }
        self.reach.fill(env.memory, Who { lane, loc }, address, &BARRIER)?;
        let phase = Phase { arrivals, missing: arrivals, bytes: 0, over: 0 };
        self.phases.barriers.insert(address, phase);
        Ok(())
    }

    /// Fails if an mbarrier was overwritten.
    fn is_whole(&self, address: u32) -> Result<(), Wrong> {
        if self.reach.shared_bytes(address, BARRIER.len()) == Some(&BARRIER) {
            return Ok(());
        }
        let message = format!("the barrier at byte {address} of shared memory was overwritten");
        Err(Wrong::new(FaultKind::Race, message))
    }

    /// A lane arrives and announces bytes.
    pub fn arrive_at_phase(&mut self, lane: u32, address: u32, bytes: i32) -> Result<(), Wrong> {
        self.is_whole(address)?;
        let phase = self.phases.barriers.get_mut(&address).ok_or_else(|| wrong(address))?;
        if phase.missing == 0 {
            let message = format!("more lanes arrive at a barrier than the {} it counts", phase.arrivals);
            return Err(Wrong::new(FaultKind::Call, message));
        }
        phase.missing -= 1;
        phase.bytes += i64::from(bytes);
        self.reach.clock.release(lane, (SimSpace::Shared, address.into()));
        self.end_phase(address);
        Ok(())
    }

    /// Completes a phase if all have arrived, and releases the waiting lanes.
    fn end_phase(&mut self, address: u32) {
        let Some(phase) = self.phases.barriers.get_mut(&address) else { return };
        if phase.missing > 0 || phase.bytes != 0 {
            return;
        }
        (phase.missing, phase.over) = (phase.arrivals, phase.over.wrapping_add(1));
        let over = phase.over;
        for (lane, n) in self.lanes.iter_mut().zip(0..) {
            let here = lane.wait.is_some_and(|w| match w.point {
                SyncPoint::Phase { address: at, parity } => at == address && is_over(over, parity),
                _ => false,
            });
            if here {
                lane.wait = None;
                self.reach.clock.acquire(n, (SimSpace::Shared, address.into()));
                self.runnable.push(n);
            }
        }
    }

    /// A lane waits until a phase is complete.
    pub fn await_phase(&mut self, lane: u32, address: u32, parity: u32, loc: i32) -> Result<(), Wrong> {
        self.is_whole(address)?;
        let phase = self.phases.barriers.get(&address).ok_or_else(|| wrong(address))?;
        if is_over(phase.over, parity) {
            self.reach.clock.acquire(lane, (SimSpace::Shared, address.into()));
            self.runnable.push(lane);
        } else if let Some(l) = self.lanes.get_mut(lane as usize) {
            l.wait = Some(Wait::at(SyncPoint::Phase { address, parity }, loc));
        }
        Ok(())
    }

    /// A lane starts a copy of a box.
    ///
    /// # Safety
    /// The request has the address of a [`SimTensorMap`].
    pub unsafe fn begin_box(
        &mut self,
        lane: u32,
        copy: TensorRequest,
        env: &mut Env<'_>,
    ) -> Result<(), Wrong> {
        // SAFETY: guaranteed by the caller.
        let begun = unsafe { Begun::new(lane, copy)? };
        if !self.phases.barriers.contains_key(&copy.barrier) {
            return Err(wrong(copy.barrier));
        }
        for (to, _) in chunks(&begun.map, copy.shared) {
            self.reach.fill(env.memory, begun.who(), to, &DESTROYED)?;
        }
        self.reach.fence(lane);
        self.phases.begun.push(begun);
        Ok(())
    }

    /// A lane starts to store a box.
    ///
    /// # Safety
    /// The request has the address of a [`SimTensorMap`].
    pub unsafe fn begin_store(
        &mut self,
        lane: u32,
        copy: TensorRequest,
        env: &mut Env<'_>,
    ) -> Result<(), Wrong> {
        // SAFETY: guaranteed by the caller.
        let begun = unsafe { Begun::new(lane, copy)? };
        // As H100s do.
        if copy.at.iter().any(|at| *at < 0) {
            let message = format!("a box is stored at the negative position {:?}", copy.at);
            return Err(Wrong::new(FaultKind::Call, message));
        }
        // A later fence does not help.
        for (from, _) in chunks(&begun.map, copy.shared) {
            self.reach.read_by_async_proxy(env.memory, begun.who(), from.into(), &mut [0; CHUNK])?;
        }
        let late = self.random.chance(LATE);
        self.phases.stores.push(Store { begun, left: None, late });
        Ok(())
    }

    /// A lane waits until all of its stores have been read from shared memory, or have arrived.
    pub fn await_stores(&mut self, lane: u32, left: bool, loc: i32) {
        if let Some(l) = self.lanes.get_mut(lane as usize) {
            l.wait = Some(Wait::at(SyncPoint::Stored { left }, loc));
        }
        self.end_stores(lane);
    }

    /// The source position of a store of a lane that has not been read from shared memory.
    pub fn leaves(&self, lane: u32) -> Option<i32> {
        self.phases.stores.iter().find(|s| s.begun.lane == lane && s.left.is_none()).map(|s| s.begun.copy.loc)
    }

    /// A lane that waits for its stores continues when they are done.
    fn end_stores(&mut self, lane: u32) {
        let mut own = self.phases.stores.iter().filter(|s| s.begun.lane == lane);
        let Some(l) = self.lanes.get_mut(lane as usize) else { return };
        let Some(SyncPoint::Stored { left }) = l.wait.map(|w| w.point) else { return };
        if own.all(|s| left && s.left.is_some()) {
            l.wait = None;
            self.runnable.push(lane);
        }
    }

    /// Lets a copy arrive if it is time, or if nothing else can happen; returns whether one did.
    pub fn boxes_arrive(&mut self, env: &mut Env<'_>) -> Result<bool, (Wrong, u32, i32)> {
        let count = self.phases.begun.len() + self.phases.stores.len();
        if count == 0 || !self.runnable.is_empty() && !self.random.chance(ARRIVES) {
            return Ok(false);
        }
        let at = self.random.below(count);
        match at.checked_sub(self.phases.begun.len()) {
            None => {
                let begun = self.phases.begun.swap_remove(at);
                self.arrive_box(&begun, env).map_err(|w| (w, begun.lane, begun.copy.loc))?;
            }
            Some(at) => {
                let late = self.phases.stores.get(at).is_some_and(|s| s.late && s.left.is_some());
                if late && !self.runnable.is_empty() && !self.random.chance(ARRIVES_LATE) {
                    return Ok(false);
                }
                let store = self.phases.stores.swap_remove(at);
                let begun = store.begun;
                self.store_box(store, env).map_err(|w| (w, begun.lane, begun.copy.loc))?;
            }
        }
        Ok(true)
    }

    /// A box leaves shared memory, or arrives in device memory.
    fn store_box(&mut self, store: Store, env: &mut Env<'_>) -> Result<(), Wrong> {
        let Store { begun, left, late } = store;
        let Begun { lane, copy, map } = begun;
        let who = begun.who();
        match left {
            Some(elements) => {
                for (to, element) in elements {
                    match copy.adds.checked_sub(1).filter(|ty| *ty >= 0) {
                        Some(ty) => {
                            let add = AtomicRequest::adds(ty, to, &element, copy.loc);
                            // SAFETY: the memory of the launch is as `run` requires.
                            unsafe { self.reach.atomic(env.memory, lane, &add)? };
                        }
                        None => self.reach.put(env.memory, who, to, &element)?,
                    }
                }
            }
            None => {
                let mut elements = vec![];
                for (from, (line, first)) in chunks(&map, copy.shared) {
                    let mut bytes = [0; CHUNK];
                    self.reach.read_by_async_proxy(env.memory, who, from.into(), &mut bytes)?;
                    for (n, element) in bytes.chunks(map.bytes as usize).enumerate() {
                        let to = map.place(&copy.at, line, first / map.bytes + n as u32);
                        elements.extend(to.map(|to| (to, element.to_vec())));
                    }
                }
                self.phases.stores.push(Store { begun, left: Some(elements), late });
            }
        }
        self.end_stores(lane);
        env.polls = 0;
        Ok(())
    }

    fn arrive_box(&mut self, begun: &Begun, env: &mut Env<'_>) -> Result<(), Wrong> {
        let Begun { lane, copy, map } = *begun;
        let who = begun.who();
        let each = map.bytes as usize;
        for (to, (line, first)) in chunks(&map, copy.shared) {
            let mut bytes = [0; CHUNK];
            for (n, chunk) in bytes.chunks_mut(each).enumerate() {
                if let Some(from) = map.place(&copy.at, line, first / map.bytes + n as u32) {
                    self.reach.look(env.memory, who, from, chunk)?;
                }
            }
            self.reach.fill(env.memory, who, to, &bytes)?;
        }
        // Copies write through the async proxy, through which wgmma reads.
        self.reach.fence(lane);
        if let Some(phase) = self.phases.barriers.get_mut(&copy.barrier) {
            phase.bytes -= i64::from(map.lines * map.span);
        }
        self.reach.clock.release(lane, (SimSpace::Shared, copy.barrier.into()));
        self.end_phase(copy.barrier);
        env.polls = 0;
        Ok(())
    }
}

fn is_over(over: u32, parity: u32) -> bool {
    over & 1 != parity & 1
}

/// The chunks of a box: the address of each, its line, and its first byte in the line.
fn chunks(map: &SimTensorMap, to: u32) -> impl Iterator<Item = (u32, (u32, u32))> + use<> {
    let (lines, span) = (map.lines, map.span);
    (0..lines).flat_map(move |line| {
        (0..span).step_by(CHUNK).map(move |at| {
            let address = to + line * span + at;
            (address ^ (address >> 3 & (span - CHUNK as u32)), (line, at))
        })
    })
}
