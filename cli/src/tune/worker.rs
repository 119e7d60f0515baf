//! The process in which members are compiled and measured. It may die of a member without taking the command along.

use std::io::{BufRead, Write};
use std::time::Duration;

use tk_ops::{Buf, Scalar};
use tk_runtime::Session;
use tk_runtime::choice::{Ranked, given};
use tk_runtime::device::LaunchOptions;
use tk_runtime::gpu::{Api, Caches, LaunchError, Times, Trial};
use tk_runtime::npy::Array;
use tk_runtime::tuning::{as_text, code_of};
use tk_sema::contract::{Member, Plan, SetValue, with_values};

use super::protocol::{Answer, Ready, Request};
use crate::args::TuneArgs;
use crate::deadline::Deadline;
use crate::input::Inputs;
use crate::run::{Prepared, prepare};
use crate::terminal::{Failure, Outcome};
use crate::{device, front};

/// Launches that decide whether a member is certainly slower.
const FIRST: usize = 3;
/// How long the defaults may take, if the time for a member is shorter.
const FIRST_LAUNCH: Duration = Duration::from_secs(10);
/// How much later than that a process ends that cannot give a launch up.
const GRACE: Duration = Duration::from_millis(200);
/// How much slower than the best a member has to be to be given up, since one launch may be disturbed.
const CERTAIN: f64 = 1.3;
/// The same for the members that are compared at the end.
const AGAIN: Duration = Duration::from_millis(300);
/// The most launches of a measurement.
const MOST: usize = 500;

/// Answers requests until there are no more.
pub fn run(args: &TuneArgs) -> Outcome {
    #[cfg(unix)]
    end_with_parent();
    let mut worker = match Worker::new(args) {
        Ok(worker) => worker,
        Err(why) => return answer(&Answer::Failed { why }),
    };
    answer(&Answer::Ready(Box::new(worker.ready(args)?)))?;
    for line in std::io::stdin().lock().lines() {
        let Ok(request) = serde_json::from_str::<Request>(&line?) else {
            return Err(Failure::Sentence("a worker got something else than a request".into()));
        };
        let said =
            worker.answer(&request, args).unwrap_or_else(|error| Answer::Refused { why: error.to_string() });
        let ends = said == Answer::Hangs;
        answer(&said)?;
        if ends {
            // Nothing stops a kernel but the end of its process, which would wait for it.
            std::process::abort();
        }
    }
    Ok(())
}

/// Ends this process when the one that started it is gone, whatever a kernel does here.
#[cfg(unix)]
fn end_with_parent() {
    const OFTEN: Duration = Duration::from_millis(300);
    let parent = std::os::unix::process::parent_id();
    std::thread::spawn(move || {
        while std::os::unix::process::parent_id() == parent {
            std::thread::sleep(OFTEN);
        }
        std::process::abort();
    });
}

/// Ends this process with an answer if a launch takes longer than this.
fn deadline(limit: Duration) -> Deadline {
    Deadline::new(limit + GRACE, || {
        let _ = answer(&Answer::Hangs);
        std::process::abort();
    })
}

fn answer(answer: &Answer) -> Outcome {
    let text = serde_json::to_string(answer).map_err(|e| e.to_string())?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}")?;
    Ok(out.flush()?)
}

/// A result of the defaults.
struct Trusted {
    name: String,
    array: Array,
    /// The difference that elements may have.
    allowed: f64,
}

struct Worker {
    trial: Trial,
    members: Vec<Member>,
    kernel: tk_sema::hir::FnId,
    sets: Vec<(String, SetValue)>,
    /// The results of the defaults, once they were launched.
    trusted: Option<Vec<Trusted>>,
}

impl Worker {
    fn new(args: &TuneArgs) -> Result<Worker, String> {
        let (path, name) = front::split_target(&args.target);
        let said = |failure: Failure| match failure {
            Failure::Sentence(why) => why,
            other => format!("{other:?}"),
        };
        let inputs = Inputs::new(&args.input, [path]).map_err(|e| said(e.into()))?;
        let checked = front::check_with(&inputs, path, name, &args.sets).map_err(said)?;
        if let Some(failure) = front::failure(&checked) {
            return Err(said(failure));
        }
        let launcher =
            device::launcher(device::api(args.device)?, Session::new(checked).without_tuning(), path)?;
        let Prepared { kernel, sets, values } =
            prepare(launcher.session(), path, name, &args.args, &args.sets).map_err(said)?;
        launcher.session().room(kernel, &values)?;
        let make = if args.compiles { Trial::without_memory } else { Trial::new };
        let trial = make(launcher, kernel, values, &sets).map_err(|e| e.to_string())?;
        let place = trial.launcher().place();
        let session = trial.launcher().session();
        let members = session.members(kernel, trial.args(), trial.sets(), place.facts);
        let mut members = members.map_err(|w| LaunchError::Refused(w).to_string())?;
        let default = &trial.choice(trial.sets()).map_err(|w| LaunchError::Refused(w).to_string())?.plan;
        if default.grid.contains(&0) {
            let name = &session.checked().hir.func(kernel).name;
            return Err(format!("no program of `{name}` runs: there is nothing to measure"));
        }
        // The defaults are measured anyway.
        let options = |plan: &Plan| LaunchOptions::of(&plan.launch).hints();
        members.retain(|m| m.plan.bindings != default.bindings || options(&m.plan) != options(default));
        let sets = trial.sets().to_vec();
        Ok(Worker { trial, members, kernel, sets, trusted: None })
    }

