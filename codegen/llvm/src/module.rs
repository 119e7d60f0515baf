//! LLVM modules: their code generators, the passes that LLVM runs on them, and code of the host for the simulated
//! target. Those for GPUs are in [`crate::gpu`].
//!
//! Requires a scheduled kernel. LLVM aborts the process on some errors, so a module is verified before any pass runs on
//! it; code is generated once from each module.

use std::ffi::CStr;

use inkwell::OptimizationLevel;
use inkwell::context::Context;
use inkwell::execution_engine::ExecutionEngine;
use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::TargetMachine;
use inkwell::values::InstructionValue;
use tk_gpu::Kernel;
use tk_gpu::ir::tensor_map::{TensorMap, maps};

use crate::emit::{Res, Slot, Stop, bug, emit, slots};
use crate::fatal::contained;
use crate::processor::Processor;
use crate::sim::names::names;
use crate::target::sim::{Sim, Tables};

/// The symbol of a kernel, in a form that assemblers accept.
pub fn symbol(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let mut out: String = name.chars().map(plain).collect();
    while out.contains("__") {
        out = out.replace("__", "_");
    }
    let out = out.trim_matches('_');
    if out.starts_with(|c: char| c.is_ascii_digit()) || out.is_empty() {
        format!("k_{out}")
    } else {
        out.to_string()
    }
}

/// Prevents LLVM from unrolling a loop: its body is as long as the tile is large.
pub fn keep_rolled(context: &Context, back: InstructionValue<'_>) {
    let name = context.metadata_string("llvm.loop.unroll.disable");
    let option = context.metadata_node(&[name.into()]);
    // The first operand of the node of a loop is the node itself; LLVM also accepts a placeholder.
    let own = context.metadata_node(&[context.metadata_string("loop").into(), option.into()]);
    let _ = back.set_metadata(own, context.get_kind_id("llvm.loop"));
}

/// The passes that LLVM runs on a module for a GPU. Loops, common subexpressions and dead code of tiles are done already, so few
/// passes are left; a full `O2` takes twice as long for the same registers.
pub const PASSES: &str = "always-inline,function(sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,gvn,\
    loop-mssa(licm),instcombine<no-verify-fixpoint>,dse,adce,simplifycfg)";

/// The passes for the host, which only make less code to generate: code runs once or a few times, and most of its time is in
/// calls of the simulator.
const HOST_PASSES: &str = "always-inline,function(sroa,early-cse,instsimplify,simplifycfg,dce)";

/// The additional passes for a module with more instructions than [`LONG`]. Sums get their constants last, as all sums
/// of addresses should have them for `NaryReassociate`, which NVPTX and AMDGPU run before instruction selection: it
/// goes through the function once more for each sum that it changes (`findClosestMatchingDominator` drops the
/// expression that it found), so that 4,000 unrolled stores take 30 s without this.
const LONG_PASSES: &str = "function(reassociate,gvn,dce)";

/// Instructions of the longest module whose sums remain as emitted. The kernels of the library have up to a few
/// thousand.
const LONG: usize = 10_000;

/// The instructions of a module.
fn instructions(module: &Module<'_>) -> usize {
    let blocks = module.get_functions().flat_map(|f| f.get_basic_block_iter());
    blocks.map(|b| b.get_instructions().count()).sum()
}

pub(crate) fn optimise(module: &Module<'_>, machine: &TargetMachine, passes: &str) -> Res<()> {
    module.verify().map_err(|e| Stop::Bug(format!("LLVM refuses the module: {e}")))?;
    let run = |passes: &str| {
        let done = module.run_passes(passes, machine, PassBuilderOptions::create());
        done.map_err(|e| Stop::Bug(e.to_string()))
    };
    run(passes)?;
    if instructions(module) > LONG { run(LONG_PASSES) } else { Ok(()) }
}

