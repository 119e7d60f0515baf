//! The asynchronous copies of one lane.
//!
//! A GPU does a copy at any time between its start and the end of the wait for it. Here the previous contents of the
//! destination are destroyed at the start, and the elements arrive in the wait, so that a read in between finds
//! neither; a source that changes in between is a fault. Both count as writes of the lane, so that accesses of other
//! lanes that are not ordered with both are races.

use super::access::{Reach, Who};
use super::calls::{CopyRequest, SimSpace};
use super::fault::{FaultKind, Wrong};
use super::launch::Global;
use super::tally::Statistics;

/// The contents of the destination of a copy in flight: no float that a program computes with, and no small integer.
const DESTROYED: [u8; 16] = [0xa5; 16];

/// A copy that has started, with the contents of its source at that time.
#[derive(Clone, Copy)]
pub(super) struct Begun {
    copy: CopyRequest,
    found: [u8; 16],
}

/// The copies of a lane that may be in flight.
#[derive(Default)]
pub(super) struct Copies {
    /// With the numbers of their groups, in ascending order.
    list: Vec<(u32, Begun)>,
    /// The groups that are complete.
    groups: u32,
}

impl Copies {
    /// Makes the copies since the last commit a group.
    pub fn commit(&mut self) {
        self.groups += 1;
    }

    /// The copies that must arrive if this many groups may remain in flight.
    pub fn due(&mut self, pending: u32) -> Vec<Begun> {
        let done = self.groups.saturating_sub(pending);
        let (due, rest) = std::mem::take(&mut self.list).into_iter().partition(|(group, _)| *group < done);
        self.list = rest;
        let due: Vec<(u32, Begun)> = due;
        due.into_iter().map(|(_, copy)| copy).collect()
    }

    /// Starts a copy.
    ///
    /// # Safety
    /// `global` returns pointers as [`super::run`] requires.
    pub unsafe fn begin(
        &mut self,
        reach: &mut Reach,
        global: &dyn Global,
        statistics: &mut Statistics,
        lane: u32,
        copy: CopyRequest,
    ) -> Result<(), Wrong> {
        if ![4, 8, 16].contains(&copy.bytes) || ![0, copy.bytes].contains(&copy.read) {
            let message = format!("a copy is called with {} of {} bytes", copy.read, copy.bytes);
            return Err(Wrong::new(FaultKind::Call, message));
        }
        let who = Who { lane, loc: copy.loc };
        let mut found = [0; 16];
        // SAFETY: both buffers have as many bytes as the widest copy; the caller guarantees the rest.
        unsafe {
            if copy.read > 0 {
                let from = (SimSpace::Global, copy.from, copy.bytes);
                reach.load(global, statistics, who, from, found.as_mut_ptr())?;
            }
            let to = (SimSpace::Shared, copy.to.into(), copy.bytes);
            reach.store(global, statistics, who, to, DESTROYED.as_ptr())?;
        }
        self.list.push((self.groups, Begun { copy, found }));
        Ok(())
    }
}

/// The elements of a copy arrive.
///
/// # Safety
/// `global` returns pointers as [`super::run`] requires.
pub(super) unsafe fn arrive(
    reach: &mut Reach,
    global: &dyn Global,
    statistics: &mut Statistics,
    lane: u32,
    begun: &Begun,
) -> Result<(), Wrong> {
    let copy = &begun.copy;
    let who = Who { lane, loc: copy.loc };
    let mut elements = [0; 16];
    // SAFETY: the buffer has as many bytes as the widest copy; the caller guarantees the rest.
    unsafe {
        if copy.read > 0 {
            reach.load(
                global,
                statistics,
                who,
                (SimSpace::Global, copy.from, copy.bytes),
                elements.as_mut_ptr(),
            )?;
        }
        if elements != begun.found {
            let (bytes, from) = (copy.bytes, copy.from);
            let message =
                format!("{bytes} bytes at {from:#x} of device memory change while lane {lane} copies them");
            return Err(Wrong::new(FaultKind::Race, message));
        }
        reach.store(
            global,
            statistics,
            who,
            (SimSpace::Shared, copy.to.into(), copy.bytes),
            elements.as_ptr(),
        )
    }
}
