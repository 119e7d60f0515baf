//! The cost model: how long a scheduled kernel takes for the arguments of a launch, without machine code.
//!
//! Each instruction of scheduled IR has a cost ([`work`]): slots of the schedulers, of the units for special functions,
//! of shared memory, of the first-level cache and of the matrix units, bytes from the shared cache, and the latency of
//! its result. [`tk_tile::frequency`] says how often it runs. From these follow
//!
//! - the *throughput* of a multiprocessor: the busiest of its units, for all programs that it runs;
//! - the *latency* of a program that runs alone ([`timeline`]): what waits for what, times the rounds of programs that
//!   do not fit at once. Registers and shared memory say how many fit;
//! - the time of the shared cache and of memory for all programs.
//!
//! These overlap, but never completely: the time is their norm of a high order, and the cost of a launch. Constants are
//! those of [`crate::target::chip`] and of this file; they were fitted to measurements of an H100 and an H200
//! (docs/performance.md). The model orders candidates; its absolute times are not promised.

mod accesses;
mod latency;
mod matrix;
mod steps;
mod timeline;
mod work;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use tk_tile::frequency::{ControlSlice, Frequencies, LaunchArg};
use tk_tile::{BlockData, BlockId, Id, Inst, InstId, Loc, ValueId};

use crate::analysis::axis::AxisInfo;
use crate::analysis::liveness;
use crate::analysis::provenance::Roots;
use crate::ir::kernel::Kernel;
use crate::ir::params::element_bytes;
use crate::ir::warps::{WARPGROUP_WARPS, producers};
use crate::target::chip::Chip;
use crate::verify::ScheduledModule;

use accesses::Pattern;
use timeline::Timeline;
use work::{Costs, Work, work};

/// The launch that is estimated.
#[derive(Clone, Copy, Debug)]
pub struct Launched<'a> {
    /// One argument for each parameter of the kernel, workspaces included.
    pub args: &'a [LaunchArg],
    /// The grid.
    pub grid: [u32; 3],
    /// Bytes that the launch moves at least ([`tk_tile::traffic`]).
    pub bytes: f64,
    /// The multiprocessors of the GPU.
    pub sms: u32,
}

impl Launched<'_> {
    /// The programs of the grid.
    fn programs(&self) -> f64 {
        self.grid.iter().map(|n| f64::from(*n)).product()
    }
}

/// What bounds a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bound {
    /// The slots of the schedulers.
    Issue,
    /// The units for special functions.
    Special,
    /// Shared memory.
    Shared,
    /// Accesses of the first-level cache.
    Accesses,
    /// The matrix units.
    Matrix,
    /// Latencies: too few programs are there to hide them.
    Latency,
    /// The start of programs: there are many that do little.
    Programs,
    /// The cache that all multiprocessors share.
    Cache,
    /// Memory.
    Memory,
    /// Registers that are spilled and read back.
    Spills,
}

impl Bound {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Bound::Issue => "instructions",
            Bound::Special => "special functions",
            Bound::Shared => "shared memory",
            Bound::Accesses => "memory accesses",
            Bound::Matrix => "matrix products",
            Bound::Latency => "latency",
            Bound::Programs => "starts of programs",
            Bound::Cache => "L2",
            Bound::Memory => "memory",
            Bound::Spills => "spills",
        }
    }
}

/// The predicted cost of a launch.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// Its time in microseconds.
    pub us: f64,
    /// The time that each limit alone would allow, in microseconds, the largest first.
    pub parts: Vec<(Bound, f64)>,
    /// Registers of a lane.
    pub registers: u32,
    /// Those that do not fit, and are spilled.
    pub spilled: u32,
    /// Bytes of shared memory of a block.
    pub shared_bytes: u32,
    /// Blocks that a multiprocessor runs at once; 0 if not even one fits.
    pub blocks_per_sm: u32,
    /// How often a multiprocessor is filled with programs.
    pub waves: f64,
    /// Whether something depends on data.
    pub is_guess: bool,
}

