//! Which member of a kernel's `tune` list a launch uses: [`Session::choose`].
//!
//! A value that is given by name is never replaced. Otherwise a tuning record of the target and the key decides, if it
//! names a member; without one, the cost model does, if the kernel has a list; without that, its defaults count. A choice
//! depends on nothing but the program, its records, the arguments and the device.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use tk_sema::contract::{self, Device, HostArg, Member, Plan, SetValue, Values};
use tk_sema::eval::Bindings;
use tk_sema::hir::FnId;
use tk_syntax::{Diagnostic, Severity, codes};

use crate::compile::Estimate;
use crate::session::{Compiled, Session, Wrong, lock};
use crate::tuning::{Query, Record, Records, as_text, code_of, path_of};

/// The device of a launch.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// What launch contracts may ask about it.
    pub facts: Device,
    /// Its target, such as `sm_90a`.
    pub target: String,
    /// The name of the GPU.
    pub name: String,
}

impl Place {
    /// The CPU.
    pub fn cpu() -> Place {
        Place { facts: Device::default(), target: "cpu".into(), name: "cpu".into() }
    }
}

/// How a launch got the values of its parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    /// They are the defaults, or were given by name.
    Defaults,
    /// A tuning record names this member.
    Record(Values, Box<Record>),
    /// The cost model predicts that this member is fastest.
    Model(Values),
}

impl Origin {
    /// What was chosen and by whom, if it is not the defaults: `BM=64 warps=4, by the cost model`.
    pub fn text(&self) -> Option<String> {
        let (values, who) = match self {
            Origin::Defaults => return None,
            Origin::Record(values, _) => (values, "a tuning record"),
            Origin::Model(values) => (values, "the cost model"),
        };
        let values: Vec<String> = values.iter().map(|(n, v)| format!("{n}={v}")).collect();
        Some(format!("{}, by {who}", values.join(" ")))
    }
}

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

/// Predicts the time of a launch.
pub type Judge<'a> = &'a (dyn Fn(&Compiled, &Plan) -> Option<Estimate> + Sync);

/// The most members that a kernel is shipped with beside its defaults, unless told otherwise: each has a binary for each
/// kind of arguments.
pub const SHIPPED: usize = 4;

/// By how much the defaults must be slower than a member, by the model, to be replaced: it is no more exact than this.
pub const MARGIN: f64 = 0.97;

/// The values of a launch.
#[derive(Clone, Debug)]
pub struct Choice {
    /// What is given by name, and what was chosen.
    pub sets: Vec<(String, SetValue)>,
    /// The launch with them.
    pub plan: Plan,
    /// Who chose.
    pub origin: Origin,
    /// Why records were not used.
    pub notes: Vec<Diagnostic>,
}

/// What a session knows of the choices of its launches.
#[derive(Debug, Default)]
pub(crate) struct Choices {
    /// The files of records, or why they are not used.
    records: Mutex<HashMap<String, Arc<Result<Records, String>>>>,
    /// The choices of launches, by a hash of all that they depend on.
    chosen: Mutex<Chosen>,
    /// The candidates of kernels, by all that they depend on.
    candidates: Mutex<HashMap<String, Arc<[Candidate]>>>,
}

/// A member of a list before it is known whether a launch can take it; the defaults have no values.
#[derive(Debug)]
struct Candidate {
    values: Values,
    /// These, and what is given by name.
    sets: Values,
    /// The specialization of the last launch, and its bindings.
    last: Mutex<Option<(Bindings, Arc<Compiled>)>>,
}

impl Candidate {
    fn new(sets: &[(String, SetValue)], values: Values) -> Candidate {
        Candidate { sets: contract::with_values(sets, &values), values, last: Mutex::default() }
    }

    /// The specialization for a launch, if it compiles.
    fn compiled(&self, session: &Session, kernel: FnId, plan: &Plan) -> Option<Arc<Compiled>> {
        let known = |last: &(Bindings, Arc<Compiled>)| (last.0 == plan.bindings).then(|| Arc::clone(&last.1));
        if let Some(compiled) = lock(&self.last).as_ref().and_then(known) {
            return Some(compiled);
        }
        let (compiled, _) = session.compile(kernel, &plan.bindings).ok()?;
        *lock(&self.last) = Some((plan.bindings.clone(), Arc::clone(&compiled)));
        Some(compiled)
    }
}

type Chosen = HashMap<u64, Vec<(Launch<'static>, Arc<Choice>)>>;

/// All that a choice depends on beside what a session has read.
#[derive(Debug, PartialEq)]
struct Launch<'a> {
    kernel: FnId,
    args: Cow<'a, [HostArg]>,
    sets: Cow<'a, [(String, SetValue)]>,
    place: Cow<'a, Place>,
    is_judged: bool,
}