    fn ready(&self, args: &TuneArgs) -> Result<Ready, String> {
        let launcher = self.trial.launcher();
        let (session, place) = (launcher.session(), launcher.place());
        let hir = &session.checked().hir;
        let plan = tk_sema::contract::plan_on(hir, self.kernel, self.trial.args(), &self.sets, place.facts)
            .map_err(|e| e.to_string())?;
        let version = launcher.device().driver_version();
        let member = |m: &Member| m.values.iter().map(|(n, v)| (n.clone(), v.to_string())).collect();
        let names: Vec<&String> = self.members.iter().flat_map(|m| m.values.iter().map(|(n, _)| n)).collect();
        let mut default = as_text(&tk_sema::contract::as_sets(hir, &plan.bindings.cvars));
        default.extend(plan.launch.iter().map(|(n, v)| (n.clone(), v.to_string())));
        default.retain(|n, _| names.contains(&n));
        Ok(Ready {
            members: self.members.iter().map(member).collect(),
            slowness: if args.compiles { vec![None; self.members.len()] } else { self.slowness() },
            is_listed: hir.func(self.kernel).contract.tune.is_some(),
            kernel: hir.func(self.kernel).name.clone(),
            device: place.name,
            target: place.target,
            driver: match device::api(args.device)? {
                Api::Cpu => env!("CARGO_PKG_VERSION").to_string(),
                Api::Cuda | Api::Hip => format!("{}.{}", version.0, version.1),
            },
            key: plan.key,
            given: self.members.iter().map(|m| given(&m.values, &m.plan, session)).collect(),
            records: session.records_path(self.kernel).map(|p| p.display().to_string()),
            default,
        })
    }

    /// The predicted time of each member over that of the fastest.
    fn slowness(&self) -> Vec<Option<f64>> {
        let (launcher, trial) = (self.trial.launcher(), &self.trial);
        let ranked = launcher.compiler().and_then(|compiler| {
            let session = launcher.session();
            session.ranked(self.kernel, trial.args(), trial.sets(), &launcher.place(), compiler).ok()
        });
        let ranked = ranked.unwrap_or_default();
        let time = |r: &Ranked| r.estimate.as_ref().map(|e| e.us);
        let fastest = ranked.first().and_then(time).filter(|us| us.is_finite());
        let of = |m: &Member| Some(ranked.iter().find(|r| r.values == m.values).and_then(time)? / fastest?);
        self.members.iter().map(of).collect()
    }

    /// What is given by name for a member: without records, which choose where nothing is given.
    fn sets_of(&self, member: Option<usize>) -> Vec<(String, SetValue)> {
        let values = member.and_then(|i| self.members.get(i)).map_or(&[][..], |m| &m.values);
        with_values(&self.sets, values)
    }

    fn answer(&mut self, request: &Request, args: &TuneArgs) -> Result<Answer, LaunchError> {
        match request {
            Request::Compile { member } => {
                self.trial.prepare(&mut self.trial.site(&self.sets_of(*member))?)?;
                Ok(Answer::Compiled)
            }
            Request::Measure { member, slower_than_ms } => self.measure(*member, *slower_than_ms, args),
            Request::Again { member } => {
                let mut site = self.trial.site(&self.sets_of(*member))?;
                self.trial.restore()?;
                let times = self.trial.times(&mut site, self.caches(), AGAIN, MOST)?;
                Ok(self.took(*member, &times))
            }
        }
    }

    fn took(&self, member: Option<usize>, times: &Times) -> Answer {
        let session = self.trial.launcher().session();
        let plan = match member {
            Some(i) => self.members.get(i).map(|m| m.plan.clone()),
            None => self.trial.choice(self.trial.sets()).ok().map(|c| c.plan.clone()),
        };
        let compiled = plan.and_then(|p| session.compile(self.kernel, &p.bindings).ok());
        let code = compiled.map(|(compiled, _)| code_of(&compiled.module)).unwrap_or_default();
        Answer::Took { ms: times.median(), least_ms: times.least(), runs: times.count(), code }
    }

    fn caches(&self) -> Caches {
        if self.trial.has_cold() { Caches::Cold } else { Caches::Warm }
    }

