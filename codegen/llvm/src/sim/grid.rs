//! Runs a launch: starts and schedules programs, and detects deadlocks.
//!
//! A plain kernel runs program after program. If a program does atomics on device memory, for which others may wait,
//! another started program gets a turn now and then, or one that has not started yet. All programs of a cooperative
//! launch start at once.

use std::collections::BTreeMap;
use std::time::Instant;

use super::block::{Block, Turn};
use super::env::Env;
use super::fault::{Fault, FaultKind, WaitKind, Waiting};
use super::fiber::Stacks;
use super::launch::{Global, Launch};
use super::random::{Order, Random};
use super::tally::Statistics;

/// Lanes that run at once, unless they must be more: the accessed parts of their stacks take about 32 MiB, and a few
/// concurrent launches stay below the limit of stacks of a process.
const IN_FLIGHT: usize = 4096;

/// A running launch.
struct Grid<'a> {
    env: Env<'a>,
    total: u64,
    /// The order in which programs start, and the number of those that have.
    order: Order,
    next: u64,
    /// Programs that can continue.
    active: Vec<Block>,
    /// Programs in which every lane waits.
    blocked: Vec<Block>,
    /// Structures for others.
    free: Vec<Block>,
    random: Random,
}

/// Runs a launch.
///
/// # Safety
/// As [`super::run`].
pub(super) unsafe fn run(launch: &Launch<'_>, memory: &dyn Global) -> Result<Statistics, Fault> {
    let Launch { threads, warp_size, .. } = *launch;
    if !warp_size.is_power_of_two() || threads == 0 || !threads.is_multiple_of(warp_size) {
        let message = format!("a launch has programs of {threads} lanes, in warps of {warp_size}");
        return Err(of_launch(FaultKind::Call, message));
    }
    let total = launch.grid.iter().try_fold(1u64, |n, d| n.checked_mul(u64::from(*d)));
    let total = total.ok_or_else(|| of_launch(FaultKind::Call, "a grid has 2^64 programs".to_string()))?;
    let mut random = Random::new(launch.seed, 0);
    let mut grid = Grid {
        env: Env {
            launch,
            memory,
            statistics: Statistics::default(),
            stacks: Stacks::default(),
            polls: 0,
            waiting: 0,
            started: Instant::now(),
            requests: 0,
        },
        total,
        order: Order::new(total, &mut random),
        next: 0,
        active: vec![],
        blocked: vec![],
        free: vec![],
        random,
    };
    // SAFETY: the caller satisfies the requirements.
    let result = unsafe { grid.work() };
    for block in grid.active.iter_mut().chain(&mut grid.blocked) {
        block.stop(&mut grid.env);
    }
    result.map(|()| grid.env.statistics)
}

fn of_launch(kind: FaultKind, message: String) -> Fault {
    Fault { kind, message, loc: -1, other: None, program: [0; 3], lane: None, waiting: vec![] }
}