impl Launch<'_> {
    /// A hash of what differs most often between launches.
    fn hash(&self) -> u64 {
        let mut state = DefaultHasher::new();
        self.kernel.hash(&mut state);
        for arg in &*self.args {
            match arg {
                HostArg::Tensor { shape, strides, .. } => (shape, strides).hash(&mut state),
                HostArg::Scalar(value) => value.as_int().hash(&mut state),
                HostArg::Absent => 0.hash(&mut state),
            }
        }
        state.finish()
    }

    fn into_owned(self) -> Launch<'static> {
        let Launch { kernel, args, sets, place, is_judged } = self;
        let (args, sets) = (Cow::Owned(args.into_owned()), Cow::Owned(sets.into_owned()));
        Launch { kernel, args, sets, place: Cow::Owned(place.into_owned()), is_judged }
    }
}

/// A launch whose candidates are compared, and what it is with the defaults.
#[derive(Clone, Copy)]
struct Asked<'a> {
    kernel: FnId,
    args: &'a [HostArg],
    device: Device,
    default: &'a Plan,
    judge: Judge<'a>,
}

/// The threads that compare members, one for each core; `None` if there are none to be had, and in a process that was forked,
/// which has none of its parent's.
fn workers() -> Option<&'static rayon::ThreadPool> {
    static WORKERS: OnceLock<(u32, Option<rayon::ThreadPool>)> = OnceLock::new();
    // The compiler is recursive.
    let pool = || rayon::ThreadPoolBuilder::new().thread_name(|n| format!("tk-choice-{n}")).stack_size(STACK);
    let (process, pool) = WORKERS.get_or_init(|| (std::process::id(), pool().build().ok()));
    pool.as_ref().filter(|_| *process == std::process::id())
}

/// Lists of candidates that are kept.
const REMEMBERED_LISTS: usize = 64;
/// Launches whose choice is kept.
const REMEMBERED: usize = 4096;

impl Session {
    /// The launch that these arguments mean on a device with this name.
    ///
    /// # Errors
    /// The launch is refused.
    pub fn choose(
        &self,
        kernel: FnId,
        args: &[HostArg],
        sets: &[(String, SetValue)],
        device: &Place,
        judge: Option<Judge<'_>>,
    ) -> Result<Arc<Choice>, Wrong> {
        let choose = || self.choose_anew(kernel, args, sets, device, judge);
        let Some(choices) = self.choices() else { return Ok(Arc::new(choose()?)) };
        let launch = Launch {
            kernel,
            args: Cow::Borrowed(args),
            sets: Cow::Borrowed(sets),
            place: Cow::Borrowed(device),
            is_judged: judge.is_some(),
        };
        let hash = launch.hash();
        let known = |all: &Vec<(Launch<'static>, Arc<Choice>)>| {
            all.iter().find(|(l, _)| *l == launch).map(|(_, choice)| Arc::clone(choice))
        };
        if let Some(choice) = lock(&choices.chosen).get(&hash).and_then(known) {
            return Ok(choice);
        }
        let mut choice = choose()?;
        // They are given once.
        let notes = std::mem::take(&mut choice.notes);
        let choice = Arc::new(choice);
        let mut all = lock(&choices.chosen);
        if all.len() >= REMEMBERED {
            all.clear();
        }
        all.entry(hash).or_default().push((launch.into_owned(), Arc::clone(&choice)));
        match notes.is_empty() {
            true => Ok(choice),
            false => Ok(Arc::new(Choice { notes, ..Choice::clone(&choice) })),
        }
    }

