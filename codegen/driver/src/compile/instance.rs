//! Determines the specializations of a file that are compiled ahead of time: kernels, values of their compile-time
//! parameters, warps.
//!
//! Guarantees an order that follows the source, and different file names for all specializations.

use tk_gpu::TargetSpec;
use tk_gpu::target::spec::COMPUTE_80;
use tk_runtime::Session;
use tk_runtime::device::LaunchOptions;
use tk_sema::contract::{self, SetValue};
use tk_sema::eval::Bindings;
use tk_sema::hir::FnId;
use tk_syntax::{Diagnostic, Span};

use crate::compile::kernel::Asked;
use crate::compile::members::{ShippedMember, shipped_members};
use crate::compile::variant::Variant;
use crate::device::facts::facts_about;

/// Values by name.
type Sets = Vec<(String, SetValue)>;

/// The reason that nothing can be compiled.
#[derive(Clone, Debug)]
pub enum Refused {
    /// Diagnostics of the program.
    Wrong(Vec<Diagnostic>),
    /// An error in the request.
    Sentence(String),
}

impl From<Vec<Diagnostic>> for Refused {
    fn from(wrong: Vec<Diagnostic>) -> Refused {
        Refused::Wrong(wrong)
    }
}

/// A kernel with the values of its compile-time parameters, for a target.
#[derive(Clone, Debug)]
pub struct Specialization {
    /// The kernel.
    pub kernel: FnId,
    /// The name of the kernel.
    pub name: String,
    /// Its position.
    pub place: Span,
    /// The target.
    pub target: &'static TargetSpec,
    /// The values of its compile-time parameters; optional arguments are present.
    pub bindings: Bindings,
    /// The requested launch options.
    pub asked: Asked,
    /// All programs of a launch run at the same time.
    pub cooperative: bool,
    /// The compile-time parameters in order, then the options of a launch that were given, with their values.
    pub values: Vec<(String, String)>,
    /// The number that distinguishes it from others with the same values, such as two lambdas.
    pub number: usize,
    /// The member of a `tune` list that it is; none for the values by name or default.
    pub member: Option<ShippedMember>,
    /// Nobody asked for it: it serves GPUs that the targets do not, and is left out where it cannot be compiled.
    pub is_spare: bool,
}

impl Specialization {
    /// `add[T=f16, BLOCK=1024]`
    pub fn label(&self) -> String {
        let values: Vec<String> = self.values.iter().map(|(n, v)| format!("{n}={v}")).collect();
        if values.is_empty() { self.name.clone() } else { format!("{}[{}]", self.name, values.join(", ")) }
    }

    /// The same with the variant, unless it is the general one.
    pub fn variant_label(&self, variant: Variant) -> String {
        match variant {
            Variant::Aligned(_) => format!("{} ({})", self.label(), variant.name()),
            Variant::General => self.label(),
        }
    }

    /// `add.T=f16.BLOCK=1024.aligned`; characters that file names cannot contain become `_`.
    pub fn file_stem(&self, variant: Variant) -> String {
        let plain =
            |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '=') { c } else { '_' };
        let mut stem = self.name.clone();
        for (name, value) in &self.values {
            stem.push_str(&format!(".{name}={value}"));
        }
        if self.number > 1 {
            stem.push_str(&format!(".{}", self.number));
        }
        match variant {
            Variant::Aligned(_) => stem.push_str(&format!(".{}", variant.name())),
            Variant::General => {}
        }
        stem.chars().map(plain).collect()
    }
}

/// What is asked of a file.
#[derive(Clone, Copy, Debug)]
pub struct Asking<'a> {
    /// Its path, for messages.
    pub path: &'a str,
    /// One kernel; all of them without a name.
    pub kernel: Option<&'a str>,
    /// Values of compile-time parameters and launch options by name.
    pub sets: &'a [(String, SetValue)],
    /// The targets.
    pub targets: &'a [&'static TargetSpec],
    /// The most members of a `tune` list that are shipped beside the defaults.
    pub members: usize,
}

/// The specializations of a file.
#[derive(Clone, Debug, Default)]
pub struct Specializations {
    /// Those that are compiled, in the order in which launches look at them.
    pub all: Vec<Specialization>,
    /// A sentence for each kernel that is left out because its values are not given.
    pub open: Vec<String>,
    /// Why members of a `tune` list are not shipped.
    pub notes: Vec<String>,
}

