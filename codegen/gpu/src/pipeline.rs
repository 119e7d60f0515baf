//! Runs the passes from tile IR to a scheduled kernel.
//!
//! Requires a verified tile module. Guarantees a verified scheduled kernel, in which everything that LLVM emission
//! needs is an instruction, a layout or a buffer; or the name of the pass that failed.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tk_tile::{FuncId, FuncKind, Module, TileModule};

use crate::ir::kernel::{CompileOptions, Kernel};
use crate::passes::{
    Pass, Run, TileKernel, allocate_shared, assign_layouts, chunk_loads, cluster, convert_ifs,
    decompose_dot_scaled, defer_waits, expand_gathers, form_tensor_accesses, hoist_shared_stores,
    inline_functions, insert_barriers, insert_proxy_fences, insert_store_waits, lower_to_shared,
    overlap_products, permute_views, reallocate_registers, rematerialize, select_instructions,
    software_pipeline, split_dots, split_rows, split_scans, split_stores, take_turns, tma_reduce, tma_stores,
    trim_loops, warp_specialize,
};
use crate::verify::{GpuVerifyError, LaidOutModule, ScheduledModule};

/// The passes, in order. Their required and established properties determine their positions.
pub const PASSES: &[Pass] = &[
    inline_functions::PASS,
    convert_ifs::PASS,
    decompose_dot_scaled::PASS,
    split_scans::PASS,
    expand_gathers::PASS,
    form_tensor_accesses::PASS,
    permute_views::PASS,
    split_dots::PASS,
    take_turns::PASS,
    split_rows::PASS,
    trim_loops::PASS,
    assign_layouts::PASS,
    lower_to_shared::PASS,
    tma_reduce::PASS,
    warp_specialize::PASS,
    overlap_products::PASS,
    software_pipeline::PASS,
    defer_waits::PASS,
    tma_stores::PASS,
    hoist_shared_stores::PASS,
    insert_store_waits::PASS,
    cluster::PASS,
    chunk_loads::PASS,
    allocate_shared::PASS,
    insert_barriers::PASS,
    insert_proxy_fences::PASS,
    rematerialize::PASS,
    split_stores::PASS,
    reallocate_registers::PASS,
    select_instructions::PASS,
];

/// The stages of a compilation.
#[derive(Clone, Debug)]
pub struct Stages {
    /// Layouts assigned, conversions explicit.
    pub laid_out: LaidOutModule,
    /// Shared memory and barriers explicit.
    pub scheduled: ScheduledModule,
}

/// The failure to produce a scheduled kernel: a bug of the compiler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PipelineError {
    /// The module has no kernel of this name.
    NoKernel(String),
    /// A pass broke the tile IR.
    Tile {
        /// The name of the pass.
        pass: &'static str,
        /// The violation.
        error: tk_tile::verify::VerifyError,
    },
    /// A pass broke the kernel.
    Kernel {
        /// The name of the pass.
        pass: &'static str,
        /// The violation.
        error: GpuVerifyError,
    },
    /// A pass panicked.
    Panic {
        /// The name of the pass.
        pass: &'static str,
        /// The message of the panic.
        message: String,
    },
}

impl fmt::Display for PipelineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PipelineError::NoKernel(name) => write!(f, "there is no kernel `{name}`"),
            PipelineError::Tile { pass, error } => write!(f, "after the pass `{pass}`: {error}"),
            PipelineError::Kernel { pass, error } => write!(f, "after the pass `{pass}`: {error}"),
            PipelineError::Panic { pass, message } => write!(f, "in the pass `{pass}`: {message}"),
        }
    }
}

impl std::error::Error for PipelineError {}

/// The kernel after a pass; printed, its text form.
#[derive(Clone, Copy, Debug)]
pub enum Snapshot<'a> {
    /// Before layouts.
    Tile(&'a Module),
    /// With layouts.
    Kernel(&'a Kernel),
}

impl fmt::Display for Snapshot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Snapshot::Tile(module) => write!(f, "{module}"),
            Snapshot::Kernel(kernel) => write!(f, "{kernel}"),
        }
    }
}