/// A kernel as a function of the host.
pub struct Hosted {
    /// The function that receives its context and arguments by `extern "C"`: see [`crate::sim`].
    pub entry: crate::sim::KernelFn,
    /// The parameters in order.
    pub params: Vec<Slot>,
    /// The tensor maps of the launch: addresses of [`crate::sim::TensorMap`] are the last arguments.
    pub maps: Vec<TensorMap>,
    /// The tables that calls index.
    pub tables: Tables,
    /// Keeps the code alive; dropped before the context that it belongs to.
    _engine: ExecutionEngine<'static>,
}

// SAFETY: the code is immutable once generated, and LLVM's engine is only dropped.
unsafe impl Send for Hosted {}
// SAFETY: as above; only the entry is accessible through a shared reference.
unsafe impl Sync for Hosted {}

/// Checks that every symbol that the code calls was found; its addresses are zero otherwise.
fn linked(engine: &ExecutionEngine<'_>) -> Res<()> {
    let mut text = std::ptr::null_mut();
    // SAFETY: the engine is alive, and `text` may be written.
    let failed =
        unsafe { llvm_sys::execution_engine::LLVMExecutionEngineGetErrMsg(engine.as_mut_ptr(), &mut text) };
    if failed == 0 {
        return Ok(());
    }
    // SAFETY: a zero-terminated string, or null.
    let what = if text.is_null() {
        String::new()
    } else {
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    };
    bug(format!("the code of the host is not complete: {what}"))
}

/// Compiles a kernel for the simulated target.
pub fn hosted(kernel: &Kernel) -> Res<Hosted> {
    contained(|| generate(kernel)).unwrap_or_else(|gave_up| Err(Stop::Refused(gave_up)))
}

fn generate(kernel: &Kernel) -> Res<Hosted> {
    // The engine borrows the context for as long as the code lives: a compiled kernel lives as long as its session, and
    // the few kilobytes of a context are leaked.
    let context: &'static Context = Box::leak(Box::new(Context::create()));
    let symbol = symbol(&kernel.func().name);
    let module = context.create_module(&symbol);
    let machine = Processor::host()?.machine()?;
    module.set_triple(&machine.get_triple());
    module.set_data_layout(&machine.get_target_data().get_data_layout());
    let pointer = context.ptr_type(inkwell::AddressSpace::default());
    let function = module.add_function(
        &symbol,
        context.void_type().fn_type(&[pointer.into(), pointer.into()], false),
        None,
    );
    let builder = context.create_builder();
    builder.position_at_end(context.append_basic_block(function, "entry"));
    let sim = Sim::default();
    emit(context, &builder, &module, kernel, &sim, function, None)?;
    optimise(&module, &machine, HOST_PASSES)?;
    // With the register allocator for fast code, tests took twice as long, three quarters of it in LLVM.
    let engine =
        module.create_jit_execution_engine(OptimizationLevel::None).map_err(|e| Stop::Bug(e.to_string()))?;
    for (name, address) in names() {
        let unknown = || module.add_function(name, context.void_type().fn_type(&[], false), None);
        engine.add_global_mapping(&module.get_function(name).unwrap_or_else(unknown), address);
    }
    // Code generation adds calls of these, so they are declared here, used or not.
    for (name, long, address) in crate::sim::library() {
        let ty = if long { context.f64_type() } else { context.f32_type() };
        let f = module.add_function(name, context.f32_type().fn_type(&[ty.into()], false), None);
        engine.add_global_mapping(&f, address);
    }
    let address = engine.get_function_address(&symbol).map_err(|e| Stop::Bug(e.to_string()))?;
    linked(&engine)?;
    // SAFETY: the function has the signature of `sim::Kernel`, and the engine keeps its code alive.
    let entry = unsafe { std::mem::transmute::<usize, crate::sim::KernelFn>(address) };
    Ok(Hosted {
        entry,
        params: slots(kernel),
        maps: maps(kernel),
        tables: sim.into_tables(),
        _engine: engine,
    })
}
