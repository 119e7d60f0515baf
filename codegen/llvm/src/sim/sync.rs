//! Synchronizes the lanes of a program: barriers, shuffles, and their misuse.
//!
//! The lanes of a warp synchronize with others together, as GPUs require: while one of them waits, the others may only
//! arrive at the same operation.

use super::block::Block;
use super::calls::{GroupCall, MatrixCall, Shuffle};
use super::env::Env;
use super::fault::{Fault, FaultKind, WaitKind, Wrong};

/// Warps of a warpgroup.
const WARPS_OF_GROUP: u32 = 4;

/// The operation at which a lane waits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SyncPoint {
    /// A barrier of this many lanes.
    Barrier { id: i32, threads: i32 },
    /// The warp, at this position.
    Warp { loc: i32 },
    /// The warp, at this position, with values.
    Shuffle { mode: i32, loc: i32 },
    /// The warp, at this position, with matrices.
    Matrix { what: MatrixCall, loc: i32 },
    /// Four warps, at this position, with matrices.
    Group { what: GroupCall, loc: i32 },
    /// No lane: the completion of a phase of an mbarrier.
    Phase { address: u32, parity: u32 },
    /// No lane: the lane's stores have been read from shared memory, or have arrived.
    Stored { left: bool },
    /// All lanes of all programs.
    Grid,
}

impl SyncPoint {
    pub fn kind(self) -> WaitKind {
        match self {
            SyncPoint::Barrier { .. } => WaitKind::Barrier,
            SyncPoint::Warp { .. } => WaitKind::WarpBarrier,
            SyncPoint::Shuffle { .. } => WaitKind::Shuffle,
            SyncPoint::Matrix { .. } => WaitKind::Matrix,
            SyncPoint::Group { .. } => WaitKind::Group,
            SyncPoint::Phase { .. } => WaitKind::Phase,
            SyncPoint::Stored { .. } => WaitKind::Stored,
            SyncPoint::Grid => WaitKind::GridBarrier,
        }
    }
}

/// A waiting lane.
#[derive(Clone, Copy)]
pub(super) struct Wait {
    pub point: SyncPoint,
    pub loc: i32,
    /// Its value for a shuffle; for a matrix the address of a row.
    pub value: u32,
    pub operand: u32,
    /// The address of its own memory with words of matrices.
    pub registers: usize,
    /// The same for words of an operand.
    pub more: usize,
}

impl Wait {
    /// Without a value.
    pub fn at(point: SyncPoint, loc: i32) -> Wait {
        Wait { point, loc, value: 0, operand: 0, registers: 0, more: 0 }
    }
}

/// The lanes of a warp that do not run.
#[derive(Clone, Copy, Default)]
struct Warp {
    point: Option<SyncPoint>,
    waiting: u32,
    /// The position of the last lane that has returned.
    returned: Option<i32>,
}

/// The waiting lanes of a program.
pub(super) struct SyncPoints {
    pub warp_size: u32,
    warps: Vec<Warp>,
    /// The barriers with waiting lanes: id, lanes expected, lanes that have arrived.
    barriers: Vec<(i32, i32, i32)>,
    returned: u32,
    /// The position of the last lane that has returned.
    last_returned: i32,
    /// The results of a shuffle; kept for reuse.
    values: Vec<u32>,
}

impl SyncPoints {
    /// For programs with this many lanes.
    pub fn new(lanes: u32, warp_size: u32) -> SyncPoints {
        SyncPoints {
            warp_size,
            warps: vec![Warp::default(); (lanes / warp_size) as usize],
            barriers: vec![],
            returned: 0,
            last_returned: -1,
            values: vec![],
        }
    }

    /// Begins another program.
    pub fn begin(&mut self) {
        self.warps.fill(Warp::default());
        self.barriers.clear();
        (self.returned, self.last_returned) = (0, -1);
    }

    /// Lanes that have returned.
    pub fn returned(&self) -> u32 {
        self.returned
    }
}

impl Block {
    /// A lane arrives at an operation; if it is the last one, all continue.
    pub fn arrive(&mut self, lane: u32, wait: Wait, env: &mut Env<'_>) -> Result<(), Wrong> {
        let number = lane / self.sync_points.warp_size;
        self.join_warp(number, wait)?;
        if let Some(l) = self.lanes.get_mut(lane as usize) {
            l.wait = Some(wait);
        }
        let whole_warp = self
            .sync_points
            .warps
            .get(number as usize)
            .is_some_and(|w| w.waiting == self.sync_points.warp_size);
        match wait.point {
            SyncPoint::Barrier { id, threads } => self.barrier(id, threads, env),
            SyncPoint::Warp { .. } if whole_warp => {
                env.statistics.warp_barriers += 1;
                self.reach.clock.warp(number, false);
                self.free_warp(number);
                Ok(())
            }
            SyncPoint::Shuffle { mode, .. } if whole_warp => {
                env.statistics.shuffles += 1;
                self.exchange(number, mode)?;
                self.reach.clock.warp(number, true);
                self.free_warp(number);
                Ok(())
            }
            SyncPoint::Matrix { what, .. } if whole_warp => {
                self.matrices(number, what, env)?;
                self.reach.clock.warp(number, true);
                self.free_warp(number);
                Ok(())
            }
            SyncPoint::Group { what, .. } if whole_warp => self.group(number, what, env),
            SyncPoint::Warp { .. } | SyncPoint::Shuffle { .. } | SyncPoint::Matrix { .. } => Ok(()),
            SyncPoint::Group { .. } | SyncPoint::Phase { .. } | SyncPoint::Stored { .. } => Ok(()),
            SyncPoint::Grid => env.arrive_at_grid(),
        }
    }

