//! [`Shadow`] records, for each cell of a region of memory, its last write and the reads since then.
//!
//! A cell is as large as the smallest access so far. Atomic accesses are recorded apart from plain ones, so that
//! neither hides the other. Of reads three are kept: the last one, the last one by another lane of the same warp, and
//! the last one by another warp. If lanes are ordered only by barriers of the program and of warps, one of these is
//! unordered with a write if any read is: if a later read replaced it, that one would be unordered too.

use std::collections::{BTreeMap, HashMap};

use super::clock::Clock;

/// The widest access of a lane.
const WIDEST: usize = 16;

/// The granularity in bytes for device memory.
const PAGE: usize = 4096;

/// Pages that are kept for the next program: 4 MiB of memory, with cells of four bytes 54 MB.
const PAGES: usize = 1024;

/// One access.
#[derive(Clone, Copy, Default)]
pub(super) struct Stamp {
    /// 0 for none.
    pub time: u32,
    pub lane: u32,
    pub loc: i32,
}

/// The kind of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AccessKind {
    Read,
    Write,
    AtomicRead,
    AtomicWrite,
    /// An atomic that reads and writes.
    AtomicUpdate,
}

impl AccessKind {
    fn atomic(self) -> bool {
        matches!(self, AccessKind::AtomicRead | AccessKind::AtomicWrite | AccessKind::AtomicUpdate)
    }

    fn writes(self) -> bool {
        matches!(self, AccessKind::Write | AccessKind::AtomicWrite | AccessKind::AtomicUpdate)
    }

    fn reads(self) -> bool {
        matches!(self, AccessKind::Read | AccessKind::AtomicRead | AccessKind::AtomicUpdate)
    }
}

/// The last accesses of several lanes.
#[derive(Clone, Copy, Default)]
struct Recent {
    last: Stamp,
    /// By another lane of the warp of `last`.
    mate: Stamp,
    /// By another warp.
    far: Stamp,
}

impl Recent {
    fn push(&mut self, by: Stamp, clock: &Clock) {
        if self.last.time == 0 || self.last.lane == by.lane {
            self.last = by;
        } else if clock.mates(self.last.lane, by.lane) {
            (self.mate, self.last) = (self.last, by);
        } else {
            let known = self.far.time != 0 && clock.mates(self.far.lane, by.lane) && self.far.lane != by.lane;
            let mate = if known { self.far } else { Stamp::default() };
            *self = Recent { last: by, mate, far: self.last };
        }
    }

    /// One that does not happen before the present of `lane`.
    fn unordered(&self, lane: u32, clock: &Clock) -> Option<Stamp> {
        [self.last, self.mate, self.far].into_iter().find(|s| !clock.ordered(lane, s.time, s.lane))
    }
}

#[derive(Clone, Copy, Default)]
struct Cell {
    /// The time of the last write of any kind.
    written: u32,
    /// The last plain write.
    write: Stamp,
    /// The plain reads since then.
    reads: Recent,
}

/// The atomics on a cell.
#[derive(Clone, Copy, Default)]
struct Atomics {
    writes: Recent,
    loads: Recent,
}

/// A violation by an access.
pub(super) enum Conflict {
    /// Another lane accesses it without order.
    Race { before: Stamp, wrote: bool },
    /// The program has not written it.
    Unwritten,
}

/// The cells of a region of memory.
pub(super) struct Shadow {
    len: usize,
    grain: usize,
    cells: Vec<Cell>,
    atomics: BTreeMap<usize, Atomics>,
}

/// An access to consecutive bytes; `at` is a multiple of `bytes`, which are a power of two.
#[derive(Clone, Copy)]
pub(super) struct Touch {
    pub at: usize,
    pub bytes: usize,
    pub access_kind: AccessKind,
    pub by: Stamp,
    /// Reading memory that the program has not written is a fault.
    pub strict: bool,
}

impl Shadow {
    /// For a region of `len` bytes.
    pub fn new(len: usize) -> Shadow {
        Shadow {
            len,
            grain: WIDEST,
            cells: vec![Cell::default(); len.div_ceil(WIDEST)],
            atomics: BTreeMap::new(),
        }
    }

    /// Begins another program; the clock distinguishes its accesses from older ones.
    pub fn begin(&mut self) {
        self.atomics.clear();
    }

    /// Compares an access with earlier ones, and records it.
    pub fn touch(&mut self, t: Touch, clock: &Clock) -> Result<(), Conflict> {
        if t.bytes < self.grain {
            self.refine(t.bytes);
        }
        let first = t.at / self.grain;
        let places = first..first + t.bytes / self.grain;
        for (cell, place) in self.cells.get_mut(places.clone()).unwrap_or_default().iter_mut().zip(places) {
            check(cell, self.atomics.get(&place), &t, clock)?;
            if t.strict && t.access_kind.reads() && !clock.is_of_program(cell.written) {
                return Err(Conflict::Unwritten);
            }
            if t.access_kind.writes() {
                cell.written = t.by.time;
            }
            match t.access_kind {
                AccessKind::Read => cell.reads.push(t.by, clock),
                AccessKind::Write => {
                    // All earlier accesses have been compared with it.
                    (cell.write, cell.reads) = (t.by, Recent::default());
                    if !self.atomics.is_empty() {
                        self.atomics.remove(&place);
                    }
                }
                AccessKind::AtomicRead => self.atomics.entry(place).or_default().loads.push(t.by, clock),
                AccessKind::AtomicWrite | AccessKind::AtomicUpdate => {
                    self.atomics.entry(place).or_default().writes.push(t.by, clock);
                }
            }
        }
        Ok(())
    }

