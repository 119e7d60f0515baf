//! Owns the order of the machine-aware passes.
//!
//! May assume a verified tile module. Guarantees a verified scheduled kernel, for which everything that LLVM emission
//! needs is an instruction, a layout or a buffer; or the name of the pass that broke it.

use std::fmt;

use tk_tile::passes::{cse, dce, inline};
use tk_tile::{Func, FuncId, FuncKind, Module, TileModule, pipeline};

use crate::ir::kernel::{Kernel, Setting, Shortage};
use crate::passes::Pass;
use crate::passes::assign_layouts::assign;
use crate::passes::{
    allocate_shared, chunk_loads, cluster, decompose_dot_scaled, form_tensor_accesses, hoist_shared_stores,
    insert_barriers, insert_proxy_fences, lower_to_shared, reallocate_registers, software_pipeline,
    split_dots, split_stores, tma_stores, warp_specialize,
};
use crate::verify::{LaidOutModule, ScheduledModule, VerifyError};

/// The passes in front of layouts, for modules with something that no machine has: functions that the program kept out of
/// their callers, since there is no stack of tiles, and scaled products.
pub const WHOLE: &[tk_tile::passes::Pass] = &[
    inline::PASS,
    // In front of `cse`: two products may share a scaled factor.
    decompose_dot_scaled::PASS,
    // Behind inlining: what a caller and its callee compute twice shows then.
    cse::PASS,
    // Last: it takes away what the others left without users.
    dce::PASS,
];

/// The name of the assignment of layouts, between the two lists: it makes a kernel out of a module.
pub const ASSIGN: &str = "assign";

/// The passes that schedule, in order.
pub const SCHEDULE: &[Pass] = &[
    // First: it decides what goes through shared memory.
    lower_to_shared::PASS,
    // Behind it, since it looks for what goes straight to shared memory; in front of `rings`, which takes what is left.
    warp_specialize::PASS,
    // Behind it, since it looks for what goes straight from device memory to shared memory.
    software_pipeline::PASS,
    // Behind both, which look for who writes to device memory.
    tma_stores::PASS,
    // Behind those who look for loads in front of the stores that take them.
    hoist_shared_stores::PASS,
    // Behind everything that chooses instructions; in front of those who count the registers of a launch.
    cluster::PASS,
    // Behind `rings`, which copies what it can without registers.
    chunk_loads::PASS,
    // Behind everything that makes buffers or moves accesses, since it looks at how long buffers are alive.
    allocate_shared::PASS,
    // Who has to wait depends on which buffers share places.
    insert_barriers::PASS,
    // Behind it, since it adds to writes that others wait for.
    insert_proxy_fences::PASS,
    // Behind those who look at whole tiles, whose barriers are enough for pieces.
    split_stores::PASS,
    // Last: it looks at what lanes hold of what is left.
    reallocate_registers::PASS,
];

/// What a compilation goes through.
#[derive(Clone, Debug)]
pub struct Stages {
    /// Layouts assigned, conversions explicit.
    pub laid_out: LaidOutModule,
    /// Shared memory and barriers explicit.
    pub scheduled: ScheduledModule,
}

/// Why there is no scheduled kernel: a mistake of the compiler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PipelineError {
    /// The module has no kernel of this name.
    NoKernel(String),
    /// A pass broke the tile IR.
    Tile(pipeline::PassError),
    /// A pass broke the kernel.
    Pass {
        /// The name of the pass; of the last one where only the end is verified.
        pass: &'static str,
        /// What does not hold.
        error: VerifyError,
    },
}

impl fmt::Display for PipelineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PipelineError::NoKernel(name) => write!(f, "there is no kernel `{name}`"),
            PipelineError::Tile(error) => write!(f, "{error}"),
            PipelineError::Pass { pass, error } => write!(f, "after the pass `{pass}`: {error}"),
        }
    }
}

impl std::error::Error for PipelineError {}

