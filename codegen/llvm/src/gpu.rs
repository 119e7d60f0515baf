//! Owns kernels for GPUs: what their functions look like to LLVM, and the text or the object that it makes of them.
//!
//! May assume a scheduled kernel whose shared memory fits the target, since LLVM ends the process otherwise. Guarantees the same
//! text and bytes for the same kernel.

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::context::Context;
use inkwell::module::{FlagBehavior, Module};
use inkwell::targets::{FileType, InitializationConfig, RelocMode, Target};
use inkwell::types::{AnyType, BasicMetadataTypeEnum};
use inkwell::values::FunctionValue;
use tk_gpu::Kernel;
use tk_gpu::ir::tensor_map::{TensorMap, maps};
use tk_ops::{DType, MachineOp, Op};
use tk_tile::message::{Kind, Message};
use tk_tile::walk;

use crate::emit::value::word;
use crate::emit::{Res, Slot, Stop, emit, first_loc, slots};
use crate::fatal::contained;
use crate::lines::{LineTable, Lines};
use crate::module::{PASSES, Processor, optimise, symbol};
use crate::said::Said;
use crate::target::amdgcn::{Amdgcn, is_rdna};
use crate::target::message::Needs;
use crate::target::nvptx::Nvptx;

/// LLVM's numbers of the calling conventions of kernels.
const PTX_KERNEL: u32 = 71;
const AMDGPU_KERNEL: u32 = 91;

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
    /// What the launch describes to TMA; the descriptions are the last parameters.
    pub maps: Vec<TensorMap>,
    /// What the kernel may say.
    pub messages: Vec<Message>,
    /// Whether all programs of a launch meet.
    pub meets: bool,
    /// LLVM IR, optimised.
    pub llvm: String,
    /// What the assembler reads, or what the object holds.
    pub asm: String,
    /// What the linker reads, where LLVM assembles.
    pub object: Option<Vec<u8>>,
}

/// How far a kernel is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// LLVM IR; no machine code.
    Ir,
    /// The text of the assembly: PTX or GCN.
    Text,
    /// What the assembler or the linker reads: PTX, or an object for AMD.
    Binary,
    /// The same, and the text of an object, for which LLVM generates code twice.
    BinaryAndText,
}

/// Whether a kernel multiplies matrices of 8-bit floats by an instruction.
fn multiplies_f8(kernel: &Kernel) -> bool {
    let func = kernel.func();
    walk::insts(func).into_iter().map(|i| &func.insts[i]).any(|i| {
        let mut elems = i.attrs.str("elem").unwrap_or("").split(' ').filter_map(DType::parse);
        i.op == Op::Machine(MachineOp::Mma) && elems.any(DType::is_f8)
    })
}

/// Whether an access says when what it touches leaves the cache.
fn evicts(kernel: &Kernel) -> bool {
    let func = kernel.func();
    walk::insts(func).into_iter().any(|i| func.insts[i].attrs.get("evict").is_some())
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
        | DType::F8E4M3FNUZ
        | DType::F8E5M2FNUZ
        | DType::E2M1
        | DType::E8M0 => word(context, d.bits().max(8)).into(),
    }
}

/// Shared memory that emission takes beside that of the schedule: where warps vote through it, and the barriers of buffers that
/// other blocks fill.
pub fn own_shared_bytes(kernel: &Kernel) -> u32 {
    const WORD: u32 = 4;
    let remote_buffers = tk_gpu::ir::cluster::remote_buffers(kernel);
    if let Some(last) = remote_buffers.len().checked_sub(1) {
        return crate::emit::shared::barrier_of(kernel, last) + crate::emit::shared::BARRIER
            - kernel.shared_bytes();
    }
    if kernel.options.spec.has_gcn && Needs::of(kernel).asserts { WORD } else { 0 }
}

/// Options of LLVM that are not those of a module: they are set once for the process.
///
/// `CodeGenPrepare` goes through a whole function again after each change, and takes a fixed number of rounds only where a
/// function has at least this many blocks (10,000 unless it is told otherwise). Measured on `gfx942`, 1,000 tiles that are
/// loaded and stored under a mask: 6.3 s of code generation with 10,000, 2.1 s with 500. Kernels of the library have up to
/// 300 blocks, so their code stays as it is.
fn set_options() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| parse_options(&[c"-cgpp-huge-func=500"]));
}

