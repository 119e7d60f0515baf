//! Plans conversions within warps as selects and shuffles, and evaluates such plans.
//!
//! # The form of a plan
//!
//! A shuffle gives each lane one value of a source lane that it chooses; each lane chooses which of its registers it
//! gives. So a plan has three steps.
//!
//! 1. *Before*: each lane reorders its own source registers. `v[x]` becomes `source[x ^ g(thread)]`.
//! 2. *Rounds*: in round `k` each lane gives `v[register_k]` and reads from lane `m(thread) ^ lane_xor_k`.
//! 3. *After*: each lane reorders the results: destination register `r` is the result of round `k_r ^ a(thread)`.
//!
//! `g`, `m` and `a` are linear over GF(2) in the bits of the thread (lane, then warp, then block). Reordering by `x ^
//! g(thread)` is a barrel shifter of XORs: one [`Select`] stage for each independent value of `g`. If `m` is the
//! identity, a round is a butterfly shuffle; if `lane_xor` is also zero, it is no shuffle at all.
//!
//! # Why this is sufficient
//!
//! Fix a warp. Let `P` be the span of the source's register bases, `Q` that of the destination's. Round 0 gives lane
//! `l` an element `want(l)`: the one that the lane owns in register 0 of the destination, up to an element of `Q`
//! (which *after* reorders). Lane `l` gives an element `supply(l)`: the one that it owns in register 0 of the source,
//! up to an element of `P` (which *before* reorders). The round works if the image of `want` is contained in that of
//! `supply`. The other rounds add an element of `Q` to all of this, the same for all lanes. So one has to choose an
//! image `Y` of `want`, a complement of `Q`, whose intersection with `P` is as small as possible; its dimension may be
//! the number of lane bits of the source that are copies. A complement of `Q` that avoids `P` exists if `Q` is not
//! smaller than `P`: a vector `p` of `P` in it is replaced by `p + q`. If `Q` is smaller, it is extended by elements
//! that no lane needs, that is, by more rounds.
//!
//! If the lane bases of both layouts agree up to `P + Q`, every lane may read from itself in round 0, and in each round
//! whose element of `Q` is in `P`. Exchanging `n` of `R` register bits for lane bits then costs `R - R/2^n` shuffles.

use super::gf2::{Span, bit, image, low, ones};
use super::{InDim, LinearLayout};

/// One stage of reordering registers: in each [chosen](Select::chosen) thread the value at index `x` is replaced by
/// that at `x ^ xor`, for all `x`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Select {
    /// The bits of the thread that decide.
    pub mask: u32,
    /// The value that chosen threads add to the index.
    pub xor: u32,
}

impl Select {
    /// Returns true if an odd number of the thread's bits in the mask is set.
    pub fn chosen(&self, thread: u32) -> bool {
        (thread & self.mask).count_ones() % 2 == 1
    }
}

/// One shuffle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// The value that each lane gives: an index after the stages of [`ShufflePlan::before`].
    pub register: u32,
    /// Each lane reads from the lane that [`ShufflePlan::lane`] returns for this round; this is the part of it that
    /// differs between rounds.
    pub lane_xor: u32,
}

/// A conversion of one layout to another within warps; the module documentation says how to read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShufflePlan {
    lane_bits: u32,
    /// Stages that reorder the source registers of a lane. Indices are numbers of source registers.
    pub before: Vec<Select>,
    /// The lane to read from is the XOR of these over the set bits of the thread, and of [`Round::lane_xor`].
    pub lane_of: Vec<u32>,
    /// The shuffles, a power of two of them.
    pub rounds: Vec<Round>,
    /// Stages that reorder the results of the rounds. Indices are numbers of rounds.
    pub after: Vec<Select>,
    /// For each destination register the index after those stages.
    pub registers: Vec<u32>,
}

/// A plan for words of two values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The bit of the number of a source register in which the two values of a word differ.
    pub source: u32,
    /// The same for the results.
    pub result: u32,
    /// The plan.
    pub plan: ShufflePlan,
}

