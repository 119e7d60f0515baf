//! Runs one program: schedules its lanes, and serves their requests.
//!
//! A lane keeps running until it waits, polls, or the seed selects another one.

use super::access::{Reach, Who};
use super::calls::{GroupRequest, Request, SimSpace};
use super::copies::{self, Copies};
use super::env::Env;
use super::fault::{Fault, FaultKind, Wrong};
use super::fiber::{Entry, Fiber};
use super::mbarrier::Phases;
use super::random::Random;
use super::sync::{SyncPoint, SyncPoints, Wait};
use super::wgmma::{Products, Steps};

/// The probability, out of 256, that another lane runs after a request; a program draws one. The first lets each lane
/// run as far as possible, the last changes the lane all the time.
const SWITCHES: [u32; 4] = [0, 32, 128, 256];

/// The probability, out of 256, that another program runs after an atomic on device memory, and at the head of a loop:
/// large enough that a program that waits for another one is not much slower than that one, small enough for a plain
/// kernel with a few atomics to keep few programs running.
const AFTER_ATOMIC: u32 = 64;
const AFTER_STEP: u32 = 1;

/// A lane of a program.
#[derive(Default)]
pub(super) struct Lane {
    pub fiber: Option<Fiber>,
    /// The answer to its last request.
    pub reply: u64,
    /// The condition for which it waits.
    pub wait: Option<Wait>,
    /// The position of its last request.
    pub loc: i32,
    /// Its asynchronous copies.
    copies: Copies,
    /// Its wgmma products.
    pub steps: Steps,
}

/// The number of requests that a lane executes after a failed assertion of another lane, since it may find an earlier
/// one. A lane that exceeds it is assumed to wait for the failed one.
const AFTER_FAILURE: u32 = 1 << 16;

/// An assertion that failed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Failed {
    /// Its number, which is smaller for assertions that come earlier in the kernel, and the element of a tile.
    message: i32,
    element: i32,
    lane: u32,
    loc: i32,
}

/// The state of a program after a turn.
pub(super) enum Turn {
    /// All lanes have returned.
    Done,
    /// All other lanes wait.
    Blocked,
    /// Other programs may run.
    Pause,
}

/// The state of a lane after a request.
enum Next {
    /// The lane continues with this answer.
    Go(u64),
    /// It continues, but others should get a turn first.
    Yield(u64),
    /// It waits, or others have been released.
    Wait,
}

/// A program that has started.
pub(super) struct Block {
    pub program: [u32; 3],
    pub lanes: Vec<Lane>,
    /// The lanes that do not wait.
    pub runnable: Vec<u32>,
    pub sync_points: SyncPoints,
    pub reach: Reach,
    /// The products of each warpgroup.
    pub products: Vec<Products>,
    /// Its mbarriers, and copies of boxes.
    pub phases: Phases,
    pub random: Random,
    switch: u32,
    /// The first of the assertions that failed, and the requests until it is reported.
    failed: Option<(Failed, u32)>,
}

impl Block {
    /// Allocates for the programs of a launch, one after the other.
    pub fn new(env: &Env<'_>) -> Block {
        let l = env.launch;
        Block {
            program: [0; 3],
            lanes: (0..l.threads).map(|_| Lane::default()).collect(),
            runnable: vec![],
            sync_points: SyncPoints::new(l.threads, l.warp_size),
            reach: Reach::new(l.threads, l.warp_size, l.shared_bytes, l.banks),
            products: (0..l.threads.div_ceil(128)).map(|_| Products::default()).collect(),
            phases: Phases::default(),
            random: Random::new(0, 0),
            switch: 0,
            failed: None,
        }
    }