    fn choose_anew(
        &self,
        kernel: FnId,
        args: &[HostArg],
        sets: &[(String, SetValue)],
        device: &Place,
        judge: Option<Judge<'_>>,
    ) -> Result<Choice, Wrong> {
        let Place { facts: device, target, name } = device;
        let (hir, device) = (&self.checked().hir, *device);
        let refused = |e: contract::LaunchError| vec![*e.diagnostic];
        let plan = contract::plan_on(hir, kernel, args, sets, device).map_err(refused)?;
        let judge = judge.filter(|_| self.choices().is_some());
        let default = |plan, notes| {
            let chosen = judge.and_then(|judge| self.best(kernel, args, sets, device, (&plan, judge)));
            match chosen {
                Some(choice) => Ok(Choice { notes, ..choice }),
                None => Ok(Choice { sets: sets.to_vec(), plan, origin: Origin::Defaults, notes }),
            }
        };
        let f = hir.func(kernel);
        let place = f.span;
        let note = |message: String| {
            vec![
                Diagnostic::error(codes::TUNING, place, message, "it is launched as without the record")
                    .severity(Severity::Warning),
            ]
        };
        let records = self.records(kernel);
        let records = match records.as_ref() {
            Ok(records) => records,
            Err(why) => return default(plan, self.once(note(why.clone()))),
        };
        let query = Query { kernel: &f.name, target, device: name, key: &plan.key };
        if records.find(&query).next().is_none() {
            return default(plan, vec![]);
        }
        let members = self.members(kernel, args, sets, device)?;
        let is_older = |record: &Record, member: &Member| -> Result<bool, Wrong> {
            let code = |plan: &Plan| -> Result<String, Wrong> {
                Ok(code_of(&self.compile(kernel, &plan.bindings)?.0.module))
            };
            let differs = !record.default_code.is_empty() && code(&plan)? != record.default_code;
            Ok(differs || code(&member.plan)? != record.code)
        };
        let mut notes = vec![];
        for record in records.find(&query) {
            let mut own =
                members.iter().filter(|m| given(&m.values, &m.plan, self) == record.given).peekable();
            // It is about other types, or other values by name.
            if own.peek().is_none() {
                continue;
            }
            let what = match own.find(|m| record.chooses(&m.values)) {
                None => format!("names no member of its `tune` list ({})", record.name()),
                Some(member) if is_older(record, member)? => "is older than the kernel".to_string(),
                Some(member) => {
                    let all = contract::with_values(sets, &member.values);
                    let origin = Origin::Record(member.values.clone(), Box::new(record.clone()));
                    return Ok(Choice { sets: all, plan: member.plan.clone(), origin, notes: vec![] });
                }
            };
            notes =
                note(format!("the tuning record of `{}` for {target} {what}; run `tk tune` again", f.name));
        }
        default(plan, self.once(notes))
    }