    /// The last plain writes of consecutive bytes.
    pub fn writes(&self, at: usize, bytes: usize) -> impl Iterator<Item = Stamp> + '_ {
        let places = at / self.grain..(at + bytes).div_ceil(self.grain);
        self.cells.get(places).unwrap_or_default().iter().map(|c| c.write)
    }

    /// Splits larger cells into cells of `grain` bytes.
    #[cold]
    fn refine(&mut self, grain: usize) {
        let into = self.grain / grain.max(1);
        let parts = self.cells.iter().flat_map(|c| std::iter::repeat_n(*c, into));
        self.cells = parts.take(self.len.div_ceil(grain.max(1))).collect();
        let atomics = self.atomics.iter();
        self.atomics = atomics.flat_map(|(p, a)| (p * into..(p + 1) * into).map(|p| (p, *a))).collect();
        self.grain = grain.max(1);
    }
}

/// Checks an earlier access against this one.
#[inline]
fn check(cell: &Cell, atomics: Option<&Atomics>, t: &Touch, clock: &Clock) -> Result<(), Conflict> {
    let lane = t.by.lane;
    let write = cell.write;
    // If lanes write one cell of device memory at once, one wins: the language allows it in one store.
    let one_store = !t.strict && t.access_kind == AccessKind::Write && write.loc == t.by.loc;
    if !one_store && !clock.ordered(lane, write.time, write.lane) {
        return Err(Conflict::Race { before: write, wrote: true });
    }
    if t.access_kind.writes()
        && let Some(before) = cell.reads.unordered(lane, clock)
    {
        return Err(Conflict::Race { before, wrote: false });
    }
    let Some(atomics) = atomics.filter(|_| !t.access_kind.atomic()) else { return Ok(()) };
    if let Some(before) = atomics.writes.unordered(lane, clock) {
        return Err(Conflict::Race { before, wrote: true });
    }
    match atomics.loads.unordered(lane, clock) {
        Some(before) if t.access_kind.writes() => Err(Conflict::Race { before, wrote: false }),
        Some(_) | None => Ok(()),
    }
}

/// The cells of device memory that a program accesses.
#[derive(Default)]
pub(super) struct Pages {
    /// The index of the page of an address.
    index: HashMap<u64, usize>,
    pages: Vec<Shadow>,
    /// The last accessed page, and its index: neighbours follow one another.
    last: Option<(u64, usize)>,
}

impl Pages {
    /// Begins another program.
    pub fn begin(&mut self) {
        // A page that is kept is reused for another address: its accesses are those of the previous program.
        self.index.clear();
        self.last = None;
        self.pages.truncate(PAGES);
        self.pages.iter_mut().for_each(Shadow::begin);
    }

    /// As [`Shadow::touch`], at an address.
    pub fn touch(&mut self, addr: u64, t: Touch, clock: &Clock) -> Result<(), Conflict> {
        let (number, at) = (addr / PAGE as u64, (addr % PAGE as u64) as usize);
        let place = match self.last {
            Some((last, place)) if last == number => place,
            Some(_) | None => {
                let next = self.index.len();
                let place = *self.index.entry(number).or_insert(next);
                if place >= self.pages.len() {
                    self.pages.push(Shadow::new(PAGE));
                }
                self.last = Some((number, place));
                place
            }
        };
        match self.pages.get_mut(place) {
            Some(page) => page.touch(Touch { at, ..t }, clock),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::random::Random;

    const DEEDS: [AccessKind; 5] = [
        AccessKind::Read,
        AccessKind::Write,
        AccessKind::AtomicRead,
        AccessKind::AtomicWrite,
        AccessKind::AtomicUpdate,
    ];

    /// Returns true if two accesses of different lanes need an order.
    fn clash(a: AccessKind, b: AccessKind) -> bool {
        (a.writes() || b.writes()) && !(a.atomic() && b.atomic())
    }

    #[test]
    fn what_is_kept_of_the_past_finds_every_race() {
        let (mut found, mut right) = (0, 0);
        for seed in 0..20_000 {
            let mut random = Random::new(seed, 0);
            let (lanes, width) = (8, 4);
            let mut clock = Clock::new(lanes, width);
            let mut shadow = Shadow::new(4);
            clock.begin();
            let mut past: Vec<(Stamp, AccessKind)> = vec![];
            for step in 0..24 {
                match random.below(10) {
                    0 => clock.all(),
                    1 | 2 => clock.warp(random.below(2) as u32, false),
                    _ => {
                        // Reads are frequent, so that some replace others.
                        let access_kind =
                            if random.chance(150) { AccessKind::Read } else { DEEDS[random.below(5)] };
                        let by =
                            Stamp { time: clock.now(), lane: random.below(lanes as usize) as u32, loc: step };
                        let touch = Touch { at: 0, bytes: 4, access_kind, by, strict: false };
                        let expected = past.iter().any(|(before, done)| {
                            clash(*done, access_kind) && before.time > clock.known(by.lane, before.lane)
                        });
                        match shadow.touch(touch, &clock) {
                            Err(Conflict::Race { .. }) => {
                                assert!(expected, "seed {seed}");
                                found += 1;
                                break;
                            }
                            Ok(()) | Err(Conflict::Unwritten) => assert!(!expected, "seed {seed}"),
                        }
                        right += 1;
                        past.push((by, access_kind));
                    }
                }
            }
        }
        assert!(found > 10_000 && right > 50_000, "{found} {right}");
    }
}