/// The cost of what a place in the source became.
#[derive(Clone, Debug, PartialEq)]
pub struct PlaceCost {
    /// The place.
    pub loc: Loc,
    /// The time that each unit works on it, in microseconds, the largest first; units without work are left out.
    pub parts: Vec<(Bound, f64)>,
    /// Instructions of warps, of all programs.
    pub instructions: f64,
    /// Bytes from and to the shared cache, of all programs.
    pub bytes: f64,
    /// Those of them that the program asked for: the rest is of sectors and lines that are read for a part.
    pub needed: f64,
    /// Bytes that the narrowest access of a lane to device memory moves; 0 without one.
    pub lane_bytes: u32,
    /// Why that is not wider, as a sentence without a full stop.
    pub limit: &'static str,
    /// Whether TMA moves some of the bytes.
    pub tensor_copies: bool,
    /// Cycles of shared memory that bank conflicts add, of all programs.
    pub conflicts: f64,
    /// Bytes of a lane for the largest tile that is made there, in registers.
    pub tile_bytes: u32,
    /// The most registers of a lane for tiles that are live at once.
    pub registers: u32,
}

/// Microseconds of a launch of a kernel that does nothing.
const LAUNCH: f64 = 2.2;
/// Cycles between the starts of two blocks on a multiprocessor: 336,096 blocks that do little took 206 us on 132 of them.
const PROGRAM: f64 = 140.0;
/// Cycles until a block has its arguments and first instructions.
const START: f64 = 900.0;
/// Registers for addresses, positions, conditions and values in flight, beside tiles, without matrix products.
const NON_TILE_REGISTERS: u32 = 26;
/// Registers that the assembler finds by another order of instructions.
const SLACK: u32 = 16;
/// The part of the data sheet's rate of matrix units that a kernel reaches. Under load the clock is lower, for all members
/// of a list by about as much.
const MATRIX: f64 = 0.95;
/// The part of the rate of the shared cache that a kernel reaches.
const CACHE: f64 = 0.87;
/// Bytes that one multiprocessor moves from and to the shared cache in a cycle.
const PORT: f64 = 96.0;
/// The part of the counted instructions that is left by the assembler, which folds addresses into accesses.
const ISSUED: f64 = 0.7;
/// How much of a further round of programs counts: a multiprocessor begins the next program when one ends, so rounds
/// overlap, and a multiprocessor with some more programs than fit at once ends soon after the others.
const ROUND: f64 = 0.25;
/// The part of the data sheet's bandwidth that a copy reaches.
const BANDWIDTH: f64 = 0.90;
/// The order of the norm that combines limits: the higher, the better they overlap.
const NORM: f64 = 5.0;
/// How many times its time a kernel takes more at most because it spills: products whose accumulators do not fit take ten
/// times as long.
const SPILLED: f64 = 12.0;
/// The part of the bytes beyond those that have to be moved that miss the shared cache, once all arguments together do
/// not fit in it.
const MISSES: f64 = 0.12;

/// A scheduled kernel, and what of it does not depend on the launch.
#[derive(Debug)]
pub struct Analysed {
    module: ScheduledModule,
    axis: AxisInfo,
    roots: Roots,
    slice: ControlSlice,
    timeline: Timeline,
    /// The costs of instructions by index; of those that access an argument, what a launch replaces.
    works: Vec<Work>,
    /// The numbers of those, in the order of `blocks`.
    numbers: Vec<Option<u32>>,
    /// The patterns of accesses by instruction, once they were asked for.
    patterns: Vec<OnceLock<Pattern>>,
    /// Of each block, the sum of its instructions that access no argument, and the others.
    blocks: Vec<(BlockId, Work, Vec<InstId>)>,
    /// Threads of a block, its bytes of shared memory, and the most registers of a lane.
    threads: u32,
    shared_bytes: u32,
    limit: u32,
    /// Whether producer warps give registers to the others.
    gives_registers: bool,
    /// Registers of a lane for tiles if loads go ahead, and the fewest.
    ahead: u32,
    least: u32,
}

