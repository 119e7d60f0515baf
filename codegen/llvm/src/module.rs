//! Owns LLVM modules: making one for a kernel, optimising it, and what becomes of it: text for an assembler, or code of
//! the host for the simulated target.
//!
//! May assume a scheduled kernel. LLVM ends the process on some mistakes, so a module is verified before anything runs on
//! it; code is generated once from each module.

use std::ffi::CStr;

use inkwell::OptimizationLevel;
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::context::Context;
use inkwell::execution_engine::ExecutionEngine;
use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{
    CodeModel, FileType, InitializationConfig, RelocMode, Target, TargetMachine, TargetTriple,
};
use inkwell::types::{AnyType, BasicMetadataTypeEnum};
use inkwell::values::InstructionValue;
use tk_layout::Kernel;
use tk_layout::channels::maps::{TensorMap, maps};
use tk_ops::{DType, MachineOp, Op};
use tk_tile::message::{Kind, Message};
use tk_tile::walk;

use crate::emit::value::word;
use crate::emit::{Res, Slot, Stop, bug, emit, first_loc, slots};
use crate::lines::{LineTable, Lines};
use crate::sim::names::names;
use crate::target::nvptx::{Needs, Nvptx};
use crate::target::sim::{Sim, Tables};

/// LLVM's number of the calling convention of PTX kernels.
const PTX_KERNEL: u32 = 71;

/// Bytes of a tensor map and where it may begin: `CUtensorMap` of `cuda.h`.
pub const MAP_BYTES: u32 = 128;
const MAP_ALIGN: u32 = 64;

/// A kernel as text.
#[derive(Clone, Debug)]
pub struct Text {
    /// The symbol.
    pub symbol: String,
    /// The parameters in order, without the three numbers of programs that follow them, and without the address of
    /// control memory that comes last if the kernel has some.
    pub params: Vec<Slot>,
    /// What the launch describes to the copy engine; the descriptions are the last parameters.
    pub maps: Vec<TensorMap>,
    /// What the kernel may say.
    pub messages: Vec<Message>,
    /// Whether all programs of a launch meet.
    pub meets: bool,
    /// LLVM IR, optimised.
    pub llvm: String,
    /// What the assembler reads.
    pub asm: String,
}

/// The symbol of a kernel: what an assembler takes.
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

/// Keeps LLVM from unrolling a loop: its body is as long as the tile is large.
pub fn keep_rolled(context: &Context, back: InstructionValue<'_>) {
    let name = context.metadata_string("llvm.loop.unroll.disable");
    let option = context.metadata_node(&[name.into()]);
    // The first entry of the node of a loop is the node itself; LLVM also takes one that stands for nothing else.
    let own = context.metadata_node(&[context.metadata_string("loop").into(), option.into()]);
    let _ = back.set_metadata(own, context.get_kind_id("llvm.loop"));
}

/// Whether a kernel multiplies matrices of 8-bit floats by an instruction.
fn multiplies_f8(kernel: &Kernel) -> bool {
    let func = kernel.func();
    walk::insts(func).into_iter().map(|i| &func.insts[i]).any(|i| {
        let mut elems = i.attrs.str("elem").unwrap_or("").split(' ').filter_map(DType::parse);
        i.op == Op::Machine(MachineOp::Mma) && elems.any(DType::is_f8)
    })
}

/// The machine that generates code for a kernel.
fn machine(kernel: &Kernel) -> Res<TargetMachine> {
    let spec = kernel.setting.spec;
    let (triple, cpu, features) = match spec.name {
        name if name.starts_with("sm_") => {
            Target::initialize_nvptx(&InitializationConfig::default());
            // The oldest version that knows the target, and it has all that is emitted (`ptxas` refuses what it lacks): an
            // older assembler and driver take it than what LLVM would choose.
            let features = match name {
                "sm_90a" if multiplies_f8(kernel) => "+ptx84",
                "sm_90a" => "+ptx80",
                _ => "+ptx70",
            };
            ("nvptx64-nvidia-cuda".to_string(), name.to_string(), features.to_string())
        }
        _ => {
            Target::initialize_native(&InitializationConfig::default()).map_err(Stop::Bug)?;
            let triple = TargetMachine::get_default_triple();
            let features = TargetMachine::get_host_cpu_features().to_string();
            (
                triple.as_str().to_string_lossy().into_owned(),
                TargetMachine::get_host_cpu_name().to_string(),
                features,
            )
        }
    };
    let triple = TargetTriple::create(&triple);
    let target = Target::from_triple(&triple).map_err(|e| Stop::Bug(e.to_string()))?;
    let made = target.create_target_machine(
        &triple,
        &cpu,
        &features,
        OptimizationLevel::Default,
        RelocMode::Default,
        CodeModel::Default,
    );
    made.ok_or_else(|| Stop::Bug(format!("LLVM has no target `{}`", spec.name)))
}

