//! The candidates of a launch, and the cost model's opinion of them: [`Session::ranked`] orders all of them,
//! `Session::fastest` finds the one that a launch uses.
//!
//! Members whose values differ in options of the launch alone (`warps`, `stages`, ..) are a *family*: the launch contract,
//! the specialization, its arguments and the bytes that it moves are computed once for all of them. The fastest is found by
//! branch and bound (Land and Doig, "An Automatic Method of Solving Discrete Programming Problems", 1960): a member whose
//! time is at least that of the best so far is not predicted to the end ([`Compile::time`]). What is found does not depend on
//! the order in which cores look at members: it is the first of the list with the least time.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use tk_sema::contract::{self, Device, HostArg, OpenPlan, Plan, SetValue, Values};
use tk_sema::eval::Bindings;
use tk_sema::hir::FnId;
use tk_tile::traffic::Accesses;

use crate::choice::{MARGIN, Place};
use crate::compile::{Compile, Estimate};
use crate::predict::OpenLaunch;
use crate::session::{Compiled, Session, Wrong, lock};

/// A member, or the defaults, and the predicted time.
#[derive(Clone, Debug)]
pub struct Ranked {
    /// What the member chooses; nothing for the defaults.
    pub values: Values,
    /// The launch with it.
    pub plan: Plan,
    /// Its predicted time; `None` if it cannot be compiled.
    pub estimate: Option<Estimate>,
}

/// The lists of candidates that a session knows.
#[derive(Debug, Default)]
pub(crate) struct Lists(Mutex<Vec<(ListKey, Arc<Families>)>>);

/// What a list of candidates depends on: the kernel, what is given by name, and the bindings of the defaults.
type ListKey = (FnId, Values, Bindings);

/// Lists of candidates that are kept.
const REMEMBERED_LISTS: usize = 64;
/// Threads that a thread wakes before it begins to work: each takes it some microseconds, and them tens of these.
const WOKEN: usize = 4;
/// How long a thread waits for the workers before it sleeps: several times what a member takes that is scheduled.
const SPIN: Duration = Duration::from_micros(100);

/// The candidates of a kernel, before it is known which of them a launch can take; those of the defaults come first.
#[derive(Debug)]
struct Families {
    all: Vec<Family>,
    /// The places of all members but the defaults, by family and number in it: the first ones of all families, the second ones,
    /// and so on, so that cores do not wait for one another's contracts.
    order: Vec<(usize, usize)>,
    /// The member that the last launch used, by its number: that of another key is likely to be as good.
    winner: AtomicUsize,
}

/// Members that differ in options of the launch alone.
#[derive(Debug)]
struct Family {
    /// What is given by name, and the compile-time parameters that the members choose.
    sets: Values,
    members: Vec<Candidate>,
    /// The specialization of the last launch, and its bindings.
    last: Mutex<Option<(Bindings, Arc<Special>)>>,
}

/// A member of a list; the defaults have no values.
#[derive(Debug)]
struct Candidate {
    /// Its position in the list.
    number: usize,
    values: Values,
    /// The options of the launch among these that are not given by name.
    options: Values,
}

/// A specialization and its accesses of memory.
#[derive(Debug)]
struct Special {
    compiled: Arc<Compiled>,
    accesses: Accesses,
}

/// A launch whose candidates are compared, and what it is with the defaults.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub kernel: FnId,
    pub args: &'a [HostArg],
    pub sets: &'a [(String, SetValue)],
    pub place: &'a Place,
    pub default: &'a Plan,
    pub compiler: &'a dyn Compile,
}

/// What the members of a family share in a launch.
struct Opened {
    plan: OpenPlan,
    /// `None` if the specialization cannot be compiled.
    of: Option<(Arc<Special>, OpenLaunch)>,
}

impl Opened {
    /// The launch with these options.
    fn with(&self, launch: Vec<(String, i64)>) -> Plan {
        Plan { launch, ..self.plan.plan().clone() }
    }
}

/// A family in a contest. The first of its members opens it, and the last one drops what it shared: that takes about as long.
struct Entry {
    shared: Mutex<Shared>,
    /// Members that were not compared yet.
    left: AtomicUsize,
}

/// What the members of an entry share.
enum Shared {
    /// Nobody has asked.
    Unknown,
    /// `None` if the launch is refused, or all members were compared.
    Known(Option<Arc<Opened>>),
}

impl Entry {
    fn new(family: &Family) -> Entry {
        Entry { shared: Mutex::new(Shared::Unknown), left: AtomicUsize::new(family.members.len()) }
    }