impl Analysed {
    /// Of a kernel.
    pub fn new(module: ScheduledModule) -> Analysed {
        let mut analysed = Analysed {
            axis: AxisInfo::new(&module.module, module.func(), &module.options.facts),
            roots: Roots::new(module.func()),
            slice: ControlSlice::new(module.func()),
            timeline: Timeline::default(),
            ahead: liveness::ahead(&module),
            least: liveness::least(&module),
            threads: module.block_threads(),
            shared_bytes: module.shared_bytes(),
            limit: module.registers_of_launch().min(module.options.spec.registers),
            gives_registers: producers(&module) >= WARPGROUP_WARPS,
            works: vec![],
            numbers: vec![],
            patterns: module.func().insts.iter().map(|_| OnceLock::new()).collect(),
            blocks: vec![],
            module,
        };
        let func = analysed.module.func();
        let costs = Costs::new(&analysed, &[], 1.0);
        let reads = |inst: &Inst| inst.operands.iter().any(|v| analysed.roots.get(*v).is_some());
        let works: Vec<Work> = func.insts.iter().map(|(id, _)| work(&costs, id)).collect();
        let of_block = |(block, data): (BlockId, &BlockData)| {
            let (varies, fixed): (Vec<InstId>, Vec<InstId>) =
                data.insts.iter().partition(|i| reads(&func.insts[**i]));
            let mut sum = Work::default();
            fixed.iter().filter_map(|i| works.get(i.index())).for_each(|w| sum.add(w, 1.0));
            (block, sum, varies)
        };
        let blocks: Vec<_> = func.blocks.iter().map(of_block).collect();
        let mut numbers = vec![None; works.len()];
        for (n, i) in blocks.iter().flat_map(|(_, _, varies)| varies).enumerate() {
            if let Some(slot) = numbers.get_mut(i.index()) {
                *slot = u32::try_from(n).ok();
            }
        }
        analysed.timeline = Timeline::new(&analysed.module, &works, &numbers);
        (analysed.blocks, analysed.works, analysed.numbers) = (blocks, works, numbers);
        analysed
    }

    /// The kernel.
    pub fn kernel(&self) -> &Kernel {
        &self.module
    }

    /// Returns true if a multiprocessor can run it.
    fn fits(&self, occupancy: &Occupancy) -> bool {
        self.shared_bytes <= self.kernel().options.spec.shared_bytes && occupancy.blocks_per_sm > 0
    }
}

/// Predicts the time of a launch.
pub fn estimate(of: &Analysed, launch: &Launched<'_>, chip: &Chip) -> Estimate {
    let run = Running::new(of, launch, chip);
    let total = run.total();
    let Occupancy { registers, spilled, blocks_per_sm, waves, .. } = run.occupancy;
    let mut parts = run.limits(launch, &total, run.latency());
    let times = combined(&parts, spilled, total.matrix > 0.0);
    if times.spills > 0.0 {
        parts.push((Bound::Spills, times.spills));
    }
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    Estimate {
        us: if of.fits(&run.occupancy) { times.us() } else { f64::INFINITY },
        parts,
        registers,
        spilled,
        shared_bytes: of.shared_bytes,
        blocks_per_sm,
        waves,
        is_guess: run.often.is_guess,
    }
}

/// The time of [`estimate`] in microseconds unless it is above `limit`: then a number above `limit` that is at most the time.
///
/// The bounds leave limits out, or take less for them: the norm and the time for spills rise with each limit, and rounding
/// keeps that, but for the powers. The latency of a program is at least that of its start.
pub fn time(of: &Analysed, launch: &Launched<'_>, chip: &Chip, limit: f64) -> f64 {
    /// What powers can be wrong by, and more.
    const ROUNDED: f64 = 1.0 - 1e-9;
    let exact = || estimate(of, launch, chip).us;
    let is_above = |bound: f64| {
        debug_assert!(bound <= exact(), "a bound of {bound} us for {} us", exact());
        bound > limit
    };
    let occupancy = Occupancy::new(of, launch.programs(), launch.sms);
    if !of.fits(&occupancy) {
        return f64::INFINITY;
    }
    let us = 1e6 / chip.clock;
    let parts = [
        (Bound::Programs, occupancy.of_sm * PROGRAM * us),
        (Bound::Latency, occupancy.all_rounds() * START * us),
        (Bound::Memory, launch.bytes / (chip.memory * BANDWIDTH) * 1e6),
    ];
    let bound = nearly_combined(&parts, occupancy.spilled, false).us() * ROUNDED;
    if is_above(bound) {
        return bound;
    }
    let often = of.slice.frequencies(&of.kernel().module, of.kernel().func(), launch.args, launch.grid);
    let mut run = Running::with(of, launch, chip, often);
    // What accesses arguments does not count yet.
    let started = run.latency_of(0.0);
    let bound = |run: &Running<'_>, total: &Work| {
        let parts = run.limits(launch, total, started);
        nearly_combined(&parts, occupancy.spilled, total.matrix > 0.0).us() * ROUNDED
    };
    // By how much rows are apart counts for less where more bytes move.
    let least = bound(&run, &Work { scattered: 0.0, ..run.total() });
    if is_above(least) {
        return least;
    }
    run.count_accesses(launch);
    let total = run.total();
    let least = bound(&run, &total);
    if is_above(least) {
        return least;
    }
    combined(&run.limits(launch, &total, run.latency()), occupancy.spilled, total.matrix > 0.0).us()
}