/// The specializations of a file, or of one kernel of it, for each target: members of `tune` lists before the defaults.
///
/// # Errors
/// No kernel is left.
pub fn specializations(session: &Session, asking: Asking<'_>) -> Result<Specializations, Refused> {
    let Asking { path, kernel: name, sets, targets, members } = asking;
    let kernels = chosen(session, path, name)?;
    used(session, &kernels, sets)?;
    let mut out = Specializations::default();
    for kernel in &kernels {
        let own = own_sets(session, *kernel, kernels.len() > 1, sets);
        let missing = session.open_parameters(*kernel, &own);
        let mut of_kernel = vec![];
        for target in targets {
            // The values of `export`, unless all are given by name.
            let all = if missing.is_empty() && !own.is_empty() {
                vec![own.clone()]
            } else {
                let exported = session.exported(*kernel, &own, facts_about(target))?;
                if missing.is_empty() && exported.is_empty() { vec![own.clone()] } else { exported }
            };
            let mut on_target: Vec<Specialization> = vec![];
            for values in all {
                let (shipped, notes) = shipped_members(session, *kernel, target, &values, members)?;
                out.notes.extend(notes);
                let mut next = |sets: &[_], member| -> Result<(), Refused> {
                    let mut new = specialization(session, *kernel, target, sets, member)?;
                    new.number = 1 + on_target.iter().filter(|f| f.values == new.values).count();
                    on_target.push(new);
                    Ok(())
                };
                for member in shipped {
                    next(&contract::with_values(&values, &member.values), Some(member))?;
                }
                next(&values, None)?;
            }
            of_kernel.push(on_target);
        }
        if of_kernel.iter().all(Vec::is_empty) {
            out.open.push(needs(&session.checked().hir.func(*kernel).name, &missing));
        }
        out.all.extend(alternating(of_kernel));
    }
    match out.open.first() {
        Some(first) if out.all.is_empty() => Err(Refused::Sentence(first.clone())),
        Some(_) | None => Ok(out),
    }
}

/// Adds PTX of each kernel for NVIDIA's GPUs that are newer than the targets, if one of these is NVIDIA's and none is PTX.
/// Launches look at it last.
pub fn add_ptx(session: &Session, asking: Asking<'_>, found: &mut Specializations) {
    let is_ptx = |t: &&TargetSpec| t.oldest.is_some();
    if asking.targets.iter().any(is_ptx) || !asking.targets.iter().any(|t| t.has_ptx) {
        return;
    }
    match specializations(session, Asking { targets: &[&COMPUTE_80], members: 0, ..asking }) {
        Ok(more) => found.all.extend(more.all.into_iter().map(|s| Specialization { is_spare: true, ..s })),
        Err(Refused::Wrong(wrong)) => found.notes.extend(wrong.first().map(|d| without_ptx(asking.path, d))),
        Err(Refused::Sentence(sentence)) => found.notes.push(sentence),
    }
}

/// Why a file or a kernel has no PTX for newer GPUs.
pub(crate) fn without_ptx(what: &str, why: &Diagnostic) -> String {
    format!("{what} has no PTX for GPUs that are newer than the targets: {}", why.message)
}

/// The first of each list, then the second of each, and so on: the targets of a specialization are adjacent.
fn alternating<T>(lists: Vec<Vec<T>>) -> Vec<T> {
    let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
    let mut lists: Vec<_> = lists.into_iter().map(Vec::into_iter).collect();
    (0..longest).flat_map(|_| lists.iter_mut().filter_map(Iterator::next).collect::<Vec<T>>()).collect()
}

fn specialization(
    session: &Session,
    kernel: FnId,
    target: &'static TargetSpec,
    sets: &[(String, SetValue)],
    member: Option<ShippedMember>,
) -> Result<Specialization, Refused> {
    let hir = &session.checked().hir;
    let f = hir.func(kernel);
    let bindings = session.bindings(kernel, sets, facts_about(target))?;
    let value = |id| Some((hir.cvar(id).name.clone(), bindings.cvars.get(&id)?.to_string()));
    let mut values: Vec<(String, String)> = f.cparams.iter().filter_map(|id| value(*id)).collect();
    let options: Sets = sets.iter().filter(|(n, _)| contract::is_launch_option(n)).cloned().collect();
    values.extend(options.iter().map(|(n, v)| (n.clone(), v.to_string())));
    let option = |name| launch_option(session, kernel, &bindings, &options, name);
    let small = |n: Option<u64>| n.map(|n| u32::try_from(n).unwrap_or(u32::MAX));
    let cooperative = session.launch_option(kernel, &bindings, "cooperative")?.is_some_and(|v| v != 0);
    let asked = Asked {
        warps: option("warps")?.unwrap_or(LaunchOptions::WARPS.into()),
        // As for launches that compile.
        ctas: option("ctas")?.filter(|_| !cooperative).unwrap_or(1),
        cluster: option("cluster")?.filter(|_| !cooperative).unwrap_or(1),
        stages: small(option("stages")?),
        max_regs: small(option("max_regs")?),
        occupancy: small(option("occupancy")?),
    };
    let cluster = i64::try_from(asked.cluster).unwrap_or(i64::MAX);
    contract::clusters_divide_grid(hir, kernel, &bindings, cluster).map_err(|d| Refused::Wrong(vec![*d]))?;
    let (name, place) = (f.name.clone(), f.span);
    Ok(Specialization {
        kernel,
        name,
        place,
        target,
        bindings,
        asked,
        cooperative,
        values,
        number: 1,
        member,
        is_spare: false,
    })
}