    fn opened(&self, open: impl FnOnce() -> Option<Opened>) -> Option<Arc<Opened>> {
        let mut shared = lock(&self.shared);
        if let Shared::Known(known) = &*shared {
            return known.clone();
        }
        let opened = open().map(Arc::new);
        *shared = Shared::Known(opened.clone());
        opened
    }

    /// A member was compared.
    fn leave(&self) {
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            *lock(&self.shared) = Shared::Known(None);
        }
    }
}

/// The best member so far.
struct Contest<'c> {
    /// The bits of its time in microseconds: those of positive numbers are in their order.
    limit: AtomicU64,
    best: Mutex<Option<(f64, &'c Candidate, Plan)>>,
}

impl<'c> Contest<'c> {
    /// One in which what takes longer than `limit` does not count.
    fn new(limit: f64) -> Contest<'c> {
        Contest { limit: AtomicU64::new(limit.to_bits()), best: Mutex::new(None) }
    }

    fn limit(&self) -> f64 {
        f64::from_bits(self.limit.load(Ordering::Relaxed))
    }

    /// A member takes this time. Of those that take the same, the first of the list is better.
    fn offer(&self, us: f64, candidate: &'c Candidate, plan: impl FnOnce() -> Plan) {
        if us > self.limit() {
            return;
        }
        let mut best = lock(&self.best);
        let is_better = |(of_best, known, _): &(f64, &Candidate, Plan)| {
            us.total_cmp(of_best).then(candidate.number.cmp(&known.number)).is_lt()
        };
        if us <= self.limit() && best.as_ref().is_none_or(is_better) {
            self.limit.store(us.to_bits(), Ordering::Relaxed);
            *best = Some((us, candidate, plan()));
        }
    }
}

/// The threads that compare members, one for each core; `None` if there are none to be had, and in a process that was forked,
/// which has none of its parent's.
#[cfg(not(target_family = "wasm"))]
fn workers() -> Option<&'static rayon::ThreadPool> {
    static WORKERS: OnceLock<(u32, Option<rayon::ThreadPool>)> = OnceLock::new();
    let pool = || {
        let builder = rayon::ThreadPoolBuilder::new().thread_name(|n| format!("tk-choice-{n}"));
        builder.stack_size(tk_syntax::stack::STACK)
    };
    let (process, pool) = WORKERS.get_or_init(|| (std::process::id(), pool().build().ok()));
    pool.as_ref().filter(|_| *process == std::process::id())
}

/// There are no threads.
#[cfg(target_family = "wasm")]
fn workers() -> Option<&'static rayon::ThreadPool> {
    None
}

/// Runs this on the threads that compare members, if there are some.
fn on_workers<T: Send>(run: impl FnOnce() -> T + Send) -> T {
    match workers() {
        Some(workers) => workers.install(run),
        None => run(),
    }
}

/// Calls this with each number below `count`, in order: on this thread at once, and on the workers as they wake up.
fn for_each(count: usize, run: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(n) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|n| *n < count) {
            run(n);
        }
    };
    let Some(pool) = workers() else { return work() };
    let others = pool.current_num_threads().min(count).saturating_sub(1);
    let done = AtomicUsize::new(0);
    let of_other = || {
        work();
        done.fetch_add(1, Ordering::Release);
    };
    pool.in_place_scope(|scope| {
        wake(scope, others, &of_other);
        work();
        // To sleep until the others are done takes longer than they do.
        let begin = Instant::now();
        while done.load(Ordering::Acquire) < others && begin.elapsed() < SPIN {
            std::thread::yield_now();
        }
    });
}

/// Lets so many workers do this; few of them are woken by this thread, the others by these.
fn wake<'s>(scope: &rayon::Scope<'s>, workers: usize, work: &'s (impl Fn() + Sync)) {
    let groups = workers.min(WOKEN);
    for group in 0..groups {
        let others = (workers - group).div_ceil(groups) - 1;
        scope.spawn(move |scope| {
            wake(scope, others, work);
            work();
        });
    }
}