/// Microseconds of a launch.
struct Combined {
    /// Without spills.
    limits: f64,
    /// Of registers that are spilled.
    spills: f64,
}

impl Combined {
    /// Each spilled register is written and read back, in loops each time; accumulators of a warpgroup wait for all of its
    /// products.
    fn new(limits: f64, spilled: u32, has_products: bool) -> Combined {
        let times = f64::from(spilled) / if has_products { 2.0 } else { 32.0 };
        Combined { limits, spills: limits * times.min(SPILLED) }
    }

    fn us(&self) -> f64 {
        LAUNCH + self.limits + self.spills
    }
}

/// The time of a launch for which these limits alone would allow so much.
fn combined(parts: &[(Bound, f64)], spilled: u32, has_products: bool) -> Combined {
    let limits = parts.iter().map(|(_, t)| t.powf(NORM)).sum::<f64>().powf(1.0 / NORM);
    Combined::new(limits, spilled, has_products)
}

/// Nearly the same, and sooner.
fn nearly_combined(parts: &[(Bound, f64)], spilled: u32, has_products: bool) -> Combined {
    let limits = parts.iter().map(|(_, t)| t.powi(NORM as i32)).sum::<f64>().powf(1.0 / NORM);
    Combined::new(limits, spilled, has_products)
}

/// The cost of each place of the source from which a kernel was made, in the order of the source.
pub fn by_place(of: &Analysed, launch: &Launched<'_>, chip: &Chip) -> Vec<PlaceCost> {
    let kernel = of.kernel();
    let run = Running::new(of, launch, chip);
    let live = liveness::at_each(kernel);
    let func = kernel.func();
    let mut places: BTreeMap<(u32, u32, u32), (Work, u32, u32)> = BTreeMap::new();
    for (block, data) in func.blocks.iter() {
        let times = run.often.of(block);
        for i in data.insts.iter().filter(|_| times > 0.0) {
            let Some(loc) = func.insts[*i].loc else { continue };
            let (total, registers, tile_bytes) = places.entry((loc.file, loc.start, loc.end)).or_default();
            total.add(run.works.get(*i), times);
            *registers = (*registers).max(live.get(i.index()).copied().unwrap_or(0));
            let tiles = func.insts[*i].results.iter().map(|v| tile_bytes_of(kernel, *v));
            *tile_bytes = tiles.fold(*tile_bytes, u32::max);
        }
    }
    let cost = |((file, start, end), (total, registers, tile_bytes))| {
        let total: Work = total;
        let mut parts = run.parts(&total);
        parts.retain(|(_, us)| *us > 0.0);
        parts.sort_by(|a, b| b.1.total_cmp(&a.1));
        PlaceCost {
            loc: Loc { file, start, end },
            parts,
            instructions: total.issue * run.programs,
            bytes: total.bytes * run.programs,
            needed: total.needed * run.programs,
            lane_bytes: total.lane_bytes,
            limit: total.limit,
            tensor_copies: total.tensor_copies,
            conflicts: total.conflicts * run.programs,
            tile_bytes,
            registers,
        }
    };
    places.into_iter().map(cost).collect()
}