    fn measure(
        &mut self,
        member: Option<usize>,
        limit: Option<f64>,
        args: &TuneArgs,
    ) -> Result<Answer, LaunchError> {
        if self.trusted.is_none() {
            let mut site = self.trial.site(&self.sets)?;
            self.trial.prepare(&mut site)?;
            let _ = answer(&Answer::Launches);
            let limit = FIRST_LAUNCH.max(args.timeout);
            let deadline = deadline(limit);
            if !self.trial.once(&mut site, Some(limit))? {
                return Ok(Answer::Hangs);
            }
            drop(deadline);
            let results = self.trial.results()?;
            let trusted = |(name, array): (String, Array)| Trusted { allowed: allowed(&array), name, array };
            self.trusted = Some(results.into_iter().map(trusted).collect());
        }
        let mut site = self.trial.site(&self.sets_of(member))?;
        self.trial.prepare(&mut site)?;
        // Somebody who does not read it any more ends this process.
        let _ = answer(&Answer::Launches);
        let deadline = deadline(args.timeout);
        if !self.trial.once(&mut site, Some(args.timeout))? {
            return Ok(Answer::Hangs);
        }
        drop(deadline);
        if member.is_some() {
            let results = self.trial.results()?;
            let pairs = self.trusted.iter().flatten().zip(&results);
            let mut wrong = pairs.filter_map(|(t, (_, found))| differs(&t.name, found, &t.array, t.allowed));
            if let Some(why) = wrong.next() {
                return Ok(Answer::Wrong { why });
            }
        }
        self.trial.restore()?;
        let first = self.trial.runs(&mut site, self.caches(), FIRST)?;
        if limit.is_some_and(|limit| first.least() > CERTAIN * limit) {
            return Ok(Answer::Slow { ms: first.median() });
        }
        let times = self.trial.times(&mut site, self.caches(), args.time, MOST)?;
        Ok(self.took(member, &times))
    }
}

/// How far the results of a member are from those of the defaults, if that is more than another order of operations
/// explains: integers and bools agree exactly, floats within a share of the largest value.
fn differs(name: &str, found: &Array, expected: &Array, allowed: f64) -> Option<String> {
    let size = expected.dtype.bytes();
    let parts = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let share = found.bytes.len().div_ceil(parts * size).max(1) * size;
    let wrong = |(part, (a, b)): (usize, (&[u8], &[u8]))| {
        let at = first_wrong(expected, a, b, allowed)?;
        Some((part * share / size + at.0, at.1, at.2))
    };
    let pairs = || found.bytes.chunks(share).zip(expected.bytes.chunks(share)).enumerate();
    let first = std::thread::scope(|scope| {
        let all: Vec<_> = pairs().map(|pair| scope.spawn(move || wrong(pair))).collect();
        all.into_iter().filter_map(|thread| thread.join().ok().flatten()).next()
    });
    first.map(|(i, a, b)| format!("`{name}`, element {i}: {a} instead of {b}"))
}

/// The first element of a part that is wrong, and both numbers.
fn first_wrong(like: &Array, found: &[u8], expected: &[u8], allowed: f64) -> Option<(usize, Scalar, Scalar)> {
    /// Elements that are read at once; most parts are the same to the bit.
    const AT_ONCE: usize = 4096;
    let size = like.dtype.bytes() * AT_ONCE;
    for (n, (a, b)) in found.chunks(size).zip(expected.chunks(size)).enumerate() {
        if a == b {
            continue;
        }
        let (a, b) = (Buf::from_le_bytes(like.dtype, a)?, Buf::from_le_bytes(like.dtype, b)?);
        for i in 0..b.len() {
            let (x, y) = (a.get(i), b.get(i));
            if x != y && !(like.dtype.is_float() && is_near(x, y, allowed)) {
                return Some((n * AT_ONCE + i, x, y));
            }
        }
    }
    None
}

fn is_near(a: Scalar, b: Scalar, allowed: f64) -> bool {
    let number = |s: Scalar| s.as_f64().unwrap_or(f64::NAN);
    let (a, b) = (number(a), number(b));
    a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= allowed
}

/// The difference that elements of an array may have: a share of its largest value.
fn allowed(array: &Array) -> f64 {
    if !array.dtype.is_float() {
        return 0.0;
    }
    let values =
        Buf::from_le_bytes(array.dtype, &array.bytes).map(|b| (0..b.len()).map(|i| b.get(i)).collect());
    let values: Vec<Scalar> = values.unwrap_or_default();
    let finite = values.iter().filter_map(|s| s.as_f64()).map(f64::abs).filter(|v| v.is_finite());
    finite.fold(0f64, f64::max) * tolerance(array.dtype.bytes())
}

/// The share of the largest value by which floats of so many bytes may differ: a few units in the last place of sums
/// that are rounded once.
fn tolerance(bytes: usize) -> f64 {
    match bytes {
        1 => 0.13,
        2 => 0.02,
        4 => 1e-4,
        _ => 1e-10,
    }
}
