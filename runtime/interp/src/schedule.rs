//! The order in which the programs of a grid run: in parallel, and by turns where they may wait for each other.
//!
//! Guarantees that a program that has started goes on whatever the others do. Programs start in linear order (x
//! fastest). One that does many atomics may be waiting: others take their turn, and every second turn is that of a
//! program that has not started, unless too many are in flight.
//!
//! Of several faults the one of the lowest program is reported, as long as programs do not race and no time limit ends
//! them.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use tk_tile::FuncId;

use crate::code::Code;
use crate::exec::Context;
use crate::fault::Fault;
use crate::launch::Options;
use crate::machine::{Machine, Status};
use crate::value::Value;

/// Instructions between two looks at the clock: one on the largest tile takes milliseconds, so that a limit is kept
/// within a fraction of a second; one on a scalar takes 100 ns, so that the 25 ns of a look are not felt.
pub(crate) const SLICE: u32 = 32;

/// Programs of one worker that have started and not ended. A look-back chain against the order of the programs has as
/// many in flight as it is long; a program with a tile of 64 KiB keeps a few of them.
const IN_FLIGHT: usize = 1024;

/// Programs of a cooperative launch, all of which are in flight; more than any device holds at once.
const COOPERATIVE: u64 = 1 << 16;

/// Turns that a program gets when another one has failed, which it may wait for without end.
const LAST_TURNS: u32 = 1024;

/// What ends a launch before it is done: time that has passed, or somebody else.
pub(crate) struct Deadline {
    limit: Option<(Instant, Duration)>,
    stop: Option<Arc<AtomicBool>>,
}

impl Deadline {
    /// Begins now.
    pub fn new(options: &Options) -> Deadline {
        let limit = options.timeout.map(|limit| (Instant::now(), limit));
        Deadline { limit, stop: options.stop.clone() }
    }

    /// Fails when it is over.
    pub fn check(&self, machine: &Machine<'_, '_>) -> Result<(), Fault> {
        let message = match self.limit {
            _ if self.stop.as_ref().is_some_and(|s| s.load(Ordering::Relaxed)) => {
                "it was stopped".to_string()
            }
            Some((start, limit)) if start.elapsed() >= limit => {
                format!("it is still running after the time limit of {limit:?}; a loop may never end")
            }
            Some(_) | None => return Ok(()),
        };
        let program = if machine.host.is_none() { Some(machine.context.program) } else { None };
        Err(Fault::run(message).at(machine.loc(), program))
    }
}

/// Runs `total` programs of a kernel.
pub(crate) fn run(
    code: &Code<'_>,
    kernel: FuncId,
    values: &[Value],
    context: &Context,
    total: u64,
    options: &Options,
) -> Result<(), Fault> {
    if code.barrier && total > COOPERATIVE {
        let message = format!("a cooperative launch has at most {COOPERATIVE} programs, not {total}");
        return Err(Fault::new("E0705", message));
    }
    // Programs that meet are held by one worker: it alone knows when all of them have come. Checked mode and a trace
    // report the same in every run because the programs take turns in the same order.
    let workers = if code.barrier || context.space.is_observed() || code.debugging.is_some() {
        1
    } else {
        options.threads.unwrap_or_else(rayon::current_num_threads)
    };
    let workers = workers.max(1) as u64;
    let grid = Grid {
        kernel,
        code,
        values,
        context,
        total,
        // Several chunks for each worker even the load out; beyond 64 programs the counter costs nothing.
        chunk: (total / (workers * 16)).clamp(1, 64),
        next: AtomicU64::new(0),
        lowest: AtomicU64::new(u64::MAX),
        fault: Mutex::new(None),
        deadline: Deadline::new(options),
    };
    let workers = total.div_ceil(grid.chunk).min(workers);
    if workers <= 1 || is_forked() {
        Worker::new(&grid).work();
    } else {
        rayon::scope(|scope| (0..workers).for_each(|_| scope.spawn(|_| Worker::new(&grid).work())));
    }
    let fault = grid.fault.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    fault.map_or(Ok(()), Err)
}

/// Returns true if a `fork` made this process: the threads of the pool are those of its parent.
fn is_forked() -> bool {
    static FIRST: OnceLock<u32> = OnceLock::new();
    *FIRST.get_or_init(std::process::id) != std::process::id()
}

/// A launch on its way.
struct Grid<'c, 'm> {
    kernel: FuncId,
    code: &'c Code<'m>,
    values: &'c [Value],
    context: &'c Context,
    total: u64,
    /// Programs that a worker takes at a time.
    chunk: u64,
    next: AtomicU64,
    /// The lowest program that failed; those above need not run any more.
    lowest: AtomicU64,
    fault: Mutex<Option<Fault>>,
    deadline: Deadline,
}

impl Grid<'_, '_> {
    /// The programs below it matter.
    fn end(&self) -> u64 {
        self.lowest.load(Ordering::Relaxed)
    }

    fn failed(&self, p: u64, fault: Fault) {
        let mut slot = self.fault.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if p < self.lowest.load(Ordering::Relaxed) {
            self.lowest.store(p, Ordering::Relaxed);
            *slot = Some(fault);
        }
    }

    fn place(&self, p: u64) -> [u32; 3] {
        let [x, y, _] = self.context.grid.map(|d| u64::from(d).max(1));
        [(p % x) as u32, (p / x % y) as u32, (p / x / y) as u32]
    }
}