/// Bytes of a lane for a tile.
fn tile_bytes_of(kernel: &Kernel, v: ValueId) -> u32 {
    let bytes = element_bytes(kernel.module.types.get(kernel.func().ty(v)).elem()) as u32;
    kernel.layout(v).map_or(0, |layout| layout.registers() as u32 * bytes)
}

/// A kernel that runs.
struct Running<'a> {
    of: &'a Analysed,
    kernel: &'a Kernel,
    chip: &'a Chip,
    often: Frequencies,
    works: Works<'a>,
    programs: f64,
    occupancy: Occupancy,
    /// Microseconds of a cycle.
    us: f64,
}

/// The costs of instructions in a launch.
struct Works<'a> {
    /// By instruction, those that no argument changes.
    fixed: &'a [Work],
    /// The numbers of the others.
    numbers: &'a [Option<u32>],
    /// The costs of these by number; none before they are counted.
    varying: Vec<Work>,
}

impl Works<'_> {
    fn get(&self, inst: InstId) -> &Work {
        static NONE: Work = Work::NONE;
        match self.numbers.get(inst.index()).copied().flatten() {
            Some(n) => self.varying.get(n as usize).unwrap_or(&NONE),
            None => self.fixed.get(inst.index()).unwrap_or(&NONE),
        }
    }
}

/// What fits on a multiprocessor.
#[derive(Clone, Copy)]
struct Occupancy {
    /// Registers of a lane.
    registers: u32,
    /// Those that it spills.
    spilled: u32,
    blocks_per_sm: u32,
    /// Programs that the fullest multiprocessor runs, or parts of them where a program has several blocks.
    of_sm: f64,
    waves: f64,
    /// How much more registers the kernel wants than a lane has, at least 1.
    rounds: f64,
}

