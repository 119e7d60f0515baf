//! The members of a `tune` list that a shipped kernel has, and when a launch takes which: [`shipped_members`].
//!
//! Tuning records for the target decide launches with their key. For the others, the cost model compares all members
//! for launches of many sizes ([`super::sample`]). A few members that together are close to the best everywhere are shipped;
//! a decision tree ([`tree`]) over the key, and over how well the programs of each fill the GPU, chooses among them. A
//! launch then evaluates a closed expression, and no compiler. What a launch gives by name, or an `export` lists, is
//! never chosen.

mod tree;

use std::collections::BTreeMap;

use tk_gpu::TargetSpec;
use tk_ops::DType;
use tk_runtime::Session;
use tk_runtime::choice::{MARGIN, Ranked};
use tk_runtime::tuning::{as_text, code_of};
use tk_sema::contract::{self, Closed, ClosedOp, SetValue, Values};
use tk_sema::eval::Bindings;
use tk_sema::hir::{FnId, LocalId};
use tk_sema::target::DeviceFact;
use tk_syntax::Diagnostic;

use crate::compile::sample;
use crate::compile::variant::MAX_OPTIONAL;
use crate::device::facts::{facts_about, usual_place};
use crate::{Cache, Environment, Jit};
use tree::{Sample, Tree};

/// A member that is shipped.
#[derive(Clone, Debug)]
pub struct ShippedMember {
    /// The values that it chooses.
    pub values: Values,
    /// Holds for the launches that take it.
    pub condition: Closed,
}

/// The least gain of a further member, as a part of the time of all samples.
const GAIN: f64 = 0.002;
/// The most tuning records of a specialization that decide.
const MOST_RECORDS: usize = 256;
/// The candidate that means the defaults.
const DEFAULTS: i64 = 0;
/// What the tuning records say where there is none.
const NO_RECORD: i64 = -1;

/// The members that a kernel with these values by name is shipped with, at most so many; none without a `tune` list, or if
/// its defaults are as good. Also returns why something is left out.
///
/// # Errors
/// The kernel cannot be specialized.
pub fn shipped_members(
    session: &Session,
    kernel: FnId,
    target: &'static TargetSpec,
    sets: &[(String, SetValue)],
    most: usize,
) -> Result<(Vec<ShippedMember>, Vec<String>), Vec<Diagnostic>> {
    let hir = &session.checked().hir;
    let name = &hir.func(kernel).name;
    let mut notes = vec![];
    if most == 0 || target.is_interpreted() || hir.func(kernel).contract.tune.is_none() {
        return Ok((vec![], notes));
    }
    let bindings = session.bindings(kernel, sets, facts_about(target))?;
    let key = match contract::close_key(hir, kernel, &bindings) {
        Ok(key) => key,
        Err(open) => {
            notes.push(format!("kernel `{name}` is shipped with its defaults alone: {}", open.message));
            return Ok((vec![], notes));
        }
    };
    // What has no closed form is refused where it is shipped, and has other forms.
    let Ok(of_defaults) = contract::close(hir, kernel, &bindings) else { return Ok((vec![], notes)) };
    let mut choice = Decision { session, kernel, target, sets, members: vec![] };
    let recorded = choice.records(&bindings, most, &mut notes);
    let (tree, compared) = choice.model(&bindings, &key, most, &mut notes)?;
    let is_used = |number: i64| {
        recorded.values().any(|n| *n == number) || usize::try_from(number).is_ok_and(|n| tree.chooses(n))
    };
    let members: Vec<(i64, Values)> =
        (DEFAULTS + 1..).zip(choice.members).filter(|(n, _)| is_used(*n)).collect();
    let decision = expression(&key, recorded, &of_tree(&tree, &compared));
    let mut out = vec![];
    for (number, values) in members {
        let with = session.bindings(kernel, &contract::with_values(sets, &values), facts_about(target))?;
        match contract::close(hir, kernel, &with).map(|own| own.require) {
            Ok(require) => {
                let chosen = compare(ClosedOp::Eq, decision.clone(), Closed::Int(number));
                // Where those of the defaults do not hold, the launch is refused.
                let require = require.into_iter().filter(|r| !of_defaults.require.contains(r));
                let condition = require.map(|(condition, _)| condition).fold(chosen, both);
                out.push(ShippedMember { values, condition });
            }
            Err(open) => {
                let member = shown(&values);
                notes.push(format!("a member of `{name}` is not shipped ({member}): {}", open.message));
            }
        }
    }
    Ok((out, notes))
}

