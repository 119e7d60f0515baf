//! Modules of NVPTX: the attributes that make a function a kernel of PTX, and the text of its assembly.

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::targets::{InitializationConfig, RelocMode, Target};
use inkwell::types::AnyType;
use inkwell::values::FunctionValue;
use tk_gpu::Kernel;
use tk_gpu::ir::caching::{Caching, Evict};
use tk_gpu::ir::op::GpuOp;
use tk_ops::DType;
use tk_tile::message::Message;
use tk_tile::{Inst, walk};

use super::Nvptx;
use crate::emit::{Res, Stop};
use crate::gpu::MAP_BYTES;
use crate::processor::Processor;
use crate::target::GpuModule;

/// LLVM's number of the calling convention of kernels.
const PTX_KERNEL: u32 = 71;

/// The alignment of a tensor map: `CUtensorMap` of `cuda.h`.
const MAP_ALIGN: u32 = 64;

impl<'c> GpuModule<'c> for Nvptx<'c> {
    const ASSEMBLES: bool = false;
    const LAST_PASSES: &'static str = "";

    fn processor(kernel: &Kernel) -> Processor {
        Target::initialize_nvptx(&InitializationConfig::default());
        let name = kernel.options.spec.processor();
        // The oldest version that supports the target and all that is emitted (`ptxas` rejects the rest): it
        // works with older assemblers and drivers than the version that LLVM would choose.
        let features = match name {
            "sm_90a" if multiplies_f8(kernel) => "+ptx84",
            // Stores that arrive at an mbarrier.
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

    fn mark_kernel(
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
            // Otherwise the assembler does not know the initial number of registers of lanes.
            note("maxnreg", kernel.registers_of_launch())?;
        }
        if maps > 0 {
            // They are passed by value and stay in parameter memory.
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
            let numbers: Vec<_> =
                numbers.map(|n| context.i32_type().const_int(n.into(), false).into()).collect();
            let node = context.metadata_node(&[
                function.as_global_value().as_pointer_value().into(),
                context.metadata_string("grid_constant").into(),
                context.metadata_node(&numbers).into(),
            ]);
            module.add_global_metadata("nvvm.annotations", &node).map_err(|e| Stop::Bug(e.to_string()))?;
        }
        Ok(())
    }

    fn finished(asm: String, kernel: &Kernel) -> String {
        clustered(asm, [kernel.options.blocks, 1, kernel.options.cluster])
    }

    fn into_messages(self) -> Vec<Message> {
        self.message_buffer.into_messages()
    }
}

/// Returns true if a kernel multiplies matrices of 8-bit floats by an instruction.
fn multiplies_f8(kernel: &Kernel) -> bool {
    let func = kernel.func();
    walk::insts(func).into_iter().map(|i| &func.insts[i]).any(
        |i| matches!(GpuOp::of(i), Some(GpuOp::Mma(mma)) if mma.product.elems.into_iter().any(DType::is_f8)),
    )
}

/// Returns true if an access specifies when its data leaves the cache.
fn evicts(kernel: &Kernel) -> bool {
    let func = kernel.func();
    let caching = |i: &Inst| match GpuOp::of(i) {
        Some(GpuOp::AsyncCopy(copy)) => copy.caching,
        Some(GpuOp::TmaLoad(load)) => load.caching,
        Some(GpuOp::TmaStore(store)) => store.caching,
        _ => Caching::of(&i.attrs),
    };
    walk::insts(func).into_iter().any(|i| caching(&func.insts[i]).evict != Evict::Normal)
}

/// Marks a kernel in PTX as launched in clusters: a launch need not specify it then. LLVM 19 has no form for it.
fn clustered(asm: String, [x, y, z]: [u32; 3]) -> String {
    const BEHIND: &str = "\n.reqntid ";
    let clusters = format!("\n.explicitcluster\n.reqnctapercluster {x}, {y}, {z}{BEHIND}");
    if x * y * z > 1 { asm.replacen(BEHIND, &clusters, 1) } else { asm }
}
