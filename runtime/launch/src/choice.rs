//! Which member of a kernel's `tune` list a launch uses: [`Session::choose`].
//!
//! A value that is given by name is never replaced. Otherwise a tuning record of the target and the key decides, if it
//! names a member; without one, the defaults of the kernel count. A choice depends on nothing but the program, its
//! records, the arguments and the device.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use tk_sema::contract::{self, Device, HostArg, Member, Plan, SetValue, Values};
use tk_sema::hir::FnId;
use tk_syntax::{Diagnostic, Severity, codes};

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
}

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

/// The files of records that a session has read, or why they are not used.
#[derive(Debug, Default)]
pub(crate) struct ReadRecords(Mutex<HashMap<String, Arc<Result<Records, String>>>>);

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
    ) -> Result<Choice, Wrong> {
        let Place { facts: device, target, name } = device;
        let (hir, device) = (&self.checked().hir, *device);
        let refused = |e: contract::LaunchError| vec![*e.diagnostic];
        let plan = contract::plan_on(hir, kernel, args, sets, device).map_err(refused)?;
        let default = |plan, notes| Ok(Choice { sets: sets.to_vec(), plan, origin: Origin::Defaults, notes });
        let f = hir.func(kernel);
        let place = f.span;
        let note = |message: String| {
            vec![
                Diagnostic::error(codes::TUNING, place, message, "this kernel uses its defaults")
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
        let mut notes = vec![];
        for record in records.find(&query) {
            let named =
                |m: &&Member| record.chooses(&m.values) && given(&m.values, &m.plan, self) == record.given;
            let Some(member) = members.iter().find(named) else { continue };
            let (compiled, _) = self.compile(kernel, &member.plan.bindings)?;
            if code_of(&compiled.module) != record.code {
                let message = format!(
                    "the tuning record of `{}` for {target} is older than the kernel; run `tk tune` again",
                    f.name
                );
                notes = note(message);
                continue;
            }
            let mut all = sets.to_vec();
            all.extend(member.values.iter().filter(|(n, _)| !sets.iter().any(|(s, _)| s == n)).cloned());
            let origin = Origin::Record(member.values.clone(), Box::new(record.clone()));
            return Ok(Choice { sets: all, plan: member.plan.clone(), origin, notes: vec![] });
        }
        default(plan, self.once(notes))
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
        let hir = &self.checked().hir;
        let listed = hir.func(kernel).contract.tune.is_some();
        let of = if listed { contract::members } else { contract::proposed_members };
        of(hir, kernel, args, sets, device).map_err(|e| vec![*e.diagnostic])
    }

    /// The file with the records of a kernel; `None` for kernels of the library and of standard input.
    pub fn records_path(&self, kernel: FnId) -> Option<PathBuf> {
        let source = self.checked().sources.get(self.checked().hir.func(kernel).file)?;
        std::path::Path::new(&*source.name).is_file().then(|| path_of(&source.name))
    }

    /// Returns true if there are records of a kernel, so that its launches depend on all extents.
    pub(crate) fn has_records(&self, kernel: FnId) -> bool {
        let name = &self.checked().hir.func(kernel).name;
        self.records(kernel).as_ref().as_ref().is_ok_and(|r| r.iter().any(|r| r.kernel == *name))
    }

    fn records(&self, kernel: FnId) -> Arc<Result<Records, String>> {
        let Some(read_records) = self.read_records() else { return Arc::new(Ok(Records::default())) };
        let source = self.checked().sources.get(self.checked().hir.func(kernel).file);
        let name = source.map(|s| s.name.to_string()).unwrap_or_default();
        if let Some(known) = lock(&read_records.0).get(&name) {
            return Arc::clone(known);
        }
        let read = self.records_path(kernel).map_or(Ok(Records::default()), |path| Records::read(&path));
        let read = Arc::new(read);
        lock(&read_records.0).insert(name, Arc::clone(&read));
        read
    }

    /// The notes that this session has not given yet.
    fn once(&self, notes: Vec<Diagnostic>) -> Vec<Diagnostic> {
        let mut said = lock(self.said_notes());
        notes.into_iter().filter(|n| said.insert(n.message.clone())).collect()
    }
}

/// The compile-time parameters that a member does not choose, as text.
pub fn given(values: &Values, plan: &Plan, session: &Session) -> BTreeMap<String, String> {
    let mut all = as_text(&contract::as_sets(&session.checked().hir, &plan.bindings.cvars));
    all.retain(|name, _| !values.iter().any(|(n, _)| n == name));
    all
}