impl ShufflePlan {
    /// A plan with few shuffles. `None` if some lane needs an element that its warp does not own, or if the layouts
    /// differ in the tile or in the number of lanes, warps or blocks.
    pub fn new(src: &LinearLayout, dst: &LinearLayout) -> Option<Self> {
        let problem = Problem::new(src, dst)?;
        let own = problem.choose_own_lane().and_then(|c| problem.plan(&c, true));
        let any = problem.choose_any_lane().and_then(|c| problem.plan(&c, false));
        // Selects issue at twice the rate of shuffles (64 against 32 results per clock of an NVIDIA multiprocessor,
        // CUDA programming guide, arithmetic throughput). Another ratio would move the border between the two forms.
        own.into_iter().chain(any).min_by_key(|p| 2 * p.cost() + p.selects())
    }

    /// The number of shuffles if each value takes one 32-bit register.
    pub fn cost(&self) -> usize {
        self.rounds.iter().filter(|r| !self.is_own_lane(r)).count()
    }

    /// The number of shuffles if values have `bits` bits: small ones that move together share a shuffle ([`Self::paired`]),
    /// large ones take several.
    pub fn cost_of(&self, bits: u32) -> usize {
        if 2 * bits <= u32::BITS
            && let Some(pair) = self.paired()
        {
            return pair.plan.cost_of(2 * bits);
        }
        self.cost() * bits.div_ceil(u32::BITS) as usize
    }

    /// The same plan for words of two values each, if all values move in pairs.
    pub fn paired(&self) -> Option<Pair> {
        let bits = |n: usize| 0..n.checked_ilog2().unwrap_or(0);
        let pairs =
            |n: usize, bit: u32| (0..n).filter(move |i| i >> bit & 1 == 0).map(move |i| (i, i | 1 << bit));
        let keeps = |stages: &[Select], bit: u32| stages.iter().all(|s| s.xor >> bit & 1 == 0);
        // A pair of rounds gives neighbours along a register bit of the source to the same lanes.
        let of_rounds = |round: u32| {
            let mut along = pairs(self.rounds.len(), round).map(|(i, k)| {
                let (one, two) = (self.rounds.get(i)?, self.rounds.get(k)?);
                let apart = one.register ^ two.register;
                let fits =
                    one.lane_xor == two.lane_xor && apart.is_power_of_two() && one.register & apart == 0;
                fits.then(|| apart.ilog2())
            });
            let first = along.next()??;
            along.all(|bit| bit == Some(first)).then_some(first)
        };
        let of_results = |round: u32| {
            let next = 1 << round;
            bits(self.registers.len()).find(|bit| {
                pairs(self.registers.len(), *bit).all(|(i, k)| {
                    let ends = self.registers.get(i).zip(self.registers.get(k));
                    ends.is_some_and(|(one, two)| one & next == 0 && *two == one | next)
                })
            })
        };
        let (source, round, result) = bits(self.rounds.len()).find_map(|round| {
            let (source, result) = (of_rounds(round)?, of_results(round)?);
            let whole = keeps(&self.before, source) && keeps(&self.after, round);
            whole.then_some((source, round, result))
        })?;
        let cut = |x: u32, bit: u32| x & low(bit) as u32 | x >> (bit + 1) << bit;
        let stages =
            |stages: &[Select], bit| stages.iter().map(|s| Select { xor: cut(s.xor, bit), ..*s }).collect();
        let rounds = pairs(self.rounds.len(), round).filter_map(|(i, _)| self.rounds.get(i));
        let registers = pairs(self.registers.len(), result).filter_map(|(i, _)| self.registers.get(i));
        let plan = ShufflePlan {
            lane_bits: self.lane_bits,
            before: stages(&self.before, source),
            lane_of: self.lane_of.clone(),
            rounds: rounds.map(|r| Round { register: cut(r.register, source), ..*r }).collect(),
            after: stages(&self.after, round),
            registers: registers.map(|r| cut(*r, round)).collect(),
        };
        Some(Pair { source, result, plan })
    }

