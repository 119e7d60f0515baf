//! Plans launches: the meaning of one call of a kernel with these arguments.
//!
//! [`plan`] binds the compile-time parameters (given by name, inferred from the arguments, or by their defaults),
//! checks the arguments and the requirements, and evaluates the grid and the other clauses. Requires a checked
//! program. Guarantees that a plan can be specialized and run without looking at the contract again, and that a
//! refused launch is one sentence in the terms of the source.

mod bind;
mod closed;
mod exports;
mod host;
mod members;
mod reads;
mod sets;

use std::collections::BTreeMap;
use std::rc::Rc;

use tk_ops::{DType, Scalar};
use tk_syntax::{Code, Diagnostic, Span, codes};

use crate::eval::{Bindings, CVal, EvalResult, Evaluator, HostValues};
use crate::hir::{CKind, CVar, FnId, HFn, HKind, Hir, Requirement};
use crate::target::{CPU_SMEM, Target};

pub use crate::launch::is_launch_option;
pub(crate) use bind::elem_param;
pub use bind::fit;
pub use closed::{
    Closed, ClosedArg, ClosedContract, ClosedOp, ClosedScratch, Decided, Part, Preferred, close, close_key,
    preferred, tuned_names,
};
pub use exports::{as_sets, instances};
pub use host::{HostParam, Table, kernel_named, launch_name, parameters, rank_names};
pub(crate) use members::of_row;
pub use members::{Member, Values, candidates, is_listed, members, with_values};
pub use reads::{ArgUse, argument_uses};
pub(crate) use sets::set_text;
pub use sets::{LambdaRef, SetValue, parse_cargs, split_cargs, split_options};

/// An argument of a launch. Tuples and structs are given by their parts, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum HostArg {
    /// A number or bool of any type; it is converted to the type of the parameter if it fits.
    Scalar(Scalar),
    /// A tensor in device memory.
    Tensor {
        /// Its element type.
        dtype: DType,
        /// Its extents.
        shape: Vec<i64>,
        /// Its strides in elements.
        strides: Vec<i64>,
    },
    /// An optional argument that is not there.
    Absent,
}

/// The facts about a device that clauses and compile-time code may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// Multiprocessors, or threads of the CPU.
    pub sms: i64,
    /// Bytes of shared memory of one program.
    pub smem: i64,
    /// The target that kernels are compiled for.
    pub target: Target,
}

impl Default for Device {
    /// The CPU.
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Device { sms: i64::try_from(threads).unwrap_or(1), smem: CPU_SMEM.into(), target: Target::CPU }
    }
}

/// A workspace that the launcher provides as a further argument.
#[derive(Clone, Debug, PartialEq)]
pub struct ScratchPlan {
    /// The name of the pointer.
    pub name: String,
    /// The type of the pointee.
    pub elem: tk_tile::ElemType,
    /// How many elements.
    pub count: u64,
    /// Whether it is zero before the launch.
    pub zeroed: bool,
    /// Whether the kernel leaves it zero.
    pub restored: bool,
}

/// One launch.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The values of the compile-time parameters and which optional parameters are there.
    pub bindings: Bindings,
    /// The programs on each axis; with a zero among them nothing runs.
    pub grid: [u32; 3],
    /// `launch(..)` in the order of the source, with the values given by name.
    pub launch: Vec<(String, i64)>,
    /// The arguments, scalars in the types of their parameters, defaults filled in.
    pub args: Vec<HostArg>,
    /// Workspaces, which follow the arguments.
    pub scratch: Vec<ScratchPlan>,
    /// Pairs of arguments, as indices into `args`, that the kernel allows to reach the same memory: each pair once,
    /// the smaller index first.
    pub alias: Vec<(usize, usize)>,
    /// The values of `tune(key = ..)`; without a list of its own, the extents and integers of all arguments.
    pub key: Vec<i64>,
}

/// Why a launch is refused.
#[derive(Clone, Debug)]
pub struct LaunchError {
    /// One sentence; its place is in the kernel.
    pub diagnostic: Box<Diagnostic>,
}

impl std::fmt::Display for LaunchError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.diagnostic.code, self.diagnostic.message)
    }
}

impl std::error::Error for LaunchError {}

impl From<Box<Diagnostic>> for LaunchError {
    fn from(diagnostic: Box<Diagnostic>) -> Self {
        LaunchError { diagnostic }
    }
}

/// Decides what a launch on the CPU means.
pub fn plan(
    hir: &Hir,
    kernel: FnId,
    args: &[HostArg],
    sets: &[(String, SetValue)],
) -> Result<Plan, LaunchError> {
    plan_on(hir, kernel, args, sets, Device::default())
}

