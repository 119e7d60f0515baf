//! Compiles kernels for GPUs: the signatures of their functions in LLVM, and the text or the object that LLVM
//! generates.
//! Requires a scheduled kernel whose shared memory fits the target, since LLVM aborts the process otherwise. Guarantees
//! the same text and bytes for the same kernel.

use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::targets::FileType;
use inkwell::types::BasicMetadataTypeEnum;
use tk_gpu::Kernel;
use tk_gpu::ir::tensor_map::{TensorMap, maps};
use tk_ops::DType;
use tk_tile::message::{Kind, Message};

use crate::diagnostics::DiagnosticCollector;
use crate::emit::value::word;
use crate::emit::{Res, Slot, Stop, emit, first_loc, slots};
use crate::fatal::contained;
use crate::lines::{LineTable, SourceFiles};
use crate::module::{PASSES, optimise, symbol};
use crate::target::GpuModule;
use crate::target::amdgcn::Amdgcn;
use crate::target::message::Needs;
use crate::target::nvptx::Nvptx;

/// Bytes of a tensor map: `CUtensorMap` of `cuda.h`.
pub const MAP_BYTES: u32 = 128;

/// A kernel as text.
#[derive(Clone, Debug)]
pub struct Text {
    /// The symbol.
    pub symbol: String,
    /// The parameters in order, without the three numbers of programs that follow them, and without the address of
    /// control memory that comes last if the kernel has one.
    pub params: Vec<Slot>,
    /// The tensor maps of the launch, which are the last parameters.
    pub maps: Vec<TensorMap>,
    /// The messages of the kernel.
    pub messages: Vec<Message>,
    /// The kernel has barriers of all programs of a launch.
    pub has_grid_barrier: bool,
    /// LLVM IR after its passes, if it was requested.
    pub llvm: Option<String>,
    /// The input of the assembler, or the assembly of the object.
    pub asm: String,
    /// The input of the linker, if LLVM assembles.
    pub object: Option<Vec<u8>>,
}

/// The last stage of a compilation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// LLVM IR; no machine code.
    Ir,
    /// The text of the assembly: PTX or GCN.
    Text,
    /// The input of the assembler or the linker: PTX, or an object for AMD.
    Binary,
    /// The same, and the text of an object, for which LLVM generates code twice.
    BinaryAndText,
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

/// Options of LLVM that are not those of a module: they are set once for the process.
///
/// `CodeGenPrepare` goes through a whole function again after each change, and is limited to a fixed number of
/// iterations only if a function has at least this many blocks (10,000 by default). Measured on `gfx942`, 1,000 tiles
/// that are loaded and stored under a mask: 6.3 s of code generation with 10,000, 2.1 s with 500. Kernels of the
/// library have up to 300 blocks, so their code is unchanged.
///
/// Straight-line strength reduction is off: it takes most of the time of code generation for NVPTX, and emission makes
/// the chains of sums that it no longer makes (docs/performance.md, "LLVM 22 instead of 19").
///
/// For AMD, phis of vectors stay whole: LLVM takes them apart where one of their values is a constant, such as the zeros
/// from which the accumulators of a product start, and then copies each accumulator twice in every iteration. MFMA keeps
/// its accumulators in vector registers: from accumulation registers, whatever is not a product reads and writes copies
/// (48 of 421 instructions of an iteration of attention on `gfx942`). Where vector registers do not suffice, LLVM takes
/// accumulation registers after all.
fn set_options() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    let options = [
        c"-cgpp-huge-func=500",
        c"-opt-disable=slsr",
        c"-amdgpu-codegenprepare-break-large-phis=false",
        c"-amdgpu-mfma-vgpr-form",
    ];
    ONCE.call_once(|| parse_options(&options));
}

fn parse_options(options: &[&std::ffi::CStr]) {
    let arguments: Vec<_> =
        std::iter::once(c"tk").chain(options.iter().copied()).map(|o| o.as_ptr()).collect();
    let count = i32::try_from(arguments.len()).unwrap_or(1);
    // SAFETY: as many zero-terminated strings, and no description.
    unsafe { llvm_sys::support::LLVMParseCommandLineOptions(count, arguments.as_ptr(), std::ptr::null()) }
}

/// Makes LLVM verify machine code after each of its passes from now on in this process, and abort on an error. For
/// tests: it doubles the time.
pub fn verify_machine_code() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| parse_options(&[c"-verify-machineinstrs"]));
}