/// A program that has started.
struct Running<'c, 'm> {
    p: u64,
    machine: Machine<'c, 'm>,
    /// Turns since another one failed.
    last_turns: u32,
}

/// Instructions after which another program has its turn, though this one has done no atomics: it may be waiting with
/// plain loads. Longer than nearly all programs run, so that few are in flight; the interpreter needs about 0.1 s for them.
const LONG: u32 = 1 << 20;

/// Runs programs on one thread.
struct Worker<'g, 'c, 'm> {
    grid: &'g Grid<'c, 'm>,
    /// Programs that it has taken and not started.
    taken: Range<u64>,
    /// Programs that wait for their turn.
    waiting: VecDeque<Running<'c, 'm>>,
    /// Programs after a `grid_barrier`.
    met: Vec<Running<'c, 'm>>,
    /// The lowest program that has ended.
    ended: Option<u64>,
    /// Machines whose programs have ended.
    idle: Vec<Machine<'c, 'm>>,
    /// Whether the last turn was that of a program that had not started.
    started: bool,
}

impl<'g, 'c, 'm> Worker<'g, 'c, 'm> {
    fn new(grid: &'g Grid<'c, 'm>) -> Self {
        Worker {
            grid,
            taken: 0..0,
            waiting: VecDeque::new(),
            met: vec![],
            ended: None,
            idle: vec![],
            started: false,
        }
    }

    /// Runs programs until none is left. Every program below one that failed is finished by the thread that took it.
    fn work(&mut self) {
        loop {
            while let Some((mut running, fresh)) = self.choose() {
                let p = running.p;
                match self.turn(&mut running, fresh) {
                    Ok(Status::Done) => {
                        self.ended = Some(self.ended.map_or(p, |e| e.min(p)));
                        self.idle.push(running.machine);
                    }
                    Ok(Status::Barrier) => self.met.push(running),
                    Ok(Status::Turn | Status::Paused) => self.waiting.push_back(running),
                    Err(fault) => {
                        self.grid.failed(p, fault);
                        // The first report of checked mode is the same in every run: no need for the lowest program.
                        if self.grid.context.checked() {
                            return;
                        }
                        self.idle.push(running.machine);
                    }
                }
            }
            if self.met.is_empty() || self.grid.end() != u64::MAX {
                return;
            }
            if let (Some(p), Some(other)) = (self.ended, self.met.first()) {
                let message = "this program ended without reaching the `grid_barrier` where the others wait";
                let fault = Fault::run(message).at(other.machine.last_loc(), Some(self.grid.place(p)));
                return self.grid.failed(p, fault);
            }
            if let Some(checker) = &self.grid.context.space.checker {
                checker.barrier();
            }
            self.met.sort_by_key(|r| r.p);
            self.waiting.extend(self.met.drain(..));
        }
    }

    /// The program whose turn it is, and whether it has not started yet.
    fn choose(&mut self) -> Option<(Running<'c, 'm>, bool)> {
        let room = self.grid.code.barrier || self.waiting.len() < IN_FLIGHT;
        self.started = room && (!self.started || self.waiting.is_empty());
        let fresh = if self.started { self.claim() } else { None };
        if let Some(p) = fresh {
            let machine = self.idle.pop();
            let machine =
                machine.unwrap_or_else(|| Machine::new(self.grid.code, self.grid.context.clone(), None));
            return Some((Running { p, machine, last_turns: 0 }, true));
        }
        self.waiting.pop_front().map(|r| (r, false))
    }

    /// The next program that has not started.
    fn claim(&mut self) -> Option<u64> {
        if self.taken.is_empty() {
            let grid = self.grid;
            // Once all are taken the counter stays where it is: workers that wait come here often.
            if grid.next.load(Ordering::Relaxed) >= grid.total {
                return None;
            }
            let start = grid.next.fetch_add(grid.chunk, Ordering::Relaxed).min(grid.total);
            self.taken = start..(start + grid.chunk).min(grid.total);
        }
        self.taken.next().filter(|p| *p <= self.grid.end())
    }

    /// Runs a program until it ends, meets the others, or has done enough for a turn.
    fn turn(&self, running: &mut Running<'c, 'm>, fresh: bool) -> Result<Status, Fault> {
        let grid = self.grid;
        if fresh {
            running.machine.context.program = grid.place(running.p);
            running.machine.start(grid.kernel, grid.values)?;
            // A program may be shorter than a slice, and there may be many.
            grid.deadline.check(&running.machine)?;
        }
        if grid.end() != u64::MAX {
            running.last_turns += 1;
        }
        for _ in 0..LONG / SLICE {
            if running.p > grid.end() || running.last_turns > LAST_TURNS {
                return Ok(Status::Done);
            }
            match running.machine.run(SLICE)? {
                Status::Paused => grid.deadline.check(&running.machine)?,
                Status::Turn => {
                    grid.deadline.check(&running.machine)?;
                    return Ok(Status::Turn);
                }
                ended @ (Status::Done | Status::Barrier) => return Ok(ended),
            }
        }
        // Where another one has failed, a program that does nothing but wait is not waited for.
        running.last_turns += if grid.end() == u64::MAX { 0 } else { LAST_TURNS / 4 };
        Ok(Status::Turn)
    }
}
