//! What the compiler expects of the kernels of a file that is being written: [`outlook`], for an editor.
//!
//! Guarantees that nothing is launched and no assembler is started.

use tk_gpu::TargetSpec;
use tk_ops::DType;
use tk_runtime::Session;
use tk_sema::Checked;
use tk_sema::contract::{self, SetValue};
use tk_sema::hir::{CKind, FnId};
use tk_syntax::Severity;

use crate::compile::instance::{Asking, Specialization, specializations};
use crate::compile::kernel::{ProgramShape, Request};
use crate::compile::sample;
use crate::compile::variant::{MAX_OPTIONAL, Variant};
use crate::device::facts::usual_place;
use crate::device::typical::{EXTENTS, Expected, expected};

/// What is expected of a specialization of a kernel.
#[derive(Clone, Debug)]
pub struct Outlook {
    /// The kernel.
    pub kernel: FnId,
    /// The values of its compile-time parameters: `T=f16, BLOCK=1024`; empty if it has none.
    pub values: String,
    /// Its typical launch with aligned arguments.
    pub expected: Expected,
}

/// The most specializations of a kernel that are looked at.
const INSTANCES: usize = 4;
/// What an element type is that no `export` gives, the first that the kernel accepts.
const TYPES: [DType; 6] = [DType::F16, DType::BF16, DType::F32, DType::I32, DType::I8, DType::F64];
/// What an integer is that no `export` gives, such as the size of a head.
const EXTENT: i128 = 64;

/// The exported instances of each kernel of a file, at most a few of each; of kernels without an `export` those with the
/// defaults. Kernels that cannot be compiled alone are left out.
pub fn outlook(checked: &Checked, target: &'static TargetSpec) -> Vec<Outlook> {
    if checked.diagnostics.iter().any(|d| d.severity == Severity::Error) {
        return vec![];
    }
    let session = Session::new(checked.clone());
    let kernels: Vec<FnId> = session.kernels().map(|(id, _)| id).collect();
    let instances = kernels.into_iter().flat_map(|kernel| instances(&session, kernel, target));
    instances.filter_map(|special| of_instance(&session, &special)).collect()
}

fn instances(session: &Session, kernel: FnId, target: &'static TargetSpec) -> Vec<Specialization> {
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
    with(&[]).or_else(guessed).unwrap_or_default().into_iter().take(INSTANCES).collect()
}

/// The values of all parameters in a typical launch, where only those without a default are as in a specialization.
fn typical(session: &Session, special: &Specialization) -> Option<Vec<(String, SetValue)>> {
    let hir = &session.checked().hir;
    let contract = contract::close(hir, special.kernel, &special.bindings).ok()?;
    let place = usual_place(special.target)?;
    let mut given = special.bindings.cvars.clone();
    given.retain(|id, _| hir.cvar(*id).default.is_none());
    let sets = contract::as_sets(hir, &given);
    let planned = |extent: i64| {
        let args = sample::cube(&contract, &special.bindings, extent)?;
        contract::plan_on(hir, special.kernel, &args, &sets, place.facts).ok()
    };
    let plan = EXTENTS.into_iter().find_map(planned)?;
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

fn of_instance(session: &Session, special: &Specialization) -> Option<Outlook> {
    let hir = &session.checked().hir;
    if special.bindings.present.len() > MAX_OPTIONAL {
        return None;
    }
    let bindings = &special.bindings;
    let (compiled, _) = session.compile(special.kernel, bindings).ok()?;
    let contract = contract::close(hir, special.kernel, bindings).ok()?;
    let prefer = contract::preferred(hir, special.kernel, bindings).ok()?;
    let (module, entry, target) = (&compiled.module, compiled.entry, special.target);
    let (_, facts) = Variant::of(module, entry, &prefer).into_iter().next()?;
    let shape = ProgramShape::of(target, special.asked);
    let request = Request { module, entry, target, shape, facts, sources: &session.checked().sources };
    let values: Vec<String> = special.values.iter().map(|(n, v)| format!("{n}={v}")).collect();
    let expected = expected(session, special, (bindings, &contract), &request)?;
    Some(Outlook { kernel: special.kernel, values: values.join(", "), expected })
}