impl<'a> Running<'a> {
    fn new(of: &'a Analysed, launch: &Launched<'_>, chip: &'a Chip) -> Running<'a> {
        let often = of.slice.frequencies(&of.kernel().module, of.kernel().func(), launch.args, launch.grid);
        let mut run = Running::with(of, launch, chip, often);
        run.count_accesses(launch);
        run
    }

    /// One whose accesses of arguments cost nothing yet.
    fn with(of: &'a Analysed, launch: &Launched<'_>, chip: &'a Chip, often: Frequencies) -> Running<'a> {
        let programs = launch.programs();
        let occupancy = Occupancy::new(of, programs, launch.sms);
        let works = Works { fixed: &of.works, numbers: &of.numbers, varying: vec![] };
        Running { of, kernel: of.kernel(), chip, often, works, programs, occupancy, us: 1e6 / chip.clock }
    }

    /// Counts the accesses of arguments.
    fn count_accesses(&mut self, launch: &Launched<'_>) {
        let of = self.of;
        let costs = Costs::new(of, launch.args, self.programs);
        let runs = |block: &BlockId| self.often.of(*block) > 0.0;
        let all = of.blocks.iter().flat_map(|(block, _, varies)| varies.iter().map(move |i| (block, *i)));
        let cost = |(block, i): (&BlockId, InstId)| match runs(block) {
            true => work(&costs, i),
            false => of.works.get(i.index()).copied().unwrap_or_default(),
        };
        self.works.varying = all.map(cost).collect();
    }

    /// The work of a program, as far as it is counted.
    fn total(&self) -> Work {
        let mut total = Work::default();
        for (block, fixed, varies) in &self.of.blocks {
            let times = self.often.of(*block);
            if times > 0.0 {
                total.add(fixed, times);
                varies.iter().for_each(|i| total.add(self.works.get(*i), times));
            }
        }
        total
    }

    /// The time that each limit alone would allow, in microseconds, with this one for the latency of programs.
    fn limits(&self, launch: &Launched<'_>, total: &Work, latency: f64) -> Vec<(Bound, f64)> {
        let mut parts = self.parts(total);
        let l2_bytes = total.bytes * self.programs;
        let is_large = launch.bytes > self.chip.l2_bytes && total.matrix > 0.0;
        let misses = if is_large { MISSES * (l2_bytes - launch.bytes).max(0.0) } else { 0.0 };
        parts.push((Bound::Programs, self.occupancy.of_sm * PROGRAM * self.us));
        parts.push((Bound::Latency, latency));
        // What the programs read of one another's lines, the cache has.
        let scattered = total.scattered * self.programs * (launch.bytes / l2_bytes.max(1.0)).min(1.0);
        let moved = launch.bytes + misses + scattered;
        parts.push((Bound::Memory, moved / (self.chip.memory * BANDWIDTH) * 1e6));
        parts
    }

    /// The time of all rounds of programs that wait for nothing but themselves, in microseconds.
    fn latency(&self) -> f64 {
        // Where registers do not suffice for all loads at once, they follow one another.
        let alone = self.of.timeline.alone(self.kernel, &self.works, &self.often, self.chip);
        self.latency_of(alone * self.occupancy.rounds)
    }

    /// The same if one takes so many cycles after its start.
    fn latency_of(&self, alone: f64) -> f64 {
        let alone = (START + alone) * longest(&self.often, self.occupancy.waves);
        self.occupancy.all_rounds() * alone * self.us
    }

    /// The time of each unit of the fullest multiprocessor, and of the shared cache, for work of a program.
    fn parts(&self, total: &Work) -> Vec<(Bound, f64)> {
        let (spec, chip) = (self.kernel.options.spec, self.chip);
        // A block has its share of the work of a program.
        let share = self.occupancy.of_sm / f64::from(self.kernel.options.blocks.max(1));
        let warps = f64::from(self.of.threads / spec.warp_size).max(1.0);
        let resident = warps * f64::from(self.occupancy.blocks_per_sm.max(1)).min(self.occupancy.of_sm);
        let schedulers = f64::from(spec.sm.schedulers).min(resident);
        let of_all = total.bytes * self.programs / (chip.l2 * CACHE) * 1e6;
        let of_one = total.bytes * share / PORT * self.us;
        let matrix = total.matrix / (chip.matrix16 / f64::from(chip.sms) / chip.clock) / MATRIX;
        vec![
            (Bound::Issue, ISSUED * total.issue / schedulers * share * self.us),
            (Bound::Special, total.special * 2.0 * share * self.us),
            (Bound::Shared, total.shared * share * self.us),
            (Bound::Accesses, total.accesses * share * self.us),
            (Bound::Matrix, matrix * share * self.us),
            (Bound::Cache, of_all.max(of_one)),
        ]
    }
}

/// How much longer the longest program is than the mean, as far as the others do not wait in a queue behind it.
fn longest(often: &Frequencies, waves: f64) -> f64 {
    1.0 + (often.longest - 1.0) / waves.max(1.0)
}

impl Occupancy {
    /// How often the time of a program counts.
    fn all_rounds(&self) -> f64 {
        (self.waves + ROUND).clamp(1.0, self.waves.ceil().max(1.0))
    }

    fn new(of: &Analysed, programs: f64, sms: u32) -> Occupancy {
        let kernel = of.kernel();
        let spec = kernel.options.spec;
        // Loads go ahead while there are registers; where there are none, elements are loaded when they are used.
        let wanted = of.ahead + NON_TILE_REGISTERS;
        let needed = of.least + NON_TILE_REGISTERS - SLACK;
        let most = of.limit;
        // Where registers move from producers, the others have more than the launch gives them.
        let limit = if of.gives_registers { most + most / 2 } else { most };
        let (has, spilled) = (wanted.min(most), needed.saturating_sub(limit));
        let blocks_per_sm = spec.blocks_per_sm(has, of.threads, of.shared_bytes);
        let blocks = f64::from(kernel.options.blocks.max(1));
        let of_sm = (programs * blocks / f64::from(sms.max(1))).ceil().max(1.0);
        let rounds = (f64::from(wanted) / f64::from(limit)).max(1.0);
        Occupancy {
            registers: has,
            spilled,
            blocks_per_sm,
            of_sm,
            waves: of_sm / f64::from(blocks_per_sm.max(1)),
            rounds,
        }
    }
}