    /// Starts the program with this number; returns false if memory for its stacks cannot be allocated.
    ///
    /// # Safety
    /// As [`super::run`], as long as the program runs.
    pub unsafe fn start(&mut self, index: u64, env: &mut Env<'_>) -> bool {
        let l = env.launch;
        self.program = env.place(index);
        self.random = Random::new(l.seed, index.wrapping_add(1));
        self.switch = SWITCHES.get(self.random.below(SWITCHES.len())).copied().unwrap_or(0);
        self.reach.begin();
        self.sync_points.begin();
        self.products.iter_mut().for_each(|p| *p = Products::default());
        self.phases = Phases::default();
        self.runnable.clear();
        self.failed = None;
        for (lane, number) in self.lanes.iter_mut().zip(0..) {
            let Some(stack) = env.stacks.take() else {
                self.stop(env);
                return false;
            };
            let entry = Entry {
                kernel: l.kernel,
                args: l.args.as_ptr(),
                lane: number,
                program: self.program,
                grid: l.grid,
            };
            // SAFETY: the caller satisfies the requirements of `run`.
            let fiber = unsafe { Fiber::new(stack, entry) };
            *lane = Lane { fiber: Some(fiber), loc: -1, ..Lane::default() };
            self.runnable.push(number);
        }
        true
    }

    /// Ends all lanes and releases their stacks.
    pub fn stop(&mut self, env: &mut Env<'_>) {
        for stack in self.lanes.iter_mut().filter_map(|l| l.fiber.take()?.stop()) {
            env.stacks.put(stack);
        }
    }

    /// Runs lanes until all wait or have returned, or until it is the turn of other programs. A lane whose assertion
    /// fails stops there; the others continue as far as possible, so that the reported element does not depend on their
    /// order.
    pub fn turn(&mut self, env: &mut Env<'_>) -> Result<Turn, Fault> {
        let came = self.advance(env);
        let Some((first, left)) = self.failed else { return came };
        if let (Ok(Turn::Pause), true) = (&came, left > 0) {
            return came;
        }
        let Failed { message, element, lane, loc } = first;
        let wrong = Wrong::new(FaultKind::Assert { message, element }, "an assertion does not hold");
        Err(wrong.of(self.program, lane, loc))
    }

    /// Stops a lane forever.
    fn fail(&mut self, at: usize, failed: Failed) {
        self.runnable.swap_remove(at);
        let first = self.failed.map_or(failed, |(first, _)| first.min(failed));
        self.failed = Some((first, AFTER_FAILURE));
    }

    fn advance(&mut self, env: &mut Env<'_>) -> Result<Turn, Fault> {
        loop {
            let program = self.program;
            if self.boxes_arrive(env).map_err(|(wrong, lane, loc)| wrong.of(program, lane, loc))? {
                continue;
            }
            let at = self.random.below(self.runnable.len());
            let Some(lane) = self.runnable.get(at).copied() else { break };
            if let Some(turn) = self.run_lane(at, lane, env)? {
                return Ok(turn);
            }
        }
        Ok(if self.sync_points.returned() == self.lanes.len() as u32 { Turn::Done } else { Turn::Blocked })
    }

    /// Runs the lane at an index of `runnable` until another one should run.
    fn run_lane(&mut self, at: usize, lane: u32, env: &mut Env<'_>) -> Result<Option<Turn>, Fault> {
        let program = self.program;
        loop {
            let Some(l) = self.lanes.get_mut(lane as usize) else { return Ok(None) };
            let reply = l.reply;
            let Some(request) = l.fiber.as_mut().and_then(|f| f.resume(reply)) else {
                self.runnable.swap_remove(at);
                self.returned(lane, env)?;
                return Ok(None);
            };
            let loc = request.loc();
            l.loc = loc;
            if let Request::Assert { message, element, loc } = request {
                self.fail(at, Failed { message, element, lane, loc });
                return Ok(None);
            }
            if let Some((_, left)) = &mut self.failed {
                *left = left.saturating_sub(1);
                if *left == 0 {
                    return Ok(Some(Turn::Blocked));
                }
            }
            if let Request::Barrier { .. }
            | Request::WarpBarrier { .. }
            | Request::Shuffle { .. }
            | Request::Matrix { .. }
            | Request::Group(_)
            | Request::PhaseWait { .. }
            | Request::StoreWait { .. }
            | Request::GridBarrier { .. } = request
            {
                self.runnable.swap_remove(at);
            }
            let next = env.request().and_then(|()| self.serve(lane, &request, env));
            let (reply, stay) = match next.map_err(|wrong| wrong.of(program, lane, loc))? {
                Next::Go(reply) => (reply, !self.random.chance(self.switch)),
                Next::Yield(reply) => (reply, false),
                Next::Wait => return Ok(None),
            };
            if let Some(l) = self.lanes.get_mut(lane as usize) {
                l.reply = reply;
            }
            if !stay {
                return Ok(self.pauses(&request).then_some(Turn::Pause));
            }
        }
    }