/// Compiles a kernel for a GPU, with the lines of its source; keeps the text of LLVM IR if requested, whose printing takes
/// as long as a pass.
pub fn text(kernel: &Kernel, lines: &SourceFiles, until: Until, keep_ir: bool) -> Res<Text> {
    let generate = if kernel.options.spec.has_gcn { generate_amd } else { generate_nvidia };
    contained(|| generate(kernel, lines, until, keep_ir))
        .unwrap_or_else(|gave_up| Err(Stop::Refused(gave_up)))
}

fn generate_nvidia(kernel: &Kernel, lines: &SourceFiles, until: Until, keep_ir: bool) -> Res<Text> {
    generate::<Nvptx<'_>>(&Context::create(), kernel, lines, until, keep_ir)
}

fn generate_amd(kernel: &Kernel, lines: &SourceFiles, until: Until, keep_ir: bool) -> Res<Text> {
    generate::<Amdgcn<'_>>(&Context::create(), kernel, lines, until, keep_ir)
}

fn generate<'c, T: GpuModule<'c>>(
    context: &'c Context,
    kernel: &Kernel,
    lines: &SourceFiles,
    until: Until,
    keep_ir: bool,
) -> Res<Text> {
    set_options();
    let diagnostics = DiagnosticCollector::install(context);
    let symbol = symbol(&kernel.func().name);
    let module = context.create_module(&symbol);
    let machine = T::processor(kernel).machine()?;
    module.set_triple(&machine.get_triple());
    module.set_data_layout(&machine.get_target_data().get_data_layout());
    let params = slots(kernel);
    let mut types: Vec<BasicMetadataTypeEnum<'_>> =
        params.iter().map(|s| passed(context, s.kind.dtype())).collect();
    types.extend([BasicMetadataTypeEnum::from(context.i32_type()); 3]);
    let needs = Needs::of(kernel);
    types.extend(needs.any().then(|| BasicMetadataTypeEnum::from(context.i64_type())));
    let maps = maps(kernel);
    let first_map = types.len() as u32;
    let pointer = context.ptr_type(inkwell::AddressSpace::default());
    types.extend(maps.iter().map(|_| BasicMetadataTypeEnum::from(pointer)));
    let function = module.add_function(&symbol, context.void_type().fn_type(&types, false), None);
    T::mark_kernel(context, &module, function, kernel, (first_map, maps.len()))?;
    let builder = context.create_builder();
    builder.position_at_end(context.append_basic_block(function, "entry"));
    let table = LineTable::new(context, &module, function, lines, first_loc(kernel.func()));
    let emitter = T::default();
    emit(context, &builder, &module, kernel, &emitter, function, table.as_ref())?;
    let mut messages = emitter.into_messages();
    drop(table);
    optimise(&module, &machine, &format!("{PASSES}{}", T::LAST_PASSES))?;
    let llvm = keep_ir.then(|| module.print_to_string().to_string());
    if needs.any() && messages.is_empty() && !needs.has_grid_barrier {
        // Messages of a function that is applied to no element are never sent, but the parameter for them exists.
        messages.push(Message { text: String::new(), kind: Kind::Assert(vec![]), loc: None });
    }
    // Code generation changes a module.
    let copy = (T::ASSEMBLES && until == Until::BinaryAndText).then(|| module.clone());
    let made = |module: &Module<'_>, form| {
        machine.write_to_memory_buffer(module, form).map_err(|e| Stop::Bug(e.to_string()))
    };
    let read = |module: &Module<'_>| -> Res<String> {
        let buffer = made(module, FileType::Assembly)?;
        Ok(timeless(String::from_utf8_lossy(buffer.as_slice()).trim_end_matches('\0')))
    };
    let (asm, object) = match until {
        Until::Ir => (String::new(), None),
        Until::Binary | Until::BinaryAndText if T::ASSEMBLES => {
            let asm = copy.as_ref().map(read).transpose()?.unwrap_or_default();
            (asm, Some(made(&module, FileType::Object)?.as_slice().to_vec()))
        }
        Until::Text | Until::Binary | Until::BinaryAndText => (read(&module)?, None),
    };
    if let Some(error) = diagnostics.error() {
        return Err(Stop::Refused(error));
    }
    Ok(Text { symbol, params, maps, messages, has_grid_barrier: needs.has_grid_barrier, llvm, asm, object })
}

/// Gives each `.file` a time and a size: without them the assembler looks for a file of that name, and writes its
/// modification time into the binary. Any numbers but 0 do; nothing reads them.
fn timeless(asm: &str) -> String {
    let line = |line: &str| {
        let stamp = if line.starts_with("\t.file\t") { ", 1, 1" } else { "" };
        format!("{line}{stamp}\n")
    };
    asm.lines().map(line).collect()
}
