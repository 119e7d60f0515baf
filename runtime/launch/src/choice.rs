//! Which member of a kernel's `tune` list a launch uses: [`Session::choose`].
//!
//! A value that is given by name is never replaced. Otherwise a tuning record of the target and the key decides, if it
//! names a member; without one, the cost model does, if the kernel has a list; without that, its defaults count. A choice
//! depends on nothing but the program, its records, the arguments and the device.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use tk_sema::contract::{self, Device, HostArg, Member, Plan, SetValue, Values};
use tk_sema::hir::FnId;
use tk_syntax::{Diagnostic, Severity, codes};

pub use crate::candidates::Ranked;
use crate::candidates::{Asked, Lists};
use crate::compile::Compile;
use crate::session::{Session, Wrong, lock};
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
    /// The candidates of kernels.
    pub(crate) lists: Lists,
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

/// Launches whose choice is kept.
const REMEMBERED: usize = 4096;

impl Session {
    /// The launch that these arguments mean on a device with this name. Without a compiler, whose cost model chooses,
    /// there are records and defaults.
    ///
    /// # Errors
    /// The launch is refused.
    pub fn choose(
        &self,
        kernel: FnId,
        args: &[HostArg],
        sets: &[(String, SetValue)],
        device: &Place,
        compiler: Option<&dyn Compile>,
    ) -> Result<Arc<Choice>, Wrong> {
        let choose = || self.choose_anew(kernel, args, sets, device, compiler);
        let Some(choices) = self.choices() else { return Ok(Arc::new(choose()?)) };
        let launch = Launch {
            kernel,
            args: Cow::Borrowed(args),
            sets: Cow::Borrowed(sets),
            place: Cow::Borrowed(device),
            is_judged: compiler.is_some(),
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
        compiler: Option<&dyn Compile>,
    ) -> Result<Choice, Wrong> {
        let Place { facts, target, name } = device;
        let hir = &self.checked().hir;
        let refused = |e: contract::LaunchError| vec![*e.diagnostic];
        let plan = contract::plan_on(hir, kernel, args, sets, *facts).map_err(refused)?;
        let compiler = compiler.filter(|_| self.choices().is_some());
        let default = |plan, notes| {
            let asked = |compiler| Asked { kernel, args, sets, place: device, default: &plan, compiler };
            match compiler.and_then(|compiler| self.best(asked(compiler))) {
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
        let members = self.members(kernel, args, sets, *facts)?;
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
    fn best(&self, asked: Asked<'_>) -> Option<Choice> {
        self.checked().hir.func(asked.kernel).contract.tune.as_ref()?;
        let (values, plan) = self.fastest(asked)?;
        let sets = contract::with_values(asked.sets, &values);
        Some(Choice { sets, plan, origin: Origin::Model(values), notes: vec![] })
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

/// The compile-time parameters that a member does not choose, as text.
pub fn given(values: &Values, plan: &Plan, session: &Session) -> BTreeMap<String, String> {
    let mut all = as_text(&contract::as_sets(&session.checked().hir, &plan.bindings.cvars));
    all.retain(|name, _| !values.iter().any(|(n, _)| n == name));
    all
}
