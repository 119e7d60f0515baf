//! What the compiler expects of the kernels of a file that is being written ([`outlook`]), and what it makes of them
//! ([`forms`]), for an editor.
//!
//! Guarantees that nothing is launched and no assembler is started.

use std::collections::BTreeMap;
use std::sync::Arc;

use tk_gpu::{ArgFacts, TargetSpec};
use tk_ops::DType;
use tk_runtime::{Compiled, Session};
use tk_sema::Checked;
use tk_sema::contract::{self, ClosedContract, HostArg, SetValue};
use tk_sema::eval::CVal;
use tk_sema::hir::{CKind, CVarId, FnId};
use tk_syntax::{Diagnostic, FileId, Severity, Span};
use tk_tile::text;

use crate::compile::instance::{Asking, Specialization, specializations};
use crate::compile::kernel::{ProgramShape, Request};
use crate::compile::pictures::pictures;
use crate::compile::pipeline::schedule;
use crate::compile::sample;
use crate::compile::variant::{MAX_OPTIONAL, Variant};
use crate::device::facts::{facts_about, usual_place};
use crate::device::typical::{EXTENTS, Expected, expected};
use crate::ship::artifact::remarks;

/// What is expected of a specialization of a kernel.
#[derive(Clone, Debug)]
pub struct Outlook {
    /// The kernel.
    pub kernel: FnId,
    /// The values of its compile-time parameters: `T=f16, BLOCK=1024`; empty if it has none.
    pub values: String,
    /// The exports of the file that have it among their first instances, as the places of the kernel's name in them.
    pub exports: Vec<Span>,
    /// Its typical launch with aligned arguments.
    pub expected: Expected,
}

/// The most instances of an `export` that are looked at.
const INSTANCES: usize = 4;
/// What an element type is that no `export` gives, the first that the kernel accepts.
const TYPES: [DType; 6] = [DType::F16, DType::BF16, DType::F32, DType::I32, DType::I8, DType::F64];
/// What an integer is that no `export` gives, such as the size of a head.
const EXTENT: i128 = 64;

/// The exported instances of each kernel of a file, at most a few of each `export`; of kernels without an `export` those with the
/// defaults. Kernels that cannot be compiled alone are left out.
pub fn outlook(checked: &Checked, target: &'static TargetSpec) -> Vec<Outlook> {
    if checked.diagnostics.iter().any(|d| d.severity == Severity::Error) {
        return vec![];
    }
    // What a function of another file costs, the line that calls it does.
    let session = Session::new(checked.clone()).with_places_of_calls();
    let kernels: Vec<FnId> = session.kernels().map(|(id, _)| id).collect();
    let instances = kernels.into_iter().flat_map(|kernel| exported(&session, kernel, target));
    instances.filter_map(|(special, exports)| of_instance(&session, &special, exports)).collect()
}

/// The first instances of each `export` of a kernel; without one that with the defaults, or with values that are guessed.
pub fn instances(session: &Session, kernel: FnId, target: &'static TargetSpec) -> Vec<Specialization> {
    exported(session, kernel, target).into_iter().map(|(special, _)| special).collect()
}

/// The same with the exports that have each of them, as the places of their names.
fn exported(
    session: &Session,
    kernel: FnId,
    target: &'static TargetSpec,
) -> Vec<(Specialization, Vec<Span>)> {
    let hir = &session.checked().hir;
    let own = hir.exports.iter().filter(|e| e.kernel == kernel && e.span.file == FileId(0));
    let first = own.map(|e| {
        let all = contract::instances(hir, e, facts_about(target)).unwrap_or_default();
        (e, all.into_iter().take(INSTANCES).collect::<Vec<_>>())
    });
    let first: Vec<_> = first.collect();
    let exports = |special: &Specialization| -> Vec<Span> {
        let found = first.iter().filter(|(e, instances)| {
            let same = |values: &BTreeMap<CVarId, CVal>| {
                e.values.iter().all(|(id, _)| values.get(id) == special.bindings.cvars.get(id))
            };
            instances.iter().any(same)
        });
        found.map(|(e, _)| e.span).collect()
    };
    let all = closed(session, kernel, target).into_iter().map(|special| (exports(&special), special));
    all.filter(|(exports, _)| first.is_empty() || !exports.is_empty()).map(|(e, s)| (s, e)).collect()
}

/// The exported instances of a kernel; without an `export` that with the defaults, or with values that are guessed.
fn closed(session: &Session, kernel: FnId, target: &'static TargetSpec) -> Vec<Specialization> {
    let hir = &session.checked().hir;
    let with = |sets: &[(String, SetValue)]| {
        let name = Some(hir.func(kernel).name.as_str());
        let asking = Asking { path: "", kernel: name, sets, targets: &[target], members: 0 };
        specializations(session, asking).ok().map(|found| found.all)
    };
    let guessed = || {
        let found = with(&guesses(session, kernel)?)?;
        // What follows from arguments is as in a typical launch.
        let typical = found.first().and_then(|special| typical(session, special));
        typical.and_then(|sets| with(&sets)).or(Some(found))
    };
    with(&[]).or_else(guessed).unwrap_or_default()
}