/// Decides what a launch on a device means.
pub fn plan_on(
    hir: &Hir,
    kernel: FnId,
    args: &[HostArg],
    sets: &[(String, SetValue)],
    device: Device,
) -> Result<Plan, LaunchError> {
    let open = OpenPlan::new(hir, kernel, args, sets, device)?;
    let launch = open.options(hir, kernel, &[])?;
    Ok(Plan { launch, ..open.plan })
}

/// A launch whose options (`warps`, `stages`, ..) can still be replaced: no other clause reads them, so launches that differ
/// in nothing else share the rest.
#[derive(Clone, Debug)]
pub struct OpenPlan {
    /// The launch with the options of the clause.
    plan: Plan,
    /// The places of these.
    places: Vec<Span>,
    /// Options that were given by name.
    given: Vec<(String, i64)>,
}

impl OpenPlan {
    /// Of a launch on a device.
    ///
    /// # Errors
    /// The launch is refused, whatever its options are.
    pub fn new(
        hir: &Hir,
        kernel: FnId,
        args: &[HostArg],
        sets: &[(String, SetValue)],
        device: Device,
    ) -> Result<OpenPlan, LaunchError> {
        let f = hir.func(kernel);
        if f.broken {
            let message = format!("kernel `{}` cannot be launched: it has errors", f.name);
            return Err(refuse(codes::CLAUSE, f.span, message).into());
        }
        let mut p = Planner {
            hir,
            f,
            bindings: Bindings::on(device.target),
            host: HostValues { locals: BTreeMap::new(), sms: device.sms, smem: device.smem },
            launch: vec![],
            slots: bind::slots(hir, f),
        };
        let args = p.complete(args)?;
        p.presence(&args)?;
        // The type of a function may follow from the other parameters and from the tensors.
        let (fns, values): (Vec<_>, Vec<_>) = sets.iter().partition(|(_, v)| v.is_function());
        p.apply_sets(&values)?;
        p.check_ranks(&args)?;
        p.infer(&args)?;
        // The ranks that follow from those of other arguments.
        p.check_ranks(&args)?;
        p.apply_sets(&fns)?;
        let args = p.host_values(args)?;
        let args = p.run_time_defaults(args, false)?;
        p.defaults()?;
        let args = p.run_time_defaults(args, true)?;
        p.check_params(&args)?;
        let args = p.convert(args)?;
        p.requirements()?;
        let grid = p.grid()?;
        let (launch, places) = p.launch_clause()?.into_iter().unzip();
        let scratch = p.scratch()?;
        let alias = p.alias();
        let key = p.key(&args)?;
        let plan = Plan { bindings: p.bindings, grid, launch, args, scratch, alias, key };
        Ok(OpenPlan { plan, places, given: p.launch })
    }

    /// The launch with the options of its clause: those of [`Plan::launch`] do not count yet.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The options of the launch with those that were given by name, and then these, in the place of those of the clause.
    ///
    /// # Errors
    /// One of them is no number, is too small, or does not fit the grid.
    pub fn options(
        &self,
        hir: &Hir,
        kernel: FnId,
        values: &[(String, SetValue)],
    ) -> Result<Vec<(String, i64)>, LaunchError> {
        let f = hir.func(kernel);
        let mut out = self.plan.launch.clone();
        let mut replace = |name: &str, value: i64| match out.iter_mut().find(|(n, _)| n == name) {
            Some((_, slot)) => *slot = value,
            None => out.push((name.to_string(), value)),
        };
        self.given.iter().for_each(|(name, value)| replace(name, *value));
        for (name, value) in values {
            replace(name, sets::option_value(f, name, value)?);
        }
        for (i, (name, v)) in out.iter().enumerate() {
            let least = least(name);
            if *v < least {
                let message = format!("`{name}` of kernel `{}` is {v}, but must be at least {least}", f.name);
                let place = self.places.get(i).copied().unwrap_or(f.span);
                return Err(refuse(codes::CLAUSE, place, message).into());
            }
        }
        let cluster = out.iter().find(|(name, _)| name == "cluster").map_or(1, |(_, n)| *n);
        clusters_divide_grid(hir, kernel, &self.plan.bindings, cluster)?;
        Ok(out)
    }
}

/// The least value of an option of a launch or of a loop.
fn least(option: &str) -> i64 {
    i64::from(matches!(option, "warps" | "stages" | "ctas" | "cluster" | "unroll" | "turns"))
}

/// The refusal of a value that is too small for an option of a launch or of a loop.
pub(crate) fn below_least(code: Code, option: &str, value: i128, span: Span) -> Option<Diagnostic> {
    let least = least(option);
    let message = || format!("`{option}` is {value}, but must be at least {least}");
    (value < i128::from(least)).then(|| Diagnostic::error(code, span, message(), format!("this is {value}")))
}

