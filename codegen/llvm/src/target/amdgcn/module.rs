//! Modules of AMDGPU: the attributes that make a function a kernel of GCN.

use inkwell::attributes::AttributeLoc;
use inkwell::context::Context;
use inkwell::module::{FlagBehavior, Module};
use inkwell::targets::{InitializationConfig, RelocMode, Target};
use inkwell::values::FunctionValue;
use tk_gpu::Kernel;
use tk_tile::message::Message;

use super::Amdgcn;
use crate::emit::Res;
use crate::processor::Processor;
use crate::target::GpuModule;

/// LLVM's number of the calling convention of kernels.
const AMDGPU_KERNEL: u32 = 91;

/// The inputs that the system could pass to a kernel and that it does not need: a launch passes only the arguments.
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

impl<'c> GpuModule<'c> for Amdgcn<'c> {
    const ASSEMBLES: bool = true;
    // Functions that were inlined everywhere remain in the module.
    const LAST_PASSES: &'static str = ",globaldce";

    fn processor(kernel: &Kernel) -> Processor {
        Target::initialize_amd_gpu(&InitializationConfig::default());
        // A block on two compute units would also wait for its accesses to device memory at barriers.
        let features = if kernel.options.spec.has_rdna { "+cumode" } else { "" };
        Processor {
            triple: "amdgcn-amd-amdhsa".to_string(),
            cpu: kernel.options.spec.name.to_string(),
            features: features.to_string(),
            reloc: RelocMode::PIC,
        }
    }

    /// Blocks of exactly this many threads, all of them whole.
    fn mark_kernel(
        context: &'c Context,
        module: &Module<'c>,
        function: FunctionValue<'c>,
        kernel: &Kernel,
        _maps: (u32, usize),
    ) -> Res<()> {
        function.set_call_conventions(AMDGPU_KERNEL);
        let threads = kernel.block_threads();
        let mut all = vec![
            ("amdgpu-flat-work-group-size", format!("{threads},{threads}")),
            ("uniform-work-group-size", "true".to_string()),
            ("amdgpu-implicitarg-num-bytes", "0".to_string()),
            // Memory that was allocated for the device is not fine-grained: its atomic additions of floats are
            // instructions.
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
        Ok(())
    }

    fn into_messages(self) -> Vec<Message> {
        self.message_buffer.into_messages()
    }
}