/// The value of `--set NAME=` for a launch option, else that of the launch clause, if either is given.
fn launch_option(
    session: &Session,
    kernel: FnId,
    bindings: &Bindings,
    options: &[(String, SetValue)],
    option: &str,
) -> Result<Option<u64>, Refused> {
    // That it is a positive number was checked with the other values.
    let given = options.iter().find(|(n, _)| n == option).map(|(_, v)| match v {
        SetValue::Int(i) => *i,
        SetValue::Bool(_)
        | SetValue::Float(_)
        | SetValue::DType(_)
        | SetValue::Shape(_)
        | SetValue::Fn(_)
        | SetValue::Lambda(_) => 1,
    });
    let clause = || {
        session.launch_option(kernel, bindings, option).map_err(|wrong| {
            let note =
                format!("give it as --set {option}=.. where it follows from the arguments of a launch");
            Refused::Wrong(wrong.into_iter().map(|d| d.note(note.clone())).collect())
        })
    };
    let count = if given.is_some() { given } else { clause()? };
    let name = &session.checked().hir.func(kernel).name;
    match count.map(u64::try_from) {
        None => Ok(None),
        Some(Ok(n)) if n > 0 => Ok(Some(n)),
        // As for launches that compile: no limit.
        Some(Ok(_)) if matches!(option, "max_regs" | "occupancy") => Ok(None),
        Some(_) => {
            Err(Refused::Sentence(format!("kernel `{name}` cannot have {} {option}", count.unwrap_or(0))))
        }
    }
}

/// The kernels of the file, or the named one.
fn chosen(session: &Session, path: &str, name: Option<&str>) -> Result<Vec<FnId>, Refused> {
    let all: Vec<(FnId, &str)> = session.kernels().map(|(id, f)| (id, f.name.as_str())).collect();
    if all.is_empty() {
        return Err(Refused::Sentence(format!("{path} has no kernel")));
    }
    let Some(name) = name else { return Ok(all.iter().map(|(id, _)| *id).collect()) };
    match all.iter().find(|(_, n)| *n == name) {
        Some((id, _)) => Ok(vec![*id]),
        None => {
            let names: Vec<&str> = all.iter().map(|(_, n)| *n).collect();
            Err(Refused::Sentence(format!("{path} has no kernel `{name}`{}", hint(name, &names))))
        }
    }
}

/// Fails if a value belongs to none of several kernels. With one kernel, specialization reports it.
fn used(session: &Session, kernels: &[FnId], sets: &[(String, SetValue)]) -> Result<(), Refused> {
    let hir = &session.checked().hir;
    let names: Vec<String> = kernels
        .iter()
        .flat_map(|k| contract::parameters(hir, *k))
        .filter(|p| p.compile_time)
        .map(|p| p.name)
        .collect();
    let unknown = sets.iter().map(|(n, _)| n).find(|n| !names.contains(n) && !contract::is_launch_option(n));
    match unknown {
        Some(name) if kernels.len() > 1 => {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let hint = hint(name, &names);
            Err(Refused::Sentence(format!("no kernel has a compile-time parameter `{name}`{hint}")))
        }
        Some(_) | None => Ok(()),
    }
}

/// With several kernels, a value goes to those that have the parameter.
fn own_sets(session: &Session, kernel: FnId, several: bool, sets: &[(String, SetValue)]) -> Sets {
    let params = contract::parameters(&session.checked().hir, kernel);
    let own = |name: &str| params.iter().any(|p| p.name == name) || contract::is_launch_option(name);
    sets.iter().filter(|(n, _)| !several || own(n)).cloned().collect()
}

/// `; did you mean `x`?`, or nothing.
fn hint(word: &str, candidates: &[&str]) -> String {
    let close = tk_sema::closest(word, candidates.iter().copied());
    close.map(|c| format!("; did you mean `{c}`?")).unwrap_or_default()
}

fn needs(kernel: &str, names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
    let sets: Vec<String> = names.iter().map(|n| format!("--set {n}=..")).collect();
    let (verb, quoted) = (if names.len() == 1 { "has" } else { "have" }, quoted.join(", "));
    let give = sets.join(" ");
    format!("kernel `{kernel}` has no `export`, and {quoted} {verb} no value without a launch: give {give}")
}
