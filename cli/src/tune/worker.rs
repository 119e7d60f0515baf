//! The process in which members are compiled and measured. It may die of a member without taking the command along.

use std::io::{BufRead, Write};
use std::time::Duration;

use tk_ops::{Buf, Scalar};
use tk_runtime::Session;
use tk_runtime::choice::given;
use tk_runtime::device::LaunchOptions;
use tk_runtime::gpu::{Api, Caches, LaunchError, Times, Trial};
use tk_runtime::npy::Array;
use tk_runtime::tuning::{as_text, code_of};
use tk_sema::contract::{Member, Plan, SetValue};

use super::protocol::{Answer, Ready, Request};
use crate::args::TuneArgs;
use crate::input::Inputs;
use crate::run::{Prepared, prepare};
use crate::terminal::{Failure, Outcome};
use crate::{device, front};

/// Launches that decide whether a member is certainly slower.
const FIRST: usize = 3;
/// How much slower than the best a member has to be to be given up, since one launch may be disturbed.
const CERTAIN: f64 = 1.3;
/// How long the launches of a member go on.
const MEASURE: Duration = Duration::from_millis(60);
/// The same for the members that are compared at the end.
const AGAIN: Duration = Duration::from_millis(300);
/// The most launches of a measurement.
const MOST: usize = 500;

/// Answers requests until there are no more.
pub fn run(args: &TuneArgs) -> Outcome {
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

fn answer(answer: &Answer) -> Outcome {
    let text = serde_json::to_string(answer).map_err(|e| e.to_string())?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}")?;
    Ok(out.flush()?)
}

struct Worker {
    trial: Trial,
    members: Vec<Member>,
    kernel: tk_sema::hir::FnId,
    sets: Vec<(String, SetValue)>,
    /// The results of the defaults, once they were launched.
    trusted: Option<Vec<(String, Array)>>,
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
            device::launcher(device::api(args.device)?, Session::new(checked).without_records(), path)?;
        let Prepared { kernel, sets, values } =
            prepare(launcher.session(), path, name, &args.args, &args.sets).map_err(said)?;
        launcher.session().room(kernel, &values)?;
        let make = if args.compiles { Trial::without_memory } else { Trial::new };
        let trial = make(launcher, kernel, values, &sets).map_err(|e| e.to_string())?;
        let place = trial.launcher().place();
        let session = trial.launcher().session();
        let members = session.members(kernel, trial.args(), trial.sets(), place.facts);
        let mut members = members.map_err(|w| LaunchError::Refused(w).to_string())?;
        let default = trial.choice(trial.sets()).map_err(|w| LaunchError::Refused(w).to_string())?.plan;
        // The defaults are measured anyway.
        let options = |plan: &Plan| LaunchOptions::of(&plan.launch).hints();
        members.retain(|m| m.plan.bindings != default.bindings || options(&m.plan) != options(&default));
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

    /// What is given by name for a member: without records, which choose where nothing is given.
    fn sets_of(&self, member: Option<usize>) -> Vec<(String, SetValue)> {
        let mut all = self.sets.clone();
        if let Some(m) = member.and_then(|i| self.members.get(i)) {
            all.extend(m.values.iter().filter(|(n, _)| !self.sets.iter().any(|(s, _)| s == n)).cloned());
        }
        all
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
        let plan = member.and_then(|i| self.members.get(i)).map(|m| &m.plan);
        let session = self.trial.launcher().session();
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
            if !self.trial.once(&mut site, None)? {
                return Ok(Answer::Hangs);
            }
            self.trusted = Some(self.trial.results()?);
        }
        let mut site = self.trial.site(&self.sets_of(member))?;
        self.trial.prepare(&mut site)?;
        // Somebody who does not read it any more ends this process.
        let _ = answer(&Answer::Launches);
        if !self.trial.once(&mut site, Some(args.timeout))? {
            return Ok(Answer::Hangs);
        }
        if member.is_some() {
            let results = self.trial.results()?;
            let pairs = self.trusted.iter().flatten().zip(&results);
            if let Some(why) = pairs.filter_map(|((name, a), (_, b))| differs(name, b, a)).next() {
                return Ok(Answer::Wrong { why });
            }
        }
        self.trial.restore()?;
        let first = self.trial.runs(&mut site, self.caches(), FIRST)?;
        if limit.is_some_and(|limit| first.least() > CERTAIN * limit) {
            return Ok(Answer::Slow { ms: first.median() });
        }
        let times = self.trial.times(&mut site, self.caches(), MEASURE, MOST)?;
        Ok(self.took(member, &times))
    }
}

/// How far the results of a member are from those of the defaults, if that is more than another order of operations
/// explains: integers and bools agree exactly, floats within a share of the largest value.
fn differs(name: &str, found: &Array, expected: &Array) -> Option<String> {
    if found.bytes == expected.bytes {
        return None;
    }
    let read = |a: &Array| Buf::from_le_bytes(a.dtype, &a.bytes);
    let (found, wanted) = (read(found)?, read(expected)?);
    if !expected.dtype.is_float() {
        let i = (0..wanted.len()).find(|i| found.get(*i) != wanted.get(*i))?;
        return Some(format!("`{name}`, element {i}: {} instead of {}", found.get(i), wanted.get(i)));
    }
    let number = |s: Scalar| s.as_f64().unwrap_or(f64::NAN);
    let finite = (0..wanted.len()).map(|i| number(wanted.get(i)).abs()).filter(|v| v.is_finite());
    let largest = finite.fold(0f64, f64::max);
    let allowed = tolerance(expected.dtype.bytes()) * largest;
    for i in 0..wanted.len() {
        let (a, b) = (number(found.get(i)), number(wanted.get(i)));
        let same = a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= allowed;
        if !same {
            return Some(format!("`{name}`, element {i}: {a} instead of {b}"));
        }
    }
    None
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
