//! The predicted time of a planned launch: [`predict`] asks the cost model of a compiler, and needs no device.

use tk_sema::contract::{HostArg, Plan};
use tk_tile::Type;
use tk_tile::frequency::LaunchArg;
use tk_tile::traffic::Accesses;

use crate::choice::Place;
use crate::compile::{ArgFacts, Compile, CompileOptions, Estimate, Launch, ParamKind};
use crate::device::LaunchOptions;
use crate::session::Compiled;

/// Predicts the time of a launch on a device, with addresses that are aligned as all that a driver allocates.
pub fn predict(
    compiler: &dyn Compile,
    compiled: &Compiled,
    plan: &Plan,
    place: &Place,
    by_place: bool,
) -> Option<Estimate> {
    let accesses = Accesses::new(&compiled.module, compiled.entry);
    let open = OpenLaunch::new(compiled, &accesses, plan)?;
    let launch = Launch { by_place, ..open.launch(place) };
    compiler.estimate(compiled, &open.options(&plan.launch, place), &launch)
}

/// What a cost model is asked about launches of a specialization that differ in nothing but their options.
#[derive(Debug)]
pub(crate) struct OpenLaunch {
    facts: Vec<ArgFacts>,
    args: Vec<LaunchArg>,
    grid: [u32; 3],
    bytes: f64,
}

impl OpenLaunch {
    /// Of a specialization with these accesses; `None` if the arguments do not fit it.
    pub fn new(compiled: &Compiled, accesses: &Accesses, plan: &Plan) -> Option<OpenLaunch> {
        let (facts, args) = (facts_of(compiled, plan)?, launch_args(plan));
        let bytes = accesses.traffic(&compiled.module, &args, plan.grid).bytes();
        Some(OpenLaunch { facts, args, grid: plan.grid, bytes })
    }

    /// The launch on a device.
    pub fn launch<'a>(&'a self, place: &'a Place) -> Launch<'a> {
        let sms = u32::try_from(place.facts.sms).unwrap_or(1);
        let OpenLaunch { args, grid, bytes, .. } = self;
        Launch { args, grid: *grid, bytes: *bytes, gpu: &place.name, sms, by_place: false }
    }

    /// What the kernel is compiled for with these options of the launch.
    pub fn options(&self, options: &[(String, i64)], place: &Place) -> CompileOptions {
        let LaunchOptions { warps, ctas, cluster, stages, max_regs, occupancy, .. } =
            LaunchOptions::of(options);
        let (target, facts) = (place.target.clone(), self.facts.clone());
        CompileOptions { target, warps, ctas, cluster, max_regs, occupancy, stages, facts }
    }
}

/// The facts about the arguments of a launch, workspaces included.
fn facts_of(compiled: &Compiled, plan: &Plan) -> Option<Vec<ArgFacts>> {
    let address = ArgFacts::of_address(0);
    let func = compiled.module.funcs.get(compiled.entry)?;
    let mut types = func.blocks.get(func.body)?.args.iter().map(|v| compiled.module.types.get(func.ty(*v)));
    let mut facts = vec![];
    for arg in plan.args.iter().filter(|a| **a != HostArg::Absent) {
        match (types.next()?, arg) {
            (Type::View { .. }, HostArg::Tensor { shape, strides, .. }) => {
                facts.push(address);
                facts.extend(shape.iter().chain(strides).map(|n| ArgFacts::of_int(*n)));
            }
            (_, HostArg::Scalar(s)) => facts.push(ArgFacts::of(ParamKind::Scalar(s.dtype()), s.bits())),
            // A tensor that is passed as a pointer has neither extents nor strides.
            (_, HostArg::Tensor { .. } | HostArg::Absent) => facts.push(address),
        }
    }
    facts.extend(plan.scratch.iter().map(|_| address));
    Some(facts)
}

/// The arguments of a launch, one for each parameter of the function, workspaces included.
pub fn launch_args(plan: &Plan) -> Vec<LaunchArg> {
    let arg = |arg: &HostArg| match arg {
        HostArg::Absent => None,
        HostArg::Scalar(s) => Some(LaunchArg::Scalar(*s)),
        HostArg::Tensor { shape, strides, .. } => Some(LaunchArg::Tensor(shape.clone(), strides.clone())),
    };
    let scratch = plan.scratch.iter().map(|s| {
        let count = i64::try_from(s.count).unwrap_or(i64::MAX);
        LaunchArg::Tensor(vec![count], vec![1])
    });
    plan.args.iter().filter_map(arg).chain(scratch).collect()
}