/// What is known while members are chosen.
struct Decision<'a> {
    session: &'a Session,
    kernel: FnId,
    target: &'static TargetSpec,
    sets: &'a [(String, SetValue)],
    /// The shipped members; candidate `i + 1` of decisions is number `i`.
    members: Vec<Values>,
}

impl Decision<'_> {
    /// The number of a member among the candidates.
    fn candidate(&mut self, values: &Values) -> i64 {
        let known = self.members.iter().position(|m| m == values);
        let at = known.unwrap_or_else(|| {
            self.members.push(values.clone());
            self.members.len() - 1
        });
        DEFAULTS + 1 + at as i64
    }

    /// What tuning records of this target decide, by key. A record of the usual GPU of the target comes before others.
    fn records(
        &mut self,
        bindings: &Bindings,
        most: usize,
        notes: &mut Vec<String>,
    ) -> BTreeMap<Vec<i64>, i64> {
        let session = self.session;
        let hir = &session.checked().hir;
        let name = hir.func(self.kernel).name.clone();
        let mut records = match session.records_for(self.kernel, self.target.name) {
            Ok(records) => records,
            Err(why) => {
                notes.push(why);
                return BTreeMap::new();
            }
        };
        let usual = usual_place(self.target).map(|place| place.name);
        let is_usual = |device: &str| usual.as_deref().is_some_and(|name| device.starts_with(name));
        records.sort_by_key(|r| !is_usual(&r.device));
        let default = as_text(&contract::as_sets(hir, &bindings.cvars));
        let (mut found, mut older): (BTreeMap<Vec<i64>, i64>, usize) = (BTreeMap::new(), 0);
        for record in records.into_iter().take(MOST_RECORDS) {
            let tuned = |name: &String| record.member.contains_key(name);
            let mut given = default.clone();
            given.retain(|name, _| !tuned(name));
            let text = |(name, v): (&String, &String)| (name.clone(), SetValue::parse(v));
            let values: Values = record.member.iter().map(text).collect();
            let agrees = self.sets.iter().all(|(n, v)| values.iter().all(|(m, own)| m != n || own == v));
            if given != record.given || !agrees || found.contains_key(&record.key) {
                continue;
            }
            let Some(values) = self.in_order(&values) else { continue };
            let with = contract::with_values(self.sets, &values);
            // A record may be made up: what the kernel cannot have is no error of the kernel.
            let with = session.bindings(self.kernel, &with, facts_about(self.target));
            let is_own = with.is_ok_and(|with| {
                let is_known =
                    record.default_code.is_empty() || self.has_code(bindings, &record.default_code);
                is_known
                    && contract::is_listed(hir, self.kernel, &with, &values)
                    && self.has_code(&with, &record.code)
            });
            if !is_own {
                older += 1;
                continue;
            }
            if self.members.len() < most || self.members.contains(&values) {
                let candidate = self.candidate(&values);
                found.insert(record.key, candidate);
            }
        }
        if older > 0 {
            notes.push(format!(
                "{older} tuning records of `{name}` for {} are older than the kernel, or name no member; run `tk tune` again",
                self.target.name
            ));
        }
        found
    }

    /// Returns true if a specialization has this code, with some of its optional arguments.
    fn has_code(&self, bindings: &Bindings, code: &str) -> bool {
        let optional: Vec<LocalId> = bindings.present.keys().copied().collect();
        (0..1usize << optional.len().min(MAX_OPTIONAL)).any(|mask| {
            let mut with = bindings.clone();
            with.present.extend(optional.iter().enumerate().map(|(i, id)| (*id, mask >> i & 1 == 0)));
            let compiled = self.session.compile(self.kernel, &with);
            compiled.is_ok_and(|(compiled, _)| code_of(&compiled.module) == code)
        })
    }

    /// Values in the order of the row of the list that they come from; `None` if no row lists these names.
    fn in_order(&self, values: &Values) -> Option<Values> {
        let tune = self.session.checked().hir.func(self.kernel).contract.tune.as_ref()?;
        let row = tune.rows.iter().map(|(entries, _)| entries).find(|entries| {
            entries.len() == values.len()
                && entries.iter().all(|(name, _)| values.iter().any(|(n, _)| n == name))
        })?;
        let value = |name: &String| values.iter().find(|(n, _)| n == name).cloned();
        row.iter().map(|(name, _)| value(name)).collect()
    }

    /// What the tree compares: numbers that follow from the key, and how candidates, of which a multiprocessor runs so many
    /// blocks, fill the GPU.
    fn compared(&self, key: &[Closed], fits: &[(&Values, i64)]) -> Result<Vec<Closed>, Vec<Diagnostic>> {
        let session = self.session;
        let mut closed = features(key, |a, b| product(a.clone(), b.clone()));
        for (values, fits) in fits {
            let with = contract::with_values(self.sets, values);
            let with = session.bindings(self.kernel, &with, facts_about(self.target))?;
            let grid =
                contract::close(&session.checked().hir, self.kernel, &with).map_err(|d| vec![*d])?.grid;
            closed.extend(filled_of(grid, *fits));
        }
        Ok(closed)
    }

    /// The tree that chooses among a few members, which are added to those that are shipped, and what it compares.
    fn model(
        &mut self,
        bindings: &Bindings,
        key: &[Closed],
        most: usize,
        notes: &mut Vec<String>,
    ) -> Result<(Tree, Vec<Closed>), Vec<Diagnostic>> {
        let session = self.session;
        let name = &session.checked().hir.func(self.kernel).name;
        let Some(place) = usual_place(self.target) else {
            notes.push(format!(
                "`{name}` is shipped for {} without what a cost model would choose: nothing is known of the speed of its GPUs",
                self.target.name
            ));
            return Ok((Tree::Leaf(0), vec![]));
        };
        let contract =
            contract::close(&session.checked().hir, self.kernel, bindings).map_err(|d| vec![*d])?;
        let jit =
            Jit::new(session.checked().sources.clone(), Environment::of_process(None), Cache::of_process());
        let mut launches: Vec<Sampled> = vec![];
        for args in sample::launches(&contract, bindings, key) {
            if let Ok(ranked) = session.ranked(self.kernel, &args, self.sets, &place, &jit)
                && let Some(plan) = ranked.first().map(|r| &r.plan)
                && !plan.grid.contains(&0)
            {
                launches.push((plan.key.clone(), ranked));
            }
        }
        // The time of each candidate in each launch, as the logarithm of its ratio to the shortest.
        let mut candidates: Vec<Values> = vec![vec![]];
        candidates.extend(self.members.iter().cloned());
        for (_, ranked) in &launches {
            for r in ranked {
                if !candidates.contains(&r.values) {
                    candidates.push(r.values.clone());
                }
            }
        }
        let costs: Vec<Vec<f64>> = launches.iter().map(|(_, ranked)| costs(ranked, &candidates)).collect();
        let mut chosen: Vec<usize> = (0..=self.members.len()).collect();
        while chosen.len() <= most {
            let with =
                |c: usize| costs.iter().map(|row| least(row, chosen.iter().copied().chain([c]))).sum::<f64>();
            let now: f64 = costs.iter().map(|row| least(row, chosen.iter().copied())).sum();
            let next = (0..candidates.len()).map(|c| (c, with(c))).min_by(|a, b| a.1.total_cmp(&b.1));
            match next {
                Some((c, then)) if now - then > GAIN * costs.len() as f64 => chosen.push(c),
                Some(_) | None => break,
            }
        }
        let numbers: Vec<usize> = chosen
            .iter()
            .map(|c| candidates.get(*c).filter(|v| !v.is_empty()).map_or(0, |v| self.candidate(v) as usize))
            .collect();
        let fits: Vec<(&Values, i64)> = chosen
            .iter()
            .filter_map(|c| candidates.get(*c))
            .map(|values| (values, blocks_per_sm(&launches, values)))
            .collect();
        let samples: Vec<Sample> = launches
            .iter()
            .zip(&costs)
            .map(|((key, ranked), row)| {
                let programs = |values: &Values| {
                    let grid = ranked.iter().find(|r| r.values == *values).map_or([0; 3], |r| r.plan.grid);
                    grid.iter().map(|n| i64::from(*n)).product::<i64>()
                };
                let filled = fits.iter().flat_map(|(v, fits)| filled(programs(v), place.facts.sms * fits));
                Sample {
                    features: features(key, |a, b| a.saturating_mul(*b)).into_iter().chain(filled).collect(),
                    costs: chosen.iter().map(|c| row.get(*c).copied().unwrap_or(0.0)).collect(),
                }
            })
            .collect();
        let closed = self.compared(key, &fits)?;
        Ok((renumbered(Tree::learn(&samples), &numbers), closed))
    }
}