    /// The number of selects whose result is used.
    pub fn selects(&self) -> usize {
        let after = count_selects(&self.after, self.registers.iter().copied());
        after + count_selects(&self.before, self.rounds.iter().map(|r| r.register))
    }

    /// Returns true if this round gives each lane a value of its own, so that no shuffle is needed.
    pub fn is_own_lane(&self, round: &Round) -> bool {
        round.lane_xor == 0 && self.is_butterfly()
    }

    /// Returns true if each lane reads from its own number XOR [`Round::lane_xor`].
    pub fn is_butterfly(&self) -> bool {
        let own = |i: usize| if (i as u32) < self.lane_bits { bit(i as u32) as u32 } else { 0 };
        self.lane_of.iter().enumerate().all(|(i, lane)| *lane == own(i))
    }

    /// The lane from which a thread reads in a round. A thread's number is its lane, then its warp, then its block.
    pub fn lane(&self, round: &Round, thread: u32) -> u32 {
        ones(u64::from(thread)).filter_map(|i| self.lane_of.get(i)).fold(round.lane_xor, |lane, l| lane ^ l)
    }

    /// Executes the plan: `source[thread][register]` are the values before, the result those after. `None` if a thread
    /// or a register is missing.
    pub fn evaluate<T: Clone>(&self, source: &[Vec<T>]) -> Option<Vec<Vec<T>>> {
        let reorder = |values: &[T], stages: &[Select], thread: u32, index: u32| -> Option<T> {
            let xor = stages.iter().filter(|s| s.chosen(thread)).fold(0, |sum, s| sum ^ s.xor);
            values.get((index ^ xor) as usize).cloned()
        };
        let lane_mask = low(self.lane_bits) as u32;
        let threads = 0..source.len() as u32;
        threads
            .map(|thread| {
                let brought = self.rounds.iter().map(|round| {
                    let giver = (thread & !lane_mask) | self.lane(round, thread);
                    reorder(source.get(giver as usize)?, &self.before, giver, round.register)
                });
                let brought: Vec<T> = brought.collect::<Option<_>>()?;
                self.registers.iter().map(|r| reorder(&brought, &self.after, thread, *r)).collect()
            })
            .collect()
    }
}

/// The selects that the stages need for these indices of the result.
fn count_selects(stages: &[Select], used: impl Iterator<Item = u32>) -> usize {
    let mut used: std::collections::BTreeSet<u32> = used.collect();
    let mut count = 0;
    for stage in stages.iter().rev() {
        count += used.len();
        let others: Vec<u32> = used.iter().map(|x| x ^ stage.xor).collect();
        used.extend(others);
    }
    count
}

/// The two layouts, prepared.
struct Problem<'a> {
    src: &'a LinearLayout,
    dst: &'a LinearLayout,
    /// Register bases of the destination without dependent ones; `Q` of the module documentation.
    kept: Vec<u64>,
}

/// The choices of a plan.
struct Choice {
    /// For each lane bit the element that the lane gives in round 0.
    supply: Vec<u64>,
    /// For each lane bit the element that the lane receives in round 0.
    want: Vec<u64>,
    /// `Q`, possibly extended by more rounds.
    kept: Vec<u64>,
}

impl<'a> Problem<'a> {
    fn new(src: &'a LinearLayout, dst: &'a LinearLayout) -> Option<Self> {
        let threads_agree =
            [InDim::Lane, InDim::Warp, InDim::Block].into_iter().all(|d| src.bits(d) == dst.bits(d));
        if src.out_bits != dst.out_bits || !threads_agree {
            return None;
        }
        let owned = Span::of(src.register.iter().chain(&src.lane).copied());
        let between_warps =
            src.warp.iter().chain(&src.block).zip(dst.warp.iter().chain(&dst.block)).map(|(s, d)| s ^ d);
        let wanted = dst.register.iter().chain(&dst.lane).copied().chain(between_warps);
        for vector in wanted {
            if !owned.contains(vector) {
                return None;
            }
        }
        let mut span = Span::default();
        let kept = dst.register.iter().copied().filter(|b| span.insert(*b)).collect();
        Some(Self { src, dst, kept })
    }

