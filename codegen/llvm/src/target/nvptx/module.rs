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
use crate::emit::Res;
use crate::gpu::MAP_BYTES;
use crate::processor::Processor;
use crate::target::GpuModule;

/// LLVM's number of the calling convention of kernels.
const PTX_KERNEL: u32 = 71;

/// The alignment of a tensor map: `CUtensorMap` of `cuda.h`.
const MAP_ALIGN: u32 = 64;

impl<'c> GpuModule<'c> for Nvptx<'c> {
    const ASSEMBLES: bool = false;
    /// What reads accumulators moves out of the block that waits for them, where it is used after a branch: in persistent
    /// kernels `ptxas` waits for each `wgmma` otherwise (C7514). LLVM 19 did this in machine code.
    const LAST_PASSES: &'static str = ",function(sink)";

    fn processor(kernel: &Kernel) -> Processor {
        Target::initialize_nvptx(&InitializationConfig::default());
        let name = kernel.options.spec.processor();
        // The oldest version that supports the target and all that is emitted (`ptxas` rejects the rest): it
        // works with older assemblers and drivers than the version that LLVM would choose.
        let needed = [
            (multiplies_f8(kernel), 84),
            // Stores that arrive at an mbarrier.
            (kernel.options.blocks > 1, 81),
            (evicts(kernel), 74),
        ];
        let needed = needed.into_iter().filter(|(needs, _)| *needs).map(|(_, version)| version);
        let version = needed.fold(kernel.options.spec.ptx, u32::max);
        Processor {
            triple: "nvptx64-nvidia-cuda".to_string(),
            cpu: name.to_string(),
            features: format!("+ptx{version}"),
            reloc: RelocMode::Default,
        }
    }

    fn mark_kernel(
        context: &'c Context,
        _: &Module<'c>,
        function: FunctionValue<'c>,
        kernel: &Kernel,
        (first_map, maps): (u32, usize),
    ) -> Res<()> {
        function.set_call_conventions(PTX_KERNEL);
        let note = |name: &str, value: &str| {
            let attribute = context.create_string_attribute(name, value);
            function.add_attribute(AttributeLoc::Function, attribute);
        };
        note("nvvm.reqntid", &kernel.block_threads().to_string());
        if kernel.options.blocks * kernel.options.cluster > 1 {
            // A launch need not specify clusters then.
            note("nvvm.cluster_dim", &format!("{},1,{}", kernel.options.blocks, kernel.options.cluster));
        }
        if kernel.options.registers.is_some() || tk_gpu::ir::warps::uses_setmaxnreg(kernel) {
            // Otherwise the assembler does not know the initial number of registers of lanes.
            note("nvvm.maxnreg", &kernel.registers_of_launch().to_string());
        }
        // Tensor maps are passed by value and stay in parameter memory.
        let bytes = context.i8_type().array_type(MAP_BYTES);
        let byval = Attribute::get_named_enum_kind_id("byval");
        let align = Attribute::get_named_enum_kind_id("align");
        for n in (first_map..).take(maps) {
            for attribute in [
                context.create_type_attribute(byval, bytes.as_any_type_enum()),
                context.create_enum_attribute(align, MAP_ALIGN.into()),
                context.create_string_attribute("nvvm.grid_constant", ""),
            ] {
                function.add_attribute(AttributeLoc::Param(n), attribute);
            }
        }
        Ok(())
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