fn parse_options(options: &[&std::ffi::CStr]) {
    let arguments: Vec<_> =
        std::iter::once(c"tk").chain(options.iter().copied()).map(|o| o.as_ptr()).collect();
    let count = i32::try_from(arguments.len()).unwrap_or(1);
    // SAFETY: as many texts that end in a zero, and no description.
    unsafe { llvm_sys::support::LLVMParseCommandLineOptions(count, arguments.as_ptr(), std::ptr::null()) }
}

/// From here on LLVM verifies the machine code of this process behind each of its passes, and ends the process where it finds
/// a mistake. For tests: it takes as long again.
pub fn verify_machine_code() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| parse_options(&[c"-verify-machineinstrs"]));
}

/// A kernel for a GPU, with the lines of its source.
pub fn text(kernel: &Kernel, lines: &Lines, until: Until) -> Res<Text> {
    contained(|| generate(kernel, lines, until)).unwrap_or_else(|gave_up| Err(Stop::Refused(gave_up)))
}

fn generate(kernel: &Kernel, lines: &Lines, until: Until) -> Res<Text> {
    set_options();
    let context = Context::create();
    let said = Said::listen(&context);
    let symbol = symbol(&kernel.func().name);
    let module = context.create_module(&symbol);
    let has_gcn = kernel.options.spec.has_gcn;
    let machine = if has_gcn { gcn(kernel) } else { nvidia(kernel) }.machine()?;
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
    if has_gcn {
        amd_kernel(&context, &module, function, kernel);
    } else {
        ptx_kernel(&context, &module, function, kernel, (first_map, maps.len()))?;
    }
    let builder = context.create_builder();
    builder.position_at_end(context.append_basic_block(function, "entry"));
    let table = LineTable::new(&context, &module, function, lines, first_loc(kernel.func()));
    let mut messages = if has_gcn {
        let gcn = Amdgcn::default();
        emit(&context, &builder, &module, kernel, &gcn, function, table.as_ref())?;
        gcn.into_messages()
    } else {
        let nvptx = Nvptx::default();
        emit(&context, &builder, &module, kernel, &nvptx, function, table.as_ref())?;
        nvptx.into_messages()
    };
    drop(table);
    // What was inlined everywhere is left behind.
    optimise(&module, &machine, &if has_gcn { format!("{PASSES},globaldce") } else { PASSES.to_string() })?;
    let llvm = module.print_to_string().to_string();
    if needs.any() && messages.is_empty() && !needs.meets {
        // What stands in a function that no element goes through is never said, but the parameter for it is there.
        messages.push(Message { text: String::new(), kind: Kind::Assert(vec![]), loc: None });
    }
    // Generating code changes a module.
    let copy = (has_gcn && until == Until::BinaryAndText).then(|| module.clone());
    let made = |module: &Module<'_>, form| {
        machine.write_to_memory_buffer(module, form).map_err(|e| Stop::Bug(e.to_string()))
    };
    let read = |module: &Module<'_>| -> Res<String> {
        let buffer = made(module, FileType::Assembly)?;
        Ok(timeless(String::from_utf8_lossy(buffer.as_slice()).trim_end_matches('\0')))
    };
    let (asm, object) = match until {
        Until::Ir => (String::new(), None),
        Until::Binary | Until::BinaryAndText if has_gcn => {
            let asm = copy.as_ref().map(read).transpose()?.unwrap_or_default();
            (asm, Some(made(&module, FileType::Object)?.as_slice().to_vec()))
        }
        Until::Text if has_gcn => (read(&module)?, None),
        Until::Text | Until::Binary | Until::BinaryAndText => {
            (clustered(read(&module)?, kernel.options.blocks), None)
        }
    };
    if let Some(error) = said.error() {
        return Err(Stop::Refused(error));
    }
    Ok(Text { symbol, params, maps, messages, meets: needs.meets, llvm, asm, object })
}

fn nvidia(kernel: &Kernel) -> Processor {
    Target::initialize_nvptx(&InitializationConfig::default());
    let name = kernel.options.spec.name;
    // The oldest version that knows the target, and it has all that is emitted (`ptxas` refuses what it lacks): an older
    // assembler and driver take it than what LLVM would choose.
    let features = match name {
        "sm_90a" if multiplies_f8(kernel) => "+ptx84",
        // Stores that arrive at a barrier.
        "sm_90a" if kernel.options.blocks > 1 => "+ptx81",
        "sm_90a" => "+ptx80",
        // Policies of caches.
        _ if evicts(kernel) => "+ptx74",
        _ => "+ptx70",
    };
    Processor {
        triple: "nvptx64-nvidia-cuda".to_string(),
        cpu: name.to_string(),
        features: features.to_string(),
        reloc: RelocMode::Default,
    }
}