    /// Every lane reads from itself in round 0. `None` if the lane bases differ by more than `P + Q`.
    fn choose_own_lane(&self) -> Option<Choice> {
        let registers = Span::of(self.src.register.iter().chain(&self.kept).copied());
        let mut choice = Choice { supply: vec![], want: vec![], kept: self.kept.clone() };
        for (s, d) in self.src.lane.iter().zip(&self.dst.lane) {
            let given =
                image(&self.src.register, registers.solve(s ^ d)? & low(self.src.register.len() as u32));
            choice.supply.push(s ^ given);
            // The rest of the difference is in `Q`.
            choice.want.push(s ^ given);
        }
        Some(choice)
    }

    /// The general form.
    fn choose_any_lane(&self) -> Option<Choice> {
        let (wanted, kept) = self.wanted_elements();
        let supply = self.supplied_elements(&wanted)?;
        let sum = Span::of(wanted.iter().chain(&kept).copied());
        let part = |d: &u64| Some(image(&wanted, sum.solve(*d)? & low(wanted.len() as u32)));
        let want = self.dst.lane.iter().map(part).collect::<Option<_>>()?;
        Some(Choice { supply, want, kept })
    }

    /// A basis of `Y`, and `Q`, extended if necessary.
    fn wanted_elements(&self) -> (Vec<u64>, Vec<u64>) {
        let mut kept = self.kept.clone();
        let mut basis: Vec<u64> = vec![];
        let mut with_kept = Span::of(kept.iter().copied());
        let mut with_source = Span::of(self.src.register.iter().copied());
        let mut spare = self.copies().len();
        for &d in &self.dst.lane {
            if with_kept.contains(d) {
                continue;
            }
            let taken = if !with_source.contains(d) {
                d
            } else if spare > 0 {
                spare -= 1;
                d
            } else if let Some(q) = kept.iter().find(|q| !with_source.contains(**q)) {
                d ^ q
            } else {
                let sum = Span::of(basis.iter().chain(&self.src.register).copied());
                let outside = sum.solve(d).unwrap_or(0) & !low(basis.len() as u32);
                let extra = image(&self.src.register, outside.checked_shr(basis.len() as u32).unwrap_or(0));
                kept.push(extra);
                with_kept.insert(extra);
                continue;
            };
            basis.push(taken);
            with_kept.insert(taken);
            with_source.insert(taken);
        }
        (basis, kept)
    }

    /// Masks of lanes that own, up to registers, the elements of lane 0: a basis of them.
    fn copies(&self) -> Vec<u64> {
        let registers = self.src.register.len() as u32;
        let mut span = Span::of(self.src.register.iter().copied());
        let mut copies = vec![];
        for (i, s) in self.src.lane.iter().enumerate() {
            if let Some(mask) = span.solve(*s) {
                copies.push(mask.checked_shr(registers).unwrap_or(0) ^ bit(i as u32));
            }
            span.insert(*s);
        }
        copies
    }

    /// For each lane bit the element that the lane gives, such that some lane gives each element of `wanted`.
    fn supplied_elements(&self, wanted: &[u64]) -> Option<Vec<u64>> {
        let lanes = &self.src.lane;
        let holder = Span::of(lanes.iter().chain(&self.src.register).copied());
        let copies = self.copies();
        // Lanes that are independent of one another, and the element that each gives.
        let mut givers = Span::default();
        let mut gifts = vec![];
        for element in wanted {
            let mut lane = holder.solve(*element)? & low(lanes.len() as u32);
            if givers.contains(lane) {
                // The lane gives another element already; one that owns the same replaces it.
                lane ^= copies.iter().find(|c| !givers.contains(**c))?;
            }
            givers.insert(lane);
            gifts.push(*element);
        }
        for (i, s) in lanes.iter().enumerate() {
            let lane = bit(i as u32);
            if !givers.contains(lane) {
                givers.insert(lane);
                gifts.push(*s);
            }
        }
        (0..lanes.len()).map(|i| Some(image(&gifts, givers.solve(bit(i as u32))?))).collect()
    }