/// The candidate of a launch: what a record says, else the tree.
fn expression(key: &[Closed], recorded: BTreeMap<Vec<i64>, i64>, tree: &Closed) -> Closed {
    let records: Vec<(Vec<i64>, i64)> = recorded.into_iter().collect();
    if records.is_empty() {
        return tree.clone();
    }
    let record = of_records(&records, key);
    let is_known = compare(ClosedOp::Ne, record.clone(), Closed::Int(NO_RECORD));
    select(is_known, record, tree.clone())
}

/// The logarithm of the time of each candidate over the shortest one. A launch that cannot take a candidate takes the
/// defaults.
fn costs(ranked: &[Ranked], candidates: &[Values]) -> Vec<f64> {
    let time = |r: &Ranked| r.estimate.as_ref().map_or(f64::INFINITY, |e| e.us);
    let of = |values: &Values| ranked.iter().find(|r| r.values == *values).map(time);
    let default = of(&vec![]).unwrap_or(f64::INFINITY) * MARGIN;
    let shortest = ranked.iter().map(time).fold(default, f64::min);
    /// Microseconds of each launch that the model leaves out, since they are the same for all.
    const FLOOR: f64 = 3.0;
    /// The logarithm for what cannot run.
    const NEVER: f64 = 4.0;
    let cost = |us: f64| if us.is_finite() { ((us + FLOOR) / (shortest + FLOOR)).ln() } else { NEVER };
    candidates
        .iter()
        .map(|v| if v.is_empty() { cost(default) } else { of(v).map_or(cost(default) + GAIN, cost) })
        .collect()
}