impl Grid<'_> {
    /// Runs all programs.
    ///
    /// # Safety
    /// As [`super::run`].
    unsafe fn work(&mut self) -> Result<(), Fault> {
        let all = self.total.saturating_mul(self.env.launch.threads.into());
        loop {
            let start = self.active.is_empty() || self.env.launch.cooperative;
            // SAFETY: the caller satisfies the requirements.
            if start && self.next < self.total && !unsafe { self.start() } {
                let message = format!("there is no memory for the stacks of {all} lanes that run at once");
                return Err(of_launch(FaultKind::Resource, message));
            }
            if self.env.launch.cooperative && self.next < self.total {
                continue;
            }
            if self.env.waiting == all && all > 0 {
                self.pass_grid_barrier();
            }
            let at = self.random.below(self.active.len());
            let Some(block) = self.active.get_mut(at) else { break };
            match block.turn(&mut self.env) {
                Ok(Turn::Done) => self.done(at),
                Ok(Turn::Blocked) if self.env.waiting > 0 => self.blocked.push(self.active.swap_remove(at)),
                Ok(Turn::Blocked) => return Err(self.deadlock()),
                // SAFETY: the caller satisfies the requirements.
                Ok(Turn::Pause) => unsafe { self.pause() },
                Err(fault) => return Err(self.explained(fault)),
            }
        }
        if self.blocked.is_empty() { Ok(()) } else { Err(self.deadlock()) }
    }

    /// Starts the next program; returns false if memory for its stacks cannot be allocated.
    ///
    /// # Safety
    /// As [`super::run`].
    unsafe fn start(&mut self) -> bool {
        let mut block = self.free.pop().unwrap_or_else(|| Block::new(&self.env));
        // SAFETY: the caller satisfies the requirements.
        if !unsafe { block.start(self.order.at(self.next), &mut self.env) } {
            return false;
        }
        self.next += 1;
        self.active.push(block);
        true
    }

    /// Lets others run, which may not have started yet.
    ///
    /// # Safety
    /// As [`super::run`].
    unsafe fn pause(&mut self) {
        let lanes = (self.active.len() + 1) * self.env.launch.threads as usize;
        if self.next < self.total && lanes <= IN_FLIGHT && self.random.below(self.active.len() + 1) == 0 {
            // SAFETY: the caller satisfies the requirements.
            unsafe { self.start() };
        }
    }

    /// A program has ended.
    fn done(&mut self, at: usize) {
        let mut block = self.active.swap_remove(at);
        if let Some(tally) = &mut block.reach.tally {
            tally.count(&mut self.env.statistics);
        }
        self.env.statistics.programs += 1;
        self.free.push(block);
    }

    /// All lanes of all programs have arrived at the grid barrier.
    fn pass_grid_barrier(&mut self) {
        self.env.waiting = 0;
        self.env.statistics.grid_barriers += 1;
        self.active.append(&mut self.blocked);
        self.active.iter_mut().for_each(|b| b.pass_all(&mut self.env));
    }

    /// Every lane waits.
    fn deadlock(&self) -> Fault {
        let fault = of_launch(FaultKind::Deadlock, "every lane waits for others".to_string());
        let mut fault = self.explained(fault);
        let mut all = self.blocked.iter().chain(&self.active);
        let found = all.find_map(|b| {
            let (lane, wait) = (0..).zip(&b.lanes).find_map(|(n, l)| Some((n, l.wait?)))?;
            Some((b.program, lane, wait.loc))
        });
        if let Some((program, lane, loc)) = found {
            (fault.program, fault.lane, fault.loc) = (program, Some(lane), loc);
            fault.other = fault.waiting.iter().map(|w| w.loc).find(|other| *other != loc);
        }
        fault
    }

    /// Adds the waiting lanes to a fault about them.
    fn explained(&self, mut fault: Fault) -> Fault {
        if !matches!(fault.kind, FaultKind::Deadlock | FaultKind::Timeout) {
            return fault;
        }
        let mut places: BTreeMap<(i32, WaitKind), u64> = BTreeMap::new();
        let lanes = self.active.iter().chain(&self.blocked).flat_map(|b| &b.lanes);
        for wait in lanes.filter_map(|l| l.wait) {
            *places.entry((wait.loc, wait.point.kind())).or_default() += 1;
        }
        fault.waiting = places.into_iter().map(|((loc, kind), lanes)| Waiting { loc, kind, lanes }).collect();
        let mut counts: BTreeMap<WaitKind, u64> = BTreeMap::new();
        fault.waiting.iter().for_each(|w| *counts.entry(w.kind).or_default() += w.lanes);
        for (between, (kind, lanes)) in std::iter::once(": ").chain(std::iter::repeat(", ")).zip(counts) {
            let (lanes, wait) =
                if lanes == 1 { ("1 lane".into(), "waits") } else { (format!("{lanes} lanes"), "wait") };
            fault.message += &format!("{between}{lanes} {wait} at {}", kind.name());
        }
        fault
    }
}