    /// What the cost model chooses of the `tune` list of a kernel; `None` if it has no list or
    /// the defaults are as good.
    fn best(
        &self,
        kernel: FnId,
        args: &[HostArg],
        sets: &[(String, SetValue)],
        device: Device,
        (default, judge): (&Plan, Judge<'_>),
    ) -> Option<Choice> {
        self.checked().hir.func(kernel).contract.tune.as_ref()?;
        let values = self.fastest(kernel, args, sets, device, (default, judge))?;
        let sets = contract::with_values(sets, &values);
        let plan = contract::plan_on(&self.checked().hir, kernel, args, &sets, device).ok()?;
        Some(Choice { sets, plan, origin: Origin::Model(values), notes: vec![] })
    }

    /// The member that the cost model prefers to the defaults, if there is one.
    fn fastest(
        &self,
        kernel: FnId,
        args: &[HostArg],
        sets: &[(String, SetValue)],
        device: Device,
        (default, judge): (&Plan, Judge<'_>),
    ) -> Option<Values> {
        let candidates = self.candidates(kernel, sets, device, default).ok()?;
        // The plans are dropped where they were made: there are hundreds.
        let launch = Asked { kernel, args, device, default, judge };
        let times = self.each(launch, &candidates, |candidate, _, estimate| {
            (estimate.map_or(f64::INFINITY, |e| e.us), &candidate.values)
        });
        let of_defaults = times.iter().find(|(_, v)| v.is_empty()).map_or(f64::INFINITY, |(us, _)| *us);
        let (us, values) = times.into_iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
        (!values.is_empty() && us < MARGIN * of_defaults).then(|| values.clone())
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
        device: Device,
        judge: Judge<'_>,
    ) -> Result<Vec<Ranked>, Wrong> {
        let default = contract::plan_on(&self.checked().hir, kernel, args, sets, device);
        let default = &default.map_err(|e| vec![*e.diagnostic])?;
        let candidates = self.candidates(kernel, sets, device, default)?;
        let launch = Asked { kernel, args, device, default, judge };
        let mut all = self.each(launch, &candidates, |candidate, plan, estimate| Ranked {
            values: candidate.values.clone(),
            plan,
            estimate,
        });
        let time = |r: &Ranked| r.estimate.as_ref().map_or(f64::INFINITY, |e| e.us);
        all.sort_by(|a, b| time(a).total_cmp(&time(b)));
        Ok(all)
    }

    /// What comes of each candidate that a launch can take, its plan and its predicted time, by all cores, in order.
    fn each<'c, T: Send>(
        &self,
        launch: Asked<'_>,
        candidates: &'c [Candidate],
        then: impl Fn(&'c Candidate, Plan, Option<Estimate>) -> T + Sync,
    ) -> Vec<T> {
        let Asked { kernel, args, device, default, judge } = launch;
        let one = |candidate: &'c Candidate| {
            let plan = match candidate.values.is_empty() {
                true => default.clone(),
                false => {
                    contract::plan_on(&self.checked().hir, kernel, args, &candidate.sets, device).ok()?
                }
            };
            let compiled = candidate.compiled(self, kernel, &plan);
            let estimate = compiled.and_then(|compiled| judge(&compiled, &plan));
            Some(then(candidate, plan, estimate))
        };
        match workers() {
            Some(workers) => workers.install(|| candidates.par_iter().filter_map(one).collect()),
            None => candidates.iter().filter_map(one).collect(),
        }
    }

    /// The candidates of a launch, whose bindings with the defaults are those of `default`; the defaults first.
    fn candidates(
        &self,
        kernel: FnId,
        sets: &[(String, SetValue)],
        device: Device,
        default: &Plan,
    ) -> Result<Arc<[Candidate]>, Wrong> {
        let find = || {
            let found = contract::candidates(&self.checked().hir, kernel, sets, device, default);
            let found = found.map_err(|e| vec![*e.diagnostic])?;
            let all = std::iter::once(vec![]).chain(found);
            Ok(all.map(|values| Candidate::new(sets, values)).collect::<Arc<[Candidate]>>())
        };
        let Some(choices) = self.choices() else { return find() };
        let launch = format!("{kernel:?} {sets:?} {:?}", default.bindings);
        if let Some(known) = lock(&choices.candidates).get(&launch) {
            return Ok(Arc::clone(known));
        }
        let found = find()?;
        let mut all = lock(&choices.candidates);
        if all.len() >= REMEMBERED_LISTS {
            all.clear();
        }
        all.insert(launch, Arc::clone(&found));
        Ok(found)
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
    ) -> Result<Vec<Member>, Wrong> {
        contract::members(&self.checked().hir, kernel, args, sets, device).map_err(|e| vec![*e.diagnostic])
    }

    /// The file with the records of a kernel; `None` for kernels of the library and of standard input.
    pub fn records_path(&self, kernel: FnId) -> Option<PathBuf> {
        let source = self.checked().sources.get(self.checked().hir.func(kernel).file)?;
        std::path::Path::new(&*source.name).is_file().then(|| path_of(&source.name))
    }

    /// Returns true if there are records of a kernel, so that its launches depend on all extents.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn has_records(&self, kernel: FnId) -> bool {
        let name = &self.checked().hir.func(kernel).name;
        self.records(kernel).as_ref().as_ref().is_ok_and(|r| r.iter().any(|r| r.kernel == *name))
    }

    /// The records of a kernel for a target, of all GPUs.
    ///
    /// # Errors
    /// Why their file is not used.
    pub fn records_for(&self, kernel: FnId, target: &str) -> Result<Vec<Record>, String> {
        let name = &self.checked().hir.func(kernel).name;
        let records = self.records(kernel);
        let records = records.as_ref().as_ref().map_err(Clone::clone)?;
        Ok(records.iter().filter(|r| r.kernel == *name && r.target == target).cloned().collect())
    }

    fn records(&self, kernel: FnId) -> Arc<Result<Records, String>> {
        let Some(choices) = self.choices() else { return Arc::new(Ok(Records::default())) };
        let source = self.checked().sources.get(self.checked().hir.func(kernel).file);
        let name = source.map(|s| s.name.to_string()).unwrap_or_default();
        if let Some(known) = lock(&choices.records).get(&name) {
            return Arc::clone(known);
        }
        let read = self.records_path(kernel).map_or(Ok(Records::default()), |path| Records::read(&path));
        let read = Arc::new(read);
        lock(&choices.records).insert(name, Arc::clone(&read));
        read
    }

    /// The notes that this session has not given yet.
    fn once(&self, notes: Vec<Diagnostic>) -> Vec<Diagnostic> {
        let mut shown = lock(self.shown_notes());
        notes.into_iter().filter(|n| shown.insert(n.message.clone())).collect()
    }
}

/// Bytes of the stack of a thread that specializes and schedules a kernel.
const STACK: usize = 64 << 20;

/// The compile-time parameters that a member does not choose, as text.
pub fn given(values: &Values, plan: &Plan, session: &Session) -> BTreeMap<String, String> {
    let mut all = as_text(&contract::as_sets(&session.checked().hir, &plan.bindings.cvars));
    all.retain(|name, _| !values.iter().any(|(n, _)| n == name));
    all
}
