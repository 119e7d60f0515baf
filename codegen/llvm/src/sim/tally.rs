//! Counts the events of a launch: [`Statistics`], and [`Tally`], which groups the accesses of lanes into those of
//! warps.
//!
//! Lanes run one after the other here. Accesses of the lanes of a warp form one if they have the same source position,
//! size and direction, and the same number among such accesses of their lane. That is what a GPU does as long as the
//! lanes of a warp do not diverge.

/// Counts of a launch. Those of warps are 0 unless [`super::Launch::banks`] is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Programs that ran.
    pub programs: u64,
    /// Loads and stores of lanes in shared memory.
    pub shared_accesses: u64,
    /// Loads and stores of lanes in device memory.
    pub global_accesses: u64,
    /// Bytes of these.
    pub global_bytes: u64,
    /// Atomics of lanes.
    pub atomics: u64,
    /// Barriers of programs, including named ones.
    pub barriers: u64,
    /// Barriers of warps.
    pub warp_barriers: u64,
    /// Shuffles of warps.
    pub shuffles: u64,
    /// Barriers of the grid.
    pub grid_barriers: u64,
    /// Loads and stores of warps in shared memory.
    pub shared_requests: u64,
    /// Wavefronts of these: in one, each bank serves one word of four bytes, to all lanes that read it.
    pub shared_wavefronts: u64,
    /// Wavefronts without bank conflicts.
    pub shared_wavefronts_least: u64,
    /// Loads and stores of warps in device memory.
    pub global_requests: u64,
    /// Sectors of 32 bytes that these access.
    pub global_sectors: u64,
}

/// Bytes that a bank serves in one wavefront (CUDA C++ programming guide, shared memory).
const WORD: u64 = 4;

/// The granularity of device memory transactions in bytes (the same guide, global memory).
const SECTOR: u64 = 32;

/// Accesses that are recorded before they are counted, if the lanes then synchronize.
const MANY: usize = 1 << 14;

/// One access of a lane.
#[derive(Clone, Copy)]
pub(super) struct Noted {
    pub shared: bool,
    pub store: bool,
    pub loc: i32,
    pub lane: u32,
    pub addr: u64,
    pub bytes: u32,
}

/// The accesses of one program that are not counted yet.
pub(super) struct Tally {
    warp_size: u32,
    banks: u64,
    noted: Vec<Noted>,
    /// Accesses of one warp that belong together, by their number; kept for reuse.
    groups: Vec<(u32, usize)>,
}

impl Tally {
    /// For a target with this many banks.
    pub fn new(warp_size: u32, banks: u32) -> Tally {
        Tally { warp_size: warp_size.max(1), banks: u64::from(banks.max(1)), noted: vec![], groups: vec![] }
    }

    /// Records an access.
    pub fn note(&mut self, access: Noted) {
        self.noted.push(access);
    }

    /// All lanes of the program are at one position.
    pub fn met(&mut self, statistics: &mut Statistics) {
        if self.noted.len() >= MANY {
            self.count(statistics);
        }
    }

    /// Counts the recorded accesses.
    pub fn count(&mut self, statistics: &mut Statistics) {
        let size = self.warp_size;
        let kind = |n: &Noted| (n.lane / size, n.loc, n.shared, n.store, n.bytes);
        // The sort keeps the order of the accesses of a lane.
        self.noted.sort_by_key(|n| (kind(n), n.lane));
        let noted = std::mem::take(&mut self.noted);
        let mut groups = std::mem::take(&mut self.groups);
        for same in noted.chunk_by(|a, b| kind(a) == kind(b)) {
            groups.clear();
            let mut number = (0, 0);
            for (at, access) in same.iter().enumerate() {
                number = if at > 0 && number.0 == access.lane {
                    (access.lane, number.1 + 1)
                } else {
                    (access.lane, 0)
                };
                groups.push((number.1, at));
            }
            groups.sort_unstable();
            for group in groups.chunk_by(|a, b| a.0 == b.0) {
                self.request(group.iter().filter_map(|(_, at)| same.get(*at)), statistics);
            }
        }
        (self.noted, self.groups) = (noted, groups);
        self.noted.clear();
    }

    /// Counts one access of a warp.
    fn request<'a>(&self, lanes: impl Iterator<Item = &'a Noted> + Clone, statistics: &mut Statistics) {
        let Some(first) = lanes.clone().next() else { return };
        if !first.shared {
            let mut sectors: Vec<u64> = lanes.map(|n| n.addr / SECTOR).collect();
            sectors.sort_unstable();
            sectors.dedup();
            statistics.global_requests += 1;
            statistics.global_sectors += sectors.len() as u64;
            return;
        }
        statistics.shared_requests += 1;
        // A wide access has phases of as many lanes as fill all banks.
        let phase = (self.banks * WORD / u64::from(first.bytes).max(WORD)).max(1) as u32;
        let all: Vec<&Noted> = lanes.collect();
        for lanes in all.chunk_by(|a, b| a.lane % self.warp_size / phase == b.lane % self.warp_size / phase) {
            let mut words: Vec<(u64, u64)> = vec![];
            for n in lanes {
                let end = n.addr + u64::from(n.bytes);
                words.extend((n.addr / WORD..end.div_ceil(WORD)).map(|w| (w % self.banks, w)));
            }
            words.sort_unstable();
            words.dedup();
            let steps = words.chunk_by(|a, b| a.0 == b.0).map(<[_]>::len).max().unwrap_or(1);
            statistics.shared_wavefronts += steps as u64;
            statistics.shared_wavefronts_least += 1;
        }
    }
}
