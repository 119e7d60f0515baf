//! [`Clock`]: the accesses of other lanes of its program that happen before the present of a lane.
//!
//! Time is one counter for each program, which advances at everything that orders lanes. For each lane the clock has
//! the last time at which all accesses of every other lane happen before it: a vector clock (Mattern 1989), stored as
//! one number for the program, one for each warp, and a vector for the lanes that have synchronized in another way.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::calls::SimSpace;

/// Whether an exchange of values orders lanes like a warp barrier. PTX guarantees that of `bar.warp.sync` and not of
/// `shfl.sync`; without it the simulator is stricter.
const SHUFFLE_ORDERS: bool = true;

/// The synchronization state of the lanes of a program.
pub(super) struct Clock {
    now: u32,
    /// The start of the program: earlier times are of the program that ran before on the same structures.
    start: u32,
    /// The time up to which every lane is ordered after every lane.
    floor: u32,
    /// The logarithm of the lanes of a warp.
    warp_shift: u32,
    /// The time up to which the lanes of each warp are ordered after one another.
    warps: Vec<u32>,
    /// The further vector of a single lane; `None` if it has none.
    lanes: Vec<Option<Rc<[u32]>>>,
    /// The vector of the last release at an address, for acquires.
    released: BTreeMap<(SimSpace, u64), Rc<[u32]>>,
    /// The last vector that each lane has acquired, so that polling costs nothing.
    acquired: Vec<Option<Rc<[u32]>>>,
}

impl Clock {
    /// For programs with this many lanes, in warps of a power of two; 0 is before every time.
    pub fn new(lanes: u32, warp_size: u32) -> Clock {
        let warp_size = warp_size.max(1);
        let warps = lanes.div_ceil(warp_size) as usize;
        Clock {
            now: 1,
            start: 0,
            floor: 0,
            warp_shift: warp_size.ilog2(),
            warps: vec![0; warps],
            lanes: vec![None; lanes as usize],
            released: BTreeMap::new(),
            acquired: vec![None; lanes as usize],
        }
    }

    /// Begins another program: everything before it happens before it.
    pub fn begin(&mut self) {
        self.start = self.now;
        self.all();
        self.released.clear();
        self.acquired.fill(None);
    }

    /// Returns true if an access is of this program.
    pub fn is_of_program(&self, time: u32) -> bool {
        time > self.start
    }

    /// The time of an access now.
    pub fn now(&self) -> u32 {
        self.now
    }

    /// Saturates after 2^32 synchronizations, which take longer than any time limit; then no race is found any more.
    fn tick(&mut self) {
        self.now = self.now.saturating_add(1);
    }

    /// Distinguishes later accesses from earlier ones.
    pub fn mark(&mut self) -> u32 {
        self.tick();
        self.now - 1
    }

    /// Returns true if an access of `other` at this time happens before the present of `lane`.
    #[inline]
    pub fn ordered(&self, lane: u32, time: u32, other: u32) -> bool {
        time <= self.floor || time <= self.known(lane, other)
    }

    /// The last time at which the accesses of `other` are over for `lane`.
    pub fn known(&self, lane: u32, other: u32) -> u32 {
        if lane == other {
            return u32::MAX;
        }
        let warp = lane >> self.warp_shift;
        let of_warp = if warp == other >> self.warp_shift { self.warps.get(warp as usize) } else { None };
        let more = self.lanes.get(lane as usize).and_then(|l| l.as_deref()?.get(other as usize));
        self.floor.max(of_warp.copied().unwrap_or(0)).max(more.copied().unwrap_or(0))
    }

    /// Returns true if two lanes are of one warp.
    pub fn mates(&self, a: u32, b: u32) -> bool {
        a >> self.warp_shift == b >> self.warp_shift
    }

    /// All lanes synchronize.
    pub fn all(&mut self) {
        self.floor = self.now;
        self.lanes.iter_mut().filter(|l| l.is_some()).for_each(|l| *l = None);
        self.tick();
    }

    /// The lanes of a warp synchronize; `shuffle` if they exchange values.
    pub fn warp(&mut self, warp: u32, shuffle: bool) {
        if shuffle && !SHUFFLE_ORDERS {
            return;
        }
        let lanes = self.of_warp(warp);
        if lanes.clone().any(|l| self.lanes.get(l as usize).is_some_and(Option::is_some)) {
            self.some(lanes);
        } else {
            if let Some(known) = self.warps.get_mut(warp as usize) {
                *known = self.now;
            }
            self.tick();
        }
    }

    /// These lanes synchronize.
    pub fn some(&mut self, lanes: impl Iterator<Item = u32> + Clone) {
        let mut all = vec![0; self.lanes.len()];
        for lane in lanes.clone() {
            self.add(&mut all, lane);
        }
        let all: Rc<[u32]> = all.into();
        for lane in lanes {
            if let Some(known) = self.lanes.get_mut(lane as usize) {
                *known = Some(Rc::clone(&all));
            }
        }
        self.tick();
    }

    /// The lanes of a warp.
    fn of_warp(&self, warp: u32) -> std::ops::Range<u32> {
        (warp << self.warp_shift)..((warp + 1) << self.warp_shift).min(self.lanes.len() as u32)
    }

    /// Adds the vector of a lane, [`Clock::known`] of every other one, and its own accesses until now.
    fn add(&self, all: &mut [u32], lane: u32) {
        let add = |known: &mut u32, time: u32| *known = (*known).max(time);
        let floor = self.floor;
        match self.lanes.get(lane as usize).and_then(Option::as_deref) {
            Some(more) => {
                all.iter_mut()
                    .zip(more)
                    .for_each(|(known, time)| add(known, floor.max((*time).min(self.now))));
            }
            None => all.iter_mut().for_each(|known| add(known, floor)),
        }
        let warp = lane >> self.warp_shift;
        let (of_warp, lanes) = (self.warps.get(warp as usize).copied().unwrap_or(0), self.of_warp(warp));
        let mates = all.get_mut(lanes.start as usize..lanes.end as usize);
        mates.into_iter().flatten().for_each(|known| add(known, of_warp));
        all.get_mut(lane as usize).into_iter().for_each(|known| add(known, self.now));
    }

    /// A lane releases its vector at an address.
    pub fn release(&mut self, lane: u32, at: (SimSpace, u64)) {
        let mut all = self.released.get(&at).map_or_else(|| vec![0; self.lanes.len()], |r| r.to_vec());
        self.add(&mut all, lane);
        self.released.insert(at, all.into());
        self.tick();
    }

    /// A lane acquires the vector at an address.
    pub fn acquire(&mut self, lane: u32, at: (SimSpace, u64)) {
        let Some(found) = self.released.get(&at).cloned() else { return };
        let Some(last) = self.acquired.get_mut(lane as usize) else { return };
        if last.as_ref().is_some_and(|last| Rc::ptr_eq(last, &found)) {
            return;
        }
        *last = Some(Rc::clone(&found));
        let mut all = found.to_vec();
        self.add(&mut all, lane);
        if let Some(known) = self.lanes.get_mut(lane as usize) {
            *known = Some(all.into());
        }
    }
}