/// What LLVM does to a module. Loops, common subexpressions and dead code of tiles are done already, so that few passes
/// are left; a full `O2` takes twice as long for the same registers.
const PASSES: &str = "always-inline,function(sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,gvn,\
    loop-mssa(licm),instcombine<no-verify-fixpoint>,dse,simplifycfg)";

fn optimise(module: &Module<'_>, machine: &TargetMachine, passes: &str) -> Res<()> {
    module.verify().map_err(|e| Stop::Bug(format!("LLVM refuses the module: {e}")))?;
    module.run_passes(passes, machine, PassBuilderOptions::create()).map_err(|e| Stop::Bug(e.to_string()))
}

/// The LLVM type in which a parameter is passed.
fn passed<'c>(context: &'c Context, d: DType) -> BasicMetadataTypeEnum<'c> {
    match d {
        DType::F16 => context.f16_type().into(),
        DType::BF16 => context.bf16_type().into(),
        DType::F32 => context.f32_type().into(),
        DType::F64 => context.f64_type().into(),
        DType::Bool => context.i8_type().into(),
        DType::I8
        | DType::U8
        | DType::I16
        | DType::U16
        | DType::I32
        | DType::U32
        | DType::I64
        | DType::U64
        | DType::F8E4M3
        | DType::F8E5M2
        | DType::E2M1
        | DType::E8M0 => word(context, d.bits().max(8)).into(),
    }
}

/// A kernel for an NVIDIA GPU, as PTX with the lines of its source.
pub fn ptx(kernel: &Kernel, lines: &Lines) -> Res<Text> {
    let context = Context::create();
    let symbol = symbol(&kernel.func().name);
    let module = context.create_module(&symbol);
    let machine = machine(kernel)?;
    module.set_triple(&machine.get_triple());
    module.set_data_layout(&machine.get_target_data().get_data_layout());
    let params = slots(kernel);
    let mut types: Vec<BasicMetadataTypeEnum<'_>> =
        params.iter().map(|s| passed(&context, s.kind.dtype())).collect();
    types.extend([BasicMetadataTypeEnum::from(context.i32_type()); 3]);
    let needs = Needs::of(kernel);
    types.extend(needs.any().then(|| BasicMetadataTypeEnum::from(context.i64_type())));
    let maps = maps(kernel);
    let first_map = types.len() as u32;
    let pointer = context.ptr_type(inkwell::AddressSpace::default());
    types.extend(maps.iter().map(|_| BasicMetadataTypeEnum::from(pointer)));
    let function = module.add_function(&symbol, context.void_type().fn_type(&types, false), None);
    function.set_call_conventions(PTX_KERNEL);
    let note = |name: &str, value: u32| {
        let node = context.metadata_node(&[
            function.as_global_value().as_pointer_value().into(),
            context.metadata_string(name).into(),
            context.i32_type().const_int(value.into(), false).into(),
        ]);
        module.add_global_metadata("nvvm.annotations", &node).map_err(|e| Stop::Bug(e.to_string()))
    };
    note("kernel", 1)?;
    note("reqntidx", kernel.block_threads())?;
    if tk_layout::registers::moves(kernel) {
        // Otherwise the assembler does not know what lanes begin with.
        note("maxnreg", kernel.registers_of_launch())?;
    }
    if !maps.is_empty() {
        // They are passed by value and stay where the launch puts them.
        let bytes = context.i8_type().array_type(MAP_BYTES);
        for n in (first_map..).take(maps.len()) {
            let byval = Attribute::get_named_enum_kind_id("byval");
            let align = Attribute::get_named_enum_kind_id("align");
            function.add_attribute(
                AttributeLoc::Param(n),
                context.create_type_attribute(byval, bytes.as_any_type_enum()),
            );
            function.add_attribute(
                AttributeLoc::Param(n),
                context.create_enum_attribute(align, MAP_ALIGN.into()),
            );
        }
        let numbers = (first_map + 1..).take(maps.len());
        let numbers: Vec<_> = numbers.map(|n| context.i32_type().const_int(n.into(), false).into()).collect();
        let node = context.metadata_node(&[
            function.as_global_value().as_pointer_value().into(),
            context.metadata_string("grid_constant").into(),
            context.metadata_node(&numbers).into(),
        ]);
        module.add_global_metadata("nvvm.annotations", &node).map_err(|e| Stop::Bug(e.to_string()))?;
    }
    let builder = context.create_builder();
    builder.position_at_end(context.append_basic_block(function, "entry"));
    let table = LineTable::new(&context, &module, function, lines, first_loc(kernel.func()));
    let nvptx = Nvptx::default();
    emit(&context, &builder, &module, kernel, &nvptx, function, table.as_ref())?;
    drop(table);
    optimise(&module, &machine, PASSES)?;
    let llvm = module.print_to_string().to_string();
    let buffer =
        machine.write_to_memory_buffer(&module, FileType::Assembly).map_err(|e| Stop::Bug(e.to_string()))?;
    let asm = timeless(String::from_utf8_lossy(buffer.as_slice()).trim_end_matches('\0'));
    let mut messages = nvptx.into_messages();
    if needs.any() && messages.is_empty() && !needs.meets {
        // What stands in a function that no element goes through is never said, but the parameter for it is there.
        messages.push(Message { text: String::new(), kind: Kind::Assert(vec![]), loc: None });
    }
    Ok(Text { symbol, params, maps, messages, meets: needs.meets, llvm, asm })
}