    /// A warp has arrived at an instruction of its warpgroup.
    fn group(&mut self, number: u32, what: GroupCall, env: &mut Env<'_>) -> Result<(), Wrong> {
        let group = number / WARPS_OF_GROUP;
        let warps = group * WARPS_OF_GROUP..(group + 1) * WARPS_OF_GROUP;
        let size = self.sync_points.warp_size;
        let mut here = 0;
        for warp in warps.clone() {
            let Some(w) = self.sync_points.warps.get(warp as usize) else {
                let message = "an instruction of groups is called in a program of fewer than four warps";
                return Err(Wrong::new(FaultKind::Call, message));
            };
            match w.point {
                Some(SyncPoint::Group { what: other, .. }) if other != what => {
                    let message = "warps of a group call matrix instructions that differ";
                    let loc = self.waiting_in(warp).map_or(-1, |w| w.loc);
                    return Err(Wrong::with(FaultKind::Divergence, message, loc));
                }
                Some(SyncPoint::Group { .. }) if w.waiting == size => here += 1,
                Some(_) | None => {}
            }
        }
        if here == WARPS_OF_GROUP {
            self.begin_product(group, what, env)?;
            for warp in warps {
                self.reach.clock.warp(warp, true);
                self.free_warp(warp);
            }
        }
        Ok(())
    }

    /// Checks that the lanes of a warp arrive at one operation.
    fn join_warp(&mut self, number: u32, wait: Wait) -> Result<(), Wrong> {
        let name = wait.point.kind().name();
        let Some(warp) = self.sync_points.warps.get_mut(number as usize) else { return Ok(()) };
        if let Some(other) = warp.returned {
            let message = format!("a lane waits at {name}, and a lane of its warp has returned");
            return Err(Wrong::with(FaultKind::Returned, message, other));
        }
        match warp.point {
            Some(point) if point != wait.point => {
                let other = self.waiting_in(number).map_or(-1, |w| w.loc);
                let there = point.kind().name();
                let message = format!("a lane waits at {name}, and a lane of its warp at {there} elsewhere");
                Err(Wrong::with(FaultKind::Divergence, message, other))
            }
            Some(_) | None => {
                warp.point = Some(wait.point);
                warp.waiting += 1;
                Ok(())
            }
        }
    }

    /// A waiting lane of a warp.
    fn waiting_in(&self, number: u32) -> Option<&Wait> {
        let size = self.sync_points.warp_size as usize;
        self.lanes.iter().skip(number as usize * size).take(size).find_map(|l| l.wait.as_ref())
    }

    /// A lane has arrived at a barrier.
    fn barrier(&mut self, id: i32, threads: i32, env: &mut Env<'_>) -> Result<(), Wrong> {
        let (size, all) = (self.sync_points.warp_size as i32, self.lanes.len() as i32);
        if threads < size || threads > all || threads % size != 0 {
            let message = format!("a barrier is called for {threads} lanes of {all}, in warps of {size}");
            return Err(Wrong::new(FaultKind::Call, message));
        }
        if threads == all && self.sync_points.returned > 0 {
            let message = "a lane waits at a barrier, and another one of its program has returned";
            return Err(Wrong::with(FaultKind::Returned, message, self.sync_points.last_returned));
        }
        let known = self.sync_points.barriers.iter().position(|b| b.0 == id);
        let at = known.unwrap_or_else(|| {
            self.sync_points.barriers.push((id, threads, 0));
            self.sync_points.barriers.len() - 1
        });
        let Some(barrier) = self.sync_points.barriers.get_mut(at) else { return Ok(()) };
        if barrier.1 != threads {
            let expected = barrier.1;
            let message =
                format!("lanes wait at one barrier, some for {expected} lanes, others for {threads}");
            let there = SyncPoint::Barrier { id, threads: expected };
            let other = self.lanes.iter().filter_map(|l| l.wait.as_ref()).find(|w| w.point == there);
            return Err(Wrong::with(FaultKind::Divergence, message, other.map_or(-1, |w| w.loc)));
        }
        barrier.2 += 1;
        if barrier.2 < threads {
            return Ok(());
        }
        self.sync_points.barriers.swap_remove(at);
        self.pass_barrier(SyncPoint::Barrier { id, threads }, env)
    }