fn gcn(kernel: &Kernel) -> Processor {
    Target::initialize_amd_gpu(&InitializationConfig::default());
    // A block on two compute units would wait at barriers for its accesses to device memory too.
    let features = if is_rdna(kernel.options.spec) { "+cumode" } else { "" };
    Processor {
        triple: "amdgcn-amd-amdhsa".to_string(),
        cpu: kernel.options.spec.name.to_string(),
        features: features.to_string(),
        reloc: RelocMode::PIC,
    }
}

/// What tells LLVM that a function is a kernel of PTX.
fn ptx_kernel<'c>(
    context: &'c Context,
    module: &Module<'c>,
    function: FunctionValue<'c>,
    kernel: &Kernel,
    (first_map, maps): (u32, usize),
) -> Res<()> {
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
    if kernel.options.registers.is_some() || tk_gpu::ir::warps::moves(kernel) {
        // Otherwise the assembler does not know what lanes begin with.
        note("maxnreg", kernel.registers_of_launch())?;
    }
    if maps > 0 {
        // They are passed by value and stay where the launch puts them.
        let bytes = context.i8_type().array_type(MAP_BYTES);
        for n in (first_map..).take(maps) {
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
        let numbers = (first_map + 1..).take(maps);
        let numbers: Vec<_> = numbers.map(|n| context.i32_type().const_int(n.into(), false).into()).collect();
        let node = context.metadata_node(&[
            function.as_global_value().as_pointer_value().into(),
            context.metadata_string("grid_constant").into(),
            context.metadata_node(&numbers).into(),
        ]);
        module.add_global_metadata("nvvm.annotations", &node).map_err(|e| Stop::Bug(e.to_string()))?;
    }
    Ok(())
}

/// What a kernel does not need of what the system could pass it: a launch passes the arguments and nothing else.
const NOT_PASSED: [&str; 13] = [
    "amdgpu-no-completion-action",
    "amdgpu-no-default-queue",
    "amdgpu-no-dispatch-id",
    "amdgpu-no-dispatch-ptr",
    "amdgpu-no-heap-ptr",
    "amdgpu-no-hostcall-ptr",
    "amdgpu-no-implicitarg-ptr",
    "amdgpu-no-lds-kernel-id",
    "amdgpu-no-multigrid-sync-arg",
    "amdgpu-no-queue-ptr",
    "amdgpu-no-workitem-id-y",
    "amdgpu-no-workitem-id-z",
    "amdgpu-no-flat-scratch-init",
];

/// What tells LLVM that a function is a kernel of GCN: blocks of exactly so many threads, all of them whole.
fn amd_kernel<'c>(context: &'c Context, module: &Module<'c>, function: FunctionValue<'c>, kernel: &Kernel) {
    function.set_call_conventions(AMDGPU_KERNEL);
    let threads = kernel.block_threads();
    let mut all = vec![
        ("amdgpu-flat-work-group-size", format!("{threads},{threads}")),
        ("uniform-work-group-size", "true".to_string()),
        ("amdgpu-implicitarg-num-bytes", "0".to_string()),
        // Memory that was allocated for the device is not shared finely: its atomic additions of floats are instructions.
        ("amdgpu-unsafe-fp-atomics", "true".to_string()),
        ("target-cpu", kernel.options.spec.name.to_string()),
    ];
    all.extend(NOT_PASSED.map(|name| (name, String::new())));
    for (name, value) in all {
        function.add_attribute(AttributeLoc::Function, context.create_string_attribute(name, &value));
    }
    // The fifth version of code objects, which ROCm 5 and 6 load.
    let version = context.i32_type().const_int(500, false);
    module.add_basic_value_flag("amdhsa_code_object_version", FlagBehavior::Error, version);
}

/// Says of a kernel in PTX that its blocks are launched in clusters: a launch need not say it then. LLVM 19 has no form for it.
fn clustered(asm: String, blocks: u32) -> String {
    const BEHIND: &str = "\n.reqntid ";
    let clusters = format!("\n.explicitcluster\n.reqnctapercluster {blocks}, 1, 1{BEHIND}");
    if blocks > 1 { asm.replacen(BEHIND, &clusters, 1) } else { asm }
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