impl Families {
    fn new(session: &Session, kernel: FnId, sets: &[(String, SetValue)], members: Vec<Values>) -> Families {
        let hir = &session.checked().hir;
        let mut all: Vec<Family> = vec![];
        for (number, values) in std::iter::once(vec![]).chain(members).enumerate() {
            let [mut options, others] = contract::split_options(hir, kernel, &values);
            options.retain(|(name, _)| sets.iter().all(|(given, _)| given != name));
            let own = contract::with_values(sets, &others);
            let candidate = Candidate { number, values, options };
            // The defaults are alone: their launch is known.
            match all.iter_mut().skip(1).find(|f| f.sets == own) {
                Some(family) => family.members.push(candidate),
                None => all.push(Family { sets: own, members: vec![candidate], last: Mutex::default() }),
            }
        }
        let most = all.iter().map(|f| f.members.len()).max().unwrap_or(0);
        let of_round = |m: usize| {
            let families = all.iter().enumerate().skip(1);
            families.filter(move |(_, f)| m < f.members.len()).map(move |(f, _)| (f, m))
        };
        let order = (0..most).flat_map(of_round).collect();
        Families { all, order, winner: AtomicUsize::new(0) }
    }

    /// The place of the member of the last launch, if it did not use the defaults.
    fn last_winner(&self) -> Option<(usize, usize)> {
        let number = self.winner.load(Ordering::Relaxed);
        let is_it = |c: &Candidate| c.number == number && number > 0;
        self.all.iter().enumerate().find_map(|(f, family)| Some((f, family.members.iter().position(is_it)?)))
    }
}

impl Family {
    /// The launch of this family; `None` if it is refused.
    fn open(&self, session: &Session, asked: &Asked<'_>) -> Option<Opened> {
        let Asked { kernel, args, place, .. } = *asked;
        let plan = OpenPlan::new(&session.checked().hir, kernel, args, &self.sets, place.facts).ok()?;
        let of = self.special(session, kernel, &plan.plan().bindings).and_then(|special| {
            let launch = OpenLaunch::new(&special.compiled, &special.accesses, plan.plan())?;
            Some((special, launch))
        });
        Some(Opened { plan, of })
    }

    /// The specialization for these bindings, if it compiles.
    fn special(&self, session: &Session, kernel: FnId, bindings: &Bindings) -> Option<Arc<Special>> {
        let known = |last: &(Bindings, Arc<Special>)| (last.0 == *bindings).then(|| Arc::clone(&last.1));
        if let Some(special) = lock(&self.last).as_ref().and_then(known) {
            return Some(special);
        }
        let (compiled, _) = session.compile(kernel, bindings).ok()?;
        let accesses = Accesses::new(&compiled.module, compiled.entry);
        let special = Arc::new(Special { compiled, accesses });
        *lock(&self.last) = Some((bindings.clone(), Arc::clone(&special)));
        Some(special)
    }
}

impl Session {
    /// The member that the cost model prefers to the defaults, if there is one, and the launch with it.
    pub(crate) fn fastest(&self, asked: Asked<'_>) -> Option<(Values, Plan)> {
        let families = self.families(&asked).ok()?;
        let contest = Contest::new(f64::INFINITY);
        let of_defaults = OnceLock::new();
        let entries: Vec<Entry> = families.all.iter().map(Entry::new).collect();
        let compete = |(f, m): (usize, usize)| {
            let (Some(family), Some(entry)) = (families.all.get(f), entries.get(f)) else { return };
            let opened = entry.opened(|| family.open(self, &asked));
            if let (Some(opened), Some(member)) = (opened, family.members.get(m)) {
                self.compete(&asked, &opened, member, &contest);
            }
            entry.leave();
        };
        // What is likely to limit the others comes first.
        let last = families.last_winner();
        for_each(families.order.len() + 2, |n| match n {
            0 => last.into_iter().for_each(compete),
            1 => {
                let us = *of_defaults.get_or_init(|| self.time_of_defaults(&asked, &families));
                // A member that is hardly faster than the defaults is not used.
                contest.limit.fetch_min((MARGIN * us).to_bits(), Ordering::Relaxed);
            }
            _ => {
                let other = families.order.get(n - 2).filter(|place| last != Some(**place));
                other.into_iter().for_each(|place| compete(*place));
            }
        });
        let best = contest.best.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let of_defaults = of_defaults.get().copied().unwrap_or(f64::INFINITY);
        let (_, member, plan) = best.filter(|(us, ..)| *us < MARGIN * of_defaults)?;
        families.winner.store(member.number, Ordering::Relaxed);
        Some((member.values.clone(), plan))
    }