/// What is called with the name of each pass and the kernel behind it.
pub type Observer<'a> = &'a mut dyn FnMut(&'static str, &Kernel);

/// Lays out and schedules the kernel with this name. Debug builds verify after each pass; release builds at the end.
///
/// # Errors
/// That there is no such kernel, or which pass broke it and what does not hold.
pub fn run(
    module: &TileModule,
    kernel: &str,
    setting: Setting,
    mut observer: Option<Observer<'_>>,
) -> Result<Stages, PipelineError> {
    let whole = whole(module)?;
    let module = whole.as_ref().unwrap_or(module);
    let boxed = boxed(module, kernel, &setting)?;
    let module = boxed.as_ref().unwrap_or(module);
    let (divided, shortages) = divided(module, kernel, &setting)?;
    let module = divided.as_ref().unwrap_or(module);
    let mut laid_out = lay_out(module, kernel, setting)?;
    laid_out.shortages = shortages;
    let laid_out =
        LaidOutModule::new(laid_out).map_err(|error| PipelineError::Pass { pass: ASSIGN, error })?;
    if let Some(see) = &mut observer {
        see(ASSIGN, &laid_out);
    }
    let mut scheduled = laid_out.clone().into_inner();
    let mut last = ASSIGN;
    for pass in SCHEDULE {
        (pass.run)(&mut scheduled);
        last = pass.name;
        if let Some(see) = &mut observer {
            see(pass.name, &scheduled);
        }
        if cfg!(debug_assertions) {
            (pass.verify)(&scheduled).map_err(|error| PipelineError::Pass { pass: last, error })?;
        }
    }
    let scheduled =
        ScheduledModule::new(scheduled).map_err(|error| PipelineError::Pass { pass: last, error })?;
    Ok(Stages { laid_out, scheduled })
}

/// The kernel with layouts, not verified.
fn lay_out(module: &Module, kernel: &str, setting: Setting) -> Result<Kernel, PipelineError> {
    let mut kernels = module.funcs.iter().filter(|(_, f)| f.kind == FuncKind::Kernel);
    match kernels.find(|(_, f)| f.name == kernel) {
        Some((_, func)) => Ok(assign(module, func, setting)),
        None => Err(PipelineError::NoKernel(kernel.into())),
    }
}

/// The module with boxes for masked pointers; `None` if there are none.
fn boxed(module: &TileModule, kernel: &str, setting: &Setting) -> Result<Option<TileModule>, PipelineError> {
    let named = |f: &&(FuncId, &Func)| f.1.kind == FuncKind::Kernel && f.1.name == kernel;
    let Some((id, _)) = module.funcs.iter().find(|f| named(&f)) else { return Ok(None) };
    let found = form_tensor_accesses::find(module, id, setting);
    if found.is_empty() {
        return Ok(None);
    }
    let mut module = module.clone().into_inner();
    form_tensor_accesses::apply(&mut module, id, &found);
    // Pointers that loops only carried for these loads.
    (dce::PASS.run)(&mut module);
    let broken = |error| PipelineError::Tile(pipeline::PassError { pass: "boxes", error });
    TileModule::new(module).map(Some).map_err(broken)
}

/// The module with products in chunks, and what was divided; `None` if nothing was.
fn divided(
    module: &TileModule,
    kernel: &str,
    setting: &Setting,
) -> Result<(Option<TileModule>, Vec<Shortage>), PipelineError> {
    let named = |f: &&(FuncId, &Func)| f.1.kind == FuncKind::Kernel && f.1.name == kernel;
    let Some((id, _)) = module.funcs.iter().find(|f| named(&f)) else { return Ok((None, vec![])) };
    if setting.operands.most_k == u32::MAX {
        return Ok((None, vec![]));
    }
    let mut module = module.clone().into_inner();
    let shortages = split_dots::apply(&mut module, id, setting.operands.most_k);
    // The loads of whole operands.
    (dce::PASS.run)(&mut module);
    let broken = |error| PipelineError::Tile(pipeline::PassError { pass: "split_dots", error });
    Ok((Some(TileModule::new(module).map_err(broken)?), shortages))
}

/// The module behind [`WHOLE`]; `None` if it has nothing for them.
fn whole(module: &TileModule) -> Result<Option<TileModule>, PipelineError> {
    if !decompose_dot_scaled::is_needed(module)
        && module.funcs.iter().all(|(_, f)| f.kind != FuncKind::NoInline)
    {
        return Ok(None);
    }
    let mut module = module.clone().into_inner();
    let ids: Vec<_> = module.funcs.iter().map(|(id, _)| id).collect();
    for id in ids {
        let func = &mut module.funcs[id];
        if func.kind == FuncKind::NoInline {
            func.kind = FuncKind::Fn;
        }
    }
    let verified = TileModule::new(module)
        .map_err(|error| PipelineError::Tile(pipeline::PassError { pass: "noinline", error }))?;
    pipeline::run_passes(WHOLE, verified, None).map(Some).map_err(PipelineError::Tile)
}
