//! [`Checker`]: reads of uninitialized memory, races between programs, and parameters that alias.
//!
//! A race is found by what orders two accesses, not by when they happen: accesses of different programs are ordered by
//! a release that an acquire has seen, and by `grid_barrier` (the algorithm is FastTrack's, Flanagan and Freund 2009).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use tk_tile::Loc;

use super::clock::Known;
use super::shadow::{Shadow, Touch};
use super::{ALIAS, RACE, UNWRITTEN};
use crate::fault::Fault;
use crate::memory::BufferId;
use crate::space::{Access, Entry};

/// A position in the list of stamps; 0 stands for no access.
pub(super) type StampId = u32;

/// Who accessed a place, and how. Accesses of one instruction in one epoch of a program share a stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Stamp {
    pub program: u64,
    pub epoch: u32,
    pub param: Option<u32>,
    pub access: Access,
    pub loc: Option<Loc>,
}

/// The memory ordering of an atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ordering {
    /// Sees everything that other programs released before.
    pub acquire: bool,
    /// Makes everything before it visible to programs that acquire it.
    pub release: bool,
    /// The written value does not depend on the old one.
    pub store: bool,
}

/// The epoch of a program, and what it knows.
#[derive(Clone)]
struct Time {
    epoch: u32,
    known: Known,
}

impl Default for Time {
    fn default() -> Self {
        Time { epoch: 1, known: Known::default() }
    }
}

/// The accesses of a launch, and those that have ended.
#[derive(Default)]
struct History {
    /// The program that runs and the place of its instruction.
    program: u64,
    loc: Option<Loc>,
    /// Others may change the value read meanwhile, by atomics.
    volatile: bool,
    /// The first one stands for no access.
    stamps: Vec<Stamp>,
    /// The stamps of this program in this epoch.
    own: HashMap<(Option<u32>, Access, Option<Loc>), StampId>,
    /// Stamps before this one are of accesses before a barrier.
    barrier: StampId,
    /// Programs that have synchronized.
    times: HashMap<u64, Time>,
}

#[derive(Default)]
struct State {
    history: History,
    shadows: HashMap<BufferId, Shadow>,
    /// The released state of each place.
    released: HashMap<(BufferId, usize), Arc<Known>>,
}

/// The state of checked mode in a launch.
pub(crate) struct Checker {
    /// The grid; none for a test, where one program runs alone.
    grid: Option<[u32; 3]>,
    /// The names of the parameters.
    params: Vec<String>,
    /// Parameters that may reach the same memory.
    alias: Vec<(String, String)>,
    state: Mutex<State>,
}

impl Checker {
    /// For a test: programs do not meet.
    pub fn alone() -> Checker {
        Checker { grid: None, params: vec![], alias: vec![], state: Mutex::default() }
    }