/// Gives each `.file` a time and a size: without them the assembler looks for a file of that name, and writes when it was
/// changed into the binary. Any numbers but 0 do; nobody reads them.
fn timeless(asm: &str) -> String {
    let line = |line: &str| {
        let stamp = if line.starts_with("\t.file\t") { ", 1, 1" } else { "" };
        format!("{line}{stamp}\n")
    };
    asm.lines().map(line).collect()
}

/// A kernel as a function of the host.
pub struct Hosted {
    /// What `extern "C"` code gets its context and arguments: see [`crate::sim`].
    pub entry: crate::sim::Kernel,
    /// The parameters in order.
    pub params: Vec<Slot>,
    /// What the launch describes to the copy engine: addresses of [`crate::sim::TensorMap`] are the last arguments.
    pub maps: Vec<TensorMap>,
    /// What calls refer to by number.
    pub tables: Tables,
    /// LLVM IR, optimised.
    pub llvm: String,
    /// Keeps the code alive; dropped before the context that it belongs to.
    _engine: ExecutionEngine<'static>,
}

// SAFETY: the code is never changed after it was made, and LLVM's engine is only dropped.
unsafe impl Send for Hosted {}
// SAFETY: as above; nothing but the entry is reached through a shared reference.
unsafe impl Sync for Hosted {}

/// Whether everything that the code calls was found; its addresses are zero otherwise.
fn linked(engine: &ExecutionEngine<'_>) -> Res<()> {
    let mut text = std::ptr::null_mut();
    // SAFETY: the engine is alive, and `text` may be written.
    let failed =
        unsafe { llvm_sys::execution_engine::LLVMExecutionEngineGetErrMsg(engine.as_mut_ptr(), &mut text) };
    if failed == 0 {
        return Ok(());
    }
    // SAFETY: a text that ends in a zero, or null.
    let what = if text.is_null() {
        String::new()
    } else {
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    };
    bug(format!("the code of the host is not complete: {what}"))
}

/// A kernel for the simulated target.
pub fn hosted(kernel: &Kernel) -> Res<Hosted> {
    // The engine borrows the context for as long as the code lives: a compiled kernel lives as long as its session, and
    // the few kilobytes of a context stay behind.
    let context: &'static Context = Box::leak(Box::new(Context::create()));
    let symbol = symbol(&kernel.func().name);
    let module = context.create_module(&symbol);
    let machine = machine(kernel)?;
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
    optimise(&module, &machine, PASSES)?;
    let llvm = module.print_to_string().to_string();
    let engine =
        module.create_jit_execution_engine(OptimizationLevel::Less).map_err(|e| Stop::Bug(e.to_string()))?;
    for (name, address) in names() {
        let unknown = || module.add_function(name, context.void_type().fn_type(&[], false), None);
        engine.add_global_mapping(&module.get_function(name).unwrap_or_else(unknown), address);
    }
    // Code generation is what adds calls of these, so they are declared here, used or not.
    for (name, long, address) in crate::sim::library() {
        let ty = if long { context.f64_type() } else { context.f32_type() };
        let f = module.add_function(name, context.f32_type().fn_type(&[ty.into()], false), None);
        engine.add_global_mapping(&f, address);
    }
    let address = engine.get_function_address(&symbol).map_err(|e| Stop::Bug(e.to_string()))?;
    linked(&engine)?;
    // SAFETY: the function was made with the signature of `sim::Kernel`, and the engine keeps its code.
    let entry = unsafe { std::mem::transmute::<usize, crate::sim::Kernel>(address) };
    Ok(Hosted {
        entry,
        params: slots(kernel),
        maps: maps(kernel),
        tables: sim.into_tables(),
        llvm,
        _engine: engine,
    })
}