    /// The time of the defaults in microseconds; infinite if it is not known.
    fn time_of_defaults(&self, asked: &Asked<'_>, families: &Families) -> f64 {
        let Asked { kernel, default, place, compiler, .. } = *asked;
        let time = || {
            let special = families.all.first()?.special(self, kernel, &default.bindings)?;
            let open = OpenLaunch::new(&special.compiled, &special.accesses, default)?;
            let options = open.options(&default.launch, place);
            compiler.time(&special.compiled, &options, &open.launch(place), f64::INFINITY)
        };
        time().unwrap_or(f64::INFINITY)
    }

    /// Offers a member to a contest, if the launch can take it.
    fn compete<'c>(&self, asked: &Asked<'_>, open: &Opened, member: &'c Candidate, contest: &Contest<'c>) {
        let Asked { kernel, place, compiler, .. } = *asked;
        let Some((special, launch)) = &open.of else { return };
        let Ok(options) = open.plan.options(&self.checked().hir, kernel, &member.options) else { return };
        let of = launch.options(&options, place);
        let time = compiler.time(&special.compiled, &of, &launch.launch(place), contest.limit());
        contest.offer(time.unwrap_or(f64::INFINITY), member, || open.with(options));
    }

    /// The members that a launch can choose among, and the defaults, the fastest by the cost model first.
    ///
    /// # Errors
    /// The launch is refused with the defaults too.
    pub fn ranked(
        &self,
        kernel: FnId,
        args: &[HostArg],
        sets: &[(String, SetValue)],
        place: &Place,
        compiler: &dyn Compile,
    ) -> Result<Vec<Ranked>, Wrong> {
        let hir = &self.checked().hir;
        let default = contract::plan_on(hir, kernel, args, sets, place.facts);
        let default = &default.map_err(|e| vec![*e.diagnostic])?;
        let asked = Asked { kernel, args, sets, place, default, compiler };
        let families = self.families(&asked)?;
        let ranked = |open: &Opened, member: &Candidate| {
            let options = open.plan.options(hir, kernel, &member.options).ok()?;
            let estimate = open.of.as_ref().and_then(|(special, launch)| {
                compiler.estimate(&special.compiled, &launch.options(&options, place), &launch.launch(place))
            });
            let values = member.values.clone();
            Some((member.number, Ranked { values, plan: open.with(options), estimate }))
        };
        let of_family = |family: &Family| -> Vec<(usize, Ranked)> {
            let Some(open) = family.open(self, &asked) else { return vec![] };
            family.members.par_iter().filter_map(|member| ranked(&open, member)).collect()
        };
        let mut all: Vec<(usize, Ranked)> =
            on_workers(|| families.all.par_iter().flat_map(of_family).collect());
        let time = |r: &Ranked| r.estimate.as_ref().map_or(f64::INFINITY, |e| e.us);
        all.sort_by(|(a, x), (b, y)| time(x).total_cmp(&time(y)).then(a.cmp(b)));
        Ok(all.into_iter().map(|(_, ranked)| ranked).collect())
    }

    /// The candidates of a launch.
    fn families(&self, asked: &Asked<'_>) -> Result<Arc<Families>, Wrong> {
        let Asked { kernel, sets, place, default, .. } = *asked;
        let find = || {
            let found = contract::candidates(&self.checked().hir, kernel, sets, place.facts, default);
            let found = found.map_err(|e| vec![*e.diagnostic])?;
            Ok(Arc::new(Families::new(self, kernel, sets, found)))
        };
        let Some(lists) = self.lists() else { return find() };
        let is_it = |((of, given, bindings), _): &&(ListKey, Arc<Families>)| {
            *of == kernel && *given == sets && *bindings == default.bindings
        };
        if let Some((_, known)) = lock(&lists.0).iter().find(is_it) {
            return Ok(Arc::clone(known));
        }
        let found = find()?;
        let mut all = lock(&lists.0);
        if all.len() >= REMEMBERED_LISTS {
            all.clear();
        }
        all.push(((kernel, sets.to_vec(), default.bindings.clone()), Arc::clone(&found)));
        Ok(found)
    }

    /// The lists of candidates that are known; `None` if this session keeps nothing.
    fn lists(&self) -> Option<&Lists> {
        self.choices().map(|choices| &choices.lists)
    }

    /// The members that a launch can choose among: those of its `tune` list, or proposed ones without a list.
    ///
    /// # Errors
    /// The launch is refused with the defaults too.
    pub fn members(
        &self,
        kernel: FnId,
        args: &[HostArg],
        sets: &[(String, SetValue)],
        device: Device,
    ) -> Result<Vec<contract::Member>, Wrong> {
        contract::members(&self.checked().hir, kernel, args, sets, device).map_err(|e| vec![*e.diagnostic])
    }
}
