//! The state that all programs of a launch on the simulated target share.

use std::time::Instant;

use super::fault::{FaultKind, Wrong};
use super::fiber::Stacks;
use super::launch::{Global, Launch};
use super::tally::Statistics;

/// The number of consecutive atomics that change nothing, with no other request of any lane, after which a deadlock is
/// assumed. Of 4096 lanes each has had its turn 256 times by then on average, so that one that does not poll has too. A
/// kernel that does nothing but that many atomics that change nothing would be mistaken for one that waits.
const POLLS: u64 = 1 << 20;

/// Requests between two reads of the clock, which costs as much as one or two requests.
const SLICE: u32 = 1024;

/// The state that all programs of a launch share.
pub(super) struct Env<'a> {
    pub launch: &'a Launch<'a>,
    pub memory: &'a dyn Global,
    pub statistics: Statistics,
    pub stacks: Stacks,
    /// Atomics that changed nothing, since the last other request.
    pub polls: u64,
    /// Lanes that wait at the grid barrier.
    pub(super) waiting: u64,
    pub(super) started: Instant,
    pub(super) requests: u32,
}

impl Env<'_> {
    /// The position in the grid of the program with this number.
    pub fn place(&self, index: u64) -> [u32; 3] {
        let [x, y, _] = self.launch.grid.map(|d| u64::from(d).max(1));
        [(index % x) as u32, (index / x % y) as u32, (index / x / y) as u32]
    }

    /// Counts a request; fails when the time limit is exceeded.
    pub fn request(&mut self) -> Result<(), Wrong> {
        self.requests += 1;
        let Some(limit) = self.launch.timeout.filter(|_| self.requests >= SLICE) else { return Ok(()) };
        self.requests = 0;
        if self.started.elapsed() < limit {
            return Ok(());
        }
        let message = format!("it is still running after {limit:?}, the time limit; a loop may never end");
        Err(Wrong::new(FaultKind::Timeout, message))
    }

    /// Counts an atomic.
    pub fn polled(&mut self, changed: bool) -> Result<(), Wrong> {
        self.polls = if changed { 0 } else { self.polls + 1 };
        if self.polls < POLLS {
            return Ok(());
        }
        Err(Wrong::new(FaultKind::Deadlock, "lanes poll memory that nobody changes any more"))
    }

    /// Counts a lane that has arrived at the grid barrier.
    pub fn arrive_at_grid(&mut self) -> Result<(), Wrong> {
        self.waiting += 1;
        if self.launch.cooperative {
            return Ok(());
        }
        Err(Wrong::new(FaultKind::Call, "a grid barrier needs a cooperative launch"))
    }
}