    /// All have arrived at a barrier.
    fn pass_barrier(&mut self, point: SyncPoint, env: &mut Env<'_>) -> Result<(), Wrong> {
        env.statistics.barriers += 1;
        let size = self.sync_points.warp_size;
        let here = |w: &Warp| w.point == Some(point);
        if self.sync_points.warps.iter().any(|w| here(w) && w.waiting < size) {
            let message = "a barrier is full, but of a warp only some lanes have come";
            return Err(Wrong::new(FaultKind::Divergence, message));
        }
        let warps: Vec<u32> =
            (0..).zip(&self.sync_points.warps).filter(|(_, w)| here(w)).map(|(n, _)| n).collect();
        if warps.len() == self.sync_points.warps.len() {
            self.pass_all(env);
        } else {
            self.reach.clock.some(warps.iter().flat_map(|w| w * size..(w + 1) * size));
            warps.into_iter().for_each(|w| self.free_warp(w));
        }
        Ok(())
    }

    /// All lanes of the program continue, ordered with one another.
    pub fn pass_all(&mut self, env: &mut Env<'_>) {
        self.reach.clock.all();
        if let Some(tally) = &mut self.reach.tally {
            tally.met(&mut env.statistics);
        }
        (0..self.sync_points.warps.len() as u32).for_each(|w| self.free_warp(w));
    }

    /// The lanes of a warp continue.
    fn free_warp(&mut self, number: u32) {
        let size = self.sync_points.warp_size;
        if let Some(warp) = self.sync_points.warps.get_mut(number as usize) {
            *warp = Warp::default();
        }
        let first = number * size;
        for (lane, n) in self.lanes.iter_mut().skip(first as usize).take(size as usize).zip(first..) {
            lane.wait = None;
            self.runnable.push(n);
        }
    }

    /// Exchanges values between the lanes of a warp.
    fn exchange(&mut self, number: u32, mode: i32) -> Result<(), Wrong> {
        let mode = Shuffle::from_code(mode).ok_or_else(|| {
            Wrong::new(FaultKind::Call, format!("a shuffle is called with an unknown mode, {mode}"))
        })?;
        let size = self.sync_points.warp_size;
        let values = &mut self.sync_points.values;
        let lanes = self.lanes.iter_mut().skip((number * size) as usize).take(size as usize);
        values.clear();
        values.extend(lanes.map(|l| l.wait.map_or(0, |w| w.value)));
        let lanes = self.lanes.iter_mut().skip((number * size) as usize).take(size as usize);
        for (lane, own) in lanes.zip(0..) {
            let operand = lane.wait.map_or(0, |w| w.operand);
            let from = match mode {
                Shuffle::Xor => own ^ operand,
                Shuffle::Up => own.checked_sub(operand).unwrap_or(own),
                Shuffle::Down => own.saturating_add(operand),
                Shuffle::Index => operand % size,
            };
            let from = if from < size { from } else { own };
            lane.reply = values.get(from as usize).copied().unwrap_or(0).into();
        }
        Ok(())
    }

    /// A lane has returned; no other lane may wait for it.
    pub fn leave(&mut self, lane: u32) -> Result<(), Fault> {
        let loc = self.lanes.get(lane as usize).map_or(-1, |l| l.loc);
        let number = lane / self.sync_points.warp_size;
        self.sync_points.returned += 1;
        self.sync_points.last_returned = loc;
        let all = self.lanes.len() as i32;
        let whole = self.sync_points.barriers.iter().any(|b| b.1 == all);
        let mut point = None;
        if let Some(warp) = self.sync_points.warps.get_mut(number as usize) {
            warp.returned = Some(loc);
            point = warp.point;
        }
        let in_vain = |w: &Wait| match w.point {
            SyncPoint::Barrier { threads, .. } => threads == all || point == Some(w.point),
            SyncPoint::Warp { .. }
            | SyncPoint::Shuffle { .. }
            | SyncPoint::Matrix { .. }
            | SyncPoint::Group { .. }
            | SyncPoint::Phase { .. }
            | SyncPoint::Stored { .. }
            | SyncPoint::Grid => point == Some(w.point),
        };
        if !whole && point.is_none() {
            return Ok(());
        }
        let waiting = (0..).zip(&self.lanes).find_map(|(n, l)| Some((n, l.wait.filter(in_vain)?)));
        let Some((n, wait)) = waiting else { return Ok(()) };
        let name = wait.point.kind().name();
        let message = format!("a lane waits at {name} for one that has returned");
        Err(Wrong::with(FaultKind::Returned, message, loc).of(self.program, n, wait.loc))
    }
}