    /// Constructs the plan.
    fn plan(&self, choice: &Choice, own_lane: bool) -> Option<ShufflePlan> {
        let (src, dst) = (self.src, self.dst);
        let lane_bits = src.lane.len() as u32;
        let registers = Span::of(src.register.iter().copied());
        let kept = Span::of(choice.kept.iter().copied());
        let givers = Span::of(choice.supply.iter().copied());
        let (mut before, mut after, mut lane_of) = (vec![], vec![], vec![]);
        for i in 0..src.lane.len() {
            let (supply, want) = (choice.supply.get(i)?, choice.want.get(i)?);
            before.push(registers.solve(supply ^ src.lane.get(i)?)?);
            after.push(kept.solve(want ^ dst.lane.get(i)?)?);
            lane_of.push(if own_lane { bit(i as u32) } else { givers.solve(*want)? } as u32);
        }
        let outer_src = src.warp.iter().chain(&src.block);
        for (s, d) in outer_src.zip(dst.warp.iter().chain(&dst.block)) {
            let groups: [&[u64]; 3] = if own_lane {
                [&src.register, &choice.kept, &choice.supply]
            } else {
                [&choice.supply, &src.register, &choice.kept]
            };
            let [first, second, third] = solve_in_order(groups, s ^ d)?;
            let (register, round, lane) =
                if own_lane { (first, second, third) } else { (second, third, first) };
            before.push(register);
            after.push(round);
            lane_of.push(lane as u32);
        }
        let (mut given, mut lanes) = (vec![], vec![]);
        for element in &choice.kept {
            let [register, lane, _] = solve_in_order([&src.register, &choice.supply, &[]], *element)?;
            given.push(register);
            lanes.push(lane);
        }
        let round = |k| Round { register: image(&given, k) as u32, lane_xor: image(&lanes, k) as u32 };
        let rounds = (0..bit(choice.kept.len() as u32)).map(round).collect();
        let columns: Vec<u64> = dst.register.iter().map(|b| kept.solve(*b)).collect::<Option<_>>()?;
        Some(ShufflePlan {
            lane_bits,
            before: stages(&before),
            lane_of,
            rounds,
            after: stages(&after),
            registers: (0..bit(columns.len() as u32)).map(|r| image(&columns, r) as u32).collect(),
        })
    }
}

/// Expresses a vector as a sum of vectors of three groups, preferring earlier groups: a mask for each group.
fn solve_in_order(groups: [&[u64]; 3], vector: u64) -> Option<[u64; 3]> {
    let mask = Span::of(groups.iter().flat_map(|g| g.iter().copied())).solve(vector)?;
    let mut rest = mask;
    Some(groups.map(|g| {
        let own = rest & low(g.len() as u32);
        rest = rest.checked_shr(g.len() as u32).unwrap_or(0);
        own
    }))
}

/// The stages that add `columns[i]` to the index for each set bit `i` of the thread.
fn stages(columns: &[u64]) -> Vec<Select> {
    let mut span = Span::default();
    let mut stages: Vec<(usize, Select)> = vec![];
    for (i, column) in columns.iter().enumerate() {
        let mask = bit(i as u32) as u32;
        match span.solve(*column) {
            None => stages.push((i, Select { mask, xor: *column as u32 })),
            Some(sum) => {
                for (first, stage) in &mut stages {
                    if sum & bit(*first as u32) != 0 {
                        stage.mask |= mask;
                    }
                }
            }
        }
        span.insert(*column);
    }
    stages.into_iter().map(|(_, s)| s).collect()
}