/// Called after each pass.
pub type Observer<'a> = &'a mut dyn FnMut(&'static Pass, Snapshot<'_>);

/// Lays out and schedules the kernel with this name. Debug builds verify after each pass. Release builds verify
/// laid-out and scheduled kernels, and look for the pass only if one of these is wrong.
///
/// # Errors
/// The module has no such kernel, or a pass failed: which one, and the violation.
pub fn run(
    module: &TileModule,
    kernel: &str,
    options: CompileOptions,
    observer: Observer<'_>,
) -> Result<Stages, PipelineError> {
    let mut kernels = module.funcs.iter().filter(|(_, f)| f.kind == FuncKind::Kernel);
    let Some((id, _)) = kernels.find(|(_, f)| f.name == kernel) else {
        return Err(PipelineError::NoKernel(kernel.into()));
    };
    let each = cfg!(debug_assertions);
    run_passes(module, id, options.clone(), each, observer).or_else(|error| match error {
        PipelineError::Kernel { .. } if !each => run_passes(module, id, options, true, &mut |_, _| {}),
        _ => Err(error),
    })
}

/// Tile IR first, then a kernel with layouts.
enum State {
    Tile(TileKernel),
    Kernel(Kernel),
}

fn run_passes(
    module: &TileModule,
    kernel: FuncId,
    options: CompileOptions,
    each: bool,
    observer: Observer<'_>,
) -> Result<Stages, PipelineError> {
    let name = module.funcs[kernel].name.clone();
    let module = Module::clone(module);
    let mut state =
        State::Tile(TileKernel { module, kernel, name, options, shortages: vec![], remarks: vec![] });
    let mut laid_out = None;
    let mut last = "";
    for pass in PASSES {
        last = pass.name;
        state = caught(last, || step(pass, state))?;
        match (&state, pass.run) {
            (State::Tile(tile), _) => observer(pass, Snapshot::Tile(&tile.module)),
            (State::Kernel(kernel), _) => observer(pass, Snapshot::Kernel(kernel)),
        }
        match (&state, pass.run) {
            (State::Tile(tile), _) if each => tk_tile::verify::verify_machine(&tile.module)
                .map_err(|error| PipelineError::Tile { pass: last, error })?,
            (State::Kernel(kernel), Run::AssignLayouts(_)) => {
                let verified = LaidOutModule::new(kernel.clone());
                laid_out = Some(verified.map_err(|error| PipelineError::Kernel { pass: last, error })?);
            }
            (State::Kernel(kernel), Run::Kernel { verify, .. }) if each => {
                verify(kernel).map_err(|error| PipelineError::Kernel { pass: last, error })?;
            }
            _ => {}
        }
    }
    let (State::Kernel(kernel), Some(laid_out)) = (state, laid_out) else {
        return Err(PipelineError::Panic { pass: last, message: "no pass assigned layouts".into() });
    };
    let scheduled =
        ScheduledModule::new(kernel).map_err(|error| PipelineError::Kernel { pass: last, error })?;
    Ok(Stages { laid_out, scheduled })
}

/// Runs one pass. A pass for the other half of the pipeline changes nothing.
fn step(pass: &Pass, mut state: State) -> State {
    match (pass.run, &mut state) {
        (Run::Tile { run, cleanup }, State::Tile(tile)) => {
            if run(tile) {
                cleanup.iter().for_each(|p| (p.run)(&mut tile.module));
                tile.find();
            }
        }
        (Run::Kernel { run, .. }, State::Kernel(kernel)) => run(kernel),
        (Run::AssignLayouts(run), State::Tile(_)) => {
            if let State::Tile(tile) = state {
                return State::Kernel(run(tile));
            }
        }
        (Run::Tile { .. }, State::Kernel(_)) | (Run::Kernel { .. } | Run::AssignLayouts(_), _) => {}
    }
    state
}

/// The result of a pass; if it panics, the error that names it.
fn caught<T>(pass: &'static str, work: impl FnOnce() -> T) -> Result<T, PipelineError> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let message = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked").to_string();
        PipelineError::Panic { pass, message }
    })
}