/// The values of all parameters in a typical launch, where only those without a default are as in a specialization.
fn typical(session: &Session, special: &Specialization) -> Option<Vec<(String, SetValue)>> {
    let hir = &session.checked().hir;
    let contract = contract::close(hir, special.kernel, &special.bindings).ok()?;
    let place = usual_place(special.target)?;
    let mut given = special.bindings.cvars.clone();
    given.retain(|id, _| hir.cvar(*id).default.is_none());
    let sets = contract::as_sets(hir, &given);
    let planned = |args: Vec<HostArg>| contract::plan_on(hir, special.kernel, &args, &sets, place.facts).ok();
    let plan = sample::typical(&contract, &special.bindings, &EXTENTS, false).find_map(planned)?;
    Some(contract::as_sets(hir, &plan.bindings.cvars))
}

/// Values for the parameters without one; `None` where that would say little.
fn guesses(session: &Session, kernel: FnId) -> Option<Vec<(String, SetValue)>> {
    let hir = &session.checked().hir;
    let chosen = |name: String| {
        let param = hir.func(kernel).cparams.iter().map(|id| hir.cvar(*id)).find(|c| c.name == name)?;
        let value = match &param.kind {
            CKind::DType(set) => SetValue::DType(TYPES.into_iter().find(|d| set.has(*d))?),
            CKind::Int(_) => SetValue::Int(EXTENT),
            CKind::Float(_) | CKind::Bool | CKind::Shape | CKind::Fn(..) | CKind::Err => return None,
        };
        Some((name, value))
    };
    session.open_parameters(kernel, &[]).into_iter().map(chosen).collect()
}

fn of_instance(session: &Session, special: &Specialization, exports: Vec<Span>) -> Option<Outlook> {
    let values: Vec<String> = special.values.iter().map(|(n, v)| format!("{n}={v}")).collect();
    let ready = Ready::new(session, special).ok()?;
    let expected = ready.expected(session, special)?;
    Some(Outlook { kernel: special.kernel, values: values.join(", "), exports, expected })
}

/// A specialization with the facts of its fastest variant.
struct Ready {
    compiled: Arc<Compiled>,
    contract: ClosedContract,
    facts: Vec<ArgFacts>,
}

impl Ready {
    fn new(session: &Session, special: &Specialization) -> Result<Ready, Vec<Diagnostic>> {
        let hir = &session.checked().hir;
        let bindings = &special.bindings;
        if bindings.present.len() > MAX_OPTIONAL {
            return Err(vec![]);
        }
        let (compiled, _) = session.compile(special.kernel, bindings)?;
        let contract = contract::close(hir, special.kernel, bindings).map_err(|d| vec![*d])?;
        let prefer = contract::preferred(hir, special.kernel, bindings).map_err(|d| vec![*d])?;
        let variants = Variant::of(&compiled.module, compiled.entry, &prefer);
        let facts = variants.into_iter().next().map(|(_, facts)| facts).unwrap_or_default();
        Ok(Ready { compiled, contract, facts })
    }

    fn request<'r>(&'r self, session: &'r Session, special: &Specialization) -> Request<'r> {
        let (module, entry, target) = (&self.compiled.module, self.compiled.entry, special.target);
        let shape = ProgramShape::of(target, special.asked);
        let facts = self.facts.clone();
        Request { module, entry, target, shape, facts, sources: &session.checked().sources }
    }

    fn expected(&self, session: &Session, special: &Specialization) -> Option<Expected> {
        let request = self.request(session, special);
        expected(session, special, (&special.bindings, &self.contract), &request)
    }
}

/// The forms of a kernel between its source and machine code, of the fastest variant.
#[derive(Clone, Debug)]
pub struct Forms {
    /// Tile IR after the target-independent passes.
    pub tile: String,
    /// Laid-out IR.
    pub layout: String,
    /// Scheduled IR.
    pub sched: String,
    /// Drawings of the layouts, as SVG.
    pub pictures: String,
    /// Where the fastest instructions do not apply, and why.
    pub remarks: Vec<tk_bundle::Remark>,
    /// The predicted cost of a typical launch; `None` if nothing is known of a GPU for the target.
    pub expected: Option<Expected>,
}

/// The forms of a specialization.
///
/// # Errors
/// It cannot be compiled; without a diagnostic, it has too many optional arguments.
pub fn forms(session: &Session, special: &Specialization) -> Result<Forms, Vec<Diagnostic>> {
    let ready = Ready::new(session, special)?;
    let request = ready.request(session, special);
    let stages = schedule(&request, None)?;
    Ok(Forms {
        tile: text::print(request.module, text::Options { locs: false }),
        layout: stages.laid_out.to_string(),
        sched: stages.scheduled.to_string(),
        pictures: pictures(&stages.laid_out),
        remarks: remarks(&stages.scheduled.remarks, request.sources),
        expected: ready.expected(session, special),
    })
}