fn least(costs: &[f64], of: impl Iterator<Item = usize>) -> f64 {
    of.filter_map(|c| costs.get(c)).copied().fold(f64::INFINITY, f64::min)
}

/// The key of a launch, and its members.
type Sampled = (Vec<i64>, Vec<Ranked>);

/// The blocks of a member that a multiprocessor runs at once, at least 1.
fn blocks_per_sm(launches: &[Sampled], values: &Values) -> i64 {
    let mut ranked = launches.iter().flat_map(|(_, ranked)| ranked).filter(|r| r.values == *values);
    ranked.find_map(|r| r.estimate.as_ref()).map_or(1, |e| i64::from(e.blocks_per_sm.max(1)))
}

/// How often programs fill a GPU that runs so many at once, and how full it is on average, in thousandths: what the
/// extents of tiles decide at the edges of a result.
fn filled(programs: i64, at_once: i64) -> [i64; 2] {
    let rounds = (programs + at_once - 1) / at_once.max(1);
    [rounds, programs.saturating_mul(1000) / (rounds * at_once).max(1)]
}

/// The same as expressions of the arguments and the GPU.
fn filled_of(grid: [Closed; 3], blocks_per_sm: i64) -> [Closed; 2] {
    let programs =
        grid.into_iter().filter(|n| *n != Closed::Int(1)).reduce(product).unwrap_or(Closed::Int(1));
    let at_once = product(Closed::Device(DeviceFact::Sms), Closed::Int(blocks_per_sm));
    let rounds = integer(ClosedOp::CeilDiv, vec![programs.clone(), at_once.clone()]);
    let most = integer(ClosedOp::Max, vec![product(rounds.clone(), at_once), Closed::Int(1)]);
    [rounds, integer(ClosedOp::Div, vec![product(programs, Closed::Int(1000)), most])]
}