    /// For a launch of a kernel with parameters of these names, of which some may reach the same memory.
    pub fn of_grid(grid: [u32; 3], params: Vec<String>, alias: Vec<(String, String)>) -> Checker {
        let nobody = Stamp { program: 0, epoch: 0, param: None, access: Access::READ, loc: None };
        let history = History { stamps: vec![nobody], barrier: 1, ..History::default() };
        let state = Mutex::new(State { history, ..State::default() });
        Checker { grid: Some(grid), params, alias, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The accesses that follow are of this program and instruction.
    pub fn at(&self, program: [u32; 3], loc: Option<Loc>, volatile: bool) {
        let Some([x, y, _]) = self.grid else { return };
        let [i, j, k] = program.map(u64::from);
        let linear = (k * u64::from(y) + j) * u64::from(x) + i;
        let mut state = self.state();
        let history = &mut state.history;
        if history.program != linear {
            history.own.clear();
        }
        (history.program, history.loc, history.volatile) = (linear, loc, volatile);
    }

    fn program(&self, linear: u64) -> String {
        let [x, y, _] = self.grid.unwrap_or([1; 3]).map(|d| u64::from(d).max(1));
        format!("{}, {}, {}", linear % x, linear / x % y, linear / x / y)
    }

    /// Every program has come to a `grid_barrier`.
    pub fn barrier(&self) {
        let mut state = self.state();
        let history = &mut state.history;
        history.own.clear();
        history.barrier = history.stamps.len() as StampId;
    }

    /// Notes an access to `count` elements of `size` bytes at byte `start` of a buffer.
    pub fn touch(
        &self,
        entry: &Entry,
        start: usize,
        count: usize,
        size: usize,
        access: Access,
    ) -> Result<(), Box<Fault>> {
        let bytes = start..start + count * size;
        if access.reads
            && let Some(byte) = entry.allocation.unwritten(bytes.clone())
        {
            let message =
                format!("element {} of {} is read before initialization", byte / size, entry.name());
            return Err(Box::new(Fault::new(UNWRITTEN, message)));
        }
        if self.grid.is_some() {
            self.compare(entry, start, count, size, access)?;
        }
        if access.writes {
            entry.allocation.wrote(bytes);
        }
        Ok(())
    }

    fn compare(
        &self,
        entry: &Entry,
        start: usize,
        count: usize,
        size: usize,
        access: Access,
    ) -> Result<(), Box<Fault>> {
        let mut guard = self.state();
        let State { history, shadows, .. } = &mut *guard;
        let access = Access { atomic: access.atomic || history.volatile && !access.writes, ..access };
        let by = history.stamp(entry.param.as_ref().map(|(i, _)| *i), access);
        let shadow = shadows.entry(entry.allocation.id).or_default();
        let touch = Touch { start, bytes: count * size, size, by };
        let judge = |before| self.judge(history, before, by);
        match shadow.touch(entry.allocation.len(), touch, &history.stamps, judge) {
            Some((byte, before, wrong)) => Err(self.report(history, entry, byte / size, (before, by), wrong)),
            None => Ok(()),
        }
    }

    /// The conflict of an access with an earlier one.
    fn judge(&self, history: &History, before: StampId, now: StampId) -> Option<Wrong> {
        let (b, n) = (history.stamps.get(before as usize)?, history.stamps.get(now as usize)?);
        if !b.access.writes && !n.access.writes {
            return None;
        }
        if let (Some(x), Some(y)) = (b.param, n.param)
            && x != y
            && !self.may_alias(self.name(x), self.name(y))
        {
            return Some(Wrong::Alias);
        }
        let ordered = b.program == n.program
            || before < history.barrier
            || (b.access.atomic && n.access.atomic)
            || history.times.get(&n.program).is_some_and(|t| t.known.of(b.program) >= b.epoch);
        (!ordered).then_some(Wrong::Race)
    }

    #[cold]
    fn report(
        &self,
        history: &History,
        entry: &Entry,
        element: usize,
        (before, now): (StampId, StampId),
        wrong: Wrong,
    ) -> Box<Fault> {
        let stamp = |id: StampId| history.stamps.get(id as usize).copied();
        let (Some(before), Some(now)) = (stamp(before), stamp(now)) else {
            return Box::new(Fault::internal("an access has no stamp"));
        };
        let verb = |a: Access| match (a.writes, a.atomic) {
            (true, true) => "changed atomically",
            (true, false) => "written",
            (false, true) => "read atomically",
            (false, false) => "read",
        };
        let (did, does, place) = (verb(before.access), verb(now.access), entry.name());
        let other = self.program(before.program);
        let advice = match (
            before.access.atomic != now.access.atomic,
            before.access.writes && now.access.writes,
        ) {
            (true, _) => {
                "an atomic with `order = release` behind the one and one with `order = acquire` before the other order them"
            }
            (false, true) => "atomics, of the scope of the device, combine the values of several programs",
            (false, false) => {
                "programs of a launch run in any order: what one needs of another is the result of an earlier launch, or between the two are atomics with `order = release` and `order = acquire`"
            }
        };
        let (code, message) = match wrong {
            Wrong::Race => (
                RACE,
                format!(
                    "element {element} of {place} is {does} here and was {did} by the program {other}, without synchronization; {advice}"
                ),
            ),
            Wrong::Alias => {
                let (x, y) = (self.name(before.param.unwrap_or(0)), self.name(now.param.unwrap_or(0)));
                let message = format!(
                    "element {element} of {place} is {does} here and was {did} through `{x}`, but the kernel does not declare `alias({x}, {y})`"
                );
                (ALIAS, message)
            }
        };
        let mut fault = Fault::new(code, message);
        fault.other = before.loc.map(|loc| Box::new((loc, format!("{did} here by the program {other}"))));
        Box::new(fault)
    }

    /// An atomic at byte `at` of a buffer has happened. After the last one of an instruction that releases comes
    /// [`Checker::released`].
    pub fn atomic(&self, entry: &Entry, at: usize, order: Ordering, writes: bool) {
        let mut guard = self.state();
        let State { history, released, .. } = &mut *guard;
        let place = (entry.allocation.id, at);
        let before = released.get(&place).cloned();
        if let (Some(before), true) = (&before, order.acquire) {
            let time = history.times.entry(history.program).or_default();
            time.known = time.known.join(before);
        }
        if writes && order.release {
            let time = history.times.entry(history.program).or_default();
            let own = time.known.join(&Known::one(history.program, time.epoch));
            // What a read-modify-write finds stays released.
            let all = match before {
                Some(before) if !order.store => own.join(&before),
                Some(_) | None => own,
            };
            released.insert(place, Arc::new(all));
        } else if writes && order.store {
            released.remove(&place);
        }
    }

    /// The accesses that follow come after a release.
    pub fn released(&self) {
        let history = &mut self.state().history;
        history.own.clear();
        history.times.entry(history.program).or_default().epoch += 1;
    }

    fn name(&self, param: u32) -> &str {
        self.params.get(param as usize).map_or("", |n| n)
    }

    /// Returns true if the kernel declares `alias` for both.
    fn may_alias(&self, x: &str, y: &str) -> bool {
        self.alias.iter().any(|(a, b)| (a == x && b == y) || (a == y && b == x))
    }
}

/// The conflict between two accesses.
#[derive(Clone, Copy)]
enum Wrong {
    Race,
    Alias,
}

impl History {
    /// The stamp of an access of this instruction.
    fn stamp(&mut self, param: Option<u32>, access: Access) -> StampId {
        let key = (param, access, self.loc);
        if let Some(id) = self.own.get(&key) {
            return *id;
        }
        let epoch = self.times.get(&self.program).map_or(1, |t| t.epoch);
        let id = self.stamps.len() as StampId;
        self.stamps.push(Stamp { program: self.program, epoch, param, access, loc: self.loc });
        self.own.insert(key, id);
        id
    }
}
