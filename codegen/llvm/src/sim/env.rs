//! What all programs of a launch on the simulated target share.

use std::time::Instant;

use super::fault::{FaultKind, Wrong};
use super::fiber::Stacks;
use super::launch::{Global, Launch};
use super::tally::Statistics;

/// Atomics in a row that change nothing, without anything else by any lane, after which nothing is thought to change any
/// more. Of 4096 lanes each has had its turn 256 times by then on average, so that one that does not poll has too. A kernel
/// in which nothing happens but so many atomics that change nothing would be taken for one that waits.
const POLLS: u64 = 1 << 20;

/// Requests between two looks at the clock, which takes as long as one or two requests.
const SLICE: u32 = 1024;

/// What all programs of a launch share.
pub(super) struct Env<'a> {
    pub launch: &'a Launch<'a>,
    pub memory: &'a dyn Global,
    pub statistics: Statistics,
    pub stacks: Stacks,
    /// Atomics that changed nothing, since something else happened.
    pub polls: u64,
    /// Lanes that wait at the grid barrier.
    pub(super) waiting: u64,
    pub(super) started: Instant,
    pub(super) requests: u32,
}

impl Env<'_> {
    /// Where the program with this number is in the grid.
    pub fn place(&self, index: u64) -> [u32; 3] {
        let [x, y, _] = self.launch.grid.map(|d| u64::from(d).max(1));
        [(index % x) as u32, (index / x % y) as u32, (index / x / y) as u32]
    }

    /// A request comes; fails when the time is over.
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

    /// An atomic was done.
    pub fn polled(&mut self, changed: bool) -> Result<(), Wrong> {
        self.polls = if changed { 0 } else { self.polls + 1 };
        if self.polls < POLLS {
            return Ok(());
        }
        Err(Wrong::new(FaultKind::Deadlock, "lanes poll memory that nobody changes any more"))
    }

    /// A lane has come to the grid barrier.
    pub fn came_to_grid(&mut self) -> Result<(), Wrong> {
        self.waiting += 1;
        if self.launch.cooperative {
            return Ok(());
        }
        Err(Wrong::new(FaultKind::Call, "a grid barrier needs a cooperative launch"))
    }
}