/// Checks that clusters of this many programs divide axis 2 of the grid of a specialization, which is known when it is
/// compiled. All launches of a shipped kernel then have whole clusters.
///
/// # Errors
/// The sentence about the clause that does not fit.
pub fn clusters_divide_grid(hir: &Hir, kernel: FnId, bindings: &Bindings, cluster: i64) -> EvalResult<()> {
    if cluster == 1 {
        return Ok(());
    }
    let f = hir.func(kernel);
    let clause = f.contract.launch.iter().find(|(n, _)| n == "cluster");
    cluster_fits(hir, f, bindings, (cluster.into(), clause.map_or(f.span, |(_, e)| e.span)))
}

/// The same of a number of programs that is more than 1, from this place.
pub(crate) fn cluster_fits(
    hir: &Hir,
    f: &HFn,
    bindings: &Bindings,
    (cluster, place): (i128, Span),
) -> EvalResult<()> {
    let name = &f.name;
    if ![2, 4, 8].contains(&cluster) {
        let message = format!("`cluster` of kernel `{name}` is {cluster}, but must be 1, 2, 4 or 8");
        return Err(refuse(codes::CLAUSE, place, message));
    }
    let Some(extent) = f.contract.grid.get(2) else {
        let message = format!("`cluster` of kernel `{name}` needs a grid of three axes: it divides the last");
        return Err(refuse(codes::CLAUSE, place, message));
    };
    let n = match Evaluator::new(hir, bindings).int(extent) {
        Ok(n) => n,
        // In the definition of a kernel parameters have no values yet.
        Err(_) if extent.konst => return Ok(()),
        Err(_) => {
            let message = format!(
                "`cluster` of kernel `{name}` needs a compile-time extent of the last axis of the grid"
            );
            return Err(refuse(codes::CLAUSE, extent.span, message));
        }
    };
    if n % cluster == 0 {
        return Ok(());
    }
    let message = format!(
        "`cluster` of kernel `{name}` is {cluster}, which does not divide the {n} programs of the last axis of the grid"
    );
    Err(refuse(codes::CLAUSE, extent.span, message))
}

/// A refusal whose place is in the kernel.
fn refuse(code: Code, span: Span, message: impl Into<String>) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(code, span, message, ""))
}

/// The state of planning one launch.
struct Planner<'h> {
    hir: &'h Hir,
    f: &'h HFn,
    bindings: Bindings,
    host: HostValues,
    /// Values of `launch` that were given by name.
    launch: Vec<(String, i64)>,
    slots: Rc<[bind::Slot<'h>]>,
}