/// Of the numbers that a tree compares, those that follow from the key: its parts and the products of two of them.
fn features<T: Clone>(key: &[T], product: impl Fn(&T, &T) -> T) -> Vec<T> {
    let mut all = key.to_vec();
    for (i, a) in key.iter().enumerate() {
        all.extend(key.iter().skip(i + 1).map(|b| product(a, b)));
    }
    all
}

fn product(a: Closed, b: Closed) -> Closed {
    integer(ClosedOp::Mul, vec![a, b])
}

fn renumbered(tree: Tree, numbers: &[usize]) -> Tree {
    match tree {
        Tree::Leaf(c) => Tree::Leaf(numbers.get(c).copied().unwrap_or(0)),
        Tree::Split { feature, below, sides } => {
            let [a, b] = *sides;
            Tree::Split { feature, below, sides: Box::new([renumbered(a, numbers), renumbered(b, numbers)]) }
        }
    }
}

fn of_tree(tree: &Tree, features: &[Closed]) -> Closed {
    match tree {
        Tree::Leaf(candidate) => Closed::Int(*candidate as i64),
        Tree::Split { feature, below, sides } => {
            let feature = features.get(*feature).cloned().unwrap_or(Closed::Int(0));
            let [a, b] = sides.as_ref();
            let is_below = compare(ClosedOp::Lt, feature, Closed::Int(*below));
            select(is_below, of_tree(a, features), of_tree(b, features))
        }
    }
}

/// The candidate of a record with the key of a launch, or [`NO_RECORD`]; by bisection, since expressions nest. The records
/// are in the order of their keys, which differ.
fn of_records(records: &[(Vec<i64>, i64)], key: &[Closed]) -> Closed {
    match records {
        [] => Closed::Int(NO_RECORD),
        [(known, candidate)] => {
            let equal = key.iter().zip(known).map(|(e, n)| compare(ClosedOp::Eq, e.clone(), Closed::Int(*n)));
            let equal = equal.reduce(both).unwrap_or(Closed::Int(1));
            select(equal, Closed::Int(*candidate), Closed::Int(NO_RECORD))
        }
        several => {
            // Between two neighbours in the middle, the first part of the key in which the ends differ decides.
            let (first, last) = (several.first(), several.last());
            let differs = |i: &usize| first.and_then(|r| r.0.get(*i)) != last.and_then(|r| r.0.get(*i));
            let part = (0..key.len()).find(differs).unwrap_or(0);
            let value = |r: &(Vec<i64>, i64)| r.0.get(part).copied().unwrap_or(0);
            let mut values: Vec<i64> = several.iter().map(value).collect();
            values.dedup();
            let below = values.get(values.len() / 2).copied().unwrap_or(0);
            let at = several.partition_point(|r| value(r) < below);
            let (a, b) = several.split_at(at);
            let e = key.get(part).cloned().unwrap_or(Closed::Int(0));
            select(compare(ClosedOp::Lt, e, Closed::Int(below)), of_records(a, key), of_records(b, key))
        }
    }
}

fn integer(op: ClosedOp, args: Vec<Closed>) -> Closed {
    Closed::Op { op, dtype: DType::I64, args }
}

fn compare(op: ClosedOp, a: Closed, b: Closed) -> Closed {
    integer(op, vec![a, b])
}

fn select(condition: Closed, then: Closed, other: Closed) -> Closed {
    if then == other { then } else { integer(ClosedOp::Select, vec![condition, then, other]) }
}

fn both(a: Closed, b: Closed) -> Closed {
    Closed::Op { op: ClosedOp::And, dtype: DType::Bool, args: vec![a, b] }
}

fn shown(values: &Values) -> String {
    let values: Vec<String> = values.iter().map(|(n, v)| format!("{n}={v}")).collect();
    values.join(", ")
}