    /// Returns true if it is the turn of another program after this request.
    fn pauses(&mut self, request: &Request) -> bool {
        match request {
            Request::Atomic(a) if a.space == SimSpace::Global as i32 => self.random.chance(AFTER_ATOMIC),
            Request::Step { .. } => self.random.chance(AFTER_STEP),
            Request::Atomic(_) | Request::Load { .. } | Request::Store { .. } | Request::Barrier { .. } => {
                false
            }
            Request::Copy(_) | Request::Commit | Request::Await { .. } => false,
            Request::Group(_) | Request::GroupCommit | Request::GroupWait { .. } => false,
            Request::ProxyFence
            | Request::Tensor(_)
            | Request::TensorStore(_)
            | Request::StoreWait { .. } => false,
            Request::PhaseBegin { .. } | Request::PhaseArrive { .. } | Request::PhaseWait { .. } => false,
            Request::WarpBarrier { .. } | Request::Shuffle { .. } | Request::GridBarrier { .. } => false,
            Request::Matrix { .. } | Request::Assert { .. } | Request::Print { .. } => false,
        }
    }

    /// Serves a request of a lane.
    fn serve(&mut self, lane: u32, request: &Request, env: &mut Env<'_>) -> Result<Next, Wrong> {
        let (memory, statistics) = (env.memory, &mut env.statistics);
        match *request {
            Request::Load { space, addr, bytes, dst, loc } => {
                // SAFETY: the lane waits and guarantees that this many bytes may be written there; `run` requires the
                // rest.
                unsafe { self.reach.load(memory, statistics, Who { lane, loc }, (space, addr, bytes), dst)? };
                env.polls = 0;
                Ok(Next::Go(0))
            }
            Request::Store { space, addr, bytes, src, loc } => {
                // SAFETY: the lane waits and guarantees that this many bytes may be read there; `run` requires the
                // rest.
                unsafe {
                    self.reach.store(memory, statistics, Who { lane, loc }, (space, addr, bytes), src)?
                };
                env.polls = 0;
                Ok(Next::Go(0))
            }
            Request::Atomic(ref atomic) => {
                statistics.atomics += 1;
                // SAFETY: required by `run`.
                let done = unsafe { self.reach.atomic(memory, lane, atomic)? };
                env.polled(done.changed)?;
                Ok(Next::Yield(done.before))
            }
            Request::Copy(copy) => {
                let Some(l) = self.lanes.get_mut(lane as usize) else { return Ok(Next::Go(0)) };
                // SAFETY: required by `run`.
                unsafe { l.copies.begin(&mut self.reach, memory, statistics, lane, copy)? };
                Ok(Next::Go(0))
            }
            Request::Await { pending, .. } => {
                let Some(l) = self.lanes.get_mut(lane as usize) else { return Ok(Next::Go(0)) };
                for copy in l.copies.due(u32::try_from(pending).unwrap_or(0)) {
                    // SAFETY: required by `run`.
                    unsafe { copies::arrive(&mut self.reach, memory, statistics, lane, &copy)? };
                }
                env.polls = 0;
                Ok(Next::Go(0))
            }
            Request::Barrier { id, threads, loc } => {
                let all = self.lanes.len() as i32;
                let threads = if threads == 0 { all } else { threads };
                self.meet(lane, Wait::at(SyncPoint::Barrier { id, threads }, loc), env)
            }
            Request::WarpBarrier { loc } => self.meet(lane, Wait::at(SyncPoint::Warp { loc }, loc), env),
            Request::Shuffle { mode, value, operand, loc } => {
                let wait = Wait { value, operand, ..Wait::at(SyncPoint::Shuffle { mode, loc }, loc) };
                self.meet(lane, wait, env)
            }
            Request::Matrix { what, addr, registers, loc } => {
                let at = Wait::at(SyncPoint::Matrix { what, loc }, loc);
                self.meet(lane, Wait { value: addr, registers: registers as usize, ..at }, env)
            }
            Request::Commit
            | Request::Group(_)
            | Request::GroupCommit
            | Request::GroupWait { .. }
            | Request::ProxyFence
            | Request::PhaseBegin { .. }
            | Request::PhaseArrive { .. }
            | Request::PhaseWait { .. }
            | Request::Tensor(_)
            | Request::TensorStore(_)
            | Request::StoreWait { .. } => self.serve_beside(lane, request, env),
            Request::GridBarrier { loc } => self.meet(lane, Wait::at(SyncPoint::Grid, loc), env),
            Request::Assert { .. } => Ok(Next::Wait),
            Request::Print { record, bytes } => {
                let len = usize::try_from(bytes).unwrap_or(0);
                let none = len == 0 || record.is_null();
                // SAFETY: the lane waits and guarantees that this many bytes may be read there.
                let bytes = if none { &[] } else { unsafe { std::slice::from_raw_parts(record, len) } };
                memory.print(self.program, lane, bytes);
                env.polls = 0;
                Ok(Next::Go(0))
            }
            Request::Step { .. } => Ok(Next::Yield(0)),
        }
    }