impl Planner<'_> {
    fn eval<T>(&self, run: impl FnOnce(&mut Evaluator<'_>) -> EvalResult<T>) -> EvalResult<T> {
        let out = run(&mut Evaluator::new(self.hir, &self.bindings).with_host(&self.host));
        out.map_err(|mut d| {
            let values: Vec<String> = self
                .bindings
                .cvars
                .iter()
                .map(|(id, v)| format!("{} = {v}", self.hir.cvar(*id).name))
                .collect();
            if !values.is_empty() {
                d.notes.push(format!("in this launch of `{}`: {}", self.f.name, values.join(", ")));
            }
            d
        })
    }

    /// Evaluates the defaults of compile-time parameters that have no value yet, in order.
    fn defaults(&mut self) -> EvalResult<()> {
        for id in &self.f.cparams {
            if self.bindings.cvars.contains_key(id) {
                continue;
            }
            let c = self.hir.cvar(*id);
            let Some(default) = &c.default else {
                let message = format!(
                    "kernel `{}` needs a value for `{}`: it cannot be inferred from the arguments, give it by name{}",
                    self.f.name,
                    c.name,
                    self.or_default(c),
                );
                return Err(refuse(codes::NOT_STATIC_ARG, c.span, message));
            };
            let v = self.eval(|ev| ev.expr(default))?;
            if let (CKind::Int(d), CVal::Int(i)) = (&c.kind, &v)
                && let Some((lo, hi)) = d.int_range()
                && !(lo..=hi).contains(i)
            {
                let message = format!("the default of `{}` is {i}, which does not fit in `{d}`", c.name);
                return Err(refuse(codes::NOT_STATIC_ARG, default.span, message));
            }
            self.bindings.cvars.insert(*id, v);
        }
        Ok(())
    }

    /// The default that a parameter of the rows of `tune` may have: launches take it that nobody has tuned.
    fn or_default(&self, c: &CVar) -> String {
        let rows = self.f.contract.tune.iter().flat_map(|t| &t.rows);
        let mut values = rows.flat_map(|r| &r.0).filter(|(name, _)| *name == c.name).flat_map(|(_, v)| v);
        match values.next().map(|h| &h.kind) {
            Some(HKind::Int(n)) => {
                format!(", or a default: `{}: {} = {n}`", c.name, crate::show::ckind(self.hir, &c.kind))
            }
            Some(_) => ", or a default in the signature".to_string(),
            None => String::new(),
        }
    }

    /// Returns true if every optional that a condition reads is present.
    fn speaks(&self, r: &Requirement) -> bool {
        r.optionals.iter().all(|id| self.bindings.present.get(id) != Some(&false))
    }

    fn requirements(&self) -> EvalResult<()> {
        for r in self.f.contract.require.iter().filter(|r| self.speaks(r)) {
            if !self.eval(|ev| ev.condition(&r.cond))? {
                let parts = self.eval(|ev| Ok(ev.parts(&r.cond, self.f)))?;
                let values = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
                let message =
                    format!("kernel `{}` requires `{}`, which does not hold{values}", self.f.name, r.text);
                let d = Diagnostic::error(codes::REQUIRE, r.cond.span, message, "required here");
                return Err(Box::new(d));
            }
        }
        // `prefer` only chooses between binaries, but its condition must have a value.
        for r in self.f.contract.prefer.iter().flatten().filter(|r| self.speaks(r)) {
            self.eval(|ev| ev.condition(&r.cond))?;
        }
        Ok(())
    }

    fn grid(&self) -> EvalResult<[u32; 3]> {
        let mut out = [1u32; 3];
        let mut total: u64 = 1;
        for (axis, (e, slot)) in self.f.contract.grid.iter().zip(&mut out).enumerate() {
            let n = self.eval(|ev| ev.int(e))?;
            let name = &self.f.name;
            // `program_id` is an i32.
            *slot = match u32::try_from(n) {
                Ok(v) if n <= i128::from(i32::MAX) => v,
                Ok(_) | Err(_) => {
                    let why = if n < 0 { "which is negative" } else { "the limit is 2147483647" };
                    let message =
                        format!("the grid of kernel `{name}` has {n} programs on axis {axis}, {why}");
                    return Err(refuse(codes::GRID, e.span, message));
                }
            };
            total = match total.checked_mul(u64::from(*slot)).filter(|t| i64::try_from(*t).is_ok()) {
                Some(t) => t,
                None => {
                    let message = format!("the grid of kernel `{name}` has more than 2^63 programs");
                    return Err(refuse(codes::GRID, e.span, message));
                }
            };
        }
        Ok(out)
    }

    /// The options of the launch clause, and their places.
    fn launch_clause(&self) -> EvalResult<Vec<((String, i64), Span)>> {
        let mut out = vec![];
        for (name, e) in &self.f.contract.launch {
            let v = match self.eval(|ev| ev.expr(e))? {
                CVal::Int(i) => i64::try_from(i).unwrap_or(i64::MAX),
                CVal::Bool(b) => i64::from(b),
                other => {
                    let message = format!("`{name}` of kernel `{}` is {other}, not a number", self.f.name);
                    return Err(refuse(codes::CLAUSE, e.span, message));
                }
            };
            out.push(((name.clone(), v), e.span));
        }
        Ok(out)
    }

    /// What the choice of a tuner depends on.
    fn key(&self, args: &[HostArg]) -> EvalResult<Vec<i64>> {
        let near = |n: i128| i64::try_from(n).unwrap_or(if n < 0 { i64::MIN } else { i64::MAX });
        if let Some(tune) = &self.f.contract.tune {
            return tune.key.iter().map(|e| self.eval(|ev| ev.int(e)).map(near)).collect();
        }
        let mut key = vec![];
        for arg in args {
            match arg {
                HostArg::Tensor { shape, .. } => key.extend(shape),
                HostArg::Scalar(s) if !s.dtype().is_float() => key.extend(s.as_int().map(near)),
                HostArg::Scalar(_) | HostArg::Absent => {}
            }
        }
        Ok(key)
    }

    fn scratch(&self) -> EvalResult<Vec<ScratchPlan>> {
        let mut out = vec![];
        for s in &self.f.contract.scratch {
            let Some(local) = self.f.locals.get(s.local.0 as usize) else { continue };
            let n = self.eval(|ev| ev.int(&s.count))?;
            let count = u64::try_from(n).map_err(|_| {
                let message = format!(
                    "`scratch` of kernel `{}` requests {n} elements of `{}`",
                    self.f.name, local.name
                );
                refuse(codes::CLAUSE, s.count.span, message)
            })?;
            let ty = self.eval(|ev| ev.ty(&local.ty, local.span))?;
            let crate::eval::CTy::One(tk_tile::Type::Tile {
                elem: tk_tile::ElemType::Ptr { pointee, .. },
                ..
            }) = ty
            else {
                return Err(refuse(codes::CLAUSE, local.span, format!("`{}` is no pointer", local.name)));
            };
            let (zeroed, restored) = (s.zeroed, s.restored);
            out.push(ScratchPlan { name: local.name.clone(), elem: *pointee, count, zeroed, restored });
        }
        Ok(out)
    }
}