    /// Serves a request for an asynchronous operation of a lane.
    fn serve_beside(&mut self, lane: u32, request: &Request, env: &mut Env<'_>) -> Result<Next, Wrong> {
        match *request {
            Request::Commit => {
                self.lanes.get_mut(lane as usize).into_iter().for_each(|l| l.copies.commit());
                Ok(Next::Go(0))
            }
            Request::Group(GroupRequest { what, words, accumulators, loc }) => {
                let at = Wait::at(SyncPoint::Group { what, loc }, loc);
                self.meet(lane, Wait { registers: accumulators as usize, more: words as usize, ..at }, env)
            }
            Request::GroupCommit => {
                self.lanes.get_mut(lane as usize).into_iter().for_each(|l| l.steps.commit());
                Ok(Next::Go(0))
            }
            Request::GroupWait { pending, registers, words, .. } => {
                self.await_products(lane, pending, (registers, words), env)?;
                env.polls = 0;
                Ok(Next::Go(0))
            }
            Request::ProxyFence => {
                self.reach.fence(lane);
                Ok(Next::Go(0))
            }
            Request::PhaseBegin { address, arrivals, loc } => {
                self.begin_phase((lane, loc), address, arrivals, env).map(|()| Next::Go(0))
            }

            Request::PhaseArrive { address, bytes, .. } => {
                env.polls = 0;
                self.arrive_at_phase(lane, address, bytes).map(|()| Next::Go(0))
            }
            Request::PhaseWait { address, parity, loc } => {
                env.polls = 0;
                self.await_phase(lane, address, parity, loc).map(|()| Next::Wait)
            }
            Request::TensorStore(copy) => {
                // SAFETY: the launch passed the address of a map that outlives it.
                unsafe { self.begin_store(lane, copy, env)? };
                Ok(Next::Go(0))
            }
            Request::StoreWait { left, loc } => {
                self.await_stores(lane, left, loc);
                Ok(Next::Wait)
            }
            Request::Tensor(copy) => {
                // SAFETY: the launch passed the address of a map that outlives it.
                unsafe { self.begin_box(lane, copy, env)? };
                Ok(Next::Go(0))
            }
            _ => Ok(Next::Go(0)),
        }
    }

    fn meet(&mut self, lane: u32, wait: Wait, env: &mut Env<'_>) -> Result<Next, Wrong> {
        env.polls = 0;
        self.arrive(lane, wait, env).map(|()| Next::Wait)
    }

    /// A lane has returned: its stack is released, and no lane may wait for it.
    fn returned(&mut self, lane: u32, env: &mut Env<'_>) -> Result<(), Fault> {
        env.polls = 0;
        let stack = self.lanes.get_mut(lane as usize).and_then(|l| l.fiber.take()?.stop());
        stack.into_iter().for_each(|s| env.stacks.put(s));
        if let Some(loc) = self.leaves(lane) {
            let message = "a lane returns before what it stores has left shared memory";
            return Err(Wrong::new(FaultKind::Call, message).of(self.program, lane, loc));
        }
        self.leave(lane)
    }
}
